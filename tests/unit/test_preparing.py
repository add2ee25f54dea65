"""Raw tables become the same trajectories as by a loop over rows that shares no code with what is tested."""

import csv
import json
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import load_policy
from privcheck.cli.main import main
from privcheck.data.preparing import Codebook, PreparationPlan, prepare, raw_tables, read_codebook, read_labels
from privcheck.data.reading import Users, read_trajectories
from privcheck.errors import FileFormatError, ParameterError, PrivcheckError, TrajectoryError

STATES, ACTIONS = ("well", "ill", "gone"), ("wait", "treat")
ALONE = Users(one_episode_is_one_user=True)
BOOK = Codebook(states=STATES, actions=ACTIONS)
NAMES = ("episode", "step", "state", "action", "reward", "next_state")


def table_of(episodes):
    """Rows of (user, [(state, action, reward), …]) with a number for each episode."""
    rows = {name: [] for name in ("episode", "step", "state", "action", "reward", "user")}
    for number, (user, steps) in enumerate(episodes):
        for place, (state, action, reward) in enumerate(steps):
            for name, value in zip(rows, (number, place, state, action, reward, user), strict=True):
                rows[name].append(value)
    return rows


def naive(episodes, plan):
    """The same, episode by episode."""
    seen, rows, number = Counter(), [], 0
    low, high = plan.reward_range or (0, 1)
    ended = len(STATES)
    for user, steps in episodes:
        seen[user] += 1
        if plan.keep == "first" and seen[user] > plan.users.max_trajectories:
            continue
        if any(value is None for step in steps for value in step):
            continue
        horizon = plan.horizon or len(episodes[0][1])
        if len(steps) < horizon and plan.short == "drop":
            continue
        states = [STATES.index(state) for state, _, _ in steps] + [ended] * (horizon + 1)
        for h in range(horizon):
            real = h < len(steps)
            reward = (steps[h][2] - low) / (high - low) if real else (plan.padded_with - low) / (high - low)
            action = ACTIONS.index(steps[h][1]) if real else 0
            rows.append((number, h + 1, states[h], action, min(max(reward, 0), 1), states[h + 1]))
        number += 1
    return rows


cells = st.tuples(
    st.sampled_from([*STATES, None]) | st.sampled_from(STATES),
    st.sampled_from(ACTIONS),
    st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0, 7.0]),
)
tables = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r"]), st.lists(cells, min_size=1, max_size=5)), min_size=1, max_size=12
)

asked = st.tuples(
    st.sampled_from(["pad", "drop"]), st.sampled_from([("refuse", 12), ("first", 1), ("first", 2)]), st.integers(1, 5),
    st.integers(1, 7),
    st.sampled_from([".parquet", ".csv", ".feather"]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(tables, asked)
def test_it_is_what_a_loop_over_rows_makes(tmp_path_factory, episodes, choices):
    short, (keep, most), horizon, batch, ending = choices
    folder = tmp_path_factory.mktemp("prepare")
    path, out = folder / f"raw{ending}", folder / "trips.parquet"
    write(path, table_of(episodes))
    plan = PreparationPlan(
        codebook=BOOK, reward_range=(-2.0, 3.0), clip_rewards=True, horizon=horizon, missing="drop", short=short,
        keep=keep, users=Users(max_trajectories=most),
    )  # fmt: skip
    wanted = naive(episodes, plan)
    before, raw_tables._BATCH = raw_tables._BATCH, batch  # chunks end anywhere
    try:
        if not wanted:
            with pytest.raises(ParameterError, match="no episode"):
                prepare(path, out, plan)
            assert sorted(folder.iterdir()) == [path]
            return
        done = prepare(path, out, plan)
    finally:
        raw_tables._BATCH = before
    made = pq.read_table(out)
    np.testing.assert_allclose(np.array([made.column(name).to_numpy() for name in NAMES]).T, wanted, atol=1e-12)
    assert (done.rows, done.episodes) == (sum(len(s) for _, s in episodes), len(wanted) // horizon)
    with (folder / "trips.changes.csv").open(encoding="utf-8") as file:
        changed = [int(change["row"]) for change in csv.DictReader(file)]
    assert len(changed) == sum(done.changed.values())
    assert changed == sorted(changed)
    read = read_trajectories(out, num_states=4, num_actions=2).trajectories
    assert read.users == done.episodes
    assert (read.unit, read.unit.who, read.unit.trajectories, read.unit.basis) == (done.unit, "user", most, "column")


def write(path, columns):
    table = pa.table({name: values for name, values in columns.items() if values is not None})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".feather":
        from pyarrow import feather

        feather.write_feather(table, str(path), compression="uncompressed")
    else:
        from pyarrow import csv as arrow_csv

        arrow_csv.write_csv(table, path)
    return path


ROWS = {
    "episode": [1, 1, 2, 2], "step": [0, 1, 0, 1], "state": ["well", "ill", "ill", "gone"],
    "action": ["wait", "treat", "wait", "wait"], "reward": [0.0, 1.0, 0.5, 0.5],
}  # fmt: skip
LONG = {"episode": [1, 1, 1, 2], "step": [0, 1, 2, 0]}


@pytest.mark.parametrize(
    ("changes", "plan", "says"),
    [
        ({"state": ["well", "ill", "dead", "gone"]}, {}, r"codebook \(add it to the public list.*\): row 3 \(dead\)"),
        ({"state": ["well", None, "ill", "gone"]}, {}, r"a missing value \(--missing drop .*\): row 2$"),
        ({"reward": [0.0, math.nan, 0.5, 0.5]}, {}, r"a missing value \(.*\): row 2"),
        ({**LONG, "reward": [0.0, 1.5, math.inf, 0.5]}, {}, r"outside 0 to 1 \(.*\): row 2 \(1\.5\); row 3 \(inf\)"),
        ({"step": [0, 2, 0, 1]}, {}, r"a step that does not follow the one before \(.*\): row 2 \(2\)"),
        ({"step": [3, 4, 0, 1]}, {}, r"does not follow .* row 1 \(3\)"),
        (LONG, {}, r"fewer than 3 steps \(--horizon H .*\): row 4"),
        ({"episode": [1, 2, 2, 2], "step": [0, 0, 1, 2]}, {}, r"more than 1 steps \(.*\): row 2"),
        ({"episode": [1, 2, 1, 2], "step": [0, 0, 1, 1]}, {}, r"row 3: its episode began earlier .*--sort"),
        ({"episode": [None, 1, 2, 2]}, {}, "row 1 has no episode"),
        ({"next_state": ["ill", "ill", "well", "gone"]}, {}, r"not the state of the next row \(.*\): row 3 \(well\)"),
        ({"action": None}, {}, "no column action; it has episode, step, state, reward"),
        ({"state": [0, 1, 1, 2], "action": [0, 1, 0, 0]}, {"codebook": None}, "state of its own for ended episodes"),
        ({}, {"codebook": None}, "holds string, not codes: .* --draft-codebook"),
        ({"state": [0, 1, -1, 2], "action": [0, 1, 0, 0]}, {"codebook": None, "states": 3}, r"0 \(.*\): row 3 \(-1\)"),
        ({"state": [0, 1, 3, 2], "action": [0, 1, 0, 0]}, {"codebook": None, "states": 3}, "not below --states 3"),
        ({"state": [0, 0.5, 1, 2], "action": [0, 1, 0, 0]}, {"codebook": None, "states": 3}, r"whole number \(.*row 2"),
        ({}, {"users": Users()}, "does not identify its users"),
        ({"user": ["a", "a", "a", "a"]}, {"users": Users()}, "trajectories, 1: episode 2 of its user begins in row 3"),
        ({"user": ["a", "a", "a", "a"]}, {}, "has a column user: leave out --one-episode-is-one-user, or the column"),
        ({"user": ["a", "b", "c", "c"]}, {"users": Users()}, "row 2: no user, or another one"),
    ],
)  # fmt: skip
def test_what_the_plan_does_not_cover_is_refused_with_its_row(tmp_path, changes, plan, says):
    path = write(tmp_path / "raw.parquet", ROWS | changes)
    asked = PreparationPlan(**({"codebook": BOOK, "users": ALONE, "show_values": True} | plan))
    with pytest.raises(PrivcheckError, match=says):
        prepare(path, tmp_path / "trips.parquet", asked)
    assert sorted(tmp_path.iterdir()) == [path]


def test_of_many_bad_rows_the_first_five_are_shown(tmp_path):
    columns = {name: values * 2 for name, values in ROWS.items()} | {"episode": [1, 1, 2, 2, 3, 3, 4, 4]}
    path = write(tmp_path / "raw.parquet", columns | {"reward": [2.0] * 8})
    said = r"among its rows 1 to 6:\n.* row 5; and 1 more\n  - --show-values shows the values$"
    with pytest.raises(TrajectoryError, match=said):
        prepare(path, tmp_path / "trips.parquet", PreparationPlan(codebook=BOOK, users=ALONE))


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ({"missing": "ignore"}, "--missing: expected refuse, drop; got 'ignore'"),
        ({"short": "pad"}, "goes with --horizon"),
        ({"short": "pad", "horizon": 3}, "give --states S"),
        ({"keep": "last"}, "--keep: expected refuse, first, random; got 'last'"),
        ({"keep": "first", "users": Users(one_episode_is_one_user=True)}, "--one-episode-is-one-user contradicts"),
        ({"reward_range": (1.0, 1.0)}, "smaller one first"),
        ({"reward_range": (0.0, math.inf)}, "two finite numbers"),
        ({"reward_range": (-1.0, 1.0), "pad_reward": 2.0}, "within the rewards' bounds"),
        ({"horizon": 0}, "at least 1"),
        ({"columns": {"patient": "id"}}, "--column patient: expected one of episode"),
        ({"columns": {"episode": "id", "user": "id"}}, "is used for two"),
        ({"codebook": BOOK, "states": 3}, "the codebook says"),
    ],
)
def test_choices_that_mean_nothing_are_refused(plan, says):
    with pytest.raises(ParameterError, match=says):
        PreparationPlan(**plan)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", '{"states": ["a"]}', '{"states": [], "actions": ["b"]}',
        '{"states": ["a", "a"], "actions": ["b"]}', '{"states": [true], "actions": ["b"]}',
    ],
)  # fmt: skip
def test_what_is_no_codebook_is_refused(tmp_path, text):
    (tmp_path / "c.json").write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"c\.json"):
        read_codebook(tmp_path / "c.json")


def test_rows_out_of_order_are_sorted_where_asked(tmp_path):
    mixed = {name: [values[i] for i in (3, 0, 2, 1)] for name, values in ROWS.items()}
    path = write(tmp_path / "raw.csv", mixed)
    prepare(path, tmp_path / "a.csv", PreparationPlan(codebook=BOOK, sort=True, users=ALONE))
    prepare(write(tmp_path / "sorted.csv", ROWS), tmp_path / "b" / "b.csv", PreparationPlan(codebook=BOOK, users=ALONE))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b" / "b.csv").read_bytes()


def test_a_random_episode_depends_on_its_own_user_and_the_seed(tmp_path):
    episodes = [(user, [("well", "wait", 0.5)]) for user in "abcabcabc"]
    path = write(tmp_path / "raw.parquet", table_of(episodes))

    def kept(seed, raw_path=path):
        plan = PreparationPlan(codebook=BOOK, keep="random", seed=seed)
        prepare(raw_path, tmp_path / "trips.parquet", plan)
        with (tmp_path / "trips.changes.csv").open(encoding="utf-8") as file:
            dropped = {int(row["row"]) for row in csv.DictReader(file)}
        return set(range(1, len(episodes) + 1)) - dropped

    assert all(len(kept(seed)) == 3 for seed in range(3))
    assert len({frozenset(kept(seed)) for seed in range(10)}) > 1
    other = write(tmp_path / "more.parquet", table_of([*episodes, ("d", [("ill", "wait", 0.5)])]))
    assert kept(4, other) - {10} == kept(4)


def test_three_commands_lead_from_a_raw_table_to_a_policy(tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "stay": np.repeat(np.arange(300), 4), "hour": np.tile(np.arange(4), 300),
        "sofa": rng.choice(STATES, 1200), "drug": rng.choice(ACTIONS, 1200), "score": rng.choice([-15.0, 0, 15], 1200),
    }  # fmt: skip
    path = write(tmp_path / "stays.csv", columns)
    named = ["--column", "episode=stay", "--column", "step=hour", "--column", "state=sofa", "--column", "action=drug"]
    named += ["--column", "reward=score"]

    def call(*arguments):
        ended = CliRunner().invoke(main, [*map(str, arguments), "--json"])
        assert ended.exit_code == 0, ended.output
        return json.loads(ended.stdout)

    drafted = call("prepare", path, *named, "--draft-codebook", tmp_path / "codes.json")
    assert sorted(drafted["states"]) == sorted(STATES)
    asked = ("--codebook", tmp_path / "codes.json", "--reward-range", -15, 15, "--out", tmp_path / "trips.parquet")
    done = call("prepare", path, *named, *asked, "--one-episode-is-one-user", "--who", "patient")
    assert (done["unit"]["who"], done["unit"]["trajectories"], done["unit"]["basis"]) == ("patient", 1, "assertion")
    assert (done["rows"], done["episodes"], done["changed"]) == (1200, 300, {})
    assert "confirm that it is public" in " ".join(done["depends_on_data"])
    call("run", "dp-apvi", "--data", tmp_path / "trips.parquet", "--out", tmp_path / "run")
    policy = load_policy(tmp_path / "run")
    assert policy.states == (*sorted(STATES), "(ended)")
    assert policy.act(0, "ill") in ACTIONS
    assert read_labels(tmp_path / "other.parquet") is None


def test_episodes_are_counted_in_a_table_without_rows_too():
    rows = pa.table({"terminal": pa.array([0, 1, 0, 1], pa.int8()), "state": [1, 2, 3, 4]})
    for size in range(5):
        numbered, finished = raw_tables.count_episodes(rows.slice(0, size), 7)
        assert numbered.column("episode").to_pylist() == [7, 7, 8, 8][:size]
        assert finished == [7, 7, 8, 8, 9][size]
