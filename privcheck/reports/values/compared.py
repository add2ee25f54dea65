"""Several algorithms side by side, each with what it reached and its guarantee in one unit: ε at one δ.

The fields are those of the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from privcheck.reports.values.learned import RanOnline
from privcheck.reports.values.result import Result
from privcheck.reports.values.unlearned import NotLearned

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.picture import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedClaim:
    """A guarantee in a comparison's unit, and whether the algorithm's own claim holds.

    Attributes:
        view: Of whom the guarantee is: "joint" (the other users' view, where the billboard lemma applies), "releases"
            (what is released, where joint DP is claimed and does not follow), "local", "shuffle" or "central".
        relation: Which datasets are neighbours.
        claim: In its own unit, with its parameters' values.
        claimed: The ε that the claim implies at the common δ; None where it implies none, or has an unstated constant.
        epsilon: The accountant's ε of the declared releases at the common δ, rounded up; None where none is finite.
        verdict: On the claim, in its own unit.
        method: How the verdict was reached.
        given: Whose sensitivity or price their author states.
        joint: What follows for joint DP; None where nothing of the kind is claimed.
        sentence: The verdict in words.
    """

    view: Literal["joint", "releases", "local", "shuffle", "central"]
    relation: str
    claim: str
    claimed: float | None
    epsilon: float | None
    verdict: Literal["holds", "fails", "undecided"]
    method: Literal["proved", "checked", "witness"]
    given: tuple[str, ...] = ()
    joint: Literal["follows", "unproved", "refuted"] | None = None
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an algorithm came off.

    Attributes:
        algorithm: Its name.
        guarantee: What it guarantees and claims; None for one that is not private.
        simulated: Whether its noise was simulated, which protects nobody.
        value: The true expected return of the policy that it had learned in the end, mean over replicates; None where
            nobody knows it.
        std: Of the same over replicates; None for a single one.
        replicates: Their number.
        optimum: The best policy's expected return; None where nobody knows it.
        uniform: Of the policy that takes every action equally often; likewise.
        share: Value over optimum; None where one of them is not known or the optimum is not above 0.
        lost: The regret of all episodes, or the gap of a policy learned from data, as a share of the uniform policy's.
        twin: The name of the same algorithm without privacy; None where there is none.
        twin_value: What that reaches with the same users and constants; None where it was not run.
        did_not_learn: Why nothing was learned; None where something was, or where nobody knows.
    """

    algorithm: str
    guarantee: PricedClaim | None
    simulated: bool
    value: float | None
    std: float | None
    replicates: int
    optimum: float | None
    uniform: float | None
    share: float | None
    lost: float | None
    twin: str | None = None
    twin_value: float | None = None
    did_not_learn: NotLearned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBy:
    """By what a comparison was made: command line, seeds by what they seeded, versions. It says nothing of the time."""

    command: str
    seeds: Mapping[str, int]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Compared(Result):
    """Several online agents in one environment.

    Attributes:
        environment: Where they acted.
        algorithms: Their names.
        results: Each one's run.
        delta: At which δ every ε of `standings` is; None in older documents.
        headline: Who learned at which guarantee, and why the others did not.
        standings: Each one's, in the order of the runs.
        made_by: By what it was made.
    """

    environment: str
    algorithms: tuple[str, ...]
    results: tuple[RanOnline, ...]
    delta: float | None = None
    headline: str = ""
    standings: tuple[Standing, ...] = ()
    made_by: MadeBy | None = None

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row an agent and number of episodes.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.frames import make_frame

        return make_frame([row for one in self.results for row in one.curves.rows(algorithm=one.algorithm)])

    def plot(self) -> Picture:
        """Returns value against ε, then regret, value and switches over episodes.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.picture import draw_result

        return draw_result(self)
