"""Shuffled randomised response against exact sums over everything that the others may hold; the hull by fractions."""

import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from privcheck import accounting as acc
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.hulls import law_above
from privcheck.accounting.engine.laws import Cells
from privcheck.accounting.engine.mass import MassError

REPORTED = [(0.84, 3, 0.168), (0.21, 8, 0.042), (0.84, 6, 0.168), (0.84, 28, 0.168)]


def binomial(trials, p):
    return [mp.binomial(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(trials + 1)]


def worst_delta(e0, users, epsilon):
    """The largest δ over the others' values and both directions, at 40 digits."""
    with mp.workdps(40):
        flip, ratio = 1 / (1 + mp.exp(mp.mpf(e0))), mp.exp(mp.mpf(epsilon))
        worst = mp.mpf(0)
        for ones in range(users):
            others = [mp.mpf(0)] * users
            for i, x in enumerate(binomial(users - 1 - ones, flip)):
                for j, y in enumerate(binomial(ones, 1 - flip)):
                    others[i + j] += x * y
            pairs = [
                ((1 - flip) * high + flip * low, flip * high + (1 - flip) * low)
                for high, low in zip([mp.mpf(0), *others], [*others, mp.mpf(0)], strict=True)
            ]
            worst = max(
                worst,
                mp.fsum(max(mp.mpf(0), p - ratio * q) for p, q in pairs),
                mp.fsum(max(mp.mpf(0), q - ratio * p) for p, q in pairs),
            )
        return float(worst)


def settings():
    """The four reported ones, then 220 at random, from losses of 1e-6 to next to no noise."""
    rng = random.Random(11)  # noqa: S311 - a test
    yield from REPORTED
    for _ in range(220):
        e0 = rng.choice([1e-6, 1e-3, 0.05, 0.21, 0.84, 1, 2, 5, 8, 40])
        users = rng.choice([2, 3, 4, 5, 6, 7, 8, 10, 12])
        yield e0, users, e0 * rng.choice([0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999])


# [lemma largest-curve]
def test_never_below_the_worst_of_the_others_values_and_within_a_hair_of_it():
    for e0, users, epsilon in settings():
        truth = worst_delta(e0, users, epsilon)
        found = acc.compose(acc.shuffled_randomized_response(epsilon=e0, users=users, relation="replace-one")).delta(
            epsilon=epsilon
        )
        assert truth * (1 - 1e-15) <= found.upper <= truth * (1 + 1e-8) + 1e-280, (e0, users, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("users", [20, 40, 61])
def test_more_users(users):
    for e0, share in ((0.3, 0.4), (0.84, 0.2), (2.0, 0.7), (5.0, 0.5)):
        truth = worst_delta(e0, users, share * e0)
        found = acc.compose(acc.shuffled_randomized_response(epsilon=e0, users=users, relation="replace-one")).delta(
            epsilon=share * e0
        )
        assert truth * (1 - 1e-15) <= found.upper <= truth * (1 + 1e-6)


@pytest.mark.parametrize("e0", [1e-7, 1e-4, 0.3, 30, 31, 700])
@pytest.mark.parametrize("users", [1, 2, 60, 61, 1000])
def test_no_setting_loses_mass(e0, users):
    curve = acc.compose(acc.shuffled_randomized_response(epsilon=e0, users=users, relation="replace-one"))
    assert (
        0
        <= curve.delta(epsilon=e0 / 3).upper
        <= acc.compose(acc.pure(epsilon=e0)).delta(epsilon=e0 / 3).upper * (1 + 1e-9)
    )
    assert e0 <= curve.epsilon(delta=0).value <= e0 * (1 + 1e-14)


def hull_by_fractions(points, alpha):
    """The lower hull at α: the least of all chords over it."""
    best = None
    for i, (x0, y0) in enumerate(points):
        for x1, y1 in points[i:]:
            if x0 <= alpha <= x1:
                y = y0 if x0 == x1 else y0 + (y1 - y0) * (alpha - x0) / (x1 - x0)
                best = y if best is None else min(best, y)
    return best


# [lemma hull-of-points]
def test_the_hull_is_the_least_of_all_chords_also_between_knots_an_ulp_apart():
    rng = np.random.default_rng(5)
    for _ in range(20):
        losses = np.sort(rng.uniform(-1, 1, 8))
        losses = np.unique(np.concatenate([losses, np.nextafter(losses, 2), [-1.0, 1.0]]))
        deltas = np.maximum(1 - np.exp(losses), 0) + 0.1 * rng.uniform(size=len(losses))
        found = law_above(losses, np.log(np.minimum(deltas, 1.0)))
        points = {Fraction(0): Fraction(1)}
        for x, d in zip(losses, deltas, strict=True):
            points.setdefault(1 + Fraction(float(np.expm1(x))), Fraction(min(d, 1.0)))
        points = sorted(points.items())
        points[-1] = (points[-1][0], Fraction(0))
        at = rng.uniform(-0.999, 0.999, 10)
        for epsilon, log_delta in zip(at, found.log_deltas(at), strict=True):
            assert math.exp(log_delta) == pytest.approx(float(hull_by_fractions(points, Fraction(math.exp(epsilon)))))


def test_what_is_not_a_number_is_an_error():
    with pytest.raises(MassError, match="increasing losses"):
        law_above(np.array([0.0, 1.0, 2.0]), np.array([-1.0, np.nan, -np.inf]))
    with pytest.raises(MassError, match="a law on the grid"):
        Cells(start=0, masses=np.array([0.5, np.nan]), infinite=0.0)
    with pytest.raises(MassError, match="negative"):
        Cells(start=0, masses=np.array([0.5, -0.1]), infinite=0.0)


def _half(direction):
    from privcheck.accounting.engine.atoms import Atoms

    return Atoms(losses=np.array([0.0, 1.0]), logs=np.log([0.25, 0.25]))


def test_lost_mass_is_an_error():
    law = AtomicLaw(build=_half, arguments=(), bound=1.0, symmetric=True)
    with pytest.raises(MassError, match=r"add up to 0\.5"):
        law.atoms("remove")
