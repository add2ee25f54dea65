"""What every linear online agent asks of its request before anything runs: sizes, episodes, memory."""

from __future__ import annotations

from privcheck.errors import ParameterError
from privcheck.results import OnlineRequest
from privcheck_algorithms.online.sizes import EPISODES, MEMORY


def refuse(request: OnlineRequest) -> None:
    """Refuses what cannot be run, before anything is spent or written.

    Raises:
        ParameterError: No episode or replicate, more than 2⁵³ episodes, or a declaration of other sizes.
    """
    world = request.world
    for name, least in (("episodes", request.episodes), ("replicates", request.replicates)):
        if least < 1:
            raise ParameterError(f"expected at least 1 of {name}, got {least}", name=name, given=least)
    if request.episodes > EPISODES:
        message = f"K: at most {EPISODES} episodes are counted exactly, got {request.episodes}"
        raise ParameterError(message, name="K", given=request.episodes)
    sizes = {**world.sizes, "K": request.episodes}
    wrong = [
        f"{name} = {request.values[name]} but {size} in {world.name}"
        for name, size in sizes.items()
        if name in request.values and request.values[name] != size
    ]
    if wrong:
        raise ParameterError(f"the declaration does not fit the environment: {'; '.join(wrong)}", name=wrong[0][0])


def refuse_memory(request: OnlineRequest, *, numbers: float) -> None:
    """Refuses matrices beyond 8 GB.

    Args:
        request: What is asked.
        numbers: How many numbers one replicate keeps.

    Raises:
        ParameterError: They need more.
    """
    world = request.world
    taken = 8.0 * numbers * request.replicates
    if taken > MEMORY:
        shown = ", ".join(f"{name} = {size}" for name, size in world.sizes.items())
        message = (
            f"{request.replicates} replicates with matrices of {shown} need {taken / 1e9:.1f} GB; at most "
            f"{MEMORY / 1e9:g} GB are taken: fewer --replicates, features of a smaller dimension, or smaller S, A or H"
        )
        raise ParameterError(message, name="replicates", given=request.replicates)
