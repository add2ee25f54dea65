"""Attacks on a ledger by whoever may write its file and has its key, against heads that were pushed elsewhere.

Each attack draws a history, keeps signed heads and some receipts outside, and then changes the store: a copy is put
back with its marks (`rollback`) and perhaps written on, two copies go on apart (`equivocation`), a row comes again
(`replay`), or a value is changed and every hash, sum and tree after it is made anew (`tampering`). It is detected
where a verifier who holds the store, the public key and what was kept outside is told of a problem, or where the
store refuses to be written.
"""

# ruff: noqa: S311, S608 - which attack is drawn, and statements of the attacker's own

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from privcheck.errors import PrivcheckError
from privcheck.ledger import Actor, Book, create_store, open_store
from privcheck.ledger.heads import Evidence, Head, compare
from privcheck.ledger.rows import parse_row, seal

UNIT = "user, 1 trajectory, replace-one, central"
OFFICER = Actor(name="otto", role="officer")
EVENT = {"type": "gaussian", "rho": "0.001", "count": 1}
FILES = ("", "-wal", "-shm", ".heads")
COLUMNS = "dataset, seq, kind, budget, charge, actor, request_key, held, lost, body, written_at, prev, hash"


@dataclass(slots=True)
class World:
    """A ledger with what was kept of it outside.

    Attributes:
        rng: Draws everything.
        folder: Where its files are.
        heads: Pushed heads.
        receipts: Kept receipts.
        pem: The public key, which was published when the ledger was made.
    """

    rng: random.Random
    folder: Path
    heads: list[Head] = field(default_factory=list)
    receipts: list[object] = field(default_factory=list)
    datasets: int = 0
    grants: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    count: int = 0

    @property
    def path(self) -> Path:
        return self.folder / "budget.db"

    def book(self) -> Book:
        return Book(open_store(str(self.path)))

    def write(self, book: Book) -> None:
        """One random write, of those that are possible."""
        rng, self.count = self.rng, self.count + 1
        name = f"n{self.count}"
        ways: list[Callable[[], object]] = []
        if self.grants:
            grant = rng.choice(self.grants)
            ways += [lambda: self._keep(book.charge(OFFICER, grant=grant, event=EVENT, unit="dataset", key=name))] * 8
            ways += [lambda: self._reserve(book, grant, name)] * 2
            ways += [lambda: book.freeze(OFFICER, grant, reason="why not")] if len(self.grants) > 3 else []
        if self.open:
            ways += [lambda: self._keep(book.commit(OFFICER, self.open.pop()))]
            ways += [lambda: self._keep(book.release(OFFICER, self.open.pop(), evidence="it never ran"))]
        ways += [lambda: self._dataset(book, name), lambda: self._token(book, name)]
        ways += [lambda: self._grant(book, name)] * 2 if self.datasets else []
        ways += [lambda: book.revoke_token(OFFICER, rng.choice(self.tokens))] if self.tokens else []
        with suppress(PrivcheckError):  # a grant that was frozen, a policy that is full
            rng.choice(ways)()

    def _keep(self, decision: object) -> None:
        if decision.receipt is not None and self.rng.random() < 0.3:
            self.receipts.append(decision.receipt)

    def _reserve(self, book: Book, grant: str, key: str) -> None:
        done = book.reserve(OFFICER, grant=grant, event=EVENT, unit="dataset", key=key, seconds=3600)
        self.open.append(str(done.charge))

    def _dataset(self, book: Book, name: str) -> None:
        book.set_policy(OFFICER, dataset=f"d{self.datasets}", epsilon="50", delta="1e-6", unit=UNIT)
        self.datasets += 1

    def _grant(self, book: Book, name: str) -> None:
        dataset = f"d{self.rng.randrange(self.datasets)}"
        book.grant(OFFICER, name=name, dataset=dataset, currency="rho", cap="0.1", delta="1e-6")
        self.grants.append(name)

    def _token(self, book: Book, name: str) -> None:
        book.make_token(OFFICER, name=name, role=self.rng.choice(["reader", "analyst", "officer"]))
        self.tokens.append(name)

    def push(self, book: Book) -> None:
        """Keep the heads of now outside."""
        self.heads += book.heads(OFFICER)

    def evidence(self) -> Evidence:
        return Evidence(heads=tuple(self.heads), receipts=tuple(self.receipts))


def begin(seed: int, folder: Path) -> World:
    """A ledger with a history and heads that were pushed on the way."""
    world = World(random.Random(seed), folder)
    book, _ = Book.init(create_store(str(world.path)))
    with closing(book.store):
        world._dataset(book, "")
        world._grant(book, "g")
        for _ in range(world.rng.randrange(4, 16)):
            world.write(book)
            if world.rng.random() < 0.15:
                world.push(book)
    return world


def copy(world: World, folder: Path) -> None:
    """A copy of all files, as a snapshot of a disk has them."""
    folder.mkdir()
    for suffix in FILES:
        if (source := Path(f"{world.path}{suffix}")).exists():
            shutil.copy(source, folder / source.name)


def put_back(world: World, folder: Path) -> None:
    for suffix in FILES:
        Path(f"{world.path}{suffix}").unlink(missing_ok=True)
        if (source := folder / f"{world.path.name}{suffix}").exists():
            shutil.copy(source, f"{world.path}{suffix}")


def find(world: World, path: Path | None = None) -> list[str]:
    """What somebody is told who compares the store with what was kept outside."""
    try:
        store = open_store(str(path or world.path))
    except PrivcheckError as error:
        return [str(error)]
    with closing(store):
        book = Book(store)
        try:
            checked = book.verify(OFFICER, receipts=tuple(world.receipts), heads=tuple(world.heads))
            problems = list(checked.problems)
            problems += book.prove(OFFICER, world.evidence())[1]
        except PrivcheckError as error:
            return [str(error)]
    return problems


def grow(world: World, most: int) -> None:
    """Writes until every chain that had a head has grown again, if it can, without the witness."""
    book = world.book()
    with closing(book.store):
        for _ in range(world.rng.randrange(most)):
            world.write(book)


def rollback(world: World) -> list[str]:
    """A copy is put back, with its marks, after a head of what came later was pushed; it may be written on."""
    copy(world, world.folder / "copy")
    before = list(world.grants), list(world.open), list(world.tokens), world.datasets
    book = world.book()
    with closing(book.store):
        last = len(world.heads)
        for _ in range(world.rng.randrange(1, 8)):
            world.write(book)
        _charge(world, book)
        world.push(book)
    put_back(world, world.folder / "copy")
    world.grants, world.open, world.tokens, world.datasets = before
    assert len(world.heads) > last
    grow(world, world.rng.choice([1, 30]))
    return find(world)


def equivocation(world: World) -> list[str]:
    """Two copies go on apart and each shows its own heads, with proofs that each of them can make."""
    other = replace(world, folder=world.folder / "other", grants=list(world.grants), open=list(world.open),
                    tokens=list(world.tokens), heads=list(world.heads), receipts=list(world.receipts))  # fmt: skip
    copy(world, other.folder)
    seen = []
    for side in (world, other):
        book = side.book()
        with closing(book.store):
            for _ in range(side.rng.randrange(1, 6)):
                side.write(book)
            _charge(side, book)
            seen.append(book.prove(OFFICER, Evidence(heads=tuple(world.heads)))[0])
    # each verifier has seen one side; one of them learns a head of the other, and asks both for proofs
    public = world.book()
    with closing(public.store):
        key = public.public_key(OFFICER)
    parts = [*seen]
    for side, held in ((world, seen[1]), (other, seen[0])):
        book = side.book()
        with closing(book.store):
            parts.append(book.prove(OFFICER, Evidence(heads=held.heads))[0])
    told = compare(Evidence.join(parts), key)
    return [*told.problems, *told.missing]


def replay(world: World) -> list[str]:
    """A row about a charge comes again at the end of its chain, rightly sealed; or a request, which changes nothing."""
    book = world.book()
    with closing(book.store):
        _charge(world, book)
        world.push(book)
    with closing(sqlite3.connect(world.path)) as store:
        rows = [parse_row(row) for row in store.execute(f"SELECT {COLUMNS} FROM entry WHERE charge IS NOT NULL")]
        row = world.rng.choice(rows)
        last = parse_row(
            store.execute(
                f"SELECT {COLUMNS} FROM entry WHERE dataset = ? ORDER BY seq DESC LIMIT 1", (row.dataset,)
            ).fetchone()
        )
        again = _seal(row, seq=last.seq + 1, prev=last.hash, at=last.at, key=None if world.rng.random() < 0.5 else "k2")
        _insert(store, again)
        store.commit()
    _mark(world)
    return find(world)


def tampering(world: World) -> list[str]:
    """A value of a row that a head covers is changed; what follows is sealed anew, and the tree and the marks with it.

    Or a value of one of the tables by which names and tokens are found, with or without the row of the registry that
    says so.
    """
    book = world.book()
    with closing(book.store):
        _charge(world, book)
        world.push(book)
    with closing(sqlite3.connect(world.path)) as store:
        for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            store.execute(f"DROP TRIGGER {name}")
        store.execute("PRAGMA foreign_keys = OFF")
        way = world.rng.choice([_change_row, _change_row, _drop_row, _change_table, _change_table, _swap_rows])
        changed = way(world, store)
        store.commit()
    _mark(world)
    assert changed
    return find(world)


ATTACKS: dict[str, Callable[[World], list[str]]] = {
    "rollback": rollback, "equivocation": equivocation, "replay": replay, "tampering": tampering,
}  # fmt: skip


def _charge(world: World, book: Book) -> None:
    """A write that succeeds whatever was frozen or is full: a new dataset, its grant and a charge to it."""
    world.count += 1
    name = f"x{world.count}-{world.rng.randrange(10**6)}"
    book.set_policy(OFFICER, dataset=name, epsilon="50", delta="1e-6", unit=UNIT)
    book.grant(OFFICER, name=name, dataset=name, currency="rho", cap="0.1", delta="1e-6")
    book.charge(OFFICER, grant=name, event=EVENT, unit="dataset", key=name)
    with suppress(PrivcheckError):
        book.charge(OFFICER, grant=world.grants[0], event=EVENT, unit="dataset", key=f"{name}-g")


def _seal(row: object, **changed: object) -> object:
    fields = {name: getattr(row, name) for name in row.__slots__ if name != "hash"} | changed
    return seal(**fields)


def _insert(store: sqlite3.Connection, row: object) -> None:
    from privcheck.ledger.exact import canonical

    marks = ", ".join("?" * 13)
    values = (row.dataset, row.seq, row.kind, row.grant, row.charge, row.actor, row.key, row.held, row.lost,
              canonical(row.body), row.at, row.prev, row.hash)  # fmt: skip
    with suppress(sqlite3.IntegrityError):
        store.execute(f"INSERT INTO entry ({COLUMNS}) VALUES ({marks})", values)


def _rewrite(store: sqlite3.Connection, dataset: str, rows: list[object]) -> None:
    """A chain anew, sealed from its first row on, and without its tree, which is made again from the rows."""
    store.execute("DELETE FROM entry WHERE dataset = ?", (dataset,))
    store.execute("DELETE FROM tree WHERE dataset = ?", (dataset,))
    prev = ""
    for seq, row in enumerate(rows, start=1):
        sealed = _seal(row, seq=seq, prev=prev)
        _insert(store, sealed)
        prev = sealed.hash


def _chain(world: World, store: sqlite3.Connection) -> tuple[str, list[object]]:
    covered = sorted({head.dataset for head in world.heads})
    dataset = world.rng.choice(covered)
    rows = store.execute(f"SELECT {COLUMNS} FROM entry WHERE dataset = ? ORDER BY seq", (dataset,)).fetchall()
    return dataset, [parse_row(row) for row in rows]


def _covered(world: World, dataset: str) -> int:
    return max(head.size for head in world.heads if head.dataset == dataset)


def _change_row(world: World, store: sqlite3.Connection) -> bool:
    dataset, rows = _chain(world, store)
    at = world.rng.randrange(_covered(world, dataset))
    row, what = rows[at], world.rng.choice(["actor", "at", "body", "kind", "key", "held"])
    if what == "body":
        text = json.dumps(row.body)
        changed = {"body": {**row.body, "note": "another"} if "0.001" not in text else
                   json.loads(text.replace("0.001", "0.0001"))}  # fmt: skip
    elif what == "held":
        changed = {"held": row.held + 1}
    else:
        other = {"actor": "eve", "at": "2020-01-01T00:00:00.000000Z", "kind": "evidence", "key": "stolen"}
        changed = {what: other[what]}
    rows[at] = _seal(row, **changed)
    _rewrite(store, dataset, rows)
    return True


def _drop_row(world: World, store: sqlite3.Connection) -> bool:
    dataset, rows = _chain(world, store)
    del rows[world.rng.randrange(_covered(world, dataset))]
    _rewrite(store, dataset, rows)
    return True


def _swap_rows(world: World, store: sqlite3.Connection) -> bool:
    dataset, rows = _chain(world, store)
    if len(rows) < 2:
        return _drop_row(world, store)
    at = world.rng.randrange(_covered(world, dataset) - 1) if _covered(world, dataset) > 1 else 0
    rows[at], rows[at + 1] = rows[at + 1], rows[at]
    _rewrite(store, dataset, rows)
    return True


def _change_table(world: World, store: sqlite3.Connection) -> bool:
    new = "hash || '1', name || '1', 'officer', '[]', NULL, NULL, made_by, made_at"
    ways = [
        "UPDATE token SET role = 'admin' WHERE role <> 'admin'",
        "UPDATE token SET hash = hash || '0'",
        "UPDATE token SET expires = '2999-01-01T00:00:00.000000Z'",
        "DELETE FROM token WHERE name = (SELECT MAX(name) FROM token)",
        f"INSERT INTO token SELECT {new} FROM token LIMIT 1",
        "UPDATE token SET revoked = NULL WHERE revoked IS NOT NULL",
        "UPDATE token SET revoked = '2020-01-01T00:00:00.000000Z' WHERE revoked IS NULL",
        "UPDATE budget SET dataset = 'd0' WHERE dataset <> 'd0'",
        "DELETE FROM budget WHERE name = (SELECT MAX(name) FROM budget)",
        "INSERT INTO budget (name, dataset) VALUES ('eve', 'd0')",
        "INSERT INTO dataset (name) VALUES ('eve')",
        "DELETE FROM dataset WHERE name = 'd0'",
        "UPDATE dataset SET name = 'eve' WHERE name = 'd0'",
        "UPDATE meta SET value = '[\"d0\"]' WHERE name = 'lost'",
        f"UPDATE meta SET value = '{'ab' * 32}' WHERE name = 'key'",
        f"UPDATE meta SET value = '{'cd' * 16}' WHERE name = 'store'",
    ]
    while not store.execute(world.rng.choice(ways)).rowcount:
        pass
    return True


def _mark(world: World) -> None:
    """The marks beside the file say what the file says: whoever may write the one may write the other."""
    from privcheck.ledger.marks import Identity, Marks, find_heads, replace_marks
    from privcheck.ledger.sqlite import SqliteTransaction

    with closing(sqlite3.connect(world.path)) as store:
        transaction = SqliteTransaction(store)
        identity = Identity.of(transaction)
        kept = Marks(store=identity.store, turn=identity.turn, tag=identity.tag, heads=find_heads(transaction))
    replace_marks(world.path, kept)


def honest(world: World) -> list[str]:
    """No attack: the ledger is written on, and heads are pushed on the way."""
    book = world.book()
    with closing(book.store):
        for _ in range(world.rng.randrange(1, 6)):
            world.write(book)
            world.push(book)
    return find(world)


def attack(kind: str, seed: int, folder: Path) -> list[str]:
    """The problems that one generated attack leads to; none where it goes undetected."""
    folder.mkdir(parents=True)
    world = begin(seed, folder)
    return (ATTACKS | {"honest": honest})[kind](world)
