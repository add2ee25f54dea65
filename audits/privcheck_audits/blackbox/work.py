"""What a block of a black box's runs is drawn for, and where: each kind of work hands back what is kept of its runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np

from privcheck.auditors import Workers
from privcheck_audits.blackbox.counts import Counts, Edges
from privcheck_audits.blackbox.inputs import Array, Bits, RunSource
from privcheck_audits.blackbox.narrowing import Spread, sum_columns
from privcheck_audits.blackbox.scores import Scores
from privcheck_audits.blackbox.sketch import Place, Sketch
from privcheck_audits.bounds import DivergencePlan, Moments
from privcheck_audits.engine.checkpoints import Checkpoint


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
        return replace(self.checkpoint, plan=plan, kinds=(Counts, Moments, Spread, Sketch, Place))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToLearn:
    """A block of runs to learn from: handed back as they are.

    Attributes:
        source: Makes runs.
        before: Runs of the pair before the first block.
    """

    source: RunSource
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> tuple[Array, Bits]:
        """Returns the runs' rows and which neighbour each is of."""
        return self.source.runs(rng, runs, self.before + first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToNarrow:
    """A block of runs on wide outputs, of which sums are kept."""

    source: RunSource
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Spread:
        """Returns the sums over the block."""
        return sum_columns(*self.source.runs(rng, runs, self.before + first), first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToSketch:
    """A block of runs that a schema is made from."""

    source: RunSource
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Sketch:
        """Returns what the block's outputs look like."""
        return self.source.sketch(rng, runs, self.before + first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsToTest:
    """A block of runs that is tested."""

    source: RunSource
    scores: Scores
    edges: Edges
    divergences: tuple[DivergencePlan, ...]
    before: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Counts:
        """Returns the counts of the block's scores."""
        rows, secret = self.source.runs(rng, runs, self.before + first)
        return self.edges.count(self.scores(rows), secret, self.divergences)
