"""Rules on how often one user is in a release: what the paper's proof charges against what the schedule does."""

from __future__ import annotations

from collections.abc import Iterator

from privcheck.releases import Release
from privcheck.schedules import Tree
from privcheck.symbols import Expr, at_most
from privcheck.verification.claim import NEAR, Case
from privcheck.verification.findings import Finding, Severity


def check_tree_levels(case: Case) -> Iterator[Finding]:
    """Yields a finding for every binary tree whose nodes a user the proof does not count exactly."""
    for release in case.declaration.noisy:
        if isinstance(release.schedule, Tree) and release.schedule.counted is not None:
            yield from _compare(case, release, release.schedule.counted, ("tree-levels", "tree-levels-slack"))


def check_outputs(case: Case) -> Iterator[Finding]:
    """Yields a finding for every release that leaves more or less often than the proof charges it."""
    for release in case.declaration.noisy:
        if release.counted is None:
            continue
        never = release.counted.rational(case.values) == 0
        yield from _compare(
            case, release, release.counted, ("release-uncounted" if never else "release-repeated", "release-missing")
        )


def _compare(case: Case, release: Release, counted: Expr, codes: tuple[str, str]) -> Iterator[Finding]:
    times = release.schedule.times
    enough, loose = at_most(times, counted), at_most(counted, times)
    high, low = counted.number(case.values), times.number(case.values)
    enough = low <= high * (1 + NEAR) if enough is None else enough
    loose = high <= low * (1 + NEAR) if loose is None else loose
    if enough and loose:
        return
    severity: Severity = "negligible" if enough else case.unpaid
    figures = {"counted": str(counted), "outputs": str(times), "counted here": f"{high:g}", "outputs here": f"{low:g}"}
    words = f"one user is in up to {low:g} outputs ({release.schedule.words}: {times}), the proof charges {high:g}"
    yield Finding(
        code=codes[1] if enough else codes[0],
        severity=severity,
        where=release.name,
        message=f"{words} ({counted})" + ("" if enough else case.paid_words),
        evidence=figures,
    )
