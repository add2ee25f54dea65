"""The agent of PUCB: counters, noise and privatizers are paper 002's; how it plans is in `online.rewards`."""

from __future__ import annotations

from privcheck.results import OnlineRequest, OnlineResult
from privcheck_algorithms.online.reward_agent import OPTIONS, run
from privcheck_algorithms.online.rewards import PUCB

__all__ = ["OPTIONS", "learn"]


def learn(request: OnlineRequest) -> OnlineResult:
    """Returns a run.

    Raises:
        ParameterError: As for `run`.
    """
    return run(request, kind=PUCB, label="pucb")
