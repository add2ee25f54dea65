"""What a report says first, in words: the verdict, the figures beside it, the warnings, the values learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from privcheck.reports import audited
from privcheck.reports.curves import crossing, privacy
from privcheck.reports.wording import capital, figure, percent, ratio, rows, section, spelled, value_of, words

Tone = Literal["good", "bad", "open", "mark", "plain"]
Role = Literal["private", "twin", "reference"]

VIEW_ORDER = ("releases", "lockstep", "noise", "policy")

_METHODS = {
    "proved": "symbolically, for all parameters",
    "checked": "numerically, at the parameters above",
    "witness": "by two neighbouring datasets whose exact privacy loss was computed",
}
_JOINT = {
    "follows": "Joint differential privacy follows by the billboard lemma.",
    "unproved": "Joint differential privacy is unproved: the billboard lemma has nothing to stand on, and it goes one "
    "way only.",
    "refuted": "Joint differential privacy is refuted: an audit of the other users' actions exceeds the claim.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict in words.

    Attributes:
        headline: In two or three words.
        tone: For its colour.
        how: How it was reached.
        claim: What was claimed, spelled out; empty where nobody says.
        ratios: Cost over claim; empty where unknown.
        sentence: The verdict's own sentence.
        repair: The least change that makes a failing claim true or takes the slack out; empty where there is none.
        joint: What follows for joint DP; empty where nothing of the kind is claimed.
        meaning: What the verdict of an audit alone does not mean; empty for other verdicts.
    """

    headline: str
    tone: Tone
    how: str
    claim: str
    ratios: str
    sentence: str
    repair: str
    joint: str
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One of the few figures beside the verdict."""

    label: str
    value: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something a reader must know before using a figure of the report."""

    tone: Tone
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The value of one policy.

    Attributes:
        name: Whose policy.
        value: Its true expected return (or the regret).
        std: Over replicates; None for a single value.
        role: The audited agent's, its non-private twin's, or a known policy's.
    """

    name: str
    value: float
    std: float | None
    role: Role


def verdict(report: Mapping[str, Any]) -> Verdict:
    """Returns the verdict in words; without one it says so, which is never a pass."""
    own, verify = section(report, "verdict"), section(report, "verify")
    if not own and not verify and section(report, "audit"):
        return _audit_verdict(report)
    kind = words(own, "verdict") or words(verify, "verdict")
    method = words(own, "method") or words(verify, "method")
    tones: dict[str, Tone] = {"holds": "good", "fails": "bad"}
    headline = {"holds": "Holds", "fails": "Fails", "undecided": "Undecided"}.get(kind, "No verdict")
    if kind == "holds" and method in {"proved", "checked"}:
        headline = f"{headline}, {method}" + (", given what is stated" if verify.get("given") else "")
    claim = words(verify, "claim") or words(section(report, "show"), "claim")
    return Verdict(
        headline=headline,
        tone=tones.get(kind, "open"),
        how=_METHODS.get(method, method),
        claim=spelled(claim),
        ratios=_ratios(kind, verify),
        sentence=words(own, "sentence") or words(verify, "sentence"),
        repair=_as_sentence(words(verify, "repair")),
        joint=_JOINT.get(words(verify, "joint"), ""),
    )


def _audit_verdict(report: Mapping[str, Any]) -> Verdict:
    """Returns the verdict of audits alone: never a pass."""
    views = dict(audit_views(report))
    headline = audited.headline(views)
    tones: dict[str, Tone] = {"Violation": "bad", "Consistent": "plain"}
    word = headline.split(";")[0].split(" at ")[0]
    return Verdict(
        headline=headline,
        tone="open" if ";" in headline else tones.get(word, "open"),
        how="",
        claim=spelled(words(section(report, "audit"), "claim")),
        ratios="",
        sentence=audited.sentences(views),
        repair="",
        joint="",
        meaning=audited.meaning(views) if word != "No verdict" else "",
    )


def _as_sentence(text: str) -> str:
    return capital(text) + "." if text and not text.endswith(".") else capital(text)


def _ratios(kind: str, verify: Mapping[str, Any]) -> str:
    upper, lower = value_of(verify.get("upper_ratio")), value_of(verify.get("lower_ratio"))
    above = "" if upper is None else ratio(upper, rounding="up")
    below = "" if not lower else ratio(lower, rounding="down")
    if above and above == below:
        return f"exactly {above}" if upper == lower else above
    at_most, at_least = above and f"at most {above}", below and f"at least {below}"
    first, second = (at_least, at_most) if kind == "fails" else (at_most, at_least)
    return ", ".join(part for part in (first, second) if part)


def figures(report: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Returns claim, upper bound, lower bound and learned value, as far as they are there."""
    found = (_claimed(report), _upper(report), _lower(report), _value(report))
    return tuple(item for item in found if item is not None)


def at_delta(delta: object) -> str:
    """Returns "at δ = …", or "pure" for δ = 0, or nothing where no δ is given."""
    number = value_of(delta)
    return "" if number is None else "pure, δ = 0" if number == 0 else f"at δ = {figure(number)}"


def _claimed(report: Mapping[str, Any]) -> Figure | None:
    audit = section(report, "audit")
    if audit.get("epsilon_claimed") is None:
        return None
    epsilon = figure(audit["epsilon_claimed"], rounding="up")
    return Figure(label="Claimed", value=f"ε = {epsilon}", note=at_delta(audit.get("delta")))


def _upper(report: Mapping[str, Any]) -> Figure | None:
    guarantee, audit = section(report, "budget", "guarantee"), section(report, "audit")
    candidates = (
        (guarantee.get("epsilon"), guarantee.get("delta")),
        (guarantee.get("pure_epsilon"), 0),
        (audit.get("epsilon_upper"), audit.get("delta")),
    )
    for epsilon, delta in candidates:
        if epsilon is not None:
            elsewhere = "" if guarantee else words(section(audit, "evidence"), "audited_at")
            parts = (at_delta(delta), "accountant", f"at {elsewhere}" if elsewhere else "")
            note = ", ".join(part for part in parts if part)
            return Figure(label="Loss at most", value=f"ε ≤ {figure(epsilon, rounding='up')}", note=note)
    return None


def _lower(report: Mapping[str, Any]) -> Figure | None:
    audit = section(report, "audit")
    if audit.get("epsilon_lower") is None:
        return None
    parts = [at_delta(audit.get("delta"))]
    confidence = value_of(audit.get("confidence"))
    parts.append("audit" if confidence is None else f"audit, {percent(confidence, rounding='down')} confidence")
    if audit.get("reachable") is not None:
        parts.append(f"expected {figure(audit['reachable'], rounding='down')}")
    if elsewhere := words(section(audit, "evidence"), "audited_at"):
        parts.append(f"at {elsewhere}")
    value = f"ε ≥ {figure(audit['epsilon_lower'], rounding='down')}"
    return Figure(label="Loss at least", value=value, note=", ".join(part for part in parts if part))


def _value(report: Mapping[str, Any]) -> Figure | None:
    policies = learned(report)
    mine = [item for item in policies if item.role == "private"]
    if not mine:
        return None
    others = [item for item in policies if item.role == "twin" or item.name == "optimum"]
    note = ", ".join(f"{item.name} {figure(item.value)}" for item in others)
    spread = "" if mine[0].std is None else f" ± {figure(mine[0].std, digits=2, rounding='up')}"
    quantity = "Regret" if learned_quantity(report) == "regret" else "Value learned"
    return Figure(label=quantity, value=figure(mine[0].value) + spread, note=note)


def learned_quantity(report: Mapping[str, Any]) -> str:
    """Returns "regret" where the run reports one, otherwise "value"."""
    return "regret" if section(report, "run", "regret") and not section(report, "run", "value") else "value"


def learned(report: Mapping[str, Any]) -> tuple[Learned, ...]:
    """Returns the learned policy's value and those it is compared with, the best first; only finite ones."""
    run = section(report, "run")
    part = section(run, learned_quantity(report))
    references = {**section(run, "references"), **section(part, "references")}
    name = words(run, "algorithm") or words(report, "algorithm") or "learned"
    entries: list[tuple[str, object, object, Role]] = [
        (name, part.get("mean"), part.get("std"), "private"),
        ("without noise", part.get("baseline"), None, "twin"),
        *((str(name), value, None, "reference") for name, value in references.items()),
    ]
    if learned_quantity(report) == "regret":
        entries.append(("the most there could be", part.get("maximum"), None, "reference"))
    if not references.keys() & {"optimum", "optimal"}:
        entries.append(("optimum", part.get("optimal"), None, "reference"))
    kept = []
    for name, value, std, role in entries:
        number, spread = value_of(value), value_of(std)
        if number is not None and abs(number) != float("inf"):
            kept.append(Learned(name=name, value=number, std=spread, role=role))
    sign = 1 if learned_quantity(report) == "regret" else -1
    return tuple(sorted(kept, key=lambda item: sign * item.value))


def audit_views(report: Mapping[str, Any]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Returns the audits by view, in the order of a report."""
    audit = section(report, "audit")
    views = {name: section(audit, "views", name) for name in section(audit, "views")}
    found = {name: view for name, view in views.items() if view}
    if words(audit, "verdict"):
        found = {words(audit, "view") or "releases": audit} | found
    order = {name: rank for rank, name in enumerate(VIEW_ORDER)}
    return tuple(sorted(found.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


def notices(report: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Returns what a reader must know: contradictions first, then noise that protects nobody, then noisy learning.

    Last, what the run itself says about its figures (`run.value.note`).
    """
    return (*_contradictions(report), *_noise(report), *_remarks(report))


def _contradictions(report: Mapping[str, Any]) -> list[Notice]:
    found = []
    holds = verdict(report).tone == "good"
    for name, view in audit_views(report):
        if words(view, "verdict") == "violation" and section(report, "verify"):
            against = ", although the claim was found to hold: the running code is not what was declared"
            if name == "releases" and (elsewhere := words(section(view, "evidence"), "audited_at")):
                against = f", at {elsewhere}; at the parameters above the claim was found to hold"
            text = f"The audit of the view “{name}” found a violation{against if holds else ''}."
            found.append(Notice(tone="bad", title="Audit: violation", text=text))
        if at := words(section(view, "evidence"), "violation_at"):
            text = f"The audit of the view “{name}” refutes the claim at {at}, and not at the parameters asked for."
            found.append(Notice(tone="bad", title="Audit: violation at other parameters", text=text))
        lower, upper = value_of(view.get("epsilon_lower")), value_of(view.get("epsilon_upper"))
        if lower is not None and upper is not None and lower > upper:
            text = (
                f"In the view “{name}” the audit's lower bound ε ≥ {figure(lower, rounding='down')} exceeds the "
                f"accountant's upper bound ε ≤ {figure(upper, rounding='up')}. One of them is wrong, or the running "
                "code does not do what was declared."
            )
            found.append(Notice(tone="bad", title="The two bounds contradict each other", text=text))
    epsilon = crossing(privacy(report))
    if epsilon is not None:
        text = f"At ε = {figure(epsilon)} the audit's lower bound on δ exceeds the accountant's upper bound."
        found.append(Notice(tone="bad", title="The two curves contradict each other", text=text))
    return found


def _noise(report: Mapping[str, Any]) -> list[Notice]:
    ledger = section(report, "run", "ledger")
    noise = words(ledger, "noise")
    if not ledger:
        return []
    if ledger.get("protects") is False or noise.startswith("none"):
        text = "The run published exact statistics. Nothing in it is private, whatever the claim says."
        return [Notice(tone="bad", title="No noise was drawn", text=text)]
    if noise.startswith("simulated"):
        text = (
            "The run drew seeded floating-point noise, which is right for simulations and audits and wrong for a "
            "release: whoever has the seed can take the noise off, and floating-point outputs tell neighbours apart."
        )
        return [Notice(tone="open", title="Simulated noise: not for release", text=text)]
    if not noise:
        text = "The ledger does not say where its noise came from; treat the run's outputs as not private."
        return [Notice(tone="open", title="Noise source not recorded", text=text)]
    return []


def _remarks(report: Mapping[str, Any]) -> list[Notice]:
    """Returns what the agent says about its run, and what goes with the data it learned from."""
    run = section(report, "run")
    said = [(words(remark, "title"), words(remark, "text")) for remark in rows(run, "remarks")]
    note = words(section(run, "value"), "note")
    said += [("How to read the learned value", note)] if note else []
    return [Notice(tone="open", title=title, text=text) for title, text in said]
