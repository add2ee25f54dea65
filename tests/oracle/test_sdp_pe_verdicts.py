"""SDP-PE's verdicts, derived by hand.

One user of fine exploration moves 6H counters (two cells of three tables at each step), one of crude exploration four.
With every bit a separate message each counter is hidden by N = n⌈τ/n⌉ ≥ τ fair bits, of variance N/4: nearly Gaussian
noise, μ = √6H·2/√N, τ = 96 ln(2HSA/β)·9H²/ε². With integer messages a user is shown in one of 6H counters with
probability 1 − (1 − 2^−m)^{6H}, m = ⌈τ/n⌉, and nothing is claimed to hold where that exceeds β.
"""

import dataclasses
import math

import pytest

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.statistics import OneStepEach, RewardBits, RewardSums, VisitCounts
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import Priced, account
from privcheck.pricing.calibration import least_noise
from privcheck.terms.symbols import A, H, S
from privcheck.testing.enumeration import assert_sensitivity
from privcheck.verification import verify
from privcheck.verification.shuffled_loss import shuffled_epsilon
from privcheck_algorithms.sdp_pe.declaration import declare_apart, declare_as_printed, stages

pytestmark = pytest.mark.slow

BANDIT = {"H": "1", "S": "1", "A": "20"}


def threshold(values):
    h, s, a, e, b = (float(values[x]) for x in ("H", "S", "A", "epsilon", "beta"))
    return 96 * math.log(2 * h * s * a / b) * 9 * h * h / e**2


def noise(values):
    """Returns the fewest noise bits behind any shuffler of fine exploration."""
    tau = threshold(values)
    return min(n * max(1, math.ceil(tau / n)) for n in (2 * L for L in stages(int(values["K"]))) if n <= tau)


@pytest.mark.parametrize(
    "given", [{}, {"K": "200000"}, BANDIT, {"K": "3"}, {"epsilon": "1/10"}, {"K": "1000000000", "H": "100"}, {"K": "9"}]
)
@pytest.mark.parametrize("remainder", ["last", "dropped"])
def test_bits_sent_apart_cost_a_twentieth_of_the_claim(given, remainder):
    if remainder == "dropped" and given.get("K") == "3":
        given = {**given, "K": "6"}
    declaration = declare_apart({"remainder": remainder})
    values = declaration.values(given)
    found = verify(declaration, values)
    assert (found.verdict, found.method) == ("holds", "checked")
    mu = 2 * math.sqrt(6 * int(values["H"]) / noise(values))
    expected = gdp_epsilon(mu, float(values["beta"])) / float(values["epsilon"])
    assert found.upper_ratio == pytest.approx(expected, rel=3e-3)
    assert found.lower_ratio == pytest.approx(expected, rel=3e-3)
    assert found.lower_ratio <= found.upper_ratio
    assert {f.code for f in found.findings} == {"wrong-relation", "delta-sum", "basic-composition", "claim-slack"}


@pytest.mark.parametrize("declare", [declare_apart, declare_as_printed])
@pytest.mark.parametrize("episodes", ["1", "2"])
def test_too_few_episodes_for_a_stage_release_nothing(declare, episodes):
    declaration = declare({})
    found = verify(declaration, declaration.values({"K": episodes}))
    assert (found.verdict, found.upper_ratio, found.lower_ratio) == ("holds", 0.0, 0.0)


def test_the_printed_protocol_holds_in_the_papers_own_setting():
    declaration = declare_as_printed({})
    values = declaration.values()
    assert math.ceil(threshold(values) / (2 * stages(20_000)[-1])) == 98
    found = verify(declaration, values)
    assert found.verdict == "holds"
    bits = verify(declare_apart({}), values)
    # the multiset tells no less than the sum, and is charged at most twice: half the users, and others' bits both ways
    assert found.lower_ratio == pytest.approx(bits.lower_ratio, rel=1e-5)  # both rounded down, on other lattices
    assert bits.upper_ratio < found.upper_ratio < 2.2 * bits.upper_ratio
    assert "message-as-sum" in {f.code for f in found.findings}


@pytest.mark.parametrize(
    ("given", "m"),
    [
        ({"K": "200000"}, 8),  # n = 65536 of the second largest stage; τ = 500068
        ({**BANDIT, "K": "20000"}, 3),
        ({**BANDIT, "K": "200000"}, None),  # n > τ
        ({"K": "1000000000"}, None),
    ],
)
def test_the_printed_protocol_fails_for_larger_batches(given, m):
    declaration = declare_as_printed({})
    values = declaration.values(given)
    found = verify(declaration, values)
    assert (found.verdict, found.method) == ("fails", "witness")
    assert (found.lower_ratio, found.upper_ratio) == (math.inf, math.inf)
    assert {"message-as-sum", "claim-refuted"} <= {f.code for f in found.findings}
    assert "every bit as a separate message" in found.repair
    counters = 6 * int(values["H"])
    if m is not None:
        largest = max(2 * L for L in stages(int(values["K"])))
        assert math.ceil(threshold(values) / largest) == m
        assert f"{1 - (1 - 0.5**m) ** counters:.6g}" in found.witness.words
    else:  # every message of a user whose bit is 0 among ones is 0 more often than not
        assert "has probability 1 under D" in found.witness.words or "0.9" in found.witness.words
    assert verify(declare_apart({}), values).verdict == "holds"


def test_where_the_probability_does_not_exceed_beta_nothing_is_refuted():
    """At β = ¼ one counter with m = 2 is shown with probability ¼ exactly: not above it."""
    declaration = declare_as_printed({})
    moved = {r.name: r.moved(_pair(declaration), declaration.values()) for r in declaration.releases}
    one = next(r for r in declaration.releases if r.name == "visits")
    values = declaration.values()
    loss, _ = shuffled_epsilon([one], moved, values, 0.9)
    assert math.isfinite(loss)


def _pair(declaration):
    from privcheck.verification.candidates import candidate_pairs

    return next(iter(candidate_pairs(Priced(declaration, declaration.values()), "fine exploration")))


def test_least_noise_meets_the_claim_and_a_little_less_does_not():
    declaration = declare_apart({})
    values = declaration.values()
    found = least_noise(declaration, values, epsilon=1.0, delta=1e-5)
    assert found.epsilon <= 1.0
    # μ at (1, 10⁻⁵) is 0.2680…: std = √36/μ; a few percent more, for rare bits are bounded by fair ones
    assert found.releases[0].needed_std == pytest.approx(found.gaussian[0].needed_std, rel=0.03)
    assert found.releases[0].ratio == pytest.approx(0.0643, rel=0.01)
    with pytest.raises(ParameterError, match="each bit as a separate message"):
        least_noise(declare_as_printed({}), values, epsilon=1.0, delta=1e-5)
    with pytest.raises(ParameterError, match="not \\(ε, 0\\)-DP"):
        least_noise(declaration, values, epsilon=1.0, delta=0.0)


@pytest.mark.parametrize(("episodes", "expected"), [(1, ()), (3, (1,)), (6, (2,)), (20, (2, 4)), (43, (2, 4, 8))])
def test_stages_double_as_long_as_the_episodes_last(episodes, expected):
    assert stages(episodes) == expected
    assert 3 * sum(stages(episodes)) in range(episodes - 2, episodes + 1)
    assert all(size == 2 ** (b + 1) for b, size in enumerate(stages(episodes, remainder="dropped")))


def test_a_million_millions_of_episodes_are_no_more_work():
    declaration = declare_apart({})
    numbers = account(declaration).at(declaration.values({"K": str(10**12)}))
    assert len(numbers.branches) <= 4


@pytest.mark.parametrize("relation", [ReplaceOne("trajectory"), AddRemoveOne("trajectory")])
@pytest.mark.parametrize("sizes", [(1, 2, 2), (2, 2, 2)])
def test_sensitivities_are_the_enumerated_ones(relation, sizes):
    values = dict(zip(("H", "S", "A"), sizes, strict=True))
    assert_sensitivity(RewardBits(H, S, A), relation, values)
    stays = ZeroOut("trajectory") if isinstance(relation, AddRemoveOne) else relation
    assert_sensitivity(OneStepEach(table=VisitCounts(H, S, A)), stays, values)


def test_what_is_no_bit_and_what_changes_the_number_of_messages_is_refused():
    declaration = declare_apart({})
    first = dataclasses.replace(declaration.releases[0], users="")
    with pytest.raises(DeclarationError, match="sums of bits"):
        ShuffledBits(users=2, threshold=2).whiten(RewardSums(H, S, A).sensitivity(ReplaceOne()))
    with pytest.raises(DeclarationError, match="ReplaceOne or ZeroOut"):
        Declaration(
            name="x", title="x", source="x", relation=AddRemoveOne(), releases=(first,), claim=declaration.claim,
            parameters=declaration.parameters, model="shuffle",
        )  # fmt: skip
