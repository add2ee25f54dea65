"""Running online agents as auditors see them: in a world of their own, through the face that they are registered with.

An agent is driven episode by episode through its `Player` (`privcheck.online.player`), on the kernels that users run;
nothing here knows what is inside of them. What is read is what the player's face hands out by name. A local privatizer
need not have exact counters: a user's message is then what the agent's noiseless twin adds to the sums, started where
the agent stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Declaration
from privcheck.errors import AuditError, ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.online.driver import ready
from privcheck.online.player import MakePlayer, Player, Replicate, Tables
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest, World
from privcheck.schedules import EveryEpisode, Tree
from privcheck.setting import Setting
from privcheck_algorithms.environments.random_mdp import random_mdp
from privcheck_audits.white_box.faces import CheckedFace
from privcheck_audits.white_box.outputs import Read, read_outputs
from privcheck_audits.white_box.said import Said

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
