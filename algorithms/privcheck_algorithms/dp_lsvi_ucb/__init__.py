"""DP-LSVI-UCB++ (Sahu 2025, Algorithm 1), declared with fresh noise, and with one draw as printed.

Four statistics per step are released again after every episode. Theorem A.1 composes 4HK independent releases; the
algorithm as printed draws their noise once (Algorithm 1, step 1) and adds it again in every episode (step 26 adds K₁
once more each time). The two declarations are equal otherwise.

The agent is LSVI-UCB++ on the declared releases, with its steps in `linear.lsvi_plus_plus`. The declaration decides
whether noise is fresh for every output or one draw for all, its scale and the length of features; constants are
options, and no claim depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privcheck.declare.declaration import L2, Assumption, Claim, Declaration, Draw, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import EveryEpisode
from privcheck.declare.statements import Origin, Statement
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.runtime.online import Player
from privcheck.runtime.registry import Algorithm, AuditInstance, Reading
from privcheck.runtime.results import OnlineRequest
from privcheck.terms.guarantees import ZCDP, ApproxDP
from privcheck.terms.symbols import Expr, H, K, before, d, delta, expression, log, rho, sqrt
from privcheck_algorithms.dp_lsvi_ucb.conformance import LINES
from privcheck_algorithms.linear.audit_worlds import audit_world
from privcheck_algorithms.linear.players import (
    CLOSELY,
    CONSTANTS,
    DOUBT,
    FAILURE,
    FLOOR,
    GROWTH,
    NOISE_BONUS,
    NOISE_RIDGE,
    WEIGHTED_BONUS,
    WEIGHTED_RIDGE,
    private_weighted_rule,
    weighted_player,
)
from privcheck_algorithms.papers import DP_LSVI_RATE, LINEAR, THEOREM_A_1, THEOREM_A_1_PROOF

SIZES = (
    Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
    Parameter(name="K", default=1_000, kind="count", meaning="episodes, a user each"),
    Parameter(name="d", default=10, kind="count", meaning="dimension of the features"),
)
_RHO = Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats")
_DELTA = Parameter(name="delta", default="1e-5", kind="probability", meaning="δ′ of the claim")

CLAIM = Reading(
    name="claim",
    ways=("zcdp", "approx"),
    meaning="zcdp: the releases are ρ-zCDP, on which Theorem A.1 rests; approx: (ρ + 2√(ρ ln 1/δ), δ), its conclusion",
)
BOUNDED = Assumption(
    what="|Q̂| and |Q̌|",
    assumed=H,  # of V in Theorem A.1's proof
    attained=None,
    repair="clip both to [0, H]: Q̂ from below as well, Q̌ from below instead of from above",
    source="Algorithm 1, steps 10 and 11",
)
NoiseDraws = Literal["fresh", "one draw"]
Pessimism = Literal["repaired", "as printed"]


def declare_fresh(readings: Mapping[str, str]) -> Declaration:
    """DP-LSVI-UCB++ with fresh noise at each (k, h), as Theorem A.1's proof composes it."""
    return declaration(
        readings,
        name="dp-lsvi-ucb-pp",
        title="DP-LSVI-UCB++: optimistic weighted regression in linear MDPs, fresh noise",
        source="Sahu 2025, arXiv:2504.09339, Algorithm 1 with the releases of Theorem A.1",
        noise="fresh",
        origin=Origin(
            kind="repaired",
            text="Sahu 2025, arXiv:2504.09339, Algorithm 1 with fresh noise in every episode, as section 3 says",
            changed="Q̂ and Q̌ are clipped to [0, H]; with the clips that steps 10 and 11 print, V has a Gaussian lower "
            "tail, its Rényi divergence is infinite from an order of about 10⁴ on, and no finite ρ follows",
        ),
    )


def declare_as_printed(readings: Mapping[str, str]) -> Declaration:
    """DP-LSVI-UCB++ as Algorithm 1 is printed: φ₁, φ₂, φ₃ and K₁ drawn once (Algorithm 1, step 1)."""
    return declaration(
        readings,
        name="dp-lsvi-ucb-pp-as-printed",
        title="DP-LSVI-UCB++ as printed: one draw of noise for all episodes",
        source="Sahu 2025, arXiv:2504.09339, Algorithm 1",
        noise="one draw",
        pessimism="as printed",
        origin=Origin(
            kind="printed", text="Sahu 2025, arXiv:2504.09339, Algorithm 1, whose step 1 draws the noise once"
        ),
    )


def declaration(
    readings: Mapping[str, str],
    *,
    name: str,
    title: str,
    source: str,
    noise: NoiseDraws,
    origin: Origin,
    pessimism: Pessimism = "repaired",
    norm: int = 1,
    assumptions: tuple[Assumption, ...] = (BOUNDED,),
    statements: tuple[Statement, ...] = (THEOREM_A_1_PROOF, THEOREM_A_1),
) -> Declaration:
    """Declaration of the algorithm's releases, with fresh or reused noise.

    Args:
        readings: The readings.
        name: Name of the declaration.
        title: Title of the declaration.
        source: Source of the declaration.
        noise: Fresh for every output, or one draw for all.
        origin: Origin of the declared text.
        pessimism: Range of V̌: [0, H] as repaired, or [−H, 0] with Q̌ clipped at 0 from above as printed.
        norm: The largest ‖φ(s, a)‖.
        assumptions: Assumptions of the sensitivities: bounds on values, whether or not they are ensured.
        statements: Statements printed in the paper.
    """
    approx = readings.get("claim", "zcdp") == "approx"
    # Lemma 2.1
    guarantee = ApproxDP(rho + 2 * sqrt(rho * log(1 / delta)), delta) if approx else ZCDP(rho)
    return Declaration(
        name=name,
        title=title,
        source=source,
        relation=ReplaceOne("trajectory"),  # Definition 2.2: sequences that differ on the k-th user
        releases=_releases(norm, pessimism, Draw(across=("outputs",)) if noise == "one draw" else Draw()),
        claim=Claim(
            guarantee,
            source="Theorem A.1 and its proof",
            joint=Joint(sees=("billboard", "own data")),  # Theorem A.1's proof; step 23: a = argmax Q̂(s, ·)
            composition="zcdp",
            statements=statements,
        ),
        origin=origin,
        parameters=(*SIZES, _RHO, *((_DELTA,) if approx else ())),
        assumptions=(*assumptions,),
    )


def _releases(norm: int, pessimism: Pessimism, draw: Draw) -> tuple[Release, ...]:
    phi = Column("phi", norm, r"\phi")
    reach = H * before(H)  # V of step h + 1 is in [0, H], and 0 after the last step
    optimistic = Column("V optimistic", reach, r"\hat V")
    sign = (
        "-" if pessimism == "as printed" else ""
    )  # the column is −V̌, whose sums are the released ones but for their sign
    pessimistic = Column(f"{sign}V pessimistic", reach, rf"{sign}\check V")
    weight = Column("1/variance", 1 / H**2, r"\bar\sigma^{-2}")  # σ̄ ≥ H, step 25
    share = rho / (4 * H * K)  # ρ₀, step 1
    values, squares = Gaussian(variance=2 * H**2 / share), Gaussian(variance=2 * H**4 / share)
    matrices = SymmetricGaussian(variance=1 / (4 * share), kind="goe")
    return (
        _release("optimistic values", _sums("σ̄⁻²φ·V̂ sums", phi, optimistic, weight), values, 2 * H, draw),
        _release("pessimistic values", _sums("σ̄⁻²φ·V̌ sums", phi, pessimistic, weight), values, 2 * H, draw),
        _release("squared values", _sums("σ̄⁻²φ·V̂² sums", phi, optimistic, weight, 2), squares, 2 * H**2, draw),
        _release(
            "gram",
            GramMatrices(name="σ̄⁻²φφᵀ sums", steps=H, dimension=d, vector=phi, weight=weight),
            matrices,
            expression(1),  # Theorem A.1's proof: 1/√2 in units of GOE noise, ‖D‖_F = 1
            draw,
        ),
    )


def _sums(name: str, vector: Column, target: Column, weight: Column, power: int = 1) -> FeatureSums:
    return FeatureSums(name=name, steps=H, dimension=d, vector=vector, target=target, power=power, weight=weight)


def _release(
    name: str, statistic: FeatureSums | GramMatrices, mechanism: Gaussian | SymmetricGaussian, stated: Expr, draw: Draw
) -> Release:
    """One of the four statistics, with all H steps, after every episode.

    Args:
        name: Name of the release.
        statistic: Statistic summed over the users so far.
        mechanism: Its noise.
        stated: The sensitivity of one step as the paper states it.
        draw: Whether the noise is fresh.
    """
    return Release(
        name,
        statistic,
        mechanism,
        stated=L2(sqrt(H) * stated),  # H steps together make √H times it
        source="Theorem A.1",
        schedule=EveryEpisode(outputs=K - 1),  # steps 5 to 7 of episodes 2 to K; Λ̃ of K + 1 is never used
        draw=draw,
        counted=K,  # section 3: 4HK statistics
        budget=ZCDP(rho / 4),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DpLsviUcb:
    """Maker of the agent registered under a name (a `MakePlayer`).

    Attributes:
        name: Name of the agent.
        weighted: Whether σ̄ is estimated; else it is H throughout.
    """

    name: str
    weighted: bool = True

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Player of DP-LSVI-UCB++ in its world.

        Args:
            request: The request.
            noiseless: Whether to draw no noise; the agent plans as with noise.

        Raises:
            ParameterError: Sizes other than the environment's, no episode, or an option out of range.
        """
        rule = private_weighted_rule(request, estimates=self.weighted, noiseless=noiseless)
        return weighted_player(request, rule, label=f"{self.name}, noiseless" if noiseless else self.name)


OPTIONS = (WEIGHTED_BONUS, NOISE_BONUS, WEIGHTED_RIDGE, NOISE_RIDGE, FLOOR, GROWTH, DOUBT)

# one step: noise is smallest beside what a user moves, and the bonus follows the Gram matrices, which is all they move
INSTANCE = AuditInstance(  # of ridges and bonuses tried, those under which most is seen of fresh noise
    sizes={"H": 1, "K": 4, "d": 2, "S": 24},
    options={**CLOSELY, "noise_ridge": Fraction(1), "noise_bonus": Fraction(1, 2)},
    world=audit_world,
)

# Lemma A.1, Theorem 3.2 and step 25; what follows the noise is not in the paper, and λ̃ takes its place
PRINTED = {"constants": "printed", "bonus": "1", "noise_bonus": "0", "noise_ridge": "0", "doubt": "1"}

FRESH = Algorithm(
    name="dp-lsvi-ucb-pp",
    title="DP-LSVI-UCB++: optimistic weighted regression in linear MDPs, fresh noise",
    source="Sahu 2025, arXiv:2504.09339, Algorithm 1 with the releases of Theorem A.1",
    paper=LINEAR,
    declare=declare_fresh,
    readings=(CLAIM, CONSTANTS),
    options=(*OPTIONS, FAILURE),
    instead="calibrated-lsvi-ucb",
    printed=PRINTED,
    online=DpLsviUcb(name="dp-lsvi-ucb-pp"),
    instance=INSTANCE,
    twin="lsvi-ucb-pp",
    twin_settings={"centred": "off"},  # Algorithm 1 regresses V itself
    conformance=LINES,
    rate=DP_LSVI_RATE,
)

ONE_DRAW = AuditInstance(  # so many marks that one user moves the policy by some, where outputs share their noise
    sizes={**INSTANCE.sizes, "S": 204},
    options={**CLOSELY, "noise_ridge": Fraction(4), "noise_bonus": Fraction(14, 5)},
    world=audit_world,
)

AS_PRINTED = Algorithm(
    name="dp-lsvi-ucb-pp-as-printed",
    title="DP-LSVI-UCB++ as printed: one draw of noise for all episodes",
    source="Sahu 2025, arXiv:2504.09339, Algorithm 1",
    paper=LINEAR,
    declare=declare_as_printed,
    readings=(CLAIM, CONSTANTS),
    options=(*OPTIONS, FAILURE),
    instead="calibrated-lsvi-ucb",
    printed=PRINTED,
    online=DpLsviUcb(name="dp-lsvi-ucb-pp-as-printed"),
    instance=ONE_DRAW,
    twin="lsvi-ucb-pp",
    twin_settings={"centred": "off"},  # Algorithm 1 regresses V itself
    conformance=LINES,
    rate=DP_LSVI_RATE,
)

__all__ = ["AS_PRINTED", "FRESH", "ONE_DRAW", "OPTIONS"]
