"""Verdicts on random declarations against an oracle that enumerates: unsafe, accused, undecided, crashed, slowest.

    python benchmarks/verdicts.py [--number 10000] [--seed 0] [--processes 1] [--write]

Every system is drawn well-formed, then one of its fields is changed, four times: into nonsense, which has to be
refused, or into another system with a truth of its own. The exit code is 1 if a verdict is unsafe (a false claim holds,
or nonsense is judged), an accusation false, an exception raw, a refusal wrong or late, or a verdict later than 60 s.
`--write` puts the table beside this script; interrupted, it is that of the declarations judged so far.
"""

import argparse
import collections
import multiprocessing
import os
import platform
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "fuzz"))
from declarations.judging import judge  # noqa: E402 - the generator lives in the tests
from declarations.specs import draw, mutants  # noqa: E402
from declarations.truth import bounds  # noqa: E402

WORDS = {
    "unsafe": "a false claim holds, or nonsense is judged",
    "accused": "a true claim fails",
    "crashed": "an exception that is none of ours",
    "refused wrongly": "a declaration that means something is refused",
    "late": "nonsense is refused by `verify`, not when it is declared",
    "undecided": "neither holds nor fails, where the oracle knows",
    "refused": "nonsense, refused",
    "right": "holds or fails as the oracle says, or nearer to the claim than the oracle can tell",
}
BAD = ("unsafe", "accused", "crashed", "refused wrongly", "late")
SLOW = 10.0  # seconds of a processor; such declarations are listed too
EACH = 5  # judgements of one drawn system: itself, and with one field changed


class Tally(NamedTuple):
    """One judgement in plain values, as a process hands it back."""

    outcome: str
    late: bool
    seconds: float
    processor: float
    shown: str


def judged(drawn: int) -> list[Tally]:
    """Returns the judgements of one drawn system."""
    spec, rng = draw(drawn, bounds), random.Random(drawn)  # noqa: S311 - no secret
    found = [judge(one) for one in (spec, *rng.sample(list(mutants(spec, rng)), EACH - 1))]
    return [Tally(one.outcome, one.late, one.seconds, one.processor, f"{one.said}\n  {one.spec}") for one in found]


def judgements(number: int, seed: int, processes: int) -> Iterator[Tally]:
    """Yields every judgement of so many systems, in the order of their seeds."""
    seeds = range(seed, seed + max(1, number // EACH))
    if processes == 1:
        for drawn in seeds:
            yield from judged(drawn)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for found in pool.imap(judged, seeds, chunksize=10):
            yield from found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    counts, slowest, processor, began = collections.Counter(), 0.0, 0.0, time.perf_counter()
    total = 0
    try:
        for one in judgements(asked.number, asked.seed, asked.processes):
            total += 1
            counts[one.outcome] += 1
            counts["late"] += one.late
            slowest, processor = max(slowest, one.seconds), max(processor, one.processor)
            if one.outcome in (*BAD, "undecided") or one.late or one.processor > SLOW:
                print(f"{one.outcome}, {one.processor:.1f} s: {one.shown}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {total} declarations", file=sys.stderr)
    command = f"--number {asked.number} --seed {asked.seed} --processes {asked.processes}"
    made = f"`python benchmarks/verdicts.py {command}`: {total} declarations in {time.perf_counter() - began:.0f} s; "
    made += f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}. The oracle "
    made += "(tests/fuzz/declarations) shares no code with privcheck."
    lines = ["# Verdicts on random declarations", "", made, "", "| outcome | what it means | declarations |"]
    lines += ["| --- | --- | --- |", *(f"| {name} | {words} | {counts[name]} |" for name, words in WORDS.items())]
    lines.append(f"| slowest | declared and judged, seconds of a processor | {processor:.1f} s |")
    lines.append(f"| latest | the same by the clock, on a machine that others use too | {slowest:.1f} s |")
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        (HERE / "verdicts.md").write_text(text, encoding="utf-8")
    sys.exit(1 if slowest > 60 or any(counts[name] for name in BAD) else 0)


if __name__ == "__main__":
    main()
