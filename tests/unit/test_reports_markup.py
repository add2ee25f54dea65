"""Formulas: only MathML reaches a page, from SymPy's MathML and from the declarations' LaTeX."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.declare.statistics import RewardSums, TransitionCounts, VisitCounts
from privcheck.reports.markup import latex_to_mathml, safe_mathml
from privcheck.terms.symbols import A, H, S, delta, epsilon, exp, log, maximum, rho, sqrt

EXPRESSIONS = (
    rho / 2,
    sqrt(2 * H),
    epsilon + exp(-1 * epsilon) - 1,
    maximum(H, S),
    rho + 2 * sqrt(rho * log(1 / delta)),
    H**S,
)


def parse(markup):
    return ET.fromstring(markup)  # noqa: S314 - our own output


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_what_sympy_writes_is_accepted(expression):
    from_mathml = safe_mathml(expression.mathml())
    from_latex = safe_mathml(latex_to_mathml(expression.latex()))
    assert from_mathml is not None
    assert from_latex is not None
    assert set("".join(parse(from_mathml).itertext())) >= set(expression.symbols & {"H", "S", "A"})


@pytest.mark.parametrize(
    "statistic", [VisitCounts(H, S, A), TransitionCounts(H, S, A), RewardSums(H, S, A)], ids=lambda s: s.name
)
def test_every_statistic_and_noise_law_can_be_drawn(statistic):
    for noise in (r"\mathcal{N}\left(0,\ \frac{2 H}{\rho}\right)", r"\mathrm{Lap}\left(\frac{4 H}{\epsilon}\right)"):
        assert safe_mathml(latex_to_mathml(rf"{statistic.latex} + {noise}")) is not None


def test_named_entities_and_fences_of_older_sympy():
    assert safe_mathml("<mo>&InvisibleTimes;</mo>") == "<math><mo>\u2062</mo></math>"
    assert safe_mathml("<mi>&ExponentialE;</mi>") == "<math><mi>e</mi></math>"
    assert safe_mathml("<mfenced><mi>x</mi></mfenced>") == "<math><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow></math>"
    assert safe_mathml("<mo>&lt;</mo>") == "<math><mo>&lt;</mo></math>"
    assert safe_mathml("<mo>&LT;</mo>") == "<math><mo>&lt;</mo></math>"


def test_namespace_and_display():
    source = '<math xmlns="http://www.w3.org/1998/Math/MathML" onload="x()"><mi>x</mi></math>'
    assert safe_mathml(source, block=True) == '<math display="block"><mi>x</mi></math>'


@pytest.mark.parametrize(
    "source",
    [
        "<script>steal()</script>",
        "<mi>x</mi><script>steal()</script>",
        "<mtext><img src=x onerror=steal()></mtext>",
        "<mtext><mi>x</mi></mtext>",
        "<math><annotation-xml encoding='text/html'><b>x</b></annotation-xml></math>",
        "<maction actiontype='statusline#http://x'><mi>x</mi></maction>",
        "<svg><mi>x</mi></svg>",
        "<math><math><mi>x</mi></math></math>",
        "</math><script>steal()</script><math>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><math><mi>&b;</mi></math>",
        "<mi>&nosuchentity;</mi>",
        "<!-- --><mi>x</mi>",
        "<mi><![CDATA[<script>]]></mi>",
        "<?xml-stylesheet href='x'?><mi>x</mi>",
        "<mi>x</mi> and text",
        "<mrow>" * 100 + "</mrow>" * 100,
        "<mi>\x00</mi>",
        "plain text",
        "",
        "   ",
        None,
        7,
        ["<mi>x</mi>"],
    ],
)
def test_anything_else_is_refused(source):
    assert safe_mathml(source) is None


@pytest.mark.parametrize(
    "attribute",
    ["href='javascript:x()'", "style='x'", "class='x'", "onclick='x()'", "id='verdict'", "width='1\" onload=\"x()'"],
)
def test_attributes_are_dropped(attribute):
    assert safe_mathml(f"<mrow {attribute}><mi>x</mi></mrow>") == "<math><mrow><mi>x</mi></mrow></math>"


def test_harmless_attributes_stay():
    assert (
        safe_mathml("<mo fence='true' stretchy='true'>(</mo>") == '<math><mo fence="true" stretchy="true">(</mo></math>'
    )


@pytest.mark.parametrize(
    ("source", "mathml"),
    [
        (r"x'^2_i", "<msubsup><mrow><mi>x</mi><mtext>′</mtext></mrow><mi>i</mi><mn>2</mn></msubsup>"),
        (r"\tilde{x}_h", '<msub><mover accent="true"><mrow><mi>x</mi></mrow><mo>˜</mo></mover><mi>h</mi></msub>'),
        (r"\check V", '<mover accent="true"><mi>V</mi><mo>ˇ</mo></mover>'),
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),  # digit by digit, as TeX does
        (r"\text{a < b}", "<mtext>a &lt; b</mtext>"),
        (r"a < b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
    ],
)  # fmt: skip
def test_latex(source, mathml):
    assert latex_to_mathml(source) == mathml


@pytest.mark.parametrize(
    "source",
    ["", "{", "}", "_", "^2", "x^a^b", r"\right)", r"\left(x", r"\left a x\right)", r"\frac{1}", r"\sqrt[3]{x}",
     r"\href{javascript:x}{y}", r"\def\x{}", "%", "a & b", "$x$", "\\", "{" * 500, r"\begin{align*}x\end{align*}"],
)  # fmt: skip
def test_latex_beyond_the_little_that_is_known(source):
    assert latex_to_mathml(source) is None


@given(st.text(alphabet=r"\{}_^'()|<>&x2 ") | st.text())
def test_whatever_is_written_the_page_gets_mathml_or_nothing(source):
    for markup in (safe_mathml(source), safe_mathml(latex_to_mathml(source))):
        if markup is not None:
            tags = {element.tag for element in parse(markup).iter()}
            assert all(tag.startswith("m") for tag in tags)
