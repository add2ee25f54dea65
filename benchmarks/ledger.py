"""The budget ledger's goals, as ratios within one run.

    python benchmarks/ledger.py [--write] [--parts check,plans]

`check` is one question to a filter beside one incremental step of dp-accounting's PLD accountant (compose one more
event, ask for ε) with the same releases behind both. `plans` is what it costs to charge a whole plan as one μ².
`--write` puts the table beside this script, and replaces the parts that were run.
"""

import argparse
import math
import os
import platform
import re
import statistics
import time
from pathlib import Path

from dp_accounting import GaussianDpEvent, LaplaceDpEvent
from dp_accounting.pld import PLDAccountant

from privcheck import accounting as acc
from privcheck.errors import ParameterError

DELTA = 1e-6
HISTORY = 1000  # releases behind the check, half Gaussian and half Laplace noise
MIXES = {
    "1000 Gaussians (std 30), 500 Laplaces (scale 50)": [
        acc.gaussian(std=30, count=1000),
        acc.laplace(scale=50, count=500),
    ],
    "100 randomised responses (ε 0.1), 5 Gaussians (std 5)": [
        acc.pure(epsilon="0.1", count=100),
        acc.gaussian(std=5, count=5),
    ],
    "30 Laplaces (scale 10)": [acc.laplace(scale=10, count=30)],
    "20 Laplaces (scale 10), 20 randomised responses (ε 0.2)": [
        acc.laplace(scale=10, count=20),
        acc.pure(epsilon="0.2", count=20),
    ],
}
SAMPLED = {"1000 rounds of DP-SGD (1 %, std 1), δ of 1e-8 aside": [acc.poisson_gaussian(std=1, rate=0.01, count=1000)]}


def seconds_each(work, repeats):
    """Returns the median of wall times over calls with fresh arguments."""
    times = []
    for i in range(repeats):
        started = time.perf_counter()
        work(i)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def check():
    """One question to a filter and one step of an incremental PLD."""
    budget, theirs = acc.Filter("gdp", cap=1000), PLDAccountant()
    for i in range(HISTORY // 2):
        budget.spend(acc.gaussian(std=20 + i / 7))
        budget.spend(acc.laplace(scale=50 + i / 10))
        theirs.compose(GaussianDpEvent(20 + i / 7))
        theirs.compose(LaplaceDpEvent(50 + i / 10))
    asked = [acc.laplace(scale=50 + i / 10) for i in range(HISTORY // 2)]

    def step(i):
        theirs.compose(LaplaceDpEvent(50.05 + i / 10))
        theirs.get_epsilon(DELTA)

    ours = seconds_each(lambda _: [budget.can_afford(event) for event in asked], 30) / len(asked)
    first = seconds_each(lambda i: budget.can_afford(acc.laplace(scale=50.05 + i / 10)), 2000)
    other = seconds_each(step, 15)
    yield "| step | seconds | share of a PLD step | goal |"
    yield "| --- | --- | --- | --- |"
    yield f"| check of a release by a filter in Σμ² | {ours:.1e} | 1/{other / ours:,.0f} | 1/1000 |"
    yield f"| … with making its event and pricing it for the first time | {first:.1e} | 1/{other / first:,.0f} | |"
    yield f"| dp-accounting's PLD: compose one more, ask for ε; {HISTORY} before it | {other:.1e} | 1 | |"
    if other / ours < 1000:
        yield "\n**Goal missed.**"


def plans():
    """What one μ² costs, against the exact ε of the plan and the sum of its events' own μ²."""
    yield f"ε at δ = {DELTA:g}; the price is ε of the compressed μ over the exact ε, certified; the goal is 1.11.\n"
    yield "| plan | exact ε | μ | price | price of Σμ² one by one | seconds |"
    yield "| --- | --- | --- | --- | --- | --- |"
    worst = 0.0
    for name, events in (MIXES | SAMPLED).items():
        lost = "1e-8" if name in SAMPLED else 0
        exact = acc.compose(events).epsilon(delta=DELTA).upper
        started = time.perf_counter()
        whole = acc.compress_to_mu(events, lost=lost)
        took = time.perf_counter() - started
        price = acc.Filter("gdp", cap=whole.mu_squared, lost=whole.lost).epsilon(delta=DELTA).upper / exact
        worst = max(worst, price) if name in MIXES else worst
        yield f"| {name} | {exact:.4f} | {whole.mu:.4f} | {price:.4f} | {one_by_one(events, exact)} | {took:.2f} |"
    if worst > 1.11:
        yield "\n**Goal missed.**"


def one_by_one(events, exact):
    """Returns the price of charging every event by itself."""
    budget = acc.Filter("gdp", cap=10**6)
    try:
        for event in events:
            budget.spend(event)
    except ParameterError:
        return "–"
    return f"{acc.gdp_epsilon(math.sqrt(budget.spent.amount), DELTA).value / exact:.4f}"


PARTS = {"check": (check, "One check"), "plans": (plans, "Plans as one number")}
HEAD = """# The budget ledger

By `benchmarks/ledger.py`; ratios are of one run.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--parts", default=",".join(PARTS))
    asked = parser.parse_args()
    table = Path(__file__).with_suffix(".md")
    old = re.split(r"^## ", table.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:] if table.exists() else []
    sections = {part.split("\n", 1)[0]: part for part in old}
    for name in asked.parts.split(","):
        work, title = PARTS[name]
        where = f"{os.cpu_count()} cores, Python {platform.python_version()}"
        text = f"{title}\n\n" + "\n".join(work()) + f"\n\n{where}.\n"
        print(f"## {text}")
        sections[title] = text
    if asked.write:
        ordered = [sections[title] for _, title in PARTS.values() if title in sections]
        table.write_text("\n".join([HEAD, *(f"## {text.rstrip()}\n" for text in ordered)]), encoding="utf-8")


if __name__ == "__main__":
    main()
