"""PRIVATE-UCB-VI (Chowdhury & Zhou 2022, Algorithm 2): one agent, with the paper's privatizers or calibrated noise."""

from privcheck.registry import Algorithm
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.papers import EPISODIC
from privcheck_algorithms.private_ucb_vi.agent import CALIBRATED_OPTIONS, OPTIONS, player
from privcheck_algorithms.private_ucb_vi.declaration import RELEASES, calibrated, central, local
from privcheck_algorithms.privatizers.declaration import ANY_START, LOG, SAME_START

CENTRAL = Algorithm(
    name="private-ucb-vi-central",
    title="PRIVATE-UCB-VI with the CENTRAL-PRIVATIZER: optimistic value iteration, binary-tree counters",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 2",
    paper=EPISODIC,
    declare=central,
    readings=(LOG, SAME_START),
    options=OPTIONS,
    instead="calibrated-ucb-vi",
    printed=PRINTED,
    online=player,
    instance=CLOSELY,
    twin="ucb-vi",
)

LOCAL = Algorithm(
    name="private-ucb-vi-local",
    title="PRIVATE-UCB-VI with the LOCAL-PRIVATIZER: optimistic value iteration, noise with each user",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 2",
    paper=EPISODIC,
    declare=local,
    readings=(ANY_START,),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed=PRINTED,
    online=player,
    instance=CLOSELY,
    twin="ucb-vi",
)

CALIBRATED = Algorithm(
    name="private-ucb-vi-calibrated",
    title="PRIVATE-UCB-VI with the Gaussian noise that (ε, δ)-JDP needs, in trees or in doubling batches",
    source="this package; the agent is Algorithm 2 of Chowdhury & Zhou 2022, arXiv:2112.10599",
    declare=calibrated,
    readings=(RELEASES, SAME_START),
    options=CALIBRATED_OPTIONS,
    instead="calibrated-ucb-vi",
    printed=PRINTED,
    online=player,
    instance=CLOSELY,
    twin="ucb-vi",
)

__all__ = ["CALIBRATED", "CENTRAL", "LOCAL"]
