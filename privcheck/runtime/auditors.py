"""Audits of any Python function, or of a whole agent from outside, from inputs and outputs alone.

The auditors themselves are found by name through the entry points (group `privcheck.auditors`), as algorithms and audit
plans are. Each is called with all arguments of the function here that selects it, by name after the first two:
"blackbox", or another named auditor, with those of `audit_mechanism`, "float-noise" and "one-run" with those of their
functions, and "agent" with those of `audit_agent`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import AuditError
from privcheck.runtime.audit_pictures import TradeOff
from privcheck.support.display import Brief, Progress, silent
from privcheck.support.plugins import load_entry
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP

MechanismFunction = Callable[..., Any]  # (dataset, size, rng) → `size` runs of anything, or (dataset, rng) → one run
Exceptions = Literal["output", "raise"]
CanaryAgent = Callable[[NDArray[np.bool_], np.random.Generator], Any]  # (included, rng) → a score of each canary
Neighbours = Sequence[tuple[Any, Any]]
MechanismClaim = PureDP | ApproxDP | ZCDP | GaussianDP
Workers = Executor | Callable[[], Executor] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MechanismAudit(Brief):
    """Result of auditing a function.

    Attributes:
        claim: The claim in words.
        verdict: "violation" or "consistent"; an audit never shows that a mechanism is private.
        unit: Unit of `claimed`, `lower` and `reachable`: "epsilon" (at `delta`), "rho" or "mu".
        claimed: The claim in that unit, rounded up.
        lower: With the confidence, the loss is at least this, rounded down.
        reachable: About the bound that the best test could have certified with all runs, if the claim were exactly
            true.
        visible: About the least loss at which all runs would have shown a violation; ∞ if no loss would have.
        needed: About the N with which a loss of twice the claim would be shown (.1 if the claim is 0); None if no
            number of runs would suffice. Both are about the mechanism with the loss that is easiest to detect.
        delta: The claim's δ; 0 if it has none.
        trials: N, the requested runs under each neighbour of each pair; for `audit_one_run`, all runs.
        runs: All runs used for learning and testing. `evidence` has those of calls compared with each other
            (`compared_runs`) and those that confirmed a violation (`confirming_runs`).
        ended: "done" with all runs, "stopped" by a violation, or "interrupted".
        confidence: 1 − α of the whole audit: all pairs, directions, scores, thresholds and looks together.
        seed: Repeats the audit.
        pair: The index of the pair that gave `lower`.
        method: The test that gave `lower`, in words.
        notes: Other observations about the function: that a seed does not fix its output, for example.
        evidence: Figures behind the verdict, by name.
        seconds: Wall time.
        neighbours: The tested pairs; empty for canaries.
        trade_off: Both error rates of the score that gave `lower`, for a report; no verdict depends on it. None if the
            number of runs depended on the outputs.
    """

    claim: str
    verdict: Literal["violation", "consistent"]
    unit: Literal["epsilon", "rho", "mu"]
    claimed: float
    lower: float
    reachable: float
    visible: float
    needed: int | None
    delta: float
    trials: int
    runs: int
    ended: Literal["done", "stopped", "interrupted"]
    confidence: float
    seed: int
    pair: int
    method: str
    notes: tuple[str, ...]
    evidence: Mapping[str, float | int | str]
    seconds: float
    neighbours: tuple[Any, ...] = field(default=(), repr=False, compare=False)  # arrays do not compare
    trade_off: TradeOff | None = field(default=None, repr=False)

    def __str__(self) -> str:
        letter = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}[self.unit]
        bound = f"{letter} ≥ {self.lower:.4g} at {self.confidence:.4g} confidence (pair {self.pair}, {self.method})"
        made = self._count_runs()
        best = f"at most about {self.reachable:.4g} could be shown with them if the claim were exactly true"
        lines = [f"{self.verdict}: {self.claim} claimed, {bound}; {made}, seed {self.seed}; {best}", *self.notes]
        return "\n".join(lines)

    def _count_runs(self) -> str:
        """Number of runs in words, with the planned number if the audit ended early."""
        stopped = "" if self.ended == "done" else f"{self.ended} after {self.runs:,} of "
        if "canaries" in self.evidence:
            each = "" if self.trials == 1 else " each"
            return f"{stopped}{self.trials:,} run{each and 's'} with {self.evidence['canaries']:,} canaries{each}"
        pairs = len(self.neighbours)
        under = f"under each neighbour{f' of each of {pairs:,} pairs' if pairs > 1 else ''}"
        if not stopped:
            return f"{self.trials:,} runs {under}"
        return f"{stopped}{2 * self.trials * max(1, pairs):,} runs, {self.trials:,} {under}"

    def to_dict(self) -> dict[str, Any]:
        """The audit as a JSON document, like other results; without the neighbours, which are data.

        Raises:
            ParameterError: The audit contains a NaN.
        """
        from privcheck.support.encoding import document

        plain = document(replace(self, neighbours=()))
        del plain["neighbours"]
        return plain


class MechanismError(AuditError):
    """A function under audit that cannot be judged: it raised, or it did not return the requested runs.

    Attributes:
        trial: The run, counted from 0 over both neighbours; the first of a call if the call failed as a whole.
        seed: The audit's seed, with which the run can be repeated.
        finished: The audit of the runs before it; None if it failed before any run was tested.
    """

    def __init__(self, message: str, *, trial: int, seed: int, finished: MechanismAudit | None = None) -> None:
        super().__init__(message, trial=trial, seed=seed)
        self.finished = finished


def audit_mechanism(
    mechanism: MechanismFunction,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours,
    trials: int = 100_000,
    confidence: float = 0.99,
    seed: int = 0,
    stop: bool = False,
    workers: int = 1,
    executor: Workers = None,
    directory: Path | None = None,
    progress: Progress = silent,
    exceptions: Exceptions = "output",
    one_at_a_time: bool | None = None,
    auditor: str = "blackbox",
) -> MechanismAudit:
    """Audit a function: test whether its outputs refute its claim, and bound its loss from below.

    Three tenths of the runs train several scores; the rest is tested by statistics that are valid whatever was learned
    and that account for everything they try. Outputs are first put on a grid 2³⁰ times finer than their spread:
    `audit_float_noise` tests whether NumPy's floating-point noise reveals its own centre.

    An interrupt (Ctrl-C) ends the audit with the bound of the runs tested so far, which is valid because none of it was
    shown before.

    Args:
        mechanism: `mechanism(dataset, size, rng)` returns `size` independent runs on the dataset: a list of them, an
            array (size, …), a dict or tuple of columns of that length, or a generator. `mechanism(dataset, rng)`
            returns one run. The signature decides between the two. An output may be any Python object: numbers, texts,
            `None`, NaN, dicts, objects, tables, generators (read to their end). Types, keys and their order, lengths
            and dtypes are part of it. All randomness comes from `rng`, or from a `seed`; otherwise the audit cannot be
            repeated.
        claim: `PureDP`, `ApproxDP`, `ZCDP` or `GaussianDP`.
        neighbours: Pairs of neighbouring datasets, in the form that the mechanism takes.
        trials: N, runs under each neighbour of each pair; 2N per pair in all. A maximum with `stop`.
        confidence: 1 − α, all pairs, directions, scores, thresholds and looks included.
        seed: Seed of the runs and of the learning.
        stop: Whether to test after every block and stop as soon as the claim is refuted, after a few hundred runs for a
            gross violation. Half of α is spent on these looks, the other half on the final bound.
        workers: Threads; the result does not depend on it.
        executor: Executor of the blocks of runs in place of threads: any `concurrent.futures.Executor` (processes,
            Dask's `client.get_executor()`), or a function that makes one. For processes the function must be importable
            there. The result does not depend on it, nor on workers that die.
        directory: Where finished blocks are kept. An audit that was killed continues from there to the same result.
        progress: Called after each block of runs.
        exceptions: "output": an exception is a run's output, with its type and message. Once a call for many runs has
            raised, every run is made by a separate call. "raise": an exception ends the audit.
        one_at_a_time: Whether the function is called for one run at a time; None to decide by its signature.
        auditor: The registered auditor to use; it may be a third party's.

    Raises:
        UnknownNameError: No such auditor is registered.
        ParameterError: An argument is out of its range, the signature does not determine how to call the function, the
            function cannot be sent to the executor's workers, a directory belongs to another audit or the audit does
            not repeat.
        MechanismError: The function did not return `size` runs, an output has no end, it raised in every run, or it
            raised although exceptions are not outputs; the audit of the runs before is its `finished`.
    """
    return _load(auditor)(
        mechanism,
        claim,
        neighbours=neighbours,
        trials=trials,
        confidence=confidence,
        seed=seed,
        stop=stop,
        workers=workers,
        executor=executor,
        directory=directory,
        progress=progress,
        exceptions=exceptions,
        one_at_a_time=one_at_a_time,
    )


def audit_float_noise(
    mechanism: MechanismFunction,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours,
    trials: int = 10_000,
    confidence: float = 0.99,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = silent,
    one_at_a_time: bool | None = None,
) -> MechanismAudit:
    """Test whether the grid of a function's floating-point outputs reveals its data, whatever its design.

    Any mechanism that adds NumPy's noise to a float fails, at any precision; one that publishes integers or rounds to a
    coarse grid does not. For outputs that are not numbers the floats in them are tested. A violation here says that the
    samplers must be replaced before anything is released, not that the design is wrong. It takes seconds, so it has
    neither stop nor directory. The arguments are those of `audit_mechanism`.

    Raises:
        ParameterError: An argument is out of its range.
        MechanismError: The function raised or did not return `size` runs.
    """
    return _load("float-noise")(
        mechanism,
        claim,
        neighbours=neighbours,
        trials=trials,
        confidence=confidence,
        seed=seed,
        workers=workers,
        progress=progress,
        one_at_a_time=one_at_a_time,
    )


def audit_one_run(
    agent: CanaryAgent,
    claim: MechanismClaim,
    *,
    canaries: int,
    runs: int = 1,
    confidence: float = 0.99,
    seed: int = 0,
    stop: bool = False,
    workers: int = 1,
    executor: Workers = None,
    directory: Path | None = None,
    progress: Progress = silent,
) -> MechanismAudit:
    """Test whether one run of a whole agent, or a few, refutes its claim: many canaries, each with its own random bit.

    For agents that take minutes to train. A canary is a user made up by the auditor; each takes part or not by a fair
    coin, and the auditor guesses the coins from the agent's public outputs (Steinke, Nasr & Jagielski 2023, Theorem
    5.2, for pure ε; Mahloujifar, Melis & Chaudhuri 2025 for other claims). The canaries with the largest scores are
    guessed to be in, those with the least to be out, at numbers of guesses that are fixed beforehand and share α. The
    data with and without a canary must be neighbours under the claim (one user added or removed). Of Gaussian noise,
    `GaussianDP` shows far more than (ε, δ).

    >>> def agent(included, rng):  # “trains” on a count cell a canary, and looks at the noisy counts
    ...     return included + rng.laplace(0, 0.25, included.size)
    >>> audit_one_run(agent, PureDP(1), canaries=1_000).verdict
    'violation'

    Args:
        agent: `agent(included, rng)` runs once, from scratch, with the canaries for which `included` (canaries,) is
            true, takes all its randomness from `rng` and returns a score of each canary, (canaries,): the larger, the
            likelier it took part, computed from the agent's public outputs alone.
        claim: `PureDP`, `ApproxDP`, `ZCDP` or `GaussianDP`, of one user.
        canaries: Number of users that the auditor includes by their coins; 1 000 certify about .85 of ε = 1.
        runs: Independent runs, each with fresh coins.
        confidence: 1 − α of everything that is tried.
        seed: Seed of the coins and of the runs.
        stop: Whether to test after every run and stop as soon as the claim is refuted, with a bound that holds at any
            time. Half of α is spent on these looks, the other half on the bound of all runs. With 1 run it only costs.
        workers: Threads; the result does not depend on it.
        executor: As in `audit_mechanism`.
        directory: As in `audit_mechanism`; a run is a block.
        progress: Called after each run.

    Raises:
        ParameterError: An argument is out of its range, the agent cannot be sent to the executor's workers, or the
            directory belongs to another audit.
        MechanismError: The agent raised or did not return a number for each canary; the audit of the runs before is its
            `finished`.
    """
    return _load("one-run")(
        agent,
        claim,
        canaries=canaries,
        runs=runs,
        confidence=confidence,
        seed=seed,
        stop=stop,
        workers=workers,
        executor=executor,
        directory=directory,
        progress=progress,
    )


def _load(name: str) -> Callable[..., MechanismAudit]:
    """Load an auditor: a function with the same arguments as the function here that calls it, all of them passed."""
    return cast("Callable[..., MechanismAudit]", load_entry("auditors", name))


AgentFunction = Callable[[Any, np.random.Generator], Any]  # (dataset, rng) → what other users see
DropOwnPart = Callable[[Any, int | None], Any]  # (output, position of the protected user) → what the others see
ChangeUser = Callable[[Any, int, np.random.Generator], Any]  # (dataset, position, rng) → a neighbour
UserRelation = Literal["replace-one", "add-remove", "zero-out"]


def audit_agent(
    agent: AgentFunction,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours | None = None,
    dataset: Any = None,
    candidates: Sequence[Any] | None = None,
    change: ChangeUser | None = None,
    relation: UserRelation | None = None,
    positions: Sequence[int] | None = None,
    joint: bool | DropOwnPart = False,
    exceptions: Exceptions = "output",
    trials: int = 500,
    screening: int = 40,
    finalists: int = 2,
    confidence: float = 0.99,
    seed: int = 0,
    stop: bool = True,
    workers: int = 1,
    executor: Workers = None,
    directory: Path | None = None,
    progress: Progress = silent,
) -> MechanismAudit:
    """Audit a whole agent: test whether its outputs to others refute its claim, and bound its loss from below.

    The neighbours are supplied, or searched for among changes of a base dataset: one user at a time, at several
    positions (the first three, the last, the middle, and around powers of two, where trees have their nodes), with
    extreme records. A few runs on every changed dataset rank the pairs; the best are audited with fresh runs, which
    share α. So the search uses runs, but no confidence.

    Under joint DP a user may learn everything about their own data: the agent's output to the protected user is
    dropped. Dropping too little leads to violations for agents that are private.

    >>> from privcheck.terms.guarantees import PureDP
    >>> def agent(rewards, rng):  # publishes the noisy sum after each user, with a noise of its own: no claim holds
    ...     return np.cumsum(rewards) + rng.laplace(0, 1, len(rewards))
    >>> found = audit_agent(agent, PureDP(1), dataset=np.zeros(8), candidates=[0.0, 1.0], relation="replace-one")
    >>> found.verdict
    'violation'

    Args:
        agent: `agent(dataset, rng)` runs once, from scratch, takes all its randomness from `rng`, and returns what
            others see: policies, actions, answers; any object.
        claim: `PureDP`, `ApproxDP`, `ZCDP` or `GaussianDP`.
        neighbours: Pairs of neighbouring datasets, all of which are audited; None to search for pairs.
        dataset: Start of the search: a sequence of users, or an array with a row per user. Anything else with `change`
            and `positions`.
        candidates: Possible records of a user. By default, of an array of numbers, its least and its largest values by
            column, and of other sequences up to four different records of its own.
        change: Makes a neighbour of the dataset, instead of `candidates` and `relation`.
        relation: The neighbouring relation of the claim, which a search without `change` needs: "replace-one" replaces
            a user's record by a candidate, or a candidate by another one; "add-remove" leaves a user out, who may have
            any candidate; "zero-out" puts zeros in place of a record, or None if it is not a number.
        positions: Positions of the users to try, from 0; by default up to twelve. With `neighbours` and `joint`: the
            user in whom each pair differs, if that cannot be derived from the datasets.
        joint: Whether the claim is of joint DP: the agent returns a part for each user (a sequence, an array with a row
            per user, or a mapping from positions), and the protected user's is dropped. For other outputs: a function
            of the output and the position of the protected user that returns the view of all others; the position is
            None on the dataset that the user is not in.
        exceptions: As in `audit_mechanism`.
        trials: N, runs under each neighbour of each audited pair; a maximum with `stop`.
        screening: Runs on each dataset of the search.
        finalists: Pairs of the search that are audited.
        confidence: 1 − α of everything that is tried.
        seed: Of the search, of the runs and of the learning.
        stop: As in `audit_mechanism`.
        workers: Threads; the result does not depend on it.
        executor: As in `audit_mechanism`.
        directory: As in `audit_mechanism`; the runs of the search are not kept.
        progress: Called after each block of runs.

    Returns:
        The audit. Its `neighbours` are the audited pairs, `neighbours[pair]` the witness; the first of its `notes`
            names that user and the number of pairs tried.

    Raises:
        ParameterError: An argument is out of its range or does not fit another, no neighbours can be made of the
            dataset, or the protected user's part cannot be identified.
        MechanismError: The agent cannot be judged, as in `audit_mechanism`.
    """
    auditor = cast("Callable[..., MechanismAudit]", load_entry("auditors", "agent"))
    return auditor(
        agent,
        claim,
        neighbours=neighbours,
        dataset=dataset,
        candidates=candidates,
        change=change,
        relation=relation,
        positions=positions,
        joint=joint,
        exceptions=exceptions,
        trials=trials,
        screening=screening,
        finalists=finalists,
        confidence=confidence,
        seed=seed,
        stop=stop,
        workers=workers,
        executor=executor,
        directory=directory,
        progress=progress,
    )
