"""What is said of a run in which nothing was learned. The fields are those of the JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
