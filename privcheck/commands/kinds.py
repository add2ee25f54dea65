"""Kinds of values that options and arguments take: counts, places, and registered names, which shells complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import click

from privcheck.entry_points import list_entries
from privcheck.errors import ParameterError

_MOST: Final = 10**18  # a count that no computation comes to, and that 64 bits hold

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


class Count(click.ParamType[int]):
    """A whole number: 1000000, 1_000_000 or 1e6."""

    name = "count"

    def __init__(self, *, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the number; refuses what is not whole or out of range."""
        from privcheck.symbols.exactness import exact

        try:
            count = exact(value)
        except ParameterError:
            count = None
        if count is None or count.denominator != 1 or not self._least <= count <= _MOST:
            self.fail(f"expected a whole number from {self._least} to 1e18, as 1000 or 1e6, got {value!r}", param, ctx)
        return int(count)


class Place(click.Path):
    """A path, which is no empty text: that would be the directory one happens to be in."""

    def __init__(self, **how: Any) -> None:
        super().__init__(path_type=Path, **how)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the path."""
        if not str(value).strip():
            self.fail("expected a path, got an empty text", param, ctx)
        return super().convert(value, param, ctx)


def _complete(known: Callable[[], Sequence[str]]) -> Complete:
    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in known() if name.startswith(incomplete)]

    return complete


def _environments() -> list[str]:
    return [*list_entries("environments"), *(f"{family}:" for family in list_entries("environment_families"))]


def _methods() -> Sequence[str]:
    from privcheck.results import AuditMethod

    return get_args(AuditMethod)


complete_algorithms: Final = _complete(lambda: sorted(list_entries("algorithms")))
complete_environments: Final = _complete(_environments)
complete_methods: Final = _complete(_methods)
complete_views: Final = _complete(lambda: sorted(list_entries("views")))

name_argument: Final = click.argument("name", shell_complete=complete_algorithms)
