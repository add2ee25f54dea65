"""Joined roots have the value of the product that they replace, over generated products; nothing else changes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.reports.markup import latex_to_mathml
from privcheck.reports.wording import EXACT, LATEX, join_roots

_INSIDE = st.sampled_from(["2", "30", "H", "H - 1", "2*H - 1", "3*H**2 - 3*H - 1", "H*(H + 1)"])
_FACTOR = st.one_of(_INSIDE.map("sqrt({})".format), st.sampled_from(["H", "5", "(H + 2)", "sqrt(H)**3"]))


@given(st.lists(_FACTOR, min_size=1, max_size=6), st.sampled_from(["", "/15", " + H", "/sqrt(H)"]))
def test_the_value_is_the_same_and_no_roots_stand_side_by_side(factors, rest):
    text = "*".join(factors) + rest
    joined = join_roots(text, EXACT)
    names = {"__builtins__": {}, "sqrt": math.sqrt, "H": 7}
    assert math.isclose(eval(joined, names), eval(text, names), rel_tol=1e-12)  # noqa: S307 - written above


@given(st.lists(_INSIDE, min_size=1, max_size=6))
def test_a_product_of_roots_is_one_root(insides):
    joined = join_roots("*".join(map("sqrt({})".format, insides)), EXACT)
    assert joined.count("sqrt(") == 1
    assert joined.endswith(")")


@pytest.mark.parametrize(
    ("latex", "joined"),
    [
        (r"\Delta_2 = \sqrt{2} \sqrt{H}", r"\Delta_2 = \sqrt{2 H}"),
        (r"\frac{\sqrt{2} \sqrt{H - 1}}{\sqrt{\rho}}", r"\frac{\sqrt{2 \left(H - 1\right)}}{\sqrt{\rho}}"),
        (r"\sqrt{\frac{2}{H}} x", r"\sqrt{\frac{2}{H}} x"),
        (r"\sqrt{2", r"\sqrt{2"),
        ("n_h(s,a)", "n_h(s,a)"),
    ],
)
def test_latex(latex, joined):
    assert join_roots(latex, LATEX) == joined


def test_joined_roots_are_drawn():
    assert (
        latex_to_mathml(join_roots(r"\sqrt{2} \sqrt{H}", LATEX)) == "<msqrt><mrow><mn>2</mn><mi>H</mi></mrow></msqrt>"
    )
