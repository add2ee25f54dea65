"""Of which kind one user's data is, as far as a declaration says, and what is missing where it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from privcheck.declaration import Declaration
from privcheck.relations import LARGEST, LONGEST, extreme_pairs, most_trajectories
from privcheck.releases import Release
from privcheck.statistics import ClippedSums, FeatureSums, GramMatrices, SmallestEigenvalue, Stated
from privcheck.verification.candidates import recorded_pairs, refused_candidates, trajectory_sizes
from privcheck.verification.neighbours import fault

_BALLS: Final = {"l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞"}
_SHOWN: Final = 3  # reasons that a message lists
_RECORDS: Final = "give the declaration `records=lambda values, rng: …`, which draws one user's data, or `candidates`"


def kinds_of_data(releases: Sequence[Release]) -> tuple[str, ...]:
    """Returns of which data the releases' statistics are, in words, each once; one of one's own may be of any."""
    kinds: dict[str, None] = {}
    for release in releases:
        statistic: Any = release.statistic
        if isinstance(statistic, GramMatrices | FeatureSums | SmallestEigenvalue):
            kinds["regressors"] = None
        elif isinstance(statistic, ClippedSums):
            kinds[f"vectors, one a {statistic.per}, in an {_BALLS[statistic.ball]} ball"] = None
        else:
            kinds["records" if isinstance(statistic, Stated) else "trajectories or data of one's own"] = None
    return tuple(kinds)


def explain_unknown_data(declaration: Declaration) -> str:
    """Returns why no user's data can be drawn, and what to do; empty where some can, at some sizes."""
    if declaration.candidates is not None or declaration.records is not None or not declaration.noisy:
        return ""
    kinds = [kinds_of_data(declaration.seen_by(group)) for group in declaration.groups]
    if mixed := next((several for several in kinds if len(several) > 1), ()):
        message = f"its releases are of different data ({'; '.join(mixed)}), and no user is known who has all of it"
        return f"{message}; declare each kind apart, or {_RECORDS}"
    values = declaration.values()
    if any("trajectories" in several[0] for several in kinds if several) and not trajectory_sizes(declaration, values):
        return f"nobody says what one user's data is: {_RECORDS}"
    return ""


def explain_no_pair(declaration: Declaration, values: Mapping[str, Fraction]) -> str:
    """Returns why no pair of neighbours is known to a search that found none, and what to do."""
    if declaration.candidates is not None:
        refused = refused_candidates(declaration, values)
        said = f"none of its `candidates` are neighbours ({_first(refused)})" if refused else "it has no `candidates`"
        return f"{said}; return pairs (first, second) of one user's data, None where the user is absent"
    if why := explain_unknown_data(declaration):
        return why
    return _explain_records(declaration, values) if declaration.records is not None else _too_long(declaration, values)


def _explain_records(declaration: Declaration, values: Mapping[str, Fraction]) -> str:
    reasons = [_fault(declaration, pair, values) for pair in recorded_pairs(declaration, values)]
    if not reasons:
        return f"nobody says which of its `records` share step 1 ({declaration.relation.words}): give `candidates`"
    return f"no two of its `records` are neighbours ({_first(reasons)}); draw one user's data as `compute` takes it"


def _too_long(declaration: Declaration, values: Mapping[str, Fraction]) -> str:
    """Returns why no trajectories or vectors are tried."""
    if any("regressors" in kinds_of_data(declaration.seen_by(group)) for group in declaration.groups):
        return "one user's vectors are too many numbers to be held in memory, or of two dimensions; audit smaller sizes"
    sizes, rows = trajectory_sizes(declaration, values), most_trajectories(declaration.relation, values)
    if sizes is not None and sizes[0] * rows <= LONGEST and max(sizes) <= LARGEST:
        pairs = extreme_pairs(declaration.relation, *sizes, trajectories=rows)
        reasons = [_fault(declaration, pair, values) for pair in pairs]
        return f"its statistics refuse trajectories ({_first(reasons)}): {_RECORDS}"
    return (
        "no pair of neighbours can be held in memory: trajectories are written out up to "
        f"{LONGEST} steps, states and actions are numbers up to {LARGEST}; audit smaller sizes"
    )


def _fault(declaration: Declaration, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> str:
    faults = (fault(declaration.relation, declaration.seen_by(g), pair, values) for g in declaration.groups)
    return next((why for why in faults if why), "")


def _first(reasons: Sequence[str]) -> str:
    different = [why for why in dict.fromkeys(reasons) if why]
    return "; ".join(different[:_SHOWN])
