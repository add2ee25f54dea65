"""The white-box views of any declaration with additive noise: lockstep replay and noise audit.

They see exact values, unlike other observers, and give no bound on ε: they test whether the running code matches the
declaration.
Streams are run with a few users and outputs, large tables with few states: sensitivities and noise are formulas in
these numbers. The declared statistics, the channel and the tree's counter run here; agents with their own loop are run
by `privcheck_audits.lockstep.agent_views`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from privcheck.declare.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.runtime.audit_pictures import ShownPair
from privcheck.runtime.offline import OfflineAgent
from privcheck.runtime.results import AuditRequest, AuditResult, AuditView
from privcheck.verification.candidates import UserPair, explain_no_pair, explain_unknown_data
from privcheck_audits.engine.blocks import A, Work, blocks, total
from privcheck_audits.lockstep.noise import noise_sums
from privcheck_audits.lockstep.noise_tests import Sums, draw_spreads, explain_untested, judge, list_declared_noise
from privcheck_audits.lockstep.offline_agents import OfflinePasses, replay_pair, search_far
from privcheck_audits.lockstep.replay import Distance, Replayed, add_until_departure, draw_distances, publish, replay
from privcheck_audits.lockstep.streams import audience, canaries, only, refuse_absence, tractable
from privcheck_audits.lockstep.users import Users, gather_users, others, random_pair
from privcheck_audits.plan.requests import Evidence, check, place_blocks, size_note
from privcheck_audits.plan.runner import Outcome, run_test

_PAIRS: Final = 4  # a block
_NOTHING: Final = "values of 0: no user's data is known; give the declaration `records`, to which noise is then added"
_TRIES: Final = 20  # random pairs, of which one is to keep all preconditions
_RUNS: Final = 8  # a block; successive runs are compared within one


def blind(declaration: Declaration, view: AuditView) -> str:
    """Reason why one of these views cannot audit a declaration; empty if it can."""
    if view not in {"lockstep", "noise"}:
        return ""
    if declaration.others:
        names = ", ".join(f"{one.name} ({one.facts.output})" for one in declaration.others)
        return f"{names} is not a value plus noise, which alone is replayed: audit the releases view"
    if view == "lockstep":
        return refuse_absence(declaration) or explain_unknown_data(declaration)
    if why := explain_untested(declaration.noisy):
        return why
    shared = declaration.shared_draws
    return f"{', '.join(shared)}: declared with noise that is shared, which a channel does not draw" if shared else ""


def lockstep(request: AuditRequest, agent: OfflineAgent | None = None) -> AuditResult:
    """Test whether some pair changes a release by more than its charge; `trials` is the number of pairs.

    The pairs that verification tries come first, as the first user; then random pairs and those again, anywhere in the
    order of users.

    Args:
        request: The request.
        agent: Agent to run with both halves; None for the declared statistics alone.

    Raises:
        ParameterError: A number of the request is out of range, or there is no pair to try.
    """
    check(request)
    began = time.perf_counter()
    if why := blind(request.declaration, "lockstep"):
        raise ParameterError(f"{request.declaration.name}: {why}", name="view", given="lockstep")
    values = tractable(request.declaration, request.values)
    rng = np.random.default_rng(np.random.SeedSequence(request.seed, spawn_key=(2,)))
    fixed = tuple(canaries(request.priced.at(values)))
    base = others(request.declaration, values, rng, audience(request.declaration, values) - 1)
    if not fixed and random_pair(request.declaration, values, rng, first=True) is None:
        message = f"{request.declaration.name}: {explain_no_pair(request.declaration, values)}"
        raise ParameterError(message, name="candidates")
    passes = _passes(agent, request, values)
    work = _Pairs(declaration=request.declaration, values=values, fixed=fixed, base=base, agent=passes)
    return audit_pairs(request, work, began=began, values=values, agent_ran=agent is not None)


def noise(request: AuditRequest, agent: OfflineAgent | None = None) -> AuditResult:
    """Test whether the declared noise is drawn; `trials` is the number of runs.

    Args:
        request: The request.
        agent: Agent to run with both halves; None for the declared statistics alone.

    Raises:
        ParameterError: A number of the request is out of range, or the noise is not additive and independent.
        AuditError: An output is not finite.
    """
    check(request)
    began = time.perf_counter()
    if why := blind(request.declaration, "noise"):
        raise ParameterError(f"{request.declaration.name}: {why}", name="view", given="noise")
    values = tractable(request.declaration, request.values)
    rng = np.random.default_rng(np.random.SeedSequence(request.seed, spawn_key=(3,)))
    number = audience(request.declaration, values)
    users = gather_users(request.declaration, values, rng, number)
    nobody = {} if any(user is not None for user in users) else {"added_to": _NOTHING}
    return audit_draws(
        request,
        _Runs(
            declaration=request.declaration,
            values=values,
            users=users,
            seed=request.seed,
            agent=_passes(agent, request, values),
        ),
        began=began,
        values=values,
        who="what the channel drew",
        agent_ran=agent is not None,
        **nobody,
    )


def _passes(agent: OfflineAgent | None, request: AuditRequest, values: Mapping[str, Fraction]) -> OfflinePasses | None:
    return None if agent is None else OfflinePasses(agent=agent, setting=request.setting.at(values))


def audit_pairs(
    request: AuditRequest,
    work: Work[Replayed],
    *,
    began: float,
    values: Mapping[str, Fraction],
    method: str = "",
    agent_ran: bool = False,
    **more: str,
) -> AuditResult:
    """Replay `trials` pairs in blocks, up to the first departure, and return the result.

    Args:
        request: The request.
        work: Replays the pairs of a block.
        began: Start of the audit.
        values: Parameters of the run.
        method: The comparison, in words; empty for that of the statistics.
        agent_ran: Whether the registered agent was run.
        more: Further evidence.
    """

    def read(replayed: Replayed) -> Outcome:
        broken = [distance for distance in replayed.distances if distance.exceeds]
        top = max(broken or replayed.distances, key=lambda distance: (distance.ratio, distance.pair == replayed.words))
        evidence: Evidence = {f"{d.release}_{d.norm}_moved_over_charged": _finite(d.ratio) for d in replayed.distances}
        evidence |= {
            "release": top.release,
            "norm": top.norm,
            "moved": _finite(top.measured),
            "charged": top.charged,
            "pairs": replayed.pairs,
            **more,
        }
        witness = top.pair
        if replayed.plainest:
            evidence["plainest_pair"] = replayed.plainest
        if replayed.policies:
            evidence |= {
                "policies": replayed.policies,
                "policies_that_moved": replayed.changes,
                "departures": replayed.departures,
                "unrepeated": replayed.unrepeated,
                "compared": ", ".join(replayed.compared),
            }
            witness = replayed.departure or witness  # after it the two runs have other users
        if replayed.doubt:
            evidence["doubt"] = replayed.doubt
        return Outcome(
            violated=bool(broken) or replayed.departures > 0,
            method=method
            or "lockstep replay: the distance of the exact values on D and, behind D's billboard, on D′ against the "
            "sensitivity charged; exact, without error probability",
            witness=witness,
            evidence=evidence | size_note(request.values, values),
            bars=draw_distances(replayed.distances),
            pair=replayed.shown,
            doubt=replayed.doubt,
            runs=2 * replayed.pairs if replayed.departures else None,
        )

    def count(_: object) -> Replayed:
        parts = _blocks(request, work, block=_PAIRS, stream=0, kinds=(Replayed, Distance, ShownPair))
        with closing(parts):
            return add_until_departure(parts)

    return run_test(request, count, read, began=began, agent_ran=agent_ran)


def audit_draws(
    request: AuditRequest,
    work: Work[Sums],
    *,
    began: float,
    values: Mapping[str, Fraction],
    who: str,
    agent_ran: bool = False,
    **more: str,
) -> AuditResult:
    """Test the noise drawn by `trials` runs, in blocks, and return the result.

    Args:
        request: The request.
        work: Records the noise of the runs of a block.
        began: Start of the audit.
        values: Parameters of the run.
        who: The tested noise, in words.
        agent_ran: Whether the registered agent was run.
        more: Further evidence.
    """

    def read(sums: Sums) -> Outcome:
        declared = list_declared_noise(request.declaration, values)
        tests = judge(sums, declared)
        level = (1 - request.confidence) / max(1, len(tests))
        broken = sorted((test for test in tests if test.p_value < level), key=lambda test: test.p_value)
        evidence: Evidence = {f"drawn_over_declared_scale_{t.where}": t.figure for t in tests if t.name == "scale"}
        refuted = "; ".join(f"{t.name} of {t.where} ({t.figure:.4g})" for t in broken) or "nothing"
        evidence |= {
            "tests": len(tests),
            "smallest_p_value": min((test.p_value for test in tests), default=1.0),
            "level_of_each_test": level,
            "draws": sum(int(bins.sum()) for bins in sums.bins.values()),
            **more,
            **size_note(request.values, values),
            "refuted": refuted,
        }
        return Outcome(
            violated=bool(broken),
            method=f"noise as declared: {len(tests)} tests of scale, law and independence of {who}, valid at any "
            "number of draws, α divided among them",
            witness=refuted,
            evidence=evidence,
            bars=draw_spreads((test for test in tests if test.where in declared), declared, level),
        )

    def count(_: object) -> Sums:
        return total(_blocks(request, work, block=_RUNS, stream=1, kinds=(Sums,)))

    return run_test(request, count, read, began=began, agent_ran=agent_ran)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """A block of pairs."""

    declaration: Declaration
    values: Mapping[str, Fraction]
    fixed: tuple[tuple[Declaration, UserPair], ...]
    base: Users
    agent: OfflinePasses | None

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Replayed:
        return add_until_departure(self._one(rng, number) for number in range(first, first + runs))

    def _one(self, rng: np.random.Generator, number: int) -> Replayed:
        seen, pair, position = self._choose(rng, number)
        passes = None if self.agent is None else self.agent.fresh()
        execute = publish if passes is None else passes
        seed = int(rng.integers(2**62))
        among = partial(replay, seen, self.values, seed=seed, execute=execute)
        run = partial(among, self.base, position=position)
        found = replay_pair(pair, run, passes, position=position if self.base else None)
        return search_far(found, pair, self.base, among, passes) if number < len(self.fixed) else found

    def _choose(self, rng: np.random.Generator, number: int) -> tuple[Declaration, UserPair, int]:
        if number < len(self.fixed):
            return *self.fixed[number], 0
        position, groups = int(rng.integers(len(self.base) + 1)), self.declaration.groups
        group = groups[int(rng.integers(len(groups)))]
        seen = only(self.declaration, self.declaration.seen_by(group))
        drawn = (random_pair(seen, self.values, rng, first=number % 4 < 2) for _ in range(1 if self.fixed else _TRIES))
        pair = next((pair for pair in drawn if pair is not None), None)
        if self.fixed and (pair is None or number % 2):
            return *self.fixed[int(rng.integers(len(self.fixed)))], position
        if pair is None:
            message = f"{self.declaration.name}: {explain_no_pair(seen, self.values)}"
            raise ParameterError(message, name="candidates")
        return seen, pair, position


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Runs:
    """A block of runs of the channel and the counters."""

    declaration: Declaration
    values: Mapping[str, Fraction]
    users: Users
    seed: int
    agent: OfflinePasses | None

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Sums:
        if self.agent is not None:
            return self.agent.record(self.users, runs=range(first, first + runs), rng=rng, seed=self.seed)
        return noise_sums(
            self.declaration, self.values, self.users, runs=range(first, first + runs), rng=rng, seed=self.seed
        )


def _blocks(
    request: AuditRequest, work: Work[A], *, block: int, stream: int, kinds: tuple[type, ...]
) -> Generator[A, None, None]:
    return blocks(work, request.trials, stream=stream, block=block, **place_blocks(request, *kinds))


def _finite(figure: float) -> float | str:
    return figure if math.isfinite(figure) else "slices differ"
