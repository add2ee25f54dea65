"""The plans of the linear systems: what their releases show, at which sizes, and the words that results need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.reports.summary import find_crossing, privacy
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck_audits.policy.post_processing import audit_policies
from privcheck_audits.releases.view import visible
from small_reports import audited, budget, report

SURE = 1 - 1e-9
LEAKING = ["dp-lsvi-ucb-pp-as-printed", "published-lsvi-ucb-pp"]
NAMES = [*LEAKING, "dp-lsvi-ucb-pp", "luyo-lsvi-ucb", "ngo-lsvi-ucb"]


def ask(name, *, trials=1_000, confidence=SURE, view="policy", method="auto", seed=3, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return AuditRequest(
        setting=setting.setting,
        view=view,
        delta=1e-5,
        trials=trials,
        confidence=confidence,
        seed=seed,
        method=method,
    )


def run_plan(request):
    return registry.audit_plan(request.declaration.name).audit(request)


def named(request):
    return registry.algorithm(request.declaration.name)


@pytest.mark.parametrize("name", NAMES)
def test_the_releases_are_audited_too_and_said_what_it_means(name):
    found = run_plan(ask(name, view="releases", trials=20_000))
    assert (found.verdict == "violation") == (name in LEAKING)
    assert found.reachable > 0
    words = found.evidence["meaning"]
    assert words.startswith("the noisy statistics") or "as far as this test sees" in words
    joint = resolve_setting(name, {}).declared.claim.joint is not None
    assert ("is then unproved" in words) == (name in LEAKING and joint)


def test_releases_that_show_nothing_are_audited_where_they_would():
    request = ask("dp-lsvi-ucb-pp", view="releases", trials=100_000)
    seen = visible(request, named(request))
    assert {name: seen.values[name] for name in ("H", "d", "K")} == {
        name: named(request).instance.sizes[name] for name in ("H", "d", "K")
    }
    assert seen.values["rho"] == request.values["rho"]
    found = run_plan(request)
    assert found.epsilon_lower > 3 > 100 * 0.009
    assert found.evidence["audited_at"] == "H = 1 (asked: 20), K = 4 (asked: 1000), d = 2 (asked: 10)"
    for other in (
        ask("dp-lsvi-ucb-pp", view="releases", H=1),
        ask("private-linopt-vi", view="releases", trials=100_000, confidence=0.99),
        ask("dp-vapvi", view="releases", method="coin-flip"),
        ask("published-lsvi-ucb-pp", view="releases"),
        ask("dp-lsvi-ucb-pp"),
    ):
        assert visible(other, named(other)) is other


def test_a_report_does_not_compare_it_with_the_accountant_at_other_sizes():
    curve = {"epsilon": [0.0, 1.0], "delta_lower": [0.5, 0.4]}
    evidence = {"curve": curve, "audited_at": "H = 1 (asked: 20)"}
    accounted = budget([0.0, 1.0], [0.1, 0.01])
    for told, seen in ((evidence, False), ({"curve": curve}, True)):
        found = privacy(report(audited(epsilon_lower=3.6, delta=1e-5, evidence=told), budget=accounted))
        assert (found.lower is not None) == (find_crossing(found) is not None) == seen
        assert (found.epsilon_lower is not None) == seen
    alone = privacy(report(audited(epsilon_lower=3.6, delta=1e-5, evidence=evidence)))
    assert alone.lower is not None  # a report without an accountant compares it with its own


def test_the_page_of_plans_names_every_plan():
    page = (Path(__file__).parents[2] / "docs/audit-plans.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z0-9-]+)`", page))
    declared = [name for name in registry.names("algorithms") if registry.algorithm(name).declare]
    with_policies = [
        name for name in declared if not registry.audit_plan(name).lacks(resolve_setting(name, {}).declared, "policy")
    ]
    assert len(with_policies) > 15
    for name in with_policies:
        stem, _, tail = name.rpartition("-")
        assert name in named or (f"-{tail}" in named and f"{stem}-central" in named), name


@pytest.mark.parametrize("view", ["lockstep", "noise"])
@pytest.mark.parametrize("name", ["dp-vapvi-unsplit", "private-linopt-vi", "ngo-lsvi-ucb"])
def test_the_views_that_look_inside_are_those_of_any_declaration(name, view):
    found = run_plan(ask(name, view=view, trials=4, confidence=0.99, H=2, d=2))
    assert found.verdict == "consistent"
    assert found.view == view


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("luyo-lsvi-ucb", {"gram": "cumulative"}), ("luyo-lsvi-ucb", {"centred": "on"}),
        ("ngo-lsvi-ucb", {"centred": "on"}), ("dp-lsvi-ucb-pp", {"claim": "approx"}),
    ],
    ids=str,
)  # fmt: skip
def test_other_readings_are_audited_too(name, given):
    found = registry.audit_plan(name).audit(ask(name, trials=200, **given))
    assert found.verdict == "consistent"


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(ParameterError, match="at least 100 trials"):
        run_plan(ask("dp-vapvi", trials=99))
    with pytest.raises(ParameterError, match="no policy view"):
        audit_policies(ask("sdp-pe"), registry.algorithm("sdp-pe"))
