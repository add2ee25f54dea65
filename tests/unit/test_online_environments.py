"""Environments of online agents: the models themselves, and what is refused at the door."""

import json
import sys

import numpy as np
import pytest

from privcheck.commands.online_runs import load_world
from privcheck.data.finite_models import FiniteMDP, evaluate, solve
from privcheck.errors import FileFormatError, ParameterError, PrivcheckError, UnknownNameError
from privcheck.runtime import registry
from privcheck_algorithms.environments.finite import random_mdp, riverswim
from privcheck_algorithms.environments.tables import _model, gym_environment, read_table, table_environment
from privcheck_algorithms.environments.tables import _read_gym as _read
from privcheck_algorithms.kernels.sparse_mdp import compress


@pytest.mark.parametrize(("S", "H", "value"), [(6, 20, 3.3972639592), (4, 6, 0.475791)])
def test_riverswim_has_the_known_solve(S, H, value):
    assert solve(riverswim(S, H=H)).value == pytest.approx(value, abs=5e-11)


def test_the_optimum_is_the_best_of_all_deterministic_policies():
    mdp = random_mdp(S=2, A=2, H=2, seed=4)
    best = max(evaluate(mdp, np.eye(2)[np.array(choice).reshape(2, 2)]) for choice in np.ndindex(2, 2, 2, 2))
    assert solve(mdp).value == pytest.approx(best, rel=1e-14)


def test_compressed_rows_hold_the_whole_model():
    mdp = random_mdp(S=3, A=2, H=4, seed=1)
    w = compress(mdp)
    dense = np.zeros((4 * 3 * 2, 3))
    for row in range(dense.shape[0]):
        for i in range(w.first[row], w.first[row + 1]):
            dense[row, w.successor[i]] = w.probability[i]
            assert (int(w.mask[row]) >> int(w.successor[i])) & 1
    assert np.array_equal(dense.reshape(4, 3, 2, 3), mdp.transition)
    assert w.stride == 6
    assert compress(riverswim(4, H=3)).stride == 0


@pytest.mark.parametrize(("identity", "S", "A", "mapped"), [
    ("FrozenLake-v1", 16, 4, False), ("Taxi-v4", 501, 6, True), ("CliffWalking-v1", 49, 4, True),
])  # fmt: skip
def test_gymnasium_tables(identity, S, A, mapped):
    world_, rest = load_world(f"gym:{identity}", {"H": "12", "n": "3"}, seed=0)
    assert (world_.mdp.states, world_.mdp.actions, world_.mdp.horizon) == (S, A, 12)
    assert ("mapped" in world_.description) == mapped
    assert rest == {"n": "3"}  # an option of datasets, not of online runs: the caller refuses what nobody knows


def test_frozen_lake_earns_nothing_after_its_end():
    for H, value, within in ((100, 0.744, 1e-3), (3000, 14 / 17, 1e-6)):  # 14/17: known, without a limit of steps
        assert solve(read_table("FrozenLake-v1", H=H)[0]).value == pytest.approx(value, abs=within)


def test_an_early_end_becomes_an_absorbing_state_and_two_rewards_of_one_outcome_their_mean():
    table = {0: {0: [(0.5, 0, 1.0, False), (0.25, 0, 3.0, False), (0.25, 0, -1.0, True)]}}
    mdp, facts = _model("x", table, np.ones(1), shape=(1, 1, 1))
    assert mdp.states == 2
    assert mdp.transition[0, 0, 0].tolist() == [0.75, 0.25]
    assert mdp.transition[0, 1, 0].tolist() == [0.0, 1.0]
    assert facts["rewards"] == "rewards mapped from [-1, 3] to [0, 1]"
    mean = (0.5 * 1 + 0.25 * 3) / 0.75
    assert mdp.reward[0, 0, 0].tolist() == pytest.approx([(mean + 1) / 4, 0.0])
    assert mdp.reward[0, 1, 0, 1] == pytest.approx(0.25)  # no reward, on the mapped scale


@pytest.mark.parametrize("state", [1.0, 0.5, np.float64(0), True])
def test_float_states_of_a_table_are_refused(state):
    with pytest.raises(ParameterError, match="whole number"):
        _model("x", {0: {0: [(1.0, state, 0.0, False)]}}, np.ones(1), shape=(1, 1, 1))


@pytest.mark.parametrize("table", [{}, {0: {}}, {0: {0: [(1.0, 0)]}}, {0: {0: 3}}, {0: {0: [("a", 0, 0, False)]}}])
def test_other_forms_of_tables_are_refused(table):
    with pytest.raises(ParameterError, match=r"P\[0\]\[0\]"):
        _model("x", table, np.ones(1), shape=(1, 1, 1))


class Own:
    """An environment of a user's own."""

    def __init__(self, start=lambda _: 0, moves=(1.0, 1, 0.5, False)):
        from gymnasium.spaces import Discrete

        self.observation_space, self.action_space, self.unwrapped, self.start = Discrete(2), Discrete(1), self, start
        self.P = {0: {0: [moves]}, 1: {0: [(1.0, 0, 1.0, True)]}}

    def reset(self, *, seed):
        return self.start(np.random.default_rng(seed)), {}


def test_a_first_state_that_no_law_states_is_read_from_resets_where_it_is_always_the_same():
    assert _read("x", Own(), 5)[0].initial.tolist() == [1, 0, 0]  # the last one: after an early end
    for start, match in (
        (lambda rng: int(rng.random() < 0.01), "first state is drawn"),
        (lambda _: 0.5, r"a reset leads to the state 0\.5"),
        (lambda _: 2, "a reset leads to the state 2; expected a whole number, 0 to 1"),
    ):
        with pytest.raises(ParameterError, match=match):
            _read("x", Own(start), 5)


@pytest.mark.parametrize(("moves", "match"), [
    ((1.0, -1, 0.5, False), "leads to the state -1"), ((1.0, 2, 0.5, False), "leads to the state 2"),
    ((0.9, 1, 0.5, False), r"gym:x: expected P\("), ((np.nan, 1, 0.5, False), r"gym:x: expected P\("),
    ((1.0, 1, np.nan, False), "finite rewards"), ((1.0, 1, np.inf, False), "finite rewards"),
])  # fmt: skip
def test_outcomes_that_are_no_model_are_refused_by_name(moves, match):
    with pytest.raises(ParameterError, match=match):
        _read("x", Own(moves=moves), 5)


def test_an_id_that_a_module_of_the_users_registers(tmp_path, monkeypatch):
    (tmp_path / "own_river.py").write_text(
        "import gymnasium\ngymnasium.register('OwnRiver-v3', 'gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv')\n"
    )
    with pytest.raises(ParameterError, match="own_river cannot be imported"):
        gym_environment("own_river:OwnRiver-v3")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_world("gym:own_river:OwnRiver-v3", {"H": "4"}, seed=0)[0].mdp.states == 16
    for asked, expected in (("own_river:OwnRiver-v1", "OwnRiver-v3"), ("Taxi-v1", "Taxi-v"), ("Nope-v0", "MODULE:ID")):
        with pytest.raises(ParameterError, match=f"no environment with this id; expected .*{expected}"):
            gym_environment(asked)


def test_environments_with_float_observations_or_without_a_table_are_refused():
    with pytest.raises(ParameterError, match="expected two Discrete spaces"):
        read_table("CartPole-v1", H=5)
    with pytest.raises(ParameterError, match="expected two Discrete spaces"):
        read_table("Blackjack-v1", H=5)
    with pytest.raises(ParameterError, match="no environment with this id"):
        gym_environment("FrozenLake-v999")


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(PrivcheckError, match=r"privcheck\[gym\]"):
        gym_environment("FrozenLake-v1")


P = [[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75]]]
R = [[0.0, 0.25], [1.0, 0.5]]


def written(tmp_path, name="model.json", **content):
    path = tmp_path / name
    if path.suffix == ".npz":
        np.savez(path, **{k: np.asarray(v) for k, v in content.items()})
    else:
        path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.parametrize("name", ["model.json", "model.npz"])
def test_a_users_own_table(tmp_path, name):
    world_, _ = load_world("table:" + written(tmp_path, name, P=P, r=R, initial=1, H=3), {}, seed=0)
    mdp = world_.mdp
    assert (mdp.horizon, mdp.states, mdp.actions, mdp.fixed_start) == (3, 2, 2, True)
    assert mdp.initial.tolist() == [0, 1]
    assert np.array_equal(mdp.transition[0], P)
    assert np.array_equal(mdp.mean_reward[0], R)
    assert load_world("table:" + written(tmp_path, name, P=P, r=R), {"H": "7"}, seed=0)[0].mdp.horizon == 7


def test_a_table_that_changes_with_the_step(tmp_path):
    content = {"P": [P, P[::-1], P], "r": [R, R, R], "initial": [0.5, 0.5]}
    mdp = load_world("table:" + written(tmp_path, **content), {}, seed=0)[0].mdp
    assert (mdp.horizon, mdp.transition.shape, mdp.fixed_start) == (3, (3, 2, 2, 2), False)


@pytest.mark.parametrize(("change", "match"), [
    ({"P": [[[0.5, 0.4], [0, 1]], [[1, 0], [0, 1]]]}, r"sum 0\.9"),
    ({"P": [[[1.5, -0.5], [0, 1]], [[1, 0], [0, 1]]]}, "least -0.5"),
    ({"P": [[0.5, 0.5]]}, "expected shape"),
    ({"P": [[[1.0], [1.0, 0.0]]]}, "full array of numbers"),
    ({"P": "abc"}, "full array of numbers"),
    ({"r": [[0, 1.5], [0, 0]]}, r"rewards in \[0, 1\], got 1.5"),
    ({"r": [[0, -1], [0, 0]]}, r"rewards in \[0, 1\], got -1"),
    ({"r": [0, 1]}, "expected one of the shapes"),
    ({"initial": 5}, "expected a state, 0 to 1"),
    ({"initial": 0.5}, "expected a state"),
    ({"initial": [0.5, 0.4]}, "first state"),
    ({"initial": [[1, 0]]}, r"law of shape \(2,\), got shape \(1, 2\)"),
    ({"P": [P, P], "r": [R, R]}, "either rewards r_h"),  # (H, S, A) or (S, A, S), at H = S = A = 2
    ({"H": 0}, "whole number of steps"),
    ({"H": 2.5}, "whole number of steps"),
    ({"gamma": 0.9}, "expected P and r"),
])  # fmt: skip
def test_a_table_that_is_no_model_is_refused(tmp_path, change, match):
    with pytest.raises(FileFormatError, match=match):
        load_world("table:" + written(tmp_path, **({"P": P, "r": R} | change)), {}, seed=0)


PHI = [[[1.0, 0.0], [0.6, 0.8]], [[0.0, 1.0], [0.0, 0.5]]]  # (S, A, d)


@pytest.mark.parametrize("name", ["model.json", "model.npz"])
def test_a_table_with_features_and_kernels(tmp_path, name):
    both = written(tmp_path, name, P=P, r=R, phi=PHI, kernels=[P, P, P])
    world_ = load_world("table:" + both, {}, seed=0)[0]
    assert world_.sizes == {"H": 20, "S": 2, "A": 2, "d": 2, "d2": 2, "d1": 3}
    assert np.array_equal(world_.feature_map.phi, PHI)
    assert np.array_equal(world_.feature_map.kernels, [P, P, P])
    alone = load_world("table:" + written(tmp_path, name, P=P, r=R, kernels=[P]), {}, seed=0)[0]
    assert np.array_equal(alone.feature_map.phi, np.eye(4).reshape(2, 2, 4))
    assert alone.sizes["d1"] == 1
    assert load_world("table:" + written(tmp_path, name, P=P, r=R), {}, seed=0)[0].features is None


@pytest.mark.parametrize(("change", "match"), [
    ({"phi": [[[1.0, 0.0], [3.0, 4.0]], [[0.0, 1.0], [0.0, 2.0]]]},
     r"model.json: phi: ‖φ\(0, 1\)‖ = 5, expected at most 1, and 2 features are longer: divide all of them by 5"),
    ({"phi": [[1.0, 0.0], [0.0, 1.0]]}, r"phi: expected shape \(S, A, d\)"),
    ({"phi": [[[1.0], [1.0], [1.0]], [[1.0], [1.0], [1.0]]]}, r"give phi of shape \(2, 2, d\)"),
    ({"phi": PHI, "kernels": P}, r"kernels: expected shape \(d1, S, A, S\)"),
    ({"kernels": [[[[0.5], [0.5]], [[0.5], [0.5]]]]}, r"kernels: expected shape \(d1, 2, 2, 2\)"),
    ({"phi": "abc"}, "phi: expected a full array of numbers"),
])  # fmt: skip
def test_features_of_a_table_that_mean_nothing_are_refused(tmp_path, change, match):
    with pytest.raises(FileFormatError, match=match):
        load_world("table:" + written(tmp_path, **({"P": P, "r": R} | change)), {}, seed=0)


def test_a_gymnasium_world_is_linear_in_a_coordinate_for_every_state_and_action():
    world_ = load_world("gym:FrozenLake-v1", {"H": "5"}, seed=0)[0]
    S, A = world_.mdp.states, world_.mdp.actions
    assert world_.features is None
    assert world_.feature_map.phi.shape == (S, A, S * A)
    assert np.array_equal(world_.feature_map.phi.reshape(S * A, -1), np.eye(S * A))
    assert world_.sizes["d"] == S * A


def test_files_that_are_no_tables_are_refused(tmp_path):
    for name, text in (("a.json", "{"), ("b.json", "[1]"), ("c.npz", "no archive"), ("d.txt", "x"), ("e.json", "{}")):
        (tmp_path / name).write_text(text)
        with pytest.raises(FileFormatError, match=name[0]):
            table_environment(str(tmp_path / name))
    with pytest.raises(FileFormatError, match="cannot be read"):
        table_environment(str(tmp_path / "missing.json"))


@pytest.mark.parametrize(("change", "match"), [
    ({"horizon": 0}, "at least 1"), ({"horizon": 2.0}, "whole number"), ({"transition": np.ones((2, 2))}, "shape"),
    ({"transition": np.full((1, 2, 1, 2), np.nan)}, "probabilities"), ({"reward": np.array([np.nan])}, "rewards"),
    ({"reward": np.zeros(3)}, "broadcast"), ({"initial": np.ones(3)}, "shape"), ({"initial": "x"}, "numbers"),
])  # fmt: skip
def test_a_finite_model_is_checked_when_it_is_made(change, match):
    good = {"horizon": 2, "transition": np.full((1, 2, 1, 2), 0.5), "reward": np.zeros(1), "initial": np.eye(2)[0]}
    FiniteMDP(**good)
    with pytest.raises(ParameterError, match=match):
        FiniteMDP(**(good | change))


def test_every_registered_environment_has_data_a_model_or_a_task():
    for name in registry.names("environments"):
        environment = registry.environment(name)
        assert environment.name == name
        assert (environment.sample, environment.model, environment.task) != (None, None, None)
    with pytest.raises(UnknownNameError, match="gym:…"):
        registry.environment("gim:FrozenLake-v1")
    with pytest.raises(ParameterError, match="at most"):
        random_mdp(S=2000, A=100, H=10, seed=0)


def test_the_lumped_sepsis_model():
    mdp = load_world("icu-sepsis", {"S": "24", "H": "5"}, seed=0)[0].mdp
    assert (mdp.states, mdp.actions, mdp.fixed_start) == (24, 25, False)
    assert 0 < solve(mdp).value < 1
