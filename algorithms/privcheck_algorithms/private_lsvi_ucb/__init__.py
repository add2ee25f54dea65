"""Two private LSVI-UCBs that Sahu 2025 compares with: fixed batches (Luyo et al.), determinant updates (Ngo et al.).

The five papers do not describe their releases or noise (see README.md): the declarations have LSVI-UCB's pair of
statistics on the two schedules, with noise calibrated to the same budget ρ as DP-LSVI-UCB++. *Centred*, the sums are of
φ·y with y = (r − ½ + V(s′) − c)/(1 + span), c the middle of V_{h+1} and span the difference of its largest and least
value, both from the billboard: |r − ½| ≤ ½ and |V − c| ≤ span/2, so that |y| ≤ ½. As y·φ = |y|·(±φ), and as ±φ have one
Gram matrix, these are sums of |y| times a vector as long as φ; verification's pair is one of two users.

The agent is LSVI-UCB (Jin et al. 2020, Algorithm 1) with the regression of `linear.lsvi`; the times of its releases and
their noise follow the declaration. Constants are options; no claim depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import EveryEpisode, Schedule, Tree
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.runtime.online import Player
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.runtime.results import OnlineRequest
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import Expr, H, K, d, expression, h, maximum, minimum, rho, symbol
from privcheck_algorithms.linear.players import (
    BONUS,
    CENTRED,
    FLOOR,
    GROWTH,
    INSTANCE,
    NOISE_BONUS,
    NOISE_RIDGE,
    RIDGE,
    lsvi_player,
    private_rule,
    refuse,
)
from privcheck_algorithms.papers import LINEAR, LUYO_RATE, NGO_RATE, SAHU_CODE

batches, updates = symbol("B", "count"), symbol("N", "count")

_RELATION = ReplaceOne("trajectory")
_STEPS = Parameter(name="H", default=20, kind="count", meaning="steps of an episode")
_SIZE = Parameter(name="d", default=10, kind="count", meaning="dimension of the features")
_EPISODES = Parameter(name="K", default=1_000, kind="count", meaning="episodes, a user each")
_BATCHES = Parameter(name="B", default=50, kind="count", meaning="batches of equal length that the episodes are cut in")
_UPDATES = Parameter(name="N", default=50, kind="count", meaning="policy updates, at most; none follows after so many")
_BUDGET = Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats")

GRAM = Reading(
    name="gram",
    ways=("tree", "cumulative"),
    meaning="how the Gram matrices leave: a binary tree over the batches, or the sum of all users so far each time",
)


def luyo(readings: Mapping[str, str]) -> Declaration:
    """LSVI-UCB with updates after each of B fixed batches (Sahu 2025, section 1.1)."""
    anew = EveryEpisode(outputs=batches - 1, after="batch")  # the last batch's data is never used
    return _declaration(
        name="luyo-lsvi-ucb",
        title="private LSVI-UCB with fixed batches (Luyo et al.)",
        gram=Tree(leaves=batches - 1) if readings.get("gram", "tree") == "tree" else anew,
        values=anew,
        parameters=(_STEPS, _SIZE, _BATCHES, _BUDGET),
        centred=readings.get(CENTRED.name) == "on",
        changed="the noise is the least that makes the claim true; the authors' program "
        f"({SAHU_CODE}/DP_LSVI_Luyo.py) never learns: code line 396 waits for an episode before the first",
    )


def ngo(readings: Mapping[str, str]) -> Declaration:
    """LSVI-UCB with updates when a determinant doubles, Gram matrices from a tree (Sahu 2025, section 1.1)."""
    return _declaration(
        name="ngo-lsvi-ucb",
        title="private LSVI-UCB with determinant updates and a tree (Ngo et al.)",
        gram=Tree(leaves=K - 1),
        values=EveryEpisode(outputs=minimum(updates, K - 1), after="policy update"),
        parameters=(_STEPS, _SIZE, _EPISODES, _UPDATES, _BUDGET),
        centred=readings.get(CENTRED.name) == "on",
        changed="the noise is the least that makes the claim true; that of the authors' program is judged as "
        "`published-ngo-lsvi-ucb`",
    )


def _declaration(
    *,
    name: str,
    title: str,
    gram: Schedule,
    values: Schedule,
    parameters: tuple[Parameter, ...],
    centred: bool,
    changed: str,
) -> Declaration:
    phi = Column("phi", 1, r"\phi")
    gain, words = Column("r+V", H - h + 1, "(r + V)"), "φ·(r + V) sums"
    if centred:
        phi, words = Column("phi", 1, r"\pm\phi"), "φ·(r − ½ + V − c)/(1 + span V) sums"
        gain = Column("|r-1/2+V-c|/(1+span V)", expression(1) / 2, r"\frac{|r - 1/2 + V - c|}{1 + \mathrm{span} V}")
    matrices = GramMatrices(name="Gram matrices of φ", steps=H, dimension=d, vector=phi)
    sums = FeatureSums(name=words, steps=H, dimension=d, vector=phi, target=gain)
    return Declaration(
        name=name,
        title=title,
        source="compared with in Sahu 2025, arXiv:2504.09339, sections 1.1 and 4",
        relation=_RELATION,
        releases=(
            Release(
                "gram",
                matrices,
                SymmetricGaussian(variance=_variance(matrices, gram), kind="upper"),
                schedule=gram,
                budget=ZCDP(rho / 2),
            ),
            Release("gains", sums, Gaussian(variance=_variance(sums, values)), schedule=values, budget=ZCDP(rho / 2)),
        ),
        claim=Claim(
            ZCDP(rho),
            source='Sahu 2025, section 4: "with a fixed privacy budget"',
            joint=Joint(sees=("billboard", "own data")),
            composition="zcdp",
        ),
        origin=Origin(
            kind="reconstructed",
            text="Sahu 2025, arXiv:2504.09339, sections 1.1 and 4, which describe it in words",
            changed=changed,
        ),
        parameters=parameters,
    )


def _variance(statistic: GramMatrices | FeatureSums, schedule: Schedule) -> Expr:
    """Variance that makes all outputs together ρ/2-zCDP; at least 1 output counts, so that the law is valid."""
    return maximum(1, schedule.times) * statistic.sensitivity(_RELATION).l2 ** 2 / rho


EPISODES = Parameter(name="K", default=1_000, kind="count", meaning="episodes, a user each, cut in B batches")


def luyo_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """LSVI-UCB with a plan after each of B batches of equal length, or after each user if K < B.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; the agent plans as with noise.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, or an option out of range.
    """
    refuse(request)
    batches = min(int(request.values["B"]), request.episodes)
    rule = private_rule(request, batches=batches, most=None, noiseless=noiseless)
    return lsvi_player(request, rule, label=_label("luyo-lsvi-ucb", noiseless=noiseless))


def ngo_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """LSVI-UCB with a plan whenever a noisy determinant has doubled, at most N times.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; the agent plans as with noise.

    Raises:
        ParameterError: As `luyo_player`.
    """
    refuse(request)
    rule = private_rule(request, batches=0, most=int(request.values["N"]), noiseless=noiseless)
    return lsvi_player(request, rule, label=_label("ngo-lsvi-ucb", noiseless=noiseless))


def _label(name: str, *, noiseless: bool) -> str:
    return f"{name}, noiseless" if noiseless else name


LUYO = Algorithm(
    name="luyo-lsvi-ucb",
    title="private LSVI-UCB with fixed batches (Luyo et al.)",
    source="compared with in Sahu 2025, arXiv:2504.09339",
    paper=LINEAR,
    declare=luyo,
    readings=(GRAM, CENTRED),
    options=(EPISODES, BONUS, NOISE_BONUS, RIDGE, NOISE_RIDGE, FLOOR),
    instead="calibrated-lsvi-ucb",
    online=luyo_player,
    instance=INSTANCE,
    twin="lsvi-ucb",
    twin_settings={"growth": "1", "batches": "B"},  # it plans at the same times
    rate=LUYO_RATE,
)

NGO = Algorithm(
    name="ngo-lsvi-ucb",
    title="private LSVI-UCB with determinant updates and a tree (Ngo et al.)",
    source="compared with in Sahu 2025, arXiv:2504.09339",
    paper=LINEAR,
    declare=ngo,
    readings=(CENTRED,),
    options=(BONUS, NOISE_BONUS, RIDGE, NOISE_RIDGE, FLOOR, GROWTH),
    instead="calibrated-lsvi-ucb",
    online=ngo_player,
    instance=INSTANCE,
    twin="lsvi-ucb",
    rate=NGO_RATE,
)

__all__ = ["LUYO", "NGO"]
