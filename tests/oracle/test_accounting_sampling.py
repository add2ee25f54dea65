"""Sampled mechanisms against numerical integration of their outputs: every scheme, every relation, pairs of them."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import ndtr

from privcheck import accounting as acc
from privcheck.accounting.engine.replaced import MirroredGaussian, ReplacedGaussian
from privcheck.accounting.engine.sampled import SampledGaussian
from privcheck.errors import ParameterError

EPSILONS = (0.0, 0.1, 0.7, 2.0)


def bells(parts):
    """Returns a mixture of normal laws, (weight, mean) each, as a pair of functions: density and P(X > x)."""
    return (
        lambda x: sum(w * np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi) for w, m in parts),
        lambda x: sum(w * ndtr(m - x) for w, m in parts),
    )


def pair(scheme, s, q):
    """Returns the mixtures with the user and without; their likelihood ratio grows with x."""
    user = [(1 - q, 0.0), (q, s)]
    return (user, [(1 - q, 0.0), (q, -s)]) if scheme == "replace-one" else (user, [(1.0, 0.0)])


def one_delta(p, q, epsilons):
    """Returns H(P, Q) and H(Q, P) at any real ε, the place where the ratio is e^{±ε} by bisection."""
    (p_density, p_above), (q_density, q_above) = bells(p), bells(q)
    found = []
    for first, second, sign, above in ((p_density, q_density, 1, True), (q_density, p_density, -1, False)):
        low, high = np.full(len(epsilons), -60.0), np.full(len(epsilons), 60.0)
        for _ in range(70):
            middle = (low + high) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(first(middle)) - np.log(second(middle))
            over = (ratio >= epsilons) if above else (ratio < epsilons)
            over = np.where(np.isnan(ratio), middle > 0, over)
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        if above:
            found.append(p_above(high) - np.exp(epsilons) * q_above(high))
        else:
            found.append((1 - q_above(high)) - np.exp(epsilons) * (1 - p_above(high)))
        assert sign
    return np.maximum(found[0], 0), np.maximum(found[1], 0)


def two_deltas(one, other, epsilon):
    """Returns the larger direction of δ(ε) of two independent outputs: an integral over the first of the second's δ."""
    x = np.linspace(-14, 20, 20_001)
    (p, _), (q, _) = bells(one[0]), bells(one[1])
    losses, h = np.log(p(x)) - np.log(q(x)), x[1] - x[0]
    forward = (p(x) * one_delta(*other, epsilon - losses)[0]).sum() * h
    backward = (q(x) * one_delta(*other, epsilon + losses)[1]).sum() * h
    return max(forward, backward)


SAMPLED = [("add-remove", 1.0, 0.1), ("replace-one", 0.8, 0.3), ("zero-out", 3.0, 0.02), ("replace-one", 2.5, 0.05)]


def gaussian_event(scheme, s, q, **more):
    return acc.poisson_gaussian(std=1, sensitivity=s, rate=q, relation=scheme, **more)


# [lemma sampled-gaussian] [lemma sampled-curve]
@pytest.mark.parametrize("case", SAMPLED, ids=str)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_sampled_gaussian(case, epsilon):
    truth = max(x[0] for x in one_delta(*pair(*case), np.array([epsilon])))
    found = acc.compose(gaussian_event(*case)).delta(epsilon=epsilon)
    assert truth * (1 - 1e-9) - 1e-14 <= found.upper <= truth * 1.01 + 1e-12


@pytest.mark.parametrize(
    ("one", "other"),
    [pair for pair in itertools.combinations_with_replacement(SAMPLED, 2) if pair[0][0] == pair[1][0]],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [0.1, 1.3])
def test_pairs_of_sampled_gaussians(one, other, epsilon):
    truth = two_deltas(pair(*one), pair(*other), epsilon)
    found = acc.compose(gaussian_event(*one), gaussian_event(*other)).delta(epsilon=epsilon)
    assert truth * (1 - 1e-7) <= found.upper <= truth * 1.01


@pytest.mark.parametrize(("std", "count"), [(0.04, 2), (0.01, 2), (0.04, 3), (0.0001, 2)])
def test_hardly_any_noise_is_the_choice_of_who_is_sampled(std, count):
    """Given how often the user is sampled, outputs are normal far apart: P ≈ Σ Bin(j)·N(js²/2 + …, js²)."""
    q, delta, s = 0.01, 1e-6, 1 / std
    found = acc.compose(acc.poisson_gaussian(std=std, rate=q, count=count, relation="add-remove")).epsilon(delta=delta)

    def above(epsilon):
        total = 0.0
        for j in range(1, count + 1):
            weight = math.comb(count, j) * q**j * (1 - q) ** (count - j)
            shift = j * (math.log(q) + s * s / 2) + (count - j) * math.log1p(-q)
            total += weight * ndtr((shift - epsilon) / (s * math.sqrt(j)))
        return total

    low, high = 0.0, 5 * count * s * s
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > delta else (low, middle)
    assert found.upper == pytest.approx(high, rel=0.01)
    assert acc.compose(acc.poisson_gaussian(std=1e-6, rate=q, relation="add-remove")).epsilon(delta=0.02).upper == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("s", "q", "c"),
    [
        (1, 0.01, 20),
        (11.5, 1 - 1.7e-8, 0.011),
        (3740, 4.7e-5, 0.0668),
        (25, 0.3, 1.5),
        (8, 1 - 1e-14, 30),
        (60, 1e-9, 3),
    ],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_cumulants_at_40_digits(s, q, c, direction):
    with mp.workdps(40):
        shift, rate = mp.mpf(s), mp.mpf(float(q))
        sign = 1 if direction == "remove" else -1

        def mixture(x):
            return 1 - rate + rate * mp.exp(shift * x - shift * shift / 2)

        power = mp.mpf(c + 1 if sign > 0 else -c)

        def integrand(x):  # but for 1/√(2π)
            return mp.exp(power * mp.log(mixture(x)) - x * x / 2)

        far = (c + 1) * shift if sign > 0 else -c * shift
        kink = shift / 2 + mp.log((1 - rate) / rate) / shift
        places = {centre + mp.mpf(k) / 2 for centre in (mp.mpf(0), far) for k in range(-26, 27)}
        places |= {kink + side * mp.mpf(2) ** k / shift / 8 for side in (1, -1) for k in range(13)} | {kink}
        low, high = min(mp.mpf(0), far) - 13, max(mp.mpf(0), far) + 13
        pieces = sorted(x for x in places if low <= x <= high)  # the integrand is smooth on each: few nodes, all digits
        truth = float(mp.log(mp.quad(integrand, pieces, method="gauss-legendre") / mp.sqrt(2 * mp.pi)))
    law = SampledGaussian(float(s), float(q))
    k, k1, _ = law.moments(np.array([c]), direction)
    assert -1e-15 * (1 + c * law.span(direction)) <= k[0] - truth <= 1e-13 * (1 + c * law.span(direction))
    beside = law.moments(np.array([c * (1 - 1e-5), c * (1 + 1e-5)]), direction)[0]
    assert k1[0] == pytest.approx((beside[1] - beside[0]) / (2e-5 * c), rel=1e-6, abs=1e-9)


# [lemma replaced-trapezoid] [lemma replaced-variation]
@pytest.mark.parametrize("law", [ReplacedGaussian(0.8, 0.3), ReplacedGaussian(3, 0.01), ReplacedGaussian(0.3, 0.9999)])
def test_waves_of_replaced_users_by_plain_sums(law):
    c, step, count = 0.7, 0.9, 40
    x = np.linspace(-14, 20, 100_001)
    p, q = (bells(parts)[0](x) for parts in pair("replace-one", law.shift, law.rate))
    tilted = np.exp(c * (np.log(p) - np.log(q))) * p
    truth = [np.sum(tilted * np.exp(1j * t * (np.log(p) - np.log(q)))) for t in step * np.arange(count)]
    found, error = law.wave(c, step, count, "remove")
    assert np.abs(np.exp(found) - np.array(truth) / truth[0]).max() <= error + 1e-12
    fading = law.bound_decay(c, "remove")
    assert all(found[i].real <= fading(step * i) + 1e-12 for i in range(1, count))


def planar(means, epsilon, half=9.0, cells=240):
    """Returns δ(ε) between mixtures of normal laws in the plane, a little below the truth: masses of squares."""
    edges = np.linspace(-half, half, cells + 1)

    def masses(parts):
        return sum(w * np.outer(np.diff(ndtr(edges - m[0])), np.diff(ndtr(edges - m[1]))) for w, m in parts)

    return np.maximum(masses(means[0]) - math.exp(epsilon) * masses(means[1]), 0).sum()


# [lemma replaced-contributions] [lemma replaced-poisson] [lemma replaced-batch]
@pytest.mark.parametrize("seed", range(6))
def test_no_contributions_in_the_plane_exceed_the_dominating_pairs(seed):
    rng = np.random.default_rng(seed)
    s, q = rng.uniform(0.5, 2.5), rng.uniform(0.02, 0.7)
    poisson, batch = ReplacedGaussian(s, q), MirroredGaussian(2 * s, q)
    for epsilon in (-0.8, -0.1, 0.0, 0.2, 1.0):
        most = {}
        for name, law in (("poisson", poisson), ("batch", batch)):
            cells = law.cells(1e-3, 1e-15, "remove")
            losses = (cells.start + np.arange(len(cells.masses))) * 1e-3
            most[name] = cells.infinite + (cells.masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum()
        for _ in range(8):
            angles, sizes = rng.uniform(0, 2 * math.pi, 3), s * np.sqrt(rng.uniform(0, 1, 3).round())
            user, other, third = ((r * math.cos(a), r * math.sin(a)) for r, a in zip(sizes, angles, strict=True))
            alone = planar(([(1 - q, (0, 0)), (q, user)], [(1 - q, (0, 0)), (q, other)]), epsilon)
            among = planar(([(1 - q, third), (q, user)], [(1 - q, third), (q, other)]), epsilon)
            assert alone <= most["poisson"] * (1 + 1e-9)
            assert among <= most["batch"] * (1 + 1e-9)


# [lemma replaced-batch] [lemma mirrored-batch]
def test_a_batch_without_replacement_is_its_worst_data_set_in_one_round_and_above_all_of_them_in_two():
    n, b, s = 20, 4, 0.7
    q = b / n
    event = acc.without_replacement(
        event=acc.gaussian(std=1, sensitivity=2 * s), users=n, batch=b, relation="replace-one"
    )
    worst = [(1 - q, 0.0), (q, 2 * s)], [(1.0, 0.0)]
    for epsilon in EPSILONS:
        truth = one_delta(*worst, np.array([epsilon]))[0][0]
        assert acc.compose(event).delta(epsilon=epsilon).value == pytest.approx(truth, rel=1e-3, abs=1e-12)
        both = two_deltas(worst, worst, epsilon)  # the same data set in both rounds, and one each
        mixed = two_deltas(worst, worst[::-1], epsilon) if epsilon else both
        found = acc.compose(event, event).delta(epsilon=epsilon)
        assert found.upper >= max(both, mixed) * (1 - 1e-7)
        assert found.upper <= 1.6 * max(both, mixed) + 1e-9
    removed = acc.without_replacement(
        event=acc.gaussian(std=1, sensitivity=2 * s), users=n, batch=b, relation="add-remove"
    )
    same = acc.poisson_gaussian(std=1, sensitivity=2 * s, rate=q, relation="add-remove")
    assert acc.compose(removed).epsilon(delta=1e-6).value == pytest.approx(
        acc.compose(same).epsilon(delta=1e-6).value, rel=1e-12
    )


def responses(epsilon, rate, rounds):
    """Returns all outputs of sampled randomised response with the user and without."""
    truth = 1 / (1 + math.exp(-epsilon))
    user, without = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    with_user, one = np.ones(1), np.ones(1)
    for _ in range(rounds):
        with_user = np.outer(with_user, (1 - rate) * without + rate * user).ravel()
        one = np.outer(one, without).ravel()
    return with_user, one


# [lemma sampled-mechanism]
@pytest.mark.parametrize("rounds", [1, 2, 6])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_sampled_randomized_response_by_enumeration(rounds, epsilon):
    user, without = responses(1.3, 0.2, rounds)
    truth = max(
        np.maximum(user - math.exp(epsilon) * without, 0).sum(), np.maximum(without - math.exp(epsilon) * user, 0).sum()
    )
    event = acc.poisson(event=acc.randomized_response(epsilon=1.3), rate=0.2, count=rounds, relation="add-remove")
    assert acc.compose(event).delta(epsilon=epsilon).value == pytest.approx(truth, rel=1e-9, abs=1e-13)


def laplace_cells(centres, weights, scale, edges):
    def below(x):
        return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))

    return sum(w * np.diff(below((edges - m) / scale)) for m, w in zip(centres, weights, strict=True))


# [lemma sampled-mechanism]
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.1, 0.2])
def test_sampled_laplace_noise_by_quadrature(relation, epsilon):
    q, scale = 0.2, 1.5
    edges = np.concatenate([[-np.inf], np.linspace(-30, 30, 60_001), [np.inf]])
    user = laplace_cells((0, 1), (1 - q, q), scale, edges)
    other = laplace_cells((0, -1), (1 - q, q) if relation == "replace-one" else (1, 0), scale, edges)
    truth = max(
        np.maximum(user - math.exp(epsilon) * other, 0).sum(), np.maximum(other - math.exp(epsilon) * user, 0).sum()
    )
    event = acc.poisson(event=acc.laplace(scale=scale), rate=q, relation=relation)
    found = acc.compose(event).delta(epsilon=epsilon)
    tight = 1.5 if relation == "replace-one" else 1.001
    assert truth * (1 - 1e-6) <= found.upper <= tight * truth + 1e-7
    assert acc.compose(event * 2).delta(epsilon=epsilon).upper >= found.value


@pytest.mark.parametrize("count", [1, 20])
def test_sampled_laplace_noise_against_dp_accounting(count):
    event = acc.poisson(event=acc.laplace(scale=1.5), rate=0.1, count=count, relation="add-remove")
    theirs = pld.from_laplace_mechanism(1.5, sampling_prob=0.1, value_discretization_interval=1e-4)
    upper = theirs.self_compose(count).get_epsilon_for_delta(1e-6)
    assert acc.compose(event).epsilon(delta=1e-6).value == pytest.approx(upper, rel=2e-3, abs=2e-3)


def test_a_mechanism_of_several_releases_is_sampled_as_one():
    twice = acc.poisson(event=acc.gaussian(std=2, count=2), rate=0.1, count=5, relation="add-remove")
    once = acc.poisson_gaussian(std=math.sqrt(2), rate=0.1, count=5, relation="add-remove")
    assert acc.compose(twice).epsilon(delta=1e-6).value == pytest.approx(
        acc.compose(once).epsilon(delta=1e-6).value, rel=1e-6
    )
    together = acc.compose(acc.poisson(event=acc.laplace(scale=3, count=2), rate=0.1, relation="add-remove")).epsilon(
        delta=1e-6
    )
    apart = acc.compose(acc.poisson(event=acc.laplace(scale=3), rate=0.1, count=2, relation="add-remove")).epsilon(
        delta=1e-6
    )
    assert together.value > apart.value


def test_what_is_lost_outright_is_sampled_too():
    curve = acc.compose(acc.poisson(event=acc.approximate(epsilon=1, delta=0.01), rate=0.1, relation="add-remove"))
    for epsilon in (0.0, 0.1, 0.5):
        dominating = np.array([0.01, 0.99 / (1 + math.exp(-1)), 0.99 / (1 + math.e), 0.0])
        against = np.array([0.0, 0.99 / (1 + math.e), 0.99 / (1 + math.exp(-1)), 0.01])
        user = 0.9 * against + 0.1 * dominating
        truth = max(
            np.maximum(user - math.exp(epsilon) * against, 0).sum(),
            np.maximum(against - math.exp(epsilon) * user, 0).sum(),
        )
        assert curve.delta(epsilon=epsilon).value == pytest.approx(truth, rel=1e-9)


# [lemma sampled-tree]
def test_a_tree_samples_the_user_and_not_the_node():
    s, q = 1.0, 0.1
    found = acc.compose(
        acc.tree(node=acc.poisson_gaussian(std=1, rate=q, relation="add-remove"), leaves=2, participations=1)
    )  # a leaf and the root
    for epsilon in (0.0, 0.5, 2.0):
        truth = planar(([(1 - q, (0, 0)), (q, (s, s))], [(1, (0, 0))]), epsilon, cells=700)
        assert truth <= found.delta(epsilon=epsilon).upper <= truth * 1.01 + 1e-6
    deep = acc.compose(
        acc.tree(node=acc.poisson_gaussian(std=1, rate=q, relation="add-remove"), leaves=1000, participations=1)
    ).epsilon(delta=1e-6)
    assert deep.value == pytest.approx(
        acc.compose(acc.poisson_gaussian(std=1, sensitivity=math.sqrt(10), rate=q, relation="add-remove"))
        .epsilon(delta=1e-6)
        .value
    )
    noisy = acc.poisson(event=acc.laplace(scale=2), rate=q, relation="add-remove")
    shared = acc.compose(acc.poisson(event=acc.laplace(scale=2, count=3), rate=q, relation="add-remove")).epsilon(
        delta=1e-6
    )
    assert acc.compose(acc.tree(node=noisy, leaves=7, participations=1)).epsilon(delta=1e-6).value == shared.value


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: acc.poisson_gaussian(std=1, rate=0.1, relation="swap"), "relation"),
        (lambda: acc.poisson(event=acc.zcdp(rho=0.1), rate=0.1, relation="add-remove"), "only Rényi orders"),
        (lambda: acc.poisson(event=3, rate=0.1, relation="add-remove"), "one event"),
        (lambda: acc.poisson(event=acc.pure(epsilon=1), rate=0.1, relation="replace-one"), "no pair is known"),
        (lambda: acc.without_replacement(event=acc.gaussian(std=1), users=5, batch=6, relation="replace-one"), "batch"),
        (lambda: acc.without_replacement(event=acc.gaussian(std=1), users=5, batch=2, relation="swap"), "relation"),
        (
            lambda: acc.tree(
                node=acc.poisson_gaussian(std=1, rate=0.1, relation="add-remove"), leaves=8, participations=2
            ),
            "sampled anew each time",
        ),
        (
            lambda: acc.to_dp_event(acc.poisson_gaussian(std=1, rate=0.1, relation="replace-one")),
            "accountants disagree under REPLACE_ONE",
        ),
    ],
)
def test_what_no_theorem_covers_is_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make()
