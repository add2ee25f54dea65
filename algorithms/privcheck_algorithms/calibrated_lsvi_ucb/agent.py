"""The agent of CALIBRATED-LSVI-UCB: batches, a Bayesian linear model from noisy tables, policies of sampled models.

`learn` and `decide` are the agent half and read the billboard alone; `release` (of `online.batches`) is the
channel's side; `serve` (in `kernels`) runs the users. The README has the budget and the decisions.

In this order: the model (`learn` with Bayes' linear rule, `regress`), the policies (`decide`), the player.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, Player, Record, Replicate
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.calibrated_lsvi_ucb.declaration import RELEASE
from privcheck_algorithms.calibrated_lsvi_ucb.kernels import Model, Users, advance, count_visits, plan, project, serve
from privcheck_algorithms.linear.tables import (
    LinearTables,
    Tables,
    Weights,
    pack,
    refuse_angles,
    round_features,
    simplex,
    unpack,
)
from privcheck_algorithms.online.batches import Batch, BatchAgent, BatchRuns, release
from privcheck_algorithms.online.private import declared, refuse, refuse_bytes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Variances that decide the weight of a table.

    Attributes:
        chance: χ, the variance of one user's contribution, in units of φφᵀ.
        noise: ν, the variance of the noise on every entry; above 0.
        prior: τ², the prior variance of the unknowns.
    """

    chance: float
    noise: float
    prior: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicInputs:
    """Public inputs, known before there are users.

    Attributes:
        phi: (S, A, d) mapped features.
        steps: T, the number of steps with releases.
        horizon: H.
        weights: Squared weights of Gram matrix, successors and rewards in the tables.
        sigma: Standard deviation of the noise on every entry of the tables.
        prior: Prior standard deviation of the unknowns, in units of that of a deterministic law.
    """

    phi: Array
    steps: int
    horizon: int
    weights: Weights
    sigma: float
    prior: float

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Sizes S, A and d."""
        S, A, d = self.phi.shape
        return S, A, d

    @property
    def even(self) -> float:
        """Number of users for which sampling error equals noise, if users are spread evenly over all directions."""
        S, _, d = self.sizes
        return d * S * self.trust(self.weights[1], 1 / S).noise

    def trust(self, weight: float, chance: float) -> Trust:
        """Variances of a table.

        The noise is the table's own, plus, with released Gram matrices, that of δG·M: the sum over k of δG_ik·M_kj has
        variance
        σ²/2g·(d + 1)·τ² on average.

        Args:
            weight: Squared weight of the table.
            chance: χ, the variance of a coordinate, which is also that of a deterministic law.
        """
        d, g, variance = self.phi.shape[2], self.weights[0], self.prior**2 * chance
        other = (d + 1) * variance / (2 * g) if g > 0 else 0.0
        return Trust(chance=chance, noise=self.sigma**2 * (1 / weight + other), prior=variance)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedBatches:
    """The billboard: the releases of the batches so far, and their policies.

    Attributes:
        tables: (B, T, numbers) noisy tables.
        played: (B, G, H, S) the policies.
        users: (B, G) number of users of each policy.
        initial: (S,) the public law of the first state.
        reward: (H, S·A) public mean rewards; no steps if they are learned.
    """

    tables: Array
    played: Indices
    users: Array
    initial: Array
    reward: Array


def learn(past: ReleasedBatches, public: PublicInputs) -> Model:
    """Learn the model of every step from the billboard alone.

    Gram matrices need no noise and no budget if policies are public: at step 1 the law of the state is public, so G is
    the sum of φφᵀ over public actions; the regression at step 1 gives the law of the state at step 2 under every policy
    of every batch, and so on. The errors of such a G are the sampling error of the states, and the errors of the model
    so far.
    """
    S, A, d = public.sizes
    T, rewards = public.steps, public.weights[2] > 0
    columns = public.phi.reshape(-1, d)
    noisy = unpack(past.tables, dimension=d, states=S, weights=public.weights)
    law = np.broadcast_to(past.initial, (*past.users.shape, S)).copy()
    effect, root = np.zeros((T, d, S)), np.zeros((T, d, d))
    theta, spread = np.zeros((T * rewards, d)), np.zeros((T * rewards, d, d))
    for h in range(T):
        visits, actions = np.zeros((len(past.users), S, A)), np.ascontiguousarray(past.played[:, :, h])
        if noisy.gram is None:
            count_visits(law, actions, past.users, visits)
        axes = find_axes(noisy, visits.reshape(-1, S * A), columns, h)
        mean, root[h] = regress(*axes, noisy.successors[:, h], public.trust(public.weights[1], 1 / S))
        effect[h] = mean @ simplex(S).T
        if noisy.rewards is not None:  # r − ½ has variance ¼ at most
            found, spread[h] = regress(*axes, noisy.rewards[:, h, :, None], public.trust(public.weights[2], 1 / 4))
            theta[h] = found[:, 0]
        if noisy.gram is None:
            advance(law, actions, predict_laws(effect[h], public))
    return Model(effect, root, past.reward, theta, spread)


def find_axes(noisy: Tables, visits: Array, rows: Array, step: int) -> tuple[Array, Array]:
    """Eigenvalues (B, d), at least 0, and eigenvectors (B, d, d) of the batches' Gram matrices at a step.

    Args:
        noisy: The tables; their Gram matrices are used if present.
        visits: (B, S·A) expected visits otherwise.
        rows: (S·A, d) the features.
        step: h, from 0.
    """
    gram = noisy.gram[:, step] if noisy.gram is not None else weigh_outer(rows, visits)
    lengths, axes = np.linalg.eigh(gram)
    return np.maximum(lengths, 0.0), axes


def weigh_outer(rows: Array, weights: Array) -> Array:
    """Sums Σ w·φφᵀ over features (pairs, d) for every row of weights (rows, pairs), of shape (rows, d, d)."""
    gram = np.empty((len(weights), rows.shape[1], rows.shape[1]))
    for number, row in enumerate(weights):
        gram[number] = (rows.T * row) @ rows
    return gram


def regress(lengths: Array, axes: Array, sums: Array, trust: Trust) -> tuple[Array, Array]:
    """Mean (d, columns) of M and a root (d, d) of the covariance of each column.

    Bayes' linear rule with the exact noise. A batch's table is y = G·M + chance + noise, with G its Gram matrix, chance
    of covariance χG in every column (χ = 1/S is the variance of a coordinate of x(s′) under the uniform law) and noise
    of variance ν in every entry. Under a prior of independent entries of M with variance τ²,

        J = I/τ² + Σ_b G(χG + νI)⁻¹G,    mean = J⁻¹ Σ_b G(χG + νI)⁻¹y,    covariance of each column J⁻¹.

    Large batches therefore have larger weights than small ones, and unobserved directions keep the prior.

    Args:
        lengths: (B, d) eigenvalues of the batches' Gram matrices.
        axes: (B, d, d) their eigenvectors, as columns.
        sums: (B, d, columns) noisy sums.
        trust: Variances of the sums.
    """
    weights = lengths / (trust.chance * lengths + trust.noise)
    precision = np.eye(axes.shape[1]) / trust.prior
    total = np.zeros(sums.shape[1:])
    for weight, length, axis, table in zip(weights, lengths, axes, sums, strict=True):
        precision += (axis * (weight * length)) @ axis.T
        total += (axis * weight) @ (axis.T @ table)
    values, vectors = np.linalg.eigh(precision)
    return (vectors / values) @ (vectors.T @ total), vectors / np.sqrt(values)


def predict_laws(effect: Array, public: PublicInputs) -> Array:
    """Transitions P(· | s, a) of the mean model at one step, (S, A, S): the nearest probability vectors.

    Args:
        effect: (d, S) effect E of the model.
        public: Public inputs.
    """
    S, A, d = public.sizes
    rows = public.phi.reshape(-1, d) @ effect + 1 / S
    project(rows)
    return rows.reshape(S, A, S)


def perturb(model: Model, factor: float, turns: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draws for the sampled models of a batch: (G, T, d) for the laws and for rewards; public randomness."""
    T, d, _ = model.effect.shape
    draws = factor * rng.standard_normal((turns, T, d))
    return draws, factor * rng.standard_normal((turns, len(model.theta), d))


OPTIONS = (
    Parameter(
        name="first_batch",
        default="1",
        kind="positive",
        meaning="the first batch, in units of the users whose chance is as large as the noise; at most K/8 users",
    ),
    Parameter(name="growth", default="1.15", kind="positive", meaning="each batch is so much larger; at least 1"),
    Parameter(name="perturbation", default="0.5", kind="real", meaning="how many standard deviations models are moved"),
    Parameter(
        name="prior",
        default="0.5",
        kind="positive",
        meaning="standard deviation of what is unknown, in units of what a deterministic law needs",
    ),
    Parameter(name="turns", default=64, kind="count", meaning="policies that take turns within a batch"),
)
_LARGEST = 8  # the first batch is at most K over this
_INSIDE = 1 + 1e-13  # norms that are 1 but for roundings are 1 at most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agent:
    """The agent's constants, before there are users.

    Attributes:
        public: Public inputs.
        numbers: Number of table entries per batch and step.
        batches: B, the number of batches.
        turns: G, the number of policies per batch.
        perturbation: Size of the models' perturbation, in standard deviations.
        known: Whether rewards are public.
    """

    public: PublicInputs
    numbers: int
    batches: int
    turns: int
    perturbation: float
    known: bool


def decide(past: ReleasedBatches, agent: Agent, rng: np.random.Generator) -> Indices:
    """Policies (G, H, S) of the next batch, from the billboard and public randomness alone.

    The last batch has one policy, that of the mean model, since nothing is learned from it.
    """
    public = agent.public
    S, _, d = public.sizes
    model, last = learn(past, public), len(past.users) == agent.batches - 1
    factor = 0.0 if last and len(past.users) else agent.perturbation
    draws, gains = perturb(model, factor, agent.turns, rng)
    columns = np.ascontiguousarray(public.phi.reshape(-1, d).T)
    chosen = np.zeros((agent.turns, public.horizon, S), dtype=np.int64)
    for turn in range(agent.turns):
        if turn and factor == 0.0:
            chosen[turn] = chosen[0]
        else:
            plan(columns, model, draws[turn], gains[turn], chosen[turn])
    return chosen


def deal(users: int, turns: int) -> Array:
    """Number of users of a batch for each of the policies that take turns, (G,).

    >>> deal(7, 3).tolist()
    [3.0, 2.0, 2.0]
    """
    return np.array([len(range(turn, users, turns)) for turn in range(turns)], dtype=np.float64)


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of CALIBRATED-LSVI-UCB in its world.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; the agent plans as with noise.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, features closer to opposite than declared,
            tables beyond 8 GB, or an invalid option.
    """
    agent, runs = prepare(request)
    public, G = agent.public, agent.turns
    S, A, d = public.sizes
    T, H, g = public.steps, public.horizon, public.weights[0]
    known = request.world.public_model  # a user who answers otherwise changes nothing of what is public
    reward = np.broadcast_to(known.mean_reward, (H, S, A)).reshape(H, S * A)[: H * agent.known].copy()
    sigma = 0.0 if noiseless else public.sigma

    def blank() -> dict[str, NDArray[Any]]:
        return {
            RELEASE: np.zeros((len(runs.ends), T, agent.numbers)),
            f"exact_{RELEASE}": np.zeros((T, agent.numbers)),
            "reached": np.zeros((T, S, d)),
            "visits": np.zeros((T * (g > 0), S, A)),
            "gains": np.zeros((T * (not agent.known), d)),
            **runs.blank_turns(G),
        }

    def begin(one: Replicate, batch: Batch) -> None:
        a, sizes = one.arrays, runs.sizes[: batch.number].tolist()
        past = ReleasedBatches(
            tables=a[RELEASE][: batch.number],
            played=a["played"][: batch.number],
            users=np.stack([deal(n, G) for n in sizes]) if sizes else np.zeros((0, G)),
            initial=known.initial,
            reward=reward,
        )
        chosen = decide(past, agent, one.generators["turns"])
        runs.take_turns(one, batch, chosen, turns=(0, (sizes[-1] - 1) % G if sizes else 0))
        for name in ("reached", "visits", "gains"):
            a[name][...] = 0.0

    def run_users(one: Replicate, batch: Batch, record: Record) -> None:
        a = one.arrays
        told = (a["played"][batch.number], a["worth"], a["changes"])
        users = Users(batch.begun, *told, public.phi, a["reached"], a["visits"], a["gains"])
        serve(runs.w, one.generators["users"], users, record)
        a["actions"][...] = a["played"][batch.number, (int(a["totals"][DONE]) - 1 - batch.begun) % G]

    def leave(one: Replicate, batch: Batch) -> None:
        a, exact = one.arrays, one.arrays[f"exact_{RELEASE}"]
        exact[...] = sum_up_batch(a["reached"], a["visits"], a["gains"], public)
        a[RELEASE][batch.number] = release(exact, sigma, one.generators["noise"])

    return runs.player(
        "calibrated-lsvi-ucb",
        BatchAgent(blank=blank, begin=begin, serve=run_users, leave=leave),
        noiseless=noiseless,
        names=(RELEASE,),
        draws="turns",
        diagnostics={"noise_std": public.sigma, "users_as_large_as_noise": public.even},
    )


def sum_up_batch(reached: Array, visits: Array, gains: Array, public: PublicInputs) -> Array:
    """Exact tables (T, numbers) of a batch from its sums: the privatizer's side."""
    S, A, d = public.sizes
    gram = weigh_outer(public.phi.reshape(-1, d), visits.reshape(-1, S * A))
    return pack(gram, reached.transpose(0, 2, 1), gains, weights=public.weights)


def prepare(request: OnlineRequest) -> tuple[Agent, BatchRuns]:
    """Constants of the agent, with the noise of the declaration, and its batches.

    Raises:
        ParameterError: As `player`.
    """
    refuse(request, vectors=0)
    declaration, options, world = declared(request), request.options, request.world
    one = declaration.release(RELEASE)
    statistic = one.statistic
    assert isinstance(statistic, LinearTables)
    T, numbers = statistic.shape(request.values)
    d = world.sizes["d"]
    if int(request.values["d"]) != d:
        message = f"the declaration does not fit the environment: d = {request.values['d']} but {d} in {world.name}"
        raise ParameterError(message, name="d", given=request.values["d"])
    refuse_memory(request, numbers=T * numbers, batches=2)  # before features are made
    phi = map_features(world.feature_map.phi, mapped=request.readings.get("features", "mapped") == "mapped")
    refuse_angles(phi, statistic.least.number(request.values, rounding="up"))
    public = PublicInputs(
        phi=np.ascontiguousarray(phi),
        steps=T,
        horizon=world.mdp.horizon,
        weights=statistic.weights_at(request.values),
        sigma=one.mechanism.at(request.values).scale,
        prior=float(options["prior"]),
    )
    first = max(1, int(min(float(options["first_batch"]) * public.even, request.episodes / _LARGEST)))
    runs = BatchRuns(request, first=first)
    refuse_memory(request, numbers=T * numbers, batches=len(runs.ends))
    agent = Agent(
        public=public,
        numbers=numbers,
        batches=len(runs.ends),
        turns=int(options["turns"]),
        perturbation=float(options["perturbation"]),
        known=statistic.rewards is None,
    )
    return agent, runs


def map_features(phi: Array, *, mapped: bool) -> Array:
    """Features that the tables sum, (S, A, d), of length at most 1.

    Args:
        phi: (S, A, d) features of the world.
        mapped: Whether to use the coordinates in which they fill the unit ball best; unused coordinates are 0.
    """
    if mapped:
        rounded = round_features(phi)
        return np.pad(rounded, ((0, 0), (0, 0), (0, phi.shape[2] - rounded.shape[2])))
    longest = float(np.linalg.norm(phi, axis=-1).max())
    return phi / max(1.0, longest * _INSIDE)


def refuse_memory(request: OnlineRequest, *, numbers: int, batches: int) -> None:
    """Raise an error for arrays beyond 8 GB.

    Args:
        request: The request.
        numbers: Number of table entries of a batch.
        batches: B, the number of batches.

    Raises:
        ParameterError: The arrays need more memory.
    """
    mdp, turns, d = request.world.mdp, int(request.options["turns"]), request.world.sizes["d"]
    H, pairs = mdp.horizon, mdp.states * mdp.actions
    chosen = turns * (H + 1) * mdp.states
    kept = batches * (numbers + chosen) + H * (d * mdp.states + pairs)
    passing = batches * (2 * numbers + 3 * d * d + pairs) + H * (d * mdp.states + 2 * d * d) + 2 * pairs * d
    refuse_bytes(
        request,
        8.0 * (kept * request.replicates + passing),
        what=f"d = {d} and {batches} batches of tables and of {turns} policies",
        remedy="features of fewer dimensions, fewer --replicates or turns, a larger growth or first_batch, or smaller "
        "S, A or H",
    )
