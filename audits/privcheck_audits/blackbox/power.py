"""Power of a number of runs, reported beside a bound so that too few runs are not mistaken for privacy.

All figures are for the easiest mechanism with a given loss, as in `blackbox.verdict.reachable`: no test of another
mechanism shows more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from scipy.special import ndtri

from privcheck_audits.blackbox.verdict import ClaimedLoss, reachable

_FEW_ERRORS: Final = 0.7  # expected errors with which there is none in half of the audits (Poisson)
_HALVINGS: Final = 40
_MOST_RUNS: Final = 1 << 50  # tested runs
_LEAST_LOSS: Final = 0.1  # what stands for twice a claim of nothing
_LETTERS: Final = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power of a number of tested runs.

    Attributes:
        unit: Unit of the claim.
        claimed: The claim.
        reachable: Bound for a mechanism of which the claim is exactly true.
        most: Largest possible bound: that of a mechanism which reveals everything.
        visible: Smallest loss that would have been shown to exceed the claim; ∞ if there is none.
        double: Twice the claim.
        needed: Tested runs that would show a loss of `double`; ∞ if no feasible number would.
    """

    unit: Literal["epsilon", "rho", "mu"]
    claimed: float
    reachable: float
    most: float
    visible: float
    double: float
    needed: float

    def trials(self, *, share: float) -> int | None:
        """Runs under each neighbour of which `needed` are tested; None if no feasible number suffices.

        Args:
            share: Share of all runs that is tested.
        """
        return None if self.needed == math.inf else _round_up(round(self.needed / 2 / share))

    def notes(self, trials: int, *, share: float) -> tuple[str, ...]:
        """Notes for users if a loss of twice the claim would not have been seen; otherwise empty.

        Args:
            trials: N, the number of runs made under each neighbour.
            share: Share of all runs that is tested.
        """
        if self.visible <= self.double:
            return ()
        letter = _LETTERS[self.unit]
        said = f"too few runs: with {trials:,} under each neighbour "
        if self.visible == math.inf:
            said += f"no bound above {letter} = {self.most:.3g} could have been shown, for any leak"
        else:
            said += f"nothing below {letter} = {self.visible:.3g} could have been shown to break the claim"
        runs = self.trials(share=share)
        return (said,) if runs is None else (f"{said}; for {letter} = {self.double:.3g} ask for about {runs:,}",)


def find_power(target: ClaimedLoss, runs: int, *, alpha: float) -> Power:
    """Power of a number of tested runs, to a relative 10⁻⁶ or one run.

    Args:
        target: The claim.
        runs: Tested runs of both neighbours, without training runs.
        alpha: α of the test.
    """

    def bound(loss: float, tested: int) -> float:
        return reachable(replace(target, claimed=loss), tested, alpha=alpha)

    visible, needed = find_visible(target, runs, lambda loss, tested: bound(loss, tested) > target.claimed)
    return Power(
        unit=target.unit,
        claimed=target.claimed,
        reachable=bound(target.claimed, runs),
        most=bound(math.inf, runs),
        visible=visible,
        double=twice(target),
        needed=needed,
    )


def find_visible(
    target: ClaimedLoss, runs: int, shows: Callable[[float, int], bool], *, most: int = _MOST_RUNS
) -> tuple[float, float]:
    """The least loss that some runs show to exceed the claim, and the runs that show twice the claim; ∞ for none.

    Args:
        target: The claim.
        runs: Tested runs.
        shows: Whether a loss is shown to exceed the claim by a number of runs.
        most: The most runs that are tried.
    """
    visible = math.inf
    if shows(math.inf, runs):
        low, high = target.claimed, max(target.claimed, _without_errors(target, runs))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if shows(middle, runs) else (middle, high)
        visible = high
    return visible, _find_least(lambda tested: shows(twice(target), tested), most)


def twice(target: ClaimedLoss) -> float:
    """Twice the claim, or .1 if the claim is 0."""
    return 2 * target.claimed or _LEAST_LOSS


def _without_errors(target: ClaimedLoss, runs: int) -> float:
    """Loss at which half of the audits see no error, as for a mechanism that reveals everything.

    Randomised response is wrong with probability 1/(1 + e^ε), the best guess for μ with Φ(−μ/2), and ρ = μ²/2.
    """
    if target.unit == "epsilon":
        return math.log(max(1.0, runs / _FEW_ERRORS - 1))
    mu = -2 * float(ndtri(min(0.5, _FEW_ERRORS / runs)))
    return mu if target.unit == "mu" else mu**2 / 2


def _find_least(suffices: Callable[[int], bool], most: int) -> float:
    """Smallest sufficient number of runs, to half a per cent; ∞ if no feasible number suffices."""
    high = 2
    while not suffices(high):
        high *= 2
        if high > most:
            return math.inf
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return float(high)


def _round_up(runs: int) -> int:
    """Number rounded up to two significant digits."""
    step = int(10 ** max(0, len(str(runs)) - 2))
    return -(-runs // step) * step
