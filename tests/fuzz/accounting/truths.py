"""What the events' neighbours may do: for each kind the laws of its loss, from its definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .atoms import Atoms, either
from .dense import BoundedRange, Gauss, Laplace, Mixture, Sampled
from .discrete import (
    binomial,
    clones_loss,
    discrete_gaussian_loss,
    discrete_laplace_loss,
    largest_pair,
    loss_of,
    response,
    responses_among,
)
from .normal import ROUNDING, Long, below
from .worlds import Law, Rho

Parameters = Mapping[str, Any]
Composition = list[tuple[Law, int]]
DIRECTIONS: Final = ("remove", "add")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What neighbours may do to one event, released `count` times.

    Attributes:
        ways: For each direction, compositions one of which is what happens.
        bound: The same for the upper bound, where no enumeration of ways is exhaustive.
        documented: Why the event's figure may lie above all ways.
        bounded: Whether the upper bound is known; otherwise nothing is called loose.
    """

    ways: Mapping[str, list[Composition]]
    bound: Mapping[str, list[Composition]] | None = None
    documented: str = ""
    bounded: bool = True


def both(*composition: tuple[Law, int]) -> Truth:
    """Returns the truth of a pair whose two directions are alike."""
    return Truth(ways={d: [list(composition)] for d in DIRECTIONS})


def mu(parameters: Parameters, spread_name: str) -> Long:
    return Long(parameters.get("sensitivity", 1)) / Long(parameters[spread_name])


def tree_moves(leaves: int, participations: int, separation: int) -> set[tuple[int, ...]]:
    """Returns how far each node moves, in falling order, for every pattern of leaves, by brute force."""
    found = set()
    for pattern in itertools.combinations(range(leaves), participations):
        if any(b - a < separation for a, b in itertools.pairwise(pattern)):
            continue
        nodes = [(level, node) for level in range(leaves.bit_length()) for node in range(leaves >> level)]
        moves = [sum(node == leaf >> level for leaf in pattern) for level, node in nodes]
        found.add(tuple(sorted((m for m in moves if m), reverse=True)))
    return found


def gaussian(parameters: Parameters, count: int) -> Truth:
    return both((Gauss(mu(parameters, "std")), count))


def laplace(parameters: Parameters, count: int) -> Truth:
    return both((Laplace(mu(parameters, "scale")), count))


def symmetric(parameters: Parameters, count: int) -> Truth:
    size, v = Long(parameters.get("sensitivity", 1)), Long(parameters["variance"])
    goe = parameters.get("kind", "goe") == "goe"
    return both((Gauss(size / np.sqrt(2 * v if goe else v)), count))


def pure(parameters: Parameters, count: int) -> Truth:
    return both((response(parameters["epsilon"]), count))


def responses(parameters: Parameters, count: int) -> Truth:
    return both((response(parameters["epsilon"], parameters["categories"]), count))


def allocated(parameters: Parameters, count: int) -> Truth:
    """Of randomised responses all that matters is how many are heads, more often in k random rounds."""
    t, k = parameters["rounds"], parameters["participations"]
    head = 1 / (1 + np.exp(-Long(parameters["event"].parameters["epsilon"])))
    without = binomial(t, 1 - head)
    with_user = np.convolve(binomial(k, head), binomial(t - k, 1 - head))
    up, down = loss_of(with_user, without, 4 * t), loss_of(without, with_user, 4 * t)
    return Truth(ways={"remove": [[(up, count)]], "add": [[(down, count)]]})


def approximate(parameters: Parameters, count: int) -> Truth:
    """With probability δ all is lost, otherwise randomised response (Kairouz, Oh & Viswanath 2015)."""
    one, lost = response(parameters["epsilon"]), Long(parameters["delta"])
    return both((Atoms(one.losses, one.masses * (1 - lost), lost, one.error, one.spacing), count))


def zcdp(parameters: Parameters, count: int) -> Truth:
    """A Gaussian of the same ρ is one mechanism that satisfies it; the theorem is for all of them.

    So is one that besides loses ξ: its divergences D_α = ξ + ρα are those of a loss moved by ξ.
    """
    rho, xi = Long(parameters["rho"]), Long(parameters.get("xi", 0))
    gauss: Composition = [(Gauss(np.sqrt(2 * rho)), count)]
    if xi > 0:
        return Truth(ways={d: [gauss] for d in DIRECTIONS}, bounded=False)
    bound: Composition = [(Rho(rho), count)]
    return Truth(ways={d: [gauss] for d in DIRECTIONS}, bound={d: [bound] for d in DIRECTIONS})


def discrete_gaussian(parameters: Parameters, count: int) -> Truth:
    """A sensitivity that is not an integer is the ℓ2 norm of an integer vector: its square is an integer."""
    std, size = parameters["std"], float(parameters.get("sensitivity", 1))
    if size == int(size):
        return both((discrete_gaussian_loss(std, int(size)), count))
    squared = math.floor(size * size)
    ways: list[Composition] = []
    if squared:
        ways.append([(discrete_gaussian_loss(std, 1), squared * count)])
        big = math.isqrt(squared)
        parts: Composition = [(discrete_gaussian_loss(std, big), count)]
        if squared > big * big:
            parts.append((discrete_gaussian_loss(std, 1), (squared - big * big) * count))
        ways.append(parts)
    else:
        ways.append([])
    bound: Composition = [(Rho(Long(size) ** 2 / (2 * Long(std) ** 2)), count)]
    return Truth(ways=dict.fromkeys(DIRECTIONS, ways), bound={d: [bound] for d in DIRECTIONS})


def discrete_laplace(parameters: Parameters, count: int) -> Truth:
    return both((discrete_laplace_loss(parameters["scale"], int(parameters.get("sensitivity", 1))), count))


def sampled(s: Long, q: float, count: int) -> Truth:
    if q == 1:
        return both((Gauss(s), count))
    return Truth(ways={d: [[(Sampled(s, Long(q), d == "add"), count)]] for d in DIRECTIONS})


def poisson_gaussian(parameters: Parameters, count: int) -> Truth:
    return sampled(mu(parameters, "std"), parameters["rate"], count)


def bits(parameters: Parameters, count: int) -> Truth:
    """The user's own bit is one more one or one less, in every coordinate; unless `moved` says which."""
    trials = parameters["users"] * parameters.get("messages", 1)
    law = binomial(trials, Long(parameters["probability"]))
    with_user, without = np.append(Long(0), law), np.append(law, Long(0))
    up, down = loss_of(with_user, without, trials), loss_of(without, with_user, trials)
    moved_ = parameters.get("moved", "either")
    if moved_ != "either":
        first, second = (up, down) if moved_ == "up" else (down, up)
        return Truth(ways={"remove": [[(first, count)]], "add": [[(second, count)]]})
    ways: list[Composition] = [[(up, k), (down, count - k)] for k in range(count + 1)]
    ways = [[(law, k) for law, k in way if k] for way in ways]
    return Truth(ways=dict.fromkeys(DIRECTIONS, ways), documented="dominates every mixture of moves")


def shuffled(parameters: Parameters, count: int) -> Truth:
    return both((clones_loss(parameters["local_epsilon"], parameters["users"]), count))


def shuffled_response(parameters: Parameters, count: int) -> Truth:
    """The others hold whatever is worst; with several rounds, in every round anew."""
    e, n = parameters["epsilon"], parameters["users"]
    every = range((n + 1) // 2)  # n − 1 − ones mirrors ones
    laws = [law for ones in every for law in responses_among(e, n, ones)]
    chosen = (
        laws if count == 1 else [laws[i] for i in sorted({0, 1, len(laws) // 2, len(laws) - 1} & {*range(len(laws))})]
    )
    ways: list[Composition] = [[(law, count)] for law in chosen]
    if count > 1 and len(laws) > 1:
        ways.append([(laws[0], count // 2), (laws[-1], count - count // 2)])
    dominating: Composition = [(largest_pair(laws, e), count)]
    return Truth(ways=dict.fromkeys(DIRECTIONS, ways), bound={d: [dominating] for d in DIRECTIONS})


def of_range(eta: Long, count: int) -> Truth:
    """A mechanism of range η may put its losses at t and t − η, for any t; one law dominates them all."""
    ways: list[Composition] = []
    for share in (0.5, 0.2, 0.35, 0.65, 0.8):
        t = eta * Long(share)
        high = np.exp(t) * np.expm1(eta - t) / np.expm1(eta)
        low = np.expm1(t) / np.expm1(eta)
        law = Atoms(np.array([t - eta, t], dtype=Long), np.array([low, high], dtype=Long), spacing=eta)
        ways.append([(law, count)])
    bound: Composition = [(BoundedRange(eta), count)]
    return Truth(ways=dict.fromkeys(DIRECTIONS, ways), bound={d: [bound] for d in DIRECTIONS})


def selection(parameters: Parameters, count: int) -> Truth:
    """The exponential mechanism has range ε, half of it for monotone scores."""
    return of_range(Long(parameters["epsilon"]) / (2 if parameters.get("monotone") else 1), count)


def flip(parameters: Parameters, count: int) -> Truth:
    """Permute-and-flip is report-noisy-max with exponential noise (Ding et al. 2021)."""
    return nearest(Long(parameters["epsilon"]) / (2 if parameters.get("monotone") else 1), "exponential", count)


def nearest(a: Long, noise: str, count: int) -> Truth:
    """Of two noisy scores, any distance apart, which is larger: all pairs are dominated by one Laplace value."""
    heavier = {"exponential": 0, "laplace": 1}[noise]  # of the difference of two: (2 + x)e^−x/4 beside e^−x/2

    def below_(x: Long) -> Long:
        far = np.exp(-abs(x)) / 2 * (1 + heavier * abs(x) / 2)
        return far if x < 0 else 1 - far

    ways: list[Composition] = []
    for share in (0.5, 0, 1, -1, 2):
        p, q = (np.array([below_(x), below_(-x)], dtype=Long) for x in (a * Long(share), a * Long(share - 1)))
        ways.append([(loss_of(p, q, 8), count)])
    return Truth(ways=dict.fromkeys(DIRECTIONS, ways), bound={d: [[(Laplace(a), count)]] for d in DIRECTIONS})


def noisy_max(parameters: Parameters, count: int) -> Truth:
    """Laplace and exponential noise: a Laplace value moved by 2Δ/b, Gumbel noise: of that range; half if monotone."""
    e = mu(parameters, "scale") * (1 if parameters["monotone"] else 2)
    return of_range(e, count) if parameters["noise"] == "gumbel" else nearest(e, parameters["noise"], count)


def above_threshold(parameters: Parameters, count: int) -> Truth:
    one = mu(parameters, "threshold_scale")
    rest = mu(parameters, "query_scale") * parameters["positives"] * (1 if parameters["monotone"] else 2)
    return both((response(one + rest), count))


def histogram(parameters: Parameters, count: int) -> Truth:
    """Keys that others hold cost their noise; a user's own keys are shown with the probability of passing τ."""
    k, m = parameters.get("keys", 1), Long(parameters.get("contribution", 1))
    spread_ = Long(parameters["scale"] if "scale" in parameters else parameters["std"])
    far = (Long(parameters["threshold"]) - m) / spread_
    if "scale" in parameters:
        shown, law = np.exp(-far) / 2, (Laplace(m / spread_), k * count)
    else:
        shown, law = below(np.array([-far]))[0], (Gauss(m / spread_), k * count)
    lost = either(Long(0), shown, k)
    return both(law, (Atoms(np.zeros(1, dtype=Long), np.array([1 - lost]), lost, ROUNDING * 40), count))


def two_masses(parameters: Parameters, count: int) -> Truth:
    p, q = (np.array(parameters[name], dtype=Long) for name in "pq")
    return Truth(ways={"remove": [[(loss_of(p, q, 4), count)]], "add": [[(loss_of(q, p, 4), count)]]})


def mixture(parameters: Parameters, count: int) -> Truth:
    std = Long(parameters["std"])
    shifts = tuple(Long(s) / std for s in parameters["sensitivities"])
    chances = np.array(parameters["probabilities"], dtype=Long)
    law = (shifts, tuple(chances / np.sum(chances)))
    return Truth(ways={d: [[(Mixture(*law, d == "add"), count)]] for d in DIRECTIONS})


def matrix(parameters: Parameters, count: int) -> Truth:
    """Of an encoder without negative entries: the user's contributions all point the same way."""
    c = np.array(parameters["encoder"], dtype=Long)
    k, apart = parameters.get("participations", 1), parameters.get("separation", 1)
    chosen = itertools.combinations(range(c.shape[1]), k)
    most = max(
        np.sum(np.sum(c[:, list(p)], axis=1) ** 2)
        for p in chosen
        if all(b - a >= apart for a, b in itertools.pairwise(p))
    )
    return both((Gauss(np.sqrt(most) / Long(parameters["std"])), count))


def like_gaussian(parameters: Parameters, count: int) -> Truth:
    """A Gaussian whose curve was given at some places: what is between them is bounded, so that figures lie above."""
    gauss: Composition = [(Gauss(Long(parameters["mu"])), count)]
    return Truth(ways={d: [gauss] for d in DIRECTIONS}, bounded=False)
