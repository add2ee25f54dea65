"""DP-APVI line by line: Qiao & Wang 2022, arXiv:2206.00810, Algorithm 1 and equations (2) to (5), rewards known."""

from __future__ import annotations

from privcheck.runtime.conformance import Line


def _lines(bound: Line) -> tuple[Line, ...]:
    return (
        Line(
            number="Algorithm 1, 1",
            says="C₁ = √2, C₂ = 16, C > 1",
            code="dp_apvi.agent.prepare",
            leaves_open="C and δ",
            takes="2 and 0.1",
        ),
        bound,
        Line(
            number="equation (2)",
            says="n′ = {n + noise}⁺",
            code="dp_apvi.kernels.private_total",
        ),
        Line(
            number="equation (3)",
            says="ñ(s, a, ·) ≥ 0 nearest to n′ in the largest error, with |Σñ − n′(s, a)| ≤ E/2; ñ(s, a) is its sum",
            code="dp_apvi.kernels.private_counts",
        ),
        Line(
            number="equation (5)",
            says="P̃ = ñ(s, a, s′)/ñ(s, a) if ñ(s, a) > E, else 1/S",
            code="dp_apvi.kernels.cell",
        ),
        Line(number="Algorithm 1, 3, 9", says="steps h = H, …, 1", code="dp_apvi.kernels.passes"),
        Line(number="Algorithm 1, 4", says="Q̃ = r + P̃·Ṽ_{h+1}", code="dp_apvi.kernels.cell"),
        Line(
            number="Algorithm 1, 5",
            says="Γ = C₁√(Var·ι/(ñ − E)) + C₂SHEι/ñ if ñ > E, else CH",
            code="dp_apvi.kernels.cell",
        ),
        Line(number="Algorithm 1, 6", says="Q̂ = Q̃ − Γ", code="dp_apvi.kernels.cell"),
        Line(number="Algorithm 1, 7", says="Q̄ = min{Q̂, H − h + 1}⁺", code="dp_apvi.kernels.cell"),
        Line(
            number="Algorithm 1, 8",
            says="π̂ = argmax ⟨Q̄, π⟩, Ṽ = ⟨Q̄, π̂⟩",
            code="dp_apvi.kernels.step",
        ),
        Line(number="Algorithm 1, 10", says="the output is π̂", code="dp_apvi.agent.plan"),
    )


GAUSSIAN = _lines(
    Line(
        number="Algorithm 1, 2",
        says="E = 4√(H log(4HS²A/δ)/ρ), ι = log(HSA/δ), Ṽ_{H+1} = 0",
        code="dp_apvi.agent.noise_bound",
    )
)
LAPLACE = _lines(
    Line(
        number="Algorithm 1, 2",
        says="E_ε = Õ(H/ε) (section 3), ι = log(HSA/δ), Ṽ_{H+1} = 0",
        code="dp_apvi.agent.noise_bound",
        leaves_open="E_ε's constant and logarithm",
        takes="2·(4H/ε)·log(2HS²A/δ), the union bound for Laplace noise",
    )
)
