"""What every tabular online agent asks of its request before anything runs: sizes, episodes, memory."""

from __future__ import annotations

from privcheck.errors import ParameterError
from privcheck.results import OnlineRequest
from privcheck_algorithms.online.tables import size

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
