"""PRIVATE-UCB-PO (Chowdhury & Zhou 2022, Algorithm 1): one agent, with the CENTRAL- and the LOCAL-PRIVATIZER.

It releases the counters of its privatizer (`privatizers`).
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Declaration
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.papers import COROLLARY_5_2, EPISODIC, LEMMA_5_1, LEMMA_5_4, PO_CENTRAL_RATE, PO_LOCAL_RATE
from privcheck_algorithms.private_ucb_po import conformance
from privcheck_algorithms.private_ucb_po.agent import OPTIONS, player
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import ANY_START, COSTS, LOG, SAME_START, CountedAlgorithm

_SOURCE = "Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 1"


def central(readings: Mapping[str, str]) -> Declaration:
    """PRIVATE-UCB-PO with the CENTRAL-PRIVATIZER: ε-JDP by Corollary 5.2."""
    return privatizers.central(
        CountedAlgorithm(
            name="private-ucb-po-central",
            title="PRIVATE-UCB-PO with the CENTRAL-PRIVATIZER: optimistic policy optimisation, binary-tree counters",
            source=f"{_SOURCE} with the CENTRAL-PRIVATIZER",
            claim="Lemma 5.1; Corollary 5.2",
            statements=(LEMMA_5_1, COROLLARY_5_2),
            origin=Origin(kind="printed", text=f"{_SOURCE} with the CENTRAL-PRIVATIZER"),
            noise="Lemma 5.1",
            stated="Lemma 5.1's proof",
            tables=COSTS,
        ),
        readings,
        initial=SAME_START,
    )


def local(readings: Mapping[str, str]) -> Declaration:
    """PRIVATE-UCB-PO with the LOCAL-PRIVATIZER: ε-LDP by Lemma 5.4."""
    return privatizers.local(
        CountedAlgorithm(
            name="private-ucb-po-local",
            title="PRIVATE-UCB-PO with the LOCAL-PRIVATIZER: optimistic policy optimisation, noise with each user",
            source=f"{_SOURCE} with the LOCAL-PRIVATIZER",
            claim="Lemma 5.4",
            statements=(LEMMA_5_4,),
            origin=Origin(kind="printed", text=f"{_SOURCE} with the LOCAL-PRIVATIZER"),
            noise="Lemma 5.4",
            stated="Lemma 5.4's proof",
            tables=COSTS,
        ),
        readings,
    )


CENTRAL = Algorithm(
    name="private-ucb-po-central",
    title="PRIVATE-UCB-PO with the CENTRAL-PRIVATIZER: optimistic policy optimisation, binary-tree counters",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 1",
    paper=EPISODIC,
    declare=central,
    readings=(LOG, SAME_START),
    options=OPTIONS,
    instead="calibrated-ucb-vi",
    printed={**PRINTED, "eta_scale": "1"},
    online=player,
    instance=CLOSELY,
    twin="oppo",
    conformance=conformance.CENTRAL,
    rate=PO_CENTRAL_RATE,
)

LOCAL = Algorithm(
    name="private-ucb-po-local",
    title="PRIVATE-UCB-PO with the LOCAL-PRIVATIZER: optimistic policy optimisation, noise with each user",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 1",
    paper=EPISODIC,
    declare=local,
    readings=(ANY_START,),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed={**PRINTED, "eta_scale": "1"},
    online=player,
    instance=CLOSELY,
    twin="oppo",
    conformance=conformance.LOCAL,
    rate=PO_LOCAL_RATE,
)

__all__ = ["CENTRAL", "LOCAL"]
