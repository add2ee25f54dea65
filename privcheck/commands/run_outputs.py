"""Outputs of a run: the policy, with the reason why it may be published, and the cost by its own record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.currencies import NOT_A_GUARANTEE, THEOREMS
from privcheck.commands.declarations import finite
from privcheck.commands.provenance import exact_parameters, state_claim, versions
from privcheck.commands.settings import Chosen
from privcheck.declare.relations import most_trajectories
from privcheck.declare.schedules import EveryEpisode, Schedule, Tree
from privcheck.errors import ParameterError
from privcheck.reports.policies import ARRAY_NAME, Policy, Weights, describe_policy, load_learned
from privcheck.reports.values import (
    OdometerReading,
    PolicyGuarantee,
    PolicyLabels,
    PolicyRecord,
    PolicyValue,
    ShownPolicy,
    SpentCost,
    take_fields,
)
from privcheck.runtime.ledger import Ledger
from privcheck.runtime.run_folders import find_file, folder_for
from privcheck.runtime.spending import Spent, check_entries, follow_ledger, laws_of, price_ledger
from privcheck.terms.unit import say_trajectories

_PICTURES = (".svg", ".png", ".pdf")
_NO_LABELS = PolicyLabels()
_ROWS = 20  # that are shown where nobody asked for all
_SIMULATED = "the noise was simulated and protects nobody: this policy must not be published"
_UNCOMPARED = (
    "it was not checked that policy and claimed value are functions of the releases alone: do not publish before "
    "`privcheck audit NAME --view lockstep` is consistent"
)
_PLAIN = "not a private algorithm: the policy exposes the data from which it was learned"
_KNOWN = "true: its exact expected return in the model; claimed: the agent's own pessimistic estimate"
_SAMPLED = "true: the mean return of fresh simulated users under its most likely actions; there is no claimed value"
_UNKNOWN = "claimed: the agent's own pessimistic estimate, from noisy releases; the true value is unknown"


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
    """Make the policy, and write its files if a directory is given.

    Args:
        setting: The algorithm that learned it.
        probabilities: Action probabilities, shape (H, S, A).
        directory: The run's folder; None to write nothing. Under release noise a policy that was not compared is
            written to private/.
        learned_from: Name of the data or the environment.
        true: Its exact expected return; None without a model.
        claimed: The agent's own estimate.
        spent: Cost of the ledger's releases.
        ledger: Ledger of the run; None without privacy.
        labels: Names of states and actions in the data.
        compared: Quantities that lockstep found to be equal on neighbours (`say_compared`).
        warnings: Data-dependent choices in reading the data that no noise covers.

    Raises:
        OSError: The files cannot be written.
    """
    steps, states, actions = probabilities.shape
    record = describe_learned(
        setting,
        steps=steps,
        states=states,
        actions=actions,
        learned_from=learned_from,
        true=true,
        claimed=claimed,
        spent=spent,
        ledger=ledger,
        labels=labels,
        compared=compared,
        warnings=warnings,
    )
    policy = Policy(probabilities=probabilities, record=record)
    save_learned(policy, directory)
    return policy


def save_learned(policy: Policy | Weights, directory: Path | None) -> None:
    """Write a policy's files, in private/ under release noise if it was not compared; None to write nothing.

    Raises:
        OSError: The files cannot be written.
    """
    if directory is not None:
        given = policy.record.guarantee
        released = given is not None and given.protects
        policy.save(folder_for(directory, released=released and not (given is not None and given.compared)))


def describe_learned(
    setting: Chosen,
    *,
    steps: int,
    states: int,
    actions: int,
    learned_from: str,
    true: float | None,
    claimed: float | None,
    spent: SpentCost | None,
    ledger: Ledger | None,
    labels: PolicyLabels = _NO_LABELS,
    compared: str = "",
    warnings: tuple[str, ...] = (),
    form: Mapping[str, Any] | None = None,
) -> PolicyRecord:
    """The record of a policy; arguments are those of `keep_policy`, and the form of a policy on observations."""
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
    return PolicyRecord(
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
        value=PolicyValue(true=true, claimed=claimed, note=_note(guarantee, true, sampled=form is not None)),
        warnings=warnings,
        choices=dict(setting.readings),
        form=form,
        versions=versions(),
        # how long the work on exact data took is no function of the releases
        made="" if released else datetime.now(UTC).isoformat(timespec="seconds"),
    )


def show_policy(path: Path, *, picture: Path | None, whole: bool) -> ShownPolicy:
    """Read a policy's files, and write its heat map if a picture is requested.

    Args:
        path: Path of a policy's file, or of the directory with both files.
        picture: Path of the heat map, ending in .svg, .png or .pdf; None for no picture.
        whole: Return every row, not only the first ones.

    Raises:
        FileFormatError: There is no policy, or its files do not belong together.
        ParameterError: The picture's name has another ending.
    """
    policy = load_learned(path)
    if picture is not None:
        if picture.suffix not in _PICTURES:
            message = f"--out {picture}: expected a picture's name that ends in {', '.join(_PICTURES)}"
            raise ParameterError(message, name="out", given=str(picture))
        if isinstance(policy, Weights):
            message = "a policy on observations has no heat map: leave --out out"
            raise ParameterError(message, name="out", given=str(picture))
        picture.parent.mkdir(parents=True, exist_ok=True)
        policy.plot().savefig(picture)
    rows: Sequence[tuple[str, ...]] = ()
    labels, form = policy.record.labels, dict[str, str]()
    if isinstance(policy, Policy):
        rows = describe_policy(policy, most=policy.probabilities.size if whole else _ROWS)
        labels = PolicyLabels(states=policy.states, actions=policy.actions)
    else:
        form = {"parameters": str(policy.parameters.size)}
        form |= {name: str(value) for name, value in (policy.record.form or {}).items()}
    return take_fields(
        ShownPolicy,
        policy.record,
        policy=str(find_file(path, ARRAY_NAME) if path.is_dir() else path.parent / ARRAY_NAME),
        labels=labels,
        rows=tuple(rows),
        form=form,
        picture=None if picture is None else str(picture),
    )


def claim_of(setting: Chosen) -> str:
    """The claim at its parameters; with the number of trajectories it covers, if less than the users' unit.

    Raises:
        ParameterError: The algorithm is a non-private baseline.
    """
    claim = state_claim(setting.declared.claim_words, exact_parameters(setting))
    if setting.setting.covering is None:
        return claim
    covered = say_trajectories(most_trajectories(setting.declared.relation, setting.values))
    return f"{claim} for {covered} ({setting.declared.relation.words})"


def _note(guarantee: PolicyGuarantee | None, true: float | None, *, sampled: bool) -> str:
    worth = _UNKNOWN if true is None else _SAMPLED if sampled else _KNOWN
    if guarantee is None:
        return f"{worth}; {_PLAIN}"
    if not guarantee.protects:
        return f"{worth}; {_SIMULATED}"
    return worth if guarantee.compared else f"{worth}; {_UNCOMPARED}"


def price_run(ledger: Ledger | None, setting: Chosen) -> SpentCost | None:
    """Price a run after checking its ledger against the declaration; None without a ledger or declaration.

    Raises:
        LedgerError: The run deviated from its declaration.
    """
    if ledger is None or setting.declaration is None:
        return None
    check_entries(ledger.header, ledger.entries, setting.charged.priced)
    cost = _shown(price_ledger(ledger.header, ledger.entries, laws=laws_of(setting.released)))
    whys = {"rho": THEOREMS["zcdp"], "pure_epsilon": THEOREMS["pure"], "mu": THEOREMS["gdp"]}
    theorem = "; ".join(why for name, why in whys.items() if cost[name] is not None)
    return SpentCost(**cost, theorem=theorem, note=f"the cap is what the whole run costs: {NOT_A_GUARANTEE}")


def odometer(ledger: Ledger, setting: Chosen, episodes: Sequence[int]) -> tuple[OdometerReading, ...]:
    """Cost to the user who has spent most, after each of the episodes, listed where it changes.

    The cost follows from the ledger's charges: with a tree, a user is in one more node whenever the number of episodes
    passes a power of two; with a release every episode, in one more output each time; batches and users' own messages
    are charged once. Each reading is that of a filter (`privcheck.runtime.spending.follow_ledger`) whose cap is the
    cost of the whole run.

    Args:
        ledger: Ledger of the run.
        setting: The algorithm, whose schedules say when a charge is due.
        episodes: Numbers of episodes, ascending.
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
    """The episodes of a grid and the powers of two, at which trees charge one more node."""
    return sorted({*map(int, grid), *(2**level for level in range(K.bit_length()))})


def _share(schedule: Schedule, values: Mapping[str, Fraction], k: int) -> Fraction:
    """Share of the outputs with the first user that are released after k episodes."""
    if isinstance(schedule, Tree):
        leaves = int(schedule.leaves.number(values))
        return Fraction(min(k, leaves).bit_length(), max(leaves.bit_length(), 1))
    if isinstance(schedule, EveryEpisode):
        outputs = int(schedule.outputs.number(values))
        return Fraction(min(k, outputs), max(outputs, 1))
    return Fraction(1)


def _shown(cost: Spent) -> dict[str, float | None]:
    return {"rho": finite(cost.rho), "pure_epsilon": finite(cost.pure_epsilon), "mu": finite(cost.mu)}
