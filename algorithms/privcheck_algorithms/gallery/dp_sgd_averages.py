"""DP-SGD with the averages of training code: what a noisy sum is divided by, and what is clipped.

A noisy sum over a public number costs what the sum costs. Code often divides by the batch it has just drawn, or by
⌊q·n⌋ of a number of users that is to stay private; it clips every layer to C, or the average of a micro-batch, and adds
the noise of one vector of norm C. Each way is a reading; those that leak, or add too little noise, fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.procedures import NormalisedSum, Procedure
from privcheck.declare.relations import AddRemoveOne
from privcheck.declare.schedules import Poisson, Sample
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import ClippedSums
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, sqrt, symbol
from privcheck_algorithms.gallery.dp_sgd import STEPS
from privcheck_algorithms.papers import GALLERY

AVERAGE: Final = Reading(
    name="average",
    ways=(
        "public", "noisy-count", "realised-batch", "private-number", "layers", "layers-unscaled", "micro-batches",
        "micro-batches-unscaled",
    ),
    meaning="the divisor: a public number; a released noisy count; the size of the batch; ⌊rate·n⌋ of a private "
    "number n of users. Or what is clipped to C: each of `layers` parts of the vector, with the noise of the whole or "
    "of one; the average of a micro-batch, with the noise of its change 2·C or of C",
)  # fmt: skip
TITLE: Final = "DP-SGD's averages: what a noisy sum is divided by, and what is clipped"
SOURCE: Final = "Abadi et al. 2016, Deep Learning with Differential Privacy, Algorithm 1, as code divides and clips"


def dp_sgd_averages(readings: Mapping[str, str]) -> Declaration:
    """DP-SGD under adding or removing a user, in one of the ways in which code takes an average."""
    average = readings.get("average", "public")
    layers = average.startswith("layers")
    return Declaration(
        name="dp-sgd-averages",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="own", text=SOURCE),
        relation=AddRemoveOne("user"),
        releases=_releases(average),
        claim=Claim(ApproxDP(epsilon, delta), source="as a user of DP-SGD states it; Abadi et al. 2016, Theorem 1"),
        parameters=(
            *STEPS,
            Parameter(name="C", default=1, kind="positive", meaning="norm to which vectors are clipped"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of the model"),
            *((Parameter(name="layers", default=4, kind="count", meaning="parts that are clipped"),) if layers else ()),
            *(
                (Parameter(name="count_noise", default=10, kind="positive", meaning="std of the noise on the count"),)
                if average == "noisy-count"
                else ()
            ),
        ),
    )


def _releases(average: str) -> tuple[Procedure, ...]:
    C, multiplier = symbol("C", "positive"), symbol("noise_multiplier", "positive")
    batches = Poisson(rate=symbol("rate", "positive"), rounds=symbol("rounds", "count"))
    noise = (multiplier * C) ** 2
    normalised = partial(NormalisedSum, "average", norm=C, variance=noise, dimension=d, sampling=batches, source=SOURCE)
    match average:
        case "realised-batch":
            return (normalised(divisor="realised batch"),)
        case "private-number":
            return (normalised(divisor="expected batch of all users"),)
        case "noisy-count":
            together = Sample(batches, of="user")
            count = ClippedSums(dimension=1, norm=1, of="ones, one a user")
            return (
                Release("sum", ClippedSums(dimension=d, norm=C), Gaussian(variance=noise), schedule=together),
                Release("count", count, Gaussian(variance=symbol("count_noise", "positive") ** 2), schedule=together),
            )
        case "layers" | "layers-unscaled":
            L = symbol("layers", "count")
            moved, scaled = C * sqrt(L), L if average == "layers" else 1
            of = "gradients, clipped layer by layer"
        case "micro-batches" | "micro-batches-unscaled":
            # one more user moves the average of a micro-batch by up to 2C, from one end of the ball to the other
            moved, scaled = 2 * C, 4 if average == "micro-batches" else 1
            of = "clipped averages of micro-batches, which users enter by a separate draw each"
        case _:
            moved, scaled, of = C, 1, "clipped gradients"
    statistic = ClippedSums(dimension=d, norm=moved, of=of)
    return (Release("sum", statistic, Gaussian(variance=noise * scaled), schedule=batches, source=SOURCE),)


DP_SGD_AVERAGES = Algorithm(
    name="dp-sgd-averages", title=TITLE, source=SOURCE, paper=GALLERY, declare=dp_sgd_averages, readings=(AVERAGE,)
)  # fmt: skip
