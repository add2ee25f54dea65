"""A ledger that is open: every question that can be asked of it, each in a transaction of its own.

Who may ask is `privcheck.ledger.registry`', what may follow what `privcheck.ledger.transitions`'s, and
why the whole keeps a dataset's policy `privcheck.ledger.policies`'.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from privcheck.errors import LedgerError
from privcheck.ledger import backups, chains, registry, schema, signing, transitions, trees, views
from privcheck.ledger import grants as granting
from privcheck.ledger.backups import Accepted, Backup
from privcheck.ledger.balances import Block, choose_blocks
from privcheck.ledger.chains import Checkpoint
from privcheck.ledger.exact import read_text, write_time
from privcheck.ledger.grants import Known
from privcheck.ledger.heads import Evidence, Head
from privcheck.ledger.limits import check_unit, quote_of
from privcheck.ledger.registry import Actor, require
from privcheck.ledger.store import Store, Transaction
from privcheck.ledger.transitions import Action, Asked, AskedFor, Prepared
from privcheck.ledger.values import BudgetPolicy, Charge, Decision, Grant, Quote, Receipt
from privcheck.ledger.wire import parse_event

Clock = Callable[[], datetime]


class Book:
    """An open ledger: all operations of all roles, over any store.

    Every call with an actor raises `AuthorityError` if the actor is not permitted, `UnknownNameError` if a name does
    not exist, and `StoreError` if the store cannot be read or written.

    Args:
        store: The store of the ledger.
        clock: Source of the current time; the system's clock by default.
    """

    def __init__(self, store: Store, *, clock: Clock | None = None) -> None:
        self.store = store
        self._clock = clock or (lambda: datetime.now(UTC))
        self._known = Known()
        self._joined = threading.local()

    @staticmethod
    def init(store: Store, *, clock: Clock | None = None) -> tuple[Book, str]:
        """Create a ledger in a new store; its first officer's token is returned only this once.

        Raises:
            StoreError: The packages for signing are not installed.
        """
        signing.check_installed()
        book = Book(store, clock=clock)
        with book.write() as transaction:
            signing.make_secret(transaction)
            registry.begin(transaction, actor="init", at=book.now())
            token = registry.make_token(
                transaction, name="officer", role="officer", grants=(), expires=None, by="init", at=book.now()
            )
        return book, token

    def now(self) -> str:
        """The current time in UTC, in the format of rows."""
        return write_time(self._clock())

    @contextmanager
    def write(self, actor: Actor | None = None) -> Iterator[Transaction]:
        """Open a write transaction; a row that does not fit its chain makes the store read-only.

        Args:
            actor: The author; a token that ended after it was looked up is refused, and one that is ended while the
                transaction runs is ended after it.

        Raises:
            AuthorityError: The actor's token has ended.
        """
        if (joined := getattr(self._joined, "transaction", None)) is not None:
            self._check(joined, actor)
            yield joined
            return
        try:
            with self.store.write() as transaction:
                self._check(transaction, actor)
                yield transaction
        except LedgerError as error:
            self.store.stop_writing(str(error))
            raise

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a read transaction; within `together`, the thread's own write transaction."""
        if (joined := getattr(self._joined, "transaction", None)) is not None:
            yield joined
            return
        with self.store.read() as transaction:
            yield transaction

    @contextmanager
    def together(self, actor: Actor | None = None) -> Iterator[Transaction]:
        """Open a write transaction that all writes of this thread join until it ends."""
        with self.write(actor) as transaction:
            self._joined.transaction = transaction
            try:
                yield transaction
            finally:
                self._joined.transaction = None

    def find_actor(self, token: str) -> Actor:
        """Find the actor of a token.

        Raises:
            AuthorityError: The token is unknown, revoked or expired.
        """
        return self.find_holder(registry.digest_token(token))

    def find_holder(self, digest: str) -> Actor:
        """Find the actor of a token's digest, `registry.digest_token`.

        Raises:
            AuthorityError: The token is unknown, revoked or expired.
        """
        with self.read() as transaction:
            return registry.find_actor(transaction, digest, now=self.now())

    def make_token(
        self, actor: Actor, *, name: str, role: str, grants: tuple[str, ...] = (), expires: object = None
    ) -> str:
        """Create a token; this return value is the only time that it is shown.

        Raises:
            ParameterError: A field is out of its range.
        """
        require(actor, "token")
        end = None if expires is None else granting.read_time("expires", expires)
        with self.write(actor) as transaction:
            return registry.make_token(
                transaction, name=name, role=role, grants=grants, expires=end, by=actor.name, at=self.now()
            )

    def revoke_token(self, actor: Actor, name: str) -> None:
        """Revoke a token.

        Raises:
            ParameterError: There is no token of the name.
        """
        require(actor, "token")
        with self.write(actor) as transaction:
            registry.revoke_token(transaction, name, by=actor.name, now=self.now())

    def list_tokens(self, actor: Actor) -> list[dict[str, Any]]:
        """List the tokens: name, role, grants, expires, revoked, made_by, made_at; no secret."""
        require(actor, "token")
        with self.read() as transaction:
            return registry.list_tokens(transaction)

    def set_policy(self, actor: Actor, **fields: object) -> BudgetPolicy:
        """Open a dataset with its policy; the fields are those of `grants.read_policy`.

        The unit, a `Unit` or its text, says who is protected; it has no default, and the officer answers for it.

        Raises:
            ParameterError: A field is out of its range, or the dataset has a policy.
        """
        require(actor, "policy")
        policy = granting.read_policy(**fields, by=f"officer {actor.name}")
        with self.write(actor) as transaction:
            granting.write_policy(transaction, policy, actor=actor.name, at=self.now())
        return policy

    def add_blocks(self, actor: Actor, dataset: str, names: Sequence[str], *, disjoint_users: object) -> list[Block]:
        """Divide a dataset into blocks without a common user, or add blocks; returns all blocks of the dataset.

        Args:
            actor: An officer.
            dataset: Name of the dataset.
            names: Names of the new blocks.
            disjoint_users: How it is known that no user is in two blocks, and that no neighbour changes the block of a
                user; required.

        Raises:
            ParameterError: A name is taken, `disjoint_users` is missing, or the dataset was granted as a whole.
        """
        require(actor, "policy")
        with self.write(actor) as transaction:
            return granting.write_blocks(
                transaction, dataset, names, disjoint_users=disjoint_users, actor=actor.name, at=self.now()
            )

    def grant(self, actor: Actor, **fields: object) -> tuple[Grant, BudgetPolicy]:
        """Make an adaptive grant; the fields are those of `grants.read_adaptive`.

        Returns:
            The grant, and the policy of its dataset.

        Raises:
            BudgetError: The dataset's grants would exceed its policy; nothing was changed.
            ParameterError: A field is out of its range, the name is taken, or the dataset has no policy with a unit.
        """
        require(actor, "grant")
        return self._give(actor, granting.read_adaptive(**fields))

    def plan(self, actor: Actor, *, unit: object = None, **fields: object) -> tuple[Grant, BudgetPolicy]:
        """Make a grant for a plan, with the fields of `grants.read_plan`; result and errors as of `grant`.

        Args:
            actor: The author of the grant.
            unit: The unit for which the events were priced, as of a charge; required.
            fields: Fields of the plan.
        """
        require(actor, "grant")
        return self._give(actor, granting.read_plan(**fields), unit=unit)

    def quote(
        self, actor: Actor, *, grant: str, event: object, unit: object = None, blocks: Sequence[str] | None = None
    ) -> Quote:
        """Quote the cost of a charge to blocks, or to all of the grant's blocks, and whether it would fit now.

        Args:
            actor: The caller.
            grant: Name of the grant.
            event: The planned release.
            unit: The unit for which the event was priced, as of a charge; required.
            blocks: Blocks of a divided dataset.

        Raises:
            ParameterError: The event is invalid, has no finite cost in the grant's currency, or was priced for another
                unit than the dataset's.
        """
        require(actor, "quote", grant=grant)
        spending = parse_event(event)
        found, policy = self._find(grant)
        offered = check_unit(policy, unit, by=f"{actor.name}, who charges", relations=spending.relations)
        places = choose_blocks(found, blocks)
        with self.read() as transaction:
            return quote_of(transaction, found, policy, spending, offered, blocks=places, at=self.now())

    def charge(self, actor: Actor, **asked: Unpack[Asked]) -> Decision:
        """Charge a release before its noise is drawn; draw the noise once this has returned "committed".

        Raises:
            IdempotencyError: The key was used for another request.
            ParameterError: The event is invalid, has no finite cost in the grant's currency, or was priced for another
                unit than the dataset's.
            StoreError: It is unknown whether the charge was written: ask again with the same key.
        """
        prepared = self.prepare(actor, "charge", **asked)
        with self.write() as transaction:
            return self.apply(transaction, prepared)

    def reserve(self, actor: Actor, **asked: Unpack[AskedFor]) -> Decision:
        """Reserve budget for a run; `commit` the reservation before the first draw. Errors as of `charge`."""
        prepared = self.prepare(actor, "reserve", **asked)
        with self.write() as transaction:
            return self.apply(transaction, prepared)

    def prepare(self, actor: Actor, action: Action, **asked: Unpack[AskedFor]) -> Prepared:
        """Read, authorise and price a request: every error of the request alone is raised here."""
        transitions.check_names(action, asked)
        require(actor, action, grant=asked["grant"])
        self._known.signer(self.read)  # where no receipt could be signed nothing is written
        grant, policy = self._find(asked["grant"])
        return transitions.prepare(actor, action, asked, grant=grant, policy=policy)

    def apply(self, transaction: Transaction, prepared: Prepared) -> Decision:
        """Write a prepared request, or refuse it; several may share a transaction of `write`.

        Raises:
            AuthorityError: The token has ended since the request was prepared.
            IdempotencyError: The key was used for another request.
        """
        self._check(transaction, prepared.actor)
        return transitions.apply(transaction, self._known, prepared, at=self.now())

    def commit(self, actor: Actor, charge: str) -> Decision:
        """Commit a reservation; draw the noise once this has returned "committed".

        Raises:
            AuthorityError: The reservation belongs to another actor.
            StateError: The reservation was released.
        """
        self._known.signer(self.read)
        with self.write(actor) as transaction:
            return transitions.commit(transaction, self._known, actor, charge, at=self.now())

    def release(self, actor: Actor, charge: str, *, evidence: str) -> Decision:
        """Release a reservation of which no noise was drawn.

        Its author may release it while it runs. After it has expired the fate of the run is unknown: an officer other
        than its author attests that nothing was drawn.

        Raises:
            StateError: The charge was committed, which is never refunded.
        """
        read_text("evidence", evidence, most=2000)
        self._known.signer(self.read)
        with self.write(actor) as transaction:
            return transitions.release(transaction, self._known, actor, charge, evidence=evidence, at=self.now())

    def add_evidence(
        self, actor: Actor, charge: str, *, verdict: Literal["consistent", "violation"], report: str
    ) -> str:
        """Record an audit's finding on a charge, and where the report is; a violation freezes the grant.

        Returns:
            The row's hash.

        Raises:
            ParameterError: The verdict is invalid.
        """
        found = transitions.read_finding(verdict, report)
        with self.write(actor) as transaction:
            return transitions.add_evidence(transaction, self._known, actor, charge, found, at=self.now())

    def freeze(self, actor: Actor, grant: str, *, reason: str) -> str:
        """Stop all spending on a grant, permanently; returns the row's hash."""
        require(actor, "freeze")
        with self.write(actor) as transaction:
            told = {"reason": read_text("reason", reason, most=2000)}
            return transitions.note(
                transaction, self._known, actor, grant, kind="freeze", body=told, at=self.now()
            ).hash

    def find_grant(self, actor: Actor, name: str) -> Grant:
        """Find a grant."""
        require(actor, "show")
        return self._find(name)[0]

    def charges(self, actor: Actor, dataset: str, *, after: int = 0, most: int = 100) -> list[Charge]:
        """Up to `most` charges of a dataset in their current state, in order, after row `after` (pagination)."""
        require(actor, "show")
        with self.read() as transaction:
            return views.list_charges(transaction, dataset, after=after, most=most, at=self.now())

    def find_receipt(self, actor: Actor, value: str) -> Receipt:
        """Receipt of the row with a hash."""
        require(actor, "show")
        with self.read() as transaction:
            return views.find_receipt(transaction, value)

    def find_charge(self, actor: Actor, charge: str) -> Charge:
        """Current state of a charge."""
        require(actor, "show")
        with self.read() as transaction:
            return views.find_charge(transaction, charge, at=self.now())

    def public_key(self, actor: Actor) -> signing.PublicKey:
        """Public key with which anybody can check the store's receipts and heads.

        Raises:
            StoreError: The packages for signing are not installed.
        """
        require(actor, "show")
        return self._known.signer(self.read).public

    def show(self, actor: Actor, dataset: str | None = None) -> dict[str, Any]:
        """Show all datasets, or one: policies, grants with their balances, heads."""
        require(actor, "show")
        with self.read() as transaction:
            return views.show_datasets(transaction, dataset, at=self.now())

    def verify(
        self,
        actor: Actor,
        *,
        receipts: Sequence[Receipt] = (),
        heads: Sequence[Head] = (),
        after: Checkpoint | None = None,
    ) -> chains.Checked:
        """Check the hashes of all rows, and that every row with a kept receipt or head is still there.

        Args:
            actor: The caller.
            receipts: Kept receipts.
            heads: Kept heads.
            after: The checkpoint of an earlier check, from which this one continues; earlier rows are not read again.
        """
        require(actor, "verify")
        with self.read() as transaction:
            return chains.check_chains(transaction, receipts=receipts, heads=heads, after=after, at=self.now())

    def heads(self, actor: Actor) -> tuple[Head, ...]:
        """Signed heads of all chains: the registry of names and tokens, and the datasets.

        Raises:
            LedgerError: Rows are missing.
            StoreError: The packages for signing are not installed.
        """
        return self.prove(actor, Evidence())[0].heads

    def prove(self, actor: Actor, kept: Evidence) -> tuple[Evidence, list[str]]:
        """Current heads with proofs that kept evidence is included in them, and a list of the store's contradictions.

        Errors as of `heads`.
        """
        require(actor, "verify")
        signing.check_installed()
        if not (self.store.read_only or self.store.doubt):
            self._extend_trees()
        with self.read() as transaction:
            # the key of the store whose rows these are, which may be another than the one that was opened
            return trees.prove(transaction, signing.Signer.of(transaction), kept, at=self.now())

    def rebuild(self, actor: Actor) -> None:
        """Rewrite the table of open reservations from the rows, where `verify` finds that the two disagree.

        They disagree after a program of an earlier version had the store open while a newer one upgraded it.
        """
        require(actor, "accept")
        with self.write(actor) as transaction:
            schema.rebuild(transaction)

    def accept(self, actor: Actor, *, receipts: Sequence[Receipt] = (), freeze: bool = False) -> Accepted:
        """Make a store writable again that may be an older copy of itself, after comparing it with kept receipts.

        Args:
            actor: An officer.
            receipts: Kept receipts.
            freeze: Whether to proceed where rows are lost, or there is nothing to compare a dataset with: its grants
                are frozen permanently, because charges to them may be missing.

        Raises:
            ParameterError: A receipt was not signed by this store.
        """
        require(actor, "accept")
        try:
            return backups.accept(self.store, self._known, actor, receipts, freeze=freeze, at=self.now())
        except LedgerError as error:
            self.store.stop_writing(str(error))
            raise

    def back_up(self, actor: Actor, file: Path) -> Backup:
        """Back up all committed rows into a new file while others write; `backups.restore` restores it.

        Raises:
            LedgerError: A chain is inconsistent; there is no backup.
            StoreError: The file exists already, or cannot be written.
        """
        require(actor, "backup")
        return backups.back_up(self.store, file, at=self.now())

    def _check(self, transaction: Transaction, actor: Actor | None) -> None:
        if actor is not None:
            registry.check_holder(transaction, actor, now=self.now())

    def _give(self, actor: Actor, grant: Grant, *, unit: object = None) -> tuple[Grant, BudgetPolicy]:
        with self.write(actor) as transaction:
            return granting.write_grant(transaction, grant, unit=unit, actor=actor.name, at=self.now())

    def _extend_trees(self) -> None:
        """Bring the trees up to date, in short transactions, so that no other writer waits for long."""
        with self.read() as transaction:
            names = trees.chains(transaction)
        for name in names:
            done = False
            while not done:
                with self.write() as transaction:
                    done = trees.extend(transaction, name)

    def _find(self, name: str) -> tuple[Grant, BudgetPolicy]:
        if (known := self._known.recall(name)) is not None:
            return known
        with self.read() as transaction:
            return self._known.find(transaction, name)
