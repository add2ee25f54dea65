"""The agent of CALIBRATED-LINOPT: a posterior from noisy sums, the next batch's policies and values, and the player.

`believe` and `choose` are the agent half and read the billboard alone; `release` is the channel's side; `serve` (in
`kernels`) runs the users of a batch, whose exact sums get noise before the agent reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.online import Player, Record, Replicate
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.calibrated_linopt.kernels import (
    Mixture,
    Users,
    design,
    follow,
    mean_visits,
    mixture,
    plan,
    serve,
    transitions,
)
from privcheck_algorithms.kernels.mixtures import find_kernels
from privcheck_algorithms.online.batches import Batch, BatchAgent, BatchRuns, release
from privcheck_algorithms.online.private import declared, refuse, refuse_bytes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

OPTIONS = (
    Parameter(name="first_batch", default=300, kind="count", meaning="users of the first batch"),
    Parameter(name="growth", default="1.25", kind="positive", meaning="each batch is so much larger; at least 1"),
    Parameter(name="turns", default=32, kind="count", meaning="policies that take turns within a batch"),
    Parameter(name="spread", default="0.5", kind="real", meaning="draws deviate by so many posterior deviations"),
    Parameter(name="reach", default=1, kind="positive", meaning="V is clipped at so many deviations of likely states"),
    Parameter(name="prior", default=1, kind="positive", meaning="prior deviation of each unknown weight"),
)
_CHANCE: Final = 0.25  # no number in an interval of length 1 has a larger variance
_FLAT: Final = 1e-9  # values that differ by less, in units of H, are alike


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Normal:
    """A normal law of n unknowns per step.

    Attributes:
        mean: (H, n) means.
        root: (H, n, n) lower triangular L with covariance LLᵀ.
    """

    mean: Array
    root: Array

    def draw(self, rng: np.random.Generator, number: int, spread: float) -> Array:
        """Draws from the law, (number, H, n), with `spread` times the standard deviation."""
        z = rng.standard_normal((number, *self.mean.shape))
        return np.asarray(self.mean + spread * np.einsum("hij,ghj->ghi", self.root, z))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    """Public constants of the agent.

    Attributes:
        H: Number of steps.
        known: The mixture.
        phi: (S, A, d₂) features of rewards.
        public: (H, S, A) mean rewards if they are known; else None.
        sigma: Standard deviation of the noise on sums of values.
        sigma_rewards: Standard deviation of the noise on sums of rewards; 0 if rewards are known.
        option: The agent's options as floats.
    """

    H: int
    known: Mixture
    phi: Array
    public: Array | None
    sigma: float
    sigma_rewards: float
    option: Mapping[str, float]

    @property
    def deviation(self) -> float:
        """Standard deviation of each unknown in the prior."""
        return self.option["prior"]

    def prior(self, n: int) -> Normal:
        """Prior of n unknowns per step: mean 0 and equal deviations."""
        return Normal(mean=np.zeros((self.H, n)), root=np.tile(self.deviation * np.eye(n), (self.H, 1, 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedBatches:
    """The billboard: the releases of the batches so far, with the public values and policies of each batch.

    Attributes:
        values: (B, H − 1, d₁) noisy sums of x·y.
        rewards: (B, H, d₂) noisy sums of φ·(r − ½), or (B, 0, d₂).
        bases: (B, H + 1, S) the public values V.
        played: (B, G, H, S) the policies.
        sizes: (B,) the batches' users.
    """

    values: Array
    rewards: Array
    bases: Array
    played: Indices
    sizes: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Belief:
    """Posterior of the agent.

    Attributes:
        weights: Law of η; for the last step, about which nothing is learned, the prior.
        rewards: Law of the rewards' weights; None if rewards are known.
    """

    weights: Normal
    rewards: Normal | None


def believe(past: ReleasedBatches, c: Numbers) -> Belief:
    """Normal posterior of all weights, from noisy sums.

    A batch's Gram matrices are not released: under public policies their expectation is n·Σ P(s_h = s)·xxᵀ. The law of
    s_h depends only on the weights of the steps before h, so that one pass over the steps suffices.
    """
    (S, A, d2), q = c.phi.shape, c.known.open.shape[0]
    weights, rewards = c.prior(q), None if c.public is not None else c.prior(d2)
    B, sums = len(past.sizes), past.values @ c.known.basis
    if B == 0:
        return Belief(weights=weights, rewards=rewards)
    designs = [design(c.known, basis) for basis in past.bases]
    laws = np.broadcast_to(c.known.initial, (*past.played.shape[:2], S)).copy()
    for h in range(c.H):
        told = np.ascontiguousarray(past.played[:, :, h])
        visits = past.sizes[:, None, None] * mean_visits(laws, told, A)
        if rewards is not None:
            flat = Regression(
                x=np.broadcast_to(c.phi, (B, S, A, d2)), known=np.full((B, S, A), -0.5), length=np.ones(B)
            )
            rewards.mean[h], rewards.root[h] = regress(past.rewards[:, h], flat, visits, c.sigma_rewards, c.deviation)
        if h + 1 < c.H:
            on_values = Regression(
                x=np.stack([one.x[h] for one in designs]),
                known=np.stack([one.known[h] for one in designs]),
                length=np.array([one.length[h] for one in designs]),
            )
            weights.mean[h], weights.root[h] = regress(sums[:, h], on_values, visits, c.sigma, c.deviation)
            laws = follow(transitions(c.known, weights.mean[h]), told, laws)
    return Belief(weights=weights, rewards=rewards)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regression:
    """Regression model of the sums of B batches at one step: E[y | s, a] = known + length·⟨x, u⟩.

    Attributes:
        x: (B, S, A, n) features.
        known: (B, S, A) known part of the mean.
        length: (B,) scale of the unknown part.
    """

    x: Array
    known: Array
    length: Array


def regress(sums: Array, about: Regression, visits: Array, sigma: float, deviation: float) -> tuple[Array, Array]:
    """Posterior of u, mean and root, from batches of sums z = Σx·y + noise.

    With the expected Gram matrix G = Σ visits·xxᵀ of a batch, z has mean length·G·u + Σ visits·known·x, and variance at
    most σ²I + G/4, since y is in an interval of length 1. The prior is normal about 0.

    Args:
        sums: (B, n) z.
        about: Regression model of the sums.
        visits: (B, S, A) expected visits.
        sigma: Standard deviation of the noise.
        deviation: Standard deviation of each unknown in the prior.
    """
    (B, n), cells = sums.shape, visits[0].size
    x, each = about.x.reshape(B, cells, n), visits.reshape(B, cells)
    grams = x.swapaxes(-1, -2) @ (each[..., None] * x)
    offsets = np.einsum("bc,bc,bcn->bn", each, about.known.reshape(B, cells), x)
    slopes = about.length[:, None, None] * grams
    spread = sigma**2 * np.eye(n) + _CHANCE * grams
    told = np.linalg.solve(spread, np.concatenate([slopes, (sums - offsets)[..., None]], axis=-1))
    products = (slopes @ told).sum(axis=0)  # slopes are symmetric
    precision = (products[:, :-1] + products[:, :-1].T) / 2 + np.eye(n) / deviation**2
    covariance = np.linalg.inv(precision)
    root = np.linalg.cholesky((covariance + covariance.T) / 2)
    return np.asarray(covariance @ products[:, -1], dtype=np.float64), np.asarray(root, dtype=np.float64)


def choose(belief: Belief, c: Numbers, draws: np.random.Generator) -> tuple[Indices, Array]:
    """Policies (G, H, S) of the next batch, each the best of a sampled model, and its public V (H + 1, S).

    V is that of the mean model, clipped to its likely range (`clip_values`).

    Args:
        belief: The posterior.
        c: Constants of the agent.
        draws: Public generator.
    """
    G, spread, (S, A) = int(c.option["turns"]), c.option["spread"], c.phi.shape[:2]
    weights = belief.weights.draw(draws, G, spread)
    if belief.rewards is None:
        assert c.public is not None
        mean, rewards = c.public, np.broadcast_to(c.public, (G, c.H, S, A))
    else:
        mean = mean_rewards(belief.rewards.mean, c)
        rewards = mean_rewards(belief.rewards.draw(draws, G, spread), c)
    chosen, values = np.zeros((G, c.H, S), dtype=np.int64), np.zeros((G, c.H + 1, S))
    for turn in range(G):
        plan(c.known, weights[turn], rewards[turn], chosen[turn], values[turn])
    greedy, basis = np.zeros((c.H, S), dtype=np.int64), np.zeros((c.H + 1, S))
    plan(c.known, belief.weights.mean, mean, greedy, basis)
    flat = np.ptp(basis, axis=1) <= _FLAT * c.H  # tells nothing: take the first draw's, whose rewards differ
    basis[flat] = values[0, flat]
    return chosen, clip_values(basis, chosen, belief.weights.mean, c)


def clip_values(values: Array, chosen: Indices, weights: Array, c: Numbers) -> Array:
    """Values V (H + 1, S), clipped to a number of standard deviations from their mean over the likely states.

    Noise is scaled to the whole span of the targets. If unreachable states have the largest values, V hardly
    distinguishes reachable ones; clipped, it does, and any function of the next state identifies the weights as well as
    V.

    Args:
        values: (H + 1, S) values V.
        chosen: (G, H, S) the batch's policies.
        weights: (H, q) the mean of η.
        c: Constants of the agent.
    """
    clipped = values.copy()
    laws = np.broadcast_to(c.known.initial, (1, len(chosen), values.shape[1])).copy()
    for h in range(c.H - 1):
        laws = follow(transitions(c.known, weights[h]), np.ascontiguousarray(chosen[None, :, h]), laws)
        law = laws.mean(axis=(0, 1))
        mean = law @ values[h + 1]
        reach = c.option["reach"] * np.sqrt(law @ (values[h + 1] - mean) ** 2)
        if reach > _FLAT * c.H:
            clipped[h + 1] = np.clip(values[h + 1], mean - reach, mean + reach)
    return clipped


def mean_rewards(weights: Array, c: Numbers) -> Array:
    """Mean rewards (…, S, A) in [0, 1] under weights (…, d₂)."""
    return np.asarray(np.clip(np.einsum("sai,...i->...sa", c.phi, weights), 0.0, 1.0))


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of CALIBRATED-LINOPT in its world.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; the agent plans as with noise.

    Raises:
        ParameterError: The world has no kernels of a mixture, sizes differ from the environment's, there is no episode,
            tables exceed 8 GB, or an option is invalid.
    """
    refuse(request, vectors=0)
    c = numbers(request)
    runs = BatchRuns(request, first=int(c.option["first_batch"]))
    B, G = len(runs.ends), int(c.option["turns"])
    refuse_tables(request, c, batches=B)
    steps, drawn = c.H if c.public is None else 0, 0.0 if noiseless else 1.0
    S, d1, d2 = request.world.mdp.states, len(c.known.basis), c.phi.shape[-1]

    def blank() -> dict[str, NDArray[Any]]:
        return {
            "values": np.zeros((B, max(c.H - 1, 1), d1)),
            "exact_values": np.zeros((max(c.H - 1, 1), d1)),
            "rewards": np.zeros((B, steps, d2)),
            "exact_rewards": np.zeros((steps, d2)),
            "bases": np.zeros((B, c.H + 1, S)),
            **runs.blank_turns(G),
        }

    def begin(one: Replicate, batch: Batch) -> None:
        a, so_far = one.arrays, batch.number
        past = ReleasedBatches(
            values=a["values"][:so_far],
            rewards=a["rewards"][:so_far],
            bases=a["bases"][:so_far],
            played=a["played"][:so_far],
            sizes=runs.sizes[:so_far].astype(np.float64),
        )
        chosen, a["bases"][so_far] = choose(believe(past, c), c, one.generators["draws"])
        a["actions"][...] = chosen[0]
        runs.take_turns(one, batch, chosen, turns=(batch.begun % G, (batch.begun - 1) % G))
        a["exact_values"][...] = a["exact_rewards"][...] = 0.0

    def run_users(one: Replicate, batch: Batch, record: Record) -> None:
        a = one.arrays
        within = design(c.known, a["bases"][batch.number])
        users = Users(
            begun=batch.begun,
            policies=a["played"][batch.number],
            worth=a["worth"],
            changes=a["changes"],
            targets=within.targets,
            x=within.x @ c.known.basis.T,
            values=a["exact_values"],
            phi=c.phi,
            rewards=a["exact_rewards"],
        )
        serve(runs.w, one.generators["users"], users, record)

    def leave(one: Replicate, batch: Batch) -> None:
        a, noise = one.arrays, one.generators["noise"]
        a["values"][batch.number] = release(a["exact_values"], drawn * c.sigma, noise)
        if steps:
            a["rewards"][batch.number] = release(a["exact_rewards"], drawn * c.sigma_rewards, noise)

    return runs.player(
        "calibrated-linopt",
        BatchAgent(blank=blank, begin=begin, serve=run_users, leave=leave),
        noiseless=noiseless,
        names=tuple(one.name for one in declared(request).noisy),
        policy=("actions", "played", "bases"),
        draws="draws",
        diagnostics={"noise_std": c.sigma, "noise_std_rewards": c.sigma_rewards},
    )


def numbers(request: OnlineRequest) -> Numbers:
    """Constants of the agent, with the noise of the declaration.

    Raises:
        ParameterError: The world has no kernels of a mixture, or other dimensions than declared.
    """
    declaration, world, features = declared(request), request.world, find_kernels(request)
    known = mixture(np.asarray(features.kernels), world.public_model.initial)
    for name, found in features.sizes.items():
        if name in request.values and request.values[name] != found:
            message = f"{name}: {request.values[name]} is declared, but {world.name} has {found}; leave {name} out"
            raise ParameterError(message, name=name, given=request.values[name])
    noise = {r.name: r.mechanism.at(request.values).scale for r in declaration.noisy}
    mdp, public = world.mdp, None
    if "rewards" not in noise:
        public = np.broadcast_to(world.public_model.mean_reward, (mdp.horizon, mdp.states, mdp.actions)).copy()
    return Numbers(
        H=mdp.horizon,
        known=known,
        phi=np.ascontiguousarray(features.phi),
        public=public,
        sigma=noise["values"],
        sigma_rewards=noise.get("rewards", 0.0),
        option={name: float(value) for name, value in request.options.items()},
    )


def refuse_tables(request: OnlineRequest, c: Numbers, *, batches: int) -> None:
    """Raise an error for tables, policies and expected visits beyond 8 GB.

    Raises:
        ParameterError: The arrays need more memory.
    """
    S, A, d2 = c.phi.shape
    d1, q = c.known.basis.shape
    kept = (batches + 1) * c.H * (d1 + d2 + S * (1 + float(c.option["turns"])))
    passing = batches * c.H * S * A * (1 + q) + (d1 + q + 1) * S * S * A
    refuse_bytes(
        request,
        8.0 * (kept * request.replicates + passing * max(1, min(request.workers, request.replicates))),
        what=f"{batches} batches of sums and of {int(c.option['turns'])} policies",
        remedy="fewer --replicates or turns, a larger growth or first_batch, or smaller S, A or H",
    )
