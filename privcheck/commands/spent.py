"""What a run has spent, from its own record: with the theorem of each sum, and from which episode on how much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from privcheck.accounting.currencies import NOT_A_GUARANTEE, THEOREMS
from privcheck.commands.declared import finite
from privcheck.commands.setting import Chosen
from privcheck.pricing.ledger import Spent, check_entries, follow_ledger, laws_of, price_ledger
from privcheck.reports.values import OdometerReading, SpentCost
from privcheck.runtime.ledger import Ledger
from privcheck.schedules import EveryEpisode, Schedule, Tree


def price_run(ledger: Ledger | None, setting: Chosen) -> SpentCost | None:
    """Returns what a run has spent, after its ledger was held against the declaration; None where it has none.

    Raises:
        LedgerError: It has released something else than was declared.
    """
    if ledger is None or setting.declaration is None:
        return None
    check_entries(ledger.header, ledger.entries, setting.charged.priced)
    cost = _shown(price_ledger(ledger.header, ledger.entries, laws=laws_of(setting.released)))
    whys = {"rho": THEOREMS["zcdp"], "pure_epsilon": THEOREMS["pure"], "mu": THEOREMS["gdp"]}
    theorem = "; ".join(why for name, why in whys.items() if cost[name] is not None)
    return SpentCost(**cost, theorem=theorem, note=f"the cap is what the whole run costs: {NOT_A_GUARANTEE}")


def odometer(ledger: Ledger, setting: Chosen, episodes: Sequence[int]) -> tuple[OdometerReading, ...]:
    """Returns what the run has cost the user who has paid most, after each of the episodes: where it changes.

    From the ledger's own charges: a tree's outputs hold a user in one node more whenever the number of episodes passes
    a power of two; a release of every episode in one more each time; batches and users' own messages are paid once.
    Each reading is a filter's (`privcheck.pricing.ledger.follow_ledger`), whose cap is what the whole run costs.

    Args:
        ledger: The run's.
        setting: Whose schedules say when a charge falls due.
        episodes: Ascending.
    """
    schedules = {release.name: release.schedule for release in setting.released.noisy}
    shares = [{name: _share(schedule, setting.values, k) for name, schedule in schedules.items()} for k in episodes]
    found: list[OdometerReading] = []
    last = None
    for k, cost in zip(
        episodes, follow_ledger(ledger.header, ledger.entries, shares, laws=laws_of(setting.released)), strict=True
    ):
        if cost != last:
            found.append(OdometerReading(episode=k, **_shown(cost)))
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


def _shown(cost: Spent) -> dict[str, float | None]:
    return {"rho": finite(cost.rho), "pure_epsilon": finite(cost.pure_epsilon), "mu": finite(cost.mu)}
