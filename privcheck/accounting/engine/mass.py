"""Probability mass: lost, negative or NaN mass is an error and never dropped."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

_MISSING: Final = 1e-9  # of a whole law, by rounding over a million values
_SURPLUS: Final = 1e-5  # of a whole law, rounded up


class MassError(ArithmeticError):
    """Probability mass that is not a number, is negative or has been lost: a defect; the figure must not be used."""


def check_masses(masses: Any, infinite: float, what: object) -> None:
    """Check that masses are finite and at least 0.

    Args:
        masses: An array of masses.
        infinite: The mass at loss ∞.
        what: Name of the law, for the message.

    Raises:
        MassError: A mass is negative or not finite.
    """
    if not (math.isfinite(infinite) and infinite >= 0 and np.all(np.isfinite(masses)) and np.all(masses >= 0)):
        raise MassError(f"{what}: a mass is negative or not a number; no figure can be given, please report it")


def check_law(losses: Any, logs: Any, infinite: float, what: object) -> None:
    """Check that a law's masses add up to 1 and its losses are numbers.

    Args:
        losses: (n,) losses, finite.
        logs: (n,) ln of their masses.
        infinite: The mass at loss ∞.
        what: Name of the law, for the message.

    Raises:
        MassError: The masses do not add up to 1, or a mass or a loss is invalid.
    """
    if not np.all(np.isfinite(losses)):
        raise MassError(f"{what}: a loss is not a number; no figure can be given, please report it")
    masses = np.exp(logs)
    check_masses(masses, infinite, what)
    total = float(masses.sum()) + infinite
    if not 1 - _MISSING <= total <= 1 + _SURPLUS:
        raise MassError(f"{what}: the masses add up to {total!r}, not to 1; no figure can be given, please report it")
