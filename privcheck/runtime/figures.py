"""Figures of papers as values: what the text prints about one, the runs that make it again, and its claims.

Entry-point group `privcheck.figures`: a `PaperFigures` under the paper's name. A figure that exists as a picture alone
has no numbers that could be compared; what its text says about it is a predicate on the results. A text that leaves
open what decides such a predicate makes it *underspecified*, whatever comes out at the settings taken here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from privcheck.errors import DeclarationError, UnknownNameError
from privcheck.support.plugins import list_entries, load_entry

if TYPE_CHECKING:
    from privcheck.runtime.registry import Paper

GROUP: Final = "figures"
Outcome = Literal["reproduced", "not reproduced", "underspecified"]
Measure = Literal["regret", "gap", "switches"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
EPISODES: Final = "episode"  # the x axis of a figure without a swept parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line of a figure as it came out.

    Attributes:
        label: Its name in the legend.
        x: Positions on the axis, ascending.
        mean: Means over all runs.
        std: Standard deviations over runs; None for a single run.
        runs: Number of independent runs.
    """

    label: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...] | None
    runs: int

    @property
    def end(self) -> float:
        """Mean at the last position."""
        return self.mean[-1]

    @property
    def error(self) -> float:
        """Standard error of `end`; 0 for a single run."""
        return 0.0 if self.std is None else self.std[-1] / math.sqrt(self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All lines of a figure, by their labels, with the values that learn nothing.

    Attributes:
        curves: The lines by label.
        uniform: The measure of uniformly random play at the last position; None for switches.
        quick: Whether this is the shrunken version.
    """

    curves: Mapping[str, Curve]
    uniform: float | None
    quick: bool = False

    def __getitem__(self, label: str) -> Curve:
        """The line of that label."""
        return self.curves[label]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Outcome of a claim, with the reason in a sentence or two."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a text says that its figure shows, as a predicate on the results.

    Attributes:
        quotation: The text's words, two sentences at most.
        reading: The words as a predicate with its tolerance.
        judge: The predicate, with its reason.
        undecided: What the text leaves open that decides the predicate: with it the outcome is "underspecified", and
            the reason says what came out here; empty if nothing that is open decides.
    """

    quotation: str
    reading: str
    judge: Callable[[Results], Judged]
    undecided: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedNumber:
    """A number that the text prints about a figure.

    Attributes:
        what: What it counts.
        value: The printed number.
        of: Labels of the lines whose last mean it is compared with.
        tolerance: Largest relative difference that counts as the same; None if it is shown beside and not judged.
        note: Why it is not judged, or how the two differ in what they count.
    """

    what: str
    value: float
    of: tuple[str, ...]
    tolerance: float | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line of a figure as runs.

    Attributes:
        label: Its name in the legend.
        algorithm: The registered algorithm.
        given: Its parameters, readings and options beside the figure's.
        judged: Whether the text has this line; False for one that is shown beside.
        once: Whether it runs at one position and is drawn as a constant: an agent without the swept parameter.
    """

    label: str
    algorithm: str
    given: Mapping[str, str] = field(default_factory=dict)
    judged: bool = True
    once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is run.

    Attributes:
        given: Parameters of the environment and of all agents, such as H and K.
        over: Values of the swept parameter; empty where the axis is the episode.
        instances: Models that are averaged over, each as parameters of the environment.
        replicates: Runs in each instance.
    """

    given: Mapping[str, str]
    over: tuple[str, ...] = ()
    instances: tuple[Mapping[str, str], ...] = ({},)
    replicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a paper.

    Attributes:
        name: The name that users type: "figure-1a".
        title: As the paper calls it, with what it shows.
        where: Section and version.
        setting: What the text says about the setting, two sentences at most.
        environment: Name of the registered environment.
        measure: The y axis: cumulative regret, gap to the optimum, or policy switches.
        axis: The swept parameter of the x axis, or `EPISODES`.
        lines: The lines.
        full: The printed sizes.
        quick: The shrunken version.
        taken: What the text leaves open, with what is taken here.
        numbers: Numbers that the text prints.
        observations: What the text says about the figure.
        seed: Seed of all runs.

    Raises:
        DeclarationError: A label is used twice or unknown, nothing is judged, or a quotation is missing.
    """

    name: str
    title: str
    where: str
    setting: str
    environment: str
    measure: Measure
    axis: str
    lines: tuple[Series, ...]
    full: Size
    quick: Size
    taken: tuple[str, ...]
    numbers: tuple[PrintedNumber, ...] = ()
    observations: tuple[Observation, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        labels = [one.label for one in self.lines]
        if len(set(labels)) != len(labels):
            raise DeclarationError(f"{self.name}: expected a label for each line, got {', '.join(labels)}")
        if unknown := {of for one in self.numbers for of in one.of} - set(labels):
            raise DeclarationError(f"{self.name}: expected numbers of its lines, got {', '.join(sorted(unknown))}")
        if not self.observations or not all((self.setting, *(one.quotation for one in self.observations))):
            raise DeclarationError(f"{self.name}: expected the text's words about it and about its setting")
        for size in (self.full, self.quick):
            if bool(size.over) == (self.axis == EPISODES):
                raise DeclarationError(f"{self.name}: expected values of {self.axis}, and none of the episode")

    def size(self, *, quick: bool) -> Size:
        """The printed sizes, or the shrunken ones."""
        return self.quick if quick else self.full


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigures:
    """The figures with results of one paper.

    Attributes:
        paper: The paper.
        figures: Its figures that show results of runs.
        others: What else the paper numbers as a figure or table, and why there is nothing to run.
        recorded: File of the recorded conclusions; None if nothing is recorded.
    """

    paper: Paper
    figures: tuple[Figure, ...]
    others: str = ""
    recorded: Path | None = None


def papers() -> list[str]:
    """Names of the papers with figures, sorted."""
    return sorted(list_entries(GROUP))


def figures_of(paper: str) -> PaperFigures:
    """The figures of a paper.

    Raises:
        UnknownNameError: No figures are registered under that name.
    """
    return cast("PaperFigures", load_entry(GROUP, paper, kind="paper with figures"))


def find_figure(paper: str, name: str) -> Figure:
    """A figure by its name, with or without "figure-", in any case.

    Raises:
        UnknownNameError: There is no such paper or figure.
    """
    known = {one.name: one for one in figures_of(paper).figures}
    asked = name.lower().replace(" ", "-")
    found = known.get(asked) or known.get(f"figure-{asked}")
    if found is None:
        raise UnknownNameError(f"figure of {paper}", name, sorted(known))
    return found
