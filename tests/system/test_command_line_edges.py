"""The edges of the command line: enormous numbers, dry runs, interrupts, full disks, values that are none, narrow
terminals, completion."""

import errno
import json
import re
import sys

import click
import pytest
from click.testing import CliRunner

from privcheck.cli import main, options
from privcheck.cli.options import finish, json_option
from privcheck.commands import estimates
from privcheck.commands.partial_outputs import describe_kept
from privcheck.reports.values import StartedPackage
from privcheck.support import files

TINY = ("--set", "H=2", "--set", "S=2", "--set", "A=2")
SEVERAL = ("--env", "riverswim", "--set", "S=3", "--set", "H=3")


def call(*arguments):
    return CliRunner().invoke(main.main, list(arguments))


def told(*arguments, code=2):
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stderr


@pytest.mark.parametrize(
    ("arguments", "largest"),
    [
        (("audit", "dp-apvi", "--trials", "1e12"), "runs 2,000,000,000,000"),
        (("audit", "dp-apvi", "--view", "policy", "--trials", "1000000000000"), "runs 2,000,000,000,000"),
        (("run", "ucb-vi", *SEVERAL, "--set", "K=1e12"), "episodes 1,000,000,000,000"),
        (("run", "ucb-vi", "oppo", *SEVERAL, "--replicates", "1e12"), "replicates 1,000,000,000,000"),
        (("run", "dp-apvi", *SEVERAL, "--set", "n=1e12"), "episodes 1,000,000,000,000"),
        (("run", "dp-apvi", *SEVERAL, "--replicates", "1_000_000_000_000"), "replicates 1,000,000,000,000"),
        (("run", "apvi", "--data", "trips.csv", "--replicates", "1e12"), "replicates 1,000,000,000,000"),
        (("check", "dp-apvi", *SEVERAL, "--trials", "1e12"), "runs 2,000,000,000,000"),
        (("check", "ucb-vi", *SEVERAL, "--set", "K=1e12"), "episodes 1,000,000,000,000"),
    ],
)
def test_what_would_take_years_is_refused_with_an_estimate(arguments, largest, tmp_path):
    out = tmp_path / "out"
    said = told(*arguments, "--out", str(out))
    assert largest in said
    assert re.search(r"takes about [\d.,]+ (h|days|years) and [\d.,]+ [MGTPE]B of memory", said)
    assert "the limits are 1 h and 8 GB" in said
    assert "--yes" in said
    assert not out.exists()


def test_yes_lifts_the_limit(monkeypatch):
    monkeypatch.setattr(estimates, "SECONDS", 0.0)
    given = ("run", "ucb-vi", *SEVERAL, "--set", "K=20")
    assert "the limits are" in told(*given)
    assert call(*given, "--yes").exit_code == 0


def test_an_estimate_grows_with_what_is_asked():
    def seconds(*arguments):
        return json.loads(call(*arguments, "--dry-run", "--json").stdout)["seconds"]

    ways = [
        ("audit", "dp-apvi", "--trials"),
        ("run", "ucb-vi", *SEVERAL, "--set", "K=1e7", "--replicates"),
        ("run", "dp-apvi", *SEVERAL, "--replicates"),
    ]
    for way in ways:
        one, ten = seconds(*way, "1e9"), seconds(*way, "1e10")
        assert ten == pytest.approx(10 * one, rel=0.02)


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "dp-apvi", *TINY, "--trials", "1e3"),
        ("run", "dp-apvi", *SEVERAL, "--set", "n=100"),
        ("run", "private-ucb-vi-central", "ucb-vi", *SEVERAL, "--set", "K=1e5"),
        ("check", "dp-apvi", *SEVERAL),
        ("check", "private-ucb-vi-central", *SEVERAL),
        ("check", "noisy-max"),
    ],
)
def test_a_dry_run_draws_and_writes_nothing(arguments, tmp_path, monkeypatch):
    def drawn(*_, **__):
        raise AssertionError("a dry run drew something")

    for place in ("api.audit", "api.run", "api.compare", "api.check", "commands.datasets._from_environment"):
        monkeypatch.setattr(f"privcheck.{place}", drawn)
    out = tmp_path / "out"
    result = call(*arguments, "--dry-run", "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    work = json.loads(result.stdout)
    assert (work["command"], work["writes"], work["within"]) == (arguments[0], str(out), True)
    assert work["parts"]
    assert work["seconds"] == pytest.approx(sum(part["seconds"] for part in work["parts"]))
    assert work["bytes"] == max(part["bytes"] for part in work["parts"])
    assert all("cost" in text or "not private" in text for text in work["guarantee"].values())
    assert not out.exists()
    words = call(*arguments, "--dry-run").stdout
    assert "nothing is drawn or written" in words


def test_a_dry_run_refuses_what_the_command_refuses(tmp_path):
    assert "--view expects one of" in told("audit", "dp-apvi", "--view", "vibes", "--dry-run")
    assert "no agent" in told("run", "dp-sgd", "--env", "riverswim", "--dry-run")
    assert "contradicts the data" in told("run", "dp-apvi", *SEVERAL, "--set", "A=3", "--dry-run")
    assert "missing.csv" in told("run", "dp-apvi", "--data", str(tmp_path / "missing.csv"), "--dry-run")


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupted_audit_says_which_blocks_are_kept(tmp_path, monkeypatch):
    from privcheck.cli.progress import ProgressBars

    out = tmp_path / "out"
    given = ("audit", "dp-apvi", *TINY, "--trials", "100000", "--workers", "1")
    with monkeypatch.context() as patched:
        patched.setattr(ProgressBars, "__call__", lambda *_: interrupted)
        said = told(*given, "--out", str(out), code=130)
        assert re.search(r"interrupted; kept: 1 finished block of the audit in .*; the same command goes on", said)
        said = told(*given, code=130)
        assert "interrupted; nothing was kept; with --out, the same command would go on" in said
        document = json.loads(call(*given, "--json").stdout)
        assert document["error"] == "interrupted"
        patched.setattr("privcheck_audits.engine.blocks._block", interrupted)  # before the first block is done
        fresh = tmp_path / "a" / "b"
        assert "interrupted; nothing was kept" in told(*given, "--out", str(fresh), code=130)
        assert not (tmp_path / "a").exists()
    assert call(*given, "--out", str(out)).exit_code == 0
    resumed = json.loads((out / "audit.json").read_text())
    assert resumed["epsilon_lower"] == json.loads(call(*given, "--json").stdout)["epsilon_lower"]


def test_an_interrupted_run_says_what_is_kept(tmp_path, monkeypatch):
    from privcheck.cli.progress import ProgressBars
    from privcheck.runtime import replicates

    monkeypatch.setattr(replicates, "_SAVE_EVERY", 0.0)
    monkeypatch.setattr(ProgressBars, "__call__", lambda *_: interrupted)
    given = ("run", "private-ucb-vi-central", *SEVERAL, "--set", "K=1e5")
    out = tmp_path / "out"
    said = told(*given, "--out", str(out), code=130)
    assert f"kept: the checkpoint {out / 'checkpoint.npz'}" in said
    assert "the record of the spending" in said
    assert "the same command goes on from there" in said
    assert (out / "checkpoint.npz").exists()
    assert "nothing was kept" in told(*given, code=130)
    said = told(
        "run", "dp-apvi", *SEVERAL, "--set", "n=10", "--replicates", "2", "--out", str(tmp_path / "o"), code=130
    )
    assert "goes on" not in said  # a run on data begins anew
    assert ("nothing" in said) == (not (tmp_path / "o").exists())


def test_an_empty_or_absent_directory_keeps_nothing(tmp_path):
    assert describe_kept(None, resumes=False) == "nothing was kept"
    assert describe_kept(tmp_path / "absent", resumes=True) == "nothing was kept"
    assert describe_kept(tmp_path, resumes=True).startswith("nothing of this run was kept")


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


RAW = "episode,step,state,action,reward,next_state\n0,0,0,0,1,1\n0,1,1,1,0,0\n1,0,1,0,1,0\n1,1,0,1,0,1\n"


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("audit", "dp-apvi", *TINY, "--trials", "100"), set()),
        (("run", "ucb-vi", *SEVERAL, "--set", "K=20"), set()),
        (("run", "dp-apvi", *SEVERAL, "--set", "n=10"), {"ledger.jsonl"}),
        (("new", "my-agent"), None),
    ],
)
def test_a_full_disk_leaves_nothing_or_says_what(arguments, left, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_sync", full)
    if arguments[0] == "new":
        monkeypatch.setattr("pathlib.Path.write_text", full)
    out = tmp_path / "out"
    said = told(*arguments, "--out", str(out))
    assert "No space left on device" in said
    found = {path.name for path in out.rglob("*") if path.is_file()} if out.exists() else set()
    assert found == (left or set())
    assert all(name in said for name in found)
    assert out.exists() == bool(found)
    assert list(tmp_path.rglob("*.partial")) == []


def test_a_full_disk_leaves_no_half_of_a_table(tmp_path, monkeypatch):
    raw, out = tmp_path / "raw.csv", tmp_path / "trips.csv"
    raw.write_text(RAW)
    monkeypatch.setattr(files, "_sync", full)
    said = told("prepare", str(raw), "--out", str(out), "--states", "2", "--one-episode-is-one-user")
    assert "No space left on device" in said
    assert [path.name for path in tmp_path.iterdir()] == ["raw.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "dp-apvi", "--out"),
        ("run", "dp-apvi", *SEVERAL, "--out"),
        ("check", "dp-apvi", "--out"),
        ("new", "my-agent", "--out"),
        ("verify", "--all", "--pages"),
        ("prepare", "raw.csv", "--out"),
        ("policy", "policy.npz", "--out"),
    ],
)
def test_an_empty_path_is_refused(arguments):
    for empty in ("", "  "):
        said = told(*arguments, empty)
        assert arguments[-1] in said
        assert "expected a path, got an empty text" in said


@pytest.mark.parametrize("value", ["1e-400", "1e400", "nan", "inf", "-1", "1e-301", "", "half", "1e999999999"])
@pytest.mark.parametrize(
    ("option", "command"),
    [
        ("--delta", ("budget", "dp-apvi")),
        ("--epsilon", ("calibrate", "dp-apvi")),
        ("--confidence", ("audit", "dp-apvi")),
        ("--set rho=", ("budget", "dp-apvi")),
        ("--trials", ("audit", "dp-apvi")),
    ],
)
def test_a_message_about_a_value_names_its_option(option, command, value):
    flag, _, prefix = option.partition(" ")
    result = call(*command, flag, prefix + value, "--json")
    assert result.exit_code == 2, result.output
    document = json.loads(result.stdout)
    assert flag in document["message"]
    assert "rho" in document["message"] or not prefix
    assert document["given"] is not None or document["given_infinite"] == "inf"


def test_zero_is_a_delta_but_no_epsilon():
    assert call("budget", "dp-apvi-laplace", "--delta", "0").exit_code == 0
    assert "--epsilon expects a target ε above 0" in told("calibrate", "dp-apvi", "--epsilon", "0")


@pytest.mark.parametrize("text", ["1e3", "1_000", "1000", "1000.0", "2000/2"])
def test_a_count_may_be_written_with_an_exponent(text):
    from privcheck.cli.options import Count

    assert Count().convert(text, None, None) == 1000
    work = json.loads(call("run", "ucb-vi", *SEVERAL, "--set", f"K={text}", "--dry-run", "--json").stdout)
    assert work["parts"][0]["sizes"]["episodes"] == 1000


@pytest.mark.parametrize("text", ["1.5", "0", "-3", "1e-3", "1e19", "1e400", "x", ""])
def test_what_is_no_count_is_refused(text):
    from privcheck.cli.options import Count

    with pytest.raises(click.BadParameter, match="expected a whole number from 1 to 1e18"):
        Count().convert(text, None, None)


def test_tables_fit_the_terminal(monkeypatch):
    from privcheck.cli.listing import describe_algorithms, list_algorithms
    from privcheck.cli.printing import describe_diagnosis
    from privcheck.commands.provenance import diagnose

    listing, diagnosis = list_algorithms(), diagnose()
    names = [one["name"] for one in listing["algorithms"]]
    for width in (80, 90, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        listed, found = describe_algorithms(listing).splitlines(), describe_diagnosis(diagnosis).splitlines()
        assert max(map(len, listed)) <= min(width, 100)
        assert max(map(len, found)) <= width
        assert {line.split()[0] for line in listed[2:] if line} >= set(names)  # names are never cut: they are typed
        assert any(line.endswith("…") for line in listed)
    monkeypatch.delenv("COLUMNS")
    listed = describe_algorithms(listing)
    assert max(map(len, listed.splitlines())) <= 100  # without a terminal too
    assert not re.search(r"epsilon|rho|delta|log\(|\*\*", listed)  # no formula


@pytest.mark.parametrize("path", [(), ("ledger",), ("ledger", "heads"), ("ledger", "receipt")])
def test_no_summary_is_cut_in_a_terminal_of_80_columns(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    listed = call(*path, "--help").output.split("Commands:")[1].strip("\n").splitlines()
    assert len(listed) > 1 or path == ("ledger", "receipt")
    assert not [line for line in listed if line.endswith("...")]


def test_a_verdict_has_its_colour_in_a_terminal_only(monkeypatch):
    told = "FAILS · name: a claim\n  it fails\nHOLDS · another\n"
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = []
    monkeypatch.setattr(options.click, "echo", lambda text, **_: shown.append(text))
    options.write(told)
    assert shown[0].count("\x1b[") == 2 * 3
    assert options.click.unstyle(shown[0]) == told
    assert "it fails" in shown[0]  # only the first word of a line
    monkeypatch.setenv("NO_COLOR", "1")
    options.write(told)
    assert shown[1] == told


@pytest.mark.parametrize("words", ["check dp-apvi --env riverswim", "run dp-apvi --env riverswim", "audit dp-apvi"])
def test_writing_is_tried_before_work_begins(words, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for name in ("check", "run", "audit"):
        monkeypatch.setattr(f"privcheck.api.{name}", lambda *_, **__: pytest.fail("work began"))
    done = call(*words.split(), "--set", "H=3", "--out", str(tmp_path / "file" / "out"))
    assert done.exit_code == 2
    assert "nothing was kept" in done.output


def test_a_cell_of_a_narrow_column_is_wrapped_or_cut(monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    rows = [("a", "b"), ("name", "one two three four five six")]
    assert options.cut_columns(rows).splitlines()[2] == "name  one two three fou…"
    assert [line.split(maxsplit=1)[-1] for line in options.wrapped_columns(rows).splitlines()[2:]] == [
        "one two three four",
        "six",
    ]


def completed(*arguments):
    words = " ".join(("privcheck", *arguments))
    said = CliRunner().invoke(
        main.main,
        prog_name="privcheck",
        env={"_PRIVCHECK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(arguments))},
    )
    return {line.split(",", 1)[1] for line in said.stdout.splitlines()}


def test_shells_complete_names():
    assert completed("show", "dp-apvi") == {"dp-apvi", "dp-apvi-laplace"}
    assert "ucb-vi" in completed("run", "oppo", "ucb")
    assert completed("run", "oppo", "--env", "river") == {"riverswim"}
    assert "gym:" in completed("check", "oppo", "--env", "g")
    assert completed("audit", "dp-apvi", "--view", "lock") == {"lockstep"}
    assert completed("audit", "dp-apvi", "--method", "coin") == {"coin-flip"}


def test_every_command_shows_an_example_that_parses():
    for name, command in main.main.commands.items():
        text = call(name, "--help").stdout
        examples = re.findall(r"^ +privcheck (.+)$", text, flags=re.MULTILINE)
        assert examples, name
        for example in examples:
            words = example.split()
            assert words[0] == name
            command.make_context(name, words[1:])


def test_nothing_is_refused_at_its_defaults():
    from privcheck.commands.dry_run import foresee_check
    from privcheck.commands.sources import Place
    from privcheck.runtime import registry

    amount = {"trials": None, "replicates": None, "noise": "simulated", "seed": 0, "workers": 1, "read": True}
    names = [name for name in registry.names("algorithms") if registry.algorithm(name).runs]
    assert len(names) > 20
    for name in names:
        parts = foresee_check(name, {}, Place(), **amount).parts
        assert parts, name
        assert estimates.within_limits(parts), name


def test_what_code_of_a_package_prints_does_not_stand_beside_the_json():
    """An agent that prints left a standard output that no JSON parser read."""

    @click.command()
    @json_option
    def speak():
        sys.stdout.write("so far\n")
        said = StartedPackage(name="mine", kind="online", directory=".", files=())
        finish(said, lambda one: one.name)

    apart = CliRunner().invoke(speak, ["--json"])
    assert json.loads(apart.stdout)["name"] == "mine"
    assert apart.stderr == "so far\n"
    assert CliRunner().invoke(speak, []).stdout == "so far\nmine\n"
