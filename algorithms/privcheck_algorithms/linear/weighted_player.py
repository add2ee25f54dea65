"""LSVI-UCB++ as a player: its options, the arrays of a replicate, and its audit adapter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.declare.declaration import Parameter
from privcheck.declare.statistics import GramMatrices
from privcheck.runtime.online import Player, Record, Replicate, Tables, blank, grid
from privcheck.runtime.registry import Reading
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.optimism import share_at_limit
from privcheck_algorithms.kernels.sparse_mdp import Walk, compress
from privcheck_algorithms.linear.lsvi import Room
from privcheck_algorithms.linear.lsvi_player import read_options, refuse, refuse_memory, tabulate
from privcheck_algorithms.linear.weighted import (
    EXACT,
    FRESH,
    HIGH,
    ONE_DRAW,
    Agent,
    Board,
    Data,
    NoiseStream,
    Plan,
    Rule,
    play,
)
from privcheck_algorithms.online.private import NOISE, declared

Array = NDArray[np.float64]

SUMS: Final = ("optimistic values", "pessimistic values", "squared values")
RIDGE = Parameter(name="ridge", default=1, kind="positive", meaning="λ, in units of 1/H²")
BONUS = Parameter(name="bonus", default="0.8", kind="real", meaning="β̂ and β̌")
CONSTANTS = Reading(
    name="constants",
    ways=("scaled", "printed"),
    meaning="scaled: ridge 1/H², β̂ and β̌ as set, and what follows the noise; printed: 2λ̃ of Lemma A.1, β̂, β̌ and β̄ of "
    "Theorem 3.2, E and D of Lemma B.3, times ridge and bonus",
)
FAILURE = Parameter(
    name="failure", default="0.1", kind="probability", meaning="with constants=printed: δ of Lemma A.1 and Theorem 3.2"
)
DOUBT = Parameter(
    name="doubt", default=0, kind="real", meaning="factor of 2d³H²‖φ‖^½ in σ̄; the paper's: 1, which stops learning"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedFace:
    """Audit adapter: four statistics after every episode but the last.

    Attributes:
        K: Number of episodes.
    """

    K: int
    policy: tuple[str, ...] = ("told", "actions", "upper", "lower", "values", "weights", "roots", "logs", "plans")
    board: tuple[str, ...] = ("gram", "sums")
    replay: str = "replay"

    def output(self, episode: int) -> int | None:
        """Number of the episode; None for the last one, which has no later user."""
        return episode if episode < self.K else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Exact sums of the last pass."""
        return _show(one.arrays["exact_gram"], one.arrays["exact_sums"])

    def noisy(self, one: Replicate, output: int) -> Tables:
        """The last output, with noise."""
        return _show(one.arrays["gram"], one.arrays["sums"])

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values on the board."""
        return sum(int(one.arrays[name].size - one.arrays[f"exact_{name}"].size) for name in self.board)


def exact_rule(request: OnlineRequest) -> Rule:
    """Parameters of the non-private agent, which draws no noise.

    Raises:
        ParameterError: No episode or replicate, or more episodes than are counted exactly.
    """
    refuse(request)
    option, H, d = read_options(request), request.world.mdp.horizon, request.world.feature_map.dimension
    return Rule(
        K=request.episodes,
        kind=EXACT,
        growth=option["growth"],
        ridge=option["ridge"] / H**2,
        least=0.0,
        bonus=option["bonus"],
        doubt=option["doubt"] * 2 * d**3 * H**2,
        square_bonus=0.0,
        weighted=True,
        centred=request.readings.get("centred") == "on",
        std_gram=0.0,
        diagonal=1.0,
        std_sums=(0.0, 0.0, 0.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedConstants:
    """Constants of Sahu 2025, with 1 for those that the paper leaves open: c₁, c₂, and the factor of each O(·).

    Attributes:
        ridge: 2λ̃ (step 1).
        bonus: β̂ and β̌.
        square_bonus: β̄.
    """

    ridge: float
    bonus: float
    square_bonus: float


def printed_constants(*, H: int, d: int, K: int, rho: float, failure: float) -> PrintedConstants:
    """Constants 2λ̃ of Lemma A.1, and β̂ = β̌ and β̄ of Theorem 3.2.

    Args:
        H: Number of steps.
        d: Dimension of the features.
        K: Number of episodes.
        rho: Budget ρ.
        failure: δ.
    """
    L = 4 * H * math.sqrt(d * H * K / rho * math.log(10 * d * K * H / failure))
    half = math.sqrt(8 * d * H * K / rho) * (2 + (math.log(5 * H / failure) / d) ** (2 / 3))  # λ̃
    # the logarithm is squared under the root, so that only its size counts; it is negative where few users have much ρ
    chance = math.sqrt(d**3 * H**2) * abs(math.log(H * K**4 * L**2 * d / (failure * half)))
    bound = math.sqrt(d * half)
    return PrintedConstants(ridge=2 * half, bonus=H * L * bound + chance, square_bonus=H**2 * L**2 * bound + H * chance)


def private_rule(request: OnlineRequest, *, weighted: bool, noiseless: bool) -> Rule:
    """Parameters of a private agent, with the noise of the declaration.

    Args:
        request: The request.
        weighted: Whether σ̄ is estimated; else it is H throughout.
        noiseless: Whether to draw no noise; ridge, floor and bonus are those of the agent with noise.

    Raises:
        ParameterError: No declaration, or one of another world, no episode, or a floor above 1.
    """
    refuse(request)
    declaration, option = declared(request), read_options(request)
    H, d = request.world.mdp.horizon, request.world.feature_map.dimension
    gram = declaration.release("gram")
    law = gram.mechanism.at(request.values)
    scales = [declaration.release(name).mechanism.at(request.values).scale for name in SUMS]
    ridge, bonus, square_bonus = option["ridge"] / H**2, option["bonus"], 0.0
    if request.readings.get("constants") == "printed":
        rho, failure = float(request.values["rho"]), option["failure"]
        of = printed_constants(H=H, d=d, K=request.episodes, rho=rho, failure=failure)
        ridge, square_bonus = option["ridge"] * of.ridge, bonus * of.square_bonus
        bonus *= of.bonus
    ridge += option["noise_ridge"] * math.sqrt(d) * law.scale
    return Rule(
        K=request.episodes,
        kind=ONE_DRAW if "outputs" in gram.draw.across else FRESH,
        growth=option["growth"],
        ridge=ridge,
        least=option["floor"] * ridge,
        bonus=bonus + option["noise_bonus"] * scales[0] / math.sqrt(ridge),
        doubt=option["doubt"] * 2 * d**3 * H**2,
        square_bonus=square_bonus,
        weighted=weighted,
        centred=False,
        std_gram=0.0 if noiseless else law.scale,
        diagonal=math.sqrt(2) if law.symmetric == "goe" else 1.0,
        std_sums=(0.0, 0.0, 0.0) if noiseless else (scales[0], scales[1], scales[2]),
    )


def weighted_player(request: OnlineRequest, rule: Rule, *, label: str) -> Player:
    """Player of LSVI-UCB++ in its world; its features have the declared length.

    Args:
        request: The request.
        rule: Parameters of the agent.
        label: As in `Player`.

    Raises:
        ParameterError: Matrices beyond 8 GB.
    """
    world, K = request.world, request.episodes
    H, S, A, d = (world.sizes[name] for name in ("H", "S", "A", "d"))
    refuse_memory(request, numbers=H * d * d * 6 + H * S * (d + 4) + H * S * A * 2 + S * A * (2 * d + 4))
    w, truth, points = compress(world.mdp), solve(world.mdp), grid(K)
    features = tabulate(world, times=_norm(request))
    reward = np.ascontiguousarray(world.public_model.mean_reward.reshape(-1, S * A))

    def start(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise")
        # what is public of rewards travels with the replicate: one user may answer with others
        arrays = _arrays(H, S, A, d) | {"reward": reward.copy()} | blank(K)
        return Replicate(arrays=arrays, generators={name: np.random.default_rng(one) for name, one in own.items()})

    def block(one: Replicate, until: int) -> None:
        a, g = one.arrays, one.generators
        agent = Agent(
            features=features,
            reward=a["reward"],
            data=Data(a["exact_gram"], a["nexts"], a["exact_sums"]),
            board=Board(a["gram"], a["sums"]),
            plan=Plan(*(a[name] for name in Plan._fields)),
            rule=rule,
            channel=NoiseStream(g["noise"], a["noise_gram"], a["noise_sums"], a["replay"]),
            room=Room(np.empty((4, S * A)), np.empty(d), np.empty((d, d)), np.empty(S)),
            walk=Walk(a["path"], a["taken"], a["costs"]),
            told=a["told"],
            truth=a["truth"],
        )
        play(w, g["users"], agent, Record(until, a["totals"], a["curves"], points, truth.value))

    private = rule.kind != EXACT
    numbers = {"ridge": rule.ridge, "bonus": rule.bonus, "noise_std_gram": rule.std_gram}
    numbers |= {"square_bonus": rule.square_bonus} if rule.square_bonus > 0 else {}
    return Player(
        start=start,
        play=block,
        label=label,
        told="told",
        optimal=truth.value,
        face=WeightedFace(K=K) if private else None,
        noise=NOISE,
        diagnostics=numbers | {"noise_std_values": rule.std_sums[0]} if private else {},
        at_limit=lambda one: share_at_limit(one.arrays["values"][HIGH], costs=False),
    )


def _norm(request: OnlineRequest) -> float:
    """Declared length of the longest feature; in a world it is at most 1."""
    if request.declaration is None:
        return 1.0
    statistic = request.declaration.release("gram").statistic
    assert isinstance(statistic, GramMatrices)
    return statistic.vector.bound.number({**request.values, "h": Fraction(1)}, rounding="down")


def _show(gram: Array, sums: Array) -> dict[str, Array]:
    return {**{name: sums[which].copy() for which, name in enumerate(SUMS)}, "gram": gram.copy()}


def _arrays(H: int, S: int, A: int, d: int) -> dict[str, NDArray[np.generic]]:
    matrices, vectors = (H, d, d), (3, H, d)
    return {
        **{name: np.zeros(matrices) for name in ("exact_gram", "gram", "noise_gram", "roots", "inverse")},
        **{name: np.zeros(vectors) for name in ("exact_sums", "sums", "noise_sums", "weights")},
        "nexts": np.zeros((H, S, d)),
        "actions": np.zeros((H, S), np.int64),
        "upper": np.zeros((H, S * A)),
        "lower": np.zeros((H, S * A)),
        "values": np.zeros((2, H + 1, S)),
        "logs": np.zeros((2, H)),
        "plans": np.zeros(1, np.int64),
        "replay": np.zeros(1, np.int64),
        "told": np.zeros((H, S), np.int64),
        "truth": np.zeros((H + 1, S)),
        "path": np.zeros(H + 1, np.int64),
        "taken": np.zeros(H, np.int64),
        "costs": np.zeros(H),
    }
