"""A user's own finite model from a file: `--env table:model.npz` or `table:model.json`.

The file holds `P`, of shape (S, A, S) or (H, S, A, S); `r` in [0, 1], of shape (S, A), (S, A, S), (H, S, A) where P has
that first axis, or (H, S, A, S), which is never ambiguous; optionally `initial`, a state or a law (S,), the first state
without it; and `H`, which `--set H=…` overrides. What is publicly known of a linear model stands beside it: features
`phi` (S, A, d) of norm at most 1, and `kernels` (d₁, S, A, S) of a linear mixture; features are one-hot without `phi`.
JSON: an object of nested lists. NPZ: arrays of these names.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.errors import FileFormatError, ParameterError
from privcheck.features import FeatureMap, one_hot_features
from privcheck.finite_mdp import FiniteMDP
from privcheck.registry import Environment
from privcheck.results import World
from privcheck_algorithms.environments.simulated import make_world

_KNOWN = ("P", "r", "initial", "H", "phi", "kernels")


def table_environment(file: str) -> Environment:
    """Returns the model in the file.

    Raises:
        FileFormatError: It cannot be read, or is not such a file.
    """
    path = Path(file)
    arrays = _read(path)
    steps = _steps(path, arrays)

    def model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
        mdp = as_model(path, arrays, values["H"])
        return make_world(
            name=f"table:{path.name}",
            description=f"the model in {path.name}: {mdp.states} states, {mdp.actions} actions, {mdp.horizon} steps",
            mdp=mdp,
            features=as_features(path, arrays, mdp),
        )

    return Environment(
        name=f"table:{path.name}",
        title=f"The model in {path.name}",
        source=path.name,
        parameters=(Parameter(name="H", default=steps or 20, kind="count", meaning="steps of an episode"),),
        model=model,
    )


def as_model(path: Path, arrays: Mapping[str, NDArray[np.float64]], H: int) -> FiniteMDP:
    """Returns the model of H steps.

    Raises:
        FileFormatError: The arrays are not a model; the message says which and why.
    """
    P = arrays["P"]
    if P.ndim not in (3, 4):
        raise FileFormatError(f"{path.name}: P: expected shape (S, A, S) or (H, S, A, S), got {P.shape}")
    transition = P if P.ndim == 4 else P[None]
    first, S, A, _ = transition.shape
    r = arrays["r"]
    shapes = {(S, A): (1, S, A, 1), (S, A, S): (1, S, A, S), (first, S, A): (first, S, A, 1), P.shape: r.shape}
    if P.ndim == 4 and r.shape == (S, A, S) == (first, S, A):
        message = f"r of shape {r.shape} is either rewards r_h(s, a) or r(s, a, s′): give it the shape of P, {P.shape}"
        raise FileFormatError(f"{path.name}: {message}")
    if r.shape not in shapes:
        wanted = ", ".join(str(shape) for shape in shapes)
        raise FileFormatError(f"{path.name}: r: expected one of the shapes {wanted}, got {r.shape}")
    shaped = r.reshape(shapes[r.shape])
    reward = shaped if shaped.ndim == 4 else shaped[None]
    try:
        return FiniteMDP(horizon=H, transition=transition, reward=reward, initial=_initial(arrays, S))
    except ParameterError as error:
        raise FileFormatError(f"{path.name}: {error}") from None


def as_features(path: Path, arrays: Mapping[str, NDArray[np.float64]], mdp: FiniteMDP) -> FeatureMap | None:
    """Returns the features and kernels in the file; None where there are neither.

    Raises:
        FileFormatError: They are of another model, or a feature is longer than 1.
    """
    phi, kernels = arrays.get("phi"), arrays.get("kernels")
    if phi is None and kernels is None:
        return None
    try:
        plain = one_hot_features(mdp.states, mdp.actions).phi
        features = FeatureMap(phi=plain if phi is None else phi, kernels=kernels)
        features.refuse_other(mdp.states, mdp.actions, owner="P")
    except ParameterError as error:
        raise FileFormatError(f"{path.name}: {error}") from None
    return features


def _initial(arrays: Mapping[str, NDArray[np.float64]], S: int) -> NDArray[np.float64]:
    given = arrays.get("initial", np.zeros(()))
    if given.ndim == 1:
        return given
    if given.ndim > 1:
        message = f"initial: expected a state, 0 to {S - 1}, or a law of shape ({S},), got shape {given.shape}"
        raise ParameterError(message, name="initial")
    start = float(given)
    if not (start.is_integer() and 0 <= start < S):
        raise ParameterError(f"initial: expected a state, 0 to {S - 1}, or a law of shape ({S},), got {start:g}")
    law = np.zeros(S)
    law[int(start)] = 1.0
    return law


def _steps(path: Path, arrays: Mapping[str, NDArray[np.float64]]) -> int | None:
    axis = arrays["P"].shape[0] if arrays["P"].ndim == 4 else None
    if "H" not in arrays:
        return axis
    given = arrays["H"]
    if given.ndim or not float(given).is_integer() or float(given) < 1 or axis not in (None, 1, int(given)):
        expected = "a whole number of steps" + (f", {axis} as in P" if axis not in (None, 1) else "")
        raise FileFormatError(f"{path.name}: H: expected {expected}, got {given}")
    return int(given)


def _read(path: Path) -> dict[str, NDArray[np.float64]]:
    if path.suffix not in {".json", ".npz"}:
        raise FileFormatError(f"{path.name}: expected a model as .json or .npz, got {path.suffix or 'no suffix'}")
    try:
        raw = _json(path) if path.suffix == ".json" else _npz(path)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, zipfile.BadZipFile, EOFError, RecursionError) as error:
        raise FileFormatError(f"{path.name}: not a readable {path.suffix[1:].upper()} file: {error}") from None
    unknown = sorted(set(raw) - set(_KNOWN))
    if not {"P", "r"} <= set(raw) or unknown:
        optional = f"{', '.join(_KNOWN[2:-1])} and {_KNOWN[-1]}"
        message = f"expected P and r, and optionally {optional}; got {', '.join(sorted(raw)) or 'none'}"
        raise FileFormatError(f"{path.name}: {message}")
    return {name: _numbers(path, name, value) for name, value in raw.items()}


def _json(path: Path) -> dict[str, Any]:
    table = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(table, dict):
        raise FileFormatError(f"{path.name}: expected a JSON object with P and r, got {type(table).__name__}")
    return table


def _npz(path: Path) -> dict[str, Any]:
    # opened here: NumPy does not close a file whose archive it cannot read
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _numbers(path: Path, name: str, value: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(value)
    except ValueError:  # ragged lists
        array = np.asarray(None)
    if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
        raise FileFormatError(f"{path.name}: {name}: expected a full array of numbers, got {array.dtype}")
    return array.astype(np.float64)
