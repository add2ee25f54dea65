"""The unit of privacy: who the users of a table are, what a run of theirs costs, and where each of these is written."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from privcheck import Unit, Users, load_policy
from privcheck.cli.main import main
from privcheck.commands.settings import resolve_setting
from privcheck.data.reading import read_trajectories, write_trajectories
from privcheck.data.reading.users import METADATA, find_identifiers
from privcheck.data.trajectories import Trajectories, concatenate, take
from privcheck.errors import FileFormatError, ParameterError, TrajectoryError
from privcheck.pricing import account
from privcheck.runtime import registry
from privcheck.terms.unit import explain_mismatch, name_person, parse_unit
from privcheck.testing import trajectories

nouns = st.text(st.characters(codec="utf-8", categories=("L", "Nd")), min_size=1, max_size=20)
units = st.builds(
    Unit,
    who=nouns,
    trajectories=st.integers(1, 12),
    steps=st.none() | st.integers(1, 9),
    relation=st.sampled_from(["replace-one", "replace-one-same-start", "add-remove", "zero-out"]),
    model=st.sampled_from(["central", "joint", "shuffle", "local"]),
    basis=st.just("statement"),
    stated_by=st.just("ana"),
)


@given(units)
def test_a_unit_is_read_back_from_its_text_and_from_its_json(unit):
    assert parse_unit(unit.text, stated_by="ana") == unit
    assert Unit.of(json.loads(json.dumps(unit.to_dict()))) == unit
    assert explain_mismatch(unit, unit, whose="'d'") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("patient, replace-one, central", "expected a unit of privacy as"),
        ("patient, 8, replace-one, central", "expected a unit of privacy as"),
        ("patient, 0 trajectories, replace-one, central", "whole number from 1"),
        ("patient, 8 trajectories, replaceone, central", "expected one of replace-one"),
        ("patient, 8 trajectories, replace-one, centre", "expected one of central"),
        ("patient, 8 trajectories, 8 trajectories, replace-one, central", "expected a unit of privacy as"),
        ("patient, 8.5 trajectories, replace-one, central", "expected a unit of privacy as"),
        (", 8 trajectories, replace-one, central", "who, of a unit of privacy: expected a text"),
        (None, "expected a unit of privacy as"),
        (float("nan"), "expected a unit of privacy as"),
    ],
)
def test_a_text_that_leaves_something_open_is_refused(text, says):
    with pytest.raises(ParameterError, match=says):
        parse_unit(text, stated_by="ana")


@pytest.mark.parametrize(
    "change",
    [{"trajectories": True}, {"trajectories": 2.0}, {"steps": 0}, {"who": "a, b"}, {"basis": "guess"}, {"more": 1}],
)
def test_json_that_means_nothing_is_refused(change):
    good = parse_unit("patient, 8 trajectories, replace-one, central", stated_by="ana").to_dict()
    with pytest.raises(ParameterError):
        Unit.of(good | change)


@pytest.mark.parametrize(
    ("column", "noun"),
    [("patient_id", "patient"), ("SubjectID", "Subject".lower()), ("MRN", "mrn"), ("paid", "paid"), ("user", "user")],
)
def test_a_column_is_about_a_noun(column, noun):
    assert name_person(column) == noun


# the table -----------------------------------------------------------------------------------------------------------


def stays(patients=30, most=4, seed=0):
    """A table of stays, several a patient, with columns that do and do not look like identifiers."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(patients), rng.integers(1, most + 1, patients))
    n, steps = len(owner), 2
    states = rng.integers(0, 3, (n, steps + 1))
    return pa.table({
        "episode": np.repeat(np.arange(n), steps), "step": np.tile([1, 2], n), "state": states[:, :-1].ravel(),
        "action": rng.integers(0, 2, n * steps), "reward": rng.integers(0, 2, n * steps).astype(float),
        "next_state": states[:, 1:].ravel(), "patient_id": [f"P{o:03}" for o in np.repeat(owner, steps)],
        "ward": np.repeat(owner % 2, steps), "pulse": rng.integers(40, 180, n * steps),
        "row": np.arange(n * steps),
    })  # fmt: skip


SIZES = {"num_states": 3, "num_actions": 2}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_of_unknown_users_is_refused_with_what_looks_like_an_identifier(tmp_path, ending):
    table = stays()
    path = tmp_path / f"trips.{ending}"
    if ending == "csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        pq.write_table(table, path)
    with pytest.raises(TrajectoryError) as caught:
        read_trajectories(path, **SIZES)
    episodes = len(set(table["episode"].to_pylist()))
    said = str(caught.value)
    assert f"Its {episodes} episodes are {episodes} users only" in said
    assert "look like identifiers of users: patient_id (30 values" in said
    assert "--column user=patient_id" in said
    assert "--one-episode-is-one-user" in said
    assert "ward" not in said
    assert "pulse" not in said
    read = read_trajectories(path, **SIZES, users=Users(column="patient_id", max_trajectories=4))
    assert (read.trajectories.unit.who, read.trajectories.unit.trajectories) == ("patient", 4)
    with pytest.raises(TrajectoryError, match="a user with more than one episode"):
        read_trajectories(path, **SIZES, users=Users(column="patient_id"))
    with pytest.raises(ParameterError, match="no column person"):
        read_trajectories(path, **SIZES, users=Users(column="person"))
    alone = read_trajectories(path, **SIZES, users=Users(one_episode_is_one_user=True, who="patient"))
    assert (alone.trajectories.unit.basis, alone.trajectories.unit.who) == ("assertion", "patient")


def test_identifiers_are_constant_in_an_episode_and_come_back():
    columns = {name: stays().column(name) for name in ("episode", "patient_id", "ward", "pulse", "row")}
    assert [words.split(" (")[0] for words in find_identifiers(columns)[1]] == ["patient_id"]
    nameless = {"episode": columns["episode"], "a7": columns["patient_id"], "ward": columns["ward"]}
    assert [words.split(" (")[0] for words in find_identifiers(nameless)[1]] == ["a7"]


@pytest.mark.parametrize("wrong", [{"who": ""}, {"column": " "}, {"who": 3}, {"max_trajectories": 0},
                                   {"max_trajectories": 2.0}, {"max_trajectories": True}])  # fmt: skip
def test_a_statement_that_says_nothing_is_refused(wrong):
    with pytest.raises(ParameterError, match="expect"):
        Users(**wrong)


def test_two_statements_that_contradict_each_other_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="contradicts"):
        Users(column="patient_id", one_episode_is_one_user=True)
    with pytest.raises(ParameterError, match="contradicts"):
        Users(max_trajectories=2, one_episode_is_one_user=True)
    table = stays(most=1)
    named = table.append_column("user", table.column("patient_id"))
    pq.write_table(named, tmp_path / "trips.parquet")
    with pytest.raises(ParameterError, match="has a column user: leave out --one-episode"):
        read_trajectories(tmp_path / "trips.parquet", **SIZES, users=Users(one_episode_is_one_user=True))


@given(trajectories(2, 3, 2, users=st.integers(1, 4)))
def test_the_unit_travels_with_the_data(tmp_path_factory, data):
    assert data.unit is None
    unit = Unit(who="patient", trajectories=3, steps=2, basis="column", stated_by="column patient_id")
    held = concatenate([Trajectories(**{n: getattr(data, n) for n in data.__slots__} | {"unit": unit})])
    assert held.unit == take(held, slice(0, 1)).unit == held.user(0).unit == unit
    assert concatenate([held, data]).unit is None  # a part of unknown users
    path = tmp_path_factory.mktemp("unit") / "trips.parquet"
    write_trajectories(path, held)
    read = read_trajectories(path, num_states=3, num_actions=2).trajectories.unit
    # the file lacks the column, so that nobody can count again
    assert (read.who, read.trajectories, read.basis) == ("patient", 3, "assertion")
    assert "patient_id" in read.stated_by
    with pytest.raises(ParameterError, match="was prepared for"):
        read_trajectories(path, num_states=3, num_actions=2, users=Users(one_episode_is_one_user=True))
    fewer = read_trajectories(path, num_states=3, num_actions=2, users=Users(max_trajectories=1)).trajectories.unit
    assert fewer.trajectories == 3  # fewer cannot be checked without the column


def test_metadata_that_was_damaged_is_refused(tmp_path):
    table = stays(most=1)
    for stored in (b"{", b"[]", b'{"who": "patient"}', b"null", b"\xff"):
        pq.write_table(table.replace_schema_metadata({METADATA: stored}), tmp_path / "trips.parquet")
        with pytest.raises(FileFormatError, match="unit of privacy in its metadata cannot be read"):
            read_trajectories(tmp_path / "trips.parquet", **SIZES)


# the price -----------------------------------------------------------------------------------------------------------


def naive_loss(m, H, S, A, variance):
    """ρ of the two tables of DP-APVI for a user with m trajectories: the largest over all pairs of such users."""
    paths = itertools.product(
        itertools.product(range(S), repeat=H + 1), itertools.product(range(A), repeat=H)
    )  # fmt: skip
    tables = []
    for states, actions in paths:
        visits, moves = np.zeros((H, S, A)), np.zeros((H, S, A, S))
        for h in range(H):
            visits[h, states[h], actions[h]] += 1
            moves[h, states[h], actions[h], states[h + 1]] += 1
        tables.append(np.concatenate([visits.ravel(), moves.ravel()]))
    sums = np.unique([sum(some) for some in itertools.combinations_with_replacement(tables, m)], axis=0)
    return max(((sums - one) ** 2).sum(axis=1).max() for one in sums) / (2 * variance)


@pytest.mark.parametrize(("m", "sizes"), [(1, (1, 2, 2)), (2, (1, 2, 2)), (3, (1, 2, 2)), (2, (2, 2, 1))])
def test_users_with_several_trajectories_are_charged_for_all_of_them(m, sizes):
    H, S, A = sizes
    setting = resolve_setting("dp-apvi", {"H": str(H), "S": str(S), "A": str(A), "rho": "1/2", "rewards": "known"})
    unit = Unit(who="patient", trajectories=m, steps=H, basis="column", stated_by="column patient_id")
    stated = setting.protecting(unit)
    cost = account(stated.released).at(stated.values).rho
    variance = float(2 * H / Fraction(1, 2))
    assert cost == pytest.approx(naive_loss(m, H, S, A, variance), rel=1e-12)
    assert cost == pytest.approx(m**2 / 2, rel=1e-12)
    assert (stated.setting.covering is None) == (m == 1)
    assert stated.judged.declared is setting.declared  # the claim stays that of one trajectory
    assert stated.charged.declared is stated.released
    assert stated.setting.protected.relation == "replace-one"


@pytest.mark.parametrize("name", ["dp-vapvi", "private-ucb-vi-local"])
def test_a_user_who_would_be_in_several_parts_is_refused(name):
    unit = Unit(who="patient", trajectories=2, basis="column", stated_by="column patient_id")
    with pytest.raises(ParameterError, match=r"a patient has up to 2, which .* several places; keep one of each"):
        resolve_setting(name, {}).protecting(unit)


def test_what_covers_more_than_a_user_has_stays_as_it_is():
    declared = registry.algorithm("bounded-contribution-apvi").declare({})
    setting = resolve_setting("bounded-contribution-apvi", {"m": "3"})
    unit = Unit(who="patient", trajectories=3, basis="column", stated_by="column patient_id")
    assert setting.protecting(unit).setting.covering is None
    assert declared.unit(setting.values).trajectories == 3
    with pytest.raises(ParameterError, match="covers 3 trajectories of a user"):
        declared.unit(setting.values, Unit(who="p", trajectories=4, basis="column", stated_by="c"))


# the files -----------------------------------------------------------------------------------------------------------


def call(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def as_json(*words):
    ended = call(*words, "--json")
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def test_a_hospitals_table_leads_to_a_policy_of_patients(tmp_path):
    raw, trips, out = tmp_path / "stays.csv", tmp_path / "trips.parquet", tmp_path / "run"
    table = stays(patients=40, most=12).rename_columns(
        ["stay", "hour", "sofa", "drug", "score", "next", "patient_id", "ward", "pulse", "row"]
    )
    table.to_pandas().to_csv(raw, index=False)
    named = [f"--column={ours}={theirs}" for ours, theirs in (
        ("episode", "stay"), ("step", "hour"), ("state", "sofa"), ("action", "drug"), ("reward", "score"),
    )]  # fmt: skip
    asked = (*named, "--states", 3, "--horizon", 2, "--out", trips)
    refused = call("prepare", raw, *asked)
    assert (refused.exit_code, "--column user=patient_id" in refused.output) == (2, True)
    asked += ("--column", "user=patient_id", "--max-trajectories", 8)
    refused = call("prepare", raw, *asked)
    assert (refused.exit_code, "--keep first" in refused.output) == (2, True)
    assert not trips.exists()
    done = as_json("prepare", raw, *asked, "--keep", "first")
    assert done["unit"] == {
        "who": "patient", "trajectories": 8, "steps": 2, "relation": None, "model": None, "basis": "column",
        "stated_by": "column patient_id",
    }  # fmt: skip
    ran = as_json(
        "run", "dp-apvi", "--data", trips, "--set", "rho=1/64", "--set", "S=4", "--set", "A=2", "--noise", "release",
        "--out", out,
    )  # fmt: skip
    protected = done["unit"] | {"relation": "replace-one", "model": "central"}
    record = json.loads((out / "policy.json").read_text())["guarantee"]
    header = json.loads((out / "ledger.jsonl").read_text().splitlines()[0])
    assert ran["unit"] == record["unit"] == header["unit"] == protected
    assert record["protects"]
    assert record["spent"]["rho"] == pytest.approx(1, rel=1e-9)
    assert record["spent"]["rho"] >= 1
    assert "for one trajectory" in record["claim"]
    assert "protects: replace one patient (up to 8 trajectories each" in " ".join(call("policy", out).output.split())
    assert load_policy(out).record.guarantee.unit.trajectories == 8


def test_a_run_of_unknown_users_writes_nothing(tmp_path):
    pq.write_table(stays(), tmp_path / "trips.parquet")
    for command in ("run", "check", "sweep"):
        over = ("--over", "rho=1,2") if command == "sweep" else ()
        refused = call(command, "dp-apvi", *over, "--data", tmp_path / "trips.parquet", "--out", tmp_path / "out")
        assert (refused.exit_code, "does not identify its users" in refused.output) == (2, True), refused.output
        assert not (tmp_path / "out").exists()
    refused = call("run", "dp-apvi", "--data", tmp_path / "trips.parquet", "--column", "state=sofa")
    assert (refused.exit_code, "--column expects user=NAME here" in refused.output) == (2, True)
    refused = call("run", "dp-apvi", "--env", "riverswim", "--one-episode-is-one-user")
    assert (refused.exit_code, "simulated environment" in refused.output) == (2, True)


def test_simulated_users_are_named_so(tmp_path):
    ran = as_json("run", "dp-apvi", "--env", "riverswim", "--set", "n=50", "--set", "H=3", "--out", tmp_path / "run")
    assert (ran["unit"]["who"], ran["unit"]["basis"]) == ("simulated user", "simulation")
    assert as_json("run", "vapvi", "--env", "linear-synthetic", "--set", "n=50")["unit"] is None


def test_every_page_about_own_data_prices_one_user(tmp_path):
    pq.write_table(stays(patients=20, most=3), tmp_path / "trips.parquet")
    given = ("--data", tmp_path / "trips.parquet", "--column", "user=patient_id", "--max-trajectories", 3)
    sizes = ("--set", "S=3", "--set", "A=2", "--set", "rho=1/9")
    point = as_json("sweep", "dp-apvi", *given, "--over", "rho=1/9", "--set", "S=3", "--set", "A=2")["points"][0]
    planned = as_json("check", "dp-apvi", *given, *sizes, "--dry-run")
    checked = as_json("check", "dp-apvi", *given, *sizes, "--trials", 100, "--workers", 1, "--out", tmp_path / "run")
    alone = as_json("budget", "dp-apvi", "--set", "rho=1", "--set", "H=2", "--delta", "1e-5")["guarantee"]
    assert checked["budget"]["guarantee"]["rho"] == pytest.approx(1, rel=1e-9)
    assert checked["budget"]["guarantee"]["epsilon"] == pytest.approx(alone["epsilon"], rel=1e-9)
    assert point["standing"]["guarantee"]["epsilon"] == pytest.approx(alone["epsilon"], rel=1e-9)
    assert "ρ = 1" in json.dumps(planned, ensure_ascii=False)
    for unit in (checked["run"]["unit"], checked["budget"]["unit"], checked["calibrate"]["unit"]):
        assert (unit["who"], unit["trajectories"]) == ("patient", 3)
    assert checked["verify"]["unit"]["trajectories"] == 1  # the claim is about one trajectory
    assert checked["verify"]["verdict"] == "holds"
