"""Tables as a newcomer has them: what was misread without a word, or led nowhere, is read, or asked about."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.cli.main import main
from privcheck.data.preparing import Codebook, PreparationPlan, prepare
from privcheck.data.preparing.drafts import draft_recipe
from privcheck.data.preparing.recipes import name_bins, read_recipe
from privcheck.data.reading import Users
from privcheck.errors import PrivcheckError

HEADER = ("stay", "hour", "state", "action", "reward", "patient")
NAMED = {"episode": "stay", "step": "hour", "user": "patient"}
ANSWERS = {
    "labels.states": ('states = "?"', "states = 3"),
    "rewards.range": ('range = ["?", "?"]', "range = [-1, 1]"),
    "rewards.empty": ('empty = "?"', "empty = 0"),
    "users.max_trajectories": ('max_trajectories = "?"', "max_trajectories = 4"),
    "users.spellings": ('spellings = "?"', 'spellings = "same"'),
    "steps.time_format": ('time_format = "?"', 'time_format = "%d/%m/%Y"'),
    "episodes.missing": ('missing = "?"', 'missing = "drop"'),
    "rewards.values": ('{ "dead" = "?", "well" = "?" }', '{ "dead" = -1, "well" = 1 }'),
}


def text(rows, header=HEADER, delimiter=","):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def stays(names, users=None, length=3, **changed):
    """Rows of stays of three steps, with some columns replaced."""
    users = users or [f"person {name}" for name in names]
    rows = [
        {"stay": name, "hour": h, "state": "abc"[h % 3], "action": "xy"[h % 2], "reward": 0.5, "patient": user}
        for name, user in zip(names, users, strict=True)
        for h in range(length)
    ]
    return [[changed[name](h, row) if name in changed else row[name] for name in HEADER] for h, row in enumerate(rows)]


def confirmed(folder, path, **expected):
    """The plan of a draft, all that it asks answered; and the draft."""
    drafted = draft_recipe(path, **expected)
    recipe = drafted.recipe.replace("confirmed = false", "confirmed = true")
    for place in drafted.open:
        old, new = ANSWERS[place]
        assert recipe.count(old) == 1
        recipe = recipe.replace(old, new)
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    return read_recipe(folder / "recipe.toml").plan, drafted


def made(folder, raw, encoding="utf-8", **columns):
    path = folder / "raw.csv"
    path.write_bytes(raw.encode(encoding))
    plan, drafted = confirmed(folder, path, columns=columns)
    prepare(path, folder / "out.parquet", plan)
    return pq.read_table(folder / "out.parquet").to_pylist(), drafted


def test_a_column_that_changes_its_type_is_text_and_no_message_quotes_it(tmp_path):
    """A value of a column that nobody asked for, far down, ended in a traceback that quoted it."""
    header = (*HEADER, "remark")
    rows = [[*row, 1] for row in stays([str(i) for i in range(40_000)])]
    rows[-1][-1] = "HIV, as Mrs Smith says"
    found, _ = made(tmp_path, text(rows, header))
    assert len(found) == 120_000
    rows[-1][4] = "HIV, as Mrs Smith says"
    with pytest.raises(PrivcheckError, match="row 120001") as caught:
        made(tmp_path, text(rows, header))
    assert "Smith" not in str(caught.value)


@pytest.mark.parametrize("names", [("7", "007"), ("10", "1E1"), ("90071992547409930.0", "90071992547409931.0")])
@pytest.mark.parametrize("of", ["stay", "patient"])
def test_identifiers_are_texts(tmp_path, names, of):
    """As numbers, two stays became one, and two people one person."""
    rows = stays(names) if of == "stay" else stays(("a", "b"), names)
    path = tmp_path / "raw.csv"
    path.write_text(text(rows))
    plan = PreparationPlan(columns=NAMED, horizon=3, users=Users(), spellings="different", codebook=book())
    done = prepare(path, tmp_path / "out.parquet", plan)
    assert (done.episodes, done.steps) == (2, 3)
    assert len(set(pq.read_table(tmp_path / "out.parquet").column("user").to_pylist())) == 2


def book():
    return Codebook(states=("a", "b", "c"), actions=("x", "y"))


NAME = st.text("07aA .eE+-", min_size=1, max_size=4).map(lambda name: f"m{name}m")


@settings(max_examples=60, deadline=None)
@given(names=st.lists(NAME, min_size=1, max_size=6, unique=True), sort=st.booleans())
def test_every_name_is_one_episode_and_one_person(tmp_path_factory, names, sort):
    folder = tmp_path_factory.mktemp("names")
    path = folder / "raw.csv"
    path.write_text(text(stays(names, names)))
    plan = PreparationPlan(
        columns=NAMED, horizon=3, users=Users(), spellings="different", sort=sort, codebook=book()
    )  # fmt: skip
    prepare(path, folder / "out.parquet", plan)
    read = pq.read_table(folder / "out.parquet").to_pylist()
    assert sorted({(row["episode"], row["user"]) for row in read}) == sorted(
        (at, row["user"]) for at, row in ((row["episode"], row) for row in read[::3])
    )
    assert {row["user"] for row in read} == set(names)


def test_one_person_under_two_spellings_is_asked_about_and_refused(tmp_path):
    """Two spellings were two people: whoever had both was protected half as well as stated."""
    rows = stays(("1", "2", "3", "4"), ("P0001", "p0001 ", "P2", "P 02"))
    found, drafted = made(tmp_path, text(rows))
    assert "users.spellings" in drafted.open
    assert "here up to 2" in drafted.recipe
    assert {row["user"] for row in found} == {"p1", "p2"}
    plan = PreparationPlan(columns=NAMED, users=Users(), horizon=3, codebook=book())
    with pytest.raises(PrivcheckError, match=r"2 users .*--spellings same .*spellings under \[users\]"):
        prepare(tmp_path / "raw.csv", tmp_path / "out.parquet", plan)


def test_an_order_that_only_the_file_has_is_asked_about(tmp_path):
    path = tmp_path / "raw.csv"
    rows = stays(("1", "2"))
    path.write_text(text([row[:1] + row[2:] for row in rows[::2] + rows[1::2]], HEADER[:1] + HEADER[2:]))
    assert "steps.sort" in draft_recipe(path).open


@pytest.mark.parametrize("other", [False, True])
def test_rows_of_one_time_that_contradict_each_other_are_asked_about(tmp_path, other):
    rows = stays(("1", "2"), hour=lambda h, _: f"2150-01-0{1 + h % 3} 04:00")
    rows.append([*rows[0][:2], "c" if other else rows[0][2], *rows[0][3:]])
    path = tmp_path / "raw.csv"
    path.write_text(text(rows))
    assert ("steps.several" in draft_recipe(path).open) == other


def test_rewards_are_labels_or_stand_in_the_last_row_alone(tmp_path):
    ends = {"reward": lambda h, _: ("well", "dead")[h // 3 % 2] if h % 3 == 2 else ""}
    found, drafted = made(tmp_path, text(stays(("1", "2"), **ends)))
    assert {"rewards.values", "rewards.empty"} <= set(drafted.open)
    assert [row["reward"] for row in found] == [0.5, 0.5, 1, 0.5, 0.5, 0]
    found, _ = made(tmp_path, text(stays(("1", "2"), reward=lambda h, _: "-1" if h == 5 else "")))
    assert [row["reward"] for row in found] == [0.5] * 5 + [0]


@pytest.mark.parametrize(
    ("before", "encoding", "delimiter", "says"),
    [
        ("", "utf-16", ",", 'encoding = "utf-16"'),
        ("Export of 1.2.2024\n\n", "utf-8", ";", "skip = 2"),
        ("", "utf-8-sig", "\t", r'delimiter = "\t"'),
    ],
)
def test_files_with_marks_titles_and_other_separators(tmp_path, before, encoding, delimiter, says):
    found, drafted = made(tmp_path, before + text(stays(("1", "2")), delimiter=delimiter), encoding)
    assert says in drafted.recipe
    assert len(found) == 6


def test_rows_have_the_numbers_of_the_file_beside_empty_lines_and_torn_ones(tmp_path):
    lines = text(stays(("1", "2", "3"))).splitlines()
    lines[9] = lines[9].replace("0.5", "much")  # row 10, before two more lines
    lines[4:4] = ["", "torn"]
    path = tmp_path / "raw.csv"
    path.write_text("\n".join(lines) + "\n")
    plan = PreparationPlan(columns=NAMED, codebook=book(), horizon=3, users=Users(), malformed="drop")
    with pytest.raises(PrivcheckError, match=r"no number such as 0\.5 .*: row 12\n"):
        prepare(path, tmp_path / "out.parquet", plan)


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        ({"hour": lambda h, _: f"0{1 + h % 3}/02/2150"}, "steps.time_format"),  # of January or of February
        ({"hour": lambda h, _: f"step {h % 3}"}, "steps.time_format"),
        ({"state": lambda h, _: h % 3 + 1}, "labels.states"),
    ],
)
def test_what_cannot_be_guessed_is_asked_in_a_draft_and_not_refused(tmp_path, changed, asked):
    path = tmp_path / "raw.csv"
    path.write_text(text(stays(("1", "2"), **changed)))
    assert asked in draft_recipe(path).open


def test_a_year_of_two_digits_is_of_this_age(tmp_path):
    _, drafted = made(tmp_path, text(stays(("1", "2"), hour=lambda h, _: f"{20 + h % 3}.02.24")))
    assert 'time_format = "%d.%m.%y"' in drafted.recipe


def test_other_texts_for_a_missing_value(tmp_path):
    """They were listed as labels, and could be declared nowhere."""
    rows = stays(("1", "2"), state=lambda h, row: "k.A. " if h == 4 else row["state"])
    found, drafted = made(tmp_path, text(rows))
    assert 'empty = ["k.A."]' in drafted.recipe
    assert len(found) == 3


def test_an_empty_column_and_a_header_alone(tmp_path):
    found, _ = made(tmp_path, text([[*row, ""] for row in stays(("1", "2"))], (*HEADER, "remark")))
    assert len(found) == 6
    with pytest.raises(PrivcheckError, match="has a header but no rows"):
        made(tmp_path, text([]))
    with pytest.raises(PrivcheckError, match="two columns are called 'state'"):
        made(tmp_path, text([[*row, ""] for row in stays(("1", "2"))], (*HEADER, "state")))


def test_users_in_the_first_row_alone_are_asked_for(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text(text(stays(("1", "2"), patient=lambda h, row: row["patient"] if h % 3 == 0 else "")))
    drafted = draft_recipe(path)
    assert "users.one_episode_is_one_user" in drafted.open
    assert "column patient does not: complete it" in drafted.recipe


def test_the_first_episodes_are_those_that_begin_first_in_the_file(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text(text(stays(("9", "10"), ("p", "p"), state=lambda h, _: "a" if h < 3 else "b")))
    plan = PreparationPlan(columns=NAMED, codebook=book(), horizon=3, users=Users(), keep="first", sort=True)
    prepare(path, tmp_path / "out.parquet", plan)
    assert pq.read_table(tmp_path / "out.parquet").column("state").to_pylist() == [0, 0, 0]


def test_two_tables_do_not_share_a_file_of_labels(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text(text(stays(("1", "2"))))
    plan = PreparationPlan(columns=NAMED, codebook=book(), horizon=3, users=Users())
    for _ in range(2):
        prepare(path, tmp_path / "a.parquet", plan)
    with pytest.raises(PrivcheckError, match=r"codebook\.json has the labels of a\.parquet"):
        prepare(path, tmp_path / "b.parquet", plan)


def test_an_edited_recipe_is_not_overwritten(tmp_path):
    path, recipe = tmp_path / "raw.csv", tmp_path / "recipe.toml"
    path.write_text(text(stays(("1", "2"))))
    first, second = (CliRunner().invoke(main, ["prepare", str(path), "--draft", str(recipe)]) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 2)
    assert "exists, and may have your edits" in second.output


def test_a_state_of_several_columns_and_measurements_in_public_bins(tmp_path):
    """All combinations of labels and bins are states: which of them occur is private."""
    header = ("stay", "hour", "age", "potassium", "action", "reward", "patient")
    rows = [
        [row[0], row[1], ("50-70", "18-50 ")[h // 3], ("3,4", "3,5", "")[h % 3] if h else "5,6", *row[3:5], row[5]]
        for h, row in enumerate(stays(("1", "2"), reward=lambda *_: "0,5"))
    ]
    path = tmp_path / "raw.csv"
    path.write_text(text(rows, header, ";"))
    drafted = draft_recipe(path, columns={"state": "age + potassium"})
    assert {"bins.potassium", "episodes.missing"} == set(drafted.open)
    recipe = drafted.recipe.replace("confirmed = false", "confirmed = true").replace(
        '"potassium" = "?"', '"potassium" = [3.5, 5]'
    )
    (tmp_path / "recipe.toml").write_text(recipe.replace('missing = "?"', 'missing = "refuse"'))
    plan = read_recipe(tmp_path / "recipe.toml").plan
    assert plan.codebook.states == tuple(
        f"{age} + {bin_}" for age in ("18-50", "50-70") for bin_ in ("below 3.5", "3.5 to 5", "5 or more")
    )
    with pytest.raises(PrivcheckError, match=r"a missing value .*: row 4"):
        prepare(path, tmp_path / "out.parquet", plan)
    path.write_text(text([row for row in rows if row[3]], header, ";"))
    prepare(path, tmp_path / "out.parquet", replace(plan, horizon=2))
    assert pq.read_table(tmp_path / "out.parquet").column("state").to_pylist() == [5, 4, 0, 1]
    path.write_text(text([*rows[:2], [*rows[2][:3], "much", *rows[2][4:]]], header, ";"))
    with pytest.raises(PrivcheckError, match="potassium: expected a number, as the column is binned: row 4"):
        prepare(path, tmp_path / "out.parquet", plan)


@settings(max_examples=80, deadline=None)
@given(
    edges=st.lists(st.integers(-5, 5), min_size=1, max_size=4, unique=True).map(sorted),
    values=st.lists(st.integers(-60, 60).map(lambda x: x / 10), min_size=1, max_size=8),
)
def test_every_number_is_in_the_bin_that_its_label_says(tmp_path_factory, edges, values):
    folder = tmp_path_factory.mktemp("bins")
    path = folder / "raw.csv"
    path.write_text(text([["1", h, v, "x", 0, "p"] for h, v in enumerate(values)]))
    labels = name_bins(edges)
    plan = PreparationPlan(
        columns=NAMED, bins={"state": tuple(edges)}, codebook=Codebook(states=tuple(labels), actions=("x",)),
        users=Users(), horizon=len(values),
    )  # fmt: skip
    prepare(path, folder / "out.parquet", plan)
    for value, code in zip(values, pq.read_table(folder / "out.parquet").column("state").to_pylist(), strict=True):
        words = labels[code].split()
        match words:
            case ["below", high]:
                assert value < float(high)
            case [low, "to", high]:
                assert float(low) <= value < float(high)
            case [low, "or", "more"]:
                assert value >= float(low)


def test_a_row_of_totals_is_an_episode_without_a_user(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text(text([*stays(("1", "2")), ["total", "", "", "", "6", ""]]))
    plan = PreparationPlan(columns=NAMED, codebook=book(), horizon=3, users=Users(), reward_range=(0, 9))
    with pytest.raises(PrivcheckError, match=r"row 8: no user, .*--missing drop"):
        prepare(path, tmp_path / "out.parquet", plan)
    done = prepare(path, tmp_path / "out.parquet", replace(plan, missing="drop"))
    assert (done.episodes, done.changed) == (2, {"episode dropped": 1})
    assert '8,episode dropped,"the user is missing"' in (tmp_path / "out.changes.csv").read_text()
