"""`privcheck ledger …` and `run --ledger`, as scripts see them: fields, exit codes, and what is left in the store."""

import json
import os
import pwd
import shutil
import sqlite3
import time
from contextlib import closing
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

import budget_stores
from privcheck import api
from privcheck.cli import main
from privcheck.errors import AuthorityError, BudgetError, PrivcheckError
from privcheck.ledger import Actor, Book, open_store

OFFICER = Actor(name="otto", role="officer")
JOINT = budget_stores.unit_of("joint")
UNIT = ("--unit", budget_stores.UNIT)
FOR = ("--unit", "dataset")


def call(*arguments, code=0, **environment):
    result = CliRunner().invoke(main.main, [*map(str, arguments), "--json"], env=environment)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture
def store(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    assert call("ledger", "init", "--store", url)["officer_token"].startswith("privcheck_")
    return url


@pytest.fixture
def grant(store):
    given = ("--dataset", "trips", "--currency", "rho", "--cap", 1, "--delta", "1e-6", "--name", "G")
    remedy = call("ledger", "grant", "--store", store, *given, code=2)["message"]
    assert "privcheck ledger policy --dataset trips" in remedy
    opened = call("ledger", "policy", "--store", store, "--dataset", "trips", "--epsilon", 8, "--delta", "1e-6", *UNIT)
    assert opened["policy"]["unit"]["trajectories"] == 1
    call("ledger", "grant", "--store", store, *given)
    return ("--store", store, "--grant", "G")


@pytest.fixture
def same_start(store):
    """A grant of a dataset whose neighbours have step 1 in common, as those of the joint claims have."""
    unit = ("--unit", budget_stores.unit_of(relation="replace-one-same-start"))
    call("ledger", "policy", "--store", store, "--dataset", "trips", "--epsilon", 8, "--delta", "1e-6", *unit)
    given = ("--dataset", "trips", "--currency", "rho", "--cap", 1, "--delta", "1e-6", "--name", "G")
    call("ledger", "grant", "--store", store, *given)
    return ("--store", store, "--grant", "G")


def shown(store):
    book = Book(open_store(store))
    (grant,) = book.show(OFFICER)["datasets"][0]["grants"]
    charges = book.charges(OFFICER, "trips")
    book.store.close()
    return grant["balance"], charges


def test_the_shapes_that_scripts_rely_on(store, grant, tmp_path):
    first = call("ledger", "charge", *grant, *FOR, "--gaussian-rho", "0.01", "--key", "K")
    assert (first["state"], first["remaining"]) == ("committed", "0.99")
    assert call("ledger", "charge", *grant, *FOR, "--gaussian-rho", "0.010", "--key", "K") == first
    refused = call("ledger", "charge", *grant, *FOR, "--gaussian-rho", "1", "--key", "L", code=1)
    assert (refused["state"], refused["remaining"], refused["receipt"]) == ("refused", "0.99", None)
    assert "0.99 is left" in refused["reason"]
    other = call("ledger", "charge", *grant, *FOR, "--gaussian-rho", "0.02", "--key", "K", code=2)
    assert (other["error"], "another request" in other["message"]) == ("idempotency", True)
    kept = tmp_path / "receipt.json"
    kept.write_text(json.dumps(first))
    assert call("ledger", "verify", "--store", store, "--receipt", kept)["ok"] is True
    forged = {**first["receipt"], "seq": 9}
    assert call("ledger", "verify", "--store", store, "--receipt", json.dumps(forged), code=1)["ok"] is False


def test_a_reservation_by_its_commands(store, grant):
    reserved = call("ledger", "reserve", *grant, *FOR, "--event", '{"type": "laplace", "epsilon": 0.5, "count": 2}')
    assert (reserved["state"], reserved["expires"] is not None) == ("reserved", True)
    assert call("ledger", "commit", reserved["id"], "--store", store)["state"] == "committed"
    message = call("ledger", "release", reserved["id"], "--store", store, "--evidence", "no", code=2)["message"]
    assert "never refunded" in message
    quoted = call("ledger", "quote", *grant, *FOR, "--gaussian-std", "30", "--sensitivity", "2", "--count", "10")
    assert (quoted["state"], quoted["cost"]["amount"]) == ("quoted", str(Fraction(4, 180)))
    assert call("ledger", "quote", *grant, *FOR, "--pure-epsilon", "5", code=1)["state"] == "refused"
    seen = ("ledger", "evidence", reserved["id"], "--store", store, "--verdict", "consistent", "--report", "r.json")
    assert call(*seen)["verdict"] == "consistent"
    assert call("ledger", "freeze", "G", "--store", store, "--reason", "an audit")["state"] == "frozen"
    assert call("ledger", "charge", *grant, *FOR, "--gaussian-rho", "0.01", code=1)["reason"].startswith(
        "grant 'G' is froz"
    )


def test_a_token_in_the_environment_says_who_acts(store, grant, tmp_path):
    made = call("ledger", "token", "--store", store, "--name", "rita", "--role", "reader")
    refused = call(
        "ledger", "charge", *grant, *FOR, "--gaussian-rho", "0.01", code=2, PRIVCHECK_LEDGER_TOKEN=made["token"]
    )
    assert (refused["error"], "may not charge" in refused["message"]) == ("authority", True)
    (tmp_path / "token").write_text(made["token"] + "\n")
    assert call("ledger", "show", "--store", store, "--token-file", tmp_path / "token")["datasets"]
    call("ledger", "token", "--store", store, "--name", "rita", "--revoke")
    assert call("ledger", "show", "--store", store, "--token-file", tmp_path / "token", code=2)["error"] == "authority"


def test_a_store_that_is_no_file_asks_for_a_token(store, grant, monkeypatch):
    class Elsewhere:
        url, closed = "postgresql://host/budget", 0

        def close(self):
            self.closed += 1

    elsewhere = Elsewhere()
    monkeypatch.setattr("privcheck.commands.ledger_client.open_store", lambda _: elsewhere)
    refused = call("ledger", "charge", "--store", elsewhere.url, "--grant", "G", *FOR, "--gaussian-rho", "0.01", code=2)
    assert (refused["error"], "expected a token" in refused["message"]) == ("authority", True)
    assert elsewhere.closed == 1


def test_a_plan_and_a_policy_by_their_commands(store, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text('{"type": "compose", "events": [{"type": "gaussian", "std": 30, "count": 100}]}')
    call("ledger", "policy", "--store", store, "--dataset", "beds", "--epsilon", 2, "--delta", "1e-6", *UNIT)
    given = ("--store", store, "--dataset", "beds", "--plan", plan, "--delta", "1e-6")
    assert call("ledger", "grant", *given, "--name", "P", code=2)["error"] == "usage"  # for whom was it priced?
    given += FOR
    assert call("ledger", "grant", *given, "--name", "P")["grant"]["currency"] == "events"
    assert call("ledger", "grant", *given, "--name", "Q", code=1)["error"] == "budget"
    assert call("ledger", "grant", *given, "--name", "Q", "--cap", 1, "--currency", "rho", code=2)["error"] == "usage"
    assert call("ledger", "charge", "--store", store, "--grant", "P", *FOR, "--gaussian-std", 30)["remaining"] == "99"


SMALL = ("--env", "riverswim", "--set", "H=3", "--set", "n=20")


def test_a_divided_dataset_by_its_commands(store):
    call("ledger", "policy", "--store", store, "--dataset", "trips", "--epsilon", 8, "--delta", "1e-6", *UNIT)
    names = ("--name", "2027-01", "--name", "2027-02")
    refused = call("ledger", "block", "trips", "--store", store, *names, code=2)
    assert "add up over them" in refused["message"]
    why = ("--disjoint-users", "by the month of signing up")
    made = call("ledger", "block", "trips", "--store", store, *names, *why)
    assert [block["name"] for block in made["blocks"]] == ["2027-01", "2027-02"]
    given = ("--dataset", "trips", "--currency", "rho", "--cap", 1, "--delta", "1e-6", "--name", "G")
    both = ("--block", "2027-02", "--block", "2027-01")
    assert call("ledger", "grant", "--store", store, *given, *both)["grant"]["blocks"] == ["2027-01", "2027-02"]
    grant, cost = ("--store", store, "--grant", "G"), (*FOR, "--gaussian-rho", "0.75")
    assert call("ledger", "charge", *grant, *cost, "--block", "2027-01")["remaining"] == "0.25"
    assert call("ledger", "reserve", *grant, *cost, code=1)["reason"].startswith("on block 2027-01")
    assert call("ledger", "quote", *grant, *cost, "--block", "2027-02")["times"] == 1
    words = CliRunner().invoke(main.main, ["ledger", "show", "--store", store])
    assert [line.split()[:3] for line in words.stdout.splitlines() if " 2027-0" in line] == [
        ["G", "2027-01", "0.75"], ["G", "2027-02", "0"],
    ]  # fmt: skip


def test_a_run_is_charged_before_it_draws(store, grant, tmp_path):
    out = tmp_path / "run"
    call("run", "dp-apvi", *SMALL, "--set", "rho=1/4", "--ledger", store, "--grant", "G", "--out", out)
    balance, (charge,) = shown(store)
    assert (balance["committed"], balance["reserved"]) == ("0.25", "0")
    assert (charge.state, charge.claim["algorithm"], charge.claim["verdict"]) == ("committed", "dp-apvi", "holds")
    assert call("ledger", "verify", "--store", store, "--receipt", out / "receipt.json")["ok"] is True
    again = call("run", "dp-apvi", *SMALL, "--set", "rho=4/5", "--ledger", store, "--grant", "G", code=1)
    assert (again["error"], "is left" in again["message"]) == ("budget", True)
    said = json.loads((out / "ledger.jsonl").read_text().splitlines()[0]).get("unit")
    grant = grant if said else (*grant, *FOR)
    imported = call("ledger", "import", out / "ledger.jsonl", *grant)
    assert float(imported["remaining"]) == pytest.approx(0.5, abs=1e-10)
    assert call("ledger", "import", out / "ledger.jsonl", *grant) == imported
    assert call("ledger", "export", "trips", "--store", store, "--as", "dp-event")["events"] == 2
    assert len(call("ledger", "export", "trips", "--store", store)["charges"]) == 2


def test_a_run_that_ends_before_its_first_draw_is_released(store, grant, tmp_path):
    (tmp_path / "ledger.jsonl").write_text("of an earlier run")
    given = {"H": 3, "n": 20, "rho": "1/4"}
    with pytest.raises(PrivcheckError, match="ledger"):
        api.run("dp-apvi", env="riverswim", parameters=given, out=tmp_path, ledger=store, grant="G", noise="release")
    balance, (charge,) = shown(store)
    assert (balance["free"], charge.state) == ("1", "released")
    assert "before its first draw" in charge.evidence


def test_only_what_holds_is_charged(store, grant):
    failing = ("ledger", "charge", *grant, "--algorithm", "dp-lsvi-ucb-pp-as-printed")
    assert "only verified claims" in call(*failing, code=1)["message"]
    assert call(*failing, "--gaussian-rho", 1, code=2)["error"] == "usage"
    with pytest.raises(BudgetError, match="only verified claims are charged"):
        api.run("dp-lsvi-ucb-pp-as-printed", env="linear-synthetic", ledger=store, grant="G")
    assert call("run", "apvi", *SMALL, "--ledger", store, "--grant", "G", code=2)["error"] == "parameter"
    assert call("run", "dp-apvi", *SMALL, "--ledger", store, code=2)["error"] == "parameter"
    assert shown(store)[1] == []
    assert call("ledger", "charge", *grant, "--algorithm", "dp-apvi", "--set", "rho=1/4")["remaining"] == "0.75"


def test_an_event_says_for_whom_it_was_priced_and_an_algorithm_declares_it(store, grant):
    bare = ("--gaussian-rho", "0.01")
    for command in ("charge", "reserve", "quote"):
        told = call("ledger", command, *grant, *bare, code=2)
        assert (told["error"], "--unit dataset" in told["message"]) == ("usage", True)
        other = call(
            "ledger", command, *grant, *bare, "--unit", "hospital, 400 trajectories, replace-one, central", code=2
        )
        assert "it protects one hospital, not one user" in other["message"]
    asked = ("ledger", "charge", *grant, "--algorithm", "dp-apvi", "--set", "rho=1/4")
    assert "leave --unit out" in call(*asked, *FOR, code=2)["message"]
    done = call(*asked)
    kept = call("ledger", "show", "--store", store, "--charge", done["id"])["charge"]["unit"]
    assert (kept["relation"], kept["basis"], kept["stated_by"]) == (
        "replace-one",
        "declaration",
        "declaration of dp-apvi",
    )
    words = CliRunner().invoke(main.main, ["ledger", "show", "--store", store, "--charge", done["id"]]).stdout
    assert "stated by declaration of dp-apvi" in " ".join(words.split())


def test_a_hospital_takes_no_algorithm_for_one_trajectory(store):
    hospital = ("--unit", "hospital, 400 trajectories, replace-one, central")
    call("ledger", "policy", "--store", store, "--dataset", "stays", "--epsilon", 8, "--delta", "1e-6", *hospital)
    given = ("--dataset", "stays", "--currency", "rho", "--cap", 1, "--delta", "1e-6", "--name", "S")
    call("ledger", "grant", "--store", store, *given)
    asked = ("--store", store, "--grant", "S", "--algorithm", "dp-apvi", "--set", "rho=1/4")
    refused = call("ledger", "charge", *asked, code=2)["message"]
    assert "covered: 1, not 400" in refused
    assert "ρ × 160000" in refused
    ran = ("run", "dp-apvi", *SMALL, "--set", "rho=1/4", "--ledger", store, "--grant", "S")
    assert "covered: 1, not 400" in call(*ran, code=2)["message"]


def test_a_charge_names_the_certificate_of_its_verdict(store, grant, tmp_path):
    made = call("ledger", "charge", *grant, "--algorithm", "dp-apvi", "--set", "rho=1/4")
    written = tmp_path / "dp-apvi.json"
    verified = call("verify", "dp-apvi", "--set", "rho=1/4", "--certificate", written)
    shown = call("ledger", "show", "--store", store, "--charge", made["id"])["charge"]
    assert shown["claim"]["certificate"] == verified["certificate"]["digest"]
    text = json.dumps(json.loads(written.read_text()), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert shown["claim"]["certificate"] == "sha256:" + sha256(text.encode()).hexdigest()
    plain = CliRunner().invoke(main.main, ["ledger", "show", "--store", store, "--charge", made["id"]]).stdout
    assert shown["claim"]["certificate"] in "".join(plain.split())
    stated = CliRunner().invoke(main.main, ["ledger", "export", "trips", "--store", store]).stdout
    assert f"certificate of the verdict on dp-apvi: {shown['claim']['certificate']}" in stated
    assert call("ledger", "verify", "--store", store)["problems"] == []
    call("ledger", "charge", *grant, "--gaussian-rho", "0.01", *FOR)  # names none, as in older stores
    assert "no problems" in CliRunner().invoke(main.main, ["ledger", "verify", "--store", store]).stdout


def test_joint_dp_says_under_which_conditions(store, same_start):
    done = call("ledger", "charge", *same_start, "--algorithm", "private-ucb-vi-calibrated", "--set", "epsilon=1/2")
    assert [one["name"] for one in done["conditions"]] == ["outputs", "billboard"]
    assert done["conditions"][0]["how"] == "declared: actions are computed from billboard and own data"
    shown = call("ledger", "show", "--store", store, "--charge", done["id"])["charge"]
    assert shown["claim"]["joint"]["conditions"] == done["conditions"]
    words = CliRunner().invoke(main.main, ["ledger", "show", "--store", store, "--charge", done["id"]]).stdout
    assert "if outputs" in words
    assert "was verified, and holds" in " ".join(words.split())  # lines are as long as the terminal
    call("ledger", "policy", "--store", store, "--dataset", "j", "--epsilon", 8, "--delta", "1e-6", "--unit", JOINT)
    given = ("--dataset", "j", "--currency", "rho", "--cap", 1, "--delta", "1e-6", "--name", "J")
    call("ledger", "grant", "--store", store, *given)
    bare = ("ledger", "charge", "--store", store, "--grant", "J", *FOR, "--gaussian-rho", "0.01")
    assert "not found to hold: outputs" in call(*bare, code=1)["message"]
    assert "billboard: the billboard" in call(*bare, "--condition", "outputs", code=1)["message"]
    stated = call(*bare, "--condition", "outputs", "--condition", "billboard")["conditions"]
    assert {one["how"] for one in stated} == {"stated by who charges"}


def test_a_backup_that_was_put_back_is_read_only_until_it_is_accepted(store, grant, tmp_path):
    cost, path = (*FOR, "--gaussian-rho", "0.01"), tmp_path / "budget.db"
    kept = tmp_path / "receipts.jsonl"
    kept.write_text(json.dumps(call("ledger", "charge", *grant, *cost)) + "\n")
    backup = path.read_bytes()  # closed: there is nothing else
    lost = call("ledger", "charge", *grant, *cost)
    path.write_bytes(backup)
    refused = call("ledger", "charge", *grant, *cost, code=2)
    assert "--accept" in refused["message"]
    assert call("ledger", "verify", "--store", store, "--receipts", kept)["ok"] is True
    accept = ("ledger", "verify", "--store", store, "--accept")
    assert call(*accept, "--receipts", kept, code=1)["lost"] == ["trips"]
    taken = call(*accept, "--receipts", kept, "--receipt", json.dumps(lost), "--freeze-lost")
    assert (taken["accepted"], taken["frozen"]) == (True, ["G"])
    assert "frozen" in call("ledger", "charge", *grant, *cost, code=1)["reason"]
    kept.write_text("no receipt\n")
    assert "one per line" in call("ledger", "verify", "--store", store, "--receipts", kept, code=2)["message"]
    call("ledger", "verify", "--store", store, "--freeze-lost", code=2)


def test_a_run_that_is_continued_is_charged_once(store, same_start, tmp_path):
    given = {"H": 3, "K": 64, "epsilon": "1/4"}
    for _ in range(2):
        api.run(
            "private-ucb-vi-calibrated", env="riverswim", parameters=given, out=tmp_path / "r", ledger=store, grant="G"
        )
    assert [charge.state for charge in shown(store)[1]] == ["committed"]


def test_a_run_pays_a_service(store, grant, monkeypatch):
    from privcheck.service.app import Settings, create_app
    from served import served

    made = call("ledger", "token", "--store", store, "--name", "job", "--role", "analyst", "--grant", "G")
    given = {"H": 3, "n": 20, "rho": "1/2"}
    with served(create_app(Settings(store=store))) as client:
        url = str(client.base_url)
        with pytest.raises(AuthorityError, match="needs the payer's token"):
            api.run("dp-apvi", env="riverswim", parameters=given, ledger=url, grant="G")
        monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", made["token"])
        api.run("dp-apvi", env="riverswim", parameters=given, ledger=url, grant="G")
        with pytest.raises(BudgetError, match=r"0\.5 is left"):
            api.run("dp-apvi", env="riverswim", parameters={**given, "rho": "3/4"}, ledger=url, grant="G")
    balance, (charge,) = shown(store)
    assert (balance["free"], charge.state, charge.actor) == ("0.5", "committed", "job")


def test_an_environment_variable_is_no_identity(grant):
    """Whoever reserved it is who the operating system says; another name in the environment attests nothing."""
    reserved = call("ledger", "reserve", *grant, "--gaussian-rho", "0.25", *FOR, "--seconds", 1)
    me = pwd.getpwuid(os.getuid()).pw_name
    assert call("ledger", "show", *grant[:2], "--charge", reserved["id"])["charge"]["actor"] == f"local-{me}"
    time.sleep(1.1)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        said = ("ledger", "release", reserved["id"], *grant[:2], "--evidence", "nothing ran")
        told = call(*said, code=2, **{name: "ceo"})
        assert f"another officer than local-{me} has to attest" in told["message"]


def test_the_restore_drill(store, grant, tmp_path):
    """As docs/ledger.md has it: a backup, a charge that is lost with it, the comparison, and what is frozen."""
    path = tmp_path / "budget.db"
    spend = ("ledger", "charge", *grant, "--gaussian-rho", "0.25", *FOR)
    kept = [call(*spend)["receipt"]]
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(tmp_path / "budget.backup")) as new:
        old.backup(new)
    kept.append(call(*spend)["receipt"])
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "budget.backup", path)
    (tmp_path / "receipts.jsonl").write_text("\n".join(map(json.dumps, kept)))
    assert "it is an older copy" in call(*spend, code=2)["message"]
    verify = ("ledger", "verify", "--store", store, "--receipts", tmp_path / "receipts.jsonl")
    assert len(call(*verify, code=1)["problems"]) == 1
    assert call(*verify, "--accept", code=1)["lost"] == ["trips"]
    assert call(*verify, "--accept", "--freeze-lost")["frozen"] == ["G"]
    assert call(*spend, code=1)["state"] == "refused"
    again = ("--dataset", "trips", "--currency", "rho", "--cap", "0.1", "--delta", "1e-6", "--name", "H")
    assert "rows of dataset 'trips' are lost" in call("ledger", "grant", "--store", store, *again, code=2)["message"]
