"""Shares of the false-alarm budget, rounds within a time budget, and what becomes of a session's record.

Units are fakes with a clock of their own; real processes are in `system/test_change_reviews.py`.
"""

import itertools
import math
import sys
import time
from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace
from typing import get_args

import pytest

from privcheck.commands import change_audits, change_targets
from privcheck.commands.change_audits import seed_of_round, share_of_run
from privcheck.commands.change_targets import AlgorithmView, MarkedFile, MarkedTest, confidence_of, session_confidence
from privcheck.commands.code_changes import CodeChange, ImportGraph
from privcheck.errors import ParameterError
from privcheck.reports.values import ReviewedTarget, ReviewVerdict


# [lemma shares-of-runs]
def test_shares_are_at_most_the_differences_of_logarithms_and_close_to_them():
    """Against 60 digits of decimal arithmetic."""
    with localcontext() as context:
        context.prec = 60

        def log2(number):
            return Decimal(number).ln() / Decimal(2).ln()

        for k in [*range(1, 200), 1_000, 10**6, 10**9, 10**15]:
            exact = Decimal("0.05") * (1 / log2(k + 1) - 1 / log2(k + 2))
            share = Decimal(share_of_run(0.05, k))
            assert exact * (1 - Decimal("1e-11")) < share < exact


# [lemma shares-of-runs]
def test_shares_of_many_runs_add_up_to_less_than_the_budget():
    shares = [Fraction(share_of_run(0.25, k)) for k in range(1, 30_000)]
    assert all(share > 0 for share in shares)
    assert shares == sorted(shares, reverse=True)
    assert Fraction(9, 10) < sum(shares) / Fraction(0.25) < 1 - 1 / Fraction(math.log2(30_001))


@pytest.mark.parametrize("alpha", [0.0, -0.1, 0.51, 1.0, math.nan, math.inf])
def test_a_budget_out_of_range_is_refused(alpha):
    with pytest.raises(ParameterError, match=r"--alpha expects a number in \(0, 0\.5\]"):
        share_of_run(alpha, 1)


@pytest.mark.parametrize("number", [0, -1])
def test_a_run_number_out_of_range_is_refused(number):
    with pytest.raises(ParameterError, match="--run-number expects a whole number from 1"):
        share_of_run(0.05, number)


def test_seeds_are_those_of_commit_run_and_round_alone():
    words = list(itertools.product(["a" * 40, "b" * 40], range(1, 20), range(1, 5)))
    seeds = [seed_of_round(*word) for word in words]
    assert seeds == [seed_of_round(*word) for word in words]
    assert len(set(seeds)) == len(words)  # fixed, so that this is no matter of chance
    assert all(0 <= seed < 2**32 for seed in seeds)


ALPHAS = [*(10.0**-power for power in range(1, 14)), 0.05 / 3, 2.0**-46, 0.123456789, 1 / 3]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_confidence_spends_no_more_than_its_share(alpha):
    confidence = confidence_of(alpha)
    assert 1 - Fraction(confidence) <= Fraction(alpha)
    assert 1 - Fraction(math.nextafter(confidence, 0)) > Fraction(alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_session_gives_each_of_its_audits_no_more_than_its_share(alpha):
    """With the plugin's own arithmetic."""
    for audits in [n for n in (*range(1, 300), 1_000, 99_999) if n * alpha < 0.5]:
        whole = 1 - session_confidence(alpha, audits)  # as `_of_marked` computes it
        each = 1 - (1 - whole / audits)
        assert Fraction(each) <= Fraction(alpha)
        assert each > 0.98 * alpha


def test_the_plugin_still_computes_it_like_that():
    source = (change_targets.Path(sys.modules["privcheck"].__file__).parent / "testing/plugin.py").read_text()
    assert 'alpha = 1 - item.config.getoption("--privacy-confidence")' in source
    assert "confidence=1 - alpha / item.config.stash[_NUMBER]," in source


class Clock:
    """Time that passes only when a fake unit runs."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


class Fake:
    """A unit that needs some seconds and then has a verdict; it can be ended early."""

    def __init__(self, clock, name, *, needs, verdict="consistent", audits=1, slower=1.0, log=None):
        self.clock, self.name, self.needs, self.verdict, self.audits = clock, name, needs, verdict, audits
        self.slower, self.log = slower, [] if log is None else log

    def run(self, level, seconds):
        needed = self.needs * level.factor * self.slower
        ended = needed <= seconds
        self.clock.now += min(needed, seconds)
        self.log.append((self.name, level, ended))
        row = ReviewedTarget(
            kind="test", name=self.name, file="t.py", line=1, through=("t.py",), verdict=self.verdict,
            confidence=1 - level.alpha, trials=level.factor,
        )  # fmt: skip
        return ((row,), True) if ended else ((), False)

    def rest(self, found):
        return self

    def again(self, found):
        return None if any(one.verdict == "violation" for one in found) else self


def rounds(monkeypatch, units, *, seconds, share=0.01, clock, most=None):
    results = change_audits._Results()
    made = change_audits._make_rounds(
        units, results, change_audits._Clock(began=clock.now, seconds=seconds), share=share, commit="c" * 40,
        run_number=1, most=most, progress=lambda _: lambda _done, _total: None,
    )  # fmt: skip
    return made, results.rows


def test_every_unit_is_audited_once_before_any_is_audited_again(monkeypatch):
    clock, log = Clock(monkeypatch), []
    units = [Fake(clock, name, needs=1.0, log=log) for name in "abc"]
    made, rows = rounds(monkeypatch, units, seconds=70, clock=clock)
    assert [(name, level.factor, ended) for name, level, ended in log] == [
        (name, factor, True) for factor in (1, 4, 16) for name in "abc"
    ]
    assert [one.number for one in made] == [1, 2, 3]
    assert {one.trials for one in rows.values()} == {16}


def test_a_round_is_begun_only_if_it_should_end(monkeypatch):
    clock = Clock(monkeypatch)
    made, _ = rounds(monkeypatch, [Fake(clock, "a", needs=1.0)], seconds=4.9, clock=clock)
    assert len(made) == 1
    assert clock.now == 101.0


def test_there_are_at_most_as_many_rounds_as_asked_for(monkeypatch):
    clock = Clock(monkeypatch)
    for most in (1, 2):
        assert len(rounds(monkeypatch, [Fake(clock, "a", needs=1.0)], seconds=70, clock=clock, most=most)[0]) == most


def test_rounds_and_audits_spend_no_more_than_the_share_of_the_run(monkeypatch):
    clock, log = Clock(monkeypatch), []
    units = [Fake(clock, name, needs=0.001, audits=audits, log=log) for name, audits in (("a", 1), ("b", 3), ("c", 0))]
    made, _ = rounds(monkeypatch, units, seconds=3, share=0.01, clock=clock)
    assert len(made) >= 4
    spent = sum(Fraction(level.alpha) * {"a": 1, "b": 3, "c": 0}[name] for name, level, _ in log)
    assert Fraction(9, 1000) < spent <= Fraction(0.01)
    assert sum(one.alpha for one in made) < 0.01
    assert {one.audits for one in made} == {4}
    assert len({one.seed for one in made}) == len(made)


def test_a_violation_is_kept_and_not_audited_again(monkeypatch):
    clock, log = Clock(monkeypatch), []
    units = [Fake(clock, "bad", needs=1.0, verdict="violation", log=log), Fake(clock, "good", needs=1.0, log=log)]
    made, rows = rounds(monkeypatch, units, seconds=30, clock=clock)
    assert [name for name, _, _ in log] == ["bad", "good", "good", "good"]
    assert [one.audits for one in made] == [2, 1, 1]
    assert {one.name: one.verdict for one in rows.values()} == {"bad": "violation", "good": "consistent"}


def test_a_slow_unit_does_not_take_the_time_of_the_others(monkeypatch):
    clock, log = Clock(monkeypatch), []
    units = [Fake(clock, "slow", needs=1_000.0, log=log), *(Fake(clock, name, needs=2.0, log=log) for name in "ab")]
    made, rows = rounds(monkeypatch, units, seconds=30, clock=clock)
    assert [(name, ended) for name, _, ended in log] == [("slow", False), ("a", True), ("b", True), ("slow", False)]
    assert sorted(one.name for one in rows.values()) == ["a", "b"]
    assert len(made) == 1
    assert clock.now == 130.0


def test_what_needs_more_than_its_part_gets_the_time_that_is_left(monkeypatch):
    clock, log = Clock(monkeypatch), []
    units = [Fake(clock, "slow", needs=15.0, log=log), *(Fake(clock, name, needs=1.0, log=log) for name in "ab")]
    _, rows = rounds(monkeypatch, units, seconds=30, clock=clock)
    assert [(name, ended) for name, _, ended in log] == [("slow", False), ("a", True), ("b", True), ("slow", True)]
    assert len(rows) == 3
    assert len({level for _, level, _ in log}) == 1  # the same audits, not further ones


class Halves(Fake):
    """A unit of two tests, the first of which has its result when the process is ended."""

    def __init__(self, clock, log, names=("one", "two")):
        super().__init__(clock, "halves", needs=10.0 * len(names), audits=len(names), log=log)
        self.names = names

    def run(self, level, seconds):
        _, ended = super().run(level, seconds)
        row = ReviewedTarget(kind="test", name="", file="t.py", line=1, through=("t.py",), verdict="consistent")
        self.log[-1] = (self.names, *self.log[-1][1:])
        return tuple(change_targets.replace(row, name=name) for name in self.names[: None if ended else 1]), ended

    def rest(self, found):
        known = {one.name for one in found}
        return Halves(self.clock, self.log, tuple(name for name in self.names if name not in known))


def test_only_what_has_no_result_is_run_in_the_time_that_is_left(monkeypatch):
    clock, log = Clock(monkeypatch), []
    units = [Halves(clock, log), Fake(clock, "quick", needs=1.0, log=log)]
    made, rows = rounds(monkeypatch, units, seconds=30, clock=clock, most=1)
    assert [(name, ended) for name, _, ended in log] == [(("one", "two"), False), ("quick", True), (("two",), True)]
    assert sorted(one.name for one in rows.values()) == ["one", "quick", "two"]
    assert made[0].audits == 3


def test_a_share_too_small_for_floats_is_refused_at_once_and_ends_later_rounds(monkeypatch):
    clock = Clock(monkeypatch)
    with pytest.raises(ParameterError, match="give a larger --alpha"):
        rounds(monkeypatch, [Fake(clock, "a", needs=1.0)], seconds=30, share=2.0**-46, clock=clock)
    made, _ = rounds(monkeypatch, [Fake(clock, "a", needs=1e-9)], seconds=30, share=2.0**-40, clock=clock)
    assert len(made) == 6


CHANGE = CodeChange(
    root=change_targets.Path("/tree"), base="main", merge_base="b" * 40, commit="c" * 40, files=("a.py",),
    uncommitted=(), sources=("t.py",),
)  # fmt: skip
GRAPH = ImportGraph(imports={"t.py": frozenset()}, modules={}, unfollowed=(), assertions={})
TESTS = tuple(
    MarkedTest(test=f"t.py::test_{name}", path="/tree/t.py", file="/tree/t.py", line=at, audits=1)
    for at, name in enumerate(("one", "two", "three"), 1)
)
FILE = MarkedFile(tests=TESTS, through=("t.py", "a.py"), change=CHANGE, graph=GRAPH, directory=change_targets.Path())


def audit_line(test, verdict, **more):
    return {
        "kind": "audit", "test": test, "verdict": verdict, "file": "/tree/t.py", "line": 7, "claim": "(1)-DP",
        "claimed": "ε ≤ 1", "upper": "", "lower": "ε ≥ 0.5", "trials": 10, "confidence": 0.99, "seed": 3,
        "method": "coins", "neighbours": "", "code": "", "notes": [], **more,
    }  # fmt: skip


def outcome_line(test, outcome, why=""):
    return {"kind": "outcome", "test": test, "outcome": outcome, "why": why}


@pytest.fixture
def session(monkeypatch):
    """Returns a function that runs the unit with a fake process: its record, its exit code."""

    def run(lines, code=0, unit=FILE):
        monkeypatch.setattr(change_targets, "_read_record", lambda _: lines)
        ended = change_targets._Ended(code=code, out="", said="the last words\n", seconds=1.5)
        monkeypatch.setattr(change_targets, "_run", lambda *_: ended)
        level = change_targets.Level(alpha=0.001, seed=5, factor=1)
        rows, whole = unit.run(level, 10.0)
        assert whole == (code is not None)
        return rows

    return run


@pytest.mark.parametrize(
    ("audits", "outcome", "verdicts"),
    [
        (["consistent"], "passed", ["consistent"]),
        (["violation"], "failed", ["violation"]),
        (["fails"], "failed", ["fails"]),
        (["consistent", "violation"], "failed", ["consistent", "violation"]),
        (["violation"], "passed", ["expected violation"]),  # pytest.raises
        (["violation"], "skipped", ["expected violation"]),  # xfail
        (["consistent"], "failed", ["undecided"]),
        (["undecided"], "failed", ["undecided"]),
        ([], "passed", ["not audited"]),
        ([], "failed", ["not audited"]),
        ([], "skipped", ["not audited"]),
    ],
)
def test_a_tests_verdict_is_that_of_its_audits_and_its_outcome(session, audits, outcome, verdicts):
    test = TESTS[0].test
    rows = session([*(audit_line(test, one) for one in audits), outcome_line(test, outcome, "why")], code=None)
    assert [one.verdict for one in rows] == verdicts
    assert all(bool(one.reason) == (one.verdict in {"undecided", "not audited"}) for one in rows)
    assert [one.view for one in rows] == (["audit 1 of 2", "audit 2 of 2"] if len(audits) == 2 else [""])


def test_tests_that_a_session_did_not_come_to_say_so_or_are_left_for_the_next(session):
    lines = [audit_line(TESTS[0].test, "consistent"), outcome_line(TESTS[0].test, "passed")]
    ended = session(lines, code=3)
    assert [one.verdict for one in ended] == ["consistent", "not audited", "not audited"]
    assert "pytest ended with 3 before this test: the last words" in ended[1].reason
    cut = session(lines, code=None)
    assert [one.name for one in cut] == [TESTS[0].test]
    rest = FILE.rest(cut)
    assert rest.tests == TESTS[1:]
    assert rest.audits == 2


def test_only_tests_without_a_violation_or_a_problem_are_audited_again(session):
    ends = [("consistent", "passed"), ("violation", "failed"), ("violation", "passed")]
    lines = []
    for one, (verdict, outcome) in zip(TESTS, ends, strict=True):
        lines += [audit_line(one.test, verdict), outcome_line(one.test, outcome)]
    assert FILE.again(session(lines)).tests == (TESTS[0], TESTS[2])
    assert FILE.again(session([], code=3)) is None


def test_a_module_loaded_from_elsewhere_is_not_taken_for_that_of_the_work_tree(session, tmp_path):
    write = {"here": "x = 1\n", "same": "x = 1\n", "other": "x = 2\n"}
    for name, text in write.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "mod.py").write_text(text)
    change = change_targets.replace(CHANGE, root=tmp_path / "here", files=("mod.py",))
    graph = ImportGraph(
        imports={"t.py": frozenset({"mod.py"}), "mod.py": frozenset()}, modules={"mod": frozenset({"mod.py"})},
        unfollowed=(), assertions={},
    )  # fmt: skip
    unit = change_targets.replace(FILE, change=change, graph=graph, tests=TESTS[:1])
    test = TESTS[0].test
    for place, verdict in (("here", "consistent"), ("same", "consistent"), ("other", "not audited")):
        loaded = {"kind": "modules", "files": {"mod": str(tmp_path / place / "mod.py")}}
        (row,) = session([audit_line(test, "consistent"), outcome_line(test, "passed"), loaded], unit=unit)
        assert row.verdict == verdict
        assert ("mod was loaded from" in row.reason) == (place == "other")


def test_a_process_is_ended_with_its_children_when_its_time_is_over(tmp_path):
    beat = tmp_path / "beat"
    child = (
        f"import time, pathlib\nwhile True: pathlib.Path({str(beat)!r}).write_text(str(time.time())); time.sleep(.02)"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    for seconds in (1, 4, 16, 64):  # on a busy machine a process begins late
        ended = change_targets._run([sys.executable, "-c", code], tmp_path, seconds)
        assert ended.code is None
        assert ended.seconds >= seconds
        if beat.exists():
            break
    last = beat.read_text()
    time.sleep(0.3)
    assert beat.read_text() == last


def test_a_process_that_ends_has_its_code_and_its_words(tmp_path):
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    ended = change_targets._run([sys.executable, "-c", code], tmp_path, 60)
    assert (ended.code, ended.out, ended.said) == (3, "out\n", "err\n")


VIEW = AlgorithmView(
    row=ReviewedTarget(
        kind="algorithm", name="mine", view="releases", file="a.py", line=3, through=("a.py",), verdict="not audited",
        reason="the time was over",
    ),
    trials=100,
    directory=change_targets.Path(),
)  # fmt: skip
TOLD = {
    "verdict": "consistent", "claim": "(1)-DP", "epsilon_lower": 0.123456, "epsilon_claimed": 1.00001, "delta": 1e-5,
    "trials": 400, "confidence": 0.999, "seed": 5, "method": "coins", "witness": "a pair", "evidence": {},
    "agent_ran": True, "audited_at": None,
}  # fmt: skip


def algorithm_row(monkeypatch, told, code=0, view=VIEW):
    out = told if isinstance(told, str) else change_targets.json.dumps(told)
    ended = change_targets._Ended(code=code, out=out, said="words\n", seconds=1.0)
    commands = []
    monkeypatch.setattr(change_targets, "_run", lambda command, *_: commands.append(command) or ended)
    rows, whole = view.run(change_targets.Level(alpha=2.0**-10, seed=5, factor=4), 10.0)
    assert whole == (code is not None)
    return commands[0], (rows[0] if rows else None)


def test_an_audit_of_an_algorithm_is_the_command_that_repeats_it(monkeypatch):
    command, row = algorithm_row(monkeypatch, TOLD)
    words = "privcheck audit mine --view releases --yes --trials 400 --seed 5 --confidence 0.9990234375"
    assert (row.command, command[1:]) == (words, ["-P", "-m", *words.split(), "--json"])
    assert (row.verdict, row.lower, row.claimed) == ("consistent", "ε ≥ 0.1234 at δ = 1e-05", "ε ≤ 1.0001 at δ = 1e-05")
    assert (row.trials, row.confidence, row.seed, row.neighbours) == (400, 0.999, 5, "")


@pytest.mark.parametrize(
    ("told", "code", "verdict", "reason"),
    [
        ({**TOLD, "verdict": "violation"}, 1, "violation", ""),
        ({**TOLD, "evidence": {"doubt": "outputs do not repeat"}}, 0, "undecided", "outputs do not repeat"),
        ({**TOLD, "verdict": "undecided", "audited_at": "K = 4"}, 3, "undecided", "audited at K = 4"),
        ({"error": "parameter", "message": "no such thing"}, 2, "not audited", "no such thing"),
        ("no JSON", 1, "not audited", "words"),
        ("", 70, "not audited", "words"),
        ({**TOLD, "verdict": "violation"}, 70, "not audited", "words"),
    ],
)
def test_results_of_an_algorithm(monkeypatch, told, code, verdict, reason):
    _, row = algorithm_row(monkeypatch, told, code)
    assert row.verdict == verdict
    assert reason in row.reason
    assert bool(row.reason) == bool(reason)
    again = VIEW.again([row])
    assert (again is None) == (verdict in {"violation", "not audited"})


def test_a_view_that_compares_exactly_spends_nothing_and_a_proof_is_not_repeated(monkeypatch):
    lockstep = change_targets.replace(VIEW, row=change_targets.replace(VIEW.row, view="lockstep"))
    command, row = algorithm_row(monkeypatch, TOLD, view=lockstep)
    assert "--confidence" not in command
    assert (lockstep.audits, row.confidence, VIEW.audits) == (0, None, 1)
    verify = change_targets.replace(VIEW, row=change_targets.replace(VIEW.row, view="verify"))
    told = {
        "verdict": "fails",
        "claim": "(1)-DP",
        "sentence": "It loses more.",
        "findings": [],
        "witness": {"words": "two users"},
    }
    _, row = algorithm_row(monkeypatch, told, 1, view=verify)
    assert (row.verdict, row.neighbours, row.method) == ("fails", "two users", "It loses more.")
    assert verify.again([change_targets.replace(row, verdict="holds")]) is None


def test_an_algorithm_whose_time_is_over_has_no_row(monkeypatch):
    assert algorithm_row(monkeypatch, TOLD, None)[1] is None


def test_calls_without_a_marked_test_are_told_once(tmp_path):
    call = change_targets.AssertionCall(file="t.py", first=8, last=9, inside=(5, 12))
    graph = ImportGraph(imports={"t.py": frozenset()}, modules={}, unfollowed=(), assertions={"t.py": (call,)})
    change = change_targets.replace(CHANGE, files=("t.py",))

    def told(*tests, rows=(), wrong=()):
        found = change_targets.FoundTests(calls=(call,), tests=tests, rows=wrong)
        return [one.reason for one in change_targets.find_silent_calls(change, graph, found, rows)]

    unmarked = MarkedTest(test="t.py::a", path="/tree/t.py", file="/tree/t.py", line=5, audits=0)
    assert told() == ["no collected test makes this call"]
    assert "not marked `privacy`" in told(unmarked)[0]
    assert told(change_targets.replace(unmarked, audits=1)) == []  # has a row of its own
    assert told(change_targets.replace(unmarked, line=40)) == ["no collected test makes this call"]
    row = ReviewedTarget(kind="test", name="t.py::a", file="t.py", line=9, through=("t.py",), verdict="consistent")
    assert told(rows=[row]) == []
    assert told(wrong=(change_targets.replace(row, verdict="not audited"),)) == []


def test_rows_keep_a_violation_and_the_last_audit_of_everything_else():
    results = change_audits._Results()
    row = ReviewedTarget(kind="test", name="a", file="t.py", line=1, through=("t.py",), verdict="not audited")
    replace = change_targets.replace
    results.add([row, replace(row, name="b")])
    results.add(
        [
            replace(row, view="audit 1 of 2", verdict="consistent"),
            replace(row, view="audit 2 of 2", verdict="violation"),
        ]
    )
    results.add([replace(row, view="audit 1 of 2", verdict="consistent", trials=9)])
    results.add([replace(row, view="audit 2 of 2", verdict="consistent", trials=9)])
    results.add([replace(row, view="audit 1 of 2", reason="memory"), replace(row, name="b", reason="memory")])
    assert results.rows["test", "b", ""].reason == "memory"
    assert [(one.name, one.view, one.verdict, one.trials) for one in results.rows.values()] == [
        ("b", "", "not audited", 0), ("a", "audit 1 of 2", "consistent", 9), ("a", "audit 2 of 2", "violation", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        ([], "nothing touched"),
        (["nothing to audit"], "nothing touched"),
        (["consistent", "holds", "nothing to audit", "expected violation"], "consistent"),
        (["consistent", "not audited"], "undecided"),
        (["consistent", "undecided"], "undecided"),
        (["not audited", "violation"], "violation"),
        (["undecided", "fails"], "violation"),
    ],
)
def test_the_verdict_of_all(verdicts, together):
    assert change_audits._decide([SimpleNamespace(verdict=one) for one in verdicts]) == together


def test_every_verdict_has_its_place_in_the_order():
    assert sorted(change_audits._ORDER) == sorted(get_args(ReviewVerdict))
