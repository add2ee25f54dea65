"""What a run leaves to be used: the policy, with why it may be published."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcheck.commands.provenance import exact_parameters, state_claim, versions
from privcheck.commands.setting import Chosen
from privcheck.errors import ParameterError
from privcheck.policies import ARRAY_NAME, Policy, describe_policy, load_policy
from privcheck.relations import most_trajectories
from privcheck.reports.values import (
    PolicyGuarantee,
    PolicyLabels,
    PolicyRecord,
    PolicyValue,
    ShownPolicy,
    SpentCost,
)
from privcheck.run_folders import find_file, folder_for
from privcheck.runtime.ledger import Ledger
from privcheck.unit import say_trajectories

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
