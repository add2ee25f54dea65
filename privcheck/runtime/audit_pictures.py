"""Data of an audit's plots, as plain values: finite numbers and words, so that they can be written as JSON unchanged.

Audits fill them (`privcheck_audits.plan.pictures`), reports draw them. No verdict depends on any of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """How well a score distinguishes the neighbours at every threshold, beside the claim (f-DP).

    At a threshold the test says D′ if the score is at most the threshold. Whatever the test, a mechanism that meets its
    claim has no pair of error rates below the claim's curve.

    Attributes:
        runs: Runs on D and on D′.
        confidence: Confidence with which the true curve of the tests at these thresholds is between `at_least` and
            `at_most` everywhere at once.
        type_one: (T,) share of the runs on D for which the test says D′, ascending.
        type_two: (T,) share of the runs on D′ for which it says D, descending.
        grid: (G,) type-I errors at which the curves below give the type-II error, ascending from 0 to 1.
        at_least: (G,) lower bound on that curve. Other tests may be below.
        at_most: (G,) upper bound on it; so no claim with a higher curve at any point is true.
        claim: (G,) the least that the claim allows; None if it allows everything.
        claim_words: The claim in words.
        accountant: (G,) the least that the accountant's cost allows; None if that is everything.
    """

    runs: tuple[int, int]
    confidence: float
    type_one: tuple[float, ...]
    type_two: tuple[float, ...]
    grid: tuple[float, ...]
    at_least: tuple[float, ...]
    at_most: tuple[float, ...]
    claim: tuple[float, ...] | None
    claim_words: str
    accountant: tuple[float, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The lower bound against the number of trials: the audit's result had it ended earlier.

    Attributes:
        trials: (P,) N of each point, runs under each neighbour, ascending; the last is the audit's.
        epsilon_lower: (P,) the bound from that number of first runs, each valid by itself at the audit's confidence.
        anytime: Whether all points hold together (a bound that is valid at any time).
        reachable_trials: (R,) N at which the limit is given; empty if none is known.
        reachable: (R,) the bound that the best test could have certified with that N.
    """

    trials: tuple[int, ...]
    epsilon_lower: tuple[float, ...]
    anytime: bool = False
    reachable_trials: tuple[int, ...] = ()
    reachable: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPair:
    """The two neighbours side by side.

    Attributes:
        title: Meaning of the rows, in a sentence: "The user in whom D and D′ differ, step by step."
        row: The heading of the rows, "step" for example.
        columns: Columns for each neighbour: "state", "action", "reward".
        labels: (rows,) steps of a row, "3" or "3–20"; consecutive equal steps are written once.
        first: (rows, columns) the cells of D; None if the user is absent.
        second: (rows, columns) those of D′; None if the user is absent.
        note: Further remarks; empty if there are none.
    """

    title: str
    row: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    first: tuple[tuple[str, ...], ...] | None
    second: tuple[tuple[str, ...], ...] | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One measured ratio.

    Attributes:
        name: The release, and the norm.
        ratio: Measured over declared; None if the two cannot be compared, as `words` says.
        at_least: The least true ratio at the audit's confidence; None if the measurement is exact.
        at_most: The largest.
        violated: Whether the audit counts it as a violation.
        words: The figures behind it.
    """

    name: str
    ratio: float | None
    at_least: float | None = None
    at_most: float | None = None
    violated: bool = False
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A measured ratio per release, relative to the declared value, 1.

    Attributes:
        quantity: The axis: "distance moved / sensitivity charged".
        one_sided: Whether only ratios above 1 are wrong.
        bars: The ratios.
        caption: What is drawn, if it is neither releases nor their noise.
    """

    quantity: str
    one_sided: bool
    bars: tuple[Bar, ...]
    caption: str = ""
