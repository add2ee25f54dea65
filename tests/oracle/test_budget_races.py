"""Every pair of writes, one within the other: what comes out is what an exact model says of one order or the other.

The first write is stopped before one of its statements, the second is run there by another process' ledger, or waits
until the first has ended where it is kept out; then the first goes on. PostgreSQL is stopped at every statement of the
writes that decide by a rule of the whole, and at two drawn ones (seeded) of all others; a SQLite file has one writer
at a time, so that it is stopped before its transaction and in it.
"""

import itertools
import random
import threading
from contextlib import contextmanager
from fractions import Fraction

import pytest

import budget_stores
from privcheck.errors import PrivcheckError
from privcheck.ledger import Actor, Book, create_store, open_store

OTTO, ANA = Actor(name="otto", role="officer"), Actor(name="ana", role="officer")
PART, HALF = Fraction(1, 10), Fraction(6, 10)


class Model:
    """A dataset with a grant G and a reservation R of 3/10 on it, one with a grant H, one without grants or blocks."""

    def __init__(self, kind):
        self.kind, self.names, self.blocks, self.grants, self.frozen = kind, set(), set(), set(), set()
        self.held, self.reservation, self.keys = {"G": Fraction(3, 10), "H": Fraction(0)}, "reserved", {}
        self.tokens = {"old": False}

    def state(self):
        return (
            sorted(self.names), sorted(self.blocks), sorted(self.grants), sorted(self.frozen), self.held,
            self.reservation, self.tokens,
        )  # fmt: skip

    def spend(self, grant, part, state):
        if grant in self.frozen or self.held[grant] + part > 1:
            return "refused"
        self.held[grant] += part
        return state

    def policy(self):
        if self.names:
            return "ParameterError"
        self.names.add("N")
        return "ok"

    def block(self):
        if self.grants or self.blocks:
            return "ParameterError"
        self.blocks.add("b")
        return "ok"

    def grant(self, name="W"):
        if name in self.grants or self.blocks:
            return "ParameterError"
        if self.grants:
            return "BudgetError"
        self.grants.add(name)
        return "ok"

    def other(self):
        return self.grant("V")

    def freeze(self):
        self.frozen.add("G")
        return "ok"

    def charge(self):
        return self.spend("G", HALF, "committed")

    def reserve(self):
        return self.spend("G", HALF, "reserved")

    def keyed(self, grant="G"):
        if "k" in self.keys:
            return "committed" if self.keys["k"] == grant else "IdempotencyError"
        state = self.spend(grant, PART, "committed")
        if state == "committed":
            self.keys["k"] = grant
        return state

    def keyed_elsewhere(self):
        return self.keyed("H")

    def commit(self):
        if self.reservation == "released":
            return "StateError"
        if self.reservation == "reserved" and "G" in self.frozen:
            return "refused"
        self.reservation = "committed"
        return "committed"

    def release(self):
        if self.reservation == "committed":
            return "StateError"
        if self.reservation == "reserved":
            self.held["G"] -= Fraction(3, 10)
        self.reservation = "released"
        return "released"

    def accept(self):
        if self.kind == "postgresql":  # there nothing but receipts says what is lost
            self.frozen |= {"G"} | ({"H"} if self.held["H"] else set())
        return "ok"

    def token(self):
        if "eve" in self.tokens:
            return "ParameterError"
        self.tokens["eve"] = False
        return "ok"

    def revoke(self):
        self.tokens["old"] = True
        return "ok"


WRITES = (
    "policy", "block", "grant", "other", "freeze", "charge", "reserve", "keyed", "keyed_elsewhere", "commit", "release",
    "accept", "token", "revoke",
)  # fmt: skip
RULES = {"policy", "block", "grant", "other", "token"}


class Case:
    """The ledger of a model, under names that no other case of its store has."""

    def __init__(self, book, number):
        self.book, self.number = book, number
        with book.together():
            for dataset in ("D", "E", "U"):
                self.open(book, dataset)
            for grant, dataset in (("G", "D"), ("H", "E")):
                self.give(book, grant, dataset, 1)
            book.make_token(OTTO, name=self.of("old"), role="reader")
        self.reservation = self.spend(book.reserve, "G", Fraction(3, 10)).charge

    def of(self, name):
        return f"{name}-{self.number}"

    def open(self, book, dataset):
        fields = {"epsilon": 1, "delta": 0, "unit": budget_stores.UNIT, "remainder": "epsilon"}
        book.set_policy(OTTO, dataset=self.of(dataset), **fields)

    def give(self, book, name, dataset, cap):
        fields = {"name": self.of(name), "dataset": self.of(dataset), "currency": "epsilon", "delta": 0}
        book.grant(OTTO, **fields, cap=cap)

    def spend(self, action, grant, part, key=None):
        event = {"type": "pure", "epsilon": str(float(part))}
        return action(OTTO, grant=self.of(grant), unit="dataset", event=event, key=key and self.of(key))

    def write(self, book, what):
        """Returns what one write of the model answers, as the model says it."""
        try:
            return self._write(book, what)
        except PrivcheckError as error:
            return type(error).__name__

    def _write(self, book, what):
        if what in ("charge", "reserve"):
            return self.spend(getattr(book, what), "G", HALF).state
        if what in ("keyed", "keyed_elsewhere"):
            return self.spend(book.charge, "G" if what == "keyed" else "H", PART, key="k").state
        if what == "commit":
            return book.commit(OTTO, self.reservation).state
        if what == "release":
            return book.release(ANA, self.reservation, evidence="nothing ran").state
        if what == "accept":
            assert book.accept(OTTO, freeze=True).accepted
        elif what == "policy":
            self.open(book, "N")
        elif what == "block":
            book.add_blocks(OTTO, self.of("U"), ["b"], disjoint_users="by month")
        elif what in ("grant", "other"):
            self.give(book, "W" if what == "grant" else "V", "U", HALF)
        elif what == "freeze":
            book.freeze(OTTO, self.of("G"), reason="looking at it")
        elif what == "token":
            book.make_token(OTTO, name=self.of("eve"), role="reader")
        else:
            book.revoke_token(OTTO, self.of("old"))
        return "ok"

    def state(self):
        end = f"-{self.number}"
        shown = {one["name"]: one for one in self.book.show(OTTO)["datasets"] if one["name"].endswith(end)}
        grants = {grant["name"].removesuffix(end): grant for one in shown.values() for grant in one["grants"]}
        listed = self.book.list_tokens(OTTO)
        return (
            ["N"] if self.of("N") in shown else [],
            [block["name"] for block in shown[self.of("U")]["blocks"]],
            sorted(set(grants) - {"G", "H"}),
            sorted(name for name, grant in grants.items() if grant["balance"]["state"] == "frozen"),
            {name: 1 - Fraction(grants[name]["remaining"]) for name in "GH"},
            self.book.find_charge(OTTO, self.reservation).state,
            {one["name"].removesuffix(end): one["revoked"] is not None for one in listed if one["name"].endswith(end)},
        )


class Stopping:
    """A store whose next writing transaction calls a function before one of its statements, or before it begins."""

    def __init__(self, store):
        self._store, self.at, self.call, self.count = store, None, None, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def _step(self):
        if self.count == self.at and self.call is not None:
            call, self.call = self.call, None
            call()
        self.count += 1

    @contextmanager
    def write(self):
        self._step()
        with self._store.write() as transaction:
            yield Stopped(transaction, self._step)

    def accept(self, decide):
        self._step()
        self._store.accept(lambda transaction, kept: decide(Stopped(transaction, self._step), kept))


class Stopped:
    def __init__(self, transaction, step):
        self._transaction, self._step = transaction, step

    def __getattr__(self, name):
        found = getattr(self._transaction, name)
        if name in ("heads", "holders", "keys"):
            return found

        def call(*args, **more):
            self._step()
            return found(*args, **more)

        return call


def interleave(writes, case, stopped, other, *, at):
    """Returns what two writes answer, the second one run where the first is stopped."""
    (first, second), answers = writes, {}

    def run_other():
        answers["second"] = case.write(other, second)

    thread = threading.Thread(target=run_other)

    def stop():
        thread.start()
        thread.join(0.04 if at else 30)  # kept out, it goes on once the first has ended

    stopped.store.count, stopped.store.at, stopped.store.call = 0, at, stop
    answers["first"] = case.write(stopped, first)
    reached = stopped.store.call is None
    stopped.store.call = None
    if not reached:
        thread.start()
    thread.join(60)
    return (answers["first"], answers["second"]), reached


def orders(kind, first, second):
    """Returns what the model says of both orders: the answers, and the state at the end."""
    for turned in (False, True):
        model, answers = Model(kind), {}
        for one in ((1, second), (0, first)) if turned else ((0, first), (1, second)):
            answers[one[0]] = getattr(model, one[1])()
        yield (answers[0], answers[1]), model.state()


@pytest.mark.slow
@pytest.mark.parametrize("first", WRITES)
def test_two_writes_end_as_in_one_order_or_the_other(first, new_ledger):
    drawn = random.Random(f"29 {first}")  # noqa: S311 - where to stop
    numbers, ledgers = itertools.count(), []

    def ledger():
        url = new_ledger()
        book, _ = Book.init(create_store(url))
        ledgers.extend(found := (book, Book(Stopping(open_store(url))), Book(open_store(url))))
        return "postgresql" if url.startswith("postgresql:") else "sqlite", *found

    kind, book, stopped, other = ledger()
    for second in WRITES:
        points = [0, 1]
        if kind == "postgresql":
            points = list(range(25)) if {first, second} <= RULES else sorted(drawn.sample(range(14), 2))
        for at in points:
            if "accept" in (first, second):  # it is about the whole store
                kind, book, stopped, other = ledger()
            case = Case(book, next(numbers))
            answers, reached = interleave((first, second), case, stopped, other, at=at)
            found = (answers, case.state())
            assert found in list(orders(kind, first, second)), (first, second, at)
            if not reached:
                break
    assert book.verify(OTTO).ok
    for one in ledgers:
        one.store.close()


def test_the_model_tells_one_order_from_the_other():
    """A pair that comes out the same in both orders would find nothing: those that meet at a rule do not."""
    pairs = [("grant", "block"), ("grant", "other"), ("keyed", "keyed_elsewhere"), ("freeze", "charge"),
             ("commit", "release"), ("charge", "reserve"), ("policy", "policy"), ("token", "token")]  # fmt: skip
    for first, second in pairs:
        assert len({str(one) for one in orders("sqlite", first, second)}) == 2, (first, second)
