"""Decisions for all parameters: proved, checked on a box, or refuted at a point that one can look at."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.terms.symbols import H, K, ceil_log2, exact, exp, log, maximum, rho, sqrt, sum_over, tree_levels
from privcheck.terms.symbols.proofs import shift, trend
from privcheck.verification.comparisons import decide, monotone

PARAMETERS = (
    Parameter(name="H", default=20, kind="count", meaning="steps"),
    Parameter(name="K", default=100, kind="count", meaning="episodes"),
    Parameter(name="rho", default=1, kind="positive", meaning="budget"),
)


def levels(leaves: int) -> int:
    """The naive twin: complete nodes of a binary tree over leaves 1..T that hold leaf 1."""
    count, size = 0, 1
    while size <= leaves:
        count, size = count + 1, 2 * size
    return count


@given(st.integers(0, 10**12))
def test_tree_levels_counts_complete_nodes(leaves):
    assert tree_levels(leaves).rational() == levels(leaves)
    assert tree_levels(K).at({"K": Fraction(leaves)}).rational() == levels(leaves)


@given(st.integers(1, 10**12))
def test_ceil_log2_is_exact_at_powers_of_two(value):
    found = int(ceil_log2(value).rational())
    assert 2**found >= value
    assert found == 0 or 2 ** (found - 1) < value


def test_tree_levels_prints_as_a_formula():
    assert tree_levels(K).latex() == r"\left(\left\lfloor \log_2 K \right\rfloor + 1\right)"
    assert r"\right)^{2}" in (tree_levels(K) ** 2).latex()
    with pytest.raises(ParameterError, match="leaves"):
        tree_levels(-1)


@given(st.integers(1, 60))
def test_sums_over_steps_have_a_closed_form(steps):
    closed = sum_over(H, lambda h: (H - h + 1) ** 2)
    assert closed.symbols == {"H"}
    assert closed.rational({"H": Fraction(steps)}) == sum((steps - h + 1) ** 2 for h in range(1, steps + 1))


def test_what_sympy_decides_is_proved():
    for left, right in ((rho, 2 * rho), (sqrt(2 * H), sqrt(3 * H)), (rho / 2 + rho / 2, rho)):
        found = decide(left, right, PARAMETERS)
        assert (found.holds, found.method, found.counterexample) == (True, "proved", None)


def test_what_sympy_leaves_open_is_checked_on_a_box_and_said_so():
    # ⌊log₂(K − 1)⌋ + 1 ≤ ⌈log₂ K⌉ holds with equality; as ln K it fails from K = 2 on
    found = decide(tree_levels(K), ceil_log2(K) + 1, PARAMETERS)
    assert (found.holds, found.method) == (True, "checked")
    assert found.points >= 5


def test_a_failure_comes_with_the_point_where_it_fails():
    found = decide(tree_levels(K), log(K), PARAMETERS)
    assert not found.holds
    assert found.counterexample is not None
    assert tree_levels(K).number(found.counterexample) > log(K).number(found.counterexample)
    assert not decide(2 * rho, rho, PARAMETERS).holds
    assert not decide(rho * exact("1.05"), rho, PARAMETERS).holds


def test_maxima_over_partitions():
    assert decide(maximum(rho / 2, rho / 3), rho / 2, PARAMETERS).holds
    assert not decide(maximum(rho / 2, rho / 3), rho / 3, PARAMETERS).holds


def test_a_symbol_without_a_parameter_is_refused():
    with pytest.raises(ParameterError, match="K"):
        decide(tree_levels(K), log(K), PARAMETERS[:1])


RISING = [
    (H**2 - H, "H"),
    (sum_over(H, lambda h: (H - h + 1) ** 2), "H"),
    (tree_levels(K), "K"),
    (3 * H * tree_levels(K) / rho, "K"),
    (3 * H * tree_levels(K) / rho, "H"),
    (rho + exp(-1 * rho) - 1, "rho"),  # the zCDP cost of Laplace noise, of which the derivative alone is not decided
    (maximum(H, K), "K"),
    (sqrt(2 * H * rho), "rho"),
]


@pytest.mark.parametrize(("of", "name"), RISING, ids=str)
def test_what_rises_is_proved_and_its_negative_falls(of, name):
    found = monotone(of, name, PARAMETERS)
    assert (found.trend, found.method, found.points) == ("nondecreasing", "proved", 0)
    assert found.holds("nondecreasing")
    assert not found.holds("nonincreasing")
    assert monotone(0 - of, name, PARAMETERS).holds("nonincreasing")
    box = [Fraction(v) for v in (1, 2, 3, 4, 7, 8, 9, 50)]  # and the proof agrees with the numbers
    others = {p.name: Fraction(2) for p in PARAMETERS}
    values = [of.number({**others, name: v}) for v in box]
    assert values == sorted(values)


def test_what_falls_and_what_does_not_move():
    assert monotone(sqrt(H / rho), "rho", PARAMETERS).trend == "nonincreasing"
    assert monotone(1 / (1 + exp(rho)), "rho", PARAMETERS).trend == "nonincreasing"
    assert monotone(H**2, "rho", PARAMETERS).trend == "constant"
    assert monotone(H**2, "rho", PARAMETERS).holds("nonincreasing")


def test_what_is_not_decided_is_checked_and_said_so():
    falling = monotone(tree_levels(K) - K, "K", PARAMETERS)
    assert (falling.trend, falling.method) == ("nonincreasing", "checked")
    assert falling.points >= 9
    assert falling.rise is None
    rising = monotone(rho + 2 * sqrt(rho * log(K + 1)), "rho", PARAMETERS)
    assert rising.holds("nondecreasing")


@pytest.mark.parametrize(
    ("of", "name"),
    [(H**2 - 10 * H, "H"), (rho * exp(-1 * rho), "rho"), (tree_levels(K) / K, "K"), (K - 3 * tree_levels(K), "K")],
    ids=str,
)
def test_a_rise_and_a_fall_are_shown(of, name):
    found = monotone(of, name, PARAMETERS)
    assert (found.trend, found.method) == ("neither", "checked")
    assert not found.holds("nondecreasing")
    assert not found.holds("nonincreasing")
    for (before, after), sign in ((found.rise, 1), (found.fall, -1)):
        assert before[name] < after[name]
        assert {k: v for k, v in before.items() if k != name} == {k: v for k, v in after.items() if k != name}
        assert sign * (of.number(after) - of.number(before)) > 0


@given(st.integers(-5, 5), st.integers(-40, 40), st.integers(0, 9))
def test_a_proof_for_a_polynomial_is_true(a, b, c):
    of = a * H**2 + b * H + c
    found = trend(of, "H")
    values = [a * n * n + b * n + c for n in range(1, 60)]
    if found == "nondecreasing":
        assert values == sorted(values)
    if found == "nonincreasing":
        assert values == sorted(values, reverse=True)
    if found == "constant":
        assert len(set(values)) == 1
    if min(a, b) >= 0 or max(a, b) <= 0:  # the rules suffice
        assert found == ("constant" if a == b == 0 else "nondecreasing" if min(a, b) >= 0 else "nonincreasing")


def test_only_counts_are_shifted_and_only_parameters_are_asked_about():
    assert shift(H**2, "H").rational({"H": Fraction(3)}) == 16
    with pytest.raises(ParameterError, match="count"):
        shift(rho**2, "rho")
    with pytest.raises(ParameterError, match="no parameter"):
        monotone(H, "beta", PARAMETERS)
