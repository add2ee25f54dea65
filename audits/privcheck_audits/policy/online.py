"""Whole online agents under audit: the first user answers as in D or as in D′, and later users' policies are seen.

The agents are the registered ones, on their own kernels, played episode by episode. A user is a response function
(paper 002, section 2.2), so the two first users are two worlds without chance: each plays one episode, under the
agent's own policy, and every later user comes from the same world in both arms. Nothing exact is written by the
auditor, and nothing of the first user's own episode is read: under joint DP their column is dropped. The policy they
meet is made before there are data, and is public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.finite_mdp import FiniteMDP
from privcheck.results import OnlineRequest
from privcheck_algorithms.online.driver import Player, Replicate
from privcheck_audits.engine.scores import hidden_bits
from privcheck_audits.policy.runs import Outputs

Array = NDArray[np.float64]
_TINY = np.finfo(np.float64).tiny  # a probability below is shown as this


class MakePlayer(Protocol):
    """How an agent is made ready to play."""

    def __call__(self, request: OnlineRequest, *, quiet: bool = False) -> Player:
        """Returns the agent; quiet without noise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnlineRuns:
    """Fresh runs of a whole online agent; importable, so that blocks can run in any process.

    Attributes:
        make: Makes the agent.
        request: What is asked of it, in the world of the later users.
        first: The first user's response functions in D and in D′, as worlds without chance.
        quiet: The agent plans from exact counts: the mutant that peeks.
    """

    make: MakePlayer
    request: OnlineRequest
    first: tuple[FiniteMDP, FiniteMDP]
    quiet: bool = False

    def __call__(self, rng: np.random.Generator, runs: int) -> Outputs:
        """Returns the policies of all users but the first, of each run, which is on D or D′ by a hidden bit."""
        secret = hidden_bits(rng, runs)
        asked = replace(self.request, seed=int(rng.integers(2**63)))
        others = self.make(asked, quiet=self.quiet)
        with_first, with_other = (
            self.make(replace(asked, world=replace(asked.world, mdp=mdp)), quiet=self.quiet) for mdp in self.first
        )
        rows = []
        for run, on_first in enumerate(secret):
            one = others.start(run)
            (with_first if on_first else with_other).play(one, 1)
            rows.append(features(self._policies(others, one), mixed="last" in one.arrays))
        return Outputs(features=np.stack(rows), secret=secret)

    def _policies(self, others: Player, one: Replicate) -> Array:
        actions = self.request.world.mdp.actions
        seen = [shown(one, actions)]
        for k in range(2, self.request.episodes + 1):
            others.play(one, k)
            seen.append(shown(one, actions))
        return np.stack(seen)


def features(policies: Array, *, mixed: bool) -> Array:
    """Returns what a score looks at: how the policies moved once there were data.

    Args:
        policies: (K, numbers) as shown to each user, the first included.
        mixed: They are log-odds: how they moved from user to user, and how far, because the first user's action is the
            policy's draw and not seen. Else indicators of actions: whether each is another than in the first policy.
    """
    if not mixed:
        other: Array = np.abs(policies[1:] - policies[0]).ravel()
        return other
    moves: Array = np.diff(policies, axis=0)
    return np.concatenate([moves.ravel(), np.abs(moves).ravel()])


def shown(one: Replicate, actions: int) -> Array:
    """Returns the policy of the episode that was played last: all that its user is shown, in numbers for a score.

    Log-odds of each action against the first where the policy is mixed, an indicator of each but the first where not.
    """
    if "last" in one.arrays:
        logs = np.log(np.maximum(one.arrays["last"], _TINY))
        odds: Array = (logs[..., 1:] - logs[..., :1]).ravel()
        return odds
    indicators: Array = (one.arrays["actions"][..., None] == np.arange(1, actions)).astype(np.float64).ravel()
    return indicators
