"""The server's side of policy elimination: mixtures from what is on the billboard alone (Algorithms 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck_algorithms.sdp_pe.coverage import cover
from privcheck_algorithms.sdp_pe.estimates import Constants, compute_width, estimate, estimate_rewards
from privcheck_algorithms.sdp_pe.face import CRUDE
from privcheck_algorithms.sdp_pe.policy_sets import Mixture, PolicySet, mix
from privcheck_algorithms.sdp_pe.stages import Segment

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analyser:
    """The server's side: what it knows without data, and how it makes mixtures from the billboard.

    Attributes:
        constants: Of estimates and eliminations.
        chosen: φ_b.
        initial: (S,) law of the first state, public.
        lengths: L_b.
    """

    constants: Constants
    chosen: PolicySet
    initial: Array
    lengths: tuple[int, ...]

    def begin(self, a: Arrays, now: Segment, ties: np.random.Generator) -> Mixture:
        """Returns what the users of a segment are dealt; what of it stays until the next lies in the arrays."""
        if now.part == "crude":
            return self._explore_crudely(a, now, ties)
        if now.part == "fine":
            return self._explore_finely(a, now.stage, ties)
        if now.part == "auxiliary":  # Algorithm 2, line 12
            kept = int(a["auxiliaries"][0])
            return Mixture(policies=a["auxiliary"][:kept], shares=a["auxiliary shares"][:kept])
        return self.chosen.find(a, a["model"], a["rewarded"], ties)

    def conclude(self, a: Arrays, stage: int) -> None:
        """Eliminates policies after fine exploration (Algorithm 3, lines 5 to 8; Algorithm 1, lines 7 to 13)."""
        c = self.constants
        for h in range(c.H):
            known = estimate(a["visits"][stage, h], a["transitions"][stage, h], c, a["model"][h])
            estimate_rewards(a["rewards"][stage, h], known, a["rewarded"][h])
        self.chosen.eliminate(a, a["model"], a["rewarded"], compute_width(c, self.lengths[stage]))

    def _explore_crudely(self, a: Arrays, now: Segment, ties: np.random.Generator) -> Mixture:
        """Algorithm 2, lines 3 to 6, with the crude model of the steps before from the billboard (lines 8 to 10)."""
        c, h = self.constants, now.step
        self._take_crude(a, now.stage, h)
        if h == 0:
            a["auxiliaries"][0] = 0.0
        parts = []
        for s in range(c.S):
            for action in range(c.A):
                wanted = np.zeros((h + 1, c.S, c.A))
                wanted[h, s, action] = 1.0
                parts.append(self.chosen.find(a, a["crude"], wanted, ties))
        mixed = mix(parts)
        begun, end = int(a["auxiliaries"][0]), int(a["auxiliaries"][0]) + len(mixed.shares)
        a["auxiliary"][begun:end] = mixed.policies
        a["auxiliary shares"][begun:end] = mixed.shares
        a["auxiliaries"][0] = end
        return mixed

    def _explore_finely(self, a: Arrays, stage: int, ties: np.random.Generator) -> Mixture:
        """Equation (4) in the crude model (Algorithm 3, line 1)."""
        self._take_crude(a, stage, self.constants.H)
        kept = int(a["auxiliaries"][0])
        a["auxiliary shares"][:kept] /= a["auxiliary shares"][:kept].sum()
        start = Mixture(policies=a["auxiliary"][:kept].copy(), shares=a["auxiliary shares"][:kept].copy())
        found, a["coverage"][0] = cover(
            start, lambda reward: self.chosen.find(a, a["crude"], reward, ties), a["crude"], self.initial
        )
        return found

    def _take_crude(self, a: Arrays, stage: int, steps: int) -> None:
        """Writes the crude model of the steps that are known, from the billboard."""
        a["crude"][...] = 0.0
        for h in range(steps):
            visits, following = (a[name][stage, h] for name in CRUDE)
            estimate(visits, following, self.constants, a["crude"][h])
