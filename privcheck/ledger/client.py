"""Client of `privcheck serve`, with the standard library alone: all operations of the ledger over HTTP.

A write with an unknown outcome (no answer, 503) is repeated with the same idempotency key, so that it is done once.
Answers are dicts with the fields of `to_dict()`; a refusal is an answer with the `state` "refused".
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import secrets
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from privcheck.errors import (
    AuthorityError,
    BudgetError,
    IdempotencyError,
    ParameterError,
    PrivcheckError,
    StateError,
    StoreError,
    UnknownNameError,
    hide_passwords,
)
from privcheck.terms.unit import Unit, parse_unit

Json = dict[str, Any]
Stated = Unit | Mapping[str, Any] | str | None  # for whom something was priced, or "dataset"
_AGAIN: Final = frozenset({429, 502, 503, 504})
_LONGEST_WAIT: Final = 10.0
_MOST_BYTES: Final = 64 * 2**20
_KEY: Final = re.compile("[!-~]{1,200}")
_RECEIPTS: Final = 128  # of one request
_TURNS: Final = 100  # in which one waits for what takes a while; the service holds each for seconds
_OF_PROBLEMS: Final = ("type", "title", "status", "detail")


@dataclass(frozen=True, slots=True)
class Client:
    """A ledger behind a URL.

    Attributes:
        url: URL of the service, as "https://ledger.example.org".
        token: The caller's token.
        seconds: Time limit of one attempt, in seconds.
        attempts: Maximum number of attempts, with growing pauses.
        clear_text: Whether the token may be sent to another machine without TLS.
        context: TLS settings, for a private certificate.
        sleep: Waits between attempts.

    Raises:
        ParameterError: The URL or the token is invalid, or the token would be sent in clear text.
    """

    url: str
    token: str = field(repr=False)
    seconds: float = 15.0
    attempts: int = 6
    clear_text: bool = False
    context: ssl.SSLContext | None = field(default=None, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        parts = _split(self.url)
        if (
            parts is None or parts.scheme not in {"http", "https"} or not parts.hostname
            or parts.query or parts.fragment or "@" in parts.netloc
        ):  # fmt: skip
            message = f"expected the service's URL as https://host:port, got {hide_passwords(self.url)[:80]!r}"
            raise ParameterError(message, name="url", given=hide_passwords(self.url))
        if parts.scheme == "http" and not self.clear_text and not _is_here(parts.hostname):
            message = f"the token would travel to {parts.hostname} in clear text: give an https:// URL"
            raise ParameterError(message, name="url", given=self.url)
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ParameterError("expected a token as printed by `privcheck ledger token`", name="token")

    def quote(
        self, *, grant: str, event: Mapping[str, Any], unit: Stated = None,
        blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        """Quote the cost of a charge, and whether it fits now; nothing is written. Arguments as of `charge`.

        Raises:
            AuthorityError: The token does not permit it.
            ParameterError: The event is invalid, has no finite cost in the grant's currency, or was priced for another
                unit than the dataset's.
            StoreError: There is no answer.
            UnknownNameError: There is no such grant.
        """
        return self._ask("POST", "/quotes", _spent(grant, event, unit=_plain_unit(unit), blocks=blocks))

    def charge(
        self, *, grant: str, event: Mapping[str, Any] | None = None, claim: str | None = None, key: str | None = None,
        unit: Stated = None, conditions: Sequence[str] | None = None,
        about: Mapping[str, Any] | None = None,
        blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        """Charge a release before its noise is drawn; draw the noise once the `state` is "committed".

        Args:
            grant: Name of the grant.
            event: The release, as JSON.
            claim: In its place, the name of a claim that holds.
            key: The idempotency key; by default a new one.
            unit: The unit for which the event was priced: a `Unit`, its JSON or its text; or "dataset", by which you
                state that it was priced for the dataset's unit. An event needs it; a claim has its own.
            conditions: For joint DP: the verified conditions of the billboard lemma.
            about: Description that is stored with the charge: algorithm, parameters, noise, record.
            blocks: Blocks of the grant, if the dataset is divided; by default all.

        Raises:
            AuthorityError: The token does not permit it.
            IdempotencyError: The key was used for another request.
            ParameterError: The event is invalid, has no finite cost in the grant's currency, or was priced for another
                unit than the dataset's.
            StoreError: It is unknown whether it was written: ask again with the same key.
            UnknownNameError: There is no such grant.
        """
        of = {"unit": _plain_unit(unit), "conditions": conditions, "about": about}
        body = _spent(grant, event, claim, **of, blocks=blocks)
        return self._ask("POST", "/charges", body, key=key or new_key())

    def reserve(
        self, *, grant: str, event: Mapping[str, Any] | None = None, claim: str | None = None, key: str | None = None,
        unit: Stated = None, conditions: Sequence[str] | None = None,
        about: Mapping[str, Any] | None = None, seconds: int = 3600, blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        """Reserve budget for a run; `commit` it before the first draw. Arguments and errors as of `charge`."""
        of = {"unit": _plain_unit(unit), "conditions": conditions, "about": about}
        spent = _spent(grant, event, claim, **of, blocks=blocks)
        body = {**spent, "seconds": seconds}
        return self._ask("POST", "/reservations", body, key=key or new_key())

    def commit(self, charge: str) -> Json:
        """Commit a reservation; draw the noise once the `state` is "committed".

        Raises:
            StateError: The reservation was released.
            UnknownNameError: There is no such charge.
        """
        return self._ask("POST", f"/reservations/{_part(charge)}/commit", key=new_key())

    def release(self, charge: str, *, evidence: str) -> Json:
        """Release a reservation of which no noise was drawn.

        Raises:
            AuthorityError: It has expired, and another officer has to attest.
            StateError: It was committed, which is never refunded.
        """
        return self._ask("POST", f"/reservations/{_part(charge)}/release", {"evidence": evidence}, key=new_key())

    def claim(self, algorithm: str, parameters: Mapping[str, str] | None = None) -> Json:
        """Ask for the verdict on an algorithm's claim; `state` is "running" until there is one."""
        return self._ask("POST", "/claims", {"algorithm": algorithm, "parameters": parameters or {}}, key=new_key())

    def add_evidence(self, charge: str, *, verdict: str, report: str) -> str:
        """Record an audit's finding on a charge, "consistent" or "violation"; returns the row's hash."""
        body = {"charge": charge, "verdict": verdict, "report": report}
        return str(self._ask("POST", "/evidence", body, key=new_key())["hash"])

    def find_charge(self, charge: str) -> Json:
        """Current state of a charge."""
        return self._ask("GET", f"/charges/{_part(charge)}")

    def find_receipt(self, value: str) -> Json:
        """Signed receipt of the row with a hash."""
        return self._ask("GET", f"/receipts/{_part(value)}")

    def show(self, dataset: str | None = None) -> Json:
        """Show all datasets, or one."""
        if dataset is None:
            return self._ask("GET", "/datasets")
        return {"datasets": [self._ask("GET", f"/datasets/{_part(dataset)}")]}

    def charges(self, dataset: str, *, after: int = 0) -> Json:
        """Page of a dataset's charges, and the start of the next one."""
        return self._ask("GET", f"/datasets/{_part(dataset)}/charges?{urlencode({'after': after})}")

    def export(self, kind: str = "statement", *, dataset: str | None = None) -> Json:
        """Export the guarantee ("statement"), or the charges ("dp-event").

        Raises:
            StoreError: The ledger is not read within `_TURNS` attempts, some ten minutes.
        """
        asked = {"as": kind, **({} if dataset is None else {"dataset": dataset})}
        return self._wait("GET", f"/export?{urlencode(asked)}")

    def set_policy(self, **fields: object) -> Json:
        """Open a dataset with its policy: dataset, epsilon, delta, unit, and the other fields of `Book.set_policy`.

        The unit is a `Unit`, its JSON or its text; the service records its author.
        """
        told = _plain_unit(fields.get("unit"))
        if isinstance(told, dict):
            told = {name: value for name, value in told.items() if name not in ("basis", "stated_by")}
        return self._ask("POST", "/datasets", {**fields, "unit": told}, key=new_key())

    def add_blocks(self, dataset: str, blocks: Sequence[str], *, disjoint_users: str | None) -> Json:
        """Divide a dataset into blocks, or add blocks; arguments and errors as of `Book.add_blocks`."""
        body = {"blocks": list(blocks), "disjoint_users": disjoint_users}
        return self._ask("POST", f"/datasets/{_part(dataset)}/blocks", body, key=new_key())

    def grant(self, **fields: object) -> Json:
        """Make a grant: name, dataset, delta, and currency and cap, or the events of a plan with their unit.

        Raises:
            BudgetError: The dataset's grants would exceed its policy.
        """
        told = {**fields, "unit": _plain_unit(fields["unit"])} if "unit" in fields else fields
        return self._ask("POST", "/grants", told, key=new_key())

    def find_grant(self, name: str) -> Json:
        """Grant, and the rest of its budget."""
        return self._ask("GET", f"/grants/{_part(name)}")

    def freeze(self, grant: str, *, reason: str) -> str:
        """Stop all spending on a grant, permanently; returns the row's hash."""
        return str(self._ask("POST", f"/grants/{_part(grant)}/freeze", {"reason": reason}, key=new_key())["hash"])

    def verify(self, receipts: Sequence[Mapping[str, Any]] = ()) -> Json:
        """Check the hashes and sums of the ledger, and that every row with a kept receipt is still there.

        Raises:
            StoreError: The ledger is not read within `_TURNS` attempts, some ten minutes.
        """
        parts = [receipts[at : at + _RECEIPTS] for at in range(0, len(receipts), _RECEIPTS)] or [()]
        found = [self._wait("POST", "/verify", {"receipts": [dict(one) for one in part]}) for part in parts]
        problems = list(dict.fromkeys(problem for one in found for problem in one["problems"]))
        return {**found[-1], "ok": not problems, "problems": problems}

    def public_key(self) -> Json:
        """Public key that checks receipts and heads: `key` in PEM, and its `fingerprint`."""
        return self._ask("GET", "/key")

    def heads(self) -> list[Json]:
        """Signed heads of all chains."""
        found: list[Json] = self._ask("GET", "/heads")["heads"]
        return found

    def accept(self, receipts: Sequence[Mapping[str, Any]] = (), *, freeze: bool = False) -> Json:
        """Make a store that was restored from a backup writable again, after comparing it with receipts.

        Args:
            receipts: Kept receipts, at most 128.
            freeze: Whether to proceed where rows are lost: the grants to which they may have been charged are frozen.

        Raises:
            ParameterError: There are too many receipts for one request.
        """
        if len(receipts) > _RECEIPTS:
            message = f"expected at most {_RECEIPTS} receipts over HTTP, got {len(receipts)}"
            raise ParameterError(f"{message}: the newest of each dataset, or use the store itself", name="receipts")
        body = {"receipts": [dict(one) for one in receipts], "freeze": freeze}
        return self._ask("POST", "/accept", body, key=new_key())

    def tokens(self) -> list[Json]:
        """List the tokens."""
        found: list[Json] = self._ask("GET", "/tokens")["tokens"]
        return found

    def make_token(self, *, name: str, role: str, grants: Sequence[str] = (), expires: str | None = None) -> str:
        """Create a token; this return value is the only time that it is shown."""
        body = {"name": name, "role": role, "grants": list(grants), "expires": expires}
        return str(self._ask("POST", "/tokens", body, key=new_key())["token"])

    def revoke_token(self, name: str) -> None:
        """Revoke a token."""
        self._ask("DELETE", f"/tokens/{_part(name)}", key=new_key())

    def _wait(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Json:
        """Ask until a long calculation has its answer."""
        for _ in range(_TURNS):
            told = self._ask(method, path, body)
            if told.get("state") != "running":
                return told
            self.sleep(1.0)
        raise StoreError(f"{self.url}: no answer yet; ask again")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None) -> Json:
        """Send a request; repeat it with the same key if there is no answer."""
        if key is not None and not _KEY.fullmatch(key):
            message = f"expected a key of 1 to 200 visible ASCII characters, without blanks, got {key[:80]!r}"
            raise ParameterError(message, name="key", given=key)
        problem = "no attempt was made"
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(min(0.1 * 2**attempt, _LONGEST_WAIT) * (0.5 + secrets.randbelow(1000) / 1000))
            try:
                status, told = self._once(method, path, body, key)
            except ssl.SSLCertVerificationError as error:  # asking again does not change it
                message = f"{self.url}: its certificate is not trusted ({error.verify_message}); expected the right"
                raise StoreError(f"{message} host, or SSL_CERT_FILE with the authority's certificate") from None
            except (OSError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            if status < 300:
                return told
            if status == 409 and told.get("state") == "refused":
                return {name: value for name, value in told.items() if name not in _OF_PROBLEMS}
            if status not in _AGAIN:
                raise _error(status, told)
            problem = str(told.get("detail", status))
        asked = "" if key is None else f"; it may have been written: ask again with the key {key!r}"
        raise StoreError(f"{self.url} did not answer {self.attempts} times: {problem}{asked}")

    def _once(self, method: str, path: str, body: Mapping[str, Any] | None, key: str | None) -> tuple[int, Json]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = self._connect(parts.scheme, parts.hostname, parts.port)
        try:
            data = None if body is None else json.dumps(body, allow_nan=False).encode()
            connection.request(method, f"{parts.path.rstrip('/')}/v1{path}", body=data, headers=headers)
            answer = connection.getresponse()
            read = answer.read(_MOST_BYTES)
            if answer.length:  # what was to come is not there, which is not told where one asks for so many bytes
                raise http.client.IncompleteRead(read, answer.length)
        finally:
            connection.close()
        return answer.status, _read(read)

    def _connect(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        if scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self.seconds)
        context = self.context or ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=self.seconds, context=context)


def _plain_unit(unit: object) -> object:
    """Unit of privacy in the service's format: its JSON, or the word "dataset"."""
    if isinstance(unit, str) and unit != "dataset":
        return {**parse_unit(unit, stated_by="the client").to_dict(), "stated_by": None}
    return unit.to_dict() if isinstance(unit, Unit) else unit


def new_key() -> str:
    """Create a new random idempotency key."""
    return secrets.token_hex(16)


def _spent(
    grant: str, event: Mapping[str, Any] | None, claim: str | None = None, *, blocks: Sequence[str] | None = None,
    **stated: Any,
) -> Json:  # fmt: skip
    of = {"blocks": None if blocks is None else list(blocks), **stated}
    told = {name: value for name, value in of.items() if value is not None}
    return {"grant": grant, **({"claim": claim} if event is None else {"event": event}), **told}


def _read(body: bytes) -> Json:
    """Parse an answer.

    Raises:
        HTTPException: The body is not the service's: a proxy's page, or a truncated answer.
    """
    try:
        told = json.loads(body)
    except ValueError as error:
        raise http.client.HTTPException(f"expected JSON: {error}") from None
    if not isinstance(told, dict):
        raise http.client.HTTPException(f"expected a JSON object, got {str(told)[:40]!r}")
    return told


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _part(name: str) -> str:
    """Quote a name as one segment of a path."""
    if not name or name in {".", ".."}:
        raise ParameterError(f"expected a name, got {name!r}", name="name", given=name)
    return quote(name, safe="")


def _error(status: int, told: Mapping[str, Any]) -> PrivcheckError:
    """Error that the library itself would have raised in the service."""
    if status < 400:
        return StoreError(f"expected the service's own URL: this one redirects (HTTP {status})")
    message, kind = str(told.get("detail", f"HTTP {status}")), str(told.get("error"))
    field = str((told.get("errors") or [{}])[0].get("field", ""))
    makers: Mapping[str, Callable[[], PrivcheckError]] = {
        "authority": lambda: AuthorityError(message, known=status == 403),
        "state": lambda: StateError(message, state=str(told.get("state", ""))),
        "budget": lambda: BudgetError(message, cost=None, remaining=told.get("remaining")),
        "unknown-name": lambda: _unknown(message),
        "idempotency": lambda: IdempotencyError(message),
    }
    if kind in makers:
        return makers[kind]()
    return ParameterError(message, name=field) if status < 500 else StoreError(message)


def _unknown(message: str) -> UnknownNameError:
    error = UnknownNameError("name", "", ())
    error.args = (message,)
    return error


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
