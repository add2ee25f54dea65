"""Events behind a shuffler: only the multiset of messages is released."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from privcheck.accounting.engine.discrete import AtomicLaw, response_law
from privcheck.accounting.engine.laws import LostLaw
from privcheck.accounting.events.base import REPLACING, Event, event, under
from privcheck.accounting.reals import Real, real, whole
from privcheck.accounting.shuffle.pairs import MOST_TRIALS, Movement, bits_law, clones_law, response_among_law
from privcheck.accounting.shuffle.sums import counter_law, message_law, rare_bits_law
from privcheck.errors import ParameterError
from privcheck.terms.unit import RelationName

_SENDING: Final[tuple[RelationName, ...]] = (*REPLACING, "zero-out")
_COUNTED: Final = "the number of messages reveals a user who is added or removed"
_LEAST: Final = 1e-7  # ε₀ below which shuffling is left out


def shuffled_bits(
    *, users: Real, messages: Real = 1, probability: Real, moved: Movement = "either", count: Real = 1
) -> Event:
    """Sum of bits behind a shuffler, N = users·m of them noise: Bin(N, p) against Bin(N, p) + 1.

    Bits that are not fair cost more in one direction than in the other, and in a composition it matters which counters
    rise with the user and which fall: `moved` applies to all `count` of them. P of direction "remove" has the user, as
    in every event. By default any counter may rise or fall, as when a user's data is replaced, and the figures hold for
    every mixture; where one bit is added and no other data changes, "up" is tight. Like a sensitivity, `moved` is
    stated for the caller's relation: the event names none.

    Args:
        users: Number of users who are relied on to add noise bits.
        messages: Noise bits per user; 1, the fewest, costs most.
        probability: Probability of a one, in (0, 1).
        moved: "up" where the number of ones is one higher with the user's data than without, "down" where it is one
            lower, "either" where the direction is unknown or differs between counters.
        count: Number of independent coordinates or rounds.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.shuffled_bits(users=200, probability=0.5)).epsilon(delta=1e-6).value, 4)
    0.5873
    """
    n, m = whole("users", users), whole("messages", messages)
    p = real("probability", probability, most=1)
    if p == 1:
        raise ParameterError(
            "expected probability below 1, got 1: constant bits hide nothing", name="probability", given=1
        )
    if moved not in ("up", "down", "either"):
        raise ParameterError(f"expected moved 'up', 'down' or 'either', got {moved!r}", name="moved", given=moved)
    _refuse_many(n * m)
    law = bits_law(n * m, p, moved)
    return event("shuffled_bits", [(law, 1)], count, users=n, messages=m, probability=p, moved=moved, relation=None)


@under(*_SENDING, otherwise=_COUNTED)
def shuffled(*, local_epsilon: Real, users: Real, relation: RelationName, count: Real = 1) -> Event:
    """Shuffled messages of n users of any ε₀-DP local randomiser, by the clones pair.

    Args:
        local_epsilon: ε₀.
        users: n; a single user is not hidden and costs ε₀.
        relation: "replace-one", "replace-one-same-start" or "zero-out": every user sends, independently of the data.
        count: Number of rounds.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.shuffled(local_epsilon=2, users=1000, relation="replace-one")
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    0.5455
    """
    e, n = real("local_epsilon", local_epsilon, strict=False, most=700), whole("users", users)
    _refuse_many(n)
    return event(
        "shuffled",
        [(_find_law(clones_law, e, n), 1)] if e > 0 else [],
        count,
        local_epsilon=e,
        users=n,
        relation=relation,
    )


@under(*_SENDING, otherwise=_COUNTED)
def shuffled_randomized_response(*, epsilon: Real, users: Real, relation: RelationName, count: Real = 1) -> Event:
    """Shuffled binary randomised response of n users: the number of ones, at the worst values of the others.

    Args:
        epsilon: ε₀ of the local randomiser.
        users: n.
        relation: "replace-one", "replace-one-same-start" or "zero-out": every user sends, independently of the data.
        count: Number of rounds.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> event = acc.shuffled_randomized_response(epsilon=2, users=200, relation="replace-one")
    >>> round(acc.compose(event).epsilon(delta=1e-6).value, 4)
    0.9315
    """
    e, n = real("epsilon", epsilon, strict=False, most=700), whole("users", users)
    _refuse_many(n)
    pieces = [(_find_law(response_among_law, e, n), 1)] if e > 0 else []
    return event("shuffled_randomized_response", pieces, count, epsilon=e, users=n, relation=relation)


def moved_counters(*, users: int, bits: tuple[int, float], threshold: float, moved: int) -> Event:
    """Counters of a shuffled binary sum, each changed by one up or down, with every bit a separate message.

    Fair bits have the same loss in both directions, so all mixtures of rising and falling counters cost the same. Rarer
    bits are fair bits of which each is discarded with probability 1 − 2p: an attacker who knows which are kept faces
    about τ fair bits, for every n > τ. That bounds every mixture, at up to √2 times its ε.

    Args:
        users: n.
        bits: (m, p): the number of noise bits of a user, ⌈τ/n⌉, and the probability of a 1, min(½, τ/2n).
        threshold: τ.
        moved: Number of counters that change.
    """
    m, p = bits
    if p == 0.5:
        pieces = [(counter_law(users * m), 1)]
        return event(
            "shuffled_bits", pieces, moved, users=users, messages=m, probability=p, moved="either", relation=None
        )
    note = "rare bits bounded by fair ones"
    return event("shuffled_rare_bits", [(rare_bits_law(threshold), 1)], moved, note, threshold=threshold, relation=None)


def changed_messages(*, users: int, messages: int, moved: int) -> Event:
    """Counters of a shuffled binary sum with one integer message per user, each changed by one up or down.

    Every counter is charged for both extremes, the others' bits there all 0 and all 1: at most twice too much.

    Args:
        users: n.
        messages: m, the fair noise bits per user; 0 where the noise bits are rare (n > τ), and nothing is protected:
            among others with bit 1, a message 0 from a user with bit 0 is more likely than not.
        moved: Number of counters that change.
    """
    if not messages:
        return event("shuffled_integers", [(LostLaw(1 - 2.0**-53), 1)], moved, users=users, messages=0, relation=None)
    pieces = [(message_law(users, messages), 1)]
    note = "others' bits bounded"
    return event(
        "shuffled_integers", pieces, moved, note, users=users, messages=messages, probability=0.5, relation=None
    )


def _find_law(law: Callable[[float, int], AtomicLaw], epsilon: float, users: int) -> AtomicLaw:
    """Law at ε₀; where ε₀ is too small to keep any digits, the response of one user without shuffling."""
    return law(epsilon, users) if epsilon >= _LEAST else replace(response_law(_LEAST, 2), rounded=True)


def _refuse_many(trials: int) -> None:
    if trials > MOST_TRIALS:
        message = f"expected at most {MOST_TRIALS} shuffled messages to enumerate, got {trials}"
        raise ParameterError(f"{message}; fewer users give a larger, still valid ε", name="users", given=trials)
