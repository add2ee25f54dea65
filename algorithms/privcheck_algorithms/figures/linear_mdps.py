"""Figure 1 of Sahu 2025: DP-LSVI-UCB++ and its baselines on the synthetic linear MDP."""

from __future__ import annotations

import itertools
from typing import Final

from privcheck.runtime.figures import EPISODES, Figure, Judged, Observation, PaperFigures, Results, Series, Size
from privcheck_algorithms.figures import RECORDED, decide, shares
from privcheck_algorithms.papers import LINEAR

_SOURCE: Final = "Sahu 2025, arXiv:2504.09339, section 4"
_SETTING: Final = (
    "In this MDP, we fix the horizon to be H = 20. … We ran the simulation 10 times and took the average performance."
)
_FULL: Final = Size(given={"H": "20", "K": "10000"}, replicates=10)
_QUICK: Final = Size(given={"H": "20", "K": "1000"}, replicates=2)
_DP, _PLAIN, _LSVI, _LUYO, _NGO = "DP-LSVI-UCB++", "LSVI-UCB++", "LSVI-UCB", "Luyo et al.", "Ngo et al."
_PROGRAM: Final = "DP-LSVI-UCB++, published program"
_OPEN: Final = (
    "The text prints neither the number of episodes nor the budgets nor a constant of any agent, each of which decides."
)
_TAKEN: Final = (
    "K: not printed; 10 000 is taken.",
    "The model's random α and r_h: not printed; model 1 of `linear-synthetic` is taken, features divided by √7.",
    "Confidence radii and ridges: printed up to constants; this package's are taken, tuned on other models.",
    (
        "DP-LSVI-UCB++ is run with fresh noise and values in [0, H], as its theorem needs (`dp-lsvi-ucb-pp`); beside "
        "it, as the published program draws its noise, once (`published-lsvi-ucb-pp`)."
    ),
)


def _best(results: Results) -> Judged:
    ahead = all(results[_DP].end < results[label].end for label in (_LUYO, _NGO, _LSVI))
    said = shares(results, (_DP, _NGO, _LUYO, _LSVI, _PLAIN, _PROGRAM))
    return decide(ahead, f"At the sizes taken, regret as a share of uniform play's: {said}.")


_BUDGETS: Final = tuple(f"DP-LSVI-UCB++, ρ = {rho}" for rho in ("1", "100", "10000"))


def _closer(results: Results) -> Judged:
    ends = [results[label].end for label in _BUDGETS]
    falling = all(after < before for before, after in itertools.pairwise(ends))
    said = shares(results, (_PLAIN, *_BUDGETS))
    return decide(falling, f"At the sizes taken, regret as a share of uniform play's: {said}.")


FIGURE_1A: Final = Figure(
    name="figure-1a",
    title="Figure 1(a), cumulative regret of DP-LSVI-UCB++ and its baselines over episodes",
    where=_SOURCE,
    setting=_SETTING,
    environment="linear-synthetic",
    measure="regret",
    axis=EPISODES,
    lines=(
        Series(label=_DP, algorithm="dp-lsvi-ucb-pp", given={"rho": "1"}),
        Series(label=_PLAIN, algorithm="lsvi-ucb-pp"),
        Series(label=_LSVI, algorithm="lsvi-ucb"),
        Series(label=_LUYO, algorithm="luyo-lsvi-ucb", given={"rho": "1"}),
        Series(label=_NGO, algorithm="ngo-lsvi-ucb", given={"rho": "1"}),
        Series(label=_PROGRAM, algorithm="published-lsvi-ucb-pp", given={"rho": "1"}, judged=False),
    ),
    full=_FULL,
    quick=_QUICK,
    taken=("The fixed privacy budget: not printed; ρ = 1 is taken.", *_TAKEN),
    observations=(
        Observation(
            quotation="From Figure 1a, we can observe the DP-LSVI-UCB++ performs better compared to the previous "
            "state-of-the-art algorithm devised by [Ngo et al. 2022,] and ofcourse also performs better than [Luyo et "
            "al. 2021,]. Additionally, we see that DP-LSVI-UCB++ even being a privatized algorithm, performs better "
            "than the non-private LSVI-UCB.",
            reading="the final regret of DP-LSVI-UCB++ is below that of Ngo et al., Luyo et al. and LSVI-UCB",
            judge=_best,
            undecided=_OPEN,
        ),
    ),
)

FIGURE_1B: Final = Figure(
    name="figure-1b",
    title="Figure 1(b), cumulative regret of DP-LSVI-UCB++ with different privacy budgets over episodes",
    where=_SOURCE,
    setting=_SETTING,
    environment="linear-synthetic",
    measure="regret",
    axis=EPISODES,
    lines=(
        Series(label=_PLAIN, algorithm="lsvi-ucb-pp"),
        *(
            Series(label=label, algorithm="dp-lsvi-ucb-pp", given={"rho": label.rpartition(" ")[2]})
            for label in _BUDGETS
        ),
    ),
    full=_FULL,
    quick=_QUICK,
    taken=("The privacy budgets: not printed; ρ = 1, 100 and 10 000 are taken.", *_TAKEN),
    observations=(
        Observation(
            quotation="Looking at Figure 1b, we see that as we increase the privacy budget of DP-LSVI-UCB++, we get "
            "closer to LSVI-UCB++ and thus with sufficient noise, we can guarantee (ϵ, δ)-JDP that will perform "
            "slightly worse than LSVI-UCB++.",
            reading="the final regret falls with every larger budget",
            judge=_closer,
            undecided=_OPEN,
        ),
    ),
)

FIGURES: Final = PaperFigures(paper=LINEAR, figures=(FIGURE_1A, FIGURE_1B), recorded=RECORDED)
