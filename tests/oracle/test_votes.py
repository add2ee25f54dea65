"""PATE's noisy votes, against integrals over the noise and the figures that the papers print."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

import small_declarations as small
from privcheck import account, verify
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Claim
from privcheck.declare.procedures import NoisyVotes
from privcheck.declare.procedures.votes import VoteRuns, log_wins
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing.calibration import least_noise
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck_audits.releases.view import audit_releases


def judge(**given):
    setting = resolve_setting("pate", {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values), setting


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("ahead", [-7.5, -0.3, 0.0, 2.0, 11.0])
def test_who_wins_by_integration_over_one_draw(noise, ahead):
    law = laplace() if noise == "laplace" else norm()
    beaten = quad(lambda x: law.pdf(x) * law.cdf(ahead + x), -40, 40, points=sorted({0.0, -ahead}), limit=300)[0]
    assert np.exp(log_wins(noise, ahead)) == pytest.approx([beaten, 1 - beaten], rel=1e-6, abs=1e-9)


def test_the_papers_figures():
    verdict, setting = judge()
    claimed = setting.declared.claim.guarantee
    assert isinstance(claimed, ApproxDP)
    assert round(claimed.epsilon.number(setting.values), 2) == 5.8  # 2017: what 100 queries cost whatever the votes
    larger = resolve_setting("pate", {"queries": "1000", "delta": "1/1000000"})
    printed = larger.declared.claim.guarantee.epsilon.number(larger.values)
    assert int(printed) == 26  # ibid., of 1000 queries at δ = 10⁻⁶
    assert verdict.verdict == "holds"
    # a hundred Laplace values of ε = 0.1, their losses on a fine grid: what 100 noisy maxima are charged
    edges = np.clip((np.arange(-1000, 1002) - 0.5) * 1e-4, -0.1, 0.1)
    masses = np.diff(np.exp((edges - 0.1) / 2)) / 2  # of the density ¼e^{(l − ε)/2}
    masses[0] += math.exp(-0.1) / 2
    masses[-1] += 0.5
    sums = np.fft.irfft(np.fft.rfft(masses, 1 << 18) ** 100, 1 << 18)[:200_001]
    ours = verdict.upper_ratio * claimed.epsilon.number(setting.values)
    delta = float(np.maximum(0, sums * -np.expm1(ours - np.linspace(-10, 10, 200_001))).sum())
    assert delta == pytest.approx(1e-5, rel=1e-3)
    gaussian, _ = judge(noise="gaussian")
    assert (gaussian.verdict, gaussian.method, gaussian.upper_ratio) == ("holds", "proved", 1)
    assert gaussian.lower_ratio == pytest.approx(2 / math.pi, rel=0.02)  # of a Gaussian that is told by its sign alone


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", pytest.param("gaussian", marks=pytest.mark.nightly)])
def test_a_claim_computed_from_the_data_is_undecided(noise):
    verdict = judge(noise=noise, bound="data-dependent")[0]
    assert verdict.verdict == "undecided"
    assert "claim-data-dependent" in [finding.code for finding in verdict.findings]
    assert "smooth sensitivity" in verdict.repair
    assert "given the votes" in verdict.claim
    # also where a pair loses more: the claim is about no pair
    tiny = resolve_setting("pate", {"noise": noise, "bound": "data-dependent", "epsilon": "1/10"})
    refuted = replace(tiny.declared, claim=replace(tiny.declared.claim, data_dependent=""))
    assert [verify(one, tiny.values).verdict for one in (tiny.declared, refuted)] == ["undecided", "fails"]
    # and it holds where it is no less than what all data cost
    large = resolve_setting("pate", {"noise": noise, "bound": "data-dependent", "epsilon": "6"})
    assert verify(large.declared, large.values).verdict == "holds"


def test_the_bounds_are_as_close_as_two_candidates_are_bad():
    one = {"scale": "1/2", "queries": "1"}  # of one query with little noise the far margin loses nearly all of 2/b
    setting = resolve_setting("pate", one)
    pure = replace(setting.declared, claim=Claim(PureDP(4), source="a test"))
    assert verify(pure, setting.values).lower_ratio > 0.7
    gaussian = resolve_setting("pate", {"noise": "gaussian"})
    needed = least_noise(gaussian.declared, gaussian.values, epsilon=2, delta=1e-5).releases[0]
    enough = replace(gaussian.declared, claim=Claim(ApproxDP(2, "1/100000"), source="a test"))
    enough = replace(enough, releases=(enough.releases[0].with_std(Fraction(needed.ratio * 1.0001)),))
    assert verify(enough, gaussian.values).verdict == "holds"
    short = replace(enough, releases=(enough.releases[0].with_std(Fraction(7, 10)),))
    assert verify(short, gaussian.values).verdict == "fails"


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_runs_have_the_law_of_the_winners(noise):
    """Under D′ the ratio e^score has mean 1, under D e^−score: a test at 8 standard errors, seeded."""
    runs = VoteRuns(noise=noise, spread=3.0, ahead=(0, 2), queries=4)
    for on_first in (True, False):
        scores = runs(np.random.default_rng(3), np.full(40_000, on_first))
        ratios = np.exp(-scores if on_first else scores)
        assert abs(ratios.mean() - 1) < 8 * ratios.std() / 200


@pytest.mark.nightly
def test_the_audit_finds_half_the_noise_and_accuses_nobody_else():
    """At confidence 1 − 1e-9, seeded: the noise drawn is half of what was claimed."""
    setting = resolve_setting("pate", {"noise": "gaussian", "queries": "400", "std": "20"})
    honest = replace(setting.declared, claim=Claim(ApproxDP("2.13", "1/10"), source="a test"))
    assert 2.12 < account(honest).at(setting.values).epsilon(0.1) < 2.13
    broken = replace(honest, releases=(honest.releases[0].with_std(Fraction(1, 2)),))
    asked = {"trials": 50_000, "confidence": 1 - 1e-9, "sets": setting.values, "delta": 0.1}
    assert audit_releases(small.request(honest, **asked)).verdict == "consistent"
    assert audit_releases(small.request(broken, **asked)).verdict == "violation"


def test_nonsense_is_refused_when_it_is_made():
    with pytest.raises(DeclarationError, match="noise, of NoisyVotes"):
        NoisyVotes("labels", noise="uniform", spread=1, queries=1)
    wrong = ({"scale": "-1"}, "scale"), ({"queries": "0"}, "queries"), ({"order": "1", "noise": "gaussian"}, "order")
    for given, words in wrong:
        with pytest.raises((DeclarationError, ParameterError), match=words):
            judge(**given)
