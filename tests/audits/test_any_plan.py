"""The plan for declarations that have none of their own: it refutes what verification refutes, and accuses nobody else.

Bounds at 99.9999 % confidence: each test below fails by chance with probability at most 10⁻⁶ a correct system; the
systems that fail lose so much more than is claimed that missing them is rarer still.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.pricing import Priced, account
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck.verification import find_witness
from privcheck.verification.candidates import candidate_pairs
from privcheck_audits.engine.scores import find_moved_groups
from privcheck_audits.releases.canaries import canary, worst_canary
from privcheck_audits.releases.view import audit_releases, instances, why_not

CONFIDENCE = 0.999999


def _request(name, trials=20_000, delta=None, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    claim = setting.declared.claim.guarantee
    at = 1e-5 if delta is None and not hasattr(claim, "epsilon") else (delta or 0.0)
    if hasattr(claim, "delta"):
        at = claim.delta.number(setting.values)
    return AuditRequest(
        setting=setting.setting,
        view="releases",
        delta=at,
        trials=trials,
        confidence=CONFIDENCE,
        seed=7,
        workers=1,
    )


@pytest.mark.parametrize(
    "name",
    [
        "private-ucb-vi-central",
        "private-ucb-po-local",
        "published-ucb-vi-central",
        "published-ucb-vi-local",
        "dp-lsvi-ucb-pp-as-printed",
    ],
)
def test_what_verification_refutes_is_refuted_from_outputs(name):
    found = audit_releases(_request(name, trials=200_000))
    assert found.verdict == "violation"
    assert found.epsilon_lower is not None
    assert found.epsilon_claimed is not None
    assert found.epsilon_lower > found.epsilon_claimed
    assert found.epsilon_upper is None or found.epsilon_lower <= found.epsilon_upper


@pytest.mark.parametrize("name", ["private-linopt-vi", "dp-vapvi", "dp-lsvi-ucb-pp", "ldp-obi", "calibrated-ucb-vi"])
def test_what_holds_is_not_accused_and_approached(name):
    found = audit_releases(_request(name))
    assert found.verdict == "consistent"
    assert found.epsilon_lower is not None
    assert found.epsilon_upper is not None
    assert found.epsilon_lower <= found.epsilon_upper


def test_the_bound_comes_near_the_joint_worst_case():
    request = _request("dp-vapvi", trials=200_000)
    found = audit_releases(request)
    witness = find_witness(request.declaration, request.values)
    assert witness is not None
    mu = (2 * witness.loss) ** 0.5  # the claim is in ρ, all noise Gaussian
    assert 0.95 * mu < float(found.evidence["mu_lower"]) <= mu


def test_every_algorithm_with_a_declaration_has_a_plan():
    for name in registry.names("algorithms"):
        setting = resolve_setting(name, {})
        if setting.declaration is None:
            continue
        plan = registry.audit_plan(name)
        assert not plan.lacks(setting.declaration, "releases"), name


def test_a_canary_of_a_partition_is_in_one_group():
    request = _request("dp-vapvi")
    worst = worst_canary(Priced(request.declaration, request.values))
    assert worst.group in request.declaration.groups
    seen = {name for group in worst.groups for name in group.releases}
    assert seen <= {r.name for r in request.declaration.seen_by(worst.group)}
    assert worst.mu**2 / 2 == pytest.approx(find_witness(request.declaration, request.values).loss, rel=1e-6)


def test_laplace_nodes_are_drawn_one_by_one_and_gaussian_ones_together():
    laplace = _request("private-ucb-vi-central", K=5)
    pair = next(iter(candidate_pairs(Priced(laplace.declaration, laplace.values), "")))
    one = sum(r.moved(pair, laplace.values).change.size for r in laplace.declaration.releases)
    (group,) = find_moved_groups(laplace.declaration, laplace.values, pair)
    assert group.change.size == 3 * one  # the first of four leaves lies in three nodes
    gaussian = _request("private-linopt-vi", K=5)
    pair = next(iter(candidate_pairs(Priced(gaussian.declaration, gaussian.values), "")))
    total = account(gaussian.declaration).at(gaussian.values).mu
    assert canary(gaussian.declaration, gaussian.values, pair).mu <= total * (1 + 1e-9)


def test_the_small_instance_is_where_a_violation_shows():
    large, small = _request("private-ucb-vi-central"), _request("dp-apvi-laplace")
    assert [(int(v["H"]), int(v["K"])) for v in instances(large)] == [(2, 2)]
    assert [int(v["H"]) for v in instances(small)] == [20, 1]


def test_too_many_coordinates_are_refused():
    request = _request("published-ucb-vi-central", K=10**9)
    pair = next(iter(candidate_pairs(Priced(request.declaration, request.values), "")))
    with pytest.raises(ParameterError, match="K=2"):
        find_moved_groups(request.declaration, request.values, pair)
    assert why_not(request.declaration) == ""


def test_the_same_seed_gives_the_same_bound_for_any_number_of_workers():
    one, two = (audit_releases(replace(_request("published-ucb-vi-local"), workers=w)) for w in (1, 2))
    assert (one.epsilon_lower, one.evidence["errors"]) == (two.epsilon_lower, two.evidence["errors"])
