"""What registered algorithms are made of, and a few that together have every part: a cover of the registry.

A test of what everything registered must do asks `over_registry` for its cases. Those of a greedy cover of all features
run with every change, the others in the nightly tier. A feature is a kind of statistic, mechanism, schedule, relation,
model, guarantee or agent, or a field that is set: whatever fields of dataclasses say without numbers and names. So an
algorithm with anything new in its declaration is in the cover by itself.

Making every declaration takes seconds. So features are kept in pytest's cache, until any line of the packages changes.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

import privcheck
import privcheck_algorithms
from privcheck.declare.declaration import Declaration
from privcheck.runtime import registry

KEPT = Path(__file__).parents[1] / ".pytest_cache" / "structures.json"
IN_TEXT = {"model", "scope", "initial", "noise", "direction", "sees", "composition"}  # fields of closed vocabularies
NUMBERS = "privcheck.terms.symbols"  # formulas are no structure
Case = tuple[str, tuple[tuple[str, str], ...]]  # a registered name, and the readings that are not the defaults


def features(value: Any, owner: str = "") -> Iterator[str]:
    """Yields what a declaration or an algorithm is made of: kinds of parts, by the field that holds them."""
    if isinstance(value, tuple):
        for part in value:
            yield from features(part, owner)
    elif dataclasses.is_dataclass(value) and not type(value).__module__.startswith(NUMBERS):
        kind = type(value).__name__
        yield f"{owner} is {kind}"
        for field in dataclasses.fields(value):
            held = getattr(value, field.name)
            if field.name in IN_TEXT:
                yield f"{kind}.{field.name} = {held}"
            elif isinstance(held, bool) or held is None:
                yield f"{kind}.{field.name} is {held}"
            else:
                yield from features(held, f"{kind}.{field.name}")
    elif callable(value) and not isinstance(value, type):
        yield f"{owner} is given"


def _uses(algorithm: registry.Algorithm, declared: Declaration | None) -> set[str]:
    """Returns what a list of cases may be restricted to."""
    has = {
        "declared": declared is not None,
        "running": algorithm.runs,
        "from data": algorithm.from_data,
        "gallery": algorithm.paper is not None and algorithm.paper.name == "gallery",
        "regressing": algorithm.offline is not None and algorithm.offline.regressing is not None,
        "online": algorithm.online is not None,
        "fresh noise": declared is not None and not declared.shared_draws,
    }
    return {use for use, so in has.items() if so}


def _describe_all() -> dict[Case, frozenset[str]]:
    found = {}
    for name in registry.names("algorithms"):
        algorithm = registry.algorithm(name)
        readings = [(), *(((c.name, way),) for c in algorithm.readings for way in c.ways[1:])]
        for given in readings if algorithm.declare is not None else [()]:
            declared = None if algorithm.declare is None else algorithm.declare(dict(given))
            parts = {*features(algorithm, "algorithm"), *features(declared, "declaration")}
            found[name, given] = frozenset(parts | _uses(algorithm, declared))
    return found


def _digest() -> str:
    """Returns a digest of the packages' text and of the registered names."""
    digest = hashlib.sha256(json.dumps(registry.names("algorithms")).encode())
    for path in (Path(__file__), *(Path(str(p.__file__)).parent for p in (privcheck, privcheck_algorithms))):
        for source in [path] if path.is_file() else sorted(path.rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()


@functools.cache
def described() -> dict[Case, frozenset[str]]:
    """Returns the features of every registered algorithm under every reading, one changed at a time."""
    digest = _digest()
    if KEPT.is_file():
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        if kept["digest"] == digest:
            return {(name, tuple(map(tuple, given))): frozenset(parts) for name, given, parts in kept["cases"]}
    found = _describe_all()
    KEPT.parent.mkdir(exist_ok=True)
    beside = KEPT.with_suffix(f".{os.getpid()}")
    cases = [[name, given, sorted(parts)] for (name, given), parts in found.items()]
    beside.write_text(json.dumps({"digest": digest, "cases": cases}), encoding="utf-8")
    beside.replace(KEPT)  # workers of one run may write at the same time
    return found


def cover(cases: Iterable[Case]) -> list[Case]:
    """Returns a greedy cover, that with most first: cases that together have every feature that any has."""
    have = {case: described()[case] for case in cases}
    missing = frozenset().union(*have.values())
    chosen: list[Case] = []
    while missing:
        best = max(have, key=lambda case: (len(have[case] & missing), not case[1]))  # of equals the defaults
        chosen.append(best)
        missing -= have[best]
    return chosen


def over_registry(
    *uses: str, readings: bool = False, but: Container[str] = (), fast: int | None = None
) -> list[ParameterSet]:
    """Returns the cases of a test over everything registered: those of a cover per change, the others nightly.

    Args:
        uses: What each has, of `_uses`.
        readings: Whether cases are pairs of a name and the readings that are not the defaults, as `declare` takes
            them, of which those other than {} are slow; else names.
        but: Names that are left out.
        fast: How many of the cover are in the fast tier; all where no number is given.
    """
    cases = [case for case, parts in described().items() if parts.issuperset(uses) and case[0] not in but]
    cases = cases if readings else [case for case in cases if not case[1]]
    kept = cover(cases)

    def parameters(case: Case) -> ParameterSet:
        name, given = case
        late = given or case not in kept[:fast]
        marks = pytest.mark.nightly if case not in kept else pytest.mark.slow if late else ()
        if not readings:
            return pytest.param(name, marks=marks, id=name)
        return pytest.param(name, dict(given), marks=marks, id="-".join((name, *map("=".join, given))))

    return list(map(parameters, cases))
