"""The published experiment code of Sahu 2025, declared as it runs: DP-LSVI-UCB++ and the baseline of Ngo et al.

Both use features of norm 3, while the analysis assumes 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privcheck.declare.declaration import Assumption, Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches, EveryEpisode
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import H, K, before, d, expression, log, minimum, rho, symbol
from privcheck_algorithms.dp_lsvi_ucb import CLAIM, ONE_DRAW, OPTIONS, DpLsviUcb, declaration
from privcheck_algorithms.papers import LINEAR, SAHU_CODE, SECTION_4, THEOREM_A_1, THEOREM_A_1_PROOF

_NORM = 3
_OTHER = "the program draws its noise once and has features of norm 3"
_UPDATES = symbol("N", "count")
_LONGER = Assumption(
    what="‖φ(s, a)‖",
    assumed=expression(1),
    attained=expression(_NORM),
    repair="divide φ by 3 and multiply ν and θ by it",
    source="section 2; the published code's features",
    bounds="phi",
)


def declare_published(readings: Mapping[str, str]) -> Declaration:
    """Experiment code: φ₁, φ₂, φ₃, K₁ drawn once and reused for all k and h, ‖φ‖ = 3, σ̄ = H throughout.

    σ̄ = H makes every weight 1/H², its bound. The determinant test, which is always true, affects the use of the
    releases, not the releases.
    """
    return declaration(
        readings,
        name="published-lsvi-ucb-pp",
        title="DP-LSVI-UCB++ as its published experiment code runs it",
        source="Sahu 2025, arXiv:2504.09339, published experiment code",
        noise="one draw",
        pessimism="as printed",  # code line 452: the minimum with 0
        origin=Origin(
            kind="published code",
            text=f"{SAHU_CODE}/DP_LSVI_UCB_PlusPlus.py: "
            "one draw in code lines 132–137, added again in 395 and 401–403; "
            "features in code lines 214–216; σ̄ = H in code line 369",
        ),
        norm=_NORM,
        assumptions=(
            Assumption(
                what="|Q̌|",
                assumed=H,
                attained=None,
                repair="clip qQ to [−H, 0] (code line 452); pQ is clipped to [0, H] (code line 451)",
                source="code line 452, the minimum with 0",
            ),
            _LONGER,
        ),
        statements=(
            SECTION_4,
            replace(THEOREM_A_1_PROOF, inapplicable=_OTHER),
            replace(THEOREM_A_1, inapplicable=_OTHER),
        ),
    )


def declare_ngo(_readings: Mapping[str, str]) -> Declaration:
    """LSVI-UCB of Ngo et al. in the program: every user's φφᵀ with separate noise, new sums at every update.

    The Gram matrix grows by one noisy φφᵀ per episode (code lines 376–382), so that its differences show each of them,
    without a tree.
    With fewer episodes than some 4 400 at ρ = 1 the program makes no update: N_max is negative there (line 89).
    """
    phi = Column("phi", _NORM, r"\phi")
    gain = Column("r+V", 1 + H * before(H), "(r + V)")  # r ∈ {0, 1}, V of the next step in [0, H], 0 after the last
    return Declaration(
        name="published-ngo-lsvi-ucb",
        title="LSVI-UCB of Ngo et al. as Sahu's published experiment code runs it",
        source="Sahu 2025, arXiv:2504.09339, published experiment code",
        relation=ReplaceOne("trajectory"),
        releases=(
            Release(
                "gram",
                GramMatrices(name="φφᵀ of a user", steps=H, dimension=d, vector=phi),
                SymmetricGaussian(variance=log(K) ** 2 / (4 * rho), kind="goe"),  # (Z + Zᵀ)/2, Z of twice that
                source="code lines 376–382",
                schedule=Batches(size="one user"),
            ),
            Release(
                "gains",
                FeatureSums(name="φ·(r + V) sums", steps=H, dimension=d, vector=phi, target=gain),
                Gaussian(variance=6 * H**2 * _UPDATES / rho),
                source="code lines 325–329",
                schedule=EveryEpisode(outputs=minimum(_UPDATES - 1, K - 1), after="policy update"),
            ),
        ),
        claim=Claim(
            ZCDP(rho),
            source="section 4, its fixed privacy budget",
            joint=Joint(sees=("billboard", "own data")),
            statements=(SECTION_4,),
        ),
        parameters=(
            Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
            Parameter(name="K", default=20_000, kind="count", meaning="episodes, a user each", least=2),
            Parameter(name="d", default=10, kind="count", meaning="dimension of the features"),
            Parameter(
                name="N",
                default=168,
                kind="count",
                meaning="N_max of line 89; for another H, K, d or ρ the program's own, at its failure probability .01",
                least=2,
                follows=_count_updates,
            ),
            Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats"),
        ),
        assumptions=(_LONGER,),
        origin=Origin(kind="published code", text=f"{SAHU_CODE}/DP_LSVI_Ngo.py, lines 82–89, 325–329 and 376–382"),
    )


def _count_updates(values: Mapping[str, Fraction]) -> Fraction:
    """Value of N_max as the program computes it, in floats, at its default failure probability p = .01."""
    H, K, d, rho = (float(values[name]) for name in ("H", "K", "d", "rho"))
    ridge = math.log(K) * ((6 * math.sqrt(d) + 1) + 2 * math.log(3 * K * H / 0.01)) / math.sqrt(2 * rho)  # line 83
    inner = math.log(1 + K / (ridge * d))
    updates = int(d * H * math.log2(inner))
    if updates < 2:
        message = f"at these sizes the program makes no update, as its N_max is {updates}: it learns nothing from users"
        raise ParameterError(f"{message}; choose a larger K or ρ", name="K", given=values["K"])
    return Fraction(updates)


_LONG = {"noise_ridge": Fraction(36), "noise_bonus": Fraction(42, 5)}  # 3² and 3 times that of features of norm 1

PUBLISHED = Algorithm(
    name="published-lsvi-ucb-pp",
    title="DP-LSVI-UCB++ as its published experiment code runs it",
    source="Sahu 2025, arXiv:2504.09339, published experiment code",
    paper=LINEAR,
    declare=declare_published,
    readings=(CLAIM,),
    options=OPTIONS,
    instead="calibrated-lsvi-ucb",
    printed={"doubt": "1"},
    online=DpLsviUcb(name="published-lsvi-ucb-pp", weighted=False),
    instance=replace(ONE_DRAW, options={**ONE_DRAW.options, **_LONG}),
    twin="published-lsvi-ucb-pp",  # unlike LSVI-UCB++ the program has σ̄ = H throughout, and longer features
)

PUBLISHED_NGO = Algorithm(
    name="published-ngo-lsvi-ucb",
    title="LSVI-UCB of Ngo et al. as Sahu's published experiment code runs it",
    source="Sahu 2025, arXiv:2504.09339, published experiment code",
    paper=LINEAR,
    declare=declare_ngo,
)

__all__ = ["PUBLISHED", "PUBLISHED_NGO"]
