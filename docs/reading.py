"""What Sphinx asks for while it reads the pages: commands from Click, docstrings as meant, no name forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

import privcheck
from privcheck.cli.main import main

COMMANDS = "reference/commands"
MARK = "<!-- the commands stand here -->"
WIDTH = 100
# a name with a trailing underscore and what stands between two bars are links and substitutions to Sphinx
_MEANT = re.compile(r"(``.*?``|`.*?`)|(\||(?<=\w)_(?=[^\w`]|$))")


def describe_commands() -> str:
    """Returns every command's help in Markdown, a section each, as the terminal shows it."""
    return "\n".join(_describe(main, click.Context(main, info_name="privcheck", **main.context_settings)))


def _describe(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yields the lines of a command and of those below it."""
    context.terminal_width = context.max_content_width = WIDTH
    yield from (f"## {context.command_path}", "", "```text", command.get_help(context).strip(), "```", "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _describe(below, click.Context(below, info_name=name, parent=context))


def write_commands(_app: Any, page: str, source: list[str]) -> None:
    """Puts the commands where their page has the mark."""
    if page == COMMANDS:
        source[0] = source[0].replace(MARK, describe_commands())


def escape(*event: Any) -> None:
    """Takes bars and trailing underscores of a docstring for what they are, in place."""
    lines: list[str] = event[5]
    lines[:] = [_MEANT.sub(lambda found: found[1] or "\\" + found[2], line) for line in lines]


def check_names(app: Any, env: Any) -> None:
    """Warns of public names without an entry, so that a build with `-W` fails."""
    from sphinx.util.logging import getLogger

    entries = {entry[0].rpartition(".")[2] for entry in env.get_domain("py").get_objects()}
    for name in sorted(set(privcheck.__all__) - entries):
        getLogger(__name__).warning("privcheck.%s is public and has no entry in the reference", name)
    del app
