"""What the ledger shows: datasets with their grants and balances, charges, receipts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privcheck.accounting.currencies import NOT_A_GUARANTEE
from privcheck.errors import UnknownNameError
from privcheck.ledger import granting, rows
from privcheck.ledger.answers import Charge, Receipt
from privcheck.ledger.balances import Balance, balance_of
from privcheck.ledger.blocks import find_blocks
from privcheck.ledger.deciding import read_charge
from privcheck.ledger.describing import describe_all_taken, describe_balance, describe_support
from privcheck.ledger.signing import Signer, is_installed, unsigned
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Entry, Grant, concurrency_between, concurrency_of


def show_dataset(transaction: Transaction, name: str) -> dict[str, Any]:
    """Returns a dataset: its policy, blocks, grants with their balances, and the head of its chain.

    Raises:
        UnknownNameError: There is none of the name.
    """
    policy = granting.find_policy(transaction, name)
    if policy is None:
        raise UnknownNameError("dataset", name, rows.datasets(transaction))
    head = rows.last_of_dataset(transaction, name)
    assert head is not None
    found = [(grant, balance_of(transaction, grant.name)) for grant in granting.grants_of(transaction, name)]
    blocks = [block.to_dict() for block in find_blocks(transaction, name)]
    return {
        "name": name,
        "policy": policy.to_dict(),
        "blocks": blocks,
        "grants": [_show_grant(grant, balance) for grant, balance in found],
        "between_grants": concurrency_between(policy, [grant for grant, _ in found]),
        "taken_part_in_all": describe_all_taken(policy, found),
        "support": describe_support(policy, rows.rows_of_kind(transaction, name, "evidence")),
        "head": _receipt_of(transaction, head).to_dict(),
    }


def show_datasets(transaction: Transaction, dataset: str | None) -> dict[str, Any]:
    """Returns a dataset, or all, as `show_dataset` does.

    Raises:
        UnknownNameError: There is none of the name.
    """
    names = rows.datasets(transaction) if dataset is None else [dataset]
    return {"datasets": [show_dataset(transaction, name) for name in names]}


def list_charges(transaction: Transaction, dataset: str, *, after: int, most: int, at: str) -> list[Charge]:
    """Returns a dataset's charges as they stand, in the order in which they were made.

    Raises:
        UnknownNameError: There is no such dataset.
    """
    if granting.find_policy(transaction, dataset) is None:
        raise UnknownNameError("dataset", dataset, rows.datasets(transaction))
    return charges_at(transaction, dataset, rows.charges_of(transaction, dataset, after=after, most=most), at=at)


def charges_at(transaction: Transaction, dataset: str, names: Sequence[str], *, at: str) -> list[Charge]:
    """Returns charges of one dataset as they stand."""
    now = rows.read_clock(transaction, dataset, at)
    return [read_charge(rows.rows_of_charge(transaction, name), name, now=now) for name in names]


def find_charge(transaction: Transaction, charge: str, *, at: str) -> Charge:
    """Returns a charge as it stands.

    Raises:
        UnknownNameError: There is no such charge.
    """
    return find_history(transaction, charge, at=at)[0]


def find_history(transaction: Transaction, charge: str, *, at: str) -> tuple[Charge, list[Entry]]:
    """Returns a charge as it stands, and the rows about it.

    Raises:
        UnknownNameError: There is no such charge.
    """
    history = rows.rows_of_charge(transaction, charge)
    now = rows.read_clock(transaction, history[0].dataset, at) if history else at
    return read_charge(history, charge, now=now), history


def find_receipt(transaction: Transaction, value: str) -> Receipt:
    """Returns the receipt of the row with a hash.

    Raises:
        StoreError: Nothing can be signed here.
        UnknownNameError: There is no such row.
    """
    row = rows.find_hash(transaction, value)
    if row is None:
        raise UnknownNameError("receipt", value[:80], ())
    return Signer.of(transaction).sign_receipt(unsigned(row))


def _receipt_of(transaction: Transaction, row: Entry) -> Receipt:
    """The receipt of a row that is shown: unsigned where nothing can be signed here, and everything can be read."""
    return Signer.of(transaction).sign_receipt(unsigned(row)) if is_installed() else unsigned(row)


def _show_grant(grant: Grant, balance: Balance) -> dict[str, Any]:
    shown = describe_balance(grant, balance)
    told = {"concurrency": concurrency_of(grant), "balance": shown, "remaining": shown["free"]}
    return {**grant.to_dict(), **told, "note": NOT_A_GUARANTEE}
