"""The pair of neighbours as a table for readers: what each user does, step by step, in D and in D′."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.finite_mdp import FiniteMDP
from privcheck.pictures import ShownPair
from privcheck.regressors import Regressors
from privcheck.trajectories import Trajectories

_ROWS: Final = 40  # after equal ones in a row were written once
_COORDINATES: Final = 2  # of a vector that are written out

Row = tuple[str, ...]


def show_pair(pair: tuple[Any, Any], title: str = "") -> ShownPair | None:
    """Returns the two users side by side; None where both are absent.

    Trajectories are shown as states, actions and rewards, regressors as vectors, targets and weights, finite models as
    response functions; anything else in its own words.

    Args:
        pair: The user's data in D and in D′; None where the user is absent.
        title: What the rows are; as usual where it is empty.
    """
    present = next((user for user in pair if user is not None), None)
    columns: tuple[str, ...]
    if isinstance(present, Trajectories):
        cells = [None if user is None else _trajectory(user) for user in pair]
        labels = [*_numbers(present.horizon), "after"]
        usual, row, columns = "The user in whom D and D′ differ, step by step.", "step", ("state", "action", "reward")
    elif isinstance(present, Regressors):
        cells = [None if user is None else _show_regressors(user) for user in pair]
        labels, columns = _numbers(present.horizon), _names(present)
        usual, row = "What the user in whom D and D′ differ adds to the statistics, step by step.", "step"
    elif isinstance(present, FiniteMDP):
        cells = [None if user is None else _responses(user) for user in pair]
        labels, columns = _questions(present), ("next state", "reward")
        usual, row = "How the first user answers, whatever the agent does: a response function.", "step, state, action"
    elif present is not None:
        cells = [None if user is None else [(str(user),)] for user in pair]
        labels, columns, usual, row = ["all"], ("data",), "The data in which D and D′ differ.", ""
    else:
        return None
    return side_by_side(title or usual, row=row, columns=columns, labels=labels, cells=(cells[0], cells[1]))


def side_by_side(
    title: str,
    *,
    row: str,
    columns: tuple[str, ...],
    labels: Sequence[str],
    cells: tuple[Sequence[Row] | None, Sequence[Row] | None],
    note: str = "",
) -> ShownPair:
    """Returns the table with equal rows in succession written once, cut where it is long.

    Args:
        title: What the rows are.
        row: Their heading.
        columns: What is shown of each neighbour.
        labels: Of each row, numbers where they can be joined to a range.
        cells: The rows of D and of D′; None for a user who is absent.
        note: What else must be known.
    """
    rows = [tuple(None if side is None else side[i] for side in cells) for i in range(len(labels))]
    starts = [i for i in range(len(rows)) if i == 0 or rows[i] != rows[i - 1] or not labels[i].isdigit()]
    ends = [*(start - 1 for start in starts[1:]), len(rows) - 1]
    kept = list(zip(starts, ends, strict=True))
    if len(kept) > _ROWS:
        note = " ".join(part for part in (note, f"{len(kept) - _ROWS} more rows are omitted.") if part)
        kept = kept[:_ROWS]
    first, second = (None if side is None else tuple(side[start] for start, _ in kept) for side in cells)
    return ShownPair(
        title=title,
        row=row,
        columns=columns,
        labels=tuple(labels[a] if a == b else f"{labels[a]}–{labels[b]}" for a, b in kept),
        first=first,
        second=second,
        note=note,
    )


def _numbers(steps: int) -> list[str]:
    return [str(step) for step in range(1, steps + 1)]


def _trajectory(user: Trajectories) -> list[Row]:
    states, actions, rewards = user.states[0].tolist(), user.actions[0].tolist(), user.rewards[0].tolist()
    rows = [(str(s), str(a), f"{r:g}") for s, a, r in zip(states, actions, rewards, strict=False)]
    return [*rows, (str(states[-1]), "", "")]


def _names(user: Regressors) -> tuple[str, ...]:
    return (*user.vectors, *user.targets, *user.weights)


def _show_regressors(user: Regressors) -> list[Row]:
    vectors = [column[0] for column in user.vectors.values()]
    numbers = [column[0] for column in (*user.targets.values(), *user.weights.values())]
    return [
        (*(_vector(column[step]) for column in vectors), *(f"{column[step]:.4g}" for column in numbers))
        for step in range(user.horizon)
    ]


def _vector(vector: NDArray[np.float64]) -> str:
    shown = [f"{x:.4g}" for x in vector[:_COORDINATES]]
    rest = vector[_COORDINATES:]
    if rest.size:
        shown.append("0, …" if not rest.any() else "…")
    return f"({', '.join(shown)})"


def _questions(user: FiniteMDP) -> list[str]:
    steps = user.transition.shape[0]
    return [
        f"{'any' if steps == 1 else h + 1}, {s}, {a}"
        for h in range(steps)
        for s in range(user.states)
        for a in range(user.actions)
    ]


def _responses(user: FiniteMDP) -> list[Row]:
    shape = user.transition.shape
    likeliest = user.transition.argmax(axis=3).reshape(-1)
    certain = user.transition.max(axis=3).reshape(-1) == 1.0
    rewards = np.broadcast_to(user.reward, shape).reshape(-1, shape[3])[np.arange(likeliest.size), likeliest]
    return [
        (f"{s}" if sure else f"{s}, most likely", f"{r:g}")
        for s, sure, r in zip(likeliest.tolist(), certain.tolist(), rewards.tolist(), strict=True)
    ]
