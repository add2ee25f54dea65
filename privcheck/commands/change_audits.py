"""`ci`: audits of what a change touches, within a time budget and the repository's false-alarm budget.

Every target is audited once before any is audited again: round r makes four times the trials of round r − 1, with new
seeds and half of its α.
"""

from __future__ import annotations

import hashlib
import math
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

from privcheck.commands.change_targets import Level, Unit, find_algorithms, find_silent_calls, find_tests
from privcheck.commands.code_changes import read_change, read_imports
from privcheck.errors import ParameterError
from privcheck.reports.values import ChangeReview, ReviewBudget, ReviewedTarget, ReviewRound
from privcheck.support.display import Progress
from privcheck.support.plugins import list_entries

GROWTH: Final = 4  # of trials and, about, of time from round to round
_LEAST: Final = 2.0**-46  # α of an audit: below, its confidence in floats would be far from 1 − α
_GROUPS: Final = ("algorithms", "environments", "environment_families", "figures", "views", "auditors")
_ORDER: Final = (
    "violation", "fails", "undecided", "not audited", "expected violation", "consistent", "holds", "nothing to audit",
)  # fmt: skip
RELIES_ON: Final = (
    "the word of whoever numbers the runs (no number is given to two commits, or to two jobs), and on audited code "
    "that draws all its randomness from what it is given: the same run made again then repeats its audits and spends "
    "nothing more. Where an audit notes that outputs do not repeat, it spends its share again"
)


def share_of_run(alpha: float, run_number: int) -> float:
    """False-alarm probability of one run, of all that a repository's runs may have together; rounded down.

    Lemma shares-of-runs: With w(k) = 1/log₂(k + 1) − 1/log₂(k + 2), the shares A·w(k) of any set of distinct runs k ≥ 1
    add up to less than A, so that correct code is accused in any of them with probability below A. Proof: w(k) > 0, and
    w(1) + … + w(n) = 1 − 1/log₂(n + 2) < 1 because neighbouring terms cancel; the rest is the union bound, which needs
    no independence of the runs, and allows that they are stopped at any time.

    A share falls like 1/(k·ln² k), more slowly than 6/(π²k²): the 1000th run has 1.4 · 10⁻⁵ of A, and not 6 · 10⁻⁷.

    Args:
        alpha: A, in (0, ½].
        run_number: k, from 1.

    Raises:
        ParameterError: A number is out of range.

    >>> round(share_of_run(0.05, 1), 4)
    0.0185
    """
    if not 0 < alpha <= 0.5:
        raise ParameterError(f"--alpha expects a number in (0, 0.5], got {alpha}", name="alpha", given=alpha)
    if run_number < 1:
        message = f"--run-number expects a whole number from 1, got {run_number}"
        raise ParameterError(message, name="run-number", given=run_number)
    k = float(run_number)
    # the difference of logarithms without cancellation; five rounded operations are wrong by far less than 2⁻⁴⁰
    weight = math.log1p(1 / (k + 1)) / math.log(k + 1) * math.log(2) / math.log(k + 2)
    return alpha * weight * (1 - 2.0**-40)


def seed_of_round(commit: str, run_number: int, number: int) -> int:
    """Seed of a round, from 0 to 2³² − 1: the same for the same run of the same commit, as good as new for others."""
    word = f"privcheck ci, commit {commit}, run {run_number}, round {number}"
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest())


@dataclass(slots=True, kw_only=True)
class _Results:
    """Rows by kind, name and view: the last audit of each, but a violation once it was found."""

    rows: dict[tuple[str, str, str], ReviewedTarget] = field(default_factory=dict)

    def add(self, found: Iterable[ReviewedTarget]) -> None:
        for one in found:
            key = (one.kind, one.name, one.view)
            if one.view:  # the row of the test without results, before it was known how many audits it makes
                self.rows.pop((one.kind, one.name, ""), None)
            known = self.rows.get(key)
            # a violation stays, and so does an audit whose repetition was not made
            kept = {"violation", "fails"} if one.verdict != "not audited" else set(_ORDER) - {"not audited"}
            if known is None or known.verdict not in kept:
                self.rows[key] = one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clock:
    """The time budget."""

    began: float
    seconds: float

    @property
    def left(self) -> float:
        return self.began + self.seconds - time.monotonic()


def review_change(
    base: str, *, directory: Path, minutes: float, rounds: int | None, alpha: float, run_number: int,
    progress: Callable[[str], Progress],
) -> ChangeReview:  # fmt: skip
    """Audit the algorithms and tests that a change touches.

    Args:
        base: A commit of the base: a branch, tag or hash.
        directory: A folder of the work tree, in which pytest is run.
        minutes: Time for everything together.
        rounds: Most rounds; None for as many as there is time for.
        alpha: A, the probability that correct code is accused in any run of the repository, ever.
        run_number: The run's number, never used before for another commit.
        progress: Makes a progress callback for a named part of the work.

    Raises:
        ParameterError: A number is out of range, the directory is in no work tree, or the base is no commit.
        PrivcheckError: git is not installed.
    """
    if not 0 < minutes <= 100_000:
        raise ParameterError(f"--minutes expects a positive number, got {minutes}", name="minutes", given=minutes)
    clock = _Clock(began=time.monotonic(), seconds=60 * minutes)
    share = share_of_run(alpha, run_number)
    change = read_change(base, directory)
    report = progress("find targets")
    report(0, 1)
    registered: dict[str, set[str]] = defaultdict(set)
    for point in (point for group in _GROUPS for point in list_entries(group).values()):
        registered[point.name].add(point.module)
    graph = read_imports(change, registered)
    results, units, known = _Results(), list[Unit](), set(graph.assertions)
    untouched = 0
    for file, parts in find_algorithms(change, graph, directory, clock.began + clock.seconds / 2):
        known.add(file)
        untouched += not parts
        for one in parts:
            if isinstance(one, ReviewedTarget):
                results.add([one])
            else:
                units.append(one)
                results.add([one.row])
    tests, calls = find_tests(change, graph, directory, clock.left)
    units += tests.units
    results.add(tests.rows)
    results.add(row for one in tests.units for row in one.rows())
    made = _make_rounds(
        units, results, clock, share=share, commit=change.commit, run_number=run_number, most=rounds, progress=progress
    )
    results.add([*find_silent_calls(change, graph, tests, results.rows.values())])
    reached = {path for one in known for path in graph.reached(one)}
    rows = sorted(results.rows.values(), key=lambda one: (_ORDER.index(one.verdict), one.kind, one.name, one.view))
    return ChangeReview(
        verdict=_decide(rows),
        base=change.base,
        merge_base=change.merge_base,
        commit=change.commit,
        uncommitted=change.uncommitted,
        changed=change.files,
        beside=tuple(path for path in change.files if path not in reached),
        unfollowed=tuple(place for place in graph.unfollowed if place.rpartition(":")[0] in reached),
        targets=tuple(rows),
        untouched=untouched + calls,
        budget=ReviewBudget(alpha=alpha, run_number=run_number, share=share, relies_on=RELIES_ON),
        rounds=tuple(made),
        minutes=minutes,
        seconds=time.monotonic() - clock.began,
        versions={"python": platform.python_version(), "privcheck": version("privcheck")},
    )


def _decide(rows: Sequence[ReviewedTarget]) -> Literal["violation", "undecided", "consistent", "nothing touched"]:
    verdicts = {one.verdict for one in rows}
    if verdicts & {"violation", "fails"}:
        return "violation"
    if verdicts & {"undecided", "not audited"}:
        return "undecided"
    return "consistent" if verdicts - {"nothing to audit"} else "nothing touched"


def _make_rounds(
    units: Sequence[Unit], results: _Results, clock: _Clock, *, share: float, commit: str, run_number: int,
    most: int | None, progress: Callable[[str], Progress],
) -> list[ReviewRound]:  # fmt: skip
    """Make rounds while there is time; a further one only if it should come to its end."""
    rounds: list[ReviewRound] = []
    last = 0.0
    while units and GROWTH * last < clock.left and (most is None or len(rounds) < most):
        number = len(rounds) + 1
        audits = sum(unit.audits for unit in units)
        alpha = share / 2**number
        each = alpha / max(audits, 1)
        if each < _LEAST:
            if number == 1:
                message = (
                    f"run {run_number} has α = {share:.3g} for {audits} audits, too little to be told from 0 in floats"
                )
                raise ParameterError(f"{message}: give a larger --alpha", name="alpha")
            break
        seed = seed_of_round(commit, run_number, number)
        rounds.append(ReviewRound(number=number, alpha=alpha, audits=audits, seed=seed))
        began = time.monotonic()
        level = Level(alpha=each, seed=seed, factor=GROWTH ** (number - 1))
        found = _make_round(units, level, results, clock, progress(f"round {number}"))
        last = time.monotonic() - began
        if found is None:
            break
        units = [new for unit, rows in zip(units, found, strict=True) if (new := unit.again(rows)) is not None]
    return rounds


def _make_round(
    units: Sequence[Unit], level: Level, results: _Results, clock: _Clock, report: Progress
) -> list[tuple[ReviewedTarget, ...]] | None:
    """Run every unit; None if the time was over before all came to their ends.

    Each gets its part of the time that is left, so that a slow one does not take it from all others; what one that was
    ended early has left is run in the time that the others did not need. No result is seen twice.
    """
    found: dict[int, tuple[ReviewedTarget, ...]] = {}
    parts: dict[int, tuple[ReviewedTarget, ...]] = {}
    for _ in range(2):
        waiting = [at for at in range(len(units)) if at not in found]
        for place, at in enumerate(waiting):
            report(len(found), len(units))
            if clock.left <= 0:
                return None
            unit = units[at].rest(parts.get(at, ()))
            rows, ended = unit.run(level, clock.left / (len(waiting) - place))
            results.add(rows)
            parts[at] = (*parts.get(at, ()), *rows)
            if ended:
                found[at] = parts[at]
    report(len(found), len(units))
    return [found[at] for at in range(len(units))] if len(found) == len(units) else None
