"""Cumulants of a loss given by points and weights: atoms, or the nodes of an integral."""

from __future__ import annotations

import math

import numpy as np

from privcheck.accounting.engine.laws import UNIT, Complex, Floats, Moments, as_complex
from privcheck.accounting.engine.threads import one_thread


def wave_of(losses: Floats, logs: Floats, *, step: float, count: int) -> tuple[Complex, float]:
    """Logarithm ln Σ wᵢ e^{itlᵢ} at `count` values t = 0, step, 2·step, …, w the weights divided by their sum.

    t is k·B·step + b·step: two factors of √count columns each, and one product of matrices.

    Args:
        losses: (n,) lᵢ.
        logs: (n,) ln of the weights.
        step: Step of t.
        count: Number of t.

    Returns:
        (count,) logarithms, and a bound on the absolute error of every sum.
    """
    weights = np.exp(logs - float(np.max(logs)))
    heavy = weights > 1e-19 / len(weights)
    losses, weights = losses[heavy], weights[heavy] / float(weights[heavy].sum())
    inner = max(1, math.isqrt(count))
    outer = -(-count // inner)
    block = max(1, (1 << 21) // (inner + outer))
    sums = np.zeros((outer, inner), dtype=np.complex128)
    for i in range(0, len(losses), block):
        part = losses[i : i + block]
        fine = np.exp(1j * np.multiply.outer(part, step * np.arange(inner)))
        rough = np.exp(1j * np.multiply.outer(step * inner * np.arange(outer), part)) * weights[i : i + block]
        with one_thread():
            sums += rough @ fine
    mean = float(np.sum(weights * np.abs(losses)))
    error = UNIT * (len(losses) + 20 + 6 * step * count * mean) + 2e-19
    with np.errstate(divide="ignore"):
        return as_complex(np.log(sums.ravel()[:count])), error


def atoms_moments(losses: Floats, logs: Floats, c: Floats) -> Moments:
    """K, K′ and K″ of ln Σ e^{clᵢ + logᵢ}, (m,) each, at (m,) real c."""
    k, k1, k2 = np.empty(len(c)), np.empty(len(c)), np.empty(len(c))
    block = max(1, (1 << 20) // len(losses))
    for i in range(0, len(c), block):
        exponents = np.multiply.outer(c[i : i + block], losses) + logs
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        mean = (weights * losses).sum(axis=1) / total
        k[i : i + block] = np.log(total) + top
        k1[i : i + block] = mean
        k2[i : i + block] = (weights * (losses - mean[:, None]) ** 2).sum(axis=1) / total
    return k, k1, np.maximum(k2, 1e-300)
