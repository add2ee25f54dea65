"""Small report values, for tests of what is made of them."""

from __future__ import annotations

import json
from pathlib import Path

from privcheck.reports import read_report
from privcheck.reports.values import (
    About,
    Audited,
    Budget,
    DeltaCurve,
    LearnedValue,
    Provenance,
    Ran,
    Report,
    TotalCost,
    from_json,
    together,
)
from privcheck.runtime.audit_pictures import Bars, History, ShownPair, TradeOff

DATA = Path(__file__).parent / "unit" / "data"
PICTURES = {"trade_off": TradeOff, "history": History, "pair": ShownPair, "bars": Bars}


def as_written(name):
    """The JSON of a whole report that an earlier version wrote."""
    return json.loads((DATA / f"report_{name}.json").read_text(encoding="utf-8"))


def whole(name):
    """The same as a report."""
    return read_report(as_written(name))


def audited(view="releases", **more):
    """One audit; pictures may be given as JSON."""
    how = {
        "algorithm": "dp-apvi-laplace", "trials": 1000, "confidence": 0.99, "delta": 0.0, "epsilon_lower": 0.9,
        "epsilon_upper": 1.0, "epsilon_claimed": 1.0, "reachable": 0.95, "verdict": "consistent", "method": "coin flip",
        "witness": "one; other", "evidence": {"refuted": "nothing"}, "seconds": 1.0, "trials_per_second": 2000.0,
        "claim": "ε-DP (section 3)", **more,
    }  # fmt: skip
    pictures = {name: from_json(kind, how[name]) for name, kind in PICTURES.items() if isinstance(how.get(name), dict)}
    return Audited(view=view, **how | pictures)


def report(*views, **sections):
    """A report of audits, and of what else is given."""
    told = {"algorithm": "dp-apvi-laplace", "title": "DP-APVI", "parameters": {"H": "20"}} | sections
    made = Provenance(
        versions={}, seeds={"audit": 0}, command="privcheck audit", started="2026-08-14T09:12:07+00:00", seconds=2.0
    )
    audit = together({view.view: view for view in views})
    return Report(privcheck=About(version="0.1.0"), audit=audit, provenance=made, **told)


def budget(epsilon=(), upper=(), claim=(), *, at=None, delta=1e-5):
    """A budget whose figures are a curve and a guarantee."""
    return Budget(
        algorithm="x",
        parameters={},
        relation="",
        model="central",
        releases=(),
        guarantee=TotalCost(epsilon=at, delta=delta, rho=None, mu=None, pure_epsilon=None),
        methods=(),
        curve=DeltaCurve(epsilon=tuple(epsilon), delta_upper=tuple(upper), delta_claim=tuple(claim)),
    )


def ran(**value):
    """A run whose figures are a learned value."""
    told = {"mean": None, "std": None, "baseline": None, "optimal": None, "references": {}, "claimed": 0.0} | value
    return Ran(
        algorithm="x", environment="y", replicates=1, episodes=1, value=LearnedValue(**told), spent=None, ledger=None,
        diagnostics={}, seconds=1.0, episodes_per_second=1.0,
    )  # fmt: skip
