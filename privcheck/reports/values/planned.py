"""What a command would do. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privcheck.brief import Brief


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """A part of the work.

    Attributes:
        what: What is done.
        sizes: How much of it, by name.
        seconds: About how long that takes.
        bytes: About how much memory that takes.
    """

    what: str
    sizes: Mapping[str, int]
    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork(Brief):
    """What a command would do, at which cost; nothing was drawn or written.

    Attributes:
        command: Its name.
        algorithms: Their names.
        parameters: Of each algorithm, as exact texts.
        parts: Of the work, in order.
        seconds: Of all parts, about.
        bytes: Of the largest part, about.
        within: Whether both are below the limits, beyond which --yes is needed.
        guarantee: What is claimed and what the releases cost, for each algorithm.
        writes: Where to; None for nowhere.
    """

    command: str
    algorithms: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, str]]
    parts: tuple[PlannedPart, ...]
    seconds: float
    bytes: float
    within: bool
    guarantee: Mapping[str, str]
    writes: str | None
