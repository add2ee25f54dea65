"""Bit sets of policies against all policies one by one; constrained plans against scipy's linprog; coverage."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privcheck.errors import ParameterError
from privcheck_algorithms.sdp_pe.kernels import plan_above
from privcheck_algorithms.sdp_pe.policy_bits import (
    all_policies,
    complete,
    count_policies,
    find_best,
    keep_above,
    number_policies,
    shorten,
)
from privcheck_algorithms.sdp_pe.policy_sets import Explicit, Implicit, Mixture, choose_set, count_visits, cover

SIZES = [(1, 3, 2), (2, 2, 2), (3, 2, 2), (4, 2, 2), (2, 3, 2), (3, 1, 3), (1, 1, 70), (5, 1, 2)]


def model(H, S, A, seed, *, fixed=True):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(S, 0.5), size=(H, S, A)) * rng.choice([0.7, 1.0], size=(H, S, A, 1))
    initial = np.eye(S)[rng.integers(S)] if fixed else rng.dirichlet(np.ones(S))
    return P, rng.random((H, S, A)), initial


def value(P, reward, initial, actions):
    """The plain backward recursion, one policy."""
    after = np.zeros(P.shape[1])
    for h in reversed(range(len(actions))):
        rows = np.arange(P.shape[1]), actions[h]
        after = reward[h][rows] + P[h][rows] @ after
    return float(initial @ after)


def everyone(H, S, A):
    return [np.array(one).reshape(H, S) for one in itertools.product(range(A), repeat=H * S)]


@settings(max_examples=40, deadline=None)
@given(size=st.sampled_from(SIZES), seed=st.integers(0, 2**20), fixed=st.booleans(), share=st.floats(0.05, 0.95))
def test_bits_are_policies_one_by_one(size, seed, fixed, share):
    H, S, A = size
    P, reward, initial = model(H, S, A, seed, fixed=fixed)
    n, found = number_policies(initial, A), np.zeros((H, S), np.int64)
    alive, policies = all_policies(n, H), everyone(H, S, A)
    values = np.array([value(P, reward, initial, one) for one in policies])
    best = find_best(alive, n, P, reward, found)
    assert best == pytest.approx(values.max(), abs=1e-12)
    assert value(P, reward, initial, found) == pytest.approx(best, abs=1e-12)
    cut = np.quantile(values, share)
    if np.abs(values - cut).min() < 1e-9 or (values > cut).sum() == 0:
        cut = values.min() - 1.0
    keep_above(alive, n, P, reward, cut)
    left = [one for one, worth in zip(policies, values, strict=True) if worth > cut]
    told_apart = {(*one[0][initial > 0], *one[1:].ravel()) for one in left}
    assert count_policies(alive) == len(told_apart)
    other = np.random.default_rng(seed + 1).random(reward.shape)
    again = find_best(alive, n, P, other, found)
    assert again == pytest.approx(max(value(P, other, initial, one) for one in left), abs=1e-12)
    for steps in range(1, H + 1):
        short, cut_off = shorten(alive, n, H, steps), np.where(np.arange(H)[:, None, None] < steps, other, 0.0)
        begun = find_best(short, n, P[:steps], other[:steps], found[:steps])
        assert begun == pytest.approx(max(value(P, cut_off, initial, one) for one in left), abs=1e-12)
        assert complete(alive, n, steps, seed, found)
        assert (*found[0][initial > 0], *found[1:].ravel()) in told_apart
        assert value(P, cut_off, initial, found) == pytest.approx(begun, abs=1e-12)


def by_linprog(P, reward, worth, least, initial):
    """The same over visits q(h, s, a) ≥ 0 that flow: Σ_a q_h(s′, a) = Σ q_{h−1}·P(s′)."""
    H, S, A = reward.shape
    rows, right = [], []
    for h in range(H):
        for s in range(S):
            row = np.zeros((H, S, A))
            row[h, s] = 1.0
            if h:
                row[h - 1] -= P[h - 1, :, :, s]
            rows.append(row.ravel())
            right.append(initial[s] if h == 0 else 0.0)
    found = linprog(
        -reward.ravel(), A_ub=-worth.reshape(1, -1), b_ub=[-least], A_eq=np.array(rows), b_eq=right, method="highs"
    )
    return -found.fun


@pytest.mark.parametrize("seed", range(40))
def test_a_mixture_of_two_policies_solves_the_linear_programme(seed):
    rng = np.random.default_rng(seed)
    H, S, A = int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(2, 4))
    P, reward, initial = model(H, S, A, seed, fixed=bool(seed % 2))
    worth, pair = rng.random((H, S, A)), np.zeros((2, H, S), np.int64)
    best = by_linprog(P, worth, np.zeros_like(worth), 0.0, initial)
    least = best * float(rng.uniform(0.3, 1.0 - 1e-6))
    share = plan_above(P, reward, worth, least, initial, pair)
    mixed = Mixture(policies=pair, shares=np.array([1 - share, share]))
    visits = count_visits(mixed, P, initial)
    assert 0 <= share <= 1
    assert (visits * worth).sum() >= least - 1e-9
    assert (visits * reward).sum() == pytest.approx(by_linprog(P, reward, worth, least, initial), abs=1e-9)


def test_what_is_eliminated_is_not_found_again_in_either_kind_of_set():
    P, reward, initial = model(4, 2, 2, 7)
    ties = np.random.default_rng(0)
    for kind in (choose_set(name, H=4, S=2, A=2, initial=initial, replicates=1) for name in ("explicit", "implicit")):
        kept = kind.blank()
        top = count_visits(kind.find(kept, P, reward, ties), P, initial)
        kind.eliminate(kept, P, reward, 0.1)
        other = 1.0 - reward
        found = count_visits(kind.find(kept, P, other, ties), P, initial)
        assert (found * reward).sum() >= (top * reward).sum() - 0.1 - 1e-6
    assert isinstance(kind, Implicit)
    assert kept["least"][0] > 0


def test_the_explorative_mixture_visits_what_any_policy_visits():
    P, _, initial = model(3, 3, 2, 11)
    ties, chosen = np.random.default_rng(0), choose_set("explicit", H=3, S=3, A=2, initial=initial, replicates=1)
    assert isinstance(chosen, Explicit)
    kept = chosen.blank()
    policies = np.array(everyone(3, 3, 2)[:: 2**9 // 40])
    start = Mixture(policies=policies, shares=np.full(len(policies), 1 / len(policies)))
    mixed, worst = cover(start, lambda asked: chosen.find(kept, P, asked, ties), P, initial, steps=200)
    visits = count_visits(mixed, P, initial)
    seen = visits > 1e-6
    ratios = [
        (count_visits(Mixture(policies=one[None], shares=np.ones(1)), P, initial)[seen] / visits[seen]).sum()
        for one in everyone(3, 3, 2)
    ]
    assert worst <= 1.1
    assert max(ratios) <= 1.1 * seen.sum() + 1e-6
    assert mixed.shares.sum() == pytest.approx(1.0)


def test_bits_that_do_not_fit_are_refused_with_the_memory_they_need():
    with pytest.raises(ParameterError, match=r"2\^115 deterministic policies.*GB.*policies=implicit"):
        choose_set("explicit", H=20, S=6, A=2, initial=np.eye(6)[0], replicates=1)
