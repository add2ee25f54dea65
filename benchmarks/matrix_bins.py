"""Balls in bins of matrix mechanisms: bounds beside simulations; `python benchmarks/matrix_bins.py` writes the page.

A banded square root of prefix sums, one user in one step of every epoch, the same in all. A simulation draws outputs of
the worst known user, whose exact likelihood ratio it computes: an estimate, with 10⁻⁴ for δ, as it takes 10²/δ runs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from privcheck import accounting as acc

PAGE = Path(__file__).with_suffix(".md")
DELTA = 1e-4
BLOCK = 4_000
CASES = [  # bands, groups, bins, epochs, standard deviation
    (4, 4, 64, 2, 1.5),
    (16, 16, 32, 4, 3.0),
    (2, 1, 256, 1, 0.7),
    (4, 1, 256, 1, 1.0),
    (16, 1, 256, 1, 0.7),
    (16, 1, 256, 1, 1.2),
    (16, 1, 256, 1, 2.4),
    (16, 1, 256, 1, 5.0),
    (16, 1, 128, 4, 2.0),
    (256, 1, 128, 2, 3.0),
]


def encoder(steps: int, bands: int) -> np.ndarray:
    column = np.concatenate([[1.0], np.cumprod([(2 * i - 1) / (2 * i) for i in range(1, steps)])])
    column[bands:] = 0.0
    below = np.subtract.outer(np.arange(steps), np.arange(steps))
    return np.where(below >= 0, column[np.maximum(below, 0)], 0.0)


def simulated(means: np.ndarray, runs: int, rng: np.random.Generator) -> float:
    """Estimates ε at δ of the worst known user who is in one of the bins."""
    root = np.linalg.qr(means, mode="r")
    halves, losses = (root * root).sum(axis=0) / 2, {True: [], False: []}
    for _ in range(runs // BLOCK):
        outputs = rng.standard_normal((BLOCK, root.shape[0]))
        for with_user in (True, False):
            moved = outputs + root.T[rng.integers(root.shape[1], size=BLOCK)] if with_user else outputs
            exponents = moved @ root - halves
            top = exponents.max(axis=1)
            ratios = top + np.log(np.exp(exponents - top[:, None]).mean(axis=1))
            losses[with_user].append(ratios if with_user else -ratios)
    found = []
    for each in losses.values():
        loss, low, high = np.concatenate(each), 0.0, 100.0
        for _ in range(50):
            middle = (low + high) / 2
            delta = float(np.mean(np.maximum(-np.expm1(np.minimum(middle - loss, 0.0)), 0.0)))
            low, high = (middle, high) if delta > DELTA else (low, middle)
        found.append(high)
    return max(found)


def row(bands: int, groups: int, bins: int, epochs: int, std: float, *, runs: int) -> str:
    matrix = encoder(groups * bins * epochs, bands)
    known = acc.matrix_gaussian(
        encoder=matrix, std=std, sensitivity=1, participations=epochs, separation=groups * bins, order="fixed"
    ).epsilon(delta=DELTA)
    start = time.perf_counter()
    event = acc.matrix_random_allocation(encoder=matrix, std=std, bins=bins, separation=groups, relation="add-remove")
    figure = event.epsilon(delta=DELTA)
    lower, upper = figure.lower, figure.upper
    seconds = time.perf_counter() - start
    means = matrix.reshape(len(matrix), epochs, bins, groups).sum(axis=1)[:, :, 0] / std
    start = time.perf_counter()
    estimate = simulated(means, runs, np.random.default_rng(5))
    took = time.perf_counter() - start
    shown = "all" if bands >= groups * bins * epochs else bands
    return (
        f"| {shown} | {groups} | {bins} | {epochs} | {std:g} | {known.upper:.3f} | {lower:.3f} | {estimate:.3f} "
        f"| {upper:.3f} | {upper / lower:.2f} | {seconds:.1f} | {took:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400_000, help="simulated runs of each row")
    runs = parser.parse_args().runs
    lines = [
        "# Balls in bins of matrix mechanisms",
        "",
        f"`python benchmarks/matrix_bins.py`: ε at δ = {DELTA:g} of `acc.matrix_random_allocation` for a banded square",
        "root of prefix sums, C·G + Z with contributions of norm 1, each user in one step of every epoch of their",
        "group, the same in all epochs. *known*: without amplification. *simulated*: an estimate from",
        f"{runs:,} runs with the user and as many without, by the exact likelihood ratio of the worst known user, in",
        "the way of Choquette-Choo et al. (2025); it is no bound, and errs by a few percent. The bounds are certified.",
        "",
        "| bands | groups | bins | epochs | σ | known | lower | simulated | upper | upper/lower | s | s, simulated |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(row(*case, runs=runs) for case in CASES),
        "",
        "With as many groups as bands the steps of a user share no row, and the bounds are those of random allocation.",
        "With one group they are those of cascades above and below, furthest apart where ε is about 1 and many bands",
        "overlap.",
        "",
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
