"""The commands that need no data: list, show, budget, verify, calibrate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privcheck.accounting import claim_delta, claim_epsilon
from privcheck.commands.certificates import certificate_of
from privcheck.commands.failures import INTERNAL, explain
from privcheck.commands.provenance import exact_parameters
from privcheck.commands.settings import Chosen, resolve_setting
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.procedures import Procedure
from privcheck.declare.releases import is_additive
from privcheck.pricing import Account, ReleaseCost
from privcheck.pricing.calibration import needed_noise
from privcheck.pricing.cost import second_opinion
from privcheck.pricing.derivation import DerivationLine, ProcedureCost
from privcheck.reports import values as report
from privcheck.reports.wording import ratio
from privcheck.runtime import registry
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.verification import PlainWitness, Verification, Witness, judge
from privcheck.verification.comparisons import monotone
from privcheck.verification.findings import Change

_SHOWN_STEPS = 50  # of the pairs that findings carry
_SHOWN_POINTS = 20  # of the parameters' box, where a trend is not proved: `show` answers at once


def list_algorithms() -> report.Listing:
    """Every registered algorithm with its model, claim and parameters, from its declaration.

    `privcheck.cli.listing` reads the same rows from a file, without making declarations.
    """
    return report.Listing(algorithms=tuple(map(list_algorithm, registry.names("algorithms"))))


def list_algorithm(name: str) -> report.Listed:
    """Describe one registered algorithm; for a broken package the error replaces everything else."""
    try:
        return _describe(resolve_setting(name, {}))
    except Exception as error:  # the other algorithms of the list are no worse for it
        failure = explain(error)
        if failure.code == INTERNAL:
            raise
        return report.Listed(
            name=name, title="", source="", model=None, claim=None, parameters=(), choices=(), agent=False,
            error=failure.message,
        )  # fmt: skip


def _describe(setting: Chosen) -> report.Listed:
    algorithm, declaration = setting.algorithm, setting.declaration
    return report.Listed(
        name=algorithm.name,
        title=algorithm.title,
        source=algorithm.source,
        model=declaration.model if declaration else None,
        claim=declaration.claim_words if declaration else None,
        parameters=tuple(
            report.ListedParameter(name=p.name, default=str(p.default), kind=p.kind, meaning=p.meaning)
            for p in (*(declaration.parameters if declaration else ()), *algorithm.options)
        ),
        choices=tuple(
            report.ListedChoice(name=c.name, readings=c.ways, default=c.ways[0], meaning=c.meaning)
            for c in algorithm.readings
        ),
        agent=algorithm.runs,
        constants=_constants(algorithm),
        paper=None if algorithm.paper is None else algorithm.paper.title,
    )


def _constants(algorithm: Algorithm) -> tuple[report.AgentConstant, ...]:
    """The agent's options, and the readings by which its presets differ, with their values in both presets."""
    if not algorithm.runs:
        return ()
    named = [(p.name, str(p.default), p.meaning) for p in algorithm.options]
    named += [(r.name, r.ways[0], r.meaning) for r in algorithm.readings if r.name in algorithm.printed]
    return tuple(
        report.AgentConstant(name=name, practical=usual, paper=algorithm.printed.get(name, usual), meaning=meaning)
        for name, usual, meaning in named
    )


def show(setting: Chosen) -> report.Shown:
    """A declaration in words and LaTeX, with the derivation of its cost line by line."""
    declaration, composed = setting.declared, setting.priced.account
    derivation = tuple(map(_step, composed.derivation))
    lines = [
        r"\begin{align*}",
        *(rf"  &\text{{{step.where}:}}\ {_equation(step)} \\" for step in derivation),
        r"\end{align*}",
    ]
    return report.Shown(
        name=declaration.name,
        title=declaration.title,
        source=declaration.source,
        model=declaration.model,
        relation=declaration.relation.words,
        unit=declaration.unit(setting.values).to_dict(),
        releases=tuple(_release(one, setting.values) for one in declaration.joined),
        claim=declaration.claim_and_source,
        claim_latex=declaration.claim.guarantee.latex(),
        latex="\n".join(lines),
        derivation=derivation,
        trends=_trends(composed),
        constants=_constants(setting.algorithm),
        origin=declaration.origin,
        statements=declaration.claim.statements,
        conformance=tuple(
            report.ConformanceLine(line=one.number, says=one.says, code=one.code, here=one.standing)
            for one in setting.algorithm.conformance
        ),
    )


def _release(one: Procedure, values: Mapping[str, Fraction]) -> report.ShownRelease:
    facts, table = one.facts, one if is_additive(one) else None
    return report.ShownRelease(
        name=one.name,
        statistic=table.statistic.name if table else facts.output,
        latex=facts.latex,
        shape=tuple(table.statistic.shape(values)) if table else (),
        mechanism=facts.words,
        schedule=facts.schedule,
        users=one.users or None,
        stated=str(table.stated.value) if table and table.stated else None,
        source=facts.source,
        preconditions=facts.preconditions,
    )


def _step(line: DerivationLine) -> report.DerivationStep:
    return report.DerivationStep(
        rule=line.rule,
        theorem=line.theorem,
        where=line.where,
        symbol=line.symbol,
        text=line.note,
        inputs=tuple(
            report.StepInput(symbol=symbol, value=str(value), latex=f"{symbol} = {value.latex()}")
            for symbol, value in line.inputs
        ),
        latex=f"{line.symbol} = {line.result.latex()}",
        mathml=line.result.mathml(),
        result=str(line.result),
    )


def _trends(composed: Account) -> tuple[report.CostTrend, ...]:
    """Trend of the composed cost in each parameter; empty if the cost is infinite."""
    cost = composed.rho if composed.pure is None else composed.pure
    if cost.infinite:
        return ()
    parameters = composed.declaration.parameters
    moves = ((p.name, monotone(cost, p.name, parameters, most=_SHOWN_POINTS)) for p in parameters)
    return tuple(report.CostTrend(parameter=name, trend=m.trend, method=m.method) for name, m in moves)


def _equation(step: report.DerivationStep) -> str:
    """A line of the derivation in LaTeX: the result, followed by its inputs."""
    given = r",\ ".join(item.latex for item in step.inputs)
    return step.latex + (rf"\quad\text{{from}}\quad {given}" if given else "")


def price_releases(setting: Chosen, delta: float, *, full: bool = False) -> report.Budget:
    """Cost of the declared releases, release by release and together, at δ.

    Args:
        setting: The algorithm at its parameters.
        delta: δ at which ε is reported.
        full: Add δ against ε for a plot, and a second opinion of dp-accounting on Gaussian jobs.

    Raises:
        PrivcheckError: The second opinion contradicts ours.
    """
    declaration, values = setting.declared, setting.values
    composed, numbers = setting.priced.account, setting.priced.numbers
    methods = list(numbers.methods(delta))
    if full and (opinion := second_opinion(numbers, delta)) is not None:
        methods.append(opinion)
    return report.Budget(
        algorithm=declaration.name,
        parameters=exact_parameters(setting),
        relation=declaration.relation.words,
        unit=setting.setting.protected.to_dict(),
        model=declaration.model,
        releases=(
            *(_price_release(cost, values) for cost in composed.costs),
            *(_price_procedure(one, values) for one in composed.procedures),
        ),
        guarantee=report.TotalCost(
            epsilon=finite(methods[0].epsilon),
            delta=delta,
            rho=finite(numbers.rho),
            mu=finite(numbers.mu),
            pure_epsilon=finite(numbers.pure),
        ),
        methods=tuple(methods),
        curve=_curve(setting, delta) if full else None,
    )


def _price_release(cost: ReleaseCost, values: Mapping[str, Fraction]) -> report.BudgetRelease:
    release, moved = cost.release, cost.sensitivity
    quietest = release.quietest(values)
    return report.BudgetRelease(
        name=release.name,
        count=int(release.schedule.times.number(values)),
        schedule=release.schedule.words,
        users=release.users or None,
        sensitivity=report.ReleaseSensitivity(
            l1=moved.l1.number(values, rounding="up"),
            l2=moved.l2.number(values, rounding="up"),
            charged=str(getattr(moved, release.mechanism.law.norm)),
            reason=moved.reason,
        ),
        mechanism=release.mechanism.words,
        std=release.mechanism.std.number(quietest, rounding="up"),
        cost=report.ReleasePrice(
            rho=finite(cost.rho.number(quietest, rounding="up")),
            pure_epsilon=None if cost.pure is None else cost.pure.number(quietest, rounding="up"),
            expression=_price(cost),
        ),
    )


def _price_procedure(one: ProcedureCost, values: Mapping[str, Fraction]) -> report.BudgetRelease:
    procedure, facts, cost = one.procedure, one.procedure.facts, one.cost
    return report.BudgetRelease(
        name=procedure.name,
        count=int(facts.rounds.number(values)),
        schedule=facts.schedule,
        users=procedure.users or None,
        sensitivity=report.ReleaseSensitivity(
            l1=cost.sensitivity.l1.number(values, rounding="up"),
            l2=cost.sensitivity.l2.number(values, rounding="up"),
            charged=str(cost.charged),
            reason=cost.sensitivity.reason,
        ),
        mechanism=facts.words,
        std=procedure.std(values),
        cost=report.ReleasePrice(
            rho=finite(cost.rho.number(values, rounding="up")),
            pure_epsilon=None if cost.pure is None else cost.pure.number(values, rounding="up"),
            expression=str(cost.rho if cost.pure is None else cost.pure),
        ),
    )


def _price(cost: ReleaseCost) -> str:
    if cost.rho.infinite and cost.release.mechanism.law.shuffled:
        return f"{cost.charged.l1} counters of the noise's law"
    return str(cost.rho if cost.pure is None else cost.pure)


def calibrate_noise(setting: Chosen, *, epsilon: float, delta: float) -> report.CalibratedNoise:
    """The least noise for (ε, δ), release by release, beside the declared noise.

    Args:
        setting: The algorithm at its parameters.
        epsilon: Target ε.
        delta: Target δ.
    """
    least = needed_noise(setting.priced, epsilon=epsilon, delta=delta)
    return report.CalibratedNoise(
        algorithm=setting.algorithm.name,
        parameters=exact_parameters(setting),
        unit=setting.setting.protected.to_dict(),
        target=report.CalibrationTarget(epsilon=epsilon, delta=delta),
        releases=least.releases,
        guarantee=report.Certified(
            epsilon=least.epsilon, delta=delta, method=least.method, direction="upper", tolerance=least.tolerance
        ),
        gaussian=least.gaussian,
        batches=least.batches,
    )


def _curve(setting: Chosen, delta: float) -> report.DeltaCurve:
    """δ against ε for the accountant and for the claim, from ε = 0 to where the accountant's δ is about 1e-10."""
    numbers = setting.priced.numbers
    claim = setting.declared.claim.guarantee
    furthest = numbers.epsilon(1e-10)
    if not math.isfinite(furthest):  # no ε holds at such a δ: as far as the claim reaches
        furthest = claim_epsilon(claim, setting.values, 0.5) * 2
    at = 0.0 if isinstance(claim, PureDP) else delta
    epsilons = np.linspace(0.0, furthest * 1.05, 61).tolist()
    return report.DeltaCurve(
        epsilon=tuple(epsilons),
        delta_upper=tuple(numbers.delta(e) for e in epsilons),
        delta_claim=tuple(claim_delta(claim, setting.values, e) for e in epsilons),
        claimed=finite(claim_epsilon(claim, setting.values, at)),
        claimed_at=at,
    )


def verify_claim(setting: Chosen, *, certified: bool = True) -> report.Verified:
    """The verdict on the claim, with the findings and the witness.

    Args:
        setting: The algorithm at its parameters.
        certified: Whether to write its certificate and have it checked, in a process of its own.
    """
    verification = judge(setting.priced)
    return report.take_fields(
        report.Verified,
        verification,
        parameters=exact_parameters(setting),
        origin=setting.declared.origin,
        unit=verification.unit.to_dict(),
        unit_words=verification.unit.words,
        findings=tuple(
            report.take_fields(report.VerdictFinding, one, witness=_witness(one.witness, most=_SHOWN_STEPS))
            for one in verification.findings
        ),
        witness=_witness(verification.witness),
        sentence=sentence(verification),
        certificate=certificate_of(setting.priced).brief if certified else None,
    )


def verify_each() -> Iterator[report.Verified | report.Unverified]:
    """Yield the verdict on every registered declaration at its defaults, each as soon as it is found.

    An algorithm of a broken package is one result among the others; an internal error is raised.
    """
    for name in registry.names("algorithms"):
        try:
            setting = resolve_setting(name, {})
            if setting.declaration is not None:
                yield verify_claim(setting)
        except Exception as error:
            failure = explain(error)
            if failure.code == INTERNAL:
                raise
            yield report.Unverified(algorithm=name, error=failure.error, message=failure.message)


def verify_all() -> report.AllVerified:
    """The verdict on every registered declaration, at its defaults."""
    return join_verdicts(verify_each())


def join_verdicts(found: Iterable[report.Verified | report.Unverified]) -> report.AllVerified:
    """Join the results of `verify_each`."""
    every = tuple(found)
    return report.AllVerified(
        results=tuple(one for one in every if isinstance(one, report.Verified)),
        errors=tuple(one for one in every if isinstance(one, report.Unverified)),
    )


def sentence(verification: Verification) -> str:
    """The verdict as a sentence."""
    up, low = ratio(verification.upper_ratio, rounding="up"), ratio(verification.lower_ratio, rounding="down")
    known = f"the worst known pair loses {low} of it" if verification.witness else "no pair with any loss is known"
    if verification.verdict == "holds":
        scope = "; no more than the claim for any parameters, proved" if verification.method == "proved" else ""
        said = f"The releases cost at most {up} of the claim, and {known}{scope}."
        return (
            f"{said} This relies on the stated facts of {', '.join(verification.given)}."
            if verification.given
            else said
        )
    if verification.verdict == "fails":
        if math.isinf(verification.lower_ratio):
            return "Two neighbouring datasets are distinguished beyond every ε: no finite ε bounds these releases."
        return f"Two neighbouring datasets lose {low} times the claim; the accountant's bound is {up} times the claim."
    return f"The accountant's bound is {up} times the claim and {known}: not decided."


def _witness(witness: Witness | PlainWitness | None, *, most: int | None = None) -> PlainWitness | None:
    """The witness in plain values; a pair longer than `most` steps is omitted (`privcheck.verify` has it)."""
    if not isinstance(witness, Witness):
        return witness
    steps = max((u.horizon for u in witness.pair if isinstance(u, Trajectories | Regressors)), default=0)
    return PlainWitness(
        words=witness.words,
        loss=witness.loss,
        changes={name: Change(l1=l1, l2_squared=l2) for name, (l1, l2) in witness.changes.items()},
        group=witness.group or None,
        pair=None if most is not None and steps > most else tuple(_user(user) for user in witness.pair),
    )


def _user(user: object) -> dict[str, Any] | str | None:
    if isinstance(user, Trajectories):
        return {
            "states": user.states[0].tolist(),
            "actions": user.actions[0].tolist(),
            "rewards": user.rewards[0].tolist(),
        }
    if isinstance(user, Regressors):
        kinds = {"vectors": user.vectors, "targets": user.targets, "weights": user.weights}
        return {kind: {name: c[0].tolist() for name, c in columns.items()} for kind, columns in kinds.items()}
    return None if user is None else str(user)


def finite(value: float | None) -> float | None:
    """The number if it is finite, otherwise None: a guarantee of ∞ is no guarantee."""
    return value if value is not None and math.isfinite(value) else None
