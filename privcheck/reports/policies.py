"""Learned policies as artefacts: policy.npz with the probabilities, or the parameters, policy.json with their record.

A table has probabilities of actions in states (`Policy`); a policy on observations has parameters (`Weights`), and its
record says of what.

A policy is the result of a private agent; it is published if its guarantee holds and its noise protects. Both files are
written together, and a policy with two files that do not belong together is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.files import encode
from privcheck.reports.values import PolicyRecord, from_json
from privcheck.runtime.run_folders import find_file
from privcheck.support.display import Brief
from privcheck.support.files import whole_file, write_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ARRAY_NAME: Final = "policy.npz"
JSON_NAME: Final = "policy.json"
_ROUNDING: Final = 1e-9  # by how much the probabilities of a state may miss 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Policy(Brief):
    """Action probabilities at each step in each state, with their origin.

    Attributes:
        probabilities: (H, S, A), of each action.
        record: Its origin, its value, and why it may be published.

    Raises:
        ParameterError: The values are not probabilities, or of other sizes than the record's.
    """

    probabilities: NDArray[np.float64]
    record: PolicyRecord

    def __post_init__(self) -> None:
        given, sizes = self.probabilities, (self.record.steps, self.record.states, self.record.actions)
        if given.shape != sizes:
            raise ParameterError(f"a policy of {sizes} steps, states and actions; got an array of {given.shape}")
        if not (np.isfinite(given).all() and (given >= 0).all() and np.abs(given.sum(axis=2) - 1).max() < _ROUNDING):
            raise ParameterError("expected probabilities of actions that add up to 1 in every state at every step")
        for name, labels, count in (("states", self.states, sizes[1]), ("actions", self.actions, sizes[2])):
            if len(labels) != count or len(set(labels)) != count:
                raise ParameterError(f"expected {count} different labels of {name}; got {len(set(labels))}", name=name)

    @property
    def states(self) -> tuple[str, ...]:
        """Labels of the states, in the order of their codes."""
        return self.record.labels.states or tuple(map(str, range(self.record.states)))

    @property
    def actions(self) -> tuple[str, ...]:
        """Labels of the actions, in the order of their codes."""
        return self.record.labels.actions or tuple(map(str, range(self.record.actions)))

    def act(self, step: int, state: int | str, rng: np.random.Generator | None = None) -> str:
        """Choose an action: the most likely one, or one drawn by the probabilities; returns its label.

        Args:
            step: From 0 to H − 1.
            state: Its code or its label.
            rng: The random generator; None for the most likely action, the first of equals.

        Raises:
            ParameterError: There is no such step or state.
        """
        if not 0 <= step < self.record.steps:
            raise ParameterError(f"step {step}: expected 0 to {self.record.steps - 1}", name="step", given=step)
        chances = self.probabilities[step, self._code(state)]
        chosen = chances.argmax() if rng is None else rng.choice(chances.size, p=chances / chances.sum())
        return self.actions[int(chosen)]

    def _code(self, state: int | str) -> int:
        if isinstance(state, str):
            if state not in self.states:
                shown = ", ".join(self.states[:5])
                message = f"no state {state!r}; the policy knows {shown}{', …' if len(self.states) > 5 else ''}"
                raise ParameterError(message, name="state", given=state)
            return self.states.index(state)
        if not 0 <= state < self.record.states:
            message = f"state {state}: expected a code from 0 to {self.record.states - 1}, or a label"
            raise ParameterError(message, name="state", given=state)
        return int(state)

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame with step, state, action and probability, for actions with positive probability.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        step, state, action = np.nonzero(self.probabilities)
        columns = {
            "step": step,
            "state": np.array(self.states, dtype=object)[state],
            "action": np.array(self.actions, dtype=object)[action],
            "probability": self.probabilities[step, state, action],
        }
        return make_frame(columns)

    def plot(self) -> Figure:
        """Draw a heat map: the most likely action of each state at each step, paler if it is less likely."""
        from privcheck.reports.plots import draw_policy

        return draw_policy(self.probabilities, self.states, self.actions, title=self.record.algorithm)

    def save(self, directory: Path | str) -> Path:
        """Write policy.npz and policy.json, and return the path of the former.

        Raises:
            OSError: The files cannot be written.
        """
        return _write(Path(directory), self.record, probabilities=self.probabilities)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Weights(Brief):
    """Parameters of a policy on observations, with their origin.

    Attributes:
        parameters: (d,).
        record: Its origin, its form, its value, and why it may be published.

    Raises:
        ParameterError: The parameters are not finite numbers (d,), or the record says no form.
    """

    parameters: NDArray[np.float64]
    record: PolicyRecord

    def __post_init__(self) -> None:
        if self.parameters.ndim != 1 or not np.isfinite(self.parameters).all():
            raise ParameterError(f"expected finite parameters (d,), got an array of {self.parameters.shape}")
        if self.record.form is None:
            raise ParameterError("expected a record that says of what form of policy the parameters are", name="form")

    def save(self, directory: Path | str) -> Path:
        """Write policy.npz and policy.json, and return the path of the former.

        Raises:
            OSError: The files cannot be written.
        """
        return _write(Path(directory), self.record, parameters=self.parameters)


def _write(directory: Path, record: PolicyRecord, **arrays: NDArray[np.float64]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type] # typed as if a name could be `allow_pickle`
    with whole_file(directory / ARRAY_NAME) as file:
        file.write(buffer.getvalue())
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    write_whole(directory / JSON_NAME, encode(replace(record, policy=ARRAY_NAME, digest=digest)))
    return directory / ARRAY_NAME


def load_policy(path: Path | str) -> Policy:
    """Load a table of probabilities that `run` or `check` wrote.

    Args:
        path: Its policy.npz, its policy.json, or the directory of both, or of the run.

    Raises:
        FileFormatError: A file is missing, damaged, or does not belong to the other; or it is a policy on observations.
    """
    loaded = load_learned(path)
    if isinstance(loaded, Weights):
        message = f"{path}: a policy on observations, which has no table of probabilities"
        raise FileFormatError(f"{message}: `privcheck_algorithms.trained.load_trained` reads it")
    return loaded


def load_learned(path: Path | str) -> Policy | Weights:
    """Load a policy of either kind.

    Args:
        path: Its policy.npz, its policy.json, or the directory of both, or of the run.

    Raises:
        FileFormatError: A file is missing, damaged, or does not belong to the other.
    """
    given = Path(path)
    directory = find_file(given, JSON_NAME).parent if given.is_dir() else given.parent
    if not given.is_dir() and given.name not in (ARRAY_NAME, JSON_NAME):
        raise FileFormatError(f"{given}: expected {ARRAY_NAME}, {JSON_NAME} or the directory that `run --out` wrote")
    try:
        text, raw = (directory / JSON_NAME).read_bytes(), (directory / ARRAY_NAME).read_bytes()
    except OSError as error:
        message = f"no policy in {directory}: {error.strerror}: {Path(error.filename or '').name}"
        raise FileFormatError(f"{message}; `privcheck run NAME --out DIR` writes one") from None
    unreadable = f"{directory}: not a policy that this version can read"
    try:
        record = from_json(PolicyRecord, json.loads(text.decode("utf-8")), "policy")
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{unreadable}: {error}") from None
    if record.digest != hashlib.sha256(raw).hexdigest():
        message = f"{directory / JSON_NAME} does not match {ARRAY_NAME}: one of the two was changed"
        raise FileFormatError(f"{message}; run the agent again, or find the file that belongs to it")
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as file:
            if record.form is not None:
                return Weights(parameters=np.asarray(file["parameters"], dtype=np.float64), record=record)
            return Policy(probabilities=np.asarray(file["probabilities"], dtype=np.float64), record=record)
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{unreadable}: {error}") from None


def describe_policy(policy: Policy, *, most: int = 20) -> list[tuple[str, ...]]:
    """Rows of state, steps, most likely action and its probability; equal steps of a state share one row.

    Args:
        policy: The policy.
        most: Maximum number of rows; a last one states the number left out.
    """
    likeliest = policy.probabilities.argmax(axis=2)
    chance = policy.probabilities.max(axis=2)
    rows: list[tuple[str, ...]] = []
    for state, label in enumerate(policy.states):
        column = [(int(a), round(float(p), 3)) for a, p in zip(likeliest[:, state], chance[:, state], strict=True)]
        start = 0
        for step in range(1, len(column) + 1):
            if step == len(column) or column[step] != column[start]:
                span = f"{start}" if step - start == 1 else f"{start}–{step - 1}"
                rows.append((label, span, policy.actions[column[start][0]], f"{column[start][1]:.3g}"))
                start = step
    if len(rows) > most:
        rest: tuple[Any, ...] = (f"… and {len(rows) - most} more rows", "", "", "")
        rows = [*rows[:most], rest]
    return rows
