"""Good files: the same trajectories from every format, in any order; and the naive reader agrees with the fast one."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.commands.datasets import load
from privcheck.data.reading import Users, read_rewards, write_trajectories
from privcheck.data.reading import read_trajectories as read_stated
from privcheck.errors import FileFormatError, ParameterError, TrajectoryError
from privcheck.runtime import registry
from privcheck.testing import trajectories

ALONE = Users(one_episode_is_one_user=True)
FORMATS = ["parquet", "csv", "npz"]


def read_trajectories(path, **how):
    """As the reader; each episode is said to be another user's, unless the table names the users."""
    return read_stated(path, **{"users": ALONE, **how})


def _same(one, other):
    return (
        np.array_equal(one.states, other.states)
        and np.array_equal(one.actions, other.actions)
        and np.array_equal(one.rewards, other.rewards)
        and (one.num_states, one.num_actions) == (other.num_states, other.num_actions)
    )


@pytest.mark.parametrize("ending", FORMATS)
def test_what_is_written_is_read_back(data, tmp_path, ending):
    path = tmp_path / f"trips.{ending}"
    write_trajectories(path, data)
    reading = read_trajectories(path, num_states=3, num_actions=2)
    assert _same(reading.trajectories, data)
    assert reading.warning == ""
    expected = {
        "file": path.name, "rows": 14, "users": 7, "H": 2, "S": 3, "A": 2,
        "protected": "user (1 trajectory, of up to 2 steps)",
        "stated by": "the reader of the table: one episode is one user",
    }  # fmt: skip
    assert {k: v for k, v in reading.facts.items() if k != "format"} == expected
    assert reading.facts["format"] == {"parquet": "Parquet", "csv": "CSV", "npz": "NPZ"}[ending]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@given(trajectories(3, 4, 2, users=st.integers(1, 4)))
def test_every_float_survives_every_format(tmp_path_factory, dataset):
    folder = tmp_path_factory.mktemp("formats")
    for ending in FORMATS:
        write_trajectories(folder / f"trips.{ending}", dataset)
        reading = read_trajectories(folder / f"trips.{ending}", num_states=4, num_actions=2)
        assert _same(reading.trajectories, dataset)


def test_an_npz_file_holds_its_sizes(data, tmp_path):
    write_trajectories(tmp_path / "trips.npz", data)
    assert read_trajectories(tmp_path / "trips.npz").warning == ""
    larger = read_trajectories(tmp_path / "trips.npz", num_states=8)
    assert (larger.facts["S"], larger.facts["A"], larger.warning) == (8, 2, "")


def test_writing_never_leaves_half_a_file(data, tmp_path):
    with pytest.raises(FileFormatError, match="expected a file that ends in"):
        write_trajectories(tmp_path / "trips.xlsx", data)
    with pytest.raises(FileFormatError, match="cannot be written"):
        write_trajectories(tmp_path / "nowhere" / "trips.csv", data)
    (tmp_path / "trips.csv").mkdir()
    with pytest.raises(FileFormatError, match="cannot be written"):
        write_trajectories(tmp_path / "trips.csv", data)
    assert [p.name for p in tmp_path.iterdir()] == ["trips.csv"]


def _table(data, base=1):
    users, horizon = data.actions.shape
    return pa.table({
        "episode": np.repeat(np.arange(users), horizon),
        "step": np.tile(np.arange(horizon) + base, users),
        "state": data.states[:, :-1].ravel(),
        "action": data.actions.ravel(),
        "reward": data.rewards.ravel(),
        "next_state": data.states[:, 1:].ravel(),
    })  # fmt: skip


@pytest.mark.parametrize("base", [0, 1])
def test_rows_in_any_order_and_steps_from_0_or_1(data, tmp_path, base):
    table = _table(data, base)
    shuffled = table.take(np.random.default_rng(2).permutation(table.num_rows))
    pq.write_table(shuffled, tmp_path / "trips.parquet")
    pyarrow.csv.write_csv(shuffled.select(list(reversed(table.column_names))), tmp_path / "trips.csv")
    for ending in ("parquet", "csv"):
        assert _same(read_trajectories(tmp_path / f"trips.{ending}", num_states=3, num_actions=2).trajectories, data)


@pytest.mark.parametrize(
    ("change", "order"),
    [
        ({"episode": [f"p{9 - i // 2}" for i in range(14)]}, slice(None, None, -1)),  # text sorts as text
        ({"episode": [float(i // 2) for i in range(14)]}, slice(None)),
        ({"episode": np.arange(14, dtype=np.uint64) // 2 + 2**63}, slice(None)),
        ({"episode": pa.array([f"p{i // 2}" for i in range(14)]).dictionary_encode()}, slice(None)),
        ({"episode": pa.array([f"p{i // 2}" for i in range(14)], pa.large_string())}, slice(None)),
        ({"step": [1.0, 2.0] * 7}, slice(None)),
        ({"user": [f"u{i // 2}" for i in range(14)]}, slice(None)),
    ],
)
def test_identifiers_of_many_types(data, tmp_path, change, order):
    table = _table(data).to_pydict() | change
    pq.write_table(pa.table(table), tmp_path / "trips.parquet")
    users = Users() if "user" in change else ALONE
    reading = read_trajectories(tmp_path / "trips.parquet", num_states=3, num_actions=2, users=users)
    assert np.array_equal(reading.trajectories.states, data.states[order])
    assert "ignored columns" not in reading.facts


@pytest.mark.parametrize(("most", "each"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
def test_a_user_may_have_as_many_episodes_as_are_allowed_and_no_more(data, tmp_path, most, each):
    owners = [episode // each for episode in range(data.users)]
    table = _table(data).to_pydict() | {"user": [f"u{owner}" for owner in np.repeat(owners, data.horizon)]}
    pq.write_table(pa.table(table), tmp_path / "trips.parquet")
    sizes = {"num_states": 3, "num_actions": 2}
    read = read_trajectories(tmp_path / "trips.parquet", **sizes, users=Users(max_trajectories=most))
    assert _same(read.trajectories, data)
    assert read.facts["users" if most == 1 else "episodes"] == data.users
    largest = max(Counter(owners).values())
    if largest > 1:
        with pytest.raises(TrajectoryError, match=r"a user with more than (one episode|[0-9] episodes)"):
            read_trajectories(tmp_path / "trips.parquet", **sizes, users=Users(max_trajectories=largest - 1))
    with pytest.raises(ParameterError, match="--max-trajectories expects a whole number, at least 1"):
        Users(max_trajectories=0)


def test_text_episodes_of_digits_sort_as_numbers(tmp_path):
    lines = [f"{episode},1,{episode % 3},0,0,0" for episode in (10, 9, 100)]
    (tmp_path / "t.csv").write_text(
        "episode,step,state,action,reward,next_state\n" + "\n".join(lines), encoding="utf-8"
    )
    read = read_trajectories(tmp_path / "t.csv").trajectories
    assert read.states[:, 0].tolist() == [9 % 3, 10 % 3, 100 % 3]


@pytest.mark.parametrize("turn", [
    lambda t: t.replace("\n", "\r\n"),
    lambda t: "\ufeff" + t,
    lambda t: t.replace("\n", "\n\n"),
    lambda t: t.replace(",", " , "),
    lambda t: t.replace(",1,", ",1.0,"),
    lambda t: '"' + t.strip().replace(",", '","').replace("\n", '"\n"') + '"',
    lambda t: t.rstrip("\n"),
    lambda t: "\n".join(line + ",a note" for line in t.strip().split("\n")),
])  # fmt: skip
def test_dialects_of_csv(data, tmp_path, turn):
    pyarrow.csv.write_csv(
        _table(data), tmp_path / "plain.csv", pyarrow.csv.WriteOptions(quoting_style="none", quoting_header="none")
    )
    text = turn((tmp_path / "plain.csv").read_text(encoding="utf-8"))
    (tmp_path / "trips.csv").write_text(text, encoding="utf-8", newline="")
    reading = read_trajectories(tmp_path / "trips.csv", num_states=3, num_actions=2)
    assert _same(reading.trajectories, data)
    assert reading.facts.get("ignored columns") == ("a note" if "a note" in text else None)


def _naive(rows, num_states, num_actions):
    """Returns {(episode, step): row} if the rows are trajectories, else None: every rule in its plainest words."""
    cells = {}
    for row in rows:
        episode, step, state, action, reward, following = row
        if (episode, step) in cells or step < 0 or episode < 0:
            return None
        if not (0 <= state < num_states and 0 <= following < num_states and 0 <= action < num_actions):
            return None
        if not 0 <= reward <= 1:
            return None
        cells[episode, step] = row
    steps = {episode: {s for e, s in cells if e == episode} for episode, _ in cells}
    horizon = Counter(len(s) for s in steps.values()).most_common(1)[0][0]
    if not any(all(s == set(range(base, base + horizon)) for s in steps.values()) for base in (0, 1)):
        return None
    chained = all(cells[e, s][5] == cells[e, s + 1][2] for e, s in cells if (e, s + 1) in cells)
    return cells if chained else None


@st.composite
def _nearly_trajectories(draw):
    data = draw(trajectories(draw(st.integers(1, 3)), 3, 2, users=draw(st.integers(1, 4))))
    columns = _table(data, draw(st.sampled_from([0, 1]))).to_pydict()
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        kind = draw(st.sampled_from(["edit", "drop", "repeat"]))
        index = draw(st.integers(0, len(rows) - 1))
        if kind == "edit":
            rows[index][draw(st.sampled_from([0, 1, 2, 3, 5]))] = draw(st.integers(-1, 4))
        elif kind == "repeat":
            rows.append(list(rows[index]))
        elif len(rows) > 1:
            rows.pop(index)
    return draw(st.permutations(rows))


@given(_nearly_trajectories())
def test_the_naive_reader_agrees(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("naive") / "trips.csv"
    text = "".join(",".join(map(repr, row)) + "\n" for row in rows)
    path.write_text("episode,step,state,action,reward,next_state\n" + text, encoding="utf-8")
    expected = _naive(rows, 3, 2)
    if expected is None:
        with pytest.raises(TrajectoryError):
            read_trajectories(path, num_states=3, num_actions=2)
        return
    read = read_trajectories(path, num_states=3, num_actions=2).trajectories
    flat = zip(
        read.states[:, :-1].ravel(), read.actions.ravel(), read.rewards.ravel(), read.states[:, 1:].ravel(), strict=True
    )
    assert [tuple(row[2:]) for _, row in sorted(expected.items())] == list(flat)


def test_a_public_reward_table(tmp_path):
    cells = list(itertools.product(range(3), range(2)))
    values = {cell: (1 + cell[0] * 2 + cell[1]) / 8 for cell in cells}
    lines = [f"{s},{a},{values[s, a]}" for s, a in reversed(cells)]
    (tmp_path / "r.csv").write_text("state,action,reward\n" + "\n".join(lines), encoding="utf-8")
    table = read_rewards(tmp_path / "r.csv", num_states=3, num_actions=2)
    assert table.shape == (3, 2, 1)
    assert table.dtype == np.float64
    assert all(table[cell][0] == value for cell, value in values.items())
    s, a, following = (x.ravel() for x in np.meshgrid(range(3), range(2), range(3), indexing="ij"))
    reward = np.random.default_rng(0).random(18)
    pq.write_table(
        pa.table({"state": s, "action": a, "next_state": following, "reward": reward}), tmp_path / "r.parquet"
    )
    assert np.array_equal(read_rewards(tmp_path / "r.parquet", num_states=3, num_actions=2).ravel(), reward)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0,0,1", "1,0,0"], "no reward for a cell (every one needs a row): state 0, action 1; state 1, action 1"),
        (["0,0,1", "0,1,1", "1,0,0", "1,1,0", "0,1,1"], "(keep one row): state 0, action 1: line 3 and line 6"),
        (["0,0,1", "0,1,1", "1,0,0", "1,2,0"], "action: expected an id in 0..1: line 5"),
        (["0,0,1", "0,1,1", "1,0,0", "1,1,1.5"], "not by the data's own): line 5"),
        (["0,0,1", "0,1,1", "1,0,0", "1,1,"], "reward: empty: line 5"),
        ([], "has a header but no rows"),
    ],
)  # fmt: skip
def test_bad_reward_tables(tmp_path, lines, message):
    (tmp_path / "r.csv").write_text("\n".join(["state,action,reward", *lines]) + "\n", encoding="utf-8")
    with pytest.raises(FileFormatError) as caught:
        read_rewards(tmp_path / "r.csv", num_states=2, num_actions=2)
    assert message in str(caught.value)


def test_importing_the_reader_does_not_load_arrow():
    code = "import sys, privcheck.data.reading; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_command_lets_each_user_have_as_many_episodes_as_the_declared_relation_says(data, tmp_path):
    algorithm, path = registry.algorithm("bounded-contribution-apvi"), tmp_path / "trips.parquet"
    table = _table(data).to_pydict() | {"user": [f"u{episode // 3}" for episode in np.repeat(range(7), data.horizon)]}
    pq.write_table(pa.table(table), path)
    sizes = {"S": "3", "A": "2"}
    for m, allowed in (({"m": "3"}, True), ({"m": "2"}, False), ({}, True)):  # by default m = 5
        arguments = {"env": None, "data": str(path), "rewards": None, "given": m | sizes, "seed": 0}
        if allowed:
            assert load(**arguments, algorithm=algorithm).data.trajectories.users == 7
        else:
            with pytest.raises(TrajectoryError, match="more than 2 episodes"):
                load(**arguments, algorithm=algorithm)
    with pytest.raises(TrajectoryError, match="more than one episode"):
        load(env=None, data=str(path), rewards=None, given=sizes, seed=0, algorithm=registry.algorithm("dp-apvi"))
