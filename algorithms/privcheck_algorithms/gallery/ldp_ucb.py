"""LDP-UCB-L (Ren, Zhou, Liu & Shroff 2020): every user adds Laplace noise to their reward before release."""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import L1, Claim, Declaration, Release
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.schedules import PerUser
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import epsilon
from privcheck_algorithms.gallery.bandits import ARMS, BUDGET, ONE_REWARD, SUMS
from privcheck_algorithms.papers import GALLERY

TITLE = "LDP-UCB-L: every user's reward with its own Laplace noise"
SOURCE = "Ren, Zhou, Liu & Shroff 2020, Multi-Armed Bandits with Local Differential Privacy, Algorithm 1"


def ldp_ucb(_: Mapping[str, str]) -> Declaration:
    """Bandit of the local model, rewards in [0, 1]."""
    return Declaration(
        name="ldp-ucb",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        # any two inputs, as local DP has it, and the input is the reward: "the rewards may refer to the users'
        # activities, which may involve private information" (abstract). The message is the noisy reward, to a server
        # that named the arm
        relation=ONE_REWARD,
        releases=(
            Release("reward", SUMS, Laplace(scale=1 / epsilon), stated=L1(1), schedule=PerUser(), source=SOURCE),
        ),
        claim=Claim(PureDP(epsilon), source=SOURCE),
        parameters=(ARMS, BUDGET),
        model="local",
    )


LDP_UCB = Algorithm(name="ldp-ucb", title=TITLE, source=SOURCE, paper=GALLERY, declare=ldp_ucb)
