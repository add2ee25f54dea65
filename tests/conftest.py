"""Hypothesis profiles, and the guard that the tested package is the installed one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import privcheck
import privcheck_algorithms
import privcheck_audits

# dev: new examples every time · ci: the same examples every time · nightly: many new ones
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "nightly", deadline=None, max_examples=3_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
_for_record = os.environ.get("CI") or os.environ.get("PRIVCHECK_TEST_WHEEL")  # `make test` sets the second
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if _for_record else "dev"))


def pytest_configure() -> None:
    """Refuses to test the source tree where the installed wheel was meant (PRIVCHECK_TEST_WHEEL=1)."""
    if os.environ.get("PRIVCHECK_TEST_WHEEL") != "1":
        return
    for package in (privcheck, privcheck_algorithms, privcheck_audits):
        where = Path(str(package.__file__)).resolve()
        if not {"site-packages", "dist-packages"} & set(where.parts):
            message = f"{package.__name__} is imported from the source tree: expected the installed wheel"
            raise pytest.UsageError(f"PRIVCHECK_TEST_WHEEL=1, but {message}; run `pytest`, not `python -m pytest`")
