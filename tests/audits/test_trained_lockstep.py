"""Lockstep of trainings: the honest one is consistent and tight; every mutant is found."""

import dataclasses

import numpy as np
import pytest

from privcheck.commands import runs
from privcheck.commands.settings import settle
from privcheck.declare.statistics import Vectors
from privcheck.runtime.discretisation import as_drawn
from privcheck_algorithms.trained import policy_gradient
from privcheck_algorithms.trained import training as module
from privcheck_algorithms.trained.policies import LinearPolicy, TanhPolicy
from privcheck_algorithms.trained.policy_gradient import (
    PRIVATE_POLICY_GRADIENT,
    VECTORS,
    PolicyGradient,
    SimulatedUsers,
)
from privcheck_algorithms.trained.running import Trained
from privcheck_algorithms.trained.tasks import CART_POLE
from privcheck_algorithms.trained.training import Plan, train
from privcheck_audits.lockstep import training as audited
from privcheck_audits.lockstep.training import audit_lockstep, extreme_pairs, leaving

DECLARED = PRIVATE_POLICY_GRADIENT.declare({})
USER = 1  # in the first of six batches: the others' vectors are still long, and later batches show a leak


def values(agent):
    # little noise, so that policies change with the sums: sensitivities and laws are formulas in mu
    return DECLARED.values({"K": 240, "B": 40, "d": agent.policy.dimension + 1, "mu": 20})


def honest(agent):
    def procedure(users, noise):
        return leaving(train(agent, users, declaration=DECLARED, values=values(agent), noise=noise))

    return procedure


LINEAR = PolicyGradient(task=CART_POLE, policy=LinearPolicy(inputs=4, actions=2))
NET = PolicyGradient(task=CART_POLE, policy=TanhPolicy(inputs=4, actions=2, units=4))


def audit(procedure, agent=LINEAR, *, user=USER, seed=0):
    pairs = extreme_pairs(SimulatedUsers(task=agent.task, seed=seed), user)
    return audit_lockstep(procedure, pairs, declaration=DECLARED, values=values(agent), seed=seed)


@pytest.mark.parametrize("agent", [LINEAR, NET], ids=["linear", "net"])
@pytest.mark.parametrize("user", [USER, 47, 239])
def test_the_training_is_consistent_and_opposite_users_of_the_first_batch_have_opposite_gradients(agent, user):
    found = audit(honest(agent), agent, user=user)
    assert found.findings == ()
    assert found.allowed == {VECTORS: 6.0}
    assert 0 < found.moved[VECTORS] <= 6 * (1 + 1e-9)
    if user == USER:  # later policies may be so sure of an action that its gradient is shorter than C
        assert found.moved[VECTORS] == pytest.approx(6 * 0.85**0.5, rel=1e-9)


def on_grid(users, noise):
    at = values(LINEAR)
    drawn = as_drawn(DECLARED, at)
    return leaving(train(LINEAR, users, declaration=DECLARED, values=at, noise=noise, drawn=drawn, steps=500))


def test_what_release_noise_is_added_to_is_consistent_and_a_grid_that_loses_its_rounding_is_found(monkeypatch):
    """Whole numbers, of which one user moves as many as are charged; vectors that are not clipped move more."""
    drawn = as_drawn(DECLARED, values(LINEAR))
    pairs = list(extreme_pairs(SimulatedUsers(task=CART_POLE, seed=0), USER))
    found = audit_lockstep(on_grid, pairs, declaration=drawn, values=values(LINEAR))
    assert found.findings == ()
    unit = float(drawn.noisy[0].statistic.unit)
    assert found.moved[VECTORS] * unit == pytest.approx(6 * 0.85**0.5, rel=1e-5)

    def unclipped(rows, plan):
        return {name: np.rint(rows / float(grid.unit)).sum(axis=0) for name, grid in plan.grids.items()}

    monkeypatch.setattr(module, "clipped_sums", unclipped)
    monkeypatch.setattr(policy_gradient, "weigh", lambda rows, means, **_: np.hstack([rows, means[:, np.newaxis]]))
    found = audit_lockstep(on_grid, pairs, declaration=drawn, values=values(LINEAR))
    assert any("vectors: one user moves" in one for one in found.findings)


def test_any_other_user_moves_less():
    users = SimulatedUsers(task=CART_POLE, seed=5)

    @dataclasses.dataclass(frozen=True)
    class Replaced:
        def play(self, choose, asked):
            ours, theirs = users.play(choose, asked), SimulatedUsers(task=CART_POLE, seed=6).play(choose, asked)
            if USER not in asked:
                return ours
            rows = np.arange(len(asked)) == asked.index(USER)
            n = max(ours.actions.shape[1], theirs.actions.shape[1])

            def pick(name):
                one, other = (
                    np.pad(getattr(e, name), [(0, 0), (0, n - getattr(e, name).shape[1])] + [(0, 0)] * (rest - 2))
                    if (rest := getattr(e, name).ndim) > 1
                    else getattr(e, name)
                    for e in (ours, theirs)
                )
                return np.where(rows.reshape(-1, *[1] * (one.ndim - 1)), other, one)

            return type(ours)(**{field.name: pick(field.name) for field in dataclasses.fields(ours)})

    found = audit_lockstep(honest(LINEAR), [(users, Replaced())], declaration=DECLARED, values=values(LINEAR))
    assert found.consistent
    assert 0 < found.moved[VECTORS] < 6


def test_the_same_users_move_nothing():
    users = SimulatedUsers(task=CART_POLE, seed=5)
    found = audit_lockstep(honest(LINEAR), [(users, users)], declaration=DECLARED, values=values(LINEAR))
    assert found.consistent
    assert set(found.moved.values()) == {0}


# mutants: each as code that a careful author could have written


def clip_after_sum(rows, plan):
    """The sum is clipped to B·C, not every user's vector to C."""
    (block,) = plan.blocks
    return {block.name: Vectors(rows=rows.sum(axis=0, keepdims=True), norm=plan.batch * block.norm).rows[0]}


def no_clip(rows, plan):
    """Steps were clipped, and users have many."""
    return {plan.blocks[0].name: rows.sum(axis=0)}


@pytest.mark.parametrize("mutant", [clip_after_sum, no_clip])
def test_wrong_clipping_is_found(monkeypatch, mutant):
    monkeypatch.setattr(module, "clipped_sums", mutant)
    assert audit(honest(LINEAR)).consistent  # the agent's own vectors are short enough
    monkeypatch.setattr(policy_gradient, "weigh", lambda rows, means, **_: np.hstack([rows, means[:, np.newaxis]]))
    assert any("vectors: one user moves" in one for one in audit(honest(LINEAR)).findings)


def test_long_vectors_of_an_agent_are_clipped_all_the_same(monkeypatch):
    monkeypatch.setattr(policy_gradient, "weigh", lambda rows, means, **_: np.hstack([rows, means[:, np.newaxis]]))
    found = audit(honest(LINEAR))
    assert found.consistent
    assert 5.9 < found.moved[VECTORS] <= 6 * (1 + 1e-9)


def test_normalising_by_the_realised_batch_is_found(monkeypatch):
    """The average over users who did not fall within 15 steps, times B."""
    kept = module._exact_sums

    def mutant(agent, state, episodes, plan):
        realised = max(1, int((episodes.lengths > 15).sum()))
        return {name: value * plan.batch / realised for name, value in kept(agent, state, episodes, plan).items()}

    monkeypatch.setattr(module, "_exact_sums", mutant)
    assert any("vectors: one user moves" in one for one in audit(honest(LINEAR)).findings)


def test_a_user_in_two_batches_is_found(monkeypatch):
    """Batches that overlap by two users."""
    monkeypatch.setattr(Plan, "members", lambda plan: (range(38 * i, 38 * i + 40) for i in range(plan.batches)))
    found = audit(honest(LINEAR), user=39)
    assert 0 < found.moved[VECTORS] <= 6 * 2**0.5 * (1 + 1e-9)
    assert "10 users play more than one episode, the first of them is number 38" in found.findings


@dataclasses.dataclass(frozen=True)
class Altered:
    """An agent that does one thing otherwise."""

    of: PolicyGradient
    kept: dict = dataclasses.field(default_factory=dict)

    task = property(lambda self: self.of.task)
    policy = property(lambda self: self.of.policy)
    blocks = property(lambda self: self.of.blocks)

    def begin(self, plan):
        self.kept.clear()
        return self.of.begin(plan)

    def choose(self, state):
        return self.of.choose(state)

    def per_user_vector(self, state, episodes):
        return self.of.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        return self.of.update(state, sums, plan)

    def result(self, state):
        return self.of.result(state)


class NormalisesAdvantages(Altered):
    def per_user_vector(self, state, episodes):
        rows = self.of.per_user_vector(state, episodes)
        worth = rows[:, -1]  # centred and scaled over the batch: others' vectors move with one user's
        weights = (worth - worth.mean()) / (worth.std() + 1e-8)
        return np.concatenate([rows[:, :-1] * weights[:, None], rows[:, -1:]], axis=1)


class NormalisesObservations(Altered):
    def per_user_vector(self, state, episodes):
        scale = np.abs(episodes.observations).max(axis=(0, 1)) + 1e-8
        seen = dataclasses.replace(episodes, observations=episodes.observations / scale)
        return self.of.per_user_vector(state, seen)


class RawCritic(Altered):
    """The baseline is the mean of exact signals so far."""

    def per_user_vector(self, state, episodes):
        baseline = self.kept.get("baseline", 0.0)
        rows = self.of.per_user_vector(dataclasses.replace(state, baseline=baseline), episodes)
        self.kept["baseline"] = float(episodes.rewards.sum(axis=1).mean())
        return rows


class CleanAdam(Altered):
    """Adam's second moment from exact gradients."""

    def per_user_vector(self, state, episodes):
        rows = self.of.per_user_vector(state, episodes)
        self.kept["square"] = (rows[:, :-1].mean(axis=0)) ** 2
        return rows

    def update(self, state, sums, plan):
        after = self.of.update(state, sums, plan)
        return dataclasses.replace(after, memory=state.memory + np.tile(self.kept["square"], 2))


class SchedulesByReturns(Altered):
    """The learning rate falls when exact returns do."""

    def per_user_vector(self, state, episodes):
        self.kept["returns"] = float(episodes.returns.mean())
        return self.of.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        slow = dataclasses.replace(self.of, rate=self.of.rate / (1 + abs(self.kept["returns"])))
        return slow.update(state, sums, plan)


@pytest.mark.parametrize(
    ("mutant", "user", "where"),
    [
        (NormalisesAdvantages, USER, "one user moves"),
        (NormalisesObservations, USER, "one user moves"),
        (RawCritic, USER, "one user moves"),
        (CleanAdam, USER, "computed from data"),
        (SchedulesByReturns, 47, "computed from data"),
    ],
)
def test_agents_that_leak_are_found(mutant, user, where):
    agent = mutant(LINEAR)
    found = audit(honest(agent), agent, user=user)  # the first batch updates nothing
    assert any(where in one for one in found.findings)
    plain = Altered(LINEAR)  # the wrapper itself is innocent
    assert audit(honest(plain), plain, user=user).consistent


class Spy:
    """Users whose exact returns are looked at."""

    def __init__(self, of):
        self.of, self.returns = of, []

    def play(self, choose, users):
        episodes = self.of.play(choose, users)
        self.returns.append(float(episodes.returns.mean()))
        return episodes


def test_choosing_the_best_checkpoint_by_exact_returns_is_found():
    def best_checkpoint(users, noise):
        spy = Spy(users)
        found = train(LINEAR, spy, declaration=DECLARED, values=values(LINEAR), noise=noise)
        return {"parameters": found.states[int(np.argmax(spy.returns))].parameters}

    found = audit(best_checkpoint)
    assert found.findings == ("parameters differs behind the same noisy sums: it is computed from data",)


def test_stopping_early_by_exact_returns_is_found():
    def early(users, noise):
        spy, kept = Spy(users), []
        whole = train(LINEAR, spy, declaration=DECLARED, values=values(LINEAR), noise=noise)
        for state, returns in zip(whole.states, spy.returns, strict=False):
            kept.append(state.parameters)
            if returns > 200:
                break
        return {"parameters": kept[-1], "updates": np.array(len(kept))}

    assert not audit(early).consistent


def registered(make):
    return dataclasses.replace(PRIVATE_POLICY_GRADIENT, trained=Trained(make=make))


def view(algorithm, *, trials=24):
    return runs.audit(settle(algorithm, {"policy": "linear"}), view="lockstep", trials=trials, delta=1e-5)


def test_the_view_of_the_registered_agent_runs_it_and_finds_nothing():
    found = view(PRIVATE_POLICY_GRADIENT)
    assert (found.verdict, found.agent_ran, found.trials) == ("consistent", True, 24)
    assert found.evidence["compared"].split(", ")[0] == "parameters"
    assert 0.9 < found.bars.bars[0].ratio <= 1


@pytest.mark.parametrize(
    "mutant", [NormalisesAdvantages, NormalisesObservations, RawCritic, CleanAdam, SchedulesByReturns]
)
def test_the_view_of_check_finds_an_agent_that_leaks(mutant):
    found = view(registered(lambda task, policy, _: mutant(PolicyGradient(task=task, policy=policy))))
    assert found.verdict == "violation"
    assert found.agent_ran


def two_batches(_):
    return lambda plan: (range(38 * i, 38 * i + 40) for i in range(plan.batches))


def best_checkpoint(real):
    """Of the states, the one whose batch had the best exact returns."""

    def mutant(agent, users, **how):
        spy = Spy(users)
        found = real(agent, spy, **how)
        return dataclasses.replace(found, parameters=found.states[int(np.argmax(spy.returns))].parameters)

    return mutant


def stopping_early(real):
    """After the first batch with good exact returns, the parameters stay."""

    def mutant(agent, users, **how):
        spy = Spy(users)
        found = real(agent, spy, **how)
        good = next((i for i, returns in enumerate(spy.returns) if returns > 30), -1)
        return dataclasses.replace(found, parameters=found.states[good].parameters)

    return mutant


def normalising(real):
    """By the number of users who did not fall within 15 steps."""

    def mutant(agent, state, episodes, plan):
        realised = max(1, int((episodes.lengths > 15).sum()))
        return {name: value * plan.batch / realised for name, value in real(agent, state, episodes, plan).items()}

    return mutant


@pytest.mark.parametrize(
    ("where", "name", "mutate"),
    [
        (module, "_exact_sums", normalising),
        (audited, "train", best_checkpoint),
        (audited, "train", stopping_early),
        (Plan, "members", two_batches),
        (module, "clipped_sums", lambda _: clip_after_sum),
        (module, "clipped_sums", lambda _: no_clip),
    ],
    ids=["realised batch", "best checkpoint", "early stopping", "two batches", "clip after sum", "clip by step"],
)
def test_the_view_of_check_finds_a_training_that_leaks(monkeypatch, where, name, mutate):
    monkeypatch.setattr(where, name, mutate(getattr(where, name)))
    if name == "clipped_sums":
        monkeypatch.setattr(policy_gradient, "weigh", lambda rows, means, **_: np.hstack([rows, means[:, np.newaxis]]))
    assert view(PRIVATE_POLICY_GRADIENT).verdict == "violation"


def test_too_little_noise_is_found():
    def quieter(users, noise):
        at = values(LINEAR) | {"mu": values(LINEAR)["mu"] * 2}
        return leaving(train(LINEAR, users, declaration=DECLARED, values=at, noise=noise))

    assert any("is declared" in one and "noise of scale" in one for one in audit(quieter).findings)


def test_a_release_of_its_own_is_found():
    """A second look at the first user's sums, with another batch's noise, on D′ only: the releases differ."""

    def more(users, noise):
        found = leaving(train(LINEAR, users, declaration=DECLARED, values=values(LINEAR), noise=noise))
        if getattr(users, "action", 0) == 1:
            law = DECLARED.noisy[0].mechanism.at(values(LINEAR))
            noise(99).add(law, np.ones(5), release=0, part=0)
        return found

    assert any("different releases" in one for one in audit(more).findings)
