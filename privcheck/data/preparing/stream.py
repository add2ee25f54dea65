"""The preparation itself: reads the raw table in chunks of whole episodes; writes the result whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from privcheck.data.preparing.raw_tables import Change, Chunk, as_numbers, read_chunks, refuse_unknown_users
from privcheck.data.preparing.recipes import FILE_NAME, Codebook, PreparationPlan, fold_label, fold_name, read_codebook
from privcheck.data.reading.tables import Problems
from privcheck.data.reading.users import DEPENDS, METADATA, RECIPE, unit_of_table
from privcheck.errors import FileFormatError, ParameterError, TrajectoryError
from privcheck.support.display import Brief, Progress, silent
from privcheck.support.files import whole_file
from privcheck.terms.unit import Unit

_REMEDY: Final = {  # as an option, and in a recipe
    "missing": '--missing drop (a recipe: missing = "drop" under [episodes]) leaves such episodes out',
    "unknown": "codes are whole numbers from 0, below --states (labels.states): correct the data, or list the labels",
    "label": "add it to the public list, [labels] of the recipe or the codebook; or name the label that it is another "
    "spelling of, under [aliases] of the recipe; if it means a missing value, name it there in empty under [file]",
    "number": "correct the data; a recipe can name the number of each label: values = {…} under [rewards]",
    "reward": "--reward-range LOW HIGH (range under [rewards]) gives the public bounds, --clip-rewards (clip = true) "
    "clips rewards to them",
    "step": "rows of an episode have to count 0, 1, 2, … or 1, 2, 3, …: --sort (sort = true under [steps]) sorts them, "
    '--missing drop (missing = "drop" under [episodes]) drops gaps',
    "chain": "next_state has to be the state of the next row; leave the column out to derive it",
    "short": "--horizon H with --short pad or --short drop (horizon and short under [episodes]) handles them",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense:
    """Episodes of H steps.

    Attributes:
        rows: First row of each episode in the file, shape (episodes,).
        users: User of each episode; None if the file has no users.
        states: Codes, shape (episodes, H + 1).
        actions: Codes, shape (episodes, H).
        rewards: Rewards in [0, 1], shape (episodes, H).
        changes: Changes, in the order of the file's rows.
    """

    rows: NDArray[np.int64]
    users: list[Any] | None
    states: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    changes: list[Change]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """A chunk's values by row, with masks of missing and clipped values."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    following: NDArray[np.int64] | None
    missing: NDArray[np.bool_]
    clipped: NDArray[np.bool_]


def shape_episodes(chunk: Chunk, plan: PreparationPlan, horizon: int, wanted: NDArray[np.bool_] | None) -> Dense:
    """The chunk's episodes, with H steps each.

    Args:
        chunk: Whole episodes.
        plan: Choices of the preparation.
        horizon: H.
        wanted: Mask of the episodes to keep, shape (episodes,); None for all.

    Raises:
        TrajectoryError: The plan has no rule for a value, a gap or a length; the message has the rows.
    """
    starts = chunk.starts
    ends = np.append(starts[1:], chunk.rows)
    rows = _read(chunk, plan, ends)
    lengths = ends - starts
    episode = np.repeat(np.arange(starts.size), lengths)
    place = np.arange(chunk.rows) - starts[episode]
    gaps = find_gaps(chunk, starts, episode, place)
    _refuse(chunk, plan, (rows.missing | gaps) if plan.missing == "refuse" else np.zeros(chunk.rows, bool), rows, gaps)
    _check_chain(chunk, plan, rows, ends, gaps)
    changes = list(chunk.changes)
    kept = np.ones(starts.size, bool)
    if "user" in chunk.columns:
        nobody = _nulls(chunk.columns["user"].take(pa.array(starts)))
        _note(changes, chunk, starts[kept & nobody], "episode dropped", "the user is missing")
        kept &= ~nobody
    if wanted is not None:
        _note(changes, chunk, starts[kept & ~wanted], "episode dropped", "other episodes of its user are kept")
        kept &= wanted
    broken = np.zeros(starts.size, bool)
    broken[episode[rows.missing | gaps]] = True
    short = lengths < horizon
    long = lengths > horizon
    if plan.short == "refuse" and (kept & ~broken & short).any():
        _complain(chunk, plan, starts[kept & ~broken & short], f"an episode of fewer than {horizon} steps", "short")
    if plan.horizon is None and (kept & ~broken & long).any():
        _complain(chunk, plan, starts[kept & ~broken & long], f"an episode of more than {horizon} steps", "short")
    _note(changes, chunk, starts[kept & broken], "episode dropped", "a value or a step is missing")
    kept &= ~broken
    if plan.short == "drop":
        _note(changes, chunk, starts[kept & short], "episode dropped", f"fewer than {horizon} steps")
        kept &= ~short
    _note(changes, chunk, starts[kept & long], "episode cut", f"after step {horizon}")
    _note(changes, chunk, ends[kept & short] - 1, "episode padded", f"up to step {horizon}, in the ended state")
    used = kept[episode] & (place < horizon)
    _note(changes, chunk, np.flatnonzero(rows.clipped & used), "reward clipped", "to its public bounds")
    dense = _fill(rows, plan, kept, (starts, lengths, episode, place, used), horizon)
    users = _name_users(chunk, plan) if "user" in chunk.columns else None
    return Dense(
        rows=chunk.numbers[starts[kept]],
        users=None if users is None else users.take(pa.array(starts[kept])).to_pylist(),
        states=dense[0],
        actions=dense[1],
        rewards=dense[2],
        changes=sorted(changes),
    )


def _fill(
    rows: _Rows, plan: PreparationPlan, kept: NDArray[np.bool_], where: tuple[NDArray[Any], ...], horizon: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    starts, lengths, episode, place, used = where
    number = np.cumsum(kept) - 1  # of each kept episode
    count = int(kept.sum())
    low, high = plan.bounds
    ended = 0 if plan.ended is None else plan.ended
    states = np.full((count, horizon + 1), ended, np.int64)
    actions = np.zeros((count, horizon), np.int64)
    rewards = np.full((count, horizon), (plan.padded_with - low) / (high - low))
    at = number[episode[used]], place[used]
    states[at], actions[at], rewards[at] = rows.state[used], rows.action[used], rows.reward[used]
    last = starts[kept] + np.minimum(lengths[kept], horizon) - 1
    after = np.minimum(lengths[kept], horizon)
    if rows.following is not None:
        states[np.arange(count), after] = rows.following[last]
    else:  # the state of the row after the cut
        longer = lengths[kept] > horizon
        states[np.flatnonzero(longer), horizon] = rows.state[last[longer] + 1]
        if plan.ended is None and not longer.all():
            message = "the state after an episode's last step is not in the file: give a next_state column, or a state "
            raise TrajectoryError(f"{message}of its own for ended episodes with --states S or --codebook")
    return states, actions, rewards


def _read(chunk: Chunk, plan: PreparationPlan, ends: NDArray[np.intp]) -> _Rows:
    states = None if plan.codebook is None else plan.codebook.states
    actions = None if plan.codebook is None else plan.codebook.actions
    state = _codes(chunk, "state", states, plan)
    action = _codes(chunk, "action", actions, plan)
    following = _codes(chunk, "next_state", states, plan) if "next_state" in chunk.columns else None
    reward = _rewards(chunk, plan)
    low, high = plan.bounds
    scaled = (reward - low) / (high - low)
    with np.errstate(invalid="ignore"):
        beyond = (scaled < 0) | (scaled > 1)
    if beyond.any() and not plan.clip_rewards:
        _complain(chunk, plan, np.flatnonzero(beyond), f"a reward outside {low:g} to {high:g}", "reward", of="reward")
    missing = (state < 0) | (action < 0) | np.isnan(reward)
    if following is not None:
        if plan.ended is not None:  # no state after the last step: the episode has ended
            following = following.copy()
            following[ends - 1] = np.where(following[ends - 1] < 0, plan.ended, following[ends - 1])
        missing |= following < 0
    return _Rows(
        state=state, action=action, reward=np.clip(scaled, 0, 1), following=following, missing=missing, clipped=beyond
    )


def _codes(chunk: Chunk, name: str, labels: tuple[str, ...] | None, plan: PreparationPlan) -> NDArray[np.int64]:
    """Codes of a column; −1 for missing values."""
    column = chunk.columns[name]
    if labels is None:
        if pa.types.is_string(column.type):
            numbers, odd = as_numbers(column, plan.decimal)
            if 0 < odd.sum() <= odd.size / 2:
                _complain(chunk, plan, np.flatnonzero(odd), f"{_an(name)} that is no code", "unknown", of=name)
            column = column if odd.any() else pa.array(numbers, mask=np.isnan(numbers))
        if pa.types.is_floating(column.type):  # whole numbers beside missing ones
            column = _whole(chunk, plan, name, column)
        if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
            message = f"column {plan.find(name)} holds {column.type}, not codes: give the public list of labels with "
            raise TrajectoryError(f"{message}--codebook FILE, or draft one with --draft-codebook FILE")
        values: NDArray[np.int64] = pc.fill_null(column.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        negative = values < 0
        if (negative & ~_nulls(column)).any():
            at = np.flatnonzero(negative & ~_nulls(column))
            _complain(chunk, plan, at, f"{_an(name)} below 0", "unknown", of=name)
        if plan.states is not None and name != "action" and (values >= plan.states).any():
            at = np.flatnonzero(values >= plan.states)
            _complain(chunk, plan, at, f"{_an(name)} that is not below --states {plan.states}", "unknown", of=name)
        return values
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    aliases = plan.aliases.get("action" if name == "action" else "state", {})
    aliases = {spelling: label for spelling, label in aliases.items() if label in labels}  # others are of a part
    found = pc.index_in(texts, value_set=pa.array([each.strip() for each in (*labels, *aliases)], pa.string()))
    unknown = _nulls(found) & ~_nulls(texts)
    if unknown.any():
        _complain(chunk, plan, np.flatnonzero(unknown), f"{_an(name)} that is not in the codebook", "label", of=name)
    codes: NDArray[np.int64] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    meant = np.array([*range(len(labels)), *(labels.index(label) for label in aliases.values())])
    return np.where(codes < 0, -1, meant[codes])


def _an(name: str) -> str:
    return f"an {name}" if name == "action" else f"a {name}"


def _whole(chunk: Chunk, plan: PreparationPlan, name: str, column: pa.Array) -> pa.Array:
    values = pc.fill_null(column, np.nan).to_numpy(zero_copy_only=False)
    missing = np.isnan(values)
    with np.errstate(invalid="ignore"):
        odd = ~missing & ((values != np.floor(values)) | (np.abs(values) > 2**31))
    if odd.any():
        _complain(chunk, plan, np.flatnonzero(odd), f"{_an(name)} that is no whole number", "unknown", of=name)
    return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)


def _rewards(chunk: Chunk, plan: PreparationPlan) -> NDArray[np.float64]:
    """Rewards in the file's unit; NaN where one is missing."""
    column = chunk.columns["reward"]
    labels, empty = plan.reward_values, plan.reward_empty
    if labels:
        texts = pc.dictionary_encode(column.cast(pa.string()))
        folded = [fold_label(text) for text in texts.dictionary.to_pylist()]
        codes = pc.index_in(pa.array(folded, pa.string()), value_set=pa.array([*map(fold_label, labels)], pa.string()))
        codes = codes.take(texts.indices)
        odd = _nulls(codes) & ~_nulls(texts)
        found = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)
        values = np.where(found < 0, np.nan, np.array(list(labels.values()), np.float64)[found])
    else:
        values, odd = as_numbers(column, plan.decimal)
    if odd.any():
        what = (
            "a reward that is not among its values"
            if labels
            else f"a reward that is no number such as 0{plan.decimal}5"
        )
        _complain(chunk, plan, np.flatnonzero(odd), what, "number", of="reward")
    return values if empty is None else np.where(np.isnan(values), empty, values)


def _nulls(column: pa.Array) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = pc.is_null(column).to_numpy(zero_copy_only=False)
    return nulls


def find_gaps(
    chunk: Chunk, starts: NDArray[np.intp], episode: NDArray[np.intp], place: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Mask of the rows with another step than their position requires; steps count from 0 or from 1."""
    if "step" not in chunk.columns:
        return np.zeros(place.size, bool)
    column = chunk.columns["step"]
    if pa.types.is_temporal(column.type):
        message = "column step holds times, not 0, 1, 2, …: number the rows of an episode by them with --sort --times "
        raise TrajectoryError(f"{message}order, or bin them: --sort --times 4h")
    try:
        step = pc.fill_null(column.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise TrajectoryError("column step: expected whole numbers, or times with --sort --times order") from error
    first = step[starts][episode]
    gaps: NDArray[np.bool_] = (step - first != place) | (first < 0) | (first > 1)
    return gaps


def _check_chain(
    chunk: Chunk, plan: PreparationPlan, rows: _Rows, ends: NDArray[np.intp], gaps: NDArray[np.bool_]
) -> None:
    if rows.following is None:
        return
    inside = np.ones(chunk.rows, bool)
    inside[ends - 1] = False
    at = np.flatnonzero(inside)
    wrong = at[(rows.following[at] != rows.state[at + 1]) & ~(rows.missing | gaps)[at] & ~(rows.missing | gaps)[at + 1]]
    if wrong.size:
        _complain(chunk, plan, wrong, "a next_state that is not the state of the next row", "chain", of="next_state")


def _refuse(chunk: Chunk, plan: PreparationPlan, bad: NDArray[np.bool_], rows: _Rows, gaps: NDArray[np.bool_]) -> None:
    if (bad & rows.missing).any():
        _complain(chunk, plan, np.flatnonzero(bad & rows.missing), "a missing value", "missing")
    if (bad & gaps).any():
        _complain(
            chunk, plan, np.flatnonzero(bad & gaps), "a step that does not follow the one before", "step", of="step"
        )


def _complain(
    chunk: Chunk, plan: PreparationPlan, at: NDArray[np.intp], what: str, kind: str, *, of: str | None = None
) -> None:
    def show(i: int) -> str:
        value = "" if of is None or not plan.show_values else f" ({chunk.columns[of][i]})"
        return f"row {chunk.numbers[i]}{value}"

    problems = Problems()
    problems.add(f"{what} ({_REMEDY[kind]})", at[np.argsort(chunk.numbers[at])], show)  # as the file has them
    read = chunk.numbers.max()
    if of is not None and not plan.show_values:
        problems.say("--show-values shows the values")
    raise TrajectoryError(f"the raw table cannot be prepared; among its rows 1 to {read:,}:", problems=problems.lines)


def _note(changes: list[Change], chunk: Chunk, at: Iterable[np.intp], what: str, how: str) -> None:
    changes.extend((int(chunk.numbers[int(i)]), what, how) for i in at)


_ENDINGS: Final = (".parquet", ".csv")
_COLUMNS: Final = pa.schema(
    [("episode", pa.int64()), ("step", pa.int32()), ("state", pa.int32()), ("action", pa.int32()),
     ("reward", pa.float64()), ("next_state", pa.int32())]
)  # fmt: skip
ENDED: Final = "(ended)"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prepared(Brief):
    """Result of a preparation.

    Attributes:
        data: The written file.
        rows: Number of rows of the raw table.
        episodes: Number of written episodes.
        steps: Number of steps per episode, H.
        changed: Number of changes of each kind.
        changes: The file with every change, by the row of the raw table; as private as the data.
        unit: Unit of privacy: the users, and the largest number of episodes of one.
        codebook: The file with the labels; None if the raw table contains codes.
        depends_on_data: Choices that depend on the data.
        recipe: Digest of the recipe; empty without one.
    """

    data: str
    rows: int
    episodes: int
    steps: int
    changed: dict[str, int]
    changes: str
    unit: Unit
    codebook: str | None
    depends_on_data: tuple[str, ...]
    recipe: str = ""


def prepare(
    raw: Path, out: Path, plan: PreparationPlan, *, recipe: str = "", progress: Progress = silent
) -> Prepared:  # fmt: skip
    """Write trajectories from a raw table, with the codebook and the list of changes beside them.

    Args:
        raw: A table that pyarrow reads, with one row per step.
        out: Output file: .parquet or .csv.
        plan: Choices of the preparation.
        recipe: Digest of the recipe with these choices, stored in the written file; empty without one.
        progress: Called with (rows, rows) after each chunk; the total is unknown.

    Raises:
        FileFormatError: A file cannot be read or written, or has another ending.
        TrajectoryError: The plan has no rule for a value; nothing is written.
        ParameterError: No episode is left.
    """
    if out.suffix.lower() not in _ENDINGS:
        raise FileFormatError(f"--out {out}: expected a file that ends in {', '.join(_ENDINGS)}")
    _refuse_other_labels(out, plan)
    if out.resolve() == raw.resolve():
        raise FileFormatError(f"--out {out} is the raw table itself: choose another name")
    refuse_unknown_users(raw, plan)
    chosen = _choose_episodes(raw, plan)
    changed: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    log = out.with_name(out.stem + ".changes.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    sizes = _Sizes()
    try:
        as_csv = out.suffix.lower() == ".csv"
        with whole_file(out) as file, whole_file(log) as notes, _Writer(file, plan, recipe, as_csv=as_csv) as writer:
            notes.write(b"row,what,how\n")
            for dense, rows in _shape(raw, plan, chosen):
                changed.update(what for _, what, _ in dense.changes)
                dropped.update(how for _, what, how in dense.changes if what in ("episode dropped", "row left out"))
                notes.write("".join(map(_line, dense.changes)).encode())
                sizes.add(dense, rows)
                writer.write(dense)
                progress(sizes.rows, sizes.rows)
            if not sizes.episodes:
                why = ", ".join(f"{how} ({count:,})" for how, count in dropped.most_common())
                raise ParameterError(f"no episode of {raw} is left; left out: {why or 'nothing, it has no rows'}")
    except OSError as error:
        raise FileFormatError(f"{out}: cannot be written: {error.strerror or error}") from error
    book = None if plan.codebook is None else out.with_name(FILE_NAME)
    if plan.codebook is not None and book is not None:
        _with_ended(plan.codebook, out.name).save(book)
    return Prepared(
        data=str(out),
        rows=sizes.rows,
        episodes=sizes.episodes,
        steps=sizes.steps,
        changed=dict(changed),
        changes=str(log),
        unit=_unit_of(plan, sizes.steps, named=writer.named),
        codebook=None if book is None else str(book),
        depends_on_data=plan.depends_on_data,
        recipe=recipe,
    )


def _refuse_other_labels(out: Path, plan: PreparationPlan) -> None:
    book = out.with_name(FILE_NAME)
    of = read_codebook(book).data if plan.codebook is not None and book.is_file() else ""
    if of not in ("", out.name) and out.with_name(of).exists():
        message = f"{book} has the labels of {of}, which would lose them"
        raise FileFormatError(f"{message}: prepare {out.name} in a folder of its own")


@dataclass(slots=True, kw_only=True)
class _Sizes:
    """Sizes of the episodes and rows processed so far."""

    rows: int = 0
    episodes: int = 0
    steps: int = 0

    def add(self, dense: Dense, rows: int) -> None:
        self.rows += rows
        self.episodes += len(dense.rows)
        self.steps = dense.actions.shape[1]


def find_labels(raw: Path, plan: PreparationPlan) -> tuple[set[str], set[str]]:
    """The states and actions that occur in a raw table, as texts: they are private until confirmed.

    Args:
        raw: The table.
        plan: How it is read; its codebook and number of codes are ignored.
    """
    states: set[str] = set()
    actions: set[str] = set()
    texts = Codebook(states=("?",), actions=("?",))
    for chunk in read_chunks(raw, replace(plan, codebook=texts, states=None)):
        for name, found in (("state", states), ("next_state", states), ("action", actions)):
            if name in chunk.columns:
                texts = pc.unique(chunk.columns[name].cast(pa.string())).to_pylist()
                found.update(text for text in texts if text is not None)
    return states, actions


def _shape(raw: Path, plan: PreparationPlan, chosen: set[int] | None) -> Iterator[tuple[Dense, int]]:
    horizon = plan.horizon
    for chunk in read_chunks(raw, plan):
        if horizon is None:
            horizon = int(chunk.starts[1] - chunk.starts[0]) if chunk.starts.size > 1 else chunk.rows
        wanted = None
        if chosen is not None:
            wanted = np.isin(chunk.numbers[chunk.starts], list(chosen))
        yield shape_episodes(chunk, plan, horizon, wanted), chunk.rows


def _choose_episodes(raw: Path, plan: PreparationPlan) -> set[int] | None:
    """First rows of the kept episodes, at most `plan.most` per user; None for all.

    The first episodes are those that begin first in the file. Random episodes are those with the smallest hashes of
    seed, user and number. So the choice depends only on the user's own rows.

    Raises:
        FileFormatError: A row has no user, or an episode has rows of two users.
        TrajectoryError: A user has too many episodes, and the plan does not say which to keep; or users have almost the
            same name, and it does not say whether they are one.
    """
    if plan.users.one_episode_is_one_user:
        return None
    best: dict[Any, list[tuple[bytes, int]]] = {}
    seen: Counter[Any] = Counter()
    for chunk in read_chunks(raw, plan):
        users = _name_users(chunk, plan)
        _refuse_two_users(chunk, users, plan)
        for start, user in zip(chunk.starts.tolist(), users.take(pa.array(chunk.starts)).to_pylist(), strict=True):
            if user is None:  # `missing` drops it
                continue
            row = int(chunk.numbers[start])
            if plan.keep == "random":
                rank = hashlib.blake2b(f"{plan.seed}|{user!r}|{seen[user]}".encode(), digest_size=16).digest()
            else:
                rank = row.to_bytes(8)
            seen[user] += 1
            kept = best.setdefault(user, [])
            kept.append((rank, row))
            if len(kept) > plan.most:
                if plan.keep == "refuse":
                    _refuse_too_many(plan, row)
                kept.remove(max(kept))
    if plan.spellings == "refuse":
        _refuse_spellings(seen)
    return None if plan.keep == "refuse" else {row for kept in best.values() for _, row in kept}


def _name_users(chunk: Chunk, plan: PreparationPlan) -> pa.Array:
    """The users of the rows; spellings of one name are one user if the plan says so."""
    users = chunk.columns["user"]
    if plan.spellings != "same" or not pa.types.is_string(users.type):
        return users
    encoded = users.dictionary_encode()
    names = [fold_name(name) for name in encoded.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(encoded.indices)


def _refuse_spellings(names: Iterable[Any]) -> None:
    counted = Counter(fold_name(name) for name in names if isinstance(name, str))
    if several := sum(count - 1 for count in counted.values()):
        message = f"the names of {several:,} users differ from another's only in case, blanks or leading zeros: one "
        message += "person under two names would be protected as two. Say what they are: --spellings same (one person)"
        raise TrajectoryError(f"{message} or --spellings different; in a recipe, spellings under [users]")


def _refuse_too_many(plan: PreparationPlan, row: int) -> NoReturn:
    number = f"episode {plan.most + 1} of its user begins in row {row}"
    said = "at most" if plan.users.max_trajectories else "without --max-trajectories,"
    message = (
        f"a user has more episodes than stated, {said} {plan.most}: {number}. State the most episodes of a user with "
        "--max-trajectories M, which costs more, or keep that many of each user: --keep first, or --keep random with "
        "--seed"
    )
    raise TrajectoryError(message)


def _unit_of(plan: PreparationPlan, steps: int, *, named: bool) -> Unit:
    users = plan.users if plan.users.one_episode_is_one_user else replace(plan.users, column=plan.find("user"))
    return unit_of_table(users, None, named=named, steps=steps)


def _refuse_two_users(chunk: Chunk, users: pa.Array, plan: PreparationPlan) -> None:
    codes: NDArray[np.int64] = (
        pc.fill_null(pc.dictionary_encode(users).indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    lengths = np.diff(np.append(chunk.starts, chunk.rows))
    unknown = (codes < 0) & (plan.missing != "drop")
    other = np.flatnonzero((codes != np.repeat(codes[chunk.starts], lengths)) | unknown)
    if other.size:
        rows = f"row {chunk.numbers[other[0]]}" + (f" and {other.size - 1:,} others" if other.size > 1 else "")
        message = f"{rows}: no user, or another one than in the first row of the episode"
        raise FileFormatError(f"{message}; write it into every row (--missing drop drops episodes without any)")


def _with_ended(codebook: Codebook, name: str) -> Codebook:
    """The codebook with the state of ended episodes added as the last code."""
    return replace(codebook, states=(*codebook.states, ENDED), data=name)


def _line(change: Change) -> str:
    row, what, how = change
    return f'{row},{what},"{how}"\n'


class _Writer:
    """Writer of trajectories in the form of `read_trajectories`: episodes from 0, steps from 1."""

    def __init__(self, file: BinaryIO, plan: PreparationPlan, recipe: str, *, as_csv: bool) -> None:
        self._file, self._plan, self._recipe, self._csv = file, plan, recipe, as_csv
        self._writer: Any = None
        self.named = False
        self._episode = 0

    def write(self, dense: Dense) -> None:
        count, steps = dense.actions.shape
        columns = [
            np.repeat(np.arange(self._episode, self._episode + count), steps),
            np.tile(np.arange(1, steps + 1, dtype=np.int32), count),
            dense.states[:, :-1].ravel().astype(np.int32),
            dense.actions.ravel().astype(np.int32),
            dense.rewards.ravel(),
            dense.states[:, 1:].ravel().astype(np.int32),
        ]
        table = pa.table(columns, schema=_COLUMNS)
        if dense.users is not None:
            user = pa.array([str(user) for user in dense.users], pa.string())
            table = table.append_column("user", user.take(pa.array(np.repeat(np.arange(count), steps))))
        self._episode += count
        if self._writer is None:
            self.named = dense.users is not None
            unit = _unit_of(self._plan, steps, named=self.named)
            said = {METADATA: json.dumps(unit.to_dict())}
            if self._plan.depends_on_data:
                said[DEPENDS] = json.dumps(self._plan.depends_on_data)
            table = table.replace_schema_metadata(said | ({RECIPE: self._recipe} if self._recipe else {}))
            made = csv.CSVWriter if self._csv else pq.ParquetWriter
            self._writer = made(self._file, table.schema)
        self._writer.write_table(table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
