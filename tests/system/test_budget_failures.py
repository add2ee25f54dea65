"""The budget ledger under kill −9 and under many writers at once, over its files as processes see them."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import budget_stores
from privcheck.ledger import Actor, Book, Receipt, create_store, open_store

OFFICER = Actor(name="otto", role="officer")

CHARGE_FOREVER = """
import json, sys
from privcheck.ledger import Actor, Book, open_store
book, me = Book(open_store(sys.argv[1])), Actor(name="otto", role="officer")
for i in range(10**6):
    event, key = {"type": "gaussian", "rho": "0.000001"}, f"{sys.argv[2]}-{i}"
    decision = book.charge(me, grant="G", unit="dataset", event=event, key=key)
    print(json.dumps(decision.receipt.to_dict()), flush=True)
"""

CHARGE_AT_ONCE = """
import sys, threading
from privcheck.errors import StoreError
from privcheck.ledger import Actor, Book, open_store
book, me, done, lock = Book(open_store(sys.argv[1])), Actor(name="otto", role="officer"), [], threading.Lock()
def work(thread):
    for i in range(int(sys.argv[4])):
        while True:
            key = f"{sys.argv[2]}-{thread}-{i}"
            try:
                event = {"type": "gaussian", "rho": "0.002"}
                state = book.charge(me, grant="G", unit="dataset", event=event, key=key).state
            except StoreError as error:
                assert not error.read_only, error
                continue
            break
        with lock:
            done.append(state)
threads = [threading.Thread(target=work, args=(n,)) for n in range(int(sys.argv[3]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(done.count("committed"), done.count("refused"))
"""


@pytest.fixture
def path(tmp_path):
    store = create_store(str(tmp_path / "budget.db"))
    book, _ = Book.init(store)
    budget_stores.grant(book, OFFICER, name="G", dataset="trips", currency="rho", cap="1", delta="1e-6")
    store.close()
    return str(tmp_path / "budget.db")


def start(program, *arguments):
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def kill_rounds(path, rounds, seconds):
    """Kills a charging process in the middle of its work, many times; what it acknowledged must all be there."""
    kept = []
    for number in range(rounds):
        with start(CHARGE_FOREVER, path, number) as process:
            first = process.stdout.readline()
            time.sleep(seconds * (1 + number % 5))
            os.kill(process.pid, signal.SIGKILL)
            lines = [first, *process.stdout.read().splitlines()]
        kept += [Receipt(**json.loads(line)) for line in lines if line.rstrip().endswith("}")]
        book = Book(open_store(path))
        checked = book.verify(OFFICER, receipts=kept)
        book.store.close()
        assert checked.ok, checked.problems
    assert len(kept) >= rounds
    assert checked.rows - 2 >= len({receipt.seq for receipt in kept}) == len(kept)


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(path):
    kill_rounds(path, rounds=3, seconds=0.01)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_25_kills(path):
    kill_rounds(path, rounds=25, seconds=0.03)


def crowd(path, processes, threads, each):
    running = [start(CHARGE_AT_ONCE, path, number, threads, each) for number in range(processes)]
    counts = [tuple(map(int, process.communicate()[0].split())) for process in running]
    return sum(c for c, _ in counts), sum(r for _, r in counts)


def test_one_place_too_few_for_two_processes(path):
    book = Book(open_store(path))
    book.charge(OFFICER, grant="G", unit="dataset", event={"type": "gaussian", "rho": "0.95"})
    assert crowd(path, 2, 3, 5) == (25, 5)
    assert book.verify(OFFICER).ok
    book.store.close()


@pytest.mark.slow
def test_3000_requests_of_three_processes_for_500_places_are_exactly_500(path):
    assert crowd(path, 3, 20, 50) == (500, 2500)
    book = Book(open_store(path))
    assert book.verify(OFFICER).ok
    book.store.close()
