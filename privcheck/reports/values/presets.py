"""What is said of an agent's constants. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
