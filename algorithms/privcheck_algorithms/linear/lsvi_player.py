"""LSVI-UCB as a player: its options, the state of a replicate, its audit adapter, and checks before a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.declare.schedules import Tree
from privcheck.errors import ParameterError
from privcheck.runtime.online import Player, Record, Replicate, Tables, blank, grid
from privcheck.runtime.registry import AuditInstance, Reading
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.kernels.optimism import share_at_limit
from privcheck_algorithms.kernels.sparse_mdp import Walk, compress
from privcheck_algorithms.linear.audit_worlds import audit_world
from privcheck_algorithms.linear.lsvi import (
    EXACT,
    FRESH,
    TREE,
    Agent,
    Board,
    Features,
    NoiseStream,
    Plan,
    Room,
    Rule,
    Sums,
    batch,
    play,
)
from privcheck_algorithms.online.private import EPISODES, NOISE, declared, refuse_bytes


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


Array = NDArray[np.float64]

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
        batches: As in `Rule`.
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
        ended = batch(episode, self.K, self.batches)
        return int(ended) if ended > batch(episode - 1, self.K, self.batches) else None

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


def exact_rule(request: OnlineRequest, *, batches: int, growth: float) -> Rule:
    """Parameters of the non-private agent, which draws no noise.

    Raises:
        ParameterError: No episode or replicate, or more episodes than are counted exactly.
    """
    refuse(request)
    option = read_options(request)
    return Rule(
        K=request.episodes,
        kind=EXACT,
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


def private_rule(request: OnlineRequest, *, batches: int, most: int | None, noiseless: bool) -> Rule:
    """Parameters of a private agent, with the noise of the declaration.

    Args:
        request: The request.
        batches: As in `Rule`.
        most: As in `Rule`; None for any number.
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
    return Rule(
        K=request.episodes,
        kind=TREE if tree else FRESH,
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


def lsvi_player(request: OnlineRequest, rule: Rule, *, label: str) -> Player:
    """Player of LSVI-UCB in its world.

    Args:
        request: The request.
        rule: Parameters of the agent.
        label: As in `Player`.

    Raises:
        ParameterError: Matrices beyond 8 GB.
    """
    world, K = request.world, request.episodes
    sizes = world.sizes
    H, S, A, d = (sizes[name] for name in ("H", "S", "A", "d"))
    levels = (K - 1).bit_length() + 1 if rule.kind == TREE else 1
    refuse_memory(request, numbers=H * d * d * (levels + 4) + H * S * (d + 4) + S * A * (2 * d + 4))
    w, truth, points = compress(world.mdp), solve(world.mdp), grid(K)
    features = tabulate(world)

    def start(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise")
        arrays = _arrays(H, S, d, levels) | blank(K)
        return Replicate(arrays=arrays, generators={name: np.random.default_rng(one) for name, one in own.items()})

    def block(one: Replicate, until: int) -> None:
        a, g = one.arrays, one.generators
        agent = Agent(
            features=features,
            sums=Sums(a["exact_gram"], a["nexts"], a["rewards"], a["exact_gains"]),
            board=Board(a["gram"], a["gains"]),
            plan=Plan(a["actions"], a["values"], a["roots"], a["logs"], a["inverse"], a["plans"]),
            rule=rule,
            channel=NoiseStream(g["noise"], a["nodes"], a["replay"], a["left"]),
            room=Room(np.empty((4, S * A)), np.empty(d), np.empty((d, d)), np.empty(S)),
            walk=Walk(a["path"], a["taken"], a["costs"]),
            told=a["told"],
            truth=a["truth"],
        )
        play(w, g["users"], agent, Record(until, a["totals"], a["curves"], points, truth.value))

    private = rule.kind != EXACT
    numbers = {"ridge": rule.ridge, "noise_std_gram": rule.std_gram, "noise_std_gains": rule.std_gains}
    return Player(
        start=start,
        play=block,
        label=label,
        told="told",
        optimal=truth.value,
        face=LsviFace(K=K, batches=rule.batches, features=world.feature_map.phi) if private else None,
        noise=NOISE,
        diagnostics=numbers if private else {},
        at_limit=lambda one: share_at_limit(one.arrays["values"], costs=False),
    )


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


def _arrays(H: int, S: int, d: int, levels: int) -> dict[str, NDArray[np.generic]]:
    return {
        "exact_gram": np.zeros((H, d, d)),
        "nexts": np.zeros((H, S, d)),
        "rewards": np.zeros((H, d)),
        "exact_gains": np.zeros((H, d)),
        "gram": np.zeros((H, d, d)),
        "gains": np.zeros((H, d)),
        "actions": np.zeros((H, S), np.int64),
        "values": np.zeros((H + 1, S)),
        "roots": np.zeros((H, d, d)),
        "logs": np.zeros((2, H)),
        "inverse": np.zeros((H, d, d)),
        "plans": np.zeros(1, np.int64),
        "nodes": np.zeros((levels, H, d, d)),
        "replay": np.zeros(1, np.int64),
        "left": np.zeros(2, np.int64),
        "told": np.zeros((H, S), np.int64),
        "truth": np.zeros((H + 1, S)),
        "path": np.zeros(H + 1, np.int64),
        "taken": np.zeros(H, np.int64),
        "costs": np.zeros(H),
    }
