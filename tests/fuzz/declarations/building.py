"""From a `Spec` to a declaration: whatever the fields hold is handed on as it is."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy  # noqa: TID251 - an expression of an author's own

from declarations.owned import own_mechanism
from declarations.specs import LINEAR, Formula, Part, Procedure, Spec
from privcheck.declare import declaration as declared
from privcheck.declare import statistics
from privcheck.declare.mechanisms import Gaussian, Laplace, ShuffledBits, SymmetricGaussian
from privcheck.declare.procedures import (
    AdaptiveSparseVector,
    GaussianNoisyMax,
    GaussianSparseVector,
    NoisyMax,
    RandomisedResponse,
    ScoredChoice,
    SparseVector,
    UnaryEncoding,
)
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import Batches, EveryEpisode, Once, PerUser, Poisson, Sample, Tree
from privcheck.declare.statements import from_billboard, from_data, public
from privcheck.terms import symbols
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP

NAMES: dict[str, Any] = {name: getattr(symbols, name) for name in ("H", "S", "A", "K", "d", "h", "n", "rho", "epsilon")}


def _piece(at: Any, most: int, then: Any, other: Any) -> symbols.Expr:
    then, other = symbols.expression(then), symbols.expression(other)
    return symbols.Expr(sympy.Piecewise((then.node, at.node <= most), (other.node, True)))


NAMES |= {
    "max": symbols.maximum, "min": symbols.minimum, "sqrt": symbols.sqrt, "log": symbols.log, "ceil": symbols.ceil,
    "floor": symbols.floor, "piece": _piece,
}  # fmt: skip
DEFAULTS = {"H": 2, "S": 2, "A": 2, "K": 3, "d": 2, "rho": 1, "epsilon": 1}


@dataclass(frozen=True)
class OwnRelation:
    """A relation of one's own, which no sensitivity knows."""

    unit: str = "trajectory"
    initial: str = "any"
    words: str = "replace a trajectory by another one that looks like it"


def declare(spec: Spec) -> declared.Declaration:
    """Returns the declaration; whatever it raises is the answer to a spec without meaning."""
    return declared.Declaration(
        name="random",
        title="a random declaration",
        source=f"seed {spec.seed}",
        relation=_relation(spec),
        releases=tuple(_sampled(spec)) if spec.sample else tuple(_release(part, spec.facts) for part in spec.parts),
        procedures=tuple(procedure(one) for one in spec.procedures),
        claim=declared.Claim(
            _guarantee(spec), source="drawn", joint=None if spec.sees is None else declared.Joint(sees=spec.sees)
        ),
        parameters=tuple(
            declared.Parameter(name=name, default=DEFAULTS[name], kind=kind, meaning="drawn")
            for name, kind in spec.kinds.items()
        ),
        model=spec.model,
        assumptions=() if spec.attained is None else (_assumption(spec.attained),),
        **({"partitions": _partitions(spec)} if spec.partitions else {}),
    )


def procedure(one: Procedure) -> Any:
    """Returns a procedure, or a mechanism of its author's own."""
    size = _number(one.size)
    if one.kind.startswith("own"):
        return own_mechanism(one, size)
    if one.kind == "bits":
        flip = 1 - size if isinstance(one.size, Formula) else size
        return UnaryEncoding(one.name, bits=one.count, keep=size, flip=flip, users=one.group)
    exact = isinstance(one.size, Formula)
    made: dict[str, Any] = {
        "response": lambda: RandomisedResponse(one.name, categories=one.count, epsilon=size, users=one.group),
        "max": lambda: NoisyMax(
            one.name, noise=one.noise, scale=size, candidates=one.count, monotone=one.monotone, users=one.group
        ),
        "choice": lambda: ScoredChoice(
            one.name, by=one.noise, epsilon=size, candidates=one.count, monotone=one.monotone, users=one.group
        ),
        "gaussian max": lambda: GaussianNoisyMax(
            one.name, std=size, candidates=one.count, monotone=one.monotone, users=one.group
        ),
        "sparse": lambda: SparseVector(
            one.name, threshold_scale=size, query_scale=size, queries=one.count, positives=1, users=one.group
        ),
        "gaussian sparse": lambda: GaussianSparseVector(
            one.name, threshold_std=size, query_std=size, queries=one.count, positives=1, users=one.group
        ),
        "adaptive": lambda: AdaptiveSparseVector(
            one.name, threshold_scale=size, top_scale=2 * size if exact else size, middle_scale=size, margin=1,
            queries=one.count, budget=2 / size if exact else size, gaps=False, users=one.group,
        ),
    }  # fmt: skip
    return made[one.kind]()


def _sampled(spec: Spec) -> list[Any]:
    """Returns the releases, on one sample, on one each, or as nobody says."""
    sampling = Poisson(rate=_fact(spec.rate, spec.facts), rounds=spec.rounds)
    batch = Sample(sampling)
    schedules = {
        "shared": lambda: {"schedule": batch},
        "fresh": lambda: {"schedule": sampling, "fresh": True},
        "unsaid": lambda: {"schedule": sampling},
        "both": lambda: {"schedule": batch, "fresh": True},
        "twice": lambda: {"schedule": Sample(sampling)},
    }
    made = [schedules[spec.sample]() for _ in spec.parts]
    draws = [declared.Draw(across=part.across) for part in spec.parts]
    return [
        declared.Release(part.name, statistic(part), _mechanism(part), draw=draw, **how)
        for part, draw, how in zip(spec.parts, draws, made, strict=True)
    ]


def _assumption(attained: Any) -> declared.Assumption:
    return declared.Assumption(
        what="‖φ‖", assumed=1, attained=attained, repair="rescale φ", source="drawn", bounds="phi"
    )


def values(spec: Spec) -> dict[str, Any]:
    """Returns the parameters as `verify` is given them, right or wrong."""
    return {
        name: Fraction(v) if isinstance(v, int | Fraction) and not isinstance(v, bool) else v
        for name, v in spec.values.items()
    }


def _relation(spec: Spec) -> Any:
    if spec.relation == "replace":
        return ReplaceOne(spec.unit, initial=spec.initial)
    if spec.relation in ("add", "zero"):
        return {"add": AddRemoveOne, "zero": ZeroOut}[spec.relation](spec.unit)
    return OwnRelation() if spec.relation == "own" else "replace one"


def _guarantee(spec: Spec) -> Any:
    size = _number(spec.claimed)
    if spec.claim == "approx":
        return ApproxDP(size, spec.delta)
    return {"zcdp": ZCDP, "pure": PureDP}[spec.claim](size) if spec.claim != "text" else "(1, 0)-DP"


def _release(part: Part, facts: str) -> declared.Release:
    return declared.Release(
        part.name,
        statistic(part),
        _mechanism(part),
        schedule=_schedule(part, facts),
        users=part.group,
        draw=declared.Draw(name=part.draw, across=part.across),
    )


@dataclass(frozen=True)
class Stated:
    """A table whose author states its sensitivity: that of the table, times a factor."""

    table: Any
    factor: Fraction

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "table"), name)

    def sensitivity(self, relation: Any) -> statistics.Sensitivity:
        true = self.table.sensitivity(relation)
        l1, l2, linf = (size * self.factor for size in (true.l1, true.l2, true.linf))
        return statistics.Sensitivity(l1=l1, l2=l2, linf=linf, reason="its author says so")


def statistic(part: Part) -> Any:
    """Returns the statistic that the part names, its sensitivity stated by its author where the part says so."""
    made = _statistic(part)
    return made if part.stated is None or isinstance(made, str) else Stated(made, part.stated)


def _statistic(part: Part) -> Any:
    steps = _number(part.steps) if part.steps is not None else symbols.H
    if part.statistic in LINEAR:
        return _linear(part, steps)
    sizes = (steps, symbols.S, symbols.A)
    made = {
        "visits": statistics.VisitCounts,
        "transitions": statistics.TransitionCounts,
        "rewards": statistics.RewardSums,
        "costs": statistics.CostSums,
        "pooled visits": statistics.PooledVisitCounts,
        "pooled transitions": statistics.PooledTransitionCounts,
        "pooled rewards": statistics.PooledRewardSums,
        "bits": statistics.RewardBits,
    }
    if part.statistic == "step visits":
        return statistics.OneStepEach(table=statistics.VisitCounts(*sizes))
    return made[part.statistic](*sizes) if part.statistic in made else part.statistic


def _linear(part: Part, steps: Any) -> Any:
    phi = statistics.Column("phi", _number(part.bounds[0]), r"\phi")
    if part.statistic == "gram":
        return statistics.GramMatrices(name="φφᵀ", steps=steps, dimension=symbols.d, vector=phi)
    bound = _number(part.bounds[1])
    power = part.sizes[0] if part.sizes else 2 if part.statistic == "squares" else 1
    target = statistics.Column(f"V {part.name}", bound, "V")
    return statistics.FeatureSums(name="φV", steps=steps, dimension=symbols.d, vector=phi, target=target, power=power)


def _mechanism(part: Part) -> Any:
    spread = _number(part.spread)
    if part.law in ("goe", "upper"):
        return SymmetricGaussian(variance=spread, kind=part.law)
    if part.law == "gaussian":
        return Gaussian(variance=spread)
    if part.law == "laplace":
        return Laplace(scale=spread)
    if part.law in ("bits", "integers"):
        return ShuffledBits(users=symbols.n, threshold=spread, messages=part.law)
    return part.law


def _fact(value: Any, facts: str, *, of: str = "") -> Any:
    """Returns a value that somebody says is public, or plain; one of earlier outputs names the release."""
    if facts == "data":
        return from_data("counted in the table")
    if facts == "billboard":
        return from_billboard(value, of=of or "r0")
    return public(value, why="drawn before the data") if facts == "public" else value


def _partitions(spec: Spec) -> Any:
    if not isinstance(spec.partitions, tuple) or not spec.facts:
        return spec.partitions
    return tuple(tuple(_fact(group, spec.facts) for group in groups) for groups in spec.partitions)


def _schedule(part: Part, facts: str) -> Any:
    if part.schedule == "batches":
        sizes = (lambda _: part.sizes) if part.sizes else None
        return Batches(size=_fact("a random number", facts, of=part.name), sizes=sizes)
    if part.schedule == "tree":
        return Tree(leaves=_fact(_number(part.outputs), facts))
    if part.schedule == "every":
        return EveryEpisode(outputs=_fact(_number(part.outputs), facts))
    return {"once": Once, "user": PerUser}[part.schedule]()


def _number(formula: Any) -> Any:
    return formula(NAMES) if isinstance(formula, Formula) else formula
