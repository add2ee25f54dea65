"""What a run leaves: the policy, with why it may be published, and the cost by its own record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.currencies import NOT_A_GUARANTEE, THEOREMS
from privcheck.commands.declarations import finite
from privcheck.commands.provenance import exact_parameters, state_claim, versions
from privcheck.commands.settings import Chosen
from privcheck.declare.relations import most_trajectories
from privcheck.declare.schedules import EveryEpisode, Schedule, Tree
from privcheck.errors import ParameterError
from privcheck.reports.policies import ARRAY_NAME, Policy, describe_policy, load_policy
from privcheck.reports.values import (
    OdometerReading,
    PolicyGuarantee,
    PolicyLabels,
    PolicyRecord,
    PolicyValue,
    ShownPolicy,
    SpentCost,
)
from privcheck.runtime.ledger import Ledger
from privcheck.runtime.run_folders import find_file, folder_for
from privcheck.runtime.spending import Spent, check_entries, follow_ledger, laws_of, price_ledger
from privcheck.terms.unit import say_trajectories

_PICTURES = (".svg", ".png", ".pdf")
_NO_LABELS = PolicyLabels()
_ROWS = 20  # that are shown where nobody asked for all
_SIMULATED = "the noise was simulated and protects nobody: this policy is not to be published"
_UNCOMPARED = (
    "whether policy and claimed value are functions of the releases alone was not compared: not to be published before "
    "`privcheck audit NAME --view lockstep` is consistent"
)
_PLAIN = "not a private algorithm: the policy is as public as what it was learned from"
_KNOWN = "true: its exact expected return in the model; claimed: the agent's own pessimistic estimate"
_UNKNOWN = "claimed: the agent's own pessimistic estimate, from noisy releases; nobody knows the true value"


def keep_policy(
    setting: Chosen,
    probabilities: NDArray[np.float64],
    directory: Path | None,
    *,
    learned_from: str,
    true: float | None,
    claimed: float | None,
    spent: SpentCost | None,
    ledger: Ledger | None,
    labels: PolicyLabels = _NO_LABELS,
    compared: str = "",
    warnings: tuple[str, ...] = (),
) -> Policy:
    """Returns the policy, with its files written where there is a directory for them.

    Args:
        setting: What learned it.
        probabilities: (H, S, A).
        directory: The run's folder; None for nowhere. Under release noise a policy that was not compared goes into
            private/.
        learned_from: The data or the environment.
        true: Its expected return, where a model says.
        claimed: The agent's own estimate.
        spent: What the ledger has cost.
        ledger: Of the run that learned it; None without privacy.
        labels: What users call states and actions.
        compared: What lockstep found to be the same on neighbours (`say_compared`).
        warnings: What of the data's reading no noise covers.

    Raises:
        OSError: They cannot be written.
    """
    guarantee = None
    released = ledger is not None and ledger.header["protects"]
    if setting.declaration is not None and ledger is not None:
        guarantee = PolicyGuarantee(
            claim=claim_of(setting),
            relation=setting.released.relation.words,
            unit=setting.setting.protected,
            spent=spent,
            noise=ledger.header["noise"],
            protects=ledger.header["protects"],
            compared=compared,
            ledger=ledger.digest,
        )
    steps, states, actions = probabilities.shape
    record = PolicyRecord(
        policy="",
        digest="",
        algorithm=setting.algorithm.name,
        learned_from=learned_from,
        steps=steps,
        states=states,
        actions=actions,
        labels=labels,
        parameters=exact_parameters(setting),
        options=setting.options_used,
        guarantee=guarantee,
        value=PolicyValue(true=true, claimed=claimed, note=_note(guarantee, true)),
        warnings=warnings,
        choices=dict(setting.readings),
        versions=versions(),
        # how long the work on exact data took is no function of the releases
        made="" if released else datetime.now(UTC).isoformat(timespec="seconds"),
    )
    policy = Policy(probabilities=probabilities, record=record)
    if directory is not None:
        policy.save(folder_for(directory, released=released and not compared))
    return policy


def show_policy(path: Path, *, picture: Path | None, whole: bool) -> ShownPolicy:
    """Returns what a policy's files say, and writes its heat map where a picture is asked for.

    Args:
        path: Of a policy's file, or of the directory of both.
        picture: Where the heat map goes: a name that ends in .svg, .png or .pdf.
        whole: Every row, not only the first ones.

    Raises:
        FileFormatError: There is no policy, or its files do not belong together.
        ParameterError: The picture's name ends otherwise.
    """
    policy = load_policy(path)
    if picture is not None:
        if picture.suffix not in _PICTURES:
            message = f"--out {picture}: expected a picture's name that ends in {', '.join(_PICTURES)}"
            raise ParameterError(message, name="out", given=str(picture))
        picture.parent.mkdir(parents=True, exist_ok=True)
        policy.plot().savefig(picture)
    rows = describe_policy(policy, most=policy.probabilities.size if whole else _ROWS)
    return ShownPolicy(
        policy=str(find_file(path, ARRAY_NAME) if path.is_dir() else path.parent / ARRAY_NAME),
        algorithm=policy.record.algorithm,
        learned_from=policy.record.learned_from,
        labels=PolicyLabels(states=policy.states, actions=policy.actions),
        guarantee=policy.record.guarantee,
        value=policy.record.value,
        warnings=policy.record.warnings,
        rows=tuple(rows),
        picture=None if picture is None else str(picture),
    )


def claim_of(setting: Chosen) -> str:
    """Returns the claim at its parameters, and for whom it is, where that is less than what the users of the data have.

    Raises:
        ParameterError: The algorithm is a non-private baseline.
    """
    claim = state_claim(setting.declared.claim_words, exact_parameters(setting))
    if setting.setting.covering is None:
        return claim
    covered = say_trajectories(most_trajectories(setting.declared.relation, setting.values))
    return f"{claim} for {covered} ({setting.declared.relation.words})"


def _note(guarantee: PolicyGuarantee | None, true: float | None) -> str:
    worth = _UNKNOWN if true is None else _KNOWN
    if guarantee is None:
        return f"{worth}; {_PLAIN}"
    if not guarantee.protects:
        return f"{worth}; {_SIMULATED}"
    return worth if guarantee.compared else f"{worth}; {_UNCOMPARED}"


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
    Each reading is a filter's (`privcheck.runtime.spending.follow_ledger`), whose cap is what the whole run costs.

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
