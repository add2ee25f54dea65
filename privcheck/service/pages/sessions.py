"""Who is logged in: random names of sessions, each with the digest of its token, in memory alone."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

SECONDS: Final = 12 * 3600  # of a session
_MOST: Final = 1000
_MOST_OF_ONE: Final = 10  # of one token, so that nobody drives out the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who has logged in.

    Attributes:
        digest: SHA-256 of the token, which is looked up in the store on every request.
        csrf: What every form has to send back.
        began: On the clock of `Sessions`.
    """

    digest: str
    csrf: str
    began: float


@dataclass(slots=True, kw_only=True)
class Sessions:
    """All sessions; the oldest ones end when there are too many, and all of them when the service does.

    Attributes:
        clock: Seconds that only rise.
    """

    clock: Callable[[], float] = time.monotonic
    _open: OrderedDict[str, Session] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, digest: str) -> str:
        """Returns the name of a new session, 256 random bits.

        Args:
            digest: Of the token with which somebody logs in.
        """
        name = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_old()
            own = [one for one, session in self._open.items() if session.digest == digest]
            for old in own[: max(0, len(own) - _MOST_OF_ONE + 1)]:
                del self._open[old]
            while len(self._open) >= _MOST:
                self._open.popitem(last=False)
            self._open[name] = Session(digest=digest, csrf=secrets.token_urlsafe(32), began=self.clock())
        return name

    def find(self, name: str) -> Session | None:
        """Returns a session; None where there is none of the name, or it is over."""
        with self._lock:
            self._drop_old()
            return self._open.get(name)

    def close(self, name: str) -> None:
        """Ends a session."""
        with self._lock:
            self._open.pop(name, None)

    def _drop_old(self) -> None:
        """Ends sessions that are over: they stand in the order in which they began."""
        while self._open:
            name, session = next(iter(self._open.items()))
            if self.clock() - session.began < SECONDS:
                return
            del self._open[name]
