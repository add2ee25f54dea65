"""Processes that charge to a ledger with many threads, for tests that let several of them race or kill them.

    python ledger_client.py URL THREADS REQUESTS

The first line on standard output is `ready`. Every line on standard input is the prefix of the keys of one process,
which is forked then: `pid N`, a line for every answer once it is known (`committed KEY` or `refused KEY`), and `ended`
once the process has, however it did.
"""

import itertools
import os
import sys
import threading

import psycopg  # noqa: F401

from privcheck.ledger import Actor, Book, Writer, open_store
from privcheck.ledger.postgres import PostgresStore  # noqa: F401 - before the fork, not after every one

EVENT = {"type": "gaussian", "rho": "0.01"}
OFFICER = Actor(name="officer", role="officer")


def charge(url, prefix, threads, requests):
    writer = Writer(Book(open_store(url)), timeout=60)
    keys, guard = itertools.count(), threading.Lock()

    def work():
        while True:
            with guard:
                i = next(keys)
            if i >= requests:
                return
            decision = writer.charge(OFFICER, grant="G", unit="dataset", event=EVENT, key=f"{prefix}-{i}")
            os.write(1, f"{decision.state} {prefix}-{i}\n".encode())  # at once, or not at all

    every = [threading.Thread(target=work) for _ in range(threads)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    writer.close()


def main(url, threads, requests):
    os.write(1, b"ready\n")
    for line in sys.stdin:
        if (process := os.fork()) == 0:
            try:
                os.write(1, f"pid {os.getpid()}\n".encode())
                charge(url, line.strip(), threads, requests)
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
