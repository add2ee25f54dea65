"""Lockstep audit of trained agents: two neighbouring sets of users behind the same noisy sums.

The training runs on D with the declared noise. Then it runs on D′ with every noisy sum replaced by that of the first
run. If it is as declared, (1) the exact sums of the two runs differ by at most the sensitivity of each release, over
all batches together, and (2) whatever else leaves is the same to the last bit. A leak past the channel breaks (2); wrong
clipping, a user in two batches, or one user's influence on the vectors of others breaks (1).

The audit sees exact sums where noise is added to them, so it takes any procedure that draws its noise from the sources
that it is handed. No finding says that none was found for this pair of users, not that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Noise
from privcheck.declare.procedures.charges import charge
from privcheck.runtime.noise import NoiseSource
from privcheck_algorithms.trained.tasks import Array, Episodes
from privcheck_algorithms.trained.training import Choose, Training, Users, simulated_noise

Left = Mapping[str, NDArray[Any]]
Procedure = Callable[[Users, Callable[[int], NoiseSource]], Left]

_SLACK: Final = 1e-9  # relative, of sums in floats
_STEPS: Final = 20  # of an extreme user's episode


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAudit:
    """Result of a lockstep audit of a training.

    Attributes:
        moved: By release, √Σ‖Δ‖₂² over all batches: by how much the exact sums of the two runs differ.
        allowed: By release, the declared ℓ₂ sensitivity.
        findings: Contradictions to the declaration, in sentences; empty if none was found.
    """

    moved: Mapping[str, float]
    allowed: Mapping[str, float]
    findings: tuple[str, ...]

    @property
    def consistent(self) -> bool:
        """Whether nothing contradicts the declaration."""
        return not self.findings


def audit_training(
    procedure: Procedure,
    first: Users,
    second: Users,
    *,
    declaration: Declaration,
    values: Mapping[str, Fraction],
    seed: int = 0,
) -> TrainingAudit:
    """Run a training in lockstep on two neighbouring sets of users.

    Args:
        procedure: The training, from users and noise sources of batches to whatever leaves it, by name. It may keep
            nothing between two calls.
        first: D.
        second: D′, which differs in one user.
        declaration: The declaration.
        values: Its parameters.
        seed: Seed of the noise.
    """
    names = [release.name for release in declaration.noisy]
    scales = [release.mechanism.at(values).scale for release in declaration.noisy]
    allowed = {r.name: charge(r, declaration.relation, values).l2 for r in declaration.noisy}
    noise = simulated_noise(seed)
    recorded = _Recorded(exact={}, outputs={}, replayed=None, scales=set())
    left = procedure(first, lambda batch: _Recorder(batch, noise(batch), recorded))
    again = _Recorded(exact={}, outputs={}, replayed=recorded.outputs, scales=set())
    other = procedure(second, lambda batch: _Recorder(batch, noise(batch), again))
    findings = []
    if recorded.exact.keys() != again.exact.keys():
        findings.append("the two runs make different releases, which no noise hides")
    for release, scale in recorded.scales | again.scales:
        if not math.isclose(scale, scales[release], rel_tol=_SLACK):
            findings.append(f"{names[release]}: noise of scale {scale:g} is drawn, {scales[release]:g} is declared")
    moved = {}
    for number, name in enumerate(names):
        pairs = [(recorded.exact[key], again.exact[key]) for key in recorded.exact.keys() & again.exact.keys()
                 if key[1] == number]  # fmt: skip
        moved[name] = math.sqrt(sum(float(((one - two) ** 2).sum()) for one, two in pairs))
        if not moved[name] <= allowed[name] * (1 + _SLACK):  # NaN fails
            findings.append(f"{name}: one user moves the sums by {moved[name]:.6g}, {allowed[name]:.6g} is declared")
    if left.keys() != other.keys():
        findings.append("the two runs let different things leave")
    for name in left.keys() & other.keys():
        if not np.array_equal(left[name], other[name], equal_nan=True):
            findings.append(f"{name} differs behind the same noisy sums: it is computed from data")
    return TrainingAudit(moved=moved, allowed=allowed, findings=tuple(sorted(findings)))


def leaving(training: Training[Any]) -> dict[str, NDArray[Any]]:
    """Whatever leaves a training, by name: parameters, noisy sums and states."""
    found: dict[str, NDArray[Any]] = {"parameters": training.parameters}
    for batch, sums in enumerate(training.sums):
        found.update({f"{name}[{batch}]": value for name, value in sums.items()})
    for batch, state in enumerate(training.states):
        parts = {one.name: getattr(state, one.name) for one in fields(state)} if is_dataclass(state) else {"": state}
        found.update({f"state {name}[{batch}]": np.asarray(value) for name, value in parts.items()})
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExtremeUser:
    """Users of whom one is replaced by an extreme one: the same observation and action at every step.

    Two of them with different actions have opposite gradients of any length, so that they attain a sensitivity of 2C.

    Attributes:
        of: The users.
        user: Number of the one who is replaced.
        action: Place of the action.
        size: Every coordinate of the observation.
        reward: Of every step.
    """

    of: Users
    user: int
    action: int
    size: float = 3.0
    reward: float = 0.0

    def play(self, choose: Choose, users: range) -> Episodes:
        """The users' episodes, with the extreme one's in its place."""
        episodes = self.of.play(choose, users)
        if self.user not in users:
            return episodes
        row, steps = users.index(self.user), episodes.actions.shape[1]
        episodes = _padded(episodes, max(0, _STEPS - steps))
        observations, actions, rewards = (
            np.array(part) for part in (episodes.observations, episodes.actions, episodes.rewards)
        )
        observations[row], actions[row], rewards[row] = 0.0, 0, 0.0
        observations[row, :_STEPS], actions[row, :_STEPS] = self.size, self.action
        rewards[row, :_STEPS] = self.reward
        lengths, terminated = episodes.lengths.copy(), episodes.terminated.copy()
        lengths[row], terminated[row] = _STEPS, True
        return Episodes(
            observations=observations, actions=actions, rewards=rewards, lengths=lengths, terminated=terminated
        )


def _padded(episodes: Episodes, steps: int) -> Episodes:
    """The episodes with further empty steps."""
    wide = ((0, 0), (0, steps))
    return replace(
        episodes,
        observations=np.pad(episodes.observations, (*wide, (0, 0))),
        actions=np.pad(episodes.actions, wide),
        rewards=np.pad(episodes.rewards, wide),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What noise sources of one run saw, by (batch, release, slice)."""

    exact: dict[tuple[int, int, int], Array]
    outputs: dict[tuple[int, int, int], Array]
    replayed: Mapping[tuple[int, int, int], Array] | None
    scales: set[tuple[int, float]]


class _Recorder:
    """Noise source of a batch that records exact values, and answers with another run's outputs if there are any."""

    as_declared = True
    protects = False

    def __init__(self, batch: int, source: NoiseSource, recorded: _Recorded) -> None:
        self.words = source.words
        self._batch = batch
        self._source = source
        self._recorded = recorded

    def add(self, noise: Noise, value: Array, *, release: int, part: int) -> Array:
        """Record an exact value; add noise to it, or replay."""
        key, recorded = (self._batch, release, part), self._recorded
        recorded.exact[key] = value.copy()
        recorded.scales.add((release, noise.scale))
        known = None if recorded.replayed is None else recorded.replayed.get(key)
        output = self._source.add(noise, value, release=release, part=part) if known is None else known.copy()
        recorded.outputs[key] = output.copy()
        return output
