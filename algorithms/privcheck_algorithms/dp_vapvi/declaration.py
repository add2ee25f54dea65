"""What DP-VAPVI releases (Qiao & Wang 2022, Algorithm 2): five statistics a step, once, split over two halves.

The experiments do not split the users (section 5): `dp-vapvi-unsplit` is that declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privcheck.declaration import L2, Assumption, Claim, Declaration, Parameter, Release
from privcheck.guarantees import ZCDP
from privcheck.mechanisms import Gaussian, SymmetricGaussian
from privcheck.public import public
from privcheck.registry import Reading
from privcheck.relations import ReplaceOne
from privcheck.statements import Origin, Statement
from privcheck.statistics import Column, FeatureSums, GramMatrices
from privcheck.symbols import Expr, H, d, expression, h, rho, sqrt
from privcheck_algorithms.dp_vapvi.features import DIMENSION, yield_printed_pairs
from privcheck_algorithms.printed import THEOREM_4_1

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
    """Returns DP-VAPVI with two disjoint halves of the users, one for the variance, one for the values (section 4)."""
    return _declaration(readings, unsplit=False)


def declare_unsplit(readings: Mapping[str, str]) -> Declaration:
    """Returns DP-VAPVI as its experiments run it: every user in both halves (section 5)."""
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
    """Returns Theorem 4.1, with why it says nothing of features that are too long, or of data that are not split."""
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
