"""LinOpt-VI-Reg and LinOpt-PO-Reg (Zhou 2022, Algorithms 1 and 2): constants, audit adapter, players of the kernel.

With the PRIVATIZER they are Private-LinOpt-VI and -PO, with exact counters and Z = λI UCRL-VTR and linear OPPO: a
single kernel, so that a private agent without noise gives identical numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve, uniform
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.declare.mechanisms import SymmetricGaussianNoise
from privcheck.declare.schedules import Tree
from privcheck.errors import ParameterError
from privcheck.runtime.online import Player, Record, Replicate, Tables, blank, grid
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.mixtures import Mixture, dimensions, mixture, regressors
from privcheck_algorithms.kernels.optimism import share_at_limit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, Walk, compress
from privcheck_algorithms.kernels.tables import aligned
from privcheck_algorithms.online.private import declared, refuse, refuse_bytes
from privcheck_algorithms.private_linopt.kernels import Agent, Constants, Layout, Privatizer, play
from privcheck_algorithms.privatizers import noise
from privcheck_algorithms.privatizers.counters import levels

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureFace:
    """Adapter of a linear mixture's counters; symmetric matrices are stored on and above the diagonal.

    Attributes:
        shapes: The declared shape of each release, (H, d, d) or (H, d), in the order of `kernels.Layout`.
        known: The mixture.
        episodes: K, after which nothing is released.
        policy: As in `Face`.
    """

    shapes: Mapping[str, tuple[int, ...]]
    known: Mixture
    episodes: int
    policy: tuple[str, ...]
    board: tuple[str, ...] = ("noisy",)

    def output(self, episode: int) -> int | None:
        """Number of the episode; None for the last one, which has no later user."""
        return episode if episode < self.episodes else None

    def exact(self, one: Replicate, output: int) -> Tables:
        """Exact sums over all users so far."""
        return self.tables(one.arrays["exact"])

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Noisy sums."""
        return self.tables(one.arrays["noisy"])

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values among the noisy counters, with half of each symmetric matrix."""
        return int(one.arrays["noisy"].size) - sum(numbers(shape) for shape in self.shapes.values())

    def regressors(self, one: Replicate, user: Trajectories) -> Regressors:
        """Regressors of a user for the declared statistics, under V of the last episode."""
        return regressors(self.known, one.arrays["values"], user)

    def tables(self, flat: Array) -> dict[str, Array]:
        """Tables of the releases, in their declared shapes."""
        ends = np.cumsum([numbers(shape) for shape in self.shapes.values()])
        parts = np.split(flat[: ends[-1]], ends[:-1])
        return {name: as_table(part, self.shapes[name]) for name, part in zip(self.shapes, parts, strict=True)}


def numbers(shape: tuple[int, ...]) -> int:
    """Number of stored values of a release by its shape: for symmetric matrices those on and above the diagonal.

    >>> numbers((3, 4, 4)), numbers((3, 4))
    (30, 12)
    """
    steps, d = shape[:2]
    return steps * (d * (d + 1) // 2 if len(shape) == 3 else d)


def as_table(flat: Array, shape: tuple[int, ...]) -> Array:
    """Copy of a counter in its declared shape.

    >>> as_table(np.arange(3.0), (1, 2, 2)).tolist()
    [[[0.0, 1.0], [1.0, 2.0]]]
    """
    if len(shape) == 2:
        return flat.reshape(shape).copy()
    rows, columns = np.triu_indices(shape[-1])
    table = np.empty(shape)
    table[:, rows, columns] = table[:, columns, rows] = flat.reshape(shape[0], rows.size)
    return table


FAILURE = Parameter(name="failure", default="0.1", kind="probability", meaning="failure probability 4α of the theorems")
BONUS_P = Parameter(
    name="bonus_p", default="0.01", kind="real", meaning="factor of β_p of Lemma 3.1, for transitions; the paper's: 1"
)
BONUS_R = Parameter(
    name="bonus_r", default="0.1", kind="real", meaning="factor of β_r of Lemma 3.1, for rewards; the paper's: 1"
)
RIDGE = Parameter(
    name="ridge", default=1, kind="real", meaning="λ, added to every Gram matrix; 0 in the paper's private agents"
)
NOISE_SCALE = Parameter(
    name="noise_scale",
    default=1,
    kind="real",
    meaning="factor of Σ and ν, by which ridge and bonus follow the noise; the paper's: 1",
)
ETA_SCALE = Parameter(
    name="eta_scale", default=200, kind="positive", meaning="factor of the rate η = √(2 ln A/(H²K)); the theorem's: 1"
)
KNOWN_REWARDS = Parameter(
    name="known_rewards", default=0, kind="real", meaning="1: plan with the true mean rewards, as public; 0: estimate"
)
BASELINE_OPTIONS = (FAILURE, BONUS_P, BONUS_R, RIDGE, KNOWN_REWARDS)
OPTIONS = (*BASELINE_OPTIONS, NOISE_SCALE)
PRINTED = {"bonus_p": "1", "bonus_r": "1"}

NAMES = ("transition gram", "transition values", "reward gram", "reward sums")  # in the order of `Layout`
_NO_STREAMS = np.zeros(noise.SHAPE, np.uint64)  # of Laplace noise, which no counter here has
KEPT = ("values", "quality", "actions", "last", "policy", "logits")  # of the agent, from episode to episode
NOISE = "simulated: seeded floating-point noise (PCG64) inside the kernel; not for a public release"


def norm_bound(scale: float, *, d: int, nodes: int, K: int, H: int, failure: float) -> float:
    """Bound Σ = σ√m·(4√d + √(8 ln(8KH/α))) of Theorem 6.5's proof, α = failure/4.

    With probability at least 1 − α/4 no sum of m noisy nodes has a larger operator norm, at any of KH times (Lemma
    B.4).
    """
    return scale * math.sqrt(nodes) * (4 * math.sqrt(d) + math.sqrt(8 * math.log(32 * K * H / failure)))


def constants(request: OnlineRequest, d: int, *, scales: tuple[float, float], transition: bool) -> Constants:
    """Constants γ and β of Lemma 3.1 with Theorem 6.5's λ_min, λ_max and ν; with λ, λ and 0 without privacy.

    β_p = (H/2)·√(2 ln(H/α) + d₁ ln(1 + KH²/λ_min)) + √(d₁·λ_max) + ν and
    β_r = (1/2)·√(2 ln(H/α) + d₂ ln(1 + K/(d₂·λ_min))) + √(d₂·λ_max) + ν (Assumption 2).

    Args:
        request: The request.
        d: Dimension of the features.
        scales: Standard deviations of a node's noise in the Gram matrices and in the sums; 0 without privacy.
        transition: Whether the constants are for transitions; otherwise for rewards.

    Raises:
        ParameterError: The ridge is 0.
    """
    K, H, option = request.episodes, request.world.mdp.horizon, {n: float(v) for n, v in request.options.items()}
    nodes, alpha = max(1, levels(K)), option["failure"] / 4
    follow = option.get("noise_scale", 0.0)
    widest = follow * norm_bound(scales[0], d=d, nodes=nodes, K=K, H=H, failure=option["failure"])
    ridge = option["ridge"] + 2 * widest
    if ridge == 0:
        message = "ridge = 0 and noise_scale = 0: a Gram matrix without data has no inverse; give one of them above 0"
        raise ParameterError(message, name="ridge", given=0)
    least, most = option["ridge"] + widest, option["ridge"] + 3 * widest
    spread = follow * scales[1] * math.sqrt(nodes) * (math.sqrt(d) + math.sqrt(2 * math.log(4 * K * H / alpha)))
    growth = K * H**2 / least if transition else K / (d * least)
    chance = 0.5 * math.sqrt(2 * math.log(H / alpha) + d * math.log1p(growth))
    reach, factor = (H, option["bonus_p"]) if transition else (1, option["bonus_r"])
    beta = factor * (reach * chance + math.sqrt(d * most) + spread / math.sqrt(least))
    return Constants(ridge=ridge, beta=beta)


def learning_rate(*, A: int, H: int, K: int, scale: float) -> float:
    """Learning rate η = √(2 ln A/(H²K)), times `scale` (proof of Theorem 5.1, after Cai et al. 2020, eq. (C.2))."""
    return scale * math.sqrt(2 * math.log(A) / (H**2 * K))


def value_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of Private-LinOpt-VI (Algorithm 1) in its world.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; ridge and bonus are unchanged.

    Raises:
        ParameterError: As `make`.
    """
    return make(request, mixed=False, private=True, noiseless=noiseless, label="private-linopt-vi")


def policy_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of Private-LinOpt-PO (Algorithm 2) in its world; as `value_player`."""
    return make(request, mixed=True, private=True, noiseless=noiseless, label="private-linopt-po")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixtureEnv:
    """Environment of a kernel, with its parameters.

    Attributes:
        request: The request.
        mixed: Whether to run Algorithm 2; otherwise Algorithm 1.
        private: Whether to use the PRIVATIZER; otherwise exact counters.
        law: Code of the noise law in the kernels.
        w: The world.
        known: The mixture.
        layout: Layout of the counters.
        scales: The noise's standard deviations, by counter.
        transition: Constants of the regression of V(s′) on φ.
        reward: Constants of the regression of r on ϕ.
        optimal: Optimal value V*₁.
    """

    request: OnlineRequest
    mixed: bool
    private: bool
    law: int
    w: SparseMDP
    known: Mixture
    layout: Layout
    scales: tuple[float, float, float, float]
    transition: Constants
    reward: Constants
    optimal: float

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Declared shape of each counter."""
        H, d1, d2 = self.layout
        return dict(zip(NAMES, ((H, d1, d1), (H, d1), (H, d2, d2), (H, d2)), strict=True))

    def start(self, number: int) -> Replicate:
        """Make a replicate before its first episode."""
        K, (H, S, A) = self.request.episodes, (self.w.H, self.w.S, self.w.A)
        own = seeds(self.request.seed, number, "users", "noise")
        M, room = sum(map(numbers, self.shapes.values())), (H if self.mixed else 0, S, A)
        arrays = {
            "exact": aligned(M if self.private else 0),
            "noisy": aligned(M),
            "prefix": aligned(levels(K) if self.private else 0, M),
            "values": np.zeros((H + 1, S)),
            "quality": np.zeros((H, S * A)),
            "actions": np.zeros((0 if self.mixed else H, S), np.int64),
            "last": uniform(*room),  # line 2 of Algorithm 2
            "policy": uniform(*room),
            "logits": np.zeros(room),
            "path": np.zeros(H + 1, np.int64),
            "taken": np.zeros(H, np.int64),
            "costs": np.zeros(H),
        }
        generators = {name: np.random.default_rng(seed) for name, seed in own.items()}
        return Replicate(arrays={**arrays, **blank(K)}, generators=generators)

    def play(self, one: Replicate, until: int) -> None:
        """Play a replicate up to an episode."""
        a, K = one.arrays, self.request.episodes
        record = Record(until=until, totals=a["totals"], curves=a["curves"], grid=grid(K), optimal=self.optimal)
        play(self.w, one.generators["users"], self.agent(one), self.privatizer(one), record)

    def agent(self, one: Replicate) -> Agent:
        """Agent of a replicate: its state, and the billboard."""
        options, K = self.request.options, self.request.episodes
        scale = float(options["eta_scale"]) if self.mixed else 0.0
        return Agent(
            mixed=self.mixed,
            eta=learning_rate(A=self.w.A, H=self.w.H, K=K, scale=scale),
            known_rewards=options["known_rewards"] > 0,
            known=self.known,
            transition=self.transition,
            reward=self.reward,
            noisy=one.arrays["noisy"],
            **{name: one.arrays[name] for name in KEPT},
        )

    def privatizer(self, one: Replicate) -> Privatizer:
        """Privatizer of a replicate, with its arrays."""
        a, piece = one.arrays, max(noise.chunk(numbers(shape)) for shape in self.shapes.values())
        return Privatizer(
            K=self.request.episodes,
            layout=self.layout,
            scales=self.scales,
            channel=noise.open_channel(self.law, 0.0, streams=_NO_STREAMS, rng=one.generators["noise"], piece=piece),
            walk=Walk(a["path"], a["taken"], a["costs"]),
            exact=a["exact" if self.private else "noisy"],
            noisy=a["noisy"],
            prefix=a["prefix"],
        )

    @property
    def diagnostics(self) -> dict[str, float]:
        """Diagnostics of the privatizer and the agent."""
        noises = {f"std {name}": scale for name, scale in zip(NAMES, self.scales, strict=True)}
        p, r = self.transition, self.reward
        return {**noises, "ridge_p": p.ridge, "ridge_r": r.ridge, "beta_p": p.beta, "beta_r": r.beta}


def make(request: OnlineRequest, *, mixed: bool, private: bool, noiseless: bool, label: str) -> Player:
    """Player of the kernel.

    Args:
        request: The request.
        mixed: Whether to run Algorithm 2; otherwise Algorithm 1.
        private: Whether to use the PRIVATIZER; otherwise exact counters.
        noiseless: Whether to draw no noise.
        label: The agent's name in a run's fingerprint.

    Raises:
        ParameterError: A world without kernels, dimensions or sizes other than the environment's, kernels that are too
            large, releases unknown to the kernel, counters beyond 8 GB, or a ridge of 0.
    """
    refuse(request, vectors=0)
    known, (d1, d2) = mixture(request), dimensions(request)
    scales = _scales(request) if private else (0.0, 0.0, 0.0, 0.0)
    stage = MixtureEnv(
        request=request,
        mixed=mixed,
        private=private,
        law=noise.GAUSSIAN if private and not noiseless else noise.NONE,
        w=compress(request.world.mdp),
        known=known,
        layout=Layout(request.world.mdp.horizon, d1, d2),
        scales=scales,
        transition=constants(request, d1, scales=scales[:2], transition=True),
        reward=constants(request, d2, scales=scales[2:], transition=False),
        optimal=solve(request.world.mdp).value,
    )
    _refuse_memory(request, stage.shapes, levels(request.episodes) if private else 0)
    policy = ("last", "policy", "logits", "values", "quality") if mixed else ("actions", "values", "quality")
    face = MixtureFace(shapes=stage.shapes, known=known, episodes=request.episodes, policy=policy)
    return Player(
        start=stage.start,
        play=stage.play,
        label=f"{label}, noiseless" if noiseless and private else label,
        told=policy[0],
        optimal=stage.optimal,
        face=face if private else None,
        noise=NOISE,
        diagnostics=stage.diagnostics if private else {},
        at_limit=lambda one: share_at_limit(one.arrays["values"], costs=False),
    )


def _scales(request: OnlineRequest) -> tuple[float, float, float, float]:
    """Standard deviations of the noise in the four counters, as declared.

    Raises:
        ParameterError: The declaration has other releases, no trees, or noise without a kernel.
    """
    releases = {release.name: release for release in declared(request).noisy}
    if set(releases) != set(NAMES) or any(not isinstance(one.schedule, Tree) for one in releases.values()):
        message = f"{declared(request).name}: expected the trees {', '.join(NAMES)}; got {', '.join(releases)}"
        raise ParameterError(message, name="declaration")
    for name, release in releases.items():
        law = release.mechanism.at(request.values)
        # of a symmetric matrix the entries on and above the diagonal are drawn (section 6.1)
        one = law.coordinates() if isinstance(law, SymmetricGaussianNoise) and law.kind == "upper" else law
        if noise.code(one) != noise.GAUSSIAN:
            message = f"{name}: noise of the law {law.name!r}; this kernel draws only Gaussian noise"
            raise ParameterError(message, name=name, given=law.name)
    p_gram, p_sums, r_gram, r_sums = (releases[name].mechanism.at(request.values).scale for name in NAMES)
    return p_gram, p_sums, r_gram, r_sums


def _refuse_memory(request: OnlineRequest, shapes: Mapping[str, tuple[int, ...]], nodes: int) -> None:
    needed = 8.0 * sum(numbers(shape) for shape in shapes.values()) * (2 + nodes) * request.replicates
    refuse_bytes(request, needed, what="their counters", remedy="fewer --replicates, or smaller H, K or dimensions")
