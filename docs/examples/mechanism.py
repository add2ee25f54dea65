"""Declare a mechanism of your own.

A mechanism that is not a value plus known noise is declared by its sampler, its density
and its price. `verify` tests the three against each other, and refuses the sampler with
two thirds of the noise.
"""

import numpy as np

from privcheck import AddRemoveOne, Claim, Declaration, Parameter, PureDP, verify
from privcheck.declare.procedures import OwnMechanism
from privcheck.errors import DeclarationError
from privcheck.terms.symbols import epsilon


def log_density(output, data, scale):  # of two-sided geometric noise on a count
    return np.log(np.tanh(1 / scale / 2)) - np.abs(output - data) / scale


def judge(factor):
    def sampler(rng, data, size, scale):
        share = 1 - np.exp(-1 / (factor * scale))
        return data + rng.geometric(share, size) - rng.geometric(share, size)

    one_user = AddRemoveOne("user")
    count = OwnMechanism(
        "count", arguments={"scale": 1 / epsilon}, spread="scale", sampler=sampler,
        log_density=log_density, price=lambda scale: PureDP(1 / scale),
        relation=one_user, neighbours=lambda scale: [(5, 6)],
        outputs=lambda scale: np.arange(-200, 211),
    )  # fmt: skip
    budget = Parameter(name="epsilon", default=1, kind="positive", meaning="ε")
    declaration = Declaration(
        name="own-count", title="A count", source="ours", relation=one_user,
        releases=(count,), claim=Claim(PureDP(epsilon), source="ours"),
        parameters=(budget,),
    )  # fmt: skip
    verdict = verify(declaration, declaration.values())
    return f"{verdict.verdict}, given the price of: {', '.join(verdict.given)}"


for factor in (1, 2 / 3):
    try:
        print(judge(factor))
    except DeclarationError as error:
        print("refused:", error)
