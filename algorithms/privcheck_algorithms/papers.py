"""The papers whose claims are judged; each has a page of findings in the documentation.

Comments and READMEs cite them by author and year, with the paper's own theorem, section, equation and line of a printed
algorithm: Qiao & Wang 2022, Sahu 2025, Chowdhury & Zhou 2022, Bai et al. 2024 and Zhou 2022. They are listed,
with the baselines, in `docs/reference/papers.md`.
"""

from __future__ import annotations

from privcheck.registry import Paper

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
            "`dp-lsvi-ucb-pp` shows. The published program has the lower clip of Q̂ (line 451)."
        ),
        (
            "The programs were written to compare regret, not to be run on anybody's data, and section 4 states no "
            "guarantee of them."
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
        "message is: `sdp-pe` sends every bit as a message of its own, `sdp-pe-as-printed` one integer per user "
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
            "Sending every bit as a message of its own, as Cheu et al. 2019 do and as the proof reads, mends larger "
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
        "They are here to show that the same declarations, sensitivities and accountants judge them too, and "
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
