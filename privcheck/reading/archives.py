"""NPZ archives of plain arrays by name; pickled objects are never loaded."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import FileFormatError


def load_arrays(
    path: Path, *, needed: Sequence[str], optional: Sequence[str] = ()
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Returns the needed arrays, the optional ones that are there, and the names of all others.

    Raises:
        FileFormatError: The file is no such archive, or a needed array is missing.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            names = list(file.files)
            arrays = {name: file[name] for name in (*needed, *optional) if name in names}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError):
        raise FileFormatError(
            f"{path}: expected an NPZ archive of plain arrays as numpy.savez writes it; got something else, a damaged "
            "one, or pickled objects, which are never loaded"
        ) from None
    missing = [name for name in needed if name not in arrays]
    if missing:
        message = f"no array {', '.join(missing)}; expected {', '.join(needed)}, found {', '.join(names) or 'none'}"
        raise FileFormatError(f"{path}: {message}")
    return arrays, [name for name in names if name not in arrays]
