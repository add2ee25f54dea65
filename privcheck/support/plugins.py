"""Registered objects by name: the one place that reads entry points, ours and third parties' alike."""

from __future__ import annotations

import functools
import sys
import traceback
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import TracebackType
from typing import Final

from privcheck.errors import PackageError, ParameterError, PrivcheckError, UnknownNameError

_OURS: Final = frozenset({"privcheck", "privcheck_algorithms", "privcheck_audits", "privcheck_check"})
_GROUPS: Final = ("algorithms", "environments", "environment_families", "figures", "views", "auditors")


def list_entries(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, none of them loaded.

    Args:
        group: The part after `privcheck.` in the group's name: "algorithms", "auditors", …
    """
    return {point.name: point for point in _registered(f"privcheck.{group}", _installed())}


def load_entry(group: str, name: str, *, kind: str = "") -> object:
    """Load the object registered under a name.

    Args:
        group: As in `list_entries`.
        name: Of the entry point.
        kind: Its kind in error messages; by default the group's name in the singular.

    Raises:
        UnknownNameError: The name is not registered.
        ParameterError: Two packages register different objects under it: the order of the path would decide which one
            is audited.
        PackageError: The package cannot be loaded.
    """
    kind = kind or group.rstrip("s")
    point = find_entry(group, name, kind=kind)
    try:
        return point.load()
    except PrivcheckError:
        raise
    except Exception as error:
        owner = "" if point.dist is None else f" of package {point.dist.name}"
        message = f"{kind} {name!r}{owner} ({point.value}) cannot be loaded: {describe_failure(error)}"
        raise PackageError(f"{message}. Repair the package, or uninstall it") from error


def find_entry(group: str, name: str, *, kind: str = "") -> EntryPoint:
    """The entry point of a name, not loaded; arguments and errors as those of `load_entry`."""
    points = _registered(f"privcheck.{group}", _installed()).select(name=name)
    kind = kind or group.rstrip("s")
    if not points:
        raise UnknownNameError(kind, name, sorted(list_entries(group)))
    if len({point.value for point in points}) > 1:
        owners = {point.value: point.dist.name if point.dist is not None else "?" for point in points}
        places = " and ".join(f"{value} (package {owner})" for value, owner in owners.items())
        raise ParameterError(
            f"{kind} {name!r} is registered twice, as {places}: uninstall one", name="name", given=name
        )
    return next(iter(points))


def find_culprit(error: BaseException) -> str | None:
    """Location of a failure in a registered third-party package; None if the error is not in such code."""
    values = [point.value for group in _GROUPS for point in list_entries(group).values()]
    roots = {value.partition(":")[0].partition(".")[0] for value in values} - _OURS
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    owners = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames]
    # the last of theirs, unless it called back and ours failed below: then it may be ours
    theirs = [at for at, owner in enumerate(owners) if owner in roots]
    if not theirs or any(owner in _OURS for owner in owners[theirs[-1] + 1 :]):
        return None
    return f"package {owners[theirs[-1]]} failed: {describe_failure(error, inside=owners[theirs[-1]])}"


def describe_failure(error: BaseException, *, inside: str = "") -> str:
    """An error in words, with the file and line where it happened.

    Args:
        error: The error.
        inside: The top-level package to locate the innermost frame in; if empty, the innermost frame outside importlib
            and privcheck.
    """
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({error.filename}, line {error.lineno})"
    place = _find_place(error.__traceback__, inside)
    return f"{said} ({place})" if place else said


def _find_place(trace: TracebackType | None, inside: str) -> str:
    found = ""
    for frame, line in traceback.walk_tb(trace):
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name == inside if inside else name not in {"importlib", "privcheck"}:
            found = f"{frame.f_code.co_filename}, line {line}"
    return found


def _installed() -> tuple[object, ...]:
    """Cache key that changes when a package is installed, removed or put on the path; importlib uses the same."""
    return (*sys.meta_path, *map(_look_at, sys.path))


def _look_at(place: str) -> tuple[object, ...]:
    try:
        found = Path(place).stat()
    except OSError:
        return (place,)
    return place, found.st_dev, found.st_ino, found.st_mtime_ns


@functools.lru_cache(maxsize=32)  # milliseconds each, and a command asks dozens of times
def _registered(group: str, _state: tuple[object, ...]) -> EntryPoints:
    return entry_points(group=group)
