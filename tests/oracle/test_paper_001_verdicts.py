"""The verdicts of Sahu's systems, against figures derived by hand.

σ̄ ≥ H makes a weighted feature at most 1/H² long, so that, V in [0, H] (0 after the last step) and ρ₀ = ρ/4HK, a step's
output costs, in units of ρ₀/H⁴, with c the cosine of the two users' features:

    sums of V̂, V̌, V̂²    ½·(2/H)²/(2H²/ρ₀) twice, ½·2²/(2H⁴/ρ₀):    ½(1 − c) each, 0 at the last step
    Gram matrix           ‖D‖_F²/4v, v = 1/4ρ₀:                       2(1 − c²)

1.5(1 − c) + 2(1 − c²) is largest at c = −3/8: 121/32. A user is in K − 1 outputs.
"""

import dataclasses
import math
from fractions import Fraction

import pytest

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.declare.releases import Draw
from privcheck.verification import verify
from privcheck_algorithms.dp_lsvi_ucb import declare_as_printed, declare_fresh
from privcheck_algorithms.private_lsvi_ucb import luyo, ngo
from privcheck_algorithms.published_lsvi_ucb import declare_published

SIZES = [(1, 1), (1, 2), (2, 3), (20, 1_000), (100, 10**9)]


def by_hand(horizon: int, episodes: int, *, norm: int = 1, apart: bool = False) -> Fraction:
    """Returns ρ of the releases over ρ of the claim."""
    matrix, t = 2 * Fraction(norm) ** 4, Fraction(3, 2) * norm**2
    inner = matrix + 2 * t if apart else matrix + t + t**2 / (4 * matrix)
    return Fraction(episodes - 1, 4 * horizon * episodes * horizon**4) * ((horizon - 1) * inner + matrix)


def codes(found) -> set[str]:
    return {f.code for f in found.findings}


@pytest.mark.parametrize(("horizon", "episodes"), SIZES)
def test_with_fresh_noise_the_claim_holds_far_from_tight(horizon, episodes):
    declaration = declare_fresh({})
    values = declaration.values({"H": horizon, "K": episodes, "d": 2, "rho": "3"})
    found = verify(declaration, values)
    expected = float(by_hand(horizon, episodes))
    assert (found.verdict, found.method, found.joint) == ("holds", "proved", "follows")
    assert found.upper_ratio == pytest.approx(expected, rel=1e-9)
    assert found.lower_ratio == pytest.approx(expected, rel=1e-6)
    assert found.account.rho.rational(values) == 3 * by_hand(horizon, episodes, apart=True)
    assert "assumption-unenforced" in codes(found)
    if horizon == 20:
        assert by_hand(20, 1_000) == Fraction(999, 80_000) * (19 * Fraction(121, 32) + 2) / 20**4


@pytest.mark.parametrize(("horizon", "episodes"), SIZES)
def test_the_approximate_claim_is_judged_by_the_exact_curve(horizon, episodes):
    declaration = declare_fresh({"claim": "approx"})
    values = declaration.values({"H": horizon, "K": episodes, "d": 2, "rho": "1/2", "delta": "1e-6"})
    found = verify(declaration, values)
    spent = math.sqrt(float(by_hand(horizon, episodes)))  # μ² = 2ρ·ratio, ρ = ½
    claimed = 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))
    assert (found.verdict, found.joint) == ("holds", "follows")
    expected = gdp_epsilon(spent, 1e-6) / claimed if spent else 0.0
    assert found.upper_ratio == pytest.approx(expected, rel=1e-8, abs=1e-15)
    assert found.lower_ratio == pytest.approx(expected, rel=1e-5, abs=1e-15)


def test_the_papers_own_numbers():
    """At H = 4, K = 5, ρ = 2: ρ₀ = 1/40."""
    for declare in (declare_fresh, declare_as_printed, declare_published):
        declaration = declare({})
        values = declaration.values({"H": 4, "K": 5, "rho": 2})
        stated = {r.name: r.stated.value.number(values) / 2 for r in declaration.releases}  # √H = 2 times a step's
        assert stated == {"optimistic values": 8, "pessimistic values": 8, "squared values": 32, "gram": 1}
        variances = {r.name: r.mechanism.spread.rational(values) for r in declaration.releases}
        assert variances == {
            "optimistic values": 2 * 4**2 * 40,
            "pessimistic values": 2 * 4**2 * 40,
            "squared values": 2 * 4**4 * 40,
            "gram": Fraction(40, 4),
        }
        assert {r.schedule.times.rational(values) for r in declaration.releases} == {4}
        assert {r.counted.rational(values) for r in declaration.releases} == {5}
        assert {r.budget.rho.rational(values) for r in declaration.releases} == {Fraction(1, 2)}


def test_the_true_sensitivities_are_h_squared_below_the_stated_ones():
    """At H = 4: sums 2·4/4² over 3 of 4 steps against 2·4 over 4, the matrix √2/16 against 1."""
    found = verify(declare_fresh({}), declare_fresh({}).values({"H": 4}))
    ratios = {f.where: float(f.evidence["derived/stated"]) for f in found.findings if f.code.startswith("stated-")}
    for name in ("optimistic values", "pessimistic values", "squared values"):
        assert ratios[name] == pytest.approx(math.sqrt(3 / 4) / 16, rel=1e-5)
    assert ratios["gram"] == pytest.approx(math.sqrt(2) / 16, rel=1e-5)


@pytest.mark.parametrize("choices", [{}, {"claim": "approx"}])
@pytest.mark.parametrize("declare", [declare_as_printed, declare_published])
def test_one_draw_for_all_episodes_fails_without_bound_through_the_shared_noise(declare, choices):
    declaration = declare(choices)
    for episodes in (3, 1_000, 10**9):
        found = verify(declaration, declaration.values({"K": episodes}))
        assert (found.verdict, found.method, found.joint) == ("fails", "witness", "unproved")
        assert found.upper_ratio == found.lower_ratio == math.inf
        shared = {f.where for f in found.findings if f.code == "noise-shared"}
        assert shared == {r.name for r in declaration.releases}
    assert "draw fresh noise" in found.repair


def test_one_draw_is_no_proof_where_no_two_outputs_hold_a_user():
    """K = 1 releases nobody; at K = 2 the one output with a user leaks beside the noise alone, if that leaves too."""
    for episodes in (1, 2):
        found = verify(declare_as_printed({}), declare_as_printed({}).values({"K": episodes}))
        assert found.verdict == ("holds" if episodes == 1 else "undecided")
        assert found.lower_ratio == pytest.approx(float(by_hand(20, episodes)), rel=1e-6, abs=1e-15)


def test_the_only_differences_between_the_two_readings_are_whose_noise_is_fresh_and_a_sign():
    fresh, printed = declare_fresh({}), declare_as_printed({})
    for one, other in zip(fresh.releases, printed.releases, strict=True):
        alike = one.statistic.sensitivity(fresh.relation), other.statistic.sensitivity(printed.relation)
        assert alike[0] == alike[1]  # of V and of −V
        assert dataclasses.replace(other, draw=Draw(), statistic=one.statistic) == one
    texts = {name: getattr(fresh, name) for name in ("name", "title", "source", "origin", "claim", "releases")}
    assert dataclasses.replace(printed, **texts) == fresh


@pytest.mark.parametrize(("horizon", "verdict"), [(1, "fails"), (2, "fails"), (3, "holds"), (20, "holds")])
def test_the_published_code_with_fresh_noise_would_hold_from_three_steps_on(horizon, verdict):
    """Features of norm 3 cost 81 times in the matrix and 9 times in the sums; 1/H⁴ pays for it from H = 3 on."""
    declaration = declare_published({})
    declaration = dataclasses.replace(
        declaration, releases=tuple(dataclasses.replace(r, draw=Draw()) for r in declaration.releases)
    )
    found = verify(declaration, declaration.values({"H": horizon}))
    assert found.verdict == verdict
    assert found.upper_ratio == pytest.approx(float(by_hand(horizon, 1_000, norm=3)), rel=1e-9)
    assert found.lower_ratio == pytest.approx(found.upper_ratio, rel=1e-6)
    assert "assumption-violated" in codes(found)


def test_the_published_code_is_longer_features_and_one_draw():
    found = verify(declare_published({}), declare_published({}).values())
    broken = next(f for f in found.findings if f.code == "assumption-violated")
    assert broken.evidence == {"assumed": "1", "attained": "3"}


# luyo-lsvi-ucb, ngo-lsvi-ucb: noise calibrated to ρ/2 a release and the schedule's own count, so that the separate
# worst cases are the claim exactly, whatever the schedule. With n = H − h + 1 a step costs, in units of ρ,
# (1 − c²)/2H for the matrix and (1 − c)·n²/4Σn² for the sums: g(1 − c²) + t(1 − c), at c = −t/2g: g + t + t²/4g.
@pytest.mark.parametrize(
    ("declaration", "sizes", "none"),
    [
        (luyo({}), {"B": 1}, True),
        (luyo({}), {"B": 2}, False),
        (luyo({"gram": "cumulative"}), {"B": 10**6}, False),
        (luyo({}), {"B": 10**6, "H": 100}, False),
        (ngo({}), {"K": 1}, True),
        (ngo({}), {"K": 2, "N": 9}, False),
        (ngo({}), {"K": 3, "N": 1, "H": 1}, False),
        (ngo({}), {"K": 10**9, "H": 100}, False),
    ],
)
def test_the_baselines_keep_the_budget_that_their_noise_is_calibrated_to(declaration, sizes, none):
    values = declaration.values(sizes)
    found = verify(declaration, values)
    horizon = int(values["H"])
    squares = sum(n**2 for n in range(1, horizon + 1))
    g = Fraction(1, 2 * horizon)
    expected = sum(g + t + t**2 / (4 * g) for t in (Fraction(n**2, 4 * squares) for n in range(1, horizon + 1)))
    assert (found.verdict, found.joint) == ("holds", "follows")
    assert found.account.rho.number(values) == pytest.approx(0 if none else 1, abs=1e-15)
    assert found.upper_ratio == pytest.approx(0 if none else float(expected), rel=1e-9)
    assert found.lower_ratio == pytest.approx(0 if none else float(expected), rel=1e-6)
