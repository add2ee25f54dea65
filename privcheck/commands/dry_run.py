"""Estimated work of a command, for `--dry-run` and to refuse work that takes too long; users are not sampled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from privcheck.commands import checks
from privcheck.commands import runs as learned
from privcheck.commands.datasets import load
from privcheck.commands.estimates import (
    audit_part,
    offline_part,
    online_part,
    sampling_part,
    training_part,
    within_limits,
)
from privcheck.commands.online_runs import episodes_of, online_only
from privcheck.commands.settings import Chosen, resolve_setting, settle
from privcheck.commands.sources import Place, source_to_run, task_to_run, usual_place, world_to_run
from privcheck.declare.declaration import resolve
from privcheck.reports.values import PlannedPart
from privcheck.runtime import registry
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import NoiseKind

_UNREAD = {"H": 1, "S": 1, "A": 1}  # the least that data can be that are not read yet

Given = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """Estimated work of a command.

    Attributes:
        settings: Settings of its algorithms; empty if they depend on data that are not read yet.
        parts: Parts of its work.
    """

    settings: tuple[Chosen, ...]
    parts: tuple[PlannedPart, ...]


def foresee_audit(
    name: str, given: Given, *, view: str, method: str, confidence: float, trials: int | None, workers: int | None
) -> Foreseen:
    """Estimate the work of one audit.

    Raises:
        PrivcheckError: The audit would be refused.
    """
    setting = resolve_setting(name, given)
    plan = registry.plan_for(setting.algorithm)
    asked = learned.choose_view(setting, plan, view, method=method, confidence=confidence)
    return Foreseen(settings=(setting,), parts=(audit_part(setting, plan, asked, trials=trials, workers=workers),))


def foresee_run(
    names: Sequence[str],
    given: Given,
    place: Place,
    *,
    replicates: int,
    seed: int,
    workers: int | None,
    read: bool,
) -> Foreseen:
    """Estimate the work of a run.

    Args:
        names: Names of the algorithms.
        given: The user's NAME=VALUE pairs.
        place: Environment or data.
        replicates: Number of repetitions.
        seed: Seed of a randomly drawn model.
        workers: Threads; None for all cores.
        read: Whether a user's file may be read; if not, the smallest possible sizes are assumed.

    Raises:
        PrivcheckError: The run would be refused.
    """
    algorithms = [registry.algorithm(name) for name in names]
    if online_only(algorithms):
        settings, world = world_to_run(algorithms, given, place, seed=seed)
        parts = [
            online_part(one, world.sizes, episodes=episodes_of(one), replicates=replicates, workers=workers)
            for one in settings
        ]
        return Foreseen(settings=tuple(settings), parts=tuple(parts))
    if algorithms[0].trained is not None:
        setting, task = task_to_run(algorithms[0], given, place)
        return Foreseen(settings=(setting,), parts=(training_part(setting, steps=task.steps, replicates=replicates),))
    return _foresee_learning(algorithms[0], given, place, replicates=replicates, seed=seed, read=read)


def foresee_check(
    name: str,
    given: Given,
    place: Place,
    *,
    trials: int | None,
    replicates: int | None,
    noise: NoiseKind,
    seed: int,
    workers: int | None,
    read: bool,
) -> Foreseen:
    """Estimate the work of a check: its audits and its run; see `foresee_run`."""
    algorithm = registry.algorithm(name)
    own_data = usual_place(algorithm, place).environment is None
    repeated = checks.count_replicates(replicates, noise, own_data=own_data)
    if algorithm.runs or algorithm.declare is None:
        where = usual_place(algorithm, place)
        run = foresee_run([name], given, where, replicates=repeated, seed=seed, workers=workers, read=read)
    else:
        run = Foreseen(settings=(settle(algorithm, given),), parts=())
    audits = tuple(_audits(run.settings[0] if run.settings else settle(algorithm, {}), trials, workers))
    return Foreseen(settings=run.settings, parts=(*audits, *run.parts))


def _audits(setting: Chosen, trials: int | None, workers: int | None) -> Iterator[PlannedPart]:
    if setting.declaration is None:
        return
    plan = registry.plan_for(setting.algorithm)
    for view in checks.audited_views(setting, plan):
        runs = trials if view in checks.SAMPLED else None
        yield audit_part(setting, plan, view, trials=runs, workers=workers)


def _foresee_learning(
    algorithm: Algorithm, given: Given, place: Place, *, replicates: int, seed: int, read: bool
) -> Foreseen:
    name = place.environment
    if name is None and not read and place.data is not None and place.env is None:
        bare = settle(algorithm, {})
        return Foreseen(settings=(), parts=(offline_part(bare, _UNREAD, users=1, replicates=replicates),))
    if name is None or place.rewards is not None or place.features is not None:
        setting, source = source_to_run(algorithm, given, place, seed=seed)  # read, or refused
        learned.refuse_no_agent(setting)
        users = source.data.trajectories.users
        return Foreseen(
            settings=(setting,), parts=(offline_part(setting, source.sizes, users=users, replicates=replicates),)
        )
    environment = registry.environment(name)
    own = {p.name for p in environment.parameters}
    values = resolve(environment.parameters, {k: v for k, v in given.items() if k in own}, owner=name)
    users = int(values.get("n", 1))
    sampling = sampling_part(name, users=users, steps=int(values.get("H", 1)))
    if not within_limits([sampling]):  # what is so large is not looked at closer
        return Foreseen(settings=(), parts=(sampling,))
    if environment.model is None:  # one simulated user says how large the others are
        one = load(env=name, data=None, rewards=None, given={**given, "n": "1"}, algorithm=algorithm, seed=seed)
        sizes = one.sizes
    else:
        sizes = environment.model({k: int(v) for k, v in values.items() if k != "n"}, seed).sizes
    setting = settle(algorithm, {k: v for k, v in given.items() if k not in own}, sizes=sizes)
    learned.refuse_no_agent(setting)
    return Foreseen(
        settings=(setting,),
        parts=(
            sampling,
            offline_part(setting, sizes, users=users, replicates=replicates),
        ),
    )
