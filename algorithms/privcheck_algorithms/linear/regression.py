"""Ridge regression on noisy statistics, of one run and of many at a time, and the sums that it is computed from.

The sums over users' features at one step (`visits_at`, `sum_over_users`) are the privatizer half of agents that regress
on features. `remark_features` is a note on one-hot features, if no others were given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.declaration import Release
from privcheck.declare.statistics import FeatureSums, GramMatrices
from privcheck.declare.statistics.grid import OnGrid
from privcheck.runtime.results import Remark

_TIES: Final = 1e-10

Array = NDArray[np.float64]


class NoisyMatrix:
    """Decomposition of a noisy Gram matrix with its ridge and a public floor of the eigenvalues.

    Without the floor, a direction with noise below −ridge has a negative squared length, and weights of any size.

    Args:
        released: (d, d) the noisy sum, symmetric.
        ridge: Added to the diagonal.
        floor: The least eigenvalue; above 0.

    Attributes:
        raised: Number of eigenvalues below the floor.
    """

    def __init__(self, released: Array, *, ridge: float, floor: float) -> None:
        values, self._directions = np.linalg.eigh(released + ridge * np.eye(released.shape[0]))
        self.raised = int((values < floor).sum())
        self._values = np.maximum(values, floor)

    def solve(self, vector: Array) -> Array:
        """Product matrix⁻¹·vector, (d,)."""
        weights: Array = self._directions @ ((vector @ self._directions) / self._values)
        return weights

    def lengths(self, phi: Array) -> Array:
        """‖φ‖ in the norm of the inverse, (…,) of (…, d)."""
        norms: Array = np.sqrt(np.square(phi @ self._directions) @ (1 / self._values))
        return norms


def choose(q: Array, scale: float) -> tuple[NDArray[np.int64], Array]:
    """Lowest best action up to rounding, and its value: (S,) of (S, A) each.

    Args:
        q: (S, A) Q-values.
        scale: Largest possible entry; differences below 10⁻¹⁰ of it count as rounding.
    """
    actions = (q.max(axis=1, keepdims=True) - q <= _TIES * scale).argmax(axis=1)
    return actions, np.take_along_axis(q, actions[:, None], axis=1)[:, 0]


def gram(weights: Array, phi: Array) -> Array:
    """Sum Σ w·φφᵀ over state-action pairs, (runs, d, d).

    Args:
        weights: (runs, S, A) weights w.
        phi: (S, A, d) features.
    """
    d = phi.shape[-1]
    products = (phi[..., :, None] * phi[..., None, :]).reshape(-1, d * d)
    total: Array = weights.reshape(weights.shape[0], -1) @ products
    return total.reshape(-1, d, d)


def sums(targets: Array, phi: Array) -> Array:
    """Sum Σ y·φ over state-action pairs, (runs, d).

    Args:
        targets: (runs, S, A) targets y.
        phi: (S, A, d) features.
    """
    total: Array = targets.reshape(targets.shape[0], -1) @ phi.reshape(-1, phi.shape[-1])
    return total


def predict(phi: Array, weights: Array) -> Array:
    """Predictions φ(s, a)ᵀw, (runs, S, A).

    Args:
        phi: (S, A, d) or (runs, S, A, d) features.
        weights: (runs, d) weights w.
    """
    rows = phi.reshape(*phi.shape[:-3], -1, phi.shape[-1])
    values: Array = weights @ rows.T if phi.ndim == 3 else (rows @ weights[..., None])[..., 0]
    return values.reshape(-1, *phi.shape[-3:-1])


def lengths(phi: Array, inverse: Array) -> Array:
    """Length ‖φ(s, a)‖ in the norm of an inverse, (runs, S, A); 0 if noise has made the square negative.

    Args:
        phi: (S, A, d) or (runs, S, A, d) features.
        inverse: (runs, d, d) inverses.
    """
    rows = phi.reshape(*phi.shape[:-3], -1, phi.shape[-1])
    squares = np.einsum("...nd,...nd->...n", rows @ inverse, rows)
    norms: Array = np.sqrt(np.maximum(squares, 0.0))
    return norms.reshape(-1, *phi.shape[-3:-1])


def invert(matrices: Array) -> Array:
    """Inverses, (runs, d, d)."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def solve(inverse: Array, vectors: Array) -> Array:
    """Product inverse·vector of every run, (runs, d)."""
    products: Array = np.einsum("bij,bj->bi", inverse, vectors)
    return products


def best(q: Array) -> tuple[NDArray[np.int64], Array]:
    """First of the largest entries on the last axis, and its value: (…, S) of (…, S, A) each.

    A loop over few actions; NumPy's `argmax` and `max` over a short axis take several times as long.
    """
    value = q[..., 0].copy()
    greedy = np.zeros(value.shape, dtype=np.int64)
    for action in range(1, q.shape[-1]):
        greedy[q[..., action] > value] = action
        np.maximum(value, q[..., action], out=value)
    return greedy, value


_NUMBERS: Final = 1 << 22  # of vectors at a time, so that memory does not grow with the number of users

Integers = NDArray[np.int32]
LinearStatistic = GramMatrices | FeatureSums | OnGrid
MakeColumns = Callable[["Visits"], Regressors]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visits:
    """Users' data at one step, (users,) each.

    Attributes:
        states: States s.
        actions: Actions a.
        rewards: Rewards r.
        after: Next states s′.
    """

    states: Integers
    actions: Integers
    rewards: Array
    after: Integers

    def parts(self, rows: int) -> Iterator[Visits]:
        """Yield groups of `rows` users; one empty group if there are no users."""
        for start in range(0, max(1, self.states.size), rows):
            part = slice(start, start + rows)
            yield Visits(
                states=self.states[part],
                actions=self.actions[part],
                rewards=self.rewards[part],
                after=self.after[part],
            )


def linear(release: Release) -> LinearStatistic:
    """Statistic of a release: one of vectors, or one of them on a grid."""
    assert isinstance(release.statistic, GramMatrices | FeatureSums | OnGrid)
    return release.statistic


def is_weighted(statistic: LinearStatistic) -> bool:
    """Whether users have weights from past releases in the statistic."""
    weighed = statistic.of if isinstance(statistic, OnGrid) else statistic
    assert isinstance(weighed, GramMatrices | FeatureSums)
    return weighed.weight is not None


def visits_at(data: Trajectories, step: int, users: slice = slice(None)) -> Visits:
    """Users' data at one step.

    Args:
        data: All users.
        step: h − 1.
        users: Slice of the users; may be empty.
    """
    return Visits(
        states=data.states[users, step],
        actions=data.actions[users, step],
        rewards=data.rewards[users, step],
        after=data.states[users, step + 1],
    )


def sum_over_users(
    statistics: Mapping[str, LinearStatistic],
    visits: Visits,
    columns: MakeColumns,
    *,
    dimension: int,
) -> dict[str, Array]:
    """Declared statistics of the same users at one step, by name, from their own `compute`.

    Args:
        statistics: The declared statistics, by name.
        visits: The users at the step.
        columns: Makes the regressors of users at one step: (users, 1, d) vectors, (users, 1) targets and weights.
        dimension: d.
    """
    totals: dict[str, Array] = {}
    for part in visits.parts(max(1, _NUMBERS // dimension)):
        data = columns(part)
        for name, statistic in statistics.items():
            exact = statistic.compute(data, step=0)
            totals[name] = totals[name] + exact if name in totals else exact
    return totals


def one_step(
    *, vectors: Mapping[str, Array], targets: Mapping[str, Array], weights: Mapping[str, Array] | None = None
) -> Regressors:
    """Regressors of a single step.

    Args:
        vectors: (users, d) vectors, by name.
        targets: (users,) targets, by name.
        weights: (users,) weights, by name.
    """
    return Regressors(
        vectors={name: column[:, np.newaxis] for name, column in vectors.items()},
        targets={name: column[:, np.newaxis] for name, column in targets.items()},
        weights={name: column[:, np.newaxis] for name, column in (weights or {}).items()},
    )


def remark_features(features: FeatureMap) -> tuple[Remark, ...]:
    """Remark on default features; empty if features were given."""
    if not features.one_hot:
        return ()
    S, A, d = features.phi.shape
    text = (
        f"No features are known: each of {S} states and {A} actions has its own coordinate, d = {d}. Learning about "
        "one does not help another; public features of fewer dimensions need fewer users (--features FILE)."
    )
    return (Remark(title="One coordinate for every state and action", text=text),)
