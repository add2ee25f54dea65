"""Outputs that are drawn too often, found without sorting whole rows, and by counting whole rows."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.relations import AddRemoveOne
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import symbol
from privcheck.verification import stated_prices

epsilon = symbol("epsilon", "positive")


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([2, 3, 5, 40]))
@settings(max_examples=100)
def test_rows_that_repeat_are_among_the_likely_ones(seed, width, values):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, values, (200, width)).astype(np.float64)
    rows[:: int(rng.integers(2, 30))] += rng.random()  # and some that hardly anybody shares
    often = {row for row, count in Counter(map(tuple, rows)).items() if count >= stated_prices._REPEATED}
    likely = stated_prices._repeat_somewhere(rows)
    assert {place for place, row in enumerate(rows) if tuple(row) in often} <= set(likely.tolist())
    assert (np.diff(likely) > 0).all()


def test_of_a_density_no_row_is_likely_to_repeat():
    assert stated_prices._repeat_somewhere(np.random.default_rng(0).normal(size=(5_000, 3))).size == 0


@pytest.mark.parametrize("atom", [0.0, 0.01])
def test_an_atom_is_found_wherever_it_stands_among_continuous_outputs(atom):
    """Some 200 of 20 000 draws are the atom, of density 0; a false alarm has a probability of 1e-11."""

    def draw(rng, data, size, **_):
        drawn = rng.normal(size=(size, 3))
        drawn[rng.random(size) < atom] = (1.0, -0.0, 2.0)
        return drawn

    def log_density(outputs, data, **_):
        return -np.square(outputs).sum(axis=1) / 2 - 1.5 * np.log(2 * np.pi) - 12.0

    own = OwnMechanism(
        "outputs", arguments={"epsilon": epsilon}, spread="epsilon", sampler=draw, log_density=log_density,
        price=lambda epsilon, **_: PureDP(epsilon), relation=AddRemoveOne(), neighbours=lambda **_: [((0,), ())],
        words="normal outputs", output="three numbers", source="",
    )  # fmt: skip
    drawn = own.draw(np.random.default_rng(1), (0,), 20_000, {"epsilon": 1.0})
    found = stated_prices._find_equals(own, drawn, (0,), {"epsilon": 1.0})
    assert ("draws are equal" in found) == (atom > 0)
