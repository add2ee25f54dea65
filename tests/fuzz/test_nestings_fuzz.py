"""Random nestings of combinators: more never costs less, orders that commute agree, no label is stronger than a part's.

The nestings are those of the fuzzer, up to four combinators deep, over all events; its oracle bounds them from below.
Seeds are fixed, so that nothing here depends on chance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accounting.jobs import build
from accounting.nestings import INSIDE, draw_nesting, fits, layers, releases, within
from accounting.parts import RELATION, Part
from accounting.truth import Judge
from privcheck import accounting as acc

EPSILONS = (0.05, 0.4, 1.5)
ROUNDED = 1e-9  # by which two exact figures may differ
LEAST = 1e-12  # δ below which a grid's bound says more of its rounding than of the curve
AROUND = 0.1  # by which a group around a tree may be charged more than one in every node
PUT_TOGETHER = 0.02  # … and two that are put together from 161 points of one user's curve


def costs(part, users=None):
    made = build(part)
    curve = acc.compose(made if users is None else acc.group(made, size=users))
    return np.array([curve.delta(epsilon=e).upper for e in EPSILONS])


def labels(part):
    curve = acc.compose(build(part))
    return {curve.delta(epsilon=0.4).direction, curve.deltas([0.05, 0.4]).direction}


def tolerance(part):
    kinds = [p.kind for p in layers(part)]
    return ROUNDED if set(kinds).isdisjoint({"group", "user_level", "profile"}) else PUT_TOGETHER


def grown(part, rng):
    """Returns the nesting with one number of one layer changed so that it tells more; None where it has none."""
    inside = layers(part)
    for index in rng.permutation(len(inside)):
        some, given = inside[index], inside[index].parameters
        more = [replace(some, count=some.count + 1)] if index and inside[index - 1].kind != "tree" else []
        for name, value in given.items():
            changed = {
                "size": lambda v: v + 1,
                "records": lambda v: v + 1,
                "releases": lambda v: v + 1,
                "leaves": lambda v: 2 * v,
                "rate": lambda v: min(1.0, 1.5 * v),
                "batch": lambda v: v + 1,
                "most": lambda v: v + 1,
                "draws": lambda v: v + 1,
                "std": lambda v: v / 1.2,
                "scale": lambda v: v / 1.2,
                "epsilon": lambda v: 1.2 * v,
                "local_epsilon": lambda v: 1.2 * v,
                "rho": lambda v: 1.2 * v,
            }.get(name)
            if changed is not None and not (some.kind == "truncated_poisson_gaussian" and name == "most"):
                more.append(replace(some, parameters=given | {name: changed(value)}))
        if more:
            found = more[int(rng.integers(len(more)))]
            for outer in reversed(inside[:index]):
                name = next(n for n in INSIDE if n in outer.parameters)
                found = replace(outer, parameters=outer.parameters | {name: found})
            return found
    return None


def drawn(seed, *, deepest=4, least=0):
    rng = np.random.default_rng([30, seed])
    return draw_nesting(rng, int(rng.integers(least, deepest + 1))), rng


@pytest.mark.parametrize("seed", range(30))
def test_more_users_leaves_releases_and_larger_rates_never_cost_less(seed):
    part, rng = drawn(seed)
    part = next((p for p in layers(part) if "profile" not in {q.kind for q in layers(p)}), part)
    low = costs(part)
    for larger in (grown(part, rng), grown(part, rng) if releases(part) > 1 else replace(part, count=2)):
        if larger is not None:
            assert (costs(larger) >= low * (1 - tolerance(part)) - LEAST).all(), (str(part), str(larger))


@pytest.mark.parametrize("seed", range(100, 116))
def test_a_group_a_tree_or_another_draw_around_anything_never_costs_less(seed):
    part, _ = drawn(seed, deepest=3)
    part = replace(part, count=1)
    low = costs(part)
    around = [Part("group", {"what": part, "size": 2}), replace(part, count=2)]
    if fits("tree", part):
        around.append(Part("tree", {"node": part, "leaves": 2, "participations": 1}))
    for larger in around:
        assert (costs(larger) >= low * (1 - PUT_TOGETHER) - LEAST).all(), str(larger)


def tree(node, leaves):
    return Part("tree", {"node": node, "leaves": leaves, "participations": 1})


def poisson(event, rate):
    return Part("poisson", {"event": event, "rate": rate, **RELATION})


def group(what):
    return Part("group", {"what": what, "size": 2})


@pytest.mark.parametrize("seed", range(200, 220))
def test_orders_that_commute_by_theory_agree(seed):
    """A sample is drawn once for all nodes, a group is the same in all, and of two samples both have to hold.

    A group around a tree is bounded from one user's curve, which may be above what a group in every node costs.
    """
    part, _ = drawn(seed, deepest=2)
    while "profile" in {p.kind for p in layers(part)} or releases(part) > 1:
        part = within(part) or replace(part, count=1)
    pairs = [(tree(tree(part, 2), 4), tree(tree(part, 4), 2))]
    if fits("group", part):
        inside, around = costs(tree(group(part), 5)), costs(group(tree(part, 5)))
        close = max(tolerance(part), 1e-3)
        assert (around >= inside * (1 - close) - LEAST).all(), str(part)
        assert (around <= inside * (1 + AROUND) + LEAST).all(), str(part)
    if fits("poisson", part):
        pairs.append((tree(poisson(part, 0.2), 5), poisson(tree(part, 5), 0.2)))
        pairs.append((poisson(poisson(part, 0.1), 0.4), poisson(poisson(part, 0.4), 0.1)))
    for one, other in pairs:
        assert costs(one) == pytest.approx(costs(other), rel=max(tolerance(one), 1e-3), abs=LEAST), (
            str(one),
            str(other),
        )
    a, b = build(part), acc.gaussian(std=9)
    for one, other in (
        (acc.parallel(a, b), acc.parallel(b, a)),
        (acc.compose(a, b), acc.Plan.of(b, a).curve),
        (acc.compose(a, a), acc.compose(2 * a)),
        (acc.compose(acc.user_level(a, records=2)), acc.compose(acc.group(a, size=2))),
    ):
        assert [one.delta(epsilon=e).upper for e in EPSILONS] == [other.delta(epsilon=e).upper for e in EPSILONS]


@pytest.mark.parametrize("seed", range(300, 324))
def test_no_label_is_stronger_than_a_parts(seed):
    part, _ = drawn(seed, least=1)
    inside = layers(part)
    for inner in inside[1:]:
        if "upper" in labels(replace(inner, count=1)):
            assert labels(part) == {"upper"}, (str(part), str(inner))


@pytest.mark.parametrize("seed", range(400, 430))
def test_no_figure_is_below_what_each_users_draws_tell(seed):
    part, _ = drawn(seed, least=1)
    judge = Judge([Part("nested", {"made": part})], finest=1)
    for epsilon, found in zip(EPSILONS, costs(part), strict=True):
        assert found >= judge.least(epsilon), str(part)
