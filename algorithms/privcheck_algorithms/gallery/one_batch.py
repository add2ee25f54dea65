"""Several outputs of one random batch of the users: the batch is drawn once a round, and they are priced together.

* *Adaptive clipping* (Andrew, Thakkar, McMahan & Ramaswamy 2021): a round of federated averaging releases the sum of
  clipped updates, in units of the clipping norm, and the number of unclipped ones, which sets that norm for the next
  round. Its Theorem 1: with noise z_Δ = (z⁻² − (2σ_b)⁻²)^(−1/2) on the sum and σ_b on the count of
  bits less ½ a round is one of federated averaging with the noise multiplier z. This is the cost of one sample.
* *An actor and a critic*: both gradients of every trajectory in the batch, each clipped to a separate norm.
* *A choice and a sum*: the best candidate on the batch, and a clipped sum of the same users.

Priced `apart`, as if each output had a separate batch, all three seem to cost less; but a user in the batch is in all
of its outputs. `one_round` runs any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.procedures import NoisyMax, OnSample, SharedSample
from privcheck.declare.relations import AddRemoveOne
from privcheck.declare.schedules import Poisson, Sample
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import ClippedSums
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck.terms.symbols import d, delta, epsilon, exp, log, symbol
from privcheck_algorithms.papers import GALLERY

Array = NDArray[np.float64]
PRICED = Reading(
    name="priced",
    ways=("together", "apart"),
    meaning="the claim: together is the cost of one batch; apart is that of a batch for each output, which is not the "
    "algorithm",
)
_RATE, _ROUNDS = symbol("rate", "positive"), symbol("rounds", "count")

CLIPPING_TITLE = "Federated averaging with adaptive clipping: a round's updates and the number of clipped ones"
CLIPPING_SOURCE = "Andrew, Thakkar, McMahan & Ramaswamy 2021, Differentially Private Learning with Adaptive Clipping"
ACTOR_TITLE = "A private actor and critic: both clipped gradients of one batch, with Gaussian noise"
ACTOR_SOURCE = "Abadi et al. 2016, Deep Learning with Differential Privacy, Algorithm 1, on two losses of one batch"
CHOICE_TITLE = "A choice and a sum: report-noisy-max beside a clipped sum of the same batch"
CHOICE_SOURCE = "Dwork & Roth 2014, Claim 3.9, on a sample: Balle, Barthe & Gaboardi 2018, Theorem 8"


def _batches(rate: str, rounds: int) -> tuple[Parameter, ...]:
    return (
        Parameter(name="rate", default=rate, kind="positive", meaning="probability of being in a round's batch"),
        Parameter(name="rounds", default=rounds, kind="count", meaning="rounds, a batch each"),
    )


def _budget(readings: Mapping[str, str], together: str, apart: str, failing: str) -> tuple[Parameter, ...]:
    default = together if readings.get("priced", "together") == "together" else apart
    return (
        Parameter(name="epsilon", default=default, kind="positive", meaning="ε that is claimed"),
        Parameter(name="delta", default=failing, kind="probability", meaning="δ that is claimed"),
    )


def adaptive_clipping(readings: Mapping[str, str]) -> Declaration:
    """Federated averaging with adaptive clipping; updates are in units of the round's clipping norm."""
    batch = Sample(Poisson(rate=_RATE, rounds=_ROUNDS), of="user")
    z, bits = symbol("noise_multiplier", "positive"), symbol("bit_noise", "positive")
    return Declaration(
        name="adaptive-clipping",
        title=CLIPPING_TITLE,
        source=CLIPPING_SOURCE,
        origin=Origin(kind="printed", text=CLIPPING_SOURCE),
        relation=AddRemoveOne("user"),
        releases=(
            Release(
                "updates",
                ClippedSums(dimension=d, norm=1, of="updates over the round's clipping norm"),
                Gaussian(variance=1 / (z**-2 - (2 * bits) ** -2)),
                schedule=batch,
                source="Algorithm 1; Theorem 1 for the noise",
            ),
            Release(
                "clipping bits",
                ClippedSums(dimension=1, norm="1/2", of="bits less ½ that say whose update was not clipped"),
                Gaussian(variance=bits**2),
                schedule=batch,
                source="Algorithm 1",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="Theorem 1, with the figure of DP-SGD for the multiplier z"),
        parameters=(
            *_budget(readings, "17/8", "9/5", "1/1000000"),
            *_batches("1/100", 1000),
            Parameter(name="noise_multiplier", default=1, kind="positive", meaning="z, of both outputs together"),
            Parameter(name="bit_noise", default=1, kind="positive", meaning="σ_b, above z/2: std on the count of bits"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of the model"),
        ),
    )


def actor_critic(readings: Mapping[str, str]) -> Declaration:
    """Two clipped sums of gradients of one batch of trajectories."""
    batch = Sample(Poisson(rate=_RATE, rounds=_ROUNDS), of="trajectory")
    actor, critic = symbol("actor_noise", "positive"), symbol("critic_noise", "positive")
    C, B = symbol("C", "positive"), symbol("B", "positive")
    return Declaration(
        name="dp-actor-critic",
        title=ACTOR_TITLE,
        source=ACTOR_SOURCE,
        origin=Origin(kind="own", text=ACTOR_SOURCE),
        relation=AddRemoveOne("trajectory"),
        releases=(
            Release(
                "actor",
                ClippedSums(dimension=d, norm=C, of="gradients of the actor"),
                Gaussian(variance=(actor * C) ** 2),
                schedule=batch,
                source="Algorithm 1",
            ),
            Release(
                "critic",
                ClippedSums(dimension=d, norm=B, of="gradients of the critic"),
                Gaussian(variance=(critic * B) ** 2),
                schedule=batch,
                source="Algorithm 1",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="as its users state it; Abadi et al. 2016, Theorem 1"),
        parameters=(
            *_budget(readings, "2", "17/10", "1/100000"),
            *_batches("1/50", 500),
            Parameter(name="actor_noise", default="3/2", kind="positive", meaning="std of the actor's noise over C"),
            Parameter(name="critic_noise", default=2, kind="positive", meaning="std of the critic's noise over B"),
            Parameter(name="C", default=1, kind="positive", meaning="norm to which the actor's gradients are clipped"),
            Parameter(name="B", default=5, kind="positive", meaning="norm to which the critic's gradients are clipped"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of either model"),
        ),
    )


def choice_and_sum(readings: Mapping[str, str]) -> Declaration:
    """Report-noisy-max and a clipped sum of one batch, ε each for a user in the batch."""
    batch = Sample(Poisson(rate=_RATE, rounds=_ROUNDS), of="user")
    choice = NoisyMax(
        "winner", noise="laplace", scale=2 / epsilon, candidates=symbol("candidates", "count"), source=CHOICE_SOURCE
    )
    one, both = (log(1 + _RATE * (exp(times * epsilon) - 1)) for times in (1, 2))
    together = readings.get("priced", "together") == "together"
    return Declaration(
        name="choice-and-sum",
        title=CHOICE_TITLE,
        source=CHOICE_SOURCE,
        origin=Origin(kind="own", text=CHOICE_SOURCE),
        relation=AddRemoveOne("user"),
        releases=(
            Release(
                "sum",
                ClippedSums(dimension=1, norm=1, of="returns", ball="l1"),
                Laplace(scale=1 / epsilon),
                schedule=batch,
                source=CHOICE_SOURCE,
            ),
        ),
        procedures=(OnSample("choice", procedures=(choice,), sample=batch, source=CHOICE_SOURCE),),
        claim=Claim(
            PureDP(_ROUNDS * (both if together else 2 * one)),
            source="Theorem 8, of both outputs together" if together else "Theorem 8, of each output for itself",
        ),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε of either output to who is in the batch"),
            *_batches("1/10", 5),
            Parameter(name="candidates", default=10, kind="count", least=2, meaning="how many candidates there are"),
        ),
    )


def one_round(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    users: Mapping[str, Array],
    size: int,
    rng: np.random.Generator,
) -> Array:
    """Run one round of the releases of one batch, which is drawn once, with the declared noise.

    Args:
        declaration: A declaration whose outputs all refer to one Poisson sample.
        values: Values of its parameters.
        users: By output name, one row a user, (users, …): their contribution to a sum, or to every score.
        size: Number of independent runs.
        rng: Random generator.

    Returns:
        (size, …) the outputs concatenated in the order of the declaration; for a choice its index.
    """
    (shared,) = declaration.joined
    assert isinstance(shared, SharedSample)
    sampling = shared.sample.sampling
    assert isinstance(sampling, Poisson)
    present = next(iter(users.values())).shape[0]
    held = (rng.random((size, present)) < sampling.rate.number(values)).astype(np.float64)  # once, for all outputs
    outputs = []
    for part in shared.parts:
        exact = held @ users[part.name]
        if isinstance(part, Release):
            outputs.append(part.mechanism.at(values).add(exact, rng))
            continue
        for selection in part.procedures:
            assert isinstance(selection, NoisyMax)
            assert selection.noise == "laplace"
            noise = rng.laplace(scale=selection.scale.number(values), size=exact.shape)
            outputs.append((exact + noise).argmax(axis=1)[:, np.newaxis].astype(np.float64))
    return np.concatenate(outputs, axis=1)


ADAPTIVE_CLIPPING = Algorithm(
    name="adaptive-clipping", title=CLIPPING_TITLE, source=CLIPPING_SOURCE, paper=GALLERY, declare=adaptive_clipping,
    readings=(PRICED,),
)  # fmt: skip
ACTOR_CRITIC = Algorithm(
    name="dp-actor-critic", title=ACTOR_TITLE, source=ACTOR_SOURCE, paper=GALLERY, declare=actor_critic,
    readings=(PRICED,),
)  # fmt: skip
CHOICE_AND_SUM = Algorithm(
    name="choice-and-sum", title=CHOICE_TITLE, source=CHOICE_SOURCE, paper=GALLERY, declare=choice_and_sum,
    readings=(PRICED,),
)  # fmt: skip
