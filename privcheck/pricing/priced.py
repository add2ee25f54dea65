"""Declaration at given parameters, with all derived answers, computed once.

Verification, calibration, reports, audits and ledgers ask the same questions of a declaration: its events, its cost,
the pair of users with the largest change. Each answer is computed on first use and kept with the `Priced` that is made
at the entry of a command, a request or a public function, and passed on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Concatenate, ParamSpec, TypeVar

from privcheck.accounting import Curve
from privcheck.declare.declaration import Declaration, check_declaration
from privcheck.declare.mechanisms.base import Charge
from privcheck.declare.procedures.charges import charge_of
from privcheck.pricing.cost import Account, NumericAccount, account, compose_numbers
from privcheck.pricing.events import settle_sizes

Values = Mapping[str, Fraction]
P = ParamSpec("P")
T = TypeVar("T")


class Prices:
    """Priced declarations of one command or request, each made once.

    Declarations are compared by identity, not by equality. Threads may share it; at worst both compute an answer, and
    the first is kept.
    """

    __slots__ = ("_accounts", "_priced")

    def __init__(self) -> None:
        self._priced: dict[tuple[int, tuple[tuple[str, Fraction], ...]], Priced] = {}
        self._accounts: dict[int, Account] = {}  # each holds its declaration, so that no other gets its id

    def __reduce__(self) -> tuple[type[Prices], tuple[()]]:
        return (Prices, ())  # another process computes its own answers

    def of(self, declaration: Declaration, values: Values) -> Priced:
        """Get the declaration at these parameters, priced.

        Args:
            declaration: The declaration.
            values: Parameters of the declaration; missing ones take their defaults.

        Raises:
            UnknownNameError: A name is not a parameter.
            ParameterError: A value is not of its parameter's kind, or the declaration is invalid there.
        """
        exact = all(type(value) is Fraction for value in values.values())  # True is 1 to a dict, and is refused
        known = self._priced.get((id(declaration), tuple(sorted(values.items())))) if exact else None
        return self.keep(Priced(declaration, values, prices=self)) if known is None else known

    def keep(self, priced: Priced) -> Priced:
        """Keep a priced declaration, or return the earlier one of the same declaration and parameters."""
        return self._priced.setdefault(priced.key, priced)

    def account(self, declaration: Declaration) -> Account:
        """Get the declaration's cost as exact expressions, which does not depend on parameters."""
        if (known := self._accounts.get(id(declaration))) is not None:
            return known
        return self._accounts.setdefault(id(declaration), account(declaration))


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Declaration at given parameters, with the answers to every question about its price asked so far.

    The properties are the questions of this room. Other rooms add theirs with `once`.

    Attributes:
        declaration: The declaration.
        values: All parameters, checked; missing ones take their defaults.
        prices: Store in which other declarations, and other parameters, are priced once.

    Raises:
        DeclarationError: The argument is not a declaration.
        UnknownNameError: A name is not a parameter.
        ParameterError: A value is not of its parameter's kind, or the declaration is invalid there.
    """

    declaration: Declaration
    values: Values = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices, kw_only=True, repr=False)
    _answers: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_declaration("Priced", self.declaration)
        object.__setattr__(self, "values", self.declaration.values(self.values))
        self.prices.keep(self)

    def __reduce__(self) -> tuple[type[Priced], tuple[Declaration, Values]]:
        return (Priced, (self.declaration, self.values))

    @property
    def key(self) -> tuple[int, tuple[tuple[str, Fraction], ...]]:
        """Identity of the declaration, and all parameters."""
        return (id(self.declaration), tuple(sorted(self.values.items())))

    def of(self, declaration: Declaration) -> Priced:
        """Get another declaration at the same parameters, priced once."""
        return self.prices.of(declaration, self.values)

    def at(self, values: Values) -> Priced:
        """Get the same declaration with other values of the named parameters, priced once."""
        return self.prices.of(self.declaration, {**self.values, **values})

    @property
    def account(self) -> Account:
        """Cost as exact expressions with their derivation, for all parameters.

        Raises:
            DeclarationError: A symbol for whole numbers has a parameter of another kind.
        """
        return self.prices.account(self.declaration)

    @property
    def sizes(self) -> tuple[Priced, ...]:
        """Declaration with n replaced by each size of a batch; empty where no additive noise depends on n."""
        return _sizes(self)

    @property
    def numbers(self) -> NumericAccount:
        """Cost at the parameters, every number rounded up; the dearest of all sizes of a batch."""
        return _numbers(self)

    @property
    def charges(self) -> Mapping[str, Charge]:
        """Charge of each release, by name; for noise that depends on the size of a batch, at the least noise.

        Raises:
            DeclarationError: A mechanism draws noise of another law than it declares.
        """
        return _charges(self)

    def epsilon(self, delta: float) -> float:
        """Least ε known at δ in [0, 1), rounded up."""
        return _epsilon(self, delta)

    @property
    def curve(self) -> Curve:
        """Privacy curve of all releases together.

        Raises:
            ParameterError: No finite ε holds at any δ below 1.
        """
        return _curve(self)


def once(question: Callable[Concatenate[Priced, P], T]) -> Callable[Concatenate[Priced, P], T]:
    """Decorate a question about a priced declaration, so that each answer is computed once.

    The question is a pure function of the priced declaration and its other arguments, which must be hashable.
    Exceptions are not kept.
    """

    @functools.wraps(question)
    def ask(priced: Priced, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (question, args, tuple(sorted(kwargs.items())))
        answers = priced._answers  # noqa: SLF001 - the memo is this module's
        if key not in answers:
            answers.setdefault(key, question(priced, *args, **kwargs))
        answer: T = answers[key]
        return answer

    return ask


@once
def _sizes(priced: Priced) -> tuple[Priced, ...]:
    return tuple(priced.of(one) for one in settle_sizes(priced.declaration, priced.values))


@once
def _numbers(priced: Priced) -> NumericAccount:
    return compose_numbers(priced.account, priced.values, [one.numbers for one in priced.sizes])


@once
def _charges(priced: Priced) -> Mapping[str, Charge]:
    costs, values = priced.account.costs, priced.values
    return {c.release.name: charge_of(c.release, c.charged, c.release.quietest(values)) for c in costs}


@once
def _epsilon(priced: Priced, delta: float) -> float:
    return priced.numbers.epsilon(delta)


@once
def _curve(priced: Priced) -> Curve:
    return priced.numbers.curve
