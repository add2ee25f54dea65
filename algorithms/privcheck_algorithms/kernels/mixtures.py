"""Linear mixtures as agents read them: known kernels ψ and reward features ϕ, laid out for loops over (s, a).

φ_V(s, a) = ∫ψ(s′ | s, a)·V(s′)ds′ is linear in V, so that the bound of Assumption 1 of Zhou 2022,
‖φ_V‖ ≤ √d₁·H for V in [0, H], can be checked by one number: the largest length of φ_V for V in [0, 1]. Sensitivities
depend on it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.errors import ParameterError
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit

Array = NDArray[np.float64]

_SLACK = 1e-9  # relative: kernels are floats


class Mixture(NamedTuple):
    """Public knowledge of a linear mixture, with c = s·A + a.

    Attributes:
        kernels: (S, d₁, SA) ψ_i(s′ | s, a), successor first, for contiguous loops over cells.
        features: (d₂, SA) ϕ(s, a).
    """

    kernels: Array
    features: Array


def find_kernels(request: OnlineRequest) -> FeatureMap:
    """Features of the request's world, with kernels.

    Raises:
        ParameterError: The features have no kernels.
    """
    features = request.world.features
    if features is None or features.kernels is None:
        message = (
            f"{request.world.name} has no known kernels, which a linear mixture needs: use --env linear-mixture or "
            "linear-hypercube, or your own World with FeatureMap(phi=…, kernels=…)"
        )
        raise ParameterError(message, name="env", given=request.world.name)
    return features


def dimensions(request: OnlineRequest) -> tuple[int, int]:
    """Dimensions d₁ and d₂ of the declaration, d for both; those of the features if it has none.

    Raises:
        ParameterError: The world has no kernels, or its features have more dimensions than the declaration's.
    """
    features, values = find_kernels(request), request.values
    own = (features.sizes["d1"], features.sizes["d2"])
    if "d" in values:
        stated = int(values["d"])
        if stated < max(own):
            message = (
                f"dimensions=common: d = {stated}, but {request.world.name} has d1 = {own[0]} kernels and reward "
                f"features of dimension d2 = {own[1]}: use --set dimensions=own, or d = {max(own)}"
            )
            raise ParameterError(message, name="d", given=stated)
        return stated, stated
    stated_own = (int(values.get("d1", own[0])), int(values.get("d2", own[1])))
    if stated_own != own:
        message = (
            f"the declaration does not fit the environment: d1 = {stated_own[0]} and d2 = {stated_own[1]}, but "
            f"{request.world.name} has d1 = {own[0]} and d2 = {own[1]}"
        )
        raise ParameterError(message, name="d1", given=stated_own[0])
    return own


def reach(kernels: Array) -> float:
    """Bound on the length of φ_V for V in [0, 1], coordinate by coordinate, at the worst state and action.

    A coordinate ∫ψ_i·V is at most the mass of ψ_i's positive part, and at least minus that of its negative part.

    Args:
        kernels: (d₁, S, A, S) kernels ψ.

    >>> reach(np.full((4, 2, 1, 2), 0.5))
    2.0
    """
    masses = np.maximum(np.maximum(kernels, 0.0).sum(axis=-1), np.maximum(-kernels, 0.0).sum(axis=-1))
    return float(np.sqrt((masses**2).sum(axis=0)).max())


def mixture(request: OnlineRequest) -> Mixture:
    """The world's kernels and features, padded with zeros to the declared dimensions.

    Raises:
        ParameterError: As `dimensions`, or φ_V can be longer than √d₁·H for some V in [0, H].
    """
    d1, d2 = dimensions(request)
    features = find_kernels(request)
    kernels, phi = np.asarray(features.kernels), features.phi
    longest = reach(kernels)
    if longest > math.sqrt(d1) * (1 + _SLACK):
        message = (
            f"kernels: for V in [0, 1], ‖∫ψV‖ can be {longest:.6g}, expected at most √d1 = {math.sqrt(d1):.6g} "
            f"(Assumption 1): divide all kernels by {longest / math.sqrt(d1):.6g}, or by a public bound on that"
        )
        raise ParameterError(message, name="kernels", given=longest)
    S, A, own2 = phi.shape
    wide, padded = np.zeros((S, d1, S * A)), np.zeros((d2, S * A))
    wide[:, : len(kernels)] = kernels.transpose(3, 0, 1, 2).reshape(S, len(kernels), S * A)
    padded[:own2] = phi.reshape(S * A, own2).T
    return Mixture(kernels=wide, features=padded)


def regressors(known: Mixture, values: Array, users: Trajectories) -> Regressors:
    """Regressors of users' episodes under the value functions of these episodes.

    Args:
        known: The mixture.
        values: (H + 1, S) V, the same for all users.
        users: Their trajectories.
    """
    cells = users.states[:, :-1] * users.num_actions + users.actions
    integrals = np.einsum("sic,hs->hci", known.kernels, values[1:])  # (H, SA, d₁)
    steps = np.arange(users.horizon)
    return Regressors(
        vectors={"phi of V": integrals[steps, cells], "phi of r": known.features.T[cells]},
        targets={"V": values[steps + 1, users.states[:, 1:]], "r": users.rewards},
        weights={},
    )


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def integrate(kernels: Array, values: Array, phi: Array) -> None:
    """Write φ_V of every cell (line 7 of Algorithm 1).

    Args:
        kernels: (S, d, SA) ψ.
        values: (S,) V of the next step.
        phi: (d, SA) overwritten.
    """
    S, d, cells = kernels.shape
    for i in range(d):
        for c in range(cells):
            phi[i, c] = kernels[0, i, c] * values[0]
        for s in range(1, S):
            value = values[s]
            for c in range(cells):
                phi[i, c] += kernels[s, i, c] * value
