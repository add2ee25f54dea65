"""The tools for other people's tests, and the guard of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.statistics import Sensitivity
from privcheck.errors import ParameterError
from privcheck.terms.symbols import expression
from privcheck.testing import all_users, assert_sensitivity, neighbouring_pairs, trajectories

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@given(trajectories(3, 4, 2, users=2))
def test_a_strategy_makes_datasets_of_the_size_asked_for(data):
    assert (data.users, data.horizon, data.num_states, data.num_actions) == (2, 3, 4, 2)


@given(neighbouring_pairs(ReplaceOne(initial="fixed"), 3, 4, 2))
def test_a_fixed_start_is_shared(pair):
    first, second = pair
    assert first.states[0, 0] == second.states[0, 0]
    assert first.actions[0, 0] == second.actions[0, 0]


@pytest.mark.parametrize("relation", [AddRemoveOne(), ZeroOut()])
def test_someone_who_is_not_there(relation):
    @given(neighbouring_pairs(relation, 2, 2, 2))
    def search(pair):
        assert sum(user is None for user in pair) == 1

    search()


def test_rewards_are_at_the_corners_more_often_than_not():
    drawn = []

    @given(trajectories(4, 2, 2))
    def collect(data):
        drawn.append(data.rewards)

    collect()
    rewards = np.concatenate(drawn)
    assert {0.0, 1.0} <= set(rewards.ravel())
    assert np.isin(rewards, [0.0, 1.0]).mean() > 0.5


def test_enumerated_rewards_are_the_corners():
    assert set(np.unique(all_users(1, 2, 2).rewards)) == {0.0, 1.0}


@pytest.mark.slow
def test_the_guard_refuses_a_source_tree(tmp_path):
    # a package named privcheck that stands outside site-packages
    (tmp_path / "privcheck").mkdir()
    (tmp_path / "privcheck" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PRIVCHECK_TEST_WHEEL": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:privcheck", str(tmp_path)]  # ours: it would not be found
    refused = subprocess.run(
        command, env=environment, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "expected the installed wheel" in refused.stdout + refused.stderr
    environment["PRIVCHECK_TEST_WHEEL"] = ""
    allowed = subprocess.run(
        command, env=environment, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    assert allowed.returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_sensitivity_on_data_of_ones_own_is_compared_over_the_users_that_are_given():
    class Total:
        name = "total"

        def __init__(self, most):
            self.most = expression(most)

        def sensitivity(self, relation):
            size = self.most
            return Sensitivity(l1=size, l2=size, linf=size, reason="numbers from -1 to 2")

        def compute(self, data, *, step=None):
            return np.array([float(data)])

    users = [-1, 0, Fraction(1, 2), 2]
    assert_sensitivity(Total(3), ReplaceOne(), {}, users=users)
    assert_sensitivity(Total(2), AddRemoveOne(), {}, users=users)
    with pytest.raises(AssertionError, match=r"l1 is stated as 2, the largest change is 3"):
        assert_sensitivity(Total(2), ReplaceOne(), {}, users=users)
    with pytest.raises(ParameterError, match=r"no H, S, A among the values.*give `users`"):
        assert_sensitivity(Total(3), ReplaceOne(), {})
    with pytest.raises(ParameterError, match="expected 1 to 1000 users, got 0"):
        assert_sensitivity(Total(3), ReplaceOne(), {}, users=[])
    with pytest.raises(ParameterError, match="initial='any'"):
        assert_sensitivity(Total(3), ReplaceOne(initial="fixed"), {}, users=users)
