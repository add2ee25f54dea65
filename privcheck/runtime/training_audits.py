"""Audits of a function that trains, by canary examples or users who take part by the fall of a coin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting import compose, compress_to_mu
from privcheck.accounting.curve import Curve
from privcheck.accounting.events import Event
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import MechanismAudit, MechanismClaim, audit_one_run
from privcheck.support.display import Progress, silent
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP

Train = Callable[[Any, np.random.Generator], Any]  # (the canaries that take part, rng) → what training shows
Score = Callable[[Any, Any], Any]  # (what training shows, all canaries) → a number for each canary
_CLAIMS = (PureDP, ApproxDP, ZCDP, GaussianDP)


def gradient_canaries(count: int, dimension: int, *, norm: float, seed: int = 0) -> NDArray[np.float64]:
    """Gradients of canary examples: (count, dimension) rows of one length in random directions.

    The directions are orthogonal while `count` is at most `dimension`: then no canary is noise to another. A norm far
    above the clipping norm shows whether each example is clipped by itself.

    Args:
        count: Number of canaries.
        dimension: Number of parameters of the model.
        norm: ℓ₂ norm of each row.
        seed: Seed of the directions.

    Raises:
        ParameterError: A number is out of range.
    """
    if count < 1 or dimension < 1 or not 0 < norm < np.inf:
        message = (
            f"expected a count and a dimension of at least 1 and a positive norm, got {count}, {dimension}, {norm}"
        )
        raise ParameterError(message, name="norm", given=norm)
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dimension))
    if count <= dimension:
        rows = np.linalg.qr(rows.T)[0].T
    scaled: NDArray[np.float64] = norm * rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def align(shown: Any, canaries: Any) -> NDArray[np.float64]:
    """Score of each gradient canary: the sum of all that training shows, along the canary's direction.

    For Gaussian noise of one spread on every step this is the likelihood ratio of orthogonal canaries.

    Args:
        shown: (T, d) noisy sums of T steps, or (d,) the difference of the last parameters and the first.
        canaries: (m, d) gradients.

    Raises:
        ParameterError: The shapes do not fit.
    """
    sums, rows = np.asarray(shown, dtype=np.float64), np.asarray(canaries, dtype=np.float64)
    if sums.ndim not in (1, 2) or rows.ndim != 2 or sums.shape[-1] != rows.shape[1]:
        message = f"expected (T, d) or (d,) from the training and (m, d) canaries, got {sums.shape} and {rows.shape}"
        raise ParameterError(f"{message}: give score= for other outputs", name="score")
    scores: NDArray[np.float64] = rows @ sums.reshape(-1, sums.shape[-1]).sum(axis=0) / np.linalg.norm(rows, axis=1)
    return scores


def audit_training(
    train: Train,
    declared: MechanismClaim | Event | Curve | Sequence[Event],
    *,
    canaries: Any,
    score: Score = align,
    delta: float | None = None,
    runs: int = 1,
    confidence: float = 0.99,
    seed: int = 0,
    stop: bool = False,
    workers: int = 1,
    executor: Executor | Callable[[], Executor] | None = None,
    directory: Path | None = None,
    progress: Progress = silent,
) -> MechanismAudit:
    """Test whether a training leaks more than its declared steps cost, in one run or a few.

    Each canary is an example (or a whole user) made up by the auditor. A fair coin decides whether it takes part; the
    auditor guesses the coins from what training shows, and `audit_one_run` turns right guesses into a lower bound.
    *Gradient canaries* are rows of `gradient_canaries`, which the training code treats as the gradients of further
    examples at every step, before clipping; *input canaries* are examples, with a `score` such as minus the loss.

    Args:
        train: `train(chosen, rng)` trains once, from scratch, on its own data and on the chosen canaries (rows of an
            array, or a list), takes all randomness from `rng`, and returns all that leaves: every noisy sum (T, d), or
            the last parameters, or anything that `score` reads. It sees who takes part and must not say it otherwise.
        declared: The claim for one canary that is added or removed, or the accounting events of the steps. Steps that
            together are μ-GDP (Gaussian, Laplace) are tested as that; sampled ones as (ε, δ) at `delta`, which
            shows less.
        canaries: All canaries: an array (m, …) or a sequence of at least 10.
        score: `score(shown, canaries)` returns m numbers: the larger, the likelier the canary took part.
        delta: δ of the comparison; required with events for which no finite μ is known.
        runs: As in `audit_one_run`, as are all further arguments.
        confidence: 1 − α.
        seed: Seed of coins and runs.
        stop: Whether to look after every run and stop once the claim is refuted.
        workers: Threads.
        executor: Executor of the runs.
        directory: Folder of finished runs.
        progress: Called after each run.

    Returns:
        The audit. `reachable` is what the best test would show of training that costs exactly what is declared;
        `evidence` has `charged_epsilon` at `charged_delta` if a δ is given.

    Raises:
        ParameterError: An argument is out of range, or the events need a δ, or a larger one.
        MechanismError: The training raised, or the scores are not m numbers.

    >>> from privcheck import accounting as acc
    >>> rows = gradient_canaries(50, 50, norm=100.0)
    >>> def train(chosen, rng):  # three steps, with far less noise
    ...     return (chosen / 100.0).sum(axis=0) + rng.normal(0, 0.1, (3, 50))
    >>> audit_training(train, acc.gaussian(std=4.0, count=3), canaries=rows, runs=40).verdict
    'violation'
    """
    claim, charged = _claim_of(declared, delta)
    work = _Training(train=train, canaries=canaries, score=score)
    found = audit_one_run(
        work, claim, canaries=len(canaries), runs=runs, confidence=confidence, seed=seed, stop=stop,
        workers=workers, executor=executor, directory=directory, progress=progress,
    )  # fmt: skip
    if not isinstance(declared, _CLAIMS):
        words = f"({found.claimed:.6g})-GDP" if found.unit == "mu" else f"({found.claimed:.6g}, {found.delta:g})-DP"
        found = replace(found, claim=f"{words} by the declared steps")
    if charged is None or delta is None:
        return found
    return replace(found, evidence={**found.evidence, "charged_epsilon": charged, "charged_delta": float(delta)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Training:
    """A training as an agent of `audit_one_run`; importable, so that runs can happen in any process."""

    train: Train
    canaries: Any
    score: Score

    def __call__(self, included: NDArray[np.bool_], rng: np.random.Generator) -> Any:
        if isinstance(self.canaries, np.ndarray):
            chosen: Any = self.canaries[included]
        else:
            chosen = [one for one, here in zip(self.canaries, included, strict=True) if here]
        return self.score(self.train(chosen, rng), self.canaries)


def _claim_of(
    declared: MechanismClaim | Event | Curve | Sequence[Event], delta: float | None
) -> tuple[MechanismClaim, float | None]:
    """The claim that the declared steps imply, and the ε charged at δ; never less than they cost."""
    if isinstance(declared, _CLAIMS):
        return declared, None
    curve = compose(declared)
    charged = None if delta is None else curve.epsilon(delta=delta).upper
    try:
        whole = compress_to_mu(curve)
    except ParameterError:
        whole = None  # of sampled steps no finite μ is known
    if whole is not None and not whole.lost:
        return GaussianDP(_shorten(whole.mu)), charged
    if charged is None or delta is None:
        message = "expected delta=: no finite μ is known for these events, and they are tested as (ε, δ)"
        raise ParameterError(message, name="delta")
    if charged == np.inf:
        raise ParameterError(f"no finite ε is known for these events at δ = {delta:g}", name="delta", given=delta)
    return ApproxDP(_shorten(charged), Fraction(str(delta))), charged


def _shorten(loss: float) -> Fraction:
    """The least number of twelve digits that is not below a loss: a claim that people can read."""
    return Fraction(Context(prec=12, rounding=ROUND_CEILING).create_decimal(Decimal(loss)))
