"""What is registered under a name: the one place that reads entry points, ours and third parties' alike."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from privcheck.errors import UnknownNameError


def list_entries(group: str) -> dict[str, EntryPoint]:
    """Returns the entry points of a group by name, none of them loaded.

    Args:
        group: What follows `privcheck.` in the group's name: "algorithms", "auditors", …
    """
    return {point.name: point for point in entry_points(group=f"privcheck.{group}")}


def load_entry(group: str, name: str, *, kind: str = "") -> object:
    """Returns what is registered under a name.

    Args:
        group: As in `list_entries`.
        name: Of the entry point.
        kind: What the error calls it; the group's name in the singular where nothing is said.

    Raises:
        UnknownNameError: There is nothing of that name.
    """
    points = list_entries(group)
    if name not in points:
        raise UnknownNameError(kind or group.rstrip("s"), name, sorted(points))
    return points[name].load()
