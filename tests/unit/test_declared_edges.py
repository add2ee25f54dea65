"""Corners of a declaration in which an account could come out too small or a witness too large."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.data.trajectories import Trajectories, take
from privcheck.declare.declaration import Claim, Declaration, Draw, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace, ShuffledBits
from privcheck.declare.mechanisms.base import Charge
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import Batches, EveryEpisode, Tree
from privcheck.declare.statistics import OneStepEach, RewardSums, SparseDifference, VisitCounts
from privcheck.errors import ChannelError, DeclarationError
from privcheck.pricing import account
from privcheck.runtime import Billboard, Channel, Ledger
from privcheck.runtime.ledger import Entry
from privcheck.runtime.noise import SimulatedNoise
from privcheck.runtime.spending import follow_ledger, price_ledger
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, K, S, ceil_log2, epsilon, n, rho, symbol
from privcheck.verification.pair_loss import leaks
from privcheck.verification.verdict import verify

REPLACE = ReplaceOne()
SIZES = (("H", 3), ("S", 2), ("A", 2), ("K", 8))


def _declared(*releases, claim, relation=REPLACE, more=(), model="central"):
    counts = [Parameter(name=name, default=value, kind="count", meaning=name) for name, value in SIZES]
    budgets = [Parameter(name=name, default=1, kind="positive", meaning=name) for name in ("rho", "epsilon")]
    return Declaration(
        name="edge",
        title="edge",
        source="test",
        relation=relation,
        releases=releases,
        claim=Claim(claim, source="test"),
        parameters=(*counts, *budgets, *more),
        model=model,
    )


def test_batches_that_hold_nobody_leave_the_other_releases_their_cost():
    nobody = Batches(size="none", sizes=lambda _: ())
    bits = Release(
        "bits", OneStepEach(table=VisitCounts(H, S, A)), ShuffledBits(users=n, threshold=10), schedule=nobody
    )
    plain = Release("plain", VisitCounts(H, S, A), ShuffledBits(users=8, threshold=20))
    claim = ApproxDP(epsilon, Fraction(1, 1000))
    alone, both = (account(_declared(*rs, claim=claim, model="shuffle")) for rs in ((plain,), (plain, bits)))
    values = alone.declaration.values()
    assert both.at(values).branches == alone.at(values).branches
    assert both.at(values).epsilon(1e-3) >= alone.at(values).epsilon(1e-3) > 1


def test_n_is_no_parameter_where_it_is_the_size_of_a_batch():
    release = Release(
        "a", VisitCounts(H, S, A), Gaussian(variance=n), schedule=Batches(size="one", sizes=lambda _: (1,))
    )
    parameter = Parameter(name="n", default=1000, kind="count", meaning="users")
    with pytest.raises(DeclarationError, match="users in a batch"):
        _declared(release, claim=ZCDP(rho), more=(parameter,))


def test_a_symbol_for_whole_numbers_has_no_parameter_between_them():
    release = Release("a", VisitCounts(1, S, A), Gaussian(variance=symbol("T", "count")))
    parameter = Parameter(name="T", default="0.01", kind="positive", meaning="a variance")
    with pytest.raises(DeclarationError, match="expected count"):
        verify(found := _declared(release, claim=ZCDP(1), more=(parameter,)), found.values())


@pytest.mark.parametrize("step", [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.4999, 0.5, 3.0, 1e3])
def test_what_a_ledger_says_of_faint_laplace_releases_is_rounded_up_and_not_by_much(step):
    cost = Charge(law="laplace", scale=1.0, l1=step, l2=step, linf=step)
    found = price_ledger({"as_declared": True}, [Entry(release="a", part=0, charge=cost, output="")]).rho
    with mpmath.workdps(60):
        true = mpmath.mpf(step) + mpmath.expm1(-mpmath.mpf(step))
        assert true <= found <= true * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("step", [1e-300, 1e-200, 1e-160, 3e-155])
def test_what_is_too_faint_for_floats_costs_a_ledger_something(law, step):
    cost = Charge(law=law, scale=1.0, l1=step, l2=step, linf=step)
    found = price_ledger({"as_declared": True}, [Entry(release="a", part=0, charge=cost, output="")] * 3)
    true = Fraction(step) ** 2 / 2 - Fraction(step) ** 3 / 6
    assert 3 * true <= Fraction(found.rho) <= 3 * true * (1 + Fraction(1, 10**12)) + Fraction(1, 10**280)
    if law == "gaussian":
        assert Fraction(found.mu) ** 2 >= 3 * Fraction(step) ** 2
    else:
        assert Fraction(found.pure_epsilon) >= 3 * Fraction(step)


def test_a_release_that_nobody_moves_costs_a_ledger_nothing():
    cost = Charge(law="laplace", scale=1.0, l1=0.0, l2=0.0, linf=0.0)
    found = price_ledger({"as_declared": True}, [Entry(release="a", part=0, charge=cost, output="")])
    assert (found.rho, found.pure_epsilon) == (0.0, 0.0)


def test_without_a_user_the_others_are_dealt_out_anew():
    table = OneStepEach(table=VisitCounts(H, S, A))
    states = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 1, 1]], dtype=np.int32)
    users = Trajectories(
        states=states, actions=np.zeros((3, 3), np.int32), rewards=np.zeros((3, 3)), num_states=2, num_actions=2
    )
    assert np.abs(table.compute(users) - table.compute(take(users, slice(1, 3)))).sum() > 1
    with pytest.raises(DeclarationError, match="ZeroOut"):
        table.sensitivity(AddRemoveOne())


@pytest.mark.parametrize("schedule", [Tree(leaves=K - 1), EveryEpisode(outputs=K - 1), Batches(size="two")])
def test_users_in_order_are_not_added_or_removed(schedule):
    release = Release("a", VisitCounts(H, S, A), Gaussian(variance=1), schedule=schedule)
    with pytest.raises(DeclarationError, match="declare ZeroOut"):
        _declared(release, claim=ZCDP(rho), relation=AddRemoveOne())
    assert account(_declared(release, claim=ZCDP(rho), relation=ZeroOut())).rho.symbols <= {"H", "K"}


def test_no_noise_on_no_outputs_is_no_release():
    release = Release("a", VisitCounts(H, S, A), Laplace(scale=H * ceil_log2(K) / epsilon), schedule=Tree(leaves=K - 1))
    found = _declared(release, claim=PureDP(2 * epsilon))
    assert verify(found, found.values({"K": 1})).lower_ratio == 0


def test_gaussian_noise_on_no_outputs_is_pure():
    release = Release("a", VisitCounts(H, S, A), Gaussian(variance=1), schedule=Tree(leaves=K - 1))
    found = _declared(release, claim=PureDP(epsilon))
    assert verify(found, found.values({"K": 1})).verdict != "fails"
    assert verify(found, found.values({"K": 2})).verdict == "fails"


def test_the_same_noise_on_the_same_change_is_one_look_at_it():
    draw = Draw(name="one")
    releases = [Release(name, VisitCounts(H, S, A), Gaussian(variance=4 * H / rho), draw=draw) for name in "ab"]
    found = _declared(*releases, claim=ZCDP(rho / 3))
    judged = verify(found, found.values())  # one release is (ρ/4)-zCDP, and the other is the same array
    assert judged.verdict == "undecided"
    assert judged.lower_ratio == pytest.approx(3 / 4)


@pytest.mark.parametrize("draw", [Draw(across=("cells",)), Draw(across=("outputs",)), Draw(name="one")])
def test_a_channel_does_not_pretend_to_share_noise(draw):
    releases = [Release(name, VisitCounts(H, S, A), Gaussian(variance=1), draw=draw) for name in "ab"]
    found = _declared(*releases, claim=ZCDP(rho))
    values = found.values()
    with pytest.raises(ChannelError, match="shared"):
        Channel(
            found,
            values,
            noise=SimulatedNoise(1),
            billboard=Billboard(),
            ledger=Ledger(found, values, noise="simulated"),
        )


def test_a_draw_for_all_cells_hides_a_change_that_all_of_them_share():
    release = Release("a", RewardSums(H, S, A), Gaussian(variance=1), draw=Draw(across=("cells",)))
    found = _declared(release, claim=ZCDP(rho))
    for cells, alike in ((range(4), True), ((*range(4), *range(8, 12)), True), (range(3), False), (range(5), False)):
        change = SparseDifference(cells=np.array(cells), change=np.ones(len(cells)))
        assert leaks(found, {"a": change}, found.values()) is not alike
    uneven = SparseDifference(cells=np.arange(4), change=np.array([1.0, 1.0, 1.0, 0.5]))
    assert leaks(found, {"a": uneven}, found.values())


@settings(max_examples=60)
@given(st.data())
def test_what_is_spent_grows_to_the_whole_and_never_past_it(data):
    """Against exact sums of textbook costs over the groups' releases, at rising shares; the last is all of it."""
    laws = st.sampled_from(["gaussian", "laplace"])
    sizes = st.floats(1e-3, 1e3)
    rows = data.draw(
        st.lists(st.tuples(st.sampled_from("abc"), laws, sizes, sizes, st.sampled_from(["", "x", "y"])), max_size=6)
    )
    entries = [
        Entry(release=name, part=i, output="", charge=Charge(law=law, scale=s, l1=d, l2=d, linf=d, users=users))
        for i, (name, law, s, d, users) in enumerate(rows)
    ]
    steps = data.draw(st.lists(st.fractions(0, 1, max_denominator=40), max_size=5).map(sorted))
    shares = [*(dict.fromkeys("abc", share) for share in steps), {}]
    found = follow_ledger({"as_declared": True}, entries, shares)
    for cost, share in zip(found, [*steps, 1], strict=True):
        for unit, price in PRICES.items():
            some = [[price[law](Fraction(d) / Fraction(s)) for _, law, s, d, users in rows if users in ("", group)]
                    for group in {row[4] for row in rows if row[4]} or {""}]  # fmt: skip
            if share == 0 or not any(None in part for part in some):
                true = max(sum((p or 0) * share for p in part) for part in some)
                value = Fraction(getattr(cost, unit) or 0) ** (2 if unit == "mu" else 1)
                assert true <= value <= true * (1 + Fraction(1, 10**12))
            else:
                assert getattr(cost, unit) in (None, math.inf)
    assert found[-1] == price_ledger({"as_declared": True}, entries)
    assert [one.rho for one in found] == sorted(one.rho for one in found)


def _laplace_rho(step):
    with mpmath.workdps(60):
        x = mpmath.mpf(step.numerator) / step.denominator
        return Fraction(mpmath.nstr(x + mpmath.expm1(-x), 50))


PRICES = {
    "rho": {"gaussian": lambda r: r * r / 2, "laplace": _laplace_rho},
    "pure_epsilon": {"gaussian": lambda _: None, "laplace": lambda r: r},
    "mu": {"gaussian": lambda r: r * r, "laplace": lambda _: None},
}


def test_a_share_of_the_outputs_costs_that_share():
    """Against the ledger with each charge cut down by hand: ℓ₂ by the root of the share, ℓ₁ by the share."""
    one = Charge(law="gaussian", scale=2.0, l1=3.0, l2=1.5, linf=1.0)
    two = Charge(law="laplace", scale=4.0, l1=6.0, l2=2.0, linf=1.5, users="first")
    three = Charge(law="laplace", scale=1.0, l1=1.0, l2=1.0, linf=1.0, users="second")

    def ledger(part):
        cut = [
            ("a", dataclasses.replace(one, l2=one.l2 * math.sqrt(part))),
            ("b", dataclasses.replace(two, l1=two.l1 * part)),
            ("b", dataclasses.replace(two, l1=two.l1 * part)),
            ("c", three),
        ]
        return [Entry(release=name, part=i, charge=cost, output="") for i, (name, cost) in enumerate(cut)]

    shares = [Fraction(0), Fraction(1, 3), Fraction(1)]
    found = follow_ledger({"as_declared": True}, ledger(1), [{"a": s, "b": s} for s in shares])
    for cost, share in zip(found, shares, strict=True):
        naive = price_ledger({"as_declared": True}, ledger(float(share)))
        assert cost.rho == pytest.approx(naive.rho, rel=1e-12)
        assert cost.mu is None or share == 0
        assert cost.pure_epsilon == (naive.pure_epsilon if share > 0 else pytest.approx(1.0, rel=1e-12))
    only = [Entry(release="a", part=0, charge=one, output="")]
    assert follow_ledger({"as_declared": True}, only, [{"a": Fraction(1, 4)}])[0].mu == pytest.approx(
        0.75 / 2, rel=1e-12
    )


ONE_CELL = VisitCounts(1, 1, 1)
ALL_OUTPUTS, ALL_CELLS = Draw(across=("outputs",)), Draw(across=("cells",))


@pytest.mark.parametrize(
    ("alone", "several"),
    [
        (
            Release("a", ONE_CELL, Laplace(scale=1), schedule=EveryEpisode(outputs=1), draw=ALL_OUTPUTS),
            Release("a", ONE_CELL, Laplace(scale=1), schedule=EveryEpisode(outputs=2), draw=ALL_OUTPUTS),
        ),
        (
            Release("a", ONE_CELL, Laplace(scale=1), schedule=Tree(leaves=1), draw=ALL_OUTPUTS),
            Release("a", ONE_CELL, Laplace(scale=1), schedule=Tree(leaves=2), draw=ALL_OUTPUTS),
        ),
        (
            Release("a", ONE_CELL, Laplace(scale=1), draw=ALL_CELLS),
            Release("a", VisitCounts(1, 2, 1), Laplace(scale=1), draw=ALL_CELLS),
        ),
    ],
)
def test_one_draw_over_one_number_is_fresh_noise_and_over_two_it_is_not(alone, several):
    zeroed = ZeroOut()
    assert verify(_declared(alone, claim=PureDP(1), relation=zeroed), {}).verdict == "holds"
    assert verify(_declared(several, claim=PureDP(1), relation=zeroed), {}).verdict == "fails"
