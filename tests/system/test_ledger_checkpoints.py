"""`privcheck ledger verify --checkpoint` and `export` of many charges: what is read, kept, printed, and refused."""

import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from click.testing import CliRunner

import budget_stores
from privcheck.cli import main
from privcheck.cli.ledger_text import write_statement
from privcheck.commands.ledger_client import open_desk
from privcheck.ledger import Actor, Book, open_store, trees
from privcheck.service import ledger_routes, session
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from served import served, wait_for

OTTO = Actor(name="otto", role="officer")
EVENT = {"type": "zcdp", "rho": "0.0001"}


def invoke(*arguments, code=0):
    result = CliRunner().invoke(main.main, ["ledger", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout


def call(*arguments, code=0):
    return json.loads(invoke(*arguments, "--json", code=code))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "budget.db"
    budget_stores.begin(str(path)).store.close()
    spend(path, 3)
    return path


def spend(path, count, *, grant="G"):
    book = Book(open_store(str(path)))
    asked = book.prepare(OTTO, "charge", grant=grant, unit="dataset", event=EVENT)
    with book.write() as transaction:
        for _ in range(count):
            book.apply(transaction, asked)
    book.store.close()


def change(path, statement):
    with closing(sqlite3.connect(path)) as raw, raw:
        for name in ("entry_no_update", "entry_no_delete"):
            raw.execute(f"DROP TRIGGER {name}")
        raw.execute(statement)


def test_a_check_goes_on_where_the_last_one_ended(path, tmp_path):
    file = tmp_path / "checked.json"
    verify = ("verify", "--store", path, "--checkpoint", file)
    first = call(*verify)
    assert (first["ok"], first["rows"], "since" in first) == (True, 7, False)
    spend(path, 2)
    told = call(*verify)
    assert (told["ok"], told["rows"], told["since"]) == (True, 2, {"of-G": 5, "of-H": 2})
    spend(path, 1)
    assert "of-G: read from row 8; the rows before were checked earlier" in invoke(*verify)
    assert call(*verify)["rows"] == 0


CUT = "DELETE FROM entry WHERE dataset = 'of-G' AND seq = 5"


@pytest.mark.parametrize(("statement", "wanted", "written_on"), [
    (CUT, "row 5: it was checked before, but is missing", False),
    ("UPDATE entry SET actor = 'eve' WHERE dataset = 'of-G' AND seq = 5", "row 5: it was changed", False),
    (CUT, "another is in its place: the chain was rewritten", True),
    ("DELETE FROM entry WHERE dataset = 'of-H'", "of-H, row 2: it was checked before, but is missing", False),
])  # fmt: skip
def test_a_head_that_was_checked_and_is_gone_is_told(path, tmp_path, statement, wanted, written_on):
    file = tmp_path / "checked.json"
    verify = ("verify", "--store", path, "--checkpoint", file)
    call(*verify)
    kept = file.read_bytes()
    change(path, statement)
    if written_on:  # a row comes in its place, once an officer has accepted the copy
        invoke("verify", "--store", path, "--accept", "--freeze-lost")
    for _ in range(2):
        problems = call(*verify, code=1)["problems"]
        assert any(wanted in problem for problem in problems), problems
        assert file.read_bytes() == kept


def test_a_checkpoint_of_another_ledger_is_told_and_kept(path, tmp_path):
    file, other = tmp_path / "checked.json", tmp_path / "other.db"
    budget_stores.begin(str(other)).store.close()
    call("verify", "--store", other, "--checkpoint", file)
    kept = file.read_bytes()
    told = call("verify", "--store", path, "--checkpoint", file, code=1)
    assert told["problems"] == ["the checkpoint belongs to another ledger; all rows were read from the start"]
    assert told["rows"] == 7
    assert file.read_bytes() == kept


def test_a_checkpoint_is_one_that_verify_has_written(path, tmp_path):
    file = tmp_path / "checked.json"
    verify = ("verify", "--store", path, "--checkpoint", file)
    call(*verify)
    whole = file.read_text()
    for text in (
        "",
        "[]",
        "{}",
        whole[:-20],
        whole.replace('"seq":5', '"seq":4'),
        "\ud800".encode(errors="surrogatepass"),
    ):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        told = call(*verify, code=2)
        assert "checkpoint" in json.dumps(told)
        assert "Traceback" not in json.dumps(told)
    file.write_text(whole)
    assert call(*verify)["rows"] == 0
    assert "writ" in call("verify", "--store", path, "--checkpoint", tmp_path / "no" / "file", code=2)["message"]
    assert "without --checkpoint" in call(*verify, "--accept", code=2)["message"]


def test_a_list_of_reservations_is_rebuilt(path):
    change(path, "INSERT INTO reservation (charge, dataset, expires) VALUES ('c-1', 'of-G', '2027')")
    (problem,) = call("verify", "--store", path, code=1)["problems"]
    assert "c-1: the table of reservations lists it, but it is not open: rebuild it (verify --rebuild)" in problem
    assert call("verify", "--store", path, "--rebuild")["ok"]
    assert call("verify", "--store", path)["ok"]


def test_a_service_is_asked_without_a_checkpoint(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", "privcheck_x")
    for option in (("--checkpoint", tmp_path / "file"), ("--rebuild",)):
        told = call("verify", "--store", "https://ledger.example.org", *option, code=2)
        assert "is a service" in told["message"]


def test_a_statement_of_many_charges_is_printed_page_by_page(tmp_path, monkeypatch):
    path = tmp_path / "budget.db"
    budget_stores.begin(str(path)).store.close()
    spend(path, 2500)
    asked = []
    charges = Book.charges
    monkeypatch.setattr(Book, "charges", lambda *a, **b: asked.append(b["after"]) or charges(*a, **b))
    desk = open_desk(str(path), None)
    pieces = write_statement(desk, "of-G", as_json=False)
    next(pieces)
    assert asked == [0, 1002, 2002, 2502]  # a first way through, which keeps the different lines alone
    asked.clear()
    assert len(next(pieces).splitlines()) == 1002  # the heading and a page
    assert len(asked) == 1
    spend(path, 1)  # after the head that it names
    lines = "".join(pieces).splitlines()
    assert len(lines) == 1500 + 3
    assert lines[-2].startswith("head: row 2502 of ")
    assert lines[-1].startswith("signature: ")
    desk.close()
    told = call("export", "of-G", "--store", path)
    assert list(told) == ["schema", "form", "dataset", "lines", "charges", "head"]
    assert [one["seq"] for one in told["charges"]] == list(range(3, 2504))
    assert told["head"] == told["dataset"]["head"]
    assert call("export", "of-G", "--store", path, "--as", "dp-event")["events"] == 2501
    budget_stores.begin(str(tmp_path / "empty.db")).store.close()
    assert call("export", "of-G", "--store", tmp_path / "empty.db")["charges"] == []
    assert "charge  grant" in invoke("export", "of-G", "--store", tmp_path / "empty.db")


def test_an_export_that_takes_long_is_asked_for_again(path, monkeypatch):
    book = Book(open_store(str(path)))
    over = book.reserve(OTTO, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.5"})
    book.release(OTTO, over.charge, evidence="it never ran")
    token = book.make_token(OTTO, name="rita", role="reader")
    book.store.close()
    go, read = threading.Event(), ledger_routes._read_all
    monkeypatch.setattr(session, "_PATIENCE", 0.1)
    monkeypatch.setattr(ledger_routes, "_read_all", lambda *asked: read(*asked) if go.wait(60) else None)
    monkeypatch.setattr(Calculator, "start", lambda *_: None)  # the words of an event are somebody else's test
    monkeypatch.setattr(Calculator, "run", lambda *_: {"text": ""})
    with served(create_app(Settings(store=str(path)))) as client:
        ask = {"headers": {"Authorization": f"Bearer {token}"}}
        for _ in range(2):
            told = client.get("/v1/export?as=dp-event", **ask)
            assert (told.status_code, told.json(), told.headers["retry-after"]) == (202, {"state": "running"}, "2")
        go.set()
        told = wait_for(lambda: client.get("/v1/export?as=dp-event", **ask)).json()["datasets"]
        assert [one["events"] for one in told] == [[{"type": "zcdp", "rho": "0.0001", "count": 3}], []]
        assert [one["head"]["seq"] for one in told] == [7, 2]


def test_a_check_that_goes_on_reads_no_hash_again_and_still_sees_trees_and_heads(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "_LEVEL", 2)
    monkeypatch.setattr(trees, "_CHUNK", 4)
    path = tmp_path / "budget.db"
    book = budget_stores.begin(str(path))
    event = {"type": "zcdp", "rho": "0.0001"}
    for _ in range(20):
        book.charge(OTTO, grant="G", unit="dataset", event=event)
    early = book.heads(OTTO)
    done = book.verify(OTTO).checkpoint
    for _ in range(20):
        book.charge(OTTO, grant="G", unit="dataset", event=event)
    heads = (*early, *book.heads(OTTO))
    read = []
    hashes = trees._hashes
    monkeypatch.setattr(trees, "_hashes", lambda *a, **b: read.append((a[1], b["after"])) or hashes(*a, **b))
    later = book.verify(OTTO, heads=heads, after=done)
    assert later.ok, later.problems
    assert min(after for name, after in read if name == "of-G" and after) >= 20
    assert later.checkpoint == book.verify(OTTO).checkpoint
    with book.store.write() as transaction:
        transaction.run("UPDATE tree SET hash = ? WHERE dataset = 'of-G' AND level = 2 AND place = 8", ("0" * 64,))
    assert "of-G: its tree does not match its rows, at row 36" in book.verify(OTTO, after=done).problems
    forged = tuple(replace(one, size=one.size + 1) for one in heads)
    assert not book.verify(OTTO, heads=forged, after=done).ok
    book.store.close()
