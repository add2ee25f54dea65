"""Shared parts of the private online agents: noise, precision and memory from a declaration; checks of requests."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from privcheck.declare.declaration import Declaration, Parameter
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches, PerUser, Tree
from privcheck.errors import ParameterError
from privcheck.runtime.registry import AuditInstance
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.tables import size
from privcheck_algorithms.privatizers import noise, recompute
from privcheck_algorithms.privatizers.counters import (
    DOUBLING,
    EXACT,
    LOCAL,
    RECOMPUTED,
    TREE,
    levels,
    outputs,
)

MEMORY = 8e9  # bytes that a run may take for its counters
EPISODES = 2**53  # up to here floats count one by one


def needed(request: OnlineRequest, *, vectors: float) -> float:
    """Memory of all replicates' counters, in bytes.

    Args:
        request: The request.
        vectors: Number of vectors of H·S·A·(S + 2) numbers per replicate.
    """
    mdp = request.world.mdp
    return 8.0 * size(mdp.horizon, mdp.states, mdp.actions) * vectors * request.replicates


def refuse(request: OnlineRequest, *, vectors: float) -> None:
    """Raise an error for a request that cannot be run, before any budget is spent or file written.

    Args:
        request: The request.
        vectors: Number of vectors of H·S·A·(S + 2) numbers per replicate.

    Raises:
        ParameterError: No episode or replicate, more than 2⁵³ episodes, a declaration with different sizes, or counters
            beyond 8 GB.
    """
    mdp = request.world.mdp
    sizes = {"H": mdp.horizon, "S": mdp.states, "A": mdp.actions, "K": request.episodes}
    for name, least in (("episodes", request.episodes), ("replicates", request.replicates)):
        if least < 1:
            raise ParameterError(f"expected at least 1 of {name}, got {least}", name=name, given=least)
    if request.episodes > EPISODES:
        message = f"K: at most {EPISODES} episodes are counted exactly, got {request.episodes}"
        raise ParameterError(message, name="K", given=request.episodes)
    wrong = [
        f"{name} = {request.values[name]} but {size} in {request.world.name}"
        for name, size in sizes.items()
        if name in request.values and request.values[name] != size
    ]
    if wrong:
        raise ParameterError(f"the declaration does not fit the environment: {'; '.join(wrong)}", name=wrong[0][0])
    numbers = size(mdp.horizon, mdp.states, mdp.actions)
    refuse_bytes(
        request,
        needed(request, vectors=vectors),
        what=f"{vectors:g} vectors of {numbers} counters",
        remedy="fewer --replicates, or smaller S, A, H or K (the tree's memory grows with log K)",
    )


def refuse_bytes(request: OnlineRequest, needed: float, *, what: str, remedy: str) -> None:
    """Raise an error for arrays beyond 8 GB.

    Args:
        request: The request.
        needed: Memory of all replicates' arrays, in bytes.
        what: The arrays of one replicate, in words.
        remedy: Settings that would need less, in words.

    Raises:
        ParameterError: The arrays need more memory.
    """
    if needed > MEMORY:
        message = f"{request.replicates} replicates with {what} need {needed / 1e9:.1f} GB; at most {MEMORY / 1e9:g} GB"
        raise ParameterError(f"{message} are taken: {remedy}", name="replicates", given=request.replicates)


def refuse_drawn_start(request: OnlineRequest) -> None:
    """Raise an error if neighbours share their first state, but the world draws it.

    Raises:
        ParameterError: It does.
    """
    relation = declared(request).relation
    if isinstance(relation, ReplaceOne) and relation.initial == "fixed" and not request.world.mdp.fixed_start:
        message = (
            f"initial=fixed: all users start in one state, but in {request.world.name} the first state is drawn, and"
        )
        raise ParameterError(f"{message} is the user's own: use --set initial=any", name="initial", given="fixed")


PRECISION_SCALE = Parameter(
    name="precision_scale",
    default="0.01",
    kind="real",
    meaning="factor of the precision levels E, in the counts and in the bonus; the paper's: 1",
)
PRINTED = {"bonus_scale": "1", "precision_scale": "1"}
NOISE = "simulated: seeded floating-point noise (xoshiro256++, PCG64) inside the kernel; not for a public release"
FIRST_BATCH = Parameter(
    name="first_batch",
    default=1,
    kind="count",
    meaning="with releases=doubling: users of the first batch; after as many again the next one leaves, and so on",
)


# under these a policy follows the noisy counters closely: at an audit's sizes the paper's bonuses hide everything
CLOSELY = AuditInstance(
    options={
        "bonus_scale": Fraction(1, 100),
        "precision_scale": Fraction(0),
        FIRST_BATCH.name: Fraction(1),
    }
)


_KINDS = {Tree: TREE, PerUser: LOCAL, Batches: DOUBLING}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatizerConfig:
    """Configuration of a privatizer, in numbers.

    Attributes:
        kind: Kind of privatizer, as in `privatizers.counters`.
        law: Code of the noise law in the kernels.
        scale: b of the Laplace law, the standard deviation of the Gaussian.
        E1: E_{ε,δ,1}, bound on the errors of visits and costs with probability 1 − δ.
        E2: E_{ε,δ,2}, bound on the errors of transitions.
        first: Number of users of the first doubling batch; 0 without batches.
    """

    kind: int
    law: int
    scale: float
    E1: float
    E2: float
    first: int = 0

    @property
    def central(self) -> bool:
        """Whether a curator keeps exact counters; otherwise every user adds noise."""
        return self.kind not in {LOCAL, EXACT}


NO_PRIVATIZER = PrivatizerConfig(
    kind=EXACT, law=noise.NONE, scale=0.0, E1=0.0, E2=0.0
)  # for the agents that are not private


def privatizer_config(
    request: OnlineRequest, *, noiseless: bool = False, kinds: Collection[int] = (TREE, LOCAL)
) -> PrivatizerConfig:
    """Privatizer configuration of the declaration, with the precision levels of Lemmas 5.1 and 5.4.

    E₁ = (3H/ε)·√(8 log³K·ln(6SAT/δ)) = b·√(8 log K·ln(6SAT/δ)) (Lemma 5.1), and with √K in the place of
    log^{3/2}K under the local privatizer (Lemma 5.4): b·√(8n·ln(6SAT/δ)) with n noisy terms in a count. E₂ has S²AT.
    For Gaussian noise σ a sum of n terms stays within σ·√(2n·ln(2/δ′)), so that 2 replaces the 8 of Laplace sums.

    Args:
        request: The request; its options `failure` and `precision_scale` are used.
        noiseless: Whether to draw no noise; the precision levels, with which the agent plans, are unchanged.
        kinds: Kinds of privatizers that the agent supports.

    Raises:
        ParameterError: No declaration, releases with different noise or an unknown schedule, or neighbours with a
            common first state in an environment with random first states.
    """
    declaration, values = declared(request), request.values
    mdp, K = request.world.mdp, request.episodes
    refuse_drawn_start(request)
    schedules = {type(release.schedule) for release in declaration.noisy}
    kind = _KINDS.get(next(iter(schedules))) if len(schedules) == 1 else None
    if kind is None or kind not in kinds:
        raise ParameterError(f"{declaration.name}: expected trees or users' own releases, got {schedules}")
    laws = {release.mechanism.at(values) for release in declaration.noisy}
    if len(laws) != 1:
        shown = sorted((law.name, law.scale) for law in laws)
        raise ParameterError(f"{declaration.name}: expected one noise for all counters, got {shown}")
    drawn = next(iter(laws))
    law, first = noise.code(drawn), first_batch(request) if kind == DOUBLING else 0
    terms = float(K)
    if first:
        terms = float(outputs(K, first))
    elif kind == TREE:
        terms = math.log(K) if request.readings.get("log") == "ln" else float(levels(K))
    tail = 2 if drawn.gaussian else 8
    reach = float(request.options["precision_scale"]) * drawn.scale
    numbers = 6 * mdp.states * mdp.actions * K * mdp.horizon
    failure = float(request.options["failure"])
    return PrivatizerConfig(
        kind=RECOMPUTED if RECOMPUTED in kinds and recomputes_noise(request) else kind,
        law=noise.NONE if noiseless else law,
        scale=0.0 if noiseless else drawn.scale,
        E1=reach * math.sqrt(tail * terms * math.log(numbers / failure)),
        E2=reach * math.sqrt(tail * terms * math.log(numbers * mdp.states / failure)),
        first=first,
    )


def first_batch(request: OnlineRequest) -> int:
    """Number of users of the first batch: at most all of them."""
    return min(int(request.options.get(FIRST_BATCH.name, FIRST_BATCH.default)), request.episodes)


def declared(request: OnlineRequest) -> Declaration:
    """Declaration of the request.

    Raises:
        ParameterError: The request has no declaration.
    """
    if request.declaration is None:
        raise ParameterError("a private agent needs a declaration, which defines its noise", name="declaration")
    return request.declaration


def vectors(request: OnlineRequest) -> float:
    """Number of counter vectors per replicate: the noisy one; for a curator also the exact one and the tree's.

    For batches, the noisy vector of each batch is kept.
    """
    schedules = {type(release.schedule) for release in declared(request).noisy}
    if schedules == {Batches}:
        return 2 + outputs(request.episodes, first_batch(request))
    return 2 + levels(request.episodes) if schedules == {Tree} else 1


def recomputes_noise(request: OnlineRequest) -> float:
    """Number of vectors per replicate if its tree's noise is recomputed; 0 if the noise is kept.

    The noise is kept if memory allows. Otherwise there are two steps' tables per thread, and trajectories in place of
    counts.
    """
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    if needed(request, vectors=vectors(request)) <= MEMORY:
        return 0.0
    for release in declared(request).noisy:
        if not isinstance(release.schedule, Tree) or noise.code(release.mechanism.at(request.values)) != noise.LAPLACE:
            return 0.0
    threads = max(1, min(request.workers, request.replicates)) / request.replicates
    marks = levels(K) * recompute.PARTS * H * noise.SHAPE[0] * noise.SHAPE[1]
    return 2 * threads / H + (K * (3 * H + 1) + marks) / size(H, S, A)


def numbers(values: Mapping[str, Fraction], *names: str) -> list[float]:
    """Some of the values as floats."""
    return [float(values[name]) for name in names]
