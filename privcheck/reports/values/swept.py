"""Runs over a grid of parameters. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from privcheck.brief import Brief
from privcheck.reports.values.compared import MadeBy, Standing
from privcheck.reports.values.learned import Gap, LearnedValue, LedgerSummary, Regret, SpentCost
from privcheck.reports.values.result import Result

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.picture import Picture


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SweepPoint(Brief):
    """A point of the grid: one algorithm at one setting.

    Attributes:
        algorithm: Its name.
        over: The swept parameters that it knows, or its environment does, with their values.
        refused: Why it was not run; empty where it was.
        environment: Where it acted or learned from.
        replicates: Independent repetitions.
        episodes: Users of each.
        parameters: The declaration's, as exact texts.
        options: The agent's.
        choices: The readings.
        standing: How it came off; None where it was refused.
        regret: Of an agent that learns as it acts.
        value: Of a policy learned from data.
        gap: Likewise.
        spent: What the ledger says it cost; None without privacy.
        ledger: What stands in the first replicate's ledger.
        seconds: Of learning; None in a sweep's file, which says nothing of the time.
        episodes_per_second: Likewise.
    """

    algorithm: str
    over: Mapping[str, str]
    refused: str = ""
    environment: str
    replicates: int
    episodes: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    standing: Standing | None = None
    regret: Regret | None = None
    value: LearnedValue | None = None
    gap: Gap | None = None
    spent: SpentCost | None = None
    ledger: LedgerSummary | None = None
    seconds: float | None = None
    episodes_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Result):
    """Several algorithms over a grid of parameters.

    Attributes:
        environment: Where they acted or learned from.
        algorithms: Their names.
        over: The grid: values by parameter, as they were given.
        budgets: Those of the swept parameters that are part of a guarantee.
        own_data: Whether users' own data were learned from, all points from the same users'.
        replicates: Independent repetitions of every point.
        delta: At which δ every ε is.
        headline: Who learned from which guarantee on, and why the others did not.
        points: In the order of the algorithms, then of the grid.
        made_by: By what it was made.
    """

    environment: str
    algorithms: tuple[str, ...]
    over: Mapping[str, tuple[str, ...]]
    budgets: tuple[str, ...] = ()
    own_data: bool = False
    replicates: int
    delta: float
    headline: str
    points: tuple[SweepPoint, ...]
    made_by: MadeBy

    def without_clocks(self) -> Sweep:
        """Returns the same without what depends on the machine: the same sweep gives the same file."""
        return replace(self, points=tuple(replace(one, seconds=None, episodes_per_second=None) for one in self.points))

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a point.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.frames import make_frame

        return make_frame([
            {
                "algorithm": one.algorithm,
                **{name: one.over.get(name) for name in self.over},
                "epsilon": None if here is None or here.guarantee is None else here.guarantee.epsilon,
                "verdict": None if here is None or here.guarantee is None else here.guarantee.verdict,
                "value": None if here is None else here.value,
                "std": None if here is None else here.std,
                "share": None if here is None else here.share,
                "learned": None if here is None else here.did_not_learn is None,
                "refused": one.refused,
            }
            for one in self.points
            for here in (one.standing,)
        ])  # fmt: skip

    def plot(self) -> Picture:
        """Returns the frontier: value against ε, a plot for every setting of what is no part of a guarantee.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.picture import draw_result

        return draw_result(self)
