"""Regression on features, compiled by Numba: an episode costs O(d²) and a plan costs O(S·A·d²).

Gram matrices Λ are (d, d) and symmetric. A plan reads Λ through its *root* W, lower triangular with Λ⁻¹ = WᵀW: then
‖φ‖ in the norm of Λ⁻¹ is ‖Wφ‖, never the root of a negative number. Features are stored twice: (S·A, d), a row per
pair, for the pairs that one user visits, and (d, S·A), a *row* per coordinate, for plans, with contiguous loops over
pairs. With few states Σ φ·V(s′) = Σ_s′ (Σ φ·1{s′})·V(s′): a (S, d) matrix gives the sums of any V in O(d·S).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit

Array = NDArray[np.float64]

_SWEEPS = 60  # of Jacobi's method at most; it converges quadratically, after about six


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def add_outer(matrix: Array, x: Array, weight: float) -> None:
    """Add w·xxᵀ to a (d, d) matrix; rows with x = 0 are skipped."""
    for i in range(x.size):
        scaled = weight * x[i]
        if scaled != 0.0:
            for j in range(x.size):
                matrix[i, j] += scaled * x[j]


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def update_inverse(inverse: Array, x: Array, weight: float, room: Array) -> float:
    """Replace Λ⁻¹ by (Λ + w·xxᵀ)⁻¹ (Sherman & Morrison); returns det(Λ + w·xxᵀ)/det Λ = 1 + w·xᵀΛ⁻¹x.

    Args:
        inverse: (d, d) Λ⁻¹; overwritten, and symmetric bit by bit if it was.
        x: (d,) the vector x.
        weight: w, not negative.
        room: (d,) overwritten by Λ⁻¹x.
    """
    d = x.size
    for i in range(d):
        room[i] = 0.0
    for j in range(d):
        factor = x[j]
        if factor != 0.0:
            for i in range(d):
                room[i] += inverse[j, i] * factor
    square = 0.0
    for i in range(d):
        square += x[i] * room[i]
    ratio = 1.0 + weight * square
    scale = weight / ratio
    for i in range(d):
        first = room[i]
        for j in range(d):
            inverse[i, j] -= first * room[j] * scale
    return ratio


@njit(cache=True, nogil=True, error_model="numpy")
def factorise(matrix: Array, shift: float, root: Array) -> float:
    """Write L, lower triangular with LLᵀ = Λ + shift·I (Cholesky); returns ln det, or −∞ if the sum is not positive.

    Args:
        matrix: (d, d) Λ; its lower half is read.
        shift: Added to the diagonal: a ridge.
        root: (d, d) its lower half is overwritten (even if −∞ is returned), the upper half is not read.
    """
    d, logarithm = matrix.shape[0], 0.0
    for i in range(d):
        for j in range(i):
            rest = matrix[i, j]
            for k in range(j):
                rest -= root[i, k] * root[j, k]
            root[i, j] = rest / root[j, j]
        rest = matrix[i, i] + shift
        for k in range(i):
            rest -= root[i, k] * root[i, k]
        if not rest > 0.0:
            return -np.inf
        root[i, i] = math.sqrt(rest)
        logarithm += math.log(rest)
    return logarithm


@njit(cache=True, nogil=True, error_model="numpy")
def invert_ridged(matrix: Array, shift: float, root: Array) -> float:
    """Write W, lower triangular with (Λ + shift·I)⁻¹ = WᵀW; returns ln det, or −∞ if the sum is not positive.

    Args:
        matrix: (d, d) Λ; its lower half is read.
        shift: Added to the diagonal: a ridge.
        root: (d, d) its lower half is overwritten (even if −∞ is returned), the upper half is not read.
    """
    d, logarithm = matrix.shape[0], factorise(matrix, shift, root)
    for i in range(d if logarithm > -np.inf else 0):  # L⁻¹ in its place, row by row
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total += root[i, k] * root[k, j]
            root[i, j] = -total / root[i, i]
        root[i, i] = 1.0 / root[i, i]
    return logarithm


@njit(cache=True, nogil=True, error_model="numpy")
def invert_root(matrix: Array, root: Array) -> float:
    """Write W, lower triangular with Λ⁻¹ = WᵀW; returns ln det Λ, or −∞ if Λ is not positive definite.

    Args:
        matrix: (d, d) Λ; its lower half is read.
        root: (d, d) as in `invert_ridged`.
    """
    return invert_ridged(matrix, 0.0, root)


@njit(cache=True, nogil=True, error_model="numpy")
def invert_floored(matrix: Array, ridge: float, least: float, room: Array, root: Array) -> float:
    """Write the W of Λ + ridge·I with eigenvalues below `least` raised to it; returns its ln det.

    If none is below, as one more Cholesky factorisation shows, it equals `invert_ridged`, bit by bit.

    Args:
        matrix: (d, d) Λ, with or without noise.
        ridge: Added to its diagonal.
        least: The floor, public; 0 for no floor, in which case −∞ may be returned.
        room: (d, d) overwritten.
        root: (d, d) overwritten.
    """
    if least > 0.0 and factorise(matrix, ridge - least, root) == -np.inf:
        d = matrix.shape[0]
        for i in range(d):
            for j in range(d):
                room[i, j] = matrix[i, j]
            room[i, i] += ridge
        raise_eigenvalues(room, least, root)
        return invert_ridged(room, 0.0, root)
    return invert_ridged(matrix, ridge, root)


@njit(cache=True, nogil=True, error_model="numpy")
def invert(root: Array, inverse: Array) -> None:
    """Write Λ⁻¹ = WᵀW, (d, d) and symmetric bit by bit."""
    d = root.shape[0]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, d):
                total += root[k, i] * root[k, j]
            inverse[i, j] = total
            inverse[j, i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def solve(root: Array, b: Array, w: Array) -> None:
    """Write w = Λ⁻¹b = Wᵀ(Wb), (d,)."""
    d = b.size
    for i in range(d):
        w[i] = 0.0
    for k in range(d):
        entry = 0.0
        for j in range(k + 1):
            entry += root[k, j] * b[j]
        for j in range(k + 1):
            w[j] += root[k, j] * entry


@njit(cache=True, nogil=True, error_model="numpy")
def raise_eigenvalues(matrix: Array, least: float, room: Array) -> bool:
    """Raise the eigenvalues of a symmetric matrix to at least `least`; returns whether any was below.

    A Cholesky factorisation, a twentieth of the work of the eigenvalues, shows whether any is below.

    Args:
        matrix: (d, d) overwritten if any was below.
        least: The floor.
        room: (d, d) overwritten.
    """
    d, raised = matrix.shape[0], False
    if factorise(matrix, -least, room) > -np.inf:
        return False
    for i in range(d):
        for j in range(d):
            room[i, j] = matrix[i, j]
    vectors = np.eye(d)
    _diagonalise(room, vectors)
    for k in range(d):
        missing = least - room[k, k]
        if missing > 0.0:
            raised = True
            for i in range(d):
                for j in range(d):
                    matrix[i, j] += missing * (vectors[i, k] * vectors[j, k])
    return raised


@njit(cache=True, nogil=True, error_model="numpy")
def _diagonalise(matrix: Array, vectors: Array) -> None:
    """Diagonalise a symmetric matrix by rotations (Jacobi); the columns of `vectors` become the eigenvectors."""
    d = matrix.shape[0]
    for _ in range(_SWEEPS):
        apart, whole = 0.0, 0.0
        for i in range(d):
            for j in range(d):
                whole += matrix[i, j] * matrix[i, j]
                if i != j:
                    apart += matrix[i, j] * matrix[i, j]
        if apart <= 1e-32 * whole:
            return
        for i in range(d - 1):
            for j in range(i + 1, d):
                if matrix[i, j] != 0.0:
                    _rotate(matrix, vectors, i, j)


@njit(cache=True, nogil=True, error_model="numpy")
def _rotate(matrix: Array, vectors: Array, i: int, j: int) -> None:
    """Set entry (i, j) to 0 by a rotation of the plane of i and j (Golub & Van Loan, Algorithm 8.5.1)."""
    d = matrix.shape[0]
    tau = (matrix[j, j] - matrix[i, i]) / (2.0 * matrix[i, j])
    t = math.copysign(1.0, tau) / (abs(tau) + math.sqrt(1.0 + tau * tau))
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    for k in range(d):
        one, other = matrix[i, k], matrix[j, k]
        matrix[i, k], matrix[j, k] = c * one - s * other, s * one + c * other
    for k in range(d):
        one, other = matrix[k, i], matrix[k, j]
        matrix[k, i], matrix[k, j] = c * one - s * other, s * one + c * other
        one, other = vectors[k, i], vectors[k, j]
        vectors[k, i], vectors[k, j] = c * one - s * other, s * one + c * other
    matrix[i, j] = matrix[j, i] = 0.0


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def add_noise(rng: np.random.Generator, std: float, vector: Array) -> None:
    """Add independent Gaussian noise to a vector; no draws if std is 0."""
    if std > 0.0:
        for i in range(vector.size):
            vector[i] += std * rng.standard_normal()


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def add_symmetric_noise(rng: np.random.Generator, std: float, diagonal: float, matrix: Array) -> None:
    """Add Gaussian noise to a symmetric matrix, independent on and above the diagonal; none if std is 0.

    Args:
        rng: Generator of the noise.
        std: Standard deviation above the diagonal.
        diagonal: Factor of the standard deviation on the diagonal: √2 for GOE noise, (Z + Zᵀ)/√2, 1 for equal
            variances.
        matrix: (d, d) added to; it stays symmetric, bit by bit.
    """
    if std > 0.0:
        d = matrix.shape[0]
        for i in range(d):
            matrix[i, i] += diagonal * std * rng.standard_normal()
            for j in range(i + 1, d):
                matrix[i, j] += std * rng.standard_normal()
                matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def weigh_next(nexts: Array, values: Array, sums: Array) -> None:
    """Write Σ_s′ (Σ φ·1{s′})·V(s′), (d,).

    Args:
        nexts: (S, d) Σ φ·1{s′} by s′.
        values: (S,) V.
        sums: (d,) overwritten.
    """
    for i in range(sums.size):
        sums[i] = 0.0
    for s in range(nexts.shape[0]):
        value = values[s]
        for i in range(sums.size):
            sums[i] += value * nexts[s, i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def predict(columns: Array, w: Array, out: Array) -> None:
    """Write φᵀw of every pair, (S·A,), from features in columns (d, S·A)."""
    d, pairs = columns.shape
    first = w[0]
    for p in range(pairs):
        out[p] = first * columns[0, p]
    for i in range(1, d - 1, 2):
        one, other = w[i], w[i + 1]
        for p in range(pairs):
            out[p] += one * columns[i, p] + other * columns[i + 1, p]
    for i in range(d - 1, d if d % 2 == 0 else 0):
        one = w[i]
        for p in range(pairs):
            out[p] += one * columns[i, p]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def lengths(columns: Array, root: Array, room: Array, out: Array) -> None:
    """Write ‖φ‖ = ‖Wφ‖ in the norm of Λ⁻¹ of every pair, (S·A,).

    Two rows of W and two coordinates of φ at a time: four products for every six numbers read or written.

    Args:
        columns: (d, S·A) features.
        root: (d, d) W.
        room: (2, S·A) overwritten.
        out: Overwritten.
    """
    d, pairs = columns.shape
    for p in range(pairs):
        out[p] = 0.0
    for i in range(0, d, 2):
        below = min(i + 1, d - 1)  # of an odd d the last row is alone
        for j in range(0, i + 1, 2):
            right = min(j + 1, d - 1)
            a, b = root[i, j], root[i, right] if j < right <= i else 0.0
            e, f = root[below, j] if below > i else 0.0, root[below, right] if below > i else 0.0
            if j == 0:
                for p in range(pairs):
                    room[0, p] = a * columns[j, p] + b * columns[right, p]
                    room[1, p] = e * columns[j, p] + f * columns[right, p]
            else:
                for p in range(pairs):
                    room[0, p] += a * columns[j, p] + b * columns[right, p]
                    room[1, p] += e * columns[j, p] + f * columns[right, p]
        for p in range(pairs):
            out[p] += room[0, p] * room[0, p] + room[1, p] * room[1, p]
    for p in range(pairs):
        out[p] = math.sqrt(out[p])
