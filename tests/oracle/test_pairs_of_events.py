"""Every pair of selection, matrix, vector and additive events, both directions, against outputs sorted into cells.

Which cell an output lies in is post-processing: δ(ε) of the cells is never above the truth, and near it if narrow.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from privcheck import accounting as acc

EDGES = np.concatenate([[-np.inf], np.linspace(-13, 19, 1201), [np.inf]])


def normal(centre):
    return np.where(
        EDGES[:-1] > centre, ndtr(centre - EDGES[:-1]) - ndtr(centre - EDGES[1:]), np.diff(ndtr(EDGES - centre))
    )


def laplace(centre, scale):
    x = (EDGES - centre) / scale
    with np.errstate(over="ignore"):
        return np.diff(np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0))))


def mixture(shifts, weights):
    return sum(w * normal(s) for s, w in zip(shifts, weights, strict=True))


def integers(sigma, move):
    x = np.arange(-200, 201)
    masses = [np.exp(-((x - m) ** 2) / (2 * sigma**2)) for m in (move, 0)]
    return tuple(m / m.sum() for m in masses)


def vector(sigma):
    """A move by (1, 1): the sum of both coordinates tells all."""
    p, q = integers(sigma, 1)
    return np.convolve(p, p), np.convolve(q, q)


def choices(eta):
    """The exponential mechanism among very many, at several splits: losses t and t − η."""
    for t in np.linspace(0.4, 0.95, 12) * eta:
        p = (math.exp(eta) - math.exp(t)) / math.expm1(eta)
        yield np.array([p, 1 - p]), np.array([p * math.exp(-t), (1 - p) * math.exp(eta - t)])


def response(epsilon):
    p = 1 / (1 + math.exp(-epsilon))
    return np.array([p, 1 - p]), np.array([1 - p, p])


# (event, P with the user and Q without, whether the accountant's law is that pair, nearly)
EVENTS = {
    "mixture": (
        acc.mixture_of_gaussians(std=2, sensitivities=[0, 1, 4], probabilities=[0.7, 0.2, 0.1], relation="add-remove"),
        (mixture((0, 0.5, 2), (0.7, 0.2, 0.1)), normal(0)),
        True,
    ),
    "sampled": (
        acc.poisson_gaussian(std=1, rate=0.2, relation="add-remove"),
        (mixture((0, 1), (0.8, 0.2)), normal(0)),
        True,
    ),
    "gaussian": (acc.gaussian(std=2), (normal(0.5), normal(0)), True),
    "matrix": (
        acc.matrix_gaussian(encoder=[[1, 0], [1, 1]], std=5, participations=2, sensitivity=1),
        (normal(math.sqrt(5) / 5), normal(0)),
        True,
    ),
    "laplace": (acc.laplace(scale=2), (laplace(1, 2), laplace(0, 2)), True),
    "choice": (acc.exponential_mechanism(epsilon=0.6), list(choices(0.6)), False),
    "monotone choice": (acc.noisy_max(noise="gumbel", scale=2, monotone=True), list(choices(0.5)), False),
    "threshold": (acc.above_threshold(threshold_scale=4, query_scale=8), response(0.5), True),
    "integers": (acc.discrete_gaussian(std=3), integers(3.0, 1), True),
    "vector": (acc.discrete_gaussian(std=3, sensitivity=math.sqrt(2)), vector(3.0), True),
    "broad vector": (acc.discrete_gaussian(std=14, sensitivity=math.sqrt(2)), vector(14.0), True),
}


def delta(first, second, epsilon):
    p, q = (np.multiply.outer(a, b) for a, b in zip(first, second, strict=True))
    return max(
        float(np.maximum(p - math.exp(epsilon) * q, 0).sum()), float(np.maximum(q - math.exp(epsilon) * p, 0).sum())
    )


@pytest.mark.parametrize("names", list(itertools.combinations_with_replacement(EVENTS, 2)), ids=" + ".join)
def test_a_pair_is_never_below_its_cells_and_close_above_them(names):
    (one, first, tight), (other, second, also) = EVENTS[names[0]], EVENTS[names[1]]
    curve = acc.compose(one, other)
    for epsilon in (0.05, 0.4):
        truth = max(
            delta(a, b, epsilon)
            for a in (first if isinstance(first, list) else [first])
            for b in (second if isinstance(second, list) else [second])
        )
        found = curve.delta(epsilon=epsilon).upper
        assert found >= truth * (1 - 1e-12)
        assert found <= truth * (1.05 if tight and also else 1.6)
