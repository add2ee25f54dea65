"""Runs of agents that train a policy on episodes of simulated users of a task, each with its twin without noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from privcheck.commands.online_runs import refuse_ledger, refuse_release
from privcheck.commands.provenance import exact_parameters, preset_used
from privcheck.commands.run_outputs import describe_learned, price_run, save_learned
from privcheck.commands.runs import compare_outputs, summarise_ledger
from privcheck.commands.settings import Chosen
from privcheck.errors import ParameterError
from privcheck.reports.policies import ARRAY_NAME, Weights
from privcheck.reports.values import LearnedValue, NotLearned, Ran
from privcheck.runtime.results import NoiseKind, nothing
from privcheck.runtime.run_folders import find_file, refuse_mixed
from privcheck.runtime.trained import Simulated, TrainingRequest, TrainingResult
from privcheck.support.display import Progress, silent

_NOTE: Final = (
    "Mean return of the most likely actions, of {evaluated} fresh simulated users. Without noise it has the same "
    "settings, which are not tuned for it."
)


def run_training(
    setting: Chosen,
    world: Simulated,
    *,
    replicates: int = 1,
    noise: NoiseKind = "simulated",
    seed: int = 0,
    out: Path | None = None,
    progress: Progress = silent,
    begin: Callable[[], None] = nothing,
    compared: str | None = None,
) -> Ran:
    """Train an agent and price its ledger.

    The ledger is checked against the declaration before anything is reported. A stopped run is continued if `out`
    contains its checkpoint, with the same result.

    Args:
        setting: The algorithm.
        world: Its users.
        replicates: Independent repetitions.
        noise: Source of the noise. A run with release noise is not continued: released noise is not drawn again.
        seed: Seed of the users and of simulated noise.
        out: Folder of the first replicate's ledger, of the checkpoint and of the policy.
        progress: Called as the work goes on.
        begin: Called before the first draw.
        compared: As for `privcheck.commands.runs.run`.

    Raises:
        ParameterError: A number is out of range, the directory contains another run's checkpoint, or with release noise
            the agent's output does not follow from its releases.
        LedgerError: The run deviated from its declaration, or the directory contains a ledger that was changed or is of
            another run.
    """
    agent = setting.algorithm.trained
    if agent is None:
        raise ParameterError(f"{setting.algorithm.name} does not train a policy", name=setting.algorithm.name)
    if replicates < 1:
        raise ParameterError(f"--replicates expects a whole number, at least 1, got {replicates}", name="replicates")
    released = noise == "release"
    if released:
        refuse_release(setting, replicates, out)
    refuse_mixed(out, released=released)
    declared, setting = setting, setting.with_noise(noise)
    refuse_ledger(setting, out)
    if compared is None:
        compared = compare_outputs(declared, seed) if released else ""
    begin()
    asked = TrainingRequest(
        setting=setting.setting,
        world=world,
        replicates=replicates,
        seed=seed,
        noise=noise,
        directory=out,
        progress=progress,
    )
    result = agent.run(asked)
    spent = price_run(result.ledger, setting)
    record = describe_learned(
        setting,
        steps=world.steps,
        states=0,
        actions=result.actions,
        learned_from=world.name,
        true=float(result.returns[0]),
        claimed=None,
        spent=spent,
        ledger=result.ledger,
        compared=compared,
        form=result.form,
    )
    policy = Weights(parameters=result.parameters, record=record)
    save_learned(policy, out)
    K = int(setting.values["K"])
    return Ran(
        algorithm=setting.algorithm.name,
        environment=world.name,
        description=world.description,
        facts=world.facts,
        replicates=replicates,
        episodes=K,
        parameters=exact_parameters(setting),
        options=setting.options_used,
        unit=setting.setting.protected,
        preset=preset_used(setting),
        did_not_learn=_judge(result),
        value=_value(result),
        spent=spent,
        ledger=summarise_ledger(result.ledger, out),
        diagnostics={},
        compared=compared,
        policy_file=None if out is None else find_file(out, ARRAY_NAME).relative_to(out).as_posix(),
        _policy=policy,
        seconds=result.seconds,
        episodes_per_second=2 * K * replicates / max(result.seconds, 1e-9),  # the twins' too
    )


def _value(result: TrainingResult) -> LearnedValue:
    several = len(result.returns) > 1
    return LearnedValue(
        mean=float(result.returns.mean()),
        std=float(result.returns.std(ddof=1)) if several else None,
        baseline=float(result.twins.mean()),
        optimal=None,
        references=result.references,
        claimed=None,
        note=_NOTE.format(evaluated=result.evaluated),
    )


def _judge(result: TrainingResult) -> NotLearned | None:
    """Why nothing was learned; None if the policies are better than those that learn nothing."""
    nothing_learned = max(result.references.values())
    if float(result.returns.mean()) > nothing_learned:
        return None
    noisy = float(result.twins.mean()) > nothing_learned
    because = "its returns are no better than those of policies that learn nothing"
    if noisy:
        because = "of its noise: without it the same settings learn here"
    advice = "more users (K), a larger ε, fewer parameters or other batches (B)"
    return NotLearned(because=because, advice=advice, cause="noise" if noisy else "unknown")
