"""Users of a table, as named in a column or stated by a person; a table of unknown users is refused.

Every guarantee counts a user's episodes. A table without users would be read as one episode per user, which understates
the loss of users with several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from privcheck.errors import ParameterError, TrajectoryError
from privcheck.terms.unit import Unit, name_person

COLUMN: Final = "user"
METADATA: Final = b"privcheck.terms.unit"  # of a Parquet file's schema
RECIPE: Final = b"privcheck.recipe"  # there too: the digest of the recipe that it was prepared by
SAY_SO: Final = "--one-episode-is-one-user (in Python users=Users(one_episode_is_one_user=True))"
DEPENDS: Final = b"privcheck.depends_on_data"  # there too: the choices of its preparation that looked at the data
DEPENDS_ON_DATA: Final = "depends on the data"  # the fact of a file that says so in words
PEOPLE: Final = re.compile(
    r"(patient|subject|person|people|user|member|client|customer|rider|driver|student|participant|individual|"
    r"household|employee|citizen|donor|mrn|ssn|nhs|pseudonym|account|device|visitor|respondent)",
    re.IGNORECASE,
)
_SHOWN: Final = 3  # columns that a refusal names
_LOOKED_AT: Final = 1_000_000  # rows in which identifiers are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Statement of a person about the users of a table.

    Attributes:
        column: The file's name of the column with the user of each row; None for `user`.
        who: The noun for one user, such as "patient"; None for the noun of the column, else "user".
        max_trajectories: Largest number of episodes of a user; None for the number in the file's metadata, else 1.
        one_episode_is_one_user: Whether each episode is another user's, as stated by the reader of the table.

    Raises:
        ParameterError: The number is not whole and positive, a name is empty, or a column is named although each
            episode is said to be another user's.
    """

    column: str | None = None
    who: str | None = None
    max_trajectories: int | None = None
    one_episode_is_one_user: bool = False

    def __post_init__(self) -> None:
        most = self.max_trajectories
        if most is not None and not (type(most) is int and most >= 1):
            message = f"--max-trajectories expects a whole number, at least 1, got {most!r}"
            raise ParameterError(message, name="max_trajectories", given=most)
        for name in ("column", "who"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not text.strip()):
                raise ParameterError(f"{name}: expected a name, got {text!r:.80}", name=name, given=text)
        if self.one_episode_is_one_user and (self.column is not None or (most or 1) > 1):
            message = "--one-episode-is-one-user contradicts --column user=… and --max-trajectories above 1: give one"
            raise ParameterError(message, name="one_episode_is_one_user", given=True)

    def options(self) -> dict[str, str | None]:
        """The same statements as options of the command line; None for those not made."""
        most = None if self.max_trajectories is None else str(self.max_trajectories)
        return {
            "--column": None if self.column is None else f"user={self.column}",
            "--who": self.who,
            "--max-trajectories": most,
            "--one-episode-is-one-user": "" if self.one_episode_is_one_user else None,
        }

    @property
    def name(self) -> str:
        """The file's name of the column of users."""
        return self.column or COLUMN


NO_STATEMENT: Final = Users()


def unit_of_table(users: Users, stored: Unit | None, *, named: bool, steps: int) -> Unit:
    """The table's part of a unit of privacy: the user, the number of trajectories, and who stated it.

    Args:
        users: Statement of the person who reads it.
        stored: The unit in the file's metadata, if `prepare` wrote one.
        named: Whether the table has the column of users; the reader then counts each user's episodes.
        steps: Number of steps per episode, H.
    """
    if named:
        counted = stored if stored is not None and stored.basis == "column" else None
        stated = f"column {users.name}" if counted is None else counted.stated_by
        who = users.who or (name_person(users.name) if counted is None else counted.who)
        return Unit(who=who, trajectories=most_of(users, stored), steps=steps, basis="column", stated_by=stated)
    if stored is not None and not users.one_episode_is_one_user:
        word = stored.stated_by
        if stored.basis == "column":  # its episodes cannot be counted again
            word = f"metadata of the file ({stored.stated_by}, which the file lacks)"
        most = max(most_of(users, stored), stored.trajectories)
        return Unit(who=users.who or stored.who, trajectories=most, steps=steps, basis="assertion", stated_by=word)
    return Unit(
        who=users.who or COLUMN,
        trajectories=1,
        steps=steps,
        basis="assertion",
        stated_by="the reader of the table: one episode is one user",
    )


def most_of(users: Users, stored: Unit | None) -> int:
    """Largest number of episodes of a user: as stated now, else as stored, else 1."""
    return users.max_trajectories or (1 if stored is None else stored.trajectories)


def refuse_unknown(
    where: str,
    users: Users,
    stored: Unit | None,
    names: Sequence[str],
    look: Callable[[Sequence[str]], Mapping[str, Any]],
) -> None:
    """Refuse a table with unknown users, or with contradicting statements about them.

    Args:
        where: Name of the table in messages.
        users: Statement of the person who reads it.
        stored: The unit in the file's metadata.
        names: The table's columns, by the file's names.
        look: Reads columns, by the file's names; the column of episodes is called "episode". For the refusal only.

    Raises:
        ParameterError: The named column is missing; or each episode is stated to be another user's, although there is a
            column of users or the metadata says otherwise.
        TrajectoryError: Neither a column, a statement nor the metadata identifies the users.
    """
    named = users.name in names
    if users.column is not None and not named:
        message = f"{where}: no column {users.column}, which --column user={users.column} names; found: {_list(names)}"
        raise ParameterError(message, name="column", given=users.column)
    if named and users.one_episode_is_one_user:
        message = f"{where} has a column {users.name}: leave out --one-episode-is-one-user, or the column"
        raise ParameterError(message, name="one_episode_is_one_user", given=True)
    if users.one_episode_is_one_user and stored is not None and stored.trajectories > 1:
        message = f"{where} was prepared for {stored.words}: leave out --one-episode-is-one-user"
        raise ParameterError(message, name="one_episode_is_one_user", given=True)
    if named or users.one_episode_is_one_user or stored is not None:
        return
    others = [name for name in names if name != "episode"]
    columns = look(["episode", *others])
    episodes, found = find_identifiers(columns)
    raise TrajectoryError(
        f"{where} was refused: it does not identify its users. Its {episodes:,} episodes are {episodes:,} users only "
        f"if no user has two, and a guarantee for one episode is weaker for a user with several. {_describe(found)} If "
        f"each episode belongs to a different user, state it: {SAY_SO}"
    )


def find_identifiers(columns: Mapping[str, Any]) -> tuple[int, list[str]]:
    """The number of episodes, and the columns that look like user identifiers, in words, likeliest first.

    Such a column has one value per episode, and a telling name or many values of which some recur in several episodes.

    Args:
        columns: Arrow arrays by name, including "episode".
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    episode = columns["episode"]
    episodes = pc.count_distinct(episode).as_py()
    found = []
    for name, column in columns.items():
        if name == "episode" or pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
            continue
        table = pa.table({"episode": episode[:_LOOKED_AT], "value": column[:_LOOKED_AT]})
        here = pc.count_distinct(table["episode"]).as_py()
        values = pc.count_distinct(table["value"]).as_py()
        pairs = table.group_by(["episode", "value"], use_threads=False).aggregate([]).num_rows
        telling = bool(PEOPLE.search(name))
        if pairs == here and (telling or here / 30 <= values < here):
            found.append((not telling, -values, name, f"{values:,} values in {here:,} episodes"))
    return episodes, [f"{name} ({words})" for _, _, name, words in sorted(found)]


def _describe(found: Sequence[str]) -> str:
    if not found:
        return "No column looks like an identifier of users. If one is, name it: --column user=NAME."
    listed = ", ".join(found[:_SHOWN])
    name = found[0].split(" (", maxsplit=1)[0]
    return (
        f"Columns that look like identifiers of users: {listed}. Name it, and the most episodes of a user: "
        f"--column user={name} --max-trajectories M."
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)[:200] or "none"
