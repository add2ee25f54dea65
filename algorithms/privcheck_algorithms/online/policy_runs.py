"""Runs of a learner of batches that each follow one public deterministic policy: users, plans and ends of batches.

The batches are disjoint, each a fixed factor larger than the one before (`schedule`). The agent itself releases a
batch's tables, through a shuffler or a curator's channel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.declare.declaration import Parameter
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Record, Replicate, blank, grid, note
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.policy_batches import Heard, Tuning, blank_model, learn, plan
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, compress, draw_first, draw_next, value_greedy
from privcheck_algorithms.online.private import MEMORY, declared

_MOST: Final = 100_000  # each is a plan


def schedule(K: int, *, first: int, growth: float) -> NDArray[np.int64]:
    """Last user of each batch; a last batch below half the size of the batch before joins it.

    Raises:
        ParameterError: More than 10⁵ batches.

    >>> schedule(1000, first=300, growth=1.0).tolist()
    [300, 600, 1000]
    """
    ends, size = [0], float(first)
    while ends[-1] < K:
        ends.append(min(K, ends[-1] + max(1, int(size))))
        size = min(size * growth, float(K))
        if len(ends) > _MOST:
            message = f"K = {K}: more than {_MOST} batches; make first_batch = {first} or growth = {growth:g} larger"
            raise ParameterError(message, name="first_batch", given=first)
    if len(ends) > 2 and 2 * (ends[-1] - ends[-2]) < ends[-2] - ends[-3]:
        del ends[-2]
    return np.array(ends[1:], dtype=np.int64)


Array = NDArray[np.float64]
Indices = NDArray[np.int64]

LEARNER = (
    Parameter(name="optimism", default="0.2", kind="real", meaning="standard deviations of the next value, added"),
    Parameter(name="optimism_rewards", default="0.65", kind="real", meaning="and those of the mean reward"),
    Parameter(name="guess", default="0.25", kind="real", meaning="mean reward of unvisited pairs"),
    Parameter(name="prior", default="2.3", kind="positive", meaning="precision of the prior 1/S of a probability"),
    Parameter(name="prior_rewards", default="1.5", kind="positive", meaning="precision of the prior `guess`"),
    Parameter(
        name="shared",
        default="300",
        kind="real",
        meaning="precision with which other steps' data are a step's prior; 0: every step learns for itself",
    ),
    Parameter(name="thin", default="1.8", kind="real", meaning="probabilities below so many σ are taken for noise"),
)
_CHANCE = 0.2  # variance of one user's entry, roughly p(1 − p)
_SWEEPS = 3
_CERTAIN = 1e18  # precision of what is public


class Reports(NamedTuple):
    """Data of the users of the current batch, on the privatizer's side.

    Attributes:
        transitions: (H′, S, S) exact counts of (x, x′), H′ = max(H − 1, 1).
        rewards: (H, S) exact sums of reward bits, or of rewards less ½.
        paths: (n, H + 1) every user's states, if messages are sent; else empty.
        bits: (n, H) every user's reward bits, likewise.
        begun: Number of users before this batch.
        rounded: Whether users round their rewards to bits.
    """

    transitions: Array
    rewards: Array
    paths: Indices
    bits: Indices
    begun: int
    rounded: bool


@njit(cache=True, nogil=True)
def serve(w: SparseMDP, users: np.random.Generator, policy: Indices, held: Reports, record: Record) -> None:
    """Run users under the batch's policy, up to the record's `until`.

    If rewards are rounded, a user with reward r reports 1 with probability r: one more uniform if r is not a bit.
    """
    steps, kept = held.transitions.shape[0], held.paths.shape[0] > 0
    while record.totals[DONE] < record.until:
        user = int(record.totals[DONE]) - held.begun
        s = draw_first(w, users)
        for h in range(w.H):
            i = draw_next(w, users, h * w.stride + s * w.A + policy[h, s])
            reward, following = w.reward[i], w.successor[i]
            if held.rounded:
                bit = 1 if reward >= 1.0 or (reward > 0.0 and users.random() < reward) else 0
                held.rewards[h, s] += bit
                if kept:
                    held.paths[user, h], held.paths[user, h + 1], held.bits[user, h] = s, following, bit
            else:
                held.rewards[h, s] += reward - 0.5
            if h < steps:
                held.transitions[h, s, following] += 1.0
            s = following
        note(record)


def tune(request: OnlineRequest, *, sigma: float, sigma_rewards: float, centre: float, pooled: bool = False) -> Tuning:
    """Learner's parameters from the request's options.

    Args:
        request: The request.
        sigma: Standard deviation of a transition count's noise.
        sigma_rewards: Standard deviation of a reward sum's noise.
        centre: Value subtracted from every reward.
        pooled: Whether the dynamics are known not to change with the step.

    Raises:
        ParameterError: A growth below 1, or a guess outside [0, 1].
    """
    option = {name: float(value) for name, value in request.options.items()}
    if option["growth"] < 1:
        message = f"growth (each batch is so much larger): expected at least 1, got {option['growth']:g}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    if not 0 <= option["guess"] <= 1:
        message = f"guess (a mean reward): expected a number from 0 to 1, got {option['guess']:g}"
        raise ParameterError(message, name="guess", given=request.options["guess"])
    return Tuning(
        sigma=sigma,
        sigma_rewards=sigma_rewards,
        centre=centre,
        prior=option["prior"],
        prior_rewards=option["prior_rewards"],
        guess=option["guess"],
        shared=1e15 if pooled else option["shared"],
        chance=_CHANCE,
        thin=option["thin"],
        bonus=option["optimism"],
        bonus_rewards=option["optimism_rewards"],
        sweeps=_SWEEPS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A finished batch.

    Attributes:
        number: Index of the batch, from 0.
        users: Number of users.
        begun: Number of users before it.
    """

    number: int
    users: int
    begun: int


Leave = Callable[[Replicate, Batch], None]  # writes the batch's noisy tables into the replicate's, by release


class PolicyRuns:
    """A learner in a world: the implementation of its player's functions.

    A replicate holds for every release NAME its noisy tables of all batches, and `exact_NAME` of the current batch;
    `paths` and `bits` of its users if they are kept; `actions`, the policy shown to the last user, and `played`.

    Args:
        request: The request, with sizes that fit (`online.private.refuse`).
        tuning: The learner's numbers.
        shapes: Shape of each release's table; "transitions", and "rewards" unless they are public.
        rounded: Whether users round their rewards to bits.
        public: (H, S, A) public mean rewards; None if they are learned.
        unit: Users round their rewards to multiples of this power of two, so that their sums are exact; 0 for no
            rounding.

    Raises:
        ParameterError: Tables beyond 8 GB, a random first state although declared as common to neighbours, or too
            many batches.
    """

    def __init__(
        self,
        request: OnlineRequest,
        *,
        tuning: Tuning,
        shapes: Mapping[str, tuple[int, ...]],
        rounded: bool,
        public: Array | None = None,
        unit: float = 0.0,
    ) -> None:
        _refuse_start(request)
        self._request, self._mdp, self._tuning = request, request.world.mdp, tuning
        self.shapes, self._rounded, self._public = shapes, rounded, public
        first, growth = int(request.options["first_batch"]), float(request.options["growth"])
        self.ends = schedule(request.episodes, first=first, growth=growth)
        self.sizes = np.diff(self.ends, prepend=0)
        _refuse_tables(request, shapes, batches=len(self.ends))
        self._w, self._truth, self._points = compress(self._mdp), solve(self._mdp), grid(request.episodes)
        if unit:
            self._w = self._w._replace(reward=np.rint(self._w.reward / unit) * unit)

    @property
    def optimal(self) -> float:
        """Optimal value V*₁."""
        return self._truth.value

    def start(self, number: int, *, kept: bool = False, more: Mapping[str, NDArray[Any]] | None = None) -> Replicate:
        """Make a replicate before its first episode.

        Args:
            number: Index of the replicate.
            kept: Whether to keep every user's data, for messages.
            more: Further arrays of the agent.
        """
        H, S, batches = self._mdp.horizon, self._mdp.states, len(self.ends)
        own = seeds(self._request.seed, number, "users", "noise", "ties")
        arrays: dict[str, NDArray[Any]] = {name: np.zeros((batches, *shape)) for name, shape in self.shapes.items()}
        arrays |= {"exact_transitions": np.zeros((max(H - 1, 1), S, S)), "exact_rewards": np.zeros((H, S))}
        rows = int(self.sizes.max()) if kept else 0
        arrays |= {"paths": np.zeros((rows, H + 1), np.int64), "bits": np.zeros((rows, H), np.int64)}
        arrays |= {"actions": np.zeros((H, S), np.int64), "played": np.zeros((batches, H, S), np.int64)}
        arrays |= {**(more or {}), **blank(self._request.episodes)}
        return Replicate(arrays=arrays, generators={name: np.random.default_rng(seed) for name, seed in own.items()})

    def play(self, one: Replicate, until: int, leave: Leave) -> None:
        """Play a replicate up to and including an episode.

        Args:
            one: The replicate.
            until: The episode.
            leave: Releases a finished batch; the last batch is not released.
        """
        totals = one.arrays["totals"]
        while (done := int(totals[DONE])) < until:
            batch = int(np.searchsorted(self.ends, done, side="right"))
            begun, end = int(self.ends[batch - 1]) if batch else 0, int(self.ends[batch])
            if done == begun:
                self._begin(one, batch)
            record = Record(min(until, end), totals, one.arrays["curves"], self._points, self.optimal)
            serve(self._w, one.generators["users"], one.arrays["played"][batch], self.held(one, begun), record)
            if totals[DONE] == end and batch + 1 < len(self.ends):
                leave(one, Batch(number=batch, users=end - begun, begun=begun))

    def held(self, one: Replicate, begun: int) -> Reports:
        """Data of the users of the current batch."""
        a = one.arrays
        return Reports(a["exact_transitions"], a["exact_rewards"], a["paths"], a["bits"], begun, self._rounded)

    def _begin(self, one: Replicate, batch: int) -> None:
        """Plan the next batch's policy from the billboard."""
        a, H, S = one.arrays, self._mdp.horizon, self._mdp.states
        learned, before = blank_model(H, S, self._mdp.actions), a["actions"].copy()
        heard = Heard(
            transitions=a["transitions"][:batch],
            rewards=a["rewards"][:batch] if "rewards" in self.shapes else np.zeros((batch, H, S)),
            played=a["played"][:batch],
            sizes=self.sizes[:batch].astype(np.float64),
            initial=self._mdp.initial,
        )
        learn(heard, self._tuning, learned)
        if self._public is not None:
            learned.reward[...], learned.precision_rewards[...] = self._public, _CERTAIN
        plan(learned, self._tuning, one.generators["ties"].random((H, S, self._mdp.actions)), a["actions"])
        a["played"][batch] = a["actions"]
        a["totals"][VALUE] = value_greedy(self._w, a["actions"], np.full((H, S), -1), np.zeros((H + 1, S)))
        a["totals"][SWITCHES] += float(batch > 0 and (before != a["actions"]).any())
        a["exact_transitions"][...] = a["exact_rewards"][...] = 0.0


def _refuse_start(request: OnlineRequest) -> None:
    relation = declared(request).relation
    if isinstance(relation, ReplaceOne) and relation.initial == "fixed" and not request.world.mdp.fixed_start:
        message = f"initial=fixed: in {request.world.name} the first state is drawn; use --set initial=any"
        raise ParameterError(message, name="initial", given="fixed")


def _refuse_tables(request: OnlineRequest, shapes: Mapping[str, tuple[int, ...]], *, batches: int) -> None:
    mdp, counters = request.world.mdp, sum(int(np.prod(shape)) for shape in shapes.values())
    needed = 8.0 * request.replicates * (batches + 2) * (counters + 2 * mdp.horizon * mdp.states)
    if needed > MEMORY:
        message = (
            f"{batches} batches of {counters} counters in {request.replicates} replicates need {needed / 1e9:.1f} GB, "
            f"at most {MEMORY / 1e9:g} GB are taken: fewer --replicates, or a larger growth or first_batch"
        )
        raise ParameterError(message, name="replicates", given=request.replicates)
