"""Public facts: what a declaration takes for known to everybody, each with the reason, and what is refused as one.

Which users are in a group, where a batch ends, how many users there are: a price says nothing about these, because
neighbours share them. A fact is public because somebody says so and why (`public`), or because it follows from outputs
that have left already (`from_billboard`). What is computed from data (`from_data`) is a release of its own, and is
refused. A plain text or number is a fact of which no reason is stated; the verdict names it all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privcheck.errors import DeclarationError
from privcheck.fields import text


@dataclass(frozen=True, slots=True)
class PublicFact:
    """A value that tells nothing about any user, and why.

    Attributes:
        value: The text, number or expression itself.
        why: The reason, in its author's words; empty where none is stated.
        of: The releases of which it is a function; empty where it is stated to be public.
    """

    value: Any
    why: str = ""
    of: tuple[str, ...] = ()

    @property
    def by(self) -> str:
        """On whose word it is public."""
        if self.of:
            return f"a function of earlier outputs of {', '.join(self.of)}"
        return f"the declaration's author: {self.why}" if self.why else "the declaration, which states no reason"

    def __str__(self) -> str:
        """The value."""
        return str(self.value)


@dataclass(frozen=True, slots=True)
class DataFact:
    """A value that is computed from data: refused wherever a public fact is expected.

    Attributes:
        what: How it is computed, in words.
    """

    what: str


def public(value: Any, *, why: str) -> PublicFact:
    """State that a value does not depend on any user's data.

    Args:
        value: The group's name, the batches in words, a number or an expression.
        why: The reason, such as "the parity of an episode's index".

    Raises:
        DeclarationError: No reason is stated.

    >>> public("odd episodes", why="the parity of an episode's index").by
    "the declaration's author: the parity of an episode's index"
    """
    text("why, of a public fact", why)
    return PublicFact(value, why=why)


def from_billboard(value: Any, *, of: tuple[str, ...] | str) -> PublicFact:
    """State that a value is a function of what earlier outputs showed, and of nothing else.

    Args:
        value: As of `public`.
        of: The names of the releases whose earlier outputs it is computed from.

    Raises:
        DeclarationError: No release is named.

    >>> from_billboard("rewards of one arm", of="batches").by
    'a function of earlier outputs of batches'
    """
    names = (of,) if isinstance(of, str) else tuple(of)
    if not names:
        message = "of, of a fact from the billboard: expected the names of releases, got none"
        raise DeclarationError(f"{message}; of what is known beforehand write public(…, why=…)")
    for name in names:
        text("of, of a fact from the billboard", name)
    return PublicFact(value, of=names)


def from_data(what: str) -> DataFact:
    """Mark a value as computed from data, so that a declaration refuses it.

    Args:
        what: How it is computed, such as "one over the number of patients in the table".
    """
    text("what, of a fact from data", what)
    return DataFact(what)


def take_public(what: str, given: Any, *, sound: str, billboard: str = "") -> PublicFact:
    """Take a value for a public fact.

    Args:
        what: How messages call it.
        given: A fact, or a plain value.
        sound: What would be sound instead of a value from data, for messages.
        billboard: Why it may not be a function of earlier outputs either; empty where it may.

    Raises:
        DeclarationError: It is computed from data, or from earlier outputs where these may not choose it.
    """
    if isinstance(given, DataFact):
        message = f"{what}: expected a public fact, got one that is computed from data ({given.what})"
        raise DeclarationError(f"{message}, which is a release without noise; {sound}")
    if not isinstance(given, PublicFact):
        return PublicFact(given)
    if given.of and billboard:
        message = (
            f"{what}: expected what is known beforehand, got a function of earlier outputs ({', '.join(given.of)})"
        )
        raise DeclarationError(f"{message}: {billboard}; {sound}")
    return given
