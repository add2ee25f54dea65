"""The order of terms for all parameters: what is proved and what is not, one rule of A-* and B-* a table."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import certificate_samples as samples
from certificate_verdicts import refused, work
from privcheck_check import products
from privcheck_check.declared import read_declared
from privcheck_check.products import Prover
from privcheck_check.terms import Ends, Term, allow, evaluate, exponential, read_term, square_root
from privcheck_check.values import Rejected
from test_checker_refutations import document

F = Fraction
PARAMETERS: dict[str, Any] = {
    "K": samples.integer(9),
    "N": samples.integer(9),
    "Z": samples.integer(9, 0),  # from 0
    "M": samples.integer(3) | {"most": 5},
    "x": samples.real(2),  # above 0
    "y": samples.real(2),
    "z": samples.real(2) | {"least": 1},
    "p": samples.real("1/2", most=1),  # above 0, at most 1
    "q": samples.real(2, most=3),
    "u": samples.real(9) | {"least": 4},
    "v": samples.real(9) | {"least": "1/2"},
    "w": samples.real(9) | {"least": 2},
}


def prover(bounds: tuple[tuple[str, str, str], ...] = ()) -> Prover:
    part = samples.release("r", {"kind": "bits", "bits": 1, "ones": 1}, "laplace", scale="1")
    declared = read_declared(
        document([part], {"currency": "pure", "epsilon": 1}, [], parameters=PARAMETERS)["declared"]
    )
    found = Prover(declared)
    found.state([{"rule": rule, "term": samples.term(a), "at_least": samples.term(b)} for rule, a, b in bounds])
    return found


def term(given: Any) -> Term:
    """Of a formula; a fraction or a term as it is."""
    return read_term(samples.term(given), "", PARAMETERS.keys() | {"h"}) if isinstance(given, str) else given


def proved(left: Any, right: Any, *bounds: tuple[str, str, str]) -> bool | str:
    """Whether left ≥ right is proved; "rejected" where a term has no meaning that is proved."""
    allow()
    try:
        return prover(bounds).at_least(term(left), term(right))
    except Rejected:
        return "rejected"


def inside(ends: Ends) -> Fraction:
    assert ends[0] < ends[1]
    return (ends[0] + ends[1]) / 2


# ── Equal terms, each way ──


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # sums, products, quotients
        ("0 + K", "K"), ("K - K", "0"), ("(K + 1)*(K - 1) + 1", "K*K"), ("K*(N + 2)", "K*N + 2*K"),
        ("x/y/y", "x/(y*y)"), ("K/(2*K)", "1/2"), ("1/(1 + K) + 1/(2 + K)", "(3 + 2*K)/((1 + K)*(2 + K))"),
        ("1/(1 + K) + 5", "(6 + 5*K)/(1 + K)"), ("5 + 1/(1 + K)", "(6 + 5*K)/(1 + K)"),
        ("1/(1 + K) - 5/(1 + K) + 9", "9 - 4/(1 + K)"),
        ("x/(1 + K) + y/(2 + K)", "(x*(2 + K) + y*(1 + K))/((1 + K)*(2 + K))"),
        ("2 - x/(x + y)", "1 + y/(x + y)"),
        # powers
        ("K**(1/2)*K**(1/2)", "K"), ("K**(3/2)*K**(1/2)", "K*K"), ("K**(5/2)", "K*K*sqrt(K)"), ("K**(0/1)", "1"),
        # roots
        ("sqrt(4*K*K)", "2*K"), ("sqrt(8)", "2*sqrt(2)"), ("sqrt(12)*sqrt(3)", "6"), ("sqrt(27)", "3*sqrt(3)"),
        ("sqrt(x/4)", "sqrt(x)/2"), ("sqrt(2/9)", "sqrt(2)/3"), ("sqrt(2/3)", "sqrt(6)/3"),
        ("sqrt(10201)*x", "101*x"),
        ("x/(sqrt(2)*sqrt(2))", "x/2"), ("x/sqrt(2)/sqrt(2)", "x/2"), ("sqrt(2)*sqrt(2)*sqrt(2)*x", "2*sqrt(2)*x"),
        ("sqrt(K - K)", "0"),
        ("sqrt(3)*sqrt(1/3)*x", "x"), ("sqrt(11)*sqrt(11)*x", "11*x"), ("sqrt(9409*x)", "97*sqrt(x)"),
        ("sqrt(K*K*K/(sqrt(3)*K + K)/(sqrt(3) - 1))", "K*sqrt(2)/2"), ("sqrt(x*y*y)", "y*sqrt(x)"),
        ("sqrt(x + y)*2", "sqrt(x + y) + sqrt(y + x)"), ("sqrt(1/(1 + K))*2", "sqrt(1/(1 + K)) + sqrt(1/(K + 1))"),
        # opaque terms, by the text of what they are of
        ("log((K + 1)*(K - 1) + 1)", "log(K*K)"), ("log(0 + K)", "log(K)"), ("log(K + sqrt(4))", "log(K + 2)"),
        ("log(K + sqrt(10201))", "log(K + 101)"), ("log(K + max(2, 3))", "log(K + 3)"),
        ("log(max(0, 0) + K)", "log(K)"),
        ("log(K + sqrt(8))", "log(K + 2*sqrt(2))"), ("max(K, N)", "max(N, K)"), ("max(K - K, K)", "max(K, 0)"),
        ("max(1, x/(1 + K) + y/(1 + K))", "max(1, (x + y)/(1 + K))"), ("K + max(2, 3)", "K + 3"),
        ("log(K + (p - p))", "log(K)"), ("bit_length(9)*x", "4*x"), ("log(1)*x", "0"),
    ],
)  # fmt: skip
def test_equal_terms_are_proved_each_way(left: str, right: str) -> None:
    assert proved(left, right) is True
    assert proved(right, left) is True
    assert proved(f"{left} + x", right) is True
    assert proved(right, f"{left} + 1/1000") is False


def test_a_negative_power_is_a_quotient() -> None:
    for exponent, other in ((-1, "1/K"), (-2, "1/(K*K)"), (F(-1, 2), "1/sqrt(K)")):
        power = ("^", "K", F(exponent))
        assert proved(power, other) is True
        assert proved(other, power) is True
    assert proved(("^", term("K + 1"), F(-1)), "1/(1 + K)") is True


def test_powers_are_limited() -> None:
    assert proved("x**60*x*x*x*x", "0") is True
    assert proved("x**60*x*x*x*x*x", "0") == "rejected"
    assert proved("1/(x**60*x*x*x*x)", "0") is True
    assert proved("1/(x**60*x*x*x*x)/x", "0") == "rejected"


# ── What is true for all, and what is not ──


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        # lower bounds of parameters; above 0 where that is 0
        ("K", "1", True), ("K", "2", False), ("Z", "0", True), ("Z", "1/9", False), ("x", "0", True),
        ("z", "1", True),
        ("1/Z", "0", "rejected"), ("1/x", "0", True), ("1/(z - 1)", "0", "rejected"), ("1/(x + Z)", "0", True),
        ("1/(Z*x)", "0", "rejected"), ("1/(K - 1)", "0", "rejected"), ("1/(K + Z - 1/2)", "0", True),
        ("1/(x - y)", "0", "rejected"), ("1/(K - 2)", "0", "rejected"), ("1/(1 - K)", "0", "rejected"),
        ("1", "x", False), ("1", "p", True), ("1/2", "p", False), ("3", "q", True), ("2", "q", False),
        ("5", "M", False),
        ("1/p", "1", True), ("3/q", "1", True), ("1/x", "1", False), ("1/p/p", "1/p", True), ("p", "p*p", True),
        ("p*p", "p", False), ("1 + p", "2*p", True), ("1/(1 + p)", "1/2", True), ("1/(1 + q)", "1/4", True),
        ("1/(2 - p)", "1/2", True), ("1/(2 - p)", "2/3", False), ("x/p", "x", True), ("x*p", "x", False),
        ("1/p", "1/(p*p)", False),
        # squares, roots and powers
        ("x*x + y*y", "2*x*y", False), ("K", "sqrt(K)", True), ("sqrt(K)", "K", False), ("K*K", "K", True),
        ("x", "sqrt(x)", False), ("sqrt(K + 3)", "2", True), ("sqrt(K + 3)", "21/10", False), ("sqrt(Z)", "0", True),
        ("Z + 1", "sqrt(Z)", False), ("1", "sqrt(K)", False), ("1", "K**(1/2)", False), ("4*K", "4*sqrt(K)", True),
        ("K + sqrt(K)", "2", True), ("K + sqrt(K)", "201/100", False), ("K/2", "sqrt(K)/2", True),
        ("K + Z", "Z + sqrt(K)", True),
        ("1 + 1/K", "0", True), ("sqrt(p)", "p", False), ("1/(sqrt(p) + p)", "0", "rejected"),
        ("1/sqrt(p)", "1", False),
        ("K*sqrt(K) + 1", "K", True), ("1/sqrt(K)", "1/K", True), ("1/K", "1/sqrt(K)", False),
        ("2*sqrt(2)*K", "2*K", True),
        ("sqrt(K - 5)", "0", "rejected"), ("sqrt(K - 1)", "0", True), ("sqrt(sqrt(K))", "0", "rejected"),
        ("sqrt(0 - K)", "0", "rejected"), ("sqrt(0 - K/2)", "0", "rejected"), ("1/sqrt(Z)", "0", "rejected"),
        ("u + sqrt(u)", "6", True), ("u + sqrt(u)", "7", False), ("w**(3/2)", "2*sqrt(w)", True),
        ("v**(3/2)", "sqrt(v)/2", True), ("v**(3/2)", "sqrt(v)", False), ("sqrt(2)", "1", True),
        ("1", "sqrt(2)", False), ("sqrt(2)*x", "x", True),
        ("x", "sqrt(2)*x", False), ("sqrt(K*K + 3)", "2", True),
        # opaque terms
        ("max(K, N)", "1", True), ("max(K, N)", "K", False), ("max(3, K)", "3", True), ("max(3, K)", "31/10", False),
        ("max(0 - K, 0 - N)", "0", "rejected"), ("max(0 - K, 1)", "1", True), ("max(K - 5, 0 - 3)", "0", "rejected"),
        ("max(K - 9, 0 - 1/2)", "0", "rejected"), ("max(1/2, 1/(1 + K))", "1/2", True),
        ("max(1/2, 1/(1 + K))", "1", False),
        ("max(1/9, (1 + K)/(2 + K))", "2", False), ("max(1/9, (1 + K)/(2 + K))", "1/9", True),
        ("min(1, 1/(1 + K))", "0", "rejected"), ("min(K, 5)", "1", True), ("min(K, 5)", "5", False),
        ("min(K, 5)", "2", False),
        ("min(K, 1/2)", "1/2", True), ("min(K, 0 - K)", "0", "rejected"),
        ("exp(0 - K)", "0", True), ("1/exp(0 - K)", "0", True), ("exp(0 - K)", "1/99", False),
        ("1/(exp(0 - K) + Z)", "0", True),
        ("exp(K)", "2", True), ("exp(K)", "201/100", False), ("exp(K - 3/2)", "1/2", True), ("exp(K/2)", "3/2", True),
        ("exp(5 - K/2)", "5", False), ("exp(5 - K)", "0", True), ("exp(1/K)", "0", True), ("exp(1/K)", "1", False),
        ("exp(1/x)", "2", False), ("exp(1/(1 + K))", "0", True), ("exp(x)", "1", True), ("exp(x)", "11/10", False),
        ("exp(K - 9)", "0", True), ("exp(K - 9)", "1/99", False), ("1/exp(K - 9)", "0", True),
        ("exp(Z - 1/2)", "1/2", True),
        ("exp(K + Z/2 - 3)", "0", True), ("exp(N*K - 1/2)", "3/2", True),
        ("log(K)", "0", True), ("log(K + 1)", "69/100", True), ("log(K + 1)", "7/10", False),
        ("log(x)", "0", "rejected"),
        ("log(Z)", "0", "rejected"), ("log(1 + 1/K)", "0", "rejected"), ("log(1/2 + K)", "2/5", True),
        ("log(K - 1/2)", "0", "rejected"), ("log(5 - K)", "0", "rejected"),
        ("bit_length(K)", "1", True), ("bit_length(K + 3)", "3", True), ("bit_length(K + 3)", "4", False),
        ("bit_length(K - 2)", "0", "rejected"), ("bit_length(K - 1)", "0", True),
        ("bit_length(K/2)", "0", "rejected"),
        ("bit_length(x)", "0", "rejected"), ("bit_length(K*x)", "0", "rejected"),
        ("bit_length(sqrt(K))", "0", "rejected"),
        ("bit_length(1/K)", "0", "rejected"), ("bit_length(K + N/2)", "0", "rejected"),
        ("bit_length(N/2 + K)", "0", "rejected"),
        ("bit_length(K*N)", "1", True), ("bit_length(K + x)", "0", "rejected"), ("bit_length(K*N + 3*K)", "3", True),
        ("bit_length(K/(1 + K))", "0", "rejected"), ("bit_length(bit_length(K + 7))", "3", True),
        ("bit_length(log(K) + 1)", "0", "rejected"), ("bit_length(Z)", "0", True), ("bit_length(z)", "0", "rejected"),
        ("bit_length(K**(3/2))", "0", "rejected"), ("bit_length(K*N/x)", "0", "rejected"),
        ("bit_length(K*K)", "1", True),
    ],
)  # fmt: skip
def test_an_inequality_is_proved_or_not(left: str, right: str, found: Any) -> None:
    assert proved(left, right) == found


@pytest.mark.parametrize("text", ["exp(1)", "sqrt(2)", "log(2)"])
def test_constants_count_by_the_end_that_makes_the_product_smaller(text: str) -> None:
    ends = evaluate(term(text), {})
    low, between, high = ends[0], inside(ends), ends[1]
    for factor in (F(1), F(1, 3), F(5)):
        constant = ("*", factor, term(text))
        for bound, above, below in ((low, True, False), (between, False, False), (high, False, True)):
            assert proved(constant, factor * bound) is above
            assert proved(factor * bound, constant) is below
            assert proved(("*", "x", constant), ("*", "x", factor * bound)) is above
    inverse = ("/", F(1), term(text))
    assert proved(inverse, 1 / high) is True
    assert proved(inverse, 1 / between) is False
    assert proved(1 / between, inverse) is False
    assert proved(1 / low, inverse) is True
    assert proved(("+", term(text), "x"), between) is False


def test_lower_bounds_of_opaque_terms_are_lower_ends() -> None:
    for text, ends in (("sqrt(K + 1)", square_root((F(2), F(2)))), ("log(K + 1)", evaluate(term("log(2)"), {})),
                       ("sqrt(K + 1)*3", tuple(3 * end for end in square_root((F(2), F(2)))))):  # fmt: skip
        assert proved(text, inside(ends)) is False
        assert proved(text, ends[0]) is True


def test_a_root_beside_its_square_is_shifted_by_a_lower_end() -> None:
    """√u + m with u = √(K + 1) ≥ √2: u − c·√u at the root of the lower bound of u, from below."""
    floor = square_root((F(2), F(2)))[0]
    ends = square_root((floor, floor))
    for least, found in ((ends[0], True), (inside(ends), False)):
        allow()
        one = prover()
        one.floors["x"] = floor
        one.above.discard("x")
        assert one.at_least(term("x"), ("*", least, term("sqrt(x)"))) is found


def test_the_divisor_of_a_difference_is_proved_positive_as_a_whole() -> None:
    """e − c is above 0 for c below e by less than 10⁻³⁰; its square is not shown to be, by the ends of e alone."""
    close = F(int(exponential((F(1), F(1)))[0] * 10**30), 10**30)
    factor = ("-", term("exp(1)"), close)
    assert proved(("/", F(1), factor), F(0)) is True
    assert proved(("/", ("/", F(1), factor), factor), F(0)) is False


# ── Sums over steps ──


@pytest.mark.parametrize(
    ("body", "closed"),
    [("1", "K"), ("h", "K*(K + 1)/2"), ("h*h", "K*(K + 1)*(2*K + 1)/6"), ("h*h*h", "K*K*(K + 1)*(K + 1)/4"),
     ("2*h*x + 3", "K*(K + 1)*x + 3*K"), ("h**4", "K*(K + 1)*(2*K + 1)*(3*K*K + 3*K - 1)/30"), ("0", "0"),
     ("h/(1 + N)", "K*(K + 1)/(2 + 2*N)")],
)  # fmt: skip
def test_sums_over_steps_are_polynomials(body: str, closed: str) -> None:
    total = ("sum", term("K"), term(body))
    assert proved(total, closed) is True
    assert proved(closed, total) is True


@pytest.mark.parametrize(
    ("count", "body", "found"),
    [("bit_length(K)", "h", True), ("Z", "h", True), ("K - 1", "h", True), ("x", "h", "rejected"),
     ("K/2", "h", "rejected"), ("1/K", "h", "rejected"),
     ("K - 5", "h", "rejected"), ("K/(1 + N)", "h", "rejected"), ("(K + K*N)/(1 + N)", "h", "rejected"),
     ("log(K)", "h", "rejected"), ("K", "sqrt(h)", "rejected"), ("K", "1/h", "rejected"),
     ("K", "1/(1 + h)", "rejected"),
     ("K", "h/(1 + h)", "rejected"), ("K", "h**(3/2)", "rejected"), ("K", "1/(h*h)", "rejected"),
     ("K", "log(h)", "rejected"),
     ("K", "max(h, 1)", "rejected"), ("K", "1/sqrt(h)", "rejected")],
)  # fmt: skip
def test_a_sum_has_a_whole_number_of_steps_and_no_quotient_in_them(count: str, body: str, found: Any) -> None:
    assert proved(("sum", term(count), term(body)), "0") == found


# ── Bounds ──


@pytest.mark.parametrize(
    ("rule", "text", "least", "found"),
    [
        ("B-MAX", "max(1, K)", "K", True), ("B-MAX", "max(1, K)", "1", True), ("B-MAX", "max(1, K)", "N", False),
        ("B-MAX", "max(1, K)", "2", False), ("B-MAX", "min(1, K)", "K", False),
        ("B-MAX", "max(1, K/(1 + K))", "K/(1 + K)", False), ("B-MAX", "2*max(1, K)", "2*K", False),
        ("B-MIN", "x", "min(x, 5)", True), ("B-MIN", "max(K, N)", "min(max(N, K), 1)", True),
        ("B-MIN", "x", "min(y, 5)", False),
        ("B-MIN", "2*x", "min(2*x, 5)", False), ("B-MIN", "x + y", "min(x + y, 5)", False),
        ("B-MIN", "x*y", "min(x*y, 5)", False),
        ("B-MIN", "x*x", "min(x*x, 5)", False), ("B-MIN", "x/(1 + K)", "min(x/(1 + K), 5)", False),
        ("B-MIN", "x", "x", False),
        ("B-MIN", "1/x", "min(1/x, 5)", False), ("B-MIN", "3", "min(3, 5)", False),
        ("B-MIN", "1/(1 + K)", "min(1/(1 + K), 1/9)", False),
        ("B-BITS", "bit_length(K)", "log(K)/log(2)", True), ("B-BITS", "bit_length(Z)", "log(Z)/log(2)", False),
        ("B-BITS", "bit_length(K)", "log(K)", False), ("B-BITS", "bit_length(K)", "log(K + 1)/log(2)", False),
        ("B-BITS", "log(K)", "log(K)/log(2)", False), ("B-BITS", "bit_length(Z + 1)", "log(Z + 1)/log(2)", True),
        ("B-POWER", "log(K)", "(bit_length(K) - 1)*log(2)", True),
        ("B-POWER", "log(K)", "bit_length(K)*log(2)", False),
        ("B-POWER", "bit_length(K)", "(bit_length(K) - 1)*log(2)", False),
        ("B-POWER", "log(z)", "(bit_length(z) - 1)*log(2)", False),
        ("B-LOG", "log(K + 1)", "log(K)", True), ("B-LOG", "log(K)", "log(K + 1)", False),
        ("B-LOG", "log(K)", "log(x)", False),
        ("B-LOG", "log(K)", "log(N)", False), ("B-LOG", "log(K + N)", "log(N)", True),
        ("B-LOG", "log(K)", "K", False),
        ("B-OTHER", "K", "K", False),
    ],
)  # fmt: skip
def test_a_bound_follows_or_is_refused(rule: str, text: str, least: str, found: bool) -> None:
    allow()
    assert refused(prover, ((rule, text, least),)) is not found


@pytest.mark.parametrize(
    ("left", "right", "bounds"),
    [
        ("max(3, K) + x", "K + x", [("B-MAX", "max(3, K)", "K")]),
        ("x + K", "min(x, y) + K", [("B-MIN", "x", "min(x, y)")]),
        ("2*p + K", "2*min(p, x) + K", [("B-MIN", "p", "min(p, x)")]),
        ("bit_length(K)*log(2)", "log(K)", [("B-BITS", "bit_length(K)", "log(K)/log(2)")]),
        ("log(K)", "(bit_length(K) - 1)*log(2)", [("B-POWER", "log(K)", "(bit_length(K) - 1)*log(2)")]),
        ("x*log(K + 1)", "x*log(K)", [("B-LOG", "log(K + 1)", "log(K)")]),
        ("max(3, K) + max(5, N)", "K + N", [("B-MAX", "max(3, K)", "K"), ("B-MAX", "max(5, N)", "N")]),
        ("max(5, N)", "N", [("B-MAX", "max(3, K)", "K"), ("B-MAX", "max(5, N)", "N")]),
        ("max(3, K)*max(3, K)", "K*K", [("B-MAX", "max(3, K)", "K")]),
        ("1/K", "1/max(3, K)", [("B-MAX", "max(3, K)", "K")]),
        ("x/K/K", "x/max(3, K)/K", [("B-MAX", "max(3, K)", "K")]),
    ],
)  # fmt: skip
def test_bounds_that_follow_are_used(left: str, right: str, bounds: list[tuple[str, str, str]]) -> None:
    assert proved(left, right) is False
    assert proved(left, right, *bounds) is True
    assert proved(right, f"{left} + 1/1000", *bounds) is False


def test_what_a_bound_leaves_as_it_is() -> None:
    """Divisors and lower bounds of arguments are proved without the bounds; roots and negative powers stay unproved."""
    bound = ("B-MAX", "max(3, K)", "K")
    assert proved("1/(max(3, K) - 2)", "0", bound) is True
    assert proved("exp(max(3, K))", "4", bound) is True
    assert proved("sqrt(max(3, K))", "sqrt(K)", bound) is False
    assert proved("sqrt(max(3, K)) + max(3, K)", "K", bound) is False
    other = ("B-MAX", "max(5, N)", "N")
    assert proved("sqrt(max(3, K)) + max(5, N)", "N + 17/10", other) is True
    assert proved("sqrt(max(3, K)) + max(5, N)", "N + 17/10", bound, other) is False
    assert proved("sqrt(p) + p", "min(p, x)", ("B-MIN", "p", "min(p, x)")) is False


def test_a_certificate_states_up_to_forty_bounds() -> None:
    bound = ("B-MAX", "max(1, K)", "K")
    allow()
    assert not refused(prover, (bound,) * 40)
    assert refused(prover, (bound,) * 41)


# ── Sizes ──


def test_an_argument_has_at_most_two_hundred_products() -> None:
    long, longer = ({((f"x{k}", F(1)),): F(1) for k in range(number)} for number in (200, 201))
    assert not refused(products._text, (long, long))
    for quotient in ((longer, products.UNIT), (products.UNIT, longer)):
        assert refused(products._text, quotient)


def test_an_argument_has_at_most_four_thousand_characters() -> None:
    for digits, found in ((100, True), (399, "rejected")):
        total = ("+", *(("*", F(10**digits), ("^", "K", F(k))) for k in range(1, 13)))
        assert proved(("max", F(1), total), F(1)) == found


def test_work_of_sums_and_products_is_counted() -> None:
    some, more = ({((name, F(k)),): F(1) for k in range(1, number + 1)} for name, number in (("K", 3), ("N", 5)))
    assert work(products._add, some, more) == 5
    assert work(products._times, some, more) == 2 * 3 * 5 + 3 * 5  # and one for each product that is kept
    one = prover()
    assert work(one.normal, "K") == 1
