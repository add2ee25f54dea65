"""`privcheck serve` from outside: an empty folder becomes a ledger, and unsafe addresses are refused."""

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from fractions import Fraction

import pytest
from click.testing import CliRunner

from page_visits import Guest, read
from privcheck.cli import demo, serve
from privcheck.cli.main import main
from privcheck.errors import ParameterError
from privcheck.ledger import Actor, Book, create_store


def test_import_and_help_need_no_web_framework():
    code = "import sys, privcheck, privcheck.cli.main; print({'fastapi', 'uvicorn', 'pydantic'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "ledger.example.org"])  # noqa: S104
def test_other_addresses_need_tls_or_a_proxy(host):
    with pytest.raises(ParameterError, match="clear text"):
        serve.check_address(host, tls=False, behind_proxy=False)
    serve.check_address(host, tls=True, behind_proxy=False)
    serve.check_address(host, tls=False, behind_proxy=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_neither(host):
    serve.check_address(host, tls=False, behind_proxy=False)


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "fastapi" else object())
    told = CliRunner().invoke(main, ["serve"])
    assert told.exit_code == 2
    assert "pip install 'privcheck[service]'" in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1


def test_an_empty_folder_becomes_a_ledger_and_ends_when_told(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "privcheck", "serve", "--port", str(port)]
    tokens = []
    for _ in range(2):
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert ask(f"http://127.0.0.1:{port}/v1/readyz", token=None) == 200
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                _, said = process.communicate(timeout=30)
                assert time.monotonic() - began < 20
            finally:
                process.kill()
        assert "Traceback" not in said
        tokens.append(re.findall("privcheck_[A-Za-z0-9_-]{43}", said))
    assert [len(found) for found in tokens] == [1, 0]  # told once
    assert (tmp_path / "ledger.db").stat().st_mode & 0o077 == 0


def test_the_demonstration_is_a_ledger_whose_chains_fit_together(tmp_path):
    store = create_store(str(tmp_path / "demo.db"))
    book, _ = Book.init(store)
    demo.fill(book)
    officer = Actor(name="officer", role="officer")
    assert book.verify(officer).ok
    shown = book.show(officer)["datasets"]
    assert [one["name"] for one in shown] == ["ads", "icu-stays", "trips"]
    balances = [grant["balance"] for one in shown for grant in one["grants"]]
    assert all(Fraction(balance["committed"]) > 0 and Fraction(balance["free"]) > 0 for balance in balances)
    assert sum(Fraction(balance["reserved"]) > 0 for balance in balances) == 2  # one runs, one has expired
    assert sum(balance["state"] == "frozen" for balance in balances) == 1
    assert {grant["kind"] for one in shown for grant in one["grants"]} == {"adaptive", "plan"}
    charges = [charge for one in shown for charge in book.charges(officer, one["name"])]
    assert {charge.state for charge in charges} == {"reserved", "committed", "released"}
    assert sum(charge.expired for charge in charges) == 1
    store.close()


def test_the_demonstration_is_served_and_its_token_opens_the_page(tmp_path):
    command = [sys.executable, "-m", "privcheck.cli.demo", str(tmp_path / "demo"), "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = ""
            while "Uvicorn running on" not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            token = re.search("privcheck_[A-Za-z0-9_-]{43}", said)[0]
            guest = Guest(re.search(r"running on (http://127\.0\.0\.1:\d+)", said)[1])
            assert guest.log_in(token).headers["location"] == "/"
            assert [one.text() for one in read(guest.get("/")).all("h2")] == ["ads", "icu-stays", "trips"]
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
        finally:
            process.kill()


def ask(url, *, token, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
                return answer.status
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
