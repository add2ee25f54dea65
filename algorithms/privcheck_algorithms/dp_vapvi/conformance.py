"""DP-VAPVI line by line: Qiao & Wang 2022, arXiv:2206.00810, Algorithm 2."""

from __future__ import annotations

from typing import Final

from privcheck.runtime.conformance import Line

_RAISED: Final = "eigenvalues below λ are raised to λ; by the bound E/2 there are none, with probability 1 − δ"
_HALVES: Final = Line(
    number="Algorithm 2, 1",
    says="datasets D and D′ of K users each, ρ, δ, a universal constant C",
    code="dp_vapvi.agent.VapviPrivatizer",
    leaves_open="C, λ and δ",
    takes="0.1 for each",
)
_SAME: Final = Line(
    number="Algorithm 2, 1",
    says="datasets D and D′ of K users each, ρ, δ, a universal constant C",
    code="dp_vapvi.agent.VapviPrivatizer",
    deviates="D = D′: the same users, as section 5 runs it; C, λ and δ, which the paper leaves open, are 0.1",
)
_COMMON: Final = (
    Line(
        number="Algorithm 2, 2",
        says="ρ₀ = ρ/5H; φ₁, φ₂, φ₃, and K₁, K₂ = E/2·I + (Z + Zᵀ)/√2, an own draw for each h (footnote 8)",
        code="dp_vapvi.agent.prepare",
        leaves_open="c₁ and c₂ of E = √(10Hd/ρ)·(2 + (log(5c₁H/δ)/(c₂d))^⅔) (Lemma E.2)",
        takes="an explicit bound on the same norm, E/2 = √v·(2√d + 2√ln(4H/δ)) with v = 5H/4ρ",
    ),
    Line(number="Algorithm 2, 3, 15", says="steps h = H, …, 1", code="dp_vapvi.agent.VapviPass"),
    Line(
        number="Algorithm 2, 4",
        says="Σ̃ = Σφφᵀ + λI + K₁ over D′",
        code="linear.regression.NoisyMatrix",
        deviates=_RAISED,
    ),
    Line(
        number="Algorithm 2, 5",
        says="β̃ = Σ̃⁻¹(Σφ·Ṽ_{h+1}(s′)² + φ₁)",
        code="dp_vapvi.agent.estimate_variance",
    ),
    Line(
        number="Algorithm 2, 6",
        says="θ̃ = Σ̃⁻¹(Σφ·Ṽ_{h+1}(s′) + φ₂)",
        code="dp_vapvi.agent.estimate_variance",
    ),
    Line(
        number="Algorithm 2, 7",
        says="Var = ⟨φ, β̃⟩ in [0, (H − h + 1)²] − (⟨φ, θ̃⟩ in [0, H − h + 1])²",
        code="dp_vapvi.agent.estimate_variance",
    ),
    Line(number="Algorithm 2, 8", says="σ̃² = max{1, Var}", code="dp_vapvi.agent.estimate_variance"),
    Line(
        number="Algorithm 2, 9",
        says="Λ̃ = Σφφᵀ/σ̃² + λI + K₂ over D",
        code="linear.regression.NoisyMatrix",
        deviates=_RAISED,
    ),
    Line(
        number="Algorithm 2, 10",
        says="w̃ = Λ̃⁻¹(Σφ·(r + Ṽ_{h+1}(s′))/σ̃² + φ₃)",
        code="dp_vapvi.agent.plan",
    ),
    Line(
        number="Algorithm 2, 11",
        says="Γ = C√d·‖φ‖ + D/K, D = Õ(H²L/κ + H⁴E√d/κ^{3/2} + H³√d)",
        code="dp_vapvi.agent.plan",
        deviates="D/K is 0 (`offset`): D has no stated constant, and is infinite where κ = 0, as on the paper's own "
        "benchmark",
    ),
    Line(number="Algorithm 2, 12", says="Q̄ = φᵀw̃ − Γ", code="dp_vapvi.agent.plan"),
    Line(number="Algorithm 2, 13", says="Q̂ = min{Q̄, H − h + 1}⁺", code="dp_vapvi.agent.plan"),
    Line(
        number="Algorithm 2, 14",
        says="π̂ = argmax ⟨Q̂, π⟩, Ṽ = max ⟨Q̂, π⟩",
        code="dp_vapvi.agent.plan",
    ),
    Line(number="Algorithm 2, 16", says="the output is π̂", code="dp_vapvi.agent.VapviPass"),
)
SPLIT: Final = (_HALVES, *_COMMON)
UNSPLIT: Final = (_SAME, *_COMMON)
