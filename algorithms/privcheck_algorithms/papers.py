"""The papers with audited claims, and their statements about their systems' privacy.

Each paper has a page of findings in the documentation. Comments and READMEs cite it by author and year, with the
paper's own theorem, section, equation and line of a printed algorithm: Qiao & Wang 2022, Sahu 2025, Chowdhury & Zhou
2022, Bai et al. 2024 and Zhou 2022. They are listed, with the baselines, in `docs/reference/papers.md`.

The statements are quoted, from the papers and from the programs they published. Sections are those of the arXiv
versions, which have no page numbers in the available texts; lines are given if a version numbers them.
"""

from __future__ import annotations

from privcheck.declare.statements import Statement
from privcheck.runtime.registry import Paper, rate

OFFLINE = Paper(
    name="offline-rl",
    title="Offline Reinforcement Learning with Differential Privacy",
    authors="Dan Qiao and Yu-Xiang Wang",
    published="NeurIPS 2023, arXiv:2206.00810 (2022)",
    about=(
        "The data are there before anything is learned: trajectories of users, of which one may be replaced by any "
        "other. The algorithm publishes noisy counts of visits and transitions (tabular), or noisy Gram matrices "
        "and sums (linear features), and plans pessimistically from these alone, so that whatever it computes "
        "afterwards costs nothing more. The claims are ρ-zCDP with Gaussian noise and ε-DP with Laplace noise, for "
        "the published statistics and hence for the policy. What can go wrong is the calibration: the sensitivity "
        "that a statistic is given, and how the budget is divided among the statistics."
    ),
    answers=(
        (
            "Appendix G's features are an experiment's. Theorem 4.1 presupposes ‖φ‖ ≤ 1, and dividing them by √7 "
            "changes nothing that is learned: `features=printed` refutes no statement of ours."
        ),
        (
            "The experiments of section 5 use the same users in both halves for simplicity; the claim holds there "
            "too, at 0.89 of the budget."
        ),
    ),
)
LINEAR = Paper(
    name="linear-mdps",
    title="Exploring Differential Privacy in Reinforcement Learning: Towards Optimal Regret Bounds in Linear MDPs",
    authors="Sharan Sahu",
    published="arXiv:2504.09339 (2025), there as: Towards Optimal Differentially Private Regret Bounds in Linear MDPs",
    about=(
        "Users come one after the other, and each follows the policy that was learned from those before. The paper "
        "makes LSVI-UCB++, a weighted least-squares method for linear MDPs, private: Gram matrices and weighted "
        "sums over all users so far are published after every episode, with Gaussian noise. The claim is joint "
        "ρ-zCDP: what everybody else is advised hardly depends on one user, who does see advice of their own. It "
        "follows from the billboard lemma where what is published is private. The paper's printed protocol and the "
        "code that its author published are judged as two further systems, beside two earlier private variants of "
        "LSVI-UCB that it compares itself with."
    ),
    answers=(
        (
            "Step 1 of Algorithm 1 is shorthand, as footnote 8 of Qiao & Wang 2022 is: section 3 says that "
            "independent noise is added to all 4HK statistics. So read, `dp-lsvi-ucb-pp-as-printed` judges a way of "
            "printing; the published program, however, draws once."
        ),
        (
            "The clips of steps 10 and 11 are a slip: with Q̂ and Q̌ in [0, H] the claim holds by a wide margin, as "
            "`dp-lsvi-ucb-pp` shows. The published program has the lower clip of Q̂ (code line 451)."
        ),
        (
            "The programs were written to compare regret, not to be run on anybody's data, and section 4 states no "
            "guarantee for them."
        ),
    ),
)
EPISODIC = Paper(
    name="episodic-mdps",
    title="Differentially Private Regret Minimization in Episodic Markov Decision Processes",
    authors="Sayak Ray Chowdhury and Xingyu Zhou",
    published="AAAI 2022, arXiv:2112.10599 (2021)",
    about=(
        "Users come one after the other, each an episode in a finite MDP. Optimistic value iteration and policy "
        "optimisation learn from three counters: visits, costs and transitions. Under joint DP a trusted curator "
        "keeps them in binary trees of Laplace noise; under local DP every user adds the noise before sending "
        "anything. Both claims are pure ε-DP, a third of ε to each counter. The question is by how much a user "
        "moves a counter if they are replaced by another: of one cell that loses a visit another gains it, so that "
        "stated sensitivities for adding or removing a user are about half of what they have to be. Two published "
        "experiment programs and two baselines are judged as systems of their own."
    ),
    answers=(
        (
            "The four systems that fail do so for one reason: a factor of 2 between adding or removing a user and "
            "replacing one. With twice the noise all four hold, and no rate of the paper changes."
        ),
        (
            "Under the relation of adding or removing a user the stated sensitivities are right. Definition 2.2 "
            "compares sequences that differ on the k-th user, and Definition 2.3 any two trajectories: these are "
            "replacements."
        ),
        ("A refuted Lemma 5.1 leaves Corollary 5.2 unproved, not refuted: actions may show less than counters."),
        (
            "The program's parameters are of the theory's order, as section 6.2 says, and not its constants: its "
            "curves illustrate rates. Its draws, though, are not a constant off: one vector for all cells, or anew on "
            "the same counts in every episode."
        ),
    ),
)
SHUFFLE = Paper(
    name="shuffle-dp",
    title="Near-Optimal Reinforcement Learning with Shuffle Differential Privacy",
    authors="Shaojie Bai, Mohammad Sadegh Talebi, Chengcheng Zhao, Peng Cheng and Jiming Chen",
    published="arXiv:2411.11647v3 (2024)",
    about=(
        "Users send messages through a shuffler, which hides who sent which. Each user adds fair noise bits to "
        "their own bit of every counter, and the server sees only the shuffled messages of a batch, from which it "
        "eliminates policies, stage by stage. The claim is (ε, β)-DP in the shuffle model, between joint and local "
        "DP. Its proof looks at sums of bits. Whether what leaves the shuffler is such a sum depends on what a "
        "message is: `sdp-pe` sends every bit as a separate message, `sdp-pe-as-printed` one integer per user "
        "and counter, which shows its sender's bit where it is larger than all noise could make it. How likely "
        "that is depends on the size of a batch and hence on the number of users K: the verdict changes with K."
    ),
    answers=(
        (
            "At the paper's own size (K = 2·10⁴, H = 6) the printed protocol holds, with the constant 96 that the "
            "proof of Lemma 10 uses. Section V prints τ = O(·): with 12 in place of 96 an integer would show its "
            "sender's bit with probability 4·10⁻³ at that size, which is more than β. The verdict depends on this "
            "constant."
        ),
        (
            "Sending every bit as a separate message, as Cheu et al. 2019 do and as the proof reads, repairs larger "
            "batches without more noise."
        ),
    ),
)
GALLERY = Paper(
    name="gallery",
    title="A gallery of private algorithms from other papers",
    authors="Of many authors",
    published="Each system names its source",
    about=(
        "Mechanisms and learning algorithms that are not about reinforcement learning, or only in part: bandits, "
        "private gradient descent, counters by matrix factorisation, noisy maxima, the sparse-vector technique. "
        "They show that the same declarations, sensitivities and accountants judge them too, and "
        "because some are known to be wrong: Lyu, Su & Li 2017 describe six variants of the sparse-vector "
        "technique, of which four were published with claims that do not hold."
    ),
)
MIXTURE = Paper(
    name="linear-mixture-mdps",
    title="Differentially Private Reinforcement Learning with Linear Function Approximation",
    authors="Xingyu Zhou",
    published="Proceedings of the ACM on Measurement and Analysis of Computing Systems 6(1), 2022, arXiv:2201.07052",
    about=(
        "Users come one after the other in an MDP whose transitions are a mixture of known models, with unknown "
        "weights. Value iteration and policy optimisation estimate the weights from Gram matrices and sums of "
        "features, in binary trees of Gaussian noise, under joint (ε, δ)-DP by the billboard lemma. The claim is "
        "stated up to a constant, which no verdict can be about: it is judged with the constant 1. What makes it "
        "hold with room to spare are sensitivities that are stated for the worst feature at every step at once."
    ),
    answers=(
        (
            "The theorem says O(ε, δ), and any constant makes it true: that it holds with the constant 1 is more than "
            "is claimed."
        ),
    ),
)


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
    where="Qiao & Wang 2022, arXiv:2206.00810, section 4; its proof is Lemma E.1",
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
NOT_AT_HAND = "its own text was not available; noise and constants are those of the description"

# What the papers' theorems promise, T = KH written out; users of an offline agent are n
_TABLE_1 = "Chowdhury & Zhou 2022, Table 1"
VI_CENTRAL_RATE = rate(_TABLE_1, "S 1/2, A 1/2, H 2, K 1/2", "S 2, A 1, H 3, K 0, epsilon -1")
VI_LOCAL_RATE = rate(_TABLE_1, "S 1/2, A 1/2, H 2, K 1/2", "S 2, A 1, H 3, K 1/2, epsilon -1")
PO_CENTRAL_RATE = rate(_TABLE_1, "S 1, A 1/2, H 2, K 1/2", "S 2, A 1, H 3, K 0, epsilon -1")
PO_LOCAL_RATE = rate(_TABLE_1, "S 1, A 1/2, H 2, K 1/2", "S 2, A 1, H 3, K 1/2, epsilon -1")
_TABLE_I = "Bai et al. 2024, Table I"
DP_UCBVI_CENTRAL_RATE = rate(_TABLE_I, "S 1/2, A 1/2, H 3/2, K 1/2", "S 2, A 1, H 3, K 0, epsilon -1")
DP_UCBVI_LOCAL_RATE = rate(_TABLE_I, "S 1/2, A 1/2, H 3/2, K 1/2", "S 2, A 1, H 3, K 1/2, epsilon -1")
SDP_PE_RATE = rate(_TABLE_I, "S 1/2, A 1/2, H 3/2, K 1/2", "S 3, A 1, H 6, K 0, epsilon -1")
# Section 5 of the paper prints K^(3/4) for the same term.
DP_LSVI_RATE = rate("Sahu 2025, Theorem 3.2", "d 1, H 3/2, K 1/2", "d 7/6, H 9/2, K 1/2, epsilon -1")
LUYO_RATE = rate("Sahu 2025, abstract", "d 3/2, H 2, K 1/2", "d 8/5, H 11/5, K 3/5, epsilon -2/5")
NGO_RATE = rate("Sahu 2025, abstract", "d 3/2, H 2, K 1/2", "d 5/4, H 3, K 1/2, epsilon -1/2")
# The main terms depend on the instance: only their n is an exponent.
DP_APVI_RATE = rate("Qiao & Wang 2022, Theorem 3.4", "n -1/2", "S 1, H 5/2, n -1, rho -1/2")
DP_APVI_LAPLACE_RATE = rate("Qiao & Wang 2022, section 3", "n -1/2", "S 1, H 3, n -1, epsilon -1")
DP_VAPVI_RATE = rate("Qiao & Wang 2022, Theorem 4.1", "n -1/2", "d 1, H 11/2, n -1, rho -1/2")
LINOPT_RATE = rate("Zhou 2022, Theorem 6.5", "d 1, H 2, K 1/2", "d 7/4, H 5/2, K 1/2, epsilon -1/2")
