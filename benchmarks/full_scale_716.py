"""All 716 states of ICU-Sepsis at H = 20: time and peak memory of a run on the declared path.

    python benchmarks/full_scale_716.py [--write]

257 million counts pass through privatizer, channel, ledger and billboard one step at a time. Measured in a process of
its own; the peak is the whole process's, the model and its data included. `--write` puts the table beside this script.
"""

import os
import platform
import resource
import sys
import time
from pathlib import Path

from privcheck.declare.declaration import resolve
from privcheck.runtime import registry
from privcheck.runtime.results import RunRequest
from privcheck.runtime.setting import Setting

PEAK = 1024 if sys.platform == "linux" else 1  # ru_maxrss is in kilobytes on Linux, in bytes on macOS


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK / 1e9


def main() -> None:
    rows = []

    def stage(name, work):
        started = time.perf_counter()
        result = work()
        rows.append((name, time.perf_counter() - started, peak()))
        return result

    started = time.perf_counter()
    algorithm = stage("imports", lambda: registry.algorithm("dp-apvi"))
    environment = stage("environment", lambda: registry.environment("icu-sepsis"))
    data = stage(
        "model, 20 000 users, reference values", lambda: environment.sample({"n": 20_000, "H": 20, "S": 716}, 0)
    )
    declaration = algorithm.declare({})
    request = RunRequest(
        setting=Setting(
            declaration=declaration,
            values=declaration.values({"H": 20, "S": 716, "A": 25}),
            options=resolve(algorithm.options, {}, owner="dp-apvi"),
        ),
        data=data,
    )
    result = stage("run, its value, and APVI on the same data", lambda: algorithm.learn_from(request))
    rows.append(("of which the private run", result.seconds, peak()))
    rows.append(("**in all**", time.perf_counter() - started, peak()))
    shown = {name: f"{value:.4f}" for name, value in {**data.references, "DP-APVI": result.returns[0]}.items()}
    found = result.diagnostics
    knowledge = (
        f"Known cells: {found['known_cells']:.0f} of {found['cells']:.0f}, with {found['share_above_noise']:.0%} of "
        f"the visits. In {found['share_of_states_worth_nothing']:.2%} of (step, state) every action is worth 0."
    )
    lines = [
        "# All 716 states, H = 20, ρ = 1",
        "",
        f"{os.cpu_count()} cores, Python {platform.python_version()}. {20 * 25 * 716 * 717 / 1e6:.0f} million counts.",
        "",
        "| stage | seconds | peak so far, GB |",
        "| --- | --- | --- |",
        *(f"| {name} | {seconds:.1f} | {memory:.2f} |" for name, seconds, memory in rows),
        "",
        f"True values: {', '.join(f'{name} {value}' for name, value in shown.items())}, APVI {result.baseline:.4f}.",
        "",
        knowledge,
    ]
    table = "\n".join(lines) + "\n"
    print(table)
    if "--write" in sys.argv[1:]:
        Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
