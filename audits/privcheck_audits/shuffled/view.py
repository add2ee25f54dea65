"""The releases view of declarations behind a shuffler: a lower bound on ε from the shuffled messages.

Two attacks, each the sharpest for one way in which a shuffled sum can fail, chosen from the known law before any run:

* the number of ones of every counter that the pair changes. One user hardly changes it (ε of some hundredths), so that
  a group of users with ε about 1.5 is changed alike, and group privacy gives the bound for one;
* the multiset of integer messages, of one user. An output that is possible on D and impossible on D′ refutes every ε if
  its probability exceeds δ.

There is no policy view: the claim of the shuffle model is about the shuffler's output, from which any policy is
computed, and a score of policies can only be weaker than the exact likelihood ratio.

**Trials.** In the audited batch of n users, all other users have the data of D′, so that every counter that differs is
0 or n on D′. The output is the multiset of messages of each counter: with every bit as a separate message, the number
of ones is the only information, Bin(N, p) plus the users' own; of integers z = bit + Σy, the frequencies of 0, 1, …, m
+ 1. Counters have independent noise, so that their joint ratio is the product. Nothing is binned: scores of ±∞ are
outputs that are impossible on one neighbour. `attacks` lists the observed counters, the pair, the batch, and the number
of users changed alike, from the known law, before any run.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import ShuffledNoise, draw_messages, noise_bits, shuffled_noise
from privcheck.errors import ParameterError
from privcheck.pricing import Priced
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.verification.candidates import UserPair, candidate_pairs, explain_no_pair
from privcheck.verification.witness import describe
from privcheck_audits.bounds import (
    GuessPlan,
    RankedBound,
    bound_at_ranks,
    group_delta,
    group_size,
    impossible_epsilon,
    user_epsilon,
)
from privcheck_audits.engine.blocks import BLOCK, Tally, blocks, tally
from privcheck_audits.engine.scores import MovedGroup, Scored, draw_hidden_bits, find_moved_groups
from privcheck_audits.engine.sequential import Prefixes
from privcheck_audits.plan.pictures import of_parts, pilot_marks
from privcheck_audits.plan.reachable import LossLaw, best_plan, reachable_guesses, sample_law
from privcheck_audits.plan.requests import Evidence, Limits, check, elsewhere, limits, place_blocks, shares
from privcheck_audits.plan.runner import Outcome, run_test

SHOWN: Final = 0.1  # of α, for outputs that are impossible on D′
_SIMULATED: Final = 100_000  # runs of the known law, from which the attack is chosen and the limit is taken
_CERTAIN: Final = 1e6  # nats: the score of an output that one neighbour cannot produce
_TAG: Final = 0x5AFF1E  # seed of the simulation, which no trial shares


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTally:
    """Counts of blocks of trials.

    Attributes:
        tally: Counts of the guesses.
        on_first: Number of runs on D.
        shown: Number of runs on D with an output that is impossible on D′.
    """

    tally: Tally
    on_first: int
    shown: int

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.tally.runs

    def __add__(self, other: MessageTally) -> MessageTally:
        on_first = self.on_first + other.on_first
        return MessageTally(tally=self.tally + other.tally, on_first=on_first, shown=self.shown + other.shown)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Messages:
    """A block of trials; importable by worker processes."""

    groups: tuple[MovedGroup, ...]
    plan: GuessPlan
    seed: int
    thresholds: tuple[float, ...] = ()

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> MessageTally:
        """Counts of fresh runs."""
        scored = scores(self.groups, rng, runs)
        shown = int((scored.secret & (scored.score == _CERTAIN)).sum())
        guesses = tally(scored, self.plan, first=first, seed=self.seed, thresholds=self.thresholds)
        return MessageTally(tally=guesses, on_first=int(scored.secret.sum()), shown=shown)


def scores(groups: tuple[MovedGroup, ...], rng: np.random.Generator, runs: int) -> Scored:
    """Scores of fresh runs, made finite: certainty counts more than any likelihood ratio."""
    scored = message_trials(groups, rng, runs)
    return Scored(score=np.clip(scored.score, -_CERTAIN, _CERTAIN), secret=scored.secret)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aim:
    """An attack with its guess plan and its error probability.

    Attributes:
        attack: The attack.
        plan: Numbers of runs to guess on.
        law: Law of the likelihood ratio, for the limit.
        alpha: α of both tests together.
        delta: δ of one user's guarantee.
    """

    attack: Attack
    plan: GuessPlan
    law: LossLaw
    alpha: float
    delta: float

    @property
    def shows(self) -> bool:
        """Whether to test for impossible outputs: by the known law they are likelier than δ."""
        return self.attack.users == 1 and self.attack.shown > self.delta

    @property
    def for_guesses(self) -> float:
        """Part of α of the coin flip."""
        return self.alpha * (1 - SHOWN) if self.shows else self.alpha

    def bound(self, counted: MessageTally) -> float:
        """Lower bound on one user's ε, rounded down."""
        guessed = user_epsilon(
            lambda d: self.bound_by_guesses(counted, d).epsilon, users=self.attack.users, delta=self.delta
        )
        return max(self._refute_outright(counted.shown, counted.on_first), guessed)

    def charge(self, epsilon: float) -> float:
        """Joint δ of all changed users if one user's guarantee is (ε, δ); below 1."""
        return min(0.999, group_delta(epsilon if math.isfinite(epsilon) else 0.0, self.delta, users=self.attack.users))

    def bound_by_guesses(self, counted: MessageTally, delta: float) -> RankedBound:
        """Bound from the guesses for all changed users together, at a δ."""
        errors, guesses = counted.tally.ranked_errors, counted.tally.ranked_guesses
        return bound_at_ranks(errors, guesses, self.plan, runs=counted.runs, alpha=self.for_guesses, delta=delta)

    def limit(self, runs: int) -> float:
        """Bound of the tests at their expected counts under the known law: an estimate."""
        flip = partial(reachable_guesses, self.law, self.plan, runs, alpha=self.for_guesses)
        guessed = user_epsilon(lambda d: flip(delta=d), users=self.attack.users, delta=self.delta)
        return max(self._refute_outright(math.floor(self.attack.shown * (runs // 2)), runs // 2), guessed)

    def bound_up_to(self, counted: MessageTally, *, epsilon: float) -> float:
        """Lower bound on one user's ε from fewer runs, capped at a given ε, without a search.

        For smaller ε the δ of group privacy is no larger, so that a refutation at the given ε holds below it.
        """
        guessed = self.bound_by_guesses(counted, self.charge(epsilon)).epsilon / self.attack.users
        return max(self._refute_outright(counted.shown, counted.on_first), min(epsilon, guessed))

    def limit_up_to(self, runs: int, *, epsilon: float) -> float:
        """Approximation of `limit` for bounds near a given ε."""
        paid = self.charge(epsilon)
        reachable = reachable_guesses(self.law, self.plan, runs, alpha=self.for_guesses, delta=paid)
        return reachable / self.attack.users

    def _refute_outright(self, shown: int, runs: int) -> float:
        if not (self.shows and runs):
            return 0.0
        return impossible_epsilon(shown, runs, alpha=self.alpha * SHOWN, delta=self.delta)


def aim(request: AuditRequest, running: Declaration, *, least: float) -> Aim:
    """Choose the attack with the largest bound for the number of runs under the known law.

    Args:
        request: Request with this attack's share of the runs and of α.
        running: Declaration of the messages.
        least: The smallest ε that the bound is compared with, ∞ for none: it determines the number of users to change
            alike.
    """
    runs, alpha, delta = 2 * request.trials, 1 - request.confidence, request.delta
    epsilon = max(1e-6, least if math.isfinite(least) else 1.0)
    sizes = tuple(sorted({1, max(1, group_size(epsilon) // 2), group_size(epsilon), 2 * group_size(epsilon)}))
    aims = []
    for number, attack in enumerate(attacks(request.priced.of(running), sizes)):
        rng = np.random.default_rng(np.random.SeedSequence(_TAG, spawn_key=(number,)))
        law = simulate_law(attack.groups, rng, min(_SIMULATED, max(1_000, runs)))
        paid = group_delta(epsilon, delta, users=attack.users)
        plan = best_plan(law, runs, alpha=alpha, delta=min(0.999, paid))
        aims.append(Aim(attack=attack, plan=plan, law=law, alpha=alpha, delta=delta))
    return max(aims, key=lambda each: (each.limit(runs), -each.attack.users))


def releases(request: AuditRequest, running: Declaration | None = None) -> AuditResult:
    """Lower bound on the loss of the shuffled messages.

    Args:
        request: The request.
        running: Declaration of the messages actually sent, if it differs from the request's (a mutant; its blocks are
            not stored). The bound is compared with the claim and the cost of the request's declaration.

    Raises:
        ParameterError: A number of the request is out of range, or there is nothing to attack.
        AuditError: A trial's score is not finite.
    """
    check(request)
    declaration = running or request.declaration
    if why := declines(declaration):
        raise ParameterError(f"{declaration.name} cannot be audited: {why}", name="declaration")
    began = time.perf_counter()
    values = instances(request.values) if request.trials > 1 else (request.values,)
    parts = shares(request, values)
    results = [_attack(part, declaration, stream=number) for number, part in enumerate(parts)]
    best = results[0]  # the verdict is about the parameters that were asked for
    spent = sum(result.seconds for result in results)
    evidence = {**best.evidence, "trials_per_second": 2 * sum(part.trials for part in parts) / spent}
    if best.verdict != "violation" and (other := next((r for r in results if r.verdict == "violation"), None)):
        evidence |= elsewhere(other, f"H = {other.evidence['H']} (asked: H = {request.values['H']})")
    for at, result in zip(values, results, strict=True) if len(results) > 1 else ():
        lower = result.epsilon_lower or 0.0
        evidence[f"epsilon_lower_at_H_{at['H']}"] = lower if math.isfinite(lower) else "inf"
    return replace(
        best,
        trials=request.trials,
        confidence=request.confidence,
        evidence=evidence,
        seconds=time.perf_counter() - began,
        history=of_parts(best.history, len(values)),
    )


def instances(values: Mapping[str, Fraction]) -> tuple[Mapping[str, Fraction], ...]:
    """Parameters to attack: the given ones, and the same with H = 1.

    Users draw fewest noise bits at H = 1, where a message reveals its sender most easily: that instance is attacked
    too, with half of the runs and half of α.
    """
    return (values, {**values, "H": Fraction(1)}) if values.get("H", 1) > 1 else (values,)


def declines(declaration: Declaration) -> str:
    """Reason why this plan cannot audit a declaration; empty if it can."""
    if declaration.model != "shuffle":
        return "it has no release behind a shuffler"
    if shared := declaration.shared_draws:
        return f"{', '.join(shared)} share their noise bits; expected users who draw fresh bits for every counter"
    return ""


def _attack(request: AuditRequest, running: Declaration, *, stream: int) -> AuditResult:
    bound = limits(request, request.values)
    chosen = aim(request, running, least=bound.least)
    groups, alone = chosen.attack.groups, chosen.attack.users == 1
    marks = pilot_marks(partial(scores, groups), seed=request.seed) if alone else ()  # the claim's curve is of one user
    place = place_blocks(request, MessageTally, Tally, keep=running is request.declaration)
    work = Messages(groups=groups, plan=chosen.plan, seed=request.seed, thresholds=marks)

    def count(seen: Prefixes[MessageTally]) -> MessageTally:
        return seen.total(blocks(work, 2 * request.trials, stream=stream, block=BLOCK, **place))

    return run_test(request, count, partial(_read, request, chosen, bound), bound=bound)


def _read(request: AuditRequest, chosen: Aim, bound: Limits, counted: MessageTally) -> Outcome:
    attack, lower = chosen.attack, chosen.bound(counted)
    best = chosen.bound_by_guesses(counted, chosen.charge(lower))
    refuted = bound.name_refuted(lower)
    evidence: Evidence = {
        "errors": best.flip.errors,
        "guesses": best.flip.guesses,
        "revealed": best.flip.coins * best.flip.delta,
        "attempts": len(chosen.plan.shares),
        "error_rate_of_all_guesses": counted.tally.errors / counted.runs,
        "runs_on_first": counted.on_first,
        "impossible_under_second": counted.shown,
        "probability_of_impossible": attack.shown,
        "looked_at": "every integer message" if attack.integers else "the number of ones of each counter",
        "users_moved_alike": attack.users,
        "counters": attack.counters,
        "batch": attack.batch,
        "noise_bits_a_user": attack.noise_bits[0],
        "probability_of_a_one": attack.noise_bits[1],
        **{name: str(request.values[name]) for name in ("H", "S", "A", "K") if name in request.values},
        "refuted": refuted,
        "meaning": _explain(request, attack, counted, refuted, lower),
    }
    return Outcome(
        violated=refuted != "nothing",
        lower=lower,
        evidence=evidence,
        method=_method(chosen),
        witness=attack.words,
        reachable=chosen.limit(counted.runs),
        runs=counted.runs,
        tally=counted.tally,
        bound=partial(chosen.bound_up_to, epsilon=lower) if math.isfinite(lower) else None,
        limit=partial(chosen.limit_up_to, epsilon=lower),
        pair=attack.pair,
    )


def _method(chosen: Aim) -> str:
    flip = (
        "coin flip: a hidden fair bit guessed by the exact log-likelihood ratio of the messages on the "
        f"{len(chosen.plan.shares)} shares of runs with the largest ratio, fixed in advance, α divided among them"
    )
    if chosen.attack.users > 1:
        return f"{flip}; {chosen.attack.users} users moved alike, and group privacy gives the bound for one"
    if not chosen.shows:
        return flip
    return (
        "exact discrete: a message impossible on D′ by the known law refutes every ε if its probability on D is above "
        f"δ ({SHOWN:g} of α); for the rest {flip}"
    )


def _explain(request: AuditRequest, attack: Attack, counted: MessageTally, refuted: str, lower: float) -> str:
    """Meaning of the result, in words."""
    sizes = ", ".join(f"{name} = {request.values[name]}" for name in ("H", "S", "A", "K") if name in request.values)
    at = f"{f'at {sizes}, ' if sizes else ''}in "
    at += f"a batch of {attack.batch} users, " if attack.batch > 1 else "a batch whose noise bits are dealt out, "
    if math.isinf(lower):
        m = attack.noise_bits[0]
        sent, told = "a number of ones", "so that the sum alone reveals the user's bit"
        if attack.integers:
            sent = f"a message {m + 1} where no other user's bit is 1, or a message 0 where all others' are,"
            told = "so that the message is the one user's and reveals that user's bit"
        against = f"; refuted: the {refuted}" if refuted != "nothing" else ""
        return (
            f"{at}{sent} that is impossible on D′ left the shuffler in {counted.shown} of {counted.on_first} runs on "
            f"D, {told}: no ε holds at δ = {request.delta:g}{against}"
        )
    what = "every integer message" if attack.integers else "the number of ones"
    seen = f"{at}{what} of the {attack.counters} moving counters was observed"
    if attack.users == 1:
        return seen
    return (
        f"{seen}, with {attack.users} users moved alike: one alone is hardly visible, and group privacy turns their "
        "loss into a bound for one"
    )


_GRID: Final = 2.0**30  # scores are multiples of 2⁻³⁰ nats
_CHUNK: Final = 160_000  # numbers drawn at a time: they stay in the cache until they are scored
_REACH: Final = 12.0  # standard deviations of a number of ones whose scores are tabulated
_MORE: Final = 60  # numbers beyond them

Array = NDArray[np.float64]


def as_sums(groups: Sequence[MovedGroup]) -> tuple[MovedGroup, ...]:
    """Counters of which only the sum of the messages is observed; anyone can compute it."""
    return tuple(replace(group, noise=shuffled_noise(group.noise).sums) for group in groups)


def width(group: MovedGroup) -> int:
    """Number of observed values per counter: 1 for the sum, or m + 2 for the counts of 0 … m + 1."""
    noise = shuffled_noise(group.noise)
    return noise.bits[0] + 2 if noise.integers else 1


def compute_shown_probability(groups: Sequence[MovedGroup]) -> float:
    """Probability that a run on D has an output that is impossible on D′, by the known law.

    A number of ones above N, or below the users' own; a message m + 1 if all bits are 0 on D′, or 0 if all are 1.
    """
    hidden = 1.0
    for group in groups:
        noise = shuffled_noise(group.noise)
        m, p = noise.bits
        size, trials = np.abs(group.change), noise.senders * m
        rising = group.change > 0
        if noise.integers:
            shown = np.where(rising, p**m, (1 - p) ** m)
        else:
            within = np.minimum(size, trials + 1.0)
            shown = np.where(rising, bdtrc(trials - within, trials, p), bdtr(within - 1, trials, p))
            shown = np.where(size > trials, 1.0, shown)
        hidden *= float(np.prod(1 - shown))
    return 1 - hidden


def message_trials(groups: Sequence[MovedGroup], rng: np.random.Generator, runs: int) -> Scored:
    """Scores of fresh runs, each on D or D′ by a hidden bit; ±∞ for outputs impossible on one neighbour.

    The messages come from the mechanism's own samplers, which the channel uses too. Scores are rounded to a grid, so
    that equal ratios are equal scores.

    Args:
        groups: The counters that differ, by noise; for "shuffled integers" each by ±1.
        rng: The block's generator.
        runs: Number of runs.
    """
    secret = draw_hidden_bits(rng, runs)
    score = np.zeros(runs)
    step = max(1, _CHUNK // max(1, sum(group.change.size * width(group) for group in groups)))
    for start in range(0, runs, step):
        part = slice(start, min(start + step, runs))
        for group in groups:
            trial = _integers if group.noise.integers else _sums
            score[part] += trial(group, rng, secret[part])
    return Scored(score=np.rint(score * _GRID) / _GRID, secret=secret)


def integers_log_ratio(counts: NDArray[np.int64], rising: NDArray[np.bool_], senders: int, threshold: float) -> Array:
    """Log-ratio ln p(messages | D) − ln p(messages | D′) of each counter; ±∞ if one is 0.

    With P = Bin(m, p), one 1 among bits 0 makes the ratio of D to D′ the mean of P(z − 1)/P(z) over the n messages, one
    0 among bits 1 that of P(z)/P(z − 1): exchange the hidden user with each of the n. A message m + 1, or 0, makes it
    infinite.

    Args:
        counts: (…, cells, m + 2) number of users who send 0, 1, …, m + 1.
        rising: (cells,) whether the user has a 1 on D and a 0 on D′, as all others have; otherwise the reverse.
        senders: n.
        threshold: τ.
    """
    m, p = noise_bits(senders, threshold)
    z = np.arange(1, m + 1, dtype=np.float64)
    up = z / (m + 1 - z) * ((1 - p) / p)  # P(z − 1)/P(z)
    one, none = np.concatenate([[0.0], up, [0.0]]), np.concatenate([[0.0], 1 / up, [0.0]])
    means = np.where(rising, counts @ one, counts @ none) / senders
    given_away = np.where(rising, counts[..., m + 1], counts[..., 0]) > 0
    with np.errstate(divide="ignore"):
        ratios: Array = np.where(given_away, np.inf, np.log(means))
    return ratios


def simulate_law(groups: Sequence[MovedGroup], rng: np.random.Generator, runs: int) -> LossLaw:
    """Law of the likelihood ratio from simulated runs of the known law, for the limit: not a bound."""
    return sample_law(message_trials(groups, rng, runs).score)


def _sums(group: MovedGroup, rng: np.random.Generator, secret: NDArray[np.bool_]) -> Array:
    noise = shuffled_noise(group.noise)
    m, p = noise.bits
    drawn = noise.draw(rng, (secret.size, group.change.size))
    ones = np.rint(drawn + noise.senders * m * p).astype(np.int64)
    change = group.change.astype(np.int64)
    ones -= np.where(secret[:, None], 0, change)  # less the users' own on D: on D′ they are fewer by the change
    score = np.zeros(secret.size)
    for moved in np.unique(change).tolist():
        score += _look_up(noise, moved, ones[:, change == moved])
    return score


def _look_up(noise: ShuffledNoise, change: int, ones: NDArray[np.int64]) -> Array:
    first, table = _table(noise, change)
    at = ones - first
    if at.min(initial=0) >= 0 and at.max(initial=0) < table.size:
        summed: Array = table[at].sum(axis=1)
        return summed
    ratios: Array = _scores(noise, change, ones.reshape(-1)).reshape(ones.shape).sum(axis=1)  # once in e^70 draws
    return ratios


@functools.lru_cache(maxsize=64)
def _table(noise: ShuffledNoise, change: int) -> tuple[int, Array]:
    """Scores of the likely numbers of ones less the users' own on D, with the first of these numbers."""
    m, p = noise.bits
    trials, more = noise.senders * m, abs(change)
    half = math.ceil(_REACH * noise.scale) + more + _MORE
    first, last = max(-more, math.floor(trials * p) - half), min(trials + more, math.ceil(trials * p) + half)
    return first, _scores(noise, change, np.arange(first, last + 1))


def _scores(noise: ShuffledNoise, change: int, ones: NDArray[np.int64]) -> Array:
    m, p = noise.bits
    drawn = (ones.astype(np.float64) - noise.senders * m * p)[:, None]
    with np.errstate(invalid="ignore"):  # beyond what either neighbour can send, which never occurs
        return noise.log_ratio(drawn, np.array([float(change)]))


def _integers(group: MovedGroup, rng: np.random.Generator, secret: NDArray[np.bool_]) -> Array:
    noise = shuffled_noise(group.noise)
    n = noise.senders
    rising = group.change > 0
    held = np.where(rising, np.where(secret[:, None], 1, 0), np.where(secret[:, None], n - 1, n))
    counts = draw_messages(rng, held, n, noise.threshold)
    summed: Array = integers_log_ratio(counts, rising, n, noise.threshold).sum(axis=1)
    return summed


_NUMBERS: Final = 600  # of a run, that are drawn to look at integer messages; further counters are left out
_WIDEST: Final = 40  # integers 0 … m + 1, beyond which only their sums are looked at: a message shows no one then


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attack:
    """The observed counters, the pair and the batch of an attack.

    Attributes:
        groups: The counters in which D and D′ differ.
        users: Number of users who change alike.
        pair: The data of each of them in D and in D′.
        batch: n, the number of users behind the shuffler.
        shown: Probability, by the known law, that a run on D has an output that is impossible on D′.
    """

    groups: tuple[MovedGroup, ...]
    users: int
    pair: UserPair
    batch: int
    shown: float

    @property
    def integers(self) -> bool:
        """Whether every integer message is observed, not only their sum."""
        return any(group.noise.integers for group in self.groups)

    @property
    def counters(self) -> int:
        """Number of observed counters."""
        return sum(group.change.size for group in self.groups)

    @property
    def noise_bits(self) -> tuple[int, float]:
        """Number m and probability p of noise bits of the first counter; (0, ½) if no counter changes."""
        for group in self.groups:
            return shuffled_noise(group.noise).bits
        return 0, 0.5

    @property
    def words(self) -> str:
        """The pair in words, with the data of the other users."""
        alike = f"{self.users} users with the same data: " if self.users > 1 else ""
        where = f"; all are in one batch of {self.batch} users" if self.batch > 1 else "; the noise bits are dealt out"
        if self.integers:
            where += (
                f", with all other users' data as in D′: a message {self.noise_bits[0] + 1} in a counter where no "
                "other user holds a 1, or 0 where all others do, is the one user's"
            )
        return alike + describe(self.pair) + where


def attacks(priced: Priced, sizes: tuple[int, ...]) -> Iterator[Attack]:
    """Yield the possible attacks at the pair that changes most counters.

    * The number of ones of every counter, in the batch with the least noise among those with enough users.
    * Every integer message of one user's counters, in the batch that shows the user most often.

    Args:
        priced: Declaration of the messages, with values of its parameters.
        sizes: Numbers of users to change alike if sums are observed.

    Raises:
        ParameterError: No pair of neighbours can be held in memory, or all batches are empty.
    """
    declaration, values = priced.declaration, priced.values
    pair, group = _pair(priced)
    seen = declaration.seen_by(group)
    settings = seen[0].settings(values) if seen else ()
    together = replace(declaration, releases=tuple(r for r in seen if r.settings(values) == settings))
    moved = [find_moved_groups(together, at, pair, group) for at in settings]
    if not any(moved):
        message = f"{declaration.name}: no batch has a user, so nothing is sent; audit more episodes"
        raise ParameterError(message, name="K", given=values.get("K"))
    for users in sizes:
        large = [groups for groups in moved if groups and _senders(groups) >= users]
        if large:
            alike = [replace(g, change=g.change * users) for g in as_sums(max(large, key=_strength))]
            yield _make_attack(alike, users, pair)
    integers = [kept for groups in moved if (kept := _integer_counters(groups))]
    if integers:
        yield _make_attack(max(integers, key=compute_shown_probability), 1, pair)


def _make_attack(groups: Sequence[MovedGroup], users: int, pair: UserPair) -> Attack:
    shown = compute_shown_probability(groups)
    return Attack(groups=tuple(groups), users=users, pair=pair, batch=_senders(groups), shown=shown)


def _pair(priced: Priced) -> tuple[UserPair, str]:
    """Pair that changes most counters, and the user's group if the users are partitioned."""
    declaration, values, pairs = priced.declaration, priced.values, []
    for group in declaration.groups:
        for pair in candidate_pairs(priced, group):
            changes = [r.moved(pair, values) for r in declaration.seen_by(group)]
            pairs.append((sum(float(np.abs(c.change).sum()) * c.times for c in changes), pair, group))
    if not pairs:
        raise ParameterError(f"{declaration.name}: {explain_no_pair(declaration, values)}", name="candidates")
    _, pair, group = max(pairs, key=lambda each: each[0])
    return pair, group


def _senders(groups: Sequence[MovedGroup]) -> int:
    return min(shuffled_noise(group.noise).senders for group in groups)


def _strength(groups: Sequence[MovedGroup]) -> float:
    """Signal-to-noise ratio Σ(Δ/std)² of the sums."""
    return sum(float(np.square(group.change / group.noise.scale).sum()) for group in groups)


def _integer_counters(groups: Sequence[MovedGroup]) -> list[MovedGroup]:
    """Counters of integer messages that the user changes by one, as many as can be drawn."""
    kept: list[MovedGroup] = []
    left = _NUMBERS
    for group in groups:
        if not group.noise.integers or width(group) > _WIDEST:
            continue
        change = group.change[np.abs(group.change) == 1][: left // width(group)]
        left -= change.size * width(group)
        if change.size:
            kept.append(replace(group, change=change))
    return kept
