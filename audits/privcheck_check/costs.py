"""The cost of a release, as a term: sensitivities (relation × statistic × norm), mechanisms, schedules.

Rule identifiers in comments are those of docs/certificates.md, which has each statement with its proof.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from privcheck_check.declared import WEIGHTS, Declared, Release
from privcheck_check.terms import HALF, ONE, ZERO, Term, evaluate, whole
from privcheck_check.values import Rejected, read_fraction

AtLeast = Callable[[Term, Term], bool]
TWO, FOUR = Fraction(2), Fraction(4)
SELECTIONS = ("noisy-max", "sparse-vector", "adaptive-sparse-vector", "gaussian-max", "gaussian-sparse-vector")
QUERIES = ("sparse-vector", "adaptive-sparse-vector")  # that cost no more than their noisy queries: M-QUERIES
NOISY = ("laplace", "discrete-laplace", "gaussian", "gaussian-matrix", "discrete-gaussian")  # a sum with noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """ℓ₁ sensitivity (None: unbounded or unknown), square of the ℓ₂ sensitivity, largest change of one number."""

    l1: Term | None
    square: Term
    most: Term | None = None


def _require(holds: bool, rule: str, reason: str) -> None:
    if not holds:
        raise Rejected(rule, reason)


def _table(release: Release, relation: str, at_least: AtLeast) -> Sensitivity:  # S-TABLE
    statistic = release.statistic
    offset, slope = WEIGHTS[str(statistic.fields["weight"])]
    largest, spread = max(abs(offset), abs(offset + slope)), abs(slope)
    steps = statistic.terms["steps"]
    pair = relation.startswith("replace")
    l1, square = (2 * largest, max(2 * largest**2, spread**2)) if pair else (largest, largest**2)
    cells = statistic.fields["cells"]
    rest: Term = steps
    first_l1, first_square = ZERO, ZERO
    if relation == "replace-one-same-start" and isinstance(cells, list) and "next" not in cells:
        _require(at_least(steps, ONE), "S-TABLE", "a shared start needs at least one step")
        rest = ("-", steps, ONE)
        first_l1, first_square = spread, spread**2
    total: Term = ("+", ("*", rest, l1), first_l1)
    if not statistic.fields["pooled"]:
        most = max(largest, spread) if pair else largest
        return Sensitivity(l1=total, square=("+", ("*", rest, square), first_square), most=most)
    length: Term = ("+", ("*", rest, ("sqrt", square)), first_l1)  # triangle inequality over steps
    return Sensitivity(l1=total, square=("^", length, TWO))


def _mentions_step(term: Term) -> bool:
    return term == "h" or (isinstance(term, tuple) and any(_mentions_step(each) for each in term[1:]))


def _linear(release: Release, relation: str) -> Sensitivity:  # S-SUM, S-OUTER
    terms, outer = release.statistic.terms, release.statistic.fields["part"] == "outer"
    bound: Term = ("*", terms["weight"], terms["feature"], terms["feature"] if outer else terms["target"])
    factor = (TWO if outer else FOUR) if relation.startswith("replace") else ONE
    square: Term = ("*", factor, bound, bound)
    operation = "sum" if _mentions_step(square) else "*"
    return Sensitivity(l1=None, square=(operation, terms["steps"], square))


def sensitivity(release: Release, declared: Declared, at_least: AtLeast) -> Sensitivity:
    """Upper bounds on the change of `release`'s statistic between neighbours, for the whole unit.

    Raises:
        Rejected: the table has no entry, or a size may be negative.
    """
    statistic, terms = release.statistic, release.statistic.terms
    times: Term = declared.trajectories
    whole(evaluate(times, declared.values))
    _require(at_least(times, ONE), "S-UNIT", "the unit has fewer than one trajectory")
    for name, term in terms.items():
        if not _mentions_step(term):
            _require(at_least(term, ZERO), "S-SIZE", f"{release.name}: {name} may be negative")
        if name in ("steps", "states", "actions", "bits", "ones"):
            whole(evaluate(term, declared.values))
    pair = declared.relation.startswith("replace")
    match statistic.kind:
        case "table":
            one = _table(release, declared.relation, at_least)
        case "linear":
            one = _linear(release, declared.relation)
        case "bounded":  # S-BOUNDED
            factor = TWO if pair else ONE
            length: Term = ("*", factor, terms["l2"])
            one = Sensitivity(l1=("*", factor, terms["l1"]), square=("^", length, TWO))
        case "bits":  # S-BITS
            count: Term = ("*", TWO if pair else ONE, terms["ones"])
            count = terms["bits"] if at_least(count, terms["bits"]) else count
            one = Sensitivity(l1=count, square=count, most=ONE)
        case "stated":  # S-STATED: for the whole unit already
            return Sensitivity(l1=terms["l1"], square=("^", terms["l2"], TWO))
        case _:  # S-SELECTION
            one = Sensitivity(l1=terms["moves"], square=("^", terms["moves"], TWO))
    l1, most = (None if each is None else ("*", times, each) for each in (one.l1, one.most))
    return Sensitivity(l1=l1, square=("*", ("^", times, TWO), one.square), most=most)


def _pure(release: Release, moved: Sensitivity, at_least: AtLeast, *, tight: bool) -> Term:
    """ε of one noisy value, of randomised response of one answer: M-LAPLACE and others."""
    law, terms, fields = release.mechanism.kind, release.mechanism.terms, release.mechanism.fields
    if moved.l1 is None:
        raise Rejected(law, f"{release.name}: no ℓ₁ sensitivity in the table")
    sides = ONE if fields.get("one_sided") else TWO
    match law:
        case "laplace" | "discrete-laplace":
            return ("/", moved.l1, terms["scale"])
        case "randomised-response":
            answers, keep = terms["answers"], terms["keep"]
            _require(release.statistic.kind == "bits", law, f"{release.name}: answers are bits")
            _require(at_least(answers, TWO), law, "fewer than two answers")
            _require(at_least(("*", keep, answers), ONE), law, "the truth is less likely than another answer")
            odds: Term = ("/", ("*", keep, ("-", answers, ONE)), ("-", ONE, keep))
            return ("log", odds)
        case "noisy-max":
            return ("/", ("*", sides, moved.l1), terms["scale"])
        case "sparse-vector" if tight:  # the cost of one query
            return ("/", moved.l1, terms["query_scale"])
        case "sparse-vector":
            answers_cost: Term = ("/", ("*", sides, terms["positives"], moved.l1), terms["query_scale"])
            return ("+", ("/", moved.l1, terms["threshold_scale"]), answers_cost)
        case "adaptive-sparse-vector" if tight:  # the cost of one query, compared twice
            return ("+", *(("/", moved.l1, terms[name]) for name in ("top_scale", "middle_scale")))
        case "adaptive-sparse-vector":  # M-ADAPTIVE
            return ("+", ("/", moved.l1, terms["threshold_scale"]), terms["budget"])
        case "theorem" if fields["currency"] == "pure":
            return terms["cost"]
        case "shuffled-bits" | "shuffled-integers":
            raise Rejected(law, f"{release.name}: counters behind a shuffler go with C-NUMERIC")
        case _:
            raise Rejected(law, f"{release.name}: not pure DP")


def _zcdp(release: Release, moved: Sensitivity, epsilon: Term, at_least: AtLeast, *, tight: bool) -> Term:
    """ρ of an answer that is ε-DP: C-PURE-ZCDP, M-MAX, C-LAPLACE-ZCDP."""
    if release.mechanism.fields.get("noise") == "gumbel":
        return ("/", ("^", epsilon, TWO), Fraction(8))
    if tight and release.mechanism.kind in ("laplace", "sparse-vector"):  # Σ f(tᵢ) ≤ (ε/t)·f(t), f(t) = t + e^(−t) − 1
        scale = release.mechanism.terms.get("scale")
        if moved.most is None or scale is None or not at_least(moved.most, Fraction(1, 10**9)):
            return ("+", epsilon, ("-", ("exp", ("-", ZERO, epsilon)), ONE))
        one: Term = ("/", moved.most, scale)
        return ("*", ("/", epsilon, one), ("+", one, ("-", ("exp", ("-", ZERO, one)), ONE)))
    if tight:  # ε·tanh(ε/2)
        return ("*", epsilon, ("-", ONE, ("/", TWO, ("+", ("exp", epsilon), ONE))))
    return ("*", HALF, ("^", epsilon, TWO))


def _check_law(release: Release) -> None:
    law, statistic = release.mechanism.kind, release.statistic
    if law.startswith("discrete"):
        integral = statistic.kind == "bits" or statistic.fields.get("weight") == "one"
        _require(integral, law, f"{release.name}: the statistic is not known to be an integer")
    if law == "gaussian-matrix" and statistic.fields.get("part") != "outer":
        raise Rejected(law, f"{release.name}: not a sum of outer products")
    if law != "theorem" and (law in SELECTIONS) != (statistic.kind == "selection"):
        raise Rejected(law, f"{release.name}: a selection goes with a selecting mechanism")


def _one(release: Release, moved: Sensitivity, currency: str, at_least: AtLeast, *, tight: bool) -> Term:
    """The cost of one noisy value, or of one answer."""
    law, terms, fields = release.mechanism.kind, release.mechanism.terms, release.mechanism.fields
    if law != "theorem" and at_least(ZERO, moved.square):  # M-NOTHING
        return ZERO
    _require(not release.shared, "L-SHARED", f"{release.name}: one draw of noise for several numbers")
    if law in ("gaussian", "gaussian-matrix", "discrete-gaussian"):
        # M-MATRIX: D_F² ≥ Σ D_ii² + 2 Σ D_ij²
        factor = min(TWO, read_fraction(fields["diagonal"], law, above=0)) if law == "gaussian-matrix" else ONE
        square: Term = ("/", moved.square, ("*", factor, terms["variance"]))
    elif law in ("gaussian-max", "gaussian-sparse-vector"):  # M-ALL: a function of all noisy numbers
        numbers = terms["candidates" if law == "gaussian-max" else "queries"]
        square = ("*", numbers, one_number(release, moved))
    elif law == "theorem" and fields["currency"] == "gdp":
        square = ("^", terms["cost"], TWO)
    elif law == "theorem" and fields["currency"] == "zcdp":
        _require(currency == "zcdp", law, f"{release.name}: no cost as {currency}")
        return terms["cost"]
    else:
        epsilon = _pure(release, moved, at_least, tight=tight)
        _require(currency != "gdp", law, f"{release.name}: no cost as gdp")
        return _zcdp(release, moved, epsilon, at_least, tight=tight) if currency == "zcdp" else epsilon
    if currency == "pure" or (law == "discrete-gaussian" and currency == "gdp"):
        raise Rejected(law, f"{release.name}: no cost as {currency}")
    return ("*", HALF, square) if currency == "zcdp" else square


def one_number(release: Release, moved: Sensitivity) -> Term:
    """μ² of one of the noisy numbers that a selection with Gaussian noise compares."""
    law, terms = release.mechanism.kind, release.mechanism.terms
    return ("/", moved.square, terms["variance" if law == "gaussian-max" else "query_variance"])


def compared(release: Release, declared: Declared, at_least: AtLeast) -> tuple[Term, Term]:
    """μ² of one noisy number, and μ² of the threshold (0 if there is none), of a selection with Gaussian noise.

    Raises:
        Rejected: more than one selection, or a size that may be negative or is not whole.
    """
    _require(release.schedule.kind == "once" and not release.shared, "M-STOPPED", f"{release.name}: one selection only")
    cost(release, declared, "gdp", at_least)
    moved = sensitivity(release, declared, at_least)
    if release.mechanism.kind == "gaussian-max":
        return one_number(release, moved), ZERO
    return one_number(release, moved), ("/", moved.square, release.mechanism.terms["threshold_variance"])


def answers(release: Release, declared: Declared, at_least: AtLeast) -> Term:
    """How many independent answers of one noisy value change: more than one by randomised response alone."""
    moved = sensitivity(release, declared, at_least) if release.mechanism.kind == "randomised-response" else None
    return ONE if moved is None or moved.l1 is None else moved.l1


def amplified(release: Release, epsilon: Term) -> Term:
    """ε of a value of a Poisson sample (T-SAMPLED)."""
    return ("log", ("+", ONE, ("*", release.schedule.terms["rate"], ("-", ("exp", epsilon), ONE))))


def cost(
    release: Release,
    declared: Declared,
    currency: str,
    at_least: AtLeast,
    *,
    each: bool = False,
    tight: bool = False,
) -> Term:
    """Upper bound on the cost of `release` to a unit: ε ("pure"), ρ ("zcdp") or μ² ("gdp"); of `each` noisy value.

    ε of a sample that others share is not amplified yet: T-COMPOSE does it with theirs. `tight`: ρ by
    a function of ε below ε²/2; a sparse vector query by query.

    Raises:
        Rejected: a mechanism without a cost in `currency`, noise used twice, a size that may be negative.
    """
    law, terms = release.mechanism.kind, release.mechanism.terms
    for name, term in terms.items():
        _require(at_least(term, ZERO), law, f"{release.name}: {name} may be negative")
        if name in ("answers", "positives", "candidates") or (name == "queries" and law != "sparse-vector"):
            whole(evaluate(term, declared.values))
    _check_law(release)
    batches = release.schedule.kind in ("disjoint", "tree")
    if batches and (law == "theorem" or release.statistic.kind == "stated"):
        one_value = at_least(ONE, declared.trajectories)
        _require(one_value, "S-STATED", f"{release.name}: what is stated of one value, for a unit in several")
    one = _one(release, sensitivity(release, declared, at_least), currency, at_least, tight=tight)
    if law in QUERIES and tight:  # M-QUERIES: its answers leave together, as one value
        one = ("*", terms["queries"], one)
    count = times(release, declared, at_least)
    if each:
        return one
    one = ("*", answers(release, declared, at_least), one)
    if release.schedule.kind == "sampled" and currency == "pure":  # T-SAMPLED
        if release.sample:
            return one
        one = amplified(release, one)
    return ("*", count, one)


def counters(release: Release, declared: Declared, at_least: AtLeast) -> Term:
    """Upper bound on the number of counters of bits that a unit changes, each by one (S-COUNTERS).

    Raises:
        Rejected: a statistic that is no such counters, or a unit of several trajectories.
    """
    statistic, law = release.statistic, "shuffled-bits"
    _require(at_least(release.mechanism.terms["noise_bits"], ONE), law, f"{release.name}: no noise bits")
    _require(not release.shared, law, f"{release.name}: one draw of noise for all cells of a value")
    _require(release.schedule.kind in ("once", "disjoint"), law, f"{release.name}: more than one value a unit")
    times(release, declared, at_least)  # T-LOCAL: not where messages are seen with their sender
    _require(declared.relation != "add-remove", law, f"{release.name}: a user who leaves sends fewer messages")
    table = statistic.kind == "table" and statistic.fields["weight"] in ("one", "reward")
    known = (table and not statistic.fields["pooled"]) or statistic.kind in ("bits", "stated")
    _require(known, law, f"{release.name}: not counters of bits")
    _require(at_least(ONE, declared.trajectories), law, f"{release.name}: a unit of several trajectories")
    moved = sensitivity(release, declared, at_least).l1
    if moved is None:
        raise Rejected(law, f"{release.name}: no ℓ₁ sensitivity in the table")
    return moved


def times(release: Release, declared: Declared, at_least: AtLeast) -> Term:
    """The number of noisy values of `release` that hold one trajectory's data."""
    schedule = release.schedule
    match schedule.kind:
        case "repeat":  # T-REPEAT
            _require(schedule.fields["noise"] == "fresh", "T-REPEAT", f"{release.name}: one noise for all values")
            count = schedule.terms["times"]
            whole(evaluate(count, declared.values))
            _require(at_least(count, ZERO), "T-REPEAT", f"{release.name}: a negative count")
            return count
        case "tree":  # T-TREE
            return ("bit_length", schedule.terms["leaves"])
        case "sampled":  # T-SAMPLED
            count, rate = schedule.terms["times"], schedule.terms["rate"]
            whole(evaluate(count, declared.values))
            chance = at_least(count, ZERO) and at_least(rate, ZERO) and at_least(ONE, rate)
            summed = release.mechanism.kind in NOISY and release.statistic.kind != "stated"
            away = declared.relation == "add-remove" or (declared.relation == "zero-out" and summed)
            _require(chance and away, "T-SAMPLED", "one unit added, removed or set to 0 in a sum, at a rate")
            return count
        case kind:  # T-ONCE, T-LOCAL, T-DISJOINT
            own = kind == "local" and declared.relation != "add-remove"  # as many values on either side
            replaced = declared.relation.startswith("replace")
            fits = (own and replaced) if declared.model == "local" else own or kind != "local"
            _require(fits, "T-LOCAL", f"{release.name}: schedule, model and relation do not fit")
            return ONE


def numbers_at_least(declared: Declared) -> AtLeast:
    """The order of terms at the declared values: proved by enclosures."""
    at = declared.values

    def at_least(left: Term, right: Term) -> bool:
        return evaluate(left, at)[0] >= evaluate(right, at)[1]

    return at_least
