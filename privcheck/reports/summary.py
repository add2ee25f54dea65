"""Summary of a report in words: the verdict, the key figures, curves, warnings and learned values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from privcheck.reports import audit_wording
from privcheck.reports.values import Audited, Audits, Ran, RanOnline, Regret, Report, Verified
from privcheck.reports.wording import (
    Rounding,
    agree,
    as_sentence,
    capitalise,
    figure,
    percent,
    say_certificate,
    say_holds,
    say_origin,
    say_ratios,
    say_statements,
    spell_out,
    value_of,
    words,
)

_MOST = 0.5  # of the uniform policy's gap: more than most is left
_FAR = 700.0  # nats; beyond this e^ε overflows


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCurve:
    """δ as a function of ε, ascending in ε; δ may be 0."""

    epsilon: tuple[float, ...]
    delta: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Data of the privacy plot: three curves, each of which may be missing, and δ with the two bounds on ε at it."""

    claim: DrawnCurve | None
    upper: DrawnCurve | None
    lower: DrawnCurve | None
    delta: float | None
    epsilon_upper: float | None
    epsilon_lower: float | None

    @property
    def curves(self) -> tuple[DrawnCurve, ...]:
        """The curves that exist."""
        return tuple(curve for curve in (self.claim, self.upper, self.lower) if curve is not None)


def privacy(report: Report) -> Privacy:
    """The curves and bounds in a report."""
    audit, guarantee = report.audit, report.budget.guarantee if report.budget else None
    views = [] if audit is None else [view for view in (audit, *audit.views.values()) if _here(report, view)]
    below: object = next((curve for view in views if (curve := view.evidence.get("curve"))), None)
    above = report.budget.curve if report.budget else None
    delta = guarantee.delta if guarantee else audit.delta if audit else None
    upper = guarantee.epsilon if guarantee else None
    same = audit is not None and audit.delta == delta and _here(report, audit)
    return Privacy(
        claim=_curve(above.epsilon, above.delta_claim) if above else None,
        upper=_curve(above.epsilon, above.delta_upper) if above else None,
        lower=_curve(below.get("epsilon"), below.get("delta_lower")) if isinstance(below, Mapping) else None,
        delta=delta,
        epsilon_upper=audit.epsilon_upper if upper is None and audit else upper,
        epsilon_lower=audit.epsilon_lower if audit and same else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PureBar:
    """ε at δ = 0 of one side.

    Attributes:
        text: What it is.
        epsilon: ε in nats; ∞ where no finite ε is known.
        side: The claim, a bound from above or from below.
    """

    text: str
    epsilon: float
    side: Literal["claim", "upper", "lower"]

    @property
    def number(self) -> str:
        """ε in digits, rounded in the safe direction."""
        safe: Rounding = "down" if self.side == "lower" else "up"
        return "∞" if math.isinf(self.epsilon) else figure(self.epsilon, rounding=safe)


def pure_bars(report: Report) -> tuple[PureBar, ...]:
    """ε of a pure claim, of the accountant, of the worst known pair and of the audit; empty for other claims."""
    audit, total, claim = report.audit, report.budget.guarantee if report.budget else None, claimed_epsilon(report)
    if total is None or claim is None or claim[1]:
        return ()
    claimed = claim[0]
    upper = math.inf if total.pure_epsilon is None else total.pure_epsilon
    bars = [PureBar(text="claimed", epsilon=claimed, side="claim")]
    bars.append(PureBar(text="accountant: at most", epsilon=upper, side="upper"))
    if report.verify is not None and math.isfinite(report.verify.lower_ratio) and report.verify.lower_ratio > 0:
        pair = report.verify.lower_ratio * claimed
        bars.append(PureBar(text="worst known pair: at least", epsilon=pair, side="lower"))
    if audit is not None and audit.epsilon_lower is not None and not audit.delta and _here(report, audit):
        bars.append(PureBar(text="audit: at least", epsilon=audit.epsilon_lower, side="lower"))
    return tuple(bars)


def claimed_epsilon(report: Report) -> tuple[float, float] | None:
    """ε that the claim allows, and the δ at which it does, 0 for a pure claim; None if no finite ε follows."""
    audit, curve = report.audit, report.budget.curve if report.budget else None
    if audit is not None and audit.epsilon_claimed is not None:
        return audit.epsilon_claimed, audit.delta
    return None if curve is None or curve.claimed is None else (curve.claimed, curve.claimed_at)


def _here(report: Report, view: Audited) -> bool:
    """Whether an audit is about the parameters of the report's accountant."""
    return report.budget is None or not view.evidence.get("audited_at")


def _curve(epsilon: object, delta: object) -> DrawnCurve | None:
    """The curve through the report's valid points; None if there are fewer than two, or all δ are 0."""
    if not isinstance(epsilon, list | tuple) or not isinstance(delta, list | tuple):
        return None
    pairs = []
    for x, y in zip(map(value_of, epsilon), map(value_of, delta), strict=False):
        if x is not None and y is not None and math.isfinite(x) and 0 <= y <= 1:
            pairs.append((x, y))
    pairs.sort()
    if len(pairs) < 2 or not any(y > 0 for _, y in pairs):
        return None
    return DrawnCurve(epsilon=tuple(x for x, _ in pairs), delta=tuple(y for _, y in pairs))


def find_crossing(data: Privacy) -> float | None:
    """An ε at which the audit's δ exceeds the accountant's, or None.

    Between the accountant's points the chord in e^ε bounds the true δ: a hockey-stick divergence is convex in e^ε (it
    is not in ε), so a δ above the chord contradicts the accountant wherever its points lie.
    """
    if data.lower is None or data.upper is None:
        return None
    for epsilon, delta in zip(data.lower.epsilon, data.lower.delta, strict=True):
        chord = _chord(data.upper, epsilon)
        if chord is not None and delta > chord * (1 + 1e-9):
            return epsilon
    return None


def _chord(curve: DrawnCurve, x: float) -> float | None:
    points = zip(curve.epsilon, curve.delta, strict=True)
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x0 <= x <= x1:
            far = not 0 < x1 - x0 < _FAR
            return max(y0, y1) if far else y0 + (y1 - y0) * math.expm1(x - x0) / math.expm1(x1 - x0)
    return None


Tone = Literal["good", "bad", "open", "mark", "plain"]
Role = Literal["private", "twin", "reference"]


NOTHING_LEARNED = "Nothing was learned"  # title of a notice
LOSS_AT_MOST, PRESET = "Loss at most", "Preset"  # labels of figures
_METHODS = {
    "proved": "symbolically, for all parameters",
    "checked": "numerically, at the parameters above",
    "given": "by the accountant, provided that the author's statements are true",
    "witness": "by two neighbouring datasets whose exact privacy loss was computed",
}
_REASONS = {  # of a claim that fails, by the code of a finding
    "wrong-relation": "the noise is sized for another neighbouring relation than the claim's",
    "noise-shared": "several values share one draw of noise",
    "message-as-sum": "the noise of all users is counted for the message of one",
    "tree-levels": "the proof counts fewer nodes of the tree for one user than there are",
    "release-uncounted": "the proof leaves out one of the releases",
    "release-repeated": "a release is made more often than the proof charges it",
    "epsilon-sum": "the budgets of the releases add up to more than the claim",
    "stated-sensitivity-refuted": "one user can change a statistic by more than is stated",
    "assumption-violated": "the paper's own data break a bound that its proof assumes",
    "joint-precondition": "actions depend on other users' data outside the billboard",
}
_JOINT = {
    "follows": "Joint differential privacy follows by the billboard lemma.",
    "unproved": (
        "Joint differential privacy, which is deduced from it by the billboard lemma, is unproved: that the premise is "
        "false does not show that the conclusion is."
    ),
    "refuted": "Joint differential privacy is refuted: an audit of the other users' actions exceeds the claim.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict in words.

    Attributes:
        headline: The verdict in two or three words.
        tone: Tone that determines its colour.
        how: How it was reached.
        claim: The claim, spelled out; empty if unknown.
        ratios: Cost over claim; empty if unknown.
        sentence: The verdict's own sentence.
        repair: The smallest change that makes a failing claim true or removes the slack; empty if there is none.
        joint: What follows for joint DP; empty if joint DP is not claimed.
        why: The steps of the proof that are wrong, in plain words; empty if none is known.
        statements: Verdict on each printed statement; empty if none applies to this system.
        origin: Origin of the judged text; empty if unknown.
        meaning: What the verdict of an audit alone does not mean; empty for other verdicts.
        certificate: What the independent checker said of the verdict's certificate; empty where none is made.
    """

    headline: str
    tone: Tone
    how: str
    claim: str
    ratios: str
    sentence: str
    repair: str
    joint: str
    why: str = ""
    statements: str = ""
    origin: str = ""
    meaning: str = ""
    certificate: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A key figure beside the verdict."""

    label: str
    value: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A warning or remark to read before using a figure of the report."""

    tone: Tone
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """The value of one policy.

    Attributes:
        name: Name of the policy.
        value: Its true expected return, or its regret.
        std: Standard deviation over replicates; None for a single value.
        role: Policy of the agent, of its non-private twin, or a known policy.
    """

    name: str
    value: float
    std: float | None
    role: Role


def verdict(report: Report) -> Verdict:
    """The verdict in words; a report without one says so, which is never a pass, nor is one that an audit refutes."""
    said, accused = _verdict_alone(report), _name_accused(report)
    if not accused or said.tone == "bad":
        return said
    views = dict(accused)
    code = any(view.agent_ran is not False for view in views.values())
    headline = "The theorem holds, the running code breaks it" if code else "The theorem holds, an audit contradicts it"
    return replace(
        said,
        headline=headline if said.tone == "good" else f"{said.headline}; an audit found a violation",
        tone="bad",
        sentence=" ".join(part for part in (audit_wording.sentences(dict(audit_views(report))), said.sentence) if part),
        repair="" if said.tone == "good" else said.repair,  # of the declaration, which is right
        meaning=audit_wording.explain_limits(views),
    )


def _name_accused(report: Report) -> tuple[tuple[str, Audited], ...]:
    """The views with a violation at the report's own parameters."""
    return tuple(
        (name, view) for name, view in audit_views(report) if view.verdict == "violation" and _here(report, view)
    )


def _verdict_alone(report: Report) -> Verdict:
    """The verdict without the audits beside it."""
    own, verify = report.verdict or report.verify, report.verify
    if own is None and report.audit is not None:
        return _audit_verdict(report.audit)
    if own is None and report.run is not None:
        return _run_verdict(report.run)
    kind, method = ("", "") if own is None else (own.verdict, own.method)
    tones: dict[str, Tone] = {"holds": "good", "fails": "bad"}
    headline = {"holds": "Holds", "fails": "Fails", "undecided": "Undecided"}.get(kind, "No verdict")
    if kind == "holds" and method in {"proved", "checked"}:
        headline = capitalise(say_holds(method, own.given if own else ()))
    return Verdict(
        headline=headline,
        tone=tones.get(kind, "open"),
        how=_METHODS.get("given" if own and own.given and kind == "holds" else method, method),
        claim=spell_out(verify.claim if verify else report.show.claim if report.show else ""),
        ratios=_ratios(kind, verify) if verify else "",
        sentence="" if own is None else agree(report, own.sentence),
        why=_why(verify) if verify and kind == "fails" else "",
        repair=as_sentence(agree(report, verify.repair)) if verify else "",
        joint=_JOINT[verify.joint] if verify and verify.joint else "",
        statements=say_statements(verify.statements) if verify else "",
        origin=say_origin(verify.origin) if verify and verify.origin else "",
        certificate=say_certificate(verify.certificate, name=report.algorithm or "")
        if verify and verify.certificate
        else "",
    )


def _why(verify: Verified) -> str:
    """The critical findings about steps of the proof, in plain words; empty if none has a plain reason."""
    found = (_REASONS.get(item.code) for item in verify.findings if item.severity == "critical")
    reasons = list(dict.fromkeys(reason for reason in found if reason))
    return f"Why: {'; '.join(reasons)}." if reasons else ""


def _run_verdict(run: Ran | RanOnline) -> Verdict:
    """Verdict of a run alone, which judges no claim."""
    sentence = f"A run judges no claim and tests no code: `privcheck check {run.algorithm}` does."
    if run.ledger is not None and run.ledger.noise.startswith("release") and run.ledger.protects is not False:
        sentence = f"Its noise was drawn for a release, at the cost below. {sentence}"
    return Verdict(
        headline="Not judged", tone="open", how="", claim="", ratios="", sentence=sentence, repair="", joint=""
    )


def _audit_verdict(audit: Audits) -> Verdict:
    """The verdict of audits alone: never a pass."""
    views = dict(_order_views(audit))
    word = audit_wording.verdict_word(views)
    tones: dict[str, Tone] = {"Violation": "bad", "Consistent": "plain"}
    return Verdict(
        headline=audit_wording.headline(views),
        tone="open" if audit_wording.name_refuted_elsewhere(views) else tones.get(word, "open"),
        how="",
        claim=spell_out(audit.claim),
        ratios="",
        sentence=audit_wording.sentences(views),
        repair="",
        joint="",
        meaning=audit_wording.explain_limits(views) if word != "No verdict" else "",
    )


def _ratios(kind: str, verify: Verified) -> str:
    above, below = say_ratios(verify)
    below = below if verify.lower_ratio else ""
    if above == below:
        return f"exactly {above}" if verify.upper_ratio == verify.lower_ratio else above
    at_most, at_least = f"at most {above}", below and f"at least {below}"
    first, second = (at_least, at_most) if kind == "fails" else (at_most, at_least)
    return ", ".join(part for part in (first, second) if part)


def figures(report: Report) -> tuple[KeyFigure, ...]:
    """The key figures that exist: claim, bounds, protected unit, learned value and preset."""
    made = (
        _claim(report), _upper(report), _lower(report), _protected(report), _value(report), _preset(report),
    )  # fmt: skip
    return tuple(item for item in made if item is not None)


def at_delta(delta: float) -> str:
    """Text "at δ = …", or "pure, δ = 0" for δ = 0."""
    return "pure, δ = 0" if delta == 0 else f"at δ = {figure(delta)}"


def _claim(report: Report) -> KeyFigure | None:
    claim = claimed_epsilon(report)
    if claim is None:
        return None
    note = at_delta(claim[1])
    if report.verify is not None and "zCDP" in report.verify.claim:
        note += ", which the claimed zCDP implies for any noise"
    return KeyFigure(label="Claimed", value=f"ε = {figure(claim[0], rounding='up')}", note=note)


def _upper(report: Report) -> KeyFigure | None:
    candidates: list[tuple[float | None, float, str]] = []
    if report.budget is not None:
        guarantee = report.budget.guarantee
        candidates += [(guarantee.epsilon, guarantee.delta, ""), (guarantee.pure_epsilon, 0, "")]
    if report.audit is not None:
        elsewhere = "" if report.budget else words(report.audit.evidence, "audited_at")
        candidates.append((report.audit.epsilon_upper, report.audit.delta, elsewhere))
    for epsilon, delta, elsewhere in candidates:
        if epsilon is not None:
            parts = (at_delta(delta), "accountant", f"at {elsewhere}" if elsewhere else "")
            note = ", ".join(part for part in parts if part)
            return KeyFigure(label=LOSS_AT_MOST, value=f"ε ≤ {figure(epsilon, rounding='up')}", note=note)
    return None


def _lower(report: Report) -> KeyFigure | None:
    audit = report.audit
    if audit is None or audit.epsilon_lower is None:
        return None
    what = "audit of the declared releases, no agent ran" if audit.agent_ran is False else "audit"
    parts = [at_delta(audit.delta), f"{what}, {percent(audit.confidence, rounding='down')} confidence"]
    if audit.reachable is not None:
        parts.append(f"expected {figure(audit.reachable, rounding='down')}")
    if elsewhere := words(audit.evidence, "audited_at"):
        parts.append(f"at {elsewhere}")
    note = ", ".join(parts)
    for name, view in audit_views(report):
        if view.agent_ran and audit.agent_ran is False and view.epsilon_lower is not None:
            at = audit_wording.audited_at(view)
            note += f"; view “{name}”, of the running agent: ε ≥ {figure(view.epsilon_lower, rounding='down')}"
            note += f" at {at}" if at else ""
    return KeyFigure(label="Loss at least", value=f"ε ≥ {figure(audit.epsilon_lower, rounding='down')}", note=note)


def _protected(report: Report) -> KeyFigure | None:
    """The users of a table and the cost to one of them; None for simulated users."""
    run = report.run
    if run is None or run.unit is None or not run.unit.of_table:
        return None
    spent = [] if run.spent is None or run.spent.rho is None else [f"ρ = {figure(run.spent.rho, rounding='up')} spent"]
    several = f"up to {run.unit.trajectories} trajectories" if run.unit.trajectories > 1 else "1 trajectory"
    note = "; ".join([*spent, several, f"stated by: {run.unit.stated_by}"])
    return KeyFigure(label="Protected", value=f"one {run.unit.who}", note=note)


def _value(report: Report) -> KeyFigure | None:
    policies = rank_policies(report)
    mine = [item for item in policies if item.role == "private"]
    if not mine:
        return _estimate(report)
    others = [item for item in policies if item.role == "twin" or item.name == "optimum"]
    share = _share_of_uniform(report)
    lost = "regret of uniform play" if isinstance(report.run, RanOnline) else "gap from uniform play to the optimum"
    said = [] if share is None else [f"{percent(share)} of the {lost} is left"]
    note = ", ".join([*(f"{item.name} {figure(item.value)}" for item in others), *said])
    spread = "" if mine[0].std is None else f" ± {figure(mine[0].std, digits=2)}"
    quantity = "Regret" if name_quantity(report) == "regret" else "Value learned"
    return KeyFigure(label=quantity, value=figure(mine[0].value) + spread, note=note)


def _estimate(report: Report) -> KeyFigure | None:
    """The agent's own estimate, for runs with an unknown true value."""
    if not isinstance(report.run, Ran):
        return None
    claimed = report.run.value.claimed
    if claimed is None or not math.isfinite(claimed):
        return None
    seen = "the exact data" if report.run.ledger is None else "the noisy releases"
    note = f"pessimistic, from {seen}; no lower bound, and the true value is unknown"
    return KeyFigure(label="Agent's own estimate", value=figure(claimed), note=note)


def _preset(report: Report) -> KeyFigure | None:
    used = None if report.run is None else report.run.preset
    if used is None:
        return None
    return KeyFigure(label=PRESET, value=used.name, note=used.note)


def _share_of_uniform(report: Report) -> float | None:
    if isinstance(report.run, RanOnline):
        return report.run.regret.share_of_uniform
    return None if report.run is None else report.run.gap.share_of_uniform


def name_quantity(report: Report) -> str:
    """The quantity that the run reports: "regret" for online agents, otherwise "value"."""
    return "regret" if isinstance(report.run, RanOnline) else "value"


def rank_policies(report: Report) -> tuple[PolicyValue, ...]:
    """The finite values of the learned policy and its references, the best first."""
    run = report.run
    if run is None:
        return ()
    part = run.regret if isinstance(run, RanOnline) else run.value
    entries: list[tuple[str, float | None, float | None, Role]] = [
        (run.algorithm, part.mean, part.std, "private"),
        ("without noise", part.baseline, None, "twin"),
    ]
    if isinstance(part, Regret):
        learned_nothing = {"uniform": part.uniform, "myopic": part.myopic, "prior-only": part.prior_only}
        entries += [(name, value, None, "reference") for name, value in learned_nothing.items()]
        entries.append(("largest possible", part.maximum, None, "reference"))
    else:
        entries += [(name, value, None, "reference") for name, value in part.references.items()]
    if isinstance(part, Regret) or not part.references.keys() & {"optimum", "optimal"}:
        entries.append(("optimum", part.optimal, None, "reference"))
    kept = [
        PolicyValue(name=name, value=value, std=std, role=role)
        for name, value, std, role in entries
        if value is not None and math.isfinite(value)
    ]
    sign = 1 if isinstance(part, Regret) else -1
    return tuple(sorted(kept, key=lambda item: sign * item.value))


def audit_views(report: Report) -> tuple[tuple[str, Audited], ...]:
    """The audits by view, in the order of a report."""
    return () if report.audit is None else _order_views(report.audit)


def _order_views(audit: Audits) -> tuple[tuple[str, Audited], ...]:
    return tuple({audit.view: audit, **audit.views}.items())


def notices(report: Report) -> tuple[Notice, ...]:
    """The notices of a report: contradictions, nothing learned, curves that cross, agent not run, noise, remarks.

    Last come the run's own remarks and its note on its values (`run.value.note`).
    """
    contradictions = [notice for name, view in audit_views(report) for notice in _contradictions(report, name, view)]
    return (
        *contradictions,
        *_warn_of_nothing_learned(report),
        *_tell_of_twin(report),
        *_warn_of_crossing(report),
        *_warn_of_declared_only(report),
        *_noise(report),
        *_remarks(report),
    )


def _warn_of_nothing_learned(report: Report) -> Iterator[Notice]:
    """Yield why a run learned nothing, and what to try."""
    if report.run is not None and report.run.did_not_learn is not None:
        text = f"{report.run.algorithm} {report.run.did_not_learn.words}."
        yield Notice(tone="open", title=NOTHING_LEARNED, text=text)


def _tell_of_twin(report: Report) -> Iterator[Notice]:
    """Yield that the gap to the optimum is not the price of privacy, where most of it is left without noise too."""
    run, share = report.run, _share_of_uniform(report)
    if not isinstance(run, Ran) or run.did_not_learn is not None or share is None or share <= _MOST:
        return
    mine, twin, best = run.value.mean, run.value.baseline, run.value.optimal
    if mine is not None and twin is not None and best is not None and twin <= mine:
        text = (
            f"Without noise the same agent reaches {figure(twin)} on the same data, and {figure(mine)} with it: noise "
            f"is not what separates it from the optimum ({figure(best)})."
        )
        yield Notice(tone="plain", title="Privacy is not what limits this policy", text=text)


def _contradictions(report: Report, name: str, view: Audited) -> Iterator[Notice]:
    """Yield the contradictions between an audit and the rest of the report."""
    judged = "" if report.verify is None else report.verify.verdict
    if view.verdict == "violation" and (judged == "fails" or (judged and not _here(report, view))):
        against = ""  # at the report's own parameters the verdict itself says so
        if judged == "fails" and not view.agent_ran:
            against = ": the declared releases lose more than the claim, as the verdict says. No agent ran in it"
        elif elsewhere := words(view.evidence, "audited_at"):
            against = f", at {elsewhere}"
            against += "; at the parameters above the claim was found to hold" if judged == "holds" else ""
        text = f"The audit of the view “{name}” found a violation{against}."
        yield Notice(tone="bad", title="Audit: violation", text=text)
    if isinstance(first := view.evidence.get("first_run"), Mapping):
        lower = first.get("epsilon_lower")
        more = f" (ε ≥ {figure(lower, rounding='down')})" if isinstance(lower, float) else ""
        accused = view.verdict == "violation"
        told = "confirms it" if accused else "does not confirm it, and is the one that counts"
        text = (
            f"In the view “{name}” a first run, with seed {first.get('seed')}, contradicted the accountant{more}. A "
            f"second one, with draws of its own (seed {view.seed}), {told}. At confidence {view.confidence:g} each, "
            f"both accuse an honest release with probability {(1 - view.confidence) ** 2:.1g}."
        )
        yield Notice(tone="bad" if accused else "plain", title="An audit was run twice", text=text)
    if at := words(view.evidence, "violation_at"):
        text = f"The audit of the view “{name}” refutes the claim at {at}, but not at the requested parameters."
        yield Notice(tone="bad", title="Audit: violation at other parameters", text=text)
    lower, upper = view.epsilon_lower, view.epsilon_upper
    if lower is not None and upper is not None and lower > upper:
        text = (
            f"In the view “{name}” the audit's lower bound ε ≥ {figure(lower, rounding='down')} exceeds the "
            f"accountant's upper bound ε ≤ {figure(upper, rounding='up')}. One of them is wrong, or the running code "
            f"differs from its declaration{_or_by_chance(view)}."
        )
        yield Notice(tone="bad", title="The two bounds contradict each other", text=text)


def _or_by_chance(view: Audited) -> str:
    chance = (1 - view.confidence) ** (2 if "first_run" in view.evidence else 1)
    return f"; or chance did it, which has probability {chance:.1g} at most: another --seed tells" if chance else ""


def _warn_of_crossing(report: Report) -> Iterator[Notice]:
    epsilon = find_crossing(privacy(report))
    if epsilon is not None:
        text = f"At ε = {figure(epsilon)} the audit's lower bound on δ exceeds the accountant's upper bound."
        yield Notice(tone="bad", title="The two curves contradict each other", text=text)


def _warn_of_declared_only(report: Report) -> Iterator[Notice]:
    """Yield a notice that the audits are about the declaration alone, if no view ran the agent."""
    if audit_wording.agent_not_run(dict(audit_views(report))):
        text = (
            "The audit tested the declared releases, drawn by privcheck's own channel. It does not show that running "
            "code draws this noise, or that it releases nothing else."
        )
        yield Notice(tone="open", title="No agent was run", text=text)


def _noise(report: Report) -> Iterator[Notice]:
    ledger = None if report.run is None else report.run.ledger
    if ledger is None:
        return
    drawn = ledger.protects if ledger.as_declared is None else ledger.as_declared  # older reports know one of the two
    if drawn is False or ledger.noise.startswith("none"):
        text = "The run published exact statistics. Nothing in it is private, whatever the claim says."
        yield Notice(tone="bad", title="No noise was drawn", text=text)
    elif ledger.noise.startswith("simulated"):
        text = (
            "The run drew seeded floating-point noise, which is right for simulations and audits and wrong for a "
            "release: anyone with the seed can remove the noise, and floating-point outputs distinguish neighbours."
        )
        yield Notice(tone="open", title="Simulated noise: not for release", text=text)
    elif ledger.noise.startswith("release") and report.budget is not None:
        text = (
            "Verdict, budget, least noise and ledger are those of the discrete noise that was drawn; sensitivities and "
            "standard deviations of statistics other than counts are in units of their rounding grid. The formulas and "
            "the audits are those of the declared noise."
        )
        yield Notice(tone="plain", title="Release noise is discrete", text=text)
    elif not ledger.noise:
        text = "The ledger does not say where its noise came from; treat the run's outputs as not private."
        yield Notice(tone="open", title="Noise source not recorded", text=text)


def _remarks(report: Report) -> Iterator[Notice]:
    """Yield the agent's remarks about its run, and the note on its values."""
    if isinstance(report.run, Ran):
        for remark in report.run.remarks:
            yield Notice(tone="open", title=remark.title, text=remark.text)
        if report.run.value.note:
            yield Notice(tone="open", title="How to read the learned value", text=report.run.value.note)
