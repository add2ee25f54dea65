"""Finite laws of the checker against enumeration, integrals and closed forms; refutations that rest on them."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

import certificate_mutations as mutations
import certificate_samples as samples
from privcheck_check import laws
from privcheck_check.check import check
from privcheck_check.terms import allow
from privcheck_check.values import Rejected

STEP = 1 / 200
GRID = [(i + 0.5) * STEP for i in range(-8000, 8000)]


def floats(law: laws.Law) -> list[tuple[float, float]]:
    return [(a / laws.UNIT, d / laws.UNIT) for a, _, _, d in law]


def hockey(pairs: list[tuple[float, float]], epsilon: float) -> float:
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)


def density(noise: str, x: float) -> float:
    if noise == "laplace":
        return math.exp(-abs(x)) / 2
    if noise == "exponential":
        return math.exp(-x) if x > 0 else 0.0
    return math.exp(-x - math.exp(-x)) if x > -30 else 0.0


def above(noise: str, x: float) -> float:
    if noise == "laplace":
        return math.exp(-x) / 2 if x > 0 else 1 - math.exp(x) / 2
    if noise == "exponential":
        return math.exp(-x) if x > 0 else 1.0
    return -math.expm1(-math.exp(-x)) if x > -30 else 1.0


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_of_two_candidates_the_one_behind_wins_as_an_integral_says(noise: str) -> None:
    for behind in (0, Fraction(1, 2), 2, -1, -3):
        low, high = laws.wins(noise, (Fraction(behind),) * 2)
        exact = sum(density(noise, x) * above(noise, x + float(behind)) for x in GRID) * STEP
        assert low <= high
        assert float(low) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
@pytest.mark.parametrize("one_sided", [True, False])
def test_no_candidate_is_more_likely_than_the_cost_of_a_noisy_maximum_allows(noise: str, *, one_sided: bool) -> None:
    """Three candidates with scores on a grid, moved by at most one scale: ε = 1 one way, else 2; ranges of Gumbel."""

    def chances(scores: tuple[float, ...]) -> list[float]:
        return [
            sum(
                density(noise, x)
                * math.prod(1 - above(noise, scores[i] + x - s) for j, s in enumerate(scores) if j != i)
                for x in GRID[7000:10_000:4]
            )
            for i in range(3)
        ]

    def losses(before: tuple[float, ...], move: tuple[int, ...]) -> list[float]:
        moved = chances(tuple(s + m for s, m in zip(before, move, strict=True)))
        return [math.log(p / q) for p, q in zip(chances(before), moved, strict=True)]

    moves = [m for m in itertools.product((-1, 0, 1), repeat=3) if not one_sided or min(m) >= 0]
    found = [losses(before, move) for before in ((0, 0, 0), (2, 0, -1)) for move in moves[::3]]
    bound = 1 if one_sided else 2
    assert max(max(map(abs, each)) for each in found) <= bound * 1.02
    if noise == "gumbel":
        assert max(max(each) - min(each) for each in found) <= bound * 1.02


def test_the_bounds_on_rho_hold_at_every_order() -> None:
    """Of randomised response ε·tanh(ε/2), of Laplace noise ε + e^(−ε) − 1, of range ε ε²/8: two outcomes of each."""
    for epsilon in (0.01, 0.3, 1, 3, 8):
        true, t = 1 / (1 + math.exp(-epsilon)), epsilon
        for order in (1.001, 1.5, 2, 7, 60):
            bits = true**order * (1 - true) ** (1 - order) + (1 - true) ** order * true ** (1 - order)
            assert math.log(bits) / (order - 1) <= order * epsilon * math.tanh(epsilon / 2) * (1 + 1e-9)
            both = [math.log(order) + (order - 1) * t, math.log(order - 1) - order * t]
            laplace = max(both) + math.log1p(math.exp(min(both) - max(both))) - math.log(2 * order - 1)
            assert laplace / (order - 1) <= order * (t + math.expm1(-t)) * (1 + 1e-9)
            for shift in (0, 0.25, 0.5, 0.75, 1):  # losses ε·shift and ε·(shift − 1), with the masses that sum to one
                high, low = epsilon * shift, epsilon * (shift - 1)
                if high == low or shift in (0, 1):
                    continue
                q = -math.expm1(low) / (math.exp(high) - math.exp(low))
                divergence = math.log(q * math.exp(order * high) + (1 - q) * math.exp(order * low)) / (order - 1)
                assert divergence <= order * epsilon**2 / 8 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "a", "m", "b"), [(2, 1, 1, -1), (4, 0, 0, 0), (0, 0, 3, -2), (3, 2, 2, 3), (1, -1, 1, 1)]
)
def test_crossings_are_the_integral_over_the_threshold(n: int, a: int, m: int, b: int) -> None:
    allow()
    low, high = laws.crossing((Fraction(2), Fraction(3, 2)), (n, Fraction(a)), (m, Fraction(b)))

    def answers(z: float) -> float:
        return (1 - above("laplace", (z - a) / 1.5)) ** n * above("laplace", (z - b) / 1.5) ** m

    over = (math.exp(-abs(z) / 2) / 4 * answers(z) for z in GRID)
    assert low <= high
    assert float(low) == pytest.approx(sum(over) * STEP, rel=1e-3)


@pytest.mark.parametrize(("users", "bits", "chance"), [(1, 3, "1/2"), (2, 2, "1/3"), (3, 1, "1/4"), (3, 2, "1/2")])
def test_multisets_of_messages_as_all_coins_give_them(users: int, bits: int, chance: str) -> None:
    p, found = Fraction(chance), [Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()]
    for coins in itertools.product((0, 1), repeat=users * bits):
        mass = math.prod(p if coin else 1 - p for coin in coins)
        sums = [sum(coins[i * bits : (i + 1) * bits]) for i in range(users)]
        for extra in (0, 1):
            found[extra][tuple(sorted([sums[0] + extra, *sums[1:]]))] += mass
    expected = sorted((float(found[1][key]), float(found[0][key])) for key in {*found[0], *found[1]})
    computed = sorted(floats(laws.shuffled_integers(users, bits, p)))
    assert len(computed) == len(expected)
    for side in (0, 1):
        assert sorted(each[side] for each in computed) == pytest.approx(sorted(e[side] for e in expected), abs=1e-15)
    for epsilon in (0.0, 0.7, 3.0):
        assert hockey(computed, epsilon) == pytest.approx(hockey(expected, epsilon), abs=1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_compositions_are_lower_bounds_and_close(seed: int) -> None:
    """Random laws of three outcomes, up to three of each, against all outcomes together."""
    allow()
    rng = random.Random(seed)
    made = []
    for _ in range(rng.choice([1, 2])):
        weights = [[rng.randrange(1, 9) for _ in range(3)] for _ in range(2)]
        p, q = ([Fraction(w, sum(side)) for w in side] for side in weights)
        made.append((list(zip(p, q, strict=True)), rng.choice([1, 2, 3])))
    every = [[math.prod(x) for x in zip(*each, strict=True)]
             for each in itertools.product(*(law for law, count in made for _ in range(count)))]  # fmt: skip
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2)):
        found = laws.delta([(laws.exactly(*zip(*law, strict=True)), count) for law, count in made], (epsilon, epsilon))
        exact = hockey([(float(p), float(q)) for p, q in every], float(epsilon))
        assert float(found) == pytest.approx(exact, abs=1e-12)
    ratio = max(p / q for p, q in every)
    assert math.prod((laws.largest(laws.exactly(*zip(*law, strict=True))) or 0) ** n for law, n in made) <= ratio
    order = Fraction(5, 2)
    divergence = sum(float(laws.divergence(laws.exactly(*zip(*law, strict=True)), order)) * n for law, n in made)
    exact = math.log(sum(float(p) ** 2.5 * float(q) ** -1.5 for p, q in every)) / 1.5
    assert divergence == pytest.approx(exact, rel=1e-9)


def test_noise_in_cells_loses_a_little_less_than_the_noise() -> None:
    allow()
    for mu, epsilon in ((1.0, 0.5), (0.3, 0.1), (2.0, 3.0)):

        def phi(x: float) -> float:
            return math.erfc(-x / math.sqrt(2)) / 2

        exact = phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        found = hockey(floats(laws.gaussian((Fraction(mu * mu),) * 2)), epsilon)
        assert exact * 0.985 <= found <= exact + 1e-12
        mixed = hockey(floats(laws.mixed(laws.gaussian((Fraction(mu * mu),) * 2), Fraction(1, 4))), epsilon / 8)
        at = (math.exp(epsilon / 8) - 0.75) / 0.25  # ((1 − r)Q + rP): r·D((t − 1 + r)/r)
        curve = 0.25 * (phi(mu / 2 - math.log(at) / mu) - at * phi(-mu / 2 - math.log(at) / mu))
        assert curve * 0.985 <= mixed <= curve + 1e-12
        t = mu
        laplace = hockey(floats(laws.laplace((Fraction(t),) * 2)), epsilon)
        exact = max(0.0, 1 - math.exp((epsilon - t) / 2))
        assert exact * 0.985 <= laplace <= exact + 1e-12


def test_merging_leaves_a_lower_bound() -> None:
    allow()
    one = laws.laplace((Fraction(1, 3),) * 2)
    four = laws.power(one, 4)
    assert len(four) <= laws.BINS + 2
    assert sum(a for a, *_ in four) <= laws.UNIT
    pair = floats(laws.power(one, 2))
    for epsilon in (0.1, 0.5, 1.0):
        two = hockey([(p * a, q * b) for p, q in pair for a, b in pair], epsilon)
        assert hockey(floats(four), epsilon) <= two * (1 + 1e-12)
        assert hockey(floats(four), epsilon) >= two * 0.98


# ── certificates ──


def verdict(releases: list[dict[str, Any]], claim: dict[str, Any], evidence: dict[str, Any], **more: Any) -> str:
    names = [each["name"] for each in releases]
    codes = [f"{code}: {name}" for code in ("stated-law", "stated-change") for name in names]
    document = {
        "format": "privcheck-certificate/1", "kind": "refuted",
        "declared": {"name": "ours", "source": "by hand", "relation": "add-remove", "model": "central",
                     "unit": {"who": "user", "trajectories": 1}, "parameters": {}, "releases": releases,
                     "claim": {"source": "by hand", **claim}} | more,
        "assumed": samples.assumed("attainable", *codes),
        "evidence": {"using": names, **evidence}, "conclusion": samples.HOLDS | {"verdict": "fails"},
    }  # fmt: skip
    try:
        check(mutations.data(samples.sealed(document)))
    except Rejected as fault:
        return fault.rule
    return "accepted"


def edge(loss: float, currency: str, releases: Any, evidence: Any, **more: Any) -> None:
    """Claims a little below and above the loss of the evidence."""
    field = {"pure": "epsilon", "zcdp": "rho"}[currency]
    for factor, expected in ((0.98, "accepted"), (1.001, "refuted")):
        claim = {"currency": currency, field: str(Fraction(loss * factor))}
        assert verdict(releases, claim, evidence, **more) == expected, factor


SCORES = {"kind": "selection", "moves": 1}


def test_selections_far_behind_and_side_by_side() -> None:
    for noise in ("gumbel", "exponential", "laplace"):
        chosen = samples.release("choice", SCORES, "noisy-max", noise=noise, one_sided=False, scale=2)
        edge(1.0, "pure", [chosen], {"behind": {"choice": [300, 302]}})
        assert verdict([chosen], {"currency": "pure", "epsilon": 0}, {"behind": {"choice": [300, 303]}}) == "L-MAX"
        one_way = samples.release("choice", SCORES, "noisy-max", noise=noise, one_sided=True, scale=2)
        assert verdict([one_way], {"currency": "pure", "epsilon": 0}, {"behind": {"choice": [300, 302]}}) == "L-MAX"


def test_stated_laws_are_rounded_and_belong_to_an_authors_mechanism() -> None:
    own = samples.release("own", {"kind": "stated", "l1": 0, "l2": 0}, "theorem", cost=1, currency="pure", theorem="x")
    told = {"laws": {"own": [["3/4", "1/4"], ["1/4", "3/4"]]}}
    edge(math.log(3), "pure", [own], told)
    edge(math.log(3) / 2 / 1.001, "zcdp", [own], told | {"order": "1001/1000"})
    claim = {"currency": "pure", "epsilon": 0}
    for law in ([["3/4", "1/2"], ["1/4", "3/4"]], [["3/4", "1/4"], ["1/4", "1/2"]], [["3/4"], ["1/4", "3/4"]],
                [["3/4", "-1/4"], ["1/4", "3/4"]]):  # fmt: skip
        assert verdict([own], claim, {"laws": {"own": law}}) in ("L-STATED", "R-PAIR", "R-RANGE")
    gaussian = samples.release("own", {"kind": "bits", "bits": 1, "ones": 1}, "gaussian", variance=1)
    assert verdict([gaussian], claim, told) == "L-STATED"


def test_sparse_vectors_lose_what_their_price_says() -> None:
    made = samples.release("sv", SCORES, "sparse-vector", threshold_scale=2, query_scale=3, positives=1, queries=5,
                           one_sided=False)  # fmt: skip
    edge(1 / 2 + 2 / 3, "pure", [made], {"crossing": {"sv": [[4, 90, 91], [1, -90, -91]]}})
    claim = {"currency": "pure", "epsilon": 0}
    for groups in ([[5, 90, 91], [1, -90, -91]], [[3, 90, 91], [2, -90, -91]], [[4, 90, 92], [1, -90, -91]]):
        assert verdict([made], claim, {"crossing": {"sv": groups}}) == "L-SPARSE"


def test_samples_and_shufflers() -> None:
    bits = {"kind": "bits", "bits": 2, "ones": 2}
    pair = {"pair": [[{"vectors": {"r": [1, 1]}}], []]}
    sampled = {"kind": "sampled", "times": 3, "rate": "1/2"}
    noisy = samples.release("r", bits, "laplace", sampled, scale=1)
    edge(3 * math.log(1 + (math.exp(2) - 1) / 2), "pure", [noisy], pair)
    gaussian = samples.release("r", bits, "gaussian", sampled, variance=2)
    for rho, expected in (("14/10", "accepted"), ("15/10", "refuted")):
        assert verdict([gaussian], {"currency": "zcdp", "rho": rho}, pair | {"order": 1000}) == expected
    shuffled = samples.release("r", bits, "shuffled-bits", noise_bits=4, chance="1/3")
    missed = (2 / 3) ** 4  # no noise bit is one, and no bit of the user
    exact = hockey(
        [(p * a, q * b) for p, q in floats(laws.turned(laws.shuffled_bits(4, Fraction(1, 3))))
         for a, b in floats(laws.turned(laws.shuffled_bits(4, Fraction(1, 3))))], 9.0)  # fmt: skip
    assert exact == pytest.approx(1 - (1 - missed) ** 2, rel=0.05)
    other = {"pair": [[], [{"vectors": {"r": [1, 1]}}]]}
    for delta, expected in ((0.99, "accepted"), (1.01, "refuted")):
        claim = {"currency": "approx", "epsilon": 9, "delta": str(Fraction(exact * delta))}
        assert verdict([shuffled], claim, other, relation="zero-out", model="shuffle") == expected
