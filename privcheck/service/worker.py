"""The process in which the service calculates: one task after the other, as JSON through a pipe, until it is killed."""

from __future__ import annotations

import json
import resource
import signal
import traceback
from multiprocessing.connection import Connection
from typing import Any, Final

_MEMORY: Final = 6 * 2**30  # of address space: a declaration with S = 10^9 must not take the machine with it


def serve(pipe: Connection) -> None:
    """Answers tasks from a pipe until it is closed; the first thing it says is that it is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is asked to end is the server, which ends its workers
    _limit_memory()
    from privcheck.service.calculations import TASKS

    pipe.send_bytes(b"ready")
    while True:
        try:
            task, body = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        pipe.send_bytes(json.dumps(_answer(TASKS[task], body)).encode())


def _answer(function: Any, body: Any) -> dict[str, Any]:
    from privcheck.commands.failures import explain
    from privcheck.errors import PrivcheckError

    try:
        return {"result": function(body)}
    except (PrivcheckError, MemoryError) as error:
        failure = explain(error)
        name = str(getattr(error, "name", ""))
        return {"refused": {"message": failure.message, "hint": failure.hint, "name": name, "kind": failure.error}}
    except Exception:  # noqa: BLE001 - whatever ends a task does not end the process
        return {"crashed": traceback.format_exc()}


def _limit_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > _MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, most))
