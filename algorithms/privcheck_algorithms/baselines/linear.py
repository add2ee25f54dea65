"""Non-private twins in linear models: LSVI-UCB, LSVI-UCB++, UCRL-VTR and linear OPPO.

* LSVI-UCB (Jin, Yang, Wang & Jordan 2020, Algorithm 1), twin of the private LSVI-UCBs of Sahu 2025. There is a new plan
  when the determinant of a Gram matrix has doubled (Wang, Zhou & Gu 2021), or after each of B batches. The inverses
  that give the determinants get rank-one updates and are recomputed at every plan.
* LSVI-UCB++ (He, Zhao, Zhou & Gu 2023), twin of Sahu's DP-LSVI-UCB++. Users are weighted by 1/σ̄². Between two plans
  the inverses of Gram matrices get rank-one updates, and ŵ and w̄, on which the weights depend, are computed from them.
* UCRL-VTR and linear OPPO, twins of Private-LinOpt-VI and -PO in linear mixtures: Algorithms 1 and 2 of Zhou 2022 with
  exact counters, Z = λI and z = 0.
"""

from __future__ import annotations

from dataclasses import replace

from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.online import Player
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.baselines.tabular import EPISODES
from privcheck_algorithms.linear.players import (
    BONUS,
    CENTRED,
    DOUBT,
    GROWTH,
    RIDGE,
    WEIGHTED_BONUS,
    WEIGHTED_RIDGE,
    exact_rule,
    exact_weighted_rule,
    lsvi_player,
    weighted_player,
)
from privcheck_algorithms.private_linopt.agent import BASELINE_OPTIONS, ETA_SCALE, PRINTED, make

BATCHES = Parameter(
    name="batches",
    default=50,
    kind="count",
    meaning="with growth=1: plans after so many batches of equal length; K: each",
)

# calibrated-lsvi-ucb leaves constants out of its regression too: beside it they would be a handicap
USUALLY_CENTRED = replace(CENTRED, ways=("on", "off"))


def lsvi_ucb_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Player of LSVI-UCB in its world; it never draws noise.

    Raises:
        ParameterError: No episode, a growth below 1, or too large matrices.
    """
    growth = float(request.options["growth"])
    if growth < 1:
        message = f"growth (of a determinant until the next plan): expected at least 1, got {growth:g}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    batches = min(int(request.options["batches"]), request.episodes) if growth == 1 else 0
    return lsvi_player(request, exact_rule(request, batches=batches, growth=growth), label="lsvi-ucb")


LSVI_UCB = Algorithm(
    name="lsvi-ucb",
    title="LSVI-UCB: optimistic regression in linear MDPs, not private",
    source="Jin, Yang, Wang & Jordan 2020, Algorithm 1; Sahu 2025, section 1",
    declare=None,
    readings=(USUALLY_CENTRED,),
    options=(EPISODES, RIDGE, BONUS, GROWTH, BATCHES),
    printed={"centred": "off"},
    online=lsvi_ucb_player,
)


def lsvi_ucb_pp_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Player of LSVI-UCB++ in its world; it never draws noise.

    Raises:
        ParameterError: No episode, a growth below 1, or too large matrices.
    """
    if request.options["growth"] < 1:
        message = f"growth (of a determinant until the next plan): expected at least 1, got {request.options['growth']}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    return weighted_player(request, exact_weighted_rule(request), label="lsvi-ucb-pp")


LSVI_UCB_PP = Algorithm(
    name="lsvi-ucb-pp",
    title="LSVI-UCB++: optimistic weighted regression in linear MDPs, not private",
    source="He, Zhao, Zhou & Gu 2023; Sahu 2025, Algorithm 1 without noise",
    declare=None,
    readings=(USUALLY_CENTRED,),
    options=(EPISODES, WEIGHTED_RIDGE, WEIGHTED_BONUS, GROWTH, DOUBT),
    printed={"centred": "off", "doubt": "1"},
    online=lsvi_ucb_pp_player,
)


def value_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of UCRL-VTR in its world; it never draws noise.

    Raises:
        ParameterError: The world has no kernels, a size is refused, or the ridge is 0.
    """
    return make(request, mixed=False, private=False, noiseless=noiseless, label="ucrl-vtr")


def policy_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of linear OPPO in its world; it never draws noise.

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
