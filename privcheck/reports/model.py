"""The report as a dict: what it must look like, and how it is read and written.

Every section may be missing or null, and unknown fields are kept and ignored; only `privcheck.schema` must be there.
Infinities are written as the string "inf"; NaN is refused on the way in and on the way out.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from privcheck.errors import FileFormatError, ParameterError, PrivcheckError

Report = dict[str, Any]

SCHEMA = 1
JSON_NAME = "report.json"
HTML_NAME = "report.html"
SECTIONS = (
    "parameters", "options", "choices", "verdict", "show", "budget", "verify", "calibrate", "audit", "run",
    "provenance",
)  # fmt: skip


def checked(report: Mapping[str, Any]) -> Report:
    """Returns the report as plain JSON values: infinities as "inf", fractions as strings, arrays as lists.

    Args:
        report: The dict of a finished check. NumPy scalars and arrays, fractions and paths are allowed in it.

    Raises:
        ParameterError: There is a NaN or a value JSON has no form for (the message says where), the schema number is
            missing or newer than this version reads, or a section is not an object.
    """
    data: Report = _plain(report, "report")
    about = data.get("privcheck")
    schema = about.get("schema") if isinstance(about, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        message = f"expected a report with a schema number in privcheck.schema, got {schema!r}"
        raise ParameterError(message, name="schema", given=schema)
    if schema > SCHEMA:
        message = f"the report has schema {schema}, this version reads up to {SCHEMA}: use a newer privcheck"
        raise ParameterError(message, name="schema", given=schema)
    for name in SECTIONS:
        if not isinstance(data.get(name), dict | None):
            message = f"{name}: expected an object or null, got {type(data[name]).__name__}"
            raise ParameterError(message, name=name, given=data[name])
    return data


def encode(report: Mapping[str, Any]) -> str:
    """Returns the text of report.json.

    Raises:
        ParameterError: The report is not one; see `checked`.
    """
    return json.dumps(checked(report), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def digest(text: str) -> str:
    """Returns a fingerprint of report.json, which its page shows, so that one can tell which page belongs to which."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_report(path: Path) -> Report:
    """Returns the report in a directory or in a file.

    Raises:
        FileFormatError: There is none, it is cut short or otherwise not JSON, it holds a NaN, or its schema is newer
            than this version reads.
    """
    file = path / JSON_NAME if path.is_dir() else path
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        message = f"no {JSON_NAME} in {path}: expected the directory that `privcheck check NAME --out DIR` wrote"
        raise FileFormatError(message) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{file}: cannot be read as a report: {error}") from None
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{file}: not a complete JSON report: {error}") from None
    if not isinstance(data, dict):
        raise FileFormatError(f"{file}: expected a report, a JSON object; got {type(data).__name__}")
    try:
        return checked(data)
    except ParameterError as error:
        raise FileFormatError(f"{file}: {error}") from None


def save_report(report: Mapping[str, Any], directory: Path) -> tuple[Path, Path]:
    """Writes report.json and report.html, both or neither, and returns their paths.

    Both are rendered before anything is written, then written under temporary names (`….partial`), then renamed.

    Raises:
        ParameterError: The report is not one; see `checked`.
        PrivcheckError: The files cannot be written; what was there before is still there.
    """
    data = checked(report)
    _write_together(directory, {JSON_NAME: encode(data), HTML_NAME: _page(data)})
    return directory / JSON_NAME, directory / HTML_NAME


def render_again(directory: Path) -> Path:
    """Writes report.html from report.json alone and returns its path.

    Raises:
        FileFormatError: There is no report that this version can read.
        PrivcheckError: The page cannot be written; the old one is still there.
    """
    _write_together(directory, {HTML_NAME: _page(load_report(directory))})
    return directory / HTML_NAME


def _page(data: Report) -> str:
    from privcheck.reports.html import render_html  # Jinja2 and Matplotlib only where a page is made

    return render_html(data)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f'{constant} is not allowed; infinities are written as "inf"')


def _plain(value: Any, where: str) -> Any:
    plain: Any = value
    if isinstance(value, str):
        plain = _text(value, where)
    elif isinstance(value, float):
        plain = _float(value, where)
    elif isinstance(value, Mapping):
        plain = {_text(str(key), where): _plain(item, f"{where}.{key}") for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        plain = [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    elif isinstance(value, (Fraction, Path)):
        plain = str(value)
    elif hasattr(value, "tolist"):  # NumPy scalars and arrays
        plain = _plain(value.tolist(), where)
    elif value is not None and not isinstance(value, (bool, int)):
        message = f"{where}: a value of type {type(value).__name__} has no place in a report"
        raise ParameterError(message, name=where, given=value)
    return plain


def _float(value: float, where: str) -> float | str:
    if math.isnan(value):
        raise ParameterError(f"{where} is NaN; expected a number, or null where there is none", name=where)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)


def _text(value: str, where: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ParameterError(f"{where}: not a text that can be written: {error}", name=where, given=value) from None
    return str(value)


def _write_together(directory: Path, texts: Mapping[str, str]) -> None:
    created = not directory.exists()
    partial = {name: directory / f"{name}.partial" for name in texts}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with partial[name].open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        _rename_together(directory, partial)
    except BaseException as error:
        for path in partial.values():
            with suppress(OSError):
                path.unlink()
        if created:
            with suppress(OSError):
                directory.rmdir()
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise PrivcheckError(f"cannot write the report to {directory}: {reason}; nothing was changed") from error
        raise


def _rename_together(directory: Path, partial: Mapping[str, Path]) -> None:
    # each rename is atomic, two of them are not: where a later one fails the earlier ones are undone
    before = {name: path.read_bytes() if (path := directory / name).exists() else None for name in partial}
    renamed: list[str] = []
    try:
        for name, path in partial.items():
            os.replace(path, directory / name)  # noqa: PTH105 - the tests make exactly this call fail
            renamed.append(name)
    except BaseException:
        for name in renamed:
            old = before[name]
            if old is None:
                (directory / name).unlink()
            else:
                partial[name].write_bytes(old)
                os.replace(partial[name], directory / name)  # noqa: PTH105
        raise
