"""A law of noise that is not ours works wherever additive noise does; what it cannot be asked is refused, never 0.

Random parts are seeded; audits of correct noise are at confidence 1 − 1e-9, so that no reseed fails one.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import mutants
import own_law as own
import small_declarations as small
from privcheck import account, verify
from privcheck.accounting import pure
from privcheck.declare.declaration import Release
from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise, Noise, lacks
from privcheck.declare.procedures.charges import charge
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import Priced
from privcheck.pricing.calibration import least_noise
from privcheck.runtime import Billboard, Channel, Ledger, SimulatedNoise, read_ledger
from privcheck.runtime.spending import laws_of, price_ledger
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import A, H, S, epsilon
from privcheck.verification import stated_prices
from privcheck_algorithms.dp_apvi.agent import noise_bound
from privcheck_algorithms.privatizers import noise as kernels
from privcheck_audits.engine.scores import MovedGroup, likelihood_trials
from privcheck_audits.lockstep.views import blind, noise
from privcheck_audits.plan.reachable import loss_law
from privcheck_audits.releases.canaries import worst_canary
from privcheck_audits.releases.view import audit_releases

SURE = 1 - 1e-9
OURS = LaplaceNoise(scale=2.0)
THEIRS = own.DoubleExponentialNoise(scale=2.0)


def declared(law: type[Noise] = own.DoubleExponentialNoise):
    release = Release("visits", VisitCounts(H, S, A), own.OwnNoise(scale=1 / epsilon, law=law))
    return small.declared(PureDP(epsilon), (release,), small.EPSILON, small.ONE_USER)


class DrawnOtherwise(LaplaceNoise):
    def draw(self, rng, shape):
        return rng.exponential(self.scale, shape) * rng.choice([-1.0, 1.0], shape)


class Understated(LaplaceNoise):
    def events(self, cost, *, stepwise):
        return (pure(epsilon=cost.l1 / self.scale / 2),)


def audited(declaration, **asked):
    audit = noise if asked.get("view") == "noise" else audit_releases
    return audit(small.request(declaration, confidence=SURE, **asked))


def test_losses_are_added_up_once_a_move_and_never_of_what_the_author_does_not_say(monkeypatch):
    """Rounds were added up five times a move, at 25 settings: a package with its own sampler took 200 s of CPU."""
    made = []
    original = stated_prices.LossSums
    monkeypatch.setattr(stated_prices, "LossSums", lambda given: made.append(given) or original(given))
    drawn, own_law = declared(DrawnOtherwise), declared()
    assert verify(drawn, drawn.values()).verdict == "holds"
    assert not made  # its events and its distribution function are both Laplace's
    assert verify(own_law, own_law.values()).verdict == "holds"
    assert made
    assert len({id(law) for ((law, _),) in made}) == len(made)


def test_events_that_understate_the_law_are_refused():
    declaration = declared(Understated)
    with pytest.raises(DeclarationError, match=r"loses \S+ \(ε at δ = 0\.1\), but its author states"):
        verify(declaration, declaration.values())


def test_it_is_accounted_and_verified_as_far_as_its_author_s_word_goes():
    declaration = declared()
    values = declaration.values()
    numbers = account(declaration).at(values)
    assert numbers.pure == numbers.epsilon(0.0) == 1
    verdict = verify(declaration, values)
    assert (verdict.verdict, verdict.given) == ("holds", ("noise of one's own, scale 1/epsilon",))
    assert verdict.rests_on[0].what == "the price of noise of one's own, scale 1/epsilon"
    assert "did not violate it" in verdict.rests_on[0].by
    mute = declared(own.MuteNoise)
    verdict = verify(mute, mute.values())
    assert (verdict.verdict, verdict.given) == ("undecided", ("noise of one's own, scale 1/epsilon",))
    assert "give MuteNoise the method `cdf`" in verdict.repair
    assert least_noise(declaration, values, epsilon=2, delta=0).releases[0].ratio == pytest.approx(0.5, rel=1e-6)


def test_its_releases_are_audited_by_its_exact_likelihood_ratio():
    result, ours = audited(declared(), trials=50_000), audited(small.laplace(), trials=50_000)
    assert result.verdict == "consistent"
    assert 0.9 < result.epsilon_lower <= 1
    assert result.reachable == pytest.approx(ours.reachable, rel=0.02)  # simulated, and from the closed form
    half = audited(mutants.rescaled_noise(declared(), 0.5), trials=50_000)
    assert half.verdict == "violation"
    assert 1.5 < half.epsilon_lower <= 2


@pytest.mark.parametrize("method", ["group", "one-run", "sequential"])
def test_every_test_of_its_releases_takes_it(method):
    sets = {"epsilon": "1/2"} if method == "group" else {"S": 40, "A": 20}
    result = audited(declared(), method=method, trials=5_000, sets=sets)
    assert result.verdict in ("consistent", "undecided")
    assert result.epsilon_lower <= 1


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "consistent"), (0.5, "violation"), (1.1, "violation")])
def test_its_noise_is_tested_by_its_distribution_function(factor, verdict):
    declaration = mutants.rescaled_noise(declared(), factor)
    result = audited(declaration, view="noise", trials=200, sets={"H": 2, "S": 10, "A": 5})
    assert result.verdict == verdict


def test_what_it_leaves_out_is_derived_as_laplace_has_it():
    rng = np.random.default_rng(1)
    noise, change = rng.laplace(0, 2, (50, 3)), np.array([1.0, -2.0, 0.5])
    assert np.allclose(THEIRS.log_ratio(noise, change), OURS.log_ratio(noise, change), rtol=1e-14)
    assert np.allclose(THEIRS.cdf(noise), OURS.cdf(noise), rtol=1e-14)
    numbers = noise.ravel()
    one, other = (law.scale_statistic(numbers.size, law.size(numbers)) for law in (THEIRS, OURS))
    assert one == pytest.approx(other, rel=1e-12)
    laws = [loss_law((MovedGroup(releases=("a",), noise=law, change=change),)) for law in (THEIRS, OURS)]
    rates = [[law.error_rate(share) for share in (0.1, 0.5, 1.0)] for law in laws]
    assert rates[0] == pytest.approx(rates[1], abs=0.005)


def test_its_ledger_names_it_and_is_priced_by_whoever_knows_the_law(tmp_path):
    declaration = declared()
    values = declaration.values()
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(declaration, values, noise="simulated", path=path)
    channel = Channel(declaration, values, noise=SimulatedNoise(0), billboard=Billboard(), ledger=ledger)
    channel.release("visits", np.zeros((4, 2)), part=0)
    ledger.close()
    header, entries = read_ledger(path)
    assert entries[0].charge == charge(declaration.releases[0], declaration.relation, values)
    assert (entries[0].charge.law, entries[0].charge.l1) == ("double exponential", 1.0)
    cost = price_ledger(header, entries)
    assert math.isinf(cost.rho)
    assert math.isinf(cost.pure_epsilon)
    known = price_ledger(header, entries, laws=laws_of(declaration))
    assert (known.rho, known.pure_epsilon, known.mu) == (pytest.approx(0.5), pytest.approx(1.0), None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Silent(Noise):
    name = "mute"


MUTE = own.MuteNoise(scale=1.0)
MOVED = (MovedGroup(releases=("visits",), noise=MUTE, change=np.ones(1)),)


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda: worst_canary(Priced(declared(own.MuteNoise), declared().values())), "`separation`"),
        (lambda: audited(declared(own.MuteNoise)), "`events`"),  # the accountant's figure stands beside every audit
        (lambda: likelihood_trials(MOVED, np.random.default_rng(0), 5), "`log_ratio`"),
        (lambda: loss_law(MOVED), "`log_ratio`"),
        (lambda: audited(declared(own.MuteNoise), view="noise"), "`cdf`"),
        (lambda: MUTE.scale_statistic(3, 1.0), "`cdf`"),
        (lambda: account(declared(own.MuteNoise)).at(declared().values()), "`events`"),
        (lambda: least_noise(declared(own.MuteNoise), declared().values(), epsilon=1, delta=0), "`events`"),
        (lambda: noise_bound(declared(own.MuteNoise), declared().values(), failure=0.1), "`largest`"),
        (lambda: own.MuteNoise.loss([], 1, pure=True), "`loss`"),
        (lambda: kernels.code(MUTE), "has no kernel"),
        (lambda: Silent(scale=1.0).draw(np.random.default_rng(0), 3), "`draw`"),
    ],
)
def test_what_a_law_cannot_be_asked_is_refused_by_name(ask, what):
    with pytest.raises(ParameterError, match=what) as refused:
        ask()
    assert "noise of the law 'mute' has no" in str(refused.value)


def test_a_mute_law_is_blind_to_the_noise_view_and_says_why():
    assert "give MuteNoise the method `cdf`" in blind(declared(own.MuteNoise), "noise")
    assert blind(declared(), "noise") == ""
    assert lacks(LaplaceNoise, "log_ratio", "cdf", "events", "loss", "loss_masses") == ""


def test_a_law_is_a_class_with_a_name_of_its_own():
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Forged(own.DoubleExponentialNoise):
        name = "gaussian"

    with pytest.raises(DeclarationError, match="'gaussian' is the name of GaussianNoise"):
        declared(Forged)
    with pytest.raises(DeclarationError, match="expected a class of noise with a name"):
        declared("laplace")
    with pytest.raises(DeclarationError, match="expected a class of noise with a name"):
        declared(Noise)


def test_a_mechanism_that_draws_another_law_than_it_says_is_refused():
    class Swapped(own.OwnNoise):
        def at(self, values):
            return GaussianNoise(scale=float(values["epsilon"]))

    release = Release("visits", VisitCounts(H, S, A), Swapped(scale=1 / epsilon))
    declaration = small.declared(PureDP(epsilon), (release,), small.EPSILON, small.ONE_USER)
    with pytest.raises(DeclarationError, match="says the law 'double exponential' and draws GaussianNoise"):
        account(declaration).at(declaration.values())
