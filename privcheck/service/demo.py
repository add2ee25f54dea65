"""A ledger to look at: three datasets, with grants, charges, a reservation and a refusal.

`python -m privcheck.service.demo DIRECTORY` fills `DIRECTORY/demo.db` and serves it; `make serve-demo` does that.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from privcheck.commands.serving import serve
from privcheck.ledger import Actor, Book, create_store

_GRANTS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "icu-team", "dataset": "icu-stays", "currency": "rho", "cap": "0.4", "delta": "1e-6"},
    {"name": "icu-nightly", "dataset": "icu-stays", "currency": "epsilon", "cap": "1", "delta": "1e-6"},
    {"name": "trips-routes", "dataset": "trips", "currency": "mu2", "cap": "0.5", "delta": "1e-7"},
    {"name": "trips-dashboard", "dataset": "trips", "currency": "rho", "cap": "0.1", "delta": "1e-7"},
    {"name": "ads-bandit", "dataset": "ads", "currency": "epsilon", "cap": "2", "delta": "1e-8"},
)
_POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {"dataset": "icu-stays", "epsilon": "8", "delta": "1e-6", "unit": "patient"},
    {"dataset": "trips", "epsilon": "6", "delta": "1e-7", "unit": "rider"},
    {"dataset": "ads", "epsilon": "3", "delta": "1e-8", "unit": "user", "remainder": "epsilon"},
)
_CHARGES: Final[tuple[tuple[str, dict[str, Any], int], ...]] = (
    ("icu-team", {"type": "gaussian", "rho": "0.02", "count": 2}, 7),
    ("icu-team", {"type": "discrete_gaussian", "std": "20", "count": 4}, 3),
    ("icu-nightly", {"type": "laplace", "epsilon": "0.05"}, 11),
    ("trips-routes", {"type": "gaussian", "std": "30", "count": 60}, 5),
    ("trips-dashboard", {"type": "zcdp", "rho": "0.005"}, 6),
    ("ads-bandit", {"type": "randomized_response", "epsilon": "0.25"}, 7),
)


def fill(book: Book) -> None:
    """Opens three datasets in a new ledger and charges their grants."""
    officer, analyst = Actor(name="officer", role="officer"), Actor(name="ana", role="analyst", grants=_names())
    for policy in _POLICIES:
        book.set_policy(officer, **policy)
    for grant in _GRANTS:
        book.grant(officer, **grant)
    for grant_name, event, times in _CHARGES:
        for number in range(times):
            book.charge(analyst, grant=grant_name, event=event, key=f"{grant_name}-{event['type']}-{number}")
    book.reserve(analyst, grant="trips-routes", event={"type": "gaussian", "std": "25", "count": 40}, key="next-run")
    drawn = book.reserve(analyst, grant="icu-team", event={"type": "gaussian", "rho": "0.05"}, key="cancelled")
    assert drawn.charge is not None
    book.release(analyst, drawn.charge, evidence="the run was cancelled before its first draw")


def _names() -> tuple[str, ...]:
    return tuple(str(grant["name"]) for grant in _GRANTS)


def main(directory: str) -> None:
    """Fills a ledger in a directory, where there is none, and serves it."""
    path = Path(directory) / "demo.db"
    if not path.exists():
        store = create_store(str(path))
        book, token = Book.init(store)
        fill(book)
        store.close()
        click.echo(f"a ledger with {len(_POLICIES)} datasets; the officer's token, told this once:\n{token}", err=True)
    serve.main(["--store", str(path)], prog_name="privcheck serve")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/demo")
