"""Recipes: all public choices of a preparation and its codebooks, in one file that `prepare` replays.

The value "?" is one still to be filled in. A recipe with such a value, or an unconfirmed one, is refused: the guesses
of a draft come from the data and are private until a person confirms that they are public.

The set of occurring states is private, so a codebook is given or confirmed, never made silently.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from privcheck.data.reading.users import NO_STATEMENT, Users
from privcheck.errors import FileFormatError, ParameterError
from privcheck.support.files import write_whole

FILE_NAME: Final = "codebook.json"
_KINDS: Final = ("states", "actions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebook:
    """Names of states and actions; the code is the position in the list, from 0.

    Attributes:
        states: Labels of the states.
        actions: Labels of the actions.
        inferred: Whether it was made from the data.
        data: The prepared file it belongs to; empty if none yet.

    Raises:
        ParameterError: A list is empty, or has an item that is not a non-empty text, or a label twice.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    inferred: bool = False
    data: str = ""

    def __post_init__(self) -> None:
        for name in _KINDS:
            labels = getattr(self, name)
            if not labels or not all(isinstance(label, str) and label for label in labels):
                raise ParameterError(f"{name}: expected a list of texts, one at least", name=name, given=labels)
            twice = sorted({label for label in labels if labels.count(label) > 1}) if len(labels) < 5000 else []
            if len(set(labels)) != len(labels):
                raise ParameterError(f"{name}: repeated labels: {', '.join(twice[:5])}", name=name, given=labels)

    def save(self, path: Path) -> None:
        """Write the codebook.

        Raises:
            OSError: The file cannot be written.
        """
        text = {"states": self.states, "actions": self.actions, "inferred": self.inferred, "data": self.data}
        write_whole(path, json.dumps(text, ensure_ascii=False, indent=1) + "\n")


def read_codebook(path: Path) -> Codebook:
    """Read the codebook in a JSON file: `{"states": [...], "actions": [...]}`.

    Raises:
        FileFormatError: The file is missing or has other content.
    """
    try:
        given = json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: cannot be read as a codebook: {error}") from None
    wanted = '{"states": ["…", …], "actions": ["…", …]}'
    if not isinstance(given, dict) or not all(isinstance(given.get(name), list) for name in _KINDS):
        raise FileFormatError(f"{path}: expected a codebook, {wanted}")
    try:
        return Codebook(
            states=_label_texts(given["states"]),
            actions=_label_texts(given["actions"]),
            inferred=given.get("inferred") is True,
            data=str(given.get("data", "")),
        )
    except ParameterError as error:
        raise FileFormatError(f"{path}: {error}") from None


def _label_texts(labels: Sequence[Any]) -> tuple[str, ...]:
    # numbers are as good as texts here; true, null and lists are not
    return tuple(str(x) if isinstance(x, int | float) and not isinstance(x, bool) else x for x in labels)


def read_labels(data: Path) -> Codebook | None:
    """The codebook beside a prepared file; None if there is none, or it belongs to another file."""
    path = data.parent / FILE_NAME
    if not path.is_file():
        return None
    codebook = read_codebook(path)
    return codebook if codebook.data == data.name else None


def draft_codebook(states: Iterable[str], actions: Iterable[str]) -> Codebook:
    """A codebook of the labels that occur in data, sorted by name."""
    return Codebook(states=tuple(sorted(states)), actions=tuple(sorted(actions)), inferred=True)


COLUMNS: Final = ("episode", "step", "state", "action", "reward", "next_state", "user", "terminal")
NEEDED: Final = ("episode", "state", "action", "reward")

Missing = Literal["refuse", "drop"]
Short = Literal["refuse", "pad", "drop"]
Keep = Literal["refuse", "first", "random"]
Several = Literal["refuse", "first", "last"]
Malformed = Literal["refuse", "drop"]
Spellings = Literal["refuse", "same", "different"]
_WAYS: Final = {
    "missing": ("refuse", "drop"),
    "short": ("refuse", "pad", "drop"),
    "keep": ("refuse", "first", "random"),
    "several": ("refuse", "first", "last"),
    "malformed": ("refuse", "drop"),
    "spellings": ("refuse", "same", "different"),
}
_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationPlan:
    """How a raw table becomes trajectories.

    Attributes:
        columns: The file's column names, by our names; columns not listed have our names. "age + lab" makes one column
            of two. With a column `terminal`,
            true in the last row of each episode, there is no column of episodes.
        codebook: The public codes of states and actions; None if the file contains codes.
        states: S, if the file contains codes and episodes may end early: the ended state is an additional one.
        reward_range: The public bounds (low, high) of a step's reward, mapped to [0, 1]; None if rewards are in [0, 1].
        clip_rewards: Clip rewards to the bounds instead of refusing those outside.
        horizon: H, public; longer episodes are cut. None if all episodes have the same length.
        missing: Treatment of an episode with a missing value or step: refuse or drop.
        short: Treatment of an episode with fewer than H steps: refuse, pad in a separate ended state, or drop.
        pad_reward: Reward of padded steps, in the file's unit.
        users: Statement about the users. Their column is named in `columns`.
        keep: Episodes to keep of a user with more than `users.max_trajectories` (1 if not stated): the first, or random
            ones; "refuse" refuses the table.
        seed: Seed of the random choice.
        sort: Sort the rows by episode and step first, with the whole file in memory; rows of one step, and those of a
            file without steps, keep the file's order.
        times: Set if the column of steps contains times: "order" numbers rows by them, and a width such as "4h" bins
            them from the first time of each episode.
        time_format: Format of times in text, as for strptime; None for ISO 8601.
        several: Row to keep if several of an episode have the same step or time; "refuse" refuses rows of the same
            step, and numbers those of the same time in the file's order.
        aliases: Other spellings of labels: for "state" and "action", the label by spelling.
        encoding: Encoding of a text file.
        delimiter: Delimiter of a text file; None for a comma, in .tsv a tab.
        decimal: Decimal separator in a text file: "." or ",".
        malformed: Treatment of rows of a text file with too few or too many values: refuse or drop.
        skip: Lines of a text file before its header.
        empty: Texts of a text file that mean a missing value, beside "" and NA.
        reward_values: The public number of each label in the column of rewards, in any case and with any blanks; empty
            for a column of numbers.
        reward_empty: The reward of a row without one, in the file's unit; None if that is a missing value.
        bins: Public edges by the file's column: its numbers become the labels of `name_bins`.
        spellings: Users whose names differ only in case, blanks or leading zeros: refuse, same (one person) or
            different.
        show_values: Whether messages show the values of rows, which are private, beside the row numbers.

    Raises:
        ParameterError: A choice is invalid, or two contradict each other; the message says what to do.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    codebook: Codebook | None = None
    states: int | None = None
    reward_range: tuple[float, float] | None = None
    clip_rewards: bool = False
    horizon: int | None = None
    missing: Missing = "refuse"
    short: Short = "refuse"
    pad_reward: float | None = None
    users: Users = NO_STATEMENT
    keep: Keep = "refuse"
    seed: int = 0
    sort: bool = False
    times: str | None = None
    time_format: str | None = None
    several: Several = "refuse"
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: str = "."
    malformed: Malformed = "refuse"
    skip: int = 0
    empty: tuple[str, ...] = ()
    reward_values: Mapping[str, float] = field(default_factory=dict)
    reward_empty: float | None = None
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    spellings: Spellings = "refuse"
    show_values: bool = False

    def __post_init__(self) -> None:
        self._refuse_words()
        self._refuse_numbers()
        self._refuse_aliases()
        if not self.sort and (self.times is not None or self.several != "refuse"):
            message = "--times and --several compare the rows of an episode in their order: add --sort"
            raise ParameterError(message, name="sort")
        if "terminal" in self.columns and "episode" in self.columns:
            message = "--column terminal=… is for a file without a column of episodes: give one of the two"
            raise ParameterError(message, name="columns", given=dict(self.columns))
        if "terminal" in self.columns and self.sort:
            raise ParameterError(
                "--column terminal=… reads the rows in the file's order: leave out --sort", name="sort"
            )
        if self.short != "refuse" and self.horizon is None:
            message = "--short goes with --horizon H: the longest episode's length is private, H has to be public"
            raise ParameterError(message, name="horizon")
        if self.codebook is not None and self.states is not None:
            raise ParameterError("--states goes with codes; the codebook says how many states there are", name="states")
        if self.users.one_episode_is_one_user and (self.keep != "refuse" or "user" in self.columns):
            message = "--one-episode-is-one-user contradicts --keep and --column user=…: give one of them"
            raise ParameterError(message, name="one_episode_is_one_user", given=True)
        if self.short == "pad" and self.codebook is None and self.states is None:
            message = "--short pad needs a state of its own for ended episodes: give --states S, the public number"
            raise ParameterError(f"{message} of codes, or --codebook", name="states")

    def _refuse_words(self) -> None:
        for name in self.columns:
            if name not in COLUMNS:
                raise ParameterError(f"--column {name}: expected one of {', '.join(COLUMNS)}", name=name)
        if len(set(self.columns.values())) != len(self.columns):
            raise ParameterError("--column: one column of the file is used for two of ours", given=dict(self.columns))
        for name, ways in _WAYS.items():
            if getattr(self, name) not in ways:
                message = f"--{name.replace('_', '-')}: expected {', '.join(ways)}; got {getattr(self, name)!r}"
                raise ParameterError(message, name=name, given=getattr(self, name))

    def _refuse_aliases(self) -> None:
        for kind, spellings in self.aliases.items():
            labels = () if self.codebook is None else getattr(self.codebook, f"{kind}s", ())
            for spelling, label in spellings.items():
                parts = {part for each in labels for part in each.split(" + ")}
                if label not in parts.union(labels) or spelling in labels:
                    message = f"alias {spelling!r} of {kind} {label!r}: expected another spelling of a label"
                    raise ParameterError(f"{message} in the codebook", name="aliases", given=spelling)

    def _refuse_numbers(self) -> None:
        if self.decimal not in {".", ","} or self.decimal == self.delimiter:
            message = f"--decimal {self.decimal[:10]}: expected . or , and not the mark of --delimiter"
            raise ParameterError(message, name="decimal", given=self.decimal)
        for name, edges in self.bins.items():
            if not edges or not all(map(math.isfinite, edges)) or list(edges) != sorted(set(edges)):
                raise ParameterError(f"bins of {name}: expected edges in ascending order", name="bins", given=edges)
        if self.times is not None:
            read_seconds(self.times)
        for name in ("states", "horizon"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ParameterError(f"--{name}: expected a whole number, at least 1, got {count}", name=name)
        low, high = self.bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            message = f"--reward-range {low:g} {high:g}: expected two finite numbers, the smaller one first"
            raise ParameterError(message, name="reward_range", given=self.reward_range)
        outside = [
            x for x in (*self.reward_values.values(), self.reward_empty) if x is not None and not low <= x <= high
        ]
        if outside:
            message = f"a reward of {outside[0]:g}: expected within the rewards' bounds {low:g} to {high:g}"
            raise ParameterError(message, name="reward_values", given=outside[0])
        if not low <= self.padded_with <= high:
            message = f"--pad-reward {self.padded_with:g}: expected within the rewards' bounds {low:g} to {high:g}"
            raise ParameterError(message, name="pad_reward", given=self.pad_reward)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that the file must have."""
        return tuple("terminal" if name == "episode" and "terminal" in self.columns else name for name in NEEDED)

    @property
    def most(self) -> int:
        """Largest number of episodes of a user."""
        return self.users.max_trajectories or 1

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest reward of a step, in the file's unit."""
        return (0.0, 1.0) if self.reward_range is None else self.reward_range

    @property
    def padded_with(self) -> float:
        """The reward of padded steps, in the file's unit: 0 if it is within the bounds, else the smallest."""
        low, high = self.bounds
        return self.pad_reward if self.pad_reward is not None else 0.0 if low <= 0 <= high else low

    @property
    def ended(self) -> int | None:
        """The code of the state of ended episodes; None if there is none."""
        return len(self.codebook.states) if self.codebook is not None else self.states

    def find(self, name: str) -> str:
        """The file's name of one of our columns."""
        return self.columns.get(name, name)

    @property
    def depends_on_data(self) -> tuple[str, ...]:
        """The choices that depend on the data, with their consequences for privacy."""
        said = []
        if self.codebook is not None and self.codebook.inferred:
            said.append(
                "the codebook lists the states and actions that occur in the data: confirm that it is public "
                "knowledge, or the set of values that occur leaks without noise"
            )
        if self.malformed == "drop":
            said.append("rows with too few or too many values are left out: the number of remaining rows is private")
        if self.missing == "drop":
            said.append(
                "episodes with missing values are dropped one by one, each by its own rows: this costs nothing, but "
                "the number of remaining episodes is private"
            )
        if self.short == "drop":
            said.append("short episodes are dropped one by one: the number of remaining episodes is private")
        if self.horizon is None:
            said.append("H is the length of the first episode: give --horizon, a public number")
        if self.codebook is None and self.states is None:
            said.append("S and A are the largest codes, unless the run is given --set S=… --set A=…, public numbers")
        if self.keep != "refuse":
            said.append(
                f"at most {self.most} episodes of a user are kept, by the rows of that user alone: this costs nothing, "
                "but the number of remaining episodes is private"
            )
        if self.clip_rewards and self.reward_range is None:
            said.append("rewards are clipped to [0, 1], which must be their public range")
        return tuple(said)


def name_bins(edges: Sequence[float]) -> list[str]:
    """Labels of bins; a number on an edge is in the bin above.

    >>> name_bins([3.5, 5])
    ['below 3.5', '3.5 to 5', '5 or more']
    """
    between = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)]
    return [f"below {edges[0]:g}", *between, f"{edges[-1]:g} or more"]


def fold_label(label: str) -> str:
    """A label without case and blanks: equal for its spellings."""
    return "".join(label.casefold().split())


def fold_name(name: str) -> str:
    """A name without case, blanks and leading zeros: equal for names that may mean the same.

    >>> fold_name("P 007 ") == fold_name("p7")
    True
    """
    return re.sub(r"(?<!\d)0+(?=\d)", "", fold_label(name))


def read_seconds(times: str) -> float:
    """The width of a bin of times; 0 for "order".

    Raises:
        ParameterError: The text is neither "order" nor a positive number with a unit.

    >>> read_seconds("4h"), read_seconds("order")
    (14400.0, 0.0)
    """
    if times == "order":
        return 0.0
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)", times.strip())
    if found is None or not float(found[1]) > 0:
        message = f"--times {times[:40]}: expected order, or the width of a bin such as 30min, 4h or 1d"
        raise ParameterError(message, name="times", given=times)
    return float(found[1]) * _SECONDS[found[2]]


UNKNOWN: Final = "?"
_FIELDS: Final[Mapping[str, Mapping[str, tuple[type, ...]]]] = {
    "file": {
        "encoding": (str,), "delimiter": (str,), "decimal": (str,), "malformed": (str,), "skip": (int,),
        "empty": (list,),
    },
    "columns": dict.fromkeys(COLUMNS, (str,)),
    "steps": {"sort": (bool,), "times": (str,), "time_format": (str,), "several": (str,)},
    "labels": {"states": (list, int, dict), "actions": (list, dict)},
    "aliases": {"state": (dict,), "action": (dict,)},
    "rewards": {
        "range": (list,), "clip": (bool,), "pad": (int, float), "values": (dict,), "empty": (int, float),
    },
    "episodes": {"horizon": (int,), "short": (str,), "missing": (str,)},
    "users": {
        "who": (str,), "max_trajectories": (int,), "one_episode_is_one_user": (bool,), "keep": (str,), "seed": (int,),
        "spellings": (str,),
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A recipe read from a file.

    Attributes:
        plan: Its choices.
        digest: SHA-256 of the file, stored in prepared tables as their origin.
    """

    plan: PreparationPlan
    digest: str


def read_recipe(path: Path, *, show_values: bool = False) -> Recipe:
    """Read the recipe in a TOML file.

    Args:
        path: The file.
        show_values: Whether messages may show values of rows.

    Raises:
        FileFormatError: The file is missing, is not a recipe, has a value to be filled in, or is not confirmed.
        ParameterError: A choice is invalid, or two contradict each other.
    """
    try:
        data = path.read_bytes()
        given = tomllib.loads(data.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        message = f"{path}: cannot be read as a recipe (TOML, with true and false in small letters): {error}"
        raise FileFormatError(message) from None
    unknown = _find_unknown(given)
    if unknown:
        message = f"{path}: {', '.join(unknown)}: still {UNKNOWN!r}; fill in the value, as the comments explain"
        raise FileFormatError(message)
    confirmed = given.pop("confirmed", False)
    _check_fields(path, given)
    if confirmed is not True:
        message = f"{path}: not confirmed; check it, the labels above all, and set confirmed = true"
        raise FileFormatError(message)
    return Recipe(plan=_plan_of(path, given, show_values=show_values), digest=hashlib.sha256(data).hexdigest())


def _find_unknown(given: Mapping[str, Any]) -> list[str]:
    found = []
    for section, fields in given.items():
        for name, value in fields.items() if isinstance(fields, dict) else ():
            inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            if value == UNKNOWN or UNKNOWN in inside:
                found.append(f"{section}.{name}")
    return found


def _check_fields(path: Path, given: Mapping[str, Any]) -> None:
    for section, fields in given.items():
        if section == "bins" and isinstance(fields, dict):
            if not all(isinstance(edges, list) and {*map(type, edges)} <= {int, float} for edges in fields.values()):
                raise FileFormatError(f"{path}: bins: expected a list of numbers for each column")
            continue
        known = _FIELDS.get(section)
        if known is None or not isinstance(fields, dict):
            message = f"{path}: {section}: expected confirmed, or one of the tables {', '.join(_FIELDS)}"
            raise FileFormatError(message)
        for name, value in fields.items():
            if name not in known:
                raise FileFormatError(f"{path}: {section}.{name}: expected one of {', '.join(known)}")
            if type(value) not in known[name]:
                wanted = " or ".join(kind.__name__ for kind in known[name])
                raise FileFormatError(f"{path}: {section}.{name}: expected {wanted}, got {value!r:.40}")


def _plan_of(path: Path, given: Mapping[str, Any], *, show_values: bool) -> PreparationPlan:
    def table(name: str) -> dict[str, Any]:
        return dict(given.get(name, {}))

    labels, rewards, users = table("labels"), table("rewards"), table("users")
    bins = {name: tuple(map(float, edges)) for name, edges in table("bins").items()}
    for kind in _KINDS:
        if isinstance(labels.get(kind), dict):
            labels[kind] = _combine(path, table("columns").get(kind[:-1], kind[:-1]), labels[kind], bins)
    states = labels.get("states")
    kept = {name: users.pop(name) for name in ("keep", "seed", "spellings") if name in users}
    file = table("file")
    numbers = rewards.get("values", {})
    if not all(type(number) in (int, float) for number in numbers.values()):
        raise FileFormatError(f"{path}: rewards.values: expected a number for each label")
    bounds = rewards.get("range")
    if bounds is not None and not (len(bounds) == 2 and all(type(x) in (int, float) for x in bounds)):
        raise FileFormatError(f"{path}: rewards.range: expected two numbers, [low, high]; got {bounds!r:.60}")
    book = None
    if isinstance(states, list) or "actions" in labels:
        if not isinstance(states, list) or not isinstance(labels.get("actions"), list):
            raise FileFormatError(
                f"{path}: labels: expected the lists states and actions, or the number of codes states"
            )
        try:
            book = Codebook(states=_texts(states), actions=_texts(labels["actions"]))
        except ParameterError as error:
            raise FileFormatError(f"{path}: labels.{error}") from None
    episodes = table("episodes")
    return PreparationPlan(
        columns=table("columns"),
        codebook=book,
        states=states if isinstance(states, int) else None,
        reward_range=None if bounds is None else (float(bounds[0]), float(bounds[1])),
        clip_rewards=rewards.get("clip", False),
        pad_reward=rewards.get("pad"),
        reward_values=dict(numbers),
        reward_empty=rewards.get("empty"),
        empty=tuple(map(str, file.pop("empty", ()))),
        users=Users(**users),
        aliases={kind: {str(k): str(v) for k, v in found.items()} for kind, found in table("aliases").items()},
        bins=bins,
        show_values=show_values,
        **episodes,
        **kept,
        **table("steps"),
        **file,
    )


def _combine(path: Path, column: str, labels: Mapping[str, Any], bins: Mapping[str, tuple[float, ...]]) -> list[str]:
    """All combinations of the labels of a column's parts: listed ones, and those of bins."""
    known = {name: list(map(str, each)) for name, each in labels.items()} | {n: name_bins(e) for n, e in bins.items()}
    parts = [column] if column in known else column.split(" + ")
    if missing := [part for part in parts if part not in known]:
        message = f"{path}: labels: expected the labels of column {missing[0]}, or its edges under [bins]"
        raise FileFormatError(message)
    return [" + ".join(each) for each in itertools.product(*(known[part] for part in parts))]


def _texts(labels: list[Any]) -> tuple[Any, ...]:
    return tuple(str(label) if type(label) in (int, float) else label for label in labels)


def write_toml(value: object) -> str:
    """A value as TOML; a text as a JSON string, which TOML reads as the same text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_toml, value))}]"
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{write_toml(k)} = {write_toml(v)}" for k, v in value.items()) + " }" if value else "{}"
        )
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
