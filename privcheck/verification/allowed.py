"""How far a statistic moves between neighbours as its author states it, and what contradicts that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import DeclarationError
from privcheck.relations import Relation
from privcheck.releases import Release
from privcheck.trajectories import Trajectories, concatenate
from privcheck.verification.neighbours import compute_one

_NEAR: Final = 1 + 1e-9  # floats that were summed in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """How far the statistic moves, as its author states it."""

    release: Release
    relation: Relation
    norms: tuple[float, float, float]  # ℓ₁, ℓ₂, ℓ∞, rounded up
    stepwise: bool
    at: str

    def check(self, changes: NDArray[np.float64], first: Any, others: Sequence[Any]) -> None:
        """Checks the changes between one user's data and others', one a row.

        Raises:
            DeclarationError: One is larger than is stated.
        """
        moved = np.abs(changes)
        norms = (moved.sum(axis=1), np.sqrt(np.square(moved).sum(axis=1)), moved.max(axis=1, initial=0.0))
        who = f"{self.release.name}: {self.release.statistic.name}"
        for norm, sizes, most in zip(("ℓ₁", "ℓ₂", "ℓ∞"), norms, self.norms, strict=True):
            worst = int(sizes.argmax())
            if not sizes[worst] <= most * _NEAR:
                message = (
                    f"{who} moves further than its own sensitivity says: by {sizes[worst]:.6g} in {norm}, and "
                    f"{most:.6g} is stated ({self.relation.words}{self.at}). In D the user has {_tell(first)}, in D′ "
                    f"{_tell(others[worst])}. State what it moves"
                )
                raise DeclarationError(message)
        parts = (moved > 0) & (np.abs(moved - self.norms[2]) > (_NEAR - 1) * self.norms[2])
        if self.stepwise and parts.any():
            message = f"{who} moves a cell by {moved[parts][0]:.6g}, a part of its ℓ∞ sensitivity {self.norms[2]:.6g}"
            raise DeclarationError(f"{message}: it is not `stepwise`")

    def check_pair(self, pair: tuple[Any, Any], crowd: Any = None, *, last: bool = False) -> float:
        """Checks one pair, alone or among others before whom, or after whom, it comes; returns ‖f(D) − f(D′)‖₂²."""
        first, second = pair
        if crowd is not None:
            first, second = (
                crowd if user is None else concatenate([crowd, user] if last else [user, crowd]) for user in pair
            )
        change = change_of(self.release, (first, second))
        self.check(change[np.newaxis], pair[0], [pair[1]])
        return float(np.square(change).sum())


def allow(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Allowed:
    """Returns how far a release's statistic moves at these parameters, as its author states it."""
    stated = release.statistic.sensitivity(relation)
    l1, l2, linf = (x.number(values, rounding="up") for x in (stated.l1, stated.l2, stated.linf))
    at = "".join(f", {name} = {values[name]}" for name in "HSAd" if name in values)
    return Allowed(release=release, relation=relation, norms=(l1, l2, linf), stepwise=stated.stepwise, at=at)


def change_of(release: Release, pair: tuple[Any, Any]) -> NDArray[np.float64]:
    """Returns f(first) − f(second), flat; nobody's statistic is 0 throughout."""
    first, second = (0.0 if data is None else compute_one(release.statistic, data) for data in pair)
    return np.ravel(np.asarray(first) - np.asarray(second))


def check_slices(release: Release, user: Any) -> None:
    """Checks that the slices that leave a step at a time are those of the table.

    Raises:
        DeclarationError: One is not.
    """
    whole = compute_one(release.statistic, user)
    for step, part in enumerate(whole):
        if not np.array_equal(np.asarray(release.statistic.compute(user, step=step)), part):
            message = f"{release.name}: {release.statistic.name}: compute(data, step={step}) is not the table's slice"
            raise DeclarationError(f"{message} {step}, and the slices are what leaves")


def _tell(user: Any) -> str:
    if user is None:
        return "nothing"
    if isinstance(user, Trajectories):
        rows = (user.states[0].tolist(), user.actions[0].tolist(), np.round(user.rewards[0], 3).tolist())
        more = f", the first of {user.users} trajectories" if user.users > 1 else ""
        return "states {}, actions {}, rewards {}".format(*(str(row)[:60] for row in rows)) + more
    return str(user)[:120]
