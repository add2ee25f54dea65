"""What PUCB releases (Vietri et al. 2020), as far as papers 000, 001 and 002 describe it: private counters under JDP.

They do not state its noise (README): the declaration takes what its claim needs, or that
of paper 002's CENTRAL-PRIVATIZER.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declaration import Declaration
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import REWARDS, CountedAlgorithm, noise_factor


def pucb(readings: Mapping[str, str]) -> Declaration:
    """Returns PUCB: ε-JDP according to paper 002's Table 1 (line 26)."""
    return privatizers.central(
        CountedAlgorithm(
            name="pucb",
            title="PUCB: private UBEV under joint DP, with paper 002's counters (its own noise is not in the papers)",
            source="Vietri et al. 2020, as described in paper 002, Table 1; 000, line 473; 001, line 30",
            tables=REWARDS,
            claim="paper 002, Table 1, line 26",
            noise="not stated in the papers; paper 002, Lemma 5.1, line 234",
            factor=noise_factor(readings),
        ),
        readings,
    )
