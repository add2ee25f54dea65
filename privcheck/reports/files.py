"""Results as files and frames: report.json, run.json and their pages, written together or not at all.

Every section of report.json may be missing or null, and unknown fields are ignored; only `privcheck.schema` must be
there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from privcheck.errors import FileFormatError, LedgerError, ParameterError
from privcheck.reports.values import (
    SCHEMA,
    About,
    Audited,
    Audits,
    Budget,
    CalibratedNoise,
    Compared,
    LedgerSummary,
    Ran,
    RanOnline,
    Report,
    Shown,
    Sweep,
    VerdictBrief,
    Verified,
    document,
    from_json,
    take_fields,
    together,
)
from privcheck.runtime.run_folders import find_file, run_folder
from privcheck.support.files import write_together, write_whole

if TYPE_CHECKING:
    import pandas as pd


JSON_NAME = "report.json"


def read_report(data: dict[str, Any]) -> Report:
    """Read a report from a JSON object.

    Raises:
        ParameterError: The object contains a NaN, the schema number is missing or newer than this version reads, or a
            field is missing or of another type; the message says which.
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
    """The text of a JSON file with a report or any other report value.

    Raises:
        ParameterError: The value contains a NaN, or a type that JSON cannot express.
    """
    return json.dumps(document(value), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def digest(text: str) -> str:
    """Fingerprint of report.json, shown on its page to identify which page belongs to which file."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_report(path: Path) -> Report:
    """Load the report in a directory or a file.

    Raises:
        FileFormatError: The report is missing, cut short or otherwise not JSON, contains a NaN, has a newer schema than
            this version reads, or has a field of another type; the message says where.
    """
    file = find_file(path, JSON_NAME) if path.is_dir() else path
    return parse(read_text(path), file)


def read_text(path: Path) -> str:
    """Read the text of the report in a directory or a file.

    Raises:
        FileFormatError: The report is missing or cannot be read.
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
    """Parse the text of a report.

    Args:
        text: Content of report.json.
        file: Name of the file in messages.

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


HTML_NAME = "report.html"


def save_report(report: Report, directory: Path) -> tuple[Path, Path]:
    """Write report.json and report.html, both or neither, and return their paths.

    Both are rendered before anything is written, then written under temporary names (`….partial`), then renamed.

    Raises:
        ParameterError: The report contains a NaN.
        PrivcheckError: The files cannot be written; the previous ones are unchanged.
    """
    text = encode(report)
    write_together(directory, {JSON_NAME: text, HTML_NAME: _page(report, text)})
    return directory / JSON_NAME, directory / HTML_NAME


def save_result(value: object, path: Path) -> None:
    """Write a value as JSON, creating its folder.

    Raises:
        ParameterError: The value contains a NaN, or a type that JSON cannot express.
        OSError: The file cannot be written; the previous one is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, encode(value))


def render_again(directory: Path) -> Path:
    """Write report.html from report.json alone and return its path.

    Raises:
        FileFormatError: The report is missing or cannot be read by this version.
        LedgerError: The ledger beside it was changed, or is of another run.
        PrivcheckError: The page cannot be written; the previous one is unchanged.
    """
    text, file = read_text(directory), find_file(directory, JSON_NAME)
    report = parse(text, file)
    refuse_other_ledger(directory, report.run.ledger if report.run else None)
    write_together(file.parent, {HTML_NAME: _page(report, text)})
    return file.parent / HTML_NAME


def refuse_other_ledger(directory: Path, recorded: LedgerSummary | None) -> None:
    """Refuse a ledger in the directory that differs from the one summarised in a report.

    Raises:
        LedgerError: The ledger was changed, or is of another run.
    """
    from privcheck.runtime.ledger import FILE_NAME, read_ledger  # loads SymPy, which a page does not need

    path = run_folder(directory) / FILE_NAME
    if recorded is None or not path.exists():
        return
    read_ledger(path)
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["chain"]
    if last != recorded.digest:
        raise LedgerError(
            f"{path.name}: not the ledger of this report, which ends in {recorded.digest}; this one ends in {last}"
        )


def _page(report: Report, text: str) -> str:
    from privcheck.reports.html import render_html  # Jinja2 and Matplotlib only where a page is made

    return render_html(report, fingerprint=digest(text))


def as_report(result: object) -> Report:
    """Wrap a result as a report with one section; a report is returned unchanged.

    Raises:
        ParameterError: The result is not a section of a report.
    """
    if isinstance(result, Report):
        return result
    sections: dict[str, Any] = {}
    if isinstance(result, Verified):
        sections = {"verify": result, "verdict": take_fields(VerdictBrief, result)}
    elif isinstance(result, Audited):
        sections = {"audit": result if isinstance(result, Audits) else together({result.view: result})}
    else:
        kinds = {Shown: "show", Budget: "budget", CalibratedNoise: "calibrate", Ran: "run", RanOnline: "run"}
        if type(result) not in kinds:
            raise ParameterError(f"{type(result).__name__} has no page: save it under a name that ends in .json")
        sections = {kinds[type(result)]: result}
    name = result.name if isinstance(result, Shown) else getattr(result, "algorithm", "")
    return Report(privcheck=About(), algorithm=name, unit=getattr(result, "unit", None), **sections)


def check_page(path: Path) -> None:
    """Refuse a path that `keep` could not write, before the work whose result it is for.

    Raises:
        ParameterError: The name ends neither in .json nor in .html, or the path is a folder.
    """
    if path.suffix not in (".json", ".html") or path.is_dir():
        raise ParameterError(f"{path}: expected a name that ends in .json or .html", name="path", given=str(path))


def keep(result: object, path: Path) -> Path:
    """Write a result's JSON document or its page, by the path's ending, and return the path; see `Result.save`."""
    check_page(path)
    if path.suffix == ".json":
        save_result(result, path)
        return path
    page = _page_of_result(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page)
    return path


def _page_of_result(result: object) -> str:
    from privcheck.reports.comparisons import sweep_page
    from privcheck.reports.html import compared_page, render_html, run_page

    if isinstance(result, Sweep):
        return sweep_page(result)
    if isinstance(result, Compared):
        return compared_page(result)
    if isinstance(result, RanOnline):
        return run_page((result,))
    return render_html(as_report(result))


RUN_JSON, RUN_HTML = "run.json", "run.html"


def save_runs(result: RanOnline | Compared, directory: Path) -> None:
    """Write run.json and run.html, both or neither.

    Args:
        result: Run of one online agent, or of several.
        directory: Output folder.

    Raises:
        PrivcheckError: The files cannot be written; the previous ones are unchanged.
    """
    write_together(directory, {RUN_JSON: encode(result), RUN_HTML: _page_of_runs(result)})


def render_runs_again(directory: Path) -> Path:
    """Write run.html from run.json alone and return its path.

    Raises:
        FileFormatError: The run is missing or cannot be read by this version.
        LedgerError: A ledger beside it was changed, or is of another run.
        PrivcheckError: The page cannot be written; the previous one is unchanged.
    """
    file, top = find_file(directory, RUN_JSON), run_folder(directory)
    result = read_runs(file)
    several = isinstance(result, Compared)
    for run in result.results if isinstance(result, Compared) else (result,):
        refuse_other_ledger(top / run.algorithm if several else top, run.ledger)
    try:
        page = _page_of_runs(result)
    except (ValueError, IndexError, ParameterError) as error:  # curves of unequal lengths among them
        raise _unreadable(file, error) from None
    write_together(file.parent, {RUN_HTML: page})
    return file.parent / RUN_HTML


def read_runs(file: Path) -> Compared | RanOnline | Ran:
    """Read a run.json.

    Raises:
        FileFormatError: The run is missing or cannot be read by this version.
    """
    try:
        data = json.loads(file.read_bytes().decode("utf-8"))
        if not isinstance(data, dict):
            raise ParameterError("got something else")  # noqa: TRY301 - one message for all that it is not
        if "results" in data:
            return from_json(Compared, data, "run")
        return from_json(RanOnline, data, "run") if "regret" in data else from_json(Ran, data, "run")
    except (OSError, ValueError, ParameterError) as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: Exception) -> FileFormatError:
    return FileFormatError(f"{file}: expected the output of `privcheck run NAME --out DIR`; {error!s}")


def _page_of_runs(result: RanOnline | Compared | Ran) -> str:
    from privcheck.reports.html import (
        compared_page,  # here, not above: they load matplotlib
        render_html,
        run_page,
    )

    if isinstance(result, Ran):
        return render_html(as_report(result))
    return compared_page(result) if isinstance(result, Compared) else run_page((result,))


def make_frame(content: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a pandas frame.

    Args:
        content: Columns by name, or rows.

    Raises:
        ParameterError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ParameterError("frames are pandas', which is not installed: pip install pandas") from None
    return pd.DataFrame(content)
