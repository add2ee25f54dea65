"""Where a check of the chains ended, kept by who has checked: the next one goes on from there.

A checkpoint is its reader's own file, apart from the store: it has the head of every chain with what the rows up to it
come to, so that nothing before it has to be read again, or believed. That these rows are still as they were is not
asked again; what is asked is that the head itself is there, unchanged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from privcheck.errors import ParameterError
from privcheck.ledger.exact import canonical, digest

_FORM: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a check of the chains has come to.

    Attributes:
        store: The number of the store.
        chains: By dataset: the place and hash of the head, and what the rows up to it come to.
    """

    store: str
    chains: Mapping[str, Mapping[str, Any]]


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Returns the checkpoint in a file, None where there is none yet.

    Raises:
        ParameterError: There is something else, or it was cut short or changed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: cannot be read: {error}", name="checkpoint", given=str(path)) from None
    try:
        data = json.loads(text)
        told = data.pop("digest")
        fits = data["form"] == _FORM and digest(canonical(data)) == told
        found = Checkpoint(store=data["store"], chains=data["chains"]) if fits else None
    except (ValueError, KeyError, TypeError, AttributeError):
        found = None
    if found is None:
        message = f"{path}: no checkpoint of this version, or one that was changed; expected one that verify wrote, or"
        raise ParameterError(f"{message} no file, where all is read from the start", name="checkpoint", given=str(path))
    return found


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint in place of an earlier one, whole or not at all.

    Raises:
        ParameterError: It cannot be written.
    """
    data = {"form": _FORM, "store": checkpoint.store, "chains": checkpoint.chains}
    text = canonical({**data, "digest": digest(canonical(data))})
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        message = f"{path}: the checkpoint cannot be written: {error.strerror}"
        raise ParameterError(message, name="checkpoint", given=str(path)) from None
