"""How fast the audits of DP-APVI are, and how close they come: runs and passes a second, next to the generator alone.

    python benchmarks/audit_throughput.py [--write]

Runs are counted under both neighbours (2N in all). Each figure is the median of five measurements, and the generator
alone is measured between them, on as many threads. `--write` puts the table beside this script.
"""

import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from algorithms.dp_apvi import GAUSSIAN, LAPLACE, OPTIONS
from audits.canaries import worst_canary
from audits.engine import blocks
from audits.plans import DP_APVI
from audits.plans.dp_apvi import instance
from audits.sampling import draw
from privcheck.declaration import resolve
from privcheck.results import AuditRequest

REPEATS = 5
DEFAULTS = resolve(OPTIONS, {}, owner="benchmark")
POLICY = {"H": 20, "S": 6, "A": 2}


def request(algorithm, view, *, trials, workers, sets):
    declaration = algorithm.declare({})
    return AuditRequest(
        declaration=declaration,
        values=declaration.values(sets),
        options=DEFAULTS,
        view=view,
        delta=1e-5 if algorithm is GAUSSIAN else 0.0,
        trials=trials,
        confidence=0.99,
        workers=workers,
    )


def audited(asked):
    """Returns runs a second of an audit, as it reports them."""
    return DP_APVI.audit(asked).evidence["trials_per_second"]


def generated(numbers, noise, runs, workers):
    """Returns runs a second if a run only drew its numbers."""

    def work(rng, count, _):
        step = max(1, 160_000 // numbers)
        for start in range(0, count, step):
            draw(noise, rng, (min(step, count - start), numbers))

    draw(noise, np.random.default_rng(0), (1,))
    started = time.perf_counter()
    list(blocks(work, runs, seed=0, block=min(16_384, max(512, runs // 64)), workers=workers))
    return runs / (time.perf_counter() - started)


def compare(asked, numbers, noise, workers):
    """Returns the medians of the audit's and the generator's speeds, measured alternately."""
    audited(asked)
    pairs = [(audited(asked), generated(numbers, noise, 2 * asked.trials, workers)) for _ in range(REPEATS)]
    return (statistics.median(speeds) for speeds in zip(*pairs, strict=True))


def main():
    rows = []
    for workers in (1, 2):
        for algorithm, trials in ((GAUSSIAN, 1_000_000), (LAPLACE, 200_000)):
            sets = {"H": 20} if algorithm is GAUSSIAN else {"H": 1}
            asked = request(algorithm, "releases", trials=trials, workers=workers, sets=sets)
            group = worst_canary(asked.declaration, asked.values).groups[0]
            ours, bare = compare(asked, group.change.size, group.noise, workers)
            what = f"releases, {algorithm.name}, H = {sets['H']} ({group.change.size} numbers a run)"
            rows.append((what, workers, f"{ours / 1e6:.2f} million", f"{bare / 1e6:.2f} million", f"{ours / bare:.0%}"))
        asked = request(GAUSSIAN, "policy", trials=50_000, workers=workers, sets=POLICY)
        whole = instance(asked.declaration, asked.values, DEFAULTS)
        numbers = sum(table.size for table in whole.exact[0].values())
        ours, bare = compare(asked, numbers, whole.noise["visits"], workers)
        what = f"policy, dp-apvi, S = 6, A = 2, H = 20 ({numbers} numbers a pass), learning included"
        rows.append((what, workers, f"{ours:,.0f}", f"{bare:,.0f}", f"{ours / bare:.0%}"))
    found = DP_APVI.audit(request(GAUSSIAN, "releases", trials=1_000_000, workers=2, sets={"H": 5, "rho": "1/2"}))
    lines = [
        "# Throughput of the audits",
        "",
        "| view | workers | runs a second | the generator alone | share |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(f"| {' | '.join(str(cell) for cell in row)} |" for row in sorted(rows)),
        "",
        (
            "At H = 5, ρ = ½ and a million runs under each neighbour, the 99 % lower bound on ε (δ = 10⁻⁵) is "
            f"{found.epsilon_lower:.4f}, {100 * found.epsilon_lower / found.epsilon_upper:.2f} % of the accountant's "
            f"{found.epsilon_upper:.4f}; reachable on average: {found.reachable:.4f}."
        ),
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores; medians of {REPEATS}.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
