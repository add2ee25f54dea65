"""Policies and update rules from JAX: any network as a `Policy`, any Optax transformation as a `Rule`.

A network is a function `apply(parameters, observation)` of JAX, of one observation. Here its parameters are one flat
vector, the gradient of a user is that of the user's own weighed sum of logits, and users are apart by `vmap`. Agents,
trainings and audits take it as they take policies in NumPy, in double precision.

It needs JAX, and `OptaxRule` an Optax transformation: the extra `deep`. Neither is imported before one is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from privcheck.errors import ParameterError, PrivcheckError
from privcheck_algorithms.trained.tasks import Array

_FEWEST: Final = 32  # rows of a compiled call


def _jax() -> Any:
    try:
        import jax
        import jax.flatten_util
    except ModuleNotFoundError as error:
        message = "networks and Optax rules need JAX, which is missing: pip install 'privcheck[deep]'"
        raise PrivcheckError(message) from error
    return jax


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """A policy (`privcheck_algorithms.trained.Policy`) from a function of JAX.

    Attributes:
        apply: From parameters, as `first` has them, and one observation (inputs,) to the logits (actions − 1,) of the
            actions after the first, whose logit is 0. It must be finite at the observation 0, which fills episodes up.
        first: Parameters before any user, a tree of arrays: public, and the same in every run.
        inputs: Coordinates of an observation.
        actions: Number of actions.

    Raises:
        ParameterError: The function gives another number of logits, or parameters are not finite.
        PrivcheckError: JAX is missing.
    """

    apply: Callable[[Any, Any], Any]
    first: Any
    inputs: int
    actions: int
    _flat: Array = field(init=False, repr=False)
    _logits: Callable[..., Any] = field(init=False, repr=False)
    _logits_apart: Callable[..., Any] = field(init=False, repr=False)
    _gradients: Callable[..., Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        jax = _jax()
        with jax.enable_x64(True):
            whole = jax.tree.map(lambda part: np.asarray(part, dtype=np.float64), self.first)
            flat, restore = jax.flatten_util.ravel_pytree(whole)
            shape = jax.eval_shape(self.apply, whole, jax.ShapeDtypeStruct((self.inputs,), np.float64)).shape

        def logits(parameters: Any, seen: Any) -> Any:
            return self.apply(restore(parameters), seen)

        def weighed(parameters: Any, seen: Any, slopes: Any) -> Any:
            return (jax.vmap(logits, (None, 0))(parameters, seen) * slopes).sum()

        if shape != (self.actions - 1,):
            message = f"apply: expected logits ({self.actions - 1},) of the actions after the first, got {shape}"
            raise ParameterError(f"{message}; with a logit for every action, return logits[1:] - logits[0]",
                                 name="apply", given=str(shape))  # fmt: skip
        if not np.isfinite(flat).all():
            raise ParameterError("first: expected finite parameters", name="first")
        for name, value in (
            ("_flat", np.array(flat)),
            ("_logits", jax.jit(jax.vmap(logits, (None, 0)))),
            ("_logits_apart", jax.jit(jax.vmap(logits))),
            ("_gradients", jax.jit(jax.vmap(jax.grad(weighed), (None, 0, 0)))),
        ):
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return len(self._flat)

    def initial(self) -> Array:
        """The first parameters, flat."""
        return self._flat.copy()

    def logits(self, parameters: Array, observations: Array) -> Array:
        """Logits of the actions after the first."""
        rows = observations.reshape(-1, self.inputs)
        found = self._called(self._logits, parameters, _filled(rows, (len(rows),)))[: len(rows)]
        return found.reshape(*observations.shape[:-1], self.actions - 1)

    def logits_apart(self, parameters: Array, observations: Array) -> Array:
        """Logits of users with parameters of their own."""
        size = (len(observations),)
        return self._called(self._logits_apart, _filled(parameters, size), _filled(observations, size))[: size[0]]

    def gradients(self, parameters: Array, observations: Array, slopes: Array) -> Array:
        """Sums of gradients by user."""
        size = slopes.shape[:2]
        return self._called(self._gradients, parameters, _filled(observations, size), _filled(slopes, size))[: size[0]]

    @staticmethod
    def _called(compiled: Callable[..., Any], *given: Array) -> Array:
        with _jax().enable_x64(True):
            return np.array(compiled(*given))


def _filled(rows: Array, size: tuple[int, ...]) -> Array:
    """Zeros after the last row, up to a power of two along each of these axes: few shapes, so few compilations."""
    wanted = [max(_FEWEST, 1 << (length - 1).bit_length()) for length in size]
    more = [(0, want - length) for want, length in zip(wanted, size, strict=True)]
    return np.pad(rows, more + [(0, 0)] * (rows.ndim - len(more)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptaxRule:
    """An update rule (`privcheck_algorithms.trained.Rule`) from an Optax transformation of noisy averages.

    Attributes:
        transformation: Such as `optax.scale_by_adam()`: what it makes of an average is the step uphill, which the
            agent's learning rate multiplies. One that reads the parameters, such as weight decay, is refused by Optax.
    """

    transformation: Any

    def begin(self, dimension: int) -> Array:
        """The transformation's first state, flat."""
        jax = _jax()
        with jax.enable_x64(True):
            return np.array(jax.flatten_util.ravel_pytree(self._first(dimension))[0], dtype=np.float64)

    def step(self, memory: Array, average: Array, *, number: int) -> tuple[Array, Array]:
        """One update of the transformation, which counts for itself."""
        jax = _jax()
        with jax.enable_x64(True):
            flat, restore = jax.flatten_util.ravel_pytree(self._first(len(average)))
            state = restore(jax.numpy.asarray(memory, dtype=flat.dtype))
            step, state = self.transformation.update(jax.numpy.asarray(average), state, None)
            after = np.array(jax.flatten_util.ravel_pytree(state)[0], dtype=np.float64)
        return after, np.array(step)

    def _first(self, dimension: int) -> Any:
        return self.transformation.init(_jax().numpy.zeros(dimension))
