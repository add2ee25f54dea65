"""Signed heads, and the conclusions that they permit without the ledger.

A head has the number of rows of a chain, and the root of the Merkle tree over them. A ledger that only ever adds rows
can prove of any two of its heads that the larger one begins with the smaller one (consistency), and of any receipt that
its row is in a head (inclusion); a ledger that was rolled back and written on, or that shows different rows to
different people, cannot. So two kept heads suffice: `compare` reports the contradictions, and the questions that need a
proof.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeVar

from privcheck.errors import ParameterError
from privcheck.ledger.exact import canonical, is_plain
from privcheck.ledger.merkle import check_consistency, check_inclusion, hash_leaf
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.signing import PublicKey, Signer, receipt_text, write_text
from privcheck.ledger.values import HEXADECIMAL, Receipt

_LONGEST_PATH: Final = 128  # hashes of a proof; one of 2^63 leaves has 126 at most
_CLOCKS: Final = timedelta(minutes=5)  # heads that are nearer in time may have been made in either order
_OLD: Final = 64  # characters of a signature that the store alone checks
Chain = tuple[str, str]  # a store's number, and the name of one of its datasets
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Number of rows of a chain, and the root of their tree, signed.

    Attributes:
        store: The number of the store.
        dataset: Name of the dataset; `rows.REGISTRY` for the chain of names and tokens.
        size: Number of rows.
        root: Root of their Merkle tree, in hexadecimal.
        at: When the head was made, in UTC.
        key: The fingerprint of the public key, to choose among several; it proves nothing.
        signature: Ed25519, in base64, of `text`; empty: not signed yet.
    """

    store: str
    dataset: str
    size: int
    root: str
    at: str
    key: str = ""
    signature: str = ""

    @property
    def chain(self) -> Chain:
        """The store and dataset."""
        return self.store, self.dataset

    @property
    def text(self) -> str:
        """The signed text."""
        fields = {name: getattr(self, name) for name in ("store", "dataset", "size", "root", "at")}
        return write_text("head", fields)

    @property
    def words(self) -> str:
        """The head in a sentence."""
        return f"{name_chain(self.dataset)}, head of {self.size} rows, signed {self.at}"

    @staticmethod
    def parse(data: Mapping[str, Any]) -> Head:
        """Parse a head from outside.

        Raises:
            ParameterError: The data are not a head.
        """
        texts = {name: _read_text(data, name) for name in ("store", "dataset", "at", "key", "signature")}
        return Head(size=_read_count(data, "size"), root=_read_hash(data.get("root")), **texts)

    def signed(self, signer: Signer) -> Head:
        """Copy of the head with a signature."""
        return replace(self, key=signer.public.fingerprint, signature=signer.sign(self.text))

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        return {"kind": "head", **{name: getattr(self, name) for name in self.__slots__}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Proof that the rows of one head begin with those of another.

    Attributes:
        store: The number of the store.
        dataset: Name of the dataset.
        first: The smaller head's size.
        second: The larger head's size.
        path: As of RFC 9162, section 2.1.4, in hexadecimal.
    """

    store: str
    dataset: str
    first: int
    second: int
    path: tuple[str, ...]

    @staticmethod
    def parse(data: Mapping[str, Any]) -> Consistency:
        """Parse a proof from outside.

        Raises:
            ParameterError: The data are not a proof.
        """
        return Consistency(
            store=_read_text(data, "store"),
            dataset=_read_text(data, "dataset"),
            first=_read_count(data, "first"),
            second=_read_count(data, "second"),
            path=_read_path(data.get("path")),
        )

    def holds(self, first: Head, second: Head) -> bool:
        """Whether the proof shows that one head's rows begin with another's."""
        roots = (bytes.fromhex(first.root), bytes.fromhex(second.root))
        return check_consistency(first.size, second.size, roots, [bytes.fromhex(one) for one in self.path])

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        return {"kind": "consistency", **{name: getattr(self, name) for name in self.__slots__}, "path": [*self.path]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion:
    """Proof that a row is among those of a head.

    Attributes:
        store: The number of the store.
        dataset: Name of the dataset.
        seq: The row's position.
        hash: The row's hash, as in its receipt.
        size: The head's size.
        path: As of RFC 9162, section 2.1.3, in hexadecimal.
    """

    store: str
    dataset: str
    seq: int
    hash: str
    size: int
    path: tuple[str, ...]

    @staticmethod
    def parse(data: Mapping[str, Any]) -> Inclusion:
        """Parse a proof from outside.

        Raises:
            ParameterError: The data are not a proof.
        """
        return Inclusion(
            store=_read_text(data, "store"),
            dataset=_read_text(data, "dataset"),
            seq=_read_count(data, "seq"),
            hash=_read_hash(data.get("hash")),
            size=_read_count(data, "size"),
            path=_read_path(data.get("path")),
        )

    def holds(self, head: Head) -> bool:
        """Whether the proof shows that the row is in a head."""
        leaf, path = hash_leaf(bytes.fromhex(self.hash)), [bytes.fromhex(one) for one in self.path]
        return check_inclusion(leaf, self.seq - 1, head.size, path, bytes.fromhex(head.root))

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        return {"kind": "inclusion", **{name: getattr(self, name) for name in self.__slots__}, "path": [*self.path]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Heads, receipts and proofs of a ledger that were kept outside it.

    Attributes:
        heads: Signed heads.
        receipts: Receipts of rows.
        consistency: Proofs between heads.
        inclusions: Proofs of rows in heads.
    """

    heads: tuple[Head, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    consistency: tuple[Consistency, ...] = ()
    inclusions: tuple[Inclusion, ...] = ()

    @staticmethod
    def parse(text: str, *, name: str = "file") -> Evidence:
        """Parse a file: one JSON, a list of them, or one per line; fields printed around a receipt are ignored.

        Raises:
            ParameterError: An item is not evidence.
        """
        try:
            found = json.loads(text)
            items = found if isinstance(found, list) else [found]
        except ValueError:
            items = [_read_line(line, name) for line in text.splitlines() if line.strip()]
        if not items:
            raise ParameterError("expected receipts or heads, got an empty file", name=name)
        made = [_parse_item(item, name) for item in items]
        return Evidence(
            heads=tuple(one for one in made if isinstance(one, Head)),
            receipts=tuple(one for one in made if isinstance(one, Receipt)),
            consistency=tuple(one for one in made if isinstance(one, Consistency)),
            inclusions=tuple(one for one in made if isinstance(one, Inclusion)),
        )

    @staticmethod
    def join(parts: Iterable[Evidence]) -> Evidence:
        """Union of several pieces of evidence, without duplicates."""
        every = list(parts)
        return Evidence(
            heads=_flat(every, lambda one: one.heads),
            receipts=_flat(every, lambda one: one.receipts),
            consistency=_flat(every, lambda one: one.consistency),
            inclusions=_flat(every, lambda one: one.inclusions),
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """Fields of every item, heads first."""
        every = (self.heads, self.receipts, self.consistency, self.inclusions)
        return [one.to_dict() for part in every for one in part]

    def lines(self) -> list[str]:
        """One line of JSON for each item."""
        return [canonical(one) for one in self.to_dicts()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Conclusions from evidence alone.

    Attributes:
        heads: Number of compared heads.
        receipts: Number of compared receipts.
        problems: Contradictions, and items that were not signed with the key, one sentence each.
        missing: Open questions for lack of a proof, one sentence each.
    """

    heads: int
    receipts: int
    problems: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def verdict(self) -> Literal["consistent", "contradicted", "undecided"]:
        """Verdict: contradicted if there is a problem, else undecided if a proof is missing, else consistent."""
        if self.problems:
            return "contradicted"
        return "undecided" if self.missing else "consistent"

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        counts = {"heads": self.heads, "receipts": self.receipts}
        told = {"problems": list(self.problems), "missing": list(self.missing)}
        return {"verdict": self.verdict, **counts, **told}


def check_signatures(evidence: Evidence, key: PublicKey) -> Compared:
    """Check that receipts and heads were signed with a key, but not that their rows still exist."""
    problems = [f"{head.words}: {_blame(head.key, key)}" for head in evidence.heads if not is_signed(head, key)]
    missing = []
    for receipt in evidence.receipts:
        where = f"{name_chain(receipt.dataset)}, receipt of row {receipt.seq}"
        if len(receipt.signature) == _OLD:
            missing.append(
                f"{where}: it predates Ed25519, so that only the store can check it: ledger verify --receipt"
            )
        elif not key.verifies(receipt_text(receipt.store, receipt), receipt.signature):
            problems.append(f"{where}: {_blame(receipt.key, key)}")
    counts = {"heads": len(evidence.heads), "receipts": len(evidence.receipts)}
    return Compared(problems=tuple(problems), missing=tuple(missing), **counts)


def compare(evidence: Evidence, key: PublicKey) -> Compared:
    """Compare heads, receipts and proofs without the ledger.

    In every chain valid proofs have to lead from each head to the largest one; an item that was not signed with the key
    is a problem, and nothing is concluded from it.
    """
    signatures = check_signatures(evidence, key)
    problems, missing = list(signatures.problems), list(signatures.missing)
    chains: dict[Chain, list[Head]] = defaultdict(list)
    for head in evidence.heads:
        if is_signed(head, key):
            chains[head.chain].append(head)
    proofs: dict[Chain, list[Consistency]] = defaultdict(list)
    for one in evidence.consistency:
        proofs[one.store, one.dataset].append(one)
    for chain, heads in sorted(chains.items()):
        wrong, open_ = _compare_heads(heads, proofs[chain])
        problems += wrong
        missing += open_
    wrong, open_ = _compare_receipts(evidence, chains, key)
    counts = {"heads": len(evidence.heads), "receipts": len(evidence.receipts)}
    return Compared(problems=(*problems, *wrong), missing=(*missing, *open_), **counts)


def is_signed(head: Head, key: PublicKey) -> bool:
    """Whether a head was signed with a key."""
    return key.verifies(head.text, head.signature)


def name_chain(dataset: str) -> str:
    """Name of a chain in words."""
    return "names and tokens" if dataset == REGISTRY else dataset


def _compare_heads(heads: Sequence[Head], proofs: Sequence[Consistency]) -> tuple[list[str], list[str]]:
    """Contradictions between the heads of one chain, and missing proofs."""
    problems, missing = [], []
    sizes: dict[int, Head] = {}
    for head in sorted(heads, key=lambda one: (one.size, one.at)):
        other = sizes.setdefault(head.size, head)
        if other.root != head.root:
            problems.append(f"{head.words}: a fork: the head of the same size signed {other.at} has other rows")
    problems += _find_rollbacks(heads)
    reached, (largest, *others) = {max(sizes)}, sorted(sizes, reverse=True)
    held, failed = defaultdict(set), defaultdict(set)
    for proof in proofs:
        if proof.first in sizes and proof.second in sizes:
            if proof.holds(sizes[proof.first], sizes[proof.second]):
                held[proof.first].add(proof.second)
            else:
                failed[proof.first].add(proof.second)
    for size in others:  # from the largest down, so that what follows each is known
        if held[size] & reached:
            reached.add(size)
            continue
        where = f"{sizes[size].words}: "
        if tried := failed[size]:
            what = f"it does not follow that the head of {max(tried)} rows begins with it"
            problems.append(f"{where}a fork, or a fabricated proof: {what}")
        else:
            missing.append(f"{where}no proof that the head of {largest} rows begins with it: ledger heads prove")
    return problems, missing


def _find_rollbacks(heads: Sequence[Head]) -> list[str]:
    """Problems for heads smaller than one signed more than five minutes before them, in one chain."""
    problems, i = [], 0
    ordered = sorted(((datetime.fromisoformat(head.at), head) for head in heads), key=lambda one: one[0])
    most: Head | None = None  # the largest of those that were signed long enough before
    for moment, head in ordered:
        while moment - ordered[i][0] > _CLOCKS:
            most, i = max(most or ordered[i][1], ordered[i][1], key=lambda one: one.size), i + 1
        if most is not None and most.size > head.size:
            problems.append(f"{head.words}: a rollback, or the clock was set: {most.size} rows were signed {most.at}")
    return problems


def _compare_receipts(
    evidence: Evidence, chains: Mapping[Chain, Sequence[Head]], key: PublicKey
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Contradictions of receipts, and receipts without a proof that their row is in a head."""
    problems, missing = [], []
    places: dict[tuple[str, str, int], Receipt] = {}
    proofs: dict[tuple[str, str, int, str], list[Inclusion]] = defaultdict(list)
    for one in evidence.inclusions:
        proofs[one.store, one.dataset, one.seq, one.hash].append(one)
    sizes = {(*chain, head.size): head for chain, heads in chains.items() for head in heads}
    for receipt in evidence.receipts:
        if not key.verifies(receipt_text(receipt.store, receipt), receipt.signature):
            continue  # told already
        where = f"{name_chain(receipt.dataset)}, receipt of row {receipt.seq}"
        other = places.setdefault((receipt.store, receipt.dataset, receipt.seq), receipt)
        if other.hash != receipt.hash:
            problems.append(f"{where}: a fork: another receipt shows another row in the same place")
        about = proofs[receipt.store, receipt.dataset, receipt.seq, receipt.hash]
        tried = [(one, head) for one in about if (head := sizes.get((one.store, one.dataset, one.size))) is not None]
        if any(proof.holds(head) for proof, head in tried):
            continue
        if tried:
            problems.append(f"{where}: a fork, or a fabricated proof: it does not follow that its row is in a head")
        else:
            missing.append(f"{where}: no proof that its row is in a head: ledger heads prove")
    return problems, missing


def _blame(fingerprint: str, key: PublicKey) -> str:
    if fingerprint != key.fingerprint:
        return f"it was signed with another key ({fingerprint[:16] or 'which it does not name'}…), or not signed"
    return "it was not signed with this key: it was changed, or fabricated"


def _flat(parts: Iterable[Evidence], take: Callable[[Evidence], tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(one for part in parts for one in take(part)))


def _read_line(line: str, name: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        raise ParameterError(f"expected JSON, one per line, got {line[:60]!r}", name=name, given=line[:80]) from None


def _parse_item(item: object, name: str) -> Head | Receipt | Consistency | Inclusion:
    if isinstance(item, Mapping):
        kinds: dict[object, Callable[[Mapping[str, Any]], Head | Consistency | Inclusion]] = {
            "head": Head.parse, "consistency": Consistency.parse, "inclusion": Inclusion.parse,
        }  # fmt: skip
        if (parse := kinds.get(item.get("kind"))) is not None:
            return parse(item)
        inner = item.get("receipt") or item.get("head") or item
        if isinstance(inner, Mapping) and "hash" in inner:
            return Receipt.parse(inner)
    message = "expected a receipt as printed by a charge, or heads as printed by privcheck ledger heads show"
    raise ParameterError(f"{message}, got {str(item)[:60]!r}", name=name, given=str(item)[:80])


def _read_text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    good = isinstance(value, str) and is_plain(value)
    if good and name == "at":
        try:
            good = datetime.fromisoformat(str(value)).tzinfo is not None
        except ValueError:
            good = False
    if not good:
        raise ParameterError(f"expected {name} of a head or a proof, got {str(value)[:60]!r}", name=name, given=value)
    return str(value)


def _read_count(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    if type(value) is not int or not 1 <= value < 2**63:
        raise ParameterError(f"expected {name} as a number of rows, got {str(value)[:60]!r}", name=name, given=value)
    return value


def _read_hash(value: object) -> str:
    if not isinstance(value, str) or not HEXADECIMAL.fullmatch(value):
        message = f"expected a hash of 64 hexadecimal digits, got {str(value)[:80]!r}"
        raise ParameterError(message, name="hash", given=value)
    return value


def _read_path(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _LONGEST_PATH:
        message = f"expected the path of a proof, at most {_LONGEST_PATH} hashes, got {str(value)[:60]!r}"
        raise ParameterError(message, name="path", given=str(value)[:80])
    return tuple(_read_hash(one) for one in value)
