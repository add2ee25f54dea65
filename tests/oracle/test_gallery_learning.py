"""What the gallery has of learning besides bandits, against searches and integrals done here, and other accountants."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import resolve
from privcheck.declare.procedures import OwnMechanism
from privcheck.errors import DeclarationError, ParameterError, TrajectoryError
from privcheck.terms.guarantees import PureDP
from privcheck.verification import verify
from privcheck_algorithms.gallery.k_means import count_and_sum
from privcheck_algorithms.gallery.output_perturbation import minimiser
from privcheck_algorithms.gallery.policy_evaluation import means, smooth_sensitivity
from privcheck_algorithms.gallery.private_q_learning import STATES, covariance
from privcheck_algorithms.gallery.private_training import dp_policy_gradient, primorl


def judge(name, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values), setting


def gaussian_epsilon(mu, delta):
    """ε of N(0, 1) against N(μ, 1) at δ (Balle & Wang 2018, Theorem 8)."""

    def excess(e):
        return norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta

    return brentq(excess, 0, mu**2 / 2 + 10 * mu)


# policy evaluation


def users(rng, size, states):
    """Users who visit some of the states, with the corners 0 and 1 among their returns."""
    returns = rng.choice([0.0, 1.0, 0.3], size=(size, states))
    return tuple(np.where(rng.random((size, states)) < 0.6, returns, np.nan))


def naive_smooth_sensitivity(visits, beta):
    """max over how many users are taken from the counts of e^{−kβ} times how far one more moves the means."""
    best = 0.0
    for k in range(1000):
        left = [max(visit - k, 1) for visit in visits]
        best = max(best, math.exp(-beta * k) * math.sqrt(math.fsum(1 / n**2 for n in left)))
    return best


@pytest.mark.parametrize("beta", [0.001, 0.02, 0.5])
def test_smooth_sensitivity_is_above_what_one_user_moves_and_itself_moves_by_a_factor(beta):
    rng = np.random.default_rng(5)
    for _ in range(300):
        size, states = int(rng.integers(1, 30)), int(rng.integers(1, 4))
        rows = users(rng, size, states)
        other = (*rows[:-1], users(rng, 1, states)[0])
        visits = [sum(not math.isnan(row[s]) for row in rows) for s in range(states)]
        here = smooth_sensitivity(rows, beta)
        assert here == pytest.approx(naive_smooth_sensitivity(visits, beta), rel=1e-12)
        assert np.linalg.norm(means(rows) - means(other)) <= here * (1 + 1e-12)
        assert here <= math.exp(beta) * smooth_sensitivity(other, beta) * (1 + 1e-12)


@pytest.mark.parametrize("states", [1, 3])
@pytest.mark.parametrize("epsilon", ["1/2", "1"])
def test_noise_of_smooth_sensitivity_is_undecided_and_never_holds(states, epsilon):
    verdict, setting = judge("dp-policy-evaluation", d=states, epsilon=epsilon)
    assert verdict.verdict == "undecided"
    assert verdict.upper_ratio == pytest.approx(1, rel=1e-9)
    (smooth,) = setting.declared.releases
    for factor in (Fraction(19, 20), Fraction(3)):
        mutant = replace(setting.declared, releases=(smooth.with_std(factor),))
        assert verify(mutant, setting.values).verdict == "undecided"
        cost = smooth.with_std(factor).guarantee.epsilon.number(setting.values)
        assert cost == pytest.approx(float(Fraction(epsilon) / factor), rel=1e-12)


def test_runs_of_smooth_noise_have_the_spread_of_the_data():
    """10⁵ runs: a variance lies within 6 standard errors of it, √(2/runs) each, but with probability 1e-8."""
    _, setting = judge("dp-policy-evaluation")
    (smooth,) = setting.declared.releases
    at, rng = smooth.at(setting.values), np.random.default_rng(4)
    rare = math.log(2e5)
    for rows in (users(rng, 1, 3), users(rng, 9, 3)):
        std = 5 * math.sqrt(2 * rare) * smooth_sensitivity(rows, 1 / (4 * (3 + rare)))
        drawn = smooth.draw(rng, rows, 100_000, at)
        assert np.abs(drawn.var(axis=0) / std**2 - 1).max() < 6 * math.sqrt(2 / 100_000)
        assert np.abs(drawn.mean(axis=0) - means(rows)).max() < 6 * std / math.sqrt(100_000)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_nothing_contradicts_the_smooth_theorem_in_one_state(epsilon):
    """δ at ε of two Gaussians of different spread, integrated: the claim that is left undecided is not refuted."""
    delta = 1e-5
    factor, beta = 5 * math.sqrt(2 * math.log(2 / delta)) / epsilon, epsilon / (4 * (1 + math.log(2 / delta)))
    low, high, absent = (np.array([value]) for value in (0.0, 1.0, np.nan))
    for others in (0, 1, 4, 40):
        for one, two in itertools.permutations((low, high, absent), 2):
            laws = []
            for last in (one, two):
                rows = (*[low] * others, last)
                laws.append(norm(means(rows)[0], factor * smooth_sensitivity(rows, beta)))
            p, q = laws
            reach = 12 * max(p.std(), q.std())

            def excess(x, p=p, q=q):
                return max(0.0, p.pdf(x) - math.exp(epsilon) * q.pdf(x))

            lost = quad(excess, -reach, reach, limit=500)[0]
            assert lost <= delta


@pytest.mark.parametrize(("epsilon", "states"), [("1", 3), ("1/4", 1), ("1/2", 10)])
def test_noise_of_global_sensitivity_holds_at_its_gaussian_curve(epsilon, states):
    verdict, setting = judge("dp-policy-evaluation", noise="global", epsilon=epsilon, d=states)
    mu = float(Fraction(epsilon)) / math.sqrt(2 * math.log(1.25e5))  # √d cancels
    expected = gaussian_epsilon(mu, 1e-5) / float(Fraction(epsilon))
    assert verdict.verdict == "holds"
    assert verdict.upper_ratio == pytest.approx(expected, rel=1e-6)
    assert verdict.lower_ratio == pytest.approx(expected, rel=1e-6)
    (release,) = setting.declared.releases
    quieter = replace(release, mechanism=release.mechanism.with_spread(release.mechanism.spread / 4))
    assert verify(replace(setting.declared, releases=(quieter,)), setting.values).verdict == "fails"


def test_returns_out_of_range_are_refused():
    with pytest.raises(TrajectoryError, match="between 0 and 1"):
        means((np.array([0.5, 1.5]),))


# Q-learning


def test_private_q_learning_is_undecided_with_the_figure_that_its_stated_change_makes():
    verdict, _ = judge("private-q-learning")
    assert verdict.verdict == "undecided"
    a = 4 * 0.001 * 11 / 64
    change = a * a + a
    sigma = math.sqrt(2 * 100 * math.log(math.e + 1e5)) * change
    delta = 1e-5 + math.exp(-((20 - 8.68 * sigma / math.sqrt(a)) ** 2) / 2)
    expected = gaussian_epsilon(math.sqrt(100) * change / sigma, delta)
    assert verdict.upper_ratio == pytest.approx(expected, rel=1e-6)
    # a band so narrow that noise leaves it all the time: 2k > 8.68√β·σ is what the theorem asks for
    with pytest.raises(ParameterError, match="at least 0 and below 1"):
        judge("private-q-learning", k=1, updates=10_000)


def test_the_pairs_of_private_q_learning_are_so_far_apart_as_the_kernel_norm_says():
    """‖C·K(s, ·)‖ in the kernel's space is C at any number of states: changeᵀ K⁻¹ change = C²."""
    beta = 64 / (4 * 0.001 * 11)
    for states in (STATES, np.linspace(0, 1, 21)):
        kernel = np.exp(-beta * np.abs(states[:, None] - states))
        for row in range(len(states)):
            assert kernel[row] @ np.linalg.solve(kernel, kernel[row]) == pytest.approx(1, rel=1e-9)
    assert covariance(2.0)[0, 1] == pytest.approx(math.exp(-1), rel=1e-12)
    _, setting = judge("private-q-learning")
    (one,) = setting.declared.releases
    at = one.at(setting.values)
    for known in one.pairs(setting.declared.relation, setting.values):
        change = known.data[0] - known.data[1]
        assert change @ np.linalg.solve(covariance(at["beta"]), change) == pytest.approx(at["moved"] ** 2, rel=1e-9)
        # the mean of the loss of a Gaussian pair is half its squared distance: 10⁵ runs, 6 standard errors
        scores = known.sampler(np.random.default_rng(1), np.ones(100_000, dtype=bool))
        squared = at["updates"] * at["moved"] ** 2 / at["sigma"] ** 2
        assert abs(scores.mean() - squared / 2) < 6 * math.sqrt(squared / 100_000)


# output perturbation


def naive_minimiser(signed, regularisation):
    """By another optimiser, of the Huber loss as it is printed: 0, (1.5 − z)²/2, 1 − z."""

    def objective(w):
        z = signed @ w
        loss = np.where(z > 1.5, 0, np.where(z < 0.5, 1 - z, (1.5 - z) ** 2 / 2))
        return loss.mean() + regularisation / 2 * w @ w

    return minimize(objective, np.zeros(signed.shape[1]), method="BFGS", options={"gtol": 1e-9}).x


# [lemma minimiser-move]
@pytest.mark.parametrize("regularisation", [0.03, 0.1, 2.0])
def test_no_user_moves_the_minimiser_further_than_two_over_n_lambda_and_one_does(regularisation):
    rng = np.random.default_rng(2)
    for size in (3, 11, 40):
        bound = 2 / (size * regularisation)
        for _ in range(10):
            rows = rng.normal(size=(size, 2))
            rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
            other = rows.copy()
            other[-1] = -rows[-1] / np.linalg.norm(rows[-1])
            first, second = (np.array(minimiser(tuple(map(tuple, x)), regularisation)) for x in (rows, other))
            assert np.linalg.norm(first - second) <= bound * (1 + 1e-9)
            assert first == pytest.approx(naive_minimiser(rows, regularisation), abs=1e-4)
    # opposite vectors beside others who cancel out attain it
    pair = [(*[(0.0, 1.0), (0.0, -1.0)] * 50, (sign, 0.0)) for sign in (1.0, -1.0)]
    moved = np.subtract(*(np.array(minimiser(rows, regularisation)) for rows in pair))
    if regularisation >= 0.03:
        assert np.linalg.norm(moved) == pytest.approx(2 / (101 * regularisation), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "dimension"), [("1", 2), ("1/10", 1), ("3", 5)])
def test_output_perturbation_holds_given_its_price_and_less_noise_does_not(epsilon, dimension):
    verdict, setting = judge("erm-output-perturbation", epsilon=epsilon, d=dimension)
    assert verdict.verdict == "holds"
    assert verdict.upper_ratio == pytest.approx(1, rel=1e-12)
    assert verdict.given == ("classifier",)
    (one,) = setting.declared.releases
    quieter = replace(setting.declared, releases=(one.with_std(Fraction(19, 20)),))
    assert verify(quieter, setting.values).verdict != "holds"
    understated = OwnMechanism(
        "classifier", arguments={**one.arguments, "scale": one.spread * Fraction(19, 20)}, spread="scale",
        sampler=one.sampler, log_density=one.log_density, relation=one.relation, neighbours=one.neighbours,
        price=lambda **_: PureDP(setting.values["epsilon"]),
    )  # fmt: skip
    with pytest.raises(DeclarationError, match="densities of neighbours differ"):
        verify(replace(setting.declared, releases=(understated,)), setting.values)


# k-means


def naive_counts_and_sums(points, centres):
    table = [[0.0, 0.0, 0.0] for _ in centres]
    for x, y in points:
        nearest = min(range(len(centres)), key=lambda j: (x - centres[j][0]) ** 2 + (y - centres[j][1]) ** 2)
        for place, value in enumerate((1.0, x, y)):
            table[nearest][place] += value
    return table


def test_k_means_costs_its_claim_where_points_are_added_and_twice_where_they_are_replaced():
    for relation, cost, word in (("add-remove", 1.0, "holds"), ("replace-one", 2.0, "fails")):
        verdict, _ = judge("private-k-means", relation=relation, epsilon="1/3")
        assert verdict.verdict == word
        assert (verdict.upper_ratio, verdict.lower_ratio) == (pytest.approx(cost), pytest.approx(cost))
    centres = [(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]
    grid = list(itertools.product((-1.0, -0.4, 0.3, 1.0), repeat=2))
    tables = [np.array(naive_counts_and_sums([point], centres)) for point in grid]
    for point, table in zip(grid, tables, strict=True):
        assert count_and_sum((np.array(point),)) == pytest.approx(table)
    assert max(np.abs(table).sum() for table in tables) == 3
    assert max(np.abs(a - b).sum() for a, b in itertools.combinations(tables, 2)) == 6
    with pytest.raises(TrajectoryError, match="points in"):
        count_and_sum((np.array([0.0, 1.2]),))


# trained policies whose texts were not at hand


def trained(declare, **readings):
    declaration = declare(readings)
    return verify(declaration, resolve(declaration.parameters, {}, owner=declaration.name))


@pytest.mark.parametrize(("clipping", "norm"), [("ensemble", 1), ("each-model", 7**0.5)])
def test_primorl_costs_what_another_accountant_says(clipping, norm):
    found = trained(primorl, clipping=clipping)
    peer = PLDAccountant()
    peer.compose(SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1 / norm)), 500))
    assert found.upper_ratio == pytest.approx(peer.get_epsilon(1e-5) / 1.66, rel=1e-3)
    assert found.verdict == ("holds" if norm == 1 else "fails")


@pytest.mark.parametrize(("users", "times"), [("once", 1), ("every-update", 40)])
def test_a_policy_gradient_of_users_who_come_again_costs_a_larger_gaussian(users, times):
    found = trained(dp_policy_gradient, users=users)
    assert found.upper_ratio == pytest.approx(gaussian_epsilon(0.26805 * times**0.5, 1e-5), rel=1e-6)
    assert (found.verdict, found.joint) == (("holds", "follows") if times == 1 else ("fails", "unproved"))
