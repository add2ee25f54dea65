"""The reference is complete: every public name, every command and option, every page in the table of contents."""

import ast
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import click
import pytest

import privcheck
import privcheck_audits.bounds
from privcheck.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
MODULE = re.compile(r"^\.\. automodule:: (\S+)\n((?:   :.*\n)*)", re.MULTILINE)


def described():
    """Returns all objects that autodoc is told to describe, by module and options as the pages have them."""
    found = []
    for page in sorted((DOCS / "reference/api").glob("*.md")):
        for name, options in MODULE.findall(page.read_text(encoding="utf-8")):
            module = importlib.import_module(name)
            listed = re.search(r":members: *(.*)", options)[1]
            if listed:
                names = [n.strip() for n in listed.split(",")]
            elif "imported-members" in options:
                names = module.__all__
            else:
                names = [n for n, v in vars(module).items() if n[0] != "_" and getattr(v, "__module__", "") == name]
            found += [getattr(module, n) for n in names]
    return found


DESCRIBED = described()


def rooms():
    """Returns the packages and modules that say what is public in them."""
    names = [module.name for module in pkgutil.walk_packages(privcheck.__path__, "privcheck.") if _is_room(module.name)]
    return [*names, privcheck_audits.bounds.__name__]


def _is_room(name):
    path = importlib.util.find_spec(name).origin
    return path is not None and "__all__ = [" in Path(path).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", privcheck.__all__)
def test_every_public_name_is_described_and_in_the_table(name):
    thing = getattr(privcheck, name)
    assert any(other is thing for other in DESCRIBED)
    assert f"`{name}`" in (DOCS / "reference/api.md").read_text(encoding="utf-8")


def test_every_public_function_and_class_of_every_room_is_described():
    known = {id(thing) for thing in DESCRIBED}
    missing = [
        f"{room}.{name}"
        for room in rooms()
        for name in importlib.import_module(room).__all__
        if callable(thing := getattr(importlib.import_module(room), name)) and id(thing) not in known
    ]
    assert missing == []


def _commands(command, path=()):
    yield (*path, command.name), command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from _commands(command.get_command(click.Context(command), name), (*path, command.name))


def test_every_command_and_option_is_in_the_page_that_click_writes():
    spec = importlib.util.spec_from_file_location("reading", DOCS / "reading.py")
    reading = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reading)
    assert reading.MARK in (DOCS / f"{reading.COMMANDS}.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", reading.describe_commands(), re.MULTILINE | re.DOTALL))
    everything = list(_commands(main))
    assert len(sections) == len(everything) > 20
    for path, command in everything:
        options = [o for p in command.params if isinstance(p, click.Option) and not p.hidden for o in p.opts[:1]]
        assert [o for o in options if o not in sections[" ".join(path)]] == []


def test_the_gallery_shows_every_picture_that_its_script_takes_with_its_command():
    page, script = ((DOCS / name).read_text(encoding="utf-8") for name in ("gallery.md", "pictures.py"))
    names = re.findall(r"^!\[.+\]\(pictures/(.+)\.png\)$", page, re.MULTILINE)
    assert sorted(names) == sorted(path.stem for path in (DOCS / "pictures").iterdir())
    assert all(re.search(rf"[\"']{name}[\"']", script) for name in names)
    assert all((DOCS / f"pictures/{name}.png").stat().st_size < 150_000 for name in names)
    taken = {" ".join(c.split()) for c in re.findall(r"^\$ (.+)$", page, re.MULTILINE)} - {"make serve-demo"}
    assert taken <= {node.value for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Constant)}


def test_every_page_is_in_the_table_of_contents():
    contents = set(re.findall(r"^[\w/-]+$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {str(p.relative_to(DOCS).with_suffix("")) for p in (*DOCS.glob("*.md"), *DOCS.glob("reference/*.md"))}
    assert pages - {"index"} <= contents
