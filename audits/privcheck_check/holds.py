"""Claims that hold: costs of releases, their composition and the claim, each step stated and each proved."""

from collections.abc import Mapping
from fractions import Fraction

from privcheck_check.costs import QUERIES, AtLeast, amplified, answers, compared, cost, counters, times
from privcheck_check.curves import gaussian_delta, order_epsilon
from privcheck_check.declared import Declared, Release
from privcheck_check.terms import HALF, ONE, ZERO, Term, evaluate, read_term, whole
from privcheck_check.values import Rejected, read_fraction, read_list, read_object, read_text

TWO = Fraction(2)
ROUTES = {  # the last step's rule: the currency of the costs and of the claim
    "C-PURE": ("pure", "pure"),
    "C-PURE-APPROX": ("pure", "approx"),
    "C-ZCDP": ("zcdp", "zcdp"),
    "C-GDP": ("gdp", "gdp"),
    "C-ZCDP-APPROX": ("zcdp", "approx"),
    "C-ZCDP-ORDER": ("zcdp", "approx"),
    "C-GDP-APPROX": ("gdp", "approx"),
}
NUMBERS = ("C-GDP-APPROX", "C-ZCDP-ORDER")  # at numbers only


def _conclude(route: str, declared: Declared, total: Term, at_least: AtLeast, last: Mapping[str, object]) -> bool:
    claim = declared.claim.terms
    if route == "C-GDP":
        return at_least(claim["mu"], ZERO) and at_least(("^", claim["mu"], TWO), total)
    if route in ("C-PURE", "C-ZCDP"):
        return at_least(claim["epsilon" if route == "C-PURE" else "rho"], total)
    epsilon, delta = claim["epsilon"], claim["delta"]
    if not (at_least(delta, ZERO) and at_least(epsilon, ZERO)):
        return False
    if route == "C-PURE-APPROX":
        return at_least(epsilon, total)
    if route == "C-GDP-APPROX":
        at = declared.values
        return gaussian_delta(evaluate(total, at), evaluate(epsilon, at))[1] <= evaluate(delta, at)[0]
    if not at_least(ONE, delta):
        return False
    if route == "C-ZCDP-APPROX":
        logarithm: Term = ("log", ("/", ONE, delta))
        return at_least(epsilon, ("+", total, ("*", TWO, ("sqrt", ("*", total, logarithm)))))
    at, order = declared.values, read_fraction(last["order"], route, above=1)
    return order_epsilon(evaluate(total, at), evaluate(delta, at), order)[1] <= evaluate(epsilon, at)[0]


def _read_step(value: object, release: Release, declared: Declared) -> Term:
    """The cost that a step states of `release`."""
    step, rule = read_object(value, "steps", ("rule", "release", "at_most")), release.mechanism.kind
    if (step["rule"], step["release"]) != (rule, release.name):
        raise Rejected("steps", f"expected rule {rule} about {release.name!r}")
    return read_term(step["at_most"], "steps", declared.parameters)


def _stated(
    value: object,
    release: Release,
    currency: str,
    declared: Declared,
    at_least: AtLeast,
    *,
    each: bool = False,
    numbers: bool = True,
) -> Term:
    """The cost that a step states of `release`, proved to be no less than the derived one."""
    stated, rule = _read_step(value, release, declared), release.mechanism.kind
    proved = at_least(stated, cost(release, declared, currency, at_least, each=each))
    if not proved and (rule in QUERIES or (currency == "zcdp" and numbers)):
        proved = at_least(stated, cost(release, declared, currency, at_least, each=each, tight=True))
    if not proved:
        raise Rejected(rule, f"{release.name}: a cost as {currency} above the stated bound")
    return stated


def _total(costs: list[tuple[Release, Term]], currency: str, declared: Declared, at_least: AtLeast) -> Term:
    """T-COMPOSE: the sum of costs, after ε of the values of one sample is amplified (T-SAMPLED)."""
    summed: list[Term] = [ZERO]
    samples: dict[str, list[tuple[Release, Term]]] = {}
    for release, stated in costs:
        if release.sample and currency == "pure":
            samples.setdefault(release.sample, []).append((release, stated))
        else:
            summed.append(stated)
    for same in samples.values():
        first = same[0][0]
        if any(release.schedule != first.schedule for release, _ in same):
            raise Rejected("T-SAMPLED", f"sample {first.sample!r}: one rate and one number of rounds")
        together: Term = ("+", *(stated for _, stated in same))
        summed.append(("*", times(first, declared, at_least), amplified(first, together)))
    return ("+", *summed)


def _selection(value: object, release: Release, declared: Declared, at_least: AtLeast) -> list[dict[str, object]]:
    """M-STOPPED, M-LARGEST: a selection with Gaussian noise as events, from the stated μ² of one noisy number."""
    at, law, terms = declared.values, release.mechanism.kind, release.mechanism.terms
    stated, (one, threshold) = _read_step(value, release, declared), compared(release, declared, at_least)
    exact = evaluate(stated, at)
    if not at_least(stated, one) or exact[0] != exact[1]:
        raise Rejected(law, f"{release.name}: one number's cost is above what is stated, or that is no fraction")
    squared = exact[1] if release.mechanism.fields["one_sided"] else 4 * exact[1]
    if not squared:
        return []
    if law == "gaussian-max":
        most = whole(evaluate(terms["candidates"], at))
        event: dict[str, object] = {"law": "largest normal", "squared_shift": str(squared), "candidates": most}
        return [event | {"count": 1}] if most > 1 else []
    queries, positives = (whole(evaluate(terms[name], at)) for name in ("queries", "positives"))
    runs = min(positives, queries)
    if not runs:
        return []
    first = {"law": "gaussian", "squared_ratio": str(evaluate(threshold, at)[1]), "count": 1}
    return [first, {"law": "stopped run", "squared_shift": str(squared), "queries": queries, "count": runs}]


def _event(value: object, release: Release, declared: Declared, at_least: AtLeast) -> dict[str, object] | None:
    """One release as an event of the numeric kind, from the stated cost of one noisy value; None if that is 0."""
    at, law = declared.values, release.mechanism.kind
    if law == "shuffled-bits":  # M-SHUFFLED: every counter that changes is Bin(m, 1/2) against Bin(m, 1/2) + 1
        stated = _read_step(value, release, declared)
        if not at_least(stated, counters(release, declared, at_least)):
            raise Rejected(law, f"{release.name}: more counters change than stated")
        count = whole(evaluate(stated, at))
        if not count:
            return None
        bits, chance = (evaluate(release.mechanism.terms[name], at) for name in ("noise_bits", "chance"))
        if chance != (HALF, HALF):
            raise Rejected(law, f"{release.name}: coins that are not fair")
        return {"law": "binomial", "trials": int(bits[0]), "count": count}
    gaussian = law in ("gaussian", "gaussian-matrix") or release.mechanism.fields.get("currency") == "gdp"
    several: Term = ("*", times(release, declared, at_least), answers(release, declared, at_least))
    stated = _stated(value, release, "gdp" if gaussian else "pure", declared, at_least, each=True)
    exact = evaluate(stated, at)
    if exact[0] != exact[1]:
        raise Rejected("C-NUMERIC", f"{release.name}: the stated cost is no fraction")
    if gaussian:
        event: dict[str, object] = {"law": "gaussian", "squared_ratio": str(exact[1])}
    elif law == "randomised-response":
        values = whole(evaluate(release.mechanism.terms["answers"], at))
        event = {"law": "randomised response", "epsilon": str(exact[1]), "values": values}
    else:
        event = {"law": "approximate", "epsilon": str(exact[1]), "lost": 0}
    if release.schedule.kind == "sampled":  # T-SAMPLED: Poisson samples of units; one unit more or less
        rate = evaluate(release.schedule.terms["rate"], at)
        if rate[0] != rate[1] or law == "randomised-response":
            raise Rejected("T-SAMPLED", "expected a rate that is a fraction, and no answers of users by themselves")
        event["rate"] = str(rate[1])
    often = whole(evaluate(several, at))
    return event | {"count": often} if often and exact[1] and event.get("rate") != "0" else None


def _join(events: list[tuple[str, dict[str, object]]]) -> list[dict[str, object]]:
    """T-SAMPLED: noisy values of one sample are one noisy value, of the sum of their squared ratios."""
    joined: dict[str, dict[str, object]] = {}
    found = [event for sample, event in events if not sample]
    for sample, event in events:
        if not sample:
            continue
        key = "squared_ratio" if event["law"] == "gaussian" else "epsilon"
        before = joined.setdefault(sample, {**event, key: "0"})
        if any(before[name] != event[name] for name in ("law", "rate", "count")):
            raise Rejected("T-SAMPLED", f"sample {sample!r}: noise of one kind, one rate and one number of rounds")
        before[key] = str(read_fraction(before[key], "T-SAMPLED") + read_fraction(event[key], "T-SAMPLED"))
    return found + list(joined.values())


def _numeric(steps: list[object], declared: Declared, at_least: AtLeast) -> None:
    """C-NUMERIC: every release as an event at the cost of one noisy value, composed on a grid, for each part."""
    from privcheck_check.numeric import check_numeric

    end = read_object(steps[-1], "C-NUMERIC", ("rule", "grid"))
    if declared.claim.kind != "approx" or len(steps) != len(declared.releases) + 1:
        raise Rejected("C-NUMERIC", "a step for each release and a claim in ε and δ")
    parts: dict[str | None, list[tuple[str, dict[str, object]]]] = {}
    for release, value in zip(declared.releases, steps, strict=False):
        if release.mechanism.kind in ("gaussian-max", "gaussian-sparse-vector"):
            found = _selection(value, release, declared, at_least)
        else:
            event = _event(value, release, declared, at_least)
            found = [] if event is None else [event]
        if found:
            parts.setdefault(release.part, []).extend((release.sample, event) for event in found)
    least = {name: evaluate(declared.claim.terms[name], declared.values)[0] for name in ("epsilon", "delta")}
    if min(least.values()) < 0:
        raise Rejected("C-NUMERIC", "a claim below 0")
    if not parts:
        return
    claim = {name: str(end) for name, end in least.items()}
    always = parts.pop(None, [])  # releases about all users count with every part
    for events in list(parts.values()) or [[]]:
        check_numeric({"events": _join(always + events), "grid": end["grid"]} | claim)


def check_steps(value: object, declared: Declared, at_least: AtLeast, *, numbers: bool) -> str:
    """Check a derivation: a cost for every release, the total of every part, the claim; the route that it took.

    Raises:
        Rejected: a step missing, out of order, under another rule, or a bound that is not proved.
    """
    steps = read_list(value, "steps", least=2, most=300)
    releases = declared.releases
    if numbers and isinstance(steps[-1], dict) and steps[-1].get("rule") == "C-NUMERIC":
        _numeric(steps, declared, at_least)
        return "C-NUMERIC"
    if len(steps) != len(releases) + 2:
        raise Rejected("steps", f"expected a step for each of {len(releases)} releases, a total and a conclusion")
    end = read_object(steps[-1], "steps", ("rule",), ("order",))
    route = read_text(end["rule"], "steps", most=40)
    if route not in ROUTES or (route == "C-ZCDP-ORDER") != ("order" in end):
        raise Rejected("steps", f"unknown conclusion {route!r}")
    currency, kind = ROUTES[route]
    if kind != declared.claim.kind or (route in NUMBERS and not numbers):
        raise Rejected(route, "does not conclude the claim")
    parts: dict[str | None, list[tuple[Release, Term]]] = {}
    for release, each in zip(releases, steps[:-2], strict=True):
        stated = _stated(each, release, currency, declared, at_least, numbers=numbers)
        parts.setdefault(release.part, []).append((release, stated))
    step = read_object(steps[-2], "steps", ("rule", "at_most"))
    total = read_term(step["at_most"], "steps", declared.parameters)
    if step["rule"] != "T-COMPOSE":
        raise Rejected("steps", "expected T-COMPOSE before the conclusion")
    always = parts.pop(None, [])  # releases about all users count with every part
    for costs in list(parts.values()) or [[]]:
        if not at_least(total, _total(always + costs, currency, declared, at_least)):
            raise Rejected("T-COMPOSE", "the sum of the costs is above the stated total")
    if not _conclude(route, declared, total, at_least, end):
        raise Rejected(route, "the claim does not follow from the total")
    return route
