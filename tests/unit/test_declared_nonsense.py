"""Declarations that mean nothing are refused when they are made; those that mean something keep their verdict.

Each line is one declaration, what is said of it, and why.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from privcheck import verify
from privcheck.declare.declaration import L1, L2, Assumption, Claim, Declaration, Draw, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace, ShuffledBits, SymmetricGaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import Batches, EveryEpisode, Once, PerUser, Tree
from privcheck.declare.statistics import (
    Column,
    FeatureSums,
    GramMatrices,
    OneStepEach,
    RewardBits,
    RewardSums,
    Sensitivity,
    SparseDifference,
    TransitionCounts,
    VisitCounts,
)
from privcheck.errors import DeclarationError, ParameterError, PrivcheckError, UnknownNameError
from privcheck.pricing import account
from privcheck.pricing.calibration import least_noise
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import (
    A,
    H,
    K,
    S,
    ceil,
    d,
    delta,
    epsilon,
    expression,
    floor,
    h,
    log,
    maximum,
    n,
    rho,
    sqrt,
    symbol,
)

COUNTS = {"H": 3, "S": 2, "A": 2, "K": 8, "d": 2}
BUDGETS = {"rho": 1, "epsilon": 1}
PARAMETERS = (
    *(Parameter(name=name, default=value, kind="count", meaning=name) for name, value in COUNTS.items()),
    *(Parameter(name=name, default=value, kind="positive", meaning=name) for name, value in BUDGETS.items()),
    Parameter(name="delta", default="1/1000", kind="probability", meaning="δ"),
)
VISITS = VisitCounts(H, S, A)
PHI, VALUE = Column("phi", 1, r"\phi"), Column("V", H - h, "V")


def release(name="a", statistic=VISITS, noise=None, **more):
    return Release(name, statistic, Gaussian(variance=2 * H / rho) if noise is None else noise, **more)


def declared(*releases, claim=None, relation=None, parameters=PARAMETERS, joint=None, **more):
    return Declaration(
        name="nonsense",
        title="a test",
        source="a test",
        relation=ReplaceOne() if relation is None else relation,
        releases=releases or (release(),),
        claim=Claim(ZCDP(rho) if claim is None else claim, source="a test", joint=joint),
        parameters=parameters,
        **more,
    )


def sums(*, target=VALUE, power=1, vector=PHI, weight=None, steps=H, dimension=d):
    return FeatureSums(
        name="sums", steps=steps, dimension=dimension, vector=vector, target=target, power=power, weight=weight
    )


def kinds(**changed):
    return tuple(dataclasses.replace(p, **changed.get(p.name, {})) for p in PARAMETERS)


@dataclass(frozen=True)
class Rewards:
    """One number, the sum of a user's rewards, with whatever sensitivity its author states."""

    stated: object
    name: str = "rewards"
    latex: str = "r"
    symbols: frozenset = frozenset({"H"})
    preconditions: tuple = ()

    def sensitivity(self, relation):
        return self.stated

    def shape(self, values):
        return (1, 1)

    def compute(self, data, *, step=None):
        found = np.array([data.rewards.sum()])
        return found[np.newaxis] if step is None else found

    def difference(self, pair):
        change = sum(s * u.rewards.sum() for s, u in zip((1, -1), pair, strict=True) if u is not None)
        return SparseDifference(
            cells=np.array([0][: change != 0], dtype=np.int64), change=np.array([change][: change != 0])
        )


def stating(l1, l2, linf):
    return declared(release(statistic=Rewards(Sensitivity(l1=l1, l2=l2, linf=linf, reason="its author says so"))))


@dataclass(frozen=True)
class Mine:
    """A relation of one's own."""

    unit: str = "trajectory"
    words: str = "one trajectory by a similar one"


class Wider(ReplaceOne):
    """A relation of one's own under a known name."""


bits = ShuffledBits(users=n, threshold=20)
two = Batches(size="two", sizes=lambda _: (2,))
local = {"model": "local", "claim": PureDP(epsilon)}
shuffle = {"model": "shuffle", "claim": ApproxDP(epsilon, delta)}
own_noise = Laplace(scale=2 * H / epsilon)

REFUSED = {
    # the model implies relation, schedules and noise
    "local, add/remove": (
        lambda: declared(release(schedule=PerUser()), relation=AddRemoveOne(), **local),
        "any two inputs",
    ),
    "local, zero out": (
        lambda: declared(release(schedule=PerUser()), relation=ZeroOut(), **local),
        "declare ReplaceOne",
    ),
    "local, tree": (lambda: declared(release(noise=own_noise, schedule=Tree(leaves=K)), **local), "no curator"),
    "local, once": (lambda: declared(release(noise=own_noise), **local), "no curator"),
    "local, batches": (
        lambda: declared(release(noise=own_noise, schedule=Batches(size="2")), **local),
        "schedule=PerUser",
    ),
    "local, every episode": (lambda: declared(release(schedule=EveryEpisode(outputs=K)), **local), "PerUser"),
    "local, shuffled": (lambda: declared(release(noise=bits, schedule=PerUser()), **local), "shuffle"),
    "central, per user": (lambda: declared(release(schedule=PerUser())), "model='local'"),
    "shuffle, Gaussian": (lambda: declared(release(), **shuffle), "users' bits"),
    "shuffle, tree": (lambda: declared(release(noise=bits, schedule=Tree(leaves=K)), **shuffle), "once"),
    "shuffle, per user": (lambda: declared(release(noise=bits, schedule=PerUser()), **shuffle), "local model"),
    "shuffle, add/remove": (
        lambda: declared(release(noise=bits, schedule=two), relation=AddRemoveOne(), **shuffle),
        "ReplaceOne or ZeroOut",
    ),
    "shuffle, one curator's noise": (
        lambda: declared(release(noise=bits, schedule=two), release("b", noise=own_noise), **shuffle),
        "release 'b'",
    ),
    "central, shuffled": (lambda: declared(release(noise=bits, schedule=two)), "model='shuffle'"),
    "shuffle, others' noise": (
        lambda: declared(release(noise=ShuffledBits(users=100, threshold=20), schedule=two), **shuffle),
        "the 2 users of a batch, got that of 100",
    ),
    "shuffle, batches of nobody knows how many": (
        lambda: declared(release(noise=ShuffledBits(users=K, threshold=20), schedule=Batches(size="two")), **shuffle),
        "declare Batches(…, sizes=",
    ),
    "shuffle, no bits": (
        lambda: declared(release(statistic=RewardSums(H, S, A), noise=bits, schedule=two), **shuffle),
        "sums of bits",
    ),
    "a model that is none": (lambda: declared(model="locally"), "'central', 'local', 'shuffle'"),
    # counts and spreads
    "K − 2 outputs": (lambda: declared(release(schedule=EveryEpisode(outputs=K - 2))), "K - 2 = -1 at K = 1"),
    "half an output": (
        lambda: declared(release(schedule=EveryEpisode(outputs="1/2"))),
        "whole number, at least 0, got 1/2",
    ),
    "K/2 leaves": (lambda: declared(release(schedule=Tree(leaves=K / 2))), "round it with ceil or floor"),
    "K/3 leaves": (lambda: declared(release(schedule=Tree(leaves=K / 3))), "the leaves of its Tree"),
    "√K leaves": (lambda: declared(release(schedule=Tree(leaves=sqrt(K)))), "whole number"),
    "ln K leaves": (lambda: declared(release(schedule=Tree(leaves=log(K)))), "whole number"),
    "−K leaves": (lambda: declared(release(schedule=Tree(leaves=-1 * K))), "whole number"),
    "leaves counted below 0": (
        lambda: declared(release(schedule=Tree(leaves=K, counted=1 - K))),
        "nodes that are counted",
    ),
    "Laplace(H − 61/2)": (
        lambda: declared(release(noise=Laplace(scale=H - Fraction(61, 2))), claim=PureDP(epsilon)),
        "H - 61/2 = -55/2 at H = 3",
    ),
    "negative variance": (lambda: declared(release(noise=Gaussian(variance=-1 * H))), "above 0 and finite, got -H"),
    "negative variance, (ε, δ)": (
        lambda: declared(release(noise=Gaussian(variance=-1)), claim=ApproxDP(epsilon, delta)),
        "release 'a'",
    ),
    "no variance": (lambda: declared(release(noise=Gaussian(variance=0))), "above 0"),
    "no variance at 3 steps": (lambda: declared(release(noise=Gaussian(variance=(H - 3) ** 2))), "above 0"),
    "imaginary": (lambda: declared(release(noise=Laplace(scale=sqrt(2 - H)))), "above 0"),
    "1/0": (lambda: declared(release(noise=Gaussian(variance=H / expression(0)))), "above 0 and finite"),
    "symmetric, negative": (
        lambda: declared(
            release(
                statistic=GramMatrices(name="g", steps=H, dimension=d, vector=PHI),
                noise=SymmetricGaussian(variance=1 - K, kind="goe"),
            )
        ),
        "above 0",
    ),
    "τ below 0": (
        lambda: declared(release(noise=ShuffledBits(users=n, threshold=-1), schedule=two), **shuffle),
        "threshold",
    ),
    "no users behind a shuffler": (
        lambda: declared(release(noise=ShuffledBits(users=0, threshold=1)), **shuffle),
        "at least 1",
    ),
    "H/2 steps": (lambda: declared(release(statistic=VisitCounts(H / 2, S, A))), "the steps of visit counts"),
    "no states": (lambda: declared(release(statistic=VisitCounts(H, S - S, A))), "at least 1"),
    "half a dimension": (lambda: declared(release(statistic=sums(dimension=d / 2))), "the dimension of sums"),
    "a batch of none": (
        lambda: declared(release(noise=bits, schedule=Batches(size="0", sizes=lambda _: (0,))), **shuffle),
        "at least 1, got 0",
    ),
    "a batch of 5/2": (
        lambda: declared(release(noise=bits, schedule=Batches(size="0", sizes=lambda _: ("5/2",))), **shuffle),
        "got 5/2",
    ),
    "sizes that raise": (
        lambda: declared(release(noise=bits, schedule=Batches(size="0", sizes=lambda v: (v["B"],))), **shuffle),
        "KeyError",
    ),
    "sizes that are no function": (lambda: Batches(size="2", sizes=(2,)), "write sizes=lambda"),
    "counted below 0": (lambda: declared(release(counted=-1)), "the number of times that it is counted"),
    "stated below 0": (lambda: declared(release(stated=L2(-1))), "stated sensitivity"),
    "a budget of 0": (lambda: declared(release(budget=ZCDP(0))), "rho, of ZCDP"),
    "assumed below 0": (
        lambda: declared(assumptions=(Assumption(what="x", assumed=-1, attained=None, repair="", source=""),)),
        "assumption on 'x'",
    ),
    # bounds and powers
    "V ≤ H − h − 1": (
        lambda: declared(release(statistic=sums(target=Column("V", H - h - 1, "V")))),
        "-1 at H = 3, h = 3",
    ),
    "φ ≤ 1 − h": (lambda: declared(release(statistic=sums(vector=Column("phi", 1 - h, "")))), "the bound on phi"),
    "a weight below 0": (lambda: declared(release(statistic=sums(weight=Column("w", -1, "")))), "the bound on w"),
    "V ≤ −1 of 3 steps": (
        lambda: declared(release(statistic=sums(steps=3, target=Column("V", 2 - h, "")))),
        "got 2 - h",
    ),
    "power −1": (lambda: sums(power=-1), "a whole number, at least 1, got -1"),
    "power 0": (lambda: sums(power=0), "at least 1"),
    "power 1/2": (lambda: sums(power=Fraction(1, 2)), "whole number"),
    "power True": (lambda: sums(power=True), "whole number"),
    # symbols and parameters
    "a claim in a count at ½": (
        lambda: declared(
            claim=ZCDP(symbol("x", "count")),
            parameters=(*PARAMETERS, Parameter(name="x", default="1/2", kind="positive", meaning="")),
        ),
        "x stands for a symbol of kind count",
    ),
    "a stated count at ½": (
        lambda: declared(
            release(stated=L1(symbol("x", "count"))),
            parameters=(*PARAMETERS, Parameter(name="x", default="1/2", kind="positive", meaning="")),
        ),
        "expected count",
    ),
    "no parameter": (lambda: declared(claim=ZCDP(symbol("x", "positive"))), "no Parameter is declared for x"),
    "h as a parameter": (
        lambda: declared(parameters=(*PARAMETERS, Parameter(name="h", default=1, kind="count", meaning=""))),
        "another name",
    ),
    "h in a variance": (lambda: declared(release(noise=Gaussian(variance=h))), "no Parameter is declared for h"),
    "a parameter twice": (lambda: declared(parameters=(*PARAMETERS, PARAMETERS[0])), "distinct names"),
    "H real": (lambda: declared(parameters=kinds(H={"kind": "positive"})), "H stands for a symbol of kind count"),
    "ρ real": (lambda: declared(parameters=kinds(rho={"kind": "real"})), "rho stands for"),
    "a kind that is none": (lambda: kinds(rho={"kind": "Positive"}), "expected a kind of count"),
    "a symbol of no kind": (lambda: symbol("x", "whole"), "'count' or 'positive'"),
    "a symbol called h": (lambda: symbol("h", "count"), "other than h"),
    "a default out of its range": (lambda: kinds(delta={"default": 2}), "strictly between 0 and 1"),
    "a least of a probability": (lambda: kinds(delta={"least": 2}), "only a count"),
    "a default below its least": (lambda: kinds(K={"least": 9}), "at least 9"),
    # sensitivities that contradict themselves
    "ℓ₁ = 0, ℓ₂ = 3": (lambda: stating(0, 3, 3), "the square of its ℓ₁ sensitivity less that of ℓ₂"),
    "ℓ₁ = 3, ℓ₂ = 0": (lambda: stating(3, 0, 0), "0 in all norms or in none"),
    "ℓ∞ = 0": (lambda: stating(H, H, 0), "0 in all norms or in none"),
    "ℓ∞ = 1 of nothing": (lambda: stating(0, 0, 1), "ℓ∞"),
    "ℓ₂ > ℓ₁": (lambda: stating(H, H + 1, 1), "less that of ℓ₂"),
    "ℓ∞ > ℓ₂": (lambda: stating(H, 1, H), "less that of ℓ∞"),
    "ℓ₁ below 0": (lambda: stating(-1, -1, -1), "the ℓ₁ sensitivity"),
    "ℓ₁ below 0 at H = 1": (lambda: stating(H - 2, H - 2, H - 2), "at H = 1"),
    "no sensitivity": (lambda: declared(release(statistic=Rewards(3))), "expected a Sensitivity"),
    "a sensitivity in floats": (lambda: stating(0.5, 0.5, 0.5), "a float"),
    # closed vocabularies
    "across output": (lambda: Draw(across=("output",)), "expected one of 'cells', 'outputs', got 'output'"),
    "across a word": (lambda: Draw(across="outputs"), "expected a tuple"),
    "initial free": (lambda: ReplaceOne(initial="free"), "expected one of 'any', 'fixed', got 'free'"),
    "sees others data": (lambda: Joint(sees=("others data",)), "others' data"),
    "a relation of one's own": (lambda: declared(relation=Mine()), "expected ReplaceOne, AddRemoveOne, ZeroOut"),
    "a relation under a known name": (lambda: declared(relation=Wider()), "expected ReplaceOne"),
    "a relation that is a class": (lambda: declared(relation=ReplaceOne), "the class ReplaceOne"),
    "kind of matrices": (lambda: SymmetricGaussian(variance=1, kind="GOE"), "'goe', 'upper'"),
    "messages": (lambda: ShuffledBits(users=n, threshold=1, messages="bit"), "'bits', 'integers'"),
    "composition": (lambda: Claim(ZCDP(1), source="", composition="rdp"), "'basic', 'advanced', 'zcdp'"),
    "a draw of one": (lambda: declared(release(draw=Draw(name="z"))), "shared with no other release"),
    "a draw of two laws": (
        lambda: declared(release(draw=Draw(name="z")), release("b", noise=own_noise, draw=Draw(name="z"))),
        "different laws or spreads",
    ),
    # words that carry meaning
    "a group of three": (
        lambda: ReplaceOne("group of 3 trajectories"),
        "one trajectory, got 'group of 3 trajectories'",
    ),
    "a household": (lambda: ZeroOut("household"), "one trajectory"),
    "a unit that is a number": (lambda: AddRemoveOne(3), "one trajectory"),
    "groups of no partition": (
        lambda: declared(release(users="first half"), release("b", users="odd")),
        "it is not stated which groups are disjoint",
    ),
    "a group misspelt": (
        lambda: declared(release(users="frist half"), partitions=(("first half", "second half"),)),
        "'frist half'",
    ),
    "a group in two partitions": (lambda: declared(partitions=(("a", "b"), ("b", "c"))), "'b' twice"),
    "a group called like two": (lambda: declared(partitions=(("a", "a and b"), ("b and c", "c"))), "without ' and '"),
    "a partition that is a text": (lambda: declared(partitions=("left",)), "expected tuple"),
    # classes in the wrong place
    "a statistic and a mechanism swapped": (lambda: Release("a", own_noise, VISITS), "expected a statistic"),
    "a statistic that is a function": (lambda: release(statistic=VisitCounts), "expected a statistic"),
    "a statistic that is a text": (lambda: release(statistic="visits"), "'visits'"),
    "a mechanism that is a class": (lambda: release(noise=Gaussian), "the class Gaussian"),
    "a mechanism that is a number": (lambda: release(noise=1), "expected a mechanism"),
    "a schedule that is a class": (lambda: release(schedule=Once), "the class Once"),
    "a schedule that is a text": (lambda: release(schedule="once"), "expected Once"),
    "a stated number": (lambda: release(stated=3), "expected L1, L2 or None"),
    "a draw that is a text": (lambda: release(draw="z"), "expected Draw"),
    "a budget that is a number": (lambda: release(budget=1), "expected PureDP"),
    "a claim that is a guarantee": (lambda: dataclasses.replace(declared(), claim=ZCDP(1)), "expected Claim"),
    "a claim of nothing": (lambda: Claim(None, source=""), "guarantee, of Claim"),
    "a guarantee that is a text": (lambda: Claim("1-DP", source=""), "guarantee, of Claim"),
    "releases without a comma": (lambda: dataclasses.replace(declared(), releases=release()), "mind the comma"),
    "a release that is a text": (lambda: dataclasses.replace(declared(), releases=("a",)), "expected Release"),
    "two horizons": (
        lambda: declared(release(), release("b", statistic=VisitCounts(1, S, A))),
        "trajectories of (H, S, A) of one size",
    ),
    "one column, two dimensions": (
        lambda: declared(release(statistic=sums()), release("b", statistic=sums(dimension=3))),
        "vectors 'phi' of one size",
    ),
    "no release": (lambda: dataclasses.replace(declared(), releases=()), "distinct names"),
    "a release twice": (lambda: declared(release(), release()), "distinct names"),
    "a release without a name": (lambda: release(""), "not empty"),
    "a variance that is a text": (lambda: Gaussian(variance="two"), "variance, of Gaussian"),
    "a variance that is nothing": (lambda: Gaussian(variance=None), "variance, of Gaussian"),
    "a variance that is no number": (lambda: Gaussian(variance=float("nan")), "variance, of Gaussian"),
    "steps that are a text": (lambda: VisitCounts("three", S, A), "H, of VisitCounts"),
    "states that are nothing": (lambda: RewardBits(H, None, A), "S, of RewardBits"),
    "a scale that is a list": (lambda: Laplace(scale=[1]), "scale, of Laplace"),
    "a bound that is a text": (lambda: Column("V", "H", "V"), "bound, of Column 'V'"),
    "a column that is a text": (lambda: sums(target="V"), "expected Column"),
    "candidates that are pairs": (lambda: declared(candidates=[]), "expected a function"),
    "a table that is none": (lambda: OneStepEach(table="visits"), "expected CellSums"),
    "symmetric noise on a table": (lambda: release(noise=SymmetricGaussian(variance=1, kind="goe")), "Gaussian noise"),
    # claims
    "ρ below 0": (lambda: declared(claim=ZCDP(-1)), "the claim: expected rho, of ZCDP, above 0"),
    "ε of 0": (lambda: declared(claim=PureDP(0)), "the claim"),
    "δ of 1": (lambda: declared(claim=ApproxDP(1, 1)), "below 1"),
    "δ of 2δ": (lambda: declared(claim=ApproxDP(1, 2000 * delta)), "below 1"),
    "δ below 0": (lambda: declared(claim=ApproxDP(1, -1 * delta)), "delta, of ApproxDP"),
    "ε below 0": (lambda: declared(claim=ApproxDP(-1, delta)), "epsilon, of ApproxDP"),
    "ε that turns negative": (lambda: declared(claim=PureDP(3 - K)), "the claim"),
    # users in order, or assigned
    "a user added to a tree": (lambda: declared(release(schedule=Tree(leaves=K)), relation=AddRemoveOne()), "ZeroOut"),
    "a user added to those dealt out": (
        lambda: declared(release(statistic=OneStepEach(table=VISITS)), relation=AddRemoveOne()),
        "ZeroOut",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_means_nothing_is_refused_when_it_is_declared(case):
    make, words = REFUSED[case]
    with pytest.raises((DeclarationError, ParameterError)) as caught:
        make()
    assert words in str(caught.value)


UNITS = 2 * H / rho  # the variance that makes one table of visits ρ-zCDP under replacement, twice over
KEPT = {
    "twice the noise": (declared, "holds", 0.5),
    "just enough": (lambda: declared(release(noise=Gaussian(variance=H / rho))), "holds", 1.0),
    "half of it": (lambda: declared(release(noise=Gaussian(variance=H / rho / 2))), "fails", 2.0),
    "zeroed out": (lambda: declared(release(noise=Gaussian(variance=H / rho / 2)), relation=ZeroOut()), "holds", 1.0),
    "another name for a trajectory": (lambda: declared(relation=ReplaceOne("patient")), "holds", 0.5),
    "local": (lambda: declared(release(noise=own_noise, schedule=PerUser()), **local), "holds", 1.0),
    "local, too little": (lambda: declared(release(noise=Laplace(scale=H), schedule=PerUser()), **local), "fails", 2.0),
    "max(0, K − 2) outputs": (
        lambda: declared(release(noise=Gaussian(variance=6 * UNITS), schedule=EveryEpisode(outputs=maximum(0, K - 2)))),
        "holds",
        0.5,
    ),
    "K − 2 outputs of K ≥ 2": (
        lambda: declared(
            release(noise=Gaussian(variance=(K - 1) * UNITS), schedule=EveryEpisode(outputs=K - 2)),
            parameters=kinds(K={"least": 2}),
        ),
        "holds",
        0.5 * 6 / 7,
    ),
    "⌊K/2⌋ leaves": (
        lambda: declared(release(noise=Gaussian(variance=3 * UNITS / 2), schedule=Tree(leaves=floor(K / 2)))),
        "holds",
        1.0,
    ),
    "⌈K/3⌉ leaves": (
        lambda: declared(release(noise=Gaussian(variance=2 * UNITS / 2), schedule=Tree(leaves=ceil(K / 3)))),
        "holds",
        1.0,
    ),
    "one partition": (
        lambda: declared(
            release(noise=Gaussian(variance=H / rho), users="left"),
            release("b", noise=Gaussian(variance=H / rho), users="right"),
            partitions=(("left", "right"),),
        ),
        "holds",
        1.0,
    ),
    "two partitions": (
        lambda: declared(
            release(noise=Gaussian(variance=H / rho), users="left"),
            release("b", noise=Gaussian(variance=H / rho), users="right"),
            release("c", noise=Gaussian(variance=H / rho), users="odd"),
            release("d", noise=Gaussian(variance=H / rho), users="even"),
            partitions=(("left", "right"), ("odd", "even")),
        ),
        "fails",
        2.0,
    ),
    "a partition and everybody": (
        lambda: declared(
            release(noise=Gaussian(variance=UNITS), users="left"),
            release("b", noise=Gaussian(variance=UNITS)),
            partitions=(("left", "right"),),
        ),
        "holds",
        1.0,
    ),
    "noise of the size of a batch": (
        lambda: declared(
            release(noise=Gaussian(variance=H * n / rho), schedule=Batches(size="n", sizes=lambda _: (2, 3)))
        ),
        "holds",
        0.5,
    ),
    "noise that falls with the size of a batch": (
        lambda: declared(
            release(noise=Gaussian(variance=H / n / rho), schedule=Batches(size="n", sizes=lambda _: (2, 3)))
        ),
        "fails",
        3.0,
    ),
    "noise of batches that hold nobody": (
        lambda: declared(
            release(noise=Gaussian(variance=H / n / rho), schedule=Batches(size="n", sizes=lambda _: ())), release("b")
        ),
        "holds",
        0.5,
    ),
    "nothing is stated, and a budget of ε = 0": (
        lambda: declared(
            release(noise=own_noise, stated=L1(0), budget=ApproxDP(0, delta)), claim=ApproxDP(epsilon, delta)
        ),
        "holds",
        pytest.approx(0.9396507750, rel=1e-6),  # of ε at δ, the exact curve
    ),
    "2ᴷ outputs": (
        lambda: declared(release(noise=Gaussian(variance=2**K * UNITS), schedule=EveryEpisode(outputs=2**K))),
        "holds",
        0.5,
    ),
    "a budget in parameters": (lambda: declared(release(budget=ZCDP(rho / 2))), "holds", 0.5),
    "numbers as they are": (lambda: declared(release(counted=1, stated=L1(6)), claim=ZCDP("1/2")), "holds", 1.0),
    "a list of releases": (lambda: dataclasses.replace(declared(), releases=[release()]), "holds", 0.5),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_means_something_keeps_its_verdict(case):
    make, verdict, ratio = KEPT[case]
    found = verify(made := make(), made.values())
    assert found.verdict == verdict
    assert found.upper_ratio == (pytest.approx(ratio, rel=1e-9) if isinstance(ratio, float) else ratio)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rho": -1}, ParameterError),
        ({"rho": 0}, ParameterError),
        ({"rho": Fraction(-1, 2)}, ParameterError),
        ({"H": Fraction(5, 2)}, ParameterError),
        ({"H": 0}, ParameterError),
        ({"H": "many"}, ParameterError),
        ({"H": None}, ParameterError),
        ({"delta": 1}, ParameterError),
        ({"epsilon": 0.5}, ParameterError),
        ({"Rho": 1}, UnknownNameError),
        ({"n": 1}, UnknownNameError),
        (3, ParameterError),
    ],
)
def test_values_are_checked_wherever_they_are_used(given, error):
    made = declared(claim=ApproxDP(epsilon, delta))
    values = {**made.values(), **given} if isinstance(given, dict) else given
    for use in (
        lambda: verify(made, values),
        lambda: account(made).at(values),
        lambda: least_noise(made, values, epsilon=1.0, delta=1e-3),
        lambda: made.values(values),
    ):
        with pytest.raises(error):
            use()


def test_a_spread_that_vanishes_at_a_corner_is_refused_there_alone_and_proves_nothing():
    noise, claim = Laplace(scale=2 * H * log(K) / epsilon), PureDP(epsilon / log(K))
    made = declared(release(noise=noise), claim=claim)
    words = [condition.what for condition in made.open_conditions]
    assert words == ["epsilon, of PureDP,", "the scale b of the Laplace noise"]
    with pytest.raises(ParameterError, match="at K = 1"):
        made.values({"K": 1})
    assert made.values({"K": 2})["K"] == 2
    assert not declared(release(noise=noise), claim=claim, parameters=kinds(K={"least": 2})).open_conditions


def test_what_is_open_is_not_proved():
    shrunk = (K - 4) ** 2  # of no users at K = 4
    made = declared(release(noise=Gaussian(variance=H / rho / shrunk)), claim=ZCDP(rho * shrunk))
    assert [c.what for c in made.open_conditions] == ["rho, of ZCDP,", "the variance of the Gaussian noise"]
    found = verify(made, made.values())
    assert (found.verdict, found.upper_ratio, found.method) == ("holds", 1.0, "checked")
    whole = declared(release(noise=Gaussian(variance=H / rho)))
    assert verify(whole, whole.values()).method == "proved"


def test_every_refusal_of_a_declaration_is_an_error_of_ours_with_a_remedy():
    for make, _ in REFUSED.values():
        with pytest.raises(PrivcheckError, match=r"expected|declare|give|leave|write|;|:"):
            make()


def test_rewards_that_are_bits_and_all_zero_sensitivities_are_declared():
    free = declared(
        release(statistic=Rewards(Sensitivity(l1=0, l2=0, linf=0, reason="it is a constant"))),
        release("b", noise=Gaussian(variance=H / rho)),
    )
    assert account(free).at(free.values()).rho == pytest.approx(1.0)
    plain = declared(
        release(statistic=Rewards(Sensitivity(l1=0, l2=0, linf=0, reason="it is a constant")), noise=Laplace(scale=1)),
        claim=PureDP(epsilon),
    )
    assert account(plain).at(plain.values()).pure == 0.0
    assert declared(release(statistic=RewardBits(H, S, A), noise=bits, schedule=two), **shuffle)
    assert declared(release(statistic=TransitionCounts(H, S, A), noise=bits, schedule=two), **shuffle)


@pytest.mark.slow
def test_a_million_steps_take_seconds():
    made = declared(release(statistic=sums(), noise=Gaussian(variance=2 * H**3 / rho)))
    assert verify(made, made.values({"H": 10**6})).verdict == "holds"


@pytest.mark.parametrize(
    ("claim", "least"),
    [
        (ApproxDP(1, 1 / n**2), "n `least=2`"),
        (ApproxDP(1, 3 / (n * n + 1)), "n `least=2`"),
        (ZCDP(n - 3), "n `least=4`"),
    ],
)
def test_a_claim_that_means_nothing_for_the_smallest_counts_says_which_least_would_do(claim, least):
    counted = Parameter(name="n", default=100, kind="count", meaning="users")
    with pytest.raises(DeclarationError, match=f"or give the Parameter {least}"):
        declared(claim=claim, parameters=(*PARAMETERS, counted))
    larger = Parameter(name="n", default=100, kind="count", meaning="users", least=int(least[-2]))
    assert verify(declared(claim=claim, parameters=(*PARAMETERS, larger)), {}).verdict in ("holds", "fails")
