"""The published experiment code of paper 002, declared as what it does; there is no agent, it must not be run."""

from privcheck.registry import Algorithm
from privcheck_algorithms.papers import EPISODIC
from privcheck_algorithms.privatizers.declaration import INITIAL
from privcheck_algorithms.published_ucb_vi.declaration import central, local

CENTRAL = Algorithm(
    name="published-ucb-vi-central",
    title="Paper 002's published experiment code under joint DP: fresh Lap(1/ε) on the same counts every episode",
    source="Chowdhury & Zhou, DP Regret Minimization in Episodic MDPs, footnote 8",
    paper=EPISODIC,
    declare=central,
    readings=(INITIAL,),
)

LOCAL = Algorithm(
    name="published-ucb-vi-local",
    title="Paper 002's published experiment code under local DP: one draw of Lap(1/ε) for all cells of a table",
    source="Chowdhury & Zhou, DP Regret Minimization in Episodic MDPs, footnote 8",
    paper=EPISODIC,
    declare=local,
    readings=(INITIAL,),
)

__all__ = ["CENTRAL", "LOCAL"]
