"""A demonstration ledger: three datasets over three months, with grants in every state, a plan and open requests.

`python -m privcheck.cli.demo DIRECTORY` fills `DIRECTORY/demo.db` and serves it, with the options of `privcheck serve`;
`make serve-demo` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from privcheck.cli.serve import serve
from privcheck.ledger import Actor, Book, create_store

_DAYS: Final = 90
_CANCELLED: Final = 48.0  # on which day a run was set aside for that never began
_POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {"dataset": "icu-stays", "epsilon": "8", "delta": "1e-6", "unit": "patient, 8 trajectories, replace-one, central"},
    {"dataset": "trips", "epsilon": "6", "delta": "1e-7", "unit": "rider, 1 trajectory, replace-one, central"},
    {
        "dataset": "ads",
        "epsilon": "3",
        "delta": "1e-8",
        "unit": "user, 1 trajectory, replace-one, central",
        "remainder": "epsilon",
    },
)
_BLOCKS: Final = ("2025-h2", "2026-h1")
_GRANTS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "icu-team", "dataset": "icu-stays", "currency": "rho", "cap": "0.4", "delta": "1e-6"},
    {"name": "icu-nightly", "dataset": "icu-stays", "currency": "epsilon", "cap": "1", "delta": "1e-6"},
    {"name": "trips-routes", "dataset": "trips", "currency": "mu2", "cap": "0.5", "delta": "1e-7"},
    {"name": "trips-dashboard", "dataset": "trips", "currency": "rho", "cap": "0.1", "delta": "1e-7"},
    {"name": "ads-bandit", "dataset": "ads", "currency": "epsilon", "cap": "2", "delta": "1e-8", "blocks": _BLOCKS},
)
_PLAN: Final[dict[str, Any]] = {
    "name": "trips-census",
    "dataset": "trips",
    "delta": "1e-7",
    "unit": "dataset",
    "events": {
        "type": "compose",
        "events": [
            {"type": "gaussian", "std": "40", "count": 12},
            {"type": "discrete_laplace", "scale": "60", "count": 4},
        ],
    },
}
# the day, the grant, the event, and every how many days how often
_CHARGES: Final[tuple[tuple[int, str, dict[str, Any], int, int], ...]] = (
    (2, "icu-team", {"type": "gaussian", "rho": "0.02", "count": 2}, 9, 7),
    (5, "icu-team", {"type": "discrete_gaussian", "std": "20", "count": 4}, 21, 3),
    (1, "icu-nightly", {"type": "laplace", "epsilon": "0.05"}, 7, 11),
    (4, "trips-routes", {"type": "gaussian", "std": "30", "count": 60}, 14, 5),
    (6, "trips-dashboard", {"type": "zcdp", "rho": "0.005"}, 13, 6),
    (8, "trips-census", {"type": "gaussian", "std": "40", "count": 3}, 25, 3),
    (20, "trips-census", {"type": "discrete_laplace", "scale": "60"}, 30, 2),
    (3, "ads-bandit", {"type": "randomized_response", "epsilon": "0.25"}, 10, 7),
)


@dataclass(slots=True)
class _Days:
    """A settable clock: days since the demonstration began."""

    began: datetime
    day: float = 0.0

    def __call__(self) -> datetime:
        return self.began + timedelta(days=self.day)


def fill(book: Book) -> None:
    """Open three datasets in a new ledger and simulate three months that end now."""
    days = _Days(datetime.now(UTC) - timedelta(days=_DAYS))
    past = Book(book.store, clock=days)
    officer, analyst = Actor(name="officer", role="officer"), Actor(name="ana", role="analyst", grants=_names())
    for policy in _POLICIES:
        past.set_policy(officer, **policy)
    past.add_blocks(officer, "ads", _BLOCKS, disjoint_users="users stay in the half-year in which they signed up")
    for grant in _GRANTS:
        past.grant(officer, **grant)
    past.plan(officer, **_PLAN)
    written = []
    for day, grant_name, event, number in sorted(_dated(), key=lambda one: one[0]):
        if day >= _CANCELLED > days.day:
            _cancel(past, days, analyst)
        days.day = day + 0.4
        key = f"{grant_name}-{event['type']}-{number}"
        blocks = _BLOCKS[number % 2 :] if grant_name == "ads-bandit" else None
        written.append(past.charge(analyst, grant=grant_name, event=event, unit="dataset", key=key, blocks=blocks))
    days.day = 80.3
    lost = {"type": "gaussian", "std": "25", "count": 20}
    past.reserve(analyst, grant="icu-team", event=lost, unit="dataset", key="lost-run", seconds=7200)
    ads = [_sure(one.charge) for one in written if one.grant == "ads-bandit"]
    days.day = 84.6
    past.add_evidence(officer, ads[0], verdict="consistent", report="runs/ads-bandit-1/index.html")
    days.day = 86.6
    past.add_evidence(officer, ads[-1], verdict="violation", report="runs/ads-bandit-7/index.html: ε ≥ 0.41 at 99 %")
    days.day = _DAYS
    book.reserve(
        analyst,
        grant="trips-routes",
        event={"type": "gaussian", "std": "25", "count": 40},
        unit="dataset",
        key="next-run",
    )


def _cancel(book: Book, days: _Days, analyst: Actor) -> None:
    """Reserve for a run that is cancelled four days later."""
    days.day = _CANCELLED
    drawn = book.reserve(
        analyst,
        grant="icu-team",
        event={"type": "gaussian", "rho": "0.05"},
        unit="dataset",
        key="cancelled",
        seconds=5 * 86_400,
    )
    days.day += 4
    book.release(analyst, _sure(drawn.charge), evidence="the run was cancelled before its first draw")


def _dated() -> list[tuple[int, str, dict[str, Any], int]]:
    """The charges one by one: day, grant, event and number."""
    return [
        (first + every * number, grant, event, number)
        for first, grant, event, every, times in _CHARGES
        for number in range(times)
    ]


def _sure(charge: str | None) -> str:
    assert charge is not None, "the demonstration's budget holds its charges"
    return charge


def _names() -> tuple[str, ...]:
    return (*(str(grant["name"]) for grant in _GRANTS), "trips-census")


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]})
@click.argument("directory", type=click.Path(path_type=Path), default=Path("runs/demo"))
@click.argument("more", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF SERVE]")
def main(directory: Path, more: tuple[str, ...]) -> None:
    """Fill a ledger, DIRECTORY/demo.db, with three datasets unless there is one, and serve it."""
    path = directory / "demo.db"
    if not path.exists():
        store = create_store(str(path))
        book, token = Book.init(store)
        fill(book)
        store.close()
        click.echo(
            f"a ledger with {len(_POLICIES)} datasets; the officer's token, shown only this once:\n{token}", err=True
        )
    serve.main(["--store", str(path), *more], prog_name="privcheck serve")


if __name__ == "__main__":
    main(prog_name="python -m privcheck.cli.demo")
