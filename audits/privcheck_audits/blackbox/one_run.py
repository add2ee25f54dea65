"""One-run audit of a whole agent with many canaries, or a few runs: for agents that take minutes to train.

A run is a block of `engine.blocks`: it flips a fair coin for each canary, trains the agent with the included ones, and
counts the wrong guesses at each number of guesses fixed beforehand. Users call
`privcheck.audit_one_run`; the bound is `privcheck_audits.bounds.OneRun`, and `RunBets` after every run with `stop`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import CanaryAgent, MechanismAudit, MechanismClaim, MechanismError, Workers
from privcheck.support.display import Progress
from privcheck_audits.blackbox.power import find_visible
from privcheck_audits.blackbox.verdict import ClaimedLoss
from privcheck_audits.bounds import GuessPlan, Neighbouring, OneRun, RunBets, guess_plan
from privcheck_audits.engine.blocks import blocks
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.pools import refuse_unsendable
from privcheck_audits.engine.scores import draw_hidden_bits

_GUESSED: Final = ("in and out", "in", "out")
_LAPLACE: Final = 0.68  # the share of canaries that count cells with Laplace noise are certified best with
_SHARES: Final = tuple(np.geomspace(0.02, 1, 24))  # of which the best for the claimed Gaussian noise is a favourite
_MIDDLE: Final = 0.2  # first share of the search for the favourite
_ROUNDS: Final = 2  # of it
_FAINT: Final = 0.1  # part of the claim that is refuted if nothing would be shown
_LOOKS: Final = 0.5  # of α, for the looks of an audit that may stop early
_BET_ON: Final = 6  # attempts
_STEPS: Final = 12  # of the search for the loss that the bets refute
_LARGEST: Final = 60.0  # loss that it ends at
_OUT: Final = 1 + 1e-12
_LEAST: Final = 10  # canaries
_MOST: Final = 1 << 20  # canaries that are asked for
_STREAM: Final = 0x10F1
_HALVINGS: Final = 45


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    """Wrong guesses of some runs.

    Attributes:
        each: (runs, attempts) wrong guesses.
    """

    each: NDArray[np.int64]

    def __add__(self, other: _Errors) -> _Errors:
        return _Errors(each=np.concatenate([self.each, other.each]))

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.each)

    @property
    def wrong(self) -> NDArray[np.int64]:
        """(attempts,) wrong guesses of all runs."""
        total: NDArray[np.int64] = self.each.sum(axis=0)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Division of α.

    Attributes:
        parts: Parts of guesses of those in and those out, of those in, and of those out.
        guesses: Shares of canaries to guess, the favourite first, with their weights in each part.
    """

    parts: tuple[float, float, float]
    guesses: GuessPlan

    @classmethod
    def of(cls, target: ClaimedLoss, coins: int, *, alpha: float) -> _Plan:
        """Plan for a claim, before any run.

        What has δ > 0 is Gaussian as a rule. μ and ρ are claimed of noise that is the same above and below.
        """
        if target.unit == "epsilon" and target.delta == 0:
            return cls(parts=(0.6, 0.2, 0.2), guesses=guess_plan(_LAPLACE, weight=0.5))
        favourite = _best_share(target, coins, alpha=alpha)
        if target.unit == "epsilon":
            grid = guess_plan(_LAPLACE, weight=0.5)
            weights = (0.6, *(0.4 * weight for weight in grid.weights))
            return cls(parts=(0.8, 0.1, 0.1), guesses=GuessPlan(shares=(favourite, *grid.shares), weights=weights))
        return cls(parts=(0.97, 0.015, 0.015), guesses=guess_plan(favourite, weight=0.97))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempts:
    """Number of canaries guessed to be in, and to be out, in each run.

    Attributes:
        names: Which canaries each attempt guesses.
        inside: (attempts,) number guessed to be in.
        outside: (attempts,) number guessed to be out.
        weights: Share of α of each attempt.
    """

    names: tuple[str, ...]
    inside: NDArray[np.int64]
    outside: NDArray[np.int64]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, canaries: int, plan: _Plan) -> _Attempts:
        """Attempts for a number of canaries of a run, the first favourite share of guesses first."""
        ranks = plan.guesses.ranks(canaries)
        made = [
            (name, rank if name == "in" else rank - rank // 2 if "and" in name else 0, rank, part * weight)
            for name, part in zip(_GUESSED, plan.parts, strict=True)
            for rank, weight in zip(ranks, plan.guesses.weights, strict=True)
        ]
        inside = np.array([first for _, first, _, _ in made])
        return cls(
            names=tuple(name for name, _, _, _ in made),
            inside=inside,
            outside=np.array([rank for _, _, rank, _ in made]) - inside,
            weights=tuple(weight for *_, weight in made),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Run:
    """One run of the agent."""

    agent: CanaryAgent
    canaries: int
    attempts: _Attempts
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> _Errors:
        included = draw_hidden_bits(rng, self.canaries)
        try:
            given = self.agent(included.copy(), rng.spawn(1)[0])
        except Exception as error:
            raise self._error(f"raised {type(error).__name__}: {error}", first) from error
        scores = self._scores(given, first)
        order = np.argsort(-scores, kind="stable")  # ties go to the canary before, whose coin is as fair
        out = np.concatenate([[0], np.cumsum(~included[order])])  # among the first so many
        last = np.concatenate([[0], np.cumsum(included[order][::-1])])
        return _Errors(each=(out[self.attempts.inside] + last[self.attempts.outside])[None])

    def _scores(self, given: Any, first: int) -> NDArray[np.float64]:
        wanted = f"expected a number for each of the {self.canaries} canaries"
        try:
            scores = np.asarray(given)
        except Exception as error:
            raise self._error(f"returned no array ({type(error).__name__}: {error}); {wanted}", first) from error
        if scores.dtype.kind not in "biuf" or scores.shape != (self.canaries,):
            raise self._error(f"returned {scores.dtype} values of shape {scores.shape}; {wanted}", first)
        scores = scores.astype(np.float64)
        if np.isnan(scores).any():
            raise self._error(f"returned NaN for canary {int(np.isnan(scores).argmax())}; {wanted}", first)
        return scores

    def _error(self, problem: str, run: int) -> MechanismError:
        return MechanismError(f"the agent, in run {run}, seed {self.seed}, {problem}", trial=run, seed=self.seed)


def audit_one_run(
    agent: CanaryAgent,
    claim: MechanismClaim,
    *,
    canaries: int,
    runs: int,
    confidence: float,
    seed: int,
    stop: bool,
    workers: int,
    executor: Workers,
    directory: Path | None,
    progress: Progress,
) -> MechanismAudit:
    """Audit an agent; see `privcheck.audit_one_run`.

    Raises:
        ParameterError: An argument is out of its range, the agent cannot be sent to the workers, or the directory
            belongs to another audit.
        MechanismError: The agent raised or returned something other than one number per canary.
        KeyboardInterrupt: The audit was interrupted before any run had ended.
    """
    began = time.perf_counter()
    target = ClaimedLoss.of(claim)
    _refuse(canaries=canaries, runs=runs, confidence=confidence, seed=seed, workers=workers)
    if executor is not None:
        refuse_unsendable(agent, executor, name="agent")
    looks = _LOOKS * (1 - confidence) if stop else 0.0
    alpha = 1 - confidence - looks
    plan = _Plan.of(target, canaries * runs, alpha=alpha)
    favourite = plan.guesses.shares[0]
    attempts = _Attempts.of(canaries, plan)
    errors = _Errors(each=np.zeros((0, len(attempts.names)), dtype=np.int64))
    bets = _Bets.of(attempts, canaries, target) if stop else None
    stopped = False

    def result(counted: _Errors) -> MechanismAudit:
        lower, number = (0.0, 0) if stopped else _bound(counted, attempts, canaries, target, alpha=alpha)
        guesses = counted.runs * int(attempts.inside[number] + attempts.outside[number])
        method, paid = f"guesses of canaries, {attempts.names[number]}", alpha * attempts.weights[number]
        if bets is not None and (anytime := bets.lower(counted, alpha=looks, above=lower)) > lower:
            lower, method, paid = anytime, "bets on guesses of canaries, looked at after every run", looks
        part = alpha * attempts.weights[0]
        visible, needed = _power(target, canaries * runs, favourite, alpha=part)
        return MechanismAudit(
            claim=str(claim),
            verdict="violation" if stopped or lower > target.claimed else "consistent",
            unit=target.unit,
            claimed=target.claimed,
            lower=lower,
            reachable=_reachable(target, canaries * runs, favourite, alpha=part),
            visible=visible,
            needed=None if needed == math.inf else math.ceil(needed / canaries),
            delta=target.delta,
            trials=runs,
            runs=counted.runs,
            ended="stopped" if stopped else "done" if counted.runs == runs else "interrupted",
            confidence=confidence,
            seed=seed,
            pair=0,
            method=method,
            notes=_gaussian_note(target, canaries * runs, alpha=part),
            evidence={
                "canaries": canaries,
                "right_guesses": guesses - int(counted.wrong[number]),
                "wrong_guesses": int(counted.wrong[number]),
                "alpha_of_this_attempt": paid,
                "attempts": len(attempts.names),
            },
            seconds=time.perf_counter() - began,
        )

    work = _Run(agent=agent, canaries=canaries, attempts=attempts, seed=seed)
    parts = blocks(
        work,
        runs,
        seed=seed,
        stream=_STREAM,
        block=1,
        workers=workers,
        executor=executor,
        checkpoint=_keep(directory, agent, claim, canaries, attempts),
        progress=progress,
    )
    try:
        for part in parts:
            errors += part
            if bets is not None and bets.refute(errors, target.claimed, alpha=looks):
                stopped = True
                break
    except MechanismError as error:
        if errors.runs == 0:
            raise
        finished = result(errors)
        message = f"{error}; the {errors.runs:,} runs before it say: {finished.verdict}"
        raise MechanismError(message, trial=error.trial, seed=error.seed, finished=finished) from error.__cause__
    except KeyboardInterrupt:
        if errors.runs == 0:
            raise
    finally:
        parts.close()
    return result(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bets:
    """Bets on a few attempts, looked at after every run.

    Attributes:
        target: The claim.
        canaries: Number of canaries of a run.
        places: Which attempts are bet on.
        guesses: Number of guesses of each in a run.
        weights: Weights of each in the e-value.
    """

    target: ClaimedLoss
    canaries: int
    places: tuple[int, ...]
    guesses: tuple[int, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, attempts: _Attempts, canaries: int, target: ClaimedLoss) -> _Bets:
        """Bets on the attempts with the largest parts of α."""
        heaviest = sorted(range(len(attempts.weights)), key=lambda i: -attempts.weights[i])[:_BET_ON]
        total = math.fsum(attempts.weights[i] for i in heaviest) * _OUT
        return cls(
            target=target,
            canaries=canaries,
            places=tuple(heaviest),
            guesses=tuple(int(attempts.inside[i] + attempts.outside[i]) for i in heaviest),
            weights=tuple(attempts.weights[i] / total for i in heaviest),
        )

    def refute(self, counted: _Errors, loss: float, *, alpha: float) -> bool:
        """Whether the e-value of the runs against a loss has reached 1/α."""
        each = [
            math.log(weight) + bets.log_e_value(bets.guesses - counted.each[:, place])
            for place, weight, bets in zip(self.places, self.weights, self._against(loss), strict=True)
        ]
        return bool(np.logaddexp.reduce(each) >= -math.log(alpha))

    def lower(self, counted: _Errors, *, alpha: float, above: float) -> float:
        """Lower bound on the loss that holds at any time, rounded down; 0 if nothing above `above` is refuted."""
        low, high = above, max(self.target.claimed / _STEPS, 2 * above)
        if not self.refute(counted, low, alpha=alpha):
            return 0.0
        while high < _LARGEST and self.refute(counted, high, alpha=alpha):
            low, high = high, 2 * high
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.refute(counted, middle, alpha=alpha) else (low, middle)
        return low

    def _against(self, loss: float) -> tuple[RunBets, ...]:
        return _run_bets(self.target, loss, self.canaries, self.guesses)


@lru_cache(maxsize=64)
def _run_bets(target: ClaimedLoss, loss: float, canaries: int, guesses: tuple[int, ...]) -> tuple[RunBets, ...]:
    pure = target.unit == "epsilon" and target.delta == 0
    claim = loss if pure else _curve(target, loss)
    return tuple(RunBets.against(claim, canaries=canaries, guesses=each) for each in guesses)


def _bound(
    counted: _Errors, attempts: _Attempts, canaries: int, target: ClaimedLoss, *, alpha: float
) -> tuple[float, int]:
    """Largest lower bound on the loss among the attempts, with its index; all hold jointly at confidence 1 − α.

    Several runs are one mechanism on all their coins: each coin affects one run only.
    """
    largest, best = 0.0, 0
    numbers = attempts.inside + attempts.outside
    for i, (wrong, number, weight) in enumerate(zip(counted.wrong, numbers, attempts.weights, strict=True)):
        run = OneRun(canaries=canaries * counted.runs, guesses=int(number) * counted.runs, errors=int(wrong))
        lower = _lower(run, target, alpha=alpha * weight, above=largest)
        if lower > largest:
            largest, best = lower, i
    return largest, best


def _lower(run: OneRun, target: ClaimedLoss, *, alpha: float, above: float = 0.0) -> float:
    """Lower bound in the claim's unit; 0 if nothing above `above` is refuted."""
    if target.unit == "epsilon":
        return run.epsilon(alpha=alpha, delta=target.delta, above=above)
    return run.mu(alpha=alpha, above=above) if target.unit == "mu" else run.rho(alpha=alpha, above=above)


def _easiest(target: ClaimedLoss, loss: float, coins: int, share: float) -> OneRun:
    """Expected guesses of the mechanism with a loss that is easiest to audit.

    For ε it is randomised response of every coin, told outright with probability δ; for μ and ρ a Gaussian of every
    coin, of which the share with the largest scores is guessed.
    """
    if target.unit == "epsilon":
        return OneRun(canaries=coins, guesses=coins, errors=math.ceil(coins * (1 - target.delta) * expit(-loss)))
    mu = loss if target.unit == "mu" else math.sqrt(2 * loss)
    return _gaussian(mu, coins, share)


def _gaussian(mu: float, coins: int, share: float) -> OneRun:
    """Expected guesses of coins with N(±μ/2, 1) noise of their own, at the share with the largest absolute values."""
    guesses = max(1, round(share * coins))
    if mu == math.inf:
        return OneRun(canaries=coins, guesses=guesses, errors=0)
    low, high = 0.0, mu + 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        guessed = ndtr(mu / 2 - middle) + ndtr(-mu / 2 - middle)
        low, high = (middle, high) if guessed > share else (low, middle)
    wrong = float(ndtr(-mu / 2 - low)) / share
    return OneRun(canaries=coins, guesses=guesses, errors=min(guesses, round(guesses * min(wrong, 0.5))))


@lru_cache(maxsize=64)
def _best_share(target: ClaimedLoss, coins: int, *, alpha: float) -> float:
    """Share of coins to guess if Gaussian noise is exactly as claimed: the surest refutation of about what it shows."""
    mu, share = _gaussian_at(target), _MIDDLE
    for _ in range(_ROUNDS):
        shown = _lower(_gaussian(mu, coins, share), target, alpha=alpha)
        curve = _curve(target, shown if shown > 0 else target.claimed * _FAINT)
        share = float(min(_SHARES, key=lambda each: _gaussian(mu, coins, each).most_likely(curve)))
    return share


def _gaussian_at(target: ClaimedLoss) -> float:
    """μ of Gaussian noise that is exactly as claimed; δ > 0 if ε is claimed."""
    if target.unit != "epsilon":
        return target.claimed if target.unit == "mu" else math.sqrt(2 * target.claimed)
    low, high = 0.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if gdp_delta(middle, target.claimed) < target.delta else (low, middle)
    return low


@lru_cache(maxsize=64)
def _reachable(target: ClaimedLoss, coins: int, share: float, *, alpha: float) -> float:
    """Bound if the mechanism that is easiest to audit is exactly as claimed."""
    return _lower(_easiest(target, target.claimed, coins, share), target, alpha=alpha)


@lru_cache(maxsize=64)
def _power(target: ClaimedLoss, coins: int, share: float, *, alpha: float) -> tuple[float, float]:
    """About the least visible loss, and the coins that show twice the claim; ∞ for none."""
    claim = _curve(target, target.claimed)

    def shows(loss: float, tested: int) -> bool:
        return _easiest(target, loss, tested, share).refutes(claim, alpha=alpha)

    return find_visible(target, coins, shows, most=_MOST)


def _curve(target: ClaimedLoss, loss: float) -> Neighbouring:
    """The claim with another loss."""
    if target.unit == "epsilon":
        return Neighbouring.approximate(loss, target.delta)
    return Neighbouring.gaussian(loss) if target.unit == "mu" else Neighbouring.concentrated(loss)


@lru_cache(maxsize=64)
def _gaussian_note(target: ClaimedLoss, coins: int, *, alpha: float) -> tuple[str, ...]:
    """What Gaussian noise of an (ε, δ) claim would show: far less than the easiest mechanism of that claim."""
    if not 0 < target.delta < 1 or target.claimed == 0:
        return ()
    exact = _gaussian_at(target)
    as_curve = replace(target, unit="mu", claimed=exact, delta=0.0)
    shown, mu = (
        _lower(_gaussian(exact, coins, _best_share(each, coins, alpha=alpha)), each, alpha=alpha)
        for each in (target, as_curve)
    )
    on_curve = gdp_epsilon(mu, target.delta, rounding="down") if mu > 0 else 0.0
    exactly = f"Gaussian noise that meets this claim exactly would show about ε = {shown:.3g}"
    return (f"{exactly}; claimed as GaussianDP({exact:.3g}), about ε = {on_curve:.3g}",)


def _keep(
    directory: Path | None, agent: CanaryAgent, claim: MechanismClaim, canaries: int, attempts: _Attempts
) -> Checkpoint | None:
    if directory is None:
        return None
    name = getattr(agent, "__qualname__", type(agent).__qualname__)
    guessed = " ".join(
        map(str, [*attempts.inside.tolist(), *attempts.outside.tolist()])
    )  # of which wrong ones are kept
    plan = {"agent": name, "claim": str(claim), "canaries": canaries, "guessed": guessed}
    return Checkpoint(directory=directory, plan=plan, kinds=(_Errors,))


def _refuse(*, canaries: int, runs: int, confidence: float, seed: int, workers: int) -> None:
    for name, good, wanted, given in (
        ("canaries", canaries >= _LEAST, f"at least {_LEAST}", canaries),
        ("runs", runs >= 1, "at least 1", runs),
        ("confidence", 0 < confidence < 1, "strictly between 0 and 1", confidence),
        ("seed", seed >= 0, "at least 0", seed),
        ("workers", workers >= 1, "at least 1", workers),
    ):
        if not good:
            raise ParameterError(f"{name}: expected {wanted}, got {given!r}", name=name, given=given)
