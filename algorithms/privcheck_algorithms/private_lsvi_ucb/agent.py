"""Private LSVI-UCBs: the regression of `linear.lsvi` on the releases that are declared beside it.

The agent is LSVI-UCB (Jin et al. 2020, Algorithm 1); what is private about it is when its sums leave, and with what
noise. Both follow the declaration. Constants are options; no claim depends on them.
"""

from __future__ import annotations

from privcheck.declaration import Parameter
from privcheck.online.player import Player
from privcheck.results import OnlineRequest
from privcheck_algorithms.linear.lsvi_player import lsvi_player, private_rule
from privcheck_algorithms.linear.sizes import refuse

EPISODES = Parameter(name="K", default=1_000, kind="count", meaning="episodes, a user each, cut in B batches")


def luyo_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns LSVI-UCB with a plan after each of B batches of equal length; of K users, where these are fewer.

    Args:
        request: What is asked.
        noiseless: No noise is drawn; the agent plans as with noise.

    Raises:
        ParameterError: Sizes that are not the environment's, no episode, or an option out of its range.
    """
    refuse(request)
    batches = min(int(request.values["B"]), request.episodes)
    rule = private_rule(request, batches=batches, most=None, noiseless=noiseless)
    return lsvi_player(request, rule, label=_label("luyo-lsvi-ucb", noiseless=noiseless))


def ngo_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns LSVI-UCB with a plan whenever a noisy determinant has doubled, N times at most.

    Args:
        request: What is asked.
        noiseless: No noise is drawn; the agent plans as with noise.

    Raises:
        ParameterError: As `luyo_player`.
    """
    refuse(request)
    rule = private_rule(request, batches=0, most=int(request.values["N"]), noiseless=noiseless)
    return lsvi_player(request, rule, label=_label("ngo-lsvi-ucb", noiseless=noiseless))


def _label(name: str, *, noiseless: bool) -> str:
    return f"{name}, noiseless" if noiseless else name
