"""A failed audit in a test: its page, and code that can be pasted into a test file and fails in the same way.

A value is written as an expression for an equal value; a value without one is named and left to the reader. Large data
are written to files beside the report, and the code loads them.
"""

from __future__ import annotations

import dataclasses
import decimal
import enum
import fractions
import json
import math
import platform
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.reports import save_report
from privcheck.reports.values import About, Audited, Provenance, Report, together
from privcheck.runtime.audit_pictures import Bar, Bars, ShownPair
from privcheck.runtime.auditors import MechanismAudit, MechanismClaim

_INLINE: Final = 200  # numbers of an array that are written out
_LONG: Final = 800  # characters of plain data that are written out
_NUMERIC: Final = "biufc"
DATA_NAME: Final = "witness"
_PLAIN: Final = (bool, int, str, bytes)
_ARRAY_DTYPES: Final = ("int64", "float64", "bool", "int32", "float32")


class UnwritableError(Exception):
    """A value cannot be written as an expression."""


@dataclass(slots=True, kw_only=True)
class Writer:
    """Writer of values as expressions, with their imports and files.

    Attributes:
        directory: Folder for files of large data; None to write out everything.
        imports: Import lines.
        arrays: Arrays of the .npz file, by name.
        texts: Contents of other files, by name.
    """

    directory: Path | None
    imports: set[str] = field(default_factory=set)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, value: Any) -> str:
        """An expression for an equal value.

        Raises:
            UnwritableError: There is no such expression.
        """
        if value is None or type(value) in _PLAIN:
            return repr(value)
        if type(value) is float:
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        for kinds, write in _WRITERS:
            if isinstance(value, kinds):
                return write(self, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            kept = [each for each in dataclasses.fields(value) if each.init]
            inside = ", ".join(f"{each.name}={self.write(getattr(value, each.name))}" for each in kept)
            return f"{self.name(type(value))}({inside})"
        if callable(value):
            return self.name(value)
        if type(value).__module__.partition(".")[0] == "pandas":
            return _pandas(self, value)
        raise UnwritableError(f"a {type(value).__qualname__}")

    def name(self, given: Any) -> str:
        """The name of a function or a class, with its import added.

        Raises:
            UnwritableError: The object cannot be imported by name.
        """
        module, qualified = getattr(given, "__module__", None) or "", getattr(given, "__qualname__", "")
        found = sys.modules.get(module)
        for part in qualified.split("."):
            found = getattr(found, part, None)
        if found is not given or module == "__main__":
            raise UnwritableError(f"{qualified or type(given).__qualname__}, which cannot be imported")
        if module != "builtins":
            self.imports.add(f"from {_public(module, given)} import {qualified.partition('.')[0]}")
        return qualified


def _array(writer: Writer, value: NDArray[Any]) -> str:
    if value.dtype.kind not in _NUMERIC + "US" or type(value) is not np.ndarray:
        raise UnwritableError(f"an array of {value.dtype}")
    writer.imports.add("import numpy as np")
    if value.size > _INLINE and writer.directory is not None:
        name = f"a{len(writer.arrays)}"
        writer.arrays[name] = value
        return f'np.load({str(writer.directory / f"{DATA_NAME}.npz")!r})["{name}"]'
    dtype = value.dtype.name if value.dtype.kind in _NUMERIC else value.dtype.str
    if value.size == 0:
        return f'np.zeros({value.shape}, dtype="{dtype}")'
    first = value.flat[0]
    if value.size > 1 and value.dtype.kind in "biuf" and value.tobytes() == np.full(value.shape, first).tobytes():
        return f'np.full({value.shape}, {writer.write(first.item())}, dtype="{dtype}")'
    return f'np.array({writer.write(value.tolist())}, dtype="{dtype}")'


def _scalar(writer: Writer, value: np.generic) -> str:
    if value.dtype.kind not in _NUMERIC:
        raise UnwritableError(f"a {type(value).__qualname__}")
    writer.imports.add("import numpy as np")
    return f'np.dtype("{value.dtype.name}").type({writer.write(value.item())})'


def _items(writer: Writer, value: Any) -> str:
    if type(value) not in (list, tuple, set, frozenset, dict):
        raise UnwritableError(f"a {type(value).__qualname__}")
    stored = _json(writer, value)
    if stored is not None:
        return stored
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{writer.write(key)}: {writer.write(each)}" for key, each in value.items()) + "}"
    parts = [writer.write(each) for each in (sorted(value, key=repr) if isinstance(value, set | frozenset) else value)]
    inside = ", ".join(parts)
    if isinstance(value, list):
        return f"[{inside}]"
    if isinstance(value, tuple):
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    return f"{type(value).__name__}([{inside}])"


def _json(writer: Writer, value: Any) -> str | None:
    """Expression that loads long plain data from a file; None for all other data."""
    if writer.directory is None or not isinstance(value, list | dict) or len(repr(value)) <= _LONG:
        return None
    try:
        text = json.dumps(value)
        same = repr(json.loads(text)) == repr(value)  # keys that are no texts and tuples change
    except (TypeError, ValueError):
        return None
    if not same:
        return None
    name = f"{DATA_NAME}-{len(writer.texts)}.json"
    writer.texts[name] = text
    writer.imports |= {"import json", "from pathlib import Path"}
    return f"json.loads(Path({str(writer.directory / name)!r}).read_text())"


def _complex(writer: Writer, value: complex) -> str:
    return f"complex({writer.write(float(value.real))}, {writer.write(float(value.imag))})"


def _fraction(writer: Writer, value: fractions.Fraction) -> str:
    writer.imports.add("from fractions import Fraction")
    return f"Fraction({value.numerator}, {value.denominator})"


def _decimal(writer: Writer, value: decimal.Decimal) -> str:
    writer.imports.add("from decimal import Decimal")
    return f'Decimal("{value}")'


def _enum(writer: Writer, value: enum.Enum) -> str:
    return f"{writer.name(type(value))}.{value.name}"


def _partial(writer: Writer, value: partial[Any]) -> str:
    writer.imports.add("from functools import partial")
    parts = [writer.write(value.func), *map(writer.write, value.args)]
    return f"partial({', '.join([*parts, *(f'{name}={writer.write(x)}' for name, x in value.keywords.items())])})"


def _pandas(writer: Writer, value: Any) -> str:
    writer.imports.add("import pandas as pd")
    index = f"pd.Index({writer.write(value.index.tolist())}, dtype={str(value.index.dtype)!r})"
    if hasattr(value, "columns"):
        columns = [f"{writer.write(name)}: {_series(writer, value[name])}" for name in value.columns]
        return f"pd.DataFrame({{{', '.join(columns)}}}).set_axis({index})"
    return f"{_series(writer, value)}.set_axis({index})"


def _series(writer: Writer, value: Any) -> str:
    dtype = str(value.dtype)
    values = value.to_numpy() if dtype in _ARRAY_DTYPES else value.tolist()
    return f"pd.Series({writer.write(values)}, dtype={dtype!r})"


_WRITERS: Final[tuple[tuple[Any, Callable[[Writer, Any], str]], ...]] = (
    (np.ndarray, _array),
    (np.generic, _scalar),
    (enum.Enum, _enum),
    (fractions.Fraction, _fraction),
    (decimal.Decimal, _decimal),
    (complex, _complex),
    (partial, _partial),
    ((list, tuple, set, frozenset, dict), _items),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Code, and the files it loads.

    Attributes:
        code: A test.
        arrays: Arrays of its .npz file.
        texts: Contents of its other files, by name.
    """

    code: str
    arrays: Mapping[str, NDArray[Any]]
    texts: Mapping[str, str]

    def save(self, directory: Path) -> None:
        """Write the files, and the code as witness.py."""
        directory.mkdir(parents=True, exist_ok=True)
        if self.arrays:
            np.savez_compressed(directory / f"{DATA_NAME}.npz", **dict(self.arrays))  # type: ignore[arg-type]
        for name, text in {**self.texts, f"{DATA_NAME}.py": self.code}.items():
            (directory / name).write_text(text, encoding="utf-8")


def write_witness(
    mechanism: Callable[..., Any],
    claim: MechanismClaim,
    arguments: Mapping[str, Any],
    *,
    directory: Path | None,
) -> Witness:
    """Write a test that repeats the audit.

    Args:
        mechanism: The function; one that cannot be imported is called `mechanism`.
        claim: The claim.
        arguments: Arguments of `assert_private`, by name.
        directory: Folder for large data; None to write out everything.
    """
    writer = Writer(directory=directory, imports={"from privcheck.testing import assert_private"})
    remarks: list[str] = []

    def attempt(value: Any, name: str) -> str:
        try:
            return writer.write(value)
        except UnwritableError as error:
            remarks.append(f"# {name}: value of the failing test, {error}")
            return name

    of = ", ".join(f'"{getattr(claim, each.name)}"' for each in dataclasses.fields(claim))
    parts = [attempt(mechanism, "mechanism"), f"{writer.name(type(claim))}({of})"]
    parts += [f"{name}={attempt(value, name)}" for name, value in arguments.items()]
    order = sorted(writer.imports, key=lambda line: (line.startswith("from privcheck"), line.split()[1], line))
    body = [*order, "", *remarks, "assert_private(", *(f"    {part}," for part in parts), ")"]
    code = "def test_witness():\n" + textwrap.indent("\n".join(body), "    ") + "\n"
    return Witness(code=code, arrays=writer.arrays, texts=writer.texts)


def _public(module: str, given: Any) -> str:
    """The package that exports a name of privcheck, or its module."""
    package = module.partition(".")[0]
    shown = getattr(sys.modules.get(package), given.__qualname__.partition(".")[0], None)
    return package if package == "privcheck" and shown is not None else module


_LETTERS: Final = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}
_MOST_ROWS: Final = 60  # users of a pair that are shown
_LONGEST: Final = 120  # characters of a record
_ASKS: Final = "Do the function's outputs distinguish two neighbouring datasets better than its claim allows?"


def save_page(found: MechanismAudit, directory: Path, *, mechanism: str, test: str, code: str, started: str) -> Path:
    """Write report.html and report.json, and return the page's path.

    Args:
        found: The audit.
        directory: Output folder.
        mechanism: Name of the function.
        test: Name of the test.
        code: Code that repeats the audit.
        started: Start time of the test.

    Raises:
        PrivcheckError: The files cannot be written.
    """
    letter = _LETTERS[found.unit]
    is_epsilon = found.unit == "epsilon"
    pair = None if not found.neighbours else found.neighbours[found.pair]
    audited = Audited(
        algorithm=mechanism,
        view="black box",
        trials=found.trials,
        confidence=found.confidence,
        delta=found.delta,
        epsilon_lower=found.lower if is_epsilon else None,
        epsilon_upper=None,
        epsilon_claimed=found.claimed if is_epsilon else None,
        verdict=found.verdict,
        reachable=found.reachable if is_epsilon else None,
        method=found.method,
        witness=" ".join(found.notes),
        evidence={
            f"{letter} claimed": found.claimed,
            f"{letter} at least": found.lower,
            f"least {letter} that could have been detected": found.visible,
            **({} if found.needed is None else {"trials needed to show twice the claim": found.needed}),
            "pair": found.pair,
            "runs": found.runs,
            "most_runs": 2 * found.trials * max(1, len(found.neighbours)),
            "ended": found.ended,
            **found.evidence,
        },
        seconds=found.seconds,
        trials_per_second=found.runs / max(found.seconds, 1e-9),
        claim=found.claim,
        seed=found.seed,
        agent_ran=True,
        asks=_ASKS,
        trade_off=found.trade_off,
        pair=None if pair is None else show_records(*pair),
        bars=None if found.trade_off is not None or found.claimed == 0 else _against_claim(found, letter),
    )
    report = Report(
        privcheck=About(version=version("privcheck")),
        algorithm=mechanism,
        title=test,
        audit=together({"black box": audited}),
        provenance=Provenance(
            versions={"python": platform.python_version(), **{name: version(name) for name in ("privcheck", "numpy")}},
            seeds={"audit": found.seed},
            command=code,
            started=started,
            seconds=found.seconds,
        ),
    )
    return save_report(report, directory)[1]


def show_records(first: Any, other: Any) -> ShownPair | None:
    """Two datasets side by side, differing records first; None if one of them is empty."""
    if not (_is_sequence(first) and _is_sequence(other)):
        first, other = [first], [other]
    if min(len(first), len(other)) == 0:
        return None
    rows = range(max(len(first), len(other)))
    cells = [[_words(data[i]) if i < len(data) else "absent" for i in rows] for data in (first, other)]
    order = sorted(rows, key=lambda i: cells[0][i] == cells[1][i])[:_MOST_ROWS]
    left = len(rows) - len(order)
    return ShownPair(
        title="The neighbours, record by record.",
        row="position",
        columns=("record",),
        labels=tuple(str(i) for i in order),
        first=tuple((cells[0][i],) for i in order),
        second=tuple((cells[1][i],) for i in order),
        note=f"{left} further records are not shown." if left else "",
    )


def _is_sequence(dataset: Any) -> bool:
    if isinstance(dataset, np.ndarray):
        return dataset.ndim > 0
    return isinstance(dataset, Sequence) and not isinstance(dataset, str | bytes)


def _words(record: Any) -> str:
    text = " ".join(str(record).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _against_claim(found: MechanismAudit, letter: str) -> Bars:
    level = f"{100 * found.confidence:.6g} %"
    return Bars(
        quantity=f"{letter} at least / {letter} claimed",
        one_sided=True,
        caption=f"The lower bound over the claim, at {level} confidence; above 1 the claim is refuted.",
        bars=(
            Bar(
                name=f"pair {found.pair}",
                ratio=found.lower / found.claimed,
                violated=found.verdict == "violation",
                words=f"{found.lower:.4g} of {found.claimed:.4g}",
            ),
        ),
    )
