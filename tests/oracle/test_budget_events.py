"""Events as JSON, over generated ones: the canonical form says the same, and costs are those of textbook formulas."""

import hashlib
import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.errors import ParameterError
from privcheck.ledger import parse_event, rows
from privcheck.ledger.exact import read_fraction, round_up, write_number

digits = st.integers(1, 10**9)
numbers = st.builds(lambda n, places: Fraction(n, 10**places), digits, st.integers(0, 12))
counts = st.integers(1, 10**9)


def spellings(number):
    """The ways in which one may write a decimal."""
    text = write_number(number)
    return [text, Decimal(text), f"0{text}", f"{text}{'0' if '.' in text else '.0'}", f"{Decimal(text):e}"]


EVENTS = {
    # what is written, from two numbers a and b → Σρ, Σμ², Σε of one, None where there is none or it is no fraction
    "gaussian": (lambda a, b: {"std": b, "sensitivity": a}, lambda a, b: ((a / b) ** 2 / 2, (a / b) ** 2, None)),
    "by rho": (lambda a, _: {"type": "gaussian", "rho": a}, lambda a, _: (a, 2 * a, None)),
    "by mu2": (lambda a, _: {"type": "gaussian", "mu2": a}, lambda a, _: (a / 2, a, None)),
    "gdp": (lambda a, _: {"mu2": a}, lambda a, _: (a / 2, a, None)),
    "zcdp": (lambda a, _: {"rho": a}, lambda a, _: (a, None, None)),
    "laplace": (lambda a, b: {"scale": b, "sensitivity": a}, lambda a, b: (None, None, a / b)),
    "by epsilon": (lambda a, _: {"type": "laplace", "epsilon": a}, lambda a, _: (None, None, a)),
    "pure": (lambda a, _: {"epsilon": a}, lambda a, _: (None, None, a)),
}


@given(st.sampled_from(sorted(EVENTS)), numbers, numbers, counts, st.randoms(use_true_random=False))
def test_costs_are_exact_however_the_numbers_are_written(name, a, b, count, choose):
    if not Fraction(1, 10**6) < a / b < 10**3:
        b = a
    write, price = EVENTS[name]
    plain = {"type": name, **write(a, b)}
    spelt = {k: choose.choice(spellings(v)) if isinstance(v, Fraction) else v for k, v in plain.items()}
    event = parse_event({**spelt, "count": count})
    assert event == parse_event(json.loads(json.dumps(event.to_dict())))
    assert event.to_dict() == parse_event({**plain, "count": count}).to_dict()
    for unit, one in zip(("rho", "mu2", "epsilon"), price(a, b), strict=True):
        if one is not None:
            assert event.cost(unit).amount == round_up(one * count)
    if name == "zcdp":
        with pytest.raises(ParameterError, match="no finite cost"):
            event.cost("mu2")


@settings(max_examples=30)  # each takes about a second
@given(st.lists(st.tuples(numbers.filter(lambda x: x < 50), st.integers(1, 9)), min_size=1, max_size=8))
def test_several_events_cost_their_sum_and_pure_ones_no_less_than_they_leak(parts):
    events = [{"type": "pure", "epsilon": e, "count": n} for e, n in parts]
    whole = parse_event({"type": "compose", "events": events})
    assert whole.cost("epsilon").amount == sum((e * n for e, n in parts), Fraction(0))
    floor = math.fsum(float(e) * math.tanh(float(e) / 2) * n for e, n in parts)  # KL of randomised response
    assert floor * (1 - 1e-12) <= float(whole.cost("rho").amount) <= floor * (1 + 1e-12) + 1e-15


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=10**9))
def test_numbers_are_written_exactly(number):
    assert Fraction(write_number(number)) == number
    if number == 0 or number > Fraction(1, 10**30):
        assert read_fraction("x", write_number(number)) == number or len(write_number(number)) > 40


@given(st.text(max_size=60) | st.binary(max_size=60) | st.floats() | st.none() | st.lists(st.integers(), max_size=3))
def test_nothing_else_is_an_event(given_for_one):
    with pytest.raises(ParameterError):
        parse_event(given_for_one)


def test_a_rows_hash_is_that_of_all_its_fields_in_one_canonical_text():
    """Written out by hand: what was hashed once is hashed the same for ever."""
    body = {"state": "committed", "event": {"type": "gaussian", "rho": "0.1", "count": 1}, "balance": {"ä": [None]}}
    fields = {
        "dataset": "d", "seq": 7, "kind": "charge", "grant": "G", "charge": None, "actor": "otto", "key": 'k"ö',
        "held": 2**61, "lost": 0, "body": body, "at": "2027-01-31T12:00:00.000000Z",
    }  # fmt: skip
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    parts = ["0123", text]
    raw = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    assert rows.seal(prev="0123", **fields).hash == hashlib.blake2b(raw, digest_size=32).hexdigest()
