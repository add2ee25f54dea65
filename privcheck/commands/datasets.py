"""Loading of `--env ENV`, `--data FILE` or data in memory as a dataset, with the sizes for the declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from privcheck.data.preparing import read_labels
from privcheck.data.reading import (
    NO_STATEMENT,
    Held,
    Users,
    hold_trajectories,
    read_features,
    read_rewards,
    read_trajectories,
)
from privcheck.declare.declaration import resolve
from privcheck.declare.relations import most_trajectories
from privcheck.errors import ParameterError
from privcheck.reports.values import PolicyLabels
from privcheck.runtime import registry
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import Dataset
from privcheck.terms.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A dataset, and the user's settings that remain for the algorithm.

    Attributes:
        data: The dataset.
        given: The NAME=VALUE pairs that are not parameters of the environment.
        sizes: H, S and A of the data, and the dimensions of its features.
        labels: Names of states and actions from the codebook beside a prepared file.
    """

    data: Dataset
    given: Mapping[str, str]
    sizes: Mapping[str, int]
    labels: PolicyLabels = field(default_factory=PolicyLabels)


def load(
    *,
    env: str | None,
    data: str | Path | Held | None,
    rewards: Path | None,
    given: Mapping[str, str],
    algorithm: Algorithm,
    seed: int,
    features: Path | None = None,
    users: Users = NO_STATEMENT,
) -> Source:
    """Load the dataset of a registered environment, of a file, or of data in memory.

    Args:
        env: Name of an environment.
        data: An environment's name, a file's path, or trajectories or a table in memory.
        rewards: A file with the public reward function, for data from a file.
        given: The user's NAME=VALUE pairs.
        algorithm: The algorithm, whose readings for private rewards are chosen if there is no public reward function.
        seed: Seed of the sampled trajectories.
        features: A file with public features of states and actions, for data from a file.
        users: Statement about the users of a file or of data in memory.

    Raises:
        ParameterError: Neither or both of `env` and `data` are given, or a file of public knowledge comes with an
            environment.
        FileFormatError: A file of public knowledge is refused.
        TrajectoryError: The file's content is refused.
    """
    if (env is None) == (data is None):
        raise ParameterError("give exactly one of --env ENVIRONMENT and --data FILE (or an environment's name)")
    name = data if env is None else env
    if isinstance(name, str) and (env is not None or registry.has_environment(name)):
        if rewards is not None:
            raise ParameterError(f"--rewards goes with a file: {name} brings its own reward function")
        if features is not None:
            raise ParameterError(f"--features goes with a file: {name} is a simulated environment with its own")
        if users != NO_STATEMENT:
            message = f"{name} is a simulated environment, whose users have one trajectory each: leave out"
            raise ParameterError(f"{message} --column, --who, --max-trajectories and --one-episode-is-one-user")
        return _from_environment(name, given, seed)
    assert name is not None
    return _from_users(name, (rewards, features), given, algorithm, users)


def _from_environment(name: str, given: Mapping[str, str], seed: int) -> Source:
    environment = registry.environment(name)
    own = {p.name for p in environment.parameters}
    values = resolve(environment.parameters, {k: v for k, v in given.items() if k in own}, owner=name)
    if environment.sample is None:
        message = f"{name} has no trajectories to learn from: it is for agents that learn as they act"
        raise ParameterError(f"{message}, or train a policy", name="env", given=name)
    dataset = environment.sample({k: int(v) for k, v in values.items()}, seed)
    unit = simulated_unit(name, dataset.trajectories.horizon)
    dataset = replace(dataset, trajectories=replace(dataset.trajectories, unit=unit))
    sizes = _sizes(dataset)
    # what the environment was told is not told again, unless it is a size, which then has to agree
    rest = {k: v for k, v in given.items() if k not in own}
    return Source(data=dataset, given=rest, sizes=sizes)


def simulated_unit(name: str, steps: int) -> Unit:
    """Unit of privacy of a simulated environment: users with one trajectory each."""
    return Unit(who="simulated user", trajectories=1, steps=steps, basis="simulation", stated_by=f"environment {name}")


def _from_users(
    data: str | Path | Held,
    public_files: tuple[Path | None, Path | None],
    given: Mapping[str, str],
    algorithm: Algorithm,
    users: Users,
) -> Source:
    rewards, features = public_files
    S, A = _count(given, "S"), _count(given, "A")
    if users.max_trajectories is None and (covered := _trajectories(given, algorithm)) > 1:
        users = replace(users, max_trajectories=covered)
    known = None if features is None else read_features(features, num_states=S, num_actions=A)
    if known is not None:  # public sizes, rather than the largest numbers in the users' data
        S, A = known.phi.shape[:2]
    book = read_labels(Path(data)) if isinstance(data, str | Path) else None
    if book is not None:  # the public lists, not the largest codes in the users' data
        S, A = S or len(book.states), A or len(book.actions)
    if isinstance(data, str | Path):
        name = Path(data).name
        read = read_trajectories(data, num_states=S, num_actions=A, users=users)
    else:
        name = type(data).__name__
        read = hold_trajectories(data, num_states=S, num_actions=A, users=users)
    trajectories = read.trajectories
    several = trajectories.unit is not None and trajectories.unit.trajectories > 1
    public = (
        None
        if rewards is None
        else read_rewards(rewards, num_states=trajectories.num_states, num_actions=trajectories.num_actions)
    )
    dataset = Dataset(
        name=name,
        description=f"{trajectories.users} {'trajectories' if several else 'users'} from {name}",
        trajectories=trajectories,
        reward=public,
        evaluate=None,
        references={},
        public=False,
        facts=read.facts if features is None else {**read.facts, "features": features.name},
        features=known,
    )
    readings = algorithm.readings if public is None else ()
    asked = {reading.name: reading.private_rewards for reading in readings if reading.private_rewards}
    labels = PolicyLabels()
    if book is not None and (len(book.states), len(book.actions)) == (S, A):
        labels = PolicyLabels(states=book.states, actions=book.actions)
    return Source(data=dataset, given=asked | dict(given), sizes=_sizes(dataset), labels=labels)


def _trajectories(given: Mapping[str, str], algorithm: Algorithm) -> int:
    """The number of trajectories a user may have, from the declared relation at the given parameters."""
    if algorithm.declare is None:
        return 1
    declared = algorithm.declare({r.name: given[r.name] for r in algorithm.readings if r.name in given})
    own = tuple(p for p in declared.parameters if p.name in declared.relation.trajectories.symbols)
    chosen = {p.name: given[p.name] for p in own if p.name in given}
    return most_trajectories(declared.relation, resolve(own, chosen, owner=algorithm.name))


def _sizes(data: Dataset) -> dict[str, int]:
    t = data.trajectories
    plain = {"d": t.num_states * t.num_actions} if data.features is None else data.features.sizes
    return {"H": t.horizon, "S": t.num_states, "A": t.num_actions, **plain}


def _count(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    try:
        count = int(given[name])
    except ValueError:
        count = 0
    if count < 1:
        raise ParameterError(f"--set {name}={given[name]}: expected a whole number, at least 1", name=name)
    return count
