"""What a plain `privcheck check` finds of mistakes in the packages that `privcheck new` writes.

python benchmarks/starter_mutants.py DONE.jsonl [KIND …] > benchmarks/starter_mutants.md

Each package that was checked is a line of DONE.jsonl, and is not checked again: a run that was cut short goes on. With
"none" for KIND nothing is checked, and the table is of what was.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mutants.starters import KINDS, Edits, read_found, run_check, write_package

HEAD = """# Mistakes in packages that `privcheck new` wrote, under a plain `privcheck check`

One row a package, edited as its author is likely to (`tests/mutants/starters.py`), and checked without options. *Found
by* is the first part of the check that says so, with its reason; a mistake that nothing finds is one that the check
misses, and an honest variant that something finds is a false accusation. CPU is the seconds of processor time of the
whole command, on a shared machine with two cores; of wall time it had a third or less.
"""
NOT_MADE = {
    "function": "A function hands back its output alone: it claims no return, has no diagnostics, remarks or policy, "
    "and does not stop by regret; its twelve have fixed noise, bounds by exact counts and two kinds of early stop "
    "instead.",
    "linear": "No tree has nodes: the forgotten node is noise that one entry lacks.",
    "offline": "No tree has nodes: the forgotten node is noise that one cell lacks.",
    "shuffle": "Noise bits are the package's, not the author's: they are neither re-used nor seeded by a user, and no "
    "tree has nodes. Rewards that are no bits, integers in place of bits and a forgotten step come instead.",
}


def main(place: Path, kinds: list[str]) -> None:
    done = _read(place)
    for kind in [] if kinds == ["none"] else kinds or list(KINDS):
        for name, edits in _packages(kind).items():
            if (kind, name) not in done:
                done[kind, name] = row = {"kind": kind, "name": name, **_check(kind, edits)}
                with place.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(HEAD)
    for kind in KINDS:
        rows = [done[kind, name] for name in _packages(kind) if (kind, name) in done]
        print(f"## {kind}\n\n{_count(kind, rows)} {NOT_MADE.get(kind, '')}".rstrip())
        if rows:
            print("\n| package | exit code | CPU, s | found by | reason |\n| --- | --- | --- | --- | --- |")
        for row in rows:
            why = re.sub(r"/\S*/tmp\w*/", "", row["why"].replace("|", " ").replace("\n", " "))  # folders of the check
            print(f"| {row['name']} | {row['code']} | {row['cpu']:.0f} | {row['where'] or '-'} | {why[:300]} |")
        print()


def _read(place: Path) -> dict[tuple[str, str], dict[str, Any]]:
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    return {(row["kind"], row["name"]): row for row in map(json.loads, lines)}


def _packages(kind: str) -> dict[str, Edits]:
    mistakes, honest = KINDS[kind]
    return {**mistakes, **{f"honest: {name}": edits for name, edits in honest.items()}}


def _count(kind: str, rows: list[dict[str, Any]]) -> str:
    mistakes, honest = KINDS[kind]
    made = [row for row in rows if row["name"] in mistakes]
    others = [row for row in rows if row["name"] not in mistakes]
    found, kept = sum(bool(row["where"]) for row in made), sum(not row["where"] for row in others)
    not_run = len(mistakes) + len(honest) - len(rows)
    said = f"Of {len(made)} mistakes {found} are found, of {len(others)} honest variants {kept} are consistent"
    return f"{said}; {not_run} packages are not measured yet." if not_run else f"{said}."


def _check(kind: str, edits: Edits) -> dict[str, Any]:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        done = run_check(place, write_package(place, kind, edits))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    where, why = read_found(done)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "code": done.returncode, "where": where, "why": why, "cpu": cpu, "wall": time.perf_counter() - began,
    }  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
