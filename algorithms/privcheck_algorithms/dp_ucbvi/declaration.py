"""What DP-UCBVI releases (Qiao & Wang 2023), as far as papers 001 and 003 describe it: private counts, JDP or LDP.

They do not state its noise (README): the declarations take what their claims need, or
that of paper 002's privatizers.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declaration import Declaration
from privcheck_algorithms.privatizers import declaration as privatizers
from privcheck_algorithms.privatizers.declaration import REWARDS, CountedAlgorithm, noise_factor

_SOURCE = "Qiao & Wang 2023, as described in paper 003, Table I (line 42) and line 327; 001, line 32"


def central(readings: Mapping[str, str]) -> Declaration:
    """Returns DP-UCBVI under joint DP: ε-JDP according to paper 003's table (line 42)."""
    return privatizers.central(
        CountedAlgorithm(
            name="dp-ucbvi-central",
            title="DP-UCBVI under joint DP, with paper 002's counters (its own noise is not in the papers)",
            source=_SOURCE,
            tables=REWARDS,
            claim="paper 003, line 42",
            noise="not stated in the papers; paper 002, Lemma 5.1, line 234",
            factor=noise_factor(readings),
        ),
        readings,
    )


def local(readings: Mapping[str, str]) -> Declaration:
    """Returns DP-UCBVI under local DP, as paper 003's experiments run it (line 327)."""
    return privatizers.local(
        CountedAlgorithm(
            name="dp-ucbvi-local",
            title="DP-UCBVI under local DP, with paper 002's noise (its own is not in the papers)",
            source=_SOURCE,
            tables=REWARDS,
            claim="paper 003, line 327",
            noise="not stated in the papers; paper 002, Lemma 5.4, line 252",
            factor=noise_factor(readings),
        ),
        readings,
    )
