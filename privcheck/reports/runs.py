"""Runs as files: run.json and run.html, of online agents with regret, value, switching cost and privacy over time."""

from __future__ import annotations

import json
from pathlib import Path

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.keeping import as_report
from privcheck.reports.model import encode
from privcheck.reports.store import refuse_other_ledger
from privcheck.reports.values import Compared, Ran, RanOnline, from_json
from privcheck.run_folders import find_file, run_folder
from privcheck.whole_files import write_together

RUN_JSON, RUN_HTML = "run.json", "run.html"


def save_runs(result: RanOnline | Compared, directory: Path) -> None:
    """Writes run.json and run.html, both or neither.

    Args:
        result: What one online agent did, or several.
        directory: Where to.

    Raises:
        PrivcheckError: They cannot be written; what was there before is still there.
    """
    write_together(directory, {RUN_JSON: encode(result), RUN_HTML: _page(result)})


def render_runs_again(directory: Path) -> Path:
    """Writes run.html from run.json alone and returns its path.

    Raises:
        FileFormatError: There is no run that this version can read.
        LedgerError: A ledger beside it was changed, or is another run's.
        PrivcheckError: The page cannot be written; the old one is still there.
    """
    file, top = find_file(directory, RUN_JSON), run_folder(directory)
    result = read_runs(file)
    several = isinstance(result, Compared)
    for run in result.results if isinstance(result, Compared) else (result,):
        refuse_other_ledger(top / run.algorithm if several else top, run.ledger)
    try:
        page = _page(result)
    except (ValueError, IndexError, ParameterError) as error:  # curves of unequal lengths among them
        raise _unreadable(file, error) from None
    write_together(file.parent, {RUN_HTML: page})
    return file.parent / RUN_HTML


def read_runs(file: Path) -> Compared | RanOnline | Ran:
    """Returns what a run.json holds.

    Raises:
        FileFormatError: There is no run that this version can read.
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
    return FileFormatError(f"{file}: expected what `privcheck run NAME --out DIR` wrote; {error!s}")


def _page(result: RanOnline | Compared | Ran) -> str:
    from privcheck.reports.comparison import compared_page  # here, not above: they load matplotlib
    from privcheck.reports.html import render_html, run_page

    if isinstance(result, Ran):
        return render_html(as_report(result))
    return compared_page(result) if isinstance(result, Compared) else run_page((result,))
