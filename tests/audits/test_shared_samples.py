"""Audits of what leaves of one batch: the gallery's algorithms, and code that forgets that the batch is one.

Audits of what is correct have a confidence of 1 − 1e-9: a reseed could fail one of them with probability 1e-8 in all.
What is found is found by far, at the seeds written here.
"""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from privcheck import ApproxDP, PureDP, account, audit_mechanism
from privcheck import accounting as acc
from privcheck.commands.settings import resolve_setting
from privcheck.declare.releases import Release
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.gallery.one_batch import one_round
from privcheck_audits.releases.view import audit_releases

SURE = 1 - 1e-9
ACTOR = {"rate": "3/10", "rounds": "1", "d": "1", "B": "1"}
CLIPPING = {"rate": "1/10", "rounds": "1", "d": "1", "noise_multiplier": "1/3", "bit_noise": "1/4"}
CHOICE = {"rate": "1/10", "rounds": "1", "candidates": "2", "epsilon": "2"}


def setting(name, **sets):
    return resolve_setting(name, {key: str(value) for key, value in sets.items()})


def audited(name, sets, *, confidence, delta):
    chosen = setting(name, **sets)
    asked = Setting(declaration=chosen.declared, values=chosen.values)
    return audit_releases(
        AuditRequest(setting=asked, view="releases", delta=delta, trials=100_000, confidence=confidence, seed=0)
    )


@pytest.mark.parametrize(
    ("name", "sets", "delta"),
    [
        ("dp-actor-critic", {**ACTOR, "actor_noise": 1, "critic_noise": 1, "delta": "1/100"}, 1e-2),
        ("adaptive-clipping", {**CLIPPING, "delta": "1/100"}, 1e-2),
        ("choice-and-sum", CHOICE, 0.0),
    ],
)
def test_what_one_batch_costs_is_not_refuted_and_what_two_would_is(name, sets, delta):
    together = setting(name, **sets, priced="together")
    apart = dict(sets)
    if delta:  # the claim is a number: what the accountant says of one batch, and of a batch for each output
        certified = account(together.declared).at(together.values).epsilon(delta)
        sets = {**sets, "epsilon": Fraction(certified).limit_denominator(10**4) + Fraction(1, 10**4)}
        apart["epsilon"] = Fraction(_apart(together, delta)).limit_denominator(10**4)
    honest = audited(name, sets, confidence=SURE, delta=delta)
    assert honest.verdict == "consistent"
    assert honest.epsilon_lower <= honest.epsilon_upper
    forgetful = audited(name, {**apart, "priced": "apart"}, confidence=0.99, delta=delta)
    assert forgetful.verdict == "violation"


def _apart(given, delta):
    """Returns ε of the same outputs, each of a Poisson sample of its own, by numbers alone."""
    (shared,) = given.declared.joined
    events = [event for part in shared.parts for event in part.events(given.declared.relation, given.values)]
    return acc.compose(*events).epsilon(delta=delta).upper


# --- code that draws the batch, or the noise, otherwise than declared ------------------------------------------------


def drawn_twice(declaration, values, users, size, rng):
    """Draws a batch for each sum."""
    (shared,) = declaration.joined
    rate = shared.sample.sampling.rate.number(values)
    outputs = []
    for part in shared.parts:
        rows = users[part.name]
        held = (rng.random((size, rows.shape[0])) < rate).astype(np.float64)
        outputs.append(part.mechanism.at(values).add(held @ rows, rng))
    return np.concatenate(outputs, axis=1)


def noise_reused(declaration, values, users, size, rng):
    """Draws the batch once, and one noise for both sums."""
    (shared,) = declaration.joined
    held = (rng.random((size, len(next(iter(users.values()))))) < shared.sample.sampling.rate.number(values)).astype(
        float
    )
    noise = rng.standard_normal((size, 1))
    assert all(isinstance(part, Release) for part in shared.parts)
    return np.concatenate([held @ users[p.name] + noise * p.mechanism.std.number(values) for p in shared.parts], axis=1)


def neighbours(names, other):
    """Returns a user beside another one who contributes nothing, and that one alone."""
    first = {name: np.array([[move], [0.0]]) for name, move in zip(names, other, strict=True)}
    return first, {name: rows[1:] for name, rows in first.items()}


@pytest.mark.parametrize(
    ("run", "noise", "epsilon", "broken"),
    [
        (one_round, "1/3", 0.2, False),
        (drawn_twice, "1/3", 0.2, True),
        (one_round, "2", 0.5, False),
        (noise_reused, "2", 0.5, True),
    ],
)
def test_code_is_held_to_one_batch_and_noise_of_its_own(run, noise, epsilon, broken):
    given = setting("dp-actor-critic", **ACTOR, actor_noise=noise, critic_noise=noise)
    failing = account(given.declared).at(given.values).delta(epsilon)
    claim = ApproxDP(Fraction(str(epsilon)), Fraction(failing).limit_denominator(10**6) + Fraction(1, 10**6))
    pair = neighbours(("actor", "critic"), (1.0, -1.0))
    found = audit_mechanism(
        partial(run, given.declared, given.values), claim, neighbours=[pair],
        confidence=0.99 if broken else SURE, trials=20_000,
    )  # fmt: skip
    assert found.verdict == ("violation" if broken else "consistent")


def test_a_choice_and_a_sum_of_one_batch_run_as_declared():
    given = setting("choice-and-sum", **CHOICE)
    scores, alone = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0]])
    pair = ({"choice": scores, "sum": np.array([[1.0], [0.0]])}, {"choice": alone, "sum": np.array([[0.0]])})
    run = partial(one_round, given.declared, given.values)
    claim = given.declared.claim.guarantee
    sampled = run(pair[0], 50_000, np.random.default_rng(0))
    assert sampled.shape == (50_000, 2)
    # the two outputs see the same users: the winner tells about the sum, beyond what 50 000 runs show by chance (5 σ)
    larger = sampled[:, 1] == 0
    gap = sampled[larger, 0].mean() - sampled[~larger, 0].mean()
    assert gap > 5 * sampled[:, 0].std() * np.sqrt(1 / larger.sum() + 1 / (~larger).sum())
    e = Fraction(claim.epsilon.number(given.values)).limit_denominator(10**6) + Fraction(1, 10**6)
    found = audit_mechanism(run, PureDP(e), neighbours=[pair], confidence=SURE, trials=20_000)
    assert found.verdict == "consistent"
