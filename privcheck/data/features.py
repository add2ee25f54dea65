"""Public knowledge of a linear model: features of states and actions, and the kernels of a linear mixture.

In a linear MDP P_h(s′ | s, a) = ⟨φ(s, a), μ_h(s′)⟩ and r_h(s, a) = ⟨φ(s, a), θ_h⟩ with unknown μ and θ (Jin et al.
2020); in a linear mixture P_h(s′ | s, a) = Σ_i θ_{h,i}·ψ_i(s′ | s, a) with known kernels ψ and unknown θ. Neither is
checked for a model: privacy depends on the length of φ alone, and users may respond in any way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError

MOST_ONE_HOT = 512  # dimensions of features that nobody gave: a Gram matrix has their square
SLACK = 1e-9  # relative: features are floats, and a norm of 1 comes out as 1 + a few roundings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureMap:
    """Public features of a model's states and actions.

    Attributes:
        phi: (S, A, d) φ(s, a), of norm at most 1.
        kernels: (d₁, S, A, S) ψ_i(s′ | s, a) of a linear mixture, known measures that may have a sign; None if the
            model is not known to be one.

    Raises:
        ParameterError: A shape is wrong, a number is not finite, or a feature is longer than 1.
    """

    phi: NDArray[np.float64]
    kernels: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", _table("phi", self.phi, 3, "(S, A, d)"))
        norms = np.linalg.norm(self.phi, axis=-1)
        if (norms > 1 + SLACK).any():
            s, a = (int(i) for i in np.unravel_index(int(norms.argmax()), norms.shape))
            message = (
                f"phi: ‖φ({s}, {a})‖ = {norms[s, a]:.6g}, expected at most 1, and {int((norms > 1 + SLACK).sum())} "
                f"features are longer: divide all of them by {norms.max():.6g}, or by a public bound on their length"
            )
            raise ParameterError(message, name="phi", given=float(norms.max()))
        if self.kernels is not None:
            kernels = _table("kernels", self.kernels, 4, "(d1, S, A, S)")
            S, A = self.phi.shape[:2]
            if kernels.shape[1:] != (S, A, S):
                message = (
                    f"kernels: expected shape (d1, {S}, {A}, {S}) as phi has S = {S}, A = {A}; got {kernels.shape}"
                )
                raise ParameterError(message, name="kernels", given=kernels.shape)
            object.__setattr__(self, "kernels", kernels)

    @property
    def dimension(self) -> int:
        """The dimension d."""
        return int(self.phi.shape[-1])

    @property
    def one_hot(self) -> bool:
        """Whether there is a separate coordinate for every state and action."""
        cells = self.phi.shape[0] * self.phi.shape[1]
        return self.dimension == cells and np.array_equal(self.phi.reshape(cells, cells), np.eye(cells))

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions by their names in declarations: d and d2 of φ, d1 of the kernels."""
        own = {"d": self.dimension, "d2": self.dimension}
        return own if self.kernels is None else {**own, "d1": len(self.kernels)}

    def refuse_other(self, states: int, actions: int, *, owner: str) -> None:
        """Refuse features of another number of states or actions.

        Raises:
            ParameterError: The numbers of states or actions differ.
        """
        if self.phi.shape[:2] != (states, actions):
            message = (
                f"{owner} has S = {states} and A = {actions}, the features are of S = {self.phi.shape[0]} and "
                f"A = {self.phi.shape[1]}: give phi of shape ({states}, {actions}, d)"
            )
            raise ParameterError(message, name="phi", given=self.phi.shape)


def one_hot_features(states: int, actions: int) -> FeatureMap:
    """One coordinate for every state and action: any finite model is linear in these.

    Raises:
        ParameterError: The features would have more than 512 dimensions.

    >>> one_hot_features(2, 3).phi.shape
    (2, 3, 6)
    """
    cells = states * actions
    if cells > MOST_ONE_HOT:
        message = (
            f"no features are known, and a coordinate for every state and action would be d = {states}·{actions} = "
            f"{cells} dimensions, at most {MOST_ONE_HOT}: give public features of fewer with --features FILE"
        )
        raise ParameterError(message, name="features", given=cells)
    return FeatureMap(phi=np.eye(cells).reshape(states, actions, -1))


def _table(name: str, array: object, dimensions: int, shape: str) -> NDArray[np.float64]:
    if not isinstance(array, np.ndarray) or not (
        np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)
    ):
        got = getattr(array, "dtype", type(array).__name__)
        raise ParameterError(f"{name}: expected an array of numbers of shape {shape}, got {got}", name=name)
    if array.ndim != dimensions or 0 in array.shape:
        raise ParameterError(f"{name}: expected shape {shape}, none of them 0, got {array.shape}", name=name)
    table = np.array(array, dtype=np.float64)
    if not np.isfinite(table).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(table))[0])
        raise ParameterError(f"{name}: expected finite numbers, got {table[where]} at {where}", name=name)
    table.flags.writeable = False
    return table
