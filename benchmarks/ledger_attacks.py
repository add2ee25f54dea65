"""Attacks on a ledger's store against heads that were pushed elsewhere: how many go undetected, how many are accused.

    python benchmarks/ledger_attacks.py [--number 4000] [--seed 0] [--write]

A fifth of the ledgers is not attacked. The exit code is 1 if an attack goes undetected, or a ledger is accused that
nobody attacked. `--write` puts the table beside this script.
"""

import argparse
import collections
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "fuzz"))
from ledger_attacks import ATTACKS, attack  # noqa: E402 - the generator lives in the tests

SAYS = {
    "rollback": "a copy is put back with its marks after later heads were pushed, and perhaps written on",
    "equivocation": "two copies are written on apart, each shows its own heads and proofs",
    "replay": "a row about a charge comes again, rightly sealed",
    "tampering": "rows, names or tokens are changed, and all that follows is made anew",
    "honest": "nothing: the ledger is written on",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kinds, began = [*ATTACKS, "honest"], time.perf_counter()
    done: collections.Counter[str] = collections.Counter()
    found: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as base:
        for seed in range(asked.seed, asked.seed + asked.number):
            kind, folder = kinds[seed % len(kinds)], Path(base) / str(seed)
            done[kind] += 1
            found[kind] += bool(attack(kind, seed, folder))
            shutil.rmtree(folder)
    wrong = {kind: found[kind] if kind == "honest" else done[kind] - found[kind] for kind in kinds}
    lines = [
        "# Attacks on the ledger's store",
        "",
        f"By `benchmarks/ledger_attacks.py --number {asked.number} --seed {asked.seed}`: drawn histories with heads",
        "pushed elsewhere on the way, attacked by somebody who may write the file, has its key, and makes hashes,",
        "sums, trees and marks anew. SQLite.",
        "",
        "| what happens | ledgers | told | wrongly |",
        "| --- | --- | --- | --- |",
        *(f"| {kind}: {SAYS[kind]} | {done[kind]} | {found[kind]} | {wrong[kind]} |" for kind in kinds),
        "",
        f"Python {platform.python_version()}, {time.perf_counter() - began:.0f} s.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        (HERE / "ledger_attacks.md").write_text(text, encoding="utf-8")
    sys.exit(any(wrong.values()))


if __name__ == "__main__":
    main()
