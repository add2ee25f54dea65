"""Display of results and of progress: one line in a terminal, a small table in a notebook, a callback."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from itertools import accumulate

_LINE = 500  # characters of a whole result
_LONGEST = 60  # characters of a field
_MOST = 4  # items of a tuple, list or mapping that are shown one by one


class Brief:
    """A dataclass that shows long fields by their size: derive from it, and pass `repr=False` to `@dataclass`.

    Texts are cut, collections of many items counted, arrays shown by their shape, longer dataclasses by their name.
    Fields with `repr=False` are not shown, nor those that do not fit on a line of 500 characters.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        parts = [f"{name}={text}" for name, text in _describe(self)]
        room = _LINE - len(type(self).__name__) - len("(…)")
        ends = accumulate(len(part) + len(", ") for part in parts)
        shown = sum(end <= room for end in ends)
        return f"{type(self).__name__}({', '.join([*parts[:shown], *(['…'] if shown < len(parts) else [])])})"

    def _repr_html_(self) -> str:
        """The same fields as a table, for notebooks."""
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in _describe(self)
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def _describe(value: object) -> list[tuple[str, str]]:
    assert is_dataclass(value)
    return [(field.name, _short(getattr(value, field.name))) for field in fields(value) if field.repr]


def _short(value: object) -> str:
    """A field in about sixty characters at most."""
    if is_dataclass(value) or callable(value):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"<{type(value).__name__}>"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<array {' × '.join(map(str, shape))}>"
    if isinstance(value, (tuple, list, Mapping)) and len(value) > _MOST:
        return f"<{len(value)} items>"
    if isinstance(value, Mapping):
        return _cut("{" + ", ".join(f"{key!r}: {_short(item)}" for key, item in value.items()) + "}")
    if isinstance(value, (tuple, list)):
        return _cut("(" + ", ".join(map(_short, value)) + ")")
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


Progress = Callable[[int, int], None]  # (done, of how many)


def silent(done: int, total: int) -> None:
    """Report nothing: the default callback."""


def quiet(_: str) -> Progress:
    """A callback that reports nothing, for any part of the work: the default."""
    return silent
