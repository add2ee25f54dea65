"""UCRL-VTR and linear OPPO: the twins of Private-LinOpt-VI and -PO, in linear mixtures, from exact counters.

Algorithms 1 and 2 of Zhou 2022 with Z = λI and z = 0.
"""

from __future__ import annotations

from privcheck.online.player import Player
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest
from privcheck_algorithms.baselines.ucb_vi import EPISODES
from privcheck_algorithms.private_linopt.agent import BASELINE_OPTIONS, ETA_SCALE, PRINTED, make


def value_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns UCRL-VTR in its world, ready to play; it draws no noise whatever is asked.

    Raises:
        ParameterError: The world has no kernels, a size is refused, or the ridge is 0.
    """
    return make(request, mixed=False, private=False, noiseless=noiseless, label="ucrl-vtr")


def policy_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns linear OPPO in its world, ready to play; it draws no noise whatever is asked.

    Raises:
        ParameterError: As `value_player`.
    """
    return make(request, mixed=True, private=False, noiseless=noiseless, label="linear-oppo")


UCRL_VTR = Algorithm(
    name="ucrl-vtr",
    title="UCRL-VTR: optimistic value iteration in linear mixtures from exact sums, not private",
    source="Ayoub, Jia, Szepesvári, Wang & Yang 2020; Zhou 2022, Algorithm 1 without noise",
    declare=None,
    options=(EPISODES, *BASELINE_OPTIONS),
    printed=PRINTED,
    online=value_player,
    environment="linear-hypercube",
)

LINEAR_OPPO = Algorithm(
    name="linear-oppo",
    title="OPPO in linear mixtures: optimistic policy steps from exact sums, not private",
    source="Cai, Yang, Jin & Wang 2020; Zhou 2022, Algorithm 2 without noise",
    declare=None,
    options=(EPISODES, *BASELINE_OPTIONS, ETA_SCALE),
    printed={**PRINTED, "eta_scale": "1"},
    online=policy_player,
    environment="linear-hypercube",
)
