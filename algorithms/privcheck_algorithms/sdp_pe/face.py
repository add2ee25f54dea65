"""What auditors see of policy elimination behind a shuffler: counters of batches, and the messages they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.mechanisms import ShuffledNoise
from privcheck.online.player import Replicate, Sent, Tables
from privcheck_algorithms.sdp_pe.shuffler import count_messages, mean_of
from privcheck_algorithms.sdp_pe.stages import Segment

FINE = ("visits", "transitions", "rewards")
CRUDE = ("crude visits", "crude transitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFace:
    """Two outputs a stage: what all steps' shufflers let out of crude exploration, and what fine exploration's did.

    Attributes:
        segments: The users of every stage.
        stages: How many there are.
        noise: The declared noise behind a shuffler with so many users.
        sends: Whether every message of a segment's batch is sent.
    """

    segments: tuple[Segment, ...]
    stages: int
    noise: Callable[[int], ShuffledNoise]
    sends: Callable[[Segment], bool]
    policy: tuple[str, ...] = ("actions", "dealt", "until", "model", "rewarded")
    board: tuple[str, ...] = (*CRUDE, *FINE, "left crude", "left fine")

    def output(self, episode: int) -> int | None:
        """Returns the number of the half of a stage that ends with the episode; None where none does."""
        for one, following in zip(self.segments, (*self.segments[1:], None), strict=True):
            if one.last == episode:
                more = following is not None and following.part == "crude" and one.part == "crude"
                return _number(one) if one.leaves and not more else None
        return None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Returns the sums of the users' own bits, of the half of a stage that is under way or has just ended."""
        return {name: one.arrays[f"exact {name}"].copy() for name in _names(output)}

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns the analyser's estimates of an output."""
        stage = min(max(output - 1, 0) // 2, self.stages - 1)
        return {name: one.arrays[name][stage].copy() for name in _names(output)}

    def undeclared(self, one: Replicate) -> int:
        """Returns by how many numbers the stages' tables are more than what is declared."""
        names = (*CRUDE, *FINE)
        return sum(int(one.arrays[n].size) - self.stages * int(one.arrays[f"exact {n}"].size) for n in names)

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Returns how many users are behind the shuffler of every slice, by release; 0 where there is none."""
        halves = [one for one in self.segments if one.leaves and _number(one) == output]
        steps = max((one.step for one in self.segments), default=0) + 1
        if output % 2 == 0:
            return dict.fromkeys(FINE, (halves[0].batch,))
        users = {one.step: one.batch for one in halves}
        return dict.fromkeys(CRUDE, tuple(users.get(h, 0) for h in range(steps)))

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Returns the messages of an output that has just left; nothing of batches of which only sums were drawn."""
        sent = []
        for half in self.segments:
            if half.leaves and _number(half) == output and self.sends(half):
                left = one.arrays["left crude"][half.step] if half.part == "crude" else one.arrays["left fine"]
                sent += self._split(one, half, left)
        return tuple(sent)

    def _split(self, one: Replicate, half: Segment, left: NDArray[np.int8]) -> list[Sent]:
        law, begun, sent = self.noise(half.batch), 0, []
        for name in _names(_number(half)):
            table = one.arrays[f"exact {name}"]
            counters = table[half.step].size if half.part == "crude" else table.size
            sent.append(
                Sent(
                    release=name,
                    messages=left[begun : begun + counters].copy(),
                    due=count_messages(law, half.batch),
                    users=half.batch,
                    part=half.step if half.part == "crude" else None,
                    largest=law.bits[0] + 1 if law.integers else 1,
                    mean=mean_of(law),
                )
            )
            begun += counters
        return sent


def _number(half: Segment) -> int:
    return 2 * half.stage + (1 if half.part == "crude" else 2)


def _names(output: int) -> tuple[str, ...]:
    return CRUDE if output % 2 else FINE
