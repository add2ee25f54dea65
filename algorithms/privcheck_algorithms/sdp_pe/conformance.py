"""SDP-PE line by line: Bai et al. 2024, arXiv:2411.11647v3, Algorithms 1 to 3 and section V, under `preset=paper`."""

from __future__ import annotations

from privcheck.runtime.conformance import Line

_STAGES = (
    Line(
        number="Algorithm 1, initialisation",
        says="ϕ₁ is all deterministic policies, ι = log(2HAK/δ), E of the privatizer",
        code="sdp_pe.batches.settle",
        leaves_open="C, δ and the constant of E = Õ(H/ε)",
        takes="1, 0.1 and four times Chernoff's bound of Lemma 10's proof over all counters and stages",
    ),
    Line(
        number="Algorithm 1, 1–4, 14",
        says="stages b = 1, …, B of L_b = 2^b; the last has (K − 3Σ_{i≤b} L_i)/3",
        code="sdp_pe.declaration.stages",
        deviates="the sum ends with b − 1, since L_b is what it defines; rounded down, so that up to two users send "
        "nothing",
    ),
    Line(
        number="Algorithm 1, 5–6",
        says="crude exploration with L_b users, then fine exploration",
        code="sdp_pe.batches.list_segments",
    ),
    Line(
        number="Algorithm 1, 7–13",
        says="policies go whose value is 2C(√(XAH³ι/L_b) + X³AH⁵Eι/L_b) or more below the best",
        code="sdp_pe.policy_sets.Explicit.eliminate",
    ),
)
_CRUDE = (
    Line(
        number="Algorithm 2, initialisation",
        says="C₁ = 6, 𝒲 is empty, rewards 1_{h,x,a}; P̃ is arbitrary",
        code="sdp_pe.agent.Analyser._explore_crudely",
    ),
    Line(
        number="Algorithm 2, 1–2, 11",
        says="steps h = 1, …, H, each with a dataset of its own",
        code="sdp_pe.agent.Analyser._take_crude",
    ),
    Line(
        number="Algorithm 2, 3–5",
        says="π_{h,x,a} of ϕ visits (x, a) at step h most often in P̃",
        code="sdp_pe.policy_sets.Explicit.find",
    ),
    Line(
        number="Algorithm 2, 6",
        says="their uniform mixture for L₀ = L/H episodes",
        code="sdp_pe.batches.list_segments",
        deviates="L/H is no whole number: users are dealt out as evenly as possible; a step without users has no "
        "shuffler and no part in π₀",
    ),
    Line(
        number="Algorithm 2, 7–8",
        says="the privatizer's Ñ(x, a, x′) and Ñ(x, a) of step h",
        code="sdp_pe.kernels.serve",
    ),
    Line(
        number="Algorithm 2, 9",
        says="𝒲 gains the tuples with Ñ(x, a, x′) ≤ C₁·E·H²ι",
        code="sdp_pe.kernels.estimate",
    ),
    Line(
        number="Algorithm 2, 10",
        says="P̃ of step h from the counts and 𝒲",
        code="sdp_pe.kernels.estimate",
    ),
    Line(
        number="Algorithm 2, 12",
        says="π₀ is the uniform mixture of all π_{h,x,a}",
        code="sdp_pe.agent.Analyser.begin",
    ),
    Line(
        number="Algorithm 2, 13",
        says="𝒲, P̃ and π₀ are handed on",
        code="sdp_pe.agent.Analyser._explore_finely",
    ),
)
_FINE = (
    Line(
        number="Algorithm 3, initialisation",
        says="D is empty, P̃^ref = P̃^cru",
        code="sdp_pe.agent.Analyser.conclude",
    ),
    Line(
        number="Algorithm 3, 1",
        says="π^ref of equation (4): the policy with the least worst coverage number",
        code="sdp_pe.policy_sets.cover",
        deviates="a mixture (Lemma 13), by at most 40 steps of Frank and Wolfe, until the worst ratio is 1.1 times the "
        "least; pairs that π₀ does not reach in P̃^cru are left out",
    ),
    Line(
        number="Algorithm 3, 2",
        says="π^ref for L episodes and π₀ for L episodes",
        code="sdp_pe.batches.list_segments",
    ),
    Line(
        number="Algorithm 3, 3",
        says="both together are one batch of the privatizer",
        code="sdp_pe.kernels.serve",
    ),
    Line(
        number="Algorithm 3, 4",
        says="private counts Ñ(x, a, x′), Ñ(x, a) and R̃(x, a, x′) of all steps",
        code="sdp_pe.kernels.serve",
        deviates="R̃(x, a), as section III-A and equation (3) have it",
    ),
    Line(
        number="Algorithm 3, 5, 8",
        says="steps h of [H]",
        code="sdp_pe.agent.Analyser.conclude",
    ),
    Line(
        number="Algorithm 3, 6",
        says="P̃^ref of step h from the fine counts and the 𝒲 of crude exploration",
        code="sdp_pe.kernels.estimate",
    ),
    Line(
        number="Algorithm 3, 7",
        says="r̃ = R̃/Ñ (equation (3))",
        code="sdp_pe.kernels.estimate_rewards",
        deviates="r̃ is clipped to [0, 1], and 0 where Ñ is 0",
    ),
    Line(
        number="Algorithm 3, 9",
        says="P̃^ref and r̃ are handed on",
        code="sdp_pe.agent.Analyser.conclude",
    ),
    Line(
        number="Definition 5",
        says="a tuple of 𝒲 has probability 0; the rest of a row's mass goes to x†",
        code="sdp_pe.kernels.estimate",
    ),
    Line(
        number="equation (3)",
        says="P̃(x′ | x, a) = Ñ(x, a, x′)/Ñ(x, a)",
        code="sdp_pe.kernels.estimate",
    ),
)


def _section_5(*, integers: bool) -> tuple[Line, ...]:
    apart = "every bit is a separate message, as in Cheu et al. 2019: what the proof analyses"
    return (
        Line(
            number="section V, τ",
            says="ε′ = ε/3H, β′ = β/HXA, τ = O(log(1/β′)/ε′²)",
            code="sdp_pe.declaration._declaration",
            deviates="τ = 96 ln(2/β′)/ε′²: the constant that Lemma 10's proof needs, where section V prints O(·). At "
            "K = 2·10⁴, H = 6 it gives m = 98; with 12, m = 13, and some integer message shows its sender's bit with "
            "probability 4·10⁻³, more than β = 10⁻⁵",
        ),
        Line(
            number="section V, randomizer",
            says="z = bit + Σy: ⌈τ/n⌉ fair bits if n ≤ τ, else one bit of probability τ/2n",
            code="sdp_pe.batches.encode",
            deviates="" if integers else apart,
        ),
        Line(
            number="section V, analyser",
            says="N̈ = Σz − ⌈τ/n⌉·n/2 if n ≤ τ, else Σz − τ/2",
            code="sdp_pe.batches.analyse",
        ),
        Line(
            number="section V, equation (7)",
            says="N̄ ≥ 0 nearest to N̈ in the largest error, with |ΣN̄ − N̈(x, a)| ≤ E/4",
            code="dp_apvi.kernels.private_counts",
            deviates="N̈ is clipped at 0 first, since (7) has no solution where N̈(x, a) < −E/4; of its minimisers the "
            "one nearest to the clipped counts",
        ),
        Line(
            number="section V, Ñ",
            says="Ñ(x, a) = N̄(x, a) + E/2, Ñ(x, a, x′) = N̄(x, a, x′) + E/2X",
            code="sdp_pe.kernels.estimate",
        ),
    )


AS_PRINTED = (*_STAGES, *_CRUDE, *_FINE, *_section_5(integers=True))
APART = (*_STAGES, *_CRUDE, *_FINE, *_section_5(integers=False))
