"""Finite laws outcome by outcome: both ends of every probability, what is merged, and how much is counted out."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from certificate_verdicts import refused, work
from privcheck_check import laws
from privcheck_check.terms import Ends, allow
from privcheck_check.values import Rejected

F = Fraction
UNIT = laws.UNIT


def real(x: Fraction | int) -> mpmath.mpf:
    return mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator


def encloses(law: laws.Law, exact: list[tuple[mpmath.mpf, mpmath.mpf]], *, units: int) -> None:
    """Every probability between its ends, at most so many units of 2⁻¹⁹² apart; within mpmath.workdps(200)."""
    assert len(law) == len(exact)
    for (a, b, c, d), (p, q) in zip(law, exact, strict=True):
        for low, value, high in ((a, p, b), (c, q, d)):
            assert 0 <= low <= value * UNIT <= high
            assert (high - low) >> (laws.BITS - 192) <= units


def coarse(monkeypatch: pytest.MonkeyPatch, bits: int) -> int:
    """Probabilities as multiples of 2^−bits, so that one rounding in the wrong direction is seen."""
    monkeypatch.setattr(laws, "BITS", bits)
    monkeypatch.setattr(laws, "UNIT", 1 << bits)
    monkeypatch.setattr(laws, "CERTAIN", [(1 << bits,) * 4])
    return 1 << bits


# ── Making and joining ──


def test_an_event_and_its_complement() -> None:
    p, q = (F(1, 7), F(1, 3)), (F(1, 5), F(5, 11))
    assert laws.two(p, q) == [
        (math.floor(p[0] * UNIT), math.ceil(p[1] * UNIT), math.floor(q[0] * UNIT), math.ceil(q[1] * UNIT)),
        (math.floor((1 - p[1]) * UNIT), math.ceil((1 - p[0]) * UNIT), math.floor((1 - q[1]) * UNIT),
         math.ceil((1 - q[0]) * UNIT)),
    ]  # fmt: skip
    assert laws.outcome((F(-1, 7), F(1)), (F(-1), F(0))) == (0, UNIT, 0, 0)


def some(rng: random.Random, unit: int, number: int) -> laws.Law:
    return [
        (*sorted((rng.randrange(unit), rng.randrange(unit))), *sorted((rng.randrange(unit), rng.randrange(unit))))
        for _ in range(number)
    ]  # type: ignore[misc]  # four numbers each


def test_mixtures_and_products_are_rounded_outward(monkeypatch: pytest.MonkeyPatch) -> None:
    unit, rng = coarse(monkeypatch, 7), random.Random(1)
    left, right = some(rng, unit, 12), some(rng, unit, 9)
    for rate in (F(0), F(1, 3), F(5, 7), F(1)):
        assert laws.mixed(left, rate) == [
            (math.floor((1 - rate) * c + rate * a), math.ceil((1 - rate) * d + rate * b), c, d) for a, b, c, d in left
        ]
    allow()
    assert laws.product(left, right) == [
        tuple((math.floor, math.ceil, math.floor, math.ceil)[i](F(x[i] * y[i], unit)) for i in range(4))
        for x, y in itertools.product(left, right)
    ]


def test_a_composition_is_below_the_exact_one_whatever_it_is_rounded_to(monkeypatch: pytest.MonkeyPatch) -> None:
    unit, rng = coarse(monkeypatch, 9), random.Random(2)
    for _ in range(40):
        made = [laws.exactly(*([F(w, sum(side)) for w in side] for side in sides)) for sides in (
            [[rng.randrange(1, 9) for _ in range(3)] for _ in range(2)] for _ in range(2))]  # fmt: skip
        allow()
        found = laws.delta([(law, 1) for law in made], (F(0), F(1, 3)))
        every = [(F(x[0] * y[0], unit**2), F(x[3] * y[3], unit**2)) for x, y in itertools.product(*made)]
        exact = sum((max(F(0), p - q * F(math.exp(1 / 3))) for p, q in every), F(0))
        assert exact - F(9, unit) < found <= exact


def test_a_composition_takes_the_upper_end_of_epsilon_and_nothing_loses_nothing() -> None:
    allow()
    law = laws.exactly([F(1)], [F(1, 9)])
    assert laws.delta([(law, 1)], (F(0), F(1))) == laws.delta([(law, 1)], (F(1), F(1)))
    assert laws.delta([], (F(0), F(0))) == 0
    even = laws.exactly([F(1, 2), F(1, 2)], [F(1, 2), F(1, 2)])
    assert laws.delta([(even, 1)], (F(1), F(1))) == 0


def test_three_hundred_outcomes_are_kept_and_more_are_merged() -> None:
    one = laws.outcome((F(1, 400), F(1, 399)), (F(1, 402), F(1, 401)))
    assert laws.merged([one] * 300) == [one] * 300
    assert laws.merged([one] * 301) == [tuple(301 * x for x in one)]


def test_merging_keeps_all_probability_and_what_is_certain() -> None:
    """Losses from −3 to 3, outcomes of one neighbour alone, and outcomes below 2⁻⁸⁰ of both."""
    rng, law = random.Random(3), []
    for i in range(900):
        loss, mass = -3 + i / 150, F(rng.randrange(1, 99), 10**5)
        other = mass * F(math.exp(loss))
        law.append(laws.outcome((other, other * F(101, 100)), (mass, mass * F(101, 100))))
    apart = [laws.outcome((F(1, 50), F(1, 49)), (F(0), F(0))), laws.outcome((F(0), F(0)), (F(1, 60), F(1, 59)))]
    found = laws.merged([*law, *apart, *apart])
    assert len(found) <= 301
    assert [sum(each[i] for each in found) for i in range(4)] == [
        sum(x[i] for x in [*law, *apart * 2]) for i in range(4)
    ]
    assert laws.largest(found) is None
    for epsilon in (0.0, 0.5, 2.0):
        before, after = (
            sum(max(0.0, a / UNIT - math.exp(epsilon) * d / UNIT) for a, _, _, d in each)
            for each in (law + apart * 2, found)
        )
        assert before * 0.999 <= after <= before * (1 + 1e-9)
    rare = laws.outcome((F(1, 2**90), F(1, 2**90)), (F(1, 2**90), F(1, 2**90)))
    assert sum(a for a, *_ in laws.merged([*law, rare])) <= sum(a for a, *_ in [*law, rare])
    assert laws.merged([rare] * 400) == []


# ── Divergences ──


def test_a_divergence_takes_lower_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logarithms and exponentials with ends an eighth apart; the naive sum of terms at α = 5/2."""

    def log(ends: Ends) -> Ends:
        return F(math.log(ends[0])) - F(1, 8), F(math.log(ends[1])) + F(1, 8)

    def exp(ends: Ends) -> Ends:
        return F(math.exp(ends[0])) * F(7, 8), F(math.exp(ends[1])) * F(9, 8)

    monkeypatch.setattr(laws, "logarithm", log)
    monkeypatch.setattr(laws, "exponential", exp)
    allow()
    law = [laws.outcome((F(1, 4), F(1, 2)), (F(1, 8), F(1, 3))), laws.outcome((F(1, 9), F(1, 2)), (F(1, 8), F(1, 6)))]
    terms = [
        math.exp(2.5 * (math.log(p) - 1 / 8) - 1.5 * (math.log(q) + 1 / 8)) for p, q in ((1 / 4, 1 / 3), (1 / 9, 1 / 6))
    ]
    exact = (math.log(sum(terms) * 7 / 8) - 1 / 8) / 1.5
    assert float(laws.divergence(law, F(5, 2))) == pytest.approx(exact, rel=1e-12)


def test_terms_that_cannot_be_computed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for depth, found in ((1023, 1023), (1024, 0)):
        monkeypatch.setattr(laws, "logarithm", lambda ends, at=depth: (F(0),) * 2 if ends[0] == 1 else (F(-at),) * 2)
        allow()
        divergence = laws.divergence([(UNIT, UNIT, 1, 1)], F(2))
        assert (divergence == 0) == (found == 0)


def test_outcomes_of_one_neighbour_in_a_divergence() -> None:
    allow()
    single = laws.outcome((F(1, 4),) * 2, (F(1, 2),) * 2)
    assert float(laws.divergence([single], F(2))) == pytest.approx(math.log(1 / 8))
    half = laws.outcome((F(0), F(0)), (F(1, 2), F(1, 2)))
    assert laws.divergence([single, half, (0, 0, 0, 0)], F(2)) == laws.divergence([single], F(2))
    assert laws.divergence([half], F(2)) == 0
    certain = laws.outcome((F(1, 2), F(1, 2)), (F(0), F(0)))
    with pytest.raises(Rejected, match="L-RENYI"):
        laws.divergence([single, certain], F(2))


# ── Laws of mechanisms ──


@pytest.mark.parametrize("mean", [F(1, 10), F(1), F(20)])
def test_gaussian_noise_is_cut_into_two_hundred_cells(mean: Fraction) -> None:
    """From −9 − μ/2 on in cells of (18 + 2μ)/200, the outer ones without end: Φ by mpmath."""
    with mpmath.workdps(200):
        edges = [real(-9 - mean / 2 + i * (18 + 2 * mean) / 200) for i in range(1, 200)]
        sides = []
        for centre in (real(mean), mpmath.mpf(0)):
            below = [mpmath.mpf(0), *(mpmath.ncdf(x - centre) for x in edges), mpmath.mpf(1)]
            sides.append([b - a for a, b in itertools.pairwise(below)])
        encloses(laws.gaussian((mean**2,) * 2), list(zip(*sides, strict=True)), units=64)


def test_noise_is_that_of_the_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for law in (laws.gaussian, laws.laplace, laws.discrete_laplace):
        assert law((F(1), F(4))) == law((F(1), F(1)))
    one = laws.gaussian((F(1), F(1)))
    monkeypatch.setattr(laws, "square_root", lambda _: (F(1), F(2)))
    assert laws.gaussian((F(1), F(1))) == one


@pytest.mark.parametrize("t", [F(1, 3), F(1), F(7, 2), F(30)])
def test_laplace_noise_is_cut_between_both_centres(t: Fraction) -> None:
    """Beyond both centres ½ against e^(−t)/2; between them 32 cells; of discrete noise one event."""
    with mpmath.workdps(200):
        tails = [mpmath.exp(-real(t) * i / 32) / 2 for i in range(33)]
        cells = [a - b for a, b in itertools.pairwise(tails)]
        exact = [(tails[-1], tails[0]), *zip(reversed(cells), cells, strict=True), (tails[0], tails[-1])]
        encloses(laws.laplace((t, t)), exact, units=8)
        encloses(laws.discrete_laplace((t, t)), [(tails[0], tails[-1])], units=8)


def test_a_response_has_both_ends_of_its_truth() -> None:
    keep, other = (F(1, 2), F(3, 5)), (F(2, 5) / 3, F(1, 2) / 3)
    rest = (2 * other[0], 2 * other[1])
    assert laws.response(keep, 4) == [laws.outcome(keep, other), laws.outcome(other, keep), laws.outcome(rest, rest)]
    assert laws.response((F(3, 4),) * 2, 2)[2] == (0, 0, 0, 0)


def test_noise_bits_and_users_are_counted_out_up_to_a_limit() -> None:
    assert sum(laws.binomial(400, F(1, 2))) == 1
    assert laws.binomial(1, F(1, 10**6)) == [1 - F(1, 10**6), F(1, 10**6)]
    assert refused(laws.binomial, 401, F(1, 2))
    assert refused(laws.binomial, 1, F(1, 10**6 + 1))
    allow()
    assert len(laws.shuffled_integers(400, 0, F(1, 2))) == 2
    for users in (-1, 0, 401):
        assert refused(laws.shuffled_integers, users, 0, F(1, 2))


BEHIND = {
    "gumbel": lambda t: 1 / (1 + math.exp(t)),
    "exponential": lambda t: math.exp(-t) / 2,
    "laplace": lambda t: math.exp(-t) * (2 + t) / 4,
}


@pytest.mark.parametrize("noise", BEHIND)
def test_chances_of_a_candidate_behind_have_both_ends(noise: str) -> None:
    least, most = F(1, 2), F(1)
    low, high = laws.wins(noise, (least, most))
    if noise == "laplace":  # a product of two enclosures
        expected = (math.exp(-1) * 2.5 / 4, math.exp(-0.5) * 3 / 4)
    elif noise == "gumbel":
        expected = (math.exp(-1) / (1 + math.exp(-0.5)), math.exp(-0.5) / (1 + math.exp(-1)))
    else:
        expected = BEHIND[noise](1.0), BEHIND[noise](0.5)
    assert (float(low), float(high)) == pytest.approx(expected, rel=1e-12)
    assert laws.wins(noise, (-most, -least)) == (1 - high, 1 - low)
    with mpmath.workdps(80):
        low, high = laws.wins(noise, (most, most))
        exact = {"gumbel": 1 / (1 + mpmath.e), "exponential": mpmath.exp(-1) / 2, "laplace": mpmath.exp(-1) * 3 / 4}
        assert real(low) < exact[noise] < real(high)
        assert high - low < F(1, 2**180)


def crossing_by_quadrature(scales: tuple[Fraction, Fraction], below: Any, above: Any) -> mpmath.mpf:
    (rate, each), (n, a), (m, b) = (1 / real(scales[0]), 1 / real(scales[1])), below, above

    def under(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(each * x) / 2 if x < 0 else 1 - mpmath.exp(-each * x) / 2

    def integrand(z: mpmath.mpf) -> mpmath.mpf:
        return rate / 2 * mpmath.exp(-rate * abs(z)) * under(z - real(a)) ** n * under(real(b) - z) ** m

    cuts = sorted({mpmath.mpf(x) for x in (0, -200, -20, 20, 200)} | {real(a), real(b)})
    return mpmath.quad(integrand, cuts)


@pytest.mark.parametrize(
    ("scales", "below", "above"),
    [((F(1), F(1)), (1, F(1)), (1, F(-1))), ((F(1), F(1, 2)), (1, F(1)), (2, F(2))),
     ((F(2), F(1)), (2, F(3)), (0, F(0))),
     ((F(1), F(1)), (2, F(-1)), (1, F(2))), ((F(1), F(1)), (0, F(0)), (1, F(2)))],
)  # fmt: skip
def test_crossings_hold_to_many_digits(scales: Any, below: Any, above: Any) -> None:
    """Equal scales have pieces without an exponential in z."""
    allow()
    low, high = laws.crossing(scales, below, above)
    with mpmath.workdps(30):
        assert abs(crossing_by_quadrature(scales, below, above) - real(low)) < mpmath.mpf(10) ** -20
    assert 0 < high - low < F(1, 2**180)


@pytest.mark.parametrize("seed", range(8))
def test_crossings_hold_with_any_enclosure_of_the_exponential(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends at random distances up to 1/100: the chance from the true exponential stays inside."""
    exact = laws.exponential
    given = ((F(2), F(3, 2)), (2, F(1)), (1, F(-1)))
    allow()
    true = laws.crossing(*given)[0]
    rng = random.Random(seed)

    def wide(ends: Ends) -> Ends:
        low, high = exact(ends)
        return low - F(rng.randrange(100), 10**4), high + F(rng.randrange(100), 10**4)

    monkeypatch.setattr(laws, "exponential", wide)
    low, high = laws.crossing(*given)
    assert low <= true <= high


# ── Work ──


def test_work_is_counted_before_it_is_done() -> None:
    law = laws.exactly([F(1, 20)] * 20, [F(i, 210) for i in range(1, 21)])
    assert work(laws.product, law, law[:19]) == 20 * 19 // 8
    assert work(laws.delta, [(law, 1)], (F(1), F(1))) == 20 // 16
    assert work(laws.delta, [(law, 1), (law[:19], 1)], (F(1), F(1))) == 19 // 8 + 20 * 19 // 16
    assert work(laws.divergence, law, F(2)) == 200
    assert work(laws.shuffled_integers, 2, 3, F(1, 2)) == 20 * 4 * 10
    given = ((F(1), F(1)), (2, F(0)), (3, F(0)))
    assert 200 * 3 * 4 <= work(laws.crossing, *given) < 200 * 3 * 4 + 300
