"""What a comparison says first: who learned at which guarantee, and why the others did not, from their runs alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from privcheck.reports.values import PricedClaim, Standing, SweepPoint
from privcheck.reports.wording import capitalise, figure, percent, spell_out

_VIEWS = {
    "joint": "-JDP", "releases": "-DP of releases", "local": "-LDP",
    "shuffle": "-DP behind a shuffler", "central": "-DP",
}  # fmt: skip
_REASONS = {  # of one agent, of several
    "bonus": (", because its bonus exceeds what can be earned", ", because their bonus exceeds what can be earned"),
    "penalty": (
        ", because its penalty exceeds what can be earned",
        ", because their penalty exceeds what can be earned",
    ),
    "unchanged": (", because its policy never changed", ", because their policies never changed"),
    "noise": (
        ", because of its noise: without it the same constants learn",
        ", because of their noise: without it the same constants learn",
    ),
    "unknown": (
        ": its last policies are worth no more than uniformly random ones",
        ": their last policies are worth no more than uniformly random ones",
    ),
}
_SPREAD = 2.0  # standard errors of a difference: closer values are called equal


def headline(standings: Sequence[Standing], *, delta: float) -> str:
    """Returns who learned at which guarantee and why the others did not, in a sentence or two.

    Args:
        standings: Of the algorithms, in one environment.
        delta: At which δ their ε are.
    """
    known = [one for one in standings if one.value is not None]
    if not known:
        return "What these policies are worth nobody knows: on users' own data there is no true value to compare."
    private = [one for one in known if one.guarantee is not None]
    plain = [one for one in known if one.guarantee is None]
    said = [_say_group(private, delta=delta, private=True)] if private else []
    if plain:
        said.append(_say_group(plain, delta=delta, private=False, after=bool(private)))
    names = tuple(one.algorithm for one in known)  # as users type them, at the start of a sentence too
    return " ".join(one if one.startswith(names) else capitalise(one) for one in said)


def sweep_headline(points: Sequence[SweepPoint], *, over: Sequence[str], budgets: Sequence[str], delta: float) -> str:
    """Returns who learned from which guarantee on, and why the others did not, in a sentence or two.

    Where the grid has other parameters than those of guarantees, that is said of their last setting.

    Args:
        points: All of a sweep.
        over: The swept parameters.
        budgets: Those of them that are part of a guarantee.
        delta: At which δ every ε is.
    """
    others = [name for name in over if name not in budgets]
    settings = list_settings(points, others)
    last = settings[-1] if settings else {}
    here = [one.standing for one in points if one.standing is not None and is_at(one, last)]
    where = f"At {', '.join(f'{spell_out(name)} = {value}' for name, value in last.items())}: " if last else ""
    return f"{where}{_say_courses(here, delta=delta)}"


def list_settings(points: Sequence[SweepPoint], names: Sequence[str]) -> list[dict[str, str]]:
    """Returns the values that the points have of these parameters, of those points that have the most of them."""
    found = [{name: one.over[name] for name in names if name in one.over} for one in points if not one.refused]
    most = max((len(one) for one in found), default=0)
    return list({tuple(one.items()): one for one in found if len(one) == most and most}.values())


def is_at(point: SweepPoint, setting: Mapping[str, str]) -> bool:
    """Returns whether a point is at a setting, as far as it knows the parameters."""
    return all(point.over.get(name, value) == value for name, value in setting.items())


def _say_courses(standings: Sequence[Standing], *, delta: float) -> str:
    """Returns what becomes of each private algorithm as its ε grows, then what is reached without privacy."""
    known = [one for one in standings if one.value is not None]
    courses: dict[str, list[Standing]] = {}
    for one in sorted(known, key=lambda one: math.inf if (e := _epsilon(one)) is None else e):
        courses.setdefault(one.algorithm, []).append(one)
    if all(len(course) == 1 for course in courses.values()):
        return headline(standings, delta=delta)
    private = [course for course in courses.values() if course[0].guarantee is not None]
    private.sort(key=lambda course: -max(one.value or 0.0 for one in course))
    plain = [one for one in known if one.guarantee is None]
    said = "; ".join(_say_course(course, delta=delta) for course in private)
    return f"{said}. {headline(plain, delta=delta)}" if plain else f"{said}."


def _epsilon(one: Standing) -> float | None:
    return None if one.guarantee is None else one.guarantee.epsilon


def _say_course(course: Sequence[Standing], *, delta: float) -> str:
    """Returns from which guarantee on an algorithm learns, and how far it gets."""
    learned = [one for one in course if one.did_not_learn is None]
    name, last = course[0].algorithm, course[-1]
    if not learned:
        return f"{name} learned nothing up to {say_guarantee(last.guarantee, delta)}{_reason(last)}"
    first, end = learned[0], learned[-1]
    if len(learned) == len(course):
        more = "" if end is first else f" and {_say_worth(end, brief=True)}{_at(end.guarantee, delta)}"
        return f"{name} reaches {_say_worth(first)}{_at(first.guarantee, delta)}{more}"
    if list(course[-len(learned) :]) == learned:
        reached = f"{name} learns from {say_guarantee(first.guarantee, delta)} on ({_say_worth(first)}"
        more = "" if end is first else f", {_say_worth(end, brief=True)}{_at(end.guarantee, delta)}"
        return f"{reached}{more})"
    best = max(learned, key=lambda one: one.value or 0.0)
    reached = f"{_say_worth(best)}{_at(best.guarantee, delta)}"
    return f"{name} learned at {len(learned)} of {len(course)} points, at best {reached}"


def _reason(one: Standing) -> str:
    return "" if one.did_not_learn is None else _REASONS[one.did_not_learn.cause][0]


def _say_group(group: Sequence[Standing], *, delta: float, private: bool, after: bool = False) -> str:
    learned = sorted((one for one in group if one.did_not_learn is None), key=lambda one: -(one.value or 0.0))
    failed = [one for one in group if one.did_not_learn is not None]
    without = "without privacy, " if not private else ""
    if not learned:
        return f"{without}{_say_failed(failed, delta=delta, others=False, all_of=len(group) > 1 and not after)}."
    reached = f"{without}{_say_learned(learned, delta=delta)}"
    return f"{reached}; {_say_failed(failed, delta=delta, others=True, all_of=False)}." if failed else f"{reached}."


def _say_learned(learned: Sequence[Standing], *, delta: float) -> str:
    best = learned[0]
    if len(learned) > 1 and all(_are_equal(best, other) for other in learned[1:]):
        names = _join([one.algorithm for one in learned])
        shares = all(one.share is not None for one in learned)
        worth = _join([_say_worth(one, brief=shares) for one in learned]) + (" of the optimum" if shares else "")
        where = [say_guarantee(one.guarantee, delta) for one in learned if one.guarantee is not None]
        levels = f", at {_join(where)}" if where else ""
        return f"{names} do equally well within the spread over seeds: {worth}{levels}"
    first = f"{best.algorithm} reaches {_say_worth(best)}{_at(best.guarantee, delta)}"
    others = [f"{one.algorithm} {_say_worth(one, brief=True)}{_at(one.guarantee, delta)}" for one in learned[1:]]
    return ", ".join([first, *others])


def _say_worth(one: Standing, *, brief: bool = False) -> str:
    if one.share is None:
        return f"a value of {figure(one.value)}"
    return percent(one.share, rounding="down") + ("" if brief else " of the optimum")


def _at(guarantee: PricedClaim | None, delta: float) -> str:
    return "" if guarantee is None else f" at {say_guarantee(guarantee, delta)}"


def say_guarantee(guarantee: PricedClaim | None, delta: float) -> str:
    """Returns a guarantee in a comparison's unit.

    Args:
        guarantee: The algorithm's; None of one that is not private.
        delta: The comparison's.
    """
    if guarantee is None:
        return "no privacy"
    if guarantee.epsilon is None:
        return f"no finite ε (δ = {figure(delta)})"
    epsilon = figure(guarantee.epsilon, digits=3, rounding="up")
    return f"({epsilon}, {figure(delta)}){_VIEWS[guarantee.view]}"


def _say_failed(failed: Sequence[Standing], *, delta: float, others: bool, all_of: bool) -> str:
    """Returns who learned nothing and why; those of one reason together."""
    causes = [one.did_not_learn.cause for one in failed if one.did_not_learn is not None]
    if len(set(causes)) == 1 and (others or all_of) and len(failed) > 1:
        who = "the others" if others else f"none of the {len(failed)} agents"
        return f"{who} learned {'nothing' if others else 'anything'}{_REASONS[causes[0]][1]}"
    parts = []
    for cause, some in groupby(sorted(zip(causes, failed, strict=True), key=lambda p: p[0]), key=lambda p: p[0]):
        group = [one for _, one in some]
        at = _at(group[0].guarantee, delta) if len(group) == 1 and not others else ""
        parts.append(f"{_join([one.algorithm for one in group])} learned nothing{at}{_REASONS[cause][len(group) > 1]}")
    return "; ".join(parts)


def _are_equal(one: Standing, other: Standing) -> bool:
    """Returns whether two values are closer than two standard errors of their difference."""
    assert one.value is not None
    assert other.value is not None
    if one.std is None or other.std is None:
        return one.value == other.value
    error = math.sqrt(one.std**2 / one.replicates + other.std**2 / other.replicates)
    return abs(one.value - other.value) <= _SPREAD * error


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
