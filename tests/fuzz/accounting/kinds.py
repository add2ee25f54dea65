"""The registry of event kinds: how parameters are drawn, and what the event is to an oracle.

A new event needs one entry: its name in `privcheck.accounting`, a function that draws its parameters, and one that
gives the laws of its loss, from the definition and with nothing of privcheck. "remove" is the pair (with the user,
without), "add" the pair the other way round; a composition goes one way as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from . import nestings, truths
from .dense import Gauss, Laplace
from .normal import Long
from .parts import RELATION, Part, logs, nice
from .truths import DIRECTIONS, Composition, Parameters, Truth, both

SPREADS: Final = {  # kinds whose cost falls as one parameter grows
    "gaussian": "std",
    "laplace": "scale",
    "discrete_laplace": "scale",
    "poisson_gaussian": "std",
    "symmetric_gaussian": "variance",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """An event kind."""

    draw: Callable[[np.random.Generator], dict[str, Any]]
    truth: Callable[[Parameters, int], Truth]


def spread(rng: np.random.Generator, low: float, high: float) -> float:
    """Returns a spread: between 10^low and 10^high, one time in twelve beyond."""
    return logs(rng, low, high) if rng.random() > 1 / 12 else logs(rng, low - 3, high + 5)


def moved(rng: np.random.Generator) -> dict[str, Any]:
    """Returns a sensitivity, or leaves it at 1."""
    return {"sensitivity": logs(rng, -1, 1)} if rng.random() < 0.3 else {}


def _tree(parameters: Parameters, count: int) -> Truth:
    """A user is in all nodes above the own leaves; one who is sampled is so once, for all of them."""
    node, p = parameters["node"], parameters.get("participations", 1)
    patterns = truths.tree_moves(parameters["leaves"], p, parameters.get("separation", 1))
    if node.kind == "poisson_gaussian":
        nodes = max(len(moves) for moves in patterns)
        return truths.sampled(truths.mu(node.parameters, "std") * np.sqrt(Long(nodes)), node.parameters["rate"], count)
    if node.kind == "gaussian":
        squares = max(sum(m * m for m in moves) for moves in patterns)
        return both((Gauss(truths.mu(node.parameters, "std") * np.sqrt(Long(squares))), count))
    if node.kind == "laplace":
        a = truths.mu(node.parameters, "scale")
        chosen = sorted(patterns, key=lambda moves: (sum(moves), sum(m * m for m in moves)))[-4:]
        ways: list[Composition] = [
            [(Laplace(a * m), count * moves.count(m)) for m in sorted(set(moves))] for moves in chosen
        ]
        note = "" if p == 1 else "least moves above all patterns"
        return Truth(ways=dict.fromkeys(DIRECTIONS, ways), documented=note)
    nodes = max(len(moves) for moves in patterns)
    return KINDS[node.kind].truth(node.parameters, count * nodes)


def _draw_tree(rng: np.random.Generator) -> dict[str, Any]:
    kind = str(
        rng.choice(
            ["gaussian", "laplace", "poisson_gaussian", "pure", "discrete_laplace"], p=[0.35, 0.3, 0.15, 0.1, 0.1]
        )
    )
    node = Part(kind, KINDS[kind].draw(rng))
    leaves = int(rng.integers(1, 13))
    found: dict[str, Any] = {"node": node, "leaves": leaves, "participations": 1}
    if kind in ("gaussian", "laplace") and leaves > 2 and rng.random() < 0.5:
        separation = int(rng.integers(1, 4))
        most = (leaves - 1) // separation + 1
        found |= {"participations": int(rng.integers(1, min(4, most) + 1)), "separation": separation}
    return found


def _draw_mixture(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 4))
    chances = [nice(float(x)) for x in rng.dirichlet(np.ones(n)) * 0.9]
    sizes = sorted({logs(rng, -0.7, 0.5) for _ in range(n)} | {0.0})
    return {
        "std": logs(rng, -0.3, 1),
        "sensitivities": sizes,
        "probabilities": [1 - math.fsum(chances[: len(sizes) - 1]), *chances[: len(sizes) - 1]],
        **RELATION,
    }


def _draw_matrix(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(2, 6))
    encoder = np.tril(rng.uniform(0, 1, (n, n)).round(2)) + np.eye(n)
    std = logs(rng, 0, 1.5)
    found: dict[str, Any] = {"encoder": encoder.tolist(), "std": std, "sensitivity": 1, "participations": 1}
    return found | ({"participations": 2, "separation": int(rng.integers(1, n))} if rng.random() < 0.6 else {})


def _draw_masses(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(2, 6))
    p, q = (rng.dirichlet(np.full(n, 3.0)).round(3) for _ in range(2))
    for law in (p, q):
        law[int(np.argmax(law))] += 1 - law.sum()
    return {"p": [round(float(x), 3) for x in p], "q": [round(float(x), 3) for x in q]}


def _draw_allocated(rng: np.random.Generator) -> dict[str, Any]:
    rounds = int(logs(rng, 0.4, 2.5))
    participations = 1 if rng.random() < 0.7 else int(rng.integers(1, rounds + 1))
    of = Part("pure", {"epsilon": logs(rng, -1.5, 0.7)})
    return {"event": of, "rounds": rounds, "participations": participations, **RELATION}


KINDS: Final[dict[str, Kind]] = {
    "gaussian": Kind(draw=lambda r: {"std": spread(r, -0.7, 2.5), **moved(r)}, truth=truths.gaussian),
    "laplace": Kind(draw=lambda r: {"scale": spread(r, -0.7, 2.5), **moved(r)}, truth=truths.laplace),
    "symmetric_gaussian": Kind(
        draw=lambda r: {
            "variance": logs(r, -1, 4),
            "kind": str(r.choice(["goe", "upper"])),
            "sensitivity": 1,
            **moved(r),
        },
        truth=truths.symmetric,
    ),
    "discrete_gaussian": Kind(
        draw=lambda r: {
            "std": logs(r, -0.4, 2),
            **({"sensitivity": int(r.integers(1, 5))} if r.random() < 0.4 else moved(r) if r.random() < 0.3 else {}),
        },
        truth=truths.discrete_gaussian,
    ),
    "discrete_laplace": Kind(
        draw=lambda r: {"scale": logs(r, -0.7, 2.5), "sensitivity": int(r.choice([1, 1, 2, 3, 7]))},
        truth=truths.discrete_laplace,
    ),
    "pure": Kind(draw=lambda r: {"epsilon": spread(r, -3, 0.7)}, truth=truths.pure),
    "approximate": Kind(
        draw=lambda r: {"epsilon": logs(r, -3, 0.7), "delta": logs(r, -12, -2)}, truth=truths.approximate
    ),
    "zcdp": Kind(
        draw=lambda r: {"rho": spread(r, -4, 0.5), **({"xi": logs(r, -3, 0)} if r.random() < 0.2 else {})},
        truth=truths.zcdp,
    ),
    "randomized_response": Kind(
        draw=lambda r: {"epsilon": logs(r, -3, 0.7), "categories": int(r.choice([2, 3, 5, 40]))}, truth=truths.responses
    ),
    "poisson_gaussian": Kind(
        draw=lambda r: {"std": spread(r, -0.6, 1), "rate": logs(r, -4, 0), **RELATION, **moved(r)},
        truth=truths.poisson_gaussian,
    ),
    "shuffled_bits": Kind(
        draw=lambda r: {
            "users": int(logs(r, 0.5, 2.7)),
            "probability": nice(r.uniform(0.02, 0.98)),
            **({"moved": str(r.choice(["up", "down"]))} if r.random() < 0.6 else {}),
        },
        truth=truths.bits,
    ),
    "shuffled": Kind(
        draw=lambda r: {"local_epsilon": logs(r, -1.5, 0.8), "users": int(logs(r, 0, 2)), **RELATION},
        truth=truths.shuffled,
    ),
    "shuffled_randomized_response": Kind(
        draw=lambda r: {"epsilon": logs(r, -1.5, 0.8), "users": int(logs(r, 0, 1.5)), **RELATION},
        truth=truths.shuffled_response,
    ),
    "tree": Kind(draw=_draw_tree, truth=_tree),
    "allocated": Kind(draw=_draw_allocated, truth=truths.allocated),
    "bounded_range": Kind(
        draw=lambda r: {"epsilon": logs(r, -2.5, 0.8)}, truth=lambda p, k: truths.of_range(Long(p["epsilon"]), k)
    ),
    "exponential_mechanism": Kind(
        draw=lambda r: {"epsilon": logs(r, -2.5, 0.8), "monotone": bool(r.random() < 0.5)}, truth=truths.selection
    ),
    "permute_and_flip": Kind(
        draw=lambda r: {"epsilon": logs(r, -2.5, 0.8), "monotone": bool(r.random() < 0.5)}, truth=truths.flip
    ),
    "noisy_max": Kind(
        draw=lambda r: {
            "noise": str(r.choice(["laplace", "exponential", "gumbel"])),
            "scale": logs(r, -0.5, 2.5),
            "monotone": bool(r.random() < 0.5),
            **moved(r),
        },
        truth=truths.noisy_max,
    ),
    "above_threshold": Kind(
        draw=lambda r: {
            "threshold_scale": logs(r, 0, 2.5),
            "query_scale": logs(r, 0, 2.5),
            "positives": int(r.integers(1, 6)),
            "monotone": bool(r.random() < 0.5),
        },
        truth=truths.above_threshold,
    ),
    "laplace_histogram": Kind(
        draw=lambda r: {
            "scale": logs(r, -0.3, 1),
            "threshold": nice(r.uniform(30, 300)),
            "contribution": 1,
            "keys": int(r.integers(1, 4)),
        },
        truth=truths.histogram,
    ),
    "gaussian_histogram": Kind(
        draw=lambda r: {
            "std": logs(r, -0.3, 1),
            "threshold": nice(r.uniform(30, 100)),
            "contribution": 1,
            "keys": int(r.integers(1, 4)),
        },
        truth=truths.histogram,
    ),
    "mixture_of_gaussians": Kind(draw=_draw_mixture, truth=truths.mixture),
    "matrix_gaussian": Kind(draw=_draw_matrix, truth=truths.matrix),
    "privacy_profile": Kind(draw=lambda r: {"mu": logs(r, -1.5, 0.7)}, truth=truths.like_gaussian),
    "trade_off": Kind(draw=lambda r: {"mu": logs(r, -1.5, 0.7)}, truth=truths.like_gaussian),
    "renyi_curve": Kind(draw=lambda r: {"mu": logs(r, -1.5, 0.7)}, truth=truths.like_gaussian),
    "loss_distribution": Kind(draw=_draw_masses, truth=truths.two_masses),
    "nested": Kind(draw=nestings.draw, truth=nestings.truth),
}
