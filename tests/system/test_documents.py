"""The Python in README and docs runs, and every finding's code has its section."""

import re
from pathlib import Path

import pytest

from privcheck.verification import CODES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["README.md", "docs/declare.md", "docs/look-inside.md", "docs/numbers.md"])
def test_the_python_in_the_documents_runs(name, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {})  # noqa: S102 - our own documents
    said = capsys.readouterr().out
    promised = [c.split("#")[1].split(",")[0].strip() for c in blocks[0].splitlines() if ")  # " in c]
    assert all(text.rstrip("…") in said for text in promised), said


def test_every_code_has_a_section():
    text = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+)$", text, re.MULTILINE)
    assert sections == list(CODES)
