"""Figure 1 of Qiao & Wang 2022: DP-VAPVI, VAPVI and PEVI on the synthetic linear MDP of Appendix G."""

from __future__ import annotations

import itertools
from typing import Final

from privcheck.runtime.figures import Figure, Judged, Observation, PaperFigures, Results, Series, Size
from privcheck_algorithms.figures import RECORDED, decide, number, share, shares
from privcheck_algorithms.papers import OFFLINE

_SOURCE: Final = "Qiao & Wang 2022, arXiv:2206.00810, section 5 and Appendix G"
_SETTING: Final = "The horizons are fixed to be H = 20. The number of episodes takes value from 5 to 1000."
_PRINTED: Final = {"H": "20", "behaviour": "2"}
_INSTANCES: Final = ({"model": "1"}, {"model": "2"})
_USERS: Final = ("5", "10", "20", "50", "100", "200", "500", "1000")
_FULL: Final = Size(given=_PRINTED, over=_USERS, instances=_INSTANCES, replicates=5)
_QUICK: Final = Size(given=_PRINTED, over=("20", "200", "1000"), instances=_INSTANCES, replicates=2)
_NEAR: Final = 0.1  # "converge": within a tenth of uniform play's gap at the largest n
_THEOREM: Final = "PEVI, its theorem's penalty"
_TAKEN: Final = (
    (
        "The two MDP instances: their random α and r_h are not printed; models 1 and 2 of `linear-synthetic` are "
        "taken, and the lines are means over both. The behaviour is the printed one, action 0 with p = .6."
    ),
    (
        "Features: divided by √7, since Theorem 4.1 presupposes ‖φ‖ ≤ 1, with √7 times the parameters: the same model. "
        "Undivided, a noise that is calibrated to norm 1 would weigh less, by less than a factor of 50 in ρ."
    ),
    (
        "The penalty's constant C and the ridge λ: not printed; .1 is taken for all agents (`C`, `ridge`), which on "
        "other models and data is near the best for PEVI and VAPVI. The constants of E: those that suffice, times 9, "
        "tuned for DP-VAPVI."
    ),
    "Positions from 5 to 1 000: the text prints the ends; 5, 10, 20, 50, 100, 200, 500 and 1 000 are taken.",
)


def _private(*budgets: str) -> tuple[Series, ...]:
    return tuple(
        Series(label=f"DP-VAPVI, ρ = {rho}", algorithm="dp-vapvi-unsplit", given={"rho": rho}) for rho in budgets
    )


_A: Final = _private("1", "10", "100")
_B: Final = _private("0.1", "1", "10", "100", "1000")
_PEVI, _VAPVI = "PEVI", "VAPVI"


def _converges(results: Results) -> Judged:
    assert results.uniform is not None
    room = _NEAR * results.uniform
    near = [one.label for one in _A if results[one.label].end <= results[_VAPVI].end + room]
    said = shares(results, (_VAPVI, *(one.label for one in _A)))
    return decide(bool(near), f"Gap at n = {number(results[_VAPVI].x[-1])} as a share of uniform play's: {said}.")


def _outperforms(results: Results) -> Judged:
    pevi = results[_PEVI]
    won = {one.label: sum(a < b for a, b in zip(results[one.label].mean, pevi.mean, strict=True)) for one in _A}
    most = max(won.values())
    said = shares(results, (_PEVI, *(one.label for one in _A)))
    stuck = results[_THEOREM]
    return decide(
        2 * most > len(pevi.x),
        f"With one penalty constant for both, DP-VAPVI is ahead of PEVI at {most} of {len(pevi.x)} sizes, for the best "
        f"ρ from 1 to 100; at the largest n: {said}. With the √d·H of PEVI's theorem, PEVI keeps its first action at "
        f"these sizes ({share(stuck, results)}), and anything is ahead of it.",
    )


def _closer(results: Results) -> Judged:
    ends = [results[one.label].end for one in _B]
    falling = all(after < before for before, after in itertools.pairwise(ends))
    said = shares(results, (one.label for one in _B))
    return decide(falling, f"Gap at the largest n as a share of uniform play's: {said}.")


FIGURE_1A: Final = Figure(
    name="figure-1a",
    title="Figure 1(a), gap of PEVI, VAPVI and DP-VAPVI against the number of episodes",
    where=_SOURCE,
    setting=_SETTING,
    environment="linear-synthetic",
    measure="gap",
    axis="n",
    lines=(
        Series(label=_PEVI, algorithm="pevi"),
        Series(label=_VAPVI, algorithm="vapvi"),
        *_A,
        Series(label=_THEOREM, algorithm="pevi", given={"C": "63"}, judged=False),
    ),
    full=_FULL,
    quick=_QUICK,
    taken=("ρ: not printed in the text; 1, 10 and 100 are taken.", *_TAKEN),
    observations=(
        Observation(
            quotation="However, as the size of dataset goes larger, the performance of DP-VAPVI will converge to that "
            "of VAPVI, which supports our theoretical conclusion that the cost of privacy only appears as lower order "
            "terms.",
            reading="at the largest n the gap of DP-VAPVI is within a tenth of uniform play's gap of VAPVI's, for some "
            "ρ from 1 to 100",
            judge=_converges,
        ),
        Observation(
            quotation="Furthermore, in most cases, DP-VAPVI still outperforms PEVI, which does not have privacy "
            "guarantee.",
            reading="the mean gap of DP-VAPVI is below that of PEVI at more than half of the sizes, for some ρ from 1 "
            "to 100",
            judge=_outperforms,
            undecided="The text prints no penalty of either.",
        ),
    ),
)

FIGURE_1B: Final = Figure(
    name="figure-1b",
    title="Figure 1(b), gap of DP-VAPVI with different privacy budgets against the number of episodes",
    where=_SOURCE,
    setting=_SETTING,
    environment="linear-synthetic",
    measure="gap",
    axis="n",
    lines=(Series(label=_VAPVI, algorithm="vapvi"), *_B),
    full=_FULL,
    quick=_QUICK,
    taken=("ρ: not printed in the text; .1, 1, 10, 100 and 1 000 are taken.", *_TAKEN),
    observations=(
        Observation(
            quotation="For DP-VAPVI with larger privacy budget, the scale of noise will be smaller, thus the "
            "performance will be closer to VAPVI, as shown in figure 1(b).",
            reading="at the largest n the mean gap falls with every larger ρ",
            judge=_closer,
        ),
    ),
)

FIGURES: Final = PaperFigures(
    paper=OFFLINE,
    figures=(FIGURE_1A, FIGURE_1B),
    others="The tables of Appendix A list notation.",
    recorded=RECORDED,
)
