"""What DP-VAPVI does with its noisy statistics (paper 000, Algorithm 2, line 253), for many runs at a time.

Lines below are the steps of that algorithm. V is that of the same run: the exact sums over V and V² are of D or D′, and
of the values that the noise of the later steps has led to. The factor of the penalty, of which the paper gives the
order only, is small, so that the policy follows the noisy statistics closely; no claim depends on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.post_processing import PolicyRuns
from privcheck.setting import Setting
from privcheck_algorithms.linear.noise import Draws, norm_bound, streams
from privcheck_algorithms.linear.regression import best, gram, invert, lengths, predict, solve, sums
from privcheck_algorithms.linear.ruler import ACTIONS, PROBE, STATES, Ruler, make_ruler_for
from privcheck_algorithms.linear.runs import LinearRuns, offline_runs

_USERS: Final = 20  # for either action, in units of the noise on a sum: it then moves weights by 5 % each
_REWARDED: Final = 0.3  # of them, so that Q is neither clipped at 0 nor at 1
_PESSIMISM: Final = 0.1  # C√d‖φ‖ of the longest feature without noise

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vapvi:
    """Algorithm 2 with its constants.

    Attributes:
        users: Other users in each half who take either action, in the state of the one who differs.
        rewarded: How many of them have reward 1 at every step; the others have 0.
        everywhere: The user who differs is in both halves.
        ridge: λ + E/2, on the diagonal of both Gram matrices (steps 2, 4 and 9).
        pessimism: C√d (step 11).
        offset: D/K (step 11).
    """

    users: float
    rewarded: float
    everywhere: bool
    ridge: float
    pessimism: float
    offset: float

    def __call__(self, ruler: Ruler, noise: Draws, second: NDArray[np.int64]) -> Array:
        """Returns the greedy actions of each run as indicators.

        Args:
            ruler: The instance.
            noise: (runs, 1, H, …) of every release.
            second: (runs,) 0 where the run is on D, 1 where it is on D′.
        """
        d, runs, H = ruler.phi.shape[-1], second.size, ruler.horizon
        phi = ruler.homes[:1]  # that of the one state that users of either half are in
        value, ridge = np.zeros((runs, STATES)), self.ridge * np.eye(d)
        greedy = np.empty((runs, H, STATES), dtype=np.int64)
        _, actions, given = ruler.user(second, differs=True)
        for h in range(H - 1, -1, -1):  # h of the paper is h + 1
            most = H - h  # H − h + 1
            theirs = (actions[:, h, None] == np.arange(ACTIONS))[:, None]
            known = self.users + theirs
            rewards = self.rewarded + theirs * given[:, h, None, None]
            apart = known if self.everywhere else np.full_like(known, self.users)
            reached = value[:, PROBE, None, None]  # V(s′)
            # steps 4 to 6
            inverse = invert(gram(apart, phi) + ridge + noise["gram"][:, 0, h])
            beta = solve(inverse, sums(apart * reached**2, phi) + noise["squared values"][:, 0, h])
            theta = solve(inverse, sums(apart * reached, phi) + noise["values"][:, 0, h])
            # steps 7 and 8
            square = np.clip(predict(phi, beta), 0, most**2)
            weight = 1 / np.maximum(1.0, square - np.clip(predict(phi, theta), 0, most) ** 2)
            # steps 9 and 10
            inverse = invert(gram(known * weight, phi) + ridge + noise["weighted gram"][:, 0, h])
            gains = sums(weight * (rewards + known * reached), phi)
            w = solve(inverse, gains + noise["gains"][:, 0, h])
            # steps 11 to 14
            penalty = self.pessimism * lengths(ruler.phi, inverse) + self.offset
            q = np.clip(predict(ruler.phi, w) - penalty, 0, most)
            greedy[:, h], value = best(q)
        return greedy.reshape(runs, -1).astype(np.float64)


def policies(setting: Setting) -> PolicyRuns:
    """Returns the agent with the declared noise, on the ruler; split or not, as it is declared."""
    declaration, values = setting.declared, setting.values
    ruler, noise = make_ruler_for(declaration, values, "gram"), streams(declaration, values, 1)
    users = math.ceil(_USERS * noise["gains"].noise.scale / ruler.norm)
    agent = Vapvi(
        users=float(users),
        rewarded=float(round(_REWARDED * users)),
        everywhere=not declaration.release("gram").users,
        ridge=norm_bound(noise["gram"]),  # K₁ and K₂ have E/2, Lemma E.2's bound on their noise, on the diagonal
        pessimism=_PESSIMISM * math.sqrt(users),
        offset=0.0,
    )
    return offline_runs(LinearRuns(ruler=ruler, streams=noise, agent=agent))
