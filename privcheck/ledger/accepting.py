"""A store that may be an older copy of itself is compared with what was kept of it, and then written again.

What was charged after a row that is lost nobody knows: the grants of its dataset count as spent, which freezing them
says. The same goes for datasets of which nothing was kept to compare them with, or only receipts from before the copy's
own last charge: who kept those did not keep the newest, so that they say nothing about what came after the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privcheck.errors import ParameterError
from privcheck.ledger import changing, granting, registry, rows, tokens
from privcheck.ledger.answers import Receipt
from privcheck.ledger.chains import Checked, check_chains
from privcheck.ledger.known import Known
from privcheck.ledger.roles import Actor
from privcheck.ledger.signing import Signer
from privcheck.ledger.store import Store, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Whether a store was taken for the newest copy of itself.

    Attributes:
        accepted: It is written again.
        checked: Whether its chains fit together.
        lost: Datasets of which rows were written that are not there.
        uncompared: Datasets with charges of which nothing was kept as new as the last of them.
        frozen: Grants that were frozen, because what was charged to them may be lost.
        revoked: Tokens that were ended, because rows of the registry are lost: any of them may have been revoked since.
    """

    accepted: bool
    checked: Checked
    lost: tuple[str, ...]
    uncompared: tuple[str, ...]
    frozen: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields."""
        several = {name: list(getattr(self, name)) for name in ("lost", "uncompared", "frozen", "revoked")}
        return {**self.checked.to_dict(), "accepted": self.accepted, **several}


def accept(store: Store, known: Known, actor: Actor, receipts: Sequence[Receipt], *, freeze: bool, at: str) -> Accepted:
    """Lets a store be written again, where nothing is lost of it, or what was lost is frozen: all in one transaction.

    Raises:
        AuthorityError: The actor's token has ended.
        ParameterError: A receipt was not signed by this store.
        StoreError: It cannot be written now; what was in doubt still is.
    """
    answers: list[Accepted] = []

    def decide(transaction: Transaction, kept: Mapping[str, bool]) -> bool:
        tokens.check_holder(transaction, actor, now=at)
        known.forget()  # it may have been read before another copy came in its place
        found = _compare(transaction, kept, receipts)
        if found.checked.ok and (freeze or not (found.lost or found.uncompared)):
            ended = _revoke(transaction, actor, at=at) if rows.REGISTRY in found.lost else ()
            frozen = _freeze(transaction, known, actor, found, at=at)
            found = replace(found, accepted=True, frozen=frozen, revoked=ended)
            told = {name: list(getattr(found, name)) for name in ("lost", "uncompared", "frozen", "revoked")}
            closed = sorted({*found.lost, *found.uncompared} - {rows.REGISTRY})
            registry.note(transaction, "accept", {**told, "closed": closed}, actor=actor.name, at=at)
        answers.append(found)
        return found.accepted

    store.accept(decide)
    return answers[-1]


def _compare(transaction: Transaction, seen: Mapping[str, bool], receipts: Sequence[Receipt]) -> Accepted:
    """Returns what is lost, by what is known of the newest rows, and receipts."""
    kept = dict(seen)
    signer = Signer.of(transaction) if receipts else None
    newest: set[str] = set()
    for receipt in receipts:
        where = f"{receipt.dataset}, row {receipt.seq}"
        if signer is None or not signer.is_signed(receipt):
            raise ParameterError(f"the receipt of {where} was not signed by this store", name="receipt", given=where)
        row = rows.find_hash(transaction, receipt.hash)
        there = row is not None and (row.dataset, row.seq) == (receipt.dataset, receipt.seq)
        last = rows.last_of_charges(transaction, receipt.dataset)
        if not there:
            kept[receipt.dataset] = False
        elif last is not None and last.hash == receipt.hash:
            newest.add(receipt.dataset)
    charged = [name for name in rows.datasets(transaction) if rows.is_charged(transaction, name)]
    return Accepted(
        accepted=False,
        checked=check_chains(transaction),
        lost=tuple(name for name, there in sorted(kept.items()) if not there),
        uncompared=tuple(name for name in charged if name not in kept and name not in newest),
    )


def _freeze(transaction: Transaction, known: Known, actor: Actor, found: Accepted, *, at: str) -> tuple[str, ...]:
    """Freezes the grants of datasets of which rows are lost, or nothing is known; returns their names.

    Nothing more is granted there either: a grant that is lost is in no sum of the policy.
    """
    frozen, gone = [], sorted({*found.lost, *found.uncompared} - {rows.REGISTRY})
    granting.close_datasets(transaction, gone)
    for dataset in sorted(set(gone) & set(rows.datasets(transaction))):
        why = "rows of its dataset are lost" if dataset in found.lost else "there was nothing to compare it with"
        for grant in granting.grants_of(transaction, dataset):
            reason = {"reason": f"an older copy of the ledger was put back, and {why}"}
            changing.note(transaction, known, actor, grant.name, kind="freeze", body=reason, at=at)
            frozen.append(grant.name)
    return tuple(frozen)


def _revoke(transaction: Transaction, actor: Actor, *, at: str) -> tuple[str, ...]:
    """Ends all tokens but the officer's own, where it is not known which were revoked since; returns their names."""
    valid = [one["name"] for one in tokens.list_tokens(transaction) if one["revoked"] is None]
    ended = tuple(name for name in valid if name != actor.name)
    for name in ended:
        tokens.revoke_token(transaction, name, by=actor.name, now=at)
    return ended
