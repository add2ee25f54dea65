"""Every entry of the table of sensitivities against all neighbours at tiny sizes; no line shared with the checker."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

import certificate_samples as samples
from privcheck_check.costs import numbers_at_least, sensitivity
from privcheck_check.declared import read_declared
from privcheck_check.products import Prover
from privcheck_check.terms import evaluate

RELATIONS = ["add-remove", "zero-out", "replace-one", "replace-one-same-start"]
WEIGHTS = {
    "one": lambda r: r * 0 + 1, "reward": lambda r: r, "cost": lambda r: 1 - r,
    "centred-reward": lambda r: r - Fraction(1, 2),
}  # fmt: skip
CELLS = [["state"], ["state", "action"], ["state", "action", "next"], ["state", "next"]]
Walk = tuple[tuple[int, ...], tuple[int, ...], tuple[Fraction, ...]]


def declared(statistic: dict[str, Any], relation: str, m: int = 1, **sizes: int) -> Any:
    law = {"law": "laplace", "scale": 1}
    return read_declared({
        "name": "tiny", "source": "", "relation": relation, "model": "central",
        "unit": {"who": "user", "trajectories": m},
        "parameters": {key: samples.integer(number, 0) for key, number in sizes.items()},
        "releases": [{"name": "one", "statistic": statistic, "mechanism": law, "schedule": samples.ONCE}],
        "claim": {"currency": "pure", "epsilon": 1, "source": ""},
    })  # fmt: skip


def charged(what: Any) -> tuple[Fraction | None, Fraction, Fraction]:
    """ℓ₁ and squared ℓ₂ as the checker charges them; the square from below and above."""
    moved = sensitivity(what.releases[0], what, numbers_at_least(what))
    l1 = None if moved.l1 is None else evaluate(moved.l1, what.values)[1]
    return l1, *evaluate(moved.square, what.values)


def walks(steps: int) -> list[Walk]:
    rewards = [Fraction(0), Fraction(1)]  # the ends: both norms are convex in every reward
    return [
        (states, actions, given)
        for states in itertools.product(range(2), repeat=steps + 1)
        for actions in itertools.product(range(2), repeat=steps)
        for given in itertools.product(rewards, repeat=steps)
    ]


def counts(walk: Walk, cells: list[str], weight: str, *, pooled: bool) -> Counter[Any]:
    states, actions, rewards = walk
    total: Counter[Any] = Counter()
    for h in range(len(actions)):
        at = {"state": states[h], "action": actions[h], "next": states[h + 1]}
        total[0 if pooled else h, tuple(at[each] for each in cells)] += WEIGHTS[weight](rewards[h])
    return total


def norms(one: Counter[Any], other: Counter[Any]) -> tuple[Fraction, Fraction]:
    keys = one.keys() | other.keys()
    return sum(abs(one[k] - other[k]) for k in keys), sum((one[k] - other[k]) ** 2 for k in keys)


def related(a: Walk, b: Walk, relation: str) -> bool:
    return relation != "replace-one-same-start" or (a[0][0], a[1][0]) == (b[0][0], b[1][0])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("steps", [1, 2])
def test_tables_by_enumeration(relation: str, pooled: bool, steps: int) -> None:
    everybody = walks(steps)
    for cells, weight in itertools.product(
        CELLS if steps == 1 else CELLS[1:3], WEIGHTS if steps == 1 else ["one", "centred-reward"]
    ):
        statistic = samples.table(cells, weight) | {"pooled": pooled}
        l1, low, high = charged(declared(statistic, relation, H=steps, S=2, A=2))
        alike = {}  # walks with one start and one table are one
        for each in everybody:
            total = counts(each, cells, weight, pooled=pooled)
            alike[each[0][0], each[1][0], frozenset(total.items())] = each, total
        if relation in ("add-remove", "zero-out"):
            found = [norms(total, Counter()) for _, total in alike.values()]
        else:
            pairs = itertools.combinations(alike.values(), 2)
            found = [norms(a, b) for (one, a), (other, b) in pairs if related(one, other, relation)]
        most, square = max((a for a, _ in found), default=0), max((b for _, b in found), default=0)
        assert l1 is not None
        assert l1 >= most
        assert high >= square
        if not pooled:  # the entries are suprema, not only bounds
            assert l1 == most, (cells, weight)
            assert low <= square <= high


def test_units_of_two_trajectories_by_enumeration() -> None:
    everybody = walks(1)
    for cells, weight, relation in itertools.product(CELLS[:2], ["one", "reward"], ["add-remove", "replace-one"]):
        l1, _, high = charged(declared(samples.table(cells, weight), relation, m=2, H=1, S=2, A=2))
        sums = [counts(each, cells, weight, pooled=False) for each in everybody]
        users = [Counter[Any]()] if relation == "add-remove" else []
        single = list({frozenset(each.items()): each for each in sums}.values())
        double = [a + b for a, b in itertools.combinations_with_replacement(single, 2)]
        for each in double:
            for other in users or single + double:
                most, square = norms(each, other)
                assert l1 is not None
                assert most <= l1
                assert square <= high


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("part", ["sum", "outer"])
@pytest.mark.parametrize("signed", [False, True])
def test_linear_sums_by_corners(relation: str, part: str, signed: bool) -> None:
    """Unit vectors at angles of 15 degrees, targets and weights at their ends, two steps with targets H − h + 1."""
    steps = 2
    statistic = samples.linear(part, "H - h + 1", feature="2", weight="1/3") | {"signed": signed}
    _, low, high = charged(declared(statistic, relation, H=steps))
    circle = [(2 * math.cos(a * math.pi / 12), 2 * math.sin(a * math.pi / 12)) for a in range(24)]
    best = 0.0
    for h in range(1, steps + 1):
        largest = steps - h + 1 if part == "sum" else 1
        entries = []
        for (x, y), w, t in itertools.product(circle, (0, 1 / 3), (-largest if signed else 0, largest)):
            entries.append((w * t * x, w * t * y) if part == "sum" else (w * x * x, w * x * y, w * x * y, w * y * y))
        others = [(0.0,) * len(entries[0])] if relation == "add-remove" else entries
        best += max(sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) for a in entries for b in others)
    assert float(low) == pytest.approx(best, rel=1e-9)
    assert float(high) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_bits_and_bounded_vectors(relation: str) -> None:
    what = declared({"kind": "bits", "bits": 5, "ones": 2}, relation)
    users = [bits for bits in itertools.product((0, 1), repeat=5) if sum(bits) <= 2]
    others = [(0,) * 5] if relation == "add-remove" else users
    most = max(sum(x != y for x, y in zip(a, b, strict=True)) for a in users for b in others)
    assert charged(what) == (most, most, most)
    what = declared({"kind": "bounded", "l1": 3, "l2": 2}, relation)
    factor = 1 if relation == "add-remove" else 2
    assert charged(what) == (3 * factor, (2 * factor) ** 2, (2 * factor) ** 2)


def test_a_sum_over_steps_is_one_for_all_parameters() -> None:
    """Faulhaber's polynomials against the sum itself."""
    rng = random.Random(3)
    for _ in range(20):
        a, b, k = rng.randrange(1, 5), rng.randrange(5), rng.randrange(4)
        statistic = samples.linear("sum", f"{a}*(H-h)**{k} + {b}", steps="H + 1")
        for steps in (1, 4):
            what = declared(statistic, "replace-one", H=steps)
            prover = Prover(what)
            top, _ = prover.normal(sensitivity(what.releases[0], what, prover.at_least).square)
            symbolic = sum(c * math.prod(Fraction(steps) ** int(e) for _, e in p) for p, c in top.items())
            assert symbolic == sum(4 * (a * (steps - h) ** k + b) ** 2 for h in range(1, steps + 2))


def test_a_tree_has_as_many_nodes_over_a_leaf_as_charged() -> None:
    for leaves in range(1, 70):
        worst = max(
            sum((leaf >> k) + 1 << k <= leaves for k in range(10))
            for leaf in range(leaves)  # complete nodes only
        )
        assert worst == leaves.bit_length()
