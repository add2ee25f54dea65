"""DP-VAPVI's verdicts (Qiao & Wang 2022, Algorithm 2), against figures derived by hand.

In units of ρ₀ = ρ/5H, with m = H − h the largest V of step h + 1 and c the cosine of the two users' features:

    squared values   Δ = m²‖x − z‖, variance 2H⁴/ρ₀:         ½(m/H)⁴(1 − c)    paper: 2H²
    values           Δ = m‖x − z‖, variance 2H²/ρ₀:           ½(m/H)²(1 − c)    paper: 2H
    gains            Δ = (m + 1)‖x − z‖, variance 2H²/ρ₀:     ½((m + 1)/H)²(1 − c)
    either Gram      ‖D‖_F²/4v, v = 1/4ρ₀:                    2(1 − c²)         paper: 1, the add/remove figure

A user is in D′ (squared values, values, Gram) or in D (weighted Gram, gains). With the sums' coefficient t = Σ ½(…) and
k Gram matrices the step is t(1 − c) + 2k(1 − c²), largest at c = −t/4k: 2k + t + t²/8k.
"""

from fractions import Fraction

import numpy as np
import pytest

from privcheck.pricing import account
from privcheck.verification import verify
from privcheck_algorithms.dp_vapvi.declaration import declare_split, declare_unsplit, make_printed_features

SIZES = [1, 3, 20]


def step(horizon: int, m: int) -> tuple[Fraction, Fraction]:
    """Returns t of the variance half and of the value half at the step with V ≤ m."""
    ratio = Fraction(m, horizon)
    return (ratio**4 + ratio**2) / 2, Fraction(m + 1, horizon) ** 2 / 2


def joint(t: Fraction, matrices: int) -> Fraction:
    return 2 * matrices + t + t**2 / (8 * matrices)


def by_hand(horizon: int, *, apart: bool) -> tuple[Fraction, Fraction]:
    """Returns cost/claim of dp-vapvi and of dp-vapvi-unsplit, jointly or with every release's own worst case."""
    steps = [step(horizon, m) for m in range(horizon)]
    if apart:  # c = −1 in the sums, 0 in the matrices
        first, second = sum(2 + 2 * t for t, _ in steps), sum(2 + 2 * u for _, u in steps)
        both = first + second
    else:
        first, second = sum(joint(t, 1) for t, _ in steps), sum(joint(u, 1) for _, u in steps)
        both = sum(joint(t + u, 2) for t, u in steps)
    return max(first, second) / (5 * horizon), both / (5 * horizon)


@pytest.mark.parametrize("horizon", SIZES)
@pytest.mark.parametrize("declare", [declare_split, declare_unsplit])
def test_both_claims_hold_for_all_parameters_with_these_ratios(declare, horizon):
    which = 0 if declare is declare_split else 1
    declaration = declare({})
    found = verify(declaration, declaration.values({"H": horizon, "d": 3, "rho": "1/7"}))
    expected = float(by_hand(horizon, apart=False)[which])
    assert (found.verdict, found.method, found.joint) == ("holds", "proved", None)
    assert found.upper_ratio == pytest.approx(expected, rel=1e-9)
    assert found.lower_ratio == pytest.approx(expected, rel=1e-6)
    assert found.lower_ratio <= expected * (1 + 1e-15)
    composed = (found.account.rho * 7).rational({"H": Fraction(horizon), "rho": Fraction(1, 7)})
    assert composed == by_hand(horizon, apart=True)[which]


def test_without_a_split_the_separate_worst_cases_of_one_step_are_the_claim_exactly():
    assert by_hand(1, apart=True)[1] == 1
    assert by_hand(1, apart=False)[1] == Fraction(289, 320)


def test_crude_value_bounds_would_wrongly_refute_the_unsplit_claim():
    """With V ≤ H at every step, each sum costs ρ₀ a step and each matrix 2ρ₀: 7/5 of the claim instead of at most 1."""
    assert Fraction(3 * 1 + 2 * 2, 5) > 1 >= by_hand(100, apart=True)[1]


@pytest.mark.parametrize("declare", [declare_split, declare_unsplit])
def test_the_papers_own_numbers(declare):
    """At H = 4, ρ = 2: ρ₀ = 1/10."""
    declaration = declare({})
    values = declaration.values({"H": 4, "rho": 2})
    stated = {r.name: r.stated.value.number(values) / 2 for r in declaration.releases}  # √H = 2 times a step's
    assert stated == {"squared values": 32, "values": 8, "gram": 1, "weighted gram": 1, "gains": 8}
    variances = {r.name: r.mechanism.spread.rational(values) for r in declaration.releases}
    assert variances == {
        "squared values": 2 * 4**4 * 10,
        "values": 2 * 4**2 * 10,
        "gains": 2 * 4**2 * 10,
        "gram": Fraction(10, 4),
        "weighted gram": Fraction(10, 4),
    }
    assert {r.budget.rho.rational(values) for r in declaration.releases} == {Fraction(2, 5)}


def test_the_wrong_step_is_found_and_another_pays_for_it():
    declaration = declare_unsplit({})
    found = verify(declaration, declaration.values({"H": 20}))
    about = {(f.code, f.where): f for f in found.findings}
    for name in ("gram", "weighted gram"):
        codes = {code for code, where in about if where == name}
        assert codes & {"wrong-relation", "stated-sensitivity-refuted"}
        finding = next(f for (code, where), f in about.items() if where == name and "budget" not in code)
        assert finding.severity == "theoretical"
        assert finding.evidence["derived/stated"] == "1.41421"
    for name in ("squared values", "values", "gains"):
        assert ("stated-sensitivity-slack", name) in about
    squared = about["stated-sensitivity-slack", "squared values"]
    exactly = np.sqrt(sum(m**4 for m in range(20)) / (20 * 20**4))
    assert float(squared.evidence["derived/stated"]) == pytest.approx(exactly, rel=1e-5)


def test_the_halves_cost_what_is_derived_for_each():
    declaration = declare_split({})
    costs = {c.release.name: c.rho.rational({"H": Fraction(5), "rho": Fraction(1)}) for c in account(declaration).costs}
    steps = range(5)
    assert costs["squared values"] == sum(Fraction(m, 5) ** 4 for m in steps) / 25
    assert costs["values"] == sum(Fraction(m, 5) ** 2 for m in steps) / 25
    assert costs["gains"] == sum(Fraction(m + 1, 5) ** 2 for m in steps) / 25
    assert costs["gram"] == costs["weighted gram"] == Fraction(2 * 5, 25)


@pytest.mark.parametrize("horizon", [1, 20])
def test_the_printed_features_break_the_claim_with_two_of_them_as_witness(horizon):
    """‖φ‖ ≤ √7: matrices × 49, sums × 7. The witness are two of Appendix G's 200 features, found by loops."""
    declaration = declare_split({"features": "printed"})
    found = verify(declaration, declaration.values({"H": horizon}))
    halves = [[7 * t for t in part] for part in zip(*(step(horizon, m) for m in range(horizon)), strict=True)]
    upper = max(sum(2 * 49 + t + t**2 / (8 * 49) for t in part) for part in halves) / (5 * horizon)
    assert found.verdict == "fails"
    assert found.upper_ratio == pytest.approx(float(upper), rel=1e-9)
    best = 0
    features = {tuple(x) for x in make_printed_features().reshape(-1, 10)}
    for x in features:
        for z in features:
            inner = sum(a * b for a, b in zip(x, z, strict=True))
            best = max(best, sum(x) ** 2 + sum(z) ** 2 - 2 * inner**2)  # entries are 0 or 1: ‖x‖² = Σx
    assert best == 57
    sums = max(
        sum(t for t, _ in (step(horizon, m) for m in range(horizon))) / 2,
        sum(u for _, u in (step(horizon, m) for m in range(horizon))) / 2,
    )  # t(1 − c) is t‖x − z‖²/2, and ‖x − z‖² = 7
    assert found.lower_ratio == pytest.approx(float((57 * horizon + 7 * sums) / (5 * horizon)), rel=1e-9)
    assert {"assumption-violated", "claim-refuted"} <= {f.code for f in found.findings}


def test_the_largest_setting_is_judged_without_enumerating_anything():
    declaration = declare_unsplit({})
    found = verify(declaration, declaration.values({"H": 100, "d": 1_000, "rho": "1e-6"}))
    assert found.upper_ratio == pytest.approx(float(by_hand(100, apart=False)[1]), rel=1e-9)
