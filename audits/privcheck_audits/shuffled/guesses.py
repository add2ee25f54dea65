"""Guesses from messages behind a shuffler: which attack, on how many runs to guess, and the bound that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from privcheck.declaration import Declaration
from privcheck.results import AuditRequest
from privcheck_audits.bounds import (
    GuessPlan,
    RankedBound,
    bound_at_ranks,
    group_delta,
    group_size,
    impossible_epsilon,
    user_epsilon,
)
from privcheck_audits.engine.blocks import Tally, tally
from privcheck_audits.engine.scores import MovedGroup, Scored
from privcheck_audits.releases.reachable_limit import LossLaw, best_plan, reachable_guesses
from privcheck_audits.shuffled.attacks import Attack, attacks
from privcheck_audits.shuffled.messages import message_trials, simulate_law

SHOWN: Final = 0.1  # of α, for outputs that are impossible on D′
_SIMULATED: Final = 100_000  # runs of the known law, from which the attack is chosen and the limit is taken
_CERTAIN: Final = 1e6  # nats: the score of an output that one neighbour cannot produce
_TAG: Final = 0x5AFF1E  # seed of the simulation, which no trial shares


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTally:
    """What blocks of trials came to.

    Attributes:
        tally: The guesses.
        on_first: Runs on D.
        shown: Of those, how many sent what cannot be sent on D′.
    """

    tally: Tally
    on_first: int
    shown: int

    @property
    def runs(self) -> int:
        """Returns the number of runs."""
        return self.tally.runs

    def __add__(self, other: MessageTally) -> MessageTally:
        on_first = self.on_first + other.on_first
        return MessageTally(tally=self.tally + other.tally, on_first=on_first, shown=self.shown + other.shown)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Messages:
    """A block of trials: importable, so that it can run in any process."""

    groups: tuple[MovedGroup, ...]
    plan: GuessPlan
    seed: int
    thresholds: tuple[float, ...] = ()

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> MessageTally:
        """Returns what so many fresh runs came to."""
        scored = scores(self.groups, rng, runs)
        shown = int((scored.secret & (scored.score == _CERTAIN)).sum())
        guesses = tally(scored, self.plan, first=first, seed=self.seed, thresholds=self.thresholds)
        return MessageTally(tally=guesses, on_first=int(scored.secret.sum()), shown=shown)


def scores(groups: tuple[MovedGroup, ...], rng: np.random.Generator, runs: int) -> Scored:
    """Returns the scores of fresh runs, finite: certainty counts more than any likelihood ratio."""
    scored = message_trials(groups, rng, runs)
    return Scored(score=np.clip(scored.score, -_CERTAIN, _CERTAIN), secret=scored.secret)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aim:
    """An attack with where it guesses, and what its tests may spend.

    Attributes:
        attack: What is looked at.
        plan: On how many runs to guess.
        law: Of the likelihood ratio, for the limit.
        alpha: Of both tests together.
        delta: Of one user's guarantee.
    """

    attack: Attack
    plan: GuessPlan
    law: LossLaw
    alpha: float
    delta: float

    @property
    def shows(self) -> bool:
        """Returns whether impossible outputs are tested for: by the known law they are likelier than δ."""
        return self.attack.users == 1 and self.attack.shown > self.delta

    @property
    def for_guesses(self) -> float:
        """Returns the part of α that the coin flip spends."""
        return self.alpha * (1 - SHOWN) if self.shows else self.alpha

    def bound(self, counted: MessageTally) -> float:
        """Returns the lower bound on one user's ε, rounded down."""
        guessed = user_epsilon(
            lambda d: self.bound_by_guesses(counted, d).epsilon, users=self.attack.users, delta=self.delta
        )
        return max(self._refute_outright(counted.shown, counted.on_first), guessed)

    def charge(self, epsilon: float) -> float:
        """Returns δ of all the users who are moved alike, where one user's guarantee is (ε, δ); below 1."""
        return min(0.999, group_delta(epsilon if math.isfinite(epsilon) else 0.0, self.delta, users=self.attack.users))

    def bound_by_guesses(self, counted: MessageTally, delta: float) -> RankedBound:
        """Returns what the guesses say of all the users who are moved alike, at a δ."""
        errors, guesses = counted.tally.ranked_errors, counted.tally.ranked_guesses
        return bound_at_ranks(errors, guesses, self.plan, runs=counted.runs, alpha=self.for_guesses, delta=delta)

    def limit(self, runs: int) -> float:
        """Returns what the tests certify at their expected counts, if the known law is the truth: an estimate."""
        flip = partial(reachable_guesses, self.law, self.plan, runs, alpha=self.for_guesses)
        guessed = user_epsilon(lambda d: flip(delta=d), users=self.attack.users, delta=self.delta)
        return max(self._refute_outright(math.floor(self.attack.shown * (runs // 2)), runs // 2), guessed)

    def bound_up_to(self, counted: MessageTally, *, epsilon: float) -> float:
        """Returns a lower bound on one user's ε from fewer runs, no more than a given ε: one look, no search.

        Below it group privacy takes δ no larger than at it, and what is refuted there is refuted below.
        """
        guessed = self.bound_by_guesses(counted, self.charge(epsilon)).epsilon / self.attack.users
        return max(self._refute_outright(counted.shown, counted.on_first), min(epsilon, guessed))

    def limit_up_to(self, runs: int, *, epsilon: float) -> float:
        """Returns about what `limit` does, for bounds about a given ε."""
        paid = self.charge(epsilon)
        reachable = reachable_guesses(self.law, self.plan, runs, alpha=self.for_guesses, delta=paid)
        return reachable / self.attack.users

    def _refute_outright(self, shown: int, runs: int) -> float:
        if not (self.shows and runs):
            return 0.0
        return impossible_epsilon(shown, runs, alpha=self.alpha * SHOWN, delta=self.delta)


def aim(request: AuditRequest, running: Declaration, *, least: float) -> Aim:
    """Returns the attack that certifies most at so many runs, if the known law is the truth.

    Args:
        request: With this attack's share of the runs and of α.
        running: What is sent.
        least: The smallest ε that the bound is compared with, ∞ for none: it says how many users to move alike.
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
