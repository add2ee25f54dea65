"""Reproduced figures: what is registered can be run, is judged by its text, and goes on where it was stopped."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

import privcheck
from privcheck.commands import reproductions
from privcheck.commands.dry_run import foresee_run
from privcheck.commands.reproductions import Asked, conclude, folder_of, reproduce, tasks_of
from privcheck.errors import DeclarationError, UnknownNameError
from privcheck.reports.reproductions import JSON_NAME, figure_page, markdown
from privcheck.reports.values import ComparedNumber, JudgedObservation, ListedFigures, Reproduction, from_json
from privcheck.runtime import figures
from privcheck.runtime.figures import Curve, Figure, Judged, Observation, PrintedNumber, Results, Series, Size

EVERY = [(paper, one) for paper in figures.papers() for one in figures.figures_of(paper).figures]
NAMED = pytest.mark.parametrize(("paper", "figure"), EVERY, ids=[f"{paper}-{one.name}" for paper, one in EVERY])


def is_low(results):
    return Judged(outcome="reproduced" if results["plain"].end < 10 else "not reproduced", reason="a reason.")


RIVER = {"S": "3", "H": "2", "K": "8"}
TINY = Figure(
    name="figure-1",
    title="Figure 1, a tiny one",
    where="nowhere",
    setting="Three states.",
    environment="riverswim",
    measure="regret",
    axis="epsilon",
    lines=(
        Series(label="private", algorithm="private-ucb-vi-central"),
        Series(label="plain", algorithm="ucb-vi", once=True),
    ),
    full=Size(given=RIVER, over=("1", "10"), replicates=3),
    quick=Size(given={**RIVER, "K": "4"}, over=("1",), replicates=2),
    taken=("everything",),
    numbers=(PrintedNumber(what="of regret", value=1e6, of=("plain",), tolerance=0.1),),
    observations=(Observation(quotation="It is low.", reading="below 10", judge=is_low),),
)
ONE = Asked(figures=(("offline-rl", TINY),), workers=1)


@NAMED
@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
def test_every_run_of_a_registered_figure_is_accepted_before_it_is_run(paper, figure, quick):
    """Each algorithm once, at the first position and model: all others differ in numbers only."""
    seen = set()
    for point in tasks_of(figure, quick=quick):
        if point.series.label not in seen:
            seen.add(point.series.label)
            one = point.task
            asked = {"replicates": one.replicates, "seed": one.seed, "workers": 1, "read": False}
            foresee_run([one.algorithm], one.given, one.place, **asked)
    assert seen == {one.label for one in figure.lines}


@NAMED
def test_a_figure_says_what_its_text_says_and_leaves_open(paper, figure):
    assert figure.taken
    assert figure.quick.replicates <= figure.full.replicates
    for quoted in (figure.setting, *(one.quotation for one in figure.observations)):
        assert quoted.endswith((".", ")."))
        sentences = 1 + len(re.findall(r"[.!?]\s+(?:… )?[A-Z]", quoted))
        assert sentences <= 2, quoted


def results_of(figure, ends):
    """Returns results in which a line of that label ends there, in a straight line from 0."""
    x = [float(value) for value in (figure.full.over or range(2000, 20001, 1000))]
    lines = {
        one.label: Curve(
            label=one.label, x=tuple(x), mean=tuple(ends(one) * place / x[-1] for place in x),
            std=(0.001,) * len(x), runs=20,
        )
        for one in figure.lines
    }  # fmt: skip
    return Results(curves=lines, uniform=100.0)


@NAMED
def test_no_observation_is_true_or_false_of_all_results(paper, figure):
    """Every predicate is met by some results and refused by others: numbers from a grid, seeded by the line's place."""
    for said in figure.observations:
        outcomes = set()
        for seed in range(400):
            rng = np.random.default_rng(seed)
            ends = dict(
                zip((one.label for one in figure.lines), rng.choice([0.5, 5, 30, 90, 100, 104], 12), strict=False)
            )
            if seed % 2:  # private lines in the order of their budgets
                labels = [one.label for one in figure.lines if "=" in one.label]
                ordered = sorted((ends[label] for label in labels), reverse=True)
                ends |= dict(zip(labels, ordered, strict=True))
            outcomes.add(said.judge(results_of(figure, lambda one, ends=ends: float(ends[one.label]))).outcome)
        assert outcomes == {"reproduced", "not reproduced"}, said.quotation


def judged(outcome, reason, undecided=""):
    return JudgedObservation(quotation="q.", reading="r", outcome=outcome, reason=reason, undecided=undecided)


def number(*, same):
    return ComparedNumber(what="switches", of="a", paper=88, here=85.0, std=None, tolerance=0.1, same=same)


@pytest.mark.parametrize(
    ("outcomes", "same", "expected"),
    [
        (["reproduced"], True, "reproduced"),
        (["reproduced"], None, "reproduced"),
        (["reproduced"], False, "not reproduced"),
        (["reproduced", "underspecified"], True, "underspecified"),
        (["underspecified", "not reproduced"], True, "not reproduced"),
        (["underspecified"], None, "underspecified"),
    ],
)
def test_a_figure_is_reproduced_only_if_all_that_its_text_says_is(outcomes, same, expected):
    outcome, reason = conclude([judged(one, f"{one}: why.") for one in outcomes], [number(same=same)])
    assert outcome == expected
    assert f"{expected}: why." in reason or same is False


def test_a_figure_stores_its_runs_and_reads_them_again(tmp_path, monkeypatch):
    first = reproduce(ONE, out=tmp_path)
    folder = folder_of(tmp_path, "offline-rl", "figure-1", quick=False)
    kept = json.loads((folder / JSON_NAME).read_text())
    assert from_json(Reproduction, kept) == first.results[0]
    points = sorted((folder / "points").iterdir())
    assert len(points) == 3  # two private points and one without
    shutil.rmtree(points[0])
    ran = []
    real = reproductions.run_point
    monkeypatch.setattr(reproductions, "run_point", lambda task, **how: ran.append(task) or real(task, **how))
    assert reproduce(ONE, out=tmp_path).results == first.results
    assert len(ran) == 1
    assert {"figure.html", "figure.svg", JSON_NAME} <= {path.name for path in folder.iterdir()}


def test_its_lines_are_the_runs_of_the_same_settings():
    one = reproduce(ONE).results[0]
    private, plain = one.lines
    for place, epsilon in enumerate((1, 10)):
        ran = privcheck.run("private-ucb-vi-central", env="riverswim", S=3, H=2, K=8, epsilon=epsilon, replicates=3)
        assert private.mean[place] == ran.regret.mean
        assert private.std[place] == pytest.approx(ran.regret.std)
    ran = privcheck.run("ucb-vi", env="riverswim", S=3, H=2, K=8, replicates=3)
    assert plain.mean == (ran.regret.mean, ran.regret.mean)
    assert one.uniform == pytest.approx(ran.regret.uniform)
    assert one.numbers[0].same is False
    assert one.outcome == "not reproduced"
    assert f"the paper has {1e6:.4g}" in one.reason


def test_the_shrunken_version_is_marked_and_its_numbers_are_not_judged_at_other_sizes():
    one = reproduce(replace(ONE, quick=True)).results[0]
    assert (one.quick, one.numbers[0].same, one.outcome, one.runs) == (True, None, "reproduced", 2)
    assert one.command.endswith("--quick")
    assert "reproduced (quick)" in figure_page(one)
    text = markdown([one], ListedFigures(figures=(), others={}), titles={})
    assert text.startswith("# The papers' figures")


def test_models_are_averaged_over(tmp_path):
    """Mean over two models; the variance is the mean of theirs plus that between them, as by hand."""
    models = ({"model": "1"}, {"model": "2"})
    figure = replace(
        TINY, environment="linear-synthetic", measure="gap", axis="n", numbers=(),
        lines=(Series(label="plain", algorithm="dp-vapvi-unsplit", given={"rho": "1000"}),),
        full=Size(given={"H": "3"}, over=("60",), instances=models, replicates=3),
    )  # fmt: skip
    line = reproduce(Asked(figures=(("offline-rl", figure),))).results[0].lines[0]
    parts = [
        privcheck.run("dp-vapvi-unsplit", env="linear-synthetic", n=60, H=3, model=k, rho=1000, replicates=3)
        for k in (1, 2)
    ]
    means = [one.gap.mean for one in parts]
    assert line.mean == (pytest.approx(sum(means) / 2),)
    between = (means[0] - means[1]) ** 2 / 2
    assert line.std[0] ** 2 == pytest.approx(sum(one.value.std**2 for one in parts) / 2 + between)


def test_a_figure_that_could_not_be_judged_is_refused():
    with pytest.raises(DeclarationError, match="a label for each line"):
        replace(TINY, lines=(TINY.lines[0], TINY.lines[0]))
    with pytest.raises(DeclarationError, match="numbers of its lines"):
        replace(TINY, numbers=(replace(TINY.numbers[0], of=("nobody",)),))
    with pytest.raises(DeclarationError, match="the text's words"):
        replace(TINY, observations=())
    with pytest.raises(DeclarationError, match="none of the episode"):
        replace(TINY, axis=figures.EPISODES)


@pytest.mark.parametrize("name", ["8", "figure-8", "Figure 8", "FIGURE-8"])
def test_a_figure_is_found_by_its_number(name):
    assert figures.find_figure("shuffle-dp", name).name == "figure-8"


def test_an_unknown_paper_or_figure_is_named():
    with pytest.raises(UnknownNameError, match="paper with figures 'shuffle'"):
        figures.find_figure("shuffle", "8")
    with pytest.raises(UnknownNameError, match="figure of shuffle-dp '9'"):
        figures.find_figure("shuffle-dp", "9")
