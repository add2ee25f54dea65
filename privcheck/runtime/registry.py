"""Algorithms, environments and audits by name, from entry points, with the presets of an agent's constants.

Entry-point groups: `privcheck.algorithms` (an `Algorithm`), `privcheck.environments` (an `Environment`),
`privcheck.environment_families` (a function from what follows the colon in `FAMILY:MEMBER` to an `Environment`),
`privcheck.views` (a `RegisteredView` of any algorithm), `privcheck.auditors` (what audits functions and declarations).

`practical`, the default, are the defaults of the agent's options; `paper` are the constants that its paper prints
(`Algorithm.printed`). Both change post-processing alone: no declared parameter, noise, sensitivity or schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, cast

from privcheck.declare.declaration import Declaration, Parameter
from privcheck.errors import DeclarationError, ParameterError, UnknownNameError
from privcheck.runtime.offline import MakePolicies, OfflineAgent
from privcheck.runtime.online import MakePlayer
from privcheck.runtime.results import (
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
from privcheck.support.plugins import list_entries, load_entry

NAME: Final = "preset"  # what users set
PRACTICAL: Final = "practical"
PAPER: Final = "paper"
PRESETS: Final = (PRACTICAL, PAPER)


def check_printed(algorithm: Algorithm) -> None:
    """Refuses printed constants that are none of the agent's, or have values that it would refuse.

    Raises:
        DeclarationError: They are, or an option or reading has the name of the presets' own.
        ParameterError: A value is refused.
    """
    options = {option.name: option for option in algorithm.options}
    readings = {reading.name: reading for reading in algorithm.readings}
    if NAME in options or NAME in readings:
        message = f"{algorithm.name}: {NAME!r} names what chooses among an agent's constants; call the option otherwise"
        raise DeclarationError(message)
    for name, value in algorithm.printed.items():
        if name in options:
            options[name].check(value)
        elif name in readings:
            readings[name].check(value)
        else:
            known = ", ".join([*options, *readings]) or "none"
            message = f"{algorithm.name}: printed constants are of its options and readings ({known}), got {name!r}"
            raise DeclarationError(message)


def expand_preset(algorithm: Algorithm, given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Returns the name of the preset, and the user's NAME=VALUE pairs with its constants where they set none.

    Raises:
        UnknownNameError: There is no such preset.
        ParameterError: One is named, and there is no agent whose constants it could choose.
    """
    own = {name: value for name, value in given.items() if name != NAME}
    name = given.get(NAME, PRACTICAL)
    if name not in PRESETS:
        raise UnknownNameError(NAME, name, PRESETS)
    if NAME in given and not algorithm.runs:
        message = f"{algorithm.name} has no agent, and a preset chooses an agent's constants: leave {NAME} out"
        raise ParameterError(message, name=NAME, given=name)
    return name, ({**algorithm.printed, **own} if name == PAPER else own)


Use = Literal["datasets", "features", "online"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A reading of an ambiguous text, or a variant: one of a few names.

    Attributes:
        name: What is chosen.
        ways: The names; the first is the default.
        meaning: What the choice is about.
        private_rewards: The way that data without a public reward function ask for; empty where they ask for none.
    """

    name: str
    ways: tuple[str, ...]
    meaning: str
    private_rewards: str = ""

    def check(self, given: str) -> str:
        """Returns the reading.

        Raises:
            ParameterError: There is no such reading.
        """
        if given not in self.ways:
            message = f"{self.name} ({self.meaning}): expected one of {', '.join(self.ways)}, got {given!r}"
            raise ParameterError(message, name=self.name, given=given)
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper whose claims are judged.

    Attributes:
        name: Of its page of findings.
        title: Of the paper.
        authors: Of the paper.
        published: Where and when it appeared, with its arXiv id or DOI.
        about: What it does with which data and what it claims, for a reader of its page of findings.
        answers: What its authors might answer to the page, each in a sentence or two.
    """

    name: str
    title: str
    authors: str
    published: str
    about: str = ""
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInstance:
    """Where audits run an agent, if those sizes and options that are asked for would hide everything from them.

    Attributes:
        sizes: Parameters of the small instance of the policy view, by name: H, S, A and K of an online agent. Those
            that the declaration lacks are left out.
        options: The agent's options under which its policy follows the releases closely; no claim may depend on them.
        values: Parameters of the declaration, by name, at which audits make half of their runs of the agent: with so
            little noise that every message can be sent. Sensitivities and laws are formulas in them.
        world: Makes the world that audits run the agent in, for sizes by name (H, S, A, K and those of the
            declaration), where it needs more than a finite model: features, of which those of state 0 and of the last
            state are as far from each other as a user can be moved. None for worlds of the auditors'.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Fraction] = field(default_factory=dict)
    values: Mapping[str, Fraction] = field(default_factory=dict)
    world: Callable[[Mapping[str, int]], World] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """A registered algorithm: its declaration, its agent, or both.

    Attributes:
        name: What users type.
        title: One line.
        source: Paper and algorithm.
        declare: Makes the declaration for the chosen readings; None for a non-private baseline.
        readings: What `declare` may be asked for.
        options: The agent's own parameters; their defaults are the preset `practical`.
        printed: The constants that the paper prints, by the name of the option or reading, where `practical` has
            others: the preset `paper`. Post-processing alone may depend on them.
        learn: Learns from a dataset without privacy; None where it does not.
        offline: The private agent that learns from a dataset; None where there is none.
        paper: What it is from, where it is from a paper that is judged; None otherwise.
        elsewhere: Parameters by name, as users give them, at which the page of findings judges the claim too: where the
            verdict is another than at the defaults.
        online: Makes the agent that learns while it acts, one user after the other; None where there is none. What is
            made here is what runs and what audits drive. The number of episodes is the declaration's parameter `K`, or
            the agent's option of that name.
        policies: Makes the step from noisy statistics to policies ready, of an agent of which no more is written: the
            policy view draws the declared noise for it, at the sizes of `instance`. None where there is none.
        instance: Where audits run the agent.
        twin: The registered online algorithm that does the same without privacy; None where there is none.
        instead: The registered algorithm of the same kind that learns at smaller budgets; empty where there is none.
        release_noise: Whether a fast online agent draws release noise where it is asked for; plain ones and those that
            learn from data do.
        environment: The registered environment that `check` takes where none is named; empty for the usual one.

    Raises:
        DeclarationError: A printed constant is none of the agent's.
        ParameterError: Its value is refused.
    """

    name: str
    title: str
    source: str
    declare: Callable[[Mapping[str, str]], Declaration] | None
    readings: tuple[Reading, ...] = ()
    options: tuple[Parameter, ...] = ()
    printed: Mapping[str, str] = field(default_factory=dict)
    learn: Callable[[RunRequest], RunResult] | None = None
    offline: OfflineAgent | None = None
    paper: Paper | None = None
    elsewhere: tuple[Mapping[str, str], ...] = ()
    online: MakePlayer | None = None
    policies: MakePolicies | None = None
    instance: AuditInstance = field(default_factory=AuditInstance)
    twin: str | None = None
    instead: str = ""
    release_noise: bool = False
    environment: str = ""

    def __post_init__(self) -> None:
        check_printed(self)

    def learn_from(self, request: RunRequest) -> RunResult:
        """Returns what the agent learned from a dataset.

        Raises:
            ParameterError: It does not learn from data, or refuses the request.
        """
        if self.offline is not None:
            from privcheck.runtime.offline import run

            return run(self.offline, request)
        if self.learn is None:
            message = f"{self.name} has no agent that learns from data; `privcheck list` shows which have one"
            raise ParameterError(message, name=self.name)
        return self.learn(request)

    def play(self, request: OnlineRequest) -> OnlineResult:
        """Returns what the agent did that learns while it acts.

        Raises:
            ParameterError: It does not learn while it acts, or refuses the request.
        """
        from privcheck.runtime.replicates import run

        if self.online is None:
            raise ParameterError(f"{self.name} does not learn as it acts", name=self.name)
        return run(self.online, request)

    @property
    def publishes(self) -> bool:
        """Returns whether it can be run with release noise."""
        from privcheck.runtime.plain_agents import PlainAgent

        return self.offline is not None or self.release_noise or isinstance(self.online, PlainAgent)

    @property
    def runs(self) -> bool:
        """Returns whether there is an agent that can be run."""
        return self.online is not None or self.from_data

    @property
    def from_data(self) -> bool:
        """Returns whether it learns from a dataset."""
        return self.learn is not None or self.offline is not None


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
        usual_for: What it is taken for where no environment is named: for "datasets" to learn from, for such with
            "features" to regress on, or for "online" agents.
    """

    name: str
    title: str
    source: str
    parameters: tuple[Parameter, ...]
    sample: Callable[[Mapping[str, int], int], Dataset] | None = None
    model: Callable[[Mapping[str, int], int], World] | None = None
    usual_for: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredView:
    """A way to look at any algorithm: what an audit sees of it, and what it says of that.

    Attributes:
        name: What users type after `--view`.
        place: Among the others: they run and are shown in this order.
        asks: What it asks, in a sentence, for reports.
        leaves_open: What a result without a violation does not say, in a sentence or two, for reports.
        trials: The default number of trials for an algorithm.
        lacks: Says why an algorithm in its chosen readings has no such view; empty where it has.
        run: Runs it; the result says whether the agent was run.
    """

    name: AuditView
    place: int
    asks: str
    leaves_open: str
    trials: Callable[[Algorithm], int]
    lacks: Callable[[Algorithm, Declaration], str]
    run: Callable[[AuditRequest, Algorithm], AuditResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """How an algorithm is audited: one plan for all, from what is registered.

    Attributes:
        algorithm: What is audited, as it is registered.
        by_name: All registered views, in their order; `lacks` says which of them it has.
    """

    algorithm: Algorithm
    by_name: Mapping[AuditView, RegisteredView]

    @property
    def name(self) -> str:
        """Returns the algorithm's name."""
        return self.algorithm.name

    @property
    def views(self) -> tuple[AuditView, ...]:
        """Returns the names of the views."""
        return tuple(self.by_name)

    @property
    def trials(self) -> Mapping[AuditView, int]:
        """Returns the default number of trials by view."""
        return {name: view.trials(self.algorithm) for name, view in self.by_name.items()}

    def lacks(self, declaration: Declaration, view: AuditView) -> str:
        """Returns why a declaration of the algorithm cannot be audited from a view; empty where it can."""
        return self.by_name[view].lacks(self.algorithm, declaration)

    def audit(self, request: AuditRequest) -> AuditResult:
        """Returns the audit of the request's view.

        Raises:
            ParameterError: There is no such view, or it refuses the request.
            AuditError: What was audited put out something that is not finite.
        """
        if request.view not in self.by_name:
            message = f"{self.algorithm.name}: expected a view out of {', '.join(self.by_name)}, got {request.view!r}"
            raise ParameterError(message, name="view", given=request.view)
        return self.by_name[request.view].run(request, self.algorithm)


def names(group: str) -> list[str]:
    """Returns the registered names of one kind, sorted, without loading them.

    Args:
        group: "algorithms", "environments", "environment_families" or "auditors".
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
    """Returns the audit plan for the algorithm of that name: all registered views that it can have.

    Raises:
        UnknownNameError: There is no such algorithm.
    """
    return plan_for(algorithm(name))


def plan_for(subject: Algorithm) -> AuditPlan:
    """Returns the audit plan of an algorithm, whether or not it is registered."""
    views = [cast("RegisteredView", load_entry("views", name)) for name in list_entries("views")]
    return AuditPlan(algorithm=subject, by_name={view.name: view for view in sorted(views, key=lambda one: one.place)})
