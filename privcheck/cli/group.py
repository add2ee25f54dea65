"""The group of all commands: an error of a command becomes a message, or a JSON object, and an exit code.

If a character set cannot show ε, text is spelt in ASCII and no error is raised.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import sys
import traceback
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

import click

from privcheck.commands.failures import (
    INTERNAL,
    UNREAD,
    Failure,
    describe,
    explain,
    interrupted,
    pair_options,
)
from privcheck.errors import UnknownNameError, suggest

_SPELT: Final = {
    "Σ": "Sum", "λ": "lambda", "Λ": "Lambda", "ϕ": "phi", "←": "<-", "⟨": "<", "⟩": ">", "≤": "<=", "≥": ">=",
    "≠": "!=", "≈": "~", "∞": "inf", "√": "sqrt", "∈": "in", "±": "+-", "∥": "||", "‖": "||", "×": "x",
    "·": "*", "−": "-", "–": "-", "—": "-", "′": "'", "″": "''", "…": "...", "⌈": "ceil(", "⌉": ")",
    "⌊": "floor(", "⌋": ")", "→": "->", "↔": "<->", "⇒": "=>", "“": '"', "”": '"', "„": '"', "’": "'", "‘": "'",
    "⊤": "T", "⋅": "*", "∼": "~", "∝": "prop. to", "ˇ": "", "†": "^dagger", "ϵ": "epsilon",
    "½": "1/2", "⅛": "1/8", "¼": "1/4", "ℓ": "l", "ℝ": "R", "∑": "sum", "∏": "prod", "ü": "ue", "ä": "ae",
    "ö": "oe", "█": "#", "▌": "#", "│": "|", "─": "-", "✓": "yes", "✗": "no",
}  # fmt: skip
_POWERS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_INDICES: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋₊", "0123456789-+")
_NAME: Final = "privcheck.spelt"


def spell(text: str) -> str:
    """The text in ASCII.

    >>> spell("ε ≤ 0.5 at δ = 10⁻⁵")
    'epsilon <= 0.5 at delta = 10^-5'
    """
    made = ""
    raised = False
    for char in text:
        up = char in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺"
        if up:
            made += ("" if raised else "^") + char.translate(_POWERS)
        else:
            made += _spell_one(char)
        raised = up
    return made


def spell_what_is_missing() -> None:
    """Make standard output and error spell the characters that their character sets lack."""
    codecs.register_error(_NAME, _spell_error)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and getattr(stream, "errors", "") in (
            "strict",
            "surrogateescape",
            "backslashreplace",
        ):
            reconfigure(errors=_NAME)


def _spell_error(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spell(error.object[error.start : error.end]), error.end


def _spell_one(char: str) -> str:
    if char.isascii():
        return char
    if char in _SPELT:
        return _SPELT[char]
    lowered = char.translate(_INDICES)
    if lowered.isascii():
        return lowered
    if unicodedata.combining(char):
        return ""
    name = unicodedata.name(char, "")
    if name.startswith("GREEK") and " LETTER " in name:
        letter = name.split(" LETTER ")[1].split(" ")[0].lower()
        return letter.capitalize() if "CAPITAL" in name else letter
    return unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode() or "?"


class Front(click.Group):
    """The group of all commands, which reports their errors in one place."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Run a command and end the process with its exit code."""
        spell_what_is_missing()
        given = list(sys.argv[1:] if args is None else args)
        try:
            # Click closes no context of a command line that cannot be read: what such a command redirected ends here
            with contextlib.redirect_stdout(sys.stdout):
                code = super().main(given, *more, **{**extra, "standalone_mode": False})
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - an error that nobody expected has a code too
            _tell(error, given)
        else:
            sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 141 if the output is closed, because Click's code 1 is a verdict."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would complain when it ends
            sys.exit(UNREAD)
        return result

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name; a misspelt name is refused with similar names."""
        command = super().get_command(ctx, cmd_name)
        if command is None and not ctx.resilient_parsing:
            unknown = UnknownNameError("command", cmd_name, self.list_commands(ctx))
            raise click.UsageError(str(unknown), ctx) from unknown
        return command


def explain_command(error: BaseException, arguments: Sequence[str] = ()) -> Failure:
    """Explain an error of a command, usage errors included.

    Args:
        error: The error.
        arguments: Command line; the message names the option with the offending value.
    """
    if isinstance(error, click.ClickException):
        given, hint = _of_usage(error, arguments)
        return describe("usage", error.format_message(), given=given, hint=hint, code=error.exit_code)
    if isinstance(error, click.Abort):  # Click's name of an interrupt
        return interrupted(error)
    return explain(error, arguments)


def _of_usage(error: click.ClickException, arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """The offending value and a hint, for a command line that cannot be read."""
    if isinstance(error.__cause__, UnknownNameError):
        return error.__cause__.name, suggest(error.__cause__.alike)
    if isinstance(error, click.NoSuchOption):
        return error.option_name, suggest(tuple(error.possibilities or ()))
    options = tuple(getattr(getattr(error, "param", None), "opts", ()))
    given = next((value for option, value in pair_options(arguments) if option in options), None)
    path = None if not isinstance(error, click.UsageError) or error.ctx is None else error.ctx.command_path
    return given, None if path is None else f"{path} --help"


def _tell(error: BaseException, arguments: Sequence[str]) -> None:
    from privcheck.reports.values import SCHEMA

    failure = explain_command(error, arguments)
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
