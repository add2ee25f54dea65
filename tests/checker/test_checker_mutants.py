"""Mutated certificates: none with a false statement is accepted, none raises, hangs or grows."""

import json
import random
import time

import pytest

import certificate_mutations as mutations
import certificate_samples as samples
from privcheck_check.check import check
from privcheck_check.values import Rejected, UnknownKind

SECONDS = 10.0  # of one certificate, on a machine that is busy


def outcome(data: bytes) -> str:
    begun = time.monotonic()
    try:
        check(data)
    except Rejected:
        found = "rejected"
    except UnknownKind:
        found = "unknown"
    else:
        found = "accepted"
    assert time.monotonic() - begun < SECONDS
    return found


@pytest.mark.parametrize("name", samples.ALL)
def test_a_false_mutant_is_rejected(name: str) -> None:
    rng = random.Random(f"{name} 1")
    document = samples.sealed(samples.ALL[name])
    assert outcome(mutations.data(document)) == "accepted"
    rejected = 0
    for _ in range(30):
        mutant = mutations.mutated(document, rng)
        found = outcome(mutations.data(mutant))
        rejected += found != "accepted"
        if found == "accepted":
            assert mutations.is_true(mutant, rng), mutant
    assert rejected >= 10


@pytest.mark.parametrize("name", samples.ALL)
def test_spoiled_text_is_rejected(name: str) -> None:
    rng = random.Random(f"{name} 2")
    document = samples.sealed(samples.ALL[name])
    text = json.dumps(document)
    for _ in range(16):
        data = mutations.spoiled(text, rng)
        if outcome(data) == "accepted":  # a byte of a free text may change, nothing else
            changed = json.loads(data)
            assert mutations.is_true(changed, rng)
            assert changed["kind"] == document["kind"]
