"""Public features from files: read back as written, refused in one message with places and remedies."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from privcheck.data.features import one_hot_features
from privcheck.data.reading import read_features
from privcheck.errors import FileFormatError

PHI = np.random.default_rng(0).uniform(-0.5, 0.5, size=(3, 2, 4))


def rows(phi):
    return [(s, a, *phi[s, a].tolist()) for s in range(phi.shape[0]) for a in range(phi.shape[1])]


def write(path, phi, table=None):
    table = rows(phi) if table is None else table
    names = ["state", "action", *(f"phi{i + 1}" for i in range(len(table[0]) - 2))]
    if path.suffix == ".npz":
        np.savez(path, phi=phi)
    elif path.suffix == ".csv":
        path.write_text("\n".join(",".join(map(repr, row)) for row in [tuple(names), *table]).replace("'", "") + "\n")
    else:
        pq.write_table(pa.table({name: [row[i] for row in table] for i, name in enumerate(names)}), path)
    return path


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet"])
def test_features_are_read_back_bit_by_bit(tmp_path, ending):
    found = read_features(write(tmp_path / f"phi.{ending}", PHI), num_states=3)
    np.testing.assert_array_equal(found.phi, PHI)


def test_rows_come_in_any_order(tmp_path):
    np.testing.assert_array_equal(read_features(write(tmp_path / "phi.csv", PHI, rows(PHI)[::-1])).phi, PHI)


def test_everything_wrong_with_a_table_is_in_one_message(tmp_path):
    path = tmp_path / "phi.csv"
    path.write_text("state,action,phi1,phi2\n0,0,.5,nan\n0,0,.5,.5\n1,1,2,0\n2,x,0,0\n0,1.5,0,0\n")
    with pytest.raises(FileFormatError) as refused:
        read_features(path)
    text = str(refused.value)
    for part in (
        "phi2: not finite: line 2", "same pair twice (keep one row): state 0, action 0: line 2 and line 3",
        "divide all by 2, or by a public bound", "line 4 (2)",
        "action: expected a number: line 5", "whole number: line 6",
    ):  # fmt: skip
        assert part in text


def test_missing_pairs_and_gaps_are_refused(tmp_path):
    path = tmp_path / "phi.csv"
    path.write_text("state,action,phi1,phi3\n0,0,.5,.5\n1,1,.5,0\n")
    with pytest.raises(FileFormatError, match=r"no column phi2 beside phi3(.|\n)*state 0, action 1; state 1, action 0"):
        read_features(path)
    with pytest.raises(FileFormatError, match=r"expected an id in 0\.\.0: line 3"):
        read_features(path, num_states=1)


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"psi": PHI}, "no array phi"),
        ({"phi": PHI[0]}, r"expected shape \(S, A, d\)"),
        ({"phi": 9 * PHI}, "divide all of them by"),
        ({"phi": np.where(PHI[0, 0, 0] == PHI, np.nan, PHI)}, "finite"),
        ({"phi": PHI.astype(object)}, "pickled objects, which are never loaded"),
    ],
)
def test_archives_are_refused(tmp_path, arrays, why):
    np.savez(tmp_path / "phi.npz", **arrays)
    with pytest.raises(FileFormatError, match=why):
        read_features(tmp_path / "phi.npz")


def test_features_of_other_sizes_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="S = 3 and A = 2"):
        read_features(write(tmp_path / "phi.npz", PHI), num_states=4)


def run(*words):
    return CliRunner().invoke(main, ["run", *map(str, words)])


@pytest.fixture
def users(tmp_path):
    rng, n, H = np.random.default_rng(1), 40, 2
    arrays = {"states": rng.integers(0, 3, (n, H + 1)), "actions": rng.integers(0, 2, (n, H))}
    np.savez(tmp_path / "users.npz", **arrays, rewards=rng.random((n, H)))
    return tmp_path / "users.npz"


def test_agents_learn_from_a_file_with_features_and_without(tmp_path, users):
    phi = write(tmp_path / "phi.csv", PHI)
    for name in ("dp-vapvi", "vapvi"):
        given = run(name, "--one-episode-is-one-user", "--data", users, "--features", phi, "--json")
        assert given.exit_code == 0, given.output
        told = json.loads(given.output)
        assert "its own coordinate" not in given.output
        assert name != "dp-vapvi" or told["parameters"]["d"] == "4"
        alone = run(name, "--one-episode-is-one-user", "--data", users, "--json")
        assert "its own coordinate, d = 6" in alone.output
    wrong = run("dp-vapvi", "--one-episode-is-one-user", "--data", users, "--features", phi, "--set", "d=5")
    assert (wrong.exit_code, "d = 4" in wrong.output) == (2, True)
    for words, why in (
        (("--env", "linear-synthetic"), "goes with a file"),
        (("--one-episode-is-one-user", "--data", users, "--set", "S=300"), "S = 3 and A = 2"),
    ):
        refused = run("dp-vapvi", *words, "--features", write(tmp_path / "phi.npz", PHI))
        assert (refused.exit_code, why in refused.output) == (2, True), refused.output
    assert (
        "give --env ENV, such as riverswim, not --data, --rewards or --features"
        in run("ucb-vi", "--features", phi).output
    )


def test_one_hot_features_are_told_apart_and_refused_where_they_are_too_many(users):
    assert one_hot_features(2, 3).one_hot
    refused = run("dp-vapvi", "--one-episode-is-one-user", "--data", users, "--set", "S=40", "--set", "A=20")
    assert (refused.exit_code, "d = 40·20 = 800 dimensions, at most 512" in refused.output) == (2, True)
