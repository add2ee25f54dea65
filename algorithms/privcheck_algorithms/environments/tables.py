"""Worlds from transition tables: a user's own file, or a Gymnasium environment.

`--env table:model.npz` or `table:model.json` reads a finite model from a file; `table_environment` has the format.
`--env gym:FrozenLake-v1`, or `--env gym:my_module:MyEnv-v0` for an id that is registered when `my_module` is imported,
reads a Gymnasium environment with finite state and action spaces: its transition table becomes an exact model
(`read_table`), and nothing is sampled from the simulator, so that regret is exact.
"""

from __future__ import annotations

import importlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap, one_hot_features
from privcheck.data.finite_models import FiniteMDP
from privcheck.declare.declaration import Parameter
from privcheck.errors import FileFormatError, ParameterError, PrivcheckError
from privcheck.runtime.registry import Environment
from privcheck.runtime.results import Dataset, World
from privcheck_algorithms.environments.finite import make_world, sample_dataset

_KNOWN = ("P", "r", "initial", "H", "phi", "kernels")


def table_environment(file: str) -> Environment:
    """Model in the file.

    The file has `P`, of shape (S, A, S) or (H, S, A, S); `r` in [0, 1], of shape (S, A), (S, A, S), (H, S, A) if P has
    that first axis, or (H, S, A, S), which is never ambiguous; optionally `initial`, a state or a law (S,), by default
    the first state; and `H`, which `--set H=…` overrides. Public knowledge of a linear model is optional too: features
    `phi` (S, A, d) of norm at most 1, and `kernels` (d₁, S, A, S) of a linear mixture; features are one-hot without
    `phi`. JSON: an object of nested lists. NPZ: arrays of these names.

    Raises:
        FileFormatError: The file cannot be read, or has another content.
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
    """Model of H steps.

    Raises:
        FileFormatError: The arrays are not a model; the message names the array and the reason.
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
    """Features and kernels in the file; None if there are none.

    Raises:
        FileFormatError: They belong to another model, or a feature has a norm above 1.
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


_RESETS = 1000  # a start that a reset leaves with probability 1 % is found out but for 4·10⁻⁵


def gym_environment(identity: str) -> Environment:
    """Gymnasium environment with an id such as FrozenLake-v1 or my_module:MyEnv-v0.

    Raises:
        PrivcheckError: Gymnasium is not installed.
        ParameterError: There is no such id, or the module that registers it cannot be imported.
    """
    _refuse_unknown(identity)

    def model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
        mdp, facts = read_table(identity, H=values["H"])
        return make_world(
            name=f"gym:{identity}",
            description=f"Gymnasium's {identity}, from its transition table, {values['H']} steps; {facts['rewards']}",
            mdp=mdp,
            facts=facts,
        )

    def sample(values: Mapping[str, int], seed: int) -> Dataset:
        return sample_dataset(model, values, seed=seed, public_reward=True)

    return Environment(
        name=f"gym:{identity}",
        title=f"Gymnasium's {identity}",
        source="Gymnasium, the environment's own transition table",
        parameters=(
            Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
            Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        ),
        sample=sample,
        model=model,
    )


def _refuse_unknown(identity: str) -> None:
    registry = load_gymnasium().registry
    module, _, known = identity.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            message = f"gym:{identity}: the module {module} cannot be imported ({error}): install it, or set PYTHONPATH"
            raise ParameterError(message, name="env", given=identity) from None
    if known not in registry:
        name = known.rpartition("-v")[0] or known
        others = sorted(one for one in registry if one.rpartition("-v")[0] == name)
        expected = ", ".join(others) or "one such as FrozenLake-v1, or MODULE:ID where a module of yours registers it"
        message = f"gym:{identity}: Gymnasium has no environment with this id; expected {expected}"
        raise ParameterError(message, name="env", given=identity)


def read_table(identity: str, *, H: int) -> tuple[FiniteMDP, dict[str, str | int | float]]:
    """Model of an environment with H steps, and facts about it.

    The table (`env.unwrapped.P`) is read once. An episode that ends early goes to one absorbing state, appended as the
    last, with reward 0. Rewards outside [0, 1] are mapped there by the table's own least and largest reward, and the
    run says so.

    Raises:
        ParameterError: Its spaces are not discrete, or it has no transition table of the usual form.
    """
    env = load_gymnasium().make(identity)
    try:
        return _read_gym(identity, env, H)
    finally:
        env.close()


def _read_gym(identity: str, env: Any, H: int) -> tuple[FiniteMDP, dict[str, str | int | float]]:
    spaces = (env.observation_space, env.action_space)
    if not all(type(space).__name__ == "Discrete" and int(space.start) == 0 for space in spaces):
        got = ", ".join(str(space) for space in spaces)
        message = (
            f"gym:{identity}: its states and actions are {got}; expected two Discrete spaces that count from 0. Agents "
            "here keep one counter a state: discretise it and pass the model as table:FILE"
        )
        raise ParameterError(message, name="env", given=identity)
    table = getattr(env.unwrapped, "P", None)
    if not isinstance(table, Mapping):
        message = f"gym:{identity}: has no transition table P, which exact regret needs; pass the model as table:FILE"
        raise ParameterError(message, name="env", given=identity)
    S, A = (int(space.n) for space in spaces)
    law = getattr(env.unwrapped, "initial_state_distrib", None)
    initial = _start(identity, env, S) if law is None else np.asarray(law, dtype=np.float64)
    return _model(identity, table, initial, shape=(H, S, A))


def _start(identity: str, env: Any, S: int) -> NDArray[np.float64]:
    """Law of the first state without a stated law: all resets must lead to the same state."""
    starts = {_state(f"gym:{identity}: a reset", env.unwrapped.reset(seed=seed)[0], S) for seed in range(_RESETS)}
    if len(starts) > 1:
        message = (
            f"gym:{identity}: its first state is drawn from an unstated law; expected an attribute "
            "initial_state_distrib, or pass the model as table:FILE"
        )
        raise ParameterError(message, name="env", given=identity)
    law = np.zeros(S)
    law[starts.pop()] = 1.0
    return law


def _state(where: str, found: Any, S: int) -> int:
    if isinstance(found, bool) or not isinstance(found, (int, np.integer)) or not 0 <= found < S:
        message = f"{where} leads to the state {found!r}; expected a whole number, 0 to {S - 1}"
        raise ParameterError(message, name="env", given=found)
    return int(found)


def _model(
    identity: str, table: Mapping[Any, Any], initial: NDArray[np.float64], *, shape: tuple[int, int, int]
) -> tuple[FiniteMDP, dict[str, str | int | float]]:
    H, S, A = shape
    raw = [(s, a, *outcome) for s in range(S) for a in range(A) for outcome in _outcomes(identity, table, s, a, S)]
    leaves = {s for s, a, p, to, r, done in raw if p > 0 and not (s == to and r == 0)}
    ends = any(done and to in leaves for s, a, p, to, r, done in raw)  # elsewhere an ended episode stays where it is
    states = S + ends
    least, most = min(0.0, *(r for *_, r, _ in raw)), max(0.0, *(r for *_, r, _ in raw))
    inside = least >= 0 and most <= 1
    low, width = (0.0, 1.0) if inside else (least, most - least)
    transition, earned = np.zeros((states, A, states)), np.zeros((states, A, states))
    for s, a, p, to, r, done in raw:
        target = S if ends and done else to
        transition[s, a, target] += p
        earned[s, a, target] += p * (r - low) / width
    if ends:
        transition[S, :, S] = 1.0
        earned[S, :, S] = (0.0 - low) / width
    # two outcomes of one (s, a, s′) may pay differently: their mean has the same expected return
    reward = np.divide(earned, transition, out=np.zeros_like(earned), where=transition > 0)
    words = "rewards as they are" if inside else f"rewards mapped from [{least:g}, {most:g}] to [0, 1]"
    first = np.append(initial, [0.0] * ends)
    try:
        mdp = FiniteMDP(horizon=H, transition=transition[None], reward=np.clip(reward, 0.0, 1.0)[None], initial=first)
    except ParameterError as error:
        raise ParameterError(f"gym:{identity}: {error}", name="env", given=identity) from None
    return mdp, {"states": states, "actions": A, "rewards": words, "early end": "absorbing state" if ends else "none"}


def _outcomes(identity: str, table: Mapping[Any, Any], s: int, a: int, S: int) -> list[tuple[float, int, float, bool]]:
    try:
        outcomes = table[s][a]
        steps = []
        for p, to, r, done in outcomes:
            steps.append((float(p), _state(f"gym:{identity}: P[{s}][{a}]", to, S), float(r), bool(done)))
    except (KeyError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        message = f"gym:{identity}: P[{s}][{a}] is not a list of (probability, next state, reward, ended)"
        raise ParameterError(message, name="env", given=identity) from None
    if not all(math.isfinite(r) for *_, r, _ in steps):
        message = f"gym:{identity}: P[{s}][{a}]: expected finite rewards, got {[r for *_, r, _ in steps]}"
        raise ParameterError(message, name="env", given=identity)
    return steps


def load_gymnasium() -> Any:
    """Gymnasium.

    Raises:
        PrivcheckError: It is not installed.
    """
    try:
        import gymnasium
    except ImportError:
        raise PrivcheckError("gym:… needs Gymnasium: pip install 'privcheck[gym]'") from None
    return gymnasium
