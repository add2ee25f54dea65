"""What LDP-OBI releases (Garcelon et al. 2021), as far as papers 000 and 002 describe it: every user's own counts.

Its transition kernels are stationary (paper 002, line 37), so counts are pooled over the steps. The papers do not state
its noise (README): the declaration takes what its claim needs, or paper 002's LOCAL-PRIVATIZER's.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declaration import Declaration
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import POOLED, CountedAlgorithm, noise_factor

# paper 002's proof is about counts by step, so it is no ground for the default here


def ldp_obi(readings: Mapping[str, str]) -> Declaration:
    """Returns LDP-OBI: ε-LDP according to paper 002's Table 1 (line 27)."""
    return privatizers.local(
        CountedAlgorithm(
            name="ldp-obi",
            title="LDP-OBI: optimism under local DP, counts pooled over steps (its own noise is not in the papers)",
            source="Garcelon et al. 2021, as described in paper 002, Table 1 and line 37; 000, line 476",
            tables=POOLED,
            claim="paper 002, Table 1, line 27",
            noise="not stated in the papers; 3H/ε: paper 002, Lemma 5.4, line 252",
            factor=noise_factor(readings),
        ),
        readings,
    )
