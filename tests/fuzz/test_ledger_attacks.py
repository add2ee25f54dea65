"""Attacks on a ledger's store are found by heads that were pushed elsewhere; `benchmarks/ledger_attacks.py` has more.

Histories and attacks are drawn from fixed seeds; what goes undetected would be a collision of SHA-256.
"""

import pytest

from ledger_attacks import ATTACKS, attack


@pytest.mark.parametrize("kind", ATTACKS)
@pytest.mark.parametrize(
    "first", [0, pytest.param(10, marks=pytest.mark.nightly), pytest.param(60, marks=pytest.mark.nightly)]
)
def test_every_attack_is_found(kind, first, tmp_path):
    for seed in range(first, first + (10 if first == 0 else 50)):
        assert attack(kind, seed, tmp_path / str(seed)), (kind, seed)


def test_a_ledger_that_nobody_attacked_is_not_accused(tmp_path):
    for seed in range(10):
        assert attack("honest", seed, tmp_path / str(seed)) == []
