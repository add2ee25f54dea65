"""Short text for the terminal, from the same values that `--json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privcheck.reports import render_text
from privcheck.reports.values import (
    About,
    AllVerified,
    Audited,
    Budget,
    CalibratedNoise,
    Compared,
    CostTrend,
    Diagnosis,
    Listing,
    NeededNoise,
    Ran,
    RanOnline,
    Report,
    Shown,
    SpentCost,
    StartedPackage,
    VerdictBrief,
    Verified,
    together,
)
from privcheck.reports.wording import spell_out


def describe_algorithms(result: Listing) -> str:
    """Returns one line an algorithm."""
    rows = [
        (one.name, one.claim or "none", one.model or "not private", "yes" if one.agent else "no", one.title)
        for one in result.algorithms
    ]
    return columns([("name", "claim", "model", "agent", "title"), *rows])


def describe_declaration(result: Shown) -> str:
    """Returns the declaration with its derivation, line by line."""
    releases = [
        (r.name, r.statistic, "×".join(map(str, r.shape)), r.mechanism, r.stated or "none") for r in result.releases
    ]
    steps = [
        (step.where, step.rule, f"{_plain(step.symbol)} = {step.result}", step.text or step.theorem)
        for step in result.derivation
    ]
    return "\n".join([
        f"{result.name}: {result.title}",
        f"  {result.source}",
        f"  neighbours: {result.relation}; model: {result.model}",
        f"  claim: {result.claim}",
        "",
        columns([("release", "statistic", "shape", "noise", "stated sensitivity"), *releases]),
        "",
        columns([("derivation", "rule", "result", "why"), *steps]),
        *([] if not result.trends else ["", _trends(result.trends)]),
        "",
        result.latex,
    ])  # fmt: skip


def describe_budget(result: Budget) -> str:
    """Returns what the releases cost: the guarantee first, then every method, then release by release."""
    total = result.guarantee
    at = f"({total.epsilon:.6g}, {total.delta:g})-DP" if total.epsilon is not None else "no finite ε at this δ"
    rows = [(m.name, f"{m.epsilon:.9g}", m.direction) for m in result.methods]
    costs = [
        (r.name, r.sensitivity.charged, str(r.count), r.mechanism, f"{r.std:.6g}", r.cost.expression)
        for r in result.releases
    ]
    rho = "no finite ρ" if total.rho is None else f"ρ = {total.rho:.6g}"
    return "\n".join([
        f"{result.algorithm}: {at}, {rho} for: {result.relation}",
        "",
        columns([("method", f"ε at δ = {total.delta:g}", "direction"), *rows]),
        "",
        columns([("release", "sensitivity", "outputs", "noise", "std", "cost"), *costs]),
    ])  # fmt: skip


def describe_calibration(result: CalibratedNoise) -> str:
    """Returns the least noise beside the declared one."""
    target, reached = result.target, result.guarantee
    heading = ("release", "law", "published std", "needed std", "needed/published")
    head = (
        f"{result.algorithm}: ({target.epsilon:g}, {target.delta:g})-DP needs this noise; certified "
        f"ε ≤ {reached.epsilon:.9g} ({reached.method}), least to {reached.tolerance:.1g} relative"
    )
    parts = [head, "", columns([heading, *_noise_rows(result.releases)])]
    if result.gaussian is not None:
        parts += ["", "with Gaussian noise instead:", columns([heading, *_noise_rows(result.gaussian)])]
    if result.batches is not None:
        title = "with disjoint batches instead, each user in one output:"
        parts += ["", title, columns([heading, *_noise_rows(result.batches)])]
    return "\n".join(parts)


def _trends(trends: Sequence[CostTrend]) -> str:
    verbs = {"nondecreasing": "rises", "nonincreasing": "falls", "constant": "stays", "neither": "rises and falls"}
    parts = [f"{verbs[t.trend]} with {spell_out(t.parameter)} ({t.method})" for t in trends]
    return f"the cost {', '.join(parts)}"


def _noise_rows(rows: Sequence[NeededNoise]) -> list[tuple[str, ...]]:
    return [(r.name, r.law, f"{r.published_std:.6g}", f"{r.needed_std:.6g}", f"{r.ratio:.6g}") for r in rows]


def describe_verdict(result: Verified) -> str:
    """Returns the verdict with its findings."""
    brief = VerdictBrief(verdict=result.verdict, method=result.method, sentence=result.sentence)
    return _as_report(result.algorithm, verify=result, verdict=brief)


def describe_verdicts(result: AllVerified) -> str:
    """Returns a table of all verdicts, and one of all findings."""
    rows = [("system", "verdict", "how", "joint DP", "cost/claim", "witness/claim", "claim")]
    places: dict[tuple[str, str, str], list[str]] = {}
    for r in result.results:
        how = r.method + (", given" if r.given else "")
        ratios = (f"{r.upper_ratio:.4g}", f"{r.lower_ratio:.4g}")
        rows.append((r.algorithm, r.verdict, how, r.joint or "", *ratios, spell_out(r.claim)))
        for f in r.findings:
            places.setdefault((r.algorithm, f.severity, f.code), []).append(f.where)
    findings = [("system", "severity", "finding", "where"), *((*key, ", ".join(w)) for key, w in places.items())]
    hint = "`privcheck verify NAME` explains a system's findings and shows the pair of neighbours behind them."
    return "\n".join([columns(rows), "", columns(findings), "", hint])


def describe_audit(result: Audited) -> str:
    """Returns the audit's verdict and bound."""
    return _as_report(result.algorithm, audit=together({result.view: result}))


def describe_run(result: Ran) -> str:
    """Returns what was learned and spent."""
    return _as_report(result.algorithm, run=result)


def describe_online_runs(result: RanOnline | Compared) -> str:
    """Returns regret, last value, switches, cost and speed of each online agent."""
    runs = result.results if isinstance(result, Compared) else (result,)
    first = runs[0]
    head = f"{first.description}; {first.replicates} replicates, optimum {first.optimal_value:.6g} an episode"
    rows = [
        (
            run.algorithm,
            str(run.episodes),
            f"{run.regret.mean:.6g}",
            "" if run.regret.std is None else f"{run.regret.std:.3g}",
            "" if run.regret.share is None else f"{100 * run.regret.share:.2f} %",
            "" if run.regret.share_of_uniform is None else f"{100 * run.regret.share_of_uniform:.2f} %",
            f"{run.curves.value.mean[-1]:.6g}",
            f"{run.curves.switches.mean[-1]:.6g}",
            _say_spent(run.spent),
            f"{run.episodes_per_second:.3g}",
        )
        for run in runs
    ]
    heading = (
        "agent", "episodes", "regret", "± std", "of the most", "of uniform's", "last value", "switches", "spent",
        "episodes/s",
    )  # fmt: skip
    said = (line for run in runs for line in (_without_noise(run), _odometer(run)))
    notes = [line for line in (_trivial(first), *said) if line]
    return "\n".join([head, "", columns([heading, *rows]), *([""] if notes else []), *notes])


def _trivial(run: RanOnline) -> str:
    """Returns what play that learns nothing loses in that world; empty where uniform play loses nothing."""
    regret = run.regret
    if not regret.uniform or regret.share_of_uniform is None or regret.myopic is None or regret.prior_only is None:
        return ""
    shares = {"myopic": regret.myopic / regret.uniform, "prior-only": regret.prior_only / regret.uniform}
    others = ", ".join(f"the {name} one {100 * share:.2f} % of that" for name, share in shares.items())
    return f"Policies that learn nothing: the uniform one has regret {regret.uniform:.6g}, {others}."


def _without_noise(run: RanOnline) -> str:
    """Returns what the agent's twin without privacy loses in the same runs; empty where it was not run."""
    if run.regret.baseline is None:
        return ""
    return f"{run.algorithm}: without privacy ({run.regret.twin}) the regret is {run.regret.baseline:.6g}."


def _odometer(run: RanOnline) -> str:
    """Returns from which episode on how much is spent, where that changes; at most 16 figures, the last among them."""
    pure = run.spent is not None and run.spent.pure_epsilon is not None
    steps = [(step.episode, step.pure_epsilon if pure else step.rho) for step in run.odometer or ()]
    if len(steps) < 2 or steps[-1][1] is None:
        return ""
    few = [*steps[: -1 : -(-len(steps) // 15)], steps[-1]]
    figures = ", ".join(f"{episode}: {cost:.4g}" for episode, cost in few)
    symbol = "ε" if pure else "ρ"
    return f"{run.algorithm}, {symbol} spent from episode … on (a smaller budget ends the run before): {figures}"


def _say_spent(cost: SpentCost | None) -> str:
    if cost is None:
        return "not private"
    if cost.pure_epsilon is not None:
        return f"ε = {cost.pure_epsilon:.6g}"
    return "no bound" if cost.rho is None else f"ρ = {cost.rho:.6g}"


def describe_diagnosis(result: Diagnosis) -> str:
    """Returns problems first, then versions."""
    lines = ["no problems found"] if result.ok else [f"problem: {p}" for p in result.problems]
    facts = [*result.versions.items(), ("platform", result.platform), ("cores", str(result.cores))]
    facts += [(f"noise, {name}", words) for name, words in result.noise_sources.items()]
    facts += [(group, ", ".join(names)) for group, names in result.registered.items()]
    return "\n".join([*lines, "", columns([("what", "found"), *facts])])


def describe_started(result: StartedPackage) -> str:
    """Returns the files, and what to do with them."""
    return "\n".join([
        *result.files,
        "",
        f"cd {result.directory}",
        'python -m pip install -e ".[test]"',
        "python -m pytest",
        f"privcheck check {result.name}",
    ])  # fmt: skip


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as aligned columns, the first one as a heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])


def _as_report(algorithm: str, **sections: Any) -> str:
    return render_text(Report(privcheck=About(), algorithm=algorithm, **sections))


def _plain(symbol: str) -> str:
    """Returns a LaTeX symbol as the terminal can show it."""
    for latex, character in ((r"\Delta_1", "Δ₁"), (r"\Delta_2", "Δ₂"), (r"\rho", "ρ"), (r"\varepsilon", "ε")):
        if symbol.startswith(latex):
            return character
    return symbol
