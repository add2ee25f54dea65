"""A view of somebody else: are there as few releases as its author thinks? In one file, registered by a line."""

from __future__ import annotations

from privcheck.runtime.registry import RegisteredView
from privcheck.runtime.results import AuditResult


def run(request, algorithm):
    releases = len(request.declaration.releases)
    return AuditResult(
        view="own-count", verdict="consistent" if releases < 9 else "violation", trials=request.trials,
        confidence=request.confidence, delta=request.delta, epsilon_lower=None, epsilon_upper=None,
        epsilon_claimed=None, reachable=None, method="counting", witness="", evidence={"releases": releases},
        seconds=0.0, agent_ran=False,
    )  # fmt: skip


VIEW = RegisteredView(
    name="own-count",
    place=9,
    asks="Are there fewer than nine releases?",
    leaves_open="Everything else.",
    trials=lambda _: 1,
    lacks=lambda _, declaration: "" if declaration.name.startswith("dp-") else "it is for DP-… only",
    run=run,
)
