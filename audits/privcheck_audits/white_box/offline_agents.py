"""Agents that learn from a dataset, run with channels of the auditor's: lockstep replay, and noise as declared.

Both halves are the registered ones: the privatizer is handed a channel that keeps exact values, the agent half a
billboard. Behind D's billboard the agent half must come to the same policy on D and on D′, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Declaration
from privcheck.offline import Learnt, OfflineAgent
from privcheck.runtime import Billboard, Channel, Ledger, RecordingChannel, ReleaseChannel, SimulatedNoise
from privcheck.setting import Setting
from privcheck.trajectories import Trajectories, concatenate
from privcheck_audits.white_box.lockstep import Opened
from privcheck_audits.white_box.noise_tests import NoiseRecorder, Sums
from privcheck_audits.white_box.users import Users

Array = NDArray[np.float64]


class Posting:
    """A channel whose outputs stand on a billboard of their own, for an agent half to read.

    Args:
        channel: Which releases.
        billboard: Where they stand.
    """

    def __init__(self, channel: ReleaseChannel, billboard: Billboard) -> None:
        self._channel, self._billboard = channel, billboard

    def release(self, name: str, value: Array, *, part: int) -> Array:
        """Returns the noisy value that is now on the billboard."""
        noisy = self._channel.release(name, value, part=part)
        self._billboard.publish(name, part, noisy.copy())
        return noisy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfflinePasses:
    """Runs of an offline agent; importable, so that blocks can run in any process.

    Attributes:
        agent: As it is registered.
        setting: Declaration, parameters, options and readings, at the sizes of the audit.
        policies: Of the passes so far, in their order.
    """

    agent: OfflineAgent
    setting: Setting
    policies: list[Array] = field(default_factory=list)

    def fresh(self) -> OfflinePasses:
        """Returns the same without passes."""
        return replace(self, policies=[])

    def __call__(
        self, users: Users, declaration: Declaration, values: Mapping[str, Fraction], opened: Opened
    ) -> Iterator[int]:
        """Runs both halves on the users, and yields once: an `Execution` of `white_box.lockstep.replay`."""
        self.policies.append(self._learn(users, declaration, values, opened(1)).policy)
        yield 1

    @property
    def departures(self) -> int:
        """Returns how many policies differ from the first."""
        return sum(not np.array_equal(policy, self.policies[0]) for policy in self.policies[1:])

    def record(self, users: Users, *, runs: range, rng: np.random.Generator, seed: int) -> Sums:
        """Returns what fresh runs drew.

        Args:
            users: In their order.
            runs: Their numbers.
            rng: Seeds the noise of each run.
            seed: Of the audit, for messages.

        Raises:
            AuditError: An output is not finite.
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
            for part in sorted({part for _, part in kept}):
                out = {name: billboard.read(name, part=part) for name, at in kept if at == part}
                noises = {name: (noisy - kept[name, part])[np.newaxis] for name, noisy in out.items()}
                largest = max(float(np.abs(noisy).max(initial=0.0)) for noisy in out.values())
                recorder.record(noises, run=run, output=1, part=part, largest=largest)
        return recorder.sums()

    def _learn(
        self, users: Users, declaration: Declaration, values: Mapping[str, Fraction], channel: ReleaseChannel
    ) -> Learnt:
        data = concatenate([user for user in users if isinstance(user, Trajectories)])
        setting, billboard = replace(self.setting, declaration=declaration, values=values), Billboard()
        states, actions = data.num_states, data.num_actions
        stay = np.broadcast_to(np.eye(states)[:, None, :], (states, actions, states))
        prepared = self.agent.make(setting, reward=stay)
        return prepared(billboard, self.agent.hold(data, setting, Posting(channel, billboard), billboard).publish)
