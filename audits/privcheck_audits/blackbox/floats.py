"""Audit of floating-point noise: distinguish outputs by their position on the grid of floating-point numbers.

Noise drawn as a float and added to an exact value leaves a fingerprint (Mironov 2012): with Laplace noise of scale 1
"|y| < ½ and y off the grid 2⁻⁵³" has probability .27 around 0 and is impossible around 1. It refutes every claim of a
mechanism with NumPy noise, whatever its design, so it is a separate audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.auditors import MechanismAudit, MechanismClaim, MechanismFunction
from privcheck_audits.blackbox.audit import audit_mechanism
from privcheck_audits.blackbox.calls import Caller, as_numbers, read_signature
from privcheck_audits.blackbox.canonical import Leaf
from privcheck_audits.blackbox.inputs import forms_of

_DIGITS: Final = 53
_GRIDS: Final = (11, 24, 53)  # digits of half, single and double precision
_LEAST_POWER: Final = -80  # below: taken as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A mechanism that publishes only the floating-point grid of its outputs: post-processing, so claims still hold.

    Attributes:
        caller: The mechanism and how to call it.
    """

    caller: Caller

    def __call__(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Fingerprint of each run's floats, in containers of any kind; runs without floats publish nothing."""
        found = self.caller.runs(dataset, size, rng)
        given = as_numbers(found)
        if given is not None:
            return fingerprint(given[0].astype(np.float64)) if given[0].dtype.kind == "f" else np.zeros(size)
        return [[fingerprint(values) for values in _floats(form.leaves)] for form in forms_of(found)]


def _floats(leaves: Sequence[Leaf]) -> list[NDArray[np.float64]]:
    values = [np.atleast_1d(leaf.value) for leaf in leaves if isinstance(leaf.value, float | np.ndarray)]
    return [each.astype(np.float64) for each in values if each.dtype.kind == "f"]


def fingerprint(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(…, 3): number of three grids that y is off, its power of two, and the power of its last set bit.

    The grids are 2⁻¹¹, 2⁻²⁴ and 2⁻⁵³, those of the three precisions just below 1, and the count is 0 where |y| ≥ ½.

    >>> fingerprint(np.array([0.75, 2.0**-54, 2.0**-20]))
    array([[  0.,   0.,  -2.],
           [  3., -53., -54.],
           [  1., -19., -20.]])
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    fraction, power = np.frexp(finite)
    digits = np.abs(np.ldexp(fraction, _DIGITS)).astype(np.int64)
    last = digits & -digits
    lowest = np.where(digits > 0, power - _DIGITS + np.log2(np.maximum(last, 1)), 0.0)
    small = np.where(np.abs(finite) < 0.5, finite, 0.0)
    scaled = np.stack([np.ldexp(small, grid) for grid in _GRIDS])
    off = (scaled != np.rint(scaled)).sum(axis=0)
    return np.stack(
        [off.astype(np.float64), np.maximum(power, _LEAST_POWER), np.maximum(lowest, _LEAST_POWER)], axis=-1
    )


def audit_float_noise(
    mechanism: MechanismFunction, claim: MechanismClaim, *, one_at_a_time: bool | None = None, **how: Any
) -> MechanismAudit:
    """Audit a mechanism's floating-point fingerprint; see `privcheck.audit_float_noise`."""
    caller = read_signature(mechanism, one_at_a_time=one_at_a_time, catch=True)
    return audit_mechanism(Fingerprint(caller=caller), claim, **how)
