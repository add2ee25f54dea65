"""What an attacker can guess is never understated: optimal tests between drawn laws, and known curves."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.reports import read_report
from privcheck.reports.promise import guess_right, promise
from small_reports import as_written, audited, report

WEIGHTS = st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any)


def law(weights, size):
    padded = [*weights, *[0] * size][:size]
    return [Fraction(weight, sum(padded)) for weight in padded]


@given(WEIGHTS, WEIGHTS, st.floats(0, 8))
def test_the_best_guess_between_two_laws_is_right_no_more_often_than_is_said(one, other, epsilon):
    size = max(len(one), len(other))
    p, q = law(one, size), law(other, size)
    best = sum(max(a, b) for a, b in zip(p, q, strict=True)) / 2  # the likelier of the two after each output
    factor = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**50))  # no more than e^ε, so that δ is no less
    delta = max(sum(max(a - factor * b, Fraction(0)) for a, b in zip(*pair, strict=True)) for pair in ((p, q), (q, p)))
    rounded_up = math.nextafter(float(delta), 2)
    assert Fraction(guess_right(epsilon, rounded_up)) >= best


@given(st.floats(0, 30), st.floats(0, 1))
def test_it_is_the_formula_and_tight(epsilon, delta):
    exact = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    assert exact * (1 - 1e-15) <= guess_right(epsilon, delta) <= min(1.0, exact * (1 + 1e-14))


def test_randomised_response_reaches_it():
    assert guess_right(math.log(3), 0.0) == pytest.approx(0.75)
    assert guess_right(800.0, 0.0) == 1.0


def test_the_whole_curve_and_its_point_are_both_said_and_a_large_epsilon_is_weak():
    said = promise(read_report(as_written("holds")))
    assert said.strength == "weak"  # ε = 6.573
    assert "76.1 % of the time, on average over all outputs (by the whole curve" in said.text  # (1 + 2Φ(1/√2) − 1)/2
    assert "ε = 6.573 at δ = 10⁻⁵ alone would allow 99.9 %" in said.text


def test_audits_alone_prove_nothing_and_speak_of_the_claim():
    said = promise(report(audited()))  # of ε = 1
    assert (said.strength, said.headline) == ("unshown", "A claim, not a guarantee.")
    assert said.text.startswith("Were the claim true, an attacker")
    assert "73.2 % of the time" in said.text
    assert said.text.endswith("An audit cannot show that it is.")


def test_without_a_finite_epsilon_there_is_no_guarantee():
    data = as_written("holds")
    data["budget"]["guarantee"] |= {"epsilon": None, "pure_epsilon": None}
    assert promise(read_report(data)).strength == "none"


def test_a_violation_is_no_guarantee_however_small_the_claimed_epsilon():
    refuted = report(audited(verdict="violation"))
    assert (promise(refuted).strength, promise(refuted).headline) == ("none", "No guarantee.")
    assert promise(refuted).text.endswith("It is not: the audit found more.")
