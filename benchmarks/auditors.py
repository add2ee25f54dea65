"""How fast trials run beside the generator alone, and how close the bounds come beside other testers' methods.

    python benchmarks/auditors.py [--write]

Speeds are measured alternately, ours, the generator alone and two workers in each round, and the table shows medians of
the rounds' ratios, of CPU time but for the last column, so that other work on the machine hits all of them alike.
Bounds are medians over seeds at confidence 95 %; every method sees the same number of runs, 2N in all. `--write` puts
the table beside this script.
"""

import math
import os
import platform
import statistics
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
from scipy.optimize import brentq

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.commands.settings import parse_delta, resolve_setting
from privcheck.declare.mechanisms import LAWS
from privcheck.errors import ParameterError
from privcheck.pricing import Priced
from privcheck.runtime.results import AuditMethod, AuditRequest
from privcheck_audits.bounds import CurveFlip, bound_at_ranks, clopper_pearson_pair, e_process_plan
from privcheck_audits.engine.blocks import blocks, total
from privcheck_audits.engine.kernels import draw
from privcheck_audits.engine.scores import MovedGroup, likelihood_trials
from privcheck_audits.engine.sequential import sequential, sequential_on_the_curve
from privcheck_audits.plan.pictures import pilot_marks
from privcheck_audits.plan.reachable import best_plan, loss_law, reachable_curve, reachable_guesses
from privcheck_audits.releases.attacks import Guesses
from privcheck_audits.releases.canaries import worst_canary
from privcheck_audits.releases.view import releases

ROUNDS = 9
ALPHA = 0.05
DELTA = 1e-5
BINS = 100
WHAT_IS_FAST = """\
Millions of runs a second of CPU time, with ranking, 21 attempts and the trade-off curve's counts, and their share of
what the generator alone allows; the CPU time that two workers take for the same runs, over one's; and how many times
faster they are on the clock, which says something on an idle machine only."""
WHAT_IS_CLOSE = """\
The limit is what the same plan certifies at its expected counts. Histogram: half of the runs choose the event among 100
bins, the other half test it. One threshold: the event “above f(D)”, all runs, a Clopper–Pearson pair."""
TRIALS = (1_000, 10_000, 100_000, 1_000_000)


def scalar(law, scale):
    return (MovedGroup(releases=("y",), noise=LAWS[law](scale=scale), change=np.ones(1)),)


def rescaled(groups, factor):
    return tuple(replace(g, noise=replace(g.noise, scale=g.noise.scale * factor)) for g in groups)


def released(name, **sets):
    setting = resolve_setting(name, {key: str(value) for key, value in sets.items()})
    return worst_canary(Priced(setting.declared, setting.values)).groups


def guesses(groups, plan):
    return Guesses(groups=groups, plan=plan, seed=0)


def bare(groups):
    """Returns what only draws a block's noise, in pieces that stay in the cache."""
    numbers = sum(group.change.size for group in groups)

    def work(rng, runs, _):
        step = max(1, 160_000 // numbers)
        for start in range(0, runs, step):
            for group in groups:
                draw(group.noise, rng, (min(step, runs - start), group.change.size))

    return work


def speed(work, runs, workers=1):
    """Returns runs a second of CPU time, which other work on the machine does not change much, and of wall time."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in blocks(work, runs, seed=0, workers=workers):
        pass
    return runs / (time.process_time() - cpu), runs / (time.perf_counter() - wall)


def throughput():
    rows = []
    for what, groups, runs, delta in (
        ("dp-apvi, H = 20", released("dp-apvi", H=20), 1_000_000, DELTA),
        ("dp-apvi-laplace, H = 1", released("dp-apvi-laplace", H=1), 3_000_000, 0.0),
        ("private-ucb-vi-central: trees over 20 000 users", released("private-ucb-vi-central"), 131_072, 0.0),
        ("private-ucb-vi-central, H = 2, K = 2", released("private-ucb-vi-central", H=2, K=2), 3_000_000, 0.0),
        ("luyo-lsvi-ucb: trees of symmetric matrices", released("luyo-lsvi-ucb"), 1_000_000, DELTA),
        ("dp-vapvi-unsplit: symmetric matrices", released("dp-vapvi-unsplit"), 500_000, DELTA),
        ("one Gaussian number", scalar("gaussian", 2.0), 10_000_000, DELTA),
        ("one Laplace number", scalar("laplace", 1.0), 10_000_000, 0.0),
    ):
        plan = best_plan(loss_law(groups), runs, alpha=ALPHA, delta=delta)
        marks = pilot_marks(partial(likelihood_trials, groups), seed=0)
        ours, alone = Guesses(groups=groups, plan=plan, seed=0, thresholds=marks), bare(groups)
        speed(ours, 20_000), speed(alone, 20_000)
        found = [(speed(ours, runs), speed(alone, runs), speed(ours, runs, 2)) for _ in range(ROUNDS)]
        one = statistics.median(ours[0] for ours, _, _ in found)
        share = statistics.median(ours[0] / alone[0] for ours, alone, _ in found)
        overhead = statistics.median(ours[0] / two[0] for ours, _, two in found)
        two = statistics.median(two[1] / ours[1] for ours, _, two in found)
        numbers = sum(g.change.size for g in groups)
        print(what, f"{one / 1e6:.2f} million/s, share {share:.0%}", file=sys.stderr)
        rows.append(f"| {what} | {numbers} | {one / 1e6:.2g} | {share:.0%} | {overhead:.2f} | {two:.2f} |")
    return rows


def outputs(groups, trials, seed):
    """Returns N outputs under D and N under D′, of the scalar mechanism f(D) = 1, f(D′) = 0."""
    rng = np.random.default_rng(seed)
    noise = groups[0].noise
    return noise.draw(rng, trials) + 1.0, noise.draw(rng, trials)


def one_threshold(groups, trials, seed, delta):
    """The event "above 1", in advance, on all runs: one Clopper–Pearson pair."""
    first, second = outputs(groups, trials, seed)
    hits = int((first > 1).sum()), int((second > 1).sum())
    return clopper_pearson_pair(hits, (trials, trials), alpha=ALPHA, delta=delta)


def histogram(groups, trials, seed, delta):
    """Half of the runs make a histogram and choose the bins above the best ratio; the others test that event."""
    first, second = outputs(groups, trials, seed)
    half = trials // 2
    edges = np.linspace(*np.quantile(np.concatenate([first[:half], second[:half]]), [0.001, 0.999]), BINS - 1)
    p, q = (np.bincount(np.searchsorted(edges, y[:half]), minlength=BINS) / half for y in (first, second))
    order = np.argsort(-(p + 1 / half) / (q + 1 / half))
    events = np.cumsum(p[order]), np.cumsum(q[order])
    likely = np.maximum(events[0] - delta - 2 * np.sqrt(events[0] / half), 1e-12)
    rare = events[1] + 2 * np.sqrt(events[1] / half) + 3 / half
    chosen = order[: int(np.argmax(likely / rare)) + 1]
    hits = [int(np.isin(np.searchsorted(edges, y[half:]), chosen).sum()) for y in (first, second)]
    return clopper_pearson_pair((hits[0], hits[1]), (trials - half, trials - half), alpha=ALPHA, delta=delta)


def ranked(groups, declared, trials, seed, delta):
    plan = best_plan(loss_law(declared), 2 * trials, alpha=ALPHA, delta=delta)
    found = total(blocks(guesses(groups, plan), 2 * trials, seed=seed))
    return bound_at_ranks(
        found.ranked_errors, found.ranked_guesses, plan, runs=found.runs, alpha=ALPHA, delta=delta
    ).epsilon


def on_the_curve(groups, trials, seed):
    found = total(blocks(guesses(groups, None), 2 * trials, seed=seed))
    return CurveFlip(errors=found.errors, runs=found.runs).epsilon(alpha=ALPHA, delta=DELTA)


def bounds():
    mu = brentq(lambda m: gdp_epsilon(m, DELTA) - 1, 0.01, 5)
    laplace, gaussian = scalar("laplace", 1.0), scalar("gaussian", 1 / mu)
    rows = []
    for name, declared, factor, truth, delta in (
        ("Laplace, ε = 1", laplace, 1.0, 1.0, 0.0),
        ("Laplace, half noise (true ε = 2)", laplace, 0.5, 2.0, 0.0),
        ("Gaussian, ε = 1 at δ = 10⁻⁵", gaussian, 1.0, 1.0, DELTA),
    ):
        groups = rescaled(declared, factor)
        for trials in TRIALS:
            seeds = range(max(3, min(25, 3_000_000 // trials)))
            law = loss_law(groups)
            plan = best_plan(law, 2 * trials, alpha=ALPHA, delta=delta)
            cells = [
                statistics.median(ranked(groups, declared, trials, s, delta) for s in seeds),
                reachable_guesses(law, plan, 2 * trials, alpha=ALPHA, delta=delta),
                *([statistics.median(on_the_curve(groups, trials, s) for s in seeds),
                   reachable_curve(mu / factor, 2 * trials, alpha=ALPHA, delta=DELTA)] if delta else [None, None]),
                statistics.median(histogram(groups, trials, s, delta) for s in seeds),
                statistics.median(one_threshold(groups, trials, s, delta) for s in seeds),
            ]  # fmt: skip
            assert all(cell is None or cell <= 1.05 * truth for cell in cells), cells
            shown = " | ".join("–" if cell is None else f"{cell:.3f}" for cell in cells)
            rows.append(f"| {name} | {trials:,} | {shown} |")
    return rows


def stopping():
    mu = brentq(lambda m: gdp_epsilon(m, DELTA) - 1, 0.01, 5)
    rows = []
    for alpha in (0.05, 0.01):
        for name, favourite in (("nothing known", None), ("declared law known", 0.68)):
            plan, groups = e_process_plan(favourite), rescaled(scalar("laplace", 1.0), 0.5)
            runs = [
                sequential(guesses(groups, plan), 50_000, epsilon=1.0, alpha=alpha, plan=plan, seed=s, delta=0.0).runs
                for s in range(300)
            ]
            rows.append(f"| Laplace, half noise, {name} | {alpha} | {_spread(runs)} |")
        groups = rescaled(scalar("gaussian", 1 / mu), 0.5)
        runs = [
            sequential_on_the_curve(guesses(groups, None), 50_000, mu=mu, alpha=alpha, seed=s).runs for s in range(300)
        ]
        rows.append(f"| Gaussian, half std, on the curve | {alpha} | {_spread(runs)} |")
    return rows


def methods():
    """Returns each method's bound over the truth, on declarations that are as private as they say."""
    rows = []
    for name, sets in (
        ("dp-apvi", {"H": "5", "S": "6", "A": "2", "rho": "1/8"}),
        ("dp-apvi-laplace", {"H": "1"}),
        ("dp-apvi-laplace", {"H": "1", "epsilon": "1/10"}),
    ):
        setting = resolve_setting(name, sets)
        words = ", ".join((name, *(f"{key} = {value}" for key, value in sets.items())))
        for method in get_args(AuditMethod)[1:]:
            cells = []
            for trials in (1_000, 10_000, 100_000):
                asked = AuditRequest(
                    setting=setting.setting, view="releases",
                    delta=parse_delta(None, setting), trials=trials, confidence=1 - ALPHA, method=method,
                )  # fmt: skip
                try:
                    found = [releases(replace(asked, seed=seed)) for seed in range(3)]
                except ParameterError:
                    break
                cells.append(f"{statistics.median(_of_the_truth(result) for result in found):.0%}")
            if cells:
                rows.append(f"| {words} | {method} | {' | '.join(cells)} |")
    return rows


def _of_the_truth(result):
    if result.epsilon_lower is None:
        return result.evidence["rho_lower"] / result.evidence["rho_upper"]
    return result.epsilon_lower / result.epsilon_upper


def _spread(runs):
    low, median, high = (math.ceil(q) for q in np.quantile(runs, [0.1, 0.5, 0.9]))
    return f"{median} | {low} – {high}"


def main():
    busy = os.getloadavg()[0]
    lines = [
        "# The auditors: how fast, how close",
        "",
        "## Trials a second",
        "",
        WHAT_IS_FAST,
        "",
        "| what | numbers a run | million/s | share | CPU of two over one | wall of two over one |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *throughput(),
        "",
        f"Medians of {ROUNDS} alternating rounds. Load average at the start: {busy:.1f} on {os.cpu_count()} cores"
        + ("; other work ran beside it, so the last column says little." if busy > 1 else "."),
        "",
        "## Lower bounds on ε at 95 %, against runs under each neighbour",
        "",
        WHAT_IS_CLOSE,
        "",
        "| mechanism | N | coin flip at ranks | limit | on the curve | limit | histogram | one threshold |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *bounds(),
        "",
        "## Each method of `privcheck audit` on the same releases",
        "",
        "Lower bound over the true loss (ε; ρ for the divergence) at 95 %, median of three seeds, against runs under",
        "each neighbour.",
        "",
        "| releases | method | 1,000 | 10,000 | 100,000 |",
        "| --- | --- | ---: | ---: | ---: |",
        *methods(),
        "",
        "## Runs in all until a violation is certain",
        "",
        "| audit | α | median | 10 % – 90 % |",
        "| --- | ---: | ---: | ---: |",
        *stopping(),
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
