"""What a store signs with Ed25519, and how anybody who has its public key checks that.

A store has a secret of 256 bits. Its signing key is the Ed25519 key (RFC 8032) whose seed is the SHA-256 of a label
and that secret, so that a store from before signatures needs no new one. What is signed is a short text of lines,
with a label and a version first (`write_text`): a signature of one kind of text is none of another.

A signature shows that whoever had the store's secret said so. Whoever can read the store's file has it too; against
them the evidence is in what was told to others before: two heads of one ledger that contradict each other, or a head
and a ledger (`privcheck.ledger.heads`).

`cryptography` (extra `[ledger]`) is imported when something is signed or checked, not before.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from privcheck.errors import ParameterError, StoreError
from privcheck.ledger.exact import canonical
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Entry, Receipt

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


_SEED: Final = b"privcheck ledger signing key v1\0"
_COMMITMENT: Final = b"privcheck ledger secret v1\0"
_NEEDED: Final = "signatures of a ledger need cryptography: pip install 'privcheck[ledger]'"
_OLD: Final = 64  # characters of a receipt's signature from before Ed25519: HMAC-SHA256, which the store alone checks


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Public half of a store's key.

    Attributes:
        pem: As SubjectPublicKeyInfo in PEM.
        fingerprint: SHA-256 of its DER form, in hexadecimal.
    """

    pem: str
    fingerprint: str
    _key: Ed25519PublicKey = field(compare=False)

    @staticmethod
    def of(key: Ed25519PublicKey) -> PublicKey:
        """Public key with its two written forms."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        form = PublicFormat.SubjectPublicKeyInfo
        der = key.public_bytes(Encoding.DER, form)
        return PublicKey(key.public_bytes(Encoding.PEM, form).decode(), hashlib.sha256(der).hexdigest(), key)

    @staticmethod
    def parse(pem: str) -> PublicKey:
        """Parse a public key in PEM, as `privcheck ledger key` prints it.

        Raises:
            ParameterError: The text is not a public key, or not one of Ed25519.
            StoreError: `cryptography` is not installed.
        """
        check_installed()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        try:
            key = load_pem_public_key(pem.encode())
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            message = "expected an Ed25519 public key in PEM, as privcheck ledger key prints it"
            raise ParameterError(message, name="key", given=pem[:80])
        return PublicKey.of(key)

    def verifies(self, text: str, signature: str) -> bool:
        """Whether a text was signed with the private half."""
        from cryptography.exceptions import InvalidSignature

        try:
            value = base64.b64decode(signature, validate=True)
            self._key.verify(value, text.encode())
        except (ValueError, InvalidSignature):
            return False
        return base64.b64encode(value).decode() == signature  # one spelling of one signature

    def to_dict(self) -> dict[str, str]:
        """PEM and fingerprint as JSON."""
        return {"key": self.pem, "fingerprint": self.fingerprint}


@dataclass(frozen=True, slots=True)
class Signer:
    """A store's number and its key.

    Attributes:
        store: The store's number.
        public: The public half.
    """

    store: str
    public: PublicKey
    _secret: str = field(repr=False)
    _key: Ed25519PrivateKey = field(repr=False, compare=False)

    @staticmethod
    def of(transaction: Transaction) -> Signer:
        """Read a store's key.

        Raises:
            StoreError: The store has no key, or `cryptography` is not installed.
        """
        check_installed()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        secret = read_secret(transaction)
        seed = hashlib.sha256(_SEED + bytes.fromhex(secret)).digest()
        key = Ed25519PrivateKey.from_private_bytes(seed)
        return Signer(read_number(transaction), PublicKey.of(key.public_key()), secret, key)

    def sign(self, text: str) -> str:
        """Signature of a text, in base64; deterministic."""
        return base64.b64encode(self._key.sign(text.encode())).decode()

    def sign_receipt(self, receipt: Receipt) -> Receipt:
        """Copy of a receipt with the store's number, the key's fingerprint and the signature."""
        text = receipt_text(self.store, receipt)
        return receipt.signed(store=self.store, key=self.public.fingerprint, signature=self.sign(text))

    def is_signed(self, receipt: Receipt) -> bool:
        """Whether this store signed a receipt, with Ed25519 or with the earlier HMAC."""
        if len(receipt.signature) == _OLD:
            fields = canonical([receipt.dataset, receipt.seq, receipt.hash, receipt.at])
            old = hmac.digest(bytes.fromhex(self._secret), fields.encode(), "sha256").hex()
            return hmac.compare_digest(old, receipt.signature)
        return receipt.store == self.store and self.public.verifies(
            receipt_text(self.store, receipt), receipt.signature
        )


def write_text(kind: str, fields: Mapping[str, object]) -> str:
    """Text to be signed: a label with its version, then a line for each field, each ended by a line feed.

    No field may have a line feed: names, numbers, hashes and times of a ledger have none, and the parsers of outside
    data refuse it (`Receipt.parse`, `Head.parse`).

    >>> print(write_text("receipt", {"seq": 1}), end="")
    privcheck ledger receipt v1
    seq: 1
    """
    return "".join([f"privcheck ledger {kind} v1\n", *(f"{name}: {value}\n" for name, value in fields.items())])


def receipt_text(store: str, receipt: Receipt) -> str:
    """Signed text of a receipt."""
    fields = {name: getattr(receipt, name) for name in ("dataset", "seq", "hash", "at")}
    return write_text("receipt", {"store": store, **fields})


def unsigned(entry: Entry) -> Receipt:
    """Receipt of a row, before the store has signed it."""
    return Receipt(dataset=entry.dataset, seq=entry.seq, hash=entry.hash, at=entry.at)


def is_installed() -> bool:
    """Whether the package for signing, `cryptography`, is installed."""
    try:
        return find_spec("cryptography") is not None
    except ValueError:  # hidden from imports
        return False


def check_installed() -> None:
    """Check that the package for signing is installed.

    Raises:
        StoreError: `cryptography` is not installed.
    """
    if not is_installed():
        raise StoreError(_NEEDED)


def make_secret(transaction: Transaction) -> None:
    """Create the store's secret, once."""
    transaction.run("INSERT INTO meta (name, value) VALUES ('key', ?)", (secrets.token_hex(32),))


def read_secret(transaction: Transaction) -> str:
    """The store's secret, in hexadecimal.

    Raises:
        StoreError: The store has no secret.
    """
    row = transaction.one("SELECT value FROM meta WHERE name = 'key'")
    if row is None:
        raise StoreError("the ledger has no key: its creation was interrupted; make a new one: privcheck ledger init")
    return str(row[0])


def read_number(transaction: Transaction) -> str:
    """The store's permanent number."""
    row = transaction.one("SELECT value FROM meta WHERE name = 'store'")
    return "" if row is None else str(row[0])


def commit_secret(secret: str) -> str:
    """Commitment to the secret that does not reveal it, by which `verify` detects a replaced secret."""
    return hashlib.sha256(_COMMITMENT + bytes.fromhex(secret)).hexdigest()
