"""Losses of counters behind a shuffler, as needed by declarations: of any size, each changing in either direction.

With every bit a separate message, a rising counter is Bin(N, ½) + 1 under D against Bin(N, ½) under D′, a falling one
the reverse: the same loss (x ↦ N + 1 − x). For rarer bits neither all rising nor all falling bounds a mixture.

Lemma thinned-bits: Any mixture of rising and falling counters is dominated by M ~ Bin(n, 2p) fair bits in each, of mean
τ, with M revealed, and so by any M′ that is smaller in distribution; P(M ≤ τ − s) is at most e^{−s²/2τ} for every n
(Chernoff). Proof: a rare bit is a fair bit that is kept with probability 2p, and the attacker may be given the kept
set; more bits hide more.

With integer messages the multiset {zᵢ} is released, not its sum. The other users' bits are arbitrary.

Lemma integer-messages: One changed bit among n users' integer messages is dominated by one changed message among n′ =
⌈(n + 1)/2⌉ messages with bit 0, or with the roles of 0 and 1 exchanged. Proof: an attacker who receives the messages of
the others with bit 1 separately sees one changed message among those with bit 0, or the reverse; one of the two groups
has at least n′ members, and fewer are easier to attack.

Lemma lattice-ratio: Among bits 0 the likelihood ratio of the multiset is the mean of n′ independent r(z) = P(z −
1)/P(z), z ~ Bin(m, ½), apart from a message m + 1, which reveals its sender, and any mean-preserving spread of r, and
of partial sums, dominates: here, random rounding to a lattice. Proof: hockey-sticks are convex in that mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, coarsen, product, tidy
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laws import Direction, Floats, as_floats

_REACH: Final = 16.0  # standard deviations of a binomial that are enumerated
_MORE: Final = 200  # outcomes beyond them, for small ones
_MOST_TRIALS: Final = 40_000_000_000  # more are left out: fewer bits hide less
_HALF_CELLS: Final = 400  # … of each of two laws before they are added
_EXACT: Final = 4096  # values of the loss that are kept apart
_EXACT_TRIALS: Final = 4000  # up to which all of them are
_BLOCKS: Final = 128  # in which the number of fair bits among rare ones is told apart, at most
_BLUR: Final = 1e-3  # of it, that a block may blur
_CELLS: Final = 2048  # values that more are joined to, upwards
_FINE: Final = 16  # lattice points a standard deviation of one message's ratio
_WIDE: Final = 64  # … of a sum's, from which on the lattice is made coarser
_LONGEST: Final = 20_000  # lattice points of one message's ratio
_RARE: Final = -60.0  # ln of the probability of noise bits that count as shown
_LIGHT: Final = 1e-44  # what is cut off at the ends of a lattice
_FORGONE: Final = 0.02  # of noise bits or users, where that leaves fewer batches to look at
_UP: Final = 1e-9  # relative; for the rounding of some thousand positive terms


def counter_law(trials: int) -> AtomicLaw:
    """Loss of one counter among N fair bits; a dominating law where it has too many values.

    Args:
        trials: N, the noise bits of all users.
    """
    n = min(trials, _MOST_TRIALS)  # the others' bits are independent of everything: anyone can add them
    rounded = n > _EXACT_TRIALS
    return AtomicLaw(build=_counter, arguments=(n,), bound=math.inf, symmetric=True, rounded=rounded)


def _counter(trials: int, _: Direction) -> Atoms:
    return _join(_all_values(trials))


def _all_values(trials: int) -> Atoms:
    """Bin(N, ½) against Bin(N, ½) + 1; outcomes that are not enumerated count as lost."""
    first, logs, outside = binomial_window(trials, 0.5)
    losses = _log_ratios(first + np.arange(1, len(logs), dtype=np.float64), trials, 0.5)  # of P(x) to P(x − 1)
    return tidy(losses[::-1], logs[:0:-1], math.exp(float(logs[0])) + outside)


def rare_bits_law(threshold: float) -> AtomicLaw:
    """Build a pair that dominates one counter whose noise bits are 1 with probability τ/2n, for every n > τ.

    Args:
        threshold: τ.
    """
    arguments = (min(threshold, float(_MOST_TRIALS)),)
    return AtomicLaw(build=_rare, arguments=arguments, bound=math.inf, symmetric=True, rounded=True)


def _rare(threshold: float, _: Direction) -> Atoms:
    blocks = min(_BLOCKS, max(8, math.ceil(_REACH / (_BLUR * math.sqrt(threshold)))))
    edges = np.arange(blocks + 1) * (_REACH / blocks)  # of s, in units of √τ
    beyond = np.exp(-(edges**2) / 2)  # P(M ≤ τ − s)
    losses, logs, lost = [], [], float(beyond[-1])
    for low, high, edge in zip(beyond[1:].tolist(), beyond[:-1].tolist(), edges[1:].tolist(), strict=True):
        trials = math.floor(threshold - edge * math.sqrt(threshold))
        if trials < 1:
            lost += high - low
            continue
        atoms = _join(_all_values(trials))
        losses.append(atoms.losses)
        logs.append(atoms.logs + math.log(high - low))
        lost += (high - low) * atoms.infinite
    if not losses:
        return Atoms(losses=np.zeros(1), logs=np.array([math.log(_LIGHT)]), infinite=1.0)
    return _join(tidy(np.concatenate(losses), np.concatenate(logs), min(lost, 1.0)))


def _join(atoms: Atoms) -> Atoms:
    return coarsen(atoms, _CELLS) if len(atoms.losses) > _EXACT else atoms


def _log_ratios(x: Floats, trials: int, probability: float) -> Floats:
    """Logarithm ln P(x)/P(x − 1) of Bin(N, p), from P(x)/P(x − 1) − 1 = (p(N + 1) − x)/(x(1 − p))."""
    return as_floats(np.log1p((probability * (trials + 1) - x) / (x * (1 - probability))))


def binomial_window(trials: int, probability: float, *, reach: float = _REACH) -> tuple[int, Floats, float]:
    """First value of an enumeration of Bin(N, p), ln of its probabilities, and a bound on the mass left out.

    Args:
        trials: N.
        probability: p, in (0, 1).
        reach: Distance from the mean that is enumerated, in standard deviations; a little further for small ones.
    """
    mean, half = trials * probability, math.ceil(reach * math.sqrt(trials * probability * (1 - probability))) + _MORE
    first, last = max(0, math.floor(mean) - half), min(trials, math.ceil(mean) + half)
    steps = _log_ratios(np.arange(first + 1, last + 1, dtype=np.float64), trials, probability)
    logs = np.zeros(last - first + 1)
    mode = int(np.searchsorted(-steps, 0.0))  # ratios fall: sums outwards from the mode keep their digits
    logs[mode + 1 :] = np.cumsum(steps[mode:])
    logs[:mode] = -np.cumsum(steps[:mode][::-1])[::-1]
    logs -= math.log(float(np.sum(np.exp(logs))))
    variance = mean * (1 - probability)
    tail = math.exp(-half * half / (2 * (variance + half / 3)))  # Bernstein, either side
    return first, logs, tail * ((first > 0) + (last < trials))


def message_law(users: int, messages: int) -> AtomicLaw:
    """Build a pair that dominates one changed bit among n users' integer messages, for any bits of the others.

    It is the sum of the losses where the others' bits are all 0 and where they are all 1, which are those of the same
    pair in opposite directions: either may be the worst in a composition, both together bound it.

    Args:
        users: n.
        messages: m, the fair noise bits per user.
    """
    arguments = ((users + 2) // 2, messages)  # ⌈(n + 1)/2⌉
    return AtomicLaw(build=_message, arguments=arguments, bound=math.inf, symmetric=True, rounded=True)


def fewest_hidden(batches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Reduce batches (n, m) of integer messages to fewer that dominate all given ones.

    Lemma fewest-hidden: Fewer users and fewer noise bits hide less, and of batches of doubling sizes with τ ≈ nm the
    largest is the worst. Proof: adding up k messages at a time, padded with noise, gives a message of a batch with
    fewer users and k times as many noise bits each.

    Up to 2 % of the noise bits and users are left out to make batches comparable.

    Args:
        batches: (n, m), fair bits.
    """
    kept: list[tuple[int, int]] = []
    for users, messages in sorted(set(batches), reverse=True):
        n, m = kept[-1] if kept else (0, 0)
        groups = -(-((n + 2) // 2) // ((users + 2) // 2))  # k for the users among whom one is hidden
        if m and users >= (1 - _FORGONE) * n:
            kept[-1] = (users, min(m, messages))
        elif m and messages // groups >= (1 - _FORGONE) * m:
            kept[-1] = (n, min(m, messages // groups))
        else:
            kept.append((users, messages))
    return kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lattice:
    """Masses at (start + i)·mesh, and the mass cut off."""

    masses: Floats
    start: int
    mesh: float
    cut: float = 0.0

    @property
    def std(self) -> float:
        """Standard deviation, in lattice points."""
        i = np.arange(len(self.masses))
        mean = float(self.masses @ i)
        return math.sqrt(float(self.masses @ (i - mean) ** 2))

    def plus(self, other: _Lattice) -> _Lattice:
        """Sum of two independent variables on the same mesh."""
        masses = np.convolve(self.masses, other.masses)
        return _trim(masses, self.start + other.start, self.mesh, self.cut + other.cut)

    def coarser(self) -> _Lattice:
        """Coarsen to a mesh of twice the size: mass between two points is split equally between them."""
        masses = np.concatenate([np.zeros(self.start % 2), self.masses, np.zeros(2)])
        masses = np.append(masses, np.zeros(len(masses) % 2))
        even, odd = masses[0::2].copy(), masses[1::2] / 2
        even += odd
        even[1:] += odd[:-1]
        return _trim(even, self.start // 2, 2 * self.mesh, self.cut)


def _trim(masses: Floats, start: int, mesh: float, cut: float) -> _Lattice:
    low = int(np.searchsorted(np.cumsum(masses), _LIGHT))
    high = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), _LIGHT))
    return _Lattice(masses=masses[low:high], start=start + low, mesh=mesh, cut=cut + 2 * _LIGHT)


def _message(hidden: int, messages: int, _: Direction) -> Atoms:
    none, all_of_them = (_among_zeros(hidden, messages, falling=falling) for falling in (False, True))
    both = product(none, all_of_them)
    assert both is not None
    return coarsen(both, _CELLS)


def _among_zeros(hidden: int, messages: int, *, falling: bool) -> Atoms:
    one, most, rare, shown = _one_ratio(messages)
    sums = _repeat(one, hidden)
    ratios = (sums.start + np.arange(len(sums.masses))) * (sums.mesh / hidden)
    positive = (ratios > 0) & (sums.masses > 0)
    losses, logs = np.log(ratios[positive]), np.log(sums.masses[positive]) + _UP
    if falling:
        none = float(sums.masses[ratios <= 0].sum())
        atoms = tidy(-losses[::-1], logs[::-1], min(1.0, (none + hidden * rare + sums.cut) * (1 + _UP)))
    else:  # one bit 1 against none: a mean ratio is at most `most`
        atoms = tidy(losses, logs + losses, min(1.0, (shown + hidden * rare + sums.cut * most) * (1 + _UP)))
    return coarsen(atoms, _HALF_CELLS) if len(atoms.losses) > _HALF_CELLS else atoms


def _one_ratio(messages: int) -> tuple[_Lattice, float, float, float]:
    """Lattice spread of r(z), z ~ Bin(m, ½); its maximum; the mass left out for bit 0, and for bit 1.

    For bit 1, that is the message m + 1 and all messages beyond the enumerated ones.
    """
    first, logs, outside = binomial_window(messages, 0.5)
    rest = np.logaddexp.accumulate(logs[::-1])[::-1]  # of z and all above: their ratios are huge, and hardly occur
    inside = max(1, int(np.count_nonzero(rest > _RARE)))
    outside += math.exp(float(rest[inside])) if inside < len(logs) else 0.0
    logs = logs[:inside]
    z = first + np.arange(len(logs), dtype=np.float64)
    ratios = z / (messages + 1 - z)
    masses = np.exp(logs)
    mean = float(masses @ ratios)
    std = math.sqrt(float(masses @ (ratios - mean) ** 2))
    mesh = max(std / _FINE, float(ratios[-1] - ratios[0]) / _LONGEST, 1e-12)
    low = np.floor(ratios / mesh).astype(np.int64)
    share = ratios / mesh - low
    start = int(low[0])
    spread = np.bincount(low - start, weights=masses * (1 - share), minlength=int(low[-1]) - start + 2)
    spread[1:] += np.bincount(low - start, weights=masses * share, minlength=len(spread) - 1)[: len(spread) - 1]
    top = float(logs[-1])  # a bit 1 sends z = last + 1 with the probability that a bit 0 sends `last`
    return (
        _Lattice(masses=as_floats(spread), start=start, mesh=mesh),
        float(ratios[-1]) + mesh,
        outside,
        math.exp(top) + outside,
    )


def _repeat(one: _Lattice, count: int) -> _Lattice:
    """Sum of `count` independent copies, on coarser and coarser lattices."""
    repeated = one
    for bit in bin(count)[3:]:
        repeated = repeated.plus(repeated)
        if bit == "1":
            repeated = repeated.plus(one)
        while repeated.std > _WIDE:
            repeated, one = repeated.coarser(), one.coarser()
    return repeated
