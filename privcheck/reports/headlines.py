"""What a comparison says first: who learned at which guarantee, and why the others did not, from their runs alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from privcheck.reports.values import PricedClaim, Standing
from privcheck.reports.wording import capitalise, figure, percent

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
        worth = _join([_say_worth(one) for one in learned])
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


def say_guarantee(guarantee: PricedClaim, delta: float) -> str:
    """Returns a guarantee in a comparison's unit.

    Args:
        guarantee: The algorithm's.
        delta: The comparison's.
    """
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
