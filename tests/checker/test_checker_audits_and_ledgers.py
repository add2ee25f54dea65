"""Audits and ledgers at their edges: limits of counts, the safe end of every enclosure, every change of a charge."""

from fractions import Fraction
from math import comb
from typing import Any

import mpmath
import pytest

import certificate_samples as samples
from certificate_verdicts import verdict
from privcheck_check import counts
from privcheck_check.terms import allow

FINE = 10**65  # finer than the width of an enclosure


def below(number: Any) -> str:
    return str(Fraction(int(mpmath.floor(number * FINE)), FINE))


def above(number: Any) -> str:
    return str(Fraction(int(mpmath.ceil(number * 10**40)), 10**40))


def audit(method: str, evidence: Any, guarantee: dict[str, Any], alpha: Any = 1, **declared: Any) -> str:
    whole = {"name": "x", "source": "", "method": method, "guarantee": guarantee, "alpha": alpha} | declared
    return verdict({
        "format": "privcheck-certificate/1", "kind": "audit", "declared": whole, "evidence": evidence,
        "assumed": samples.assumed("runs-took-place"),
        "conclusion": {"verdict": "refuted at level alpha", "scope": "these counts", "about": "guarantee"},
    })  # fmt: skip


PURE = {"currency": "pure", "epsilon": 1}
APPROX = {"currency": "approx", "epsilon": 1, "delta": "1/10"}
GDP = {"currency": "gdp", "mu": 1}


def guesses(runs: Any, made: Any, correct: Any, guarantee: dict[str, Any] = PURE, alpha: Any = 1) -> str:
    return audit("guesses", {"runs": runs, "guesses": made, "correct": correct}, guarantee, alpha)


@pytest.mark.parametrize(
    ("counts", "rule"),
    [((1, 1, 0), "accepted"), ((0, 0, 0), "evidence"), ((1, 0, 0), "evidence"), ((1, 2, 1), "evidence"),
     ((2, 1, 2), "evidence"), ((2, 1, -1), "evidence"), ((10**6, 1, 1), "accepted"), ((10**6 + 1, 1, 1), "evidence")],
)  # fmt: skip
def test_guesses_are_counted(counts: tuple[int, int, int], rule: str) -> None:
    assert guesses(*counts) == rule


def test_runs_without_a_guess_need_a_pure_guarantee() -> None:
    for guarantee, rule in ((PURE, "accepted"), (APPROX | {"delta": 0}, "accepted"), (APPROX, "A-GUESSES"),
                            (GDP, "A-GUESSES")):  # fmt: skip
        assert guesses(3, 2, 1, guarantee) == rule
        assert guesses(3, 3, 1, guarantee) == "accepted"


def test_a_guess_is_right_as_often_as_the_guarantee_allows() -> None:
    """One guess, right: as likely as e/(1 + e), (e + δ)/(1 + e), Φ(1/2), and no less likely by 10⁻⁶⁵."""
    with mpmath.workdps(90):
        e = mpmath.e
        for guarantee, true in (
            (PURE, e / (1 + e)), (APPROX, (e + mpmath.mpf(1) / 10) / (1 + e)), (GDP, mpmath.ncdf(mpmath.mpf(1) / 2)),
        ):  # fmt: skip
            assert guesses(1, 1, 1, guarantee, below(true)) == "A-TAIL"
            assert guesses(1, 1, 1, guarantee, above(true)) == "accepted"


@pytest.mark.parametrize(
    ("guarantee", "rule"),
    [(PURE, "accepted"), (PURE | {"more": 1}, "declared"), (PURE | {"epsilon": -1}, "declared"), ({}, "declared"),
     (PURE | {"epsilon": 1000}, "accepted"), (PURE | {"epsilon": 1001}, "declared"), ("pure", "declared"),
     ({"currency": "zcdp", "rho": 1}, "declared"), (APPROX | {"delta": "-1/10"}, "declared"),
     ({"currency": "approx", "epsilon": 1}, "declared"), (APPROX | {"delta": 0}, "accepted"),
     (PURE | {"epsilon": 0}, "accepted")],
)  # fmt: skip
def test_guarantees_are_in_range(guarantee: Any, rule: str) -> None:
    assert guesses(1, 1, 1, guarantee) == rule


@pytest.mark.parametrize(
    ("changed", "rule"),
    [({}, "accepted"), ({"name": 1}, "declared"), ({"source": 1}, "declared"),
     ({"alpha": 0}, "declared"), ({"alpha": "-1/2"}, "declared"), ({"alpha": 2}, "declared")],
)  # fmt: skip
def test_an_audit_is_declared(changed: dict[str, Any], rule: str) -> None:
    assert audit("coins", {}, PURE) == "declared"
    assert audit("guesses", {"runs": 1, "guesses": 1, "correct": 1}, PURE, **changed) == rule


def events(
    first: tuple[int, int],
    second: tuple[int, int],
    low: Any,
    high: Any,
    guarantee: dict[str, Any] = APPROX,
    alpha: Any = 1,
) -> str:
    sides = [{"runs": runs, "count": count} for runs, count in (first, second)]
    evidence = {"first": sides[0], "second": sides[1], "first_at_least": low, "second_at_most": high}
    return audit("events", evidence, guarantee, alpha)


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [((9, 9), (9, 0), "accepted"), ((0, 0), (9, 0), "evidence"), ((1, 1), (0, 0), "evidence"),
     ((1, 2), (9, 0), "evidence"), ((1, 1), (9, 10), "evidence"), ((1, -1), (9, 0), "evidence"),
     ((1, 1), (9, -1), "evidence"), ((10**6, 10**6), (10**6, 0), "accepted"), ((1, 2), (9, 10), "evidence"),
     ((10**6 + 1, 1), (9, 0), "evidence")],
)  # fmt: skip
def test_events_are_counted(first: tuple[int, int], second: tuple[int, int], rule: str) -> None:
    assert events(first, second, "9/10", "1/10") == rule


def test_events_of_the_second_side_are_counted_from_above() -> None:
    """P[Bin(2, ½) ≥ 2] + P[Bin(5, ¼) ≤ 1] = ¼ + 648/1024."""
    guarantee, exact = {"currency": "approx", "epsilon": 0, "delta": "1/5"}, Fraction(1, 4) + Fraction(648, 1024)
    for alpha, rule in ((exact + Fraction(1, 10**12), "accepted"), (exact - Fraction(1, 10**12), "A-TAIL")):
        assert events((2, 2), (5, 1), "1/2", "1/4", guarantee, str(alpha)) == rule


def test_one_run_is_enough_for_an_event() -> None:
    assert events((1, 1), (50, 0), "1/2", "1/10") == "accepted"
    assert events((50, 50), (1, 0), "9/10", "1/10", APPROX, "91/100") == "accepted"


def test_events_of_both_sides_are_as_likely_as_their_tails() -> None:
    """P[Bin(2, 1/2) ≥ 2] + P[Bin(3, 1/4) ≤ 0] = 1/4 + 27/64; under (0, 1/5)-DP the limits contradict each other."""
    guarantee = {"currency": "approx", "epsilon": 0, "delta": "1/5"}
    exact = Fraction(1, 4) + Fraction(27, 64)
    for alpha, rule in ((exact + Fraction(1, 10**12), "accepted"), (exact - Fraction(1, 10**12), "A-TAIL")):
        assert events((2, 2), (3, 0), "1/2", "1/4", guarantee, str(alpha)) == rule


def test_limits_contradict_the_guarantee_by_the_upper_end() -> None:
    with mpmath.workdps(90):
        edge = mpmath.e / 10 + mpmath.mpf(1) / 10
        assert events((10, 10), (10, 0), below(edge), "1/10") == "A-EVENTS"
        assert events((10, 10), (10, 0), above(edge), "1/10") == "accepted"
    assert events((10, 10), (10, 0), "1/10", 0) == "A-EVENTS"
    assert events((10, 10), (10, 0), "11/100", 0) == "A-TAIL"  # no event in ten runs is sure where q is 0
    assert events((10, 10), (10, 0), 1, 0) == "A-TAIL"
    for low, high in (("11/10", 0), ("1/2", "-1/10"), ("-1/10", 0)):
        assert events((10, 10), (10, 0), low, high) == "evidence"
    assert events((10, 10), (10, 0), "9/10", 0, GDP) == "A-EVENTS"


# ── Ledgers ──


def ledger(rows: list[dict[str, Any]], **changed: Any) -> str:
    return verdict(samples.ledger(rows, **changed))


ROW = samples.row


@pytest.mark.parametrize(
    ("rows", "rule"),
    [([], "accepted"), ([ROW("a", "3/5")], "accepted"), ([ROW("a", "4/5")], "G-SUMS"),
     ([ROW("a", "3/5", "reserved"), ROW("b", "1/10")], "G-SUMS"),
     ([ROW("a", "3/5", "reserved"), ROW("a", "3/5")], "accepted"),
     ([ROW("a", "3/5", "reserved"), ROW("a", "3/5", "released"), ROW("b", "3/5")], "accepted"),
     ([ROW("a", "1/5", "reserved"), ROW("a", "1/5", "reserved")], "G-SUMS"),
     ([ROW("a", "1/5", "reserved"), ROW("a", "1/10")], "G-SUMS"),
     ([ROW("a", "1/5", "reserved"), ROW("a", "1/5"), ROW("a", "1/5", "released")], "G-SUMS"),
     ([ROW("a", "1/5"), ROW("a", "1/5")], "G-SUMS"), ([ROW("a", "1/5", "released")], "G-SUMS"),
     ([ROW("a", "-1/5")], "G-SUMS"), ([ROW("a", "1/5", grant="other")], "G-SUMS"),
     ([ROW("a", "1/5", "reserved"), ROW("a", "1/5", "released"), ROW("a", "1/5", "released")], "G-SUMS"),
     ([ROW("a", "1/5", "spent")], "G-SUMS"), ([ROW("a", "1/5") | {"row": 7}], "G-SUMS"),
     ([ROW("a", "1/5") | {"charge": 7}], "G-SUMS"), ([ROW("a", 0)], "accepted")],
)  # fmt: skip
def test_charges_change_as_they_may(rows: list[dict[str, Any]], rule: str) -> None:
    assert ledger(rows) == rule


def test_a_charge_stays_with_its_grant() -> None:
    grants = {"team": "3/10", "other": "3/10"}
    moved = [ROW("a", "1/5", "reserved"), ROW("a", "1/5", "released", "other")]
    assert ledger(moved, grants=grants) == "G-SUMS"
    assert ledger([ROW("a", "3/10"), ROW("b", "3/10", grant="other")], grants=grants) == "accepted"
    assert ledger([ROW("a", "3/10"), ROW("b", "1/10")], grants=grants) == "G-SUMS"


@pytest.mark.parametrize(
    ("changed", "rule"),
    [({"name": 1}, "declared"), ({"source": 1}, "declared"), ({"unit": 1}, "declared"), ({"grants": []}, "declared"),
     ({"currency": "mu"}, "declared"), ({"grants": {"team": "-1/10"}}, "declared"),
     ({"grants": {"team": 0}}, "accepted"),
     ({"head": ""}, "accepted"), ({"head": "sha256:0"}, "G-CHAIN")],
)  # fmt: skip
def test_a_ledger_is_declared(changed: dict[str, Any], rule: str) -> None:
    assert ledger([], **changed) == rule


@pytest.mark.parametrize(
    ("currency", "policy", "rule"),
    [("epsilon", {"epsilon": 1, "delta": 0}, "accepted"), ("epsilon", {"epsilon": "99/100", "delta": 0}, "G-CAPS"),
     ("epsilon", {"epsilon": 1, "delta": "-1/10"}, "G-CAPS"), ("epsilon", {"epsilon": 1, "delta": 2}, "G-CAPS"),
     ("epsilon", {"epsilon": 1, "delta": 1}, "accepted"), ("epsilon", {"epsilon": -1, "delta": 0}, "G-CAPS"),
     ("rho", {"epsilon": 9, "delta": "1/10"}, "G-CAPS"), ("rho", {"epsilon": 9, "delta": "1/10", "order": 1}, "G-CAPS"),
     ("rho", {"epsilon": 9, "delta": "1/10", "order": 2}, "accepted"),
     ("rho", {"epsilon": 9, "delta": 0, "order": 2}, "G-CAPS"), ("mu2", {"epsilon": 9, "delta": "1/10"}, "accepted"),
     ("mu2", {"epsilon": 9, "delta": 0}, "G-CAPS")],
)  # fmt: skip
def test_caps_keep_the_policy(currency: str, policy: dict[str, Any], rule: str) -> None:
    assert ledger([], currency=currency, policy=policy, grants={"a": "1/2", "b": "1/2"}) == rule


def test_no_grant_keeps_any_policy() -> None:
    for currency in ("epsilon", "mu2"):
        assert ledger([], currency=currency, policy={"epsilon": 0, "delta": 0}, grants={"team": 0}) == "accepted"


def test_caps_keep_the_policy_by_the_upper_end() -> None:
    with mpmath.workdps(90):
        one = mpmath.mpf(1)
        delta = mpmath.ncdf(one / 2 - 1) - mpmath.e * mpmath.ncdf(-one / 2 - 1)
        epsilon = 2 + mpmath.log(one / 2) - mpmath.log(one / 10 * 2)
        for form, rule in ((below, "G-CAPS"), (above, "accepted")):
            assert ledger([], currency="mu2", policy={"epsilon": 1, "delta": form(delta)}, grants={"a": 1}) == rule
            policy = {"epsilon": form(epsilon), "delta": "1/10", "order": 2}
            assert ledger([], currency="rho", policy=policy, grants={"a": 1}) == rule


@pytest.mark.parametrize("digits", [3, 4, 8, 192])
def test_a_tail_is_above_the_exact_one_whatever_it_is_rounded_to(digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rounding of the sum is upward: with few digits a single one downward is seen."""
    monkeypatch.setattr(counts, "DIGITS", digits)
    allow()
    for runs in (1, 2, 7, 20, 47):
        for p in (Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1, 64)):
            masses = [comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(runs + 1)]
            for least in range(runs + 2):
                exact = sum(masses[least:], Fraction(0))
                found = counts.tail(runs, least, p)
                assert exact <= found <= 1
                if digits == 192:
                    assert found <= exact * (1 + Fraction(1, 10**25))


@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(1, 4)])
def test_a_long_tail_is_not_cut_short(probability: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios near 1, of which a rest of the sum is many terms long, where 24 bits show what is left out."""
    monkeypatch.setattr(counts, "DIGITS", 24)
    allow()
    runs, (top, bottom) = 2000, probability.as_integer_ratio()
    masses = [comb(runs, k) * top**k * (bottom - top) ** (runs - k) for k in range(runs + 1)]
    for least in range(int(runs * probability) - 20, int(runs * probability) + 120, 20):
        exact = Fraction(sum(masses[least:]), bottom**runs)
        assert exact <= counts.tail(runs, least, probability) <= min(1, exact * (1 + Fraction(1, 1000)))


@pytest.mark.parametrize("digits", [3, 5, 192])
def test_a_number_of_choices_is_rounded_up(digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "DIGITS", digits)
    for runs in (1, 9, 40, 1000):
        for few in range(0, runs // 2 + 1, 1 + runs // 50):
            top, shift = counts._binomial(runs, few)
            assert comb(runs, few) <= top << shift
            assert top.bit_length() <= 2 * digits
            if digits == 192:
                assert top << shift <= comb(runs, few) * (1 + Fraction(few + 1, 2**191))


@pytest.mark.parametrize("currency", ["epsilon", "mu2", "rho"])
def test_a_policy_is_not_negative(currency: str) -> None:
    policy = {"epsilon": "-1/2", "delta": 1, "order": 2}
    assert verdict(samples.ledger([], currency=currency, grants={}, policy=policy)) == "G-CAPS"
    assert verdict(samples.ledger([], currency=currency, grants={}, policy=policy | {"epsilon": 0})) == "accepted"
