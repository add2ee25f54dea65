"""How long the verdicts take: every system in a cold process of its own, at its defaults and at full scale, and all.

    python benchmarks/verify_all.py [--write]

Limits: one system 5 s, `privcheck verify --all` 60 s on two cores, memory 1 GB at K = 10⁹ users and H = 100 steps.
Seconds are wall and processor time; on a machine that does other work the second is the one to compare. `--write` puts
the table beside this script.
"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from privcheck.runtime import registry

LARGE = {"K": "1000000000", "n": "1000000000", "H": "100"}
PRIVCHECK = Path(sys.executable).with_name("privcheck")


def run(*arguments):
    """Returns the JSON on standard output, wall and processor seconds and the peak memory in MB of one command."""
    started = time.perf_counter()
    with subprocess.Popen([PRIVCHECK, "verify", *arguments, "--json"], stdout=subprocess.PIPE) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)  # bytes there, kilobytes elsewhere
    return json.loads(printed) if printed else None, wall, usage.ru_utime + usage.ru_stime, peak


def ratio(value):
    return value if isinstance(value, str) else f"{value:.4g}"


def row(name):
    declared = {p.name for p in registry.algorithm(name).declare({}).parameters}
    found, wall, processor, peak = run(name)
    sizes = [f"--set={key}={value}" for key, value in LARGE.items() if key in declared]
    at_scale, wall_at_scale, processor_at_scale, peak_at_scale = run(name, *sizes)
    verdict = f"{found['verdict']}, {found['method']}" if found else "refused"
    ends = f"{ratio(found['lower_ratio'])} to {ratio(found['upper_ratio'])}" if found else "–"
    scaled = f"{wall_at_scale:.1f} s ({processor_at_scale:.1f} s), {peak_at_scale:.0f} MB" + (
        "" if at_scale else ", refused"
    )
    return f"| {name} | {verdict} | {ends} | {wall:.1f} s ({processor:.1f} s) | {peak:.0f} MB | {scaled} |"


def main() -> None:
    names = [n for n in registry.names("algorithms") if registry.algorithm(n).declare is not None]
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    load = f"load {os.getloadavg()[0]:.1f} before the start"
    lines = [
        "# How long the verdicts take",
        "",
        f"`python benchmarks/verify_all.py --write`; {where}, {load}. Every line a cold process; in brackets",
        "processor time. Limits: 5 s a system, 60 s for all, 1 GB.",
        "",
        "| system | verdict | cost over claim | time | memory | K = 10⁹, H = 100 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in names:
        lines.append(row(name))
        print(lines[-1], flush=True)
    _, wall, processor, peak = run("--all")
    lines += ["", f"`privcheck verify --all`: {wall:.1f} s ({processor:.1f} s processor time), {peak:.0f} MB."]
    print(lines[-1])
    if "--write" in sys.argv[1:]:
        Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
