"""Each statement that a page calls refuted: the pair's loss again, from the pair alone, with the paper's noise.

Nothing of the accountant or of the statistics is used: tables are dictionaries, nodes of a tree are listed, sums of
vectors are loops. What is taken from privcheck are the two users of the witness and the figure that is compared.
"""

from __future__ import annotations

import collections
import math
import re
from pathlib import Path

import pytest

from privcheck.runtime import registry
from privcheck.verification import verify

PAGES = Path(__file__).parents[2] / "docs" / "findings"
ROW = re.compile(r"^\| ([^|]+) \| \[([a-z0-9-]+)\]\(#[a-z0-9-]+\) \| refuted \|", re.MULTILINE)


def _cells(user, *, by_step):
    """One trajectory's visits, costs or rewards, and transitions, as dictionaries."""
    visits, rewards, transitions = (collections.Counter() for _ in range(3))
    states, actions, paid = user.states[0].tolist(), user.actions[0].tolist(), user.rewards[0].tolist()
    for h, (state, action, reward) in enumerate(zip(states[:-1], actions, paid, strict=True)):
        place = (h, state, action) if by_step else (state, action)
        visits[place] += 1
        rewards[place] += reward
        transitions[*place, states[h + 1]] += 1
    return visits, rewards, transitions, states[0], actions[0]


def _moved(one, other):
    return {cell: one[cell] - other[cell] for cell in one.keys() | other.keys() if one[cell] != other[cell]}


def _tables(pair, *, by_step, costs):
    """Changes of the three tables; costs are 1 − reward, so that a visit is a cost too."""
    (visits, rewards, moves, *start), (visits2, rewards2, moves2, *start2) = (_cells(u, by_step=by_step) for u in pair)
    if costs:
        rewards, rewards2 = ({c: v[c] - r[c] for c in v} for v, r in ((visits, rewards), (visits2, rewards2)))
        rewards, rewards2 = collections.Counter(rewards), collections.Counter(rewards2)
    changed = [_moved(visits, visits2), _moved(rewards, rewards2), _moved(moves, moves2)]
    return changed, start == start2


def _total(changed):
    return sum(abs(change) for table in changed for change in table.values())


def _nodes(users):
    """Complete nodes of a binary tree over leaves 1 … users that hold leaf 1."""
    nodes = [(start + 1, start + size) for size in (2**j for j in range(40)) for start in (0, size)]
    return sum(1 for first, last in nodes if first <= 1 <= last <= users)


def _tree_loss(pair, H, K, epsilon):
    """Lemma 5.1: Lap(3H⌈log₂ K⌉/ε) on every node of three trees over K − 1 users."""
    changed, together = _tables(pair, by_step=True, costs=True)
    assert together  # section 2.2: the first state and action are in common
    levels = next(j for j in range(64) if 2**j >= K)
    return _total(changed) * _nodes(K - 1) / (3 * H * levels / epsilon)


def _local_loss(pair, H, K, epsilon):
    """Lemma 5.4: Lap(3H/ε) on each user's three tables."""
    changed, _ = _tables(pair, by_step=True, costs=True)
    return _total(changed) / (3 * H / epsilon)


def _published_loss(pair, H, K, epsilon):
    """Figure 2's program: Lap(1/ε) at least on the same pooled counts in each of K − 1 episodes."""
    changed, together = _tables(pair, by_step=False, costs=False)
    assert together
    return _total(changed) * (K - 1) * epsilon


def _shared_loss(pair, H, K, epsilon):
    """Figure 2's local program: one draw for all cells, so that differences between two cells are exact."""
    changed, _ = _tables(pair, by_step=False, costs=False)
    some_cells = [table for table in changed if 0 < len(table) < 6 * 2]  # the other cells show the draw itself
    return math.inf if some_cells else 0.0


def _sums(user, d, H, columns):
    """Σ over the user's steps of weight·φ·target, a list of H vectors for each column; the last is the Gram matrix."""
    vectors = user.vectors["phi"][0].tolist()
    weights = user.weights["1/variance"][0].tolist() if "1/variance" in user.weights else [1.0] * H
    assert all(math.hypot(*vector) <= 3 + 1e-9 for vector in vectors)
    sums = []
    for names, power in columns:
        target = [sum(user.targets[name][0].tolist()[h] for name in names) ** power for h in range(H)]
        sums.append([[weights[h] * x * target[h] for x in vectors[h]] for h in range(H)])
    gram = [[[weights[h] * x * y for y in vectors[h]] for x in vectors[h]] for h in range(H)]
    return sums, gram


def _one_draw_loss(pair, H, K, d, rho):
    """Algorithm 1, step 1: the user is the second; the second output less the first is the user's sum, exactly."""
    assert K > 2
    grams = [_sums(user, d, H, ())[1] for user in pair]
    return math.inf if grams[0] != grams[1] else 0.0


def _ngo_loss(pair, *, H, K, d, N, rho):
    """`DP_LSVI_Ngo.py`: GOE noise of variance ln²K/4ρ on one batch's Gram matrix; gains at every policy update."""
    (gains, gram), (gains2, gram2) = (_sums(user, d, H, [((*user.targets,), 1)]) for user in pair)
    frobenius = sum((gram[h][i][j] - gram2[h][i][j]) ** 2 for h in range(H) for i in range(d) for j in range(d))
    squared = sum((gains[0][h][i] - gains2[0][h][i]) ** 2 for h in range(H) for i in range(d))
    return frobenius / (4 * math.log(K) ** 2 / (4 * rho)) + squared * (min(K, N) - 1) / (2 * 6 * H**2 * N / rho)


# by statement and system: how its loss is computed again, and the claim
CASES = {
    ("Lemma 5.1", "private-ucb-vi-central"): (_tree_loss, "epsilon"),
    ("Lemma 5.1", "private-ucb-po-central"): (_tree_loss, "epsilon"),
    ("Lemma 5.4", "private-ucb-vi-local"): (_local_loss, "epsilon"),
    ("Lemma 5.4", "private-ucb-po-local"): (_local_loss, "epsilon"),
    ("Figure 2's labels ε", "published-ucb-vi-central"): (_published_loss, "epsilon"),
    ("Figure 2's labels ε", "published-ucb-vi-local"): (_shared_loss, "epsilon"),
    ("Theorem A.1's proof, ρ-zCDP of the statistics", "dp-lsvi-ucb-pp-as-printed"): (_one_draw_loss, "rho"),
    ("Section 4's comparison at one budget", "published-lsvi-ucb-pp"): (_one_draw_loss, "rho"),
    ("Section 4's comparison at one budget", "published-ngo-lsvi-ucb"): (_ngo_loss, "rho"),
}


def test_every_refuted_statement_of_the_pages_has_a_case_here():
    pages = (path.read_text(encoding="utf-8") for path in PAGES.glob("*.md"))
    assert {row for page in pages for row in ROW.findall(page)} == CASES.keys()


@pytest.mark.parametrize(("statement", "name"), CASES, ids=lambda x: x)
def test_the_pair_loses_what_the_page_says_and_more_than_the_claim(statement, name):
    declare = registry.algorithm(name).declare
    assert declare is not None
    declaration = declare({})
    values = declaration.values()
    found = verify(declaration, values)
    judged = {one.statement.name: one.standing for one in found.statements}
    assert judged[statement] == "refuted"
    loss, currency = CASES[statement, name]
    sizes = {key: int(value) for key, value in values.items() if key in {"H", "K", "d", "N"}}
    claimed = float(values[currency])
    again = loss(found.witness.pair, **sizes, **{currency: claimed})
    assert again > claimed * 1.001
    assert again == pytest.approx(found.lower_ratio * claimed, rel=1e-9)
    assert found.lower_ratio * claimed <= again * (1 + 1e-12)
