"""`privcheck new`: writes a new algorithm's package, which passes its tests and its check from the start.

The templates are beside this file, one folder per kind.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from privcheck.errors import ParameterError, PrivcheckError
from privcheck.reports.values import StartedPackage
from privcheck.runtime.registry import names
from privcheck.support.files import partial_path

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Parts of a package of one kind.

    Attributes:
        modules: Modules beside `__init__`; each has a template in the kind's folder or a shared one.
        extras: Extras of privcheck that it needs.
        tests: Values of its tests about noise and audits, by their names in the template.
    """

    modules: tuple[str, ...]
    extras: str = "agents"
    tests: Mapping[str, str] = field(default_factory=dict)


_TESTS: Final = {"spread": "variance", "parts": "4", "sizes": "", "delta": "1e-5", "policies": "2_000"}
KINDS: Final[Mapping[str, _Kind]] = {
    "function": _Kind(modules=("mechanism", "declaration"), extras="agents,blackbox"),
    "linear": _Kind(modules=("declaration", "planning", "privatizer", "agent"), tests=_TESTS),
    "offline": _Kind(modules=("statistic", "declaration", "agent"), extras="agents,icu-sepsis", tests=_TESTS),
    "online": _Kind(
        modules=("statistic", "declaration", "agent"),
        tests={**_TESTS, "spread": "scale", "parts": "2", "sizes": '{"K": 16}', "delta": "0.0"},
    ),
    "shuffle": _Kind(
        modules=("device", "declaration", "agent"),
        tests={**_TESTS, "spread": "threshold", "parts": "2", "sizes": '{"K": 64}'},
    ),
}


def start_package(name: str, kind: str, directory: Path | None = None) -> StartedPackage:
    """Write the package, all of it or nothing.

    Args:
        name: Name of the algorithm and of the distribution: lower-case words joined by hyphens.
        kind: One of `KINDS`.
        directory: Folder of the package; by default a new folder of that name.

    Raises:
        ParameterError: The name is invalid or taken, or the kind is unknown.
        PrivcheckError: The folder is not empty or cannot be written.
    """
    if kind not in KINDS:
        raise ParameterError(f"expected a kind out of {', '.join(KINDS)}, got {kind!r}", name="kind", given=kind)
    package = _check_name(name)
    place = Path(name) if directory is None else directory
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise PrivcheckError(f"{place} already exists and is not empty: give another --out; nothing was written")
    texts = _render(name, package, kind)
    partial = partial_path(place.absolute())
    try:
        for path, text in texts.items():
            (partial / path).parent.mkdir(parents=True, exist_ok=True)
            (partial / path).write_text(text, encoding="utf-8")
        if place.exists():
            place.rmdir()
        partial.rename(place.absolute())
    except OSError as error:
        raise PrivcheckError(f"{place} cannot be written: {error.strerror or error}; nothing was written") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    files = tuple(str(place / path) for path in texts)
    return StartedPackage(name=name, kind=kind, directory=str(place), files=files)


def _check_name(name: str) -> str:
    """Check the name, and return the import name of the package.

    Raises:
        ParameterError: The name is invalid or registered, or the import name is taken by another package.
    """
    if not _NAME.fullmatch(name):
        message = f"expected a name of lower-case words joined by hyphens, such as my-ucb-vi, got {name!r}"
        raise ParameterError(message, name="name", given=name)
    if name in names("algorithms"):
        message = f"an algorithm is registered under the name {name!r} already: choose another name"
        raise ParameterError(message, name="name", given=name)
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or importlib.util.find_spec(package) is not None:
        message = f"`import {package}` already means another package: choose another name"
        raise ParameterError(message, name="name", given=name)
    return package


def _render(name: str, package: str, kind: str) -> dict[str, str]:
    """The texts of all files, by path; a kind's own template takes precedence over the shared one."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("privcheck.commands.starter", "."),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # noqa: S701 - source code, in which nothing of a user's but a checked name is put
    )
    made = KINDS[kind]
    files = {
        "pyproject.toml": "pyproject.toml.j2",
        "README.md": "README.md.j2",
        ".gitignore": "gitignore.j2",
        ".github/workflows/check.yml": "check.yml.j2",
        f"src/{package}/__init__.py": "package.py.j2",
        **{f"src/{package}/{module}.py": f"{module}.py.j2" for module in made.modules},
        f"tests/test_{package}.py": "test_package.py.j2",
    }
    about = {"name": name, "package": package, "extras": made.extras, **made.tests}
    return {
        path: templates.select_template([f"{kind}/{file}", file]).render(about).rstrip() + "\n"
        for path, file in files.items()
    }
