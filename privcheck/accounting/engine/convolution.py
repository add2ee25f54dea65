"""Convolution of laws on a grid by FFT, with a proved bound on the rounding error of every mass of the result.

Let n = 2^t, u = 2⁻⁵³, F the transform, x_j ≥ 0 the laws, m_j the number of times each is convolved, X_j = F x_j.

1. Lemma fft-transform: ‖fl(F x) − F x‖₂ ≤ θ‖F x‖₂ with θ = 12tu/(1 − 12tu), n = 2^t, u = 2⁻⁵³, for twiddle factors that
   are off by at most 4u. Source: for radix 2 Higham 2002, Theorem 24.2. Proof: it is a product of sparse passes A of
   radix 2 or 4. A pass multiplies by twiddle factors that are off by at most μ, in products that err by √2γ₂ (Higham
   2002, Lemma 3.5), and adds r terms in log₂ r rounds, so an entry errs by at most (μ + 2√2u + u log₂ r)·Σ|terms|; and
   ‖|A|‖₂ = √r‖A‖₂. With μ = 4u that is 8.9u a bit for radix 4 and 11.1u for radix 2, second-order terms included: at
   most 12u a bit. A real transform does one half of the same arithmetic, the other half being its mirror image, and 1/n
   is a power of 2. **Assumption:** μ ≤ 4u, and only these passes, as in the pocketfft of NumPy ≥ 2 for powers of 2;
   tests/oracle/test_fft_rounding.py reads every twiddle at every size.
2. Lemma fft-product: With X̂_j for fl(X_j), ε_j = θ√n‖x_j‖₂ and a_j = max(|X̂_j|, min(|X̂_j| + ε_j, ‖x_j‖₁)) at every
   frequency, ‖∏X̂_j^{m_j} − ∏X_j^{m_j}‖₁ ≤ Σ m_j ε_j‖G/a_j‖₂, G = ∏a_j^{m_j}. Proof: |X̂_j − X_j| has 2-norm at most
   ε_j, and both are at most a_j; exchange one factor at a time, and use Cauchy–Schwarz. Complex products err by √5u
   (Brent, Percival & Zimmermann 2007), however they are bracketed: by at most ((1 + √5u)^{Σm_j} − 1)·G.
3. *Back.* An entry of F⁻¹y is at most ‖y‖₁/n, and the transform back adds θ‖y‖₂/√n.

The sum of the three is the bound. It is far above the actual rounding error (with random signs, some thousand times
smaller), yet only 10⁻⁸ of the largest mass for a thousand laws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from privcheck.accounting.engine.laws import Complex, Floats, as_complex, as_floats

_UNIT: Final = 2.0**-53  # u
_BIT: Final = 12 * _UNIT  # what a bit of the transform's length adds to its relative error, in 2-norm
_PRODUCT: Final = math.sqrt(5) * _UNIT  # of a complex product
_SECOND: Final = 1.01  # for terms of second order and for the rounding of the bound itself


def transform_error(size: int) -> float:
    """θ: relative error of a transform of that length, in 2-norm.

    Args:
        size: A power of 2.
    """
    first = _BIT * math.log2(size)
    return first / (1 - first)


def convolve(laws: Sequence[tuple[Floats, int]], size: int) -> tuple[Floats, float]:
    """Compute the cyclic convolution of laws, and a bound on the error of every mass of it.

    Args:
        laws: (size,) masses, at least 0, and the number of times each is convolved.
        size: A power of 2.

    Returns:
        (size,) masses, at least 0, and the bound; ∞ where the counts are too large for a finite one.
    """
    theta, root = transform_error(size), math.sqrt(size)
    product: Complex | None = None
    moduli: list[tuple[Floats, int, float]] = []
    most = np.ones(size // 2 + 1)
    with np.errstate(over="ignore", under="ignore"):
        for law, count in laws:
            spectrum = as_complex(np.fft.rfft(law))
            off = theta * root * _norm(law) * _SECOND
            total = float(law.sum()) * (1 + 1e-14)
            computed = as_floats(np.abs(spectrum))
            bound = np.maximum(computed, np.minimum(computed + off, total)) * (1 + 4 * _UNIT)
            most = most * bound**count
            moduli.append((bound, count, off))
            powered = _power(spectrum, count)
            product = powered if product is None else product * powered
        assert product is not None
        masses = as_floats(np.maximum(np.fft.irfft(product, n=size), 0.0))
        exchanged = math.fsum(count * off * _full_norm(most / bound) for bound, count, off in moduli) / size
        multiplied = math.expm1(_PRODUCT * sum(count for _, count, _ in moduli)) * 2 * float(most.sum()) / size
        back = theta * _full_norm(np.abs(product)) / root
    error = _SECOND * (exchanged + multiplied + back) + 1e-36 * sum(m for _, m, _ in moduli)  # … underflows
    return masses, error if math.isfinite(error) else math.inf


def _power(values: Complex, count: int) -> Complex:
    """Compute values^count by squaring: NumPy's own power takes logarithms, with no known error bound."""
    raised: Complex | None = None
    while True:
        if count & 1:
            raised = values if raised is None else raised * values
        count >>= 1
        if not count:
            assert raised is not None
            return raised
        values = values * values


def _norm(values: Floats) -> float:
    return math.sqrt(float(np.sum(values * values)))


def _full_norm(half: Floats) -> float:
    """Bound on the 2-norm of a whole spectrum, from one half and the middle."""
    return math.sqrt(2.0) * _norm(half)
