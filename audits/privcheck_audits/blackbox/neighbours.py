"""Neighbours of a dataset of users: changed users, their replacements, and rows of numbers that rank the pairs.

Positions around powers of two come first after the ends: an unprotected tree node covers only its own users. The rows
(`flatten`) and their gap serve only to rank pairs of neighbours; they prove nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.runtime.auditors import ChangeUser, UserRelation
from privcheck_audits.blackbox.canonical import Form
from privcheck_audits.blackbox.width import WIDEST, pick_columns, sum_columns

_POSITIONS: Final = 12
_RECORDS: Final = 4  # of a dataset's own that stand in for candidates
_STREAM: Final = 0xC4A6E


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A dataset that the agent runs on.

    Attributes:
        dataset: The dataset.
        user: Position of the protected user; None if the user is absent or the position does not matter.
    """

    dataset: Any
    user: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CasePair:
    """Two neighbours.

    Attributes:
        cases: Indices of D and D′ in a list of cases.
        words: Description of the user in whom they differ, and of the change.
    """

    cases: tuple[int, int]
    words: str


def count_users(dataset: Any) -> int | None:
    """Number of users of a sequence, an array or a table; None for other types."""
    if isinstance(dataset, Mapping | str | bytes) or not hasattr(dataset, "__len__"):
        return None
    return len(dataset)


def pick_positions(users: int) -> tuple[int, ...]:
    """At most twelve positions from 0: the first three, last, middle, then users 2^k, 2^k + 1 and 2^k − 1."""
    powers = [1 << k for k in range(2, users.bit_length())]
    near = [power + step for step in (0, 1, -1) for power in powers]
    wanted = [1, 2, 3, users, (users + 1) // 2, *sorted(near, key=lambda user: (user.bit_length(), user)), users - 1]
    return tuple(dict.fromkeys(user - 1 for user in wanted if 1 <= user <= users))[:_POSITIONS]


def list_changes(
    dataset: Any,
    *,
    candidates: Sequence[Any] | None,
    change: ChangeUser | None,
    relation: UserRelation | None,
    positions: Sequence[int] | None,
    seed: int,
) -> tuple[list[Case], list[CasePair]]:
    """All cases and pairs of a search.

    Raises:
        ParameterError: The arguments contradict each other, or no change is possible.
    """
    users = count_users(dataset)
    _refuse(dataset, users, candidates=candidates, change=change, relation=relation, positions=positions)
    where = pick_positions(users or 0) if positions is None else tuple(positions)
    cases: list[Case] = []
    pairs: list[CasePair] = []

    def add(given: Any, user: int | None) -> int:
        cases.append(Case(dataset=given, user=user))
        return len(cases) - 1

    def pair(first: int, other: int, position: int, words: str) -> None:
        among = "" if users is None else f" of {users}"
        pairs.append(CasePair(cases=(first, other), words=f"user {position + 1}{among} (position {position}), {words}"))

    records = list(candidates) if candidates is not None else [] if change else _own_candidates(dataset, relation)
    for position in where:
        if change is not None:
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, position)))
            pair(add(dataset, position), add(change(dataset, position, rng), position), position, "changed")
        elif relation == "add-remove":
            pair(add(dataset, position), add(_edited(dataset, position, (), drop=1), None), position, "left out")
            base = add(dataset, None)
            for record in records:
                pair(
                    add(_edited(dataset, position, (record,), drop=0), position),
                    base,
                    position,
                    f"{_brief(record)} put in",
                )
        else:
            made: list[tuple[Any, int]] = []
            for record in [dataset[position], *records]:
                if not any(_same(record, known) for known, _ in made):
                    made.append((record, add(_edited(dataset, position, (record,), drop=1), position)))
            for (one, first), (other, second) in combinations(made, 2):
                if relation == "replace-one" or first == made[0][1]:
                    pair(first, second, position, f"{_brief(one)} replaced by {_brief(other)}")
    if not pairs:
        message = "dataset: every candidate equals the present record"
        raise ParameterError(f"{message}; give other candidates", name="candidates", given=candidates)
    return cases, pairs


def find_user(first: Any, other: Any) -> tuple[int | None, int | None]:
    """Position, in either dataset, of the user in whom they differ; None in the dataset that lacks the user.

    Raises:
        ParameterError: The position cannot be determined.
    """
    sizes = count_users(first), count_users(other)
    wanted = "give `positions`, one for each pair of neighbours"
    if sizes[0] is None or sizes[1] is None or abs(sizes[0] - sizes[1]) > 1:
        message = "joint: expected neighbours that are sequences of users and differ in one"
        raise ParameterError(
            f"{message}, got {_brief(first)} and {_brief(other)}; otherwise {wanted}", name="positions"
        )
    differ = [i for i in range(min(sizes[0], sizes[1])) if not _same(first[i], other[i])]
    if sizes[0] == sizes[1]:
        if len(differ) != 1:
            message = f"joint: expected neighbours that differ in one user, got {len(differ)} different records"
            raise ParameterError(f"{message}; {wanted}", name="positions")
        return differ[0], differ[0]
    position = differ[0] if differ else min(sizes[0], sizes[1])
    longer, shorter = (first, other) if sizes[0] > sizes[1] else (other, first)
    if any(not _same(longer[i + 1], shorter[i]) for i in range(position, min(sizes[0], sizes[1]))):
        message = "joint: one of two neighbours has one more user, but others differ too"
        raise ParameterError(f"{message}; {wanted}", name="positions")
    return (position, None) if sizes[0] > sizes[1] else (None, position)


def _refuse(
    dataset: Any,
    users: int | None,
    *,
    candidates: Sequence[Any] | None,
    change: ChangeUser | None,
    relation: UserRelation | None,
    positions: Sequence[int] | None,
) -> None:
    if change is not None and candidates is not None:
        raise ParameterError("expected candidates or change, got both", name="change", given=change)
    if relation not in ((None,) if change is not None else get_args(UserRelation)):
        wanted = "none with `change`" if change is not None else " or ".join(map(repr, get_args(UserRelation)))
        message = f"relation: expected {wanted}, the neighbouring relation of the claim; got {relation!r}"
        raise ParameterError(message, name="relation", given=relation)
    if users is None and (change is None or positions is None):
        message = f"dataset: expected a sequence of users, got a {type(dataset).__name__}"
        raise ParameterError(f"{message}; give `change` and `positions` for anything else", name="dataset")
    if users == 0:
        raise ParameterError("dataset: expected at least one user, got none", name="dataset", given=dataset)
    if candidates is not None and not len(candidates):
        raise ParameterError("candidates: expected at least one record, got none", name="candidates", given=candidates)
    if positions is not None and (
        not len(positions)
        or not all(isinstance(p, int | np.integer) and p >= 0 and (users is None or p < users) for p in positions)
    ):
        wanted = "positions of users, from 0" + ("" if users is None else f" to {users - 1}")
        raise ParameterError(f"positions: expected {wanted}, got {positions!r}", name="positions", given=positions)


def _own_candidates(dataset: Any, relation: UserRelation | None) -> list[Any]:
    array = dataset if isinstance(dataset, np.ndarray) and dataset.dtype.kind in "biuf" else None
    if relation == "zero-out":
        first = dataset[0]
        return [np.zeros_like(first) if _is_number(first) else None]
    if array is not None:
        return [array.min(axis=0), array.max(axis=0)]
    different: list[Any] = []
    for i in range(len(dataset)):
        record = dataset[i]
        if len(different) < _RECORDS and not any(_same(record, known) for known in different):
            different.append(record)
    return different


def _is_number(record: Any) -> bool:
    return not isinstance(record, str | bytes) and np.asarray(record).dtype.kind in "biuf"


def _edited(dataset: Any, position: int, record: tuple[Any, ...], *, drop: int) -> Any:
    """Copy of the dataset, of the same type, with `drop` users from `position` on replaced by `record`."""
    if isinstance(dataset, np.ndarray):
        between = [_as_row(dataset, each) for each in record]
        return np.concatenate([dataset[:position], *between, dataset[position + drop :]])
    if isinstance(dataset, list | tuple):
        return type(dataset)([*dataset[:position], *record, *dataset[position + drop :]])
    message = f"dataset: a {type(dataset).__name__} cannot be changed here"
    raise ParameterError(f"{message}; give a list, a tuple or an array of users, or `change`", name="dataset")


def _as_row(dataset: NDArray[Any], record: Any) -> NDArray[Any]:
    """Record as one row with the array's dtype: different dtypes would distinguish the neighbours."""
    row = np.asarray(record).astype(dataset.dtype)
    if row.shape != dataset.shape[1:] or not np.array_equal(row, np.asarray(record)):
        wanted = f"records of shape {dataset.shape[1:]} that {dataset.dtype} holds exactly"
        raise ParameterError(f"candidates: expected {wanted}, got {record!r}", name="candidates", given=record)
    return row[np.newaxis]


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
    except (TypeError, ValueError):  # ragged or foreign records
        return bool(one == other)


def _brief(record: Any) -> str:
    text = " ".join(repr(record.item() if isinstance(record, np.generic) else record).split())
    return text if len(text) <= 40 else f"{text[:39]}…"


_NAN: Final = -7.25e30  # stands for NaN: a number that nobody returns
_LARGEST: Final = 1e30
_MOST_STEPS: Final = 20_000  # numbers of an array whose steps are looked at

Array = NDArray[np.float64]


def flatten(outputs: Sequence[Form], secret: NDArray[np.bool_]) -> Array:
    """Row of numbers for each output, (outputs, width); the last column is the length of the row.

    Args:
        outputs: Outputs in canonical form.
        secret: (outputs,) whether each was on D; used to pick columns if there are too many.
    """
    rows = [_numbers(output) for output in outputs]
    width = max(row.size for row in rows)
    table = np.zeros((len(rows), width + 1))
    for line, row in zip(table, rows, strict=True):
        line[: row.size], line[-1] = row, row.size
    return pick_columns(sum_columns(table, secret, 0))(table) if width >= WIDEST else table


def _numbers(output: Form) -> Array:
    """Codes and values of an output's leaves, with the differences between consecutive arrays of equal size."""
    parts: list[Array] = []
    arrays: list[Array] = []
    for leaf in output.leaves:
        parts.append(np.array([zlib.crc32(repr((leaf.path, leaf.kind, leaf.shape)).encode())], dtype=np.float64))
        if isinstance(leaf.value, np.ndarray):
            values = _finite(leaf.value)
            arrays.append(values)
            parts.append(_with_steps(values.reshape(leaf.shape) if _fits(leaf.shape, values.size) else values))
        elif isinstance(leaf.value, bool | int | float):
            parts.append(_finite(np.array([leaf.value], dtype=np.float64)))
        else:
            parts.append(np.array([zlib.crc32(repr(leaf.value).encode())], dtype=np.float64))
    parts += [later - earlier for earlier, later in pairwise(arrays) if earlier.size == later.size]
    return np.concatenate(parts)


def _fits(shape: Any, size: int) -> bool:
    return shape is not None and int(np.prod(shape)) == size


def _finite(values: NDArray[Any]) -> Array:
    numbers = np.clip(values.astype(np.float64), -_LARGEST, _LARGEST)
    return np.where(np.isnan(numbers), _NAN, numbers)


def _with_steps(values: Array) -> Array:
    """Values and their differences along each axis, for example from one user to the next."""
    if values.size > _MOST_STEPS:
        return values.ravel()
    return np.concatenate([values.ravel(), *(np.diff(values, axis=axis).ravel() for axis in range(values.ndim))])


def largest_gap(table: Array, secret: NDArray[np.bool_]) -> float:
    """Largest distance between the distributions of any column on D and on D′ (Kolmogorov & Smirnov)."""
    order = np.argsort(table, axis=0, kind="stable")
    ordered = np.take_along_axis(table, order, axis=0)
    ours = np.cumsum(secret[order], axis=0) / secret.sum()
    others = np.cumsum(~secret[order], axis=0) / (~secret).sum()
    last = np.ones(table.shape, dtype=np.bool_)  # of equal values
    last[:-1] = ordered[1:] != ordered[:-1]
    return float(np.abs(ours - others)[last].max())
