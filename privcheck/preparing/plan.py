"""What is asked of a preparation: public choices only, each refused where it means nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from privcheck.errors import ParameterError
from privcheck.preparing.codebooks import Codebook
from privcheck.reading.users import NO_STATEMENT, Users

COLUMNS: Final = ("episode", "step", "state", "action", "reward", "next_state", "user", "terminal")
NEEDED: Final = ("episode", "state", "action", "reward")

Missing = Literal["refuse", "drop"]
Short = Literal["refuse", "pad", "drop"]
Keep = Literal["refuse", "first", "random"]
Several = Literal["refuse", "first", "last"]
Malformed = Literal["refuse", "drop"]
_WAYS: Final = {
    "missing": ("refuse", "drop"),
    "short": ("refuse", "pad", "drop"),
    "keep": ("refuse", "first", "random"),
    "several": ("refuse", "first", "last"),
    "malformed": ("refuse", "drop"),
}
_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationPlan:
    """How a raw table becomes trajectories.

    Attributes:
        columns: What the file calls the columns, by our names; those not named are called as ours are. Where a
            `terminal` is named, true in the last row of each episode, there is no column of episodes.
        codebook: The public codes of states and actions; None where the file holds codes.
        states: S, where the file holds codes and episodes may end early: the ended state is one more.
        reward_range: The public bounds (low, high) of a step's reward, mapped to [0, 1]; None where it is there.
        clip_rewards: Move rewards beyond the bounds to them, rather than refuse them.
        horizon: H, public; longer episodes are cut. None where all episodes have one length.
        missing: What becomes of an episode in which a value or a step is missing.
        short: What becomes of an episode with fewer than H steps: padded in an ended state of its own, or dropped.
        pad_reward: The reward of padded steps, in the file's unit.
        users: What is said about the users. Their column is named in `columns`.
        keep: Which episodes stay of a user who has more than `users.max_trajectories` (1 where nothing was said): the
            first, or some at random; "refuse" refuses the table.
        seed: Of the random choice.
        sort: Sort the rows by episode and step first, which holds the file in memory; rows of one step, and those of
            a file without steps, keep the file's order.
        times: The column of steps holds times: "order" numbers rows by them, and a width such as "4h" bins them from
            the first of each episode.
        time_format: How text says a time, as strptime writes it; None for ISO 8601.
        several: Which row counts where several of an episode are of one step, or of one time; "refuse" refuses rows
            of one step, and numbers those of one time as they stand in the file.
        aliases: Other spellings of labels: by "state" and "action", the label by its spelling.
        encoding: Of a text file.
        delimiter: Of a text file; None for a comma, in .tsv a tab.
        decimal: The mark before a number's fraction in a text file: "." or ",".
        malformed: What becomes of rows of a text file with too few or too many values.
        show_values: Whether messages show what stands in rows, which is private, beside their numbers.

    Raises:
        ParameterError: A choice means nothing, or two contradict each other; the message says what to do.
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
            raise ParameterError("--column: one column of the file stands for two of ours", given=dict(self.columns))
        for name, ways in _WAYS.items():
            if getattr(self, name) not in ways:
                message = f"--{name.replace('_', '-')}: expected {', '.join(ways)}; got {getattr(self, name)!r}"
                raise ParameterError(message, name=name, given=getattr(self, name))

    def _refuse_aliases(self) -> None:
        for kind, spellings in self.aliases.items():
            labels = () if self.codebook is None else getattr(self.codebook, f"{kind}s", ())
            for spelling, label in spellings.items():
                if label not in labels or spelling in labels:
                    message = f"alias {spelling!r} of {kind} {label!r}: expected another spelling of a label"
                    raise ParameterError(f"{message} in the codebook", name="aliases", given=spelling)

    def _refuse_numbers(self) -> None:
        if self.decimal not in {".", ","} or self.decimal == self.delimiter:
            message = f"--decimal {self.decimal[:10]}: expected . or , and another mark than --delimiter"
            raise ParameterError(message, name="decimal", given=self.decimal)
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
        if not low <= self.padded_with <= high:
            message = f"--pad-reward {self.padded_with:g}: expected within the rewards' bounds {low:g} to {high:g}"
            raise ParameterError(message, name="pad_reward", given=self.pad_reward)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that the file must have."""
        return tuple("terminal" if name == "episode" and "terminal" in self.columns else name for name in NEEDED)

    @property
    def most(self) -> int:
        """At most how many episodes a user has."""
        return self.users.max_trajectories or 1

    @property
    def bounds(self) -> tuple[float, float]:
        """Returns the least and the largest reward of a step, in the file's unit."""
        return (0.0, 1.0) if self.reward_range is None else self.reward_range

    @property
    def padded_with(self) -> float:
        """Returns the reward of padded steps, in the file's unit: 0 where that is a reward, else the least."""
        low, high = self.bounds
        return self.pad_reward if self.pad_reward is not None else 0.0 if low <= 0 <= high else low

    @property
    def ended(self) -> int | None:
        """Returns the code of the state of ended episodes; None where there is none."""
        return len(self.codebook.states) if self.codebook is not None else self.states

    def find(self, name: str) -> str:
        """Returns what the file calls one of our columns."""
        return self.columns.get(name, name)

    @property
    def depends_on_data(self) -> tuple[str, ...]:
        """Returns which of the choices look at the data, and how that is to be paid for."""
        said = []
        if self.codebook is not None and self.codebook.inferred:
            said.append(
                "the codebook lists the states and actions that occur in the data: confirm that it is public "
                "knowledge, or which values occur leaks without noise"
            )
        if self.malformed == "drop":
            said.append(
                "rows with too few or too many values are left out: the number of rows that are left is private"
            )
        if self.missing == "drop":
            said.append(
                "episodes with missing values are dropped one by one, each by its own rows: this costs nothing, but "
                "the number of episodes that are left is private"
            )
        if self.short == "drop":
            said.append("short episodes are dropped one by one: the number of episodes that are left is private")
        if self.horizon is None:
            said.append("H is the length of the first episode: give --horizon, a public number")
        if self.codebook is None and self.states is None:
            said.append("S and A are the largest codes, unless the run is given --set S=… --set A=…, public numbers")
        if self.keep != "refuse":
            said.append(
                f"at most {self.most} episodes of a user are kept, by the rows of that user alone: this costs nothing, "
                "but the number of episodes that are left is private"
            )
        if self.clip_rewards and self.reward_range is None:
            said.append("rewards are clipped to [0, 1], which must be their public range")
        return tuple(said)


def read_seconds(times: str) -> float:
    """The width of a bin of times; 0 for "order".

    Raises:
        ParameterError: It is neither "order" nor a positive number with its unit.

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
