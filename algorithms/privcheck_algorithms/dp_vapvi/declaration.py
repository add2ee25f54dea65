"""Releases of DP-VAPVI (Qiao & Wang 2022, Algorithm 2): five statistics per step, once, split over two halves.

The experiments do not split the users (section 5): `dp-vapvi-unsplit` is that declaration. Before the declarations come
the features of the paper's synthetic linear MDP (Appendix G), and the pair of users that differs most under them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Regressors
from privcheck.declare.declaration import L2, Assumption, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin, Statement, public
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.runtime.registry import Reading
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import Expr, H, d, expression, h, rho, sqrt
from privcheck_algorithms.papers import THEOREM_4_1

STATES, ACTIONS, DIMENSION = 2, 100, 10
_LONGEST = 1_000_000  # steps of a pair that is written out


def make_printed_features() -> NDArray[np.float64]:
    """Features φ(s, a) as printed, of norm up to √7: eight bits of the action, δ and 1 − δ; shape (2, 100, 10)."""
    actions = np.arange(ACTIONS)
    bits = (actions[:, np.newaxis] >> np.arange(7, -1, -1)) & 1
    matches = (np.arange(STATES)[:, np.newaxis] == 0) == (actions == 0)  # δ(s, a), Appendix G
    phi = np.empty((STATES, ACTIONS, DIMENSION))
    phi[..., :8] = bits
    phi[..., 8], phi[..., 9] = matches, ~matches
    return phi


def yield_printed_pairs(values: Mapping[str, Fraction]) -> Iterator[tuple[Regressors, Regressors]]:
    """Yield two users at the printed features with the most different outer products, other values at their bounds.

    No printed feature has a negative entry, so that no two are opposite: the ball ‖φ‖ ≤ √7, which determines the
    charge, contains worse pairs than the benchmark itself.
    """
    steps = int(values["H"])
    if steps > _LONGEST:
        return
    phi = make_printed_features().reshape(-1, DIMENSION)
    products = phi @ phi.T
    squares = np.diag(products)
    apart = squares[:, np.newaxis] ** 2 + squares**2 - 2 * products**2  # ‖xxᵀ − zzᵀ‖_F²
    first, second = np.unravel_index(int(apart.argmax()), apart.shape)
    value = np.arange(steps - 1, -1, -1, dtype=np.float64)[np.newaxis]  # V_{h+1} at H − h
    columns = {"targets": {"V": value, "r+V": value + 1}, "weights": {"1/variance": np.ones((1, steps))}}
    one, other = (
        Regressors(vectors={"phi": np.broadcast_to(phi[row], (1, steps, DIMENSION))}, **columns)
        for row in (first, second)
    )
    yield one, other


_STEPS = Parameter(name="H", default=20, kind="count", meaning="steps of an episode")
_SIZE = Parameter(name="d", default=10, kind="count", meaning="dimension of the features")
_BUDGET = Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats")
FEATURES = Reading(
    name="features",
    ways=("unit", "printed"),
    meaning="unit: ‖φ‖ ≤ 1 as Theorem 4.1 presupposes; printed: Appendix G's own features, of norm up to √7",
)
VARIANCE_HALF, VALUE_HALF = _HALVES = "D′ (variance)", "D (values)"


def declare_split(readings: Mapping[str, str]) -> Declaration:
    """DP-VAPVI with two disjoint halves of the users, one for the variance, one for the values (section 4)."""
    return _declaration(readings, unsplit=False)


def declare_unsplit(readings: Mapping[str, str]) -> Declaration:
    """DP-VAPVI as its experiments run it: every user in both halves (section 5)."""
    return _declaration(readings, unsplit=True)


def _declaration(readings: Mapping[str, str], *, unsplit: bool) -> Declaration:
    printed = readings.get("features", "unit") == "printed"
    norm = sqrt(7) if printed else expression(1)
    dimension = expression(DIMENSION) if printed else d
    return Declaration(
        name="dp-vapvi-unsplit" if unsplit else "dp-vapvi",
        title="DP-VAPVI: offline value iteration with linear features"
        + (", the same users in both halves" if unsplit else ""),
        source="Qiao & Wang 2022, arXiv:2206.00810, Algorithm 2" + (" as in section 5" if unsplit else ""),
        relation=ReplaceOne("trajectory"),  # Definition 2.3 and Lemma 2.6
        releases=_releases(norm, dimension, *(("", "") if unsplit else (VARIANCE_HALF, VALUE_HALF))),
        claim=Claim(
            ZCDP(rho),
            source="Theorem 4.1; Lemma E.1",
            composition="zcdp",
            statements=(_statement(printed=printed, unsplit=unsplit),),
        ),
        origin=Origin(
            kind="printed",
            text="Qiao & Wang 2022, arXiv:2206.00810, Algorithm 2"
            + (" as section 5 runs it" if unsplit else "")
            + (" on appendix G's features" if printed else ""),
        ),
        parameters=(_STEPS, _BUDGET) if printed else (_STEPS, _SIZE, _BUDGET),
        assumptions=(
            Assumption(
                what="‖φ(s, a)‖",
                assumed=expression(1),  # section 2
                attained=norm,
                repair="divide φ by √7 and multiply ν and θ by it",
                source="Appendix G",
                bounds="phi",
            ),
        ),
        partitions=()
        if unsplit
        else (tuple(public(half, why="the episodes are split in two halves beforehand") for half in _HALVES),),
        candidates=yield_printed_pairs if printed else None,
    )


def _statement(*, printed: bool, unsplit: bool) -> Statement:
    """Theorem 4.1, with the reasons why it does not cover features that are too long, or data that are not split."""
    outside = [
        *(["it presupposes ‖φ‖ ≤ 1, and appendix G's features are longer"] if printed else []),
        *(["it is about split data, and section 5 runs the same users in both halves"] if unsplit else []),
    ]
    return replace(THEOREM_4_1, inapplicable="; ".join(outside))


def _releases(norm: Expr, dimension: Expr, first: str, second: str) -> tuple[Release, ...]:
    phi = Column("phi", norm, r"\phi")
    value = Column("V", H - h, "V")  # V_{h+1} ≤ H − h: Q is in [0, H − h + 1] (Algorithm 2, step 13)
    gain = Column("r+V", H - h + 1, "(r + V)")
    weight = Column("1/variance", 1, r"\sigma^{-2}")  # σ² = max(1, …) (Algorithm 2, step 8)
    steps = sqrt(H)  # the paper states sensitivities a step; H steps together make √H times them
    share = rho / (5 * H)  # ρ₀ (Algorithm 2, step 2)
    budget = ZCDP(rho / 5)  # each of H statistics ρ₀ (Lemma E.1)
    # the paper takes 1/√2 for the matrices (Lemma E.1): ‖D‖_F = 1, the add/remove figure, in units of GOE noise
    goe, frobenius = SymmetricGaussian(variance=1 / (4 * share), kind="goe"), L2(steps)
    return (
        Release(
            "squared values",
            FeatureSums(name="φ·V² sums", steps=H, dimension=dimension, vector=phi, target=value, power=2),
            Gaussian(variance=2 * H**4 / share),
            stated=L2(steps * 2 * H**2),
            source="Lemma E.1",
            budget=budget,
            users=first,
        ),
        Release(
            "values",
            FeatureSums(name="φ·V sums", steps=H, dimension=dimension, vector=phi, target=value),
            Gaussian(variance=2 * H**2 / share),
            stated=L2(steps * 2 * H),
            source="Lemma E.1",
            budget=budget,
            users=first,
        ),
        Release(
            "gram",
            GramMatrices(name="Gram matrices of φ", steps=H, dimension=dimension, vector=phi),
            goe,
            stated=frobenius,
            source="Lemma E.1",
            budget=budget,
            users=first,
        ),
        Release(
            "weighted gram",
            GramMatrices(name="weighted Gram matrices of φ", steps=H, dimension=dimension, vector=phi, weight=weight),
            goe,
            stated=frobenius,
            source="Lemma E.1",
            budget=budget,
            users=second,
        ),
        Release(
            "gains",
            FeatureSums(
                name="weighted φ·(r + V) sums", steps=H, dimension=dimension, vector=phi, target=gain, weight=weight
            ),
            Gaussian(variance=2 * H**2 / share),
            stated=L2(steps * 2 * H),
            source="Lemma E.1",
            budget=budget,
            users=second,
        ),
    )
