"""Statements of a declaration beside its releases: printed statements it is judged by, and public facts with reasons.

A verdict is about a declaration. Whether it is also one about a paper depends on whether the declaration is what the
paper prints (`Origin`), and on which of its statements a pair of neighbours contradicts (`Statement`).

The users of a group, the ends of batches, the number of users: a cost says nothing about these, because neighbours
share them. A fact is public because its author states so with a reason (`public`), or because it follows from earlier
outputs (`from_billboard`). A value computed from data (`from_data`) is itself a release, and is refused. A plain text
or number is a fact without a stated reason; the verdict names it all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from privcheck.errors import DeclarationError

Kind = Literal["printed", "repaired", "reconstructed", "published code", "own"]
About = Literal["releases", "actions"]
Standing = Literal["holds", "holds, given", "refuted", "undecided", "unproved", "not applicable"]

KINDS: Final[dict[Kind, str]] = {
    "printed": "as the text has it",
    "repaired": "the text with a change that the verdict needs",
    "reconstructed": "noise or constants that no text states",
    "published code": "what the authors' program does",
    "own": "an algorithm of its declaration's author",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Origin of a declaration.

    Attributes:
        kind: "printed", as the text has it; "repaired", with a change that the verdict needs; "reconstructed", with
            noise or constants that no text states; "published code", the behaviour of the authors' program; "own", an
            algorithm of the declaration's author.
        text: The source: paper and algorithm, or repository, commit, file and lines.
        changed: Differences from that text, and why: for repaired and reconstructed ones, and only for them.

    Raises:
        DeclarationError: The kind is unknown, the text is missing, or `changed` is given for another kind or missing
            for one of these two.
    """

    kind: Kind
    text: str
    changed: str = ""

    def __post_init__(self) -> None:
        from privcheck.terms.parameters import one_of, text  # with SymPy, which reports that are read do without

        one_of("kind, of Origin", self.kind, get_args(Kind))
        text("text, of Origin", self.text)
        text("changed, of Origin", self.changed, empty=True)
        if (self.kind in {"repaired", "reconstructed"}) != bool(self.changed):
            expected = "nothing" if self.changed else "what is not in the text, and why"
            raise DeclarationError(f"changed, of Origin: expected {expected} where the kind is {self.kind!r}")

    @property
    def of_paper(self) -> bool:
        """Whether a verdict is one on the authors' text or program."""
        return self.kind in {"printed", "published code"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One printed statement.

    Attributes:
        name: As the paper numbers it: "Lemma 5.1".
        quotation: Its own words, two sentences at most; formulas in plain characters.
        where: Version of the text, section, and page or line where the version has them.
        neighbours: The inputs it compares, as the statement or the definition it cites says.
        about: "releases", the noisy statistics that are judged; "actions", which follow from them by the billboard
            lemma.
        assumes: Its assumptions, in words.
        disclaimed: Limitations that the authors state elsewhere, with the place.
        inapplicable: Why it does not apply to this system, although the system is the paper's; empty if it does.

    Raises:
        DeclarationError: A field is missing or of another type.
    """

    name: str
    quotation: str
    where: str
    neighbours: str
    about: About = "releases"
    assumes: tuple[str, ...] = ()
    disclaimed: str = ""
    inapplicable: str = ""

    def __post_init__(self) -> None:
        from privcheck.terms.parameters import one_of, several, text

        for field in ("name", "quotation", "where", "neighbours"):
            text(f"{field}, of Statement", getattr(self, field))
        one_of("about, of Statement", self.about, get_args(About))
        several("assumes, of Statement", self.assumes, str)
        text("disclaimed, of Statement", self.disclaimed, empty=True)
        text("inapplicable, of Statement", self.inapplicable, empty=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedStatement:
    """A statement with its verdict.

    Attributes:
        statement: The statement.
        standing: "holds" and "holds, given" (an author's statement) and "undecided" and "refuted", by a pair, for the
            releases as the text has them; "unproved", for a consequence if the releases were private; "not applicable",
            if the system is not the one that the statement is about.
        why: In words.
    """

    statement: Statement
    standing: Standing
    why: str


def judge_statements(
    statements: tuple[Statement, ...],
    origin: Origin | None,
    *,
    verdict: Literal["holds", "fails", "undecided"],
    joint: Literal["follows", "unproved", "refuted"] | None,
    given: tuple[str, ...],
) -> tuple[JudgedStatement, ...]:
    """Judge each printed statement by the verdict on a declaration.

    Args:
        statements: Of the declaration's claim.
        origin: Of the declaration; None if its author does not say.
        verdict: On the releases.
        joint: Conclusion for the actions.
        given: Statistics and mechanisms with a sensitivity or cost stated by their author.
    """
    return tuple(_judge(one, origin, verdict, joint, given) for one in statements)


def _judge(
    statement: Statement,
    origin: Origin | None,
    verdict: Literal["holds", "fails", "undecided"],
    joint: Literal["follows", "unproved", "refuted"] | None,
    given: tuple[str, ...],
) -> JudgedStatement:
    standing: Standing
    if origin is not None and origin.kind in {"repaired", "reconstructed"}:
        standing, why = "not applicable", f"the system is {origin.kind}: {origin.changed}"
    elif statement.inapplicable:
        standing, why = "not applicable", statement.inapplicable
    elif statement.about == "actions":
        standing, why = _ACTIONS[joint or "unproved"]
    else:
        standing, why = _RELEASES[verdict]
    if standing == "holds" and given:
        standing, why = "holds, given", f"{why}, provided that the stated facts of {' and '.join(given)} are true"
    return JudgedStatement(statement=statement, standing=standing, why=why)


_RELEASES: Final[dict[str, tuple[Standing, str]]] = {
    "holds": ("holds", "the releases cost no more"),
    "fails": ("refuted", "a pair of neighbours loses more"),
    "undecided": ("undecided", "neither a proof nor a pair is known"),
}
_ACTIONS: Final[dict[str, tuple[Standing, str]]] = {
    "follows": ("holds", "by the billboard lemma, from the releases"),
    "unproved": ("unproved", "the billboard lemma needs private releases, and it has no converse"),
    "refuted": ("refuted", "an audit of the other users' actions exceeds it"),
}


@dataclass(frozen=True, slots=True)
class PublicFact:
    """A value that reveals nothing about any user, and the reason.

    Attributes:
        value: The text, number or expression itself.
        why: The reason, in its author's words; empty if none is stated.
        of: The releases that it is a function of; empty if it is stated to be public.
    """

    value: Any
    why: str = ""
    of: tuple[str, ...] = ()

    @property
    def by(self) -> str:
        """Who or what states that it is public."""
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
    from privcheck.terms.parameters import text

    text("why, of a public fact", why)
    return PublicFact(value, why=why)


def from_billboard(value: Any, *, of: tuple[str, ...] | str) -> PublicFact:
    """State that a value is a function of earlier outputs, and of nothing else.

    Args:
        value: As for `public`.
        of: The names of the releases whose earlier outputs it is computed from.

    Raises:
        DeclarationError: No release is named.

    >>> from_billboard("rewards of one arm", of="batches").by
    'a function of earlier outputs of batches'
    """
    names = (of,) if isinstance(of, str) else tuple(of)
    if not names:
        message = "of, of a fact from the billboard: expected the names of releases, got none"
        raise DeclarationError(f"{message}; for a fact known beforehand write public(…, why=…)")
    from privcheck.terms.parameters import text

    for name in names:
        text("of, of a fact from the billboard", name)
    return PublicFact(value, of=names)


def from_data(what: str) -> DataFact:
    """Mark a value as computed from data, so that a declaration refuses it.

    Args:
        what: How it is computed, such as "one over the number of patients in the table".
    """
    from privcheck.terms.parameters import text

    text("what, of a fact from data", what)
    return DataFact(what)


def take_public(what: str, given: Any, *, sound: str, billboard: str = "") -> PublicFact:
    """Convert a value to a public fact.

    Args:
        what: Its name in messages.
        given: A fact, or a plain value.
        sound: A sound alternative to a value from data, for messages.
        billboard: Why it may not be a function of earlier outputs either; empty if it may.

    Raises:
        DeclarationError: It is computed from data, or from earlier outputs although these may not determine it.
    """
    if isinstance(given, DataFact):
        message = f"{what}: expected a public fact, got one that is computed from data ({given.what})"
        raise DeclarationError(f"{message}, which is a release without noise; {sound}")
    if not isinstance(given, PublicFact):
        return PublicFact(given)
    if given.of and billboard:
        message = f"{what}: expected a fact known beforehand, got a function of earlier outputs ({', '.join(given.of)})"
        raise DeclarationError(f"{message}: {billboard}; {sound}")
    return given
