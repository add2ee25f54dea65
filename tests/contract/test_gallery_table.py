"""The gallery's table of verdicts against the registry: every algorithm of other papers, and what is found of it."""

import functools
import re
from pathlib import Path

import pytest

import privcheck_algorithms.gallery
from privcheck.commands.settings import resolve_setting
from privcheck.runtime import registry
from privcheck.verification import verify
from privcheck_algorithms.papers import GALLERY
from structures import over_registry

README = Path(next(iter(privcheck_algorithms.gallery.__path__))) / "README.md"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (.+) \| (holds|fails|undecided)\b(.*) \|$")


@functools.cache
def table():
    """Name, verdict and what is said of it, of every row but the head."""
    lines = [line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return {row[1]: (row[3], row[4]) for row in (ROW.match(line) for line in lines) if row}


def test_the_table_names_every_algorithm_of_the_gallery_in_order():
    shown = [name for name in registry.names("algorithms") if registry.algorithm(name).paper is GALLERY]
    assert list(table()) == shown


@pytest.mark.slow
@pytest.mark.parametrize("name", over_registry("declared", "gallery"))
def test_the_table_says_what_is_found(name):
    word, said = table()[name]
    setting = resolve_setting(name, {})
    verdict = verify(setting.declared, setting.values)
    assert word == verdict.verdict
    ratio = verdict.lower_ratio if word == "fails" else verdict.upper_ratio
    for figure in re.findall(r"([0-9.]+|∞) of the claim", said):
        assert float(figure.replace("∞", "inf")) == pytest.approx(ratio, rel=1e-2)
    assert word == "undecided" or "of the claim" in said
    assert ("given" in said) == (bool(verdict.given) and word == "holds")
    if verdict.joint is not None:
        assert f"the joint guarantee is {verdict.joint}" in said or f"the joint guarantee {verdict.joint}" in said
