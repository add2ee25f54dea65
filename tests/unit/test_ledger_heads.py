"""Heads, receipts and proofs that were kept outside: what a changed ledger cannot hide from whoever holds them."""

# ruff: noqa: S608 - statements of the test itself

import json
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import budget_stores
from privcheck.errors import ParameterError, StoreError
from privcheck.ledger import Actor, Book, Receipt, open_store, trees
from privcheck.ledger.exact import write_time
from privcheck.ledger.heads import Evidence, Head, check_signatures, compare
from privcheck.ledger.marks import heads_path
from privcheck.ledger.merkle import Growing, hash_leaf
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.witnesses import FileWitness, push_heads

OTTO = Actor(name="otto", role="officer")


def charge(book, grant="G"):
    decision = book.charge(OTTO, grant=grant, unit="dataset", event={"type": "gaussian", "rho": "0.001"})
    assert decision.state == "committed"
    return decision.receipt


def copy(source, target):
    """A copy of a SQLite ledger and of its marks, as of this moment."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    shutil.copyfile(heads_path(source), heads_path(target))
    return target


@pytest.fixture
def path(tmp_path):
    budget_stores.begin(str(tmp_path / "budget.db")).store.close()
    return tmp_path / "budget.db"


@pytest.fixture
def opened():
    """Opens ledgers, and closes them."""
    every = []

    def open_(path):
        every.append(Book(open_store(str(path))))
        return every[-1]

    yield open_
    for book in every:
        book.store.close()


def head_of(book, dataset="of-G"):
    return next(one for one in book.heads(OTTO) if one.dataset == dataset)


@pytest.fixture
def small(monkeypatch):
    """Lets subtrees of 4 rows be kept, so that short chains have some."""
    monkeypatch.setattr(trees, "_LEVEL", 2)
    monkeypatch.setattr(trees, "_CHUNK", 4)
    monkeypatch.setattr(trees, "_AT_ONCE", 8)


def test_a_head_is_the_root_over_all_rows_and_is_signed(new_ledger, small):
    book = budget_stores.begin(new_ledger())
    for _ in range(21):
        charge(book)
        tree = Growing()
        with book.store.read() as transaction:
            for (value,) in transaction.all("SELECT hash FROM entry WHERE dataset = 'of-G' ORDER BY seq"):
                list(tree.add(hash_leaf(bytes.fromhex(value))))
        head = head_of(book)
        assert (head.size, head.root) == (tree.size, tree.root().hex())
    key = book.public_key(OTTO)
    assert key.verifies(head.text, head.signature)
    assert not key.verifies(replace(head, size=head.size - 1).text, head.signature)
    assert {one.dataset for one in book.heads(OTTO)} == {REGISTRY, "of-G", "of-H"}
    assert book.verify(OTTO, heads=book.heads(OTTO)).problems == ()
    with book.store.read() as transaction:  # what is kept are the complete subtrees, and nothing else
        kept = transaction.all("SELECT level, place FROM tree WHERE dataset = 'of-G' ORDER BY level, place")
    assert kept == [(2, place) for place in range(5)] + [(3, 0), (3, 1), (4, 0)]
    book.store.close()


def test_a_tree_is_brought_up_to_date_in_short_transactions(path, opened, small):
    book = opened(path)
    for _ in range(30):
        charge(book)
    with book.write() as transaction:
        assert not trees.extend(transaction, "of-G")
    assert head_of(book).size == 32
    assert book.verify(OTTO, heads=book.heads(OTTO)).ok


def test_every_two_heads_of_one_ledger_are_consistent_and_its_receipts_included(path, opened, small):
    book = opened(path)
    receipts, heads = [], list(book.heads(OTTO))
    for i in range(12):
        receipts.append(charge(book, "GH"[i % 2]))
        heads += book.heads(OTTO)
    kept = Evidence(heads=tuple(heads), receipts=tuple(receipts))
    found, problems = book.prove(OTTO, kept)
    assert problems == []
    key = book.public_key(OTTO)
    assert compare(kept, key).verdict == "undecided"
    joined = Evidence.join([kept, Evidence.parse("\n".join(found.lines()))])
    assert compare(joined, key).to_dict()["verdict"] == "consistent"
    for part in ("consistency", "inclusions"):  # without any one proof that matters it is not
        proofs = getattr(joined, part)
        for i in range(len(proofs)):
            rest = replace(joined, **{part: proofs[:i] + proofs[i + 1 :]})
            matters = part == "inclusions" or (
                proofs[i].first != proofs[i].second
                and sum(one.first == proofs[i].first and one.dataset == proofs[i].dataset for one in proofs) == 1
            )
            assert compare(rest, key).verdict == ("undecided" if matters else "consistent")


def test_two_smaller_heads_that_both_follow_a_third_are_not_taken_for_consistent(path, opened, tmp_path):
    """Both of a fork's sides begin with the head from before it, and proofs of that hold."""
    book = opened(path)
    before = head_of(book)
    other = opened(copy(path, tmp_path / "other.db"))
    charge(book)
    charge(other), charge(other)
    heads = [before, head_of(book), head_of(other)]
    proofs = [one.prove(OTTO, Evidence(heads=(before,)))[0] for one in (book, other)]
    found = compare(Evidence.join([Evidence(heads=tuple(heads)), *proofs]), book.public_key(OTTO))
    assert found.verdict == "undecided"
    assert "no proof that the head of 4 rows begins with it" in found.missing[0]
    crossed = other.prove(OTTO, Evidence(heads=(heads[1],)))  # the only one who could prove it cannot
    assert "its rows differ from the stored ones: the chain was rewritten" in crossed[1][0]


def test_a_fork_is_seen_in_two_heads_of_one_size(path, opened, tmp_path):
    book, other = opened(path), opened(copy(path, tmp_path / "other.db"))
    mine, yours = charge(book), charge(other)
    key = book.public_key(OTTO)
    told = compare(Evidence(heads=(head_of(book), head_of(other))), key)
    assert told.verdict == "contradicted"
    assert "a fork: the head of the same size signed" in told.problems[0]
    told = compare(Evidence(receipts=(mine, yours)), key)
    assert any("another receipt shows another row in the same place" in one for one in told.problems)
    assert "rewritten" in book.verify(OTTO, heads=other.heads(OTTO)).problems[0]


def test_a_rollback_is_seen_by_when_heads_were_signed_and_by_the_store(path, opened, tmp_path):
    book = opened(path)
    copy(path, tmp_path / "old.db")
    charge(book)
    last = head_of(book)
    old = Book(open_store(str(tmp_path / "old.db")), clock=lambda: later(last.at, hours=1))
    key = book.public_key(OTTO)
    told = compare(Evidence(heads=(last, head_of(old))), key)
    assert "a rollback, or the clock was set: 3 rows were signed" in told.problems[0]
    assert "2 rows exist: the chain was cut, or is an older copy" in old.verify(OTTO, heads=(last,)).problems[0]
    assert old.verify(OTTO).ok
    old.store.close()


def later(at, *, hours):
    return datetime.fromisoformat(at) + timedelta(hours=hours)


def test_nothing_is_concluded_from_what_the_key_did_not_sign(path, opened, tmp_path):
    book, stranger = opened(path), budget_stores.begin(str(tmp_path / "stranger.db"))
    receipt, head, key = charge(book), head_of(book), book.public_key(OTTO)
    assert check_signatures(Evidence(heads=(head,), receipts=(receipt,)), key).verdict == "consistent"
    for wrong, said in (
        (Evidence(heads=stranger.heads(OTTO)), "it was signed with another key"),
        (Evidence(heads=(replace(head, root="0" * 64),)), "it was changed, or fabricated"),
        (Evidence(heads=(replace(head, signature=""),)), "it was changed, or fabricated"),
        (Evidence(receipts=(replace(receipt, seq=receipt.seq + 1),)), "it was changed, or fabricated"),
        (Evidence(receipts=(replace(receipt, dataset="of-H"),)), "it was changed, or fabricated"),
        (Evidence(receipts=(replace(receipt, store="0" * 32),)), "it was changed, or fabricated"),
        (Evidence(receipts=(charge(stranger),)), "it was signed with another key"),
        # a signature of one kind of text is none of another
        (Evidence(heads=(replace(head, signature=receipt.signature),)), "it was changed, or fabricated"),
    ):
        for check in (check_signatures, compare):
            told = check(wrong, key)
            assert told.verdict == "contradicted"
            assert said in told.problems[0]
    assert "was not signed by this store" in book.verify(OTTO, heads=stranger.heads(OTTO)).problems[0]
    stranger.store.close()


def test_what_is_no_evidence_is_refused(path, opened):
    book = opened(path)
    good, head = charge(book).to_dict(), head_of(book).to_dict()
    assert Evidence.parse(json.dumps({"receipt": good})).receipts == Evidence.parse(json.dumps([good])).receipts
    for bad in (
        "", "{", "[]", "3", "null", json.dumps({"kind": "head"}), json.dumps({**head, "size": True}),
        json.dumps({**head, "size": 0}), json.dumps({**head, "root": "f"}), json.dumps({**head, "at": "now"}),
        json.dumps({**head, "at": "2026-01-01T00:00:00"}), json.dumps({**head, "dataset": "a\nsize: 3"}),
        json.dumps({**good, "at": "a\nb"}), json.dumps({**good, "seq": "1"}), json.dumps({**good, "hash": "F" * 64}),
        json.dumps({**head, "kind": "consistency", "first": 1, "second": 2, "path": ["0" * 64] * 129}),
    ):  # fmt: skip
        with pytest.raises(ParameterError):
            Evidence.parse(bad)
    with pytest.raises(ParameterError):
        Receipt.parse({**good, "store": 3})
    assert Head.parse(head).to_dict() == head


@pytest.mark.parametrize("attacks", [100, pytest.param(900, marks=pytest.mark.nightly)])
def test_a_thousand_attacks_on_a_store_are_found_by_one_head_outside(path, tmp_path, opened, small, attacks):
    """Drawn ways to change the file behind the ledger's back, with all that can be recomputed recomputed.

    The attacker has the file, the secret in it and the code: rows are cut, replaced, moved or forged with right hashes,
    trees and signatures, and tables of names changed. None is missed; one that were would be a SHA-256 collision.
    """
    book = opened(path)
    book.make_token(OTTO, name="eve", role="reader")
    book.revoke_token(OTTO, "eve")
    older = []
    for i in range(14):
        older.append(copy(path, tmp_path / f"older-{i}.db"))
        charge(book, "GH"[i % 2])
    heads, drawn = book.heads(OTTO), random.Random(f"{attacks} attacks on a store")  # noqa: S311 - which attack
    assert book.verify(OTTO, heads=heads).ok
    book.store.close()
    victim, missed, kinds = tmp_path / "victim.db", [], set()
    with closing(sqlite3.connect(path)) as raw:
        entries = raw.execute("SELECT dataset, seq FROM entry ORDER BY dataset, seq").fetchall()
        columns = [row[1] for row in raw.execute("PRAGMA table_info(entry)")]
    copy(path, tmp_path / "clean.db")
    for number in range(attacks + 1):
        for one in (victim, heads_path(victim)):
            one.unlink(missing_ok=True)
        if number and drawn.random() < 0.2:  # an older copy with its marks, maybe written on: nothing in it is wrong
            kind = drawn.choice(["rollback", "replay"])
            what = restore(drawn, older, victim, kind)
            by_itself = Book(open_store(str(victim)))
            assert by_itself.verify(OTTO).ok, what
            by_itself.store.close()
        else:
            shutil.copyfile(tmp_path / "clean.db", victim)
            with closing(sqlite3.connect(victim, isolation_level=None)) as raw:
                raw.execute("PRAGMA synchronous = OFF")
                kind, what = attack(raw, drawn, entries, columns) if number else ("none", "none")
        kinds.add(kind)
        seen = Book(open_store(str(victim)))
        if seen.verify(OTTO, heads=heads).ok != (what == "none"):
            missed.append(what)
        seen.store.close()
    assert missed == []
    assert kinds == {"none", "rollback", "replay", "column", "delete", "cut", "rewrite", "table", "tree"}


def restore(drawn, older, victim, kind):
    """Puts an older copy back; a replay then charges the same again, as often as was charged since, or more."""
    at = drawn.randrange(len(older))
    shutil.copyfile(older[at], victim)
    shutil.copyfile(heads_path(older[at]), heads_path(victim))
    if kind == "replay":
        book = Book(open_store(str(victim)))
        for i in range(at, len(older) + drawn.randrange(2)):
            charge(book, "GH"[i % 2])
        book.store.close()
    return kind, at


def attack(raw, drawn, entries, columns):
    for verb in ("update", "delete"):
        raw.execute(f"DROP TRIGGER entry_no_{verb}")
    kind = drawn.choice(["column", "delete", "cut", "rewrite", "table", "tree"])
    dataset, seq = drawn.choice(entries)
    where = f"WHERE dataset = '{dataset}' AND seq = {seq}"
    if kind == "column":
        name = drawn.choice([one for one in columns if one != "dataset"])
        (old,) = raw.execute(f"SELECT {name} FROM entry {where}").fetchone()
        new = old + 1000 if isinstance(old, int) else f"{old or ''}x"
        raw.execute(f"UPDATE entry SET {name} = ? {where}", (new,))
        return kind, (kind, dataset, seq, name)
    if kind == "delete":
        raw.execute(f"DELETE FROM entry {where}")
    elif kind == "cut":
        raw.execute(f"DELETE FROM entry WHERE dataset = '{dataset}' AND seq >= {seq}")
        raw.execute("DELETE FROM tree")
        if dataset == REGISTRY:  # and the tables, as they were then
            raw.execute("DELETE FROM token WHERE name = 'eve'")
    elif kind == "rewrite":
        rewrite(raw, drawn, dataset, seq)
    elif kind == "tree":
        rowid, value = drawn.choice(raw.execute("SELECT rowid, hash FROM tree").fetchall())
        raw.execute("UPDATE tree SET hash = ? WHERE rowid = ?", (value[::-1], rowid))
    else:
        return kind, (kind, change_table(raw, drawn))
    return kind, (kind, dataset, seq)


def rewrite(raw, drawn, dataset, seq):
    """Changes who wrote a row, and gives it and all after it the hashes that then belong to them."""
    from privcheck.ledger import rows

    names = "dataset, seq, kind, budget, charge, actor, request_key, held, lost, body, written_at, prev, hash"
    found = raw.execute(f"SELECT {names} FROM entry WHERE dataset = ? AND seq >= ? ORDER BY seq", (dataset, seq))
    prev = None
    for row in map(rows.parse_row, found.fetchall()):
        fields = {name: getattr(row, name) for name in row.__slots__ if name != "hash"}
        fields |= {"actor": f"mallory-{drawn.randrange(10)}"} if prev is None else {"prev": prev}
        prev = rows.seal(**fields).hash
        raw.execute(
            "UPDATE entry SET actor = ?, prev = ?, hash = ? WHERE dataset = ? AND seq = ?",
            (fields["actor"], fields["prev"], prev, dataset, row.seq),
        )
    raw.execute("DELETE FROM tree")


def change_table(raw, drawn):
    statement = drawn.choice([
        "UPDATE budget SET dataset = 'of-H' WHERE name = 'G'", "DELETE FROM budget WHERE name = 'H'",
        "INSERT INTO budget VALUES ('new', 'of-G')", "DELETE FROM dataset WHERE name = 'of-G'",
        "INSERT INTO dataset VALUES ('new')", "UPDATE token SET revoked = NULL", "UPDATE token SET role = 'officer'",
        "UPDATE token SET expires = '2099-01-01T00:00:00Z'", "UPDATE token SET hash = 'a' || hash",
        "UPDATE token SET grants = '[\"G\"]'", "DELETE FROM token WHERE name = 'eve'",
        "UPDATE meta SET value = '[\"of-H\"]' WHERE name = 'lost'", "UPDATE meta SET value = 'a' WHERE name = 'store'",
        f"UPDATE meta SET value = '{'a' * 64}' WHERE name = 'key'",
    ])  # fmt: skip
    raw.execute(statement)
    return statement


def test_a_push_keeps_a_place_that_proves_itself(path, opened, tmp_path):
    book, witness = opened(path), FileWitness(tmp_path / "heads.jsonl")

    def push(book=book):
        return push_heads(lambda kept: book.prove(OTTO, kept), witness)

    assert (len(push().heads), push().heads, push().unchanged) == (3, (), 3)
    copy(path, tmp_path / "old.db")
    for _ in range(3):
        charge(book)
        assert [head.dataset for head in push().heads] == ["of-G"]
    kept = Evidence.parse(witness.read())
    assert compare(kept, book.public_key(OTTO)).verdict == "consistent"
    assert book.verify(OTTO, heads=kept.heads).ok
    old, size = opened(tmp_path / "old.db"), Path(witness.path).stat().st_size
    told = push(old)
    assert told.heads == ()
    assert "2 rows exist: the chain was cut, or is an older copy" in told.problems[0]
    for _ in range(3):  # as many rows as there were, and others
        charge(old)
    assert "the chain was rewritten" in push(old).problems[0]
    assert Path(witness.path).stat().st_size == size
    with witness.path.open("a") as file:
        file.write('{"kind":"head","st')  # a push that was cut short was never acknowledged
    charge(book)
    assert len(push().heads) == 1
    assert compare(Evidence.parse(witness.read()), book.public_key(OTTO)).verdict == "consistent"


def test_heads_are_signed_where_nothing_can_be_written(path, opened, small):
    book = opened(path)
    for _ in range(9):
        charge(book)
    book.store.stop_writing("the disk is full")
    assert head_of(book).size == 11
    with pytest.raises(StoreError):
        charge(book)


def test_clocks_that_differ_by_minutes_accuse_nobody_and_hours_do(path, opened):
    book = opened(path)
    signer = book._known.signer(book.read)
    charge(book)
    head = head_of(book)
    drawn = random.Random("clocks")  # noqa: S311 - which times
    for _ in range(50):
        times = sorted(drawn.uniform(0, 3) for _ in range(6))
        sizes = [drawn.randint(1, 9) for _ in times]
        made = [
            replace(head, size=size, root=f"{size:064x}", at=write_time(later(head.at, hours=hours))).signed(signer)
            for hours, size in zip(times, sizes, strict=True)
        ]
        told = [
            one for one in compare(Evidence(heads=tuple(made)), book.public_key(OTTO)).problems if "rollback" in one
        ]
        wrong = [
            i for i in range(6) for j in range(i) if sizes[j] > sizes[i] and times[i] - times[j] > 5 / 60
        ]  # every pair, as the docs say it
        assert len(told) == len(set(wrong))


def test_a_long_row_of_pushes_is_consistent_and_any_other_head_in_it_is_found(path, opened):
    book = opened(path)
    evidence, receipts, key = [], [], book.public_key(OTTO)
    for _ in range(60):
        receipts.append(charge(book))
        before = evidence[-1].heads if evidence else ()
        evidence.append(book.prove(OTTO, Evidence(heads=before))[0])
    evidence.append(book.prove(OTTO, Evidence(receipts=tuple(receipts)))[0])
    joined = Evidence.join([*evidence, Evidence(receipts=tuple(receipts))])
    assert compare(joined, key).verdict == "consistent"
    for i in range(0, 59, 7):  # any one head that has other rows is found
        (mine,) = [one for one in evidence[i].heads if one.dataset == "of-G"]
        other = replace(mine, root="0" * 64).signed(book._known.signer(book.read))
        wrong = replace(joined, heads=tuple(other if one == mine else one for one in joined.heads))
        assert compare(wrong, key).verdict == "contradicted"
