"""PRIVATE-UCB-VI (Chowdhury & Zhou 2022, Algorithm 2): one agent, with the paper's privatizers or calibrated noise.

It releases the counters of its privatizer (`privatizers`). Besides the paper's noise there is the noise that (ε, δ)-JDP
needs (`calibrated`): one Gaussian vector per user, at its exact cost.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Joint, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.schedules import Batches, Tree
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import K, delta, epsilon, expression, maximum
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.papers import COROLLARY_5_2, EPISODIC, LEMMA_5_1, LEMMA_5_4, VI_CENTRAL_RATE, VI_LOCAL_RATE
from privcheck_algorithms.private_ucb_vi import conformance
from privcheck_algorithms.private_ucb_vi.agent import CALIBRATED_OPTIONS, OPTIONS, player
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import (
    ANY_START,
    COSTS,
    LOG,
    MU,
    SAME_START,
    CountedAlgorithm,
    neighbours,
)
from privcheck_algorithms.privatizers.declaration import CALIBRATED as CALIBRATED_PARAMETERS

RELEASES = Reading(
    name="releases",
    ways=("tree", "doubling"),
    meaning="tree: a binary tree for every counter, as in the paper; doubling: disjoint batches of users, each as "
    "large as all before it together, so that every user is in one output",
)
_SOURCE = "Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 2"


def central(readings: Mapping[str, str]) -> Declaration:
    """PRIVATE-UCB-VI with the CENTRAL-PRIVATIZER: ε-JDP by Corollary 5.2."""
    return privatizers.central(
        CountedAlgorithm(
            name="private-ucb-vi-central",
            title="PRIVATE-UCB-VI with the CENTRAL-PRIVATIZER: optimistic value iteration, binary-tree counters",
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
    """PRIVATE-UCB-VI with the LOCAL-PRIVATIZER: ε-LDP by Lemma 5.4."""
    return privatizers.local(
        CountedAlgorithm(
            name="private-ucb-vi-local",
            title="PRIVATE-UCB-VI with the LOCAL-PRIVATIZER: optimistic value iteration, noise with each user",
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


def calibrated(readings: Mapping[str, str]) -> Declaration:
    """PRIVATE-UCB-VI with one variance for all counters: all releases about a user together are μ-GDP.

    σ² = n·Σ Δ₂²/μ² with n the outputs that contain a user and Δ₂ each table's sensitivity: n·(6H − 3)/μ², or n·6H/μ²
    under
    `initial=any`. `privcheck calibrate private-ucb-vi-central` proposes the same with Gaussian noise.
    """
    doubling, relation = readings.get("releases", "tree") == "doubling", neighbours(readings, SAME_START)
    schedule = Batches(size="users, each as large as all before it together") if doubling else Tree(leaves=K - 1)
    moved = sum((table.sensitivity(relation).l2 ** 2 for table in COSTS.values()), expression(0))
    mechanism = Gaussian(variance=maximum(schedule.times, 1) * moved / MU**2)
    return Declaration(
        name="private-ucb-vi-calibrated",
        title="PRIVATE-UCB-VI with the Gaussian noise that (ε, δ)-JDP needs, in trees or in doubling batches",
        source="this package; README of private_ucb_vi",
        relation=relation,
        releases=tuple(Release(name, table, mechanism, schedule=schedule) for name, table in COSTS.items()),
        claim=Claim(ApproxDP(epsilon, delta), source="README, “With calibrated noise”", joint=Joint()),
        parameters=CALIBRATED_PARAMETERS,
        origin=Origin(kind="own", text="README of private_ucb_vi: Chowdhury & Zhou's tables with Gaussian noise"),
    )


CENTRAL = Algorithm(
    name="private-ucb-vi-central",
    title="PRIVATE-UCB-VI with the CENTRAL-PRIVATIZER: optimistic value iteration, binary-tree counters",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 2",
    paper=EPISODIC,
    declare=central,
    readings=(LOG, SAME_START),
    options=OPTIONS,
    instead="calibrated-ucb-vi",
    printed=PRINTED,
    online=player,
    instance=CLOSELY,
    twin="ucb-vi",
    conformance=conformance.CENTRAL,
    rate=VI_CENTRAL_RATE,
)

LOCAL = Algorithm(
    name="private-ucb-vi-local",
    title="PRIVATE-UCB-VI with the LOCAL-PRIVATIZER: optimistic value iteration, noise with each user",
    source="Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 2",
    paper=EPISODIC,
    declare=local,
    readings=(ANY_START,),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed=PRINTED,
    online=player,
    instance=CLOSELY,
    twin="ucb-vi",
    conformance=conformance.LOCAL,
    rate=VI_LOCAL_RATE,
)

CALIBRATED = Algorithm(
    name="private-ucb-vi-calibrated",
    title="PRIVATE-UCB-VI with the Gaussian noise that (ε, δ)-JDP needs, in trees or in doubling batches",
    source="this package; the agent is Algorithm 2 of Chowdhury & Zhou 2022, arXiv:2112.10599",
    declare=calibrated,
    readings=(RELEASES, SAME_START),
    options=CALIBRATED_OPTIONS,
    instead="calibrated-ucb-vi",
    printed=PRINTED,
    online=player,
    instance=CLOSELY,
    twin="private-ucb-vi-calibrated",  # with releases=doubling it plans after batches, as UCB-VI does not
)

__all__ = ["CALIBRATED", "CENTRAL", "LOCAL"]
