"""Who may do what: one table of roles and actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from privcheck.errors import AuthorityError

Role = Literal["reader", "analyst", "ci", "officer", "admin"]
Action = Literal[
    "show", "verify", "export", "quote", "reserve", "commit", "release", "charge", "import", "evidence",
    "policy", "grant", "attest", "freeze", "accept", "backup", "token",
]  # fmt: skip
ROLES: Final[tuple[Role, ...]] = get_args(Role)
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)

_LOOKS: Final[frozenset[Action]] = frozenset({"show", "verify", "export"})
_SPENDS: Final[frozenset[Action]] = frozenset({"quote", "reserve", "commit", "release", "charge", "import", "evidence"})
_RULES: Final[frozenset[Action]] = frozenset({"policy", "grant", "attest", "freeze", "accept", "backup"})
_MAY: Final[dict[Role, frozenset[Action]]] = {
    "reader": _LOOKS,
    "analyst": _LOOKS | _SPENDS,
    "ci": _LOOKS | _SPENDS,
    "officer": _LOOKS | _SPENDS | _RULES | {"token"},
    "admin": frozenset({"token"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts.

    Attributes:
        name: As written in every row.
        role: What he or she may do.
        grants: The grants that an analyst or a CI job may charge; officers may charge all.
        holder: The digest of the token by which that is known, which every write looks up again; empty without one.
    """

    name: str
    role: Role
    grants: tuple[str, ...] = ()
    holder: str = field(default="", repr=False, compare=False)


def may(role: Role, action: Action) -> bool:
    """Returns whether a role may do something at all.

    >>> may("analyst", "charge"), may("analyst", "grant"), may("admin", "charge")
    (True, False, False)
    """
    return action in _MAY[role]


def require(actor: Actor, action: Action, *, grant: str | None = None) -> None:
    """Lets an actor go on, or refuses.

    Args:
        actor: Who acts.
        action: What is to be done.
        grant: On which grant, where it is about one.

    Raises:
        AuthorityError: The role may not, or the grant is not one of the actor's.
    """
    if not may(actor.role, action):
        able = ", ".join(role for role in ROLES if may(role, action))
        message = f"{actor.name} is {_article(actor.role)} and may not {action}; expected one of: {able}"
        raise AuthorityError(message, action=action)
    if grant is not None and action in _SPENDS and actor.role in ("analyst", "ci") and grant not in actor.grants:
        own = ", ".join(actor.grants) or "none"
        raise AuthorityError(f"{actor.name} may not {action} on grant {grant!r}; own grants: {own}", action=action)


def _article(role: Role) -> str:
    return f"{'an' if role[0] in 'aeio' else 'a'} {role}" if role != "ci" else "a CI job"
