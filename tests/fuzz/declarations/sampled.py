"""Systems whose releases see one Poisson sample of the users, or a sample each: drawn, changed, and what they cost.

The oracle mixes laws written down cell by cell, as `declarations.truth` does; it imports nothing of privcheck. Users
are added, removed or zeroed out: the sampled pair is then (1 − q)Q + qP against Q, both ways round.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from declarations.specs import NEAR, Formula, Part, Spec, nearly, times

_RATES = tuple(Fraction(x) for x in ("1/20", "1/10", "1/4", "1/2", "9/10"))
_SPREADS = tuple(Fraction(x) for x in ("1/2", "1", "2", "4"))


def draw_sampled(seed: int, cost: Callable[[Spec], float]) -> Spec:
    """Returns a well-formed system of one to three sampled releases, claimed at 2 to 5 % from what it costs.

    Args:
        seed: Which.
        cost: The oracle's cost in the claim's unit.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    claim = rng.choice(("pure", "approx", "approx", "zcdp"))
    laws = {"pure": ("laplace",), "zcdp": ("gaussian",), "approx": ("gaussian", "laplace")}[claim]
    parts = tuple(
        Part(
            name=f"r{i}",
            statistic=rng.choice(("visits", "rewards")),
            law=rng.choice(laws),
            spread=times(rng.choice(_SPREADS), "1", lambda v: v["H"] / v["H"]),
            schedule="sampled",
        )
        for i in range(rng.choice((1, 2, 2, 3)))
    )
    spec = Spec(
        seed=seed,
        relation=rng.choice(("add", "zero")),
        initial="any",
        model="central",
        parts=parts,
        claim=claim,
        claimed=Formula("1", lambda _: Fraction(1)),
        delta=rng.choice((Fraction(1, 100), Fraction(1, 10**4))),
        values={"H": rng.choice((1, 1, 2)), "S": 1, "A": 2, "K": 1, "rho": 1, "epsilon": 1},
        sample=rng.choice(("shared", "shared", "shared", "fresh")),
        rate=rng.choice(_RATES),
        rounds=rng.choice((1, 1, 2, 5)),
    )
    return nearly(spec, cost(spec), rng.choice(NEAR))


def mutants_of_sampled(spec: Spec, rng: random.Random) -> Iterator[Spec]:
    """Yields the system with one field changed: into nonsense, or into another system with a truth of its own."""

    def being(why: str, meaningless: str = "", **changes: Any) -> Spec:
        return replace(spec, mutation=why, meaningless=meaningless, **changes)

    several = len(spec.parts) > 1
    for sample in sorted({"shared", "fresh"} - {spec.sample}):
        yield being(f"sample {sample}", sample=sample)
    yield being(
        "nobody says whose sample", "alike samples of which nothing is said" if several else "", sample="unsaid"
    )
    for sample in ("both", "twice"):
        yield being(f"sample {sample}", "a sample that is shared and is not" if several else "", sample=sample)
    for rate in (Fraction(3, 2), Fraction(-1, 2)):
        yield being(f"rate {rate}", "no probability", rate=rate)
    yield being("a public rate", facts="public")
    yield being("a rate from data", "what is public is chosen by data", facts="data")
    yield being("a rate from the billboard", "what is public is chosen by data", facts="billboard")
    yield being("another rate", rate=rng.choice(_RATES))
    yield being("half a round", "no number of rounds", rounds=Fraction(1, 2))
    yield being("more rounds", rounds=3)
    yield being("the other relation", relation={"add": "zero", "zero": "add"}[spec.relation])
    yield being("halved claim", claimed=Formula("half", lambda v, of=spec.claimed: of(v) / Fraction(2)))
    spread = spec.parts[0].spread
    first, *rest = spec.parts
    louder = replace(first, spread=Formula("0.98·s", lambda v: Fraction(98, 100) * spread(v)))
    yield being("a little less noise", parts=(louder, *rest))
    none = replace(first, spread=Formula("0", lambda v: 0 * spread(v)))
    yield being("no spread", "a spread of 0", parts=(none, *rest))
    yield being("one draw for all cells", "a draw that no round has", parts=(replace(first, across=("cells",)), *rest))
    if several:
        yield being("a release dropped", parts=spec.parts[:-1])
        yield being("turned round", parts=spec.parts[::-1])


def groups(spec: Spec) -> list[Sequence[int]]:
    """Returns which releases see the same sample, by their places."""
    places = range(len(spec.parts))
    return [tuple(places)] if spec.sample == "shared" else [(i,) for i in places]


def pure_of_sampled(spec: Spec, losses: Sequence[np.ndarray]) -> float:
    """Returns the largest loss of all rounds; `losses` are those of every release, a row a pair."""
    q = float(spec.rate)
    rows = sum(np.log1p(q * np.expm1(sum(losses[i] for i in group))) for group in groups(spec))
    return float(np.max(rows, initial=0.0)) * spec.rounds


def sampled_loss(
    losses: np.ndarray, masses: np.ndarray, infinite: float, *, rate: float, slack: float, up: bool, added: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns the losses of the sampled pair, their masses and that of ∞: a bound on all of them, from one side.

    With the user in D the law is qP + (1 − q)Q, of loss ln(1 − q + q·e^l), and Q is P·e^−l. Without, it is Q: of
    symmetric noise l is under Q, turned round, what it is under P, so that the loss is −ln(1 − q + q·e^−l).

    Args:
        losses: ln P/Q of the outputs with and without the user, rounded up, or down.
        masses: Of P.
        infinite: Of P where Q has none.
        rate: q, with which the user is sampled.
        slack: By how much the losses may be rounded.
        up: Whether they are rounded up.
        added: Whether the law without the user is compared with that with them, instead of the other way round.
    """
    if added:
        mixed = np.append(-np.logaddexp(math.log1p(-rate), math.log(rate) - losses), -math.log1p(-rate))
        return mixed, np.append(masses, infinite), 0.0
    mixed = np.logaddexp(math.log1p(-rate), math.log(rate) + losses)
    told = rate * masses + (1 - rate) * masses * np.exp(-losses + (slack if up else -slack))
    if up:  # what no cell holds lies below them all
        told[0] += max(0.0, 1 - float(told.sum()) - rate * infinite)
    return mixed, told, rate * infinite
