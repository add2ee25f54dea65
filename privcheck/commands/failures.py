"""What ends a command early: one message, or one JSON object where JSON was asked for, and an exit code of its own.

0 done, and the claim holds where one was checked; 1 a claim fails, an audit found a violation, a charge was refused;
2 misuse or bad input; 3 undecided; 70 an internal error; 130 interrupted; 141 nobody reads the output any more.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from privcheck.commands.spelling import spell_what_is_missing
from privcheck.entry_points import find_culprit
from privcheck.errors import BudgetError, PrivcheckError, UnknownNameError, explain_error, explain_file, suggest
from privcheck.hiding import hide_passwords

MISUSE: Final = 2
REFUSED: Final = 1
INTERNAL: Final = 70
INTERRUPTED: Final = 130
_UNREAD: Final = 141  # as of a process that SIGPIPE ended


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


class Front(click.Group):
    """The group of all commands: whatever ends one of them early is told in one place."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Runs a command and ends the process with its exit code."""
        spell_what_is_missing()
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(given, *more, **{**extra, "standalone_mode": False})
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - an error that nobody expected has a code too
            _tell(error, given)
        else:
            sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; ends with a code of its own where nobody reads the output, Click's 1 being a verdict."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would complain when it ends
            sys.exit(_UNREAD)
        return result

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command by name; a misspelt one is refused with those that are spelt alike."""
        command = super().get_command(ctx, cmd_name)
        if command is None and not ctx.resilient_parsing:
            unknown = UnknownNameError("command", cmd_name, self.list_commands(ctx))
            raise click.UsageError(str(unknown), ctx) from unknown
        return command


def explain(error: BaseException, arguments: Sequence[str] = ()) -> Failure:
    """Returns why an error ended a command, in words and with the exit code that belongs to it.

    Args:
        error: The error.
        arguments: Of the command line, of which the message names the option whose value it is about.
    """
    if isinstance(error, click.ClickException):
        given, hint = _of_usage(error, arguments)
        return _failure("usage", error.format_message(), given=given, hint=hint, code=error.exit_code)
    if isinstance(error, PrivcheckError):
        return _of_ours(error, arguments)
    if isinstance(error, MemoryError):
        said = explain_error(error)
        return _failure(said.kind, said.message, hint=said.hint)
    if isinstance(error, OSError):
        told = f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
        return _failure("file", _with_notes(told, error), hint=explain_file(error))
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return _failure("interrupted", _with_notes("interrupted", error.__cause__ or error), code=INTERRUPTED)
    return _of_code(error)


def _of_code(error: BaseException) -> Failure:
    """Returns the failure of code: a registered package's, named with its file and line, or ours."""
    if (culprit := find_culprit(error)) is not None:
        return _failure("package", culprit, hint="mend the package, or uninstall it")
    message = f"internal error, nothing was decided: {error!r}"
    return _failure("internal", message, hint="please report it", code=INTERNAL)


def _of_usage(error: click.ClickException, arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """Returns what was given, and what to do, where a command line cannot be read."""
    if isinstance(error.__cause__, UnknownNameError):
        return error.__cause__.name, suggest(error.__cause__.alike)
    if isinstance(error, click.NoSuchOption):
        return error.option_name, suggest(tuple(error.possibilities or ()))
    options = tuple(getattr(getattr(error, "param", None), "opts", ()))
    given = next((value for option, value in _pairs(arguments) if option in options), None)
    path = None if not isinstance(error, click.UsageError) or error.ctx is None else error.ctx.command_path
    return given, None if path is None else f"{path} --help"


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
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
    for option, value in _pairs(arguments):
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
    return _failure(said.kind, message, given=given, hint=said.hint, code=refused)


def _failure(error: str, message: str, *, given: object = None, hint: str | None = None, code: int = MISUSE) -> Failure:
    shown = None if given is None else hide_passwords(str(given))
    return Failure(error=error, message=hide_passwords(message), given=shown, hint=hint, code=code)


def _tell(error: BaseException, arguments: Sequence[str]) -> None:
    from privcheck.reports.values import SCHEMA

    failure = explain(error, arguments)
    if failure.code == INTERNAL:
        traceback.print_exception(error)
    if "--json" in arguments:
        told = {
            "schema": SCHEMA,
            "error": failure.error,
            "message": failure.message,
            "given": failure.given,
            "hint": failure.hint,
        }
        click.echo(json.dumps(told))
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        hint = f"; {failure.hint}" if failure.hint and failure.hint not in failure.message else ""
        click.echo(f"privcheck: {failure.message}{hint}", err=True)
    sys.exit(failure.code)
