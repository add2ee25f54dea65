"""What audits hand over for their reports: trade-off curves, prefixes, pairs and ratios, each beside a naive twin.

Bands here have confidence 1 − 10⁻⁹: no test fails by chance with probability above 10⁻⁷.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from privcheck.data.finite_models import FiniteMDP
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.mechanisms import LAWS, Noiseless
from privcheck.errors import ParameterError
from privcheck.pricing import account
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.runtime.setting import Setting
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck_audits.bounds import CurveFlip
from privcheck_audits.engine.blocks import Tally, tally
from privcheck_audits.engine.kernels import threshold_errors
from privcheck_audits.engine.scores import Scored
from privcheck_audits.lockstep.noise_tests import NoiseTest, draw_spreads
from privcheck_audits.lockstep.replay import Distance, Replayed, draw_distances
from privcheck_audits.plan.pictures import (
    Prefixes,
    add_pictures,
    history,
    marks,
    of_parts,
    pilot_marks,
    show_pair,
    side_by_side,
    trace_charge,
    trace_claim,
    trade_off,
)

SURE = 1 - 1e-9
MU = 1.2


def gaussian(rng, runs, mu=MU):
    """Returns exact log-likelihood ratios of N(μ, 1) on D against N(0, 1) on D′."""
    secret = rng.integers(0, 2, size=runs).astype(bool)
    return Scored(score=mu * (rng.normal(size=runs) + mu * secret) - mu**2 / 2, secret=secret)


def curve(mu, grid):
    return ndtr(ndtri(1 - np.array(grid)) - mu)


def counted(runs=200_000, *, mu=MU, seed=0):
    rng = np.random.default_rng(seed)
    return tally(gaussian(rng, runs, mu), None, first=0, seed=0, thresholds=marks(gaussian(rng, 4_000, mu)))


@pytest.mark.parametrize("runs", [1, 2, 3_000])
@pytest.mark.parametrize("thresholds", [1, 2, 31, 64])
def test_errors_at_thresholds_are_those_of_a_plain_count(runs, thresholds):
    rng = np.random.default_rng(runs + thresholds)
    score, on_first = np.round(rng.normal(size=runs), 1), rng.random(runs) < 0.5  # many ties
    at = np.unique(np.round(rng.normal(size=thresholds), 1))
    below, above = threshold_errors(score, on_first, tuple(at))
    assert below == tuple(int((score[on_first] <= t).sum()) for t in at)
    assert above == tuple(int((score[~on_first] > t).sum()) for t in at)


def test_without_thresholds_nothing_is_counted():
    assert threshold_errors(np.zeros(3), np.ones(3, dtype=bool), ()) == ((), ())


def test_an_arm_without_runs_has_no_curve():
    one_arm = Scored(score=np.zeros(4), secret=np.ones(4, dtype=bool))
    some = tally(one_arm, None, first=0, seed=0, thresholds=(0.0,))
    assert (some.on_first, some.on_second, some.false_second, some.false_first) == (4, 0, (4,), (0,))
    assert trade_off(some, confidence=0.9, claim=None, words="", accountant=None) is None


def test_the_band_holds_the_true_curve_and_no_other():
    found = trade_off(counted(), confidence=SURE, claim=None, words="", accountant=None)
    true = curve(MU, found.grid)
    low, high = np.array(found.at_least), np.array(found.at_most)
    inner = (np.array(found.grid) > 0.002) & (np.array(found.grid) < 0.998)
    assert (low <= high + 1e-12).all()
    assert (true <= high + 1e-3)[inner].all()  # chords between thresholds lie a little above the curve
    assert (low <= true + 1e-3)[inner].all()
    assert (curve(MU - 0.1, found.grid) > high)[inner & (true > 0.05)].any()  # a claim of less noise crosses the band
    assert (curve(MU + 0.1, found.grid) < low)[inner & (true > 0.05)].any()
    assert (high - low)[inner].max() < 0.06
    assert sum(found.runs) == 200_000


def test_the_band_covers_as_often_as_it_says():
    """At confidence one half 300 bands miss in at most 200 cases, or this fails with probability below 10⁻⁸."""
    at = tuple(np.linspace(-3, 3, 15))
    one, two = ndtr((np.array(at) - MU**2 / 2) / MU), ndtr(-(np.array(at) + MU**2 / 2) / MU)
    misses = 0
    for seed in range(300):
        some = tally(gaussian(np.random.default_rng(seed), 2_000), None, first=0, seed=0, thresholds=at)
        found = trade_off(some, confidence=0.5, claim=None, words="", accountant=None)
        above = two > np.interp(one, found.grid, found.at_most)
        below = two < np.interp(one, found.grid, found.at_least) - 1e-3  # chords of the grid lie above a convex curve
        misses += bool((above | below).any())
    assert misses <= 200


def test_the_hull_is_the_largest_convex_curve_below_the_corners():
    found = trade_off(counted(3_000), confidence=0.9, claim=None, words="", accountant=None)
    grid, high = np.array(found.grid), np.array(found.at_most)
    slopes = np.diff(high) / np.diff(grid)
    assert (np.diff(slopes) >= -1e-9).all()
    assert high[0] == 1.0
    assert high[-1] == 0.0


def test_what_claims_allow():
    grid = np.array(trade_off(counted(1_000), confidence=0.9, claim=None, words="", accountant=None).grid)
    pure = trace_claim(PureDP(1), {})
    assert pure == pytest.approx(np.maximum(0, np.maximum(1 - math.e * grid, (1 - grid) / math.e)), abs=1e-12)
    approx = trace_claim(ApproxDP(1, "0.1"), {})
    assert approx == pytest.approx(np.maximum(0, np.maximum(0.9 - math.e * grid, (0.9 - grid) / math.e)), abs=1e-9)
    zcdp = trace_claim(ZCDP("1/2"), {})
    assert (zcdp <= curve(1.0, grid) + 1e-9).all()  # N(0, 1) against N(1, 1) keeps ½-zCDP: the claim allows it
    assert (zcdp > trace_claim(ZCDP(1), {}) - 1e-12).all()
    assert (zcdp[1:-1] > 0).any()


def test_what_the_accountant_charges():
    declaration = registry.algorithm("dp-apvi").declare({"rewards": "known"})
    values = declaration.values({"H": 2, "S": 2, "A": 2})
    charged = account(declaration).at(values)
    found = trace_charge(charged)
    grid = trade_off(counted(1_000), confidence=0.9, claim=None, words="", accountant=None).grid
    assert found == pytest.approx(curve(charged.mu, grid), abs=1e-12)
    laplace = registry.algorithm("dp-apvi-laplace").declare({"rewards": "known"})
    small = laplace.values({"H": 1, "S": 2, "A": 2})
    profile = trace_charge(account(laplace).at(small))
    claim = trace_claim(laplace.claim.guarantee, small)
    assert (profile >= claim - 1e-9).all()  # the composition allows less than its ε alone
    assert (profile > claim + 0.01).any()


def test_thresholds_are_of_a_sample_of_their_own_and_of_both_arms():
    seen = []

    def sample(rng, runs):
        seen.append(runs)
        return gaussian(rng, runs)

    first, again, other = (pilot_marks(sample, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert list(first) == sorted(set(first))
    assert 0.0 in first
    assert len(first) <= 65
    assert len(set(seen)) == 1
    below = (np.array(first) < 0).mean()
    assert 0.3 < below < 0.7


@pytest.mark.parametrize("number", [1, 2, 3, 40, 1_000])
def test_prefixes_are_few_ascending_and_end_with_all(number):
    def block(k):
        return Tally(runs=100, errors=k % 3, ranked_errors=(k,), ranked_guesses=(100,))

    seen = Prefixes()
    total = seen.total(block(k) for k in range(number))
    assert total == sum((block(k) for k in range(1, number)), block(0))
    runs = [point.runs for point in seen.points]
    assert runs == sorted(set(runs))
    assert runs[0] == 100
    assert seen.points[-1] == total
    assert len(runs) <= 45
    for point in seen.points:  # each is what the first blocks came to
        assert point == sum((block(k) for k in range(1, point.runs // 100)), block(0))


def test_prefixes_watch_a_rule_that_stops():
    seen = Prefixes()
    rule = seen.watch(lambda t: t.runs >= 300)
    made = [Tally(runs=k, errors=0, ranked_errors=(), ranked_guesses=()) for k in (100, 200, 300)]
    assert [rule(t) for t in made] == [False, False, True]
    assert [point.runs for point in seen.points] == [100, 200, 300]
    assert Prefixes().points == ()


def test_a_history_ends_at_the_audits_own_bound():
    seen = Prefixes()
    seen.total(counted(5_000, seed=seed) for seed in range(30))
    found = history(seen.points, lambda t: CurveFlip(errors=t.errors, runs=t.runs).mu(alpha=0.01), lambda n: n / 1e6)
    assert found.trials[-1] == 75_000
    assert list(found.trials) == sorted(found.trials)
    assert found.epsilon_lower[-1] == CurveFlip(errors=seen.points[-1].errors, runs=150_000).mu(alpha=0.01)
    assert found.reachable_trials[0] == 50
    assert found.reachable_trials[-1] == 75_000
    assert found.reachable[-1] == pytest.approx(0.15)
    assert of_parts(found, 2).trials[-1] == 150_000
    assert of_parts(None, 2) is None
    learned = history(seen.points, lambda t: 0.0 * t.runs, None, before=2_000)
    assert learned.trials[-1] == 76_000
    assert learned.reachable == ()


def test_a_result_without_anything_to_draw_stays_as_it_is():
    declaration = registry.algorithm("dp-apvi").declare({"rewards": "known"})
    request = AuditRequest(
        setting=Setting(declaration=declaration, values=declaration.values({})), view="releases", delta=1e-5, trials=10,
        confidence=0.99,
    )  # fmt: skip
    result = AuditResult(
        view="releases", verdict="consistent", trials=10, confidence=0.99, delta=1e-5, epsilon_lower=1.0,
        epsilon_upper=None, epsilon_claimed=None, reachable=None, method="", witness="", evidence={}, seconds=1.0,
    )  # fmt: skip
    assert add_pictures(result, request) == result


def user(states, actions, rewards):
    return Trajectories(
        states=np.array([states], dtype=np.int32), actions=np.array([actions], dtype=np.int32),
        rewards=np.array([rewards], dtype=float), num_states=5, num_actions=3,
    )  # fmt: skip


def test_trajectories_stand_side_by_side_with_equal_steps_written_once():
    found = show_pair((user([0, 0, 0, 1, 2], [0] * 4, [1] * 4), user([0, 0, 0, 1, 1], [0, 0, 0, 2], [1, 1, 1, 0.5])))
    assert found.columns == ("state", "action", "reward")
    assert found.labels == ("1–3", "4", "after")
    assert found.first == (("0", "0", "1"), ("1", "0", "1"), ("2", "", ""))
    assert found.second == (("0", "0", "1"), ("1", "2", "0.5"), ("1", "", ""))


def test_an_absent_user_and_nobody_at_all():
    found = show_pair((None, user([1, 1], [2], [0])))
    assert found.first is None
    assert found.second == (("1", "2", "0"), ("1", "", ""))
    assert show_pair((None, None)) is None
    assert show_pair(("bit 1", None)).first == (("bit 1",),)


def test_features_targets_and_weights_stand_side_by_side():
    def features(sign):
        vectors = np.zeros((1, 2, 4))
        vectors[0, :, 0] = sign
        return Regressors(vectors={"phi": vectors}, targets={"V": np.ones((1, 2))}, weights={"w": np.ones((1, 2))})

    found = show_pair((features(1.0), features(-1.0)))
    assert found.columns == ("phi", "V", "w")
    assert found.labels == ("1–2",)
    assert found.first == (("(1, 0, 0, …)", "1", "1"),)
    assert found.second == (("(-1, 0, 0, …)", "1", "1"),)


def test_response_functions_stand_side_by_side():
    def stays(at, reward):
        transition = np.zeros((1, 2, 2, 2))
        transition[..., at] = 1
        return FiniteMDP(horizon=2, transition=transition, reward=np.full((1, 2, 2, 2), reward), initial=np.eye(2)[0])

    found = show_pair((stays(0, 0.0), stays(1, 1.0)))
    assert found.labels == ("any, 0, 0", "any, 0, 1", "any, 1, 0", "any, 1, 1")
    assert set(found.first) == {("0", "0")}
    assert set(found.second) == {("1", "1")}


def test_a_long_pair_is_cut_and_says_so():
    rows = [(str(k % 2),) for k in range(100)]
    found = side_by_side(
        "t", row="step", columns=("x",), labels=[str(k + 1) for k in range(100)], cells=(rows, rows[::-1])
    )
    assert len(found.labels) == len(found.first) == len(found.second) == 40
    assert "60 more rows" in found.note


def test_ratios_of_distances_keep_the_worst_norm():
    def distance(norm, measured, charged, *, exceeds=False):
        return Distance(release="visits", norm=norm, measured=measured, charged=charged, exceeds=exceeds, pair="")

    (bar,) = draw_distances([distance("l1", 2.0, 4.0), distance("l2", 3.0, 4.0)]).bars
    assert (bar.name, bar.ratio, bar.violated) == ("visits, ℓ₂", 0.75, False)
    (bar,) = draw_distances([distance("l1", 5.0, 4.0, exceeds=True), distance("l2", 4.0, 4.0)]).bars
    assert (bar.name, bar.ratio, bar.violated) == ("visits, ℓ₁", 1.25, True)
    (bar,) = draw_distances([distance("l1", math.inf, 4.0, exceeds=True)]).bars
    assert bar.ratio is None
    assert "same slices" in bar.words


@pytest.mark.parametrize(("law", "degrees", "power"), [("gaussian", 1, 0.5), ("laplace", 2, 1.0)])
def test_an_interval_of_the_scale_is_that_of_its_test(law, degrees, power):
    """The declared scale is at the interval's end exactly where the two-sided test is at its level."""
    level, draws = 0.01, 400
    statistic = chi2.isf(level / 2, degrees * draws)  # just refuted: the noise is too large
    ratio = (statistic / (degrees * draws)) ** power
    test = NoiseTest(name="scale", where="visits", p_value=level, figure=ratio, draws=draws)
    (bar,) = draw_spreads([test], {"visits": LAWS[law](scale=3.0)}, level).bars
    assert bar.at_least == pytest.approx(1.0, rel=1e-9)
    assert bar.at_most > ratio > 1
    assert not bar.violated
    (bar,) = draw_spreads([test], {"visits": LAWS[law](scale=3.0)}, 2 * level).bars
    assert bar.violated
    with pytest.raises(ParameterError, match="none"):
        draw_spreads([test], {"visits": Noiseless()}, level)


def test_of_replayed_pairs_one_that_exceeds_a_charge_is_shown_before_the_first():
    first, plain = (show_pair((user([k, k], [0], [0]), None)) for k in (0, 1))
    tried = Replayed(pairs=1, distances=(), shown=first)
    other = Replayed(pairs=1, distances=())
    bad = Replayed(pairs=1, distances=(), plainest="in words", shown=plain)
    assert (tried + other).shown == (other + tried).shown == first
    assert (tried + bad).shown == (bad + tried).shown == (tried + other + bad).shown == plain
    assert (tried + bad).plainest == "in words"
