"""What others can check of a ledger, as scripts see it: keys, receipts, heads, proofs, and places that keep them."""

import json
import shlex
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

import budget_stores
from privcheck.cli import main
from privcheck.errors import ParameterError, StoreError
from privcheck.ledger import Actor, Book, create_store, open_store
from privcheck.ledger.signing import receipt_text
from privcheck.ledger.values import Receipt
from privcheck.ledger.witnesses import HttpWitness, open_witness, push_heads, read_evidence

OTTO = Actor(name="otto", role="officer")
EVENT = {"type": "gaussian", "rho": "0.01"}


def run(*arguments, code=0):
    result = CliRunner().invoke(main.main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.stdout


def ask(*arguments, code=0):
    return json.loads(run(*arguments, "--json", code=code))


@pytest.fixture
def book(tmp_path):
    book = budget_stores.begin(str(tmp_path / "budget.db"))
    yield book
    book.store.close()


@pytest.fixture
def kept(book, tmp_path):
    """A folder with the ledger's key, and a charge as it was printed."""
    (tmp_path / "ledger.pem").write_text(run("ledger", "key", "--store", tmp_path / "budget.db"))
    charge = ask(
        "ledger",
        "charge",
        "--store",
        tmp_path / "budget.db",
        "--grant",
        "G",
        "--gaussian-rho",
        "0.01",
        "--unit",
        "dataset",
    )
    (tmp_path / "charge.json").write_text(json.dumps(charge))
    return tmp_path


def test_the_receipt_of_an_earlier_charge_is_signed_again(kept):
    charged = json.loads((kept / "charge.json").read_text())
    shown = ask("ledger", "show", "--store", kept / "budget.db", "--charge", charged["id"])
    assert shown["receipt"] == charged["receipt"]


def test_a_receipt_is_verified_without_the_ledger(kept):
    shutil.rmtree(kept / "nothing", ignore_errors=True)
    (kept / "budget.db").rename(kept / "elsewhere.db")
    check = ("ledger", "receipt", "verify")
    assert run(*check, kept / "charge.json", "--key", kept / "ledger.pem").startswith("OK: ")
    receipt = json.loads((kept / "charge.json").read_text())["receipt"]
    (kept / "several.jsonl").write_text(f"{json.dumps(receipt)}\n\n{json.dumps({'receipt': receipt})}\n")
    assert ask(*check, kept / "several.jsonl", "--key", kept / "ledger.pem")["receipts"] == 2
    for change in (
        {"seq": 4},
        {"hash": "0" * 64},
        {"at": "2026-01-01T00:00:00.000000Z"},
        {"dataset": "of-H"},
        {"signature": ""},
    ):
        (kept / "wrong.json").write_text(json.dumps({**receipt, **change}))
        told = ask(*check, kept / "wrong.json", "--key", kept / "ledger.pem", code=1)
        assert told["verdict"] == "contradicted"
    (kept / "old.json").write_text(
        json.dumps({name: receipt[name] for name in ("dataset", "seq", "hash", "at")} | {"signature": "0" * 64})
    )
    told = ask(*check, kept / "old.json", "--key", kept / "ledger.pem", code=3)
    assert "only the store can check it" in told["missing"][0]
    for name, text in (("no.json", "{}"), ("no.json", "")):
        (kept / name).write_text(text)
        ask(*check, kept / name, "--key", kept / "ledger.pem", code=2)
    assert (
        "expected an Ed25519 public key"
        in ask(*check, kept / "charge.json", "--key", kept / "charge.json", code=2)["message"]
    )


def lines_of(mark):
    """The commands between two marks of docs/ledger.md, with the exit code that each promises."""
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
    block = page.split(f"<!-- {mark} -->")[1].split("<!-- end")[0]
    for line in block.splitlines():
        if line.startswith("$ "):
            command, _, code = line.removeprefix("$ ").partition("  # exit code ")
            yield command, int(code or 0)


def follow(mark, folder, monkeypatch):
    """Runs the commands of the page; returns what the last one said."""
    monkeypatch.chdir(folder)
    said = ""
    for command, code in lines_of(mark):
        words = shlex.split(command)
        if words[0] == "privcheck":
            words, target = (words[:-2], words[-1]) if words[-2] == ">" else (words, None)
            said = run(*words[1:], code=code)
            if target is not None:
                Path(target).write_text(said)
        else:
            done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
            assert done.returncode == code, done.stderr
            said = done.stdout
    return said


def test_the_page_on_what_can_be_checked_runs(tmp_path, monkeypatch):
    assert "no problems found" in follow("witness", tmp_path, monkeypatch)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_receipt_is_verified_by_openssl(kept, monkeypatch):
    assert follow("openssl", kept, monkeypatch).strip() == "Signature Verified Successfully"
    text = (kept / "text").read_text()
    (kept / "text").write_text(text.replace("seq: 3", "seq: 4"))
    (*_, (command, _)) = lines_of("openssl")
    assert subprocess.run(["/bin/sh", "-c", command], cwd=kept, capture_output=True, check=False).returncode != 0


def test_heads_are_printed_compared_and_proved(kept, book):
    url, key = kept / "budget.db", kept / "ledger.pem"
    (kept / "first.jsonl").write_text(run("ledger", "heads", "show", "--store", url))
    book.charge(OTTO, grant="G", unit="dataset", event=EVENT)
    (kept / "second.jsonl").write_text(run("ledger", "heads", "show", "--store", url))
    compare = (
        "ledger",
        "heads",
        "compare",
        kept / "first.jsonl",
        kept / "second.jsonl",
        kept / "charge.json",
        "--key",
        key,
    )
    assert len(ask(*compare, code=3)["missing"]) == 2
    asked = ("ledger", "heads", "prove", "--from", kept / "first.jsonl", "--from", kept / "charge.json", "--store", url)
    (kept / "proofs.jsonl").write_text(run(*asked))
    assert run(*compare, "--proofs", kept / "proofs.jsonl").startswith("OK: ")
    assert ask("ledger", "verify", "--store", url, "--heads", kept / "first.jsonl")["ok"]
    told = ask("ledger", "heads", "push", kept / "x", "--store", "https://127.0.0.1:1", code=2)
    assert "a service pushes its heads itself" in told["message"]
    ask("ledger", "heads", "compare", kept / "not-there.jsonl", "--key", key, code=2)
    ask("ledger", "verify", "--store", url, "--heads", kept / "not-there.jsonl", code=2)
    ask("ledger", "verify", "--store", url, "--heads", kept / "first.jsonl", "--accept", code=2)


def test_an_older_copy_is_shown_by_a_place_and_pushes_nothing(kept, book):
    """The way that no mark shows: file and marks put back at once, while nobody has the ledger open."""
    url, place = kept / "budget.db", kept / "place.jsonl"
    book.store.close()
    for name in ("budget.db", "budget.db.heads"):
        shutil.copyfile(kept / name, kept / f"{name}.old")
    again = Book(open_store(str(url)))
    again.charge(OTTO, grant="G", unit="dataset", event=EVENT)
    again.store.close()
    assert ask("ledger", "heads", "push", place, "--store", url)["unchanged"] == 0
    before = place.read_text()
    for name in ("budget.db", "budget.db.heads"):
        shutil.copyfile(kept / f"{name}.old", kept / name)
    assert ask("ledger", "verify", "--store", url)["ok"]  # by itself it looks sound
    told = ask("ledger", "verify", "--store", url, "--heads", place, code=1)
    assert "of-G, head of 4 rows" in told["problems"][0]
    assert ask("ledger", "heads", "push", place, "--store", url, code=1)["problems"]
    assert ask("ledger", "heads", "prove", "--from", place, "--store", url, code=1)["problems"]
    assert place.read_text() == before


class Keeping(BaseHTTPRequestHandler):
    """A witness over HTTP: keeps what is posted, gives it back; `/elsewhere` redirects, `/broken` fails."""

    lines = b""

    def do_POST(self):
        if self.path == "/heads":
            type(self).lines += self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b"")

    def do_GET(self):
        self._answer(self.lines)

    def _answer(self, body):
        status = {"/heads": 200, "/elsewhere": 302}.get(self.path, 500)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "file:///etc/passwd")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


@contextmanager
def keeping():
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Kept", (Keeping,), {}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def repository(folder):
    """A git repository with one commit, whose author is told."""
    folder.mkdir()
    for arguments in (
        ("init", "--quiet"), ("config", "user.name", "w"), ("config", "user.email", "w@example.org"),
        ("commit", "--quiet", "--allow-empty", "-m", "a place for heads"),
    ):  # fmt: skip
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)
    return f"git:{folder}"


@pytest.mark.parametrize("kind", ["file", "http", "git"])
def test_every_kind_of_place_keeps_what_is_pushed(kept, book, kind):
    with keeping() as url:
        place = {"file": str(kept / "place.jsonl"), "http": f"{url}/heads"}.get(kind) or repository(kept / "notes")
        witness = open_witness(place)
        assert read_evidence(witness).heads == ()
        for count in (3, 1, 1):
            assert len(push_heads(lambda known: book.prove(OTTO, known), witness).heads) == count
            book.charge(OTTO, grant="G", unit="dataset", event=EVENT)
        assert len(read_evidence(witness).heads) == 5
        compared = ("ledger", "heads", "compare", place, "--key", kept / "ledger.pem")
        assert ask(*compared)["verdict"] == "consistent"
        assert ask("ledger", "verify", "--store", kept / "budget.db", "--heads", place)["ok"]


def test_a_place_that_cannot_keep_or_give_says_so(kept, tmp_path):
    with keeping() as url:
        for path in ("/elsewhere", "/broken"):  # a redirect is not followed, whereto it may be
            for act in (lambda witness: witness.read(), lambda witness: witness.push(["{}"])):
                with pytest.raises(StoreError, match=r"heads were not accepted or returned: (302|500)"):
                    act(HttpWitness(f"{url}{path}"))
    with pytest.raises(StoreError, match="cannot be reached"):
        HttpWitness(f"{url}/heads").read()
    with pytest.raises(StoreError, match="git refused"):
        open_witness(f"git:{tmp_path}").read()
    with pytest.raises(StoreError, match="cannot be kept there"):
        open_witness(str(tmp_path)).push(["{}"])
    for place in ("", "ftp://host/path", "file:///x"):
        with pytest.raises(ParameterError, match="expected a place"):
            open_witness(place)
    shown = HttpWitness("https://ann:secret@127.0.0.1:1/heads")
    with pytest.raises(StoreError) as caught:
        shown.read()
    assert "secret" not in str(caught.value)


def test_without_the_library_nothing_is_written_that_would_have_to_be_signed(tmp_path, monkeypatch):
    book = budget_stores.begin(str(tmp_path / "budget.db"))
    reserved = book.reserve(OTTO, grant="G", unit="dataset", event=EVENT).charge
    rows = book.verify(OTTO).rows
    monkeypatch.setitem(sys.modules, "cryptography", None)
    other = Book(open_store(str(tmp_path / "budget.db")))
    for write in (
        lambda: other.charge(OTTO, grant="G", unit="dataset", event=EVENT),
        lambda: other.reserve(OTTO, grant="G", unit="dataset", event=EVENT),
        lambda: other.commit(OTTO, reserved),
        lambda: other.release(OTTO, reserved, evidence="nothing ran"),
        lambda: other.heads(OTTO),
        lambda: Book.init(create_store(str(tmp_path / "new.db"))),
    ):
        with pytest.raises(StoreError, match=r"pip install 'privcheck\[ledger\]'"):
            write()
    shown = other.show(OTTO, "of-G")["datasets"][0]
    assert shown["head"]["signature"] is None
    assert shown["head"]["seq"] == 3
    assert (other.verify(OTTO).ok, other.verify(OTTO).rows) == (True, rows)
    told = ask("ledger", "init", "--store", tmp_path / "third.db", code=2)
    assert "privcheck[ledger]" in told["message"]
    assert not (tmp_path / "third.db").exists()
    for one in (book, other):
        one.store.close()


def test_what_a_receipt_signs_is_as_documented():
    """The text is an interface: other programs write it themselves."""
    receipt = Receipt(dataset="trips", seq=3, hash="ab" * 32, at="2026-11-24T00:59:03.465498Z")
    assert receipt_text("cd" * 16, receipt) == (
        f"privcheck ledger receipt v1\nstore: {'cd' * 16}\ndataset: trips\nseq: 3\nhash: {'ab' * 32}\n"
        "at: 2026-11-24T00:59:03.465498Z\n"
    )


def test_nothing_of_it_is_imported_before_it_is_needed():
    code = "import sys, privcheck, privcheck.cli.main, privcheck.ledger; print('cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
