"""Sampling of any mechanism with a known dominating pair, as finitely many values of the loss.

Lemma sampled-mechanism: If (P, Q) dominates a mechanism, with the user in the sample and without, and each user is in
the sample with probability q independently of the data, then (1 − q)Q + qP against Q dominates the sampled mechanism.
Source: Zhu, Dong & Wang 2022, Theorem 11; Balle, Barthe & Gaboardi 2018, Theorem 8. Proof: H_α is convex, and given the
others' sample the outputs have exactly these laws.

A loss l becomes ln(1 − q + q·e^l) under the mixture, −ln(1 − q + q·e^{−l}) in the other direction.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, binomial_logs, power, product, tidy
from privcheck.accounting.engine.discrete import AtomicLaw, DiscreteGaussian
from privcheck.accounting.engine.envelopes import greatest, mirror
from privcheck.accounting.engine.gdp import gdp_log_delta
from privcheck.accounting.engine.hulls import law_above
from privcheck.accounting.engine.laws import (
    UNIT,
    Cells,
    Direction,
    Floats,
    Law,
    LostLaw,
    as_floats,
    repeat_on_one_draw,
    root_up,
)

Base = tuple[tuple[Law | LostLaw, int], ...]
_CELLS: Final = 8192  # values of a loss that is put on a grid before it is sampled
_FEW: Final = 20_000  # values up to which a loss is kept as it is
_WINDOW: Final = 16.0  # standard deviations on both sides of the mean that a grid holds
_CUT: Final = 1e-18  # mass of one release that a grid may count as lost
_UP: Final = 1e-14
_POINTS: Final = 1500  # values of ε at which a bound is looked at
_RARE: Final = -90.0  # ln of the probability of so many copies that all counts as lost
_TINY: Final = -60.0  # ln of a δ at which a curve is cut off
_LARGEST: Final = 500.0  # of them; what lies above counts as lost


def sampled_law(base: Base, rate: float) -> AtomicLaw:
    """Build the pair of a mechanism on a sample that holds each user with probability q, in both directions.

    Args:
        base: The mechanism's laws of the loss, with and without the user, with their counts: all on one sample.
        rate: q, in (0, 1).
    """
    most = largest_loss(base)
    bound = float(_mix(np.array([most]), rate)[0]) * (1 + 32 * UNIT) if math.isfinite(most) else math.inf
    return AtomicLaw(
        build=_sample,
        arguments=(base, rate),
        bound=bound,
        symmetric=False,
        rounded=_round(base),
        repeat=_repeat_sampled,
    )


def _repeat_sampled(times: int, base: Base, rate: float) -> AtomicLaw:
    """Repeat the mechanism, not the sample: a sampled user is in all releases, any other user in none."""
    return sampled_law(repeat_on_one_draw(base, times), rate)


def mirrored_law(base: Base, rate: float) -> AtomicLaw:
    """Build the pair of a mechanism on a random batch with one user replaced, symmetric in both directions.

    Lemma mirrored-batch: With one user of a batch of a fixed size replaced, δ(ε) is at most that of the sampled pair
    for ε ≥ 0, and that of the reversed pair for ε < 0. Source: Balle, Barthe & Gaboardi 2018, Theorem 9.

    Args:
        base: The mechanism's laws of the loss where a user in the batch is replaced by another.
        rate: q, the probability of being in the batch.
    """
    bound = sampled_law(base, rate).bound
    return AtomicLaw(
        build=_mirror,
        arguments=(base, rate),
        bound=bound,
        symmetric=True,
        rounded=_round(base),
        repeat=_repeat_mirrored,
    )


def _repeat_mirrored(times: int, base: Base, rate: float) -> AtomicLaw:
    return mirrored_law(repeat_on_one_draw(base, times), rate)


def replaced_law(removed: Base, replaced: Base, rate: float) -> AtomicLaw:
    """Build a pair that dominates Poisson sampling under replacing a user.

    Lemma replaced-sample: With X and Y the outputs with one or the other user in the sample, Z those with neither, α' =
    1 + (α − 1)/q and β = αq/(α − 1 + q), H_α(P, Q) ≤ q(β·H_α'(X, Y) + (1 − β)·H_α'(X, Z)) for α ≥ 1. Source: Balle,
    Barthe & Gaboardi 2018, Theorem 2. Proof: P − αQ = qX − αqY − (α − 1)(1 − q)Z, so that H_α(P, Q) = q·H_α'(X, βY + (1
    − β)Z); for α < 1 with the roles exchanged.

    Where X and Y have ratios of at most e^ε₀ to Z, ln P/Q is at most ln(1 − q + q·e^ε₀) − ln(1 − q + q·e^{−ε₀}).

    Args:
        removed: Laws of the mechanism with and without the user in the sample, X and Z.
        replaced: Laws of the mechanism with one user and with another, X and Y.
        rate: q, in (0, 1).
    """
    arguments = (removed, replaced, rate)
    bound = _bound_replaced(removed, rate)
    return AtomicLaw(
        build=_replace, arguments=arguments, bound=bound, symmetric=True, rounded=True, repeat=_repeat_replaced
    )


def _repeat_replaced(times: int, removed: Base, replaced: Base, rate: float) -> AtomicLaw:
    return replaced_law(repeat_on_one_draw(removed, times), repeat_on_one_draw(replaced, times), rate)


def redrawn_law(mu: float, draws: int, users: int) -> AtomicLaw:
    """Build a pair that dominates Gaussian noise on a batch drawn with replacement, one user replaced.

    Lemma redrawn-batch: The user is k times in the batch with probability bₖ, from Bin(m, 1/n), and replacing all k
    copies costs δₖ. With η = 1 − b₀ and α' = 1 + (α − 1)/η, H_α ≤ Σ_{k ≥ 1} bₖδₖ(ln α') for α ≥ 1, and for α < 1 with
    the roles exchanged. Source: Balle, Barthe & Gaboardi 2018, Theorem 10.

    Args:
        mu: μ of the Gaussian mechanism where one member of the batch is replaced; k members have k times the
            sensitivity.
        draws: m.
        users: n.
    """
    return AtomicLaw(
        build=_redraw,
        arguments=(mu, draws, users),
        bound=math.inf,
        symmetric=True,
        rounded=True,
        repeat=_repeat_redrawn,
    )


def _repeat_redrawn(times: int, mu: float, draws: int, users: int) -> AtomicLaw:
    """Law of n releases on one batch: a user drawn k times is so in all releases, of √n times the sensitivity."""
    return redrawn_law(mu * root_up(times), draws, users)


def _bound_replaced(removed: Base, rate: float) -> float:
    most = largest_loss(removed)
    if not math.isfinite(most):
        return math.inf
    high, low = _mix(np.array([most, -most]), rate).tolist()
    return float(high - low) * (1 + 1e-14) + 1e-300


def _round(base: Base) -> bool:
    """Whether some part has to be replaced by a law on a grid."""
    laws = [law for law, _ in base if not isinstance(law, LostLaw)]
    return len(laws) > 1 or any(not isinstance(law, AtomicLaw) or law.rounded for law in laws)


def largest_loss(base: Base) -> float:
    """Largest loss of a mechanism in either direction; ∞ where there is none."""
    if any(isinstance(law, LostLaw) for law, _ in base):
        return math.inf
    both = [(law.largest("remove"), law.largest("add"), n) for law, n in base if not isinstance(law, LostLaw)]
    return max(math.fsum(n * a for a, _, n in both), math.fsum(n * b for _, b, n in both))


def _sample(base: Base, rate: float, direction: Direction) -> Atoms:
    return sample(base_atoms(base, direction), rate, direction)


def _mirror(base: Base, rate: float, _: Direction) -> Atoms:
    return mirror(sample(_either(base), rate, "remove"))


def _replace(removed: Base, replaced: Base, rate: float, _: Direction) -> Atoms:
    absent, other = _either(removed), _either(replaced)
    most = _bound_replaced(removed, rate)
    last = min(float(sample(other, rate, "remove").losses[-1]), most, _LARGEST)
    knots = np.unique(np.concatenate([[0.0], last * np.linspace(0, 1, _POINTS) ** 2, np.linspace(0, last, _POINTS)]))
    inner = np.log1p(np.expm1(knots) / rate)  # ln α'
    log_share = np.minimum(math.log(rate) + knots - np.log(np.expm1(knots) + rate), 0.0)  # ln β
    with np.errstate(divide="ignore"):
        rest = np.log(-np.expm1(log_share))
    logs = math.log(rate) + np.logaddexp(log_share + other.log_deltas(inner), rest + absent.log_deltas(inner))
    infinite = rate * max(other.infinite, absent.infinite)
    if last < most:  # nothing is known beyond but that the curve falls
        infinite = max(infinite, math.exp(logs[-1]))
    return mirror(law_above(as_floats(knots), as_floats(logs + _UP), infinite=infinite))


def _redraw(mu: float, draws: int, users: int, _: Direction) -> Atoms:
    from scipy.special import ndtri_exp

    logs = binomial_logs(draws, -math.log(users - 1.0))
    log_in = math.log(-math.expm1(draws * math.log1p(-1 / users)))  # ln η
    kept = (1 + np.flatnonzero(logs[1:] > _RARE)).tolist()
    rest = float(np.exp(np.delete(logs, [0, *kept])).sum())
    # beyond the largest of these hardly anything is left of any curve; that counts as lost
    most = max(k * mu * (k * mu / 2 - float(ndtri_exp(min(_TINY - float(logs[k]), -0.7)))) for k in kept)
    last = min(float(_mix(np.array([most]), math.exp(log_in))[0]), _LARGEST)
    knots = np.unique(np.concatenate([last * np.linspace(0, 1, _POINTS) ** 2, np.linspace(0, last, _POINTS)]))
    inner = np.log1p(np.expm1(knots) * math.exp(-log_in))
    deltas = [[logs[k] + gdp_log_delta(k * mu, e) for e in inner.tolist()] for k in kept]
    total = np.logaddexp.reduce(np.array(deltas), axis=0)
    total = np.logaddexp(total, math.log(rest)) if rest > 0 else total
    return mirror(law_above(as_floats(knots), as_floats(total + _UP), infinite=math.exp(float(total[-1]) + _UP)))


def _either(base: Base) -> Atoms:
    remove = base_atoms(base, "remove")
    symmetric = all(isinstance(law, LostLaw) or law.symmetric for law, _ in base)
    return remove if symmetric else greatest(remove, base_atoms(base, "add"))


def sample(atoms: Atoms, rate: float, direction: Direction) -> Atoms:
    """Loss of a sampled mechanism from the loss of the mechanism in the same direction."""
    log_in, log_out = math.log(rate), math.log1p(-rate)
    if direction == "add":  # −ln(1 − q + q·e^{−l}); what was lost outright is −ln(1 − q)
        losses = -_mix(-atoms.losses, rate)
        if atoms.infinite == 0:
            return tidy(losses, atoms.logs)
        return tidy(np.append(losses, -log_out), np.append(atoms.logs, math.log(atoms.infinite)))
    losses = _mix(atoms.losses, rate)
    logs = atoms.logs + np.logaddexp(log_in, log_out - atoms.losses)
    rest = max(0.0, 1 - float(np.exp(atoms.logs - atoms.losses).sum())) + _UP  # Q-mass where P has none
    losses, logs = np.append(losses, log_out), np.append(logs, log_out + math.log(rest))
    return tidy(losses, logs, rate * atoms.infinite)


def _mix(losses: Floats, rate: float) -> Floats:
    """Logarithm ln(1 − q + q·e^l); near 0 with all its digits."""
    if rate >= 1:
        return losses
    gain = rate * np.expm1(np.minimum(losses, 30.0))
    far = np.logaddexp(math.log1p(-rate), math.log(rate) + losses)
    return as_floats(np.where(np.abs(gain) < 0.5, np.log1p(np.maximum(gain, -0.5)), far))


def base_atoms(base: Base, direction: Direction) -> Atoms:
    """Composed loss of a mechanism's parts: exact where it has few values, else that of a dominating grid."""
    lost = -math.expm1(math.fsum(n * math.log1p(-law.delta) for law, n in base if isinstance(law, LostLaw)))
    laws = [(law, n) for law, n in base if not isinstance(law, LostLaw)]
    if not laws:
        return Atoms(losses=np.zeros(1), logs=np.array([math.log1p(-lost)]), infinite=lost)
    law = _exactly(laws, direction) or _on_grid(laws, direction)
    if lost == 0:
        return law
    kept = math.log1p(-lost)
    return Atoms(losses=law.losses, logs=law.logs + kept, infinite=lost + (1 - lost) * law.infinite)


def _exactly(laws: list[tuple[Law, int]], direction: Direction) -> Atoms | None:
    total: Atoms | None = None
    for law, count in laws:
        if not isinstance(law, AtomicLaw | DiscreteGaussian):
            return None
        one = power(law.atoms(direction), count)
        total = one if total is None or one is None else product(total, one)
        if total is None or len(total.losses) > _FEW:
            return None
    return total


def _on_grid(laws: list[tuple[Law, int]], direction: Direction) -> Atoms:
    """Loss from cells that are added by direct convolution: sums of positive terms."""
    moments = [(law.moments(np.array([1e-6, 1.0]), direction), n) for law, n in laws]
    # at the tilts 0 and 1: the bulk of P, and of what δ is made of
    means = [math.fsum(n * float(law_moments[1][i]) for law_moments, n in moments) for i in (0, 1)]
    std = math.sqrt(max(math.fsum(n * float(law_moments[2][i]) for law_moments, n in moments) for i in (0, 1)))
    span = math.fsum(n * law.span(direction) for law, n in laws)
    window = min(span, max(abs(m) for m in means) + _WINDOW * std)
    mesh = 2 * window / _CELLS
    steps = [law.largest(direction) for law, _ in laws if math.isfinite(law.largest(direction))]
    if steps and min(steps) > mesh:  # atoms of the smallest law sit on grid points
        mesh = min(steps) / math.floor(min(steps) / mesh)
    cells = [_trim(law.cells(mesh, _CUT, direction)) for law, _ in laws]
    # a rare loss far outside of the window, as of sampled groups: its cells would be added for minutes
    if (longest := max(len(one.masses) for one in cells)) > 2 * _CELLS:
        mesh *= math.ceil(longest / _CELLS)
        cells = [_trim(law.cells(mesh, _CUT, direction)) for law, _ in laws]
    total: Cells | None = None
    for first, (_, count) in zip(cells, laws, strict=True):
        one = first
        for bit in range(count.bit_length()):
            if count >> bit & 1:
                total = one if total is None else _add(total, one)
            if count >> bit > 1:
                one = _add(one, one)
    assert total is not None
    with np.errstate(divide="ignore"):
        logs = np.log(total.masses)
    return tidy(as_floats((total.start + np.arange(len(total.masses))) * mesh), as_floats(logs), total.infinite)


def _add(one: Cells, other: Cells) -> Cells:
    infinite = one.infinite + (1 - one.infinite) * other.infinite
    masses = as_floats(np.convolve(one.masses, other.masses))
    return _trim(Cells(start=one.start + other.start, masses=masses, infinite=infinite))


def _trim(cells: Cells) -> Cells:
    """Trim cells with negligible mass at both ends: mass below moves up, mass above counts as lost."""
    above = np.cumsum(cells.masses[::-1])[::-1]
    below = np.cumsum(cells.masses)
    first = int(np.searchsorted(below, _CUT))
    last = max(first, int(np.searchsorted(-above, -_CUT)) - 1)
    masses = cells.masses[first : last + 1].copy()
    masses[0] += float(cells.masses[:first].sum())
    infinite = cells.infinite + float(cells.masses[last + 1 :].sum())
    return Cells(start=cells.start + first, masses=masses, infinite=infinite)
