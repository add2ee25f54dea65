"""DP-SGD (Abadi et al. 2016, Algorithm 1): noisy sums of clipped gradients of random batches.

The claimed figure is usually that of Poisson samples under adding or removing a user. Under replacing one, with "the
same number of users", the same run costs more; and code that draws batches of a
fixed size, or shuffles once an epoch, runs another algorithm (Chua et al. 2024). Relation and sampling are readings.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import AddRemoveOne, Relation, ReplaceOne, ZeroOut
from privcheck.declare.schedules import BallsInBins, Poisson, Sampled, ShuffledEpochs, WithoutReplacement
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import ClippedSums
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import ceil, d, delta, epsilon, floor, symbol
from privcheck_algorithms.papers import GALLERY

RELATIONS: Mapping[str, Relation] = {
    "add-remove": AddRemoveOne("user"),
    "replace-one": ReplaceOne("user"),
    "zero-out": ZeroOut("user"),
}
RELATION = Reading(
    name="relation", ways=tuple(RELATIONS), meaning="the difference between two neighbouring sets of users"
)
SAMPLING = Reading(
    name="sampling",
    ways=("poisson", "fixed-size", "shuffled"),
    meaning="how a round's batch is drawn: each user with probability `rate`; ⌈rate·users⌉ of the users; a random "
    "order an epoch, cut into ⌊1/rate⌋ batches (under add-remove, where an order has no place for a missing user, "
    "each user goes into one of as many bins)",
)
STEPS = (
    Parameter(name="epsilon", default="8/5", kind="positive", meaning="ε that is claimed"),
    Parameter(name="delta", default="1/100000", kind="probability", meaning="δ that is claimed"),
    Parameter(name="rate", default="1/100", kind="positive", meaning="probability of being in a round's batch"),
    Parameter(name="noise_multiplier", default="11/10", kind="positive", meaning="std of the noise over C"),
    Parameter(name="rounds", default=1000, kind="count", meaning="steps of the optimiser"),
)
TITLE = "DP-SGD: clipped gradients of random batches, with Gaussian noise"
SOURCE = "Abadi et al. 2016, Deep Learning with Differential Privacy, Algorithm 1"


def dp_sgd(readings: Mapping[str, str]) -> Declaration:
    """DP-SGD with a claim of (ε, δ)-DP, as stated for a configuration."""
    relation = readings.get("relation", "add-remove")
    C, multiplier = symbol("C", "positive"), symbol("noise_multiplier", "positive")
    return Declaration(
        name="dp-sgd",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=RELATIONS[relation],
        releases=(
            Release(
                "gradients",
                ClippedSums(dimension=d, norm=C),
                Gaussian(variance=(multiplier * C) ** 2),
                schedule=_batches(readings.get("sampling", "poisson"), relation),
                source="Algorithm 1",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="as a user of DP-SGD states it; Abadi et al. 2016, Theorem 1"),
        parameters=(
            *STEPS,
            Parameter(name="C", default=1, kind="positive", meaning="norm to which gradients are clipped"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of the model"),
            Parameter(
                name="users", default=10_000, kind="count", meaning="users, from whom batches of a fixed size are"
            ),
        ),
    )


def _batches(sampling: str, relation: str) -> Sampled:
    """Sampling of the batches, at the same expected size and number of rounds."""
    rate, rounds, users = symbol("rate", "positive"), symbol("rounds", "count"), symbol("users", "count")
    if sampling == "fixed-size":
        return WithoutReplacement(users=users, batch=ceil(rate * users), rounds=rounds)
    if sampling == "shuffled":
        batches, epochs = floor(1 / rate), ceil(rate * rounds)
        if relation == "add-remove":
            return BallsInBins(bins=batches, epochs=epochs)
        return ShuffledEpochs(batches=batches, epochs=epochs)
    return Poisson(rate=rate, rounds=rounds)


DP_SGD = Algorithm(
    name="dp-sgd", title=TITLE, source=SOURCE, paper=GALLERY, declare=dp_sgd, readings=(RELATION, SAMPLING)
)
