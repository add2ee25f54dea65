"""`privcheck serve` from end to end: with TLS of its own, behind a proxy that ends TLS, and over PostgreSQL."""

import http.client
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

import budget_stores
from privcheck.cli.main import main
from privcheck.errors import StoreError
from privcheck.ledger import Actor, Book, create_store, open_store
from privcheck.ledger.client import Client

EVENT = {"type": "gaussian", "rho": "0.01"}
OFFICER = Actor(name="officer", role="officer")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of 127.0.0.1 that is its own authority, and its key."""
    assert shutil.which("openssl"), "expected the program openssl, which makes a certificate: apt install openssl"
    folder = tmp_path_factory.mktemp("tls")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-days", "2", "-subj", "/CN=ledger", "-addext", "subjectAltName=IP:127.0.0.1"]
    where = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*made, *named, *where], check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@contextmanager
def serve(*options):
    """Yields the port at which the command serves, and a list that has its log once it has ended."""
    log = []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "privcheck", "serve", "--port", str(port), *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end:
                with socket.socket() as line:
                    if line.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            assert process.poll() is None, process.stdout.read()
            yield port, log
            process.send_signal(signal.SIGTERM)
            log += process.communicate(timeout=30)[0].splitlines()
            assert not [line for line in log if "Traceback" in line]
        finally:
            process.kill()


def read(line):
    """Returns an answer that was read to its end, so that its socket is closed with the line."""
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer


def make(url):
    book, token = Book.init(create_store(url))
    budget_stores.grant(book, book.find_actor(token), name="G", dataset="D", currency="rho", cap="1", delta="1e-6")
    book.store.close()
    return token


def test_tls_from_end_to_end(certificate, tmp_path, monkeypatch):
    cert, key = certificate
    url = f"sqlite:///{tmp_path}/ledger.db"
    token = make(url)
    with serve("--store", url, "--host", "0.0.0.0", "--tls-cert", cert, "--tls-key", key) as (port, _):  # noqa: S104
        base = f"https://127.0.0.1:{port}"
        trusting = Client(base, token, context=ssl.create_default_context(cafile=cert))
        assert trusting.charge(grant="G", unit="dataset", event=EVENT)["state"] == "committed"
        began = time.monotonic()
        with pytest.raises(StoreError, match=r"certificate is not trusted .* SSL_CERT_FILE"):
            Client(base, token).charge(grant="G", unit="dataset", event=EVENT)
        assert time.monotonic() - began < 2  # asking again does not change it
        elsewhere = Client(f"https://localhost:{port}", token, context=ssl.create_default_context(cafile=cert))
        with pytest.raises(StoreError, match=r"mismatch|not valid for"):
            elsewhere.charge(grant="G", unit="dataset", event=EVENT)
        with pytest.raises(StoreError):
            Client(f"http://127.0.0.1:{port}", token, attempts=1).show()
        line = http.client.HTTPSConnection("127.0.0.1", port, context=ssl.create_default_context(cafile=cert))
        line.request("GET", "/login")
        answer = read(line)
        assert all("Secure" in value for name, value in answer.getheaders() if name.lower() == "set-cookie")
        monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", token)
        asked = ["ledger", "charge", "--store", base, "--grant", "G", "--unit", "dataset"]
        asked += ["--gaussian-rho", "0.01", "--json"]
        refused = CliRunner().invoke(main, asked)
        assert (refused.exit_code, json.loads(refused.stdout)["error"]) == (2, "store")
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        told = CliRunner().invoke(main, asked)
        assert json.loads(told.stdout)["remaining"] == "0.98", told.output


class Proxy:
    """A proxy that ends nothing but says that it has: it adds from where and how a request came."""

    def __init__(self, port):
        self.to, self.socket, self.open = port, socket.create_server(("127.0.0.1", 0)), []
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.hand_on, args=(client,), daemon=True).start()

    def hand_on(self, client):
        with client, socket.create_connection(("127.0.0.1", self.to), timeout=20) as service:
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            said = {line.split(b":")[0].lower(): line.split(b":", 1)[1].strip() for line in head.split(b"\r\n")[1:]}
            while len(body) < int(said.get(b"content-length", 0)):
                body += client.recv(65536)
            more = [b"X-Forwarded-For: 192.0.2.7", b"X-Forwarded-Proto: https", b"Connection: close"]
            kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            service.sendall(b"\r\n".join([*kept, *more, b"", body]))
            while told := service.recv(65536):
                client.sendall(told)

    def close(self):
        self.socket.close()


def test_behind_a_proxy_from_end_to_end(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    token = make(url)
    refused = CliRunner().invoke(main, ["serve", "--store", url, "--host", "0.0.0.0"])  # noqa: S104
    assert refused.exit_code == 2
    assert "clear text" in refused.stderr
    with serve("--store", url, "--behind-proxy") as (port, log):
        proxy = Proxy(port)
        client = Client(f"http://127.0.0.1:{proxy.port}", token, attempts=1)
        assert client.charge(grant="G", unit="dataset", event=EVENT)["remaining"] == "0.99"

        line = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
        line.request("GET", "/login", headers={"Accept": "text/html"})
        answer = read(line)
        assert answer.status == 200
        assert all("Secure" in cookie for cookie in answer.headers.get_all("set-cookie") or [])
        proxy.close()
    assert any("192.0.2.7" in line and "/login" in line for line in log)  # from where it came, for limits too


def test_without_the_flag_nobody_says_from_where_requests_come(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    make(url)
    with serve("--store", url) as (port, log):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        line.request("GET", "/v1/healthz", headers={"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "https"})
        assert read(line).status == 200
    assert any("/v1/healthz" in line for line in log)
    assert not any("198.51.100.1" in line for line in log)


def test_postgresql_is_served_from_end_to_end(postgres, monkeypatch):
    url = postgres.new()
    with serve("--store", url):  # made by the service
        pass
    book = Book(open_store(url))
    officer = next(one for one in book.list_tokens(OFFICER) if one["name"] == "officer")
    assert officer["role"] == "officer"
    token = book.make_token(OFFICER, name="otto", role="officer")
    book.store.close()
    with serve("--store", url) as (port, _):
        monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", token)
        base = f"http://127.0.0.1:{port}"
        given = ["--dataset", "D", "--currency", "rho", "--cap", "1", "--delta", "1e-6", "--name", "G"]
        policy = ["--dataset", "D", "--epsilon", "8", "--delta", "1e-6", "--unit", budget_stores.UNIT]
        spent = ["--grant", "G", "--unit", "dataset", "--gaussian-rho", "0.25", "--key", "K"]
        for asked in (["policy", *policy], ["grant", *given], ["charge", *spent]):
            told = CliRunner().invoke(main, ["ledger", *asked, "--store", base, "--json"])
            assert told.exit_code == 0, told.output
        assert json.loads(told.stdout)["remaining"] == "0.75"
        end = time.monotonic() + 60
        while True:
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            line.request("GET", "/v1/readyz")
            status = read(line).status
            if status == 200 or time.monotonic() > end:
                break
            time.sleep(0.2)
        assert status == 200
    assert Book(open_store(url)).verify(OFFICER).rows == 3
