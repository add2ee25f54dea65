"""Random declarations: no false one holds, no true one fails, what means nothing is refused when it is declared.

Seeds are fixed; the oracle (`declarations.truth`) enumerates all users at tiny sizes. `make fuzz` looks at 10 000.
"""

from __future__ import annotations

import random

import pytest

from declarations.judging import judge
from declarations.specs import draw, mutants
from declarations.truth import bounds

FINE = ("right", "undecided", "refused")


def check(spec):
    judged = judge(spec)
    assert judged.outcome in FINE, judged
    assert not judged.late, judged
    assert judged.seconds < 60


def mutated(seed, number):
    spec, rng = draw(seed, bounds), random.Random(seed)  # noqa: S311 - no secret
    return rng.sample(list(mutants(spec, rng)), number)


@pytest.mark.parametrize("seed", range(30))
def test_the_verdict_on_a_random_declaration_is_never_false(seed):
    check(draw(seed, bounds))


def test_one_field_changed_is_refused_or_judged_anew():
    for seed in range(8):
        for spec in mutated(seed, 6):
            check(spec)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(1_000, 1_020), *(pytest.param(s, marks=pytest.mark.nightly) for s in range(1_020, 1_100))]
)
def test_the_verdicts_on_a_random_declaration_and_on_what_becomes_of_it_are_never_false(seed):
    for spec in (draw(seed, bounds), *mutated(seed, 2)):
        check(spec)
