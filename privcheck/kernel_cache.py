"""Where compiled kernels are kept when nothing beside them may be written: containers without root, read-only folders.

Numba refuses to compile a function whose cache it cannot place: neither in `__pycache__` beside the source
nor in the user's cache folder. It is given a temporary folder instead, of this user alone: what is read back from there
is run, so a folder that somebody else could have filled is not used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import Final

VARIABLE: Final = "NUMBA_CACHE_DIR"


def place_cache(package: Path) -> Path | None:
    """Returns the temporary folder that Numba was given for its cache; None where it needs none.

    One line of warning is logged where a folder was needed. Without a handler of its own, logging writes it to standard
    error.

    Args:
        package: The folder of an installed package with kernels.
    """
    if os.environ.get(VARIABLE) or _can_write(package / "__pycache__") or _can_write(_user_cache()):
        return None
    try:
        folder = _own_folder()
    except OSError:  # no temporary folder either: Numba's own message says so
        return None
    os.environ[VARIABLE] = str(folder)
    if "numba" in sys.modules:  # it has read its environment
        sys.modules["numba"].config.CACHE_DIR = str(folder)
    import logging  # 7 ms that every `import privcheck` would pay

    logging.getLogger("privcheck").warning(
        "privcheck: %s cannot be written: compiled code is kept in %s; set %s to keep it elsewhere",
        package,
        folder,
        VARIABLE,
    )
    return folder


def _user_cache() -> Path:
    """Returns the folder that Numba falls back on, as it works it out."""
    if sys.platform == "darwin":
        return Path("~/Library/Caches/numba").expanduser()
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local, "numba", "Cache") if local else Path("~/numba").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba"


def _can_write(folder: Path) -> bool:
    """Returns whether files can be made in the folder, or the folder itself where it does not exist yet."""
    for place in (folder, *folder.parents):
        if place.is_dir():
            return os.access(place, os.W_OK | os.X_OK)
    return False


def _own_folder() -> Path:
    import tempfile  # 6 ms, likewise

    if os.name == "nt":
        return Path(tempfile.mkdtemp(prefix="privcheck-numba-"))
    folder = Path(tempfile.gettempdir()) / f"privcheck-numba-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if mine else Path(tempfile.mkdtemp(prefix="privcheck-numba-"))
