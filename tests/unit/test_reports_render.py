"""Pages and terminal text of a full, a failing and an empty report; tolerance; nothing foreign gets in."""

from __future__ import annotations

import copy
import itertools
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from privcheck.errors import ParameterError
from privcheck.reports import html, read_report, text
from privcheck.reports.summary import notices
from privcheck.reports.values import Gap, VerdictBrief
from small_reports import as_written, audited, ran, report, whole

MINIMAL = {"privcheck": {"version": "0.1.0", "schema": 1}}
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>{{ 7*7 }}$\\alpha$\x1b[31m&amp;"
VOID = {"meta", "img", "br", "wbr", "link", "hr", "input"}


def render_html(data):
    """The page of a report, or of its JSON."""
    return html.render_html(read_report(data) if isinstance(data, dict) else data)


def render_text(data):
    """The text of a report, or of its JSON."""
    return text.render_text(read_report(data) if isinstance(data, dict) else data)


class Outline(HTMLParser):
    """Checks nesting, and collects tags, ids, attributes and text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.text = [], Counter(), Counter(), [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids.update(value for name, value in attrs if name == "id")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("name", ["holds", "fails"])
def test_a_page_is_well_formed_and_needs_nothing_from_outside(name):
    page = render_html(as_written(name))
    outline = Outline(page)
    assert outline.open == []
    assert not [key for key, count in outline.ids.items() if count > 1]
    assert not outline.tags.keys() & {"script", "link", "iframe", "object", "embed", "img", "base", "form"}
    assert "http:" not in page
    assert "https:" not in page
    assert "url(" not in page.replace("url(#", "")
    assert "@import" not in page
    for _, key, value in outline.attributes:
        assert not key.startswith("on")
        if key in {"href", "src", "xlink:href"}:
            assert value.startswith("#")
        if key in {"aria-labelledby", "href"}:
            assert {part.removeprefix("#") for part in value.split()} <= outline.ids.keys()


def test_headings_do_not_skip_levels():
    levels = [int(level) for level in re.findall(r"<h([1-6])", render_html(as_written("holds")))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_drawing_has_a_title_and_a_description():
    outline = Outline(render_html(as_written("holds")))
    drawings = [value for tag, key, value in outline.attributes if tag == "svg" and key == "aria-labelledby"]
    assert len(drawings) == outline.tags["svg"] == 4  # two plots in two widths
    assert outline.tags["title"] == 1 + 4
    assert outline.tags["desc"] == 4


def test_the_verdict_comes_first():
    page = render_html(as_written("holds"))
    text = " ".join(Outline(page).text)
    assert page.index("Holds, proved</h2>") < page.index("Budget</h2>") < page.index("Derivation</h2>")
    for expected in (
        "Claimed:", "ρ-zCDP (Theorem 3.4)", "exactly 1", "ε ≤ 6.573", "at δ = 10⁻⁵", "ε ≥ 6.519",
        "0.7214 ± 0.0061", "without noise 0.7583", "Simulated noise: not for release", "31.2 %",
        "Learned mostly from noise",
        "Bun & Steinke 2016, Proposition 1.6", "privcheck check dp-apvi --data icu-sepsis", "icu-sepsis", "2.0.1",
        "5f0c1f3a", "std = 6.325", "clinicians", "consistent",
    ):  # fmt: skip
        assert expected in text, expected
    assert "<mfrac>" in page
    assert "Fails" not in page


def test_a_failing_report():
    page = render_html(as_written("fails"))
    text = " ".join(Outline(page).text)
    for expected in (
        "Fails", "stated-sensitivity-refuted", "critical", "Joint differential privacy, which is deduced from it",
        "Audit: violation",
        "No noise was drawn", "Witness", "23 (21 times)", "standard deviation by 1.41421",
    ):  # fmt: skip
        assert expected in text, expected
    assert "Holds" not in text
    assert "Simulated noise" not in text


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        ({"epsilon_lower": 7.0}, "The two bounds contradict each other"),
        ({"verdict": "violation"}, "The theorem holds, the running code breaks it"),
        ({"evidence": {"curve": {"epsilon": [1.0, 2.0], "delta_lower": [0.9, 0.001]}}}, "The two curves contradict"),
    ],
)
def test_contradictions_are_said(change, notice):
    data = as_written("holds")
    assert notice not in render_html(data)
    data["audit"] |= {"views": None} | change
    assert notice in render_html(data)
    assert notice.split()[2] in render_text(data).casefold()


def test_a_violation_at_another_instance_is_said_to_be_there_and_shown_with_its_pair():
    data = as_written("holds")
    told = {"audited_at": "H = 1 (asked: H = 5)", "meaning": "a message 4 can only be the one user's"}
    data["audit"] |= {"views": None, "verdict": "violation", "witness": "in D the user has …", "evidence": told}
    text = " ".join(render_text(data).split())
    assert "found a violation, at H = 1 (asked: H = 5); at the parameters above the claim was found to hold" in text
    assert text.startswith("HOLDS, PROVED · dp-apvi")
    assert "releases: a message 4 can only be the one user's. The pair: in D the user has …." in text
    for part in ("verify", "verdict"):
        if data.get(part):
            data[part]["verdict"] = "undecided"
    text = " ".join(render_text(data).split())
    assert text.startswith("UNDECIDED · dp-apvi")
    assert "found a violation, at H = 1 (asked: H = 5)." in text
    data["audit"]["verdict"] = "consistent"
    assert "The pair:" not in render_text(data)


def test_an_audit_of_other_parameters_says_so_in_its_first_line():
    at = "H = 1 (asked: H = 6)"
    told = {"violation_at": at, "violation_meaning": "a message 4 can only be the one user's"}
    for verdict, evidence, first in (
        ("consistent", told, f"CONSISTENT; VIOLATION AT {at.upper()}"),
        ("undecided", {**told, "audited_at": at}, f"NO VERDICT; VIOLATION AT {at.upper()}"),
        ("violation", {"audited_at": at}, f"VIOLATION AT {at.upper()}"),
        ("consistent", {"audited_at": at}, f"CONSISTENT AT {at.upper()}"),
        ("consistent", {}, "CONSISTENT"),
    ):
        one = report(audited(epsilon_lower=0.1, verdict=verdict, evidence=evidence), algorithm="a")
        assert render_text(one).splitlines()[0].startswith(f"{first} · a")
        if "violation_at" in evidence:
            assert "Audit: violation at other parameters" in render_html(one)


def test_so_few_runs_that_nothing_could_be_refuted_have_said_nothing():
    said = render_text(report(audited(trials=1, epsilon_lower=0.0, verdict="undecided", evidence={})))
    assert said.startswith("NO VERDICT")
    assert "the audit is inconclusive" in said
    assert "consistent" not in said.lower()


@pytest.mark.parametrize("kind", [None, "", "HOLDS", "passed", "undecided", 1])
def test_only_holds_is_shown_as_holding(kind):
    data, sample = as_written("holds"), whole("holds")
    data["verdict"]["verdict"] = kind
    if kind != "undecided":
        with pytest.raises(ParameterError, match=r"report\.verdict\.verdict: expected one of holds, fails, undecided"):
            read_report(data)
    other = replace(sample, verdict=VerdictBrief(verdict=kind, method="proved", sentence=""), verify=None)
    page = render_html(other)  # whatever Python puts there
    assert '<section class="verdict open"' in page
    assert "Holds" not in page
    assert not render_text(other).startswith("HOLDS")


def test_an_empty_report_says_that_there_is_no_verdict():
    page = render_html(MINIMAL)
    assert "No verdict</h2>" in page
    assert Outline(page).open == []
    assert render_text(MINIMAL) == "NO VERDICT · unnamed\n"


def _leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:1]):
            yield from _leaves(item, (*path, index))
    else:
        yield path


def _with(report, path, value):
    changed = copy.deepcopy(report)
    here = changed
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return changed


def _no_plots(monkeypatch):
    monkeypatch.setattr("privcheck.reports.html.privacy_plot", lambda _: None)
    monkeypatch.setattr("privcheck.reports.html.value_plot", lambda _: None)


def _refusal(data):
    try:
        read_report(data)
    except ParameterError as error:
        return str(error)
    return ""


def test_hostile_strings_are_text_wherever_they_stand():
    data, refused = as_written("holds"), []
    for path in _leaves(data):
        if path[0] != "privcheck":
            changed = _with(data, path, HOSTILE)
            if said := _refusal(changed):  # a number, or one of a few names
                assert f".{path[-1]}" in said or f"[{path[-1]}]" in said
                refused.append(path)
            else:
                data = changed
    assert ("title",) not in refused
    data["run"]["value"]["references"] = {HOSTILE: 0.25}
    data[HOSTILE] = data["options"][HOSTILE] = HOSTILE
    outline = Outline(render_html(data))
    assert outline.open == []
    assert not outline.tags.keys() & {"script", "img"}
    assert not [key for _, key, _ in outline.attributes if key.startswith("on")]
    shown = "".join(outline.text)
    assert "<script>alert('x')</script>" in shown
    assert "{{ 7*7 }}" in shown or "{{ 7·7 }}" in shown
    assert "\x1b" not in shown
    assert "\x1b" not in render_text(data)


ODD = (None, "", "inf", "text", True, -1, 1e308, 5e-324, [], {}, [None, 1], {"a": {"b": []}})


@pytest.mark.parametrize("which", range(len(ODD)))
def test_any_field_may_be_something_else(which, monkeypatch):
    _no_plots(monkeypatch)
    data, odd, shown = as_written("fails"), ODD[which], 0
    for index, path in enumerate(_leaves(data)):
        if path[0] != "privcheck" and index % 3 == which % 3:  # each field meets four of the twelve
            changed = _with(data, path, odd)
            if said := _refusal(changed):  # which names the field
                assert f".{path[-1]}" in said or f"[{path[-1]}]" in said
                continue
            assert render_html(changed).endswith("</html>")
            assert render_text(changed).endswith("\n")
            shown += 1
    assert shown


def test_nan_is_refused():
    data = as_written("holds")
    data["budget"]["guarantee"]["epsilon"] = float("nan")
    for render in (render_html, render_text):
        with pytest.raises(ParameterError, match=r"report\.budget\.guarantee\.epsilon is NaN"):
            render(data)


def test_the_same_report_gives_the_same_bytes():
    data = as_written("holds")
    assert render_html(data) == render_html(copy.deepcopy(data))
    other = _with(data, ("budget", "guarantee", "epsilon"), 6.6)
    assert render_html(other) != render_html(data)


def test_text_of_a_full_report():
    text = render_text(as_written("holds"))
    lines = text.splitlines()
    assert lines[0] == "HOLDS, PROVED · dp-apvi: ρ-zCDP (Theorem 3.4)"
    assert "Cost over claim: exactly 1." in lines[1]
    assert any(
        line.split() == ["Loss", "at", "most", "ε", "≤", "6.573", "at", "δ", "=", "10⁻⁵,", "accountant"]
        for line in lines
    )
    assert "! Simulated noise: not for release." in text
    assert max(map(len, lines)) <= 100
    assert [line for line in lines if line and not line.startswith(" ")][1:] == ["budget", "audit", "learned"]


def test_text_of_a_failing_report():
    text = render_text(as_written("fails"))
    assert text.startswith("FAILS · dp-apvi")
    assert "critical stated-sensitivity-refuted visits, transitions: stated ℓ₂ sensitivity √H is too small" in text


@pytest.mark.parametrize(
    ("mean", "twin", "share", "told"),
    [(0.70, 0.69, 0.85, True), (0.70, 0.70, 0.85, True), (0.70, 0.75, 0.85, False), (0.78, 0.77, 0.2, False)],
)
def test_a_gap_that_is_there_without_noise_is_not_put_down_to_privacy(mean, twin, share, told):
    run = replace(ran(mean=mean, baseline=twin, optimal=0.8), gap=Gap(mean=0.1, uniform=0.12, share_of_uniform=share))
    titles = [notice.title for notice in notices(report(run=run))]
    assert ("Privacy is not what limits this policy" in titles) == told
