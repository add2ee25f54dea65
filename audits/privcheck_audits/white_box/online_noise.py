"""Noise as declared, of running online agents: what the kernels add, episode by episode, is recorded and tested.

Of a tree the noise of its sums is taken apart into that of the P-sums, each with a draw of its own; of a local
privatizer it is what a user's message has beyond the agent's twin without noise; of batches that of the batch's tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privcheck.errors import AuditError
from privcheck.online.player import Tables
from privcheck_audits.white_box.agents import Twin, Watched
from privcheck_audits.white_box.noise_tests import NoiseRecorder, Sums
from privcheck_audits.white_box.streams import TreeNodes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineDraws:
    """A block of runs of an agent.

    Attributes:
        agents: The agent, under one or several options, which take turns.
        seed: Of the audit, for messages.
    """

    agents: tuple[Watched, ...]
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Sums:
        """Returns what so many runs drew."""
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
