"""The unit of privacy: who a guarantee protects, as one value passed from the table to the ledger.

A table says who a user is and the largest number of trajectories of a user; a declaration adds the neighbouring
relation and the model of trust. Every later statement of a guarantee (price, policy file, report, charge, statement)
carries the same value, and two modules that meet compare theirs with `explain_mismatch`: there is no default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from privcheck.errors import ParameterError

RelationName = Literal["replace-one", "replace-one-same-start", "add-remove", "zero-out"]
TrustModel = Literal["central", "joint", "shuffle", "local"]
Basis = Literal["column", "assertion", "simulation", "declaration", "statement"]

LARGEST: Final = 10**9  # trajectories of a user, and steps of one
_WORDS: Final[dict[RelationName, str]] = {
    "replace-one": "replace one {}",
    "replace-one-same-start": "replace one {}, step 1's state and action in common",
    "add-remove": "add or remove one {}",
    "zero-out": "zero out one {}",
}
# of a guarantee: the relations for which it holds too, because each of their pairs is one of its own
_IMPLIES: Final[dict[RelationName, frozenset[RelationName]]] = {
    "replace-one": frozenset({"replace-one", "replace-one-same-start"}),
    "replace-one-same-start": frozenset({"replace-one-same-start"}),
    "add-remove": frozenset({"add-remove"}),
    "zero-out": frozenset({"zero-out"}),
}
# of a guarantee: in how many of its steps a neighbour under another relation is reached
_STEPS_TO: Final[dict[tuple[RelationName, RelationName], int]] = {
    ("add-remove", "replace-one"): 2,
    ("add-remove", "replace-one-same-start"): 2,
    ("zero-out", "replace-one"): 2,
    ("zero-out", "replace-one-same-start"): 2,
}
# of a dataset: the models of what may be charged to it. What is on a billboard is private in the central model
_TAKES: Final[dict[TrustModel, tuple[TrustModel, ...]]] = {
    "central": ("central", "joint"),
    "joint": ("central", "joint"),
    "shuffle": ("shuffle",),
    "local": ("local",),
}
_DRAWN: Final[dict[TrustModel, str]] = {
    "central": "by a curator who sees the data",
    "joint": "by a curator who sees the data",
    "shuffle": "by each user, behind a shuffler",
    "local": "by each user",
}
_GENERIC: Final = ("declaration", "simulation")
_IDENTIFIER: Final = re.compile(r"(?<=[a-z])[_\- ](ids?|key|nr|no|num|number|hash|uuid|pseudonym)\.?$")
_SHORT: Final = {"pat": "patient", "pt": "patient", "subj": "subject"}  # of columns' names
_EXAMPLE: Final = "'patient, 8 trajectories, replace-one, central'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Who is protected, with how much of the data, between which neighbours, and against whom.

    Attributes:
        who: The noun for one protected person, such as "patient".
        trajectories: Largest number of trajectories of one person.
        steps: Largest number of steps of a trajectory; None if it is not stated.
        relation: The neighbouring relation; None for a table, for which no declaration was chosen yet.
        model: Where the noise is drawn; None likewise.
        basis: How `who` and `trajectories` are known. For a table: counted in a "column", by "assertion" that each
            episode is another user's, or from a "simulation". Without a table: from a "declaration", or by "statement"
            of the person who charges or opens a dataset.
        stated_by: The person or source of the statement, in words.

    Raises:
        ParameterError: A field is out of its range.
    """

    who: str
    trajectories: int
    steps: int | None = None
    relation: RelationName | None = None
    model: TrustModel | None = None
    basis: Basis
    stated_by: str

    def __post_init__(self) -> None:
        for name, text in (("who", self.who), ("stated_by", self.stated_by)):
            if not isinstance(text, str) or not text.strip() or len(text) > 200 or not text.isprintable():
                raise ParameterError(f"{name}, of a unit of privacy: expected a text, got {text!r:.80}", name=name)
        if "," in self.who:
            message = f"who, of a unit of privacy: expected a noun such as 'patient', got {self.who!r:.80}"
            raise ParameterError(message, name="who", given=self.who)
        _check_count("trajectories", self.trajectories)
        if self.steps is not None:
            _check_count("steps", self.steps)
        _check_word("relation", self.relation, get_args(RelationName), none=True)
        _check_word("model", self.model, get_args(TrustModel), none=True)
        _check_word("basis", self.basis, get_args(Basis))

    @property
    def of_table(self) -> bool:
        """Whether these are the users of an actual table, not of a simulation or of a declaration alone."""
        return self.basis in {"column", "assertion"}

    @property
    def words(self) -> str:
        """The unit in words: who, how much data, neighbours, and model of trust."""
        several = "1 trajectory" if self.trajectories == 1 else f"up to {self.trajectories} trajectories each"
        steps = "" if self.steps is None else f", of up to {self.steps} steps"
        relation = self.who if self.relation is None else _WORDS[self.relation].format(self.who)
        model = "" if self.model is None else f", {self.model} model"
        return f"{relation} ({several}{steps}){model}"

    @property
    def text(self) -> str:
        """The form that `parse_unit` reads.

        >>> Unit(who="patient", trajectories=8, relation="replace-one", model="central", basis="column",
        ...      stated_by="column patient_id").text
        'patient, 8 trajectories, replace-one, central'
        """
        steps = "" if self.steps is None else f", {self.steps} steps"
        several = "trajectory" if self.trajectories == 1 else "trajectories"
        return f"{self.who}, {self.trajectories} {several}{steps}, {self.relation}, {self.model}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON."""
        return {
            "who": self.who,
            "trajectories": self.trajectories,
            "steps": self.steps,
            "relation": self.relation,
            "model": self.model,
            "basis": self.basis,
            "stated_by": self.stated_by,
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> Unit:
        """Read the fields that `to_dict` wrote.

        Raises:
            ParameterError: A field is missing, unknown or out of its range.
        """
        known = {"who", "trajectories", "steps", "relation", "model", "basis", "stated_by"}
        if (
            not isinstance(data, Mapping)
            or set(data) - known
            or {"who", "trajectories", "basis", "stated_by"} - set(data)
        ):
            message = f"expected a unit of privacy with {', '.join(sorted(known))}; got {str(data)[:200]}"
            raise ParameterError(message, name="unit", given=data)
        return Unit(**data)


def parse_unit(text: object, *, stated_by: str) -> Unit:
    """Parse a complete unit as people write it: who, largest number of trajectories, relation, model of trust.

    Args:
        text: Such as "patient, 8 trajectories, replace-one, central"; "… 8 trajectories, 20 steps, …" is allowed.
        stated_by: Who wrote it.

    Raises:
        ParameterError: A part is missing or unknown.

    >>> parse_unit("patient, 8 trajectories, replace-one, central", stated_by="officer ana").trajectories
    8
    """
    parts = [part.strip() for part in text.split(",")] if isinstance(text, str) else []
    counts = {"trajectories": None, "steps": None} | dict(_read_counts(parts[1:-2]))
    if len(parts) not in (4, 5) or counts["trajectories"] is None or len(parts) != 4 + (counts["steps"] is not None):
        message = f"expected a unit of privacy as {_EXAMPLE}: noun, number of trajectories, relation, model; got"
        raise ParameterError(f"{message} {str(text)[:200]!r}", name="unit", given=text)
    fields: Any = {"relation": parts[-2], "model": parts[-1], "basis": "statement", "stated_by": stated_by, **counts}
    return Unit(who=parts[0], **fields)


def say_trajectories(count: int) -> str:
    """A number of trajectories in words.

    >>> say_trajectories(1), say_trajectories(8)
    ('one trajectory', '8 trajectories')
    """
    return "one trajectory" if count == 1 else f"{count} trajectories"


def name_person(column: str) -> str:
    """The noun that a column of identifiers is about.

    >>> name_person("patient_id"), name_person("SubjectID"), name_person("user"), name_person("Pat-Nr.")
    ('patient', 'subject', 'user', 'patient')
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower().strip()
    noun = _IDENTIFIER.sub("", words).strip("_- ").replace("_", " ").replace(",", " ")
    return _SHORT.get(noun, noun) or column


def explain_mismatch(offered: Unit, needed: Unit, *, whose: str) -> str | None:
    """Explain why a guarantee for one unit does not cover another, with the sound conversion; None if it does.

    A guarantee for up to m trajectories covers fewer. Declarations and simulations call their user by a generic noun,
    so that `who` is compared only if a person or a table named it.

    Args:
        offered: Unit of the cost.
        needed: Unit of the dataset that is charged.
        whose: Name of that dataset in messages.
    """
    wrong, steps, sound = [], 1, True
    if offered.relation is None or offered.model is None or needed.relation is None or needed.model is None:
        wrong.append("a relation or a model of trust is missing")
        sound = False
    else:
        if needed.relation not in _IMPLIES[offered.relation]:
            wrong.append(f"the relation is {offered.relation}, not {needed.relation}")
            steps *= _STEPS_TO.get((offered.relation, needed.relation), 0)
        if offered.model not in _TAKES[needed.model]:
            drawn = f"noise is drawn {_DRAWN[offered.model]}, not {_DRAWN[needed.model]}"
            wrong.append(f"the model is {offered.model}, not {needed.model} ({drawn})")
            sound = False
    if offered.basis not in _GENERIC and offered.who.casefold() != needed.who.casefold():
        wrong.append(f"it protects one {offered.who}, not one {needed.who}")
        sound = False
    if offered.trajectories < needed.trajectories:
        wrong.append(f"trajectories of one {needed.who} covered: {offered.trajectories}, not {needed.trajectories}")
        steps *= -(-needed.trajectories // offered.trajectories)
    if needed.steps is not None and (offered.steps is None or offered.steps < needed.steps):
        wrong.append(f"a trajectory has {offered.steps or 'an unstated number of'} steps, not {needed.steps}")
        sound = False
    if not wrong:
        return None
    return (
        f"priced for: {offered.words} (stated by: {offered.stated_by}); {whose} protects: {needed.words} (stated by: "
        f"{needed.stated_by}): {'; '.join(wrong)}. {_remedy(steps if sound else 0, needed)}"
    )


def _remedy(steps: int, needed: Unit) -> str:
    if not steps:
        return f"No conversion is known: price it for {needed.text!r}, or charge a dataset with its unit"
    return (
        f"Group privacy over {steps} neighbours is a sound conversion: charge ε × {steps}, ρ × {steps**2} or μ² × "
        f"{steps**2}, stated for {needed.text!r}; a δ of outright loss needs a separate price"
    )


def _read_counts(parts: list[str]) -> list[tuple[str, int]]:
    found = []
    for part in parts:
        match = re.fullmatch(r"(?:at most |up to )?([0-9]{1,10}) (trajector(?:y|ies)|steps?)", part)
        if match:
            found.append(("steps" if match[2].startswith("step") else "trajectories", int(match[1])))
    return found


def _check_count(name: str, given: object) -> None:
    if type(given) is not int or not 1 <= given <= LARGEST:
        message = f"{name}, of a unit of privacy: expected a whole number from 1 to {LARGEST}, got {given!r:.80}"
        raise ParameterError(message, name=name, given=given)


def _check_word(name: str, given: object, known: tuple[str, ...], *, none: bool = False) -> None:
    if not ((none and given is None) or (isinstance(given, str) and given in known)):
        message = f"{name}, of a unit of privacy: expected one of {', '.join(known)}; got {given!r:.80}"
        raise ParameterError(message, name=name, given=given)
