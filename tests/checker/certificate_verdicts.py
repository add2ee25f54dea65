"""What the checker says of a document, and documents with one field changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import certificate_mutations as mutations
import certificate_samples as samples
from privcheck_check import terms
from privcheck_check.check import check
from privcheck_check.values import Rejected


def refused(call: Callable[..., object], *arguments: Any, **more: Any) -> bool:
    """Whether the checker rejects what is handed to one of its functions."""
    try:
        call(*arguments, **more)
    except Rejected:
        return True
    return False


def work(call: Callable[..., object], *arguments: Any) -> int:
    """The least number of steps of arithmetic that have to be left for the call."""
    low, high = 0, 10**6
    while low < high:
        middle = (low + high) // 2
        terms._left[0] = middle
        low, high = (middle + 1, high) if refused(call, *arguments) else (low, middle)
    terms.allow()
    return low


def verdict(document: dict[str, Any]) -> str:
    """The rule that rejects the document, sealed again, or "accepted"."""
    try:
        check(mutations.data(samples.sealed(document)))
    except Rejected as fault:
        return fault.rule
    return "accepted"


def edited(document: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    """A copy of the document with another value at a path."""
    found = copy.deepcopy(document)
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return found
