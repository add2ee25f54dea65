"""Claims that fail: a pair of neighbours, the statistics of both, and the exact loss of the releases.

Rule identifiers in comments are those of docs/certificates.md.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from privcheck_check.costs import times
from privcheck_check.declared import WEIGHTS, Declared, Part, Release
from privcheck_check.holds import gaussian_delta, numbers_at_least
from privcheck_check.terms import (
    ONE,
    ZERO,
    Ends,
    add,
    bounded,
    evaluate,
    exponential,
    invert,
    logarithm,
    multiply,
    whole,
)
from privcheck_check.values import Rejected, read_fraction, read_integer, read_list, read_object, read_text

STEPS = 10_000  # of a trajectory
Change = Mapping[object, Fraction]  # cell or coordinate: difference, never zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One trajectory of the pair, or one user's bits or vectors; what no statistic asks for is empty."""

    states: list[int]
    actions: list[int]
    rewards: list[Fraction]
    features: Mapping[str, list[list[Fraction]]]
    targets: Mapping[str, list[Fraction]]
    weights: Mapping[str, list[Fraction]]
    vectors: Mapping[str, list[Fraction]]


@dataclass(slots=True, kw_only=True)
class Loss:
    """Losses of the touched releases: pure ones by their supremum, Gaussian ones by μ²."""

    supremum: Ends = (ZERO, ZERO)
    probability: Fraction = (
        ONE  # lower bound on the probability, under D, of an event on which the supremum is attained
    )
    laplace: Counter[Ends] = field(default_factory=Counter)  # |D|/b of every noisy coordinate
    answers: bool = False  # a randomised response is among them
    square: Ends = (ZERO, ZERO)
    unbounded: bool = False  # a Gaussian or noiseless difference
    noiseless: bool = False


def _numbers(value: object) -> list[Fraction]:
    return [read_fraction(each, "R-PAIR") for each in read_list(value, "R-PAIR")]


def _mapped(value: object) -> Mapping[str, list[Fraction]]:
    if not isinstance(value, dict):
        raise Rejected("R-PAIR", "expected an object")
    return {name: _numbers(each) for name, each in value.items()}


def _trajectory(value: object) -> Trajectory:
    names = ("states", "actions", "rewards", "features", "targets", "weights", "vectors")
    found = read_object(value, "R-PAIR", (), names)
    features = found.get("features", {})
    if not isinstance(features, dict):
        raise Rejected("R-PAIR", "expected an object")
    rewards = [
        read_fraction(each, "R-RANGE", least=0, most=1) for each in read_list(found.get("rewards", []), "R-PAIR")
    ]
    return Trajectory(
        states=[read_integer(each, "R-RANGE", least=0) for each in read_list(found.get("states", []), "R-PAIR")],
        actions=[read_integer(each, "R-RANGE", least=0) for each in read_list(found.get("actions", []), "R-PAIR")],
        rewards=rewards,
        features={name: [_numbers(v) for v in read_list(each, "R-PAIR")] for name, each in features.items()},
        targets=_mapped(found.get("targets", {})),
        weights=_mapped(found.get("weights", {})),
        vectors=_mapped(found.get("vectors", {})),
    )


def _neighbours(declared: Declared, first: list[Trajectory], second: list[Trajectory]) -> None:
    """R-PAIR: neighbours under the declared relation, for a unit of at most `trajectories` trajectories."""
    most = whole(evaluate(declared.trajectories, declared.values))
    if max(len(first), len(second)) > most:
        raise Rejected("R-PAIR", f"a unit has at most {most} trajectories")
    if declared.relation in ("add-remove", "zero-out"):
        if bool(first) == bool(second):
            raise Rejected("R-PAIR", "exactly one of the two datasets has the unit")
        return
    if not first or not second:
        raise Rejected("R-PAIR", "the unit is replaced, not added or removed")
    if declared.relation == "replace-one-same-start":
        if len(first) != len(second):
            raise Rejected("R-PAIR", "as many trajectories on either side")
        for one, other in zip(first, second, strict=True):
            starts = [  # what the first state and action determine
                (
                    each.states[:1],
                    each.actions[:1],
                    *({k: v[:1] for k, v in m.items()} for m in (each.features, each.weights)),
                )
                for each in (one, other)
            ]
            if starts[0] != starts[1] or not one.actions:
                raise Rejected("R-PAIR", "step 1's state and action are not in common")


class _Statistic:
    """Exact sums of one release over the unit's trajectories, with the range of every entry tested."""

    def __init__(self, release: Release, values: Mapping[str, Fraction]) -> None:
        self.name = release.name
        self.part: Part = release.statistic
        self.values = values

    def size(self, name: str) -> int:
        return whole(evaluate(self.part.terms[name], self.values))

    def require(self, holds: bool, reason: str) -> None:
        if not holds:
            raise Rejected("R-RANGE", f"{self.name}: {reason}")

    @staticmethod
    def put(total: dict[object, Fraction], key: object, entry: Fraction) -> None:
        total[key] = bounded(total.get(key, ZERO) + entry)

    def add_to(self, total: dict[object, Fraction], data: Trajectory, sign: int) -> None:
        match self.part.kind:
            case "table":
                self._table(total, data, sign)
            case "linear":
                self._linear(total, data, sign)
            case "bits" | "bounded":
                self._vector(total, data, sign)
            case kind:
                raise Rejected("R-STATISTIC", f"{self.name}: {kind} is not computed from data")

    def _table(self, total: dict[object, Fraction], data: Trajectory, sign: int) -> None:
        steps, states, actions = (self.size(name) for name in ("steps", "states", "actions"))
        length = len(data.actions)
        self.require(steps <= length <= STEPS, "too short or too long a trajectory")
        self.require(
            len(data.states) == length + 1 and len(data.rewards) == length, "H + 1 states, H actions, H rewards"
        )
        self.require(
            max(data.states) < states and max(data.actions, default=0) < actions, "a state or action out of range"
        )
        cells = self.part.fields["cells"]
        weight = str(self.part.fields["weight"])
        offset, slope = {"one": (1, 0), "reward": (0, 1), "cost": (1, -1), "centred-reward": (Fraction(-1, 2), 1)}[
            weight
        ]
        low, high = WEIGHTS[weight]
        for h in range(steps):
            at = {"state": data.states[h], "action": data.actions[h], "next": data.states[h + 1]}
            cell = tuple(at[each] for each in ("action", "next", "state") if isinstance(cells, list) and each in cells)
            entry = offset + slope * data.rewards[h]
            self.require(low <= entry <= high, "an entry out of range")
            self.put(total, cell if self.part.fields["pooled"] else (h, cell), sign * entry)

    def _vector(self, total: dict[object, Fraction], data: Trajectory, sign: int) -> None:
        vector = data.vectors.get(self.name, [])
        l1, square = add(*((abs(x), x * x) for x in vector))
        if self.part.kind == "bits":
            self.require(len(vector) == self.size("bits") and set(vector) <= {ZERO, ONE}, "not so many bits")
            self.require(l1 <= self.size("ones"), "too many ones")
        else:
            self.require(l1 <= evaluate(self.part.terms["l1"], self.values)[0], "ℓ₁ norm above the bound")
            length = evaluate(self.part.terms["l2"], self.values)[0]
            self.require(square <= length * length, "ℓ₂ norm above the bound")
        for i, x in enumerate(vector):
            self.put(total, i, sign * x)

    def _linear(self, total: dict[object, Fraction], data: Trajectory, sign: int) -> None:
        terms, outer = self.part.terms, self.part.fields["part"] == "outer"
        steps = self.size("steps")
        self.require(steps <= STEPS, "too many steps")
        vectors = data.features.get(str(self.part.fields["features"]), [])
        targets = [ONE] * steps if outer else data.targets.get(self.name, [])
        weights = data.weights.get(self.name, [ONE] * steps)
        self.require(
            steps <= min(len(vectors), len(targets), len(weights)) and steps <= STEPS, "fewer steps than declared"
        )
        bound = evaluate(terms["feature"], self.values)[0]
        for h in range(steps):
            vector, target, weight = vectors[h], targets[h], weights[h]
            self.require(len(vector) <= 64, "more than 64 features")
            self.require(add(*((x * x, ZERO) for x in vector))[0] <= bound * bound, "a feature longer than declared")
            self.require(ZERO <= weight <= evaluate(terms["weight"], self.values)[0], "a weight out of range")
            most = evaluate(terms["target"], {**self.values, "h": Fraction(h + 1)})[0]
            self.require(
                outer or (-most if self.part.fields["signed"] else ZERO) <= target <= most, "a target out of range"
            )
            for i, x in enumerate(vector):
                if not outer:
                    self.put(total, (h, i), sign * weight * target * x)
                    continue
                for j in range(i, len(vector)):
                    self.put(total, (h, i, j), sign * weight * x * vector[j])


def _touch(loss: Loss, release: Release, declared: Declared, change: Change) -> None:
    """L-LAPLACE, L-GAUSSIAN, L-RESPONSE, L-SHARED: add the loss of one release to `loss`."""
    values, mechanism = declared.values, release.mechanism
    if release.schedule.kind == "repeat" and release.schedule.fields["noise"] == "shared":
        loss.noiseless |= evaluate(release.schedule.terms["times"], values)[0] >= 2
        return
    count = whole(evaluate(times(release, declared, numbers_at_least(declared)), values))
    repeated = (Fraction(count),) * 2
    match mechanism.kind:
        case "laplace" | "discrete-laplace":
            inverse = invert(evaluate(mechanism.terms["scale"], values))
            if inverse[0] <= 0:
                raise Rejected("L-LAPLACE", "a scale is not positive")
            if mechanism.kind == "discrete-laplace" and any(x.denominator != 1 for x in change.values()):
                raise Rejected("L-LAPLACE", "discrete noise on a statistic that is no integer")
            for size, coordinates in Counter(abs(x) for x in change.values()).items():
                ratio = multiply((size, size), inverse)
                # discrete Laplace: its continuous twin's divergence is no bound, so it has no Rényi loss here
                loss.answers |= mechanism.kind == "discrete-laplace"
                loss.laplace[ratio] += coordinates * count
                loss.supremum = add(loss.supremum, multiply(ratio, (Fraction(coordinates * count),) * 2))
            few = len(change) * count <= 2_000
            loss.probability = loss.probability / 2 ** (len(change) * count) if few else ZERO
        case "randomised-response":
            keep, answers = (evaluate(mechanism.terms[name], values) for name in ("keep", "answers"))
            if (
                keep[0] != keep[1]
                or not 0 < keep[0] < 1
                or keep[0] * answers[0] < 1
                or release.statistic.kind != "bits"
            ):
                raise Rejected("L-RESPONSE", "the probability of the truth is no fraction, or too small")
            odds = logarithm(((keep[0] * (answers[0] - 1)) / (1 - keep[0]),) * 2)
            loss.answers = True
            loss.supremum = add(loss.supremum, multiply(odds, (Fraction(len(change) * count),) * 2))
            if len(change) * count > 400 or keep[0].denominator > 10**6:
                raise Rejected("L-RESPONSE", "too many answers")
            loss.probability *= keep[0] ** (len(change) * count)
        case "gaussian" | "discrete-gaussian" | "gaussian-matrix":
            inverse = invert(evaluate(mechanism.terms["variance"], values))
            if inverse[0] <= 0:
                raise Rejected("L-GAUSSIAN", "a variance is not positive")
            if mechanism.kind == "discrete-gaussian" and any(x.denominator != 1 for x in change.values()):
                raise Rejected("L-GAUSSIAN", "discrete noise on a statistic that is no integer")
            total = ZERO
            for key, x in change.items():
                diagonal = isinstance(key, tuple) and len(key) == 3 and key[1] == key[2]
                matrix = mechanism.kind == "gaussian-matrix" and diagonal
                total = bounded(
                    total
                    + x * x / (read_fraction(mechanism.fields["diagonal"], "L-GAUSSIAN", above=0) if matrix else 1)
                )
            loss.answers |= mechanism.kind == "discrete-gaussian"
            loss.square = add(loss.square, multiply(multiply((total, total), inverse), repeated))
            loss.unbounded |= count > 0
        case law:
            raise Rejected("R-STATISTIC", f"{release.name}: no exact loss of {law}")


def _laplace_divergence(ratio: Ends, order: Fraction) -> Fraction:
    """Lower bound on the Rényi divergence of order α between Laplace laws at distance `ratio` scales (L-RENYI)."""
    low = (ratio[0], ratio[0])  # it increases with the distance
    weight = order / (2 * order - 1)
    grows = multiply(exponential(multiply(low, (order - 1,) * 2)), (weight, weight))
    falls = multiply(exponential(multiply(low, (-order, -order))), (1 - weight, 1 - weight))
    return logarithm(add(grows, falls))[0] / (order - 1)


def _exceeds(loss: Loss, declared: Declared, order: Fraction | None) -> bool:
    """Whether the loss is above the claim, for certain."""
    claim = {name: evaluate(term, declared.values) for name, term in declared.claim.terms.items()}
    if loss.noiseless:
        return declared.claim.kind != "approx" or claim["delta"][1] < 1
    match declared.claim.kind:
        case "pure":  # L-PURE, L-UNBOUNDED
            return loss.unbounded or loss.supremum[0] > claim["epsilon"][1]
        case "gdp":  # L-GDP
            return not loss.answers and loss.square[0] > max(ZERO, claim["mu"][1]) ** 2
        case "zcdp":  # L-ZCDP, L-RENYI
            if order is None:
                return loss.square[0] / 2 > claim["rho"][1]
            if loss.answers:
                raise Rejected("L-RENYI", "an order goes with Laplace and Gaussian noise")
            laplace = sum((_laplace_divergence(each, order) * n for each, n in loss.laplace.items()), ZERO)
            return laplace + order * loss.square[0] / 2 > order * claim["rho"][1]
        case _:
            if claim["delta"][1] >= 1:
                return False
            if loss.unbounded:  # L-CURVE; the curve of a subset of the releases is a lower bound
                if loss.supremum[1] or loss.answers:
                    raise Rejected("L-CURVE", "Gaussian releases only: leave the others out of 'using'")
                return gaussian_delta(loss.square, claim["epsilon"])[0] > claim["delta"][1]
            gap = add((claim["epsilon"][1],) * 2, (-loss.supremum[0],) * 2)  # L-EVENT
            return gap[0] < 0 and loss.probability * (1 - exponential(gap)[1]) > claim["delta"][1]


def check_refuted(value: object, declared: Declared) -> str:
    """Check the pair and its loss; a sentence on what loses how much.

    Raises:
        Rejected: no neighbours, out of range, or a loss that is not above the claim.
    """
    found = read_object(value, "evidence", ("pair", "using"), ("part", "order"))
    pair = [
        [_trajectory(each) for each in read_list(side, "R-PAIR", most=20)]
        for side in read_list(found["pair"], "R-PAIR", least=2, most=2)
    ]
    _neighbours(declared, pair[0], pair[1])
    lengths = {len(each.actions) for side in pair for each in side}
    if len(lengths) > 1:
        raise Rejected("R-RANGE", "trajectories of different lengths")
    part = read_text(found["part"], "evidence", most=80) if "part" in found else None
    names = [read_text(each, "evidence", most=80) for each in read_list(found["using"], "evidence", least=1, most=200)]
    known = {each.name: each for each in declared.releases if each.part is None or each.part == part}
    if len(set(names)) < len(names) or not set(names) <= known.keys():
        raise Rejected("evidence", "'using' names each release at most once, of one part of the users")
    loss = Loss()
    for name in names:
        release = known[name]
        if max(len(side) for side in pair) > 1 and release.schedule.kind in ("tree", "disjoint"):
            raise Rejected("L-TREE", f"{name}: one trajectory, where each has a leaf or batch of its own")
        statistic, total = _Statistic(release, declared.values), dict[object, Fraction]()
        for sign, side in zip((1, -1), pair, strict=True):
            for data in side:
                statistic.add_to(total, data, sign)
        change = {key: x for key, x in total.items() if x}
        if change:
            _touch(loss, release, declared, change)
    order = read_fraction(found["order"], "evidence", above=1, most=1_000) if "order" in found else None
    if not _exceeds(loss, declared, order):
        raise Rejected("refuted", "the loss of the pair is not above the claim")
    return f"a pair of neighbours loses more than claimed, through {', '.join(names)[:200]}"
