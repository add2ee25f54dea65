"""Packages whose public names load their modules when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable


def load_lazily(
    package: str, homes: Iterable[tuple[str, tuple[str, ...]]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: The package's `__name__`; its `__all__` has the names of `homes`.
        homes: Modules, each with its public names.
    """
    home = {name: module for module, names in homes for name in names}

    def load(name: str) -> object:
        if name not in home:
            public = ", ".join(sys.modules[package].__all__)
            raise AttributeError(f"module {package!r} has no attribute {name!r}; public names: {public}")
        return getattr(importlib.import_module(home[name]), name)

    def list_names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return load, list_names
