"""Generated questions to the accountant, with the figures and the bounds of a peer that were recorded of them.

    PYTHONPATH=tests:. python tests/accountant_questions.py

records them again: only where figures are meant to change, and from a tree whose figures are known to be right.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from privcheck import accounting as acc

RECORDED: Final = Path(__file__).parent / "oracle" / "data" / "accountant_figures.json"
EACH: Final = 28  # questions of a kind
_PEER: Final = 1e-4  # mesh of the peer's grid, its default
_MOST_CELLS: Final = 3e6  # of the peer's grid


@dataclass(frozen=True, kw_only=True)
class Question:
    """A composition, and the δ at which its ε is asked for.

    Attributes:
        kind: What the composition is made of.
        events: (name, parameters) of its events.
        delta: δ.
    """

    kind: str
    events: tuple[tuple[str, dict[str, Any]], ...]
    delta: float

    def figure(self) -> acc.Figure:
        """ε at δ."""
        return acc.compose(*(_event(name, given) for name, given in self.events)).epsilon(delta=self.delta)


def questions() -> list[Question]:
    """The questions, the same every time."""
    draw = np.random.default_rng(20_261_129)

    def log(low: float, high: float) -> float:
        return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.6g}")

    def times(most: float) -> dict[str, int]:
        return {"count": round(log(1, most))}

    def ranges() -> tuple[str, dict[str, Any]]:
        return "bounded_range", {"epsilon": log(1e-2, 2), "count": 3}

    def laplaces(most: float) -> tuple[str, dict[str, Any]]:
        count = round(log(1, most))
        return "laplace", {"scale": log(0.3, 30) * math.sqrt(count), "count": count}

    def sampled(relation: str) -> tuple[str, dict[str, Any]]:
        given = {"std": log(0.5, 8), "rate": log(1e-5, 0.5), "count": round(log(1, 1e4)), "relation": relation}
        return "poisson_gaussian", given

    def sampled_laplaces(relation: str) -> tuple[str, dict[str, Any]]:
        given = {"scale": log(0.5, 20), "rate": log(1e-3, 0.5), "count": round(log(1, 300)), "relation": relation}
        return "poisson_laplace", given

    def gaussians() -> tuple[str, dict[str, Any]]:
        return "gaussian", {"std": log(1, 100), "count": 1}

    kinds = {
        "Laplaces": lambda: [laplaces(2000)],
        "few Laplaces": lambda: [laplaces(24)],
        "two scales of Laplaces": lambda: [laplaces(200), laplaces(200)],
        "Laplaces and a Gaussian": lambda: [laplaces(500), gaussians()],
        "sampled Gaussians, add-remove": lambda: [sampled("add-remove")],
        "sampled Gaussians, replace-one": lambda: [sampled("replace-one")],
        "sampled Laplaces, add-remove": lambda: [sampled_laplaces("add-remove")],
        "sampled Laplaces, replace-one": lambda: [sampled_laplaces("replace-one")],
        "sampled Laplaces and a Gaussian": lambda: [sampled_laplaces("add-remove"), gaussians()],
        "responses": lambda: [("randomized_response", {"epsilon": log(1e-5, 2), "categories": 3, **times(1e6)})],
        "bounded ranges": lambda: [("bounded_range", {"epsilon": log(1e-5, 2), **times(1e9)})],
        "a bounded range and Laplaces": lambda: [ranges(), laplaces(50)],
        "discrete Laplaces": lambda: [("discrete_laplace", {"scale": log(0.5, 1e4), **times(1e6)})],
    }  # fmt: skip
    deltas = (1e-3, 1e-5, 1e-6, 1e-8, 1e-12)
    return [
        Question(kind=kind, events=tuple(made()), delta=float(draw.choice(deltas)))
        for kind, made in kinds.items()
        for _ in range(EACH)
    ]


def _event(name: str, given: dict[str, Any]) -> acc.Event:
    if name == "poisson_laplace":
        scale, rest = given["scale"], {key: given[key] for key in ("rate", "count", "relation")}
        replaced = acc.laplace(scale=scale, sensitivity=2) if given["relation"] == "replace-one" else None
        return acc.poisson(event=acc.laplace(scale=scale), replaced=replaced, **rest)
    event: acc.Event = getattr(acc, name)(**given)
    return event


def peer(question: Question, *, pessimistic: bool) -> float | None:
    """A bound of dp-accounting on ε; None where it knows no such event or takes very long."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    made = None
    for name, parameters in question.events:
        given = dict(parameters)
        count, ways = given.pop("count", 1), {"pessimistic_estimate": pessimistic}
        spread = given.get("std", given.get("scale"))
        if name not in {"gaussian", "laplace", "poisson_gaussian", "poisson_laplace"}:
            return None
        if given.get("relation") == "replace-one":
            return None
        if 2 / spread / _PEER * (count if name.endswith("laplace") else 40 * math.sqrt(count)) > _MOST_CELLS:
            return None
        make = pld.from_laplace_mechanism if name.endswith("laplace") else pld.from_gaussian_mechanism
        one = make(spread, sampling_prob=given.get("rate", 1.0), value_discretization_interval=_PEER, **ways)
        one = one.self_compose(count)
        made = one if made is None else made.compose(one)
    assert made is not None
    return float(made.get_epsilon_for_delta(question.delta))


def record() -> None:
    """Write the figures."""
    rows = []
    for question in questions():
        figure = question.figure()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bounds = [peer(question, pessimistic=way) for way in (False, True)]
        lower = figure.lower if figure.bounded_below else None
        rows.append([figure.upper, lower, *bounds])
    RECORDED.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record()
