"""A linear mixture as the agent sees it: what its kernels fix of the weights, and what is left to be learned.

P_h(· | s, a) = Σ_i θ_{h,i}·ψ_i(· | s, a), and P·1 = 1 says Σ_i θ_i·m_i(s, a) = 1 with the masses m_i = ∫ψ_i. These
equations are public. θ = θ₀ + Bη with θ₀ their shortest solution and B an orthonormal basis of what they leave open:
only η is learned. Of signed perturbations of one base kernel, η are the perturbations' weights and nothing else; of d
probability kernels one direction of d is known.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError

Array = NDArray[np.float64]

_SLACK: Final = 1e-9  # by which kernels that are floats may miss a sum of 1, or a direction be fixed


class Mixture(NamedTuple):
    """What is publicly known.

    Attributes:
        fixed: (S, A, S) Σ_i θ₀_i·ψ_i(s′ | s, a).
        open: (q, S, A, S) Σ_i B_ij·ψ_i(s′ | s, a); q may be 0.
        basis: (d₁, q) B.
        initial: (S,) law of the first state.
    """

    fixed: Array
    open: Array
    basis: Array
    initial: Array


class Design(NamedTuple):
    """What users' next values are regressed on within a batch.

    Attributes:
        targets: (H − 1, S) y of every next state, in [−½, ½]; 0 where all next values are alike.
        x: (H − 1, S, A, q) features, of length at most 1.
        known: (H − 1, S, A) the mean of y that θ₀ alone gives: E[y | s, a] = known + length·⟨x, η⟩.
        length: (H − 1,) of the longest feature before it was scaled; 0 where none moves y.
    """

    targets: Array
    x: Array
    known: Array
    length: Array


def mixture(kernels: Array, initial: Array) -> Mixture:
    """Returns what is publicly known of a mixture.

    Args:
        kernels: (d₁, S, A, S).
        initial: (S,) law of the first state.

    Raises:
        ParameterError: There are no weights with which the kernels have sum 1.
    """
    d1, S, A, _ = kernels.shape
    masses = kernels.sum(axis=-1).reshape(d1, -1).T
    shortest = np.linalg.lstsq(masses, np.ones(S * A), rcond=None)[0]
    missed = float(np.abs(masses @ shortest - 1).max())
    if missed > _SLACK * max(1.0, float(np.abs(masses).max())):
        message = (
            f"kernels: no weights make them probabilities at every state and action (the best sums of weighted masses "
            f"miss 1 by {missed:.3g}); expected weights θ with Σ θ_i·Σ_s′ ψ_i(s′ | s, a) = 1"
        )
        raise ParameterError(message, name="kernels", given=missed)
    _, sizes, rows = np.linalg.svd(masses, full_matrices=True)
    basis = rows[int((sizes > _SLACK * sizes.max()).sum()) :].T
    return Mixture(
        fixed=np.einsum("i,isat->sat", shortest, kernels),
        open=np.ascontiguousarray(np.einsum("ij,isat->jsat", basis, kernels)),
        basis=np.ascontiguousarray(basis),
        initial=initial,
    )


def design(known: Mixture, values: Array) -> Design:
    """Returns targets and features of a batch in which V is public.

    y = (V(s′) − c)/span lies in [−½, ½] whatever state is next, and x is scaled by the longest feature of any state and
    action: how far a user moves Σx·y does not depend on V.

    Args:
        known: The mixture.
        values: (H + 1, S) V.
    """
    after = values[1:-1]
    low, high = after.min(axis=1, keepdims=True), after.max(axis=1, keepdims=True)
    span = high - low
    moved = span > _SLACK * np.maximum(1.0, np.abs(high))
    targets = np.where(moved, (after - low) / np.where(moved, span, 1.0) - 0.5, 0.0)
    long = np.einsum("jsat,ht->hsaj", known.open, targets)
    length = np.sqrt((long**2).sum(axis=-1)).max(axis=(1, 2))
    x = long / np.where(length > 0, length, 1.0)[:, None, None, None]
    return Design(targets=targets, x=x, known=np.einsum("sat,ht->hsa", known.fixed, targets), length=length)


def transitions(known: Mixture, weights: Array) -> Array:
    """Returns P (S, A, S) under weights η (q,): negative numbers are taken for 0, and rows sum to 1."""
    P = np.maximum(known.fixed + np.tensordot(weights, known.open, axes=1), 0.0)
    return np.asarray(P / P.sum(axis=-1, keepdims=True))  # at least 1: it is 1 with the negative numbers
