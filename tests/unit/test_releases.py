"""Whatever leaves answers one protocol, and a declaration keeps it in one tuple."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from privcheck.accounting import compose
from privcheck.declare.declaration import Claim, Declaration, Draw, Release
from privcheck.declare.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from privcheck.declare.procedures import Facts, NoisyMax, OnSample, SharedSample
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.releases import is_additive
from privcheck.declare.schedules import Batches, Once, Outputs, PerUser, Poisson, Sample
from privcheck.declare.statistics import ClippedSums, VisitCounts
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import symbol

USERS = AddRemoveOne("user")


def sums(name="sums", noise=None, **more):
    return Release(name, ClippedSums(dimension=1, norm=1), noise or Gaussian(variance=4), **more)


def chosen(name="winner", **more):
    return NoisyMax(name, noise="gumbel", scale=2, candidates=3, **more)


def declared(*releases, relation=USERS, **more):
    return Declaration(
        name="all", title="", source="", relation=relation, releases=releases, parameters=(),
        claim=Claim(ApproxDP(2, "1e-5"), source=""), **more,
    )  # fmt: skip


def test_a_gaussian_statistic_states_its_price_by_itself():
    one = sums()
    cost = one.cost(USERS)
    assert (cost.rho.number(), cost.mu_squared.number(), cost.pure) == (1 / 8, 1 / 4, None)
    assert cost.charged.number() == 1
    assert one.std({}) == 2
    assert one.facts.law == "gaussian"
    assert compose(*one.events(USERS, {})).delta(epsilon=0).upper == pytest.approx(math.erf(0.25 / math.sqrt(2)))


@pytest.mark.parametrize(
    ("noise", "epsilon"), [(Laplace(scale=2), Fraction(3, 2)), (DiscreteLaplace(scale=2), Fraction(3, 2))]
)
def test_a_laplace_statistic_states_its_epsilon_by_itself(noise, epsilon):
    """Three visits of a user who is added, each in another cell or in one."""
    visits = Release("visits", VisitCounts(3, 1, 1), noise)
    assert visits.cost(USERS).pure.rational({}) == epsilon
    assert compose(*visits.events(USERS, {})).epsilon(delta=0).upper == pytest.approx(float(epsilon))


@pytest.mark.parametrize("noise", [Gaussian(variance=4), DiscreteGaussian(variance=4), Laplace(scale=2)])
@pytest.mark.parametrize("relation", [USERS, ZeroOut("user"), ReplaceOne("user")], ids=lambda one: type(one).__name__)
def test_one_release_costs_by_itself_what_its_declaration_does(noise, relation):
    visits = Release("visits", VisitCounts(2, 2, 1), noise)
    cost, composed = visits.cost(relation), account(declared(visits, relation=relation))
    assert (cost.rho, cost.pure, cost.mu_squared) == (composed.rho, composed.pure, composed.mu_squared)
    alone, together = compose(*visits.events(relation, {})), composed.at({}).curve
    assert alone.delta(epsilon=0.5).upper == pytest.approx(together.delta(epsilon=0.5).upper, rel=1e-12)


@pytest.mark.parametrize("noise", [Gaussian(variance=4), Laplace(scale=2)])
@pytest.mark.parametrize("schedule", [Once(), Poisson(rate="1/2"), Outputs(count=2, times_std=lambda t: t)])
def test_all_noise_is_multiplied_by_its_standard_deviation(noise, schedule):
    one = Release("visits", VisitCounts(1, 1, 2), noise, schedule=schedule)
    assert one.with_std(Fraction(1, 2)).std({}) == pytest.approx(one.std({}) / 2, rel=1e-12)
    one = Release("visits", VisitCounts(1, 1, 2), DiscreteGaussian(variance=4))
    assert one.with_std(Fraction(1, 2)).std({}) == pytest.approx(one.std({}) / 2, rel=1e-12)


def test_noise_that_hides_two_values_has_no_price():
    reused = Release("visits", VisitCounts(1, 2, 2), Gaussian(variance=4), draw=Draw(across=("cells",)))
    cost = reused.cost(USERS)
    assert (cost.rho.infinite, cost.pure, cost.mu_squared) == (True, None, None)
    assert compose(*reused.events(USERS, {})).delta(epsilon=1).upper == 1


def test_a_user_of_one_of_several_batches_has_no_single_curve():
    n = symbol("n", "count")
    noise = Gaussian(variance=n)
    batched = sums(noise=noise, schedule=Batches(size="2 or 5 users", sizes=lambda _values: (2, 5)))
    with pytest.raises(ParameterError, match="one of several batches"):
        batched.events(ReplaceOne("user"), {})


def test_facts_say_how_users_are_in_an_output():
    assert sums().facts.models == ("central",)
    assert sums(schedule=PerUser()).facts.models == ("local",)
    assert "of a random sample" in sums(schedule=Poisson(rate="1/2")).facts.words
    assert "the members of a sample are kept secret" in sums(schedule=Poisson(rate="1/2")).facts.preconditions
    assert "output t t times" in sums(schedule=Outputs(count=2, times_std=lambda t: t)).facts.words


def test_a_declaration_keeps_what_its_author_gave_in_one_tuple():
    batch = Sample(Poisson(rate="1/2"))
    sampled, all_users, picked = sums("sampled", schedule=batch), sums("all users"), chosen()
    on_sample = OnSample("picked", procedures=(chosen("inner"),), sample=batch)
    one = declared(sampled, picked, all_users, procedures=(on_sample,))
    assert one.releases == (sampled, picked, all_users, on_sample)
    assert one.noisy == (all_users,)
    assert one.statistics_released == (sampled, all_users)
    assert [type(part) for part in one.joined] == [Release, SharedSample, NoisyMax]
    assert one.joined[1].parts == (sampled, on_sample)
    assert one.others == one.joined[1:]
    assert [is_additive(part) for part in one.releases] == [False, False, True, False]


def test_other_releases_take_the_place_of_all():
    one = declared(sums(), chosen())
    assert replace(one, releases=(chosen("other"),)).releases == (chosen("other"),)
    louder = one.with_noisy((sums(noise=Gaussian(variance=1)),))
    assert louder.releases == (sums(noise=Gaussian(variance=1)), chosen())
    assert replace(one, title="two").releases == one.releases
    with pytest.raises(DeclarationError, match="distinct names"):
        replace(one, procedures=(chosen(),))
    assert not hasattr(one, "procedures")


@dataclass(frozen=True)
class Wordless:
    """A selection whose facts are words."""

    inner: NoisyMax
    facts = "a winner"

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_facts_of_another_type_are_refused():
    with pytest.raises(DeclarationError, match=r"'winner': expected facts that are Facts\(…\), got 'a winner'; return"):
        declared(Wordless(chosen()))


def test_what_lacks_a_member_is_refused_by_its_name():
    @dataclass(frozen=True)
    class Older:
        name: str = "older"
        users: str = ""
        words: str = "a coin"

    with pytest.raises(DeclarationError, match="which has no facts, std, with_std, cost, events, pairs"):
        declared(Older())


def test_facts_have_defaults_for_what_leaves_once():
    facts = chosen().facts
    assert isinstance(facts, Facts)
    assert (facts.rounds.number(), facts.schedule, facts.models) == (1, "released once", ("central",))
