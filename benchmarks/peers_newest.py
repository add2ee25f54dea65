"""Generated plans priced here and by the newest versions of other accountants: `benchmarks/peers_newest.md`.

    make peers      installs the newest versions into .venv-peers and runs this

A plan is one to three mechanisms, each with a number of releases, and a δ. Every accountant that can express a plan
gives ε as a lower bound, an upper bound or both, under adding or removing a user (randomised response: replacing the
answer). Wherever anybody's lower bound is above anybody's upper bound, one of the two is wrong: the script prints the
plan and ends with 1, unless the reason is on record in `KNOWN`.

* dp-accounting, PLD: privacy loss distributions, pessimistic and optimistic. A selection has as its optimistic one that
  of scores drawn at random, so that any price below what some scores leak is found.
* dp-accounting, PLDAccountant and RdpAccountant: the events, upper bounds. Each event is read by `from_dp_event` too,
  and each plan goes there by `to_dp_event` and comes back.
* prv-accountant: both bounds, ±0.02 of ε and ±δ/1000.
* PLD_accounting: both bounds of random allocations.
* riskcal: an attacker's advantage and true-positive rate at 1 % false positives, upper bounds, against lower bounds of
  dp-accounting's distribution and ours.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import math
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from privcheck import accounting as acc
from privcheck.errors import ParameterError

PEERS = ("dp-accounting", "PLD_accounting", "prv-accountant", "riskcal")
RATE = 0.01  # of false positives
PATIENCE = 120  # seconds a question
RELATIVE, ABSOLUTE = 1e-6, 1e-8  # what their transforms round


class InexpressibleError(Exception):
    """A peer has no such mechanism."""


@dataclass(frozen=True)
class Part:
    """A mechanism and its number of releases."""

    kind: str
    given: dict[str, Any]
    count: int

    def __str__(self) -> str:
        numbers = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"{self.count} × {self.kind}({numbers})"


@dataclass(frozen=True)
class Plan:
    """Mechanisms on the same data, and the δ at which ε is asked for."""

    number: int
    parts: tuple[Part, ...]
    delta: float

    @property
    def releases(self) -> int:
        return sum(part.count for part in self.parts)

    def __str__(self) -> str:
        return f"{' + '.join(map(str, self.parts))} at δ = {self.delta:g}"


@dataclass(frozen=True)
class Bounds:
    """Bounds on one figure; None where an accountant gives none."""

    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Kind:
    """A mechanism, and how each library writes it.

    Attributes:
        draw: Numbers of a mechanism.
        ours: Its event here.
        event: Its event in dp-accounting; None where that has none.
        pld: Its privacy loss distribution there: numbers, interval, and whether pessimistic.
        prv: Its privacy random variable in prv-accountant.
        most: Largest number of releases.
        alone: Whether plans have no other part beside it.
    """

    draw: Callable[[np.random.Generator], dict[str, Any]]
    ours: Callable[[dict[str, Any]], Any]
    event: Callable[[dict[str, Any]], Any] | None = None
    pld: Callable[..., Any] | None = None
    prv: Callable[[dict[str, Any]], Any] | None = None
    most: int = 300
    alone: bool = False


def some(rng: np.random.Generator, low: float, high: float) -> float:
    """A number between two, its logarithm uniform, with three digits."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


# --- how dp-accounting writes them ------------------------------------------------------------------------------------


def events() -> Any:
    import dp_accounting

    return dp_accounting.dp_event


def named(name: str, *given: Any) -> Any:
    """An event that the installed version may not have yet."""
    if not hasattr(events(), name):
        raise InexpressibleError(f"no {name} in this version")
    return getattr(events(), name)(*given)


def plds() -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution


def of_masses(p: list[float], q: list[float], interval: float, *, pessimistic: bool) -> Any:
    """Distribution of two laws on few outputs, both directions."""
    upper, lower = ({i: math.log(x) for i, x in enumerate(law) if x > 0} for law in (p, q))
    return plds().from_two_probability_mass_functions(
        lower, upper, pessimistic_estimate=pessimistic, value_discretization_interval=interval, symmetric=False
    )


def guarantee(epsilon: float, delta: float, interval: float, *, pessimistic: bool) -> Any:
    """Distribution of the pair that dominates every (ε, δ)-DP mechanism."""
    more, less = ((1 - delta) / (1 + math.exp(x)) for x in (-epsilon, epsilon))
    return of_masses([delta, more, less, 0.0], [0.0, less, more, delta], interval, pessimistic=pessimistic)


def gaussian_pld(g: dict[str, Any], interval: float, *, pessimistic: bool) -> Any:
    return plds().from_gaussian_mechanism(
        g["std"], sampling_prob=g.get("rate", 1.0), pessimistic_estimate=pessimistic, use_connect_dots=pessimistic,
        value_discretization_interval=interval,
    )  # fmt: skip


def laplace_pld(g: dict[str, Any], interval: float, *, pessimistic: bool) -> Any:
    return plds().from_laplace_mechanism(
        g["scale"], sampling_prob=g.get("rate", 1.0), pessimistic_estimate=pessimistic, use_connect_dots=pessimistic,
        value_discretization_interval=interval,
    )  # fmt: skip


def response_pld(g: dict[str, Any], interval: float, *, pessimistic: bool) -> Any:
    return plds().from_randomized_response(
        response_noise(g), g["categories"], pessimistic_estimate=pessimistic, value_discretization_interval=interval
    )


def response_noise(g: dict[str, Any]) -> float:
    m, kept = g["categories"], math.exp(-g["epsilon"])
    return m * kept / (1 + (m - 1) * kept)


def truncated_pld(g: dict[str, Any], interval: float, *, pessimistic: bool) -> Any:
    if not pessimistic:
        raise InexpressibleError("no optimistic one")
    return plds().from_truncated_subsampled_gaussian_mechanism(
        g["users"] - 1, g["rate"], g["most"], g["std"], value_discretization_interval=interval
    )


def mixture_pld(g: dict[str, Any], interval: float, *, pessimistic: bool) -> Any:
    return plds().from_mixture_gaussian_mechanism(
        g["std"], g["sensitivities"], g["probabilities"], pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic, value_discretization_interval=interval,
    )  # fmt: skip


def selection_pld(law: Callable[[list[float], float], list[float]]) -> Callable[..., Any]:
    """The guarantee as the pessimistic distribution, as the optimistic one that of the scores."""

    def made(g: dict[str, Any], interval: float, *, pessimistic: bool) -> Any:
        if pessimistic:
            return guarantee(g["epsilon"], 0.0, interval, pessimistic=True)
        p, q = (law([x + moved for x, moved in zip(g["scores"], moves, strict=True)], g["epsilon"])
                for moves in (g["moves"], [0] * len(g["scores"])))  # fmt: skip
        return of_masses(p, q, interval, pessimistic=False)

    return made


def exponential_law(scores: list[float], epsilon: float) -> list[float]:
    weights = [math.exp(epsilon * (x - max(scores)) / 2) for x in scores]
    return [w / math.fsum(weights) for w in weights]


def permuted_law(scores: list[float], epsilon: float) -> list[float]:
    taken, law = exponential_law(scores, epsilon), [0.0] * len(scores)
    taken = [t / max(taken) for t in taken]
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for y in order:
            law[y] += left * taken[y] / math.factorial(len(scores))
            left *= 1 - taken[y]
    return law


# --- the mechanisms ---------------------------------------------------------------------------------------------------


def prv(name: str, *given: Any, **named_: Any) -> Any:
    import prv_accountant

    return getattr(prv_accountant, name)(*given, **named_)


def draw_scores(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(2, 5))
    return {
        "epsilon": some(rng, 0.02, 1.5),
        "scores": [round(float(x), 2) for x in rng.uniform(-4, 4, n) * rng.choice([0, 1])],
        "moves": [int(x) for x in rng.choice([-1, 1], n)],
    }


def draw_mixture(rng: np.random.Generator) -> dict[str, Any]:
    weights = np.round(rng.dirichlet([1, 1, 1]), 3)
    return {
        "std": some(rng, 1, 10),
        "sensitivities": [0.0, *(round(float(x), 2) for x in rng.uniform(0.1, 2, 2))],
        "probabilities": [float(1 - weights[1] - weights[2]), float(weights[1]), float(weights[2])],
    }


def draw_truncated(rng: np.random.Generator) -> dict[str, Any]:
    users, rate = int(some(rng, 100, 10_000)), some(rng, 0.005, 0.1)
    mean = users * rate
    most = max(1, int(mean + rng.uniform(0, 6) * math.sqrt(mean)))
    return {"std": some(rng, 0.8, 5), "rate": rate, "users": users, "most": most}


def draw_repeat(rng: np.random.Generator) -> dict[str, Any]:
    law = str(rng.choice(["poisson", "geometric", "logarithmic"]))
    return {"std": some(rng, 3, 60), "mean": some(rng, 1.5, 50), "law": law}


def draw_allocation(rng: np.random.Generator) -> dict[str, Any]:
    return {"std": some(rng, 0.7, 4), "rounds": int(some(rng, 2, 200)), "epochs": int(some(rng, 1, 8))}


PRESENT = {"relation": "add-remove"}
SHAPES = {"poisson": math.inf, "geometric": 1.0, "logarithmic": 0.0}

KINDS: dict[str, Kind] = {
    "gaussian": Kind(
        draw=lambda rng: {"std": some(rng, 0.7, 60)},
        ours=lambda g: acc.gaussian(**g),
        event=lambda g: events().GaussianDpEvent(g["std"]),
        pld=gaussian_pld,
        prv=lambda g: prv("GaussianMechanism", noise_multiplier=g["std"]),
    ),
    "laplace": Kind(
        draw=lambda rng: {"scale": some(rng, 0.7, 60)},
        ours=lambda g: acc.laplace(**g),
        event=lambda g: events().LaplaceDpEvent(g["scale"]),
        pld=laplace_pld,
        prv=lambda g: prv("LaplaceMechanism", mu=1 / g["scale"]),
    ),
    "discrete_laplace": Kind(
        draw=lambda rng: {"scale": some(rng, 0.7, 60), "sensitivity": int(rng.integers(1, 5))},
        ours=lambda g: acc.discrete_laplace(**g),
        event=lambda g: events().DiscreteLaplaceDpEvent(1 / g["scale"], g["sensitivity"]),
        pld=lambda g, interval, pessimistic: plds().from_discrete_laplace_mechanism(
            1 / g["scale"], g["sensitivity"], pessimistic_estimate=pessimistic, value_discretization_interval=interval
        ),
    ),
    "discrete_gaussian": Kind(
        draw=lambda rng: {"std": some(rng, 0.7, 60), "sensitivity": int(rng.integers(1, 5))},
        ours=lambda g: acc.discrete_gaussian(**g),
        event=lambda g: named("DiscreteGaussianDpEvent", g["std"], float(g["sensitivity"]), 1),
        pld=lambda g, interval, pessimistic: plds().from_discrete_gaussian_mechanism(
            g["std"], g["sensitivity"], pessimistic_estimate=pessimistic, value_discretization_interval=interval
        ),
    ),
    "poisson_gaussian": Kind(
        draw=lambda rng: {"std": some(rng, 0.7, 5), "rate": some(rng, 0.002, 0.5)},
        ours=lambda g: acc.poisson_gaussian(**g, **PRESENT),
        event=lambda g: events().PoissonSampledDpEvent(g["rate"], events().GaussianDpEvent(g["std"])),
        pld=gaussian_pld,
        prv=lambda g: prv(
            "PoissonSubsampledGaussianMechanism", sampling_probability=g["rate"], noise_multiplier=g["std"]
        ),
    ),
    "poisson_laplace": Kind(
        draw=lambda rng: {"scale": some(rng, 0.7, 10), "rate": some(rng, 0.002, 0.5)},
        ours=lambda g: acc.poisson(event=acc.laplace(scale=g["scale"]), rate=g["rate"], **PRESENT),
        event=lambda g: events().PoissonSampledDpEvent(g["rate"], events().LaplaceDpEvent(g["scale"])),
        pld=laplace_pld,
    ),
    "randomized_response": Kind(
        draw=lambda rng: {"epsilon": some(rng, 0.02, 3), "categories": int(rng.integers(2, 12))},
        ours=lambda g: acc.randomized_response(**g),
        event=lambda g: events().RandomizedResponseDpEvent(response_noise(g), g["categories"]),
        pld=response_pld,
    ),
    "pure": Kind(
        draw=lambda rng: {"epsilon": some(rng, 0.01, 2)},
        ours=lambda g: acc.pure(**g),
        event=lambda g: named("EpsilonDeltaDpEvent", g["epsilon"], 0.0),
        pld=lambda g, interval, pessimistic: guarantee(g["epsilon"], 0.0, interval, pessimistic=pessimistic),
        prv=lambda g: prv("PureDPMechanism", eps=g["epsilon"]),
    ),
    "approximate": Kind(
        draw=lambda rng: {"epsilon": some(rng, 0.01, 2), "delta": some(rng, 1e-13, 1e-11)},
        ours=lambda g: acc.approximate(**g),
        event=lambda g: named("EpsilonDeltaDpEvent", g["epsilon"], g["delta"]),
        pld=lambda g, interval, pessimistic: guarantee(g["epsilon"], g["delta"], interval, pessimistic=pessimistic),
        prv=lambda g: prv("ApproximateDPMechanism", g["epsilon"], g["delta"]),
    ),
    "exponential_mechanism": Kind(
        draw=draw_scores,
        ours=lambda g: acc.exponential_mechanism(epsilon=g["epsilon"]),
        event=lambda g: named("ExponentialMechanismDpEvent", g["epsilon"]),
        pld=selection_pld(exponential_law),
    ),
    "permute_and_flip": Kind(
        draw=draw_scores,
        ours=lambda g: acc.permute_and_flip(epsilon=g["epsilon"]),
        event=lambda g: named("PermuteAndFlipDpEvent", g["epsilon"]),
        pld=selection_pld(permuted_law),
    ),
    "mixture_of_gaussians": Kind(
        draw=draw_mixture,
        ours=lambda g: acc.mixture_of_gaussians(**g, **PRESENT),
        event=lambda g: events().MixtureOfGaussiansDpEvent(g["std"], g["sensitivities"], g["probabilities"]),
        pld=mixture_pld,
        most=30,
    ),
    "truncated_poisson_gaussian": Kind(
        draw=draw_truncated,
        ours=lambda g: acc.truncated_poisson_gaussian(**g, **PRESENT),
        event=lambda g: events().TruncatedSubsampledGaussianDpEvent(g["users"] - 1, g["rate"], g["most"], g["std"]),
        pld=truncated_pld,
        most=30,
    ),
    "zcdp": Kind(
        draw=lambda rng: {"rho": some(rng, 1e-4, 0.3), "xi": float(rng.choice([0.0, 0.01]))},
        ours=lambda g: acc.zcdp(**g),
        event=lambda g: events().ZCDpEvent(g["rho"], g["xi"]),
    ),
    "repeat_and_select": Kind(
        draw=draw_repeat,
        ours=lambda g: acc.repeat_and_select(acc.gaussian(std=g["std"]), mean=g["mean"], law=g["law"]),
        event=lambda g: events().RepeatAndSelectDpEvent(
            events().GaussianDpEvent(g["std"]), g["mean"], SHAPES[g["law"]]
        ),
        most=5,
    ),
    "random_allocation": Kind(
        draw=draw_allocation, ours=lambda g: acc.random_allocation(**g, **PRESENT), most=1, alone=True
    ),
}


def plans(number: int, seed: int) -> Iterator[Plan]:
    """Every kind alone in turn, then beside others drawn at random; each plan has a generator of its own."""
    names = list(KINDS)
    for i in range(number):
        rng = np.random.default_rng([seed, i])
        kinds = [names[i % len(names)]]
        if i >= 2 * len(names) and not KINDS[kinds[0]].alone:
            others = [name for name in names if not KINDS[name].alone]
            kinds += [str(name) for name in rng.choice(others, int(rng.integers(0, 3)))]
        parts = tuple(
            Part(name, KINDS[name].draw(rng), 1 if rng.random() < 0.3 else int(some(rng, 1, KINDS[name].most + 0.9)))
            for name in kinds
        )
        yield Plan(i, parts, some(rng, 1e-8, 1e-3))


# --- what each of them says -------------------------------------------------------------------------------------------


def ours(plan: Plan) -> acc.Curve:
    return acc.compose([part.count * KINDS[part.kind].ours(part.given) for part in plan.parts])


def bounds(figure: Any) -> Bounds:
    return Bounds(figure.lower if figure.bounded_below else None, figure.upper)


def composed_event(plan: Plan) -> Any:
    made = []
    for part in plan.parts:
        build = KINDS[part.kind].event
        if build is None:
            raise InexpressibleError(f"no event for {part.kind}")
        one = build(part.given)
        made.append(events().SelfComposedDpEvent(one, part.count) if part.count > 1 else one)
    return made[0] if len(made) == 1 else events().ComposedDpEvent(made)


@dataclass
class Question:
    """A plan, with its ε here, by which others choose how finely they look.

    Attributes:
        plan: The plan.
        scale: Its ε.
    """

    plan: Plan
    scale: float

    @cached_property
    def above(self) -> Any:
        """dp-accounting's pessimistic distribution of the plan."""
        return self._composed(pessimistic=True)

    @cached_property
    def below(self) -> Any:
        """The optimistic one."""
        return self._composed(pessimistic=False)

    def _composed(self, *, pessimistic: bool) -> Any:
        """Compose a plan, at intervals of a fiftieth of its ε a release or less, as time allows."""
        if missing := [part.kind for part in self.plan.parts if KINDS[part.kind].pld is None]:
            raise InexpressibleError(f"no distribution for {missing[0]}")
        interval = float(np.clip(0.02 * self.scale / self.plan.releases, max(5e-5, self.scale / 3e4), 2e-2))
        made = None
        for part in self.plan.parts:
            one = KINDS[part.kind].pld(part.given, interval, pessimistic=pessimistic)  # type: ignore[misc] # not None, as above
            one = one.self_compose(part.count) if part.count > 1 else one
            made = one if made is None else made.compose(one)
        return made


def by_pld(asked: Question) -> Bounds:
    upper = float(asked.above.get_epsilon_for_delta(asked.plan.delta))
    try:
        return Bounds(float(asked.below.get_epsilon_for_delta(asked.plan.delta)), upper)
    except InexpressibleError:
        return Bounds(None, upper)


def power_by_pld(asked: Question) -> Bounds:
    """Where P(S) − Q(S)/α is at least δ, Q(S) is at most α, so that δ at ε = ln 1/α is a lower bound on the power."""
    return Bounds(float(asked.below.get_delta_for_epsilon(-math.log(RATE))), None)


def by_accountant(plan: Plan, make: Callable[[Any], Any]) -> Bounds:
    """An upper bound of one of its accountants; randomised response has a price only where an answer is replaced."""
    from dp_accounting import NeighboringRelation as Relation

    replaced = all(part.kind == "randomized_response" for part in plan.parts)
    accountant, event = make(Relation.REPLACE_ONE if replaced else Relation.ADD_OR_REMOVE_ONE), composed_event(plan)
    if not accountant.supports(event):
        raise InexpressibleError(f"does not support {' + '.join(sorted({part.kind for part in plan.parts}))}")
    return Bounds(None, float(accountant.compose(event).get_epsilon(plan.delta)))


def by_pld_accountant(asked: Question) -> Bounds:
    from dp_accounting.pld import PLDAccountant

    interval = float(np.clip(asked.scale / 3e3, 3e-4, 2e-2))
    return by_accountant(asked.plan, lambda relation: PLDAccountant(relation, value_discretization_interval=interval))


def by_rdp_accountant(asked: Question) -> Bounds:
    from dp_accounting.rdp import RdpAccountant

    return by_accountant(asked.plan, lambda relation: RdpAccountant(neighboring_relation=relation))


def by_prv(asked: Question) -> Bounds:
    from prv_accountant import PRVAccountant

    plan = asked.plan
    if missing := [part.kind for part in plan.parts if KINDS[part.kind].prv is None]:
        raise InexpressibleError(f"no random variable for {missing[0]}")
    made = [KINDS[part.kind].prv(part.given) for part in plan.parts]  # type: ignore[misc] # not None, as above
    counts = [part.count for part in plan.parts]
    error = float(np.clip(0.02 * asked.scale, 1e-3, 0.1))
    accountant = PRVAccountant(prvs=made, max_self_compositions=counts, eps_error=error, delta_error=plan.delta / 1000)
    lower, _, upper = accountant.compute_epsilon(plan.delta, counts)
    return Bounds(float(lower), float(upper))


def by_allocation(asked: Question) -> Bounds:
    import PLD_accounting as pa

    plan = asked.plan
    if [part.kind for part in plan.parts] != ["random_allocation"]:
        raise InexpressibleError("random allocations only")
    g = plan.parts[0].given
    params = pa.PrivacyParams(sigma=g["std"], num_steps=g["rounds"], num_epochs=g["epochs"], delta=plan.delta)
    config = pa.AllocationSchemeConfig(loss_discretization=0.05)
    upper, lower = (
        float(pa.gaussian_allocation_epsilon_configurable(params=params, config=config, bound_type=way))
        for way in (pa.BoundType.DOMINATES, pa.BoundType.IS_DOMINATED)
    )
    return Bounds(lower, upper)


def advantage(asked: Question) -> Bounds:
    from riskcal import analysis

    return Bounds(None, float(analysis.get_advantage_from_pld(asked.above)))


def true_positive_rate(asked: Question) -> Bounds:
    from riskcal import analysis

    return Bounds(None, 1 - float(analysis.get_beta_from_pld(asked.above, RATE)))


def our_power(curve: acc.Curve) -> Bounds:
    delta = curve.delta(epsilon=-math.log(RATE))
    return Bounds(delta.lower if delta.bounded_below else None, curve.true_positive_rate(RATE).upper)


OURS: dict[str, Callable[[acc.Curve, Plan], Bounds]] = {
    "ε": lambda curve, plan: bounds(curve.epsilon(delta=plan.delta)),
    "advantage": lambda curve, _: bounds(curve.advantage()),
    "true-positive rate": lambda curve, _: our_power(curve),
}
THEIRS: dict[str, tuple[str, str, Callable[[Question], Bounds]]] = {
    "dp-accounting, PLD": ("dp-accounting", "ε", by_pld),
    "dp-accounting, PLDAccountant": ("dp-accounting", "ε", by_pld_accountant),
    "dp-accounting, RdpAccountant": ("dp-accounting", "ε", by_rdp_accountant),
    "dp-accounting, PLD, true-positive rate": ("dp-accounting", "true-positive rate", power_by_pld),
    "prv-accountant": ("prv-accountant", "ε", by_prv),
    "PLD_accounting": ("PLD_accounting", "ε", by_allocation),
    "riskcal, advantage": ("riskcal", "advantage", advantage),
    "riskcal, true-positive rate": ("riskcal", "true-positive rate", true_positive_rate),
}

# Disagreements whose reason is known: whose bound is wrong, for which plans of which ε, and why.
KNOWN: list[tuple[str, Callable[[Plan, float], bool], str]] = [
    (
        "dp-accounting, PLDAccountant",
        lambda plan, _: any(part.kind == "randomized_response" and part.count > 1 for part in plan.parts),
        "dp-accounting's PLDAccountant charges randomised response once, however often it is released",
    ),
    (
        "dp-accounting, RdpAccountant",
        lambda plan, _: any(part.kind == "exponential_mechanism" and part.count > 1 for part in plan.parts),
        "the RdpAccountant of dp-accounting's main branch charges an exponential mechanism once, however often it runs",
    ),
    (
        "riskcal, true-positive rate",
        lambda _, scale: scale > 50,
        "riskcal's power of a test is the false-positive rate where the losses are large, and should be nearly 1",
    ),
]


# --- comparing --------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What became of all plans.

    Attributes:
        unable: Reasons why a peer cannot express a plan, with their number.
        failed: Errors of a peer, with the first plan of each.
        above: Our upper bound over their lower bound, less 1.
        beside: Their upper bound over ours, less 1.
        wrong: Disagreements, each with its plan.
        explained: Disagreements on record.
        seconds: Time of a peer, all plans together.
        travelled: Reading an event, or a plan that went to dp-accounting and came back, over its price here, less 1.
    """

    unable: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failed: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    above: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    beside: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    travelled: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """Give up after so many seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def judge(plan: Plan, tally: Tally, present: set[str]) -> None:
    """Ask everybody about one plan."""
    curve = ours(plan)
    found: dict[str, dict[str, Bounds]] = defaultdict(dict)
    for what, ask in OURS.items():
        found[what]["privcheck"] = ask(curve, plan)
    scale = found["ε"]["privcheck"].upper or 0.0
    question = Question(plan, min(scale, 1e3))
    for name, (library, what, ask) in THEIRS.items():
        if library not in present:
            continue
        began = time.perf_counter()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"), patience(PATIENCE):
                warnings.simplefilter("ignore")  # theirs
                found[what][name] = ask(question)
        except InexpressibleError as reason:
            tally.unable[name][str(reason)] += 1
        except Exception as error:  # noqa: BLE001  whatever a library raises is told
            tally.failed[name][f"{type(error).__name__}: {str(error)[:90]}"].append(plan.number)
        tally.seconds[name] += time.perf_counter() - began
    for what, said in found.items():
        compare(what, plan, scale, said, tally)
    if "dp-accounting" in present:
        travel(plan, curve, scale, tally)


def compare(what: str, plan: Plan, scale: float, said: dict[str, Bounds], tally: Tally) -> None:
    """Hold every lower bound against every upper bound."""
    mine = said["privcheck"]
    for name, theirs in said.items():
        if name == "privcheck" or mine.upper is None:
            continue
        if theirs.lower is not None:
            tally.above[name].append(mine.upper / theirs.lower - 1 if theirs.lower > 0 else math.inf)
        if theirs.upper is not None:
            tally.beside[name].append(theirs.upper / mine.upper - 1)
    for (low, a), (high, b) in itertools.product(said.items(), repeat=2):
        if a.lower is None or b.upper is None or not a.lower > b.upper * (1 + RELATIVE) + ABSOLUTE:
            continue
        reasons = [why for name, holds, why in KNOWN if name in (low, high) and holds(plan, scale)]
        if reasons:
            tally.explained[reasons[0]] += 1
        else:
            line = f"plan {plan.number}, {what}: {low} ≥ {a.lower:.9g} but {high} ≤ {b.upper:.9g}: {plan}"
            tally.wrong.append(line)
            print(line, flush=True)


def travel(plan: Plan, curve: acc.Curve, scale: float, tally: Tally) -> None:
    """Read the plan as events of dp-accounting, and let it go there and come back."""
    ways: dict[str, Callable[[], Any]] = {
        "read by `from_dp_event`": lambda: composed_event(plan),
        "there by `to_dp_event` and back": lambda: acc.to_dp_event(curve),
    }
    for way, make in ways.items():
        try:
            event = make()
        except (InexpressibleError, ParameterError) as reason:
            tally.unable[way][str(reason).split(":")[0][:60]] += 1
            continue
        price = acc.from_dp_event(event, relation="add-remove").epsilon(delta=plan.delta).upper
        tally.travelled[way].append(price / scale - 1 if 0 < scale < math.inf else 0.0)
        if price < scale * (1 - 1e-6) - 1e-9:
            tally.wrong.append(f"plan {plan.number}, {way}: {price:.9g} below {scale:.9g}: {plan}")
            print(tally.wrong[-1], flush=True)


def unread() -> list[str]:
    """Event classes of the installed dp-accounting of which `from_dp_event` does not even have the name."""
    from privcheck.accounting import dp_events

    source, none = inspect.getsource(dp_events), ("DpEvent", "UnsupportedDpEvent")
    kinds = [name for name, kind in inspect.getmembers(events(), inspect.isclass) if issubclass(kind, events().DpEvent)]
    return [name for name in kinds if name not in source and name not in none]


def quantiles(values: list[float]) -> str:
    if not values:
        return "–"
    known = sorted(values)
    at = [known[min(len(known) - 1, int(share * len(known)))] for share in (0, 0.5, 0.9, 1)]
    return " / ".join(f"{x:+.2g}" for x in at)


def versions() -> dict[str, str]:
    found = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def report(tally: Tally, seen: list[Plan], seed: int) -> str:
    """The table."""
    found = versions()
    text = "# The accountant beside the newest of its peers\n\n"
    said = ", ".join(f"{name} {number}" if number else f"{name} did not install" for name, number in found.items())
    text += f"`make peers`: {len(seen)} plans of seed {seed}; {said}; NumPy {np.__version__}. "
    text += f"{len(tally.wrong)} disagreements, {sum(tally.explained.values())} on record.\n\n"
    text += (
        "Shares are the least, the median, the 90 % quantile and the largest over the plans that a peer answered.\n\n"
    )
    text += (
        "| peer | answered | our upper bound over its lower, less 1 | its upper bound over ours, less 1 | seconds |\n"
    )
    text += "| --- | ---: | --- | --- | ---: |\n"
    for name, (library, _, _) in THEIRS.items():
        if not found[library]:
            text += f"| {name} | did not install | | | |\n"
            continue
        number = max(len(tally.above[name]), len(tally.beside[name]))
        cells = (name, str(number), quantiles(tally.above[name]), quantiles(tally.beside[name]),
                 f"{tally.seconds[name]:.0f}")  # fmt: skip
        text += f"| {' | '.join(cells)} |\n"
    text += "\n| way | plans | its price over ours, less 1 |\n| --- | ---: | --- |\n"
    for way, values in tally.travelled.items():
        text += f"| {way} | {len(values)} | {quantiles(values)} |\n"
    if found["dp-accounting"]:
        text += (
            f"\nEvents of dp-accounting {found['dp-accounting']} that are not read: {', '.join(unread()) or 'none'}.\n"
        )
    text += "\n## Disagreements\n\n"
    text += "".join(f"* {line}\n" for line in tally.wrong) or "None that is not on record.\n"
    text += "".join(f"* On record, {number} times: {why}\n" for why, number in tally.explained.items())
    text += "\n## Plans that a peer cannot express, and errors\n\n"
    for name in [*THEIRS, *tally.travelled]:
        reasons = [f"{why} ({number})" for why, number in sorted(tally.unable[name].items())]
        reasons += [f"**{why}** ({len(at)}, plan {at[0]} first)" for why, at in sorted(tally.failed[name].items())]
        if reasons:
            text += f"* {name}: {'; '.join(reasons)}.\n"
    counts = Counter(part.kind for plan in seen for part in plan.parts)
    text += f"\nParts of the plans: {', '.join(f'{name} {number}' for name, number in sorted(counts.items()))}.\n"
    return text


def main() -> None:
    """Judge all plans; write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plan", type=int, default=None, help="one plan by its number; writes no table")
    how = parser.parse_args()
    present, tally, seen = {name for name, number in versions().items() if number}, Tally(), []
    for plan in plans(how.number, how.seed):
        if how.plan not in (None, plan.number):
            continue
        if how.plan is not None:
            print(plan)
        seen.append(plan)
        judge(plan, tally, present)
        if plan.number % 40 == 39:
            print(f"{plan.number + 1} plans", flush=True)
    text = report(tally, seen, how.seed)
    print(text)
    if how.plan is None:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    sys.exit(f"{len(tally.wrong)} disagreements that are not on record" if tally.wrong else 0)


if __name__ == "__main__":
    main()
