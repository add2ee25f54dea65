"""Trajectories to a file that `read_trajectories` reads back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from privcheck.errors import FileFormatError
from privcheck.reading.users import METADATA
from privcheck.trajectories import Trajectories
from privcheck.whole_files import whole_file


def write_trajectories(path: Path | str, trajectories: Trajectories) -> None:
    """Writes Parquet, CSV or NPZ by the path's ending, under a temporary name first: never half a file.

    Parquet and CSV have the columns episode (from 0), step (from 1), state, action, reward and next_state; they do not
    hold S and A, an NPZ file does. Parquet has the unit of privacy in its metadata; whoever reads another format states
    it again.

    Raises:
        FileFormatError: The path ends in something else, or cannot be written.
    """
    path = Path(path)
    writers: dict[str, Callable[[BinaryIO, Trajectories], None]] = {
        ".parquet": _write_parquet,
        ".csv": _write_csv,
        ".npz": _write_npz,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise FileFormatError(f"{path}: expected a file that ends in {', '.join(writers)}")
    try:
        with whole_file(path) as file:
            write(file, trajectories)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written: {error}") from error


def _write_parquet(file: BinaryIO, data: Trajectories) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(_columns(data))
    if data.unit is not None:
        table = table.replace_schema_metadata({METADATA: json.dumps(data.unit.to_dict())})
    pq.write_table(table, file)


def _write_csv(file: BinaryIO, data: Trajectories) -> None:
    import pyarrow as pa
    from pyarrow import csv

    csv.write_csv(pa.table(_columns(data)), file)


def _write_npz(file: BinaryIO, data: Trajectories) -> None:
    np.savez(
        file,
        states=data.states,
        actions=data.actions,
        rewards=data.rewards,
        num_states=np.int64(data.num_states),
        num_actions=np.int64(data.num_actions),
    )


def _columns(data: Trajectories) -> dict[str, np.ndarray]:
    return {
        "episode": np.repeat(np.arange(data.users), data.horizon),
        "step": np.tile(np.arange(1, data.horizon + 1), data.users),
        "state": data.states[:, :-1].ravel(),
        "action": data.actions.ravel(),
        "reward": data.rewards.ravel(),
        "next_state": data.states[:, 1:].ravel(),
    }
