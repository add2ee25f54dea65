"""A view of somebody else is run by `audit` and `check` of whatever has it, from one file and one line."""

from __future__ import annotations

import pytest

from own_view import VIEW
from privcheck.commands.runs import audit
from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.runtime import registry


@pytest.fixture(autouse=True)
def _registered(register):
    register("views", "own-count", VIEW)


def test_it_is_one_of_the_views_and_runs():
    plan = registry.audit_plan("dp-apvi")
    assert plan.views == ("releases", "lockstep", "noise", "policy", "own-count")
    result = audit(resolve_setting("dp-apvi", {"H": "3"}), view="own-count")
    assert (result.verdict, result.trials, result.evidence["releases"]) == ("consistent", 1, 2)
    assert (result.asks, result.leaves_open) == ("Are there fewer than nine releases?", "Everything else.")
    assert not result.agent_ran


def test_what_lacks_it_is_told_why():
    with pytest.raises(ParameterError, match="has no view own-count: it is for DP-… only"):
        audit(resolve_setting("pucb", {}), view="own-count")
