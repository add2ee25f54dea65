"""Blocks: a dataset divided into parts without a common user, each of which may lose all that the policy allows.

What is released from one block says nothing of a user of another, so that nobody loses more than the grants over his
or her own block admit, however the charges to all blocks depend on each other's answers (parallel composition with a
filter a block: Lécuyer, Spahn, Vodrahalli, Geambasu & Hsu 2019). That needs every user in one block only; where users
can be in several their losses add up, and the ledger cannot see which it is. So an officer has to say how it is known,
block by block, and the chain keeps it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from privcheck.errors import ParameterError
from privcheck.ledger import rows
from privcheck.ledger.exact import read_name, read_text
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Grant, Policy

MOST: Final = 64  # of a grant, whose rows have the sums of each


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a dataset.

    Attributes:
        name: Its name.
        disjoint_users: How it is known that who is in this block is in no other.
        by: Who said so.
        at: When, in UTC.
    """

    name: str
    disjoint_users: str
    by: str
    at: str

    def to_dict(self) -> dict[str, str]:
        """Returns the fields."""
        return {"name": self.name, "disjoint_users": self.disjoint_users, "by": self.by, "at": self.at}


def find_blocks(transaction: Transaction, dataset: str) -> list[Block]:
    """Returns a dataset's blocks, in the order in which they were made; none where it is not divided."""
    return [
        Block(name=name, disjoint_users=row.body["disjoint_users"], by=row.actor, at=row.at)
        for row in rows.rows_of_kind(transaction, dataset, "blocks")
        for name in row.body["blocks"]
    ]


def read_blocks(names: object) -> tuple[str, ...]:
    """Returns names of blocks, in order.

    Raises:
        ParameterError: They are no list of different names, or too many.
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ParameterError(f"expected blocks as a list of names, got {str(names)[:60]!r}", name="blocks")
    read = sorted(read_name("block", name) for name in names)
    if len(set(read)) < len(read):
        raise ParameterError(f"expected every block once, got {', '.join(read)[:200]}", name="blocks", given=names)
    if len(read) > MOST:
        raise ParameterError(f"expected at most {MOST} blocks, got {len(read)}", name="blocks")
    return tuple(read)


def read_statement(policy: Policy, value: object) -> str:
    """Returns how it is known that no user is in two blocks.

    Raises:
        ParameterError: Nobody said so.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        message = (
            f"expected disjoint_users: how it is known that each {policy.who} of {policy.dataset!r} is in one block "
            "only. Where one can be in several, what is lost adds up over them: charge the dataset as a whole, "
            "without blocks, or divide it by what does not overlap"
        )
        raise ParameterError(message, name="disjoint_users", given=value)
    return read_text("disjoint_users", value, most=2000)


def choose_blocks(grant: Grant, names: object) -> tuple[str, ...]:
    """Returns which of a grant's blocks a charge is to: those named, or all.

    Raises:
        ParameterError: The grant does not cover one, or the dataset is not divided.
    """
    if names is None:
        return grant.blocks
    read = read_blocks(names)
    if not grant.blocks and read:
        message = f"{grant.dataset!r} has no blocks; expected a charge to all of it, got {', '.join(read)[:200]}"
        raise ParameterError(message, name="blocks", given=names)
    if grant.blocks and (not read or not set(read) <= set(grant.blocks)):
        message = f"grant {grant.name!r} covers {', '.join(grant.blocks)}; expected some of these, or none for all"
        raise ParameterError(f"{message}; got {', '.join(read)[:200] or 'none'}", name="blocks", given=names)
    return read


def check_cover(grant: Grant, known: Collection[str]) -> None:
    """Refuses a grant that is not to the blocks that its dataset has.

    Raises:
        ParameterError: A block is unknown, or a divided dataset's grant names none.
    """
    unknown = sorted(set(grant.blocks) - set(known))
    if unknown:
        message = f"{grant.dataset!r} has no block {unknown[0]!r}; expected one of: {', '.join(known) or 'none'}"
        raise ParameterError(f"{message}; blocks are made by: privcheck ledger block", name="blocks", given=unknown)
    if known and not grant.blocks:
        message = f"{grant.dataset!r} is divided; expected which blocks the grant covers, of: {', '.join(known)}"
        raise ParameterError(message, name="blocks", given=())
