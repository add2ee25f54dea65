"""The published experiment code of Chowdhury & Zhou 2022 (footnote 8), declared as it runs; it has no agent here.

The claims are those that the code is run for. Counts are pooled over the steps of an episode and over its users.

* Central: before every episode k ≥ 2 each counter is released again, as the exact sum of all users so far plus ⌊ln k⌋ +
  1 fresh draws of Lap(1/ε), "to mimic the tree". One draw is declared (`central`).
* Local: a user adds one draw of Lap(1/ε) to the whole table of visits, one to that of rewards, and one to each column
  s′ of that of transitions: cells that share a draw differ by exact data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privcheck.declare.declaration import Claim, Declaration, Draw, Joint, Release
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.schedules import EveryEpisode, PerUser
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import K, epsilon
from privcheck_algorithms.papers import CHOWDHURY_ZHOU_CODE, COROLLARY_5_2, EPISODIC, FIGURE_2, LEMMA_5_1, LEMMA_5_4
from privcheck_algorithms.privatizers.declaration import (
    ANY_START,
    EPISODES,
    EPSILON,
    POOLED,
    SAME_START,
    SIZES,
    neighbours,
)

_OTHER = "the program draws other noise than the lemma requires"
_SOURCE = "the published experiment code of Chowdhury & Zhou, footnote 8"


def central(readings: Mapping[str, str]) -> Declaration:
    """Joint-DP agents of the code: K − 1 releases of everything a user contributed.

    One draw of Lap(1/ε) is declared for the ⌊ln k⌋ + 1 of the code.

    Lemma sum-of-laplace: m draws of Laplace noise cost as much as one in pure DP, Δ₁/b, and at most as much in any
    other unit. Proof: their sum has a density e^(−|x|/b) times a polynomial in |x|: ln p(x − Δ)/p(x) stays below Δ/b
    and tends to it as x grows.
    """
    return Declaration(
        name="published-ucb-vi-central",
        title="Chowdhury & Zhou's published code under joint DP: fresh Lap(1/ε) on the same counts every episode",
        source=_SOURCE,
        relation=neighbours(readings, SAME_START),
        releases=tuple(
            Release(name, table, Laplace(scale=1 / epsilon), source=_SOURCE, schedule=EveryEpisode(outputs=K - 1))
            for name, table in POOLED.items()
        ),
        claim=Claim(
            PureDP(epsilon),
            source="section 6.2, Figure 2",
            joint=Joint(),
            statements=(FIGURE_2, replace(LEMMA_5_1, inapplicable=_OTHER), replace(COROLLARY_5_2, inapplicable=_OTHER)),
        ),
        origin=Origin(kind="published code", text=f"{CHOWDHURY_ZHOU_CODE}, code lines 280–302"),
        parameters=(*SIZES, EPISODES, EPSILON),
    )


def local(readings: Mapping[str, str]) -> Declaration:
    """Local-DP agents of the code: one draw for all cells of a user's table."""
    return Declaration(
        name="published-ucb-vi-local",
        title="Chowdhury & Zhou's published code under local DP: one draw of Lap(1/ε) for all cells of a table",
        source=_SOURCE,
        relation=neighbours(readings, ANY_START),
        releases=tuple(
            Release(
                name,
                table,
                Laplace(scale=1 / epsilon),
                source=_SOURCE,
                schedule=PerUser(),
                draw=Draw(across=("cells",)),
            )
            for name, table in POOLED.items()
        ),
        claim=Claim(
            PureDP(epsilon),
            source="section 6.2, Figure 2",
            statements=(FIGURE_2, replace(LEMMA_5_4, inapplicable=_OTHER)),
        ),
        origin=Origin(kind="published code", text=f"{CHOWDHURY_ZHOU_CODE}, code lines 215–248"),
        parameters=(*SIZES, EPISODES, EPSILON),
        model="local",
    )


CENTRAL = Algorithm(
    name="published-ucb-vi-central",
    title="Chowdhury & Zhou's published code under joint DP: fresh Lap(1/ε) on the same counts every episode",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, footnote 8",
    paper=EPISODIC,
    declare=central,
    readings=(SAME_START,),
)

LOCAL = Algorithm(
    name="published-ucb-vi-local",
    title="Chowdhury & Zhou's published code under local DP: one draw of Lap(1/ε) for all cells of a table",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, footnote 8",
    paper=EPISODIC,
    declare=local,
    readings=(ANY_START,),
)

__all__ = ["CENTRAL", "LOCAL"]
