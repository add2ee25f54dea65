"""Curves of Gaussian noise and of ρ-zCDP: δ at ε and ε at δ, enclosed by fractions."""

from fractions import Fraction

from privcheck_check import enclosures
from privcheck_check.terms import ZERO, Ends, add, exponential, logarithm, multiply, square_root


def normal(ends: Ends) -> Ends:
    """Enclosure of the standard normal distribution function."""

    def one(x: Fraction) -> Ends:
        x = max(Fraction(-40), min(Fraction(40), x))  # beyond, the bounds at 40 hold up to 2⁻¹⁸⁸
        return enclosures.fractions(enclosures.normal(enclosures.enclose(x)))

    return one(ends[0])[0], one(ends[1])[1]


def gaussian_delta(square: Ends, epsilon: Ends) -> Ends:
    """Enclosure of δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), with μ² in `square`, which increases with μ."""
    found: list[Ends] = []
    for end in square:
        mu = square_root((end, end))
        if not mu[0]:
            found.append((ZERO, ZERO))
            continue
        half, ratio = multiply(mu, (Fraction(1, 2),) * 2), multiply(epsilon, (1 / mu[1], 1 / mu[0]))
        upper = normal(add(half, (-ratio[1], -ratio[0])))
        lower = multiply(exponential(epsilon), normal(add((-half[1], -half[0]), (-ratio[1], -ratio[0]))))
        found.append(add(upper, (-lower[1], -lower[0])))
    return max(ZERO, found[0][0]), found[1][1]


def order_epsilon(rho: Ends, delta: Ends, order: Fraction) -> Ends:
    """Enclosure of ρα + log(1 − 1/α) − log(δα)/(α − 1), an ε at δ for ρ-zCDP (C-ZCDP-ORDER)."""
    falls = multiply(logarithm(multiply(delta, (order, order))), (-1 / (order - 1),) * 2)
    return add(multiply(rho, (order, order)), logarithm((1 - 1 / order,) * 2), falls)
