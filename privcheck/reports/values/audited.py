"""What audits found. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from privcheck.pictures import Bars, History, ShownPair, TradeOff
from privcheck.reports.values.result import Result

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.picture import Picture


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audited(Result):
    """One audit; see `privcheck.results.AuditResult`.

    Attributes:
        algorithm: Whose releases or agent.
        view: Which audit.
        trials: N, runs under each neighbour.
        confidence: 1 − α of the whole audit.
        delta: At which the three ε are.
        epsilon_lower: The loss is at least this; None where the view bounds no ε.
        epsilon_upper: The accountant's bound; None where there is none.
        epsilon_claimed: What the claim allows; None where it allows everything.
        verdict: At the parameters asked for.
        reachable: What the best test could have certified with as many runs.
        method: The test.
        witness: The neighbours, in words.
        evidence: Figures behind the verdict, by name.
        seconds: Wall time.
        trials_per_second: Runs a second, 2N in all.
        claim: What was claimed.
        seed: Of the trials.
        agent_ran: Whether the registered agent itself was run; otherwise what was audited are its releases as declared.
            None where an older report does not say.
        asks: What the view asks, in a sentence.
        leaves_open: What a result without a violation does not say.
        audited_at: The parameters that were audited, where they are not those asked for.
        trade_off: Picture; no verdict rests on this nor on the following.
        history: Picture.
        pair: Picture.
        bars: Picture.
    """

    algorithm: str = ""
    view: str
    trials: int
    confidence: float
    delta: float
    epsilon_lower: float | None
    epsilon_upper: float | None
    epsilon_claimed: float | None
    verdict: Literal["violation", "consistent", "undecided"]
    reachable: float | None
    method: str
    witness: str
    evidence: Mapping[str, Any]
    seconds: float
    trials_per_second: float
    claim: str = ""
    seed: int = 0
    agent_ran: bool | None = None
    asks: str = ""
    leaves_open: str = ""
    audited_at: str | None = None
    trade_off: TradeOff | None = None
    history: History | None = None
    pair: ShownPair | None = None
    bars: Bars | None = None

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a view.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.frames import make_frame

        views = self.views.values() if isinstance(self, Audits) else (self,)
        names = ("algorithm", "view", "verdict", "epsilon_lower", "epsilon_upper", "epsilon_claimed", "delta",
                 "trials", "confidence")  # fmt: skip
        return make_frame([{name: getattr(view, name) for name in names} for view in views])

    def plot(self) -> Picture:
        """Returns trade-off curve, bound against the number of trials, a ratio a release.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.picture import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audits(Audited):
    """The audits of a report: the first view's own fields, and every view by name."""

    views: Mapping[str, Audited] = field(default_factory=dict)


def together(views: Mapping[str, Audited]) -> Audits | None:
    """Returns audits of several views as one section of a report; None where there are none."""
    first = next(iter(views.values()), None)
    if first is None:
        return None
    return Audits(**{one.name: getattr(first, one.name) for one in fields(Audited)}, views=views)
