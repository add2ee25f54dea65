"""The statements that the papers print of their systems' privacy, in their own words, and the programs they published.

Sections are those of the arXiv versions, of which the texts at hand have no pages; lines are given where a version
numbers them.
"""

from __future__ import annotations

from privcheck.statements import Statement

_REPLACED = "datasets that differ in one data point, which is one trajectory"

# Qiao & Wang 2022
THEOREM_3_4 = Statement(
    name="Theorem 3.4",
    quotation="DP-APVI (Algorithm 1) satisfies ρ-zCDP.",
    where="Qiao & Wang 2022, arXiv:2206.00810, section 3",
    neighbours=f"{_REPLACED} (Definitions 2.3 and 2.4)",
)
PURE_APVI = Statement(
    name="Section 3, “Apply Laplace Mechanism”",
    quotation="we can add independent Laplace noises Lap(4H/ε) to each count to achieve ε-DP due to Lemma F.20.",
    where="Qiao & Wang 2022, arXiv:2206.00810, section 3",
    neighbours=f"{_REPLACED} (Definition 2.3)",
)
THEOREM_4_1 = Statement(
    name="Theorem 4.1",
    quotation="DP-VAPVI (Algorithm 2) satisfies ρ-zCDP.",
    where="Qiao & Wang 2022, arXiv:2206.00810, section 4; its proof is Lemma E.1, line 702",
    neighbours=f"{_REPLACED} (Definitions 2.3 and 2.4)",
    assumes=("‖φ(s, a)‖ ≤ 1 (section 2)", "the data are split: each half of the statistics has its own trajectories"),
)

# Sahu 2025
_SEQUENCES = "sequences of users that differ in one user (Definitions 2.1 and 2.3)"
THEOREM_A_1 = Statement(
    name="Theorem A.1",
    quotation="DP-LSVI-UCB++ (Algorithm 1) satisfies (ϵ, δ)-JDP.",
    where="Sahu 2025, arXiv:2504.09339, appendix A",
    neighbours="sequences of users that differ in one user; the other users' actions (Definition 2.2)",
    about="actions",
)
THEOREM_A_1_PROOF = Statement(
    name="Theorem A.1's proof, ρ-zCDP of the statistics",
    quotation="we need to track 4KH statistics so combing the results of each privatized statistic advanced "
    "composition (Lemma 2.2) to conclude that the DP-LSVI-UCB++ is ρ-zCDP.",
    where="Sahu 2025, arXiv:2504.09339, appendix A",
    neighbours=_SEQUENCES,
    assumes=("‖φ(s, a)‖ ≤ 1 (section 2)", "values in [0, H], which steps 10 and 11 do not ensure"),
    disclaimed="Section 3: “We add independent Gaussian noise to the 4HK statistics in DP-LSVI-UCB++ (Algorithm 1).” "
    "Read so, step 1 is shorthand for fresh draws; footnote 8 of Qiao & Wang 2022 uses the same shorthand.",
)

SECTION_4 = Statement(
    name="Section 4's comparison at one budget",
    quotation="We compare our algorithm compared to LSVI-UCB, their differentially private counterparts proposed by "
    "[Luyo et al. 2021, Ngo et al. 2022,], the non-private LSVI-UCB++, and our algorithm DP-LSVI-UCB++ in terms of "
    "cumulative regret with a fixed privacy budget.",
    where="Sahu 2025, arXiv:2504.09339, section 4",
    neighbours=_SEQUENCES,
    disclaimed="The section states no guarantee of the programs: that the budget ρ is one is a reading.",
)

# Chowdhury & Zhou 2022
LEMMA_5_1 = Statement(
    name="Lemma 5.1",
    quotation="For any ε > 0, CENTRAL-PRIVATIZER with parameter 1/ε′ = 3H log K/ε is ε-DP.",
    where="Chowdhury & Zhou 2022, arXiv:2112.10599, section 5.1; proof in the appendix",
    neighbours="sequences of users that differ in a single user, who is a response to the actions (section 2.2)",
)
COROLLARY_5_2 = Statement(
    name="Corollary 5.2",
    quotation="both PRIVATE-UCB-PO and PRIVATE-UCB-VI, if instantiated using CENTRAL-PRIVATIZER with parameter 1/ε′ = "
    "3H log K/ε, satisfy ε-JDP.",
    where="Chowdhury & Zhou 2022, arXiv:2112.10599, section 5.1",
    neighbours="sequences of users that differ on the k-th user; the other users' actions (Definition 2.2)",
    about="actions",
)
LEMMA_5_4 = Statement(
    name="Lemma 5.4",
    quotation="For any ε > 0, LOCAL-PRIVATIZER with parameter 1/ε′ = 3H/ε is ε-LDP.",
    where="Chowdhury & Zhou 2022, arXiv:2112.10599, section 5.2; proof in the appendix",
    neighbours="any two trajectories of one user (Definition 2.3)",
)
FIGURE_2 = Statement(
    name="Figure 2's labels ε",
    quotation="We evaluate both PRIVATE-UCB-PO and PRIVATE-UCB-VI under different privacy budget ε.",
    where="Chowdhury & Zhou 2022, arXiv:2112.10599, section 6.2",
    neighbours="those of Definitions 2.2 and 2.3",
    disclaimed="Section 6.2: “We set all the parameters in our proposed algorithms as the same order as the "
    "theoretical results”. That a label ε is a guarantee of the plotted run is a reading.",
)

# Bai et al. 2024
_BATCHED = "batched datasets that differ in one user's data (section II-B)"
LEMMA_10 = Statement(
    name="Lemma 10",
    quotation="For any ε ∈ (0, 1), β ∈ (0, 1), the Shuffling Privatizer satisfies (ε, β)-SDP.",
    where="Bai et al. 2024, arXiv:2411.11647v3, section V",
    neighbours=_BATCHED,
    assumes=("τ = 96 ln(2/β′)/ε′², the constant of the proof: section V prints the order only",),
)
COROLLARY_11 = Statement(
    name="Corollary 11",
    quotation="For any ε ∈ (0, 1), β ∈ (0, 1), under the Shuffling Privatizer, SDP-PE satisfies (ε, β)-SDP.",
    where="Bai et al. 2024, arXiv:2411.11647v3, section V",
    neighbours=_BATCHED,
    assumes=LEMMA_10.assumes,
)

# Zhou 2022
THEOREM_6_4 = Statement(
    name="Theorem 6.4",
    quotation="For any ε > 0 and δ ∈ (0, 1], both Private-LinOpt-VI and Private-LinOpt-PO can guarantee O(ε, δ)-JDP.",
    where="Zhou 2022, arXiv:2201.07052, section 6.2",
    neighbours="sequences of users that differ in a single user; the other users' actions (section 2)",
    about="actions",
    assumes=("Assumption 1", "the constant of the O(·) is 1: the paper states none"),
)

CHOWDHURY_ZHOU_CODE = "github.com/XingyuZhou989/PrivateTabularRL, commit f4d8a66, src/agent.py"
SAHU_CODE = "github.com/sharansahu/DiffPrivateModelEval, commit e88394b, inst/python"
NOT_AT_HAND = "its own text was not at hand; noise and constants are those of the description"
