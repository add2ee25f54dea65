"""What the pictures of an audit show, as plain values: finite numbers and words, so that they go into JSON as they are.

Audits fill them (`privcheck_audits.plan.pictures`), reports draw them. No verdict rests on any of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """How well a score tells the neighbours apart at every threshold, beside what was claimed (f-DP).

    At a threshold the test says D′ where the score is at most that. Whatever the test, a mechanism that keeps its claim
    has no pair of error rates below the claim's curve.

    Attributes:
        runs: Runs on D and on D′.
        confidence: At which the true curve of the tests at these thresholds lies between `at_least` and `at_most`
            everywhere at once.
        type_one: (T,) share of the runs on D of which the test says D′, ascending.
        type_two: (T,) share of the runs on D′ of which it says D, descending.
        grid: (G,) type-I errors at which the curves below give the type-II error, ascending from 0 to 1.
        at_least: (G,) what that curve is at least. Other tests may lie below.
        at_most: (G,) what it is at most; so no claim whose curve is higher anywhere is true.
        claim: (G,) the least that the claim allows; None where it allows everything.
        claim_words: What was claimed.
        accountant: (G,) the least that what the accountant charges allows; None where that is everything.
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
    """The lower bound against the number of trials: what the audit would have said, had it ended earlier.

    Attributes:
        trials: (P,) N of each point, runs under each neighbour, ascending; the last is the audit's.
        epsilon_lower: (P,) the bound from the first so many runs, each valid by itself at the audit's confidence.
        anytime: Whether all points hold together (a bound that is valid at any time).
        reachable_trials: (R,) N at which the limit is given; empty where none is known.
        reachable: (R,) what the best test could have certified with so many.
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
        title: What the rows are, in a sentence: "The user in whom D and D′ differ, step by step."
        row: The heading of the rows, "step" for example.
        columns: What is shown of each neighbour: "state", "action", "reward".
        labels: (rows,) which steps a row stands for, "3" or "3–20"; equal ones in a row are written once.
        first: (rows, columns) the cells of D; None where there is no such user.
        second: (rows, columns) those of D′; None where there is no such user.
        note: What else must be known; empty where nothing.
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
        name: Of what: a release, and in which norm.
        ratio: Measured over declared; None where the two cannot be compared, as `words` says.
        at_least: The least true ratio at the audit's confidence; None where the measurement is exact.
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
    """A measured ratio a release, where 1 is what was declared.

    Attributes:
        quantity: The axis: "distance moved / sensitivity charged".
        one_sided: Whether only ratios above 1 are wrong.
        bars: The ratios.
        caption: What is drawn, where it is neither releases nor their noise.
    """

    quantity: str
    one_sided: bool
    bars: tuple[Bar, ...]
    caption: str = ""
