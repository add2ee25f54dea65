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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from jax_privacy.batch_selection import PartitionType
from jax_privacy.clipping import clipped_grad
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig
from jax_privacy.noise_addition import gaussian_privatizer
from numpy.typing import NDArray
from opacus import PrivacyEngine
from opacus.accountants import PRVAccountant, RDPAccountant, register_accountant
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer

from privcheck import accounting as acc
from privcheck import audit_training, gradient_canaries
from privcheck.accounting import Curve, OpacusAccountant

warnings.simplefilter("ignore")  # of the libraries

D, CANARIES, STEPS, RUNS = 600, 500, 10, 20
STD, CLIP, DELTA, PLAN_STD = 3.0, 1.0, 1e-5, 0.8
ROWS = gradient_canaries(CANARIES, D, norm=50.0)
DECLARED = acc.gaussian(std=STD, sensitivity=CLIP, count=STEPS)
HEADING = ("library", "training", "seen", "verdict", "at least", "of at most", "could be shown", "seconds")
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


def plan_loop(chosen: Array, rng: np.random.Generator, *, rate: float) -> Array:
    """jax-privacy: an execution plan of DP-SGD, with its own batches, clipping and noise; every noisy sum."""
    made = execution_plan(rate, seed=int(rng.integers(2**31)))
    gradient = made.clipped_grad(lambda parameters, x: jnp.sum(x @ parameters))
    parameters, shown = jnp.zeros(D), []
    state = made.noise_addition_transform.init(parameters)
    for batch in made.batch_selection_strategy.batch_iterator(len(chosen), int(rng.integers(2**31))):
        rows = np.zeros((CANARIES, D))  # as many for any batch, as above
        rows[: len(batch)] = chosen[batch]
        noisy, state = made.noise_addition_transform.update(gradient(parameters, jnp.asarray(rows)), state)
        shown.append(np.asarray(noisy, dtype=np.float64))
        parameters = parameters + 0.1 * noisy
    return np.array(shown)


def execution_plan(rate: float, *, seed: int = 0) -> Any:
    """Plan of ten steps on Poisson batches; its `dp_event` is what jax-privacy says that it costs."""
    return BandMFExecutionPlanConfig(
        iterations=STEPS,
        strategy=np.ones(1),
        epsilon=None,
        delta=None,
        noise_multiplier=PLAN_STD,
        sampling_prob=rate,
        partition_type=PartitionType.INDEPENDENT,
        accountant=PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE),
        noise_seed=seed,
    ).plan


def plans() -> Iterator[tuple[str, Callable[..., Any], Curve, bool]]:
    """Trainings by a plan, with the declaration that is read from a plan's event, and whether a violation is on record.

    A rate of .25 that is declared as .02 is false as well, but 20 runs do not show it.
    """
    for rate, told, found in ((0.25, 0.25, False), (0.5, 0.5, False), (0.5, 0.02, True), (0.25, 0.02, False)):
        declared = acc.from_dp_event(execution_plan(told).dp_event, relation="add-remove")
        yield f"DPExecutionPlan, rate {rate:g}, declared {told:g}", partial(plan_loop, rate=rate), declared, found


def accountants() -> tuple[list[tuple[str, ...]], bool]:
    """ε of a training by Opacus' accountants and by ours."""
    rows, right = [("noise multiplier, rate, steps", "privcheck", "PRV", "RDP")], True
    for std, rate, steps in ((1.0, 0.01, 1000), (0.8, 0.001, 10_000), (2.0, 0.1, 500), (4.0, 0.5, 100)):
        found = []
        for make in (OpacusAccountant, PRVAccountant, RDPAccountant):
            made = make()
            made.history = [(std, rate, steps)]
            found.append(float(made.get_epsilon(delta=DELTA)))
        rows.append((f"{std:g}, {rate:g}, {steps}", *(f"{one:.4f}" for one in found)))
        right = right and found[0] <= found[2] * (1 + 1e-9)
    return rows, right


def engines() -> tuple[list[tuple[str, ...]], bool]:
    """ε of two epochs of a `PrivacyEngine` on 200 examples, by ours and by its own accountants."""
    register_accountant(OpacusAccountant.mechanism(), OpacusAccountant, force=True)
    rows, right = [("training", "privcheck", "PRV", "RDP")], True
    for words, batches in (("20 steps at rate .1", 1), ("5 steps, four batches accumulated, permitted by hand", 4)):
        found = []
        for name in (OpacusAccountant.mechanism(), "prv", "rdp"):
            torch.manual_seed(0)
            layer, data = torch.nn.Linear(5, 1), torch.utils.data.TensorDataset(torch.randn(200, 5))
            engine = PrivacyEngine(accountant=name)
            model, optimiser, loader = engine.make_private(
                module=layer, optimizer=torch.optim.SGD(layer.parameters(), lr=0.1), max_grad_norm=CLIP,
                data_loader=torch.utils.data.DataLoader(data, batch_size=20), noise_multiplier=1.0,
            )  # fmt: skip
            if batches > 1:
                model.allow_grad_accumulation()
            for number, (x,) in enumerate([one for _ in range(2) for one in loader], start=1):
                model(x).sum().backward()
                if number % batches == 0:
                    optimiser.step()
                    optimiser.zero_grad()
            found.append(float(engine.get_epsilon(DELTA)))
        rows.append((words, *(f"{one:.4f}" for one in found)))
        right = right and (batches > 1 or found[0] <= found[2])
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
    every: list[tuple[str, str, str, Callable[..., Any], bool, Any]] = [(*case, DECLARED) for case in CASES]
    every += [("jax-privacy", what, "every step", train, bad, declared) for what, train, declared, bad in plans()]
    for library, what, seen, train, broken, declared in every:
        began = time.perf_counter()
        found = audit_training(train, declared, canaries=ROWS, delta=DELTA, runs=RUNS, seed=given.seed)
        took = time.perf_counter() - began
        right = right and (found.verdict == "violation") == broken
        letter = {"mu": "μ", "epsilon": "ε"}[found.unit]
        rows.append((
            library, what, seen, found.verdict, f"{letter} {found.lower:.3g}", f"{found.claimed:.4g}",
            f"{found.reachable:.3g}", f"{took:.1f}",
        ))  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    (prices, above), (trained, charged) = accountants(), engines()
    of_steps = acc.compose(DECLARED).epsilon(delta=DELTA).upper
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax-privacy", "opacus", "torch"))
    text = f"""# Training loops of libraries

`make corpus-training`: {versions}. {CANARIES} canary gradients of
norm 50, clipped to 1, {STEPS} full batches, noise of std {STD:g}, {RUNS} runs, 99 %. Declared: {STEPS} Gaussian steps,
ε = {of_steps:.3f} at δ = 10⁻⁵. The last rows are execution plans of jax-privacy with Poisson batches and noise
multiplier {PLAN_STD:g}: declared is the `dp_event` of a plan, read by `from_dp_event`. In the last two it is that of
a plan with a smaller rate, which is false; the last is not found: these runs show too little of the claim (ε, δ).

{table(rows)}

## What Opacus charges

`OpacusAccountant`, whose ε is ours, beside Opacus' own accountants, at δ = 10⁻⁵. RDP is never below it; PRV is an upper
bound by its own error estimate.

{table(prices)}

In a `PrivacyEngine`, noise multiplier 1, batches of 20 of 200 examples. Opacus refuses to accumulate Poisson batches
unless `allow_grad_accumulation()` permits it. Its accountants are then told one sample at four times the rate; four
independent samples, in several of which an example may be, cost what the first column says.

{table(trained)}
"""
    print(text)
    if given.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    sys.exit(0 if right and above and charged else 1)


if __name__ == "__main__":
    main()
