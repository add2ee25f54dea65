"""How many runs a second of the processor the black-box audit gets through, and what that costs in tightness.

    python benchmarks/blackbox_speed.py [--trials 100000] [--repeat 3] [--before CHECKOUT] [--write]

Runs are 2N: N under each neighbour, learning included. Each audit has a process of its own, one thread, and a small
audit before it that loads what is loaded once; the least of the repeated times counts. Three arms take turns: as it is;
a slow twin that keeps every feature and learns four times, whatever the number of runs; and, with `--before`, another
checkout of the project (`git worktree add CHECKOUT 81e26a8` for the state before this benchmark). `--write` puts the
table beside this script.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from privcheck import ZCDP, PureDP, audit_mechanism

HERE = Path(__file__).resolve()
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def single(given, runs, rng):
    """Returns a number with Laplace noise."""
    return given + rng.laplace(0, 1, runs)


def many(width):
    """Returns a mechanism of many numbers with normal noise, of which the first is moved."""

    def run(given, runs, rng):
        noise = rng.normal(0, 1, (runs, width))
        noise[:, 0] += given
        return noise

    return run


CASES = {
    "one number, Laplace": (single, PureDP(1)),
    "10 numbers, Gauss": (many(10), ZCDP("1/2")),
    "40 numbers, Gauss": (many(40), ZCDP("1/2")),
    "200 numbers, Gauss": (many(200), ZCDP("1/2")),
}


def measure(name, trials, *, slow):
    """Returns the seconds of the processor that one audit took, and what it showed of the claim."""
    mechanism, claim = CASES[name]
    if slow:
        from privcheck_audits.blackbox import scores

        vars(scores).update(_MANY=sys.maxsize, _FEATURES=sys.maxsize)
    audit_mechanism(mechanism, claim, neighbours=[(0.0, 1.0)], trials=200)
    began = time.process_time()
    found = audit_mechanism(mechanism, claim, neighbours=[(0.0, 1.0)], trials=trials)
    return {"seconds": time.process_time() - began, "runs": found.runs, "lower": found.lower / found.claimed}


def ask(name, trials, arm, before):
    """Returns the measurement of a process of its own."""
    environment = {**os.environ, **ONE_THREAD}
    if arm == "before":
        rooms = os.pathsep.join(str(before / room) for room in ("", "algorithms", "audits"))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (rooms, environment.get("PYTHONPATH"))))
    command = [
        sys.executable,
        str(HERE),
        "--one",
        name,
        "--trials",
        str(trials),
        *(["--slow"] if arm == "twin" else []),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--slow", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, asked.trials, slow=asked.slow)))
        return
    arms = ["now", "twin", *(["before"] if asked.before else [])]
    heads = {"now": "now", "twin": "slow twin", "before": "state before"}
    about = (
        f"Runs a second of the processor at N = {asked.trials:,}: 2N runs, learning included, one thread; the best of "
        f"{asked.repeat} processes each, the arms in turn. In brackets: the lower bound over the claim, which is true. "
        "The slow twin keeps every feature and learns four times."
    )
    ratios = [f"times the {heads[arm]}" for arm in arms[1:]]
    lines = [
        "# Speed of the black-box audit",
        "",
        about,
        "",
        f"| outputs | {' | '.join([*(heads[arm] for arm in arms), *ratios])} |",
        "| --- |" + " ---: |" * (2 * len(arms) - 1),
    ]
    for name in CASES:
        taken = {arm: [] for arm in arms}
        for _ in range(asked.repeat):
            for arm in arms:
                taken[arm].append(ask(name, asked.trials, arm, asked.before))
        best = {arm: min(each, key=lambda one: one["seconds"]) for arm, each in taken.items()}
        rates = {arm: one["runs"] / one["seconds"] for arm, one in best.items()}
        cells = [f"{rates[arm]:,.0f} ({best[arm]['lower']:.3f})" for arm in arms]
        cells += [f"{rates['now'] / rates[arm]:.1f}" for arm in arms[1:]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    lines += ["", f"Python {platform.python_version()}, NumPy {np.__version__}."]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        HERE.with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
