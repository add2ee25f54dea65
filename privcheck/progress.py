"""How work in progress is reported: a callback that its caller gives, and one that reports nothing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]  # (done, of how many)


def silent(done: int, total: int) -> None:
    """Report nothing: the default callback."""
