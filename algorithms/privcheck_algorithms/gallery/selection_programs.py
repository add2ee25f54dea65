"""Selection with Gaussian noise, and the adaptive sparse vector: priced as `docs/programs.md` proves, and too low.

* With *Gaussian noise* the ratio of two tails has no bound, so that a sparse vector costs more with every query and a
  noisy maximum with every candidate. Two prices that forget this read like the proofs for Laplace noise: that of the
  queries' noise alone, as if the threshold's noise were free, and that of one score, however many there are.
* The *adaptive sparse vector* (Ding, Wang, Zhang & Kifer 2019) goes on while its budget is enough for its dearest
  answer. If it stops only once the budget is exceeded, the last answer is not paid.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import AdaptiveSparseVector, GaussianNoisyMax, GaussianSparseVector
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP, GaussianDP, PureDP
from privcheck.terms.symbols import Expr, delta, epsilon, expression, sqrt, symbol
from privcheck_algorithms.papers import GALLERY, NOT_AT_HAND

SPARSE_TITLE = "Sparse vector technique with Gaussian noise on the threshold and on every query"
SPARSE_SOURCE = "docs/programs.md, lemma gaussian-sparse-vector: Lyu, Su & Li 2017, Algorithm 1, with Gaussian noise"
MAX_TITLE = "Report-noisy-max with Gaussian noise: the index of the largest of many noisy scores"
MAX_SOURCE = "docs/programs.md, lemma gaussian-noisy-max: Dwork & Roth 2014, Claim 3.9, with Gaussian noise"
ADAPTIVE_TITLE = "Adaptive sparse vector with gaps: queries far above the threshold cost less"
ADAPTIVE_SOURCE = "Ding, Wang, Zhang & Kifer 2019, Free Gap Information from the Differentially Private Sparse Vector"

_STD = symbol("std", "positive")
_BUDGET = (
    Parameter(name="delta", default="1/100000", kind="probability", meaning="δ that is claimed"),
    Parameter(name="epsilon", default="7/4", kind="positive", meaning="ε that is claimed; only for priced=together"),
)


def _judged(priced: str, of: str, too_low: Expr, words: str) -> Claim:
    """(ε, δ)-DP of the whole curve, or Gaussian DP of a part of it."""
    if priced == "together":
        return Claim(ApproxDP(epsilon, delta), source=f"{of}: the whole curve, at one δ")
    return Claim(GaussianDP(too_low), source=f"{of}: {words}")


def gaussian_sparse_vector(readings: Mapping[str, str]) -> Declaration:
    """Queries of sensitivity 1, until c of them are above; the threshold's noise is drawn once."""
    threshold, query = symbol("threshold_std", "positive"), symbol("query_std", "positive")
    c, queries = symbol("c", "count"), symbol("queries", "count")
    return Declaration(
        name="gaussian-sparse-vector",
        title=SPARSE_TITLE,
        source=SPARSE_SOURCE,
        origin=Origin(kind="own", text=SPARSE_SOURCE),
        relation=ReplaceOne("user"),
        releases=(
            GaussianSparseVector(
                "answers", threshold_std=threshold, query_std=query, queries=queries, positives=c, source=SPARSE_SOURCE
            ),
        ),
        claim=_judged(
            readings.get("priced", "together"),
            SPARSE_SOURCE,
            2 * sqrt(c) / query,
            "c Gaussian queries that move by 2, and no more",
        ),
        parameters=(
            *_BUDGET,
            Parameter(name="threshold_std", default=4, kind="positive", meaning="spread of the threshold's noise"),
            Parameter(name="query_std", default=8, kind="positive", meaning="spread of the noise on every query"),
            Parameter(name="c", default=1, kind="count", meaning="answers above after which it stops"),
            Parameter(name="queries", default=100, kind="count", meaning="the most queries that may be asked"),
        ),
    )


def gaussian_noisy_max(readings: Mapping[str, str]) -> Declaration:
    """Scores of sensitivity 1, of which only the index of the largest noisy one is released."""
    return Declaration(
        name="gaussian-noisy-max",
        title=MAX_TITLE,
        source=MAX_SOURCE,
        origin=Origin(kind="own", text=MAX_SOURCE),
        relation=ReplaceOne("user"),
        releases=(GaussianNoisyMax("winner", std=_STD, candidates=symbol("candidates", "count"), source=MAX_SOURCE),),
        claim=_judged(
            readings.get("priced", "together"), MAX_SOURCE, 2 / _STD, "one Gaussian score that moves by 2, and no more"
        ),
        parameters=(
            *_BUDGET,
            Parameter(name="std", default=6, kind="positive", meaning="spread of the noise on every score"),
            Parameter(name="candidates", default=100, kind="count", least=2, meaning="number of scores"),
        ),
    )


def adaptive_sparse_vector(readings: Mapping[str, str]) -> Declaration:
    """The algorithm as described: ε/(1 + w) for the threshold, w times as much for at least k answers above."""
    w, k = symbol("w", "positive"), symbol("k", "count")
    answers = w * epsilon / (1 + w)
    middle = answers / k  # ε of an answer above; half of it for one that is far above
    late = middle if readings.get("stops", "in-time") == "late" else expression(0)
    return Declaration(
        name="adaptive-sparse-vector",
        title=ADAPTIVE_TITLE,
        source=ADAPTIVE_SOURCE,
        origin=Origin(kind="reconstructed", text=ADAPTIVE_SOURCE, changed=NOT_AT_HAND),
        relation=ReplaceOne("user"),
        releases=(
            AdaptiveSparseVector(
                "answers", threshold_scale=(1 + w) / epsilon, top_scale=4 / middle, middle_scale=2 / middle,
                margin=2 * sqrt(2) * 4 / middle, queries=symbol("queries", "count"),
                budget=answers + late, gaps=True, source=ADAPTIVE_SOURCE,
            ),
        ),
        claim=Claim(PureDP(epsilon), source=f"as described in {ADAPTIVE_SOURCE}: the threshold's ε and the answers'"),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε in nats"),
            Parameter(name="w", default=2, kind="positive", meaning="ε of the answers over ε of the threshold"),
            Parameter(name="k", default=2, kind="count", meaning="answers above that the budget is enough for"),
            Parameter(name="queries", default=20, kind="count", meaning="the most queries that may be asked"),
        ),
    )  # fmt: skip


def _priced(wrong: str, meaning: str) -> tuple[Reading, ...]:
    return (Reading(name="priced", ways=("together", wrong), meaning=meaning),)


GAUSSIAN_SPARSE_VECTOR = Algorithm(
    name="gaussian-sparse-vector", title=SPARSE_TITLE, source=SPARSE_SOURCE, paper=GALLERY,
    declare=gaussian_sparse_vector,
    readings=_priced(
        "threshold-free",
        "the claim: together is the curve of the answers; threshold-free is that of c noisy queries, as if the "
        "threshold's noise were free, which is not the algorithm's",
    ),
)  # fmt: skip
GAUSSIAN_NOISY_MAX = Algorithm(
    name="gaussian-noisy-max", title=MAX_TITLE, source=MAX_SOURCE, paper=GALLERY, declare=gaussian_noisy_max,
    readings=_priced(
        "one-score",
        "the claim: together is the curve of the index; one-score is that of one noisy score, as if their number "
        "did not matter, which is not the algorithm's",
    ),
)  # fmt: skip
ADAPTIVE_SPARSE_VECTOR = Algorithm(
    name="adaptive-sparse-vector", title=ADAPTIVE_TITLE, source=ADAPTIVE_SOURCE, paper=GALLERY,
    declare=adaptive_sparse_vector,
    readings=(
        Reading(
            name="stops",
            ways=("in-time", "late"),
            meaning="in-time: it goes on while the budget is enough for the dearest answer; late: until the budget is "
            "exceeded, which is not the algorithm",
        ),
    ),
)  # fmt: skip
