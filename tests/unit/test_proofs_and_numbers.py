"""A proof never overrules a number: symbols mean what their parameters do, and a contradiction is an error with both.

And no claim, however large, small or far from anything that floats hold, ends in anything but a verdict or a refusal.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy  # noqa: TID251 - raw nodes are what the door refuses

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.relations import AddRemoveOne, Relation, ReplaceOne
from privcheck.declare.schedules import Poisson
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import ParameterError, PrivcheckError, ProofError
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PrivacyProfile, PureDP, RenyiDP
from privcheck.terms.symbols import (
    A,
    Expr,
    H,
    Proof,
    S,
    at_most,
    epsilon,
    exp,
    expression,
    log,
    maximum,
    minimum,
    prove_at_most,
    rho,
    sqrt,
    symbol,
)
from privcheck.verification import comparisons, verify
from privcheck.verification.comparisons import decide, monotone

q = symbol("q", "positive")
PARAMETERS = (
    *(Parameter(name=x, default=v, kind="count", meaning=x) for x, v in (("H", 3), ("S", 2), ("A", 2), ("c", 1))),
    *(Parameter(name=x, default=1, kind="positive", meaning=x) for x in ("rho", "epsilon")),
    Parameter(name="q", default="1/10", kind="probability", meaning="rate"),
)
COUNTS = VisitCounts(H, S, A)
LAPLACE = Release("v", COUNTS, Laplace(scale=2 * H / epsilon))  # costs ε exactly


def declared(guarantee: Guarantee, *releases: Release, relation: Relation | None = None, **changes: Any) -> Declaration:
    return Declaration(
        name="x", title="x", source="a test", relation=relation or ReplaceOne(), releases=releases,
        claim=Claim(guarantee, source="a test"), parameters=PARAMETERS, **changes,
    )  # fmt: skip


x = sympy.Symbol("x", positive=True)
FOREIGN = {
    "even": sympy.Symbol("c", even=True, positive=True),
    "bounded below": sympy.Symbol("c", integer=True, nonnegative=True),
    "negative": sympy.Symbol("c", negative=True),
    "nothing assumed": sympy.Symbol("c"),
    "prime": 2 * sympy.Symbol("c", prime=True) + x,
    "dummy": sympy.Dummy("c", positive=True) + 1,
    "wild": sympy.Wild("c") * x,
    "undefined function": sympy.Function("c", positive=True)(x),
    "indexed": sympy.IndexedBase("c", positive=True)[1],
    "matrix element": sympy.MatrixSymbol("c", 2, 2)[0, 0],
    "float": x * sympy.Float(0.1),
    "in a piece": sympy.Piecewise((x, sympy.Symbol("c", even=True) > 2), (2 * x, True)),
    "put in for another": (x + 1).subs(x, sympy.Symbol("c", odd=True)),
    "bound by a sum": sympy.Sum(sympy.Symbol("c", even=True), (sympy.Symbol("c", even=True), 1, 3)),
    "derivative": sympy.Derivative(sympy.Function("c")(x), x),
    "unevaluated": sympy.Subs(x**2, x, sympy.Symbol("c", even=True)),
    "two kinds of one name": sympy.Symbol("x", positive=True, integer=True) + x,
    "a word": "c",
    "a number of Python's": 3,
}


@pytest.mark.parametrize("node", FOREIGN.values(), ids=FOREIGN)
def test_an_expression_is_of_parameters_and_of_what_is_known_of_them(node):
    with pytest.raises(ParameterError, match=r"privcheck.terms.symbols|expression\(|a parameter has one kind"):
        Expr(node)


def test_an_even_number_of_releases_is_no_proof():
    """The cost of c outputs was "proved" at most a claim made with c even; numbers said twice the claim."""
    with pytest.raises(ParameterError, match=r"c is a Symbol assumed .*even.*write symbol\('c', 'count'\)"):
        verify(declared(PureDP(epsilon * Expr(FOREIGN["even"]) / 2), LAPLACE), {})


def test_what_the_functions_of_symbols_make_is_known():
    c = symbol("c", "count")
    of = maximum(log(c + 1), sqrt(q) ** -2, exp(-1 * rho)) * minimum(H, c)
    assert Expr(of.node) == of
    assert Expr(sympy.pi * sympy.erf(x)).symbols == {"x"}


def prove_anything(left: Expr, right: Expr) -> Proof:
    return Proof(holds=True, facts=(("a rule that is wrong", ()),))


@pytest.mark.parametrize(("cost", "claimed"), [(2 * rho, rho), (rho + sqrt(2), rho + 1), (exp(rho), rho)])
def test_a_wrong_proof_is_an_error_that_shows_both(monkeypatch, cost, claimed):
    monkeypatch.setattr(comparisons, "prove_at_most", prove_anything)
    with pytest.raises(ProofError, match=r"numbers are .* and .*a rule that is wrong.*Neither is reported") as caught:
        decide(cost, claimed, PARAMETERS)
    assert caught.value.steps == ("a rule that is wrong",)


def test_a_wrong_proof_never_makes_a_ratio_1(monkeypatch):
    """At the given parameters alone, of which the box knows nothing."""
    monkeypatch.setattr(comparisons, "prove_at_most", prove_anything)
    monkeypatch.setattr(comparisons, "_box", lambda *_: [])
    short = declared(PureDP(epsilon / 2), LAPLACE)
    with pytest.raises(ProofError, match="a rule that is wrong"):
        verify(short, short.values())
    irrational = declared(PureDP(epsilon * sqrt(2) / 2), LAPLACE)
    with pytest.raises(ProofError, match="a rule that is wrong"):
        verify(irrational, irrational.values())


def test_a_wrong_trend_is_an_error_that_shows_both(monkeypatch):
    monkeypatch.setattr(comparisons, "trend", lambda *_: "nonincreasing")
    with pytest.raises(ProofError, match="proved to be nonincreasing"):
        monotone(rho**2, "rho", PARAMETERS)
    monkeypatch.setattr(comparisons, "trend", lambda *_: "constant")
    with pytest.raises(ProofError, match="proved to be constant"):
        monotone(1 / rho, "rho", PARAMETERS)


def test_a_proof_says_its_steps_and_equality_is_a_ratio_of_1():
    steps = prove_at_most(maximum(rho, rho * rho), maximum(rho * rho + rho, H)).steps
    assert len(steps) >= 3
    proved = declared(PureDP(epsilon + sqrt(2) - sqrt(2)), LAPLACE)
    found = verify(proved, proved.values())
    assert (found.verdict, found.method, found.upper_ratio) == ("holds", "proved", 1.0)


def random_expression(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice((rho, epsilon, q, H, S, expression(rng.choice((1, 2, "1/3", "1e-9", 7)))))
    one, two = (random_expression(rng, depth - 1) for _ in range(2))
    return rng.choice(
        (one + two, one * two, one / two, maximum(one, two), minimum(one, two), sqrt(one), log(1 + one), exp(one) - 1)
    )


@pytest.mark.parametrize("seed", range(40))
def test_what_is_proved_is_so_in_numbers(seed):
    """Random pairs against the floats of Python's own functions; a proof is for all values, so for these."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    left, right = (random_expression(rng, rng.choice((1, 2))) for _ in range(2))
    answer = at_most(left, right)
    point = {"rho": 0.3, "epsilon": 2.0, "q": 0.1, "H": 4.0, "S": 2.0}
    low, high = (
        eval(str(one.node), {"exp": math.exp, "log": math.log, "sqrt": math.sqrt, "Max": max, "Min": min}, point)  # noqa: S307 - our own text
        for one in (left, right)
    )
    assert answer is not True or low <= high * (1 + 1e-12) + 1e-12
    assert answer is not False or left.symbols | right.symbols or low > high


# claims beyond what floats hold

HUGE = ("1e100", "1e299", "1e305", "1e400", "1e-100", "1e-299", "1e-305", "1e-400")
OUT = {
    "folklore": lambda e: q * (exp(e) - 1),
    "amplified": lambda e: log(1 + q * (exp(e) - 1)),
    "e to the thousand": lambda e: exp(1000 * e),
    "e to minus a thousand": lambda e: exp(-1000 * e),
    "e to the e": lambda e: exp(exp(10 * e)),
    "as printed": lambda e: e,
    "a difference": lambda e: exp(e) - e,
    "a power": lambda e: (1 + e) ** 400,
}


def mechanism(price: Guarantee) -> OwnMechanism:
    return OwnMechanism(
        "m", arguments={"scale": 1 / epsilon}, spread="scale", relation=AddRemoveOne(),
        sampler=lambda rng, data, size, scale: data + rng.laplace(0, scale, size),
        log_density=lambda at, data, scale: -np.abs(at - data) / scale - np.log(2 * scale),
        price=lambda **_: price, neighbours=lambda **_: [(0.0, 1.0)],
        edges=lambda scale: np.unique([a + scale * k / 4 for a in (0.0, 1.0) for k in range(-160, 161)]),
    )  # fmt: skip


def judged(declaration: Declaration) -> str:
    """Returns the verdict, or the word "refused"; anything else than either is raised."""
    try:
        found = verify(declaration, declaration.values())
        assert found.repair is not None
    except PrivcheckError:
        return "refused"
    assert not math.isnan(found.upper_ratio + found.lower_ratio) or math.isinf(found.upper_ratio)
    assert not math.isnan(found.lower_ratio)
    assert found.verdict != "holds" or found.upper_ratio <= 1
    return found.verdict


def claims_of(size: Expr) -> list[Guarantee]:
    return [
        PureDP(size), ZCDP(size), GaussianDP(size), ApproxDP(size, "1e-5"), ApproxDP(1, minimum(size, 1) / 2),
        ApproxDP(size, 1 / (1 + size)), RenyiDP(2, size), RenyiDP(1 + size, 1),
        PrivacyProfile(((1, "1e-5"), (size, "1e-9"))),
    ]  # fmt: skip


RELEASED = {
    "a sampled table": lambda claim: declared(
        claim, Release("v", COUNTS, Laplace(scale=2 * H / epsilon), schedule=Poisson(rate=q)), relation=AddRemoveOne()
    ),
    "a Gaussian table": lambda claim: declared(claim, Release("v", COUNTS, Gaussian(variance=2 * H / rho))),
    "a Laplace table": lambda claim: declared(claim, LAPLACE),
    "a mechanism of its author's": lambda claim: declared(
        claim, relation=AddRemoveOne(), procedures=(mechanism(PureDP(epsilon)),)
    ),
}


def test_the_folklore_claim_of_amplification_is_judged():
    """It ended in an OverflowError: at ε = 1000, in the box, it is beyond all floats."""
    assert judged(RELEASED["a sampled table"](PureDP(q * (exp(epsilon) - 1)))) == "holds"
    assert decide(q * epsilon, q * (exp(epsilon) - 1), PARAMETERS).holds
    assert not decide(exp(1000 * epsilon), exp(epsilon), PARAMETERS).holds


def test_both_beyond_all_floats_is_no_answer():
    far = ({"rho": Fraction(1), "epsilon": Fraction(1000)},)
    assert comparisons._at_most_at(exp(2 * epsilon), exp(epsilon), *far) is None
    assert comparisons._at_most_at(exp(epsilon), exp(epsilon) * 2, *far) is None
    assert comparisons._at_most_at(exp(epsilon), rho + sqrt(2), *far) is False
    assert comparisons._at_most_at(rho + sqrt(2), exp(epsilon), *far) is True
    assert comparisons._at_most_at(0 - exp(epsilon), rho + sqrt(2), *far) is True
    assert comparisons._at_most_at(rho + sqrt(2), 0 - exp(epsilon), *far) is False


@pytest.mark.parametrize("released", RELEASED)
def test_a_claim_that_floats_cannot_hold_is_refused(released):
    made = RELEASED[released]
    for number in ("1e305", "1e400", "1e-305", "1e-400"):
        for claim in (PureDP(number), ApproxDP(number, "1e-5"), ZCDP(number), GaussianDP(number), RenyiDP(2, number)):
            with pytest.raises(ParameterError, match="between 1e-300 and 1e300"):
                verify(made(claim), {})


def test_a_price_that_floats_cannot_hold_is_refused():
    for number in ("1e305", "1e-305"):
        for price in (PureDP(number), ApproxDP(number, "1e-5"), ZCDP(number), GaussianDP(number)):
            stated = declared(PureDP(1), relation=AddRemoveOne(), procedures=(mechanism(price),))
            with pytest.raises(ParameterError, match=r"m: its price: .*between 1e-300 and 1e300"):
                verify(stated, stated.values())


@pytest.mark.parametrize("seed", range(24))
def test_no_claim_ends_in_anything_but_a_verdict_or_a_refusal(seed):
    rng = random.Random(seed)  # noqa: S311 - no secret
    of, base = rng.choice(tuple(OUT.values())), rng.choice((epsilon, *map(expression, HUGE)))
    try:
        claims = claims_of(of(base))
    except PrivcheckError:
        return
    for claim in rng.sample(claims, 4):
        try:
            declaration = RELEASED[rng.choice(tuple(RELEASED))](claim)
        except PrivcheckError:
            continue
        judged(declaration)
