"""Where a report comes from: versions, seeds, command line, time, parameters."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import requires, version

from privcheck.commands.setting import Chosen
from privcheck.reports.values import About, PresetUsed, Provenance


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """When the work began.

    Attributes:
        at: The time of day.
        clock: The clock that durations are measured by.
    """

    at: str = field(default_factory=_now)
    clock: float = field(default_factory=time.perf_counter)


def packages() -> tuple[str, ...]:
    """Returns the distribution and what it cannot do without, as its metadata say."""
    needed = [line for line in requires("privcheck") or () if "extra ==" not in line]
    return ("privcheck", *sorted(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed))


def about() -> About:
    """Returns by which version of privcheck a report was made, and which form it has."""
    return About(version=version("privcheck"))


def exact_parameters(setting: Chosen) -> dict[str, str]:
    """Returns the declaration's parameters as exact texts."""
    return {name: str(value) for name, value in setting.values.items()}


def preset_used(setting: Chosen) -> PresetUsed:
    """Returns which preset of the agent's constants was taken, with those by which its presets differ."""
    used = {**setting.options_used, **setting.readings}
    constants = {name: used[name] for name in setting.algorithm.printed}
    return PresetUsed(
        name=setting.preset,
        same=not constants,
        constants=constants,
        overridden=tuple(name for name in constants if name in setting.given),
    )


def provenance(began: Began, *, command: Sequence[str], seeds: Mapping[str, int]) -> Provenance:
    """Returns versions, seeds, command line and duration, up to now.

    Args:
        began: When the work did.
        command: The command line.
        seeds: By what they seeded.
    """
    return Provenance(
        versions={"python": platform.python_version(), **{name: version(name) for name in packages()}},
        seeds=dict(seeds),
        command=" ".join(command),
        started=began.at,
        seconds=time.perf_counter() - began.clock,
    )
