"""Mechanisms of their authors' own, as plain functions: what they draw, its density, and what is said of its price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from declarations.specs import Procedure
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.relations import ReplaceOne
from privcheck.terms.guarantees import ZCDP, GaussianDP, PureDP
from privcheck.terms.symbols import sqrt


def own_mechanism(one: Procedure, size: Any) -> OwnMechanism:
    """Returns the mechanism; data is 0 in D and 1 in D′, and the densities are written down anew."""
    density, draw, support = _LAWS[one.kind.split()[1]](one.count)
    return OwnMechanism(
        one.name,
        arguments={"scale": size},
        spread="scale",
        sampler=_faulty(draw, one.fault),
        log_density=density,
        price=lambda scale: _price(one, scale),
        relation=ReplaceOne(),
        neighbours=lambda **_: [(0, 1)],
        users=one.group,
        **support,
    )


def _price(one: Procedure, scale: Any) -> Any:
    if one.kind != "own gaussian":
        return PureDP(one.stated / scale)
    return ZCDP(one.stated / (2 * scale**2)) if one.noise == "zcdp" else GaussianDP(one.stated * sqrt(scale**-2))


def _faulty(draw: Callable[..., Any], fault: str) -> Callable[..., Any]:
    """Returns a sampler of a scale 10 % too small, or one that now and then tells the data."""

    def faulty(rng: np.random.Generator, data: Any, size: int, scale: float) -> Any:
        drawn = draw(rng, data, size, scale * (0.9 if fault == "scale" else 1.0))
        return np.where(rng.random(size) < 1e-3, 2 * scale + data, drawn) if fault == "atom" else drawn

    return faulty


def _response(count: int) -> tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]:
    def density(outputs: Any, data: Any, scale: float) -> Any:
        return np.where(outputs == data, 1 / scale, 0.0) - np.logaddexp(1 / scale, np.log(count - 1))

    def draw(rng: np.random.Generator, data: Any, size: int, scale: float) -> Any:
        told = rng.random(size) < 1 / (1 + (count - 1) * np.exp(-1 / scale))
        return np.where(told, data, (data + rng.integers(1, count, size)) % count)

    return density, draw, {"outputs": lambda **_: np.arange(count)}


def _geometric(count: int) -> tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]:
    def density(outputs: Any, data: Any, scale: float) -> Any:
        far = -np.abs(outputs - data) / scale
        a = np.exp(-1 / scale)
        return far + np.where((outputs == 0) | (outputs == count), -np.log1p(a), np.log((1 - a) / (1 + a)))

    def draw(rng: np.random.Generator, data: Any, size: int, scale: float) -> Any:
        p = -np.expm1(-1 / scale)
        return np.clip(data + rng.geometric(p, size) - rng.geometric(p, size), 0, count)

    return density, draw, {"outputs": lambda **_: np.arange(count + 1)}


def _laplace(count: int) -> tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]:
    del count

    def density(outputs: Any, data: Any, scale: float) -> Any:
        return -np.abs(outputs - data) / scale - np.log(2 * scale)

    def draw(rng: np.random.Generator, data: Any, size: int, scale: float) -> Any:
        return rng.laplace(data, scale, size)

    return density, draw, {"edges": lambda scale: _edges(30, scale)}


def _gaussian(count: int) -> tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]:
    del count

    def density(outputs: Any, data: Any, scale: float) -> Any:
        return -np.square((outputs - data) / scale) / 2 - np.log(scale * np.sqrt(2 * np.pi))

    def draw(rng: np.random.Generator, data: Any, size: int, scale: float) -> Any:
        return rng.normal(data, scale, size)

    return density, draw, {"edges": lambda scale: _edges(9, scale)}


def _edges(spreads: int, scale: float) -> Any:
    """Returns edges around 0 and 1, where the density has its kinks."""
    return np.unique([*np.linspace(-spreads * scale, 1 + spreads * scale, 400), 0.0, 1.0])


_LAWS = {"response": _response, "geometric": _geometric, "laplace": _laplace, "gaussian": _gaussian}
