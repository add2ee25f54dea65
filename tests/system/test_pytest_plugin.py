"""The pytest plugin from outside: one α for the session, the summary, properties, refusals, and no weight when unused.

The correct mechanism below is audited with confidence 1 − 10⁻⁹: no test here fails by chance with probability above
10⁻⁸.
"""

from __future__ import annotations

import subprocess
import sys

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


def test_the_plugin_alone_loads_nothing_heavy():
    heavy = "{'numpy', 'hypothesis', 'sympy', 'scipy'}"
    code = f"import sys, privcheck.testing.plugin; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
