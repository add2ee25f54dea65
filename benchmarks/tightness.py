"""How much of an exactly true claim audits of functions certify; `python benchmarks/tightness.py` writes the table.

Medians over seeds at 95 % confidence, as fractions of ε = 1; a bound on μ is read as the ε of its Gaussian at δ = 10⁻⁵.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtr

from privcheck import ApproxDP, GaussianDP, PureDP, audit_mechanism
from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck_audits.bounds import CoinFlip, CurveFlip

SEEDS = 20
DELTA = 1e-5
MU = 0.268051  # of a Gaussian that is exactly (1, 10⁻⁵)-DP
BEFORE = {("approx", 10_000): 0.355, ("approx", 100_000): 0.597, ("gdp", 10_000): 0.800, ("gdp", 100_000): 0.913}
BEFORE |= {("laplace", 10_000): 0.918, ("laplace", 100_000): 0.972}


def gaussian(value, runs, rng):
    return value + rng.normal(0, 1 / MU, runs)


def laplace(value, runs, rng):
    return value + rng.laplace(0, 1, runs)


CASES = {
    "approx": (gaussian, ApproxDP(1, "0.00001"), "Gaussian, (1, 10⁻⁵)-DP"),
    "gdp": (gaussian, GaussianDP(str(MU)), "Gaussian, μ-GDP"),
    "laplace": (laplace, PureDP(1), "Laplace, 1-DP"),
}


def limit(case: str, trials: int) -> float:
    """Returns what the best score certifies if all runs are tested, with all of α, at the best number of guesses."""
    runs, alpha = 2 * trials, 0.05
    if case == "gdp":
        return CurveFlip(errors=math.ceil(runs * ndtr(-MU / 2)), runs=runs).epsilon(alpha=alpha, delta=DELTA)
    if case == "laplace":
        guesses = runs * (1 + math.exp(-1)) / 2  # where the ratio is e or 1/e
        return CoinFlip(errors=math.ceil(guesses * expit(-1)), guesses=int(guesses)).epsilon(alpha=alpha)
    bounds = []
    for cut in np.arange(1.5, 3.6, 0.05):
        wrong, right = math.ceil(runs * ndtr(-MU / 2 - cut)), int(runs * ndtr(MU / 2 - cut))
        bounds.append(CoinFlip(errors=wrong, guesses=wrong + right, coins=runs, delta=DELTA).epsilon(alpha=alpha))
    return max(bounds)


def main() -> None:
    lines = [
        "# How much of a true claim is certified",
        "",
        "`python benchmarks/tightness.py`: the median lower bound of 20 audits at 95 % confidence (in brackets the",
        "quartiles) as a fraction of ε = 1, of mechanisms for which the claim is exactly true; N runs a neighbour.",
        "The limit is the bound at expected counts of the best score, with all runs and all of α at one threshold.",
        "Bounds on μ are read as the ε of their Gaussian at δ = 10⁻⁵.",
        "",
        "| claim | N | before | now | limit | above the claim | seconds an audit |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for case, (mechanism, claim, name) in CASES.items():
        for trials in (10_000, 100_000):
            began, found = time.process_time(), []
            for seed in range(SEEDS):
                asked = {"neighbours": [(0.0, 1.0)], "trials": trials, "confidence": 0.95, "seed": seed}
                lower = audit_mechanism(mechanism, claim, **asked).lower
                found.append(gdp_epsilon(lower, DELTA, rounding="down") if case == "gdp" and lower > 0 else lower)
            seconds = (time.process_time() - began) / SEEDS
            low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
            lines.append(
                f"| {name} | {trials:,} | {BEFORE[case, trials]:.3f} | {middle:.3f} ({low:.3f} to {high:.3f}) | "
                f"{limit(case, trials):.3f} | {sum(bound > 1 for bound in found)} of {SEEDS} | {seconds:.2f} |"
            )
            print(lines[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
