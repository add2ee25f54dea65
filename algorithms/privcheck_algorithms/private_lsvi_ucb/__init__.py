"""Two private LSVI-UCBs that paper 001 compares with, as far as the five papers describe what they release."""

from privcheck.registry import Algorithm
from privcheck_algorithms.linear.ruler import INSTANCE
from privcheck_algorithms.papers import LINEAR
from privcheck_algorithms.private_lsvi_ucb.agent import policies
from privcheck_algorithms.private_lsvi_ucb.declaration import GRAM, luyo, ngo

LUYO = Algorithm(
    name="luyo-lsvi-ucb",
    title="private LSVI-UCB with fixed batches (Luyo et al.)",
    source="compared with in Sahu, DP in RL: Linear MDPs",
    paper=LINEAR,
    declare=luyo,
    readings=(GRAM,),
    policies=policies,
    instance=INSTANCE,
)

NGO = Algorithm(
    name="ngo-lsvi-ucb",
    title="private LSVI-UCB with determinant updates and a tree (Ngo et al.)",
    source="compared with in Sahu, DP in RL: Linear MDPs",
    paper=LINEAR,
    declare=ngo,
    policies=policies,
    instance=INSTANCE,
)

__all__ = ["LUYO", "NGO"]
