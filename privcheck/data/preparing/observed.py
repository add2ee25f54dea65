"""Preparation of episodes with observations: columns of numbers become one column of vectors.

What is public is stated and not looked up: the columns that are observed with their bounds, the bounds of rewards, the
longest episode. Values outside are refused; rewards may be clipped instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from privcheck.data.preparing.stream import Prepared
from privcheck.data.reading.observations import (
    NEEDED,
    Bounds,
    admit_observations,
    write_observations,
)
from privcheck.data.reading.tables import Problems, read_table, real_numbers, require_file
from privcheck.data.reading.users import Users
from privcheck.errors import FileFormatError, ParameterError

_OURS: Final = (*(name for name in NEEDED if name != "observation"), "user")
_ACTIONS: Final = 10_000  # codes are checked against the true number where they are learned from


def parse_observed(text: str) -> dict[str, tuple[float, float]]:
    """Observed columns with their public bounds, from NAME:LOW:HIGH,NAME:LOW:HIGH.

    Raises:
        ParameterError: The text has another form, or a name occurs twice.

    >>> parse_observed("age:0:120,weight:20:300")
    {'age': (0.0, 120.0), 'weight': (20.0, 300.0)}
    """
    found: dict[str, tuple[float, float]] = {}
    for part in text.split(","):
        name, *bounds = (one.strip() for one in part.rsplit(":", maxsplit=2))
        try:
            low, high = map(float, bounds)
        except ValueError:
            low = high = np.nan
        if not name or name in found or not low < high:
            message = "--observe expects different columns with public bounds, age:0:120,weight:20:300; got"
            raise ParameterError(f"{message} {text!r:.200}", name="observe", given=text)
        found[name] = (low, high)
    return found


def prepare_observations(
    raw: Path,
    out: Path,
    *,
    observe: Mapping[str, tuple[float, float]],
    columns: Mapping[str, str],
    rewards: tuple[float, float],
    limit: int,
    users: Users,
    clip_rewards: bool = False,
) -> Prepared:
    """Write episodes with observations from a raw table.

    Args:
        raw: A .csv or .parquet file with one row per step, in any order.
        out: The .parquet file.
        observe: Observed columns, by the file's names and in the order of the vector, with their public bounds.
        columns: The file's names of our columns, where they differ: episode, step, action, reward, terminated, user.
        rewards: Public bounds of the reward.
        limit: Largest number of steps of an episode: a public fact.
        users: Statement about the users.
        clip_rewards: Clip rewards to their bounds; otherwise rewards outside are refused.

    Raises:
        FileFormatError: A file cannot be read or written, has another ending, or lacks a column.
        ParameterError: A choice is out of range, or two of them contradict each other.
        TrajectoryError: The users are unknown, or rows are invalid; nothing is written.
    """
    unknown = sorted(columns.keys() - set(_OURS))
    if unknown:
        message = f"--column {unknown[0]}=…: expected one of {', '.join(_OURS)} beside --observe"
        raise ParameterError(message, name="column", given=unknown[0])
    low, high = zip(*observe.values(), strict=True)
    bounds = Bounds(low=low, high=high, actions=_ACTIONS, rewards=rewards, limit=limit)
    path = require_file(raw, (".csv", ".parquet"))
    if out.suffix.lower() != ".parquet" or out.resolve() == path.resolve():
        raise FileFormatError(f"--out {out}: expected another file than the raw one, which ends in .parquet")
    users = users if "user" not in columns else replace(users, column=columns["user"])
    names = {name: columns.get(name, name) for name in _OURS if name != "user"}
    problems = Problems()
    table = read_table(path, needed=(*names.values(), *observe), optional=(users.name,), problems=problems)
    taken = {ours: table.columns[theirs] for ours, theirs in names.items()}
    if users.name in table.columns:
        taken[users.name] = table.columns[users.name]
    seen = np.stack([real_numbers(table, name, problems) for name in observe], axis=1)
    clipped = 0
    table = replace(table, columns=taken)
    if clip_rewards:
        given = real_numbers(replace(table, columns={"reward": taken["reward"]}), "reward", problems)
        within = np.clip(given, *rewards)
        clipped = int((within != given)[np.isfinite(given)].sum())
        table.columns["reward"] = _column(np.where(np.isfinite(within), within, rewards[0]))
    table.columns["observation"] = _vectors(np.where(np.isfinite(seen), seen, low))  # what is not is a problem already

    def look(wanted: Sequence[str]) -> Mapping[str, Any]:
        theirs = names["episode"]
        others = [name for name in wanted[1:] if name in {*names.values(), *observe, *table.ignored}]
        read = read_table(path, needed=(theirs,), optional=others, problems=Problems()).columns
        return {"episode": read.pop(theirs), **read}

    found = admit_observations(table, path, bounds=bounds, users=users, problems=problems, look=look)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_observations(out, found)
    return Prepared(
        data=str(out),
        rows=len(seen),
        episodes=len(found.lengths),
        steps=limit,
        changed={"reward clipped": clipped} if clip_rewards else {},
        changes="",
        unit=found.unit,
        codebook=None,
        depends_on_data=(),
    )


def _column(values: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.array(values)])


def _vectors(rows: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])])
