"""One tree of exceptions: misuse is an exception, a verdict is a value.

Every message has the given value, the expected value and what to do; the offending objects are attributes.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SMALLER: Final = "make H, S, A or --trials smaller (--set S=…, --set H=…)"
_MANY: Final = 12  # names that a message lists where some of them are spelt alike


class PrivcheckError(Exception):
    """The root of the exceptions that privcheck raises on purpose; exit code 2 in commands, 1 for `BudgetError`."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle an error with its attributes, independent of its constructor's arguments."""
        return _again, (type(self), self.args, dict(vars(self)))


class ParameterError(PrivcheckError, ValueError):
    """A parameter is missing, of the wrong kind or out of its range.

    Attributes:
        name: Name of the parameter.
        given: The given value.
    """

    def __init__(self, message: str, *, name: str = "", given: object = None) -> None:
        super().__init__(message)
        self.name = name
        self.given = given


class InexactNumberError(ParameterError):
    """A float was given where the number must be exact."""


class UnknownNameError(PrivcheckError, KeyError):
    """A name is unknown to the registry, a declaration or a ledger.

    Attributes:
        name: The given name.
        known: The names that exist.
        alike: Existing names with similar spelling; if there are many names, the message lists only these.
    """

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        from difflib import get_close_matches

        self.name = name
        self.known = tuple(known)
        self.alike = tuple(get_close_matches(name, known, n=3, cutoff=0.6))
        asked = f"; did you mean {' or '.join(self.alike)}?" if self.alike else ""
        every = f"{' Expected' if asked else '; expected'} one of: {', '.join(known) or '(none registered)'}"
        super().__init__(f"unknown {kind} {name!r}{asked}{'' if asked and len(known) > _MANY else every}")

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the repr


class PackageError(PrivcheckError):
    """A registered third-party package cannot be loaded, or its code failed; the message has the file and the line."""


class DeclarationError(PrivcheckError):
    """A declaration contradicts itself (two releases of one name, a symbol without a parameter, …)."""


class ProofError(PrivcheckError):
    """A number contradicts a proof: one of the two is wrong, so neither is reported.

    Attributes:
        steps: The steps of the proof, in words.
    """

    def __init__(self, message: str, *, steps: Sequence[str] = ()) -> None:
        shown = "".join(f"; {step}" for step in steps)
        super().__init__(f"{message}. The proof{shown or ' has no steps to show'}. Neither is reported: report it")
        self.steps = tuple(steps)


class CertificateError(PrivcheckError):
    """A verdict has no certificate: the message says which part of it has no form in one."""


class TrajectoryError(PrivcheckError, ValueError):
    """Trajectories are malformed or break a precondition.

    Attributes:
        problems: One line per problem, with row numbers if the data came from a file.
    """

    def __init__(self, message: str, *, problems: Sequence[str] = ()) -> None:
        text = "\n".join([message, *(f"  - {p}" for p in problems)])
        super().__init__(text)
        self.problems = tuple(problems)


class ChannelError(PrivcheckError):
    """A release is not covered by the declaration: undeclared, repeated, missing, or of another shape.

    Attributes:
        release: Name of the release.
    """

    def __init__(self, message: str, *, release: str = "") -> None:
        super().__init__(message)
        self.release = release


class LedgerError(PrivcheckError):
    """A ledger was cut short or edited, or disagrees with its declaration.

    Attributes:
        line: The first offending line, counted from 1; 0 if it is unknown.
    """

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class BudgetError(PrivcheckError):
    """A budget cannot afford a release, or its claim does not hold; nothing was spent.

    Attributes:
        cost: Cost of the refused release; None if unknown.
        remaining: Remaining budget; None if unknown.
    """

    def __init__(self, message: str, *, cost: object, remaining: object) -> None:
        super().__init__(message)
        self.cost = cost
        self.remaining = remaining


class AuthorityError(PrivcheckError):
    """A request is not authorised: the token is missing, unknown or expired, or its role does not allow it.

    Attributes:
        action: The requested action.
        known: Whether the caller is known: if not, a token is needed, otherwise another role.
    """

    def __init__(self, message: str, *, action: str = "", known: bool = True) -> None:
        super().__init__(message)
        self.action = action
        self.known = known


class IdempotencyError(PrivcheckError):
    """An idempotency key was used again with a different request."""


class StateError(PrivcheckError):
    """The request is not allowed in the charge's current state; nothing was changed.

    Attributes:
        state: The current state.
    """

    def __init__(self, message: str, *, state: str) -> None:
        super().__init__(message)
        self.state = state


class StoreError(PrivcheckError):
    """A store cannot be read or written now; the request may be repeated with the same key.

    Attributes:
        read_only: Whether this lasts until someone intervenes: the disk is full, or a chain is inconsistent.
    """

    def __init__(self, message: str, *, read_only: bool = False) -> None:
        super().__init__(message)
        self.read_only = read_only


class FullError(StoreError):
    """Too many requests wait for a store: this one was not queued and wrote nothing; retry later."""


class AuditError(PrivcheckError):
    """A trial of an audit cannot be judged: its score is not a number.

    Attributes:
        trial: Index of the run, counted from 0 over both neighbours.
        seed: Seed of the audit, with which the run can be repeated.
    """

    def __init__(self, message: str, *, trial: int, seed: int) -> None:
        super().__init__(message)
        self.trial = trial
        self.seed = seed


class FileFormatError(PrivcheckError, ValueError):
    """A file cannot be read in its expected format."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An error in words, for the command line and the service.

    Attributes:
        kind: Kind of the error, in one word.
        message: The given and the expected value; for file-system errors with the added notes.
        hint: What to do; None if the message says it all.
    """

    kind: str
    message: str
    hint: str | None


def explain_error(error: PrivcheckError | MemoryError) -> Explanation:
    """Explain an error in words: its kind, its message, what to do."""
    if isinstance(error, MemoryError):
        return Explanation("memory", "out of memory", _SMALLER)
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__.removesuffix("Error")).lower()
    if isinstance(error.__cause__, OSError):
        message = "; ".join([str(error), *getattr(error, "__notes__", ())])
        return Explanation(kind, message, explain_file(error.__cause__))
    return Explanation(kind, str(error), suggest(error.alike) if isinstance(error, UnknownNameError) else None)


def explain_file(error: OSError) -> str | None:
    """What to do about an error of the file system; None without a hint."""
    hints = {errno.ENOSPC: "the disk is full: free some space, or give --out another directory"}
    return hints.get(error.errno or 0)


def suggest(names: Sequence[str]) -> str | None:
    """The question whether one of several names was meant; None without names."""
    return f"did you mean {' or '.join(names)}?" if names else None


def _again(kind: type[PrivcheckError], args: tuple[Any, ...], attributes: Mapping[str, Any]) -> PrivcheckError:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


# a password ends at the last "@" of the word: one with "@" or "/" in it is malformed, and is a password all the same
_USER: Final = re.compile(r"(?<=://)([^\s:/@?#]*):\S*@")
_FIELD: Final = re.compile(r"((?:^|[?&;\s'\"])(?:ssl)?password=)('[^']*'|[^\s&]*)", re.IGNORECASE)


def hide_passwords(text: str) -> str:
    """Remove the passwords from URLs and from connection strings of PostgreSQL in a text.

    >>> hide_passwords("no ledger at postgres+x://ann:s3cret/@host/budget?password=s3cret")
    'no ledger at postgres+x://ann@host/budget?password=…'
    """
    return _FIELD.sub(r"\1…", _USER.sub(r"\1@", text))
