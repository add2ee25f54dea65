"""Audits of selection at the default number of runs: broken sparse vectors are found, correct ones are not accused.

Audits of what is correct have a confidence of 1 − 1e-9: a reseed could fail one of them with probability 1e-8 in all.
What is found is found by far: by the margins written here, at the seeds written here.
"""

from dataclasses import replace
from fractions import Fraction

import pytest

from privcheck.accounting import compose
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Claim, Declaration
from privcheck.declare.procedures import (
    AdaptiveSparseVector,
    GaussianNoisyMax,
    GaussianSparseVector,
    NoisyMax,
    SparseVector,
)
from privcheck.declare.relations import ReplaceOne
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck_audits.releases.view import audit_releases

CORRECT = ("sparse-vector-1", "sparse-vector-2", "noisy-max", "exponential-mechanism", "permute-and-flip")


def audit(name, *, factor=1, confidence=0.99, seed=0, trials=100_000, **sets):
    setting = resolve_setting(name, {key: str(value) for key, value in sets.items()})
    declaration = setting.declared
    if factor != 1:
        noisy = tuple(one.with_std(Fraction(factor)) for one in declaration.releases)
        declaration = replace(declaration, releases=noisy)
    return audit_releases(
        AuditRequest(
            setting=Setting(declaration=declaration, values=setting.values), view="releases", delta=0.0,
            trials=trials, confidence=confidence, seed=seed,
        )
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("number", "least"), [(3, 1.1), (4, 2.2), (5, 8.0), (6, 3.0)])
def test_broken_sparse_vectors_are_found(number, least, seed):
    result = audit(f"sparse-vector-{number}", seed=seed)
    assert result.verdict == "violation"
    assert least <= result.epsilon_lower
    assert (result.epsilon_upper is None) == (number == 5)
    assert number == 5 or result.epsilon_lower <= result.epsilon_upper
    assert "above the threshold; in D′" in result.witness


@pytest.mark.parametrize("sets", [{"epsilon": "1/2"}, {"epsilon": 2}, {"c": 1, "queries": 10}, {"c": 4, "queries": 60}])
@pytest.mark.parametrize("number", [4, 5, 6])
def test_and_at_other_parameters(number, sets):
    assert audit(f"sparse-vector-{number}", **sets).verdict == "violation"


def test_values_that_leave_are_found_at_other_parameters():
    assert audit("sparse-vector-3", c=1, queries=10).verdict == "violation"
    assert audit("sparse-vector-3", c=1, queries=10, epsilon="1/2").verdict == "violation"


@pytest.mark.parametrize("name", CORRECT)
@pytest.mark.parametrize("seed", range(2))
def test_correct_selection_is_not_accused(name, seed):
    result = audit(name, confidence=1 - 1e-9, seed=seed)
    assert result.verdict == "consistent"
    assert 0.2 < result.epsilon_lower <= 1


@pytest.mark.parametrize("name", CORRECT)
def test_half_the_noise_is_found(name):
    result = audit(name, factor=Fraction(1, 2))
    assert result.verdict == "violation"
    assert 1 < result.epsilon_lower <= 2


PROGRAMS = {  # with the part of the noise at which the audit is to find them
    "gaussian sparse vector": (GaussianSparseVector("a", threshold_std=4, query_std=4, queries=8, positives=1), "1/4"),
    "with gaps": (
        GaussianSparseVector("a", threshold_std=4, query_std=4, queries=8, positives=1, answers="gaps"), "1/4"),
    "with values": (
        GaussianSparseVector("a", threshold_std=4, query_std=4, queries=4, positives=2, answers="fresh values",
                             value_std=8), "1/4"),
    "laplace noisy max with its gap": (NoisyMax("w", noise="laplace", scale=2, candidates=3, gap=True), "1/2"),
    "laplace gaps": (
        SparseVector("a", threshold_scale=2, query_scale=4, queries=8, positives=1, answers="gaps"), "1/3"),
    "adaptive": (
        AdaptiveSparseVector("a", threshold_scale=2, top_scale=8, middle_scale=4, margin=2, queries=8, budget="1/2",
                             gaps=True), "1/3"),
}  # fmt: skip


def audit_program(one, *, factor, confidence):
    """Audit a procedure with part of its noise against its own upper bound at full noise."""
    relation = ReplaceOne("user")
    pure = one.cost(relation).pure
    if pure is None:
        upper = compose(*one.events(relation, {})).epsilon(delta=1e-2).upper
        claim = ApproxDP(f"{upper:.9f}", "1/100")
    else:
        claim = PureDP(pure)
    declaration = Declaration(
        name="program", title="a program", source="a test", relation=relation,
        releases=(one.with_std(Fraction(factor)),), claim=Claim(claim, source="a test"), parameters=(),
    )  # fmt: skip
    return audit_releases(
        AuditRequest(
            setting=Setting(declaration=declaration, values={}), view="releases",
            delta=0.01 if pure is None else 0.0, trials=40_000, confidence=confidence, seed=3,
        )
    )  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_selection_programs_are_spared_and_with_little_noise_found(name):
    """Finds an audit that accuses the declared noise, or that runs of a third or so of it do not convince."""
    one, factor = PROGRAMS[name]
    assert audit_program(one, factor=1, confidence=1 - 1e-9).verdict == "consistent"
    found = audit_program(one, factor=factor, confidence=0.99)
    assert found.verdict == "violation"
    assert found.epsilon_upper is None or found.epsilon_lower <= found.epsilon_upper


def test_a_gaussian_noisy_max_is_spared():
    """Finds an audit that accuses the declared noise. Its worst pairs have events of hardly more than δ, not runs."""
    assert (
        audit_program(GaussianNoisyMax("w", std=4, candidates=6), factor=1, confidence=1 - 1e-9).verdict == "consistent"
    )
