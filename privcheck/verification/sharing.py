"""The rule on noise identities: one draw that hides two different values gives their difference away, exactly."""

from __future__ import annotations

from collections.abc import Iterator

from privcheck.declaration import Release
from privcheck.verification.claim import Case
from privcheck.verification.findings import Finding


def shared_noise(case: Case) -> Iterator[Finding]:
    """Yields a finding for every release whose noise is not fresh, from the declared noise identities alone."""
    leaking = case.declaration.shared_draws
    for name in leaking:
        release = case.declaration.release(name)
        yield Finding(
            code="noise-shared",
            severity="critical",
            where=name,
            message=f"{_how(release)}: the difference is exact, and no amount of noise protects it",
            evidence={"draw": release.draw.name or "its own", "across": ", ".join(release.draw.across) or "releases"},
            witness=case.witness,
        )


def _how(release: Release) -> str:
    if "outputs" in release.draw.across:
        return f"one draw is added to every output ({release.schedule.words}), so that two outputs differ by exact data"
    if "cells" in release.draw.across:
        return "one draw is added to all cells of the table, so that two cells differ by exact data"
    return (
        f"the draw {release.draw.name!r} is added to other releases as well, so that two releases differ by exact data"
    )
