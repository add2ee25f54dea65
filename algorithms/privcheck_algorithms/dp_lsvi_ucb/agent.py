"""DP-LSVI-UCB++ (Sahu 2025, Algorithm 1): LSVI-UCB++ on the releases that are declared beside it.

The steps are in `linear.weighted`. Whether noise is fresh for every output or one draw for all, how much there is and
how long features are follow the declaration; constants are options, and no claim depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from privcheck.online.player import Player
from privcheck.results import OnlineRequest
from privcheck_algorithms.linear.weighted_player import private_rule, weighted_player


@dataclass(frozen=True, slots=True, kw_only=True)
class DpLsviUcb:
    """Makes the agent that is registered under a name (a `MakePlayer`).

    Attributes:
        name: Of the agent.
        weighted: Whether σ̄ is estimated; else it is H throughout.
    """

    name: str
    weighted: bool = True

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Returns DP-LSVI-UCB++ in its world, ready to play.

        Args:
            request: What is asked.
            noiseless: No noise is drawn; the agent plans as with noise.

        Raises:
            ParameterError: Sizes that are not the environment's, no episode, or an option out of its range.
        """
        rule = private_rule(request, weighted=self.weighted, noiseless=noiseless)
        return weighted_player(request, rule, label=f"{self.name}, noiseless" if noiseless else self.name)
