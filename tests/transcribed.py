"""Marks tests that compare the code with a transcription of printed lines."""

from __future__ import annotations

from collections.abc import Callable

Test = Callable[..., object]


def transcribes(folder: str, *numbers: str) -> Callable[[Test], Test]:
    """Marks a test as one with transcriptions of printed lines.

    Args:
        folder: The algorithms' folder below `privcheck_algorithms`.
        numbers: The lines' numbers, as in their table.
    """

    def mark(test: Test) -> Test:
        before = getattr(test, "transcribes", set())
        test.transcribes = before | {(folder, number) for number in numbers}  # type: ignore[attr-defined]
        return test

    return mark
