"""Codebooks: the public list of states and of actions, in the order of their codes.

Which states occur is private, so a codebook is given or confirmed, never made silently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from privcheck.errors import FileFormatError, ParameterError
from privcheck.whole_files import write_whole

FILE_NAME: Final = "codebook.json"
_KINDS: Final = ("states", "actions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebook:
    """What states and actions are called; their code is the place in the list, from 0.

    Attributes:
        states: Their labels.
        actions: Their labels.
        inferred: Whether it was made from the data.
        data: The file that it was used for; empty where it was not yet.

    Raises:
        ParameterError: A list is empty, holds something else than texts, or a label twice.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    inferred: bool = False
    data: str = ""

    def __post_init__(self) -> None:
        for name in _KINDS:
            labels = getattr(self, name)
            if not labels or not all(isinstance(label, str) and label for label in labels):
                raise ParameterError(f"{name}: expected a list of texts, one at least", name=name, given=labels)
            twice = sorted({label for label in labels if labels.count(label) > 1}) if len(labels) < 5000 else []
            if len(set(labels)) != len(labels):
                raise ParameterError(f"{name}: a label stands twice: {', '.join(twice[:5])}", name=name, given=labels)

    def save(self, path: Path) -> None:
        """Writes the codebook.

        Raises:
            OSError: It cannot be written.
        """
        text = {"states": self.states, "actions": self.actions, "inferred": self.inferred, "data": self.data}
        write_whole(path, json.dumps(text, ensure_ascii=False, indent=1) + "\n")


def read_codebook(path: Path) -> Codebook:
    """Returns the codebook in a JSON file: `{"states": [...], "actions": [...]}`.

    Raises:
        FileFormatError: It is missing or holds something else.
    """
    try:
        given = json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: cannot be read as a codebook: {error}") from None
    wanted = '{"states": ["…", …], "actions": ["…", …]}'
    if not isinstance(given, dict) or not all(isinstance(given.get(name), list) for name in _KINDS):
        raise FileFormatError(f"{path}: expected a codebook, {wanted}")
    try:
        return Codebook(
            states=_texts(given["states"]),
            actions=_texts(given["actions"]),
            inferred=given.get("inferred") is True,
            data=str(given.get("data", "")),
        )
    except ParameterError as error:
        raise FileFormatError(f"{path}: {error}") from None


def _texts(labels: Sequence[Any]) -> tuple[str, ...]:
    # numbers are as good as texts here; true, null and lists are not
    return tuple(str(x) if isinstance(x, int | float) and not isinstance(x, bool) else x for x in labels)


def read_labels(data: Path) -> Codebook | None:
    """Returns the codebook beside a prepared file; None where there is none, or it belongs to another file."""
    path = data.parent / FILE_NAME
    if not path.is_file():
        return None
    codebook = read_codebook(path)
    return codebook if codebook.data == data.name else None


def draft_codebook(states: Iterable[str], actions: Iterable[str]) -> Codebook:
    """Returns a codebook of the labels that occur in data, in the order of their names."""
    return Codebook(states=tuple(sorted(states)), actions=tuple(sorted(actions)), inferred=True)
