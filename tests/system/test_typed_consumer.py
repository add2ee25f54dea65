"""`py.typed` is kept: what users write against the installed package passes mypy and pyright at their strictest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CONSUMER = Path(__file__).parents[1] / "consumer" / "consumer.py"


def check(*command):
    done = subprocess.run([sys.executable, "-m", *command], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return done


def with_mistake(folder):
    """The consumer's code with one call that a type checker must refuse: strictness itself is tested by it."""
    broken = folder / "broken.py"
    broken.write_text(CONSUMER.read_text(encoding="utf-8").replace('rho="1/2")', "rho=0.5)"), encoding="utf-8")
    return broken


def mypy(path, folder):
    return check("mypy", "--strict", "--config-file=", "--cache-dir", folder, path).stdout


def pyright(path, folder):
    settings = folder / "pyrightconfig.json"
    settings.write_text(json.dumps({"typeCheckingMode": "strict", "include": [str(path)]}), encoding="utf-8")
    done = check("basedpyright", "--outputjson", "--pythonpath", sys.executable, "--project", settings)
    return "\n".join(one["message"] for one in json.loads(done.stdout)["generalDiagnostics"])


@pytest.mark.slow
def test_mypy_is_content(tmp_path):
    assert mypy(CONSUMER, tmp_path).startswith("Success")
    said = mypy(with_mistake(tmp_path), tmp_path)
    assert 'No overload variant of "run"' in said
    assert '"float"' in said


@pytest.mark.slow
def test_pyright_is_content(tmp_path):
    assert not pyright(CONSUMER, tmp_path)
    assert "float" in pyright(with_mistake(tmp_path), tmp_path)
