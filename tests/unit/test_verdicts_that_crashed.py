"""Declarations that once ended in a raw exception, in no time, or in a word that was not true: issue by issue."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from privcheck.declare.declaration import Claim, Declaration, Draw, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statistics import Column, FeatureSums, VisitCounts
from privcheck.terms.guarantees import ZCDP, Guarantee, PureDP
from privcheck.terms.symbols import A, H, K, S, d, epsilon, log, n, rho
from privcheck.verification import verify
from privcheck_algorithms.dp_apvi import gaussian

PARAMETERS = (
    *(
        Parameter(name=x, default=v, kind="count", meaning=x)
        for x, v in (("H", 3), ("S", 2), ("A", 2), ("K", 8), ("d", 2))
    ),
    *(Parameter(name=x, default=1, kind="positive", meaning=x) for x in ("rho", "epsilon")),
)
COUNTS = VisitCounts(H, S, A)


def judged(releases: tuple[Release, ...], guarantee: Guarantee, **changes: Any):
    declaration = Declaration(
        name="x", title="x", source="a test", relation=ReplaceOne(), releases=releases,
        claim=Claim(guarantee, source="a test"), parameters=PARAMETERS, **changes,
    )  # fmt: skip
    found = verify(declaration, declaration.values())
    assert found.repair is not None  # and crashes no more than the verdict
    return found


def test_noise_that_vanishes_at_a_corner_of_the_box_only_is_judged_at_the_given_values():
    """ln K is 0 at K = 1."""
    found = judged((Release("v", COUNTS, Gaussian(variance=H * log(K) / rho)),), ZCDP(rho))
    assert found.verdict == "holds"
    found = judged((Release("v", COUNTS, Laplace(scale=2 * H * log(K) / epsilon)),), PureDP(epsilon))
    assert found.verdict == "holds"


@pytest.mark.parametrize(("sizes", "smallest"), [((3, 4), 3), ((2, 50, 7), 2), ((9,), 9)])
def test_noise_may_depend_on_the_size_of_a_batch(sizes, smallest):
    batches = Batches(size="n", sizes=lambda _: sizes)
    release = Release("v", COUNTS, Gaussian(variance=H * n / rho), schedule=batches)
    found = judged((release,), ZCDP(rho))
    assert found.verdict == "holds"
    assert found.upper_ratio == pytest.approx(1 / smallest, rel=1e-12)
    assert found.lower_ratio == pytest.approx(1 / smallest, rel=1e-12)
    short = judged((release,), ZCDP(rho / smallest * "99/100"))
    assert short.verdict == "fails"


def test_one_draw_for_several_batches_hides_nothing():
    once = Release("v", COUNTS, Gaussian(variance=10**9), schedule=Batches(size="9"), draw=Draw(across=("outputs",)))
    found = judged((once,), ZCDP(rho))
    assert (found.verdict, found.lower_ratio) == ("fails", float("inf"))


def test_one_draw_for_two_groups_hides_nothing():
    parts = tuple(
        Release(name, COUNTS, Gaussian(variance=10**9), users=name, draw=Draw(name="z")) for name in ("left", "right")
    )
    found = judged(parts, ZCDP(rho), partitions=(("left", "right"),))
    assert (found.verdict, found.lower_ratio) == ("fails", float("inf"))


@pytest.mark.parametrize("noise", [Gaussian(variance=1 / rho), Laplace(scale=1 / epsilon)])
def test_a_statistic_that_nobody_moves_costs_nothing(noise):
    sums = FeatureSums(name="s", steps=H, dimension=d, vector=Column("x", 1, "x"), target=Column("y", 0, "y"))
    found = judged((Release("v", sums, noise),), ZCDP(rho) if noise.law.gaussian else PureDP(epsilon))
    assert (found.verdict, found.upper_ratio) == ("holds", 0.0)


def test_a_million_steps_take_seconds():
    declaration = gaussian({})
    began = time.perf_counter()
    found = verify(declaration, declaration.values({"H": 1_000_000, "S": 2, "A": 2}))
    assert (found.verdict, found.lower_ratio) == ("holds", 1.0)
    assert time.perf_counter() - began < 60


def test_steps_that_no_pair_is_written_out_for_are_not_said_to_lose_nothing():
    found = CliRunner().invoke(main, ["verify", "dp-apvi", "--set", "H=10000000"])
    assert found.exit_code == 0
    assert "loses 0 of it" not in found.output
    assert "holds with equality" not in found.output
    assert "no pair with any loss is known" in " ".join(found.output.split())


def test_shuffled_bits_that_are_next_to_never_1_are_judged():
    found = CliRunner().invoke(main, ["verify", "sdp-pe-as-printed", "--set", "epsilon=1e9"])
    assert found.exit_code == 1
    assert "math domain" not in found.output


def test_verify_is_exact_where_a_pair_at_one_corner_is_a_fraction():
    found = judged((Release("v", COUNTS, Laplace(scale=Fraction(1, 3))),), PureDP(18))
    assert (found.verdict, found.upper_ratio, found.lower_ratio) == ("holds", 1.0, 1.0)
