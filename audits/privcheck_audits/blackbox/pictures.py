"""What the page of a black-box audit draws: how often the score that gave the bound told the neighbours apart."""

from __future__ import annotations

import numpy as np

from privcheck.auditors import MechanismClaim
from privcheck.pictures import TradeOff
from privcheck_audits.blackbox.counts import Counts
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.plan.trade_offs import trace_claim, trade_off


def draw_errors(counts: Counts, score: int, claim: MechanismClaim, *, confidence: float) -> TradeOff | None:
    """Returns both kinds of error of one score at all its edges beside what the claim allows.

    Args:
        counts: Of runs whose number was fixed before; None comes back where a neighbour has none.
        score: Its index.
        claim: What was claimed.
        confidence: Of the band.
    """
    inside = counts.inside[score]
    used = int(inside.sum(axis=0).nonzero()[0].max(initial=0))
    at_most = np.cumsum(inside[:, : max(1, used)], axis=1)  # scores below each edge, for D and D′
    counted = Tally(
        runs=counts.runs,
        errors=0,
        ranked_errors=(),
        ranked_guesses=(),
        on_first=int(counts.totals[0]),
        on_second=int(counts.totals[1]),
        false_second=tuple(at_most[0].tolist()),
        false_first=tuple((counts.totals[1] - at_most[1]).tolist()),
    )
    return trade_off(counted, confidence=confidence, claim=trace_claim(claim, {}), words=f"{claim}", accountant=None)
