"""What is asked of a preparation: public choices only, each refused where it means nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from privcheck.errors import ParameterError
from privcheck.preparing.codebooks import Codebook
from privcheck.reading.users import NO_STATEMENT, Users

COLUMNS: Final = ("episode", "step", "state", "action", "reward", "next_state", "user")
NEEDED: Final = ("episode", "state", "action", "reward")

Missing = Literal["refuse", "drop"]
Short = Literal["refuse", "pad", "drop"]
Keep = Literal["refuse", "first", "random"]
_WAYS: Final = {
    "missing": ("refuse", "drop"),
    "short": ("refuse", "pad", "drop"),
    "keep": ("refuse", "first", "random"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationPlan:
    """How a raw table becomes trajectories.

    Attributes:
        columns: What the file calls the columns, by our names; those not named are called as ours are.
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
        sort: Sort the rows by episode and step first, which holds the file in memory.

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

    def __post_init__(self) -> None:
        self._refuse_words()
        self._refuse_numbers()
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

    def _refuse_numbers(self) -> None:
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
