"""What one run with many canaries shows of Gaussian noise, and how often it accuses noise at its claim.

    PYTHONPATH=tests python benchmarks/one_run.py [--runs 200] [--false-alarms 2000]

Every canary has a coordinate of its own with Gaussian noise: the case with the largest bounds. About 5 minutes.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from privcheck import ZCDP, ApproxDP, GaussianDP, audit_one_run
from privcheck.accounting.engine.gdp import gdp_epsilon

DELTA, CONFIDENCE = 1e-5, 0.95
BEST = {(1_000, 1): 0.35, (1_000, 2): 1.00, (1_000, 4): 2.14, (1_000, 8): 4.17,
        (10_000, 1): 0.60, (10_000, 2): 1.32, (10_000, 4): 2.67, (10_000, 8): 4.98}  # fmt: skip
HEAD = f"""# One run, many canaries

`PYTHONPATH=tests python benchmarks/one_run.py`. Every canary has a coordinate of its own with Gaussian noise, exactly
at its claim; median lower bound on ε at δ = 10⁻⁵ over {{runs}} audits, confidence {CONFIDENCE}. *Best known* is what
Mahloujifar, Melis & Chaudhuri's recursion shows with the number of guesses chosen beforehand, as measured before this
code was written. *As (ε, δ)* is the same noise with an `ApproxDP` claim, and *as ρ-zCDP* with a `ZCDP` claim: medians
of at least 15 audits. *If exact* is what the audit says could be shown.

| canaries | true ε | as μ-GDP | if exact | best known | as ρ-zCDP: ρ | of ρ | as (ε, δ) | seconds |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def agent(mu):
    return lambda included, rng: mu * included + rng.normal(size=included.size)


def epsilon(mu: float) -> float:
    return gdp_epsilon(mu, DELTA, rounding="down") if mu > 0 else 0.0


def row(canaries: int, true: int, runs: int) -> str:
    mu = brentq(lambda m: gdp_epsilon(m, DELTA) - true, 1e-3, 20)
    began = time.perf_counter()
    bounds = [_audit(mu, GaussianDP(str(round(mu, 9))), canaries, seed) for seed in range(runs)]
    seconds = (time.perf_counter() - began) / runs
    found = float(np.median([epsilon(one.lower) for one in bounds]))
    rho = str(round(mu**2 / 2, 9))
    of_rho = float(np.median([_audit(mu, ZCDP(rho), canaries, seed).lower for seed in range(max(15, runs // 4))]))
    claim = ApproxDP(true, "1/100000")
    approx = float(np.median([_audit(mu, claim, canaries, seed).lower for seed in range(max(15, runs // 4))]))
    best, exact = BEST[canaries, true], epsilon(bounds[0].reachable)
    figures = f"{found:.2f} | {exact:.2f} | {best:.2f} | {of_rho:.3g} | {float(rho):.3g} | {approx:.2f} | {seconds:.2f}"
    return f"| {canaries:,} | {true} | {figures} |\n"


def _audit(mu: float, claim, canaries: int, seed: int):
    return audit_one_run(agent(mu), claim, canaries=canaries, confidence=CONFIDENCE, seed=seed)


def alarms(audits: int) -> str:
    """Accusations of noise at its claim, of its own for every canary and one for all."""
    lines = ["", "## False alarms", "", f"{audits:,} audits of each at confidence {CONFIDENCE}.", "",
             "| mechanism | claim | accused | allowed |", "| --- | --- | ---: | ---: |"]  # fmt: skip

    def shared(included, rng):  # one noisy count: every canary is guessed alike
        count = included.sum() - included.size / 2 + rng.normal(0, 2)
        return np.full(included.size, count)

    for name, made, claim in (
        ("noise of its own", agent(0.5), GaussianDP("1/2")),
        ("one noisy count", shared, GaussianDP("1/2")),
        ("noise of its own", agent(0.5), ApproxDP("2", "1/100000")),
    ):
        accused = sum(
            audit_one_run(made, claim, canaries=200, confidence=CONFIDENCE, seed=seed).verdict == "violation"
            for seed in range(audits)
        )
        lines.append(f"| {name} | {claim} | {accused} | {math.floor(binom.isf(1e-3, audits, 1 - CONFIDENCE))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--false-alarms", type=int, default=2_000)
    how = parser.parse_args()
    rows = [row(canaries, true, how.runs) for canaries in (1_000, 10_000) for true in (1, 2, 4, 8)]
    said = HEAD.format(runs=how.runs) + "".join(rows) + alarms(how.false_alarms)
    Path(__file__).with_suffix(".md").write_text(said, encoding="utf-8")
    print(said)


if __name__ == "__main__":
    main()
