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
    """A ledger that is open: everything that can be asked of one, whoever asks, over whichever store.

    Every call of an actor raises `AuthorityError` where the actor may not, `UnknownNameError` where it names what is
    not there, and `StoreError` where the store cannot be read or written.

    Args:
        store: Where it is kept.
        clock: What time it is.
    """

    def __init__(self, store: Store, *, clock: Clock | None = None) -> None:
        self.store = store
        self._clock = clock or (lambda: datetime.now(UTC))
        self._known = Known()
        self._joined = threading.local()

    @staticmethod
    def init(store: Store, *, clock: Clock | None = None) -> tuple[Book, str]:
        """Returns the book of a new store, and the first officer's token, which is shown only this once.

        Raises:
            StoreError: Nothing can be signed here.
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
        """Returns the time, in UTC, as rows say it."""
        return write_time(self._clock())

    @contextmanager
    def write(self, actor: Actor | None = None) -> Iterator[Transaction]:
        """Yields a transaction that may write; a row that does not fit its chain makes the store read-only.

        Args:
            actor: Who writes: a token that has ended since it was looked up writes nothing, and one that is ended
                while the transaction runs is ended after it.

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
        """Yields a transaction to read in: the one that this thread writes in, where it is in `together`."""
        if (joined := getattr(self._joined, "transaction", None)) is not None:
            yield joined
            return
        with self.store.read() as transaction:
            yield transaction

    @contextmanager
    def together(self, actor: Actor | None = None) -> Iterator[Transaction]:
        """Yields a transaction that all writes of this thread join until it ends."""
        with self.write(actor) as transaction:
            self._joined.transaction = transaction
            try:
                yield transaction
            finally:
                self._joined.transaction = None

    def find_actor(self, token: str) -> Actor:
        """Returns whose token it is.

        Raises:
            AuthorityError: It is unknown, revoked or over.
        """
        return self.find_holder(registry.digest_token(token))

    def find_holder(self, digest: str) -> Actor:
        """Returns whose token has a digest, `tokens.digest_token`.

        Raises:
            AuthorityError: It is unknown, revoked or over.
        """
        with self.read() as transaction:
            return registry.find_actor(transaction, digest, now=self.now())

    def make_token(
        self, actor: Actor, *, name: str, role: str, grants: tuple[str, ...] = (), expires: object = None
    ) -> str:
        """Writes a token for somebody; returns it, for the one time that it can be told.

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
        """Ends a token.

        Raises:
            ParameterError: There is none of the name.
        """
        require(actor, "token")
        with self.write(actor) as transaction:
            registry.revoke_token(transaction, name, by=actor.name, now=self.now())

    def list_tokens(self, actor: Actor) -> list[dict[str, Any]]:
        """Returns whose tokens there are: name, role, grants, expires, revoked, made_by, made_at; no secret."""
        require(actor, "token")
        with self.read() as transaction:
            return registry.list_tokens(transaction)

    def set_policy(self, actor: Actor, **fields: object) -> BudgetPolicy:
        """Opens a dataset with its policy; the fields are those of `granting.read_policy`.

        Its unit, a `Unit` or its text, says who is protected: with no default, on the officer's word.

        Raises:
            ParameterError: A field is out of its range, or the dataset has a policy.
        """
        require(actor, "policy")
        policy = granting.read_policy(**fields, by=f"officer {actor.name}")
        with self.write(actor) as transaction:
            granting.write_policy(transaction, policy, actor=actor.name, at=self.now())
        return policy

    def add_blocks(self, actor: Actor, dataset: str, names: Sequence[str], *, disjoint_users: object) -> list[Block]:
        """Divides a dataset into blocks without a common user, or adds some; returns all that it has.

        Args:
            actor: Who says so.
            dataset: Which.
            names: Of the new blocks.
            disjoint_users: How it is known that who is in one of them is in no other, and that no neighbour changes
                who is in which; without it nothing is divided.

        Raises:
            ParameterError: A name is taken, nobody said that, or the dataset was granted as a whole.
        """
        require(actor, "policy")
        with self.write(actor) as transaction:
            return granting.write_blocks(
                transaction, dataset, names, disjoint_users=disjoint_users, actor=actor.name, at=self.now()
            )

    def grant(self, actor: Actor, **fields: object) -> tuple[Grant, BudgetPolicy]:
        """Makes an adaptive grant; the fields are those of `granting.read_adaptive`.

        Returns:
            The grant, and the policy of its dataset.

        Raises:
            BudgetError: The dataset's grants would exceed its policy; nothing was changed.
            ParameterError: A field is out of its range, the name is taken, or the dataset has no policy with a unit.
        """
        require(actor, "grant")
        return self._give(actor, granting.read_adaptive(**fields))

    def plan(self, actor: Actor, *, unit: object = None, **fields: object) -> tuple[Grant, BudgetPolicy]:
        """Makes a grant that is a plan, with the fields of `granting.read_plan`; answers and errors as of `grant`.

        Args:
            actor: Who grants.
            unit: For whom its events were priced, as of a charge; needed.
            fields: Of the plan.
        """
        require(actor, "grant")
        return self._give(actor, granting.read_plan(**fields), unit=unit)

    def quote(
        self, actor: Actor, *, grant: str, event: object, unit: object = None, blocks: Sequence[str] | None = None
    ) -> Quote:
        """Returns what a charge to blocks, or to all of the grant's, would cost, and whether it would fit now.

        Args:
            actor: Who asks.
            grant: Of which grant.
            event: What would be released.
            unit: For whom that was priced, as of a charge; needed.
            blocks: Of a divided dataset: where.

        Raises:
            ParameterError: The event is none, has no finite cost in the grant's currency, or was priced for another
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
        """Charges what is about to be released; draw the noise once this has returned "committed".

        Raises:
            IdempotencyError: The key came before, with another request.
            ParameterError: The event is none, has no finite cost in the grant's currency, or was priced for another
                unit than the dataset's.
            StoreError: It is not known whether it was written: ask again with the same key.
        """
        prepared = self.prepare(actor, "charge", **asked)
        with self.write() as transaction:
            return self.apply(transaction, prepared)

    def reserve(self, actor: Actor, **asked: Unpack[AskedFor]) -> Decision:
        """Sets budget aside for a run; `commit` it before the first draw. Errors as of `charge`."""
        prepared = self.prepare(actor, "reserve", **asked)
        with self.write() as transaction:
            return self.apply(transaction, prepared)

    def prepare(self, actor: Actor, action: Action, **asked: Unpack[AskedFor]) -> Prepared:
        """Returns a request that was read, allowed and priced: all that can be wrong with it alone is told here."""
        transitions.check_names(action, asked)
        require(actor, action, grant=asked["grant"])
        self._known.signer(self.read)  # where no receipt could be signed nothing is written
        grant, policy = self._find(asked["grant"])
        return transitions.prepare(actor, action, asked, grant=grant, policy=policy)

    def apply(self, transaction: Transaction, prepared: Prepared) -> Decision:
        """Writes a prepared request, or refuses it; several may share a transaction of `write`.

        Raises:
            AuthorityError: The token has ended since the request was prepared.
            IdempotencyError: The key came before, with another request.
        """
        self._check(transaction, prepared.actor)
        return transitions.apply(transaction, self._known, prepared, at=self.now())

    def commit(self, actor: Actor, charge: str) -> Decision:
        """Commits a reservation; draw the noise once this has returned "committed".

        Raises:
            AuthorityError: It is somebody else's.
            StateError: It was released.
        """
        self._known.signer(self.read)
        with self.write(actor) as transaction:
            return transitions.commit(transaction, self._known, actor, charge, at=self.now())

    def release(self, actor: Actor, charge: str, *, evidence: str) -> Decision:
        """Gives back a reservation of which nothing was drawn.

        Whoever reserved it may say so while it runs. Once it has expired nobody knows what became of the run: an
        officer, who is not the one who reserved it, attests that nothing was drawn.

        Raises:
            StateError: It was committed, which is never refunded.
        """
        read_text("evidence", evidence, most=2000)
        self._known.signer(self.read)
        with self.write(actor) as transaction:
            return transitions.release(transaction, self._known, actor, charge, evidence=evidence, at=self.now())

    def add_evidence(
        self, actor: Actor, charge: str, *, verdict: Literal["consistent", "violation"], report: str
    ) -> str:
        """Adds what an audit found of a charge, and where that can be read; a violation freezes the grant.

        Returns:
            The row's hash.

        Raises:
            ParameterError: The verdict is none.
        """
        found = transitions.read_finding(verdict, report)
        with self.write(actor) as transaction:
            return transitions.add_evidence(transaction, self._known, actor, charge, found, at=self.now())

    def freeze(self, actor: Actor, grant: str, *, reason: str) -> str:
        """Stops all spending on a grant, for good; returns the row's hash."""
        require(actor, "freeze")
        with self.write(actor) as transaction:
            told = {"reason": read_text("reason", reason, most=2000)}
            return transitions.note(
                transaction, self._known, actor, grant, kind="freeze", body=told, at=self.now()
            ).hash

    def find_grant(self, actor: Actor, name: str) -> Grant:
        """Returns a grant."""
        require(actor, "show")
        return self._find(name)[0]

    def charges(self, actor: Actor, dataset: str, *, after: int = 0, most: int = 100) -> list[Charge]:
        """Returns a dataset's charges as they stand, in order: so many of those whose first row comes after a place."""
        require(actor, "show")
        with self.read() as transaction:
            return views.list_charges(transaction, dataset, after=after, most=most, at=self.now())

    def find_receipt(self, actor: Actor, value: str) -> Receipt:
        """Returns the receipt of the row with a hash."""
        require(actor, "show")
        with self.read() as transaction:
            return views.find_receipt(transaction, value)

    def find_charge(self, actor: Actor, charge: str) -> Charge:
        """Returns a charge as it stands."""
        require(actor, "show")
        with self.read() as transaction:
            return views.find_charge(transaction, charge, at=self.now())

    def public_key(self, actor: Actor) -> signing.PublicKey:
        """Returns the key with which anybody can check the store's receipts and heads.

        Raises:
            StoreError: Nothing can be signed here.
        """
        require(actor, "show")
        return self._known.signer(self.read).public

    def show(self, actor: Actor, dataset: str | None = None) -> dict[str, Any]:
        """Returns all datasets, or one: policies, grants with their balances, heads."""
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
        """Returns whether the ledger is what was once written, and still has what receipts and heads were given for.

        Args:
            actor: Who asks.
            receipts: That were kept.
            heads: That were kept.
            after: The checkpoint of an earlier check, behind which this one begins; nothing before it is read again.
        """
        require(actor, "verify")
        with self.read() as transaction:
            return chains.check_chains(transaction, receipts=receipts, heads=heads, after=after, at=self.now())

    def heads(self, actor: Actor) -> tuple[Head, ...]:
        """Returns the signed heads of all chains: that of names and tokens, and the datasets'.

        Raises:
            LedgerError: Rows are missing.
            StoreError: Nothing can be signed here.
        """
        return self.prove(actor, Evidence())[0].heads

    def prove(self, actor: Actor, kept: Evidence) -> tuple[Evidence, list[str]]:
        """Returns the heads of now with proofs that what was kept is in them, and what the store contradicts.

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
        """Writes the table of open reservations anew, from the rows, where `verify` says that it is not theirs.

        A program of an earlier version that had the store open while a newer one brought it up to date leaves it so.
        """
        require(actor, "accept")
        with self.write(actor) as transaction:
            schema.rebuild(transaction)

    def accept(self, actor: Actor, *, receipts: Sequence[Receipt] = (), freeze: bool = False) -> Accepted:
        """Lets a store be written again that may be an older copy of itself, once it was compared.

        Args:
            actor: An officer.
            receipts: Those that were kept.
            freeze: Whether to go on where rows are lost, or there is nothing to compare a dataset with: its grants are
                frozen, for good, for what was charged to them nobody knows.

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
        """Writes what is committed into a new file, right while others write; `backups.restore` puts it back.

        Raises:
            LedgerError: A chain does not fit together; there is no backup.
            StoreError: There is such a file already, or it cannot be written.
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
        """Brings the trees up to date, in short transactions, so that no other writer waits for long."""
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
