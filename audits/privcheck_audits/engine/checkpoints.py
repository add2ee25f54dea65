"""Finished blocks on disk: a killed audit resumes where it stopped, with the same result, bit for bit.

One small file per block (`privcheck.runtime.replicates`); a truncated one is drawn again. The plan is stored beside
them; blocks of another plan, seed or version are refused, because counts of two audits must never be added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError, PrivcheckError
from privcheck.runtime.replicates import SUFFIX, open_checkpoint, save_checkpoint
from privcheck.support.files import write_whole

_FORMAT: Final = 3  # 3: blocks are archives; 2: tallies count both kinds of error at thresholds
_PLAN: Final = "plan.json"
_FOLDER: Final = 1_000  # blocks a folder

Plan = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Directory and plan of an audit's finished blocks.

    Attributes:
        directory: Created if missing; it belongs to this audit alone.
        plan: Inputs of the blocks' results besides seed and number of runs: declaration, parameters, pair, ranks.
        kinds: The dataclasses that blocks return; numbers, strings, lists, tuples, dictionaries and arrays need no
            entry.
    """

    directory: Path
    plan: Plan
    kinds: tuple[type, ...] = ()

    def stream(self, stream: int, cut: Plan) -> Kept:
        """Finished blocks of one part of the audit; its directory is created if missing.

        Args:
            stream: Index of the part.
            cut: Seed, number of runs and their division into blocks.

        Raises:
            ParameterError: The directory holds blocks of another audit, or other files.
        """
        wanted = {"format": _FORMAT, "privcheck": version("privcheck"), "numpy": version("numpy"), **self.plan, **cut}
        directory = self.directory / f"stream-{stream}"
        path = directory / _PLAN
        if path.exists():
            kept_plan = _plan(path)
            if kept_plan != json.loads(json.dumps(wanted)):
                raise ParameterError(_difference(directory, kept_plan, wanted), name="out", given=str(self.directory))
        else:
            if directory.exists() and any(directory.iterdir()):
                message = f"{directory} holds files but no {_PLAN}: expected an empty directory or an audit's own"
                raise ParameterError(message, name="out", given=str(self.directory))
            directory.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(wanted, indent=1) + "\n")
        return Kept(directory=directory, kinds={kind.__qualname__: kind for kind in self.kinds})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The finished blocks of one part of an audit.

    Attributes:
        directory: Directory of the blocks.
        kinds: The dataclasses that may be read back, by name.
    """

    directory: Path
    kinds: Mapping[str, type]

    def holds(self, number: int) -> bool:
        """Whether the block was stored; `load` may still find a truncated file."""
        return self._path(number).exists()

    def store(self, number: int, result: object) -> None:
        """Store a block's result.

        Raises:
            ParameterError: The result contains a value that cannot be stored exactly.
        """
        arrays: dict[str, NDArray[Any]] = {}
        about = {"result": self._encode(result, arrays)}
        path = self._path(number)
        path.parent.mkdir(exist_ok=True)
        save_checkpoint(path, about, arrays)

    def load(self, number: int) -> tuple[Any] | None:
        """Stored result of a block, in a tuple of one; None if the file is missing or truncated."""
        try:
            with open_checkpoint(self._path(number)) as (about, arrays):
                return (self._decode(about["result"], arrays),)
        except PrivcheckError:
            return None

    def _path(self, number: int) -> Path:
        return self.directory / f"{number // _FOLDER:04d}" / f"{number:08d}{SUFFIX}"

    def _encode(self, value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
        """Encode a value as JSON with its type, adding its arrays to those of the block."""
        if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic)):
            return value
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
            name = str(len(arrays))
            arrays[name] = np.asarray(value)
            return {"array": name, "scalar": isinstance(value, np.generic)}
        if isinstance(value, (tuple, list)):
            return {type(value).__name__: [self._encode(part, arrays) for part in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self._encode(part, arrays) for key, part in value.items()}}
        name = type(value).__qualname__
        if is_dataclass(value) and self.kinds.get(name) is type(value):
            return {
                "kind": name,
                "fields": {f.name: self._encode(getattr(value, f.name), arrays) for f in fields(value)},
            }
        raise ParameterError(f"a checkpoint cannot hold a {name}: expected numbers, arrays, or one of its kinds")

    def _decode(self, value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
        if not isinstance(value, dict):
            return value
        if "array" in value:
            array = arrays[value["array"]]
            return array[()] if value["scalar"] else array
        if "dict" in value:
            return {key: self._decode(part, arrays) for key, part in value["dict"].items()}
        if "kind" in value:
            parts = {name: self._decode(part, arrays) for name, part in value["fields"].items()}
            return self.kinds[value["kind"]](**parts)
        (name, parts), = value.items()  # fmt: skip
        made = [self._decode(part, arrays) for part in parts]
        return tuple(made) if name == "tuple" else made


def _plan(path: Path) -> dict[str, Any]:
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        plan = None
    if not isinstance(plan, dict):
        raise ParameterError(f"{path} is not the plan of an audit: choose another directory", name="out")
    return plan


def _difference(directory: Path, kept_plan: Mapping[str, Any], wanted: Plan) -> str:
    names = [name for name in {**wanted, **kept_plan} if kept_plan.get(name) != wanted.get(name)]
    said = "; ".join(f"{name}: there {_short(kept_plan.get(name))}, here {_short(wanted.get(name))}" for name in names)
    return (
        f"{directory} holds blocks of another audit ({said}): ask for the same audit to resume it, or choose another "
        "directory; results of two audits are never mixed, and a longer one is not a continuation"
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
