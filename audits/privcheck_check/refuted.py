"""Claims that fail: a pair of neighbours, the statistics of both, and the exact loss of the releases.

Rule identifiers in comments are those of docs/certificates.md.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from privcheck_check import enclosures, laws
from privcheck_check.costs import numbers_at_least, times
from privcheck_check.curves import gaussian_delta
from privcheck_check.declared import WEIGHTS, Declared, Release
from privcheck_check.terms import (
    ONE,
    ZERO,
    Ends,
    Term,
    add,
    bounded,
    evaluate,
    exponential,
    invert,
    logarithm,
    multiply,
    square_root,
    whole,
)
from privcheck_check.values import Rejected, read_fraction, read_integer, read_list, read_object, read_text

STEPS = 10_000  # of a trajectory
FEATURES = 64
ADDED = ("laplace", "discrete-laplace", "gaussian", "discrete-gaussian", "gaussian-matrix")  # noise of every coordinate
ANSWERS = 400  # of a sparse vector
BATCHES = ("disjoint", "tree")
Sums = dict[object, Fraction]  # by cell or coordinate
Numbers = Mapping[str, list[Fraction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One trajectory of the pair, or one user's bits or vectors; what no statistic asks for is empty."""

    states: list[int]
    actions: list[int]
    rewards: list[Fraction]
    features: Mapping[str, list[list[Fraction]]]
    targets: Numbers
    weights: Numbers
    vectors: Numbers

    @property
    def start(self) -> tuple[object, ...]:
        """Step 1's state and action, with what they determine."""
        first = ({name: each[:1] for name, each in by.items()} for by in (self.features, self.weights))
        return self.states[:1], self.actions[:1], *first


@dataclass(slots=True, kw_only=True)
class Loss:
    """Losses of the touched releases: finite laws, Laplace noise by |D|/b, Gaussian noise by μ²."""

    finite: list[tuple[laws.Law, int]] = field(default_factory=list)
    laplace: Counter[Ends] = field(default_factory=Counter)  # |D|/b of every noisy coordinate
    discrete: Counter[Ends] = field(default_factory=Counter)  # the same of discrete noise
    square: Ends = (ZERO, ZERO)
    whole: bool = True  # no discrete Gaussian noise, which has no curve here
    unbounded: bool = False  # a Gaussian difference
    noiseless: bool = False
    # of each, by its name or that of its only release, μ² and other noise
    samples: dict[tuple[str, str], tuple[Ends, laws.Law, Release]] = field(default_factory=dict)
    sampled: list[tuple[Ends, Fraction, int]] = field(default_factory=list)  # μ², rate, rounds: the unit is in D


def _require(holds: bool, rule: str, reason: str) -> None:
    if not holds:
        raise Rejected(rule, reason)


def _numbers(value: object) -> list[Fraction]:
    return [read_fraction(each, "R-PAIR") for each in read_list(value, "R-PAIR")]


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise Rejected("R-PAIR", "expected an object")
    return value


def _trajectory(value: object) -> Trajectory:
    found = read_object(
        value, "R-PAIR", (), ("states", "actions", "rewards", "features", "targets", "weights", "vectors")
    )
    states, actions = (
        [read_integer(each, "R-RANGE", least=0) for each in read_list(found.get(name, []), "R-PAIR")]
        for name in ("states", "actions")
    )
    features = _object(found.get("features", {}))
    targets, weights, vectors = (
        {key: _numbers(each) for key, each in _object(found.get(name, {})).items()}
        for name in ("targets", "weights", "vectors")
    )
    return Trajectory(
        states=states,
        actions=actions,
        rewards=_numbers(found.get("rewards", [])),
        features={name: [_numbers(v) for v in read_list(each, "R-PAIR")] for name, each in features.items()},
        targets=targets,
        weights=weights,
        vectors=vectors,
    )


def _neighbours(declared: Declared, first: list[Trajectory], second: list[Trajectory]) -> None:
    """R-PAIR: neighbours under the declared relation, for a unit of at most `trajectories` trajectories."""
    most = whole(evaluate(declared.trajectories, declared.values))
    _require(max(len(first), len(second)) <= most, "R-PAIR", f"a unit has at most {most} trajectories")
    _require(len({len(each.actions) for each in first + second}) < 2, "R-RANGE", "trajectories of different lengths")
    if declared.relation in ("add-remove", "zero-out"):
        _require(bool(first) != bool(second), "R-PAIR", "exactly one of the two datasets has the unit")
        return
    _require(bool(first and second), "R-PAIR", "the unit is replaced, not added or removed")
    if declared.relation == "replace-one-same-start":
        _require(len(first) == len(second), "R-PAIR", "as many trajectories on either side")
        same = all(one.actions and one.start == other.start for one, other in zip(first, second, strict=True))
        _require(same, "R-PAIR", "step 1's state and action are not in common")


def _put(total: Sums, key: object, entry: Fraction) -> None:
    total[key] = bounded(total.get(key, ZERO) + entry)


def _within(release: Release, holds: bool, reason: str) -> None:
    _require(holds, "R-RANGE", f"{release.name}: {reason}")


def _add_table(release: Release, at: Mapping[str, Fraction], total: Sums, data: Trajectory, sign: int) -> None:
    terms, fields, length = release.statistic.terms, release.statistic.fields, len(data.actions)
    steps, states, actions = (whole(evaluate(terms[name], at)) for name in ("steps", "states", "actions"))
    _within(release, steps <= length <= STEPS, "too short or too long a trajectory")
    shape = len(data.states) == length + 1 and len(data.rewards) == length
    _within(release, shape, "H + 1 states, H actions and H rewards")
    _within(release, max(data.states) < states, "a state out of range")
    _within(release, max(data.actions, default=-1) < actions, "an action out of range")
    _within(release, all(0 <= each <= 1 for each in data.rewards), "a reward out of range")
    offset, slope = WEIGHTS[str(fields["weight"])]
    cells = [
        name for name in ("action", "next", "state") if isinstance(fields["cells"], list) and name in fields["cells"]
    ]
    for h in range(steps):
        names = {"state": data.states[h], "action": data.actions[h], "next": data.states[h + 1]}
        cell = tuple(names[name] for name in cells)
        _put(total, cell if fields["pooled"] else (h, cell), sign * (offset + slope * data.rewards[h]))


def _add_vector(release: Release, at: Mapping[str, Fraction], total: Sums, data: Trajectory, sign: int) -> None:
    vector, terms = data.vectors.get(release.name, []), release.statistic.terms
    l1, square = add(*((abs(x), x * x) for x in vector))
    if release.statistic.kind == "bits":
        bits, ones = (whole(evaluate(terms[name], at)) for name in ("bits", "ones"))
        _within(release, len(vector) == bits and set(vector) <= {ZERO, ONE} and l1 <= ones, "not such bits")
    else:
        sizes = evaluate(terms["l1"], at)[0], evaluate(("^", terms["l2"], 2 * ONE), at)[0]
        bounded_by = evaluate(terms["l2"], at)[1] >= 0 and l1 <= sizes[0] and square <= sizes[1]
        _within(release, bounded_by, "a norm above its bound")
        known = release.statistic.kind == "bounded" or not total
        _within(release, known, "a stated change is that of the whole unit, on the first side")
    for i, x in enumerate(vector):
        _put(total, i, sign * x)


def _add_linear(release: Release, at: Mapping[str, Fraction], total: Sums, data: Trajectory, sign: int) -> None:
    terms, fields = release.statistic.terms, release.statistic.fields
    outer, steps = fields["part"] == "outer", whole(evaluate(terms["steps"], at))
    _within(release, steps <= STEPS, "too many steps")
    vectors = data.features.get(str(fields["features"]), [])
    targets = [ONE] * steps if outer else data.targets.get(release.name, [])
    weights = data.weights.get(release.name, [ONE] * steps)
    _within(release, steps <= min(len(vectors), len(targets), len(weights)), "fewer steps than declared")
    for h in range(steps):
        vector, target, weight, here = vectors[h], targets[h], weights[h], {**at, "h": Fraction(h + 1)}
        longest, heaviest = (max(ZERO, evaluate(terms[name], here)[0]) for name in ("feature", "weight"))
        short = len(vector) <= FEATURES and add(*((x * x, ZERO) for x in vector))[0] <= longest**2
        _within(release, short, "too long a feature")
        _within(release, 0 <= weight <= heaviest, "a weight out of range")
        most = evaluate(terms["target"], here)[0]
        _within(release, outer or (-most if fields["signed"] else 0) <= target <= most, "a target out of range")
        for i, x in enumerate(vector):
            if not outer:
                _put(total, (h, i), sign * weight * target * x)
                continue
            for j in range(i, len(vector)):
                _put(total, (h, i, j), sign * weight * x * vector[j])


ADD = {
    "table": _add_table,
    "bits": _add_vector,
    "bounded": _add_vector,
    "stated": _add_vector,
    "linear": _add_linear,
}


def _change(release: Release, declared: Declared, pair: list[list[Trajectory]]) -> Sums:
    """R-STATISTIC: the difference of the exact sums of both sides, without zeros."""
    if release.statistic.kind not in ADD:
        raise Rejected("R-STATISTIC", f"{release.name}: {release.statistic.kind} is not computed from data")
    total: Sums = {}
    for sign, side in zip((1, -1), pair, strict=True):
        for data in side if release.statistic.kind != "stated" or sign > 0 else ():
            ADD[release.statistic.kind](release, declared.values, total, data, sign)
    return {key: x for key, x in total.items() if x}


def _cells(release: Release, at: Mapping[str, Fraction]) -> int:
    """The number of cells of one value of a table."""
    terms, fields = release.statistic.terms, release.statistic.fields
    steps, states, actions = (whole(evaluate(terms[name], at)) for name in ("steps", "states", "actions"))
    sizes, count = {"state": states, "next": states, "action": actions}, 1 if fields["pooled"] else steps
    for name, size in sizes.items():
        count *= size if isinstance(fields["cells"], list) and name in fields["cells"] else 1
    return count


def _touch(loss: Loss, release: Release, declared: Declared, change: Sums) -> None:
    """L-LAPLACE, L-GAUSSIAN, L-RESPONSE, L-SHARED: add the loss of one release to `loss`."""
    values, law, schedule = declared.values, release.mechanism.kind, release.schedule
    kept = schedule.kind == "repeat" and schedule.fields["noise"] == "shared"
    number = schedule.terms["times"] if kept else times(release, declared, numbers_at_least(declared))
    count = whole(evaluate(number, values))
    if release.shared or kept:  # L-SHARED
        _require(law in ADDED, "L-SHARED", f"{release.name}: {law} adds no noise that cancels")
        _require(schedule.kind != "sampled", "T-TOUCH", f"{release.name}: about a random sample")
        if release.shared == "outputs":  # of values of which the unit changes some
            several = schedule.kind in ("local", "disjoint")  # with another user, another batch
            loss.noiseless |= several or evaluate(schedule.terms["leaves"], values)[0] >= 2
        elif release.shared:  # of the cells of one value
            _require(release.statistic.kind == "table", "L-SHARED", f"{release.name}: not a table")
            uneven = len(set(change.values())) > 1 or len(change) < _cells(release, values)
            loss.noiseless |= count > 0 and uneven
        loss.noiseless |= kept and count > 1
        return
    terms = {name: evaluate(term, values) for name, term in release.mechanism.terms.items()}
    if law.startswith("discrete"):
        _require(all(x.denominator == 1 for x in change.values()), law, f"{release.name}: no integer statistic")
    if law in ("laplace", "discrete-laplace"):
        _require(terms["scale"][0] > 0, law, "a scale is not positive")
        for size, coordinates in Counter(abs(x) for x in change.values()).items():
            ratio = multiply((size, size), invert(terms["scale"]))
            if release.schedule.kind == "sampled":
                one = (laws.laplace if law == "laplace" else laws.discrete_laplace)(ratio)
                _sample(loss, release, (ZERO, ZERO), laws.power(one, coordinates))
                continue
            (loss.laplace if law == "laplace" else loss.discrete)[ratio] += coordinates * count
    elif law == "randomised-response":
        keep, answers = terms["keep"], whole(terms["answers"])
        known = release.statistic.kind == "bits" and release.schedule.kind != "sampled"
        _require(known and keep[1] < 1 <= keep[0] * answers, law, "a truth with the larger odds")
        loss.finite.append((laws.response(keep, answers), len(change) * count))
    elif law in ("shuffled-bits", "shuffled-integers"):
        _shuffle(loss, release, change, terms)
    elif law in ("gaussian", "discrete-gaussian", "gaussian-matrix"):
        _require(terms["variance"][0] > 0, law, "a variance is not positive")
        outer = release.statistic.fields.get("part") == "outer"
        _require(outer or law != "gaussian-matrix", law, f"{release.name}: not a sum of outer products")
        total = ZERO
        for key, x in change.items():
            wide = law == "gaussian-matrix" and isinstance(key, tuple) and key[1] == key[2]
            total = bounded(total + x * x / (read_fraction(release.mechanism.fields["diagonal"], law) if wide else 1))
        square = multiply((total, total), invert(terms["variance"]))
        loss.whole &= law != "discrete-gaussian"
        if release.schedule.kind == "sampled":
            _require(loss.whole, "T-TOUCH", f"{release.name}: discrete noise about a random sample")
            _sample(loss, release, square, laws.CERTAIN)
            return
        squares = multiply(square, (Fraction(count),) * 2)
        loss.square, loss.unbounded = add(loss.square, squares), loss.unbounded or count > 0
    else:
        raise Rejected("R-STATISTIC", f"{release.name}: no exact loss of {law}")


def _sample(loss: Loss, release: Release, square: Ends, law: laws.Law) -> None:
    """T-SAMPLED: a value of a sample, together with the others of that sample."""
    sample = (release.sample, "" if release.sample else release.name)
    before = loss.samples.get(sample, ((ZERO, ZERO), laws.CERTAIN, release))
    _require(before[2].schedule == release.schedule, "T-TOUCH", "one rate and one number of rounds")
    loss.samples[sample] = (add(before[0], square), laws.product(before[1], law), release)


def _shuffle(loss: Loss, release: Release, change: Sums, terms: Mapping[str, Ends]) -> None:
    """L-SHUFFLED: counters behind shufflers of their own, all other users' bits 0."""
    rule, law = "L-SHUFFLED", release.mechanism.kind
    _require(release.schedule.kind in ("once", "disjoint"), rule, f"{release.name}: more than one value a unit")
    _require({abs(x) for x in change.values()} == {ONE}, rule, f"{release.name}: a counter changes by one")
    chance, bits = terms["chance"], whole(terms["noise_bits"])
    _require(0 <= chance[0] == chance[1] <= 1, rule, f"{release.name}: no probability")
    if law == "shuffled-bits":
        more = laws.shuffled_bits(bits, chance[0])
    else:
        more = laws.shuffled_integers(whole(terms["users"]), bits, chance[0])
    risen = sum(x > 0 for x in change.values())
    loss.finite += [(more, risen), (laws.turned(more), len(change) - risen)]


def _sampled(loss: Loss, declared: Declared, *, first: bool) -> None:
    """T-SAMPLED: the values of one sample, of the unit alone, which is in it or not."""
    for square, law, release in loss.samples.values():
        rate = evaluate(release.schedule.terms["rate"], declared.values)
        _require(rate[0] == rate[1], "T-TOUCH", "a rate that is a fraction")  # from 0 to 1, by `times`
        count = whole(evaluate(release.schedule.terms["times"], declared.values))
        loss.unbounded |= count > 0 and rate[0] > 0 and square[0] > 0
        if declared.claim.kind == "zcdp" and first and law == laws.CERTAIN:
            loss.sampled.append((square, rate[0], count))
            continue
        mixed = laws.mixed(laws.product(laws.gaussian(square), law) if square[0] else law, rate[0])
        loss.finite.append((mixed if first else laws.turned(mixed), count))


def _answers(release: Release, declared: Declared, rule: str) -> int:
    """T-TOUCH: how many answers hold the unit's data, each with noise of its own and none of a random sample."""
    _require(release.schedule.kind != "sampled", rule, f"{release.name}: about a random sample")
    _require(not release.shared, "L-SHARED", f"{release.name}: one draw of noise for several answers")
    return whole(evaluate(times(release, declared, numbers_at_least(declared)), declared.values))


def _moves(release: Release, declared: Declared) -> Fraction:
    """How far a unit moves a score or query of one value: in a leaf or batch there is one of its trajectories."""
    most: Term = ONE if release.schedule.kind in BATCHES else declared.trajectories
    return evaluate(("*", most, release.statistic.terms["moves"]), declared.values)[0]


def _choose(loss: Loss, release: Release, value: object, declared: Declared) -> None:
    """L-MAX: two candidates far ahead of all others, how far the first is behind the second on D and on D′."""
    rule, values = "L-MAX", declared.values
    _require(release.mechanism.kind == "noisy-max", rule, f"{release.name}: not the index of a maximum")
    first, second = (read_fraction(each, rule) for each in read_list(value, rule, least=2, most=2))
    moves = _moves(release, declared)
    sides = 1 if release.mechanism.fields["one_sided"] else 2
    _require(abs(first - second) <= sides * moves, rule, f"{release.name}: scores move further than declared")
    scale = evaluate(release.mechanism.terms["scale"], values)
    _require(scale[0] > 0, rule, "a scale is not positive")
    behind = (multiply((each, each), invert(scale)) for each in (first, second))
    count = _answers(release, declared, rule)
    loss.finite.append((laws.two(*(laws.wins(str(release.mechanism.fields["noise"]), each) for each in behind)), count))


def _cross(loss: Loss, release: Release, value: object, declared: Declared) -> None:
    """L-SPARSE: so many queries answered "below", then so many "above", each group at one level on D and on D′."""
    rule, at = "L-SPARSE", declared.values
    _require(release.mechanism.kind == "sparse-vector", rule, f"{release.name}: no sparse vector")
    terms = {name: evaluate(term, at) for name, term in release.mechanism.terms.items()}
    counts, levels = [], []
    for group in read_list(value, rule, least=2, most=2):
        count, first, second = read_list(group, rule, least=3, most=3)
        counts.append(read_integer(count, rule, least=0, most=60))
        levels.append((read_fraction(first, rule), read_fraction(second, rule)))
    within = sum(counts) <= whole(terms["queries"]) and counts[1] <= whole(terms["positives"])
    _require(within, rule, "more queries or answers above than there are")
    moves = _moves(release, declared)
    moved = [first - second for first, second in levels]
    one_way = min(moved) >= 0 or max(moved) <= 0 or not release.mechanism.fields["one_sided"]
    _require(max(map(abs, moved)) <= moves and one_way, rule, "queries that move further than declared")
    scales = terms["threshold_scale"], terms["query_scale"]
    _require(all(low == high > 0 for low, high in scales), rule, "scales are positive fractions")
    sides = (
        laws.crossing((scales[0][0], scales[1][0]), (counts[0], levels[0][i]), (counts[1], levels[1][i]))
        for i in (0, 1)
    )
    loss.finite.append((laws.two(*sides), _answers(release, declared, rule)))


def _interval(ends: Ends) -> enclosures.Interval:
    return enclosures.enclose(ends[0])[0], enclosures.enclose(ends[1])[1]


def _compare(loss: Loss, release: Release, value: object, declared: Declared) -> None:
    """L-LEVELS: queries or scores at a few levels on D and on D′; the first answer above, or the winner's group."""
    from privcheck_check.quadrature import first_above, winners

    rule, law, at = "L-LEVELS", release.mechanism.kind, declared.values
    _require(
        law in ("gaussian-max", "gaussian-sparse-vector"), rule, f"{release.name}: no selection with Gaussian noise"
    )
    terms = {name: evaluate(term, at) for name, term in release.mechanism.terms.items()}
    counts, levels = [], []
    for group in read_list(value, rule, least=1, most=8):
        count, first, second = read_list(group, rule, least=3, most=3)
        counts.append(read_integer(count, rule, least=1, most=ANSWERS))
        levels.append((read_fraction(first, rule), read_fraction(second, rule)))
    within = sum(counts) <= whole(terms["candidates" if law == "gaussian-max" else "queries"])
    _require(within and sum(counts) <= ANSWERS, rule, "more numbers are compared than there are")
    moved = [first - second for first, second in levels]
    one_way = min(moved) >= 0 or max(moved) <= 0 or not release.mechanism.fields["one_sided"]
    _require(max(map(abs, moved)) <= _moves(release, declared) and one_way, rule, "numbers move further than declared")
    variances = [terms[name] for name in terms if name.endswith("variance")]
    _require(all(low > 0 for low, _ in variances), rule, "a variance is not positive")
    spread = square_root(terms["variance" if law == "gaussian-max" else "query_variance"])
    sides = [
        [(n, _interval(multiply((level[i],) * 2, invert(spread)))) for n, level in zip(counts, levels, strict=True)]
        for i in (0, 1)
    ]
    if law == "gaussian-max":
        first, second = (winners(groups) for groups in sides)
    else:
        _require(whole(terms["positives"]) >= 1, rule, "it stops before the first answer")
        ratio = _interval(multiply(square_root(terms["threshold_variance"]), invert(spread)))
        first, second = (first_above(ratio, groups) for groups in sides)
    loss.finite.append(
        ([laws.outcome(p, q) for p, q in zip(first, second, strict=True)], _answers(release, declared, rule))
    )


def _state(loss: Loss, release: Release, value: object, declared: Declared) -> None:
    """L-STATED: the laws of a mechanism of its author's own, on the word of `stated-law: NAME`."""
    rule = "L-STATED"
    _require(release.mechanism.kind == "theorem", rule, f"{release.name}: its law is not stated but computed")
    _require(_answers(release, declared, rule) > 0, rule, f"{release.name}: no answers leave")
    sides = [_numbers(each) for each in read_list(value, rule, least=2, most=2)]
    _require(len(sides[0]) == len(sides[1]) and min(map(min, sides)) >= 0, rule, "probabilities of the same outcomes")
    _require(sum(sides[0]) <= 1 <= sum(sides[1]), rule, "P is stated from below, Q from above")
    loss.finite.append((laws.exactly(*sides), 1))


def _laplace_divergence(ratio: Ends, order: Fraction) -> Fraction:
    """Lower bound on the Rényi divergence of order α between Laplace laws at distance `ratio` scales (L-RENYI)."""
    low = (ratio[0], ratio[0])  # it increases with the distance
    weight = order / (2 * order - 1)
    grows = multiply(exponential(multiply(low, (order - 1,) * 2)), (weight, weight))
    falls = multiply(exponential(multiply(low, (-order, -order))), (1 - weight, 1 - weight))
    return logarithm(add(grows, falls))[0] / (order - 1)


def _supremum(loss: Loss) -> Fraction:
    """A lower bound on the supremum of the loss: that of independent outputs is the sum of theirs."""
    total = ZERO
    for ratios in (loss.laplace, loss.discrete):
        total += sum((ratio[0] * count for ratio, count in ratios.items()), ZERO)
    for law, count in loss.finite:
        ratio = laws.largest(law)
        if ratio is not None:
            total += logarithm((ratio, ratio))[0] * count
    return total


def _exceeds(loss: Loss, declared: Declared, order: Fraction | None, at: Fraction | None) -> bool:
    """Whether the loss is above the claim, for certain."""
    claim = {name: evaluate(term, declared.values)[1] for name, term in declared.claim.terms.items()}
    kind, delta = declared.claim.kind, claim.get("delta", ZERO)
    if loss.noiseless or delta >= 1:
        return delta < 1
    certain = any(count and laws.largest(law) is None for law, count in loss.finite)  # an outcome of one neighbour
    if kind == "pure":  # L-PURE, L-UNBOUNDED
        return loss.unbounded or certain or _supremum(loss) > claim["epsilon"]
    if kind == "zcdp":  # L-ZCDP, L-RENYI
        if order is None:
            return certain or loss.square[0] / 2 > claim["rho"]
        _require(loss.whole and not loss.discrete, "L-RENYI", "an order goes with other than discrete noise")
        found = sum((_laplace_divergence(each, order) * n for each, n in loss.laplace.items()), ZERO)
        found += sum((laws.divergence(law, order) * n for law, n in loss.finite if n), ZERO)
        for square, rate, n in loss.sampled:  # (1 − r + r·y)^α ≥ r^α·y^α
            least = order * square[0] / 2 + order / (order - 1) * logarithm((rate, rate))[0] if rate else ZERO
            found += max(ZERO, least) * n
        return found + order * loss.square[0] / 2 > order * claim["rho"]
    others = bool(loss.finite or loss.laplace or loss.discrete)
    if kind == "gdp" and not others:  # L-GDP
        return loss.whole and loss.square[0] > max(ZERO, claim["mu"]) ** 2
    if kind == "gdp":
        _require(at is not None, "L-GDP", "an ε at which the curves are compared")
        epsilon, delta = (at or ZERO,) * 2, gaussian_delta((max(ZERO, claim["mu"]) ** 2,) * 2, (at or ZERO,) * 2)[1]
    else:
        epsilon = (claim["epsilon"],) * 2
    _require(loss.whole, "L-CURVE", "discrete Gaussian noise: leave it out")
    if not others:  # L-CURVE
        return gaussian_delta(loss.square, epsilon)[0] > delta
    all_laws = [*loss.finite, *((laws.laplace(ratio), count) for ratio, count in loss.laplace.items())]
    all_laws += [(laws.discrete_laplace(ratio), count) for ratio, count in loss.discrete.items()]
    all_laws += [(laws.gaussian(loss.square), 1)] if loss.square[0] else []
    return laws.delta(all_laws, epsilon) > delta  # L-FINITE


def _check_pattern(value: object, declared: Declared) -> str:
    """L-PATTERN: answers of a sparse vector without noise on its queries that one of two neighbours cannot give."""
    rule = "L-PATTERN"
    found = read_object(value, rule, ("release", "above", "first", "second"))
    named = [each for each in declared.releases if each.name == found["release"]]
    _require(len(named) == 1 and named[0].mechanism.kind == "sparse-vector", rule, "expected a sparse vector's name")
    (release,) = named
    _require(_answers(release, declared, rule) > 0, rule, f"{release.name}: no answers leave")
    terms = {name: evaluate(term, declared.values) for name, term in release.mechanism.terms.items()}
    above = read_list(found["above"], rule, least=1, most=ANSWERS)
    _require(all(isinstance(each, bool) for each in above), rule, "each answer is true, above, or false, below")
    _require(terms["query_scale"] == (ZERO, ZERO) and terms["threshold_scale"][0] > 0, rule, "queries with noise")
    stopped = sum(map(bool, above[:-1])) >= whole(terms["positives"])
    _require(not stopped and len(above) <= whole(terms["queries"]), rule, "answers after it has stopped")
    first, second = (_numbers(found[name]) for name in ("first", "second"))
    _require(len(first) == len(second) == len(above), rule, "as many queries as answers")
    moves = evaluate(release.statistic.terms["moves"], declared.values)[0]
    moved = [one - other for one, other in zip(first, second, strict=True)]
    _require(all(abs(each) <= moves for each in moved), rule, "a query moves further than declared")
    one_way = min(moved) >= 0 or max(moved) <= 0
    _require(not release.mechanism.fields["one_sided"] or one_way, rule, "queries that do not all move one way")

    def room(queries: list[Fraction]) -> bool:
        """Whether some threshold is above every query that is below it, and not above the others."""
        below = [query for query, each in zip(queries, above, strict=True) if not each]
        others = [query for query, each in zip(queries, above, strict=True) if each]
        return not below or not others or max(below) < min(others)

    _require(room(first) and not room(second), rule, "both neighbours can give these answers, or neither")
    _require(declared.claim.kind != "approx", rule, "a claim with δ needs the probability of the answers")
    return f"answers of {release.name} that one of two neighbours cannot give: the loss"


def check_refuted(value: object, declared: Declared) -> str:
    """Check the pair and its loss; a sentence on what loses how much.

    Raises:
        Rejected: no neighbours, out of range, or a loss that is not above the claim.
    """
    if isinstance(value, dict) and "answers" in value:
        return _check_pattern(read_object(value, "evidence", ("answers",))["answers"], declared)
    found = read_object(
        value, "evidence", ("using",), ("pair", "part", "order", "epsilon", "behind", "crossing", "levels", "laws")
    )
    pair: list[list[Trajectory]] = [[], []]
    if "pair" in found:
        sides = read_list(found["pair"], "R-PAIR", least=2, most=2)
        pair = [[_trajectory(each) for each in read_list(side, "R-PAIR", most=20)] for side in sides]
        _neighbours(declared, pair[0], pair[1])
    part = read_text(found["part"], "evidence", most=80) if "part" in found else None
    names = [read_text(each, "evidence", most=80) for each in read_list(found["using"], "evidence", least=1, most=200)]
    known = {each.name: each for each in declared.releases if each.part is None or each.part == part}
    used = len(set(names)) == len(names) and known.keys() >= set(names)
    _require(used, "evidence", "'using' names each release at most once, of one part of the users")
    told = ("behind", "crossing", "levels", "laws")
    behind, crossing, levels, stated = (_object(found.get(name, {})) for name in told)
    loss = Loss()
    for release in (known[name] for name in names):
        if release.name in behind:
            _choose(loss, release, behind[release.name], declared)
            continue
        if release.name in crossing:
            _cross(loss, release, crossing[release.name], declared)
            continue
        if release.name in levels:
            _compare(loss, release, levels[release.name], declared)
            continue
        if release.name in stated:
            _state(loss, release, stated[release.name], declared)
            continue
        unit = whole(evaluate(declared.trajectories, declared.values)) if release.statistic.kind == "stated" else 1
        apart = release.schedule.kind in BATCHES and max(unit, *map(len, pair)) > 1
        _require(not apart, "T-TOUCH", f"{release.name}: trajectories with a leaf or batch each")
        change = _change(release, declared, pair)
        if change:
            _touch(loss, release, declared, change)
    _sampled(loss, declared, first=bool(pair[0]))
    order, at = (
        read_fraction(found[name], "evidence", above=least, most=1_000) if name in found else None
        for name, least in (("order", 1), ("epsilon", 0))
    )
    _require(_exceeds(loss, declared, order, at), "refuted", "the loss of the pair is not above the claim")
    return f"the loss of a pair of neighbours, through {', '.join(names)[:200]},"
