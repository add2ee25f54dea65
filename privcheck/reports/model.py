"""The report as a dict: what it must look like, and how it is read.

Every section may be missing or null, and unknown fields are kept and ignored; only `privcheck.schema` must be there.
Infinities are written as the string "inf"; NaN is refused on the way in and on the way out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.values import SCHEMA, to_json

Report = dict[str, Any]

JSON_NAME = "report.json"
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
    data: Report = to_json(report)
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
        raise FileFormatError(f"{message}, or `privcheck audit NAME --out DIR`") from None
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


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f'{constant} is not allowed; infinities are written as "inf"')
