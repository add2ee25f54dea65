"""Random nested expressions in the parameters: minima, maxima, roots, logarithms, whole parts and pieces.

One formula is evaluated on numbers here, and on privcheck's symbols by `building`: its functions come with the names.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from declarations.specs import Formula, Part


def _piece(at: Any, most: int, then: Any, other: Any) -> Any:
    return then if at <= most else other


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": max, "min": min, "sqrt": math.sqrt, "log": math.log, "ceil": math.ceil,
    "floor": math.floor, "piece": _piece,
}  # fmt: skip
_NUMBERS = tuple(Fraction(x) for x in ("1/3", "1/2", "1", "2", "5/2", "7"))
_NAMES = ("H", "K", "rho", "epsilon")


def draw_formula(rng: random.Random, depth: int) -> Formula:
    """Returns a formula that is above 0 at all values of the parameters."""
    if depth == 0 or rng.random() < 0.15:
        number = rng.choice(_NUMBERS)
        if rng.random() < 0.4:
            return Formula(f"{number}", lambda v: number * v["H"] / v["H"])
        name = rng.choice(_NAMES)
        return Formula(f"{number}·{name}", lambda v: number * v[name])
    a, b = draw_formula(rng, depth - 1), draw_formula(rng, depth - 1)
    made: dict[str, Callable[[Any], Any]] = {
        f"max({a}, {b})": lambda v: v["max"](a(v), b(v)),
        f"min({a}, {b})": lambda v: v["min"](a(v), b(v)),
        f"({a} + {b})": lambda v: a(v) + b(v),
        f"({a})·({b})": lambda v: a(v) * b(v),
        f"({a})/({b})": lambda v: a(v) / b(v),
        f"sqrt({a})": lambda v: v["sqrt"](a(v)),
        f"log(1 + {a})": lambda v: v["log"](1 + a(v)),
        f"(K ≤ 2: {a}; else {b})": lambda v: v["piece"](v["K"], 2, a(v), b(v)),
        "ceil(K/2)": lambda v: v["ceil"](Fraction(1, 2) * v["K"]),
        "(1 + floor(K/3))": lambda v: 1 + v["floor"](Fraction(1, 3) * v["K"]),
    }
    words = rng.choice(sorted(made))
    return Formula(words, made[words])


def of_the_noise(parts: tuple[Part, ...]) -> Formula:
    """Returns Σ 1/spread over the releases: what a true claim for all parameters may be a multiple of."""
    words = " + ".join(f"1/({part.spread})" for part in parts)
    return Formula(f"({words})", lambda v: sum(1 / part.spread(v) for part in parts[1:]) + 1 / parts[0].spread(v))
