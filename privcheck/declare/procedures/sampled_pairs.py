"""Neighbours that a sampled round distinguishes: the user's data in D and in D′, and the data of all others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from privcheck.declare.mechanisms import GaussianNoise, Noise, lacks
from privcheck.declare.procedures.base import Array, KnownPair, Sampler
from privcheck.declare.procedures.capped_samples import MOST_KEPT, CappedRounds
from privcheck.declare.procedures.mixtures import Mixture, SampledRounds
from privcheck.declare.procedures.sample_laws import OneSampleRounds, SampledNumbers, SampledSelection
from privcheck.declare.procedures.sampling_costs import OneSample, alone
from privcheck.declare.procedures.shuffled_epochs import ShuffledEpoch, ShuffledEpochRuns
from privcheck.declare.relations import (
    LARGEST,
    LONGEST,
    AddRemoveOne,
    Relation,
    ReplaceOne,
    extreme_pairs,
    most_trajectories,
    replaced,
    zeroed_out,
)
from privcheck.declare.schedules import BallsInBins, Placed, Poisson, Sampling, WithoutReplacement
from privcheck.declare.statistics.base import SparseDifference
from privcheck.declare.statistics.sensitivities import tabular_sizes

if TYPE_CHECKING:
    from privcheck.declare.releases import Release

_SAME: Final = 12  # digits from which two numbers are one
_COPIES: Final = 500  # of one user in a batch, beyond which no law is written out
_RAREST: Final = -700.0  # ln of a probability below which no double holds it
_FLAT: Final = 1e-9  # relative, across a line on which two users are taken to be
_ENTRIES: Final = 4096  # of a table with Laplace noise that are looked at, those that move furthest
_MOVES: Final = 24  # ways in which they move that are told apart
_PLANAR: Final = 4  # … where a number tells of the users of D and of D′

User = tuple[Any, ...]  # one user's data, as each release takes it; None where they contribute nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """One user's data in D and in D′, and the data of all others.

    Attributes:
        first: The user's data in D; None if the user is absent or contributes nothing.
        second: The user's data in D′; the same.
        others: Data of every other user; None if they contribute nothing, or there are no others.
    """

    first: User
    second: User
    others: User


def sampled_pairs(of: OneSample, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
    """Users that a round distinguishes, with the laws in D and in D′ of the observed numbers, up to cells.

    Observed are, for Gaussian noise, one number, the coordinate of all outputs along f(D) − f(D′), and in further
    pairs, if a round contains the user at most once, the two coordinates of the plane of both users' contributions; for
    Laplace noise the entries with the largest changes; for selections everything selected. The contribution of all
    others is subtracted from each number.
    """
    sampling, rounds = of.sampling, int(of.sampling.times.number(values))
    weights = () if isinstance(sampling, Placed) else _weights(sampling, values)
    if not rounds or len(weights) == 1:
        return ()
    looked = tuple(
        one for one in of.releases if not lacks(type(one.mechanism.at(values).coordinates()), "cdf", "log_ratio")
    )
    several = len(looked) > 1 and not all(one.mechanism.law.gaussian for one in looked)
    if isinstance(sampling, Placed) and several:  # no law of several places together is written out
        return tuple(pair for one in looked for pair in sampled_pairs(alone(one), relation, values))
    known, seen = list[KnownPair](), set[tuple[float, ...]]()
    options = itertools.product(_neighbours(looked, sampling, relation, values), (1, 2) if len(weights) == 2 else (1,))
    for neighbours, axes in options:
        moved = _moved_numbers(looked, neighbours, relation, values, several=len(weights) == 2, axes=axes)
        key = tuple(round(shift / one.noise.scale, _SAME) for one in moved for shift in (*one.shifts, one.count))
        if not moved or key in seen:
            continue
        seen.add(key)
        words, data = _words(looked, neighbours, relation), (_told(neighbours.first), _told(neighbours.second))
        if isinstance(sampling, Placed):
            epoch = ShuffledEpoch(
                noise=moved[0].noise, batches=int(sampling.batches.number(values)), shifts=moved[0].shifts
            )
            runs: Sampler = ShuffledEpochRuns(epoch=epoch, epochs=rounds)
            laws = [(f"{words}; {told}", outcomes) for told, outcomes in epoch.outcomes()]
            known += [KnownPair(words=told, data=data, outcomes=law, rounds=rounds, sampler=runs) for told, law in laws]
        elif [one.count for one in moved] == [1] and not of.selections:
            mixture = Mixture(noise=moved[0].noise, weights=weights, shifts=moved[0].shifts)
            runs, law = SampledRounds(mixture=mixture, rounds=rounds), mixture.outcomes()
            known.append(KnownPair(words=words, data=data, outcomes=law, rounds=rounds, sampler=runs))
        else:
            for chosen in _chosen_together(of, relation, values, in_first=any(x is not None for x in neighbours.first)):
                known.append(_one_pair(moved, chosen, words, data, rate=weights[1], rounds=rounds))
    if isinstance(sampling, Poisson) and sampling.most is not None:
        known += _capped_pairs(looked, sampling, relation, values)
    if not known:  # selections alone
        for in_first in (True, False):
            here = f"the user is in {'D' if in_first else 'D′'} and in its sample with probability {weights[1]:.6g}"
            for chosen in _chosen_together(of, relation, values, in_first=in_first) if of.selections else ():
                data = chosen[0].data if in_first else chosen[0].data[::-1]
                known.append(_one_pair((), chosen, here, data, rate=weights[1], rounds=rounds))
    return tuple(known)


def _capped_pairs(
    looked: Sequence[Release], sampling: Poisson, relation: Relation, values: Mapping[str, Fraction]
) -> Iterator[KnownPair]:
    """Yield pairs for a capped sample with a user who takes the place of others, all of whom are alike."""
    assert sampling.most is not None
    assert sampling.users is not None
    users, most = int(sampling.users.number(values)), int(sampling.most.number(values))
    if not 1 <= most < users or most > MOST_KEPT or not looked:
        return
    nobody = (None,) * len(looked)
    swapped = isinstance(relation, ReplaceOne)
    seen = set[tuple[float, ...]]()
    for one, two in _extreme(looked, relation if swapped else replaced(relation), values):
        for first, second in ((one, two), (two, one)) if swapped else ((one, nobody), (nobody, one)):
            for others in (two, one, nobody):
                rows = np.concatenate(
                    [
                        _contributions(looked[i], (first[i], second[i], others[i]), zeroed_out(relation))
                        / looked[i].mechanism.at(values).coordinates().scale
                        for i in range(len(looked))
                    ],
                    axis=1,
                )
                key = tuple(np.round(rows @ rows.T, _SAME).ravel().tolist())
                if not (rows[0] - rows[1]).any() or key in seen:
                    continue
                seen.add(key)
                there = not isinstance(relation, AddRemoveOne)
                neighbours = Neighbours(first=first, second=second, others=others)
                runs = CappedRounds(
                    rate=sampling.rate.number(values), users=users, most=most, contributions=rows,
                    present=(there or first is not nobody, there or second is not nobody),
                    rounds=int(sampling.times.number(values)),
                )  # fmt: skip
                yield KnownPair(
                    words=_words(looked, neighbours, relation), data=(_told(first), _told(second)),
                    outcomes=runs.outcomes(), rounds=runs.rounds, sampler=runs,
                )  # fmt: skip


def _one_pair(
    moved: tuple[SampledNumbers, ...],
    chosen: tuple[SampledSelection, ...],
    words: str,
    data: tuple[Any, Any],
    *,
    rate: float,
    rounds: int,
) -> KnownPair:
    """Pair for which several outputs of one sample are observed together."""
    runs = OneSampleRounds(rate=rate, moved=moved, chosen=chosen, rounds=rounds)
    return KnownPair(
        words="; ".join((*(one.words for one in chosen), words)),
        data=data,
        outcomes=runs.outcomes(),
        rounds=rounds,
        sampler=None if any(one.sampler is None for one in chosen) else runs,
    )


def _chosen_together(
    of: OneSample, relation: Relation, values: Mapping[str, Fraction], *, in_first: bool
) -> Iterator[tuple[SampledSelection, ...]]:
    """Yield neighbours of all selections at once; if there are several, or sums too, the costliest of each."""
    each = []
    for selection in of.selections:
        pairs = [pair for pair in selection.pairs(relation, values) if pair.outcomes is not None and pair.rounds]
        if len(of.selections) + len(of.releases) > 1:
            pairs = _worst(pairs)
        chosen = [
            SampledSelection(
                words=pair.words, data=pair.data, outcomes=pair.outcomes, queries=pair.rounds, sampler=pair.sampler,
                in_first=in_first,
            )
            for pair in pairs
            if pair.outcomes is not None
        ]  # fmt: skip
        if chosen:
            each.append(chosen)
    return itertools.product(*each)


def _worst(pairs: Sequence[KnownPair]) -> list[KnownPair]:
    """Select the pair with the largest loss, that with the smallest, and that with the largest average loss."""
    worst = dict[int, KnownPair]()
    for of in (_highest, _lowest, _average):
        best = max(pairs, key=of, default=None)
        if best is not None:
            worst[id(best)] = best
    return list(worst.values())


def _highest(pair: KnownPair) -> float:
    assert pair.outcomes is not None
    return float((pair.outcomes.log_p - pair.outcomes.log_q).max())


def _lowest(pair: KnownPair) -> float:
    assert pair.outcomes is not None
    return float((pair.outcomes.log_q - pair.outcomes.log_p).max())


def _average(pair: KnownPair) -> float:
    assert pair.outcomes is not None
    return float((np.exp(pair.outcomes.log_p) * (pair.outcomes.log_p - pair.outcomes.log_q)).sum())


def _weights(sampling: Sampling, values: Mapping[str, Fraction]) -> tuple[float, ...]:
    """Probabilities that a round contains the user 0, 1, … times; (1,) if no law is computed.

    For a Poisson sample of n users capped at B, all equally likely to be left out, with K of the others in it, all of
    whom contribute nothing: q·E[min(1, B/(K + 1))] = q·P(Bin(n − 1, q) < B) + (B/n)·P(Bin(n, q) > B).
    """
    from scipy.special import bdtr, bdtrc, gammaln

    assert not isinstance(sampling, Placed)
    if isinstance(sampling, Poisson):
        q = sampling.rate.number(values)
        if sampling.most is not None and sampling.users is not None:
            n, most = int(sampling.users.number(values)), int(sampling.most.number(values))
            if most < n:
                q = q * float(bdtr(most - 1, n - 1, q)) + most / n * float(bdtrc(most, n, q))
        return (1 - q, q) if q > 0 else (1.0,)
    n = int(sampling.users.number(values))
    if isinstance(sampling, WithoutReplacement):
        q = int(sampling.batch.number(values)) / n
        return 1 - q, q
    draws = int(sampling.draws.number(values))
    k = np.arange(min(draws, _COPIES) + 1)
    logs = gammaln(draws + 1) - gammaln(k + 1) - gammaln(draws - k + 1) - k * math.log(n)
    logs = logs + (draws - k) * math.log1p(-1 / n)
    kept = int(np.flatnonzero(logs > _RAREST)[-1]) + 1 if (logs > _RAREST).any() else _COPIES + 1
    if kept > _COPIES:
        return (1.0,)  # what is left out would not be next to nothing
    weights = np.exp(logs[:kept])
    return tuple((weights / weights.sum()).tolist())


def _neighbours(
    releases: Sequence[Release], sampling: Sampling, relation: Relation, values: Mapping[str, Fraction]
) -> Iterator[Neighbours]:
    """Yield the user who differs, together with everybody else.

    In a Poisson sample or a bin no other user takes the user's place: all others contribute nothing. In a batch of
    fixed size another user does, and the worst is as far from the user as possible, or equal to the user in D or D′.
    """
    if isinstance(sampling, Poisson | BallsInBins):
        for first, second in _extreme(releases, relation, values):
            nobody = (None,) * len(releases)
            yield Neighbours(first=first, second=second, others=nobody)
            yield Neighbours(first=second, second=first, others=nobody)
        return
    between = relation if isinstance(relation, ReplaceOne) else replaced(relation)
    for first, second in _extreme(releases, between, values):
        nobody = (None,) * len(releases)
        if isinstance(relation, ReplaceOne):
            yield Neighbours(first=first, second=second, others=second)
            yield Neighbours(first=first, second=second, others=first)
        elif isinstance(relation, AddRemoveOne):  # where the user is not, another one is
            yield Neighbours(first=first, second=nobody, others=second)
            yield Neighbours(first=nobody, second=first, others=second)
        else:
            for others in (second, first):
                yield Neighbours(first=first, second=nobody, others=others)
                yield Neighbours(first=nobody, second=first, others=others)


def _extreme(
    releases: Sequence[Release], relation: Relation, values: Mapping[str, Fraction]
) -> Iterator[tuple[User, User]]:
    """Yield extreme users, with data for every release.

    Trajectories are the same for all tables. Statistics that define their own pairs, such as vectors, use other data of
    a user: with several releases each gets its largest change.
    """
    own = [_own_pairs(release, relation, values) for release in releases]
    tables = [i for i, pairs in enumerate(own) if pairs is None]
    if len(releases) == 1 and own[0] is not None:
        yield from (((first,), (second,)) for first, second in own[0])
        return
    furthest = [None if not pairs else _furthest(one, pairs) for one, pairs in zip(releases, own, strict=True)]
    for first, second in _trajectories([releases[i] for i in tables], relation, values) if tables else ((None, None),):
        users = [(first, second) if i in tables else pair or (None, None) for i, pair in enumerate(furthest)]
        yield tuple(user for user, _ in users), tuple(user for _, user in users)


def _own_pairs(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> list[tuple[Any, Any]] | None:
    """Pairs that a statistic defines; None if it defines none."""
    if not hasattr(release.statistic, "extreme_pairs"):
        return None
    pairs = release.statistic.extreme_pairs(relation, values)
    # the others are in the sample or not
    return [pair for pair in pairs if all(getattr(user, "users", 1) <= 1 for user in pair)]


def _furthest(release: Release, pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Pair with the largest change of a statistic, with its user in D."""
    present = [pair for pair in pairs if pair[0] is not None]
    order = 2 if release.mechanism.law.gaussian else 1

    def moves(pair: tuple[Any, Any]) -> float:
        return float(np.linalg.norm(release.mechanism.whitened(release.statistic.difference(pair)).change, ord=order))

    return max(present, key=moves)


def _trajectories(
    releases: Sequence[Release], relation: Relation, values: Mapping[str, Fraction]
) -> Iterator[tuple[Any, Any]]:
    """Yield extreme trajectories for tables of one size; nothing if these are too large, or use other data."""
    sizes = {tabular_sizes(release.statistic, values) for release in releases}
    rows = most_trajectories(relation, values)
    (size,) = sizes if len(sizes) == 1 else (None,)
    if size is not None and size[0] * rows <= LONGEST and max(size) <= LARGEST:
        yield from extreme_pairs(relation, *size, trajectories=rows)


def _moved_numbers(
    releases: Sequence[Release],
    neighbours: Neighbours,
    relation: Relation,
    values: Mapping[str, Fraction],
    *,
    several: bool,
    axes: int,
) -> tuple[SampledNumbers, ...]:
    """Observed numbers, with their changes by a sampled user; empty if no number distinguishes D from D′.

    In a batch of fixed size another user takes the place of an absent one; that user's contribution is subtracted.

    Args:
        releases: Releases on the sample.
        neighbours: The user's data in D and in D′, and the data of all others.
        relation: The neighbouring relation.
        values: The parameters.
        several: Whether more than one entry of a table with Laplace noise may be observed.
        axes: For Gaussian noise: 1 for the coordinate along f(D) − f(D′); 2 for the plane of the users of D and of D′,
            which contains their law, unless they are on one line.
    """
    gaussian, moved = [], list[SampledNumbers]()
    for i, release in enumerate(releases):
        users = (neighbours.first[i], neighbours.second[i], neighbours.others[i])
        noise = release.mechanism.at(values).coordinates()
        rows = _contributions(release, users, relation)
        rows = rows[:2] - rows[2]
        if not (rows[0] - rows[1]).any():
            continue
        if noise.gaussian:
            gaussian.append((noise, rows))
        elif several:
            moved += _alike(noise, rows)
        else:
            furthest = rows[:, np.argmax(np.abs(rows[0] - rows[1]))]
            furthest = furthest if furthest[0] > furthest[1] else -furthest
            moved.append(SampledNumbers(noise=noise, shifts=(float(furthest[0]), float(furthest[1]))))
    if not gaussian:
        return tuple(moved)
    if len(gaussian) == 1:
        noise, rows = gaussian[0]
    else:  # all in unit noise
        noise = GaussianNoise(scale=1.0)
        rows = np.concatenate([part / one.scale for one, part in gaussian], axis=1)
    change = rows[0] - rows[1]
    along = [change / np.linalg.norm(change)]
    across = rows[1] - (rows[1] @ along[0]) * along[0]
    if axes == 2 and (aside := float(np.linalg.norm(across))) > _FLAT * float(np.linalg.norm(rows)):
        along.append(across / aside)
    shifts = [(rows @ axis).tolist() for axis in along]
    return (*(SampledNumbers(noise=noise, shifts=(first, second)) for first, second in shifts), *moved)


def _alike(noise: Noise, rows: Array) -> list[SampledNumbers]:
    """Group the entries that change by the same amounts, up to sign; the noise is symmetric.

    Args:
        noise: Noise of every entry.
        rows: (2, entries) changes by the user in D and in D′.
    """
    size = np.abs(np.concatenate([rows, rows[:1] - rows[1:]])).max(axis=0)
    kept = np.argsort(-size, kind="stable")[:_ENTRIES]
    rows = rows[:, kept[size[kept] > 0]]
    rows = rows * np.where(np.where(rows[0] != 0, rows[0], rows[1]) < 0, -1.0, 1.0)
    ways, counts = np.unique(rows, axis=1, return_counts=True)
    both = (ways[0] != 0) & (ways[1] != 0) & (ways[0] != ways[1])
    found = list[SampledNumbers]()
    for which, most in ((~both, _MOVES), (both, _PLANAR)):
        heaviest = np.argsort(-counts[which] * np.abs(ways[:, which]).max(axis=0), kind="stable")[:most]
        shifts, times = ways[:, which][:, heaviest].T.tolist(), counts[which][heaviest].tolist()
        found += [
            SampledNumbers(noise=noise, shifts=(one, other), count=count)
            for (one, other), count in zip(shifts, times, strict=True)
        ]
    return found


def _contributions(release: Release, users: tuple[Any, Any, Any], relation: Relation) -> Array:
    """Contributions of the user in D and in D′, and of the user who takes the place, (3, entries that change)."""
    stand = _contribution(release, users[2])
    absent = stand if isinstance(relation, AddRemoveOne) else _contribution(release, None)
    sparse = [*(absent if user is None else _contribution(release, user) for user in users[:2]), stand]
    cells = np.unique(np.concatenate([one.cells for one in sparse]))
    rows = np.zeros((3, cells.size))
    for row, contribution in zip(rows, sparse, strict=True):
        row[np.searchsorted(cells, contribution.cells)] = contribution.change
    return rows


def _contribution(release: Release, user: Any) -> SparseDifference:
    """Contribution of a user to the sum, in the noise's coordinates; empty for None."""
    if user is None:
        return SparseDifference(cells=np.zeros(0, np.int64), change=np.zeros(0))
    return release.mechanism.whitened(release.statistic.difference((user, None)))


def _told(user: User) -> Any:
    """Data of a user, as one release takes them, or as each does."""
    return user[0] if all(one is user[0] for one in user) else user


def _words(releases: Sequence[Release], neighbours: Neighbours, relation: Relation) -> str:
    nobody = "absent" if isinstance(relation, AddRemoveOne) else "zeroed out"
    first, second = (_say(releases, user) or nobody for user in (neighbours.first, neighbours.second))
    others = _say(releases, neighbours.others)
    others = f"is {others}" if others else "contributes 0"
    return f"in D the user is {first}; in D′ {second}; everybody else {others}"


def _say(releases: Sequence[Release], user: User) -> str:
    """Describe a user in words; empty for None."""
    if all(one is user[0] for one in user):
        return "" if user[0] is None else str(user[0])
    return " and ".join(f"{one} in {release.name!r}" for release, one in zip(releases, user, strict=True))
