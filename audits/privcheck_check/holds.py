"""Claims that hold: costs of releases, their composition and the claim, each step stated and each proved."""

from collections.abc import Mapping
from fractions import Fraction

from privcheck_check.costs import AtLeast, cost, counters, times
from privcheck_check.curves import gaussian_delta, order_epsilon
from privcheck_check.declared import Declared, Release
from privcheck_check.terms import ONE, ZERO, Term, evaluate, read_term, whole
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


def _stated(
    value: object, release: Release, currency: str, declared: Declared, at_least: AtLeast, *, each: bool
) -> Term:
    """The cost that a step states of `release`, proved to be no less than the derived one."""
    step, rule = read_object(value, "steps", ("rule", "release", "at_most")), release.mechanism.kind
    if (step["rule"], step["release"]) != (rule, release.name):
        raise Rejected("steps", f"expected rule {rule} about {release.name!r}")
    stated = read_term(step["at_most"], "steps", declared.parameters)
    if not at_least(stated, cost(release, declared, currency, at_least, each=each)):
        raise Rejected(rule, f"{release.name}: a cost as {currency} above the stated bound")
    return stated


def _event(value: object, release: Release, declared: Declared, at_least: AtLeast) -> dict[str, object]:
    """One release as an event of the numeric kind, from the stated cost of one noisy value."""
    at, law = declared.values, release.mechanism.kind
    if law == "shuffled-bits":  # M-SHUFFLED: every counter that changes is Bin(m, 1/2) against Bin(m, 1/2) + 1
        step = read_object(value, "steps", ("rule", "release", "at_most"))
        stated = read_term(step["at_most"], "steps", declared.parameters)
        if (step["rule"], step["release"]) != (law, release.name):
            raise Rejected("steps", f"expected rule {law} about {release.name!r}")
        if not at_least(stated, counters(release, declared, at_least)):
            raise Rejected(law, f"{release.name}: more counters change than stated")
        bits = evaluate(release.mechanism.terms["noise_bits"], at)[0]
        return {"law": "binomial", "trials": int(bits), "count": whole(evaluate(stated, at))}
    gaussian = law in ("gaussian", "gaussian-matrix")
    stated = _stated(value, release, "gdp" if gaussian else "pure", declared, at_least, each=True)
    exact = evaluate(stated, at)
    if exact[0] != exact[1]:
        raise Rejected("C-NUMERIC", f"{release.name}: the stated cost is no fraction")
    if gaussian:
        event: dict[str, object] = {"law": "gaussian", "squared_ratio": str(exact[1])}
    else:
        event = {"law": "approximate", "epsilon": str(exact[1]), "lost": 0}
    if release.schedule.kind == "sampled":  # T-SAMPLED: Poisson samples of units; one unit more or less
        rate = evaluate(release.schedule.terms["rate"], at)
        if rate[0] != rate[1]:
            raise Rejected("T-SAMPLED", "a rate that is a fraction")
        event["rate"] = str(rate[1])
    return event | {"count": whole(evaluate(times(release, declared, at_least), at))}


def _join(events: list[tuple[str, dict[str, object]]]) -> list[dict[str, object]]:
    """T-SAMPLED: noisy values of one sample are one noisy value, of the sum of their squared ratios."""
    joined: dict[str, dict[str, object]] = {}
    found = [event for sample, event in events if not sample]
    for sample, event in events:
        if not sample:
            continue
        before = joined.setdefault(sample, {**event, "squared_ratio": "0"})
        same = all(before[name] == event[name] for name in ("law", "rate", "count"))
        if not same or event["law"] != "gaussian":
            raise Rejected("T-SAMPLED", f"sample {sample!r}: Gaussian noise, one rate and one number of rounds")
        total = read_fraction(before["squared_ratio"], "T-SAMPLED") + read_fraction(event["squared_ratio"], "T-SAMPLED")
        before["squared_ratio"] = str(total)
    return found + list(joined.values())


def _numeric(steps: list[object], declared: Declared, at_least: AtLeast) -> None:
    """C-NUMERIC: every release as an event at the cost of one noisy value, composed on a grid, for each part."""
    from privcheck_check.numeric import check_numeric

    end = read_object(steps[-1], "C-NUMERIC", ("rule", "grid"))
    if declared.claim.kind != "approx" or len(steps) != len(declared.releases) + 1:
        raise Rejected("C-NUMERIC", "a step for each release and a claim in ε and δ")
    parts: dict[str | None, list[tuple[str, dict[str, object]]]] = {}
    for release, value in zip(declared.releases, steps, strict=False):
        parts.setdefault(release.part, []).append((release.sample, _event(value, release, declared, at_least)))
    claim = {name: str(evaluate(declared.claim.terms[name], declared.values)[0]) for name in ("epsilon", "delta")}
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
    parts: dict[str | None, list[Term]] = {}
    for release, each in zip(releases, steps[:-2], strict=True):
        stated = _stated(each, release, currency, declared, at_least, each=False)
        parts.setdefault(release.part, []).append(stated)
    step = read_object(steps[-2], "steps", ("rule", "at_most"))
    total = read_term(step["at_most"], "steps", declared.parameters)
    if step["rule"] != "T-COMPOSE":
        raise Rejected("steps", "expected T-COMPOSE before the conclusion")
    always = parts.pop(None, [])  # releases about all users count with every part
    for costs in list(parts.values()) or [[]]:
        if not at_least(total, ("+", *always, *costs)):
            raise Rejected("T-COMPOSE", "the sum of the costs is above the stated total")
    if not _conclude(route, declared, total, at_least, end):
        raise Rejected(route, "the claim does not follow from the total")
    return route
