"""How often each auditor accuses what is correct: 300 audits of everything, at 99 % confidence.

    python benchmarks/false_alarms.py [--repeat 300] [--seconds 60] [--only TEXT] [--kept FILE] [--write]

Rows are the views of every registered declaration, and every correct function of `mutants.catalogue`. A
declaration is accused where a lower bound lies above the accountant's ε, or where lockstep or noise audits say
"violation"; its claim, which may be false, is another matter. A row ends early after so many `--seconds` of the
processor, and says how many audits it had. `--kept` names a file of finished rows, which a later
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

from mutants.catalogue import CATALOGUE, specimen
from privcheck import audit_mechanism
from privcheck.commands.runs import audit
from privcheck.commands.settings import parse_delta, resolve_setting
from privcheck.runtime import registry

CONFIDENCE = 0.99
TRIALS = {"releases": 10_000, "policy": 200, "lockstep": 2, "noise": 20}  # runs under each neighbour, or pairs, or runs
FUNCTION_TRIALS = 500
SMALLER = {"K": "64"}  # for the views that run whole agents


def accused(view, found):
    """Returns whether an audit's result says that the declaration is not what runs."""
    if view in {"lockstep", "noise"}:
        return found.verdict == "violation"
    upper = found.epsilon_upper
    return upper is not None and found.epsilon_lower > upper


def declaration(name, view):
    """Returns a function from a seed to whether that audit of a view accuses a declaration."""
    given = resolve_setting(name, {})
    if view != "releases" and any(parameter.name == "K" for parameter in given.declared.parameters):
        given = resolve_setting(name, SMALLER)
    how = {"view": view, "trials": TRIALS[view], "confidence": CONFIDENCE, "delta": parse_delta(None, given)}
    return lambda seed: accused(view, audit(given, seed=seed, workers=1, **how))


def function(name):
    """Returns a function from a seed to whether that audit accuses a correct function."""
    given = specimen(name)
    how = {"neighbours": given.pairs, "trials": FUNCTION_TRIALS, "confidence": CONFIDENCE}
    return lambda seed: audit_mechanism(given.run, given.claim, seed=seed, **how).verdict == "violation"


def row(job):
    """Returns a row's name and view, its false alarms, and of how many audits."""
    name, view, repeat, seconds = job
    alarm = function(name) if view == "function" else declaration(name, view)
    began, alarms, audits = time.process_time(), 0, 0
    while audits < repeat and time.process_time() - began < seconds:
        audits += 1
        alarms += alarm(audits)
    return name, view, alarms, audits


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


def table(done):
    """Returns the table, the sum of the views first."""
    lines = [
        "# How often the auditors accuse what is correct",
        "",
        f"Each audit at {CONFIDENCE:.0%} confidence, with its own seed. Allowed: as many as a rate of 1 % exceeds with",
        "probability 10⁻⁶ in the audits of the line. Lockstep has no error probability: one would be too many.",
        "",
        "| view | runs of an audit | audits | expected at most | allowed | accused |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    trials = {**TRIALS, "function": FUNCTION_TRIALS}
    for view, runs in trials.items():
        counts = [count for (_, kind), count in done.items() if kind == view]
        alarms, audits = sum(count[0] for count in counts), sum(count[1] for count in counts)
        if counts:
            allowed = 0 if view == "lockstep" else int(stats.binom.isf(1e-6, audits, 1 - CONFIDENCE))
            expected = "0" if view == "lockstep" else f"{audits / 100:.0f}"
            lines.append(f"| {view} | {runs:,} | {audits:,} | {expected} | {allowed} | {alarms} |")
    lines += ["", "| what | accused, by view |", "| --- | --- |"]
    for name in dict.fromkeys(name for name, _ in done):
        cells = [f"{kind} {alarms}/{audits}" for (who, kind), (alarms, audits) in done.items() if who == name]
        lines.append(f"| {name} | {', '.join(cells)} |")
    return "\n".join([*lines, "", f"Python {platform.python_version()}, {os.cpu_count()} cores."]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(asked.kept.read_text()) if asked.kept and asked.kept.exists() else {}
    done = {tuple(key.split("|")): tuple(count) for key, count in kept.items()}
    due = [each for each in rows() if each not in done and asked.only in "|".join(each)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(row, (*each, asked.repeat, asked.seconds)) for each in due]
        for finished in tqdm(as_completed(waiting), total=len(waiting)):
            name, view, alarms, audits = finished.result()
            done[name, view] = alarms, audits
            tqdm.write(f"{name} {view}: {alarms}/{audits}")
            if asked.kept:
                partial = asked.kept.with_suffix(".partial")
                partial.write_text(json.dumps({"|".join(key): value for key, value in done.items()}))
                partial.replace(asked.kept)
    text = table({each: done[each] for each in rows() if each in done})
    print(text)
    if asked.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
