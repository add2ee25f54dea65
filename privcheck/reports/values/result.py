"""What every result has (a short repr, a table, its JSON, a file), and small values that several results share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from privcheck.support.display import Brief
from privcheck.support.encoding import document


class Result(Brief):
    """A report value that commands and Python functions return: as `Brief`, with its JSON document."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON document: what the command of the same name prints with `--json`.

        Raises:
            ParameterError: There is a NaN in it, or what JSON has no form for.
        """
        return document(self)

    def save(self, path: Path | str) -> Path:
        """Writes the JSON document, or the report's page where there is one, and returns the path.

        Args:
            path: A name that ends in .json or .html; directories on the way are made.

        Raises:
            ParameterError: The name ends otherwise, or nothing of this kind has a page.
            PrivcheckError: It cannot be written; what was there before is still there.
        """
        from privcheck.reports.files import keep  # Jinja2 and Matplotlib only where a page is made

        return keep(self, Path(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConstant:
    """One of an agent's constants, which post-processing alone depends on.

    Attributes:
        name: Of the option, or of the reading.
        practical: What the default preset has.
        paper: What the paper prints, as the preset `paper` has it.
        meaning: What it is.
    """

    name: str
    practical: str
    paper: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetUsed:
    """Which preset ran.

    Attributes:
        name: "practical" or "paper".
        same: Whether the agent has one set of constants for both.
        constants: Those by which its presets differ, as they were used.
        overridden: Those of them that the user set.
    """

    name: str
    same: bool
    constants: Mapping[str, str] = field(default_factory=dict)
    overridden: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Returns the constants by which the presets differ, in words."""
        if self.same:
            return "the agent has one set of constants: practical and paper are the same"
        set_by_user = dict.fromkeys(self.overridden, ", as set")
        return "; ".join(f"{name} {value}{set_by_user.get(name, '')}" for name, value in self.constants.items())

    @property
    def words(self) -> str:
        """Returns the preset with its constants, in words."""
        return f"{self.name} ({self.note})"


Cause = Literal["bonus", "unchanged", "noise", "penalty", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLearned:
    """Why a run learned nothing, and what would help.

    Attributes:
        because: The reason, as the rest of a sentence.
        advice: What to try, likewise.
        cause: The reason in a word: the bonus of an optimistic agent or the penalty of a pessimistic one exceeds what
            can be earned, the policy never changed, or the noise; "unknown" where there is no evidence for any of
            them, and in older reports.
    """

    because: str
    advice: str
    cause: Cause = "unknown"

    @property
    def words(self) -> str:
        """Returns the rest of a sentence whose subject is the agent."""
        return f"did not learn, because {self.because}; try {self.advice}"


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
