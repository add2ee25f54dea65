"""How many broken functions the black-box audit finds, how often it accuses a correct one, and how long it takes.

    python benchmarks/blackbox.py [--trials 10000 100000] [--repeat 5] [--repeat-trials 2000] [--write]

Every specimen of `mutants.catalogue` is audited at 99 % confidence with seed 0 at each number of trials; with
several, those found at a smaller number are not audited again at a larger one unless `--all`. The correct ones are
audited again with other seeds, to count false alarms. `--write` puts the table beside this script.
"""

import argparse
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from mutants.catalogue import CATALOGUE, specimen
from privcheck import audit_mechanism

LETTER = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}


def audit(job):
    """Returns what an audit found, and the seconds it took: of the clock and of the processor."""
    name, trials, seed = job
    given = specimen(name)
    began, spent = time.perf_counter(), time.process_time()
    found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=trials, seed=seed)
    return name, trials, found, time.perf_counter() - began, time.process_time() - spent


def cell(result):
    """Returns a cell of the table."""
    if result is None:
        return "found above"
    _, _, found, _, processor = result
    return f"{found.verdict}, {LETTER[found.unit]} ≥ {found.lower:.3g} ({processor:.1f} s)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--repeat-trials", type=int, default=2_000)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    done, alarms, audits = {}, 0, 0
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for trials in sorted(asked.trials):
            found_before = {name for (name, _), result in done.items() if result[2].verdict == "violation"}
            names = [
                each.name
                for each in CATALOGUE
                if asked.all or (trials == min(asked.trials)) or (each.broken and each.name not in found_before)
            ]
            for result in pool.map(audit, [(name, trials, 0) for name in names]):
                done[result[0], trials] = result
                print(result[0], trials, cell(result), flush=True)
        correct = [each.name for each in CATALOGUE if not each.broken]
        again = [(name, asked.repeat_trials, seed) for seed in range(1, asked.repeat + 1) for name in correct]
        for name, _, found, _, _ in pool.map(audit, again):
            audits += 1
            if found.verdict == "violation":
                alarms += 1
                print("FALSE ALARM", name, found, flush=True)
    repeated = (
        f"99 % confidence, seed 0; seconds are of the processor. {asked.repeat_trials} trials with other seeds for the "
        f"correct ones: {alarms} false alarms in {audits} audits (at most {audits / 100:g} expected)."
    )
    lines = [
        "# Functions with claims, audited from outside",
        "",
        repeated,
        "",
    ]
    for trials in sorted(asked.trials):
        upto = {n for (n, t), r in done.items() if t <= trials and r[2].verdict == "violation"}
        broken = {each.name for each in CATALOGUE if each.broken}
        walls = [r[3] for (_, t), r in done.items() if t == trials]
        spent = [r[4] for (_, t), r in done.items() if t == trials]
        if walls:
            found = f"{len(upto & broken)} of {len(broken)} broken ones found"
            accused = f"{len(upto - broken)} of {len(CATALOGUE) - len(broken)} correct ones accused"
            seconds = f"{sum(spent) / len(spent):.1f} s of the processor on average, {max(spent):.1f} s at most"
            lines.append(f"* {trials:,} trials: {found}, {accused}; {seconds}, over {len(spent)} audits")
    heads = " | ".join(f"{trials:,} trials" for trials in sorted(asked.trials))
    lines += [
        "",
        f"| function | claim | truth | {heads} |",
        "| --- | --- | --- |" + " --- |" * len(asked.trials),
    ]
    for each in CATALOGUE:
        loss = "" if each.loss is None else f", loss {each.loss:.3g}"
        cells = [cell(done[each.name, t]) if (each.name, t) in done else "–" for t in sorted(asked.trials)]
        truth = "broken" if each.broken else "correct"
        lines.append(f"| {each.name} | {each.claim} | {truth}{loss} | {' | '.join(cells)} |")
    lines += ["", f"Python {platform.python_version()}, {os.cpu_count()} cores."]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
