"""Two ways to train a policy of a network under (ε, δ)-DP for a trajectory or a user, as their abstracts describe them.

*PriMORL* (Rio, Barlier, Colin & Thomas 2024) trains an ensemble of models of the environment on logged trajectories by
DP-FedAvg (McMahan, Ramage, Talwar & Zhang 2018, Algorithm 1), and plans in the models, which is post-processing. A
round draws each trajectory with probability `rate`, clips its update, and adds Gaussian noise to the sum. An update has
a part for every model.

*DP policy gradient* (Rio, Barlier & Colin 2025) clips the gradient of each user, adds Gaussian noise to their sum, and
takes the noise as the trust region of the step.

Of both papers only the abstract and the start of the introduction were available. What they leave open decides the
verdict, so it is a reading here: the norm to which an ensemble's update is clipped, and whether a user takes part once.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.schedules import Batches, Outputs, Poisson
from privcheck.declare.statements import Origin, public
from privcheck.declare.statistics import ClippedSums
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, sqrt, symbol
from privcheck_algorithms.papers import GALLERY
from privcheck_algorithms.privatizers.declaration import MU, follow_gaussian

PRIMORL_TITLE = "PriMORL: models of the environment by DP-FedAvg on trajectories, and planning in them"
PRIMORL_SOURCE = (
    "Rio, Barlier, Colin & Thomas 2024, Differentially Private Deep Model-Based Reinforcement Learning, "
    "arXiv:2402.05525, as described in its abstracts"
)
GRADIENT_TITLE = "DP policy gradient: noisy sums of clipped gradients of users"
GRADIENT_SOURCE = (
    "Rio, Barlier & Colin 2025, Differentially Private Policy Gradient, arXiv:2501.19080, as described in its abstract"
)
CLIPPING = Reading(
    name="clipping",
    ways=("ensemble", "each-model"),
    meaning="what of a trajectory's update is clipped to C: the updates of all models together, or each by itself",
)
USERS = Reading(
    name="users",
    ways=("once", "every-update"),
    meaning="whether a user is in one update, of disjoint batches, or in all of them",
)


def primorl(readings: Mapping[str, str]) -> Declaration:
    """PriMORL: Poisson samples of trajectories, noise for a sum of vectors of norm C."""
    C, multiplier, models = symbol("C", "positive"), symbol("noise_multiplier", "positive"), symbol("models", "count")
    norm = C if readings.get("clipping", "ensemble") == "ensemble" else C * sqrt(models)
    return Declaration(
        name="primorl",
        title=PRIMORL_TITLE,
        source=PRIMORL_SOURCE,
        origin=Origin(
            kind="reconstructed",
            text=PRIMORL_SOURCE,
            changed="the text was not available: rounds, rate, noise, ε and δ are ours, of the size of DP-FedAvg's; "
            "neighbours are DP-FedAvg's; sums are divided by a fixed number; the clipped part is a reading; and "
            "nothing else of the data is used, such as their number, their limits or a test set",
        ),
        relation=AddRemoveOne("trajectory"),
        releases=(
            Release(
                "updates",
                ClippedSums(dimension=models * d, norm=norm, of="a trajectory's updates of all models"),
                Gaussian(variance=(multiplier * C) ** 2),
                schedule=Poisson(rate=symbol("rate", "positive"), rounds=symbol("rounds", "count")),
                source="as described in McMahan, Ramage, Talwar & Zhang 2018, Algorithm 1",
            ),
        ),
        claim=Claim(
            ApproxDP(epsilon, delta),
            source="trajectory-level DP of the ensemble and of the policy, as described in the abstract",
        ),
        parameters=(
            Parameter(name="epsilon", default="83/50", kind="positive", meaning="ε that Rényi divergences give"),
            Parameter(name="delta", default="1/100000", kind="probability", meaning="δ of the claim"),
            Parameter(name="rate", default="1/100", kind="positive", meaning="probability of being in a round"),
            Parameter(name="noise_multiplier", default=1, kind="positive", meaning="std of the noise over C"),
            Parameter(name="rounds", default=500, kind="count", meaning="rounds of training"),
            Parameter(name="models", default=7, kind="count", meaning="models of the ensemble"),
            Parameter(name="C", default=1, kind="positive", meaning="norm to which updates are clipped"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of a model"),
        ),
    )


def dp_policy_gradient(readings: Mapping[str, str]) -> Declaration:
    """DP policy gradient: one noisy sum an update, of users' clipped gradients."""
    C, updates, users = symbol("C", "positive"), symbol("updates", "count"), symbol("B", "count")
    once = readings.get("users", "once") == "once"
    batches = Batches(
        size=public("B users, in the order in which they come", why="a number fixed before anyone takes part"),
        sizes=lambda values: (int(users.number(values)),),
    )
    return Declaration(
        name="dp-policy-gradient",
        title=GRADIENT_TITLE,
        source=GRADIENT_SOURCE,
        origin=Origin(
            kind="reconstructed",
            text=GRADIENT_SOURCE,
            changed="the text was not available: noise and constants are ours, the least noise that one Gaussian needs "
            "for the claim if a user is replaced; sums are divided by the declared B; whether users come again is a "
            "reading; and advantages, critics and step sizes use nothing of the data but the noisy sums",
        ),
        relation=ReplaceOne("user"),
        releases=(
            Release(
                "gradients",
                ClippedSums(dimension=d, norm=C, of="a user's policy gradient"),
                Gaussian(variance=(2 * C / MU) ** 2),
                schedule=batches if once else Outputs(count=updates, times_std=lambda _: 1),
                source="as described in the abstract",
            ),
        ),
        claim=Claim(
            ApproxDP(epsilon, delta),
            source="trajectory-level and joint DP, as described in the abstract",
            joint=Joint(),
        ),
        parameters=(
            Parameter(name="K", default=10_000, kind="count", meaning="users"),
            Parameter(name="B", default=250, kind="count", meaning="users of an update"),
            Parameter(name="updates", default=40, kind="count", meaning="updates: K/B"),
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
            Parameter(name="delta", default="1/100000", kind="probability", meaning="δ of the claim"),
            Parameter(
                name="mu",
                default="0.26805",
                kind="positive",
                meaning="the noise: an update is μ-GDP; for another ε or δ the largest that keeps it",
                follows=follow_gaussian,
            ),
            Parameter(name="C", default=1, kind="positive", meaning="norm to which gradients are clipped"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of the policy"),
        ),
    )


PRIMORL = Algorithm(
    name="primorl", title=PRIMORL_TITLE, source=PRIMORL_SOURCE, paper=GALLERY, declare=primorl, readings=(CLIPPING,)
)
DP_POLICY_GRADIENT = Algorithm(
    name="dp-policy-gradient",
    title=GRADIENT_TITLE,
    source=GRADIENT_SOURCE,
    paper=GALLERY,
    declare=dp_policy_gradient,
    readings=(USERS,),
)
