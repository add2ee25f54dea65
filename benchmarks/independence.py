"""Functions whose runs of one call depend on each other: accused and found; how often independent runs are suspected.

    PYTHONPATH=algorithms:audits:tests python benchmarks/independence.py [--seeds 6] [--trials 10000] [--only accused]

The first table audits every function of `mutants.shared` with several seeds at 99 % confidence. The second compares
calls of functions with independent runs, and counts what the first test suspects and the second confirms.
"""

import argparse
import time

import numpy as np

from mutants.shared import BROKEN, CORRECT
from privcheck import audit_mechanism


def _sparse_vector(given, runs, rng):
    above = given + rng.laplace(0, 4, (runs, 10)) > rng.laplace(0, 2, (runs, 1))
    first = np.where(above.any(axis=1), above.argmax(axis=1), 10)[:, None]
    return np.where(np.arange(10) < first, 0, np.where(np.arange(10) == first, 1, -1))


LAWS = {
    "Laplace": lambda given, runs, rng: given + rng.laplace(0, 1, runs),
    "Cauchy": lambda given, runs, rng: given + rng.standard_cauchy(runs),
    "one in 30": lambda _, runs, rng: rng.random(runs) < 1 / 30,
    "geometric": lambda given, runs, rng: given + rng.geometric(0.6, runs),
    "three columns": lambda given, runs, rng: given + rng.normal(size=(runs, 3)),
    "one of ten": lambda _, runs, rng: np.eye(10)[rng.integers(0, 10, runs)],
    "sorted": lambda given, runs, rng: np.sort(given + rng.integers(0, 4, (runs, 6)), axis=1),
    "sparse vector": _sparse_vector,
    "randomised response, 10 bits": lambda given, runs, rng: (rng.random((runs, 10)) < 0.3) != given,
}


def accused(trials, seeds):
    """Prints how many of the audits say violation."""
    print(f"| function | claim | truth | violation in {seeds} audits | largest bound | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for each in (*CORRECT, *BROKEN):
        began, bounds, number = time.process_time(), [], 0
        for seed in range(seeds):
            found = audit_mechanism(each.run, each.claim, neighbours=each.pairs, trials=trials, seed=seed)
            number += found.verdict == "violation"
            bounds.append(found.lower)
        spent = (time.process_time() - began) / seeds
        truth = "broken" if each.broken else "private"
        print(f"| {each.name} | {each.claim} | {truth} | {number} | {max(bounds):.3g} | {spent:.1f} |", flush=True)


def suspected(seeds):
    """Prints how often independent runs are suspected, and how often that is confirmed."""
    from privcheck_audits.blackbox.calls import read_signature
    from privcheck_audits.blackbox.independence import AGAIN, FIRST, CallPairs, is_confirmed, suspect
    from privcheck_audits.blackbox.inputs import probe

    print("| independent runs | runs a call | comparisons | suspected | confirmed |")
    print("| --- | --- | --- | --- | --- |")
    for name, law in LAWS.items():
        caller = read_signature(law, one_at_a_time=None, catch=True)
        source = probe(caller, (0, 1), number=0, seed=0).source
        for size in (4, 32):
            first = second = 0
            made = CallPairs(source=source, size=size)
            for seed in range(seeds):
                rng = np.random.default_rng((size, seed))
                figure = suspect(*made(rng, FIRST, 0), rng)
                first += figure is not None
                second += figure is not None and is_confirmed(figure, *made(rng, AGAIN, 0), rng)
            print(f"| {name} | {size} | {seeds} | {first} | {second} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--only", choices=["accused", "suspected"])
    asked = parser.parse_args()
    if asked.only != "suspected":
        accused(asked.trials, asked.seeds)
    if asked.only != "accused":
        suspected(asked.comparisons)


if __name__ == "__main__":
    main()
