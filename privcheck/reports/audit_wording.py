"""Wording of an audit's verdict and of its limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from privcheck.reports.values import Audited
from privcheck.reports.wording import figure, percent, value_of, words

_CHARGES = "the accountant charges"

Word = Literal["Violation", "Consistent", "No verdict"]


def verdict_word(views: Mapping[str, Audited]) -> Word:
    """Joint verdict of several views: a violation if any found one, consistent only if all are."""
    verdicts = {view.verdict for view in views.values()}
    return "Violation" if "violation" in verdicts else "Consistent" if verdicts == {"consistent"} else "No verdict"


def name_refuted_elsewhere(views: Mapping[str, Audited]) -> str:
    """Other parameters at which the claim is refuted, if it is not refuted at the requested ones; else empty."""
    if verdict_word(views) == "Violation":
        return ""
    return next((at for view in views.values() if (at := words(view.evidence, "violation_at"))), "")


def audited_at(view: Audited) -> str:
    """The parameters of an audit, or its instance, where they are not those of the report; else empty."""
    return words(view.evidence, "audited_at") or words(view.evidence, "instance")


def agent_not_run(views: Mapping[str, Audited]) -> bool:
    """Whether no view ran the agent, so that only the declaration was audited."""
    return bool(views) and all(view.agent_ran is False for view in views.values())


def headline(views: Mapping[str, Audited]) -> str:
    """The joint verdict of several views, with other parameters and a missing agent mentioned."""
    said: str = verdict_word(views)
    if at := name_refuted_elsewhere(views):
        said += f"; violation at {at}"
    elif len(views) == 1 and (at := words(next(iter(views.values())).evidence, "audited_at")):
        said += f" at {at}"
    return f"{said}; no agent was run" if agent_not_run(views) else said


def sentences(views: Mapping[str, Audited]) -> str:
    """The results of all views; for several views only the violations, since the page has each view's own words."""
    if len(views) == 1:
        return " ".join(sentence(name, view) for name, view in views.items())
    accused = {name: view for name, view in views.items() if view.verdict == "violation"}
    if not accused:
        return f"None of {len(views)} audits refuted anything: {', '.join(views)}."
    said = [f"In the view “{name}”: {sentence(name, view)}" for name, view in accused.items()]
    others = [name for name in views if name not in accused]
    return " ".join(said) + (f" The other views refuted nothing: {', '.join(others)}." if others else "")


def sentence(name: str, view: Audited) -> str:
    """The result of one view, in a sentence or two."""
    if name == "lockstep":
        return _lockstep(view)
    if name == "noise":
        return _noise(view)
    said = {"violation": _violation, "undecided": _say_nothing_found}.get(view.verdict, _consistent)(view)
    return said + _elsewhere(view) + _early_end(view)


def _say_nothing_found(view: Audited) -> str:
    """Text for an audit without a result."""
    if words(view.evidence, "audited_at") and view.epsilon_lower:
        return f"Nothing was audited at the requested parameters. {_violation(view)}"
    return (
        f"With {figure(view.trials)} runs under each neighbour the audit is inconclusive: with so few runs, even a "
        f"mechanism that reveals nothing may look like one that reveals everything. Increase the number of runs "
        f"(--trials)."
    )


def _elsewhere(view: Audited) -> str:
    """The finding at parameters other than the requested ones, which the verdict does not cover; else empty."""
    evidence = view.evidence
    if not (at := words(evidence, "violation_at")):
        return ""
    meaning = words(evidence, "violation_meaning")
    told = f": {meaning}" if meaning else ""
    return f" At {at} the claim is refuted{told}; the verdict is about the requested parameters."


def explain_limits(views: Mapping[str, Audited]) -> str:
    """What the verdict does not mean."""
    accused = [view for view in views.values() if view.verdict == "violation"]
    if not accused:
        left = [view.leaves_open for view in views.values() if view.leaves_open]
        said = "This does not show that the mechanism is private, only that it was not refuted here."
        return f"{said} {left[0]}" if left else said
    if all(view.view == "lockstep" for view in accused):
        return "This is exact: it was computed on two concrete neighbours and involves no chance."
    joint = [view for view in accused if view.claim.startswith("joint") and view.view == "releases"]
    rests = (
        " This refutes the claim about the releases, a premise of the proof of joint DP: joint DP is then unproved, "
        "but not refuted."
    )
    least = min(view.confidence for view in accused if view.view != "lockstep")
    return (
        f"The false-positive rate is at most {percent(1 - least, rounding='up')}, over "
        f"everything that the audit tried. The true loss may be larger than the bound.{rests if joint else ''}"
    )


def _loss(view: Audited) -> str:
    delta = view.delta
    at = "" if not delta else f" at δ = {figure(delta)}"
    return f"ε = {figure(view.epsilon_lower, rounding='down')}{at}"


def _bound(view: Audited) -> str:
    lower = view.epsilon_lower
    if lower is not None and math.isinf(lower):
        return f"no finite ε holds{_loss(view).removeprefix('ε = ∞')}: the loss is unbounded"
    return f"the loss is at least {_loss(view)}"


def _limits(view: Audited) -> dict[str, str]:
    """The ε of the claim and of the accountant, as far as known, as text."""
    said = {"the claim allows": view.epsilon_claimed, _CHARGES: view.epsilon_upper}
    return {who: f"ε = {figure(limit, rounding='up')}" for who, limit in said.items() if limit is not None}


def _in_rho(view: Audited) -> str:
    """The audit's finding about ρ-zCDP, in words; empty if it bounds no ρ."""
    evidence = view.evidence
    if value_of(evidence.get("rho_upper")) is None:  # of the divergence; the Gaussian curve bounds ε
        return ""
    least, limits = figure(evidence.get("rho_lower"), rounding="down"), []
    for name, words_of in (("rho_claimed", "the claim allows"), ("rho_upper", _CHARGES)):
        limits.append(f"{words_of} ρ = {figure(evidence.get(name), rounding='up')}")
    return f"the releases are ρ-zCDP for no ρ below {least}; {'; '.join(limits)}"


def _early_end(view: Audited) -> str:
    evidence = view.evidence
    if words(evidence, "ended") != "stopped":
        return ""
    runs, most = figure(evidence.get("runs")), figure(evidence.get("most_runs"))
    return f" The audit stopped as soon as this was decided, after {runs} of at most {most} runs."


def _violation(view: Audited) -> str:
    lower = view.epsilon_lower
    level = percent(view.confidence, rounding="down")
    if lower is None:
        refuted = words(view.evidence, "refuted")
        if rho := _in_rho(view):
            return f"With {level} confidence {rho}. This refutes the {refuted}."
        return f"With {level} confidence the audit refutes the {refuted or 'claim'}; see the figures below."
    kept = _limits(view)
    limits = {"the claim allows": view.epsilon_claimed, _CHARGES: view.epsilon_upper}
    above = [who for who, limit in limits.items() if (at := value_of(limit)) is not None and lower > at]
    told = " and than ".join(f"{who} ({kept[who]})" for who in above)
    said = f"With {level} confidence {_bound(view)}" + (f", more than {told}." if told else ".")
    if not told:
        said += f" As for ρ, {rho}." if (rho := _in_rho(view)) else ""
        return f"{said} This refutes the {words(view.evidence, 'refuted') or 'claim'}."
    if _CHARGES in above:
        return f"{said} The running code differs from its declaration, or the accountant is wrong."
    if _CHARGES not in kept:
        declared = view.view != "black box"  # a function declares nothing
        return f"{said} The accountant has no finite bound for the declaration." if declared else said
    return f"{said} The code may well match its declaration, for which the accountant charges {kept[_CHARGES]}."


def _consistent(view: Audited) -> str:
    level = percent(view.confidence, rounding="down")
    runs = figure(view.trials)
    if view.epsilon_lower is None:
        rho = _in_rho(view)
        at = f" With {level} confidence and {runs} runs under each neighbour {rho}." if rho else ""
        return f"The audit refuted nothing.{at}"
    limits = "".join(f"; {who} {limit}" for who, limit in _limits(view).items())
    said = f"The audit refuted nothing. With {level} confidence and {runs} runs under each neighbour the loss is at "
    said += f"least {_loss(view)}{limits}."
    reachable = view.reachable
    if reachable is not None:
        test = "The best test of all releases" if view.view == "policy" else "The best test"
        said += f" {test} was expected to certify {figure(reachable, rounding='down')} with as many runs."
    return said


def _lockstep(view: Audited) -> str:
    evidence = view.evidence
    pairs, policies = figure(view.trials), evidence.get("policies")
    if value_of(evidence.get("departures")):
        return (
            f"With the same billboard, a change in one user's data changed the agent's policy, or other figures that "
            f"it returned, {figure(evidence.get('departures'))} times of {figure(policies)}: the agent sees more than "
            f"the releases, and the billboard lemma does not apply to it."
        )
    if view.verdict == "consistent":
        also = words(evidence, "compared")
        alike = f" With the same billboard, all {figure(policies)} policies were identical, bit for bit"
        alike += f"; compared: {also}." if also else "."
        return (
            f"On none of {pairs} pairs of neighbours did the user move a release further than the charged sensitivity."
            f"{alike if policies else ''}"
        )
    if view.verdict == "undecided":
        return f"Part of the agent's output could not be compared: {words(evidence, 'doubt')}."
    norm = words(evidence, "norm")
    norm = {"l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞", "step": "ℓ₂ at one step"}.get(norm, norm)
    if value_of(evidence.get("moved")) is None:
        return (
            f"D and D′ did not release the same slices of “{words(evidence, 'release')}”: this alone distinguishes "
            f"them."
        )
    return (
        f"One user moved “{words(evidence, 'release')}” by {figure(evidence.get('moved'), rounding='down')} in {norm}, "
        f"above the charged sensitivity of {figure(evidence.get('charged'), rounding='up')}: every guarantee that "
        f"depends on it is void."
    )


def _noise(view: Audited) -> str:
    evidence = view.evidence
    if view.verdict == "consistent":
        tests = figure(evidence.get("tests"))
        return f"None of {tests} tests found noise of an undeclared law or scale, or noise used twice."
    return f"The noise differs from its declaration: {words(evidence, 'refuted') or view.witness}."
