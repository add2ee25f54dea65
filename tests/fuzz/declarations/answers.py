"""Systems of several procedures, and of mechanisms of their authors' own: drawn, changed, and what they cost.

The oracle writes down the law of every answer, on two neighbours, and adds up the losses of all that one user's data
is in. Of selections it knows two bounds: what a pair loses, and what no mechanism of their ε exceeds.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from declarations.losses import Loss, gaussian_loss, laplace_loss, placed
from declarations.specs import Formula, Part, Procedure, Spec, nearly, times

LOCAL = ("response", "bits")
MAXIMA = ("max", "choice", "gaussian max")
SELECTIONS = (*MAXIMA, "sparse", "gaussian sparse", "adaptive")
GAUSSIAN = ("gaussian max", "gaussian sparse")
OWN = ("own response", "own geometric", "own laplace", "own gaussian")
MAX_NOISE = ("laplace", "exponential", "gumbel")
WAYS = {"exponential mechanism": "gumbel", "permute-and-flip": "exponential"}

_SIZES = tuple(Fraction(x) for x in ("1/4", "1/2", "1", "3/2", "2"))
_GAPS = (*np.arange(0.0, 8.0, 0.5), 12.0, 40.0, 1e7)  # scales by which the candidate that gains is behind
_FARTHEST = 30.0  # of Gaussian scores: further behind, a logarithm has too few digits
_ALPHAS = (1.1, 1.5, 2.0, 4.0, 8.0, 32.0, 128.0)
_SHORT = tuple(Fraction(x, 100) for x in (95, 96, 97, 98))  # false claims, where the cost is known
_AMPLE = tuple(Fraction(x, 100) for x in (102, 103, 104, 105))


def draw_answers(seed: int, bounds: Callable[[Spec], tuple[float, float]]) -> Spec:
    """Returns a well-formed system of one to three procedures, perhaps beside a noisy table.

    It is claimed at 2 to 5 % less than a pair loses, or more than it can cost, or at what its dearest procedure costs.

    Args:
        seed: Which.
        bounds: The oracle's bounds on the cost in the claim's unit.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    where = rng.choice(("local", "selections", "selections", "own"))
    claim = rng.choice(("pure", "pure", "zcdp", "approx"))
    partitions = rng.choice(((), (), (("left", "right"),)))
    relation = rng.choice(("replace", "add", "zero")) if where == "selections" else "replace"
    monotone = where == "selections" and rng.random() < 0.3
    kind = rng.choice(MAXIMA)
    procedures = []
    for i in range(rng.choice((1, 2, 2, 3))):
        kinds = {"local": LOCAL, "selections": (kind,) if monotone else SELECTIONS, "own": (*OWN, *OWN, "choice")}
        one = _procedure(rng, f"p{i}", rng.choice(kinds[where]), claim)
        group = rng.choice(("", *(g for partition in partitions for g in partition)))
        procedures.append(replace(one, monotone=monotone, group=group))
    used = {p.group for p in procedures}
    spec = Spec(
        seed=seed,
        relation=relation,
        initial="any",
        model="local" if where == "local" else "central",
        parts=() if where == "own" or partitions or rng.random() < 0.6 else (_table(rng, where, claim),),
        procedures=tuple(procedures),
        partitions=tuple(p for p in partitions if used & set(p)),
        claim=claim,
        claimed=Formula("1", lambda _: Fraction(1)),
        delta=rng.choice((Fraction(1, 100), Fraction(1, 10**5))),
        values={"H": 1, "S": 2, "A": 2, "K": 2, "rho": 1, "epsilon": rng.choice(_SIZES)},
    )
    if len(procedures) > 1 and not spec.partitions and rng.random() < 0.25:
        alone = max(bounds(replace(spec, parts=(), procedures=(one,)))[1] for one in procedures)
        return nearly(spec, alone, Fraction(1))
    low, high = bounds(spec)
    return nearly(spec, *rng.choice(((low, rng.choice(_SHORT)), (high, rng.choice(_AMPLE)))))


def _procedure(rng: random.Random, name: str, kind: str, claim: str) -> Procedure:
    if claim == "pure":  # of which no Gaussian noise has any, whatever is claimed
        kind = {"own gaussian": "own laplace", "gaussian max": "max", "gaussian sparse": "sparse"}.get(kind, kind)
    number = rng.choice(_SIZES)
    size = times(number, *rng.choice((("1", lambda v: v["H"] / v["H"]), ("epsilon", lambda v: v["epsilon"]))))
    if kind.startswith("own") or (kind in SELECTIONS and kind != "choice"):  # it is the scale of noise
        size = Formula(f"1/({size})", lambda v, of=size: 1 / of(v))
    if kind == "bits":
        keep = rng.choice((Fraction(3, 5), Fraction(3, 4), Fraction(9, 10)))
        size = Formula(f"{keep}", lambda v: keep * v["H"] / v["H"])
    priced = ("gdp",) if claim == "approx" else ("zcdp", "gdp")  # of ρ nothing says which curve is the least
    noise = {"max": MAX_NOISE, "choice": tuple(WAYS), "own gaussian": priced}.get(kind, ("",))
    return Procedure(name=name, kind=kind, size=size, count=rng.choice((2, 3, 5)), noise=rng.choice(noise))


def _table(rng: random.Random, where: str, claim: str) -> Part:
    law = {"pure": "laplace", "zcdp": "gaussian"}.get(claim) or rng.choice(("laplace", "gaussian"))
    spread = times(rng.choice((Fraction(1), Fraction(2), Fraction(5))), "1", lambda v: v["H"] / v["H"])
    schedule = "user" if where == "local" else "once"
    return Part(name="table", statistic=rng.choice(("visits", "rewards")), law=law, spread=spread, schedule=schedule)


def mutants_of_answers(spec: Spec, rng: random.Random) -> Iterator[Spec]:
    """Yields the system with one field changed: into nonsense, or into another system with a truth of its own."""
    first, *rest = spec.procedures

    def being(why: str, meaningless: str = "", **changes: Any) -> Spec:
        return replace(spec, mutation=why, meaningless=meaningless, **changes)

    def having(why: str, meaningless: str = "", **changes: Any) -> Spec:
        return being(why, meaningless, procedures=(replace(first, **changes), *rest))

    size = first.size
    if first.kind != "bits":
        yield having("another size", size=Formula("1.03·s", lambda v: Fraction(103, 100) * size(v)))
        yield having("negative size", "a size below 0", size=Formula("-s", lambda v: -1 * size(v)))
        yield having("no size", "a size of 0", size=Formula("0", lambda v: 0 * size(v)))
    for wrong in ("two", None, float("nan"), 0.5):
        yield having(f"size {wrong!r}", "no exact number", size=wrong)
    if first.kind in ("response", *MAXIMA):
        yield having("one candidate", "nothing to choose from", count=1)
    if first.kind in ("max", "choice"):
        yield having("noise of no vocabulary", "no vocabulary", noise="gauss")
    if first.kind in OWN:
        yield having("too little is stated", "a price that is stated 3 % too low", stated=Fraction(97, 100))
        yield having("more is stated", stated=Fraction(5, 4))
        fault = rng.choice(("scale", "atom", "atom") if first.kind in OWN[2:] else ("scale",))
        if fault == "atom" or _is_seen(first, spec.values):
            yield having(f"a sampler's {fault}", "another law is stated than is drawn", fault=fault)
    yield having("unknown group", "a group of no partition", group="nobody's")
    yield having("no name", "a procedure without a name", name="")
    yield being("a name twice", "two of a name", procedures=(*spec.procedures, first))
    yield being("one more", procedures=(*spec.procedures, replace(first, name="again")))
    yield being("halved claim", claimed=Formula("half", lambda v, of=spec.claimed: of(v) / Fraction(2)))
    yield being("negative claim", "a claim below 0", claimed=Formula("-1", lambda v: -1 * v["H"] / v["H"]))
    turned = {"local": "central", "central": "local"}[spec.model]
    if any(p.kind in (*LOCAL, *SELECTIONS) for p in spec.procedures):
        yield being(f"model {turned}", "a model that the procedure has not", model=turned)
    if first.kind in (*OWN, *LOCAL):
        yield being("users are added", "another relation than the price's", relation="add")
    if rest:
        yield being("one dropped", procedures=tuple(rest))
        yield being("turned round", procedures=spec.procedures[::-1])
    if spec.parts:
        yield being("no table", parts=())


# laws of one answer on two neighbours


@dataclass(frozen=True)
class Pair:
    """What one procedure loses on two neighbours.

    Attributes:
        key: Of the neighbours: what may go together has the same one, or none.
        logs: ln P of all outcomes on D and on D′; none of the noise below.
        noise: ("gaussian", μ) or ("laplace", t) of a number that moves by so many spreads.
    """

    key: Any
    logs: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    noise: tuple[str, float] = ("", 0.0)

    def largest(self) -> float:
        """Returns the largest loss."""
        if self.noise[0]:
            return math.inf if self.noise[0] == "gaussian" else self.noise[1]
        return max(p - q for p, q in zip(*self.logs, strict=True))

    def rho(self, alpha: float) -> float:
        """Returns D_α/α, at 1 the Kullback–Leibler divergence."""
        law, t = self.noise
        if law == "gaussian":
            return t * t / 2
        if law == "laplace":
            if alpha == 1:
                return t + math.expm1(-t)
            terms = [math.log(alpha) + (alpha - 1) * t, math.log(alpha - 1) - alpha * t]
            return float(np.logaddexp(*terms) - math.log(2 * alpha - 1)) / (alpha - 1) / alpha
        p, q = map(np.array, self.logs)
        if alpha == 1:
            return float(np.exp(p) @ (p - q))
        return float(np.logaddexp.reduce(alpha * p + (1 - alpha) * q)) / (alpha - 1) / alpha

    def loss(self, *, up: bool) -> Loss:
        """Returns the loss on the grid."""
        if self.noise[0]:
            return {"gaussian": gaussian_loss, "laplace": laplace_loss}[self.noise[0]](self.noise[1], up=up)
        p, q = map(np.array, self.logs)
        return placed(p - q, np.exp(p), up=up)


def two(behind: float, other: float, key: Any) -> list[Pair]:
    """Returns both orders of two laws of two outcomes, by ln of the probability of the rarer one."""
    first, second = (tuple(_both(x)) for x in (behind, other))
    return [Pair((key, 0), (first, second)), Pair((key, 1), (second, first))]


def _both(log: float) -> tuple[float, float]:
    return log, math.log(-math.expm1(log)) if log > -0.7 else math.log1p(-math.exp(log))


def _behind(noise: str, t: float) -> float:
    """Returns ln of the probability that who is t scales behind wins; of who is ahead, where t is below 0."""
    if t < 0:
        return _both(_behind(noise, -t))[1]
    if noise in ("gumbel", "gaussian"):
        return -float(np.logaddexp(0.0, t)) if noise == "gumbel" else float(log_ndtr(-t))
    return -t + (math.log((2 + t) / 4) if noise == "laplace" else math.log(0.5))


def _numbers(spec: Spec, one: Procedure) -> float:
    return float(one.size({name: Fraction(value) for name, value in spec.values.items()}))


def epsilon_of(spec: Spec, one: Procedure) -> float:
    """Returns ε of pure DP, that no pair exceeds; ∞ where there is none."""
    size = _numbers(spec, one)
    half = 1 if one.monotone else 2
    known = {
        "response": lambda: size,
        "bits": lambda: 2 * math.log(size / (1 - size)),
        "choice": lambda: size * half / 2,
        "max": lambda: half / size,
        "sparse": lambda: min(one.count, 3) / size,  # threshold and queries have the same scale
        # the first comparison has twice that scale; the budget is for one answer
        "adaptive": lambda: min(1.5 * one.count, 3) / size,
        **dict.fromkeys(("own gaussian", *GAUSSIAN), lambda: math.inf),
    }
    return known[one.kind]() if one.kind in known else 1 / size


def pairs_of(spec: Spec, one: Procedure) -> list[Pair]:
    """Returns neighbours, with the law of the answer on both."""
    size = _numbers(spec, one)
    return list(_pairs(one.kind, one.noise, one.count, one.monotone, size))


@functools.lru_cache(maxsize=4096)
def _pairs(kind: str, noise: str, count: int, monotone: bool, size: float) -> tuple[Pair, ...]:  # noqa: FBT001
    if kind in ("response", "own response"):
        epsilon = size if kind == "response" else 1 / size
        other = -float(np.logaddexp(epsilon, math.log(count - 1)))
        rest = (other,) * (count - 2)
        return (Pair(None, ((epsilon + other, other, *rest), (other, epsilon + other, *rest))),)
    if kind == "own geometric":  # the outputs 0, and all above
        ahead = -math.log1p(math.exp(-1 / size))
        return (Pair(None, ((ahead, ahead - 1 / size), (ahead - 1 / size, ahead))),)
    if kind in ("own laplace", "own gaussian"):
        return (Pair(None, noise=(kind.split()[1], 1 / size)),)
    if kind == "bits":
        one = np.log([size, 1 - size])
        zero = one[::-1]
        first, second = ((a[:, None] + b).ravel() for a, b in ((one, zero), (zero, one)))
        return (Pair(None, (tuple(first), tuple(second))),)
    if kind in _RUNS:
        return tuple(_RUNS[kind](count, size))
    law = {"choice": WAYS.get(noise, ""), "gaussian max": "gaussian"}.get(kind, noise)
    scale = {"choice": 2 / size, "gaussian max": math.sqrt(2) * size}.get(kind, size)  # of a gap between two
    moved = (1 if monotone else 2) / scale
    gaps = (gap for gap in _GAPS if law != "gaussian" or gap < _FARTHEST)
    return tuple(pair for gap in gaps for pair in two(_behind(law, gap), _behind(law, gap - moved), (monotone, gap)))


def _sparse(queries: int, scale: float, *, gaussian: bool) -> Iterator[Pair]:
    """Yields that all queries are below but the last; all noise of one law, the threshold moved by 1."""
    z, weights = _threshold(scale, gaussian=gaussian)
    below = functools.partial(_below, gaussian=gaussian)
    for first, last in itertools.product((-4.0, -1.0, 0.0, 1.0, 4.0, 10.0), (-20.0, -6.0, 0.0)):
        logs = []
        for turn in (0, 1):  # on D the queries are low and the last is high; on D′ the other way round
            quiet = below((z - first * scale - turn) / scale) ** (queries - 1)
            logs.append(float(weights @ (quiet * below(-(z - last * scale + turn) / scale))))
        yield from _event(logs, (first, last))


def _adaptive(queries: int, scale: float) -> Iterator[Pair]:
    """Yields that all queries are below but the last, which is far above or above; the margin is 1."""
    z, weights = _threshold(scale, gaussian=False)

    def far(x: np.ndarray) -> np.ndarray:
        return _below((z + 1 - x) / (2 * scale))

    for first, last, top in itertools.product((-4.0, 0.0, 1.0, 4.0, 10.0), (-20.0, -6.0, 0.0), (True, False)):
        logs = []
        for turn in (0, 1):
            low, high = first * scale + turn, last * scale - turn
            quiet = (far(low) * _below((z - low) / scale)) ** (queries - 1)
            ends = _below(-(z + 1 - high) / (2 * scale)) if top else far(high) * _below(-(z - high) / scale)
            logs.append(float(weights @ (quiet * ends)))
        yield from _event(logs, (first, last, top))


def _threshold(scale: float, *, gaussian: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns places of the threshold's noise, and the probabilities of the cells around them."""
    z = np.linspace(-60.0, 60.0, 60_001) * scale
    weights = np.exp(-((z / scale) ** 2) / 2 if gaussian else -np.abs(z) / scale)
    return z, weights / weights.sum()


def _below(x: np.ndarray, *, gaussian: bool = False) -> np.ndarray:
    """Returns the probability that noise of scale 1 is at most x."""
    if gaussian:
        return np.asarray(ndtr(x))
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def _event(masses: Sequence[float], key: Any) -> Iterator[Pair]:
    """Yields both orders of two laws of one event; not where it is all but certain, or has no float."""
    if min(masses) > 1e-300 and min(masses) < 1 - 1e-9 and max(masses) < 1 - 1e-9:
        yield from two(*map(math.log, masses), key)


_RUNS: dict[str, Callable[[int, float], Iterator[Pair]]] = {
    "sparse": functools.partial(_sparse, gaussian=False),
    "gaussian sparse": functools.partial(_sparse, gaussian=True),
    "adaptive": _adaptive,
}


# bounds on all answers together


def seen(spec: Spec) -> list[list[Procedure]]:
    """Returns for every kind of user the procedures that hold them."""
    groups = [("",)] if not spec.partitions else itertools.product(*spec.partitions)
    return [[p for p in spec.procedures if not p.group or p.group in group] for group in groups]


def _joint(spec: Spec, procedures: Sequence[Procedure]) -> list[list[Pair]]:
    """Returns pairs that go together: the worst of each by some measure, monotone scores all the same way."""
    measures: list[Callable[[Pair], float]] = [Pair.largest, lambda pair: pair.rho(1), lambda pair: pair.rho(4)]
    if spec.claim == "approx":
        measures.append(lambda pair: pair.loss(up=False).delta(1.0))
    found = []
    for measure in measures:
        for turn in (0, 1):
            chosen = []
            for one in procedures:
                pairs = pairs_of(spec, one)
                allowed = [p for p in pairs if not one.monotone or p.key[1] == turn] or pairs
                chosen.append(max(allowed, key=measure))
            found.append(chosen)
    return list({tuple(chosen): chosen for chosen in found}.values())


def size_bounds(spec: Spec) -> tuple[float, float]:
    """Returns what some pair loses, and what none exceeds, of all procedures in ε of pure DP, or in ρ."""
    low = high = 0.0
    for procedures in seen(spec):
        for chosen in _joint(spec, procedures):
            if spec.claim == "pure":
                low = max(low, sum(pair.largest() for pair in chosen))
            else:
                low = max(low, *(sum(pair.rho(alpha) for pair in chosen) for alpha in (1.0, *_ALPHAS)))
        high = max(high, sum(_price(spec, one) for one in procedures))
    return low, high


def _price(spec: Spec, one: Procedure) -> float:
    """Returns what is proved, or stated, of a procedure."""
    epsilon, stated = epsilon_of(spec, one), float(one.stated)
    if spec.claim == "pure":
        return epsilon * stated
    if one.kind == "own gaussian":
        square = 1 / _numbers(spec, one) ** 2 / 2
        return square * (stated if one.noise == "zcdp" else stated**2)
    if one.kind in GAUSSIAN:  # all noisy scores, or queries
        return one.count / _numbers(spec, one) ** 2 / 2
    if one.kind in LOCAL:
        times, each = (2, epsilon / 2) if one.kind == "bits" else (1, epsilon)
        return times * each * math.tanh(each / 2)
    if (one.kind == "choice" and WAYS[one.noise] == "gumbel") or one.noise == "gumbel":
        return epsilon**2 / 8
    return min((epsilon * stated) ** 2 / 2, epsilon * stated)  # Bun & Steinke 2016, Proposition 1.4


def losses(spec: Spec, *, up: bool) -> list[Loss]:
    """Returns losses on the grid of which the worst is a bound on all answers, from above or from below."""
    found = []
    for procedures in seen(spec):
        if up:
            found.append(_total([_most(spec, one) for one in procedures]))
        else:
            found += [_total([pair.loss(up=False) for pair in chosen]) for chosen in _joint(spec, procedures)]
    return found


def _total(losses: Sequence[Loss]) -> Loss:
    return functools.reduce(Loss.plus, losses, Loss(0, np.ones(1), 0.0))


def _most(spec: Spec, one: Procedure) -> Loss:
    """Returns the loss that dominates a procedure: its own where it is known, else that of randomised response."""
    if one.kind in LOCAL:
        return pairs_of(spec, one)[0].loss(up=True)
    if one.kind == "own gaussian":
        stated = float(one.stated)
        return gaussian_loss((stated if one.noise == "gdp" else math.sqrt(stated)) / _numbers(spec, one), up=True)
    if one.kind in GAUSSIAN:
        return gaussian_loss(math.sqrt(one.count) / _numbers(spec, one), up=True)
    epsilon = epsilon_of(spec, one) * float(one.stated)
    behind = -float(np.logaddexp(0.0, epsilon))
    return placed(np.array([epsilon, -epsilon]), np.exp([behind + epsilon, behind]), up=True)


def _is_seen(one: Procedure, values: Mapping[str, Any]) -> bool:
    """Whether a million answers of a scale 10 % too small are eight deviations from what they should be.

    Randomised response of a large scale answers nearly at random: a tenth of nearly nothing is no wrong law.
    """
    if one.kind != "own response":
        return True
    scale = float(one.size(values))
    told, drawn = (1 / (1 + (one.count - 1) * math.exp(-1 / s)) for s in (scale, 0.9 * scale))
    return drawn - told > 8 * math.sqrt(told * (1 - told) / 1e6)
