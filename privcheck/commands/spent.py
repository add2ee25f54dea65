"""What a run has spent, from its ledger: one meaning, by the sums of `privcheck.accounting.Odometer`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from privcheck.accounting import Spent, price_ledger
from privcheck.accounting.currencies import THEOREMS
from privcheck.accounting.spending import laws_of, price_shares
from privcheck.commands.declared import finite
from privcheck.commands.setting import Chosen
from privcheck.reports.values import OdometerReading, SpentCost
from privcheck.runtime import Ledger
from privcheck.schedules import EveryEpisode, Schedule, Tree


def price_run(ledger: Ledger, setting: Chosen) -> SpentCost:
    """Returns what the user who has paid most has paid for a whole run."""
    cost = price_ledger(ledger.header, ledger.entries, laws=laws_of(setting.released))
    theorems = "; ".join(THEOREMS[name] for name in ("pure", "zcdp", "gdp"))
    return SpentCost(**_finite(cost), theorem=theorems)


def odometer(ledger: Ledger, setting: Chosen, episodes: Sequence[int]) -> tuple[OdometerReading, ...]:
    """Returns what the run has cost the user who has paid most, after each of the episodes: where it changes.

    From the ledger's own charges: a tree's outputs hold a user in one node more whenever the number of episodes passes
    a power of two; a release of every episode in one more each time; batches and users' own messages are paid once.

    Args:
        ledger: The run's.
        setting: Whose schedules say when a charge falls due.
        episodes: Ascending.
    """
    schedules = {release.name: release.schedule for release in setting.released.releases}
    shares = [{name: _share(schedule, setting.values, k) for name, schedule in schedules.items()} for k in episodes]
    found: list[OdometerReading] = []
    last = None
    costs = price_shares(ledger.header, ledger.entries, shares, laws=laws_of(setting.released))
    for k, cost in zip(episodes, map(_finite, costs), strict=True):
        if cost != last:
            found.append(OdometerReading(episode=k, **cost))
        last = cost
    return tuple(found)


def readings(grid: Iterable[int], K: int) -> list[int]:
    """Returns the episodes of a grid and the powers of two, where trees charge one node more."""
    return sorted({*map(int, grid), *(2**level for level in range(K.bit_length()))})


def _share(schedule: Schedule, values: Mapping[str, Fraction], k: int) -> Fraction:
    """Returns which share of the outputs that will hold the first user have left after k episodes."""
    if isinstance(schedule, Tree):
        leaves = int(schedule.leaves.number(values))
        return Fraction(min(k, leaves).bit_length(), max(leaves.bit_length(), 1))
    if isinstance(schedule, EveryEpisode):
        outputs = int(schedule.outputs.number(values))
        return Fraction(min(k, outputs), max(outputs, 1))
    return Fraction(1)


def _finite(cost: Spent) -> dict[str, float | None]:
    return {"rho": finite(cost.rho), "pure_epsilon": finite(cost.pure_epsilon), "mu": finite(cost.mu)}
