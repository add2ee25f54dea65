"""Matrix mechanisms as procedures, and the gallery's: every pattern and sign at tiny sizes, closed forms, a peer."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import norm

from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import (
    Encoder,
    MatrixMechanism,
    banded_square_root,
    binary_tree,
    prefix_sums,
    square_root,
)
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.pricing.calibration import least_noise
from privcheck.terms.guarantees import ZCDP, ApproxDP
from privcheck.terms.symbols import rho, symbol
from privcheck.verification import verify
from privcheck.verification.witness import known_pairs

k = symbol("k", "count")
CLAIM = Claim(ApproxDP(1, "1/100000"), source="a test")


def gaussian_epsilon(mu, delta):
    """ε of N(μ, 1) against N(0, 1) at δ, from the normal distribution function."""

    def excess(epsilon):
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return brentq(excess, 0, 200, xtol=1e-12)


def declare(mechanism, relation, claim=CLAIM):
    used = mechanism.facts.symbols
    parameters = tuple(Parameter(name=n, default=2, kind="count", meaning=n) for n in ("k",) if n in used)
    if claim.guarantee == ZCDP(rho):
        parameters += (Parameter(name="rho", default=1, kind="positive", meaning="ρ"),)
    return Declaration(
        name="matrix", title="", source="a test", relation=relation, releases=(), procedures=(mechanism,), claim=claim,
        parameters=parameters,
    )  # fmt: skip


def fixed(matrix):
    given = np.array(matrix, dtype=float)
    return Encoder(words="matrix of a test", of=lambda: given)


def every_pattern(steps, most, apart, order):
    for size in range(1, most + 1):
        for pattern in itertools.combinations(range(steps), size):
            gaps = [later - earlier for earlier, later in itertools.pairwise(pattern)]
            if all(gap == apart if order == "fixed" else gap >= apart for gap in gaps):
                yield pattern


def by_hand(matrix, most, apart, order):
    """(the largest ‖Σ ±cᵢ‖ over patterns and signs, the largest √Σ|⟨cᵢ, cⱼ⟩|): below and above the truth."""
    low = high = 0.0
    for pattern in every_pattern(matrix.shape[1], most, apart, order):
        for signs in itertools.product((1, -1), repeat=len(pattern)):
            low = max(
                low, math.sqrt(sum(sum(s * row[i] for s, i in zip(signs, pattern, strict=True)) ** 2 for row in matrix))
            )
        products = [sum(row[i] * row[j] for row in matrix) for i in pattern for j in pattern]
        high = max(high, math.sqrt(sum(map(abs, products))))
    return low, high


@pytest.mark.parametrize("seed", range(24))
def test_cost_and_pairs_enclose_every_pattern_and_sign(seed):
    rng = np.random.default_rng(seed)
    steps, most, apart = int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    order = ("any", "fixed")[seed % 2]
    matrix = np.tril(rng.normal(size=(steps, steps))) + np.eye(steps)
    matrix = np.abs(matrix) if seed % 3 else matrix
    low, high = by_hand(matrix, most, apart, order)
    std = 3.0
    mechanism = MatrixMechanism(
        "m", encoder=fixed(matrix), noise_multiplier=3, participations=most, separation=apart, order=order
    )
    for relation, moved in ((ZeroOut("user", trajectories=most), 1), (ReplaceOne("user", trajectories=most), 2)):
        declaration = declare(mechanism, relation)
        cost = mechanism.cost(relation)
        mu = math.sqrt(cost.mu_squared.number())
        assert moved * low / std <= mu * (1 + 1e-12)
        assert mu <= moved * high / std * (1 + 1e-9)
        assert cost.rho.number() == pytest.approx(mu**2 / 2, rel=1e-12)
        ours = account(declaration).at({}).epsilon(1e-5)
        assert gaussian_epsilon(moved * low / std, 1e-5) <= ours * (1 + 1e-9)
        losses = [one.loss for one in known_pairs(declaration, {})]
        assert max(losses) <= gaussian_epsilon(moved * low / std, 1e-5) * (1 + 1e-9)
        if seed % 3:  # no product of columns is negative: equal contributions are worst
            assert max(losses) >= 0.9999 * ours


@pytest.mark.parametrize("steps", [1, 2, 5, 16, 33])
def test_the_square_root_squares_to_prefix_sums(steps):
    root = square_root(steps).matrix({})
    np.testing.assert_allclose(root @ root, prefix_sums(steps).matrix({}), atol=1e-12)
    naive = [math.comb(2 * i, i) / 4**i for i in range(steps)]
    assert root[:, 0].tolist() == pytest.approx(naive, rel=1e-12)
    for bands in (1, 3, steps):
        banded = banded_square_root(steps, bands).matrix({})
        below = np.subtract.outer(np.arange(steps), np.arange(steps))
        np.testing.assert_array_equal(banded, np.where(below < bands, root, 0.0))


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 13])
def test_the_binary_tree_has_a_row_for_every_complete_node(steps):
    rows = []
    size = 1
    while size <= steps:
        rows += [[float(start <= i < start + size) for i in range(steps)] for start in range(0, steps - size + 1, size)]
        size *= 2
    np.testing.assert_array_equal(binary_tree(steps).matrix({}), np.array(rows))


def test_one_participation_in_the_square_root_moves_its_first_column():
    """The largest column of the square root is Σ (binom(2i, i)/4^i)², about 1 + (ln n + γ + ln 16)/π − 1."""
    mechanism = MatrixMechanism("m", encoder=square_root(1000), noise_multiplier=1)
    squares = sum((math.comb(2 * i, i) / 4**i) ** 2 for i in range(1000))
    assert mechanism.cost(ZeroOut("user")).mu_squared.number() == pytest.approx(squares, rel=1e-12)
    assert squares == pytest.approx((math.log(1000) + 0.5772156649 + math.log(16)) / math.pi, rel=1e-3)


@pytest.mark.parametrize("rounds", [1, 12])
def test_an_encoder_of_one_band_is_dp_sgd(rounds):
    mechanism = MatrixMechanism("m", encoder=banded_square_root(rounds, 1), noise_multiplier=1, rate="1/20")
    peer = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-4)
    sampled = dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(1.0))
    peer.compose(dp_accounting.SelfComposedDpEvent(sampled, rounds))
    for relation in (AddRemoveOne("user"), ZeroOut("user")):
        declaration = declare(mechanism, relation)
        ours, theirs = account(declaration).at({}).epsilon(1e-5), peer.get_epsilon(1e-5)
        assert ours == pytest.approx(theirs, rel=2e-3)
        lower = verify(declaration, {}).lower_ratio
        assert 0.995 * ours <= lower <= ours


def test_sampled_groups_of_a_band_are_one_dp_sgd_each():
    """A group's steps share no row: n/b rounds of columns of one norm, and fewer than that are not exceeded."""
    mechanism = MatrixMechanism("m", encoder=banded_square_root(32, 4), noise_multiplier=2, rate="1/10", separation=4)
    declaration = declare(mechanism, AddRemoveOne("user"))
    column = math.sqrt(sum((math.comb(2 * i, i) / 4**i) ** 2 for i in range(4)))
    ours = account(declaration).at({}).epsilon(1e-5)
    peer = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-4)
    sampled = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(2 / column))
    peer.compose(dp_accounting.SelfComposedDpEvent(sampled, 8))
    assert ours == pytest.approx(peer.get_epsilon(1e-5), rel=2e-3)  # the longest columns of a group are its first ones
    assert 0.99 * ours <= verify(declaration, {}).lower_ratio <= ours
    budget = Parameter(name="rho", default=1, kind="positive", meaning="ρ")
    in_rho = replace(declaration, claim=Claim(ZCDP(rho), source="a test"), parameters=(budget,))
    # every user in all samples: 8 columns, at 2 times the clipping norm
    assert verify(in_rho, in_rho.values()).upper_ratio == pytest.approx(8 * column**2 / (2 * 2**2), rel=1e-9)


@pytest.mark.parametrize(
    ("refused", "remedy"),
    [
        (
            lambda: declare(MatrixMechanism("m", encoder=square_root(4), noise_multiplier=1), AddRemoveOne("user")),
            "ZeroOut",
        ),
        (
            lambda: declare(
                MatrixMechanism("m", encoder=square_root(4), noise_multiplier=1, rate="1/2"), ReplaceOne("user")
            ),
            "declare AddRemoveOne or ZeroOut",
        ),
        (
            lambda: declare(
                MatrixMechanism("m", encoder=square_root(4), noise_multiplier=1, participations=2), ZeroOut("user")
            ),
            "of one number",
        ),
        (lambda: declare(MatrixMechanism("m", encoder=square_root(4), noise_multiplier=0), ZeroOut("user")), "above 0"),
        (
            lambda: declare(MatrixMechanism("m", encoder=square_root(0), noise_multiplier=1), ZeroOut("user")),
            "a whole number, at least 1",
        ),
        (
            lambda: declare(MatrixMechanism("m", encoder=square_root(4), noise_multiplier=1, rate=2), ZeroOut("user")),
            "1 minus its rate",
        ),
        (
            lambda: MatrixMechanism("m", encoder=square_root(4), noise_multiplier=1, rate="1/2", participations=2),
            "leave",
        ),
        (lambda: MatrixMechanism("m", encoder=np.eye(3), noise_multiplier=1), "expected Encoder"),
        (lambda: MatrixMechanism("m", encoder=square_root(4), noise_multiplier=1, order="both"), "'any', 'fixed'"),
        (
            lambda: verify(declare(MatrixMechanism("m", encoder=fixed([[np.nan]]), noise_multiplier=1), ZeroOut()), {}),
            "finite",
        ),
        (
            lambda: verify(
                declare(
                    MatrixMechanism("m", encoder=square_root(8), noise_multiplier=1, rate="1/2", separation=3),
                    ZeroOut(),
                ),
                {},
            ),
            "bandwidth",
        ),
        (lambda: square_root(5_001).matrix({}), "declare fewer"),
        (lambda: Encoder(words="w", of=None), "expected a function"),
        (lambda: Encoder(words="w", of=lambda: 1 / 0).matrix({}), "raised ZeroDivisionError"),
    ],
)
def test_what_means_nothing_is_refused_with_a_remedy(refused, remedy):
    with pytest.raises((DeclarationError, ParameterError), match=remedy):
        refused()


def judge(name, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values), setting


@pytest.mark.parametrize(("steps", "noise"), [(1024, 4), (1000, 7), (1, 2), (77, 1)])
def test_dp_ftrl_of_one_epoch_costs_what_another_accountant_says(steps, noise):
    verdict, setting = judge("dp-ftrl", steps=steps, noise_multiplier=noise)
    levels = math.floor(math.log2(steps)) + 1
    numbers = account(setting.declared).at(setting.values)
    assert numbers.rho == pytest.approx(levels / (2 * noise**2), rel=1e-12)
    assert numbers.epsilon(1e-5) == pytest.approx(gaussian_epsilon(math.sqrt(levels) / noise, 1e-5), rel=1e-9)
    peer = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    peer.compose(dp_accounting.SingleEpochTreeAggregationDpEvent(noise, [steps]))
    assert numbers.epsilon(1e-5) <= peer.get_epsilon(1e-5)  # theirs counts ⌈log₂(T + 1)⌉ levels, by Rényi divergences
    assert verdict.lower_ratio == pytest.approx(verdict.upper_ratio, rel=1e-9)


@pytest.mark.parametrize(("steps", "epochs"), [(8, 3), (16, 2), (5, 4), (256, 5)])
def test_dp_ftrl_of_several_epochs_charges_nodes_above_two_visits_more(steps, epochs):
    verdict, setting = judge("dp-ftrl", steps=steps, epochs=epochs)
    leaves, squares, size = steps * epochs, 0, 1
    visited = range(0, leaves, steps)
    while size <= leaves:
        for start in range(0, leaves - size + 1, size):
            squares += sum(start <= leaf < start + size for leaf in visited) ** 2
        size *= 2
    levels = math.floor(math.log2(steps)) + 1
    assert squares > epochs * levels  # what restarted trees would cost
    numbers = account(setting.declared).at(setting.values)
    assert numbers.rho >= squares / 32 * (1 - 1e-12)
    if steps & (steps - 1) == 0:  # aligned epochs: the first step of each is worst
        assert numbers.rho == pytest.approx(squares / 32, rel=1e-12)
        assert verdict.lower_ratio == pytest.approx(verdict.upper_ratio, rel=1e-9)
    tree = MatrixMechanism(
        "t", encoder=binary_tree(leaves), noise_multiplier=4, participations=epochs, separation=steps
    )
    assert tree.cost(ZeroOut("user", trajectories=epochs)).rho.number() >= numbers.rho * (1 - 1e-9)


@pytest.mark.parametrize(("steps", "epochs"), [(8, 3), (1000, 5)])
def test_dp_ftrl_with_restarted_trees_costs_what_another_accountant_says(steps, epochs):
    verdict, setting = judge("dp-ftrl", steps=steps, epochs=epochs, trees="restarted")
    levels = math.floor(math.log2(steps)) + 1
    numbers = account(setting.declared).at(setting.values)
    assert numbers.rho == pytest.approx(epochs * levels / 32, rel=1e-12)
    peer = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    peer.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.SingleEpochTreeAggregationDpEvent(4, [steps]), epochs))
    assert numbers.epsilon(1e-5) <= peer.get_epsilon(1e-5)
    assert verdict.lower_ratio == pytest.approx(verdict.upper_ratio, rel=1e-9)


@pytest.mark.parametrize("given", [{}, {"epochs": 3, "steps": 64}])
def test_matrix_factorisation_is_the_gaussian_of_its_worst_steps(given):
    verdict, setting = judge("matrix-factorisation", **given)
    epochs, steps = given.get("epochs", 1), given.get("steps", 512)
    coefficients = [math.comb(2 * i, i) / 4**i for i in range(epochs * steps)]
    moved = np.zeros(epochs * steps)
    for first in range(0, epochs * steps, steps):  # every epoch's first step: the coefficients fall
        moved[first:] += coefficients[: epochs * steps - first]
    epsilon = gaussian_epsilon(float(np.linalg.norm(moved)) / 4, 1e-5)
    assert account(setting.declared).at(setting.values).epsilon(1e-5) == pytest.approx(epsilon, rel=1e-9)
    assert verdict.lower_ratio == pytest.approx(epsilon / 2, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "given"),
    [("dp-ftrl", {}), ("matrix-factorisation", {"steps": 64}), ("banded-matrix-factorisation", {"steps": 64}),
     ("banded-matrix-factorisation", {"sampling": "none", "steps": 64})],
)  # fmt: skip
def test_the_least_noise_holds_and_five_per_cent_less_is_refuted(name, given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    epsilon = float(setting.values["epsilon"])
    (least,) = least_noise(setting.declared, setting.values, epsilon=epsilon, delta=1e-5).releases
    for factor, verdict in ((1.001, "holds"), (0.95, "fails")):
        noise = Fraction(least.ratio * factor) * setting.values["noise_multiplier"]
        values = {**setting.values, "noise_multiplier": noise}
        assert verify(setting.declared, values).verdict == verdict


@pytest.mark.parametrize("m", [1, 2, 7])
def test_noise_for_one_trajectory_undercharges_a_user_with_m_of_them_m_squared_fold(m):
    verdict, _ = judge("bounded-contribution-apvi", m=m, noise="trajectory", H=3, S=2, A=2)
    first, second = verdict.witness.pair
    assert (first.users, second.users) == (m, m)
    moved = 0.0
    for table in ("visits", "transitions"):  # counted one by one, from the witness's own rows
        counts = {}
        for sign, user in ((1, first), (-1, second)):
            for states, actions in zip(user.states.tolist(), user.actions.tolist(), strict=True):
                for h, action in enumerate(actions):
                    cell = (h, states[h], action, states[h + 1] if table == "transitions" else None)
                    counts[cell] = counts.get(cell, 0) + sign
        moved += sum(change**2 for change in counts.values())
    assert moved / (2 * 2 * 3) == pytest.approx(m**2, rel=1e-12)  # ρ at a variance of 2H/ρ and ρ = 1
    assert verdict.upper_ratio == m**2
    assert verdict.lower_ratio == pytest.approx(m**2, rel=1e-12)
    assert verdict.verdict == ("holds" if m == 1 else "fails")
    enough = verify(*_users_noise(m))
    assert (enough.verdict, enough.method, enough.lower_ratio) == ("holds", "proved", 1.0)


def _users_noise(m):
    setting = resolve_setting("bounded-contribution-apvi", {"m": str(m)})
    return setting.declared, setting.values
