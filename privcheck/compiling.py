"""Kernels that Numba compiles when they are first called, not when their module is read.

What a package declares is asked far more often than its agents are run: a list, a budget or a verdict needs neither
Numba's start-up time nor Numba, which is most of an installation (the extra `agents`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final, Generic, ParamSpec, TypeVar

from privcheck.errors import PrivcheckError

P = ParamSpec("P")
R = TypeVar("R")
_ONE_AT_A_TIME: Final = threading.Lock()


class _Kernel(Generic[P, R]):
    """A function, and what Numba made of it once somebody called it."""

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
    """Returns a decorator: `numba.njit` with these options, at the first call.

    Kernels call each other as they do under Numba's own decorator.

    Args:
        options: Of `numba.njit`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return _Kernel(function, options)

    return decorate
