"""What procedures lose where a user has m records that change together, enumerated over all tiny datasets.

The oracle knows no event and no price: it writes out every dataset, every neighbour, and the law of what leaves.
"""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from privcheck.accounting import compose
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.procedures import (
    OF_SEVERAL,
    OURS,
    AdaptiveSparseVector,
    GaussianNoisyMax,
    GaussianSparseVector,
    MatrixMechanism,
    NoisyMax,
    NoisyVotes,
    NormalisedSum,
    OnSample,
    OwnMechanism,
    PlanarLaplace,
    RandomisedResponse,
    ScoredChoice,
    SharedSample,
    ShuffledRandomizer,
    SmoothNoise,
    SparseVector,
    StabilityHistogram,
    UnaryEncoding,
    WishartNoise,
    prefix_sums,
)
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.releases import Release
from privcheck.declare.schedules import Outputs, Poisson, Sample
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import DeclarationError

MOST = (1, 2, 3)  # records of a user
KEYS = 3
CROWDS = ((0, 0, 0), (2, 0, 0), (1, 1, 0), (0, 1, 4), (6, 0, 3))  # what all other users count
WIDTH = 1 / 100
GRID = np.arange(-6000, 7000) * WIDTH + WIDTH / 2  # of the noisy score, or of the threshold: kinks are between points


def held(m):
    """The counts of every user with 1 to m records."""
    for records in range(1, m + 1):
        for keys in itertools.combinations_with_replacement(range(KEYS), records):
            yield tuple(keys.count(key) for key in range(KEYS))


def neighbours(relation, m):
    """All pairs of counts that differ in one user, in both orders."""
    users = list(held(m))
    absent = [(0,) * KEYS]
    for crowd in CROWDS:
        for first, second in itertools.product(users, users if isinstance(relation, ReplaceOne) else absent):
            pair = tuple(tuple(np.add(crowd, user).tolist()) for user in (first, second))
            yield pair
            yield pair[::-1]


def exact_loss(law, relation, m):
    """The largest |ln p/q| of any output, of all neighbours."""
    return max(float(np.abs(np.log(law(one)) - np.log(law(other))).max()) for one, other in neighbours(relation, m))


def tail(t):
    return np.where(t < 0, np.exp(np.minimum(t, 0)) / 2, 1 - np.exp(-np.maximum(t, 0)) / 2)


def winner(scores, noise, scale):
    """The law of the index of the largest noisy score, by the midpoint rule over the winner's."""
    if noise == "gumbel":
        weights = np.exp(np.array(scores) / scale)
        return weights / weights.sum()
    chances = []
    for i, own in enumerate(scores):
        x = (GRID - own) / scale
        if noise == "gaussian":
            density, below = np.exp(-x * x / 2), [ndtr((GRID - s) / scale) for s in scores]
        elif noise == "laplace":
            density, below = np.exp(-np.abs(x)) / 2, [tail((GRID - s) / scale) for s in scores]
        else:
            density = np.where(x >= 0, np.exp(-np.maximum(x, 0)), 0.0)
            below = [np.where(s <= GRID, -np.expm1(-np.maximum(GRID - s, 0) / scale), 0.0) for s in scores]
        others = np.prod([b for j, b in enumerate(below) if j != i], axis=0)
        chances.append((density * others).sum() * WIDTH)
    return np.array(chances) / sum(chances)


def flipped(scores, rate):
    """Permute-and-flip over all orders."""
    coins, chances = np.exp(rate * (np.array(scores) - max(scores))), np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for i in order:
            chances[i] += left * coins[i] / math.factorial(len(scores))
            left *= 1 - coins[i]
    return chances


def answers(queries, threshold_scale, query_scale, positives, *, gaussian=False):
    """The law of all answers of a sparse vector with threshold 2, by the midpoint rule over the threshold."""
    far, below = np.abs(GRID - 2) / threshold_scale, ndtr if gaussian else tail
    density = np.exp(-far * far / 2 if gaussian else -far)
    above = [1 - below((GRID - q) / query_scale) for q in queries]
    chances = {}
    for pattern in itertools.product((0, 1), repeat=len(queries)):
        seen, chance = [], density
        for answer, up in zip(pattern, above, strict=True):
            chance = chance * (up if answer else 1 - up)
            seen.append(answer)
        shown = seen
        if positives is not None:
            ends = [i for i in range(len(seen)) if sum(seen[: i + 1]) == positives]
            shown = seen[: ends[0] + 1] if ends else seen
        chances[tuple(shown)] = chances.get(tuple(shown), 0.0) + chance.sum() * WIDTH
    masses = np.array(list(chances.values()))
    return masses / masses.sum()


def adaptive_answers(queries, scales, margin, budget, costs):
    """The law of all answers of an adaptive sparse vector with threshold 2: 0 below, 1 above, 2 far above."""
    density, laws, chances = np.exp(-np.abs(GRID - 2) / scales[0]), [], {}
    for q in queries:
        far, near = 1 - tail((GRID + margin - q) / scales[1]), 1 - tail((GRID - q) / scales[2])
        laws.append(((1 - far) * (1 - near), (1 - far) * near, far))
    for pattern in itertools.product((0, 1, 2), repeat=len(queries)):
        shown, left, chance = [], budget, density
        for answer, law in zip(pattern, laws, strict=True):
            chance = chance * law[answer]
            if left >= max(costs):
                shown.append(answer)
                left -= (0, *costs)[answer]
        chances[tuple(shown)] = chances.get(tuple(shown), 0.0) + chance.sum() * WIDTH
    masses = np.array(list(chances.values()))
    return masses / masses.sum()


def selections(scale):
    for noise in ("laplace", "exponential", "gumbel"):
        law = functools.cache(lambda counts, noise=noise: winner(counts, noise, scale))
        for monotone in (False, True):
            yield NoisyMax("winner", noise=noise, scale=scale, candidates=KEYS, monotone=monotone), law
    epsilon = 2 / scale if isinstance(scale, float) else f"{2 / scale:g}"
    for by in ("exponential mechanism", "permute-and-flip"):
        law = (
            functools.cache(lambda counts: winner(counts, "gumbel", scale))
            if by == "exponential mechanism"
            else functools.cache(lambda counts: flipped(counts, 1 / scale))
        )
        for monotone in (False, True):
            yield ScoredChoice("choice", by=by, epsilon=epsilon, candidates=KEYS, monotone=monotone), law


def sparse_vectors():
    for positives in (1, 2, None):
        law = functools.cache(lambda counts, positives=positives: answers(counts, 4, 8, positives))
        for monotone in (False, True):
            yield SparseVector(
                "answers", threshold_scale=4, query_scale=8, queries=KEYS, positives=positives, monotone=monotone
            ), law  # fmt: skip


@pytest.mark.parametrize("m", MOST)
@pytest.mark.parametrize("kind", [ReplaceOne, AddRemoveOne])
def test_no_user_with_m_records_loses_more_than_a_selection_is_charged(kind, m):
    relation, tight = kind("user", trajectories=m), 0
    for one, law in (*selections(4), *sparse_vectors()):
        if one.monotone and kind is ReplaceOne:
            continue  # the counts of two users move either way
        loss, charged = exact_loss(law, relation, m), one.cost(relation).pure.number({}, rounding="up")
        assert loss <= charged * (1 + 1e-4), (one.facts.words, loss, charged)
        pure = compose(*one.events(relation, {})).epsilon(delta=1e-9).upper
        assert pure <= charged * (1 + 1e-6) + 1e-9
        worst = max(float(np.abs(pair.outcomes.log_p - pair.outcomes.log_q).max()) for pair in one.pairs(relation, {}))
        assert worst <= charged * (1 + 1e-9)
        tight += loss > 0.9 * charged
    assert tight >= 2  # what is charged is attained, m-fold


@pytest.mark.parametrize("m", MOST)
def test_events_of_selections_bound_every_delta_of_every_neighbour(m):
    relation = ReplaceOne("user", trajectories=m)
    for one, law in (*selections(4), *sparse_vectors()):
        if one.monotone:
            continue
        curve = compose(*one.events(relation, {}))
        for epsilon in (0.0, 0.3, 0.9):
            delta = max(
                float(np.maximum(law(a) - math.exp(epsilon) * law(b), 0).sum()) for a, b in neighbours(relation, m)
            )
            assert delta <= curve.delta(epsilon=epsilon).upper + 1e-5, (one.facts.words, epsilon)


def gaussian_selections():
    for monotone in (False, True):
        law = functools.cache(lambda counts: winner(counts, "gaussian", 5))
        yield GaussianNoisyMax("winner", std=5, candidates=KEYS, monotone=monotone), law
        for positives in (1, 2):
            law = functools.cache(lambda counts, positives=positives: answers(counts, 4, 6, positives, gaussian=True))
            yield GaussianSparseVector(
                "answers", threshold_std=4, query_std=6, queries=KEYS, positives=positives, monotone=monotone
            ), law  # fmt: skip


def adaptive_ones(m):
    """The algorithm charges its answers for users of m records."""
    for monotone in (False, True):
        costs = tuple((1 if monotone else 2) * m / scale for scale in (4, 8))
        law = functools.cache(lambda counts, costs=costs: adaptive_answers(counts, (4, 8, 4), 2, 2 * costs[0], costs))
        yield AdaptiveSparseVector(
            "answers", threshold_scale=4, top_scale=8, middle_scale=4, margin=2, queries=KEYS,
            budget=f"{2 * costs[0]}", gaps=False, monotone=monotone,
        ), law  # fmt: skip


@pytest.mark.parametrize("m", MOST)
@pytest.mark.parametrize("kind", [ReplaceOne, AddRemoveOne])
def test_no_user_with_m_records_loses_more_than_later_selections_are_charged(kind, m):
    """Gaussian selections and adaptive sparse vectors, by δ at some ε; pairs that refute are under the curve too."""
    relation = kind("user", trajectories=m)
    for one, law in (*gaussian_selections(), *adaptive_ones(m)):
        if one.monotone and kind is ReplaceOne:
            continue  # the counts of two users move either way
        curve = compose(*one.events(relation, {}))
        for epsilon in (0.0, 0.2 * m, 0.5 * m):
            delta = max(
                float(np.maximum(law(a) - math.exp(epsilon) * law(b), 0).sum()) for a, b in neighbours(relation, m)
            )
            upper = curve.delta(epsilon=epsilon).upper
            assert delta <= upper + 1e-5, (one.facts.words, epsilon)
            for pair in one.pairs(relation, {})[::5]:
                p, q = np.exp(pair.outcomes.log_p), np.exp(pair.outcomes.log_q)
                assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= upper * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("m", MOST)
@pytest.mark.parametrize("kind", [ReplaceOne, AddRemoveOne])
def test_outputs_with_noise_that_varies_and_samples_of_users_are_charged_for_all_records(kind, m):
    relation = kind("user", trajectories=m)
    moved = max(float(np.abs(np.subtract(a, b)).sum()) for a, b in neighbours(relation, m))
    release = Release(
        "counts", VisitCounts(1, 1, KEYS), Laplace(scale=4), schedule=Outputs(count=3, times_std=lambda t: t)
    )
    assert release.cost(relation).pure.number({}) >= moved / 4 * (1 + 1 / 2 + 1 / 3) * (1 - 1e-12)
    if kind is AddRemoveOne:
        drawn = Release("counts", VisitCounts(1, 1, KEYS), Laplace(scale=4), schedule=Poisson(rate="1/4"))
        assert drawn.cost(relation).pure.number({}) >= math.log1p(math.expm1(moved / 4) / 4) * (1 - 1e-12)


@pytest.mark.parametrize("m", MOST)
def test_a_matrix_mechanism_is_charged_for_the_worst_steps_of_a_user(m):
    steps, relation = 4, ZeroOut("user", trajectories=m)
    one = MatrixMechanism("sums", encoder=prefix_sums(steps), noise_multiplier=2, participations=m)
    C = np.tril(np.ones((steps, steps)))
    worst = max(
        float(((C[:, list(taken)] @ np.array(signs)) ** 2).sum())
        for taken in itertools.combinations(range(steps), m)
        for signs in itertools.product((-1, 1), repeat=m)
    )
    charged = one.cost(relation)
    assert charged.sensitivity.l2.number({}) ** 2 >= worst * (1 - 1e-9)
    assert charged.mu_squared.number({}) >= worst / 4 * (1 - 1e-9)  # the noise is twice one contribution


@pytest.mark.parametrize("m", MOST)
def test_one_sample_is_charged_for_all_that_a_sampled_user_moves(m):
    batch, relation = Sample(Poisson(rate="1/4")), AddRemoveOne("user", trajectories=m)
    counts = [Release(name, VisitCounts(1, 1, KEYS), Laplace(scale=4), schedule=batch) for name in ("a", "b")]
    both = SharedSample(tuple(counts))
    assert both.cost(relation).pure.number({}) >= math.log1p(math.expm1(2 * m / 4) / 4) * (1 - 1e-12)


ONE_RECORD = (
    NoisyVotes("votes", noise="laplace", spread=2, queries=1),
    RandomisedResponse("answer", categories=3, epsilon=1),
    UnaryEncoding("bits", bits=3, keep="3/4", flip="1/4"),
    ShuffledRandomizer("messages", randomizer="binary response", epsilon0=1, senders=100),
    StabilityHistogram("keys", scale=2, threshold=40),
    PlanarLaplace("place", scale=2, diameter=1),
    WishartNoise("matrix", variance=2, dimension=2),
    OnSample("winner", procedures=(NoisyMax("inner", noise="gumbel", scale=2, candidates=2),), rate="1/2"),
    SmoothNoise("median", smoothness=1, scale=2),
    NormalisedSum("average", norm=1, variance=2, dimension=1, sampling=Poisson(rate="1/2"), divisor="realised batch"),
)


@pytest.mark.parametrize("one", ONE_RECORD, ids=lambda one: type(one).__name__)
def test_what_is_priced_for_one_record_is_refused_for_several_by_itself(one):
    for kind in (ReplaceOne, AddRemoveOne, ZeroOut):
        with pytest.raises(DeclarationError, match=r"record|answers once|bound all data of a user|only one vector"):
            one.cost(kind("user", trajectories=2))


def folded(moved):
    """Selections whose queries or scores change by so much: their prices at Δ are tested by enumeration elsewhere."""
    noise = {"threshold_std": 4, "query_std": 8}
    return (
        GaussianSparseVector("s", **noise, queries=3, positives=2, sensitivity=moved),
        GaussianNoisyMax("w", std=4, candidates=3, sensitivity=moved),
        AdaptiveSparseVector(
            "a", threshold_scale=4, top_scale=8, middle_scale=4, margin=1, queries=3, budget=1, gaps=True,
            sensitivity=moved,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("m", MOST)
def test_gaussian_and_adaptive_selections_charge_m_records_as_m_times_the_sensitivity(m):
    """Finds a price, a curve or a pair that forgets a user's other records."""
    relation, alone = ReplaceOne("user", trajectories=m), ReplaceOne("user")
    for one, other in zip(folded(1), folded(m), strict=True):
        assert one.cost(relation).rho.number({}) == other.cost(alone).rho.number({})
        assert one.events(relation, {}) == other.events(alone, {})
        assert [pair.words for pair in one.pairs(relation, {})] == [pair.words for pair in other.pairs(alone, {})]


def test_every_procedure_is_tried_here():
    tried = {NoisyMax, ScoredChoice, SparseVector, SharedSample, MatrixMechanism, *map(type, folded(1))}
    assert tried | {type(one) for one in ONE_RECORD} == set(OURS)
    assert tried | {OwnMechanism} == set(OF_SEVERAL)
