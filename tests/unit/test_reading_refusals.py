"""Bad files: one message that has every kind of problem, with the places."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privcheck.data.reading import Users
from privcheck.data.reading import read_trajectories as read_stated
from privcheck.errors import FileFormatError, ParameterError, TrajectoryError

ALONE = Users(one_episode_is_one_user=True)

HEADER = "episode,step,state,action,reward,next_state"
# three episodes of three steps; the first data line is line 2 of the file
ROWS = [
    "0,1,0,0,0.5,1", "0,2,1,1,1,2", "0,3,2,0,0,0",
    "1,1,2,1,0.25,2", "1,2,2,1,0,1", "1,3,1,0,1,1",
    "2,1,1,1,0,0", "2,2,0,0,0.75,0", "2,3,0,1,1,2",
]  # fmt: skip
COLUMNS = {
    "episode": [0, 0, 1, 1],
    "step": [1, 2, 1, 2],
    "state": [0, 1, 2, 0],
    "action": [1, 0, 1, 0],
    "reward": [0.5, 1.0, 0.0, 0.25],
    "next_state": [1, 2, 0, 1],
}


def read_trajectories(path, **how):
    """As the reader; each episode is said to be another user's, unless the table names the users."""
    return read_stated(path, **{"users": ALONE, **how})


def _csv(tmp_path, lines, header=HEADER):
    path = tmp_path / "trips.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def _problems(path, **sizes):
    with pytest.raises(TrajectoryError) as caught:
        read_trajectories(path, **sizes)
    assert str(path) in str(caught.value)
    return caught.value.problems


def _edited(*changes):
    """Returns the rows with some lines (numbered as in the file) replaced; None drops one."""
    lines = dict(enumerate(ROWS, start=2)) | dict(changes)
    return [line for _, line in sorted(lines.items()) if line is not None]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(4, "0,3,x,0,0,0")], "state: expected a number: line 4"),
        ([(4, "0,3,0x2,0,0,0")], "state: expected a number: line 4"),
        ([(4, "0,3,2.5,0,0,0")], "state: expected a whole number: line 4"),
        ([(4, "0,3,2,,0,0")], "action: empty: line 4"),
        ([(4, "0,3,2,-1,0,0")], "action: expected a number of at least 0: line 4"),
        ([(4, "0,3,2,0,nan,0")], "reward: not finite: line 4"),
        ([(4, "0,3,2,0,-inf,0")], "reward: not finite: line 4"),
        ([(4, "0,3,2,0,1.5,0")], "reward: expected a value in [0, 1]"),
        ([(4, "0,3,2,0,-0.125,0")], "not by the data's own): line 4"),
        ([(4, "0,3,2,0,1.0000001,0")], "not by the data's own): line 4"),
        ([(4, "0,3,2,0,NA,0")], "reward: expected a number: line 4"),
        ([(4, "0,q,2,0,0,0")], "step: expected a number: line 4"),
        ([(4, ",3,2,0,0,0")], "episode: empty: line 4"),
        ([(5, "-1,1,2,1,0,2"), (6, "-1,2,2,1,0,1")], "episode: expected a number of at least 0"),
        ([(4, "0,3,2,0")], "expected 6 values per line, as in the header: line 4 has 4"),
        ([(4, "0,3,2,0,0,0,9,9")], "line 4 has 8"),
        ([(4, None)], "has no step 3"),
        ([(6, None)], "the episode that begins on line 5 has no step 2"),
        ([(11, "3,1,0,0,0,0")], "the episode that begins on line 11 has no step 2, 3"),
        ([(11, "2,4,2,0,0,0")], "steps beyond the last"),
        ([(2, "0,0,0,0,0.5,1")], "the episode that begins on line 2 has no step 1"),
        ([(11, "2,2,0,0,0.75,0")], "(keep one row): line 9 and line 11"),
        ([(3, "0,2,2,1,1,2")], "the state of the step after: line 2, then line 3"),
        ([(4, "0,3,2,0,0,1000000000000")], "next_state 1000000000000 at line 4, action 1 at line 3): one step's"),
        ([(4, "0,3,2,1e30,0,0")], "above the limit of 8,589,934,592"),
    ],
)  # fmt: skip
def test_each_problem_is_named_with_its_line(tmp_path, changes, expected):
    problems = _problems(_csv(tmp_path, _edited(*changes)))
    assert expected in "\n".join(problems)


def test_all_problems_come_in_one_message(tmp_path):
    lines = _edited(
        (2, "0,1,x,0,nan,1"), (3, "0,2,1.5,-1,1.5,2"), (4, "0,3,2,0,,0"), (5, "1,1,2,1,0.25,1"), (7, None),
        (9, "2,1,1,1,0,0"), (11, "2,3,0,1"),
    )  # fmt: skip
    problems = _problems(_csv(tmp_path, lines))
    kinds = [line.split(":")[0].split(" (")[0] for line in problems]
    assert kinds == [
        "expected 6 values per line, as in the header", "state", "state", "action", "reward", "reward", "reward",
        "the same episode and step twice", "missing steps", "the chain breaks",
    ]  # fmt: skip


def test_the_first_five_places_and_how_many_more(tmp_path):
    fields = [line.split(",") for line in ROWS]
    lines = [",".join([*row[:4], "7", row[5]]) for row in fields]
    (line,) = _problems(_csv(tmp_path, lines))
    assert line.endswith("line 2; line 3; line 4; line 5; line 6; and 4 more")


def test_lines_count_the_header_and_blank_lines(tmp_path):
    path = _csv(tmp_path, ["", *_edited((4, "0,3,x,0,0,0")), "", ""])
    with pytest.raises(TrajectoryError, match="lines count the header as line 1") as caught:
        read_trajectories(path)
    assert caught.value.problems == ("state: expected a number: line 5",)


def test_line_numbers_stay_right_after_torn_lines(tmp_path):
    problems = _problems(_csv(tmp_path, _edited((3, "0,2"), (4, "0,3"), (8, "2,1,1,one,0,0"))))
    assert "line 3 has 2; line 4 has 2" in problems[0]
    assert "action: expected a number: line 8" in problems


def test_a_file_without_one_whole_line(tmp_path):
    (line,) = _problems(_csv(tmp_path, ["1,2", "3"]))
    assert line.endswith("line 2 has 2; line 3 has 1")


def test_given_sizes_are_the_range_of_the_ids(tmp_path):
    path = _csv(tmp_path, ROWS)
    assert read_trajectories(path, num_states=3, num_actions=2).warning == ""
    assert read_trajectories(path, num_states=9, num_actions=5).trajectories.num_states == 9
    problems = _problems(path, num_states=2, num_actions=1)
    assert [line.split(":")[0] for line in problems] == ["state", "next_state", "action"]
    assert "expected an id in 0..1: line 4; line 5; line 6" in problems[0]
    with pytest.raises(TrajectoryError, match="above the limit"):
        read_trajectories(path, num_states=10**6, num_actions=2)
    for wrong in (0, -1, 2.0, True, "3"):
        with pytest.raises(ParameterError, match="num_states: expected a whole number"):
            read_trajectories(path, num_states=wrong)


def test_sizes_from_the_data_come_with_a_warning(tmp_path):
    reading = read_trajectories(_csv(tmp_path, ROWS), num_actions=2)
    assert (reading.facts["S"], reading.facts["A"]) == (3, 2)
    assert reading.warning.startswith("S=3 taken from the largest ids in the data, which a single user can change")
    assert reading.warning.endswith("--set S=3")


def test_a_user_with_two_episodes_is_refused(tmp_path):
    users = ["ann", "ann", "ann", "bob", "bob", "bob", "ann", "ann", "ann"]
    path = _csv(tmp_path, [f"{row},{user}" for row, user in zip(ROWS, users, strict=True)], HEADER + ",user")
    (line,) = _problems(path, users=Users())
    assert (
        "a guarantee for 1 would not cover this person: state the most episodes of a user with --max-trajectories"
        in line
    )
    assert line.endswith("episodes that begin on line 2 and on line 8")
    users[6:] = ["cem", "cem", "bob"]
    path = _csv(tmp_path, [f"{row},{user}" for row, user in zip(ROWS, users, strict=True)], HEADER + ",user")
    assert _problems(path, users=Users()) == ("an episode with rows of two users: line 10",)
    users[6:] = ["cem", "", "cem"]
    path = _csv(tmp_path, [f"{row},{user}" for row, user in zip(ROWS, users, strict=True)], HEADER + ",user")
    assert _problems(path, users=Users()) == ("user: empty: line 9",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty"),
        ("empty.parquet", b"", "is empty"),
        ("empty.npz", b"", "is empty"),
        ("header.csv", HEADER.encode(), "has a header but no rows"),
        ("header.csv", HEADER.encode() + b"\n\n", "has a header but no rows"),
        ("binary.csv", b"PAR1\x00\x01\xff", "expected a text file"),
        ("latin.csv", HEADER.encode() + b"\n\xe9,1,0,0,0,0\n", "cannot be read as CSV: .*UTF8"),
        ("words.csv", b"hello world\n1\n", "no column episode, step, state, .*found: hello world"),
        ("semicolons.csv", HEADER.replace(",", ";").encode() + b"\n", "separate the values by commas"),
        ("missing.csv", HEADER.replace("reward", "r").encode() + b"\n", "no column reward"),
        ("twice.csv", (HEADER + ",state").encode() + b"\n", "column state occurs more than once"),
        ("quote.csv", f'{HEADER}\n"0,1,0,0,0,0\n0,2,0,0,0,0\n'.encode(), "runs over the end of line 2"),
        ("words.parquet", b"hello world", "cannot be read as Parquet"),
        ("words.npz", b"hello world", "expected an NPZ archive"),
        ("words.xlsx", b"hello", r"ends in \.parquet, \.csv, \.npz, got \.xlsx"),
        ("words", b"hello", "got no ending"),
    ],
)
def test_files_that_are_something_else(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_trajectories(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_missing_files_and_directories(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for path, message in (("nothing.csv", "no such file"), ("folder.csv", "is a directory"), ("", "is a directory")):
        with pytest.raises(FileFormatError, match=message):
            read_trajectories(tmp_path / path)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("state", ["0", "1", "2", "0"], "state: expected a column of numbers, got one of type string"),
        ("action", [True, False, True, False], "got one of type bool"),
        ("step", [[1], [2], [1], [2]], "got one of type list"),
        ("episode", pa.array([0, 0, 1, 1], pa.timestamp("s")), "expected a column of whole numbers or text"),
        ("episode", [0.5, 0.5, 1.0, 1.0], "got numbers with a fraction"),
        ("episode", [0.0, 0.0, 1.0, np.nan], "episode: empty: row 4"),
        ("reward", [0.5, None, np.nan, 0.25], "reward: empty: row 2"),
        ("reward", [None, None, None, None], "reward: empty: row 1; row 2; row 3; row 4"),
        ("state", [0, 1, 2**62, 0], "above the limit"),
    ],
)
def test_parquet_columns_of_another_type(tmp_path, column, values, expected):
    path = tmp_path / "trips.parquet"
    pq.write_table(pa.table({**COLUMNS, column: values}), path)
    assert expected in "\n".join(_problems(path))


def test_parquet_rows_count_from_one(tmp_path):
    path = tmp_path / "trips.parquet"
    pq.write_table(pa.table({**COLUMNS, "reward": [0.5, 2.0, 0.0, 0.25]}), path)
    with pytest.raises(TrajectoryError, match=r"4 rows; rows count from 1") as caught:
        read_trajectories(path)
    assert caught.value.problems[0].endswith(": row 2")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"states": np.zeros((2, 2), int)}, "states: expected shape (2, 3) beside actions of (2, 2), got (2, 2)"),
        ({"rewards": np.zeros((2, 3))}, "rewards: expected shape (2, 2)"),
        ({"actions": np.zeros((0, 2), int)}, "actions: expected a non-empty array"),
        ({"actions": np.array([["a", "b"], ["c", "d"]])}, "actions: expected an array of numbers"),
        ({"states": np.array([[0, 1, 2], [0, -1, 2]])}, "states: expected a number of at least 0: user 2, step 2"),
        ({"states": np.array([[0, 1, 2], [0, 0.5, 2]])}, "states: expected a whole number: user 2, step 2"),
        ({"states": np.array([[0, 1, 2], [0, np.nan, 2]])}, "states: not finite: user 2, step 2"),
        ({"rewards": np.array([[0, 1], [0, 1.5]])}, "user 2, step 2"),
        ({"num_states": np.array(2)}, "states: expected an id in 0..1: user 1, step 3"),
        ({"num_states": np.array([2, 3])}, "num_states: expected one whole number"),
        ({"num_actions": np.array(0.5)}, "num_actions: expected one whole number"),
        ({"states": np.array([[0, 1, 2], [0, 10**9, 2]])}, "states 1000000000 at user 2, step 2, actions 1 at"),
    ],
)
def test_npz_arrays_are_checked_likewise(tmp_path, change, expected):
    arrays = {"states": np.array([[0, 1, 2], [2, 2, 0]]), "actions": np.eye(2, dtype=int), "rewards": np.zeros((2, 2))}
    np.savez(tmp_path / "trips.npz", **{**arrays, **change})
    assert expected in "\n".join(_problems(tmp_path / "trips.npz"))


def test_npz_files_without_the_arrays(tmp_path):
    np.savez(tmp_path / "trips.npz", states=np.zeros((1, 2), int), other=np.zeros(3))
    with pytest.raises(FileFormatError, match=r"no array actions, rewards; expected .*found states, other"):
        read_trajectories(tmp_path / "trips.npz")
    np.savez(tmp_path / "objects.npz", states=np.array([None]), actions=np.zeros(1), rewards=np.zeros(1))
    with pytest.raises(FileFormatError, match="pickled objects, which are never loaded"):
        read_trajectories(tmp_path / "objects.npz")
