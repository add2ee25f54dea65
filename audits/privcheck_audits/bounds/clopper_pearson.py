"""The usual pair of Clopper–Pearson intervals, for comparison: one event, fixed in advance, counted in both arms."""

from __future__ import annotations

import math

from privcheck_audits.bounds.tails import OUT, error_rate_at_most


def clopper_pearson_pair(hits: tuple[int, int], runs: tuple[int, int], *, alpha: float, delta: float) -> float:
    """Returns the lower bound on ε at δ from how often one event happened under D and under D′, rounded down.

    Four one-sided intervals at α/4 each hold together: the event and its complement, in both directions, must satisfy
    P ≤ e^ε·Q + δ. The event may depend on nothing that is counted here. With the same number of runs the coin flip
    needs one interval where this needs two, and halves the gap.

    Args:
        hits: How often it happened under D and under D′.
        runs: Runs under each.
        alpha: One minus the confidence.
        delta: In [0, 1).

    Raises:
        ParameterError: The counts contradict each other, or α is not in (0, 1).

    >>> round(clopper_pearson_pair((7_311, 2_689), (10_000, 10_000), alpha=0.05, delta=0.0), 4)
    0.9496
    """
    above = [error_rate_at_most(hit, of, alpha=alpha / 4) for hit, of in zip(hits, runs, strict=True)]
    missed = [error_rate_at_most(of - hit, of, alpha=alpha / 4) for hit, of in zip(hits, runs, strict=True)]
    lower = 0.0
    for one, other in ((0, 1), (1, 0)):
        for likely, rare in ((1 - missed[one], above[other]), (1 - above[one], missed[other])):
            if likely - delta > rare:
                lower = max(lower, (math.log(likely - delta) - math.log(rare)) / OUT)
    return lower
