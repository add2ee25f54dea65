"""How long a million runs under each neighbour take, for the releases of every declared algorithm.

    python benchmarks/audit_plans.py [--write]

At the defaults, on two threads: everything that `privcheck audit NAME --trials 1000000` does, from the search for the
canary to the pictures. CPU time hardly depends on what else the machine does; the clock does. `--write` puts the table
beside this script.
"""

import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from privcheck.commands.settings import parse_delta, resolve_setting
from privcheck.errors import PrivcheckError
from privcheck.pricing import Priced
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck_audits.releases.canaries import worst_canary

TRIALS = 1_000_000


def row(name):
    """Returns a line of the table; None where nothing is declared."""
    setting = resolve_setting(name, {})
    if setting.declaration is None:
        return None
    plan = registry.audit_plan(name)
    asked = AuditRequest(
        setting=setting.setting,
        view="releases",
        delta=parse_delta(None, setting),
        trials=1_000,
        confidence=0.99,
        workers=2,
    )
    try:
        plan.audit(asked)  # Numba compiles
    except PrivcheckError as error:
        return f"| {name} | – | – | – | {error} |"
    cpu, wall = time.process_time(), time.perf_counter()
    found = plan.audit(replace(asked, trials=TRIALS))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    lower = "–" if found.epsilon_lower is None else f"{found.epsilon_lower:.4g}"
    return f"| {name} | {_numbers(asked)} | {cpu:.1f} | {wall:.1f} | {found.verdict}, ε ≥ {lower} |"


def _numbers(asked):
    try:
        return sum(group.change.size for group in worst_canary(Priced(asked.declaration, asked.values)).groups)
    except PrivcheckError:
        return "–"


def main():
    busy = os.getloadavg()[0]
    rows = []
    for name in registry.names("algorithms"):
        line = row(name)
        if line is not None:
            print(line, file=sys.stderr)
            rows.append(line)
    lines = [
        "# A million runs under each neighbour, of every declared algorithm's releases",
        "",
        "| algorithm | numbers a run | CPU seconds | seconds, two threads | verdict |",
        "| --- | ---: | ---: | ---: | --- |",
        *rows,
        "",
        "Numbers a run: the coordinates in which the worst pair differs, at the defaults; of more than 200 Laplace",
        "coordinates a small instance is audited instead.",
        "",
        f"Load average at the start: {busy:.1f} on {os.cpu_count()} cores.",
        f"Python {platform.python_version()}, NumPy {np.__version__}.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
