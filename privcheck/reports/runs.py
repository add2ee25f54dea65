"""Runs of online agents as files: run.json and run.html with regret, value, switching cost and privacy over time."""

from __future__ import annotations

import json
from pathlib import Path

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.model import encode
from privcheck.reports.store import refuse_other_ledger
from privcheck.reports.values import Compared, RanOnline, from_json
from privcheck.whole_files import write_together

JSON_NAME, HTML_NAME = "run.json", "run.html"


def save_runs(result: RanOnline | Compared, directory: Path) -> None:
    """Writes run.json and run.html, both or neither.

    Args:
        result: What one online agent did, or several.
        directory: Where to.

    Raises:
        PrivcheckError: They cannot be written; what was there before is still there.
    """
    write_together(directory, {JSON_NAME: encode(result), HTML_NAME: _page(result)})


def render_runs_again(directory: Path) -> Path:
    """Writes run.html from run.json alone and returns its path.

    Raises:
        FileFormatError: There is no run of online agents that this version can read.
        LedgerError: A ledger beside it was changed, or is another run's.
        PrivcheckError: The page cannot be written; the old one is still there.
    """
    file = directory / JSON_NAME
    try:
        data = json.loads(file.read_bytes().decode("utf-8"))
        several = isinstance(data, dict) and "results" in data
        result = from_json(Compared, data, "run") if several else from_json(RanOnline, data, "run")
        for run in result.results if isinstance(result, Compared) else (result,):
            refuse_other_ledger(directory / run.algorithm if several else directory, run.ledger)
        page = _page(result)
    except (OSError, ValueError, IndexError, ParameterError) as error:  # curves of unequal lengths among them
        message = f"{file}: expected what `privcheck run NAME --out DIR` of online agents wrote; {error!s}"
        raise FileFormatError(message) from None
    write_together(directory, {HTML_NAME: page})
    return directory / HTML_NAME


def _page(result: RanOnline | Compared) -> str:
    from privcheck.reports.comparison import compared_page  # here, not above: they load matplotlib
    from privcheck.reports.html import run_page

    return compared_page(result) if isinstance(result, Compared) else run_page((result,))
