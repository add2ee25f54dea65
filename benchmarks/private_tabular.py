"""Chowdhury & Zhou's Figure 2, honestly: its setting, a sweep over ε and K, and what calibrated noise reaches.

    python benchmarks/private_tabular.py                     all sections, and writes private_tabular.md
    python benchmarks/private_tabular.py figure2             of figure2, calibrated, sweep, suffices, long one or more
    python benchmarks/private_tabular.py suffices --write    and puts them in their places in private_tabular.md

RiverSwim, S = 6, A = 2, H = 20. The bonus is scaled for each algorithm without noise, then left alone.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from privcheck.commands.online_runs import load_world, online_settings, run_online
from privcheck.declare.declaration import Claim
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.schedules import Batches
from privcheck.pricing.calibration import least_noise
from privcheck.reports.values import RanOnline
from privcheck.terms.guarantees import ApproxDP
from privcheck.verification import verify

OUT = Path(__file__).with_suffix(".md")
SEED = 20_000  # of no run that anything was tuned on
VI, PO = {"bonus_scale": "0.003"}, {"bonus_scale": "0.003", "eta_scale": "50"}
AGENT, PAPER = "private-ucb-vi-calibrated", "private-ucb-vi-central"
TRUSTING = {"precision_scale": "0.01"}  # E a hundredth of the lemma's: with E itself no bonus ever leaves the ceiling
DOUBLING = {"releases": "doubling"}
TUNED = {"bonus_scale": "0.03", "precision_scale": "0.1"}  # of eighteen the best for doubling batches at K = 2·10⁶
SUFFICING = (
    ("tree, Laplace, its E", PAPER, {"least": "tree", **VI}),
    ("tree, Laplace, E × 0.01", PAPER, {"least": "tree", **VI, **TRUSTING}),
    ("tree, Gaussian, its E", AGENT, VI),
    ("tree, Gaussian, E × 0.01", AGENT, VI | TRUSTING),
    ("tree, Gaussian, E × 0.1, bonus × 0.03", AGENT, TUNED),
    ("doubling, Laplace, its E", PAPER, {"least": "doubling", **VI}),
    ("doubling, Laplace, E × 0.01", PAPER, {"least": "doubling", **VI, **TRUSTING}),
    ("doubling, Gaussian, its E", AGENT, DOUBLING | VI),
    ("doubling, Gaussian, E × 0.01", AGENT, DOUBLING | VI | TRUSTING),
    ("doubling from 1 000, Gaussian, E × 0.1, bonus × 0.03", AGENT, DOUBLING | TUNED | {"first_batch": "1000"}),
)  # fmt: skip
SUFFICIENT = """Tables by step, bonus × 0.003 where nothing else stands; 20, 20 and 5 runs. Laplace: the declaration of
`private-ucb-vi-central` with the noise that `privcheck calibrate` names for its trees, or for disjoint batches.
Gaussian: `private-ucb-vi-calibrated`. Each holds by `verify` before it runs. E follows from the noise."""

TITLES = {
    "figure2": "The setting of Figure 2: K = 2·10⁴, 20 runs",
    "calibrated": "`calibrated-ucb-vi` at (1, 10⁻⁵)-JDP",
    "sweep": "Where it learns: the sweep over ε and K",
    "suffices": "The paper's agent with the noise that suffices for (1, 10⁻⁵)-JDP",
    "long": "ε = 1 and K = 2·10⁷, one run",
}


def once(name: str, *, replicates: int, least: str = "", **given: object) -> RanOnline:
    world, _ = load_world("riverswim", {}, seed=0)
    setting = online_settings([name], {"preset": "paper", **{k: str(v) for k, v in given.items()}}, world)[0]
    if least:
        setting = sufficing(setting, doubling=least == "doubling")
    if least or name == AGENT:
        setting = replace(setting, algorithm=replace(setting.algorithm, twin=None))
        found = verify(setting.declared, setting.values)
        print(name, least, found.verdict, found.method, setting.declared.releases[0].mechanism.words, flush=True)
    started = time.perf_counter()
    found = run_online(setting, world, replicates=replicates, seed=SEED)
    print(name, given, f"{100 * found.regret.share:.2f} %", f"{time.perf_counter() - started:.0f} s", flush=True)
    return found


def sufficing(setting, *, doubling):
    """Returns PRIVATE-UCB-VI's setting with the Laplace noise that calibrate names for (1, 10⁻⁵)-DP, rounded up."""
    declared = setting.declared
    found = least_noise(declared, setting.values, epsilon=1, delta=1e-5)
    schedule = Batches(size="users, each as large as all before it together")
    releases = []
    for release, noise in zip(declared.releases, found.batches if doubling else found.releases, strict=True):
        b = Fraction(math.ceil(noise.needed_std / math.sqrt(2) * 1e6), 10**6)
        changed = replace(release, mechanism=Laplace(scale=b), stated=None, budget=None)
        releases.append(replace(changed, schedule=schedule if doubling else release.schedule))
    claim = Claim(ApproxDP(1, Fraction(1, 10**5)), source="calibrate", joint=declared.claim.joint)
    changed = replace(declared, releases=tuple(releases), claim=claim)
    return replace(setting, setting=replace(setting.setting, declaration=changed))


def title(name: str) -> str:
    return f"## {TITLES[name]}"


def row(label: str, found: RanOnline) -> str:
    regret, value = found.regret, found.curves.value.mean[-1]
    std = "" if regret.std is None else f" ± {regret.std:.0f}"
    cells = (label, f"{found.episodes:.0e}".replace("e+0", "·10^"), f"{regret.mean:.0f}{std}",
             f"{100 * regret.share:.2f} %", f"{value:.3f}")  # fmt: skip
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
    return [title("figure2"), "", *table(rows)]


def sweep() -> list[str]:
    rows = [
        row(f"`private-ucb-vi-{place}`, ε = {epsilon}, E × 0.01",
            once(f"private-ucb-vi-{place}", replicates=4 if K < 10**6 else 2, K=K, epsilon=epsilon, **VI, **TRUSTING))
        for place in ("central", "local")
        for epsilon in (1, 10, 100)
        for K in (20_000, 200_000, 2_000_000)
        if not (place == "local" and K > 10**6 and epsilon < 100)
    ]  # fmt: skip
    return [title("sweep"), "", *table(rows)]


def suffices() -> list[str]:
    rows = [
        row(label, once(name, replicates=5 if K > 10**6 else 20, K=K, **given))
        for label, name, given in SUFFICING
        for K in (20_000, 200_000, 2_000_000)
    ]
    return [title("suffices"), "", SUFFICIENT, "", *table(rows)]


def long() -> list[str]:
    rows = [
        row("`private-ucb-vi-central`, ε = 1, E × 0.01",
            once("private-ucb-vi-central", replicates=1, K=20_000_000, epsilon=1, **VI, **TRUSTING)),
        *(row(f"(1, 10⁻⁵)-JDP, {label}", once(name, replicates=1, K=20_000_000, **given))
          for label, name, given in SUFFICING if given.get("releases") == "doubling"),
    ]  # fmt: skip
    return [title("long"), "", *table(rows)]


def calibrated() -> list[str]:
    readings = (
        ("one policy a batch, the same at every step", {}),
        ("the same, rewards known", {"rewards": "known"}),
        ("one policy a batch, by step", {"counts": "steps"}),
        ("by step, every step for itself", {"counts": "steps", "shared": "0"}),
        ("by step, rewards known", {"counts": "steps", "rewards": "known"}),
        ("one policy a batch, batches of 1 024", {"first_batch": "1024", "growth": "1"}),
        ("one policy a batch, doubling from 256", {"growth": "2"}),
    )
    rows = [row(label, once("calibrated-ucb-vi", replicates=20, **given)) for label, given in readings]
    rows += [
        row("one policy a batch, another K", once("calibrated-ucb-vi", replicates=10, K=K))
        for K in (5_000, 100_000, 1_000_000)
    ]
    return [title("calibrated"), "", *table(rows)]


SECTIONS = {"figure2": figure2, "calibrated": calibrated, "sweep": sweep, "suffices": suffices, "long": long}
HEAD = """# PRIVATE-UCB-VI and PRIVATE-UCB-PO on RiverSwim, and what calibrated noise reaches

`python benchmarks/private_tabular.py`. S = 6, A = 2, H = 20; V* = 3.3972639592, so the most regret is K·V*, 67 945 at
K = 2·10⁴. Regret is exact: V* − V^π of every episode's policy. Seeds were not used to tune anything.
"""


def placed(parts: dict[str, str]) -> str:
    """Returns the written page with sections in their places: the new ones, and of the others those it has."""
    if len(parts) < len(SECTIONS):
        written = OUT.read_text()
        for name, heading in ((name, title(name)) for name in SECTIONS):
            _, found, rest = written.partition(f"{heading}\n")
            if found and name not in parts:
                parts[name] = f"{heading}\n{rest.partition(chr(10) + '## ')[0]}".rstrip("\n")
    return "\n".join([HEAD, *(f"{parts[name]}\n" for name in SECTIONS if name in parts)])


if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name != "--write"] or list(SECTIONS)
    parts = {name: "\n".join(SECTIONS[name]()) for name in chosen}
    text = "\n".join([HEAD, *(f"{part}\n" for part in parts.values())])
    if not sys.argv[1:] or "--write" in sys.argv:
        OUT.write_text(placed(parts))
    print(text)
