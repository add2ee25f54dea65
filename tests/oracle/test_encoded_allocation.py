"""Balls in bins of matrix mechanisms: integrals for few bins, simulated adaptive attackers, and the declaration.

Simulations err by more than their margin with a probability below 1e-9 each (Hoeffding), of fewer than 40.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr

from privcheck import accounting as acc
from privcheck.accounting.engine.allocated_encoded import projection, trees_above, trees_below
from privcheck.accounting.engine.cascades import cascade, shrink
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Claim, Declaration
from privcheck.declare.procedures import Encoder, MatrixMechanism, banded_square_root
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.terms.guarantees import ApproxDP
from privcheck.verification import verify

RUNS = 20_000
MARGIN = math.sqrt(math.log(2e9) / (2 * RUNS))


def root(steps, bands):
    """The banded square root of prefix sums, entry by entry."""
    return np.array([
        [math.comb(2 * (i - j), i - j) / 4 ** (i - j) if 0 <= i - j < bands else 0.0 for j in range(steps)]
        for i in range(steps)
    ])  # fmt: skip


def means_of(encoder, bins):
    """Sums of the columns of every bin of one group of users, by a loop."""
    means = np.zeros((len(encoder), bins))
    for step in range(encoder.shape[1]):
        means[:, step % bins] += encoder[:, step]
    return means


def excess(gram, x):
    """E(r − x)₊ for up to three bins: the last number in closed form, the others by the trapezoid rule."""
    b = len(gram)
    factor = np.linalg.cholesky(gram)
    g = np.linspace(-9, 13, 8001 if b == 2 else 331)
    w = np.exp(-g * g / 2) / math.sqrt(2 * math.pi) * (g[1] - g[0])
    points = np.stack(np.meshgrid(*[g] * (b - 1), indexing="ij"), axis=-1).reshape(-1, b - 1)
    weights = functools.reduce(np.multiply.outer, [w] * (b - 1)).ravel()
    known = np.exp(points @ factor[: b - 1, : b - 1].T - np.diag(gram)[: b - 1] / 2).sum(axis=1) / b
    mean = np.exp(points @ factor[b - 1, : b - 1] - gram[b - 1, b - 1] / 2 + factor[b - 1, b - 1] ** 2 / 2) / b
    s, strike = factor[b - 1, b - 1], x - known
    with np.errstate(divide="ignore", invalid="ignore"):
        d = (np.log(mean / strike) + s * s / 2) / s
    call = np.where(strike > 0, mean * ndtr(d) - strike * ndtr(d - s), mean - strike)
    return float(weights @ call)


def deltas_of(gram, epsilon):
    """Both directions, from E(r − x)₊; that of adding is a difference of numbers near 1, good to 1e-10."""
    remove = excess(gram, math.exp(epsilon))
    return remove, math.exp(epsilon) * (excess(gram, math.exp(-epsilon)) - 1) + 1


GRAMS = [
    np.array([[1.0, 0.4], [0.4, 1.0]]),
    np.array([[1.5, 1.2], [1.2, 1.1]]),
    np.array([[0.3, 0.0], [0.0, 0.2]]),
    np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]]),
    np.array([[0.9, 0.1, 0.0], [0.1, 0.6, 0.3], [0.0, 0.3, 0.8]]),
]


# [lemma encoded-allocation] [lemma allocation-tree] [lemma allocation-below]
@pytest.mark.parametrize("gram", GRAMS, ids=range(len(GRAMS)))
def test_bounds_hold_the_integral_over_few_bins(gram):
    encoder = np.linalg.cholesky(gram).T
    curve = acc.compose(acc.matrix_random_allocation(encoder=encoder, std=1, bins=len(gram), relation="add-remove"))
    for epsilon in (0.05, 0.3, 1.0, 2.0, 4.0, 5.0):
        (remove, add), figure = deltas_of(gram, epsilon), curve.delta(epsilon=epsilon)
        assert remove <= figure.upper * (1 + 1e-7) + 1e-16
        assert add <= figure.upper + 1e-9
        assert figure.lower * (1 - 1e-7) <= max(remove, add + 1e-9)
    half = curve.delta(epsilon=0.3)
    assert half.lower >= 0.5 * half.upper


# [lemma allocation-order]
@pytest.mark.parametrize("seed", range(6))
def test_the_curve_grows_in_the_copositive_order(seed):
    rng = np.random.default_rng(seed)
    a = rng.uniform(size=(3, 3))
    gram = a @ a.T / 3 + 0.1 * np.eye(3)
    positive, semidefinite = rng.uniform(size=(3, 3)) / 8, rng.normal(size=(3, 1)) / 3
    for added in (positive + positive.T, semidefinite @ semidefinite.T):
        raised = gram + added
        if np.linalg.eigvalsh(raised)[0] < 1e-3:
            continue
        for x in (0.4, 0.9, 1.3, 3.0):
            assert excess(gram, x) <= excess(raised, x) * (1 + 1e-8) + 1e-10


def turned(levels):
    """K″ of a tree, written out."""
    gram = np.zeros((1, 1))
    for variance, copies in levels:
        gram = np.kron(np.eye(copies), gram + variance)
    return gram


def copositive(matrix):
    """Whether xᵀHx ≥ 0 for all x ≥ 0, by looking at every face: no face has a negative minimum inside."""
    size = len(matrix)
    for faces in range(1, size + 1):
        for face in itertools.combinations(range(size), faces):
            values, vectors = np.linalg.eigh(matrix[np.ix_(face, face)])
            for value, vector in zip(values, vectors.T, strict=True):
                if value < -1e-10 and (np.all(vector > 0) or np.all(vector < 0)):
                    return False
    return True


def stationary(b, falls):
    distance = np.abs(np.subtract.outer(np.arange(b), np.arange(b)))
    around = np.minimum(distance, b - distance)
    return np.array([*falls, *[0.0] * b])[around]


# [lemma allocation-tree]
@pytest.mark.parametrize("falls", [(1.0,), (1.0, 0.4), (2.0, 1.4, 0.9), (0.2, 0.19, 0.15, 0.1), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize("b", [2, 5, 9])
def test_trees_above_are_above_for_some_choice_of_bins(b, falls):
    """Some layout of as many bins as the tree has leaves has a K″ − K that is copositive, for every turn of it."""
    gram = stationary(b, falls)
    for levels in trees_above(gram[0]):
        raised = turned(levels)
        count = len(raised)
        assert count <= b
        layouts = (
            places for places in itertools.permutations(range(b), count) if places[0] == 0 and _rising(places, b)
        )
        assert any(copositive(raised - gram[np.ix_(places, places)] + 1e-9 * np.eye(count)) for places in layouts)


def _rising(places, b):
    return all(x < y for x, y in itertools.pairwise(places)) and places[-1] < b


# [lemma allocation-below]
@pytest.mark.parametrize("seed", range(8))
def test_trees_below_are_below_entry_by_entry(seed):
    rng = np.random.default_rng(seed)
    b = int(rng.integers(2, 12))
    means = np.abs(rng.normal(size=(6, b))) if seed % 2 else np.tril(root(b, 3))
    gram = means.T @ means
    for levels, share in trees_below(gram):
        lowered = turned(levels)
        count = len(lowered)
        assert share == pytest.approx(count / b)
        assert np.all(lowered <= gram[:count, :count] * (1 + 1e-12))


# [lemma cascade-order]
@pytest.mark.parametrize(("variance", "copies"), [(1.0, 100), (0.25, 20), (4.0, 24), (1.7, 2), (0.01, 7), (9.0, 3)])
def test_cascades_hold_independent_rounds(variance, copies):
    """Another engine, by contour integrals, for a cascade of one level."""
    above, below = (cascade(((variance, copies),), up=up) for up in (True, False))
    curve = acc.compose(acc.random_allocation(std=1 / math.sqrt(variance), rounds=copies, relation="add-remove"))
    for epsilon in (0.1, 0.5, 2.0, 4.0):
        figure = curve.delta(epsilon=epsilon)
        x = np.array([math.exp(epsilon), math.exp(-epsilon)])
        upper = max(float(above.excesses(x)[0]), math.exp(epsilon) * float(above.shortfalls(x)[1]))
        lower = max(float(below.excesses(x)[0]), math.exp(epsilon) * float(below.shortfalls(x)[1]))
        assert lower <= figure.upper * (1 + 1e-9)
        assert upper >= figure.lower * (1 - 1e-9)
        if figure.upper > 1e-9:
            assert upper <= figure.upper * 1.05 + 1e-12
            assert lower >= figure.lower * 0.95 - 1e-12


# [lemma cascade-order]
def test_a_cascade_of_two_levels_is_an_integral():
    """Mean of two products of one shared and two own factors, by nested quadrature."""
    shared, own = 0.5, 0.8
    gram = shared * np.ones((2, 2)) + own * np.eye(2)
    above, below = (cascade(((own, 2), (shared, 1)), up=up) for up in (True, False))
    for x in (0.2, 0.7, 1.0, 1.5, 4.0):
        truth, at = excess(gram, x), np.array([x])
        assert float(below.excesses(at)[0]) <= truth * (1 + 1e-7)
        assert float(above.excesses(at)[0]) >= truth * (1 - 1e-7)
        assert float(above.excesses(at)[0]) <= truth * 1.02
        assert float(below.excesses(at)[0]) >= truth * 0.98
    kept = shrink(below, 0.5)
    assert float(kept.values @ kept.masses) == pytest.approx(1, abs=1e-6)


def test_the_projection_is_below_every_integral():
    for gram in GRAMS:
        law = projection(gram)
        for x in (0.5, 1.0, 1.8):
            assert float(law.excesses(np.array([x]))[0]) <= excess(gram, x) * (1 + 1e-9)


class Attacker:
    """Contributions of norm 1 at most, vectors of two numbers, that depend on the rows released before."""

    def __init__(self, kind, rng):
        self.kind, self.angles = kind, rng.uniform(0, 2 * math.pi, size=64)

    def contribution(self, step, outputs):
        if self.kind == "constant" or step == 0:
            return np.tile([1.0, 0.0], (len(outputs), 1))
        past = outputs[:, :step]
        if self.kind == "following":
            total = past.sum(axis=1)
            return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)
        stopped = past[:, :, 0].max(axis=1) > 1.5
        angle = self.angles[step]
        return np.where(stopped[:, None], 0.0, [[math.cos(angle), math.sin(angle)]])


def simulate(encoder, bins, std, attacker, rng, *, with_user):
    """Log likelihood ratios of runs of the mechanism itself, with and without a user, row by row."""
    rows = len(encoder)
    outputs, shifts = np.zeros((RUNS, rows, 2)), np.zeros((RUNS, bins, rows, 2))
    place = rng.integers(bins, size=RUNS)
    for row in range(rows):
        given = attacker.contribution(row, outputs)
        shifts[:, row % bins] += encoder[:, row][None, :, None] * given[:, None, :]
        moved = shifts[np.arange(RUNS), place, row] if with_user else 0.0
        outputs[:, row] = moved + std * rng.standard_normal((RUNS, 2))
    exponents = (np.einsum("rbij,rij->rb", shifts, outputs) - (shifts**2).sum(axis=(2, 3)) / 2) / std**2
    return logsumexp(exponents, axis=1) - math.log(bins)


# [lemma encoded-allocation]
@pytest.mark.parametrize(
    ("kind", "bands", "bins", "epochs", "std"),
    [("constant", 3, 6, 2, 2.0), ("following", 3, 6, 2, 2.0), ("stopping", 3, 6, 2, 2.0), ("constant", 8, 4, 2, 3.0)],
)
def test_no_attacker_sees_more_and_the_worst_sees_as_much(kind, bands, bins, epochs, std):
    rng = np.random.default_rng(11)
    encoder = root(bins * epochs, bands)
    curve = acc.compose(acc.matrix_random_allocation(encoder=encoder, std=std, bins=bins, relation="zero-out"))
    present, absent = (
        simulate(encoder, bins, std, Attacker(kind, np.random.default_rng(1)), rng, with_user=user)
        for user in (True, False)
    )
    for epsilon in (0.1, 0.5):
        remove = float(np.mean(np.maximum(-np.expm1(np.minimum(epsilon - present, 0)), 0)))
        add = float(np.mean(np.maximum(-np.expm1(np.minimum(epsilon + absent, 0)), 0)))
        figure = curve.delta(epsilon=epsilon)
        assert max(remove, add) <= figure.upper + MARGIN
        if kind == "constant":
            assert max(remove, add) >= figure.lower - MARGIN


def test_groups_of_as_many_as_bands_are_random_allocations():
    """Their steps share no row: an epoch of independent noise, with √epochs columns, before the last ones are cut."""
    bands, bins, epochs = 4, 5, 3
    event = acc.matrix_random_allocation(
        encoder=root(bands * bins * epochs, bands), std=2, bins=bins, separation=bands, relation="add-remove"
    )
    column = math.sqrt(epochs * sum((math.comb(2 * i, i) / 4**i) ** 2 for i in range(bands)))
    direct = acc.random_allocation(std=2, sensitivity=column, rounds=bins, relation="add-remove")
    assert event.epsilon(delta=1e-5).upper == pytest.approx(direct.epsilon(delta=1e-5).upper, rel=1e-9)
    assert event.epsilon(delta=1e-5).lower == pytest.approx(direct.epsilon(delta=1e-5).lower, rel=1e-9)
    assert (2 * event).delta(epsilon=1).value == pytest.approx((2 * direct).delta(epsilon=1).value, rel=1e-6)


def test_bounds_and_what_a_known_bin_would_cost_are_in_order():
    encoder = root(48, 5)
    for std, relation in ((1.5, "add-remove"), (6.0, "zero-out")):
        figure = acc.matrix_random_allocation(encoder=encoder, std=std, bins=24, relation=relation).epsilon(delta=1e-5)
        known = acc.matrix_gaussian(
            encoder=encoder, std=std, sensitivity=1, participations=2, separation=24, order="fixed"
        ).epsilon(delta=1e-5)
        assert 0 < figure.lower <= figure.value <= figure.upper < known.value / 1.5
    loud = acc.matrix_random_allocation(encoder=encoder, std=0.1, bins=24, relation="add-remove")
    assert loud.note
    assert not loud.epsilon(delta=1e-5).bounded_below


def test_releases_of_one_draw_add_up_in_the_inner_products():
    encoder = root(12, 3)
    one = acc.matrix_random_allocation(encoder=encoder, std=4, bins=12, relation="zero-out")
    ((law, _),) = one.pieces
    halved = acc.matrix_random_allocation(encoder=encoder, std=2, bins=12, relation="zero-out")
    atoms = law.on_one_draw(4).atoms("remove")
    ((other, _),) = halved.pieces
    epsilons = np.array([0.1, 0.5, 1.0])
    assert atoms.log_deltas(epsilons) == pytest.approx(other.atoms("remove").log_deltas(epsilons), abs=1e-9)


def test_signs_of_the_encoder_do_not_count():
    signed = np.tril(np.where(np.add.outer(range(6), range(6)) % 2, -0.5, 1.0))
    both = [
        acc.matrix_random_allocation(encoder=one, std=4, bins=3, relation="zero-out")
        for one in (signed, np.abs(signed))
    ]
    assert both[0].epsilon(delta=1e-4).upper == pytest.approx(both[1].epsilon(delta=1e-4).upper, rel=1e-12)
    assert not both[0].epsilon(delta=1e-4).bounded_below
    assert both[1].epsilon(delta=1e-4).bounded_below


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bins": 5}, "whole epochs of 5 steps, got 12"),
        ({"bins": 3, "separation": 8}, "add columns of zeros"),
        ({"bins": 0}, "bins"),
        ({"bins": 2_001}, "bins"),
        ({"bins": 3, "separation": 0}, "separation"),
        ({"bins": 3, "std": 0}, "std"),
    ],
)
def test_what_means_nothing_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        acc.matrix_random_allocation(**{"encoder": root(12, 3), "std": 1, "relation": "zero-out", **given})


def declare(mechanism, relation):
    claim = Claim(ApproxDP(1, "1/100000"), source="a test")
    return Declaration(
        name="matrix", title="", source="a test", relation=relation, releases=(), procedures=(mechanism,), claim=claim,
        parameters=(),
    )  # fmt: skip


def mechanism(encoder, **given):
    return MatrixMechanism("m", encoder=encoder, noise_multiplier=2, **given)


@pytest.mark.parametrize(("groups", "bins"), [(3, 4), (1, 12)])
def test_declared_bins_are_priced_by_the_event_and_bounded_by_their_pairs(groups, bins):
    declared = declare(mechanism(banded_square_root(24, 3), bins=bins, separation=groups), AddRemoveOne("user"))
    event = acc.matrix_random_allocation(
        encoder=root(24, 3), std=2, bins=bins, separation=groups, relation="add-remove"
    )
    figure = event.epsilon(delta=1e-5)
    assert account(declared).at({}).epsilon(1e-5) == pytest.approx(figure.value, rel=1e-9)
    verdict = verify(declared, {})
    assert verdict.lower_ratio <= verdict.upper_ratio
    assert verdict.lower_ratio >= (0.98 if groups == 3 else 0.6) * figure.value


def test_runs_are_scored_by_their_exact_ratio():
    """Three bins that share rows: δ of simulated runs against the integral, in both orders of the data."""
    given = np.tril(np.array([[1.0, 0, 0], [0.5, 1.0, 0], [0.25, 0.5, 1.0]]))
    procedure = mechanism(Encoder(words="matrix of a test", of=lambda: given), bins=3)
    gram = given.T @ given / 4
    for pair in procedure.pairs(ZeroOut("user"), {}):
        for first in (True, False):
            scores = pair.sampler(np.random.default_rng(4), np.full(RUNS, first))
            losses = scores if first else -scores
            found = float(np.mean(np.maximum(-np.expm1(np.minimum(0.2 - losses, 0)), 0)))
            there = "in D the user" in pair.words
            truth = excess(gram, math.exp(0.2))
            if there != first:
                truth = math.exp(0.2) * (excess(gram, math.exp(-0.2)) - 1) + 1
            assert abs(found - truth) <= MARGIN


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda: mechanism(banded_square_root(8, 2), bins=4, rate="1/2"), "leave rate out, or bins"),
        (lambda: mechanism(banded_square_root(8, 2), bins=4, participations=2), "leave participations"),
        (lambda: declare(mechanism(banded_square_root(8, 2), bins=4), ReplaceOne("user")), "AddRemoveOne or ZeroOut"),
        (lambda: declare(mechanism(banded_square_root(8, 2), bins=0), ZeroOut("user")), "at least 1"),
        (lambda: verify(declare(mechanism(banded_square_root(8, 2), bins=3), ZeroOut("user")), {}), "columns of zeros"),
    ],
)
def test_declared_nonsense_is_refused(refused, words):
    with pytest.raises((DeclarationError, ParameterError), match=words):
        refused()


def test_the_gallery_holds_in_groups_and_fails_without_them():
    verdicts = {}
    for sampling in ("bins", "bins-as-independent"):
        setting = resolve_setting("banded-matrix-factorisation", {"sampling": sampling})
        verdicts[sampling] = verify(setting.declared, setting.values)
    assert verdicts["bins"].verdict == "holds"
    assert verdicts["bins"].lower_ratio >= 0.99 * verdicts["bins"].upper_ratio
    assert verdicts["bins-as-independent"].verdict == "fails"
    # what steps that share no row would cost
    column = math.sqrt(sum((math.comb(2 * i, i) / 4**i) ** 2 for i in range(16)))
    unrelated = acc.random_allocation(std=Fraction(5, 4), sensitivity=column, rounds=32, relation="add-remove")
    assert unrelated.epsilon(delta=1e-5).upper <= 2 < 2 * verdicts["bins-as-independent"].lower_ratio


@pytest.mark.parametrize("bins", [1, 2])
def test_hardly_any_noise_has_no_bound(bins):
    event = acc.matrix_random_allocation(encoder=[[1, 0], [0.5, 1]], std=1e-300, bins=bins, relation="add-remove")
    assert acc.compose(event).epsilon(delta=1e-6).value == math.inf
