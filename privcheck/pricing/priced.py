"""A declaration at given parameters, with everything that follows from the two, computed once.

Verification, calibration, reports, audits and ledgers ask the same questions of a declaration: which events it is, what
it costs, which pair of users it moves furthest. Each is computed when it is first asked and kept with the `Priced` that
is made at the door of a command, a request or a public function, and handed on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Concatenate, ParamSpec, TypeVar

from privcheck.accounting import Curve
from privcheck.declare.declaration import Declaration, check_declaration
from privcheck.declare.mechanisms.base import Charge, charge_of
from privcheck.pricing.cost import Account, NumericAccount, account, compose_numbers
from privcheck.pricing.events import settle_sizes

Values = Mapping[str, Fraction]
P = ParamSpec("P")
T = TypeVar("T")


class Prices:
    """The priced declarations of one command or request, each made once.

    Declarations are told apart by identity: two that are equal are two. Threads may share it; at worst both compute an
    answer, and the first is kept.
    """

    __slots__ = ("_accounts", "_priced")

    def __init__(self) -> None:
        self._priced: dict[tuple[int, tuple[tuple[str, Fraction], ...]], Priced] = {}
        self._accounts: dict[int, Account] = {}  # each holds its declaration, so that no other gets its id

    def __reduce__(self) -> tuple[type[Prices], tuple[()]]:
        return (Prices, ())  # another process computes its own answers

    def of(self, declaration: Declaration, values: Values) -> Priced:
        """Return the declaration at these parameters, priced.

        Args:
            declaration: The declaration.
            values: Its parameters; defaults for those that are not given.

        Raises:
            UnknownNameError: A name is not a parameter.
            ParameterError: A value is not of its parameter's kind, or the declaration means nothing there.
        """
        exact = all(type(value) is Fraction for value in values.values())  # True is 1 to a dict, and is refused
        known = self._priced.get((id(declaration), tuple(sorted(values.items())))) if exact else None
        return self.keep(Priced(declaration, values, prices=self)) if known is None else known

    def keep(self, priced: Priced) -> Priced:
        """Return the first that was made of the same declaration at the same parameters: this one, or an earlier."""
        return self._priced.setdefault(priced.key, priced)

    def account(self, declaration: Declaration) -> Account:
        """Return the declaration's cost as exact expressions, which no parameter changes."""
        if (known := self._accounts.get(id(declaration))) is not None:
            return known
        return self._accounts.setdefault(id(declaration), account(declaration))


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """A declaration at given parameters, with the answers to every question about its price that was asked.

    The properties are the questions of this room. Other rooms add theirs with `once`.

    Attributes:
        declaration: The declaration.
        values: All its parameters, checked; those that were not given are the defaults.
        prices: Where other declarations, and other parameters, are priced once.

    Raises:
        DeclarationError: It is given something else than a declaration.
        UnknownNameError: A name is not a parameter.
        ParameterError: A value is not of its parameter's kind, or the declaration means nothing there.
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
        """The declaration's identity and all parameters."""
        return (id(self.declaration), tuple(sorted(self.values.items())))

    def of(self, declaration: Declaration) -> Priced:
        """Return another declaration at the same parameters, priced once."""
        return self.prices.of(declaration, self.values)

    def at(self, values: Values) -> Priced:
        """Return the same declaration with other values of the named parameters, priced once."""
        return self.prices.of(self.declaration, {**self.values, **values})

    @property
    def account(self) -> Account:
        """The cost as exact expressions with their derivation, for all parameters.

        Raises:
            DeclarationError: A symbol that stands for whole numbers has a parameter that may be between them.
        """
        return self.prices.account(self.declaration)

    @property
    def sizes(self) -> tuple[Priced, ...]:
        """The declaration with n replaced by each size of a batch; none where no additive noise depends on n."""
        return _sizes(self)

    @property
    def numbers(self) -> NumericAccount:
        """The cost at the parameters, every number rounded up; the dearest of all sizes of a batch."""
        return _numbers(self)

    @property
    def charges(self) -> Mapping[str, Charge]:
        """What each release is charged, by its name; of noise that depends on the size of a batch, the least noise.

        Raises:
            DeclarationError: A mechanism draws noise of another law than it says.
        """
        return _charges(self)

    def epsilon(self, delta: float) -> float:
        """Return the least ε known at δ in [0, 1), rounded up."""
        return _epsilon(self, delta)

    @property
    def curve(self) -> Curve:
        """The privacy curve of all releases together.

        Raises:
            ParameterError: No finite ε holds at any δ below 1.
        """
        return _curve(self)


def once(question: Callable[Concatenate[Priced, P], T]) -> Callable[Concatenate[Priced, P], T]:
    """Decorate a question about a priced declaration, so that each answer is computed once.

    The question is a pure function of the priced declaration and its other arguments, which can be hashed. What it
    raises is not kept.
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
