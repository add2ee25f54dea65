"""PRIVATE-UCB-VI (paper 002, Algorithm 2): one agent, with the paper's privatizers or with calibrated noise."""

from privcheck.registry import Algorithm
from privcheck_algorithms.papers import EPISODIC
from privcheck_algorithms.private_ucb_vi.agent import CALIBRATED_OPTIONS, OPTIONS, run
from privcheck_algorithms.private_ucb_vi.declaration import RELEASES, calibrated, central, local
from privcheck_algorithms.privatizers.declaration import INITIAL, LOG

CENTRAL = Algorithm(
    name="private-ucb-vi-central",
    title="PRIVATE-UCB-VI with the CENTRAL-PRIVATIZER: optimistic value iteration, binary-tree counters",
    source="Chowdhury & Zhou, DP Regret Minimization in Episodic MDPs, Algorithm 2",
    paper=EPISODIC,
    declare=central,
    choices=(LOG, INITIAL),
    options=OPTIONS,
    online=run,
    twin="ucb-vi",
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
    twin="ucb-vi",
)

CALIBRATED = Algorithm(
    name="private-ucb-vi-calibrated",
    title="PRIVATE-UCB-VI with the Gaussian noise that (ε, δ)-JDP needs, in trees or in doubling batches",
    source="this package; the agent is Algorithm 2 of Chowdhury & Zhou, DP Regret Minimization in Episodic MDPs",
    declare=calibrated,
    choices=(RELEASES, INITIAL),
    options=CALIBRATED_OPTIONS,
    online=run,
    twin="ucb-vi",
)

__all__ = ["CALIBRATED", "CENTRAL", "LOCAL"]
