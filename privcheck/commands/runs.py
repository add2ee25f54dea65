"""Run an offline agent or audit any agent, in this process, in workers, or on a Dask cluster."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Final, cast, get_args

from privcheck.commands.datasets import Source
from privcheck.commands.learning_check import judge_learned
from privcheck.commands.provenance import exact_parameters, preset_used
from privcheck.commands.run_outputs import keep_policy, price_run
from privcheck.commands.settings import Chosen
from privcheck.data.finite_models import share_of_uniform
from privcheck.data.reading.users import DEPENDS_ON_DATA
from privcheck.declare.relations import ReplaceOne, most_trajectories
from privcheck.errors import ParameterError
from privcheck.reports.policies import ARRAY_NAME
from privcheck.reports.values import (
    Audited,
    Gap,
    LearnedValue,
    LedgerRelease,
    LedgerSummary,
    Ran,
    SpentCost,
    take_fields,
)
from privcheck.runtime import Ledger, registry
from privcheck.runtime.ledger import FILE_NAME as LEDGER
from privcheck.runtime.offline import refuse_replicates
from privcheck.runtime.registry import AuditPlan
from privcheck.runtime.results import (
    AuditMethod,
    AuditRequest,
    AuditResult,
    AuditView,
    NoiseKind,
    Remark,
    RunRequest,
    RunResult,
    nothing,
)
from privcheck.runtime.run_folders import find_file, refuse_mixed
from privcheck.support.display import Progress, silent
from privcheck.support.files import partial_path
from privcheck.terms.unit import say_trajectories
from privcheck.verification import judge

_PATIENCE: Final = "10s"  # for a scheduler that does not answer
_DECIDING: Final = ("privcheck", "numpy")  # packages whose versions decide what a seed draws


@contextmanager
def cluster_executor(address: str) -> Iterator[Executor]:
    """Open the executor of the Dask cluster at an address; the cluster is left running.

    Args:
        address: Address of the scheduler, like tcp://10.0.0.1:8786.

    Raises:
        ParameterError: Dask is not installed, no scheduler answers, there is no worker, or a worker has other versions
            of privcheck or NumPy, which determine the result.
    """
    try:
        distributed = import_module("distributed")
    except ImportError:
        message = "--cluster needs Dask: pip install 'privcheck[cluster]'"
        raise ParameterError(message, name="cluster", given=address) from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        message = f"--cluster expects the address of a Dask scheduler, like tcp://host:8786; {address!r}: {error}"
        raise ParameterError(message, name="cluster", given=address) from None
    with client:
        others = client.run(_versions)
        if not others:
            raise ParameterError(f"--cluster: the scheduler at {address} has no workers", name="cluster", given=address)
        for worker, theirs in sorted(others.items()):
            if theirs != _versions():
                message = (
                    f"--cluster: worker {worker} has {_name_versions(theirs)}, here is {_name_versions(_versions())}; "
                    "expected the same versions, because they determine the draws of a seed"
                )
                raise ParameterError(message, name="cluster", given=address)
        yield cast("Executor", client.get_executor())


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _DECIDING}


def _name_versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


_UNKNOWN = (
    "The true value of a policy is unknown for a user's own data; shown is the agent's own estimate from the "
    "billboard, which is no lower bound. A non-private baseline would be another release, so none is computed."
)
_EXPOSED = (
    "This agent is not private: its policy and its estimate are computed from the exact data, and showing them is a "
    "release that is not accounted for."
)
_WITHHELD = "withheld: private"
_COUNTS = frozenset({"rows", "users", "episodes"})  # facts that are counts of the data
_WARNINGS = ("warning", DEPENDS_ON_DATA)  # facts that whoever publishes the policy has to know
LOCKSTEP = "lockstep"  # the view that compares what agents hand back
_COMPARED = 8  # pairs of neighbours before a release: the worst ones, which come first, and some at random
BLOCKS = "blocks"  # folder of an audit's finished blocks
METHODS: tuple[AuditMethod, ...] = get_args(AuditMethod)


def run(
    setting: Chosen,
    source: Source,
    *,
    replicates: int = 1,
    noise: NoiseKind = "simulated",
    seed: int = 0,
    out: Path | None = None,
    progress: Progress = silent,
    begin: Callable[[], None] = nothing,
    compared: str | None = None,
) -> Ran:
    """Run an offline agent and price its ledger.

    The ledger is checked against the declaration, release by release, before anything is reported.

    Args:
        setting: The algorithm.
        source: The data.
        replicates: Independent repetitions, each with its own noise.
        noise: Source of the noise; release noise has no seed.
        seed: Seed of simulated noise.
        out: Folder of the first replicate's ledger, ledger.jsonl, and of the policy; None to write nothing.
        progress: Called as the work goes on.
        begin: Called before the first draw.
        compared: Quantities that lockstep found to be equal on neighbours; None if it has not run yet: it then runs
            before release noise is drawn.

    Raises:
        ParameterError: The algorithm has no agent, or with release noise its output does not follow from its releases;
            or a user's own data would be released more than once, by several replicates or in the folder of an earlier
            run's ledger; or release noise cannot be drawn.
        LedgerError: The run deviated from its declaration.
    """
    refuse_no_agent(setting)
    if replicates < 1:
        raise ParameterError(f"--replicates expects a whole number, at least 1, got {replicates}", name="replicates")
    refuse_second_release(setting, source, replicates, out, noise=noise)
    drawn = setting.with_noise(noise)
    if compared is None:
        compared = compare_outputs(setting, seed) if noise == "release" else ""
    setting = drawn
    begin()
    result = setting.algorithm.learn_from(
        RunRequest(
            setting=setting.setting,
            data=source.data,
            replicates=replicates,
            seed=seed,
            noise=noise,
            ledger=out / LEDGER if out is not None and setting.declaration is not None else None,
            progress=progress,
        )
    )
    withheld = why_withheld(setting, source) if noise == "release" else ""
    episodes = None if withheld else source.data.trajectories.users
    spent = price_run(result.ledger, setting)
    policy = keep_policy(
        setting,
        result.policy,
        out,
        learned_from=source.data.name,
        true=None if result.returns is None else float(result.returns[0]),
        claimed=float(result.claimed[0]),
        spent=spent,
        ledger=result.ledger,
        labels=source.labels,
        compared=compared,
        warnings=tuple(str(source.data.facts[name]) for name in _WARNINGS if name in source.data.facts),
    )
    gap = _measure_gap(result, source)
    return Ran(
        algorithm=setting.algorithm.name,
        environment=source.data.name,
        description=f"{source.data.name}: {_WITHHELD}" if withheld else source.data.description,
        facts={**source.data.facts, **dict.fromkeys(_COUNTS & source.data.facts.keys(), withheld)}
        if withheld
        else source.data.facts,
        replicates=replicates,
        episodes=episodes,
        parameters=exact_parameters(setting),
        options=setting.options_used,
        unit=None if setting.declaration is None else setting.setting.protected,
        preset=preset_used(setting),
        did_not_learn=judge_learned(setting, result, gap),
        value=_summarise_value(result, source, private=setting.declaration is not None),
        gap=gap,
        spent=spent,
        ledger=summarise_ledger(result.ledger, out),
        diagnostics=result.diagnostics,
        compared=compared,
        policy_file=None if out is None else find_file(out, ARRAY_NAME).relative_to(out).as_posix(),
        _policy=policy,
        _outcomes=_list_gaps(result, source),
        remarks=(*_tell_several(setting, spent), *result.remarks),
        seconds=result.seconds,
        episodes_per_second=None if episodes is None else episodes * replicates / max(result.seconds, 1e-9),
    )


def _tell_several(setting: Chosen, spent: SpentCost | None) -> tuple[Remark, ...]:
    """Remark that the claim is about fewer trajectories than a user may have; empty if it is not."""
    if setting.setting.covering is None or setting.setting.unit is None:
        return ()
    unit = setting.setting.unit
    about = say_trajectories(most_trajectories(setting.declared.relation, setting.values))
    rho = None if spent is None else spent.rho
    cost = (
        "" if rho is None else f": ρ = {rho:.6g} in all, of which one trajectory alone costs 1/{unit.trajectories**2}"
    )
    text = (
        f"{setting.declared.claim.source} is about {about}. One {unit.who} has up to {unit.trajectories} here: the "
        f"cost, the policy's guarantee and a team's charge are those of one {unit.who}{cost}. A smaller budget of "
        f"{about} lowers it."
    )
    return (Remark(title=f"The claim is about {about}", text=text),)


def why_withheld(setting: Chosen, source: Source) -> str:
    """Why the numbers of rows, users and episodes are withheld beside a release; empty if they are public.

    They are public for simulated users, and for a table of users with one trajectory each if neighbours replace one
    user and no choice in reading the table depended on the data.
    """
    if source.data.public or setting.declaration is None:
        return ""
    if choices := source.data.facts.get(DEPENDS_ON_DATA):
        return f"{_WITHHELD} ({choices})"
    if not isinstance(setting.declared.relation, ReplaceOne):
        return f"{_WITHHELD} (neighbours differ in it: {setting.declared.relation.words})"
    unit = source.data.trajectories.unit
    if unit is not None and unit.trajectories > 1:
        return f"{_WITHHELD} (one {unit.who} has up to {unit.trajectories} trajectories, and may have fewer)"
    return ""


def compare_outputs(setting: Chosen, seed: int) -> str:
    """Compare an agent's outputs on neighbours with the same billboards, before anything is released.

    Returns:
        The text of `say_compared`; empty if the algorithm has no view lockstep.

    Raises:
        ParameterError: A user changes a release by more than its charged sensitivity, or changes the agent's other
            output.
    """
    plan = registry.plan_for(setting.algorithm)
    if setting.declaration is None or LOCKSTEP not in plan.views or plan.lacks(setting.declared, LOCKSTEP):
        return ""
    found = audit(setting, plan=plan, view=LOCKSTEP, trials=_COMPARED, seed=seed, workers=1)
    if found.verdict == "violation":
        message = (
            f"{setting.algorithm.name} is not released: {found.witness}. `privcheck audit {setting.algorithm.name} "
            "--view lockstep` shows the figures; simulated noise (--noise simulated) runs it for inspection, not for "
            "publication"
        )
        raise ParameterError(message, name="noise", given="release")
    return say_compared(found)


def say_compared(found: Audited | None) -> str:
    """The quantities that a lockstep audit found equal, as text; empty unless it ran the agent and is consistent."""
    if found is None or found.verdict != "consistent" or not found.agent_ran or not found.evidence.get("compared"):
        return ""
    return f"{found.evidence['compared']}; bit for bit on {found.trials} pairs of neighbours"


def refuse_no_agent(setting: Chosen) -> None:
    """Refuse to run an algorithm without an agent that learns from data.

    Raises:
        ParameterError: The algorithm has no such agent.
    """
    if not setting.algorithm.from_data:
        message = (
            f"{setting.algorithm.name} is declared but has no agent to run; `privcheck list` shows the algorithms with "
            "an agent"
        )
        raise ParameterError(message, name=setting.algorithm.name)


def refuse_second_release(
    setting: Chosen, source: Source, replicates: int, out: Path | None, *, noise: NoiseKind = "simulated"
) -> None:
    """Refuse to release a user's own data, or with release noise, more often than charged.

    Raises:
        ParameterError: There are several replicates, or the directory contains the ledger of an earlier run, files of a
            run with the other kind of noise or, for release noise, the ledger of an interrupted run.
    """
    if noise == "release":
        refuse_replicates(replicates)
        refuse_torn_ledger(out)
    elif setting.declaration is None or source.data.public:
        refuse_mixed(out, released=False)
        return
    if replicates > 1:
        message = (
            f"{replicates} replicates on your own data are {replicates} releases about the same users, and cost "
            f"{replicates} times the budget: use --replicates 1 (simulated users may be repeated)"
        )
        raise ParameterError(message, name="replicates", given=replicates)
    if out is not None and (out / LEDGER).exists():
        message = (
            f"{out} holds the ledger of an earlier run, the record of its spending: choose another --out. "
            "The two runs together cost the sum of both ledgers"
        )
        raise ParameterError(message, name="out", given=str(out))
    refuse_mixed(out, released=noise == "release")


def refuse_torn_ledger(out: Path | None) -> None:
    """Refuse the directory of an interrupted run: its noise is spent, and must not be drawn again.

    Raises:
        ParameterError: The directory contains the ledger of an interrupted run.
    """
    if out is not None and (torn := partial_path(out / LEDGER)).exists():
        message = (
            f"{torn} is the ledger of an interrupted run. Its releases are spent if any of them left this machine, and "
            "drawing again would be a second release: keep it, charge both, and choose another --out"
        )
        raise ParameterError(message, name="out", given=str(out))


def _summarise_value(result: RunResult, source: Source, *, private: bool) -> LearnedValue:
    returns = result.returns
    return LearnedValue(
        mean=None if returns is None else float(returns.mean()),
        std=float(returns.std(ddof=1)) if returns is not None and len(returns) > 1 else None,
        baseline=result.baseline,
        optimal=None if returns is None else source.data.references.get("optimum"),
        references=source.data.references,
        claimed=float(result.claimed.mean()),
        note=None if returns is not None else _UNKNOWN if private else _EXPOSED,
    )


def _measure_gap(result: RunResult, source: Source) -> Gap:
    """Mean gap between the learned policies and the optimum; empty if the true values are unknown."""
    optimum, random = (source.data.references.get(name) for name in ("optimum", "random"))
    if result.returns is None or optimum is None:
        return Gap()
    mean = max(optimum - float(result.returns.mean()), 0.0)
    uniform = None if random is None else max(optimum - random, 0.0)
    return Gap(
        mean=mean, uniform=uniform, share_of_uniform=None if uniform is None else share_of_uniform(mean, uniform)
    )


def _list_gaps(result: RunResult, source: Source) -> tuple[float, ...]:
    """Gap of every replicate's policy; empty if the true values are unknown."""
    optimum = source.data.references.get("optimum")
    if result.returns is None or optimum is None:
        return ()
    return tuple(max(optimum - float(value), 0.0) for value in result.returns)


def summarise_ledger(ledger: Ledger | None, out: Path | None) -> LedgerSummary | None:
    """Summary of a ledger, release by release, for reports."""
    if ledger is None:
        return None
    slices = Counter(entry.release for entry in ledger.entries)
    return LedgerSummary(
        path=None if out is None else LEDGER,
        entries=len(ledger.entries),
        digest=ledger.digest,
        noise=ledger.header["noise"],
        as_declared=ledger.header["as_declared"],
        protects=ledger.header["protects"],
        written=ledger.header["written"],
        releases=tuple(
            take_fields(LedgerRelease, entry.charge, release=entry.release, slices=slices[entry.release])
            for entry in ledger.entries
            if entry.charge is not None
        ),
    )


def audit(
    setting: Chosen,
    *,
    plan: AuditPlan | None = None,
    view: str = "releases",
    method: str = "auto",
    trials: int | None = None,
    confidence: float = 0.99,
    delta: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    out: Path | None = None,
    progress: Progress = silent,
) -> Audited:
    """Run an audit: a lower bound on the privacy loss, or the observations of lockstep and noise audits.

    Args:
        setting: The algorithm with the audited releases or agent.
        plan: The audit plan; None for the algorithm's own.
        view: Name of a registered view.
        method: The statistical test, of `METHODS`; "auto" for the default of the view's plan.
        trials: N, runs under each neighbour; None for the plan's default.
        confidence: Confidence 1 − α of the whole audit.
        delta: δ of the bounded ε.
        seed: Seed of the trials.
        workers: Threads; None for all cores.
        cluster: Address of a Dask scheduler whose workers run the trials instead.
        out: Folder whose blocks/ stores finished blocks of trials and is searched for them; None to store nothing.
        progress: Called as the work goes on.

    Raises:
        ParameterError: The plan has no such view, the method does not fit it, a number is out of range, the cluster
            cannot be used, or `out` contains blocks of another audit.
    """
    plan = plan or registry.plan_for(setting.algorithm)
    asked = choose_view(setting, plan, view, method=method, confidence=confidence)
    runs = plan.trials[asked] if trials is None else trials
    if runs < 1:
        raise ParameterError(f"--trials expects a whole number, at least 1, got {runs}", name="trials", given=runs)
    cores = os.cpu_count() or 1
    if workers is not None and workers < 1:
        raise ParameterError(f"--workers expects a whole number, at least 1, got {workers}", name="workers")
    started = time.perf_counter()
    request = AuditRequest(
        setting=setting.setting,
        view=asked,
        delta=delta,
        trials=runs,
        confidence=confidence,
        seed=seed,
        workers=workers or cores,
        progress=progress,
        directory=out / BLOCKS / view if out is not None else None,
        method=next(m for m in METHODS if m == method),
    )
    if cluster is None:
        result = plan.audit(request)
    else:
        with cluster_executor(cluster) as executor:
            result = plan.audit(replace(request, executor=executor))
    said = _describe_audit(setting, result, seed, time.perf_counter() - started)
    return replace(said, asks=plan.by_name[asked].asks, leaves_open=plan.by_name[asked].leaves_open)


def choose_view(setting: Chosen, plan: AuditPlan, view: str, *, method: str, confidence: float) -> AuditView:
    """Check the requested view, method and confidence, and return the view.

    Raises:
        ParameterError: The plan has no such view, the method is unknown, or the confidence is out of range.
    """
    asked = next((known for known in plan.views if known == view), None)
    if asked is None:
        raise ParameterError(f"--view expects one of {', '.join(plan.views)}; got {view!r}", name="view", given=view)
    if why := plan.lacks(setting.declared, asked):
        message = f"{setting.algorithm.name} has no view {view}: {why}"
        raise ParameterError(message, name="view", given=view)
    if method not in METHODS:
        message = f"--method expects one of {', '.join(METHODS)}; got {method!r}"
        raise ParameterError(message, name="method", given=method)
    if not 0.5 <= confidence < 1:
        message = f"--confidence expects a number in [0.5, 1), got {confidence}"
        raise ParameterError(message, name="confidence", given=confidence)
    return asked


def _describe_audit(setting: Chosen, result: AuditResult, seed: int, seconds: float) -> Audited:
    moved = _refutes_elsewhere(setting, result)
    return take_fields(
        Audited,
        result,
        algorithm=setting.algorithm.name,
        verdict="undecided" if moved else result.verdict,
        evidence=dict(result.evidence) | ({"violation_at": result.evidence["audited_at"]} if moved else {}),
        seconds=seconds,
        trials_per_second=_measure_speed(result),
        claim=setting.declared.claim_and_source,
        seed=seed,
        audited_at=None if "audited_at" not in result.evidence else str(result.evidence["audited_at"]),
    )


def _measure_speed(result: AuditResult) -> float:
    """Runs per second, 2N in all; without set-up and learning if the view measures them separately."""
    measured = result.evidence.get("trials_per_second")
    return measured if isinstance(measured, float) else 2 * result.trials / max(result.seconds, 1e-9)


def _refutes_elsewhere(setting: Chosen, result: AuditResult) -> bool:
    """Whether the claim is refuted at other parameters only, so that it is undecided at the requested ones.

    If verification refutes it at the requested parameters, the violation stands.
    """
    if result.view != "releases" or "audited_at" not in result.evidence or result.verdict != "violation":
        return False
    return judge(setting.priced).verdict != "fails"
