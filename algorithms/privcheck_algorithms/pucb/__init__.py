"""PUCB (Vietri et al. 2020), a baseline of Chowdhury & Zhou 2022, as far as the papers describe it."""

from functools import partial

from privcheck.registry import Algorithm
from privcheck_algorithms.online import rewards
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.online.rewards import OPTIONS, player
from privcheck_algorithms.papers import EPISODIC
from privcheck_algorithms.privatizers.declaration import LOG, NOISE, SAME_START
from privcheck_algorithms.pucb.declaration import pucb

PUCB = Algorithm(
    name="pucb",
    title="PUCB: private UBEV under joint DP, with Chowdhury & Zhou's counters (its own noise is not in the papers)",
    source="Vietri et al. 2020, as described in Chowdhury & Zhou 2022, arXiv:2112.10599, Table 1",
    paper=EPISODIC,
    declare=pucb,
    readings=(NOISE, LOG, SAME_START),
    options=OPTIONS,
    instead="calibrated-ucb-vi",
    printed=PRINTED,
    online=partial(player, kind=rewards.PUCB, label="pucb"),
    instance=CLOSELY,
)

__all__ = ["PUCB"]
