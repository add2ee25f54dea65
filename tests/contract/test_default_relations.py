"""Which neighbours a registered claim compares by default: all, unless its own text says what they have in common.

A shared first step makes a claim weaker, so it is the default of no algorithm that is not listed here with its reason.
Local DP is "for all trajectories X, X′" (Chowdhury & Zhou 2022, Definition 2.3; Zhou 2022, Definition 2.3).
"""

from __future__ import annotations

import pytest

from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import RewardBits, RewardSums
from privcheck.runtime import registry
from privcheck.terms.symbols import A, symbol
from structures import described

_RESPONSES = (
    "joint DP of Chowdhury & Zhou 2022: 'Each user u_k is identified by the cost and state responses she gives to the "
    "actions' (section 2.2), 'the initial state is assumed to be fixed and history independent' (section 2.1)"
)
_REWARD = "a bandit: the algorithm names the arm, computed from earlier outputs; a user's data are one reward"
SHARED = {
    "private-ucb-vi-central": _RESPONSES,
    "private-ucb-po-central": _RESPONSES,
    "published-ucb-vi-central": _RESPONSES,
    "pucb": f"{_RESPONSES}: the claim is that paper's Table 1",
    "private-ucb-vi-calibrated": f"{_RESPONSES}: the same agent under the same definition, with our noise",
    "adap-ucb": _REWARD,
    "dp-exp3-lap": _REWARD,
    "dp-se": _REWARD,
    "dp-ucb": _REWARD,
    "lazy-ucb": _REWARD,
    "ldp-ucb": f"{_REWARD}, and the message is that reward with noise, without the arm",
    "shuffled-arms": f"{_REWARD}, dealt out in public",
    "shuffled-bandit": _REWARD,
}
DECLARED = {name: one for name in registry.names("algorithms") if (one := registry.algorithm(name)).declare is not None}
LOCAL = sorted(
    {name for (name, given), parts in described().items() if "Declaration.model = local" in parts and not given}
)


def shares_first_step(declaration):
    return isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed"


def test_a_first_step_in_common_is_the_default_where_a_text_says_so_and_nowhere_else():
    assert {name for name, one in DECLARED.items() if shares_first_step(one.declare({}))} == set(SHARED)


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_claim_compares_any_two_inputs_by_default(name):
    relation = DECLARED[name].declare({}).relation
    assert isinstance(relation, ReplaceOne)
    assert relation.initial == ("fixed" if name in SHARED else "any")


def test_the_local_systems_of_the_papers_are_among_them():
    papers = {"private-ucb-vi-local", "private-ucb-po-local", "published-ucb-vi-local", "ldp-obi", "dp-ucbvi-local"}
    assert papers <= set(LOCAL) - set(SHARED)


@pytest.mark.parametrize("name", [name for name, why in SHARED.items() if why.startswith(_REWARD)])
def test_bandits_whose_users_share_an_arm_release_what_one_pull_of_it_paid(name):
    """No state, no transition and no visit of theirs leaves, which a shared first step would hide."""
    of_one_step = [kind(1, 1, arms) for kind in (RewardSums, RewardBits) for arms in (A, symbol("arms", "count"))]
    for release in DECLARED[name].declare({}).releases:
        assert release.statistic in of_one_step


@pytest.mark.parametrize("name", [name for name, one in DECLARED.items() if one.readings])
def test_the_first_way_of_a_reading_is_what_is_declared_without_it(name):
    """Where `initial` and the declaration disagreed, `--set initial=…` would be shown as what was not chosen."""
    algorithm = DECLARED[name]
    left_out = algorithm.declare({})
    for reading in algorithm.readings:
        said = algorithm.declare({reading.name: reading.ways[0]})
        assert said.relation == left_out.relation
        assert [r.mechanism for r in said.noisy] == [r.mechanism for r in left_out.noisy]


@pytest.mark.parametrize("name", LOCAL)
def test_the_weaker_reading_of_a_local_claim_stays_a_choice_by_name(name):
    starts = [reading for reading in DECLARED[name].readings if reading.name == "initial"]
    for reading in starts:
        assert reading.ways == ("any", "fixed")
        assert shares_first_step(DECLARED[name].declare({"initial": "fixed"}))
        assert not shares_first_step(DECLARED[name].declare({"initial": "any"}))
