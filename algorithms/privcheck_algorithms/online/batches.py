"""Disjoint batches of users, each a fixed factor larger than the one before."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError

_MOST: Final = 100_000  # each is a plan


def schedule(K: int, *, first: int, growth: float) -> NDArray[np.int64]:
    """Returns the last user of each batch; a last batch below half the size before it joins that one.

    Raises:
        ParameterError: More than 10⁵ batches.

    >>> schedule(1000, first=300, growth=1.0).tolist()
    [300, 600, 1000]
    """
    ends, size = [0], float(first)
    while ends[-1] < K:
        ends.append(min(K, ends[-1] + max(1, int(size))))
        size = min(size * growth, float(K))
        if len(ends) > _MOST:
            message = f"K = {K}: more than {_MOST} batches; make first_batch = {first} or growth = {growth:g} larger"
            raise ParameterError(message, name="first_batch", given=first)
    if len(ends) > 2 and 2 * (ends[-1] - ends[-2]) < ends[-2] - ends[-3]:
        del ends[-2]
    return np.array(ends[1:], dtype=np.int64)
