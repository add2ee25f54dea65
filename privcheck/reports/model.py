"""report.json: how it is written and read.

Every section may be missing or null, and unknown fields are ignored; only `privcheck.schema` must be there.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.values import SCHEMA, Report, document, from_json
from privcheck.run_folders import find_file

JSON_NAME = "report.json"


def read_report(data: dict[str, Any]) -> Report:
    """Returns the report that a JSON object holds.

    Raises:
        ParameterError: There is a NaN, the schema number is missing or newer than this version reads, or a field is
            missing or of another type; the message says which.
    """
    about = data.get("privcheck")
    schema = about.get("schema") if isinstance(about, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        message = f"expected a report with a schema number in privcheck.schema, got {schema!r}"
        raise ParameterError(message, name="schema", given=schema)
    if schema > SCHEMA:
        message = f"the report has schema {schema}, this version reads up to {SCHEMA}: use a newer privcheck"
        raise ParameterError(message, name="schema", given=schema)
    return from_json(Report, data)


def encode(value: object) -> str:
    """Returns the text of a JSON file that holds a report, or any other report value.

    Raises:
        ParameterError: There is a NaN in it, or what JSON has no form for.
    """
    return json.dumps(document(value), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def digest(text: str) -> str:
    """Returns a fingerprint of report.json, which its page shows, so that one can tell which page belongs to which."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_report(path: Path) -> Report:
    """Returns the report in a directory or in a file.

    Raises:
        FileFormatError: There is none, it is cut short or otherwise not JSON, it holds a NaN, its schema is newer
            than this version reads, or it is not the report of this form; the message says where.
    """
    file = find_file(path, JSON_NAME) if path.is_dir() else path
    return parse(read_text(path), file)


def read_text(path: Path) -> str:
    """Returns the text of the report in a directory or in a file.

    Raises:
        FileFormatError: There is none, or it cannot be read.
    """
    file = find_file(path, JSON_NAME) if path.is_dir() else path
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        message = f"no {JSON_NAME} in {path}: expected the directory that `privcheck check NAME --out DIR` wrote"
        raise FileFormatError(f"{message}, or `privcheck audit NAME --out DIR`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{file}: cannot be read as a report: {error}") from None


def parse(text: str, file: Path) -> Report:
    """Returns the report that a text holds.

    Args:
        text: Of report.json.
        file: How messages call it.

    Raises:
        FileFormatError: As `load_report`.
    """
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{file}: not a complete JSON report: {error}") from None
    if not isinstance(data, dict):
        raise FileFormatError(f"{file}: expected a report, a JSON object; got {type(data).__name__}")
    try:
        return read_report(data)
    except ParameterError as error:
        raise FileFormatError(f"{file}: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f'{constant} is not allowed; an infinite number is null, with "inf" beside it')
