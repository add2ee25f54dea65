"""Online agents as auditors run them: in a separate world, through the audit adapter of the agent.

An agent is driven episode by episode through its `Player` (`privcheck.runtime.online`), on the kernels that users run;
the code here does not depend on agents' internals. Arrays are read by name through the player's face, which is checked
against the agent's declaration (`CheckedFace`): incomplete adapters are refused. A local privatizer need not have exact
counters: a user's message is then the contribution of the agent's noiseless `Twin` to the sums, started from the
agent's state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import FiniteMDP
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.schedules import EveryEpisode, PerUser, Tree
from privcheck.declare.statistics import FeatureSums, GramMatrices
from privcheck.errors import AuditError, ParameterError
from privcheck.runtime.online import (
    CountsUsers,
    MakePlayer,
    Player,
    Regresses,
    Replays,
    Replicate,
    Sent,
    Shuffles,
    Tables,
)
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import OnlineRequest, World
from privcheck.runtime.setting import Setting
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_audits.engine.outputs import Read, Said, read_outputs

Array = NDArray[np.float64]
_ROUNDING = 1e-9  # relative: of sums of rewards


class CheckedFace:
    """A player's audit adapter: every declared release in its declared shape, as often as its schedule says.

    Args:
        player: The agent.
        setting: Declaration and parameters.
        episodes: K.

    Raises:
        ParameterError: The player has no audit adapter.
    """

    def __init__(self, player: Player, setting: Setting, episodes: int) -> None:
        if player.face is None:
            message = (
                f"{player.label} declares releases but has no face: the running agent cannot be audited; give "
                "its Player a `face` (privcheck.runtime.online.Face), or write it as a plain agent, which has one"
            )
            raise ParameterError(message, name="face")
        self._player, self._face, self._episodes = player, player.face, episodes
        self._releases = setting.declared.noisy
        self._shapes = {release.name: release.statistic.shape(setting.values) for release in self._releases}
        self._due = min(_outputs(release.schedule, setting, episodes) for release in self._releases)
        self._apart = len({release.schedule.words for release in self._releases}) > 1
        # the policy that a user was told is one of those that must not move, whatever the face says
        self.policy: tuple[str, ...] = tuple(dict.fromkeys((player.told, *self._face.policy)))
        self.board: tuple[str, ...] = self._face.board
        self.replay: str = self._face.replay if isinstance(self._face, Replays) else ""

    def output(self, episode: int) -> int | None:
        """Index of the output released with an episode; None if there is none.

        Raises:
            AuditError: There is none, but the schedule has one.
        """
        output = self._face.output(episode)
        if output is None and episode <= self._due:
            message = f"{self._player.label}: its face shows no output in episode {episode}, in which one is declared"
            raise AuditError(message, trial=episode, seed=0)
        return output

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Exact values of the last output, before noise; None if no party has them."""
        shown = self._face.exact(one, output)
        return None if shown is None else self._check(shown, "exact")

    def noisy(self, one: Replicate, output: int) -> Tables:
        """The last output, with noise."""
        return self._check(self._face.noisy(one, output), "noisy")

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values on the billboard."""
        return self._face.undeclared(one)

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Messages of the last output as they left a shuffler; empty if there are none."""
        return self._face.messages(one, output) if isinstance(self._face, Shuffles) else ()

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Number of users in each slice of an output, by release; empty if no noise depends on it."""
        return self._face.batches(output) if isinstance(self._face, CountsUsers) else {}

    def contributions(self, before: Tables | None, after: Tables | None, message: Tables | None) -> Tables:
        """Contribution of one user to each release, if it can be determined; empty for batches.

        Sums over values that another output has changed are left out too: for linear statistics only a tree keeps a
        user's own contribution.

        Args:
            before: Exact values before the user's episode.
            after: Exact values after it.
            message: Message of a local user.
        """
        schedules = [release.schedule for release in self._releases]
        if message is not None or all(isinstance(schedule, PerUser) for schedule in schedules):
            return message or after or {}
        if before is None or after is None or not all(isinstance(one, Tree | EveryEpisode) for one in schedules):
            return {}
        kept = {r.name for r in self._releases if isinstance(r.schedule, Tree) or not _regresses(r)}
        return {name: table - before[name] for name, table in after.items() if name in kept and name in before}

    def unlike(self, given: Tables, one: Replicate, user: Trajectories) -> Iterator[str]:
        """Yield the releases for which a user's contribution differs from the declared statistic of their data.

        Args:
            given: The user's contributions.
            one: The replicate after the user's episode.
            user: The user's trajectory.
        """
        regressors = self._face.regressors(one, user) if isinstance(self._face, Regresses) else None
        for release in self._releases:
            if release.name in given and (regressors is not None or not _regresses(release)):
                statistic: Any = release.statistic
                wanted, table = statistic.compute(user if regressors is None else regressors), given[release.name]
                slack = _ROUNDING * (1 + float(np.abs(table).max(initial=0.0)))
                if not np.allclose(wanted, table, rtol=0, atol=slack):
                    yield release.name

    def _check(self, tables: Tables, kind: str) -> Tables:
        shapes = {name: np.shape(table) for name, table in tables.items()}
        due = {name: shape for name, shape in self._shapes.items() if name in shapes} if self._apart else self._shapes
        if shapes != due:
            message = f"{self._player.label}: its face shows {kind} tables {shapes}, declared are {self._shapes}"
            raise ParameterError(message, name="face", given=shapes)
        return tables


def _regresses(release: Release) -> bool:
    return isinstance(release.statistic, GramMatrices | FeatureSums)


def act(mdp: FiniteMDP, told: NDArray[np.int64] | Array) -> Trajectories | None:
    """Trajectory of a user in a deterministic world under given actions; None if either is random.

    Args:
        mdp: The user's response function.
        told: (H, S) actions, or (H, S, A) probabilities.
    """
    if told.ndim != 2 or mdp.transition.max(axis=-1).min() < 1 or not mdp.fixed_start:
        return None
    H, state = mdp.horizon, int(mdp.initial.argmax())
    states, actions, rewards = np.empty((1, H + 1), np.int32), np.empty((1, H), np.int32), np.empty((1, H))
    for h in range(H):
        action = int(told[h, state])
        following = int(mdp.transition[mdp.part(h), state, action].argmax())
        states[0, h], actions[0, h] = state, action
        rewards[0, h] = mdp.reward[mdp.part(h), state, action, following]
        state = following
    states[0, H] = state
    return Trajectories(states=states, actions=actions, rewards=rewards, num_states=mdp.states, num_actions=mdp.actions)


def _outputs(schedule: object, setting: Setting, episodes: int) -> int:
    """Last episode up to which each episode has one output; 0 for batches, which are not declared per episode."""
    if isinstance(schedule, Tree):
        return min(int(schedule.leaves.number(setting.values)), episodes - 1)
    if isinstance(schedule, EveryEpisode):
        often = schedule.after == "episode"
        return min(int(schedule.outputs.number(setting.values)), episodes - 1) if often else 0
    return episodes - 1 if isinstance(schedule, PerUser) else 0


EPISODES: Final = 64  # K, at most
_NUMBERS: Final = 20_000  # counters, above which fewer states, actions or steps are taken
_SIZES: Final = {"H": 4, "S": 3, "A": 2, "K": EPISODES}  # of a world whose size no parameter states


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watched:
    """An agent under audit; importable, so that blocks can run in any process.

    Attributes:
        make: Makes the registered agent.
        request: Request for the agent.
    """

    make: MakePlayer
    request: OnlineRequest

    @property
    def declaration(self) -> Declaration:
        """The agent's declaration."""
        return self.request.setting.declared

    @property
    def trees(self) -> frozenset[str]:
        """Releases with outputs that are sums over all users so far, of P-sums with separate noise."""
        return frozenset(r.name for r in self.declaration.noisy if isinstance(r.schedule, Tree))

    def player(self, seed: int, *, mdp: FiniteMDP | None = None, noiseless: bool = False) -> Player:
        """The agent in its own world or in another one, ready to play."""
        world = self.request.world if mdp is None else self.request.world.answered_by(mdp)
        return ready(self.make, replace(self.request, seed=seed, world=world), noiseless=noiseless)

    def face(self, player: Player) -> CheckedFace:
        """Audit adapter of a player, checked against the declaration.

        Raises:
            ParameterError: The player has no audit adapter.
        """
        return CheckedFace(player, self.request.setting, self.request.episodes)


class Twin:
    """The agent's noiseless twin: it copies the agent's state and plays the next episode from there.

    Args:
        agent: The agent, under local privacy.
        seed: Seed of the audited run.
    """

    def __init__(self, agent: Watched, seed: int) -> None:
        player = agent.player(seed, noiseless=True)
        self._face, self._seed, self._one = agent.face(player), seed, player.start(0)

    def message(self, noiseless: Player, one: Replicate, episode: int) -> Tables:
        """Message of a user in an episode, before the noise; the agent's own state is unchanged.

        Args:
            noiseless: The agent without noise, in the user's world.
            one: State of the agent before the episode.
            episode: Number of the episode.
        """
        before = self._face.noisy(one, episode)
        place(self._one, one)
        noiseless.play(self._one, episode)
        return {name: table - before[name] for name, table in self._face.noisy(self._one, episode).items()}

    def check(self, one: Replicate, episode: int) -> None:
        """Check that the agent has played the same policy with its noise.

        Raises:
            AuditError: The policies differ, so that the user's message is unknown.
        """
        if not same_policies(self._face, self._one, one):
            message = (
                f"in episode {episode} the agent plays another policy without noise, behind the same billboard: its "
                "user's message is unknown"
            )
            raise AuditError(message, trial=episode, seed=self._seed)


def watch(algorithm: Algorithm, setting: Setting) -> tuple[tuple[Watched, ...], Mapping[str, Fraction]]:
    """The agent in a random model, and the parameters at which it runs: the requested ones, up to some size.

    It comes twice: with options and parameters of its audit instance, under which policies follow the noisy tables
    closely, and with the requested ones, under which values are often clipped and actions tie.

    Args:
        algorithm: The registered algorithm.
        setting: Declaration, parameters, options and readings.

    Raises:
        ParameterError: The algorithm has no online agent.
    """
    if algorithm.online is None:
        raise ParameterError(f"{algorithm.name} has no online agent to run", name=algorithm.name)
    at = limit_sizes(setting)
    world, at = make_world(algorithm, setting, at)
    K = int(at["K"])
    values = {name: at.get(name, value) for name, value in setting.values.items()}
    sized = {name: at.get(name, value) for name, value in setting.options.items()}
    quiet = {**values, **{name: value for name, value in algorithm.instance.values.items() if name in values}}
    settings = (
        replace(setting, values=quiet, options=follow_closely(algorithm, sized)),
        replace(setting, values=values, options=sized),
    )
    requests = (OnlineRequest(setting=one, world=world, episodes=K) for one in settings)
    return tuple(Watched(make=algorithm.online, request=one) for one in requests), values


def make_world(
    algorithm: Algorithm, setting: Setting, at: Mapping[str, Fraction]
) -> tuple[World, Mapping[str, Fraction]]:
    """World that an agent is run in, and the sizes, including those that the world defines.

    Args:
        algorithm: The algorithm; its instance may make its own worlds.
        setting: Setting with the declaration's sizes besides H, S, A and K.
        at: H, S, A and K.
    """
    if algorithm.instance.world is None:
        H, S, A = (int(at[name]) for name in ("H", "S", "A"))
        mdp = random_mdp(S=S, A=A, H=H, seed=1, stationary=True)
        return World(name="random", description="random", mdp=mdp), at
    counts = {p.name for p in setting.declared.parameters if p.kind == "count"}
    asked = {name: int(value) for name, value in setting.values.items() if name in counts}
    stated = {name for name in at if name in setting.values or name in setting.options}  # others are the maker's
    world = algorithm.instance.world({**asked, **{name: int(at[name]) for name in stated}})
    streams = {name: min(setting.values[name], at["K"]) for name in _stream_sizes(setting) if name not in at}
    return world, {**at, **streams, **{name: Fraction(size) for name, size in world.sizes.items()}}


def _stream_sizes(setting: Setting) -> set[str]:
    """Names of the parameters that determine the number of outputs: of batches, of updates."""
    names: set[str] = set()
    for release in setting.declared.noisy:
        if isinstance(release.schedule, Tree | EveryEpisode):
            names |= release.schedule.times.symbols - release.statistic.symbols
    return names


def follow_closely(algorithm: Algorithm, options: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Options with those of the algorithm's audit instance, under which policies follow its releases."""
    instance = algorithm.instance.options
    return {name: Fraction(instance.get(name, value)) for name, value in options.items()}


def limit_sizes(setting: Setting) -> Mapping[str, Fraction]:
    """Requested H, S, A and K, limited to `EPISODES` episodes and a number of counters.

    Args:
        setting: Setting with the sizes among its parameters or options; missing sizes get defaults.
    """
    at = {n: setting.values.get(n, setting.options.get(n, Fraction(size))) for n, size in _SIZES.items()}
    at["K"] = min(at["K"], Fraction(EPISODES))
    while math.prod((at["H"], at["S"], at["A"], at["S"] + 2)) > _NUMBERS:
        name = max(("S", "A", "H"), key=lambda each: at[each])
        at[name] = Fraction(int(at[name]) * 3 // 4)
    return at


def place(one: Replicate, where: Replicate) -> None:
    """Copy arrays and random states of one replicate into another."""
    for name, array in one.arrays.items():
        array[...] = where.arrays[name]
    for name, rng in one.generators.items():
        rng.bit_generator.state = where.generators[name].bit_generator.state


def policies(face: CheckedFace, one: Replicate) -> dict[str, NDArray[Any]]:
    """Arrays that make up a policy."""
    return {name: one.arrays[name] for name in face.policy}


def same_policies(face: CheckedFace, one: Replicate, other: Replicate) -> bool:
    """Whether two replicates have the same policy, bit for bit."""
    return all(np.array_equal(array, other.arrays[name]) for name, array in policies(face, one).items())


def read_shown(face: CheckedFace, players: Sequence[Player], one: Replicate, said: Said) -> Read:
    """Read everything an agent outputs beside its releases: policies, figures of the result, and side outputs.

    Args:
        face: Adapter that names the policy arrays.
        players: All copies of the agent that have played the replicate; the first answers for it.
        one: The replicate.
        said: Recorder of the run's side outputs.
    """
    at_limit = players[0].at_limit
    return read_outputs(
        {
            **policies(face, one),
            "diagnostics": [dict(player.diagnostics) for player in players],
            "at_limit": None if at_limit is None else at_limit(one),
            **said.read(),
        }
    )
