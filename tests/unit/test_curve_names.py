"""Names of generated falling curves stay in the picture, one each, and the outermost curve's is not left of it."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from privcheck.reports.plots import CurveName, name_curves


def curve(name, scale, start):
    xs = [k / 10 for k in range(91)]
    return CurveName(text=name, colour="black", x=xs, y=[max(start * math.exp(-((x / scale) ** 2)), 1e-10) for x in xs])


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0.3, 100), st.floats(1e-3, 1)), min_size=1, max_size=3))
def test_every_name_is_written_once_and_inside(shapes):
    axes = Figure().add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(1e-8, 2)
    axes.set_xlim(0, 9)
    curves = [curve(f"curve {k}", *shape) for k, shape in enumerate(shapes)]
    name_curves(axes, curves, size=10)
    assert sorted(text.get_text() for text in axes.texts) == [one.text for one in curves]
    for text in axes.texts:
        x, y = text.get_position()
        assert 0 <= x <= 9
        assert 1e-8 <= y <= 2


@pytest.mark.parametrize(("scale", "side"), [(1.0, "left"), (1000.0, "right")])
def test_a_curve_that_falls_is_named_on_its_right_and_a_flat_one_below_its_end(scale, side):
    axes = Figure().add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(1e-8, 2)
    axes.set_xlim(0, 9)
    name_curves(axes, [curve("one", scale, 0.5)], size=10)
    assert axes.texts[0].get_ha() == side
