"""Mutated certificates against the checker: how many are rejected, and whether any accepted one is false.

    python benchmarks/certificate_mutants.py [--mutants 10000] [certificate.json …]

Without files it takes the certificates written by hand in `tests/checker/certificate_samples.py`. Every mutant changes
numbers, signs, rules, exponents, relations, neighbours, releases or the text itself; those accepted are judged by the
naive twin of the tests. The table goes to standard output; exit code 1 if a false statement was accepted or the checker
raised another error.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

TREE = Path(__file__).parents[1]
sys.path[:0] = [str(TREE / "tests" / "checker"), str(TREE / "audits")]

import certificate_mutations as mutations  # noqa: E402
import certificate_samples as samples  # noqa: E402
from privcheck_check.check import check  # noqa: E402
from privcheck_check.values import Rejected, UnknownKind  # noqa: E402


def outcome(data: bytes, document: Any, rng: random.Random) -> str:
    """What the checker says, and whether it may."""
    try:
        check(data)
    except Rejected:
        return "rejected"
    except UnknownKind:
        return "unknown"
    except Exception:  # noqa: BLE001 - the benchmark counts them
        return "error"
    try:
        return "accepted" if mutations.is_true(document, rng) else "false"
    except ArithmeticError:  # the twin computes in floats
        return "out of range"


def rows(documents: dict[str, Any], mutants: int) -> list[tuple[str, Counter[str], float]]:
    """Outcomes and the longest check of each document's mutants."""
    found = []
    for name, document in documents.items():
        rng = random.Random(name)  # noqa: S311
        counted, longest = Counter[str](), 0.0
        text = json.dumps(document)
        for i in range(mutants):
            mutant = mutations.mutated(document, rng)
            data = mutations.spoiled(text, rng) if i % 10 == 9 else mutations.data(mutant)
            begun = time.perf_counter()
            counted[outcome(data, document if i % 10 == 9 else mutant, rng)] += 1
            longest = max(longest, time.perf_counter() - begun)
        found.append((name, counted, longest))
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--mutants", type=int, default=10_000)
    chosen = parser.parse_args()
    documents = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in chosen.files}
    documents = documents or {name: samples.sealed(each) for name, each in samples.ALL.items()}
    columns = ("rejected", "unknown", "accepted", "out of range", "false", "error")
    print("| certificate | " + " | ".join(columns) + " | longest, s |")
    print("| --- |" + " ---: |" * (len(columns) + 1))
    total: Counter[str] = Counter()
    for name, counted, longest in rows(documents, -(-chosen.mutants // len(documents))):
        total += counted
        print(f"| {name} | " + " | ".join(str(counted[each]) for each in columns) + f" | {longest:.2f} |")
    print("| all | " + " | ".join(str(total[each]) for each in columns) + " | |")
    return int(bool(total["false"] or total["error"]))


if __name__ == "__main__":
    sys.exit(main())
