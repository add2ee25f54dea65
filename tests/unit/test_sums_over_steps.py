"""Sums over steps against loops in mpmath, whatever the summand; verdicts on bounds that are discounted or clipped."""

# ruff: noqa: ARG005 - all summands are called alike

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import Column, FeatureSums
from privcheck.errors import ParameterError
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import (
    H,
    before,
    d,
    exp,
    expression,
    h,
    log,
    maximum,
    minimum,
    rho,
    sqrt,
    sum_steps,
    symbol,
)
from privcheck.verification import verify

gamma = symbol("gamma", "positive")
NINE = expression("9/10")
TERMS = {
    "polynomial": ((H - h + 1) ** 3, lambda H, h, g: (H - h + 1) ** 3),
    "clipped": (maximum(H - h, 1) ** 2, lambda H, h, g: max(H - h, 1) ** 2),
    "clipped above": (h * minimum(H - h, 5), lambda H, h, g: h * min(H - h, 5)),
    "geometric": (NINE**h, lambda H, h, g: mp.mpf("0.9") ** h),
    "geometric, backwards": ((1 - NINE ** (H - h)) ** 2, lambda H, h, g: (1 - mp.mpf("0.9") ** (H - h)) ** 2),
    "symbolic": (3 * gamma ** (2 * h), lambda H, h, g: 3 * g ** (2 * h)),
    "symbolic, backwards": (gamma ** (H - h + 1), lambda H, h, g: g ** (H - h + 1)),
    "times h": (h * gamma**h, lambda H, h, g: h * g**h),
    "reciprocal": (1 / h**2, lambda H, h, g: mp.mpf(1) / h**2),
    "root": (sqrt(H - h + 1), lambda H, h, g: mp.sqrt(H - h + 1)),
    "logarithm": (log(h + 1), lambda H, h, g: mp.log(h + 1)),
    "exponential": (exp(-h / 3), lambda H, h, g: mp.e ** (-mp.mpf(h) / 3)),
    "all but the last": (H**2 * before(H), lambda H, h, g: H**2 * (h != H)),
}


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("ratio", ["1/2", "1", "2"])
def test_a_sum_is_that_of_its_terms(name, ratio):
    term, naive = TERMS[name]
    total = sum_steps(H, term)
    assert total.symbols <= {"H", "gamma"}
    with mp.workdps(40):
        for horizon in (1, 2, 3, 7, 12):
            values = {"H": Fraction(horizon), "gamma": Fraction(ratio)}
            g = mp.mpf(values["gamma"].numerator) / values["gamma"].denominator
            true = mp.fsum(naive(horizon, step, g) for step in range(1, horizon + 1))
            assert total.number(values) == pytest.approx(float(true), rel=1e-15)
            assert total.number(values, rounding="down") <= true <= total.number(values, rounding="up")
            assert total.simplified().number(values) == pytest.approx(float(true), rel=1e-15)


@pytest.mark.parametrize("name", ["clipped", "geometric", "logarithm", "times h"])
def test_what_is_too_long_is_refused_and_not_waited_for(name):
    total = sum_steps(H, TERMS[name][0])
    with pytest.raises(ParameterError, match=r"too many digits|no closed form"):
        total.number({"H": Fraction(10**9), "gamma": Fraction(9, 10)})


@pytest.mark.parametrize("name", [n for n in TERMS if n != "exponential"])
def test_verdicts_on_such_bounds_agree_with_their_witness(name):
    bound = TERMS[name][0]
    squares = sum_steps(H, bound**2)
    release = Release(
        "values",
        FeatureSums(name="sums", steps=H, dimension=d, vector=Column("phi", 1, "x"), target=Column("V", bound, "V")),
        Gaussian(variance=(1 + 2 * squares) / rho),
    )
    parameters = [
        *(Parameter(name=n, default=v, kind="count", meaning=n) for n, v in (("H", 4), ("d", 2))),
        Parameter(name="rho", default=1, kind="positive", meaning="budget"),
        Parameter(name="gamma", default="9/10", kind="probability", meaning="discount"),
    ]
    declaration = Declaration(
        name="x", title="x", source="a test", relation=ReplaceOne(), releases=(release,),
        claim=Claim(ZCDP(rho), source="a test"), parameters=tuple(parameters),
    )  # fmt: skip
    found = verify(declaration, declaration.values())
    assert found.verdict == "holds"
    assert found.lower_ratio == pytest.approx(found.upper_ratio, rel=1e-9)
