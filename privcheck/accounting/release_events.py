"""Releases as events of the numeric accountant: the sensitivity of all outputs against the noise that is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privcheck.accounting.events import Event
from privcheck.declaration import Declaration
from privcheck.procedures import Procedure
from privcheck.procedures.additive import release_branches
from privcheck.releases import is_additive
from privcheck.statistics import Sensitivity
from privcheck.unit import name_relation


def declared_branches(
    declaration: Declaration, charged: Mapping[str, Sensitivity], values: Mapping[str, Fraction], *, factor: float = 1.0
) -> tuple[tuple[Event, ...], ...]:
    """Returns everything that holds the same user as events, for every group of a partition of the users.

    Each is named as the declaration's relation.

    Args:
        declaration: Whose releases and procedures.
        charged: `release.charged(relation)` by the release's name.
        values: The parameters.
        factor: By which the standard deviation of all noise is multiplied.

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
