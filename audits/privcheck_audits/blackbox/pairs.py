"""Audit of one pair of neighbours of a black box: draw runs, learn scores, and test.

Blocks run through `engine.blocks`, in this process or on workers, each with one kind of work (`RunsToLearn`,
`RunsToNarrow`, `RunsToSketch`, `RunsToTest`). The training runs are returned whole; the tested ones are counted where
they are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from privcheck.runtime.auditors import Workers
from privcheck_audits.blackbox.anytime import EProcess
from privcheck_audits.blackbox.confirmation import Confirmation, UnitsOfCalls, plan_confirmation
from privcheck_audits.blackbox.independence import (
    AGAIN,
    FIRST,
    CallPairs,
    Figure,
    call_size,
    is_confirmed,
    join,
    suspect,
)
from privcheck_audits.blackbox.inputs import Array, Bits, RunSource, UnfitError, together
from privcheck_audits.blackbox.scores import LearnedScores, Scores, grid_steps, learn
from privcheck_audits.blackbox.structure import OutputPlace, Sketch, make_schema
from privcheck_audits.blackbox.verdict import ClaimedLoss, Counts, Edges, edges
from privcheck_audits.blackbox.width import WIDEST, Spread, pick_columns, pilot_runs, sum_columns
from privcheck_audits.bounds import DivergencePlan, Moments
from privcheck_audits.engine.blocks import blocks
from privcheck_audits.engine.checkpoints import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockPlace:
    """Where blocks run and are stored.

    Attributes:
        workers: Number of threads.
        executor: Executor used in place of threads.
        checkpoint: Checkpoint of the whole audit.
    """

    workers: int
    executor: Workers
    checkpoint: Checkpoint | None

    def make_checkpoint(self, **more: str | int) -> Checkpoint | None:
        """Checkpoint that also records the other inputs of a block's result."""
        if self.checkpoint is None:
            return None
        plan = {**self.checkpoint.plan, "scikit-learn": version("scikit-learn"), **more}
        return replace(self.checkpoint, plan=plan, kinds=(Counts, Moments, Spread, Sketch, OutputPlace))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToLearn:
    """A block of training runs, returned whole.

    Attributes:
        source: Source of runs.
        before: Number of runs of the pair before the first block.
    """

    source: RunSource
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> tuple[Array, Bits]:
        """Rows of the runs, and whether each was on D."""
        return self.source.runs(rng, runs, self.before + first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToNarrow:
    """A block of runs with wide outputs, summarised by sums."""

    source: RunSource
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Spread:
        """Sums over the block."""
        return sum_columns(*self.source.runs(rng, runs, self.before + first), first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToSketch:
    """A block of runs for making a schema."""

    source: RunSource
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Sketch:
        """Sketch of the block's outputs."""
        return self.source.sketch(rng, runs, self.before + first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToTest:
    """A block of tested runs."""

    source: RunSource
    scores: Scores
    edges: Edges
    divergences: tuple[DivergencePlan, ...]
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Counts:
        """Counts of the block's scores."""
        rows, secret = self.source.runs(rng, runs, self.before + first)
        return self.edges.count(self.scores(rows), secret, self.divergences)


LEAST: Final = 100  # trials
APART: Final = 2_000  # trials, up to which every run has a call of its own anyway
LEARNED: Final = 0.3  # the share of the runs that scores are learned on
_PILOT: Final = 0.05  # of the runs, at most, that columns of wide outputs are picked on
_MOST_LEARNED: Final = 60_000  # of a pair
_LEARNED_OF_ONE: Final = 30_000  # of a pair that returns single numbers, of which more runs teach little
_LEAST_LEARNED: Final = 0.03  # of the runs, of any pair
BLOCK: Final = 8_192  # runs
_BLOCK_NUMBERS: Final = 1_000_000
_PRECISE: Final = 10_000  # runs that are learned on again, on a finer grid
_FIRST: Final = 64  # runs of the first block, where the audit may stop after any
_SKETCHED: Final = 2_000  # runs that a schema is made from, at most
_SKETCHED_NUMBERS: Final = 200_000_000  # of their outputs
_SKETCH: Final = 0.1  # of the runs, at most, for that
_STREAM: Final = 0xB1AC  # keeps these blocks apart from other audits of the same seed
_AGAIN: Final = 1 << 20  # added to the stream each time that learning begins again
_WAYS: Final = 1 << 24  # between the streams of runs, of calls that are compared or confirm, and of what is done again
_CALLS: Final = 16  # pairs of calls a block
_UNITS: Final = 64  # units of the first block that confirms
_CHECKED: Final = 512  # units that are made in any case, and at most a sixteenth of the trials


@dataclass(slots=True, kw_only=True, eq=False)
class AuditedPair:
    """A pair of neighbours and the state of its audit.

    Attributes:
        source: Source of runs.
        target: The claim.
        trials: N.
        held: Number of output values that may be held in memory for learning.
        kept: Number of output values that may be held in memory until the verdict.
        how: Workers, executor and checkpoint of the blocks.
        e_process: The bets, if the audit may stop early.
        block: Largest number of runs per block.
        learned: Number of runs to learn scores on, including those for picking columns; set once learning has begun.
        runs: Number of runs so far.
        begun: Number of times that learning was restarted because the kind of outputs changed.
        scores: The learned scores.
        edges: Edges of the scores' bins.
        training: Counts of the training runs.
        tested: Counts of the tested runs, once there are scores.
        coarse: For outputs of low precision: some of the training runs.
        again: Whether this is the second round, with one run per call.
        compared: Number of runs of the calls that were compared with each other.
        dependence: Description of the dependence between runs of one call; empty if none was found.
        confirmation: Confirmation of a violation shown by long calls.
    """

    source: RunSource
    target: ClaimedLoss
    trials: int
    held: int
    kept: int
    how: BlockPlace
    e_process: EProcess | None
    block: int = BLOCK
    learned: int = 0
    runs: int = 0
    begun: int = 0
    scores: Scores | None = None
    edges: Edges | None = None
    training: Counts | None = None
    tested: Counts | None = None
    coarse: tuple[Array, Bits] | None = None
    again: bool = False
    compared: int = 0
    dependence: str = ""
    confirmation: Confirmation | None = None

    def _compare_calls(self) -> Iterator[None]:
        """Test whether runs of one call are independent; if not, every run gets a separate call."""
        if self.again or self.trials <= APART or self.source.caller.single:
            self.source = replace(self.source, apart=True)
        if self.source.apart or self.dependence:
            return
        figure: Figure | None = None
        for test, pairs in enumerate((FIRST, AGAIN), start=1):
            work = CallPairs(source=self.source, size=call_size(self.trials, self.source.width))
            parts = []
            for part in self._blocks(work, pairs, part=3, way=test, most=_CALLS):
                parts.append(part)
                yield
            calls, rng = join(parts), np.random.default_rng((self.source.seed, self.source.number, test))
            self.compared += calls[0].shape[0] * 2 * (work.size + 1)
            if figure is None:
                figure = suspect(*calls, rng)
                if figure is None:
                    return
            elif is_confirmed(figure, *calls, rng):
                self.dependence = str(figure)
                self.source = replace(self.source, apart=True)

    def confirm(self, *, alpha: float) -> Generator[None, None, None]:
        """Confirm by fresh calls a violation shown by long calls; yields after each block."""
        assert self.scores is not None
        assert self.edges is not None
        assert self.training is not None
        counts = self.training
        if self.e_process is not None and self.e_process.stages:
            counts += self.e_process.stages[-1].counts
        elif self.tested is not None:
            counts += self.tested
        least = 0 if self.e_process is not None else min(_CHECKED, self.trials // 16)
        plan = plan_confirmation(counts, self.target, alpha=alpha, runs=2 * self.trials, least=least)
        self.confirmation = plan
        if plan is None:
            return
        work = UnitsOfCalls(
            source=self.source,
            scores=self.scores,
            edges=self.edges,
            payoffs=plan.payoffs,
            size=plan.size,
            before=2 * self.trials,
        )
        units = max(1, BLOCK // (2 * plan.size))
        parts = self._blocks(work, plan.most, part=3, way=3, most=units, grow=_UNITS, payoffs=plan.digest)
        yield from plan.follow(parts)

    def learn(self) -> Generator[None, None, None]:
        """Draw the training runs and learn the scores; yields after each block.

        If outputs differ in kind from the first ones, learning starts again on fresh runs; that decision does not
        depend on tested runs or bets.
        """
        while True:
            try:
                yield from self._sketch()
                yield from self._compare_calls()
                yield from self._narrow()
                yield from self._train()
            except UnfitError as error:
                self._begin_again(error)
            else:
                self.source = replace(self.source, learning=False)
                return

    def _begin_again(self, error: UnfitError) -> None:
        source = replace(self.source, narrow=None)
        if error.reason == "raised":
            source = replace(source, caller=replace(source.caller, single=True))
        self.source = (
            replace(source, odd=True) if error.reason == "odd" else replace(source, law=None, odd=False, schema=None)
        )
        self.scores = None  # of other rows; what was bet on them stands
        self.begun += 1

    def _sketch(self) -> Iterator[None]:
        """Make the schema of outputs that are not numbers of one shape, from separate runs."""
        if self.source.law is not None:
            return
        most = max(_FIRST, _SKETCHED_NUMBERS // self.source.numbers)
        runs = max(2, min(_SKETCHED, most, round(_SKETCH * 2 * self.trials)))
        before, found = self.runs, None
        for part in self._blocks(
            RunsToSketch(source=self.source, before=before), runs, part=3, width=self.source.numbers
        ):
            self.runs += sum(part.runs)
            found = part if found is None else found + part
            yield
        assert found is not None
        self.source = replace(self.source, schema=make_schema(found))

    def _train(self) -> Generator[None, None, None]:
        most = max(2 * LEAST, self.held // self.source.width)
        left = 2 * self.trials - self.runs
        enough = _MOST_LEARNED
        if self.source.width == 1:
            enough = min(enough, max(_LEARNED_OF_ONE, round(_LEAST_LEARNED * 2 * self.trials)))
        runs = min(max(round(LEARNED * 2 * self.trials) - self.runs, left // 4), enough, most)
        pilot = self.runs
        self.learned = pilot + runs
        known: list[tuple[Array, Bits]] = []
        taught = 0
        for rows, secret in self._blocks(
            RunsToLearn(source=self.source, before=pilot),
            runs,
            part=0,
            grow=_FIRST if self.e_process is not None else 0,
        ):
            self.runs += secret.size
            if self.e_process is not None and self.scores is not None:
                self._bet(rows, secret)
            known.append((rows, secret))
            drawn = self.runs - pilot
            if self.e_process is not None and max(2 * _FIRST, 2 * taught) <= drawn <= runs // 2:
                taught = drawn
                self._learn(known, runs=drawn)
            yield
        self._learn(known, runs=2 * self.trials - self.learned)
        self._keep_coarse(*known[0])
        assert self.training is not None
        self.tested = self.training.none()

    def test(self) -> Generator[None, None, None]:
        """Draw and count the remaining runs; yields after each block."""
        assert self.scores is not None
        assert self.edges is not None
        assert self.tested is not None
        work = RunsToTest(
            source=self.source,
            scores=self.scores,
            edges=self.edges,
            divergences=self.target.divergences,
            before=self.learned,
        )
        digest = hashlib.sha256(b"".join(cut.tobytes() for cut in self.edges.cuts)).hexdigest()
        grow = 0 if self.e_process is None else max(_FIRST, self.learned // 8)
        for counts in self._blocks(work, 2 * self.trials - self.learned, part=1, grow=grow, edges=digest):
            self.runs += counts.runs
            self.tested += counts
            if self.e_process is not None:
                self.e_process.add(counts)
            yield

    def _narrow(self) -> Iterator[None]:
        """Pick columns of outputs that are too wide, from separate runs."""
        if self.source.width <= WIDEST:
            return
        runs = max(2, min(pilot_runs(self.source.width), round(_PILOT * 2 * self.trials)))
        before, spread = self.runs, None
        for part in self._blocks(RunsToNarrow(source=self.source, before=before), runs, part=2):
            self.runs += int(part.runs.sum())
            spread = part if spread is None else spread + part
            yield
        assert spread is not None
        self.source = replace(self.source, narrow=pick_columns(spread))

    def _learn(self, known: list[tuple[Array, Bits]], *, runs: int) -> None:
        rows, secret = together(known)
        known[:] = [(rows, secret)]
        sequence = np.random.SeedSequence(self.source.seed, spawn_key=(_STREAM, self.source.number, secret.size))
        learned: LearnedScores = learn(rows, secret, np.random.default_rng(sequence))
        self.scores = learned.scores
        self.edges = edges(learned.held_out)
        self.training = self.edges.count(learned.held_out, learned.secret, self.target.divergences)
        if self.e_process is not None:
            self.e_process.begin(self.edges.cuts, self.training, runs=runs)

    def _keep_coarse(self, rows: Array, secret: Bits) -> None:
        """Keep a few training runs if a finer grid would tell more of them."""
        assert self.scores is not None
        if (self.scores.steps != grid_steps(rows, secret, fine=True)).any():
            few = slice(0, min(_PRECISE, max(2 * LEAST, self.kept // rows.shape[1])))
            self.coarse = rows[few].copy(), secret[few].copy()

    def learn_precisely(self) -> tuple[Edges, Counts] | None:
        """Edges and counts of training runs on the finer grid, for a note; None if there is none.

        The verdict never depends on them, and a refuted claim needs no such note.
        """
        if self.coarse is None:
            return None
        learned = learn(*self.coarse, np.random.default_rng(self.source.seed), fine=True)
        cut = edges(learned.held_out)
        return cut, cut.count(learned.held_out, learned.secret, self.target.divergences)

    def _bet(self, rows: Array, secret: Bits) -> None:
        assert self.e_process is not None
        assert self.scores is not None
        assert self.edges is not None
        self.e_process.add(self.edges.count(self.scores(rows), secret, self.target.divergences))

    def _blocks(
        self,
        work: Any,
        runs: int,
        *,
        part: int,
        grow: int = 0,
        width: int | None = None,
        way: int = 0,
        most: int = BLOCK,
        **plan: str | int,
    ) -> Generator[Any]:
        size = max(1, min(most, self.block, _BLOCK_NUMBERS // (width or self.source.width)))
        return blocks(
            work,
            runs,
            seed=self.source.seed,
            stream=_STREAM + 4 * self.source.number + part + _AGAIN * self.begun + _WAYS * (way + 4 * self.again),
            block=size,
            grow=min(grow, size),
            workers=self.how.workers,
            executor=self.how.executor,
            checkpoint=self.how.make_checkpoint(pair=self.source.number, **plan),
        )
