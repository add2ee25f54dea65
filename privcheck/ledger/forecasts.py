"""Forecast of a grant: how many more charges like its newest fit, and when it will be spent at its recent rate.

A forecast describes the past and extends it; it promises nothing, and no refusal depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final

from privcheck.accounting.currencies import Cost
from privcheck.ledger import rows
from privcheck.ledger.balances import SHARES, Balance
from privcheck.ledger.exact import write_time
from privcheck.ledger.limits import how_often, lines_of
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Entry, Grant, complete_event, read_cost, write_cost
from privcheck.ledger.wire import parse_event

_WINDOW: Final = timedelta(days=30)
_LEAST: Final = timedelta(days=1)  # of a rate: some charges of one afternoon say nothing about a year
_FAR: Final = 100 * 365.25 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is left of a grant, in charges and in time.

    Attributes:
        charge: The newest charge of the grant.
        cost: Its cost.
        times: Number of further charges of its cost that fit now, on its blocks; None if it costs nothing.
        since: Start of the time that the rate is the mean of: 30 days ago, or the making of a younger grant.
        spent: Share of the cap that was spent since then, net of released reservations.
        spent_at: When the cap will be spent at that rate, in UTC, in the fullest block. None if the grant is younger
            than a day, if nothing was spent since, or if that is more than 100 years away.
    """

    charge: str
    cost: Cost
    times: int | None
    since: str
    spent: float
    spent_at: str | None

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON, exact numbers as text."""
        return {
            "charge": self.charge,
            "cost": write_cost(self.cost),
            "times": self.times,
            "since": self.since,
            "spent": self.spent,
            "spent_at": self.spent_at,
        }


def forecast_of(transaction: Transaction, grant: Grant, balance: Balance, *, at: str) -> Forecast | None:
    """Forecast of a grant; None before its first charge, and where charges are recorded, not added.

    Args:
        transaction: A read transaction.
        grant: The grant.
        balance: Its present balance.
        at: The time by this machine's clock, in UTC.
    """
    newest = rows.newest_charge(transaction, grant.name)
    if newest is None or grant.recorded:
        return None
    now = datetime.fromisoformat(rows.read_clock(transaction, grant.dataset, at))
    last = rows.last_of_grant(transaction, grant.name)
    assert last is not None
    before = _last_before(transaction, grant.name, now - _WINDOW, last.seq)
    first = before or rows.first_of_grant(transaction, grant.name)
    assert first is not None
    begin = now - _WINDOW if before else datetime.fromisoformat(first.at)
    shares = [(first.held, last.held), (first.lost, last.lost)]  # of the cap, and of the additive δ
    took = (now - begin).total_seconds() if now - begin >= _LEAST and not balance.frozen else math.inf
    lasts = min((SHARES - now_) / (now_ - then) * took if now_ > then else math.inf for then, now_ in shares)
    cost, places = read_cost(newest.body["cost"]), tuple(newest.body.get("blocks", ())) or grant.places
    lines = lines_of(grant, parse_event(complete_event(newest.body["event"]))) if grant.plan else ()
    fits = [how_often(grant, balance, place, lines, cost) for place in places]
    return Forecast(
        charge=str(newest.charge),
        cost=cost,
        times=0 if balance.frozen else min((n for n in fits if n is not None), default=None),
        since=write_time(begin),
        spent=(last.held - first.held) / SHARES,
        spent_at=write_time(now + timedelta(seconds=lasts)) if lasts < _FAR else None,
    )


def _last_before(transaction: Transaction, grant: str, moment: datetime, newest: int) -> Entry | None:
    """Last row about a grant that was written up to a moment, by bisection: rows are in the order of their times."""
    found, low, high = None, 1, newest
    while low <= high:
        middle = (low + high) // 2
        row = rows.last_of_grant(transaction, grant, until=middle)
        if row is None or datetime.fromisoformat(row.at) <= moment:
            found, low = row or found, middle + 1
        else:
            high = row.seq - 1
    return found


def say_forecast(forecast: Mapping[str, Any], currency: str, *, until: str | None) -> str:
    """A forecast in one sentence, without a full stop.

    Args:
        forecast: The forecast, as `Forecast.to_dict` writes it.
        currency: Currency of the grant, as it is to be written.
        until: End of the dataset's policy, or None.
    """
    times, cost = forecast["times"], forecast["cost"]["amount"]
    price = "" if currency == "events" else f" ({currency} = {float(Fraction(cost)):.6g})"
    if times == 1:
        fits = f"1 more charge like the newest{price} fits"
    elif times is None:
        fits = f"any number of charges like the newest{price} fits"
    else:
        fits = f"{times:,} more charges like the newest{price} fit"
    if (spent_at := forecast["spent_at"]) is None:
        return fits
    ends = f", after the policy's end on {until[:10]}" if until is not None and until < spent_at else ""
    return f"{fits}; at the rate since {forecast['since'][:10]} all is spent by {spent_at[:10]}{ends}"
