"""A mechanism of one's own, from plain functions: its price is tried, what contradicts it is refused with the pair.

Random parts are seeded; comparisons of a sampler with its density accuse a correct one with a probability below 1e-10,
audits of correct mechanisms are at confidence 1 − 1e-9.
"""

# ruff: noqa: ARG005 - functions are called by name
from __future__ import annotations

import logging
import math
import sys
import time
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import own_law as own
import small_declarations as small
from privcheck import Claim, Declaration, Parameter, account, verify
from privcheck.accounting import laplace
from privcheck.declare.declaration import Release
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.procedures.cells import integrate_cells
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import DeclarationError, PrivcheckError
from privcheck.pricing.calibration import least_noise
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP
from privcheck.terms.symbols import A, H, S, epsilon
from privcheck.verification.outcome_loss import pair_delta, pure_loss, rho_loss
from privcheck_audits.engine.outputs import hear_samplers
from privcheck_audits.releases.view import audit_releases

SURE = 1 - 1e-9


def noisy(rng, data, size, scale):
    return data + rng.laplace(0.0, scale, size)


def log_noisy(outputs, data, scale):
    return -np.abs(outputs - data) / scale - np.log(2 * scale)


def span(scale):
    return np.unique(np.concatenate([np.linspace(-40 * scale, 1 + 40 * scale, 2001), [0.0, 1.0]]))


def answered(rng, data, size, scale):
    """Randomised response of ε = 1/scale."""
    return np.where(rng.random(size) < 1 / (1 + np.exp(-1 / scale)), data, 1 - data)


def log_answered(outputs, data, scale):
    return np.where(outputs == data, -np.log1p(np.exp(-1 / scale)), -np.log1p(np.exp(1 / scale)))


LAPLACE = {
    "arguments": {"scale": 1 / epsilon},
    "spread": "scale",
    "sampler": noisy,
    "log_density": log_noisy,
    "price": lambda scale: PureDP(1 / scale),
    "relation": AddRemoveOne("user"),
    "neighbours": lambda scale: [(0.0, 1.0)],
    "edges": span,
}
RESPONSE = {**LAPLACE, "sampler": answered, "log_density": log_answered, "edges": None,
            "outputs": lambda scale: np.arange(2), "neighbours": lambda scale: [(0, 1)]}  # fmt: skip


PURE, ONE_USER = PureDP(epsilon), AddRemoveOne("user")


def declared(claim=PURE, *, of=LAPLACE, relation=ONE_USER, **changes):
    return Declaration(
        name="own", title="", source="", relation=relation, releases=(),
        procedures=(OwnMechanism("own", **{**of, **changes}),), claim=Claim(claim, source="here"),
        parameters=(Parameter(name="epsilon", default=1, kind="positive", meaning="ε"),),
    )  # fmt: skip


def judged(*given, **changes):
    declaration = declared(*given, **changes)
    return verify(declaration, declaration.values())


@pytest.mark.parametrize("of", [LAPLACE, RESPONSE])
def test_a_price_that_no_pair_contradicts_holds_given_it(of):
    found = judged(of=of)
    assert (found.verdict, found.given) == ("holds", ("own",))
    assert found.upper_ratio == 1
    assert found.lower_ratio == pytest.approx(1, rel=1e-6)
    assert found.rests_on[0].basis == "stated"
    assert judged(PureDP(epsilon * Fraction(19, 20)), of=of).verdict == "fails"


@pytest.mark.parametrize(
    ("price", "claim"),
    [
        (lambda scale: ZCDP(1 / (2 * scale**2)), ZCDP(epsilon**2 / 2)),
        (lambda scale: ApproxDP(1 / scale, "1/1000"), ApproxDP(epsilon, "1/1000")),
        (lambda scale: GaussianDP(2 / scale), ZCDP(2 * epsilon**2)),
    ],
)
def test_every_kind_of_price_is_tried_or_undecided(price, claim):
    found = judged(claim, price=price)
    assert found.verdict == "holds"
    blind = judged(claim, price=price, edges=None)
    assert (blind.verdict, blind.lower_ratio) == ("undecided", 0)
    assert "edges" in blind.repair


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"price": lambda scale: PureDP(Fraction(19, 20) / scale)}, r"loses 1 \(ε\), but its author states 0.95"),
        ({"price": lambda scale: PureDP(Fraction(19, 20) / scale), "edges": None}, r"a factor e\^1, and"),
        ({"price": lambda scale: ZCDP(1 / (3 * scale**2))}, "ρ"),
        ({"price": lambda scale: GaussianDP(1 / (2 * scale))}, "ρ"),
        ({"price": lambda scale: ApproxDP(1 / (2 * scale), "1/1000")}, "ε at δ"),
        ({"event": lambda scale: laplace(scale=1.05 * scale)}, "ε at δ"),
        ({"sampler": lambda rng, data, size, scale: noisy(rng, data, size, scale / 1.1)}, "apart"),
        ({"sampler": lambda rng, data, size, scale: noisy(rng, data, size, scale / 2), "edges": None}, "a loss in"),
        ({"sampler": lambda rng, data, size, scale: data[size]}, "its sampler raised TypeError"),
        ({"sampler": lambda rng, data, size, scale: noisy(rng, data, 1, scale)}, "drew an array of shape"),
        ({"log_density": lambda outputs, data, scale: -np.abs(outputs - data) / scale}, "adds up to 2 between"),
        ({"log_density": lambda outputs, data, scale: np.nan}, "one logarithm of a density for each"),
        ({"edges": lambda scale: np.linspace(-1, 1, 9)}, "adds up to 0.63"),
        ({"edges": lambda scale: [1, 0]}, "ascending"),
        ({"neighbours": lambda scale: [0.0]}, "pairs"),
        ({"of": RESPONSE, "outputs": lambda scale: np.arange(1)}, "add up to 1"),
        ({"of": RESPONSE, "sampler": lambda rng, data, size, scale: rng.integers(7, 9, size)}, "−∞|among its"),
        ({"of": RESPONSE, "sampler": lambda rng, data, size, scale: rng.integers(0, 2, size)}, "apart|a loss in"),
        ({"of": RESPONSE, "sampler": lambda rng, data, size, scale: np.full(size, data)}, "from two generators"),
        ({"relation": ReplaceOne("user")}, "is stated for the relation 'add or remove one user'"),
        ({"relation": AddRemoveOne("user", trajectories=2)}, "is stated for the relation"),
        ({"price": lambda scale: 1 / scale}, "expected PureDP, ZCDP"),
        ({"price": lambda: PureDP(1)}, "its price raised TypeError"),
        ({"event": lambda scale: scale}, "expected an event"),
        ({"spread": "variance"}, "expected one of its arguments"),
        ({"outputs": lambda scale: np.arange(2)}, "got both"),
        ({"sampler": None}, "expected a function"),
        ({"arguments": {"scale": 0.5}}, "float"),
    ],
)
def test_what_contradicts_itself_is_refused(changes, why):
    relation = changes.get("relation", AddRemoveOne("user"))
    own_changes = {key: value for key, value in changes.items() if key not in {"relation", "of"}}
    with pytest.raises(PrivcheckError, match=why):
        judged(of=changes.get("of", LAPLACE), relation=relation, **own_changes)


def test_without_neighbours_nothing_is_known():
    found = judged(neighbours=lambda scale: [])
    assert found.verdict == "undecided"
    assert "neighbours" in found.repair


@pytest.mark.parametrize("scale", ["1/50", "1", "30"])
def test_cells_lose_what_the_integral_says_and_never_more(scale):
    s = float(Fraction(scale))
    logs = [lambda x, data=data: log_noisy(x, data, s) for data in (0.0, 1.0)]
    p, q = integrate_cells("x", logs, span(s))
    from privcheck.declare.procedures import Outcomes

    laws, e = Outcomes(log_p=p, log_q=q), 1 / s
    assert 0.999 * e <= pure_loss(laws, 1) <= e
    kl = e + math.expm1(-e)
    assert 0.998 * kl <= rho_loss(laws, 1) <= kl * (1 + 1e-9)
    true = -math.expm1(-e / 2)  # total variation
    assert true * (1 - 1e-3) <= pair_delta(laws, 1, 0.0) <= true


def test_what_cannot_leave_is_told_from_what_underflows():
    """A density that underflows is not 0; one that is 0 loses everything."""
    narrow = [lambda x, at=at: -0.5 * ((x - at) / 0.01) ** 2 - math.log(0.01 * math.sqrt(2 * math.pi)) for at in (0, 1)]
    p, q = integrate_cells("x", narrow, np.linspace(-1, 2, 3001))
    assert np.isfinite(p).all()
    assert np.isfinite(q).all()
    with np.errstate(divide="ignore"):
        flat = [lambda x, at=at: np.log(((x >= at) & (x <= at + 1)).astype(float)) for at in (0, 1)]
        p, q = integrate_cells("x", flat, np.linspace(-1, 3, 401))
    assert np.isneginf(q).any()


def test_calibration_varies_its_spread():
    declaration = declared()
    row = least_noise(declaration, declaration.values(), epsilon=2, delta=0).releases[0]
    assert row.ratio == pytest.approx(0.5, rel=1e-6)
    quieter = declaration.releases[0].with_std(Fraction(1, 2))
    assert quieter.cost(AddRemoveOne()).pure.number({"epsilon": Fraction(1)}) == 2


@pytest.mark.parametrize("of", [LAPLACE, RESPONSE])
def test_audits_run_its_sampler(of):
    honest = audit_releases(small.request(declared(of=of), trials=50_000, confidence=SURE))
    assert honest.verdict == "consistent"
    assert 0.85 < honest.epsilon_lower <= 1
    half = {**of, "sampler": lambda rng, data, size, scale: of["sampler"](rng, data, size, scale / 2)}
    broken = audit_releases(small.request(declared(of=half), trials=50_000, confidence=SURE))
    assert broken.verdict == "violation"


def test_it_composes_with_noise_of_ours():
    one = OwnMechanism("own", **LAPLACE)
    visits = Release("visits", VisitCounts(H, S, A), own.OwnNoise(scale=1 / epsilon))
    sizes = tuple(Parameter(name=n, default=1 + (n != "H"), kind="count", meaning=n) for n in "HSA")
    declaration = Declaration(
        name="both", title="", source="", relation=AddRemoveOne("user"), releases=(visits,), procedures=(one,),
        claim=Claim(PureDP(2 * epsilon), source="here"),
        parameters=(Parameter(name="epsilon", default=1, kind="positive", meaning="ε"), *sizes),
    )  # fmt: skip
    assert account(declaration).at(declaration.values()).pure == 2
    found = verify(declaration, declaration.values())
    assert (found.verdict, len(found.given)) == ("holds", 2)


class TooDear(own.OwnNoise):
    """Noise that says it costs less than it does."""

    __slots__ = ()

    def pure(self, sensitivity):
        return (sensitivity.l1 * Fraction(9, 10) / self.scale).simplified()


class Squared(own.OwnNoise):
    """Noise that says of many cells what holds of one."""

    __slots__ = ()

    def zcdp(self, sensitivity):
        return (sensitivity.linf / self.scale) ** 2 / 4


@pytest.mark.parametrize("kind", [TooDear, Squared])
def test_a_price_of_additive_noise_of_ones_own_is_tried(kind):
    release = Release("visits", VisitCounts(H, S, A), kind(scale=1 / epsilon))
    declaration = small.declared(PureDP(10 * epsilon), (release,), small.EPSILON, small.ONE_USER)
    with pytest.raises(DeclarationError, match=r"cells? moved by 1 each"):
        verify(declaration, declaration.values())


@pytest.mark.parametrize("of", [LAPLACE, RESPONSE, {**LAPLACE, "edges": None}])
@pytest.mark.parametrize("seed", [lambda data: 1, int])
def test_noise_that_comes_from_another_generator_than_the_given_one_is_refused(of, seed):
    """Each call has its own law, and the noise of two calls is the same: published twice, it is subtracted."""

    def frozen(rng, data, size, scale):
        return of["sampler"](np.random.default_rng(seed(data)), data, size, scale)

    with pytest.raises(DeclarationError, match=r"the same outputs from two generators, on .*draw all noise from `rng`"):
        judged(of=of, sampler=frozen)


def test_a_law_that_hardly_ever_draws_anything_else_is_no_frozen_one():
    certain = {**RESPONSE, "arguments": {"scale": Fraction(1, 40)}, "price": lambda scale: PureDP(1 / scale)}
    assert judged(PureDP(epsilon * 40), of=certain).verdict == "holds"


def test_a_sampler_that_is_right_on_the_worst_pairs_alone_is_refused():
    """Noise that depends on the exact number of users: the pairs that differ most may have another one."""

    def log_density(outputs, data, scale):
        return log_noisy(outputs, float(sum(data)), scale)

    def shrinks(rng, data, size, scale):
        return noisy(rng, float(sum(data)), size, scale / (3 if 4 < len(data) < 20 else 1))

    def span_of_sums(scale):
        return np.union1d(np.linspace(-40 * scale, 100 + 40 * scale, 4001), np.arange(101))

    counted = {**LAPLACE, "log_density": log_density, "neighbours": None, "records": lambda rng, scale: 1.0,
               "edges": span_of_sums}  # fmt: skip
    with pytest.raises(DeclarationError, match=r"not have the density .* on \(1\.0, 1\.0, 1\.0"):
        judged(of=counted, sampler=shrinks)


def say(*what):
    sys.stdout.write(f"{what}\n")


def say_with(how, draw=answered):
    """A sampler that says something of one run, its data and output at hand."""

    def sampler(rng, data, size, scale):
        drawn = draw(rng, data, size, scale)
        how(rng, data, drawn)
        return drawn

    return sampler


SAID = {
    "printed lines": lambda rng, data, drawn: say(data),
    "log records": lambda rng, data, drawn: logging.getLogger("own").debug("%s", data),
    "shown warnings": lambda rng, data, drawn: warnings.warn(f"{data} in all", stacklevel=2),
    "written files": lambda rng, data, drawn: Path("total.txt").write_text(str(data), encoding="utf-8"),
}


def hear(how, of=RESPONSE):
    declaration = declared(of=of, sampler=say_with(how, of["sampler"]))
    return hear_samplers(declaration, {"epsilon": Fraction(1)}, seed=0)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("place", SAID)
def test_data_that_a_sampler_tells_beside_its_output_are_found(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = hear(SAID[place])
    assert found.places == (place,)
    assert "in D the data is" in found.words


def test_functions_of_the_output_and_public_facts_are_no_accusation(capsys):
    assert hear(lambda rng, data, drawn: say("two outputs")) is None
    assert hear(lambda rng, data, drawn: say(drawn)) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "how",
    [
        lambda rng, data, drawn: say(rng.random()),  # random, and of the data only for who looks closely
        lambda rng, data, drawn: say(rng.random() < 0.9 - data / 2),
        lambda rng, data, drawn: say(time.perf_counter()),
    ],
)
def test_what_does_not_follow_from_the_output_is_undecided(how):
    found = hear(how)
    assert (found.places, found.words) == (("printed lines",), "")
    assert hear(how, of=LAPLACE).words == ""


def test_of_outputs_that_never_come_again_nothing_is_certain():
    assert hear(lambda rng, data, drawn: say("a real number"), of=LAPLACE) is None
    assert hear(SAID["printed lines"], of=LAPLACE).places == ("printed lines",)


def test_an_audit_of_the_releases_says_what_a_sampler_tells():
    for how, verdict in ((SAID["log records"], "violation"), (lambda *_: say(time.perf_counter()), "undecided")):
        declaration = declared(of=RESPONSE, sampler=say_with(how))
        found = audit_releases(small.request(declaration, trials=2000, confidence=SURE))
        assert found.verdict == verdict
        told = found.witness if verdict == "violation" else found.evidence["doubt"]
        assert "the side output of own" in told
