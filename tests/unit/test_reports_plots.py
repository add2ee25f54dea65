"""The plots: what is drawn for which data, and that they stay inside the page's rules."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from privcheck.reports.plots import privacy_plot, value_plot
from privcheck.reports.summary import find_crossing, privacy
from privcheck.reports.values import Band, RanOnline, Regret, RunCurves
from small_reports import DATA, audited, budget, ran, report, whole

SAMPLE = DATA / "report_holds.json"


@pytest.fixture
def sample():
    return whole("holds")


def parse(markup):
    return ET.fromstring(markup)  # noqa: S314 - our own output


def _texts(svg):
    return [element.text for element in parse(svg).iter("text")]


def test_claim_and_both_bounds_stand_in_one_plot(sample):
    plot = privacy_plot(sample)
    for svg in (plot.wide, plot.narrow):
        for colour in ("--claim", "--upper", "--lower"):
            assert f"stroke: var({colour})" in svg
        assert {"δ", "ε", "δ = 10⁻⁵", "1", "10⁻⁸", "claimed"} <= set(_texts(svg))
    assert "the claim, the accountant's upper bound, the audit's lower bound" in plot.caption


@pytest.mark.parametrize("charged", [0.5, 1.0, 1.95, None])
def test_a_pure_claim_is_drawn_beside_what_is_charged_at_delta_0(charged):
    """A curve on a logarithmic axis would draw the claim above a loss that breaks it."""
    spent = budget([0.0, 1.0], [0.5, 1e-9], [1.0, 1.0], at=charged, delta=0.0)
    spent = replace(spent, guarantee=replace(spent.guarantee, pure_epsilon=charged))
    made = report(audited(epsilon_claimed=1.0, epsilon_lower=0.9), budget=spent)
    plot = privacy_plot(made)
    number = "∞" if charged is None else f"{charged:g}"
    for svg in (plot.wide, plot.narrow):
        assert {"claimed", "accountant: at most", "audit: at least", "ε at δ = 0", number, "0.9"} <= set(_texts(svg))
        lengths = dict(zip(("claimed", "charged", "audit"), _widths(svg), strict=True))
        assert (lengths["charged"] > lengths["claimed"] + 0.1) == (charged is None or charged > 1)
        assert lengths["audit"] < lengths["claimed"]
    assert ("Above the claim: accountant" in plot.caption) == (charged is None or charged > 1)


def _widths(svg):
    """Lengths of the bars: paths of four corners, from the top."""
    found = []
    for path in re.findall(r'd="(M[^"]+z)', svg):
        corners = [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]
        if len(corners) == 4 and corners[0][0] == corners[3][0] and corners[1][0] == corners[2][0]:
            found.append((corners[0][1], corners[1][0] - corners[0][0]))
    return [width for _, width in sorted(found) if width > 0][-3:]


def test_a_drawing_has_the_pages_colours_and_fonts_only(sample):
    for svg in (privacy_plot(sample).wide, value_plot(sample).narrow):
        assert not re.search(r"#[0-9a-f]{6}\b", svg)
        assert "font-family" not in svg
        assert "http" not in svg
        assert "<style" not in svg
        root = parse(svg)
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        references = re.findall(r'(?:href="#|url\(#)([^")]+)', svg)
        assert set(references) <= set(ids)


def test_learned_value_beside_its_baselines(sample):
    texts = _texts(value_plot(sample).wide)
    assert [t for t in texts if t in {"optimum", "without noise", "dp-apvi", "clinicians", "random"}] == [
        "optimum", "without noise", "dp-apvi", "clinicians", "random",
    ]  # fmt: skip
    assert {"0.7921", "0.7583", "0.7214", "0.6923", "0.6851"} <= set(texts)


def test_regret_is_best_when_low():
    flat = Band(mean=(1.0,), std=None)
    regret = Regret(mean=30.0, std=None, optimal=0, maximum=math.inf, share=None, twin="y", baseline=10.0)
    run = RanOnline(
        algorithm="x", title="", environment="", description="", facts={}, replicates=1, episodes=1, parameters={},
        options={}, choices={}, optimal_value=1.0, regret=regret, spent=None, odometer=None, ledger=None,
        curves=RunCurves(episodes=(1,), regret=flat, value=flat, switches=flat), diagnostics={}, seconds=1.0,
        episodes_per_second=1.0,
    )  # fmt: skip
    plot = value_plot(report(run=run))
    assert [t for t in _texts(plot.wide) if t in {"x", "without noise", "optimum"}] == ["optimum", "without noise", "x"]
    assert "regret" in _texts(plot.wide)


@pytest.mark.parametrize("value", [{}, {"mean": 0.5}, {"mean": math.inf, "optimal": 1}, {"optimal": 1}])
def test_nothing_to_compare_is_no_plot(value):
    assert value_plot(report()) is None
    assert value_plot(report(run=ran(**value))) is None


@pytest.mark.parametrize(
    "value",
    [
        {"mean": 0.0, "optimal": 0.0},
        {"mean": 1e-300, "std": 1e-301, "optimal": 2e-300},
        {"mean": -5, "std": 0, "baseline": 1e12},
        {"mean": 0.5, "optimal": 0.5, "references": {"ρ$x_1$ 漢字\x00\n<b>": 0.5, "y" * 500: 0.4}},
    ],
)
def test_odd_values_are_drawn(value):
    assert parse(value_plot(report(run=ran(**value))).narrow).tag == "svg"


@pytest.mark.parametrize(
    ("epsilon", "upper"),
    [
        ([0, 1], []),
        ([0], [0.5]),
        ([0, 1], [0, 0]),
        ([0, 1], [2, -1]),
        ([math.inf, math.inf], [0.5, 0.5]),
        ([], []),
    ],
)
def test_no_curve_is_no_plot(epsilon, upper):
    assert privacy_plot(report(budget=budget(epsilon, upper))) is None
    assert privacy_plot(report()) is None


@pytest.mark.parametrize(
    ("epsilon", "upper", "claim", "delta"),
    [
        ([0, 0.5, 1, 2], [0.3, 0.1, 0, 0], [0.4, 0.2, 0.1, 0], 0.0),
        ([0, 1], [1, 1e-300], [], 1e-15),
        ([0, 0], [0.5, 0.5], [], 1e-5),
        ([0, 1e6], [1, 1e-9], [], 1e-5),
        ([5, 6], [1e-20, 1e-21], [], 1e-5),
        ([0, 1, math.inf], [0.1, 0.01, 0], [], 0.5),
    ],
)
def test_odd_curves_are_drawn(epsilon, upper, claim, delta):
    plot = privacy_plot(report(budget=budget(epsilon, upper, claim, at=math.inf, delta=delta)))
    assert parse(plot.wide).tag == "svg"


def _curves(epsilon, upper, grid, lower):
    evidence = {"curve": {"epsilon": grid, "delta_lower": lower}}
    return privacy(report(audited(evidence=evidence), budget=budget(epsilon, upper)))


@pytest.mark.parametrize("curve", [None, 3, "x", [], {"epsilon": [0.5]}, {"epsilon": 3, "delta_lower": "x"}])
def test_evidence_that_holds_no_curve_is_no_curve(curve):
    assert privacy(report(audited(evidence={"curve": curve}))).lower is None


def test_a_crossing_is_found_between_the_points_and_only_there():
    # randomised response at ε₀ = 1: δ(ε) is linear in e^ε, hence concave in ε; its chord in ε would accuse it
    def delta(epsilon):
        return (math.e - math.exp(epsilon)) / (1 + math.e)

    ends = [0.0, 1.0]
    upper = [delta(e) for e in ends]
    assert find_crossing(_curves(ends, upper, [0.25, 0.5], [delta(0.25), delta(0.5)])) is None
    assert find_crossing(_curves(ends, upper, [0.25, 0.5], [delta(0.25), delta(0.5) * 1.0001])) == 0.5
    assert find_crossing(_curves(ends, upper, [1.5, 2.0], [0.4, 0.3])) is None  # beyond the accountant's points
    assert find_crossing(_curves([0.0, 2000.0], [0.5, 0.0], [1000.0, 1500.0], [0.4, 0.3])) is None


def test_matplotlibs_global_state_is_left_alone(tmp_path):
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 9\nsvg.fonttype: path\n", encoding="utf-8")
    code = (
        "import json, sys, matplotlib\n"
        "keys = [key for key in matplotlib.rcParams if key != 'backend']\n"  # reading that one loads pyplot
        "before = [matplotlib.rcParams[key] for key in keys]\n"
        "from privcheck.reports.plots import privacy_plot\n"
        "from privcheck.reports import read_report\n"
        f"plot = privacy_plot(read_report(json.load(open({str(SAMPLE)!r}, encoding='utf-8'))))\n"
        "assert [matplotlib.rcParams[key] for key in keys] == before\n"
        "assert matplotlib.rcParams['lines.linewidth'] == 9\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "sys.stdout.buffer.write(plot.wide.encode())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == privacy_plot(whole("holds")).wide  # whatever the user's matplotlibrc says
