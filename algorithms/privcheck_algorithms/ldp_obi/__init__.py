"""LDP-OBI (Garcelon et al. 2021), a baseline of Chowdhury & Zhou 2022, as far as the papers describe it.

Every user's own counts are released. The transition kernels are stationary (Chowdhury & Zhou 2022, section 1), so
counts are pooled over the steps. The papers do not state its noise (README): the declaration uses the noise that its
claim needs, or that of Chowdhury & Zhou's LOCAL-PRIVATIZER.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from privcheck.declare.declaration import Declaration
from privcheck.runtime.registry import Algorithm
from privcheck_algorithms.dp_ucbvi import agent
from privcheck_algorithms.dp_ucbvi.agent import OPTIONS, player
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.papers import EPISODIC, PO_LOCAL_RATE
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import (
    ANY_START,
    NOISE,
    POOLED,
    CountedAlgorithm,
    noise_factor,
    noise_of_ours,
)

# Chowdhury & Zhou's proof is about counts by step, so it is no ground for the default here


def ldp_obi(readings: Mapping[str, str]) -> Declaration:
    """LDP-OBI: ε-LDP according to Chowdhury & Zhou's Table 1."""
    return privatizers.local(
        CountedAlgorithm(
            name="ldp-obi",
            title="LDP-OBI: optimism under local DP, counts pooled over steps (its own noise is not in the papers)",
            source="Garcelon et al. 2021, as described in Chowdhury & Zhou 2022, arXiv:2112.10599, Table 1",
            tables=POOLED,
            claim="Chowdhury & Zhou 2022, Table 1",
            noise="not stated in the papers; 3H/ε: Chowdhury & Zhou 2022, Lemma 5.4",
            factor=noise_factor(readings),
            origin=noise_of_ours(readings, local=True),
        ),
        readings,
    )


LDP_OBI = Algorithm(
    name="ldp-obi",
    title="LDP-OBI: optimism under local DP, counts pooled over steps (its own noise is not in the papers)",
    source="Garcelon et al. 2021, as described in Chowdhury & Zhou 2022, arXiv:2112.10599, Table 1 and section 1",
    paper=EPISODIC,
    declare=ldp_obi,
    readings=(NOISE, ANY_START),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed=PRINTED,
    online=partial(player, kind=agent.OBI, label="ldp-obi", pooled=True),
    instance=CLOSELY,
    twin="ldp-obi",
    rate=PO_LOCAL_RATE,
)

__all__ = ["LDP_OBI"]
