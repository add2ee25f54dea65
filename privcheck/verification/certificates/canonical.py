"""A declaration in the canonical form of certificates (`docs/certificates.md`, "Declared").

The form has a small vocabulary. Whatever has no word in it is refused with the reason, and its verdict is then not
certified.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    ShuffledBits,
    SymmetricGaussian,
)
from privcheck.declare.procedures import (
    AdaptiveSparseVector,
    GaussianNoisyMax,
    GaussianSparseVector,
    NoisyMax,
    NoisyVotes,
    OwnMechanism,
    Procedure,
    RandomisedResponse,
    ScoredChoice,
    SparseVector,
    UnaryEncoding,
)
from privcheck.declare.relations import AddRemoveOne, Relation, ReplaceOne
from privcheck.declare.releases import Release
from privcheck.declare.samples import Poisson, Sample
from privcheck.declare.schedules import Batches, EveryEpisode, Once, PerUser, Sampled, Schedule, Tree
from privcheck.declare.statistics import ClippedSums, FeatureSums, GramMatrices, OneStepEach
from privcheck.declare.statistics.counts import CellSums, PooledSums, passed, rewarded, visited
from privcheck.errors import CertificateError, ParameterError
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from privcheck.terms.symbols import Expr, drop_last, exp, expression, same, sqrt
from privcheck.terms.symbols.prefix import Prefix, prefix

Json = dict[str, Any]
Values = Mapping[str, Fraction]

_ONE: Final = expression(1)


@dataclass(frozen=True, slots=True)
class Where:
    """Part of a declaration that is written, for messages.

    Attributes:
        words: The part.
        values: Parameters at which functions without a form are written as their number; None to refuse them, so that
            what is written means the same at other parameters.
        refuting: Whether the claim is to be refuted: of several batch sizes one is enough.
    """

    words: str
    values: Values | None
    refuting: bool = False

    def __str__(self) -> str:
        return self.words


def describe_declaration(declaration: Declaration, values: Values, *, symbolic: bool, refuting: bool = False) -> Json:
    """Write a declaration at given parameters in the canonical form.

    Args:
        declaration: The declaration.
        values: All parameters, checked.
        symbolic: Whether the form has to mean the same declaration at all parameters; otherwise functions without a
            form are written as their number at these.
        refuting: Whether the claim is to be refuted: of several batch sizes the one that hides least is written.

    Raises:
        CertificateError: A part of it has no word in the form; the message says which.
    """
    relation, at = declaration.relation, None if symbolic else values
    places = [Where(f"release {one.name!r}", at, refuting) for one in declaration.releases]
    return {
        "name": declaration.name,
        "source": declaration.source,
        "relation": relation_name(relation),
        "unit": {"who": relation.unit, "trajectories": term(relation.trajectories, Where("the unit", at))},
        "model": declaration.model if declaration.claim.joint is None else "joint",
        "parameters": {one.name: _parameter(one, values[one.name]) for one in declaration.parameters},
        "releases": [
            _release(one, declaration, values, where) for one, where in zip(declaration.releases, places, strict=True)
        ],
        "claim": {**_claim(declaration.claim.guarantee, Where("the claim", at)), "source": _source(declaration.claim)},
    }


def relation_name(relation: Relation) -> str:
    """Name of a neighbouring relation."""
    if isinstance(relation, ReplaceOne):
        return "replace-one" if relation.initial == "any" else "replace-one-same-start"
    return "add-remove" if isinstance(relation, AddRemoveOne) else "zero-out"


def term(of: Expr, where: Where) -> Prefix:
    """Write an expression.

    Raises:
        CertificateError: It has no form in a certificate.
    """
    try:
        return prefix(of, where.values)
    except ParameterError as error:
        raise CertificateError(f"{where}: {error}") from error


def _parameter(parameter: Parameter, value: Fraction) -> Json:
    kind = "integer" if parameter.kind == "count" else "real"
    found: Json = {"kind": kind, "least": parameter.least if kind == "integer" else 0, "value": number(value)}
    return {**found, "most": 1} if parameter.kind == "probability" else found


def number(value: Fraction | int) -> int | str:
    """Write a number: an integer, or "p/q"."""
    exact = Fraction(value)
    return int(exact) if exact.denominator == 1 else f"{exact.numerator}/{exact.denominator}"


def _source(claim: Claim) -> str:
    """Where the claim is printed: the statements about the releases, as a certificate says nothing of actions."""
    return "; ".join(one.name for one in claim.statements if one.about == "releases") or claim.source


def _claim(guarantee: Guarantee, where: Where) -> Json:
    currencies: tuple[tuple[type[Any], str, tuple[str, ...]], ...] = (
        (PureDP, "pure", ("epsilon",)),
        (ZCDP, "zcdp", ("rho",)),
        (GaussianDP, "gdp", ("mu",)),
        (ApproxDP, "approx", ("epsilon", "delta")),
    )
    for kind, currency, fields in currencies:
        if isinstance(guarantee, kind):
            return {"currency": currency, **{name: term(getattr(guarantee, name), where) for name in fields}}
    raise CertificateError(f"{where}: no certificate is about {type(guarantee).__name__}")


def _release(one: Procedure, declaration: Declaration, values: Values, where: Where) -> Json:
    parts = _noisy(one, declaration, values, where) if isinstance(one, Release) else _selection(one, where)
    return {"name": one.name, **parts} | ({"part": one.users} if one.users else {})


def _noisy(one: Release, declaration: Declaration, values: Values, where: Where) -> Json:
    if _has_many_leaves(one):
        return _all_nodes(one, declaration, values, where)
    if one.draw.name:
        raise CertificateError(f"{where}: noise that several releases share has no form")
    if isinstance(one.schedule, Sampled) and isinstance(declaration.relation, ReplaceOne):
        raise CertificateError(f"{where}: samples of units of which one is replaced have no form")
    return {
        "statistic": _statistic(one, declaration, values, where),
        "mechanism": _mechanism(one, values, where),
        "schedule": _schedule(one, where),
        **_shared(one),
        **({"sample": _name_sample(one.schedule, declaration)} if isinstance(one.schedule, Sample) else {}),
    }


def _shared(one: Release) -> Json:
    """What one draw of noise is added to, besides the outputs of a repeated release."""
    if "cells" in one.draw.across:
        return {"shared": "cells"}
    several = "outputs" in one.draw.across and isinstance(one.schedule, PerUser | Tree | Batches)
    return {"shared": "outputs"} if several else {}


def _name_sample(sample: Sample, declaration: Declaration) -> str:
    """Name of a shared sample: its number in the order of the releases."""
    order = dict.fromkeys(id(s) for one in declaration.releases if isinstance(s := _sample_of(one), Sample))
    return f"sample {1 + list(order).index(id(sample))}"


def _sample_of(one: Procedure) -> object:
    return getattr(one, "sample", None) or getattr(one, "schedule", None)


@functools.singledispatch
def _write(statistic: Any, release: Release, declaration: Declaration, values: Values, where: Where) -> Json:
    """A statistic without a word in the form: its sensitivity is stated, and named among what is assumed."""
    del statistic
    moved = release.contributed(declaration.relation)
    return {"kind": "stated", "l1": _at_most(moved.l1, values, where), "l2": _at_most(moved.l2, values, where)}


def _at_most(of: Expr, values: Values, where: Where) -> Prefix:
    """The expression itself; at given values the root of a fraction, exactly, or else a fraction rounded up."""
    if where.values is None:
        return term(of, where)
    square = (of**2).simplified().rational(values)
    return str(Fraction(of.number(values, rounding="up"))) if square is None else ["^", str(square), "1/2"]


def _exactly(of: Expr, values: Values, where: Where) -> Prefix:
    """An expression; if it has no form its value, where that is a fraction, else the value of the parts without one."""
    try:
        return term(of, replace(where, values=None))
    except CertificateError:
        if where.values is None:
            raise
        known = of.rational(values)
        return term(of, where) if known is None else str(known)


def _statistic(release: Release, declaration: Declaration, values: Values, where: Where) -> Json:
    return _write(release.statistic, release, declaration, values, where)


def _has_many_leaves(one: Release) -> bool:
    return isinstance(one.schedule, Tree) and one.schedule.leaves_of_a_user != _ONE


def _all_nodes(one: Release, declaration: Declaration, values: Values, where: Where) -> Json:
    """All nodes of a tree with several leaves of one user, as one value with a stated sensitivity."""
    moved = one.charged(declaration.relation)
    statistic = {"kind": "stated", "l1": _at_most(moved.l1, values, where), "l2": _at_most(moved.l2, values, where)}
    return {"statistic": statistic, "mechanism": _mechanism(one, values, where), "schedule": {"kind": "once"}}


def is_stated(release: Procedure) -> bool:
    """Whether the certificate states the sensitivity of a release, which the checker does not derive."""
    if not isinstance(release, Release):
        return False
    return _write.dispatch(type(release.statistic)) is _write.dispatch(object) or _has_many_leaves(release)


_WEIGHTS: Final[Mapping[str, str]] = {"rewarded": "reward", "_bits": "reward", "_cost": "cost"}


def _table(table: CellSums, where: Where, *, pooled: bool) -> Json:
    weight = "one" if table.weight is None else _WEIGHTS.get(getattr(table.weight, "__name__", ""))
    if table.cells not in {visited, passed} or weight is None or not _is_ours(table.weight):
        raise CertificateError(f"{where}: {table.name} is not one of the tables of the form")
    states, actions = table.sizes[:2]
    sizes = {"steps": table.steps, "states": states, "actions": actions}
    return {
        "kind": "table",
        "cells": ["state", "action"] + (["next"] if table.cells is passed else []),
        "weight": weight,
        "pooled": pooled,
        **{name: term(size, where) for name, size in sizes.items()},
    }


def _is_ours(weight: Callable[..., Any] | None) -> bool:
    return weight is None or weight.__module__ == rewarded.__module__


@_write.register
def _cells(statistic: CellSums, _release: Release, _declaration: Declaration, _values: Values, where: Where) -> Json:
    return _table(statistic, where, pooled=False)


@_write.register
def _pooled(statistic: PooledSums, _release: Release, _declaration: Declaration, _values: Values, where: Where) -> Json:
    return _table(statistic.by_step, where, pooled=True)


@_write.register
def _one_step(
    statistic: OneStepEach, _release: Release, _declaration: Declaration, _values: Values, where: Where
) -> Json:
    size = statistic.table.steps
    for axis in statistic.table.sizes:
        size = size * axis
    return {"kind": "bits", "bits": term(size, where), "ones": "1"}


@_write.register
def _gram(statistic: GramMatrices, _release: Release, _declaration: Declaration, _values: Values, where: Where) -> Json:
    return _linear(statistic, _ONE, "outer", where)


@_write.register
def _features(
    statistic: FeatureSums, _release: Release, _declaration: Declaration, _values: Values, where: Where
) -> Json:
    return _linear(statistic, statistic.target.bound**statistic.power, "sum", where)


def _linear(statistic: GramMatrices | FeatureSums, target: Expr, part: str, where: Where) -> Json:
    weight = statistic.weight.bound if statistic.weight is not None else _ONE
    bounds = {"steps": statistic.steps, "feature": statistic.vector.bound, "target": target, "weight": weight}
    for name in ("feature", "target", "weight"):  # one step less where nothing is added in the last
        if (shorter := drop_last(bounds[name], statistic.steps)) is not None:
            bounds |= {name: shorter, "steps": statistic.steps - 1}
    written = {name: term(bound, where) for name, bound in bounds.items()}
    return {"kind": "linear", "features": statistic.vector.name, "part": part, "signed": False, **written}


@_write.register
def _clipped(
    statistic: ClippedSums, _release: Release, declaration: Declaration, _values: Values, where: Where
) -> Json:
    if statistic.per == "user" and declaration.relation.trajectories != _ONE:
        raise CertificateError(f"{where}: a sum of users who have several records each has no form")
    root, norm = sqrt(statistic.dimension), statistic.norm
    l1, l2 = {
        "l1": (norm, norm),
        "l2": (root * norm, norm),
        "linf": (statistic.dimension * norm, root * norm),
    }[statistic.ball]
    return {"kind": "bounded", "l1": term(l1, where), "l2": term(l2, where)}


_LAWS: Final[Mapping[type[Any], tuple[str, str]]] = {
    Laplace: ("laplace", "scale"),
    DiscreteLaplace: ("discrete-laplace", "scale"),
    Gaussian: ("gaussian", "variance"),
    DiscreteGaussian: ("discrete-gaussian", "variance"),
}


def _mechanism(release: Release, values: Values, where: Where) -> Json:
    mechanism: Mechanism = release.mechanism
    if type(mechanism) in _LAWS:
        law, spread = _LAWS[type(mechanism)]
        return {"law": law, spread: _exactly(mechanism.spread, values, where)}
    if isinstance(mechanism, SymmetricGaussian):
        variance = _exactly(mechanism.spread, values, where)
        return {"law": "gaussian-matrix", "variance": variance, "diagonal": 2 if mechanism.kind == "goe" else 1}
    if isinstance(mechanism, ShuffledBits):
        return _shuffled(release, mechanism, values, where)
    raise CertificateError(f"{where}: {mechanism.words} has no form")


def _shuffled(release: Release, mechanism: ShuffledBits, values: Values, where: Where) -> Json:
    """The noise bits of the batch with the fewest; of users who draw ⌈τ/n⌉ fair ones each there are at least ⌈τ⌉."""
    settings = release.settings(values)
    if not settings:
        raise CertificateError(f"{where}: no user is in a batch")
    fair = all(mechanism.probability.number(at) >= 1 / 2 for at in settings)
    if fair and not where.refuting and not mechanism.law.integers:
        most = math.ceil(mechanism.threshold.number(values, rounding="down"))
        return {"law": "shuffled-bits", "noise_bits": most, "chance": "1/2"}
    if where.refuting:  # in an empty batch of ones the user shows: 1 − p for each bit
        settings = (max(settings, key=lambda at: _blank(mechanism, at)),)
    if len(settings) > 1:
        raise CertificateError(f"{where}: batches of several sizes with rare bits, or with integers, have no form")
    (at,) = settings
    senders = expression(1) if mechanism.dealt else mechanism.users
    users, bits, chance = (x.rational(at) for x in (senders, mechanism.noise_bits, mechanism.probability))
    if users is None or bits is None or chance is None:
        raise CertificateError(f"{where}: {mechanism.words} has no form")
    if mechanism.law.integers:
        sizes = {"noise_bits": number(bits), "users": number(users)}
        return {"law": "shuffled-integers", **sizes, "chance": number(chance)}
    return {"law": "shuffled-bits", "noise_bits": number(bits * users), "chance": number(chance)}


def _blank(mechanism: ShuffledBits, at: Values) -> float:
    """The probability that no noise bit of the batch is 1."""
    bits = mechanism.noise_bits.number(at) * (1 if mechanism.dealt else mechanism.users.number(at))
    return math.pow(1 - mechanism.probability.number(at), bits)


def _sampled(schedule: Sampled, where: Where) -> Json:
    sampling = schedule.sampling if isinstance(schedule, Sample) else schedule
    if not isinstance(sampling, Poisson) or sampling.most is not None:
        raise CertificateError(f"{where}: {schedule.words} has no form")
    times, rate = term(sampling.rounds, where), term(sampling.rate, where)
    return {"kind": "sampled", "times": times, "rate": rate}


def _schedule(release: Release, where: Where) -> Json:
    schedule: Schedule = release.schedule
    shared = "outputs" in release.draw.across
    if isinstance(schedule, EveryEpisode):
        return {"kind": "repeat", "times": term(schedule.outputs, where), "noise": "shared" if shared else "fresh"}
    if shared and not isinstance(schedule, PerUser | Tree | Once | Batches):
        raise CertificateError(f"{where}: one draw over {schedule.words} has no form")
    if isinstance(schedule, Sampled):
        return _sampled(schedule, where)
    if isinstance(schedule, Tree):
        if schedule.leaves_of_a_user != _ONE:
            raise CertificateError(f"{where}: a tree with several leaves of one user has no form")
        return {"kind": "tree", "leaves": term(schedule.leaves, where)}
    kinds: tuple[tuple[type[Any], str], ...] = ((Once, "once"), (PerUser, "local"), (Batches, "disjoint"))
    for kind, name in kinds:
        if isinstance(schedule, kind):
            return {"kind": name}
    raise CertificateError(f"{where}: {schedule.words} has no form")


def _compared(one: AdaptiveSparseVector | GaussianNoisyMax | GaussianSparseVector, where: Where) -> Json:
    """A selection whose law has the terms of the procedure."""
    terms: dict[str, Expr]
    if isinstance(one, AdaptiveSparseVector):
        law, names = "adaptive-sparse-vector", ("threshold_scale", "top_scale", "middle_scale", "margin", "budget")
        terms = {name: getattr(one, name) for name in names} | {"queries": one.queries}
    elif isinstance(one, GaussianNoisyMax):
        if one.gap:
            raise CertificateError(f"{where}: a gap beside the winner has no form")
        law, terms = "gaussian-max", {"variance": one.std_of_noise**2, "candidates": one.candidates}
    else:
        if one.answers != "above or below":
            raise CertificateError(f"{where}: {one.answers} beside the answers have no form")
        law, terms = "gaussian-sparse-vector", {"positives": one.positives, "queries": one.queries}
        terms |= {"threshold_variance": one.threshold_std**2, "query_variance": one.query_std**2}
    mechanism = {"law": law, "one_sided": one.monotone} | {name: term(of, where) for name, of in terms.items()}
    statistic = {"kind": "selection", "moves": term(one.sensitivity, where)}
    return {"statistic": statistic, "mechanism": mechanism, "schedule": {"kind": "once"}}


def _selection(one: Procedure, where: Where) -> Json:
    if isinstance(one, AdaptiveSparseVector | GaussianNoisyMax | GaussianSparseVector):
        return _compared(one, where)
    mechanism: Json
    statistic: Json
    schedule: Json = {"kind": "once"}
    if isinstance(one, ScoredChoice | NoisyMax):
        chosen = one.noisy_max if isinstance(one, ScoredChoice) else one  # the same law
        if chosen.gap:
            raise CertificateError(f"{where}: a gap beside the winner has no form")
        scale = term(chosen.scale, where)
        mechanism = {"law": "noisy-max", "scale": scale, "noise": chosen.noise, "one_sided": chosen.monotone}
        statistic = {"kind": "selection", "moves": term(chosen.sensitivity, where)}
    elif isinstance(one, SparseVector):
        if one.answers != "above or below":
            shown = "gaps" if one.answers == "gaps" else "noisy values"
            raise CertificateError(f"{where}: {shown} beside the answers have no form")
        noise = expression(0) if one.query_scale is None else one.query_scale
        written = {"threshold_scale": term(one.threshold_scale, where), "query_scale": term(noise, where)}
        queries = term(one.queries, where)
        positives = queries if one.positives is None else term(one.positives, where)
        if one.redrawn:  # one sparse vector after the other, each until its first answer above
            schedule, positives = {"kind": "repeat", "times": positives, "noise": "fresh"}, "1"
        mechanism = {"law": "sparse-vector", **written, "positives": positives, "queries": queries}
        mechanism["one_sided"] = one.monotone
        statistic = {"kind": "selection", "moves": term(one.sensitivity, where)}
    elif isinstance(one, NoisyVotes) and one.noise == "laplace":
        mechanism = {"law": "noisy-max", "scale": term(one.spread, where), "noise": "laplace", "one_sided": False}
        statistic = {"kind": "selection", "moves": "1"}
        schedule = {"kind": "repeat", "times": term(one.queries, where), "noise": "fresh"}
    elif isinstance(one, UnaryEncoding) and same(one.kept, -one.flipped) is True:
        odds = exp(one.kept)
        keep = term((odds / (1 + odds)).simplified(), where)
        mechanism = {"law": "randomised-response", "keep": keep, "answers": "2"}
        statistic = {"kind": "bits", "bits": term(one.bits, where), "ones": term(one.ones, where)}
        schedule = {"kind": "local"}
    elif isinstance(one, RandomisedResponse):
        true = exp(one.epsilon)
        keep = term((true / (true + one.categories - 1)).simplified(), where)
        mechanism = {"law": "randomised-response", "keep": keep, "answers": term(one.categories, where)}
        statistic, schedule = {"kind": "bits", "bits": "1", "ones": "1"}, {"kind": "local"}
    elif isinstance(one, OwnMechanism):
        price = _claim(one.guarantee, where)
        currency = price.pop("currency")
        if currency == "approx":
            raise CertificateError(f"{where}: a stated price in ε and δ has no form")
        (cost,) = price.values()
        mechanism = {"law": "theorem", "cost": cost, "currency": currency, "theorem": one.source or one.name}
        statistic = {"kind": "stated", "l1": "0", "l2": "0"}
        schedule = {"kind": "local" if one.model == "local" else "once"}
    else:
        raise CertificateError(f"{where}: {one.facts.words} has no form")
    return {"statistic": statistic, "mechanism": mechanism, "schedule": schedule}
