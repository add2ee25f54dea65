"""Results of `privcheck reproduce`: figures of papers run again, beside what the papers say. Fields are the JSON's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privcheck.reports.values.result import Result
from privcheck.reports.values.runs import MadeBy
from privcheck.runtime.figures import Measure, Outcome
from privcheck.support.display import Brief

if TYPE_CHECKING:
    from privcheck.reports.pictures import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedObservation:
    """What a text says about its figure, and whether it came out.

    Attributes:
        quotation: The text's words.
        reading: The words as a predicate with its tolerance.
        outcome: Whether it came out; "underspecified" where the text leaves open what decides.
        reason: What came out, with the figures.
        undecided: What the text leaves open that decides; empty if nothing does.
    """

    quotation: str
    reading: str
    outcome: Outcome
    reason: str
    undecided: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedNumber:
    """A printed number beside what came out.

    Attributes:
        what: What it counts.
        of: The line.
        paper: The printed number.
        here: Mean over runs.
        std: Standard deviation over runs; None for a single run.
        tolerance: Largest relative difference that counts as the same; None if it is not judged.
        same: Whether the two are within the tolerance; None if it is not judged.
        note: How the two differ in what they count.
    """

    what: str
    of: str
    paper: float
    here: float
    std: float | None
    tolerance: float | None
    same: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a figure.

    Attributes:
        label: Its name.
        algorithm: The registered algorithm.
        judged: Whether the paper's figure has it; False for one that is shown beside.
        parameters: What was set for it.
        x: Positions on the axis.
        mean: Means over runs.
        std: Standard deviations over runs; None for a single run.
    """

    label: str
    algorithm: str
    judged: bool
    parameters: Mapping[str, str]
    x: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reproduction(Brief):
    """A figure of a paper, run again.

    Attributes:
        paper: Name of the paper.
        figure: Name of the figure.
        title: As the paper calls it, with what it shows.
        where: Section and version.
        setting: What the text says about the setting.
        quick: Whether it is the shrunken version, whose outcome is no verdict on the printed sizes.
        outcome: "not reproduced" if any observation or number is not; else "underspecified" if any is; else
            "reproduced".
        reason: Why, in a sentence or two.
        command: The command that makes it again.
        environment: Name of the environment.
        sizes: Parameters of the environment and of all agents.
        runs: Independent runs of each line.
        measure: The y axis.
        axis: The x axis.
        taken: What the text leaves open, with what was taken.
        observations: What the text says about the figure, judged.
        numbers: Printed numbers beside those that came out.
        lines: The lines.
        uniform: The measure of uniformly random play at the last position; None for switches.
        made_by: Provenance.
    """

    paper: str
    figure: str
    title: str
    where: str
    setting: str
    quick: bool
    outcome: Outcome
    reason: str
    command: str
    environment: str
    sizes: Mapping[str, str]
    runs: int
    measure: Measure
    axis: str
    taken: tuple[str, ...]
    observations: tuple[JudgedObservation, ...]
    numbers: tuple[ComparedNumber, ...]
    lines: tuple[Line, ...]
    uniform: float | None
    made_by: MadeBy


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reproduced(Result):
    """Figures of papers, run again.

    Attributes:
        results: The figures.
    """

    results: tuple[Reproduction, ...]

    def plot(self) -> Picture:
        """The figures as pictures.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFigure:
    """A figure that can be run again, with the recorded conclusion.

    Attributes:
        paper: Name of the paper.
        figure: Name of the figure.
        title: As the paper calls it, with what it shows.
        outcome: The recorded outcome; None if nothing is recorded.
        quick: Whether the record is of the shrunken version.
        reason: Why.
    """

    paper: str
    figure: str
    title: str
    outcome: Outcome | None = None
    quick: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListedFigures(Result):
    """The figures of the papers, with recorded conclusions.

    Attributes:
        figures: The figures.
        others: What else each paper numbers as a figure or table, and why there is nothing to run.
    """

    figures: tuple[ListedFigure, ...]
    others: Mapping[str, str]
