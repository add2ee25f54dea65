"""Public inputs from files: features of states and actions, and reward tables."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import SLACK, FeatureMap
from privcheck.data.reading.tables import (
    CONVENTIONS,
    Problems,
    Table,
    Whole,
    check_range,
    check_unit_interval,
    load_arrays,
    read_table,
    real_numbers,
    require_file,
    whole_numbers,
)
from privcheck.errors import FileFormatError, ParameterError

_MOST: Final = 512  # dimensions of a table: a Gram matrix has their square
_LARGEST: Final = 10_000_000  # numbers of a table of features


def read_features(path: Path | str, *, num_states: int | None = None, num_actions: int | None = None) -> FeatureMap:
    """Read public features φ(s, a) of norm at most 1.

    Args:
        path: A .npz file with the array `phi` of shape (S, A, d); or a .csv or .parquet file with the columns state,
            action, phi1, phi2, …, with one row for every pair, in any order. It counts as public: it must not be
            computed from the users' data.
        num_states: S if known; else that of the file.
        num_actions: A if known; else that of the file.

    Raises:
        FileFormatError: The file is missing or does not match its extension; a pair is missing, occurs twice or is out
            of range, a number is not finite, or a feature has a norm above 1. For a table one message has all problems.
    """
    path = require_file(path, (".npz", ".parquet", ".csv"))
    if path.suffix.lower() == ".npz":
        arrays, _ = load_arrays(path, needed=("phi",))
        phi = arrays["phi"]
    else:
        phi = _from_table(path, num_states, num_actions)
    try:
        features = FeatureMap(phi=phi)
        features.refuse_other(num_states or phi.shape[0], num_actions or phi.shape[1], owner="--set")
    except ParameterError as error:
        raise FileFormatError(f"{path} was refused as a table of features: {error}") from None
    return features


def _from_table(path: Path, num_states: int | None, num_actions: int | None) -> NDArray[np.float64]:
    problems = Problems()
    every = [f"phi{i}" for i in range(1, _MOST + 1)]
    table = read_table(path, needed=("state", "action", "phi1"), optional=every[1:], problems=problems)
    columns = [name for name in every if name in table.columns]
    if columns != every[: len(columns)]:
        missing = next(name for name in every if name not in columns)
        problems.say(f"no column {missing} beside {columns[-1]}: number the coordinates phi1, phi2, … without gaps")
    ids = [whole_numbers(table, name, problems) for name in ("state", "action")]
    S, A = (
        size or 1 + int(column.values.max(initial=0))
        for size, column in zip((num_states, num_actions), ids, strict=True)
    )
    values = np.stack([real_numbers(table, name, problems) for name in columns], axis=1)
    phi = np.zeros((0, 0, 0))
    if S * A * len(columns) > _LARGEST:
        size = f"S·A·d = {S}·{A}·{len(columns)} numbers, at most {_LARGEST:,}"
        problems.say(f"{size}: number states and actions from 0 without gaps")
    else:
        phi = _place(table, ids, values, (S, A), problems)
    if problems.lines:
        text = "\n".join(f"  - {line}" for line in problems.lines)
        raise FileFormatError(f"{path} was refused as a table of features ({CONVENTIONS[table.unit]})\n{text}")
    return phi


def _place(
    table: Table, ids: list[Whole], values: NDArray[np.float64], sizes: tuple[int, int], problems: Problems
) -> NDArray[np.float64]:
    """The features (S, A, d); pairs that are missing or occur twice are added as problems."""
    (S, A), (state, action) = sizes, ids
    usable = check_range("state", state, S, table.place, problems)
    usable &= check_range("action", action, A, table.place, problems)
    cell = np.where(usable, state.values * A + action.values, 0)

    def describe(flat: int) -> str:
        return f"state {flat // A}, action {flat % A}"

    order = np.flatnonzero(usable)[np.argsort(cell[usable], kind="stable")]
    problems.add(
        "the same pair twice (keep one row)",
        np.flatnonzero(np.diff(cell[order]) == 0),
        lambda i: f"{describe(int(cell[order[i]]))}: {table.place(order[i])} and {table.place(order[i + 1])}",
    )
    seen = np.zeros(S * A, dtype=np.bool_)
    seen[cell[usable]] = True
    if bool(usable.all()):
        problems.add("no features for a pair (every state and action needs a row)", ~seen, describe)
    norms = np.linalg.norm(values, axis=1)  # NaN has been reported
    what = f"‖φ‖: expected at most 1 (divide all by {np.nanmax(norms, initial=1.0):.6g}, or by a public bound on it)"
    problems.add(what, norms > 1 + SLACK, lambda i: f"{table.place(i)} ({norms[i]:.6g})")
    phi = np.zeros((S * A, values.shape[1]))
    phi[cell[usable]] = values[usable]
    return phi.reshape(S, A, -1)


def read_rewards(path: Path | str, *, num_states: int, num_actions: int) -> NDArray[np.float64]:
    """Read a public reward function r(s, a) of shape (S, A, 1), or r(s, a, s′) of shape (S, A, S).

    Args:
        path: A .csv or .parquet file with the columns state, action, reward and optionally next_state, with one row for
            every cell, in any order. It counts as public: it must not be computed from the users' data.
        num_states: Number of states, S.
        num_actions: Number of actions, A.

    Raises:
        FileFormatError: The file is missing or does not match its extension; a cell is missing, occurs twice or is out
            of range, or a reward is outside [0, 1]. One message has all problems.
    """
    path = require_file(path, (".parquet", ".csv"))
    problems = Problems()
    table = read_table(path, needed=("state", "action", "reward"), optional=("next_state",), problems=problems)
    axes = {"state": num_states, "action": num_actions}
    if "next_state" in table.columns:
        axes["next_state"] = num_states
    shape = tuple(axes.values())
    cell = np.zeros(table.rows, dtype=np.int64)
    usable = np.ones(table.rows, dtype=np.bool_)
    for name, size in axes.items():
        column = whole_numbers(table, name, problems)
        usable &= check_range(name, column, size, table.place, problems)
        cell = cell * size + np.where(usable, column.values, 0)
    rewards = real_numbers(table, "reward", problems)
    check_unit_interval("reward", rewards, table.place, problems)

    def describe_cell(flat: int) -> str:
        where = np.unravel_index(flat, shape)
        return ", ".join(f"{name} {int(index)}" for name, index in zip(axes, where, strict=True))

    order = np.flatnonzero(usable)[np.argsort(cell[usable], kind="stable")]
    again = np.flatnonzero(np.diff(cell[order]) == 0)
    problems.add(
        "the same cell twice (keep one row)",
        again,
        lambda i: f"{describe_cell(int(cell[order[i]]))}: {table.place(order[i])} and {table.place(order[i + 1])}",
    )
    seen = np.zeros(int(np.prod(shape)), dtype=np.bool_)
    seen[cell[usable]] = True
    if bool(usable.all()):
        problems.add("no reward for a cell (every one needs a row)", ~seen, describe_cell)
    if problems.lines:
        text = "\n".join(f"  - {line}" for line in problems.lines)
        raise FileFormatError(f"{path} was refused as a reward table ({CONVENTIONS[table.unit]})\n{text}")
    values = np.empty(len(seen))
    values[cell] = rewards
    return values.reshape(shape if len(shape) == 3 else (*shape, 1))
