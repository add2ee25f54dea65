"""Noise, or any mechanism, on a random sample of the users.

All events share one convention for the data set with the user: P of direction "remove" is the law with the user. The
relation defines neighbours, and the price depends on it: it is required, and stays with the event. The sensitivities
are those of one user's contribution; the relation is applied here. Poisson sampling and batches of a fixed size are
different mechanisms with different figures: account for the sampling that is actually run (Lebeda, Regehr, Kamath &
Steinke 2024; Chua et al. 2024).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

from privcheck.accounting.engine.allocated import allocated_law
from privcheck.accounting.engine.allocated_below import GaussianRound, PairRound
from privcheck.accounting.engine.allocated_pairs import known_law, pair_allocation_law
from privcheck.accounting.engine.allocated_replaced import replaced_allocation_law
from privcheck.accounting.engine.allocated_several import Epoch, counts_heads, several_allocation_law
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import GaussianLaw, Law, LostLaw, ZcdpLaw
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.engine.replaced import MirroredGaussian, ReplacedGaussian
from privcheck.accounting.engine.revealed import RevealedLaw
from privcheck.accounting.engine.sampled import SampledGaussian
from privcheck.accounting.engine.subsampled import Base, mirrored_law, redrawn_law, replaced_law, sampled_law
from privcheck.accounting.events.base import PRESENT, REPLACING, Event, Piece, event, join_notes, ratio, under
from privcheck.accounting.reals import Real, real, whole
from privcheck.errors import ParameterError
from privcheck.terms.unit import RelationName

_FEW: Final = 1e-12  # a sampling rate below it is rounded up to it
_STEEPEST: Final = 1e4  # Δ/std above which a sampled user is charged as fully revealed
_MOST_DRAWS: Final = 1_000_000
_CROWDS: Final = 12  # numbers of other users in a cut-off sample, from B on, that are told apart
_WIDTH: Final = 0.5  # of these, in standard deviations, where they are groups
_MOST_MOVED: Final = 600.0  # square of a shift from which on e of it is left as it is
_ROUNDED: Final = 1e-9  # relative, of a probability of the binomial law, and more
_ALWAYS: Final = 1e-3  # probability of a sample that is not cut off, below which it is charged as one that is
_NEAR: Final = 1e-8  # Δ/std below which sampling is left out
_LOUDEST: Final = 5.0  # … above which a random allocation is
_EXACT: Final = frozenset({"laplace", "discrete_laplace", "randomized_response", "pure"})  # kinds with such outputs
_MOST_ROUNDS: Final = 10**9  # of an epoch; more of them cost no more


@under(*PRESENT, *REPLACING)
def poisson_gaussian(*, std: Real, rate: Real, relation: RelationName, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Gaussian noise on a Poisson sample of the users, both directions.

    With s = Δ/std: adding or removing a user is (1 − q)N(0, 1) + qN(s, 1) against N(0, 1) (Zhu, Dong & Wang 2022), and
    so is zeroing out, where the user stays in the data and contributes nothing. Replacing a user is (1 − q)N(0, 1) +
    qN(s, 1) against (1 − q)N(0, 1) + qN(−s, 1), two users with opposite contributions, which dominates all others in
    every composition (`engine.replaced`).

    Args:
        std: Standard deviation of one coordinate.
        rate: Probability that each user is in the sample.
        relation: "add-remove", "zero-out", "replace-one" or "replace-one-same-start".
        sensitivity: ℓ2 norm of one user's contribution, under every relation; with 1, std is in units of that norm.
        count: Number of rounds, each with a new sample.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.poisson_gaussian(std=1.1, rate=0.01, relation="add-remove", count=1000)
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    1.753
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    q, s = real("rate", rate, most=1), ratio("poisson_gaussian", moved, spread)
    pieces, note = _gaussian_pieces(s, q, relation)
    return event("poisson_gaussian", pieces, count, note, std=spread, rate=q, sensitivity=moved, relation=relation)


@under(*PRESENT, *REPLACING)
def poisson(
    *,
    event: Event,
    rate: Real,
    relation: RelationName,
    replaced: Event | None = None,
    count: Real = 1,
) -> Event:
    """Any mechanism on a Poisson sample of the users.

    If (P, Q) dominates the mechanism, with the user in its data and without, (1 − q)Q + qP against Q dominates the
    sampled mechanism under adding, removing or zeroing out a user (Zhu, Dong & Wang 2022, Theorem 11). Several releases
    (`count` of the mechanism's event) see the same sample. Gaussian noise is `poisson_gaussian`. Under replacing a
    user, Laplace noise is bounded by joint convexity (`engine.subsampled`).

    Args:
        event: Cost of the mechanism with the user in its data or not, for example laplace(scale=3). If it names a
            relation, that has to be the relation of the sample, and not one of replacing, since two users of a sample
            are not such a pair.
        rate: Probability that each user is in the sample.
        relation: "add-remove" or "zero-out"; "replace-one" or "replace-one-same-start" for Gaussian and Laplace noise,
            or with `replaced`.
        replaced: Cost of the mechanism with a user in its data replaced by another, for "replace-one"; None where that
            doubles the sensitivity of Laplace or Gaussian noise.
        count: Number of rounds, each with a new sample.

    Raises:
        ParameterError: A number is out of range, no pair is known for such a mechanism, or a relation does not fit.

    >>> from privcheck import accounting as acc
    >>> event = acc.poisson(event=acc.laplace(scale=2), rate=0.1, relation="zero-out", count=20)
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 2)
    0.88
    """
    q, base = max(real("rate", rate, most=1), _FEW), _base(event)
    note = join_notes(event.note, "" if replaced is None else replaced.note)
    _check_inner("poisson", event, relation, needed=relation if relation in PRESENT else "add-remove")
    if replaced is not None and relation not in REPLACING:
        message = f"expected `replaced` only if a user is replaced, got it with relation {relation!r}"
        raise ParameterError(f"{message}; leave it out", name="replaced", given=replaced)
    other = () if replaced is None else _base(replaced)
    if replaced is not None:
        _check_inner("poisson, replaced", replaced, relation, needed=relation)
    if replaced is None and (mu := _gaussian_shift(event)) is not None:
        pieces, added = _gaussian_pieces(mu, q, relation)
        note = join_notes(note, added)
    elif relation in PRESENT:
        pieces = [(sampled_law(base, q), 1)] if q < 1 else list(base)
    else:
        other = _double(event, relation) if replaced is None else other
        pieces = [(replaced_law(base, other, q), 1)] if q < 1 else list(other)
        note = join_notes(note, "replacement bounded by joint convexity" if q < 1 else "")
    other_event = {} if replaced is None else {"replaced": str(replaced)}
    given = {"rate": q, **other_event, "relation": relation}
    return _make_event("poisson", pieces if base else [], count, note, of=event, **given)


@under(*PRESENT, *REPLACING)
def without_replacement(*, event: Event, users: Real, batch: Real, relation: RelationName, count: Real = 1) -> Event:
    """Any mechanism on a batch of a fixed size, drawn without replacement.

    A user who leaves the batch is replaced by another: the cost of the mechanism is that of replacing a member of the
    batch, (P, Q). With q = B/n, adding or removing a user is (1 − q)Q + qP against Q. Replacing a user is the same
    curve for ε ≥ 0, and for ε < 0 that of the reversed pair (Zhu, Dong & Wang 2022, Theorem 11; Balle, Barthe &
    Gaboardi 2018, Theorem 9): no pair of data sets need attain both halves, so a composition is an upper bound.

    Args:
        event: Cost of the mechanism if one user in its batch is replaced, or zeroed out under "zero-out": for sums of
            contributions of norm up to Δ, gaussian(std=…, sensitivity=2Δ). If it names a relation, that has to be one
            of replacing, and the relation of the batch.
        users: n, the size of the larger data set under "add-remove".
        batch: B, at most n.
        relation: "replace-one" or "replace-one-same-start", natural for fixed B and n; "zero-out", at the same price;
            or "add-remove".
        count: Number of rounds, each with a new draw.

    Raises:
        ParameterError: A number is out of range, no pair is known for such a mechanism, or a relation does not fit.

    >>> from privcheck import accounting as acc
    >>> event = acc.without_replacement(
    ...     event=acc.gaussian(std=5, sensitivity=2), users=1000, batch=10, relation="replace-one", count=100
    ... )
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 3)
    0.183
    """
    n = whole("users", users)
    b, base = whole("batch", batch, most=n), _base(event)
    _check_inner("without_replacement", event, relation, needed=relation if relation in REPLACING else "replace-one")
    q = min(1.0, b / n * (1 + 2**-52))
    note, mu = event.note, _gaussian_shift(event)
    pieces: list[tuple[Piece, int]]
    if q == 1:
        pieces = list(base)
    elif mu is not None and relation != "add-remove" and _NEAR <= mu <= _STEEPEST:
        pieces = [(MirroredGaussian(mu, max(q, _FEW)), 1)]
    elif mu is not None:
        pieces, added = _gaussian_pieces(mu, q, relation)
        note = join_notes(note, added)
    else:
        pieces = [((sampled_law if relation == "add-remove" else mirrored_law)(base, q), 1)]
    return _make_event(
        "without_replacement", pieces if base else [], count, note, of=event, users=n, batch=b, relation=relation
    )


@under(*PRESENT, *REPLACING)
def with_replacement(
    *, std: Real, users: Real, draws: Real, relation: RelationName, sensitivity: Real = 1, count: Real = 1
) -> Event:
    """Gaussian noise on a batch drawn with replacement.

    A user drawn k times contributes k times: the mechanism is charged for replacing k members of the batch, k from
    Bin(m, 1/n) (Balle, Barthe & Gaboardi 2018, Theorem 10): an upper bound, and the same under every relation. Without
    a user, others are drawn in the same places; zeroing out a user changes the sum by less than replacing one.

    Args:
        std: Standard deviation of one coordinate.
        users: n, the size of the larger data set under "add-remove".
        draws: m, the size of the batch, each member drawn from all users.
        relation: "replace-one", "replace-one-same-start", "zero-out" or "add-remove".
        sensitivity: ℓ2 norm of one contribution, under every relation; replacing a member changes the sum by twice as
            much.
        count: Number of rounds, each with a new draw.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.with_replacement(std=5, users=1000, draws=10, relation="replace-one", count=100)
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 2)
    0.2
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    n, m = whole("users", users, least=2), whole("draws", draws, most=_MOST_DRAWS)
    mu = 2 * ratio("with_replacement", moved, spread)
    pieces: list[tuple[Piece, int]] = []
    note = "each number of copies bounded by itself"
    if 0 < mu < _NEAR:
        pieces, note = [(GaussianLaw((m * mu) ** 2), 1)], "sampling left out: its losses are negligible"
    elif mu > _STEEPEST:
        lost = -math.expm1(m * math.log1p(-1 / n)) * (1 + 1e-14)
        pieces, note = [(LostLaw(lost), 1)], "the noise is too small: a sampled user is charged as fully revealed"
    elif mu > 0:
        pieces = [(redrawn_law(mu, m, n), 1)]
    given = {"std": spread, "users": n, "draws": m, "sensitivity": moved}
    return event("with_replacement", pieces, count, note, **given, relation=relation)


@under(*PRESENT, *REPLACING)
def truncated_poisson_gaussian(
    *,
    std: Real,
    rate: Real,
    users: Real,
    most: Real,
    relation: RelationName,
    sensitivity: Real = 1,
    apart: Real | None = None,
    count: Real = 1,
) -> Event:
    """Gaussian noise on a Poisson sample of which at most B are kept, any B of more being equally likely.

    Lemma truncated-sample: Gaussian noise on a Poisson sample of which at most B are kept is dominated, for every c, by
    a mixture of pairs of which one is revealed: for K > c other users in the sample that of a batch of a fixed size at
    the rate κ = qB/(K + 1), else that of a sample given the J others who are kept. Proof: let K of the other users be
    sampled, K from Bin(n − 1, q) whatever the user's data. Where K < B no user is left out, and it is
    `poisson_gaussian`. Else the user is kept with probability κ < q, in place of another user. The dominating pair
    reveals more to the attacker, in one of two ways:

    * Where K is above some c, K is revealed: given the others, (1 − κ)N(y) + κN(u) against N(y) or (1 − κ)N(y) + κN(v),
      any two of 0, u, v and y at most `apart` from each other. That is a batch of a fixed size, which
      `without_replacement` bounds. Neighbouring K are charged together, at the largest κ among them.
    * Else, unless the user is absent from one of the two data sets, the kept others are revealed, J of them: the law of
      J does not depend on the user's data. Then J = B − 1 leaks most about the user, who is kept with probability a/(a
      + b), where a = P(kept, J = B − 1) and b = (1 − q)P(K = B − 1), and changes the sum by their own contribution
      only.

    c is chosen by the least remaining variance of the likelihood ratio.

    Args:
        std: Standard deviation of one coordinate.
        rate: q, the probability that each user is sampled.
        users: n, an upper bound on the number of users; the size of the larger data set under "add-remove".
        most: B.
        relation: "add-remove", "zero-out", "replace-one" or "replace-one-same-start".
        sensitivity: ℓ2 norm of one user's contribution, under every relation.
        apart: ℓ2 norm of the change of the sum where one user takes another's place, from `sensitivity` to twice that;
            None for twice.
        count: Number of rounds, each with a new sample.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.truncated_poisson_gaussian(
    ...     std=1, rate=0.01, users=1000, most=30, relation="add-remove", count=100
    ... )
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 3)
    0.955
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    q, s = real("rate", rate, most=1), ratio("truncated_poisson_gaussian", moved, spread)
    n, b = whole("users", users), whole("most", most)
    given = {} if apart is None else {"apart": real("apart", apart, least=moved, strict=False, most=2 * moved)}
    swapped = 2 * s if apart is None else ratio("truncated_poisson_gaussian", given["apart"], spread)
    pieces, note = _gaussian_pieces(s, q, relation)
    if pieces and b <= n - 1:
        law = pieces[0][0]
        if not isinstance(law, SampledGaussian | ReplacedGaussian):
            pieces = [(LostLaw(q), 1)] if q < 1 else [(GaussianLaw(4 * s * s), 1)]
            note = "a sampled user is charged as fully revealed" if q < 1 else "every user is charged as sampled"
        else:
            told = _least_told(n, b, law.rate, (s, swapped), relation)
            crowded = SampledGaussian if relation == "add-remove" else MirroredGaussian
            weights = [weight / math.fsum(w for w, _, _ in told) for weight, _, _ in told]
            laws = [
                _widened(crowded(swapped, kept) if in_place else replace(law, rate=kept)) for _, kept, in_place in told
            ]
            pieces = [(RevealedLaw(tuple(weights), tuple(laws)) if len(laws) > 1 else laws[0], 1)]
            note = join_notes(note, "the number of sampled users counts as known")
    return event(
        "truncated_poisson_gaussian",
        pieces,
        count,
        note,
        std=spread,
        rate=q,
        users=n,
        most=b,
        sensitivity=moved,
        **given,
        relation=relation,
    )


@under(*PRESENT, *REPLACING)
def random_allocation(
    *,
    std: Real,
    rounds: Real,
    relation: RelationName,
    participations: Real = 1,
    epochs: Real = 1,
    sensitivity: Real = 1,
) -> Event:
    """Gaussian noise in every round of an epoch, each user taking part in k of its t rounds: balls in bins.

    The rounds are drawn uniformly, independently of all other users and of the data, and stay secret; all rounds'
    outputs are released, and later ones may depend on earlier ones. For k = 1, with s = Δ/std, the pair under adding,
    removing or zeroing out a user is the mean over i of N(s·eᵢ, I) against N(0, I) (Feldman & Shenfeld 2025; Chua et
    al. 2025), and under replacing one against the mean of N(−s·eᵢ, I): two users with opposite contributions, who
    dominate all others (`engine.allocated_replaced`). For k > 1 the upper bound is that of k blocks of rounds, with one
    participation each, or, where a user is present or not, that by a Poisson sample's likelihood ratio, if it is less;
    more than half of the rounds are known ones and the complement of random ones (`engine.allocated_several`). Lower
    bounds are those of sums over the rounds, and of outcomes with one large number (`engine.allocated_below`). In few
    rounds of little noise both bounds are those of sums on a geometric grid (`engine.doubled`).

    Batches of a fixed size, cut from a random order, are another mechanism: where the user is, another one is not.

    Args:
        std: Standard deviation of one coordinate.
        rounds: t, rounds of an epoch.
        relation: "add-remove", "zero-out", "replace-one" or "replace-one-same-start".
        participations: k, rounds of an epoch in which each user takes part.
        epochs: Number of epochs, drawn afresh.
        sensitivity: ℓ2 norm of one user's contribution to a round, under every relation.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> figure = acc.compose(acc.random_allocation(std=1, rounds=100, relation="add-remove")).epsilon(delta=1e-5)
    >>> round(figure.lower, 3), round(figure.upper, 3)
    (0.621, 0.621)
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    t, s = whole("rounds", rounds), ratio("random_allocation", moved, spread)
    k = whole("participations", participations, most=t)
    pieces, note = _allocated_pieces(s, t, k, relation)
    return event(
        "random_allocation",
        pieces,
        epochs,
        note,
        std=spread,
        rounds=t,
        participations=k,
        sensitivity=moved,
        relation=relation,
    )


@under(*PRESENT, otherwise="for two users in each other's place only Gaussian noise has a pair: random_allocation")
def allocated(
    *, event: Event, rounds: Real, relation: RelationName, participations: Real = 1, epochs: Real = 1
) -> Event:
    """Any mechanism in every round of an epoch, each user taking part in k of its t rounds: balls in bins.

    What `random_allocation` is for Gaussian noise: the rounds are drawn uniformly, independently of all else, and stay
    secret. If (P, Q) dominates the mechanism, with the user in its round and without, then the mean over i of P at i
    and Q elsewhere, against Q everywhere, dominates an epoch with k = 1 (`engine.allocated_pairs`). For k > 1 k blocks
    of rounds with one participation each are an upper bound [lemma allocation-blocks]. ε-DP and binary randomised
    response are exact [lemma allocation-heads]. Laplace and discrete Laplace noise and randomised response have a
    lower bound as well.

    Args:
        event: Cost of the mechanism in one round with the user in it or not, for example laplace(scale=3). If it names
            a relation, that has to be the relation of the epoch.
        rounds: t, rounds of an epoch.
        relation: "add-remove" or "zero-out".
        participations: k, rounds of an epoch in which each user takes part.
        epochs: Number of epochs, drawn afresh.

    Raises:
        ParameterError: A number is out of range, no pair is known for such a mechanism, or a relation does not fit.

    >>> from privcheck import accounting as acc
    >>> event = acc.allocated(event=acc.laplace(scale=1), rounds=100, relation="zero-out")
    >>> figure = acc.compose(event).epsilon(delta=1e-6)
    >>> round(figure.lower, 2), round(figure.upper, 2)
    (0.41, 0.41)
    """
    t, base = whole("rounds", rounds), _base(event)
    k = whole("participations", participations, most=t)
    _check_inner("allocated", event, relation, needed=relation)
    note = event.note
    if (mu := _gaussian_shift(event)) is not None:
        pieces, added = _allocated_pieces(mu, t, k, relation)
        note = join_notes(note, added)
    else:
        exact = event.kind in _EXACT and event.count == 1 and not note
        blocks: list[tuple[Law | LostLaw, int]] = []
        for size, times in _blocks(t, k):
            some = [(pair_allocation_law(base, min(size, _MOST_ROUNDS), exact=exact), 1)] if size > 1 and base else base
            blocks += [(piece, n * times) for piece, n in some]
        pieces = list(blocks)
        known = known_law(base) if exact else None
        if k < t and known is not None and (k > 1 or counts_heads(known, t, k)):
            epoch = Epoch(one=PairRound(law=known), rounds=t, participations=k, blocks=tuple(blocks))
            pieces = [(several_allocation_law(epoch), 1)]
        elif 1 < k < t:
            note = join_notes(note, f"{k} of {t} rounds bounded by one of each of {k} blocks")
    given = {"rounds": t, "participations": k, "relation": relation}
    return _make_event("allocated", pieces if base else [], epochs, note, of=event, **given)


def _blocks(t: int, k: int) -> list[tuple[int, int]]:
    """Sizes of k blocks of t rounds, with their counts."""
    return [(size, times) for size, times in ((t // k, k - t % k), (t // k + 1, t % k)) if times]


def _allocated_pieces(s: float, t: int, k: int, relation: RelationName) -> tuple[list[tuple[Piece, int]], str]:
    """Pieces of k rounds of t with Gaussian noise, s = Δ/std, and a note on the bounds used."""
    if s == 0:
        return [], ""
    replaced = relation in REPLACING
    moved, law = (2 * s, replaced_allocation_law) if replaced else (s, allocated_law)
    if s < _NEAR or moved > _LOUDEST:
        return [(GaussianLaw(moved * moved), k)], "the random rounds count as known"
    if t < 2 * k < 2 * t:  # [lemma allocation-complement]
        others, note = _allocated_pieces(s, t, t - k, relation)
        return [(GaussianLaw(moved * moved), 2 * k - t), *others], note
    blocks: list[tuple[Law | LostLaw, int]] = [
        (GaussianLaw(moved * moved) if size == 1 else law(s, min(size, _MOST_ROUNDS)), times)
        for size, times in _blocks(t, k)
    ]
    if not 1 < k < t:
        return list(blocks), ""
    one = GaussianRound(shift=s, replaced=replaced)
    epoch = Epoch(one=one, rounds=t, participations=k, blocks=tuple(blocks))
    return [(several_allocation_law(epoch), 1)], ""


_Told = tuple[float, float, bool]  # a probability, that with which the user is kept, and whether in another's place


def _least_told(users: int, most: int, rate: float, shifts: tuple[float, float], relation: RelationName) -> list[_Told]:
    """Choose the information revealed of a cut-off sample: over all c, the least variance of the likelihood ratio.

    Every c bounds the cost. The chosen c depends on the noise, and where it changes the bound may step up.

    Args:
        users: n.
        most: B, below n.
        rate: q.
        shifts: Changes of the sum by the user, in standard deviations: alone and in the place of another.
        relation: Relation between the two data sets.
    """
    # where c is not chosen too, twice as many groups cost no more
    parts = 2 if relation == "add-remove" else 1
    width = max(1, math.ceil(_WIDTH / parts * math.sqrt((users - 1) * rate * (1 - rate))))
    starts = [k for k in range(most, most + parts * _CROWDS * width, width) if k <= users - 1]
    kinds = [_told(users, most, rate, starts, known) for known in range(1 if parts == 2 else len(starts) + 1)]

    def variance(told: list[_Told]) -> float:
        moved = [min(_MOST_MOVED, shifts[in_place] ** 2) for _, _, in_place in told]
        return math.fsum(w * kept**2 * math.expm1(m) for (w, kept, _), m in zip(told, moved, strict=True))

    return min(kinds, key=variance)


def _told(users: int, most: int, rate: float, starts: list[int], known: int) -> list[_Told]:
    """Laws of which one is revealed: K beyond the first `known` groups, and J before.

    Args:
        users: n.
        most: B.
        rate: q.
        starts: The least K of every group, from B on; the last group has all larger K.
        known: Number of groups for which J is revealed; 0 for none except K < B.
    """
    from scipy.special import bdtr, bdtrc

    n, b, q = users, most, rate
    ends = [*starts[1:], n]
    tails = [float(bdtrc(k - 1, n - 1, q)) for k in (*starts, n)]
    told = [
        (tail - further, max(_FEW, q * b / (k + 1)), True)
        for tail, further, k in zip(tails[known:], tails[known + 1 :], starts[known:], strict=False)
    ]
    if not known:
        few = (float(bdtr(b - 1, n - 1, q)), q, False)
        if few[0] < _ALWAYS:  # hardly ever few: charged as the fewest of too many
            told[0] = (few[0] + told[0][0], q, True)
        else:
            told.append(few)
    else:
        c = ends[known - 1] - 1
        kept = b / n * (float(bdtrc(b, n, q)) - float(bdtrc(c + 1, n, q)))  # q·E[B/(K + 1); B ≤ K ≤ c]
        fewer = float(bdtr(b - 2, n - 1, q)) if b > 1 else 0.0
        next_to_full = max(0.0, float(bdtr(b - 1, n - 1, q)) - fewer)
        held, hidden = q * next_to_full + kept, (1 - q) * next_to_full
        told += [(fewer, q, False), (held + hidden, held / (held + hidden), False)]
        told.append((max(0.0, tails[0] - tails[known] - kept), _FEW, False))  # B others are kept, and the user is not
    return [one for one in told if one[0] > 0]


def _widened(law: SampledGaussian | ReplacedGaussian | MirroredGaussian) -> Law:
    """Widen a law with a possibly rounded-down weight: hockey-sticks are convex in the rate, and 0 where it is 0."""
    rate = law.rate * (1 + _ROUNDED)
    return replace(law, rate=rate) if rate < 1 else GaussianLaw((2 * law.shift) ** 2)


def _gaussian_pieces(s: float, q: float, relation: RelationName) -> tuple[list[tuple[Piece, int]], str]:
    """Pieces of a sampled Gaussian, s = Δ/std, and a note on the bounds used."""
    if s == 0:
        return [], ""
    moved = 2 * s if relation in REPLACING else s
    if q == 1:
        return [(GaussianLaw(moved * moved), 1)], ""
    if s < _NEAR:
        return [(GaussianLaw(moved * moved), 1)], "sampling left out: its losses are negligible"
    if s > _STEEPEST:
        # outputs with and without the user differ in the runs that sample them, a share q at most
        return [(LostLaw(q), 1)], "the noise is too small: a sampled user is charged as fully revealed"
    note = f"sampling rate rounded up to {_FEW:g}" if q < _FEW else ""
    law = ReplacedGaussian if relation in REPLACING else SampledGaussian
    return [(law(s, max(q, _FEW)), 1)], note


def _make_event(
    kind: str, pieces: list[tuple[Piece, int]], count: Real, note: str, *, of: Event, **given: Any
) -> Event:
    return event(kind, pieces, count, note, event=str(of), **given)


def _check_inner(where: str, of: Event, relation: RelationName, *, needed: RelationName) -> None:
    """Check that the sampled event names no relation, or that of the sample where its price is for that.

    Raises:
        ParameterError: The event is priced under another relation.
    """
    if of.relation in (None, relation) and of.relation in (None, needed):
        return
    message = f"{where}: the sample is priced under {relation} but the sampled event under {of.relation}: {of}"
    remedy = f"price it under {relation}" if needed == relation else "give an event that names no relation"
    raise ParameterError(f"{message}; {remedy}", name="relation", given=of.relation)


def _base(of: object) -> Base:
    """Laws of a mechanism with their counts."""
    if not isinstance(of, Event):
        message = f"expected event as one event, such as laplace(scale=3), got {of!r}"
        raise ParameterError(message, name="event", given=of)
    base = []
    for piece, times in of.pieces:
        if isinstance(piece, ZcdpLaw | RenyiLaw):
            message = f"only Rényi orders of {of} are known, and no pair to sample from"
            raise ParameterError(f"{message}; give a mechanism whose dominating pair is known", name="event", given=of)
        base.append((piece, times * of.count))
    return tuple(base)


def _gaussian_shift(of: Event) -> float | None:
    """μ of a mechanism of Gaussian noise only (None for others): several releases of one sample count as one."""
    squares = [piece.mu_squared * times * of.count for piece, times in of.pieces if isinstance(piece, GaussianLaw)]
    return math.sqrt(math.fsum(squares)) * (1 + 2**-51) if len(squares) == len(of.pieces) > 0 else None


def _double(of: Event, relation: RelationName) -> Base:
    """Laws of a mechanism under replacing the user: Laplace noise at twice the sensitivity."""
    base: list[tuple[LaplaceLaw, int]] = []
    for piece, times in of.pieces:
        if not isinstance(piece, LaplaceLaw):
            message = f"no pair is known for Poisson sampling of {of} under replacing a user"
            remedy = "account for it under add-remove or zero-out, or for a batch without replacement"
            raise ParameterError(f"{message}; {remedy}", name="relation", given=relation)
        base.append((LaplaceLaw(2 * piece.step), times * of.count))
    return tuple(base)
