"""Private-LinOpt's verdict, derived by hand (Zhou 2022, section 6).

One step h, one node of a tree, noise of variance σ² = Δ²·v with v = 32·m·H²·ln(4H/δ)/ε² (Theorem 6.5's proof) in every
counter, so that everything counts in units of Δ. A user moves ⌊log₂(K − 1)⌋ + 1 nodes (episode K's data is never
released).

* Reward counters, Δ = 1: ‖ϕ‖ ≤ 1 and r ≤ 1. With c the cosine of the two users' ϕ the Gram matrix moves by 2(1 − c²)
  and the vector by 2(1 − c) in squares; together 4 − 2c² − 2c, largest at c = −½: 4.5
  (the separate maxima are 2 and 4).
* Transition counters, Δ = d·H² and √d·H²: V_{h+1} ≤ H − h and ‖φ‖ ≤ √d·(H − h), so that the same holds times
  (d(H − h)²/dH²)² = ((H − h)/H)⁴ for the matrix and (√d(H − h)·(H − h)/√dH²)² for the vector: 4.5·((H − h)/H)⁴.
  d cancels. Crude values: 4.5.
* In one dimension there is no angle but 0 and π: opposite vectors leave the Gram matrices where they are, and move the
  vectors by 4.

μ² = levels/v · Σ_h 4.5·(1 + ((H − h)/H)⁴), and ε at δ is where Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) = δ.
"""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr

from privcheck.declare.relations import ReplaceOne
from privcheck.pricing import account
from privcheck.runtime import registry
from privcheck.terms.symbols import tree_levels
from privcheck.verification import verify

pytestmark = pytest.mark.slow

NAMES = ("private-linopt-vi", "private-linopt-po")


def declared(name="private-linopt-vi", **choices):
    algorithm = registry.algorithm(name)
    return algorithm.declare({c.name: choices.get(c.name, c.ways[0]) for c in algorithm.readings})


def epsilon_by_hand(mu, delta):
    def excess(e):
        high, low = log_ndtr(mu / 2 - e / mu), e + log_ndtr(-mu / 2 - e / mu)
        return high + math.log1p(-math.exp(low - high)) - math.log(delta)

    if math.erf(mu / math.sqrt(8)) <= delta:  # δ(0) = 2Φ(μ/2) − 1
        return 0.0
    return brentq(excess, 0.0, mu * mu / 2 + 40 * mu, xtol=1e-14, rtol=1e-13)


def ratio_by_hand(*, H=20, K=20_000, epsilon=1.0, delta=1e-5, log="log2", values="clipped", angle=4.5):
    levels = (K - 1).bit_length()
    m = levels if log == "log2" else math.ceil(math.log(K))  # ⌈log₂ K⌉ is ⌊log₂(K − 1)⌋ + 1 for K ≥ 2
    v = 32 * m * H**2 * math.log(4 * H / delta) / epsilon**2
    fade = [1.0 if values == "crude" else ((H - h) / H) ** 4 for h in range(1, H + 1)]
    return epsilon_by_hand(math.sqrt(levels / v * angle * sum(1 + f for f in fade)), delta) / epsilon


SETTINGS = [
    {},
    {"H": 1},
    {"K": 2},
    {"K": 3},
    {"H": 1, "K": 2},
    {"H": 100, "K": 10**9},
    {"epsilon": 1000},
    {"epsilon": Fraction(1, 100), "delta": Fraction(1, 10**9), "H": 3},
]


@pytest.mark.parametrize("readings", [{}, {"log": "ln"}, {"values": "crude"}, {"dimensions": "own"}])
@pytest.mark.parametrize("given", SETTINGS, ids=str)
def test_both_ends_by_hand(readings, given):
    declaration = declared(**readings)
    found = verify(declaration, declaration.values(given))
    numbers = {name: float(x) if name in {"epsilon", "delta"} else x for name, x in given.items()}
    expected = ratio_by_hand(**numbers, **{k: r for k, r in readings.items() if k != "dimensions"})
    assert found.verdict == "holds"
    assert found.joint == "follows"
    assert found.upper_ratio == pytest.approx(expected, rel=1e-6)
    assert found.lower_ratio == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_themselves(name):
    """Typed in from the formulas above, so that an error in both the test's and the code's formula would show."""
    declaration = declared(name)
    found = verify(declaration, declaration.values({}))
    assert ratio_by_hand() == pytest.approx(0.067748, rel=1e-4)
    assert found.upper_ratio == pytest.approx(0.067748, rel=1e-4)
    assert ratio_by_hand(H=1) == pytest.approx(0.357072, rel=1e-4)
    assert ratio_by_hand(H=100, K=10**9) == pytest.approx(0.0266085, rel=1e-4)


def test_one_episode_releases_nothing():
    declaration = declared()
    found = verify(declaration, declaration.values({"K": 1}))
    assert (found.verdict, found.upper_ratio, found.lower_ratio, found.witness) == ("holds", 0, 0, None)


def test_the_dimension_cancels_and_one_dimension_has_one_angle():
    declaration = declared()
    for d in (2, 50):
        found = verify(declaration, declaration.values({"d": d}))
        assert found.lower_ratio == pytest.approx(ratio_by_hand(), rel=1e-6)
    alone = verify(declaration, declaration.values({"d": 1}))
    assert alone.lower_ratio == pytest.approx(ratio_by_hand(angle=4.0), rel=1e-6)
    assert alone.lower_ratio <= alone.upper_ratio <= ratio_by_hand(angle=6.0)
    assert alone.verdict == "holds"


@pytest.mark.parametrize(("given", "reading"), [({}, "log2"), ({"H": 1}, "log2"), ({"H": 3, "K": 3}, "ln")])
def test_the_claim_holds_up_to_an_epsilon_and_fails_beyond_it(given, reading):
    """At small ε the ratio is near c·√(2·ln 1/δ), μ = cε, below 1; it rises by about c²ε/2 and crosses 1."""
    largest = brentq(lambda e: ratio_by_hand(epsilon=e, log=reading, **given) - 1, 1, 1e6)
    declaration = declared(log=reading)
    for factor, verdict in ((Fraction(99, 100), "holds"), (Fraction(101, 100), "fails")):
        values = declaration.values({**given, "epsilon": Fraction(round(largest * 1000), 1000) * factor})
        found = verify(declaration, values)
        assert found.verdict == verdict
        assert found.joint == ("follows" if verdict == "holds" else "unproved")


def test_how_far_that_is():
    """The figures of the README."""
    figures = {1: 103.257, 3: 416.926, 20: 3472.20, 100: 19_962.7}
    for horizon, expected in figures.items():
        largest = brentq(lambda e, H=horizon: ratio_by_hand(epsilon=e, H=H) - 1, 1, 1e7)
        assert largest == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("values", ["clipped", "crude"])
def test_derived_against_stated_sensitivities(horizon, values):
    """All steps together. Stated: Δ a step. Derived: √2 and 2 times one user's norm, at the step's own bound on V."""
    declaration = declared(values=values)
    at = declaration.values({"H": horizon, "d": 3})
    fade = sum(Fraction(horizon - h, horizon) ** 4 for h in range(1, horizon + 1)) if values == "clipped" else horizon
    expected = {
        "transition gram": 2 * Fraction(fade) / horizon,
        "transition values": 4 * Fraction(fade) / horizon,
        "reward gram": Fraction(2),
        "reward sums": Fraction(4),
    }
    for cost in account(declaration).costs:
        ratio = (cost.sensitivity.l2 / cost.release.stated.value) ** 2
        assert ratio.rational(at) == expected[cost.release.name]


def test_lemma_6_1_counts_the_nodes_right_in_base_two_only():
    for episodes in (*range(2, 70), 1023, 1024, 1025, 10**9):
        at = {"K": Fraction(episodes)}
        nodes = tree_levels(episodes - 1).rational()
        for log, exact in (("log2", True), ("ln", False)):
            for release in declared(log=log).releases:
                assert release.schedule.times.rational(at) == nodes
                counted = release.schedule.counted.rational(at)
                assert counted == (nodes if exact else math.ceil(math.log(episodes)))
                assert counted <= nodes


def test_five_per_cent_less_noise_is_seen():
    """A mutant: every variance 5 % smaller is ε/√0.95 in the hand's formula, whose ratio is then to ε again."""
    declaration = declared()
    releases = tuple(
        replace(r, mechanism=replace(r.mechanism, variance=r.mechanism.variance * Fraction(95, 100)))
        for r in declaration.releases
    )
    found = verify(replace(declaration, releases=releases), declaration.values({}))
    louder = ratio_by_hand(epsilon=1 / math.sqrt(0.95)) / math.sqrt(0.95)
    assert found.upper_ratio == pytest.approx(louder, rel=1e-6)
    assert found.upper_ratio > ratio_by_hand() * 1.02


def test_a_witness_keeps_a_fixed_first_pair():
    """Under the reading that the paper's proof does not use: step 1's vectors are common, the witness is still one."""
    declaration = replace(declared(), relation=ReplaceOne("trajectory", initial="fixed"))
    found = verify(declaration, declaration.values({"H": 3}))
    one, other = found.witness.pair
    for name, column in one.vectors.items():
        assert (column[0, 0] == other.vectors[name][0, 0]).all()
    assert 0 < found.lower_ratio < ratio_by_hand(H=3)
    assert found.upper_ratio >= found.lower_ratio
