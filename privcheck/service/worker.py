"""Worker process of the service: one task after the other, as JSON through a pipe, until it is killed."""

from __future__ import annotations

import json
import resource
import signal
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Final

_MEMORY: Final = 6 * 2**30  # of address space: a declaration with S = 10^9 must not take the machine with it


def serve(pipe: Connection, tasks: str) -> None:
    """Answer tasks from a pipe until it is closed; the first message says that the process is ready.

    Args:
        pipe: Sends tasks as JSON, [name, body], and receives their answers as JSON.
        tasks: The module with the function `answer(name, body)`; it is imported here, once memory is bounded.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is asked to end is the server, which ends its workers
    _limit_memory()
    answer = import_module(tasks).answer
    pipe.send_bytes(b"ready")
    while True:
        try:
            task, body = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        pipe.send_bytes(json.dumps(answer(task, body)).encode())


def _limit_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > _MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, most))
