"""A generator of random numbers that draws the ends of what may be drawn: records that lie in a corner of their kind.

The author of a statistic of records says what a record is by drawing one. Typical draws hardly ever come near the worst
case (of 12 numbers that are uniform on [0, 1] two differ by .95 or more one time in eight), so whatever draws a record
is handed a generator here whose answers are all possible ones and mostly extreme: all draws at one end, each at either
end, one at an end and the others in the middle, all alike. Every record comes with its mirror image, for which every
draw is at the opposite place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")
Manner = Literal["one end", "either end", "one at an end", "all alike", "some at an end", "call by call"]
_MANNERS: Final[tuple[Manner, ...]] = (
    "one end", *("either end",) * 4, *("one at an end",) * 4, *("all alike",) * 4, *("some at an end",) * 4,
    *("call by call",) * 3,
)  # fmt: skip
_CALLS: Final = 500  # after so many a record is drawn as it comes: who rejects corners must come to an end
_TOP: Final = 1 - 2.0**-53
_FAR: Final = 6.0  # standard deviations, or scales
_TINY: Final = 1e-9


def corner_records(draw: Callable[[np.random.Generator], T | None]) -> list[T]:
    """Returns records at corners, each followed by its mirror image; those that cannot be drawn so are left out.

    Args:
        draw: One record, from a generator.

    >>> low, high, *_ = corner_records(lambda rng: rng.uniform(-1, 1))
    >>> low, round(high, 9)
    (-1.0, 1.0)
    """
    records = []
    for seed, manner in enumerate(_MANNERS):
        for mirrored in (False, True):
            try:
                with np.errstate(all="ignore"):
                    record = draw(CornerGenerator(seed, manner, mirrored=mirrored))
            except Exception:  # noqa: BLE001, S112 - the author's own code; typical draws tell what is wrong with it
                continue
            if record is not None:
                records.append(record)
    return records


class CornerGenerator(np.random.Generator):
    """A NumPy generator whose draws lie where their law has mass, mostly at its ends.

    A subclass, because authors' code asks for a `numpy.random.Generator`. What is not overridden here
    is drawn as usual.
    """

    def __init__(self, seed: int, manner: Manner, *, mirrored: bool) -> None:
        """Makes one for a single record.

        Args:
            seed: Of all choices; a record and its mirror image have the same.
            manner: How the places in [0, 1] are chosen.
            mirrored: Whether every place is the opposite one.
        """
        super().__init__(np.random.PCG64(seed))
        self._choices = np.random.default_rng(seed)
        self._manner, self._mirrored, self._left = manner, mirrored, _CALLS
        self._level = float(self._choices.random())

    def _places(self, size: Any, *parameters: ArrayLike) -> NDArray[np.float64]:
        """Returns places in [0, 1), of the given size or of that of the law's parameters."""
        wanted: Any = np.broadcast_shapes(*(np.shape(p) for p in parameters)) if size is None else size
        shape = (int(wanted),) if np.ndim(wanted) == 0 else tuple(wanted)
        self._left -= 1
        chosen = self._choices
        if self._left < 0:
            return chosen.random(shape)
        places = self._at_ends(shape)
        return np.asarray(_TOP - places if self._mirrored else places)

    def _at_ends(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        chosen = self._choices
        ends = np.where(chosen.random(shape) < 0.5, 0.0, _TOP)
        if self._manner == "one end":
            return np.zeros(shape)
        if self._manner == "either end":
            return ends
        if self._manner == "call by call":
            return np.full(shape, 0.0 if chosen.random() < 0.5 else _TOP)
        if self._manner == "all alike":
            return np.full(shape, self._level)
        if self._manner == "some at an end":
            return np.where(chosen.random(shape) < 0.5, ends, chosen.random(shape))
        places = np.full(shape, 0.5)
        if places.size and (places.size > 1 or chosen.random() < 0.5):
            places.flat[int(chosen.integers(places.size))] = 0.0 if chosen.random() < 0.5 else _TOP
        return places

    def _normals(self, size: Any, *parameters: ArrayLike) -> NDArray[np.float64]:
        places = 2 * _FAR * (self._places(size, *parameters) - 0.5)
        return np.where(np.abs(places) < _TINY, 1e-3, places)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Returns places in [0, 1)."""
        below = 1 - 2.0**-24 if np.dtype(dtype) == np.float32 else _TOP
        return _given(np.minimum(self._places(size if out is None else out.shape), below).astype(dtype), out)

    def uniform(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: Any = None) -> Any:
        """Returns numbers between two ends."""
        first, last = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        return _given(first + (last - first) * self._places(size, first, last))

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: Any = None, dtype: Any = np.int64,
        endpoint: bool = False,  # noqa: FBT001, FBT002 - NumPy's
    ) -> Any:  # fmt: skip
        """Returns whole numbers between two ends."""
        first, last = (np.zeros_like(low), np.asarray(low)) if high is None else (np.asarray(low), np.asarray(high))
        many = last - first + int(endpoint)
        if np.any(many < 1):
            raise ValueError("low >= high")
        places = np.floor(self._places(size, first, last) * many).astype(np.int64)
        return _given((first + np.minimum(places, many - 1)).astype(dtype))

    def choice(  # noqa: PLR0917 - NumPy's arguments
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,  # noqa: FBT001, FBT002 - NumPy's
        shuffle: bool = True,  # noqa: FBT001, FBT002 - NumPy's
    ) -> Any:  # fmt: skip
        """Returns any of what has a chance at all, however small."""
        if size is not None and not replace:
            return super().choice(a, size, replace, p, axis, shuffle)
        options = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        possible = np.arange(options.shape[axis]) if p is None else np.flatnonzero(np.asarray(p) > 0)
        index = possible[np.floor(self._places(() if size is None else size) * len(possible)).astype(np.int64)]
        return options.take(index, axis=axis)[()]

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Returns numbers of at most six."""
        return _given(self._normals(size if out is None else out.shape).astype(dtype), out)

    def normal(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Returns numbers up to six standard deviations away."""
        return _given(np.asarray(loc) + np.asarray(scale) * self._normals(size, loc, scale))

    def laplace(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Returns numbers up to six scales away."""
        return _given(np.asarray(loc) + np.asarray(scale) * self._normals(size, loc, scale))

    def lognormal(self, mean: ArrayLike = 0.0, sigma: ArrayLike = 1.0, size: Any = None) -> Any:
        """Returns exponentials of normal numbers."""
        return _given(np.exp(np.asarray(mean) + np.asarray(sigma) * self._normals(size, mean, sigma)))

    def exponential(self, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Returns numbers from 0 to 36 scales."""
        return _given(-np.asarray(scale) * np.log1p(-self._places(size, scale)))

    def gamma(self, shape: ArrayLike, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Returns numbers above 0, up to 36 means."""
        mean = np.asarray(shape) * np.asarray(scale)
        return _given(mean * np.maximum(-np.log1p(-self._places(size, mean)), _TINY))

    def beta(self, a: ArrayLike, b: ArrayLike, size: Any = None) -> Any:
        """Returns numbers strictly between 0 and 1."""
        return _given(np.clip(self._places(size, a, b), _TINY, 1 - _TINY))

    def triangular(self, left: ArrayLike, mode: ArrayLike, right: ArrayLike, size: Any = None) -> Any:
        """Returns numbers between two ends."""
        first, last = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
        return _given(first + (last - first) * self._places(size, first, mode, last))

    def binomial(self, n: ArrayLike, p: ArrayLike, size: Any = None) -> Any:
        """Returns numbers of successes, none and all of them among these."""
        trials, chance = np.asarray(n), np.asarray(p)
        places = np.floor(self._places(size, trials, chance) * (trials + 1)).astype(np.int64)
        return _given(np.where(chance <= 0, 0, np.where(chance >= 1, trials, np.minimum(places, trials))))

    def poisson(self, lam: ArrayLike = 1.0, size: Any = None) -> Any:
        """Returns numbers of events, from none to ten standard deviations above the mean."""
        mean = np.asarray(lam)
        most = np.where(mean > 0, np.ceil(mean + 10 * np.sqrt(mean) + 10), 0)
        return _given(np.floor(self._places(size, mean) * (most + 1)).astype(np.int64))

    def geometric(self, p: ArrayLike, size: Any = None) -> Any:
        """Returns numbers of trials, from 1 to 36 means."""
        chance = np.asarray(p)
        waited = np.floor(-np.log1p(-self._places(size, chance)) / chance).astype(np.int64)
        return _given(1 + np.where(chance < 1, waited, 0))

    def dirichlet(self, alpha: ArrayLike, size: Any = None) -> Any:
        """Returns shares, all of it in one or in few places among these."""
        many = () if size is None else (size,) if np.ndim(size) == 0 else tuple(size)
        weights = np.maximum(self._places((*many, np.size(alpha))), _TINY)
        return weights / weights.sum(axis=-1, keepdims=True)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """Returns counts that are all in one category."""
        if np.ndim(n) or np.ndim(pvals) != 1:
            return super().multinomial(n, pvals, size)
        possible = np.flatnonzero(np.asarray(pvals) > 0)
        places = self._places(() if size is None else size)
        chosen = possible[np.floor(places * len(possible)).astype(np.int64)]
        return int(n) * (chosen[..., np.newaxis] == np.arange(np.size(pvals))).astype(np.int64)


def _given(values: NDArray[Any], out: Any = None) -> Any:
    """Returns the values as NumPy does: into an array where one was given, as a number where they are one."""
    if out is not None:
        out[...] = values
        return out
    return values if np.ndim(values) else values[()].item()
