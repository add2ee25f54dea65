"""`audit --out` writes a report of its own: one page for all views of a directory, rendered again from its JSON."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from small_reports import as_written

SMALL = ["--set", "H=4", "--set", "S=3", "--set", "A=2"]


def audit(out, *arguments, name="dp-apvi"):
    return CliRunner().invoke(main, ["audit", name, *SMALL, "--out", str(out), *arguments, "--json"])


def report(out):
    return json.loads((out / "report.json").read_text(encoding="utf-8"))


def test_an_audit_writes_its_page_with_pictures(tmp_path):
    out = tmp_path / "out"
    result = audit(out, "--trials", "20000")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    data = report(out)
    assert sorted(p.name for p in out.iterdir()) == ["audit.json", "blocks", "report.html", "report.json"]
    assert {"schema": data["schema"], **data["audit"]["views"]["releases"]} == printed
    assert (data["algorithm"], data["provenance"]["seeds"]) == ("dp-apvi", {"audit": 0})
    assert printed["history"]["trials"][-1] == 20_000
    assert printed["history"]["epsilon_lower"][-1] == printed["epsilon_lower"]
    assert sum(printed["trade_off"]["runs"]) == 40_000
    assert printed["trade_off"]["claim_words"] == "(rho)-zCDP"
    assert printed["pair"]["columns"] == ["state", "action", "reward"]
    assert printed["bars"] is None
    page = (out / "report.html").read_text(encoding="utf-8")
    assert ">Consistent; no agent was run<" in page
    assert "does not show that the mechanism is private" in page
    assert page.count("<figure") == 2
    for foreign in ('src="http', 'href="http', "@import", "url(http", "<script"):
        assert foreign not in page


def test_views_of_one_directory_stand_on_one_page_and_a_violation_leads_it(tmp_path):
    out = tmp_path / "out"
    assert audit(out, "--trials", "20000", name="private-ucb-vi-central").exit_code == 1
    alone = report(out)
    assert ">Violation at H = 2 (asked: 4)" in (out / "report.html").read_text(encoding="utf-8")
    assert audit(out, "--view", "lockstep", "--trials", "4", name="private-ucb-vi-central").exit_code == 0
    both = report(out)
    assert list(both["audit"]["views"]) == ["releases", "lockstep"]
    assert both["audit"]["views"]["releases"] == alone["audit"]["views"]["releases"]
    assert both["audit"]["verdict"] == "violation"
    assert both["audit"]["views"]["lockstep"]["bars"]["one_sided"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert ">Violation<" in page
    assert "The other views refuted nothing: lockstep." in page
    (out / "report.html").unlink()
    again = CliRunner().invoke(main, ["report", str(out), "--json"])
    assert again.exit_code == 0, again.output
    assert (out / "report.html").read_text(encoding="utf-8") == page


def test_the_report_of_other_settings_is_not_replaced(tmp_path):
    out = tmp_path / "out"
    assert audit(out, "--view", "lockstep", "--trials", "2").exit_code == 0
    for given, told in (("rho=2", "there rho = 1, here 2"), ("bonus_scale=2", "bonus_scale")):
        refused = audit(out, "--view", "noise", "--trials", "2", "--set", given)
        assert refused.exit_code == 2
        assert "holds the report of another audit" in json.loads(refused.stdout)["message"]
        assert told in json.loads(refused.stdout)["message"]
    assert list(report(out)["audit"]["views"]) == ["lockstep"]


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (as_written("holds"), "holds the report of a check"),
        ({"privcheck": {"schema": 1}, "run": as_written("holds")["run"]}, "holds the report of a check"),
        ({"privcheck": {"schema": 1}, "verify": {"verdict": "holds"}}, "report.verify.algorithm is missing"),
    ],
)
def test_the_report_of_a_check_is_not_written_over(held, says, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.json").write_text(json.dumps(held), encoding="utf-8")
    result = audit(out, "--trials", "100")
    assert result.exit_code == 2
    assert says in result.stdout
    assert json.loads((out / "report.json").read_text(encoding="utf-8")) == held
    assert sorted(p.name for p in out.iterdir()) == ["report.json"]  # refused before anything was drawn


@pytest.mark.parametrize("workers", ["1", "2"])
def test_pictures_do_not_depend_on_the_workers(tmp_path, workers):
    results = []
    for number in (workers, "3"):
        result = audit(tmp_path / number, "--trials", "30000", "--workers", number)
        found = json.loads(result.stdout)
        results.append({name: found[name] for name in ("trade_off", "history", "pair", "epsilon_lower")})
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["dp-apvi-laplace", "dp-lsvi-ucb-pp-as-printed"])
def test_every_sampled_audit_has_curve_history_and_pair(tmp_path, name):
    sets = ["--set", "H=2", *(["--set", "K=4", "--set", "d=2"] if "lsvi" in name else ["--set", "S=2", "--set", "A=2"])]
    result = CliRunner().invoke(main, ["audit", name, *sets, "--trials", "20000", "--json"])
    found = json.loads(result.stdout)
    assert all(found[part] is not None for part in ("trade_off", "history", "pair"))
    assert found["history"]["trials"][-1] == found["trials"] == 20_000
    assert found["history"]["reachable"][-1] == pytest.approx(found["reachable"])
    curve = found["trade_off"]
    below = [high < claim - 1e-9 for high, claim in zip(curve["at_most"], curve["claim"], strict=True)]
    assert any(below) == (found["verdict"] == "violation")


def test_an_audit_of_a_run_or_two_has_said_nothing(tmp_path):
    found = audit(tmp_path / "out", "--trials", "1")
    assert found.exit_code == 3
    assert json.loads(found.stdout)["verdict"] == "undecided"
    assert ">No verdict; no agent was run<" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_violation_elsewhere_leaves_the_exit_code_to_what_was_asked(tmp_path):
    def asked(horizon, out):
        given = [
            "sdp-pe-as-printed",
            "--trials",
            "400",
            "--set",
            f"H={horizon}",
            "--out",
            str(tmp_path / out),
            "--json",
        ]
        return CliRunner().invoke(main, ["audit", *given])

    found = asked(6, "out")
    assert found.exit_code == 0
    printed = json.loads(found.stdout)
    assert (printed["verdict"], printed["evidence"]["violation_at"]) == ("consistent", "H = 1 (asked: H = 6)")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert ">Consistent; violation at H = 1 (asked: H = 6); no agent was run<" in page
    assert asked(1, "one").exit_code == 1
