"""Runs of online agents as files: run.json and run.html with regret, value, switching cost and privacy over time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privcheck.errors import FileFormatError
from privcheck.reports.html import run_page
from privcheck.reports.run_plots import curve_plots
from privcheck.reports.store import refuse_other_ledger, write_together

JSON_NAME, HTML_NAME = "run.json", "run.html"


def save_runs(result: Mapping[str, Any], directory: Path) -> None:
    """Writes run.json and run.html, both or neither.

    Args:
        result: What `privcheck run` of one online agent, or of several, prints as JSON.
        directory: Where to.

    Raises:
        PrivcheckError: They cannot be written; what was there before is still there.
    """
    runs = result.get("results", [result])
    text = json.dumps(result, allow_nan=False, indent=1, ensure_ascii=False) + "\n"
    write_together(directory, {JSON_NAME: text, HTML_NAME: run_page(runs, curve_plots(runs))})


def render_runs_again(directory: Path) -> Path:
    """Writes run.html from run.json alone and returns its path.

    Raises:
        FileFormatError: There is no run of online agents that this version can read.
        LedgerError: A ledger beside it was changed, or is another run's.
        PrivcheckError: The page cannot be written; the old one is still there.
    """
    file = directory / JSON_NAME
    try:
        result = json.loads(file.read_bytes().decode("utf-8"))
        several = "results" in result
        runs = result["results"] if several else [result]
        for run in runs:
            refuse_other_ledger(directory / run["algorithm"] if several else directory, run["ledger"])
        page = run_page(runs, curve_plots(runs))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        message = f"{file}: expected what `privcheck run NAME --out DIR` of online agents wrote; {error!r}"
        raise FileFormatError(message) from None
    write_together(directory, {HTML_NAME: page})
    return directory / HTML_NAME
