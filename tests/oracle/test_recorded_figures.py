"""ε of generated compositions beside what was recorded before the accountant was made faster, and beside a peer."""

import json
import math

import pytest

from accountant_questions import RECORDED, Question, questions

ROWS = json.loads(RECORDED.read_text(encoding="utf-8"))
LOOSER = 1e-4  # relative, than recorded
PEER_NOISE = 1e-7  # δ below which the peer's bound from below is one of its transform's rounding
CASES = [  # a third of them at every change
    pytest.param(q, row, id=f"{i}-{q.kind}", marks=[pytest.mark.nightly] if i % 3 else [])
    for i, (q, row) in enumerate(zip(questions(), ROWS, strict=True))
]


@pytest.mark.parametrize(("question", "row"), CASES)
def test_figures_are_neither_below_any_bound_nor_looser_than_they_were(question: Question, row):
    before, lower, optimistic, pessimistic = (math.nan if x is None else x for x in row)
    found = question.figure()
    assert found.upper <= before * (1 + LOOSER)
    assert not found.upper < lower
    if question.delta > PEER_NOISE:
        assert not found.upper < optimistic
    assert not found.upper > pessimistic * (1 + 1e-5)
    if found.bounded_below and not math.isnan(lower):
        assert found.lower <= before
