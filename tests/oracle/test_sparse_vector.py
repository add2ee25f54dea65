"""The sparse vector technique against pattern-by-pattern integrals and runs that share no code with it.

Random tests are seeded; a reseed could fail one of about 400 shares outside 6.5 standard errors, with probability below
1e-7 in all.
"""

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.commands.settings import resolve_setting
from privcheck.declare.procedures import SparseVector
from privcheck.declare.procedures.sparse_vector_pairs import Comparisons
from privcheck.declare.procedures.threshold import NoisyThreshold
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.verification import verify
from privcheck.verification.outcome_loss import pure_loss, rho_loss

RELATION = ReplaceOne()
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def cdf(x):
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def integral(of, scale, kinks):
    """∫ of(z) p(z) dz over the threshold's Laplace noise, panel by panel."""
    edges = np.unique(np.concatenate([np.linspace(-45, 45, 1441) * scale, kinks]))
    half = np.diff(edges)[:, None] / 2
    z = edges[:-1, None] + half + half * NODES
    return float((of(z) * np.exp(-np.abs(z) / scale) / (2 * scale) * half * WEIGHTS).sum())


def chance(queries, pattern, *, first, second, redrawn=False, edges=None):
    """P(pattern): per query "-" below, "+" above, or the interval of `edges` in which the noisy value above is."""
    runs, run = [], []
    for query, answer in zip(queries, pattern, strict=False):
        run.append((query, answer))
        if redrawn and answer != "-":
            runs.append(run)
            run = []
    result = 1.0
    for part in [*runs, run]:

        def of(z, part=part):
            product = np.ones_like(z)
            for query, answer in part:
                if answer == "-":
                    product = product * (cdf((z - query) / second) if second else z > query)
                elif answer == "+":
                    product = product * (cdf((query - z) / second) if second else z <= query)
                else:
                    low, high = np.maximum(edges[answer], z), edges[answer + 1]
                    product = product * np.maximum(0, cdf((high - query) / second) - cdf((low - query) / second))
            return product

        kinks = [q for q, _ in part] + [e for e in edges or () if math.isfinite(e)]
        result *= integral(of, first, kinks)
    return result


def patterns(size, *, positives=None, above=("+",)):
    """All answers that may be given, up to where it stops."""
    found = []

    def grow(answers):
        if len(answers) == size or sum(a != "-" for a in answers) == positives:
            found.append(answers)
            return
        for answer in ("-", *above):
            grow((*answers, answer))

    grow(())
    return found


VARIANTS = (1, 2, 3, 4, 5, 6)


def of_variant(number, epsilon, c):
    """(threshold scale, query scale, positives, redrawn, values), written down again from the paper's Figure 1."""
    e1 = epsilon / 4 if number == 4 else epsilon / 2
    e2 = epsilon - e1
    return {
        1: (1 / e1, 2 * c / e2, c, False, False),
        2: (c / e1, 2 * c / e2, c, True, False),
        3: (1 / e1, c / e2, c, False, True),
        4: (1 / e1, 1 / e2, c, False, False),
        5: (1 / e1, 0, None, False, False),
        6: (1 / e1, 1 / e2, None, False, False),
    }[number]


def declared(number, **values):
    return resolve_setting(f"sparse-vector-{number}", {name: str(value) for name, value in values.items()})


@pytest.mark.parametrize("number", VARIANTS)
@pytest.mark.parametrize(("epsilon", "c"), [("1", 1), ("1/3", 4), ("5", 2)])
def test_the_variants_have_the_scales_of_the_figure(number, epsilon, c):
    setting = declared(number, epsilon=epsilon, c=c)
    (procedure,) = setting.declared.releases
    first, second, positives, redrawn, values = of_variant(number, Fraction(epsilon), c)
    assert procedure.threshold_scale.rational(setting.values) == first
    assert (0 if procedure.query_scale is None else procedure.query_scale.rational(setting.values)) == second
    assert (None if procedure.positives is None else procedure.positives.rational(setting.values)) == positives
    assert (procedure.redrawn, procedure.answers == "noisy values") == (redrawn, values)


def attained(number, c, queries):
    """What the best pattern loses over ε, in the limit: b below and a above, in every run of the threshold."""
    first, second, positives, redrawn, values = of_variant(number, Fraction(1), c)
    if number == 5:
        return math.inf
    if values:
        return float(queries / second)
    runs = min(c, max(queries // 2, 1)) if redrawn else 1
    size, most = queries // runs, 1 if redrawn else queries if positives is None else positives
    losses = [0]
    for above in range(min(most, size) + 1):
        apart, fewer = abs(size - 2 * above), min(above, size - above)
        losses.append(size / second if apart / second <= 1 / first else 1 / first + 2 * fewer / second)
    return float(runs * max(losses))


@pytest.mark.parametrize("number", VARIANTS)
@pytest.mark.parametrize(
    ("epsilon", "c", "queries"), [("1", 2, 20), ("1/10", 1, 4), ("3", 3, 50), ("1", 5, 7), ("2", 1, 1)]
)
def test_the_verdicts_that_are_known(number, epsilon, c, queries):
    queries = max(queries, 2) if number == 5 else queries
    setting = declared(number, epsilon=epsilon, c=c, queries=queries)
    verdict = verify(setting.declared, setting.values)
    composed = {1: Fraction(queries, 4 * c), 2: Fraction(queries, 4 * c), 4: Fraction(3 * queries, 4)}
    known = {
        1: min(1, composed[1]),
        2: min(1, composed[2]),
        3: Fraction(queries, 2 * c),
        4: min(Fraction(1 + 6 * c, 4), composed[4]),
        5: math.inf,
        6: Fraction(queries, 2),
    }[number]
    assert verdict.upper_ratio == pytest.approx(float(known), rel=1e-9)
    assert 0.99 * attained(number, c, queries) <= verdict.lower_ratio <= float(known) * (1 + 1e-12)
    if number in (1, 2):
        assert (verdict.verdict, verdict.method) == ("holds", "proved")
    elif verdict.lower_ratio > 1:
        assert verdict.verdict == "fails"
        assert verdict.witness.loss > Fraction(epsilon)
    else:
        assert verdict.verdict == "holds"


# [lemma above-threshold]
@given(
    number=st.sampled_from((1, 2, 4, 6)),
    epsilon=st.floats(0.2, 3),
    c=st.integers(1, 2),
    queries=st.lists(st.tuples(st.floats(-6, 6), st.sampled_from((-1.0, -0.5, 0.0, 1.0))), min_size=1, max_size=4),
)
def test_no_neighbours_lose_more_than_the_price(number, epsilon, c, queries):
    first, second, positives, redrawn, _ = of_variant(number, epsilon, c)
    one, other = [q for q, _ in queries], [q + moved for q, moved in queries]
    m, bound = len(queries), {1: 1, 2: 1, 4: (1 + 6 * c) / 4, 6: len(queries) / 2}[number] * epsilon
    monotone = len({moved > 0 for _, moved in queries if moved}) <= 1
    if number != 6:
        composed = m / second
        stops = c / first + 2 * c / second if redrawn else 1 / first + 2 * c / second
        halved = stops - c / second
        bound = min(bound, composed, halved if monotone else stops)
    elif monotone:
        bound = min(bound, (1 / first + m / second) / 2)
    for pattern in patterns(m, positives=positives):
        p, q = (chance(given, pattern, first=first, second=second, redrawn=redrawn) for given in (one, other))
        assert abs(math.log(p / q)) <= bound * (1 + 1e-9)


@settings(max_examples=25)
@given(queries=st.integers(1, 3), level=st.floats(-4, 4), c=st.integers(1, 2), epsilon=st.floats(0.3, 3))
def test_values_that_leave_lose_no_more_than_all_noisy_queries(queries, level, c, epsilon):
    first, second, positives, _, _ = of_variant(3, epsilon, c)
    edges = (-math.inf, -3.0, -1.0, 0.0, 0.5, 2.0, math.inf)
    for pattern in patterns(queries, positives=positives, above=range(6)):
        p, q = (
            chance([given] * queries, pattern, first=first, second=second, edges=edges) for given in (level, level + 1)
        )
        assert abs(math.log(p / q)) <= queries / second * (1 + 1e-9)


SCALES = st.floats(-12, 12).map(lambda x: str(round(math.exp(x), 9) or 1e-9))


@settings(max_examples=40)
@given(
    first=SCALES, second=SCALES, queries=st.sampled_from((1, 2, 3, 17, 10**4, 10**6)),
    positives=st.sampled_from((None, 1, 2, 40, 10**4)), redrawn=st.booleans(), monotone=st.booleans(),
    answers=st.sampled_from(("above or below", "noisy values")), moved=st.sampled_from((1, 3)),
)  # fmt: skip
def test_no_pair_loses_more_than_the_price_at_extremes(first, second, queries, moved, **options):
    one = SparseVector("s", threshold_scale=first, query_scale=second, queries=queries, sensitivity=moved, **options)
    cost = one.cost(RELATION)
    pairs = one.pairs(RELATION, {})
    price, losses = cost.pure.number(), [pure_loss(pair.outcomes, 1) for pair in pairs]
    assert max(losses) <= price * (1 + 1e-12)
    assert max(rho_loss(pair.outcomes, 1) for pair in pairs) <= cost.rho.number() * (1 + 1e-9)
    if options["answers"] == "noisy values":
        assert max(losses) >= 0.999 * price - 2e-12


PROCEDURES = [
    SparseVector(
        "answers", threshold_scale=first, query_scale=second or None, queries=m, positives=c, redrawn=redrawn,
        answers="noisy values" if values else "above or below", monotone=monotone,
    )
    for m in (1, 2, 5)
    for first, second, c, redrawn, values in (
        ("2", "4", 1, False, False), ("2", "1/2", 2, False, False), ("1/3", "3", None, False, False),
        ("2", "4", 2, True, False), ("2", "1", None, True, False), ("1", None, None, False, False),
        ("1", None, 1, False, False), ("3", None, 2, True, False), ("2", "4", 1, False, True),
        ("2", "1", 2, False, True), ("2", "1", 2, True, True),
    )
    for monotone in (False, True)
    if second or m > 1
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("procedure", PROCEDURES, ids=lambda p: p.facts.words)
def test_the_laws_of_what_is_seen_are_sums_over_patterns(procedure):
    """And runs of the algorithm follow them."""
    rng, runs = np.random.default_rng(3), 4_000
    price = procedure.cost(RELATION).pure
    for pair in procedure.pairs(RELATION, {}):
        loss = pure_loss(pair.outcomes, 1)
        assert price is None or loss <= price.number()
        if pair.sampler is None:
            continue
        seen, of = pair.sampler.seen, pair.sampler.of
        edges = [-math.inf, -of.query_scale, 0, of.query_scale, 2 * of.query_scale, 4 * of.query_scale, math.inf]
        above = range(6) if of.values else ("+",)
        by_code = []
        for queries in pair.sampler.queries:
            law = defaultdict(float)
            for pattern in patterns(queries.size, positives=of.positives, above=above):
                row = np.full((1, queries.size), np.nan)
                for i, answer in enumerate(pattern):
                    row[0, i] = {"-": -np.inf, "+": np.inf}.get(answer, np.nan)
                    if answer in range(6):
                        row[0, i] = (max(edges[answer], -9e9) + min(edges[answer + 1], 9e9)) / 2
                law[int(seen.code(row)[0])] += chance(
                    queries, pattern, first=of.threshold_scale, second=of.query_scale, redrawn=of.redrawn,
                    edges=edges if of.values else None,
                )  # fmt: skip
            by_code.append(law)
        codes = sorted(by_code[0])
        assert np.exp(pair.outcomes.log_p) == pytest.approx([by_code[0][code] for code in codes], abs=1e-10)
        assert np.exp(pair.outcomes.log_q) == pytest.approx([by_code[1][code] for code in codes], abs=1e-10)
        with np.errstate(invalid="ignore"):
            ratios = pair.outcomes.log_p - pair.outcomes.log_q
        for on_first, law in ((True, by_code[0]), (False, by_code[1])):
            scores = pair.sampler(rng, np.full(runs, on_first))
            for ratio in np.unique(ratios[~np.isnan(ratios)]):
                p = sum(law[code] for code, r in zip(codes, ratios, strict=True) if r == ratio)
                share = float((scores == ratio).mean())
                assert abs(share - p) <= 6.5 * math.sqrt(p * (1 - p) / runs) + 1 / runs


def slowly(rng, of, queries):
    """One run as the pseudo-code has it, number by number."""
    answers, count = [], 0
    threshold = rng.laplace(0, of.threshold_scale)
    for query in queries:
        if of.positives is not None and count >= of.positives:
            break
        noisy = query + (rng.laplace(0, of.query_scale) if of.query_scale else 0)
        if noisy >= threshold:
            answers.append("+")
            count += 1
            threshold = rng.laplace(0, of.threshold_scale) if of.redrawn else threshold
        else:
            answers.append("-")
    return tuple(answers)


@pytest.mark.parametrize(("c", "redrawn"), [(1, False), (2, False), (2, True), (None, False), (None, True)])
def test_vectorised_runs_are_those_of_the_pseudo_code(c, redrawn):
    of = Comparisons(threshold_scale=2.0, query_scale=1.5, queries=4, positives=c, redrawn=redrawn, values=False)
    queries, runs, rng = [0.0, 2.0, -1.0, 0.5], 20_000, np.random.default_rng(8)
    fast = of.run(rng, np.tile(queries, (runs, 1)))
    words = [tuple("+" if x > 0 else "-" for x in row if not np.isnan(x)) for row in fast]
    slow = [slowly(rng, of, queries) for _ in range(runs)]
    for pattern in patterns(4, positives=c):
        p = chance(queries, pattern, first=2.0, second=1.5, redrawn=redrawn)
        for drawn in (words, slow):
            share = sum(one == pattern for one in drawn) / runs
            assert abs(share - p) <= 6.5 * math.sqrt(p * (1 - p) / runs) + 1 / runs


def exactly(first, second, groups):
    """ln P of a pattern, at 30 digits, by splitting at kinks and every few scales."""
    with mp.workdps(30):

        def below(t):
            return mp.exp(t) / 2 if t < 0 else 1 - mp.exp(-t) / 2

        def of(z):
            value = mp.exp(-abs(z) / first) / (2 * first)
            for level, down, up in groups:
                value *= below((z - level) / second) ** down * below((level - z) / second) ** up
            return value

        points = sorted({0.0, *(level for level, _, _ in groups)})
        offsets = [k * s for s in (first, second) for k in (-60, -30, *range(-15, 16), 30, 60)]
        edges = sorted({*points, *(p + o for p in points for o in offsets)})
        largest = max(of(mp.mpf(edge)) for edge in edges)  # quad stops at an absolute error
        return float(mp.log(mp.quad(lambda z: of(z) / largest, edges) * largest))


@pytest.mark.parametrize(
    ("first", "second", "groups"),
    [
        (1.0, 1.0, [(0.0, 3, 2), (1.0, 0, 4)]),
        (5.0, 0.01, [(0.3, 2, 1), (-0.2, 1, 2)]),
        (0.01, 5.0, [(0.3, 8, 1), (-7.0, 1, 7)]),
        (2.0, 4.0, [(30.0, 12, 0), (-40.0, 0, 4)]),
        (1.0, 3.0, [(-2.0, 0, 40), (3.0, 45, 0)]),
    ],
)
def test_the_probability_of_a_pattern_at_thirty_digits(first, second, groups):
    threshold = NoisyThreshold(threshold_scale=first, query_scale=second)
    true = exactly(first, second, groups)
    assert threshold.log_pattern(groups) == pytest.approx(true, abs=1e-12 * (1 + abs(true)))
    counts = np.array([[n for _, *both in groups for n in both]])
    found = threshold.log_counts((groups[0][0], groups[1][0]), counts)[0]
    assert found == pytest.approx(true, abs=1e-12 * (1 + abs(true)))


@pytest.mark.parametrize(("queries", "c"), [(40, 1), (3_000, 7), (100_000, 2)])
def test_losses_that_grow_with_the_queries_are_found_to_the_end(queries, c):
    for number, known in ((3, queries / 2 / c), (6, queries / 2), (4, (1 + 6 * c) / 4)):
        setting = declared(number, queries=queries, c=c)
        verdict = verify(setting.declared, setting.values)
        assert 0.998 * known <= verdict.lower_ratio <= verdict.upper_ratio * (1 + 1e-12)
        assert verdict.upper_ratio == pytest.approx(known)


# [lemma value-shown]
def test_the_value_that_leaves_costs_what_the_closed_form_says():
    """P and P′ of variant 3's witness, by integration over the threshold."""
    for m, first, second in ((1, 2.0, 4.0), (3, 2.0, 2.0), (6, 1.0, 5.0)):
        one = SparseVector(
            "s", threshold_scale=str(first), query_scale=str(second), queries=m, positives=1, answers="noisy values"
        )
        pair = one.pairs(RELATION, {})[0]
        pattern = (*["-"] * (m - 1), 0)
        for level, logs in ((0.0, pair.outcomes.log_p), (1.0, pair.outcomes.log_q)):
            true = chance([level] * m, pattern, first=first, second=second, edges=(-math.inf, 0.0, math.inf))
            assert logs[0] == pytest.approx(math.log(true), abs=1e-9)
        assert pure_loss(pair.outcomes, 1) == pytest.approx(m / second, rel=1e-8)


@pytest.mark.parametrize("number", [1, 2])
def test_noise_five_per_cent_too_small_is_refuted(number):
    setting = declared(number)
    quieter = tuple(one.with_std(Fraction(19, 20)) for one in setting.declared.releases)
    verdict = verify(replace(setting.declared, releases=quieter), setting.values)
    assert verdict.verdict == "fails"
    assert verdict.lower_ratio == pytest.approx(20 / 19, rel=1e-3)


def test_nonsense_is_refused_when_it_is_made():
    good = {"threshold_scale": 2, "query_scale": 4, "queries": 9, "positives": 1}
    for bad, message in (
        ({"answers": "values"}, "expected one of"),
        ({"query_scale": None, "answers": "noisy values"}, "the data itself would be released"),
        ({"redrawn": "yes"}, "expected True or False"),
    ):
        with pytest.raises(DeclarationError, match=message):
            SparseVector("s", **{**good, **bad})
    with pytest.raises(ParameterError, match="threshold_scale"):
        SparseVector("s", **{**good, "threshold_scale": 0.5})
    for sets in ({"c": 0}, {"queries": 0}, {"epsilon": 0}):
        with pytest.raises(ParameterError):
            declared(1, **sets)
    with pytest.raises(ParameterError, match="at least 2"):
        declared(5, queries=1)


# [lemma monotone-queries]
@pytest.mark.parametrize(("first", "second", "queries"), [("2", "2", 20), ("3", "1/2", 9), ("1/4", "5", 4)])
def test_queries_that_move_one_way_and_never_stop(first, second, queries):
    """Attained where m is even and the two ways cost alike; the price is that of what the accountant composes."""
    one = SparseVector("s", threshold_scale=first, query_scale=second, queries=queries, positives=None, monotone=True)
    x, y = 1 / Fraction(first), 1 / Fraction(second)
    price = min(queries * y, (x + queries * y) / 2)
    assert one.cost(RELATION).pure.rational() == price
    (event,) = one.events(RELATION, {})
    assert event.kind == ("laplace" if price == queries * y else "pure")
    true = max(min(n * y, x + (queries - n) * y) for n in range(queries + 1))
    assert 0.99 * true <= max(pure_loss(pair.outcomes, 1) for pair in one.pairs(RELATION, {})) <= price
    assert true >= price - y / 2


def test_nothing_moves_nothing_costs():
    still = SparseVector("s", threshold_scale=1, query_scale=1, queries=3, positives=None, sensitivity=0)
    assert still.events(RELATION, {}) == ()
    assert still.pairs(RELATION, {}) == ()
    assert still.cost(RELATION).pure.number() == 0


def test_the_events_are_never_below_the_witness_and_compose():
    for number, delta in itertools.product((1, 2, 3, 4, 6), (0.0, 1e-6)):
        setting = declared(number)
        epsilon = account(setting.declared).at(setting.values).epsilon(delta)
        pure = account(setting.declared).at(setting.values).pure
        assert 0 < epsilon <= pure
