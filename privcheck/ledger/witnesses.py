"""Second places that keep what the ledger says of itself: a file, an HTTP endpoint, a git repository's notes.

A witness need not be trusted to check anything, only to keep lines that are added: whoever reads them compares the
signed heads in them (`privcheck.ledger.heads`). It is worth as much as it is out of reach of who may write
the ledger.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from shutil import which
from typing import Any, Final, Protocol

from privcheck.errors import ParameterError, StoreError, hide_passwords
from privcheck.ledger.heads import Evidence, Head
from privcheck.support.files import write_through

_SECONDS: Final = 10.0  # of one request or command
_BYTES: Final = 64 * 2**20  # that are read
_REF: Final = "privcheck"  # of git notes
_GIT: Final = "git:"


class Witness(Protocol):
    """An external place for the ledger's heads.

    Attributes:
        url: Its URL, without secrets.
    """

    @property
    def url(self) -> str:
        """URL without secrets."""

    def push(self, lines: Sequence[str]) -> None:
        """Append lines, each one JSON; they are stored once this returns.

        Raises:
            StoreError: They may not be stored.
        """

    def read(self) -> str:
        """All lines that were ever pushed; empty if there are none.

        Raises:
            StoreError: They cannot be read.
        """


def open_witness(place: str) -> Witness:
    """Open the witness at a place: `https://…` (or http), `git:REPOSITORY`, or a file's path.

    Raises:
        ParameterError: The place is none of these.
    """
    if place.startswith(("http://", "https://")):
        return HttpWitness(place)
    if place.startswith(_GIT):
        return GitWitness(Path(place.removeprefix(_GIT)))
    if not place or "://" in place or "\0" in place:
        message = "expected a place as a file's path, https://host/path or git:REPOSITORY"
        raise ParameterError(f"{message}, got {hide_passwords(place)[:80]!r}", name="push", given=hide_passwords(place))
    return FileWitness(Path(place))


def read_evidence(witness: Witness) -> Evidence:
    """Read the evidence that a witness keeps.

    Raises:
        ParameterError: The content is not evidence.
        StoreError: The witness cannot be read.
    """
    text = witness.read()
    return Evidence.parse(text, name=witness.url) if text.strip() else Evidence()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """Result of a push.

    Attributes:
        place: URL of the witness.
        heads: The pushed heads: of chains that have grown since the last push.
        unchanged: Number of chains that have not grown.
        problems: Contradictions between the store and the witness, one sentence each; then nothing is pushed.
    """

    place: str
    heads: tuple[Head, ...]
    unchanged: int
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        heads = [head.to_dict() for head in self.heads]
        return {"place": self.place, "heads": heads, "unchanged": self.unchanged, "problems": list(self.problems)}


def push_heads(prove: Callable[[Evidence], tuple[Evidence, list[str]]], witness: Witness) -> Pushed:
    """Push the current heads, each with the proof that it follows the last one that the witness keeps.

    Args:
        prove: As `Book.prove`: the current heads, with proofs for the kept ones.
        witness: The destination.

    Raises:
        ParameterError: The content of the witness is not evidence.
        StoreError: The witness cannot be read or written, or no head can be made.
    """
    store = prove(Evidence())[0].heads[0].store
    last: dict[str, Head] = {}
    for head in read_evidence(witness).heads:
        if head.store == store and head.size >= (last[head.dataset].size if head.dataset in last else 0):
            last[head.dataset] = head
    found, problems = prove(Evidence(heads=tuple(last.values())))
    new = [head for head in found.heads if head.dataset not in last or head.size > last[head.dataset].size]
    if problems:
        return Pushed(place=witness.url, heads=(), unchanged=0, problems=tuple(problems))
    proofs = tuple(one for one in found.consistency if one.first < one.second)
    if new:
        witness.push(Evidence(heads=tuple(new), consistency=proofs).lines())
    return Pushed(place=witness.url, heads=tuple(new), unchanged=len(found.heads) - len(new), problems=())


@dataclass(frozen=True, slots=True)
class FileWitness:
    """Lines of a file, best on another disk; each push is on the disk before it is acknowledged."""

    path: Path

    @property
    def url(self) -> str:
        """Path of the file."""
        return str(self.path)

    def push(self, lines: Sequence[str]) -> None:
        """Append lines."""
        try:
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)
            with os.fdopen(descriptor, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                kept = _whole(file.read())
                os.ftruncate(descriptor, len(kept))
                if kept and not kept.endswith(b"\n"):
                    file.write(b"\n")
                file.write("".join(f"{line}\n" for line in lines).encode())
                file.flush()
                os.fsync(descriptor)
            if new:
                write_through(self.path.parent)
        except OSError as error:
            raise StoreError(f"{self.url}: heads cannot be kept there: {error.strerror}") from error

    def read(self) -> str:
        """Read the file's text, without an incomplete last line."""
        try:
            with self.path.open("rb") as file:
                data = file.read(_BYTES + 1)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise StoreError(f"{self.url}: heads cannot be read there: {error.strerror}") from error
        return _decode(data if len(data) > _BYTES else _whole(data), self.url)


@dataclass(frozen=True, slots=True)
class HttpWitness:
    """HTTP endpoint: POST appends the lines of its body (`application/jsonl`), GET returns all lines."""

    address: str

    @property
    def url(self) -> str:
        """The address, without a password."""
        return hide_passwords(self.address)

    def push(self, lines: Sequence[str]) -> None:
        """Send lines."""
        body = "".join(f"{line}\n" for line in lines).encode()
        headers = {"Content-Type": "application/jsonl"}
        self._ask(urllib.request.Request(self.address, data=body, headers=headers, method="POST"))  # noqa: S310 - checked

    def read(self) -> str:
        """Fetch all lines."""
        return _decode(self._ask(urllib.request.Request(self.address)), self.url)  # noqa: S310 - checked

    def _ask(self, request: urllib.request.Request) -> bytes:
        until, data = time.monotonic() + _SECONDS, bytearray()
        opener = urllib.request.build_opener(_NoRedirect())
        try:
            with opener.open(request, timeout=_SECONDS) as answer:
                while part := answer.read1(2**16):
                    data += part
                    if time.monotonic() > until or len(data) > _BYTES:
                        message = f"{self.url}: no answer of at most {_BYTES} bytes within {_SECONDS:g} s"
                        raise StoreError(message)
        except urllib.error.HTTPError as error:
            with error:
                raise StoreError(
                    f"{self.url}: heads were not accepted or returned: {error.code} {error.reason}"
                ) from error
        except (OSError, HTTPException, ValueError) as error:
            said = str(getattr(error, "reason", error))[:200]
            raise StoreError(f"{self.url}: cannot be reached: {said}") from error
        return bytes(data)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """HTTP handler that follows no redirect, so that heads are stored only at the given address."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse a redirect."""


@dataclass(frozen=True, slots=True)
class GitWitness:
    """Notes of a git repository, under `refs/notes/privcheck`: each push is a note on the HEAD commit of that moment.

    `git push ORIGIN refs/notes/privcheck` copies them; every clone that fetches them is a witness.
    """

    repository: Path

    @property
    def url(self) -> str:
        """The repository, with the prefix `git:`."""
        return f"{_GIT}{self.repository}"

    def push(self, lines: Sequence[str]) -> None:
        """Append a note to HEAD."""
        self._run("notes", f"--ref={_REF}", "append", "--file=-", "HEAD", given="".join(f"{line}\n" for line in lines))

    def read(self) -> str:
        """The text of all notes."""
        noted = [line.split()[0] for line in self._run("notes", f"--ref={_REF}", "list").splitlines() if line.strip()]
        return "\n".join(self._run("cat-file", "blob", one) for one in dict.fromkeys(noted))

    def _run(self, *arguments: str, given: str = "") -> str:
        program = which("git")
        if program is None:
            raise StoreError(f"{self.url}: git is not installed")
        command = [program, "-C", str(self.repository), *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and its arguments are ours
                command, input=given.encode(), capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"{self.url}: git did not answer: {str(error)[:200]}") from error
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())[:200]
            raise StoreError(f"{self.url}: git refused: {said}")
        return _decode(done.stdout, self.url)


def _whole(data: bytes) -> bytes:
    """Lines of a file without a last line of an interrupted push, which was never acknowledged."""
    start = data.rfind(b"\n") + 1
    if not data[start:].startswith(b"{"):
        return data
    try:
        json.loads(data[start:])
    except ValueError:
        return data[:start]
    return data


def _decode(data: bytes, url: str) -> str:
    """Decode the text of lines.

    Raises:
        StoreError: The data are too long, or are not UTF-8 text.
    """
    if len(data) > _BYTES:
        raise StoreError(f"{url}: it is longer than {_BYTES} bytes; start a new place, and keep this one")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise StoreError(f"{url}: expected lines of JSON, got bytes that are not text") from None
