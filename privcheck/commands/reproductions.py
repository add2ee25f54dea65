"""Figures of papers, run again at the printed sizes or shrunken, and judged by what the papers say about them.

A line's runs are points of a sweep: each is stored whole or not at all, depends only on its own setting and seed, and
a stopped online run continues from its checkpoint. No twin is run beside: a figure names its own lines.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from privcheck.commands.comparisons import made_by
from privcheck.commands.sources import Place
from privcheck.commands.sweeps import POINTS, RUN, Task, begin_point, keep_point, read_point, run_point
from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.files import read_runs
from privcheck.reports.reproductions import save_reproduction
from privcheck.reports.values import (
    Band,
    ComparedNumber,
    JudgedObservation,
    Line,
    ListedFigure,
    ListedFigures,
    Ran,
    RanOnline,
    Reproduced,
    Reproduction,
    from_json,
    take_fields,
)
from privcheck.runtime import figures
from privcheck.runtime.figures import EPISODES, Curve, Figure, Results, Series
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import OnlineRequest
from privcheck.support.display import Progress, silent

_DELTA: Final = 1e-5  # of the ε that a stored point states; no figure uses it
_UNITS: Final = 1000  # of progress, a run
_SHOWN: Final = 20  # positions along the episodes
_GRAVEST: Final[tuple[figures.Outcome, ...]] = ("not reproduced", "underspecified", "reproduced")
QUICK: Final = "-quick"  # the end of the folder's name of a shrunken version


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Figures to run.

    Attributes:
        figures: Each with the name of its paper.
        quick: Whether to run the shrunken versions.
        seed: Seed of all runs; None for each figure's own.
        workers: Threads of a run; None for all cores. No result depends on it.
    """

    figures: tuple[tuple[str, Figure], ...]
    quick: bool = False
    seed: int | None = None
    workers: int | None = None


def ask(
    paper: str | None, figure: str | None, *, quick: bool = False, seed: int | None = None, workers: int | None = None
) -> Asked:
    """The figures that a command names: one, all of a paper, or all.

    Raises:
        UnknownNameError: There is no such paper or figure.
    """
    if paper is not None and figure is not None:
        found = [(paper, figures.find_figure(paper, figure))]
    else:
        names = figures.papers() if paper is None else [paper]
        found = [(name, one) for name in names for one in figures.figures_of(name).figures]
    return Asked(figures=tuple(found), quick=quick, seed=seed, workers=workers)


def list_figures(paper: str | None = None) -> ListedFigures:
    """The figures of all papers or of one, with recorded conclusions."""
    listed, others = list[ListedFigure](), dict[str, str]()
    for name in figures.papers() if paper is None else [paper]:
        known = figures.figures_of(name)
        record = {one.figure: one for one in read_record(known.recorded) if one.paper == name}
        if known.others:
            others[name] = known.others
        for one in known.figures:
            kept = record.get(one.name)
            listed.append(
                ListedFigure(
                    paper=name,
                    figure=one.name,
                    title=one.title,
                    outcome=None if kept is None else kept.outcome,
                    quick=kept is not None and kept.quick,
                    reason="" if kept is None else kept.reason,
                )
            )
    return ListedFigures(figures=tuple(listed), others=others)


def read_record(path: Path | None) -> tuple[Reproduction, ...]:
    """The recorded reproductions in a file; none if there is no file.

    Raises:
        FileFormatError: The file cannot be read by this version.
    """
    if path is None or not path.exists():
        return ()
    try:
        return from_json(Reproduced, json.loads(path.read_text(encoding="utf-8")), "record").results
    except (OSError, ValueError, ParameterError) as error:
        message = f"{path}: expected what `privcheck reproduce --json` prints; {error!s}"
        raise FileFormatError(message) from None


def folder_of(out: Path, paper: str, figure: str, *, quick: bool) -> Path:
    """The folder of one figure in an output folder."""
    return out / paper / f"{figure}{QUICK if quick else ''}"


def reproduce(
    asked: Asked, *, out: Path | None = None, progress: Callable[[str], Progress] = lambda _: silent
) -> Reproduced:
    """Run figures again and judge them; with `out` each is written as soon as it is finished.

    Args:
        asked: The figures.
        out: Folder of their points, pictures and pages, by paper and figure; the same call continues a stopped one.
        progress: Makes a callback (done, total) for a named figure.

    Raises:
        ParameterError: An agent refuses a setting.
        PrivcheckError: A run deviated from its declaration, or a stored point cannot be read.
    """
    results = list[Reproduction]()
    for paper, figure in asked.figures:
        own = None if out is None else folder_of(out, paper, figure.name, quick=asked.quick)
        result = _run_figure(paper, figure, asked, own, progress(f"{paper} {figure.name}"))
        if own is not None:
            save_reproduction(result, own)
        results.append(result)
    return Reproduced(results=tuple(results))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """A run of a line: its position on the axis, None for all of them, and its task."""

    series: Series
    x: float | None
    task: Task


def tasks_of(figure: Figure, *, quick: bool, seed: int | None = None, workers: int | None = None) -> list[_Point]:
    """The runs of a figure, by line, position and model."""
    size, points = figure.size(quick=quick), list[_Point]()
    for one in figure.lines:
        swept = [None] if figure.axis == EPISODES or one.once else list(size.over)
        for value in swept:
            over = {} if value is None else {figure.axis: value}
            for instance in size.instances:
                task = Task(
                    algorithm=one.algorithm,
                    over=over,
                    given={**size.given, **instance, **one.given, **over},
                    place=Place(env=figure.environment),
                    replicates=size.replicates,
                    seed=figure.seed if seed is None else seed,
                    delta=_DELTA,
                    workers=workers,
                )
                points.append(_Point(series=one, x=None if value is None else float(Fraction(value)), task=task))
    return points


def _run_figure(paper: str, figure: Figure, asked: Asked, out: Path | None, progress: Progress) -> Reproduction:
    points = tasks_of(figure, quick=asked.quick, seed=asked.seed, workers=asked.workers)
    total, folder = _UNITS * len(points), None if out is None else out / POINTS
    ran = list[tuple[_Point, Ran | RanOnline]]()
    for place, point in enumerate(points):

        def told(done: int, of: int, before: int = place) -> None:
            progress(_UNITS * before + _UNITS * done // max(of, 1), total)

        ran.append((point, _run_point(point.task, folder, told)))
        progress(_UNITS * (place + 1), total)
    size = figure.size(quick=asked.quick)
    results = Results(
        curves={one.label: _draw_line(figure, one, ran, asked.quick) for one in figure.lines},
        uniform=_uniform(figure, [one for _, one in ran]),
        quick=asked.quick,
    )
    observations = tuple(_observe(one, results) for one in figure.observations)
    numbers = tuple(_compare(figure, results, judged=size.given == figure.full.given))
    outcome, reason = conclude(observations, numbers)
    seed = figure.seed if asked.seed is None else asked.seed
    words = ["privcheck", "reproduce", paper, figure.name, *(["--quick"] if asked.quick else [])]
    words += [] if asked.seed is None else ["--seed", str(seed)]
    return take_fields(
        Reproduction,
        figure,
        paper=paper,
        figure=figure.name,
        quick=asked.quick,
        outcome=outcome,
        reason=reason,
        command=shlex.join(words),
        sizes=size.given,
        runs=size.replicates * len(size.instances),
        observations=observations,
        numbers=numbers,
        lines=tuple(_line(one, results) for one in figure.lines),
        uniform=results.uniform,
        made_by=made_by(words, seed=seed),
    )


def _run_point(task: Task, points: Path | None, progress: Progress) -> Ran | RanOnline:
    """Run a point, or read it from the folder of finished ones."""
    if points is not None:
        if read_point(task, points) is not None:
            found = read_runs(points / task.folder / RUN)
            assert isinstance(found, Ran | RanOnline)
            return found
        begin_point(task, points)
    folder = None if points is None else begin_point(task, points)
    point, ran = run_point(task, directory=folder, progress=progress, play_twin=_no_twin)
    if ran is None:
        at = ", ".join(f"{name} = {value}" for name, value in task.given.items())
        raise ParameterError(f"{task.algorithm} at {at}: {point.refused}", name="figure")
    if points is not None:
        keep_point(task, points, point, ran)
    return ran


def _no_twin(twin: Algorithm, _: OnlineRequest) -> NoReturn:
    raise ParameterError(f"{twin.name} is no line of the figure")  # read as: the twin was not run


def _draw_line(figure: Figure, series: Series, ran: Sequence[tuple[_Point, Ran | RanOnline]], quick: bool) -> Curve:  # noqa: FBT001
    size, own = figure.size(quick=quick), [(point.x, one) for point, one in ran if point.series is series]
    if figure.axis == EPISODES:
        x, measured = _along_episodes(figure, [one for _, one in own])
    else:
        x = tuple(float(Fraction(value)) for value in size.over)
        at = {value: [one for where, one in own if where in (value, None)] for value in x}
        measured = [[_measure(figure, one) for one in at[value]] for value in x]
    mean, std = zip(*(_pool(some) for some in measured), strict=True)
    runs = size.replicates * len(size.instances)
    known = tuple(one for one in std if one is not None)
    return Curve(label=series.label, x=x, mean=mean, std=known if len(known) == len(mean) else None, runs=runs)


_Measured = tuple[float, float | None]  # mean and standard deviation over the replicates of one model


def _measure(figure: Figure, one: Ran | RanOnline) -> _Measured:
    """The measure after all episodes."""
    if isinstance(one, RanOnline):
        band = _band(figure, one)
        return band.mean[-1], None if band.std is None else band.std[-1]
    if one.gap.mean is None:
        raise ParameterError(f"{one.algorithm} on {one.environment}: the true value is unknown", name="figure")
    return one.gap.mean, one.value.std


def _band(figure: Figure, one: RanOnline) -> Band:
    return one.curves.switches if figure.measure == "switches" else one.curves.regret


def _along_episodes(figure: Figure, some: Sequence[Ran | RanOnline]) -> tuple[tuple[float, ...], list[list[_Measured]]]:
    """The measure at some episodes, for each of them in every model."""
    online = [one for one in some if isinstance(one, RanOnline)]
    if not online:
        raise ParameterError(f"{figure.name}: only agents that learn as they act have curves over episodes")
    episodes = online[0].curves.episodes
    places = sorted({int(place) for place in np.linspace(0, len(episodes) - 1, min(_SHOWN, len(episodes)))})
    measured = [
        [
            (band.mean[place], None if band.std is None else band.std[place])
            for one in online
            for band in (_band(figure, one),)
        ]
        for place in places
    ]
    return tuple(float(episodes[place]) for place in places), measured


def _pool(some: Sequence[_Measured]) -> _Measured:
    """Mean and standard deviation over all runs of several models, which have the same number of replicates each."""
    means = np.array([mean for mean, _ in some])
    inner = [std for _, std in some if std is not None]
    if not inner:
        return float(means.mean()), float(means.std(ddof=1)) if len(means) > 1 else None
    spread = float(np.mean(np.square(inner))) + (float(means.var(ddof=1)) if len(means) > 1 else 0.0)
    return float(means.mean()), math.sqrt(spread)


def _uniform(figure: Figure, some: Sequence[Ran | RanOnline]) -> float | None:
    """The measure of uniformly random play after all episodes, mean over models; None for switches."""
    if figure.measure == "switches":
        return None
    found = [one.regret.uniform if isinstance(one, RanOnline) else one.gap.uniform for one in some]
    known = [one for one in found if one is not None]
    return float(np.mean(known)) if known else None


def _observe(one: figures.Observation, results: Results) -> JudgedObservation:
    judged = one.judge(results)
    outcome = "underspecified" if one.undecided else judged.outcome
    return take_fields(JudgedObservation, one, outcome=outcome, reason=judged.reason)


def _compare(figure: Figure, results: Results, *, judged: bool) -> Iterator[ComparedNumber]:
    """The printed numbers beside those that came out, judged only at the printed sizes."""
    for one in figure.numbers:
        for label in one.of:
            curve = results[label]
            near = one.tolerance is not None and abs(curve.end - one.value) <= one.tolerance * abs(one.value)
            yield ComparedNumber(
                what=one.what,
                of=label,
                paper=one.value,
                here=curve.end,
                std=None if curve.std is None else curve.std[-1],
                tolerance=one.tolerance,
                same=near if judged and one.tolerance is not None else None,
                note=one.note,
            )


def conclude(
    observations: Sequence[JudgedObservation], numbers: Sequence[ComparedNumber]
) -> tuple[figures.Outcome, str]:
    """Outcome of a figure from its parts, with the reasons of the parts that decide it.

    One part that is not reproduced makes the figure not reproduced; otherwise one that is underspecified makes it
    underspecified: a figure is reproduced if all that its text says is.
    """
    parts: list[tuple[str, str]] = [(one.outcome, one.reason) for one in observations]
    parts += [(one.outcome, one.undecided) for one in observations if one.undecided]
    for number in numbers:
        if number.same is not None:
            said = f"{number.of}: {number.here:.4g} {number.what}, the paper has {number.paper:.4g}."
            parts.append(("reproduced" if number.same else "not reproduced", said))
    for outcome in _GRAVEST:
        if reasons := [reason for one, reason in parts if one == outcome]:
            return outcome, " ".join(dict.fromkeys(reasons))
    raise ParameterError("expected something to judge: an observation, or a number with a tolerance")


def _line(series: Series, results: Results) -> Line:
    curve = results[series.label]
    return Line(
        label=series.label,
        algorithm=series.algorithm,
        judged=series.judged,
        parameters=series.given,
        x=curve.x,
        mean=curve.mean,
        std=curve.std,
    )
