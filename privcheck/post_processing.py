"""Agents of which only the step from releases to policies is written: post-processing, and no run of its own.

Such an agent draws nothing itself and has no privatizer half: audits draw the declared noise, on an instance that the
agent names, and look at the policies that come of it. Their results say that no registered agent ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.relations import Pair
from privcheck.setting import Setting


class DrawPolicies(Protocol):
    """Fresh runs; an importable object, so that blocks of runs can be made in any process."""

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Returns what is seen of the policies, (runs, features), each run with noise of its own as it is declared.

        Args:
            rng: Of the noise.
            on_first: (runs,) whether the run is on the first of the two neighbours.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyRuns:
    """An agent's post-processing on an instance of its own, ready to run, with the words that a result needs.

    Attributes:
        draw: Makes fresh runs.
        pair: The user who differs, in D and in D′.
        seen: What the features show: "the policies of users 2 to 4".
        told: The same as an outsider would say it: "what the other users were told to do".
        instance: What users live in, without its sizes.
        witness: What is to be said of the pair, beside what the users do; empty where that is nothing.
        remark: A sentence that goes with what the result means; empty where there is none.
    """

    draw: DrawPolicies
    pair: Pair
    seen: str
    told: str
    instance: str
    witness: str = ""
    remark: str = ""


MakePolicies = Callable[[Setting], PolicyRuns]
