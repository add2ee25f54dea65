"""The agent's parts: the bound E, the setting, planning from a billboard, batches, diagnostics."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import resolve
from privcheck.errors import ChannelError, ParameterError
from privcheck.runtime import Billboard, Channel, Ledger, NoNoise, Privatizer, ReplayChannel, SimulatedNoise
from privcheck.runtime.offline import replicate_seed, run_once
from privcheck.runtime.setting import Setting
from privcheck_algorithms.baselines.apvi import apvi
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE
from privcheck_algorithms.dp_apvi.agent import AGENT, ApviPass, PublicInputs, noise_bound, plan, plan_batch, prepare
from privcheck_algorithms.environments import RIVERSWIM


def options(**given: str) -> dict[str, Fraction]:
    return resolve(GAUSSIAN.options, given, owner="test")


def riverswim(users: int = 3_000, seed: int = 0):
    return RIVERSWIM.sample({"n": users, "H": 8, "S": 4}, seed)


def case(reading: str = "known", algorithm=GAUSSIAN, **given: str):
    declaration = algorithm.declare({"rewards": reading})
    values = declaration.values({"H": 8, "S": 4, "A": 2, **given})
    return declaration, values


def prepared(reading: str = "known", *, noisy: bool = True, **given: str) -> tuple[object, dict, PublicInputs]:
    declaration, values = case(reading)
    return declaration, values, prepare(declaration, values, options(**given), reward=riverswim(1).reward, noisy=noisy)


def test_the_gaussian_bound_is_the_papers() -> None:
    declaration, values = case(rho="1/2")
    H, S, A = 8, 4, 2
    paper = 4 * math.sqrt(H * math.log(4 * H * S**2 * A / 0.1) / 0.5)  # section 3
    assert noise_bound(declaration, values, failure=0.1) == pytest.approx(paper, rel=1e-12)


def test_the_laplace_bound() -> None:
    declaration, values = case(algorithm=LAPLACE, epsilon="1/2")
    b = 4 * 8 / 0.5  # section 3, Laplace
    assert noise_bound(declaration, values, failure=0.1) == pytest.approx(2 * b * math.log(2 * 8 * 16 * 2 / 0.1))


@pytest.mark.parametrize("algorithm", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("reading", ["known", "released"])
@pytest.mark.parametrize("S", [1, 3])
def test_the_bound_holds_as_often_as_it_says(algorithm, reading: str, S: int) -> None:
    """20 000 runs at failure ½: more than 0.53 failures have probability below e^(−2·20000·.03²) < 1e-15.

    And it is no looser than it says: a union bound over Laplace tails, which are exact, and over the Gaussian's
    2·exp(−t²/2σ²), which is 10 times the tail here.
    """
    declaration = algorithm.declare({"rewards": reading})
    values = declaration.values({"H": 2, "S": S, "A": 2})
    limit = noise_bound(declaration, values, failure=0.5) / 2
    rng = np.random.default_rng(4)
    worst = np.zeros(20_000)
    for release in declaration.releases:
        shape = release.statistic.shape(values)
        noise = release.mechanism.at(values).draw(rng, (worst.size, math.prod(shape)))
        worst = np.maximum(worst, np.abs(noise).max(axis=1))
    least = 0.15 if algorithm is LAPLACE else 0.02
    assert least < (worst > limit).mean() < 0.53


def test_the_setting_refuses_what_the_paper_excludes() -> None:
    declaration, values = case()
    with pytest.raises(ParameterError, match=r"C \(.*above 1, got 1"):
        prepare(declaration, values, options(C="1"), reward=np.zeros(1))
    with pytest.raises(ParameterError, match=r"--set rewards=released.*--rewards FILE"):
        prepare(declaration, values, options(), reward=None)
    with pytest.raises(ParameterError, match="broadcast"):
        prepare(declaration, values, options(), reward=np.zeros((3, 2, 1)))
    with pytest.raises(ParameterError, match=r"\[0, 1\]"):
        prepare(declaration, values, options(), reward=np.full(1, 2.0))


def test_released_rewards_need_no_public_function_and_do_not_read_one() -> None:
    declaration, values = case("released")
    given = prepare(declaration, values, options(), reward=None)
    other = prepare(declaration, values, options(), reward=np.ones(1))
    assert given.constants == other.constants
    assert given.constants.released
    assert not other.reward.any()


@pytest.mark.parametrize("reading", ["known", "released"])
def test_another_dataset_behind_the_same_billboard_gives_the_identical_policy(reading: str) -> None:
    declaration, values, given = prepared(reading)
    billboard = Billboard()
    channel = Channel(
        declaration,
        values,
        noise=SimulatedNoise(7),
        billboard=billboard,
        ledger=Ledger(declaration, values, noise="test"),
    )
    first, second = riverswim(seed=1).trajectories, riverswim(users=50, seed=2).trajectories
    learnt = plan(billboard, Privatizer(first, declaration, channel).publish, given, keep=True)
    replay = ReplayChannel(billboard)
    again = plan(billboard, Privatizer(second, declaration, replay).publish, given, keep=True)
    assert (learnt.policy == again.policy).all()
    assert (learnt.values == again.values).all()
    assert learnt.claimed == again.claimed
    assert learnt.diagnostics == again.diagnostics
    assert learnt.values.any()  # the policy is not the trivial one
    exact = declaration.release("transitions").statistic.compute(first, step=3)
    assert (replay.exact["transitions", 3] != exact).any()  # and the data behind did differ


def posted(visits: np.ndarray, transitions: np.ndarray) -> tuple[Billboard, list[int], object]:
    billboard, asked = Billboard(), []

    def publish(h: int) -> None:
        asked.append(h)
        billboard.publish("visits", h, visits[h])
        billboard.publish("transitions", h, transitions[h])

    return billboard, asked, publish


def noisy_tables(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    declaration, _ = case()
    data, rng = riverswim().trajectories, np.random.default_rng(seed)
    visits, transitions = (release.statistic.compute(data) for release in declaration.releases)
    return (
        visits + rng.normal(0, 8, (count, *visits.shape)),
        transitions + rng.normal(0, 8, (count, *transitions.shape)),
    )


def test_a_batch_is_the_agent_many_times() -> None:
    _, _, given = prepared()
    visits, transitions = noisy_tables(20)
    actions, values = plan_batch(visits, transitions, given)
    for b in range(20):
        billboard, _, publish = posted(visits[b], transitions[b])
        alone = plan(billboard, publish, given)
        assert (alone.policy.argmax(axis=2) == actions[b]).all()
        assert (alone.values == values[b]).all()
    assert len({a.tobytes() for a in actions}) > 1


def test_a_batch_with_released_rewards_is_the_agent() -> None:
    declaration, values, given = prepared("released")
    data = riverswim()
    tables = [release.statistic.compute(data.trajectories)[None] for release in declaration.releases]
    actions, found = plan_batch(tables[0], tables[1], given, rewards=tables[2])
    learnt, _ = run_once(
        AGENT,
        ApviPass(given=given),
        Setting(declaration=declaration, values=values),
        data.trajectories,
        noise=NoNoise(),
    )
    assert (learnt.policy.argmax(axis=2) == actions[0]).all()
    assert (learnt.values == found[0]).all()


def test_a_batch_of_something_else_is_refused() -> None:
    _, _, given = prepared()
    visits, transitions = noisy_tables(2)
    with pytest.raises(ParameterError, match="shapes"):
        plan_batch(visits, transitions[:, :, :, :, :3], given)
    with pytest.raises(ParameterError, match="none"):
        plan_batch(visits, transitions, given, rewards=visits)
    with pytest.raises(ParameterError, match="some"):
        plan_batch(visits, transitions, prepared("released")[2])
    for bad in (np.nan, np.inf):
        broken = transitions.copy()
        broken[1, 0, 0, 0, 0] = bad
        with pytest.raises(ParameterError, match="finite"):
            plan_batch(visits, broken, given)


def test_steps_are_asked_for_backwards_and_dropped_once_planned() -> None:
    _, _, given = prepared()
    visits, transitions = (table[0] for table in noisy_tables(1))
    billboard, asked, publish = posted(visits, transitions)
    ticks: list[int] = []
    plan(billboard, publish, given, done=lambda: ticks.append(len(asked)))
    assert asked == list(range(7, -1, -1))
    assert ticks == list(range(1, 9))
    with pytest.raises(ChannelError, match="retired"):
        billboard.read("transitions", part=3)
    billboard, _, publish = posted(visits, transitions)
    plan(billboard, publish, given, keep=True)
    assert (billboard.read("transitions", part=3) == transitions[3]).all()


def test_the_claim_weighs_first_states_by_their_noisy_visits() -> None:
    _, _, given = prepared()
    visits, transitions = (table[0] for table in noisy_tables(1))
    visits[0] = [[30.0, 10.0], [-50.0, 10.0], [60.0, 0.0], [5.0, -5.0]]  # 40, below 0, 60, 0
    billboard, _, publish = posted(visits, transitions)
    learnt = plan(billboard, publish, given)
    assert learnt.claimed == pytest.approx(0.4 * learnt.values[0, 0] + 0.6 * learnt.values[0, 2])


def test_without_any_visible_visit_first_states_count_equally() -> None:
    _, _, given = prepared()
    visits, transitions = (table[0] for table in noisy_tables(1))
    visits[0] = -1.0
    billboard, _, publish = posted(visits, transitions)
    learnt = plan(billboard, publish, given)
    assert learnt.claimed == pytest.approx(learnt.values[0].mean())


def test_where_everything_is_unknown_nothing_is_worth_anything_and_the_lowest_action_is_taken() -> None:
    _, _, given = prepared()
    visits, transitions = np.zeros((8, 4, 2)), np.zeros((8, 4, 2, 4))
    billboard, _, publish = posted(visits, transitions)
    learnt = plan(billboard, publish, given)
    assert not learnt.values.any()
    assert (learnt.policy[..., 0] == 1).all()
    assert learnt.diagnostics["known_cells"] == 0
    assert learnt.diagnostics["share_above_noise"] == 0
    assert learnt.diagnostics["share_of_known_cells_with_vacuous_penalty"] == 1
    assert learnt.diagnostics["share_of_states_worth_nothing"] == 1


def test_actions_that_tie_up_to_rounding_give_way_to_the_lowest() -> None:
    fifth = 1 / 5 * 0.1
    assert fifth + fifth + fifth + fifth + fifth > 0.1  # equal numbers that floats tell apart
    declaration = GAUSSIAN.declare({})
    values = declaration.values({"H": 1, "S": 5, "A": 2})
    given = prepare(declaration, values, options(bonus_scale="0"), reward=np.full(1, 0.1), noisy=False)
    transitions = np.broadcast_to(np.array([[5.0, 0.0, 0.0, 0.0, 0.0], np.ones(5)]), (1, 1, 5, 2, 5))
    actions, found = plan_batch(transitions.sum(axis=4), transitions, given)
    assert (actions == 0).all()
    assert (found == 0.1).all()
    users = Trajectories(
        states=np.array([[s, f] for s in range(5) for f in (0, 0, 0, 0, 0, 0, 1, 2, 3, 4)], dtype=np.int32),
        actions=np.array([[a] for _ in range(5) for a in (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)], dtype=np.int32),
        rewards=np.zeros((50, 1)),
        num_states=5,
        num_actions=2,
    )
    twin = apvi(users, reward=np.full(1, 0.1), options=options(bonus_scale="0"))
    assert (twin.policy[..., 0] == 1).all()


@pytest.mark.parametrize(("scale", "vacuous"), [("1", 1.0), ("0.0062", 1.0), ("0.0056", 0.0)])
def test_diagnostics_count_known_and_vacuous_cells(scale: str, vacuous: float) -> None:
    _, _, given = prepared(bonus_scale=scale)
    E = given.constants.E
    visits, transitions = np.zeros((8, 4, 2)), np.zeros((8, 4, 2, 4))
    # one known cell, ñ = 3.25 E, 6 steps to go; Γ = scale·C2·S·H·E·ι/ñ is 6 at scale .0059
    visits[2, 1, 0], transitions[2, 1, 0, 3] = 3 * E, 3.25 * E
    visits[5, 0, 1], transitions[5, 0, 1, 0] = E, 0.9 * E  # ñ ≤ E: unknown
    billboard, _, publish = posted(visits, transitions)
    found = plan(billboard, publish, given).diagnostics
    assert found["cells"] == 64
    assert found["known_cells"] == 1
    assert found["share_above_noise"] == pytest.approx(0.75)
    assert found["share_of_known_cells_with_vacuous_penalty"] == vacuous


def test_replicates_have_seeds_of_their_own_whatever_their_number() -> None:
    seeds = [replicate_seed(3, replicate) for replicate in range(100)]
    assert len(set(seeds)) == 100
    assert replicate_seed(4, 0) not in seeds
    assert all(0 <= seed < 2**128 for seed in seeds)
