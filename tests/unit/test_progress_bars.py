"""Progress bars: what a terminal is shown, and how right the estimate is for work at a known pace."""

import contextlib
import io
import re
import sys
import time
from types import SimpleNamespace

import pytest

from privcheck.cli import progress
from privcheck.cli.progress import ProgressBars

BAR = re.compile(
    r"(?P<name>[^\r:|]+): +\d+%\|.*?\| (?P<done>\d+)/(?P<total>\d+) \[[\d:]+(?:, about (?P<left>[\d:]+) left)?\]"
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Time that passes only when told; the ticking thread sleeps through it."""

    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def shown(monkeypatch):
    terminal, clock = Terminal(), Clock()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(progress.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(progress, "_TICK", 3600.0)
    return terminal, clock


def seconds(text):
    return sum(60**place * int(part) for place, part in enumerate(reversed(text.split(":"))))


@pytest.mark.parametrize("warming", [0, 5, 40])
@pytest.mark.parametrize("pace", [0.2, 1.0, 3.0])
def test_the_estimate_is_that_of_the_pace_after_the_first_report(shown, warming, pace):
    terminal, clock = shown
    with ProgressBars() as bars:
        report = bars("audit")
        clock.now += warming
        for done in range(1, 101):
            clock.now += pace
            report(done, 100)
    told = [(int(m["done"]), seconds(m["left"])) for m in BAR.finditer(terminal.getvalue()) if m["left"]]
    assert len(told) > 50
    for done, left in told:
        assert abs(left - (100 - done) * pace) <= 1  # whole seconds are shown


def test_nothing_is_shown_of_work_that_ends_within_a_second_and_nothing_without_a_terminal(shown, monkeypatch):
    terminal, clock = shown
    with ProgressBars() as bars:
        report = bars("quick")
        clock.now += 0.9
        report(1, 2)
    assert "quick" not in terminal.getvalue()
    plain = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=plain))
    with ProgressBars() as bars:
        report = bars("slow")
        clock.now += 100
        report(1, 2)
    assert plain.getvalue() == ""


def test_an_estimate_grows_while_nothing_is_reported(shown):
    terminal, clock = shown
    with ProgressBars() as bars:
        report = bars("part")
        report(0, 10)
        clock.now += 5
        report(5, 10)
        clock.now += 45
        bars._running.draw()
    lefts = [seconds(m["left"]) for m in BAR.finditer(terminal.getvalue()) if m["left"]]
    assert lefts[0] == 5
    assert lefts[-1] == 50


def test_a_bar_ticks_by_itself_before_the_first_report(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(progress, "_DELAY", 0.05)
    monkeypatch.setattr(progress, "_TICK", 0.02)
    with ProgressBars() as bars:
        bars("verify dp-apvi")
        ends = time.monotonic() + 30
        while "verify dp-apvi  00:00" not in terminal.getvalue():
            assert time.monotonic() < ends
            time.sleep(0.01)


def test_a_line_of_the_result_is_printed_whole_and_a_new_bar_replaces_the_one_before(shown, capsys):
    terminal, clock = shown
    with ProgressBars() as bars:
        report = bars("one")
        clock.now += 2
        report(1, 4)
        bars.print("a line")
        late = report
        report = bars("two")
        clock.now += 2
        report(1, 4)
    late(2, 4)  # after its bar is closed
    assert capsys.readouterr().out == "a line\n"
    assert [m["name"].strip() for m in BAR.finditer(terminal.getvalue())] == ["one", "two"]


def test_a_bar_that_ticks_while_an_agent_runs_is_not_taken_for_what_the_agent_prints(monkeypatch):
    """The lockstep audit compares what is printed on two neighbours: a bar in it would be a false accusation."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    captured = io.StringIO()
    with ProgressBars() as bars:
        report = bars("audit, lockstep")
        with contextlib.redirect_stderr(captured), contextlib.redirect_stdout(captured):
            ends = time.monotonic() + 30
            while terminal.getvalue().count("audit, lockstep") < 3:  # ticks from the thread, before any report
                assert time.monotonic() < ends
                time.sleep(0.01)
            report(1, 2)
            report(2, 2)
    assert captured.getvalue() == ""
