"""LSVI-UCB and LSVI-UCB++ as players: options, the arrays of a replicate, audit adapters, and checks before a run.

The kernels are `linear.lsvi` and `linear.lsvi_plus_plus`; both come exact, or with the noise of a declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.declare.schedules import Tree
from privcheck.declare.statistics import GramMatrices
from privcheck.errors import ParameterError
from privcheck.runtime.online import Face, Player, Record, Replicate, Tables, blank, grid
from privcheck.runtime.registry import AuditInstance, Reading
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.kernels.optimism import share_at_limit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, Walk, compress
from privcheck_algorithms.linear import lsvi, lsvi_plus_plus
from privcheck_algorithms.linear.audit_worlds import audit_world
from privcheck_algorithms.linear.lsvi import Features, Room
from privcheck_algorithms.online.private import EPISODES, NOISE, declared, refuse_bytes

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

SUMS: Final = ("optimistic values", "pessimistic values", "squared values")  # of LSVI-UCB++


def refuse(request: OnlineRequest) -> None:
    """Raise an error for a request that cannot be run, before any budget is spent or file written.

    Raises:
        ParameterError: No episode or replicate, more than 2⁵³ episodes, or a declaration with different sizes.
    """
    world = request.world
    for name, least in (("episodes", request.episodes), ("replicates", request.replicates)):
        if least < 1:
            raise ParameterError(f"expected at least 1 of {name}, got {least}", name=name, given=least)
    if request.episodes > EPISODES:
        message = f"K: at most {EPISODES} episodes are counted exactly, got {request.episodes}"
        raise ParameterError(message, name="K", given=request.episodes)
    sizes = {**world.sizes, "K": request.episodes}
    wrong = [
        f"{name} = {request.values[name]} but {size} in {world.name}"
        for name, size in sizes.items()
        if name in request.values and request.values[name] != size
    ]
    if wrong:
        raise ParameterError(f"the declaration does not fit the environment: {'; '.join(wrong)}", name=wrong[0][0])


def refuse_memory(request: OnlineRequest, *, numbers: float) -> None:
    """Raise an error for matrices beyond 8 GB, at `numbers` floats per replicate.

    Raises:
        ParameterError: The matrices need more memory.
    """
    shown = ", ".join(f"{name} = {size}" for name, size in request.world.sizes.items())
    remedy = "fewer --replicates, features of a smaller dimension, or smaller S, A or H"
    refuse_bytes(request, 8.0 * numbers * request.replicates, what=f"matrices of {shown}", remedy=remedy)


CENTRED = Reading(
    name="centred",
    ways=("off", "on"),
    meaning="off: r + V(s′) is regressed; on: (r − ½ + V(s′) − c)/(1 + span), with middle and span of V, public",
)
RIDGE = Parameter(name="ridge", default=1, kind="positive", meaning="λ, on the diagonal of the Gram matrices")
BONUS = Parameter(name="bonus", default="0.5", kind="real", meaning="β, in units of the span of what is regressed")
NOISE_RIDGE = Parameter(
    name="noise_ridge", default=4, kind="real", meaning="more ridge, in units of √d·σ of a Gram matrix's noise"
)
NOISE_BONUS = Parameter(
    name="noise_bonus", default="0.1", kind="real", meaning="more of β, in units of σ/√ridge of the sums' noise"
)
FLOOR = Parameter(
    name="floor",
    default="0.5",
    kind="real",
    meaning="eigenvalues below so much of the ridge are raised; at most 1",
)
GROWTH = Parameter(
    name="growth", default=2, kind="positive", meaning="the policy is planned anew when a determinant has so grown"
)
WEIGHTED_RIDGE = Parameter(name="ridge", default=1, kind="positive", meaning="λ, in units of 1/H²")
WEIGHTED_BONUS = Parameter(name="bonus", default="0.8", kind="real", meaning="β̂ and β̌")
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
_ANY = 2**62  # plans that nobody reaches

# policies follow the noisy sums closely: a small bonus, and a plan whenever anything leaves
CLOSELY = {
    "bonus": Fraction(1, 100),
    "noise_bonus": Fraction(0),
    "noise_ridge": Fraction(1),
    "growth": Fraction(1, 10**9),
}
INSTANCE = AuditInstance(sizes={"H": 2, "K": 8, "B": 8, "N": 8, "d": 2, "S": 24}, options=CLOSELY, world=audit_world)


@dataclass(frozen=True, slots=True, kw_only=True)
class LsviFace:
    """Audit adapter: Gram matrices by a tree or with fresh noise, sums of gains at every plan.

    Attributes:
        K: Number of episodes.
        batches: As in `lsvi.Rule`.
        features: Features of the world.
        policy: As in `Face`.
    """

    K: int
    batches: int
    features: Array
    policy: tuple[str, ...] = ("told", "actions", "values", "roots", "logs", "plans")
    board: tuple[str, ...] = ("gram", "gains")
    replay: str = "replay"

    def output(self, episode: int) -> int | None:
        """The episode, or the batch that ends with it; None for the last one, which has no later user."""
        if episode >= self.K or not self.batches:
            return episode if episode < self.K else None
        ended = lsvi.batch(episode, self.K, self.batches)
        return int(ended) if ended > lsvi.batch(episode - 1, self.K, self.batches) else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Exact sums released with the last episode, or all-zero sums before the first episode."""
        return self._left(one, "exact_")

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Noisy sums released with the last episode."""
        return self._left(one, "")

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values on the board."""
        return sum(int(one.arrays[name].size - one.arrays[f"exact_{name}"].size) for name in self.board)

    def regressors(self, one: Replicate, user: Trajectories) -> Regressors:
        """Features of the user, which the Gram matrices sum."""
        return Regressors(vectors={"phi": self.features[user.states[:, :-1], user.actions]}, targets={}, weights={})

    def _left(self, one: Replicate, prefix: str) -> dict[str, Array]:
        left = one.arrays["left"]
        names = self.board if left[1] == left.max() else self.board[:1]
        return {name: one.arrays[prefix + name].copy() for name in names}


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


def exact_rule(request: OnlineRequest, *, batches: int, growth: float) -> lsvi.Rule:
    """Parameters of LSVI-UCB, which draws no noise.

    Raises:
        ParameterError: No episode or replicate, or more episodes than are counted exactly.
    """
    refuse(request)
    option = read_options(request)
    return lsvi.Rule(
        K=request.episodes,
        kind=lsvi.EXACT,
        batches=batches,
        growth=growth,
        most=_ANY,
        ridge=option["ridge"],
        least=0.0,
        bonus=option["bonus"],
        noise_bonus=0.0,
        centred=request.readings.get("centred") == "on",
        std_gram=0.0,
        diagonal=1.0,
        std_gains=0.0,
    )


def private_rule(request: OnlineRequest, *, batches: int, most: int | None, noiseless: bool) -> lsvi.Rule:
    """Parameters of a private LSVI-UCB, with the noise of the declaration.

    Args:
        request: The request.
        batches: As in `lsvi.Rule`.
        most: As in `lsvi.Rule`; None for any number.
        noiseless: Whether to draw no noise; ridge, floor and bonus are those of the agent with noise.

    Raises:
        ParameterError: No declaration, or a floor above 1.
    """
    declaration, values, option = declared(request), request.values, read_options(request)
    gram = declaration.release("gram")
    law, sums = gram.mechanism.at(values), declaration.release("gains").mechanism.at(values)
    tree = isinstance(gram.schedule, Tree)
    terms = int(gram.schedule.times.number(values)) if isinstance(gram.schedule, Tree) else 1
    d = request.world.feature_map.dimension
    ridge = option["ridge"] + option["noise_ridge"] * math.sqrt(d * max(terms, 1)) * law.scale
    return lsvi.Rule(
        K=request.episodes,
        kind=lsvi.TREE if tree else lsvi.FRESH,
        batches=batches,
        growth=option.get("growth", 2.0),
        most=_ANY if most is None else most,
        ridge=ridge,
        least=option["floor"] * ridge,
        bonus=option["bonus"],
        noise_bonus=option["noise_bonus"] * sums.scale / math.sqrt(ridge),
        centred=request.readings.get("centred") == "on",
        std_gram=0.0 if noiseless else law.scale,
        diagonal=math.sqrt(2) if law.symmetric == "goe" else 1.0,
        std_gains=0.0 if noiseless else sums.scale,
    )


def exact_weighted_rule(request: OnlineRequest) -> lsvi_plus_plus.Rule:
    """Parameters of LSVI-UCB++, which draws no noise.

    Raises:
        ParameterError: No episode or replicate, or more episodes than are counted exactly.
    """
    refuse(request)
    option, H, d = read_options(request), request.world.mdp.horizon, request.world.feature_map.dimension
    return lsvi_plus_plus.Rule(
        K=request.episodes,
        kind=lsvi_plus_plus.EXACT,
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


def private_weighted_rule(request: OnlineRequest, *, estimates: bool, noiseless: bool) -> lsvi_plus_plus.Rule:
    """Parameters of a private LSVI-UCB++, with the noise of the declaration.

    Args:
        request: The request.
        estimates: Whether σ̄ is estimated; else it is H throughout.
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
    return lsvi_plus_plus.Rule(
        K=request.episodes,
        kind=lsvi_plus_plus.ONE_DRAW if "outputs" in gram.draw.across else lsvi_plus_plus.FRESH,
        growth=option["growth"],
        ridge=ridge,
        least=option["floor"] * ridge,
        bonus=bonus + option["noise_bonus"] * scales[0] / math.sqrt(ridge),
        doubt=option["doubt"] * 2 * d**3 * H**2,
        square_bonus=square_bonus,
        weighted=estimates,
        centred=False,
        std_gram=0.0 if noiseless else law.scale,
        diagonal=math.sqrt(2) if law.symmetric == "goe" else 1.0,
        std_sums=(0.0, 0.0, 0.0) if noiseless else (scales[0], scales[1], scales[2]),
    )


def lsvi_player(request: OnlineRequest, rule: lsvi.Rule, *, label: str) -> Player:
    """Player of LSVI-UCB in its world.

    Args:
        request: The request.
        rule: Parameters of the agent.
        label: As in `Player`.

    Raises:
        ParameterError: Matrices beyond 8 GB.
    """
    sizes = request.world.sizes
    H, S, A, d = (sizes[name] for name in ("H", "S", "A", "d"))
    levels = (request.episodes - 1).bit_length() + 1 if rule.kind == lsvi.TREE else 1
    refuse_memory(request, numbers=H * d * d * (levels + 4) + H * S * (d + 4) + S * A * (2 * d + 4))
    features = tabulate(request.world)

    def start() -> Arrays:
        return {
            **_shared_arrays(H, S, d),
            "rewards": np.zeros((H, d)),
            "exact_gains": np.zeros((H, d)),
            "gains": np.zeros((H, d)),
            "values": np.zeros((H + 1, S)),
            "nodes": np.zeros((levels, H, d, d)),
            "left": np.zeros(2, np.int64),
        }

    def play(w: SparseMDP, one: Replicate, record: Record) -> None:
        a = one.arrays
        agent = lsvi.Agent(
            features=features,
            sums=lsvi.Sums(a["exact_gram"], a["nexts"], a["rewards"], a["exact_gains"]),
            board=lsvi.Board(a["gram"], a["gains"]),
            plan=lsvi.Plan(*(a[name] for name in lsvi.Plan._fields)),
            rule=rule,
            channel=lsvi.NoiseStream(one.generators["noise"], a["nodes"], a["replay"], a["left"]),
            room=Room(np.empty((4, S * A)), np.empty(d), np.empty((d, d)), np.empty(S)),
            walk=Walk(a["path"], a["taken"], a["costs"]),
            told=a["told"],
            truth=a["truth"],
        )
        lsvi.play(w, one.generators["users"], agent, record)

    private = rule.kind != lsvi.EXACT
    phi = request.world.feature_map.phi
    return _player(
        request,
        label,
        start=start,
        play=play,
        face=LsviFace(K=request.episodes, batches=rule.batches, features=phi) if private else None,
        diagnostics={"ridge": rule.ridge, "noise_std_gram": rule.std_gram, "noise_std_gains": rule.std_gains},
        values=lambda one: one.arrays["values"],
    )


def weighted_player(request: OnlineRequest, rule: lsvi_plus_plus.Rule, *, label: str) -> Player:
    """Player of LSVI-UCB++ in its world; its features have the declared length.

    Args:
        request: The request.
        rule: Parameters of the agent.
        label: As in `Player`.

    Raises:
        ParameterError: Matrices beyond 8 GB.
    """
    world = request.world
    H, S, A, d = (world.sizes[name] for name in ("H", "S", "A", "d"))
    refuse_memory(request, numbers=H * d * d * 6 + H * S * (d + 4) + H * S * A * 2 + S * A * (2 * d + 4))
    features = tabulate(world, times=_norm(request))
    reward = np.ascontiguousarray(world.public_model.mean_reward.reshape(-1, S * A))

    def start() -> Arrays:
        return {
            **_shared_arrays(H, S, d),
            "noise_gram": np.zeros((H, d, d)),
            **{name: np.zeros((3, H, d)) for name in ("exact_sums", "sums", "noise_sums", "weights")},
            "upper": np.zeros((H, S * A)),
            "lower": np.zeros((H, S * A)),
            "values": np.zeros((2, H + 1, S)),
            "reward": reward.copy(),  # what is public travels with the replicate: one user may answer with others
        }

    def play(w: SparseMDP, one: Replicate, record: Record) -> None:
        a = one.arrays
        agent = lsvi_plus_plus.Agent(
            features=features,
            reward=a["reward"],
            data=lsvi_plus_plus.Data(a["exact_gram"], a["nexts"], a["exact_sums"]),
            board=lsvi_plus_plus.Board(a["gram"], a["sums"]),
            plan=lsvi_plus_plus.Plan(*(a[name] for name in lsvi_plus_plus.Plan._fields)),
            rule=rule,
            channel=lsvi_plus_plus.NoiseStream(one.generators["noise"], a["noise_gram"], a["noise_sums"], a["replay"]),
            room=Room(np.empty((4, S * A)), np.empty(d), np.empty((d, d)), np.empty(S)),
            walk=Walk(a["path"], a["taken"], a["costs"]),
            told=a["told"],
            truth=a["truth"],
        )
        lsvi_plus_plus.play(w, one.generators["users"], agent, record)

    numbers = {"ridge": rule.ridge, "bonus": rule.bonus, "noise_std_gram": rule.std_gram}
    numbers |= {"square_bonus": rule.square_bonus} if rule.square_bonus > 0 else {}
    return _player(
        request,
        label,
        start=start,
        play=play,
        face=WeightedFace(K=request.episodes) if rule.kind != lsvi_plus_plus.EXACT else None,
        diagnostics=numbers | {"noise_std_values": rule.std_sums[0]},
        values=lambda one: one.arrays["values"][lsvi_plus_plus.HIGH],
    )


def _player(
    request: OnlineRequest,
    label: str,
    *,
    start: Callable[[], Arrays],
    play: Callable[[SparseMDP, Replicate, Record], None],
    face: Face | None,
    diagnostics: Mapping[str, float],
    values: Callable[[Replicate], Array],
) -> Player:
    """Player of a kernel; one without an audit adapter is not private, and has no diagnostics of noise."""
    w, truth, points = compress(request.world.mdp), solve(request.world.mdp), grid(request.episodes)

    def begin(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise")
        generators = {name: np.random.default_rng(one) for name, one in own.items()}
        return Replicate(arrays={**start(), **blank(request.episodes)}, generators=generators)

    def block(one: Replicate, until: int) -> None:
        play(w, one, Record(until, one.arrays["totals"], one.arrays["curves"], points, truth.value))

    return Player(
        start=begin,
        play=block,
        label=label,
        told="told",
        optimal=truth.value,
        face=face,
        noise=NOISE,
        diagnostics=diagnostics if face is not None else {},
        at_limit=lambda one: share_at_limit(values(one), costs=False),
    )


def _shared_arrays(H: int, S: int, d: int) -> Arrays:
    return {
        **{name: np.zeros((H, d, d)) for name in ("exact_gram", "gram", "roots", "inverse")},
        "nexts": np.zeros((H, S, d)),
        "actions": np.zeros((H, S), np.int64),
        "logs": np.zeros((2, H)),
        "plans": np.zeros(1, np.int64),
        "replay": np.zeros(1, np.int64),
        "told": np.zeros((H, S), np.int64),
        "truth": np.zeros((H + 1, S)),
        "path": np.zeros(H + 1, np.int64),
        "taken": np.zeros(H, np.int64),
        "costs": np.zeros(H),
    }


def tabulate(world: World, *, times: float = 1.0) -> Features:
    """The world's features, times a number, in the layouts of the kernels."""
    phi = world.feature_map.phi
    rows = times * phi.reshape(-1, phi.shape[-1])
    return Features(rows=np.ascontiguousarray(rows), columns=np.ascontiguousarray(rows.T))


def read_options(request: OnlineRequest) -> Mapping[str, float]:
    """Options as floats.

    Raises:
        ParameterError: A floor above 1.
    """
    floor = request.options.get("floor", Fraction(0))
    if not 0 <= floor <= 1:
        message = f"floor (eigenvalues below so much of the ridge): expected 0 to 1, got {floor}"
        raise ParameterError(message, name="floor", given=floor)
    return {name: float(value) for name, value in request.options.items()}


def _norm(request: OnlineRequest) -> float:
    """Declared length of the longest feature; in a world it is at most 1."""
    if request.declaration is None:
        return 1.0
    statistic = request.declaration.release("gram").statistic
    assert isinstance(statistic, GramMatrices)
    return statistic.vector.bound.number({**request.values, "h": Fraction(1)}, rounding="down")


def _show(gram: Array, sums: Array) -> dict[str, Array]:
    return {**{name: sums[which].copy() for which, name in enumerate(SUMS)}, "gram": gram.copy()}
