"""Provenance of a report (versions, seeds, command line, time), and problems of this installation."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from typing import Final

from privcheck.commands.settings import Chosen
from privcheck.errors import ParameterError, hide_passwords
from privcheck.reports.values import About, Diagnosis, PresetUsed, Provenance
from privcheck.runtime import NoNoise, SimulatedNoise, registry
from privcheck.runtime.noise import ReleaseNoise
from privcheck.support.plugins import load_entry

EXTRAS: Final = ("agents", "icu-sepsis", "release", "blackbox", "gym", "cluster", "service", "postgres")
_EXTRA: Final = re.compile(r"""extra == ["']([^"']+)["']""")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """Start of the work.

    Attributes:
        at: Date and time in UTC.
        clock: Reading of the clock that measures durations.
    """

    at: str = field(default_factory=_now)
    clock: float = field(default_factory=time.perf_counter)


def packages() -> tuple[str, ...]:
    """The distribution and its required dependencies, from its metadata."""
    return ("privcheck", *_required(""))


def extras() -> dict[str, bool]:
    """The user-facing extras of `pip install 'privcheck[…]'`, and whether each is completely installed."""
    return {name: all(_is_installed(package) for package in _required(name)) for name in EXTRAS}


def versions() -> dict[str, str]:
    """The versions that a result may depend on: required packages, and installed extras of agents and environments."""
    optional = [package for name in ("agents", "icu-sepsis") for package in _required(name) if _is_installed(package)]
    return {name: version(name) for name in (*packages(), *optional)}


def _required(extra: str) -> list[str]:
    """The distributions that an extra needs; for the empty name, the required ones."""
    asked = [line.partition(";") for line in requires("privcheck") or ()]
    mine = [name for name, _, marker in asked if _EXTRA.findall(marker) == ([extra] if extra else [])]
    return sorted(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in mine)


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def about() -> About:
    """The version of privcheck that made a report, and the version of the report's format."""
    return About(version=version("privcheck"))


def exact_parameters(setting: Chosen) -> dict[str, str]:
    """The declaration's parameters as exact texts."""
    return {name: str(value) for name, value in setting.values.items()}


def state_claim(words: str, parameters: Mapping[str, str]) -> str:
    """A claim with the values of its parameters.

    >>> state_claim("(epsilon, delta)-DP", {"epsilon": "1", "delta": "1/100000", "K": "5"})
    '(epsilon, delta)-DP with epsilon = 1, delta = 1/100000'
    """
    named = [f"{name} = {value}" for name, value in parameters.items() if re.search(rf"\b{re.escape(name)}\b", words)]
    return f"{words} with {', '.join(named)}" if named else words


def preset_used(setting: Chosen) -> PresetUsed:
    """The chosen preset of the agent's constants, with the constants in which its presets differ."""
    used = {**setting.options_used, **setting.readings}
    constants = {name: used[name] for name in setting.algorithm.printed}
    return PresetUsed(
        name=setting.preset,
        same=not constants,
        constants=constants,
        overridden=tuple(name for name in constants if name in setting.given),
    )


def provenance(began: Began, *, command: Sequence[str], seeds: Mapping[str, int]) -> Provenance:
    """Versions, seeds, command line and duration up to now.

    Args:
        began: Start of the work.
        command: The command line.
        seeds: Seeds by purpose.
    """
    return Provenance(
        versions={"python": platform.python_version(), **versions()},
        seeds=dict(seeds),
        command=hide_passwords(" ".join(command)),
        started=began.at,
        seconds=time.perf_counter() - began.clock,
    )


OWN = ("privcheck", "privcheck_algorithms", "privcheck_audits", "privcheck_check")


def diagnose() -> Diagnosis:
    """Versions, cores, noise sources, registered names and every problem found."""
    problems = []
    for name in packages():
        try:
            version(name)
        except PackageNotFoundError:
            problems.append(f"{name} is not installed: install privcheck again with its dependencies")
    problems += _clashes()
    for group in ("algorithms", "environments", "environment_families", "auditors"):
        problems += _unloadable(group)
    return Diagnosis(
        ok=not problems,
        problems=tuple(problems),
        versions={"python": platform.python_version(), **({} if problems else versions())},
        platform=platform.platform(),
        executable=sys.executable,
        cores=os.cpu_count(),
        extras={name: _told(name, there=there) for name, there in extras().items()},
        noise_sources={"release": _release_noise(), "simulated": SimulatedNoise.words, "none": NoNoise.words},
        registered={group: tuple(registry.names(group)) for group in ("algorithms", "environments")},
    )


def _told(extra: str, *, there: bool) -> str:
    return "installed" if there else f"not installed: pip install 'privcheck[{extra}]'"


def _release_noise() -> str:
    """The source of release noise, or how to install it: a missing extra is not a problem."""
    try:
        return ReleaseNoise().words
    except ParameterError as error:
        return str(error)


def _clashes() -> list[str]:
    owners = packages_distributions()
    return [
        f"the folder {package}/ is also owned by {', '.join(sorted(others))}: one of the two will not be found; use a "
        "separate environment for privcheck"
        for package in OWN
        if (others := set(owners.get(package, [])) - {"privcheck"})
    ]


def _unloadable(group: str) -> list[str]:
    problems = []
    for name in registry.names(group):
        try:
            load_entry(group, name)
        except Exception as error:  # noqa: BLE001 - a third party's module may raise anything; it is reported by name
            problems.append(f"{group}: {name} cannot be loaded: {type(error).__name__}: {error}")
    return problems
