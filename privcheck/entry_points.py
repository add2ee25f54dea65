"""What is registered under a name: the one place that reads entry points, ours and third parties' alike."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from privcheck.errors import ParameterError, UnknownNameError


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
        ParameterError: Two packages register other things under it: the order of the path would decide what is audited.
    """
    points = entry_points(group=f"privcheck.{group}", name=name)
    kind = kind or group.rstrip("s")
    if not points:
        raise UnknownNameError(kind, name, sorted(list_entries(group)))
    owners = {point.value: point.dist.name if point.dist is not None else "?" for point in points}
    if len(owners) > 1:
        places = " and ".join(f"{value} (package {owner})" for value, owner in owners.items())
        raise ParameterError(
            f"{kind} {name!r} is registered twice, as {places}: uninstall one", name="name", given=name
        )
    return next(iter(points)).load()
