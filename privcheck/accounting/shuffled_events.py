"""Events behind a shuffler: what leaves it is the multiset of messages."""

from __future__ import annotations

from privcheck.accounting.events import Event, event
from privcheck.accounting.parameters import Real, real, whole
from privcheck.accounting.shuffling import MOST_TRIALS, bits_law, clones_law, response_among_law
from privcheck.errors import ParameterError


def shuffled_bits(*, users: Real, messages: Real = 1, probability: Real, count: Real = 1) -> Event:
    """Returns a sum of bits behind a shuffler, N = users·m of them noise: Bin(N, p) against Bin(N, p) + 1.

    Args:
        users: Users whose noise bits are counted on.
        messages: Noise bits of each.
        probability: Of a one, in (0, 1).
        count: How many independent coordinates or rounds.

    Raises:
        ParameterError: A number is out of range.
    """
    n, m = whole("users", users), whole("messages", messages)
    p = real("probability", probability, most=1)
    if p == 1:
        raise ParameterError(
            "expected probability below 1, got 1: constant bits hide nothing", name="probability", given=1
        )
    _refuse_many(n * m)
    return event("shuffled_bits", [(bits_law(n * m, p), 1)], count, users=n, messages=m, probability=p)


def shuffled(*, local_epsilon: Real, users: Real, count: Real = 1) -> Event:
    """Returns n users of any ε₀-DP local randomiser behind a shuffler, by the clones pair.

    Args:
        local_epsilon: ε₀.
        users: n; one user is not hidden and costs ε₀.
        count: How many rounds.

    Raises:
        ParameterError: A number is out of range.
    """
    e, n = real("local_epsilon", local_epsilon, strict=False, most=700), whole("users", users)
    _refuse_many(n)
    return event("shuffled", [(clones_law(e, n), 1)] if e > 0 else [], count, local_epsilon=e, users=n)


def shuffled_randomized_response(*, epsilon: Real, users: Real, count: Real = 1) -> Event:
    """Returns n users of binary randomised response behind a shuffler: how many ones, at the others' worst values.

    Args:
        epsilon: ε₀ of the local randomiser.
        users: n.
        count: How many rounds.

    Raises:
        ParameterError: A number is out of range.
    """
    e, n = real("epsilon", epsilon, strict=False, most=700), whole("users", users)
    _refuse_many(n)
    pieces = [(response_among_law(e, n), 1)] if e > 0 else []
    return event("shuffled_randomized_response", pieces, count, epsilon=e, users=n)


def _refuse_many(trials: int) -> None:
    if trials > MOST_TRIALS:
        message = f"expected at most {MOST_TRIALS} shuffled messages to enumerate, got {trials}"
        raise ParameterError(f"{message}; fewer users give a larger, still valid ε", name="users", given=trials)
