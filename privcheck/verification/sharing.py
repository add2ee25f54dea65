"""The rule on noise identities: one draw that hides two different values gives their difference away, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privcheck.declaration import Declaration
from privcheck.releases import Release
from privcheck.verification.claim import Case
from privcheck.verification.findings import Finding


def shared_noise(case: Case) -> Iterator[Finding]:
    """Yields a finding for every release whose noise is not fresh, from the declared noise identities alone."""
    leaking = case.declaration.shared_draws
    for name in leaking:
        release = case.declaration.release(name)
        exposed = f"{_how(release)}: the difference is exact, and no amount of noise protects it"
        copies = written_alike(case.declaration, release)
        yield Finding(
            code="noise-shared",
            severity="critical",
            where=name,
            message=f"{_same(copies)}; if they are not, {exposed}" if copies else exposed,
            evidence={"draw": release.draw.name or "its own", "across": ", ".join(release.draw.across) or "releases"},
            witness=case.witness,
        )


def written_alike(declaration: Declaration, release: Release) -> tuple[str, ...]:
    """The releases that share a draw with this one, itself included, if all are declared in the same words.

    Empty where one differs, in its statistic, its noise, its schedule or its users, or where the draw is shared over
    cells or outputs too. The same words are no proof of the same table: two clipped sums may be of two functions.
    """
    if not release.draw.name or release.draw.across:
        return ()
    sharing = [one for one in declaration.noisy if one.draw.name == release.draw.name]
    words = [(one.statistic, one.mechanism, one.schedule, one.users, one.draw) for one in sharing]
    return tuple(one.name for one in sharing) if all(one == words[0] for one in words) else ()


def declare_once(copies: Sequence[str]) -> str:
    """The remedy for releases of one table that share one draw."""
    return (
        f"if {' and '.join(map(repr, copies))} are one table, it is one release: declare it once, what is done with an "
        "output costs nothing more"
    )


def _same(copies: Sequence[str]) -> str:
    theorem = "that two statistics are equal on all data is not derived from their declarations"
    return f"{declare_once(copies)} ({theorem})"


def _how(release: Release) -> str:
    if "outputs" in release.draw.across:
        return f"one draw is added to every output ({release.schedule.words}), so that two outputs differ by exact data"
    if "cells" in release.draw.across:
        return "one draw is added to all cells of the table, so that two cells differ by exact data"
    return (
        f"the draw {release.draw.name!r} is added to other releases as well, so that two releases differ by exact data"
    )
