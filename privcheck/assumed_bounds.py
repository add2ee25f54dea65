"""Bounds that the paper's own setting breaks: what is attained is charged and audited, not what is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privcheck.errors import DeclarationError
from privcheck.releases import Assumption, Release
from privcheck.statistics import Column, FeatureSums, GramMatrices
from privcheck.symbols import Expr, at_most, maximum

_COLUMNS = ("vector", "target", "weight")


def attained_releases(releases: Sequence[Release], assumptions: Sequence[Assumption]) -> tuple[Release, ...]:
    """Returns the releases with every column at the bound that is attained, where that is more than was declared.

    An assumption that is kept for all parameters, that nothing bounds, or that bounds no column changes nothing.

    Args:
        releases: As declared.
        assumptions: Of which `bounds` names a column.

    Raises:
        DeclarationError: `bounds` names no column of any release.
    """
    known = sorted({c.name for r in releases for c in _columns(r.statistic).values()})
    widened = list(releases)
    for assumption in assumptions:
        if not assumption.bounds:
            continue
        if assumption.bounds not in known:
            message = (
                f"the assumption on {assumption.what} bounds the column {assumption.bounds!r}, which no release has"
            )
            raise DeclarationError(f"{message}; expected one of {', '.join(known) or '(none)'}")
        if assumption.attained is None or at_most(assumption.attained, assumption.assumed) is True:
            continue
        widened = [_widen(release, assumption.bounds, assumption.attained) for release in widened]
    return tuple(widened)


def _columns(statistic: Any) -> dict[str, Column]:
    if not isinstance(statistic, GramMatrices | FeatureSums):
        return {}
    columns = {field: getattr(statistic, field, None) for field in _COLUMNS}
    return {field: column for field, column in columns.items() if column is not None}


def _widen(release: Release, name: str, attained: Expr) -> Release:
    """Returns the release with the column's bound raised to what is attained, or as it is where that is no more."""
    short: dict[str, Any] = {
        field: Column(name, _larger(column.bound, attained), column.latex)
        for field, column in _columns(release.statistic).items()
        if column.name == name and at_most(attained, column.bound) is not True
    }
    if not short:
        return release
    assert isinstance(release.statistic, GramMatrices | FeatureSums)
    return replace(release, statistic=replace(release.statistic, **short))


def _larger(bound: Expr, attained: Expr) -> Expr:
    return attained if at_most(bound, attained) is True else maximum(bound, attained)
