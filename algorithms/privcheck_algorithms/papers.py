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
)
LINEAR = Paper(
    name="linear-mdps",
    title="Exploring Differential Privacy in Reinforcement Learning: Towards Optimal Regret Bounds in Linear MDPs",
    authors="Sharan Sahu",
    published="arXiv:2504.09339 (2025), there as: Towards Optimal Differentially Private Regret Bounds in Linear MDPs",
)
EPISODIC = Paper(
    name="episodic-mdps",
    title="Differentially Private Regret Minimization in Episodic Markov Decision Processes",
    authors="Sayak Ray Chowdhury and Xingyu Zhou",
    published="AAAI 2022, arXiv:2112.10599 (2021)",
)
SHUFFLE = Paper(
    name="shuffle-dp",
    title="Near-Optimal Reinforcement Learning with Shuffle Differential Privacy",
    authors="Shaojie Bai, Mohammad Sadegh Talebi, Chengcheng Zhao, Peng Cheng and Jiming Chen",
    published="arXiv:2411.11647v3 (2024)",
)
GALLERY = Paper(
    name="gallery",
    title="A gallery of private algorithms from other papers",
    authors="Of many authors",
    published="Each system names its source",
)
MIXTURE = Paper(
    name="linear-mixture-mdps",
    title="Differentially Private Reinforcement Learning with Linear Function Approximation",
    authors="Xingyu Zhou",
    published="Proceedings of the ACM on Measurement and Analysis of Computing Systems 6(1), 2022, arXiv:2201.07052",
)
