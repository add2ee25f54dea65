"""Attempts to break a sensitivity that the author of a statistic states: what they did not break is still not proved.

A verdict on such a statistic is given its stated sensitivity, and says so; where nothing could be tried no claim holds.
Tried are, with `compute` alone: every pair of trajectories at tiny sizes, extreme and random pairs at the given and at
other sizes, alone and among others, of users with as many trajectories as the relation says where they are several, and
a climb from the worst of them; for data of one's own all pairs of the declaration's `records`, typical ones and ones in
corners of what it may draw, and its candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

from privcheck.declaration import Declaration
from privcheck.errors import DeclarationError, ParameterError, TrajectoryError
from privcheck.pricing import Priced
from privcheck.relations import Pair
from privcheck.releases import Release
from privcheck.statistics import Stated
from privcheck.statistics.checking import shape_of
from privcheck.statistics.derived import is_derived
from privcheck.verification.allowed import Allowed, allow, change_of, check_slices
from privcheck.verification.candidates import candidate_pairs, corner_pairs, recorded_pairs, trajectory_sizes
from privcheck.verification.neighbours import compute_one, not_a_difference
from privcheck.verification.tried_trajectories import try_sizes

_SIZES: Final = ((1, 1, 2), (1, 2, 1), (1, 2, 2), (2, 2, 2), (3, 2, 1), (4, 2, 1), (2, 3, 1), (5, 3, 2), (8, 2, 3))
_CROWDED: Final = (2, 2, 2)  # of them, at which the others are many, if the declaration has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What was tried on what an author states of one release, in vain.

    Attributes:
        release: Its name.
        statistic: The statistic's name, or the mechanism's words.
        pairs: How many pairs of neighbours were compared; 0 where nothing could be tried.
        how: At which sizes or on which data, in words; why not, where nothing could be tried.
        furthest: The pair that moved it furthest at the parameters of the verdict, where trajectories were tried.
        of: What is stated.
    """

    release: str
    statistic: str
    pairs: int
    how: str
    furthest: Pair | None = None
    of: Literal["sensitivity", "price"] = "sensitivity"


def stated_statistics(declaration: Declaration) -> tuple[Release, ...]:
    """Returns the releases whose sensitivity the statistic's author states; one of those that share a statistic."""
    stated: list[Release] = []
    for release in declaration.statistics_released:
        known = any(release.statistic is other.statistic for other in stated)
        if not is_derived(release.statistic) and not known:
            stated.append(release)
    return tuple(stated)


def try_stated(priced: Priced, release: Release) -> Tried:
    """Returns what was tried on a release's stated sensitivity and did not break it.

    Args:
        priced: The declaration at the parameters of the verdict; sizes among them are varied.
        release: Of a statistic whose author states the sensitivity.

    Raises:
        DeclarationError: A pair of neighbours moves the statistic further than its own sensitivity says.
    """
    declaration, values = priced.declaration, priced.values
    pairs, sizes_tried, why = 0, [], ""
    furthest: Pair | None = None
    possible = list(_sizes(declaration, release, values))
    crowded = min((sizes for sizes, _ in possible), key=lambda sizes: (sizes != _CROWDED, math.prod(sizes)), default=())
    for sizes, at in possible:
        try:
            relation = release.contribution(declaration.relation)
            count, pair = try_sizes(relation, release, sizes, at, crowded=sizes == crowded)
            furthest = pair if all(at[name] == values[name] for name in at) else furthest
        except DeclarationError:
            raise
        except Exception as error:  # noqa: BLE001 - the author's own code may know other data or other sizes only
            why = f"at (H, S, A) = {sizes} it raised {type(error).__name__}: {error}"
            continue
        pairs += count
        sizes_tried += ["×".join(map(str, sizes))] if count else []
    words = [f"trajectories of H×S×A = {', '.join(sizes_tried)}"] if sizes_tried else []
    own, problem = _on_own_data(priced, release)
    if own:
        words.append("the declaration's own records and candidates")
    if not pairs + own:
        why = problem or why or "nobody knows its data: give the declaration `records`, which draw one user's data"
    name = release.statistic.name
    said = "; ".join(words) or why
    return Tried(release=release.name, statistic=name, pairs=pairs + own, how=said, furthest=furthest)


def _sizes(
    declaration: Declaration, release: Release, values: Mapping[str, Fraction]
) -> Iterator[tuple[tuple[int, int, int], Mapping[str, Fraction]]]:
    """Yields sizes of trajectories that the parameters allow, tiny ones first; none where the data is one's own."""
    if declaration.records is not None or isinstance(release.statistic, Stated):
        return
    seen = set()
    for wanted in (*_SIZES, None):
        drawn = dict(zip("HSA", wanted, strict=True)) if wanted else {}
        at = {**values, **{name: Fraction(size) for name, size in drawn.items() if name in values}}
        try:
            sizes = trajectory_sizes(declaration, declaration.values(at))
        except (DeclarationError, ParameterError):  # the declaration says nothing there
            continue
        if sizes is not None and sizes not in seen and min(sizes) >= 1:
            seen.add(sizes)
            yield sizes, at


def _check_difference(release: Release, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> None:
    """Checks that what is computed is of the declared shape, and that `difference` is that of what is computed.

    Raises:
        DeclarationError: It is not: noise is drawn in that shape, and audits and witnesses take the difference.
    """
    statistic, where = release.statistic, f"{release.name}: {release.statistic.name}"
    computed = next(compute_one(statistic, user).shape for user in pair if user is not None)
    if computed != (shape := shape_of(f"release {release.name!r}", statistic, values)):
        message = f"{where}: expected what it computes of the shape {shape}, as its shape(values) says, got {computed}"
        raise DeclarationError(f"{message}; the steps come first, (1, …) where it leaves at once")
    if why := not_a_difference(release, pair, values):
        message = f"{where}: {why}; return SparseDifference(cells=…, change=…) of compute(first) − compute(second)"
        raise DeclarationError(f"{message}, flat and only where it is not 0, None counting as 0")


def _on_own_data(priced: Priced, release: Release) -> tuple[int, str]:
    """Returns how many pairs of the declaration's own data were compared, and why none was."""
    declaration, values = priced.declaration, priced.values
    pairs = []
    if declaration.candidates is not None:
        groups = [group for group in declaration.groups if release.users in ("", group)]
        pairs += [pair for group in groups for pair in candidate_pairs(priced, group)]
    if isinstance(release.statistic, Stated):
        pairs += list(release.statistic.extreme_pairs(release.contribution(declaration.relation), values))
    elif declaration.records is not None:
        pairs += recorded_pairs(declaration, values)
    if not pairs:
        return 0, ""
    try:
        allowed = allow(release, release.contribution(declaration.relation), values)
        for pair in map(release.one_contribution, pairs):
            allowed.check_pair(pair)
        _check_difference(release, pairs[0], values)
        check_slices(release, next(user for user in pairs[0] if user is not None))
    except DeclarationError:
        raise
    except TrajectoryError as error:
        raise DeclarationError(f"{release.name}: {error}") from error
    except Exception as error:  # noqa: BLE001 - the author's own code
        return 0, f"on its own records it raised {type(error).__name__}: {error}"
    if declaration.records is not None and not isinstance(release.statistic, Stated):
        pairs += _try_corners(declaration, release, values, allowed)
    return len(pairs), ""


def _try_corners(
    declaration: Declaration, release: Release, values: Mapping[str, Fraction], allowed: Allowed
) -> list[Any]:
    """Returns the pairs at corners that the release knows, none of which moves it further than is stated."""
    tried = []
    for pair in map(release.one_contribution, corner_pairs(declaration, values)):
        try:
            with np.errstate(all="ignore"):
                change = change_of(release, pair)
        except Exception:  # noqa: BLE001, S112 - the author's own code: typical records tell what is wrong with it
            continue
        allowed.check(change[np.newaxis], pair[0], [pair[1]])
        tried.append(pair)
    return tried
