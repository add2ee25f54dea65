"""Where reports are kept: report.json and report.html, written together or not at all."""

from __future__ import annotations

import json
from pathlib import Path

from privcheck.errors import LedgerError
from privcheck.reports.model import JSON_NAME, digest, encode, parse, read_text
from privcheck.reports.values import LedgerSummary, Report
from privcheck.run_folders import find_file, run_folder
from privcheck.whole_files import write_together, write_whole

HTML_NAME = "report.html"


def save_report(report: Report, directory: Path) -> tuple[Path, Path]:
    """Writes report.json and report.html, both or neither, and returns their paths.

    Both are rendered before anything is written, then written under temporary names (`….partial`), then renamed.

    Raises:
        ParameterError: There is a NaN in the report.
        PrivcheckError: The files cannot be written; what was there before is still there.
    """
    text = encode(report)
    write_together(directory, {JSON_NAME: text, HTML_NAME: _page(report, text)})
    return directory / JSON_NAME, directory / HTML_NAME


def save_result(value: object, path: Path) -> None:
    """Writes what a command prints as JSON, and the directory where it goes.

    Raises:
        ParameterError: There is a NaN in it, or what JSON has no form for.
        OSError: It cannot be written; what was there before is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, encode(value))


def render_again(directory: Path) -> Path:
    """Writes report.html from report.json alone and returns its path.

    Raises:
        FileFormatError: There is no report that this version can read.
        LedgerError: The ledger beside it was changed, or is another run's.
        PrivcheckError: The page cannot be written; the old one is still there.
    """
    text, file = read_text(directory), find_file(directory, JSON_NAME)
    report = parse(text, file)
    refuse_other_ledger(directory, report.run.ledger if report.run else None)
    write_together(file.parent, {HTML_NAME: _page(report, text)})
    return file.parent / HTML_NAME


def refuse_other_ledger(directory: Path, recorded: LedgerSummary | None) -> None:
    """Refuses a ledger in the directory that is not the one whose summary a report has.

    Raises:
        LedgerError: It was changed, or is another run's.
    """
    from privcheck.runtime.ledger import FILE_NAME, read_ledger  # loads SymPy, which a page does not need

    path = run_folder(directory) / FILE_NAME
    if recorded is None or not path.exists():
        return
    read_ledger(path)
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["chain"]
    if last != recorded.digest:
        raise LedgerError(
            f"{path.name}: not the ledger of this report; the report's ends in {recorded.digest}, this in {last}"
        )


def _page(report: Report, text: str) -> str:
    from privcheck.reports.html import render_html  # Jinja2 and Matplotlib only where a page is made

    return render_html(report, fingerprint=digest(text))
