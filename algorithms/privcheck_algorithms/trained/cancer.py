"""Chemotherapy as a task: tumour size and toxicity of a patient, and a dose every month for six months.

The model is that of Zhao, Kosorok & Zeng 2009 (Reinforcement learning design for cancer clinical trials), as two public
programs have it. With dose D in [0, 1], toxicity W and tumour size M of month t, and ∨ for the larger one,

    W′ = W + .1·(M ∨ M₀) + 1.2·(D − .5),    M′ = max(0, M + .15·(W ∨ W₀) − 1.2·(D − .5)) if M > 0, else 0,

and W₀, M₀ uniform on [0, 2]. The hazard of death is exp(−4 + W + M) a month; over a month it is the mean of its two
ends. A month's reward is −60 for death; else ±5 for toxicity that falls or rises by .5, plus 15 for a tumour that is
gone, or ±5 for one that shrinks or grows by .5.

Ours: five doses; death is a threshold on the accumulated hazard, drawn at the start and hidden, which has the same law
as a draw every month and makes an episode a function of its start and its doses; observations are clipped to [−5, 10].
"""

from __future__ import annotations

from typing import Final

import numpy as np

from privcheck_algorithms.trained.tasks import Array, Flags, Indices, Task

DOSES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
MONTHS: Final = 6
DEATH: Final = -60.0
_BEST: Final = 20.0  # a month's largest reward
_SEEN: Final = (-5.0, 10.0)


def develop(toxicity: Array, size: Array, first: tuple[Array, Array], dose: Array) -> tuple[Array, Array]:
    """Toxicity and tumour size a month later.

    Args:
        toxicity: W.
        size: M.
        first: W₀ and M₀.
        dose: D.
    """
    more = 1.2 * (dose - 0.5)
    grown = np.maximum(0.0, size + 0.15 * np.maximum(toxicity, first[0]) - more)
    return toxicity + 0.1 * np.maximum(size, first[1]) + more, np.where(size > 0, grown, 0.0)


def hazard(toxicity: Array, size: Array) -> Array:
    """Rate of death a month."""
    return np.asarray(np.exp(toxicity + size - 4.0))


def month_rewards(before: tuple[Array, Array], after: tuple[Array, Array]) -> Array:
    """Rewards of a month that is survived, from (W, M) before and after it."""
    worse, larger = after[0] - before[0], after[1] - before[1]
    of_size = np.where(after[1] == 0, 15.0, 5.0 * (larger <= -0.5) - 5.0 * (larger >= 0.5))
    return np.asarray(5.0 * (worse <= -0.5) - 5.0 * (worse >= 0.5) + of_size)


def _treat(states: Array, actions: Indices) -> tuple[Array, Array, Flags]:
    """One month; states are W − W₀, M − M₀, W₀, M₀, the month, 1 − the law of the threshold, and the hazard so far."""
    first = states[:, 2], states[:, 3]
    before = first[0] + states[:, 0], first[1] + states[:, 1]
    after = develop(*before, first, np.array(DOSES)[actions])
    borne = states[:, 6] + (hazard(*before) + hazard(*after)) / 2
    dies = borne >= -np.log(np.maximum(states[:, 5], 1e-300))
    moved = states.copy()
    moved[:, 0], moved[:, 1] = after[0] - first[0], after[1] - first[1]
    moved[:, 4] += 1
    moved[:, 6] = borne
    return moved, np.where(dies, DEATH, month_rewards(before, after)), dies


def _seen(states: Array) -> Array:
    """W, M and the month."""
    shown = np.clip(states[:, :2] + states[:, 2:4], *_SEEN)
    return np.concatenate([shown, states[:, 4:5]], axis=1)


def _worth(rewards: Array) -> Array:
    """1 for a tumour that is gone while toxicity falls, 0 for death, which counts as −30 here.

    The scale decides how much a signal says beside noise: death is more frequent than cure.
    """
    return np.asarray(np.clip((rewards + 30.0) / (_BEST + 30.0), 0.0, 1.0))


CANCER: Final = Task(
    name="cancer",
    gymnasium="",
    limit=MONTHS,
    low=(0.0,) * 7,
    high=(0.0, 0.0, 2.0, 2.0, 0.0, 1.0, 0.0),
    step=_treat,
    observe=_seen,
    centre=(1.0, 1.0, 2.5),
    scale=(2.0, 2.0, 2.5),
    actions=tuple(range(len(DOSES))),
    rewards=(DEATH, _BEST),
    signal="rewards",
    worth=_worth,
)
