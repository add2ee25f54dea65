"""Files that are written whole or not at all: under `<name>.partial` first, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from privcheck.errors import PrivcheckError

PARTIAL: Final = ".partial"  # the end of a name until what it names is whole


def partial_path(path: Path) -> Path:
    """Name of a file or folder until it is complete."""
    return path.with_name(path.name + PARTIAL)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name when everything is written and on the disk.

    On any error the previous file is kept, and the partial new one is removed.
    """
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            yield file
            _sync(file)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):  # where a disk is full, its part would keep it so
            partial.unlink()
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text, in UTF-8.

    Raises:
        OSError: It cannot be written; the previous file is kept.
    """
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def write_together(directory: Path, texts: Mapping[str, str]) -> None:
    """Write several files by name, all or none.

    Raises:
        PrivcheckError: They cannot be written; the previous files are kept.
    """
    created = not directory.exists()
    partial = {name: partial_path(directory / name) for name in texts}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with partial[name].open("wb") as file:
                file.write(text.encode("utf-8"))
                _sync(file)
        _rename_together(directory, partial)
    except BaseException as error:
        for path in partial.values():
            with suppress(OSError):
                path.unlink()
        if created:
            with suppress(OSError):
                directory.rmdir()
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise PrivcheckError(f"cannot write the report to {directory}: {reason}; nothing was changed") from error
        raise


def _rename_together(directory: Path, partial: Mapping[str, Path]) -> None:
    # each rename is atomic, two of them are not: where a later one fails the earlier ones are undone
    before = {name: path.read_bytes() if (path := directory / name).exists() else None for name in partial}
    renamed: list[str] = []
    try:
        for name, path in partial.items():
            path.replace(directory / name)
            renamed.append(name)
    except BaseException:
        for name in renamed:
            old = before[name]
            if old is None:
                (directory / name).unlink()
            else:
                partial[name].write_bytes(old)
                partial[name].replace(directory / name)
        raise


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def write_through(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk.

    Raises:
        OSError: They could not be written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
