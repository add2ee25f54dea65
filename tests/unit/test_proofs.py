"""What is proved of expressions, row by row, each beside plain numbers: a proof is for all values, so for these.

A change of a rule shows in a row: a proof that is lost as well as one that is too much.
"""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from typing import Any

import pytest

from privcheck.errors import ParameterError
from privcheck.terms.symbols import (
    INFINITE,
    Expr,
    H,
    K,
    S,
    Span,
    at_most,
    before,
    ceil,
    computed,
    delta,
    epsilon,
    exp,
    expression,
    floor,
    h,
    is_in,
    keeps,
    largest,
    log,
    maximum,
    minimum,
    n,
    prove_at_most,
    rho,
    same,
    sqrt,
    sum_over,
    symbol,
    tree_levels,
)
from privcheck.terms.symbols.proofs import shift, trend

q = symbol("q", "positive")
SPANS = {
    "H": Span("count"), "S": Span("count"), "K": Span("count", 2), "rho": Span("positive"), "epsilon": Span("positive"),
    "q": Span("probability"),
}  # fmt: skip
DOMAINS = ("count", "whole", "positive", "nonnegative", "part of one")
SYMBOLIC: dict[str, Any] = {
    "H": H, "S": S, "K": K, "rho": rho, "epsilon": epsilon, "q": q, "h": h, "n": n, "delta": delta, "exp": exp,
    "log": log,
    "sqrt": sqrt, "maximum": maximum, "minimum": minimum, "ceil": ceil, "floor": floor, "before": before,
    "tree_levels": tree_levels, "expression": expression, "INFINITE": INFINITE,
}  # fmt: skip
NUMERIC: dict[str, Any] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "maximum": max, "minimum": min, "ceil": math.ceil,
    "floor": math.floor, "tree_levels": lambda leaves: int(leaves).bit_length(), "expression": Fraction,
    "INFINITE": math.inf,
}  # fmt: skip
VALUES = {
    "H": [1, 2, 3, 4, 7], "S": [1, 2, 5], "K": [2, 3, 8], "rho": ["1/9", "1/2", 1, 3], "epsilon": ["1/9", 1, 2],
    "q": ["1/9", "1/2", "8/9"], "delta": ["1/9"], "n": [1],
}  # fmt: skip


def made(text: str) -> Expr:
    return expression(eval(text, {}, SYMBOLIC))  # noqa: S307 - our own text


def points(*texts: str) -> list[dict[str, Fraction]]:
    """A grid of values of the parameters that the texts name."""
    names = [name for name in VALUES if name in re.findall(r"\w+", " ".join(texts))]
    return [
        dict(zip(names, map(Fraction, values), strict=True))
        for values in itertools.product(*(VALUES[name] for name in names))
    ]


def evaluate(text: str, point: dict[str, Fraction]) -> float | Fraction | None:
    """The value, or None where it is not a real number."""
    last = {"before": lambda steps: int(point["h"] != steps)}
    try:
        return eval(text, {}, {**NUMERIC, **last, **point})  # type: ignore[no-any-return] # noqa: S307 - our own text
    except (ZeroDivisionError, ValueError):
        return None


def is_within(value: float | Fraction | None, domain: str) -> bool:
    if value is None or math.isinf(value):
        return False
    return {
        "count": value == int(value) and value >= 1,
        "whole": value == int(value) and value >= 0,
        "positive": value > 0,
        "nonnegative": value >= 0,
        "part of one": 0 <= value < 1,
    }[domain]


def answers(of: Expr, steps: Expr | None = None) -> str:
    words = {True: "T", False: "F", None: "-"}
    return "".join(words[keeps(of, domain, SPANS, steps=steps)] for domain in DOMAINS)  # type: ignore[arg-type]


# an expression, and for each domain: T where it is in it, F where it is outside for all values, - where undecided
KEPT = [
    ("H", "TTTTF"), ("H - 1", "-T-T-"), ("H - 2", "-----"), ("1 - H", "-----"), ("-1*H", "FFFFF"),
    ("0*H", "FTFTT"), ("K - 1", "TTTTF"), ("K - 2", "-T-T-"), ("K - 3", "-----"), ("2 - K", "-----"),
    ("1 - K", "FFFFF"), ("H/2", "--TT-"), ("K/2", "--TTF"), ("1/H", "--TT-"), ("1/K", "FFTTT"),
    ("1 - 1/H", "---TT"), ("1 - 1/K", "--TTT"), ("H/K", "--TT-"), ("H/(H + 1)", "--TTT"), ("rho", "--TT-"),
    ("-1*rho", "FFFFF"), ("rho - 1", "-----"), ("1/(1 + rho)", "FFTTT"), ("rho/(1 + rho)", "--TTT"),
    ("1 - rho", "-----"), ("rho**2 - 2*rho + 1", "-----"), ("q", "FFTTT"), ("1 - q", "--TTT"), ("q/2", "FFTTT"),
    ("2*q", "--TT-"), ("q - 1", "FFFFF"), ("1 - 2*q", "-----"), ("q*H", "--TT-"), ("q/H", "--TTT"),
    ("q*rho", "--TT-"), ("1/q", "--TTF"), ("1/q - 1", "--TT-"), ("sqrt(H)", "--TT-"), ("sqrt(K - 1)", "--TT-"),
    ("sqrt(q)", "FFTT-"), ("sqrt(H - 1)", "---T-"), ("sqrt(H - 2)", "-----"), ("1/sqrt(H)", "--TT-"),
    ("1/sqrt(K - 1)", "--TT-"), ("log(H)", "---T-"), ("log(K)", "FFTT-"), ("log(K - 1)", "---T-"),
    ("log(1 + rho)", "--TT-"), ("log(1 + H)", "FFTT-"), ("log(q)", "FFFFF"), ("-1*log(q)", "--TT-"),
    ("log(1/q)", "--TT-"), ("log(2)", "FFTTT"), ("log(rho)", "-----"), ("exp(rho)", "--TT-"),
    ("exp(rho) - 1", "-----"), ("exp(-1*rho)", "--TT-"), ("1 - exp(-1*rho)", "-----"), ("exp(H)", "FFTT-"),
    ("maximum(H, rho)", "--TT-"), ("maximum(H - 1, rho)", "--TT-"), ("maximum(H - 2, rho - 1)", "-----"),
    ("maximum(H - 2, 0)", "-T-T-"), ("maximum(-1*H, 0)", "FTFTT"), ("maximum(1, log(rho))", "--TT-"),
    ("minimum(H, rho)", "--TT-"), ("minimum(H - 1, rho)", "---T-"), ("minimum(1, rho)", "--TT-"),
    ("minimum(H, K)", "TTTT-"), ("minimum(q, 1/K)", "FFTT-"), ("minimum(K - 1, H)", "TTTT-"),
    ("log(maximum(H, K))", "--TT-"), ("log(maximum(rho, 2))", "--TT-"), ("log(maximum(rho, 1))", "---T-"),
    ("ceil(rho)", "TTTT-"), ("ceil(log(K))", "TTTT-"), ("ceil(q)", "TTTTF"), ("ceil(log(H))", "-T-T-"),
    ("ceil(rho - 1)", "-----"), ("floor(rho)", "-T-T-"), ("floor(rho) + 1", "TTTTF"), ("tree_levels(K)", "-T-T-"),
    ("tree_levels(K - 1)", "-T-T-"), ("tree_levels(K) - 1", "-----"), ("rho + H - 1", "--TT-"),
    ("log(K) + rho", "--TT-"), ("log(H) + H - 1", "-----"), ("log(rho) + H", "-----"), ("log(H)*rho", "---T-"),
    ("log(K)*rho", "--TT-"), ("log(K)*(H - 1)", "---T-"), ("log(H)*log(K)", "---T-"), ("H*K - H - K + 1", "-T-T-"),
    ("(H - 1)*(K - 2)", "-T-T-"), ("(H - 1)*(K - 3)", "-----"), ("H*S - 1", "-T-T-"), ("(H - 1)/(K - 1)", "---T-"),
    ("H/(K - 1)", "--TT-"), ("H/(K - 2)", "-----"), ("1/(K - 1)", "--TT-"), ("1/(1 - K)", "FFFFF"),
    ("(H - 1)/(H + rho)", "---TT"), ("H**2 - H + 1", "TTTTF"), ("H**2 - 2*H + 2", "TTTTF"),
    ("rho*H - rho", "---T-"), ("rho*K - rho", "--TT-"), ("expression(0)", "FTFTT"), ("expression(1)", "TTTTF"),
    ("expression(2)", "TTTTF"), ('expression("1/2")', "FFTTT"), ('expression("-1/2")', "FFFFF"),
    ('expression("-1")', "FFFFF"), ('expression("3/2")', "FFTTF"), ("sqrt(2)", "FFTTF"),
    ("sqrt(2) - 1", "FFTTT"), ("1 - sqrt(2)", "FFFFF"), ("sqrt(2) - sqrt(2)", "FTFTT"), ("INFINITE", "FFFFF"),
    ("1/expression(0)", "FFFFF"), ("sqrt(expression(-1))", "FFFFF"), ("log(expression(-1))", "FFFFF"),
    ("H/2 + K/2", "--TTF"), ("epsilon - rho", "-----"), ("(rho + epsilon)**2 - 4*rho*epsilon", "-----"),
    ("K**2 - K - 2", "-T-T-"), ("K**2 - 3*K + 1", "-----"), ("rho**(-1)", "--TT-"), ("(1 + rho)**(-1*H)", "FFTT-"),
    ("2**H", "TTTTF"), ("2**(-1*H)", "FFTTT"), ("(K - 1)**rho", "--TT-"), ("(1/K)**H", "FFTT-"),
    ("H*(-1)", "FFFFF"), ("S - H", "-----"), ("S", "TTTTF"), ("n", "-----"), ("delta", "-----"),
    ("log(maximum(H, K))*rho", "--TT-"), ("minimum(H - 1, rho)*epsilon", "---T-"), ("2**log(H - 2)", "-----"),
    ("log(maximum(H, K)) + log(H)", "--TT-"), ("log(maximum(H, rho)) + log(H)", "---T-"),
    ("log(maximum(H, K)) + H - 2", "-----"), ("maximum(log(maximum(H, K)), H - 1)", "--TT-"),
    ("maximum(log(maximum(H, K)), rho - 1)", "--TT-"), ("sqrt(log(maximum(H, K)))", "--TT-"),
    ("sqrt(log(maximum(H, 1)))", "---T-"), ("1/log(maximum(H, K))", "--TT-"), ("1/log(H)", "-----"),
    ("ceil(log(maximum(H, K)))", "TTTT-"), ("ceil(minimum(H - 1, rho))", "-T-T-"),
    ("minimum(log(maximum(H, K)), 1/K)", "--TT-"), ("sqrt((K - 1)*(H - 1))", "---T-"),
    ("(H - 1)**(1/expression(2))*rho", "---T-"), ("maximum(K - 3, rho)", "--TT-"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), KEPT, ids=[text for text, _ in KEPT])
def test_domains_of_expressions_for_all_values_of_their_parameters(text: str, told: str) -> None:
    assert answers(made(text)) == told
    for domain, answer in zip(DOMAINS, told, strict=True):
        inside = [is_within(evaluate(text, point), domain) for point in points(text)]
        assert answer != "T" or all(inside)
        assert answer != "F" or not any(inside)


# likewise at every step h = 1, ..., H for the steps that stand beside; F where it is outside at a step
KEPT_AT_STEPS = [
    ("before(H)", "H", "-T-T-"), ("before(H)", "5", "-T-T-"), ("H*before(H)", "H", "-T-T-"),
    ("H*before(H)", "5", "-T-T-"), ("q*before(K)", "H", "---TT"), ("h", "H", "TTTTF"), ("h", "5", "TTTTF"),
    ("h", "64", "TTTTF"), ("h", "65", "-----"), ("h", "0", "-----"), ("h", "H+1", "-----"), ("h", "S", "TTTTF"),
    ("h - 1", "H", "-T-T-"), ("h - 1", "5", "FTFTF"), ("H - h", "H", "-T-T-"), ("H - h", "5", "-----"),
    ("H - h", "S", "-----"), ("H - h + 1", "H", "TTTTF"), ("H - h + 1", "5", "----F"),
    ("H - h - 1", "H", "-----"), ("H - 2*h", "H", "-----"), ("h/H", "H", "--TT-"), ("h/H", "5", "--TT-"),
    ("(h - 1)/H", "H", "---TT"), ("(h - 1)/H", "5", "F-FT-"), ("(h - 1)/H", "S", "---T-"),
    ("rho/h", "H", "--TT-"), ("rho/h", "5", "--TT-"), ("h*before(H)", "H", "-T-T-"), ("h*before(H)", "5", "-T-T-"),
    ("(H - h)*before(H)", "H", "-T-T-"), ("2*H - h", "H", "TTTTF"), ("2*H - h", "5", "----F"),
    ("K - h", "H", "-----"), ("K - h", "5", "----F"), ("h - H", "H", "-----"), ("h**2 - h", "H", "-T-T-"),
    ("h**2 - h", "5", "FTFTF"), ("sqrt(H - h)", "H", "---T-"), ("log(h)", "H", "---T-"), ("log(h)", "5", "FFFTF"),
    ("log(1 + H - h)", "H", "---T-"), ("1 - h/H", "H", "---TT"), ("1/(H - h + 1)", "H", "--TT-"),
    ("1/h", "H", "--TT-"), ("1/h", "5", "FFTTF"), ("h - 2", "H", "-----"), ("h - 2", "5", "FFFFF"),
    ("2 - h", "H", "-----"), ("2 - h", "5", "FFFFF"), ("5 - h", "H", "-----"), ("5 - h", "5", "FTFTF"),
    ("6 - h", "H", "-----"), ("6 - h", "5", "TTTTF"), ("6 - h", "64", "FFFFF"), ("q**h", "H", "FFTT-"),
    ("q/h", "H", "--TTT"), ("q/h", "5", "FFTTT"), ("h/5", "H", "--TT-"), ("h/5", "5", "FFTTF"),
    ("h/6", "H", "--TT-"), ("h/6", "5", "FFTTT"),
    ("h", "expression(1)", "TTTTF"), ("h - 1", "expression(1)", "FTFTT"),
    ("H", "expression(65)", "TTTTF"), ("rho", "H + 1", "--TT-"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "steps", "told"), KEPT_AT_STEPS, ids=[f"{t}, {s}" for t, s, _ in KEPT_AT_STEPS])
def test_domains_of_bounds_at_every_step(text: str, steps: str, told: str) -> None:
    assert answers(made(text), made(steps)) == told
    for domain, answer in zip(DOMAINS, told, strict=True):
        for point in points(text, steps):
            ends = range(1, int(evaluate(steps, point) or 0) + 1)
            inside = [is_within(evaluate(text, {**point, "h": Fraction(step)}), domain) for step in ends]
            assert answer != "T" or all(inside)
            assert answer != "F" or not all(inside)


def test_domains_need_a_span_of_every_parameter_and_no_sum() -> None:
    assert answers(n * H) == answers(delta) == answers(H * delta) == "-----"
    assert answers(sum_over(H, lambda step: 1 / step)) == "-----"
    assert answers(computed("moved", lambda steps: 2 * steps, H) + 1) == "--TTF"
    assert keeps(H - 4, "count", {"H": Span("count", 5)}) is True
    assert keeps(H - 4, "count", {"H": Span("count", 4)}) is None
    assert keeps(H - 4, "whole", {"H": Span("count", 4)}) is True
    assert keeps(1 - rho, "positive", {"rho": Span("probability")}) is True
    assert keeps(H - h, "whole", {"H": Span("count")}, steps=H) is True
    assert keeps(expression(2), "count", {}) is True
    assert answers(h - 1) == "-T-T-"
    assert answers((rho - 1) * (0 - INFINITE)) == answers((rho - 1) * INFINITE) == "FFFFF"


# left, right, whether left ≤ right for all, and whether they are the same for all
ORDERED = [
    ("H", "2*H", "TF"), ("2*H", "H", "FF"), ("0", "H - 1", "T-"), ("0", "H - 2", "--"), ("1", "H", "T-"),
    ("2", "H", "--"), ("0", "1 - H", "--"), ("0", "(H - 1)*(S - 1)", "T-"), ("0", "H*S - H - S + 1", "T-"),
    ("0", "H**2 - 3*H + 2", "--"), ("0", "H**2 - 2*H + 1", "T-"), ("0", "rho - 1", "--"), ("1", "rho + 1", "TF"),
    ("0", "rho*H - rho", "T-"), ("0", "rho*H - 2*rho", "--"), ("0", "(H - 1)/(S + 1)", "T-"),
    ("0", "1/(H - 2)", "-F"), ("0", "(H - 1)/(S - 2)", "--"), ("0", "(H - 1)/S", "T-"), ("S/H", "S", "T-"),
    ("1/H", "1", "T-"), ("1/(1 + rho)", "1", "TF"), ("1", "1/(1 + rho)", "FF"), ("sqrt(2*H)", "sqrt(3*H)", "TF"),
    ("sqrt(3*H)", "sqrt(2*H)", "FF"), ("1", "sqrt(2)", "TF"), ("sqrt(2)", "1", "FF"), ("sqrt(H)", "H", "--"),
    ("log(H)", "H", "--"), ("0", "log(H)", "T-"), ("0", "log(H*S)", "T-"), ("0", "exp(rho) - 1", "--"),
    ("exp(rho)", "2*exp(rho)", "TF"), ("2*exp(rho) - 2", "exp(rho) - 1", "--"),
    ("exp(rho) - 1", "2*exp(rho) - 2", "--"), ("rho**2", "rho", "--"), ("rho", "rho", "TT"),
    ("rho", "epsilon", "--"), ("maximum(rho, epsilon)", "rho + epsilon", "T-"),
    ("maximum(2*rho, epsilon)", "rho", "F-"), ("maximum(epsilon, 2*rho)", "rho", "F-"),
    ("maximum(rho, epsilon)", "rho", "--"), ("maximum(rho/2, rho/3)", "rho/2", "TT"),
    ("maximum(rho/2, rho/3)", "rho/3", "FF"), ("rho", "maximum(2*rho, epsilon)", "T-"),
    ("rho", "maximum(epsilon, 2*rho)", "T-"), ("2*rho", "maximum(rho, epsilon)", "--"),
    ("2*rho", "maximum(rho, rho/2)", "FF"), ("minimum(2*rho, epsilon)", "rho", "--"),
    ("minimum(rho/2, epsilon)", "rho", "T-"), ("minimum(epsilon, rho/2)", "rho", "T-"),
    ("minimum(2*rho, 3*rho)", "rho", "FF"), ("minimum(rho, epsilon)", "maximum(rho, epsilon)", "T-"),
    ("maximum(rho, epsilon)", "minimum(rho, epsilon)", "--"),
    ("maximum(rho, epsilon)", "maximum(rho, epsilon)", "TT"),
    ("2*maximum(rho, epsilon)", "maximum(rho, epsilon)", "FF"),
    ("maximum(minimum(rho, 1), minimum(epsilon, rho))", "rho", "T-"), ("rho", "minimum(rho, epsilon)", "--"),
    ("0", "tree_levels(K)", "T-"), ("0", "tree_levels(K) - 1", "--"), ("tree_levels(K)", "2*tree_levels(K)", "T-"),
    ("2*tree_levels(K)", "tree_levels(K)", "--"), ("rho/epsilon", "2*rho/epsilon", "TF"),
    ("2*rho/epsilon", "rho/epsilon", "FF"), ("0", "rho**2 + epsilon**2 - rho*epsilon", "--"), ("H", "H**2", "T-"),
    ("H**2", "H", "--"), ("H*(H + 1)/2", "H**2", "T-"), ("H**2", "H*(H + 1)/2", "--"), ("-1*rho", "0", "TF"),
    ("0", "-1*rho", "FF"), ("-2*rho", "-1*rho", "TF"), ("-1*rho", "-2*rho", "FF"), ("1", "2", "TF"),
    ("2", "1", "FF"), ("1", "1", "TT"),
    ('expression("1/2")', 'expression("1/3")', "FF"), ("0", "0", "TT"), ("1", "0", "FF"),
    ("sqrt(rho)", "sqrt(rho + 1)", "--"),
    ("rho + 2*sqrt(rho*log(1/delta))", "2*rho + 2*sqrt(rho*log(1/delta))", "TF"),
    ("H*rho", "H*rho*(1 + 1/K)", "TF"), ("S/(S + 1)", "H", "T-"), ("(rho + 1)/(rho + 2)", "1", "TF"),
    ("0", "(rho - 1)**2", "T-"), ("0", "log(rho + 1)", "TF"), ("0", "H**rho - 1", "--"),
    ("0", "(H - 1)*rho**epsilon", "T-"),
    ("2*((rho - 1)**2 + 1)", "(rho - 1)**2 + 1", "FF"), ("((rho - 1)**2 + 1)/2", "(rho - 1)**2 + 1", "T-"),
    ("2*((rho - 1)**2 + 1)*exp(rho)", "((rho - 1)**2 + 1)*exp(rho)", "F-"),
    ("((rho - 1)**2 + 1)*exp(rho)/2", "((rho - 1)**2 + 1)*exp(rho)", "T-"),
    ("log(H*S)", "log(H) + log(S)", "TT"), ("log(2*H)", "log(H)", "-F"), ("log(H)", "log(S)", "--"),
    ("exp(rho)*exp(epsilon)", "exp(rho + epsilon)", "T-"), ("H", "H + S - 1", "T-"),
    ("sqrt(H)*sqrt(S)", "sqrt(H*S)", "TT"), ("1/H - 1/H", "0", "TT"),
]  # fmt: skip


# [lemma no-negative-coefficient]
@pytest.mark.parametrize(("left", "right", "told"), ORDERED, ids=[f"{a}, {b}" for a, b, _ in ORDERED])
def test_order_and_equality_for_all_values_of_the_parameters(left: str, right: str, told: str) -> None:
    words = {True: "T", False: "F", None: "-"}
    one, other = made(left), made(right)
    proof = prove_at_most(one, other)
    assert words[proof.holds] + words[same(one, other)] == told
    assert at_most(one, other) is proof.holds
    assert bool(proof.steps) is (proof.holds is not None)
    pairs = [(evaluate(left, point), evaluate(right, point)) for point in points(left, right)]
    real = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
    assert proof.holds is not True or all(a <= b + 1e-12 * abs(b) for a, b in real)
    assert proof.holds is not False or any(a > b for a, b in real)
    assert told[1] != "T" or all(math.isclose(a, b, abs_tol=1e-12) for a, b in real)
    assert told[1] != "F" or any(a != b for a, b in real)


def test_a_proof_is_written_out_step_by_step() -> None:
    assert prove_at_most(H, 2 * H).steps == (
        "2*H − (H) = H",
        "the difference is not negative, by the signs of its parts",
    )
    assert prove_at_most(S / H, S).steps[1] == (
        "with every count n written as 1 + m, m ≥ 0, no coefficient above or below the line is negative"
    )
    assert prove_at_most(2 * H, H).steps == (
        "H − (2*H) = -H",
        "the difference is negative for all parameters",
    )
    assert prove_at_most(maximum(rho, epsilon), rho + epsilon).steps[0] == (
        "a maximum is at most epsilon + rho if all its parts are"
    )
    assert len(prove_at_most(maximum(rho, epsilon), rho + epsilon).steps) == 5
    assert prove_at_most(rho, maximum(2 * rho, epsilon)).steps == (
        "rho is at most a maximum if it is at most one part",
        "2*rho − (rho) = rho",
        "the difference is not negative, by the signs of its parts",
    )
    assert prove_at_most(minimum(rho / 2, epsilon), rho).steps == (
        "a minimum is at most rho if one part is",
        "rho − (rho/2) = rho/2",
        "the difference is not negative, by the signs of its parts",
    )


def test_the_largest_is_one_of_them_where_that_is_proved() -> None:
    assert largest(rho / 2, rho, rho / 3) == rho
    assert largest(H, 2 * H) == 2 * H
    assert largest(2 * H, H) == 2 * H
    assert largest(rho, epsilon) == maximum(rho, epsilon)
    assert largest(rho, epsilon, rho + epsilon) == rho + epsilon
    assert largest(rho) == rho
    assert largest(S / H, S) == S  # SymPy's maximum leaves these two
    assert maximum(S / H, S) != S


# an expression, a parameter and the direction: + never falls, - never rises, = does not depend on it, ? undecided
TRENDS = [
    ("H", "S", "="), ("H", "H", "+"), ("-1*H", "H", "-"), ("2*H", "H", "+"), ("1 - H", "H", "-"),
    ("H**2", "H", "+"), ("H**2 - H", "H", "+"), ("H**2 - 2*H", "H", "+"), ("H**2 - 3*H", "H", "+"),
    ("H**2 - 4*H", "H", "?"), ("3*H - H**2", "H", "-"), ("2*H - H**2", "H", "-"), ("1/H", "H", "-"),
    ("-1/H", "H", "+"), ("H/(H + 1)", "H", "+"), ("(H + 1)/H", "H", "-"), ("(H - 1)/H", "H", "+"),
    ("H/K", "K", "-"), ("H/K", "H", "+"), ("K**H", "H", "+"), ("2**H", "H", "+"), ("2**H", "K", "="),
    ("H**(-2)", "H", "-"), ("sqrt(H)", "H", "+"), ("1/sqrt(H)", "H", "-"), ("sqrt(H/rho)", "rho", "-"),
    ("sqrt(H*rho)", "rho", "+"), ("sqrt(rho + H)", "rho", "+"), ("(1 - rho)**2", "rho", "?"),
    ("rho*(1 - rho)", "rho", "?"), ("exp(rho)", "rho", "+"), ("exp(-1*rho)", "rho", "-"),
    ("exp(rho - H)", "H", "-"), ("exp(rho - H)", "rho", "+"), ("log(rho)", "rho", "+"),
    ("-1*log(rho)", "rho", "-"), ("log(1/rho)", "rho", "-"), ("log(1 + 1/H)", "H", "-"), ("log(H)*H", "H", "+"),
    ("log(rho)*rho", "rho", "?"), ("maximum(H, rho)", "H", "+"), ("maximum(H, -1*rho)", "rho", "="),
    ("maximum(H, 1/rho)", "rho", "-"), ("minimum(H, rho)", "rho", "+"), ("minimum(H, 1/rho)", "rho", "-"),
    ("minimum(rho, 1/rho)", "rho", "?"), ("rho + 1/rho", "rho", "?"), ("rho + H/K", "K", "-"),
    ("tree_levels(K)", "K", "+"), ("2 - tree_levels(K)", "K", "-"), ("H*tree_levels(K)", "K", "+"),
    ("tree_levels(K)/H", "H", "-"), ("tree_levels(K)/K", "K", "?"), ("tree_levels(K) - K", "K", "?"),
    ("rho + exp(-1*rho) - 1", "rho", "+"), ("exp(rho) - rho", "rho", "+"), ("exp(rho) - 1 - rho", "rho", "+"),
    ("1 - exp(-1*rho)", "rho", "+"), ("rho - 1 + exp(-1*rho) + H", "rho", "+"), ("1/(1 + exp(rho))", "rho", "-"),
    ("rho/(1 + rho)", "rho", "+"), ("(1 + rho)/rho", "rho", "-"), ("epsilon*rho", "rho", "+"),
    ("(epsilon - 1)*rho", "rho", "?"), ("-1*(epsilon - 1)*rho", "rho", "?"), ("(H - 1)*rho", "rho", "+"),
    ("(H - 1)*rho", "H", "+"), ("(H - 1)*(K - 1)", "H", "+"), ("(1 - H)*rho", "H", "-"),
    ("rho**epsilon", "epsilon", "?"), ("H**epsilon", "epsilon", "+"), ("H**rho", "H", "+"),
    ("(1 + H)**rho", "H", "+"), ("rho**3", "rho", "+"), ("(-1*rho)**3", "rho", "-"), ("(H - 2)**2", "H", "?"),
    ("(H - 2)**3", "H", "?"), ("sqrt(H)*rho", "H", "+"), ("sqrt(H - 1)", "H", "+"), ("ceil(rho)", "rho", "?"),
    ("H*(H + 1)/2", "H", "+"), ("-1*H*(H + 1)/2", "H", "-"), ("H*S - S**2", "H", "+"), ("K/(K + S)", "S", "-"),
    ("K/(K + S)", "K", "+"), ("rho**2/(1 + rho)", "rho", "+"), ("expression(3)", "H", "="),
    ("rho**2 - rho", "rho", "?"), ("rho**2 + rho**(-1)", "rho", "?"), ("log(H) - H", "H", "?"),
    ("rho - log(1 + rho)", "rho", "+"), ("-1*exp(rho)", "rho", "-"), ("-2*rho*H", "H", "-"),
    ("exp(exp(rho))", "rho", "+"), ("rho**(1/expression(3))", "rho", "+"),
    ("rho**(epsilon - 1)", "rho", "?"), ("H**(epsilon - 1)", "H", "?"),
    ("1/(rho + 1/rho)", "rho", "?"), ("sqrt(rho + 1/rho)", "rho", "?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "told"), TRENDS, ids=[f"{a}, {b}" for a, b, _ in TRENDS])
def test_trends_of_expressions_in_a_parameter(text: str, name: str, told: str) -> None:
    words = {"constant": "=", "nondecreasing": "+", "nonincreasing": "-", None: "?"}
    assert words[trend(made(text), name)] == told
    others = [point for point in points(text, "rho" if name == "rho" else "H") if name in point]
    for point in others:
        first, second = evaluate(text, point), evaluate(text, {**point, name: point[name] * 2})
        if first is not None and second is not None:
            slack = 1e-12 * abs(first)
            assert told not in "+=" or first <= second + slack
            assert told not in "-=" or first >= second - slack


def test_a_trend_of_a_function_without_a_derivative_is_not_decided() -> None:
    assert trend(rho - computed("moved", lambda steps: 2 * steps, rho), "rho") is None
    assert trend(computed("moved", lambda steps: 2 * steps, H) * S, "S") == "nondecreasing"
    with pytest.raises(ParameterError, match="expected H to be a count in rho") as caught:
        shift(rho, "H")
    assert caught.value.name == "H"
    with pytest.raises(ParameterError, match="expected rho to be a count"):
        shift(rho, "rho")
    assert shift(H * S + K, "S") == H * (S + 1) + K


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (expression(0), "FTFTT"), (expression(1), "TTTTF"), (expression(-1), "FFFFF"), (expression(2), "TTTTF"),
        (expression("1/2"), "FFTTT"), (expression("3/2"), "FFTTF"), (expression("-1/2"), "FFFFF"),
        (expression(1) - expression("1e-30"), "FFTTT"),
        (sqrt(2), "FFTTF"), (sqrt(2) - 1, "FFTTT"), (1 - sqrt(2), "FFFFF"), (exp(-1), "FFTTT"), (log(3), "FFTTF"),
        (exp(-(10**9)), "FFFTT"), (1 - exp(-(10**9)), "FFTTF"), (-1 * exp(-(10**9)), "FFFFF"), (exp(10**9), "-----"),
        (-1 * exp(10**9), "-----"), (INFINITE, "-----"), (1 / (H - 3), "-----"), (log(H - 3), "-----"), (H, "TTTTF"),
        (H - 3, "FTFTT"), (H / 6, "FFTTT"), (K, "-----"),
        (sqrt(2) * 10**20, "FFTTF"), (sqrt(2) * 10**20 - 10**21, "FFFFF"),
    ],
    ids=str,
)  # fmt: skip
def test_domains_at_given_values(of: Expr, told: str) -> None:
    words = {True: "T", False: "F", None: "-"}
    assert "".join(words[is_in(of, domain, {"H": Fraction(3)})] for domain in DOMAINS) == told  # type: ignore[arg-type]
