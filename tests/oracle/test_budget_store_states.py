"""The states of a store against an exact model: backups, copies put back, files moved, crashes, acceptances, processes.

Whatever happens to the files, two processes never charge more than a grant's cap, all that was ever acknowledged
together, and each of them says at the next write what the model says. Left out is a copy that is put back together with
its marks, which only receipts show.
"""

import sqlite3
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import budget_stores
import postgres_cluster
from privcheck.errors import StoreError
from privcheck.ledger import Actor, Book, create_store, open_store, sqlite
from privcheck.ledger.marks import heads_path

OTTO = Actor(name="otto", role="officer")
GRANTS = ("G", "H")
processes = st.sampled_from([0, 1])


class Stopped(BaseException):
    """The process ends here."""


class Process:
    """What the model knows of a process: of which file and epoch it is, what it has written, whether it doubts."""

    def __init__(self, book, file, epoch, *, doubt):
        self.book, self.file, self.epoch, self.doubt, self.wrote = book, file, epoch, doubt, None


class Machine(RuleBasedStateMachine):
    """Turns are the transactions that have written, each with a number of its own and what it was."""

    kind = "sqlite"

    @initialize()
    def begin(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "budget.db"
        self.url = str(self.path) if self.kind == "sqlite" else postgres_cluster.shared().new()
        book, _ = Book.init(create_store(self.url))
        for name in GRANTS:
            fields = {"currency": "rho", "cap": 1, "delta": "1e-6"}
            budget_stores.grant(book, OTTO, name=name, dataset=f"of-{name}", **fields)
        book.store.close()
        self.turns, self.marks, self.moved, self.numbers = (), (), 0, 0
        self.loaded, self.saved, self.receipts = False, [], {}
        self.charged = dict.fromkeys(GRANTS, Fraction(0))
        self.processes = [None, None]
        for number in (0, 1):
            self.open(number)

    def teardown(self):
        for process in getattr(self, "processes", ()):
            process.book.store.close()
        if hasattr(self, "directory"):
            self.directory.cleanup()

    # --- the model

    def turn(self, *what):
        self.numbers += 1
        self.turns = (*self.turns, (self.numbers, *what))

    def doubtful(self):
        if self.kind != "sqlite":
            return self.loaded
        return self.marks is None or self.turns[: len(self.marks)] != self.marks

    def epoch(self):
        return [turn[0] for turn in self.turns if turn[1] == "epoch"]

    def stays_out(self, process):
        gone = process.wrote is not None and process.wrote not in self.turns
        other = process.file != self.moved or process.epoch != self.epoch()
        return process.doubt or other or gone or self.doubtful()

    def lost(self):
        return {turn[2] for turn in self.receipts if turn not in self.turns}

    def frozen(self, grant):
        return any(turn[1] in ("freeze", "epoch") and grant in turn[2] for turn in self.turns)

    def held(self, grant):
        return sum((turn[3] for turn in self.turns if turn[1] == "charge" and turn[2] == grant), Fraction(0))

    # --- what happens

    def open(self, number):
        if self.processes[number] is not None:
            self.processes[number].book.store.close()
        book = Book(open_store(self.url))
        assert bool(book.store.doubt) == self.doubtful()
        if not self.doubtful():
            self.marks = self.turns  # brought up where a crash has left them behind
        self.processes[number] = Process(book, self.moved, self.epoch(), doubt=self.doubtful())

    @rule(number=processes)
    def reopen(self, number):
        self.open(number)

    @rule(number=processes, grant=st.sampled_from(GRANTS), part=st.sampled_from(["0.1", "0.3", "0.5"]),
          crash=st.integers(0, 5).map(lambda n: n == 0))  # fmt: skip
    def charge(self, number, grant, part, crash):
        process, event = self.processes[number], {"type": "zcdp", "rho": part}
        if self.stays_out(process):
            with pytest.raises(StoreError):
                process.book.charge(OTTO, grant=grant, unit="dataset", event=event)
            process.doubt = True
            return
        fits = not self.frozen(grant) and self.held(grant) + Fraction(part) <= 1
        if crash and fits and self.kind == "sqlite":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sqlite, "advance_marks", self.stop)
                with pytest.raises(Stopped):
                    process.book.charge(OTTO, grant=grant, unit="dataset", event=event)
            self.turn("charge", grant, Fraction(part))  # on the disk, and nobody was told
            self.open(number)
            return
        decision = process.book.charge(OTTO, grant=grant, unit="dataset", event=event)
        assert decision.state == ("committed" if fits else "refused")
        if fits:
            self.turn("charge", grant, Fraction(part))
            self.receipts[self.turns[-1]] = decision.receipt
            self.charged[grant] += Fraction(part)
            process.wrote = self.turns[-1]
        self.marks = self.turns

    @staticmethod
    def stop(*_):
        raise Stopped

    @rule()
    def back_up(self):
        file = Path(self.directory.name) / f"backup{len(self.saved)}"
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.path)) as old, closing(sqlite3.connect(file)) as new:
                old.backup(new)
        else:
            postgres_cluster.shared().save(self.url, file)
        self.saved.append((file, self.turns))

    @rule(which=st.integers(0, 3), move=st.booleans())
    def put_back(self, which, move):
        if not self.saved:
            return
        file, turns = self.saved[-1 - which % len(self.saved)]
        if self.kind != "sqlite":
            postgres_cluster.shared().load(self.url, file)
            self.loaded = True
        elif move:
            part = self.path.with_name("part")
            part.write_bytes(file.read_bytes())
            for suffix in ("-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            part.replace(self.path)
            self.moved += 1
        else:
            with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(self.path)) as new:
                old.backup(new)
        self.turns = turns

    @rule()
    def lose_marks(self):
        if self.kind == "sqlite":
            heads_path(self.path).unlink(missing_ok=True)
            self.marks = None

    @rule(freeze=st.booleans())
    def accept(self, freeze):
        doubtful, lost = self.doubtful(), self.lost()
        book = Book(open_store(self.url))
        if not doubtful:
            self.marks = self.turns
        taken = book.accept(OTTO, receipts=list(self.receipts.values()), freeze=freeze)
        assert {name.removeprefix("of-") for name in taken.lost} >= lost
        book.store.close()
        assert taken.accepted == (freeze or not (taken.lost or taken.uncompared))
        if taken.accepted:
            assert set(taken.frozen) == {name.removeprefix("of-") for name in (*taken.lost, *taken.uncompared)}
            self.turn("epoch" if doubtful else "freeze", taken.frozen)
            self.marks, self.loaded = self.turns, False

    @invariant()
    def nothing_is_spent_twice(self):
        for grant in GRANTS:
            assert getattr(self, "charged", {}).get(grant, 0) <= 1

    @rule()
    def look(self):
        book = Book(open_store(self.url))
        shown = {g["name"]: Fraction(g["remaining"]) for one in book.show(OTTO)["datasets"] for g in one["grants"]}
        assert shown == {grant: 1 - self.held(grant) for grant in GRANTS}
        assert book.verify(OTTO).ok
        if not self.doubtful():
            self.marks = self.turns
        book.store.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(budget_stores.STORES))
def test_every_state_of_a_store_is_noticed_and_no_cap_is_passed(kind):
    machine = type("Machine", (Machine,), {"kind": kind})
    limits = settings(
        max_examples=60 if kind == "sqlite" else 8, stateful_step_count=25, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=limits)
