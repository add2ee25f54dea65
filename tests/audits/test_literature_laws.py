"""What the catalogue says of the literature's further functions, against their exact laws; the laws, against draws.

A law fits if every cell is met about as often as it says: a fitting law is refused in one cell of one test with
probability below 10⁻¹³, and there are fewer than 3·10⁵ cells in all tests together.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.stats import binom

from mutants.catalogue import CATALOGUE, LITERATURE, specimen
from mutants.laws import LAWS, laws_of, loss
from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP

RUNS = 40_000
ROUNDED = 2e-6  # by which a cell's probability may be wrong: quadrature, and tails that are cut
RARE = 1e-13
FIGURE = {PureDP: "epsilon", ApproxDP: "epsilon", ZCDP: "rho", GaussianDP: "mu"}
BY_NAME = pytest.mark.parametrize("name", [each.name for each in LITERATURE])


def fits(cells, chances):
    """Returns whether counts of cells are likely."""
    counts = np.bincount(cells, minlength=chances.size)
    if counts.size > chances.size:
        return False
    low, high = np.clip(chances - ROUNDED, 0, 1), np.clip(chances + ROUNDED, 0, 1)
    many, few = binom.sf(counts - 1, cells.size, high), binom.cdf(counts, cells.size, low)
    return min(many.min(), few.min()) > RARE / 2


def test_there_are_as_many_as_promised_each_with_a_law_for_each_pair():
    assert (sum(each.broken for each in LITERATURE), sum(not each.broken for each in LITERATURE)) == (40, 24)
    assert set(LAWS) == {each.name for each in LITERATURE}
    assert len({each.name for each in CATALOGUE}) == len(CATALOGUE)
    assert all(len(LAWS[each.name]) == len(each.pairs) and each.why and each.source for each in LITERATURE)
    assert sum(law.first.size for name in LAWS for law in laws_of(name)) * 2 < 3e5


@BY_NAME
def test_functions_are_drawn_from_their_laws(name):
    given = specimen(name)
    for pair, law in zip(given.pairs, laws_of(name), strict=True):
        for side, (dataset, chances) in enumerate(zip(pair, (law.first, law.other), strict=True)):
            assert chances.sum() == pytest.approx(1, abs=ROUNDED)
            assert chances.min() >= -ROUNDED
            drawn = given.run(dataset, RUNS, np.random.default_rng(side))
            assert fits(law.cells(drawn), chances)


@BY_NAME
def test_stated_losses_are_those_of_the_laws(name):
    given = specimen(name)
    claimed = getattr(given.claim, FIGURE[type(given.claim)]).number(rounding="up")
    lost = max(loss(law, given.claim) for law in laws_of(name))
    if given.broken:
        assert lost > claimed * 1.05
    else:
        assert lost <= claimed + 1e-6
    if math.isinf(given.loss):  # without bound as cells shrink, or impossible
        assert lost > 1.5 * claimed
    elif given.loss_is == "at least":
        assert given.loss <= lost * 1.001
    elif given.loss_is == "at most":
        assert lost <= given.loss == claimed
    else:
        assert given.loss == pytest.approx(lost, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("noisy max with a gap", "noisy max with a gap, noise for monotone answers"),
        ("sparse vector with a gap", "sparse vector with a gap, noise for monotone queries"),
        ("subset selection", "subset selection, share of two answers"),
        ("square wave", "square wave, the rest everywhere"),
        ("piecewise mechanism", "piecewise mechanism, ε for half of it"),
        ("laplace of four shares", "laplace of four shares, two missing"),
        ("smart sums", "smart sums, noise for one"),
        ("cube noise", "cube noise, a dimension too few"),
        ("staircase, another step", "staircase, levels from one"),
    ],
)
def test_another_functions_law_does_not_fit(name, law):
    given, wrong = specimen(name), laws_of(law)[0]
    drawn = given.run(given.pairs[0][0], RUNS, np.random.default_rng(0))
    assert not fits(wrong.cells(drawn), wrong.first)


@pytest.mark.parametrize(("shape", "slope"), [(4, 1.0), (3, None)])
def test_cube_noise_has_an_exponential_density_where_its_shape_is_one_more_than_its_dimensions(shape, slope):

    def density(m):
        return integrate.quad(lambda r: stats.gamma(shape).pdf(r) / (2 * r) ** 3, m, 80)[0]

    falls = [math.log(density(m) / density(m + 1)) for m in (0.01, 0.5, 1, 3)]
    if slope is None:
        assert min(falls) > 1.1
    else:
        assert falls == pytest.approx([slope] * 4, abs=1e-6)


def test_the_gaussian_of_a_large_epsilon_is_exact_and_the_classical_one_is_not():

    def delta(std):
        return stats.norm.cdf(0.5 / std - 6 * std) - math.exp(6) * stats.norm.cdf(-0.5 / std - 6 * std)

    assert 0.2999 < delta(0.309644) <= 0.3
    assert delta(math.sqrt(2 * math.log(1.25 / 0.3)) / 6) > 0.4
