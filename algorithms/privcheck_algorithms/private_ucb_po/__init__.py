"""PRIVATE-UCB-PO (Chowdhury & Zhou 2022, Algorithm 1): one agent, with the CENTRAL- and the LOCAL-PRIVATIZER."""

from privcheck.registry import Algorithm
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.papers import EPISODIC
from privcheck_algorithms.private_ucb_po.agent import OPTIONS, player
from privcheck_algorithms.private_ucb_po.declaration import central, local
from privcheck_algorithms.privatizers.declaration import ANY_START, LOG, SAME_START

CENTRAL = Algorithm(
    name="private-ucb-po-central",
    title="PRIVATE-UCB-PO with the CENTRAL-PRIVATIZER: optimistic policy optimisation, binary-tree counters",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 1",
    paper=EPISODIC,
    declare=central,
    readings=(LOG, SAME_START),
    options=OPTIONS,
    instead="calibrated-ucb-vi",
    printed={**PRINTED, "eta_scale": "1"},
    online=player,
    instance=CLOSELY,
    twin="oppo",
)

LOCAL = Algorithm(
    name="private-ucb-po-local",
    title="PRIVATE-UCB-PO with the LOCAL-PRIVATIZER: optimistic policy optimisation, noise with each user",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 1",
    paper=EPISODIC,
    declare=local,
    readings=(ANY_START,),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed={**PRINTED, "eta_scale": "1"},
    online=player,
    instance=CLOSELY,
    twin="oppo",
)

__all__ = ["CENTRAL", "LOCAL"]
