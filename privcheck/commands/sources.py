"""Resolution of the user's environment or data to a setting with the data, model or task that the agent uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from privcheck.commands.datasets import Source, load, simulated_unit
from privcheck.commands.online_runs import keep_readings, load_world, online_only, settle_together
from privcheck.commands.settings import Chosen, settle
from privcheck.data.reading import NO_STATEMENT, Held, Users
from privcheck.declare.declaration import resolve
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import World
from privcheck.runtime.trained import Simulated

_FILES = "--data, --rewards or --features"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Environment or data of an agent, as the user gives them.

    Attributes:
        env: Name of a registered environment, or None.
        data: A file, an environment's name or data in memory, or None.
        rewards: A file with the public reward function, or None.
        features: A file with public features, or None.
        users: Statement about the users of the data.
    """

    env: str | None = None
    data: str | Path | Held | None = None
    rewards: Path | None = None
    features: Path | None = None
    users: Users = NO_STATEMENT

    @property
    def files(self) -> bool:
        """Whether files, data in memory or a statement about users are given."""
        named = any(one is not None for one in (self.data, self.rewards, self.features))
        return named or self.users != NO_STATEMENT

    @property
    def environment(self) -> str | None:
        """The environment from which users are sampled; None if they are in a file or in memory."""
        if self.env is not None or not isinstance(self.data, str):
            return self.env if self.data is None else None  # both are refused where the data are loaded
        return self.data if registry.has_environment(self.data) else None

    def or_else(self, env: str) -> Place:
        """The same place, with `env` as its environment if it names neither an environment nor data."""
        chosen = env if self.env is None and self.data is None else self.env
        return replace(self, env=chosen)


def source_to_run(algorithm: Algorithm, given: Mapping[str, str], place: Place, *, seed: int) -> tuple[Chosen, Source]:
    """The setting of an agent that learns from data, and its data.

    Raises:
        ParameterError: Neither or both of an environment and data are named, or a value is refused.
        PrivcheckError: The data are refused.
    """
    source = load(
        env=place.env, data=place.data, rewards=place.rewards, features=place.features,
        given=given, algorithm=algorithm, seed=seed, users=place.users,
    )  # fmt: skip
    unit = source.data.trajectories.unit
    return settle(algorithm, source.given, sizes=source.sizes).protecting(unit), source


def world_to_run(
    algorithms: Sequence[Algorithm], given: Mapping[str, str], place: Place, *, seed: int
) -> tuple[list[Chosen], World]:
    """The settings of online agents, and their environment.

    Raises:
        ParameterError: No environment is named, files are given, or a value is refused.
    """
    refuse_files(algorithms, place)
    assert place.env is not None
    world, rest = load_world(place.env, given, seed=seed)
    unit = simulated_unit(world.name, world.mdp.horizon)
    return [setting.protecting(unit) for setting in settle_together(algorithms, rest, world)], world


def task_to_run(algorithm: Algorithm, given: Mapping[str, str], place: Place) -> tuple[Chosen, Simulated]:
    """The setting of an agent that trains a policy, and its users.

    Raises:
        ParameterError: No environment with a task is named, files are given, or a value is refused.
        UnknownNameError: There is no such environment.
    """
    assert algorithm.trained is not None
    if place.env is None or place.files:
        message = f"{algorithm.name} trains on episodes of its users: give --env ENV, such as"
        raise ParameterError(f"{message} {registry.usual_environment('tasks')}, and no file", name="env")
    environment = registry.environment(place.env)
    if environment.task is None:
        known = [name for name in registry.names("environments") if registry.environment(name).task is not None]
        message = f"{place.env} has no task with observations; expected one of {', '.join(known)}, or gym:…"
        raise ParameterError(message, name="env", given=place.env)
    own = {parameter.name for parameter in environment.task_parameters}
    mine = {name: value for name, value in given.items() if name in own}
    world = environment.task(resolve(environment.task_parameters, mine, owner=place.env))
    rest = {name: value for name, value in given.items() if name not in own}
    options = {option.name for option in algorithm.options}
    first = settle(algorithm, keep_readings(algorithm, rest) | {k: v for k, v in rest.items() if k in options})
    sizes = algorithm.trained.sizes(world.task, first.options, first.readings)
    return settle(algorithm, rest, sizes=sizes).protecting(simulated_unit(world.name, world.steps)), world


def refuse_files(algorithms: Sequence[Algorithm], place: Place) -> None:
    """Refuse files or a missing environment for online agents.

    Raises:
        ParameterError: Files are given, no environment is named, or several algorithms are named and some are not
            online.
    """
    if online_only(algorithms) and (place.env is None or place.files):
        names = ", ".join(algorithm.name for algorithm in algorithms)
        raise ParameterError(f"{names} learns as it acts: give --env ENV, such as riverswim, not {_FILES}", name="env")


def anything_to_check(
    algorithm: Algorithm, given: Mapping[str, str], place: Place, *, seed: int
) -> tuple[Chosen, Source | World | Simulated | None]:
    """The setting with its data or environment, by default those on which the algorithm is checked.

    For an algorithm with a declaration but no agent, the setting and None.

    Raises:
        ParameterError: An environment or data are named for an algorithm without an agent, or a value is refused.
        PrivcheckError: The data are refused.
    """
    if not algorithm.runs and algorithm.declare is not None:
        if place.env is not None or place.files:
            message = f"{algorithm.name} has no agent to learn from --env, --data, --rewards or --features"
            raise ParameterError(message, name="env")
        return settle(algorithm, given), None
    where = usual_place(algorithm, place)
    if algorithm.trained is not None:
        return task_to_run(algorithm, given, where)
    if algorithm.online is None:
        return source_to_run(algorithm, given, where, seed=seed)
    settings, world = world_to_run([algorithm], given, where, seed=seed)
    return settings[0], world


def usual_place(algorithm: Algorithm, place: Place) -> Place:
    """The given place, or the default place on which an algorithm is checked."""
    if algorithm.trained is not None:
        return place.or_else(algorithm.environment or registry.usual_environment("tasks"))
    if algorithm.online is not None:
        return place.or_else(algorithm.environment or registry.usual_environment("online"))
    regresses = algorithm.offline is not None and algorithm.offline.regressing is not None
    return place.or_else(registry.usual_environment("features" if regresses else "datasets"))
