"""`privcheck ci` on repositories of its own: a mutant, a correct change, a change of nothing that is audited.

Correct code is audited with the share of run 1 of A = 10⁻⁹, so that no test here fails by chance with probability above
10⁻⁹; a tenth of the noise is missed far more rarely.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from work_trees import WHO, check_sarif, commit, git, make

NOISE = "def laplace(rng, scale, size):\n    return rng.laplace(0, scale, size)\n"
COUNTING = """
from mine.noise import laplace


def noisy_count(records, size, rng):
    return sum(records) + laplace(rng, 1, size)
"""
DECLARED = '''
"""Noisy visit counts: of variance H/rho, as the claim needs."""

from privcheck import ZCDP, Algorithm, Claim, Declaration, Gaussian, Parameter, Release, ReplaceOne
from privcheck.declare.statistics import VisitCounts
from privcheck.terms.symbols import A, H, S, rho

from mine.factor import FACTOR

ABOUT = {"name": "mine-visits", "title": "noisy visit counts", "source": "this repository"}


def declare(readings):
    sizes = (Parameter(name=name, default=2, kind="count", meaning="size") for name in "HSA")
    return Declaration(
        **ABOUT,
        relation=ReplaceOne("trajectory"),
        releases=(Release("visits", VisitCounts(H, S, A), Gaussian(variance=FACTOR * H / rho)),),
        claim=Claim(ZCDP(rho), source="this repository"),
        parameters=(*sizes, Parameter(name="rho", default="1", kind="positive", meaning="of the claim")),
    )


ALGORITHM = Algorithm(**ABOUT, declare=declare)
'''.lstrip()
TEST = """
import pytest
from privcheck import PureDP
from privcheck.testing import assert_private

from mine.counting import noisy_count


@pytest.mark.privacy
def test_noisy_count():
    assert_private(noisy_count, PureDP(1), neighbours=[([0, 1], [1, 1])])
"""
BASE = {
    "src/mine/__init__.py": "",
    "src/mine/noise.py": NOISE,
    "src/mine/counting.py": COUNTING,
    "src/mine/factor.py": "FACTOR = 1\n",
    "src/mine/declared.py": DECLARED,
    "src/mine/unrelated.py": "",
    "src/mine-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n",
    "src/mine-1.0.dist-info/entry_points.txt": "[privcheck.algorithms]\nmine-visits = mine.declared:ALGORITHM\n",
    "tests/test_counting.py": TEST,
    "pytest.ini": "[pytest]\npythonpath = src\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n*.sarif\n*.md\n",
}
ALL = ("mine-visits", "tests/test_counting.py::test_noisy_count")


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tree").mkdir()
    return make(tmp_path / "tree", BASE)


def environment(*places):
    """The environment of a process that finds packages in these places too."""
    searched = [Path(one).resolve() for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*places, *searched]))}


def review(tree, *, code, package=None, minutes=5, run_number=1, alpha=0.01):
    """Runs one round of the command in a process, and returns its document, its SARIF and its comment."""
    options = {"base": "main", "run-number": run_number, "minutes": minutes, "rounds": 1, "alpha": repr(alpha)}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [
        sys.executable,
        "-P",
        "-m",
        "privcheck",
        "ci",
        *words,
        "--sarif",
        "x.sarif",
        "--comment",
        "x.md",
        "--json",
    ]
    env = environment(package or tree / "src")
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == code, (done.stdout[-2_000:], done.stderr[-2_000:])
    sarif, comment = ((tree / name).read_text(encoding="utf-8") for name in ("x.sarif", "x.md"))
    return json.loads(done.stdout), check_sarif(sarif), comment


def verdicts(told):
    return {(one["name"], one["view"]): one["verdict"] for one in told["targets"]}


@pytest.mark.slow
@pytest.mark.every_change
def test_a_mutant_of_a_mechanism_is_found_through_its_imports_with_a_witness(tree):
    commit(
        tree,
        {
            "src/mine/noise.py": NOISE.replace("scale, size", "scale / 10, size", 2).replace(
                "rng, scale / 10", "rng, scale"
            )
        },
    )
    told, run, comment = review(tree, run_number=17, code=1)
    assert told["verdict"] == "violation"
    (found,) = told["targets"]
    assert (found["name"], found["verdict"]) == (ALL[1], "violation")
    assert found["through"] == ["tests/test_counting.py", "src/mine/counting.py", "src/mine/noise.py"]
    call = TEST.splitlines().index("    assert_private(noisy_count, PureDP(1), neighbours=[([0, 1], [1, 1])])") + 1
    assert (found["file"], found["line"]) == ("tests/test_counting.py", call)
    assert 1 < float(found["lower"].removeprefix("ε ≥ ")) <= 10
    assert found["neighbours"] == "([0, 1], [1, 1])"
    assert told["untouched"] == 1
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], place["region"]["startLine"]) == ("privacy-violation", call)
    assert "([0, 1], [1, 1])" in comment
    assert found["command"] in comment
    repeated = [sys.executable, *shlex.split(found["command"])[1:], "-p", "no:cacheprovider"]
    again = subprocess.run(repeated, cwd=tree, env=environment(), capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert f"ε ≥ {found['lower'].removeprefix('ε ≥ ')[:4]}" in again.stdout  # the same bound


@pytest.mark.nightly
def test_too_little_noise_in_a_declaration_fails_and_is_refuted_at_its_line(tree):
    commit(tree, {"src/mine/factor.py": "from fractions import Fraction\n\nFACTOR = Fraction(1, 4)\n"})
    told, run, comment = review(tree, code=1)
    found = verdicts(told)
    assert found["mine-visits", "verify"] == "fails"
    assert found["mine-visits", "releases"] == "violation"
    assert {name for name, _ in found} == {"mine-visits"}
    line = DECLARED.splitlines().index("ALGORITHM = Algorithm(**ABOUT, declare=declare)") + 1
    assert {(one["file"], one["line"]) for one in told["targets"]} == {("src/mine/declared.py", line)}
    assert {one["ruleId"] for one in run["results"]} == {"privacy-violation", "privacy-claim-fails"}
    assert "privcheck verify mine-visits" in comment


@pytest.mark.slow
def test_a_correct_change_spends_its_share_and_passes(tree):
    commit(tree, {"src/mine/noise.py": NOISE + "\n# the same noise\n", "src/mine/factor.py": "FACTOR = 2\n"})
    told, run, comment = review(tree, code=0, alpha=1e-9)
    assert told["verdict"] == "consistent"
    assert {name for name, _ in verdicts(told)} == set(ALL)
    assert set(verdicts(told).values()) == {"consistent", "holds"}
    assert run["results"] == []
    assert "no audit refutes what the change touches" in comment
    share = told["budget"]["share"]
    spent = sum(one["alpha"] for one in told["rounds"])
    assert 0 < spent < share < 0.37 * told["budget"]["alpha"]
    alphas = [1 - one["confidence"] for one in told["targets"] if one["confidence"] is not None]
    assert len(alphas) == told["rounds"][0]["audits"] == 3  # releases, noise, and the test
    assert all(0 < alpha <= told["rounds"][0]["alpha"] / 3 for alpha in alphas)


def test_a_change_of_nothing_that_is_audited_passes_and_says_so(tree):
    commit(tree, {"src/mine/unrelated.py": "x = 1\n", "data.csv": "1\n"})
    told, run, comment = review(tree, code=0)
    assert (told["verdict"], told["targets"], told["rounds"]) == ("nothing touched", [], [])
    assert told["beside"] == ["data.csv", "src/mine/unrelated.py"]
    assert told["untouched"] == 2
    assert run["results"] == []
    assert "the change touches nothing that is audited" in comment


@pytest.mark.slow
def test_without_time_everything_is_told_as_not_audited(tree):
    commit(tree, {"src/mine/noise.py": NOISE + "\n", "src/mine/factor.py": "FACTOR = 2\n"})
    told, run, _ = review(tree, code=3, minutes=0.001)
    assert told["verdict"] == "undecided"
    assert {one["verdict"] for one in told["targets"]} == {"not audited"}
    assert {one["kind"] for one in told["targets"]} >= {"algorithm", "test"}
    assert {one["ruleId"] for one in run["results"]} == {"privacy-not-audited"}
    assert all("time was over" in one["reason"] for one in told["targets"] if one["kind"] != "call")


@pytest.mark.nightly
def test_what_cannot_be_audited_is_told_with_its_reason(tree):
    unmarked = TEST.replace("@pytest.mark.privacy\n", "")
    skipped = TEST.replace("@pytest.mark.privacy\n", "@pytest.mark.privacy\n@pytest.mark.skip(reason='no time')\n")
    expected = TEST.replace(
        "    assert_private(", "    with pytest.raises(AssertionError):\n        assert_private("
    ).replace("PureDP(1)", "PureDP('1/10')")
    helper = TEST.replace("def test_noisy_count", "def helper").replace("@pytest.mark.privacy\n", "")
    commit(
        tree,
        {
            "src/mine/noise.py": NOISE + "\n",
            "tests/test_unmarked.py": unmarked,
            "tests/test_skipped.py": skipped,
            "tests/test_expected.py": expected,
            "tests/test_broken.py": TEST.replace("from mine.counting", "from mine.elsewhere"),
            "tests/helper.py": helper,
            "src/mine/declared.py": DECLARED.replace("import VisitCounts", "import NoSuchCounts"),
        },
    )
    told, _, _ = review(tree, code=3, alpha=1e-9)
    found = {one["name"]: one for one in told["targets"]}
    line = unmarked.splitlines().index("    assert_private(noisy_count, PureDP(1), neighbours=[([0, 1], [1, 1])])") + 1
    assert "not marked `privacy`" in found[f"tests/test_unmarked.py:{line}"]["reason"]
    assert found["tests/test_skipped.py::test_noisy_count"]["reason"] == "it was skipped: Skipped: no time"
    assert found["tests/test_expected.py::test_noisy_count"]["verdict"] == "expected violation"
    assert "No module named 'mine.elsewhere'" in found["tests/test_broken.py"]["reason"]
    assert found[f"tests/helper.py:{line}"]["reason"] == "no collected test makes this call"
    assert "cannot import name 'NoSuchCounts'" in found["mine-visits"]["reason"]
    assert found[ALL[1]]["verdict"] == "consistent"
    assert len(found) == len(told["targets"]) == 7


@pytest.mark.slow
def test_an_installed_copy_is_not_taken_for_the_code_under_review(tree, tmp_path):
    """The registered package is found elsewhere, as an old wheel would be."""
    commit(tree, {"src/mine/factor.py": "from fractions import Fraction\n\nFACTOR = Fraction(1, 4)\n"})
    (tree / "src").rename(tmp_path / "kept")
    git(tree, "checkout", "-q", "main", "--", "src")
    (tree / "src").rename(tmp_path / "old")
    (tmp_path / "kept").rename(tree / "src")
    git(tree, "reset", "-q")
    told, _, _ = review(tree, code=3, package=tmp_path / "old")
    (found,) = told["targets"]
    assert found["verdict"] == "not audited"
    assert "install the work tree (pip install -e .)" in found["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise SystemExit(0)", "SystemExit"),
        ("import os\nos._exit(0)", "its process ended with 0"),
        ("import time\ntime.sleep(1000)", "the time was over while it was loaded"),
        ("1 / 0", "division by zero"),
    ],
)
def test_code_that_ends_the_process_or_never_does_is_not_audited_and_no_pass(tree, text, reason):
    commit(tree, {"src/mine/factor.py": f"FACTOR = 2\n{text}\n"})
    told, _, _ = review(tree, code=3, minutes=0.2)
    (found,) = told["targets"]
    assert (found["name"], found["verdict"]) == ("mine-visits", "not audited")
    assert reason in found["reason"]


PROJECT = '[project.entry-points."privcheck.algorithms"]\nmine-visits = "mine.declared:{name}"\n{more}\n'


@pytest.mark.slow
def test_an_algorithm_that_is_registered_and_not_installed_is_told(tree):
    """As where the job forgot to install the work tree, or did so before the change."""
    commit(
        tree,
        {
            "src/mine/factor.py": "FACTOR = 2\n",
            "pyproject.toml": PROJECT.format(name="RENAMED", more='mine-new = "mine.declared:ALGORITHM"'),
            "broken/pyproject.toml": "project = 1\n",
        },
    )
    told, _, _ = review(tree, code=3)
    assert verdicts(told) == {("mine-visits", ""): "not audited", ("mine-new", ""): "not audited"}
    assert all("pip install -e ." in one["reason"] for one in told["targets"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base", "nowhere", "--run-number", "1"], "expected a branch, tag or commit"),
        (["--base", "main", "--run-number", "0"], "expected a whole number from 1"),
        (["--base", "main"], "--run-number"),
        (["--run-number", "1"], "--base"),
        (["--base", "main", "--run-number", "1", "--alpha", "0.7"], "(0, 0.5]"),
        (["--base", "main", "--run-number", "1", "--minutes", "0"], "--minutes expects a positive number"),
        (["--base", "main", "--run-number", "1", "--minutes", "nan"], "--minutes expects a positive number"),
        (["--base", "main", "--run-number", "1", "--sarif", "no/x.sarif"], "a folder that exists"),
    ],
)
def test_misuse_is_refused_with_one_message(tree, monkeypatch, words, said):
    monkeypatch.chdir(tree)
    result = CliRunner().invoke(main, ["ci", *words])
    assert result.exit_code == 2
    assert said in result.stderr
    assert not result.stdout


def test_a_folder_that_is_no_work_tree_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["ci", "--base", "main", "--run-number", "1", "--json"])
    assert result.exit_code == 2
    assert "is in no git work tree" in json.loads(result.stdout)["message"]


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_files_for_ci_systems_call_the_command_as_it_is(name):
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / f"pull-requests/{name}.yml").read_text(encoding="utf-8")
    (call,) = re.findall(r"privcheck ci [^\n]*\n[^\n]*", text)
    command = main.commands["ci"]
    given, rest, _ = command.make_parser(click.Context(command)).parse_args(shlex.split(call)[2:])
    assert rest == []
    assert {"base", "run_number", "minutes", "sarif", "comment"} <= given.keys()
    assert given["run_number"] in {"$GITHUB_RUN_NUMBER", "$CI_PIPELINE_IID"}
    assert f"pull-requests/{name}.yml" in (docs / "pull-requests.md").read_text(encoding="utf-8")


def test_git_needs_no_identity_of_the_user(tree):
    assert git(tree, "log", "-1", "--format=%an") == WHO["GIT_AUTHOR_NAME"]
