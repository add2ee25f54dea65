"""The share of lines that the fast tests run, room by room: `make coverage`, `benchmarks/lines_run.md`.

    python benchmarks/lines_run.py COVERAGE_JSON

Lines that Numba compiles are counted as missed, as it runs them out of sight: they are tested beside slow twins.
"""

from __future__ import annotations

import collections
import json
import sys
from pathlib import Path

HEAD = """# Coverage

`make coverage`: lines that the fast tests run (`-m "not slow and not nightly"`), by room. Lines that Numba compiles are
counted as missed, as it runs them out of sight.

| room | lines | run | share |
| --- | ---: | ---: | ---: |
"""


def room(path: str) -> str:
    """The package, or a folder of it, by a file's path in an installation or in the tree."""
    parts = path.split("/")
    start = max(i for i, part in enumerate(parts) if part.startswith("privcheck"))
    deep = parts[start] in ("privcheck", "privcheck_audits") and len(parts) > start + 2
    return "/".join(parts[start : start + 1 + deep])


def main() -> None:
    """Write the table."""
    files = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]
    lines: collections.Counter[str] = collections.Counter()
    ran: collections.Counter[str] = collections.Counter()
    for path, one in files.items():
        for name in (room(path), "all"):
            lines[name] += one["summary"]["num_statements"]
            ran[name] += one["summary"]["covered_lines"]
    order = [*sorted(lines.keys() - {"all"}), "all"]
    rows = [f"| {name} | {lines[name]:,} | {ran[name]:,} | {ran[name] / lines[name]:.1%} |" for name in order]
    Path(__file__).with_suffix(".md").write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    print(rows[-1])


if __name__ == "__main__":
    main()
