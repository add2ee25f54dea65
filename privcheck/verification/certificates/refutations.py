"""Evidence against a claim: a pair of neighbours in exact numbers, and the releases whose loss exceeds it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.procedures import SparseVector
from privcheck.declare.releases import Release
from privcheck.declare.statistics import ClippedSums, FeatureSums, GramMatrices, OneStepEach, Vectors
from privcheck.declare.statistics.counts import CellSums, PooledSums
from privcheck.errors import CertificateError
from privcheck.pricing import Priced
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP
from privcheck.verification.certificates.canonical import Json, number
from privcheck.verification.witness import Witness

_GRID: Final = 2**40  # coordinates are rounded towards 0 to multiples of 1/_GRID, so that norms stay in bounds
_MOST_STEPS: Final = 4_000  # steps of a pair that is written out
_ORDERS: Final = tuple(Fraction(x) for x in ("1001/1000", "11/10", "3/2", "2", "3", "5", "10", "30", "100", "1000"))


def refute_with_pair(priced: Priced, witness: Witness | None) -> Json:
    """Evidence of a refutation: the user in D and in D′, and the releases that tell them apart.

    Raises:
        CertificateError: The pair is not one of trajectories or vectors, or is too long.
    """
    declaration = priced.declaration
    if witness is None:
        raise CertificateError("the claim fails without a pair of neighbours")
    if (answers := _impossible_answers(priced)) is not None:
        return answers
    if witness.by:
        raise CertificateError(f"the pair is one of scores or answers of {', '.join(witness.by)}, not of data")
    if " and " in witness.group:
        raise CertificateError("the user of the pair is in several groups")
    seen = [one for one in declaration.seen_by(witness.group) if _usable(one, priced)]
    if not seen:
        raise CertificateError("no release of the pair has an exact loss in a certificate")
    evidence: Json = {
        "pair": [_user(user, seen) for user in witness.pair],
        "using": [one.name for one in seen],
    }
    if witness.group:
        evidence["part"] = witness.group
    if isinstance(declaration.claim.guarantee, ZCDP) and not all(one.mechanism.law.gaussian for one in seen):
        evidence["order"] = number(_best_order(priced, witness, seen))
    return evidence


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


_COMPUTED: Final = (CellSums, PooledSums, GramMatrices, FeatureSums, OneStepEach, ClippedSums)


def _usable(one: Release, priced: Priced) -> bool:
    """Whether the checker computes the loss of a release in the claim's currency."""
    claim, law = priced.declaration.claim.guarantee, one.mechanism.law
    if not isinstance(one.statistic, _COMPUTED):
        return False
    shared = "outputs" in one.draw.across
    if isinstance(claim, GaussianDP):
        return law.gaussian or shared
    if isinstance(claim, ApproxDP):
        gaussian = any(other.mechanism.law.gaussian for other in priced.declaration.noisy)
        return law.gaussian or shared or not gaussian
    return True


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
