"""The commands as functions: the command line parses its options and calls these.

An algorithm is named as on the command line. Its parameters, options and readings are keyword arguments, or a mapping
`parameters` if a name is that of another argument (`parameters={"delta": "1e-6"}`). They are exact: `rho="1/2"`,
`Fraction(1, 2)` or `1`; the float `0.5` is refused. Results have `to_dict()`, the JSON that the command prints,
`save(path)`, a short `repr`, a table in notebooks, and `to_frame()` and `plot()` if there is a table or a plot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, get_args, overload

from privcheck.commands import checks, declarations, online_runs, runs, sweeps, training_runs
from privcheck.commands.certificates import FILE_NAME as CERTIFICATE_NAME
from privcheck.commands.certificates import certificate_of, write_certificate
from privcheck.commands.provenance import Began
from privcheck.commands.run_budget import Nobody, Paying
from privcheck.commands.settings import Chosen, check_grid, parse_delta, parse_number, resolve_setting
from privcheck.commands.sources import Place, anything_to_check, source_to_run, task_to_run, world_to_run
from privcheck.commands.sweeps import plan_sweep
from privcheck.data.reading import NO_STATEMENT, Held, Users
from privcheck.errors import ParameterError
from privcheck.reports import save_report, save_result
from privcheck.reports.comparisons import save_sweep
from privcheck.reports.files import save_runs
from privcheck.reports.values import (
    Audited,
    Budget,
    CalibratedNoise,
    Compared,
    Published,
    Ran,
    RanOnline,
    Report,
    Sweep,
    Verified,
)
from privcheck.runtime import registry
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import AuditMethod, NoiseKind
from privcheck.runtime.run_folders import folder_for, working_folder
from privcheck.support.display import Progress, quiet
from privcheck.terms.symbols import exact, to_float

Value: TypeAlias = str | int | Fraction  # of a parameter: a reading's name, or an exact number
Level: TypeAlias = str | float | Fraction  # an ε or δ that is asked about
Data: TypeAlias = str | Path | Held


def budget(
    name: str, *, delta: Level | None = None, curve: bool = False, parameters: Mapping[str, Value] | None = None,
    **settings: Value,
) -> Budget:  # fmt: skip
    """Price the releases of an algorithm, as `privcheck budget`.

    Args:
        name: The registered algorithm.
        delta: δ at which ε is reported; None for the claim's own, 0 for a pure claim, otherwise 1e-5.
        curve: Also compute δ(ε), which `plot()` shows, and a second opinion on Gaussian releases.
        parameters: Parameters, options and readings by name.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: The algorithm or the name of a parameter is unknown.
        ParameterError: A value is refused.
    """
    setting = _resolve(name, parameters, settings)
    return declarations.price_releases(setting, parse_delta(delta, setting), full=curve)


def verify_claim(name: str, *, parameters: Mapping[str, Value] | None = None, **settings: Value) -> Verified:
    """Judge an algorithm's claim, as `privcheck verify`.

    `privcheck.verify` judges an unregistered declaration, and returns the neighbours themselves.

    Args:
        name: The registered algorithm.
        parameters: Parameters and readings by name.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: The algorithm or the name of a parameter is unknown.
        ParameterError: A value is refused.
    """
    return declarations.verify_claim(_resolve(name, parameters, settings))


def calibrate(
    name: str, *, epsilon: Level, delta: Level | None = None, parameters: Mapping[str, Value] | None = None,
    **settings: Value,
) -> CalibratedNoise:  # fmt: skip
    """Find the least noise for which an algorithm's releases are (ε, δ)-DP, as `privcheck calibrate`.

    Args:
        name: The registered algorithm.
        epsilon: Target ε, in nats.
        delta: As for `budget`.
        parameters: Parameters and readings by name.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: The algorithm or the name of a parameter is unknown.
        ParameterError: A value is refused, or no amount of noise suffices.
    """
    target = to_float(parse_number(epsilon, option="--epsilon"), rounding="down")
    if target <= 0:
        raise ParameterError(f"--epsilon expects a target ε above 0, got {epsilon}", name="epsilon", given=epsilon)
    setting = _resolve(name, parameters, settings)
    return declarations.calibrate_noise(setting, epsilon=target, delta=parse_delta(delta, setting))


def audit(
    name: str, *, view: str = "releases", method: AuditMethod = "auto", trials: int | None = None,
    confidence: float = 0.99, delta: Level | None = None, seed: int = 0, workers: int | None = None,
    cluster: str | None = None, out: Path | str | None = None, ledger: str | None = None, charge: str | None = None,
    progress: Callable[[str], Progress] = quiet, command: Sequence[str] = (),
    parameters: Mapping[str, Value] | None = None, **settings: Value,
) -> Audited:  # fmt: skip
    """Bound the privacy loss of an algorithm from below, as `privcheck audit`.

    `audit_mechanism` and `audit_agent` audit unregistered functions.

    Args:
        name: The registered algorithm.
        view: "releases", "policy", "lockstep", "noise", or another registered view.
        method: The statistical test; "auto" for the view's default.
        trials: Runs under each of the two neighbours; None for the view's default.
        confidence: Confidence 1 − α of the whole audit.
        delta: As for `budget`.
        seed: Seed of the trials.
        workers: Threads; None for all cores. The result does not depend on it.
        cluster: Address of a Dask scheduler whose workers run the trials instead.
        out: Folder of finished blocks, audit.json and the report's page; the same call resumes a stopped audit.
        ledger: Store of a team's budget, where the result is recorded as evidence; a violation freezes the charge's
            grant.
        charge: The charge that the evidence is about; it must be of this algorithm at these parameters.
        progress: Makes a callback (done, total) for a named part of the work.
        command: Command line recorded in the report; empty for this call.
        parameters: Parameters, options and readings by name.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: The algorithm or the name of a parameter is unknown.
        ParameterError: A value is refused, `out` contains another report, or the charge is of another algorithm or
            parameters.
    """
    setting = _resolve(name, parameters, settings)
    at, began, directory = parse_delta(delta, setting), Began(), _directory(out)
    directory = None if directory is None else working_folder(directory)
    _refuse_numbers(seed=seed, workers=workers, trials=trials, confidence=confidence)
    earlier = {} if directory is None else checks.earlier_views(setting, directory)  # refused before any draw
    record = _evidence(setting, ledger, charge)
    result = runs.audit(
        setting, view=view, method=method, trials=trials, confidence=confidence, delta=at, seed=seed, workers=workers,
        cluster=cluster, out=directory, progress=progress(view),
    )  # fmt: skip
    try:
        record(result)  # first: a violation has to stop spending
    finally:
        if directory is not None:
            save_result(result, directory / "audit.json")
            said = command or _call("audit", name, {"view": view, "delta": delta, "seed": seed}, parameters, settings)
            save_report(checks.audit_report(setting, result, earlier, command=said, began=began), directory)
    return result


@overload
def run(
    name: str, *, data: Data, env: None = None, rewards: Path | str | None = None, features: Path | str | None = None,
    users: Users = NO_STATEMENT, replicates: int = 1, noise: NoiseKind = "simulated", seed: int = 0,
    workers: int | None = None, out: Path | str | None = None, ledger: str | None = None, grant: str | None = None,
    progress: Callable[[str], Progress] = quiet, parameters: Mapping[str, Value] | None = None, **settings: Value,
) -> Ran: ...  # fmt: skip
@overload
def run(
    name: str, *, env: str | None = None, data: None = None, rewards: Path | str | None = None,
    features: Path | str | None = None, users: Users = NO_STATEMENT, replicates: int = 1,
    noise: NoiseKind = "simulated", seed: int = 0,
    workers: int | None = None, out: Path | str | None = None, ledger: str | None = None, grant: str | None = None,
    progress: Callable[[str], Progress] = quiet, parameters: Mapping[str, Value] | None = None, **settings: Value,
) -> Ran | RanOnline: ...  # fmt: skip
def run(
    name: str, *, env: str | None = None, data: Data | None = None, rewards: Path | str | None = None,
    features: Path | str | None = None, users: Users = NO_STATEMENT, replicates: int = 1,
    noise: NoiseKind = "simulated", seed: int = 0,
    workers: int | None = None, out: Path | str | None = None, ledger: str | None = None, grant: str | None = None,
    progress: Callable[[str], Progress] = quiet, parameters: Mapping[str, Value] | None = None, **settings: Value,
) -> Ran | RanOnline:  # fmt: skip
    """Run an agent and price its ledger, as `privcheck run`; the result's `policy` is the learned policy.

    Args:
        name: The registered algorithm.
        env: A registered environment; users are sampled from it, or an online agent acts in it, or its users play the
            episodes on which a policy is trained.
        data: Data of an offline agent: a file, a pandas frame, a pyarrow table, `Trajectories`, or an environment's
            name. Unless it names an environment, it is the users' own data: several replicates are refused, and only
            figures from noisy releases are shown.
        rewards: A file with the public reward function, for data.
        features: A file with public features, for data.
        users: Statement about the users of the data, as `Users(column="patient_id", max_trajectories=8)` or
            `Users(one_episode_is_one_user=True)`; without it, data without a column `user` are refused.
        replicates: Independent repetitions.
        noise: "simulated", from the seed, or "release", for publication.
        seed: Seed of sampled users and simulated noise.
        workers: Threads of online agents; None for all cores. The result does not depend on it.
        out: Folder of run.json, the ledger and the policy; a stopped run of an online agent, or of one that trains a
            policy, is continued.
        ledger: Store of a team's budget; the run's cost is reserved there and committed before the first draw.
        grant: The grant of that budget to charge.
        progress: Makes a callback (done, total) for a named part of the work.
        parameters: Parameters, options and readings by name.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: The algorithm, the environment or the name of a parameter is unknown.
        ParameterError: A value is refused, or `out` contains files of another run.
        PrivcheckError: The data are refused, or the run deviated from its declaration.
    """
    algorithm = registry.algorithm(name)
    place = _place(env, data, rewards, features, users)
    given, directory = _texts(parameters, settings), _directory(out)
    _refuse_numbers(replicates=replicates, seed=seed, workers=workers, noise=noise)
    how: dict[str, Any] = {"replicates": replicates, "noise": noise, "seed": seed, "out": directory}
    if algorithm.trained is not None:
        setting, task = task_to_run(algorithm, given, place)
        with _charged(setting, ledger, grant, continued=noise == "simulated", world=task.name, **how) as begin:
            trained = training_runs.run_training(setting, task, progress=progress("run"), begin=begin, **how)
        if directory is not None:
            save_result(trained, folder_for(directory, released=noise == "release") / "run.json")
        return trained
    if algorithm.online is None:
        setting, source = source_to_run(algorithm, given, place, seed=seed)
        with _charged(setting, ledger, grant, **how) as begin:
            ran = runs.run(setting, source, progress=progress("run"), begin=begin, **how)
        if directory is not None:
            save_result(ran, folder_for(directory, released=noise == "release") / "run.json")
        return ran
    chosen, world = world_to_run([algorithm], given, place, seed=seed)
    with _charged(chosen[0], ledger, grant, continued=noise == "simulated", world=world.name, **how) as begin:
        acted = online_runs.run_online(chosen[0], world, workers=workers, progress=progress, begin=begin, **how)
    if directory is not None:
        save_runs(acted, folder_for(directory, released=noise == "release"))
    return acted


def compare(
    names: Sequence[str], *, env: str, replicates: int = 1, noise: NoiseKind = "simulated", seed: int = 0,
    workers: int | None = None, out: Path | str | None = None, delta: Level | None = None,
    progress: Callable[[str], Progress] = quiet, command: Sequence[str] = (),
    parameters: Mapping[str, Value] | None = None, **settings: Value,
) -> Compared:  # fmt: skip
    """Run and compare several online agents in one environment, as `privcheck run` with several names.

    Args:
        names: The registered algorithms.
        env: The environment.
        replicates: Independent repetitions.
        noise: As for `run`.
        seed: Seed of users' responses and simulated noise.
        workers: Threads; None for all cores. The result does not depend on it.
        out: Folder of the page, with a folder for each agent.
        delta: δ at which the guarantees are compared; None for the smallest positive δ of a claim, else 1e-5.
        progress: Makes a callback (done, total) for each agent.
        command: Command line recorded on the page; empty for this call.
        parameters: Parameters, options and readings; each goes to every algorithm that knows its name.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: An algorithm or the environment is unknown, or a name is unknown to all of them.
        ParameterError: A value is refused, or an algorithm is not an online agent.
    """
    if isinstance(names, str) or not names:
        raise ParameterError(f"expected a list of algorithms' names, got {names!r}", name="names", given=names)
    algorithms: list[Algorithm] = [registry.algorithm(name) for name in names]
    if not online_runs.online_only(algorithms):
        message = f"{names[0]} does not learn as it acts: `run` is for agents that learn from data"
        raise ParameterError(message, name="names", given=names)
    _refuse_numbers(replicates=replicates, seed=seed, workers=workers, noise=noise)
    directory, place = _directory(out), _place(env, None, None, None)
    chosen, world = world_to_run(algorithms, _texts(parameters, settings), place, seed=seed)
    named = {"env": env, "replicates": replicates, "seed": seed, "delta": delta}
    result = online_runs.compare(
        chosen, world, out=directory, progress=progress, replicates=replicates, noise=noise, seed=seed, workers=workers,
        delta=delta, command=command or _call("compare", list(names), named, parameters, settings),
    )  # fmt: skip
    if directory is not None:
        save_runs(result, folder_for(directory, released=noise == "release"))
    return result


def sweep(
    names: Sequence[str], *, over: Mapping[str, Sequence[Value]], env: str | None = None, data: Data | None = None,
    rewards: Path | str | None = None, features: Path | str | None = None, users: Users = NO_STATEMENT,
    replicates: int | None = None,
    delta: Level | None = None, seed: int = 0, workers: int | None = None, cluster: str | None = None,
    executor: Executor | None = None, out: Path | str | None = None, progress: Callable[[str], Progress] = quiet,
    slope: Sequence[str] = (), parameters: Mapping[str, Value] | None = None, **settings: Value,
) -> Sweep:  # fmt: skip
    """Run several algorithms over a grid of parameters, as `privcheck sweep`; the noise is simulated.

    Args:
        names: The registered algorithms, all online or all offline.
        over: Values by parameter, reading, option or parameter of the environment; each algorithm runs once for every
            combination of those it knows.
        env: As for `run`.
        data: As for `run`; all points learn from the same users.
        rewards: As for `run`.
        features: As for `run`.
        users: As for `run`.
        replicates: Independent repetitions of every point; None for 5 on simulated users, else 1.
        delta: δ at which the guarantees are compared; None for the smallest positive δ of a claim, else 1e-5.
        seed: Seed of sampled users and simulated noise, the same at every point.
        workers: Threads of a point; None for all cores. The result does not depend on it.
        cluster: Address of a Dask scheduler whose workers run the points instead.
        executor: Another executor that runs them instead; the result does not depend on it.
        out: Folder of sweep.json, the page and each point as soon as it is finished; the same call resumes a stopped
            sweep.
        progress: Makes a callback (done, total) for the whole sweep.
        slope: Swept parameters along which power laws are fitted; `slopes` of the result.
        parameters: Parameters, options and readings that are the same at every point.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: An algorithm or the environment is unknown, or a name is unknown to all of them.
        ParameterError: A value is refused, before anything runs (the message names the point); or no point could be
            run.
        PrivcheckError: The data are refused, or a run deviated from its declaration.
    """
    if isinstance(names, str) or not names:
        raise ParameterError(f"expected a list of algorithms' names, got {names!r}", name="names", given=names)
    _refuse_numbers(replicates=replicates, seed=seed, workers=workers)
    given, directory = _texts(parameters, settings), _directory(out)
    plan = plan_sweep(
        names, check_grid(_grid_texts(over), given), given, _place(env, data, rewards, features, users),
        replicates=replicates, seed=seed, delta=delta, workers=workers, slope=",".join(slope) or None,
    )  # fmt: skip
    result = sweeps.sweep_where(plan, cluster=cluster, executor=executor, out=directory, progress=progress("sweep"))
    if directory is not None:
        save_sweep(result, directory)
    return result


def _grid_texts(over: Mapping[str, Sequence[Value]]) -> dict[str, list[str]]:
    """The values of a grid as texts.

    Raises:
        ParameterError: The grid is not a mapping to lists of exact values.
    """
    if not isinstance(over, Mapping) or any(isinstance(values, str) for values in over.values()):
        raise ParameterError(f"over: expected lists of values by name, got {over!r:.100}", name="over", given=over)
    return {name: [_text(name, value) for value in values] for name, values in over.items()}


def check(
    name: str, *, env: str | None = None, data: Data | None = None, rewards: Path | str | None = None,
    features: Path | str | None = None, users: Users = NO_STATEMENT, delta: Level | None = None,
    replicates: int | None = None,
    noise: NoiseKind = "simulated", trials: int | None = None, confidence: float = 0.99, seed: int = 0,
    workers: int | None = None, out: Path | str | None = None, ledger: str | None = None, grant: str | None = None,
    progress: Callable[[str], Progress] = quiet, command: Sequence[str] = (),
    parameters: Mapping[str, Value] | None = None, **settings: Value,
) -> Report:  # fmt: skip
    """Make the full report on an algorithm, as `privcheck check`: priced, verified, audited, run.

    Args:
        name: The registered algorithm.
        env: As for `run`; without an environment and data, a default environment.
        data: As for `run`.
        rewards: As for `run`.
        features: As for `run`.
        users: As for `run`.
        delta: As for `budget`.
        replicates: Repetitions of the run; None for 5 on simulated users with simulated noise, else 1.
        noise: Noise of the run; audits draw simulated noise.
        trials: Runs under each neighbour in the audits that bound ε; None for each view's default.
        confidence: Confidence of each audit.
        seed: Seed of sampled users, simulated noise and audits.
        workers: Threads; None for all cores.
        out: Folder of report.json, report.html, the ledger and the policy; None to write nothing.
        ledger: As for `run`.
        grant: As for `run`.
        progress: Makes a callback (done, total) for a named part of the work.
        command: Command line recorded in the report; empty for this call.
        parameters: Parameters, options and readings by name.
        settings: The same, as keyword arguments.

    Raises:
        UnknownNameError: The algorithm, the environment or the name of a parameter is unknown.
        ParameterError: A value is refused, or `out` contains files of another run.
        PrivcheckError: The data are refused, or the run deviated from its declaration.
    """
    place, directory = _place(env, data, rewards, features, users), _directory(out)
    _refuse_numbers(
        replicates=replicates, seed=seed, workers=workers, noise=noise, trials=trials, confidence=confidence
    )
    setting, source = anything_to_check(registry.algorithm(name), _texts(parameters, settings), place, seed=seed)
    at = parse_delta(delta, setting)  # everything is parsed before anything is written
    named = {"env": env, "data": data, "delta": delta, "seed": seed}
    how: dict[str, Any] = {"noise": noise, "seed": seed, "out": directory}
    times = checks.count_replicates(replicates, noise, own_data=checks.is_own(source))
    with _charged(setting, ledger, grant, replicates=times, **how) as paying:
        report = checks.check(
            setting, source, delta=at, replicates=times, trials=trials, confidence=confidence, workers=workers,
            command=command or _call("check", name, named, parameters, settings), progress=progress, paying=paying,
            **how,
        )  # fmt: skip
    if directory is not None:
        folder = folder_for(directory, released=noise == "release")
        save_report(report, folder)
        compared = report.run.compared if report.run is not None else ""
        certified = certificate_of(setting.with_noise(noise).judged.priced, compared)
        if certified.certificate is not None and certified.brief.accepted:
            write_certificate(certified, folder / CERTIFICATE_NAME)
    return report


def publish(
    directory: Path | str, *, out: Path | str, delta: Level | None = None, learned_for: str = "",
    not_for: Sequence[str] = (), dated: str = "", accept_uncovered: bool = False,
) -> Published:  # fmt: skip
    """Write a new folder that may be shared, as `privcheck publish`, and return its contents.

    Args:
        directory: Folder of a run with release noise.
        out: The new folder, which must be empty or missing. All of it is written, or nothing.
        delta: As for `budget`.
        learned_for: For whom or what the policy was learned, for the card.
        not_for: Further uses that are ruled out.
        dated: Day on the card, as "2026-11-24"; empty for none.
        accept_uncovered: Publish even with `warnings` in policy.json about data that no noise covers; the card lists
            them.

    Raises:
        UnknownNameError: The algorithm is not registered here.
        ParameterError: The run may not be published, or the folder is not empty; the message says what to do.
        PrivcheckError: A file of the run is missing or was changed.
    """
    from privcheck.commands import publication  # Jinja2 only where a card is made

    folder = _directory(out)
    assert folder is not None
    publisher = publication.Publisher(
        learned_for=learned_for, not_for=tuple(not_for), dated=dated, accepts_uncovered=accept_uncovered
    )
    return publication.publish(Path(directory), folder, delta=delta, publisher=publisher)


def _charged(
    setting: Chosen, ledger: str | None, grant: str | None, *, replicates: int, noise: NoiseKind, seed: int,
    out: Path | None, continued: bool = False, world: str = "",
) -> AbstractContextManager[Paying]:  # fmt: skip
    """Budget hooks of a run, as a context manager; calling its value before the first draw commits the charge."""
    if ledger is None and grant is None:
        return nullcontext(Nobody())
    from privcheck.commands.run_charges import charged, run_key

    resumes = continued and out is not None  # the same draws again: charged once
    key = run_key(setting, world=world, seed=seed, replicates=replicates, out=out) if resumes else None
    return charged(setting, ledger=ledger, grant=grant, noise=noise, replicates=replicates, key=key, out=out)


def _evidence(setting: Chosen, ledger: str | None, charge: str | None) -> Callable[[Audited], None]:
    """A function that records an audit as evidence; a charge of another algorithm is refused before the audit."""
    if ledger is None and charge is None:
        return lambda _: None
    from privcheck.commands.run_charges import find_audited

    return find_audited(setting, ledger=ledger, charge=charge)


def _resolve(name: str, parameters: Mapping[str, Value] | None, settings: Mapping[str, Value]) -> Chosen:
    return resolve_setting(name, _texts(parameters, settings))


def _texts(parameters: Mapping[str, Value] | None, settings: Mapping[str, Value]) -> dict[str, str]:
    """The settings as the texts of NAME=VALUE pairs.

    Raises:
        ParameterError: A name is given twice, or a value is not an exact number.
    """
    given = dict(parameters or {})
    for name in settings:
        if name in given:
            raise ParameterError(f"{name} is given twice: in parameters and as {name}=…", name=name)
    return {name: _text(name, value) for name, value in {**given, **settings}.items()}


def _text(name: str, value: Value) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(exact(value))
    except ParameterError as error:
        raise type(error)(f"{name}: {error}", name=name, given=value) from None


def _place(
    env: str | None, data: Data | None, rewards: Path | str | None, features: Path | str | None,
    users: Users = NO_STATEMENT,
) -> Place:  # fmt: skip
    if env is not None and not isinstance(env, str):
        raise ParameterError(f"--env expects an environment's name, got {env!r:.100}", name="env", given=env)
    public = [None if one is None else Path(one) for one in (rewards, features)]
    return Place(env=env, data=data, rewards=public[0], features=public[1], users=users)


def _directory(out: Path | str | None) -> Path | None:
    if out is not None and not str(out):
        raise ParameterError("out: expected a directory's name, got an empty one", name="out", given=out)
    return None if out is None else Path(out)


def _refuse_numbers(
    *, replicates: int | None = None, seed: int = 0, workers: int | None = None, noise: str = "simulated",
    trials: int | None = None, confidence: float = 0.99,
) -> None:  # fmt: skip
    whole = {"replicates": (replicates, 1), "seed": (seed, 0), "workers": (workers, 1), "trials": (trials, 1)}
    for name, (number, least) in whole.items():
        if number is not None and not (_is_whole(number) and number >= least):
            message = f"--{name} expects a whole number, at least {least}, got {number!r}"
            raise ParameterError(message, name=name, given=number)
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        message = f"--confidence expects a number in [0.5, 1), got {confidence!r}"
        raise ParameterError(message, name="confidence", given=confidence)
    if noise not in get_args(NoiseKind):
        raise ParameterError(f"--noise expects simulated or release, got {noise!r}", name="noise", given=noise)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _call(function: str, name: str | list[str], *given: Mapping[str, Any] | None) -> list[str]:
    """The call as text, for a report; data in memory are named by their type."""
    every = {key: value for part in given for key, value in (part or {}).items() if value is not None}
    return [f"privcheck.{function}({', '.join([repr(name), *(f'{k}={_spell(v)}' for k, v in every.items())])})"]


def _spell(value: object) -> str:
    if isinstance(value, Fraction | Path):
        return repr(str(value))
    return repr(value) if isinstance(value, str | int | float) else f"<{type(value).__name__}>"
