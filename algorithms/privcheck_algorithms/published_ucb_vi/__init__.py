"""The published code of Chowdhury & Zhou 2022, declared as what it does; it has no agent."""

from privcheck.registry import Algorithm
from privcheck_algorithms.papers import EPISODIC
from privcheck_algorithms.privatizers.declaration import ANY_START, SAME_START
from privcheck_algorithms.published_ucb_vi.declaration import central, local

CENTRAL = Algorithm(
    name="published-ucb-vi-central",
    title="Chowdhury & Zhou's published code under joint DP: fresh Lap(1/ε) on the same counts every episode",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, footnote 8",
    paper=EPISODIC,
    declare=central,
    readings=(SAME_START,),
)

LOCAL = Algorithm(
    name="published-ucb-vi-local",
    title="Chowdhury & Zhou's published code under local DP: one draw of Lap(1/ε) for all cells of a table",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, footnote 8",
    paper=EPISODIC,
    declare=local,
    readings=(ANY_START,),
)

__all__ = ["CENTRAL", "LOCAL"]
