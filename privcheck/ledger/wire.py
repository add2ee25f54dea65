"""Events as JSON: a table of names and fields; nothing is evaluated.

`{"type": "gaussian", "rho": "0.01", "count": 3}` is three releases with Gaussian noise of ρ = 0.01 each, with exactly
that cost in zCDP and μ² = 2ρ in GDP. Numbers are decimal strings, or JSON numbers read as the decimals they are
written as. Several events at once are `{"type": "compose", "events": […]}`. The canonical form is stored and hashed:
every number a decimal string, `count` always present, nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal

from privcheck.accounting import events as acc
from privcheck.accounting.currencies import Cost, cost_of
from privcheck.accounting.events import Event
from privcheck.errors import ParameterError
from privcheck.ledger.exact import read_number, round_up, write_number
from privcheck.ledger.values import CURRENCIES, CurrencyName
from privcheck.terms.symbols import to_float

MOST_COUNT: Final = 10**9
MOST_EVENTS: Final = 10**4
_FEW: Final = 16  # fields of an event
MOST_BYTES: Final = 4 * 2**20  # of 10⁴ events in a file; a service takes less
_NAMED: Final = "relation"
_DEPTH: Final = "nested events: expected a list of single events"

Kind = Literal["number", "flag", "noise", "relation"]
Value = Fraction | bool | str
_WORDS: Final[dict[Kind, tuple[str, ...]]] = {
    "noise": ("laplace", "exponential", "gumbel"),
    "relation": ("add-remove", "zero-out", "replace-one"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """One way of writing an event: its required fields, its optional fields, and the event's constructor."""

    needs: Mapping[str, Kind]
    make: Callable[..., Event]
    may: Mapping[str, Kind]
    exact: Callable[[Mapping[str, Any], CurrencyName], Fraction | None] | None = None


_KINDS: Final[Mapping[str, Kind]] = {"noise": "noise", "relation": "relation"}  # by the name of a needed field


def _form(make: Callable[..., Event], *needs: str, **more: Any) -> _Form:
    exact = more.pop("exact", None)
    kinds: dict[str, Kind] = {name: _KINDS.get(name, "number") for name in needs}
    return _Form(needs=kinds, make=make, may=more, exact=exact)


def _gaussian_of_squared(mu2: Fraction) -> Event:
    """Gaussian noise of μ², its std rounded down: for curves, which the ledger's exact sums do not use."""
    if mu2 == 0:
        return acc.gaussian(std=1, sensitivity=0)
    root = to_float(mu2, rounding="up") ** 0.5
    return acc.gaussian(std=(1 / root) * (1 - 1e-15))


def _squared_in(squared: Fraction, currency: CurrencyName) -> Fraction | None:
    return {"rho": squared / 2, "mu2": squared}.get(currency)


_FORMS: Final[dict[str, tuple[_Form, ...]]] = {
    "gaussian": (
        _form(lambda rho: _gaussian_of_squared(2 * rho), "rho", exact=lambda f, u: _squared_in(2 * f["rho"], u)),
        _form(_gaussian_of_squared, "mu2", exact=lambda f, u: _squared_in(f["mu2"], u)),
        _form(acc.gaussian, "std", sensitivity="number"),
    ),
    "laplace": (
        _form(acc.laplace, "scale", sensitivity="number"),
        _form(lambda epsilon: acc.laplace(scale=1, sensitivity=epsilon), "epsilon"),
    ),
    "discrete_gaussian": (_form(acc.discrete_gaussian, "std", sensitivity="number"),),
    "discrete_laplace": (_form(acc.discrete_laplace, "scale", sensitivity="number"),),
    "pure": (_form(acc.pure, "epsilon"),),
    "approximate": (_form(acc.approximate, "epsilon", "delta"),),
    "zcdp": (_form(acc.zcdp, "rho", xi="number"),),
    "gdp": (_form(_gaussian_of_squared, "mu2", exact=lambda f, u: _squared_in(f["mu2"], u)),),
    "randomized_response": (_form(acc.randomized_response, "epsilon", categories="number"),),
    "bounded_range": (_form(acc.bounded_range, "epsilon"),),
    "exponential_mechanism": (_form(acc.exponential_mechanism, "epsilon", monotone="flag"),),
    "permute_and_flip": (_form(acc.permute_and_flip, "epsilon", monotone="flag"),),
    "noisy_max": (_form(acc.noisy_max, "noise", "scale", sensitivity="number", monotone="flag"),),
    "above_threshold": (
        _form(acc.above_threshold, "threshold_scale", "query_scale", sensitivity="number", positives="number",
              monotone="flag"),
    ),
    "poisson_gaussian": (_form(acc.poisson_gaussian, "std", "rate", "relation", sensitivity="number"),),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One event as it was written.

    Attributes:
        type: Its name in the table.
        fields: Its fields by name, numbers exact.
        count: Number of releases.
    """

    type: str
    fields: tuple[tuple[str, Value], ...]
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Canonical JSON form."""
        plain = {n: write_number(v) if isinstance(v, Fraction) else v for n, v in self.fields}
        return {"type": self.type, **plain, "count": self.count}

    def event(self) -> Event:
        """Event of the accountant.

        Raises:
            ParameterError: A number is out of its range.
        """
        return _find(self.type, dict(self.fields)).make(**dict(self.fields)) * self.count

    def cost(self, currency: CurrencyName) -> Cost:
        """Cost in a currency: exact, or rounded up if it is irrational.

        Raises:
            ParameterError: A number is out of its range, or there is no finite cost in the currency.
        """
        form = _find(self.type, dict(self.fields))
        known = None if form.exact is None else form.exact(dict(self.fields), currency)
        return cost_of(self.event(), CURRENCIES[currency]) if known is None else Cost(amount=known * self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A planned release: one event, or several.

    Attributes:
        parts: The events.
    """

    parts: tuple[Part, ...]

    def to_dict(self) -> dict[str, Any]:
        """Canonical JSON form."""
        if len(self.parts) == 1:
            return self.parts[0].to_dict()
        return {"type": "compose", "events": [part.to_dict() for part in self.parts]}

    @property
    def relations(self) -> tuple[str, ...]:
        """The neighbouring relations that events name, each once."""
        return tuple(dict.fromkeys(str(value) for part in self.parts for name, value in part.fields if name == _NAMED))

    def events(self) -> list[Event]:
        """Events of the accountant."""
        return [part.event() for part in self.parts]

    def cost(self, currency: CurrencyName) -> Cost:
        """Cost in a currency: exact, or rounded up if it is irrational.

        Raises:
            ParameterError: An event has no finite cost in the currency.
        """
        if currency == "events":
            return Cost(amount=Fraction(sum(part.count for part in self.parts)))
        if len(self.parts) == 1:
            return _price(self.parts[0], currency)
        costs = [part.cost(currency) for part in self.parts]
        amount, lost = sum((c.amount for c in costs), Fraction(0)), sum((c.lost for c in costs), Fraction(0))
        return Cost(amount=round_up(amount), lost=round_up(lost))


@lru_cache(maxsize=1024)
def _price(part: Part, currency: CurrencyName) -> Cost:
    """Cost of a single event, cached because most requests repeat an earlier event."""
    cost = part.cost(currency)
    return Cost(amount=round_up(cost.amount), lost=round_up(cost.lost))


def read_json(text: str | bytes) -> Any:
    """Parse a JSON document with exact numbers.

    Raises:
        ParameterError: The text is not JSON, is larger than 4 MiB, or is nested too deeply.
    """
    if len(text) > MOST_BYTES:
        raise ParameterError(f"expected JSON of at most {MOST_BYTES} bytes, got {len(text)}", name="event")
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ParameterError):
            raise
        message = f"expected JSON, got {str(text)[:60]!r}: {str(error)[:80]}"
        raise ParameterError(message, name="event", given=text) from None


def parse_event(data: object) -> Spending:
    """Parse an event's JSON.

    Args:
        data: The parsed JSON, or its text; a `Spending` is returned unchanged.

    Raises:
        ParameterError: A type or field is unknown, missing or repeated, or a number is invalid or out of range.

    >>> parse_event({"type": "gaussian", "rho": "0.010", "count": 3}).to_dict()
    {'type': 'gaussian', 'rho': '0.01', 'count': 3}
    >>> parse_event({"type": "gaussian", "std": 30}).cost("mu2").amount
    Fraction(1, 900)
    """
    if isinstance(data, Spending):
        return data
    if isinstance(data, (str, bytes)):
        data = read_json(data)
    if isinstance(data, Mapping) and data.get("type") == "compose":
        return Spending(parts=_read_several(data))
    if type(data) is dict and len(data) <= _FEW:
        items = tuple(data.items())
        if all(type(name) is str and type(value) in (str, int) for name, value in items):
            return _read_again(items)
    return _read_alone(data)


@lru_cache(maxsize=1024)
def _read_again(items: tuple[tuple[str, str | int], ...]) -> Spending:
    """Parse a small event, cached because most requests repeat an earlier one."""
    return _read_alone(dict(items))


def _read_alone(data: object) -> Spending:
    spending = Spending(parts=(_read_part(data),))
    spending.events()  # what the accountant refuses is refused here, before anything is asked of a store
    return spending


def _read_several(data: Mapping[str, Any]) -> tuple[Part, ...]:
    unknown = sorted(str(name) for name in set(data) - {"type", "events"})
    if unknown:
        _refuse_fields("compose", unknown, ("type", "events"))
    parts = data.get("events")
    if not isinstance(parts, Sequence) or isinstance(parts, (str, bytes)) or not 0 < len(parts) <= MOST_EVENTS:
        raise ParameterError(f"expected events as a list of 1 to {MOST_EVENTS} events", name="events")
    if any(isinstance(part, Mapping) and part.get("type") == "compose" for part in parts):
        raise ParameterError(_DEPTH, name="events")
    read = tuple(_read_part(part) for part in parts)
    for part in dict.fromkeys(read):
        part.event()
    named = Spending(parts=read).relations
    if len(named) > 1:
        message = (
            f"events of one composition name different neighbours, {' and '.join(named)}: a composition has only one"
        )
        raise ParameterError(f"{message} relation; price all events for the same one", name=_NAMED, given=named)
    return read


def _read_part(data: object) -> Part:
    if not isinstance(data, Mapping):
        message = f'expected an event as {{"type": "gaussian", "rho": "0.01"}}, got {str(data)[:60]!r}'
        raise ParameterError(message, name="event", given=data)
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in _FORMS:
        expected = ", ".join([*_FORMS, "compose"])
        raise ParameterError(f"expected type one of {expected}; got {str(kind)[:60]!r}", name="type", given=kind)
    given = {name: value for name, value in data.items() if name not in ("type", "count")}
    form = _find(kind, given)
    kinds = {**form.needs, **form.may}
    fields = tuple((name, _read_field(name, given[name], kinds[name])) for name in kinds if name in given)
    return Part(type=kind, fields=fields, count=_read_count(data.get("count", 1)))


def _find(kind: str, given: Mapping[str, Any]) -> _Form:
    """Form of an event with the given fields."""
    forms = _FORMS[kind]
    for form in forms:
        if set(form.needs) <= set(given) <= {*form.needs, *form.may}:
            return form
    known = sorted({name for form in forms for name in (*form.needs, *form.may)})
    unknown = sorted(str(name) for name in set(given) - set(known))
    if unknown:
        _refuse_fields(kind, unknown, ("type", *known, "count"))
    ways = " or ".join(_say_form(form) for form in forms)
    message = f"expected the fields of {kind} as {ways}; got {', '.join(given) or 'none'}"
    raise ParameterError(message, name="event", given=dict(given))


def _say_form(form: _Form) -> str:
    return ", ".join([*form.needs, *(f"[{name}]" for name in form.may)])


def _refuse_fields(kind: str, unknown: Sequence[str], known: Sequence[str]) -> None:
    message = f"unknown field {unknown[0][:60]!r} of {kind}; expected {', '.join(known)}"
    raise ParameterError(message, name="event", given=unknown[0])


def _read_field(name: str, value: object, kind: Kind) -> Value:
    if kind == "number":
        return read_number(name, value)
    if kind == "flag":
        if not isinstance(value, bool):
            raise ParameterError(f"expected {name} true or false, got {str(value)[:40]!r}", name=name, given=value)
        return value
    if value not in _WORDS[kind]:
        expected = ", ".join(_WORDS[kind])
        raise ParameterError(f"expected {name} one of {expected}; got {str(value)[:40]!r}", name=name, given=value)
    return str(value)


def _read_count(value: object) -> int:
    number = read_number("count", value)
    if number.denominator != 1 or not 1 <= number <= MOST_COUNT:
        raise ParameterError(f"expected count from 1 to {MOST_COUNT}, got {value!s:.40}", name="count", given=value)
    return int(number)


def _refuse_constant(name: str) -> None:
    raise ParameterError(f"expected a finite number, got {name}", name="event", given=name)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of a JSON document without repeated fields, which readers could resolve differently."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"the field {twice[:60]!r} is repeated", name="event", given=twice)
    return dict(pairs)
