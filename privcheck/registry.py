"""Algorithms, environments and audits by name, from entry points: third parties register their own the same way.

Entry-point groups: `privcheck.algorithms` (an `Algorithm`), `privcheck.environments` (an `Environment`),
`privcheck.environment_families` (a function from what follows the colon in `FAMILY:MEMBER` to an `Environment`),
`privcheck.audits` (an `AuditPlan` under its algorithm's name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from privcheck.declaration import Declaration, Parameter
from privcheck.entry_points import list_entries, load_entry
from privcheck.errors import ParameterError, UnknownNameError
from privcheck.results import (
    AuditRequest,
    AuditResult,
    AuditView,
    Dataset,
    OnlineRequest,
    OnlineResult,
    RunRequest,
    RunResult,
    World,
)

Use = Literal["datasets", "online"]
ANY_PLAN = "any"  # the entry point of the plan for algorithms that have none of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A reading of an ambiguous text, or a variant: one of a few names.

    Attributes:
        name: What is chosen.
        readings: The names; the first is the default.
        meaning: What the choice is about.
        private_rewards: The reading that data without a public reward function ask for; empty where they ask for none.
    """

    name: str
    readings: tuple[str, ...]
    meaning: str
    private_rewards: str = ""

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
class Paper:
    """A paper whose claims are judged.

    Attributes:
        name: Of its page of findings.
        title: Of the paper.
        authors: Of the paper.
    """

    name: str
    title: str
    authors: str


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
        agent: Learns from a dataset; None where it does not.
        paper: What it is from, where it is from a paper that is judged; None otherwise.
        online: Learns while it acts, one user after the other; None where it does not. The number of episodes is the
            declaration's parameter `K`, or the agent's option of that name.
        twin: The registered online algorithm that does the same without privacy; None where there is none.
    """

    name: str
    title: str
    source: str
    declare: Callable[[Mapping[str, str]], Declaration] | None
    choices: tuple[Choice, ...] = ()
    options: tuple[Parameter, ...] = ()
    agent: Callable[[RunRequest], RunResult] | None = None
    paper: Paper | None = None
    online: Callable[[OnlineRequest], OnlineResult] | None = None
    twin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A registered source of trajectories with a known truth.

    Attributes:
        name: What users type.
        title: One line.
        source: Where the model comes from.
        parameters: Its own, `n` (simulated users, for datasets only) and `H` among them.
        sample: Draws a dataset for the parameters' values and a seed; None where only online agents can use it.
        model: Makes the model that online agents act in, for the parameters' values and a seed (of a model that is
            itself drawn at random); None where there is none.
        usual_for: What it is taken for where no environment is named: for "datasets" to learn from, or for "online"
            agents.
    """

    name: str
    title: str
    source: str
    parameters: tuple[Parameter, ...]
    sample: Callable[[Mapping[str, int], int], Dataset] | None = None
    model: Callable[[Mapping[str, int], int], World] | None = None
    usual_for: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """A registered way to attack one algorithm.

    Attributes:
        name: The algorithm's name.
        views: Which audits there are.
        trials: The default number of trials by view.
        audit: Runs one.
        declines: Says why a declaration cannot be audited; empty where it can. None where the plan is made for one.
        lacks: Says why one of the views cannot be had of a declaration; empty where it can. None where all can.
    """

    name: str
    views: tuple[AuditView, ...]
    trials: Mapping[str, int]
    audit: Callable[[AuditRequest], AuditResult]
    declines: Callable[[Declaration], str] | None = None
    lacks: Callable[[Declaration, AuditView], str] | None = None

    def missing(self, declaration: Declaration, view: AuditView) -> str:
        """Returns why a declaration cannot be audited, from this view or at all; empty where it can."""
        why = self.declines(declaration) if self.declines is not None else ""
        return why or (self.lacks(declaration, view) if self.lacks is not None else "")


def names(group: str) -> list[str]:
    """Returns the registered names of one kind, sorted, without loading them.

    Args:
        group: "algorithms", "environments", "environment_families" or "audits".
    """
    return sorted(list_entries(group))


def algorithm(name: str) -> Algorithm:
    """Returns the algorithm of that name.

    Raises:
        UnknownNameError: There is none.
    """
    return cast("Algorithm", load_entry("algorithms", name))


def environment(name: str) -> Environment:
    """Returns the environment of that name, or of that family: `FAMILY:MEMBER`.

    Raises:
        UnknownNameError: There is none.
    """
    family, colon, member = name.partition(":")
    if colon and family in names("environment_families"):
        return cast("Callable[[str], Environment]", load_entry("environment_families", family))(member)
    if not has_environment(name):
        families = [f"{family}:…" for family in names("environment_families")]
        raise UnknownNameError("environment", name, [*names("environments"), *families])
    return cast("Environment", load_entry("environments", name))


def has_environment(name: str) -> bool:
    """Returns whether that is an environment's name, or a family's with a member behind a colon; loads nothing."""
    family, colon, _ = name.partition(":")
    return name in names("environments") or bool(colon and family in names("environment_families"))


def usual_environment(use: Use) -> str:
    """Returns the name of the environment that is taken where none is named: the first, by name, that offers itself.

    Raises:
        UnknownNameError: None does.
    """
    for name in names("environments"):
        if use in environment(name).usual_for:
            return name
    raise UnknownNameError("environment", f"usual for {use}", names("environments"))


def audit_plan(name: str) -> AuditPlan:
    """Returns the audit plan for the algorithm of that name: its own, or the plan for any declaration.

    Raises:
        UnknownNameError: There is no such algorithm, or no plan at all.
    """
    points = list_entries("audits")
    if name not in points and name in list_entries("algorithms") and ANY_PLAN in points:
        return cast("AuditPlan", load_entry("audits", ANY_PLAN))
    return cast("AuditPlan", load_entry("audits", name))
