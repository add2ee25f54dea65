"""Every block of code on every page: Python runs in order and prints what it promises, commands are ones that exist."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from privcheck.cli.main import main
from privcheck.runtime import registry

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(page for folder in ("docs", "docs/reference") for page in sorted((ROOT / folder).glob("*.md"))),
]
FENCE = re.compile(r"(?P<before>[^\n]*)\n\n?^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
ILLUSTRATION = re.compile(r"^\*.*\b(tests do not run it|not run from this page)\b.*:\*$")  # as a reader sees it
SHOWN = {"text", "bibtex", "dockerfile", "{toctree}", "{eval-rst}", "{include}"}
ALGORITHMS = {"show", "budget", "verify", "calibrate", "audit", "run", "sweep", "check"}  # about registered ones
PROMISE = re.compile(r"^(?: *)print\(.*\)  # ([^,:\n]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block, and whether the line above it says that it only illustrates."""

    kind: str
    code: str
    illustrates: bool


def blocks(page):
    text = "\n\n" + page.read_text(encoding="utf-8")
    found = [
        Block(kind=m["kind"].strip(), code=m["code"], illustrates=bool(ILLUSTRATION.match(m["before"].strip())))
        for m in FENCE.finditer(text)
    ]
    assert len(found) * 2 == len(re.findall(r"^```", text, re.MULTILINE))  # each is seen
    return found


WITH_PYTHON = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name)
def test_the_python_of_a_page_runs_in_order_and_prints_what_it_promises(page, capsys, monkeypatch, tmp_path):
    code = "\n".join(block.code for block in blocks(page) if block.kind == "python" and not block.illustrates)
    monkeypatch.chdir(tmp_path)  # what it writes
    exec(compile(code, str(page), "exec", dont_inherit=True), {"__name__": "page"})  # noqa: S102 - our own documents
    said = capsys.readouterr().out
    promises = [text.strip().rstrip("…") for text in PROMISE.findall(code)]
    assert [text for text in promises if text not in said] == [], said


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_of_a_page_exist_with_their_options(page):
    """They are parsed, not run; a line with an ellipsis leaves something out, as its reader sees."""
    wrong = {}
    for line in _commands(page):
        try:
            _parse(shlex.split(line, comments=True))
        except (click.ClickException, AssertionError) as error:
            wrong[line] = repr(error)
    assert wrong == {}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_other_block_is_of_a_known_kind(page):
    for block in blocks(page):
        if block.kind == "json":
            json.loads(block.code)
        elif block.kind == "toml":
            tomllib.loads(block.code)
        else:
            assert block.kind.split(" ")[0] in {"python", "console", *SHOWN}


def _commands(page):
    """Yields the lines that call privcheck or make, continued lines joined."""
    for block in blocks(page):
        if block.kind == "console" and not block.illustrates:
            for line in block.code.replace("\\\n", " ").splitlines():
                call = re.split(r" >>? | {2}# ", line.removeprefix("$ "))[0]
                if call.startswith(("privcheck ", "make ")) and "…" not in call:
                    yield call


def _parse(words):
    """Parses a call as Click would, without what depends on files; checks that what is named is registered."""
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert words[1] in targets
        return
    command, args = main, words[1:]
    while isinstance(command, click.Group):
        _, command, args = command.resolve_command(click.Context(command), args)
        assert command is not None
    context = click.Context(command, info_name=command.name)
    given, rest, _ = command.make_parser(context).parse_args(args=list(args))
    assert not rest
    named = (given.get("names") or [given.get("name")]) if command.name in ALGORITHMS else []
    assert [n for n in named if isinstance(n, str) and n not in registry.names("algorithms") and n[:3] != "my-"] == []
