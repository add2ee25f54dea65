"""Every rule has a mutant that triggers it and no other rule: one declaration that is tight, changed in one place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privcheck.declare.declaration import L2, Assumption, Claim, Declaration, Draw, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import EveryEpisode, Tree
from privcheck.declare.statistics import RewardSums, VisitCounts
from privcheck.terms.guarantees import ZCDP, ApproxDP
from privcheck.terms.symbols import A, H, K, S, delta, epsilon, exact, expression, rho, sqrt, tree_levels
from privcheck.verification import CODES, verify

PARAMETERS = (
    *(Parameter(name=n, default=v, kind="count", meaning=n) for n, v in (("H", 3), ("S", 2), ("A", 2), ("K", 6))),
    Parameter(name="rho", default="1/2", kind="positive", meaning="budget"),
    Parameter(name="epsilon", default="3", kind="positive", meaning="ε"),
    Parameter(name="delta", default="1e-5", kind="probability", meaning="δ"),
)
# what follows from a broken step, and may stand beside the rule's own finding
CONSEQUENCES = {"claim-refuted", "claim-slack", "claim-unproved"}


def _release(name: str, **changes: object) -> Release:
    schedule = changes.get("schedule")
    times = schedule.times if schedule is not None else expression(1)
    made = Release(name, VisitCounts(H, S, A), Gaussian(variance=2 * H * times / rho), stated=L2(sqrt(2 * H)))
    return replace(made, **changes)


def _declared(first: dict[str, object] | None = None, **changes: object) -> Declaration:
    made = Declaration(
        name="tight",
        title="two tables",
        source="a test",
        relation=ReplaceOne("trajectory"),
        releases=(_release("one", **(first or {})), _release("two")),
        claim=Claim(ZCDP(rho), source="a test"),
        parameters=PARAMETERS,
    )
    return replace(made, **changes)


def _approximate(**changes: object) -> Declaration:
    """Two releases of μ = 0.43 each, about (1.6, 1e-5)-DP, against a claim of (3, 1e-5)."""
    budget = ApproxDP(epsilon * "2/3", delta / 2)
    releases = tuple(
        replace(r, mechanism=Gaussian(variance=96 * H / epsilon**2), budget=budget) for r in _declared().releases
    )
    claim = Claim(ApproxDP(epsilon, delta), source="a test")
    return _declared(releases=releases, claim=replace(claim, **changes))


def _assumes(attained: object) -> Assumption:
    return Assumption(what="‖φ‖", assumed=expression(1), attained=attained, repair="rescale", source="a test")


MUTANTS = {
    "stated-sensitivity-refuted": _declared({"stated": L2(sqrt(2 * H) * "19/20")}),
    "stated-sensitivity-slack": _declared({"stated": L2(sqrt(2 * H) * "21/20")}),
    "wrong-relation": _declared({"stated": L2(sqrt(H))}),
    "noise-shared": _declared(
        releases=(
            _release("one", draw=Draw(across=("cells",))),
            _release("two"),
        )
    ),
    "tree-levels": _declared({"schedule": Tree(leaves=K, counted=tree_levels(K) - 1)}),
    "tree-levels-slack": _declared({"schedule": Tree(leaves=K, counted=tree_levels(K) + 1)}),
    "release-uncounted": _declared({"counted": expression(0)}),
    "release-repeated": _declared({"schedule": EveryEpisode(outputs=K), "counted": expression(1)}),
    "release-missing": _declared({"counted": expression(2)}),
    "budget-exceeded": _declared({"budget": ZCDP(rho * "19/40")}),
    "epsilon-sum": _declared(
        releases=(_release("one", budget=ZCDP(rho * "3/5")), _release("two", budget=ZCDP(rho / 2)))
    ),
    "delta-sum": replace(
        _approximate(),
        releases=tuple(replace(r, budget=ApproxDP(epsilon / 2 * "4/3", delta)) for r in _approximate().releases),
        claim=Claim(ApproxDP(epsilon * "4/3", delta), source="a test"),
    ),
    "basic-composition": replace(
        _approximate(composition="basic"), releases=tuple(replace(r, budget=None) for r in _approximate().releases)
    ),
    "assumption-violated": _declared(assumptions=(_assumes(sqrt(7)),)),
    "assumption-unenforced": _declared(assumptions=(_assumes(None),)),
    "joint-precondition": _declared(
        claim=Claim(ZCDP(rho), source="a test", joint=Joint(sees=("billboard", "others' data")))
    ),
    "claim-data-dependent": _declared(claim=Claim(ZCDP(rho * "19/20"), source="a test", data_dependent="the visits")),
    "claim-order-only": _declared(claim=Claim(ZCDP(rho), source="a test", order_only=True)),
    "claim-refuted": _declared(claim=Claim(ZCDP(rho * "19/20"), source="a test")),
    "claim-slack": _declared(claim=Claim(ZCDP(rho * "21/20"), source="a test")),
    "claim-not-for-all-parameters": _declared(claim=Claim(ZCDP(rho * H / 3), source="a test")),
}
ELSEWHERE = {  # codes whose mutants have files of their own, and why
    "candidate-refused": "needs pairs that are no neighbours: tests/unit/test_verdict_grounds.py",
    "claim-unproved": "needs a bound that no pair attains: tests/unit/test_verification.py",
    "stated-sensitivity-undecided": "needs an inequality that is not decided: tests/unit/test_verification.py",
    "message-as-sum": "needs shuffled messages: tests/unit/test_message_rule.py",
}


def _codes(declaration: Declaration) -> set[str]:
    return {f.code for f in verify(declaration, declaration.values()).findings}


def test_the_tight_declaration_has_no_findings():
    assert _codes(_declared()) == set()
    found = verify(_declared(), _declared().values())
    assert (found.verdict, found.upper_ratio, found.lower_ratio, found.joint) == ("holds", 1.0, 1.0, None)


@pytest.mark.parametrize("code", MUTANTS)
def test_a_mutant_triggers_its_rule_and_no_other(code):
    found = _codes(MUTANTS[code])
    assert code in found
    assert found - {code} <= CONSEQUENCES


def test_every_code_has_a_mutant_and_a_page():
    assert set(MUTANTS) | set(ELSEWHERE) >= set(CODES)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    assert [code for code in CODES if f"## {code}\n" not in page] == []


def test_what_a_loose_step_pays_for_is_not_critical():
    paid = verify(MUTANTS["wrong-relation"], MUTANTS["wrong-relation"].values())
    assert [f.severity for f in paid.findings if f.code == "wrong-relation"] == ["theoretical"]
    assert paid.verdict == "holds"
    broken = replace(MUTANTS["wrong-relation"], claim=Claim(ZCDP(rho * "9/10"), source="a test"))
    found = verify(broken, broken.values())
    assert [f.severity for f in found.findings if f.code == "wrong-relation"] == ["critical"]


def test_a_refuted_sensitivity_comes_with_its_own_pair():
    found = verify(MUTANTS["stated-sensitivity-refuted"], _declared().values())
    finding = next(f for f in found.findings if f.code == "stated-sensitivity-refuted")
    assert finding.witness is not None
    change = VisitCounts(H, S, A).difference(finding.witness.pair)
    assert change.l2_squared == 6.0  # 2H at H = 3, above the stated 2H·(19/20)²
    assert finding.witness.loss**2 == pytest.approx(6.0)


def test_joint_dp_follows_only_with_both_preconditions():
    joint = _declared(claim=Claim(ZCDP(rho), source="a test", joint=Joint()))
    assert verify(joint, joint.values()).joint == "follows"
    assert verify(MUTANTS["joint-precondition"], joint.values()).joint == "unproved"
    failing = _declared(claim=Claim(ZCDP(rho * "1/2"), source="a test", joint=Joint()))
    found = verify(failing, failing.values())
    assert (found.verdict, found.joint) == ("fails", "unproved")


@pytest.mark.parametrize(("across", "schedule"), [(("outputs",), EveryEpisode(outputs=K)), (("cells",), None)])
def test_shared_noise_fails_whatever_its_scale(across, schedule):
    changes = {"draw": Draw(across=across), "mechanism": Gaussian(variance=10**30)}
    declaration = _declared(changes if schedule is None else {**changes, "schedule": schedule})
    found = verify(declaration, declaration.values())
    assert (found.verdict, found.upper_ratio, found.lower_ratio) == ("fails", float("inf"), float("inf"))
    assert "fresh noise" in found.repair


def test_one_draw_for_equal_tables_is_refuted_by_nothing_and_never_holds():
    shared = _declared(releases=(_release("one", draw=Draw(name="z")), _release("two", draw=Draw(name="z"))))
    found = verify(shared, shared.values())
    assert found.verdict == "undecided"  # both outputs are the same noisy table
    assert found.repair.startswith("if 'one' and 'two' are one table, it is one release: declare it once")
    message = next(one.message for one in found.findings if one.code == "noise-shared")
    assert "that two statistics are equal on all data is not derived" in message
    once = replace(shared, releases=(_release("one"),))
    assert verify(once, once.values()).verdict == "holds"
    other = _release("two", statistic=RewardSums(H, S, A), draw=Draw(name="z"))
    unlike = replace(shared, releases=(shared.releases[0], other))
    assert "one table" not in verify(unlike, unlike.values()).repair


def test_a_partition_costs_its_dearest_group():
    split = _declared(
        releases=(_release("one", users="left"), _release("two", users="right")), partitions=(("left", "right"),)
    )
    found = verify(split, split.values())
    assert (found.upper_ratio, found.method) == (0.5, "proved")
    assert found.lower_ratio == pytest.approx(0.5, rel=1e-12)
    uneven = replace(
        split, releases=(replace(split.releases[0], mechanism=Gaussian(variance=H / rho)), split.releases[1])
    )
    found = verify(uneven, uneven.values())
    assert (found.upper_ratio, found.lower_ratio) == (1.0, 1.0)
    assert found.witness is not None
    assert found.witness.group == "left"
    at = uneven.values({"rho": exact("1/2")})
    assert found.account.at(at).epsilon(1e-5) == pytest.approx(verify(_declared(), at).account.at(at).epsilon(1e-5))
