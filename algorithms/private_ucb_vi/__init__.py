"""PRIVATE-UCB-VI (paper 002, Algorithm 2): one agent, declared twice, with the CENTRAL- and the LOCAL-PRIVATIZER."""

from algorithms.papers import EPISODIC
from algorithms.private_ucb_vi.agent import OPTIONS, run
from algorithms.private_ucb_vi.declaration import central, local
from algorithms.privatizers.declaration import INITIAL, LOG
from privcheck.registry import Algorithm

CENTRAL = Algorithm(
    name="private-ucb-vi-central",
    title="PRIVATE-UCB-VI with the CENTRAL-PRIVATIZER: optimistic value iteration, binary-tree counters",
    source="Chowdhury & Zhou, DP Regret Minimization in Episodic MDPs, Algorithm 2",
    paper=EPISODIC,
    declare=central,
    choices=(LOG, INITIAL),
    options=OPTIONS,
    online=run,
)

LOCAL = Algorithm(
    name="private-ucb-vi-local",
    title="PRIVATE-UCB-VI with the LOCAL-PRIVATIZER: optimistic value iteration, noise with each user",
    source="Chowdhury & Zhou, DP Regret Minimization in Episodic MDPs, Algorithm 2",
    paper=EPISODIC,
    declare=local,
    choices=(INITIAL,),
    options=OPTIONS,
    online=run,
)

__all__ = ["CENTRAL", "LOCAL"]
