"""The report page of an audit in a test: verdict first, what was seen, and the code that repeats it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from privcheck.auditors import MechanismAudit
from privcheck.pictures import Bar, Bars, ShownPair
from privcheck.reports import save_report
from privcheck.reports.values import About, Audited, Provenance, Report, together

_LETTERS: Final = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}
_MOST_ROWS: Final = 60  # users of a pair that are shown
_LONGEST: Final = 120  # characters of a record
_ASKS: Final = "Do outputs of the function tell two neighbouring datasets apart more than its claim allows?"


def save_page(found: MechanismAudit, directory: Path, *, mechanism: str, test: str, code: str, started: str) -> Path:
    """Writes report.html and report.json, and returns the page's path.

    Args:
        found: The audit.
        directory: Where they go.
        mechanism: The function's name.
        test: Which test audited it.
        code: That repeats the audit.
        started: When the test did.

    Raises:
        PrivcheckError: The files cannot be written.
    """
    letter = _LETTERS[found.unit]
    is_epsilon = found.unit == "epsilon"
    pair = None if not found.neighbours else found.neighbours[found.pair]
    audited = Audited(
        algorithm=mechanism,
        view="black box",
        trials=found.trials,
        confidence=found.confidence,
        delta=found.delta,
        epsilon_lower=found.lower if is_epsilon else None,
        epsilon_upper=None,
        epsilon_claimed=found.claimed if is_epsilon else None,
        verdict=found.verdict,
        reachable=found.reachable if is_epsilon else None,
        method=found.method,
        witness=" ".join(found.notes),
        evidence={
            f"{letter} claimed": found.claimed,
            f"{letter} at least": found.lower,
            f"least {letter} that would have been visible": found.visible,
            **({} if found.needed is None else {"trials that show twice the claim": found.needed}),
            "pair": found.pair,
            "runs": found.runs,
            "most_runs": 2 * found.trials * max(1, len(found.neighbours)),
            "ended": found.ended,
            **found.evidence,
        },
        seconds=found.seconds,
        trials_per_second=found.runs / max(found.seconds, 1e-9),
        claim=found.claim,
        seed=found.seed,
        agent_ran=True,
        asks=_ASKS,
        trade_off=found.trade_off,
        pair=None if pair is None else show_records(*pair),
        bars=None if found.trade_off is not None or found.claimed == 0 else _against_claim(found, letter),
    )
    report = Report(
        privcheck=About(version=version("privcheck")),
        algorithm=mechanism,
        title=test,
        audit=together({"black box": audited}),
        provenance=Provenance(
            versions={"python": platform.python_version(), **{name: version(name) for name in ("privcheck", "numpy")}},
            seeds={"audit": found.seed},
            command=code,
            started=started,
            seconds=found.seconds,
        ),
    )
    return save_report(report, directory)[1]


def show_records(first: Any, other: Any) -> ShownPair | None:
    """Returns two datasets of users side by side, those records first that differ; None where there are none."""
    if not (_is_sequence(first) and _is_sequence(other)):
        first, other = [first], [other]
    if min(len(first), len(other)) == 0:
        return None
    rows = range(max(len(first), len(other)))
    cells = [[_words(data[i]) if i < len(data) else "absent" for i in rows] for data in (first, other)]
    order = sorted(rows, key=lambda i: cells[0][i] == cells[1][i])[:_MOST_ROWS]
    left = len(rows) - len(order)
    return ShownPair(
        title="The neighbours, record by record.",
        row="position",
        columns=("record",),
        labels=tuple(str(i) for i in order),
        first=tuple((cells[0][i],) for i in order),
        second=tuple((cells[1][i],) for i in order),
        note=f"{left} further records are not shown." if left else "",
    )


def _is_sequence(dataset: Any) -> bool:
    if isinstance(dataset, np.ndarray):
        return dataset.ndim > 0
    return isinstance(dataset, Sequence) and not isinstance(dataset, str | bytes)


def _words(record: Any) -> str:
    text = " ".join(str(record).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _against_claim(found: MechanismAudit, letter: str) -> Bars:
    level = f"{100 * found.confidence:.6g} %"
    return Bars(
        quantity=f"{letter} at least / {letter} claimed",
        one_sided=True,
        caption=f"The lower bound over the claim, at {level} confidence; above 1 the claim is refuted.",
        bars=(
            Bar(
                name=f"pair {found.pair}",
                ratio=found.lower / found.claimed,
                violated=found.verdict == "violation",
                words=f"{found.lower:.4g} of {found.claimed:.4g}",
            ),
        ),
    )
