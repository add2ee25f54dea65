"""What ends a command early: exit codes, one JSON object, character sets, misspelt names, unwritable caches."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from privcheck.cli import main
from privcheck.cli.group import spell
from privcheck.commands.failures import explain
from privcheck.support import kernels


def call(*arguments):
    return CliRunner().invoke(main.main, list(arguments))


def told(*arguments, code=2):
    result = call(*arguments, "--json")
    assert result.exit_code == code, result.output
    document = json.loads(result.stdout)
    assert document.keys() == {"schema", "error", "message", "given", "hint"}
    return document


@pytest.mark.parametrize(
    ("arguments", "error", "given", "hint"),
    [
        (("show", "dp-apvii"), "unknown-name", "dp-apvii", "did you mean dp-apvi or dp-vapvi or dp-vapvi-unsplit?"),
        (("show",), "usage", None, "privcheck show --help"),
        (("budget", "dp-apvi", "--set", "rho=0"), "parameter", "0", None),
        (("audit", "dp-apvi", "--trials", "0"), "usage", "0", "privcheck audit --help"),
        (("biget",), "usage", "biget", "did you mean budget?"),
        (("list", "--jsn"), "usage", "--jsn", "did you mean --json?"),
        (("report", "nowhere"), "file-format", None, None),
    ],
)
def test_an_error_is_one_json_object(arguments, error, given, hint):
    document = told(*arguments)
    assert (document["error"], document["given"], document["hint"]) == (error, given, hint)
    assert document["message"]


def test_what_was_given_is_told_as_it_was_typed():
    assert told("calibrate", "dp-apvi", "--epsilon", "inf")["given"] == "inf"


def test_an_internal_error_has_a_code_of_its_own(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.setattr("privcheck.commands.declarations.show", broken)
    assert told("show", "dp-apvi", code=70)["error"] == "internal"
    plain = call("show", "dp-apvi")
    assert plain.exit_code == 70
    assert plain.stdout == ""
    assert "please report it" in plain.stderr


def test_a_full_disk_and_an_interrupt_are_told():
    full = explain(OSError(28, "No space left on device", "run.json"))
    assert (full.code, full.message) == (2, "No space left on device: run.json")
    assert full.hint is not None
    assert "free some space" in full.hint
    assert explain(KeyboardInterrupt()).code == 130
    assert explain(MemoryError()).code == 2


def test_a_misspelt_name_is_answered_with_those_spelt_alike():
    assert "did you mean dp-apvi or" in call("show", "dp-apvii").stderr
    assert "did you mean budget?" in call("biget").stderr
    assert "expected one of" in call("show", "xyzzy").stderr  # nothing is like it


def run_python(*arguments, **environment):
    command = [sys.executable, "-m", "privcheck", *arguments]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **environment})


SLOW = [  # two starts each
    pytest.param("latin-1", marks=pytest.mark.slow),
    *(pytest.param(charset, marks=pytest.mark.nightly) for charset in ("cp1252", "utf-8")),
]


@pytest.mark.parametrize("charset", ["cp437", *SLOW])
def test_every_character_set_gets_words(charset):
    shown = run_python("show", "sdp-pe", PYTHONIOENCODING=charset)
    assert shown.returncode == 0, shown.stderr
    text = shown.stdout.decode(charset)
    assert ("ε" in text) == (charset in ("utf-8", "cp437"))
    assert "?" not in text
    refused = run_python("show", "dp-apvi", "--set", "ε=1", PYTHONIOENCODING=charset)
    assert refused.returncode == 2
    assert b"Traceback" not in refused.stderr


def test_spelling_leaves_nothing_out():
    assert spell("‖φ(s, a)‖ ≤ √2H, 10⁻⁵, σ̂₁, Θ, naïve") == "||phi(s, a)|| <= sqrt2H, 10^-5, sigma1, Theta, naive"
    sources = [path for package in ("cli", "commands", "reports") for path in _sources(package)]
    strange = {char for path in sources for char in path.read_text(encoding="utf-8") if not char.isascii()}
    assert len(strange) > 20
    assert "?" not in {spell(char) for char in strange}
    assert all(spell(char).isascii() for char in strange)


def _sources(package):
    return (Path(main.__file__).parents[1] / package).rglob("*.py")


def test_output_that_nobody_reads_is_no_failing_claim():
    command = f"{sys.executable} -m privcheck list | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert ended.returncode in (0, 141)  # 0 where all was written before the reader left
    assert b"Traceback" not in ended.stderr


@pytest.fixture
def nothing_writable(monkeypatch, tmp_path):
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    monkeypatch.setattr(kernels.os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    os.environ.pop(kernels.VARIABLE, None)  # set by what is tested, not by this test
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = ""


def test_kernels_have_a_folder_where_nothing_can_be_written(nothing_writable, caplog):
    folder = kernels.place_cache(Path("/nowhere"))
    assert folder is not None
    assert folder.parent == nothing_writable
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert os.environ[kernels.VARIABLE] == str(folder)
    assert len(caplog.messages) == 1
    assert kernels.place_cache(Path("/nowhere")) is None  # the variable says where
    del os.environ[kernels.VARIABLE]
    assert kernels.place_cache(Path("/nowhere")) == folder  # what was compiled is found again


def test_a_folder_that_others_can_fill_is_not_used(nothing_writable):
    planted = nothing_writable / f"privcheck-numba-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    assert kernels.place_cache(Path("/nowhere")) not in (None, planted)


def test_a_folder_that_can_be_written_needs_no_other(monkeypatch, tmp_path):
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    assert kernels.place_cache(tmp_path) is None
    assert kernels.VARIABLE not in os.environ


def test_the_version_is_the_distributions():
    import privcheck

    assert privcheck.__version__ in run_python("--version").stdout.decode()
