"""How often each auditor accuses what is correct: 300 audits of everything, at 99 % confidence.

    python benchmarks/false_alarms.py [--repeat 300] [--only TEXT] [--kept FILE] [--write]

Rows are the views of every registered declaration, and every correct function of `audits.mutants.catalogue`. A
declaration is accused where a lower bound lies above the accountant's ε, or where lockstep or noise audits say
"violation"; its claim, which may be false, is another matter. `--kept` names a file of finished rows, which a later
call does not repeat. `--write` puts the table beside this script.
"""

import argparse
import json
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from scipy import stats
from tqdm import tqdm

from audits.mutants.catalogue import CATALOGUE, specimen
from privcheck import audit_mechanism, registry
from privcheck.commands.learned import audit
from privcheck.commands.setting import parse_delta, resolve_setting

CONFIDENCE = 0.99
TRIALS = {"releases": 10_000, "policy": 200, "lockstep": 2, "noise": 20}  # runs under each neighbour, or pairs, or runs
FUNCTION_TRIALS = 1_000
SMALLER = {"K": "64"}  # for the views that run whole agents


def accused(view, found):
    """Returns whether an audit's result says that the declaration is not what runs."""
    if view in {"lockstep", "noise"}:
        return found["verdict"] == "violation"
    upper = found["epsilon_upper"]
    return upper is not None and found["epsilon_lower"] > upper


def declaration_row(name, view, seeds):
    """Returns how many of the audits of one view accuse a declaration."""
    given = resolve_setting(name, {})
    if view != "releases" and any(parameter.name == "K" for parameter in given.declared.parameters):
        given = resolve_setting(name, SMALLER)
    delta = parse_delta(None, given)
    how = {"view": view, "trials": TRIALS[view], "confidence": CONFIDENCE, "delta": delta, "workers": 1}
    return sum(accused(view, audit(given, seed=seed, **how)) for seed in seeds)


def function_row(name, seeds):
    """Returns how many of the audits accuse a correct function."""
    given = specimen(name)
    how = {"neighbours": given.pairs, "trials": FUNCTION_TRIALS, "confidence": CONFIDENCE}
    return sum(audit_mechanism(given.run, given.claim, seed=seed, **how).verdict == "violation" for seed in seeds)


def row(job):
    """Returns a row's name, its false alarms, and the processor's seconds."""
    name, view, seeds = job
    began = time.process_time()
    alarms = function_row(name, seeds) if view == "function" else declaration_row(name, view, seeds)
    return name, view, alarms, time.process_time() - began


def rows():
    """Returns the name and view of every row."""
    found = []
    for name in registry.names("algorithms"):
        given = resolve_setting(name, {})
        if given.declaration is None:
            continue
        plan = registry.audit_plan(name)
        found += [(name, view) for view in plan.views if not plan.missing(given.declaration, view)]
    return found + [(each.name, "function") for each in CATALOGUE if not each.broken]


def table(done, repeat):
    """Returns the table, the sum of the views first."""
    lines = [
        "# How often the auditors accuse what is correct",
        "",
        f"{repeat} audits of everything, each at {CONFIDENCE:.0%} confidence with a seed of its own. Allowed: as many",
        "as a rate of 1 % exceeds with probability 10⁻⁶ in the audits of the line. Lockstep has no error probability.",
        "",
        "| view | runs of an audit | audits | expected at most | allowed | accused |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    trials = {**TRIALS, "function": FUNCTION_TRIALS}
    for view, runs in trials.items():
        counts = [alarms for (_, kind), alarms in done.items() if kind == view]
        audits = repeat * len(counts)
        if counts:
            allowed = int(stats.binom.isf(1e-6, audits, 1 - CONFIDENCE))
            lines.append(f"| {view} | {runs:,} | {audits:,} | {audits / 100:.0f} | {allowed} | {sum(counts)} |")
    lines += ["", "| what | accused, by view |", "| --- | --- |"]
    for name in dict.fromkeys(name for name, _ in done):
        cells = [f"{kind} {alarms}/{repeat}" for (who, kind), alarms in done.items() if who == name]
        lines.append(f"| {name} | {', '.join(cells)} |")
    return "\n".join([*lines, "", f"Python {platform.python_version()}, {os.cpu_count()} cores."]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--only", default="")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(asked.kept.read_text()) if asked.kept and asked.kept.exists() else {}
    done = {tuple(key.split("|")): alarms for key, alarms in kept.items()}
    due = [(*each, range(1, asked.repeat + 1)) for each in rows() if each not in done and asked.only in "|".join(each)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(row, job) for job in due]
        for finished in tqdm(as_completed(waiting), total=len(waiting)):
            name, view, alarms, seconds = finished.result()
            done[name, view] = alarms
            tqdm.write(f"{name} {view}: {alarms}/{asked.repeat} in {seconds:.0f} s")
            if asked.kept:
                text = json.dumps({"|".join(key): value for key, value in done.items()})
                partial = asked.kept.with_suffix(".partial")
                partial.write_text(text)
                partial.replace(asked.kept)
    text = table({each: done[each] for each in rows() if each in done}, asked.repeat)
    print(text)
    if asked.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
