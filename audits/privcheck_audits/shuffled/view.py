"""The releases view of declarations behind a shuffler: a lower bound on ε from the messages that leave it.

Two attacks, each the sharpest for one way in which a shuffled sum can fail, chosen from the known law before anything
is drawn:

* the number of ones of every counter that the pair moves. One user hardly moves it (ε of some hundredths), so that as
  many users as make ε about 1.5 are moved alike, and group privacy says what that means for one;
* the multiset of integer messages, of one user. An output that is possible on D and impossible on D′ refutes every ε
  as soon as it is more likely than δ.

Users draw fewest noise bits at H = 1, where a message shows its sender first: that instance is attacked too, with half
of the runs and half of α.

There is no policy view: the claim of the shuffle model is about what leaves the shuffler, of which any policy is
computed, and a score of policies could only see less than the exact likelihood ratio sees here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial

from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.results import AuditRequest, AuditResult
from privcheck_audits.engine.blocks import BLOCK, Tally, blocks
from privcheck_audits.engine.prefixes import Prefixes
from privcheck_audits.plan.common import Evidence, Limits, check, elsewhere, limits, place_blocks, shares
from privcheck_audits.plan.runner import Outcome, run_test
from privcheck_audits.show.pictures import of_parts
from privcheck_audits.show.trade_offs import pilot_marks
from privcheck_audits.shuffled.attacks import Attack
from privcheck_audits.shuffled.guesses import SHOWN, Aim, Messages, MessageTally, aim, scores


def releases(request: AuditRequest, running: Declaration | None = None) -> AuditResult:
    """Returns the lower bound on the loss of the messages that leave the shuffler.

    Args:
        request: What is asked.
        running: What the code really sends, where that is not what was declared (a mutant, whose blocks are not kept).
            The bound is compared with what the request's declaration claims and costs.

    Raises:
        ParameterError: A number of the request is out of its range, or nothing can be attacked.
        AuditError: A trial's score is not finite.
    """
    check(request)
    declaration = running or request.declaration
    if why := declines(declaration):
        raise ParameterError(f"{declaration.name} cannot be audited: {why}", name="declaration")
    began = time.perf_counter()
    values = instances(request.values) if request.trials > 1 else (request.values,)
    parts = shares(request, values)
    results = [_attack(part, declaration, stream=number) for number, part in enumerate(parts)]
    best = results[0]  # the verdict is about the parameters that were asked for
    spent = sum(result.seconds for result in results)
    evidence = {**best.evidence, "trials_per_second": 2 * sum(part.trials for part in parts) / spent}
    if best.verdict != "violation" and (other := next((r for r in results if r.verdict == "violation"), None)):
        evidence |= elsewhere(other, f"H = {other.evidence['H']} (asked: H = {request.values['H']})")
    for at, result in zip(values, results, strict=True) if len(results) > 1 else ():
        lower = result.epsilon_lower or 0.0
        evidence[f"epsilon_lower_at_H_{at['H']}"] = lower if math.isfinite(lower) else "inf"
    return replace(
        best,
        trials=request.trials,
        confidence=request.confidence,
        evidence=evidence,
        seconds=time.perf_counter() - began,
        history=of_parts(best.history, len(values)),
    )


def instances(values: Mapping[str, Fraction]) -> tuple[Mapping[str, Fraction], ...]:
    """Returns the parameters to attack: the given ones, and with H = 1."""
    return (values, {**values, "H": Fraction(1)}) if values.get("H", 1) > 1 else (values,)


def declines(declaration: Declaration) -> str:
    """Returns why a declaration cannot be audited by this plan; empty where it can."""
    if declaration.model != "shuffle":
        return "nothing of it is behind a shuffler"
    if shared := declaration.shared_draws:
        return f"{', '.join(shared)} share their noise bits, and expected are users who draw anew for every counter"
    return ""


def _attack(request: AuditRequest, running: Declaration, *, stream: int) -> AuditResult:
    bound = limits(request, request.values)
    chosen = aim(request, running, least=bound.least)
    groups, alone = chosen.attack.groups, chosen.attack.users == 1
    marks = pilot_marks(partial(scores, groups), seed=request.seed) if alone else ()  # the claim's curve is of one user
    place = place_blocks(request, MessageTally, Tally, keep=running is request.declaration)
    work = Messages(groups=groups, plan=chosen.plan, seed=request.seed, thresholds=marks)

    def count(seen: Prefixes[MessageTally]) -> MessageTally:
        return seen.total(blocks(work, 2 * request.trials, stream=stream, block=BLOCK, **place))

    return run_test(request, count, partial(_read, request, chosen, bound), bound=bound)


def _read(request: AuditRequest, chosen: Aim, bound: Limits, counted: MessageTally) -> Outcome:
    attack, lower = chosen.attack, chosen.bound(counted)
    best = chosen.bound_by_guesses(counted, chosen.charge(lower))
    refuted = bound.name_refuted(lower)
    evidence: Evidence = {
        "errors": best.flip.errors,
        "guesses": best.flip.guesses,
        "revealed": best.flip.coins * best.flip.delta,
        "attempts": len(chosen.plan.shares),
        "error_rate_of_all_guesses": counted.tally.errors / counted.runs,
        "runs_on_first": counted.on_first,
        "impossible_under_second": counted.shown,
        "probability_of_impossible": attack.shown,
        "looked_at": "every integer message" if attack.integers else "the number of ones of each counter",
        "users_moved_alike": attack.users,
        "counters": attack.counters,
        "batch": attack.batch,
        "noise_bits_a_user": attack.noise_bits[0],
        "probability_of_a_one": attack.noise_bits[1],
        **{name: str(request.values[name]) for name in ("H", "S", "A", "K") if name in request.values},
        "refuted": refuted,
        "meaning": _explain(request, attack, counted, refuted, lower),
    }
    return Outcome(
        violated=refuted != "nothing",
        lower=lower,
        evidence=evidence,
        method=_method(chosen),
        witness=attack.words,
        reachable=chosen.limit(counted.runs),
        runs=counted.runs,
        tally=counted.tally,
        bound=partial(chosen.bound_up_to, epsilon=lower) if math.isfinite(lower) else None,
        limit=partial(chosen.limit_up_to, epsilon=lower),
        pair=attack.pair,
    )


def _method(chosen: Aim) -> str:
    flip = (
        "coin flip: a hidden fair bit guessed by the exact log-likelihood ratio of the messages on the "
        f"{len(chosen.plan.shares)} shares of runs with the largest ratio, fixed in advance, α divided among them"
    )
    if chosen.attack.users > 1:
        return f"{flip}; {chosen.attack.users} users moved alike, and by group privacy what that says of one"
    if not chosen.shows:
        return flip
    return (
        "exact discrete: what cannot be sent on D′ by the known law refutes every ε if it is sent on D with a "
        f"probability above δ ({SHOWN:g} of α); for the rest {flip}"
    )


def _explain(request: AuditRequest, attack: Attack, counted: MessageTally, refuted: str, lower: float) -> str:
    """Returns what was seen where, in words."""
    sizes = ", ".join(f"{name} = {request.values[name]}" for name in ("H", "S", "A", "K") if name in request.values)
    at = f"{f'at {sizes}, ' if sizes else ''}in "
    at += f"a batch of {attack.batch} users, " if attack.batch > 1 else "a batch whose noise bits are dealt out, "
    if math.isinf(lower):
        m = attack.noise_bits[0]
        sent, told = "a number of ones", "so that the sum alone tells the user's bit"
        if attack.integers:
            sent = f"a message {m + 1} where nobody else's bit is 1, or a message 0 where everybody else's is,"
            told = "so that the message is the one user's and tells that user's bit"
        against = f"; refuted: the {refuted}" if refuted != "nothing" else ""
        return (
            f"{at}{sent} that nobody can send on D′ left the shuffler in {counted.shown} of {counted.on_first} runs on "
            f"D, {told}: no ε holds at δ = {request.delta:g}{against}"
        )
    what = "every integer message" if attack.integers else "the number of ones"
    seen = f"{at}{what} of the {attack.counters} counters that move was looked at"
    if attack.users == 1:
        return seen
    return (
        f"{seen}, with {attack.users} users moved alike: one alone hardly shows, and by group privacy what so many "
        "show bounds the loss of one"
    )
