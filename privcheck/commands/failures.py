"""Why a command or a request ended early: one message, what was given, what to do, and an exit code.

0 done, and the claim holds where one was checked; 1 a claim fails, an audit found a violation, a charge was refused;
2 misuse or bad input; 3 undecided; 70 an internal error; 130 interrupted; 141 nobody reads the output any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from privcheck.errors import BudgetError, PrivcheckError, UnknownNameError, explain_error, explain_file, hide_passwords
from privcheck.support.plugins import find_culprit

MISUSE: Final = 2
REFUSED: Final = 1
INTERNAL: Final = 70
INTERRUPTED: Final = 130
UNREAD: Final = 141  # as of a process that SIGPIPE ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a command ended early.

    Attributes:
        error: Of which kind, in one word.
        message: What was given, what was expected.
        given: What was given, as text; None where that is not known.
        hint: What to do; None where the message is all there is to say.
        code: The exit code.
    """

    error: str
    message: str
    given: str | None
    hint: str | None
    code: int


def explain(error: BaseException, arguments: Sequence[str] = ()) -> Failure:
    """Returns why an error ended a command, in words and with the exit code that belongs to it.

    Args:
        error: The error.
        arguments: Of the command line, of which the message names the option whose value it is about.
    """
    if isinstance(error, PrivcheckError):
        return _of_ours(error, arguments)
    if isinstance(error, MemoryError):
        said = explain_error(error)
        return describe(said.kind, said.message, hint=said.hint)
    if isinstance(error, OSError):
        told = f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
        return describe("file", _with_notes(told, error), hint=explain_file(error))
    if isinstance(error, KeyboardInterrupt):
        return interrupted(error)
    return _of_code(error)


def interrupted(error: BaseException) -> Failure:
    """The failure of a command that a user interrupted, with the notes of what was left behind."""
    return describe("interrupted", _with_notes("interrupted", error.__cause__ or error), code=INTERRUPTED)


def _of_code(error: BaseException) -> Failure:
    """Returns the failure of code: a registered package's, named with its file and line, or ours."""
    if (culprit := find_culprit(error)) is not None:
        return describe("package", culprit, hint="mend the package, or uninstall it")
    message = f"internal error, nothing was decided: {error!r}"
    return describe("internal", message, hint="please report it", code=INTERNAL)


def pair_options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields every option with its value, as `--option value` or `--option=value`."""
    for at, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option.startswith("--") and equals:
            yield option, value
        elif argument.startswith("--") and at + 1 < len(arguments):
            yield argument, arguments[at + 1]


def _name_option(message: str, name: str, given: object, arguments: Sequence[str]) -> str:
    """Returns the message with the option in front, where it is about a value that one gave and does not name it."""
    if "--" in message:
        return message
    for option, value in pair_options(arguments):
        parameter, equals, _ = value.partition("=")
        if option == "--set" and equals and parameter.strip() in (name, given):
            return f"--set {value[:60]}: {message}"
        if option != "--set" and (option == f"--{name}" or (isinstance(given, str) and value == given)):
            return f"{option} {value[:60]}: {message}"
    return message


def _with_notes(message: str, error: BaseException) -> str:
    return "; ".join([message, *getattr(error, "__notes__", ())])


def _of_ours(error: PrivcheckError, arguments: Sequence[str]) -> Failure:
    name, given = str(getattr(error, "name", "")), getattr(error, "given", None)
    if isinstance(error, UnknownNameError):
        name, given = "", error.name
    said = explain_error(error)
    message = _name_option(str(error), name, given, arguments) + said.message.removeprefix(str(error))  # with its notes
    refused = REFUSED if isinstance(error, BudgetError) else MISUSE
    return describe(said.kind, message, given=given, hint=said.hint, code=refused)


def describe(error: str, message: str, *, given: object = None, hint: str | None = None, code: int = MISUSE) -> Failure:
    """A failure whose texts show no password."""
    shown = None if given is None else hide_passwords(str(given))
    return Failure(error=error, message=hide_passwords(message), given=shown, hint=hint, code=code)
