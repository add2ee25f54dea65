"""Gradients of every user apart against finite differences of a loop; softmax against its definition."""

import numpy as np
import pytest

from privcheck_algorithms.trained import policies
from privcheck_algorithms.trained.policies import DosePolicy, LinearPolicy, MirrorPolicy, TanhPolicy

FORMS = [
    LinearPolicy(inputs=3, actions=2),
    LinearPolicy(inputs=3, actions=4),
    LinearPolicy(inputs=3, actions=3, constant=False),
    MirrorPolicy(turned=(False, True, True)),
    MirrorPolicy(turned=(True, False, False)),
    MirrorPolicy(turned=(True, True, True)),
    DosePolicy(inputs=3, doses=(0.0, 0.25, 1.0)),
    DosePolicy(inputs=3, doses=(-2.0, 0.5), sharpness=1.5),
    TanhPolicy(inputs=3, actions=2, units=5),
    TanhPolicy(inputs=3, actions=3, units=4),
]


def naive_logits(policy, parameters, seen):
    """One observation, by loops over the flat parameters."""
    if isinstance(policy, LinearPolicy):
        outs = policy.actions - 1
        return [
            sum(seen[i] * parameters[i * outs + k] for i in range(3))
            + (parameters[3 * outs + k] if policy.constant else 0)
            for k in range(outs)
        ]
    if isinstance(policy, MirrorPolicy):
        odd = [i for i in range(3) if policy.turned[i]]
        pairs = [seen[i] * seen[j] for i in odd for j in range(3) if not policy.turned[j]]
        return [sum(p * x for p, x in zip(parameters, [*(seen[i] for i in odd), *pairs], strict=True))]
    if isinstance(policy, DosePolicy):
        mean = sum(x * p for x, p in zip(seen, parameters, strict=False)) + parameters[3]
        mean += (policy.doses[0] + policy.doses[-1]) / 2
        heights = [-policy.sharpness * (dose - mean) ** 2 for dose in policy.doses]
        return [height - heights[0] for height in heights[1:]]
    m, outs = policy.units, policy.actions - 1
    hidden = [np.tanh(sum(seen[i] * parameters[i * m + j] for i in range(3)) + parameters[3 * m + j]) for j in range(m)]
    rest = parameters[4 * m :]
    return [sum(hidden[j] * rest[j * outs + k] for j in range(m)) + rest[m * outs + k] for k in range(outs)]


@pytest.mark.parametrize("policy", FORMS, ids=str)
def test_logits_are_those_of_a_loop(policy):
    rng = np.random.default_rng(0)
    parameters, seen = rng.normal(size=policy.dimension), rng.normal(size=(4, 6, 3))
    found = policy.logits(parameters, seen)
    wanted = [[naive_logits(policy, parameters, x) for x in row] for row in seen]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("policy", FORMS, ids=str)
def test_gradients_of_a_user_are_finite_differences_of_that_user_s_steps(policy):
    """Central differences of 10⁻⁵ err by about 10⁻¹⁰; more users than are in memory at a time."""
    rng = np.random.default_rng(1)
    parameters = rng.normal(size=policy.dimension)
    seen, slopes = rng.normal(size=(60, 4, 3)), rng.normal(size=(60, 4, policy.actions - 1))
    found = policy.gradients(parameters, seen, slopes)
    assert found.shape == (60, policy.dimension)
    for user in (0, 24, 25, 59):
        for j in range(policy.dimension):
            up, down = parameters.copy(), parameters.copy()
            up[j] += 1e-5
            down[j] -= 1e-5
            change = sum(
                np.dot(s, np.subtract(naive_logits(policy, up, x), naive_logits(policy, down, x)))
                for x, s in zip(seen[user], slopes[user], strict=True)
            )
            assert found[user, j] == pytest.approx(change / 2e-5, abs=1e-7)


@pytest.mark.parametrize("policy", FORMS, ids=str)
def test_logits_of_users_with_their_own_parameters_are_those_of_a_loop(policy):
    rng = np.random.default_rng(3)
    parameters, seen = rng.normal(size=(7, policy.dimension)), rng.normal(size=(7, 3))
    found = policy.logits_apart(parameters, seen)
    wanted = [naive_logits(policy, mine, x) for mine, x in zip(parameters, seen, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_sizes_are_those_of_the_benchmarks():
    assert TanhPolicy(inputs=4, actions=2, units=16).dimension == 97
    assert TanhPolicy(inputs=6, actions=2, units=16).dimension == 129
    assert LinearPolicy(inputs=6, actions=2).dimension == 7
    assert LinearPolicy(inputs=6, actions=2, constant=False).dimension == 6


@pytest.mark.parametrize("others", [1, 3])
def test_probabilities_and_draws_are_the_softmax_s(others):
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(50, others)) * 3
    whole = np.concatenate([np.zeros((50, 1)), logits], axis=1)
    wanted = np.exp(whole) / np.exp(whole).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(policies.probabilities(logits), wanted, rtol=0, atol=1e-14)
    uniforms = rng.random(50)
    naive = [int(np.sum(u >= np.cumsum(p)[:-1])) for u, p in zip(uniforms, wanted, strict=True)]
    np.testing.assert_array_equal(policies.sampled(logits, uniforms), naive)
    np.testing.assert_array_equal(policies.greedy(logits), whole.argmax(axis=1))


@pytest.mark.parametrize("others", [1, 3])
def test_huge_logits_stay_finite(others):
    chances = policies.probabilities(np.array([[1e4] * others, [-1e4] * others]))
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_first_policies_are_uniform_and_public():
    for policy in FORMS:
        seen = np.random.default_rng(3).normal(size=(5, 3))
        if isinstance(policy, DosePolicy):  # midway, whatever is seen
            np.testing.assert_array_equal(np.ptp(policy.logits(policy.initial(), seen), axis=0), 0)
            continue
        np.testing.assert_allclose(policies.probabilities(policy.logits(policy.initial(), seen)), 1 / policy.actions)
        np.testing.assert_array_equal(policy.initial(), policy.initial())


def test_a_mirror_swaps_the_two_actions():
    policy = MirrorPolicy(turned=(False, True, True))
    rng = np.random.default_rng(5)
    parameters, seen = rng.normal(size=policy.dimension), rng.normal(size=(50, 3))
    mirrored = policy.logits(parameters, seen * [1, -1, -1])
    np.testing.assert_allclose(mirrored, -policy.logits(parameters, seen), rtol=0, atol=1e-12)
    assert np.abs(mirrored).max() > 0.5
    assert policy.dimension == 4
    assert not policy.initial().any()
