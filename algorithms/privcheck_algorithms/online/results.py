"""From replicates to a result, and what every online agent asks of its request before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.results import OnlineRequest, OnlineResult
from privcheck.runtime import Ledger
from privcheck_algorithms.online.driver import Replicate
from privcheck_algorithms.online.recording import POINTS, grid
from privcheck_algorithms.online.tables import size
from privcheck_algorithms.planning import Optimum, one_hot

MEMORY = 8e9  # bytes that a run may take for its counters
EPISODES = 2**53  # up to here floats count one by one


def needed(request: OnlineRequest, *, vectors: float) -> float:
    """Returns the bytes that all replicates' counters take.

    Args:
        request: What is asked.
        vectors: How many vectors of H·S·A·(S + 2) numbers one replicate keeps.
    """
    mdp = request.world.mdp
    return 8.0 * size(mdp.horizon, mdp.states, mdp.actions) * vectors * request.replicates


def refuse(request: OnlineRequest, *, vectors: float) -> None:
    """Refuses what cannot be run, before anything is spent or written.

    Args:
        request: What is asked.
        vectors: How many vectors of H·S·A·(S + 2) numbers one replicate keeps.

    Raises:
        ParameterError: No episode or replicate, more than 2⁵³ episodes, a declaration of other sizes, or counters
            beyond 8 GB.
    """
    mdp = request.world.mdp
    sizes = {"H": mdp.horizon, "S": mdp.states, "A": mdp.actions, "K": request.episodes}
    for name, least in (("episodes", request.episodes), ("replicates", request.replicates)):
        if least < 1:
            raise ParameterError(f"expected at least 1 of {name}, got {least}", name=name, given=least)
    if request.episodes > EPISODES:
        message = f"K: at most {EPISODES} episodes are counted exactly, got {request.episodes}"
        raise ParameterError(message, name="K", given=request.episodes)
    wrong = [
        f"{name} = {request.values[name]} but {size} in {request.world.name}"
        for name, size in sizes.items()
        if name in request.values and request.values[name] != size
    ]
    if wrong:
        raise ParameterError(f"the declaration does not fit the environment: {'; '.join(wrong)}", name=wrong[0][0])
    taken = needed(request, vectors=vectors)
    if taken > MEMORY:
        numbers = size(mdp.horizon, mdp.states, mdp.actions)
        message = (
            f"{request.replicates} replicates with {numbers} counters each need {taken / 1e9:.1f} GB "
            f"({vectors:g} vectors of them); at most {MEMORY / 1e9:g} GB are taken: fewer --replicates, or smaller "
            "S, A, H or K (the tree's memory grows with log K)"
        )
        raise ParameterError(message, name="replicates", given=request.replicates)


def blank(K: int) -> dict[str, NDArray[np.float64]]:
    """Returns a fresh record: the sums and the curves."""
    return {"totals": np.zeros(5), "curves": np.zeros((3, grid(K).size))}


def result(
    request: OnlineRequest,
    replicates: Sequence[Replicate],
    truth: Optimum,
    *,
    seconds: float,
    ledger: Ledger | None,
    diagnostics: dict[str, float] | None = None,
) -> OnlineResult:
    """Returns what the replicates' records say."""
    curves = np.stack([one.arrays["curves"] for one in replicates])
    first = replicates[0].arrays
    policy = first["last"] if "last" in first else one_hot(first["actions"], request.world.mdp.actions)
    return OnlineResult(
        episodes=grid(request.episodes),
        regret=curves[:, 0],
        value=curves[:, 1],
        switches=curves[:, 2],
        optimal=truth.value,
        policy=policy,
        ledger=ledger,
        diagnostics=diagnostics or {},
        seconds=seconds,
    )


__all__ = ["MEMORY", "POINTS", "blank", "needed", "refuse", "result"]
