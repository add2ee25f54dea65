"""Accountant for Opacus' `PrivacyEngine`: ε from above, by the events of this room.

It has the methods of `opacus.accountants.IAccountant` without importing Opacus, so that it can be made, tested and read
without PyTorch. Opacus asks for an accountant by name:

    from opacus import PrivacyEngine
    from opacus.accountants import register_accountant
    from privcheck.accounting import OpacusAccountant

    register_accountant(OpacusAccountant.mechanism(), OpacusAccountant)
    engine = PrivacyEngine(accountant=OpacusAccountant.mechanism())

Every figure is for Poisson batches (`poisson_sampling=True`) and one example added or removed. With
`poisson_sampling=False` Opacus tells its accountants the same numbers, and no accountant can notice.

Opacus refuses to accumulate gradients of several Poisson batches, unless the model's `allow_grad_accumulation()` lets
it. Then k batches between two steps are charged here as k independent samples: one example may be in several of them,
clipped in each. Opacus' own accountants are told one sample at k times the rate, which is meant for disjoint batches
and costs less: noise multiplier 1, four batches at rate .01, 250 steps, δ = 10⁻⁵: ε = 4.19 in place of 4.55.

Lemma larger-contribution: With P the law of S + Z, Z ~ N(0, σ²), and Q that of Z, a stochastically larger S ≥ 0 makes
no divergence of P and Q smaller, in either direction. Proof: dP/dQ increases in the output, so P(A) − e^ε·Q(A) is
largest on some {y > t} and Q(A) − e^ε·P(A) on some {y < t}; on both the larger S adds.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from fractions import Fraction
from typing import Any, Final

from privcheck.accounting.curve import compose
from privcheck.accounting.events import Event, gaussian, mixture_of_gaussians, non_private, poisson_gaussian
from privcheck.accounting.reals import real, whole
from privcheck.errors import ParameterError

_NAME: Final = "privcheck"
_UP: Final = 1 + 1e-12  # of the chances to be in some batches, beyond all rounding
_CERTAIN: Final = 1e-11  # to be in no batch: less is taken for 0
_MOST: Final = 1_000  # batches of one step
_STEEP: Final = 100  # batches/noise; beyond, sampling is left out of the price


class OpacusAccountant:
    """Upper bound on ε of steps on Poisson batches, for Opacus.

    Attributes:
        history: (noise multiplier, sampling rate, steps), in order, as Opacus writes it.
        accumulated: (noise multiplier, sampling rate, batches, steps) of steps on several batches.

    >>> accountant = OpacusAccountant()
    >>> for _ in range(1000):
    ...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> round(accountant.get_epsilon(1e-5), 4), len(accountant)
    (1.8282, 1000)
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []
        self.accumulated: list[tuple[float, float, int, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Note a step on one Poisson batch.

        Args:
            noise_multiplier: Standard deviation of the noise in clipping norms.
            sample_rate: Probability that an example is in the batch.

        Raises:
            ParameterError: A number is out of its range.
        """
        noise, rate = _check(noise_multiplier, sample_rate)
        if self.history and self.history[-1][:2] == (noise, rate):
            self.history[-1] = (noise, rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise, rate, 1))

    def step_on(self, batches: int, *, noise_multiplier: float, sample_rate: float) -> None:
        """Note a step on the sum of several independent Poisson batches, each example clipped in each of them.

        Args:
            batches: Number of batches.
            noise_multiplier: Standard deviation of the noise in clipping norms.
            sample_rate: Probability that an example is in one of the batches.

        Raises:
            ParameterError: A number is out of its range.
        """
        number = whole("batches", batches, most=_MOST)
        if number == 1:
            self.step(noise_multiplier=noise_multiplier, sample_rate=sample_rate)
            return
        noise, rate = _check(noise_multiplier, sample_rate)
        if self.accumulated and self.accumulated[-1][:3] == (noise, rate, number):
            self.accumulated[-1] = (noise, rate, number, self.accumulated[-1][3] + 1)
        else:
            self.accumulated.append((noise, rate, number, 1))

    def get_epsilon(self, delta: float) -> float:
        """Upper bound on ε of all steps, rounded up; ∞ for a step without noise.

        Args:
            delta: δ. Opacus' own accountants take settings of their method here; there are none, and they are refused.

        Raises:
            ParameterError: δ or an entry of the history is out of its range.
        """
        steps = [_event(noise, rate, 1, count) for noise, rate, count in self.history]
        steps += [_event(noise, rate, batches, count) for noise, rate, batches, count in self.accumulated]
        return float(compose(*(step for step in steps if step is not None)).epsilon(delta=delta).upper)

    def __len__(self) -> int:
        return sum(count for *_, count in self.history) + sum(count for *_, count in self.accumulated)

    @classmethod
    def mechanism(cls) -> str:
        """Name of the accountant, under which Opacus registers it and writes its checkpoints."""
        return _NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Make the function that a `DPOptimizer` calls after each step.

        Args:
            sample_rate: Probability that an example is in a batch of the loader.
        """

        def hook(optimizer: Any) -> None:
            self.step_on(
                optimizer.accumulated_iterations,
                noise_multiplier=optimizer.noise_multiplier,
                sample_rate=sample_rate,
            )

        return hook

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> MutableMapping[str, Any]:
        """All steps, for Opacus' checkpoints.

        Args:
            destination: Mapping to write into; None for a new one.
        """
        state: MutableMapping[str, Any] = OrderedDict() if destination is None else destination
        state["history"] = list(self.history)
        state["accumulated"] = list(self.accumulated)
        state["mechanism"] = self.mechanism()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over all steps of a checkpoint, in place of those noted here.

        Raises:
            ParameterError: It is not the state of such an accountant. One of Opacus' own has only sums of rates, from
                which steps on several batches cannot be told: it is refused.
        """
        wanted = {"history", "accumulated", "mechanism"}
        if not state_dict or not wanted <= state_dict.keys() or state_dict["mechanism"] != self.mechanism():
            message = f"expected the state of an accountant {self.mechanism()!r} with history and accumulated"
            raise ParameterError(f"{message}, got {state_dict!r}", name="state_dict", given=state_dict)
        history = [
            (*_check(noise, rate), whole("steps", count, least=0)) for noise, rate, count in state_dict["history"]
        ]
        accumulated = [
            (*_check(noise, rate), whole("batches", batches, most=_MOST), whole("steps", count, least=0))
            for noise, rate, batches, count in state_dict["accumulated"]
        ]
        self.history, self.accumulated = history, accumulated


def _check(noise: float, rate: float) -> tuple[float, float]:
    return (
        real("noise_multiplier", noise, strict=False),
        real("sample_rate", rate, strict=False, most=1),
    )


def _event(noise: float, rate: float, batches: int, steps: int) -> Event | None:
    """Event of equal steps, from above.

    The number of batches that an example is in is binomial. Its upper tails are rounded up, which costs no less
    [lemma larger-contribution].
    """
    noise, rate = _check(noise, rate)
    count = whole("steps", steps, least=0)
    if count == 0 or rate == 0:
        return None
    if noise == 0:
        return non_private()
    if batches == 1:
        return poisson_gaussian(std=noise, rate=rate, relation="add-remove", count=count)
    whole_batch = gaussian(std=noise, sensitivity=batches, count=count)
    if batches > _STEEP * noise:
        return whole_batch
    chance = Fraction(rate)
    within = [
        float(math.comb(batches, j) * chance**j * (1 - chance) ** (batches - j)) * _UP for j in range(1, batches + 1)
    ]
    without = 1 - math.fsum(within)
    if without < _CERTAIN:
        return whole_batch
    return mixture_of_gaussians(
        std=noise,
        sensitivities=range(batches + 1),
        probabilities=[without, *within],
        relation="add-remove",
        count=count,
    )
