"""Drafts of recipes: guesses about a raw table, for a person to confirm.

Names, types, spellings and orders are guessed. Values that must be public (H, the bounds of rewards, the number of
episodes per user) are left open unless the data show only one plausible value; a comment says what the data show.
"""

from __future__ import annotations

import re
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privcheck.data.preparing.raw_tables import (
    FORMATS,
    Chunk,
    Source,
    as_numbers,
    as_times,
    count_episodes,
    find_torn,
    number_values,
    open_table,
    read_chunks,
    read_whole,
    split_name,
)
from privcheck.data.preparing.recipes import UNKNOWN, PreparationPlan, fold_label, fold_name, write_toml
from privcheck.data.preparing.stream import find_gaps
from privcheck.data.reading.tables import require_file
from privcheck.data.reading.users import PEOPLE, Users, find_identifiers
from privcheck.errors import FileFormatError, UnknownNameError
from privcheck.support.display import Brief
from privcheck.terms.unit import name_person

SHOWN: Final = 10  # rows of a draft
_HEAD: Final = 50  # lines by which the delimiter and the header are guessed
_FEW_REWARDS: Final = 12  # labels in a column of rewards that have a number each
_FIRST_YEAR: Final = 1000  # before it, a year of two digits was read as one of four
_LABELS: Final = 2000  # that a recipe lists
_OPTIONAL: Final = {
    "step": "the column of steps or times",
    "user": "the column of users",
}  # which a draft looks for itself
_EITHER: Final = ("episode", "terminal")  # a table has one of them
_ID: Final = r"(_?id|_?no|_?code|s)?"
_NAMES: Final = {  # what columns are called
    "episode": rf"(episode|(icu)?stay|traj(ectory)?|visit(_occurrence)?|encounter|admission|hadm|session|trip){_ID}",
    "step": r"(step|bloc|time_?step|t|hour|day|time(stamp)?|(chart|date|.*_|.*_date)time|(.*_)?date|offset|order)",
    "state": rf"((?!next_)(.*_)?(state|cluster|severity)|observation|obs|condition|sofa|status){_ID}",
    "action": rf"((.*_)?(action|treatment)|drug(_concept|_exposure)?|dose|decision|arm|therapy|intervention){_ID}",
    "reward": r"(rewards?|r|score|return|outcome|utility)",
    "next_state": rf"next_?(state|obs|observation){_ID}",
    "terminal": r"(terminals?|dones?|is_last)",
}
_MARKS: Final = ("-", "--", "–", ".", "?", "k.A.", "k. A.", "n.a.", "N.A.", "missing", "Missing")  # of a missing value
_FORMATS: Final = (
    "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y%m%d",
    "%d.%m.%y %H:%M", "%d.%m.%y", "%d/%m/%y %H:%M", "%d/%m/%y", "%m/%d/%y %H:%M", "%m/%d/%y",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Draft(Brief):
    """A draft of a recipe. All of it except the names is private, because it comes from the data.

    Attributes:
        recipe: Text of the recipe.
        layout: The known layout that it follows; empty if none fits.
        guessed: Columns: our name, the file's name, type, number of missing values.
        counts: Numbers of rows, episodes and irregularities.
        open: Values to be filled in by a person, as `table.name`.
        rows: Column names, then the first rows as they would be read.
    """

    recipe: str
    layout: str
    guessed: tuple[tuple[str, str, str, int], ...]
    counts: dict[str, int]
    open: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class _Notes:
    """A recipe under construction: values by table and name, each with a comment."""

    lines: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def say(self, place: str, value: object, why: str = "") -> None:
        table, name = place.split(".")
        comment = f"  # {why}" if why else ""
        self.lines.setdefault(table, []).append(f"{name} = {write_toml(value)}{comment}")
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if value == UNKNOWN or UNKNOWN in inside:
            self.open.append(place)

    def note(self, table: str, comment: str) -> None:
        self.lines.setdefault(table, []).append(f"# {comment}")


def layouts() -> dict[str, dict[str, Any]]:
    """The known layouts by name, as parts of recipes."""
    folder = resources.files("privcheck.data.preparing") / "layouts"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): tomllib.loads(file.read_text("utf-8")) for file in files}


def draft_recipe(raw: Path, *, layout: str | None = None, columns: Mapping[str, str] | None = None) -> Draft:
    """Draft a recipe for a raw table, with the table in memory.

    Args:
        raw: The table.
        layout: A known layout, by name; None for the first one with all its columns in the table.
        columns: Known column names of the file, by our names.

    Raises:
        FileFormatError: The table cannot be read, or no column fits one of ours that is needed.
        ParameterError: A name is not one of ours.
        UnknownNameError: There is no such layout.
    """
    path = require_file(raw, tuple(FORMATS))
    notes, counts = _Notes(), dict[str, int]()
    plan = _draft_file(path, notes)
    there = open_table(path, plan).schema.names
    plan = replace(plan, columns=columns or {})
    source = open_table(path, plan)
    layout, known = _choose_layout(layout, source.schema.names)
    given = plan.columns
    named = _draft_columns(path, source.schema.names, {**known.get("columns", {}), **given}, notes)
    table = _read(source, named)
    if not table.num_rows:
        raise FileFormatError(f"{path} has a header but no rows: expected one row per step")
    if source.text:
        measured = [part for ours in ("state", "reward") for part in split_name(named[ours], there)]
        columns_read = read_whole(source, measured)[1].columns
        if plan.delimiter != "," and any(map(_has_decimal_commas, columns_read)):
            notes.say("file.decimal", ",", "numbers are written 0,5")
            plan = replace(plan, decimal=",")
        plan = replace(plan, empty=_guess_empty(table))
        notes.say("file.empty", list(plan.empty), 'texts that mean a missing value, beside "" and NA: add yours')
        source = open_table(path, plan)
        table = _read(source, named)
    if "step" not in named and "terminal" not in named and (times := _find_times(source, named)):
        named["step"] = times[0]
        others = f"; or {', '.join(times[1:4])}" if times[1:] else ""
        notes.say("columns.step", times[0], f"times that differ within episodes{others}")
        table = _read(source, named)
    counts |= {"rows": table.num_rows, "malformed rows": len(source.dropped)}
    table = _typed(table, plan.decimal)
    steps = _draft_steps(table, known.get("steps", {}), notes, counts)
    _draft_labels(table, source, {ours: split_name(named[ours], there) for ours in ("state", "action")}, plan, notes)
    _draft_rewards(table, plan.decimal, notes)
    if known.get("users", {}).get("one_episode_is_one_user"):
        notes.say("users.one_episode_is_one_user", True, "simulated data: each episode belongs to a different user")
    else:
        named |= _draft_users(source, named, given.get("user"), notes, counts)
    readable = steps.pop("readable", True)
    preview = replace(plan, columns=named, users=Users(one_episode_is_one_user="user" not in named), **steps)
    shown = _draft_lengths(path, preview, notes, counts, but="" if readable else "step")
    read = _typed(read_whole(source, list(named.values()))[1].rename_columns(list(named)), plan.decimal)
    kinds = ((column.type, column.null_count) for column in read.columns)
    order = ("file", "columns", "steps", "bins", "labels", "aliases", "rewards", "episodes", "users")
    head = (
        f"# How {path.name} becomes trajectories. Check it: replace every {UNKNOWN!r} by your choice; values\n"
        "# read from the data (labels above all) are private until you confirm that they are public. Then set\n"
        "# confirmed = true.\n"
        "confirmed = false\n"
    )
    parts = [f"[{part}]\n" + "\n".join(notes.lines[part]) + "\n" for part in order if part in notes.lines]
    return Draft(
        recipe="\n".join([head, *parts]),
        layout=layout,
        guessed=tuple((ours, named[ours], str(kind), nulls) for ours, (kind, nulls) in zip(named, kinds, strict=True)),
        counts={what: count for what, count in counts.items() if count or what in ("rows", "episodes")},
        open=tuple(notes.open),
        rows=shown,
    )


def _read(source: Source, columns: Mapping[str, str]) -> pa.Table:
    """Columns of all rows by our names; episodes are counted if the table has no column of them."""
    _, table = read_whole(source, list(columns.values()))
    table = table.rename_columns(list(columns))
    return table if "episode" in columns else count_episodes(table, 0)[0]


def _typed(table: pa.Table, decimal: str) -> pa.Table:
    """The table with texts as the numbers or times that all values of a column are; names stay texts."""
    for at, name in enumerate(table.column_names):
        column = table.column(at)
        if name in ("episode", "user") or not pa.types.is_string(column.type):
            continue
        numbers, odd = as_numbers(column, decimal)
        missing = np.isnan(numbers)
        if missing.all() and not odd.any():
            continue
        if not odd.any():
            whole = not (numbers[~missing] % 1).any() and bool(np.abs(numbers[~missing]).max() < 2**53)
            kind = pa.int64() if whole else pa.float64()
            column = pa.chunked_array([pa.array(numbers, mask=missing).cast(kind)])
        else:
            times, odd = as_times(pc.utf8_trim_whitespace(column))
            column = column if odd.any() else times
        table = table.set_column(at, name, column)
    return table


def _guess_empty(table: pa.Table) -> tuple[str, ...]:
    """Marks of a missing value in states, actions and rewards."""
    found = set[str]()
    for name in ("state", "action", "reward"):
        marks = pc.is_in(pc.utf8_trim_whitespace(table.column(name)), value_set=pa.array(_MARKS))
        found.update(text.strip() for text in pc.unique(table.column(name).filter(marks)).to_pylist())
    return tuple(sorted(found))


def _draft_file(path: Path, notes: _Notes) -> PreparationPlan:
    if FORMATS[path.suffix.lower()] != "csv":
        return PreparationPlan()
    encoding = _guess_encoding(path)
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding=encoding, newline="") as file:
        head = [line for line, _ in zip(file, range(_HEAD), strict=False)]
    found = Counter({mark: "".join(head).count(mark) for mark in (usual, ",", ";", "\t", "|")}).most_common(1)[0]
    delimiter = usual if found[1] == 0 else found[0]
    marks = [line.count(delimiter) for line in head if line.strip()]
    common = Counter(marks).most_common(1)[0][0] if marks else 0
    # a title above the header has fewer values than the rows below
    skip = next((at for at, line in enumerate(head) if line.strip() and line.count(delimiter) >= common), 0)
    plan = PreparationPlan(encoding=encoding, delimiter=delimiter, skip=skip)
    torn = find_torn(path, plan)
    if encoding != "utf-8":
        notes.say("file.encoding", encoding, "not UTF-8: check that names with accents are correct below")
    if delimiter != usual:
        notes.say("file.delimiter", delimiter)
    if skip:
        notes.say("file.skip", skip, "lines before the header")
    if torn:
        rows = f"{len(torn)} rows have another number of values than the header, such as row {torn[0][0]}"
        why = f"{rows}: drop them, or correct them"
        notes.say("file.malformed", UNKNOWN, why)
    return replace(plan, malformed="drop" if torn else "refuse")


def _guess_encoding(path: Path) -> str:
    data = path.read_bytes()
    if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _choose_layout(name: str | None, there: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    known = layouts()
    if name is None:
        fits = (each for each, layout in known.items() if set(layout["columns"].values()) <= set(there))
        name = next(fits, None)
    elif name not in known:
        raise UnknownNameError("layout", name, sorted(known))
    return ("", {}) if name is None else (name, known[name])


def _draft_columns(path: Path, there: Sequence[str], known: Mapping[str, str], notes: _Notes) -> dict[str, str]:
    """The file's names of our columns, as far as they can be guessed, without the users' column."""
    columns = {ours: name for ours, name in known.items() if ours != "user" and name in there}

    def find(ours: str) -> list[str]:
        taken = {part for name in columns.values() for part in split_name(name, there[: len(there)])}
        rest = [name for name in there if name not in taken]
        return [name for name in rest if re.fullmatch(_NAMES[ours], name.strip(), re.IGNORECASE)]

    for ours in _NAMES:
        if ours not in columns and not (ours in _EITHER and set(_EITHER) & set(columns)) and (fits := find(ours)):
            columns[ours] = min(fits, key=lambda name: name.lower() != ours)
    for ours, name in columns.items():
        others = ", ".join(find(ours)[:5])
        notes.say(f"columns.{ours}", name, f"or {others}" if others else "")
    wanted = ("terminal" if "terminal" in columns else "episode", "state", "action", "reward")
    missing = [name for name in wanted if name not in columns]
    if missing:
        rest = ", ".join(name for name in there if name not in columns.values())
        message = f"{path}: no column looks like {', '.join(missing)}; there are {rest[:400]}"
        example = " ".join(f"--column {name}=…" for name in missing)
        more = [f"--column {name}=… for {what}" for name, what in _OPTIONAL.items() if name not in columns]
        also = f" (and, where guesses are wrong, {' and '.join(more)})" if more else ""
        raise FileFormatError(f"{message}. Name the column, and draft again: {example}{also}")
    return columns


def _draft_steps(
    table: pa.Table, known: Mapping[str, Any], notes: _Notes, counts: dict[str, int]
) -> dict[str, Any]:  # fmt: skip
    """Note how rows become steps, and return the same choices for the preview."""
    episode = number_values(table.column("episode"))
    counts["episodes"] = int(np.unique(episode).size)
    starts = np.append(True, episode[1:] != episode[:-1])
    again = int(starts.sum()) > counts["episodes"] > 0
    if "step" not in table.column_names:
        if "terminal" not in table.column_names:
            notes.note(
                "steps",
                'no column of steps or times: rows are steps in their present order; else add step = "…" to [columns]',
            )
        if again:
            why = "the rows of an episode are not adjacent, and only the file's order says which comes first"
            notes.say("steps.sort", UNKNOWN, f"{why}: true if it is that of time; else name the column of times")
        return {"sort": again}
    values, form = _read_times(table.column("step"), notes)
    if values is None:
        notes.say("steps.sort", True)
        notes.say("steps.times", "order", '"order" (one row per step), or the width of a bin: "30min", "4h", "1d"')
        return {"sort": True, "readable": False}
    times = known.get("times", "order" if values.dtype == np.int64 else None)
    order = np.lexsort((values, episode))
    same, broken = _look_at_steps(episode[order], values[order])
    counts["rows of the same step as another"] = same
    if times is None and broken > counts["episodes"] // 2:
        times = "order"
    sort = times is not None or again or bool((order != np.arange(order.size)).any())
    if sort:
        notes.say("steps.sort", True)
    if times is not None:
        notes.say("steps.times", times, '"order" (one row per step), or the width of a bin: "30min", "4h", "1d"')
    binned = times is not None and times != "order"
    several = known.get("several", "last") if sort and (same or binned) else "refuse"
    differ = _count_contradictions(table, values) if same and not binned else 0
    counts["of them, rows with other values"] = differ
    if differ and several != "refuse" and times is not None:
        why = f"{differ} rows have the {'step' if times is None else 'time'} of another row and other values: which one"
        notes.say("steps.several", UNKNOWN, f"{why} to use, first or last")
    elif same and times is None:
        notes.say("steps.several", UNKNOWN, f"{same} rows repeat a step: which one to use, first or last")
    elif several != "refuse":
        why = f"the row of a {'bin' if binned else 'time'} to use: first or last"
        more = f"; {same} rows repeat a {'step' if times is None else 'time'}" if same else ""
        notes.say("steps.several", several, f"{why}{more}")
    return {"sort": sort, "times": times, "time_format": form, "several": several}


def _count_contradictions(table: pa.Table, step: NDArray[Any]) -> int:
    """Number of rows with the episode and step of another row, but another state, action or reward."""
    values = [number_values(table.column(name)) for name in ("episode", "state", "action", "reward")]
    rows = np.unique(np.column_stack([values[0], np.unique(step, return_inverse=True)[1], *values[1:]]), axis=0)
    return len(rows) - len(np.unique(rows[:, :2], axis=0))


def _has_decimal_commas(column: pa.ChunkedArray) -> bool:
    """Whether most of a column of texts are numbers, some of them with a decimal comma."""
    found = pc.match_substring_regex(column, r"^\s*[-+]?\d+(,\d+)?\s*$")
    most = (pc.sum(found).as_py() or 0) * 2 > len(column) - column.null_count
    return most and bool(pc.any(pc.match_substring(column, ",")).as_py())


def _find_times(source: Source, named: Mapping[str, str]) -> list[str]:
    """Columns of times that differ within episodes, those with the most distinct times first."""
    rest = [name for name in source.schema.names if name not in named.values()]
    read = _read(source, {"episode": named["episode"], **{f"\0{name}": name for name in rest}})
    episodes, found = pc.count_distinct(read.column("episode")).as_py(), {}
    for name in rest:
        column = read.column(f"\0{name}")
        if pa.types.is_string(column.type) and not (iso := as_times(pc.utf8_trim_whitespace(column)))[1].any():
            column = iso[0]
        if column.null_count == len(column):
            continue
        if pa.types.is_timestamp(column.type) or (pa.types.is_string(column.type) and _parse_times(column)):
            pairs = pa.table({"episode": read.column("episode"), "time": column})
            differ = pairs.group_by(["episode", "time"]).aggregate([]).num_rows
            found[name] = differ if differ > episodes else 0
    return sorted((name for name, differ in found.items() if differ), key=lambda name: -found[name])


def _parse_times(column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    """The times in a text column, by each format that fits all of it; empty if none does."""
    if column.null_count == len(column):
        return {}
    head = column.slice(0, _LABELS)  # most text is no time, and shows it at once
    likely = [
        form for form in _FORMATS if pc.strptime(head, form, "s", error_is_null=True).null_count == head.null_count
    ]
    parsed = {form: pc.strptime(column, form, "s", error_is_null=True) for form in likely}
    fits = {form: times for form, times in parsed.items() if times.null_count == column.null_count}
    return {form: times for form, times in fits.items() if pc.min(pc.year(times)).as_py() >= _FIRST_YEAR}


def _read_times(step: pa.ChunkedArray, notes: _Notes) -> tuple[NDArray[Any] | None, str | None]:
    """Numbers, or whole microseconds of times, with the format of text times; (None, None) if the format is unclear."""
    form = None
    if pa.types.is_string(step.type):
        parsed = _parse_times(step)
        fits = list(parsed)
        if len(fits) != 1:
            odd = as_numbers(step)[1].sum()
            why = f"{odd:,} values are neither numbers nor times of a known format: "
            why = (
                "days and months cannot be told apart: "
                if fits
                else f"{why}correct them to 0, 1, 2, …, or give a format "
            )
            notes.say("steps.time_format", UNKNOWN, why + (" or ".join(fits) or "such as %d.%m.%Y %H:%M"))
            return None, None
        form = fits[0]
        notes.say("steps.time_format", form)
        step = parsed[form]
    if pa.types.is_temporal(step.type):
        whole = pc.fill_null(step.cast(pa.timestamp("us")).cast(pa.int64()), 0)
        return whole.to_numpy(zero_copy_only=False), form
    if pa.types.is_integer(step.type) or pa.types.is_floating(step.type):
        return pc.fill_null(step.cast(pa.float64()), -1).to_numpy(zero_copy_only=False), None
    raise FileFormatError(f"the column of steps holds {step.type}: expected whole numbers or times")


def _look_at_steps(episode: NDArray[np.int64], step: NDArray[Any]) -> tuple[int, int]:
    """Number of sorted rows with the step of the row before, and of episodes whose steps do not count 0, 1, 2, …."""
    inside = episode[1:] == episode[:-1]
    leap = step[1:] - step[:-1]
    starts = np.append(True, ~inside)
    odd = np.append(False, inside & (leap != 1) & (leap != 0)) | (starts & ~np.isin(step, (0, 1)))
    return int((inside & (leap == 0)).sum()), int(np.unique(episode[odd]).size)


def _draft_parts(
    source: Source, parts: Sequence[str], plan: PreparationPlan, notes: _Notes, place: str
) -> None:  # fmt: skip
    """Note the labels of columns that make one together, and bins of those that are measured."""
    table = _typed(read_whole(source, parts)[1], plan.decimal)
    labels = dict[str, list[str]]()
    for part in parts:
        column = table.column(part)
        if _is_measurement(column, plan.decimal):
            numbers, odd = as_numbers(column, plan.decimal)
            seen = f"{np.nanmin(numbers):g} to {np.nanmax(numbers):g}, which is private"
            others = (
                f"; {odd.sum():,} values are no numbers: name those that mean a missing one in empty"
                if odd.any()
                else ""
            )
            why = f"public edges, such as [3.5, 5.0]; the data show {seen}{others}"
            notes.lines.setdefault("bins", []).append(f"{write_toml(part)} = {write_toml(UNKNOWN)}  # {why}")
            notes.open.append(f"bins.{part}")
            continue
        texts = _trimmed(column)
        counted = {one["values"]: one["counts"] for one in pc.value_counts(texts).to_pylist()}
        labels[part], aliases = _join_spellings(counted)
        if aliases:
            notes.say("aliases.state", aliases, "another spelling = the intended label")
    why = "from the data, hence private until confirmed; all combinations of the columns' labels and bins are meant"
    notes.say(place, labels, why)


def _draft_labels(
    table: pa.Table, source: Source, parts: Mapping[str, tuple[str, ...]], plan: PreparationPlan, notes: _Notes
) -> None:  # fmt: skip
    private = "from the data, hence private until confirmed; add missing labels"
    for ours, place in (("state", "labels.states"), ("action", "labels.actions")):
        columns = [table.column(name) for name in (ours, f"next_{ours}") if name in table.column_names]
        if len(parts[ours]) > 1 or _is_measurement(columns[0], plan.decimal):
            _draft_parts(source, parts[ours], plan, notes, place)
            continue
        if all(pa.types.is_integer(column.type) for column in columns):
            if ours == "state":
                most = max(pc.max(column).as_py() or 0 for column in columns)
                least = min(pc.min(column).as_py() or 0 for column in columns)
                unused = f", the smallest {least}: codes below it are unused" if least > 0 else ""
                notes.say(place, UNKNOWN, f"S, the public number of codes 0, 1, …; the largest here is {most}{unused}")
            continue
        counted: Counter[str] = Counter()
        for column in columns:
            for found in pc.value_counts(_trimmed(column)).to_pylist():
                if found["values"] is not None:
                    counted[found["values"]] += found["counts"]
        if len(counted) > _LABELS:
            notes.say(place, UNKNOWN, f"column {ours} has {len(counted):,} values: replace them by codes first")
            continue
        labels, aliases = _join_spellings(counted)
        notes.say(place, labels, private)
        if aliases:
            notes.say(f"aliases.{ours}", aliases, "another spelling = the intended label")


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_trim_whitespace(column.drop_null().cast(pa.string()))


def _is_measurement(column: pa.ChunkedArray, decimal: str) -> bool:
    """Whether a column is of numbers with a fraction, all but a few."""
    if not pa.types.is_string(column.type):
        return bool(pa.types.is_floating(column.type))
    numbers, odd = as_numbers(column, decimal)
    numbers = numbers[~np.isnan(numbers)]
    return bool(numbers.size > _FEW_REWARDS * max(1, odd.sum()) and (numbers % 1).any())


def _join_spellings(counted: Mapping[str, int]) -> tuple[list[str], dict[str, str]]:
    """Labels, and other spellings of them, which differ only in case and blanks."""
    groups: dict[str, list[str]] = {}
    for label in counted:
        groups.setdefault(fold_label(label), []).append(label)
    labels: list[str] = []
    aliases: dict[str, str] = {}
    for spellings in groups.values():
        best = min(spellings, key=lambda label: (label != label.strip(), -counted[label], label))
        labels.append(best)
        aliases |= {label: best for label in sorted(spellings) if label != best}
    return sorted(labels), aliases


def _draft_rewards(table: pa.Table, decimal: str, notes: _Notes) -> None:
    column = table.column("reward")
    empty, episodes = column.null_count, pc.count_distinct(table.column("episode")).as_py()
    if empty > table.num_rows // 2 and table.num_rows - empty >= episodes // 2:
        why = f"{empty:,} rows have no reward: the reward that they stand for, such as 0"
        notes.say("rewards.empty", UNKNOWN, f"{why}; without this line it is missing")
    if pa.types.is_string(column.type):
        values, odd = as_numbers(column, decimal)
        counted = {one["values"]: one["counts"] for one in pc.value_counts(_trimmed(column)).to_pylist()}
        labels, _ = _join_spellings(counted)
        if odd.sum() * 2 > len(column) - empty and len(labels) <= _FEW_REWARDS:
            notes.say("rewards.range", [UNKNOWN, UNKNOWN], "the public bounds of a step's reward")
            notes.say("rewards.values", dict.fromkeys(labels, UNKNOWN), "the public reward of each label")
            return
        notes.note("rewards", f"{odd.sum():,} values of column reward are no numbers: prepare will name their rows")
        column = pa.chunked_array([pa.array(values, mask=np.isnan(values))])
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        notes.say(
            "rewards.range", [UNKNOWN, UNKNOWN], f"column reward holds {column.type}, not numbers: correct it first"
        )
        return
    found = pc.min_max(column).as_py()
    low, high = found["min"], found["max"]
    if low is not None and low >= 0 and high <= 1:
        notes.say("rewards.range", [0, 1], "the public bounds of a step's reward")
        return
    seen = "nothing" if low is None else f"{low:g} to {high:g}, which is private"
    notes.say("rewards.range", [UNKNOWN, UNKNOWN], f"the public bounds of a step's reward; the data show {seen}")


def _draft_lengths(
    path: Path, plan: PreparationPlan, notes: _Notes, counts: dict[str, int], *, but: str
) -> tuple[tuple[str, ...], ...]:  # fmt: skip
    """Note H and the treatment of irregular episodes; return the column names and first rows of the preview."""
    shown: list[tuple[str, ...]] = []
    lengths: Counter[int] = Counter()
    missing = gaps = 0
    needed = ("state", "action") if "rewards.empty" in notes.open else ("state", "action", "reward")
    for chunk in read_chunks(path, plan, but=but):
        spans = np.diff(np.append(chunk.starts, chunk.rows))
        lengths.update(spans.tolist())
        episode = np.repeat(np.arange(spans.size), spans)
        place = np.arange(chunk.rows) - chunk.starts[episode]
        gaps += np.unique(episode[find_gaps(chunk, chunk.starts, episode, place)]).size
        missing += sum(chunk.columns[name].null_count for name in needed)
        if not shown:
            shown = [("row", *chunk.columns), *(_show(chunk, at) for at in range(min(SHOWN, chunk.rows)))]
    if not lengths:
        raise FileFormatError(f"{path} has a header but no rows: expected one row per step")
    counts |= {"missing values": missing, "episodes without a row for each step": gaps}
    if len(lengths) == 1:
        notes.say("episodes.horizon", next(iter(lengths)), "H, public: every episode has this many steps")
    else:
        half = int(np.median(list(lengths.elements())))
        steps = f"{min(lengths)} to {max(lengths)} steps, half of them up to {half}"
        notes.say("episodes.horizon", UNKNOWN, f"H, public: longer episodes are cut; here they have {steps}")
        notes.say("episodes.short", "pad", "shorter episodes: pad in an ended state, drop, or refuse")
    if missing or gaps:
        why = f"{missing} values are missing, and {gaps} episodes lack a step: drop such episodes, or refuse"
        wider = "; wider bins leave fewer gaps" if gaps and plan.times not in (None, "order") else ""
        notes.say("episodes.missing", UNKNOWN, why + wider)
    return tuple(shown)


def _show(chunk: Chunk, at: int) -> tuple[str, ...]:
    values = (column[at].as_py() for column in chunk.columns.values())
    return (str(chunk.numbers[at]), *map(_say_value, values))


def _say_value(value: object) -> str:
    if value is None:
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _is_measured(column: pa.ChunkedArray) -> bool:
    """Whether a column has nothing, or numbers with a fraction, which name nobody."""
    if column.null_count == len(column):
        return True
    numbers, odd = as_numbers(column)
    return not odd.any() and bool((numbers[~np.isnan(numbers)] % 1).any())


def _draft_users(
    source: Source, columns: Mapping[str, str], given: str | None, notes: _Notes, counts: dict[str, int]
) -> dict[str, str]:
    """Note the users; return the column that names them, if one was given or seems to."""
    rest = [name for name in source.schema.names if name not in columns.values()]
    episode = "episode" if "episode" in columns else "terminal"
    table = _read(source, {episode: columns[episode], **{name: name for name in rest if name != episode}})
    found = {name: table.column(name) for name in table.column_names}
    found = {name: column for name, column in found.items() if name == given or not _is_measured(column)}
    likely = [words.split(" (", maxsplit=1)[0] for words in find_identifiers(found)[1]]
    likely = likely if given is None else [given, *(name for name in likely if name != given)]
    if not likely:
        why = "no column has one user to an episode, in every row"
        if telling := [name for name in rest if PEOPLE.search(name)]:
            why += f" (column {telling[0]} does not: complete it)"
        why += ": name one as user under [columns], or set true: each episode belongs to a different user"
        notes.say("users.one_episode_is_one_user", UNKNOWN, why)
        return {}
    name, others = likely[0], ", ".join(likely[1:4])
    notes.say("columns.user", name, f"or {others}" if others else "")
    names = pc.dictionary_encode(found[name].combine_chunks())
    counts["users"] = len(names.dictionary)
    folded = pa.array([fold_name(str(each)) for each in names.dictionary.to_pylist()])
    pairs = pa.table({"user": folded.take(names.indices), "episode": found["episode"]}).group_by(["user", "episode"])
    most = max(pc.value_counts(pairs.aggregate([]).column("user")).field("counts").to_pylist())
    if spelled := counts["users"] - pc.count_distinct(folded).as_py():
        why = f"{spelled} users have the name of another but for case, blanks or leading zeros: same (one person), or"
        notes.say("users.spellings", UNKNOWN, f"{why} different")
    person = name_person(name)
    notes.say("users.who", person, f'the noun for one user: reports and the card say "one {person}"')
    if most == 1:
        notes.say("users.max_trajectories", 1, "the most episodes of a user, public")
    else:
        why = f"the most episodes of a user, public; here up to {most}: a guarantee costs more with each"
        notes.say("users.max_trajectories", UNKNOWN, why)
        notes.say("users.keep", "first", "for a user with more: first, random, or refuse")
    return {"user": name}
