"""One-run audit of a whole agent with many canaries, or a few runs: for agents that take minutes to train.

A run is a block of `engine.blocks`: it flips a fair coin for each canary, trains the agent with the included ones, and
counts the wrong guesses at each number of guesses fixed beforehand. Users call
`privcheck.audit_one_run`; the bound is `privcheck_audits.bounds.OneRun`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privcheck.errors import ParameterError
from privcheck.runtime.auditors import CanaryAgent, MechanismAudit, MechanismError, Workers
from privcheck.support.display import Progress
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck_audits.blackbox.power import find_power
from privcheck_audits.blackbox.verdict import ClaimedLoss
from privcheck_audits.bounds import CoinFlip, OneRun, guess_plan
from privcheck_audits.engine.blocks import blocks
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.pools import refuse_unsendable
from privcheck_audits.engine.scores import draw_hidden_bits

_SIDES: Final = (("in and out", 0.6), ("in", 0.2), ("out", 0.2))  # who is guessed, with parts of α
_FAVOURITE: Final = 0.68  # the share of canaries that count cells with Laplace noise are certified best with
_LEAST: Final = 10  # canaries
_STREAM: Final = 0x10F1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    """Wrong guesses of some runs.

    Attributes:
        runs: Number of runs.
        wrong: (attempts,) wrong guesses.
    """

    runs: int
    wrong: NDArray[np.int64]

    def __add__(self, other: _Errors) -> _Errors:
        return _Errors(runs=self.runs + other.runs, wrong=self.wrong + other.wrong)


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
    def of(cls, canaries: int) -> _Attempts:
        """Attempts for a number of canaries."""
        plan = guess_plan(_FAVOURITE, weight=0.5)
        ranks = plan.ranks(canaries)
        made = [
            (name, rank if name == "in" else rank - rank // 2 if "and" in name else 0, rank, part * weight)
            for name, part in _SIDES
            for rank, weight in zip(ranks, plan.weights, strict=True)
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
        return _Errors(runs=runs, wrong=out[self.attempts.inside] + last[self.attempts.outside])

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
    claim: PureDP | ApproxDP,
    *,
    canaries: int,
    runs: int,
    confidence: float,
    seed: int,
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
    epsilon, delta = _claim(claim)
    _refuse(canaries=canaries, runs=runs, confidence=confidence, seed=seed, workers=workers)
    if executor is not None:
        refuse_unsendable(agent, executor, name="agent")
    attempts = _Attempts.of(canaries)
    alpha = 1 - confidence
    errors = _Errors(runs=0, wrong=np.zeros(len(attempts.names), dtype=np.int64))

    def result(counted: _Errors) -> MechanismAudit:
        lower, number = _bound(counted, attempts, canaries, delta=delta, alpha=alpha)
        guesses = counted.runs * int(attempts.inside[number] + attempts.outside[number])
        target = ClaimedLoss(unit="epsilon", claimed=epsilon, delta=delta)
        power = find_power(target, canaries * runs, alpha=alpha, reach=_reachable)
        return MechanismAudit(
            claim=str(claim),
            verdict="violation" if lower > epsilon else "consistent",
            unit="epsilon",
            claimed=epsilon,
            lower=lower,
            reachable=power.reachable,
            visible=power.visible,
            needed=None if power.needed == math.inf else math.ceil(power.needed / canaries),
            delta=delta,
            trials=runs,
            runs=counted.runs,
            ended="done" if counted.runs == runs else "interrupted",
            confidence=confidence,
            seed=seed,
            pair=0,
            method=f"guesses of canaries, {attempts.names[number]}",
            notes=(),
            evidence={
                "canaries": canaries,
                "right_guesses": guesses - int(counted.wrong[number]),
                "wrong_guesses": int(counted.wrong[number]),
                "alpha_of_this_attempt": alpha * attempts.weights[number],
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
        checkpoint=_keep(directory, agent, claim, canaries),
        progress=progress,
    )
    try:
        for part in parts:
            errors += part
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


def _bound(counted: _Errors, attempts: _Attempts, canaries: int, *, delta: float, alpha: float) -> tuple[float, int]:
    """Largest lower bound on ε among the attempts, with its index; all hold jointly at confidence 1 − α.

    Several runs are one mechanism on all their coins: each coin affects one run only.
    """
    bounds = []
    for wrong, inside, outside, weight in zip(
        counted.wrong, attempts.inside, attempts.outside, attempts.weights, strict=True
    ):
        run = OneRun(canaries=canaries * counted.runs, guesses=int(inside + outside) * counted.runs, errors=int(wrong))
        bounds.append(run.epsilon(alpha=alpha * weight, delta=delta))
    best = int(np.argmax(bounds))
    return bounds[best], best


def _reachable(target: ClaimedLoss, runs: int, *, alpha: float) -> float:
    """Bound for randomised response of every coin, with all coins guessed; here a run is a coin."""
    errors = min(runs, math.ceil(runs * (1 - target.delta) * float(expit(-target.claimed))))
    return CoinFlip(errors=errors, guesses=runs, coins=runs, delta=target.delta).epsilon(alpha=alpha)


def _keep(directory: Path | None, agent: CanaryAgent, claim: PureDP | ApproxDP, canaries: int) -> Checkpoint | None:
    if directory is None:
        return None
    name = getattr(agent, "__qualname__", type(agent).__qualname__)
    plan = {"agent": name, "claim": str(claim), "canaries": canaries}
    return Checkpoint(directory=directory, plan=plan, kinds=(_Errors,))


def _claim(claim: object) -> tuple[float, float]:
    if not isinstance(claim, PureDP | ApproxDP):
        raise ParameterError(f"claim: expected PureDP or ApproxDP, got {claim!r}", name="claim", given=claim)
    epsilon = claim.epsilon.number(rounding="up")
    delta = claim.delta.number(rounding="up") if isinstance(claim, ApproxDP) else 0.0
    if not (0 <= epsilon < math.inf and 0 <= delta < 1):
        raise ParameterError(f"claim: expected finite and not negative, δ below 1, got {claim}", given=claim)
    return epsilon, delta


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
