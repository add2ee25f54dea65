"""What may follow what: requests to spend become rows, or are refused and change nothing.

| state | written when | may become |
| --- | --- | --- |
| quoted | never | |
| reserved | budget is set aside for a run that is about to start | committed, released |
| committed | before the first draw of noise | nothing: never refunded |
| released | nothing was drawn: says who reserved it, while it runs; later an officer, with evidence | |

A reservation that has expired still counts as spent. A request with an idempotency key that was answered before is
answered the same; refusals write nothing and are decided anew. Whether something is refused depends on costs, caps and
states alone, never on data.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from privcheck.accounting.currencies import Cost
from privcheck.errors import (
    AuthorityError,
    IdempotencyError,
    LedgerError,
    ParameterError,
    StateError,
    UnknownNameError,
)
from privcheck.ledger import granting, rows, showing, tokens
from privcheck.ledger.answers import Charge, Decision, Quote, Receipt
from privcheck.ledger.deciding import (
    balance_of,
    check_relation,
    explain_refusal,
    how_often,
    less,
    lines_of,
    read_charge,
)
from privcheck.ledger.exact import canonical, digest, read_text
from privcheck.ledger.roles import Actor, require
from privcheck.ledger.store import Store, Transaction
from privcheck.ledger.values import Balance, Entry, Grant, Policy, describe_balance, read_cost, write_cost
from privcheck.ledger.wire import Spending, parse_event

SECONDS: Final = 3600  # of a reservation, unless told
_MOST_SECONDS: Final = 30 * 24 * 3600

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request to spend that was read, allowed and priced; what is left to ask is whether it fits.

    Attributes:
        actor: Who asks.
        grant: To which grant it is charged.
        policy: Of its dataset.
        spending: What is to be released.
        cost: What that costs.
        lines: Of a plan: how many of each event.
        key: The idempotency key, or None.
        state: Which state it is to have.
        seconds: How long a reservation runs.
        claim: What it is charged for, or None.
        request: The digest of all of this but the key.
    """

    actor: Actor
    grant: Grant
    policy: Policy
    spending: Spending
    cost: Cost
    lines: tuple[int, ...]
    key: str | None
    state: Literal["reserved", "committed"]
    seconds: int
    claim: dict[str, Any] | None
    request: str


class Book:
    """A ledger that is open: everything that can be asked of one, whoever asks, over whichever store.

    Args:
        store: Where it is kept.
        clock: What time it is.
    """

    def __init__(self, store: Store, *, clock: Clock | None = None) -> None:
        self.store = store
        self._clock = clock or (lambda: datetime.now(UTC))
        self._known: dict[str, tuple[Grant, Policy]] = {}  # neither ever changes
        self._key = ""

    @staticmethod
    def init(store: Store, *, clock: Clock | None = None) -> tuple[Book, str]:
        """Returns the book of a new store, and the first officer's token, which is told this once."""
        book = Book(store, clock=clock)
        with book.write() as transaction:
            tokens.make_key(transaction)
            token = tokens.make_token(
                transaction, name="officer", role="officer", grants=(), expires=None, by="init", at=book.now()
            )
        return book, token

    def now(self) -> str:
        """Returns the time, in UTC, as rows say it."""
        return granting.write_time(self._clock())

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Yields a transaction that may write; a row that does not fit its chain makes the store read-only."""
        try:
            with self.store.write() as transaction:
                yield transaction
        except LedgerError as error:
            self.store.stop_writing(str(error))
            raise

    def find_actor(self, token: str) -> Actor:
        """Returns whose token it is.

        Raises:
            AuthorityError: It is unknown, revoked or over.
        """
        with self.store.read() as transaction:
            return tokens.find_actor(transaction, token, now=self.now())

    def make_token(
        self, actor: Actor, *, name: str, role: str, grants: tuple[str, ...] = (), expires: object = None
    ) -> str:
        """Writes a token for somebody; returns it, for the one time that it can be told.

        Raises:
            AuthorityError: The actor may not.
            ParameterError: A field is out of its range.
        """
        require(actor, "token")
        end = None if expires is None else granting.read_time("expires", expires)
        with self.write() as transaction:
            return tokens.make_token(
                transaction, name=name, role=role, grants=grants, expires=end, by=actor.name, at=self.now()
            )

    def revoke_token(self, actor: Actor, name: str) -> None:
        """Ends a token.

        Raises:
            AuthorityError: The actor may not.
            ParameterError: There is none of the name.
        """
        require(actor, "token")
        with self.write() as transaction:
            tokens.revoke_token(transaction, name, now=self.now())

    def set_policy(self, actor: Actor, **fields: object) -> Policy:
        """Opens a dataset with its policy; the fields are those of `granting.read_policy`.

        Raises:
            AuthorityError: The actor may not.
            ParameterError: A field is out of its range, or the dataset has a policy.
        """
        require(actor, "policy")
        policy = granting.read_policy(**fields)
        with self.write() as transaction:
            granting.write_policy(transaction, policy, actor=actor.name, at=self.now())
        return policy

    def grant(self, actor: Actor, **fields: object) -> tuple[Grant, Policy]:
        """Makes an adaptive grant; the fields are those of `granting.read_adaptive`.

        Returns:
            The grant, and the policy of its dataset, which it has implied where the dataset was new.

        Raises:
            AuthorityError: The actor may not.
            BudgetError: The dataset's grants would exceed its policy; nothing was changed.
            ParameterError: A field is out of its range, or the name is taken.
        """
        require(actor, "grant")
        grant = granting.read_adaptive(**fields)
        with self.write() as transaction:
            return granting.write_grant(transaction, grant, actor=actor.name, at=self.now())

    def plan(self, actor: Actor, **fields: object) -> tuple[Grant, Policy]:
        """Makes a grant that is a plan; the fields are those of `granting.read_plan`.

        Returns:
            The grant, and the policy of its dataset, which it has implied where the dataset was new.

        Raises:
            AuthorityError: The actor may not.
            BudgetError: The dataset's grants would exceed its policy; nothing was changed.
            ParameterError: A field is out of its range, or the name is taken.
        """
        require(actor, "grant")
        grant = granting.read_plan(**fields)
        with self.write() as transaction:
            return granting.write_grant(transaction, grant, actor=actor.name, at=self.now())

    def quote(self, actor: Actor, *, grant: str, event: object) -> Quote:
        """Returns what a charge would cost, and whether it would fit now; writes nothing.

        Raises:
            AuthorityError: The actor may not.
            ParameterError: The event is none, or has no finite cost in the grant's currency.
            UnknownNameError: There is no such grant.
        """
        require(actor, "quote", grant=grant)
        spending = parse_event(event)
        found, policy = self._find(grant)
        cost = spending.cost(found.currency)
        with self.store.read() as transaction:
            balance = balance_of(transaction, grant)
        after = balance.add(found, cost, "committed").count(lines_of(found, spending))
        reason = explain_refusal(found, policy, balance, after, now=self.now())
        return Quote(
            grant=grant,
            event=spending.to_dict(),
            cost=cost,
            fits=reason is None,
            reason=reason,
            times=how_often(found, balance, spending, cost),
            balance=describe_balance(found, balance),
        )

    def charge(
        self, actor: Actor, *, grant: str, event: object, key: str | None = None, claim: dict[str, Any] | None = None
    ) -> Decision:
        """Charges what is about to be released; draw the noise once this has returned "committed".

        Raises:
            AuthorityError: The actor may not.
            IdempotencyError: The key came before, with another request.
            ParameterError: The event is none, or has no finite cost in the grant's currency.
            StoreError: It is not known whether it was written: ask again with the same key.
            UnknownNameError: There is no such grant.
        """
        prepared = self.prepare(actor, "charge", grant=grant, event=event, key=key, claim=claim)
        with self.write() as transaction:
            return self.apply(transaction, prepared)

    def reserve(
        self,
        actor: Actor,
        *,
        grant: str,
        event: object,
        key: str | None = None,
        seconds: int = SECONDS,
        claim: dict[str, Any] | None = None,
    ) -> Decision:
        """Sets budget aside for a run; `commit` it before the first draw.

        Raises:
            AuthorityError: The actor may not.
            IdempotencyError: The key came before, with another request.
            ParameterError: The event is none, or has no finite cost in the grant's currency.
            StoreError: It is not known whether it was written: ask again with the same key.
            UnknownNameError: There is no such grant.
        """
        prepared = self.prepare(actor, "reserve", grant=grant, event=event, key=key, seconds=seconds, claim=claim)
        with self.write() as transaction:
            return self.apply(transaction, prepared)

    def prepare(
        self,
        actor: Actor,
        action: Literal["charge", "reserve"],
        *,
        grant: str,
        event: object,
        key: str | None = None,
        seconds: int = SECONDS,
        claim: dict[str, Any] | None = None,
    ) -> Prepared:
        """Returns a request that was read, allowed and priced: all that can be wrong with it alone is told here.

        Raises:
            AuthorityError: The actor may not.
            ParameterError: The event is none, or has no finite cost in the grant's currency.
            UnknownNameError: There is no such grant.
        """
        require(actor, action, grant=grant)
        if type(seconds) is not int or not 1 <= seconds <= _MOST_SECONDS:
            message = f"expected seconds of a reservation from 1 to {_MOST_SECONDS}, got {seconds!r}"
            raise ParameterError(message, name="seconds", given=seconds)
        spending = parse_event(event)
        found, policy = self._find(grant)
        check_relation(policy, spending, claim)
        asked: dict[str, Any] = {"action": action, "grant": grant, "event": spending.to_dict(), "claim": claim}
        if action == "reserve":
            asked["seconds"] = seconds
        return Prepared(
            actor=actor,
            grant=found,
            policy=policy,
            spending=spending,
            cost=spending.cost(found.currency),
            lines=lines_of(found, spending),
            key=None if key is None else read_text("key", key),
            state="committed" if action == "charge" else "reserved",
            seconds=seconds,
            claim=claim,
            request=digest(canonical(asked)),
        )

    def apply(self, transaction: Transaction, prepared: Prepared) -> Decision:
        """Writes a prepared request, or refuses it; several may share a transaction of `write`.

        Raises:
            IdempotencyError: The key came before, with another request.
        """
        grant, key = prepared.grant, prepared.key
        transaction.lock(grant.dataset)
        if key is not None:
            earlier = rows.find_key(transaction, grant.name, prepared.actor.name, key)
            if earlier is not None and earlier.body["request"] != prepared.request:
                raise IdempotencyError(f"the key {key!r} was used for another request; expected a new key")
            if earlier is not None:
                return self._decide(transaction, grant, earlier)
        balance = balance_of(transaction, grant.name)
        after = balance.add(grant, prepared.cost, prepared.state).count(prepared.lines)
        reason = explain_refusal(grant, prepared.policy, balance, after, now=self.now())
        if reason is not None:
            return Decision(
                state="refused",
                grant=grant.name,
                charge=None,
                cost=prepared.cost,
                balance=describe_balance(grant, balance),
                reason=reason,
            )
        now = self._clock()
        ends = granting.write_time(now + timedelta(seconds=prepared.seconds)) if prepared.state == "reserved" else None
        body = {
            "state": prepared.state,
            "event": prepared.spending.to_dict(),
            "cost": write_cost(prepared.cost),
            "claim": prepared.claim,
            "expires": ends,
            "request": prepared.request,
        }
        identity = f"c-{secrets.token_hex(8)}"
        return self._write(
            transaction, grant, after, body, actor=prepared.actor, kind="charge", charge=identity, key=key
        )

    def commit(self, actor: Actor, charge: str) -> Decision:
        """Commits a reservation; draw the noise once this has returned "committed".

        Raises:
            AuthorityError: It is somebody else's.
            StateError: It was released.
            UnknownNameError: There is no such charge.
        """
        with self.write() as transaction:
            found, history = self._own(transaction, actor, "commit", charge)
            grant, policy = self._find(found.grant, transaction)
            if found.state == "committed":
                return self._decide(transaction, grant, history[-1])
            if found.state == "released":
                raise StateError(f"charge {charge} was released; expected a new one", state=found.state)
            balance = balance_of(transaction, grant.name)
            after = replace(balance, reserved=less(balance.reserved, found.cost)).add(grant, found.cost, "committed")
            reason = explain_refusal(grant, policy, balance, after, now=self.now())
            if reason is not None:
                shown = describe_balance(grant, balance)
                return Decision(
                    state="refused", grant=grant.name, charge=charge, cost=found.cost, balance=shown, reason=reason
                )
            body = {"state": "committed", "cost": write_cost(found.cost)}
            return self._write(transaction, grant, after, body, actor=actor, kind="commit", charge=charge)

    def release(self, actor: Actor, charge: str, *, evidence: str) -> Decision:
        """Gives back a reservation of which nothing was drawn.

        Whoever reserved it may say so while it runs. Once it has expired nobody knows what became of the run: an
        officer, who is not the one who reserved it, attests that nothing was drawn.

        Args:
            actor: Who says so.
            charge: Of which charge.
            evidence: How that is known.

        Raises:
            AuthorityError: The actor may not.
            StateError: It was committed, which is never refunded.
            UnknownNameError: There is no such charge.
        """
        read_text("evidence", evidence, most=2000)
        with self.write() as transaction:
            found, history = self._own(transaction, actor, "release", charge)
            grant, _ = self._find(found.grant, transaction)
            if found.state == "released":
                return self._decide(transaction, grant, history[-1])
            if found.state == "committed":
                message = f"charge {charge} is committed: noise may have been drawn, and that is never refunded"
                raise StateError(message, state=found.state)
            if found.expired or actor.name != found.actor:
                require(actor, "attest")
                if actor.name == found.actor:
                    message = f"reservation {charge} has expired: another officer than {actor.name} has to attest"
                    raise AuthorityError(message, action="attest")
            balance = balance_of(transaction, grant.name)
            lines = lines_of(grant, parse_event(found.event))
            after = replace(balance, reserved=less(balance.reserved, found.cost)).count(lines, sign=-1)
            body = {"state": "released", "cost": write_cost(found.cost), "evidence": evidence}
            return self._write(transaction, grant, after, body, actor=actor, kind="release", charge=charge)

    def add_evidence(
        self, actor: Actor, charge: str, *, verdict: Literal["consistent", "violation"], report: str
    ) -> str:
        """Adds what an audit found of a charge; a violation freezes the grant. Returns the row's hash.

        Args:
            actor: Who says so: who may spend on the grant, or an officer.
            charge: Of which charge.
            verdict: As the audit's.
            report: Where it can be read, or its digest.

        Raises:
            AuthorityError: The actor may not.
            ParameterError: The verdict is none.
            UnknownNameError: There is no such charge.
        """
        if verdict not in ("consistent", "violation"):
            message = f"expected verdict consistent or violation, got {str(verdict)[:40]!r}"
            raise ParameterError(message, name="verdict", given=verdict)
        body = {"verdict": verdict, "report": read_text("report", report, most=2000)}
        with self.write() as transaction:
            found, _ = self._own(transaction, actor, "evidence", charge)
            row = self._note(transaction, found.grant, "evidence", {**body, "of": charge}, actor=actor)
            if verdict == "violation":
                reason = f"an audit found a violation: charge {charge}"
                row = self._note(transaction, found.grant, "freeze", {"reason": reason}, actor=actor)
            return row.hash

    def freeze(self, actor: Actor, grant: str, *, reason: str) -> str:
        """Stops all spending on a grant, for good; returns the row's hash.

        Raises:
            AuthorityError: The actor may not.
            UnknownNameError: There is no such grant.
        """
        require(actor, "freeze")
        self._find(grant)
        with self.write() as transaction:
            body = {"reason": read_text("reason", reason, most=2000)}
            return self._note(transaction, grant, "freeze", body, actor=actor).hash

    def find_grant(self, actor: Actor, name: str) -> Grant:
        """Returns a grant.

        Raises:
            AuthorityError: The actor may not.
            UnknownNameError: There is none of the name.
        """
        require(actor, "show")
        return self._find(name)[0]

    def charges(self, actor: Actor, dataset: str, *, after: int = 0, most: int = 100) -> list[Charge]:
        """Returns a dataset's charges as they stand, in the order in which they were made.

        Args:
            actor: Who asks.
            dataset: Whose charges.
            after: Only those whose first row comes after this one.
            most: How many.

        Raises:
            AuthorityError: The actor may not.
            UnknownNameError: There is no such dataset.
        """
        require(actor, "show")
        with self.store.read() as transaction:
            if granting.find_policy(transaction, dataset) is None:
                raise UnknownNameError("dataset", dataset, rows.datasets(transaction))
            names = rows.charges_of(transaction, dataset, after=after, most=most)
            return [read_charge(rows.rows_of_charge(transaction, name), name, now=self.now()) for name in names]

    def find_receipt(self, actor: Actor, value: str) -> Receipt:
        """Returns the receipt of the row with a hash.

        Raises:
            AuthorityError: The actor may not.
            UnknownNameError: There is no such row.
        """
        require(actor, "show")
        with self.store.read() as transaction:
            row = rows.find_hash(transaction, value)
            if row is None:
                raise UnknownNameError("receipt", value[:80], ())
            return tokens.sign(row, tokens.read_key(transaction))

    def find_charge(self, actor: Actor, charge: str) -> Charge:
        """Returns a charge as it stands.

        Raises:
            AuthorityError: The actor may not.
            UnknownNameError: There is no such charge.
        """
        require(actor, "show")
        with self.store.read() as transaction:
            return read_charge(rows.rows_of_charge(transaction, charge), charge, now=self.now())

    def show(self, actor: Actor, dataset: str | None = None) -> dict[str, Any]:
        """Returns all datasets, or one: policies, grants with their balances, heads.

        Raises:
            AuthorityError: The actor may not.
            UnknownNameError: There is no such dataset.
        """
        require(actor, "show")
        with self.store.read() as transaction:
            names = rows.datasets(transaction) if dataset is None else [dataset]
            return {"datasets": [showing.show_dataset(transaction, name) for name in names]}

    def verify(self, actor: Actor, *, receipts: Sequence[Receipt] = ()) -> showing.Checked:
        """Returns whether the ledger is what was once written, and still has what receipts were given for.

        Raises:
            AuthorityError: The actor may not.
        """
        require(actor, "verify")
        with self.store.read() as transaction:
            return showing.check_chains(transaction, receipts=receipts)

    def _find(self, name: str, transaction: Transaction | None = None) -> tuple[Grant, Policy]:
        """Returns a grant and its dataset's policy, neither of which ever changes."""
        if name not in self._known:
            if transaction is None:
                with self.store.read() as reading:
                    return self._find(name, reading)
            grant = granting.find_grant(transaction, name)
            policy = granting.find_policy(transaction, grant.dataset)
            assert policy is not None
            self._known[name] = (grant, policy)
        return self._known[name]

    def _own(
        self, transaction: Transaction, actor: Actor, action: Literal["commit", "release", "evidence"], charge: str
    ) -> tuple[Charge, list[Entry]]:
        """Returns a charge that the actor may do something about, with the rows about it."""
        history = rows.rows_of_charge(transaction, charge)
        found = read_charge(history, charge, now=self.now())
        require(actor, action, grant=found.grant)
        if actor.name != found.actor and actor.role != "officer":
            message = f"{actor.name} may not {action} what {found.actor} charged or reserved"
            raise AuthorityError(message, action=action)
        transaction.lock(found.dataset)
        history = rows.rows_of_charge(transaction, charge)  # what was read before the lock may be over
        return read_charge(history, charge, now=self.now()), history

    def _write(
        self, transaction: Transaction, grant: Grant, after: Balance, body: dict[str, Any], *, actor: Actor,
        kind: str, charge: str, key: str | None = None,
    ) -> Decision:  # fmt: skip
        row = rows.append(
            transaction,
            dataset=grant.dataset,
            kind=kind,
            actor=actor.name,
            body={**body, "balance": after.to_dict()},
            at=self.now(),
            grant=grant.name,
            charge=charge,
            key=key,
            shares=after.shares(grant),
        )
        return self._decide(transaction, grant, row)

    def _note(
        self, transaction: Transaction, grant: str, kind: str, body: dict[str, Any], *, actor: Actor
    ) -> Entry:  # fmt: skip
        """Adds a row about a grant that spends nothing; "freeze" stops what could."""
        found, _ = self._find(grant, transaction)
        transaction.lock(found.dataset)
        balance = balance_of(transaction, grant)
        after = replace(balance, frozen=balance.frozen or kind == "freeze")
        return rows.append(
            transaction,
            dataset=found.dataset,
            kind=kind,
            actor=actor.name,
            body={**body, "balance": after.to_dict()},
            at=self.now(),
            grant=grant,
            shares=after.shares(found),
        )

    def _decide(self, transaction: Transaction, grant: Grant, row: Entry) -> Decision:
        """Returns what a row answers: it has all that there is to say, so that it always answers the same."""
        self._key = self._key or tokens.read_key(transaction)
        return Decision(
            state=row.body["state"],
            grant=grant.name,
            charge=row.charge,
            cost=read_cost(row.body["cost"]),
            balance=describe_balance(grant, Balance.of(row.body["balance"])),
            receipt=tokens.sign(row, self._key),
            expires=row.body.get("expires"),
        )
