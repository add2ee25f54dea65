"""Noise audit: test whether the declared law is drawn, at the declared scale, independently everywhere.

The auditor sees the exact value and the output of every slice (only auditors do), so it sees the noise itself. The
declared noise is read from the mechanism (law and std), the drawn noise from the channel, from the counter of a tree,
or from a running online agent, episode by episode (`OnlineDraws`). For a tree the noise of its sums is separated into
that of the P-sums, each with a separate draw; for a local privatizer it is the difference between a user's message and
that of the agent's noiseless twin; for batches that of the batch's tables. The tests are in
`privcheck_audits.lockstep.noise_tests`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.schedules import Tree
from privcheck.errors import AuditError
from privcheck.runtime import Billboard, Channel, Ledger, NoiseSource, SimulatedNoise, TreeCounter
from privcheck.runtime.noise import Fresh
from privcheck.runtime.online import Tables
from privcheck.support.display import Progress, silent
from privcheck_audits.lockstep.agents import Twin, Watched
from privcheck_audits.lockstep.noise_tests import NoiseRecorder, NoiseTest, Sums, judge, list_declared_noise
from privcheck_audits.lockstep.streams import MakeCounter, Seats, TreeNodes, outputs
from privcheck_audits.lockstep.users import Array, Users


def noise_sums(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    users: Users,
    *,
    runs: range,
    rng: np.random.Generator,
    seed: int,
    source: Callable[[int], NoiseSource] = SimulatedNoise,
    counter: MakeCounter = TreeCounter,
) -> Sums:
    """Sums of the noise drawn by fresh runs of the channel and of the counters.

    Args:
        declaration: The declaration.
        values: Values of its parameters.
        users: Users in their order.
        runs: Numbers of the runs.
        rng: Seeds the noise of each run and output.
        seed: Seed of the audit, for messages.
        source: Makes the channel's noise source from a seed.
        counter: Makes the counter of a tree.

    Raises:
        ParameterError: A release has a law without tests here.
        ChannelError: Releases are declared to share their noise, which a channel does not draw.
        AuditError: An output is not finite.
    """
    recorder, seats = NoiseRecorder(declaration, values, seed=seed), Seats(users, values)
    parts = {release.name: release.statistic.shape(values)[0] for release in declaration.noisy}
    last = {release.name: outputs(release, values) for release in declaration.noisy}
    trees = [r for r in declaration.noisy if isinstance(r.schedule, Tree) and last[r.name]]
    channel = _Channel(declaration, values, source)
    for run in runs:
        sums = {r.name: _TreeNoise(r, values, counter, last[r.name], int(rng.integers(2**63))) for r in trees}
        for output in range(1, max(last.values()) + 1):
            channel.open(int(rng.integers(2**63)))
            out = [r for r in declaration.noisy if output <= last[r.name]]
            closed = {r.name: sums[r.name].close(seats, output) for r in out if r.name in sums}
            for part in range(max((parts[r.name] for r in out), default=0)):
                noises = {}
                for release in out:
                    if part >= parts[release.name]:
                        continue
                    if release.name in closed:
                        noises[release.name] = closed[release.name][part : part + 1]
                    else:
                        exact = seats.exact(release, output, step=part)
                        noises[release.name] = channel.noise(release.name, exact, part)
                largest = max([channel.largest, *(tree.largest for tree in sums.values())])
                recorder.record(noises, run=run, output=output, part=part, largest=largest)
    return recorder.sums()


def noise_tests(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    users: Users,
    *,
    runs: int,
    seed: int,
    source: Callable[[int], NoiseSource] = SimulatedNoise,
    counter: MakeCounter = TreeCounter,
    progress: Progress = silent,
) -> tuple[NoiseTest, ...]:
    """Test the noise drawn by a number of runs of the channel.

    Args:
        declaration: The declaration.
        values: Values of its parameters.
        users: Users in their order.
        runs: Number of runs of the channel, each with independent noise.
        seed: Seed of all runs.
        source: Makes a run's noise source from a seed.
        counter: Makes the counter of a tree.
        progress: Called at the end.

    Raises:
        ParameterError: As for `noise_sums`.
        ChannelError: As for `noise_sums`.
        AuditError: As for `noise_sums`.
    """
    rng = np.random.default_rng(seed)
    sums = noise_sums(declaration, values, users, runs=range(runs), rng=rng, seed=seed, source=source, counter=counter)
    progress(runs, runs)
    return judge(sums, list_declared_noise(declaration, values))


class _Channel:
    """A channel that returns its noise, opened again for every output."""

    def __init__(
        self, declaration: Declaration, values: Mapping[str, Fraction], source: Callable[[int], NoiseSource]
    ) -> None:
        self._declaration, self._values, self._source = declaration, values, source
        noise = source(0)
        ledger = Ledger(declaration, values, noise=noise.words)
        self._channel = Channel(declaration, values, noise=noise, billboard=Billboard(), ledger=ledger)
        self.largest = 0.0  # magnitude of an output

    def open(self, seed: int) -> None:
        """Open the channel of another output, with noise from a separate seed."""
        noise = self._source(seed)
        ledger = Ledger(self._declaration, self._values, noise=noise.words)
        self._channel = self._channel.again(noise=noise, billboard=Billboard(), ledger=ledger)

    def noise(self, name: str, exact: Array, part: int) -> Array:
        """Noise of one slice, (1, …)."""
        noisy = self._channel.release(name, exact, part=part)
        self.largest = max(self.largest, float(np.abs(noisy).max(initial=0.0)))
        noise: Array = noisy - exact
        return noise[np.newaxis]


class _TreeNoise:
    """A tree's counter, with the noise of its P-sums."""

    def __init__(
        self, release: Release, values: Mapping[str, Fraction], counter: MakeCounter, leaves: int, seed: int
    ) -> None:
        noise: Fresh = release.mechanism.at(values)
        self._counter = counter(release.statistic.shape(values), noise, leaves=leaves)
        self._release, self._rng = release, np.random.default_rng(seed)
        self._sum, self._nodes = np.zeros(release.statistic.shape(values)), TreeNodes()
        self.largest = 0.0  # magnitude of an output

    def close(self, seats: Seats, output: int) -> Array:
        """Noise of the P-sum that closes with a user, (slices, …)."""
        own = seats.exact(self._release, output)
        self._sum += own
        noisy = self._counter.release(own, self._rng)
        self.largest = max(self.largest, float(np.abs(noisy).max(initial=0.0)))
        return self._nodes.close(output, noisy - self._sum)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineDraws:
    """A block of runs of an agent.

    Attributes:
        agents: The agent, under one or several options, which take turns.
        seed: Seed of the audit, for messages.
    """

    agents: tuple[Watched, ...]
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Sums:
        """Sums of the noise drawn by a number of runs."""
        recorder = NoiseRecorder(self.agents[0].declaration, self.agents[0].request.values, seed=self.seed)
        for run in range(first, first + runs):
            self._run(recorder, run, seed=int(rng.integers(2**63)))
        return recorder.sums()

    def _run(self, recorder: NoiseRecorder, run: int, *, seed: int) -> None:
        agent = self.agents[run % len(self.agents)]
        player = agent.player(seed)
        one, face = player.start(0), agent.face(player)
        nodes = {release.name: TreeNodes() for release in agent.declaration.noisy}
        local = face.exact(one, 1) is None
        noiseless, twin = (agent.player(seed, noiseless=True), Twin(agent, seed)) if local else (None, None)
        before = _zeros(face.noisy(one, 1)) if local else {}
        for episode in range(1, agent.request.episodes + 1):
            message: Tables = {}
            if noiseless is not None and twin is not None:
                message = twin.message(noiseless, one, episode)
            player.play(one, episode)
            output = face.output(episode)
            if output is None:
                continue
            noisy, exact = face.noisy(one, output), face.exact(one, output)
            if twin is not None:
                twin.check(one, episode)
                noises = {name: table - before[name] - message[name] for name, table in noisy.items()}
                before = noisy
            elif exact is not None:
                noises = {name: table - exact[name] for name, table in noisy.items()}
                noises |= {n: nodes[n].close(output, noise) for n, noise in noises.items() if n in agent.trees}
            else:
                missing = f"episode {episode}: exact values that were available before are missing"
                raise AuditError(missing, trial=run, seed=seed)
            largest = max((float(np.abs(table).max(initial=0.0)) for table in noisy.values()), default=0.0)
            recorder.record(noises, run=run, output=output, largest=largest)


def _zeros(tables: Tables) -> Tables:
    return {name: np.zeros_like(table) for name, table in tables.items()}
