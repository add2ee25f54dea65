"""Checks of the mechanisms in a declaration, and conditions on their numbers."""

from __future__ import annotations

from privcheck.declare.mechanisms import LAWS, PRICED, Mechanism, Noise
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, instance
from privcheck.terms.symbols import Expr

_VALUES = ("law", "words", "latex", "spread", "std")
_ASKED = ("whiten", "whitened", "zcdp", "pure", "gdp_squared", "at")


def check_mechanism(where: str, mechanism: object) -> None:
    """Check that a value has the members of a `Mechanism`, and that its law is a class of noise.

    Raises:
        DeclarationError: A member is missing, or the law is not a class of noise.
    """
    if type(mechanism) in PRICED:
        return
    lacks = [name for name in (*_VALUES, *_ASKED) if not hasattr(mechanism, name)]
    lacks += [name for name in _ASKED if name not in lacks and not callable(getattr(mechanism, name))]
    if isinstance(mechanism, type) or lacks:
        names = ", ".join(kind.__name__ for kind in PRICED)
        shown = f"the class {mechanism.__name__}" if isinstance(mechanism, type) else f"{mechanism!r:.200}"
        message = f"{where}: expected a mechanism of {names}, got {shown}"
        raise DeclarationError(f"{message}, which has no {', '.join(lacks) or 'values of its own'}")
    law, spread = (getattr(mechanism, name) for name in ("law", "spread"))
    _check_law(f"{where}, law of the mechanism", law)
    instance(f"{where}, spread of the mechanism", spread, (Expr,))


def _check_law(where: str, law: object) -> None:
    """Check that a law is a class of noise with a name, and does not reuse the name of a law in `LAWS`."""
    if not (isinstance(law, type) and issubclass(law, Noise) and isinstance(getattr(law, "name", None), str)):
        known = ", ".join(kind.__name__ for kind in LAWS.values())
        message = f"{where}: expected a class of noise with a name, such as {known}, got {law!r:.200}"
        raise DeclarationError(f"{message}; derive one from `privcheck.declare.mechanisms.Noise`")
    if not issubclass(law, LAWS.get(law.name, law)):
        raise DeclarationError(f"{where}: {law.name!r} is the name of {LAWS[law.name].__name__}; choose another one")


def check_charges(where: str, mechanism: Mechanism, sensitivity: Sensitivity) -> None:
    """Check that a wrapper around a mechanism has the law, spread and prices of the wrapped mechanism.

    Raises:
        DeclarationError: They differ.
    """
    declared = getattr(mechanism, "declared", mechanism)
    if declared is mechanism:
        return
    white = declared.whiten(sensitivity)
    asked = (
        (mechanism.law.name, declared.law.name),
        (mechanism.spread, declared.spread),
        (mechanism.whiten(sensitivity), white),
        (mechanism.zcdp(white), declared.zcdp(white)),
        (mechanism.pure(white), declared.pure(white)),
        (mechanism.gdp_squared(white), declared.gdp_squared(white)),
    )
    if wrong := [(says, truth) for says, truth in asked if says != truth]:
        message = f"{where}: a custom mechanism says {wrong[0][0]} where the {declared.law.name} law that it"
        raise DeclarationError(
            f"{message} declares says {wrong[0][1]}; delegate these questions to the declared mechanism"
        )


def mechanism_conditions(mechanism: Mechanism) -> tuple[Condition, ...]:
    """Numbers of a mechanism, with the condition on each."""
    declared = getattr(mechanism, "declared", mechanism)
    own: tuple[Condition, ...] | None = getattr(declared, "conditions", None)
    if own is not None:
        return own
    return (Condition(what=f"the {declared.law.spread_words}", of=declared.spread, domain="positive"),)
