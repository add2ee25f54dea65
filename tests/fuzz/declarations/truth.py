"""The oracle: what a spec costs, from every pair of neighbours at tiny sizes. It imports nothing of privcheck.

* ρ and pure ε are exact up to float rounding: the loss of one pair is a sum over its cells, maximised over all pairs.
* δ at the claimed ε is bracketed: each cell's privacy loss is put on a grid, rounded up for one bound and down for the
  other, and the grids are convolved.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from declarations import answers, linear
from declarations.losses import STEP, Loss, bits_loss, gaussian_loss, integers_loss, laplace_loss, placed
from declarations.sampled import groups, pure_of_sampled, sampled_loss
from declarations.specs import Part, Spec, numbers_of

ORDERED = ("tree", "every", "batches")
TOUCHING = 1e-9  # relative: nearer to the claim than that, the oracle does not judge
Answer = Literal["meaningless", "true", "false", "unknown"]
ALPHAS = (1 + 1e-6, 1.1, 1.5, 2.0, 4.0, 8.0, 32.0, 128.0)


def answer(spec: Spec) -> Answer:
    """Returns whether the claim is true, false, too near to say, or about nothing."""
    if why_meaningless(spec):
        return "meaningless"
    claimed = float(spec.claimed(numbers_of(spec)))
    if spec.procedures or spec.claim == "approx":
        at_delta = spec.claim == "approx"
        low, high = delta_at(spec, claimed) if at_delta else bounds(spec)
        allowed = (float(spec.delta) if at_delta else claimed) * (1 + TOUCHING)
        return "true" if high <= allowed else "false" if low > allowed else "unknown"
    true = cost(spec)
    touching = 1e-6 if any(p.bounds for p in spec.parts) else TOUCHING  # what is searched is not quite the largest
    if true == claimed or abs(true / claimed - 1) < touching:
        return "unknown"
    return "true" if true < claimed else "false"


def why_meaningless(spec: Spec) -> str:  # noqa: PLR0911 - one return a reason
    """Returns why the spec must be refused; empty where it has a truth."""
    if spec.meaningless:
        return spec.meaningless
    if any((p.law in ("goe", "upper")) and p.statistic != "gram" for p in spec.parts):
        return "symmetric noise is for symmetric matrices"
    if spec.procedures:
        return _why_no_procedure(spec)
    laws, schedules = {p.law for p in spec.parts}, {p.schedule for p in spec.parts}
    shuffled = laws & {"bits", "integers"}
    if spec.model == "local" and (spec.relation != "replace" or schedules != {"user"} or shuffled):
        return "under local DP every user sends their own data, and any two inputs are compared"
    if spec.model != "local" and "user" in schedules:
        return "what every user sends is local"
    if (spec.model == "shuffle") != bool(shuffled) or (shuffled and laws - shuffled):
        return "messages behind a shuffler, and only they, are the shuffle model"
    if spec.model == "shuffle" and (spec.relation == "add" or not schedules <= {"batches", "once"}):
        return "the number of messages that leave a shuffler is public"
    if spec.relation == "add" and (schedules & set(ORDERED) or any(p.statistic.startswith("step") for p in spec.parts)):
        return "users in order are not removed"
    if any(p.law in shuffled and p.statistic not in ("visits", "transitions", "step visits") for p in spec.parts):
        return "shuffled bits protect sums of bits"
    return ""


def _why_no_procedure(spec: Spec) -> str:
    kinds = {p.kind for p in spec.procedures}
    if spec.relation != "replace" and kinds & {*answers.LOCAL, *answers.OWN}:
        return "a price that is stated, or local, is one of users who are replaced"
    return ""


def bounds(spec: Spec) -> tuple[float, float]:
    """Returns what some pair loses in the claim's unit, and what none exceeds: not the same of some procedures."""
    if not spec.procedures:
        return (cost(spec),) * 2
    if spec.claim == "approx":
        delta = float(spec.delta)
        sides = ((_together(spec, up=up), up) for up in (False, True))
        low, high = (_least_epsilon(lambda at, of=of: all(x.delta(at) <= delta for x in of)) for of, _ in sides)
        return low, high
    tables = max((_loss(spec, seen, rows) for seen, rows in _views(spec)), default=0.0)
    low, high = answers.size_bounds(spec)
    return tables + low, tables + high


def _together(spec: Spec, *, up: bool) -> list[Loss]:
    """Returns the losses of all answers and tables; any of them may be a user's worst at the same time."""
    tables = [_composed(signature, up=up) for signature in _all_signatures(spec) if signature is not None]
    return [x.plus(y) for x in answers.losses(spec, up=up) for y in tables or [Loss(0, np.ones(1), 0.0)]]


def cost(spec: Spec) -> float:
    """Returns the cost in the claim's unit: ρ, ε, or the least ε at δ up to the grid."""
    if why_meaningless(spec):
        return math.nan
    if sized := _of_sizes(spec):
        return max(map(cost, sized))
    if spec.claim == "approx":
        return _epsilon(spec)
    if any(p.law in ("bits", "integers") for p in spec.parts):
        return math.inf
    if any(p.bounds for p in spec.parts):
        return linear_rho(spec)
    return max((_loss(spec, seen, rows) for seen, rows in _views(spec)), default=0.0)


def _of_sizes(spec: Spec) -> list[Spec]:
    """Returns the spec for every size of a batch, where noise that is no shuffler's depends on it."""
    sized = {p.sizes for p in spec.parts if p.sizes and p.schedule == "batches" and p.law in ("gaussian", "laplace")}
    parts = tuple(replace(p, sizes=()) for p in spec.parts)
    return [replace(spec, parts=parts, values={**spec.values, "n": n}) for sizes in sized for n in sizes]


def linear_rho(spec: Spec) -> float:
    """Returns the ρ of linear statistics."""
    numbers = numbers_of(spec)
    return linear.rho(spec, {p.name: outputs_with_user(p, numbers)[0] for p in spec.parts}, numbers)


# users and pairs


@functools.lru_cache(maxsize=8)
def _users(horizon: int, states: int, actions: int) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (s, a, r)
        for s in itertools.product(range(states), repeat=horizon + 1)
        for a in itertools.product(range(actions), repeat=horizon)
        for r in itertools.product((0, 1), repeat=horizon)
    )


@functools.lru_cache(maxsize=256)
def _tables(statistic: str, sizes: tuple[int, int, int], assigned: int) -> np.ndarray:
    """Returns every user's table, flat: (users, steps, cells of a step)."""
    horizon, states, actions = sizes
    found = []
    for s, a, r in _users(*sizes):
        table = np.zeros((horizon, states, actions, states))
        for h in range(horizon):
            weight = r[h] if "rewards" in statistic else 1 - r[h] if "costs" in statistic else 1
            if statistic.startswith("step") and h != assigned:
                weight = 0
            following = s[h + 1] if "transitions" in statistic else 0
            table[h, s[h], a[h], following] += weight
        if "transitions" not in statistic:
            table = table[..., :1]
        if statistic.startswith("pooled"):
            table = table.sum(axis=0, keepdims=True)
        found.append(table.reshape(table.shape[0], -1))
    return np.array(found)


@functools.lru_cache(maxsize=64)
def _pairs(relation: str, initial: str, sizes: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    users = _users(*sizes)
    if relation != "replace":
        return np.arange(len(users)), np.full(len(users), -1)
    first, second = np.array(
        [
            (i, j)
            for (i, u), (j, w) in itertools.product(enumerate(users), repeat=2)
            if initial == "any" or (u[0][0], u[1][0]) == (w[0][0], w[1][0])
        ]
    ).T
    return first, second


def _views(spec: Spec) -> list[tuple[tuple[Part, ...], np.ndarray]]:
    """Returns for every kind of user the releases that hold them, and all distinct changes of these together."""
    sizes = tuple(int(spec.values[name]) for name in ("H", "S", "A"))
    groups = [("",)] if not spec.partitions else list(itertools.product(*spec.partitions))
    found = []
    for group in groups:
        seen = tuple(p for p in spec.parts if not p.group or p.group in group)
        if not seen:
            continue
        stepwise = any(p.statistic.startswith("step") for p in seen)
        names = tuple(p.statistic for p in seen)
        days = range(sizes[0] if stepwise else 1)
        found += [(seen, _changes(names, spec.relation, spec.initial, sizes, assigned)) for assigned in days]
    return found


@functools.lru_cache(maxsize=512)
def _changes(
    statistics: tuple[str, ...], relation: str, initial: str, sizes: tuple[int, int, int], assigned: int
) -> tuple[np.ndarray, ...]:
    """Returns one array (changes, steps, cells) a statistic; rows belong together."""
    first, second = _pairs(relation, initial, sizes)
    arrays = []
    for statistic in statistics:
        tables = _tables(statistic, sizes, assigned)
        arrays.append(tables[first] - (tables[second] if relation == "replace" else 0))
    flat = np.concatenate([a.reshape(len(a), -1) for a in arrays], axis=1)
    if relation != "replace":
        flat = np.concatenate([flat, -flat])
    flat = np.unique(flat, axis=0)
    cuts = np.cumsum([a[0].size for a in arrays])[:-1]
    parts = np.split(flat, cuts, axis=1)
    return tuple(p.reshape(len(flat), *a.shape[1:]) for p, a in zip(parts, arrays, strict=True))


# outputs


def outputs_with_user(part: Part, numbers: Mapping[str, Fraction]) -> tuple[int, bool]:
    """Returns in how many outputs one user can be, and whether some user is in one output and not in another."""
    if part.schedule in ("once", "user", "batches", "sampled"):
        return 1, part.schedule != "once"
    number = int(part.outputs(numbers))
    if part.schedule == "every":
        return number, number > 1
    nodes = [
        (start, start + 2**level)
        for level in range(number.bit_length())
        for start in range(0, number, 2**level)
        if start + 2**level <= number
    ]
    return max((sum(a <= leaf < b for a, b in nodes) for leaf in range(number)), default=0), len(nodes) > 1


def _independent(spec: Spec, seen: Sequence[Part], rows: Sequence[np.ndarray]) -> tuple[list[Any], np.ndarray]:
    """Returns (part, changes, outputs) with noise of their own, and which rows are told apart for certain."""
    numbers = numbers_of(spec)
    certain = np.zeros(len(rows[0]), dtype=bool)
    kept = []
    for part, change in zip(seen, rows, strict=True):
        count, apart = outputs_with_user(part, numbers)
        moved = change.reshape(len(change), -1).any(axis=1) & (count > 0)
        flat = change.reshape(len(change), -1)
        if "cells" in part.across:
            alike = (change == change[:, :, :1]).all(axis=(1, 2))
            certain |= moved & ~alike
            flat = change[:, :, 0]
        if "outputs" in part.across:
            if apart:
                certain |= moved
            count = min(count, 1)
        kept.append((part, flat, count))
    return kept, certain


# losses


def _loss(spec: Spec, seen: Sequence[Part], rows: Sequence[np.ndarray]) -> float:
    numbers = numbers_of(spec)
    kept, certain = _independent(spec, seen, rows)
    if certain.any():
        return math.inf
    if spec.claim == "pure" and spec.sample:
        each = [np.abs(flat).sum(axis=1) * count / float(part.spread(numbers)) for part, flat, count in kept]
        return pure_of_sampled(spec, each)
    if spec.claim == "pure":
        sums = np.zeros(len(rows[0]))
        for part, flat, count in kept:
            spread = float(part.spread(numbers))
            moved = np.abs(flat).sum(axis=1) * count
            sums += np.where(moved > 0, np.inf, 0) if part.law == "gaussian" else moved / spread
        return float(sums.max(initial=0.0))
    best = np.zeros(len(rows[0]))
    if spec.sample:  # in ρ, a supremum over all orders, sampling saves Gaussian noise nothing
        squares = (count * np.square(flat).sum(axis=1) / float(part.spread(numbers)) for part, flat, count in kept)
        return float(np.max(sum(squares), initial=0.0)) / 2 * spec.rounds
    for alpha in (None, *ALPHAS):
        sums = np.zeros(len(rows[0]))
        for part, flat, count in kept:
            spread = float(part.spread(numbers))
            if part.law == "gaussian":
                sums += count * np.square(flat).sum(axis=1) / (2 * spread)
            else:
                sums += count * _laplace_renyi(np.abs(flat) / spread, alpha).sum(axis=1)
        best = np.maximum(best, sums)
    return float(best.max(initial=0.0))


def _laplace_renyi(t: np.ndarray, alpha: float | None) -> np.ndarray:
    """Returns D_α/α of Lap(0, 1) against Lap(t, 1); the Kullback–Leibler divergence at None."""
    if alpha is None:
        return t + np.expm1(-t)
    total = alpha / (2 * alpha - 1) * np.exp((alpha - 1) * np.minimum(t, 600 / alpha))
    total = total + (alpha - 1) / (2 * alpha - 1) * np.exp(-alpha * t)
    return np.where(t > 600 / alpha, 0.0, np.log(total) / (alpha - 1) / alpha)


# δ at ε, bracketed


def delta_at(spec: Spec, epsilon: float) -> tuple[float, float]:
    """Returns a lower and an upper bound on the least δ at ε."""
    if sized := _of_sizes(spec):
        lows, highs = zip(*(delta_at(one, epsilon) for one in sized), strict=True)
        return max(lows), max(highs)
    low = high = 0.0
    if spec.procedures:
        low, high = (
            max(loss.delta(epsilon) for loss in _together(spec, up=up)) * factor
            for up, factor in ((False, 1 - 1e-6), (True, 1 + 1e-6))
        )
        return low - 1e-9, min(high + 1e-9, 1.0)
    if spec.sample:
        for seen, rows in _views(spec):
            kept, _ = _independent(spec, seen, rows)
            low = max(low, _sampled_delta(spec, kept, epsilon, up=False) * (1 - 1e-6) - 1e-9)
            high = max(high, _sampled_delta(spec, kept, epsilon, up=True) * (1 + 1e-6) + 1e-9)
        return low, min(high, 1.0)
    for signature in _all_signatures(spec):
        if signature is None:
            return 1.0, 1.0
        low = max(low, _composed(signature, up=False).delta(epsilon) * (1 - 1e-6) - 1e-9)
        high = max(high, _composed(signature, up=True).delta(epsilon) * (1 + 1e-6) + 1e-9)
    return low, min(high, 1.0)


def _all_signatures(spec: Spec) -> set[Any]:
    """Returns what the losses of all views depend on; None among them where a pair is told apart for certain."""
    found: set[Any] = set()
    for seen, rows in _views(spec):
        kept, certain = _independent(spec, seen, rows)
        if certain.any():
            return {None}
        for users in dict.fromkeys(n for p in seen for n in p.sizes) or (0,):
            whole = any(p.law == "integers" for p in seen)
            found |= _integer_signatures(spec, seen, users) if whole else _signatures(spec, kept, users)
    return found


def _integer_signatures(spec: Spec, seen: Sequence[Part], users: int) -> set[Any]:
    """Returns how often which counter changes, for integer messages: what the other user holds tells them apart too."""
    sizes, numbers = tuple(int(spec.values[name]) for name in ("H", "S", "A")), numbers_of(spec)
    first, second = _pairs(spec.relation, spec.initial, sizes)
    codes, laws = [], []
    for part in seen:
        table = _tables(part.statistic, sizes, 0).reshape(len(_users(*sizes)), -1)
        change = table[first] - (table[second] if spec.relation == "replace" else 0)
        change = change if spec.relation == "replace" else np.concatenate([change, -change])
        others = table if users == 2 else np.zeros((1, table.shape[1]))
        codes.append(
            (2 * change[:, None, :] + others[None, :, :] * (change != 0)[:, None, :]).reshape(-1, table.shape[1])
        )
        threshold = float(part.spread(numbers))
        laws.append((users, max(1, math.ceil(threshold / users)), min(0.5, threshold / (2 * users))))
    found = set()
    for row in np.unique(np.concatenate(codes, axis=1), axis=0):
        at, scalars = 0, {}
        for law, code in zip(laws, codes, strict=True):
            for c in row[at : at + code.shape[1]]:
                if c:  # ±2, and 1 more where the other user holds a 1
                    key = ("integers", *law, c > 0, int(c) % 2)
                    scalars[key] = scalars.get(key, 0) + 1
            at += code.shape[1]
        found.add((0.0, tuple(sorted(scalars.items()))))
    return found


def _signatures(spec: Spec, kept: Sequence[Any], users: int) -> set[Any]:
    """Returns what the loss of a row depends on: μ², and how often which scalar change occurs."""
    numbers = numbers_of(spec)
    found = set()
    for row in _undominated(kept):
        squares, scalars = 0.0, {}
        for part, flat, count in kept:
            spread = float(part.spread(numbers))
            change = flat[row][flat[row] != 0]
            if part.law == "gaussian":
                squares += count * float(np.square(change).sum()) / spread
                continue
            for c in change:
                key = ("laplace", round(abs(float(c)) / spread, 12))
                if part.law == "bits":
                    bits = max(1, math.ceil(spread / users))
                    key = ("bits", users * bits, min(0.5, spread / (2 * users)), bool(c > 0))
                scalars[key] = scalars.get(key, 0) + count
        found.add((round(squares, 12), tuple(sorted((k, n) for k, n in scalars.items() if n))))
    return found


def _undominated(kept: Sequence[Any]) -> list[int]:
    """Returns rows such that no other row moves every release at least as far: a larger shift is told apart better."""
    columns = []
    for part, flat, _ in kept:
        if part.law == "bits":
            columns += [-np.sort(-np.clip(flat, 0, None), axis=1), -np.sort(-np.clip(-flat, 0, None), axis=1)]
        else:
            columns.append(-np.sort(-np.abs(flat), axis=1))
    rows, first = np.unique(np.concatenate(columns, axis=1), axis=0, return_index=True)
    return [int(i) for row, i in zip(rows, first, strict=True) if ((rows >= row).all(axis=1)).sum() == 1]


@functools.lru_cache(maxsize=4096)
def _composed(signature: Any, *, up: bool) -> Loss:
    squares, scalars = signature
    total = Loss(0, np.ones(1), 0.0)
    if squares > 0:
        total = total.plus(gaussian_loss(math.sqrt(squares), up=up))
    for key, number in scalars:
        law = {"laplace": laplace_loss, "bits": bits_loss, "integers": integers_loss}[key[0]]
        total = total.plus(law(*key[1:], up=up).repeated(number))
    return total


def _sampled_delta(spec: Spec, kept: Sequence[Any], epsilon: float, *, up: bool) -> float:
    """Returns the δ of all rounds at the worst row, either way round: of one sample, or of one each."""
    worst = 0.0
    for row in _undominated(kept):
        parts = [next(iter(_signatures(spec, [(p, flat[row : row + 1], n)], 0))) for p, flat, n in kept]
        for added in (False, True):
            total = Loss(0, np.ones(1), 0.0)
            for group in groups(spec):
                total = total.plus(_sampled_group(tuple(parts[i] for i in group), float(spec.rate), added, up=up))
            worst = max(worst, total.repeated(spec.rounds).delta(epsilon))
    return worst


@functools.lru_cache(maxsize=1024)
def _sampled_group(parts: Sequence[Any], rate: float, added: bool, *, up: bool) -> Loss:  # noqa: FBT001
    """Returns the loss of what sees one sample in one round."""
    together, rounded = Loss(0, np.ones(1), 0.0), 0
    for part in parts:
        together = together.plus(_composed(part, up=up))
        rounded += (part[0] > 0) + sum(number for _, number in part[1])
    losses = (together.first + np.arange(together.masses.size)) * STEP
    slack = 1.5 * STEP * rounded  # a cell is an eighth of a step wide, or narrower, and then rounded to one
    losses, masses, infinite = sampled_loss(
        losses, together.masses, together.infinite, rate=rate, slack=slack, up=up, added=added
    )
    return placed(losses, masses, up=up, infinite=infinite)


def _epsilon(spec: Spec) -> float:
    if spec.sample:
        return _least_epsilon(lambda epsilon: delta_at(spec, epsilon)[1] <= float(spec.delta))
    signatures = _all_signatures(spec)
    if None in signatures:
        return math.inf
    losses = [_composed(signature, up=True) for signature in signatures]
    return _least_epsilon(lambda epsilon: all(loss.delta(epsilon) <= float(spec.delta) for loss in losses))


def _least_epsilon(met: Callable[[float], bool]) -> float:
    low, high = 0.0, 64.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high
