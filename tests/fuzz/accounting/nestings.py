"""Combinators inside one another: how they are drawn, and a lower bound on their curve from what each user draws.

A nesting is one mechanism below groups, trees, samples and profiles. What happens is told by how many of the users who
differ take part, release by release: the law of a tuple of moves. A tree repeats a release in every node of a path, on
the same draw; `count` draws anew; a profile forgets what was drawn, so that its repetitions draw anew. Given the moves
the outputs are noise that moves so far, and a mixture of that is set against no move at all. Gaussian noise is looked
at along one line, other noise cell by cell, at no more than a few outputs: both are functions of the outputs, and no
function of them tells neighbours apart better. Where Gaussian noise moves along one line anyway, that is the truth.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any, Final

import numpy as np

from . import truths
from .dense import Gauss, Mixture, Sampled
from .discrete import binomial, clones_loss, loss_of
from .normal import Long, Longs
from .parts import RELATION, Part, logs, nice
from .truths import DIRECTIONS, Composition, Parameters, Truth
from .worlds import Law

Draws = dict[tuple[Long, ...], Long]  # probabilities of moves
AROUND: Final = ("group", "user_level", "tree", "poisson", "without_replacement", "profile")
GROUPS: Final = ("group", "user_level")
CURVES: Final = ("parallel", "plan")  # of which there is no event, only a curve
GAUSSIAN: Final = (
    "gaussian",
    "symmetric_gaussian",
    "poisson_gaussian",
    "mixture_of_gaussians",
    "truncated_poisson_gaussian",
    "with_replacement",
    "zcdp",
    "privacy_profile",
    "trade_off",
    "renyi_curve",
)
CELLS: Final = (
    "laplace",
    "discrete_laplace",
    "discrete_gaussian",
    "pure",
    "randomized_response",
    "permute_and_flip",
    "exponential_mechanism",
    "shuffled_bits",
    "shuffled",
)
NAMED: Final = (  # events that name a relation
    "poisson_gaussian",
    "mixture_of_gaussians",
    "truncated_poisson_gaussian",
    "with_replacement",
    "shuffled",
    "poisson",
    "without_replacement",
)
ORDERS: Final = ("zcdp", "renyi_curve")  # of which no pair is known to sample from
INSIDE: Final = ("what", "event", "node", "of")  # the parameter that holds the part within
_MOST_USERS: Final = 4
_MOST_OUTCOMES: Final = 4000
_SEEN: Final = 4  # outputs of few values that are seen one by one, the others left out
_CELLS: Final = {1: 300, 2: 48, 3: 14, 4: 7}  # of continuous noise, by how many outputs are looked at


def within(part: Part) -> Part | None:
    """Returns what a combinator is around, None of an event."""
    return next((part.parameters[name] for name in INSIDE if name in part.parameters), None)


def layers(part: Part) -> list[Part]:
    """Returns a nesting's parts from the outermost to the event within."""
    found = [part]
    while (inner := within(found[-1])) is not None:
        found.append(inner)
    return found


def releases(part: Part) -> int:
    """Returns how often an event is released: what is inside a group counts, what is inside a sample does not."""
    if part.kind not in GROUPS:
        return part.count
    each = releases(part.parameters["what"])
    return part.count * min(each, part.parameters.get("releases", each))


def once(part: Part) -> Part:
    """Returns one release of an event."""
    if part.kind not in GROUPS:
        return replace(part, count=1)
    return Part(part.kind, part.parameters | {"what": once(part.parameters["what"])})


def draw_event(rng: np.random.Generator, kind: str) -> dict[str, Any]:
    """Returns parameters with which a group of four keeps some privacy."""
    spread, rate = nice(rng.uniform(1.5, 12)), logs(rng, -2.5, -0.3)
    if kind == "mixture_of_gaussians":
        chances = [round(1 - rate, 4), round(rate * rng.uniform(0.1, 0.9), 5)]
        sizes = [0.0, 1.0, nice(rng.uniform(1.2, 2.5))]
        chances.append(round(1 - math.fsum(chances), 5))
        return {"std": spread, "sensitivities": sizes, "probabilities": chances, **RELATION}
    users = int(rng.integers(8, 60))
    return {
        "gaussian": {"std": spread},
        "symmetric_gaussian": {"variance": nice(spread**2), "kind": "upper", "sensitivity": 1},
        "poisson_gaussian": {"std": nice(spread / 2), "rate": rate, **RELATION},
        "truncated_poisson_gaussian": {
            "std": spread,
            "rate": rate,
            "users": users,
            "most": int(rng.integers(1, users + 1)),
            **RELATION,
        },
        "with_replacement": {"std": 2 * spread, "users": users, "draws": int(rng.integers(1, 12)), **RELATION},
        "zcdp": {"rho": nice(1 / spread**2)},
        "privacy_profile": {"mu": nice(1 / spread)},
        "trade_off": {"mu": nice(1 / spread)},
        "renyi_curve": {"mu": nice(1 / spread)},
        "laplace": {"scale": spread},
        "discrete_laplace": {"scale": spread, "sensitivity": int(rng.integers(1, 4))},
        "discrete_gaussian": {"std": spread, "sensitivity": int(rng.integers(1, 3))},
        "pure": {"epsilon": nice(1 / spread)},
        "randomized_response": {"epsilon": nice(1 / spread), "categories": 2},
        "permute_and_flip": {"epsilon": nice(1 / spread)},
        "exponential_mechanism": {"epsilon": nice(1 / spread)},
        "shuffled_bits": {"users": users, "probability": nice(rng.uniform(0.3, 0.7)), "moved": "up"},
        "shuffled": {"local_epsilon": nice(1 / spread), "users": int(rng.integers(1, 9)), **RELATION},
    }[kind]


def draw_around(rng: np.random.Generator, kind: str, inner: Part) -> Part:
    """Returns a combinator around a part."""
    times = replace(inner, count=int(rng.choice([1, 1, 2, 3])))
    if kind == "group":
        return Part(kind, {"what": times, "size": int(rng.choice([2, 2, 3]))})
    if kind == "user_level":
        given = {"what": times, "records": int(rng.choice([1, 2, 2, 3]))}
        return Part(kind, given | ({"releases": int(rng.integers(1, 4))} if rng.random() < 0.5 else {}))
    if kind == "tree":
        return Part(kind, {"node": inner, "leaves": int(rng.integers(1, 10)), "participations": 1})
    if kind == "poisson":
        return Part(kind, {"event": times, "rate": logs(rng, -2.5, -0.1), **RELATION})
    if kind == "without_replacement":
        n = int(rng.integers(8, 40))
        return Part(kind, {"event": times, "users": n, "batch": int(rng.integers(1, n // 2 + 1)), **RELATION})
    return Part("profile", {"of": times})


def fits(kind: str, inner: Part) -> bool:
    """Returns whether theory knows a combinator around a part: what it does not, the accountant refuses."""
    inside = layers(inner)
    kinds = [part.kind for part in inside]
    seen = kinds[: kinds.index("profile")] if "profile" in kinds else kinds  # whatever is below is forgotten
    if kind in ("poisson", "without_replacement") and set(seen) & set(ORDERS):
        return False
    if kind == "without_replacement" and set(seen) & set(NAMED):
        return False
    users = math.prod(part.parameters.get("size", part.parameters.get("records", 1)) for part in inside)
    if kind in GROUPS:
        return 3 * users <= _MOST_USERS
    if kind == "tree" and releases(inner) > 1:  # a node is released once
        return False
    return kinds.count(kind) < 2


def draw_nesting(rng: np.random.Generator, depth: int) -> Part:
    """Returns an event below that many combinators."""
    kind = str(rng.choice([*GAUSSIAN, *CELLS]))
    part = Part(kind, draw_event(rng, kind))
    while depth > 0:
        around = str(rng.choice(AROUND, p=[0.22, 0.13, 0.25, 0.2, 0.12, 0.08]))
        if fits(around, part):
            part, depth = draw_around(rng, around, part), depth - 1
    return part


def draw(rng: np.random.Generator) -> dict[str, Any]:
    """Returns a nesting of at most four combinators."""
    depth = int(rng.integers(1, 5))
    if depth > 1 and rng.random() < 0.25:
        parts = [draw_nesting(rng, int(rng.integers(0, depth))) for _ in range(2)]
        made = Part(str(rng.choice(CURVES)), {"one": parts[0], "other": parts[1]})
        few = all(fits("group", part) for part in parts)
        return {"made": Part("group", {"what": made, "size": 2}) if few and rng.random() < 0.4 else made}
    return {"made": draw_nesting(rng, depth)}


def truth(parameters: Parameters, count: int) -> Truth:
    """Returns a lower bound on what a nesting tells about its users, which is the truth where noise moves on a line."""
    made = parameters["made"]
    ways = {d: _ways(made, count, 1, d) for d in DIRECTIONS}
    kinds = [part.kind for part in layers(made)]
    plain = kinds[-1] in ("gaussian", "poisson_gaussian") and set(kinds[:-1]) <= {"tree", "poisson"}
    return Truth(ways=ways, bounded=plain and all(part.count == 1 for part in layers(made)[1:]))


def _ways(part: Part, count: int, users: int, direction: str) -> list[Composition]:
    """Returns compositions one of which is what happens to so many users; each release of the outermost draws anew."""
    given, times = part.parameters, count * part.count
    if part.kind == "parallel":  # the users who differ are all in one of the two
        return [w for name in ("one", "other") for w in _ways(given[name], times, users, direction)]
    if part.kind == "plan":
        both = (_ways(given[name], times, users, direction) for name in ("one", "other"))
        return [a + b for a, b in itertools.product(*both)]
    if part.kind == "group" and layers(part)[-1].kind in CURVES:
        return _ways(given["what"], times, users * given["size"], direction)
    law = _law(*_draws(once(part), users, 1), direction)
    return [[] if law is None else [(law, count * releases(part))]]


def _draws(part: Part, users: int, repeats: int) -> tuple[Draws, Part, int]:
    """Returns the law of the moves of so many users, in all independent draws, with the event and its repetitions.

    Args:
        part: A nesting.
        users: Who differ.
        repeats: How often all of it is repeated on the same draw.
    """
    given, copies = part.parameters, part.count
    found: Draws
    if part.kind in GROUPS:
        copies, single = releases(part), once(part).parameters["what"]
        found, event, times = _draws(single, users * given.get("size", given.get("records")), repeats)
    elif part.kind == "tree":
        found, event, times = _draws(given["node"], users, repeats * given["leaves"].bit_length())
    elif part.kind == "profile":
        found, event, times = _draws(given["of"], users, 1)
        copies *= repeats
    elif part.kind in ("poisson", "without_replacement"):
        chances = _sampled(part, users)
        each = [_draws(given["event"], j, repeats) for j in range(users + 1)]
        found, (_, event, times) = _mixed([law for law, _, _ in each], chances), each[0]
    else:
        event, times = part, repeats
        found = _moves(part, users)
    return _independent(found, copies, ordered=event.kind in CELLS), event, times


def _mixed(laws: list[Draws], chances: Longs) -> Draws:
    found: Draws = defaultdict(lambda: Long(0))
    for law, chance in zip(laws, chances, strict=True):
        for moves, p in law.items():
            found[moves] += chance * p
    return dict(found)


def _independent(law: Draws, copies: int, *, ordered: bool = False) -> Draws:
    """Returns the law of the moves of independent copies.

    Args:
        law: Of one.
        copies: How many.
        ordered: Whether outputs are seen one by one, so that it matters which of them moved; the first `_SEEN` are
            enough. Else only the sum of the moves matters, and they are sorted.
    """
    found: Draws = {(): Long(1)}
    for _ in range(copies):
        joined: Draws = defaultdict(lambda: Long(0))
        for (a, p), (b, q) in itertools.product(found.items(), law.items()):
            joined[(a + b)[:_SEEN] if ordered else tuple(sorted(a + b))] += p * q
        found = dict(joined)
    return found


def _hypergeometric(drawn: int, marked: int, total: int, most: int) -> Longs:
    """Returns the probabilities that so many of the marked ones are among those drawn, 0 to `most`."""
    ways = [math.comb(marked, j) * math.comb(total - marked, drawn - j) if j <= drawn else 0 for j in range(most + 1)]
    return np.array(ways, dtype=Long) / Long(math.comb(total, drawn))


def _sampled(part: Part, users: int) -> Longs:
    """Returns the probabilities that 0, 1, … of the users who differ are in the sample."""
    given = part.parameters
    if part.kind == "without_replacement":
        return _hypergeometric(given["batch"], users, given["users"], users)
    if part.kind != "truncated_poisson_gaussian":
        return _binomial(users, Long(given["rate"]))
    q, others, most = Long(given["rate"]), given["users"] - users, given["most"]
    found = np.zeros(users + 1, dtype=Long)
    for j, p in enumerate(_binomial(users, q)):
        for k, r in enumerate(_binomial(others, q)):
            kept = min(j + k, most)
            found[: j + 1] += p * r * _hypergeometric(kept, j, j + k, j)
    return found


def _binomial(trials: int, p: Long) -> Longs:
    return binomial(trials, p) if p < 1 else np.append(np.zeros(trials, dtype=Long), Long(1))


def _moves(part: Part, users: int) -> Draws:
    """Returns the law of the move of one event: of Gaussian noise in its spreads, of other noise in users."""
    given = part.parameters
    if part.kind in CELLS:
        return {(Long(users),): Long(1)}
    if part.kind == "mixture_of_gaussians":
        std, chances = Long(given["std"]), np.array(given["probabilities"], dtype=Long)
        one: Draws = {(Long(s) / std,): p for s, p in zip(given["sensitivities"], chances / chances.sum(), strict=True)}
        found: Draws = defaultdict(lambda: Long(0))
        for moves, p in _independent(one, users).items():
            found[(np.sum(np.array(moves, dtype=Long)),)] += p
        return dict(found)
    if part.kind == "with_replacement":
        chances = _binomial(given["draws"], Long(users) / given["users"])
    elif part.kind in ("poisson_gaussian", "truncated_poisson_gaussian"):
        chances = _sampled(part, users)
    else:
        if part.kind == "zcdp":
            mu = np.sqrt(2 * Long(given["rho"]))
        elif part.kind == "symmetric_gaussian":
            mu = Long(given["sensitivity"]) / np.sqrt(Long(given["variance"]))
        else:
            mu = Long(given["mu"]) if "mu" in given else truths.mu(given, "std")
        return {(users * mu,): Long(1)}
    return {(j * truths.mu(given, "std"),): p for j, p in enumerate(chances)}


def _law(draws: Draws, event: Part, repeats: int, direction: str) -> Law | None:
    """Returns the loss of what happens against no move; None where nothing moves."""
    if event.kind in CELLS:
        return _by_cells(draws, event, repeats, direction)
    found: dict[Long, Long] = defaultdict(lambda: Long(0))
    for moves, p in draws.items():
        found[np.sum(np.array(moves, dtype=Long)) * np.sqrt(Long(repeats) / len(moves))] += p
    shifts = tuple(sorted(shift for shift, p in found.items() if p > 0))
    chances = tuple(found[shift] for shift in shifts)
    if shifts == (0,):
        return None
    if len(shifts) == 1:
        return Gauss(shifts[0])
    if len(shifts) == 2 and shifts[0] == 0:
        return Sampled(shifts[1], chances[1], direction == "add")
    return Mixture(shifts, chances, direction == "add")


def _by_cells(draws: Draws, event: Part, repeats: int, direction: str) -> Law | None:
    """Returns the loss of a few outputs, each seen by its cell."""
    most = int(max(max(moves) for moves in draws))
    if not most:
        return None
    length = len(next(iter(draws)))
    outputs = min(_SEEN, length * repeats)
    masses = _masses(event, most, _CELLS[outputs])
    while masses.shape[1] ** outputs > _MOST_OUTCOMES and outputs > 1:
        outputs -= 1
        masses = _masses(event, most, _CELLS[outputs])
    # outputs of one draw first, then those of the next
    seen: Draws = defaultdict(lambda: Long(0))
    for moves, p in draws.items():
        seen[tuple(move for move in reversed(moves) for _ in range(repeats))[:outputs]] += p
    mixed = np.zeros(masses.shape[1] ** outputs, dtype=Long)
    for moves, p in seen.items():
        mixed += p * _product([masses[int(move)] for move in moves])
    still = _product([masses[0]] * outputs)
    digits = 20 * outputs + len(seen)
    return loss_of(mixed, still, digits) if direction == "remove" else loss_of(still, mixed, digits)


def _product(laws: list[Longs]) -> Longs:
    found = np.ones(1, dtype=Long)
    for law in laws:
        found = np.multiply.outer(found, law).ravel()
    return found


def _masses(event: Part, most: int, cells: int) -> Longs:
    """Returns (most + 1, n) masses of cells where so many users move the output, from 0 to `most`."""
    given, moves = event.parameters, range(most + 1)
    if event.kind == "laplace":
        return _laplace_masses(truths.mu(given, "scale"), most, cells)
    if event.kind in ("discrete_laplace", "pure"):  # ε-DP for each of many users: noise on the integers
        a = Long(given["epsilon"]) if event.kind == "pure" else 1 / Long(given["scale"])
        size = int(given.get("sensitivity", 1))
        x = np.arange(most * size + 1).astype(Long)
        found = []
        for j in moves:
            row = -np.expm1(-a) * np.exp(-a * np.abs(x - j * size))
            row[0], row[-1] = np.exp(-a * x[j * size]), np.exp(-a * (x[-1] - j * size))  # all that is further out
            found.append(row / (1 + np.exp(-a)))
        return np.array(found)
    if event.kind == "discrete_gaussian":
        std, size = Long(given["std"]), int(given["sensitivity"])
        reach = int(14 * float(std)) + most * size
        x = np.arange(-reach, reach + 1).astype(Long)
        total = np.sum(np.exp(-(np.arange(-20 * reach, 20 * reach + 1).astype(Long) ** 2) / (2 * std * std)))
        return np.array([np.exp(-((x - j * size) ** 2) / (2 * std * std)) / total for j in moves])
    return _told_apart(event, most)


def _told_apart(event: Part, most: int) -> Longs:
    """Returns the masses of choices and of messages behind a shuffler."""
    given, moves = event.parameters, range(most + 1)
    if event.kind == "permute_and_flip":  # of two scores that were equal, and move apart by two a user
        half = np.array([np.exp(-Long(given["epsilon"]) * j) / 2 for j in moves], dtype=Long)
        return np.stack([1 - half, half], axis=1)
    if event.kind == "exponential_mechanism":
        odds = np.exp(-Long(given["epsilon"]) * (np.arange(most + 1).astype(Long) - Long(0.5)))
        return np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)
    if event.kind == "shuffled_bits":
        law = binomial(given["users"], Long(given["probability"]))
        return np.array([np.concatenate([np.zeros(j), law, np.zeros(most - j)]) for j in moves], dtype=Long)
    if event.kind == "shuffled":  # whoever moves, the pair of one user
        pair = clones_loss(given["local_epsilon"], given["users"])
        return np.stack([pair.masses * np.exp(-pair.losses), *[pair.masses] * most])
    one = 1 / (1 + np.exp(-Long(given["epsilon"])))
    return np.array([[1 - one, one], *[[one, 1 - one]] * most], dtype=Long)


def _laplace_masses(a: Long, most: int, cells: int) -> Longs:
    """Returns the masses of Laplace noise of scale 1 between edges, the points to which it moves among them."""
    inner = max(1, cells // most)
    edges = np.arange(most * inner + 1).astype(Long) * (a / inner)
    found = []
    for j in range(most + 1):
        at = edges - edges[j * inner]
        near = np.minimum(np.abs(at[:-1]), np.abs(at[1:]))
        masses = -np.exp(-near) * np.expm1(-(edges[1] - edges[0])) / 2
        found.append(np.concatenate([[np.exp(at[0]) / 2], masses, [np.exp(-at[-1]) / 2]]))
    return np.array(found)
