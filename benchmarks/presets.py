"""What the presets `practical` and `paper` leave to lose, on environments that nothing was tuned on.

    python benchmarks/presets.py [--tune] [--write]

`--tune` searches the constants of the tabular agents on TUNED_ON and prints the best; their defaults are taken from it.
`--write` writes benchmarks/presets.md.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import privcheck
from privcheck.reports.values import RanOnline
from privcheck.runtime import registry
from privcheck.runtime.registry import PAPER, PRACTICAL

RANDOM = [({"env": "random", "S": 5, "A": 3, "H": 10}, 0), ({"env": "random", "S": 5, "A": 3, "H": 10}, 1),
          ({"env": "random", "S": 8, "A": 2, "H": 6}, 2)]  # fmt: skip
CHAINS = [({"env": "riverswim", "S": 4, "H": 12}, 3), ({"env": "riverswim", "S": 3, "H": 8}, 4)]
TUNED_ON = [*RANDOM, CHAINS[0]]  # environment and seed; 5 000 episodes
SHOWN_SEEDS = range(100, 105)
BUDGETS = ("1", "100")  # ε: what is asked for, and where the trees' noise leaves something to learn from
BONUS, PRECISION = ("1", "0.1", "0.03", "0.01", "0.003", "0.001"), ("1", "0.1", "0.01", "0.001")
COUNTERS = {"bonus_scale": BONUS, "precision_scale": PRECISION}
STEPS = {"bonus_scale": BONUS, "precision_scale": ("1", "0.1", "0.01"), "eta_scale": ("1", "10", "50")}
GRIDS: dict[tuple[str, ...], Mapping[str, Sequence[str]]] = {  # agents that share their constants
    ("ucb-vi",): {"bonus_scale": BONUS},
    ("oppo",): {"bonus_scale": BONUS, "eta_scale": ("1", "10", "50", "200")},
    ("private-ucb-vi-central", "private-ucb-vi-local", "private-ucb-vi-calibrated"): COUNTERS,
    ("dp-ucbvi-central", "dp-ucbvi-local", "pucb"): COUNTERS,
    ("private-ucb-po-central", "private-ucb-po-local"): STEPS,
}
TABULAR = (*itertools.chain(*GRIDS), "ldp-obi")
RIVER = {"env": "riverswim", "S": 6, "H": 20, "K": 20_000}
SHUFFLED = {"env": "riverswim", "S": 4, "H": 6, "K": 20_000}
ELSEWHERE: list[tuple[str, dict[str, Any]]] = [
    *((name, SHUFFLED) for name in ("policy-elimination", "sdp-pe", "sdp-pe-calibrated")),
    *((name, {"env": "linear-hypercube", "H": 6, "K": 5_000}) for name in
      ("ucrl-vtr", "linear-oppo", "private-linopt-vi", "private-linopt-po")),
    *((name, {"env": "linear-signs", "K": 2_000}) for name in ("lsvi-ucb-pp", "dp-lsvi-ucb-pp")),
    *((name, {"env": "riverswim", "n": 5_000}) for name in ("apvi", "dp-apvi", "dp-apvi-laplace")),
    *((name, {"env": "icu-sepsis"}) for name in ("apvi", "dp-apvi", "dp-apvi-laplace")),
    *((name, {"env": "linear-synthetic", "n": 10_000}) for name in ("dp-vapvi", "dp-vapvi-unsplit")),
]  # fmt: skip
MODELLED = ("linear-hypercube", "linear-signs", "linear-synthetic")  # drawn at random by a number of their own


def share(name: str, where: Mapping[str, Any], *, seed: int, **sets: Any) -> float:
    """Returns what is left of the uniform policy's regret, or of its gap, in %."""
    ran = privcheck.run(name, seed=seed, **{**where, **sets})
    found = ran.regret.share_of_uniform if isinstance(ran, RanOnline) else ran.gap.share_of_uniform
    assert found is not None
    return 100 * found


def tune() -> None:
    """Prints the best constants of each family, by the mean over environments, agents and budgets."""
    for names, grid in GRIDS.items():
        private = registry.algorithm(names[0]).declare is not None
        budgets: list[dict[str, str]] = [{"epsilon": epsilon} for epsilon in BUDGETS] if private else [{}]
        found = []
        for values in itertools.product(*grid.values()):
            sets = dict(zip(grid, values, strict=True))
            asked = itertools.product(names, budgets, TUNED_ON)
            shares = [share(name, at, seed=seed, K=5_000, **budget, **sets) for name, budget, (at, seed) in asked]
            found.append((float(np.mean(shares)), sets))
        for mean, sets in sorted(found, key=lambda one: one[0])[:3]:
            print(f"{', '.join(names)}: {mean:.2f} % with {sets}", flush=True)


def row(name: str, where: Mapping[str, Any], words: str, **budget: str) -> str:
    """Returns a line of the table: both presets over several seeds."""
    cells, means = [], []
    for preset in (PAPER, PRACTICAL):
        shares = []
        for seed in SHOWN_SEEDS:
            own = {"model": seed} if where["env"] in MODELLED else {}
            shares.append(share(name, where, seed=seed, preset=preset, **own, **budget))
        error = np.std(shares, ddof=1) / np.sqrt(len(shares))
        means.append(float(np.mean(shares)))
        cells.append(f"{means[-1]:.1f} ± {error:.1f} %")
    algorithm = registry.algorithm(name)
    usual = {option.name: str(option.default) for option in algorithm.options}
    usual |= {reading.name: reading.ways[0] for reading in algorithm.readings}
    used = ", ".join(f"{at} {usual[at]}" for at in algorithm.printed)
    learns = "" if means[1] < 95 else "does not learn"
    return f"| `{name}` | {words} | {cells[0]} | {cells[1]} | {used} | {learns} |"


def table() -> Iterator[str]:
    """Yields the page."""
    yield "# Presets: what is left of the uniform policy's regret or gap"
    yield ""
    yield (
        f"`python benchmarks/presets.py`. Mean and standard error over {len(SHOWN_SEEDS)} seeds. Shown on RiverSwim of "
        "6 states and 20 steps (K = 2·10⁴; SDP-PE: 4 and 6), ICU-Sepsis (24 states, 20 000 users), `linear-*` models "
        "100 to 104. Tuned on other environments: tabular agents on three random models (5 states, 3 actions, 10 "
        "steps; 8, 2, 6) and a chain of 4 states and 12 steps at K = 5 000 and other seeds, by the mean over ε = 1 and "
        "100 (`--tune`); linear agents on other models of the same family (their READMEs). Tuned where they are shown, "
        "on other draws: `dp-apvi` on ICU-Sepsis (`benchmarks/bonus_scale.md`; RiverSwim is new to it) and SDP-PE's "
        "width on RiverSwim. `ldp-obi` has the constants of `dp-ucbvi`. Both presets release the same with the "
        "same noise. Agents that are not in the table have one set of constants."
    )
    yield ""
    yield "| agent | where | `paper` | `practical` | constants of `practical` | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in TABULAR:
        if registry.algorithm(name).declare is None:
            yield row(name, RIVER, "RiverSwim")
        else:
            yield from (row(name, RIVER, f"RiverSwim, ε = {epsilon}", epsilon=epsilon) for epsilon in BUDGETS)
    yield from (row(name, where, f"`{where['env']}`") for name, where in ELSEWHERE)
    yield ""
    yield (
        "Regret is that of all episodes, the first ones too. At ε = 1 and K = 2·10⁴ the noise of trees and of users' "
        "own messages swamps the counts; `calibrated-ucb-vi`, `calibrated-linopt`, "
        "`calibrated-lsvi-ucb`, `calibrated-vapvi` and `shuffled-ucb-vi` learn at such budgets."
    )


def main() -> None:
    """Tunes, or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if asked.tune:
        tune()
        return
    lines = []
    for line in table():
        print(line, flush=True)
        lines.append(line)
    if asked.write:
        Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
