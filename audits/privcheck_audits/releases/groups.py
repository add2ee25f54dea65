"""Several users at once: k identical changes, for small ε; many canaries in one run, each with a hidden bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.data.trajectories import Trajectories, take
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Noise
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import Statistic
from privcheck.errors import ParameterError
from privcheck.runtime.results import AuditResult
from privcheck_audits.bounds import GuessPlan, OneRun, group_size, guess_plan
from privcheck_audits.engine.blocks import BLOCK, Tally, tally
from privcheck_audits.engine.scores import MovedGroup, Scored, draw_hidden_bits
from privcheck_audits.plan.reachable import best_plan, loss_law, predict_counts
from privcheck_audits.plan.requests import Evidence, on_curve
from privcheck_audits.plan.runner import Outcome
from privcheck_audits.releases.attacks import AttackedInstance, coin_flip, curve, describe_size, run_attack
from privcheck_audits.releases.canaries import Canary, canary, sizes

_CURVE_AIM: Final = 3.0  # k·μ at which a guess on the curve says most about one user's μ
_MOST: Final = 4_096  # canaries of one run
_GRID: Final = 2.0**30  # scores are multiples of 2⁻³⁰ nats, as in `privcheck_audits.engine.scores`


def group(target: AttackedInstance) -> AuditResult:
    """Bound on one user's loss from k users who all change as the canary does.

    Statistics are sums over users, so k identical changes add up to k times the change. k·ε is 1 to 2 (on the curve k·μ
    is about 3), where guesses are most informative.
    """
    request = target.request
    if on_curve(request):
        mu = request.priced.numbers.mu or 1.0
        users = max(1, round(_CURVE_AIM / mu))
    else:
        users = group_size(target.bound.least)
    one = target.canary
    groups = tuple(replace(g, change=g.change * users) for g in one.groups if isinstance(g, MovedGroup))
    many = replace(one, groups=groups, mu=one.mu * users, pure=one.pure * users)
    return (curve if on_curve(request) else coin_flip)(replace(target, canary=many, users=users))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """One release, with the cells of each canary.

    Attributes:
        statistic: Statistic of all users.
        noise: Noise that is added.
        cells: (m, c) flat cells that depend on one canary only.
        with_first: (m, c) values of these cells if the canary is as in D.
        change: (c,) f(D) − f(D′) at a canary's cells, the same for all.
    """

    statistic: Statistic[Trajectories]
    noise: Noise
    cells: NDArray[np.int64]
    with_first: NDArray[np.float64]
    change: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ManyCanaries:
    """Many canaries of one run, each as in D or as in D′ by a separate hidden bit.

    Attributes:
        first: The m canaries as in D.
        second: The canaries as in D′; None if they are absent there.
        tables: The releases.
    """

    first: Trajectories
    second: Trajectories | None
    tables: tuple[_Table, ...]

    @property
    def canaries(self) -> int:
        """Number of canaries m."""
        return self.first.users

    def __call__(self, rng: np.random.Generator) -> Scored:
        """Scores of the canaries of one fresh run, from the whole statistics with noise."""
        secret = draw_hidden_bits(rng, self.canaries)
        data = _mix(self.first, self.second, secret)
        score = np.zeros(self.canaries)
        for table in self.tables:
            exact = table.statistic.compute(data)
            noisy = table.noise.add(exact, rng).reshape(-1)
            score += table.noise.log_ratio(noisy[table.cells] - table.with_first, table.change)
        return Scored(score=np.rint(score * _GRID) / _GRID, secret=secret)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ManyRuns:
    """A block of runs with many canaries each; importable by worker processes."""

    many: ManyCanaries
    plan: GuessPlan
    seed: int

    def __call__(self, rng: np.random.Generator, bits: int, first: int) -> Tally:
        parts = [self.many(rng) for _ in range(bits // self.many.canaries)]
        scored = Scored(
            score=np.concatenate([part.score for part in parts]),
            secret=np.concatenate([part.secret for part in parts]),
        )
        return tally(scored, self.plan, first=first, seed=self.seed)


def one_run(target: AttackedInstance) -> AuditResult:
    """Bound from many canaries of one run, or of the fewest runs with about 2N canaries.

    Every run computes the statistics of all its users and adds noise to all cells. Canaries of different
    runs are different users, so the counts of several runs may be added.

    Raises:
        ParameterError: No two canaries have disjoint cells.
    """
    request = target.request
    many, one = choose_canaries(request.declaration, request.values)
    runs = max(1, round(2 * request.trials / many.canaries))
    bits = runs * many.canaries
    law = loss_law(one.groups)
    read_bound = partial(_bound, alpha=target.alpha, delta=request.delta, gaussian=on_curve(request))
    plan = best_plan(law, bits, alpha=target.alpha, delta=request.delta)
    if request.delta > 0:  # one attempt with all of α, with the share that is best by the declared law
        plans = [GuessPlan(shares=(share,), weights=(1.0,)) for share in guess_plan().shares]
        plan = max(plans, key=lambda one: read_bound(_attempts(bits, *predict_counts(law, one, bits)), one)[0])
    many(np.random.default_rng(0))  # Numba compiles before the clock starts

    def read(counted: Tally) -> Outcome:
        attempts = _attempts(bits, counted.ranked_errors, counted.ranked_guesses)
        lower, best = read_bound(attempts, plan)
        refuted = target.bound.name_refuted(lower)
        evidence: Evidence = {
            "errors": best.errors,
            "guesses": best.guesses,
            "error_rate": best.errors / best.guesses,
            "canaries_of_a_run": many.canaries,
            "runs_of_the_mechanism": runs,
            "runs": bits,  # hidden bits
            "attempts": len(plan.shares),
            "refuted": refuted,
        }
        expected = _attempts(bits, *predict_counts(law, plan, bits))
        return Outcome(
            violated=refuted != "nothing",
            lower=lower,
            evidence=evidence,
            method=f"one run with {many.canaries} canaries, each in D or D′ by a hidden fair bit of its own, "
            f"{runs:,} times with other users; bits guessed at {len(plan.shares)} shares fixed in advance"
            + "; the errors bound μ, and the exact curve gives ε(δ)" * on_curve(request)
            + describe_size(target),
            witness=f"{many.canaries} users, of whom the first: {one.words}",
            reachable=read_bound(expected, plan)[0],
            runs=bits,
        )

    work = _ManyRuns(many=many, plan=plan, seed=request.seed)
    block = many.canaries * max(1, BLOCK // many.canaries)
    return run_attack(target, work, read, block=block, runs=bits)


def choose_canaries(declaration: Declaration, values: Mapping[str, Fraction]) -> tuple[ManyCanaries, Canary]:
    """The largest set of canaries with disjoint cells, and the first of them alone, with its loss.

    Every one stays in one state and plays one action throughout: in D one of two actions, in D′ the other (with a
    single action, two states); if users may be absent, one action in D and no data in D′. The reward is the more
    revealing one.

    Args:
        declaration: The declaration.
        values: Values of its parameters.

    Raises:
        ParameterError: There are no such cells.
    """
    placed = [_place_canaries(declaration, values, reward) for reward in (1.0, 0.0)]
    many, one = max(placed, key=lambda pair: pair[1].mu ** 2 / 2 + pair[1].pure)
    return many, one


def _place_canaries(
    declaration: Declaration, values: Mapping[str, Fraction], reward: float
) -> tuple[ManyCanaries, Canary]:
    H, S, A = sizes(values)
    cells = [(s, a) for s in range(S) for a in range(A)]
    replaced = isinstance(declaration.relation, ReplaceOne)
    if replaced:  # two actions of one state, or two states; the odd one out is left
        rows = [cells[s * A : s * A + A - A % 2] for s in range(S)] if A > 1 else [cells[: S - S % 2]]
        cells = [cell for row in rows for cell in row]
    cells = cells[: 2 * _MOST if replaced else _MOST]
    if not cells:
        raise ParameterError(f"{declaration.name}: with S = {S} and A = {A} no two users have separate cells")
    first = _stay_in_cells(cells[0::2] if replaced else cells, H, S, A, reward)
    second = _stay_in_cells(cells[1::2], H, S, A, reward) if replaced else None
    alone = [take(first, slice(j, j + 1)) for j in range(first.users)]
    other = [None if second is None else take(second, slice(j, j + 1)) for j in range(first.users)]
    tables = []
    for release in declaration.noisy:
        moved = [release.moved(pair, values) for pair in zip(alone, other, strict=True)]
        if not moved[0].cells.size:
            continue
        where_moved = np.stack([m.cells for m in moved])
        change = np.stack([m.change for m in moved])
        if np.unique(where_moved).size < where_moved.size or np.ptp(change, axis=0).any():
            raise ParameterError(f"{declaration.name}: {release.name}: two canaries have no separate cells")
        exact = release.statistic.compute(first).reshape(-1)
        tables.append(
            _Table(
                statistic=release.statistic,
                noise=release.mechanism.at(values),
                cells=where_moved,
                with_first=exact[where_moved],
                change=change[0],
            )
        )
    many = ManyCanaries(first=first, second=second, tables=tuple(tables))
    return many, canary(declaration, values, (alone[0], other[0]))


def _stay_in_cells(cells: list[tuple[int, int]], H: int, S: int, A: int, reward: float) -> Trajectories:
    users = np.array(cells, dtype=np.int32)
    return Trajectories(
        states=np.repeat(users[:, :1], H + 1, axis=1),
        actions=np.repeat(users[:, 1:], H, axis=1),
        rewards=np.full((len(cells), H), reward),
        num_states=S,
        num_actions=A,
    )


def _mix(first: Trajectories, second: Trajectories | None, secret: NDArray[np.bool_]) -> Trajectories:
    if second is None:
        return take(first, np.flatnonzero(secret))
    on_first = secret[:, None]
    return Trajectories(
        states=np.where(on_first, first.states, second.states),
        actions=np.where(on_first, first.actions, second.actions),
        rewards=np.where(on_first, first.rewards, second.rewards),
        num_states=first.num_states,
        num_actions=first.num_actions,
    )


def _attempts(canaries: int, errors: tuple[int, ...], guesses: tuple[int, ...]) -> list[OneRun]:
    return [OneRun(canaries=canaries, guesses=g, errors=e) for e, g in zip(errors, guesses, strict=True)]


def _bound(
    attempts: list[OneRun], plan: GuessPlan, *, alpha: float, delta: float, gaussian: bool
) -> tuple[float, OneRun]:
    """Largest lower bound on ε with its attempt; from μ and the exact curve, if the releases are Gaussian."""
    largest, best = 0.0, attempts[0]
    for attempt, weight in zip(attempts, plan.weights, strict=True):
        part = alpha * weight
        if gaussian:
            mu = attempt.mu(alpha=part)
            lower = gdp_epsilon(mu, delta, rounding="down") if mu > 0 else 0.0
        else:
            lower = attempt.epsilon(alpha=part, delta=delta, above=largest)
        if lower > largest:
            largest, best = lower, attempt
    return largest, best
