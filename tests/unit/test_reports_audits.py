"""Pages and words of audits alone: the verdict and what it does not mean, the pictures, the pair side by side."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from privcheck.commands.checks import exit_code
from privcheck.errors import ParameterError
from privcheck.reports import read_report, render_text
from privcheck.reports.audit_view import bars_plot, history_plot, side_by_side, trade_off_plot
from privcheck.reports.html import render_html
from privcheck.reports.summary import verdict
from privcheck.reports.values import VerdictBrief, from_json, to_json
from privcheck.runtime.audit_pictures import ShownPair
from small_reports import audited, report

GRID = [0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0]
PURE = [max(0.0, 1 - 2.718281828 * x, (1 - x) / 2.718281828) for x in GRID]


def trade_off(shift=0.0, **more):
    band = [max(0.0, 1 - x - shift) for x in GRID]
    band[0], band[-1] = 1.0, 0.0
    return {
        "runs": [500, 501], "confidence": 0.99, "type_one": [0.1, 0.5], "type_two": [0.8, 0.4], "grid": GRID,
        "at_least": [max(0.0, y - 0.05) for y in band], "at_most": band, "claim": PURE, "claim_words": "ε-DP",
        "accountant": PURE, **more,
    }  # fmt: skip


HISTORY = {
    "trials": [100, 500, 1000], "epsilon_lower": [0.2, 0.7, 0.9], "anytime": False,
    "reachable_trials": [50, 1000], "reachable": [0.1, 0.95],
}  # fmt: skip
PAIR = {
    "title": "The user in whom D and D′ differ, step by step.", "row": "step",
    "columns": ["state", "action", "reward"], "labels": ["1–19", "20", "after"],
    "first": [["0", "0", "1"], ["0", "1", "1"], ["0", "", ""]],
    "second": [["3", "0", "1"], ["0", "1", "1"], ["2", "", ""]], "note": "",
}  # fmt: skip
BARS = {
    "quantity": "distance moved / sensitivity charged", "one_sided": True,
    "bars": [
        {"name": "visits, ℓ₁", "ratio": 1.0, "violated": False, "words": "40 of 40"},
        {"name": "transitions, ℓ₂", "ratio": 1.25, "violated": True, "words": "5 of 4"},
        {"name": "slices", "ratio": None, "violated": True, "words": "the two runs did not release the same slices"},
    ],
}  # fmt: skip


def parse(markup):
    return ET.fromstring(markup)  # noqa: S314 - our own output


def texts(svg):
    return [element.text for element in parse(svg).iter("text")]


def test_an_audit_that_refutes_nothing_is_consistent_and_never_a_pass():
    found = verdict(report(audited()))
    assert (found.headline, found.tone, found.claim) == ("Consistent", "plain", "ε-DP (section 3)")
    assert "1000 runs" in found.sentence
    assert "ε = 0.9;" in found.sentence
    assert "the claim allows ε = 1" in found.sentence
    assert "0.95" in found.sentence
    assert "does not show that the mechanism is private" in found.meaning
    page, text = render_html(report(audited())), render_text(report(audited()))
    assert "No verdict" not in page
    assert text.startswith("CONSISTENT · dp-apvi-laplace: ε-DP (section 3)")
    assert "does not show" in " ".join(text.split())


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        (1.4, 1.5, "more than the claim allows (ε = 1). The code may well match its declaration"),
        (1.6, 1.5, "and than the accountant charges (ε = 1.5). The running code differs from its declaration"),
        (1.4, None, "The accountant has no finite bound"),
    ],
)
def test_a_violation_says_what_is_exceeded(lower, upper, said):
    one = audited(epsilon_lower=lower, epsilon_upper=upper, verdict="violation", evidence={"refuted": "claim"})
    found = verdict(report(one))
    assert (found.headline, found.tone) == ("Violation", "bad")
    assert said in found.sentence
    assert "at most 1 %" in found.meaning
    assert "joint" not in found.meaning
    joint = verdict(report(replace(one, claim="joint ε-DP (Corollary 5.2)")))
    assert "joint DP is then unproved, but not refuted" in joint.meaning  # a proof may fail and its claim be true


def test_of_several_views_a_violation_counts_and_the_others_are_named():
    evidence = {"release": "visits", "norm": "l2", "moved": 5.0, "charged": 4.0}
    bad = audited("lockstep", epsilon_lower=None, reachable=None, verdict="violation", evidence=evidence)
    found = verdict(report(audited(), bad))
    assert found.headline == "Violation"
    assert "“lockstep”: One user moved “visits” by 5 in ℓ₂, above the charged sensitivity of 4" in found.sentence
    assert "The other views refuted nothing: releases." in found.sentence
    assert found.meaning.startswith("This is exact")
    good = verdict(report(audited(), audited("noise", evidence={"tests": 12})))
    assert good.sentence == "None of 2 audits refuted anything: releases, noise."


def test_a_lockstep_violation_need_not_be_a_distance():
    kept = {**BARS, "bars": BARS["bars"][:1]}
    evidence = {"release": "visits", "norm": "l1", "moved": 4.0, "charged": 4.0, "policies": 8, "departures": 3}
    departed = audited("lockstep", epsilon_lower=None, verdict="violation", evidence=evidence, bars=kept)
    assert (
        "changed the agent's policy, or other figures that it returned, 3 times of 8"
        in verdict(report(departed)).sentence
    )
    missing = {"release": "visits", "norm": "l1", "moved": "slices differ", "charged": 4.0}
    slices = audited("lockstep", epsilon_lower=None, verdict="violation", evidence=missing, bars=BARS)
    assert "did not release the same slices of “visits”" in verdict(report(slices)).sentence


def test_a_loss_without_bound_says_so():
    leak = audited(
        epsilon_lower=math.inf, epsilon_upper=None, verdict="violation", delta=1e-5, evidence={"refuted": "claim"}
    )
    assert "no finite ε holds at δ = 10⁻⁵: the loss is unbounded, more than the claim" in verdict(report(leak)).sentence


def test_that_no_agent_was_run_is_said_where_the_verdict_stands():
    declared, ran = audited(agent_ran=False), audited("lockstep", agent_ran=True, epsilon_lower=None)
    alone = report(declared)
    assert verdict(alone).headline == "Consistent; no agent was run"
    assert verdict(alone).tone == "plain"
    assert verdict(report(audited(agent_ran=False, verdict="violation"))).headline == "Violation; no agent was run"
    assert "No agent was run" in render_html(alone)
    assert render_text(alone).startswith("CONSISTENT; NO AGENT WAS RUN · ")
    judged = report(declared, verdict=VerdictBrief(verdict="holds", method="proved", sentence=""))
    assert "! No agent was run." in render_text(judged)
    both = render_text(report(declared, ran))
    assert "no agent was run" not in both.lower()
    assert [line.split()[:3] for line in both.splitlines()[-2:]] == [
        ["releases", "consistent", "no"], ["lockstep", "consistent", "yes"],
    ]  # fmt: skip
    assert "agent ran" not in render_text(report(audited()))  # an older report does not know


def test_a_check_keeps_its_own_verdict():
    data = report(audited(), verdict=VerdictBrief(verdict="holds", method="proved", sentence=""))
    assert verdict(data).headline == "Holds, proved"
    assert verdict(data).meaning == ""


def test_a_page_shows_all_pictures_once_and_is_whole():
    pictures = {"trade_off": trade_off(), "history": HISTORY, "pair": PAIR, "bars": BARS}
    page = render_html(report(audited(**pictures), audited("policy", **pictures)))
    assert page.count("<figure") == 6
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page == render_html(report(audited(**pictures), audited("policy", **pictures)))
    assert page.count("not jointly with the others") == 6  # caption, and the description of both widths, of two views
    assert page.count(">≠<") == 4


def test_a_band_below_the_claim_is_marked_and_one_above_is_not():
    good = trade_off_plot(audited(trade_off=trade_off()), name="x")
    assert "lies below" not in good.caption
    assert "refuted" not in texts(good.wide)
    bad = trade_off_plot(audited(trade_off=trade_off(0.5)), name="x")
    assert "The whole band lies below the claim" in bad.caption
    assert "refuted" in texts(bad.wide)
    assert "stroke: var(--bad)" in bad.wide
    only = trade_off_plot(audited(trade_off=trade_off(0.5, claim=None)), name="x")
    assert "below the accountant's curve" in only.caption
    assert "claimed: no test below" not in texts(only.wide)


def test_a_crossing_too_small_to_see_is_enlarged():
    slightly = [max(0.0, min(1 - x, y - 0.004)) for x, y in zip(GRID, PURE, strict=True)]
    slightly[0], slightly[-1] = 1.0, 0.0
    small = trade_off_plot(audited(trade_off=trade_off(at_most=slightly, at_least=slightly)), name="x")
    assert "enlarged" in texts(small.wide)
    assert "enlarged" not in texts(trade_off_plot(audited(trade_off=trade_off(0.5)), name="x").wide)


def test_curves_in_the_corner_are_drawn_on_logarithmic_axes():
    steep = [max(0.0, 1 - 1100 * x, (1 - x) / 1100) for x in GRID]
    plot = trade_off_plot(audited(trade_off=trade_off(claim=steep, accountant=steep)), name="x")
    assert "Both axes are logarithmic" in plot.caption
    assert "10⁻²" in texts(plot.wide)


def test_the_history_says_what_each_point_is_worth():
    plot = history_plot(audited(history=HISTORY), name="x")
    assert "valid by itself, not jointly with the others; the last point is the bound of the audit" in plot.caption
    assert {"claimed, ε = 1", "accountant: at most, ε = 1", "the best test"} <= set(texts(plot.wide))
    at_any_time = history_plot(audited(history={**HISTORY, "anytime": True}), name="x")
    assert "valid at any time" in at_any_time.caption
    of_policies = history_plot(audited("policy", history=HISTORY), name="x")
    assert "of all releases" in of_policies.caption


def test_bars_stand_for_what_can_be_compared_worst_first():
    plot = bars_plot(audited("lockstep", bars=BARS), name="x")
    found = [text for text in texts(plot.wide) if "ℓ" in (text or "")]
    assert found == ["transitions, ℓ₂", "visits, ℓ₁"]
    assert "1.25  (5 of 4)" in texts(plot.wide)
    assert "Not drawn: slices, the two runs did not release the same slices." in plot.caption
    assert "var(--bad)" in plot.wide
    many = {**BARS, "bars": [{"name": f"r{k}", "ratio": 1 - k / 100, "violated": False} for k in range(40)]}
    assert "the 24 of 40 furthest from 1" in bars_plot(audited("lockstep", bars=many), name="x").caption


def test_the_pair_side_by_side_marks_what_differs():
    pair = from_json(ShownPair, PAIR)
    table = side_by_side(pair)
    assert table.columns == ("step", "D: state", "D′: state", "both: action", "both: reward", "differs")
    assert [cell.text for cell in table.rows[0]] == ["1–19", "0", "3", "0", "1", "≠"]
    assert [cell.tone for cell in table.rows[0]] == ["plain", "mark", "mark", "plain", "plain", "mark"]
    assert [cell.tone for cell in table.rows[1]] == ["plain"] * 6
    absent = side_by_side(replace(pair, second=None))
    assert {row[4].text for row in absent.rows} == {"absent"}
    assert side_by_side(replace(pair, labels=(), first=(), second=())) is None


WHOLE = {"trade_off": trade_off(), "history": HISTORY, "pair": PAIR, "bars": BARS}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("broken", [3, [], {}, {"trials": [1], "epsilon_lower": "x"}, {"grid": [0, 1]}, {"bars": 3}])
def test_pictures_that_are_none_are_refused_by_name(name, broken):
    data = to_json(report(audited(**WHOLE)))
    assert read_report(data).audit.trade_off is not None
    data["audit"]["views"]["releases"][name] = broken
    with pytest.raises(ParameterError, match=rf"report\.audit\.views\.releases\.{name}"):
        read_report(data)


@pytest.mark.parametrize(
    "change",
    [
        {"trade_off": trade_off(claim=PURE[:-1])},
        {"trade_off": trade_off(at_most=[float("inf")] * len(GRID))},
        {"trade_off": trade_off(grid=[], at_least=[], at_most=[])},
        {"trade_off": trade_off(type_one=[0.1])},
        {"history": {**HISTORY, "epsilon_lower": [0.1]}},
        {"history": {**HISTORY, "trials": [], "epsilon_lower": []}},
        {"history": {**HISTORY, "epsilon_lower": [0.2, 0.7, "inf"]}},
        {"bars": {**BARS, "bars": []}},
        {"bars": {**BARS, "bars": BARS["bars"][2:]}},
        dict.fromkeys(WHOLE),
    ],
)
def test_pictures_that_are_not_there_or_not_whole_are_left_out(change):
    assert "<figure" not in render_html(report(audited(**change)))


def test_an_agent_that_does_not_repeat_leaves_a_check_undecided():
    doubted = audited("lockstep", epsilon_lower=None, verdict="undecided", evidence={"doubt": "it draws unseeded"})
    holds = VerdictBrief(verdict="holds", method="proved", sentence="")
    judged = replace(report(doubted), verify=SimpleNamespace(verdict="holds"), verdict=holds)
    assert exit_code(judged) == 3
    assert exit_code(replace(judged, audit=report(audited("lockstep", epsilon_lower=None)).audit)) == 0
    assert verdict(report(doubted)).headline.startswith("No verdict")
    assert "it draws unseeded" in render_text(report(doubted))


def test_a_run_without_a_price_in_zcdp_leaves_a_check_at_the_declared_bound():
    """As of messages behind a shuffler, whose check of a claim that holds ended with 3."""
    release = SimpleNamespace(law="shuffled bits")
    ledger = SimpleNamespace(as_declared=True, releases=(release,))
    spent = SimpleNamespace(rho=None)
    whole = replace(
        report(audited("lockstep", epsilon_lower=None)),
        verify=SimpleNamespace(verdict="holds"),
        budget=SimpleNamespace(guarantee=SimpleNamespace(epsilon=0.75)),
        run=SimpleNamespace(spent=spent, ledger=ledger),
    )
    assert exit_code(whole) == 0
    for changed in (
        {"budget": SimpleNamespace(guarantee=SimpleNamespace(epsilon=None))},
        {"budget": None},
        {"run": SimpleNamespace(spent=spent, ledger=None)},
        {"run": SimpleNamespace(spent=spent, ledger=SimpleNamespace(as_declared=False, releases=(release,)))},
        {"run": SimpleNamespace(
            spent=spent, ledger=SimpleNamespace(as_declared=True, releases=(SimpleNamespace(law="own"),))
        )},
    ):  # fmt: skip
        assert exit_code(replace(whole, **changed)) == 3, changed
