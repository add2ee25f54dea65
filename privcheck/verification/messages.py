"""The rule on messages: what leaves a shuffler is every message, not the sum that an analysis makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from privcheck.mechanisms import ShuffledNoise, shuffled_noise
from privcheck.verification.claim import Case
from privcheck.verification.findings import Finding


def message_as_sum(case: Case) -> Iterator[Finding]:
    """Yields a finding for every release of integer messages: seen from the mechanism, whatever the algorithm."""
    for cost in case.account.costs:
        release = cost.release
        if not release.mechanism.law.integers:
            continue
        shown = [
            _probability_of_showing(shuffled_noise(release.mechanism.at(at))) for at in release.settings(case.values)
        ]
        if not shown:
            continue
        probability, users, m = max(shown)
        message = (
            f"every user sends one integer, and the multiset of integers leaves the shuffler, of which the proof "
            f"analyses the sum: among {users} users a message {m + 1} shows a bit 1 among others' bits 0, or a message "
            f"0 a bit 0 among others' bits 1, with probability up to {probability:.4g} a counter. Each bit as a "
            "message of its own would tell nothing but the sum"
        )
        yield Finding(
            code="message-as-sum",
            severity=case.unpaid,
            where=release.name,
            message=message + case.paid_words,
            evidence={"users": str(users), "noise bits": str(m), "probability": f"{probability:.9g}"},
            witness=case.witness if case.verdict == "fails" else None,
        )


def _probability_of_showing(noise: ShuffledNoise) -> tuple[float, int, int]:
    """Returns with which probability one counter reveals its user, among how many users of how many noise bits."""
    m, p = noise.bits
    return (1 - p) ** m, noise.senders, m
