"""No registered algorithm with a part that its author states is called proved: not in text, JSON, page or table."""

import html

import pytest

from privcheck.cli.printing import describe_verdict, describe_verdicts
from privcheck.commands.checks import begin_report
from privcheck.commands.declarations import calibrate_noise, price_releases, show, verify_claim
from privcheck.commands.finding_pages import say_verdict
from privcheck.commands.settings import resolve_setting
from privcheck.reports.files import as_report
from privcheck.reports.html import render_html
from privcheck.reports.values import AllVerified
from privcheck.support.encoding import to_json
from privcheck.terms.unit import Unit
from structures import over_registry

STATED = ("erm-output-perturbation", "exp3", "private-k-means")


@pytest.mark.slow
@pytest.mark.parametrize("name", over_registry("declared"))
def test_stated_is_never_proved_and_every_verdict_says_whom_it_protects(name):
    setting = resolve_setting(name, {})
    result = verify_claim(setting)
    document = to_json(result)
    stated = [one for one in result.rests_on if one.kind == "stated by the author"]
    assert bool(stated) == bool(result.given) or result.verdict != "holds"
    assert name not in STATED or stated
    faces = [
        describe_verdict(result).splitlines()[0],
        result.sentence,
        say_verdict(result),
        document["method"],
        describe_verdicts(AllVerified(results=(result,))).splitlines()[1].split(" -DP ")[0].split(result.claim)[0],
        html.unescape(render_html(as_report(result))).split("<h2", 2)[1].split("</h2>")[0],
    ]
    if stated:
        assert not any("proved" in face.replace("unproved", "").lower() for face in faces), faces
        if result.verdict == "holds":
            assert document["method"] == "checked"
            assert document["given"]
            assert say_verdict(result).startswith("holds, given ")
    kinds = {"derived", "stated by the author", "assumed about data", "public fact", "modelling"}
    assert {one["kind"] for one in document["rests_on"]} <= kinds
    unit = setting.declared.unit(setting.values)
    stating = (result, show(setting), price_releases(setting, 1e-5), begin_report(setting), as_report(result))
    for one in map(to_json, stating):
        assert Unit.of(one["unit"]) == unit
    assert any(one["kind"] == "modelling" and unit.words in one["what"] for one in document["rests_on"])


def test_the_least_noise_says_for_whom_it_is_enough():
    setting = resolve_setting("dp-apvi", {})
    assert Unit.of(calibrate_noise(setting, epsilon=1, delta=1e-5).unit) == setting.declared.unit(setting.values)
