"""Audits that are killed, resumed, or run elsewhere: the same result, from the command line and from Python.

Nothing here depends on chance: results are compared for equality.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from privcheck.declare.declaration import resolve
from privcheck.errors import ParameterError
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE
from privcheck_audits.engine.pools import processes
from registered import DP_APVI

COMMAND = [
    sys.executable,
    "-c",
    "from privcheck.cli.main import main; main()",
    "audit",
    "dp-apvi",
    "--json",
    "--set",
    "H=5",
]
TIMES = {"seconds", "trials_per_second"}


def request(algorithm=GAUSSIAN, view="releases", **asked) -> AuditRequest:
    declaration = algorithm.declare({})
    values = {
        "setting": Setting(
            declaration=declaration,
            values=declaration.values({"H": 2, "S": 2, "A": 2}),
            options=resolve(GAUSSIAN.options, {}, owner="test"),
        ),
        "delta": 1e-5 if algorithm is GAUSSIAN else 0.0,
        "trials": 20_000 if view == "releases" else 3_000,
        "confidence": 0.99,
    }
    return AuditRequest(view=view, **{**values, **asked})


def timeless(result) -> dict:
    found = dataclasses.asdict(result)
    evidence = {name: value for name, value in found["evidence"].items() if name not in TIMES}
    return {**found, "evidence": evidence, "seconds": 0}


@pytest.mark.parametrize("view", ["releases", "policy"])
@pytest.mark.parametrize("algorithm", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_an_interrupted_plan_resumes_to_the_same_result(algorithm, view, tmp_path):
    def interrupt(done, of):
        if done > 0.6 * of:
            raise KeyboardInterrupt

    whole = DP_APVI.audit(request(algorithm, view))
    with pytest.raises(KeyboardInterrupt):
        DP_APVI.audit(request(algorithm, view, directory=tmp_path, progress=interrupt))
    assert list(tmp_path.rglob("0*.npz"))
    resumed = DP_APVI.audit(request(algorithm, view, directory=tmp_path, workers=2))
    assert timeless(resumed) == timeless(whole)
    with ThreadPoolExecutor(2) as pool:
        assert timeless(DP_APVI.audit(request(algorithm, view, executor=pool))) == timeless(whole)


@pytest.mark.parametrize("other", [{"seed": 1}, {"trials": 20_001}, {"confidence": 0.9}, {"delta": 1e-6}], ids=str)
def test_another_audit_in_the_same_directory_is_refused(other, tmp_path):
    DP_APVI.audit(request(directory=tmp_path))
    with pytest.raises(ParameterError, match=f"blocks of another audit .*{next(iter(other))}"):
        DP_APVI.audit(request(directory=tmp_path, **other))


def test_another_declaration_of_the_same_name_is_refused(tmp_path):
    from mutants import rescaled_noise

    DP_APVI.audit(request(directory=tmp_path))
    asked = request(directory=tmp_path)
    with pytest.raises(ParameterError, match="digest"):
        DP_APVI.audit(
            dataclasses.replace(
                asked, setting=dataclasses.replace(asked.setting, declaration=rescaled_noise(asked.declaration, 0.5))
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize("view", ["releases", "policy"])
def test_plans_run_in_processes(view):
    with processes(2)() as pool:
        assert timeless(DP_APVI.audit(request(view=view, executor=pool))) == timeless(DP_APVI.audit(request(view=view)))


@pytest.mark.slow
def test_a_command_that_is_killed_resumes_bit_for_bit(tmp_path):
    def start(directory):
        command = [*COMMAND, "--trials", "3000000", "--workers", "1", "--out", str(directory)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})

    killed = start(tmp_path / "killed")
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "killed").rglob("0*.npz"))) < 8 and time.monotonic() < deadline:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    finished = len(list((tmp_path / "killed").rglob("0*.npz")))
    assert 8 <= finished < 367
    assert not (tmp_path / "killed" / "audit.json").exists()
    found = []
    for name in ("killed", "whole"):
        out, said = start(tmp_path / name).communicate()
        assert said == f"report: {tmp_path / name / 'report.html'}\n"
        result = json.loads(out)
        assert result.items() >= {"trials": 3_000_000, "verdict": "consistent"}.items()
        assert json.loads((tmp_path / name / "audit.json").read_text()) == result
        evidence = {key: value for key, value in result["evidence"].items() if key not in TIMES}
        found.append({**{k: v for k, v in result.items() if k not in TIMES}, "evidence": evidence})
    assert found[0] == found[1]
    refused = subprocess.run(
        [*COMMAND, "--trials", "3000000", "--seed", "4", "--out", str(tmp_path / "whole")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "seed: there 0, here 4" in json.loads(refused.stdout)["message"]


@pytest.mark.nightly
def test_a_command_runs_on_a_cluster_and_refuses_one_that_is_not_there(tmp_path):
    distributed = pytest.importorskip("distributed")
    short = [*COMMAND, "--trials", "200000"]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        found = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for command in ([*short, "--cluster", cluster.scheduler_address, "--out", str(tmp_path)], short)
        ]
    assert found[0]["epsilon_lower"] == found[1]["epsilon_lower"] > 0
    assert found[0]["evidence"]["errors"] == found[1]["evidence"]["errors"]
    refused = subprocess.run([*short, "--cluster", "tcp://127.0.0.1:1"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "Dask scheduler" in json.loads(refused.stdout)["message"]
