"""Lockstep, noise and releases of declarations whose data are no trajectories: clipped vectors, records, one's own.

Lockstep has no error probability. Noise and releases of honest declarations are audited at α = 1e-9; there are 40 of
them here, so that a reseed fails with probability below 1e-7. Half the noise is missed with probability below 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

import mutants
from privcheck import verify
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import EveryEpisode, Once, PerUser, Tree
from privcheck.declare.statistics import (
    ClippedSums,
    FeatureSums,
    Records,
    Sensitivity,
    SparseDifference,
    Stated,
    Vectors,
    VisitCounts,
)
from privcheck.declare.statistics.linear import Column
from privcheck.errors import DeclarationError, ParameterError
from privcheck.runtime.registry import Algorithm, plan_for
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck.terms.guarantees import ZCDP, PureDP
from privcheck.terms.symbols import K, d, epsilon, expression, rho, symbol, tree_levels
from privcheck_audits.lockstep.users import gather_users, join, others, random_pair

ALPHA = 1e-9
m = symbol("m", "count")
PARAMETERS = (
    *(Parameter(name=n, default=v, kind="count", meaning=n) for n, v in {"d": 5, "m": 3, "K": 6}.items()),
    *(Parameter(name=n, default=1, kind="positive", meaning=n) for n in ("rho", "epsilon")),
)
RELATIONS = [ReplaceOne("user"), AddRemoveOne("user"), ZeroOut("user")]


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a user spends, clipped to 50, and whatever its author says of how far one user moves it."""

    share: str = "1"  # of the truth that is stated
    clip: Callable = lambda user: min(max(user, 0.0), 50.0)
    name: str = "spendings"
    latex: str = "s"
    symbols: frozenset = frozenset()
    preconditions: tuple = ()

    def sensitivity(self, relation):
        moved = expression(self.share) * 50
        return Sensitivity(l1=moved, l2=moved, linf=moved, reason="every spending is clipped to 50")

    def shape(self, values):
        return (1, 1)

    def compute(self, data, *, step=None):
        found = np.array([self.clip(data)])
        return found[np.newaxis] if step is None else found

    def difference(self, pair):
        change = sum(sign * self.clip(user) for sign, user in zip((1, -1), pair, strict=True) if user is not None)
        at = np.array([0] if change else [], dtype=np.int64)
        return SparseDifference(cells=at, change=np.full(at.size, float(change)))


HONEST_SUM = ClippedSums(dimension=1, norm=2)


@dataclass(frozen=True, kw_only=True)
class Understated:
    """Sums of one number, clipped to 2, with a share of the true sensitivity stated."""

    share: str
    name: str = "understated"
    latex: str = "s"
    symbols: frozenset = frozenset()
    preconditions: tuple = ()

    def sensitivity(self, relation):
        true, share = HONEST_SUM.sensitivity(relation), expression(self.share)
        return Sensitivity(l1=true.l1 * share, l2=true.l2 * share, linf=true.linf * share, reason="a mistake")

    def shape(self, values):
        return HONEST_SUM.shape(values)

    def compute(self, data, *, step=None):
        return HONEST_SUM.compute(data, step=step)

    def difference(self, pair):
        return HONEST_SUM.difference(pair)


def draw_spent(values, rng):
    return float(rng.choice([0, 50, rng.random() * 50, 1000]))


def recorded(share="1"):
    return Stated(
        "sum of spendings", l1=expression(share) * 50, compute=lambda rows: sum(min(row, 50) for row in rows),
        records=draw_spent,
    )  # fmt: skip


def declared(statistic, *, noise=None, claim=None, relation=None, schedule=None, **more):
    central = "local" if isinstance(schedule, PerUser) else "central"
    return Declaration(
        name="own", title="", source="", relation=relation or ReplaceOne("user"),
        releases=(Release("own", statistic, noise or Laplace(scale=50 / epsilon), schedule=schedule or Once()),),
        claim=Claim(claim or PureDP(epsilon), source="here"), parameters=PARAMETERS, model=central, **more,
    )  # fmt: skip


def clipped(relation, *, per="record", **more):
    """Returns a Gaussian sum of clipped vectors that is just ρ-zCDP."""
    statistic = ClippedSums(dimension=d, norm=2, per=per)
    variance = statistic.sensitivity(relation).l2 ** 2 / (2 * rho)
    return declared(statistic, noise=Gaussian(variance=variance), claim=ZCDP(rho), relation=relation, **more)


HONEST = {
    **{f"clipped, {one.words}": clipped(one) for one in RELATIONS},
    "clipped in ℓ₁": declared(
        ClippedSums(dimension=d, norm=2, ball="l1"), noise=Laplace(scale=4 / epsilon), claim=PureDP(epsilon),
    ),
    "clipped in ℓ∞, added": declared(
        ClippedSums(dimension=d, norm=2, ball="linf"), noise=Laplace(scale=2 * d / epsilon), claim=PureDP(epsilon),
        relation=AddRemoveOne("user"),
    ),
    "clipped, m records each": clipped(ReplaceOne("user", trajectories=m)),
    "clipped, m records added": clipped(AddRemoveOne("user", trajectories=m)),
    "clipped a user, m records": clipped(ReplaceOne("user", trajectories=m), per="user"),
    "clipped, in a tree": declared(
        ClippedSums(dimension=d, norm=2), noise=Gaussian(variance=8 * tree_levels(K) / rho), claim=ZCDP(rho),
        schedule=Tree(leaves=K),
    ),
    "clipped, after every episode": declared(
        ClippedSums(dimension=d, norm=2), noise=Gaussian(variance=8 * K / rho), claim=ZCDP(rho),
        schedule=EveryEpisode(outputs=K),
    ),
    "clipped, each user's own": declared(
        ClippedSums(dimension=d, norm=2), noise=Gaussian(variance=8 / rho), claim=ZCDP(rho), schedule=PerUser(),
    ),
    **{f"own records, {one.words}": declared(Spent(), relation=one, records=draw_spent) for one in RELATIONS},
    "own records, in a tree": declared(
        Spent(), noise=Laplace(scale=50 * tree_levels(K) / epsilon), schedule=Tree(leaves=K), records=draw_spent,
        relation=ZeroOut("user"),
    ),
    "own candidates": declared(Spent(), candidates=lambda _: [(0.0, 70.0), (70.0, 0.0)]),
    **{f"stated, {one.words}": declared(recorded(), relation=one) for one in RELATIONS},
    "stated, in a tree": declared(
        recorded(), noise=Laplace(scale=50 * tree_levels(K) / epsilon), schedule=Tree(leaves=K),
        relation=ZeroOut("user"),
    ),
}  # fmt: skip
SHORT = {
    "own records": lambda share: declared(Spent(share=share), records=draw_spent),
    "own candidates": lambda share: declared(Spent(share=share), candidates=lambda _: [(0.0, 70.0)]),
    "stated": lambda share: declared(recorded(share)),
    "stated, added": lambda share: declared(recorded(share), relation=AddRemoveOne("user")),
    "clipped, its author's own words": lambda share: declared(
        Understated(share=share), noise=Gaussian(variance=8 / rho), claim=ZCDP(rho),
        records=lambda _, rng: Vectors(rows=rng.choice([-2.0, 2.0], (1, 1)), norm=2),
    ),
}  # fmt: skip


def audit(declaration, view, trials=16, **more):
    algorithm = Algorithm(name="own", title="own", source="here", declare=lambda _: declaration)
    request = AuditRequest(
        setting=Setting(declaration=declaration, values=declaration.values()), view=view, trials=trials,
        delta=0.0 if isinstance(declaration.claim.guarantee, PureDP) else 1e-5, confidence=1 - ALPHA, seed=5, **more,
    )  # fmt: skip
    return plan_for(algorithm).audit(request)


@pytest.mark.parametrize("name", HONEST)
def test_real_pairs_attain_the_charge_and_exceed_it_never(name):
    found = audit(HONEST[name], "lockstep")
    assert found.verdict == "consistent"
    norm = "l2" if isinstance(HONEST[name].claim.guarantee, ZCDP) else "l1"
    assert found.evidence[f"own_{norm}_moved_over_charged"] == pytest.approx(1, rel=1e-9)
    assert verify(HONEST[name], {}).verdict == "holds"


@pytest.mark.parametrize("name", HONEST)
def test_noise_is_drawn_on_real_users_and_half_of_it_is_found(name):
    found = audit(HONEST[name], "noise")
    assert found.verdict == "consistent", found.evidence
    assert ("added_to" in found.evidence) == (name == "own candidates")
    quieter = audit(mutants.rescaled_noise(HONEST[name], 0.5), "noise", 320)
    assert quieter.verdict == "violation"
    assert "scale of own" in quieter.witness


@pytest.mark.parametrize("share", ["19/20", "999/1000"])
@pytest.mark.parametrize("name", SHORT)
def test_a_sensitivity_that_is_stated_too_small_is_found_by_lockstep_and_by_verification(name, share):
    declaration = SHORT[name](share)
    found = audit(declaration, "lockstep")
    assert found.verdict == "violation"
    assert found.evidence["moved"] > found.evidence["charged"]
    with pytest.raises(DeclarationError, match="further than its stated sensitivity"):
        verify(declaration, {})
    assert audit(SHORT[name]("1"), "lockstep").verdict == "consistent"


@pytest.mark.parametrize("name", ["clipped, m records each", "own records, add or remove one user", "own candidates"])
def test_half_of_the_noise_is_refuted_by_what_leaves(name):
    assert audit(HONEST[name], "releases", 20_000).verdict == "consistent"
    found = audit(mutants.rescaled_noise(HONEST[name], 0.5), "releases", 20_000)
    assert found.verdict == "violation"


def test_five_percent_less_noise_is_refuted_by_verification():
    for name in ("clipped, m records each", "own records, replace one user by any other", "own candidates"):
        honest = HONEST[name]
        quieter = replace(honest.releases[0], mechanism=_scaled(honest.releases[0].mechanism))
        assert verify(replace(honest, releases=(quieter,)), {}).verdict == "fails"


def _scaled(mechanism):
    power = 2 if mechanism.law.gaussian else 1
    return mechanism.with_spread(mechanism.spread * expression("19/20") ** power)


def test_what_moves_only_among_others_is_seen_in_lockstep():
    """A largest gap between records moves by nothing alone; by 50 among others."""
    gap = Stated("gap", l1=10, compute=lambda rows: max(rows) - min(rows) if rows else 0.0, records=lambda _, rng:
                 float(rng.choice([0, 50])))  # fmt: skip
    found = audit(declared(gap, relation=AddRemoveOne("user")), "lockstep")
    assert found.verdict == "violation"
    assert found.evidence["moved"] == 50


# who users are


def test_random_vectors_are_corners_of_as_many_records_as_a_user_may_have():
    declaration = clipped(ReplaceOne("user", trajectories=m))
    rng = np.random.default_rng(0)
    users = others(declaration, declaration.values(), rng, 300)
    lengths = np.concatenate([np.linalg.norm(user.rows, axis=1) for user in users])
    assert {user.users for user in users} == {1, 2, 3}
    assert (lengths <= 2 * (1 + 1e-12)).all()
    assert 0.1 < (lengths < 1e-12).mean() < 0.4
    assert 0.1 < (lengths > 2 - 1e-9).mean() < 0.4
    whole = join(users)
    assert whole.users == sum(user.users for user in users)
    assert declaration.releases[0].statistic.compute(whole) == pytest.approx(
        sum(declaration.releases[0].statistic.compute(user) for user in users)
    )
    per_user = clipped(ReplaceOne("user", trajectories=m), per="user")
    assert {user.users for user in others(per_user, per_user.values(), rng, 50)} == {1}


def test_records_are_joined_and_own_data_is_taken_one_user_at_a_time():
    rows = join([Records(rows=(1, 2)), Records(rows=()), Records(rows=(3,))]).rows
    assert rows == (1, 2, 3)
    with pytest.raises(ParameterError, match="type float"):
        join([1.0, 2.0])
    alone, tree = HONEST["own records, replace one user by any other"], HONEST["own records, in a tree"]
    rng = np.random.default_rng(0)
    assert others(alone, alone.values(), rng, 4) == [None] * 4
    assert [user is not None for user in gather_users(alone, alone.values(), rng, 3)] == [True, False, False]
    assert None not in others(tree, tree.values(), rng, 4)
    first, second = random_pair(alone, alone.values(), rng, first=True)
    assert isinstance(first, float)
    assert isinstance(second, float)


def test_trajectories_whose_sizes_are_numbers_are_drawn():
    declaration = declared(VisitCounts(2, 3, 2), noise=Laplace(scale=4 / epsilon))
    users = others(declaration, declaration.values(), np.random.default_rng(0), 3)
    assert all(isinstance(user, Trajectories) and user.horizon == 2 for user in users)
    assert audit(declaration, "lockstep").verdict == "consistent"


# where nothing is known


def raising(user):
    raise KeyError("no such column")


def mixed():
    first = clipped(ReplaceOne("user"))
    return replace(first, releases=(*first.releases, Release("b", recorded(), Laplace(scale=50))))


UNKNOWN = {
    "nothing at all": (lambda: declared(Spent()), "give the declaration `records=lambda values, rng"),
    "no neighbours": (
        lambda: declared(Spent(), candidates=lambda _: [(0.0, None)]),
        "none of its `candidates` are neighbours (pair 1: 1 of the two hold the user",
    ),
    "no candidates": (lambda: declared(Spent(), candidates=lambda _: []), "it has no `candidates`; return pairs"),
    "two kinds": (mixed, "read different kinds of data (vectors, one a record, in an ℓ₂ ball; records)"),
    "records that no statistic knows": (
        lambda: declared(Spent(clip=raising), records=draw_spent),
        "no two of its `records` are neighbours (own: KeyError: 'no such column')",
    ),
    "records of users who share step 1": (
        lambda: declared(Spent(), records=draw_spent, relation=ReplaceOne("user", initial="fixed")),
        "share step 1 (replace one user by any other, step 1's state and action in common): give `candidates`",
    ),
    "records that raise": (lambda: declared(Spent(), records=lambda values, _: values["x"]), "raised KeyError"),
    "records that draw nobody": (lambda: declared(Spent(), records=lambda *_: None), "drew None"),
    "vectors too long for memory": (
        lambda: declared(
            FeatureSums(name="sums", steps=10**7, dimension=5, vector=Column("phi", 1, ""), target=Column("V", 1, "")),
            noise=Gaussian(variance=1), claim=ZCDP(10**9),
        ),
        "do not fit in memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("view", ["lockstep", "releases"])
def test_where_nothing_is_known_it_is_said_what_to_give(name, view):
    make, words = UNKNOWN[name]
    with pytest.raises((ParameterError, DeclarationError)) as caught:
        audit(make(), view)
    assert words in str(caught.value)
    assert "S and A" not in str(caught.value)


def test_noise_is_heard_on_zeros_where_no_data_is_known():
    found = audit(declared(Spent()), "noise")
    assert found.verdict == "consistent"
    assert "records" in found.evidence["added_to"]


def test_a_statistic_that_raises_among_others_is_named():
    calls = []

    def fickle(rows):
        calls.append(rows)
        if len(rows) > 30:
            raise TypeError("too many")
        return float(len(rows))

    declaration = declared(Stated("fickle", l1=50, compute=fickle, records=draw_spent))
    assert audit(declaration, "lockstep").verdict == "consistent"  # pairs that it refuses are left out
    trees = declared(Stated("fickle", l1=50, compute=fickle, records=draw_spent), schedule=EveryEpisode(outputs=40))
    calls.clear()
    with pytest.raises(DeclarationError, match="own: the statistic's compute raised TypeError: too many"):
        audit(trees, "noise")


def test_many_canaries_in_cells_are_for_tables_alone():
    sizes = tuple(Parameter(name=n, default=2, kind="count", meaning=n) for n in "HSA")
    declaration = replace(clipped(ReplaceOne("user")), parameters=(*PARAMETERS, *sizes))
    with pytest.raises(ParameterError, match="not tables of states and actions"):
        audit(declaration, "releases", 1000, method="one-run")
