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
    """Returns what a file or a folder is called until it is whole."""
    return path.with_name(path.name + PARTIAL)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yields a file to write to, which takes its name when all is written and on the disk.

    Whatever goes wrong, the file that was there before is still there, and nothing is left of the new one.
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
    """Writes a text, in UTF-8.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def write_together(directory: Path, texts: Mapping[str, str]) -> None:
    """Writes several files by name, all or none.

    Raises:
        PrivcheckError: They cannot be written; what was there before is still there.
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
    """Waits until a file, or the names in a folder, are on the disk.

    Raises:
        OSError: They are not.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
