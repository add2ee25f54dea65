"""Episodes with observations from Parquet and from memory: what is read, and what is refused, by row."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from privcheck.cli import main
from privcheck.data.reading import Bounds, Users, read_observations
from privcheck.errors import FileFormatError, ParameterError, PrivcheckError, TrajectoryError
from privcheck_algorithms.trained import CART_POLE, SimulatedUsers
from privcheck_algorithms.trained.logged import read_episodes

ALONE = Users(one_episode_is_one_user=True)
BOUNDS = Bounds(low=(-1.0, 0.0), high=(1.0, 10.0), actions=3, rewards=(-2.0, 1.0), limit=4)
ROWS = {
    "episode": ["b", "a", "a", "c", "b", "c", "c"],
    "step": [2, 1, 2, 1, 1, 3, 2],
    "observation": [[0.5, 2], [-1, 0], [1, 10], [0, 1], [0.25, 3], [0, 5], [0, 4]],
    "action": [0, 1, 2, 0, 1, 2, 0],
    "reward": [0.5, -2.0, 1.0, 0.0, 0.25, 0.0, 0.125],
    "terminated": [True, False, False, False, False, True, False],
}


def table(**columns):
    rows = {**ROWS, **columns}
    return pa.table({name: column for name, column in rows.items() if column is not None})


def read(given, *, users=ALONE, bounds=BOUNDS):
    return read_observations(given, bounds=bounds, users=users)


def check(found):
    assert found.lengths.tolist() == [2, 2, 3]  # a, b, c
    assert found.observations[:, :2].tolist() == [[[-1, 0], [1, 10]], [[0.25, 3], [0.5, 2]], [[0, 1], [0, 4]]]
    assert found.observations[:, 2].tolist() == [[0, 0], [0, 0], [0, 5]]
    assert found.actions.tolist() == [[1, 2, 0], [1, 0, 0], [0, 0, 2]]
    assert found.rewards.tolist() == [[-2, 1, 0], [0.25, 0.5, 0], [0, 0.125, 0]]
    assert found.terminated.tolist() == [False, True, True]


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float64()), pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 2)],
    ids=str,
)
def test_a_file_is_read_in_any_order_and_any_kind_of_list(tmp_path, kind):
    column = pa.array(ROWS["observation"], kind)
    pq.write_table(table(observation=column), tmp_path / "trips.parquet", row_group_size=3)
    check(read(tmp_path / "trips.parquet"))


def test_tables_in_memory_are_read_too_and_ends_may_be_numbers():
    check(read(table(terminated=[1, 0, 0, 0, 0, 1, 0])))
    check(read(pd.DataFrame(ROWS)))
    check(read(pd.DataFrame({**ROWS, "observation": [np.array(row, float) for row in ROWS["observation"]]})))
    check(read(table(step=[step - 1 for step in ROWS["step"]])))  # counted from 0


def test_users_are_named_or_stated():
    named = table(patient=[20, 10, 10, 30, 20, 30, 30])
    found = read(named, users=Users(column="patient"))
    check(found)
    assert (found.unit.who, found.unit.trajectories, found.unit.basis) == ("patient", 1, "column")
    assert found.unit.steps == 4  # the stated limit, not what the data have
    with pytest.raises(TrajectoryError, match="does not identify its users"):
        read(table(), users=Users())
    several = table(user=[1, 1, 1, 2, 1, 2, 2])
    with pytest.raises(TrajectoryError, match="more than one episode"):
        read(several, users=Users())
    assert read(several, users=Users(max_trajectories=2)).unit.trajectories == 2
    with pytest.raises(TrajectoryError, match="two users"):
        read(table(user=[1, 1, 1, 2, 2, 2, 2]), users=Users(max_trajectories=3))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"observation": [[0.5, 2], [-1, 0], [1, 10], [0, 1], [0.25], [0, 5], [0, 4]]}, "expected 2 numbers: row 5"),
        ({"observation": [[0.5, 2], None, [1, 10], [0, 1], [0, 0], [0, 5], [0, 4]]}, "expected 2 numbers: row 2"),
        ({"observation": [[0.5, 2], [0, None], [1, 10], [0, 1], [0, 0], [0, 5], [0, 4]]}, "not finite: row 2"),
        ({"observation": [[0.5, 2], [0, np.nan], [1, 10], [0, 1], [0, 0], [0, 5], [0, 4]]}, "not finite: row 2"),
        ({"observation": [[0.5, 2], [0, np.inf], [1, 10], [0, 1], [0, 0], [0, 5], [0, 4]]}, "not finite: row 2"),
        ({"observation": [[0.5, 2], [-1, 11], [1, 10], [0, 1], [0, 0], [0, 5], [0, -1]]}, "1 from 0 to .*row 2; row 7"),
        ({"observation": [[0.5, 2], [-1, 0], [1.1, 10], [0, 1], [0, 0], [0, 5], [0, 4]]}, "coordinate 0 .* row 3"),
        ({"observation": [1.0] * 7}, "lists of 2 numbers, got one of type double"),
        ({"observation": [["x", "y"]] * 7}, "lists of 2 numbers"),
        ({"action": [0, 1, 3, 0, 1, 2, 0]}, r"id in 0\.\.2: row 3"),
        ({"action": [0, 1, 0.5, 0, 1, 2, 0]}, "whole number: row 3"),
        ({"reward": [0.5, -2.5, 1.0, 0.0, 0.25, 0.0, 2.0]}, "stated public bounds .*: row 2; row 7"),
        ({"reward": [0.5, None, 1.0, 0.0, 0.25, 0.0, 1.0]}, "reward: empty: row 2"),
        ({"terminated": [True, True, False, False, False, True, False]}, "no step of the episode after it: row 2"),
        ({"terminated": [True, None, False, False, False, True, False]}, "terminated: empty: row 2"),
        ({"terminated": [2, 0, 0, 0, 0, 1, 0]}, r"terminated: expected an id in 0\.\.1: row 1"),
        ({"step": [2, 1, 2, 1, 1, 4, 2]}, "missing steps.*row 6"),
        ({"step": [2, 1, 1, 1, 1, 3, 2]}, "the same episode and step twice.*row 2 and row 3"),
        ({"step": [2, 2, 3, 1, 1, 3, 2]}, "missing steps.*row 2"),
    ],
    ids=[
        "short", "null", "null inside", "nan", "inf", "bounds", "bounds of the first", "numbers", "texts", "no action",
        "half an action", "rewards", "no reward", "ends early", "no end", "two ends", "gap", "twice", "late start",
    ],
)  # fmt: skip
def test_rows_that_are_not_as_stated_are_refused_with_their_places(columns, says):
    with pytest.raises(TrajectoryError) as refused:
        read(table(**columns))
    text = "\n".join(refused.value.problems)
    assert re.search(says, text), text
    assert "0.5" not in text.replace("0.5,", "")  # no value of a row


def test_episodes_beyond_the_limit_are_refused():
    short = Bounds(low=BOUNDS.low, high=BOUNDS.high, actions=3, rewards=BOUNDS.rewards, limit=2)
    with pytest.raises(TrajectoryError) as refused:
        read(table(), bounds=short)
    assert refused.value.problems == (
        "steps beyond the stated limit of 2 an episode (state the true one, or cut longer episodes): row 6",
    )


def test_several_kinds_of_problems_are_in_one_message():
    with pytest.raises(TrajectoryError, match="3 kinds of problems") as refused:
        read(table(action=[9] * 7, reward=[9.0] * 7, step=[2, 1, 2, 1, 1, 4, 2]))
    assert "and 2 more" in refused.value.problems[0]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"low": (0.0,)}, ParameterError),
        ({"low": (0.0, 10.5)}, ParameterError),
        ({"low": (0.0, -np.inf)}, ParameterError),
        ({"low": (), "high": ()}, ParameterError),
        ({"rewards": (1.0, 0.5)}, ParameterError),
        ({"actions": 0}, ParameterError),
        ({"limit": 2.5}, ParameterError),
        ({"limit": True}, ParameterError),
    ],
    ids=str,
)
def test_bounds_that_bound_nothing_are_refused(how, error):
    own = {"low": BOUNDS.low, "high": BOUNDS.high, "actions": 3, "rewards": BOUNDS.rewards, "limit": 4}
    with pytest.raises(error):
        Bounds(**{**own, **how})


def test_other_files_are_refused(tmp_path):
    (tmp_path / "trips.csv").write_text("episode,step\n")
    with pytest.raises(FileFormatError, match=r"\.parquet"):
        read(tmp_path / "trips.csv")
    with pytest.raises(FileFormatError, match="no column terminated"):
        read(table(terminated=None))
    with pytest.raises(PrivcheckError, match="expected"):
        read([1, 2])


def test_simulated_episodes_come_back_as_they_were():
    """Written as a table of unscaled observations, and read for the same task."""
    asked = range(6)
    played = SimulatedUsers(task=CART_POLE, seed=1).play(lambda _, u, __: (u > 0.5) * 1, asked)
    rows = {name: [] for name in ROWS} | {"user": []}
    for user in asked:
        for t in range(played.lengths[user]):
            seen = played.observations[user, t] * np.array(CART_POLE.scale) + np.array(CART_POLE.centre)
            last = played.terminated[user] and t + 1 == played.lengths[user]
            values = (user, t, seen, played.actions[user, t], played.rewards[user, t], bool(last), 100 - user)
            for column, value in zip(rows.values(), values, strict=True):
                column.append(value)
    bounds = {"low": (-5.0,) * 4, "high": (5.0,) * 4}
    task = CART_POLE
    with pytest.raises(TrajectoryError):
        read_episodes(pd.DataFrame({**rows, "reward": [2.0] * len(rows["reward"])}), task, **bounds)
    with pytest.raises(ParameterError, match="4 numbers that the task observes"):
        read_episodes(pd.DataFrame(rows), task, low=(-5.0,), high=(5.0,))
    with pytest.raises(ParameterError, match="one of each"):
        read_episodes(pd.DataFrame(rows), task, **bounds, users=Users(max_trajectories=2))
    found = read_episodes(pd.DataFrame(rows), task, **bounds)
    np.testing.assert_allclose(found.episodes.observations, played.observations, rtol=0, atol=1e-12)
    for name in ("actions", "rewards", "lengths", "terminated", "users"):
        assert np.array_equal(getattr(found.episodes, name), getattr(played, name)), name
    assert found.unit.who == "user"


CSV = """stay,patient,t,age,pulse,drug,score,dead,ward
7,p1,0,50,60.5,1,-3,0,A
7,p1,1,51,,0,2,1,A
8,p2,0,30,80,1,0.5,0,B
"""
NAMED = ("--column", "episode=stay", "--column", "user=patient", "--column", "step=t", "--column", "action=drug")
NAMED = (*NAMED, "--column", "reward=score", "--column", "terminated=dead")
RANGES = ("--horizon", "5", "--reward-range", "-5", "5", "--observe", "age:0:120,pulse:20:250")


def prepare(tmp_path, text, *more, named=NAMED, code=0):
    (tmp_path / "stays.csv").write_text(text)
    given = ["prepare", str(tmp_path / "stays.csv"), "--out", str(tmp_path / "out.parquet"), *named, *more, "--json"]
    result = CliRunner().invoke(main.main, given)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_columns_of_numbers_are_prepared_as_vectors(tmp_path):
    made = prepare(tmp_path, CSV.replace(",,", ",61,"), *RANGES)
    assert (made["rows"], made["episodes"], made["steps"], made["unit"]["who"]) == (3, 2, 5, "patient")
    bounds = Bounds(low=(0.0, 20.0), high=(120.0, 250.0), actions=2, rewards=(-5.0, 5.0), limit=5)
    found = read_observations(tmp_path / "out.parquet", bounds=bounds)
    assert found.observations.tolist() == [[[50, 60.5], [51, 61]], [[30, 80], [0, 0]]]
    assert found.actions.tolist() == [[1, 0], [1, 0]]
    assert found.rewards.tolist() == [[-3, 2], [0.5, 0]]
    assert found.terminated.tolist() == [True, False]
    assert (found.unit.who, found.unit.trajectories) == ("patient", 1)
    assert "column patient" in found.unit.stated_by
    clipped = prepare(tmp_path, CSV.replace(",,", ",61,"), *RANGES[:2], "--reward-range", "-1", "1", "--clip-rewards",
                      *RANGES[5:])  # fmt: skip
    assert clipped["changed"] == {"reward clipped": 2}


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        (CSV, RANGES, "pulse: empty: line 3"),
        (CSV.replace(",,", ",300,"), RANGES, "coordinate 1 from 20 to 250.*line 3"),
        (CSV.replace(",,", ",60,").replace("-3", "-9"), RANGES, "stated public bounds.*line 2"),
        (CSV.replace(",,", ",60,").replace("p2", "p1"), RANGES, "more than one episode"),
        (CSV.replace(",,", ",x,"), RANGES, "pulse: expected a number: line 3"),
        (CSV.replace(",patient,", ",who,"), RANGES, "names; found"),
        (CSV, RANGES[:5], "--column terminated: expected"),
        (CSV, RANGES[2:], "--horizon"),
        (CSV, (*RANGES, "--missing", "drop"), "leave out --missing"),
        (CSV, (*RANGES[:-1], "age:0"), "--observe expects"),
        (CSV, (*RANGES[:-1], "age:0:1,age:0:1"), "--observe expects"),
        (CSV, (*RANGES[:-1], "age:1:0"), "--observe expects"),
        (CSV, (*RANGES[:-1], "weight:0:1"), "no column weight"),
        (CSV, (*RANGES, "--column", "state=ward"), "--column state"),
    ],
    ids=["empty", "bounds", "rewards", "two", "text", "no user", "no observe", "no horizon", "choices", "form", "twice",
         "order", "unknown", "state"],
)  # fmt: skip
def test_what_is_not_as_stated_is_not_prepared(tmp_path, text, more, says):
    refused = prepare(tmp_path, text, *more, code=2)
    told = "\n".join([refused["message"], *refused.get("problems", ())])
    assert re.search(says, told), told
    assert not (tmp_path / "out.parquet").exists()
