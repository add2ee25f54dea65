"""Declarations: what an algorithm releases, with which noise, and what its paper claims.

One object from which the noise is drawn (`privcheck.runtime`), the cost is charged (`privcheck.accounting`), the claim
is judged (`privcheck.verification`) and the auditors know where to attack (`audits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from privcheck.errors import DeclarationError, ParameterError, UnknownNameError
from privcheck.guarantees import Guarantee
from privcheck.mechanisms import Mechanism
from privcheck.relations import Relation
from privcheck.statistics import Sensitivity, Statistic
from privcheck.symbols import COUNTS, Exact, Expr, exact, expression

Model = Literal["central", "local", "shuffle"]
_LEAST = Fraction(1, 10**300)  # parameters end up as floats, which must neither vanish nor overflow
Kind = Literal["count", "positive", "probability", "real"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named number of a declaration or an agent.

    Attributes:
        name: As in the paper.
        default: Used where nothing is given, exact.
        kind: "count" (a positive integer), "positive", "probability" (in (0, 1)) or "real" (at least 0).
        meaning: What it is, with its unit.
    """

    name: str
    default: Exact
    kind: Kind
    meaning: str

    def check(self, given: Exact) -> Fraction:
        """Returns the value exactly.

        Raises:
            ParameterError: It is not a number of this kind.
        """
        try:
            value = exact(given)
        except ParameterError as error:
            raise ParameterError(f"{self.name}: {error}", name=self.name, given=given) from None
        allowed = {
            "count": value.denominator == 1 and value >= 1,
            "positive": value > 0,
            "probability": 0 < value < 1,
            "real": value >= 0,
        }[self.kind]
        if allowed and not (value == 0 or _LEAST <= abs(value) <= 1 / _LEAST):
            message = f"{self.name} ({self.meaning}): expected between 1e-300 and 1e300, got {str(given)[:40]}"
            raise ParameterError(message, name=self.name, given=given)
        if not allowed:
            wanted = {
                "count": "a whole number, at least 1",
                "positive": "a number above 0",
                "probability": "a number strictly between 0 and 1",
                "real": "a number, at least 0",
            }[self.kind]
            message = f"{self.name} ({self.meaning}): expected {wanted}, got {given}"
            raise ParameterError(message, name=self.name, given=given)
        return value


@dataclass(frozen=True, slots=True)
class L1:
    """A sensitivity in the ℓ₁ norm, as a paper states it."""

    value: Expr

    def __init__(self, value: Exact | Expr) -> None:
        object.__setattr__(self, "value", expression(value))

    def true(self, sensitivity: Sensitivity) -> Expr:
        """Returns the derived sensitivity in the same norm."""
        return sensitivity.l1


@dataclass(frozen=True, slots=True)
class L2:
    """A sensitivity in the ℓ₂ norm, as a paper states it."""

    value: Expr

    def __init__(self, value: Exact | Expr) -> None:
        object.__setattr__(self, "value", expression(value))

    def true(self, sensitivity: Sensitivity) -> Expr:
        """Returns the derived sensitivity in the same norm."""
        return sensitivity.l2


@dataclass(frozen=True, slots=True)
class Release:
    """One noisy statistic that leaves the curator, once.

    Attributes:
        name: Unique in the declaration; the name the channel is called with.
        statistic: What is computed.
        mechanism: What is added.
        stated: The sensitivity the paper states, or None where it states none. Charged is always the derived one.
        source: Where the paper says so.
    """

    name: str
    statistic: Statistic
    mechanism: Mechanism
    stated: L1 | L2 | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper claims of all releases together.

    Attributes:
        guarantee: The guarantee, in the declaration's parameters.
        source: The theorem.
    """

    guarantee: Guarantee
    source: str = field(kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What an algorithm releases about its users, and what is claimed of it.

    Attributes:
        name: The name users type.
        title: One line in words.
        source: Paper, algorithm, equation.
        relation: Which datasets are neighbours.
        releases: Everything that leaves the curator.
        claim: What the paper says of it.
        parameters: Every symbol that occurs, with default and range.
        model: Where the channel stands.

    Raises:
        DeclarationError: Two releases share a name, there is none, or a symbol has no parameter or one whose range is
            wider than the symbol's.
    """

    name: str
    title: str
    source: str
    relation: Relation
    releases: tuple[Release, ...]
    claim: Claim
    parameters: tuple[Parameter, ...]
    model: Model = "central"

    def __post_init__(self) -> None:
        names = [release.name for release in self.releases]
        if not names or len(set(names)) != len(names):
            raise DeclarationError(f"{self.name}: expected releases with distinct names, got {names}")
        used = frozenset[str]().union(
            *(r.statistic.symbols | r.mechanism.spread.symbols | (r.stated.value.symbols if r.stated else frozenset())
              for r in self.releases),
            *(getattr(self.claim.guarantee, slot).symbols for slot in self.claim.guarantee.__slots__),
        )  # fmt: skip
        unknown = sorted(used - {p.name for p in self.parameters})
        if unknown:
            raise DeclarationError(f"{self.name}: no Parameter is declared for {', '.join(unknown)}")
        for parameter in self.parameters:
            # a proof for all values of a symbol must cover every value that its parameter takes
            kinds = ("count",) if parameter.name in COUNTS else ("count", "positive", "probability")
            if parameter.kind not in kinds:
                message = f"{self.name}: {parameter.name} stands for a symbol of kind {' or '.join(kinds)}"
                raise DeclarationError(f"{message}; its Parameter is of kind {parameter.kind}")

    def release(self, name: str) -> Release:
        """Returns the release of that name.

        Raises:
            UnknownNameError: There is none.
        """
        for release in self.releases:
            if release.name == name:
                return release
        raise UnknownNameError(f"release of {self.name}", name, [r.name for r in self.releases])

    def values(self, given: Mapping[str, Exact] | None = None) -> dict[str, Fraction]:
        """Returns a value for every parameter: the given ones, checked, and defaults for the rest.

        Raises:
            UnknownNameError: A name is not a parameter.
            ParameterError: A value is not of its parameter's kind.
        """
        return resolve(self.parameters, given or {}, owner=self.name)


def resolve(parameters: tuple[Parameter, ...], given: Mapping[str, Exact], *, owner: str) -> dict[str, Fraction]:
    """Returns the parameters' values: the given ones, checked, and defaults for the rest.

    Raises:
        UnknownNameError: A name is not among the parameters.
        ParameterError: A value is not of its parameter's kind.
    """
    known = {p.name: p for p in parameters}
    for name in given:
        if name not in known:
            raise UnknownNameError(f"parameter of {owner}", name, sorted(known))
    return {name: p.check(given.get(name, p.default)) for name, p in known.items()}
