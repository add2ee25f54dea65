"""A service of which every process is forked, for tests that kill it: what it imports is loaded once.

    python ledger_server.py URL

The first line on standard output is `ready`. For every line on standard input a process is forked that serves the
ledger: `pid N port P`, and `ended` once it has, however it did. The limits of rates are off, and nothing is calculated.
"""

import os
import socket
import sys

import psycopg  # noqa: F401 - before the fork, not after every one
import uvicorn

from privcheck.ledger.postgres import PostgresStore  # noqa: F401
from privcheck.service.app import LISTENS, Settings, create_app
from privcheck.service.calculator import Calculator


def serve(url):
    line = socket.socket()
    line.bind(("127.0.0.1", 0))
    line.listen(512)
    app = create_app(Settings(store=url, rate=1e6, burst=10**6))
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=5, **LISTENS)
    os.write(1, f"pid {os.getpid()} port {line.getsockname()[1]}\n".encode())
    uvicorn.Server(config).run(sockets=[line])


def main(url):
    Calculator.start = lambda *_: None
    os.write(1, b"ready\n")
    for _ in sys.stdin:
        if (process := os.fork()) == 0:
            try:
                serve(url)
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main(sys.argv[1])
