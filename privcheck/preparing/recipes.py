"""Recipes: every choice of a preparation in one file, which a person confirms and `prepare` replays.

A value of "?" is one that nobody has given yet. Nothing is prepared by a recipe that has one, or that nobody has
confirmed: what a draft guesses from the data is private until somebody says that it is public.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from privcheck.errors import FileFormatError, ParameterError
from privcheck.preparing.codebooks import Codebook
from privcheck.preparing.plan import COLUMNS, PreparationPlan
from privcheck.reading.users import Users

UNKNOWN: Final = "?"
_FIELDS: Final[Mapping[str, Mapping[str, tuple[type, ...]]]] = {
    "file": {"encoding": (str,), "delimiter": (str,), "decimal": (str,), "malformed": (str,)},
    "columns": dict.fromkeys(COLUMNS, (str,)),
    "steps": {"sort": (bool,), "times": (str,), "time_format": (str,), "several": (str,)},
    "labels": {"states": (list, int), "actions": (list,)},
    "aliases": {"state": (dict,), "action": (dict,)},
    "rewards": {"range": (list,), "clip": (bool,), "pad": (int, float)},
    "episodes": {"horizon": (int,), "short": (str,), "missing": (str,)},
    "users": {
        "who": (str,), "max_trajectories": (int,), "one_episode_is_one_user": (bool,), "keep": (str,), "seed": (int,),
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A recipe that was read.

    Attributes:
        plan: What it asks for.
        digest: SHA-256 of the file, which says in a prepared table how it was made.
    """

    plan: PreparationPlan
    digest: str


def read_recipe(path: Path, *, show_values: bool = False) -> Recipe:
    """Returns the recipe in a TOML file.

    Args:
        path: The file.
        show_values: Whether messages may show what stands in rows.

    Raises:
        FileFormatError: It is missing, is no recipe, has a value that nobody has given yet, or was not confirmed.
        ParameterError: A choice means nothing, or two contradict each other.
    """
    try:
        data = path.read_bytes()
        given = tomllib.loads(data.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: cannot be read as a recipe (TOML): {error}") from None
    unknown = _find_unknown(given)
    if unknown:
        message = (
            f"{path}: {', '.join(unknown)}: still {UNKNOWN!r}; write what holds there, the comments say what is meant"
        )
        raise FileFormatError(message)
    confirmed = given.pop("confirmed", False)
    _check_fields(path, given)
    if confirmed is not True:
        message = f"{path}: not confirmed; look through it, the labels above all, and set confirmed = true"
        raise FileFormatError(message)
    return Recipe(plan=_plan_of(path, given, show_values=show_values), digest=hashlib.sha256(data).hexdigest())


def _find_unknown(given: Mapping[str, Any]) -> list[str]:
    found = []
    for section, fields in given.items():
        for name, value in fields.items() if isinstance(fields, dict) else ():
            if value == UNKNOWN or (isinstance(value, list) and UNKNOWN in value):
                found.append(f"{section}.{name}")
    return found


def _check_fields(path: Path, given: Mapping[str, Any]) -> None:
    for section, fields in given.items():
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
    states = labels.get("states")
    kept = {name: users.pop(name) for name in ("keep", "seed") if name in users}
    bounds = rewards.get("range")
    if bounds is not None and not (len(bounds) == 2 and all(type(x) in (int, float) for x in bounds)):
        raise FileFormatError(f"{path}: rewards.range: expected two numbers, [low, high]; got {bounds!r:.60}")
    book = None
    if isinstance(states, list) or "actions" in labels:
        if not isinstance(states, list) or "actions" not in labels:
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
        users=Users(**users),
        aliases={kind: {str(k): str(v) for k, v in found.items()} for kind, found in table("aliases").items()},
        show_values=show_values,
        **episodes,
        **kept,
        **table("steps"),
        **table("file"),
    )


def _texts(labels: list[Any]) -> tuple[Any, ...]:
    return tuple(str(label) if type(label) in (int, float) else label for label in labels)


def write_toml(value: object) -> str:
    """Returns a value as TOML; a text as a JSON string, which TOML reads as the same text."""
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
