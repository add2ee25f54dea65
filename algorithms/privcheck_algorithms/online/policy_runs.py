"""A learner of batches that each follow one public deterministic policy: its users, and its plans.

The agent itself releases a batch's tables, through a shuffler or a curator's channel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Record, Replicate, note
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.policy_batches import Heard, Tuning, blank_model, learn, plan
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, draw_first, draw_next, value_greedy
from privcheck_algorithms.online.batches import Arrays, Batch, BatchAgent, BatchRuns
from privcheck_algorithms.online.private import refuse_bytes, refuse_drawn_start

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
        ParameterError: A guess outside [0, 1].
    """
    option = {name: float(value) for name, value in request.options.items()}
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


Leave = Callable[[Replicate, Batch], None]  # writes the batch's noisy tables into the replicate's, by release


class PolicyRuns:
    """A learner in a world: the agent's part of a run, except that the agent itself releases a batch's tables.

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
        ParameterError: Tables beyond 8 GB, a random first state although declared as common to neighbours, a growth
            below 1, or too many batches.
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
        refuse_drawn_start(request)
        self._mdp, self._tuning, self.shapes = request.world.mdp, tuning, shapes
        self._rounded, self._public = rounded, public
        self.batches = BatchRuns(request, first=int(request.options["first_batch"]))
        number, counters = len(self.batches.ends), sum(int(np.prod(shape)) for shape in shapes.values())
        refuse_bytes(
            request,
            8.0 * request.replicates * (number + 2) * (counters + 2 * self._mdp.horizon * self._mdp.states),
            what=f"{number} batches of {counters} counters",
            remedy="fewer --replicates, or a larger growth or first_batch",
        )
        w = self.batches.w
        self._w = w._replace(reward=np.rint(w.reward / unit) * unit) if unit else w

    def agent(self, leave: Leave, *, kept: bool = False, more: Callable[[], Arrays] = dict) -> BatchAgent:
        """The agent's part of a run.

        Args:
            leave: Releases a finished batch.
            kept: Whether to keep every user's data, for messages.
            more: Makes further arrays of a replicate.
        """
        return BatchAgent(
            blank=lambda: {**self._blank(kept=kept), **more()}, begin=self._begin, serve=self._serve, leave=leave
        )

    def held(self, one: Replicate, begun: int) -> Reports:
        """Data of the users of the current batch."""
        a = one.arrays
        return Reports(a["exact_transitions"], a["exact_rewards"], a["paths"], a["bits"], begun, self._rounded)

    def _blank(self, *, kept: bool) -> Arrays:
        H, S, batches = self._mdp.horizon, self._mdp.states, len(self.batches.ends)
        rows = int(self.batches.sizes.max()) if kept else 0
        return {
            **{name: np.zeros((batches, *shape)) for name, shape in self.shapes.items()},
            "exact_transitions": np.zeros((max(H - 1, 1), S, S)),
            "exact_rewards": np.zeros((H, S)),
            "paths": np.zeros((rows, H + 1), np.int64),
            "bits": np.zeros((rows, H), np.int64),
            "actions": np.zeros((H, S), np.int64),
            "played": np.zeros((batches, H, S), np.int64),
        }

    def _serve(self, one: Replicate, batch: Batch, record: Record) -> None:
        policy = one.arrays["played"][batch.number]
        serve(self._w, one.generators["users"], policy, self.held(one, batch.begun), record)

    def _begin(self, one: Replicate, batch: Batch) -> None:
        """Plan the next batch's policy from the billboard."""
        a, H, S, so_far = one.arrays, self._mdp.horizon, self._mdp.states, batch.number
        learned, before = blank_model(H, S, self._mdp.actions), a["actions"].copy()
        heard = Heard(
            transitions=a["transitions"][:so_far],
            rewards=a["rewards"][:so_far] if "rewards" in self.shapes else np.zeros((so_far, H, S)),
            played=a["played"][:so_far],
            sizes=self.batches.sizes[:so_far].astype(np.float64),
            initial=self._mdp.initial,
        )
        learn(heard, self._tuning, learned)
        if self._public is not None:
            learned.reward[...], learned.precision_rewards[...] = self._public, _CERTAIN
        plan(learned, self._tuning, one.generators["ties"].random((H, S, self._mdp.actions)), a["actions"])
        a["played"][so_far] = a["actions"]
        a["totals"][VALUE] = value_greedy(self._w, a["actions"], np.full((H, S), -1), np.zeros((H + 1, S)))
        a["totals"][SWITCHES] += float(so_far > 0 and (before != a["actions"]).any())
        a["exact_transitions"][...] = a["exact_rewards"][...] = 0.0
