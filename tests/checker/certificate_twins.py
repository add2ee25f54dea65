"""The statements of certificates, computed in floats by other means: what is accepted must be true here.

No line is shared with the checker. Terms are evaluated by Python; costs of releases come from formulas written again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

FUNCTIONS = {
    "sqrt": math.sqrt, "log": math.log, "exp": math.exp, "max": lambda *each: max(each), "min": lambda *each: min(each),
    "bit_length": lambda n: int(n).bit_length(),
}  # fmt: skip
RANGES = {"one": (1, 1), "reward": (0, 1), "cost": (0, 1), "centred-reward": (-0.5, 0.5)}


def value(term: Any, at: Mapping[str, float]) -> float:
    if isinstance(term, int):
        return float(term)
    if isinstance(term, str):
        return at[term] if term in at else float(Fraction(term))
    operation, *arguments = term
    numbers = [value(each, at) for each in arguments]
    match operation:
        case "+":
            return math.fsum(numbers)
        case "*":
            return math.prod(numbers)
        case "-":
            return numbers[0] - numbers[1]
        case "/":
            return numbers[0] / numbers[1]
        case "^":
            return float(numbers[0] ** numbers[1])
        case _:
            return float(FUNCTIONS[operation](*numbers))


def moved(declared: Any, release: Any, at: Mapping[str, float]) -> tuple[float, float]:
    """ℓ₁ and squared ℓ₂ sensitivity, step by step, for the whole unit."""
    statistic, relation = release["statistic"], declared["relation"]
    pair, m = relation.startswith("replace"), value(declared["unit"]["trajectories"], at)

    def number(name: str, **more: float) -> float:
        return value(statistic[name], {**at, **more})

    match statistic["kind"]:
        case "table":
            low, high = RANGES[statistic["weight"]]
            norms = []
            for h in range(int(number("steps"))):
                shared = h == 0 and relation == "replace-one-same-start" and "next" not in statistic["cells"]
                largest = max(abs(low), abs(high))
                if shared:
                    norms.append((high - low, (high - low) ** 2))
                elif pair:
                    norms.append((2 * largest, max(2 * largest**2, (high - low) ** 2)))
                else:
                    norms.append((largest, largest**2))
            square = sum(s for _, s in norms)
            if statistic["pooled"]:
                square = sum(math.sqrt(s) for _, s in norms) ** 2
            found = sum(l1 for l1, _ in norms), square
        case "linear":
            square = 0.0
            for h in range(1, int(number("steps")) + 1):
                length = number("weight") * number("feature")
                length *= number("feature") if statistic["part"] == "outer" else number("target", h=h)
                square += length**2 * ((2 if statistic["part"] == "outer" else 4) if pair else 1)
            found = math.inf, square
        case "bounded":
            factor = 2 if pair else 1
            found = factor * number("l1"), (factor * number("l2")) ** 2
        case "bits":
            count = min((2 if pair else 1) * number("ones"), number("bits"))
            found = count, count
        case "selection":
            found = number("moves"), number("moves") ** 2
        case _:
            return number("l1"), number("l2") ** 2
    return m * found[0], m**2 * found[1]


def largest(declared: Any, release: Any, at: Mapping[str, float]) -> float:
    """The largest change of one number of a statistic; its ℓ₁ sensitivity where that is not known."""
    statistic = release["statistic"]
    if statistic["kind"] == "bits":
        return value(declared["unit"]["trajectories"], at)
    if statistic["kind"] == "table" and not statistic["pooled"]:
        half = statistic["weight"] == "centred-reward" and not declared["relation"].startswith("replace")
        return value(declared["unit"]["trajectories"], at) * (0.5 if half else 1)
    return moved(declared, release, at)[0]


def cost(declared: Any, release: Any, at: Mapping[str, float], currency: str, *, tight: bool = True) -> float:
    """The least cost that the checker proves; `tight`: at numbers."""
    law, mechanism = release["mechanism"]["law"], release["mechanism"]
    l1, square = moved(declared, release, at)

    def number(name: str) -> float:
        return value(mechanism[name], at)

    schedule = release["schedule"]
    times = 1.0
    if schedule["kind"] == "repeat":
        times = value(schedule["times"], at) if schedule["noise"] == "fresh" else math.inf
    if schedule["kind"] == "sampled":
        rate = value(schedule["rate"], at)
        one = cost(declared, {**release, "schedule": {"kind": "once"}}, at, currency)
        one = math.log1p(rate * math.expm1(one)) if currency == "pure" else one
        return value(schedule["times"], at) * one
    if schedule["kind"] == "tree":
        leaves = value(schedule["leaves"], at)
        times = 1 + math.floor(math.log2(leaves)) if leaves else 0
    if law != "theorem" and not square:
        return 0.0
    if law in ("gaussian-max", "gaussian-sparse-vector"):
        count, spread = ("candidates", "variance") if law == "gaussian-max" else ("queries", "query_variance")
        return times * number(count) * float(square) / number(spread) / (1 if currency == "gdp" else 2)
    if "gaussian" in law:
        share = number("variance") * (min(2, Fraction(mechanism["diagonal"])) if law == "gaussian-matrix" else 1)
        return times * float(square / share) / (1 if currency == "gdp" else 2)
    if law == "theorem" and mechanism["currency"] != "pure":
        given = number("cost") if mechanism["currency"] == "zcdp" else number("cost") ** 2 / 2
        return times * given * (2 if currency == "gdp" else 1)
    sides = 1 if mechanism.get("one_sided") else 2
    one = {
        "laplace": lambda: l1 / number("scale"),
        "discrete-laplace": lambda: l1 / number("scale"),
        "randomised-response": lambda: math.log(number("keep") * (number("answers") - 1) / (1 - number("keep"))),
        "noisy-max": lambda: sides * l1 / number("scale"),
        "sparse-vector": lambda: (
            l1 / number("threshold_scale") + sides * number("positives") * l1 / number("query_scale")
        ),
        "adaptive-sparse-vector": lambda: l1 / number("threshold_scale") + number("budget"),
        "theorem": lambda: number("cost"),
    }[law]()
    often = l1 if law == "randomised-response" else 1
    query = l1 / number("query_scale") if law == "sparse-vector" else math.inf
    if law == "adaptive-sparse-vector":
        query = l1 / number("top_scale") + l1 / number("middle_scale")
    if currency == "pure":
        return times * min(often * one, number("queries") * query if math.isfinite(query) else math.inf)
    ways = [often * one**2 / (8 if mechanism.get("noise") == "gumbel" else 2)]
    if law == "sparse-vector":
        ways.append(number("queries") * (query + math.expm1(-query)))
    elif law == "adaptive-sparse-vector":
        ways.append(number("queries") * query * math.tanh(query / 2))
        ways.append(one * math.tanh(one / 2))
    elif law == "laplace" and tight:
        each = largest(declared, release, at) / number("scale")
        ways.append(one / each * (each + math.expm1(-each)))
    elif tight and mechanism.get("noise") != "gumbel":
        ways.append(often * one * math.tanh(one / 2))
    return times * min(ways)


def phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def curve(square: float, epsilon: float) -> float:
    mu = math.sqrt(square)
    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu) if mu else 0.0


def slack(document: Any, at: Mapping[str, float]) -> float:
    """Claim less cost of a certificate that holds, at parameters, by its conclusion's rule; relative to the claim."""
    declared, end = document["declared"], document["steps"][-1]
    if end["rule"] == "C-NUMERIC":  # the composition has its own tests: here, what each noisy value is charged
        found = []
        for release, step in zip(declared["releases"], document["steps"], strict=False):
            mechanism = release["mechanism"]
            gaussian = "gaussian" in mechanism["law"] or mechanism.get("currency") == "gdp"
            once = {**release, "schedule": {"kind": "once"}}
            each = moved(declared, release, at)[0] if mechanism["law"] == "randomised-response" else 1.0
            if mechanism["law"] in ("gaussian-max", "gaussian-sparse-vector"):  # of one of the numbers compared
                each = value(mechanism["candidates" if mechanism["law"] == "gaussian-max" else "queries"], at)
            one = cost(declared, once, at, "gdp" if gaussian else "pure")
            found.append(value(step["at_most"], at) - (one / each if each else 0.0))
        return min(found)
    currency = {"P": "pure", "Z": "zcdp", "G": "gdp"}[end["rule"][2]]
    common, parts = 0.0, {"": 0.0}
    samples: dict[str, float] = {}
    for release in declared["releases"]:
        one = cost(declared, release, at, currency)
        if "sample" in release and currency == "pure":  # together: what the sum costs more than the sum of costs
            alone = cost(declared, {**release, "schedule": {"kind": "once"}}, at, currency)
            rate, rounds = (value(release["schedule"][name], at) for name in ("rate", "times"))
            before = samples.get(release["sample"], 0.0)
            samples[release["sample"]] = before + alone
            one = rounds * (math.log1p(rate * math.expm1(before + alone)) - math.log1p(rate * math.expm1(before)))
        if "part" in release:
            parts[release["part"]] = parts.get(release["part"], 0.0) + one
        else:
            common += one
    total = common + max(parts.values())
    claim = {key: value(each, at) for key, each in declared["claim"].items() if key not in ("currency", "source")}
    match end["rule"]:
        case "C-PURE" | "C-PURE-APPROX":
            return (claim["epsilon"] - total) / max(claim["epsilon"], 1e-300)
        case "C-ZCDP":
            return (claim["rho"] - total) / max(claim["rho"], 1e-300)
        case "C-GDP":
            return (claim["mu"] ** 2 - total) / max(claim["mu"] ** 2, 1e-300)
        case "C-GDP-APPROX":
            return (claim["delta"] - curve(total, claim["epsilon"])) / max(claim["delta"], 1e-300)
        case "C-ZCDP-ORDER":
            a = float(Fraction(end["order"]))
            needed = total * a + math.log(1 - 1 / a) - math.log(claim["delta"] * a) / (a - 1)
            return (claim["epsilon"] - needed) / max(claim["epsilon"], 1e-300)
        case _:
            needed = total + 2 * math.sqrt(total * math.log(1 / claim["delta"]))
            return (claim["epsilon"] - needed) / max(claim["epsilon"], 1e-300)


def difference(release: Any, pair: Any, at: Mapping[str, float]) -> Counter[Any]:
    """The change of a table, linear sum or vector between the two sides of a pair."""
    statistic, total = release["statistic"], Counter[Any]()
    for sign, side in zip((1, -1), pair, strict=True):
        for data in side:
            if statistic["kind"] in ("bits", "bounded"):
                for i, x in enumerate(data["vectors"][release["name"]]):
                    total[i] += sign * Fraction(x)
                continue
            for h in range(int(value(statistic["steps"], at))):
                if statistic["kind"] == "table":
                    reward = Fraction(data["rewards"][h])
                    weight = {"one": Fraction(1), "reward": reward, "cost": 1 - reward}.get(statistic["weight"])
                    at_step = {"state": data["states"][h], "action": data["actions"][h], "next": data["states"][h + 1]}
                    cell = tuple(sorted((name, at_step[name]) for name in statistic["cells"]))
                    total[None if statistic["pooled"] else h, cell] += sign * (
                        reward - Fraction(1, 2) if weight is None else weight
                    )
                    continue
                vector = [Fraction(x) for x in data["features"][statistic["features"]][h]]
                weight = Fraction(data.get("weights", {}).get(release["name"], [1] * (h + 1))[h])
                for i, x in enumerate(vector):
                    if statistic["part"] == "sum":
                        total[h, i] += sign * weight * x * Fraction(data["targets"][release["name"]][h])
                    else:
                        for j, y in enumerate(vector[: i + 1]):
                            total[h, i, j] += sign * weight * x * y
    return Counter({key: x for key, x in total.items() if x})


def excess(document: Any, at: Mapping[str, float]) -> float:
    """Loss of a refuting pair relative to the claim, less 1: Laplace against ε, Gaussian against ρ, μ or a curve."""
    declared, evidence = document["declared"], document["evidence"]
    pure = square = 0.0
    for release in declared["releases"]:
        if release["name"] not in evidence["using"]:
            continue
        change, mechanism, schedule = (
            difference(release, evidence["pair"], at),
            release["mechanism"],
            release["schedule"],
        )
        times = 1.0
        if schedule["kind"] == "repeat":
            if schedule["noise"] == "shared":
                return math.inf if change and value(schedule["times"], at) >= 2 else -1.0
            times = value(schedule["times"], at)
        if schedule["kind"] == "tree":
            times = int(value(schedule["leaves"], at)).bit_length()
        if "gaussian" in mechanism["law"]:
            for key, x in change.items():
                diagonal = mechanism["law"] == "gaussian-matrix" and len(key) == 3 and key[1] == key[2]
                variance = value(mechanism["variance"], at) * (
                    float(Fraction(mechanism["diagonal"])) if diagonal else 1
                )
                square += times * float(x) ** 2 / variance
        elif mechanism["law"] == "randomised-response":
            keep = value(mechanism["keep"], at)
            pure += times * len(change) * math.log(keep * (value(mechanism["answers"], at) - 1) / (1 - keep))
        else:
            pure += times * float(sum(abs(x) for x in change.values())) / value(mechanism["scale"], at)
    claim = {key: value(each, at) for key, each in declared["claim"].items() if key not in ("currency", "source")}
    match declared["claim"]["currency"]:
        case "pure":
            return math.inf if square else pure / max(claim["epsilon"], 1e-300) - 1
        case "zcdp":
            return square / 2 / max(claim["rho"], 1e-300) - 1
        case "gdp":
            return square / max(claim["mu"] ** 2, 1e-300) - 1
        case _:
            return curve(square, claim["epsilon"]) / max(claim["delta"], 1e-300) - 1


def wins(noise: str, behind: float) -> float:
    if behind < 0:
        return 1 - wins(noise, -behind)
    fallen = math.exp(-behind)
    return {"laplace": fallen * (2 + behind) / 4, "exponential": fallen / 2, "gumbel": fallen / (1 + fallen)}[noise]


def crossed(mechanism: Any, at: Mapping[str, float], groups: Any, side: int) -> float:
    """The probability of a sparse vector's answers, by the midpoint rule."""
    scale, query = value(mechanism["threshold_scale"], at), value(mechanism["query_scale"], at)
    (n, *a), (m, *b) = groups
    low, high = float(Fraction(a[side])), float(Fraction(b[side]))

    def below(x: float) -> float:
        return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2

    total, step = 0.0, min(scale, query) / 40
    reach = 40 * max(scale, query) + max(abs(low), abs(high))
    for i in range(int(2 * reach / step)):
        z = -reach + (i + 0.5) * step
        chance = below((z - low) / query) ** n * below((high - z) / query) ** m
        total += math.exp(-abs(z) / scale) / (2 * scale) * step * chance
    return total


def compared(law: str, mechanism: Any, at: Mapping[str, float], groups: Any, side: int) -> list[float]:
    """The law of the first answer above, or of the winner's group, with Gaussian noise, by the midpoint rule."""
    levels = [(int(n), float(Fraction((x, y)[side]))) for n, x, y in groups]
    spread = math.sqrt(value(mechanism["variance" if law == "gaussian-max" else "query_variance"], at))
    noise = spread if law == "gaussian-max" else math.sqrt(value(mechanism["threshold_variance"], at))
    steps, found = 800, [0.0] * (len(levels) if law == "gaussian-max" else 1 + sum(n for n, _ in levels))
    for i in range(-steps, steps):
        u = (i + 0.5) * 9 / steps
        mass = math.exp(-u * u / 2) / math.sqrt(2 * math.pi) * 9 / steps
        if law == "gaussian-max":
            for g, (own, level) in enumerate(levels):
                others = ((n - (g == h), x) for h, (n, x) in enumerate(levels))
                found[g] += own * mass * math.prod(phi(u + (level - x) / spread) ** n for n, x in others)
            continue
        place = 1
        for n, x in levels:
            below = phi((noise * u - x) / spread)
            for _ in range(n):
                found[place] += mass * (1 - below)
                mass *= below
                place += 1
        found[0] += mass
    return found


def outcomes(document: Any, at: Mapping[str, float]) -> list[list[tuple[float, float]]] | None:
    """Laws of the evidence by release, with P and Q of every outcome; None where the evidence is out of range."""
    declared, evidence = document["declared"], document["evidence"]
    most = value(declared["unit"]["trajectories"], at)
    found: list[list[tuple[float, float]]] = []
    for release in declared["releases"]:
        name, mechanism, law = release["name"], release["mechanism"], release["mechanism"]["law"]
        if name not in evidence["using"]:
            continue
        moves = most * value(release["statistic"]["moves"], at) if release["statistic"]["kind"] == "selection" else 0.0
        times = int(value(release["schedule"]["times"], at)) if release["schedule"]["kind"] == "repeat" else 1
        if law == "noisy-max":
            behind = [float(Fraction(x)) for x in evidence["behind"][name]]
            if abs(behind[0] - behind[1]) > moves * (1 if mechanism["one_sided"] else 2) + 1e-9:
                return None
            p, q = (wins(mechanism["noise"], x / value(mechanism["scale"], at)) for x in behind)
        elif law == "sparse-vector":
            groups = evidence["crossing"][name]
            shifts = [float(Fraction(x) - Fraction(y)) for _, x, y in groups]
            one_way = not mechanism["one_sided"] or min(shifts) * max(shifts) >= 0
            fits = sum(g[0] for g in groups) <= value(mechanism["queries"], at)
            if max(map(abs, shifts)) > moves + 1e-9 or not one_way or not fits:
                return None
            if groups[1][0] > value(mechanism["positives"], at) or min(g[0] for g in groups) < 0:
                return None
            p, q = (crossed(mechanism, at, groups, side) for side in (0, 1))
        elif law in ("gaussian-max", "gaussian-sparse-vector"):
            groups = evidence["levels"][name]
            shifts = [float(Fraction(x) - Fraction(y)) for _, x, y in groups]
            one_way = not mechanism["one_sided"] or min(shifts) * max(shifts) >= 0
            size = value(mechanism["candidates" if law == "gaussian-max" else "queries"], at)
            if max(map(abs, shifts)) > moves + 1e-9 or not one_way or sum(g[0] for g in groups) > size:
                return None
            both = (compared(law, mechanism, at, groups, side) for side in (0, 1))
            found += [list(zip(*both, strict=True))] * times
            continue
        elif law == "theorem":
            if name not in evidence.get("laws", {}):  # nothing tells D from D′ there
                continue
            first, second = ([float(Fraction(x)) for x in side] for side in evidence["laws"][name])
            if sum(first) > 1 + 1e-12 or sum(second) < 1 - 1e-12 or min(*first, *second) < 0:
                return None
            found.append(list(zip(first, second, strict=True)))
            continue
        else:
            n, chance = int(value(mechanism["noise_bits"], at)), value(mechanism["chance"], at)
            masses = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
            for x in difference(release, evidence["pair"], at).values():
                if abs(x) != 1:
                    return None
                more, less = [0.0, *masses], [*masses, 0.0]
                found += [list(zip(more, less, strict=True) if x > 0 else zip(less, more, strict=True))] * times
            continue
        found += [[(p, q), (1 - p, 1 - q)]] * times
    return found


def finite_excess(document: Any, at: Mapping[str, float]) -> float:
    """Loss of the evidence over the claim, less 1, from all outcomes together."""
    found = outcomes(document, at)
    if found is None:
        return -1.0
    if math.prod(map(len, found)) > 200_000:
        raise ArithmeticError
    claim = {k: value(each, at) for k, each in document["declared"]["claim"].items() if k not in ("currency", "source")}
    currency, evidence = document["declared"]["claim"]["currency"], document["evidence"]
    if currency == "pure":
        worst = [max((math.log(p / q) if q else math.inf) for p, q in law if p) for law in found]
        return sum(worst) / max(claim["epsilon"], 1e-300) - 1
    whole = [(1.0, 1.0)]
    for law in found:
        whole = [(p * a, q * b) for p, q in whole for a, b in law]
    if currency == "zcdp":
        if any(p and not q for p, q in whole):
            return math.inf
        orders = [float(Fraction(evidence["order"]))] if "order" in evidence else []
        best = [math.log(sum(p**a * q ** (1 - a) for p, q in whole if p)) / (a - 1) / a for a in orders]
        return max(best, default=0.0) / max(claim["rho"], 1e-300) - 1
    epsilon = claim["epsilon"] if currency == "approx" else float(Fraction(evidence.get("epsilon", 0)))
    loss = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in whole)
    return loss / max(claim["delta"] if currency == "approx" else curve(claim["mu"] ** 2, epsilon), 1e-300) - 1
