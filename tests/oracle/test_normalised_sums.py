"""Noisy sums over a number that the users determine, against integrals and runs of the algorithm itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from privcheck import Claim, Declaration, Parameter, verify
from privcheck.declare.procedures import NormalisedSum
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import Poisson
from privcheck.errors import DeclarationError
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import delta, epsilon
from privcheck_algorithms.gallery.dp_sgd_averages import dp_sgd_averages

ADDED = AddRemoveOne("user")


def averaged(divisor="realised batch", *, rate="1/2", std=2, dimension=1, rounds=1):
    return NormalisedSum(
        "average", norm=1, variance=Fraction(std) ** 2, dimension=dimension, divisor=divisor,
        sampling=Poisson(rate=Fraction(rate), rounds=rounds),
    )  # fmt: skip


def judged(one, e, d):
    declaration = Declaration(
        name="own", title="", source="", relation=ADDED, releases=(one,),
        claim=Claim(ApproxDP(epsilon, delta), source="here"),
        parameters=(
            Parameter(name="epsilon", default=e, kind="positive", meaning="ε"),
            Parameter(name="delta", default=d, kind="probability", meaning="δ"),
        ),
    )  # fmt: skip
    return verify(declaration, declaration.values())


def density(x, *, present, others, placed, rate, std):
    """Density of a round in one dimension, by adding up all batches."""
    total = 0.0
    for k in range(others + 1):
        for inside in (0, 1) if present else (0,):
            chance = stats.binom.pmf(k, others, rate) * ((rate if inside else 1 - rate) if present else 1.0)
            size = max(1, k + inside)
            total += chance * stats.norm.pdf(x, (placed * k + inside) / size, std / size)
    return total


def hockey_stick(at, **given):
    """δ of one round in one dimension by the trapezoid rule."""
    far = 9 * given["std"] + 2
    x = np.linspace(-far, far, 40_001)
    with_user, without = (density(x, present=present, **given) for present in (True, False))
    gains = with_user - math.exp(at) * without, without - math.exp(at) * with_user
    return max(np.trapezoid(np.maximum(gain, 0.0), x) for gain in gains)


def losses(pair, at):
    p, q = np.exp(pair.outcomes.log_p), np.exp(pair.outcomes.log_q)
    return float(np.maximum(p - math.exp(at) * q, 0.0).sum())


@pytest.mark.parametrize(("rate", "std"), [("1/2", 2), ("1/4", 1), ("1/3", "1/2")])
def test_one_round_against_quadrature(rate, std):
    """From below, and within 3 % of it."""
    pairs = averaged(rate=rate, std=std).pairs(ADDED, {})
    for placed in (0, -1):
        given = {"others": math.ceil(1 / Fraction(rate)), "placed": placed, "rate": float(Fraction(rate))}
        mine = [pair for pair in pairs if ("opposite" in pair.words) == (placed == -1)]
        for at in (0.0, 0.2, 0.7):
            truth = hockey_stick(at, std=float(Fraction(std)), **given)
            found = max(losses(pair, at) for pair in mine)
            assert truth * 0.97 - 1e-6 <= found <= truth + 1e-6


def test_the_published_figure():
    """σ = 2, q = ½, two others of gradient 0: δ(.2) = .0576 where .0398 is charged."""
    found = max(losses(pair, 0.2) for pair in averaged().pairs(ADDED, {}) if "opposite" not in pair.words)
    assert found == pytest.approx(0.0576, abs=1e-4)
    assert judged(averaged(), "1/5", "0.0398").verdict == "fails"


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("divisor", ["realised batch", "expected batch of all users"])
def test_runs_of_the_algorithm_have_the_declared_law(dimension, divisor):
    """Cells of the law against 40 000 runs on vectors: 24 χ² tests of error 1e-9 each."""
    runs, rng = 40_000, np.random.default_rng(5)
    one = averaged(divisor, rate="1/3", std="3/2", dimension=dimension)
    for pair in one.pairs(ADDED, {}):
        for law, told, name in zip(pair.sampler.laws, pair.data, ("log_p", "log_q"), strict=True):
            others = 3 if divisor == "realised batch" else 5
            placed = -1 if "opposite" in pair.words else 0
            users = others + (told == "present")
            vectors = np.zeros((users, dimension))
            vectors[:others, 0] = placed
            if told == "present":
                vectors[others, 0] = 1
            batches = rng.random((runs, users)) < 1 / 3
            sums = batches @ vectors + 1.5 * rng.standard_normal((runs, dimension))
            by = batches.sum(axis=1) if divisor == "realised batch" else np.full(runs, users // 3)
            outputs = sums / np.maximum(1, by)[:, np.newaxis]
            away = np.sqrt((outputs[:, 1:] ** 2).sum(axis=1))
            edges = np.array([-np.inf, -1.5, -0.7, -0.2, 0.2, 0.7, 1.5, np.inf])
            radii = np.array([0.0, 0.5, 1.0, 2.0, np.inf]) if dimension > 1 else np.array([-1.0, np.inf])
            seen = np.histogram2d(outputs[:, 0], away, bins=(edges, radii))[0].ravel()
            expected = runs * law.masses(edges, radii if dimension > 1 else np.zeros(0), 1.5, dimension).ravel()
            assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-9
            assert np.exp(getattr(pair.outcomes, name)).sum() == pytest.approx(1, abs=1e-12)


def test_scores_are_density_ratios():
    """E over D of f(score) is that of the outcomes' losses, for f = e^(−score): 1, and of the score itself."""
    pair = averaged(dimension=2, rounds=3).pairs(ADDED, {})[0]
    on_first = pair.sampler(np.random.default_rng(1), np.ones(200_000, dtype=bool))
    spread = np.exp(-on_first).std() / math.sqrt(on_first.size)
    assert abs(np.exp(-on_first).mean() - 1) < 6 * spread  # but with probability 2e-9
    p = np.exp(pair.outcomes.log_p)
    mean = 3 * float((p * (pair.outcomes.log_p - pair.outcomes.log_q)).sum())
    assert abs(on_first.mean() - mean) < 6 * on_first.std() / math.sqrt(on_first.size) + 0.01 * mean
    assert pair.sampler.numbers == 9


def test_more_dimensions_reveal_more():
    found = [max(losses(pair, 0.2) for pair in averaged(dimension=d).pairs(ADDED, {})) for d in (1, 2, 8, 64)]
    assert found == sorted(found)
    assert found[-1] > 0.2


def test_a_private_number_of_users_halves_the_noise():
    one = averaged("expected batch of all users", rate="1/100", dimension=1)
    found = max(losses(pair, 1.0) for pair in one.pairs(ADDED, {}))
    law = stats.norm(0, 2), stats.norm(0, 1)
    truth = quad(lambda x: max(0.0, law[0].pdf(x) - math.e * law[1].pdf(x)), -20, 20, limit=500)[0]
    assert found == pytest.approx(truth, rel=0.02)


def test_no_guarantee_and_refusals():
    one = averaged()
    assert [event.kind for event in one.events(ADDED, {})] == ["non_private"]
    nobody = averaged(rate="0")
    assert nobody.events(ADDED, {}) == ()
    assert nobody.pairs(ADDED, {}) == ()
    for relation in (ReplaceOne("user"), ZeroOut("user")):
        with pytest.raises(DeclarationError, match="where n is public, declare a Release"):
            one.cost(relation)
    with pytest.raises(DeclarationError, match="never cut off"):
        NormalisedSum(
            "average", norm=1, variance=1, dimension=1, divisor="realised batch",
            sampling=Poisson(rate=Fraction(1, 2), most=3, users=9),
        )  # fmt: skip
    doubled = one.with_std(Fraction(2))
    assert doubled.std({}) == pytest.approx(4)


@pytest.mark.parametrize(
    ("average", "verdict", "ratio"),
    [
        ("public", "holds", 0.9471),
        ("noisy-count", "holds", 0.9578),
        ("realised-batch", "fails", 2.757),
        ("private-number", "fails", 5376),
        ("layers", "holds", 0.9471),
        ("layers-unscaled", "fails", 6.1328),
        ("micro-batches", "holds", 0.9471),
        ("micro-batches-unscaled", "fails", 6.1328),
    ],
)
def test_averages_of_training_code(average, verdict, ratio):
    declaration = dp_sgd_averages({"average": average})
    found = verify(declaration, declaration.values())
    assert found.verdict == verdict
    assert found.lower_ratio == pytest.approx(ratio, rel=5e-3)
