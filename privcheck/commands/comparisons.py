"""Comparison of several algorithms in one unit: every guarantee as ε at one δ, rounded up in the conversion.

The ε of a comparison is the accountant's for the declared releases, against which the run's ledger was checked; the
claim's own ε is reported beside it, converted to the same δ.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

from privcheck.accounting import claim_epsilon
from privcheck.commands.declarations import finite, sentence
from privcheck.commands.provenance import exact_parameters, state_claim, versions
from privcheck.commands.settings import Chosen, parse_delta
from privcheck.reports.values import MadeBy, PricedClaim, Ran, RanOnline, Standing, take_fields
from privcheck.reports.values.runs import WITHOUT_NOISE
from privcheck.terms.guarantees import claimed_delta
from privcheck.verification import judge

_USUAL = 1e-5  # where no claim names a δ above 0


def common_delta(settings: Sequence[Chosen], given: str | float | Fraction | None = None) -> float:
    """The δ of a comparison: the given one, else the smallest positive δ of the claims, else 1e-5.

    At the smallest δ a claim with a larger δ has no finite ε of its own, so that no claim is made to look better.

    Args:
        settings: The algorithms.
        given: The δ that the caller gave; None for the default.

    Raises:
        ParameterError: The given δ is not a number in [0, 1).
    """
    private = [setting for setting in settings if setting.declaration is not None]
    if given is not None:
        return parse_delta(given, private[0]) if private else _USUAL
    named = [(claimed_delta(one.declared.claim.guarantee), one.values) for one in private]
    levels = [delta.number(values, rounding="nearest") for delta, values in named if delta is not None]
    return min((level for level in levels if level > 0), default=_USUAL)


def price_claim(setting: Chosen, delta: float) -> PricedClaim | None:
    """Guarantee of an algorithm as ε at δ, with the verdict on its claim; None if it is not private.

    Args:
        setting: The algorithm, with the noise it draws.
        delta: δ of the comparison.
    """
    if setting.declaration is None:
        return None
    judged, charged = setting.judged, setting.charged  # the claim's own relation; that of the users at hand
    declaration, claim = judged.declared, judged.declared.claim
    verdict = judge(judged.priced)
    claimed = math.inf if claim.order_only else claim_epsilon(claim.guarantee, judged.values, delta)
    view = declaration.model if claim.joint is None else "joint" if verdict.joint == "follows" else "releases"
    return take_fields(
        PricedClaim,
        verdict,
        view=view,
        relation=charged.declared.relation.words,
        claim=state_claim(declaration.claim_words, exact_parameters(judged)),
        claimed=finite(claimed),
        epsilon=finite(charged.priced.epsilon(delta)),
        sentence=sentence(verdict),
    )


def stand(run: Ran | RanOnline, guarantee: PricedClaim | None) -> Standing:
    """Row of a run in a comparison: its value, optimum, share, twin and guarantee.

    Args:
        run: A run of an online agent, or of one that learns from data.
        guarantee: Guarantee of the algorithm; None if it is not private.
    """
    simulated = run.ledger is not None and run.ledger.noise.startswith("simulated")
    value: float | None
    optimum: float | None
    uniform: float | None
    if isinstance(run, RanOnline):
        regret, last = run.regret, run.curves.value
        value, std, optimum = last.mean[-1], None if last.std is None else last.std[-1], run.optimal_value
        uniform = None if regret.uniform is None else optimum - regret.uniform / run.episodes
        twin, twin_value, lost = regret.twin, regret.baseline_value, regret.share_of_uniform
    else:
        known = run.value
        value, std, optimum = known.mean, known.std, known.optimal
        uniform, lost = known.references.get("random"), run.gap.share_of_uniform
        twin, twin_value = None if known.baseline is None else f"{run.algorithm}{WITHOUT_NOISE}", known.baseline
    return Standing(
        algorithm=run.algorithm,
        guarantee=guarantee,
        simulated=simulated,
        value=value,
        std=std,
        replicates=run.replicates,
        optimum=optimum,
        uniform=uniform,
        share=None if value is None or optimum is None or optimum <= 0 else value / optimum,
        lost=lost,
        twin=twin,
        twin_value=twin_value,
        did_not_learn=run.did_not_learn,
    )


def made_by(command: Sequence[str], *, seed: int) -> MadeBy:
    """Provenance of a comparison: command, seed and package versions.

    Args:
        command: The command line or call.
        seed: Seed of the users' responses and of simulated noise.
    """
    python = ".".join(map(str, sys.version_info[:3]))
    return MadeBy(command=" ".join(command), seeds={"run": seed}, versions={"python": python, **versions()})
