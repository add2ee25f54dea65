"""The service, served from a thread at a port of its own, and a client for it."""

import threading
import time
from contextlib import contextmanager

import httpx
import uvicorn

from privcheck.service.app import LISTENS


@contextmanager
def served(app):
    """Yields a client of the application."""
    limits = {"lifespan": "on", "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, **limits, **LISTENS))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def wait_for(ask, seconds=60):
    """Returns what is answered once it is there."""
    end = time.monotonic() + seconds
    while (answer := ask()).status_code in (202, 503) and time.monotonic() < end:
        time.sleep(0.05)
    return answer


def refuse(answer, status, *fields):
    """Returns the problem that an answer has to be."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (told["status"], told["type"]) == (status, "about:blank")
    assert told["detail"]
    assert told["title"]
    if fields:
        assert [error["field"] for error in told["errors"]] == list(fields)
    return told
