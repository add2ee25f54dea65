"""What is published: the wheel built from the source archive is whole, holds nothing else, and names no machine."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the source archive and the wheel that was built from it, by what pyproject.toml names."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr or done.stdout
    return folder


@pytest.mark.slow
def test_the_wheel_from_the_source_archive_is_whole(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    packages = (ROOT / "privcheck", *(ROOT / "algorithms").glob("privcheck_*"), *(ROOT / "audits").glob("privcheck_*"))
    kept = [
        path
        for package in packages
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".nbi", ".nbc")
    ]
    shipped = {
        path.relative_to(next(up for up in (ROOT / "algorithms", ROOT / "audits", ROOT) if path.is_relative_to(up)))
        for path in kept
    }
    assert len(shipped) > 500
    assert {path.as_posix() for path in shipped} == {name for name in held if ".dist-info/" not in name}
    assert [name for name in held if name.endswith("LICENSE")]
    assert not [name for name, body in held.items() if re.search(rb"/(home|root|work|tmp/bash)/", body)]


@pytest.mark.slow
def test_the_source_archive_holds_what_its_tests_need(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    for needed in ("pyproject.toml", "Makefile", "locks/all.txt", "LICENSE", "README.md", "tests/conftest.py"):
        assert needed in names
    assert not [name for name in names if name.startswith((".venv", "dist", "runs")) or name.endswith((".nbi", ".nbc"))]
