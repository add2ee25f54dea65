"""Packages that `privcheck new` writes, edited as their authors are likely to, under a plain `privcheck check`.

All of them are checked in the nightly tier, which `benchmarks/starter_mutants.md` has the figures of; a few at every
change. An edit that no longer fits today's starter fails at every change.
"""

import ast

import pytest

from mutants.starters import KINDS, read_found, run_check, write_package
from privcheck.commands.starter import KINDS as STARTED

MISTAKES = [(kind, name) for kind, (mistakes, _) in KINDS.items() for name in mistakes]
HONEST = [(kind, name) for kind, (_, honest) in KINDS.items() for name in honest]
QUICK = {  # what is refused before anything is audited, in some 5 seconds of a processor
    ("function", "re-used noise"),
    ("function", "clip after sum"),
}


def tiers(packages):
    marks = {True: pytest.mark.every_change, False: pytest.mark.nightly}
    return [pytest.param(*one, marks=marks[one in QUICK]) for one in packages]


def test_every_kind_has_twelve_mistakes_and_six_honest_variants():
    assert set(KINDS) == set(STARTED)
    assert all(len(mistakes) >= 12 and len(honest) >= 6 for mistakes, honest in KINDS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_every_edit_is_of_the_starter_as_it_is(kind, tmp_path):
    for packages in KINDS[kind]:
        for name, edits in packages.items():
            write_package(tmp_path / name, kind, edits)
            for module in (tmp_path / name).rglob("*.py"):
                ast.parse(module.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "name"), tiers(MISTAKES))
def test_a_mistake_is_found(kind, name, tmp_path):
    done = run_check(tmp_path, write_package(tmp_path, kind, KINDS[kind][0][name]))
    where, why = read_found(done)
    assert where not in {"", "crash", "exit code"}, why or done.stderr
    assert done.returncode in {1, 2, 3}
    assert why


@pytest.mark.parametrize(("kind", "name"), tiers(HONEST))
def test_an_honest_variant_is_consistent(kind, name, tmp_path):
    done = run_check(tmp_path, write_package(tmp_path, kind, KINDS[kind][1][name]))
    assert (read_found(done), done.returncode) == (("", ""), 0)
