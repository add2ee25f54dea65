"""Short text for the terminal, from the same values that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from privcheck.cli.options import columns, stream_columns, wrap, wrapped_columns
from privcheck.commands.estimates import BYTES, SECONDS, say_bytes, say_seconds
from privcheck.reports import render_text
from privcheck.reports.comparisons import points_table, remarks, slopes_table, warnings
from privcheck.reports.files import as_report
from privcheck.reports.values import (
    AgentConstant,
    AllVerified,
    Audited,
    Budget,
    CalibratedNoise,
    Compared,
    ConformanceLine,
    CostTrend,
    Diagnosis,
    PlannedWork,
    Published,
    Ran,
    RanOnline,
    Shown,
    ShownPolicy,
    SpentCost,
    StartedPackage,
    Sweep,
    Unverified,
    Verified,
)
from privcheck.reports.wording import figure, ratio, say_given, say_origin, spell_out

if TYPE_CHECKING:
    from pathlib import Path

    from privcheck.data.preparing import Prepared
    from privcheck.data.preparing.drafts import Draft
    from privcheck.pricing import LeastNoise


def describe_declaration(result: Shown) -> str:
    """Text of a declaration with its derivation, line by line."""
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
        *([] if result.origin is None else [f"  {say_origin(result.origin)}"]),
        f"  neighbours: {result.relation}; model: {result.model}",
        f"  claim: {result.claim}",
        *(f"  {one.name}: “{one.quotation}” ({one.where}; {one.neighbours})" for one in result.statements),
        "",
        columns([("release", "statistic", "shape", "noise", "stated sensitivity"), *releases]),
        "",
        columns([("derivation", "rule", "result", "why"), *steps]),
        *([] if not result.trends else ["", _trends(result.trends)]),
        *([] if not result.constants else ["", *_constants(result.constants)]),
        *([] if not result.conformance else ["", *_conformance(result.conformance)]),
        "",
        result.latex,
    ])  # fmt: skip


def describe_budget(result: Budget) -> str:
    """Text of the cost of the releases: the guarantee first, then every method, then release by release."""
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
    """Text comparing the least noise with the declared noise."""
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


def _constants(constants: Sequence[AgentConstant]) -> list[str]:
    """Table of the agent's constants in both presets, with the remark that nothing declared depends on them."""
    differ = any(one.practical != one.paper for one in constants)
    both = "by preset" if differ else "the presets practical and paper are the same"
    rows = [(one.name, one.practical, one.paper, spell_out(one.meaning)) for one in constants]
    return [
        f"the agent's constants, {both} (post-processing: releases, noise and cost do not depend on them)",
        wrapped_columns([("constant", "practical", "paper", "meaning"), *rows]),
    ]


def _conformance(lines: Sequence[ConformanceLine]) -> list[str]:
    """Table of the printed lines, with the number of those that the agent follows."""
    followed = sum(not one.here.startswith("deviates") for one in lines)
    return [
        f"line by line, with preset=paper: {followed} of {len(lines)} as printed",
        wrapped_columns([("line", "says · here"), *((one.line, f"{one.says} · {one.here}") for one in lines)]),
    ]


def _trends(trends: Sequence[CostTrend]) -> str:
    verbs = {"nondecreasing": "rises", "nonincreasing": "falls", "constant": "stays", "neither": "rises and falls"}
    parts = [f"{verbs[t.trend]} with {spell_out(t.parameter)} ({t.method})" for t in trends]
    return f"the cost {', '.join(parts)}"


def _noise_rows(rows: Sequence[LeastNoise]) -> list[tuple[str, ...]]:
    return [(r.name, r.law, f"{r.published_std:.6g}", f"{r.needed_std:.6g}", f"{r.ratio:.6g}") for r in rows]


def describe_verdict(result: Verified) -> str:
    """Text of a verdict with its findings."""
    return render_text(as_report(result))


def describe_verdicts(result: AllVerified) -> str:
    """Table of all verdicts, followed by a table of all findings."""
    found: tuple[Verified | Unverified, ...] = (*result.results, *result.errors)
    return "\n".join(stream_verdicts(found, [one.algorithm for one in found]))


def stream_verdicts(found: Iterable[Verified | Unverified], names: Sequence[str]) -> Iterator[str]:
    """Yield a line per verdict as the verdicts arrive, then the table of all findings.

    Args:
        found: The verdicts.
        names: Names of all systems that may follow, for the width of the first column.
    """
    places: dict[tuple[str, str, str], list[str]] = {}

    def rows() -> Iterator[Sequence[str]]:
        for r in found:
            if isinstance(r, Unverified):
                yield (r.algorithm, "error", "", "", "", "", r.message)
                continue
            for f in r.findings:
                places.setdefault((r.algorithm, f.severity, f.code), []).append(f.where)
            how = say_given(r.given) if r.given and r.verdict == "holds" else r.method
            ratios = (ratio(r.upper_ratio, rounding="up"), ratio(r.lower_ratio, rounding="down"))
            yield (r.algorithm, r.verdict, how, r.joint or "", *ratios, spell_out(r.claim))

    heading = ("system", "verdict", "how", "joint DP", "cost/claim", "worst pair/claim", "claim")
    widths = (max(map(len, (*names, "system"))), *map(len, ("undecided", "checked", *heading[3:])))
    yield from stream_columns(heading, rows(), widths)
    findings = [("system", "severity", "finding", "where"), *((*key, ", ".join(w)) for key, w in places.items())]
    hint = "`privcheck verify NAME` explains a system's findings and shows the pair of neighbours behind them."
    yield from ("", columns(findings), "", hint)


def describe_audit(result: Audited) -> str:
    """Text of an audit: its verdict and bound."""
    return render_text(as_report(result))


def describe_run(result: Ran) -> str:
    """Text of a run: what it learned and spent."""
    return render_text(as_report(result))


def describe_draft(result: Draft, raw: Path, recipe: Path) -> str:
    """Text of a draft recipe: the guessed columns, the first rows as they will be read, and the next step."""
    found = [("ours", "in the file", "type", "missing"), *((*one[:3], f"{one[3]:,}") for one in result.guessed)]
    counted = ", ".join(f"{what}: {count:,}" for what, count in result.counts.items())
    known = f" after layout {result.layout}" if result.layout else ""
    todo = f"fill in {', '.join(result.open)}; " if result.open else ""
    return "\n".join(
        [
            f"{recipe}: a draft{known}. Next: {todo}look through it, set confirmed = true, and",
            f"  privcheck prepare {raw} --recipe {recipe} --out trips.parquet",
            "",
            columns(found),
            "",
            counted,
            "",
            "the first rows as they will be read, private like everything above:",
            columns(result.rows),
        ]
    )


def describe_prepared(result: Prepared) -> str:
    """Text of a preparation: the written file, the changes, and the choices that depend on the data."""
    changed = [f"{what}: {count:,}" for what, count in sorted(result.changed.items())]
    steps = f"{'' if result.changes else 'at most '}{result.steps} steps"  # of observed ones the limit is known
    lines = [
        f"{result.data}: {result.episodes:,} episodes of {steps}, from {result.rows:,} rows",
        f"changed: {', '.join(changed) or 'nothing'}"
        + (f" (row by row in {result.changes}, as private as the data)" if result.changes else ""),
        f"protected: {result.unit.words}; stated by: {result.unit.stated_by}",
        *([] if result.codebook is None else [f"labels: {result.codebook}"]),
        *(f"depends on the data: {choice}" for choice in result.depends_on_data),
    ]
    return "\n".join(lines)


def describe_shown_policy(result: ShownPolicy) -> str:
    """Text of a policy: why it may be published, its value, and its actions."""
    given = result.guarantee
    if given is None:
        public = "no guarantee: not learned by a private algorithm"
    else:
        allowed = f"may be published (compared: {given.compared})"
        if not given.publishable:
            simulated, uncompared = "its noise was simulated", "it was not compared on neighbours"
            allowed = f"NOT to be published: {uncompared if given.protects else simulated}"
        whom = given.relation if given.unit is None else f"{given.unit.words}, stated by {given.unit.stated_by}"
        public = f"{allowed}; protects: {whom}; spent {_say_spent(given.spent)}; claimed {given.claim}"
        public += f" ({given.spent.theorem}; {given.spent.note})" if given.spent and given.spent.theorem else ""
    worth = [f"{name} {value:.6g}" for name, value in (("true", result.value.true), ("claimed", result.value.claimed))
             if value is not None]  # fmt: skip
    return "\n".join(
        [
            f"policy of {result.algorithm}, learned from {result.learned_from}: {public}",
            f"value: {', '.join(worth) or 'not known'} ({result.value.note})",
            *(f"not covered by noise: {warning}" for warning in result.warnings),
            "",
            columns(
                [*result.form.items()]
                if result.form
                else [("state", "steps", "likeliest action", "probability"), *result.rows]
            ),
        ]
    )


def describe_published(result: Published) -> str:
    """Text of a publication: files with digests, the protected unit and its cost, and what was left out."""
    cost = result.guarantee.cost
    loss = f"ε = {figure(cost.epsilon, rounding='up')} at δ = {figure(cost.delta)}"
    return "\n".join(
        [
            f"{result.folder}: may be published; protects: {result.guarantee.unit_words}; {loss}",
            "",
            columns([("file", "SHA-256"), *((file.name, file.sha256) for file in result.files)]),
            "",
            *(wrap(f"left out: {what}") for what in result.withheld),
            *(wrap(f"not covered by noise: {warning}") for warning in result.guarantee.not_covered),
        ]
    )


def describe_online_runs(result: RanOnline | Compared) -> str:
    """Table of regret, last value, switches, cost and speed of each online agent; for several, the headline first.

    For several agents the cost is in one unit, with the verdict on the claim beside it; for one it is that of its
    ledger.
    """
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
            *cost,
            f"{run.episodes_per_second:.3g}",
        )
        for run, cost in zip(runs, _costs(result), strict=True)
    ]
    costs: tuple[str, ...] = ("spent",)
    if isinstance(result, Compared):
        costs = (f"ε at most (δ = {result.delta:g})", "claim")
    heading = (
        "agent", "episodes", "regret", "± std", "of the most", "of uniform's", "last value", "switches", *costs,
        "episodes/s",
    )  # fmt: skip
    said = (line for run in runs for line in (_preset(run), _without_noise(run), _reason(run), _odometer(run)))
    notes = [line for line in (_trivial(first), *said) if line]
    failed = [f"{run.algorithm} {run.did_not_learn.words}." for run in runs if run.did_not_learn is not None]
    said_first = [wrap(result.headline), ""] if isinstance(result, Compared) else []
    if isinstance(result, Compared) and any(one.simulated for one in result.standings):
        notes.append("The noise was simulated: nothing here protects any data.")
    table = columns([heading, *rows])
    return "\n".join([*said_first, *failed, head, "", table, *([""] if notes else []), *notes])


def _costs(result: RanOnline | Compared) -> list[tuple[str, ...]]:
    """Cost cells of each run: by its ledger or, for several runs, in one unit with the verdicts on their claims."""
    if not isinstance(result, Compared):
        return [(_say_spent(result.spent),)]
    return [
        ("not private", "") if one.guarantee is None
        else ("no bound" if one.guarantee.epsilon is None else f"{one.guarantee.epsilon:.6g}", one.guarantee.verdict)
        for one in result.standings
    ]  # fmt: skip


def _trivial(run: RanOnline) -> str:
    """Regret of policies that learn nothing in this environment, as a sentence; empty if uniform play has no regret."""
    regret = run.regret
    if not regret.uniform or regret.share_of_uniform is None or regret.myopic is None or regret.prior_only is None:
        return ""
    shares = {"myopic": regret.myopic / regret.uniform, "prior-only": regret.prior_only / regret.uniform}
    others = ", ".join(f"the {name} one {100 * share:.2f} % of that" for name, share in shares.items())
    return f"Policies that learn nothing: the uniform one has regret {regret.uniform:.6g}, {others}."


def _preset(run: RanOnline) -> str:
    return "" if run.preset is None else f"{run.algorithm}: preset {run.preset.words}."


def _without_noise(run: RanOnline) -> str:
    """Regret of the agent's non-private twin in the same runs, as a sentence; empty if the twin was not run."""
    if run.regret.baseline is None:
        return ""
    without = "without noise" if run.regret.twin_is_itself else f"without privacy ({run.regret.twin})"
    said = f"{run.algorithm}: {without} the regret is {run.regret.baseline:.6g}."
    return f"{said} {run.regret.twin_differs}".strip()


def _odometer(run: RanOnline) -> str:
    """Spent budget by episode, where it changes, as a line of at most 16 figures including the last; else empty."""
    pure = run.spent is not None and run.spent.pure_epsilon is not None
    steps = [(step.episode, step.pure_epsilon if pure else step.rho) for step in run.odometer or ()]
    if len(steps) < 2 or steps[-1][1] is None:
        return ""
    few = [*steps[: -1 : -(-len(steps) // 15)], steps[-1]]
    figures = ", ".join(f"{episode}: {cost:.4g}" for episode, cost in few)
    symbol = "ε" if pure else "ρ"
    return f"{run.algorithm}, {symbol} spent from episode … on (a smaller budget ends the run before): {figures}"


def _reason(run: RanOnline) -> str:
    """Why the spent budget bounds the leakage, and the guarantee it belongs to, as a sentence."""
    if run.spent is None or not run.spent.theorem:
        return ""
    return wrap(f"{run.algorithm}, spent: {run.spent.theorem}; {run.spent.note}.")


def _say_spent(cost: SpentCost | None) -> str:
    if cost is None:
        return "not private"
    if cost.pure_epsilon is not None:
        return f"ε = {cost.pure_epsilon:.6g}"
    return "no bound" if cost.rho is None else f"ρ = {cost.rho:.6g}"


def describe_diagnosis(result: Diagnosis) -> str:
    """Text of a diagnosis: problems first, then what works here and what to install."""
    there = [name for name, told in result.extras.items() if told == "installed"]
    missing = [name for name in result.extras if name not in there]
    more = f"; to install: pip install 'privcheck[{','.join(missing)}]'" if missing else ""
    registered = ", ".join(f"{len(names)} {group}" for group, names in result.registered.items())
    versions = {"privcheck": "", "python": "", **result.versions}
    lines = ["no problems found"] if result.ok else [f"problem: {problem}" for problem in result.problems]
    lines += [
        f"privcheck {versions['privcheck']} on Python {versions['python']}, {result.cores} cores, {result.platform}",
        f"registered: {registered} (privcheck list); versions of all packages: --json",
        f"noise that may be published: {result.noise_sources['release']}",
        f"extras installed: {', '.join(there) or 'none'}{more}",
        'completion in this shell: eval "$(_PRIVCHECK_COMPLETE=bash_source privcheck)" (or zsh_source, fish_source)',
    ]
    return "\n".join(map(wrap, lines))


def describe_planned(result: PlannedWork) -> str:
    """Text of a dry run: the work of the command, part by part."""
    rows = [
        (p.what, ", ".join(f"{n} {size:,}" for n, size in p.sizes.items()), say_seconds(p.seconds), say_bytes(p.bytes))
        for p in result.parts
    ]
    total = f"about {say_seconds(result.seconds)} and {say_bytes(result.bytes)} of memory in all"
    parameters = result.parameters.items()
    limits = f"{say_seconds(SECONDS)} and {say_bytes(BYTES)}"
    needed = f"within the limits of {limits}" if result.within else f"beyond the limits of {limits}: needs --yes"
    return "\n".join([
        f"dry run of {result.command}: nothing is drawn or written",
        "",
        columns([("part", "sizes", "about", "memory"), *rows]),
        "",
        wrap(f"{total}, {needed}; an estimate that may be wrong by a factor of ten"),
        *(wrap(f"{name}: {words}") for name, words in result.guarantee.items()),
        *(wrap(f"{name}: {', '.join(f'{n} = {v}' for n, v in given.items())}") for name, given in parameters if given),
        f"written to: {result.writes or 'nothing, without --out'}",
    ])  # fmt: skip


def describe_started(result: StartedPackage) -> str:
    """Text of a new package: its files, and the commands to run next."""
    return "\n".join([
        *result.files,
        "",
        f"cd {result.directory}",
        'python -m pip install -e ".[test]"',
        "python -m pytest",
        f"privcheck check {result.name}",
    ])  # fmt: skip


def _plain(symbol: str) -> str:
    """A LaTeX symbol as the terminal can show it."""
    for latex, character in ((r"\Delta_1", "Δ₁"), (r"\Delta_2", "Δ₂"), (r"\rho", "ρ"), (r"\varepsilon", "ε")):
        if symbol.startswith(latex):
            return character
    return symbol


def describe_sweep(result: Sweep) -> str:
    """Text of a sweep: the headline, every point, and the warnings about them."""
    standings = [one.standing for one in result.points if one.standing is not None]
    table = points_table(result)
    assert table is not None
    rows = [table.columns, *([cell.text for cell in row] for row in table.rows)]
    notices = (*warnings(standings, delta=result.delta), *remarks(standings))
    refused = [
        wrap(f"refused: {one.algorithm} at {', '.join(f'{k} = {v}' for k, v in one.over.items())}: {one.refused}")
        for one in result.points
        if one.refused
    ]
    notes = [wrap(f"{notice.title}. {notice.text}") for notice in notices]
    return "\n".join([wrap(result.headline), "", columns(rows), "", *_describe_slopes(result), *refused, *notes])


def _describe_slopes(result: Sweep) -> list[str]:
    """Lines about the fitted exponents; none if none were asked for."""
    table = slopes_table(result)
    if table is None:
        return []
    rows = [table.columns, *([cell.text for cell in row] for row in table.rows)]
    return [wrap(table.caption), wrapped_columns(rows), ""]
