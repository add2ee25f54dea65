"""Agents that learn from a dataset, run with the auditor's channels: lockstep replay and noise audit.

Both halves are the registered ones: the privatizer gets a channel that keeps exact values, the agent half a billboard.
With D's billboard the agent half must return the same on D and on D′, bit for bit: the policy and all side outputs
(`privcheck_audits.engine.outputs`). A pair that shows a violation is simplified (`shrink`): equal wherever the users
need not differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Regressors, Trajectories, concatenate
from privcheck.declare.declaration import Declaration
from privcheck.runtime import Billboard, Channel, Ledger, RecordingChannel, ReleaseChannel, SimulatedNoise
from privcheck.runtime.offline import Learnt, OfflineAgent
from privcheck.runtime.setting import Setting
from privcheck.verification.candidates import UserPair
from privcheck_audits.engine.outputs import Read, Said, describe_moved, find_differences, list_fields, read_outputs
from privcheck_audits.lockstep.noise_tests import NoiseRecorder, Sums
from privcheck_audits.lockstep.replay import Distance, Opened, Replayed, describe_user
from privcheck_audits.lockstep.users import Users
from privcheck_audits.plan.pictures import show_pair


def shrink(pair: UserPair, violates: Callable[[UserPair], bool]) -> UserPair:
    """Make the second user equal to the first at every step at which the violation remains.

    Users of unknown kinds, and absent users, are returned unchanged.

    Args:
        pair: Neighbours that show a violation.
        violates: Whether given neighbours show a violation; called about once per step.
    """
    first, other = pair
    if not isinstance(first, Trajectories | Regressors) or type(first) is not type(other):
        return pair
    for step in reversed(range(first.horizon + isinstance(first, Trajectories))):
        nearer = _alike(first, other, step)
        if violates((first, nearer)):
            other = nearer
    return first, other


def _alike(first: Any, other: Any, step: int) -> Any:
    """The other user with the first one's data at a step; after the last step, a trajectory's last state."""
    if isinstance(first, Trajectories):
        columns = {}
        for name in ("states", "actions", "rewards"):
            column = getattr(other, name).copy()
            column[:, step : step + 1] = getattr(first, name)[:, step : step + 1]
            columns[name] = column
        return replace(other, **columns)
    kinds: dict[str, Any] = {}
    for kind in ("vectors", "targets", "weights"):
        kinds[kind] = {name: column.copy() for name, column in getattr(other, kind).items()}
        for name, column in kinds[kind].items():
            column[:, step] = first.column(kind, name)[:, step]
    return replace(other, **kinds)


Array = NDArray[np.float64]
_OTHER: Final = "the agent learns another policy or returns other figures"


class Posting:
    """A channel that posts its outputs on a separate billboard, for an agent half to read.

    Args:
        channel: Channel of the releases.
        billboard: Billboard for the outputs.
    """

    def __init__(self, channel: ReleaseChannel, billboard: Billboard) -> None:
        self._channel, self._billboard = channel, billboard

    def release(self, name: str, value: Array, *, part: int) -> Array:
        """Release a value, post the noisy value on the billboard and return it."""
        noisy = self._channel.release(name, value, part=part)
        self._billboard.publish(name, part, noisy.copy())
        return noisy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfflinePasses:
    """Runs of an offline agent; importable, so that blocks can run in any process.

    For agents that plan with a reward function, the public reward is 1 for staying in a state.

    Attributes:
        agent: The registered agent.
        setting: Declaration, parameters, options, readings and features, at the sizes of the audit.
        handed: Outputs of the passes so far, in their order.
    """

    agent: OfflineAgent
    setting: Setting
    handed: list[Read] = field(default_factory=list)

    def fresh(self) -> OfflinePasses:
        """Copy without passes."""
        return replace(self, handed=[])

    def __call__(
        self, users: Users, declaration: Declaration, values: Mapping[str, Fraction], opened: Opened
    ) -> Iterator[int]:
        """Run both halves on the users, and yield once: an execution for `lockstep.replay.replay`."""
        said = Said()
        with said.listen():
            learnt = self._learn(users, declaration, values, opened(1))
        self.handed.append({**read_outputs(learnt), **read_outputs(said.read())})
        yield 1

    def record(self, users: Users, *, runs: range, rng: np.random.Generator, seed: int) -> Sums:
        """Sums of the noise drawn by fresh runs.

        Args:
            users: Users in their order.
            runs: Numbers of the runs.
            rng: Seeds the noise of each run.
            seed: Seed of the audit, for messages.

        Raises:
            AuditError: An output is not finite.
            ChannelError: A declared slice did not reach the channel.
        """
        declaration, values = self.setting.declared, self.setting.values
        recorder = NoiseRecorder(declaration, values, seed=seed)
        for run in runs:
            noise, billboard = SimulatedNoise(int(rng.integers(2**63))), Billboard()
            ledger = Ledger(declaration, values, noise=noise.words)
            channel = Channel(declaration, values, noise=noise, billboard=billboard, ledger=ledger)
            recorded = RecordingChannel(channel)
            kept = recorded.exact
            self._learn(users, declaration, values, recorded)
            channel.close()  # every declared slice has passed it
            for part in sorted({part for _, part in kept}):
                out = {name: billboard.read(name, part=part) for name, at in kept if at == part}
                noises = {name: (noisy - kept[name, part])[np.newaxis] for name, noisy in out.items()}
                largest = max(float(np.abs(noisy).max(initial=0.0)) for noisy in out.values())
                recorder.record(noises, run=run, output=1, part=part, largest=largest)
        return recorder.sums()

    def find_exact(self, users: Users) -> dict[str, Array]:
        """Exact values from one run's privatizer, by release, (H, …) each; its noise is seeded.

        Raises:
            ChannelError: A declared slice did not reach the channel.
        """
        declaration, values, noise = self.setting.declared, self.setting.values, SimulatedNoise(0)
        ledger = Ledger(declaration, values, noise=noise.words)
        channel = Channel(declaration, values, noise=noise, billboard=Billboard(), ledger=ledger)
        recorded = RecordingChannel(channel)
        self._learn(users, declaration, values, recorded)
        channel.close()
        steps = {r.name: r.statistic.shape(values)[0] for r in declaration.noisy}
        return {n: np.stack([recorded.exact[n, part] for part in range(H)]) for n, H in steps.items()}

    def _learn(
        self, users: Users, declaration: Declaration, values: Mapping[str, Fraction], channel: ReleaseChannel
    ) -> Learnt:
        data = concatenate([user for user in users if isinstance(user, Trajectories)])
        setting, billboard = replace(self.setting, declaration=declaration, values=values), Billboard()
        prepared = self.agent.make(setting, reward=reward_staying(data.num_states, data.num_actions))
        return prepared(billboard, self.agent.hold(data, setting, Posting(channel, billboard), billboard).publish)


def reward_staying(states: int, actions: int) -> Array:
    """Public reward of audits: 1 for staying in a state, (S, A, S)."""
    return np.broadcast_to(np.eye(states)[:, None, :], (states, actions, states))


def replay_pair(
    pair: UserPair,
    run: Callable[[UserPair], tuple[Distance, ...]],
    passes: OfflinePasses | None,
    *,
    position: int | None,
) -> Replayed:
    """Replay one pair; a pair that exceeds a charge is simplified as far as possible.

    Args:
        pair: The user's data in D and in D′.
        run: Replays a pair.
        passes: Keeps the outputs of its runs; None if no agent runs.
        position: Position of the user, from 0; None if the user is alone.
    """
    distances, plainest = run(pair), ""
    handed = () if passes is None else tuple(passes.handed)
    moved, unrepeated = _find_moved(pair, run, passes)
    shown = show_pair(pair, "The pair that moves a release furthest relative to its charge, step by step.")
    words = describe_user(pair, position)
    if any(distance.exceeds for distance in distances):
        plain = shrink(pair, lambda other: any(distance.exceeds for distance in run(other)))
        plainest = words = describe_user(plain, position)
        shown = show_pair(plain, "A pair that exceeds the charge, simplified as far as possible, step by step.")
    return Replayed(
        pairs=1,
        distances=distances,
        plainest=plainest,
        shown=shown,
        words=words,
        policies=len(handed),
        departures=int(bool(moved)),
        departure=f"{describe_user(pair, position)}; behind the same billboard {describe_moved(moved, _OTHER)}"
        if moved
        else "",
        unrepeated=int(bool(unrepeated)),
        doubt=f"on the same data behind the same billboard the agent does not repeat {', '.join(unrepeated)}, so that "
        "it cannot be compared: seed its randomness from public values, keep nothing between runs, return plain "
        "values and arrays, and do not print, log or write times or addresses"
        if unrepeated
        else "",
        compared=list_fields(handed[0]) if handed else (),
    )


def search_far(
    found: Replayed, pair: UserPair, base: Users, run: Callable[..., object], passes: OfflinePasses | None
) -> Replayed:
    """Search datasets far apart for two neighbours who change an agent's output behind one billboard.

    In D₀ all users have the second data, in Dₙ all have the first. Behind D₀'s billboard the agent has to return the
    same on both, however far apart they are. If it does not, one of the n steps between them changes the output, and
    halving finds it: a threshold on an exact sum, which few pairs cross, lies between D₀ and Dₙ.

    Args:
        found: Result of the pair itself.
        pair: The user's data in D and in D′.
        base: The other users, of whom only the number counts.
        run: `lockstep.replay.replay` of the agent, but for the users.
        passes: Keeps the outputs of its runs; None if no agent runs.

    Returns:
        The result, with the neighbours as a departure if there are any; unchanged if it has one, an output does not
        repeat, or a user is absent.
    """
    if passes is None or not base or any(user is None for user in pair) or found.departures or found.unrepeated:
        return found
    number = len(base) + 1

    def moved(users: int) -> frozenset[str]:
        theirs = [pair[0]] * users + [pair[1]] * (number - users)
        run([pair[1]] * (number - 1), (pair[1], theirs[0]), other_base=theirs[1:])
        return find_differences(*passes.handed[-2:])

    if not (differs := moved(number)) or not (differs := differs - moved(0)):
        return found
    low, high = 0, number
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if moved(middle) & differs else (middle, high)
    below, above, again, still = (moved(users) & differs for users in (low, high, low, high))
    if below or again or not (changes := above & still):  # an agent that counts its runs is not accused
        return found
    changed = describe_moved(tuple(sorted(changes)), _OTHER)
    crowd = f"of the other users {low} have the data of D, {number - high} those of D′"
    words = f"{describe_user(pair, high - 1)}; {crowd}; behind the same billboard {changed}"
    shown = show_pair(pair, "The pair that changes an output, step by step.")
    return found + Replayed(pairs=1, distances=(), policies=1, departures=1, departure=words, shown=shown, words=words)


def _find_moved(
    pair: UserPair, run: Callable[[UserPair], tuple[Distance, ...]], passes: OfflinePasses | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Outputs of the last two passes that the pair's user changed, and outputs that do not repeat in any case.

    If an output differs on D′, the agent is run again on D alone, twice: only outputs that then repeat were changed by
    the user.
    """
    if passes is None or not (differs := find_differences(*passes.handed[-2:])):
        return (), ()
    same = next(user for user in pair if user is not None)
    run((same, same))
    unrepeated = find_differences(*passes.handed[-2:])
    return tuple(sorted(differs - unrepeated)), tuple(sorted(unrepeated))
