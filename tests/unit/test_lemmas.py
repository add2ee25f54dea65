"""Every lemma has a name of its own, a source or a proof, and a test; the page lists them all."""

import re
from collections import Counter

import pytest

import lemmas

STATED = lemmas.stated()
NAMES = {one.name for one in STATED}
TESTS = lemmas.checks()


def test_the_page_is_the_one_that_docstrings_and_tests_make():
    made = lemmas.write(STATED, TESTS)
    assert lemmas.PAGE.read_text(encoding="utf-8") == made, "run PYTHONPATH=tests python tests/lemmas.py"


def test_names_are_unique_and_in_kebab_case():
    assert {name: n for name, n in Counter(one.name for one in STATED).items() if n > 1} == {}
    assert [name for name in NAMES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


@pytest.mark.parametrize("one", STATED, ids=lambda one: one.name)
def test_a_lemma_has_a_statement_a_ground_and_a_test(one):
    assert one.statement.endswith("."), one.statement
    assert {"Source", "Proof"} & set(one.parts), "neither Source nor Proof"
    assert TESTS.get(one.name), f"no test says `# [lemma {one.name}]`"


def test_what_is_cited_and_what_tests_name_exists():
    assert {(name, file) for name, file in lemmas.citations() if name not in NAMES} == set()
    assert set(TESTS) - NAMES == set()


def test_a_lemma_ends_with_its_paragraph_or_its_item(tmp_path):
    text = "Words.\n\nLemma a-b: It is\nso. Source: Ann\n2020. Proof: below.\n\nElse.\n\n1. Lemma c: No.\n2. Two."
    one, two = lemmas.read(text, "privcheck.x.y")
    assert (one.name, one.statement, one.room) == ("a-b", "It is so.", "privcheck.x")
    assert one.parts == {"Source": "Ann 2020.", "Proof": "below."}
    assert (two.name, two.statement, two.parts) == ("c", "No.", {})
    (tmp_path / "test_1.py").write_text(
        '"""All of\n[lemma a-b]."""\n\n# [lemma a-b] [lemma c]\n@mark\ndef test_x(): ...\n'
    )
    assert lemmas.checks(tmp_path) == {"a-b": ["test_1.py", "test_1.py::test_x"], "c": ["test_1.py::test_x"]}
    (tmp_path / "test_1.py").write_text("\n# [lemma a-b]\n\nX = 1\n")
    with pytest.raises(AssertionError, match="above no test"):
        lemmas.checks(tmp_path)
