"""`privcheck reproduce` from outside: the list, refusals, what a stopped one keeps, and the documentation's page."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from privcheck.commands import reproduction_pages, reproductions
from privcheck.commands.partial_outputs import describe_kept
from privcheck.commands.reproduction_pages import find_results, records
from privcheck.commands.reproductions import reproduce, tasks_of
from privcheck.runtime import figures

ROOT = Path(__file__).parents[2]
EVERY = [(paper, one.name) for paper in figures.papers() for one in figures.figures_of(paper).figures]


def invoked(*arguments, code=0):
    result = CliRunner().invoke(main, ["reproduce", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_without_arguments_every_figure_is_listed_with_its_record():
    text = invoked().stdout
    assert all(paper in text and name in text for paper, name in EVERY)
    told = json.loads(invoked("shuffle-dp", "--json").stdout)
    assert {one["paper"] for one in told["figures"]} == {"shuffle-dp"}
    assert {one["figure"] for one in told["figures"]} == {name for paper, name in EVERY if paper == "shuffle-dp"}
    assert all(one["outcome"] in figures.OUTCOMES and one["reason"] for one in told["figures"])
    assert "Table I" in told["others"]["shuffle-dp"]
    assert "no experiments" in invoked("linear-mixture-mdps").stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nope", "1"], "unknown paper with figures 'nope'"),
        (["offline-rl", "7"], "unknown figure of offline-rl '7'"),
        (["--quick"], "give a PAPER and a FIGURE, or --all"),
        (["offline-rl", "--out", "x"], "give a PAPER and a FIGURE, or --all"),
        (["offline-rl", "figure-1a", "--all"], "leave out figure-1a, or --all"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, expected):
    assert expected in invoked(*arguments, code=2).stderr


def test_a_figure_is_written_and_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    """Stopped after three runs: the message says what is kept, and the same command ends as if it had not been."""
    asked = reproductions.ask("offline-rl", "figure-1b", quick=True)
    straight = reproduce(asked, out=tmp_path / "straight")
    real, ran = reproductions.run_point, []

    def stopping(task, **how):
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(task)
        return real(task, **how)

    monkeypatch.setattr(reproductions, "run_point", stopping)
    out = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        reproduce(asked, out=out)
    assert "3 finished runs of figures" in describe_kept(out, resumes=True)
    monkeypatch.setattr(reproductions, "run_point", real)
    told = json.loads(invoked("offline-rl", "1b", "--quick", "--out", str(out), "--json").stdout)
    one = told["results"][0]
    assert (one["paper"], one["figure"], one["quick"]) == ("offline-rl", "figure-1b", True)
    assert one["outcome"] == straight.results[0].outcome
    folders = [path / "offline-rl" / "figure-1b-quick" for path in (tmp_path / "straight", out)]
    assert len({(folder / "result.json").read_bytes() for folder in folders}) == 1
    assert len({(folder / "figure.svg").read_bytes() for folder in folders}) == 1
    assert find_results(out) == straight.results


def test_every_figure_is_recorded_and_the_page_is_that_of_the_record():
    assert [(one.paper, one.figure) for one in records()] == EVERY
    recorded = {(one.paper, one.figure): (one.outcome, one.reason, one.quick) for one in records()}
    listed = reproductions.list_figures().figures
    assert {(one.paper, one.figure): (one.outcome, one.reason, one.quick) for one in listed} == recorded
    assert (ROOT / "docs" / reproduction_pages.PAGE).read_text(encoding="utf-8") == reproduction_pages.page()
    pictures = {f"{paper}-{name}.svg" for paper, name in EVERY}
    assert pictures <= {path.name for path in (ROOT / "docs" / reproduction_pages.PICTURES).iterdir()}


def test_a_record_is_of_the_figure_as_it_is_defined():
    for one in records():
        figure = figures.find_figure(one.paper, one.figure)
        assert [line.label for line in one.lines] == [line.label for line in figure.lines]
        assert [said.quotation for said in one.observations] == [said.quotation for said in figure.observations]
        size = figure.size(quick=one.quick)
        assert one.sizes == size.given
        assert one.runs == size.replicates * len(size.instances)
        assert one.taken == figure.taken
        assert tasks_of(figure, quick=one.quick)[0].task.seed == one.made_by.seeds["run"]
