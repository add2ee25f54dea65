"""How the ledger's values are said on pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup, escape

from privcheck.ledger.values import Policy
from privcheck.reports.wording import figure, label, show_value
from privcheck.unit import Unit

_SYMBOLS: Final = {"epsilon": "ε", "rho": "ρ", "mu2": "μ²", "events": "events"}
_NAMES: Final = {
    "gaussian": "Gaussian noise",
    "laplace": "Laplace noise",
    "discrete_gaussian": "discrete Gaussian noise",
    "discrete_laplace": "discrete Laplace noise",
    "pure": "ε-DP release",
    "approximate": "(ε, δ)-DP release",
    "zcdp": "ρ-zCDP release",
    "gdp": "μ-GDP release",
    "randomized_response": "randomised response",
    "poisson_gaussian": "Gaussian noise on a Poisson sample",
}
_RELATIONS: Final = {
    "replace-one": "one {} is replaced",
    "replace-one-same-start": "one {} is replaced, step 1’s state and action in common",
    "add-remove": "one {} is added or removed",
    "zero-out": "the data of one {} are zeroed out",
}


def symbol(currency: str) -> str:
    """Returns what a currency is written as."""
    return _SYMBOLS.get(currency, currency)


def relation(policy: Mapping[str, Any]) -> str:
    """Returns which change a dataset's guarantee hides, in words, with how many trajectories that may change."""
    read = Policy.of(policy)
    most = 1 if read.unit is None else read.unit.trajectories
    person = read.who if most == 1 else f"{read.who}, with up to {most} trajectories,"
    return _RELATIONS.get(read.relation, "{}").format(person)


def person(policy: Mapping[str, Any]) -> str:
    """Returns the noun for one protected person of a dataset."""
    return Policy.of(policy).who


def trust(policy: Mapping[str, Any]) -> str:
    """Returns a dataset's model of trust."""
    return Policy.of(policy).trust


def protected(policy: Mapping[str, Any]) -> str:
    """Returns a dataset's unit of privacy in words, and who stated it."""
    return Policy.of(policy).unit_words


def unit(value: Mapping[str, Any] | None) -> str:
    """Returns the unit of privacy of a charge or a plan in words, and who stated it."""
    if value is None:
        return "never stated"
    read = Unit.of(value)
    return f"{read.words}; stated by {read.stated_by}"


def describe_event(event: Mapping[str, Any]) -> str:
    """Returns an event in words: what it is, its numbers, how often.

    >>> describe_event({"type": "gaussian", "std": "30", "count": 60})
    'Gaussian noise, σ = 30, 60 times'
    >>> describe_event({"type": "compose", "events": [{"type": "pure", "epsilon": "0.1", "count": 1}] * 2})
    'ε-DP release, ε = 0.1; ε-DP release, ε = 0.1'
    """
    if event.get("type") == "compose":
        parts = [describe_event(part) for part in event["events"][:3]]
        more = len(event["events"]) - len(parts)
        return "; ".join([*parts, f"and {more} more"] if more else parts)
    kind = str(event.get("type", ""))
    numbers = [
        f"{_letter(name)} = {value}" for name, value in event.items() if name not in ("type", "count")
    ]  # fmt: skip
    count = event.get("count", 1)
    often = [f"{figure(count)} times"] if isinstance(count, int) and count > 1 else []
    return ", ".join([_NAMES.get(kind, kind.replace("_", " ")), *numbers, *often])


def describe_single(event: Mapping[str, Any]) -> str:
    """Returns an event in words, without how often."""
    return describe_event({**event, "count": 1})


def describe_noise(event: Mapping[str, Any]) -> str:
    """Returns the number that states an event's noise.

    >>> describe_noise({"type": "gaussian", "std": "21.8", "sensitivity": "1", "count": 2})
    'σ = 21.8'
    """
    return next(
        f"{_letter(name)} = {event[name]}" for name in ("std", "scale", "rho", "mu2", "epsilon") if name in event
    )


def facts(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the fields of a claim, by name, in words."""
    return [
        (label(str(name)), show_value(part)) for name, part in value.items() if part is not None and name != "joint"
    ]


def plain_json(value: Any) -> Markup:
    """Returns JSON that a person can read and copy, escaped; in ASCII, so that nothing in it hides."""
    return escape(json.dumps(value, indent=1))


def _letter(name: str) -> str:
    return {"std": "σ", "scale": "b", "mu2": "μ²", "sensitivity": "Δ"}.get(name, label(name))


def day(text: str) -> str:
    """Returns the day of a moment."""
    return text[:10]


def moment(text: str) -> str:
    """Returns a moment to the minute."""
    return f"{text[:10]} {text[11:16]}"
