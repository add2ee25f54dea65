"""`privcheck publish`: what it hands on, what it refuses, and that a run's private files stay private.

No error probability: releases are drawn once and replayed where two runs are compared.
"""

import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import norm

from privcheck import api, load_policy
from privcheck.cli import main
from privcheck.commands import checks, publication, run_outputs, runs
from privcheck.data.reading import Users
from privcheck.errors import FileFormatError, LedgerError, ParameterError
from privcheck.reports.files import encode
from privcheck.reports.values import Published, from_json
from privcheck.runtime.noise import ReleaseNoise

SIZES = {"S": 3, "A": 2, "rho": 1}
FILES = {"policy.npz", "policy.json", "guarantee.json", "ledger.jsonl", "card.html", "card.md", "SHA256SUMS"}


def call(*words, code=0):
    done = CliRunner().invoke(main.main, [str(word) for word in (*words, "--json")])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def table(path, rng, *, users=20, trajectories=1, changed=None):
    """Users with two steps each, in a CSV; one of them may have other records."""
    lines = ["user,episode,step,state,action,reward,next_state"]
    for episode in range(users * trajectories):
        first, second, last = rng.integers(3, size=3)
        if changed is not None and episode // trajectories == changed[0]:
            first, second, last = changed[1]
        user = episode // trajectories
        lines += [f"p{user},{episode},0,{first},0,{second % 2},{second}", f"p{user},{episode},1,{second},1,1,{last}"]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A run with release noise on a table of one's own; tests copy it before they change it."""
    folder = tmp_path_factory.mktemp("release")
    trips = table(folder / "trips.csv", np.random.default_rng(0))
    api.run("dp-apvi", data=trips, users=Users(who="patient"), noise="release", out=folder / "mine", **SIZES)
    return folder / "mine"


@pytest.fixture
def mine(ran, tmp_path):
    return shutil.copytree(ran, tmp_path / "mine")


def edit(path, change):
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def test_what_is_published_is_whole_and_says_how_to_check_it(mine, tmp_path):
    out = tmp_path / "out"
    told = call("publish", mine, "--out", out, "--for", "adults in intensive care", "--date", "2026-11-24")
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(written) == {file["name"] for file in told["files"]} == FILES
    assert {file["name"]: file["sha256"] for file in told["files"]} == {
        name: hashlib.sha256(content).hexdigest() for name, content in written.items()
    }
    sums = dict(line.split("  ")[::-1] for line in written["SHA256SUMS"].decode().splitlines())
    assert sums == {file["name"]: file["sha256"] for file in told["files"] if file["name"] != "SHA256SUMS"}
    guarantee = json.loads(written["guarantee.json"])
    assert guarantee == {"schema": guarantee["schema"], **told["guarantee"]}
    assert guarantee["unit"] == told["unit"] == json.loads(written["policy.json"])["guarantee"]["unit"]
    assert (guarantee["unit"]["who"], guarantee["unit"]["stated_by"]) == ("patient", "column user")
    assert guarantee["policy"] == sums["policy.npz"]
    assert guarantee["record"]["head"] == json.loads(written["ledger.jsonl"].splitlines()[-1])["chain"]
    assert "certificate" not in guarantee
    assert {fact["kind"] for fact in guarantee["rests_on"]} >= {"assumed about data", "public fact"}
    assert any("durations" in what for what in told["withheld"])
    card = written["card.md"].decode()
    for name in ("policy.npz", "policy.json", "guarantee.json", "ledger.jsonl"):
        assert f"| `{name}` | `{sums[name]}` |" in card
    assert "For: Adults in intensive care." in card
    assert "2026-11-24" in card
    assert load_policy(out).record.digest == load_policy(mine).record.digest
    assert from_json(Published, told).guarantee.cost.delta == 1e-5
    words = CliRunner().invoke(main.main, ["policy", str(out)]).output
    assert "may be published" in words


def test_numpy_alone_reads_the_policy_and_acts(mine, tmp_path):
    api.publish(mine, out=tmp_path / "out")
    code = """
import json, sys
import numpy
policy = numpy.load("policy.npz")["probabilities"]
assert numpy.allclose(policy.sum(axis=2), 1)
record = json.load(open("policy.json"))
labels = record["labels"]["actions"] or list(range(record["actions"]))
print(labels[policy[0, 2].argmax()])
assert not any(name.startswith("privcheck") for name in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path / "out", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == load_policy(mine).act(0, 2)


def guess_right_twin(rho):
    """Of a Gaussian mechanism with ρ in zCDP, μ = √(2ρ): how often the best guess is right, Φ(μ/2)."""
    return norm.cdf(math.sqrt(2 * rho) / 2)


@pytest.mark.parametrize(("trajectories", "rho"), [(1, 1.0), (3, 9.0)])
def test_the_guarantee_is_that_of_one_user_with_all_records(tmp_path, trajectories, rho):
    """The discrete noise that is drawn differs from the Gaussian by less than 10⁻⁶ here."""
    trips = table(tmp_path / "trips.csv", np.random.default_rng(1), trajectories=trajectories)
    users = Users(who="patient", max_trajectories=trajectories)
    api.run("dp-apvi", data=trips, users=users, noise="release", out=tmp_path / "mine", **SIZES)
    found = api.publish(tmp_path / "mine", out=tmp_path / "out", delta="1e-6")
    assert found.unit.trajectories == trajectories
    assert found.guarantee.cost.rho == pytest.approx(rho, rel=1e-9)
    assert found.guarantee.cost.rho == pytest.approx(load_policy(tmp_path / "out").record.guarantee.spent.rho)
    assert found.guarantee.guessed_right == pytest.approx(guess_right_twin(rho), abs=1e-5)
    assert found.guarantee.guessed_right >= guess_right_twin(rho) - 1e-6
    known = api.budget("dp-apvi", delta="1e-6", H=2, S=3, A=2, rho=int(rho), rewards="released").guarantee.epsilon
    assert found.guarantee.cost.epsilon == pytest.approx(known, rel=1e-5)
    assert found.guarantee.cost.delta == 1e-6
    facts = " ".join(fact.what for fact in found.guarantee.rests_on)
    assert ("only one trajectory" in facts, "at most 3 trajectories" in facts) == (trajectories == 1, trajectories > 1)
    assert (f"up to {trajectories} trajectories each" in facts) == (trajectories > 1)
    assert any("rows, users and episodes" in what for what in found.withheld) == (trajectories > 1)
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert ("20 episodes" in card, "a private number of episodes" in card) == (trajectories == 1, trajectories > 1)


def replay_board(monkeypatch):
    """From here on, every draw for the same slice is what the first one was, whatever the exact value."""
    board, draw = {}, ReleaseNoise.add

    def replay(self, noise, value, *, release, part):
        return board.setdefault((release, part), draw(self, noise, value, release=release, part=part)).copy()

    monkeypatch.setattr(ReleaseNoise, "add", replay)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def publish_neighbours(folder, seed):
    """What two tables, in which one user differs, leave at the top of a run's folder and in what is published."""
    rng = np.random.default_rng(seed)
    trajectories, user = 1 + seed % 2, int(rng.integers(20))
    found = []
    for name in ("D", "D2"):
        (folder / name).mkdir()
        changed = None if name == "D" else (user, rng.integers(3, size=3))
        draws = np.random.default_rng([seed, 7])
        trips = table(folder / name / "trips.csv", draws, trajectories=trajectories, changed=changed)
        mine, out = folder / name / "mine", folder / name / "out"
        api.run(
            "dp-apvi", data=trips, users=Users(max_trajectories=trajectories), noise="release", out=mine, seed=seed,
            **SIZES,
        )  # fmt: skip
        api.publish(mine, out=out)
        found.append((contents(mine), contents(out)))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_public_files_are_the_same_on_neighbours_behind_the_same_board(tmp_path, monkeypatch, seed):
    """Of tables in two folders, read at two times, the public files agree in every byte."""
    replay_board(monkeypatch)
    found = publish_neighbours(tmp_path, seed)
    assert found[0] == found[1]
    assert json.loads(found[0][0]["policy.json"])["made"] == json.loads(found[0][1]["policy.json"])["made"] == ""


def test_an_exact_figure_in_a_public_file_is_seen(tmp_path, monkeypatch):
    """The test above sees an exact sum that is planted in policy.json after lockstep has looked."""
    sums, draw = [], ReleaseNoise.add

    def add(self, noise, value, **how):
        sums.append(float(np.abs(value * np.arange(1, value.size + 1).reshape(value.shape)).sum()))
        return draw(self, noise, value, **how)

    monkeypatch.setattr(ReleaseNoise, "add", add)
    replay_board(monkeypatch)
    monkeypatch.setattr(run_outputs, "_note", lambda *_, **__: f"exactly {sums.pop()}")
    found = publish_neighbours(tmp_path, 0)
    for one, other in zip(*found, strict=True):
        assert one["policy.json"] != other["policy.json"]
        assert one["policy.npz"] == other["policy.npz"]


PLANTED = 271828.1828


def plant(value):
    """Put a figure into every number and every text that a run says about itself, but for what its remarks say."""
    kept = {"schema", "remarks", "did_not_learn", "ledger", "unit"}
    if isinstance(value, dict):
        return {name: part if name in kept else plant(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plant(part) for part in value]
    if isinstance(value, float):
        return PLANTED
    return f"{value} {PLANTED}" if isinstance(value, str) else value


def test_an_exact_figure_among_the_private_files_is_in_no_public_one(mine, tmp_path):
    file = mine / "private" / "run.json"
    planted = plant(json.loads(file.read_text(encoding="utf-8")))
    file.write_text(json.dumps(planted), encoding="utf-8")
    (mine / "private" / "log.txt").write_text(str(PLANTED), encoding="utf-8")
    assert file.read_text(encoding="utf-8").count(str(PLANTED)) > 20
    api.publish(mine, out=tmp_path / "out")
    for name, content in {**contents(tmp_path / "out"), **contents(mine)}.items():
        assert str(PLANTED).encode() not in content, name
        assert str(tmp_path).encode() not in content, name


def uncompared(mine):
    edit(mine / "policy.json", lambda data: data["guarantee"].update(compared=""))


def audited(**changes):
    """A report of an audit beside the run."""

    def change(mine):
        view = runs.audit(_setting(), view="lockstep", trials=2, workers=1)
        from privcheck.commands.checks import audit_report
        from privcheck.commands.provenance import Began

        report = audit_report(_setting(), replace(view, **changes), {}, command=(), began=Began())
        (mine / "private" / "report.json").write_text(encode(report), encoding="utf-8")

    return change


def _setting():
    from privcheck.commands.settings import resolve_setting

    return resolve_setting("dp-apvi", {"H": "2", "S": "3", "A": "2", "rewards": "released"})


REFUSED = {
    "not compared": (uncompared, "--view lockstep"),
    "simulated noise": (
        lambda mine: edit(mine / "policy.json", lambda data: data["guarantee"].update(protects=False)),
        "--noise release",
    ),
    "no private algorithm": (
        lambda mine: edit(mine / "policy.json", lambda data: data.update(guarantee=None)), "run a private algorithm",
    ),
    "a unit that nobody said": (
        lambda mine: edit(mine / "policy.json", lambda data: data["guarantee"].update(unit=None)), "run it again",
    ),
    "another unit than the record's": (
        lambda mine: edit(mine / "policy.json", lambda data: data["guarantee"]["unit"].update(who="ward")),
        "one was changed",
    ),
    "what no noise covers": (
        lambda mine: edit(mine / "policy.json", lambda data: data.update(warnings=["S=3 taken from the data"])),
        "--accept-uncovered",
    ),
    "another policy": (lambda mine: (mine / "policy.npz").write_bytes(b"another"), "one of the two was changed"),
    "no policy": (lambda mine: (mine / "policy.json").unlink(), "no policy in"),
    "no record": (lambda mine: (mine / "ledger.jsonl").unlink(), "publish the folder that `run` wrote"),
    "a changed record": (
        lambda mine: (mine / "ledger.jsonl").write_bytes(
            (mine / "ledger.jsonl").read_bytes().replace(b'"part": 0', b'"part": 1')
        ),
        "the hash chain breaks",
    ),
    "the record of another run": (
        lambda mine: edit(mine / "policy.json", lambda data: data["guarantee"].update(ledger="0" * 32)), "its own run",
    ),
    "other parameters than the record's": (
        lambda mine: edit(mine / "policy.json", lambda data: data["parameters"].update(rho="1/2")),
        "the ledger's parameters is",
    ),
    "another reading than the record's": (
        lambda mine: edit(mine / "policy.json", lambda data: data["choices"].update(rewards="known")),
        "(readings: rewards=known): line 2: visits was charged",
    ),
    "an algorithm that is not here": (
        lambda mine: edit(mine / "policy.json", lambda data: data.update(algorithm="dp-apvy")), "dp-apvi",
    ),
    "no run": (lambda mine: (mine / "private" / "run.json").unlink(), "publish the folder that `run --out`"),
    "the run of another record": (
        lambda mine: edit(mine / "private" / "run.json", lambda data: data["ledger"].update(digest="0" * 32)),
        "publish the folder that",
    ),
    "a violation": (audited(verdict="violation", witness="it leaks"), "found a violation: it leaks"),
    "something undecided": (
        audited(verdict="undecided", evidence={"doubt": "does not repeat"}), "something undecided",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_may_not_be_published_is_refused_with_the_remedy(mine, tmp_path, why):
    change, remedy = REFUSED[why]
    change(mine)
    told = call("publish", mine, "--out", tmp_path / "out", code=2)
    assert remedy in f"{told['message']} {told['hint']}"
    assert not list(tmp_path.glob("out*"))


def test_what_no_noise_covers_is_published_on_the_publishers_word(mine, tmp_path):
    edit(mine / "policy.json", lambda data: data.update(warnings=["S=3 taken from the data"]))
    found = api.publish(mine, out=tmp_path / "out", accept_uncovered=True)
    assert found.guarantee.not_covered == ("S=3 taken from the data",)
    for name in ("card.md", "card.html"):
        assert "No noise covers this: S=3 taken from the data." in (tmp_path / "out" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("verdict", "joint"), [("undecided", None), ("fails", None), ("holds", "unproved")])
def test_a_claim_that_does_not_hold_is_not_published(mine, tmp_path, monkeypatch, verdict, joint):
    judge = publication.verify_claim
    monkeypatch.setattr(publication, "verify_claim", lambda s: replace(judge(s), verdict=verdict, joint=joint))
    with pytest.raises(ParameterError, match=r"only verified claims are published.*privcheck verify dp-apvi"):
        api.publish(mine, out=tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_no_finite_epsilon_is_not_published(mine, tmp_path):
    with pytest.raises(ParameterError, match="give a larger --delta"):
        api.publish(mine, out=tmp_path / "out", delta=0)


def test_a_folder_with_anything_in_it_stays_as_it_is(mine, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert "choose another --out" in call("publish", mine, "--out", out, code=2)["message"]
    assert contents(out) == {"notes.txt": b"mine"}
    inside = mine / "private" / "out"
    assert "private part of the run" in call("publish", mine, "--out", inside, code=2)["message"]
    (out / "notes.txt").unlink()
    call("publish", mine, "--out", out)  # an empty folder is taken
    before = contents(out)
    call("publish", mine, "--out", out, code=2)
    assert contents(out) == before
    torn = tmp_path / "torn.partial"
    torn.mkdir()
    assert "delete it" in call("publish", mine, "--out", tmp_path / "torn", code=2)["message"]


@pytest.mark.parametrize("at", range(8))
def test_all_files_are_written_or_none(mine, tmp_path, monkeypatch, at):
    """The disk fails after so many of the seven files, or at the folder itself."""
    done, wait = [], publication.write_through

    def fail(path):
        done.append(path)
        if len(done) > at:
            raise OSError(28, "No space left on device", str(path))
        wait(path)

    monkeypatch.setattr(publication, "write_through", fail)
    with pytest.raises(OSError, match="No space"):
        api.publish(mine, out=tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_a_run_of_an_earlier_layout_is_read(mine, tmp_path):
    """All files side by side, no readings in policy.json: as runs before private/ left them."""
    shutil.move(mine / "private" / "run.json", mine / "run.json")
    shutil.rmtree(mine / "private")
    words = CliRunner().invoke(main.main, ["report", str(mine)])
    assert (words.exit_code, (mine / "run.html").exists()) == (0, True)
    assert api.publish(mine, out=tmp_path / "out").guarantee.cost.rho == pytest.approx(1)
    edit(mine / "policy.json", lambda data: data.pop("choices"))
    with pytest.raises(LedgerError, match="publish with the version that ran it"):  # its readings are not known
        api.publish(mine, out=tmp_path / "other")


def test_private_is_found_by_the_commands_that_read_runs(mine):
    page = call("report", mine)["html"]
    assert page == str(mine / "private" / "run.html")
    assert call("report", mine / "private")["html"] == page
    assert call("policy", mine)["policy"] == str(mine / "policy.npz")
    assert "nothing in this folder may be published" in (mine / "private" / "README.txt").read_text(encoding="utf-8")
    call("audit", "dp-apvi", "--view", "lockstep", "--out", mine, "--trials", 2)
    assert {path.name for path in mine.iterdir()} == {"policy.json", "policy.npz", "ledger.jsonl", "private"}
    assert (mine / "private" / "report.html").exists()


def test_files_of_a_release_and_of_other_work_are_not_mixed(mine, tmp_path):
    small = ("--env", "riverswim", "--set", "H=3", "--set", "n=20")
    before = contents(mine)
    assert "choose another --out" in call("run", "dp-apvi", *small, "--out", mine, code=2)["message"]
    assert contents(mine) == before
    call("audit", "dp-apvi", "--view", "lockstep", "--out", tmp_path / "audit", "--trials", 2)
    told = call("run", "dp-apvi", *small, "--noise", "release", "--out", tmp_path / "audit", code=2)
    assert "choose another --out" in told["message"]
    assert not (tmp_path / "audit" / "policy.npz").exists()


def test_a_policy_that_was_not_compared_lies_under_private(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "compare_outputs", lambda *_: "")
    mine = tmp_path / "mine"
    result = api.run("dp-apvi", env="riverswim", H=3, n=20, noise="release", out=mine)
    assert result.policy_file == "private/policy.npz"
    assert {path.name for path in mine.iterdir()} == {"ledger.jsonl", "private"}
    assert "NOT to be published" in CliRunner().invoke(main.main, ["policy", str(mine)]).output
    with pytest.raises(ParameterError, match="--view lockstep"):
        api.publish(mine, out=tmp_path / "out")


def test_what_an_audit_refuted_is_not_released(tmp_path, monkeypatch):
    """A check goes on to a run with simulated noise after a violation, and draws nothing for a release."""
    look = checks.audit

    def refute(setting, *, view, **how):
        found = look(setting, view=view, **how)
        return replace(found, verdict="violation") if view == "noise" else found

    monkeypatch.setattr(checks, "audit", refute)
    monkeypatch.setattr(checks, "audited_views", lambda *_: ["lockstep", "noise"])
    small = ("check", "dp-apvi", "--env", "riverswim", "--set", "H=3", "--set", "n=20", "--replicates", 1)
    assert call(*small, "--out", tmp_path / "simulated", code=1)["run"] is not None
    told = call(*small, "--noise", "release", "--out", tmp_path / "release", code=1)
    assert told["run"] is None
    assert {path.name for path in (tmp_path / "release").iterdir()} == {"private"}
    assert {path.name for path in (tmp_path / "release" / "private").iterdir()} == {
        "README.txt", "report.html", "report.json",
    }  # fmt: skip


def test_an_online_release_is_published(tmp_path):
    mine, out = tmp_path / "mine", tmp_path / "out"
    api.run("calibrated-ucb-vi", env="riverswim", H=3, K=20, noise="release", out=mine)
    assert {path.name for path in mine.iterdir()} == {"policy.json", "policy.npz", "ledger.jsonl", "private"}
    found = api.publish(mine, out=out)
    assert (found.unit.model, found.guarantee.joint) == ("joint", "follows")
    assert "Nothing was learned" in (out / "card.md").read_text(encoding="utf-8")
    assert "For any decision at all: nothing was learned." in (out / "card.md").read_text(encoding="utf-8")


def test_a_release_of_several_agents_is_divided_and_each_is_published(tmp_path):
    name, both = "calibrated-ucb-vi", tmp_path / "both"
    api.compare([name], env="riverswim", H=3, K=20, noise="release", out=both)
    assert {path.name for path in both.iterdir()} == {name, "private"}
    assert {path.name for path in (both / name).iterdir()} == {"policy.json", "policy.npz", "ledger.jsonl"}
    assert call("report", both)["html"] == str(both / "private" / "run.html")
    assert api.publish(both / name, out=tmp_path / "out").guarantee.algorithm == name
    with pytest.raises(ParameterError, match="choose another --out"):
        api.compare([name], env="riverswim", H=3, K=20, out=both)


def test_a_run_that_was_charged_is_published_with_its_receipt(tmp_path):
    store, mine, out = tmp_path / "budget.db", tmp_path / "mine", tmp_path / "out"
    call("ledger", "init", "--store", store)
    unit = ("--unit", "simulated user, 1 trajectory, 3 steps, replace-one, central")
    call("ledger", "policy", "--store", store, "--dataset", "trips", "--epsilon", 8, "--delta", "1e-6", *unit)
    given = ("--name", "G", "--dataset", "trips", "--currency", "rho", "--cap", 1, "--delta", "1e-6")
    call("ledger", "grant", "--store", store, *given)
    small = ("--env", "riverswim", "--set", "H=3", "--set", "n=20", "--noise", "release", "--out", mine)
    call("run", "dp-apvi", *small, "--ledger", store, "--grant", "G")
    assert (mine / "private" / "receipt.json").exists()
    assert call("publish", mine, "--out", out)["guarantee"]["receipt"] == "receipt.json"
    key = tmp_path / "ledger.pem"
    key.write_text(call("ledger", "key", "--store", store)["key"])
    assert call("ledger", "receipt", "verify", out / "receipt.json", "--key", key)
    kept = json.loads((mine / "private" / "receipt.json").read_text(encoding="utf-8"))
    assert json.loads((out / "receipt.json").read_text(encoding="utf-8")) == kept["receipt"]
    assert "remaining" in kept
    assert not any(b"remaining" in content for content in contents(out).values())


class Lines(HTMLParser):
    """The texts of list items and paragraphs of a page, and its tags."""

    def __init__(self, page):
        super().__init__()
        self.lines, self.tags, self._open = [], set(), False
        self.feed(page)

    def handle_starttag(self, tag, _):
        self.tags.add(tag)
        if tag in {"li", "p"}:
            self.lines.append("")
            self._open = True

    def handle_endtag(self, tag):
        self._open &= tag not in {"li", "p"}

    def handle_data(self, data):
        if self._open:
            self.lines[-1] += data


def test_both_cards_say_the_same_and_run_nothing_of_a_publishers_text(mine, tmp_path):
    said = 'beds <script>alert(1)</script> & [x](javascript:y) `code` *b* | "q"'
    api.publish(mine, out=tmp_path / "out", learned_for=said, not_for=(said, "dosing"))
    page = Lines((tmp_path / "out" / "card.html").read_text(encoding="utf-8"))
    assert "script" not in page.tags
    shown = [line for line in page.lines if line]
    text = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "[x](" not in text.replace("\\", "\0")
    plain = re.sub(r"\\(.)", r"\1", text).replace("`", "")
    for line in shown:
        assert line in plain.replace("**", ""), line
    assert len(shown) > 15
    assert sum(said.replace("`", "'")[1:] in line for line in shown) == 2


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dated", "yesterday"),
        ("dated", "20261124"),
        ("learned_for", "two\nlines"),
        ("not_for", ("",)),
        ("not_for", ("x" * 301,)),
    ],
)
def test_what_a_card_cannot_show_is_refused(mine, tmp_path, name, wrong):
    with pytest.raises(ParameterError, match="expects a"):
        api.publish(mine, out=tmp_path / "out", **{name: wrong})
    assert not list(tmp_path.glob("out*"))


def test_what_is_no_run_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileFormatError, match="no policy in"):
        api.publish(tmp_path / "empty", out=tmp_path / "out")
