"""Black-box audits of whole agents: the search for a pair of neighbours, and the audit of what others see of a run.

The search runs the agent a few times on each changed dataset, learns scores on these runs, and ranks the pairs by
held-out scores. The best pairs are audited by `blackbox.audit` with fresh runs: the choice of pairs costs no α. Users
call `privcheck.audit_agent`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from privcheck.errors import ParameterError
from privcheck.runtime.auditors import (
    AgentFunction,
    ChangeUser,
    DropOwnPart,
    Exceptions,
    MechanismAudit,
    MechanismClaim,
    MechanismError,
    Neighbours,
    UserRelation,
    Workers,
)
from privcheck.support.display import Progress
from privcheck_audits.blackbox.audit import audit_mechanism
from privcheck_audits.blackbox.calls import Caller, read_signature
from privcheck_audits.blackbox.canonical import CallError, Form
from privcheck_audits.blackbox.inputs import forms_of
from privcheck_audits.blackbox.neighbours import (
    Case,
    CasePair,
    count_users,
    find_user,
    flatten,
    largest_gap,
    list_changes,
)
from privcheck_audits.blackbox.scores import learn
from privcheck_audits.blackbox.verdict import ClaimedLoss, attempts, best, edges
from privcheck_audits.engine.blocks import blocks
from privcheck_audits.engine.pools import refuse_unsendable

_FEWEST: Final = 20  # runs on a dataset of the search
_STREAM: Final = 0x5EA2C4
_LEARNED_ON: Final = 2  # pairs for each that is wanted
_BLOCK: Final = 32  # runs: what a crash may cost, and what a worker takes at a time
_ROUGH: Final = 0.2  # α of the bounds by which pairs are ranked, which nobody is shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """An agent as everybody but the protected user sees it: a function of a case, one run per call.

    Attributes:
        agent: The agent.
        drop: Removes the protected user's part from an output; None if all of it is visible.
    """

    agent: AgentFunction
    drop: DropOwnPart | None

    def __call__(self, case: Case, rng: np.random.Generator) -> Any:
        """Run the agent once and return the visible output."""
        output = self.agent(case.dataset, rng)
        return output if self.drop is None else self.drop(output, case.user)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Screen:
    """Blocks of the search's runs: run i is on case i // runs."""

    caller: Caller
    cases: Sequence[Case]
    runs: int
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> list[Form]:
        found: list[Any] = []
        for i in range(first, first + runs):
            try:
                found += self.caller.runs(self.cases[i // self.runs], 1, rng.spawn(1)[0])
            except Exception as error:
                message = f"the agent, in run {i} of the search, seed {self.seed}, {_what(error)}"
                raise MechanismError(message, trial=i, seed=self.seed) from error
        return forms_of(found)


def _what(error: Exception) -> str:
    return str(error) if isinstance(error, CallError) else f"raised {type(error).__name__}: {error}"


def drop_own_part(output: Any, user: int | None) -> Any:
    """Parts of all users but one; an output without parts, because there was no answer, is returned unchanged.

    Raises:
        CallError: The output has no parts.
    """
    if output is None:
        return None
    if isinstance(output, Mapping):
        if set(output) != set(range(len(output))):
            message = f"returned a mapping with the keys {list(output)[:5]}; expected 0 to {len(output) - 1}"
            raise CallError(f"{message}, a part for each user (joint=True), or a function as `joint`")
        output = [output[i] for i in range(len(output))]
    if isinstance(output, np.ndarray) and output.ndim:
        return output if user is None else np.delete(output, user, axis=0)
    if isinstance(output, list | tuple):
        return [part for i, part in enumerate(output) if i != user]
    wanted = "expected a part for each user (joint=True): a list, an array or a mapping, or a function as `joint`"
    raise CallError(f"returned a {type(output).__name__}; {wanted}")


def audit_agent(
    agent: AgentFunction,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours | None,
    dataset: Any,
    candidates: Sequence[Any] | None,
    change: ChangeUser | None,
    relation: UserRelation | None,
    positions: Sequence[int] | None,
    joint: bool | DropOwnPart,
    exceptions: Exceptions,
    trials: int,
    screening: int,
    finalists: int,
    confidence: float,
    seed: int,
    stop: bool,
    workers: int,
    executor: Workers,
    directory: Path | None,
    progress: Progress,
) -> MechanismAudit:
    """Audit an agent; see `privcheck.audit_agent`.

    Raises:
        ParameterError: An argument is out of its range or contradicts another argument.
        MechanismError: The agent cannot be audited.
    """
    began = time.perf_counter()
    _refuse(neighbours, dataset, change, candidates, screening=screening, finalists=finalists, seed=seed)
    drop = drop_own_part if joint is True else joint or None
    seen = Seen(agent=agent, drop=drop)
    caller = read_signature(seen, one_at_a_time=True, catch=exceptions == "output")
    if executor is not None:
        refuse_unsendable(agent, executor, name="agent")
    evidence: dict[str, float | int | str] = {}
    if neighbours is not None:
        cases, pairs = _supplied(neighbours, positions, joint=drop is not None)
        chosen = pairs
        if joint is True:
            _try_parts(agent, cases[0], seed)
    else:
        cases, pairs = list_changes(
            dataset, candidates=candidates, change=change, relation=relation, positions=positions, seed=seed
        )
        if joint is True:
            _try_parts(agent, cases[pairs[0].cases[0]], seed)
        work = _Screen(caller=caller, cases=cases, runs=screening, seed=seed)
        outputs = _screen(work, workers=workers, executor=executor, progress=progress)
        chosen = _rank(pairs, outputs, finalists=finalists, seed=seed)
        evidence = {"searched_pairs": len(pairs), "search_runs": len(cases) * screening}
    found = audit_mechanism(
        seen,
        claim,
        neighbours=[(cases[pair.cases[0]], cases[pair.cases[1]]) for pair in chosen],
        trials=trials,
        confidence=confidence,
        seed=seed,
        workers=workers,
        progress=progress,
        stop=stop,
        executor=executor,
        directory=directory,
        exceptions=exceptions,
        one_at_a_time=True,
        block=_BLOCK,
    )
    witness = chosen[found.pair]
    users = [user for i in witness.cases if (user := cases[i].user) is not None]
    said = f"pair {found.pair}: {witness.words}" if witness.words else ""
    if neighbours is None:
        tried = f"the best of {len(pairs)} pairs" if len(pairs) > 1 else "the only pair"
        said += f"; {tried}, by {len(cases) * screening:,} runs of a search"
    return replace(
        found,
        neighbours=tuple((cases[pair.cases[0]].dataset, cases[pair.cases[1]].dataset) for pair in chosen),
        notes=((said,) if said else ()) + found.notes,
        evidence={**found.evidence, **evidence, **({"position": users[0]} if users else {})},
        seconds=time.perf_counter() - began,
    )


def _refuse(
    neighbours: Neighbours | None,
    dataset: Any,
    change: ChangeUser | None,
    candidates: Sequence[Any] | None,
    *,
    screening: int,
    finalists: int,
    seed: int,
) -> None:
    if (neighbours is None) == (dataset is None):
        given = "neither" if dataset is None else "both"
        raise ParameterError(
            f"expected neighbours, or a dataset whose users are changed; got {given}", name="neighbours"
        )
    if neighbours is not None and (change is not None or candidates is not None):
        raise ParameterError("candidates and change belong to a dataset, but neighbours were given", name="candidates")
    for name, good, wanted, given_number in (
        ("screening", screening >= _FEWEST, f"at least {_FEWEST}", screening),
        ("finalists", finalists >= 1, "at least 1", finalists),
        ("seed", seed >= 0, "at least 0", seed),
    ):
        if not good:
            raise ParameterError(f"{name}: expected {wanted}, got {given_number!r}", name=name, given=given_number)


def _supplied(
    neighbours: Neighbours, positions: Sequence[int] | None, *, joint: bool
) -> tuple[list[Case], list[CasePair]]:
    pairs = list(neighbours) if isinstance(neighbours, list | tuple) else []
    if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        wanted = "a list of pairs [(D, D′), …], one at least"
        raise ParameterError(f"neighbours: expected {wanted}, got {neighbours!r}", name="neighbours", given=neighbours)
    if positions is not None and (not joint or len(positions) != len(pairs)):
        wanted = f"one for each of {len(pairs)} pairs, and joint" if joint else "none if nothing is dropped (joint)"
        raise ParameterError(f"positions: expected {wanted}, got {positions!r}", name="positions", given=positions)
    cases: list[Case] = []
    for i, (first, other) in enumerate(pairs):
        users: tuple[int | None, int | None] = (None, None)
        if joint and positions is None:
            users = find_user(first, other)
        elif joint and positions is not None:
            users = _at(first, other, positions[i])
        cases += [Case(dataset=first, user=users[0]), Case(dataset=other, user=users[1])]
    return cases, [CasePair(cases=(2 * i, 2 * i + 1), words="") for i in range(len(pairs))]


def _at(first: Any, other: Any, position: int) -> tuple[int | None, int | None]:
    """Position of the user in both neighbours; None in the neighbour that lacks the user."""
    sizes = count_users(first), count_users(other)
    if sizes[0] is None or sizes[1] is None or sizes[0] == sizes[1]:
        return position, position
    return (position, None) if sizes[0] > sizes[1] else (None, position)


def _try_parts(agent: AgentFunction, case: Case, seed: int) -> None:
    """Check early that the protected user's part can be dropped; an agent that raises is judged later.

    Raises:
        ParameterError: The output does not have one part per user.
    """
    try:
        output = agent(case.dataset, np.random.default_rng((seed, _STREAM)))
    except Exception:  # noqa: BLE001 - an output, or the audit's business
        return
    if output is None:
        return
    try:
        drop_own_part(output, None)
    except CallError as error:
        raise ParameterError(f"joint: the agent {error}", name="joint") from error
    users = count_users(case.dataset)
    if users is not None and len(output) != users:
        message = f"joint: expected a part for each of the {users} users, got {len(output)} parts"
        raise ParameterError(f"{message}; give a function as `joint` that drops the user's own part", name="joint")


def _screen(work: _Screen, *, workers: int, executor: Workers, progress: Progress) -> list[list[Form]]:
    """Outputs of each case."""
    parts = blocks(
        work,
        len(work.cases) * work.runs,
        seed=work.seed,
        stream=_STREAM,
        block=work.runs,
        workers=workers,
        executor=executor,
        progress=progress,
    )
    try:
        return list(parts)
    finally:
        parts.close()


def _rank(pairs: Sequence[CasePair], outputs: Sequence[list[Form]], *, finalists: int, seed: int) -> list[CasePair]:
    """Most promising pairs, best first: ranked by single features, then by scores learned on the remaining pairs.

    Args:
        pairs: All pairs.
        outputs: Outputs of each case.
        finalists: Number of pairs to keep.
        seed: Seed of the learning.
    """
    tables = []
    for pair in pairs:
        first, other = (outputs[case] for case in pair.cases)
        secret = np.arange(len(first) + len(other)) < len(first)
        tables.append((flatten([*first, *other], secret), secret))
    gaps = [largest_gap(*table) for table in tables]
    left = sorted(range(len(pairs)), key=lambda i: gaps[i], reverse=True)[: _LEARNED_ON * finalists]
    if len(left) > finalists:
        worth = {i: _worth(*tables[i], np.random.default_rng((seed, _STREAM, i))) for i in left}
        left = sorted(left, key=lambda i: worth[i], reverse=True)[:finalists]
    return [pairs[i] for i in left]


def _worth(rows: np.ndarray[Any, Any], secret: np.ndarray[Any, Any], rng: np.random.Generator) -> tuple[float, float]:
    """Rough lower bound on ε, and the area under the curve of the best score."""
    target = ClaimedLoss(unit="epsilon", claimed=0.0, delta=0.0)
    order = rng.permutation(secret.size)
    rows, secret = rows[order], secret[order]
    learned = learn(rows, secret, rng)
    cuts = edges(learned.held_out)
    counts = cuts.count(learned.held_out, secret)
    tried = attempts(0, cuts.cuts, target)
    weights = np.full(len(tried), 1 / len(tried))
    from scipy.stats import rankdata

    ranks = rankdata(learned.held_out, axis=1)[:, secret].mean(axis=1) / secret.size
    return best(tried, weights, [counts], [counts], target, alpha=_ROUGH, rng=rng).lower, float(ranks.max())
