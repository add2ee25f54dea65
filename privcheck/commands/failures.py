"""Failures of a command or a request: a message, the offending value, a hint and an exit code.

0 success, and a checked claim holds; 1 a claim fails, an audit found a violation, a charge was refused; 2 misuse or bad
input; 3 undecided; 70 an internal error; 130 interrupted; 141 the output was closed.
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
    """Failure of a command.

    Attributes:
        error: Kind of the error, in one word.
        message: The given and the expected value.
        given: The offending value as text; None if unknown.
        hint: What to do; None if the message says it all.
        code: The exit code.
    """

    error: str
    message: str
    given: str | None
    hint: str | None
    code: int


def explain(error: BaseException, arguments: Sequence[str] = ()) -> Failure:
    """Explain an error of a command, in words and with its exit code.

    Args:
        error: The error.
        arguments: Command line; the message names the option with the offending value.
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
    """The failure of an interrupted command, with the notes about files left behind."""
    return describe("interrupted", _with_notes("interrupted", error.__cause__ or error), code=INTERRUPTED)


def _of_code(error: BaseException) -> Failure:
    """The failure of code: a registered package's, with its file and line, or an internal error."""
    if (culprit := find_culprit(error)) is not None:
        return describe("package", culprit, hint="repair the package, or uninstall it")
    message = f"internal error, nothing was decided: {error!r}"
    return describe("internal", message, hint="please report it", code=INTERNAL)


def pair_options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every option with its value, from `--option value` or `--option=value`."""
    for at, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option.startswith("--") and equals:
            yield option, value
        elif argument.startswith("--") and at + 1 < len(arguments):
            yield argument, arguments[at + 1]


def _name_option(message: str, name: str, given: object, arguments: Sequence[str]) -> str:
    """Prefix the message with the option it concerns, if it is about a given value and names no option."""
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
    """Make a failure, with passwords hidden in its texts."""
    shown = None if given is None else hide_passwords(str(given))
    return Failure(error=error, message=hide_passwords(message), given=shown, hint=hint, code=code)
