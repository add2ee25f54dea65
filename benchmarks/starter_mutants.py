"""What a plain `privcheck check` finds of mistakes in the packages that `privcheck new` writes.

python benchmarks/starter_mutants.py [KIND …] > benchmarks/starter_mutants.md
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mutants.starters import KINDS, Edits, read_found, run_check, write_package

HEAD = """# Mistakes in packages that `privcheck new` wrote, under a plain `privcheck check`

One row a package, edited as its author is likely to (`tests/mutants/starters.py`), and checked without options. *Found
by* is the first part of the check that says so, with its reason; a mistake that nothing finds is one that the check
misses, and an honest variant that something finds is a false accusation.
"""


def main(kinds: list[str]) -> None:
    print(HEAD)
    for kind in kinds or list(KINDS):
        mistakes, honest = KINDS[kind]
        print(f"## {kind}\n\n| package | exit code | found by | reason |\n| --- | --- | --- | --- |")
        for name, edits in {**mistakes, **{f"honest: {name}": edits for name, edits in honest.items()}}.items():
            began = time.perf_counter()
            code, where, why = _check(kind, edits)
            print(f"| {name} | {code} | {where or '-'} | {why.replace('|', ' ')} |", flush=True)
            print(f"{kind}, {name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
        print()


def _check(kind: str, edits: Edits) -> tuple[int, str, str]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        done = run_check(place, write_package(place, kind, edits))
    return done.returncode, *read_found(done)


if __name__ == "__main__":
    main(sys.argv[1:])
