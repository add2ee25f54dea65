"""Sparse vectors and noisy maxima, Gaussian and Laplace, against enumerations that share no code with them.

`law` enumerates every answer of a run, with the cells of the numbers that are shown, by a Riemann sum over the noisy
threshold. Tests of samplers are seeded; a reseed could fail one of about 30 frequencies outside 6.5 standard errors,
with probability below 1e-8 in all.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace, norm

from privcheck.accounting import compose
from privcheck.accounting.engine.stopped import noisy_max_delta, sparse_vector_profile, stopped_delta
from privcheck.declare.declaration import Claim, Declaration
from privcheck.declare.procedures import (
    AdaptiveSparseVector,
    GaussianNoisyMax,
    GaussianSparseVector,
    NoisyMax,
    SparseVector,
)
from privcheck.declare.procedures.adaptive_sparse_vector import AdaptiveComparisons
from privcheck.declare.procedures.gaussian_threshold import GaussianThreshold, log_winner
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import DeclarationError
from privcheck.pricing import least_noise
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck.verification import verify

RELATION = ReplaceOne("user")
GAP_EDGES = (0.0, 0.3, 1.0, 2.5, math.inf)


def law(queries, *, noise, first, second, positives, gaps=False, value=None, centres=None, nodes=6001):
    """{answers: probability}: "-" below, "+" above, or the cell of the gap or of the fresh value."""
    z = np.linspace(-12, 12, nodes) * first
    weights = noise.pdf(z, scale=first)
    weights = weights / weights.sum()
    found = {}

    def walk(answers, alive):
        done = sum(a != "-" for a in answers)
        if len(answers) == len(queries) or done == positives:
            found[answers] = float(alive.sum())
            return
        query = queries[len(answers)]
        walk((*answers, "-"), alive * noise.cdf(z - query, scale=second))
        if gaps:
            for cell, (low, high) in enumerate(itertools.pairwise(GAP_EDGES)):
                mass = noise.cdf(z + high - query, scale=second) - noise.cdf(z + low - query, scale=second)
                walk((*answers, cell), alive * mass)
            return
        above = alive * noise.sf(z - query, scale=second)
        if value is None:
            walk((*answers, "+"), above)
            return
        edges = np.array([-math.inf, -1.5, 0.0, 1.5, math.inf]) + centres[len(answers)]
        for cell, (low, high) in enumerate(itertools.pairwise(edges)):
            walk((*answers, cell), above * (noise.cdf(high - query, scale=value) - noise.cdf(low - query, scale=value)))

    walk((), weights)
    return found


def delta_of(p, q, epsilon):
    return sum(max(0.0, p[key] - math.exp(epsilon) * q[key]) for key in p)


def loss_of(p, q):
    return max(abs(math.log(p[key] / q[key])) for key in p if min(p[key], q[key]) > 1e-12)


def declared(one, claim, **said):
    return Declaration(
        name="one", title="one", source="a test", relation=RELATION, releases=(one,),
        claim=Claim(claim, source="a test"), parameters=(), **said,
    )  # fmt: skip


EPSILONS = (0.0, 0.5, 1.5)


def bounds(one):
    """{ε: upper bound on δ}."""
    curve = compose(*one.events(RELATION, {}))
    return {epsilon: curve.delta(epsilon=epsilon).upper for epsilon in EPSILONS}


# [lemma stopped-run]
@pytest.mark.parametrize("shift", [0.1, 0.7, 2.0])
def test_the_worst_stopped_run_is_the_optimum_over_levels(shift):
    """Finds a recursion that is not the supremum over levels, by dynamic programming on a grid of levels."""
    t = np.linspace(-12, 12, 20_001)
    for epsilon in (0.0, 0.4, 1.5):
        value, x = 0.0, math.exp(epsilon)
        for queries in range(1, 40):
            stop = norm.sf(t) - x * norm.sf(t + shift)
            value = float((np.maximum(stop, 0) + norm.cdf(t) * value).max())
            ours = stopped_delta(shift, queries, epsilon)
            assert value <= ours <= value + 1e-6


def test_steps_taken_together_are_on_the_safe_side_and_close():
    """Finds a block of steps that is counted with too small a loss, against one step at a time."""
    for epsilon in (0.5, 1.0):
        left, x = 1.0, math.exp(epsilon)
        for queries in range(1, 501):
            mu, e = 0.4, math.log(x / left)
            left *= 1 - (norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu))
            if queries in (60, 200, 500):
                assert 1 - left <= stopped_delta(0.4, queries, epsilon) <= (1 - left) * 1.05


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5), st.floats(0.05, 2), st.floats(0, 3), st.floats(0, 1))
def test_no_levels_and_shifts_exceed_the_bound_at_a_known_threshold(levels, shift, epsilon, part):
    """Finds levels tᵢ and shifts up to a with P(S) − e^ε R(S) above the bound (lemma stopped-run)."""
    until, total = 1.0, 0.0
    for t in levels:
        total += until * max(0.0, norm.sf(t) - math.exp(epsilon) * norm.sf(t + part * shift))
        until *= norm.cdf(t)
    assert total <= stopped_delta(shift, len(levels), epsilon) * (1 + 1e-12)


# [lemma trapezoid-of-answers]
@settings(max_examples=40, deadline=None)
@given(st.floats(0.3, 4), st.floats(0.3, 4), st.lists(st.floats(-4, 4), min_size=1, max_size=6))
def test_probabilities_lie_between_sums_over_cells_of_the_threshold(first, second, queries):
    """Finds a wrong node, weight or cut: Φ is monotone, so each cell of the threshold bounds its integral both ways."""
    edges = np.linspace(-9, 9, 60_001)
    mass = np.diff(norm.cdf(edges))
    logs, none = GaussianThreshold(threshold_std=first, query_std=second).log_first(
        np.array(queries), np.zeros(0), gap=False
    )
    low, high = np.ones(mass.size), np.ones(mass.size)
    for i, query in enumerate(queries):
        below = norm.cdf((edges * first - query) / second)
        least, most = ((one * (1 - below[end])) @ mass for one, end in ((low, np.s_[1:]), (high, np.s_[:-1])))
        assert least - 1e-15 <= math.exp(logs[i, 0]) <= most + 1e-15
        assert most - least < 2e-3
        low, high = low * below[:-1], high * below[1:]
    assert low @ mass - 1e-15 <= math.exp(none) <= high @ mass + 1e-15
    assert math.isclose(math.exp(none) + float(np.exp(logs).sum()), 1, abs_tol=1e-13)


def test_probabilities_far_out_keep_their_digits():
    """Finds lost digits in the tails: all of n queries below at a threshold without noise to speak of is Φ(t)ⁿ."""
    law_ = GaussianThreshold(threshold_std=1e-6, query_std=1)
    _, none = law_.log_first(np.full(9, 5.0), np.zeros(0), gap=False)
    assert math.isclose(none, 9 * norm.logcdf(-5), rel_tol=1e-9)


KINDS = {
    "above or below": ({}, {}),
    "gaps": ({"answers": "gaps"}, {"gaps": True}),
    "fresh values": ({"answers": "fresh values", "value_std": 2}, {"value": 2.0}),
}


# [lemma gaussian-sparse-vector]
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_no_neighbours_exceed_the_curve_of_a_gaussian_sparse_vector(kind, data):
    """Finds neighbouring queries with δ(ε) above the charged curve, among random and extreme ones."""
    said, naive = KINDS[kind]
    positives = data.draw(st.integers(1, 2))
    size = data.draw(st.integers(1, 3 if kind != "above or below" else 5))
    first, second = data.draw(st.sampled_from([(1.0, 2.0), (2.0, 1.0), (0.5, 0.5)]))
    monotone = data.draw(st.booleans())
    queries = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=size, max_size=size)))
    moves = st.sampled_from([0.0, 1.0]) if monotone else st.sampled_from([-1.0, 0.0, 1.0])
    other = queries + np.array(data.draw(st.lists(moves, min_size=size, max_size=size)))
    one = GaussianSparseVector(
        "s", threshold_std=f"{first}", query_std=f"{second}", queries=size, positives=positives, monotone=monotone,
        **said,
    )  # fmt: skip
    p, q = (
        law(x, noise=norm, first=first, second=second, positives=positives, centres=queries, **naive)
        for x in (queries, other)
    )
    for epsilon, most in bounds(one).items():
        for a, b in ((p, q), (q, p)):
            assert delta_of(a, b, epsilon) <= most + 1e-9


def test_more_queries_more_positives_and_less_noise_cost_more():
    """Finds a curve that falls where the mechanism tells more."""

    def epsilon(**said):
        good = {"threshold": 0.1, "shift": 0.2, "queries": 20, "positives": 1, "values": 0.0, "all_noisy": 0.0}
        points = sparse_vector_profile(**(good | said))
        return next(e for e, d in points.items() if d <= 1e-6)

    base = epsilon()
    assert epsilon(queries=21) > base
    assert epsilon(positives=2) > base
    assert epsilon(shift=0.21) > base
    assert epsilon(threshold=0.12) > base
    assert epsilon(values=0.1) > base
    assert epsilon(all_noisy=0.05) < base


def test_one_query_costs_what_a_gaussian_of_both_noises_does_at_most():
    """Finds a curve above the one of all noisy queries, and a pair above the truth of one comparison."""
    one = GaussianSparseVector("s", threshold_std=10, query_std=20, queries=1, positives=1)
    upper = compose(*one.events(RELATION, {})).epsilon(delta=1e-6).upper
    mu = 1 / math.hypot(10, 20)  # one comparison is one test of N(0, s₁² + s₂²)
    deltas = [norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) for e in (0.1, 0.15)]
    for e, truth in zip((0.1, 0.15), deltas, strict=True):
        best = max(
            float(np.maximum(np.exp(pair.outcomes.log_p) - math.exp(e) * np.exp(pair.outcomes.log_q), 0).sum())
            for pair in one.pairs(RELATION, {})
        )
        assert 0.5 * truth <= best <= truth * (1 + 1e-9)
        assert compose(*one.events(RELATION, {})).delta(epsilon=e).upper >= truth
    assert upper <= compose_gaussian(1 / 20)


def compose_gaussian(mu):
    from privcheck.accounting import gaussian

    return compose(gaussian(std=1, sensitivity=mu)).epsilon(delta=1e-6).upper * (1 + 1e-3)


# [lemma gaussian-noisy-max]
@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=2, max_size=5), st.data())
def test_no_scores_exceed_the_curve_of_a_gaussian_noisy_max(scores, data):
    """Finds neighbouring scores with δ(ε) above the charged curve, with and without the gap."""
    monotone = data.draw(st.booleans())
    moves = st.sampled_from([0.0, 1.0]) if monotone else st.sampled_from([-1.0, 0.0, 1.0])
    other = np.array(scores) + np.array(data.draw(st.lists(moves, min_size=len(scores), max_size=len(scores))))
    z = np.linspace(-9, 9, 4_001)
    step = z[1] - z[0]

    def winners(u, gap):
        chances = []
        for i in range(len(u)):
            own = norm.pdf(z) * step
            for edge, end in itertools.pairwise(GAP_EDGES if gap else (0.0, math.inf)):
                behind = [np.prod([norm.cdf(z + u[i] - u[j] - g) for j in range(len(u)) if j != i], axis=0)
                          for g in (edge, end)]  # fmt: skip
                chances.append(float((own * (behind[0] - behind[1])).sum()))
        return np.array(chances)

    for gap in (False, True):
        p, q = winners(scores, gap), winners(other, gap)
        one = GaussianNoisyMax("m", std=1, candidates=len(scores), monotone=monotone, gap=gap)
        for epsilon, most in bounds(one).items():
            for a, b in ((p, q), (q, p)):
                assert np.maximum(a - math.exp(epsilon) * b, 0).sum() <= most + 1e-9


def test_the_curve_of_a_noisy_max_is_that_of_equal_shares():
    """Finds a wrong optimum: sup of m(p − e^ε·Φ(Φ⁻¹(p) − a)) over p up to 1/m, on a grid."""
    for m, shift, epsilon in itertools.product((2, 7, 300), (0.2, 1.0), (0.0, 0.3, 1.2)):
        p = np.geomspace(1e-14, 1 / m, 200_001)
        naive = m * float((p - math.exp(epsilon) * norm.cdf(norm.ppf(p) - shift)).max())
        assert max(naive, 0) <= noisy_max_delta(shift, m, epsilon) * (1 + 1e-9) + 1e-15
        assert noisy_max_delta(shift, m, epsilon) <= max(naive, 0) * (1 + 1e-4) + 1e-9


def test_winners_of_two_groups_by_another_integral():
    """Finds a wrong law of the winner's group."""
    z = np.linspace(-10, 10, 200_001)
    for n, k, ahead in ((1, 1, 0.3), (3, 2, -1.0), (1, 50, 2.0)):
        direct = n * np.trapezoid(norm.pdf(z) * norm.cdf(z) ** (n - 1) * norm.cdf(z + ahead) ** k, z)
        logs = log_winner(ahead, n, k)
        assert math.isclose(math.exp(logs[0]), direct, rel_tol=1e-9)
        assert math.isclose(float(np.exp(logs).sum()), 1, abs_tol=1e-13)


PROCEDURES = [
    GaussianSparseVector("s", threshold_std=4, query_std=8, queries=5, positives=1),
    GaussianSparseVector("s", threshold_std=4, query_std=8, queries=5, positives=2, monotone=True),
    GaussianSparseVector("s", threshold_std=4, query_std=8, queries=5, positives=1, answers="gaps"),
    GaussianSparseVector("s", threshold_std=4, query_std=8, queries=4, positives=1, answers="fresh values",
                         value_std=8),
    AdaptiveSparseVector("a", threshold_scale=2, top_scale=4, middle_scale=2, margin=3, queries=3, budget=2,
                         gaps=False),
    GaussianNoisyMax("m", std=4, candidates=5),
    GaussianNoisyMax("m", std=4, candidates=2, monotone=True, gap=True),
]  # fmt: skip


@pytest.mark.parametrize("one", PROCEDURES, ids=lambda one: one.facts.words[-40:])
def test_pairs_are_neighbours_that_lose_at_most_the_curve_and_runs_have_their_law(one):
    """Finds a pair above the upper bound, or runs whose scores do not have the law of the pair."""
    curve = compose(*one.events(RELATION, {}))
    rng = np.random.default_rng(7)
    run = [pair for pair in one.pairs(RELATION, {}) if pair.sampler is not None]
    assert len(run) >= 6
    for pair in run[::5]:
        p, q = np.exp(pair.outcomes.log_p), np.exp(pair.outcomes.log_q)
        assert math.isclose(p.sum(), 1, abs_tol=1e-12)
        for epsilon in (0.0, 0.3, 1.0):
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= curve.delta(epsilon=epsilon).upper * (1 + 1e-9)
        size = 40_000
        on_first = np.arange(size) % 2 == 0
        scores = pair.sampler(rng, on_first)
        ratio = pair.outcomes.log_p - pair.outcomes.log_q
        cut = float(np.median(ratio)) + 1e-12
        for chosen, masses in ((on_first, p), (~on_first, q)):
            share, expected = float((scores[chosen] > cut).mean()), float(masses[ratio > cut].sum())
            assert abs(share - expected) <= 6.5 * math.sqrt(max(expected * (1 - expected), 1e-4) / chosen.sum())


# [lemma free-gaps]
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_neighbours_lose_more_than_a_laplace_sparse_vector_with_gaps_or_values_is_charged(data):
    """Finds a pattern of answers, gaps or values with a loss above the price."""
    gaps, positives, size = data.draw(st.booleans()), data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    monotone, redrawn = data.draw(st.booleans()), False
    queries = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=size, max_size=size)))
    moves = st.sampled_from([0.0, 1.0]) if monotone else st.sampled_from([-1.0, 0.0, 1.0])
    other = queries + np.array(data.draw(st.lists(moves, min_size=size, max_size=size)))
    said = {"answers": "gaps"} if gaps else {"answers": "fresh values", "value_scale": 3}
    one = SparseVector(
        "s", threshold_scale=2, query_scale=3, queries=size, positives=positives, monotone=monotone, redrawn=redrawn,
        **said,
    )  # fmt: skip
    naive = {"gaps": True} if gaps else {"value": 3.0, "centres": queries}
    p, q = (law(x, noise=laplace, first=2.0, second=3.0, positives=positives, **naive) for x in (queries, other))
    price = one.cost(RELATION).pure.number({}, rounding="up")
    assert loss_of(p, q) <= price * (1 + 1e-3)
    assert compose(*one.events(RELATION, {})).epsilon(delta=1e-12).upper <= price * (1 + 1e-9)


def test_the_price_with_gaps_and_with_values_is_attained():
    """Finds a price that is loose, or a pair above it."""
    common = {"threshold_scale": 3, "query_scale": 12, "queries": 20, "positives": 2}
    for said, price in (({"answers": "gaps"}, 2 / 3), ({"answers": "fresh values", "value_scale": 6}, 1)):
        one = SparseVector("s", **common, **said)
        assert math.isclose(one.cost(RELATION).pure.number({}), price, rel_tol=1e-12)
        worst = max(float((pair.outcomes.log_p - pair.outcomes.log_q).max()) for pair in one.pairs(RELATION, {}))
        assert price * (1 - 1e-6) <= worst <= price * (1 + 1e-9)


# [lemma free-gap-of-maximum]
@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=2, max_size=4), st.data())
def test_the_gap_of_a_laplace_noisy_max_is_free(scores, data):
    """Finds a winner and cell of its gap with a loss above 2Δ/b, or Δ/b for monotone scores."""
    monotone = data.draw(st.booleans())
    moves = st.sampled_from([0.0, 1.0]) if monotone else st.sampled_from([-1.0, 0.0, 1.0])
    other = np.array(scores) + np.array(data.draw(st.lists(moves, min_size=len(scores), max_size=len(scores))))
    z = np.linspace(-40, 40, 80_001)

    def law_of(u):
        masses = {}
        for i in range(len(u)):
            for cell, (edge, end) in enumerate(itertools.pairwise(GAP_EDGES)):
                near, far = (np.prod([laplace.cdf(z + u[i] - u[j] - g, scale=2) for j in range(len(u)) if j != i],
                                     axis=0) for g in (edge, end))  # fmt: skip
                masses[i, cell] = float((laplace.pdf(z, scale=2) * (near - far)).sum() * (z[1] - z[0]))
        return masses

    one = NoisyMax("m", noise="laplace", scale=2, candidates=len(scores), monotone=monotone, gap=True)
    price = one.cost(RELATION).pure.number({})
    assert math.isclose(price, 0.5 if monotone else 1)
    assert loss_of(law_of(scores), law_of(other)) <= price * (1 + 1e-3)


# [lemma adaptive-sparse-vector]
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_no_neighbours_lose_more_than_an_adaptive_sparse_vector_is_charged(data):
    """Finds a pattern of top, middle and low answers, with cells of gaps, that loses more than Δ/b₁ + budget."""
    size, monotone = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    queries = np.array(data.draw(st.lists(st.floats(-3, 4), min_size=size, max_size=size)))
    moves = st.sampled_from([0.0, 1.0]) if monotone else st.sampled_from([-1.0, 0.0, 1.0])
    other = queries + np.array(data.draw(st.lists(moves, min_size=size, max_size=size)))
    b1, b2, b3, margin, ways = 2.0, 4.0, 2.0, 1.5, 1 if monotone else 2
    budget = 2 * ways / b3
    z = np.linspace(-60, 60, 12_001)

    def law_of(u):
        weights = laplace.pdf(z, scale=b1)
        found = {}

        def walk(answers, spent, alive):
            if len(answers) == size or spent + ways / b3 > budget + 1e-12:
                found[answers] = float(alive.sum() / weights.sum())
                return
            x = u[len(answers)]
            failed = laplace.cdf(z + margin - x, scale=b2)
            for cell, (low, high) in enumerate(itertools.pairwise(GAP_EDGES)):
                top = laplace.cdf(z + margin + high - x, scale=b2) - laplace.cdf(z + margin + low - x, scale=b2)
                middle = laplace.cdf(z + high - x, scale=b3) - laplace.cdf(z + low - x, scale=b3)
                walk((*answers, f"top {cell}"), spent + ways / b2, alive * top)
                walk((*answers, f"middle {cell}"), spent + ways / b3, alive * failed * middle)
            walk((*answers, "-"), spent, alive * failed * laplace.cdf(z - x, scale=b3))

        walk((), 0.0, weights)
        return found

    one = AdaptiveSparseVector(
        "a", threshold_scale=2, top_scale=4, middle_scale=2, margin="1.5", queries=size, budget=f"{budget:g}",
        gaps=True, monotone=monotone,
    )  # fmt: skip
    price = one.cost(RELATION).pure.number({}, rounding="up")
    assert price <= 1 / b1 + budget + 1e-12
    assert loss_of(law_of(queries), law_of(other)) <= price * (1 + 1e-3)


def test_the_first_answer_of_an_adaptive_sparse_vector_by_another_integral():
    """Finds a wrong law of the first answer above and its kind."""
    of = AdaptiveComparisons(threshold_scale=2.0, top_scale=5.0, middle_scale=1.5, margin=2.5)
    queries = np.array([0.5, -1.0, 2.0])
    z = np.linspace(-90, 90, 900_001)
    until, parts = laplace.pdf(z, scale=2) * (z[1] - z[0]), {0: [], 1: []}
    for x in queries:
        top, middle = laplace.sf(z + 2.5 - x, scale=5), laplace.sf(z - x, scale=1.5)
        parts[0].append((until * top).sum())
        parts[1].append((until * (1 - top) * middle).sum())
        until = until * (1 - top) * (1 - middle)
    ours = np.exp(of.log_first(queries))
    assert np.allclose(ours, [until.sum(), *parts[0], *parts[1]], rtol=1e-6)
    assert math.isclose(ours.sum(), 1, abs_tol=1e-12)


def test_the_price_of_an_adaptive_sparse_vector_is_attained():
    """Finds a loose price or a pair above it: CheckDP's scales at N = 2, ε = 1."""
    one = AdaptiveSparseVector(
        "a", threshold_scale=2, top_scale=16, middle_scale=8, margin=16, queries=30, budget="1/2", gaps=True
    )
    assert verify(declared(one, PureDP(1)), {}).verdict == "holds"
    fails = verify(declared(one, PureDP("0.99")), {})
    assert (fails.verdict, fails.lower_ratio > 1.01) == ("fails", True)


def test_verdicts_witness_and_calibration_of_gaussian_procedures():
    """Finds a true claim that does not hold, one below a pair that does not fail, or a factor off its target."""
    for one in (
        GaussianSparseVector("s", threshold_std=10, query_std=20, queries=30, positives=2),
        GaussianNoisyMax("m", std=10, candidates=20),
    ):
        upper = compose(*one.events(RELATION, {})).epsilon(delta=1e-6).upper
        claims = [ApproxDP(f"{x:.6f}", "1/1000000") for x in (upper * 1.01, upper / 4)]
        holds, fails = (verify(declared(one, claim), {}) for claim in claims)
        assert (holds.verdict, fails.verdict) == ("holds", "fails")
        assert 1 < fails.lower_ratio <= fails.upper_ratio
        assert "in D the" in fails.witness.words
        found = least_noise(declared(one, claims[0]), {}, epsilon=upper / 2, delta=1e-6)
        assert 0.98 * upper / 2 <= found.epsilon <= upper / 2
        assert found.releases[0].needed_std > one.std({})


def test_what_no_theorem_covers_is_refused():
    """Finds a combination that is accepted without a theorem, or values without noise."""
    good = {"threshold_std": 1, "query_std": 2, "queries": 3, "positives": 1}
    with pytest.raises(DeclarationError, match="value_std"):
        GaussianSparseVector("s", **good, answers="fresh values")
    with pytest.raises(DeclarationError, match="value_std"):
        GaussianSparseVector("s", **good, value_std=1)
    with pytest.raises(DeclarationError, match="answers, of GaussianSparseVector"):
        GaussianSparseVector("s", **good, answers="noisy values")
    with pytest.raises(DeclarationError, match="GaussianNoisyMax"):
        NoisyMax("m", noise="gaussian", scale=1, candidates=2)
    with pytest.raises(DeclarationError, match="gap, of NoisyMax"):
        NoisyMax("m", noise="gumbel", scale=1, candidates=2, gap=True)
    with pytest.raises(DeclarationError, match="value_scale"):
        SparseVector("s", threshold_scale=1, query_scale=1, queries=2, positives=1, answers="fresh values")
    with pytest.raises(DeclarationError, match="query_scale=None"):
        SparseVector("s", threshold_scale=1, query_scale=None, queries=2, positives=1, answers="gaps")


def test_nothing_is_charged_where_no_user_changes_a_query():
    """Finds a price, or a pair, at sensitivity 0."""
    for one in (
        GaussianSparseVector("s", threshold_std=1, query_std=2, queries=3, positives=1, sensitivity=0),
        GaussianNoisyMax("m", std=1, candidates=2, sensitivity=0),
        AdaptiveSparseVector("a", threshold_scale=2, top_scale=4, middle_scale=2, margin=1, queries=2, budget=1,
                             gaps=False, sensitivity=0),
    ):  # fmt: skip
        assert one.events(RELATION, {}) == ()
        assert one.pairs(RELATION, {}) == ()
