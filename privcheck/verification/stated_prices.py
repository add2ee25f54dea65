"""Tests of the privacy costs that authors state: for their own mechanisms, and for additive noise of their own law.

A cost is compared with the loss of pairs of neighbours that have exactly known output laws, at the given parameters and
at others in their ranges; draws are compared with the density that is said to be drawn. A contradiction is an error
that names the pair and the parameters. A cost that survives is still only stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting import compose
from privcheck.accounting.events import Event
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import LAWS, PRICED, Noise, lacks
from privcheck.declare.procedures import Cost, OwnMechanism
from privcheck.declare.procedures.base import Outcomes
from privcheck.declare.procedures.mixtures import Mixture
from privcheck.declare.procedures.own_mechanism import OwnRuns
from privcheck.declare.releases import Release
from privcheck.declare.statistics import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Parameter
from privcheck.terms.symbols import Expr, expression, sqrt
from privcheck.verification.outcome_loss import LossSums, pure_loss, rho_loss
from privcheck.verification.stated_sensitivities import Tried

Comparison = Callable[..., None]  # raises a DeclarationError where a pair loses more than `near` times what is stated

_DRAWN: Final = 200_000  # outputs on each of two neighbours, compared with the density
_DRAWN_OF_FEW: Final = 1_000_000  # the same where all outputs are listed: a wrong scale of a flat law is faint
_DRAWN_ELSEWHERE: Final = 20_000  # the same at other parameters
_FEW: Final = 2_000  # of them at other parameters, where only the ratio of densities is looked at
_FAILURE: Final = 1e-11  # probability that one comparison accuses a sampler that draws its density
_PART: Final = (0.0123456789, 0.9876543211)  # nats: losses of which draws on D and on D′ are compared
_DEEP: Final = 12.0  # nats below its largest value at which ln of a density is cut off, whose mean is compared
_INEXACT: Final = 1e-4  # of that mean, where masses of cells are integrated; and relative, of a cell's mass
_BEYOND: Final = 1e-6  # mass that may lie beyond the edges or in a cell that is not resolved
_REPEATED: Final = 10  # equal outputs among draws from a density
_EQUALS: Final = 1000  # equal outputs that are compared with a probability where nothing says what the outputs are
_NEAR: Final = 1 + 1e-6  # of a law that is told by its author's own floats
_FAR_FROM: Final = 1 + 1e-3  # the same at other parameters, where cells and edges were not chosen for the purpose
_LEAST: Final = 1e-8  # mass of a cell that is told apart, of a law that only its distribution function tells
_DELTAS: Final = (1e-1, 1e-3, 1e-6)
_MOST_ELSEWHERE: Final = 24  # settings of the parameters at which a price is tried beside the given ones
_COUNTED: Final = 64  # up to which counts are tried: outputs may be as many as 2 to the power of one
# what a class may hold that draws a known law in its own way
_DRAWING: Final = frozenset({"add", "draw"})
_SHIFTS: Final = (Fraction(1), Fraction(1, 4), Fraction(1, 20))  # of the ℓ∞ sensitivity


def try_prices(declaration: Declaration, values: Mapping[str, Fraction]) -> tuple[Tried, ...]:
    """Test all costs that authors state, and return what was tried without a contradiction.

    Raises:
        DeclarationError: A pair loses more than is stated, or a sampler does not draw its density.
    """
    own = [one for one in declaration.releases if isinstance(one, OwnMechanism)]
    noisy = [one for one in declaration.noisy if type(one.mechanism) not in PRICED]
    return (
        *(try_mechanism(declaration, one, values) for one in own),
        *(try_noise(declaration, one, values) for one in noisy if not hasattr(one.mechanism, "declared")),
    )


def try_mechanism(declaration: Declaration, one: OwnMechanism, values: Mapping[str, Fraction]) -> Tried:
    """Test an author's own mechanism, and return what was tried without a contradiction of its cost.

    Raises:
        DeclarationError: Something contradicts it.
    """
    cost, events = one.cost(declaration.relation), one.events(declaration.relation, values)
    pairs = one.pairs(declaration.relation, values)
    at, rng, tried = one.at(values), np.random.default_rng(0), 0
    size = _DRAWN if one.outputs is None else _DRAWN_OF_FEW
    for place, known in enumerate(pairs):
        assert isinstance(known.sampler, OwnRuns)
        # the same neighbours in the other order have the same faults
        drawn = any(known.data[0] is q and known.data[1] is p for p, q in (earlier.data for earlier in pairs[:place]))
        if not drawn and (fault := _find_fault(one, known.sampler, at, rng, size)):
            raise DeclarationError(f"{one.name}: {fault}")
        if known.outcomes is not None:
            _check_price((one.name, known.words), (known.outcomes, 1), cost, events, values, near=_NEAR)
            tried += 1
        elif cost.pure is not None:
            worst = _worst_at_points(one, known.sampler, rng, _DRAWN)
            _check_points(one.name, known.words, worst, cost.pure.number(values, rounding="up"), near=_NEAR)
            tried += 1
    if (crowd := one.draw_crowd(at)) is not None and (why := _differ(one, one.draw(rng, crowd, _DRAWN, at), crowd, at)):
        said = f"the draws of its sampler do not have the density of its log_density, on {crowd!s:.120}: {why}"
        raise DeclarationError(f"{one.name}: {said}")
    how = "the laws of its outputs against the price, its sampler against its density"
    if one.outputs is None and one.edges is None:
        how += " by its losses and repeated outputs, not by its scale: that takes `outputs` or `edges`"
    if not tried:
        how = (
            "give `neighbours`, or `records`"
            if not pairs
            else "give all its `outputs`, or `edges` between which they lie"
        )
    if tried:
        how += _try_elsewhere(declaration, one.facts.symbols, values, lambda at: _compare_laws(declaration, one, at))
    return Tried(release=one.name, statistic=one.name, pairs=tried, how=how, of="price")


def _compare_laws(declaration: Declaration, one: OwnMechanism, values: Mapping[str, Fraction]) -> list[Comparison]:
    """Comparisons of a mechanism's cost with the losses of its pairs: by exact laws, or at drawn outputs."""
    cost, events = one.cost(declaration.relation), one.events(declaration.relation, values)
    found: list[Comparison] = []
    at, rng = one.at(values), np.random.default_rng(0)
    for number, known in enumerate(one.pairs(declaration.relation, values)):
        assert isinstance(known.sampler, OwnRuns)
        if number == 0 and (fault := _find_fault(one, known.sampler, at, rng, _DRAWN_ELSEWHERE)):
            found.append(partial(_accuse, f"{one.name}: {fault}"))
        if known.outcomes is not None:
            found.append(partial(_check_price, (one.name, known.words), (known.outcomes, 1), cost, events, values))
        elif cost.pure is not None:
            worst = _worst_at_points(one, known.sampler, np.random.default_rng(0), _FEW)
            epsilon = cost.pure.number(values, rounding="up")
            found.append(partial(_check_points, one.name, known.words, worst, epsilon))
    return found


def _try_elsewhere(
    declaration: Declaration, symbols: frozenset[str], values: Mapping[str, Fraction],
    compare: Callable[[Mapping[str, Fraction]], list[Comparison]],
) -> str:  # fmt: skip
    """Compare a cost at other settings of the parameters too, and return their number in words.

    Args:
        declaration: The declaration with the parameters.
        symbols: Symbols on which the cost depends.
        values: The given ones.
        compare: Maps parameters to the comparisons made there.

    Raises:
        DeclarationError: A pair loses more there; the message names the parameters.
    """
    tried = 0
    for at in _elsewhere(declaration, symbols, values):
        try:
            with np.errstate(all="ignore"):
                comparisons = compare(declaration.values(at))
        except Exception:  # noqa: BLE001, S112 - the author's own code; at the given parameters it says what is wrong
            continue
        try:
            for comparison in comparisons:
                comparison(near=_FAR_FROM)
        except DeclarationError as error:
            setting = ", ".join(f"{name} = {at[name]}" for name in sorted(symbols))
            message = f"{error}; this at {setting}: state a price that is true there too, or a smaller range"
            raise DeclarationError(message) from None
        tried += bool(comparisons)
    return f"; at {tried} other settings of the parameters too" if tried else ""


def _elsewhere(
    declaration: Declaration, symbols: frozenset[str], values: Mapping[str, Fraction]
) -> list[dict[str, Fraction]]:
    """Settings in the parameters' ranges: each parameter smaller and larger alone, and all of them together."""
    axes = {p.name: _around(p, values[p.name]) for p in declaration.parameters if p.name in symbols}
    settings = [{**values, name: to} for name, points in axes.items() for to in points]
    settings += [{**values, **{name: points[end] for name, points in axes.items()}} for end in (0, -1)] if axes else []
    distinct = {tuple(sorted(one.items())): one for one in settings if one != values}
    stride = max(1, -(-len(distinct) // _MOST_ELSEWHERE))
    return list(distinct.values())[::stride]


def _around(parameter: Parameter, value: Fraction) -> list[Fraction]:
    """Values in a parameter's range in ascending order, up to two orders of magnitude to either side."""
    if parameter.kind == "count":
        least = Fraction(parameter.least)
        return sorted({least, least + 1, *(v for v in (value + 1, 2 * value) if v <= _COUNTED)})
    if parameter.kind == "probability":
        return sorted({value / 10, Fraction(1, 2), Fraction(9, 10)})
    return sorted(
        {value / 100, value / 10, value / 3, 3 * value, 10 * value, 100 * value} - {Fraction(0)} or {Fraction(1)}
    )


def try_noise(declaration: Declaration, release: Release, values: Mapping[str, Fraction]) -> Tried:
    """Test additive noise of an author's own law: shifts of one cell and of several by Δ∞ or less.

    Raises:
        DeclarationError: A shift loses more than the mechanism says, or the noise has another distribution function.
    """
    name, mechanism = release.name, release.mechanism
    noise = mechanism.at(values)
    statistic = f"{mechanism.words}"
    if why := lacks(type(noise), "cdf", "std", "draw", "log_ratio"):
        return Tried(release=name, statistic=statistic, pairs=0, how=why, of="price")
    _check_distribution(name, noise)
    moves = _compare_moves(declaration, release, values)
    for comparison in moves:
        comparison(near=_NEAR)
    how = "cells moved by up to its ℓ∞ sensitivity against the price, its sampler against its distribution function"
    if moves:
        symbols = release.symbols | release.charged(declaration.relation).linf.symbols
        how += _try_elsewhere(declaration, symbols, values, lambda at: _compare_moves(declaration, release, at))
    return Tried(release=name, statistic=statistic, pairs=len(moves), how=how, of="price")


def _compare_moves(declaration: Declaration, release: Release, values: Mapping[str, Fraction]) -> list[Comparison]:
    """Shifts of cells by up to the change of one user, each compared with what the author states for it."""
    mechanism, moves = release.mechanism, list[Comparison]()
    noise, charged = mechanism.at(values), release.charged(declaration.relation)
    most = charged.linf.number(values, rounding="down")
    moved = 0 if most == 0 else max(1, min(1000, int(charged.l1.number(values) / most)))
    for share in _SHIFTS if moved else ():
        for cells in dict.fromkeys((1, moved)):
            move = Fraction(most) * share
            sensitivity = Sensitivity(
                l1=expression(move * cells), l2=sqrt(expression(cells)) * move, linf=expression(move), reason="a move"
            )
            pure, rho = mechanism.pure(sensitivity), mechanism.zcdp(sensitivity)
            cost = Cost(
                sensitivity=sensitivity, charged=sensitivity.linf, rho=rho, pure=pure,
                mu_squared=mechanism.gdp_squared(sensitivity), theorem="",
            )  # fmt: skip
            words = f"{cells} cell{'s' if cells > 1 else ''} moved by {float(move):.6g} each"
            law = (_moved_law(noise, float(move)), cells)
            events = _events(noise, sensitivity)
            moves.append(partial(_check_price, (release.name, words), law, cost, events, values))
    return moves


def _events(noise: Noise, sensitivity: Sensitivity) -> tuple[Event, ...]:
    """Events that its author's law gives for a shift of cells by the same amount; empty if it has no event of its own.

    Where both the events and the distribution function are this package's, their comparison says nothing of the author.
    """
    if lacks(type(noise), "events") or not _says_law(type(noise)):
        return ()
    l1, l2, linf = (x.number({}, rounding="up") for x in (sensitivity.l1, sensitivity.l2, sensitivity.linf))
    cost = noise.charge(l1=l1, l2=l2, linf=linf, users="")
    return type(noise).of(cost).events(cost, stepwise=True)


def _says_law(law: type[Noise]) -> bool:
    """Whether an author's class says more of its noise than how a law of this package is drawn."""
    kinds = law.__mro__
    known = LAWS.get(law.name)
    if known not in kinds:
        return True
    said = set[str]().union(*map(vars, kinds[: kinds.index(known)]))
    return bool(said - _DRAWING - set(vars(_Empty)))


class _Empty:
    """What Python writes into every class, which differs between its versions."""


def _check_price(
    where: tuple[str, str],
    law: tuple[Outcomes, int],
    cost: Cost,
    events: tuple[Event, ...],
    values: Mapping[str, Fraction],
    *,
    near: float,
) -> None:
    """Check that a pair loses no more than is stated, in every unit in which a cost is stated.

    Args:
        where: The release with the stated cost, and the pair in words.
        law: The pair's law in one round, and the number of rounds.
        cost: The stated cost.
        events: The stated events.
        values: The parameters.
        near: Factor by which a loss may exceed the stated cost without being a contradiction.

    Raises:
        DeclarationError: The pair loses more.
    """
    for unit, loses, allowed in _losses(*law, cost, events, values, near=near):
        if loses > _most(allowed, near):
            message = (
                f"{where[0]}: a pair of neighbours loses {loses:.6g} ({unit}), but its author states {allowed:.6g}"
            )
            raise DeclarationError(f"{message}: {where[1]}. State its true loss")


def _most(allowed: float, near: float) -> float:
    """Largest loss that does not contradict a stated cost."""
    return allowed * near + 1e-9


def _losses(
    outcomes: Outcomes,
    rounds: int,
    cost: Cost,
    events: tuple[Event, ...],
    values: Mapping[str, Fraction],
    *,
    near: float,
) -> Iterator[tuple[str, float, float]]:
    """Yield units with the pair's loss and the stated cost; ε at δ is 0 where no contradiction is possible."""
    if cost.pure is not None:
        yield "ε", pure_loss(outcomes, rounds), _number(cost.pure, values)
    if not cost.rho.infinite:
        yield "ρ", rho_loss(outcomes, rounds), _number(cost.rho, values)
    if events:
        curve, sums = compose(*events), LossSums(((outcomes, rounds),))
        for delta in _DELTAS:
            epsilon = curve.epsilon(delta=delta).upper
            # δ(ε) falls with ε: one look at it says whether the pair loses more, and its root is for the message
            beyond = sums.delta(_most(epsilon, near)) > delta
            yield f"ε at δ = {delta:g}", sums.epsilon(delta) if beyond else 0.0, epsilon
        yield "δ at ε = 0", sums.delta(0.0), curve.delta(epsilon=0.0).upper


def _number(cost: Expr, values: Mapping[str, Fraction]) -> float:
    return cost.number(values, rounding="up")


def _accuse(fault: str, *, near: float) -> None:
    """Raise a fault that was found in a sampler; `near` does not apply to it.

    Raises:
        DeclarationError: Always.
    """
    del near
    raise DeclarationError(fault)


def _far(draws: int) -> float:
    """Largest distance of two distribution functions (Dvoretzky, Kiefer & Wolfowitz; Massart's constant)."""
    return math.sqrt(math.log(2 / _FAILURE) / (2 * draws))


def _find_fault(one: OwnMechanism, runs: OwnRuns, at: Mapping[str, float], rng: np.random.Generator, size: int) -> str:
    """Evidence that the sampler does not draw its density on D or on D′; empty if there is none.

    Outputs A with a loss L = ln p/q in a part of (0, 1), or of (−1, 0), are drawn on D as often as the mean of e^L on A
    under D′ says; its terms are at most e (Hoeffding). The part ends where no loss is likely to lie: with a loss equal
    to 1 up to rounding, all its mass would be inside in D and outside in D′. Equal outputs are looked for everywhere;
    if the outputs are finitely many or one number, their law is compared as well (`_differ`). If a sampler draws its
    density, each comparison fails with a probability of at most `_FAILURE`: all of them below 1e-9.
    """
    losses = []
    for data, other, sign in ((*runs.pair, 1), (*runs.pair[::-1], -1)):
        if _is_frozen(one, data, at):
            return (
                f"its sampler draws the same outputs from two generators, on {data!s:.120}: draw all noise from `rng`"
            )
        drawn = one.draw(rng, data, size, at)
        here = one.log_densities(drawn, data, at)
        if np.isneginf(here).any():
            return f"its sampler draws outputs whose log_density is −∞ on {data!s:.120}"
        losses.append(sign * (here - one.log_densities(drawn, other, at)))  # ±∞ where the other's density is 0
        if why := _differ(one, drawn, data, at):
            return f"the draws of its sampler do not have the density of its log_density, on {data!s:.120}: {why}"
    for low, high in (_PART, (-_PART[1], -_PART[0])):
        on_first, on_second = ((low < loss) & (loss < high) for loss in losses)
        found, said = float(on_first.mean()), float(np.exp(losses[1][on_second]).sum()) / size
        if abs(found - said) > (1 + math.e) * _far(size):
            return (
                f"the draws of its sampler do not have the density of its log_density: a loss in ({low:g}, {high:g}) "
                f"has probability {found:.4g} by the draws on D, {said:.4g} by those on D′"
            )
    return ""


def _is_frozen(one: OwnMechanism, data: Any, at: Mapping[str, float]) -> bool:
    """Whether two generators draw the same outputs, as for fixed noise or noise seeded by the data.

    The declared law would repeat the outputs only with the probability that it draws them at all.
    """
    first, second = (one.draw(np.random.default_rng(seed), data, _FEW, at) for seed in (1, 2))
    if first.shape != second.shape or first.tobytes() != second.tobytes():
        return False
    return one.edges is not None or float(one.log_densities(first, data, at).sum()) < math.log(_FAILURE)


def _differ(one: OwnMechanism, drawn: NDArray[Any], data: Any, at: Mapping[str, float]) -> str:
    """How the draws differ from the density, in words; empty if they do not.

    Compared are equal values among draws from a density; the number of draws in each cell with its mass (Chernoff); the
    distribution functions; and the mean of ln p, which falls by s if a scale is too small by s (Bernstein).
    """
    if one.outputs is not None:
        outputs = np.asarray(one.outputs(**at))
        kinds, times = np.unique(_rows(drawn), return_counts=True)
        places = {row.tobytes(): place for place, row in enumerate(_rows(outputs))}
        found_at = [places.get(row.tobytes(), -1) for row in kinds]
        if -1 in found_at:
            return "an output is not among its `outputs`"
        logs = one.log_densities(outputs, data, at)
        masses, counts = np.exp(logs), np.zeros(len(outputs), np.int64)
        np.add.at(counts, found_at, times)
        return _compare_cells(counts, masses, 0.0) or _compare_means(logs, counts, logs, masses)
    if one.edges is None:
        return _find_equals(one, drawn, data, at)
    if why := _find_repeated(drawn):
        return why
    edges = np.asarray(one.edges(**at), dtype=np.float64)
    points, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges) / 2
    x = (edges[:-1] + half)[:, np.newaxis] + half[:, np.newaxis] * points
    logs = one.log_densities(x.ravel(), data, at).reshape(x.shape)
    each = np.exp(logs) * weights * half[:, np.newaxis]
    cells = np.searchsorted(edges, drawn.ravel(), side="left")
    counts = np.bincount(cells, minlength=edges.size + 1)
    why = _compare_cells(counts, np.concatenate([[0.0], each.sum(axis=1), [0.0]]), _BEYOND)
    return why or _compare_means(
        one.log_densities(drawn, data, at), np.ones(len(drawn), np.int64), logs.ravel(), each.ravel()
    )


def _compare_cells(counts: NDArray[np.int64], masses: NDArray[np.float64], inexact: float) -> str:
    """Where counts contradict the cells' masses, or their sums the distribution function; empty if nowhere."""
    size = int(counts.sum())
    if (far := float(np.abs(counts.cumsum() / size - masses.cumsum()).max())) > _far(size) + inexact:
        return f"their distribution functions are {far:.3g} apart"
    shares, limit = counts / size, math.log(2 * masses.size / _FAILURE)
    slack = masses * _INEXACT if inexact else 0.0
    for most, bound in ((True, masses + slack + inexact), (False, masses - slack - inexact)):
        allowed = np.clip(bound, 0.0, 1.0)
        wrong = shares > allowed if most else shares < allowed
        unlikely = size * _divergence(shares, allowed)
        if (wrong & (unlikely > limit)).any():
            worst = int(np.where(wrong, unlikely, -1.0).argmax())
            return f"{counts[worst]} of {size} draws are in a cell of probability {masses[worst]:.3g}"
    return ""


def _divergence(found: NDArray[np.float64], true: NDArray[np.float64]) -> NDArray[np.float64]:
    """KL divergence between coins with biases `found` and `true`: e^(−n·KL) bounds the probability of such counts."""
    from scipy.special import rel_entr

    divergence: NDArray[np.float64] = rel_entr(found, true) + rel_entr(1 - found, 1 - true)
    return divergence


def _compare_means(
    drawn: NDArray[np.float64], counts: NDArray[np.int64], logs: NDArray[np.float64], masses: NDArray[np.float64]
) -> str:
    """Difference between the mean of ln p over the draws and that of the law, in words; empty if none.

    Args:
        drawn: ln p of each drawn output.
        counts: Number of draws of each.
        logs: ln p of each output, or point of a cell.
        masses: Probability of each.
    """
    least = float(logs.max()) - _DEEP
    law, kept = masses / masses.sum(), np.maximum(logs, least)
    true = float(law @ kept)
    variance = float(law @ np.square(kept - true))
    size, limit = int(counts.sum()), math.log(2 / _FAILURE)
    found = float(counts @ np.maximum(drawn, least)) / size
    allowed = math.sqrt(2 * variance * limit / size) + _DEEP * limit / (3 * size) + _INEXACT
    if abs(found - true) <= allowed:
        return ""
    return (
        f"the mean of ln p is {found:.5g} over the draws and {true:.5g} over the density: the usual cause is a wrong "
        "scale"
    )


def _find_repeated(drawn: NDArray[Any]) -> str:
    """Report a value drawn too often for any density: floats are rounded, to 24 bits at worst; else empty."""
    values, counts = np.unique(np.asarray(drawn, dtype=np.float64).ravel(), return_counts=True)
    if counts.max() < _REPEATED:
        return ""
    return f"{counts.max()} of {drawn.size} draws are {values[counts.argmax()]:.6g}, which has probability 0"


def _find_equals(one: OwnMechanism, drawn: NDArray[Any], data: Any, at: Mapping[str, float]) -> str:
    """Report an output drawn more often than its log_density allows, when nothing else is known of the outputs."""
    size = len(drawn)
    rows = np.asarray(drawn, dtype=np.float64).reshape(size, -1) + 0.0
    likely = _repeat_somewhere(rows)
    if not likely.size:
        return ""
    rows = rows[likely]
    _, places, counted = np.unique(
        rows if rows.shape[1] > 1 else rows[:, 0], axis=0, return_index=True, return_counts=True
    )
    places = likely[places]
    often = np.argsort(-counted, kind="stable")[:_EQUALS]
    often = often[counted[often] >= _REPEATED]
    if not often.size:
        return ""
    counts = counted[often]
    logs = one.log_densities(drawn[places[often]], data, at)
    shares, masses = counts / size, np.minimum(np.exp(np.minimum(logs, 0.0)), 1.0)
    # the values were chosen by their counts: a bound for each of all that could have been
    unlikely = size * _divergence(shares, masses) - math.log(2 * size / _FAILURE)
    wrong = (shares > masses) & (unlikely > 0)
    if not wrong.any():
        return ""
    worst = int(np.where(wrong, unlikely, -np.inf).argmax())
    return f"{counts[worst]} of {size} draws are equal, and log_density gives that output {math.exp(logs[worst]):.3g}"


def _repeat_somewhere(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """Places of the rows each of whose numbers is in at least `_REPEATED` rows, ascending.

    Rows that are drawn so often are among them. Outputs of a density are sorted out here, one column at a time: to sort
    whole rows takes twenty times as long.
    """
    places = np.arange(len(rows))
    for column in rows.T:
        numbers = np.sort(column[places])
        often = numbers[_REPEATED - 1 :][numbers[_REPEATED - 1 :] == numbers[: 1 - _REPEATED]]
        places = places[np.isin(column[places], often)] if often.size else places[:0]
        if not places.size:
            break
    return places


def _rows(outputs: NDArray[Any]) -> NDArray[Any]:
    """Each output as one opaque value of all its numbers, to be counted and looked up; −0 counts as 0."""
    numbers = np.ascontiguousarray(np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1) + 0.0)
    if numbers.shape[1] == 1:
        return numbers[:, 0]
    return numbers.view(np.dtype((np.void, numbers.itemsize * numbers.shape[1])))[:, 0]


def _worst_at_points(one: OwnMechanism, runs: OwnRuns, rng: np.random.Generator, size: int) -> float:
    """Largest |ln p/q| at drawn outputs: a lower bound on ε of pure DP, for continuous densities."""
    drawn = (one.draw(rng, data, size, runs.at) for data in runs.pair)
    return max(float(np.abs(runs.log_ratio(outputs)).max()) for outputs in drawn)


def _check_points(name: str, words: str, worst: float, epsilon: float, *, near: float) -> None:
    """Check that densities of neighbours differ by no more than is stated at any of the points.

    Raises:
        DeclarationError: They do.
    """
    if worst > epsilon * near + 1e-9:
        message = f"{name}: at an output the densities of neighbours differ by a factor e^{worst:.6g}, and its"
        raise DeclarationError(f"{message} author states ε = {epsilon:.6g}: {words}. State its true loss")


def _moved_law(noise: Noise, move: float) -> Outcomes:
    """Laws of cells of the noise and of the shifted noise; cells too small for the distribution function are merged."""
    whole = Mixture(noise=noise, weights=(0.0, 1.0), shifts=(move, 0.0)).outcomes()
    p, q = np.exp(whole.log_p), np.exp(whole.log_q)
    kept = np.minimum(p, q) >= _LEAST
    kept[int(np.argmax(np.minimum(p, q)))] = False
    laws = [np.append(law[kept], 1 - law[kept].sum()) for law in (p, q)]
    return Outcomes(log_p=np.log(laws[0]), log_q=np.log(laws[1]))


def _check_distribution(name: str, noise: Noise) -> None:
    drawn = np.sort(noise.draw(np.random.default_rng(0), _DRAWN))
    found = (np.arange(_DRAWN) + 0.5) / _DRAWN
    if (far := float(np.abs(noise.cdf(drawn) - found).max())) > _far(_DRAWN) + 1 / _DRAWN:
        message = f"{name}: noise of the law {noise.name!r} is not drawn from its distribution function"
        raise DeclarationError(f"{message}: the two are {far:.3g} apart")
