"""Merkle trees over the chains of a store: a projection that is updated when a head is requested.

Charges do not touch it. The complete subtrees of 2^8 rows and more are stored (`tree`), which never change; smaller
ones are hashed again from at most 2^8 rows, so that a head and every proof take O(log n) look-ups. Stored subtrees are
trusted for proofs, and compared with all rows by `find_problems`: a wrong one makes heads that contradict earlier ones,
but cannot hide a change from the holders of earlier heads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from privcheck.errors import LedgerError
from privcheck.ledger import rows
from privcheck.ledger.heads import Consistency, Evidence, Head, Inclusion, is_signed, name_chain
from privcheck.ledger.merkle import (
    Growing,
    Node,
    find_root,
    hash_leaf,
    hash_node,
    prove_consistency,
    prove_inclusion,
)
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.signing import Signer
from privcheck.ledger.store import Field, Row, Transaction
from privcheck.ledger.values import HEXADECIMAL, Receipt

_LEVEL: Final = 8  # of the smallest subtrees that are kept
_CHUNK: Final = 1 << _LEVEL
_AT_ONCE: Final = 64 * _CHUNK  # rows that one transaction brings up to date: other writers wait no longer
_PAGE: Final = 4096


def chains(transaction: Transaction) -> list[str]:
    """Names of all chains: the registry's and the datasets'."""
    return [REGISTRY, *rows.datasets(transaction)]


def extend(transaction: Transaction, dataset: str) -> bool:
    """Store the complete subtrees of new rows; False if more are left to do."""
    transaction.claim("name", [f"tree {dataset}"])
    done = _count_kept(transaction, dataset) * _CHUNK
    size = _count_rows(transaction, dataset)
    node = source(transaction, dataset)
    for place in range(done >> _LEVEL, min(size, done + _AT_ONCE) >> _LEVEL):
        level, at = _LEVEL, place
        while True:
            transaction.later(
                "INSERT INTO tree (dataset, level, place, hash) VALUES (?, ?, ?, ?)",
                (dataset, level, at, node(level, at).hex()),
            )
            if not at & 1:
                break
            level, at = level + 1, at >> 1
    return size < done + _AT_ONCE + _CHUNK


def source(transaction: Transaction, dataset: str) -> Node:
    """Hashes of a chain's complete subtrees: stored ones, and others computed from their parts.

    Raises:
        LedgerError: A row is missing.
    """

    @cache
    def node(level: int, place: int) -> bytes:
        if level >= _LEVEL:
            kept = transaction.one(
                "SELECT hash FROM tree WHERE dataset = ? AND level = ? AND place = ?", (dataset, level, place)
            )
            if kept is not None and HEXADECIMAL.fullmatch(str(kept[0])):  # else it is made anew; verify says so
                return bytes.fromhex(str(kept[0]))
        if level == 0:
            return leaves(place >> _LEVEL)[place % _CHUNK]
        return hash_node(node(level - 1, 2 * place), node(level - 1, 2 * place + 1))

    @cache
    def leaves(chunk: int) -> list[bytes]:
        first = chunk * _CHUNK
        found = _hashes(transaction, dataset, after=first, most=_CHUNK)
        if [row[0] for row in found] != list(range(first + 1, first + len(found) + 1)):
            raise LedgerError(
                f"{name_chain(dataset)}: rows are missing after row {first}; run ledger verify for details"
            )
        return [hash_leaf(bytes.fromhex(str(row[1]))) for row in found]

    return node


def make_head(transaction: Transaction, signer: Signer, dataset: str, *, at: str) -> Head:
    """Signed head of a chain at present.

    Raises:
        LedgerError: A row is missing.
    """
    size = _count_rows(transaction, dataset)
    if size == 0:
        raise LedgerError(f"{name_chain(dataset)}: its rows are missing; run ledger verify for details")
    return Head(
        store=signer.store,
        dataset=dataset,
        size=size,
        root=find_root(size, source(transaction, dataset)).hex(),
        at=rows.read_clock(transaction, dataset, at),
    ).signed(signer)


def prove(transaction: Transaction, signer: Signer, kept: Evidence, *, at: str) -> tuple[Evidence, list[str]]:
    """Current heads, with proofs that each kept head's rows, and each kept receipt's, are in them.

    Returns:
        The evidence, and the kept items that contradict the store, one sentence each.
    """
    heads = {name: make_head(transaction, signer, name, at=at) for name in chains(transaction)}
    nodes = {name: source(transaction, name) for name in heads}
    problems: list[str] = []
    consistency, inclusions = [], []
    for head in kept.heads:
        now = heads[head.dataset].size if head.dataset in heads else 0
        root = find_root(head.size, nodes[head.dataset]).hex() if head.size <= now else ""
        if (problem := _contradict(head, signer, size=now, root=root)) is not None:
            problems.append(problem)
            continue
        of: dict[str, Any] = {"store": signer.store, "dataset": head.dataset}
        path = _write(prove_consistency(head.size, now, nodes[head.dataset]))
        consistency.append(Consistency(**of, first=head.size, second=now, path=path))
    for receipt in kept.receipts:
        if (problem := _contradict_receipt(transaction, receipt, signer)) is not None:
            problems.append(problem)
            continue
        if receipt.dataset not in heads:  # its rows are there under a name that is not
            problems.append(f"{name_chain(receipt.dataset)}, receipt of row {receipt.seq}: the dataset's name is gone")
            continue
        of, now = {"store": signer.store, "dataset": receipt.dataset}, heads[receipt.dataset].size
        path = _write(prove_inclusion(receipt.seq - 1, now, nodes[receipt.dataset]))
        inclusions.append(Inclusion(**of, seq=receipt.seq, hash=receipt.hash, size=now, path=path))
    found = Evidence(heads=tuple(heads.values()), consistency=tuple(consistency), inclusions=tuple(inclusions))
    return found, problems


def find_problems(transaction: Transaction, heads: Sequence[Head], *, begun: Mapping[str, Growing]) -> list[str]:
    """Differences between stored subtrees and rows, and heads that the rows contradict; one sentence each.

    Args:
        transaction: A read transaction.
        heads: Kept heads.
        begun: The trees over the rows that an earlier check has read, by dataset; without one, the tree starts empty.
            They are extended. A head within those rows is compared with the stored subtrees.
    """
    problems: list[str] = []
    roots: dict[tuple[str, int], str] = {}
    sizes: dict[str, int] = {}
    names = chains(transaction)
    for name in names:
        tree, wanted = begun.get(name) or Growing(), {head.size for head in heads if head.dataset == name}
        told, found = _grow(transaction, name, tree, wanted)
        problems += told
        roots |= {(name, size): root for size, root in found.items()}
        sizes[name] = tree.size
    strange = {str(row[0]) for row in transaction.all("SELECT DISTINCT dataset FROM tree")} - set(names)
    problems += [f"{name_chain(name)}: it has a tree but no rows" for name in sorted(strange)]
    if heads:
        signer = Signer.of(transaction)
        for head in heads:
            size, root = sizes.get(head.dataset, 0), roots.get((head.dataset, head.size), "")
            if (problem := _contradict(head, signer, size=size, root=root)) is not None:
                problems.append(problem)
    return problems


def _grow(
    transaction: Transaction, name: str, tree: Growing, wanted: Collection[int]
) -> tuple[list[str], dict[int, str]]:
    """Extend a chain's tree to its last row; returns differences from stored subtrees, and roots by wanted size."""
    problems: list[str] = []
    kept = {at: node for at, node in _read_kept(transaction, name).items() if (at[1] + 1) << at[0] > tree.size}
    covered = max(((place + 1) << level for level, place in kept), default=0)
    roots = {size: find_root(size, source(transaction, name)).hex() for size in wanted if size <= tree.size}
    try:
        for value in _all_hashes(transaction, name, after=tree.size):
            for level, place, node in tree.add(hash_leaf(bytes.fromhex(value))):
                known = kept.pop((level, place), "") if level >= _LEVEL else node.hex()
                if known != node.hex() and tree.size <= covered:
                    problems.append(f"{name_chain(name)}: its tree does not match its rows, at row {tree.size}")
            if tree.size in wanted:
                roots[tree.size] = tree.root().hex()
    except ValueError:
        problems.append(f"{name_chain(name)}, row {tree.size + 1}: its hash is not valid")
    if kept:
        problems.append(f"{name_chain(name)}: its tree has rows that are missing: the chain was cut")
    return problems, roots


def _contradict(head: Head, signer: Signer, *, size: int, root: str) -> str | None:
    """Contradiction between a head and a chain of `size` rows with the root `root` over the head's rows, or None."""
    if head.store != signer.store or not is_signed(head, signer.public):
        return f"{head.words}: it was not signed by this store"
    if size < head.size:
        return f"{head.words}: {size} rows exist: the chain was cut, or is an older copy"
    if root != head.root:
        return f"{head.words}: its rows differ from the stored ones: the chain was rewritten"
    return None


def _contradict_receipt(transaction: Transaction, receipt: Receipt, signer: Signer) -> str | None:
    where = f"{name_chain(receipt.dataset)}, receipt of row {receipt.seq}"
    if not signer.is_signed(receipt):
        return f"{where}: it was not signed by this store"
    asked = (receipt.dataset, receipt.seq, receipt.hash)
    if transaction.one("SELECT 1 FROM entry WHERE dataset = ? AND seq = ? AND hash = ?", asked) is None:
        return f"{where}: its row is missing: the chain was cut, rewritten, or is an older copy"
    return None


def _count_rows(transaction: Transaction, dataset: str) -> int:
    row = transaction.one("SELECT MAX(seq) FROM entry WHERE dataset = ?", (dataset,))
    return 0 if row is None else int(row[0] or 0)


def _count_kept(transaction: Transaction, dataset: str) -> int:
    """Number of stored subtrees of the smallest stored level."""
    row = transaction.one("SELECT MAX(place) FROM tree WHERE dataset = ? AND level = ?", (dataset, _LEVEL))
    return 0 if row is None or row[0] is None else int(row[0]) + 1


def _read_kept(transaction: Transaction, dataset: str) -> dict[tuple[int, int], str]:
    found = transaction.all("SELECT level, place, hash FROM tree WHERE dataset = ?", (dataset,))
    return {(int(level or 0), int(place or 0)): str(value) for level, place, value in found}


def _hashes(transaction: Transaction, dataset: str, *, after: int, most: int) -> list[Row]:
    asked: tuple[Field, ...] = (dataset, after, most)
    return transaction.all("SELECT seq, hash FROM entry WHERE dataset = ? AND seq > ? ORDER BY seq LIMIT ?", asked)


def _all_hashes(transaction: Transaction, dataset: str, *, after: int) -> Iterator[str]:
    while page := _hashes(transaction, dataset, after=after, most=_PAGE):
        yield from (str(row[1]) for row in page)
        after = int(page[-1][0] or 0)


def _write(path: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(value.hex() for value in path)
