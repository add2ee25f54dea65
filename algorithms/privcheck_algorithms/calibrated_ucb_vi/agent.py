"""The agent of CALIBRATED-UCB-VI: batches, noisy tables, optimism. README: budget, readings and their price.

`estimate` and `policies` are the agent and read noisy tables alone; `release` is the channel's side; `serve` (kernels)
runs the users.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.declare.declaration import Parameter
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics.grid import OnGrid
from privcheck.errors import ParameterError
from privcheck.runtime.noise import ReleaseNoise
from privcheck.runtime.online import DONE, SWITCHES, Player, Record, Replicate, blank, grid
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.calibrated_ucb_vi.kernels import Batch, Estimate, add_expected_visits, plan, serve
from privcheck_algorithms.kernels.sparse_mdp import compress, value_greedy
from privcheck_algorithms.online.policy_runs import LEARNER, PolicyRuns, schedule, tune
from privcheck_algorithms.online.policy_runs import Batch as Ended
from privcheck_algorithms.online.private import MEMORY, NOISE, declared, refuse
from privcheck_algorithms.online.stage import BatchFace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

OPTIONS = (
    Parameter(name="first_batch", default=256, kind="count", meaning="users of the first batch"),
    Parameter(name="growth", default="1.05", kind="positive", meaning="each batch is so much larger; at least 1"),
    *LEARNER,
    Parameter(name="bonus", default="0.1", kind="real", meaning="of policy=turns: factor of the bonus H/√n"),
    Parameter(name="noise_bonus", default="0.2", kind="real", meaning="and of the bonus H·σ/n for noise"),
    Parameter(name="support", default="2.5", kind="real", meaning="and successors below so many σ taken for noise"),
    Parameter(name="known", default="0.25", kind="real", meaning="and pairs below so many σ√S of visits unknown"),
    Parameter(name="turns", default=32, kind="count", meaning="and policies that take turns within a batch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Constants of the agent.

    Attributes:
        H: Number of steps.
        S: Number of states.
        A: Number of actions.
        tables: T, the number of tables: 1 if pooled, H by step.
        cap: m.
        sigma: Standard deviation of a transition count's noise.
        sigma_rewards: Standard deviation of a reward sum's noise; 0 if rewards are known.
        option: The agent's options as floats.
    """

    H: int
    S: int
    A: int
    tables: int
    cap: int
    sigma: float
    sigma_rewards: float
    option: Mapping[str, float]


def numbers(request: OnlineRequest) -> Numbers:
    """Constants of the agent, with the noise of the declaration.

    Raises:
        ParameterError: growth below 1, or initial=fixed although the first state is random.
    """
    declaration, mdp = declared(request), request.world.mdp
    if request.options["growth"] < 1:
        message = f"growth (each batch is so much larger): expected at least 1, got {request.options['growth']}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    if isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed" and not mdp.fixed_start:
        message = f"initial=fixed: in {request.world.name} the first state is drawn; use --set initial=any"
        raise ParameterError(message, name="initial", given="fixed")
    noise = {r.name: r.mechanism.at(request.values).scale for r in declaration.noisy}
    pooled = request.readings.get("counts", "pooled") == "pooled"
    return Numbers(
        H=mdp.horizon,
        S=mdp.states,
        A=mdp.actions,
        tables=1 if pooled else mdp.horizon,
        cap=int(request.readings.get("cap", "3")) if pooled else 1,
        sigma=noise["transitions"],
        sigma_rewards=noise.get("rewards", 0.0),
        option={name: float(value) for name, value in request.options.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedBatches:
    """The billboard: the releases of the batches so far, and their policies.

    Attributes:
        transitions: (B, T, S, A, S) noisy counts.
        rewards: (B, T, S, A) noisy reward sums.
        played: (B, G, H, S) the policies.
        sizes: (B,) the batches' users.
    """

    transitions: Array
    rewards: Array
    played: Indices
    sizes: Array


def estimate(past: ReleasedBatches, weights: Array, c: Numbers, known_rewards: Array | None) -> Estimate:
    """Estimates from the batches' noisy tables, with a weight per batch and pair.

    Args:
        past: The billboard.
        weights: (B, T, S, A) weights in [0, 1].
        c: Constants of the agent.
        known_rewards: (T, S, A) public mean rewards; None if they are estimated.
    """
    counts = (weights[..., None] * past.transitions).sum(axis=0)
    spread = c.sigma * np.sqrt((weights**2).sum(axis=0))  # of each cell's noise
    visits = counts.sum(axis=-1)
    kept = np.where(counts > c.option["support"] * spread[..., None], counts, 0.0)
    total = kept.sum(axis=-1)
    least = np.maximum(c.option["known"] * spread * math.sqrt(c.S), 1.0)
    known = (visits > least) & (total > 0)
    P = np.where(known[..., None], kept / np.where(total > 0, total, 1.0)[..., None], 1.0 / c.S)
    n = np.maximum(visits, 1.0)
    reward = known_rewards
    if reward is None:
        reward = np.clip((weights * past.rewards).sum(axis=0) / n, 0.0, 1.0)
    bonus = c.H * (c.option["bonus"] / np.sqrt(n) + c.option["noise_bonus"] * spread / n)
    return Estimate(P=P, reward=reward, bonus=bonus, known=known)


def weigh(past: ReleasedBatches, initial: Array, guess: Estimate, c: Numbers) -> Array:
    """Weight of each batch and pair, (B, T, S, A): its expected counts over those of the batch with the largest.

    All batches have the same noise, and a batch that hardly visits a pair contributes hardly anything else. Expected
    counts come from the estimated model and the public policies. Unknown pairs keep weight 1.
    """
    weights = np.zeros((len(past.sizes), c.tables, c.S, c.A))
    for batch, size in enumerate(past.sizes):
        add_expected_visits(guess.P, initial, past.played[batch], weights[batch])
        weights[batch] = size * np.minimum(weights[batch], c.cap)
    most = weights.max(axis=0)
    return np.where(guess.known & (most > 0), weights / np.where(most > 0, most, 1.0), 1.0)


def policies(
    past: ReleasedBatches, c: Numbers, order: Array, *, initial: Array, known_rewards: Array | None
) -> Indices:
    """Policies (G, H, S) of the next batch, from the billboard alone.

    Args:
        past: The billboard.
        c: Constants of the agent.
        order: (G, S, A) priorities among ties, for each policy.
        initial: (S,) the law of the first state, public.
        known_rewards: (T, S, A) public mean rewards, or None.
    """
    guess = estimate(past, np.ones(past.rewards.shape), c, known_rewards)
    if len(past.sizes) > 1:
        guess = estimate(past, weigh(past, initial, guess, c), c, known_rewards)
    chosen = np.zeros((len(order), c.H, c.S), dtype=np.int64)
    for turn, ties in enumerate(order):
        plan(guess, ties, chosen[turn])
    return chosen


def release(exact: Array, sigma: float, noise: np.random.Generator) -> Array:
    """Exact value plus fresh Gaussian noise: the channel's side, once per batch and table."""
    return np.asarray(exact + sigma * noise.standard_normal(exact.shape))


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of CALIBRATED-UCB-VI in its world.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; the agent plans as with noise.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, tables beyond 8 GB, or an invalid option.
    """
    if request.readings.get("policy", "one") == "one":
        return play_one_policy(request, noiseless=noiseless)
    if request.noise == "release":
        message = "calibrated-ucb-vi has release noise with policy=one only"
        raise ParameterError(message, name="noise", given="release")
    return take_turns(request, noiseless=noiseless)


def play_one_policy(request: OnlineRequest, *, noiseless: bool) -> Player:
    """Player of the variant in which each batch follows one public policy."""
    refuse(request, vectors=0)
    pooled = request.readings.get("counts", "pooled") == "pooled"
    _refuse_pooled(request, pooled=pooled)
    releases, mdp = declared(request).noisy, request.world.mdp
    sigma = {release.name: release.mechanism.at(request.values).scale for release in releases}
    shapes = {release.name: release.statistic.shape(request.values) for release in releases}
    tuning = tune(
        request, sigma=sigma["transitions"], sigma_rewards=sigma.get("rewards", 1.0), centre=0.5, pooled=pooled
    )
    public = None if "rewards" in shapes else np.broadcast_to(mdp.mean_reward, (mdp.horizon, mdp.states, mdp.actions))
    unit = reward_unit(request)
    runs = PolicyRuns(request, tuning=tuning, shapes=shapes, rounded=False, public=public, unit=unit)
    drawn = 0.0 if noiseless else 1.0

    def leave(one: Replicate, batch: Ended) -> None:
        for name, std in sigma.items():
            exact = one.arrays[f"exact_{name}"]
            one.arrays[name][batch.number] = release(exact, drawn * std, one.generators["noise"])

    def publish(one: Replicate, batch: Ended) -> None:
        source = ReleaseNoise()  # of this batch
        for i, entry in enumerate(request.setting.released.noisy):
            grid_of, noise = entry.statistic, entry.mechanism.at(request.values)
            assert isinstance(grid_of, OnGrid)
            whole = one.arrays[f"exact_{entry.name}"] / float(grid_of.unit)
            one.arrays[entry.name][batch.number] = grid_of.shown(source.add(noise, whole, release=i, part=0))

    published = request.noise == "release" and not noiseless
    return Player(
        start=runs.start,
        play=partial(runs.play, leave=publish if published else leave),
        label="calibrated-ucb-vi, noiseless" if noiseless else "calibrated-ucb-vi",
        told="actions",
        optimal=runs.optimal,
        face=BatchFace(names=tuple(shapes), ends=tuple(runs.ends.tolist()), policy=("actions", "played")),
        noise=ReleaseNoise().words if published else NOISE,
        protects=published,
        diagnostics={"batches": float(len(runs.ends)), **{f"noise_std_{name}": std for name, std in sigma.items()}},
    )


def reward_unit(request: OnlineRequest) -> float:
    """Grid for users' rewards: that of the reward sums under release noise; 0 for no rounding."""
    drawn = request.setting.drawn
    grids = [] if drawn is None else [r.statistic.unit for r in drawn.noisy if isinstance(r.statistic, OnGrid)]
    return float(max(grids, default=0))


def _refuse_pooled(request: OnlineRequest, *, pooled: bool) -> None:
    if pooled and request.world.mdp.transition.shape[0] > 1:
        message = f"counts=pooled: {request.world.name} changes with the step; use --set counts=steps"
        raise ParameterError(message, name="counts", given="pooled")


def take_turns(request: OnlineRequest, *, noiseless: bool) -> Player:
    """Player of the variant in which several policies take turns within a batch."""
    refuse(request, vectors=0)
    mdp, K, c = request.world.mdp, request.episodes, numbers(request)
    _refuse_pooled(request, pooled=c.tables == 1)
    ends = schedule(K, first=int(c.option["first_batch"]), growth=c.option["growth"])
    B, G = len(ends), int(c.option["turns"])
    refuse_tables(request, c, batches=B, turns=G)
    w, truth, drawn = compress(mdp), solve(mdp), 0.0 if noiseless else 1.0
    public, points = None, grid(K)
    if c.sigma_rewards == 0.0 and request.readings.get("rewards") == "known":
        public = np.broadcast_to(request.world.public_model.mean_reward, (c.tables, c.S, c.A))

    def start(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise", "ties")
        arrays = {
            "transitions": np.zeros((B, c.tables, c.S, c.A, c.S)),
            "rewards": np.zeros((B, c.tables, c.S, c.A)),
            "exact_transitions": np.zeros((c.tables, c.S, c.A, c.S)),
            "exact_rewards": np.zeros((c.tables, c.S, c.A)),
            "played": np.zeros((B, G, c.H, c.S), np.int64),
            "actions": np.zeros((c.H, c.S), np.int64),
            "worth": np.zeros(G),
            "changes": np.zeros(G, np.bool_),
        }
        generators = {name: np.random.default_rng(one) for name, one in own.items()}
        return Replicate(arrays=arrays | blank(K), generators=generators)

    def begin(one: Replicate, batch: int) -> None:
        a, sizes = one.arrays, np.diff(ends, prepend=0)[:batch].astype(np.float64)
        order = one.generators["ties"].random((G, c.S, c.A))
        past = ReleasedBatches(
            transitions=a["transitions"][:batch], rewards=a["rewards"][:batch], played=a["played"][:batch], sizes=sizes
        )
        chosen = policies(past, c, order, initial=request.world.public_model.initial, known_rewards=public)
        a["played"][batch], a["actions"][...] = chosen, chosen[0]
        for turn in range(G):
            judged, values = np.full((c.H, c.S), -1), np.zeros((c.H + 1, c.S))
            a["worth"][turn] = value_greedy(w, chosen[turn], judged, values)
        a["changes"][...] = (chosen != np.roll(chosen, 1, axis=0)).any(axis=(1, 2))
        done = int(a["totals"][DONE])
        if batch and (chosen[done % G] != a["played"][batch - 1, (done - 1) % G]).any():
            a["totals"][SWITCHES] += 1.0
        a["exact_transitions"][...] = a["exact_rewards"][...] = 0.0

    def block(one: Replicate, until: int) -> None:
        a, g = one.arrays, one.generators
        while (done := int(a["totals"][DONE])) < until:
            batch = int(np.searchsorted(ends, done, side="right"))
            begun = int(ends[batch - 1]) if batch else 0
            if done == begun:
                begin(one, batch)
            users = Batch(
                begun=begun,
                cap=c.cap,
                policies=a["played"][batch],
                worth=a["worth"],
                changes=a["changes"],
                transitions=a["exact_transitions"],
                rewards=a["exact_rewards"],
            )
            record = Record(min(until, int(ends[batch])), a["totals"], a["curves"], points, truth.value)
            serve(w, g["users"], users, record)
            if a["totals"][DONE] == ends[batch] and batch + 1 < B:  # nobody comes after the last batch
                a["transitions"][batch] = release(a["exact_transitions"], drawn * c.sigma, g["noise"])
                if public is None:
                    a["rewards"][batch] = release(a["exact_rewards"], drawn * c.sigma_rewards, g["noise"])

    label = "calibrated-ucb-vi in turns, noiseless" if noiseless else "calibrated-ucb-vi in turns"
    diagnostics = {"batches": float(B), "noise_std": c.sigma, "noise_std_rewards": c.sigma_rewards}
    names = tuple(release.name for release in declared(request).noisy)
    return Player(
        start=start,
        play=block,
        label=label,
        told="actions",
        optimal=truth.value,
        face=BatchFace(names=names, ends=tuple(ends.tolist()), policy=("actions", "played")),
        noise=NOISE,
        diagnostics=diagnostics,
    )


def refuse_tables(request: OnlineRequest, c: Numbers, *, batches: int, turns: int) -> None:
    """Raise an error for tables and policies beyond 8 GB.

    Raises:
        ParameterError: The arrays need more memory.
    """
    tables = (batches + 4) * c.tables * c.S * c.A * (c.S + 1)
    chosen = (batches + 1) * turns * c.H * c.S + turns * c.S * c.A
    needed = 8.0 * (tables + chosen) * request.replicates
    if needed > MEMORY:
        message = (
            f"{batches} batches of tables and of {turns} policies in {request.replicates} replicates need "
            f"{needed / 1e9:.1f} GB, at most {MEMORY / 1e9:g} GB are allowed: fewer --replicates or turns, a larger "
            "growth or first_batch, or smaller S, A or H"
        )
        raise ParameterError(message, name="replicates", given=request.replicates)
