"""One tree of exceptions: misuse is an exception, a verdict is a value.

Every message says what was given, what was expected and what to do; the offending objects ride along as attributes.
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
    """The root of everything privcheck raises on purpose; the command line ends with exit code 2 on it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets an error travel between processes with its attributes, whatever its constructor takes."""
        return _again, (type(self), self.args, dict(vars(self)))


class ParameterError(PrivcheckError, ValueError):
    """A parameter is missing, of the wrong kind or out of its range.

    Attributes:
        name: The parameter.
        given: What was given for it.
    """

    def __init__(self, message: str, *, name: str = "", given: object = None) -> None:
        super().__init__(message)
        self.name = name
        self.given = given


class InexactNumberError(ParameterError):
    """A float stood where the number has to be exact."""


class UnknownNameError(PrivcheckError, KeyError):
    """A name that the registry, a declaration or a ledger does not know.

    Attributes:
        name: The name that was given.
        known: The names that exist.
        alike: Those of them that are spelt alike; where there are many names, the message lists only these.
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
    """A registered package of somebody else's cannot be loaded, or its code failed; with the file and the line."""


class DeclarationError(PrivcheckError):
    """A declaration contradicts itself (two releases of one name, a symbol without a parameter, …)."""


class ProofError(PrivcheckError):
    """A number contradicts a proof: one of the two is wrong, so that neither is reported.

    Attributes:
        steps: The steps of the proof, in words.
    """

    def __init__(self, message: str, *, steps: Sequence[str] = ()) -> None:
        shown = "".join(f"; {step}" for step in steps)
        super().__init__(f"{message}. The proof{shown or ' has no steps to show'}. Neither is reported: report it")
        self.steps = tuple(steps)


class TrajectoryError(PrivcheckError, ValueError):
    """Trajectories that are malformed or break a precondition.

    Attributes:
        problems: One line a problem, with row numbers where the data came from a file.
    """

    def __init__(self, message: str, *, problems: Sequence[str] = ()) -> None:
        text = "\n".join([message, *(f"  - {p}" for p in problems)])
        super().__init__(text)
        self.problems = tuple(problems)


class ChannelError(PrivcheckError):
    """A release that the declaration does not cover: undeclared, repeated, missing, or of another shape.

    Attributes:
        release: The release's name.
    """

    def __init__(self, message: str, *, release: str = "") -> None:
        super().__init__(message)
        self.release = release


class LedgerError(PrivcheckError):
    """A ledger that was cut short, edited, or disagrees with its declaration.

    Attributes:
        line: The first offending line, counted from 1 (0 where no line can be named).
    """

    def __init__(self, message: str, *, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class BudgetError(PrivcheckError):
    """A release that a budget cannot afford; nothing was spent.

    Attributes:
        cost: What it would have cost.
        remaining: What is left.
    """

    def __init__(self, message: str, *, cost: object, remaining: object) -> None:
        super().__init__(message)
        self.cost = cost
        self.remaining = remaining


class AuthorityError(PrivcheckError):
    """Somebody may not do what was asked for: a token is missing, unknown or over, or its role does not allow it.

    Attributes:
        action: What was to be done.
        known: Whether it is known who asked: without that a token is needed, with it another role.
    """

    def __init__(self, message: str, *, action: str = "", known: bool = True) -> None:
        super().__init__(message)
        self.action = action
        self.known = known


class IdempotencyError(PrivcheckError):
    """An idempotency key came again, with another request than the first time."""


class StateError(PrivcheckError):
    """A charge is not in a state that what was asked for could follow; nothing was changed.

    Attributes:
        state: The one that it is in.
    """

    def __init__(self, message: str, *, state: str) -> None:
        super().__init__(message)
        self.state = state


class StoreError(PrivcheckError):
    """A store that cannot be read or written now; what was asked for may be asked for again with the same key.

    Attributes:
        read_only: It stays so until somebody looks at it: the disk is full, or a chain does not fit together.
    """

    def __init__(self, message: str, *, read_only: bool = False) -> None:
        super().__init__(message)
        self.read_only = read_only


class FullError(StoreError):
    """Too many requests wait for a store: this one was not queued and wrote nothing; ask again later."""


class AuditError(PrivcheckError):
    """A trial of an audit that cannot be judged: its score is not a number.

    Attributes:
        trial: The run, counted from 0 over both neighbours.
        seed: The audit's seed, with which the run can be repeated.
    """

    def __init__(self, message: str, *, trial: int, seed: int) -> None:
        super().__init__(message)
        self.trial = trial
        self.seed = seed


class FileFormatError(PrivcheckError, ValueError):
    """A file that cannot be read as what it should be."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An error in words, for the command line and the service alike.

    Attributes:
        kind: The kind of error, in one word.
        message: What was given and what was expected, with the notes that were added.
        hint: What to do; None where the message is all there is to say.
    """

    kind: str
    message: str
    hint: str | None


def explain_error(error: PrivcheckError | MemoryError) -> Explanation:
    """Returns an error in words: its kind, its message, what to do."""
    if isinstance(error, MemoryError):
        return Explanation("memory", "out of memory", _SMALLER)
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__.removesuffix("Error")).lower()
    if isinstance(error.__cause__, OSError):
        message = "; ".join([str(error), *getattr(error, "__notes__", ())])
        return Explanation(kind, message, explain_file(error.__cause__))
    return Explanation(kind, str(error), suggest(error.alike) if isinstance(error, UnknownNameError) else None)


def explain_file(error: OSError) -> str | None:
    """Returns what to do about an error of the file system; None where nothing can be said."""
    hints = {errno.ENOSPC: "the disk is full: free some space, or give --out another directory"}
    return hints.get(error.errno or 0)


def suggest(names: Sequence[str]) -> str | None:
    """Returns the question whether one of several names was meant; None without names."""
    return f"did you mean {' or '.join(names)}?" if names else None


def _again(kind: type[PrivcheckError], args: tuple[Any, ...], attributes: Mapping[str, Any]) -> PrivcheckError:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


# a password ends at the last "@" of the word: one with "@" or "/" in it is malformed, and is a password all the same
_USER: Final = re.compile(r"(?<=://)([^\s:/@?#]*):\S*@")
_FIELD: Final = re.compile(r"((?:^|[?&;\s'\"])(?:ssl)?password=)('[^']*'|[^\s&]*)", re.IGNORECASE)


def hide_passwords(text: str) -> str:
    """Returns a text in which no URL, and no connection string of PostgreSQL, shows its password.

    >>> hide_passwords("no ledger at postgres+x://ann:s3cret/@host/budget?password=s3cret")
    'no ledger at postgres+x://ann@host/budget?password=…'
    """
    return _FIELD.sub(r"\1…", _USER.sub(r"\1@", text))
