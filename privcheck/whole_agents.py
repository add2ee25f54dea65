"""Audits of whole agents from outside: one run at a time, with neighbours that are supplied or searched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from privcheck.auditors import Exceptions, MechanismAudit, MechanismClaim, Neighbours, Workers
from privcheck.entry_points import load_entry
from privcheck.progress import Progress, silent

AgentFunction = Callable[[Any, np.random.Generator], Any]  # (dataset, rng) → what other users see
DropOwnPart = Callable[[Any, int | None], Any]  # (output, position of the protected user) → what the others see
ChangeUser = Callable[[Any, int, np.random.Generator], Any]  # (dataset, position, rng) → a neighbour
UserRelation = Literal["replace-one", "add-remove", "zero-out"]


def audit_agent(
    agent: AgentFunction,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours | None = None,
    dataset: Any = None,
    candidates: Sequence[Any] | None = None,
    change: ChangeUser | None = None,
    relation: UserRelation | None = None,
    positions: Sequence[int] | None = None,
    joint: bool | DropOwnPart = False,
    exceptions: Exceptions = "output",
    trials: int = 500,
    screening: int = 40,
    finalists: int = 2,
    confidence: float = 0.99,
    seed: int = 0,
    stop: bool = True,
    workers: int = 1,
    executor: Workers = None,
    directory: Path | None = None,
    progress: Progress = silent,
) -> MechanismAudit:
    """Returns whether what a whole agent shows to others refutes its claim, and a lower bound on its loss.

    The neighbours are supplied, or searched for among changes of a base dataset: one user at a time, at several
    positions (the first three, the last, the middle, and around powers of two, where trees have their nodes), with
    extreme records. A few runs on every changed dataset rank the pairs; the best are audited with fresh runs, which
    share α. So the search costs runs, not confidence.

    Under joint DP a user may learn everything about the own data: what an agent gives to the protected user is dropped.
    Dropping too little accuses agents that are private.

    >>> from privcheck.guarantees import PureDP
    >>> def agent(rewards, rng):  # publishes the noisy sum after each user, with a noise of its own: no claim holds
    ...     return np.cumsum(rewards) + rng.laplace(0, 1, len(rewards))
    >>> found = audit_agent(agent, PureDP(1), dataset=np.zeros(8), candidates=[0.0, 1.0], relation="replace-one")
    >>> found.verdict
    'violation'

    Args:
        agent: `agent(dataset, rng)` runs once, from scratch, takes all its randomness from `rng`, and returns what
            others see: policies, actions, answers; any object.
        claim: `PureDP`, `ApproxDP`, `ZCDP` or `GaussianDP`.
        neighbours: Pairs of neighbouring datasets, all of which are audited; or None, and pairs are searched for.
        dataset: Where the search begins: a sequence of users, or an array with a row a user. Anything else with
            `change` and `positions`.
        candidates: Records that may stand for a user. By default, of an array of numbers, its least and its largest
            values by column, and of other sequences up to four different records of its own.
        change: Makes a neighbour of the dataset, instead of `candidates` and `relation`.
        relation: The neighbouring relation of the claim, which a search without `change` needs: "replace-one" replaces
            a user's record by a candidate, or a candidate by another one; "add-remove" leaves a user out, who may have
            any candidate; "zero-out" puts zeros in place of a record, or None where it is no number.
        positions: Of the users who are tried, from 0; by default up to twelve. With `neighbours` and `joint`: whom each
            pair differs in, where that cannot be seen from the datasets.
        joint: Whether the claim is of joint DP: the agent returns a part for each user (a sequence, an array with a row
            a user, or a mapping from positions), and the protected user's is dropped. Where its output is something
            else: a function of the output and the position of the protected user that returns what all others see;
            the position is None on the dataset that the user is not in.
        exceptions: As in `audit_mechanism`.
        trials: N, runs under each neighbour of each audited pair, at most so many with `stop`.
        screening: Runs on each dataset of the search.
        finalists: Pairs of the search that are audited.
        confidence: 1 − α of everything that is tried.
        seed: Of the search, of the runs and of the learning.
        stop: As in `audit_mechanism`.
        workers: Threads; the result does not depend on it.
        executor: As in `audit_mechanism`.
        directory: As in `audit_mechanism`; the runs of the search are not kept.
        progress: Called after each block of runs.

    Returns:
        The audit. Its `neighbours` are the audited pairs, `neighbours[pair]` the witness; the first of its `notes` says
        which user that is and how many pairs were tried.

    Raises:
        ParameterError: An argument is out of its range or does not fit another, no neighbours can be made of the
            dataset, or the protected user's part cannot be told.
        MechanismError: The agent cannot be judged, as in `audit_mechanism`.
    """
    auditor = cast("Callable[..., MechanismAudit]", load_entry("auditors", "agent"))
    return auditor(
        agent,
        claim,
        neighbours=neighbours,
        dataset=dataset,
        candidates=candidates,
        change=change,
        relation=relation,
        positions=positions,
        joint=joint,
        exceptions=exceptions,
        trials=trials,
        screening=screening,
        finalists=finalists,
        confidence=confidence,
        seed=seed,
        stop=stop,
        workers=workers,
        executor=executor,
        directory=directory,
        progress=progress,
    )
