"""Training loops of jax-privacy and Opacus, audited by canary gradients: `benchmarks/corpus_training.md`.

    make corpus-training     installs the pinned libraries into .venv-corpus-training and runs this

The model is linear in its parameters and the loss of an example is its product with them, so that the gradient of an
example is the example: rows of `gradient_canaries` go in as data, and the library clips, sums, adds noise and steps.
The broken kin change one line of the user's code, as people do. A verdict that is not the expected one ends the script
with 1, and so does an RDP accountant of Opacus that is below ours.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax_privacy.clipping import clipped_grad
from jax_privacy.noise_addition import gaussian_privatizer
from numpy.typing import NDArray
from opacus.accountants import PRVAccountant, RDPAccountant
from opacus.accountants.accountant import IAccountant
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer

from privcheck import accounting as acc
from privcheck import audit_training, gradient_canaries

warnings.simplefilter("ignore")  # of the libraries

D, CANARIES, STEPS, RUNS = 600, 500, 10, 20
STD, CLIP, DELTA = 3.0, 1.0, 1e-5
ROWS = gradient_canaries(CANARIES, D, norm=50.0)
DECLARED = acc.gaussian(std=STD, sensitivity=CLIP, count=STEPS)
HEADING = ("library", "training", "seen", "verdict", "μ at least", "of at most", "could be shown", "seconds")
Array = NDArray[np.float64]


def jax_loop(chosen: Array, rng: np.random.Generator, *, last: bool, std: float = STD, by_batch: bool = False) -> Array:
    """jax-privacy: clipped sums, Gaussian noise, ten full batches."""
    # as many rows for any number of canaries: what is not there is 0, so that one compilation serves all runs
    batch = jnp.zeros((CANARIES, D)).at[: len(chosen)].set(chosen)
    gradient = clipped_grad(lambda parameters, x: jnp.sum(x @ parameters), l2_clip_norm=CLIP)
    if by_batch:
        gradient = jax.grad(lambda parameters, x: jnp.sum(x @ parameters))
    noise = gaussian_privatizer(stddev=std, prng_key=int(rng.integers(2**31)))
    parameters, shown = jnp.zeros(D), []
    state = noise.init(parameters)
    for _ in range(STEPS):
        total = gradient(parameters, batch)
        if by_batch:  # the mean is clipped, and scaled up to the sum again
            total = total / max(1.0, float(jnp.linalg.norm(total)) / len(chosen) / CLIP)
        noisy, state = noise.update(total, state)
        shown.append(np.asarray(noisy, dtype=np.float64))
        parameters = parameters + 0.1 * noisy
    return np.asarray(parameters, dtype=np.float64) if last else np.array(shown)


def opacus_loop(chosen: Array, rng: np.random.Generator, *, last: bool, std: float = STD) -> Array:
    """Opacus: per-sample gradients of a linear layer, DPOptimizer, ten full batches."""
    torch.manual_seed(int(rng.integers(2**62)))
    layer = torch.nn.Linear(D, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(layer.weight)
    model = GradSampleModule(layer, loss_reduction="sum")
    optimiser = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=std,
        max_grad_norm=CLIP,
        expected_batch_size=CANARIES,
        loss_reduction="sum",
        generator=torch.Generator().manual_seed(int(rng.integers(2**62))),
    )
    before, shown = layer.weight.detach().numpy().copy(), []
    for _ in range(STEPS):
        optimiser.zero_grad()
        model(torch.from_numpy(chosen)).sum().backward()
        optimiser.step()
        after = layer.weight.detach().numpy().copy()
        shown.append((before - after)[0] * 10)
        before = after
    return -before[0] if last else np.array(shown)


CASES: tuple[tuple[str, str, str, Callable[..., Any], bool], ...] = (
    ("jax-privacy", "clipped_grad, gaussian_privatizer", "every step", partial(jax_loop, last=False), False),
    ("jax-privacy", "the same", "last parameters", partial(jax_loop, last=True), False),
    ("jax-privacy", "a third of the noise", "every step", partial(jax_loop, last=False, std=STD / 3), True),
    ("jax-privacy", "jax.grad, the batch is clipped", "every step", partial(jax_loop, last=False, by_batch=True), True),
    ("opacus", "GradSampleModule, DPOptimizer", "every step", partial(opacus_loop, last=False), False),
    ("opacus", "the same", "last parameters", partial(opacus_loop, last=True), False),
    ("opacus", "a third of the noise", "every step", partial(opacus_loop, last=False, std=STD / 3), True),
)


class CertifiedAccountant(IAccountant):
    """Accountant for Opacus' PrivacyEngine: ε from above, for Poisson batches and one user added or removed."""

    def __init__(self) -> None:
        super().__init__()

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Note a step; equal steps are joined."""
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """Upper bound on ε of all steps."""
        steps = [
            acc.poisson_gaussian(std=std, rate=rate, count=count, relation="add-remove")
            for std, rate, count in self.history
        ]
        return float(acc.compose(steps).epsilon(delta=delta).upper)

    def __len__(self) -> int:
        return sum(count for *_, count in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Name of the accountant, for Opacus' checkpoints."""
        return "privcheck"


def accountants() -> tuple[list[tuple[str, ...]], bool]:
    """ε of a training by Opacus' accountants and by ours."""
    rows, right = [("noise multiplier, rate, steps", "privcheck", "PRV", "RDP")], True
    for std, rate, steps in ((1.0, 0.01, 1000), (0.8, 0.001, 10_000), (2.0, 0.1, 500), (4.0, 0.5, 100)):
        found = []
        for make in (CertifiedAccountant, PRVAccountant, RDPAccountant):
            made = make()
            if isinstance(made, CertifiedAccountant):
                for _ in range(steps):
                    made.step(noise_multiplier=std, sample_rate=rate)
                assert len(made) == steps
            else:
                made.history = [(std, rate, steps)]
            found.append(float(made.get_epsilon(delta=DELTA)))
        rows.append((f"{std:g}, {rate:g}, {steps}", *(f"{one:.4f}" for one in found)))
        right = right and found[0] <= found[2] * (1 + 1e-9)
    return rows, right


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows as Markdown, the first as heading."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"| {' | '.join('---' for _ in rows[0])} |", *lines[1:]])


def main() -> None:
    """Audit every training, and write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--write", action="store_true")
    given = asked.parse_args()
    rows, right = [HEADING], True
    for library, what, seen, train, broken in CASES:
        began = time.perf_counter()
        found = audit_training(train, DECLARED, canaries=ROWS, delta=DELTA, runs=RUNS, seed=given.seed)
        took = time.perf_counter() - began
        right = right and (found.verdict == "violation") == broken
        rows.append((
            library, what, seen, found.verdict, f"{found.lower:.3g}", f"{found.claimed:.4g}", f"{found.reachable:.3g}",
            f"{took:.1f}",
        ))  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    prices, above = accountants()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax-privacy", "opacus", "torch"))
    text = f"""# Training loops of libraries

`make corpus-training`: {versions}. {CANARIES} canary gradients of
norm 50, clipped to 1, {STEPS} full batches, noise of std {STD:g}, {RUNS} runs, 99 %. Declared: {STEPS} Gaussian steps,
ε = {found.evidence["charged_epsilon"]:.3f} at δ = 10⁻⁵.

{table(rows)}

## What Opacus charges

An `IAccountant` whose ε is ours (`CertifiedAccountant` in the script), beside Opacus' own, at δ = 10⁻⁵. RDP is never
below it; PRV is an upper bound by its own error estimate.

{table(prices)}
"""
    print(text)
    if given.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    sys.exit(0 if right and above else 1)


if __name__ == "__main__":
    main()
