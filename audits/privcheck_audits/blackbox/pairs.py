"""One pair of neighbours of a black box on its way: runs are drawn, scores learned, and then tested.

Blocks run through `engine.blocks`, wherever they are told to. The runs that scores are learned on are handed back as
they are; the tested ones are counted where they were drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from privcheck.auditors import Workers
from privcheck_audits.blackbox.anytime import EProcess
from privcheck_audits.blackbox.counts import Counts, Edges, edges
from privcheck_audits.blackbox.inputs import Array, Bits, RunSource, together
from privcheck_audits.blackbox.narrowing import PILOT, WIDEST, Spread, pick_columns, sum_columns
from privcheck_audits.blackbox.scores import LearnedScores, Scores, learn
from privcheck_audits.blackbox.verdict import ClaimedLoss
from privcheck_audits.bounds import DivergencePlan, Moments
from privcheck_audits.engine.blocks import blocks
from privcheck_audits.engine.checkpoints import Checkpoint

LEAST: Final = 100  # trials
LEARNED: Final = 0.3  # the share of the runs that scores are learned on
_PILOT: Final = 0.05  # of the runs, at most, that columns of wide outputs are picked on
_MOST_LEARNED: Final = 60_000  # of a pair
_BLOCK: Final = 8_192  # runs
_BLOCK_NUMBERS: Final = 1_000_000
_FIRST: Final = 64  # runs of the first block, where the audit may stop after any
_STREAM: Final = 0xB1AC  # keeps these blocks apart from other audits of the same seed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockPlace:
    """Where blocks run and are kept.

    Attributes:
        workers: Threads.
        executor: Instead of them.
        checkpoint: Of the whole audit.
    """

    workers: int
    executor: Workers
    checkpoint: Checkpoint | None

    def make_checkpoint(self, **more: str | int) -> Checkpoint | None:
        """Returns the checkpoint with what else decides a block's result."""
        if self.checkpoint is None:
            return None
        plan = {**self.checkpoint.plan, "scikit-learn": version("scikit-learn"), **more}
        return replace(self.checkpoint, plan=plan, kinds=(Counts, Moments, Spread))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Produced:
    """A block of runs to learn from."""

    source: RunSource
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> tuple[Array, Bits]:
        return self.source.runs(rng, runs, self.before + first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Spread:
    """A block of runs on wide outputs, of which sums are kept."""

    source: RunSource

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Spread:
        return sum_columns(*self.source.runs(rng, runs, first))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counted:
    """A block of runs that is tested."""

    source: RunSource
    scores: Scores
    edges: Edges
    divergences: tuple[DivergencePlan, ...]
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Counts:
        rows, secret = self.source.runs(rng, runs, self.before + first)
        return self.edges.count(self.scores(rows), secret, self.divergences)


@dataclass(slots=True, kw_only=True, eq=False)
class AuditedPair:
    """A pair of neighbours and what is known of it so far.

    Attributes:
        source: Makes runs.
        target: The claim.
        trials: N.
        held: Numbers of outputs that may be held in memory for learning.
        how: Where blocks run.
        e_process: Where the audit may stop early: the bets.
        learned: Runs that scores were learned on, picked columns included; all that will be, once that has begun.
        runs: All runs so far.
        scores: What was learned, once it was.
        edges: Where scores are cut.
        training: Counts of the training runs.
        tested: Counts of the tested runs, once there are scores.
    """

    source: RunSource
    target: ClaimedLoss
    trials: int
    held: int
    how: BlockPlace
    e_process: EProcess | None
    learned: int = 0
    runs: int = 0
    scores: Scores | None = None
    edges: Edges | None = None
    training: Counts | None = None
    tested: Counts | None = None

    def learn(self) -> Generator[None, None, None]:
        """Draws the runs that scores are learned on, and learns; yields after each block."""
        yield from self._narrow()
        most = max(2 * LEAST, self.held // self.source.width)
        runs = min(round(LEARNED * 2 * self.trials) - self.runs, _MOST_LEARNED, most)
        pilot = self.runs
        self.learned = pilot + runs
        known: list[tuple[Array, Bits]] = []
        taught = 0
        for rows, secret in self._blocks(
            _Produced(source=self.source, before=pilot), runs, part=0, grow=_FIRST if self.e_process is not None else 0
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
        assert self.training is not None
        self.tested = self.training.none()

    def test(self) -> Generator[None, None, None]:
        """Draws the other runs and counts them; yields after each block."""
        assert self.scores is not None
        assert self.edges is not None
        assert self.tested is not None
        work = _Counted(
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
        """Picks columns of outputs that are too wide, from runs of their own."""
        if self.source.width <= WIDEST:
            return
        runs = max(2, min(PILOT, round(_PILOT * 2 * self.trials)))
        self.learned = runs
        spread: Spread | None = None
        for part in self._blocks(_Spread(source=self.source), runs, part=2):
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
        self.training = self.edges.count(learned.held_out, secret, self.target.divergences)
        if self.e_process is not None:
            self.e_process.begin(self.edges.cuts, self.training, runs=runs)

    def _bet(self, rows: Array, secret: Bits) -> None:
        assert self.e_process is not None
        assert self.scores is not None
        assert self.edges is not None
        self.e_process.add(self.edges.count(self.scores(rows), secret, self.target.divergences))

    def _blocks(self, work: Any, runs: int, *, part: int, grow: int = 0, **plan: str | int) -> Generator[Any]:
        size = max(1, min(_BLOCK, _BLOCK_NUMBERS // self.source.width))
        return blocks(
            work,
            runs,
            seed=self.source.seed,
            stream=_STREAM + 4 * self.source.number + part,
            block=size,
            grow=min(grow, size),
            workers=self.how.workers,
            executor=self.how.executor,
            checkpoint=self.how.make_checkpoint(pair=self.source.number, **plan),
        )
