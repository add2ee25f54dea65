"""The noise view of agents behind a shuffler: the messages of the running agent's users, and their order.

Four tests of every output of every run (`judge_order` and `dither` have their laws):

* messages: the declared number was released, each 0 or 1, or a declared integer 0 to m + 1.
* noise: the ones of every counter minus the users' own are Bin(N, p), with the N and p of its batch, whose size is one
  of the declared sizes.
* order: every order of a counter's messages is equally likely, regardless of the senders.
* links: counters have separate shufflers, so that their orders are independent (`bet_on_links`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise, ShuffledNoise, shuffled_noise
from privcheck.declare.mechanisms.shuffled_bits import ones_cdf
from privcheck.errors import AuditError
from privcheck.runtime.online import Sent, Tables
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck_audits.engine.blocks import blocks, total
from privcheck_audits.lockstep.agents import Watched, watch
from privcheck_audits.lockstep.noise_tests import NoiseRecorder, NoiseTest, Sums, draw_spreads, judge
from privcheck_audits.plan.requests import Evidence, check, place_blocks, size_note
from privcheck_audits.plan.runner import Outcome, run_test

Array = NDArray[np.float64]

BETS: Final = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # λ; their e-values are averaged


def bet_on_links(bits: Array, shares: Array) -> Array:
    """Logarithm of the e-value of every bet against independent orders.

    A declaration composes counters with separately shuffled messages: the orders are then independent, and beyond the
    counters' numbers of ones nothing can be learnt. With one order for all counters a place is one sender: the places
    of users' own bits have at most a few ones among all counters, those of fair bits have half, and whole trajectories
    can be read off.

    The test is a bet. Counter c is given the weight w = ½ − (its own ones)/users, and every place the score v = Σ w·(x
    − k/M) over the counters before. Shuffled independently, the k places of the next counter's ones are drawn without
    replacement, and the mean of exp(λ·w·Σ(v − v̄)) over them is at most that with replacement, (mean of exp(λ·w·(v −
    v̄)))^k (Hoeffding 1963, Theorem 4). So a bet on them has expectation at most 1, given all counters before: an
    e-value, whose product over counters, outputs and runs reaches 1/p with probability at most p (Ville), at any
    stopping time.

    Args:
        bits: (counters, M) messages in the order in which they left, 0 or 1.
        shares: (counters,) users' own ones over the number of users; chosen without regard to any order.

    >>> rng = np.random.default_rng(0)
    >>> alone = rng.permuted(np.repeat([[0.0, 1.0]], 40, axis=0).repeat(50, axis=1), axis=1)
    >>> bool(bet_on_links(alone, np.zeros(40)).max() < 5)
    True
    """
    bets, won = np.array(BETS)[:, None], np.zeros(len(BETS))
    scores = np.zeros(bits.shape[1])
    for row, weight in zip(bits, 0.5 - shares, strict=True):
        ones = row > 0.5
        apart = bets * (weight * (scores - scores.mean()))
        largest = apart.max(axis=1)
        means = largest + np.log(np.exp(apart - largest[:, None]).mean(axis=1))
        won += apart[:, ones].sum(axis=1) - ones.sum() * means
        scores += weight * (row - row.mean())
    return won


_PLACES: Final = 64  # at either end of a counter's messages, that are looked at one by one
_STRETCHES: Final = 16  # into which they are cut
_RUNS: Final = 8  # a block; successive runs are compared within one
_OUT: Final = 1 + 1e-9  # outward rounding of p-values


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Sums that the tests are computed from; runs add up.

    Attributes:
        noise: Sums of the noise, transformed to Gaussian.
        off: (2·64 + 16,) sum, by place and stretch, of the ones in excess of the counters' share.
        width: (2·64 + 16,) number of messages in that sum, squared for several messages of one counter.
        messages: Number of messages examined.
        linked: Logarithm of the e-value of each bet against independent orders of the counters.
        wrong: Number of counters with a wrong number of messages, or with invalid messages.
    """

    noise: Sums
    off: tuple[float, ...]
    width: tuple[float, ...]
    messages: int
    linked: tuple[float, ...]
    wrong: int

    def __add__(self, other: Heard) -> Heard:
        return Heard(
            noise=self.noise + other.noise,
            off=tuple(map(sum, zip(self.off, other.off, strict=True))),
            width=tuple(map(sum, zip(self.width, other.width, strict=True))),
            messages=self.messages + other.messages,
            linked=tuple(map(sum, zip(self.linked, other.linked, strict=True))),
            wrong=self.wrong + other.wrong,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffledRuns:
    """A block of runs of an agent behind a shuffler; importable, so that blocks can run in any process.

    Attributes:
        agents: The agent, under one or several options, which take turns.
        seed: Seed of the audit, for messages.
    """

    agents: tuple[Watched, ...]
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Heard:
        """Sums of runs."""
        declaration, values = self.agents[0].declaration, self.agents[0].request.values
        scales = declared_scales(self.agents[0])
        recorder = NoiseRecorder(declaration, values, seed=self.seed, declared=scales)
        order = _Order()
        for run in range(first, first + runs):
            agent, seed = self.agents[run % len(self.agents)], int(rng.integers(2**63))
            player = agent.player(seed)
            one, face = player.start(0), agent.face(player)
            for episode in range(1, agent.request.episodes + 1):
                player.play(one, episode)
                output = face.output(episode)
                if output is None:
                    continue
                exact, noisy = face.exact(one, output), face.noisy(one, output)
                if exact is None:
                    missing = f"episode {episode}: the users' bits are not shown and cannot be separated from noise"
                    raise AuditError(missing, trial=run, seed=seed)
                for sent in face.messages(one, output):
                    at = ... if sent.part is None else sent.part
                    order.look(sent, np.asarray(noisy[sent.release])[at], np.asarray(exact[sent.release])[at])
                noise = _dither_slices(agent, face.batches(output), (noisy, exact), scales, rng)
                recorder.record(noise, run=run, output=output, largest=1.0)
        return order.heard(recorder.sums())


def declared_scales(agent: Watched) -> dict[str, GaussianNoise]:
    """Gaussian noise with the spread of every release; for batches of several sizes, of the least noisy one."""
    values = agent.request.values
    return {
        r.name: GaussianNoise(scale=shuffled_noise(r.mechanism.at(r.quietest(values))).scale)
        for r in agent.declaration.noisy
    }


def _dither_slices(
    agent: Watched,
    batches: Mapping[str, tuple[int, ...]],
    tables: tuple[Tables, Tables],
    scales: Mapping[str, GaussianNoise],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Gaussian noise of every slice with users, by the law of its batch.

    Raises:
        AuditError: A batch has an undeclared size.
    """
    (noisy, exact), values, made = tables, agent.request.values, {}
    for release in agent.declaration.noisy:
        if (name := release.name) not in noisy:
            continue
        sizes = batches.get(name, ())
        whose = sizes if len(sizes) == len(noisy[name]) else sizes[:1] * len(noisy[name])
        declared = None if release.batch_sizes is None else release.batch_sizes(values)
        if declared is not None and (other := sorted(set(whose) - {0} - set(declared))):
            message = f"{name}: a batch of {other[0]} users, declared are {declared}"
            raise AuditError(message, trial=0, seed=0)
        slices = []
        for part, users in enumerate(whose) if whose else ((part, 1) for part in range(len(noisy[name]))):
            if users:
                at = values if release.batch_sizes is None else {**values, "n": Fraction(users)}
                law = shuffled_noise(release.mechanism.at(at))
                one = dither({name: noisy[name][part]}, {name: exact[name][part]}, {name: law}, rng)[name]
                slices.append(one * (scales[name].scale / law.scale))
        if slices:
            made[name] = np.stack(slices)
    return made


def dither(
    noisy: Tables, exact: Tables, laws: Mapping[str, ShuffledNoise], rng: np.random.Generator
) -> dict[str, Array]:
    """Transform noise to Gaussian noise of the declared standard deviation, if the ones follow their law.

    With a uniform U, F(x − 1) + U·P(x) is uniform, so that its normal quantile is Gaussian noise: tests of Gaussian
    noise apply.
    """
    from scipy.special import ndtri

    made = {}
    for name, table in noisy.items():
        law, noise = laws[name], np.asarray(table - exact[name])
        below, upto = (ones_cdf(noise - less, law.senders, law.threshold) for less in (1.0, 0.0))
        uniform = np.clip(below + rng.random(noise.shape) * (upto - below), 1e-300, 1 - 2.0**-53)
        made[name] = law.scale * np.asarray(ndtri(uniform))
    return made


class _Order:
    """Collects messages; sums the excess of ones by place and stretch, and the evidence of links."""

    def __init__(self) -> None:
        self._off, self._width = np.zeros(2 * _PLACES + _STRETCHES), np.zeros(2 * _PLACES + _STRETCHES)
        self._linked = np.zeros(len(BETS))
        self._messages = self._wrong = 0

    def look(self, sent: Sent, estimates: Array, exact: Array) -> None:
        """Record the messages of one output of a release, (counters, M), with the estimated and the exact sums."""
        due, messages = sent.due, sent.messages
        bits = messages[:, :due]
        wrong = (messages[:, due:] != -1).any(axis=1) | ((bits < 0) | (bits > sent.largest)).any(axis=1)
        wrong |= bits.shape[1] < due
        counted = bits.sum(axis=1, dtype=np.int64) - ((due - sent.users) / 2 if sent.mean is None else sent.mean)
        wrong |= np.abs(counted - estimates.ravel()) > 1e-6  # the analyser sees nothing else than what left
        self._wrong += int(wrong.sum())
        self._messages += messages.shape[0] * due
        right = bits[~wrong].astype(np.float64) / sent.largest
        if not right.size:
            return
        apart = right - right.mean(axis=1, keepdims=True)
        places, stretches = min(_PLACES, due // 2), min(_STRETCHES, due)  # of few messages, all of them
        edges = np.linspace(0, due, stretches + 1).astype(int)
        off, width = np.zeros_like(self._off), np.zeros_like(self._width)
        for at, part in ((0, apart[:, :places]), (2 * _PLACES - places, apart[:, due - places :])):
            off[at : at + places], width[at : at + places] = part.sum(axis=0), len(right)
        off[2 * _PLACES : 2 * _PLACES + stretches] = np.add.reduceat(apart, edges[:-1], axis=1).sum(axis=0)
        width[2 * _PLACES : 2 * _PLACES + stretches] = len(right) * np.diff(edges)
        self._off += off
        self._width += width
        if sent.largest == 1:
            self._linked += bet_on_links(right, exact.ravel()[~wrong] / sent.users)

    def heard(self, noise: Sums) -> Heard:
        """Sums of all recorded messages."""
        return Heard(
            noise=noise,
            off=tuple(self._off.tolist()),
            width=tuple(self._width.tolist()),
            messages=self._messages,
            linked=tuple(self._linked.tolist()),
            wrong=self._wrong,
        )


def judge_order(heard: Heard) -> tuple[NoiseTest, ...]:
    """Tests of the messages: their number and kind, their order at every place, and their links.

    A missing message or a non-bit refutes with certainty: an integer identifies its sender, and a missing bit is a
    missing noise bit. At the first and last places, and in equal stretches, the share of ones is compared with that of
    the whole counter; sampling without replacement, Hoeffding's bound holds at any number of runs: P(|Σ(x − k/M)| ≥ t)
    ≤ 2·exp(−2t²/Σ width²).
    """
    tests = []
    if heard.messages:
        certain = 0.0 if heard.wrong else 1.0
        tests.append(
            NoiseTest(
                name="number and kind", where="messages", p_value=certain, figure=heard.wrong, draws=heard.messages
            )
        )
    if any(heard.linked):
        largest = max(heard.linked)
        log_mean = largest + math.log(math.fsum(math.exp(one - largest) for one in heard.linked) / len(heard.linked))
        certain = min(1.0, _OUT * math.exp(min(0.0, -log_mean)))
        tests.append(NoiseTest(name="links", where="counters", p_value=certain, figure=log_mean, draws=heard.messages))
    for number, (off, width) in enumerate(zip(heard.off, heard.width, strict=True)):
        if width > 0:
            tail = min(1.0, _OUT * 2 * math.exp(-2 * off**2 / width))
            tests.append(
                NoiseTest(name="order", where=_place(number), p_value=tail, figure=off / width, draws=int(width))
            )
    return tuple(tests)


def _place(number: int) -> str:
    if number < _PLACES:
        return f"place {number + 1}"
    if number < 2 * _PLACES:
        return f"the last place but {2 * _PLACES - 1 - number}"
    return f"stretch {number - 2 * _PLACES + 1} of {_STRETCHES}"


def hear_shuffler(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Test whether the running agent's messages are those declared, in a random order.

    `trials` is the number of its runs.

    Args:
        request: The request.
        algorithm: The algorithm; its online agent is run.

    Raises:
        ParameterError: A number of the request is out of range, or the agent has no audit adapter.
        AuditError: An output is not finite.
    """
    check(request)
    began = time.perf_counter()
    agents, values = watch(algorithm, request.setting)
    work = ShuffledRuns(agents=agents, seed=request.seed)
    gaussian = declared_scales(agents[0])

    def read(heard: Heard) -> Outcome:
        tests = (*judge(heard.noise, gaussian), *judge_order(heard))
        level = (1 - request.confidence) / max(1, len(tests))
        broken = sorted((test for test in tests if test.p_value < level), key=lambda test: test.p_value)
        refuted = "; ".join(f"{t.name} of {t.where} ({t.figure:.4g})" for t in broken[:8]) or "nothing"
        evidence: Evidence = {f"drawn_over_declared_scale_{t.where}": t.figure for t in tests if t.name == "scale"}
        evidence |= {
            "tests": len(tests),
            "smallest_p_value": min((test.p_value for test in tests), default=1.0),
            "level_of_each_test": level,
            "messages": heard.messages,
            "counters_with_wrong_messages": heard.wrong,
            **size_note(request.values, values),
            "refuted": refuted,
        }
        return Outcome(
            violated=bool(broken),
            method=f"{len(tests)} tests of the messages that leave the shuffler: their number and kind, the law of the "
            "noise bits among them, their order, and whether counters share it; valid at any number of runs, α divided "
            "among them",
            witness=refuted,
            evidence=evidence,
            bars=draw_spreads((test for test in tests if test.where in gaussian), gaussian, level),
        )

    def count(_: object) -> Heard:
        place = place_blocks(request, Heard, Sums)
        return total(blocks(work, request.trials, stream=1, block=_RUNS, **place))

    return run_test(request, count, read, began=began, agent_ran=True)
