"""The report of audits alone: the views that were audited into one directory, on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privcheck import registry
from privcheck.commands.provenance import Began, about, exact_parameters, provenance
from privcheck.commands.setting import Chosen
from privcheck.errors import ParameterError
from privcheck.reports import load_report
from privcheck.reports.model import JSON_NAME
from privcheck.reports.values import Audited, Report, together

Views = Mapping[str, Audited]
_SAME = ("algorithm", "parameters", "options", "choices", "privcheck")


def earlier_views(setting: Chosen, directory: Path) -> Views:
    """Returns the views that an earlier audit of the same reported into the directory.

    Raises:
        ParameterError: The directory holds the report of a check, or of an audit of other settings, which would be
            lost.
        FileFormatError: What is there is no report that this version can read.
    """
    if not (directory / JSON_NAME).exists():
        return {}
    report = load_report(directory)
    if report.verify is not None or report.run is not None:
        message = f"{directory} holds the report of a check, which includes audits: choose another --out"
        raise ParameterError(message, name="out", given=str(directory))
    here = begin_report(setting)
    others = [name for name in _SAME if getattr(report, name) != getattr(here, name)]
    if others:
        told = "; ".join(_difference(name, getattr(report, name), getattr(here, name)) for name in others)
        message = f"{directory} holds the report of another audit, which would be lost ({told}): choose another --out"
        raise ParameterError(message, name="out", given=str(directory))
    return {} if report.audit is None else report.audit.views


def _difference(name: str, there: Any, here: Any) -> str:
    """Returns in what two reports differ: of mappings the first entry that does."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        key = next(key for key in {**there, **here} if there.get(key) != here.get(key))
        return f"there {key} = {there.get(key, 'not given')}, here {here.get(key, 'not given')}"
    return f"{name}: there {there}, here {here}"


def audit_report(setting: Chosen, result: Audited, earlier: Views, *, command: Sequence[str], began: Began) -> Report:
    """Returns the report of one audit, beside earlier ones of other views.

    Args:
        setting: What was audited.
        result: As `privcheck.commands.learned.audit` returns it.
        earlier: By view, from `earlier_views`.
        command: The command line.
        began: When the audit did.
    """
    views = {**earlier, result.view: result}
    return replace(
        begin_report(setting),
        audit=together({name: views[name] for name in registry.plan_for(setting.algorithm).views if name in views}),
        provenance=provenance(began, command=command, seeds={"audit": result.seed}),
    )


def begin_report(setting: Chosen) -> Report:
    """Returns a report that says what it is about, and nothing else yet."""
    return Report(
        privcheck=about(),
        algorithm=setting.algorithm.name,
        title=setting.algorithm.title,
        source=setting.algorithm.source,
        model=setting.declared.model,
        parameters=exact_parameters(setting),
        options=setting.options_used,
        choices=dict(setting.readings),
        unit=setting.declared.unit(setting.values).to_dict(),
    )
