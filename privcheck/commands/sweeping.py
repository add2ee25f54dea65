"""Runs over a grid of parameters: what was planned is run, or stands in the result as refused.

A point depends on its own setting and seed alone, so that the result depends neither on the number of workers nor on
where the points ran nor on how often the sweep was stopped. Its file says nothing of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed
from pathlib import Path
from typing import Final

from privcheck.commands.cluster import cluster_executor
from privcheck.commands.comparing import made_by
from privcheck.commands.sweep_plans import SweepPlan
from privcheck.commands.sweep_points import POINTS, Task, Twins, begin_point, keep_point, read_point, run_point
from privcheck.errors import ParameterError
from privcheck.progress import Progress, silent
from privcheck.reports.headlines import sweep_headline
from privcheck.reports.values import Ran, RanOnline, Sweep, SweepPoint

_UNITS: Final = 1000  # of progress, a point


def sweep(
    plan: SweepPlan,
    *,
    out: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Sweep:
    """Returns all points; those that an earlier sweep finished in the same directory are read.

    Args:
        plan: What is to be done.
        out: Where points are kept as soon as each is finished, in the folder points/; None for nowhere.
        executor: Where points run instead of here, a cluster's for example; the result does not depend on it. Without
            one a point that was stopped is continued from its checkpoint, too.
        progress: Called as the work goes on.

    Raises:
        ParameterError: No point could be run.
        PrivcheckError: The data are refused, a run released something else than was declared, or a point that lies
            there cannot be read.
    """
    points = None if out is None else out / POINTS
    found = [None if points is None else read_point(task, points) for task in plan.tasks]
    left = [place for place, point in enumerate(found) if point is None]
    total = _UNITS * len(found)
    progress(total - _UNITS * len(left), total)
    run = _here if executor is None else _elsewhere(executor)
    run(plan.tasks, left, found, points, progress)
    done = [point for point in found if point is not None]
    ran = [point for point in done if not point.refused]
    if not ran:
        raise ParameterError(f"no point could be run: {done[0].refused}", name="over")
    return Sweep(
        environment=ran[0].environment,
        algorithms=plan.names,
        over=plan.over,
        budgets=plan.budgets,
        own_data=plan.place.environment is None,
        replicates=plan.replicates,
        delta=plan.delta,
        headline=sweep_headline(done, over=tuple(plan.over), budgets=plan.budgets, delta=plan.delta),
        points=tuple(done),
        made_by=made_by(plan.command, seed=plan.seed),
    )


def sweep_where(
    plan: SweepPlan, *, cluster: str | None, out: Path | None, progress: Progress, executor: Executor | None = None
) -> Sweep:
    """Returns all points, run here, on an executor, or on the Dask cluster at an address; as `sweep`.

    Raises:
        ParameterError: The cluster cannot be used, an executor is given too, or no point could be run.
    """
    if cluster is not None and executor is not None:
        raise ParameterError("cluster and executor: the points run on one of them; leave one out", name="cluster")
    if cluster is None:
        return sweep(plan, out=out, executor=executor, progress=progress)
    with cluster_executor(cluster) as workers:
        return sweep(plan, out=out, executor=workers, progress=progress)


Found = list[SweepPoint | None]
Run = Callable[[Sequence[Task], Sequence[int], Found, Path | None, Progress], None]


def _here(tasks: Sequence[Task], left: Sequence[int], found: Found, points: Path | None, progress: Progress) -> None:
    """Runs the points one after the other, each with threads of its own."""
    twins, total = Twins(), _UNITS * len(tasks)
    for order, place in enumerate(left):
        task, before = tasks[place], total - _UNITS * (len(left) - order)

        def told(done: int, of: int, before: int = before) -> None:
            progress(before + _UNITS * done // max(of, 1), total)

        folder = None if points is None else begin_point(task, points)
        point, ran = run_point(task, directory=folder, progress=told, play_twin=twins.play)
        if points is not None:
            keep_point(task, points, point, ran)
        found[place] = point
        progress(before + _UNITS, total)


def _elsewhere(executor: Executor) -> Run:
    """Returns what runs the points on an executor; each is kept here as soon as it is back."""

    def run(tasks: Sequence[Task], left: Sequence[int], found: Found, points: Path | None, progress: Progress) -> None:
        total = _UNITS * len(tasks)
        asked: dict[Future[tuple[SweepPoint, Ran | RanOnline | None]], int] = {
            executor.submit(run_point, tasks[place]): place for place in left
        }
        try:
            for number, future in enumerate(as_completed(asked), start=1):
                place = asked[future]
                point, ran = future.result()
                if points is not None:
                    keep_point(tasks[place], points, point, ran)
                found[place] = point
                progress(total - _UNITS * (len(left) - number), total)
        except BaseException:  # what is not begun is not begun any more
            for future in asked:
                future.cancel()
            raise

    return run
