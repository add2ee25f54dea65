"""Sweeps: every point of a grid is planned, refused or run, and stored whole or not at all.

A point depends only on its own setting and seed, so that the result does not depend on the number of workers, on where
the points ran, or on how often the sweep was stopped. Its file contains no times.

A point's folder is called `<name>.partial` until everything in it is written: run, ledger and the sweep's row. Then it
is renamed. Its name has a digest of everything its figures depend on, so that another sweep in the same directory
reuses exactly the points the two have in common.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from privcheck.commands import online_runs, runs
from privcheck.commands.comparisons import common_delta, made_by, price_claim, stand
from privcheck.commands.dry_run import foresee_run
from privcheck.commands.online_runs import keep_known, keep_readings, online_only
from privcheck.commands.runs import cluster_executor
from privcheck.commands.settings import Chosen, Grid, list_points, settle
from privcheck.commands.slopes import fit_slopes, parse_slopes
from privcheck.commands.sources import Place, refuse_files, source_to_run, world_to_run
from privcheck.errors import FileFormatError, ParameterError, UnknownNameError
from privcheck.reports import save_result
from privcheck.reports.comparisons import sweep_headline
from privcheck.reports.values import PlannedPart, Ran, RanOnline, Standing, Sweep, SweepPoint, from_json, take_fields
from privcheck.runtime import registry
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.replicates import CHECKPOINT, fingerprint
from privcheck.runtime.results import OnlineRequest, OnlineResult
from privcheck.support.display import Progress, silent
from privcheck.support.files import partial_path
from privcheck.terms.guarantees import guarantee_symbols

POINTS: Final = "points"  # the folder of all points of a sweep
POINT: Final = "point.json"
RUN: Final = "run.json"
_FORMAT: Final = 2
_LONGEST: Final = 80  # characters of a folder's name in front of the digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Input of a point as texts, so that any process can run it.

    Attributes:
        algorithm: Name of the algorithm.
        over: Swept parameters known to the algorithm or its environment.
        given: All NAME=VALUE pairs, including those of `over`.
        place: Environment or data.
        replicates: Independent repetitions.
        seed: Seed of the sampled users and of simulated noise.
        delta: δ at which ε is stated.
        workers: Threads; None for all cores.
        content: Digest of the files or tables of the data.
    """

    algorithm: str
    over: Mapping[str, str]
    given: Mapping[str, str]
    place: Place
    replicates: int
    seed: int
    delta: float
    workers: int | None
    content: str = ""

    @property
    def folder(self) -> str:
        """Name of its folder: readable, and distinct for every input that changes a figure."""
        about = {
            "format": _FORMAT, "version": version("privcheck"), "numpy": version("numpy"), "algorithm": self.algorithm,
            "given": dict(sorted(self.given.items())), "env": self.place.env, "content": self.content,
            **self.place.users.options(),
            "data": self.place.data if isinstance(self.place.data, str) else "", "over": dict(self.over),
            "replicates": self.replicates, "seed": self.seed,
            "delta": None if registry.algorithm(self.algorithm).declare is None else self.delta,
        }  # fmt: skip
        digest = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=6).hexdigest()
        said = ",".join([self.algorithm, *(f"{name}={value}" for name, value in self.over.items())])
        return f"{re.sub(r'[^A-Za-z0-9.,=+-]', '_', said)[:_LONGEST]}-{digest}"


@dataclass(slots=True)
class Twins:
    """Cache of the runs of non-private twins: points that differ only in privacy share one."""

    _played: dict[str, OnlineResult] = field(default_factory=dict)

    def play(self, twin: Algorithm, request: OnlineRequest) -> OnlineResult:
        """Run the twin, or return its earlier run for the same request."""
        mark = fingerprint(request, twin.name)
        if mark not in self._played:
            self._played[mark] = twin.play_without_noise(request)
        return self._played[mark]


def run_point(
    task: Task,
    *,
    directory: Path | None = None,
    progress: Progress = silent,
    play_twin: Callable[[Algorithm, OnlineRequest], OnlineResult] = Algorithm.play_without_noise,
) -> tuple[SweepPoint, Ran | RanOnline | None]:
    """Run a point; if the agent refuses the setting, the point says why and there is no run.

    Args:
        task: Input of the point.
        directory: Folder of its checkpoint and ledger; None to write nothing.
        progress: Called as the work goes on.
        play_twin: Runs a non-private twin.

    Raises:
        PrivcheckError: The data are refused, or the run deviated from its declaration.
    """
    algorithm = registry.algorithm(task.algorithm)
    how: dict[str, Any] = {"replicates": task.replicates, "seed": task.seed, "out": directory}
    ran: Ran | RanOnline
    try:
        if algorithm.online is not None:
            chosen, world = world_to_run([algorithm], task.given, task.place, seed=task.seed)
            setting = chosen[0]
            own = {setting.algorithm.name: progress}  # of the twin, which several points share, nothing is reported
            ran = online_runs.run_online(
                setting, world, workers=task.workers, play_twin=play_twin,
                progress=lambda name: own.get(name, silent), **how,
            )  # fmt: skip
        else:
            setting, source = source_to_run(algorithm, task.given, task.place, seed=task.seed)
            ran = runs.run(setting, source, progress=progress, **how)
    except ParameterError as error:
        return _refused(task, str(error)), None
    return _describe(task, ran, stand(ran, price_claim(setting, task.delta))), ran


def _refused(task: Task, why: str) -> SweepPoint:
    return SweepPoint(
        algorithm=task.algorithm,
        over=task.over,
        refused=why,
        environment=task.place.env or str(task.place.data),
        replicates=task.replicates,
        episodes=0,
    )


def _describe(task: Task, ran: Ran | RanOnline, standing: Standing) -> SweepPoint:
    return take_fields(
        SweepPoint,
        ran,
        algorithm=task.algorithm,
        over=task.over,
        episodes=ran.episodes or 0,  # a sweep draws simulated noise, of which no number is withheld
        standing=standing,
        outcomes=ran._outcomes,  # noqa: SLF001 - in no document of a run
        twin_outcomes=ran._twin_outcomes if isinstance(ran, RanOnline) else _twin_gap(ran),  # noqa: SLF001
        ledger=None if ran.ledger is None else replace(ran.ledger, path=None),  # the same wherever it was run
    )


def _twin_gap(ran: Ran) -> tuple[float, ...]:
    """Gap of the non-private twin on the same data, which draws nothing; empty if it is unknown."""
    optimum, baseline = ran.value.optimal, ran.value.baseline
    return () if optimum is None or baseline is None else (max(optimum - baseline, 0.0),)


def read_point(task: Task, points: Path) -> SweepPoint | None:
    """Read a finished point; None if it is not finished.

    Args:
        task: Input of the point.
        points: The folder of all points.

    Raises:
        FileFormatError: The stored point cannot be read by this version.
    """
    file = points / task.folder / POINT
    if not file.exists():
        return None
    try:
        return from_json(SweepPoint, json.loads(file.read_bytes().decode("utf-8")), "point")
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{file}: not a readable point of a sweep ({error}): delete its folder") from None


def begin_point(task: Task, points: Path) -> Path:
    """Prepare the partial folder of a point, keeping the checkpoint of an interrupted online run.

    Args:
        task: Input of the point.
        points: The folder of all points.
    """
    folder = partial_path(points / task.folder)
    if folder.exists() and not (folder / CHECKPOINT).exists():  # from the start, with the same draws
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keep_point(task: Task, points: Path, point: SweepPoint, ran: Ran | RanOnline | None) -> None:
    """Write a finished point into its partial folder, and rename the folder.

    Args:
        task: Input of the point.
        points: The folder of all points.
        point: The sweep's row of the point.
        ran: Its run; None if it was refused.

    Raises:
        OSError: The point cannot be written.
    """
    folder = partial_path(points / task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if ran is not None:
        save_result(ran, folder / RUN)
    save_result(point, folder / POINT)
    with suppress(FileNotFoundError):
        (folder / CHECKPOINT).unlink()
    folder.rename(points / task.folder)


_SIMULATED: Final = 5  # replicates where users are simulated; users' own data are learned from once a point
_SIZES: Final = frozenset({"H", "S", "A"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """A checked sweep, ready to run.

    Attributes:
        names: Names of the algorithms.
        over: The grid.
        budgets: Swept parameters that are part of a guarantee.
        tasks: Points, by algorithm and in the order of the grid.
        parts: Parts of the estimated work.
        place: Environment or data.
        given: Parameters set with --set.
        replicates: Number of repetitions of every point.
        seed: Seed of all points.
        delta: δ at which every ε is stated.
        asked: That δ as the user gave it; None for the default.
        slopes: Swept parameters along which power laws are fitted.
    """

    names: tuple[str, ...]
    over: Grid
    budgets: tuple[str, ...]
    tasks: tuple[Task, ...]
    parts: tuple[PlannedPart, ...]
    place: Place
    given: Mapping[str, str]
    replicates: int
    seed: int
    delta: float
    asked: str | float | Fraction | None = None
    slopes: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """A command line that reproduces the result, independent of other options."""
        named: dict[str, Any] = {
            "--env": self.place.env, "--data": _say_data(self.place.data), "--rewards": self.place.rewards,
            "--features": self.place.features, **self.place.users.options(), "--delta": self.asked,
        }  # fmt: skip
        words = ["privcheck", "sweep", *self.names]
        words += [word for option, one in named.items() if one is not None for word in (option, str(one))]
        words += [word for name, some in self.over.items() for word in ("--over", f"{name}={','.join(some)}")]
        words += [word for name, one in self.given.items() for word in ("--set", f"{name}={one}")]
        words += ["--slope", ",".join(self.slopes)] if self.slopes else []
        words += ["--seeds", str(self.replicates), "--seed", str(self.seed)]
        return [shlex.quote(word) for word in words]


def _say_data(data: object) -> str | None:
    return None if data is None else str(data) if isinstance(data, str | Path) else f"<{type(data).__name__}>"


def plan_sweep(
    names: Sequence[str],
    over: Grid,
    given: Mapping[str, str],
    place: Place,
    *,
    replicates: int | None = None,
    seed: int = 0,
    delta: str | float | Fraction | None = None,
    workers: int | None = None,
    slope: str | None = None,
) -> SweepPlan:
    """Plan a sweep, with every point settled.

    Args:
        names: Names of the algorithms, all online or all learning from data.
        over: The grid; each algorithm runs once for every combination of the parameters it knows.
        given: Parameters set with --set; each goes to every algorithm that knows the name.
        place: Environment or data.
        replicates: Independent repetitions of every point; None for 5 on simulated users, else 1.
        seed: Seed of the sampled users and of simulated noise, the same at every point.
        delta: δ at which every ε is stated; None for the smallest positive δ of a claim, else 1e-5.
        workers: Threads of a point; None for all cores.
        slope: Swept parameters along which power laws are fitted, like "K,epsilon".

    Raises:
        UnknownNameError: An algorithm or environment does not exist, or a name is unknown to all of them.
        ParameterError: A value is refused; the message names the point. Or online and offline algorithms are mixed.
        PrivcheckError: The data are refused.
    """
    slopes = parse_slopes(slope, over)
    algorithms = _find(names, place)
    own = _own_names(place)
    _refuse_unknown(algorithms, over, given, own)
    times = _count_replicates(algorithms, place, replicates)
    content = _digest(place, algorithms[0], given, seed)
    wanted: list[tuple[str, dict[str, str], dict[str, str]]] = []
    settings: list[Chosen] = []
    parts: list[PlannedPart] = []
    for algorithm in algorithms:
        for point in _points_of(algorithm, over, given, own):
            everything = {**_keep(algorithm, {**given, **point}, own), **point}
            said = ", ".join(f"{name} = {value}" for name, value in point.items())
            try:
                foreseen = foresee_run(
                    [algorithm.name], everything, place, replicates=times, seed=seed, workers=workers, read=True
                )
            except ParameterError as error:
                message = f"{algorithm.name} at {said}: {error}; nothing was run" if point else str(error)
                raise ParameterError(message, name=error.name, given=error.given) from None
            wanted.append((algorithm.name, point, everything))
            settings += foreseen.settings
            parts += [replace(one, what=f"{one.what} at {said}" if said else one.what) for one in foreseen.parts]
    at = common_delta(settings, delta)
    return SweepPlan(
        names=tuple(names),
        over=over,
        budgets=_budgets(settings, over),
        tasks=tuple(
            Task(
                algorithm=name,
                over=point,
                given=everything,
                place=place,
                replicates=times,
                seed=seed,
                delta=at,
                workers=workers,
                content=content,
            )
            for name, point, everything in wanted
        ),
        parts=tuple(parts),
        place=place,
        given=given,
        replicates=times,
        seed=seed,
        delta=at,
        asked=delta,
        slopes=slopes,
    )


def _find(names: Sequence[str], place: Place) -> list[Algorithm]:
    if len(set(names)) != len(names):
        raise ParameterError(f"each algorithm is swept once, got {' '.join(names)}", name="name", given=list(names))
    algorithms = [registry.algorithm(name) for name in names]
    if trained := [one.name for one in algorithms if one.trained is not None]:
        message = f"{', '.join(trained)} trains a policy, which a sweep does not: `privcheck run` for each point"
        raise ParameterError(message, name="name", given=list(names))
    acting = [one.online is not None for one in algorithms]
    if any(acting) and not all(acting):
        offline = ", ".join(one.name for one in algorithms if one.online is None)
        message = (
            f"a sweep has either algorithms that act or algorithms that learn from data; {offline} learns from data"
        )
        raise ParameterError(f"{message}: sweep it separately from the others", name="name", given=list(names))
    if all(acting):
        for one in algorithms:
            refuse_files([one], place)
        online_only(algorithms)
    elif place.env is None and place.data is None:
        raise ParameterError("give exactly one of --env ENVIRONMENT and --data FILE (or an environment's name)")
    return algorithms


def _count_replicates(algorithms: Sequence[Algorithm], place: Place, asked: int | None) -> int:
    if place.environment is not None:
        return asked or _SIMULATED
    if asked is not None and asked > 1 and any(one.declare is not None for one in algorithms):
        message = (
            f"{asked} repetitions of a point on your own data are {asked} releases about the same users: use --seeds 1 "
            "(simulated users may be repeated)"
        )
        raise ParameterError(message, name="seeds", given=asked)
    return asked or 1


def _own_names(place: Place) -> frozenset[str]:
    """The names of the environment's parameters; empty for the user's own data."""
    name = place.environment
    return frozenset() if name is None else frozenset(p.name for p in registry.environment(name).parameters)


def _known(algorithm: Algorithm, given: Mapping[str, str]) -> frozenset[str]:
    return _known_in(algorithm.name, tuple(sorted(keep_readings(algorithm, given).items())))


@lru_cache(maxsize=256)
def _known_in(name: str, readings: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """The names that a user may set for an algorithm in these readings; cached, as making a declaration is slow."""
    return frozenset(keep_known(settle(registry.algorithm(name), dict(readings))))


def _refuse_unknown(algorithms: Sequence[Algorithm], over: Grid, given: Mapping[str, str], own: frozenset[str]) -> None:
    known = {*own, *_SIZES}
    for point in list_points({name: values for name, values in over.items() if _is_reading(algorithms, name)}):
        known |= set[str]().union(*(_known(one, {**given, **point}) for one in algorithms))
    names = ", ".join(one.name for one in algorithms)
    for name in (*over, *given):
        if name not in known:
            raise UnknownNameError(f"parameter of {names} or of the environment", name, sorted(known))


def _is_reading(algorithms: Sequence[Algorithm], name: str) -> bool:
    return any(name == reading.name for one in algorithms for reading in one.readings)


def _keep(algorithm: Algorithm, given: Mapping[str, str], own: frozenset[str]) -> dict[str, str]:
    """The pairs known to an algorithm or its environment."""
    known = _known(algorithm, given) | own | _SIZES
    return {name: value for name, value in given.items() if name in known}


def _points_of(algorithm: Algorithm, over: Grid, given: Mapping[str, str], own: frozenset[str]) -> list[dict[str, str]]:
    """An algorithm's distinct points: parameters it does not know do not multiply them."""
    kept = (_keep(algorithm, {**given, **point}, own) for point in list_points(over))
    points = ({name: every[name] for name in over if name in every} for every in kept)
    return list({tuple(point.items()): point for point in points}.values())


def _budgets(settings: Sequence[Chosen], over: Grid) -> tuple[str, ...]:
    claims = (one.declaration.claim.guarantee for one in settings if one.declaration is not None)
    parts = frozenset[str]().union(*map(guarantee_symbols, claims))
    return tuple(name for name in over if name in parts)


def _digest(place: Place, algorithm: Algorithm, given: Mapping[str, str], seed: int) -> str:
    """Digest of the data; empty if the environment's name and the seed determine them."""
    digest = hashlib.blake2b(digest_size=8)
    member = (place.environment or "").partition(":")[2]  # of table:FILE
    files = [place.data, place.rewards, place.features, member or None]
    paths = [Path(one) for one in files if isinstance(one, str | Path) and Path(one).is_file()]
    for path in paths:
        digest.update(path.read_bytes())
    held = place.data is not None and not isinstance(place.data, str | Path)
    if held:
        users = source_to_run(algorithm, _keep(algorithm, given, frozenset()), place, seed=seed)[1].data.trajectories
        for array in (users.states, users.actions, users.rewards):
            digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest() if paths or held else ""


_UNITS: Final = 1000  # of progress, a point


def sweep(
    plan: SweepPlan,
    *,
    out: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Sweep:
    """Run all points, and read those that an earlier sweep finished in the same directory.

    Args:
        plan: The planned points.
        out: Folder whose points/ receives each point as soon as it is finished; None to keep nothing.
        executor: Runs the points elsewhere, on a cluster for example; the result does not depend on it. Without one, a
            stopped point is also continued from its checkpoint.
        progress: Called as the work goes on.

    Raises:
        ParameterError: No point could be run.
        PrivcheckError: The data are refused, a run deviated from its declaration, or a stored point cannot be read.
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
        slopes=fit_slopes(done, plan.slopes),
    )


def sweep_where(
    plan: SweepPlan, *, cluster: str | None, out: Path | None, progress: Progress, executor: Executor | None = None
) -> Sweep:
    """Run all points here, on an executor, or on the Dask cluster at an address; see `sweep`.

    Raises:
        ParameterError: The cluster cannot be used, both a cluster and an executor are given, or no point could be run.
    """
    if cluster is not None and executor is not None:
        raise ParameterError("cluster and executor: the points run on only one of them; leave one out", name="cluster")
    if cluster is None:
        return sweep(plan, out=out, executor=executor, progress=progress)
    with cluster_executor(cluster) as workers:
        return sweep(plan, out=out, executor=workers, progress=progress)


Found = list[SweepPoint | None]
Run = Callable[[Sequence[Task], Sequence[int], Found, Path | None, Progress], None]


def _here(tasks: Sequence[Task], left: Sequence[int], found: Found, points: Path | None, progress: Progress) -> None:
    """Run the points one after the other in this process, each with its own threads."""
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
    """A function that runs the points on an executor and stores each here as soon as it is back."""

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
