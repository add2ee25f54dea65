"""Paper 002's Figure 2, honestly: its setting, the sweep over ε and K, and what calibrated noise in batches reaches.

    python benchmarks/private_tabular.py            all sections, and writes private_tabular.md
    python benchmarks/private_tabular.py figure2    one of figure2, sweep, calibrated, long

RiverSwim, S = 6, A = 2, H = 20. The bonus is scaled for each algorithm without noise, then left alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from privcheck.commands.online import load_world, online_settings, run_online

OUT = Path(__file__).with_suffix(".md")
SEED = 20_000  # of no run that anything was tuned on
VI, PO = {"bonus_scale": "0.003"}, {"bonus_scale": "0.003", "eta_scale": "50"}
TRUSTING = {"precision_scale": "0.01"}  # E a hundredth of the lemma's: with E itself no bonus ever leaves the ceiling


def once(name: str, *, replicates: int, **given: object) -> dict[str, object]:
    world, _ = load_world("riverswim", {}, seed=0)
    setting = online_settings([name], {k: str(v) for k, v in given.items()}, world)[0]
    started = time.perf_counter()
    found = run_online(setting, world, replicates=replicates, seed=SEED)
    print(name, given, f"{100 * found['regret']['share']:.2f} %", f"{time.perf_counter() - started:.0f} s", flush=True)
    return found


def row(label: str, found: dict) -> str:
    regret, value = found["regret"], found["curves"]["value"]["mean"][-1]
    std = "" if regret["std"] is None else f" ± {regret['std']:.0f}"
    cells = (label, f"{found['episodes']:.0e}".replace("e+0", "·10^"), f"{regret['mean']:.0f}{std}",
             f"{100 * regret['share']:.2f} %", f"{value:.3f}")  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def table(rows: Iterable[str]) -> list[str]:
    head = "| agent | K | regret | of the most | last policy's value |"
    return [head, "| --- | --- | --- | --- | --- |", *rows]


def figure2() -> list[str]:
    rows = [
        row("`ucb-vi`, the paper's bonus", once("ucb-vi", replicates=20)),
        row("`ucb-vi`, bonus × 0.003", once("ucb-vi", replicates=20, **VI)),
        row("`oppo`, the paper's bonus and η", once("oppo", replicates=20)),
        row("`oppo`, bonus × 0.003, η × 50", once("oppo", replicates=20, **PO)),
    ]
    for name, tuned in (("private-ucb-vi", VI), ("private-ucb-po", PO)):
        for place in ("central", "local"):
            agent = f"{name}-{place}"
            rows.append(row(f"`{agent}`, ε = 1, the paper's E", once(agent, replicates=20, epsilon=1, **tuned)))
            rows += [
                row(f"`{agent}`, ε = {epsilon}, E × 0.01",
                    once(agent, replicates=20, epsilon=epsilon, **tuned, **TRUSTING))
                for epsilon in (1, 10, 100)
            ]  # fmt: skip
    return ["## The setting of Figure 2: K = 2·10⁴, 20 runs", "", *table(rows)]


def sweep() -> list[str]:
    rows = [
        row(f"`private-ucb-vi-{place}`, ε = {epsilon}, E × 0.01",
            once(f"private-ucb-vi-{place}", replicates=4 if K < 10**6 else 2, K=K, epsilon=epsilon, **VI, **TRUSTING))
        for place in ("central", "local")
        for epsilon in (1, 10, 100)
        for K in (20_000, 200_000, 2_000_000)
        if not (place == "local" and K > 10**6 and epsilon < 100)
    ]  # fmt: skip
    return ["## Where it learns: the sweep over ε and K", "", *table(rows)]


def long() -> list[str]:
    rows = [
        row("`private-ucb-vi-central`, ε = 1, E × 0.01",
            once("private-ucb-vi-central", replicates=1, K=20_000_000, epsilon=1, **VI, **TRUSTING))
    ]  # fmt: skip
    return ["## ε = 1 and K = 2·10⁷, one run", "", *table(rows)]


def calibrated() -> list[str]:
    readings = (
        ("pooled counts, rewards learned", {}),
        ("pooled counts, rewards known", {"rewards": "known"}),
        ("pooled, a user's every visit (m = 20)", {"cap": "20"}),
        ("pooled, m = 1", {"cap": "1"}),
        ("counts by step", {"counts": "steps"}),
        ("counts by step, rewards known", {"counts": "steps", "rewards": "known"}),
        ("pooled, batches of 1 024", {"first_batch": "1024", "growth": "1"}),
        ("pooled, doubling from 384", {"growth": "2"}),
    )
    rows = [row(label, once("calibrated-ucb-vi", replicates=20, **given)) for label, given in readings]
    rows += [
        row("pooled, another K", once("calibrated-ucb-vi", replicates=10, K=K)) for K in (5_000, 100_000, 1_000_000)
    ]
    return ["## `calibrated-ucb-vi` at (1, 10⁻⁵)-JDP", "", *table(rows)]


SECTIONS = {"figure2": figure2, "calibrated": calibrated, "sweep": sweep, "long": long}
HEAD = """# PRIVATE-UCB-VI and PRIVATE-UCB-PO on RiverSwim, and what calibrated noise reaches

`python benchmarks/private_tabular.py`. S = 6, A = 2, H = 20; V* = 3.3972639592, so the most regret is K·V*, 67 945 at
K = 2·10⁴. Regret is exact: V* − V^π of every episode's policy. Seeds were not used to tune anything.
"""

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(SECTIONS)
    parts = ["\n".join(SECTIONS[name]()) for name in chosen]
    text = "\n".join([HEAD, *(part + "\n" for part in parts)])
    if not sys.argv[1:]:
        OUT.write_text(text)
    print(text)
