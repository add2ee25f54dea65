"""Further functions of the literature with known truth: what the black-box audit finds and accuses, with three seeds.

    python benchmarks/literature.py [--trials 100000] [--seeds 0 1 2] [--more 1000000] [--repeat 20]
                                    [--repeat-trials 500] [--only TEXT] [--workers 2] [--kept FILE] [--write]

Every specimen of `mutants.catalogue.LITERATURE` is audited at 99 % confidence with every seed; a broken one that no
seed finds, once more with `--more` runs; the correct ones again with few runs and other seeds. The truth comes from the
exact laws of `mutants.laws`, which the tests compare with the functions. `--kept` names a file of finished audits,
which a later call does not repeat. `--write` puts the tables beside this script.
"""

import argparse
import json
import math
import os
import platform
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from blackbox import OURS, finish, loss

from mutants.catalogue import LITERATURE
from mutants.laws import laws_of
from privcheck_audits.blackbox.verdict import Attempt, ClaimedLoss, Counts, lower_bound
from privcheck_audits.bounds import CoinFlip

CONFIDENCE = 0.99
EVENTS = 300  # that are tried, of each kind


def could_be_seen(given, runs):
    """Returns the bound of so many runs whose events are chosen by the exact laws, and counted as often as expected."""
    target = ClaimedLoss.of(given.claim)
    return max(max(bounds(law, target, runs), default=0.0) for law in laws_of(given.name))


def bounds(law, target, runs):
    """Yields bounds by the events of the likelihood ratio, one-sided and, for ε, two-sided."""
    ratio = law.other / np.maximum(law.first + law.other, 1e-300)
    for ours, other, rank in ((law.first, law.other, ratio), (law.other, law.first, 1 - ratio)):
        order = np.argsort(rank, kind="stable")
        right = np.cumsum(ours[order])
        sizes = np.searchsorted(right, np.geomspace(1e-4, right[-1], EVENTS))
        for last in np.unique(np.minimum(sizes, order.size - 1)):
            edge = rank[order[last]]
            inside = rank <= edge
            yield bound(target, ours[inside].sum(), other[inside].sum(), runs)
            if target.unit == "epsilon" and edge < 0.5:
                apart = 1 - rank <= edge
                hits, misses = ours[inside].sum() + other[apart].sum(), other[inside].sum() + ours[apart].sum()
                yield bound(target, hits, misses, runs, ways=2)


def bound(target, right, wrong, runs, *, ways=1):
    """Returns the bound of right and wrong guesses with these probabilities, rounded against it."""
    hits, misses = math.floor(right * runs + 1e-6), math.ceil(wrong * runs - 1e-6)
    if hits <= misses:
        return 0.0
    if target.unit == "epsilon":
        flip = CoinFlip(errors=misses, guesses=hits + misses, coins=2 * runs, delta=target.delta * ways / 2)
        return flip.epsilon(alpha=1 - CONFIDENCE)
    counts = Counts(inside=np.zeros((1, 2, 1), dtype=np.int64), sums=(), totals=np.array([runs, runs]))
    event = Attempt(pair=0, score=0, kind="event", upper=0)
    return lower_bound(event, counts, target, right=hits, wrong=misses, alpha=1 - CONFIDENCE)


def count(done, given, key, runs, seeds):
    """Returns how many audits of a function say so, of how many."""
    mine = [done[OURS, given.name, runs, seed][key] for seed in seeds if (OURS, given.name, runs, seed) in done]
    return sum(mine), len(mine)


def summary(done, runs, seeds):
    """Returns a table of what is found and accused with each seed."""
    lines = ["| seed | found | accused |", "| --- | ---: | ---: |"]
    for seed in seeds:
        cells = []
        for broken in (True, False):
            mine = [count(done, each, "rejected", runs, [seed]) for each in LITERATURE if each.broken == broken]
            cells.append(f"{sum(hit for hit, _ in mine)} of {sum(asked for _, asked in mine)}")
        lines.append(f"| {seed} | {' | '.join(cells)} |")
    return lines


def found(done, given, runs, seeds):
    """Returns whether any seed's audit of a function rejects its claim."""
    return count(done, given, "rejected", runs, seeds)[0] > 0


def with_more(done, runs):
    """Returns a line for each function that was audited once more."""
    again = [(each, done[OURS, each.name, runs, 0]) for each in LITERATURE if (OURS, each.name, runs, 0) in done]
    return [
        f"* {each.name}: with {runs:,} runs {one['bound']}, "
        f"{'rejected' if one['rejected'] else 'not rejected'}; {could_be_seen(each, runs):.3g} could be seen."
        for each, one in again
    ]


def everything(done, runs, seeds):
    """Returns a table of every function: first the broken ones."""
    lines = [
        f"| function | claim | truth, loss | rejected, of {len(seeds)} | bounds | could be seen | s | why | source |",
        "| --- | --- | --- | ---: | --- | ---: | ---: | --- | --- |",
    ]
    for each in sorted(LITERATURE, key=lambda each: not each.broken):
        mine = [done[OURS, each.name, runs, seed] for seed in seeds if (OURS, each.name, runs, seed) in done]
        if not mine:
            continue
        letter = mine[0]["bound"].partition(" ")[0]
        found = ", ".join(one["bound"].rpartition(" ")[2] for one in mine)
        limit = f"{could_be_seen(each, runs):.3g}" if each.broken else ""
        took = sum(one["seconds"] for one in mine) / len(mine)
        lines.append(
            f"| {each.name} | {each.claim} | {'broken' if each.broken else 'correct'}{loss(each)} | "
            f"{sum(one['rejected'] for one in mine)} | {letter} ≥ {found} | {limit} | {took:.1f} | {each.why} | "
            f"{each.source} |"
        )
    return lines


def alarms(done, runs, repeat):
    """The accusations of correct functions with few runs."""
    correct = [each for each in LITERATURE if not each.broken]
    mine = [count(done, each, "rejected", runs, range(1, repeat + 1)) for each in correct]
    above = sum(count(done, each, "above", runs, range(1, repeat + 1))[0] for each in correct)
    audits = sum(asked for _, asked in mine)
    return (
        f"Every correct function, with {runs:,} runs on each neighbour and other seeds: "
        f"{sum(hit for hit, _ in mine)} false alarms in {audits:,} audits, where {audits / 100:g} are allowed; "
        f"{above} bounds above the loss."
    )


def text(done, asked):
    """Returns the page."""
    size = f"{len(LITERATURE)} functions, {sum(each.broken for each in LITERATURE)} of them broken"
    return "\n".join([
        "# Functions of the literature with exact laws, audited from outside",
        "",
        f"{size}; {asked.trials:,} runs on each neighbour, 99 % confidence.",
        "",
        *summary(done, asked.trials, asked.seeds),
        "",
        "The truth is worked out in `tests/mutants/laws.py`, without the functions' code, and compared with them by",
        "`tests/audits/test_literature_laws.py`. “Could be seen” is the bound of as many runs if the exact likelihood",
        "ratio chose one event, or one for each neighbour, and these occurred as often as expected. It is no limit:",
        "there is luck, whole outputs say more than the law's cells, and a divergence bounds ρ better than events.",
        "Seconds are the processor's, on average.",
        "",
        *everything(done, asked.trials, asked.seeds),
        "",
        "Not found with any seed, audited once more:",
        "",
        *with_more(done, asked.more),
        "",
        "## False alarms",
        "",
        alarms(done, asked.repeat_trials, asked.repeat),
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores.",
    ]) + "\n"  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--more", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--repeat-trials", type=int, default=500)
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(asked.kept.read_text(encoding="utf-8")) if asked.kept and asked.kept.exists() else []
    done = {tuple(job): found for job, found in kept}
    chosen = [each for each in LITERATURE if asked.only in each.name]
    jobs = [(OURS, each.name, asked.trials, seed) for seed in asked.seeds for each in chosen]
    again = range(1, asked.repeat + 1)
    jobs += [(OURS, each.name, asked.repeat_trials, seed) for each in chosen if not each.broken for seed in again]
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
        finish(pool, jobs, done, asked.kept)
        missed = [each for each in chosen if each.broken and not found(done, each, asked.trials, asked.seeds)]
        finish(pool, [(OURS, each.name, asked.more, 0) for each in missed], done, asked.kept)
    page = text(done, asked)
    print(page)
    if asked.write:
        Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
