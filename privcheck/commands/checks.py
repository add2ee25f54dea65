"""`check`: the full report on one algorithm; and reports of audits without a check."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privcheck.accounting import claim_epsilon
from privcheck.commands.datasets import Source
from privcheck.commands.declarations import calibrate_noise, price_releases, show, verify_claim
from privcheck.commands.online_runs import refuse_early, run_online
from privcheck.commands.provenance import Began, about, exact_parameters, provenance
from privcheck.commands.run_budget import Nobody, Paying
from privcheck.commands.runs import LOCKSTEP, audit, refuse_second_release, run, say_compared
from privcheck.commands.settings import Chosen, parse_delta
from privcheck.commands.training_runs import run_training
from privcheck.declare.mechanisms import LAWS
from privcheck.errors import ParameterError
from privcheck.reports import load_report
from privcheck.reports.files import JSON_NAME
from privcheck.reports.values import (
    Audited,
    Budget,
    CalibratedNoise,
    Ran,
    RanOnline,
    Report,
    VerdictBrief,
    Verified,
    take_fields,
    together,
)
from privcheck.runtime import registry
from privcheck.runtime.registry import AuditPlan
from privcheck.runtime.results import NoiseKind, World
from privcheck.runtime.run_folders import refuse_mixed
from privcheck.runtime.trained import Simulated
from privcheck.support.display import Progress

Views = Mapping[str, Audited]
_SAME = ("algorithm", "parameters", "options", "choices", "privcheck")


def earlier_views(setting: Chosen, directory: Path) -> Views:
    """The views in the report of an earlier audit of the same setting in the directory.

    Raises:
        ParameterError: The directory contains the report of a check, or of an audit of other settings, which would be
            lost.
        FileFormatError: The report there cannot be read by this version.
    """
    if not (directory / JSON_NAME).exists():
        return {}
    report = load_report(directory)
    if report.verify is not None or report.run is not None:
        message = f"{directory} holds the report of a check, which includes audits: choose another --out"
        raise ParameterError(message, name="out", given=str(directory))
    here = begin_report(setting)
    others = [name for name in _SAME if getattr(report, name) != getattr(here, name)]
    if others:
        told = "; ".join(_difference(name, getattr(report, name), getattr(here, name)) for name in others)
        message = f"{directory} holds the report of another audit, which would be lost ({told}): choose another --out"
        raise ParameterError(message, name="out", given=str(directory))
    return {} if report.audit is None else report.audit.views


def _difference(name: str, there: Any, here: Any) -> str:
    """The difference between two reports; for mappings, the first entry that differs."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        key = next(key for key in {**there, **here} if there.get(key) != here.get(key))
        return f"there {key} = {there.get(key, 'not given')}, here {here.get(key, 'not given')}"
    return f"{name}: there {there}, here {here}"


def audit_report(setting: Chosen, result: Audited, earlier: Views, *, command: Sequence[str], began: Began) -> Report:
    """Report of one audit, with earlier audits of other views.

    Args:
        setting: The audited algorithm.
        result: Result of `privcheck.commands.runs.audit`.
        earlier: Earlier audits by view, from `earlier_views`.
        command: The command line.
        began: Start of the audit.
    """
    views = {**earlier, result.view: result}
    return replace(
        begin_report(setting),
        audit=together({name: views[name] for name in registry.plan_for(setting.algorithm).views if name in views}),
        provenance=provenance(began, command=command, seeds={"audit": result.seed}),
    )


def begin_report(setting: Chosen) -> Report:
    """An empty report with its subject: algorithm, parameters, options, choices and unit."""
    return Report(
        privcheck=about(),
        algorithm=setting.algorithm.name,
        title=setting.algorithm.title,
        source=setting.algorithm.source,
        model=setting.declared.model,
        parameters=exact_parameters(setting),
        options=setting.options_used,
        choices=dict(setting.readings),
        unit=setting.declared.unit(setting.values).to_dict(),
    )


def report_verdict(setting: Chosen, found: Verified, *, began: Began, command: Sequence[str]) -> Report:
    """Report of a verdict alone: with the declaration and its price, without audits and a run.

    Args:
        setting: The algorithm that was judged.
        found: Its verdict.
        began: Start of the work.
        command: The command line or call, for the record.
    """
    return replace(
        begin_report(setting),
        verdict=take_fields(VerdictBrief, found),
        show=show(setting),
        budget=price_releases(setting, parse_delta(None, setting), full=True),
        verify=found,
        provenance=provenance(began, command=command, seeds={}),
    )


SAMPLED = ("releases", "policy")
SECOND = 1_000_000_007  # added to the seed of an audit that is run again
PURE_DELTA = 1e-5  # at which a pure claim is compared with what composition really needs
REPLICATES = 5


def check(
    setting: Chosen,
    source: Source | World | Simulated | None,
    *,
    delta: float,
    replicates: int | None,
    noise: NoiseKind = "simulated",
    seed: int,
    trials: int | None,
    confidence: float,
    workers: int | None,
    out: Path | None,
    command: Sequence[str],
    progress: Callable[[str], Progress],
    paying: Paying | None = None,
) -> Report:
    """Report on one algorithm with one dataset: shown, priced, verified, audited, run.

    Args:
        setting: The algorithm.
        source: Data of the agent, or environment of an online agent, or users of one that trains a policy; None for a
            declaration without an agent, so that nothing is run.
        delta: δ of the reported ε.
        replicates: Repetitions of the run; None for 5 on simulated users, and for 1 with release noise or on a user's
            own data, where every repetition costs the budget again.
        noise: Noise of the run; audits draw simulated noise.
        seed: Seed of simulated noise, data and audits.
        trials: Runs under each neighbour in the views that bound ε, `SAMPLED`; None for each plan's default. Lockstep
            and noise audits, which need only a few runs, keep their own numbers.
        confidence: Confidence 1 − α of each audit. One that contradicts what was found to hold is run again with other
            draws, and the second run counts: an honest release is accused with probability α², not α.
        workers: Threads; None for all cores.
        out: Folder of the ledger and the policy; None to write nothing.
        command: The command line or call, for the record.
        progress: Makes a progress callback for a named part of the work.
        paying: Budget hooks of the run, called before its first draw. After an audit's violation nothing is run if a
            budget is charged or the noise is release noise.
    """
    payer = paying or Nobody()
    began = Began()
    repeated = count_replicates(replicates, noise, own_data=is_own(source))
    if isinstance(source, Source):
        refuse_second_release(setting, source, repeated, out, noise=noise)
    else:
        refuse_mixed(out, released=noise == "release")
    drawn = setting.with_noise(noise)  # what cannot be drawn is refused before the audits run
    judged, charged = drawn.judged, drawn.charged
    if isinstance(source, World):
        refuse_early(drawn, source, replicates=repeated, noise=noise, seed=seed)
    progress("verify")
    verdict = verify_claim(judged)  # of the discrete mechanism, where that is what is released
    plan = registry.plan_for(setting.algorithm)

    def ask(view: str, seed: int, words: str) -> Audited:
        return audit(
            setting,
            plan=plan,
            view=view,
            trials=trials if view in SAMPLED else None,
            confidence=confidence,
            delta=delta,
            seed=seed,
            workers=workers,
            progress=progress(words),
        )

    views = {view: ask(view, seed, f"audit, {view}") for view in audited_views(setting, plan)}
    wrong = verdict.verdict == "fails" or any(_accuses(views[view]) for view in views if view not in SAMPLED)
    for view, found in views.items():
        if view in SAMPLED and not wrong and _accuses(found):
            # one honest release in a hundred is accused at 99 %, and by a fixed seed always the same ones: what counts
            # is a run of its own, whose confidence the first one does not change
            second = ask(view, seed + SECOND, f"audit, {view}, again")
            first = {"seed": seed, "epsilon_lower": found.epsilon_lower, "verdict": found.verdict}
            views[view] = replace(second, evidence={**second.evidence, "first_run": first})
    how: dict[str, Any] = {
        "replicates": repeated,
        "noise": noise,
        "seed": seed,
        "out": out,
        "begin": payer,
        "compared": say_compared(views.get(LOCKSTEP)),
    }
    learned: Ran | RanOnline | None = None
    refuted = any(view.verdict == "violation" for view in views.values())
    if not payer.judge(views.values()) or (noise == "release" and refuted):
        source = None  # what an audit refuted is released to nobody
    if isinstance(source, World):
        learned = run_online(setting, source, workers=workers, progress=progress, **how)
    elif isinstance(source, Simulated):
        learned = run_training(setting, source, progress=progress("run"), **how)
    elif source is not None:
        learned = run(setting, source, progress=progress("run"), **how)
    return replace(
        begin_report(setting),
        verdict=take_fields(VerdictBrief, verdict),
        show=show(setting),
        budget=_price(setting, charged, delta),
        verify=verdict,
        calibrate=_enough(charged, delta),
        audit=together(views),
        run=learned,
        provenance=provenance(began, command=command, seeds=_seeds(seed, noise)),
    )


def _accuses(found: Audited) -> bool:
    """Whether an audit contradicts the claim, or the accountant."""
    lower, upper = found.epsilon_lower, found.epsilon_upper
    return found.verdict == "violation" or (lower is not None and upper is not None and lower > upper)


def count_replicates(replicates: int | None, noise: NoiseKind, *, own_data: bool) -> int:
    """Number of runs: as given, else 1 for own data or release noise, and `REPLICATES` otherwise."""
    return replicates or (1 if own_data or noise == "release" else REPLICATES)


def is_own(source: Source | World | Simulated | None) -> bool:
    """Whether the source is a user's own data, not simulated users."""
    return isinstance(source, Source) and not source.data.public


def _seeds(seed: int, noise: NoiseKind) -> dict[str, int]:
    """The seeds by purpose; release noise has none."""
    return {"data": seed, **({"noise": seed} if noise == "simulated" else {}), "audit": seed}


def _price(setting: Chosen, judged: Chosen, delta: float) -> Budget:
    """Cost of the releases with the noise that is drawn.

    Its curve also bounds the declared mechanism, from which the audits draw: they are compared with the curve.
    """
    budget = price_releases(judged, delta, full=True)
    if judged is setting or budget.curve is None:
        return budget
    declared = setting.priced.numbers
    both = ((upper, declared.delta(e)) for upper, e in zip(budget.curve.delta_upper, budget.curve.epsilon, strict=True))
    return replace(budget, curve=replace(budget.curve, delta_upper=tuple(map(max, both))))


def _enough(setting: Chosen, delta: float) -> CalibratedNoise | None:
    """The least noise for the claim converted to (ε, δ)-DP, at δ = 1e-5 if δ is 0.

    None if ε is not in (1e-6, 1e6), or if no amount of the declared noise suffices (integer messages, a reused draw).
    """
    at = delta if delta > 0 else PURE_DELTA
    epsilon = claim_epsilon(setting.declared.claim.guarantee, setting.values, at)
    try:
        return calibrate_noise(setting, epsilon=epsilon, delta=at) if 1e-6 < epsilon < 1e6 else None
    except ParameterError:
        return None


def audited_views(setting: Chosen, plan: AuditPlan) -> list[str]:
    """The views that a check audits."""
    return [view for view in plan.views if not plan.lacks(setting.declared, view)]


def exit_code(report: Report) -> int:
    """Exit code: 1 if the claim fails or an audit found a violation, 3 if either is undecided, else 0.

    A sampled audit with too few runs does not change the code; an agent that does not repeat its output makes it 3, and
    so does a run whose record has no finite bound.
    """
    verdict = "undecided" if report.verify is None else report.verify.verdict
    views = {} if report.audit is None else report.audit.views
    if verdict == "fails" or any(view.verdict == "violation" for view in views.values()):
        return 1
    doubted = any("doubt" in view.evidence for view in views.values())
    return 3 if verdict == "undecided" or doubted or _is_run_unbounded(report) else 0


def _is_run_unbounded(report: Report) -> bool:
    """Whether the cost of a run has no known bound.

    Messages behind a shuffler have no price in zCDP, in which ledgers add up. The ledger was checked against the
    declaration, release by release, so that the declaration's bound holds for the run if it drew the declared noise.
    """
    run = report.run
    if run is None or run.spent is None or (run.spent.rho is not None and math.isfinite(run.spent.rho)):
        return False
    declared = None if report.budget is None else report.budget.guarantee.epsilon
    ledger = run.ledger
    if ledger is None or not ledger.as_declared or declared is None or not math.isfinite(declared):
        return True
    return not all(one.law in LAWS for one in ledger.releases)  # others have no price but their author's word
