"""Running online agents as auditors see them: in a world of their own, through the face that they are registered with.

An agent is driven episode by episode through its `Player` (`privcheck.runtime.online`), on the kernels that users run;
nothing here knows what is inside of them. What is read is what the player's face hands out by name. A local privatizer
need not have exact counters: a user's message is then what the agent's noiseless twin adds to the sums, started where
the agent stands.

What an agent shows auditors, checked against what it declares: a face that hides something is refused.
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
    """A player's face: every declared release in its declared shape, as often as its schedule says.

    Args:
        player: The agent.
        setting: Declaration and parameters.
        episodes: K.

    Raises:
        ParameterError: The player shows nothing.
    """

    def __init__(self, player: Player, setting: Setting, episodes: int) -> None:
        if player.face is None:
            message = (
                f"{player.label} declares releases but has no face: nothing of the running agent can be audited; give "
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
        """Returns which output leaves with an episode.

        Raises:
            AuditError: None does, where the schedule has one.
        """
        output = self._face.output(episode)
        if output is None and episode <= self._due:
            message = f"{self._player.label}: its face shows no output in episode {episode}, in which one is declared"
            raise AuditError(message, trial=episode, seed=0)
        return output

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Returns what the last output's noise was added to, or None where nobody has it."""
        shown = self._face.exact(one, output)
        return None if shown is None else self._check(shown, "exact")

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns the last output."""
        return self._check(self._face.noisy(one, output), "noisy")

    def undeclared(self, one: Replicate) -> int:
        """Returns how many numbers stand on the billboard that no release declares."""
        return self._face.undeclared(one)

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Returns the messages of the last output as they left a shuffler; nothing where none are sent."""
        return self._face.messages(one, output) if isinstance(self._face, Shuffles) else ()

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Returns how many users the slices of an output are of, by release; nothing where no noise depends on that."""
        return self._face.batches(output) if isinstance(self._face, CountsUsers) else {}

    def contributions(self, before: Tables | None, after: Tables | None, message: Tables | None) -> Tables:
        """Returns what one user added to each release, where that can be told; nothing of batches.

        Nor of sums over values that another output has changed: of linear statistics only a tree keeps a user's own.

        Args:
            before: Exact values before the user's episode.
            after: And after it.
            message: What a local user sends.
        """
        schedules = [release.schedule for release in self._releases]
        if message is not None or all(isinstance(schedule, PerUser) for schedule in schedules):
            return message or after or {}
        if before is None or after is None or not all(isinstance(one, Tree | EveryEpisode) for one in schedules):
            return {}
        kept = {r.name for r in self._releases if isinstance(r.schedule, Tree) or not _regresses(r)}
        return {name: table - before[name] for name, table in after.items() if name in kept and name in before}

    def unlike(self, given: Tables, one: Replicate, user: Trajectories) -> Iterator[str]:
        """Yields the releases to which a user added something else than the declared statistic of what they did.

        Args:
            given: What was added.
            one: The replicate after the user's episode.
            user: What they did.
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
    """Returns what a user of a world without chance did, told what to do; None where either leaves it to chance.

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
    """Returns until which episode one output leaves in each; 0 for batches, of which that is not declared."""
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
        make: Makes the agent, as it is registered.
        request: What is asked of it.
    """

    make: MakePlayer
    request: OnlineRequest

    @property
    def declaration(self) -> Declaration:
        """Returns what the agent may release."""
        return self.request.setting.declared

    @property
    def trees(self) -> frozenset[str]:
        """Returns the releases whose outputs are sums over all users so far, of P-sums with noise of their own."""
        return frozenset(r.name for r in self.declaration.noisy if isinstance(r.schedule, Tree))

    def player(self, seed: int, *, mdp: FiniteMDP | None = None, noiseless: bool = False) -> Player:
        """Returns the agent in its own world or in another one, ready to play."""
        world = self.request.world if mdp is None else self.request.world.answered_by(mdp)
        return ready(self.make, replace(self.request, seed=seed, world=world), noiseless=noiseless)

    def face(self, player: Player) -> CheckedFace:
        """Returns what a player shows auditors, checked against the declaration.

        Raises:
            ParameterError: It shows nothing.
        """
        return CheckedFace(player, self.request.setting, self.request.episodes)


class Twin:
    """The agent's noiseless twin: it takes over the agent's state and plays the next episode from there.

    Args:
        agent: Under local privacy.
        seed: Of the audited run.
    """

    def __init__(self, agent: Watched, seed: int) -> None:
        player = agent.player(seed, noiseless=True)
        self._face, self._seed, self._one = agent.face(player), seed, player.start(0)

    def message(self, noiseless: Player, one: Replicate, episode: int) -> Tables:
        """Returns what a user sends in an episode, before the noise; the agent itself is left where it is.

        Args:
            noiseless: The agent without noise, in the user's world.
            one: Where the agent stands before the episode.
            episode: Its number.
        """
        before = self._face.noisy(one, episode)
        place(self._one, one)
        noiseless.play(self._one, episode)
        return {name: table - before[name] for name, table in self._face.noisy(self._one, episode).items()}

    def check(self, one: Replicate, episode: int) -> None:
        """Checks that the agent has played the same policy with its noise.

        Raises:
            AuditError: It has not: what it sent in its own episode is not known then.
        """
        if not same_policies(self._face, self._one, one):
            message = (
                f"in episode {episode} the agent plays another policy without noise, behind the same billboard: what "
                "its user sends is not known"
            )
            raise AuditError(message, trial=episode, seed=self._seed)


def watch(algorithm: Algorithm, setting: Setting) -> tuple[tuple[Watched, ...], Mapping[str, Fraction]]:
    """Returns the agent in a random model, and the parameters at which it runs: those asked for, up to some size.

    It comes twice: with options and parameters of its audit instance, under which policies follow the noisy tables
    closely, and with those asked for, under which values are often clipped and actions tie.

    Args:
        algorithm: As it is registered.
        setting: Declaration, parameters, options and readings.

    Raises:
        ParameterError: The algorithm has no online agent.
    """
    if algorithm.online is None:
        raise ParameterError(f"{algorithm.name} has no online agent to be run", name=algorithm.name)
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
    """Returns the world that an agent is run in, and the sizes with those that the world states.

    Args:
        algorithm: Whose instance may make worlds of its own.
        setting: With the sizes that its declaration has beside H, S, A and K.
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
    """Returns the parameters that say how many outputs there are: of batches, of updates."""
    names: set[str] = set()
    for release in setting.declared.noisy:
        if isinstance(release.schedule, Tree | EveryEpisode):
            names |= release.schedule.times.symbols - release.statistic.symbols
    return names


def follow_closely(algorithm: Algorithm, options: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Returns the options with those of the algorithm's audit instance, under which policies follow its releases."""
    instance = algorithm.instance.options
    return {name: Fraction(instance.get(name, value)) for name, value in options.items()}


def limit_sizes(setting: Setting) -> Mapping[str, Fraction]:
    """Returns H, S, A and K as asked, but for at most `EPISODES` episodes and not too many counters.

    Args:
        setting: Whose parameters or options state them; what none states has a size of ours.
    """
    at = {n: setting.values.get(n, setting.options.get(n, Fraction(size))) for n, size in _SIZES.items()}
    at["K"] = min(at["K"], Fraction(EPISODES))
    while math.prod((at["H"], at["S"], at["A"], at["S"] + 2)) > _NUMBERS:
        name = max(("S", "A", "H"), key=lambda each: at[each])
        at[name] = Fraction(int(at[name]) * 3 // 4)
    return at


def place(one: Replicate, where: Replicate) -> None:
    """Puts a replicate where another one stands: arrays and randomness."""
    for name, array in one.arrays.items():
        array[...] = where.arrays[name]
    for name, rng in one.generators.items():
        rng.bit_generator.state = where.generators[name].bit_generator.state


def policies(face: CheckedFace, one: Replicate) -> dict[str, NDArray[Any]]:
    """Returns the arrays that a policy is made of."""
    return {name: one.arrays[name] for name in face.policy}


def same_policies(face: CheckedFace, one: Replicate, other: Replicate) -> bool:
    """Returns whether two replicates have the same policy, bit for bit."""
    return all(np.array_equal(array, other.arrays[name]) for name, array in policies(face, one).items())


def read_shown(face: CheckedFace, players: Sequence[Player], one: Replicate, said: Said) -> Read:
    """Reads all that leaves an agent beside its releases: policies, every figure that a result holds, what it says.

    Args:
        face: Which arrays are policies.
        players: All copies of the agent that have played the replicate; the first is asked about it.
        one: The replicate.
        said: What was heard of the run so far.
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
