"""Lower bounds: two concrete neighbouring datasets and the exact loss between the two output distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privcheck.accounting import gdp_epsilon
from privcheck.declaration import Declaration, Release
from privcheck.errors import ParameterError
from privcheck.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from privcheck.relations import Pair, extreme_pairs
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

    The loss is exact for its pair: a sum over all releases of ‖Δ‖₂²/2σ² for Gaussian noise under a zCDP claim, Σ|Δ|/b
    for Laplace noise under a pure claim (attained by the outputs beyond both values), the Gaussian curve under an
    (ε, δ) claim. Therefore it is a lower bound on the declaration's loss.

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
    """Returns the exact loss of one pair in the claim's unit, rounded down; 0 where this file has no exact formula."""
    claim = declaration.claim.guarantee
    terms = [_exact_term(r, differences[r.name], values, claim) for r in declaration.releases]
    if None in terms:
        return 0.0
    loss = sum((t for t in terms if t is not None), Fraction(0))
    if isinstance(claim, ApproxDP):
        mu = np.sqrt(to_float(2 * loss, rounding="down")) * (1 - 1e-15)
        return gdp_epsilon(float(mu), claim.delta.number(values, rounding="up"), rounding="down")
    return to_float(loss, rounding="down")


def _exact_term(
    release: Release, difference: SparseDifference, values: Mapping[str, Fraction], claim: Guarantee
) -> Fraction | None:
    law = release.mechanism.law
    changes = [exact_change(c) for c in difference.change]
    spread = release.mechanism.spread.rational(values)
    if spread is None:  # an irrational spread: the next float above it loses less than the exact one
        spread = Fraction(release.mechanism.spread.number(values, rounding="up"))
    if law == "gaussian" and isinstance(claim, (ZCDP, ApproxDP)):
        return sum((c * c for c in changes), Fraction(0)) / (2 * spread)
    if law == "laplace" and isinstance(claim, PureDP):
        return sum((abs(c) for c in changes), Fraction(0)) / spread
    return None


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
