"""Figures inside ready-made sentences, written as the rest of the report writes them.

Verification words its findings in six digits, to the nearest; tables and headlines have four, rounded the way a bound
errs. Read side by side 0.805 and 0.804834 look like two figures, 7.077 and 7.078 like an error: here a number that a
sentence has in six digits, and that the report itself holds, is replaced by its text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from privcheck.reports.values import Report, Verified
from privcheck.reports.wording import figure, ratio

_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)")
_SAME = 1e-6  # relative: two bounds this close are one figure to a reader


def are_one(verify: Verified) -> bool:
    """Returns whether the upper and the lower ratio to the claim are the same to every digit that is shown."""
    upper, lower = verify.upper_ratio, verify.lower_ratio
    return math.isfinite(upper) and lower > 0 and upper - lower <= _SAME * upper


def say_ratios(verify: Verified) -> tuple[str, str]:
    """Returns cost over claim from above and from below; where the two are one figure, it twice."""
    above = ratio(verify.upper_ratio, rounding="up")
    return above, above if are_one(verify) else ratio(verify.lower_ratio, rounding="down")


def agree(report: Report, text: str) -> str:
    """Returns a sentence of the report's verification with the figures written as elsewhere in the report."""
    texts = {f"{value:.6g}": said for value, said in _figures(report)}
    return _NUMBER.sub(lambda found: texts.get(found[0], found[0]), text)


def _figures(report: Report) -> Iterator[tuple[float, str]]:
    """Yields the figures that a sentence may speak of, the likeliest last."""
    for one in report.budget.releases if report.budget else ():
        for bound in (one.sensitivity.l1, one.sensitivity.l2):
            yield bound, figure(bound, rounding="up")
    for needed in report.calibrate.releases if report.calibrate else ():
        yield needed.ratio, ratio(needed.ratio, rounding="up")
    for method in report.budget.methods if report.budget else ():
        yield method.epsilon, figure(method.epsilon, rounding="up")
    if report.budget is not None:
        total = report.budget.guarantee
        for cost in (total.mu, total.rho, total.pure_epsilon, total.epsilon):
            if cost is not None:
                yield cost, figure(cost, rounding="up")
    if report.verify is not None:
        above, below = say_ratios(report.verify)
        yield report.verify.lower_ratio, below
        yield report.verify.upper_ratio, above
