"""The sparse vector technique in the six variants of Lyu, Su & Li (VLDB 2017), Figure 1, numbered as there.

All claim ε-DP for any number of queries of sensitivity 1 against a public threshold. Two keep the claim. For the other
four Lyu, Su & Li show in Section 3 that 4 is ((1 + 6c)/4)·ε-DP, and that 3, 5 and 6 are not ε′-DP for any ε′. For 5
this holds from two queries on: some answers are impossible for one neighbour. The loss of 3 and 6 grows without bound
as
queries are added, and at m of them is finite: mε/2c and mε/2, which is the charge, and the loss of the witness. The
figure writes scales as Δ/ε₁ and Δ/ε₂ with ε₁ = ε₂ = ε/2 (in 4, ε/4 and 3ε/4); they are written out here for Δ = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import SparseVector
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import Expr, epsilon, symbol
from privcheck_algorithms.papers import GALLERY

FIGURE = "Lyu, Su & Li 2017, Understanding the Sparse Vector Technique, Figure 1, Algorithm {}: {}"
Make = Callable[[Expr, Expr, str], SparseVector]


def lyu_su_li(c: Expr, queries: Expr, source: str) -> SparseVector:
    """Algorithm 1, by the authors: one threshold, query noise that grows with c."""
    return SparseVector(
        "answers", threshold_scale=2 / epsilon, query_scale=4 * c / epsilon, queries=queries, positives=c, source=source
    )


def dwork_roth(c: Expr, queries: Expr, source: str) -> SparseVector:
    """Algorithm 2, Dwork & Roth's "Sparse": the threshold is redrawn, and has noise that grows with c."""
    return SparseVector(
        "answers", threshold_scale=2 * c / epsilon, query_scale=4 * c / epsilon, queries=queries, positives=c,
        redrawn=True, source=source,
    )  # fmt: skip


def roth_lecture_notes(c: Expr, queries: Expr, source: str) -> SparseVector:
    """Algorithm 3, of lecture notes: the compared noisy value is released, and bounds the threshold."""
    return SparseVector(
        "answers", threshold_scale=2 / epsilon, query_scale=2 * c / epsilon, queries=queries, positives=c,
        answers="noisy values", source=source,
    )  # fmt: skip


def lee_clifton(c: Expr, queries: Expr, source: str) -> SparseVector:
    """Algorithm 4: query noise that does not grow with c."""
    return SparseVector(
        "answers", threshold_scale=4 / epsilon, query_scale=4 / (3 * epsilon), queries=queries, positives=c,
        source=source,
    )  # fmt: skip


def stoddard(_: Expr, queries: Expr, source: str) -> SparseVector:
    """Algorithm 5: queries without noise, and no limit."""
    return SparseVector(
        "answers", threshold_scale=2 / epsilon, query_scale=None, queries=queries, positives=None, source=source
    )


def chen(_: Expr, queries: Expr, source: str) -> SparseVector:
    """Algorithm 6: query noise that does not grow with the positive answers, and no limit."""
    return SparseVector(
        "answers", threshold_scale=2 / epsilon, query_scale=2 / epsilon, queries=queries, positives=None, source=source
    )


def variant(number: int, whose: str, claimed: str, make: Make, *, stops: bool = True, least: int = 1) -> Algorithm:
    """One of the six variants.

    Args:
        number: Number in Figure 1.
        whose: Paper and year.
        claimed: Place of that paper's claim of ε-DP, as cited by Lyu, Su & Li.
        make: Constructor of the mechanism from c, the number of queries and the source.
        stops: Whether it stops after c answers "above".
        least: Smallest number of queries that shows the error.
    """
    name, title = f"sparse-vector-{number}", f"Sparse vector technique, variant {number}: {whose}"
    source = FIGURE.format(number, whose)
    cut = "answers above after which it stops" if stops else "answers above after which others stop; this one does not"

    def declare(_: Mapping[str, str]) -> Declaration:
        return Declaration(
            name=name,
            title=title,
            source=source,
            origin=Origin(kind="printed", text=source),
            relation=ReplaceOne("user"),
            releases=(make(symbol("c", "count"), symbol("queries", "count"), source),),
            claim=Claim(PureDP(epsilon), source=claimed),
            parameters=(
                Parameter(name="epsilon", default=1, kind="positive", meaning="ε in nats"),
                Parameter(name="c", default=2, kind="count", meaning=cut),
                Parameter(
                    name="queries", default=20, kind="count", least=least, meaning="the most queries that may be asked"
                ),
            ),
        )

    return Algorithm(name=name, title=title, source=source, paper=GALLERY, declare=declare)


_STATED = "Figure 1 of Lyu, Su & Li 2017: presented as ε-DP by {}"
ONE = variant(1, "Lyu, Su & Li 2017", "Figure 1 of Lyu, Su & Li 2017: proved there to be ε-DP", lyu_su_li)
TWO = variant(2, "Dwork & Roth 2014, Sparse", "Theorem 3.25 of Dwork & Roth 2014", dwork_roth)
THREE = variant(3, "Roth's lecture notes, 2011", _STATED.format("Roth"), roth_lecture_notes)
FOUR = variant(4, "Lee & Clifton 2014", _STATED.format("Lee & Clifton"), lee_clifton)
FIVE = variant(5, "Stoddard et al. 2014", _STATED.format("Stoddard et al."), stoddard, stops=False, least=2)
SIX = variant(6, "Chen et al. 2015", _STATED.format("Chen et al."), chen, stops=False)
