"""Noise as declared, of running online agents: what the kernels add, episode by episode, is heard and tested.

Of a tree the noise of its sums is taken apart into that of the P-sums, each with a draw of its own; of a local
privatizer it is what a user's message has beyond the agent's twin without noise; of batches that of the batch's tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privcheck_audits.white_box.noise_tests import Listener, Sums
from privcheck_audits.white_box.streams import Nodes
from privcheck_audits.white_box.watching import Tables, Twin, Watched


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineDraws:
    """A block of runs of an agent.

    Attributes:
        agent: The agent.
        seed: Of the audit, for messages.
    """

    agent: Watched
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Sums:
        """Returns what so many runs drew."""
        heard = Listener(self.agent.declaration, self.agent.request.values, seed=self.seed)
        for run in range(first, first + runs):
            self._run(heard, run, seed=int(rng.integers(2**63)))
        return heard.sums()

    def _run(self, heard: Listener, run: int, *, seed: int) -> None:
        agent, watch = self.agent, self.agent.watch
        player = agent.player(seed)
        one = player.start(0)
        nodes = {release.name: Nodes() for release in agent.declaration.releases}
        quiet, twin = (agent.player(seed, quiet=True), Twin(agent, seed)) if agent.local else (None, None)
        before = _zeros(watch.noisy(one, 1)) if agent.local else {}
        for episode in range(1, agent.request.episodes + 1):
            message: Tables = {}
            if quiet is not None and twin is not None:
                message = twin.message(quiet, one, episode)
            player.play(one, episode)
            output = watch.output(episode)
            if output is None:
                continue
            noisy = watch.noisy(one, output)
            if twin is not None:
                twin.check(one, episode)
                noises = {name: table - before[name] - message[name] for name, table in noisy.items()}
                before = noisy
            else:
                exact = watch.exact(one, output)
                noises = {name: table - exact[name] for name, table in noisy.items()}
                if agent.tree:
                    noises = {name: nodes[name].close(output, noise) for name, noise in noises.items()}
            heard.hear(noises, run=run, output=output)


def _zeros(tables: Tables) -> Tables:
    return {name: np.zeros_like(table) for name, table in tables.items()}
