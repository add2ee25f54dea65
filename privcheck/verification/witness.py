"""Lower bounds: two concrete neighbouring datasets and the exact loss between the two output distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privcheck.accounting import gdp_epsilon
from privcheck.declaration import Declaration, Release
from privcheck.errors import ParameterError
from privcheck.guarantees import ApproxDP, PureDP
from privcheck.relations import LARGEST, LONGEST, Pair, extreme_pairs
from privcheck.statistics import SparseDifference
from privcheck.symbols import exact, to_float
from privcheck.trajectories import Trajectories


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witness:
    """Two neighbouring datasets, as the one user in which they differ, and how far they can be told apart.

    Attributes:
        pair: That user's trajectory in D and in D′; None where the user is absent.
        loss: The exact loss in the claim's own unit (ρ of zCDP, ε otherwise), rounded down.
        changes: Per release ‖f(D) − f(D′)‖₁ and ‖f(D) − f(D′)‖₂².
        words: The pair in words.
    """

    pair: Pair
    loss: float
    changes: Mapping[str, tuple[float, float]]
    words: str


def find_witness(declaration: Declaration, values: Mapping[str, Fraction]) -> Witness | None:
    """Returns the worst of the extreme pairs for all releases together, or None where no user can move anything.

    The loss is that of one concrete pair (see `pair_loss`), therefore a lower bound on the declaration's.

    Args:
        declaration: What is attacked.
        values: Its parameters; "H", "S" and "A" size the trajectories.

    Raises:
        ParameterError: The declaration has no H, S or A.
    """
    missing = [name for name in ("H", "S", "A") if name not in values]
    if missing:
        raise ParameterError(f"{declaration.name} has no {', '.join(missing)}: no trajectories to search for a witness")
    sizes = (int(values["H"]), int(values["S"]), int(values["A"]))
    if sizes[0] > LONGEST or max(sizes) > LARGEST:
        return None  # the upper bound needs no trajectories; without a witness nothing is refuted
    best: Witness | None = None
    for pair in extreme_pairs(declaration.relation, *sizes):
        differences = {r.name: r.statistic.difference(pair) for r in declaration.releases}
        loss = pair_loss(declaration, differences, values)
        if best is None or loss > best.loss:
            changes = {name: (d.l1, d.l2_squared) for name, d in differences.items()}
            best = Witness(pair=pair, loss=loss, changes=changes, words=describe(pair))
    return best if best is not None and best.loss > 0 else None


def pair_loss(
    declaration: Declaration, differences: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> float:
    """Returns the loss of one pair in the claim's unit, exact but for rounding down; 0 where no formula is known.

    * ρ: ‖Δ‖₂²/2σ² for Gaussian releases, Σ g(|Δ|/b) with g(x) = x + e^(−x) − 1 for Laplace ones, which is their
      Kullback–Leibler divergence and therefore at most ρ.
    * ε of a pure claim: Σ|Δ|/b, attained by the outputs beyond both values; ∞ as soon as Gaussian noise hides a change.
    * ε at δ: the Gaussian curve where every release is Gaussian.
    """
    claim = declaration.claim.guarantee
    terms = [_term(r, differences[r.name], values, pure=isinstance(claim, PureDP)) for r in declaration.releases]
    if any(term is None for term in terms):
        return math.inf
    loss = sum((t for t in terms if t is not None), Fraction(0))
    if not isinstance(claim, ApproxDP):
        return to_float(loss, rounding="down")
    if any(release.mechanism.law != "gaussian" for release in declaration.releases):
        return 0.0
    mu = math.nextafter(math.sqrt(to_float(2 * loss, rounding="down")), 0.0)
    return gdp_epsilon(mu, claim.delta.number(values, rounding="up"), rounding="down")


def _term(
    release: Release, difference: SparseDifference, values: Mapping[str, Fraction], *, pure: bool
) -> Fraction | None:
    """Returns one release's part of the loss, rounded down; None where it is unbounded."""
    moves, counts = np.unique(np.abs(difference.change), return_counts=True)
    changes = [(exact_change(float(c)), int(k)) for c, k in zip(moves, counts, strict=True)]
    spread = release.mechanism.spread.rational(values)
    if spread is None:  # an irrational spread: the next float above it loses less than the exact one
        spread = Fraction(release.mechanism.spread.number(values, rounding="up"))
    if release.mechanism.law == "gaussian":
        return None if pure and changes else sum((k * c * c for c, k in changes), Fraction(0)) / (2 * spread)
    if pure:
        return sum((k * c for c, k in changes), Fraction(0)) / spread
    steps = [(to_float(c / spread, rounding="down"), k) for c, k in changes]
    return sum((k * Fraction(_divergence(x)) for x, k in steps), Fraction(0))


def _divergence(x: float) -> float:
    """Returns x + e^(−x) − 1 ≥ 0, rounded down; its series where the terms cancel."""
    if x < 1e-3:
        return max(0.0, x * x / 2 - x**3 / 6) * (1 - 1e-14)
    return (x + math.expm1(-x)) * (1 - 1e-12)


def exact_change(change: float) -> Fraction:
    """Returns the change as a fraction; floats that are sums of 0/1 weights are exact."""
    return Fraction(float(change)) if not float(change).is_integer() else exact(int(change))


def describe(pair: Pair) -> str:
    """Returns the one user's two trajectories in words, run-length coded."""
    first, second = (_user(user) for user in pair)
    return f"in D the user has {first}; in D′ {second}; everybody else is the same"


def _user(user: Trajectories | None) -> str:
    if user is None:
        return "no trajectory"
    cells = list(zip(user.states[0, :-1].tolist(), user.actions[0].tolist(), user.rewards[0].tolist(), strict=True))
    parts, start = [], 0
    for step in range(1, len(cells) + 1):
        if step == len(cells) or cells[step] != cells[start]:
            steps = f"step {step}" if step == start + 1 else f"steps {start + 1}–{step}"
            state, action, reward = cells[start]
            parts.append(f"(state {state}, action {action}, reward {reward:g}) at {steps}")
            start = step
    shown = parts if len(parts) <= 4 else [*parts[:3], "…"]
    return ", ".join(shown) + f", then state {user.states[0, -1]}"
