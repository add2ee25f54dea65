"""Many clients of a service in one process, for tests that let several processes race.

    PRIVCHECK_LEDGER_TOKEN=… python http_client.py URL PREFIX THREADS REQUESTS

charges to the grant G with so many threads, and prints how often it was committed and refused.
"""

import itertools
import os
import sys
import threading
from collections import Counter

from privcheck.ledger.client import Client

EVENT = {"type": "gaussian", "rho": "0.01"}


def main(url, prefix, threads, requests):
    client = Client(url, os.environ["PRIVCHECK_LEDGER_TOKEN"], seconds=60)
    keys, guard, told = itertools.count(), threading.Lock(), Counter()

    def work():
        while True:
            with guard:
                i = next(keys)
            if i >= requests:
                return
            state = client.charge(grant="G", unit="dataset", event=EVENT, key=f"{prefix}-{i}")["state"]
            with guard:
                told[state] += 1

    every = [threading.Thread(target=work) for _ in range(threads)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    print(told["committed"], told["refused"])  # noqa: T201 - its purpose


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
