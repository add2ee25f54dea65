"""Public facts: stated with a reason, a function of earlier outputs, or refused; and each of them in the verdict."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import pytest

from privcheck import Claim, Declaration, Parameter, Release, verify
from privcheck.cli.printing import describe_verdicts
from privcheck.commands.declarations import verify_claim
from privcheck.commands.finding_pages import say_verdict
from privcheck.commands.settings import Chosen
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.procedures import NoisyMax, OnSample, OwnMechanism, SparseVector
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import (
    BallsInBins,
    Batches,
    EveryEpisode,
    Once,
    Poisson,
    ShuffledEpochs,
    Tree,
    WithoutReplacement,
    WithReplacement,
)
from privcheck.declare.statements import from_billboard, from_data, public
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import DeclarationError
from privcheck.reports import render_text
from privcheck.reports.files import as_report
from privcheck.reports.html import render_html
from privcheck.reports.values import AllVerified
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.setting import Setting
from privcheck.support.encoding import to_json
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import epsilon, minimum

EPSILON = Parameter(name="epsilon", default=1, kind="positive", meaning="budget")
TABLE, REPLACED = VisitCounts(1, 2, 2), ReplaceOne()
WHY = "the parity of a user's number"


def released(name="visits", schedule=None, users="", scale=1 / epsilon, **more):
    return Release(name, TABLE, Laplace(scale=scale), schedule=schedule or Once(), users=users, **more)


def declared(*releases, relation=REPLACED, claim=None, **changes):
    fields = {"parameters": (EPSILON,), **changes}
    return Declaration(
        name="own", title="", source="", relation=relation, releases=releases,
        claim=Claim(claim or PureDP(100 * epsilon), source="a test"), **fields,
    )  # fmt: skip


def verified(declaration):
    setting = Setting(declaration=declaration, values=declaration.values())
    algorithm = Algorithm(name="own", title="", source="", declare=lambda _: declaration)
    return verify_claim(Chosen(algorithm=algorithm, setting=setting))


def check_said(declaration, kind, what, where=None):
    """Every face of the verdict says the fact: JSON with its kind, text and page in words."""
    result = verified(declaration)
    found = [one for one in to_json(result)["rests_on"] if one["kind"] == kind and what in one["what"]]
    assert found, [(one.kind, one.what) for one in result.rests_on]
    assert found[0].keys() == {"kind", "basis", "where", "what", "by", "checked_where"}
    assert where is None or found[0]["where"] == where
    text = " ".join(render_text(as_report(result)).split())
    assert kind in text
    assert what in text
    assert what in html.unescape(render_html(as_report(result)))
    return found[0]


def halves(*groups):
    releases = (released("first", users="odd"), released("second", users="even"))
    return declared(*releases, partitions=(groups,))


def test_groups_are_in_the_verdict_with_their_rule():
    assert check_said(halves(public("odd", why=WHY), "even"), "public fact", "in the group 'odd'", "first")["by"] == (
        f"the declaration's author: {WHY}"
    )
    plain = check_said(halves("odd", "even"), "public fact", "in the group 'even'", "second")
    assert plain["by"] == "the declaration, which states no reason"
    assert (
        verify(halves(public("odd", why=WHY), "even"), {}).upper_ratio == verify(halves("odd", "even"), {}).upper_ratio
    )


def test_boundaries_of_batches_are_in_the_verdict():
    by_arm = Batches(size=from_billboard("rewards of one arm", of="visits"))
    assert check_said(declared(released(schedule=by_arm)), "public fact", "rewards of one arm")["by"] == (
        "a function of earlier outputs of visits"
    )
    fixed = Batches(size=public("100 users", why="fixed beforehand"))
    assert "fixed beforehand" in check_said(declared(released(schedule=fixed)), "public fact", "100 users")["by"]
    check_said(declared(released(schedule=Batches(size="100 users"))), "public fact", "the borders of the batches")
    check_said(
        declared(released(schedule=Tree(leaves=8))),
        "public fact",
        "which leaf of the tree, of 8, belongs to which user",
    )
    check_said(declared(released(schedule=EveryEpisode(outputs=8))), "public fact", "order of the users")


SAMPLINGS = (
    (Poisson(rate=public("1/4", why="set by the protocol"), rounds=2), ZeroOut(), "rate = 1/4", "set by the protocol"),
    (WithoutReplacement(users=10, batch=2), ZeroOut(), "users = 10", "states no reason"),
    (ShuffledEpochs(batches=public(5, why="of 100 places")), ZeroOut(), "batches = 5", "of 100 places"),
    (BallsInBins(bins=5), AddRemoveOne(), "bins = 5", "states no reason"),
)


@pytest.mark.parametrize(("schedule", "relation", "what", "why"), SAMPLINGS)
def test_numbers_of_a_sampling_are_in_the_verdict(schedule, relation, what, why):
    one = declared(released(schedule=schedule), relation=relation)
    assert why in check_said(one, "public fact", what, "visits")["by"]
    check_said(one, "modelling", "users are sampled, not trajectories", "visits")
    check_said(one, "modelling", "the samples are drawn independently", "visits")


def test_several_samplings_are_independent_and_named():
    rounds = Poisson(rate="1/4")
    picked = OnSample("winner", procedures=(NoisyMax("inner", noise="gumbel", scale=2, candidates=2),), rate="1/2")
    again = released("b", rounds, fresh=True)
    one = declared(released("a", rounds), again, relation=ZeroOut("user"), procedures=(picked,))
    check_said(one, "modelling", "the samples of a, b, winner are drawn independently", "a, b, winner")
    check_said(one, "public fact", "rate = 1/2 of the sampling", "winner")


def test_users_with_several_trajectories_are_sampled_whole():
    relation = ZeroOut("user", trajectories=3)
    one = declared(released(schedule=Poisson(rate="1/4")), relation=relation)
    check_said(one, "modelling", "each with all of its trajectories")


def test_the_order_of_adaptive_releases_is_in_the_verdict_and_of_a_single_output_is_not():
    several = declared(released("a"), released("b"))
    check_said(several, "modelling", "no interaction begins before the previous one has ended", "a, b")
    asked = SparseVector("answers", threshold_scale=2, query_scale=4, queries=3, positives=1)
    check_said(declared(procedures=(asked,)), "modelling", "no interaction begins", "answers")
    alone = verified(declared(released()))
    assert not any("no interaction" in one.what for one in alone.rests_on)


def test_who_is_protected_is_in_the_verdict_and_in_the_documents():
    one = declared(released(), relation=ReplaceOne("patient", trajectories=2))
    check_said(one, "modelling", "who is protected: replace one patient (up to 2 trajectories each), central model")
    result = verified(one)
    assert result.unit == one.unit({}).to_dict()
    assert result.unit_words == one.unit({}).words
    check_said(one, "public fact", "how many users there are")
    removed = verified(declared(released(), relation=AddRemoveOne()))
    assert not any("how many users there are" in ground.what for ground in removed.rests_on)


DATA = from_data("one over the number of rows")


@pytest.mark.parametrize(
    ("refused", "sound"),
    [
        (lambda: Poisson(rate=DATA), "known beforehand"),
        (lambda: Poisson(rate="1/2", most=3, users=DATA), "known beforehand"),
        (lambda: WithoutReplacement(users=DATA, batch=2), "known beforehand"),
        (lambda: WithReplacement(users=10, draws=DATA), "known beforehand"),
        (lambda: ShuffledEpochs(batches=DATA), "known beforehand"),
        (lambda: BallsInBins(bins=DATA), "known beforehand"),
        (lambda: Tree(leaves=DATA), "known beforehand"),
        (lambda: EveryEpisode(outputs=DATA), "known beforehand"),
        (lambda: Batches(size=DATA), "from_billboard"),
        (lambda: halves(from_data("who is sick"), "even"), "charged to all users"),
    ],
)
def test_what_is_computed_from_data_is_refused_with_what_would_be_sound(refused, sound):
    with pytest.raises(DeclarationError, match="computed from data") as error:
        refused()
    assert sound in str(error.value)


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (lambda: Poisson(rate=from_billboard("1/4", of="visits")), "function of earlier outputs"),
        (lambda: halves(from_billboard("odd", of="second"), "even"), "function of earlier outputs"),
        (lambda: Batches(size=from_billboard("n", of="visits"), sizes=lambda _: (3,)), "noise of a batch depends"),
        (lambda: declared(released(schedule=Batches(size=from_billboard("n", of="other")))), "no such release"),
        (lambda: public("odd", why=""), "not empty"),
        (lambda: from_billboard("odd", of=()), "expected the names of releases"),
        (lambda: halves(3, "even"), "expected"),
    ],
)
def test_facts_that_say_too_little_or_change_the_price_are_refused(refused, why):
    with pytest.raises(DeclarationError, match=why):
        refused()


def test_copies_keep_their_reasons_and_new_numbers_lose_the_old_ones():
    drawn = Poisson(rate=public("1/4", why=WHY), rounds=2)
    assert dict(replace(drawn, rounds=3).facts)["rate"].why == WHY
    assert dict(replace(drawn, rate="1/3").facts)["rate"].why == ""
    assert drawn == Poisson(rate="1/4", rounds=2)
    batches = Batches(size=public("100 users", why=WHY))
    assert replace(batches, sizes=lambda _: (100,)).fact.why == WHY
    assert replace(batches, size="99 users").fact.why == ""


def noisy(rng, data, size, scale):
    return np.where(rng.random(size) < 1 / (1 + np.exp(-1 / scale)), data, 1 - data)


def log_noisy(outputs, data, scale):
    return np.where(outputs == data, -np.log1p(np.exp(-1 / scale)), -np.log1p(np.exp(1 / scale)))


def own(price, **changes):
    mechanism = OwnMechanism(
        "own", arguments={"scale": 1 / epsilon}, spread="scale", sampler=noisy, log_density=log_noisy, price=price,
        relation=REPLACED, neighbours=lambda **_: [(0, 1)], outputs=lambda **_: np.arange(2),
    )  # fmt: skip
    return declared(procedures=(mechanism,), claim=PureDP(epsilon), **changes)


def test_a_stated_price_is_given_and_never_proved():
    declaration = own(lambda scale: PureDP(1 / scale))
    result = verified(declaration)
    assert (result.verdict, result.method, result.given) == ("holds", "checked", ("own",))
    assert say_verdict(result) == "holds, given own"
    assert render_text(as_report(result)).splitlines()[0].startswith("HOLDS, GIVEN OWN")
    assert "Holds, given own" in render_html(as_report(result))
    assert "given own" in describe_verdicts(AllVerified(results=(result,)))
    assert "proved" not in result.sentence
    assert "at 6 other settings" in next(one.by for one in result.rests_on if one.basis == "stated")


def test_a_price_that_is_false_at_another_parameter_is_refuted_there():
    """The mechanism is ε-DP; the price says min(ε, 2): true at the default ε = 1, false from ε = 2 on."""
    false = own(lambda scale: PureDP(minimum(1 / scale, 2)))
    with pytest.raises(DeclarationError, match=r"loses 3 .*its author states 2: .*at epsilon = 3: state a price"):
        verify(false, {})
