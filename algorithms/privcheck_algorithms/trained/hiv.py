"""HIV treatment as a task: six differential equations, four treatments, a decision every five days for 1 000 days.

The model is that of Adams, Banks, Kwon & Tran 2004 (Dynamic Multidrug Therapies for HIV), the decisions and rewards
those of Ernst, Stan, Gonçalves & Wehenkel 2006 (Clinical Data Based Optimal STI Strategies for HIV). A state is the
number per millilitre of healthy cells of two types, T₁ and T₂, of infected ones, T₁* and T₂*, of free virus V, and of
immune effectors E. A treatment is a reverse transcriptase inhibitor of efficacy .7, a protease inhibitor of efficacy
.3, both or neither; it lasts for five days. The reward is 1000·E − .1·V − 20 000·ε₁² − 2 000·ε₂² after them. Other
published code charges 20 000·ε₂²: rewards differ by 1 620 at most, where a healthy patient has 3.5·10⁸.

Untreated patients stay near an unhealthy steady state with many viruses. At the healthy one, which treatment has to
reach, the effectors keep the virus down without drugs.

Ours: users start within 20 % of the unhealthy steady state, each coordinate by itself; rewards are clipped to public
bounds, and observations, log₁₀ of the state, to [−5, 8]. The equations are solved by a compiled Runge-Kutta method
whose steps adapt: after an interruption the virus may infect T₂ at a rate of hundreds a day.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from privcheck.support.kernels import njit
from privcheck_algorithms.trained.tasks import Array, Flags, Indices, Task

UNHEALTHY: Final = (163573.0, 5.0, 11945.0, 46.0, 63919.0, 24.0)  # T₁, T₂, T₁*, T₂*, V, E; published, untreated
_TOLERANCE: Final = 1e-6
_STAGES: Final = np.array(  # Dormand & Prince's coefficients; the last row is the difference of their two orders
    [
        [0, 0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
        [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40],
    ]
)
_REWARDS: Final = (-1e6, 1e9)
_LOG: Final = (-5.0, 8.0)  # bounds of log₁₀ of a state's coordinates


@njit(cache=True, nogil=True, error_model="numpy")
def _slopes(s: Array, first: float, second: float, out: Array) -> None:
    """Time derivatives per day under efficacies ε₁ and ε₂."""
    seen = (1.0 - first) * 8e-7 * s[4] * s[0]  # infections of T₁ …
    other = (1.0 - 0.34 * first) * 1e-4 * s[4] * s[1]  # … and of T₂
    infected = s[2] + s[3]
    out[0] = 1e4 - 0.01 * s[0] - seen
    out[1] = 31.98 - 0.01 * s[1] - other
    out[2] = seen - (0.7 + 1e-5 * s[5]) * s[2]
    out[3] = other - (0.7 + 1e-5 * s[5]) * s[3]
    out[4] = (1.0 - second) * 70.0 * infected - 13.0 * s[4] - seen - other
    out[5] = 1.0 + (0.3 * infected / (infected + 100.0) - 0.25 * infected / (infected + 500.0) - 0.1) * s[5]


@njit(cache=True, nogil=True, error_model="numpy")
def _five_days(states: Array, first: Array, second: Array, stages: Array, tolerance: float) -> Array:
    """States after five days of a treatment: Dormand & Prince 1980, 5(4), each user with steps of their own.

    A step's error is at most the tolerance, relative to each coordinate plus one thousandth of a cell.
    """
    after, slopes, moved = states.copy(), np.empty((7, 6)), np.empty(6)
    for user in range(len(after)):
        s, left, h = after[user], 5.0, 0.05
        while left > 0.0:
            h = min(h, left)
            for stage in range(7):
                for i in range(6):
                    moved[i] = s[i]
                    for before in range(stage):
                        moved[i] += h * stages[stage, before] * slopes[before, i]
                _slopes(moved, first[user], second[user], slopes[stage])
            worst = 0.0
            for i in range(6):
                error = 0.0
                for stage in range(7):
                    error += h * stages[7, stage] * slopes[stage, i]
                worst = max(worst, abs(error) / (tolerance * (abs(s[i]) + 1e-3)))
            if worst <= 1.0 or h < 1e-7:
                left -= h
                for i in range(6):
                    s[i] = max(moved[i], 0.0)  # the last stage is at the step's end
            h *= min(4.0, max(0.2, 0.9 * max(worst, 1e-10) ** -0.2))
    return after


def _treat(states: Array, actions: Indices) -> tuple[Array, Array, Flags]:
    """Treatment 0 is none, 1 the reverse transcriptase inhibitor, 2 the protease inhibitor, 3 both."""
    first = 0.7 * (actions % 2).astype(np.float64)
    second = 0.3 * (actions // 2).astype(np.float64)
    after = _five_days(states, first, second, _STAGES, _TOLERANCE)
    rewards = 1e3 * after[:, 5] - 0.1 * after[:, 4] - 2e4 * first**2 - 2e3 * second**2
    return after, np.clip(rewards, *_REWARDS), np.zeros(len(after), np.bool_)


def _logarithms(states: Array) -> Array:
    return np.asarray(np.clip(np.log10(np.maximum(states, 1e-300)), *_LOG))


def _orders(rewards: Array) -> Array:
    """√(orders of magnitude above 1.6·10⁴, over 4.4): near 0 for an untreated patient, 1 for a healthy one.

    The root tells small improvements apart, which are all that exists before anybody is near health.
    """
    orders = np.log10(np.maximum(rewards, 1.0) / 1.6e4)
    return np.asarray(np.sqrt(np.clip(orders / 4.4, 0.0, 1.0)))


HIV: Final = Task(
    name="hiv",
    gymnasium="",
    limit=200,
    low=tuple(0.8 * x for x in UNHEALTHY),
    high=tuple(1.2 * x for x in UNHEALTHY),
    step=_treat,
    observe=_logarithms,
    centre=(5.5, 1.5, 3.0, 1.0, 3.5, 3.5),
    scale=(0.5, 1.0, 1.5, 1.0, 1.5, 2.0),
    actions=(0, 1, 2, 3),
    rewards=_REWARDS,
    signal="rewards",
    worth=_orders,
)
