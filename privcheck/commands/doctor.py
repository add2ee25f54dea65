"""`doctor`: is this installation sound?"""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, version

from privcheck import registry
from privcheck.commands.provenance import extras, packages, versions
from privcheck.entry_points import load_entry
from privcheck.errors import ParameterError
from privcheck.reports.values import Diagnosis
from privcheck.runtime import NoNoise, SimulatedNoise
from privcheck.runtime.release_noise import ReleaseNoise

OWN = ("privcheck", "privcheck_algorithms", "privcheck_audits")


def diagnose() -> Diagnosis:
    """Returns versions, cores, noise sources, registered names and every problem found."""
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
    """Returns what release noise is drawn by, or how to install it: an extra that is not there is no problem."""
    try:
        return ReleaseNoise().words
    except ParameterError as error:
        return str(error)


def _clashes() -> list[str]:
    owners = packages_distributions()
    return [
        f"the folder {package}/ is also owned by {', '.join(sorted(others))}: one of the two will not be found; "
        "use an environment of its own for privcheck"
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
