"""Runs of online agents: K users, one after the other, in a known model; with the non-private twin."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.commands.comparisons import common_delta, made_by, price_claim, stand
from privcheck.commands.learning_check import judge_acting
from privcheck.commands.provenance import exact_parameters, preset_used
from privcheck.commands.run_outputs import keep_policy, odometer, price_run, readings
from privcheck.commands.runs import compare_outputs, refuse_torn_ledger, summarise_ledger
from privcheck.commands.settings import Chosen, settle
from privcheck.data.finite_models import TrivialValues, judge_trivial_policies, share_of_uniform
from privcheck.declare.declaration import resolve
from privcheck.errors import LedgerError, ParameterError, UnknownNameError
from privcheck.reports.comparisons import headline
from privcheck.reports.policies import ARRAY_NAME
from privcheck.reports.values import Band, Compared, RanOnline, Regret, RunCurves
from privcheck.reports.values.runs import WITHOUT_NOISE
from privcheck.runtime import read_ledger, registry
from privcheck.runtime.ledger import FILE_NAME
from privcheck.runtime.offline import refuse_replicates
from privcheck.runtime.registry import NAME as PRESET
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import NoiseKind, OnlineRequest, OnlineResult, World, nothing
from privcheck.runtime.run_folders import find_file, refuse_mixed
from privcheck.runtime.setting import Setting
from privcheck.runtime.spending import check_entries
from privcheck.support.display import Progress, quiet

_CHEAP = 10**11  # counters times episodes up to which a twin is run too: it plans in some seconds, or a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """Result of the non-private twin in the same environment, with the same users and options.

    Attributes:
        name: Name of the twin; None if there is no twin.
        regret: Mean regret over replicates; None if a run would take too long or too much memory.
        value: True expected return of the last policy, mean over replicates; None as for `regret`.
        outcomes: Final regret of every replicate; empty as for `regret`.
        differs: Reason why it acts otherwise even without noise; empty if it does not.
    """

    name: str | None = None
    regret: float | None = None
    value: float | None = None
    outcomes: tuple[float, ...] = ()
    differs: str = ""


PlayTwin = Callable[[Algorithm, OnlineRequest], OnlineResult]


def settle_twin(twin: Algorithm, algorithm: Algorithm, asked: OnlineRequest) -> Setting:
    """The setting of a twin: that of the private agent, so that only noise and privacy tell the two apart.

    Options and readings of both have the private agent's values; `Algorithm.twin_settings` says others.

    Raises:
        ParameterError: A value is refused.
    """
    if twin.name == algorithm.name:
        return asked.setting.without_noise()
    options = resolve(twin.options, {}, owner=twin.name)
    options |= {name: value for name, value in asked.options.items() if name in options}
    options |= {name: Fraction(asked.episodes) for name in ("K",) if name in options}
    ways = {reading.name: reading.ways for reading in twin.readings}
    readings = {name: ways[name][0] for name in ways} | {
        n: w for n, w in asked.readings.items() if w in ways.get(n, ())
    }
    for name, value in algorithm.twin_settings.items():
        if name in ways:
            readings[name] = value
        else:
            options[name] = asked.values[value] if value in asked.values else Fraction(value)
    return Setting(declaration=None, options=options, readings=readings)


def twin_of(setting: Chosen) -> Algorithm | None:
    """The online twin of an algorithm; None without one.

    Where the chosen constants are a reading that the twin does not have, it is the agent itself.
    """
    algorithm = setting.algorithm
    if algorithm.twin is None or algorithm.twin == algorithm.name:
        return None if algorithm.twin is None else algorithm
    twin = registry.algorithm(algorithm.twin)
    if twin.online is None:
        return None
    return algorithm if _differ_in_constants(setting, twin) else twin


def run_twin(
    setting: Chosen, asked: OnlineRequest, play: PlayTwin, progress: Callable[[str], Progress] = quiet
) -> Twin:
    """Run the twin of an algorithm by `play`, if it has an online twin; an empty `Twin` otherwise."""
    algorithm, twin = setting.algorithm, twin_of(setting)
    if twin is None:
        return Twin()
    itself = twin is algorithm
    name = f"{twin.name}{WITHOUT_NOISE}" if itself else twin.name
    mdp = asked.world.mdp
    counters = mdp.horizon * mdp.states * mdp.actions * (mdp.states + 2)
    if counters * asked.episodes * asked.replicates <= _CHEAP:
        with suppress(ParameterError):
            own = settle_twin(twin, algorithm, asked)
            played = play(twin, replace(asked, setting=own, noise="simulated", directory=None, progress=progress(name)))
            regret, value = (float(curve[:, -1].mean()) for curve in (played.regret, played.value))
            chosen = {f"{reading}={way}" for reading, way in asked.readings.items()}
            told = " ".join(why for reading, why in algorithm.twin_differs.items() if reading in chosen)
            outcomes = tuple(played.regret[:, -1].tolist())
            return Twin(name=name, regret=regret, value=value, outcomes=outcomes, differs=told)
    return Twin(name=name)


def _differ_in_constants(setting: Chosen, twin: Algorithm) -> bool:
    """Whether a reading that chooses constants is not at its default, and the twin does not have it."""
    own = {reading.name: reading.ways[0] for reading in setting.algorithm.readings}
    known = {reading.name for reading in twin.readings}
    chosen = setting.algorithm.printed.keys() & own.keys() - known
    return any(setting.readings[name] != own[name] for name in chosen)


USERS = "n"  # an environment's number of simulated users, which only datasets have


def online_only(algorithms: Sequence[Algorithm]) -> bool:
    """Whether the algorithms are online agents.

    Raises:
        ParameterError: Several algorithms are named and at least one of them is not online.
    """
    offline = [algorithm.name for algorithm in algorithms if algorithm.online is None]
    if len(algorithms) > 1 and offline:
        message = f"several algorithms are compared only where all learn as they act; {', '.join(offline)} does not"
        raise ParameterError(message, name="name", given=offline)
    return not offline


def load_world(env: str, given: Mapping[str, str], *, seed: int) -> tuple[World, dict[str, str]]:
    """The environment's model, and the user's remaining NAME=VALUE pairs.

    Args:
        env: Name of a registered environment, or of a family with its member, `FAMILY:MEMBER`.
        given: The user's NAME=VALUE pairs.
        seed: Seed of a randomly drawn model.

    Raises:
        UnknownNameError: There is no such environment.
        ParameterError: The environment has no finite model, or a value is refused.
    """
    environment = registry.environment(env)
    if environment.model is None:
        message = f"{env} has no finite model for online agents; expected one of: " + ", ".join(_models())
        raise ParameterError(message, name="env", given=env)
    parameters = tuple(p for p in environment.parameters if p.name != USERS)
    own = {p.name for p in parameters}
    values = resolve(parameters, {k: v for k, v in given.items() if k in own}, owner=env)
    world = environment.model({k: int(v) for k, v in values.items()}, seed)
    return world, {k: v for k, v in given.items() if k not in own}


def _models() -> list[str]:
    return [name for name in registry.names("environments") if registry.environment(name).model is not None]


def online_settings(names: Sequence[str], given: Mapping[str, str], world: World) -> list[Chosen]:
    """The settings of registered algorithms; as `settle_together`."""
    return settle_together([registry.algorithm(name) for name in names], given, world)


def settle_together(algorithms: Sequence[Algorithm], given: Mapping[str, str], world: World) -> list[Chosen]:
    """The setting of each algorithm; a NAME=VALUE pair goes to every algorithm that knows the name.

    Raises:
        UnknownNameError: A name is unknown to all of them.
        ParameterError: A value is refused, or an algorithm is named twice.
    """
    sizes = world.sizes
    names = [algorithm.name for algorithm in algorithms]
    if len(set(names)) != len(names):
        raise ParameterError(f"each algorithm is compared once, got {' '.join(names)}", name="name", given=names)
    known = [keep_known(settle(one, keep_readings(one, given))) | sizes.keys() for one in algorithms]
    for key in given:
        if not any(key in one for one in known):
            every = sorted(frozenset[str]().union(*known))
            raise UnknownNameError(f"parameter or option of {', '.join(names)}", key, every)
    return [
        settle(algorithm, {k: v for k, v in given.items() if k in one}, sizes=sizes)
        for algorithm, one in zip(algorithms, known, strict=True)
    ]


def keep_readings(algorithm: Algorithm, given: Mapping[str, str]) -> dict[str, str]:
    """The given pairs that choose a preset or a reading: some parameters are declared in one reading only."""
    own = (PRESET, *(reading.name for reading in algorithm.readings))
    return {name: given[name] for name in own if name in given}


def keep_known(setting: Chosen) -> set[str]:
    """The names that a user may set for an algorithm in its chosen readings."""
    declared = {p.name for p in setting.declaration.parameters} if setting.declaration else set()
    own = {PRESET, *(p.name for p in setting.algorithm.options), *(c.name for c in setting.algorithm.readings)}
    return declared | own


def episodes_of(setting: Chosen) -> int:
    """Number of episodes K, from the declaration's parameters or the agent's options."""
    episodes = setting.values.get("K", setting.options.get("K"))
    if episodes is None:
        raise ParameterError(f"{setting.algorithm.name} has no parameter K, the number of episodes", name="K")
    return int(episodes)


def refuse_early(setting: Chosen, world: World, *, replicates: int, noise: NoiseKind, seed: int) -> None:
    """Make the agent of a run and drop it, so that a long check does not end in what the agent refuses.

    Raises:
        ParameterError: The agent refuses the world, or a parameter.
    """
    if setting.algorithm.online is not None:
        asked = OnlineRequest(
            setting=setting.setting,
            world=world,
            episodes=episodes_of(setting),
            replicates=replicates,
            seed=seed,
            noise=noise,
            directory=None,
            workers=1,
        )
        ready(setting.algorithm.online, asked)


def run_online(
    setting: Chosen,
    world: World,
    *,
    replicates: int = 1,
    noise: NoiseKind = "simulated",
    seed: int = 0,
    workers: int | None = None,
    out: Path | None = None,
    progress: Callable[[str], Progress] = quiet,
    trivial: TrivialValues | None = None,
    begin: Callable[[], None] = nothing,
    compared: str | None = None,
    play_twin: PlayTwin = Algorithm.play_without_noise,
) -> RanOnline:
    """Run an online agent and price its ledger.

    The ledger is checked against the declaration before anything is reported. A stopped run is continued if `out`
    contains its checkpoint, with the same result.

    Args:
        setting: The algorithm.
        world: Its environment.
        replicates: Independent repetitions.
        noise: Source of the noise. A run with release noise is not continued: released noise is not drawn again.
        seed: Seed of the users' responses and of simulated noise.
        workers: Threads; None for all cores. The result does not depend on it.
        out: Folder of the first replicate's ledger and of the checkpoint.
        progress: Makes a callback (done, total) for the named agent, and for its twin without noise.
        trivial: Values of the policies that learn nothing in this environment; None to compute them.
        begin: Called before the first draw.
        play_twin: Runs the non-private twin.
        compared: As for `privcheck.commands.runs.run`.

    Raises:
        ParameterError: A number is out of range, the directory contains another run's checkpoint, or with release noise
            the agent's output does not follow from its releases.
        LedgerError: The run deviated from its declaration, or the directory contains a ledger that was changed or is of
            another run.
    """
    if replicates < 1:
        raise ParameterError(f"--replicates expects a whole number, at least 1, got {replicates}", name="replicates")
    agent = setting.algorithm.online
    if agent is None:
        raise ParameterError(f"{setting.algorithm.name} does not learn as it acts", name=setting.algorithm.name)
    K = episodes_of(setting)
    if noise == "release":
        refuse_release(setting, replicates, out)
    refuse_mixed(out, released=noise == "release")
    declared, setting = setting, setting.with_noise(noise)
    refuse_ledger(setting, out)
    asked = OnlineRequest(
        setting=setting.setting,
        world=world,
        episodes=K,
        replicates=replicates,
        seed=seed,
        noise=noise,
        directory=out,
        workers=workers or os.cpu_count() or 1,
        progress=progress(setting.algorithm.name),
    )
    if compared is None and noise == "release":
        ready(agent, asked)  # what it refuses is refused before anything is compared
        compared = compare_outputs(declared, seed)
    begin()
    result = setting.algorithm.play(asked)
    spent = price_run(result.ledger, setting)
    policy = keep_policy(
        setting,
        result.policy,
        out,
        learned_from=world.name,
        true=float(result.value[0, -1]),
        claimed=None,
        spent=spent,
        ledger=result.ledger,
        compared=compared or "",
    )
    nothing = trivial or judge_trivial_policies(world.mdp, world.features)
    twin = run_twin(setting, asked, play_twin, progress)
    regret = _regret(result, K, nothing, twin)
    return RanOnline(
        algorithm=setting.algorithm.name,
        title=setting.algorithm.title,
        environment=world.name,
        description=world.description,
        facts=world.facts,
        replicates=replicates,
        episodes=K,
        parameters=exact_parameters(setting),
        options=setting.options_used,
        choices=setting.readings,
        unit=None if setting.declaration is None else setting.setting.protected,
        preset=preset_used(setting),
        did_not_learn=judge_acting(setting, result, regret),
        optimal_value=result.optimal,
        regret=regret,
        curves=_curves(result),
        spent=spent,
        policy_file=None if out is None else find_file(out, ARRAY_NAME).relative_to(out).as_posix(),
        _policy=policy,
        _outcomes=tuple(result.regret[:, -1].tolist()),
        _twin_outcomes=twin.outcomes,
        odometer=odometer(result.ledger, setting, readings(result.episodes, K)) if result.ledger else None,
        ledger=summarise_ledger(result.ledger, out),
        diagnostics=result.diagnostics,
        compared=compared or "",
        seconds=result.seconds,
        episodes_per_second=K * replicates / max(result.seconds, 1e-9),
    )


def refuse_release(setting: Chosen, replicates: int, out: Path | None) -> None:
    """Refuse release noise for compiled agents, for several replicates, and in a folder with an earlier run's ledger.

    Raises:
        ParameterError: One of these conditions is met.
    """
    refuse_replicates(replicates)
    if not setting.algorithm.publishes:
        known = [registry.algorithm(name) for name in registry.names("algorithms")]
        able = ", ".join(one.name for one in known if one.runs and one.declare is not None and one.publishes)
        message = f"{setting.algorithm.name} draws its noise inside a compiled kernel, which has only simulated noise"
        raise ParameterError(
            f"{message}; release noise is available for {able} and for your own plain agents", name="noise"
        )
    refuse_torn_ledger(out)
    if out is not None and (out / FILE_NAME).exists():
        message = f"{out} holds the ledger of an earlier run, and a run with release noise is not continued"
        raise ParameterError(f"{message}: choose another --out", name="out", given=str(out))


def refuse_ledger(setting: Chosen, out: Path | None) -> None:
    """Refuse to replace a finished run's ledger that was changed or is of another run."""
    path = None if out is None else out / FILE_NAME
    if path is None or setting.declaration is None or not path.exists():
        return
    try:
        header, entries = read_ledger(path)
        check_entries(header, entries, setting.priced)
    except LedgerError as error:
        message = f"{path.parent} holds the ledger of another run: {error}; choose another --out"
        raise LedgerError(message, line=error.line) from None


def compare(
    settings: Sequence[Chosen],
    world: World,
    *,
    out: Path | None = None,
    progress: Callable[[str], Progress] = quiet,
    delta: str | float | Fraction | None = None,
    command: Sequence[str] = (),
    noise: NoiseKind = "simulated",
    seed: int = 0,
    **how: Any,
) -> Compared:
    """Run several online agents in one environment and compare them; each writes into its own folder of `out`.

    Args:
        settings: The algorithms.
        world: Their environment.
        out: Parent of the agents' folders.
        progress: Makes a progress callback for a named agent.
        delta: δ at which their guarantees are compared; None for the smallest positive δ of a claim, or 1e-5.
        command: The command line or call, for the record.
        noise: As for `run_online`.
        seed: As for `run_online`.
        how: As for `run_online`.
    """
    at = common_delta(settings, delta)
    refuse_mixed(out, released=noise == "release")
    places = [None if out is None else out / setting.algorithm.name for setting in settings]
    for setting, own in zip(settings, places, strict=True):
        refuse_ledger(setting, own)
    trivial = judge_trivial_policies(world.mdp, world.features)
    how |= {"trivial": trivial, "noise": noise, "seed": seed}
    results = tuple(
        run_online(setting, world, out=own, progress=progress, **how)
        for setting, own in zip(settings, places, strict=True)
    )
    standings = tuple(
        stand(one, price_claim(setting.with_noise(noise), at)) for one, setting in zip(results, settings, strict=True)
    )
    return Compared(
        environment=world.name,
        algorithms=tuple(one.algorithm for one in results),
        results=results,
        delta=at,
        headline=headline(standings, delta=at),
        standings=standings,
        made_by=made_by(command, seed=seed),
    )


def _regret(result: OnlineResult, K: int, trivial: TrivialValues, twin: Twin) -> Regret:
    final = result.regret[:, -1]
    mean, most = float(final.mean()), K * result.optimal
    nothing = {name: K * regret for name, regret in trivial.regret.items()}
    return Regret(
        mean=mean,
        std=float(final.std(ddof=1)) if len(final) > 1 else None,
        optimal=0.0,  # the optimum's regret
        maximum=most,
        share=mean / most if most > 0 else None,
        twin=twin.name,
        baseline=twin.regret,
        baseline_value=twin.value,
        twin_differs=twin.differs,
        uniform=nothing["uniform"],
        myopic=nothing["myopic"],
        prior_only=nothing["prior-only"],
        share_of_uniform=share_of_uniform(mean, nothing["uniform"]),
    )


def _curves(result: OnlineResult) -> RunCurves:
    return RunCurves(
        episodes=tuple(result.episodes.tolist()),
        regret=_band(result.regret),
        value=_band(result.value),
        switches=_band(result.switches),
    )


def _band(curve: NDArray[np.float64]) -> Band:
    several = curve.shape[0] > 1
    return Band(
        mean=tuple(curve.mean(axis=0).tolist()),
        std=tuple(curve.std(axis=0, ddof=1).tolist()) if several else None,
    )
