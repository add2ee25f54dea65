"""Algorithms, environments and audits by name, from entry points, with the presets of an agent's constants.

Entry-point groups: `privcheck.algorithms` (an `Algorithm`), `privcheck.environments` (an `Environment`),
`privcheck.environment_families` (a function from the part after the colon in `FAMILY:MEMBER` to an `Environment`),
`privcheck.views` (a `RegisteredView` of any algorithm), `privcheck.auditors` (auditors of functions and declarations).

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
from privcheck.runtime.conformance import Line
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
from privcheck.runtime.trained import Simulated, TrainedAgent
from privcheck.support.plugins import list_entries, load_entry

NAME: Final = "preset"  # what users set
PRACTICAL: Final = "practical"
PAPER: Final = "paper"
PRESETS: Final = (PRACTICAL, PAPER)


def check_printed(algorithm: Algorithm) -> None:
    """Refuse printed constants that the agent does not have, or with values that it would refuse.

    Raises:
        DeclarationError: The agent has no such constant, or an option or reading is named like the presets.
        ParameterError: A value is refused.
    """
    options = {option.name: option for option in algorithm.options}
    readings = {reading.name: reading for reading in algorithm.readings}
    if NAME in options or NAME in readings:
        message = f"{algorithm.name}: {NAME!r} is the name of the choice among an agent's constants; rename the option"
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
    """Name of the preset, and the user's NAME=VALUE pairs with its constants for those they do not set.

    Raises:
        UnknownNameError: There is no such preset.
        ParameterError: A preset is named, but the algorithm has no agent.
    """
    own = {name: value for name, value in given.items() if name != NAME}
    name = given.get(NAME, PRACTICAL)
    if name not in PRESETS:
        raise UnknownNameError(NAME, name, PRESETS)
    if NAME in given and not algorithm.runs:
        message = f"{algorithm.name} has no agent, and a preset chooses an agent's constants: leave {NAME} out"
        raise ParameterError(message, name=NAME, given=name)
    return name, ({**algorithm.printed, **own} if name == PAPER else own)


Use = Literal["datasets", "features", "online", "tasks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A reading of an ambiguous text, or a variant: one of a few names.

    Attributes:
        name: Name of the choice.
        ways: The options; the first is the default.
        meaning: What the choice is about.
        private_rewards: The option required by data without a public reward function; empty if there is no such
            requirement.
    """

    name: str
    ways: tuple[str, ...]
    meaning: str
    private_rewards: str = ""

    def check(self, given: str) -> str:
        """Check that a reading exists, and return it.

        Raises:
            ParameterError: There is no such reading.
        """
        if given not in self.ways:
            message = f"{self.name} ({self.meaning}): expected one of {', '.join(self.ways)}, got {given!r}"
            raise ParameterError(message, name=self.name, given=given)
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper with claims that are judged.

    Attributes:
        name: Of its page of findings.
        title: Of the paper.
        authors: Of the paper.
        published: Where and when it appeared, with its arXiv id or DOI.
        about: Its method, data and claims, for a reader of its page of findings.
        answers: Possible answers of its authors to the page, each in a sentence or two.
    """

    name: str
    title: str
    authors: str
    published: str
    about: str = ""
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A theorem's upper bound on regret, or on the gap of a learned policy, as the exponents of its two terms.

    Logarithms are left out. Terms are in the parameters that users sweep: T = KH is written out.

    Attributes:
        source: The theorem.
        main: Exponents of the term without privacy, by parameter.
        privacy: Exponents of the term that privacy adds.
    """

    source: str
    main: Mapping[str, Fraction]
    privacy: Mapping[str, Fraction]


def rate(source: str, main: str, privacy: str) -> Rate:
    """Make a rate from texts such as "S 1/2, A 1/2, H 2, K 1/2"."""
    terms = [
        {name: Fraction(power) for name, power in (one.split() for one in term.split(","))} for term in (main, privacy)
    ]
    return Rate(source=source, main=terms[0], privacy=terms[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInstance:
    """Sizes and options for audits of an agent, if the requested ones would hide all leaks.

    Attributes:
        sizes: Parameters of the small instance of the policy view, by name: H, S, A and K of an online agent. Those
            that the declaration lacks are left out.
        options: The agent's options under which its policy follows the releases closely; no claim may depend on them.
        values: Parameters of the declaration, by name, for half of the audits' runs of the agent: with so little noise
            that every message can be sent. Sensitivities and laws are formulas in them.
        world: Makes the world for audits of the agent, for sizes by name (H, S, A, K and those of the declaration), if
            it needs more than a finite model: features, with those of state 0 and of the last state as far apart as the
            sensitivity to one user allows. None for the auditors' own worlds.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Fraction] = field(default_factory=dict)
    values: Mapping[str, Fraction] = field(default_factory=dict)
    world: Callable[[Mapping[str, int]], World] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """A registered algorithm: its declaration, its agent, or both.

    Attributes:
        name: The name that users type.
        title: One line.
        source: Paper and algorithm.
        declare: Makes the declaration for the chosen readings; None for a non-private baseline.
        readings: The readings that `declare` accepts.
        options: The agent's own parameters; their defaults are the preset `practical`.
        printed: The constants that the paper prints, by the name of the option or reading, where they differ from
            `practical`: the preset `paper`. Post-processing alone may depend on them.
        learn: Learns from a dataset without privacy; None if it does not.
        offline: The private agent that learns from a dataset; None if there is none.
        paper: The judged paper that it is from; None if there is none.
        elsewhere: Parameters by name, as users give them, at which the page of findings judges the claim too, because
            the verdict differs from that at the defaults.
        online: Makes the agent that learns while it acts, one user after the other; None if there is none. The same
            agent is run and audited. The number of episodes is the declaration's parameter `K`, or the agent's option
            of that name.
        trained: The agent that trains a policy on episodes of users of a task; None if there is none.
        policies: Prepares the step from noisy statistics to policies, for an agent with only that step implemented: the
            policy view draws the declared noise for it, at the sizes of `instance`. None if there is none.
        instance: Sizes and options for audits of the agent.
        twin: The registered online algorithm that does the same without privacy, to say what privacy costs: its own
            name for itself with its noise off, or a non-private algorithm; None if there is none.
        twin_settings: Settings that make another algorithm the same agent, beside the options and readings that both
            have: a value as users give it, or the name of one of this algorithm's parameters.
        twin_differs: Reasons in the paper why the twin acts otherwise even without noise, in sentences that are shown
            beside its figure, by the reading as users give it (NAME=WAY) in which it does.
        instead: The registered algorithm of the same kind that learns at smaller budgets; empty if there is none.
        release_noise: Whether a fast online agent can draw release noise; plain ones and those that learn from data
            always can.
        environment: The registered environment that `check` uses by default; empty for the usual one.
        conformance: The printed pseudo-code line by line, under the preset `paper`; empty if no paper prints it.

    Raises:
        DeclarationError: A printed constant is not one of the agent's.
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
    trained: TrainedAgent | None = None
    policies: MakePolicies | None = None
    instance: AuditInstance = field(default_factory=AuditInstance)
    twin: str | None = None
    twin_settings: Mapping[str, str] = field(default_factory=dict)
    twin_differs: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""
    release_noise: bool = False
    environment: str = ""
    rate: Rate | None = None
    conformance: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        check_printed(self)

    def learn_from(self, request: RunRequest) -> RunResult:
        """Run the agent on a dataset.

        Raises:
            ParameterError: The algorithm does not learn from data, or refuses the request.
        """
        if self.offline is not None:
            from privcheck.runtime.offline import run

            return run(self.offline, request)
        if self.learn is None:
            message = f"{self.name} has no agent that learns from data; `privcheck list` shows those with one"
            raise ParameterError(message, name=self.name)
        return self.learn(request)

    def play(self, request: OnlineRequest) -> OnlineResult:
        """Run the agent that learns while it acts.

        Raises:
            ParameterError: The algorithm does not learn while it acts, or refuses the request.
        """
        from privcheck.runtime.replicates import run

        if self.online is None:
            raise ParameterError(f"{self.name} does not learn as it acts", name=self.name)
        return run(self.online, request)

    def play_without_noise(self, request: OnlineRequest) -> OnlineResult:
        """Run the agent as a twin: it draws no noise, and its setting says with which constants it plans.

        Raises:
            ParameterError: The algorithm does not learn while it acts, or refuses the request.
        """
        from privcheck.runtime.replicates import run_without_noise

        if self.online is None:
            raise ParameterError(f"{self.name} does not learn as it acts", name=self.name)
        return run_without_noise(self.online, request)

    @property
    def publishes(self) -> bool:
        """Whether it can be run with release noise."""
        from privcheck.runtime.plain_agents import PlainAgent

        draws = self.offline is not None or self.trained is not None or self.release_noise
        return draws or isinstance(self.online, PlainAgent)

    @property
    def runs(self) -> bool:
        """Whether there is an agent that can be run."""
        return self.online is not None or self.trained is not None or self.from_data

    @property
    def from_data(self) -> bool:
        """Whether it learns from a dataset."""
        return self.learn is not None or self.offline is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A registered source of trajectories with known true values.

    Attributes:
        name: The name that users type.
        title: One line.
        source: Origin of the model.
        parameters: Its own, `n` (simulated users, for datasets only) and `H` among them.
        sample: Draws a dataset for the parameters' values and a seed; None if only online agents can use it.
        model: Makes the model that online agents act in, for the parameters' values and a seed (for a model that is
            itself drawn at random); None if there is none.
        task: Makes the simulated users of a task, on whose episodes policies are trained, for the values of
            `task_parameters`; None if there is none.
        task_parameters: Parameters of the task.
        usual_for: Uses for which it is the default: "datasets" to learn from, datasets with "features" to regress on,
            "online" agents, or "tasks" to train policies for.
    """

    name: str
    title: str
    source: str
    parameters: tuple[Parameter, ...]
    sample: Callable[[Mapping[str, int], int], Dataset] | None = None
    model: Callable[[Mapping[str, int], int], World] | None = None
    task: Callable[[Mapping[str, Fraction]], Simulated] | None = None
    task_parameters: tuple[Parameter, ...] = ()
    usual_for: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredView:
    """A view for audits of any algorithm: the observed outputs, and the statement made about them.

    Attributes:
        name: The name that users type after `--view`.
        place: Position among the views: they run and are shown in this order.
        asks: The question it answers, in a sentence, for reports.
        leaves_open: What a result without a violation does not say, in a sentence or two, for reports.
        trials: The default number of trials for an algorithm.
        lacks: Reason why an algorithm in its chosen readings has no such view; empty if it has.
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
    """Audit of an algorithm: one plan for all, from the registered views.

    Attributes:
        algorithm: The audited algorithm, as it is registered.
        by_name: All registered views, in their order; `lacks` says which of them do not apply.
    """

    algorithm: Algorithm
    by_name: Mapping[AuditView, RegisteredView]

    @property
    def name(self) -> str:
        """The algorithm's name."""
        return self.algorithm.name

    @property
    def views(self) -> tuple[AuditView, ...]:
        """The names of the views."""
        return tuple(self.by_name)

    @property
    def trials(self) -> Mapping[AuditView, int]:
        """Default number of trials by view."""
        return {name: view.trials(self.algorithm) for name, view in self.by_name.items()}

    def lacks(self, declaration: Declaration, view: AuditView) -> str:
        """Reason why a declaration of the algorithm cannot be audited from a view; empty if it can."""
        return self.by_name[view].lacks(self.algorithm, declaration)

    def audit(self, request: AuditRequest) -> AuditResult:
        """Run the audit of the request's view.

        Raises:
            ParameterError: There is no such view, or it refuses the request.
            AuditError: The audited algorithm output a value that is not finite.
        """
        if request.view not in self.by_name:
            message = (
                f"{self.algorithm.name}: expected one of the views {', '.join(self.by_name)}, got {request.view!r}"
            )
            raise ParameterError(message, name="view", given=request.view)
        return self.by_name[request.view].run(request, self.algorithm)


def names(group: str) -> list[str]:
    """The registered names of one kind, sorted, without loading them.

    Args:
        group: "algorithms", "environments", "environment_families" or "auditors".
    """
    return sorted(list_entries(group))


def algorithm(name: str) -> Algorithm:
    """Load the algorithm of that name.

    Raises:
        UnknownNameError: There is no such algorithm.
    """
    return cast("Algorithm", load_entry("algorithms", name))


def environment(name: str) -> Environment:
    """Load the environment of that name, or of that family: `FAMILY:MEMBER`.

    Raises:
        UnknownNameError: There is no such environment.
    """
    family, colon, member = name.partition(":")
    if colon and family in names("environment_families"):
        return cast("Callable[[str], Environment]", load_entry("environment_families", family))(member)
    if not has_environment(name):
        families = [f"{family}:…" for family in names("environment_families")]
        raise UnknownNameError("environment", name, [*names("environments"), *families])
    return cast("Environment", load_entry("environments", name))


def has_environment(name: str) -> bool:
    """Whether the name is that of an environment, or of a family with a member after a colon; loads nothing."""
    family, colon, _ = name.partition(":")
    return name in names("environments") or bool(colon and family in names("environment_families"))


def usual_environment(use: Use) -> str:
    """Name of the default environment for a use: the first, by name, that offers itself.

    Raises:
        UnknownNameError: No environment does.
    """
    for name in names("environments"):
        if use in environment(name).usual_for:
            return name
    raise UnknownNameError("environment", f"usual for {use}", names("environments"))


def audit_plan(name: str) -> AuditPlan:
    """Make the audit plan for the algorithm of that name, with all registered views.

    Raises:
        UnknownNameError: There is no such algorithm.
    """
    return plan_for(algorithm(name))


def plan_for(subject: Algorithm) -> AuditPlan:
    """Make the audit plan of an algorithm, whether or not it is registered."""
    views = [cast("RegisteredView", load_entry("views", name)) for name in list_entries("views")]
    return AuditPlan(algorithm=subject, by_name={view.name: view for view in sorted(views, key=lambda one: one.place)})
