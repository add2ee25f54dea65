"""The pytest plugin from outside: one α for the session, the summary, properties, refusals, and no weight when unused.

The correct mechanism below is audited with confidence 1 − 10⁻⁹: no test here fails by chance with probability above
10⁻⁸.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = "pytester"

SUITE = """
    import pytest
    from privcheck import PureDP
    from privcheck.testing import assert_private

    def laplace(given, runs, rng):
        return given + rng.laplace(0, 1, runs)

    @pytest.mark.privacy
    def test_right():
        found = assert_private(laplace, PureDP(1), neighbours=[(0, 1)])
        assert found.trials == 500

    @pytest.mark.privacy(trials=1_000, audits=2)
    def test_wrong():
        assert_private(laplace, PureDP(3), neighbours=[(0, 1)])
        assert_private(laplace, PureDP("1/10"), neighbours=[(0, 1)])

    def test_unmarked():
        assert_private(laplace, PureDP(1), neighbours=[(0, 1)], trials=200, confidence=1 - 1e-9)
"""


def run(pytester, *arguments):
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error", *arguments)


@pytest.mark.slow
def test_the_session_shares_one_alpha_and_ends_with_a_table(pytester):
    pytester.makepyfile(SUITE)
    found = run(pytester, "--privacy-trials=500", "--privacy-confidence=0.999999997", "--junitxml=junit.xml")
    found.assert_outcomes(passed=2, failed=1)
    found.stdout.fnmatch_lines(
        [
            "*privacy: 3 audits, 1 confidence for all together*",
            "claim * accountant * audit * trials * verdict * test",
            "(1)-DP * 500 * consistent * *::test_right",
            "(3)-DP * 1000 * consistent * *::test_wrong",
            "(1/10)-DP * 1000 * violation * *::test_wrong",
        ]
    )
    written = (pytester.path / "junit.xml").read_text(encoding="utf-8")
    assert '<property name="privacy.1.verdict" value="violation" />' in written
    assert '<property name="privacy.0.confidence" value="0.999999999" />' in written


@pytest.mark.slow
def test_deselected_tests_spend_nothing(pytester):
    pytester.makepyfile(SUITE)
    found = run(pytester, "--privacy-trials=500", "-k", "right", "--junitxml=junit.xml", "--privacy-confidence=0.9999")
    found.assert_outcomes(passed=1, deselected=2)
    assert 'name="privacy.0.confidence" value="0.9999"' in (pytester.path / "junit.xml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_more_audits_than_announced_and_a_confidence_of_ones_own_are_refused(pytester):
    pytester.makepyfile(
        """
        import pytest
        from privcheck import PureDP
        from privcheck.testing import assert_private

        def constant(given, runs, rng):
            return [0.0] * runs

        @pytest.mark.privacy
        def test_twice():
            assert_private(constant, PureDP(1), neighbours=[(0, 1)])
            assert_private(constant, PureDP(1), neighbours=[(0, 1)])

        @pytest.mark.privacy
        def test_own():
            assert_private(constant, PureDP(1), neighbours=[(0, 1)], confidence=0.9)
        """
    )
    found = run(pytester, "--privacy-trials=200")
    found.assert_outcomes(failed=2)
    found.stdout.fnmatch_lines(["*audits=2*", "*leave out `confidence`*"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--privacy-confidence=1"], "*--privacy-confidence: expected strictly between 0 and 1*"),
        (["--privacy-trials=0"], "*--privacy-trials: expected at least 1*"),
        (["--privacy-agent-trials=0"], "*--privacy-agent-trials: expected at least 1*"),
        (["--privacy-seed=-1"], "*--privacy-seed: expected at least 0*"),
        (["--privacy-files=no-such-list"], "*--privacy-files: expected a list of files, one a line*"),
    ],
)
def test_options_out_of_range_are_refused(pytester, arguments, said):
    pytester.makepyfile("def test_nothing(): pass")
    found = run(pytester, *arguments)
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    found.stderr.fnmatch_lines([said])


def test_a_marker_with_unknown_words_is_refused(pytester):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.privacy(runs=3)
        def test_nothing(): pass
        """
    )
    found = run(pytester)
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    found.stderr.fnmatch_lines(["*expected trials=* and audits=*"])


def test_the_marker_is_known_and_nothing_is_written_where_it_is_unused(pytester):
    pytester.makepyfile("def test_nothing(): pass")
    found = run(pytester, "--strict-markers")
    found.assert_outcomes(passed=1)
    found.stdout.no_fnmatch_line("*privacy*")
    run(pytester, "--markers").stdout.fnmatch_lines(["@pytest.mark.privacy(trials=None, audits=1)*"])


RECORDED = """
    import pytest
    from privcheck import PureDP
    from privcheck.testing import assert_private

    def constant(given, runs, rng):
        return [0.0] * runs

    def agent(data, rng):
        return 0

    @pytest.mark.privacy(audits=2)
    def test_both():
        assert_private(constant, PureDP(1), neighbours=[(0, 1)], trials=200)
        assert_private(agent, PureDP(1), neighbours=[([0], [1])], joint=False)

    @pytest.mark.privacy
    def test_shown():
        assert_private(lambda given, runs, rng: [given] * runs, PureDP(1), neighbours=[(0, 1)], trials=200)

    def test_unmarked():
        raise ValueError("no audit")

    @pytest.mark.skip(reason="later")
    def test_skipped(): pass
"""


def record(pytester, *arguments):
    """Runs a session with a record, and returns its lines by their kind."""
    path = pytester.path / "record"
    path.unlink(missing_ok=True)
    run(pytester, f"--privacy-record={path}", "--privacy-agent-trials=120", *arguments)
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        found.setdefault(told.pop("kind"), []).append(told)
    return found


@pytest.mark.slow
def test_a_record_has_tests_audits_outcomes_and_loaded_files(pytester):
    pytester.makepyfile(test_own=RECORDED)
    file = str(pytester.path / "test_own.py")
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    found = record(pytester, "--privacy-seed=3")
    assert [(one["test"], one["audits"]) for one in found["test"]] == [
        ("test_own.py::test_both", 2),
        ("test_own.py::test_shown", 1),
        ("test_own.py::test_unmarked", 0),
        ("test_own.py::test_skipped", 0),
    ]
    assert [lines[one["line"] - 1] for one in found["test"]][::2] == [
        "@pytest.mark.privacy(audits=2)",
        "def test_unmarked():",
    ]
    assert {(one["path"], one["file"]) for one in found["test"]} == {(file, file)}
    first, agent, shown = found["audit"]
    assert [one["verdict"] for one in found["audit"]] == ["consistent", "consistent", "violation"]
    assert (first["trials"], agent["trials"], shown["seed"]) == (200, 120, 3)
    assert {one["file"] for one in found["audit"]} == {file}
    assert all("assert_private(" in lines[one["line"] - 1] for one in found["audit"])
    assert (first["neighbours"], first["code"], shown["neighbours"]) == ("", "", "(0, 1)")
    assert "def test_witness():" in shown["code"]
    assert shown["claimed"] == "ε ≤ 1"
    assert [(one["test"].partition("::")[2], one["outcome"], one["why"][:20]) for one in found["outcome"]] == [
        ("test_both", "passed", ""),
        ("test_shown", "failed", "AssertionError: viol"),
        ("test_unmarked", "failed", "ValueError: no audit"),
        ("test_skipped", "skipped", "Skipped: later"),
    ]
    assert found["modules"][0]["files"]["test_own"] == file
    names = [name for one in found["modules"] for name in one["files"]]
    assert len(set(names)) == len(names) > 100


def test_only_listed_files_are_collected_and_a_broken_one_is_recorded(pytester):
    pytester.makepyfile(test_own="def test_own(): pass", test_other="1 / 0", test_broken="import no_such_module")
    pytester.mkdir("below").joinpath("test_below.py").write_text("def test_below(): pass", encoding="utf-8")
    names = ["test_own.py", "test_broken.py", "below/test_below.py"]
    listed = pytester.path / "listed"
    listed.write_text("".join(f"{pytester.path / name}\n" for name in names), encoding="utf-8")
    found = record(pytester, "--collect-only", f"--privacy-files={listed}")
    assert sorted(one["test"] for one in found["test"]) == ["below/test_below.py::test_below", "test_own.py::test_own"]
    assert [(one["file"], one["why"]) for one in found["uncollected"]] == [
        (str(pytester.path / "test_broken.py"), "ModuleNotFoundError: No module named 'no_such_module'")
    ]
    assert found.keys() == {"test", "uncollected"}


def test_the_plugin_alone_loads_nothing_heavy():
    heavy = "{'numpy', 'hypothesis', 'sympy', 'scipy'}"
    code = f"import sys, privcheck.testing.plugin; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
