"""Bandits that forget: means are computed from disjoint batches, so that a reward is in one noisy sum only.

DP-SE (Sajed & Sheffet 2019) pulls every remaining arm R_e times in epoch e; Anytime-Lazy-UCB (Hu, Huang & Mehta 2021)
and AdaP-UCB (Azize & Basu 2022) pull one arm twice as often as before. Each adds Lap(1/(εR)) to a mean of R rewards,
which is Lap(1/ε) on their sum. DP-EXP3-Lap (Tossou & Dimitrakakis 2017) feeds EXP3 with gains in [0, 1] that have
Lap(1/ε) noise each: batches of one reward, chosen by an adversary.

Data of the users: an interaction is an episode of one step in one state, an arm an action, and the reward is in [0, 1].
The arm is not data of the user: the algorithm computes it from earlier users' releases, so that neighbours share it and
differ in the reward alone. In the papers too a dataset of a bandit is one of rewards.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from privcheck.declare.declaration import L1, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin, from_billboard, public
from privcheck.declare.statistics import RewardSums
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import epsilon, symbol
from privcheck_algorithms.papers import GALLERY, NOT_AT_HAND

arms = symbol("arms", "count")
ONE_REWARD: Final = ReplaceOne("user", initial="fixed")
SUMS: Final = RewardSums(1, 1, arms)
ARMS: Final = Parameter(name="arms", default=5, kind="count", meaning="number of arms", least=2)
BUDGET: Final = Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats")


_TITLES = {
    "dp-se": "DP-SE: successive elimination of arms, every epoch on fresh rewards",
    "lazy-ucb": "Anytime-Lazy-UCB: every arm's mean from its last batch alone",
    "adap-ucb": "AdaP-UCB: every arm's mean from the rewards of its last episode alone",
    "dp-exp3-lap": "DP-EXP3-Lap: EXP3 on gains with Laplace noise, one gain a round",
}
_SOURCES = {
    "dp-se": "Sajed & Sheffet 2019, An Optimal Private Stochastic-MAB Algorithm, Algorithm 2",
    "lazy-ucb": "Hu, Huang & Mehta 2021, Near-Optimal Algorithms for Private Online Learning, Algorithm 1",
    "adap-ucb": "as described in Azize & Basu 2022, When Privacy Meets Partial Information: A Refined Analysis of "
    "Differentially Private Bandits",
    "dp-exp3-lap": "as described in Tossou & Dimitrakakis 2017, Achieving Privacy in the Adversarial "
    "Multi-Armed Bandit",
}


_ONE_BY_ONE = public("one reward", why="every batch is one user's reward")
_BY_ARM = from_billboard("rewards of one arm", of="batches")  # noisy sums say which arm is pulled, and when one ends


def _origin(source: str) -> Origin:
    if source.startswith("as described in"):
        return Origin(kind="reconstructed", text=source, changed=NOT_AT_HAND)
    return Origin(kind="printed", text=source)


def _declare(name: str, _: Mapping[str, str]) -> Declaration:
    return Declaration(
        name=name,
        title=_TITLES[name],
        source=_SOURCES[name],
        origin=_origin(_SOURCES[name]),
        relation=ONE_REWARD,
        releases=(
            Release(
                "batches", SUMS, Laplace(scale=1 / epsilon), stated=L1(1), source=_SOURCES[name],
                schedule=Batches(size=_ONE_BY_ONE if name == "dp-exp3-lap" else _BY_ARM),
            ),
        ),
        claim=Claim(PureDP(epsilon), source=_SOURCES[name]),
        parameters=(ARMS, BUDGET),
    )  # fmt: skip


DP_SE, LAZY_UCB, ADAP_UCB, DP_EXP3_LAP = (
    Algorithm(name=name, title=_TITLES[name], source=_SOURCES[name], paper=GALLERY, declare=partial(_declare, name))
    for name in _TITLES
)
