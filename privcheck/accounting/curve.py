"""Privacy curve of a composition: ε at δ, δ at ε, attack terms; tight values, each with a certified bound."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from privcheck.accounting import attack_risks
from privcheck.accounting.answers import NAMES, WAYS, Answers, deltas_at, epsilons_at, fetch_job
from privcheck.accounting.combining import combine
from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.accounting.engine.job import Job
from privcheck.accounting.engine.laws import Direction, Floats, as_floats
from privcheck.accounting.engine.methods import GAUSSIAN, Errs
from privcheck.accounting.events import Event
from privcheck.accounting.events.base import one_relation
from privcheck.accounting.figures import Figure, Figures
from privcheck.accounting.lower_bounds import delta_below, epsilon_below, known_below
from privcheck.accounting.reals import Real, real, reals
from privcheck.errors import ParameterError
from privcheck.terms.unit import RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Privacy curve δ(ε) of a composition: the largest over branches and over directions of asymmetric pairs.

    Attributes:
        branches: Composed events, one tuple for every group of users that sees only them.
        relation: Relation under which all events are priced; None where no event names one.

    Raises:
        ParameterError: Two events name different relations.
    """

    branches: tuple[tuple[Event, ...], ...]
    relation: RelationName | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", one_relation(event for branch in self.branches for event in branch))

    def epsilon(self, *, delta: Real) -> Figure:
        """Compute the least ε with δ(ε) ≤ δ, in nats.

        Args:
            delta: In [0, 1]. At 0 the result is ε of pure DP, ∞ where there is none; at 1 it is 0.

        Raises:
            ParameterError: δ is out of range.

        >>> from privcheck import accounting as acc
        >>> curve = acc.compose(acc.gaussian(std=30, count=1000), acc.laplace(scale=50, count=500))
        >>> figure = curve.epsilon(delta=1e-6)
        >>> round(figure.value, 9), figure.method, figure.upper >= figure.value
        (5.701137909, 'contour integral', True)
        """
        at = real("delta", delta, strict=False, most=1)
        if at == 1:
            nothing = Figure(value=0.0, method="every mechanism is (0, 1)-DP", direction="exact", _certify=lambda: 0.0)
            return self._under(nothing)
        return self._under(_largest([_note(_epsilon(branch, at), branch) for branch in self.branches]))

    def delta(self, *, epsilon: Real) -> Figure:
        """Compute δ(ε).

        Args:
            epsilon: In nats, at least 0.

        Raises:
            ParameterError: ε is out of range.
        """
        at = real("epsilon", epsilon, strict=False)
        return self._under(_largest([_note(_delta_at(branch, at), branch) for branch in self.branches]))

    def epsilons(self, deltas: ArrayLike) -> Figures:
        """Compute ε at many δ in (0, 1), with the same values as `epsilon`."""
        given = reals("deltas", deltas, below=1.0)
        return _figures([epsilons_at(b, given.ravel()) for b in self.branches], self, given.shape)

    def deltas(self, epsilons: ArrayLike) -> Figures:
        """Compute δ at many ε ≥ 0, with the same values as `delta`."""
        given = reals("epsilons", epsilons, below=math.inf)
        return _figures([deltas_at(b, given.ravel()) for b in self.branches], self, given.shape)

    def __mul__(self, times: object) -> Curve:
        """Repeat the curve `times` times; the groups of `parallel` are the same in all repetitions."""
        return Curve(branches=tuple(sorted({tuple(e * times for e in b) for b in self.branches}, key=str)))

    __rmul__ = __mul__

    def __add__(self, other: Event | Curve) -> Curve:
        """Compose both on the same data, as `compose` does."""
        return compose(self, other)

    def __radd__(self, other: object) -> Curve:
        """Add the curve to the 0 at which `sum` begins."""
        if isinstance(other, int) and other == 0:
            return self
        raise ParameterError(f"expected events or curves on both sides of +, got {other!r}", name="other", given=other)

    def advantage(self) -> Figure:
        """Largest excess of an attacker's true-positive rate over the false-positive rate: δ(0)."""
        return self.delta(epsilon=0)

    def true_positive_rate(self, false_positive_rate: Real) -> Figure:
        """Largest power of a test of the given level that tells the neighbours apart, rounded up.

        See `privcheck.accounting.attack_risks` for this and the next four methods.

        >>> from privcheck import accounting as acc
        >>> curve = acc.compose(acc.gaussian(std=2))
        >>> round(curve.true_positive_rate(0.01).value, 4), round(curve.trade_off(0.01).value, 4)
        (0.0339, 0.9661)
        >>> round(curve.bayes_risk(0.5).value, 4), round(curve.reconstruction_rate(0.1).value, 4)
        (0.4013, 0.2172)
        >>> round(curve.posterior(0.5, false_positive_rate=0.01).value, 4)
        0.7722
        """
        return self._under(attack_risks.true_positive_rate(self, false_positive_rate))

    def trade_off(self, false_positive_rate: Real) -> Figure:
        """Least type II error of a test of the given level, rounded down."""
        return self._under(attack_risks.trade_off(self, false_positive_rate))

    def bayes_risk(self, prior: Real) -> Figure:
        """Least probability of guessing the wrong one of two neighbours, at a prior; rounded down."""
        return self._under(attack_risks.bayes_risk(self, prior))

    def posterior(self, prior: Real, *, false_positive_rate: Real) -> Figure:
        """Largest probability of a neighbour after a positive test of that level or above, rounded up."""
        return self._under(attack_risks.posterior(self, prior, false_positive_rate=false_positive_rate))

    def reconstruction_rate(self, prior: Real) -> Figure:
        """Largest probability of reconstructing a user's data, rounded up."""
        return self._under(attack_risks.reconstruction_rate(self, prior))

    def renyi_divergence(self, order: Real) -> Figure:
        """D_α, the larger of both directions, in nats, rounded up; ∞ where mass is lost outright.

        Args:
            order: α, above 1.

        Raises:
            ParameterError: α is out of range.

        >>> from privcheck import accounting as acc
        >>> round(acc.compose(acc.gaussian(std=2, count=4)).renyi_divergence(10).value, 9)
        5.0
        """
        z = real("order", order, least=1) - 1
        value = float(cumulants_of(self, np.array([z]))[0]) / z
        how = "sum of Rényi divergences"
        return self._under(Figure(value=value, method=how, direction="upper", _certify=lambda: value))

    def _under(self, figure: Figure) -> Figure:
        return figure if figure.relation == self.relation else replace(figure, relation=self.relation)


def compose(*parts: Event | Curve | Iterable[Event | Curve]) -> Curve:
    """Compose events, or curves, adaptively on the same data; order does not matter.

    Each event's action may depend on earlier outputs, the *choice* of events may not. Composing events that were chosen
    adaptively, and comparing with (ε, δ) each time, allows up to twice the δ: use a `Filter` there.

    Args:
        parts: Events and curves, one by one or in lists; `a + b`, `3 * a` and `sum([a, b])` are equivalent.

    Raises:
        ParameterError: A part is neither an event nor a curve, or two parts are priced under different relations.

    >>> from privcheck import accounting as acc
    >>> a, b = acc.gaussian(std=30), acc.laplace(scale=50)
    >>> acc.compose([a, b, b]) == acc.compose(a, 2 * b) == sum([a, b, b]) == a + b + b
    True
    """
    branches = [part.branches if isinstance(part, Curve) else ((_check(part),),) for part in _flat(parts)]
    if len(branches) == 1 and len(branches[0]) == 1 and len(branches[0][0]) == 1:
        return Curve(branches=branches[0])
    merged = {combine([e for branch in chosen for e in branch]) for chosen in itertools.product(*branches)}
    return Curve(branches=tuple(sorted(merged, key=str)) if len(merged) > 1 else tuple(merged))


def parallel(*parts: Event | Curve) -> Curve:
    """Curve of events, or curves, each on other users' data: the largest, not the sum (McSherry 2009).

    Lemma parallel: Events on disjoint users, none assigned to a part by data that may be replaced, cost as much as the
    dearest. Source: McSherry 2009. Proof: under a relation that changes one user, only one part sees the change.

    Raises:
        ParameterError: A part is neither an event nor a curve, there are no parts, or two parts are priced under
            different relations.
    """
    if not parts:
        raise ParameterError("expected at least one event or curve for parallel, got none", name="parts")
    curves = [part if isinstance(part, Curve) else compose(part) for part in parts]
    return Curve(branches=tuple(sorted({b for curve in curves for b in curve.branches}, key=str)))


def _flat(parts: Iterable[object]) -> Iterator[object]:
    """Flatten nested lists of parts."""
    for part in parts:
        if isinstance(part, Event | Curve | str) or not isinstance(part, Iterable):
            yield part
        else:
            yield from _flat(part)


def _check(part: object) -> Event:
    if not isinstance(part, Event):
        message = f"expected events such as gaussian(std=30), or curves, got {part!r}"
        raise ParameterError(message, name="parts", given=part)
    return part


def cumulants_of(curve: Curve, z: Floats) -> Floats:
    """Compute (m,) K(z) = z·D_{1+z}, of the worse direction and rounded up, at (m,) z; ∞ where mass is lost."""
    jobs = [fetch_job(branch) for branch in curve.branches]
    cumulants = [_cumulants(job, z, direction) for job in jobs for direction in job.directions]
    return as_floats(np.maximum.reduce(cumulants))


def _cumulants(job: Job, z: Floats, direction: Direction) -> Floats:
    if job.lost < 0 or job.infinite(direction) > 0:
        return np.full(len(z), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        k = job.divergences(z, direction) * (1 + 1e-12) + job.bound_rounding(z, direction)
    return np.maximum(np.where(np.isnan(k), np.inf, k), 0.0)


@functools.lru_cache(maxsize=1024)
def _epsilon(branch: tuple[Event, ...], delta: float) -> Figure:
    if (job := fetch_job(branch)).gaussian and delta > 0:  # by far the most frequent question, without arrays
        return _gaussian(gdp_epsilon(math.sqrt(job.mu_squared), delta))
    answers = epsilons_at(branch, np.array([delta]))
    reason = ""
    if math.isinf(answers.values[0]):
        lost = -math.expm1(fetch_job(branch).lost)
        if fetch_job(branch).hopeless:
            reason = "μ², ρ or ε of the composition overflows: the noise is too small"
        elif delta == 0:
            reason = "no pure DP: δ = 0"
        elif delta < lost:
            reason = f"δ = {delta:g} is below the δ = {lost:g} that is lost outright"
        else:
            reason = "δ is below the probability of an output that reveals a user"
    figure = _figure(answers, reason)
    if not known_below(branch):
        return figure
    return replace(figure, _refute=lambda: epsilon_below(branch, delta, figure.upper))


@functools.lru_cache(maxsize=1024)
def _delta_at(branch: tuple[Event, ...], epsilon: float) -> Figure:
    if (job := fetch_job(branch)).gaussian:
        return _gaussian(gdp_delta(math.sqrt(job.mu_squared), epsilon))
    figure = _figure(deltas_at(branch, np.array([epsilon])), "")
    return figure if not known_below(branch) else replace(figure, _refute=lambda: delta_below(branch, epsilon))


def _gaussian(value: float) -> Figure:
    return Figure(value=value, method=GAUSSIAN.name, direction=GAUSSIAN.errs, _certify=lambda: value)


def _note(figure: Figure, branch: tuple[Event, ...]) -> Figure:
    """Add the notes of the events to a figure; exact arithmetic on a bound (a noted event) is a bound."""
    if not _notes(branch):
        return figure
    reason = "; ".join(part for part in (figure.reason, _notes(branch)) if part)
    method, direction = _name(figure.method, branch), _weaken_direction(figure.direction, branch)
    return replace(figure, method=method, direction=direction, reason=reason)


def _notes(branch: tuple[Event, ...]) -> str:
    return "; ".join(sorted({event.note for event in branch if event.note}))


def _name(method: str, branch: tuple[Event, ...]) -> str:
    notes = _notes(branch)
    return f"{method}, {notes}" if notes else method


def _weaken_direction(direction: Errs, branch: tuple[Event, ...]) -> Errs:
    return "upper" if direction == "exact" and _notes(branch) else direction


def _figure(answers: Answers, reason: str) -> Figure:
    value = float(answers.values[0])
    how = answers.method
    return Figure(value=value, method=how, direction=answers.direction, reason=reason, _certify=lambda: value)


def _figures(answers: Sequence[Answers], curve: Curve, shape: tuple[int, ...]) -> Figures:
    """Take the largest over the branches, with the method and direction of each value as for single points."""
    values = np.stack([f.values for f in answers])
    top = values.argmax(axis=0)
    index = np.arange(values.shape[1])
    pairs = list(zip(answers, curve.branches, strict=True))
    methods = np.stack([np.array([_name(name, b) for name in NAMES])[f.how] for f, b in pairs])[top, index]
    directions = np.stack([np.array([_weaken_direction(way, b) for way in WAYS])[f.errs] for f, b in pairs])[top, index]
    worst: Errs = next((way for way in WAYS if way in directions), "exact")
    return Figures(
        values=values[top, index].reshape(shape),
        method="; ".join(dict.fromkeys(methods.tolist())),
        direction=worst,
        methods=methods.reshape(shape),
        directions=directions.reshape(shape),
        relation=curve.relation,
    )


def _largest(figures: Sequence[Figure]) -> Figure:
    if len(figures) == 1:
        return figures[0]
    top = max(figures, key=lambda f: f.value)

    @functools.cache
    def certify() -> float:
        return max(f.upper for f in figures)

    known = [figure for figure in figures if figure.bounded_below]
    return replace(top, _certify=certify, _refute=(lambda: max(f.lower for f in known)) if known else None)
