"""Common methods of results (short repr, table, JSON document, saving), and small values that several results share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from privcheck.support.display import Brief
from privcheck.support.encoding import document

T = TypeVar("T")


class Result(Brief):
    """A report value returned by commands and Python functions: a `Brief` with a JSON document."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON document: the output of the command of the same name with `--json`.

        Raises:
            ParameterError: The value contains a NaN, or a type that JSON cannot express.
        """
        return document(self)

    def save(self, path: Path | str) -> Path:
        """Write the JSON document, or the report's page if there is one, and return the path.

        Args:
            path: A name that ends in .json or .html; missing directories are created.

        Raises:
            ParameterError: The name has another ending, or results of this kind have no page.
            PrivcheckError: The file cannot be written; the previous one is unchanged.
        """
        from privcheck.reports.files import keep  # Jinja2 and Matplotlib only where a page is made

        return keep(self, Path(path))


def take_fields(kind: type[T], value: Any, **others: Any) -> T:
    """A report value with the public fields that a domain value has under the same names, and the others as given."""
    public = {one.name for one in fields(cast("Any", kind)) if not one.name.startswith("_")}
    return kind(**{name: getattr(value, name) for name in public - others.keys() if hasattr(value, name)}, **others)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConstant:
    """A constant of an agent; only post-processing depends on it.

    Attributes:
        name: Name of the option or reading.
        practical: Value in the default preset.
        paper: Value printed in the paper, in the preset `paper`.
        meaning: Meaning in words.
    """

    name: str
    practical: str
    paper: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetUsed:
    """The preset of a run.

    Attributes:
        name: "practical" or "paper".
        same: Whether both presets have the same constants.
        constants: Used values of the constants in which the presets differ.
        overridden: Names of those that the user set.
    """

    name: str
    same: bool
    constants: Mapping[str, str] = field(default_factory=dict)
    overridden: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """The constants in which the presets differ, in words."""
        if self.same:
            return "the agent has one set of constants: practical and paper are the same"
        set_by_user = dict.fromkeys(self.overridden, ", as set")
        return "; ".join(f"{name} {value}{set_by_user.get(name, '')}" for name, value in self.constants.items())

    @property
    def words(self) -> str:
        """The preset with its constants, in words."""
        return f"{self.name} ({self.note})"


Cause = Literal["bonus", "unchanged", "noise", "penalty", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLearned:
    """Why a run learned nothing, and what would help.

    Attributes:
        because: The reason, as a clause after "because".
        advice: What to try, as the object of "try".
        cause: The reason in a word: the bonus of an optimistic agent or the penalty of a pessimistic one exceeds the
            achievable return, the policy never changed, or the noise; "unknown" without evidence for any of them, and
            in older reports.
    """

    because: str
    advice: str
    cause: Cause = "unknown"

    @property
    def words(self) -> str:
        """The predicate of a sentence with the agent as its subject."""
        return f"did not learn, because {self.because}; try {self.advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """A part of the work.

    Attributes:
        what: Name of the part.
        sizes: Sizes by name.
        seconds: Estimated duration.
        bytes: Estimated memory.
    """

    what: str
    sizes: Mapping[str, int]
    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork(Brief):
    """The planned work of a command and its cost; nothing was drawn or written.

    Attributes:
        command: Name of the command.
        algorithms: Names of the algorithms.
        parameters: Parameters of each algorithm, as exact texts.
        parts: Parts of the work, in order.
        seconds: Estimated duration of all parts.
        bytes: Estimated memory of the largest part.
        within: Whether both are within the limits; beyond them --yes is needed.
        guarantee: Claim and cost of the releases, for each algorithm.
        writes: Output path; None for no output.
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
