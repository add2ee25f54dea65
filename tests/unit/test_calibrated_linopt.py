"""CALIBRATED-LINOPT: what it sums up, what that costs, how it learns and plans, and that it is good at it."""

import math
from itertools import pairwise

import numpy as np
import pytest

from privcheck.commands.online_runs import load_world, online_settings
from privcheck.commands.settings import resolve_setting
from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import FiniteMDP, evaluate, solve
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError, TrajectoryError, UnknownNameError
from privcheck.pricing import account
from privcheck.runtime.replicates import run
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.calibrated_linopt import TargetedSteps, TargetSums, audit_world, draw_user, furthest_pairs
from privcheck_algorithms.calibrated_linopt.agent import (
    Numbers,
    ReleasedBatches,
    believe,
    choose,
    clip_values,
    player,
)
from privcheck_algorithms.calibrated_linopt.kernels import design, mixture, plan, transitions
from privcheck_algorithms.online.batches import release, schedule
from twins import linear_mixture as naive

OPTION = {"first_batch": 300.0, "growth": 1.25, "turns": 3.0, "spread": 0.5, "reach": 1.0, "prior": 1.0}
KINDS = ("probabilities", "signed", "fixed")


def random_world(kind, *, S, A, d, H, seed):
    """A mixture of probability kernels, of a base and signed perturbations, or one whose weights are all fixed."""
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.ones(S), (d, S, A))
    theta = rng.dirichlet(np.ones(d), H)
    if kind == "signed":
        kernels[1:] -= rng.dirichlet(np.ones(S), (d - 1, S, A))
        kernels[0] = 1 / S
        kernels[1:] /= 2 * S * d
        theta = np.concatenate([np.ones((H, 1)), rng.choice([-1.0, 1.0], (H, d - 1))], axis=1)
    if kind == "fixed":
        kernels, theta = kernels[:1], np.ones((H, 1))
    phi = rng.dirichlet(np.ones(3), (S, A))
    mdp = FiniteMDP(
        horizon=H, transition=np.einsum("hi,isat->hsat", theta, kernels), initial=rng.dirichlet(np.ones(S)),
        reward=(phi @ rng.random(3))[None, :, :, None],
    )  # fmt: skip
    return World(name=kind, description="", mdp=mdp, features=FeatureMap(phi=phi, kernels=kernels)), theta


def asked(world, *, K=2000, replicates=1, seed=0, **given):
    setting = online_settings(["calibrated-linopt"], {"K": str(K)} | {k: str(v) for k, v in given.items()}, world)[0]
    return OnlineRequest(setting=setting.setting, world=world, episodes=K, replicates=replicates, seed=seed)


def numbers_of(world, *, released=False, sigma=2.0):
    mdp = world.mdp
    public = None if released else np.broadcast_to(mdp.mean_reward, (mdp.horizon, mdp.states, mdp.actions))
    return Numbers(
        H=mdp.horizon, known=mixture(world.features.kernels, mdp.initial), phi=world.features.phi, public=public,
        sigma=sigma, sigma_rewards=1.5 * sigma, option=OPTION,
    )  # fmt: skip


def random_past(world, c, *, B, released, seed):
    rng, mdp = np.random.default_rng(seed), world.mdp
    H, S, A, d1, d2 = mdp.horizon, mdp.states, mdp.actions, len(c.known.basis), c.phi.shape[-1]
    return ReleasedBatches(
        values=rng.normal(0, 9, (B, H - 1, d1)), rewards=rng.normal(0, 9, (B, H if released else 0, d2)),
        bases=rng.random((B, H + 1, S)), played=rng.integers(0, A, (B, 3, H, S)), sizes=rng.integers(1, 90, B) * 1.0,
    )  # fmt: skip


def share_of_uniform(request):
    """The regret over K episodes, of each replicate, over that of the uniform policy."""
    mdp = request.world.mdp
    uniform = evaluate(mdp, np.full((mdp.horizon, mdp.states, mdp.actions), 1 / mdp.actions))
    found = run(player, request)
    return found.regret[:, -1] / request.episodes / (found.optimal - uniform)


# [lemma target-sums]
@pytest.mark.parametrize("of", ["values", "rewards"])
@pytest.mark.parametrize(("steps", "d"), [(1, 1), (1, 3), (4, 2)])
def test_no_pair_of_users_moves_a_sum_further_than_is_charged_and_one_pair_attains_it(of, steps, d):
    statistic = TargetSums(of, steps, d)
    charged = statistic.sensitivity(ReplaceOne("trajectory"))
    bounds = [getattr(charged, norm).number({}) for norm in ("l1", "l2", "linf")]
    rng = np.random.default_rng(0)
    users = [draw_user((statistic,), {}, rng) for _ in range(40)]
    for one in users:
        for other in users:
            moved = statistic.compute(one) - statistic.compute(other)
            change = statistic.difference((one, other))
            assert np.array_equal(np.bincount(change.cells, change.change, moved.size), moved.ravel())
            for order, bound in zip((1, 2, np.inf), bounds, strict=True):
                assert np.linalg.norm(moved.ravel(), order) <= bound * (1 + 1e-9)
    ((one, other),) = furthest_pairs((statistic,), {})
    assert statistic.difference((one, other)).l2_squared == steps
    flat = np.full((1, steps, d), 1 / math.sqrt(d))
    one, other = (TargetedSteps(features={of: flat}, targets={of: np.full((1, steps), y)}) for y in (0.5, -0.5))
    assert np.abs(statistic.compute(one) - statistic.compute(other)).sum() == pytest.approx(bounds[0])


def test_users_out_of_their_range_are_refused():
    x, y = np.ones((1, 2, 1)), np.full((1, 2), 0.5)
    TargetedSteps(features={"values": x}, targets={"values": y})
    for features, targets in (
        ({"values": 1.01 * x}, {"values": y}), ({"values": x}, {"values": 1.01 * y}), ({"values": x}, {"rewards": y}),
        ({"values": x}, {"values": y[0]}), ({"values": x * np.nan}, {"values": y}),
    ):  # fmt: skip
        with pytest.raises(TrajectoryError):
            TargetedSteps(features=features, targets=targets)
    with pytest.raises(TrajectoryError, match="step in"):
        TargetSums("values", 2, 1).compute(TargetedSteps(features={"values": x}, targets={"values": y}), step=2)


@pytest.mark.parametrize("given", [{}, {"rewards": "released"}, {"rewards": "released", "reward_weight": "0.5"}])
@pytest.mark.parametrize("H", ["1", "2", "20"])
def test_every_reading_is_as_private_as_claimed_and_hardly_more(given, H):
    setting = resolve_setting("calibrated-linopt", {"H": H, **given})
    assert 0.9999 < account(setting.declared).at(setting.values).epsilon(1e-5) <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_open_keeps_the_sum_of_probabilities_and_reaches_the_true_weights(kind, seed):
    world, theta = random_world(kind, S=3, A=2, d=4, H=3, seed=seed)
    known = mixture(world.features.kernels, world.mdp.initial)
    assert known.basis.shape == (len(theta[0]), len(theta[0]) - 1)
    assert known.fixed.sum(axis=-1) == pytest.approx(1)
    assert np.abs(known.open.sum(axis=-1)).max(initial=0) < 1e-9
    for h, weights in enumerate(theta):
        assert np.allclose(transitions(known, weights @ known.basis), world.mdp.transition[h], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_plans_posteriors_and_values_are_the_naive_ones(kind, seed):
    """Equal to 1e-9 with loops over everything, written without the agent's code, on generated worlds and boards."""
    S, A, d, H = ((2, 3, 2, 2), (3, 2, 4, 3), (4, 3, 3, 4), (3, 2, 2, 5))[seed]
    world, _ = random_world(kind, S=S, A=A, d=d, H=H, seed=seed)
    rng, released = np.random.default_rng(seed), bool(seed % 2)
    c = numbers_of(world, released=released)
    weights, reward = rng.normal(0, 1, (H, c.known.basis.shape[1])), rng.random((H, S, A))
    actions, values = np.zeros((H, S), np.int64), np.zeros((H + 1, S))
    plan(c.known, weights, reward, actions, values)
    wanted_actions, wanted_values = naive.plan(c.known, weights, reward)
    assert actions.tolist() == wanted_actions
    assert np.allclose(values, wanted_values, rtol=0, atol=1e-9)
    past = random_past(world, c, B=3, released=released, seed=seed)
    found, wanted = believe(past, c), naive.believe(past, c)
    for mine, theirs in zip((found.weights, found.rewards), wanted, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert np.allclose(mine.mean, theirs[0], rtol=0, atol=1e-9)
            assert np.allclose(mine.root @ mine.root.swapaxes(1, 2), theirs[1], rtol=0, atol=1e-9)
    chosen = rng.integers(0, A, (3, H, S))
    clipped = clip_values(values, chosen, weights, c)
    assert np.allclose(clipped, naive.clip_values(values, chosen, weights, c), rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_targets_and_features_keep_the_bounds_of_the_charge_whatever_the_values(seed):
    rng = np.random.default_rng(seed)
    world, theta = random_world("signed" if seed % 2 else "probabilities", S=4, A=2, d=3, H=4, seed=seed)
    known = mixture(world.features.kernels, world.mdp.initial)
    values = rng.random((5, 4)) * 10.0 ** rng.integers(-3, 4, (5, 1))
    values[2] = 1.0  # as all are alike there, they tell nothing
    found = design(known, values)
    assert np.abs(found.targets).max() <= 0.5
    lengths = np.linalg.norm(found.x, axis=-1).max(axis=(1, 2))
    assert lengths == pytest.approx([1, 0, 1])
    assert lengths.max() <= 1 + 1e-12
    for h in range(3):  # E[y | s, a] is what it is said to be
        mean = found.known[h] + found.length[h] * found.x[h] @ (theta[h] @ known.basis)
        assert np.allclose(mean, world.mdp.transition[h] @ found.targets[h], atol=1e-9)


@pytest.mark.parametrize("released", [False, True])
def test_from_exact_sums_of_many_users_the_true_model_and_the_best_policy_follow(released):
    world, theta = random_world("probabilities", S=3, A=2, d=3, H=4, seed=7)
    c, mdp = numbers_of(world, released=released, sigma=1e-3), world.mdp
    rng = np.random.default_rng(1)
    played, bases = rng.integers(0, 2, (40, 3, 4, 3)), rng.random((40, 5, 3))
    values, rewards = naive.expected_sums(world, c.known, played, bases, users=1e7)
    past = ReleasedBatches(
        values=values, rewards=rewards if released else rewards[:, :0], bases=bases, played=played,
        sizes=np.full(40, 1e7),
    )  # fmt: skip
    belief = believe(past, c)
    assert np.allclose(belief.weights.mean[:-1], (theta @ c.known.basis)[:-1], atol=1e-2)
    for actions in choose(belief, c, rng)[0]:
        assert evaluate(mdp, np.eye(2)[actions]) == pytest.approx(solve(mdp).value, rel=1e-2)


def test_a_posterior_is_as_wide_as_it_is_wrong():
    """Over 300 runs of one batch of 2000 users the squared error in posterior deviations has mean n: within 6 of its
    standard errors √(2/300n); chance is bounded from above, so the mean may be less, and is checked against 0.8·n.
    """
    world, _ = load_world("linear-hypercube", {"H": "3"}, seed=0)
    request = asked(world, K=4000, replicates=300, first_batch=2000, growth=1)
    agent, c = player(request), numbers_of(world, sigma=math.sqrt(2) / 0.26805)
    truth = np.einsum("hsat,jsat->hj", world.mdp.transition, c.known.open)
    truth /= np.einsum("jsat,jsat->j", c.known.open, c.known.open)
    total = 0.0
    for number in range(300):
        one = agent.start(number)
        agent.play(one, 2000)
        a = one.arrays
        past = ReleasedBatches(
            **{n: a[n][:1] for n in ("values", "rewards", "bases", "played")}, sizes=np.array([2000.0])
        )
        found = believe(past, c).weights
        total += float((np.linalg.solve(found.root[0], found.mean[0] - truth[0]) ** 2).sum()) / 4
    # the prior's own share: weights of size 1 are as far from its mean as it says
    assert 0.8 <= total / 300 <= 1 + 6 * math.sqrt(2 / 1200)


def test_the_channel_draws_at_the_declared_scale():
    """χ² of 10⁴ draws within 6 standard deviations: error below 1e-8."""
    noise = release(np.full(10_000, 5.0), 2.0, np.random.default_rng(0)) - 5
    assert (noise**2).sum() / 4 == pytest.approx(10_000, abs=6 * math.sqrt(20_000))


def swapped(world):
    """The same world with its actions in the opposite order."""
    mdp, features = world.mdp, world.features
    other = FiniteMDP(
        horizon=mdp.horizon, transition=mdp.transition[:, :, ::-1].copy(), reward=mdp.reward[:, :, ::-1].copy(),
        initial=mdp.initial,
    )  # fmt: skip
    turned = FeatureMap(phi=features.phi[:, ::-1].copy(), kernels=features.kernels[:, :, ::-1].copy())
    return World(name="swapped", description="", mdp=other, features=turned)


@pytest.mark.parametrize("turn", [lambda world: world, swapped], ids=["as it is", "actions swapped"])
@pytest.mark.parametrize(("H", "most"), [("6", 0.04), ("20", 0.08)])
def test_it_reaches_its_goal_on_seeds_that_nothing_was_tuned_on(H, most, turn):
    worlds = [turn(load_world("linear-hypercube", {"H": H, "model": str(s + 1)}, seed=s)[0]) for s in range(8)]
    shares = [share_of_uniform(asked(world, K=20_000, seed=seed)) for seed, world in enumerate(worlds)]
    assert np.mean(shares) <= most


@pytest.mark.parametrize(("env", "given", "most"), [
    ("linear-mixture", {}, 0.02), ("linear-mixture", {"rewards": "released"}, 0.4),
    ("linear-hypercube", {"rewards": "released"}, 0.12),
])  # fmt: skip
def test_it_learns_other_mixtures_and_rewards(env, given, most):
    world, _ = load_world(env, {}, seed=0)
    assert share_of_uniform(asked(world, K=20_000, replicates=4, seed=50, **given)).mean() <= most


@pytest.mark.parametrize("turns", [1, 5])
def test_switches_are_users_with_another_policy_than_the_user_before(turns):
    world, _ = load_world("linear-hypercube", {"H": "3"}, seed=0)
    request = asked(world, K=350, first_batch=40, turns=turns, mu=9)  # grid: all of K
    ends = schedule(350, first=40, growth=1.25).tolist()
    agent = player(request)
    one = agent.start(0)
    agent.play(one, 350)
    shown = [one.arrays["played"][int(np.searchsorted(ends, k, side="right")), k % turns] for k in range(350)]
    changed = [(a != b).any() for a, b in pairwise(shown)]
    assert run(player, request).switches[0].tolist() == [0.0, *np.cumsum(changed)]


def test_what_is_refused():
    world, _ = load_world("linear-hypercube", {"H": "3"}, seed=0)
    for given, words in (
        ({"turns": 10**9}, "GB"), ({"growth": "0.9"}, "growth"),
        ({"first_batch": 1, "growth": 1, "K": 10**8}, "batches"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=words):
            run(player, asked(world, **given))
    with pytest.raises(ParameterError, match="known kernels"):
        run(player, asked(load_world("riverswim", {}, seed=0)[0]))
    assert share_of_uniform(asked(load_world("linear-hypercube", {"H": "2"}, seed=0)[0])) <= 1
    uneven = world.features.kernels * np.linspace(1, 2, 16)[None, None, :, None]
    with pytest.raises(ParameterError, match="no weights make them probabilities"):
        mixture(uneven[:1], world.mdp.initial)
    with pytest.raises(ParameterError, match="at least 2"):
        audit_world({"S": 1})


def test_what_is_public_stays_where_a_user_answers_otherwise():
    """Known rewards are the world's, not those of one user's answers: behind one billboard policies are the same."""
    world, _ = load_world("linear-hypercube", {"H": "3"}, seed=0)
    other = FiniteMDP(
        horizon=3, transition=np.broadcast_to(np.eye(2)[0], (1, 2, 16, 2)).copy(), reward=np.full((1, 1, 1, 1), 0.25),
        initial=np.eye(2)[1],
    )  # fmt: skip
    elsewhere = world.answered_by(other)
    assert elsewhere.mdp is other
    assert elsewhere.answered_by(world.mdp).public_model is elsewhere.public_model is world.public_model is world.mdp
    played = []
    for where in (world, elsewhere):
        agent = player(asked(where, K=8, first_batch=4, growth=1))
        one = agent.start(0)
        agent.play(one, 1)
        played.append((one.arrays["played"][0], one.arrays["bases"][0]))
    assert all(np.array_equal(*both) for both in zip(*played, strict=True))


def test_parameters_of_a_reading_are_known_to_a_run_that_asks_for_it():
    world, _ = load_world("linear-hypercube", {"H": "3"}, seed=0)
    assert asked(world, rewards="released", reward_weight=2).values["reward_weight"] == 2
    with pytest.raises(UnknownNameError, match="reward_weight"):
        asked(world, reward_weight=2)
