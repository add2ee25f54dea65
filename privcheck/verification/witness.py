"""Lower bounds: two concrete neighbouring datasets and the exact loss between the two output distributions.

Pairs that procedures name have the exact laws of their outputs; losses are rounded down. The outputs of several
procedures and noisy statistics about one user are independent given the data, so that their losses add up: one pair for
all of them refutes a claim that forgets to compose them. Which pairs may be combined:

* A procedure that is priced for any scores, votes, queries or values of the stated sensitivity may be given the worst
  ones, whatever another procedure is given: both are functions of all the data of the user. Of monotone procedures of
  the same type, with scores that change in one direction only, the same pair is taken.
* For all others the user's data must be the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures import (
    AdaptiveSparseVector,
    GaussianNoisyMax,
    GaussianSparseVector,
    KnownPair,
    NoisyMax,
    NoisyVotes,
    PlanarLaplace,
    Procedure,
    RandomisedResponse,
    ScoredChoice,
    ShuffledRandomizer,
    SmoothNoise,
    SparseVector,
    UnaryEncoding,
)
from privcheck.declare.releases import Release, take_rows
from privcheck.declare.statistics import SparseDifference
from privcheck.pricing import Priced
from privcheck.terms.guarantees import ApproxDP
from privcheck.verification.candidates import UserPair, candidate_pairs
from privcheck.verification.findings import Witness
from privcheck.verification.neighbours import fault
from privcheck.verification.outcome_loss import (
    Part,
    largest_losses,
    mu_loss,
    pair_delta,
    pair_epsilon,
    pure_loss,
    renyi_loss,
    rho_loss,
)
from privcheck.verification.pair_loss import pair_loss, told_parts
from privcheck.verification.shuffled_loss import shuffled_epsilon
from privcheck.verification.units import LossUnit, order_of, unit_of

_ANY_DATA: Final = (
    NoisyMax, GaussianNoisyMax, ScoredChoice, SparseVector, AdaptiveSparseVector, GaussianSparseVector, NoisyVotes,
    RandomisedResponse, UnaryEncoding, PlanarLaplace, SmoothNoise, ShuffledRandomizer,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PricedPair:
    """A known pair of one procedure, or of several outputs together, with its loss.

    Attributes:
        names: Names of the outputs that it is seen in.
        users: The group that the user belongs to.
        words: Both neighbours in words.
        data: The data in D and in D′ that differs.
        loss: In the claim's unit, rounded down; 0 if no finite law is computed.
    """

    names: tuple[str, ...]
    users: str
    words: str
    data: tuple[Any, Any]
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """Outputs of the noisy statistics on one pair.

    Attributes:
        names: Names of the releases.
        data: The user's data in D and in D′.
        words: Both in words.
        parts: The exact laws of the outputs; empty if no law is computed.
    """

    names: tuple[str, ...]
    data: tuple[Any, Any]
    words: str
    parts: tuple[Part, ...]


def known_pairs(declaration: Declaration, values: Mapping[str, Fraction]) -> Iterator[PricedPair]:
    """Yield the pairs that releases name themselves, each with its loss."""
    for one in declaration.joined:
        for pair in one.pairs(declaration.relation, values):
            loss = _loss(declaration, values, _parts(pair))
            yield PricedPair(names=(one.name,), users=one.users, words=pair.words, data=pair.data, loss=loss)


def joint_pairs(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    group: str,
    shown: Sequence[Shown],
    alone: Sequence[PricedPair],
) -> Iterator[PricedPair]:
    """Yield pairs for two or more outputs together: those with the largest loss in each, by three measures.

    Args:
        declaration: The declaration under attack.
        values: Its parameters.
        group: Of the partition of the users.
        shown: Outputs of the noisy statistics on pairs of one user's data, if there are any.
        alone: All pairs of the procedures, each with its own loss, as `known_pairs` yields them.
    """
    known: list[tuple[Procedure, list[KnownPair]]] = []
    lost: list[list[float]] = []  # by each of these pairs alone
    for one in declaration.joined_for(group):
        priced = [pair.loss for pair in alone if pair.names == (one.name,)]
        kept = [both for both in zip(one.pairs(declaration.relation, values), priced, strict=True) if _parts(both[0])]
        if kept:
            known.append((one, [pair for pair, _ in kept]))
            lost.append([loss for _, loss in kept])
    if len(known) + bool(shown) < 2:
        return
    measures: tuple[Callable[[KnownPair], float], ...] = (
        lambda pair: largest_losses(_parts(pair)[0])[0],
        lambda pair: renyi_loss(*_parts(pair)[0], 1.0),
    )
    measured = [
        [[loss, *(measure(pair) for measure in measures)] for pair, loss in zip(pairs, losses, strict=True)]
        for (_, pairs), losses in zip(known, lost, strict=True)
    ]
    bound = [i for i, (one, _) in enumerate(known) if type(one) not in _ANY_DATA]
    anchors: list[Shown | None] = [*shown] or [None]
    if not shown and bound:
        pairs = known[bound[0]][1]
        best = {max(range(len(pairs)), key=lambda k, m=m: measured[bound[0]][k][m]) for m in range(1 + len(measures))}  # type: ignore[misc] # bound by default
        anchors = [Shown(names=(), data=pairs[k].data, words=pairs[k].words, parts=()) for k in sorted(best)]
    seen = set[tuple[int, ...]]()

    def lose(chosen: Sequence[int | None], anchor: Shown | None) -> PricedPair:
        taken = [(one.name, pairs[k]) for (one, pairs), k in zip(known, chosen, strict=True) if k is not None]
        return _together(declaration, values, group, taken, anchor)

    for number, anchor in enumerate(anchors):
        start: tuple[PricedPair, list[int | None]] | None = None
        for m in range(1 + len(measures)):
            chosen = _choose(known, measured, anchor, m)
            key = (number, *(-1 if k is None else k for k in chosen))
            if key in seen or sum(k is not None for k in chosen) + bool(anchor and anchor.parts) < 2:
                continue
            seen.add(key)
            found = lose(chosen, anchor)
            yield found
            if start is None or found.loss > start[0].loss:
                start = found, chosen
        if start is None or len(known) < 2:
            continue
        climbed = _climb(known, start[1], lambda chosen: lose(chosen, None).loss)
        if climbed != start[1]:
            yield lose(climbed, anchor)


def _climb(
    known: Sequence[tuple[Procedure, list[KnownPair]]], chosen: list[int | None],
    lose: Callable[[Sequence[int | None]], float],
) -> list[int | None]:  # fmt: skip
    """Improve the chosen pairs: vary each procedure's pair in turn, beside the chosen pairs of all others.

    No measure of a pair alone says which loses most beside the others, on a curve or in divergences. Only procedures
    that may be given any pair, whatever the others are given, are varied.
    """
    places: dict[object, list[int]] = {}  # of procedures that are handed the same pair: those whose scores move one way
    for i, (one, _) in enumerate(known):
        if type(one) in _ANY_DATA and chosen[i] is not None:
            places.setdefault(type(one) if getattr(one, "monotone", False) else i, []).append(i)
    most = lose(chosen) if places else 0.0
    for group in places.values():
        for k in range(min(len(known[i][1]) for i in group)):
            tried = [k if i in group else other for i, other in enumerate(chosen)]
            if (loss := lose(tried)) > most:
                most, chosen = loss, tried
    return chosen


def _choose(
    known: Sequence[tuple[Procedure, list[KnownPair]]], measured: Sequence[Sequence[Sequence[float]]],
    anchor: Shown | None, measure: int,
) -> list[int | None]:  # fmt: skip
    """Index of the pair chosen for each procedure; None for a procedure without a pair for that user's data."""
    chosen: list[int | None] = []
    one_way: dict[type, int] = {}
    for (one, pairs), sizes in zip(known, measured, strict=True):
        allowed = list(range(len(pairs)))
        if type(one) not in _ANY_DATA:
            assert anchor is not None
            by_words = not anchor.parts  # which say what all others are
            allowed = [
                k
                for k in allowed
                if _alike(pairs[k].data, anchor.data) and (not by_words or pairs[k].words == anchor.words)
            ]
        elif getattr(one, "monotone", False):
            if one_way and type(one) not in one_way:
                allowed = []  # another procedure's scores may have to move the other way
            elif type(one) in one_way:
                allowed = [k for k in allowed if k == one_way[type(one)]]
        best = max(allowed, key=lambda k, sizes=sizes: sizes[k][measure], default=None)  # type: ignore[misc] # as above
        if best is not None and getattr(one, "monotone", False):
            one_way.setdefault(type(one), best)
        chosen.append(best)
    return chosen


def _together(
    declaration: Declaration, values: Mapping[str, Fraction], group: str, taken: Sequence[tuple[str, KnownPair]],
    anchor: Shown | None,
) -> PricedPair:  # fmt: skip
    parts = [part for _, pair in taken for part in _parts(pair)]
    told = [f"{name}: {pair.words}" for name, pair in taken]
    names = tuple(name for name, _ in taken)
    data: tuple[Any, Any] = (_tell(taken, 0), _tell(taken, 1))
    if anchor is not None and anchor.parts:
        parts, names = [*anchor.parts, *parts], (*anchor.names, *names)
        told.insert(0, f"{', '.join(anchor.names)}: {anchor.words}")
        data = anchor.data
    loss = _loss(declaration, values, parts)
    return PricedPair(names=names, users=group, words="; ".join(told), data=data, loss=loss)


def _tell(taken: Sequence[tuple[str, KnownPair]], side: int) -> str:
    return "; ".join(f"{name}: {'nothing' if pair.data[side] is None else pair.data[side]}" for name, pair in taken)


def _parts(pair: KnownPair) -> tuple[Part, ...]:
    return () if pair.outcomes is None or pair.rounds == 0 else ((pair.outcomes, pair.rounds),)


def _loss(declaration: Declaration, values: Mapping[str, Fraction], parts: Sequence[Part]) -> float:
    if not parts:
        return 0.0
    (outcomes, rounds), *beside = parts
    unit, claim = unit_of(declaration, values), declaration.claim.guarantee
    if unit in _LOSSES:
        return _LOSSES[unit](outcomes, rounds, beside)
    if unit == "renyi":
        return renyi_loss(outcomes, rounds, order_of(declaration, values), beside)
    if unit == "delta":
        return pair_delta(outcomes, rounds, 0.0, beside)
    assert isinstance(claim, ApproxDP)
    return pair_epsilon(outcomes, rounds, claim.delta.number(values, rounding="up"), beside)


_LOSSES: Final[Mapping[LossUnit, Callable[..., float]]] = {"rho": rho_loss, "pure": pure_loss, "mu": mu_loss}


def _alike(one: Any, other: Any) -> bool:
    """Whether two pairs of data, or parts of them, are equal; data that cannot be compared counts as different."""
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and bool(one == other)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(_alike(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    try:
        return bool(np.array_equal(one, other))
    except (TypeError, ValueError):
        return False


_ROWS: Final = 3  # trajectories of a user that are compared before they are told as alike


def keep_undominated(
    releases: Sequence[Release], changed: Sequence[tuple[UserPair, Mapping[str, SparseDifference]]]
) -> list[tuple[UserPair, Mapping[str, SparseDifference]]]:
    """Leave out pairs behind shufflers that change no more counters than another pair, in every release and direction.

    Lemma fewer-counters: A pair that changes no more counters than another, in every release and direction, loses no
    more. Proof: counters of one release have one law, whatever the cell: the messages of the other pair without some of
    its counters are those of this one (post-processing).

    Of equal pairs the first is kept. All pairs are kept if a release is not shuffled, or a counter changes by more than
    one.

    Args:
        releases: The releases that hold the user.
        changed: Each pair with its change of each release.
    """
    bits = all(r.mechanism.law.shuffled for r in releases)
    if not bits or any((np.abs(m.change) != 1).any() for _, moved in changed for m in moved.values()):
        return list(changed)
    counts = np.array(
        [
            [n for r in releases for n in ((moved[r.name].change > 0).sum(), (moved[r.name].change < 0).sum())]
            for _, moved in changed
        ]
    )
    kept = []
    for i, one in enumerate(changed):
        least = (counts >= counts[i]).all(axis=1)  # those that change at least as much
        equal = (counts == counts[i]).all(axis=1)
        if not (least & ~equal).any() and not equal[:i].any():
            kept.append(one)
    return kept


def find_witness(
    declaration: Declaration, values: Mapping[str, Fraction], *, more: Sequence[UserPair] = ()
) -> Witness | None:
    """Find the worst of the extreme pairs for all releases together; None if no user can change anything.

    The pairs that the procedures know are tried too: an attacker may look at one of them alone, at several, or at
    procedures and noisy statistics together. The loss is that of one concrete pair (see `pair_loss` and `joint_pairs`),
    therefore a lower bound on the declaration's.

    Args:
        declaration: The declaration under attack.
        values: Its parameters.
        more: Pairs to try beside `candidate_pairs`; those that are not neighbours are left out.
    """
    return worst_witness(Priced(declaration, values), more)


def worst_witness(priced: Priced, more: Sequence[UserPair] = ()) -> Witness | None:
    """Same as `find_witness`, for a declaration that is priced already."""
    declaration, values = priced.declaration, priced.values
    best: Witness | None = None
    alone, together = list(known_pairs(declaration, values)), list[PricedPair]()
    for group in declaration.groups:
        releases = declaration.seen_by(group)
        allowed = (pair for pair in more if not fault(declaration.relation, releases, pair, values))
        worst: Witness | None = None
        pairs = itertools.chain(candidate_pairs(priced, group), allowed)
        changed = [(pair, {r.name: r.moved(pair, values) for r in releases}) for pair in pairs]
        for pair, moved in keep_undominated(releases, changed):
            loss = pair_loss(declaration, moved, values)
            if worst is None or loss > worst.loss:
                differences = {r.name: r.statistic.difference(r.one_contribution(pair)) for r in releases}
                changes = {name: (d.l1, d.l2_squared) for name, d in differences.items()}
                words = describe(pair) + _how(declaration, releases, moved, values)
                worst = Witness(pair=pair, loss=loss, changes=changes, words=words, group=group)
        if worst is not None and (best is None or worst.loss > best.loss):
            best = worst
        together += joint_pairs(declaration, values, group, _shown(declaration, worst, values), alone)
    for known in (*alone, *together):
        if best is None or known.loss > best.loss:
            words = known.words if len(known.names) > 1 else f"{known.words} ({known.names[0]})"
            best = Witness(pair=known.data, loss=known.loss, changes={}, words=words, group=known.users, by=known.names)
    return best if best is not None and best.loss > 0 else None


def _shown(declaration: Declaration, worst: Witness | None, values: Mapping[str, Fraction]) -> list[Shown]:
    """Outputs of the noisy statistics on the pair that is worst for them, if there are procedures besides."""
    if worst is None or not worst.loss > 0:
        return []
    noisy = declaration.seen_by(worst.group)
    if len(noisy) == len(declaration.joined_for(worst.group)):
        return []
    moved = {r.name: r.moved(worst.pair, values) for r in noisy}
    parts = told_parts(declaration, moved, values)
    return [Shown(names=tuple(moved), data=worst.pair, words=worst.words, parts=parts)] if parts else []


def _how(
    declaration: Declaration,
    releases: Sequence[Release],
    moved: Mapping[str, SparseDifference],
    values: Mapping[str, Fraction],
) -> str:
    """Messages that distinguish the two, in words; empty if not applicable."""
    claim = declaration.claim.guarantee
    if unit_of(declaration, values) != "epsilon" or not isinstance(claim, ApproxDP):
        return ""
    words = shuffled_epsilon(releases, moved, values, claim.delta.number(values, rounding="up"))[1]
    return f"; {words}" if words else ""


def describe(pair: UserPair) -> str:
    """The user's data on both sides in words, run-length coded."""
    tabular = any(isinstance(user, Trajectories | Regressors) for user in pair)
    first, second = ("nothing" if user is None and not tabular else _user(user) for user in pair)
    return f"in D the user has {first}; in D′ {second}; all other users are the same"


def _user(user: Any) -> str:
    if user is None:
        return "no trajectory"
    if isinstance(user, Regressors):
        return _tell_regressors(user)
    if not isinstance(user, Trajectories):
        return str(user)
    if user.users > 1:
        return _tell_rows(user.users, [_user(user.user(i)) for i in range(min(user.users, _ROWS))])
    cells = list(zip(user.states[0, :-1].tolist(), user.actions[0].tolist(), user.rewards[0].tolist(), strict=True))
    parts, start = [], 0
    for step in range(1, len(cells) + 1):
        if step == len(cells) or cells[step] != cells[start]:
            steps = f"step {step}" if step == start + 1 else f"steps {start + 1}–{step}"
            state, action, reward = cells[start]
            parts.append(f"(state {state}, action {action}, reward {reward:g}) at {steps}")
            start = step
    shown = parts if len(parts) <= 4 else [*parts[:3], "…"]
    return ", ".join(shown) + f", then state {user.states[0, -1]}"


def _tell_rows(number: int, rows: Sequence[str]) -> str:
    """Several trajectories of one user in words; the given rows are usually equal."""
    if len(set(rows)) == 1:
        return f"{number} trajectories, each {rows[0]}"
    return f"{number} trajectories: {'; '.join(rows[:2])}" + ("; …" if number > 2 else "")


def _tell_regressors(user: Regressors) -> str:
    """First two coordinates of the vectors, the targets and the weights at step 1, in words."""
    if user.users > 1:
        return _tell_rows(
            user.users, [_tell_regressors(take_rows(user, slice(i, i + 1))) for i in range(min(user.users, _ROWS))]
        )
    columns = []
    for name, column in user.vectors.items():
        shown = ", ".join(f"{x:.4g}" for x in column[0, 0, :2])
        columns.append(f"{name} = ({shown}{', 0, …' if column.shape[2] > 2 else ''})")
    columns += [f"{name} = {column[0, 0]:.4g}" for name, column in (*user.targets.items(), *user.weights.items())]
    return (
        f"at step 1 {', '.join(columns)}, and so on for {user.horizon} steps"
        if user.horizon > 1
        else ", ".join(columns)
    )
