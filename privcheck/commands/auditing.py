"""The report of audits alone: the views that were audited into one directory, on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privcheck.commands.learned import VIEWS
from privcheck.commands.provenance import Began, about, provenance
from privcheck.commands.setting import Setting
from privcheck.errors import ParameterError
from privcheck.reports import load_report
from privcheck.reports.model import JSON_NAME

Views = Mapping[str, Mapping[str, Any]]
_OF_A_CHECK = ("verify", "run")  # sections that audits alone do not have
_SAME = ("algorithm", "parameters", "options", "choices", "privcheck")


def earlier_views(setting: Setting, directory: Path) -> Views:
    """Returns the views that an earlier audit of the same reported into the directory; none where it was another.

    Raises:
        ParameterError: The directory holds the report of a check, which would be lost.
        FileFormatError: What is there is no report that this version can read.
    """
    if not (directory / JSON_NAME).exists():
        return {}
    report = load_report(directory)
    if any(report.get(name) for name in _OF_A_CHECK):
        message = f"{directory} holds the report of a check, of which audits are a part: choose another --out"
        raise ParameterError(message, name="out", given=str(directory))
    here = _about(setting)
    same = all(report.get(name) == here[name] for name in _SAME)
    views = (report.get("audit") or {}).get("views", {})
    return views if same else {}


def audit_report(
    setting: Setting, result: Mapping[str, Any], earlier: Views, *, command: Sequence[str], began: Began
) -> dict[str, Any]:
    """Returns the report of one audit, beside earlier ones of other views.

    Args:
        setting: What was audited.
        result: As `privcheck.commands.learned.audit` returns it.
        earlier: By view, from `earlier_views`.
        command: The command line.
        began: When the audit did.
    """
    views = {**earlier, result["view"]: result}
    ordered = {name: views[name] for name in VIEWS if name in views}
    return {
        **_about(setting),
        "title": setting.algorithm.title,
        "source": setting.algorithm.source,
        "model": setting.declared.model,
        "audit": {**next(iter(ordered.values())), "views": ordered},
        "provenance": provenance(began, command=command, seeds={"audit": result["seed"]}),
    }


def _about(setting: Setting) -> dict[str, Any]:
    return {
        "privcheck": about(),
        "algorithm": setting.algorithm.name,
        "parameters": {name: str(value) for name, value in setting.values.items()},
        "options": setting.options_used,
        "choices": dict(setting.choices),
    }
