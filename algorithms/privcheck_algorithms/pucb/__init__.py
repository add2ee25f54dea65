"""PUCB (Vietri et al. 2020), a baseline of Chowdhury & Zhou 2022, as far as the papers describe it.

It releases private counters under JDP. The papers do not state its noise (README): the declaration uses the noise that
its claim needs, or that of Chowdhury & Zhou's CENTRAL-PRIVATIZER.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from privcheck.declare.declaration import Declaration
from privcheck.runtime.registry import Algorithm
from privcheck_algorithms.dp_ucbvi import agent
from privcheck_algorithms.dp_ucbvi.agent import OPTIONS, player
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.papers import EPISODIC, PO_CENTRAL_RATE
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import (
    LOG,
    NOISE,
    REWARDS,
    SAME_START,
    CountedAlgorithm,
    noise_factor,
    noise_of_ours,
)


def pucb(readings: Mapping[str, str]) -> Declaration:
    """PUCB: ε-JDP according to Chowdhury & Zhou's Table 1."""
    return privatizers.central(
        CountedAlgorithm(
            name="pucb",
            title="PUCB: private UBEV, joint DP, with Chowdhury & Zhou's counters (its own noise is not in the papers)",
            source="Vietri et al. 2020, as described in Chowdhury & Zhou 2022, arXiv:2112.10599, Table 1",
            tables=REWARDS,
            claim="Chowdhury & Zhou 2022, Table 1",
            noise="not stated in the papers; Chowdhury & Zhou 2022, Lemma 5.1",
            factor=noise_factor(readings),
            origin=noise_of_ours(readings, local=False),
        ),
        readings,
        initial=SAME_START,
    )


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
    online=partial(player, kind=agent.PUCB, label="pucb"),
    instance=CLOSELY,
    twin="pucb",
    rate=PO_CENTRAL_RATE,
)

__all__ = ["PUCB"]
