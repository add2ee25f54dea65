"""What was charged, as one dp-accounting event: its accountant against ours, over generated charges."""

from fractions import Fraction

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.errors import ParameterError
from privcheck.ledger.views import join_charged, write_dp_event
from privcheck.ledger.wire import parse_event

DELTA = 1e-6
NAMES = {name: getattr(dp, name) for name in dir(dp) if name.endswith("Event")} | {
    name: getattr(dp.dp_event, name) for name in dir(dp.dp_event) if name.endswith("Event")
}
SINGLE = st.one_of(
    st.integers(2, 50).map(lambda n: {"type": "gaussian", "std": str(n)}),
    st.integers(1, 9).map(lambda n: {"type": "gaussian", "rho": f"0.0{n}"}),
    st.integers(2, 50).map(lambda n: {"type": "laplace", "scale": str(n)}),
    st.integers(1, 9).map(lambda n: {"type": "pure", "epsilon": f"0.{n}"}),
)
COUNTED = st.tuples(SINGLE, st.integers(1, 5)).map(lambda pair: {**pair[0], "count": pair[1]})
WRITTEN = st.one_of(COUNTED, st.lists(COUNTED, min_size=2, max_size=3).map(lambda e: {"type": "compose", "events": e}))
STATES = st.sampled_from(["reserved", "committed", "released"])


def read_back(text):
    """The event that the text names; its words are dp-accounting's own and nothing else."""
    return eval(text, {"__builtins__": {}}, NAMES)  # noqa: S307 - what our own function has just written


@settings(max_examples=15)
@given(st.lists(st.tuples(STATES, WRITTEN), max_size=5), st.randoms(use_true_random=False))
def test_what_is_exported_costs_what_was_charged(charges, random):
    canonical = [(state, parse_event(event).to_dict()) for state, event in charges]
    joined = join_charged(canonical)
    again = list(canonical)
    random.shuffle(again)
    assert join_charged(again) == joined
    spent = [event for state, written in charges if state != "released" for event in parse_event(written).events()]
    told = read_back(write_dp_event(joined))
    if not spent:
        assert told == dp.NoOpDpEvent()
        return
    theirs = PLDAccountant().compose(told).get_epsilon(DELTA)
    ours = acc.compose(spent).epsilon(delta=DELTA)
    assert ours.value <= theirs * (1 + 1e-6)
    assert theirs <= ours.value * (1 + 1e-2) + 1e-3


def test_more_charges_than_one_request_may_ask_for_are_exported():
    many = {"type": "gaussian", "std": "1000000", "count": 10**9}
    (joined,) = join_charged([("committed", many)] * 3)
    assert joined["count"] == 3 * 10**9
    (told,) = read_back(write_dp_event([joined])).events
    assert (told.event, told.count) == (dp.GaussianDpEvent(1e6), 3 * 10**9)


def test_a_cost_in_zcdp_is_exported_and_delta_that_is_lost_outright_is_not():
    (told,) = read_back(write_dp_event([{"type": "zcdp", "rho": "0.1", "count": 2}])).events
    assert Fraction(repr(told.event.rho)) == Fraction(1, 10)
    with pytest.raises(ParameterError, match="no event"):
        write_dp_event([{"type": "approximate", "epsilon": "1", "delta": "0.001", "count": 1}])
