"""From a messy table to trajectories by a recipe: rows keep their numbers, no message shows a row, nothing is guessed
that has to be public; what sorts and bins is compared with a loop over rows."""

import codecs
import csv
import itertools
import json
import threading
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.cli.main import main
from privcheck.data.preparing import Codebook, PreparationPlan, prepare, raw_tables
from privcheck.data.preparing.drafts import draft_recipe, layouts
from privcheck.data.preparing.recipes import read_recipe
from privcheck.data.reading import Users, read_trajectories
from privcheck.errors import FileFormatError, ParameterError, PrivcheckError, TrajectoryError, UnknownNameError

ALONE = Users(one_episode_is_one_user=True)
BOOK = Codebook(states=("well", "ill"), actions=("wait", "treat"))
BEGIN = datetime(2150, 1, 1)  # noqa: DTZ001 - as in tables
rows_of = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 40), st.sampled_from(BOOK.states), st.sampled_from(BOOK.actions),
        st.sampled_from([0.0, 0.25, 1.0]),
    ),
    min_size=1, max_size=14,
)  # fmt: skip


def naive(rows, hours, several, horizon):
    """Episode by episode: bins from the first time, one row a bin; what has a gap or is too short is left out.

    Without bins one row of each time, where it is said which; else every row.
    """
    made = []
    for name in sorted({row[0] for row in rows}):
        mine = [(row[1], number, row) for number, row in enumerate(rows, start=1) if row[0] == name]
        bins, hours_seen = {}, sorted({hour for hour, _, _ in mine})
        for place, (hour, number, row) in enumerate(sorted(mine, key=lambda one: one[:2])):
            counted = place if several == "refuse" else hours_seen.index(hour)
            bins.setdefault((hour - min(mine)[0]) // hours if hours else counted, []).append((number, row))
        steps = [bins[at][0 if several == "first" else -1] for at in sorted(bins)]
        if sorted(bins) == list(range(len(bins))) and len(bins) >= horizon:
            made.append([(BOOK.states.index(r[2]), BOOK.actions.index(r[3]), r[4]) for _, r in steps[:horizon]])
    return made


@settings(max_examples=60, deadline=None)
@given(
    rows_of,
    st.tuples(st.sampled_from([(0, "refuse"), *itertools.product([0, 3, 10], ["first", "last"])]), st.integers(1, 3)),
    st.integers(1, 9),
)
def test_times_become_the_steps_that_a_loop_over_rows_makes(tmp_path_factory, rows, choices, batch):
    (hours, several), horizon = choices
    folder = tmp_path_factory.mktemp("times")
    names = ("episode", "step", "state", "action", "reward")
    with (folder / "raw.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(names)
        out.writerows([name, BEGIN + timedelta(hours=hour), *rest] for name, hour, *rest in rows)
    plan = PreparationPlan(
        codebook=BOOK, users=ALONE, sort=True, times=f"{hours}h" if hours else "order", several=several,
        horizon=horizon, short="drop", missing="drop",
    )  # fmt: skip
    wanted = naive(rows, hours, several, horizon)
    before, raw_tables._BATCH = raw_tables._BATCH, batch
    try:
        if not wanted:
            with pytest.raises(ParameterError, match="no episode"):
                prepare(folder / "raw.csv", folder / "trips.parquet", plan)
            return
        prepare(folder / "raw.csv", folder / "trips.parquet", plan)
    finally:
        raw_tables._BATCH = before
    made = pq.read_table(folder / "trips.parquet").to_pylist()
    found = [[] for _ in wanted]
    for row in made:
        found[row["episode"]].append((row["state"], row["action"], row["reward"]))
    assert found == wanted


def test_sorting_keeps_the_order_of_rows_without_a_step(tmp_path):
    """pyarrow's sort turned rows with equal keys around: steps 0, 1, 2 became 2, 0, 1 without a word."""
    states = ["well", "ill"] * 600
    episodes = [number % 3 for number in range(1200)]
    table = {"episode": episodes, "state": states, "action": ["wait"] * 1200, "reward": [k / 1200 for k in range(1200)]}
    pq.write_table(pa.table(table), tmp_path / "raw.parquet")
    prepare(tmp_path / "raw.parquet", tmp_path / "out.parquet", PreparationPlan(codebook=BOOK, users=ALONE, sort=True))
    rewards = pq.read_table(tmp_path / "out.parquet").column("reward").to_pylist()
    assert rewards == [k / 1200 for first in range(3) for k in range(first, 1200, 3)]


CELL = "cell-of-a-patient"
TORN = f"episode,state,action,reward\n1,well,wait,0\n1,{CELL}\n1,ill,treat,1\n2,ill,wait,0\n2,well,wait,1\n"


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("text", "plan", "says"),
    [
        (TORN, {}, r"rows with another number of values than the header: row 3 has 2\. .*--malformed drop"),
        (f"episode,state,action,reward\n1,{CELL},wait,0\n", {}, r"not in the codebook .*: row 2\n.*--show-values"),
        (f"episode,state,action,reward\n1,well,wait,{CELL}\n", {}, r"no number such as 0\.5 .*: row 2\n"),
        (
            "episode,state,action,reward\n" + "1,well,wait,0\n" * 120_000 + f"1,well,wait,{CELL}\n", {},
            r"no number such as 0\.5 .*: row 120002\n",
        ),
        (f"episode,step,state,action,reward\n{CELL},2150-01-01 00:00:00,well,wait,0\n", {},
         r"step: expected .*--times order .*: row 2"),
        (f"episode,step,state,action,reward\n{CELL},1.1.2150,well,wait,0\n", {"sort": True, "times": "4h"},
         "expected a time such as 2150-01-31 04:00:00, .*--time-format .*: row 2"),
        (f"episode,step,state,action,reward\n{CELL},0,well,wait,0\n{CELL},0,ill,wait,0\n", {"sort": True},
         "1 rows repeat a step of their episode: rows 3. .*--several first"),
        (f"episode,state,action,reward\n{CELL},well,wait,0\nb,ill,wait,0\n{CELL},ill,wait,0\n", {},
         r"row 4: its episode began earlier and had ended"),
    ],
)  # fmt: skip
def test_a_refusal_names_rows_and_shows_none(tmp_path, text, plan, says):
    path = write(tmp_path / "raw.csv", text)
    with pytest.raises(PrivcheckError, match=says) as caught:
        prepare(path, tmp_path / "out.parquet", PreparationPlan(codebook=BOOK, users=ALONE, **plan))
    assert CELL not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == [path]


def test_torn_rows_are_left_out_and_all_others_keep_their_numbers(tmp_path):
    path = write(tmp_path / "raw.csv", TORN.replace("2,well,wait,1", f"2,well,{CELL},1"))
    plan = PreparationPlan(codebook=BOOK, users=ALONE, malformed="drop")
    with pytest.raises(TrajectoryError, match="row 6"):
        prepare(path, tmp_path / "out.parquet", plan)
    write(path, TORN)
    done = prepare(path, tmp_path / "out.parquet", plan)
    assert (done.episodes, done.steps, done.changed) == (2, 2, {"row left out": 1})
    assert (tmp_path / "out.changes.csv").read_text() == 'row,what,how\n3,row left out,"2 values"\n'
    assert "the number of remaining rows is private" in " ".join(done.depends_on_data)


def test_row_numbers_are_those_of_the_file_when_it_is_sorted(tmp_path):
    path = write(
        tmp_path / "raw.csv", "episode,step,state,action,reward\n2,0,well,wait,0\n1,1,odd,wait,0\n1,0,ill,wait,0\n"
    )
    with pytest.raises(TrajectoryError, match=r"codebook .*: row 3 \(odd\)"):
        prepare(path, tmp_path / "out.csv", PreparationPlan(codebook=BOOK, users=ALONE, sort=True, show_values=True))


def test_text_of_another_encoding_is_read_as_said_and_refused_otherwise(tmp_path):
    path = write(tmp_path / "raw.csv", "episode,state,action,reward\n1,gesund,über,1\n", "latin-1")
    book = Codebook(states=("gesund",), actions=("über",))
    with pytest.raises(FileFormatError, match=r"not utf-8 text.*--encoding latin-1"):
        prepare(path, tmp_path / "out.csv", PreparationPlan(codebook=book, users=ALONE))
    with pytest.raises(FileFormatError, match="no such encoding"):
        prepare(path, tmp_path / "out.csv", PreparationPlan(codebook=book, users=ALONE, encoding="klingon"))
    prepare(path, tmp_path / "out.csv", PreparationPlan(codebook=book, users=ALONE, encoding="latin-1", horizon=1,
                                                        short="drop"))  # fmt: skip
    assert read_trajectories(tmp_path / "out.csv", users=ALONE).trajectories.users == 1


@pytest.mark.parametrize("malformed", ["refuse", "drop"])
def test_text_is_decoded_in_the_thread_that_asks_for_it(tmp_path, monkeypatch, malformed):
    """A thread of pyarrow's that is still decoding when the interpreter ends aborts the process."""
    here, threads = codecs.lookup("latin-1"), set()

    class Decoder(here.incrementaldecoder):
        def decode(self, text, final=False):  # noqa: FBT002 - the signature of codecs
            threads.add(threading.get_ident())
            return super().decode(text, final)

    monkeypatch.setattr(raw_tables, "_BLOCK", 1 << 12)
    watched = codecs.CodecInfo(
        here.encode, here.decode, here.streamreader, here.streamwriter, here.incrementalencoder, Decoder, "watched"
    )
    codecs.register(search := {"watched": watched}.get)
    try:
        rows = "\n".join(f"é{i // 5},{i % 5},{i % 3},{i % 2},0.5" for i in range(5_000))
        (tmp_path / "stays.csv").write_bytes(f"episode,step,state,action,reward\n{rows}\n".encode("latin-1"))
        plan = PreparationPlan(encoding="watched", malformed=malformed)
        source = raw_tables.open_table(tmp_path / "stays.csv", plan)
        numbers, table = raw_tables.read_whole(source, ["episode", "state"])
    finally:
        codecs.unregister(search)
    assert threads == {threading.get_ident()}
    assert numbers.tolist() == list(range(2, 5_002))  # the header is row 1
    assert table.column("episode").to_pylist() == [f"é{i // 5}" for i in range(5_000)]
    assert table.column("state").to_pylist() == [str(i % 3) for i in range(5_000)]


def test_a_value_that_does_not_fit_is_told_by_its_row_in_every_block(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_tables, "_BLOCK", 1 << 12)
    rows = [f"{i // 5},{i % 5},{i % 3},{i % 2},0.5" for i in range(5_000)]
    rows[4_321] = "864,1,sepsis,1,0.5"
    (tmp_path / "stays.csv").write_text("episode,step,state,action,reward\n" + "\n".join(rows) + "\n", "latin-1")
    plan = PreparationPlan(encoding="latin-1", horizon=5, states=3, reward_range=(0, 1), users=ALONE)
    with pytest.raises(TrajectoryError, match=r"a state that is no code .*: row 4323"):
        prepare(tmp_path / "stays.csv", tmp_path / "out.parquet", plan)


def test_episodes_end_where_a_flag_says_so_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_tables, "_BATCH", 2)
    ends = [0, 1, 0, 1, 0, 1]
    table = {"terminals": ends, "state": ["well", "ill"] * 3, "action": ["wait"] * 6, "reward": [0.5] * 6}
    pq.write_table(pa.table(table), tmp_path / "raw.parquet")
    plan = PreparationPlan(columns={"terminal": "terminals"}, codebook=BOOK, users=ALONE)
    assert prepare(tmp_path / "raw.parquet", tmp_path / "out.parquet", plan).episodes == 3


MESSY = """\
stay_id;subject_id;charttime;severity;drug;score
S1;P1;01.02.2150 00:10;mild;none;-3
S1;P1;01.02.2150 05:00;Mild ;vaso;2
S2;P1;03.02.2150 04:00;severe;none;1
S2;P1;03.02.2150 00:00;mild;none;15
S3;P2;13.02.2150 00:00;severe;vaso;0
S3;P2;13.02.2150 03:59;mild;vaso;-15
S3;P2;13.02.2150 04:00;mild;none;4
S3;broken
"""
FILLED = {
    'malformed = "?"': 'malformed = "drop"', "confirmed = false": "confirmed = true",
    'range = ["?", "?"]': "range = [-15, 15]", 'max_trajectories = "?"': "max_trajectories = 2",
}  # fmt: skip


def call(*arguments, code=0):
    ended = CliRunner().invoke(main, [*map(str, arguments)])
    assert ended.exit_code == code, ended.output
    return ended.output


def test_two_commands_lead_from_a_messy_table_to_trajectories(tmp_path):
    path, recipe, out = write(tmp_path / "stays.csv", MESSY), tmp_path / "r.toml", tmp_path / "trips.parquet"
    said = call("prepare", path, "--draft", recipe)
    assert "after layout mimic" in said
    assert "fill in file.malformed, rewards.range, users.max_trajectories; look through it" in said
    assert "malformed rows: 1, episodes: 3, users: 2" in said
    text = recipe.read_text()
    assert 'time_format = "%d.%m.%Y %H:%M"' in text
    assert 'state = { "Mild" = "mild" }' in text
    assert "file.malformed, rewards.range, users.max_trajectories: still '?'" in call(
        "prepare", path, "--recipe", recipe, "--out", out, code=2
    )
    for old, new in list(FILLED.items())[::-1]:
        assert text.count(old) == 1
        text = text.replace(old, new)
        if new != "confirmed = true":
            recipe.write_text(text)
    recipe.write_text(text.replace("confirmed = true", "confirmed = false"))
    assert "not confirmed; check it" in call("prepare", path, "--recipe", recipe, "--out", out, code=2)
    assert not out.exists()
    recipe.write_text(text)
    done = json.loads(call("prepare", path, "--recipe", recipe, "--out", out, "--json"))
    assert (done["rows"], done["episodes"], done["steps"]) == (6, 3, 2)
    assert (done["unit"]["who"], done["unit"]["trajectories"]) == ("subject", 2)
    made = pq.read_table(out)
    assert made.column("reward").to_pylist() == [(score + 15) / 30 for score in (-3, 2, 15, 1, -15, 4)]
    assert made.schema.metadata[b"privcheck.recipe"].decode() == done["recipe"] == read_recipe(recipe).digest
    assert read_trajectories(out).facts["recipe"] == done["recipe"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("confirmed = true\n[columns]\nepisodes = 'a'\n", "columns.episodes: expected one of episode"),
        ("confirmed = true\nhorizon = 3\n", "horizon: expected confirmed, or one of the tables"),
        ("confirmed = true\n[episodes]\nhorizon = true\n", "episodes.horizon: expected int, got True"),
        ("confirmed = 'yes'\n", "not confirmed"),
        ("[rewards]\nrange = [0, '?']\n", r"rewards.range: still '\?'"),
        ("confirmed = true\n[rewards]\nrange = [0]\n", "expected two numbers"),
        ("confirmed = true\n[labels]\nstates = ['a']\n", "expected the lists states and actions"),
        ("confirmed = true\n[labels]\nstates = ['a', 'a']\nactions = ['b']\n", "repeated labels"),
        ("confirmed = true\n[labels]\nstates = ['a']\nactions = ['b']\n[aliases]\nstate = {x = 'y'}\n", "alias 'x'"),
        ("confirmed = true\n[steps]\ntimes = '4 weeks'\nsort = true\n", "expected order, or the width"),
        ("confirmed = true\n[steps]\ntimes = '4h'\n", "add --sort"),
        ("confirmed = true\nconfirmed = true\n", "cannot be read as a recipe"),
    ],
)
def test_what_is_no_recipe_is_refused(tmp_path, text, says):
    with pytest.raises(PrivcheckError, match=says):
        read_recipe(write(tmp_path / "r.toml", text))


def test_a_recipe_says_all_choices_itself(tmp_path):
    path, recipe = write(tmp_path / "stays.csv", MESSY), tmp_path / "r.toml"
    said = call(
        "prepare", path, "--recipe", recipe, "--out", tmp_path / "o.csv", "--horizon", 3, "--keep", "first", code=2
    )
    assert "leave out --horizon, --keep" in said


def test_a_layout_is_followed_where_it_fits_and_known_by_name(tmp_path):
    table = {"terminals": [0, 1, 0, 1], "observations": [0, 1, 1, 0], "actions": [0, 1, 0, 1], "rewards": [0, 1, 0, 1]}
    pq.write_table(pa.table(table), tmp_path / "buffer.parquet")
    drafted = draft_recipe(tmp_path / "buffer.parquet")
    assert (drafted.layout, drafted.open) == ("d3rlpy", ("labels.states",))
    recipe = write(
        tmp_path / "r.toml", drafted.recipe.replace('"?"', "2").replace("confirmed = false", "confirmed = true")
    )
    done = prepare(tmp_path / "buffer.parquet", tmp_path / "out.parquet", read_recipe(recipe).plan)
    assert (done.episodes, done.steps) == (2, 2)
    with pytest.raises(UnknownNameError, match="layout"):
        draft_recipe(tmp_path / "buffer.parquet", layout="mimik")
    assert {"mimic", "mimic-iii", "omop", "minari", "d3rlpy"} == set(layouts())


GERMAN = """\
Fall;Patient;Aufnahme;Messung;Zustand;Gabe;Änderung
1;A;01.02.2150 00:00;01.02.2150 04:10;mäßig;keine;-0,5
1;A;01.02.2150 00:00;01.02.2150 00:10;MÄSSIG;Volumen;1
1;A;01.02.2150 00:00;01.02.2150 00:10;MÄSSIG;Volumen;1
2;A;13.02.2150 00:00;13.02.2150 00:00;stabil;keine;0,25
2;A;13.02.2150 00:00;13.02.2150 04:00;mäßig;Volumen;0
"""
NAMED = {"episode": "Fall", "state": "Zustand", "action": "Gabe", "reward": "Änderung"}


LAYOUTS = {
    "mimic": (
        "subject_id,stay_id,charttime,sofa_cluster,treatment,reward",
        ["10,1,2150-01-01 00:00:00,mild,none,0", "10,1,2150-01-01 03:00:00,mild,fluid,1",
         "10,1,2150-01-01 04:00:00,severe,fluid,0", "10,2,2150-02-01 00:00:00,mild,none,1",
         "10,2,2150-02-01 05:00:00,mild,none,0"],
        [(0, "fluid", 1.0), (0, "fluid", 0.0), (1, "none", 1.0), (1, "none", 0.0)],
    ),
    "mimic-iii": (
        "subject_id,hadm_id,icustay_id,charttime,state,action,reward",
        ["10,7,1,2150-01-01 00:00:00,a,x,0", "10,7,1,2150-01-01 04:00:00,b,x,1", "11,8,2,2150-01-01 00:00:00,a,y,1",
         "11,8,2,2150-01-01 07:59:00,b,y,0"],
        [(0, "x", 0.0), (0, "x", 1.0), (1, "y", 1.0), (1, "y", 0.0)],
    ),
    "omop": (
        "person_id,visit_occurrence_id,measurement_datetime,condition,drug_concept,score",
        ["5,1,2150-01-02T10:00:00,a,x,0", "5,1,2150-01-01T09:00:00,a,y,1", "5,1,2150-01-01T21:00:00,b,x,1",
         "6,2,2150-01-01T08:00:00,b,x,0", "6,2,2150-01-02T08:00:00,b,y,1"],
        [(0, "x", 1.0), (0, "x", 0.0), (1, "x", 0.0), (1, "y", 1.0)],
    ),
    "minari": (
        "episode_id,timestep,observation,action,reward",
        ["0,0,1,0,0.5", "0,1,0,1,1", "1,0,1,1,0", "1,1,1,0,0.25"],
        [(0, 0, 0.5), (0, 1, 1.0), (1, 1, 0.0), (1, 0, 0.25)],
    ),
    "d3rlpy": (
        "observations,actions,rewards,terminals",
        ["1,0,0.5,0", "0,1,1,1", "1,1,0,0", "1,0,0.25,1"],
        [(0, 0, 0.5), (0, 1, 1.0), (1, 1, 0.0), (1, 0, 0.25)],
    ),
}  # fmt: skip
ANSWERS = {"labels.states": ('states = "?"', "states = 2"), "rewards.range": ('range = ["?", "?"]', "range = [0, 1]"),
           "users.max_trajectories": ('max_trajectories = "?"', "max_trajectories = 2")}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_as_known_systems_write_them_become_trajectories(tmp_path, layout):
    """As drafted, with answers to what has to be public, and nothing else: episode, action and reward of each step."""
    header, rows, wanted = LAYOUTS[layout]
    path = write(tmp_path / "raw.csv", "\n".join([header, *rows]) + "\n")
    drafted = draft_recipe(path)
    assert drafted.layout == layout
    text = drafted.recipe.replace("confirmed = false", "confirmed = true")
    for place in drafted.open:
        old, new = ANSWERS[place]
        assert text.count(old) == 1
        text = text.replace(old, new)
    read = read_recipe(write(tmp_path / "r.toml", text)).plan
    prepare(path, tmp_path / "out.parquet", read)
    made = pq.read_table(tmp_path / "out.parquet").to_pylist()
    actions = read.codebook.actions if read.codebook is not None else range(2)
    assert [(row["episode"], actions[row["action"]], row["reward"]) for row in made] == wanted
    alone = layout in {"minari", "d3rlpy"}
    assert (read.users.one_episode_is_one_user, "user" in read.columns) == (alone, not alone)


def test_a_table_in_another_language_needs_its_columns_named_and_no_more(tmp_path):
    """Its order was that of its rows, twice measured or not, and its rewards were text that nothing could read."""
    path = write(tmp_path / "export.csv", GERMAN, "latin-1")
    drafted = draft_recipe(path, columns=NAMED)
    assert ("step", "Messung", "string", 0) in drafted.guessed
    assert ("user", "Patient", "string", 0) in drafted.guessed
    assert drafted.counts["rows of the same step as another"] == 1
    assert 'decimal = ","' in drafted.recipe
    assert "the data show -0.5 to 1" in drafted.recipe
    assert "the row of a time to use: first or last; 1 rows repeat a time" in drafted.recipe
    text = drafted.recipe.replace('max_trajectories = "?"', "max_trajectories = 2")
    text = text.replace('range = ["?", "?"]', "range = [-1, 1]").replace("confirmed = false", "confirmed = true")
    prepare(path, tmp_path / "out.parquet", read_recipe(write(tmp_path / "r.toml", text)).plan)
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.column("reward").to_pylist() == [1.0, 0.25, 0.625, 0.5]
    assert made.column("state").to_pylist() == [0, 0, 1, 0]


def test_without_times_a_draft_says_that_the_order_is_that_of_the_rows(tmp_path):
    path = write(
        tmp_path / "t.csv", "episode,admitted,state,action,reward\n1,2150-01-01 00:00,a,b,0\n1,2150-01-01 00:00,a,b,1\n"
    )
    drafted = draft_recipe(path)
    assert "step" not in [ours for ours, *_ in drafted.guessed]
    assert "no column of steps or times: rows are steps in their present order" in drafted.recipe


@pytest.mark.parametrize("mark", [";", ",", "; "])
def test_a_decimal_mark_that_is_none_is_refused(mark):
    with pytest.raises(ParameterError, match="--decimal"):
        PreparationPlan(decimal=mark, delimiter=",")


def test_a_draft_says_which_column_it_cannot_find(tmp_path):
    path = write(tmp_path / "t.csv", "stay,what,gain\n1,a,0\n")
    with pytest.raises(FileFormatError, match=r"no column looks like state, action, reward; there are what, gain"):
        draft_recipe(path)
    named = {"state": "what", "action": "what2", "reward": "gain"}
    with pytest.raises(FileFormatError, match="no column looks like action"):
        draft_recipe(path, columns=named)


def test_a_run_for_release_says_what_it_cost_and_where_it_lies_and_has_a_page(tmp_path):
    path = write(tmp_path / "trips.csv", "episode,step,state,action,reward,next_state\n" + "".join(
        f"{n},{h},{(n + h) % 2},{n % 2},1,{(n + h + 1) % 2}\n" for n in range(40) for h in (0, 1)))  # fmt: skip
    sizes = ("--set", "S=2", "--set", "A=2", "--one-episode-is-one-user")
    said = call("run", "dp-apvi", "--data", path, *sizes, "--noise", "release", "--out", tmp_path / "run")
    assert "NOT JUDGED · dp-apvi" in said
    assert "Its noise was drawn for a release, at the cost below." in said
    assert "ρ = 1 spent" in said
    assert f"written to {tmp_path / 'run'}: policy.npz, policy.json, private/run.json" in said
    assert f"to hand it on: privcheck publish {tmp_path / 'run'} --out FOLDER" in said
    page = tmp_path / "run" / "private" / "run.html"
    assert call("report", tmp_path / "run").strip() == str(page)
    assert "Not judged" in page.read_text(encoding="utf-8")
    work = json.loads(call("check", "dp-apvi", "--data", path, *sizes, "--dry-run", "--json"))
    assert [part["replicates"] for part in work["parts"] if "replicates" in part] in ([], [1])
    assert "replicates 1" in call("check", "dp-apvi", "--data", path, *sizes, "--dry-run")
