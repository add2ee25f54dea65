"""What the published experiment code of Sahu 2025 releases: DP-LSVI-UCB++ with one draw of noise, longer features."""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declaration import Assumption, Declaration
from privcheck.symbols import expression
from privcheck_algorithms.dp_lsvi_ucb.declaration import declaration

_NORM = 3


def declare_published(readings: Mapping[str, str]) -> Declaration:
    """Returns the experiment code: φ₁, φ₂, φ₃, K₁ drawn once and reused for all k and h, ‖φ‖ = 3, σ̄ = H throughout.

    σ̄ = H makes every weight 1/H², its bound. The determinant test that is always true changes what is done with the
    releases, not what is released.
    """
    return declaration(
        readings,
        name="published-lsvi-ucb-pp",
        title="DP-LSVI-UCB++ as its published experiment code runs it",
        source="Sahu 2025, arXiv:2504.09339, published experiment code",
        noise="one draw",
        norm=_NORM,
        assumptions=(
            Assumption(
                what="‖φ(s, a)‖",
                assumed=expression(1),
                attained=expression(_NORM),
                repair="divide φ by 3 and multiply ν and θ by it",
                source="section 2; the published code's features",
                bounds="phi",
            ),
        ),
    )
