"""DP-LSVI-UCB++ line by line: Sahu 2025, arXiv:2504.09339, Algorithm 1, with its lemmas, under `constants=printed`."""

from __future__ import annotations

from typing import Final

from privcheck.runtime.conformance import Line

LINES: Final = (
    Line(
        number="Algorithm 1, 1",
        says="ρ₀ = ρ/4HK; φ₁, φ₂ ~ N(0, 2H²/ρ₀), φ₃ ~ N(0, 2H⁴/ρ₀), K₁ = (Z + Zᵀ)/√2; Λ̃₀ = Λ̃₁ = 2λ̃I",
        code="linear.lsvi_plus_plus.draw",
        deviates="`dp-lsvi-ucb-pp` draws anew for each (k, h), as section 3 says and Theorem A.1 composes; "
        "`dp-lsvi-ucb-pp-as-printed` draws once, a vector and a matrix for each h, where one of each for all h is "
        "printed",
    ),
    Line(
        number="Algorithm 1, 2",
        says="Q̂₀ = H, Q̌₀ = 0",
        code="linear.lsvi_plus_plus.start",
    ),
    Line(
        number="Algorithm 1, 3–4, 21, 28–29",
        says="episodes k = 1, …, K; steps h = H, …, 1 are planned",
        code="linear.lsvi_plus_plus.publish",
        deviates="nothing is released before user 1: ŵ, w̌ and w̄ of episode 1, which are noise alone, are 0",
    ),
    Line(
        number="Algorithm 1, 5",
        says="ŵ = Λ̃⁻¹(Σ σ̄⁻²φ·V̂_{h+1}(s′) + φ₁)",
        code="linear.lsvi_plus_plus.regress",
    ),
    Line(
        number="Algorithm 1, 6",
        says="w̌ = Λ̃⁻¹(Σ σ̄⁻²φ·V̌_{h+1}(s′) + φ₂)",
        code="linear.lsvi_plus_plus.regress",
    ),
    Line(
        number="Algorithm 1, 7",
        says="w̄ = Λ̃⁻¹(Σ σ̄⁻²φ·V̂_{h+1}(s′)² + φ₃)",
        code="linear.lsvi_plus_plus.regress",
    ),
    Line(
        number="Algorithm 1, 8",
        says="V̄ar = [w̄ᵀφ] in [0, H²] − ([ŵᵀφ] in [0, H²])²",
        code="linear.lsvi_plus_plus.spread",
    ),
    Line(
        number="Algorithm 1, 9",
        says="a new plan if det Λ̃_{k,h′} ≥ 2·det Λ̃_{k_last,h′} for some h′",
        code="linear.lsvi_plus_plus.publish",
    ),
    Line(
        number="Algorithm 1, 10",
        says="Q̂ = min{r + ŵᵀφ + β̂‖φ‖, Q̂ of before, H}",
        code="linear.lsvi_plus_plus.renew",
        deviates="max{0, ·} as well, which the sensitivities of Theorem A.1 presuppose",
    ),
    Line(
        number="Algorithm 1, 11",
        says="Q̌ = min{r + w̌ᵀφ + β̌‖φ‖, Q̌ of before, 0}",
        code="linear.lsvi_plus_plus.renew",
        deviates="max{r + w̌ᵀφ − β̌‖φ‖, Q̌ of before, 0}, as He et al. 2023 and Lemma B.5 have it; printed are the signs "
        "of optimism, with which no Q̌ is above 0",
    ),
    Line(
        number="Algorithm 1, 12",
        says="k_last = k, in the loop over h",
        code="linear.lsvi_plus_plus.renew",
        deviates="after the loop, once for all steps: in it, the test of line 9 would fail for every step after the "
        "first, and step H alone would ever be planned anew",
    ),
    Line(
        number="Algorithm 1, 13–17",
        says="else Q̂ and Q̌ stay as they are",
        code="linear.lsvi_plus_plus.publish",
    ),
    Line(
        number="Algorithm 1, 18–19",
        says="V̂ = max_a Q̂ and V̌ = max_a Q̌",
        code="linear.lsvi_plus_plus.renew",
    ),
    Line(
        number="Algorithm 1, 20",
        says="π = argmax_a Q̂",
        code="linear.lsvi_plus_plus.renew",
    ),
    Line(
        number="Algorithm 1, 22–23",
        says="user k takes argmax_a Q̂ at every step",
        code="linear.lsvi_plus_plus.play",
    ),
    Line(
        number="Algorithm 1, 24",
        says="σ = √(V̄ar + E + D + H), E and D of Lemma B.3, which reads ŵ, w̌, β̂ and β̄",
        code="linear.lsvi_plus_plus.doubts",
    ),
    Line(
        number="Algorithm 1, 25",
        says="σ̄ = max{σ, H, 2d³H²·‖φ‖^½}",
        code="linear.lsvi_plus_plus.spread",
    ),
    Line(
        number="Algorithm 1, 26",
        says="Λ̃_{k+1} = Λ̃_k + σ̄⁻²φφᵀ + K₁",
        code="linear.lsvi_plus_plus.release_gram",
        deviates="K₁ is in an output once, as Lemma A.1 and Lemma B.1 have it, and not once more in every episode; "
        "eigenvalues below λ̃ are raised to it, of which Lemma A.1 says that there are none",
    ),
    Line(
        number="Algorithm 1, 27",
        says="the next state is received",
        code="linear.lsvi_plus_plus.play",
    ),
    Line(
        number="Lemma A.1",
        says="λ̃ = √(8dHK/ρ)·(2 + (log(5c₁H/δ)/(c₂d))^⅔), L = 4H√(dHK/ρ·log(10dKH/δ))",
        code="linear.players.printed_constants",
        leaves_open="c₁, c₂ and δ",
        takes="1, 1 and 0.1",
    ),
    Line(
        number="Theorem 3.2",
        says="β̂ = β̌ = O(HL√(dλ̃) + √(d³H²log²(HK⁴L²d/(δλ̃)))), β̄ = O(H²L²√(dλ̃) + √(d³H⁴log²(…)))",
        code="linear.players.printed_constants",
        leaves_open="the constants of O(·)",
        takes="1",
    ),
)
