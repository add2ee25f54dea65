"""From the events of dp-accounting; the reverse is in `privcheck.accounting.to_dp_events`.

A `DpEvent` names no neighbouring relation; dp-accounting's accountants do, by their `NeighboringRelation`. Reading an
event therefore requires the relation (`ADD_OR_REMOVE_ONE` is "add-remove", `REPLACE_SPECIAL` "zero-out", `REPLACE_ONE`
"replace-one"), with the noise multiplier in units of one user's contribution, and every event of the curve names it.

Its accountants are always used as add/remove on multipliers that are Python floats, after the sensitivity for the
declared relation has been applied here: in 0.6.0 they disagree under REPLACE_ONE, and other number types drop a
composition count under sampling. Randomised response is the exception: the accountants take it under REPLACE_ONE only.
Batches of a fixed size are converted in this direction only: those accountants read the inner multiplier as that of
replacing a member, the events' documentation as that of adding a member.

Events that 0.6.0 does not have yet, of its main branch, are read by name wherever the installed one has them:
EpsilonDelta, ExponentialMechanism, PermuteAndFlip, DiscreteGaussian, RandomAllocation. They are written there too.

| dp-accounting | here |
| --- | --- |
| Gaussian, Laplace, DiscreteLaplace, RandomizedResponse, MixtureOfGaussians | the event of that name |
| DiscreteGaussian | `discrete_gaussian`, read as a vector's unless it says dimension=1 |
| ZCDp | `zcdp(rho=, xi=)` |
| EpsilonDelta | `approximate`, or a group of such users; `pure`, and what is lost outright |
| ExponentialMechanism, PermuteAndFlip | `exponential_mechanism`, `permute_and_flip`; mechanisms of bounded range |
| RandomAllocation of Gaussians | `random_allocation`; of anything else, this direction only, `allocated` |
| PoissonSampled | `poisson_gaussian`, `poisson`; the rates of nested samples multiply |
| SampledWithoutReplacement, this direction only | `without_replacement`, a member of the batch being replaced |
| SampledWithReplacement of Gaussians | `with_replacement` |
| TruncatedSubsampledGaussian | `truncated_poisson_gaussian`, the larger data set has one more user |
| SingleEpochTreeAggregation | `tree` of Gaussian nodes, the largest of its trees |
| RepeatAndSelect | `repeat_and_select` |
| NoOp, no repetitions, no sampling, infinite noise | nothing |
| NonPrivate, no noise | `non_private`: ε = ∞ |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.engine.laws import GaussianLaw
from privcheck.accounting.events import (
    Event,
    allocated,
    approximate,
    discrete_gaussian,
    discrete_laplace,
    exponential_mechanism,
    gaussian,
    laplace,
    mixture_of_gaussians,
    non_private,
    permute_and_flip,
    poisson,
    poisson_gaussian,
    random_allocation,
    randomized_response,
    tree,
    truncated_poisson_gaussian,
    with_replacement,
    without_replacement,
    zcdp,
)
from privcheck.accounting.events.base import PRESENT, REPLACING, one_relation, under
from privcheck.accounting.events.base import event as composed_event
from privcheck.accounting.groups import group
from privcheck.accounting.reals import Real, real, whole
from privcheck.accounting.repeating import repeat_and_select
from privcheck.errors import ParameterError
from privcheck.terms.unit import RelationName

_UP: Final = 1 + 4e-16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Neighbours:
    """Difference between neighbours.

    Attributes:
        relation: Name of the relation.
        moved: Sensitivity of a sum, in clipping norms of one user's contribution.
    """

    relation: RelationName
    moved: float


@under(*PRESENT, *REPLACING)
def from_dp_event(event: Any, *, relation: RelationName, sensitivity: Real | None = None) -> Curve:
    """Convert a dp-accounting event to a curve, priced under a relation.

    Args:
        event: An event of the table above, or a composition of them.
        relation: "add-remove", "zero-out", "replace-one" or "replace-one-same-start", which every event of the curve
            then names.
        sensitivity: Sensitivity of the sum, in clipping norms. None is the bound from clipping alone: 1 where a user
            contributes or contributes nothing, 2 where one user is replaced by another; some sums have less, such as √2
            for a histogram. Noise is relative to it. Events that only state a guarantee (zCDP, EpsilonDelta, an
            exponential mechanism, permute-and-flip) are charged by group privacy for that many neighbours, rounded up.
            Randomised response already means replacing the user's answer. Samples and mixtures have
            contributions of one clipping norm, and take no other sensitivity than the relation's.

    Raises:
        ParameterError: The relation is missing, the event is unsupported, or one of its numbers is out of range.

    >>> import dp_accounting as dp
    >>> step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
    >>> curve = from_dp_event(dp.SelfComposedDpEvent(step, 1000), relation="add-remove")
    >>> round(curve.epsilon(delta=1e-5).value, 4), curve.relation
    (1.8282, 'add-remove')
    """
    clipped = _clipped(relation)
    pair = _Neighbours(relation=relation, moved=clipped if sensitivity is None else real("sensitivity", sensitivity))
    return compose(*(replace(one, relation=relation) for one in _read(event, pair, 1)))


def _clipped(relation: RelationName) -> float:
    """Largest sensitivity of a sum of clipped contributions, in clipping norms."""
    return 2.0 if relation in REPLACING else 1.0


def _read(event: Any, pair: _Neighbours, count: int) -> list[Event]:  # noqa: PLR0911 - one return an event class
    import dp_accounting as dp

    if isinstance(event, dp.SelfComposedDpEvent):
        times = whole("count", event.count, least=0)
        inner = _read(event.event, pair, count * max(times, 1))  # also checked where it never runs
        return inner if times > 0 else []
    if isinstance(event, dp.ComposedDpEvent):
        return [each for part in event.events for each in _read(part, pair, count)]
    if isinstance(event, dp.PoissonSampledDpEvent):
        return _sample(dp, event, pair, count)
    if isinstance(event, dp.dp_event.SampledWithoutReplacementDpEvent):
        return _batch(event, pair, count)
    if isinstance(event, dp.dp_event.SampledWithReplacementDpEvent):
        return _draw(event, pair, count)
    if isinstance(event, dp.dp_event.RepeatAndSelectDpEvent):
        return _select(event, pair, count)
    name = type(event).__name__
    if name == "RandomAllocationDpEvent" and type(event) is getattr(dp.dp_event, name, None):
        return _allocate(event, pair, count)
    if name in _READERS and type(event) is getattr(dp.dp_event, name, None):
        single = _READERS[name](event, pair)
        return [] if single is None else [count * single]
    if isinstance(event, dp.dp_event.DpEvent):
        message = f"no curve for this dp-accounting event: {event!r}"
        message += "; give a known bound instead: renyi_curve, privacy_profile, zcdp or pure"
        raise ParameterError(message, name="event", given=event)
    raise ParameterError(f"expected an event of dp-accounting, got {event!r}", name="event", given=event)


def _gaussian(event: Any, pair: _Neighbours) -> Event | None:
    std = _noise(event.noise_multiplier)
    return _or_edge(std, lambda: gaussian(std=std, sensitivity=pair.moved))


def _laplace(event: Any, pair: _Neighbours) -> Event | None:
    scale = _noise(event.noise_multiplier)
    return _or_edge(scale, lambda: laplace(scale=scale, sensitivity=pair.moved))


def _discrete_gaussian(event: Any, pair: _Neighbours) -> Event | None:
    """Convert discrete Gaussian noise; a vector moves in the worst direction, which an integer length hides."""
    moved = real("sensitivity", event.sensitivity, strict=False) * pair.moved
    dimension = None if event.dimension is None else whole("dimension", event.dimension)
    std = _noise(event.sigma, name="sigma")
    if moved == 0:
        return None
    if dimension != 1 and moved == int(moved):
        moved = math.nextafter(moved, math.inf)  # no integer any more: `discrete_gaussian` reads a vector's length
    return _or_edge(std, lambda: discrete_gaussian(std=std, sensitivity=moved))


def _tree(event: Any, pair: _Neighbours) -> Event | None:
    """Convert the largest of the trees: a record is in one of them, once."""
    steps = [whole("step_counts", t, least=0) for t in np.ravel(event.step_counts).tolist()]
    std = _noise(event.noise_multiplier)
    if max(steps, default=0) == 0:
        return None
    return _or_edge(
        std, lambda: tree(node=gaussian(std=std, sensitivity=pair.moved), leaves=max(steps), participations=1)
    )


def _discrete_laplace(event: Any, pair: _Neighbours) -> Event | None:
    """Convert discrete Laplace noise; at parameter 0 there is no such law, and dp-accounting calls it non-private."""
    steps = whole("sensitivity", event.sensitivity, least=0) * pair.moved
    if steps != int(steps):
        message = f"discrete Laplace noise is for integers: expected sensitivity·{event.sensitivity} as an integer"
        raise ParameterError(f"{message}, got {steps:g}", name="sensitivity", given=pair.moved)
    parameter = real("noise_parameter", event.noise_parameter, strict=False)
    if steps == 0:
        return None
    if parameter == 0:
        return non_private()
    return discrete_laplace(scale=math.nextafter(1 / parameter, 0.0), sensitivity=int(steps))


def _response(event: Any, _: _Neighbours) -> Event | None:
    p, m = real("noise_parameter", event.noise_parameter, strict=False, most=1), whole("num_buckets", event.num_buckets)
    if m == 1 or p == 1:
        return None
    if p == 0:
        return non_private()
    # the ratio is 1 + m(1 − p)/p; where that overflows 1 is nothing beside it
    ratio = m * ((1 - p) / p)
    epsilon = math.log1p(ratio) if ratio < math.inf else math.log(m) + math.log1p(-p) - math.log(p)
    return randomized_response(epsilon=epsilon * _UP, categories=m)


def _zcdp(event: Any, pair: _Neighbours) -> Event | None:
    """Convert zCDP, for k neighbours: (ξ·k·Σ1/i, k²ρ)-zCDP (Bun & Steinke 2016, Proposition 1.9)."""
    rho, xi, k = real("rho", event.rho, strict=False), real("xi", event.xi, strict=False), math.ceil(pair.moved)
    if k == 1:
        return zcdp(rho=rho, xi=xi)
    return zcdp(rho=k * k * rho * _UP, xi=k * math.fsum(1 / i for i in range(1, k + 1)) * xi * _UP)


def _epsilon_delta(event: Any, pair: _Neighbours) -> Event | None:
    """Convert (ε, δ)-DP; of k neighbours by the profile of one."""
    epsilon, delta = _guaranteed(event), real("delta", event.delta, strict=False, most=1)
    if epsilon == math.inf or delta == 1:
        return non_private()
    return group(approximate(epsilon=epsilon, delta=delta), size=math.ceil(pair.moved))


def _exponential(event: Any, pair: _Neighbours) -> Event | None:
    """Convert the exponential mechanism; the ranges of a chain of k neighbours add up."""
    epsilon = _guaranteed(event)
    return non_private() if epsilon == math.inf else exponential_mechanism(epsilon=_of_all(epsilon, pair))


def _permute(event: Any, pair: _Neighbours) -> Event | None:
    """Convert permute-and-flip, which is ε-DP and not of bounded range.

    That its curve is at most that of Laplace noise, as dp-accounting charges it, has no proof here.
    """
    epsilon = _guaranteed(event)
    return non_private() if epsilon == math.inf else permute_and_flip(epsilon=_of_all(epsilon, pair))


def _guaranteed(event: Any) -> float:
    return math.inf if event.epsilon == math.inf else real("epsilon", event.epsilon, strict=False)


def _of_all(epsilon: float, pair: _Neighbours) -> float:
    """ε of k neighbours, rounded up; twice a float is a float."""
    k = math.ceil(pair.moved)
    return k * epsilon * (_UP if k > 2 else 1)


def _mixture(event: Any, pair: _Neighbours) -> Event | None:
    _only_clipped("mixtures", pair)
    std = _noise(event.standard_deviation, name="standard_deviation")
    sizes = list(event.sensitivities)
    if all(s == 0 for s in sizes):
        return None
    probabilities = list(event.sampling_probs)

    def made() -> Event:
        return mixture_of_gaussians(std=std, sensitivities=sizes, probabilities=probabilities, relation=pair.relation)

    return _or_edge(std, made)


def _truncate(event: Any, pair: _Neighbours) -> Event | None:
    """Convert a truncated Poisson sample; under adding a user the larger data set has one more user."""
    _only_clipped("Poisson samples", pair)
    rate = real("sampling_probability", event.sampling_probability, strict=False, most=1)
    n, most = (whole(x, getattr(event, x), least=0) for x in ("dataset_size", "truncated_batch_size"))
    std = _noise(event.noise_multiplier)
    if rate == 0 or most == 0:
        return None

    def made() -> Event:
        return truncated_poisson_gaussian(std=std, rate=rate, users=n + 1, most=most, relation=pair.relation)

    return _or_edge(std, made)


def _draw(event: Any, pair: _Neighbours, count: int) -> list[Event]:
    """Convert a batch drawn with replacement, with contributions of one clipping norm."""
    _only_clipped("batches drawn with replacement", pair)
    n, m = whole("source_dataset_size", event.source_dataset_size), whole("sample_size", event.sample_size, least=0)
    parts = _read(event.event, replace(pair, moved=1.0), 1)
    if m == 0 or not parts:
        return []
    if any(part.kind == "non_private" for part in parts):
        return [non_private()]
    std = _std(_together(parts))
    if std is None:
        message = f"no curve for a batch drawn with replacement of {event.event!r}; expected Gaussians"
        raise ParameterError(message, name="event", given=event)
    return [with_replacement(std=std, users=n, draws=m, relation=pair.relation, count=count)]


def _sample(dp: Any, event: Any, pair: _Neighbours, count: int) -> list[Event]:
    """Convert a Poisson sample: the rates of nested samples multiply; Gaussians on the same sample become one."""
    _only_clipped("Poisson samples", pair)
    rate, inner = real("sampling_probability", event.sampling_probability, strict=False, most=1), event.event
    while isinstance(inner, dp.PoissonSampledDpEvent):
        rate *= real("sampling_probability", inner.sampling_probability, strict=False, most=1)
        rate = min(rate * _UP, 1.0)
        inner = inner.event
    if rate == 1:
        return _read(inner, pair, count)
    # inside a sample a user is in it or is not, whatever the relation of the data: two users of one are priced there
    parts = _read(inner, replace(pair, moved=1.0), 1)
    if rate == 0 or not parts:
        return []
    if any(part.kind == "non_private" for part in parts):
        return [non_private()]
    one = _together(parts)
    if (std := _std(one)) is not None:
        return [poisson_gaussian(std=std, rate=rate, relation=pair.relation, count=count)]
    # two users of one, with nothing more known of the mechanism than at twice the distance
    other = _together(_read(inner, pair, 1)) if pair.relation in REPLACING else None
    return [poisson(event=one, rate=rate, relation=pair.relation, replaced=other, count=count)]


def _allocate(event: Any, pair: _Neighbours, count: int) -> list[Event]:
    """Convert k random rounds of t, an epoch; each repetition is another epoch."""
    _only_clipped("random allocations", pair)
    t = whole("num_steps", event.num_steps)
    k = whole("num_selected", event.num_selected, least=0, most=t)
    parts = _read(event.event, replace(pair, moved=1.0), 1)
    if k == 0 or not parts:
        return []
    if any(part.kind == "non_private" for part in parts):
        return [non_private()]
    one = _together(parts)
    if (std := _std(one)) is not None:
        return [random_allocation(std=std, rounds=t, participations=k, epochs=count, relation=pair.relation)]
    return [allocated(event=one, rounds=t, participations=k, epochs=count, relation=pair.relation)]


def _together(parts: list[Event]) -> Event:
    """Join events on one sample into one event."""
    if len(parts) == 1 and parts[0].count == 1:
        return parts[0]
    laws = [(piece, times * part.count) for part in parts for piece, times in part.pieces]
    notes = "; ".join(sorted({part.note for part in parts} - {""}))
    given = " + ".join(str(part) for part in parts)
    return composed_event("composition", laws, 1, notes, of=given, relation=one_relation(parts))


def _std(one: Event) -> float | None:
    """Std of the noise if the event is one Gaussian release; None otherwise."""
    squares = [piece.mu_squared * times for piece, times in one.pieces if isinstance(piece, GaussianLaw)]
    return 1 / math.sqrt(math.fsum(squares)) if len(squares) == len(one.pieces) else None


def _batch(event: Any, pair: _Neighbours, count: int) -> list[Event]:
    """Convert a batch of a fixed size: a member is replaced by another, a sensitivity of two clipping norms."""
    _only_clipped("batches", pair)
    n = whole("source_dataset_size", event.source_dataset_size)
    b = whole("sample_size", event.sample_size, least=0, most=n)
    swapped: RelationName = pair.relation if pair.relation in REPLACING else "replace-one"
    parts = _read(event.event, _Neighbours(relation=swapped, moved=2.0), 1)
    if b == 0 or not parts:
        return []
    if any(part.kind == "non_private" for part in parts):
        return [non_private()]
    one = _together(parts)
    return [without_replacement(event=one, users=n, batch=b, relation=pair.relation, count=count)]


def _select(event: Any, pair: _Neighbours, count: int) -> list[Event]:
    """Convert the best of a random number of runs: Poisson at shape ∞, else truncated negative binomial."""
    mean, runs = real("mean", event.mean), _read(event.event, pair, 1)
    poisson = event.shape == math.inf
    shape = 0.0 if poisson else real("shape", event.shape, least=-1)
    if not poisson and mean < 1:
        message = f"expected a mean of at least 1 for a truncated number of runs, got {mean:g}"
        raise ParameterError(message, name="mean", given=event.mean)
    if not runs:
        return []
    if any(run.kind == "non_private" for run in runs):
        return [non_private()]
    if mean == 1 and not poisson:  # one run, always
        return [count * run for run in runs]
    one = compose(*runs)
    if poisson:
        return [count * repeat_and_select(one, mean=mean, law="poisson")]
    return [count * repeat_and_select(one, mean=mean, law="negative binomial", shape=shape)]


def _noise(value: object, *, name: str = "noise_multiplier") -> float:
    return math.inf if value == math.inf else real(name, value, strict=False)


def _or_edge(noise: float, made: Callable[[], Event]) -> Event | None:
    """Make the event; without noise ε is ∞, with infinite noise nothing leaks."""
    if noise == 0:
        return non_private()
    return None if noise == math.inf else made()


def _only_clipped(what: str, pair: _Neighbours) -> None:
    """Check that the sensitivity is that of the relation: sampling applies it per sampled user."""
    if pair.moved != _clipped(pair.relation):
        message = f"{what} have contributions of one clipping norm: under {pair.relation!r} expected sensitivity "
        message += f"{_clipped(pair.relation):g}, got {pair.moved:g}; leave it out"
        raise ParameterError(message, name="sensitivity", given=pair.moved)


# by name: the installed dp-accounting may not have all of them yet
_READERS: Final[dict[str, Callable[[Any, _Neighbours], Event | None]]] = {
    "NoOpDpEvent": lambda *_: None,
    "NonPrivateDpEvent": lambda *_: non_private(),
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "RandomizedResponseDpEvent": _response,
    "ZCDpEvent": _zcdp,
    "EpsilonDeltaDpEvent": _epsilon_delta,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "MixtureOfGaussiansDpEvent": _mixture,
    "TruncatedSubsampledGaussianDpEvent": _truncate,
}
