"""DP-UCBVI (Qiao & Wang 2023), a baseline of Bai et al. 2024 under joint and under local DP.

It releases private counts, as far as later papers describe it. They do not state its noise (README): the declarations
use the noise that their claims need, or that of Chowdhury & Zhou's privatizers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from privcheck.declare.declaration import Declaration
from privcheck.runtime.registry import Algorithm
from privcheck_algorithms.dp_ucbvi import agent
from privcheck_algorithms.dp_ucbvi.agent import OPTIONS, player
from privcheck_algorithms.online.private import CLOSELY, PRINTED
from privcheck_algorithms.papers import DP_UCBVI_CENTRAL_RATE, DP_UCBVI_LOCAL_RATE, SHUFFLE
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import (
    ANY_START,
    LOG,
    NOISE,
    REWARDS,
    CountedAlgorithm,
    noise_factor,
    noise_of_ours,
)

_SOURCE = "Qiao & Wang 2023, as described in Bai et al. 2024, arXiv:2411.11647, Table I and section VI-A"


def central(readings: Mapping[str, str]) -> Declaration:
    """DP-UCBVI under joint DP: ε-JDP according to Bai et al.'s Table I."""
    return privatizers.central(
        CountedAlgorithm(
            name="dp-ucbvi-central",
            title="DP-UCBVI under joint DP, with Chowdhury & Zhou's counters (its own noise is not in the papers)",
            source=_SOURCE,
            tables=REWARDS,
            claim="Bai et al. 2024, Table I",
            noise="not stated in the papers; Chowdhury & Zhou 2022, Lemma 5.1",
            factor=noise_factor(readings),
            origin=noise_of_ours(readings, local=False),
        ),
        readings,
        initial=ANY_START,
    )


def local(readings: Mapping[str, str]) -> Declaration:
    """DP-UCBVI under local DP, as Bai et al.'s experiments run it (section VI-A)."""
    return privatizers.local(
        CountedAlgorithm(
            name="dp-ucbvi-local",
            title="DP-UCBVI under local DP, with Chowdhury & Zhou's noise (its own is not in the papers)",
            source=_SOURCE,
            tables=REWARDS,
            claim="Bai et al. 2024, section VI-A",
            noise="not stated in the papers; Chowdhury & Zhou 2022, Lemma 5.4",
            factor=noise_factor(readings),
            origin=noise_of_ours(readings, local=True),
        ),
        readings,
    )


CENTRAL = Algorithm(
    name="dp-ucbvi-central",
    title="DP-UCBVI under joint DP, with Chowdhury & Zhou's counters (its own noise is not in the papers)",
    source="Qiao & Wang 2023, as described in Bai et al. 2024, arXiv:2411.11647, Table I",
    paper=SHUFFLE,
    declare=central,
    readings=(NOISE, LOG, ANY_START),
    options=OPTIONS,
    instead="calibrated-ucb-vi",
    printed=PRINTED,
    online=partial(player, kind=agent.BERNSTEIN, label="dp-ucbvi"),
    instance=CLOSELY,
    twin="dp-ucbvi-central",
    rate=DP_UCBVI_CENTRAL_RATE,
)

LOCAL = Algorithm(
    name="dp-ucbvi-local",
    title="DP-UCBVI under local DP, with Chowdhury & Zhou's noise (its own is not in the papers)",
    source="Qiao & Wang 2023, as described in Bai et al. 2024, arXiv:2411.11647, Table I",
    paper=SHUFFLE,
    declare=local,
    readings=(NOISE, ANY_START),
    options=OPTIONS,
    instead="shuffled-ucb-vi",
    printed=PRINTED,
    online=partial(player, kind=agent.BERNSTEIN, label="dp-ucbvi"),
    instance=CLOSELY,
    twin="dp-ucbvi-local",
    rate=DP_UCBVI_LOCAL_RATE,
)

__all__ = ["CENTRAL", "LOCAL"]
