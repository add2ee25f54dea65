"""Agents on logged episodes: price, Poisson rounds, moments, targets and models against loops; that they learn."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from privcheck.declare.schedules import Poisson
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.runtime.ledger import read_ledger
from privcheck.verification import verify
from privcheck_algorithms.trained import (
    ACROBOT,
    CART_POLE,
    PENDULUM,
    PRIVATE_AWR,
    PRIVATE_FITTED_Q,
    PRIVATE_MODEL_PLANNING,
    RULES,
    AdvantageWeighted,
    FittedQ,
    LinearPolicy,
    LoggedUsers,
    MirrorPolicy,
    ModelPlanning,
    Moments,
    SimulatedUsers,
    greedy_returns,
    no_noise,
    products,
    read_plan,
    simulated_noise,
    simulated_sample,
    squares,
    train,
    with_products,
)
from privcheck_algorithms.trained.fitted_q import compatible
from privcheck_algorithms.trained.policies import sampled
from privcheck_algorithms.trained.policy_gradient import VECTORS, discounted_signals

LINEAR = LinearPolicy(inputs=4, actions=2, constant=False)
BEHAVIOUR = np.array([-1.0, -1.0, 1.0, 1.0])
AWR, Q, MODEL = (one.declare({}) for one in (PRIVATE_AWR, PRIVATE_FITTED_Q, PRIVATE_MODEL_PLANNING))
AGENT = AdvantageWeighted(task=CART_POLE, policy=LINEAR, temperature=0.05)
CLONE = dataclasses.replace(AGENT, temperature=None)


def logged(users, *, task=CART_POLE, policy=LINEAR, behaviour=BEHAVIOUR, seed=0):
    def drawn(seen, uniforms, _):
        return sampled(policy.logits(behaviour, seen), uniforms)

    return SimulatedUsers(task=task, seed=seed).play(drawn, range(users))


def run(agent, episodes, *, declared=AWR, seed=None, ledger=None, **given):
    at = declared.values({"K": len(episodes.users), "d": sum(agent.blocks.values())} | given)
    return train(
        agent,
        LoggedUsers(episodes=episodes),
        declaration=declared,
        values=at,
        noise=no_noise if seed is None else simulated_noise(seed),
        sample=simulated_sample(seed or 0) if declared.others else None,
        ledger=ledger,
    )


@pytest.mark.parametrize("declared", [AWR, Q, MODEL], ids=lambda one: one.name)
def test_the_verdict_is_that_they_hold_and_hardly_less_is_enough(declared):
    found = verify(declared, declared.values({}))
    assert (found.verdict, found.joint) == ("holds", None)  # logged users act no more: central DP
    assert 0.9999 < found.upper_ratio <= 1


@pytest.mark.parametrize("given", [{}, {"T": 20}, {"rate": "1/4"}, {"epsilon": 2, "K": 500}], ids=str)
def test_the_noise_of_poisson_rounds_follows_what_it_depends_on(given):
    at = AWR.values(given)
    claimed = float(at["epsilon"])
    assert 0.9995 * claimed < account(AWR).at(at).epsilon(1e-5) <= claimed


def test_more_rounds_need_more_noise_and_no_user_in_a_round_is_cheaper_than_all():
    mu = {name: float(AWR.values(given)["mu"]) for name, given in {"usual": {}, "longer": {"T": 90}}.items()}
    assert mu["longer"] < mu["usual"]
    whole = AWR.values({"rate": "999999/1000000", "T": 1})
    assert float(whole["mu"]) == pytest.approx(0.26805, rel=1e-3)  # one release of everybody


def test_the_plan_of_poisson_rounds():
    plan = read_plan(AWR, AWR.values({"K": 45, "rate": "1/10", "T": 7}))
    assert (plan.users, plan.batch, plan.batches, plan.rounds) == (45, 4, 7, 7)
    assert plan.rate == math.floor(Fraction(1, 10) * 2**53) / 2**53 <= Fraction(1, 10)
    assert list(plan.members()) == [range(45)] * 7


def test_other_samples_are_refused():
    cut = dataclasses.replace(AWR.releases[0], schedule=Poisson(rate=Fraction(1, 10), rounds=3, most=5, users=50))
    with pytest.raises(DeclarationError, match="not cut off"):
        read_plan(dataclasses.replace(AWR, releases=(cut,)), AWR.values({}))
    two = (AWR.releases[0], dataclasses.replace(AWR.releases[0], name="others", fresh=True))
    with pytest.raises(DeclarationError, match="no other release"):
        read_plan(dataclasses.replace(AWR, releases=two), AWR.values({}))


def test_poisson_rounds_need_random_numbers_and_disjoint_batches_take_none():
    users, at = LoggedUsers(episodes=logged(30)), AWR.values({"K": 30})
    with pytest.raises(ParameterError, match="sample"):
        train(AGENT, users, declaration=AWR, values=at, noise=no_noise)
    agent = FittedQ(task=CART_POLE, policy=LINEAR)
    with pytest.raises(ParameterError, match="sample"):
        train(
            agent,
            users,
            declaration=Q,
            values=Q.values({"K": 30, "B": 30}),
            noise=no_noise,
            sample=simulated_sample(0),
        )


def test_logged_users_are_the_rows_whatever_the_policy_and_no_more_of_them():
    episodes = logged(12)
    part = LoggedUsers(episodes=episodes).play(None, range(3, 7))
    np.testing.assert_array_equal(part.users, [3, 4, 5, 6])
    np.testing.assert_array_equal(part.observations, episodes.observations[3:7])
    np.testing.assert_array_equal(part.lengths, episodes.lengths[3:7])
    with pytest.raises(ParameterError, match="12 users were logged"):
        LoggedUsers(episodes=episodes).play(None, range(10, 13))


def test_a_round_sums_clipped_vectors_of_its_own_sample():
    episodes = logged(40)
    found = run(CLONE, episodes, rate="1/4", T=6, C="1/20")
    sizes = []
    for number, state in enumerate(found.states[:-1]):
        taken = simulated_sample(0)(number).random(40)
        total, size = np.zeros(4), 0
        for user in range(40):
            if taken[user] >= 0.25:
                continue
            size += 1
            gradient = np.zeros(4)
            n = int(episodes.lengths[user])
            for t in range(n):
                seen = episodes.observations[user, t]
                second = 1 / (1 + math.exp(-float(seen @ state.parameters)))
                gradient += seen * (int(episodes.actions[user, t] == 1) - second) / n
            total += gradient * min(1.0, 0.05 / math.sqrt(sum(x * x for x in gradient)))
        sizes.append(size)
        np.testing.assert_allclose(found.sums[number][VECTORS], total, rtol=0, atol=1e-12)
    assert len(set(sizes)) > 1  # samples are of several sizes, and the average divides by 10
    first = found.sums[0][VECTORS] / 10
    wanted = 0.2 * first / (np.abs(first) + 1e-8)  # Adam's first step
    np.testing.assert_allclose(found.states[1].parameters, wanted, rtol=1e-9)


def test_an_empty_sample_is_a_sum_of_nothing():
    found = run(AGENT, logged(3), rate="1/1000", T=4, seed=None)
    assert [one[VECTORS].any() for one in found.sums] == [False] * 4
    np.testing.assert_array_equal(found.parameters, 0)


def test_the_ledger_has_every_round_at_the_price_of_a_user_who_is_in_it(tmp_path):
    run(CLONE, logged(30), seed=4, T=5, ledger=tmp_path / "ledger.jsonl")
    _, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert [(one.release, one.charge.l2) for one in entries] == [(VECTORS, 2.0)] * 5


@pytest.mark.parametrize("constant", [True, False])
def test_moments_are_those_of_a_loop(constant):
    rng, moments = np.random.default_rng(0), Moments(inputs=3, targets=2, constant=constant)
    episodes = logged(5)
    T = episodes.actions.shape[1]
    z = rng.normal(size=(5, T, 5))
    if constant:
        z[..., 2] = 1
    live = np.arange(T) < episodes.lengths[:, np.newaxis]
    live[3] = False

    def rows(some):
        return np.where(live[some.users][..., np.newaxis], z[some.users], np.nan), live[some.users]

    found = moments.vectors(episodes, rows)
    assert found.shape == (5, moments.dimension) == (5, 12 - constant)
    pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)][: 6 - constant]
    for user in range(5):
        steps = [t for t in range(T) if live[user, t]]
        wanted = []
        for i, j in [*pairs, *((i, 3 + j) for i in range(3) for j in range(2))]:
            mean = sum(z[user, t, i] * z[user, t, j] for t in steps) / max(len(steps), 1)
            wanted.append(mean * (math.sqrt(2) if i < j < 3 else 1))
        np.testing.assert_allclose(found[user], wanted, atol=1e-12)


def test_a_regression_from_exact_moments_is_ridge_regression():
    rng, moments = np.random.default_rng(1), Moments(inputs=3, targets=2, constant=True)
    x = np.concatenate([rng.normal(size=(200, 2)), np.ones((200, 1))], axis=1)
    y = rng.normal(size=(200, 2))
    gram, weights = x.T @ x / 200, [1, math.sqrt(2), math.sqrt(2), 1, math.sqrt(2)]
    pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]
    vector = [gram[i, j] * w for (i, j), w in zip(pairs, weights, strict=True)]
    average = np.concatenate([vector, (x.T @ y / 200).ravel()])
    wanted = np.linalg.inv(gram + 0.1 * np.eye(3)) @ (x.T @ y / 200)
    np.testing.assert_allclose(moments.solve(average, ridge=0.1), wanted, rtol=1e-9)


def test_a_regression_from_an_indefinite_matrix_is_bounded_by_the_ridge():
    moments = Moments(inputs=2, targets=1, constant=False)
    found = moments.solve(np.array([-3.0, 0.0, 1.0, 0.5, 0.5]), ridge=0.1)
    np.testing.assert_allclose(found[:, 0], [0.5 / 0.1, 0.5 / 1.1], rtol=1e-12)


def test_features_of_observations():
    seen = np.array([[1.0, -2.0, 3.0]])
    np.testing.assert_array_equal(squares(seen), [[1, 4, 9]])
    np.testing.assert_array_equal(products(seen), [[1, -2, 3, 4, -6, 9]])
    np.testing.assert_array_equal(with_products(seen), [[1, -2, 3, 1, -2, 3, 4, -6, 9]])


@pytest.mark.parametrize("task", [CART_POLE, ACROBOT, PENDULUM], ids=lambda one: one.name)
def test_a_weighted_gradient_is_the_slope_of_weighted_log_likelihood(task):
    """Against finite differences of (1/n)·Σ_t w_t·log π(a_t | s_t), in a loop over one user's steps."""
    policy = LinearPolicy(inputs=task.inputs, actions=2)
    agent = AdvantageWeighted(task=task, policy=policy, temperature=0.3, discount=0.9, most=1.7, critic_share=0.5)
    rng = np.random.default_rng(4)
    plan = read_plan(AWR, AWR.values({"d": agent.blocks[VECTORS], "C": 10_000}))  # nothing is limited
    state = dataclasses.replace(
        agent.begin(plan),
        parameters=rng.normal(size=policy.dimension),
        critic=rng.normal(size=task.inputs + 1) * 0.1 - 0.5,
    )
    episodes = logged(4, task=task, policy=policy, behaviour=np.zeros(policy.dimension))
    signals, _ = discounted_signals(task, episodes, discount=0.9)
    found, capped = agent.per_user_vector(state, episodes), 0
    for user in range(4):
        n, weights = int(episodes.lengths[user]), []
        for t in range(n):
            value = sum(c * x * x for c, x in zip(state.critic[:-1], episodes.observations[user, t], strict=True))
            weights.append(min(math.exp((signals[user, t] - value - state.critic[-1]) / 0.3), 1.7))
            capped += weights[-1] == 1.7

        def objective(parameters, user=user, n=n, weights=weights):
            total = 0.0
            for t in range(n):
                logit = float(policy.logits(parameters, episodes.observations[user, t])[0])
                total += weights[t] * -math.log1p(math.exp(-logit if episodes.actions[user, t] == 1 else logit))
            return total / n

        for j in (0, policy.dimension - 1):
            step = np.zeros(policy.dimension)
            step[j] = 1e-5
            slope = (objective(state.parameters + step) - objective(state.parameters - step)) / 2e-5
            assert found[user, j] == pytest.approx(slope, rel=1e-5, abs=1e-7)
        mean_signal = sum(signals[user, :n]) / n
        assert found[user, -1] == pytest.approx(mean_signal, abs=1e-12)  # of the constant and the signal
    assert capped > 0


def test_parts_of_a_vector_have_their_public_shares():
    agent = dataclasses.replace(AGENT, critic_share=0.3, most=1e6, temperature=0.01)
    state = agent.begin(read_plan(AWR, AWR.values({})))
    rows = agent.per_user_vector(dataclasses.replace(state, critic=np.full(5, -1.0)), logged(20))
    assert np.linalg.norm(rows[:, :4], axis=1).max() == pytest.approx(0.7**0.5, rel=1e-12)
    assert np.linalg.norm(rows[:, 4:], axis=1).max() <= 0.3**0.5 * (1 + 1e-12)


def test_the_critic_is_fitted_to_all_rounds_and_the_first_round_moves_no_parameter():
    plan = read_plan(AWR, AWR.values({"K": 100, "rate": "1/10", "T": 5}))
    state, rng, averages = AGENT.begin(plan), np.random.default_rng(0), []
    theta, m, v, kept = np.zeros(4), np.zeros(4), np.zeros(4), []
    for number in range(5):
        sums = rng.normal(size=23)
        state = AGENT.update(state, {VECTORS: sums}, plan)
        averages.append(sums[4:] / 10)
        wanted = AGENT.moments.solve(np.mean(averages, axis=0), ridge=0.01)[:, 0]
        np.testing.assert_allclose(state.critic, wanted, rtol=1e-9)
        if number == 0:
            np.testing.assert_array_equal(state.parameters, 0)
            continue
        for j in range(4):
            g = sums[j] / 10
            m[j], v[j] = 0.9 * m[j] + 0.1 * g, 0.999 * v[j] + 0.001 * g * g
            step = (m[j] / (1 - 0.9**number)) / (math.sqrt(v[j] / (1 - 0.999**number)) + 1e-8)
            theta[j] += 0.2 * (1 - number / 5) * step
        kept.append(theta.copy())
    np.testing.assert_allclose(state.parameters, theta, rtol=1e-9)
    np.testing.assert_allclose(AGENT.result(state), kept[-1], rtol=1e-9)


def test_compatible_features_are_signed_observations_of_linear_policies():
    episodes = logged(3)
    found = compatible(LINEAR, episodes.observations, episodes.actions, number=2)
    for user in range(3):
        for t in range(int(episodes.lengths[user])):
            sign = 0.5 if episodes.actions[user, t] == 1 else -0.5
            np.testing.assert_allclose(found[user, t], sign * episodes.observations[user, t], rtol=1e-12)
    three = LinearPolicy(inputs=4, actions=3, constant=False)
    wide = compatible(three, episodes.observations, np.full_like(episodes.actions, 2), number=3)
    seen = episodes.observations[0, 0]
    np.testing.assert_allclose(wide[0, 0].reshape(4, 2), np.outer(seen, [-1 / 3, 2 / 3]), rtol=1e-12)


@pytest.mark.parametrize("task", [CART_POLE, ACROBOT, PENDULUM], ids=lambda one: one.name)
def test_targets_of_a_later_batch_look_one_step_ahead(task):
    """In a loop, by Q written out; a step at the time limit has no target."""
    policy = LinearPolicy(inputs=task.inputs, actions=2, constant=False)
    agent = FittedQ(task=task, policy=policy, discount=0.8, features=squares)
    rng = np.random.default_rng(2)
    w, v = rng.normal(size=task.inputs) * 0.3, rng.normal(size=task.inputs + 1) * 0.1
    plan = read_plan(Q, Q.values({"d": agent.blocks[VECTORS]}))
    state = dataclasses.replace(agent.begin(plan), batches=1, coefficients=np.concatenate([w, v]))
    episodes = logged(6, task=task, policy=policy, behaviour=np.zeros(task.inputs))
    episodes = dataclasses.replace(episodes, terminated=np.arange(6) % 2 == 0)
    targets, counts = agent._targets(state, episodes)

    def value(seen):
        advantages = [-0.5 * float(seen @ w), 0.5 * float(seen @ w)]
        return min(1.0, max(-1.0, max(advantages) + float(seen**2 @ v[:-1]) + v[-1]))

    for user in range(6):
        n = int(episodes.lengths[user])
        for t in range(n):
            paid, last = 0.0, t == n - 1
            if task.signal == "rewards":
                paid = 0.2 * max(0.0, 1 + episodes.rewards[user, t] / math.pi**2)
            elif last and episodes.terminated[user]:
                paid = 1.0 if task.signal == "goal" else -1.0
            after = 0.0 if last else 0.8 * value(episodes.observations[user, t + 1])
            assert bool(counts[user, t]) == (not last or bool(episodes.terminated[user]))
            if counts[user, t]:
                assert targets[user, t] == pytest.approx(min(1, max(-1, paid + after)), abs=1e-12)
        assert not counts[user, n:].any()


def test_q_is_regressed_on_inputs_of_all_batches_and_targets_of_the_last():
    agent = FittedQ(task=CART_POLE, policy=LINEAR, features=squares, ridge=0.02)
    plan = read_plan(Q, Q.values({"K": 30, "B": 10, "d": agent.blocks[VECTORS]}))
    state, rng, seen = agent.begin(plan), np.random.default_rng(0), []
    inputs = agent.moments.dimension - 9
    for _ in range(3):
        seen.append(rng.normal(size=agent.moments.dimension))
        state = agent.update(state, {VECTORS: seen[-1] * 10}, plan)
    wanted = np.concatenate([np.mean(seen, axis=0)[:inputs], seen[-1][inputs:]])
    np.testing.assert_allclose(state.coefficients, agent.moments.solve(wanted, ridge=0.02)[:, 0], rtol=1e-9)
    np.testing.assert_array_equal(agent.result(state), state.coefficients[:4])


def test_rules_are_those_of_the_tasks():
    """Whether a state is terminal, and what a step pays, on scaled observations: as the tasks' own steps say."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(400, 4)) * [3, 2, 0.3, 2]
    after, _, ended = CART_POLE.step(states, rng.integers(0, 2, size=400))
    np.testing.assert_array_equal(RULES["cart-pole"].ended(CART_POLE.scaled(after)), ended)
    assert 50 < ended.sum() < 350
    states = rng.uniform(-1, 1, size=(400, 2)) * [np.pi, 8]
    _, rewards, _ = PENDULUM.step(states, np.where(rng.integers(0, 2, size=400) == 1, 2, -2))
    np.testing.assert_allclose(RULES["pendulum"].pays(PENDULUM.scaled(states)), rewards, rtol=1e-9, atol=1e-9)
    assert not RULES["pendulum"].ended(PENDULUM.scaled(states)).any()
    moved = RULES["pendulum"].project(np.array([[0.6, 1.6, 0.3]]))
    np.testing.assert_allclose(moved, [[0.6 / math.hypot(0.6, 1.6), 1.6 / math.hypot(0.6, 1.6), 0.3]], rtol=1e-12)


@pytest.mark.parametrize(
    ("task", "policy", "within"),
    [(CART_POLE, LINEAR, 0.03), (PENDULUM, MirrorPolicy(turned=(False, True, True)), 0.12)],
    ids=["cart-pole", "pendulum"],
)
def test_a_learnt_model_steps_nearly_as_the_task_does(task, policy, within):
    """Without noise, one step from states of the logged kind: the root of the mean square over a step's sizes."""
    rules = RULES[task.name]
    agent = ModelPlanning(task=task, policy=policy, rules=rules, ridge=1e-6, imagined=500)
    behaviour = BEHAVIOUR[: policy.dimension]
    found = run(agent, logged(300, task=task, policy=policy, behaviour=behaviour), declared=MODEL, B=300, C=1000)
    model = agent.learnt(found.states[-1])
    fresh = logged(50, task=task, policy=policy, behaviour=behaviour, seed=9)
    gaps = []
    for user in range(50):
        for t in range(int(fresh.lengths[user]) - 1):
            action = np.array([task.actions[fresh.actions[user, t]]])
            after, _, _ = model.step(fresh.observations[user, t : t + 1], action)
            gaps.append((after[0] - fresh.observations[user, t + 1]) / np.array(rules.change))
    size = np.sqrt(np.mean(np.square(gaps)))
    assert size < within
    start = np.random.default_rng(1).random((5, len(task.low)))
    np.testing.assert_array_equal(model.start(start), task.scaled(task.start(start)))
    assert (model.limit, model.signal, model.worth) == (task.limit, task.signal, task.worth)


def test_numbers_out_of_range_are_refused():
    for given in ({"temperature": 0.0}, {"rate": math.inf}, {"most": -1.0}, {"critic_share": 1.0}, {"discount": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(given))):
            dataclasses.replace(AGENT, **given)
    for given in ({"ridge": 0.0}, {"discount": 1.5}):
        with pytest.raises(ParameterError, match=next(iter(given))):
            FittedQ(task=CART_POLE, policy=LINEAR, **given)
    with pytest.raises(ParameterError, match="ridge"):
        ModelPlanning(task=CART_POLE, policy=LINEAR, rules=RULES["cart-pole"], ridge=math.nan)


def test_private_agents_improve_on_a_mediocre_behaviour_and_cloning_does_not():
    """10 000 logged users at ε = 1; the behaviour's greedy policy returns about 220."""
    episodes = logged(10_000)
    assert episodes.returns.mean() < 80
    returns = {}
    for name, agent, declared, given in (
        ("cloning", CLONE, AWR, {"C": "1/4"}),
        ("awr", dataclasses.replace(AGENT, discount=0.95), AWR, {}),
        ("q", FittedQ(task=CART_POLE, policy=LINEAR), Q, {}),
        ("model", ModelPlanning(task=CART_POLE, policy=LINEAR, rules=RULES["cart-pole"], ridge=0.01), MODEL, {}),
    ):
        found = run(agent, episodes, declared=declared, seed=None if name == "cloning" else 1, **given)
        returns[name] = greedy_returns(CART_POLE, LINEAR, found.parameters, seed=900, episodes=50).mean()
    assert returns.pop("cloning") < 300
    assert min(returns.values()) >= 450
