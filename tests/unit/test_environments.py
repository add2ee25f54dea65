"""The two environments against published figures, their own data file, and simulation."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from privcheck.data.finite_models import evaluate, one_hot, solve, uniform
from privcheck.errors import ParameterError, PrivcheckError
from privcheck.runtime.registry import environment, has_environment, usual_environment
from privcheck_algorithms.environments import ICU_SEPSIS, RIVERSWIM
from privcheck_algorithms.environments.finite import riverswim
from privcheck_algorithms.environments.icu_sepsis import ACTIONS, DEATH, END, STATES, SURVIVAL, groups, load


def icu(users: int = 2_000, H: int = 20, states: int = 24, seed: int = 0):
    return ICU_SEPSIS.sample({"n": users, "H": H, "S": states}, seed)


def test_both_are_registered() -> None:
    assert environment("icu-sepsis") is ICU_SEPSIS
    assert environment("riverswim") is RIVERSWIM


def test_what_is_taken_where_no_environment_is_named_says_so_itself(register) -> None:
    assert (usual_environment("datasets"), usual_environment("online")) == ("icu-sepsis", "riverswim")
    register("environments", "a-river", RIVERSWIM)
    assert usual_environment("online") == "a-river"


def test_a_name_is_an_environments_or_a_path() -> None:
    assert all(has_environment(name) for name in ("riverswim", "gym:anything", "table:"))
    assert not any(has_environment(name) for name in ("gym", "C:/x.csv", "users.parquet"))


@pytest.mark.parametrize(("S", "H", "value"), [(6, 20, 3.3972639592), (4, 6, 0.475791)])
def test_riverswims_optimum(S: int, H: int, value: float) -> None:
    assert solve(riverswim(S, H=H)).value == pytest.approx(value, abs=5e-7 if H == 6 else 5e-11)


def test_riverswim_as_a_dataset() -> None:
    data = RIVERSWIM.sample({"n": 400, "H": 20, "S": 6}, 1)
    assert data.trajectories.actions.shape == (400, 20)
    assert (data.trajectories.states[:, 0] == 0).all()
    assert data.evaluate is not None
    assert data.evaluate(uniform(20, 6, 2)) == data.references["random"]
    left = np.zeros((20, 6, 2))
    left[..., 0] = 1
    assert data.evaluate(left) == pytest.approx(20 * 0.005, abs=1e-12)
    with pytest.raises(ParameterError, match="at least 2 states"):
        RIVERSWIM.sample({"n": 1, "H": 1, "S": 1}, 0)


def test_the_packages_figures_at_twenty_steps() -> None:
    references = icu().references
    assert references["clinicians"] == pytest.approx(0.69198, abs=5e-6)
    assert references["random"] == pytest.approx(0.68545, abs=5e-6)
    assert references["optimum"] == pytest.approx(0.79222, abs=5e-6)


def test_what_groups_of_states_can_reach_is_a_plan_on_their_means_acted_out_state_by_state() -> None:
    model, S, H = load(), 9, 6
    group = groups(model.sofa, S)
    moves = np.array([  # (S, A, S): patients of a group count alike
        [np.bincount(group, weights=model.mdp.transition[0][group == g, a].mean(axis=0), minlength=S)
         for a in range(25)] for g in range(S)
    ])  # fmt: skip
    moves /= moves.sum(axis=2, keepdims=True)
    ahead, plan = np.zeros(S), []
    for _ in range(H):
        q = np.array([[m @ ahead + (g < S - 3) * m[S - 2] for m in moves[g]] for g in range(S)])
        plan.insert(0, q.argmax(axis=1))
        ahead = q.max(axis=1)
    law, survived = model.mdp.initial.copy(), 0.0
    for actions in plan:
        after = np.zeros(716)
        for s in np.flatnonzero(law):
            after += law[s] * model.mdp.transition[0][s, actions[group[s]]]
            survived += law[s] * model.mdp.transition[0][s, actions[group[s]], 714] * (s < 713)
        law = after
    references = icu(5, H, S).references
    assert references["plan of the true groups"] == pytest.approx(survived, abs=1e-9)
    assert references["random"] < references["plan of the true groups"] < references["optimum"]
    assert "plan of the true groups" not in icu(5, H, 716).references


def test_the_package_is_read_but_not_imported() -> None:
    load.cache_clear()
    load()
    assert "icu_sepsis" not in sys.modules


def test_rewards_by_construction_are_the_packages() -> None:
    spec = importlib.util.find_spec("icu_sepsis")
    assert spec is not None
    assert spec.submodule_search_locations
    with np.load(Path(spec.submodule_search_locations[0], "envs", "assets", "dynamics.npz")) as file:
        packaged = file["r_mat"]
    mdp = load().mdp
    possible = mdp.transition[0] > 0
    assert (packaged[possible] == mdp.reward[0][possible]).all()


def test_terminal_states_lead_to_the_end_without_reward() -> None:
    mdp = load().mdp
    assert (mdp.transition[0, [DEATH, SURVIVAL, END], :, END] == 1).all()
    assert (mdp.mean_reward[0, [DEATH, SURVIVAL, END]] == 0).all()
    assert (load().clinicians[[DEATH, SURVIVAL, END]] == 1 / ACTIONS).all()


@pytest.mark.parametrize("states", [4, 5, 24, 700, 715])
def test_groups_are_even_ordered_by_sofa_and_keep_terminal_states_apart(states: int) -> None:
    sofa = load().sofa
    group = groups(sofa, states)
    sizes = np.bincount(group, minlength=states)
    assert group.size == STATES
    assert sizes.size == states
    assert sizes[:-3].max() - sizes[:-3].min() <= 1
    assert group[[DEATH, SURVIVAL, END]].tolist() == [states - 3, states - 2, states - 1]
    for lower in range(states - 4):
        assert sofa[:DEATH][group[:DEATH] == lower].max() <= sofa[:DEATH][group[:DEATH] == lower + 1].min()


def test_without_aggregation_states_keep_their_numbers() -> None:
    assert (groups(load().sofa, STATES) == np.arange(STATES)).all()


@pytest.mark.parametrize("states", [1, 3, 717])
def test_group_numbers_out_of_range_are_refused(states: int) -> None:
    with pytest.raises(ParameterError, match=f"expected 4 to 716.*got {states}"):
        icu(states=states)


def test_aggregated_users_are_the_unaggregated_ones() -> None:
    coarse, fine = icu(users=300), icu(users=300, states=STATES)
    group = groups(load().sofa, 24)
    assert (coarse.trajectories.states == group[fine.trajectories.states]).all()
    assert (coarse.trajectories.actions == fine.trajectories.actions).all()
    assert (coarse.trajectories.rewards == fine.trajectories.rewards).all()


@pytest.mark.parametrize("states", [24, STATES])
def test_observed_rewards_are_the_public_function(states: int) -> None:
    data = icu(users=300, states=states)
    assert data.reward is not None
    table = np.broadcast_to(data.reward, (states, ACTIONS, states))
    t = data.trajectories
    assert (t.rewards == table[t.states[:, :-1], t.actions, t.states[:, 1:]]).all()
    assert t.rewards.sum() > 0


def test_the_clinicians_simulated_return_is_their_value() -> None:
    """40 000 users, values in [0, 1]; Hoeffding: off by more than 0.017 with probability below 1e-9."""
    data = icu(users=40_000, H=20)
    assert data.trajectories.rewards.sum(axis=1).mean() == pytest.approx(data.references["clinicians"], abs=0.017)


def test_a_policy_on_groups_is_judged_in_the_full_model() -> None:
    data, model = icu(users=10, H=5), load()
    policy = np.random.default_rng(0).dirichlet(np.ones(ACTIONS), (5, 24))
    value, after = 0.0, np.zeros(STATES)
    group = groups(model.sofa, 24)
    for h in reversed(range(5)):  # backward, where the code goes forward
        quality = model.mdp.mean_reward[0] + model.mdp.transition[0] @ after
        after = (policy[h][group] * quality).sum(axis=1)
    value = float(model.mdp.initial @ after)
    assert data.evaluate is not None
    assert data.evaluate(policy) == pytest.approx(value, abs=1e-12)
    assert data.evaluate(uniform(5, 24, ACTIONS)) == pytest.approx(data.references["random"], abs=1e-12)
    with pytest.raises(ParameterError, match="policy of shape"):
        data.evaluate(uniform(5, 23, ACTIONS))


def test_the_unaggregated_evaluation_reaches_the_optimum() -> None:
    data = icu(users=10, H=4, states=STATES)
    mdp = load().of_steps(4)
    best = solve(mdp)
    policy = one_hot(best.actions, ACTIONS)
    assert data.evaluate is not None
    assert data.evaluate(policy) == pytest.approx(data.references["optimum"], abs=1e-12)
    assert evaluate(mdp, policy) == pytest.approx(best.value, abs=1e-12)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(PrivcheckError, match=r"pip install 'privcheck\[icu-sepsis\]'"):
        load()


def test_a_damaged_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    load.cache_clear()
    broken = tmp_path / "dynamics.npz"
    broken.write_bytes(b"not an archive")
    monkeypatch.setattr("privcheck_algorithms.environments.icu_sepsis._asset", lambda: broken)
    with pytest.raises(PrivcheckError, match="install it again"):
        load()
