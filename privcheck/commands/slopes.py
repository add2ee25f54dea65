"""Exponents of a sweep: power laws fitted to regret and to the cost of privacy, beside a theorem's exponents.

A fit is the least-squares line through the logarithms of the means over replicates. Replicates are curves: the same
seeds run at every point, so that points are dependent, and whole curves are resampled. The interval is the bootstrap
standard error, corrected by √(n/(n − 1)), times Student's quantile of n − 1 degrees of freedom. It is about the
replicates' randomness in this environment; how far the points leave the line is said beside it, and a theorem's
exponent is that of an upper bound up to logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privcheck.errors import ParameterError
from privcheck.reports.comparisons import as_number
from privcheck.reports.values import SlopeFit, SweepPoint
from privcheck.runtime import registry
from privcheck.runtime.registry import Rate

CONFIDENCE: Final = 0.95
_RESAMPLES: Final = 2000
_SEED: Final = 0x510BE
_LEAST: Final = 2  # distinct values of the parameter
_BEND: Final = 1.05  # factor between a point and the line from which on it is worth a remark

Of = Literal["agent", "twin", "privacy"]
OF: Final[tuple[Of, ...]] = ("agent", "twin", "privacy")


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """A fitted exponent.

    Attributes:
        exponent: The slope of log mean against log x.
        low: Lower end of its interval; None for a single replicate.
        high: Upper end; None for a single replicate.
        bend: Largest factor between a mean and the fitted line.
    """

    exponent: float
    low: float | None
    high: float | None
    bend: float


def fit_power_law(
    x: Sequence[float], samples: NDArray[np.float64], *, confidence: float = CONFIDENCE
) -> PowerLaw | str:
    """Fit y ∝ x^b to replicated measurements; the reason as text if there is nothing to fit.

    Args:
        x: Positive values of the parameter.
        samples: Measurements of shape (replicates, points), a row per replicate.
        confidence: Of the interval.
    """
    x_log = np.log(np.asarray(x, dtype=np.float64))
    if len(set(x)) < _LEAST:
        return f"expected at least {_LEAST} values, got {len(set(x))}"
    means = samples.mean(axis=0)
    if not np.isfinite(means).all():
        return "a measurement is not finite"
    if (means <= 0).any():
        worst = int(means.argmin())
        return f"a power law is positive, and the mean is {means[worst]:.4g} at {x[worst]:g}"
    weights = (x_log - x_log.mean()) / float(np.square(x_log - x_log.mean()).sum())
    exponent = float(weights @ np.log(means))
    fitted = float(np.log(means).mean()) + exponent * (x_log - x_log.mean())
    bend = float(np.exp(np.abs(np.log(means) - fitted).max()))
    n = len(samples)
    if n == 1:
        return PowerLaw(exponent=exponent, low=None, high=None, bend=bend)
    rng = np.random.default_rng(np.random.SeedSequence(_SEED))
    drawn = rng.integers(0, n, size=(_RESAMPLES, n))
    resampled = means + math.sqrt(n / (n - 1)) * (samples[drawn].mean(axis=1) - means)
    if (resampled <= 0).any():
        place = int((resampled <= 0).sum(axis=0).argmax())
        return f"the mean over {n} replicates is not told from 0 at {x[place]:g}: {means[place]:.4g}"
    error = float((np.log(resampled) @ weights).std(ddof=1))
    reach = error * float(stats.t.ppf((1 + confidence) / 2, n - 1))
    return PowerLaw(exponent=exponent, low=exponent - reach, high=exponent + reach, bend=bend)


def parse_slopes(text: str | None, over: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The parameters of `--slope`, each swept over at least two positive numbers.

    Raises:
        ParameterError: A name is empty or given twice, is not swept, or has other values.
    """
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if not name or names.count(name) > 1:
            raise ParameterError(f"--slope expects each parameter once, like K,epsilon; got {text!r}", name="slope")
        if name not in over:
            swept = ", ".join(over)
            message = f"--slope {name}: expected a swept parameter, one of {swept}; add --over {name}=…"
            raise ParameterError(message, name="slope", given=name)
        numbers = {as_number(value) for value in over[name]}
        if None in numbers or len(numbers) < _LEAST:
            message = (
                f"--slope {name}: expected at least {_LEAST} positive numbers in --over {name}={','.join(over[name])}"
            )
            raise ParameterError(message, name="slope", given=name)
    return names


def fit_slopes(points: Sequence[SweepPoint], names: Sequence[str]) -> tuple[SlopeFit, ...]:
    """The fits of a sweep: for every parameter and algorithm, at every setting of the other swept parameters.

    Args:
        points: All points.
        names: Parameters of `--slope`.
    """
    return tuple(fit for name in names for some in _groups(points, name) for fit in _fit_group(some, name))


def _groups(points: Sequence[SweepPoint], name: str) -> Iterator[list[SweepPoint]]:
    """The points of each algorithm that differ in one parameter only, in ascending order of it."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[SweepPoint]] = {}
    for one in points:
        if name in one.over:
            rest = tuple((other, value) for other, value in one.over.items() if other != name)
            found.setdefault((one.algorithm, rest), []).append(one)
    for some in found.values():
        yield sorted(some, key=lambda one: Fraction(one.over[name]))


def _fit_group(points: Sequence[SweepPoint], name: str) -> Iterator[SlopeFit]:
    algorithm = registry.algorithm(points[0].algorithm)
    ran = [one for one in points if one.outcomes]
    for of in OF if algorithm.declare is not None else OF[:1]:
        x, samples = _measure(ran, name, of)
        found = _refuse(points, ran, of) or fit_power_law(x, samples)
        fit = found if isinstance(found, PowerLaw) else None
        yield SlopeFit(
            algorithm=algorithm.name,
            parameter=name,
            at={other: value for other, value in points[0].over.items() if other != name},
            quantity="gap" if points[0].gap is not None else "regret",
            of=of,
            values=tuple(x),
            means=tuple(samples.mean(axis=0).tolist()) if samples.size else (),
            exponent=None if fit is None else fit.exponent,
            low=None if fit is None else fit.low,
            high=None if fit is None else fit.high,
            confidence=CONFIDENCE,
            theorem=_say_theorem(algorithm.rate, name, of),
            source="" if algorithm.rate is None else algorithm.rate.source,
            not_fitted="" if fit is not None else str(found),
            remark="" if fit is None else _remark(ran, fit, of),
        )


def _refuse(points: Sequence[SweepPoint], ran: Sequence[SweepPoint], of: Of) -> str:
    """Why there is nothing to fit; empty if there is."""
    if len(ran) < _LEAST:
        refused = sum(bool(one.refused) for one in points)
        return f"{len(ran)} of {len(points)} points have a true value ({refused} were refused)"
    if of != "agent" and not all(one.twin_outcomes for one in ran):
        standing = ran[0].standing
        twin = None if standing is None else standing.twin
        return "it has no non-private twin" if twin is None else f"its twin, {twin}, was not run at every point"
    return ""


def _measure(points: Sequence[SweepPoint], name: str, of: Of) -> tuple[list[float], NDArray[np.float64]]:
    """Values of the parameter, and measurements of shape (replicates, points)."""
    x, columns = [float(Fraction(one.over[name])) for one in points], list[NDArray[np.float64]]()
    for one in points:
        agent, twin = np.array(one.outcomes), np.array(one.twin_outcomes)
        if of == "agent":
            columns.append(agent)
        elif not len(twin):
            return x, np.empty((0, len(x)))
        else:
            columns.append(twin if of == "twin" else agent - twin)  # a twin that is run once counts for all
    return x, np.stack(columns, axis=1) if columns else np.empty((0, 0))


def _say_theorem(rate: Rate | None, name: str, of: Of) -> str:
    """The theorem's exponent in words; empty if the registry states none."""
    if rate is None:
        return ""
    terms = ((rate.main.get(name), "twin", "without privacy"), (rate.privacy.get(name), "privacy", "of privacy"))
    if of == "agent":
        return ", ".join(f"{power} {what}" for power, _, what in terms if power is not None)
    return "".join(str(power) for power, one, _ in terms if power is not None and one == of)


def _remark(points: Sequence[SweepPoint], fit: PowerLaw, of: Of) -> str:
    said = []
    lost = [one for one in points if one.standing is not None and one.standing.did_not_learn is not None]
    if lost and of != "twin":
        every = (
            "any point: the rate of not learning"
            if len(lost) == len(points)
            else f"{len(lost)} of {len(points)} points"
        )
        said.append(f"nothing was learned at {every}")
    if fit.bend > _BEND and len(points) > _LEAST:
        said.append(f"the points leave the line by up to a factor {fit.bend:.2f}")
    if fit.low is None:
        said.append("one replicate: no interval")
    elif fit.low == fit.high:
        said.append("all replicates are the same")
    return "; ".join(said)
