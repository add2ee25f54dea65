"""Heads that a service pushes to a second place while it runs, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from privcheck.errors import PrivcheckError
from privcheck.ledger import Actor, Book
from privcheck.ledger.witnesses import Witness, push_heads

_SERVICE: Final = Actor(name="service", role="reader")
_CLOSING: Final = 5.0  # seconds for a push that is under way
_LOG: Final = logging.getLogger("privcheck.service")


@dataclass(slots=True, kw_only=True)
class Pusher:
    """Pushes the heads of a ledger now and then; a push that fails stops no charge, and is tried again.

    Attributes:
        book: The ledger.
        witness: Where its heads are kept.
        seconds: From the end of one push to the next.
        pushed: When the last one succeeded that found all it had to compare, in UTC; None: never yet.
        failure: Why the last one did not; empty where it did.
    """

    book: Book
    witness: Witness
    seconds: float
    pushed: str | None = None
    failure: str = ""
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._work, name="privcheck-ledger-heads", daemon=True)
        self._thread.start()

    def push(self) -> None:
        """Push once; what is wrong is logged and kept."""
        try:
            done = push_heads(partial(self.book.prove, _SERVICE), self.witness)
            self.failure = "; ".join(done.problems)
        except (PrivcheckError, OSError) as error:
            self.failure = str(error)
        if self.failure:
            _LOG.error("the ledger's heads were not pushed: %s", self.failure)
        else:
            self.pushed = self.book.now()

    def close(self) -> None:
        """End, once a push that is under way has; not for longer than a few seconds."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(_CLOSING)

    def _work(self) -> None:
        self.push()
        while not self._end.wait(self.seconds):
            self.push()
