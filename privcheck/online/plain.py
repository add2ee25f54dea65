"""Plain online agents: a privatizer half and an agent half in NumPy, which meet only in channel and billboard.

The agent half is a function of what stands on the billboard; it never sees data, and draws no noise. The privatizer
half turns one user's trajectory into what the channel is given. Everything between them is here: users, channel,
schedules, the ledger, which is written by the releases themselves, and the face that audits drive.

    ALGORITHM = Algorithm(name=…, declare=declare, online=PlainAgent(agent=make_agent))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.online.driver import seeds
from privcheck.online.player import SIMULATED, Player, Replicate
from privcheck.online.recording import DONE, SWITCHES, VALUE, Record, blank, grid, note
from privcheck.online.streams import MESSAGES, TOLD, Contribute, Streams
from privcheck.planning import evaluate, one_hot, solve
from privcheck.results import OnlineRequest
from privcheck.runtime.ledger import Ledger
from privcheck.runtime.release_noise import ReleaseNoise
from privcheck.setting import Setting
from privcheck.trajectories import Trajectories

Array = NDArray[np.float64]
_MEMORY: Final = "memory/"  # before the names of a memory's arrays in a replicate
_AGENT: Final = "agent"  # the generator of a memory
_SLACK: Final = 1e-9  # by which probabilities may miss a sum of 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What an agent half knows of the world.

    Attributes:
        H: Steps of an episode.
        S: States.
        A: Actions.
        K: Episodes, one user each.
    """

    H: int
    S: int
    A: int
    K: int


Board = Mapping[str, Array]  # noisy sums over the users so far by release, in their declared shapes; 0 before the first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """What an agent half keeps from one episode to the next: functions of the boards so far, and randomness.

    It lies in the replicate: a checkpoint holds it, and audits feed it the same boards on D and on D′ and compare it
    bit for bit. What is kept anywhere else is lost where a run is continued, and leaves lockstep undecided.

    Attributes:
        arrays: By name, as `PlainAgent.memory` made them; written in place.
        rng: For ties and other choices of the agent's own; no user's data and no noise is drawn from it.
    """

    arrays: Mapping[str, NDArray[Any]]
    rng: np.random.Generator

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Returns one of the arrays, to be read or written in place."""
        return self.arrays[name]

    def __setitem__(self, name: str, value: object) -> None:
        """Writes into one of the arrays, which keeps its shape and type."""
        self.arrays[name][...] = value


# from the board, and the memory where the agent has one, to (H, S) actions or (H, S, A) probabilities
AgentHalf = Callable[..., NDArray[Any]]
MakeAgentHalf = Callable[[Setting, Sizes], AgentHalf]
MakeMemory = Callable[[Setting, Sizes], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAgent:
    """An online agent in two halves, as it is registered (a `MakePlayer`).

    Attributes:
        agent: Makes the agent half from setting and sizes: a function from noisy sums to the next user's policy,
            `agent(board)`, or with a memory `agent(board, memory)`. It is called once before every episode and must
            depend on nothing else.
        memory: Makes what the agent half may write in place and finds again in the next episode, such as the policy and
            the noisy counts with which it has planned: arrays of numbers by name, as they are before the first episode.
            None for an agent half that is a function of the last board.
        contribute: Makes the privatizer half, `contribute(user, rng)`: a function from one user's trajectory, and that
            user's own generator, to what the channel is given, by release. A local randomiser, such as one that rounds
            rewards to bits, draws from `rng` alone. None for the declared statistics.
        ends: The last user of each batch, ascending, from setting and K, where releases leave in batches.
    """

    agent: MakeAgentHalf
    memory: MakeMemory | None = None
    contribute: Callable[[Setting], Contribute] | None = None
    ends: Callable[[Setting, int], tuple[int, ...]] | None = None

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Returns the agent in the request's world, ready to play.

        Raises:
            ParameterError: Sizes that are not the environment's, no episode, schedules that differ or leave once, or
                an agent half that returns no policy.
        """
        setting, mdp = request.setting, request.world.mdp
        sizes = Sizes(H=mdp.horizon, S=mdp.states, A=mdp.actions, K=request.episodes)
        _refuse(request, sizes)
        blank_memory = None if self.memory is None else _check_memory(self.memory(setting, sizes))
        streams = Streams(
            setting,
            episodes=sizes.K,
            contribute=None if self.contribute is None else _check_contribute(self.contribute(setting)),
            ends=() if self.ends is None else self.ends(setting, sizes.K),
            noiseless=noiseless,
            noise=request.noise,
            remembered=tuple(f"{_MEMORY}{name}" for name in blank_memory or ()),
        )
        agent = self.agent(setting, sizes)
        run = _Run(request=request, sizes=sizes, streams=streams, agent=agent, memory=blank_memory, users=_Users(mdp))
        name = setting.declared.name
        return Player(
            start=run.start,
            play=run.play,
            label=f"{name}, plain" + (", noiseless" if noiseless else ""),
            told=TOLD,
            optimal=run.optimal,
            face=streams,
            noise=SIMULATED if request.noise == "simulated" else ReleaseNoise().words,
            protects=request.noise == "release" and not noiseless,
            keep_ledger=run.keep_ledger,
        )


class _Run:
    """A plain agent in a world: what its player's functions do."""

    def __init__(
        self,
        *,
        request: OnlineRequest,
        sizes: Sizes,
        streams: Streams,
        agent: AgentHalf,
        memory: Mapping[str, NDArray[Any]] | None,
        users: _Users,
    ) -> None:
        self._memory = memory
        self._request, self._sizes, self._streams, self._agent, self._users = request, sizes, streams, agent, users
        self._ledger: Ledger | None = None
        self.optimal = solve(request.world.mdp).value

    def start(self, number: int) -> Replicate:
        """Returns a replicate before its first episode."""
        drawn = {"users": True, "noise": True, _AGENT: self._memory is not None, MESSAGES: self._streams.randomises}
        own = seeds(self._request.seed, number, *(name for name, needed in drawn.items() if needed))
        arrays = {"number": np.array([number]), **self._streams.blank(), **blank(self._sizes.K)}
        arrays |= {f"{_MEMORY}{name}": array.copy() for name, array in (self._memory or {}).items()}
        one = Replicate(arrays=arrays, generators={name: np.random.default_rng(seed) for name, seed in own.items()})
        arrays[TOLD] = self._policy(one)
        return one

    def play(self, one: Replicate, until: int) -> None:
        """Plays a replicate up to and with an episode."""
        totals, told = one.arrays["totals"], one.arrays[TOLD]
        mdp, curves = self._request.world.mdp, one.arrays["curves"]
        record = Record(until=until, totals=totals, curves=curves, grid=grid(self._sizes.K), optimal=self.optimal)
        while (done := int(totals[DONE])) < until:
            policy = self._policy(one) if done else told  # once an episode: a memory counts the calls
            if done == 0 or not np.array_equal(policy, told):
                totals[SWITCHES] += 1.0 if done else 0.0
                totals[VALUE] = evaluate(mdp, policy if policy.ndim == 3 else one_hot(policy, self._sizes.A))
                told[...] = policy
            user = self._users.act(told, one.generators["users"])
            note(record)
            ledger = self._ledger if one.arrays["number"][0] == 0 else None
            self._streams.release(one, user, done + 1, ledger=ledger)

    def keep_ledger(self, ledger: Ledger, one: Replicate) -> None:
        """Lets the first replicate's releases write the ledger; those that have left already are written now."""
        self._ledger = ledger
        self._streams.record_past(one, ledger)

    def _policy(self, one: Replicate) -> NDArray[Any]:
        policy = np.asarray(self._agent(self._streams.sums(one), *self._recall(one)))
        H, S, A = self._sizes.H, self._sizes.S, self._sizes.A
        whole = policy.shape == (H, S) and np.issubdtype(policy.dtype, np.integer)
        if whole and policy.min() >= 0 and policy.max() < A:
            return policy.astype(np.int64)
        mixed = policy.shape == (H, S, A) and np.issubdtype(policy.dtype, np.floating)
        if mixed and policy.min() >= 0 and np.abs(policy.sum(axis=-1) - 1).max() <= _SLACK:  # NaN fails
            return policy.astype(np.float64)
        got = f"{policy.dtype} {policy.shape}" + (f" from {policy.min()} to {policy.max()}" if policy.size else "")
        wanted = f"actions ({H}, {S}) below {A}, or probabilities ({H}, {S}, {A})"
        raise ParameterError(f"the agent half must return {wanted}; got {got}", name="agent", given=got)

    def _recall(self, one: Replicate) -> tuple[Memory, ...]:
        if self._memory is None:
            return ()
        arrays = {name: one.arrays[f"{_MEMORY}{name}"] for name in self._memory}
        return (Memory(arrays=MappingProxyType(arrays), rng=one.generators[_AGENT]),)


def _check_contribute(given: Contribute) -> Contribute:
    """Returns a privatizer half that takes a user and their generator.

    Raises:
        ParameterError: It takes other arguments, such as the user alone.
    """
    try:
        inspect.signature(given).bind(None, None)
    except ValueError:  # a built-in that does not say what it takes
        return given
    except TypeError as error:
        message = f"contribute: expected a function of (user, rng), got {given!r:.100}: {error}"
        remedy = "take `rng`, the user's own generator, as the second argument, also where nothing is drawn from it"
        raise ParameterError(f"{message}; {remedy}", name="contribute", given=repr(given)) from error
    return given


def _check_memory(given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Returns the arrays of a memory before the first episode.

    Raises:
        ParameterError: One of them holds something else than numbers.
    """
    arrays = {name: np.asarray(value) for name, value in given.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            message = f"memory {name!r}: expected an array of numbers, got {array.dtype}"
            raise ParameterError(message, name="memory", given=str(array.dtype))
    return arrays


class _Users:
    """Users of a model, one after the other, by inverse distribution functions."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self._mdp = mdp
        self._first = mdp.initial.cumsum()
        self._next = mdp.transition.cumsum(axis=-1)

    def act(self, told: NDArray[Any], rng: np.random.Generator) -> Trajectories:
        """Returns one user's trajectory under the policy they were told."""
        mdp, uniforms = self._mdp, rng.random((self._mdp.horizon, 2))
        states, actions = np.empty((1, mdp.horizon + 1), np.int32), np.empty((1, mdp.horizon), np.int32)
        rewards = np.empty((1, mdp.horizon))
        state = _draw(self._first, rng.random())
        for h, (for_action, for_state) in enumerate(uniforms):
            part = mdp.part(h)
            action = int(told[h, state]) if told.ndim == 2 else _draw(told[h, state].cumsum(), for_action)
            following = _draw(self._next[part, state, action], for_state)
            states[0, h], actions[0, h] = state, action
            rewards[0, h] = mdp.reward[part, state, action, following]
            state = following
        states[0, -1] = state
        return Trajectories(
            states=states, actions=actions, rewards=rewards, num_states=mdp.states, num_actions=mdp.actions
        )


def _draw(cumulated: Array, uniform: float) -> int:
    """Returns an index: the first whose cumulated probability exceeds a uniform's share of the whole."""
    return int(np.searchsorted(cumulated, uniform * cumulated[-1], side="right"))


def _refuse(request: OnlineRequest, sizes: Sizes) -> None:
    for name, least in (("episodes", request.episodes), ("replicates", request.replicates)):
        if least < 1:
            raise ParameterError(f"expected at least 1 of {name}, got {least}", name=name, given=least)
    actual = {"H": sizes.H, "S": sizes.S, "A": sizes.A, "K": sizes.K}
    wrong = [
        f"{name} = {request.values[name]} but {size} in {request.world.name}"
        for name, size in actual.items()
        if name in request.values and request.values[name] != size
    ]
    if wrong:
        raise ParameterError(f"the declaration does not fit the environment: {'; '.join(wrong)}", name=wrong[0][0])
