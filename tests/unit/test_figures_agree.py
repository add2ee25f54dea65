"""One quantity is written alike wherever it stands on a page: in tables, tiles, captions, and ready-made sentences."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from privcheck.accounting import claim_epsilon
from privcheck.commands.declarations import calibrate_noise, price_releases, verify_claim
from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.reports import html, text, wording
from privcheck.reports.values import About, Report, VerdictBrief, document
from privcheck.terms.guarantees import PureDP, claimed_delta
from small_reports import whole

NAMES = (
    "adap-ucb", "calibrated-ucb-vi", "dp-apvi", "dp-apvi-laplace", "dp-ftrl", "dp-vapvi", "ldp-linear-bandit",
    "luyo-lsvi-ucb", "matrix-factorisation", "private-ucb-vi-central", "sparse-vector-3",
)  # fmt: skip
RATIOS = {"upper_ratio", "lower_ratio", "ratio"}  # of two bounds, each rounded its way; a cost may be the same number
ESTIMATES = {"std", "published_std"}  # written to the nearest, and bounds outward, also where the two are one number


@pytest.fixture
def written(monkeypatch):
    """Every number that is written, with its text."""
    calls, original = [], wording._number

    def spy(number, digits, rounding):
        calls.append((abs(number), original(number, digits, rounding).lstrip("−")))
        return original(number, digits, rounding)

    monkeypatch.setattr(wording, "_number", spy)
    return calls


def leaves(value, name=""):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, name)
    elif isinstance(value, float):
        yield name, value


def near(one, other):
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))


def disagreements(report, calls):
    """The texts of one number, where there are several, and numbers in sentences whose text elsewhere is another."""
    calls.clear()
    page = html.render_html(report)
    text.render_text(report)
    fields = list(leaves(document(report)))
    long = sorted({(v, t) for v, t in calls if math.isfinite(v) and len(repr(v).replace(".", "").strip("0")) > 4})
    found = []
    for (v, t), (w, u) in itertools.pairwise(long):
        several = {name for name, value in fields if near(value, v)}
        never_one = "1" in (t, u)  # a ratio is "1" only where it is; the same number as a cost is written so
        if (
            near(v, w)
            and t != u
            and not never_one
            and not any(several & kind and several - kind for kind in (ESTIMATES, RATIOS))
        ):
            found.append((t, u))
    texts = {t for _, t in long}
    if report.verify is not None:  # "at most 0.8821 of the claim, and the worst known pair loses 0.882": two bounds
        texts.add(wording.ratio(report.verify.lower_ratio, rounding="down"))
    shown = re.sub(r"<svg.*?</svg>|<style.*?</style>|<math.*?</math>|<[^>]+>", " ", page, flags=re.DOTALL)
    for token in set(re.findall(r"(?<![\w.])\d+\.\d{3,}(?![\w.])", shown)) - texts:
        unit = 10.0 ** -len(token.partition(".")[2])
        found += [(token, t) for v, t in long if abs(float(token) - v) <= 1.01 * unit][:1]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_registered_algorithms(name, written):
    setting = resolve_setting(name, {})
    claim = setting.declared.claim.guarantee
    claimed = None if isinstance(claim, PureDP) else claimed_delta(claim)
    delta = 1e-5 if claimed is None else claimed.number(setting.values, rounding="down")
    verdict = verify_claim(setting)
    try:
        least = calibrate_noise(setting, epsilon=claim_epsilon(claim, setting.values, delta), delta=delta)
    except ParameterError:
        least = None
    brief = VerdictBrief(verdict=verdict.verdict, method=verdict.method, sentence=verdict.sentence)
    budget = price_releases(setting, delta)
    made = Report(privcheck=About(), algorithm=name, verify=verdict, verdict=brief, budget=budget, calibrate=least)
    assert disagreements(made, written) == []


@pytest.mark.parametrize("name", ["holds", "fails"])
def test_pages_with_audits_and_runs(name, written):
    assert disagreements(whole(name), written) == []


def test_the_test_sees_two_texts_of_one_number(written, monkeypatch):
    monkeypatch.setattr("privcheck.reports.wording.agree", lambda _, said: said)
    monkeypatch.setattr("privcheck.reports.summary.agree", lambda _, said: said)
    setting = resolve_setting("luyo-lsvi-ucb", {})
    verdict = verify_claim(setting)
    brief = VerdictBrief(
        verdict=verdict.verdict, method=verdict.method, sentence=f"It costs {verdict.upper_ratio:.6g} of it"
    )
    made = Report(privcheck=About(), algorithm="luyo-lsvi-ucb", verify=verdict, verdict=brief)
    assert disagreements(made, written) != []
