"""How numbers and expressions are written: directions of rounding, edges, Greek."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.reports.wording import figure, percent, ratio, show_value, spell_out, strip_controls, value_of, words


@pytest.mark.parametrize(
    ("value", "rounding", "text"),
    [
        (None, "nearest", "–"),
        ("inf", "up", "∞"),
        (math.inf, "up", "∞"),
        (-math.inf, "down", "−∞"),
        (0, "up", "0"),
        (0.0, "up", "0"),
        (True, "nearest", "yes"),
        (1e-5, "nearest", "10⁻⁵"),
        (1.23456e-7, "up", "1.235 × 10⁻⁷"),
        (1.23456e-7, "down", "1.234 × 10⁻⁷"),
        (1e-320, "nearest", "10⁻³²⁰"),
        (2.5e300, "nearest", "2.5 × 10³⁰⁰"),
        (4.00012, "up", "4.001"),
        (4.99999, "down", "4.999"),
        (4.99999, "nearest", "5"),
        (-0.25, "nearest", "−0.25"),
        (0.1, "up", "0.1"),
        (0.3, "down", "0.3"),
        (1.9999999999999998, "down", "2"),
        (12345.678, "down", "12\u202f345"),
        (1000, "nearest", "1000"),
        (1000000, "nearest", "1\u202f000\u202f000"),
        (10**400, "nearest", "∞"),
        ("rho/2", "nearest", "ρ/2"),
    ],
)
def test_figure(value, rounding, text):
    assert figure(value, rounding=rounding) == text


def _back(text: str) -> Decimal:
    plain = text.replace("\u202f", "").replace("−", "-")
    raised = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
    mantissa, _, power = plain.rpartition("10") if any(c in "⁰¹²³⁴⁵⁶⁷⁸⁹" for c in plain) else (plain, "", "")
    if not power:
        return Decimal(mantissa)
    return Decimal(mantissa.removesuffix(" × ") or "1") * Decimal(10) ** int(power.translate(raised))


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(2, 8))
def test_bounds_round_the_way_they_err(value, digits):
    dust = Decimal(value) * Decimal("1e-12")
    up, down = _back(figure(value, digits=digits, rounding="up")), _back(figure(value, digits=digits, rounding="down"))
    assert down - dust <= Decimal(value) <= up + dust
    assert up - down <= Decimal(value) * Decimal(10) ** (1 - digits) * Decimal("1.01")


def test_a_ratio_is_written_1_only_when_it_is_1():
    assert ratio(1.0, rounding="up") == "1"
    assert ratio(1.00000012, rounding="down") == "1.0000001"
    assert ratio(0.99999, rounding="up") == "0.99999"
    assert ratio(math.nextafter(1, 2), rounding="up") == "just above 1"
    assert ratio(math.nextafter(1, 0), rounding="down") == "just below 1"
    assert ratio(math.inf, rounding="up") == "∞"


def test_percent_rounds_as_asked():
    assert percent(0.3127, rounding="down") == "31.2 %"
    assert percent(0.99, rounding="down") == "99 %"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("(rho)-zCDP (Theorem 3.4)", "ρ-zCDP (Theorem 3.4)"),
        ("(epsilon, delta)-DP", "(ε, δ)-DP"),
        ("sqrt(2)*sqrt(H)", "√(2H)"),
        ("sqrt(2*H)", "√(2H)"),
        ("sqrt(6)*sqrt(H)*sqrt(H - 1)/3", "√(6H·(H − 1))/3"),
        ("2*H**2/rho", "2H²/ρ"),
        ("2*10", "2·10"),
        ("3*Max(1, K)", "3·max(1, K)"),
        ("3*H*Max(1, bit_length(K - 1))", "3H·max(1, ⌈log₂ K⌉)"),
        ("bit_length(K)", "(⌊log₂ K⌋ + 1)"),
        ("costs inf times the (ε/3, β)-DP", "costs ∞ times the (ε/3, β)-DP"),
        ("2.33988e+06 times; δ = 1e-05", "2.33988 × 10⁶ times; δ = 10⁻⁵"),
        ("H**(-1)", "H⁻¹"),
        ("H**S", "H^S"),
        ("rhombus of deltas", "rhombus of deltas"),
        ("oo", "∞"),
    ],
)
def test_spelled(source, text):
    assert spell_out(source) == text


def test_control_characters_are_taken_out():
    assert strip_controls("a\x1b[31mb\x00\u202ec\nd\te") == "a[31mbc d e"
    assert strip_controls("ρ ≤ 1 × 10⁻⁵ – “ok”") == "ρ ≤ 1 × 10⁻⁵ – “ok”"


def test_readers_are_tolerant():
    assert words({"a": None}, "a") == words({}, "a") == ""
    assert words({"a": 0.5}, "a") == "0.5"
    assert value_of("7") is None
    assert value_of(True) is None
    assert value_of("inf") == math.inf
    assert show_value({"l1": 40, "rho": 0.5}) == "ℓ₁ = 40, ρ = 0.5"
    assert show_value([1, None, "inf"]) == "1, –, ∞"
