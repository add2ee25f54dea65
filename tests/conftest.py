"""Hypothesis profiles, what is tested (a room; the installed package), and a third party's distribution."""

from __future__ import annotations

import itertools
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

import privcheck
import privcheck_algorithms
import privcheck_audits

if TYPE_CHECKING:
    from postgres_cluster import Cluster

# dev: new examples every time · ci: the same examples every time · nightly: many new ones
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "nightly", deadline=None, max_examples=3_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile(  # for benchmarks/mutation.py: a failure is enough, its smallest example is not wanted
    "mutation", deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
_for_record = os.environ.get("CI") or os.environ.get("PRIVCHECK_TEST_WHEEL")  # `make test` sets the second
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if _for_record else "dev"))


DONE = "PRIVCHECK_TESTS_DONE"  # in the environment: a file with the tests that are not run again


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds what chooses test files by a room of the packages, and what keeps the results of a run."""
    options = parser.getgroup("privcheck's own tests")
    options.addoption("--room", default="", help="only test files that reach this folder of a package by imports")
    options.addoption("--record", type=Path, help="write counts, times and failures as a table to this file")
    options.addoption("--kept", type=Path, help="with --record: keep finished tests in this file, and go on from them")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out test files that do not reach the room that was asked for."""
    room = config.getoption("room")
    if not room or not collection_path.match("test_*.py"):
        return None
    from rooms import reaches  # needs import-linter, of the extra `lint`

    return None if reaches(collection_path, room) else True


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what has taken long, and leaves out what an earlier run of all tests has finished."""
    if os.environ.get(DONE):  # the same list for every worker, whenever it begins
        done = set(Path(os.environ[DONE]).read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]
    try:
        from tiers import mark_by_seconds, read_seconds
    except ModuleNotFoundError:  # the guard's own test runs this file alone
        return
    mark_by_seconds(items, read_seconds())


def pytest_configure(config: pytest.Config) -> None:
    """Refuses to test the source tree where the installed wheel was meant (PRIVCHECK_TEST_WHEEL=1)."""
    if config.getoption("record") and not hasattr(config, "workerinput"):
        from results_table import ResultsTable

        kept = config.getoption("kept").absolute()
        table = ResultsTable(config.getoption("record").absolute(), kept, part=bool(config.option.markexpr))
        config.pluginmanager.register(table)
        done = kept.with_suffix(".done")
        done.write_text("".join(f"{one.nodeid}\n" for one in table.finished.values() if one.kind != "failed"))
        os.environ[DONE] = str(done)
    if os.environ.get("PRIVCHECK_TEST_WHEEL") != "1":
        return
    for package in (privcheck, privcheck_algorithms, privcheck_audits):
        where = Path(str(package.__file__)).resolve()
        if not {"site-packages", "dist-packages"} & set(where.parts):
            message = f"{package.__name__} is imported from the source tree: expected the installed wheel"
            raise pytest.UsageError(f"PRIVCHECK_TEST_WHEEL=1, but {message}; run `pytest`, not `python -m pytest`")


@pytest.fixture
def register(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that registers a value for this test: by an entry point, as a third party's wheel does."""

    def add(group: str, name: str, value: object) -> None:
        site = tmp_path_factory.mktemp("site")
        module = types.ModuleType(f"somebody_{site.name}")
        module.VALUE = value  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        metadata = site / f"{module.__name__}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.__name__}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[privcheck.{group}]\n{name} = {module.__name__}:VALUE\n")
        monkeypatch.syspath_prepend(site)

    return add


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """Returns a PostgreSQL server of this session's own; fails with what to install where there is none."""
    from postgres_cluster import shared  # the guard's own test runs this file alone

    cluster = shared()
    yield cluster
    cluster.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Returns a function that gives URLs at which there is no ledger yet, of every kind of store."""
    if request.param == "postgresql":
        cluster: Cluster = request.getfixturevalue("postgres")
        return cluster.new
    names = (f"sqlite:///{tmp_path}/ledger{i}.db" for i in itertools.count())
    return lambda: next(names)
