"""One result as a report, a page, a file or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privcheck.errors import ParameterError
from privcheck.reports.store import save_result
from privcheck.reports.values import (
    About,
    Audited,
    Audits,
    Budget,
    CalibratedNoise,
    Compared,
    Ran,
    RanOnline,
    Report,
    Shown,
    Sweep,
    VerdictBrief,
    Verified,
    together,
)
from privcheck.whole_files import write_whole


def as_report(result: object) -> Report:
    """Returns a report of which the result is the one section; a report itself as it is.

    Raises:
        ParameterError: It is no section of a report.
    """
    if isinstance(result, Report):
        return result
    sections: dict[str, Any] = {}
    if isinstance(result, Verified):
        brief = VerdictBrief(verdict=result.verdict, method=result.method, sentence=result.sentence, given=result.given)
        sections = {"verify": result, "verdict": brief}
    elif isinstance(result, Audited):
        sections = {"audit": result if isinstance(result, Audits) else together({result.view: result})}
    else:
        kinds = {Shown: "show", Budget: "budget", CalibratedNoise: "calibrate", Ran: "run", RanOnline: "run"}
        if type(result) not in kinds:
            raise ParameterError(f"{type(result).__name__} has no page: save it under a name that ends in .json")
        sections = {kinds[type(result)]: result}
    name = result.name if isinstance(result, Shown) else getattr(result, "algorithm", "")
    return Report(privcheck=About(), algorithm=name, unit=getattr(result, "unit", None), **sections)


def keep(result: object, path: Path) -> Path:
    """Writes a result's JSON document or its page, by the path's ending, and returns the path; see `Result.save`."""
    if path.suffix not in (".json", ".html"):
        raise ParameterError(f"{path}: expected a name that ends in .json or .html", name="path", given=str(path))
    if path.suffix == ".json":
        save_result(result, path)
        return path
    page = _page(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page)
    return path


def _page(result: object) -> str:
    from privcheck.reports.comparison import compared_page
    from privcheck.reports.html import render_html, run_page
    from privcheck.reports.swept import sweep_page

    if isinstance(result, Sweep):
        return sweep_page(result)
    if isinstance(result, Compared):
        return compared_page(result)
    if isinstance(result, RanOnline):
        return run_page((result,))
    return render_html(as_report(result))
