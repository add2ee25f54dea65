"""Losses and enclosures against naive twins: sums over outputs, integrals by the midpoint rule, exact binomials."""

import itertools
import math
import random
from fractions import Fraction

import pytest

import certificate_samples as samples
import certificate_twins as naive
from privcheck_check.check import check
from privcheck_check.counts import tail
from privcheck_check.curves import gaussian_delta, order_epsilon
from privcheck_check.refuted import _laplace_divergence
from privcheck_check.terms import evaluate, exponential, logarithm, read_term, square_root
from privcheck_check.values import Rejected


def encloses(ends: tuple[Fraction, Fraction], number: float, width: float = 1e-30) -> bool:
    slack = 1e-12 * (1 + abs(number))
    return float(ends[0]) <= number + slack and number - slack <= float(ends[1]) and ends[1] - ends[0] < width


def test_enclosures_of_functions() -> None:
    rng = random.Random(1)
    for _ in range(100):
        x = Fraction(rng.randrange(1, 10**6), rng.randrange(1, 10**4))
        assert encloses(square_root((x, x)), math.sqrt(x))
        assert encloses(logarithm((x, x)), math.log(x))
        y = min(x, Fraction(40))
        assert encloses(exponential((-y, -y)), math.exp(-y))
    assert square_root((Fraction(9, 4),) * 2) == (Fraction(3, 2),) * 2
    low, high = square_root((Fraction(2, 10**80),) * 2)  # relative, not absolute, precision
    assert (high - low) / high < Fraction(1, 10**50)
    assert encloses(evaluate(read_term(["^", "x", "-3/2"], "", {"x"}), {"x": Fraction(5)}), 5**-1.5)
    wide = evaluate(read_term(["^", ["-", "x", ["sqrt", 2]], 2], "", {"x"}), {"x": Fraction(3, 2)})
    assert encloses(wide, (1.5 - math.sqrt(2)) ** 2)


def test_the_gaussian_curve_against_an_integral() -> None:
    for mu, epsilon in ((0.3, 0.1), (1.0, 1.0), (2.5, 0.0), (0.7, 3.0)):
        square, n = Fraction(str(mu)) ** 2, 40_000
        found = gaussian_delta((square, square), (Fraction(str(epsilon)),) * 2)
        edges = [-12 + 24 * (i + 0.5) / n for i in range(n)]
        mass = sum(
            max(0.0, math.exp(-((x - mu) ** 2) / 2) - math.exp(epsilon - x * x / 2)) for x in edges
        ) * 24 / n / math.sqrt(2 * math.pi)  # fmt: skip
        assert float(found[0]) == pytest.approx(mass, rel=1e-5)
        assert found[1] - found[0] < Fraction(1, 10**40)
        assert float(found[1]) == pytest.approx(naive.curve(mu**2, epsilon), rel=1e-9)


def test_the_divergence_of_laplace_laws_against_an_integral() -> None:
    for t, order in ((0.5, 2), (2.0, Fraction(3, 2)), (0.1, 8)):
        n, a = 200_000, float(order)
        edges = [-40 + 80 * (i + 0.5) / n for i in range(n)]
        whole = sum(math.exp(-a * abs(x - t) - (1 - a) * abs(x)) for x in edges) / 2 * 80 / n
        found = _laplace_divergence((Fraction(str(t)),) * 2, Fraction(order))
        assert float(found) == pytest.approx(math.log(whole) / (a - 1), rel=1e-4)


def refuted(epsilon: str, delta: str | None = None) -> str:
    """Three bits, all different, kept with probability 3/4: whether the pair refutes the claim."""
    claim = {"currency": "pure", "epsilon": epsilon} | ({"currency": "approx", "delta": delta} if delta else {})
    document = samples.RAPPOR["declared"] | {
        "releases": [samples.release("bits", {"kind": "bits", "bits": 3, "ones": 3}, "randomised-response",
                                     {"kind": "local"}, keep="3/4", answers="2")],
        "claim": claim | {"source": ""},
    }  # fmt: skip
    evidence = {"pair": [[{"vectors": {"bits": [0, 0, 0]}}], [{"vectors": {"bits": [1, 1, 1]}}]], "using": ["bits"]}
    whole = samples.UCB_VI | {"declared": document, "evidence": evidence}
    try:
        return check(samples.json.dumps(samples.sealed(whole)).encode())
    except Rejected as fault:
        return f"rejected: {fault.rule}"


def test_randomised_response_by_enumeration() -> None:
    laws = []
    for truth in ((0, 0, 0), (1, 1, 1)):
        outputs = itertools.product((0, 1), repeat=3)
        laws.append([math.prod(0.75 if x == y else 0.25 for x, y in zip(truth, out, strict=True)) for out in outputs])
    worst = max(math.log(p / q) for p, q in zip(*laws, strict=True))
    assert worst == pytest.approx(3 * math.log(3))
    assert "is above" in refuted("329/100")
    assert refuted("330/100") == "rejected: refuted"  # 3.2958
    epsilon = 2.0
    exact = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(*laws, strict=True))
    event = 0.75**3 * (1 - math.exp(epsilon - worst))
    assert event <= exact
    assert "is above" in refuted("2", str(Fraction(event) * Fraction(999, 1000)))
    assert refuted("2", str(Fraction(exact) * Fraction(1001, 1000))) == "rejected: refuted"


def test_an_order_gives_a_valid_epsilon() -> None:
    """The Gaussian mechanism is ρ-zCDP: its exact δ at the ε of any order is at most δ."""
    for rho, delta, order in (("1/10", "1/1000000", 9), ("1", "1/100000", 4), ("1/1000", "1/100", 60)):
        square = 2 * Fraction(rho)
        epsilon = order_epsilon((Fraction(rho),) * 2, (Fraction(delta),) * 2, Fraction(order))
        assert gaussian_delta((square, square), epsilon)[1] <= Fraction(delta)


def test_binomial_tails_against_exact_sums() -> None:
    rng = random.Random(2)
    for _ in range(40):
        n = rng.randrange(1, 60)
        k, p = rng.randrange(n + 2), Fraction(rng.randrange(1, 99), 100)
        exact = sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), Fraction(0))
        assert exact <= tail(n, k, p) <= exact * (1 + Fraction(1, 10**15))


def two_laplaces(epsilon: str) -> bool:
    """A tree of 7 leaves over a reward sum, scale 3: the worst user is in 3 nodes, each with a loss of 1/3."""
    tree = {"kind": "tree", "leaves": 7}
    declared = samples.UCB_VI["declared"] | {
        "releases": [samples.release("sums", samples.table(["state"], "reward"), "laplace", tree, scale="3")],
        "parameters": {"H": samples.integer(1), "S": samples.integer(2), "A": samples.integer(1)},
        "claim": {"currency": "pure", "epsilon": epsilon, "source": ""},
    }
    users = [[{"states": [0, 0], "actions": [0], "rewards": [r]}] for r in (0, 1)]
    document = samples.UCB_VI | {"declared": declared, "evidence": {"pair": users, "using": ["sums"]}}
    try:
        check(samples.json.dumps(samples.sealed(document)).encode())
    except Rejected:
        return False
    return True


def test_the_loss_of_a_tree_is_a_sum_over_its_nodes() -> None:
    worst = 0.0
    for leaf in range(7):
        nodes = [(k, leaf >> k) for k in range(3) if (leaf >> k) + 1 << k <= 7]
        worst = max(worst, sum(1 / 3 for _ in nodes))
    assert worst == pytest.approx(1)
    assert two_laplaces("99/100")
    assert not two_laplaces("1")
