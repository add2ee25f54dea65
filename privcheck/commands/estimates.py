"""Estimates of a command's time and memory from its sizes; nothing is drawn.

The rates were measured on one core of a common machine, at the shipped algorithms' defaults (`benchmarks/`). Another
algorithm or machine may be ten times as fast or as slow: enough to tell minutes from years.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from privcheck.commands.declarations import price_releases
from privcheck.commands.provenance import exact_parameters
from privcheck.commands.settings import Chosen
from privcheck.errors import ParameterError
from privcheck.reports.values import PlannedPart, PlannedWork
from privcheck.runtime.registry import AuditPlan

SECONDS: Final = 3600.0  # more than this is done only with --yes
BYTES: Final = 8e9

_START: Final = 3.0  # seconds of a part, compilation and choice of a pair included
_PROCESS: Final = 2e8  # bytes of the program itself
_BLOCK: Final = 65_536 * 8 * 40  # bytes of the runs that an audit has in flight on a thread
_RELEASE_RUNS: Final = 1e6  # of a pair's releases, a second: 0.04 to 25 million
_OFFLINE_RUNS: Final = 5_000.0  # of an agent that learns from data, in the policy view
_ONLINE_RUNS: Final = 200.0  # of an agent that learns as it acts, in the policy view
_WHOLE_RUNS: Final = 20.0  # of lockstep and noise audits, and of views that others registered
_STEP: Final = 1e-7  # seconds a step, sampled or played
_COUNTER: Final = 1.5e-9  # seconds a counter and episode: noise and planning of compiled agents
_DIMENSION: Final = 1.5e-6  # seconds a squared dimension of features and episode
_CELL: Final = 3e-8  # seconds a noisy cell of an agent that learns from data
_LEARN: Final = 2e-3  # seconds of learning at least
_TRAINED_STEP: Final = 4e-7  # seconds a step of a training, played and learned from
_WEIGHT: Final = 2e-9  # seconds a parameter and step
_STEP_BYTES: Final = 40.0  # a step of a user, in memory while it is sampled
_CURVES: Final = 3 * 400 * 8 * 2  # bytes of a replicate's curves


def audit_part(setting: Chosen, plan: AuditPlan, view: str, *, trials: int | None, workers: int | None) -> PlannedPart:
    """Estimated work of one audit.

    Args:
        setting: The audited algorithm.
        plan: Its plan, which contains the view.
        view: The view.
        trials: Runs under each neighbour; None for the plan's number.
        workers: Threads; None for all cores.
    """
    runs = 2 * (next(number for name, number in plan.trials.items() if name == view) if trials is None else trials)
    agent = _ONLINE_RUNS if setting.algorithm.online is not None else _OFFLINE_RUNS
    rate = {"releases": _RELEASE_RUNS, "policy": agent}.get(view, _WHOLE_RUNS)
    threads = _threads(workers)
    return PlannedPart(
        what=f"audit, {view}",
        sizes={"runs": runs, "threads": threads},
        seconds=_START + runs / rate / threads,
        bytes=_PROCESS + threads * min(runs * 8.0 * 40, _BLOCK),
    )


def online_part(
    setting: Chosen, sizes: Mapping[str, int], *, episodes: int, replicates: int, workers: int | None
) -> PlannedPart:
    """Estimated work of an online agent's run; the smaller work of its noiseless twin is not counted.

    Args:
        setting: The agent.
        sizes: H, S and A of its environment, and the dimension of its features.
        episodes: Number of episodes K.
        replicates: Number of repetitions, all in memory at the same time.
        workers: Threads; None for all cores.
    """
    counters = sizes["H"] * sizes["S"] * sizes["A"] * (sizes["S"] + 2)
    dimension = sizes.get("d", 0) if "d" in setting.values else 0
    episode = sizes["H"] * _STEP + (_DIMENSION * dimension**2 if dimension else _COUNTER * counters)
    threads = min(_threads(workers), replicates)
    nodes = 4 + (math.log2(episodes) if setting.declaration is not None else 0)  # of a tree, a node a level is held
    return PlannedPart(
        what=f"run {setting.algorithm.name}",
        sizes={"episodes": episodes, "replicates": replicates, "threads": threads, **_plain(sizes)},
        seconds=_START + episodes * replicates * episode / threads,
        bytes=_PROCESS + replicates * (8.0 * nodes * max(counters, sizes["H"] * dimension**2) + _CURVES),
    )


def training_part(setting: Chosen, *, steps: int, replicates: int) -> PlannedPart:
    """Estimated work of training a policy and its twin without noise.

    Args:
        setting: The agent.
        steps: Largest number of steps of an episode.
        replicates: Number of repetitions.
    """
    users, parameters = int(setting.values["K"]), int(setting.values.get("d", 1))
    batch = int(setting.values.get("B", users))
    return PlannedPart(
        what=f"run {setting.algorithm.name}",
        sizes={"episodes": users, "replicates": replicates, "H": steps},
        seconds=_START + 2 * replicates * users * steps * (_TRAINED_STEP + parameters * _WEIGHT),
        bytes=_PROCESS + batch * steps * _STEP_BYTES * 8 + 8.0 * batch * parameters,
    )


def offline_part(setting: Chosen, sizes: Mapping[str, int], *, users: int, replicates: int) -> PlannedPart:
    """Estimated work of learning from a dataset.

    Args:
        setting: The agent.
        sizes: H, S and A of the data.
        users: Number of episodes.
        replicates: Number of repetitions.
    """
    cells = float(sizes["H"] * sizes["S"] ** 2 * sizes["A"])
    return PlannedPart(
        what=f"run {setting.algorithm.name}",
        sizes={"episodes": users, "replicates": replicates, **_plain(sizes)},
        seconds=_START + users * sizes["H"] * _STEP + replicates * (_LEARN + cells * _CELL),
        bytes=_PROCESS + users * sizes["H"] * _STEP_BYTES + 8.0 * (4 * cells + 4 * replicates),
    )


def sampling_part(environment: str, *, users: int, steps: int) -> PlannedPart:
    """Estimated work of sampling a dataset of `users` episodes with `steps` steps each."""
    return PlannedPart(
        what=f"sample {environment}",
        sizes={"episodes": users, "H": steps},
        seconds=users * steps * _STEP,
        bytes=_PROCESS + users * steps * _STEP_BYTES,
    )


def planned_work(
    command: str,
    settings: Sequence[Chosen],
    parts: Sequence[PlannedPart],
    *,
    delta: Callable[[Chosen], float],
    writes: str | None,
) -> PlannedWork:
    """The dry run of a command: its parts, totals, guarantees and output.

    Args:
        command: Name of the command.
        settings: Settings of its algorithms.
        parts: Parts of its work.
        delta: δ at which an algorithm's ε is stated.
        writes: Output path; None for no output.
    """
    seconds, most = _total(parts)
    return PlannedWork(
        command=command,
        algorithms=tuple(setting.algorithm.name for setting in settings),
        parameters={setting.algorithm.name: exact_parameters(setting) for setting in settings},
        parts=tuple(parts),
        seconds=seconds,
        bytes=most,
        within=within_limits(parts),
        guarantee={setting.algorithm.name: _guarantee(setting, delta) for setting in settings},
        writes=writes,
    )


def within_limits(parts: Sequence[PlannedPart]) -> bool:
    """Whether the parts together take at most an hour, and each of them at most 8 GB of memory."""
    seconds, most = _total(parts)
    return seconds <= SECONDS and most <= BYTES


def _total(parts: Sequence[PlannedPart]) -> tuple[float, float]:
    return sum(part.seconds for part in parts), max((part.bytes for part in parts), default=0.0)


def refuse_long(parts: Sequence[PlannedPart], *, yes: bool) -> None:
    """Refuse work that takes longer than an hour or more memory than 8 GB.

    Args:
        parts: Parts of the work.
        yes: Skip the check.

    Raises:
        ParameterError: The estimate exceeds a limit; the message states it.
    """
    if yes or within_limits(parts):
        return
    seconds, most = _total(parts)
    largest = max(parts, key=lambda part: (part.bytes > BYTES, part.seconds))
    sizes = ", ".join(f"{name} {size:,}" for name, size in largest.sizes.items())
    message = (
        f"{largest.what} ({sizes}): the command takes about {say_seconds(seconds)} and {say_bytes(most)} of memory, an "
        f"estimate that may be wrong by a factor of ten; the limits are {say_seconds(SECONDS)} and {say_bytes(BYTES)}. "
        "Make the numbers smaller, or give --yes to start anyway; nothing was drawn or written"
    )
    raise ParameterError(message, name="yes")


def say_seconds(seconds: float) -> str:
    """A duration in the unit that fits.

    >>> say_seconds(90.0), say_seconds(6e7)
    ('1.5 min', '1.9 years')
    """
    for unit, length in (("years", 31_557_600.0), ("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{_two_digits(seconds / length)} {unit}"
    return f"{_two_digits(seconds)} s"


def say_bytes(number: float) -> str:
    """An amount of memory in the unit that fits.

    >>> say_bytes(2e8), say_bytes(8e9)
    ('200 MB', '8 GB')
    """
    for unit, size in (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9)):
        if number >= size:
            return f"{_two_digits(number / size)} {unit}"
    return f"{_two_digits(number / 1e6)} MB"


def _two_digits(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.10g}"


def _guarantee(setting: Chosen, delta: Callable[[Chosen], float]) -> str:
    if setting.declaration is None:
        return "not private: no guarantee"
    at = delta(setting)
    cost = price_releases(setting.charged, at).guarantee
    spent = [
        *([] if cost.epsilon is None else [f"ε = {cost.epsilon:.6g} at δ = {at:g}"]),
        *([] if cost.rho is None else [f"ρ = {cost.rho:.6g}"]),
    ]
    return f"claim: {setting.declaration.claim_words}; the releases cost {', '.join(spent) or 'no finite ε or ρ'}"


def _threads(workers: int | None) -> int:
    return min(workers or os.cpu_count() or 1, os.cpu_count() or 1)


def _plain(sizes: Mapping[str, int]) -> dict[str, int]:
    return {name: sizes[name] for name in ("H", "S", "A") if name in sizes}
