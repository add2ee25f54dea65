"""The auditors' release gate: each broken system is found, by the view that can see it, at 99 % and N = 10⁵ at most.

    python benchmarks/broken_systems.py [--write]

Broken functions without a declaration are in `benchmarks/blackbox.py`, what is correct in `benchmarks/false_alarms.py`.
Ends with exit code 1 where one is missed. `--write` puts the table beside this script.
"""

import argparse
import os
import platform
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import mutants
from mutants import regressing, shuffled
from mutants.agents import (
    Talkative,
    counts_twice,
    forgets_level,
    plans_from_exact,
    reuses_nodes,
    shares_noise,
)
from privcheck import PureDP, audit_float_noise
from privcheck.commands.settings import resolve_setting
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck_audits.lockstep import agent_views
from privcheck_audits.policy import online, post_processing
from privcheck_audits.shuffled.view import releases as shuffled_releases

CONFIDENCE = 0.99
GAUSSIAN, LAPLACE, CENTRAL, LOCAL = "dp-apvi", "dp-apvi-laplace", "private-ucb-vi-central", "private-ucb-vi-local"
TREE = {"H": "4", "S": "3", "A": "2", "K": "24"}


def asked(name, view, trials, *, change=None, sets=None, delta=None):
    """Returns the request of an audit of a system, or of what a change makes of its declaration."""
    given = resolve_setting(name, sets or {})
    declaration = change(given.declared) if change else given.declared
    pure = isinstance(declaration.claim.guarantee, PureDP)
    return AuditRequest(
        setting=replace(given.setting, declaration=declaration),
        view=view,
        delta=(0.0 if pure else 1e-5) if delta is None else delta,
        trials=trials,
        confidence=CONFIDENCE,
        workers=os.cpu_count() or 1,
    )


def declared(name, view, trials, change=None, **more):
    """Returns the audit of what a change makes of a system."""
    return registry.audit_plan(name).audit(asked(name, view, trials, change=change, **more))


def inside(name, view, trials, mutant):
    """Returns the lockstep or noise audit of a running agent that a mutant stands for."""
    request = asked(name, view, trials, sets=TREE)
    look = {"lockstep": agent_views.lockstep, "noise": agent_views.noise}[view]
    algorithm = registry.algorithm(name)
    return look(request, replace(algorithm, online=mutant(algorithm.online)))


def behind_shuffler(trials, mutant):
    """Returns the audit of what the users of SDP-PE send, where the code that runs is a mutant."""
    request = asked("sdp-pe", "releases", trials, sets={"H": "1"})
    return shuffled_releases(request, running=mutant(request.declaration, request.values))


def peeking(name, trials):
    """Returns the policy audit of an agent that plans from exact values, though the declared noise is charged."""
    request = asked(name, "policy", trials)
    algorithm = registry.algorithm(name)
    if algorithm.online is not None:
        whole = online.instance(request.setting, algorithm)
        return online.audit_policies(request, algorithm, mutants.peeking_online(whole))
    if algorithm.offline is not None:
        broken = replace(algorithm, offline=regressing.plans_from_exact(algorithm.offline))
        return registry.plan_for(broken).audit(replace(request, workers=1))  # it keeps the run that goes on
    processed = post_processing.instance(request.setting, algorithm)
    return post_processing.audit_policies(request, algorithm, mutants.quieter(processed, 0))


def floats():
    """Returns the float audit of NumPy's Laplace noise."""
    return audit_float_noise(lambda x, size, rng: x + rng.laplace(size=size), PureDP(1), neighbours=[(0.0, 1.0)])


HALF = partial(mutants.rescaled_noise, factor=0.5)
GATE = (
    ("noise at half scale, Gaussian", partial(declared, GAUSSIAN, "releases", 10**5, HALF)),
    ("noise at half scale, Laplace", partial(declared, LAPLACE, "releases", 10**5, HALF)),
    ("noise at half scale, tree", partial(declared, "pucb", "releases", 10**5, HALF)),
    ("noise at half scale, symmetric matrices", partial(declared, "luyo-lsvi-ucb", "releases", 10**5, HALF)),
    (
        "sensitivity short by √2",
        partial(declared, GAUSSIAN, "releases", 10**5, partial(mutants.rescaled_noise, factor=0.5**0.5)),
    ),
    (
        "sensitivity short by 2",
        partial(declared, GAUSSIAN, "releases", 10**5, partial(mutants.short_sensitivity, factor="1/2")),
    ),
    (
        "sensitivity short by 5 %",
        partial(declared, GAUSSIAN, "lockstep", 4, partial(mutants.short_sensitivity, factor="19/20")),
    ),
    ("std where variance is meant", partial(declared, GAUSSIAN, "releases", 10**5, mutants.std_for_variance)),
    ("a step counted twice", partial(declared, GAUSSIAN, "releases", 10**5, mutants.counted_twice)),
    ("a step counted twice", partial(declared, GAUSSIAN, "lockstep", 4, mutants.counted_twice)),
    ("a user counted twice", partial(inside, CENTRAL, "lockstep", 4, counts_twice)),
    ("noise shared between outputs", partial(declared, "dp-lsvi-ucb-pp-as-printed", "releases", 10**5)),
    ("noise shared between tables", partial(inside, CENTRAL, "noise", 20, shares_noise)),
    ("noise shared between nodes", partial(inside, CENTRAL, "noise", 20, reuses_nodes)),
    ("noise shared between users", partial(inside, LOCAL, "noise", 20, reuses_nodes)),
    ("a tree with a level too few", partial(inside, CENTRAL, "noise", 20, forgets_level)),
    ("an undeclared release", partial(inside, CENTRAL, "lockstep", 4, lambda honest: Talkative(honest=honest))),
    ("an agent that peeks", partial(inside, CENTRAL, "lockstep", 4, plans_from_exact)),
    ("an agent that peeks", partial(peeking, CENTRAL, 2_000)),
    ("an agent that peeks", partial(peeking, "dp-vapvi", 10_000)),
    ("integer messages", partial(behind_shuffler, 10**5, lambda d, _: shuffled.integer_messages(d))),
    ("too few noise bits", partial(behind_shuffler, 10**5, lambda d, _: shuffled.fewer_noise_bits(d, "1/100"))),
    ("amplified by all users", partial(behind_shuffler, 10**5, lambda d, _: shuffled.counting_on(d, 20_000))),
    ("messages sent twice", partial(behind_shuffler, 10**5, shuffled.sent_twice)),
    ("integer messages, as printed", partial(declared, "sdp-pe-as-printed", "releases", 10**5)),
    ("half the noise of its paper, published code", partial(declared, "published-ucb-vi-central", "releases", 10**5)),
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    asked_for = parser.parse_args()
    lines = [
        "# Broken systems, and the view that finds each",
        "",
        f"{CONFIDENCE:.0%} confidence, seed 0. Runs: under each neighbour; lockstep: pairs; noise: runs of the agent.",
        "",
        "| what is wrong | system | view | runs | verdict | ε at least | refuted | seconds |",
        "| --- | --- | --- | ---: | --- | ---: | --- | ---: |",
    ]
    missed = 0
    for what, audit in GATE:
        began = time.perf_counter()
        found = audit()
        seconds = time.perf_counter() - began
        missed += found.verdict != "violation"
        lower = "–" if found.epsilon_lower is None else f"{found.epsilon_lower:.3g}"
        name = next((arg for arg in audit.args if isinstance(arg, str)), "sdp-pe")
        refuted, *more = str(found.evidence.get("refuted", "the charge")).split("; ")
        cells = [what, name, found.view, f"{found.trials:,}", found.verdict, lower]
        cells += [f"{refuted}; {len(more)} more" if more else refuted, f"{seconds:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    grid = floats()
    missed += grid.verdict != "violation"
    cells = ["NumPy's float noise, told by its grid", "a function", "float", f"{grid.trials:,}", grid.verdict]
    lines.append(f"| {' | '.join(cells)} | {grid.lower:.3g} | claim | {grid.seconds:.1f} |")
    lines += ["", f"{missed} missed. Python {platform.python_version()}, {os.cpu_count()} cores."]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked_for.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
