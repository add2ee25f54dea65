"""Files left by a command that ended early (interrupt, full disk), as found on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privcheck.commands.runs import BLOCKS
from privcheck.commands.sweeps import POINT, POINTS
from privcheck.errors import PrivcheckError
from privcheck.reports.policies import ARRAY_NAME
from privcheck.runtime.ledger import FILE_NAME as LEDGER
from privcheck.runtime.replicates import CHECKPOINT
from privcheck.support.files import PARTIAL, partial_path


@contextmanager
def telling_what_is_kept(out: Path | None, *, resumes: bool) -> Iterator[None]:
    """Try to write, then add a note about kept files to an interrupt or a disk error, and remove folders left empty.

    Args:
        out: The command's directory; None if it writes nothing.
        resumes: Whether the same command resumes from a directory.
    """
    new = [] if out is None else [path for path in (out, *out.parents) if not path.exists()]
    old = set() if out is None else _results(out)
    try:
        if out is not None:  # before minutes of work
            out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=out):
                pass
        yield
    except (KeyboardInterrupt, OSError, PrivcheckError) as error:
        if out is not None:
            _remove_empty(out, new)
        if not isinstance(error, PrivcheckError) or isinstance(error.__cause__, OSError):
            error.add_note(describe_kept(out, resumes=resumes, old=old))
        raise


def _results(out: Path) -> set[tuple[Path, int]]:
    """The ledgers and policies in a directory and its folders, with the time of their last change."""
    if not out.is_dir():
        return set()
    folders = (out, *sorted(path for path in out.iterdir() if path.is_dir()))
    files = (
        path for folder in folders for path in (folder / LEDGER, partial_path(folder / LEDGER), folder / ARRAY_NAME)
    )
    return {(path, path.stat().st_mtime_ns) for path in files if path.exists()}


def describe_kept(out: Path | None, *, resumes: bool, old: Collection[tuple[Path, int]] = ()) -> str:
    """The kept files of an unfinished command, as text, and whether it can resume from them.

    Args:
        out: The command's directory; None if it writes nothing.
        resumes: Whether the same command resumes from a directory.
        old: Ledgers and policies that were there before, with the time of their last change.
    """
    if out is None or not out.exists():
        advice = "; with --out, the same command would go on from where it stopped" if resumes and out is None else ""
        return f"nothing was kept{advice}"
    parts, further = [], False
    if points := sum(1 for point in (out / POINTS).glob(f"*/{POINT}") if point.parent.suffix != PARTIAL):
        parts.append(f"{points} finished {'point' if points == 1 else 'points'} of the sweep in {out / POINTS}")
        further = True
    of_figures = out.glob(f"*/*/{POINTS}/*/{POINT}")  # PAPER/FIGURE/points
    if runs := sum(1 for point in of_figures if point.parent.suffix != PARTIAL):
        parts.append(f"{runs} finished {'run' if runs == 1 else 'runs'} of figures in {out}")
        further = True
    if blocks := sum(1 for _ in (out / BLOCKS).glob("*/stream-*/*/*.npz")):
        parts.append(f"{blocks} finished {'block' if blocks == 1 else 'blocks'} of the audit in {out / BLOCKS}")
        further = True
    for folder in (out, *sorted(path for path in out.iterdir() if path.is_dir())):
        if (saved := folder / CHECKPOINT).exists():
            parts.append(f"the checkpoint {saved}")
            further = True
    parts += [
        f"the policy {path}" if path.name == ARRAY_NAME else f"{path}, the record of the spending"
        for path in sorted(path for path, _ in _results(out) - set(old))
    ]
    earlier = f"; {out} holds what an earlier command wrote" if old else ""
    if not parts:
        return f"nothing of this run was kept in {out}{earlier}"
    again = "; the same command goes on from there" if further and resumes else ""
    return f"kept: {'; '.join(parts)}{again}{earlier}"


def _remove_empty(out: Path, new: list[Path]) -> None:
    """Remove plans of audits without a finished block, and folders without a file."""
    for plan in (out / BLOCKS).glob("*/stream-*/plan.json"):
        if not any(plan.parent.glob("*/*.npz")):
            with suppress(OSError):
                plan.unlink()
    below = [Path(folder) for folder, _, _ in os.walk(out / BLOCKS, topdown=False)]
    for folder in (*below, *new):  # those that are not empty stay
        with suppress(OSError):
            folder.rmdir()
