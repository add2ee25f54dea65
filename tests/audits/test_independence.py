"""Runs of one call that depend on each other: private functions are not accused, broken ones are found.

Private functions are audited at confidence 1 − 10⁻⁹, so that all tests here together accuse one with probability below
10⁻⁶. Comparisons of independent runs are wrong with probability 10⁻⁴ each by their second test alone, 10⁻⁶ by both.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from mutants.shared import BROKEN, CORRECT, antithetic, quieter_in_long_calls, scalar
from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP, audit_mechanism
from privcheck_audits.blackbox import audit, pairs
from privcheck_audits.blackbox.calls import read_signature
from privcheck_audits.blackbox.confirmation import plan_confirmation
from privcheck_audits.blackbox.independence import CallPairs, _view, call_size, is_confirmed, suspect
from privcheck_audits.blackbox.inputs import probe
from privcheck_audits.blackbox.verdict import ClaimedLoss, Counts

SURE = 1 - 1e-9
PAIR = [(0.0, 1.0)]


def laplace(scale):
    return lambda given, runs, rng: given + rng.laplace(0, scale, runs)


def source(mechanism):
    caller = read_signature(mechanism, one_at_a_time=None, catch=True)
    return probe(caller, PAIR[0], number=0, seed=0).source


@pytest.fixture
def _not_compared(monkeypatch):
    """Nothing is noticed beforehand: only the confirmation stands between long calls and an accusation."""
    monkeypatch.setattr(pairs, "suspect", lambda *_: None)


@pytest.mark.parametrize("given", CORRECT, ids=lambda given: given.name)
def test_private_functions_with_dependent_runs_are_spared(given):
    found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=2_200, confidence=SURE)
    assert found.verdict == "consistent"
    assert found.lower <= found.claimed


@pytest.mark.nightly
@pytest.mark.usefixtures("_not_compared")
@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("given", CORRECT, ids=lambda given: given.name)
def test_they_are_spared_by_the_confirmation_alone(given, stop):
    found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=2_200, confidence=SURE, stop=stop)
    assert found.verdict == "consistent"
    assert found.lower <= found.claimed


@pytest.mark.parametrize("given", BROKEN, ids=lambda given: given.name)
def test_broken_functions_with_dependent_runs_are_found(given):
    found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=2_500)
    assert found.verdict == "violation"


@pytest.mark.usefixtures("_not_compared")
def test_what_long_calls_promise_is_done_again_where_single_calls_contradict():
    notes: list[str] = []
    for seed in range(4):
        spared = audit_mechanism(scalar(5, 1), PureDP(1), neighbours=PAIR, trials=2_500, confidence=SURE, seed=seed)
        assert spared.verdict == "consistent"
        notes += spared.notes
    assert any("runs in separate calls contradict" in note for note in notes)
    broken = audit_mechanism(scalar(0.3, 0.4), PureDP(1), neighbours=PAIR, trials=2_500)
    assert broken.verdict == "violation"


def test_dependent_runs_are_named_and_made_apart():
    sizes = []

    def counted(given, runs, rng):
        sizes.append(runs)
        return scalar(5, 1)(given, runs, rng)

    found = audit_mechanism(counted, PureDP(1), neighbours=PAIR, trials=2_500, confidence=SURE)
    assert "halves of a call agree" in found.notes[0]
    assert "separate call" in found.notes[0]
    assert sizes.count(1) >= 5_000
    assert max(sizes) <= call_size(2_500, 1) + 16


def columns(rng, rows):
    """Draws outputs of several columns: discrete, sorted, one of many, a sparse vector's answers, continuous."""
    flat = rng.integers(0, 3, size=(rows, 10)).astype(float)
    one_of = np.eye(10)[rng.integers(0, 10, rows)]
    first = rng.integers(0, 11, rows)[:, None]
    answers = np.where(np.arange(10) < first, 0.0, np.where(np.arange(10) == first, 1.0, -1.0))
    return [flat, np.sort(flat, axis=1), one_of, answers, rng.normal(size=(rows, 10)), np.full((rows, 7), 1e25)]


@pytest.mark.parametrize("which", range(6))
def test_what_is_compared_of_a_run_is_the_same_however_many_are_made_together(which):
    rows = columns(np.random.default_rng(3), 64)[which]
    width = rows.shape[1]
    kept = np.unique(np.linspace(0, width - 1, 8).astype(np.int64))
    signs = np.random.default_rng(width).choice([-1.0, 1.0], size=(width, 4))
    together = _view(rows, kept, signs)
    for size in (1, 3):
        apart = np.concatenate([_view(rows[i : i + size], kept, signs) for i in range(0, 64, size)])
        assert np.array_equal(together, apart)


def sparse_vector(given, size, rng):
    """Draws the answers to ten queries until the first above a threshold, as whole numbers."""
    above = np.array(given) + rng.laplace(0, 4, (size, 10)) > rng.laplace(0, 2, (size, 1))
    first = np.where(above.any(axis=1), above.argmax(axis=1), 10)[:, None]
    return np.where(np.arange(10) < first, 0, np.where(np.arange(10) == first, 1, -1))


def test_a_sparse_vector_is_not_said_to_depend_on_the_size_of_a_call():
    found = audit_mechanism(sparse_vector, PureDP(1), neighbours=[([0] * 10, [1] * 10)], trials=4_000, confidence=SURE)
    assert found.notes == ()
    assert found.verdict == "consistent"


def test_few_trials_are_one_call_a_run_anyway():
    sizes = []

    def counted(given, runs, rng):
        sizes.append(runs)
        return laplace(0.5)(given, runs, rng)

    assert audit_mechanism(counted, PureDP(1), neighbours=PAIR, trials=300).verdict == "violation"
    assert sizes.count(1) >= 600


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (laplace(0.5), PureDP(1)),
        (laplace(0.5), ApproxDP(1, "0.001")),
        (lambda given, runs, rng: given + rng.normal(0, 0.5, runs), ZCDP("1/2")),
        (lambda given, runs, rng: given + rng.normal(0, 0.5, runs), GaussianDP(1)),
    ],
    ids=["pure", "approximate", "zcdp", "gdp"],
)
def test_violations_are_confirmed_by_few_calls_of_their_own(mechanism, claim):
    found = audit_mechanism(mechanism, claim, neighbours=PAIR, trials=2_500)
    assert found.verdict == "violation"
    assert found.claimed < found.evidence["confirmed_lower"]
    assert found.evidence["confirming_runs"] <= 2_500


def test_independent_runs_are_rarely_called_dependent():
    # by the second test alone wrong with probability 1e-4 in each of 30, were they all suspected; by both about 3e-5
    rng = np.random.default_rng(5)
    laws = (
        laplace(1),
        lambda given, runs, rng: (rng.random((runs, 3)) < 0.3) + given,
        lambda _, runs, rng: rng.standard_cauchy(runs),
    )
    wrong = 0
    for law in laws:
        made = CallPairs(source=source(law), size=16)
        for _ in range(10):
            calls = made(rng, 32, 0)
            figure = suspect(*calls, rng)
            wrong += figure is not None and is_confirmed(figure, *made(rng, 96, 0), rng)
    assert wrong <= binom.isf(1e-9, 30, 1e-6)


@pytest.mark.slow
def test_sorted_integers_are_suspected_as_rarely_as_promised():
    """By a normal bound alone 12 of 100 such comparisons were; more than 14 of 200 have probability 1e-9 at 1 %."""

    def ordered(given, runs, rng):
        return np.sort(given + rng.integers(0, 4, (runs, 6)), axis=1)

    source = probe(read_signature(ordered, one_at_a_time=None, catch=True), (0, 1), number=0, seed=0).source
    made, found = CallPairs(source=source, size=4), 0
    for seed in range(200):
        rng = np.random.default_rng((9, seed))
        found += suspect(*made(rng, 64, 0), rng) is not None
    assert found <= 14


@pytest.mark.parametrize(
    ("mechanism", "test", "sign"),
    [(scalar(5, 1), "halves", 1), (antithetic(1), "halves", -1), (quieter_in_long_calls, "size", -1)],
    ids=["shared", "balanced", "size"],
)
def test_how_calls_differ_is_told(mechanism, test, sign):
    rng = np.random.default_rng(1)
    made = CallPairs(source=source(mechanism), size=32)
    figure = suspect(*made(rng, 64, 0), rng)
    assert (figure.test, figure.sign) == (test, sign)
    assert is_confirmed(figure, *made(rng, 192, 0), rng)


def random_counts(rng):
    inside = rng.integers(0, 60, size=(2, 2, 6))
    inside[0, 0, :3] += 40
    inside[0, 1, 3:] += 40
    inside[1] = inside[0, :, ::-1]
    return Counts(inside=inside, sums=(), totals=inside[0].sum(axis=1))


@pytest.mark.parametrize("unit", ["epsilon", "rho", "mu"])
def test_the_e_value_is_the_product_of_bets_on_units(unit):
    rng = np.random.default_rng(3)
    for _ in range(5):
        target = ClaimedLoss(unit=unit, claimed=0.05, delta=0.01 if unit == "epsilon" else 0.0)
        plan = plan_confirmation(random_counts(rng), target, alpha=0.01, runs=10_000)
        bins = rng.integers(0, 6, size=(2, 40))
        part = np.zeros((2, len(plan.payoffs), 40))
        for which, payoff in enumerate(plan.payoffs):
            for unit_number in range(40):
                for kind, worth in enumerate((payoff.gain, payoff.loss)):
                    part[kind, which, unit_number] = sum(worth[arm][bins[arm, unit_number]] for arm in (0, 1))
        list(plan.follow(one(part)))
        assert plan.units == 40
        claimed = target.claimed
        value = 0.0
        shares = (0.6, 0.2, 0.2)[: len(plan.payoffs)]
        for which, (payoff, weight) in enumerate(zip(plan.payoffs, shares, strict=True)):
            price, allowance = payoff.prices(claimed, target)
            outcomes = part[0, which] - price * part[1, which] - allowance
            least = payoff.least(claimed, target)
            assert (outcomes >= least - 1e-12).all()
            mean, variance = payoff.expected
            favourite = min(0.9, max(0.003, -least * mean / (mean**2 + variance)))
            for share, part_of in [(favourite, 0.5)] + [(b, 0.5 / 7) for b in (0.9, 0.6, 0.3, 0.1, 0.03, 0.01, 0.003)]:
                value += weight / sum(shares) * part_of * math.prod(1 + share / -least * x for x in outcomes)
        assert plan.log_e_value(claimed) == pytest.approx(math.log(value), abs=1e-6)
        assert plan.log_e_value(claimed) <= math.log(value)
        assert plan.log_e_value(claimed + 0.1) <= plan.log_e_value(claimed)


def one(part):
    yield part


def test_units_of_calls_that_share_everything_seldom_refute_a_true_claim():
    # a call for 64 runs is one draw: 64 equal answers of randomised response at ε = 1, exactly at its claim;
    # 60 confirmations at α = .2 accuse more than 33 times with probability below 1e-9
    rng = np.random.default_rng(7)
    lies = 1 / (1 + math.e)
    inside = np.array([[[2_500, 7_500], [7_500, 2_500]]])  # promises more than the truth
    target = ClaimedLoss(unit="epsilon", claimed=1.0, delta=0.0)
    alarms = 0
    for _ in range(60):
        counts = Counts(inside=inside, sums=(), totals=np.array([10_000, 10_000]))
        plan = plan_confirmation(counts, target, alpha=0.2, runs=20_000)
        bins = np.stack([rng.random(300) >= lies, rng.random(300) < lies]).astype(int)
        part = np.zeros((2, len(plan.payoffs), 300))
        for which, payoff in enumerate(plan.payoffs):
            for kind, worth in enumerate((payoff.gain, payoff.loss)):
                part[kind, which] = sum(worth[arm][bins[arm]] for arm in (0, 1))
        list(plan.follow(blocks_of(part)))
        alarms += plan.confirmed
    assert alarms <= binom.isf(1e-9, 60, 0.2)


def blocks_of(part):
    for start in range(0, part.shape[2], 50):
        yield part[:, :, start : start + 50]


def test_an_interrupt_before_the_confirmation_accuses_nobody(monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(audit.AuditedPair, "confirm", lambda *_, **__: (interrupt(each) for each in (0,)))
    found = audit_mechanism(laplace(0.5), PureDP(1), neighbours=PAIR, trials=2_500)
    assert found.verdict == "consistent"
    assert any("not confirmed" in note and "interrupted" in note for note in found.notes)
