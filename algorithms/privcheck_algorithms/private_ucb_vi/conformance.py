"""PRIVATE-UCB-VI line by line: Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 2, with its lemmas."""

from __future__ import annotations

from privcheck.runtime.conformance import Line

_BASE = "the base of log K and δ"
_TAKEN = "⌈log₂ K⌉ (ln K with `log=ln`) and 0.1"


def _lines(precision: Line, counts: Line) -> tuple[Line, ...]:
    return (
        Line(number="Algorithm 2, 1", says="C̃, Ñ and Ñ(·, ·, s′) are 0", code="online.agent_env.AgentEnv.keep"),
        precision,
        Line(number="Algorithm 2, 3", says="episodes k = 1, …, K", code="private_ucb_vi.agent.play"),
        Line(number="Algorithm 2, 4–5", says="Ṽ_{H+1} = 0; steps h = H, …, 1", code="private_ucb_vi.agent.plan"),
        Line(
            number="Algorithm 2, 6",
            says="c̃ and P̃ of equation (1): over max{1, Ñ + E₁}",
            code="kernels.optimism.weigh",
        ),
        Line(
            number="Algorithm 2, 7",
            says="β = β^c + β^pv of Lemma 4.1",
            code="kernels.optimism.value_bonus",
        ),
        Line(
            number="Algorithm 2, 8",
            says="Q̃ = c̃ + ΣṼ·P̃ − β, at least 0 and at most H − h + 1",
            code="kernels.optimism.backup",
        ),
        Line(number="Algorithm 2, 9", says="Ṽ = min_a Q̃", code="kernels.optimism.choose"),
        Line(
            number="Algorithm 2, 10",
            says="π = argmin_a Q̃, ties broken arbitrarily",
            code="kernels.optimism.choose",
        ),
        Line(number="Algorithm 2, 11", says="user k acts by π^k", code="kernels.sparse_mdp.roll_greedy"),
        counts,
    )


CENTRAL = _lines(
    Line(
        number="Algorithm 2, 2",
        says="E₁ = (3H/ε)√(8 log³K·log(6SAT/δ)), E₂ with S²AT (Lemma 5.1)",
        code="online.private.privatizer_config",
        leaves_open=_BASE,
        takes=_TAKEN,
    ),
    Line(
        number="Algorithm 2, 12",
        says="counts of [1, k − 1] as sums of the binary tree's noisy P-sums (section 5.1)",
        code="privatizers.counters.close_node",
    ),
)
LOCAL = _lines(
    Line(
        number="Algorithm 2, 2",
        says="E₁ = (3H/ε)√(8K·log(6SAT/δ)), E₂ with S²AT (Lemma 5.4)",
        code="online.private.privatizer_config",
        leaves_open="δ",
        takes="0.1",
    ),
    Line(
        number="Algorithm 2, 12",
        says="sums of all users' bits, each with its own noise (section 5.2)",
        code="privatizers.counters.publish",
    ),
)
