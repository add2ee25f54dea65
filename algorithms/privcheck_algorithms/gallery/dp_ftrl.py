"""DP-FTRL (Kairouz et al. 2021): sums of clipped gradients in a binary tree, without sampling or shuffling.

A tree that is started anew in every epoch costs E times ⌊log₂ T⌋ + 1 nodes, whatever the order of the users. If one
tree spans all epochs, a user is in one leaf of each, one epoch apart if all epochs keep one order, and a node above two
of these leaves moves by twice as much: the charge of restarted trees is too low.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ZeroOut
from privcheck.declare.schedules import Tree
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import ClippedSums
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, symbol
from privcheck_algorithms.papers import GALLERY

TITLE = "DP-FTRL: clipped gradients in a binary tree over all steps, one or several epochs"
SOURCE = "Kairouz et al. 2021, Practical and Private (Deep) Learning without Sampling or Shuffling, Algorithm 1"
TREES = Reading(
    name="trees",
    ways=("one", "restarted"),
    meaning="one: a tree over all epochs, which keep one order of the users; restarted: one for each epoch",
)


def declare_dp_ftrl(readings: Mapping[str, str]) -> Declaration:
    """DP-FTRL with a claim of (ε, δ)-DP, as stated for a configuration."""
    epochs, steps = symbol("epochs", "count"), symbol("steps", "count")
    schedule = Tree(leaves=epochs * steps, participations=epochs, separation=steps)
    if readings.get("trees") == "restarted":
        schedule = Tree(leaves=steps, trees=epochs)
    C, multiplier = symbol("C", "positive"), symbol("noise_multiplier", "positive")
    return Declaration(
        name="dp-ftrl",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=ZeroOut("user", trajectories=epochs),
        releases=(
            Release(
                "gradients",
                ClippedSums(dimension=d, norm=C),
                Gaussian(variance=(multiplier * C) ** 2),
                schedule=schedule,
                stated=L2(C),
                source="Algorithm 1",
            ),
        ),
        claim=Claim(
            ApproxDP(epsilon, delta), source="as a user of DP-FTRL states it; Kairouz et al. 2021, Algorithm 1"
        ),
        parameters=(
            Parameter(name="epsilon", default="4", kind="positive", meaning="ε that is claimed"),
            Parameter(name="delta", default="1/100000", kind="probability", meaning="δ that is claimed"),
            Parameter(name="epochs", default=1, kind="count", meaning="how often each user's example is visited"),
            Parameter(name="steps", default=1024, kind="count", meaning="steps of an epoch, leaves of the tree"),
            Parameter(name="noise_multiplier", default="4", kind="positive", meaning="std of a node's noise over C"),
            Parameter(name="C", default=1, kind="positive", meaning="norm to which gradients are clipped"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of the model"),
        ),
    )


DP_FTRL = Algorithm(
    name="dp-ftrl", title=TITLE, source=SOURCE, paper=GALLERY, declare=declare_dp_ftrl, readings=(TREES,)
)
