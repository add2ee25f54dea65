"""How the service listens: HTTP/1.1 alone, connections that ask in time, and what is no HTTP answered as a problem."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 10.0  # from a connection, or the first byte of a request, to the end of its headers
_MOST_CONNECTIONS: Final = 800  # below the 1024 files that a process may have open


class PatientProtocol(H11Protocol):
    """A connection that is closed where a request's headers take too long: uvicorn would wait for ever."""

    _hurry: asyncio.TimerHandle | None = None
    head_seconds = HEAD_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a connection, and waits for its first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Takes bytes; the clock runs while they are no whole headers yet."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._hurry is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Lets go of a connection."""
        self._stop()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP."""
        told = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": msg}
        body = json.dumps(told).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait(self) -> None:
        self._hurry = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None

    def _give_up(self) -> None:
        self._hurry = None
        if not self.transport.is_closing():
            self.transport.close()


# what uvicorn is told, wherever the service is served
LISTENS: Final[dict[str, Any]] = {
    "http": PatientProtocol,
    "ws": "none",
    "server_header": False,
    "timeout_keep_alive": 15,
    "h11_max_incomplete_event_size": 16 * 1024,
    "limit_concurrency": _MOST_CONNECTIONS,
}
