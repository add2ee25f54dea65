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
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Player, Record, Replicate, note
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, draw_next
from privcheck_algorithms.online.batches import Batch, BatchAgent, BatchRuns
from privcheck_algorithms.online.policy_runs import Reports
from privcheck_algorithms.online.private import declared, refuse
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
    refuse(request, vectors=0)
    mdp, option = request.world.mdp, {name: float(value) for name, value in request.options.items()}
    if (mdp.horizon, mdp.states) != (1, 1):
        message = f"shuffled-arms: expected a bandit, H = S = 1, got H = {mdp.horizon}, S = {mdp.states} in "
        raise ParameterError(f"{message}{request.world.name}; use --env bandit, or shuffled-ucb-vi", name="env")
    values = {**request.values, "n": Fraction(request.episodes)}  # as in `shuffled_ucb_vi`
    noise = shuffled_noise(declared(request).noisy[0].mechanism.at(values))
    K, A, decoys = request.episodes, mdp.actions, noise.bits[0]
    choice = Choice(variance=noise.std**2, width=option["width"], lean=option["lean"], prior=option["prior"])
    runs = BatchRuns(request, first=int(option["first_batch"]))
    batches, most = len(runs.ends), int(runs.sizes.max())
    sent = not noiseless and A * (decoys * (batches - 1) + K) <= int(option["messages"])

    def blank() -> dict[str, NDArray[Any]]:
        rows = most if sent else 0
        return {
            "rewards": np.zeros((batches, 1, 1, A)),
            "exact_rewards": np.zeros((1, 1, A)),
            "paths": np.zeros((rows, 2), np.int64),
            "bits": np.zeros((rows, 1), np.int64),
            "actions": np.zeros((1, 1), np.int64),
            "dealt": np.zeros((batches, A)),
            "arms": np.zeros(most, np.int64),
            **({"left_rewards": np.full((1, A, most + decoys), NONE, dtype=np.int8)} if sent else {}),
        }

    def held(one: Replicate, batch: Batch) -> Reports:
        a = one.arrays
        return Reports(np.zeros((0, 1, 1)), a["exact_rewards"][0], a["paths"], a["bits"], batch.begun, True)

    def begin(one: Replicate, batch: Batch) -> None:
        a, number, users = one.arrays, batch.number, batch.users
        shares = share_out(a["rewards"][:number, 0, 0], a["dealt"][:number], (K - batch.begun) / users, choice)
        a["arms"][:users] = deal(shares, users, one.generators["ties"])
        a["dealt"][number] = np.bincount(a["arms"][:users], minlength=A)
        a["exact_rewards"][...] = 0.0

    def serve(one: Replicate, batch: Batch, record: Record) -> None:
        a = one.arrays
        serve_arms(runs.w, one.generators["users"], a["arms"], held(one, batch), record)
        a["actions"][0, 0] = a["arms"][int(a["totals"][DONE]) - 1 - batch.begun]

    def leave(one: Replicate, batch: Batch) -> None:
        a, rng = one.arrays, one.generators["noise"]
        table = a["rewards"][batch.number]
        if noiseless:
            table[...] = a["exact_rewards"]
        elif not sent:
            table[...] = draw_ones(a["exact_rewards"], decoys, rng)
        else:  # one bit of every user for every arm
            send_rewards(held(one, batch), Shuffler(batch.users, decoys, rng), a["left_rewards"])
            table[...] = count_ones(a["left_rewards"], decoys)

    return runs.player(
        "shuffled-arms",
        BatchAgent(blank=blank, begin=begin, serve=serve, leave=leave),
        noiseless=noiseless,
        names=("rewards",),
        policy=("actions", "dealt"),
        face=lambda tables: ShuffleFace(tables=tables, decoys=(decoys,), sent=sent),
        diagnostics={"noise_bits": float(decoys), "every_bit_sent": float(sent)},
    )
