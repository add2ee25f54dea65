"""Truncated Poisson samples and batches with replacement, against all samples of tiny data sets."""

import itertools
import math

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.special import ndtr
from scipy.stats import binom

from privcheck import accounting as acc
from privcheck.accounting.engine.revealed import RevealedLaw
from privcheck.accounting.engine.sampled import SampledGaussian

EDGES = np.concatenate([[-np.inf], np.linspace(-12, 12, 401), [np.inf]])


def outputs(samples):
    """Returns masses of short intervals of noise N(0, 1) on sums, {sum: probability}: below the truth."""
    return sum(chance * np.diff(ndtr(EDGES - total)) for total, chance in samples.items())


def truncated(contributions, rate, most):
    """Returns sums of Poisson samples of which at most so many are kept; None contributes nobody."""
    found = {}
    people = [x for x in contributions if x is not None]
    for chosen in itertools.product((0, 1), repeat=len(people)):
        inside = [x for x, c in zip(people, chosen, strict=True) if c]
        chance = math.prod(rate if c else 1 - rate for c in chosen)
        batches = list(itertools.combinations(inside, most)) if len(inside) > most else [tuple(inside)]
        for batch in batches:
            found[sum(batch)] = found.get(sum(batch), 0.0) + chance / len(batches)
    return found


def drawn(contributions, draws):
    found = {}
    for batch in itertools.product(contributions, repeat=draws):
        found[sum(batch)] = found.get(sum(batch), 0.0) + len(contributions) ** -draws
    return found


def delta(p, q, epsilon):
    """Returns the larger direction of δ(ε)."""
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())


NEIGHBOURS = {
    "add-remove": lambda s: [(user, None) for user in (s, -s)],
    "zero-out": lambda s: [(user, 0.0) for user in (s, -s)],
    "replace-one": lambda s: [(s, -s), (s, 0.0), (-s, s)],
}


# [lemma truncated-sample] [lemma revealed-choice]
@pytest.mark.parametrize("relation", NEIGHBOURS)
@pytest.mark.parametrize(("most", "rate", "s"), [(1, 0.3, 1.0), (2, 0.6, 0.7), (3, 0.4, 1.5)])
def test_truncated_samples_never_exceed_their_event(relation, most, rate, s):
    event = acc.truncated_poisson_gaussian(std=1, sensitivity=s, rate=rate, users=4, most=most, relation=relation)
    once, twice = acc.compose(event), acc.compose(event, event)
    for epsilon in (0.0, 0.2, 1.0):
        bound, both = once.delta(epsilon=epsilon).upper, twice.delta(epsilon=epsilon).upper
        for others in itertools.combinations_with_replacement((s, 0.0, -s), 3):
            for user, other in NEIGHBOURS[relation](s):
                p = outputs(truncated((*others, user), rate, most))
                q = outputs(truncated((*others, other), rate, most))
                assert delta(p, q, epsilon) <= bound * (1 + 1e-9)
                if len(set(others)) == 1:
                    assert delta(np.outer(p, p), np.outer(q, q), epsilon) <= both * (1 + 1e-9)


@pytest.mark.parametrize("relation", NEIGHBOURS)
def test_samples_that_are_hardly_ever_truncated_cost_as_much_as_others(relation):
    given = {"std": 1, "rate": 0.01, "relation": relation, "count": 100}
    plain = acc.compose(acc.poisson_gaussian(**given)).epsilon(delta=1e-6).value
    for most, close in ((10_000, 1e-9), (200, 1e-3)):
        found = acc.compose(acc.truncated_poisson_gaussian(users=10_000, most=most, **given)).epsilon(delta=1e-6)
        assert plain * (1 - 1e-9) <= found.upper <= plain * (1 + close) + 1e-6
    tight = acc.compose(acc.truncated_poisson_gaussian(users=10_000, most=80, **given)).epsilon(delta=1e-6)
    assert tight.upper > 1.2 * plain


# [lemma redrawn-batch]
@pytest.mark.parametrize(("users", "draws", "s"), [(3, 2, 1.0), (4, 3, 0.5), (2, 1, 2.0)])
def test_batches_with_replacement_never_exceed_their_event(users, draws, s):
    event = acc.with_replacement(std=1, sensitivity=s, users=users, draws=draws, relation="replace-one")
    once, twice = acc.compose(event), acc.compose(event, event)
    for epsilon in (0.0, 0.2, 1.0):
        bound, both = once.delta(epsilon=epsilon).upper, twice.delta(epsilon=epsilon).upper
        worst = 0.0
        for others in itertools.combinations_with_replacement((s, -s), users - 1):
            for user, other in ((s, -s), (-s, s), (s, 0.0)):
                p, q = outputs(drawn((*others, user), draws)), outputs(drawn((*others, other), draws))
                worst = max(worst, delta(p, q, epsilon))
                assert delta(np.outer(p, p), np.outer(q, q), epsilon) <= both * (1 + 1e-9)
        assert worst <= bound * (1 + 1e-9)
        assert bound <= 1.35 * worst + 1e-3
    # one draw is a batch of one without replacement
    single = (
        acc.compose(acc.with_replacement(std=1, sensitivity=s, users=10, draws=1, relation="replace-one"))
        .epsilon(delta=1e-6)
        .value
    )
    same = acc.without_replacement(
        event=acc.gaussian(std=1, sensitivity=2 * s), users=10, batch=1, relation="replace-one"
    )
    assert single == pytest.approx(acc.compose(same).epsilon(delta=1e-6).value, rel=1e-4)


# [lemma redrawn-batch]
def test_many_draws_are_charged_for_every_number_of_copies():
    n, m, s = 1000, 50, 0.3
    k = np.arange(1, 12)
    weights = binom.pmf(k, m, 1 / n)
    p = outputs({0.0: 1 - weights.sum(), **{2 * s * int(j): float(w) for j, w in zip(k, weights, strict=True)}})
    q = outputs({0.0: 1.0})
    event = acc.with_replacement(std=1, sensitivity=s, users=n, draws=m, relation="replace-one")
    for epsilon in (0.0, 0.02, 0.1):
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= acc.compose(event).delta(epsilon=epsilon).upper
    assert (
        acc.compose(event * 200).epsilon(delta=1e-6).upper
        < acc.compose(acc.gaussian(std=1, sensitivity=2 * s, count=200)).epsilon(delta=1e-6).value
    )


@pytest.mark.parametrize("p", [0.1, 0.28, 0.586, 0.877])
def test_counters_on_a_batch_that_may_rise_or_fall(p):
    """Without replacement, q = 0.7: the sampled pair of either way, and its mirror image, by enumeration."""
    noise = binom.pmf(np.arange(31), 30, p)
    up, down = np.append(0, noise), np.append(noise, 0)
    event = acc.without_replacement(
        event=acc.shuffled_bits(users=30, probability=p), users=10, batch=7, relation="replace-one"
    )
    for epsilon in (0.0, 0.1, 0.6):
        truth = max(delta(0.3 * b + 0.7 * a, b, epsilon) for a, b in ((up, down), (down, up)))
        assert acc.compose(event).delta(epsilon=epsilon).upper == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("most", [12, 20, 30])
def test_truncated_samples_cost_no_more_than_at_their_first_publisher(most):
    """dp-accounting charges adding and removing a user by the same pairs (arXiv 2508.15089), on a grid of its own."""
    event = acc.truncated_poisson_gaussian(std=1, rate=0.01, users=1000, most=most, relation="add-remove", count=100)
    theirs = dp.TruncatedSubsampledGaussianDpEvent(999, 0.01, most, 1.0)
    peer = PLDAccountant().compose(dp.SelfComposedDpEvent(theirs, 100)).get_epsilon(1e-6)
    assert 0.99 * peer <= acc.compose(event).epsilon(delta=1e-6).value <= peer * (1 + 1e-4)


def test_a_truncated_sample_with_hardly_any_noise_ends_well():
    event = acc.truncated_poisson_gaussian(
        std=1, rate=0.00038, users=100, most=57, sensitivity=2500, relation="add-remove"
    )
    assert 2500**2 / 2 * 0.9 < acc.compose(event).epsilon(delta=1e-5).upper < 2500**2 / 2 * 1.1


# [lemma sampled-tree]
@pytest.mark.parametrize("count", [1, 3])
def test_in_a_tree_the_sample_is_shared_by_all_nodes_above_a_leaf(count):
    """⌊log₂ 7⌋ + 1 = 3 nodes: one release of √3 times the sensitivity, whatever draws the sample."""
    deeper = math.sqrt(3)
    makers = (
        lambda s: acc.truncated_poisson_gaussian(
            std=2, sensitivity=s, rate=0.1, users=50, most=8, relation="add-remove"
        ),
        lambda s: acc.truncated_poisson_gaussian(std=2, sensitivity=s, rate=0.1, users=50, most=8, relation="zero-out"),
        lambda s: acc.with_replacement(std=2, sensitivity=s, users=50, draws=5, relation="replace-one"),
        lambda s: acc.without_replacement(
            event=acc.gaussian(std=2, sensitivity=2 * s), users=50, batch=5, relation="replace-one"
        ),
        lambda s: acc.poisson_gaussian(std=2, sensitivity=s, rate=0.1, relation="replace-one"),
        lambda s: acc.mixture_of_gaussians(
            std=2, sensitivities=[0, s], probabilities=[0.9, 0.1], relation="add-remove"
        ),
    )
    for make in makers:
        tree = acc.compose(acc.tree(node=make(1), leaves=7, count=count, participations=1)).epsilon(delta=1e-5)
        # of a cut-off sample a bound is chosen by the shift of a node, or of all of them
        close = 1e-3 if str(make(1)).startswith("truncated") else 1e-6
        assert tree.upper == pytest.approx(acc.compose(make(deeper) * count).epsilon(delta=1e-5).upper, rel=close)
    apart = acc.poisson(event=acc.laplace(scale=2), rate=0.1, relation="add-remove")
    once = acc.compose(
        acc.poisson(event=acc.laplace(scale=2, count=3), rate=0.1, count=count, relation="add-remove")
    ).epsilon(delta=1e-5)
    assert (
        acc.compose(acc.tree(node=apart, leaves=7, count=count, participations=1)).epsilon(delta=1e-5).value
        == once.value
    )


# [lemma revealed-choice]
def test_a_revealed_choice_is_the_mean_of_its_curves():
    laws = (SampledGaussian(0.5, 0.2), SampledGaussian(2.0, 0.3))
    law = RevealedLaw((0.75, 0.25), laws)
    for direction in ("remove", "add"):
        cells = law.cells(1e-3, 1e-15, direction)
        losses = (cells.start + np.arange(len(cells.masses))) * 1e-3
        c = np.array([0.3, 1.0, 2.0])
        on_grid = [math.log((cells.masses * np.exp(x * losses)).sum()) for x in c]
        k, k1, k2 = law.moments(c, direction)
        np.testing.assert_allclose(k, on_grid, rtol=1e-4)
        beside = law.moments(c * (1 + 1e-4), direction), law.moments(c * (1 - 1e-4), direction)
        np.testing.assert_allclose((beside[0][0] - beside[1][0]) / (2e-4 * c), k1, rtol=1e-5)
        np.testing.assert_allclose((beside[0][1] - beside[1][1]) / (2e-4 * c), k2, rtol=1e-4)
        tilted = cells.masses * np.exp(2.0 * losses)
        truth = np.array([(tilted * np.exp(1j * t * losses)).sum() for t in 0.5 * np.arange(20)])
        found, error = law.wave(2.0, 0.5, 20, direction)
        np.testing.assert_allclose(np.exp(found), truth / truth[0], atol=1e-4)
        assert error < 1e-10
        fading = law.bound_decay(2.0, direction)
        assert all(found[i].real <= fading(0.5 * i) + 1e-12 for i in range(1, 20))
        for epsilon in (0.0, 0.05, 0.2):
            mean = sum(w * math.exp(x.log_delta(epsilon, direction)) for w, x in zip((0.75, 0.25), laws, strict=True))
            assert (cells.masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum() == pytest.approx(mean, rel=1e-3)
