"""What the author of a declaration can get wrong, field by field: an error of ours, with what was given, and a remedy.

Nothing raw leaves: no KeyError, TypeError or AttributeError of our code. A keyword that a constructor does not know is
Python's own TypeError.
"""

# ruff: noqa: ARG005 - functions are called by name
from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from privcheck import account, verify
from privcheck.declare.declaration import L1, L2, Assumption, Claim, Declaration, Draw, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, GaussianNoise, Laplace, ShuffledBits, SymmetricGaussian
from privcheck.declare.procedures import NoisyMax, OwnMechanism
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.schedules import Batches, EveryEpisode, Once, PerUser, Poisson, Tree
from privcheck.declare.statistics import (
    ClippedSums,
    Column,
    FeatureSums,
    GramMatrices,
    OneStepEach,
    Sensitivity,
    SparseDifference,
    Stated,
    Vectors,
    VisitCounts,
    clip_users,
)
from privcheck.errors import DeclarationError, ParameterError, PrivcheckError
from privcheck.pricing.calibration import least_factor, least_noise
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
from privcheck.terms.symbols import A, H, K, S, d, epsilon, expression, log, n, rho, sqrt, symbol

NAN, INF = float("nan"), float("inf")
PARAMETERS = (
    *(Parameter(name=one, default=3, kind="count", meaning=one) for one in "HSAKd"),
    *(Parameter(name=one, default=1, kind="positive", meaning=one) for one in ("rho", "epsilon")),
)
PHI, V = Column("phi", 1, ""), Column("V", 1, "")
VISITS = VisitCounts(H, S, A)
ONE = np.ones((1, 2))


def release(**given):
    fields = {"name": "a", "statistic": VISITS, "mechanism": Gaussian(variance=2 * H / rho), **given}
    return Release(fields.pop("name"), fields.pop("statistic"), fields.pop("mechanism"), **fields)


def declared(**given):
    fields = {
        "name": "x", "title": "", "source": "", "relation": ReplaceOne(), "releases": (release(),),
        "claim": Claim(ZCDP(rho), source=""), "parameters": PARAMETERS,
    }  # fmt: skip
    return Declaration(**{**fields, **given})


def of(**given):
    return declared(releases=(release(**given),))


def clipped(**given):
    more = {name: given.pop(name) for name in ("schedule", "mechanism", "draw") if name in given}
    statistic = ClippedSums(**{"dimension": d, "norm": 2, **given})
    return of(**{"statistic": statistic, "mechanism": Gaussian(variance=8 / rho), **more})


def selected(name="w", **given):
    fields = {"noise": "laplace", "scale": 2 / epsilon, "candidates": 10, **given}
    return declared(releases=(), procedures=(NoisyMax(name, **fields),), relation=AddRemoveOne())


def parameter(**given):
    return Parameter(**{"name": "a", "default": 1, "kind": "count", "meaning": "", **given})


def sums(**given):
    return FeatureSums(**{"name": "g", "steps": H, "dimension": d, "vector": PHI, "target": V, **given})


def gram(**given):
    return GramMatrices(**{"name": "g", "steps": H, "dimension": d, "vector": PHI, **given})


def stated(**given):
    fields = {"l1": 1, "compute": len, "records": lambda *_: 1.0, **given}
    return Stated(fields.pop("name", "s"), **fields)


def sensitivity(**given):
    return Sensitivity(**{"l1": 1, "l2": 1, "linf": 1, "reason": "me", **given})


def assumption(**given):
    return Assumption(**{"what": "x", "assumed": 1, "attained": None, "repair": "", "source": "", **given})


def vectors(**given):
    return Vectors(**{"rows": ONE, "norm": 1.0, **given})


OWN = {
    "arguments": {"scale": 1 / epsilon},
    "spread": "scale",
    "sampler": lambda rng, data, size, scale: data + rng.laplace(0, scale, size),
    "log_density": lambda out, data, scale: -np.abs(out - data) / scale - np.log(2 * scale),
    "price": lambda scale: PureDP(1 / scale),
    "relation": AddRemoveOne(),
    "neighbours": lambda scale: [(0.0, 1.0)],  # whatever the scale is: the price is tried at others too
}


def mechanism(name="w", **given):
    return OwnMechanism(name, **{**OWN, **given})


def tried(**given):
    made = declared(
        releases=(), procedures=(mechanism(**given),), relation=AddRemoveOne(), claim=Claim(PureDP(epsilon), source="")
    )
    return verify(made, {})


@dataclass(frozen=True)
class Own:
    """A number, clipped to 1, of which one answer is a mistake."""

    wrong: str = ""
    answer: object = None
    name: object = "own"
    latex: str = "x"
    symbols: object = frozenset()
    preconditions: object = ()

    def _said(self, what, honest):
        if self.wrong != what:
            return honest()
        return self.answer() if callable(self.answer) else self.answer

    def sensitivity(self, relation):
        return self._said("sensitivity", sensitivity)

    def shape(self, values):
        return self._said("shape", lambda: (1, 1))

    def compute(self, data, *, step=None):
        return self._said("compute", lambda: np.full((1,) if step is not None else (1, 1), min(data, 1.0)))

    def difference(self, pair):
        change = np.array([sum(s * min(u, 1.0) for s, u in zip((1, -1), pair, strict=True) if u is not None)])
        honest = SparseDifference(cells=np.flatnonzero(change), change=change[change != 0])
        return self._said("difference", lambda: honest)


def judged(wrong="", answer=None, *, statistic=None, **given):
    made = release(statistic=statistic or Own(wrong, answer), mechanism=Laplace(scale=2 / epsilon))
    fields = {
        "relation": AddRemoveOne(), "claim": Claim(PureDP(epsilon), source=""),
        "records": lambda _, rng: float(rng.integers(0, 2)),
    }  # fmt: skip
    return verify(declared(releases=(made,), **{**fields, **given}), {})


def raises():
    raise KeyError("x")


NUMBERS = (None, 0.5, NAN, INF, "half", "nan", [1], {}, 1j, True, int, ONE)  # where a number belongs
WORDS = (None, 3, ["a"], 0.5)  # where a text belongs
FIELDS = (
    (declared, "name", (*WORDS, "", " ")), (declared, "title", WORDS), (declared, "source", WORDS),
    (declared, "relation", (None, "replace", ReplaceOne, 1)),
    (declared, "releases", (None, {1}, {"a": 1}, "a", (None,), ("a",), ((release(),),), release(), (VISITS,))),
    (declared, "claim", (None, ZCDP(1), Claim, "1-DP", 0.5)),
    (declared, "parameters", (None, {"H": 3}, ("H",), H, (H,))),
    (declared, "model", (None, "Central", ["central"], 0)),
    (declared, "procedures", (None, (release(),), NoisyMax("w", noise="laplace", scale=1, candidates=2), (NoisyMax,))),
    (declared, "assumptions", (None, ("x",), assumption())),
    (declared, "partitions", (None, "left", 3, ({"a"},), ((1, 2),), ("left", "right"))),
    (declared, "records", (ONE, [1], 3, "draw")), (declared, "candidates", (((0, 1),), 3, "pairs")),
    (parameter, "name", (None, 3, "a b", "", ["a"])), (parameter, "default", (*NUMBERS, rho, -1, 0)),
    (parameter, "kind", (None, int, "Count", ["count"])), (parameter, "meaning", (None, 3)),
    (parameter, "least", ("2", 0, 1.5, None, True)),
    (release, "name", (*WORDS, "")), (release, "statistic", (None, "visits", VisitCounts, 3, VISITS.compute)),
    (release, "mechanism", (None, "gaussian", Gaussian, GaussianNoise(scale=1.0), 1, object())),
    (release, "schedule", (None, "once", Once, 3)), (release, "stated", (3, "1", sensitivity(), L2)),
    (release, "users", WORDS), (release, "source", WORDS), (release, "budget", (0.5, 1, "1", GaussianDP(1))),
    (release, "draw", (None, "z", Draw)), (release, "counted", (0.5, "twice", [1], True)),
    (Draw, "name", WORDS), (Draw, "across", (None, ["cells"], "cells", (["cells"],), ("cell",))),
    (Gaussian, "variance", (*NUMBERS, ONE)), (Laplace, "scale", NUMBERS),
    (lambda **given: SymmetricGaussian(**{"variance": 1, **given}), "kind", (None, "GOE", ["goe"], 1)),
    (lambda **given: ShuffledBits(**{"users": 2, "threshold": 1, **given}), "users", NUMBERS),
    (lambda **given: ShuffledBits(**{"users": 2, "threshold": 1, **given}), "messages", (None, "bit", ["bits"])),
    (lambda H: VisitCounts(H, 2, 2), "H", NUMBERS), (OneStepEach, "table", (None, "visits", VisitCounts)),
    (lambda **given: Column(**{"name": "x", "bound": 1, "latex": "", **given}), "bound", NUMBERS),
    (lambda **given: Column(**{"name": "x", "bound": 1, "latex": "", **given}), "name", (None, 3, "")),
    (gram, "vector", (None, "phi", Column, 1)), (gram, "name", (None, "", 3)), (gram, "weight", (1, "w")),
    (sums, "power", ("2", None, 0, -1, 1.5, True)), (sums, "target", (None, "V", 1)), (sums, "dimension", NUMBERS),
    (clipped, "dimension", (*NUMBERS, 0, -1, "1/2")), (clipped, "norm", (*NUMBERS, 0, -1)),
    (clipped, "per", (None, "episode", ["user"])), (clipped, "ball", (None, "l3", ["l1"], 2)),
    (clipped, "of", (None, "", 3)),
    (vectors, "rows", (None, "abc", [1, 2], [[1], [1, 2]], np.array([[NAN]]), 3.0, {})),
    (vectors, "norm", (None, "1", 0, -1, NAN, INF, rho, True)), (vectors, "per", (None, "episode", ["user"])),
    (lambda rows: clip_users(rows, np.array([1]), norm=1), "rows", ("abc", None, [1], 3)),
    (lambda owners: clip_users(ONE, owners, norm=1), "owners", (None, "a", [0.5], [1, 2])),
    (lambda norm: clip_users(ONE, np.array([1]), norm=norm), "norm", (None, "1", 0, rho)),
    (sensitivity, "l1", (*NUMBERS, 2**0.5)), (sensitivity, "reason", (None, 3, "")),
    (sensitivity, "stepwise", (None, 1, "yes")),
    (stated, "l1", NUMBERS), (stated, "compute", (None, 3, "len")), (stated, "records", (None, [1], 3)),
    (stated, "shape", (None, 3, "ab", (), (0.5,))), (stated, "preconditions", (None, 3, "clipped", (3,))),
    (stated, "whole", (None, 1)), (stated, "name", (None, "", 3)),
    (Tree, "leaves", NUMBERS), (lambda **given: Tree(leaves=8, **given), "counted", ("x", 0.5, [1])),
    (lambda **given: Tree(leaves=8, **given), "participations", ("x", 0.5, [1])),
    (lambda **given: of(schedule=Tree(leaves=8, **given)), "participations", (0, -1, "1/2")),
    (Batches, "size", (None, 3, "")), (lambda sizes: Batches(size="3", sizes=sizes), "sizes", ([3], 3, "3")),
    (EveryEpisode, "outputs", NUMBERS), (lambda after: EveryEpisode(outputs=K, after=after), "after", (None, 3, "")),
    (Poisson, "rate", NUMBERS), (lambda rounds: Poisson(rate="1/2", rounds=rounds), "rounds", NUMBERS),
    (lambda rate: clipped(schedule=Poisson(rate=rate)), "rate", (2, -1, "3/2")),
    (lambda rounds: clipped(schedule=Poisson(rate="1/2", rounds=rounds)), "rounds", (-1, "1/2")),
    (selected, "noise", (None, "gauss", ["laplace"], Laplace(scale=1))),
    (selected, "scale", (*NUMBERS, 0, -1)), (selected, "candidates", (*NUMBERS, 0, 1, "5/2", ["a", "b"])),
    (selected, "sensitivity", (*NUMBERS, -1)), (selected, "name", (None, "", 3)), (selected, "users", (None, 3, "odd")),
    (selected, "monotone", (None, 1)),
    (ReplaceOne, "unit", (None, "users", ["user"], 3)), (ReplaceOne, "initial", (None, "Fixed", ["fixed"])),
    (lambda **given: ReplaceOne("user", **given), "trajectories", NUMBERS),
    (lambda m: declared(relation=ReplaceOne("user", trajectories=m)), "m", (0, -2, "3/2", symbol("q", "count"))),
    (lambda guarantee: Claim(guarantee, source=""), "guarantee", (None, ZCDP, 0.5, "1-DP", PureDP)),
    (lambda **given: Claim(ZCDP(1), **{"source": "", **given}), "source", (None, 3)),
    (lambda **given: Claim(ZCDP(1), source="", **given), "joint", (True, "joint", Joint)),
    (lambda **given: Claim(ZCDP(1), source="", **given), "composition", ("rdp", ["basic"], 1)),
    (lambda **given: Claim(ZCDP(1), source="", **given), "order_only", (None, 1)),
    (Joint, "sees", (None, "billboard", ["billboard"], (["x"],), ("all",))),
    (ZCDP, "rho", NUMBERS), (PureDP, "epsilon", NUMBERS), (GaussianDP, "mu", NUMBERS),
    (lambda delta: ApproxDP(1, delta), "delta", NUMBERS), (lambda order: RenyiDP(order, 1), "order", NUMBERS),
    (PrivacyProfile, "points", (None, (), "ab", {1: "1/2"}, (1, "1/2"), ((1, 2, 3),), ((1, 0.1),), 3)),
    (assumption, "assumed", NUMBERS), (assumption, "what", (None, "", 3)), (assumption, "bounds", (None, 3)),
    (mechanism, "arguments", (None, ["scale"], {"scale": 0.5}, {1: 1}, {"scale": None}, "scale")),
    (mechanism, "spread", (None, "b", ["scale"])), (mechanism, "relation", (None, AddRemoveOne, "add")),
    (mechanism, "model", (None, "shuffle", ["central"])), (mechanism, "words", (None, "", 3)),
    *((mechanism, asked, (None, 3, "f")) for asked in ("sampler", "log_density", "price", "neighbours")),
    (lambda price: mechanism(price=lambda scale: price), "price", (None, 1, PureDP, "1-DP")),
    (L1, "size", NUMBERS), (L2, "size", NUMBERS),
)  # fmt: skip
CASES = [
    pytest.param(make, field, given, id=f"{number} {field} {place} {type(given).__name__}")
    for number, (make, field, several) in enumerate(FIELDS)
    for place, given in enumerate(several)
]


@pytest.mark.parametrize(("make", "field", "given"), CASES)
def test_a_field_of_another_type_or_range_is_refused_with_what_was_expected(make, field, given):
    with pytest.raises(PrivcheckError) as caught:
        make(**{field: given}) if make not in (L1, L2) else make(given)
    message = str(caught.value)
    assert any(
        word in message for word in ("expected", "no Parameter is declared", "write it as a string", "give", "declare")
    )
    assert len(message) < 900


MISTAKES = {
    "a name is verified": (lambda: verify("dp-apvi", {}), "'dp-apvi'; of a registered name give registry.algorithm("),
    "nothing is verified": (lambda: verify(None, {}), "verify: expected a Declaration, got None"),
    "a class is verified": (lambda: verify(Declaration, {}), "got the class Declaration"),
    "a function is verified": (lambda: verify(declared, {}), "call it, and give its result"),
    "a tuple is verified": (lambda: verify((declared(),), {}), "expected a Declaration, got ("),
    "a name is accounted": (lambda: account("dp-apvi"), "account: expected a Declaration"),
    "a name is calibrated": (
        lambda: least_noise("a", {}, epsilon=1.0, delta=0.1), "least_noise: expected a Declaration",
    ),
    "nothing is calibrated": (lambda: least_factor(None, {}, epsilon=1.0, delta=0.1), "least_factor: expected"),
    "a target in words": (lambda: least_noise(declared(), {}, epsilon="1", delta=0.1), "got ε = '1'"),
    "no target": (lambda: least_noise(declared(), {}, epsilon=None, delta=0.1), "got ε = None"),
    "δ in words": (lambda: least_noise(declared(), {}, epsilon=1.0, delta="x"), "δ = 'x'"),
    "values in words": (lambda: verify(declared(), "rho=1"), "expected values by name, got 'rho=1'"),
    "values in pairs": (lambda: verify(declared(), [("rho", 1)]), "expected values by name"),
    "values by symbol": (lambda: verify(declared(), {rho: 2}), "write a text, 'rho'"),
    "values by number": (lambda: account(declared()).at({1: 2}), "expected parameters by name, got 1"),
    "no number": (lambda: verify(declared(), {"rho": NAN}), "rho: expected a finite number, got nan"),
    "a symbol's name": (lambda: Gaussian(variance="H"), "import its symbol from privcheck.terms.symbols"),
    "math of a symbol": (lambda: Gaussian(variance=float(H)), "take sqrt, log, … of privcheck.terms.symbols"),
    "symbols compared": (lambda: max(H, K), "take maximum(…) or minimum(…)"),
    "half of a symbol": (lambda: Gaussian(variance=H * 0.5), "'0.5'"),
    "the root of a float": (lambda: sqrt(2.0), "'2.0'"),
    "the logarithm of nothing": (lambda: log(None), "got None"),
    "a quotient by 0": (lambda: of(mechanism=Gaussian(variance=H / expression(0))), "above 0 and finite"),
    "noisy max without noise": (lambda: selected(scale=0), "release 'w': expected the scale of its noise above 0"),
    "noisy max as a statistic": (
        lambda: of(statistic=NoisyMax("w", noise="laplace", scale=1, candidates=2)), "statistic",
    ),
    "a statistic as a release": (
        lambda: declared(releases=(sums(),)),
        "expected Release(…), NoisyMax(…) or another release",
    ),
    "a symbol without a parameter": (lambda: selected(scale=symbol("z", "positive")), "no Parameter is declared for z"),
    "users' own at a curator": (lambda: clipped(schedule=PerUser()), "declare model='local'"),
    "a sample that shares noise": (
        lambda: clipped(schedule=Poisson(rate="1/2"), draw=Draw(across=("cells",))), "leave `draw` out",
    ),
    "clipped sums with symmetric noise": (
        lambda: clipped(mechanism=SymmetricGaussian(variance=1, kind="goe")), "give it Gaussian noise",
    ),
    "clipped sums of arrays": (
        lambda: ClippedSums(dimension=2, norm=1).compute(ONE), "expected Vectors, got ndarray; wrap",
    ),
    "clipped sums of nobody": (
        lambda: ClippedSums(dimension=2, norm=1).compute(None), "expected Vectors, got NoneType",
    ),
    "clipped users as records": (
        lambda: ClippedSums(dimension=2, norm=1).compute(vectors(per="user")), "clip the vectors of a user together",
    ),
    "visits of an array": (lambda: VISITS.compute(ONE), "expected Trajectories, got ndarray; make them"),
    **{
        f"batches of {why}": (
            lambda sizes=sizes: of(
                schedule=Batches(size="3", sizes=sizes), mechanism=Gaussian(variance=2 * H * n / rho)
            ),
            "the sizes of its Batches: expected whole numbers",
        )
        for why, sizes in {
            "nothing": lambda _: None, "a number": lambda _: 3, "floats": lambda _: (3.0,),
            "no arguments": lambda: (3,),
        }.items()
    },
    "n without sizes": (
        lambda: of(schedule=Batches(size="3"), mechanism=Gaussian(variance=2 * H * n / rho)),
        "no Parameter is declared",
    ),
    "a statistic without methods": (lambda: of(statistic=type("M", (), {"name": "x"})()), "which has no latex"),
    "a statistic's symbols in words": (lambda: judged(statistic=Own(symbols="H")), "write symbols = frozenset("),
    "a statistic's name": (lambda: judged(statistic=Own(name=None)), "the statistic's name is not a text"),
    "a statistic's preconditions": (lambda: judged(statistic=Own(preconditions="clipped")), "write preconditions = ("),
    **{
        f"a sensitivity that is {answer!s:.20}": (
            lambda answer=answer: judged("sensitivity", answer), "return Sensitivity(",
        )
        for answer in (None, 3, (1, 1, 1), "1", raises)
    },
    **{
        f"a shape that is {answer!s:.20}": (
            lambda answer=answer: judged("shape", answer), "expected a tuple of whole numbers",
        )
        for answer in (None, 3, "ab", (1.5,), (-1, 1), (), (H, S), (True, 1), raises)
    },
    **{
        f"a difference that is {answer!s:.20}": (
            lambda answer=answer: judged("difference", answer), "return SparseDifference(cells=…, change=…)",
        )
        for answer in (
            None, 3.0, ONE, raises, SparseDifference(cells=np.array([7]), change=np.array([1.0])),
            SparseDifference(cells=np.array([0]), change=np.array([2.0])),
        )
    },
    "a table of another shape": (
        lambda: judged("compute", np.zeros((1, 7))), "of the shape (1, 1), as its shape(values)",
    ),
    "a stated shape of another size": (
        lambda: judged(statistic=stated(compute=lambda rows: np.zeros(3)), records=None), "of the shape (1, 1)",
    ),
    "records that draw nobody": (lambda: judged(records=lambda *_: None), "drew None, which means an absent user"),
    "records that raise": (lambda: judged(records=lambda values, _: values["x"]), "raised KeyError: 'x'; expected one"),
    "records of one argument": (lambda: judged(records=lambda _: 1.0), "write records=lambda values, rng: …"),
    "a record of one argument": (
        lambda: judged(statistic=stated(records=lambda _: 1.0), records=None), "records raised TypeError",
    ),
    **{
        f"candidates that are {found!s:.12}": (
            lambda found=found: judged(records=None, candidates=lambda _: found),
            "write candidates=lambda values: [(first, second), …]",
        )
        for found in (None, 3, [(1, 2, 3)], [1.0, 2.0])
    },
    "candidates of no argument": (
        lambda: judged(records=None, candidates=lambda: [(0.0, None)]), "its candidates raised TypeError",
    ),
    "a sampler of two arguments": (lambda: tried(sampler=lambda rng, data: data), "it is called with scale by name"),
    "a sampler that draws one": (
        lambda: tried(sampler=lambda *_, scale: [scale]), "put the outputs along the first axis",
    ),
    "a density in words": (lambda: tried(log_density=lambda *_, scale: "x"), "return a NumPy array of floats"),
    "a density that is NaN": (lambda: tried(log_density=lambda out, _, scale: out * NAN), "expected one logarithm"),
    "a density of one argument": (
        lambda: tried(log_density=lambda out, scale: out), "its log_density raised TypeError",
    ),
    "neighbours that are none": (lambda: tried(neighbours=lambda scale: None), "its neighbours raised TypeError"),
    "neighbours that are alone": (lambda: tried(neighbours=lambda scale: [(0.0,)]), "expected neighbours as pairs"),
    "outputs and edges": (lambda: mechanism(outputs=len, edges=len), "leave one out"),
    "some of the outputs": (lambda: tried(outputs=lambda scale: np.array([0.0, 1.0])), "add up to 1"),
    "edges in words": (lambda: tried(edges=lambda scale: "x"), "expected numbers of its edges"),
    "edges downwards": (lambda: tried(edges=lambda scale: np.array([3.0, 2.0, 1.0])), "ascending"),
    "an event that is a number": (lambda: tried(event=lambda scale: 3), "expected an event of privcheck.accounting"),
    "a price for others": (lambda: tried(relation=ReplaceOne()), "is stated for the relation"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_remedy(name):
    make, words = MISTAKES[name]
    with pytest.raises(PrivcheckError) as caught:
        make()
    assert words in str(caught.value)


UNDECIDED = {
    "a table that is nothing": (lambda: judged("compute", None), "a value is not finite"),
    "a table in words": (lambda: judged("compute", "abc"), "could not convert string"),
    "a table with NaN": (lambda: judged("compute", np.array([[NAN]])), "a value is not finite"),
    "a table that raises": (lambda: judged("compute", raises), "raised KeyError"),
    "users that it does not know": (lambda: judged(records=lambda *_: "a"), "raised TypeError"),
    "users who are both there": (lambda: judged(records=None, candidates=lambda _: [(1.0, 0.0)]), "2 of the two hold"),
    "users who are both absent": (
        lambda: judged(records=None, candidates=lambda _: [(None, None)]),
        "0 of the two hold",
    ),
    "no data": (lambda: judged(records=None), "raised TypeError"),
    "no neighbours": (lambda: tried(neighbours=lambda scale: []), "give `neighbours`"),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_its_authors_own_code_cannot_do_is_undecided_and_said(name):
    make, words = UNDECIDED[name]
    found = make()
    assert found.verdict == "undecided"
    assert words in " ".join(finding.message for finding in found.findings)


def test_what_the_tables_change_is_fine_as_it_is():
    for make in (
        declared,
        clipped,
        selected,
        parameter,
        sums,
        gram,
        stated,
        sensitivity,
        assumption,
        vectors,
        mechanism,
    ):
        make()
    assert judged().verdict == tried().verdict == "holds"
    assert verify(declared(), None).verdict == "holds"  # the defaults
    assert dataclasses.replace(declared(), title="another").title == "another"


def test_a_keyword_that_nobody_knows_is_pythons_own_error():
    for make in (lambda: Tree(users=8), Tree, lambda: Gaussian(sigma=1), lambda: Claim(ZCDP(1))):
        with pytest.raises(TypeError, match="argument"):
            make()


def test_errors_say_what_was_given_to_programs_too():
    with pytest.raises(ParameterError) as caught:
        Gaussian(variance=None)
    assert (caught.value.name, caught.value.given) == ("variance, of Gaussian", None)
    with pytest.raises(DeclarationError):
        verify(3, {})
