"""Laws of losses with finitely or countably many values: randomised response, discrete Laplace and Gaussian noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, coarsen, thin, tidy
from privcheck.accounting.engine.laws import (
    UNIT,
    Cells,
    Complex,
    Direction,
    Fading,
    Floats,
    GaussianLaw,
    Moments,
    Repeat,
    as_complex,
)
from privcheck.accounting.engine.mass import check_law
from privcheck.accounting.engine.trimmed import Trimmed, trimmed_atoms
from privcheck.accounting.engine.waves import atoms_moments, wave_of

_SMOOTH: Final = 3.0  # from this σ on, e^{−2π²σ²} < 1e-77: sums over the integers are Gaussian integrals
_FEW: Final = 256  # values of a sketch
_COARSE: Final = 20_000  # values in a cumulant; more are joined, upwards
_MOST_STD: Final = 12_000.0  # of a discrete Gaussian whose integers are enumerated
_LEAST_MU: Final = 1e-60  # a loss below it is rounded up to it
_KAPPA: Final = 8.0  # variance that is given up to make a broader one continuous


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicLaw:
    """Law whose loss has exactly known atoms.

    Attributes:
        build: Makes the atoms from `arguments` and a direction; a module-level function, called once.
        arguments: Arguments of `build`; with `build` the law's identity.
        bound: The largest finite or infinite loss in both directions.
        symmetric: Whether both directions have the same loss law.
        rounded: Whether some values were joined, upwards, because there are too many.
        repeat: Makes the law of n releases on one draw from n and `arguments`; None where nothing is drawn for a user.
        below: Makes the atoms of a law that the mechanism's dominates, as `build` does; None where none is known.
        whole: Whether P and Q both have all their mass at the atoms, exactly but for the rounding of each.
    """

    build: Callable[..., Atoms] = field(repr=False)
    arguments: tuple[Any, ...]
    bound: float
    symmetric: bool
    rounded: bool = False
    repeat: Callable[..., AtomicLaw] | None = field(default=None, repr=False)
    below: Callable[..., Atoms] | None = field(default=None, repr=False)
    whole: bool = field(default=False, repr=False)

    @property
    def on_one_draw(self) -> Repeat | None:
        """Law of n releases on one draw, from `repeat`; None where nothing is drawn for a user."""
        repeat = self.repeat
        return None if repeat is None else lambda times: repeat(times, *self.arguments)

    def atoms(self, direction: Direction) -> Atoms:
        """Loss of the law, cached."""
        return _build(self.build, self.arguments, "remove" if self.symmetric else direction)

    def atoms_below(self, direction: Direction) -> Atoms | None:
        """Loss of the law from `below`, cached; None where none is known."""
        return None if self.below is None else _build(self.below, self.arguments, direction)

    def largest(self, direction: Direction) -> float:
        """`bound`, in either direction."""
        return self.bound

    def infinite(self, direction: Direction) -> float:
        """P-mass at loss ∞."""
        return self.atoms(direction).infinite

    def span(self, direction: Direction) -> float:
        """Largest finite loss, in absolute terms."""
        losses = self.atoms(direction).losses
        return max(abs(float(losses[0])), abs(float(losses[-1])))

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c, of the finite losses; of a dominating law where there are very many."""
        atoms = self._coarse(direction)
        return atoms_moments(atoms.losses, atoms.logs, c)

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c), of the same law as `moments`."""
        atoms = self._coarse(direction)
        return wave_of(atoms.losses, atoms.logs + c * atoms.losses, step=step, count=count)

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """None: the loss has atoms only."""
        return None

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of a wave, from the number of values."""
        values = float(min(len(self.atoms("remove").losses), _COARSE))
        return 100 * values, values / 8

    def _coarse(self, direction: Direction) -> Atoms:
        return _coarsen(self.build, self.arguments, "remove" if self.symmetric else direction)

    @property
    def sketch(self) -> AtomicLaw:
        """Similar law of few values, for searches only."""
        arguments = (self.build, self.arguments)
        few = AtomicLaw(build=_thin, arguments=arguments, bound=self.bound, symmetric=self.symmetric, whole=self.whole)
        return few if len(self.atoms("remove").losses) > _FEW else self

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build nodes of the law without its largest losses; see `trimmed`."""
        atoms = self.atoms(direction)
        return trimmed_atoms(atoms.losses, atoms.logs, infinite=atoms.infinite, whole=self.whole, c=c, tail=tail)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid."""
        return self.atoms(direction).cells(mesh, tail)


@functools.lru_cache(maxsize=128)
def _coarsen(build: Callable[..., Atoms], arguments: tuple[Any, ...], direction: Direction) -> Atoms:
    return coarsen(_build(build, arguments, direction), _COARSE)


def _thin(build: Callable[..., Atoms], arguments: tuple[Any, ...], direction: Direction) -> Atoms:
    return thin(_build(build, arguments, direction), _FEW)


@functools.lru_cache(maxsize=128)
def _build(build: Callable[..., Atoms], arguments: tuple[Any, ...], direction: Direction) -> Atoms:
    law = build(*arguments, direction)
    check_law(law.losses, law.logs, law.infinite, f"{build.__name__.strip('_')}{arguments}")
    return law


def response_law(epsilon: float, categories: int) -> AtomicLaw:
    """Law of randomised response over m categories with ratio e^ε.

    Truth has probability e^ε/(e^ε + m − 1): the losses are ε, 0 and −ε; m = 2 has no atom at 0.

    Lemma response-dominates: Binary randomised response, m = 2, dominates every ε-DP mechanism. Source: Kairouz, Oh &
    Viswanath 2015.
    """
    return AtomicLaw(build=_response, arguments=(epsilon, categories), bound=epsilon, symmetric=True, whole=True)


def _response(epsilon: float, categories: int, _: Direction) -> Atoms:
    total = epsilon + math.log1p((categories - 1) * math.exp(-epsilon))  # ln(e^ε + m − 1)
    losses, logs = [-epsilon, epsilon], [-total, epsilon - total]
    if categories > 2:
        losses, logs = [-epsilon, 0.0, epsilon], [-total, math.log(categories - 2) - total, epsilon - total]
    return Atoms(losses=np.array(losses), logs=np.array(logs))


def discrete_laplace_law(scale: float, shift: int) -> AtomicLaw:
    """Law of P(x) ∝ e^{−|x|/b} on the integers against its shift by Δ (Ghosh, Roughgarden & Sundararajan 2009).

    The losses are (Δ − 2x)/b for 0 ≤ x ≤ Δ; all smaller x share Δ/b, all larger −Δ/b.
    """
    return AtomicLaw(
        build=_discrete_laplace,
        arguments=(scale, shift),
        bound=shift / scale,
        symmetric=True,
        whole=shift <= 600 * scale,
    )


def _discrete_laplace(scale: float, shift: int, _: Direction) -> Atoms:
    x = np.arange(shift + 1)
    logs = math.log(math.tanh(0.5 / scale)) - x / scale  # P(0) = tanh(1/2b)
    tail = -math.log1p(math.exp(-1 / scale))  # ln P(x ≤ 0)
    logs[0], logs[-1] = tail, tail - shift / scale
    losses = (shift - 2 * x) / scale
    return tidy(losses[::-1], logs[::-1])


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Law of P(x) ∝ exp(−x²/2σ²) on the integers against its shift by Δ (Canonne, Kamath & Steinke 2020).

    Attributes:
        sigma: σ, the law's parameter.
        shift: Δ, a positive integer.
    """

    sigma: float
    shift: int

    @property
    def on_one_draw(self) -> Repeat | None:
        """None: every release draws its own noise."""
        return None

    @property
    def symmetric(self) -> bool:
        """Always True."""
        return True

    def atoms(self, direction: Direction) -> Atoms:
        """Loss (Δ² − 2xΔ)/2σ² for |x| ≤ ⌈38σ⌉, cached; masses below e^−660 join the next loss above, or ∞."""
        return _discrete_gaussian(self.sigma, self.shift)

    def largest(self, direction: Direction) -> float:
        """Always ∞."""
        return math.inf

    def infinite(self, direction: Direction) -> float:
        """P-mass at loss ∞, from truncation."""
        return 0.0 if self.sigma >= _SMOOTH else self.atoms(direction).infinite

    def span(self, direction: Direction) -> float:
        """Loss at 38σ."""
        ratio = self.shift / self.sigma
        return ratio * (ratio / 2 + 38)

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c: those of the Gaussian where σ ≥ 3."""
        if self.sigma < _SMOOTH:
            atoms = self.atoms(direction)
            return atoms_moments(atoms.losses, atoms.logs, c)
        v = self.shift**2 / self.sigma**2
        return c * (c + 1) * (v / 2), (c + 0.5) * v, np.full(len(c), v)

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c).

        K(z) = (z + z²)Δ²/2σ² + ln(θ(zΔ)/θ(0)), θ(w) = Σ exp(−(x + w)²/2σ²), by Poisson summation for large σ.
        """
        if self.sigma < _SMOOTH:
            atoms = self.atoms(direction)
            return wave_of(atoms.losses, atoms.logs + c * atoms.losses, step=step, count=count)
        variance, shift, t = self.sigma**2, self.shift, step * np.arange(count)
        v = shift**2 / variance
        nearest = np.round(t * shift / (2 * math.pi * variance))
        z = c + 1j * t
        terms = np.stack(
            [
                -2 * math.pi**2 * variance * n * n - 2j * math.pi * n * z * shift
                for n in (nearest - 1, nearest, nearest + 1)
            ]
        )
        top = terms.real.max(axis=0)
        smooth = 1j * t * ((c + 0.5) * v) - t * t * (v / 2)
        values = smooth + np.log(np.exp(terms - top).sum(axis=0)) + top
        longest = step * count
        error = UNIT * (40 + 8 * longest * ((c + 0.5) * v + math.sqrt(v)) + 8 * longest**2 * v)
        return as_complex(values - values[0]), error

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """None: the loss has atoms only."""
        return None

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of a wave, from the number of values."""
        return (0.0, 8.0) if self.sigma >= _SMOOTH else (8000 * self.sigma, 10 * self.sigma)

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build nodes of the law without its largest losses; see `trimmed`."""
        atoms = self.atoms(direction)
        return trimmed_atoms(atoms.losses, atoms.logs, infinite=atoms.infinite, whole=False, c=c, tail=tail)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid."""
        return self.atoms(direction).cells(mesh, tail)

    def merge_repeats(self, count: int) -> tuple[DiscreteGaussian | GaussianLaw, int]:
        """Express the law of `count` releases by fewer releases of another law.

        Lemma discrete-gaussian-sum: For σ ≥ 3 k discrete Gaussians together are the discrete Gaussian of the summed
        variance up to a factor 1 + 10k·e^{−π²σ²} < 1 + 3e-38·k, and so is δ(ε). Source: Kairouz, Liu & Steinke 2021.
        Proof: the sum of discrete Gaussians of variances a and b has masses ∝ e^{−x²/2(a + b)}Θ(xa/(a + b)), Θ(w) being
        the sum over the integers of e^{−(y − w)²/2c}, c = ab/(a + b): constant up to a factor 1 ± 5e^{−2π²c}.

        That is less than a figure's last digit, up to which it is rounded. The shift is kΔ.

        Where that has too many integers, the result is a Gaussian of variance kσ² − κ, exactly up to a factor 1 +
        2e^{−2π²κ} of δ(ε) [lemma integer-gaussian]: with κ = 8 that is 1e-68, and kσ² is above 10⁸.
        """
        if self.sigma < _SMOOTH:
            return self, count
        std, moved = self.sigma * math.sqrt(count), self.shift * count
        if std <= _MOST_STD:
            return DiscreteGaussian(std, moved), 1
        mu = max(moved / std, _LEAST_MU)
        return GaussianLaw(mu * mu / (1 - _KAPPA / std / std) * (1 + 1e-14)), 1


@functools.lru_cache(maxsize=16)
def _discrete_gaussian(sigma: float, shift: int) -> Atoms:
    reach = math.ceil(38 * sigma)
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    logs = -(x**2) / (2 * sigma**2)
    logs -= math.log(float(np.exp(logs).sum()))
    losses = (shift**2 - 2 * shift * x) / (2 * sigma**2)
    return tidy(losses[::-1], logs[::-1])
