"""Private-LinOpt-VI and -PO line by line: Zhou 2022, arXiv:2201.07052, Algorithms 1 and 2, section 6's PRIVATIZER."""

from __future__ import annotations

from privcheck.runtime.conformance import Line

_PRIVATIZER = (
    Line(
        number="Lemma 3.1",
        says="β_p and β_r from λ_min, λ_max and ν",
        code="private_linopt.agent.constants",
        leaves_open="α",
        takes="0.025, a failure probability of 4α = 0.1",
    ),
    Line(
        number="Theorem 6.5's proof",
        says="λ_min = Σ, λ_max = 3Σ and γ = 2Σ with Σ = σ√m·(4√d + √(8 ln(8KH/α))), m = ⌈log K⌉",
        code="private_linopt.agent.norm_bound",
        leaves_open="the base of log K",
        takes="2",
    ),
)


def _estimates(algorithm: str, first: int) -> tuple[Line, ...]:
    """The lines from θ̂_p to Q, of which line `first` is that of θ̂_p."""
    kernel = "private_linopt.kernels."
    return (
        Line(
            number=f"{algorithm}, {first}–{first + 1}",
            says="θ̂_p = Λ_p⁻¹u_p and θ̂_r = Λ_r⁻¹u_r",
            code=f"{kernel}regress",
        ),
        Line(
            number=f"{algorithm}, {first + 2}", says="φ = ∫ψ(s′ | s, a)·V_{h+1}(s′)", code="kernels.mixtures.integrate"
        ),
        Line(
            number=f"{algorithm}, {first + 3}–{first + 4}",
            says="Γ_p = β_p·(φᵀΛ_p⁻¹φ)^½ and Γ_r = β_r·(ϕᵀΛ_r⁻¹ϕ)^½",
            code=f"{kernel}regress",
        ),
        Line(
            number=f"{algorithm}, {first + 5}",
            says="Q = ϕᵀθ̂_r + φᵀθ̂_p + Γ_p + Γ_r, at least 0 and at most H − h + 1",
            code=f"{kernel}plan",
        ),
    )


def _start(number: str) -> Line:
    return Line(
        number=number,
        says="Λ_p, Λ_r, u_p and u_r are 0",
        code="private_linopt.kernels.regress",
        deviates="Λ¹ = γI: 0 has no inverse for the next lines, and γI is the shift of section 6.1 without any noise",
    )


def _counters(number: str) -> Line:
    return Line(
        number=number,
        says="Λ and u of the next episode: P-sums that cover [1, k], with noise, and γI (section 6.1)",
        code="private_linopt.kernels.publish",
        deviates="eigenvalues of Λ below γ/2 = λ_min are raised to it; by the bound Σ there are none, with probability "
        "1 − α/2",
    )


VI = (
    _start("Algorithm 1, 1"),
    Line(number="Algorithm 1, 2", says="episodes k = 1, …, K", code="private_linopt.kernels.play"),
    Line(number="Algorithm 1, 3–4", says="V_{H+1} = 0; steps h = H, …, 1", code="private_linopt.kernels.plan"),
    *_estimates("Algorithm 1", 5),
    Line(number="Algorithm 1, 11", says="V = max_a Q", code="private_linopt.kernels.choose_best"),
    Line(number="Algorithm 1, 12", says="π = argmax_a Q", code="private_linopt.kernels.choose_best"),
    Line(number="Algorithm 1, 13", says="user k acts by π^k", code="kernels.sparse_mdp.roll_greedy"),
    _counters("Algorithm 1, 14"),
    *_PRIVATIZER,
)
PO = (
    _start("Algorithm 2, 1"),
    Line(number="Algorithm 2, 2", says="π¹ is uniform", code="private_linopt.agent.MixtureEnv.start"),
    Line(number="Algorithm 2, 3", says="episodes k = 1, …, K", code="private_linopt.kernels.play"),
    Line(number="Algorithm 2, 4–5", says="V_{H+1} = 0; steps h = H, …, 1", code="private_linopt.kernels.plan"),
    *_estimates("Algorithm 2", 6),
    Line(number="Algorithm 2, 12", says="V = ⟨Q, π^k⟩", code="private_linopt.kernels.evaluate"),
    Line(number="Algorithm 2, 13", says="user k acts by π^k", code="kernels.sparse_mdp.roll_mixed"),
    _counters("Algorithm 2, 14"),
    Line(
        number="Algorithm 2, 15",
        says="π^{k+1} ∝ π^k·exp(ηQ), η = √(2 log A/(HT)), T = KH (proof of Theorem 5.1)",
        code="private_linopt.kernels.evaluate",
    ),
    *_PRIVATIZER,
)
