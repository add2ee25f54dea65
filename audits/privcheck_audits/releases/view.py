"""The releases view: a lower bound on ε from the declared releases. No agent is run.

The noisy statistics of any declaration with additive noise are attacked at the witness of verification (`releases`). If
the requested sizes would hide everything, the sizes of the algorithm's audit instance are attacked (`visible`); outputs
that share their noise are attacked by the difference of two of them (`audit_differences`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Noise
from privcheck.runtime.registry import Algorithm, RegisteredView
from privcheck.runtime.results import AuditMethod, AuditRequest, AuditResult
from privcheck.terms.guarantees import ZCDP
from privcheck.verification import Witness, worst_witness
from privcheck_audits.bounds import GuessPlan, RankedBound, bound_at_ranks, guess_plan
from privcheck_audits.engine.blocks import BLOCK, Tally, blocks, tally
from privcheck_audits.engine.outputs import hear_samplers
from privcheck_audits.engine.scores import MovedGroup, Scored, draw_hidden_bits
from privcheck_audits.engine.sequential import Prefixes
from privcheck_audits.plan.pictures import of_parts
from privcheck_audits.plan.reachable import reachable_curve
from privcheck_audits.plan.requests import (
    METHODS,
    Evidence,
    Limits,
    check,
    limits,
    on_curve,
    place_blocks,
    refuse_unfit,
    releases_meaning,
    shares,
    size_note,
    unfit,
)
from privcheck_audits.plan.runner import Outcome, run_test
from privcheck_audits.releases.anytime import audit_until_refuted
from privcheck_audits.releases.attacks import AttackedInstance, RunAttack, coin_flip, curve
from privcheck_audits.releases.canaries import worst_canary
from privcheck_audits.releases.divergences import clopper_pearson, divergence, with_coin_flip
from privcheck_audits.releases.groups import group, one_run
from privcheck_audits.shuffled import view as shuffled

_MANY: Final = 200  # Laplace coordinates, whose extreme has probability 2^−many
_ONE_INSTANCE: Final[Mapping[AuditMethod, RunAttack]] = {
    "clopper-pearson": clopper_pearson,
    "sequential": audit_until_refuted,
    "one-run": one_run,
    "group": group,
}


def releases(request: AuditRequest) -> AuditResult:
    """Lower bound on the loss of the releases, from likelihood ratios at the worst canary.

    The method "auto" judges all-Gaussian releases at δ > 0 by the coin flip on the curve; anything else by the coin
    flip at fixed ranks, for which a small instance is audited too, with half of the runs and half of α: over many
    Laplace coordinates the extreme of the likelihood ratio is too rare to occur, whatever the loss. A claim of ρ-zCDP
    that is not judged on the curve is judged in its own unit too, from the same runs, and α is halved once more. On the
    curve that would add nothing: there the coin flip bounds ρ more sharply than the divergence does.

    Raises:
        ParameterError: A number of the request is out of range, or the method does not fit.
        AuditError: A trial's score is not finite.
    """
    check(request, METHODS)
    refuse_unfit(request, unfit(request, limits(request, request.values)))
    began = time.perf_counter()
    attack, attacked = _plan(request)
    parts = [
        attack(
            AttackedInstance(
                request=asked,
                canary=worst_canary(asked.priced),
                bound=limits(request, asked.values),
                stream=number,
            )
        )
        for number, asked in enumerate(shares(request, attacked))
    ]
    used, best = max(zip(attacked, parts, strict=True), key=lambda one: _strength(one[1]))
    runs = sum(_runs(result) for result in parts)
    spent = sum(result.seconds for result in parts)
    evidence: Evidence = {**best.evidence, **size_note(request.values, used), "runs": runs}
    evidence["trials_per_second"] = runs / spent
    refuted = str(best.evidence["refuted"])
    evidence["meaning"] = releases_meaning(refuted, request.declaration, reachable=best.reachable)
    for values, result in zip(attacked, parts, strict=True) if len(parts) > 1 else ():
        evidence[f"epsilon_lower_at_H_{values['H']}"] = result.epsilon_lower or 0.0
    return replace(
        best,
        trials=request.trials if len(parts) > 1 else best.trials,
        confidence=request.confidence,
        evidence=evidence,
        seconds=time.perf_counter() - began,
        history=of_parts(best.history, len(parts)),
    )


def _plan(request: AuditRequest) -> tuple[RunAttack, list[Mapping[str, Fraction]]]:
    """Test of a request, and its instances: runs and α are divided among them."""
    method = request.method
    if method == "curve" or (method == "auto" and on_curve(request)):
        return curve, [request.values]
    if method == "divergence":
        return divergence, [request.values]  # divergences add up over coordinates: many hide nothing
    attacked = instances(request)
    if method in _ONE_INSTANCE:
        return _ONE_INSTANCE[method], attacked[-1:]
    zcdp = method == "auto" and isinstance(request.declaration.claim.guarantee, ZCDP)
    return with_coin_flip if zcdp else coin_flip, attacked[: request.trials]


def instances(request: AuditRequest) -> list[Mapping[str, Fraction]]:
    """Parameters to attack: the given ones, unless they have too many coordinates, and a small instance.

    The small one has H = 1 or 2 (the one with the larger loss over the claim) and two episodes, so that a tree has one
    node and a violation is not hidden behind coordinates that must all be extreme at once. Gaussian coordinates hide
    nothing: their likelihood ratio is that of one number.
    """
    if (
        "H" not in request.values
        or request.declaration.others
        or all(r.mechanism.law.gaussian for r in request.declaration.noisy)
    ):
        return [request.values]
    short = {"K": Fraction(2)} if "K" in request.values else {}
    small = [{**request.values, **short, "H": Fraction(h)} for h in (1, 2) if h <= request.values["H"]]
    best = max(small, key=lambda v: (round(_share(request, v), 9), -v["H"]))
    whole = worst_canary(request.priced)
    if (
        sum(group.change.size for group in whole.groups if isinstance(group, MovedGroup)) > _MANY
        or best == request.values
    ):
        return [best]
    return [request.values, best]


def _share(request: AuditRequest, values: Mapping[str, Fraction]) -> float:
    claimed = limits(request, values).claimed
    return worst_canary(request.priced.at(values)).pure / claimed if claimed else 0.0


def _strength(result: AuditResult) -> tuple[bool, float]:
    """Rank of a result: a violation first, then the bound divided by its limit."""
    least = Limits(upper=result.epsilon_upper, claimed=result.epsilon_claimed).least
    return result.verdict == "violation", (result.epsilon_lower or 0.0) / max(1e-300, least)


def _runs(result: AuditResult) -> int:
    runs = result.evidence.get("runs")
    return runs if isinstance(runs, int) else 2 * result.trials


def visible(request: AuditRequest, algorithm: Algorithm) -> AuditRequest:
    """Request at the instance's sizes, if the releases view could not show anything at the requested sizes.

    DP-LSVI-UCB++ loses 6·10⁻⁶ of its claim at H = 20, and half of it at H = 1, which the same claim covers.
    """
    if request.view != "releases" or request.method not in {"auto", "curve"} or not on_curve(request):
        return request
    mu = request.priced.numbers.mu
    if mu is None or request.declaration.shared_draws:
        return request
    reachable = reachable_curve(mu, 2 * request.trials, alpha=1 - request.confidence, delta=request.delta)
    if reachable > 0:
        return request
    return replace(request, setting=request.setting.at(small(request.values, algorithm)))


def small(values: Mapping[str, Fraction], algorithm: Algorithm) -> Mapping[str, Fraction]:
    """Parameters with the sizes of the algorithm's instance."""
    sizes = algorithm.instance.sizes
    return {**values, **{name: Fraction(size) for name, size in sizes.items() if name in values}}


_CERTAIN: Final = 1_000.0  # nats: the score of a difference that only one neighbour can produce


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Differences:
    """A block of trials: two outputs with the same draw, and the neighbour that their difference reveals."""

    noise: Noise
    change: float
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        secret = draw_hidden_bits(rng, runs)
        drawn = self.noise.draw(rng, runs)
        with_user: NDArray[np.float64] = np.where(secret, self.change, 0.0) + drawn
        difference = with_user - drawn  # what the outputs themselves are: the draw is in both
        nearer = np.abs(difference - self.change) < np.abs(difference)
        score = np.where(nearer, _CERTAIN, -_CERTAIN)
        scored = Scored(score=score, secret=secret)
        return tally(scored, guess_plan(), first=first, seed=self.seed, thresholds=(0.0,))


def audit_differences(request: AuditRequest) -> AuditResult:
    """Audit two outputs with the same draw of noise, by their difference.

    Raises:
        ParameterError: A number of the request is out of range.
    """
    check(request, ("auto", "coin-flip"))
    began = time.perf_counter()
    declaration, values = request.declaration, request.values
    witness = worst_witness(request.priced)
    name, change, noise = _choose_release(request, witness)
    bound, alpha, plan = limits(request, values), 1 - request.confidence, guess_plan()
    work = _Differences(noise=noise, change=change, seed=request.seed)

    def count(seen: Prefixes[Tally]) -> Tally:
        return seen.total(blocks(work, 2 * request.trials, stream=0, block=BLOCK, **place_blocks(request, Tally)))

    def guess(some: Tally) -> RankedBound:
        return bound_at_ranks(
            some.ranked_errors, some.ranked_guesses, plan, runs=some.runs, alpha=alpha, delta=request.delta
        )

    def limit(runs: int) -> float:
        return _flawless(runs, plan, alpha=alpha, delta=request.delta)

    def read(counted: Tally) -> Outcome:
        best = guess(counted)
        refuted = bound.name_refuted(best.epsilon)
        evidence: Evidence = {
            "errors": best.flip.errors,
            "guesses": best.flip.guesses,
            "attacked": name,
            "change": change,
            "noise_scale": noise.scale,
            "refuted": refuted,
            "meaning": releases_meaning(refuted, declaration, reachable=None),
        }
        return Outcome(
            violated=refuted != "nothing",
            lower=best.epsilon,
            evidence=evidence,
            method=f"coin flip: two outputs of {name} with the same draw of noise, subtracted",
            witness=witness.words if witness is not None else "",
            reachable=limit(counted.runs),
            runs=counted.runs,
            tally=counted,
            bound=lambda some: guess(some).epsilon,
            limit=limit,
            pair=None if witness is None else witness.pair,
        )

    return run_test(request, count, read, bound=bound, began=began)


def _flawless(runs: int, plan: GuessPlan, *, alpha: float, delta: float) -> float:
    """Bound from guesses that are never wrong."""
    guesses = plan.ranks(runs)
    return bound_at_ranks((0,) * len(guesses), guesses, plan, runs=runs, alpha=alpha, delta=delta).epsilon


def _choose_release(request: AuditRequest, witness: Witness | None) -> tuple[str, float, Noise]:
    """Release with leaking outputs, the largest entry of its change by the witness, and its noise."""
    declaration, values = request.declaration, request.values
    leaking = declaration.shared_draws
    if witness is None:
        return leaking[0], 0.0, declaration.release(leaking[0]).mechanism.at(values).coordinates()
    moved = {name: declaration.release(name).moved(witness.pair, values).change for name in leaking}
    name = max(moved, key=lambda key: float(np.abs(moved[key]).max(initial=0.0)))
    change = moved[name]
    largest = float(change[np.abs(change).argmax()]) if change.size else 0.0
    return name, largest, declaration.release(name).mechanism.at(values).coordinates()


_FEWEST: Final = 10_000  # runs of a procedure under each neighbour
_ROUNDS: Final = 50_000_000  # of a procedure under each neighbour, in all


def audit_releases(request: AuditRequest) -> AuditResult:
    """Audit the releases: shuffled messages, outputs that share their noise by their difference, or noisy values.

    Side outputs of user-written functions (prints, logs, warnings, files) count as released.

    Raises:
        ParameterError: A number of the request is out of range, or there is nothing to attack.
        AuditError: A trial's score is not finite.
    """
    if behind_a_shuffler(request.declaration):
        result = shuffled.releases(request)
    else:
        result = audit_differences(request) if request.declaration.shared_draws else releases(request)
    return _add_said(result, request)


def why_not(declaration: Declaration) -> str:
    """Reason why the releases cannot be audited; empty if they can."""
    return shuffled.declines(declaration) if behind_a_shuffler(declaration) else ""


def behind_a_shuffler(declaration: Declaration) -> bool:
    """Whether a release is the output of a shuffler."""
    return any(r.mechanism.law.shuffled for r in declaration.noisy)


def run(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Audit an algorithm's releases, at the sizes of its audit instance if the requested sizes would show nothing.

    Raises:
        ParameterError: A number of the request is out of range, or there is nothing to attack.
        AuditError: A trial's score is not finite.
    """
    if algorithm.instance.world is not None or (algorithm.online is None and algorithm.policies is not None):
        asked = visible(request, algorithm)
        result = audit_releases(asked)
        return replace(result, evidence={**result.evidence, **size_note(request.values, asked.values)})
    return audit_releases(request)


def _add_said(result: AuditResult, request: AuditRequest) -> AuditResult:
    """Add findings about side outputs of user-written functions to a result."""
    if (said := hear_samplers(request.declaration, request.values, request.seed)) is None:
        return result
    told = f"the side output of {said.name}"
    where = ", ".join(said.places)
    if said.words:
        why = f"{told} depends on data that no release covers: {where}"
        witness = f"{said.words}; {why}"
        return replace(result, verdict="violation", witness=witness, evidence={**result.evidence, "refuted": why})
    if result.verdict == "violation":
        return result
    doubt = f"{told} is not known to be a function of the output: {where}; let it be empty, or only public facts"
    return replace(result, verdict="undecided", evidence={**result.evidence, "doubt": doubt})


def _trials(algorithm: Algorithm) -> int:
    """Default number of trials: a million, fewer for procedures of many rounds, which are drawn one by one."""
    declaration = None if algorithm.declare is None else algorithm.declare({})
    if declaration is None or not declaration.others:
        return 1_000_000
    rounds = max(int(one.facts.rounds.number(declaration.values())) for one in declaration.others)
    return max(_FEWEST, min(100_000, _ROUNDS // max(1, rounds)))


VIEW = RegisteredView(
    name="releases",
    place=0,
    asks="The releases, on a worst-case pair of neighbours: how well does the likelihood ratio distinguish the two?",
    leaves_open="Other neighbours, another score or more runs may show a larger loss, and a bug that costs less than "
    "the gap between the bound and the claim is not detected.",
    trials=_trials,
    lacks=lambda _, declaration: why_not(declaration),
    run=run,
)
