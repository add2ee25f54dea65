"""What a local user sends, for every two trajectories at tiny sizes: the exact loss, by code that shares nothing.

A message is written out here as the papers describe it: one counter for every (h, s, a) visited, one for the cost (or
reward) there, one for every (h, s, a, s′), without h where the kernels are stationary. Local DP compares all pairs of
trajectories (Chowdhury & Zhou 2022, Definition 2.3), and so does every local declaration by default.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from privcheck.declare.mechanisms import Gaussian
from privcheck.pricing import account
from privcheck.verification import verify
from privcheck_algorithms import dp_ucbvi, private_ucb_po, private_ucb_vi
from privcheck_algorithms import published_ucb_vi as published
from privcheck_algorithms.ldp_obi import ldp_obi

SIZES = [(1, 2, 2), (2, 2, 2)]
LOCAL = {  # declaration: whether counts are pooled over the steps, and costs are summed in the place of rewards
    private_ucb_vi.local: (False, True), private_ucb_po.local: (False, True), dp_ucbvi.local: (False, False),
    ldp_obi: (True, False), published.local: (True, False),
}  # fmt: skip
NOISY = [declare for declare in LOCAL if declare is not published.local]  # whose counters each have a draw
SCALES = {"chowdhury-zhou": 3, "calibrated": 6}  # b·ε/H

each_size = pytest.mark.parametrize("sizes", SIZES, ids=str)
each_start = pytest.mark.parametrize("initial", [None, "any", "fixed"], ids=lambda i: i or "default")


def named(declare):
    return declare({}).name


def users(H, S, A):
    """Every trajectory: (H + 1) states, H actions, H rewards of 0 or 1, at which a sum over [0, 1] is extreme."""
    spaces = [range(S)] * (H + 1) + [range(A)] * H + [range(2)] * H
    return [(one[: H + 1], one[H + 1 : 2 * H + 1], one[2 * H + 1 :]) for one in itertools.product(*spaces)]


def tables(sizes, *, pooled, costs):
    """The counters of every user: three arrays of whole numbers, (users, cells)."""
    H, S, A = sizes
    steps = [0] if pooled else range(H)
    pairs = {cell: i for i, cell in enumerate(itertools.product(steps, range(S), range(A)))}
    triples = {cell: i for i, cell in enumerate(itertools.product(steps, range(S), range(A), range(S)))}
    everyone = users(*sizes)
    visits, sums, moves = (np.zeros((len(everyone), n), dtype=int) for n in (len(pairs), len(pairs), len(triples)))
    for row, (states, actions, rewards) in enumerate(everyone):
        for h in range(H):
            at = (0 if pooled else h, states[h], actions[h])
            visits[row, pairs[at]] += 1
            sums[row, pairs[at]] += 1 - rewards[h] if costs else rewards[h]
            moves[row, triples[*at, states[h + 1]]] += 1
    return {"visits": visits, "costs" if costs else "rewards": sums, "transitions": moves}


def allowed(sizes, initial):
    """Which pairs of users are compared, (users, users): all, or those with one state and action at step 1."""
    first = [(states[0], actions[0]) for states, actions, _ in users(*sizes)]
    return np.array([[initial != "fixed" or one == other for other in first] for one in first])


def distances(sizes, initial, *, pooled, costs, power):
    """Σ|Δ|ᵖ of each table over all compared pairs, −1 for the others."""
    found = {}
    for name, table in tables(sizes, pooled=pooled, costs=costs).items():
        moved = (np.abs(table[:, None] - table[None]) ** power).sum(axis=2)
        found[name] = np.where(allowed(sizes, initial), moved, -1)
    return found


def readings(initial, **others):
    return others | ({} if initial is None else {"initial": initial})


def values_of(declaration, sizes, **given):
    return declaration.values(dict(zip("HSA", sizes, strict=True)) | given)


@each_size
@each_start
@pytest.mark.parametrize("declare", LOCAL, ids=named)
def test_each_counter_moves_as_far_as_is_declared(declare, initial, sizes):
    pooled, costs = LOCAL[declare]
    declaration = declare(readings(initial))
    values = values_of(declaration, sizes)
    for power, norm_of in ((1, lambda s: s.l1), (2, lambda s: s.l2**2)):
        moved = distances(sizes, initial, pooled=pooled, costs=costs, power=power)
        stated = {r.name: norm_of(r.statistic.sensitivity(declaration.relation)) for r in declaration.releases}
        assert {name: int(table.max()) for name, table in moved.items()} == {
            name: one.rational(values) for name, one in stated.items()
        }


@each_size
@each_start
@pytest.mark.parametrize("noise", SCALES)
@pytest.mark.parametrize("declare", NOISY, ids=named)
def test_the_loss_of_laplace_counters_is_the_verdicts(declare, noise, initial, sizes):
    """ln of the ratio of two Laplace densities lies within ±|x − x′|/b and is that at x: the loss is Σ|x − x′|/b."""
    pooled, costs = LOCAL[declare]
    declaration, epsilon = declare(readings(initial, noise=noise)), Fraction(2, 3)
    factor = SCALES["chowdhury-zhou" if declare in (private_ucb_vi.local, private_ucb_po.local) else noise]
    b = factor * sizes[0] / epsilon
    moved = distances(sizes, initial, pooled=pooled, costs=costs, power=1)
    loss = Fraction(int(sum(moved.values()).max())) / b  # the tables of one pair
    found = verify(declaration, values_of(declaration, sizes, epsilon=epsilon))
    assert found.lower_ratio == pytest.approx(float(loss / epsilon), rel=1e-14)
    assert found.upper_ratio == pytest.approx(float(loss / epsilon), rel=1e-14)
    assert found.verdict == ("holds" if loss <= epsilon else "fails")
    if initial != "fixed":  # 2H a table
        assert loss / epsilon == Fraction(6, factor)


@each_size
@each_start
@pytest.mark.parametrize("declare", NOISY, ids=named)
def test_the_loss_of_gaussian_counters_is_that_of_two_normal_laws(declare, initial, sizes):
    """N(x, σ²I) against N(x′, σ²I) is N(0, 1) against N(μ, 1), μ = ‖x − x′‖₂/σ."""
    pooled, costs = LOCAL[declare]
    declared = declare(readings(initial))
    declaration = dataclasses.replace(
        declared, releases=tuple(dataclasses.replace(r, mechanism=Gaussian(variance=7)) for r in declared.releases)
    )
    moved = distances(sizes, initial, pooled=pooled, costs=costs, power=2)
    mu = math.sqrt(int(sum(moved.values()).max()) / 7)
    numbers = account(declaration).at(values_of(declaration, sizes))
    assert numbers.mu == pytest.approx(mu, rel=1e-14)
    for epsilon in (0.1, 1.0, 3.0):
        delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert numbers.delta(epsilon) == pytest.approx(delta, rel=1e-9)


@each_size
def test_one_draw_for_a_whole_table_hides_no_difference_of_its_cells(sizes):
    """The published code: pairs of users whose cells differ among themselves are told apart for certain."""
    told = 0
    for table in tables(sizes, pooled=True, costs=False).values():
        contrasts = table - table[:, :1]
        told += (contrasts[:, None] != contrasts[None]).any(axis=2).sum()
    assert told
    assert verify(published.local({}), values_of(published.local({}), sizes)).lower_ratio == math.inf
