"""Softmax policies in NumPy with gradients of every user apart: linear, odd under a mirror, of doses, and a net.

The first action's logit is 0, so that two actions have one logit. A policy is a value without parameters; these are
flat arrays (d,), which a learner makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck_algorithms.trained.tasks import Array, Choose, Indices

_USERS = 25  # at a time: their hidden units fit a processor's cache


class Policy(Protocol):
    """A parametric policy on observations, with sums of gradients by user."""

    @property
    def dimension(self) -> int:
        """Number of parameters, d."""
        ...

    def initial(self) -> Array:
        """Parameters before any user, (d,): public, and the same in every run."""
        ...

    def logits(self, parameters: Array, observations: Array) -> Array:
        """Logits (…, actions − 1) of the actions after the first, from observations (…, inputs)."""
        ...

    def logits_apart(self, parameters: Array, observations: Array) -> Array:
        """Logits (users, actions − 1), by each user's own parameters (users, d), of observations (users, inputs)."""
        ...

    def gradients(self, parameters: Array, observations: Array, slopes: Array) -> Array:
        """Σ over each user's steps of slopes · ∂logits/∂parameters, (users, d).

        Args:
            parameters: (d,).
            observations: (users, T, inputs).
            slopes: (users, T, actions − 1), 0 after the end of an episode.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPolicy:
    """Logits linear in (observation, 1): d = (inputs + 1)·(actions − 1); without the constant, inputs·(actions − 1).

    Where left and right are alike, a constant has nothing to learn, and noise alone moves it.

    Attributes:
        inputs: Coordinates of an observation.
        actions: Number of actions.
        constant: Whether the logits have a constant.
    """

    inputs: int
    actions: int
    constant: bool = True

    @property
    def dimension(self) -> int:
        """Number of parameters, d."""
        return (self.inputs + self.constant) * (self.actions - 1)

    def initial(self) -> Array:
        """Zeros: every action is equally likely."""
        return np.zeros(self.dimension)

    def logits(self, parameters: Array, observations: Array) -> Array:
        """Logits of the actions after the first."""
        weights = parameters.reshape(-1, self.actions - 1)
        logits = observations @ weights[: self.inputs]
        return np.asarray(logits + weights[-1] if self.constant else logits)

    def logits_apart(self, parameters: Array, observations: Array) -> Array:
        """Logits of users with parameters of their own."""
        return _layer_apart(parameters, observations, outs=self.actions - 1)

    def gradients(self, parameters: Array, observations: Array, slopes: Array) -> Array:
        """Sums of gradients by user."""
        return _weighed(observations, slopes)[:, : self.dimension]  # the constant's are the last


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPolicy:
    """Two actions that a mirror swaps: one logit, linear in what the mirror turns over, and odd by construction.

    Its features are the coordinates that the mirror turns over, and the products of one such and one that it keeps.
    What is alike on both sides is left out: there noise alone would have moved the parameters.

    Attributes:
        turned: For every coordinate of an observation, whether the mirror changes its sign.
    """

    turned: tuple[bool, ...]

    @property
    def inputs(self) -> int:
        """Coordinates of an observation."""
        return len(self.turned)

    @property
    def actions(self) -> int:
        """Number of actions: one and its mirror image."""
        return 2

    @property
    def dimension(self) -> int:
        """Number of parameters: t·(1 + inputs − t), with t coordinates turned over."""
        turned = sum(self.turned)
        return turned * (1 + self.inputs - turned)

    def initial(self) -> Array:
        """Zeros: both actions are equally likely."""
        return np.zeros(self.dimension)

    def logits(self, parameters: Array, observations: Array) -> Array:
        """Logits of the second action."""
        return np.asarray(self._features(observations) @ parameters[:, np.newaxis])

    def logits_apart(self, parameters: Array, observations: Array) -> Array:
        """Logits of users with parameters of their own."""
        return np.asarray((self._features(observations) * parameters).sum(axis=1, keepdims=True))

    def gradients(self, parameters: Array, observations: Array, slopes: Array) -> Array:
        """Sums of gradients by user."""
        return _weighed(self._features(observations), slopes)[:, : self.dimension]

    def _features(self, observations: Array) -> Array:
        turned = np.array(self.turned)
        odd, even = observations[..., turned], observations[..., ~turned]
        products = odd[..., :, np.newaxis] * even[..., np.newaxis, :]
        return np.concatenate([odd, products.reshape(*odd.shape[:-1], -1)], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DosePolicy:
    """Ordered actions: probabilities ∝ exp(−s·(z − m)²) of doses z, with a mean m linear in (observation, 1).

    All doses share inputs + 1 parameters, where a linear policy has as many for every dose after the first, each with
    noise.

    Attributes:
        inputs: Coordinates of an observation.
        doses: Public doses of the actions, ascending; at the first parameters m is midway between first and last.
        sharpness: s.
    """

    inputs: int
    doses: tuple[float, ...]
    sharpness: float = 4.0

    @property
    def actions(self) -> int:
        """Number of doses."""
        return len(self.doses)

    @property
    def dimension(self) -> int:
        """Number of parameters: inputs + 1."""
        return self.inputs + 1

    def initial(self) -> Array:
        """Zeros: a mean dose midway."""
        return np.zeros(self.dimension)

    def logits(self, parameters: Array, observations: Array) -> Array:
        """Logits of the doses after the first."""
        return self._around(observations @ parameters[:-1] + parameters[-1])

    def logits_apart(self, parameters: Array, observations: Array) -> Array:
        """Logits of users with parameters of their own."""
        return self._around((observations * parameters[:, :-1]).sum(axis=1) + parameters[:, -1])

    def gradients(self, parameters: Array, observations: Array, slopes: Array) -> Array:
        """Sums of gradients by user."""
        above = np.array(self.doses[1:]) - self.doses[0]
        return _weighed(observations, slopes @ (2 * self.sharpness * above[:, np.newaxis]))

    def _around(self, moved: Array) -> Array:
        """−s·(z − m)² less that of the first dose, for means m that are so far from midway."""
        first, doses = self.doses[0], np.array(self.doses[1:])
        means = moved[..., np.newaxis] + (first + self.doses[-1]) / 2
        return np.asarray(self.sharpness * (doses - first) * (2 * means - doses - first))


@dataclass(frozen=True, slots=True, kw_only=True)
class TanhPolicy:
    """One layer of tanh units: d = (inputs + 1)·units + (units + 1)·(actions − 1).

    Attributes:
        inputs: Coordinates of an observation.
        actions: Number of actions.
        units: Hidden units.
        spread: Standard deviation of the first layer's initial weights times √inputs.
        seed: Public seed of the initial weights.
    """

    inputs: int
    actions: int
    units: int
    spread: float = 1.0
    seed: int = 0

    @property
    def dimension(self) -> int:
        """Number of parameters, d."""
        return (self.inputs + 1) * self.units + (self.units + 1) * (self.actions - 1)

    def initial(self) -> Array:
        """Gaussian weights in the first layer, zeros in the second: every action is equally likely."""
        parameters, drawn = np.zeros(self.dimension), np.random.default_rng(self.seed)
        size = self.inputs * self.units
        parameters[:size] = drawn.standard_normal(size) * self.spread / np.sqrt(self.inputs)
        return parameters

    def logits(self, parameters: Array, observations: Array) -> Array:
        """Logits of the actions after the first."""
        first, second = self._layers(parameters)
        hidden = np.tanh(observations @ first[:-1] + first[-1])
        return np.asarray(hidden @ second[:-1] + second[-1])

    def logits_apart(self, parameters: Array, observations: Array) -> Array:
        """Logits of users with parameters of their own."""
        cut = (self.inputs + 1) * self.units
        hidden = np.tanh(_layer_apart(parameters[:, :cut], observations, outs=self.units))
        return _layer_apart(parameters[:, cut:], hidden, outs=self.actions - 1)

    def gradients(self, parameters: Array, observations: Array, slopes: Array) -> Array:
        """Sums of gradients by user, by the chain rule."""
        first, second = self._layers(parameters)
        out, cut = np.empty((len(slopes), self.dimension)), first.size
        for start in range(0, len(slopes), _USERS):
            users = slice(start, start + _USERS)
            seen, slope = observations[users], slopes[users]
            hidden = np.tanh(seen @ first[:-1] + first[-1])
            out[users, cut:] = _weighed(hidden, slope)
            out[users, :cut] = _weighed(seen, (slope @ second[:-1].T) * (1 - hidden * hidden))
        return out

    def _layers(self, parameters: Array) -> tuple[Array, Array]:
        cut = (self.inputs + 1) * self.units
        return parameters[:cut].reshape(-1, self.units), parameters[cut:].reshape(-1, self.actions - 1)


def _layer_apart(parameters: Array, seen: Array, *, outs: int) -> Array:
    """Outputs (users, outs) of a layer whose weights, and a constant where there are any left, are each user's own."""
    weights = parameters.reshape(len(parameters), -1, outs)
    inputs = seen.shape[1]
    found = np.matmul(seen[:, np.newaxis], weights[:, :inputs])[:, 0]
    return np.asarray(found + weights[:, -1] if weights.shape[1] > inputs else found)


def _weighed(seen: Array, slopes: Array) -> Array:
    """Σ over steps of (seen, 1) ⊗ slopes, flat, (users, …)."""
    weights = np.swapaxes(seen, 1, 2) @ slopes
    return np.concatenate([weights, slopes.sum(axis=1, keepdims=True)], axis=1).reshape(len(slopes), -1)


def probabilities(logits: Array) -> Array:
    """Action probabilities (…, actions) from the logits of the actions after the first."""
    if logits.shape[-1] == 1:  # the logistic function, without overflow
        second = 0.5 + 0.5 * np.tanh(0.5 * logits)
        return np.concatenate([1.0 - second, second], axis=-1)
    whole = np.concatenate([np.zeros((*logits.shape[:-1], 1)), logits], axis=-1)
    raised = np.exp(whole - whole.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def sampled(logits: Array, uniforms: NDArray[np.float64]) -> Indices:
    """Actions drawn from the softmax by inverse distribution functions, one uniform number each."""
    chances = probabilities(logits)
    if logits.shape[-1] == 1:
        return np.asarray(uniforms >= chances[..., 0], dtype=np.int64)
    below = chances[..., :-1].cumsum(axis=-1)
    return np.asarray((uniforms[..., np.newaxis] >= below).sum(axis=-1), dtype=np.int64)


def greedy(logits: Array) -> Indices:
    """Most likely actions; the first of those that tie."""
    whole = np.concatenate([np.zeros((*logits.shape[:-1], 1)), logits], axis=-1)
    return np.asarray(whole.argmax(axis=-1), dtype=np.int64)


def action_codes(actions: Indices, *, number: int) -> Array:
    """1{a = j} − 1/n for every action but the first, (…, n − 1).

    Args:
        actions: (…) places of actions.
        number: n, of actions.
    """
    return np.asarray((actions[..., np.newaxis] == np.arange(1, number)) - 1.0 / number)


def drawing(policy: Policy, parameters: Array) -> Choose:
    """Actions drawn from a policy."""

    def drawn(observations: Array, uniforms: Array, _: Indices) -> Indices:
        return sampled(policy.logits(parameters, observations), uniforms)

    return drawn


def most_likely(policy: Policy, parameters: Array) -> Choose:
    """A policy's most likely actions."""

    def best(observations: Array, _: Array, __: Indices) -> Indices:
        return greedy(policy.logits(parameters, observations))

    return best
