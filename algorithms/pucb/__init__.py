"""PUCB (Vietri et al. 2020), a baseline of paper 002, as far as the papers describe it."""

from algorithms.papers import EPISODIC
from algorithms.privatizers.declaration import INITIAL, LOG, NOISE
from algorithms.pucb.agent import OPTIONS, learn
from algorithms.pucb.declaration import pucb
from privcheck.registry import Algorithm

PUCB = Algorithm(
    name="pucb",
    title="PUCB: private UBEV under joint DP, with paper 002's counters (its own noise is not in the papers)",
    source="Vietri et al. 2020, as described in papers 000, 001 and 002",
    paper=EPISODIC,
    declare=pucb,
    choices=(NOISE, LOG, INITIAL),
    options=OPTIONS,
    online=learn,
)

__all__ = ["PUCB"]
