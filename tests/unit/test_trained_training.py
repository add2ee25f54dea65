"""Trainings driven by a declaration: what is read from it, what it costs, what a learner is handed, that it learns."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from privcheck.declare.mechanisms import Laplace
from privcheck.declare.procedures.charges import charge
from privcheck.declare.relations import ReplaceOne, ZeroOut
from privcheck.declare.schedules import Batches, Poisson
from privcheck.declare.statistics import ClippedSums, Vectors
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.runtime.discretisation import as_drawn
from privcheck.runtime.ledger import read_ledger
from privcheck.runtime.noise import NoNoise
from privcheck.verification import verify
from privcheck_algorithms import trained
from privcheck_algorithms.trained.policies import LinearPolicy, TanhPolicy
from privcheck_algorithms.trained.policy_gradient import (
    PRIVATE_POLICY_GRADIENT,
    VECTORS,
    PolicyGradient,
    SimulatedUsers,
    discounted_signals,
    greedy_returns,
    weigh,
)
from privcheck_algorithms.trained.tasks import ACROBOT, CART_POLE, MOUNTAIN_CAR
from privcheck_algorithms.trained.training import (
    Block,
    Plan,
    clipped_sums,
    no_noise,
    read_plan,
    release_noise,
    simulated_noise,
    train,
)

DECLARED = PRIVATE_POLICY_GRADIENT.declare({})
LINEAR = LinearPolicy(inputs=4, actions=2)
AGENT = PolicyGradient(task=CART_POLE, policy=LINEAR)
SIMULATED = simulated_noise(0)


def values(**given):
    return DECLARED.values({"K": 40, "B": 10, "d": 6} | given)


def run(agent=AGENT, users=None, *, noise=SIMULATED, declaration=DECLARED, ledger=None, **given):
    users = SimulatedUsers(task=agent.task, seed=0) if users is None else users
    sizes = {"d": agent.policy.dimension + 1} | given
    how = {"noise": noise, "ledger": ledger, "steps": agent.task.limit}
    return train(agent, users, declaration=declaration, values=values(**sizes), **how)


@pytest.mark.parametrize("given", [{}, {"epsilon": "1/2"}, {"epsilon": 2}, {"C": 7, "d": 3}], ids=str)
def test_it_is_as_private_as_claimed_and_hardly_more(given):
    at = DECLARED.values(given)
    claimed = float(at["epsilon"])
    assert 0.9999 * claimed < account(DECLARED).at(at).epsilon(1e-5) <= claimed


def test_the_verdict_is_that_it_holds_as_joint_dp():
    found = verify(DECLARED, DECLARED.values({}))
    assert (found.verdict, found.joint) == ("holds", "follows")
    assert 0.9999 < found.lower_ratio <= found.upper_ratio <= 1


def test_what_one_batch_costs_by_hand():
    """N(0, 1) against N(μ, 1): μ² is Σ (sensitivity/σ)², and δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)."""
    at = DECLARED.values({})
    mu = 2 * 3 / DECLARED.noisy[0].mechanism.at(at).scale
    assert mu == pytest.approx(0.26805, rel=1e-12)

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    assert phi(mu / 2 - 1 / mu) - math.e * phi(-mu / 2 - 1 / mu) == pytest.approx(1e-5, rel=1e-3)


def test_the_plan_is_the_declaration_s():
    plan = read_plan(DECLARED, values(K=47, C="5/2"))
    assert (plan.users, plan.batch, plan.batches, plan.dimension) == (47, 10, 4, 6)
    assert [(one.name, one.dimension, one.norm) for one in plan.blocks] == [(VECTORS, 6, 2.5)]
    members = [user for batch in plan.members() for user in batch]
    assert members == list(range(40))  # each once; the rest of 7 takes no part


def changed(**parts):
    first = DECLARED.noisy[0]
    others = dataclasses.replace(first, name="others")  # a second block, as declared
    return dataclasses.replace(DECLARED, releases=(dataclasses.replace(first, **parts), others))


@pytest.mark.parametrize(
    ("declaration", "says"),
    [
        (dataclasses.replace(DECLARED, relation=ZeroOut("user")), "replace one user"),
        (dataclasses.replace(DECLARED, relation=ReplaceOne(unit="user", trajectories=2)), "one episode"),
        (changed(statistic=ClippedSums(dimension=5, norm=3, per="user")), "one record a user"),
        (changed(statistic=ClippedSums(dimension=5, norm=3, ball="l1")), "ℓ₂"),
        (changed(mechanism=Laplace(scale=100)), "Gaussian noise"),
        (changed(schedule=Batches(size="ten users")), "sizes"),
        (changed(schedule=Poisson(rate=Fraction(1, 10), rounds=10)), "no other release"),
        (changed(schedule=Batches(size="others", sizes=lambda at: (int(at["B"]), 7))), "one size"),
    ],
    ids=["zero-out", "two episodes", "per user", "l1", "laplace", "no sizes", "poisson", "two sizes"],
)
def test_other_declarations_are_refused(declaration, says):
    with pytest.raises(DeclarationError, match=says):
        read_plan(declaration, values())


def test_other_dimensions_or_no_batch_are_refused():
    with pytest.raises(ParameterError, match="parts"):
        run(d=7)
    with pytest.raises(ParameterError, match="batches"):
        run(K=9)
    with pytest.raises(ParameterError, match="rate"):
        PolicyGradient(task=CART_POLE, policy=LINEAR, rate=0)


DRAWN = as_drawn(DECLARED, values())
GRID = DRAWN.noisy[0].statistic
GRIDDED = dataclasses.replace(read_plan(DECLARED, values()), grids={VECTORS: GRID})


@pytest.mark.parametrize("given", [{}, {"epsilon": "1/2"}, {"epsilon": 8, "B": 500}, {"C": 7, "d": 1}], ids=str)
def test_release_noise_costs_no_more_than_is_declared(given):
    at = DECLARED.values(given)
    declared, drawn = (account(one).at(at).epsilon(1e-5) for one in (DECLARED, as_drawn(DECLARED, at)))
    assert 0.9999 * declared < drawn <= declared * (1 + 1e-9)
    found = verify(as_drawn(DECLARED, at), at)
    assert (found.verdict, found.joint) == ("holds", "follows")


def rows_of_every_length():
    rows = np.random.default_rng(1).normal(size=(10, 6))
    rows *= np.array([1e-9, 0.1, 0.5, 1, 2, 3, 10, 1e3, 1e100, 0])[:, np.newaxis]
    rows[1], rows[2, :] = [3.0, 0, 0, 0, 0, 0], 3 / math.sqrt(6)  # of length C: on an axis, and in no direction
    rows[3, 0] = 0.5 * float(GRID.unit)  # in the middle between two points of the grid
    return rows


def test_a_sum_on_the_grid_is_that_of_vectors_rounded_one_by_one():
    """Exact integers, by Python's own rounding of exact fractions."""
    rows = rows_of_every_length()
    clipped = Vectors(rows=rows, norm=3.0).rows
    wanted = [sum(round(Fraction(float(x)) / GRID.unit) for x in column) for column in clipped.T]
    assert clipped_sums(rows, GRIDDED)[VECTORS].tolist() == wanted
    rows[7, 3] = np.nan  # counts as 0, for itself alone
    wanted = [sum(round(Fraction(float(x)) / GRID.unit) for x in column) for column in np.delete(clipped, 7, 0).T]
    assert clipped_sums(rows, GRIDDED)[VECTORS].tolist() == wanted


def test_no_vector_on_the_grid_is_longer_than_is_charged():
    """2·(C + rounding) in exact arithmetic against the sensitivity of which the drawn noise is priced."""
    most = charge(DRAWN.noisy[0], DRAWN.relation, values()).l2
    assert most * float(GRID.unit) == pytest.approx(6, rel=1e-6)
    for row in [*rows_of_every_length(), *3 * np.eye(6), np.full(6, 1e140), np.full(6, -3 / math.sqrt(6))]:
        alone = clipped_sums(row[np.newaxis], GRIDDED)[VECTORS]
        assert (np.rint(alone) == alone).all()
        assert 4 * sum(int(x) ** 2 for x in alone) <= Fraction(most) ** 2  # two opposite ones


def test_release_noise_is_drawn_on_the_grid_and_recorded_as_protecting(tmp_path):
    found = run(noise=release_noise, ledger=tmp_path / "ledger.jsonl")
    assert len(found.sums) == 4
    for sums in found.sums:
        whole = sums[VECTORS] / float(GRID.unit)
        assert (np.rint(whole) == whole).all()
        assert 0 < np.abs(sums[VECTORS]).max() < 10 * (3 * 10 + 6 / 0.26805)  # beyond with probability below e^(−50)
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert header["protects"] is header["as_declared"] is True
    assert header["noise"].startswith("release")
    assert [one.charge.l2 for one in entries] == [charge(DRAWN.noisy[0], DRAWN.relation, values()).l2]
    again = run(noise=release_noise)
    assert not np.array_equal(again.sums[0][VECTORS], found.sums[0][VECTORS])  # no seed: equal with probability 2⁻¹⁰⁰


class Longer:
    """Users of whom the first goes on for some steps, with observations of 0."""

    def __init__(self, more):
        self.more = more

    def play(self, choose, users):
        episodes = SimulatedUsers(task=CART_POLE, seed=0).play(choose, users)
        lengths = episodes.lengths.copy()
        lengths[0] = episodes.actions.shape[1] + self.more
        return dataclasses.replace(episodes.padded(int(lengths[0])), lengths=lengths)


def test_on_the_grid_no_vector_depends_on_how_long_others_play():
    """To the last bit of the vectors before rounding, which is more than their rounded sums show."""
    seen = []

    class Seen(type(AGENT)):
        def per_user_vector(self, state, episodes):
            seen.append(super().per_user_vector(state, episodes))
            return seen[-1]

    agent = Seen(task=CART_POLE, policy=TanhPolicy(inputs=4, actions=2, units=5))
    for more in (1, 200):
        run(agent, Longer(more), noise=release_noise, K=10, d=agent.policy.dimension + 1)
    assert np.array_equal(seen[0][1:], seen[1][1:])
    assert not np.array_equal(seen[0][0], seen[1][0])
    with pytest.raises(ParameterError, match="give steps="):
        train(AGENT, Longer(1), declaration=DECLARED, values=values(), noise=release_noise)
    with pytest.raises(ParameterError, match="state the true limit"):
        train(AGENT, Longer(200), declaration=DECLARED, values=values(), noise=release_noise, steps=100)


def test_rounding_hardly_changes_a_training():
    plain = run(noise=no_noise)
    rounded = train(
        AGENT,
        SimulatedUsers(task=CART_POLE, seed=0),
        declaration=DECLARED,
        values=values(),
        noise=no_noise,
        drawn=DRAWN,
        steps=500,
    )
    np.testing.assert_allclose(rounded.sums[0][VECTORS], plain.sums[0][VECTORS], rtol=0, atol=10 * float(GRID.unit))


class Asked:
    """Users of whom it is kept who plays."""

    def __init__(self):
        self.played = []

    def play(self, choose, users):
        self.played.extend(users)
        return SimulatedUsers(task=CART_POLE, seed=0).play(choose, users)


def test_a_stopped_training_goes_on_to_the_same_end(tmp_path):
    whole = run(ledger=tmp_path / "whole.jsonl")
    kept = []

    def stop(number, sums):
        kept.append(sums)
        if number == 2:
            raise KeyboardInterrupt

    at = values()
    how = {"declaration": DECLARED, "values": at, "noise": SIMULATED, "ledger": tmp_path / "stopped.jsonl"}
    with pytest.raises(KeyboardInterrupt):
        train(AGENT, Asked(), keep=stop, **how)
    assert not (tmp_path / "stopped.jsonl").exists()  # its record is kept as partial
    users = Asked()
    found = train(AGENT, users, finished=kept, **how)
    assert users.played == list(range(30, 40))  # nobody plays twice
    assert np.array_equal(found.parameters, whole.parameters)
    assert read_ledger(tmp_path / "stopped.jsonl") == read_ledger(tmp_path / "whole.jsonl")


@pytest.mark.parametrize(
    "finished", [[{VECTORS: np.zeros(5)}], [{"others": np.zeros(6)}], [{VECTORS: np.zeros(6)}] * 5], ids=str
)
def test_sums_of_another_training_are_refused(finished):
    with pytest.raises(ParameterError, match="of the same training"):
        train(AGENT, Asked(), declaration=DECLARED, values=values(), noise=SIMULATED, finished=finished)


def test_a_batch_without_noise_among_others_is_refused():
    """The ledger names one source: a later batch without noise would make it lie."""
    with pytest.raises(ParameterError, match="batch 2"):
        run(noise=lambda batch: NoNoise() if batch == 2 else SIMULATED(batch))


def test_blocks_are_those_of_the_releases():
    plan = read_plan(changed(statistic=ClippedSums(dimension=2, norm=1)), values())
    assert [(one.dimension, one.norm) for one in plan.blocks] == [(2, 1.0), (6, 3.0)]
    assert plan.dimension == 8


def test_clipped_sums_are_those_of_a_loop():
    blocks = (Block(name="actor", dimension=5, norm=3.0), Block(name="critic", dimension=1, norm=1.0))
    rows = np.random.default_rng(0).normal(size=(10, 6)) * 4
    rows[3, 2] = np.nan
    rows[4] = 1e200
    rows[5] = 0
    found = clipped_sums(rows, Plan(users=10, batch=10, blocks=blocks))
    for name, part, norm in (("actor", slice(0, 5), 3.0), ("critic", slice(5, 6), 1.0)):
        wanted = np.zeros(part.stop - part.start)
        for i, row in enumerate(rows):
            length = math.sqrt(sum(float(x) ** 2 for x in row[part])) if i not in {3, 4} else 0.0
            if length > 0:
                wanted += row[part] * min(1.0, norm / length)
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-12)


def test_vectors_are_weighed_and_never_longer_than_the_norm():
    rng = np.random.default_rng(2)
    gradients, means = rng.normal(size=(50, 4)) * 3, rng.uniform(-1, 1, size=50)
    found = weigh(gradients, means, norm=3.0, share=0.15)
    assert np.linalg.norm(found, axis=1).max() <= 3 * (1 + 1e-12)
    for row, gradient, mean in zip(found, gradients, means, strict=True):
        most = 3 * math.sqrt(0.85)
        length = math.sqrt(sum(x * x for x in gradient))
        np.testing.assert_allclose(row[:-1], gradient * min(1, most / length), rtol=1e-12)
        assert row[-1] == pytest.approx(mean * 3 * math.sqrt(0.15), rel=1e-12)


@pytest.mark.parametrize("task", [CART_POLE, ACROBOT, MOUNTAIN_CAR], ids=lambda one: one.name)
@pytest.mark.parametrize("units", [0, 3])
def test_a_user_s_vector_is_the_slope_of_their_own_episode(task, units):
    """Against finite differences of Σ_t (G_t − b)·log π(a_t | s_t), in a loop over one user's steps."""
    form = TanhPolicy(inputs=task.inputs, actions=2, units=3) if units else LinearPolicy(inputs=task.inputs, actions=2)
    agent = PolicyGradient(task=task, policy=form, discount=0.9)
    plan = read_plan(DECLARED, values(d=form.dimension + 1, C=10_000))  # nothing is limited
    rng = np.random.default_rng(4)
    state = dataclasses.replace(agent.begin(plan), parameters=rng.normal(size=form.dimension), baseline=-0.3)
    episodes = SimulatedUsers(task=task, seed=1).play(agent.choose(state), range(4))
    episodes = dataclasses.replace(episodes, terminated=np.array([True, True, False, True]))
    found = agent.per_user_vector(state, episodes)
    for user in range(4):
        n = int(episodes.lengths[user])
        worth = (1 if task.signal == "goal" else -1) * bool(episodes.terminated[user])
        signals = [worth * 0.9 ** (n - 1 - t) for t in range(n)]

        def objective(parameters, user=user, n=n, signals=signals):
            total = 0.0
            for t in range(n):
                logit = float(form.logits(parameters, episodes.observations[user, t])[0])
                action = episodes.actions[user, t]
                total += (signals[t] + 0.3) * -math.log1p(math.exp(-logit if action == 1 else logit))
            return total

        for j in rng.choice(form.dimension, size=3, replace=False):
            step = np.zeros(form.dimension)
            step[j] = 1e-5
            slope = (objective(state.parameters + step) - objective(state.parameters - step)) / 2e-5
            assert found[user, j] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        assert found[user, -1] == pytest.approx(10_000 * math.sqrt(0.15) * sum(signals) / n, abs=1e-8)


def test_a_user_s_vector_is_the_same_alone():
    state = AGENT.begin(read_plan(DECLARED, values()))
    users = SimulatedUsers(task=CART_POLE, seed=1)
    together = AGENT.per_user_vector(state, users.play(AGENT.choose(state), range(10)))
    for user in range(10):
        alone = AGENT.per_user_vector(state, users.play(AGENT.choose(state), range(user, user + 1)))
        np.testing.assert_allclose(alone[0], together[user], rtol=1e-12, atol=1e-12)


def test_signals_of_an_episode():
    episodes = SimulatedUsers(task=CART_POLE, seed=1).play(lambda _, u, __: (u >= 0.5) * 1, range(3))
    signals, live = discounted_signals(CART_POLE, episodes, discount=0.5)
    n = int(episodes.lengths[0])
    assert signals[0, n - 3 : n].tolist() == [-0.25, -0.5, -1]
    assert not signals[0, n:].any()
    np.testing.assert_array_equal(live.sum(axis=1), episodes.lengths)


def test_adam_is_the_printed_algorithm():
    """Kingma & Ba 2015, Algorithm 1, in a loop over coordinates, with the averages over the public B."""
    plan = read_plan(DECLARED, values(K=60))
    state, rng = AGENT.begin(plan), np.random.default_rng(0)
    theta, m, v, kept = np.zeros(5), np.zeros(5), np.zeros(5), []
    for batch in range(6):
        sums = {VECTORS: rng.normal(size=6) * 20}
        state = AGENT.update(state, sums, plan)
        signal = sums[VECTORS][-1] / (10 * 3 * math.sqrt(0.15))
        assert state.baseline == pytest.approx(max(-1, min(1, signal)), rel=1e-12)
        if batch == 0:  # it has no baseline yet
            np.testing.assert_array_equal(state.parameters, 0)
            continue
        for j in range(5):
            g = sums[VECTORS][j] / 10
            m[j], v[j] = 0.9 * m[j] + 0.1 * g, 0.999 * v[j] + 0.001 * g * g
            rate = 0.2 * (1 - batch / 6)
            theta[j] += rate * (m[j] / (1 - 0.9**batch)) / (math.sqrt(v[j] / (1 - 0.999**batch)) + 1e-8)
        kept.append(theta.copy())
        np.testing.assert_allclose(state.parameters, theta, rtol=1e-12)
    np.testing.assert_allclose(AGENT.result(state), kept[-1], rtol=1e-12)  # of 6, the last quarter is one


@pytest.mark.parametrize(("batches", "averaged"), [(1, 1), (2, 1), (4, 1), (8, 2), (40, 10)])
def test_the_result_is_the_mean_of_the_last_quarter(batches, averaged):
    plan = read_plan(DECLARED, values(K=10 * batches))
    state, rng, seen = AGENT.begin(plan), np.random.default_rng(1), []
    for _ in range(batches):
        state = AGENT.update(state, {VECTORS: rng.normal(size=6)}, plan)
        seen.append(state.parameters)
    assert state.averaged == averaged
    np.testing.assert_allclose(AGENT.result(state), np.mean(seen[-averaged:], axis=0), rtol=1e-12)


def test_noise_is_drawn_at_the_declared_scale_and_afresh():
    """χ² of 6·150 draws within 6 standard deviations: error below 1e-8. The same users, with noise and without it."""
    quiet, drawn = run(K=10, B=10, noise=no_noise), []
    for seed in range(150):
        noisy = run(K=10, B=10, noise=simulated_noise(seed))
        drawn.append(noisy.sums[0][VECTORS] - quiet.sums[0][VECTORS])
    scale = DECLARED.noisy[0].mechanism.at(values()).scale
    assert (np.array(drawn) ** 2).sum() / scale**2 == pytest.approx(900, abs=6 * math.sqrt(1800))
    several = run(noise=simulated_noise(3))
    again = run(noise=simulated_noise(3))
    np.testing.assert_array_equal(several.parameters, again.parameters)
    first = simulated_noise(3)(0).add(DECLARED.noisy[0].mechanism.at(values()), np.zeros(6), release=0, part=0)
    second = simulated_noise(3)(1).add(DECLARED.noisy[0].mechanism.at(values()), np.zeros(6), release=0, part=0)
    assert (first != second).all()


def test_the_ledger_charges_a_training_once(tmp_path):
    found = run(ledger=tmp_path / "ledger.jsonl")
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert [one.release for one in entries] == [VECTORS]
    assert [one.charge.l2 for one in entries] == [6]
    assert header["algorithm"] == "private-policy-gradient"
    assert (header["as_declared"], header["protects"]) == (True, False)
    assert len(found.sums) == 4
    quiet = run(noise=no_noise).ledger.header
    assert (quiet["as_declared"], quiet["protects"]) == (False, False)


def test_cart_pole_is_learned_from_10000_users_at_epsilon_1():
    form = TanhPolicy(inputs=4, actions=2, units=16)
    agent = PolicyGradient(task=CART_POLE, policy=form)
    found = run(agent, SimulatedUsers(task=CART_POLE, seed=0), K=10_000, B=250, noise=SIMULATED)
    assert greedy_returns(CART_POLE, form, found.parameters, seed=900, episodes=50).mean() >= 475


def test_acrobot_is_learned_from_10000_users_at_epsilon_1():
    form = LinearPolicy(inputs=6, actions=2)
    agent = PolicyGradient(task=ACROBOT, policy=form, discount=0.99)
    found = run(agent, SimulatedUsers(task=ACROBOT, seed=1), K=10_000, B=500, noise=simulated_noise(1))
    assert greedy_returns(ACROBOT, form, found.parameters, seed=900, episodes=50).mean() >= -100


def test_the_room_offers_what_its_page_uses():
    assert set(trained.__all__) <= set(dir(trained))
    assert PRIVATE_POLICY_GRADIENT.runs


def test_returns_of_a_policy_that_draws_are_those_of_users_and_greedy_ones_of_its_best_actions():
    """One user at a time, with the random numbers of that user."""
    parameters = np.array([0.5, 1.0, 3.0, 1.0, 0.2])
    for found, draws in (
        (trained.drawn_returns(CART_POLE, LINEAR, parameters, seed=3, episodes=5), True),
        (greedy_returns(CART_POLE, LINEAR, parameters, seed=3, episodes=5), False),
    ):
        for user in range(5):

            def choose(seen, uniforms, _, draws=draws):
                second = 1 / (1 + math.exp(-(float(seen[0] @ parameters[:4]) + parameters[4])))
                return np.array([int(uniforms[0] >= 1 - second) if draws else int(second > 0.5)])

            alone = SimulatedUsers(task=CART_POLE, seed=3).play(choose, range(user, user + 1))
            assert alone.returns[0] == found[user]


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_signals_by_rewards_are_weighted_means_of_what_is_left(discount):
    users = SimulatedUsers(task=trained.PENDULUM, seed=1)
    episodes = users.play(lambda _, u, __: (2 * u).astype(int), range(3))
    ended = np.arange(200) >= np.array([[200], [50], [1]])
    episodes = dataclasses.replace(
        episodes, lengths=np.array([200, 50, 1]), rewards=np.where(ended, 0.0, episodes.rewards)
    )
    signals, live = discounted_signals(trained.PENDULUM, episodes, discount=discount)
    worth = trained.PENDULUM.worth(episodes.rewards)
    for user, n in enumerate([200, 50, 1]):
        for t in (0, n // 2, n - 1):
            weights = [discount**k for k in range(200 - t)]
            wanted = sum(w * x for w, x in zip(weights, worth[user, t:], strict=True)) / sum(weights)
            assert signals[user, t] == pytest.approx(wanted, rel=1e-12)
            assert 0 <= wanted <= 1
        assert not signals[user, n:].any()
        assert live[user].sum() == n
