"""What is said of a run in which nothing was learned. The fields are those of the JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLearned:
    """Why a run learned nothing, and what would help.

    Attributes:
        because: The reason, as the rest of a sentence.
        advice: What to try, likewise.
    """

    because: str
    advice: str

    @property
    def words(self) -> str:
        """Returns the rest of a sentence whose subject is the agent."""
        return f"did not learn, because {self.because}; try {self.advice}"
