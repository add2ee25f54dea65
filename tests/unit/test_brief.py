"""Results introduce themselves in a line and in a small table, whatever they hold."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from privcheck import account, verify
from privcheck.commands.online_runs import load_world, online_settings
from privcheck.commands.settings import resolve_setting
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest, OnlineRequest
from privcheck.support.display import Brief
from small_reports import audited, whole


def results():
    """What the public functions return, with the name of each."""
    setting = resolve_setting("dp-apvi", {"H": "5"})
    asked = AuditRequest(setting=setting.setting, view="releases", delta=1e-5, trials=1000, confidence=0.99)
    yield account(setting.declared)
    yield verify(setting.declared, setting.values)
    yield registry.audit_plan("dp-apvi").audit(asked)
    world, _ = load_world("riverswim", {}, seed=0)
    online = online_settings(["ucb-vi"], {"K": "20"}, world)[0]
    yield online.algorithm.play(OnlineRequest(setting=online.setting, world=world, episodes=20))
    yield whole("fails")
    yield audited(witness="<b>&\x1b" * 50, evidence={"figures": [0.1] * 5000})


def test_results_are_short_wherever_they_are_shown():
    for result in results():
        assert isinstance(result, Brief)
        assert len(repr(result)) <= 500
        table = ET.fromstring(result._repr_html_())  # noqa: S314 - our own output
        assert [row[0].text for row in table.iter("tr")] == [
            field.name for field in dataclasses.fields(result) if field.repr
        ]
        assert "<b>" not in result._repr_html_()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sample(Brief):
    value: object


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.5, "0.5"),
        (None, "None"),
        ("x" * 100, "'" + "x" * 58 + "…"),
        (np.zeros((3, 20)), "<array 3 × 20>"),
        ((1, 2), "(1, 2)"),
        ((1,) * 5, "<5 items>"),
        ({"a": 1}, "{'a': 1}"),
        (dict.fromkeys("abcde"), "<5 items>"),
        (Sample(value=1), "Sample(value=1)"),
        (Sample(value="x" * 60), "<Sample>"),
    ],
)
def test_what_is_long_is_named_or_counted(value, shown):
    assert repr(Sample(value=value)) == f"Sample(value={shown})"


def test_equality_and_fields_are_those_of_the_dataclass():
    assert Sample(value=1) == Sample(value=1) != Sample(value=2)
    assert re.fullmatch(r"<table><caption>Sample</caption><tr><th>value</th><td>1</td></tr></table>",
                        Sample(value=1)._repr_html_())  # fmt: skip


def test_a_line_has_room_for_500_characters_and_says_what_it_leaves_out():
    for width in range(40):
        names = [f"field{number}" for number in range(12)]
        kind = dataclasses.make_dataclass("Long", names, bases=(Brief,), repr=False)
        fields = [f"{name}={'x' * width!r}" for name in names]
        whole = f"Long({', '.join(fields)})"
        shown = repr(kind(*["x" * width] * 12))
        assert len(shown) <= 500
        if len(whole) <= 490:
            assert shown == whole
        elif shown != whole:
            kept = shown.removeprefix("Long(").removesuffix(", …)").split(", ")
            assert kept == fields[: len(kept)]
            assert len(shown) + len(fields[0]) > 480  # as many as there is room for
