"""Finite laws of an output on two neighbours, and a lower bound on what several of them lose together.

Rule identifiers in comments are those of docs/certificates.md. An outcome is a set of outputs: merging outcomes,
rounding P down and Q up, and leaving outcomes out make the loss smaller: whatever is done, a refutation stays true.
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import comb, factorial
from math import log as float_log

from privcheck_check import enclosures
from privcheck_check.terms import (
    HALF,
    ONE,
    ZERO,
    Ends,
    add,
    exponential,
    invert,
    logarithm,
    multiply,
    spend,
    square_root,
)
from privcheck_check.values import Rejected

BITS = 512  # probabilities are whole multiples of 2^-512
UNIT = 1 << BITS
BINS = 300  # outcomes of a law in a composition
RARE = BITS - 80  # outcomes below 2^-80 under both neighbours may be left out
ANSWERS = 400  # noise bits, users
CELLS = 200  # of the line, of Gaussian noise
Outcome = tuple[int, int, int, int]  # P from below and from above, Q from below and from above
Law = list[Outcome]


CERTAIN: Law = [(UNIT, UNIT, UNIT, UNIT)]  # of no output


def outcome(p: Ends, q: Ends) -> Outcome:
    """An outcome with enclosures of both probabilities."""
    (a, b), (c, d) = ((int(max(ZERO, low) * UNIT), -int(-high * UNIT // 1)) for low, high in (p, q))
    return a, b, c, d


def exactly(p: Iterable[Fraction], q: Iterable[Fraction]) -> Law:
    """The law with these probabilities."""
    return [outcome((a, a), (b, b)) for a, b in zip(p, q, strict=True)]


def two(p: Ends, q: Ends) -> Law:
    """An event and its complement."""
    return [outcome(p, q), outcome((ONE - p[1], ONE - p[0]), (ONE - q[1], ONE - q[0]))]


def turned(law: Law) -> Law:
    """D and D′ exchanged."""
    return [(c, d, a, b) for a, b, c, d in law]


def mixed(law: Law, rate: Fraction) -> Law:
    """T-SAMPLED: with the unit in the sample at this rate, (1 − r)Q + rP against Q."""
    top, bottom = rate.as_integer_ratio()
    rest = bottom - top
    return [((rest * c + top * a) // bottom, -(-(rest * d + top * b) // bottom), c, d) for a, b, c, d in law]


def merged(law: Law) -> Law:
    """Rare outcomes left out and those of about one loss put together, until there are some `BINS`: hints in floats."""
    if len(law) <= BINS:
        return law
    law = [each for each in law if max(each[0], each[2]) >> RARE]
    losses = [float_log(a) - float_log(d) if a and d else (-1e9, 1e9)[d == 0] for a, _, _, d in law]
    likely = [x for x in losses if abs(x) < 1e9]
    low, width = min(likely, default=0.0), (max(likely, default=0.0) - min(likely, default=0.0)) / (BINS - 2) or 1.0
    bins: dict[int, Outcome] = {}
    for x, (a, b, c, d) in zip(losses, law, strict=True):
        key = int((x - low) / width) if abs(x) < 1e9 else (-1, BINS)[x > 0]
        old = bins.get(key, (0, 0, 0, 0))
        bins[key] = (old[0] + a, old[1] + b, old[2] + c, old[3] + d)
    return list(bins.values())


def product(left: Law, right: Law) -> Law:
    """Two independent outputs together."""
    spend(len(left) * len(right) // 8)
    return merged(
        [
            (a * e >> BITS, -(-b * f >> BITS), c * g >> BITS, -(-d * h >> BITS))
            for a, b, c, d in left
            for e, f, g, h in right
        ]
    )


def power(law: Law, count: int) -> Law:
    """`count` independent outputs of one law."""
    if count < 1:
        return CERTAIN
    result = law
    for bit in f"{count:b}"[1:]:
        result = product(result, result)
        result = product(result, law) if bit == "1" else result
    return result


def delta(laws: list[tuple[Law, int]], epsilon: Ends) -> Fraction:
    """L-FINITE: a lower bound on P(S) − e^ε Q(S) for the best set S of outcomes of all laws together."""
    powers = sorted((power(merged(law), count) for law, count in laws), key=len)
    whole = CERTAIN
    for law in powers[:-1]:
        whole = product(whole, law)
    factor = -int(-exponential(epsilon)[1] * UNIT // 1)
    last = powers[-1] if powers else whole
    spend(len(whole) * len(last) // 16)
    scaled = [(a, -(-d * factor >> BITS)) for a, _, _, d in last]
    total = sum(max(0, p * a - q * d) for p, _, _, q in whole for a, d in scaled)
    return Fraction(total, UNIT * UNIT)


def largest(law: Law) -> Fraction | None:
    """A lower bound on the largest likelihood ratio; None if it is infinite."""
    if any(a and not d for a, _, _, d in law):
        return None
    return max((Fraction(a, d) for a, _, _, d in law if a), default=ONE)


def divergence(law: Law, order: Fraction) -> Fraction:
    """L-RENYI: a lower bound on the Rényi divergence of order α > 1; terms that cannot be computed are left out."""
    total = ZERO
    spend(10 * len(law))
    for a, _, _, d in law:
        if not (a and d):
            if a:
                raise Rejected("L-RENYI", "an outcome of one neighbour alone: no order is needed")
            continue
        p, q = logarithm((Fraction(a, UNIT),) * 2), logarithm((Fraction(d, UNIT),) * 2)
        exponent = order * p[0] - (order - 1) * q[1]
        if abs(exponent) < enclosures.LARGEST:
            total += exponential((exponent, exponent))[0]
    return logarithm((total, total))[0] / (order - 1) if total > 0 else ZERO


# ── Laws of mechanisms ──


def gaussian(square: Ends) -> Law:
    """N(μ, 1) against N(0, 1) in cells of the line, μ² at the lower end."""
    mean = square_root((square[0],) * 2)[0]
    low, width = -9 - mean / 2, (18 + 2 * mean) / CELLS
    edges = [low + width * i for i in range(1, CELLS)]

    def below(x: Fraction) -> Ends:
        return enclosures.fractions(enclosures.normal(enclosures.enclose(x)))

    sides = [[(ZERO, ZERO), *(below(x - at) for x in edges), (ONE, ONE)] for at in (mean, ZERO)]
    masses = [[(b[0] - a[1], b[1] - a[0]) for a, b in pairwise(each)] for each in sides]
    return [outcome(p, q) for p, q in zip(*masses, strict=True)]


def laplace(ratio: Ends) -> Law:
    """Laplace laws at this distance in scales, at its lower end: beyond both centres, and 32 cells between them."""
    t, half = ratio[0], Fraction(1, 2)
    points = [exponential((-t * i / 32,) * 2) for i in range(33)]  # e^(−x)
    tails = [(half * low, half * high) for low, high in points]  # Q beyond x; P below t − x
    cells = [(a[0] - b[1], a[1] - b[0]) for a, b in pairwise(tails)]
    middle = [outcome(p, q) for p, q in zip(reversed(cells), cells, strict=True)]
    return [outcome(tails[-1], tails[0]), *middle, outcome(tails[0], tails[-1])]


def discrete_laplace(ratio: Ends) -> Law:
    """Two-sided geometric laws: of the event beyond both centres, of probability 1/(1 + e^(−1/b)), a share."""
    half = Fraction(1, 2)
    fallen = exponential((-ratio[0], -ratio[0]))
    return [outcome((half, half), (half * fallen[0], half * fallen[1]))]


def response(keep: Ends, answers: int) -> Law:
    """Two of so many answers, the true one with probability `keep`."""
    other = ((ONE - keep[1]) / (answers - 1), (ONE - keep[0]) / (answers - 1))
    rest = ((answers - 2) * other[0], (answers - 2) * other[1])
    return [outcome(keep, other), outcome(other, keep), outcome(rest, rest)]


def binomial(trials: int, chance: Fraction) -> list[Fraction]:
    """Probabilities of 0 to `trials` ones."""
    if trials > ANSWERS or chance.denominator > 10**6:
        raise Rejected("L-SHUFFLED", "more noise bits than this checker counts out")
    return [comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]


def shuffled_bits(trials: int, chance: Fraction) -> Law:
    """L-SHUFFLED: the number of ones among `trials` noise bits, with a one more against without."""
    masses = binomial(trials, chance)
    return exactly([ZERO, *masses], [*masses, ZERO])


def shuffled_integers(users: int, bits: int, chance: Fraction) -> Law:
    """L-SHUFFLED: the multiset of the users' sums of bits, one user's with a one more against without."""
    one = binomial(bits, chance)
    if not 0 < users <= ANSWERS:
        raise Rejected("L-SHUFFLED", "no users, or more than this checker counts out")
    spend(20 * (bits + 1) * comb(users + bits, users))
    found: dict[tuple[int, ...], list[Fraction]] = {}
    for others in combinations_with_replacement(range(bits + 1), users - 1):
        ways = Fraction(factorial(users - 1))
        for value, count in Counter(others).items():
            ways *= one[value] ** count / factorial(count)
        for value, mass in enumerate(one):
            for side, sent in enumerate((value + 1, value)):
                found.setdefault(tuple(sorted((*others, sent))), [ZERO, ZERO])[side] += ways * mass
    return exactly(*zip(*found.values(), strict=True))


def wins(noise: str, behind: Ends) -> Ends:
    """L-MAX: the probability that of two candidates the one so many scales behind has the larger noisy score."""
    if behind[0] < 0:
        low, high = wins(noise, (-behind[1], -behind[0]))
        return ONE - high, ONE - low
    fallen = exponential((-behind[1], -behind[0]))
    if noise == "gumbel":
        return multiply(fallen, invert(add((ONE, ONE), fallen)))
    if noise == "exponential":
        return fallen[0] / 2, fallen[1] / 2
    return multiply(fallen, ((2 + behind[0]) / 4, (2 + behind[1]) / 4))


def crossing(scales: tuple[Fraction, Fraction], below: tuple[int, Fraction], above: tuple[int, Fraction]) -> Ends:
    """L-SPARSE: the probability that so many queries at one level are below a noisy threshold, so many others above.

    `scales` of the threshold's and of a query's Laplace noise. Between the threshold's centre and the two levels the
    integrand is a sum of terms c·e^(kz + o), by the binomial theorem; each is (c, k, o).
    """
    (rate, each), (n, a), (m, b) = (1 / scales[0], 1 / scales[1]), below, above
    spend(200 * (n + 1) * (m + 1))
    edges = sorted({ZERO, a, b})
    total = (ZERO, ZERO)
    for low, high in pairwise([None, *edges, None]):
        right = [low is not None and low >= centre for centre in (ZERO, a, b)]
        terms = [(rate / 2, -rate if right[0] else rate, ZERO)]
        for level, count, side, likely in ((a, n, right[1], right[1]), (b, m, right[2], not right[2])):
            slope = -each if side else each  # e^(slope·(z − level))/2 is the tail on this side
            if likely:
                factors = [(comb(count, j) * (-HALF) ** j, j * slope, -j * slope * level) for j in range(count + 1)]
            else:
                factors = [(HALF**count, count * slope, -count * slope * level)]
            terms = [(c * d, k + x, o + y) for c, k, o in terms for d, x, y in factors]
        for c, k, o in terms:
            if k:
                ends = [exponential((k * z + o,) * 2) if z is not None else (ZERO, ZERO) for z in (low, high)]
                piece = multiply((c / k, c / k), add(ends[1], (-ends[0][1], -ends[0][0])))
            else:
                if low is None or high is None:
                    raise Rejected("L-SPARSE", "a tail that does not fall")
                piece = multiply((c * (high - low),) * 2, exponential((o, o)))
            total = add(total, piece)
    return total
