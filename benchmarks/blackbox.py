"""How many broken functions the black-box audit finds, beside other testers, how often it accuses, how long it takes.

    python benchmarks/blackbox.py [--trials 10000 100000] [--repeat 20] [--repeat-trials 500] [--testers NAME …]
                                  [--kept FILE] [--side-by-side] [--write]

Every specimen of `mutants.catalogue` but those of literature.py is audited at 99 % confidence with seed 0 at each
number of trials; with several, those found at a smaller number are not audited again at a larger one unless `--all`.
Other testers (peers.py) are asked about the bugs of libraries in numbers and as published, with as many runs, as far as
they are installed. The correct functions are audited again with other seeds, to count false alarms. `--kept` names a
file of finished audits, which a later call does not repeat. `--side-by-side` keeps to seed 0 and to the functions that
others are asked about. `--write` puts the tables beside this script, those side by side into `blackbox_peers.md`.
"""

import argparse
import json
import math
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import peers

from mutants.catalogue import AS_PUBLISHED, CLASSIC, RELEASED, REPORTED, specimen
from privcheck import audit_mechanism

OURS = "privcheck"
LETTER = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}
SECTIONS = {
    "known from the literature": CLASSIC,
    "bugs of libraries, numbers": [each for each in REPORTED if each not in (*AS_PUBLISHED, *RELEASED)],
    "bugs of libraries, as published": AS_PUBLISHED,
    "with a leak around the numbers": RELEASED,
}
FUNCTIONS = [each for section in SECTIONS.values() for each in section]
OTHERS_ARE_ASKED = [each for each in REPORTED if each not in RELEASED]


def audit(job):
    """Returns a job with whether the claim was rejected, the bound, and the processor's seconds."""
    tester, name, trials, seed = job
    given, spent = specimen(name), time.process_time()
    if tester != OURS:
        return job, {
            "rejected": peers.accuses(tester, given, trials=trials, seed=seed),
            "seconds": time.process_time() - spent,
        }
    found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=trials, seed=seed)
    return job, {
        "rejected": found.verdict == "violation",
        "bound": f"{LETTER[found.unit]} ≥ {found.lower:.3g}",
        "above": given.loss is not None and given.loss_is != "at least" and found.lower > given.loss * 1.05 + 1e-9,
        "seconds": time.process_time() - spent,
    }  # fmt: skip


def finish(pool, jobs, done, kept):
    """Makes the audits that are not done yet, and keeps them."""
    waiting = [pool.submit(audit, job) for job in jobs if job not in done]
    for count, ready in enumerate(as_completed(waiting)):
        job, found = ready.result()
        done[job] = found
        print(*job, found, flush=True)
        if kept and (count % 20 == 19 or count == len(waiting) - 1):
            partial = kept.with_suffix(".partial")
            partial.write_text(json.dumps([[list(job), found] for job, found in done.items()]), encoding="utf-8")
            partial.replace(kept)


def found_by(done, tester, section, trials, *, broken):
    """Returns how many of a section's broken or correct functions a tester rejects with so many trials, of how many."""
    names = [each.name for each in section if each.broken == broken]
    mine = {name: [done.get((tester, name, t, 0)) for t in trials] for name in names}
    asked = [found for found in mine.values() if found[0] is not None]
    return sum(any(one and one["rejected"] for one in found) for found in asked), len(asked)


def seconds(done, trials):
    """Returns what our audits with so many trials took."""
    spent = [
        found["seconds"] for (tester, _, runs, seed), found in done.items() if (tester, runs, seed) == (OURS, trials, 0)
    ]
    if not spent:
        return "none"
    return f"{sum(spent) / len(spent):.1f} s of the processor on average, {max(spent):.1f} s at most, over {len(spent)}"


def summary(done, testers, trials):
    """Returns the table of what each tester finds and accuses."""
    heads = " | ".join(f"{n:,} runs: found | accused" for n in trials)
    lines = [f"| functions | tester | {heads} |", "| --- | --- |" + " ---: | ---: |" * len(trials)]
    for title, section in SECTIONS.items():
        for tester in testers:
            cells = []
            for i, runs in enumerate(trials):
                found, broken = found_by(done, tester, section, trials[: i + 1], broken=True)
                accused, correct = found_by(done, tester, section, trials[: i + 1], broken=False)
                asked = found == broken or any((tester, each.name, runs, 0) in done for each in section)
                cells.append(f"{found} of {broken} | {accused} of {correct}" if broken and asked else "– | –")
            if any(cell != "– | –" for cell in cells):
                lines.append(f"| {title} | {tester} | {' | '.join(cells)} |")
    return lines


def cell(done, tester, name, trials):
    """Returns a cell of the table of all functions."""
    for i, runs in enumerate(trials):
        found = done.get((tester, name, runs, 0))
        if found is None:
            break
        if found["rejected"]:
            return f"**{runs:,}**" + (f", {found['bound']}" if "bound" in found else "")
        last = f"no{', ' + found['bound'] if 'bound' in found else ''}"
        if i == len(trials) - 1 or (tester, name, trials[i + 1], 0) not in done:
            return last
    return "–"


def loss(given):
    if given.loss is None:
        return ""
    word = {"exact": "", "at least": "≥ ", "at most": "≤ "}[given.loss_is]
    return f", {word}{'∞' if math.isinf(given.loss) else format(given.loss, '.3g')}"


def everything(done, testers, trials):
    """Returns a table of every function a section."""
    lines = []
    for title, section in SECTIONS.items():
        mine = [tester for tester in testers if found_by(done, tester, section, trials[:1], broken=True)[1]]
        if not mine:
            continue
        lines += [f"## Functions {title}", "", f"| function | claim | truth, loss | {' | '.join(mine)} | reported |"]
        lines.append("| --- | --- | --- |" + " --- |" * (len(mine) + 1))
        for each in section:
            cells = " | ".join(cell(done, tester, each.name, trials) for tester in mine)
            truth = "broken" if each.broken else "correct"
            source = each.source if each.broken else ""
            lines.append(f"| {each.name} | {each.claim} | {truth}{loss(each)} | {cells} | {source} |")
        lines.append("")
    return lines


def alarms(done, runs):
    """Returns the table of false alarms of our audit, with other seeds."""
    lines = ["| function | accused | bound above its loss |", "| --- | ---: | ---: |"]
    total = accused_in_all = 0
    for each in FUNCTIONS:
        mine = [f for (t, n, r, seed), f in done.items() if (t, n, r) == (OURS, each.name, runs) and seed]
        if not each.broken and mine:
            accused, above = (sum(found[key] for found in mine) for key in ("rejected", "above"))
            total, accused_in_all = total + len(mine), accused_in_all + accused
            lines.append(f"| {each.name} | {accused} of {len(mine)} | {above} |")
    head = (
        f"Every correct function, with {runs:,} runs on each neighbour and other seeds, at 99 % confidence: "
        f"{accused_in_all} false alarms in {total:,} audits, where {total / 100:g} are allowed."
    )
    return [head, "", *lines]


def text(done, trials, repeat_trials, functions):
    """Returns the page; functions other than all of them are side by side, without the false alarms."""
    testers = [OURS, *peers.TESTERS]
    missing = [name for name in peers.TESTERS if not any(tester == name for tester, *_ in done)]
    lines = ["# Functions with claims, audited from outside", ""]
    lines += [
        f"99 % confidence, seed 0. {len(functions)} functions, {sum(g.broken for g in functions)} of them broken."
    ]
    lines += ["", *summary(done, testers, trials), ""]
    lines += [f"* Audits with {n:,} runs on each neighbour: {seconds(done, n)}" for n in trials]
    lines += ["", "## Other testers", ""]
    lines += [line.removeprefix("    ") if line.strip() else "" for line in peers.__doc__.strip().splitlines()[2:]]
    lines += ["", *(f"Not asked when this was written: {name}." for name in missing), ""]
    if functions is FUNCTIONS:
        lines += [
            "`blackbox_peers.md` has all in one run, DP-Sniper and Delta-Siege among them.",
            "",
        ]
        lines += ["## False alarms", "", *alarms(done, repeat_trials), ""]
    lines += [
        "A cell says with how many runs on each neighbour the claim was rejected, in bold, or **no** bold: not at all.",
        "",
        *everything(done, testers, trials),
        f"Python {platform.python_version()}, {os.cpu_count()} cores.",
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--repeat-trials", type=int, default=500)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--testers", nargs="*", default=[OURS, *filter(peers.installed, peers.TESTERS)])
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--side-by-side", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(asked.kept.read_text(encoding="utf-8")) if asked.kept and asked.kept.exists() else []
    done = {tuple(job): found for job, found in kept}
    trials = sorted(asked.trials)
    ours = OTHERS_ARE_ASKED if asked.side_by_side else FUNCTIONS
    asked_of = [(name, ours if name == OURS else OTHERS_ARE_ASKED) for name in asked.testers]
    correct = [each.name for each in FUNCTIONS if not each.broken]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for i, runs in enumerate(trials):
            jobs = []
            for tester, functions in asked_of:
                before = {n for (t, n, r, s), f in done.items() if t == tester and r < runs and not s and f["rejected"]}
                due = [g.name for g in functions if asked.all or i == 0 or (g.broken and g.name not in before)]
                jobs += [(tester, name, runs, 0) for name in due]
            finish(pool, jobs, done, asked.kept)
        if OURS in asked.testers and not asked.side_by_side:
            seeds = range(1, asked.repeat + 1)
            again = [(OURS, name, asked.repeat_trials, seed) for seed in seeds for name in correct]
            finish(pool, again, done, asked.kept)
    named = {each.name for each in ours}
    shown = {job: found for job, found in done.items() if job[1] in named}
    page = text(shown, trials, asked.repeat_trials, ours)
    print(page)
    if asked.write:
        name = "blackbox_peers.md" if asked.side_by_side else "blackbox.md"
        Path(__file__).with_name(name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
