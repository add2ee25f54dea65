"""Who does what when: the users of every stage, in their order (Algorithms 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privcheck_algorithms.sdp_pe.declaration import stages

Part = Literal["crude", "fine", "auxiliary", "rest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Users who follow each other and are dealt policies of one mixture.

    Attributes:
        part: "crude" (Algorithm 2, line 6), "fine" and "auxiliary" (Algorithm 3, line 2: π^ref and π₀), or the "rest",
            who send nothing.
        stage: b, counted from 0.
        step: h of crude exploration, counted from 0; else 0.
        first: The first of them, counted from 0.
        last: The last of them, counted from 1.
        batch: How many users are behind their shuffler.
    """

    part: Part
    stage: int
    step: int
    first: int
    last: int
    batch: int

    @property
    def leaves(self) -> bool:
        """Returns whether something leaves a shuffler after them."""
        return self.part in {"crude", "auxiliary"}


def list_segments(K: int, H: int, *, remainder: str) -> tuple[Segment, ...]:
    """Returns the segments of all users; of crude exploration those that have users.

    Args:
        K: Users.
        H: Steps: the users of crude exploration are dealt out over them in their order, as `OneStepEach` says.
        remainder: As in `stages`.

    >>> [(s.part, s.step, s.last) for s in list_segments(10, 3, remainder="last")]
    [('crude', 0, 1), ('crude', 1, 2), ('fine', 0, 4), ('auxiliary', 0, 6), ('crude', 0, 7), ('fine', 0, 8), \
('auxiliary', 0, 9), ('rest', 0, 10)]
    """
    segments: list[Segment] = []
    done, b = 0, 0

    def add(part: Part, users: int, *, batch: int, step: int = 0) -> None:
        nonlocal done
        if users:
            segments.append(Segment(part=part, stage=b, step=step, first=done, last=done + users, batch=batch))
            done += users

    for b, L in enumerate(stages(K, remainder=remainder)):  # noqa: B007 - `add` reads it
        share, more = divmod(L, H)
        for h in range(H):
            add("crude", share + (h < more), batch=share + (h < more), step=h)
        add("fine", L, batch=2 * L)
        add("auxiliary", L, batch=2 * L)
    add("rest", K - done, batch=0)
    return tuple(segments)
