"""Releases as events of the numeric accountant: the sensitivity of all outputs against the drawn noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privcheck.accounting.events import Event
from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.procedures import Procedure
from privcheck.declare.procedures.charges import release_branches
from privcheck.declare.relations import name_relation
from privcheck.declare.releases import is_additive
from privcheck.declare.schedules import Batches, EveryEpisode
from privcheck.declare.statistics import Sensitivity
from privcheck.errors import ParameterError


def declared_branches(
    declaration: Declaration, charged: Mapping[str, Sensitivity], values: Mapping[str, Fraction], *, factor: float = 1.0
) -> tuple[tuple[Event, ...], ...]:
    """Convert everything that holds the same user to events, for every group of a partition of the users.

    Each event names the declaration's relation.

    Args:
        declaration: The declaration with the releases and procedures.
        charged: `release.charged(relation)` by release name.
        values: The parameters.
        factor: Factor on the standard deviation of all noise.

    Raises:
        ParameterError: The releases are in batches of different sizes.
    """
    branches: list[tuple[Event, ...]] = []
    for group in declaration.groups:
        releases = [(release, charged[release.name]) for release in declaration.seen_by(group)]
        others = tuple(
            event
            for one in declaration.joined_for(group)
            if not is_additive(one)
            for event in _scaled(one, factor).events(declaration.relation, values)
        )
        noisy = release_branches(releases, values, factor=factor)
        branches += [(*branch, *others) for branch in noisy or (((),) if others else ())]
    relation = name_relation(declaration.relation)  # for which each sensitivity and each procedure's price was derived
    return tuple(tuple(replace(event, relation=relation) for event in branch) for branch in branches)


def _scaled(procedure: Procedure, factor: float) -> Procedure:
    return procedure if factor == 1 else procedure.with_std(Fraction(factor))


def settle_sizes(declaration: Declaration, values: Mapping[str, Fraction]) -> tuple[Declaration, ...]:
    """Replace n in the declaration by every size of a batch; empty where no additive noise depends on n.

    A user is in one batch, so the dearest of these costs is the declaration's. Where no user is in any batch, these
    releases have no outputs.

    Args:
        declaration: The declaration, with noise that may depend on n.
        values: The parameters that the sizes depend on.

    Raises:
        ParameterError: The releases are in batches of different sizes, or no other spread can be set.
    """
    depending = [release for release in declaration.noisy if _depends(release)]
    if not depending:
        return ()
    sizes = [tuple(sorted({int(at["n"]) for at in release.settings(values)})) for release in depending]
    if len(set(sizes)) > 1:
        names = ", ".join(release.name for release in depending)
        raise ParameterError(f"{names} have the same users in batches of different sizes", name="sizes")
    return tuple(
        declaration.with_noisy(tuple(_of_size(release, size) for release in declaration.noisy))
        for size in sizes[0] or (0,)
    )


def _depends(release: Release) -> bool:
    additive = not release.mechanism.law.shuffled  # users' own bits are those of every batch
    return additive and release.batch_sizes is not None and "n" in release.mechanism.spread.symbols


def _of_size(release: Release, size: int) -> Release:
    if not _depends(release):
        return release
    assert isinstance(release.schedule, Batches)
    schedule = Batches(size=release.schedule.fact) if size else EveryEpisode(outputs=0)
    spread = release.mechanism.spread.fill({"n": Fraction(max(size, 1))})
    if not hasattr(release.mechanism, "with_spread"):
        message = f"{release.name}: the spread of its noise depends on n, the size of a batch, and no other can be set"
        raise ParameterError(f"{message}: give {type(release.mechanism).__name__} the method `with_spread`", name="n")
    return replace(release, mechanism=release.mechanism.with_spread(spread), schedule=schedule)
