"""The agent of CALIBRATED-LSVI-UCB: batches, a Bayesian linear model from noisy tables, policies of sampled models.

`learn` and `decide` are the agent half and read the billboard alone; `release` (of `calibrated_ucb_vi.agent`) is the
channel's side; `serve` (in `kernels`) runs the users. The README has the budget and the decisions.

In this order: the model (`learn` with Bayes' linear rule, `regress`), the policies (`decide`), the player.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, SWITCHES, Player, Record, Replicate, blank, grid
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.calibrated_lsvi_ucb.declaration import RELEASE
from privcheck_algorithms.calibrated_lsvi_ucb.kernels import Batch, Model, advance, count_visits, plan, project, serve
from privcheck_algorithms.calibrated_ucb_vi.agent import release
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, compress, value_greedy
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
from privcheck_algorithms.online.policy_runs import schedule
from privcheck_algorithms.online.private import MEMORY, NOISE, declared, refuse
from privcheck_algorithms.online.stage import BatchFace

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
        ends: The last user of each batch.
        turns: G, the number of policies per batch.
        perturbation: Size of the models' perturbation, in standard deviations.
        known: Whether rewards are public.
    """

    public: PublicInputs
    numbers: int
    ends: tuple[int, ...]
    turns: int
    perturbation: float
    known: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of users of each batch."""
        return tuple(np.diff(self.ends, prepend=0).tolist())


def decide(past: ReleasedBatches, agent: Agent, rng: np.random.Generator) -> Indices:
    """Policies (G, H, S) of the next batch, from the billboard and public randomness alone.

    The last batch has one policy, that of the mean model, since nothing is learned from it.
    """
    public = agent.public
    S, _, d = public.sizes
    model, last = learn(past, public), len(past.users) == len(agent.ends) - 1
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
    agent, mdp, K = prepare(request), request.world.mdp, request.episodes
    public, ends, G = agent.public, agent.ends, agent.turns
    S, A, d = public.sizes
    T, g = public.steps, public.weights[0]
    B, H = len(ends), public.horizon
    known = request.world.public_model  # a user who answers otherwise changes nothing of what is public
    reward = np.broadcast_to(known.mean_reward, (H, S, A)).reshape(H, S * A)[: H * agent.known].copy()
    w, truth, sigma, points = compress(mdp), solve(mdp), 0.0 if noiseless else public.sigma, grid(K)

    def start(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise", "turns")
        arrays = {
            RELEASE: np.zeros((B, T, agent.numbers)),
            f"exact_{RELEASE}": np.zeros((T, agent.numbers)),
            "reached": np.zeros((T, S, d)),
            "visits": np.zeros((T * (g > 0), S, A)),
            "gains": np.zeros((T * (not agent.known), d)),
            "played": np.zeros((B, G, H, S), np.int64),
            "actions": np.zeros((H, S), np.int64),
            "worth": np.zeros(G),
            "changes": np.zeros(G, np.bool_),
        }
        generators = {name: np.random.default_rng(one) for name, one in own.items()}
        return Replicate(arrays=arrays | blank(K), generators=generators)

    def begin(one: Replicate, batch: int) -> None:
        a = one.arrays
        users = np.stack([deal(n, G) for n in agent.sizes[:batch]]) if batch else np.zeros((0, G))
        past = ReleasedBatches(
            tables=a[RELEASE][:batch],
            played=a["played"][:batch],
            users=users,
            initial=known.initial,
            reward=reward,
        )
        chosen = decide(past, agent, one.generators["turns"])
        a["played"][batch] = chosen
        judge(w, chosen, a["worth"])
        a["changes"][...] = (chosen != np.roll(chosen, 1, axis=0)).any(axis=(1, 2))
        if batch and (chosen[0] != a["actions"]).any():
            a["totals"][SWITCHES] += 1.0
        for name in ("reached", "visits", "gains"):
            a[name][...] = 0.0

    def block(one: Replicate, until: int) -> None:
        a, rng = one.arrays, one.generators
        while (done := int(a["totals"][DONE])) < until:
            batch = int(np.searchsorted(ends, done, side="right"))
            begun = ends[batch - 1] if batch else 0
            if done == begun:
                begin(one, batch)
            sums = (a["reached"], a["visits"], a["gains"])
            users = Batch(begun, a["played"][batch], a["worth"], a["changes"], public.phi, *sums)
            serve(
                w, rng["users"], users, Record(min(until, ends[batch]), a["totals"], a["curves"], points, truth.value)
            )
            done = int(a["totals"][DONE])
            a["actions"][...] = a["played"][batch, (done - 1 - begun) % G]
            if done == ends[batch] and batch + 1 < B:  # nobody comes after the last batch
                a[f"exact_{RELEASE}"][...] = sum_up_batch(*sums, public)
                a[RELEASE][batch] = release(a[f"exact_{RELEASE}"], sigma, rng["noise"])

    return Player(
        start=start,
        play=block,
        label="calibrated-lsvi-ucb, noiseless" if noiseless else "calibrated-lsvi-ucb",
        told="actions",
        optimal=truth.value,
        face=BatchFace(names=(RELEASE,), ends=ends, policy=("actions", "played")),
        noise=NOISE,
        diagnostics={"batches": float(B), "noise_std": public.sigma, "users_as_large_as_noise": public.even},
    )


def sum_up_batch(reached: Array, visits: Array, gains: Array, public: PublicInputs) -> Array:
    """Exact tables (T, numbers) of a batch from its sums: the privatizer's side."""
    S, A, d = public.sizes
    gram = weigh_outer(public.phi.reshape(-1, d), visits.reshape(-1, S * A))
    return pack(gram, reached.transpose(0, 2, 1), gains, weights=public.weights)


def judge(w: SparseMDP, chosen: Indices, worth: Array) -> None:
    """Write the policies' true expected returns, for the record."""
    for turn in range(len(chosen)):
        judged, values = np.full(chosen.shape[1:], -1), np.zeros((w.H + 1, w.S))
        worth[turn] = value_greedy(w, chosen[turn], judged, values)


def prepare(request: OnlineRequest) -> Agent:
    """Constants of the agent, with the noise of the declaration.

    Raises:
        ParameterError: As `player`.
    """
    refuse(request, vectors=0)
    declaration, options, world = declared(request), request.options, request.world
    if options["growth"] < 1:
        message = f"growth (each batch is so much larger): expected at least 1, got {options['growth']}"
        raise ParameterError(message, name="growth", given=options["growth"])
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
    ends = schedule(request.episodes, first=first, growth=float(options["growth"]))
    refuse_memory(request, numbers=T * numbers, batches=len(ends))
    return Agent(
        public=public,
        numbers=numbers,
        ends=tuple(ends.tolist()),
        turns=int(options["turns"]),
        perturbation=float(options["perturbation"]),
        known=statistic.rewards is None,
    )


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
    needed = 8.0 * (kept * request.replicates + passing)
    if needed > MEMORY:
        message = (
            f"d = {d} and {batches} batches of tables and of {turns} policies in {request.replicates} replicates need "
            f"{needed / 1e9:.1f} GB, at most {MEMORY / 1e9:g} GB are taken: features of fewer dimensions, fewer "
            "--replicates or turns, a larger growth or first_batch, or smaller S, A or H"
        )
        raise ParameterError(message, name="d", given=d)
