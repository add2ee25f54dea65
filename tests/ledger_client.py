"""A process that charges to a ledger with many threads, for tests that let several of them race or kill them.

    python ledger_client.py URL PREFIX THREADS REQUESTS

Every answer is one line on standard output, written once it is known: `committed KEY` or `refused KEY`. The first line
is `ready`; charging begins with the first line on standard input.
"""

import os
import sys
import threading

from privcheck.ledger import Actor, Book, open_store
from privcheck.ledger.writer import Writer

EVENT = {"type": "gaussian", "rho": "0.01"}
OFFICER = Actor(name="officer", role="officer")


def main(url, prefix, threads, requests):
    writer = Writer(Book(open_store(url)), timeout=60)
    keys, guard = iter(range(requests)), threading.Lock()

    def work():
        while True:
            with guard:
                if (i := next(keys, None)) is None:
                    return
            decision = writer.charge(OFFICER, grant="G", event=EVENT, key=f"{prefix}-{i}")
            os.write(1, f"{decision.state} {prefix}-{i}\n".encode())  # at once, or not at all

    os.write(1, b"ready\n")
    sys.stdin.readline()
    every = [threading.Thread(target=work) for _ in range(threads)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
