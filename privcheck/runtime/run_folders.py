"""Locations of the files of a run.

A run with simulated noise protects no user and keeps all of its files side by side. A run with release noise is
divided: at the top of its folder are the files that may be published (the policy if it was compared on neighbours, and
the ledger of its releases, which are functions of the releases and of public facts), under `private/` all others:
durations and command lines, exact figures of simulated worlds, receipts, a policy that was not compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from privcheck.errors import ParameterError
from privcheck.support.files import write_whole

PRIVATE: Final = "private"
LABEL: Final = "README.txt"
_LABEL_TEXT: Final = """PRIVATE: nothing in this folder may be published.

No guarantee covers these files. They hold durations of work on exact data, command lines, receipts and figures that
are for whoever holds the data. Of this run only the files beside this folder may be published. `privcheck publish`
makes of them a folder to hand on.
"""
# what a run with simulated noise, or an audit, leaves at the top of its folder
_UNDIVIDED: Final = (
    "report.json", "report.html", "certificate.json", "run.json", "run.html", "audit.json", "receipt.json",
    "checkpoint.npz", "blocks",
)  # fmt: skip


def folder_for(directory: Path, *, released: bool) -> Path:
    """Return the folder for the unpublished files of a run; private/ is made with its label.

    Args:
        directory: The run's folder.
        released: Whether it uses release noise.

    Raises:
        OSError: The folder cannot be written.
    """
    if not released:
        return directory
    private = directory / PRIVATE
    private.mkdir(parents=True, exist_ok=True)
    if not (private / LABEL).exists():
        write_whole(private / LABEL, _LABEL_TEXT)
    return private


def find_file(directory: Path, name: str) -> Path:
    """Return the path of a run's file: under private/ if it is there, else at the top, whether or not it exists.

    Args:
        directory: The run's folder, or its private/.
        name: The file's name.
    """
    private = directory / PRIVATE / name
    return private if private.exists() else directory / name


def run_folder(directory: Path) -> Path:
    """Return the run's own folder, also from its private/."""
    return directory.parent if directory.name == PRIVATE and (directory / LABEL).exists() else directory


def working_folder(directory: Path) -> Path:
    """Return the folder for further work on a run (an audit): private/ if the run has one, else its folder."""
    return directory / PRIVATE if (directory / PRIVATE / LABEL).exists() else directory


def refuse_mixed(directory: Path | None, *, released: bool) -> None:
    """Refuse to put the files of a release and those of other work into one folder.

    Raises:
        ParameterError: The folder has a release's private/ and the noise is simulated, or the other way round.
    """
    if directory is None:
        return
    if not released and working_folder(directory) != directory:
        message = (
            f"{directory} holds a run with release noise, whose files would be replaced by unprotected ones: choose "
            "another --out"
        )
        raise ParameterError(message, name="out", given=str(directory))
    if released and (found := [name for name in _UNDIVIDED if (directory / name).exists()]):
        message = (
            f"{directory} holds {', '.join(found)} of other work, and of a run with release noise only what may be "
            "published lies beside private/: choose another --out"
        )
        raise ParameterError(message, name="out", given=str(directory))
