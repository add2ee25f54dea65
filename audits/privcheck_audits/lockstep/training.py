"""Lockstep audit of trained agents: two neighbouring sets of users behind the same noisy sums.

The training runs on D with the declared noise. Then it runs on D′ with every noisy sum replaced by that of the first
run. If it is as declared, (1) the exact sums of the two runs differ by at most the sensitivity of each release, over
all batches together, and (2) whatever else leaves is the same to the last bit. A leak past the channel breaks (2);
wrong clipping, a user in two batches, or one user's influence on the vectors of others breaks (1). Of Poisson batches,
in which a user is often, the exact sums of every round may differ by the sensitivity of one round, and both runs have
the same samples.

The audit sees exact sums where noise is added to them, so it takes any procedure that draws its noise from the sources
that it is handed. No finding says that none was found for these pairs of users, not that there is none.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Noise
from privcheck.declare.procedures.charges import charge
from privcheck.errors import ParameterError
from privcheck.runtime.discretisation import as_drawn
from privcheck.runtime.noise import NoiseSource
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck_algorithms.trained.policy_gradient import SimulatedUsers
from privcheck_algorithms.trained.tasks import CART_POLE, MOUNTAIN_CAR, PENDULUM, Array, Choose, Episodes, Task
from privcheck_algorithms.trained.training import Agent, Training, Users, simulated_noise, single_round, train
from privcheck_audits.lockstep.replay import Distance, draw_distances
from privcheck_audits.plan.requests import check, size_note
from privcheck_audits.plan.runner import Outcome, run_test

Left = Mapping[str, NDArray[Any]]
Procedure = Callable[[Users, Callable[[int], NoiseSource]], Left]

_SLACK: Final = 1e-9  # relative, of sums in floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAudit:
    """Result of a lockstep audit of a training.

    Attributes:
        moved: By release, the largest √Σ‖Δ‖₂² over all batches: by how much the exact sums of two runs differ; of
            Poisson batches the largest ‖Δ‖₂ of a round.
        allowed: By release, the declared ℓ₂ sensitivity.
        findings: Contradictions to the declaration, in sentences; empty if none was found.
        compared: Names of what leaves, and was compared.
    """

    moved: Mapping[str, float]
    allowed: Mapping[str, float]
    findings: tuple[str, ...]
    compared: tuple[str, ...] = ()

    @property
    def consistent(self) -> bool:
        """Whether nothing contradicts the declaration."""
        return not self.findings


def audit_lockstep(
    procedure: Procedure,
    pairs: Iterable[tuple[Users, Users]],
    *,
    declaration: Declaration,
    values: Mapping[str, Fraction],
    seed: int = 0,
) -> TrainingAudit:
    """Run a training in lockstep on neighbouring sets of users.

    Args:
        procedure: The training, from users and noise sources of batches to whatever leaves it, by name. It may keep
            nothing between two calls, and draws the same samples in each.
        pairs: D and D′, which differ in one user: `extreme_pairs`, or others.
        declaration: The declaration.
        values: Its parameters.
        seed: Seed of the noise.
    """
    releases, sampled = single_round(declaration).noisy, bool(declaration.others)
    allowed = {r.name: charge(r, declaration.relation, values).l2 for r in releases}
    scales = [(r.name, r.mechanism.at(values).scale) for r in releases]
    moved, findings, compared = dict.fromkeys(allowed, 0.0), set[str](), set[str]()
    for first, second in pairs:
        noise = simulated_noise(seed)
        one = _Recorded(exact={}, outputs={}, replayed=None, scales=set())
        counted = _Counted(first)
        left = procedure(counted, _sources(noise, one))
        two = _Recorded(exact={}, outputs={}, replayed=one.outputs, scales=set())
        other = procedure(second, _sources(noise, two))
        compared |= {name.partition("[")[0] for name in left.keys() & other.keys()}
        for number, name in enumerate(allowed):
            moved[name] = max(moved[name], _distance(one, two, number, apart=sampled))
        findings.update(_compare_noise(one, two, scales), _compare_left(left, other), counted.twice())
    findings.update(
        f"{name}: one user moves the sums by {moved[name]:.6g}, {most:.6g} is declared"
        for name, most in allowed.items()
        if not moved[name] <= most * (1 + _SLACK)  # NaN fails
    )
    return TrainingAudit(
        moved=moved, allowed=allowed, findings=tuple(sorted(findings)), compared=tuple(sorted(compared))
    )


class _Counted:
    """Users whose episodes are counted."""

    def __init__(self, of: Users) -> None:
        self._of = of
        self._episodes = Counter[int]()

    def play(self, choose: Choose, users: range) -> Episodes:
        """Let them play, and count."""
        self._episodes.update(users)
        return self._of.play(choose, users)

    def twice(self) -> Iterator[str]:
        """Finding about users with several episodes, if there are any."""
        several = sorted(user for user, episodes in self._episodes.items() if episodes > 1)
        if several:
            yield f"{len(several)} users play more than one episode, the first of them is number {several[0]}"


def _sources(noise: Callable[[int], NoiseSource], recorded: _Recorded) -> Callable[[int], NoiseSource]:
    return lambda batch: _Recorder(batch, noise(batch), recorded)


def _distance(one: _Recorded, two: _Recorded, release: int, *, apart: bool) -> float:
    """√Σ‖Δ‖₂² of a release over the batches of both runs, or the largest ‖Δ‖₂ of a batch."""
    keys = [key for key in one.exact.keys() & two.exact.keys() if key[1] == release]
    squares = [float(((one.exact[key] - two.exact[key]) ** 2).sum()) for key in keys]
    return math.sqrt(max(squares, default=0.0) if apart else sum(squares))


def _compare_noise(one: _Recorded, two: _Recorded, scales: list[tuple[str, float]]) -> Iterator[str]:
    if one.exact.keys() != two.exact.keys():
        yield "the two runs make different releases, which no noise hides"
    for release, scale in one.scales | two.scales:
        name, declared = scales[release]
        if not math.isclose(scale, declared, rel_tol=_SLACK):
            yield f"{name}: noise of scale {scale:g} is drawn, {declared:g} is declared"


def _compare_left(left: Left, other: Left) -> Iterator[str]:
    if left.keys() != other.keys():
        yield "the two runs let different things leave"
    for name in left.keys() & other.keys():
        if not np.array_equal(left[name], other[name], equal_nan=True):
            yield f"{name} differs behind the same noisy sums: it is computed from data"


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
        steps: Of the episode.
        terminated: Whether its end is a terminal state.
    """

    of: Users
    user: int
    action: int
    size: float = 3.0
    reward: float = 0.0
    steps: int = 20
    terminated: bool = True

    def play(self, choose: Choose, users: range) -> Episodes:
        """The users' episodes, with the extreme one's in its place."""
        episodes = self.of.play(choose, users)
        if self.user not in users:
            return episodes
        row, steps = users.index(self.user), episodes.actions.shape[1]
        episodes = episodes.padded(max(self.steps, steps))
        observations, rewards = episodes.observations.copy(), episodes.rewards.copy()
        actions, lengths, terminated = episodes.actions.copy(), episodes.lengths.copy(), episodes.terminated.copy()
        observations[row], actions[row], rewards[row] = 0.0, 0, 0.0
        observations[row, : self.steps], actions[row, : self.steps] = self.size, self.action
        rewards[row, : self.steps] = self.reward
        lengths[row], terminated[row] = self.steps, self.terminated
        return replace(
            episodes,
            observations=observations,
            actions=actions,
            rewards=rewards,
            lengths=lengths,
            terminated=terminated,
        )


def extreme_pairs(users: Users, user: int) -> Iterator[tuple[Users, Users]]:
    """Pairs of neighbouring sets of users that differ in one extreme user.

    Opposite actions, with the largest change of a clipped sum; a huge observation and none, for what is scaled by the
    batch; an early end with bad rewards and a long episode with good ones, for what looks at returns or lengths.

    Args:
        users: The other users.
        user: The number of the one who is replaced.
    """
    usual = ExtremeUser(of=users, user=user, action=0)
    yield usual, replace(usual, action=1)
    yield replace(usual, size=1000.0), replace(usual, action=1, size=0.0)
    yield replace(usual, reward=-1000.0, steps=1), replace(usual, action=1, reward=1000.0, terminated=False)


def replay_training(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Test a registered agent's training on simulated users, at the sizes of its audit instance.

    `trials` is the number of pairs. A round has the extreme ones, in which one user is replaced: of the first batch in
    the first rounds, then of the second, and so on. Rounds are of CartPole with the instance's noise, under which
    policies follow the sums closely; of CartPole with the declared noise on its grid, as a release draws it; and of
    MountainCar and Pendulum, whose signals are a goal and rewards.

    Raises:
        ParameterError: A number of the request is out of range, or the algorithm trains no policy.
    """
    check(request)
    began = time.perf_counter()
    rounds = [_Round.of(request, algorithm, task) for task in (CART_POLE, CART_POLE, MOUNTAIN_CAR, PENDULUM)]
    rounds[1] = rounds[1].on_grid(request.declaration)
    found: list[tuple[str, int, TrainingAudit]] = []
    done = 0
    while done < request.trials:
        at, one = len(found), rounds[len(found) % len(rounds)]
        user = one.user(at // len(rounds))
        pairs = list(extreme_pairs(SimulatedUsers(task=one.task, seed=request.seed), user))[: request.trials - done]
        audited = audit_lockstep(
            one.procedure(request.declaration),
            pairs,
            declaration=one.drawn,
            values=one.values,
            seed=request.seed + at,
        )
        done += len(pairs)
        found.append((f"two extreme episodes of user {user} of {one.values['K']}, {one.task.name}", done, audited))
        request.progress(done, request.trials)
        if not audited.consistent:
            break
    at_sizes = {**request.values, **rounds[1].values}
    return run_test(request, lambda _: found, lambda all_: _read(request, all_, at_sizes), began=began, agent_ran=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """An agent on users of a task, and the declaration of the noise that is drawn for it."""

    task: Task
    agent: Agent[Any]
    drawn: Declaration
    values: Mapping[str, Fraction]
    declared: Mapping[str, Fraction]

    @classmethod
    def of(cls, request: AuditRequest, algorithm: Algorithm, task: Task) -> _Round:
        """The agent at the sizes of its audit instance, with its noise.

        Raises:
            ParameterError: The algorithm trains no policy.
        """
        if algorithm.trained is None:
            raise ParameterError(f"{algorithm.name} trains no policy", name=algorithm.name)
        options, readings = request.setting.options, request.setting.readings
        sizes = {**algorithm.instance.sizes, **algorithm.trained.sizes(task, options, readings)}
        declared = {name: Fraction(sizes.get(name, value)) for name, value in request.values.items()}
        return cls(
            task=task,
            agent=algorithm.trained.agent(task, options, readings),
            drawn=request.declaration,
            values={name: Fraction(algorithm.instance.values.get(name, value)) for name, value in declared.items()},
            declared=declared,
        )

    def on_grid(self, declaration: Declaration) -> _Round:
        """The same with the declared noise, on the grid of a release if the claim has release noise."""
        try:
            drawn = as_drawn(declaration, self.declared)
        except ParameterError:
            drawn = declaration
        return replace(self, drawn=drawn, values=self.declared)

    def user(self, batch: int) -> int:
        """The second user of a batch; of the first again after the last."""
        return int((1 + batch * self.values["B"]) % self.values["K"])

    def procedure(self, declaration: Declaration) -> Procedure:
        """The training."""
        how: dict[str, Any] = {"drawn": self.drawn, "steps": self.task.limit}

        def trained(users: Users, noise: Callable[[int], NoiseSource]) -> Left:
            return leaving(train(self.agent, users, declaration=declaration, values=self.values, noise=noise, **how))

        return trained


def _read(
    request: AuditRequest, found: list[tuple[str, int, TrainingAudit]], values: Mapping[str, Fraction]
) -> Outcome:
    pair, done, last = found[-1]
    distances = [
        Distance(
            release=name,
            norm="l2",
            measured=one.moved[name],
            charged=most,
            exceeds=not one.moved[name] <= most * (1 + _SLACK),
            pair=words,
        )
        for words, _, one in found
        for name, most in one.allowed.items()
    ]
    top = max(distances, key=lambda one: (one.exceeds, one.ratio))
    compared = ", ".join(sorted({name for *_, one in found for name in one.compared}))
    top_pair = top.pair if last.consistent else pair
    return Outcome(
        violated=not last.consistent,
        method="lockstep replay of the running training: compares the sums before noise on D and, behind D's noisy "
        "sums, on D′, over all batches with the declared sensitivity, and whatever leaves, bit for bit; exact, without "
        "error probability",
        witness=top_pair if last.consistent else f"{'; '.join(last.findings)} ({top_pair})",
        evidence={
            "release": top.release,
            "norm": top.norm,
            "moved": top.measured if math.isfinite(top.measured) else "not finite",
            "charged": top.charged,
            "pairs": done,
            "compared": compared,
            **size_note(request.values, values),
        },
        bars=draw_distances(distances),
        runs=None if last.consistent else 2 * done,
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
