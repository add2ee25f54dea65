"""The float audit: is a mechanism told by where its outputs lie on the grid of floating-point numbers?

Noise drawn as a float and added to an exact value leaves its fingerprint (Mironov 2012): with Laplace noise of scale 1
"|y| < ½ and y off the grid 2⁻⁵³" has probability .27 around 0 and is impossible around 1. Every claim of a mechanism
with NumPy noise falls to it, whatever its design, so it is an audit of its own and never part of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.auditors import MechanismAudit, MechanismClaim, MechanismFunction
from privcheck_audits.blackbox.audit import audit_mechanism

_DIGITS: Final = 53
_LEAST_POWER: Final = -80  # below: taken as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A mechanism of which only the grid of its floats is published: post-processing, so every claim still holds.

    Attributes:
        mechanism: The mechanism.
    """

    mechanism: MechanismFunction

    def __call__(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Returns for every number whether it is off the grid 2⁻⁵³ below ½, its power of two and its last bit's."""
        given = np.asarray(self.mechanism(dataset, size, rng))
        if given.dtype.kind != "f" or given.ndim == 0 or given.size == 0 or np.isnan(given).any():
            return given  # for the door to judge
        return fingerprint(given.astype(np.float64))


def fingerprint(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns (…, 3): |y| < ½ and y off the grid 2⁻⁵³ (0 or 1), the power of two of y, and that of its last set bit.

    >>> fingerprint(np.array([0.75, 2.0**-54]))
    array([[  0.,   0.,  -2.],
           [  1., -53., -54.]])
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    fraction, power = np.frexp(finite)
    digits = np.abs(np.ldexp(fraction, _DIGITS)).astype(np.int64)
    last = digits & -digits
    lowest = np.where(digits > 0, power - _DIGITS + np.log2(np.maximum(last, 1)), 0.0)
    scaled = np.ldexp(finite, _DIGITS)
    off = (np.abs(finite) < 0.5) & (scaled != np.rint(scaled))
    return np.stack(
        [off.astype(np.float64), np.maximum(power, _LEAST_POWER), np.maximum(lowest, _LEAST_POWER)], axis=-1
    )


def audit_float_noise(mechanism: MechanismFunction, claim: MechanismClaim, **how: Any) -> MechanismAudit:
    """Returns the audit of the mechanism's floating-point fingerprint; see `privcheck.audit_float_noise`."""
    return audit_mechanism(Fingerprint(mechanism=mechanism), claim, **how)
