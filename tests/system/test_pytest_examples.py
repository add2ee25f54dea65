"""Audits of examples that Hypothesis draws, report pages and pasted witnesses, in pytest sessions of their own.

The mechanisms that are accused have unbounded losses, with fixed seeds. The correct ones are audited at confidence
1 − 10⁻⁹, for all examples of a test together.
"""

from __future__ import annotations

import json
import re

import pytest

pytest_plugins = "pytester"


@pytest.fixture(autouse=True)
def _at_a_desk(monkeypatch):
    """Where these are set, pytest prints whole messages in its summary, and Hypothesis knows no deadline."""
    for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "TF_BUILD"):
        monkeypatch.delenv(name, raising=False)


SUITE = """
    import numpy as np
    import pytest
    from hypothesis import given, settings
    from hypothesis import strategies as st
    from privcheck import PureDP
    from privcheck.testing import assert_private

    def counted(users, runs, rng):
        exact = sum(users) >= 2  # the mistake: some data get no noise
        return sum(users) + (0 if exact else rng.laplace(0, 1, runs)) * np.ones(runs)

    def right(users, runs, rng):
        return sum(users) + rng.laplace(0, 1, runs)

    def agent(users, rng):
        return np.cumsum(users)[::50]

    @st.composite
    def pairs(draw):
        users = draw(st.lists(st.integers(0, 1), min_size=1, max_size=2))
        which = draw(st.integers(0, len(users) - 1))
        return users, [*users[:which], 1 - users[which], *users[which + 1:]]

    @pytest.mark.privacy(trials=120)
    @settings(deadline=None, max_examples=25, derandomize=True)
    @given(pairs())
    def test_counted(pair):
        assert_private(counted, PureDP(1), neighbours=[pair])

    @settings(deadline=None, max_examples=2, derandomize=True)
    @given(pairs())
    def test_right(pair):
        assert_private(right, PureDP(1), neighbours=[pair], trials=100, confidence=1 - 1e-9)

    @pytest.mark.privacy
    def test_agent():
        users = [0] * 300
        where = {"dataset": users, "candidates": [1], "relation": "replace-one", "positions": [2]}
        assert_private(agent, PureDP(1), **where, screening=20, trials=100)

    @settings(deadline=200)
    @given(st.just((0, 1)))
    def test_slow(pair):
        assert_private(right, PureDP(1), neighbours=[pair], trials=100)
"""
MORE = """
import pytest
from privcheck import PureDP
from privcheck.testing import assert_private

@pytest.mark.privacy
def test_constant():
    assert_private(lambda given, runs, rng: [0] * runs, PureDP(1), neighbours=[(0, 1)], trials=100)
"""


def run(pytester, *arguments):
    return pytester.runpytest_subprocess("-W", "error", "--tb=short", *arguments)


@pytest.mark.slow
def test_examples_are_shrunk_and_their_witnesses_fail_again_with_their_pages(pytester):
    pytester.makepyfile(test_own=SUITE)
    found = run(pytester, "-n", "2", "--junitxml=junit.xml")
    found.assert_outcomes(failed=3, passed=1)
    said = found.stdout.str()
    assert "Flaky" not in said
    found.stdout.fnmatch_lines(["*add @settings(deadline=None, max_examples=20)*"])
    found.stdout.fnmatch_lines(["*privacy: 2 audits, 0.99 confidence*"])  # one line for all examples of a test
    written = (pytester.path / "junit.xml").read_text(encoding="utf-8")
    assert written.count('name="privacy.0.confidence" value="0.995"') == 2

    pages = pytester.path / ".pytest_cache" / "d" / "privacy"
    assert {path.name for path in pages.iterdir()} == {"test_own.py-test_counted", "test_own.py-test_agent"}
    place = pages / "test_own.py-test_counted"
    code = (place / "witness.py").read_text(encoding="utf-8")
    assert re.search(r"neighbours=\[\(\[[01], [01]\], \[[01], [01]\]\)\]", code)  # nothing smaller fails
    assert all(line.strip() in said for line in code.splitlines())
    assert said.count(f"report: {place / 'report.html'}") == 1
    assert f"report of test_own.py::test_counted: {place / 'report.html'}" in said
    page = (place / "report.html").read_text(encoding="utf-8")
    assert '<h2 id="verdict">Violation</h2>' in page
    assert "<svg" in page
    report = json.loads((place / "report.json").read_text(encoding="utf-8"))
    assert report["audit"]["verdict"] == "violation"
    agent = (pages / "test_own.py-test_agent" / "witness.py").read_text(encoding="utf-8")
    assert "json.loads(" in agent
    assert len(agent) < 1_000

    (pytester.path / "test_pasted.py").write_text(code + "\n\n" + agent.replace("witness()", "agents_witness()") + MORE)
    again = run(pytester, "test_pasted.py", "--privacy-report=pages")
    again.assert_outcomes(failed=2, passed=1)
    for name in ("counted", "agent"):
        bound = json.loads((pages / f"test_own.py-test_{name}" / "report.json").read_text())["audit"]["epsilon_lower"]
        assert f"ε ≥ {bound:.4g} at" in again.stdout.str()
    assert len(list((pytester.path / "pages").iterdir())) == 3  # asked for, those that find nothing have one too
