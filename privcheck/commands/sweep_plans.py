"""What a sweep will do: every point settled, and what cannot be run refused before anything runs."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from privcheck import registry
from privcheck.commands.comparing import common_delta
from privcheck.commands.foreseen import foresee_run
from privcheck.commands.grids import Grid, list_points
from privcheck.commands.online import keep_known, keep_readings, online_only
from privcheck.commands.setting import Chosen, settle
from privcheck.commands.sources import Place, refuse_files, source_to_run
from privcheck.commands.sweep_points import Task
from privcheck.errors import ParameterError, UnknownNameError
from privcheck.guarantees import guarantee_symbols
from privcheck.registry import Algorithm
from privcheck.reports.values import PlannedPart

_SIMULATED: Final = 5  # replicates where users are simulated; users' own data are learned from once a point
_SIZES: Final = frozenset({"H", "S", "A"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """A sweep that nothing stands against.

    Attributes:
        names: Of the algorithms.
        over: The grid.
        budgets: Those of its parameters that are part of a guarantee.
        tasks: Its points, by algorithm and in the order of the grid.
        parts: Of its work.
        place: Where they learn.
        given: What was set besides.
        replicates: Of every point.
        seed: Of all of them.
        delta: At which δ every ε is.
        asked: That δ as a user gave it; None where nobody did.
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

    @property
    def command(self) -> list[str]:
        """Returns the command line that makes the same result, whatever else was given."""
        named: dict[str, Any] = {
            "--env": self.place.env, "--data": _say_data(self.place.data), "--rewards": self.place.rewards,
            "--features": self.place.features, **self.place.users.options(), "--delta": self.asked,
        }  # fmt: skip
        words = ["privcheck", "sweep", *self.names]
        words += [word for option, one in named.items() if one is not None for word in (option, str(one))]
        words += [word for name, some in self.over.items() for word in ("--over", f"{name}={','.join(some)}")]
        words += [word for name, one in self.given.items() for word in ("--set", f"{name}={one}")]
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
) -> SweepPlan:
    """Returns what a sweep will do, with every point settled.

    Args:
        names: Of the algorithms, which all act or all learn from data.
        over: The grid; each algorithm runs once for every combination of those of its parameters that it knows.
        given: What is set besides, which goes to every algorithm that knows the name.
        place: Where they learn.
        replicates: Independent repetitions of every point; None for 5 where users are simulated, else 1.
        seed: Of sampled users and simulated noise, the same at every point.
        delta: At which δ every ε is; None for the least that a claim names, else 1e-5.
        workers: Threads of a point; None for all cores.

    Raises:
        UnknownNameError: There is no such algorithm or environment, or none of them knows a name.
        ParameterError: A value is refused, and at which point; or algorithms that act stand beside others.
        PrivcheckError: The data are refused.
    """
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
    )


def _find(names: Sequence[str], place: Place) -> list[Algorithm]:
    if len(set(names)) != len(names):
        raise ParameterError(f"each algorithm is swept once, got {' '.join(names)}", name="name", given=list(names))
    algorithms = [registry.algorithm(name) for name in names]
    acting = [one.online is not None for one in algorithms]
    if any(acting) and not all(acting):
        offline = ", ".join(one.name for one in algorithms if one.online is None)
        message = f"a sweep is of algorithms that act or of such that learn from data; {offline} learns from data"
        raise ParameterError(f"{message}: sweep it apart from the others", name="name", given=list(names))
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
    """Returns the names of the environment's own parameters; none of users' own data."""
    name = place.environment
    return frozenset() if name is None else frozenset(p.name for p in registry.environment(name).parameters)


def _known(algorithm: Algorithm, given: Mapping[str, str]) -> frozenset[str]:
    return _known_in(algorithm.name, tuple(sorted(keep_readings(algorithm, given).items())))


@lru_cache(maxsize=256)
def _known_in(name: str, readings: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Returns the names that a user may set of an algorithm in these readings; making a declaration takes a while."""
    return frozenset(keep_known(settle(registry.algorithm(name), dict(readings))))


def _refuse_unknown(algorithms: Sequence[Algorithm], over: Grid, given: Mapping[str, str], own: frozenset[str]) -> None:
    known = {*own, *_SIZES}
    for point in list_points({name: values for name, values in over.items() if _is_reading(algorithms, name)}):
        known |= set[str]().union(*(_known(one, {**given, **point}) for one in algorithms))
    names = ", ".join(one.name for one in algorithms)
    for name in (*over, *given):
        if name not in known:
            raise UnknownNameError(f"parameter of {names} or of where they learn", name, sorted(known))


def _is_reading(algorithms: Sequence[Algorithm], name: str) -> bool:
    return any(name == reading.name for one in algorithms for reading in one.readings)


def _keep(algorithm: Algorithm, given: Mapping[str, str], own: frozenset[str]) -> dict[str, str]:
    """Returns the pairs that concern an algorithm or where it learns."""
    known = _known(algorithm, given) | own | _SIZES
    return {name: value for name, value in given.items() if name in known}


def _points_of(algorithm: Algorithm, over: Grid, given: Mapping[str, str], own: frozenset[str]) -> list[dict[str, str]]:
    """Returns an algorithm's points, each once: what it does not know does not multiply them."""
    kept = (_keep(algorithm, {**given, **point}, own) for point in list_points(over))
    points = ({name: every[name] for name in over if name in every} for every in kept)
    return list({tuple(point.items()): point for point in points}.values())


def _budgets(settings: Sequence[Chosen], over: Grid) -> tuple[str, ...]:
    claims = (one.declaration.claim.guarantee for one in settings if one.declaration is not None)
    parts = frozenset[str]().union(*map(guarantee_symbols, claims))
    return tuple(name for name in over if name in parts)


def _digest(place: Place, algorithm: Algorithm, given: Mapping[str, str], seed: int) -> str:
    """Returns a digest of what is learned from; empty where an environment's name and the seed say all."""
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
