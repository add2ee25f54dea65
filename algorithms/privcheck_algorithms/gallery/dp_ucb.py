"""Private UCB with binary trees (Mishra & Thakurta 2015): a tree of noisy reward sums for every arm.

The paper gives each of k arms the budget ε/k and adds up the arms. But a reward is in one arm's tree: the trees are on
disjoint rewards, with k times too much noise. An opposite error: a leaf of a tree over T users lies in ⌊log₂ T⌋ + 1
nodes, and the noise is for log₂ T of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.schedules import Tree
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import K, epsilon, expression, log
from privcheck_algorithms.gallery.bandits import ARMS, BUDGET, ONE_REWARD, SUMS, arms
from privcheck_algorithms.papers import GALLERY

SPLIT = Reading(
    name="split",
    ways=("arms", "none"),
    meaning="how the budget is divided: arms is ε/k for every arm as in the paper, none is ε for each",
)
TITLE = "Private UCB: a binary tree of noisy reward sums for every arm"
SOURCE = "Mishra & Thakurta 2015, (Nearly) Optimal Differentially Private Stochastic Multi-Arm Bandits, Algorithm 1"


def dp_ucb(readings: Mapping[str, str]) -> Declaration:
    """Private UCB over K users."""
    share = arms if readings.get("split", "arms") == "arms" else expression(1)
    levels = log(K) / log(2)
    return Declaration(
        name="dp-ucb",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=ONE_REWARD,
        releases=(
            Release(
                "trees", SUMS, Laplace(scale=share * levels / epsilon), schedule=Tree(leaves=K, counted=levels),
                source=SOURCE,
            ),
        ),
        claim=Claim(PureDP(epsilon), source=SOURCE),
        parameters=(ARMS, BUDGET, Parameter(name="K", default=1024, kind="count", meaning="users", least=2)),
    )  # fmt: skip


DP_UCB = Algorithm(name="dp-ucb", title=TITLE, source=SOURCE, paper=GALLERY, declare=dp_ucb, readings=(SPLIT,))
