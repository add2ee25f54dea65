"""A part of a job: an event by its function and its parameters, which may be parts themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

# under zero-out each event that names a relation has a price, so that any two of them compose
RELATION: Final = {"relation": "zero-out"}
COUNTED_OUTSIDE: Final = ("nested", "group", "user_level", "parallel", "plan", "profile")  # they take no `count`
COUNTED: Final = {"allocated": "epochs"}  # … or by another name


@dataclass(frozen=True, slots=True)
class Part:
    """One event of a job: its kind, its parameters and how often."""

    kind: str
    parameters: dict[str, Any]
    count: int = 1

    def __str__(self) -> str:
        if self.kind in COUNTED_OUTSIDE:
            return self._around() if self.count == 1 else f"{self.count} * {self._around()}"
        inside = [
            f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}"
            for name, value in self.parameters.items()
        ]
        if self.count != 1:
            inside.append(f"{COUNTED.get(self.kind, 'count')}={self.count}")
        return f"acc.{self.kind}({', '.join(inside)})"

    def _around(self) -> str:
        inner = ", ".join(str(value) for value in self.parameters.values() if isinstance(value, Part))
        numbers = "".join(f", {name}={value}" for name, value in self.parameters.items() if not isinstance(value, Part))
        if self.kind == "nested":
            return inner
        name = {"plan": "acc.Plan.of", "profile": "profile_of"}.get(self.kind, f"acc.{self.kind}")
        return f"{name}({inner}{numbers})" + (".curve" if self.kind == "plan" else "")


def nice(x: float) -> float:
    """Returns three digits, so that a job can be read."""
    return float(f"{x:.3g}")


def logs(rng: np.random.Generator, low: float, high: float) -> float:
    """Returns a number between 10^low and 10^high."""
    return nice(10 ** rng.uniform(low, high))
