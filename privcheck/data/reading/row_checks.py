"""Input check: rows (episode, step, state, action, reward, next_state) become trajectories, or are refused.

Everything is checked before anything is reported, so that one message has all kinds of problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.data.reading.tables import (
    Identifiers,
    Problems,
    Show,
    Table,
    Whole,
    check_range,
    check_unit_interval,
    identifiers,
    real_numbers,
    whole_numbers,
)
from privcheck.data.trajectories import Trajectories

NEEDED = ("episode", "step", "state", "action", "reward", "next_state")
TABLE_LIMIT = 8 * 2**30  # bytes of one step's transition counts, S·A·S floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ids:
    """The columns that index tables."""

    state: Whole
    action: Whole
    following: Whole

    def list_names(self) -> tuple[tuple[str, Whole], ...]:
        return ("state", self.state), ("next_state", self.following), ("action", self.action)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Order:
    """Rows with a valid episode and step, sorted by (episode, step), without repeated ones.

    Attributes:
        rows: Indices into the table.
        episode: Episode code of each row.
        step: Step of each row.
        starts: Index of each episode's first row.
        base: Number of the first step, 0 or 1.
        horizon: H, the length of most episodes.
    """

    rows: NDArray[np.intp]
    episode: NDArray[np.int64]
    step: NDArray[np.int64]
    starts: NDArray[np.intp]
    base: int
    horizon: int


def admit(
    table: Table, *, num_states: int | None, num_actions: int | None, trajectories: int = 1, problems: Problems
) -> Trajectories | None:
    """The trajectories, one row per episode, sorted by episode name; None if there are problems.

    Args:
        table: The columns `NEEDED`, and optionally `user`.
        num_states: S if known; otherwise the largest id + 1 is used.
        num_actions: A, as for S.
        trajectories: Largest allowed number of episodes of a user, if users are named.
        problems: List to which problems are added.
    """
    episode = identifiers(table, "episode", problems)
    user = identifiers(table, "user", problems) if "user" in table.columns else None
    step = whole_numbers(table, "step", problems)
    ids = _Ids(
        state=whole_numbers(table, "state", problems),
        action=whole_numbers(table, "action", problems),
        following=whole_numbers(table, "next_state", problems),
    )
    reward = real_numbers(table, "reward", problems)
    check_unit_interval("reward", reward, table.place, problems)
    sizes = _sizes(table, ids, (num_states, num_actions), problems)
    order = order_rows(table, episode, step, problems)
    if order is not None:
        _check_lengths(table, order, episode, step, problems)
        _check_chain(table, order, ids, problems)
        if user is not None:
            check_users(table, order, user, problems, most=trajectories)
    if problems.lines or order is None:
        return None
    shape = (len(order.starts), order.horizon)
    state, action, following = (
        column.values.astype(np.int32)[order.rows].reshape(shape) for column in (ids.state, ids.action, ids.following)
    )
    return Trajectories(
        states=np.concatenate([state, following[:, -1:]], axis=1),
        actions=action,
        rewards=reward[order.rows].reshape(shape),
        num_states=sizes[0],
        num_actions=sizes[1],
    )


def _sizes(table: Table, ids: _Ids, given: tuple[int | None, int | None], problems: Problems) -> tuple[int, int]:
    num_states, num_actions = given
    if num_states is None:
        num_states = 1 + max(_largest(ids.state), _largest(ids.following))
    else:
        check_range("state", ids.state, num_states, table.place, problems)
        check_range("next_state", ids.following, num_states, table.place, problems)
    if num_actions is None:
        num_actions = 1 + _largest(ids.action)
    else:
        check_range("action", ids.action, num_actions, table.place, problems)
    known = {"state": given[0], "next_state": given[0], "action": given[1]}
    inferred = [largest_id(name, column, table.place) for name, column in ids.list_names() if known[name] is None]
    refuse_too_large(num_states, num_actions, inferred, problems)
    return num_states, num_actions


def refuse_too_large(num_states: int, num_actions: int, inferred: list[str], problems: Problems) -> None:
    """Add a problem if one step's table of S·A·S counts exceeds `TABLE_LIMIT`.

    Args:
        num_states: S.
        num_actions: A.
        inferred: The largest ids of the columns from which S or A was taken, in words with their places.
        problems: List to which it is added.
    """
    size = num_states**2 * num_actions * 8
    if size <= TABLE_LIMIT:
        return
    origin = f" from the largest ids ({', '.join(inferred)})" if inferred else ""
    problems.say(
        f"S = {num_states:,} states and A = {num_actions:,} actions{origin}: one step's transition counts would take "
        f"S·A·S·8 = {size:.2g} bytes, above the limit of {TABLE_LIMIT:,}; number states and actions from 0 without "
        "gaps, or give num_states and num_actions (--set S=… --set A=…), which refuses the ids beyond them"
    )


def largest_id(name: str, column: Whole, place: Show) -> str:
    """A column's largest id and its place, in words."""
    if not column.valid.any():
        return f"no {name}"
    row = int(np.argmax(np.where(column.valid, column.values, -1)))
    return f"{name} {column.values[row]} at {place(row)}"


def _largest(column: Whole) -> int:
    return int(column.values.max(initial=0, where=column.valid))


def order_rows(table: Table, episode: Identifiers, step: Whole, problems: Problems) -> Order | None:
    """The valid rows by episode and step, of which a repeated one is a problem; None if there are none."""
    rows = np.flatnonzero((episode.codes >= 0) & step.valid)
    if not len(rows):
        return None
    codes, steps = episode.codes[rows], step.values[rows]
    ahead, later = np.diff(codes), np.diff(steps)
    if not bool(np.all((ahead > 0) | ((ahead == 0) & (later > 0)))):  # sorted files are not sorted again
        order = np.lexsort((steps, codes))
        rows, codes, steps = rows[order], codes[order], steps[order]
        repeated = np.concatenate([[False], (np.diff(codes) == 0) & (np.diff(steps) == 0)])
        problems.add(
            "the same episode and step twice (keep one row)",
            repeated,
            lambda i: f"{table.place(rows[i - 1])} and {table.place(rows[i])}",
        )
        rows, codes, steps = rows[~repeated], codes[~repeated], steps[~repeated]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(codes) != 0]))
    base = 0 if bool((steps == 0).any()) else 1
    lengths, how_many = np.unique(steps[np.append(starts[1:], len(steps)) - 1], return_counts=True)
    common = int(lengths[len(lengths) - 1 - np.argmax(how_many[::-1])])  # the longer one of two that are as common
    return Order(rows=rows, episode=codes, step=steps, starts=starts, base=base, horizon=max(common - base + 1, 1))


def _check_lengths(table: Table, order: Order, episode: Identifiers, step: Whole, problems: Problems) -> None:
    first, last = order.base, order.base + order.horizon - 1
    inside = (order.step >= first) & (order.step <= last)
    remedy = (
        f"every episode needs the same H steps, here {first} to {last} as in most episodes; cut longer ones, continue "
        "shorter ones in an absorbing state with reward 0, or leave them out"
    )
    problems.add(
        f"steps beyond the last ({remedy})",
        order.rows[~inside],
        table.place,
    )
    counts = np.add.reduceat(inside.astype(np.int64), order.starts)
    # an episode with a row whose step is unreadable is not blamed a second time for that step
    unreadable = np.zeros(len(episode.names) + 1, dtype=np.bool_)
    unreadable[episode.codes[~step.valid]] = True
    short = (counts < order.horizon) & ~unreadable[order.episode[order.starts]]

    def describe_gap(index: int) -> str:
        begin = int(order.starts[index])
        end = int(order.starts[index + 1]) if index + 1 < len(order.starts) else len(order.step)
        there = set(order.step[begin:end].tolist())
        gaps = [h for h in range(first, min(last, first + end - begin + 3) + 1) if h not in there]
        listed = ", ".join(map(str, gaps[:3]))
        total = order.horizon - int(counts[index])
        more = f" and {total - len(gaps[:3])} more" if total > len(gaps[:3]) else ""
        where = table.place(int(order.rows[begin:end].min()))
        return f"the episode that begins on {where} has no step {listed}{more}"

    problems.add(f"missing steps ({remedy})", short, describe_gap)


def _check_chain(table: Table, order: Order, ids: _Ids, problems: Problems) -> None:
    state, following = ids.state, ids.following
    now, after = order.rows[:-1], order.rows[1:]
    linked = (np.diff(order.episode) == 0) & (np.diff(order.step) == 1) & following.valid[now] & state.valid[after]
    broken = linked & (following.values[now] != state.values[after])
    problems.add(
        "the chain breaks: expected the next_state of a step to be the state of the step after",
        broken,
        lambda i: f"{table.place(now[i])}, then {table.place(after[i])}",
    )


def check_users(table: Table, order: Order, user: Identifiers, problems: Problems, *, most: int) -> None:
    """Report episodes of several users, and users with more than `most` episodes."""
    owner = user.codes[order.rows[order.starts]]  # of each episode, by its first row
    per_row = np.repeat(owner, np.diff(np.append(order.starts, len(order.rows))))
    known = (user.codes[order.rows] >= 0) & (per_row >= 0)
    problems.add(
        "an episode with rows of two users",
        order.rows[known & (user.codes[order.rows] != per_row)],
        table.place,
    )
    by_user = np.argsort(owner, kind="stable")
    ordered = owner[by_user]
    beyond = (ordered[most:] == ordered[: max(len(ordered) - most, 0)]) & (
        ordered[most:] >= 0
    )  # the one `most` before is his
    first_row = np.minimum.reduceat(order.rows, order.starts)

    def both(i: int) -> str:
        one, other = (table.place(first_row[by_user[at]]) for at in (i, i + most))
        return f"episodes that begin on {one} and on {other}" + (f", {most} apart" if most > 1 else "")

    episodes = "one episode" if most == 1 else f"{most} episodes"
    problems.add(
        f"a user with more than {episodes} (a guarantee for {most} would not cover this person: state the most "
        "episodes of a user with --max-trajectories M, which costs more, or keep fewer of each with `privcheck prepare "
        "--max-trajectories M --keep first`)",
        beyond,
        both,
    )
