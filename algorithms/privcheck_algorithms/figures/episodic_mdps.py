"""Figure 2 of Chowdhury & Zhou 2022: PRIVATE-UCB-PO and PRIVATE-UCB-VI on RiverSwim."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

from privcheck.runtime.figures import EPISODES, Curve, Figure, Judged, Observation, PaperFigures, Results, Series, Size
from privcheck_algorithms.figures import RECORDED, decide, shares
from privcheck_algorithms.papers import EPISODIC

_BUDGETS: Final = ("0.1", "1", "10")
_NEGLIGIBLE: Final = 0.1  # of what uniform play loses an episode
_ERRORS: Final = 2.0
_EPISODES: Final = 20_000
_RIVER: Final = {"S": "6", "H": "20", "K": str(_EPISODES)}
_LEMMA: Final = {"JDP": 900, "LDP": 60}  # Lap(3H⌈log₂ K⌉/ε) and Lap(3H/ε) over Lap(1/ε), Lemmas 5.1 and 5.4
_LESS: Final = ("1", "10")  # ε of the lines with Lap(1/ε)
_OPEN: Final = (
    "The text has “the same order” and prints neither the noise nor ε. With Lap(1/ε), the scale of the program of "
    "footnote 8, the statement comes out; that noise is not what ε-JDP or ε-LDP need."
)


def _labels(trust: str) -> list[str]:
    return [f"{trust}, ε = {epsilon}" for epsilon in _BUDGETS]


def _less(trust: str) -> list[str]:
    return [f"{trust}, Lap(1/ε), ε = {epsilon}" for epsilon in _LESS]


def _last_rate(curve: Curve) -> float:
    """Regret an episode, over the last positions that span a tenth of the episodes or more."""
    start = max(place for place, x in enumerate(curve.x) if x <= 0.9 * curve.x[-1])
    return (curve.mean[-1] - curve.mean[start]) / (curve.x[-1] - curve.x[start])


def _late_cost(results: Results, label: str, twin: str) -> float:
    """Cost of privacy an episode over the last episodes, as a share of what uniform play loses an episode."""
    assert results.uniform is not None
    each = results.uniform / results[twin].x[-1]
    return (_last_rate(results[label]) - _last_rate(results[twin])) / each


def _say_costs(results: Results, labels: list[str], twin: str) -> str:
    costs = ", ".join(f"{label} {100 * _late_cost(results, label, twin):.0f} %" for label in labels)
    return f"Cost of privacy an episode over the last tenth, as a share of what uniform play loses: {costs}."


def _negligible(twin: str) -> Callable[[Results], Judged]:
    def judge(results: Results) -> Judged:
        labels = _labels("JDP")
        small = any(_late_cost(results, label, twin) <= _NEGLIGIBLE for label in labels)
        return decide(small, _say_costs(results, [*labels, *_less("JDP")], twin))

    return judge


def _remains_high(twin: str) -> Callable[[Results], Judged]:
    def judge(results: Results) -> Judged:
        labels = _labels("LDP")
        high = all(_late_cost(results, label, twin) > _NEGLIGIBLE for label in labels)
        return decide(high, _say_costs(results, [*labels, *_less("LDP")], twin))

    return judge


def _ordered(results: Results) -> Judged:
    falling = []
    for trust in ("JDP", "LDP"):
        curves = [results[label] for label in _labels(trust)]
        for strict, loose in itertools.pairwise(curves):
            error = (strict.error**2 + loose.error**2) ** 0.5
            falling.append(loose.end + _ERRORS * error < strict.end)
    said = shares(results, (*_labels("JDP"), *_less("JDP"), *_labels("LDP"), *_less("LDP")))
    return decide(all(falling), f"Final regret as a share of uniform play's: {said}.")


def _figure(name: str, panel: str, twin: str, plain: str, private: str) -> Figure:
    lines = [Series(label=twin, algorithm=plain)]
    for trust, place in (("JDP", "central"), ("LDP", "local")):
        lines += [
            Series(label=f"{trust}, ε = {epsilon}", algorithm=f"{private}-{place}", given={"epsilon": epsilon})
            for epsilon in _BUDGETS
        ]
        lines += [
            Series(
                label=label,
                algorithm=f"{private}-{place}",
                given={"epsilon": str(_LEMMA[trust] * int(epsilon))},
                judged=False,
            )
            for label, epsilon in zip(_less(trust), _LESS, strict=True)
        ]
    return Figure(
        name=name,
        title=f"Figure 2, {panel}: cumulative regret over episodes on RiverSwim",
        where="Chowdhury & Zhou 2022, arXiv:2112.10599, section 6",
        setting="We set all the parameters in our proposed algorithms as the same order as the theoretical results and "
        "tune the learning rate η and the scaling of the confidence interval. We run 20 independent experiments, each "
        "consisting of K = 2·10⁴ episodes.",
        environment="riverswim",
        measure="regret",
        axis=EPISODES,
        lines=tuple(lines),
        full=Size(given=_RIVER, replicates=20),
        quick=Size(given=_RIVER, replicates=2),
        taken=(
            "ε: not printed in the text; .1, 1 and 10 are taken.",
            (
                "Noise: that of Lemmas 5.1 and 5.4, which ε-JDP and ε-LDP rest on; the text has “the same order”. "
                "Shown beside is Lap(1/ε), 900 and 60 times less, with trees and draws as in the paper. The program of "
                "footnote 8 draws Lap(1/ε) anew in every episode, or once for all cells, and is judged as "
                "`published-ucb-vi-central` and `-local`."
            ),
            "η and the scaling of the confidence interval: not printed, tuned in the paper; this package's, tuned too.",
        ),
        observations=(
            Observation(
                quotation="As suggested by theory, in both PO and VI cases, we can see that the cost of privacy under "
                "the JDP requirement becomes negligible as number of episodes increases (since the cost is only a "
                "lower order additive term).",
                reading="over the last tenth of the episodes the JDP agent loses at most a tenth of uniform play's "
                f"loss more than {twin}, for some ε from .1 to 10",
                judge=_negligible(twin),
                undecided=_OPEN,
            ),
            Observation(
                quotation="But, under the stricter LDP requirement, the cost of privacy remains high (since the cost "
                "is multiplicative and is of the same order).",
                reading="over the last tenth of the episodes every LDP agent loses more than a tenth of uniform play's "
                f"loss more than {twin}",
                judge=_remains_high(twin),
            ),
            Observation(
                quotation="Furthermore, it is worth noting that the cost of privacy increases with increasing "
                "protection level, i.e. with decreasing ϵ.",
                reading="final regret rises with every smaller ε by more than two standard errors, under JDP and LDP",
                judge=_ordered,
                undecided=_OPEN,
            ),
        ),
    )


FIGURES: Final = PaperFigures(
    paper=EPISODIC,
    figures=(
        _figure("figure-2-po", "PRIVATE-UCB-PO", "OPPO", "oppo", "private-ucb-po"),
        _figure("figure-2-vi", "PRIVATE-UCB-VI", "UCB-VI", "ucb-vi", "private-ucb-vi"),
    ),
    others="Figure 1 draws the environment. Table 1 compares regret bounds, of which `privcheck sweep --slope` fits "
    "the exponents.",
    recorded=RECORDED,
)
