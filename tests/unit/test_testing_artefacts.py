"""Report pages of audits in tests: every unit, stopped or not, whatever the data are. Seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest

from privcheck import ZCDP, GaussianDP, PureDP, audit_mechanism
from privcheck.reports import load_report
from privcheck.testing.failure_report import save_page, show_records


def told(given, runs, rng):
    return np.full(runs, np.sum(given)) + rng.normal(0, 0.1, runs)


@pytest.mark.parametrize("claim", [PureDP(1), ZCDP("1/8"), GaussianDP(0)], ids=str)
@pytest.mark.parametrize("stop", [False, True])
def test_a_page_says_verdict_pair_and_code_and_shows_what_was_seen(claim, stop, tmp_path):
    pair = (np.zeros(3), np.array([0.0, 1.0, 0.0]))
    found = audit_mechanism(told, claim, neighbours=[pair], trials=150, stop=stop)
    page = save_page(found, tmp_path, mechanism="told", test="test_x.py::test_told", code="assert 1 < 2", started="now")
    text = page.read_text(encoding="utf-8")
    assert '<h2 id="verdict">Violation</h2>' in text
    assert "assert 1 &lt; 2" in text
    assert "test_x.py::test_told" in text
    assert "accountant" not in text
    assert ("of at most 300 runs" in text) == stop
    assert ("<svg" in text) == (found.trade_off is not None or found.claimed > 0)
    assert (found.trade_off is None) == (found.ended == "stopped")
    audited = load_report(tmp_path).audit
    assert audited.pair.labels[0] == "1"  # the record that differs comes first
    assert (audited.epsilon_lower is None) == (found.unit != "epsilon")


def test_records_are_shown_side_by_side():
    shown = show_records([1, 2], [1])
    assert shown.first == (("2",), ("1",))
    assert shown.second == (("absent",), ("1",))
    assert show_records([], [1]) is None
    for one, other in (({"a": 1}, {"a": 2}), (0, 1), (np.array(0), np.array(1)), ("ab", "cd")):
        assert show_records(one, other).labels == ("0",)
    many = show_records(np.zeros(100), np.ones(100))
    assert len(many.labels) == 60
    assert "40 further" in many.note
