"""How long a new user waits: set-up and main job from a fresh clone, and the main job alone.

    python benchmarks/main_job.py [--write]

Clones the repository into a temporary directory, runs `make demo` there (environment, wheel, installation, the check of
DP-APVI on ICU-Sepsis), then the installed command again, cold and warm. `--write` puts the table beside this script.
"""

import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [".venv/bin/privcheck", "check", "dp-apvi", "--data", "icu-sepsis"]


def timed(command, where):
    """Returns wall seconds and the peak memory of the largest child so far, in MB."""
    started = time.perf_counter()
    subprocess.run(command, cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return time.perf_counter() - started, peak


def main():
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        clone = Path(directory) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        seconds, _ = timed(["make", "demo"], clone)
        rows.append(("`make demo` from a fresh clone", f"{seconds:.1f} s"))
        runs = [timed([*COMMAND, "--out", f"runs/{i}"], clone) for i in range(3)]
        rows.append(("`privcheck check dp-apvi --data icu-sepsis`, median of 3", f"{sorted(runs)[1][0]:.1f} s"))
        rows.append(("its peak memory (largest process)", f"{runs[-1][1]:.0f} MB"))
        help_seconds = sorted(timed([".venv/bin/privcheck", "--help"], clone)[0] for _ in range(5))[2]
        bare = sorted(timed([".venv/bin/python", "-c", "import click"], clone)[0] for _ in range(5))[2]
        rows.append(("`privcheck --help` less a bare `import click`, medians of 5", f"{help_seconds - bare:.3f} s"))
    lines = ["# The main job", "", "| what | measured |", "| --- | --- |"]
    lines += [f"| {what} | {value} |" for what, value in rows]
    lines += ["", f"Python {platform.python_version()}, {os.cpu_count()} cores."]
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
