"""Kernels that Numba compiles on their first call, and the folder of the compiled code.

A package's declarations are used far more often than its agents are run: a list, a budget or a verdict needs neither
Numba's start-up time nor Numba, which is most of an installation (the extra `agents`).

Numba refuses to compile a function if it can place its cache neither in `__pycache__` beside the source nor in the
user's cache folder (containers without root, read-only folders). It is given a temporary folder of this user alone
instead: code read back from there is run, so a folder that another user could have filled is not used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import Any, Final, Generic, ParamSpec, TypeVar

from privcheck.errors import PrivcheckError

P = ParamSpec("P")
R = TypeVar("R")
_ONE_AT_A_TIME: Final = threading.Lock()


class _Kernel(Generic[P, R]):
    """A function, and its Numba dispatcher after the first call."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self._options = options
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        dispatcher = self._dispatcher
        result: R = (self._dispatch() if dispatcher is None else dispatcher)(*args, **kwargs)
        return result

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # type: ignore[attr-defined]  # by name, as functions are

    @property
    def _numba_type_(self) -> Any:
        # what Numba asks of a value that it does not know: so kernels call each other when they are compiled
        return self._dispatch()._numba_type_

    def _dispatch(self) -> Any:
        with _ONE_AT_A_TIME:
            if self._dispatcher is None:
                try:
                    import numba
                except ModuleNotFoundError as error:
                    message = "agents and audits need Numba, which is missing: pip install 'privcheck[agents]'"
                    raise PrivcheckError(message) from error
                self._dispatcher = numba.njit(**self._options)(self.__wrapped__)  # type: ignore[attr-defined]
        return self._dispatcher


def njit(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator: `numba.njit` with these options, at the first call.

    Kernels call each other as they do under Numba's own decorator.

    Args:
        options: Options of `numba.njit`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return _Kernel(function, options)

    return decorate


VARIABLE: Final = "NUMBA_CACHE_DIR"


def place_cache(package: Path) -> Path | None:
    """Give Numba a temporary cache folder if it needs one; returns the folder, or None.

    One line of warning is logged if a folder was needed. Without a handler of its own, logging writes it to standard
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
    """The folder that Numba falls back on, by Numba's own rule."""
    if sys.platform == "darwin":
        return Path("~/Library/Caches/numba").expanduser()
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local, "numba", "Cache") if local else Path("~/numba").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba"


def _can_write(folder: Path) -> bool:
    """Whether files can be made in the folder, or the folder itself if it does not exist yet."""
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
