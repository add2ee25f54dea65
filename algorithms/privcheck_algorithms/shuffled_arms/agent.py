"""Agent of SHUFFLED-ARMS: shares of the next batch from noisy sums (`share_out`), publicly assigned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Parameter
from privcheck.declare.mechanisms import shuffled_noise
from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Player, Record, Replicate, blank, grid, note
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, compress, draw_next
from privcheck_algorithms.online.policy_runs import Reports, schedule
from privcheck_algorithms.online.private import NOISE, declared, refuse
from privcheck_algorithms.online.stage import BatchFace
from privcheck_algorithms.shuffled_ucb_vi.agent import NONE, ShuffleFace, Shuffler, count_ones, draw_ones, send_rewards

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

OPTIONS = (
    Parameter(name="first_batch", default=288, kind="count", meaning="users of the first batch"),
    Parameter(name="growth", default="1.2", kind="positive", meaning="each batch is so much larger; at least 1"),
    Parameter(
        name="width",
        default="0.8",
        kind="real",
        meaning="arms stay that are so many σ·√ln(users to come/batch) below the best",
    ),
    Parameter(name="lean", default="2.5", kind="real", meaning="shares fall like exp(−lean·z²/2), z in σ off the best"),
    Parameter(name="prior", default="1", kind="positive", meaning="precision of the prior 1/2 of an arm's mean"),
    Parameter(
        name="messages",
        default=1_000_000,
        kind="count",
        meaning="up to so many messages of a run every bit passes the shuffler; beyond, the law of the sums is drawn",
    ),
)
_CHANCE = 0.2  # variance of one reward bit, roughly


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Rule for the shares of a batch.

    Attributes:
        variance: Variance of a counter's noise.
        width: Width of the interval in which arms stay.
        lean: Rate at which shares fall.
        prior: Precision of the prior ½.
    """

    variance: float
    width: float
    lean: float
    prior: float


def share_out(sums: Array, dealt: Array, to_come: float, c: Choice) -> Array:
    """Shares of all arms in the next batch, from the billboard alone.

    An arm's mean is estimated by weighted least squares over the batches, weights n/(σ² + n/5). An arm stays that is at
    most width·√ln(to_come) standard deviations below the best.

    Args:
        sums: (B, A) noisy sums of reward bits.
        dealt: (B, A) number of users assigned to each arm.
        to_come: Number of batches of the next one's size that the remaining users would fill.
        c: Rule for the shares.
    """
    weights = dealt / (c.variance + _CHANCE * dealt)
    precision = c.prior + (weights * dealt).sum(axis=0)
    mean = (c.prior / 2 + (weights * sums).sum(axis=0)) / precision
    best = int(mean.argmax())
    apart = (mean[best] - mean) / np.sqrt(1 / precision + 1 / precision[best])
    reach = c.width * math.sqrt(math.log(max(to_come, 2.0)))
    shares = np.where(apart <= reach, np.exp(-c.lean * apart**2 / 2), 0.0) if len(sums) else np.ones(mean.size)
    return np.asarray(shares / shares.sum())


def deal(shares: Array, users: int, rng: np.random.Generator) -> Indices:
    """(users,) arms in random order, by share, with the remainder added to the largest shares."""
    counts = np.floor(shares * users).astype(np.int64)
    over = users - int(counts.sum())
    first = np.lexsort((rng.random(shares.size), -shares))  # ties at random: no arm is favoured by its number
    counts[first[:over]] += 1
    return np.asarray(rng.permutation(np.repeat(np.arange(shares.size), counts)))


@njit(cache=True, nogil=True)
def serve_arms(w: SparseMDP, users: np.random.Generator, arms: Indices, held: Reports, record: Record) -> None:
    """Let users pull their assigned arms, up to the record's `until`; rewards are rounded to bits."""
    totals, kept = record.totals, held.paths.shape[0] > 0
    while totals[DONE] < record.until:
        user = int(totals[DONE]) - held.begun
        arm = arms[user]
        reward = w.reward[draw_next(w, users, arm)]
        bit = 1 if reward >= 1.0 or (reward > 0.0 and users.random() < reward) else 0
        held.rewards[0, arm] += bit
        if kept:
            held.paths[user, 0], held.bits[user, 0] = arm, bit
        if user > 0 and arm != arms[user - 1]:
            totals[SWITCHES] += 1.0
        totals[VALUE] = w.mean_reward[arm]
        note(record)


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """SHUFFLED-ARMS in its world, ready to play.

    Args:
        request: The request.
        noiseless: Whether to draw no noise bits; the agent plans as with noise.

    Raises:
        ParameterError: The world is not a bandit, the sizes are not its own, there is no user, or the growth is below
            1.
    """
    run = _Run(request, noiseless=noiseless)
    tables = BatchFace(names=("rewards",), ends=tuple(run.ends.tolist()), policy=("actions", "dealt"))
    return Player(
        start=run.start,
        play=run.play,
        label="shuffled-arms, noiseless" if noiseless else "shuffled-arms",
        told="actions",
        optimal=run.optimal,
        face=ShuffleFace(tables=tables, decoys=(run.decoys,), ends=tables.ends, sent=run.sent),
        noise=NOISE,
        diagnostics={
            "batches": float(len(run.ends)),
            "noise_bits": float(run.decoys),
            "every_bit_sent": float(run.sent),
        },
    )


class _Run:
    """Functions of the player in a world."""

    def __init__(self, request: OnlineRequest, *, noiseless: bool) -> None:
        refuse(request, vectors=0)
        mdp, option = request.world.mdp, {name: float(value) for name, value in request.options.items()}
        if (mdp.horizon, mdp.states) != (1, 1):
            message = f"shuffled-arms: expected a bandit, H = S = 1, got H = {mdp.horizon}, S = {mdp.states} in "
            raise ParameterError(f"{message}{request.world.name}; use --env bandit, or shuffled-ucb-vi", name="env")
        if option["growth"] < 1:
            message = f"growth (each batch is so much larger): expected at least 1, got {option['growth']:g}"
            raise ParameterError(message, name="growth", given=request.options["growth"])
        self._request, self._mdp, self._noiseless = request, mdp, noiseless
        values = {**request.values, "n": Fraction(request.episodes)}  # as in `shuffled_ucb_vi`
        noise = shuffled_noise(declared(request).noisy[0].mechanism.at(values))
        self.decoys = noise.bits[0]
        self._choice = Choice(variance=noise.std**2, width=option["width"], lean=option["lean"], prior=option["prior"])
        K = request.episodes
        self.ends = schedule(K, first=int(option["first_batch"]), growth=option["growth"])
        self._sizes = np.diff(self.ends, prepend=0)
        messages = mdp.actions * (self.decoys * (len(self.ends) - 1) + K)
        self.sent = not noiseless and messages <= int(option["messages"])
        self._w, self._points = compress(mdp), grid(K)
        self.optimal = float(mdp.mean_reward.max())

    def start(self, number: int) -> Replicate:
        """A replicate before its first user."""
        A, batches, most = self._mdp.actions, len(self.ends), int(self._sizes.max())
        own = seeds(self._request.seed, number, "users", "noise", "ties")
        rows = most if self.sent else 0
        arrays: dict[str, NDArray[Any]] = {
            "rewards": np.zeros((batches, 1, 1, A)),
            "exact_rewards": np.zeros((1, 1, A)),
            "paths": np.zeros((rows, 2), np.int64),
            "bits": np.zeros((rows, 1), np.int64),
            "actions": np.zeros((1, 1), np.int64),
            "dealt": np.zeros((batches, A)),
            "arms": np.zeros(most, np.int64),
            **blank(self._request.episodes),
        }
        if self.sent:
            arrays["left_rewards"] = np.full((1, A, most + self.decoys), NONE, dtype=np.int8)
        return Replicate(arrays=arrays, generators={name: np.random.default_rng(seed) for name, seed in own.items()})

    def play(self, one: Replicate, until: int) -> None:
        """Play a replicate up to and including a user."""
        a = one.arrays
        while (done := int(a["totals"][DONE])) < until:
            batch = int(np.searchsorted(self.ends, done, side="right"))
            begun, end = int(self.ends[batch - 1]) if batch else 0, int(self.ends[batch])
            if done == begun:
                self._begin(one, batch)
            record = Record(min(until, end), a["totals"], a["curves"], self._points, self.optimal)
            held = Reports(np.zeros((0, 1, 1)), a["exact_rewards"][0], a["paths"], a["bits"], begun, True)
            serve_arms(self._w, one.generators["users"], a["arms"], held, record)
            a["actions"][0, 0] = a["arms"][int(a["totals"][DONE]) - 1 - begun]
            if a["totals"][DONE] == end and batch + 1 < len(self.ends):  # nobody comes after the last batch
                self._leave(one, held, batch)

    def _begin(self, one: Replicate, batch: int) -> None:
        """Assign the next batch's arms, from the billboard."""
        a, users = one.arrays, int(self._sizes[batch])
        to_come = (self._request.episodes - int(a["totals"][DONE])) / users
        shares = share_out(a["rewards"][:batch, 0, 0], a["dealt"][:batch], to_come, self._choice)
        a["arms"][:users] = deal(shares, users, one.generators["ties"])
        a["dealt"][batch] = np.bincount(a["arms"][:users], minlength=self._mdp.actions)
        a["exact_rewards"][...] = 0.0

    def _leave(self, one: Replicate, held: Reports, batch: int) -> None:
        """Release a batch's messages, or their sums, from the shuffler: one bit of every user for every arm."""
        a, rng = one.arrays, one.generators["noise"]
        table = a["rewards"][batch]
        if self._noiseless:
            table[...] = a["exact_rewards"]
        elif not self.sent:
            table[...] = draw_ones(a["exact_rewards"], self.decoys, rng)
        else:
            send_rewards(held, Shuffler(int(self._sizes[batch]), self.decoys, rng), a["left_rewards"])
            table[...] = count_ones(a["left_rewards"], self.decoys)
