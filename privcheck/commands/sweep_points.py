"""One point of a sweep: run, and kept whole or not at all.

A point's folder is called `<name>.partial` until everything in it is written: its run, its ledger, what the sweep needs
of it. Then it is renamed. Its name has a digest of all that its figures depend on, so that another sweep in the same
directory takes what it shares with this one and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from privcheck import registry
from privcheck.commands import learned, online
from privcheck.commands.comparing import price_claim, stand
from privcheck.commands.sources import Place, source_to_run, world_to_run
from privcheck.errors import FileFormatError, ParameterError
from privcheck.online.driver import CHECKPOINT, fingerprint
from privcheck.progress import Progress, silent
from privcheck.registry import Algorithm
from privcheck.reports import save_result
from privcheck.reports.values import Ran, RanOnline, Standing, SweepPoint, from_json
from privcheck.results import OnlineRequest, OnlineResult
from privcheck.whole_files import partial_path

POINTS: Final = "points"  # the folder of all points of a sweep
POINT: Final = "point.json"
RUN: Final = "run.json"
_FORMAT: Final = 1
_LONGEST: Final = 80  # characters of a folder's name in front of the digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be run at a point, in texts, so that any process can do it.

    Attributes:
        algorithm: Its name.
        over: The swept parameters that it knows, or its environment does.
        given: All NAME=VALUE pairs, those of `over` among them.
        place: Where it learns.
        replicates: Independent repetitions.
        seed: Of sampled users and simulated noise.
        delta: At which δ its ε is.
        workers: Threads; None for all cores.
        content: A digest of the files or tables that it learns from.
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
        """Returns the name of its folder: readable, and different for whatever changes a figure."""
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
    """The runs of non-private twins of this sweep: points that differ in privacy alone share one."""

    _played: dict[str, OnlineResult] = field(default_factory=dict)

    def play(self, twin: Algorithm, request: OnlineRequest) -> OnlineResult:
        """Returns the twin's run, the one before where it is the same."""
        mark = fingerprint(request, twin.name)
        if mark not in self._played:
            self._played[mark] = twin.play(request)
        return self._played[mark]


def run_point(
    task: Task,
    *,
    directory: Path | None = None,
    progress: Progress = silent,
    play_twin: Callable[[Algorithm, OnlineRequest], OnlineResult] = Algorithm.play,
) -> tuple[SweepPoint, Ran | RanOnline | None]:
    """Returns a point with its run; without one where the agent refuses the setting, which the point then says.

    Args:
        task: What is to be run.
        directory: Where its checkpoint and its ledger go; None for nowhere.
        progress: Called as the work goes on.
        play_twin: Runs a non-private twin.

    Raises:
        PrivcheckError: The data are refused, or the run released something else than was declared.
    """
    algorithm = registry.algorithm(task.algorithm)
    how: dict[str, Any] = {"replicates": task.replicates, "seed": task.seed, "out": directory, "progress": progress}
    ran: Ran | RanOnline
    try:
        if algorithm.online is not None:
            chosen, world = world_to_run([algorithm], task.given, task.place, seed=task.seed)
            setting = chosen[0]
            ran = online.run_online(setting, world, workers=task.workers, play_twin=play_twin, **how)
        else:
            setting, source = source_to_run(algorithm, task.given, task.place, seed=task.seed)
            ran = learned.run(setting, source, **how)
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
    return SweepPoint(
        algorithm=task.algorithm,
        over=task.over,
        environment=ran.environment,
        replicates=ran.replicates,
        episodes=ran.episodes or 0,  # a sweep draws simulated noise, of which no number is withheld
        parameters=ran.parameters,
        options=ran.options,
        choices=ran.choices if isinstance(ran, RanOnline) else {},
        standing=standing,
        regret=ran.regret if isinstance(ran, RanOnline) else None,
        value=ran.value if isinstance(ran, Ran) else None,
        gap=ran.gap if isinstance(ran, Ran) else None,
        spent=ran.spent,
        ledger=None if ran.ledger is None else replace(ran.ledger, path=None),  # the same wherever it was run
        seconds=ran.seconds,
        episodes_per_second=ran.episodes_per_second,
    )


def read_point(task: Task, points: Path) -> SweepPoint | None:
    """Returns a point that was finished; None where it was not.

    Args:
        task: Whose.
        points: The folder of all points.

    Raises:
        FileFormatError: What lies there is no point that this version can read.
    """
    file = points / task.folder / POINT
    if not file.exists():
        return None
    try:
        return from_json(SweepPoint, json.loads(file.read_bytes().decode("utf-8")), "point")
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{file}: not a readable point of a sweep ({error}): delete its folder") from None


def begin_point(task: Task, points: Path) -> Path:
    """Returns the folder of a point that is being run, ready: what an online agent goes on from is in it.

    Args:
        task: Whose.
        points: The folder of all points.
    """
    folder = partial_path(points / task.folder)
    if folder.exists() and not (folder / CHECKPOINT).exists():  # from the start, with the same draws
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keep_point(task: Task, points: Path, point: SweepPoint, ran: Ran | RanOnline | None) -> None:
    """Writes a finished point: everything into its partial folder, which then takes its name.

    Args:
        task: Whose.
        points: The folder of all points.
        point: What the sweep needs of it.
        ran: Its run; None where it was refused.

    Raises:
        OSError: It cannot be written.
    """
    folder = partial_path(points / task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if ran is not None:
        save_result(ran, folder / RUN)
    save_result(point, folder / POINT)
    with suppress(FileNotFoundError):
        (folder / CHECKPOINT).unlink()
    folder.rename(points / task.folder)
