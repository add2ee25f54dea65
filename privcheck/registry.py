"""Algorithms, environments and audits by name, from entry points: third parties register their own the same way.

Entry-point groups: `privcheck.algorithms` (an `Algorithm`), `privcheck.environments` (an `Environment`),
`privcheck.audits` (an `AuditPlan` under its algorithm's name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from privcheck.declaration import Declaration, Parameter
from privcheck.errors import ParameterError, UnknownNameError
from privcheck.results import AuditRequest, AuditResult, AuditView, Dataset, RunRequest, RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A reading of an ambiguous text, or a variant: one of a few names.

    Attributes:
        name: What is chosen.
        readings: The names; the first is the default.
        meaning: What the choice is about.
    """

    name: str
    readings: tuple[str, ...]
    meaning: str

    def check(self, given: str) -> str:
        """Returns the reading.

        Raises:
            ParameterError: There is no such reading.
        """
        if given not in self.readings:
            message = f"{self.name} ({self.meaning}): expected one of {', '.join(self.readings)}, got {given!r}"
            raise ParameterError(message, name=self.name, given=given)
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """A registered algorithm: its declaration, its agent, or both.

    Attributes:
        name: What users type.
        title: One line.
        source: Paper and algorithm.
        declare: Makes the declaration for the chosen readings; None for a non-private baseline.
        choices: The readings `declare` takes.
        options: The agent's own parameters.
        agent: Learns from a dataset; None where only the declaration is there.
    """

    name: str
    title: str
    source: str
    declare: Callable[[Mapping[str, str]], Declaration] | None
    choices: tuple[Choice, ...] = ()
    options: tuple[Parameter, ...] = ()
    agent: Callable[[RunRequest], RunResult] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A registered source of trajectories with a known truth.

    Attributes:
        name: What users type.
        title: One line.
        source: Where the model comes from.
        parameters: Its own, `users` and `H` among them.
        sample: Draws a dataset for the parameters' values and a seed.
    """

    name: str
    title: str
    source: str
    parameters: tuple[Parameter, ...]
    sample: Callable[[Mapping[str, int], int], Dataset]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """A registered way to attack one algorithm.

    Attributes:
        name: The algorithm's name.
        views: Which audits there are.
        trials: The default number of trials by view.
        audit: Runs one.
    """

    name: str
    views: tuple[AuditView, ...]
    trials: Mapping[str, int]
    audit: Callable[[AuditRequest], AuditResult]


def names(group: str) -> list[str]:
    """Returns the registered names of one kind ("algorithms", "environments", "audits"), without loading them."""
    return sorted(_points(group))


def algorithm(name: str) -> Algorithm:
    """Returns the algorithm of that name.

    Raises:
        UnknownNameError: There is none.
    """
    return cast("Algorithm", _load("algorithms", name))


def environment(name: str) -> Environment:
    """Returns the environment of that name.

    Raises:
        UnknownNameError: There is none.
    """
    return cast("Environment", _load("environments", name))


def audit_plan(name: str) -> AuditPlan:
    """Returns the audit plan for the algorithm of that name.

    Raises:
        UnknownNameError: There is none.
    """
    return cast("AuditPlan", _load("audits", name))


def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"privcheck.{group}")}


def _load(group: str, name: str) -> object:
    points = _points(group)
    if name not in points:
        raise UnknownNameError(group.rstrip("s"), name, sorted(points))
    return points[name].load()
