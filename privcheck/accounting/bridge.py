"""A second opinion from dp-accounting, on the same Gaussian job.

Sensitivities are computed for the declared relation before anything gets here; the library sees only Δ/std, as an
add/remove event on a multiplier that is a Python float (in 0.6.0 its accountants disagree under REPLACE_ONE, and other
number types can drop a composition count). Its result is never used for a verdict: it must not lie below ours.
"""

from __future__ import annotations

import math

from privcheck.accounting.account import Method, NumericAccount
from privcheck.errors import PrivcheckError

_SLACK = 1e-6  # relative; its pessimistic PLD of one Gaussian lies above the exact curve by less than this


def second_opinion(numbers: NumericAccount, delta: float) -> Method | None:
    """Returns dp-accounting's ε for the same Gaussian releases, or None where a release is not Gaussian or δ = 0.

    Args:
        numbers: The account at given parameters.
        delta: In [0, 1).

    Raises:
        PrivcheckError: Its upper bound lies below our exact curve: one of the two is wrong, and nobody should sign.
    """
    if numbers.mu is None or delta == 0 or not 0 < numbers.mu < 50:
        return None
    from dp_accounting import GaussianDpEvent, NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    epsilon = float(accountant.compose(GaussianDpEvent(float(1.0 / numbers.mu))).get_epsilon(delta))
    if math.isnan(epsilon) or epsilon < numbers.epsilon(delta) * (1 - _SLACK):
        message = (
            f"two accountants contradict each other at δ = {delta:g}: ours says ε = {numbers.epsilon(delta):.9g}, "
            f"dp-accounting's upper bound is {epsilon:.9g}; please report this with the parameters"
        )
        raise PrivcheckError(message)
    return Method(name="dp-accounting, PLD", epsilon=epsilon, direction="upper")
