"""Commands that write certificates: prices, calibrated noise, audits, checks and ledgers, each read by the checker."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest


def privcheck(*arguments: str, code: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "privcheck", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def checked(file: Path) -> str:
    """What the checker says of a file that it accepts."""
    done = subprocess.run(
        [sys.executable, "-m", "privcheck_check", str(file)], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("dp-apvi", 6.572, 6.573), ("dp-sgd", 1.5153, 1.5158), ("private-ucb-vi-central", 1.94, 1.96)],
)
def test_a_price_is_certified_at_its_number_or_a_little_above(
    name: str, least: float, most: float, tmp_path: Path
) -> None:
    file = tmp_path / "price.json"
    privcheck("budget", name, "--certificate", str(file))
    document = json.loads(file.read_text(encoding="utf-8"))
    assert least < float(Fraction(document["declared"]["claim"]["epsilon"])) < most
    assert "computed by privcheck" in checked(file)


def test_the_least_noise_is_certified_and_a_target_without_any_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "noise.json"
    privcheck("calibrate", "dp-apvi", "--epsilon", "1", "--delta", "1e-5", "--certificate", str(file))
    assert "ε = 1, δ = 1e-05" in checked(file)
    privcheck("budget", "dp-lsvi-ucb-pp-as-printed", "--certificate", str(tmp_path / "none"), code=2)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["dp-apvi", "private-ucb-vi-local"])
def test_counts_of_an_audit_are_certified_and_fewer_right_guesses_are_not(name: str, tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    sizes = ("--set", "H=1", "--set", "S=2", "--set", "A=2", "--trials", "4000")
    said = subprocess.run(
        [sys.executable, "-m", "privcheck", "audit", name, *sizes, "--certificate", str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode in {0, 1}, said.stderr
    assert "probability at most" in checked(file)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["evidence"]["correct"] -= 4  # the bound is that of these counts
    file.write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "privcheck_check", str(file)], capture_output=True, check=False)
    assert (done.returncode, done.stdout.split(b":")[1].strip()) == (1, b"A-TAIL")


def test_a_ledger_is_certified_until_a_row_is_changed(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "budget.db"))
    unit = "rider, 1 trajectory, replace-one, central"
    privcheck("ledger", "init", *store)
    privcheck("ledger", "policy", *store, "--dataset", "trips", "--epsilon", "8", "--delta", "1e-6", "--unit", unit)
    grant = ("--dataset", "trips", "--currency", "rho", "--cap", "1/2", "--delta", "1e-6", "--name", "team")
    privcheck("ledger", "grant", *store, *grant)
    for key in ("one", "two"):
        charge = ("--grant", "team", "--gaussian-rho", "0.2", "--unit", "dataset", "--key", key)
        privcheck("ledger", "charge", *store, *charge)
    reserved = ("--grant", "team", "--gaussian-rho", "0.1", "--unit", "dataset", "--key", "three", "--json")
    kept = json.loads(privcheck("ledger", "reserve", *store, *reserved))
    privcheck("ledger", "release", kept["id"], *store, "--evidence", "nothing was run")
    file = tmp_path / "trips.json"
    file.write_text(privcheck("ledger", "export", "trips", *store, "--as", "certificate"), encoding="utf-8")
    assert "4 rows never pass the caps" in checked(file)
    document = json.loads(file.read_text(encoding="utf-8"))
    for change in ({"amount": "2/5"}, {"previous": "sha256:00"}, {"grant": "other"}):
        document["evidence"]["rows"][1] |= change
        file.write_text(json.dumps(document), encoding="utf-8")
        done = subprocess.run([sys.executable, "-m", "privcheck_check", str(file)], capture_output=True, check=False)
        assert done.returncode == 1, change
