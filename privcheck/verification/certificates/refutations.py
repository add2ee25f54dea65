"""Evidence against a claim: a pair of neighbours in exact numbers, and the releases whose loss exceeds it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.mechanisms import DiscreteGaussian
from privcheck.declare.procedures import (
    GaussianNoisyMax,
    GaussianSparseVector,
    KnownPair,
    NoisyMax,
    OwnMechanism,
    Procedure,
    RandomisedResponse,
    ScoredChoice,
    SparseVector,
    UnaryEncoding,
)
from privcheck.declare.procedures.base import moved_by_a_user
from privcheck.declare.procedures.gaussian_noisy_max import GaussianWinnerRuns
from privcheck.declare.procedures.gaussian_sparse_vector import FirstSeen, GaussianRuns
from privcheck.declare.procedures.scored_choice import ChoiceRuns
from privcheck.declare.procedures.selection import SelectionRuns
from privcheck.declare.procedures.shared_samples import SHARED
from privcheck.declare.releases import Release, is_additive
from privcheck.declare.schedules import Once
from privcheck.declare.statistics import FeatureSums, GramMatrices, OneStepEach, Vectors
from privcheck.errors import CertificateError
from privcheck.pricing import Priced
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP
from privcheck.verification.certificates.canonical import Json, is_stated, number
from privcheck.verification.findings import Witness
from privcheck.verification.witness import worst_witness

_GRID: Final = 2**40  # coordinates are rounded towards 0 to multiples of 1/_GRID, so that norms stay in bounds
_MOST_STEPS: Final = 4_000  # steps of a pair that is written out
_ORDERS: Final = tuple(Fraction(x) for x in ("1001/1000", "11/10", "3/2", "2", "3", "5", "10", "30", "100", "1000"))
_LEVELS: Final = tuple(Fraction(x) for x in ("0", "1/8", "1/2", "1", "2", "4"))  # ε at which curves are compared
_CROSSINGS: Final = ((60, -60), (0, 0), (1, -1), (4, -6), (10, -6))  # scales above and below a threshold
_FARTHEST: Final = 300  # scales that a candidate is behind
_OUTCOMES: Final = 100  # of a stated law
_SHARE: Final = 1e-10  # of a probability, by which it is rounded
_UNIT: Final = 10**24  # in which probabilities are written


def refute_with_pair(priced: Priced, witness: Witness | None) -> Iterator[Json]:
    """Yield evidence of a refutation: the user in D and in D′, and the releases that tell them apart.

    The checker decides at which order of divergence, or at which ε, the loss is above the claim.

    Raises:
        CertificateError: The pair has no form, or is too long.
    """
    declaration = priced.declaration
    if witness is None:
        raise CertificateError("the claim fails without a pair of neighbours")
    if (answers := _impossible_answers(priced)) is not None:
        yield answers
        return
    if " and " in witness.group:
        raise CertificateError("the user of the pair is in several groups")
    among = declaration.among(witness.group)
    names = {part for name in witness.by for part in name.split(SHARED)}
    seen = [
        one
        for one in declaration.releases
        if one.users in among and (one.name in names if names else one in declaration.noisy)
    ]
    evidence = _evidence(priced, witness, [one for one in seen if _usable(one, priced)])
    if witness.group:
        evidence["part"] = witness.group
    sparse = [one for one in seen if isinstance(one, SparseVector) and not one.redrawn and one.query_scale is not None]
    for level in _CROSSINGS if sparse else _CROSSINGS[:1]:
        crossing = {one.name: _cross(one, priced, level) for one in sparse}
        using = [*evidence["using"], *crossing]
        if not using:
            raise CertificateError("no release of the pair has an exact loss in a certificate")
        yield from _measured(
            priced, witness, seen, {**evidence, "using": using} | ({"crossing": crossing} if crossing else {})
        )


def _measured(priced: Priced, witness: Witness, seen: Sequence[Procedure], evidence: Json) -> Iterator[Json]:
    """The evidence, at each order or ε where one is needed; candidates that gain do so on D first, then as told."""
    declaration = priced.declaration
    if "behind" in evidence and "order" not in evidence:
        turned = {name: sorted(gaps, key=Fraction) for name, gaps in evidence["behind"].items()}
        if turned != evidence["behind"]:
            yield from _measured(priced, witness, seen, {**evidence, "behind": turned})
    yield evidence
    claim = declaration.claim.guarantee
    if isinstance(claim, ZCDP):
        noisy = [one for one in seen if is_additive(one)]
        orders = [_best_order(priced, witness, noisy)] if noisy == list(seen) else _ORDERS
        yield from ({**evidence, "order": number(order)} for order in orders)
    if isinstance(claim, GaussianDP):
        yield from ({**evidence, "epsilon": number(at)} for at in _LEVELS)


def _evidence(priced: Priced, witness: Witness, seen: Sequence[Procedure]) -> Json:
    """What tells the two apart in each release: data, scores of candidates, or laws that an author states."""
    sides: list[list[Json]] = [[], []]
    noisy = [one for one in seen if isinstance(one, Release)]
    behind: dict[str, list[int | str]] = {}
    stated: dict[str, list[list[int | str]]] = {}
    levels: dict[str, list[list[int | str]]] = {}
    vectors: list[dict[str, list[int]]] = [{}, {}]
    if noisy:
        user = witness.pair if _is_data(witness.pair) else _data_of(priced, noisy)
        sides = [_user(one, noisy) for one in user]
        sides = _with_vectors(sides, _vectors_of(priced, user, noisy))
    using = [one.name for one in noisy]
    for one in seen:
        if isinstance(one, NoisyMax | ScoredChoice):
            behind[one.name] = _gaps(one, priced, witness)
        elif isinstance(one, GaussianNoisyMax | GaussianSparseVector):
            levels[one.name] = _levels(one, priced, witness)
        elif isinstance(one, OwnMechanism):
            stated[one.name] = _stated_laws(_told(one, priced, witness))
        elif isinstance(one, RandomisedResponse):
            vectors = [{**old, one.name: [bit]} for old, bit in zip(vectors, (1, 0), strict=True)]
        elif isinstance(one, UnaryEncoding):
            bits, ones = (int(size.number(priced.values)) for size in (one.bits, one.ones))
            first, second = [1] * ones + [0] * (bits - ones), [0] * ones + [1] * ones + [0] * (bits - 2 * ones)
            vectors = [{**old, one.name: new} for old, new in zip(vectors, (first, second), strict=True)]
        if not isinstance(one, Release):
            using.append(one.name)
    sides = _with_vectors(sides, vectors)
    found: Json = {"using": using}
    found |= {"pair": sides} if sides[0] or sides[1] else {}
    found |= {"behind": behind} if behind else {}
    found |= {"levels": levels} if levels else {}
    return found | ({"laws": stated} if stated else {})


def _cross(one: SparseVector, priced: Priced, level: tuple[int, int]) -> list[list[int | str]]:
    """Queries so many scales above the threshold that are answered "below", then others below it answered "above"."""
    assert one.query_scale is not None
    moved = moved_by_a_user(one.sensitivity, priced.declaration.relation).rational(priced.values)
    scales = [scale.rational(priced.values) for scale in (one.threshold_scale, one.query_scale)]
    queries = int(one.queries.number(priced.values))
    most = queries if one.positives is None else int(one.positives.number(priced.values))
    if moved is None or None in scales:
        raise CertificateError(f"release {one.name!r}: scales and sensitivity are no fractions")
    far = max(scale for scale in scales if scale is not None)
    crossings = max(1, min(most, queries // 2))
    low, high = (number(part * far) for part in level)
    further = number(level[0] * far + moved)
    nearer = number(level[1] * far - (0 if one.monotone else moved))
    return [[queries - crossings, low, further], [crossings, high, nearer]]


def _is_data(pair: tuple[Any, Any]) -> bool:
    return any(isinstance(user, Trajectories | Regressors | Vectors) for user in pair)


def _with_vectors(sides: list[list[Json]], vectors: Sequence[Mapping[str, Any]]) -> list[list[Json]]:
    """The first trajectory of each side with vectors of some releases besides."""
    return [
        [{**side[0], "vectors": {**side[0].get("vectors", {}), **new}}, *side[1:]] if new and side else
        [{"vectors": dict(new)}] if new else side
        for side, new in zip(sides, vectors, strict=True)
    ]  # fmt: skip


def _vectors_of(priced: Priced, user: tuple[Any, Any], noisy: Sequence[Release]) -> list[dict[str, Any]]:
    """Bits of one step of a user, by the cells that change; the change of a statistic with a stated sensitivity."""
    found: list[dict[str, Any]] = [{}, {}]
    for one in noisy if _is_data(user) else ():
        moved = one.moved(user, priced.values)
        if isinstance(one.statistic, OneStepEach):
            table = one.statistic.table
            size = int(math.prod(axis.number(priced.values) for axis in (table.steps, *table.sizes)))
            for side, there, sign in zip(found, user, (1, -1), strict=True):
                if there is None:
                    continue
                changed = set(moved.cells[moved.change * sign > 0].tolist())
                side[one.name] = [int(k in changed) for k in range(size)]
        elif is_stated(one) and moved.mirrored is None:
            found[0][one.name] = [_rounded(x) for x in moved.change.tolist()]
    return found


def _data_of(priced: Priced, noisy: Sequence[Release]) -> tuple[Any, Any]:
    """A user whom the statistics show best, if each is released once: of a sample, that has the user or not."""
    once = tuple(replace(one, schedule=Once(), fresh=False) for one in noisy)
    alone = replace(priced.declaration, releases=once, origin=None)
    found = worst_witness(priced.of(alone), [])
    if found is None or not _is_data(found.pair):
        raise CertificateError("the pair is not one of data")
    return found.pair


def _told(one: Procedure, priced: Priced, witness: Witness) -> KnownPair:
    """The pair of a procedure that a witness tells."""
    for pair in one.pairs(priced.declaration.relation, priced.values):
        alone = witness.by == (one.name,) and witness.words.startswith(pair.words)
        if alone or f"{one.name}: {pair.words}" in witness.words:
            return pair
    raise CertificateError(f"the pair is one of answers of {one.name} that has no form")


def _gaps(one: NoisyMax | ScoredChoice, priced: Priced, witness: Witness) -> list[int | str]:
    """How far the first of two candidates is behind the second, on D and on D′."""
    sampler = _told(one, priced, witness).sampler
    assert isinstance(sampler, SelectionRuns | ChoiceRuns)
    first, second = (scores[1] - scores[0] for scores in sampler.scores)
    chosen = one.noisy_max if isinstance(one, ScoredChoice) else one
    moved = moved_by_a_user(chosen.sensitivity, priced.declaration.relation) * (1 if chosen.monotone else 2)
    known = moved.rational(priced.values)
    apart = Fraction(moved.number(priced.values, rounding="down")) if known is None else known
    far = _FARTHEST * chosen.scale.number(priced.values)
    start = Fraction(max(-far, min(far, first, second)))
    both = [start, start + apart]
    return [number(each) for each in (both if first < second else reversed(both))]


def _levels(one: GaussianNoisyMax | GaussianSparseVector, priced: Priced, witness: Witness) -> list[list[int | str]]:
    """Groups of queries, in their order, or of scores: how many, and their level on D and on D′."""
    sampler = _told(one, priced, witness).sampler
    if isinstance(sampler, GaussianRuns) and isinstance(sampler.seen, FirstSeen):
        groups = [
            (len(list(same)), *pair) for pair, same in itertools.groupby(zip(*sampler.queries.tolist(), strict=True))
        ]
    elif isinstance(sampler, GaussianWinnerRuns):
        groups = list(zip(sampler.sizes, *sampler.scores, strict=True))
    else:
        raise CertificateError(f"release {one.name!r}: several answers above have no form")
    moved = moved_by_a_user(one.sensitivity, priced.declaration.relation)
    known = moved.rational(priced.values)
    most = Fraction(moved.number(priced.values, rounding="down")) if known is None else known
    found: list[list[int | str]] = []
    for count, first, second in groups:
        start = Fraction(round(first * _GRID), _GRID)
        apart = max(-most, min(most, Fraction(second) - start))
        if abs(abs(apart) - most) < Fraction(1, 2**30):  # all but so far
            apart = most if apart > 0 else -most
        found.append([count, number(start), number(start + apart)])
    return found


def _stated_laws(pair: KnownPair) -> list[list[int | str]]:
    """Both laws of a mechanism of an author's own, P rounded down and Q up, outcomes of one loss put together."""
    if pair.outcomes is None:
        raise CertificateError("the pair has no finite law")
    p, q = np.exp(pair.outcomes.log_p) * (1 - _SHARE), np.exp(pair.outcomes.log_q) * (1 + _SHARE)
    with np.errstate(divide="ignore"):
        loss = np.where(p > 0, np.log(p) - np.log(q), -np.inf)
    finite = loss[np.isfinite(loss)]
    edges = np.linspace(finite.min(), finite.max(), _OUTCOMES) if finite.size else np.zeros(1)
    group = np.where(np.isfinite(loss), np.digitize(loss, edges), np.where(loss > 0, _OUTCOMES + 1, -1))
    laws: list[list[int | str]] = [[], []]
    for one in np.unique(group):
        inside = group == one
        low, high = Fraction(float(p[inside].sum())), Fraction(float(q[inside].sum()))
        laws[0].append(number(Fraction(math.floor(low * _UNIT), _UNIT)))
        possible = bool(np.isfinite(pair.outcomes.log_q[inside]).any())  # though its probability may underflow
        laws[1].append(number(Fraction(max(math.ceil(high * _UNIT), int(possible)), _UNIT)))
    return laws


def _impossible_answers(priced: Priced) -> Json | None:
    """Answers of a sparse vector with exact queries that one of two neighbours cannot give; None without one."""
    found = (one for one in priced.declaration.releases if isinstance(one, SparseVector))
    one = next((one for one in found if one.query_scale is None and not one.monotone), None)
    if one is None or one.queries.number(priced.values) < 2:
        return None
    move = one.sensitivity.rational(priced.values)
    if move is None or move <= 0:
        return None
    first, second = [0, number(move)], [number(move), 0]
    return {"answers": {"release": one.name, "above": [False, True], "first": first, "second": second}}


def _usable(one: Procedure, priced: Priced) -> bool:
    """Whether the checker computes the loss of a release in the claim's currency."""
    if not isinstance(one, Release):
        known = NoisyMax | ScoredChoice | GaussianNoisyMax | GaussianSparseVector | OwnMechanism
        return isinstance(one, known | RandomisedResponse | UnaryEncoding)
    curve = isinstance(priced.declaration.claim.guarantee, ApproxDP)
    return "outputs" in one.draw.across or not (curve and isinstance(one.mechanism, DiscreteGaussian))


def _user(user: Any, seen: list[Release]) -> list[Json]:
    if user is None:
        return []
    if isinstance(user, Trajectories):
        _check_length(user.horizon)
        return [
            {
                "states": user.states[row].tolist(),
                "actions": user.actions[row].tolist(),
                "rewards": [number(Fraction(reward)) for reward in user.rewards[row].tolist()],
            }
            for row in range(user.users)
        ]
    if isinstance(user, Regressors):
        _check_length(user.horizon)
        return [_regressors(user, row, seen) for row in range(user.users)]
    if isinstance(user, Vectors):
        return [{"vectors": {one.name: [_rounded(x) for x in row] for one in seen}} for row in user.rows.tolist()]
    raise CertificateError(f"the pair is of {type(user).__name__}, which has no form")


def _check_length(steps: int) -> None:
    if steps > _MOST_STEPS:
        raise CertificateError(f"the trajectories of the pair have {steps} steps, more than {_MOST_STEPS}")


def _regressors(user: Regressors, row: int, seen: list[Release]) -> Json:
    features = {
        name: [[_rounded(x) for x in vector] for vector in column[row].tolist()]
        for name, column in user.vectors.items()
    }
    targets: dict[str, list[int | str]] = {}
    weights: dict[str, list[int | str]] = {}
    for one in seen:
        statistic = one.statistic
        if isinstance(statistic, FeatureSums):
            column = user.column("targets", statistic.target.name)[row].tolist()
            targets[one.name] = [number(Fraction(y) ** statistic.power) for y in column]
        if isinstance(statistic, GramMatrices | FeatureSums) and statistic.weight is not None:
            column = user.column("weights", statistic.weight.name)[row].tolist()
            weights[one.name] = [_rounded(w) for w in column]
    found: Json = {"features": features}
    found |= {"targets": targets} if targets else {}
    return found | ({"weights": weights} if weights else {})


def _rounded(x: float) -> int | str:
    """A coordinate rounded towards 0."""
    return number(Fraction(math.trunc(x * _GRID), _GRID))


def _best_order(priced: Priced, witness: Witness, seen: list[Release]) -> Fraction:
    """Order at which the divergence of the pair over the order is largest, among some."""

    def divergence(order: Fraction) -> float:
        a, found = float(order), 0.0
        for one in seen:
            moved = one.moved(witness.pair, priced.values)
            scale = one.mechanism.at(one.quietest(priced.values)).scale
            for change in abs(moved.change) / scale:
                if one.mechanism.law.gaussian:
                    found += moved.times * a * change**2 / 2
                else:
                    grows, falls = (a - 1) * change + math.log(a), -a * change + math.log(a - 1)
                    found += moved.times * (float(_log_add(grows, falls)) - math.log(2 * a - 1)) / (a - 1)
        return found / a

    return max(_ORDERS, key=divergence)


def _log_add(left: float, right: float) -> float:
    high, low = max(left, right), min(left, right)
    return high + math.log1p(math.exp(low - high))
