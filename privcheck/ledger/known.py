"""What never changes once it is written, and is therefore read once: grants, policies, and the store's key."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from privcheck.ledger import granting, rows
from privcheck.ledger.answers import Decision
from privcheck.ledger.balances import Balance
from privcheck.ledger.describing import describe_balance
from privcheck.ledger.signing import Signer, unsigned
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Entry, Grant, Policy, read_cost


class Known:
    """What an open ledger remembers of its store."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forgets all: another copy of the store may have come in its place."""
        self._grants: dict[str, tuple[Grant, Policy]] = {}
        self._balances: dict[str, tuple[str, Balance]] = {}
        self._signer: Signer | None = None

    def recall(self, name: str) -> tuple[Grant, Policy] | None:
        """Returns a grant and its dataset's policy where they were read before."""
        return self._grants.get(name)

    def find(self, transaction: Transaction, name: str) -> tuple[Grant, Policy]:
        """Returns a grant and its dataset's policy.

        Raises:
            UnknownNameError: There is none of the name.
        """
        if name not in self._grants:
            grant = granting.find_grant(transaction, name)
            policy = granting.find_policy(transaction, grant.dataset)
            assert policy is not None
            self._grants[name] = (grant, policy)
        return self._grants[name]

    def balance_of(self, transaction: Transaction, grant: str) -> Balance:
        """Returns a grant's balance, which its last row has; what is remembered counts while that row is the last."""
        last = rows.last_of_grant(transaction, grant)
        assert last is not None
        known = self._balances.get(grant)
        return known[1] if known is not None and known[0] == last.hash else Balance.of(last.body["balance"])

    def keep(self, row: Entry, balance: Balance) -> None:
        """Remembers the balance that a row has."""
        self._balances[str(row.grant)] = (row.hash, balance)

    def signer(self, read: Callable[[], AbstractContextManager[Transaction]]) -> Signer:
        """The store's key.

        Args:
            read: Begins a transaction to read in.

        Raises:
            StoreError: There is none, or nothing can be signed here.
        """
        if self._signer is None:
            with read() as transaction:
                return self._signer_of(transaction)
        return self._signer

    def _signer_of(self, transaction: Transaction) -> Signer:
        self._signer = self._signer or Signer.of(transaction)
        return self._signer

    def decide(self, transaction: Transaction, grant: Grant, row: Entry, balance: Balance | None = None) -> Decision:
        """Returns what a row answers: it has all that there is to say, so that it always answers the same.

        Args:
            transaction: Of the store.
            grant: That the row is about.
            row: A row about a charge.
            balance: The row's, where it is at hand.
        """
        return Decision(
            state=row.body["state"],
            grant=grant.name,
            charge=row.charge,
            cost=read_cost(row.body["cost"]),
            balance=describe_balance(grant, balance or Balance.of(row.body["balance"])),
            row=unsigned(row),
            sign=self._signer_of(transaction).sign_receipt,
            expires=row.body.get("expires"),
            blocks=tuple(row.body.get("blocks", ())),
            conditions=tuple(row.body.get("conditions", ())),
        )
