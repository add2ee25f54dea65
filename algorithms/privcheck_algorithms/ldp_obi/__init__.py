"""LDP-OBI (Garcelon et al. 2021), a baseline of Chowdhury & Zhou 2022, as far as the papers describe it."""

from functools import partial

from privcheck.registry import Algorithm
from privcheck_algorithms.ldp_obi.declaration import ldp_obi
from privcheck_algorithms.online import rewards
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.online.rewards import OPTIONS, player
from privcheck_algorithms.papers import EPISODIC
from privcheck_algorithms.privatizers.declaration import ANY_START, NOISE

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
    online=partial(player, kind=rewards.OBI, label="ldp-obi", pooled=True),
    instance=CLOSELY,
)

__all__ = ["LDP_OBI"]
