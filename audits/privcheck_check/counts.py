"""Counts of an audit and the rows of a ledger: what they imply, in exact sums and bounded binomial tails."""

from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256

from privcheck_check.curves import gaussian_delta, normal, order_epsilon
from privcheck_check.terms import ONE, ZERO, add, exponential, invert, multiply, spend
from privcheck_check.values import (
    Rejected,
    canonical,
    read_choice,
    read_fraction,
    read_integer,
    read_list,
    read_object,
    read_text,
)

RUNS = 1_000_000
DIGITS = 192  # bits of a rounded probability
CLAIMS = {"pure": ("epsilon",), "approx": ("epsilon", "delta"), "gdp": ("mu",)}


def _up(value: Fraction) -> Fraction:
    """`value` ≥ 0 rounded up to some `DIGITS` bits."""
    shift = DIGITS + value.denominator.bit_length() - value.numerator.bit_length()
    scaled = value * Fraction(2) ** shift
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(2) ** shift


def _power(base: Fraction, exponent: int) -> Fraction:
    value: Fraction = ONE
    for bit in f"{exponent:b}":
        value = _up(value * value * (base if bit == "1" else ONE))
    return value


def _binomial(runs: int, few: int) -> tuple[int, int]:
    """(top, shift), C(runs, few) ≤ top·2^shift."""
    top, shift = 1, 0
    for i in range(few):
        top = -(-top * (runs - i) // (i + 1))
        if top.bit_length() > 2 * DIGITS:
            excess = top.bit_length() - DIGITS
            top, shift = -(-top >> excess), shift + excess
    return top, shift


def tail(runs: int, least: int, probability: Fraction) -> Fraction:
    """Upper bound on P[Bin(runs, p) ≥ least] for every p ≤ `probability` (A-TAIL)."""
    if least <= 0 or probability >= 1:
        return ONE
    spend(runs // 10)
    few = min(least, runs - least)
    if few < 0:
        return ZERO
    top, shift = _binomial(runs, few)
    first = _power(_up(probability), least) * _power(_up(1 - probability), runs - least) * (top << shift)
    odds = _up(probability / (1 - probability))
    up, down = odds.numerator, odds.denominator
    entry = total = 1 << DIGITS  # terms relative to the first, rounded up
    for j in range(least, runs):
        entry = -(-entry * (runs - j) * up // ((j + 1) * down))
        if 2 * (runs - j) * up < (j + 1) * down and entry < 1 << (DIGITS // 2):
            total += 2 * entry  # ratios below ½ from here on: the rest is at most as much again
            break
        total += entry
    return min(ONE, first * Fraction(total, 1 << DIGITS))


def check_audit(declared: object, evidence: object) -> tuple[str, tuple[str, str, str]]:
    """Counts that no mechanism with the declared guarantee yields with probability above α; a sentence, the conclusion.

    Raises:
        Rejected: counts that do not fit each other, or are likely enough.
    """
    rule = "declared"
    found = read_object(declared, rule, ("name", "source", "method", "guarantee", "alpha"))
    name, method = read_text(found["name"], rule), read_choice(found["method"], rule, ("events", "guesses"))
    read_text(found["source"], rule)
    guarantee = found["guarantee"]
    if not isinstance(guarantee, dict):
        raise Rejected(rule, "expected an object")
    kind = read_choice(guarantee.get("currency"), rule, CLAIMS)
    read_object(guarantee, rule, ("currency", *CLAIMS[kind]))
    numbers = {each: read_fraction(guarantee[each], rule, least=0, most=1_000) for each in CLAIMS[kind]}
    alpha = read_fraction(found["alpha"], rule, above=0, most=1)
    delta = numbers.get("delta", ZERO)
    if method == "guesses":  # A-GUESSES
        counts = read_object(evidence, "evidence", ("runs", "guesses", "correct"))
        runs = read_integer(counts["runs"], "evidence", least=1, most=RUNS)
        guesses = read_integer(counts["guesses"], "evidence", least=1, most=runs)
        correct = read_integer(counts["correct"], "evidence", least=0, most=guesses)
        if guesses < runs and (delta or kind == "gdp"):
            raise Rejected("A-GUESSES", "a guess in every run where the guarantee is not pure")
        if kind == "gdp":
            likely = normal((numbers["mu"] / 2,) * 2)[1]
        else:
            ratio = exponential((numbers["epsilon"],) * 2)
            likely = multiply(add(ratio, (delta, delta)), invert(add(ratio, (ONE, ONE))))[1]
        chance = tail(guesses, correct, likely)
    else:  # A-EVENTS
        counts = read_object(evidence, "evidence", ("first", "second", "first_at_least", "second_at_most"))
        if kind == "gdp":
            raise Rejected("A-EVENTS", "a guarantee in ε and δ")
        pair = [read_object(counts[side], "evidence", ("runs", "count")) for side in ("first", "second")]
        runs_of = [read_integer(each["runs"], "evidence", least=1, most=RUNS) for each in pair]
        seen = [read_integer(each["count"], "evidence", least=0, most=RUNS) for each in pair]
        if any(count > runs for count, runs in zip(seen, runs_of, strict=True)):
            raise Rejected("evidence", "more events than runs")
        low, high = (
            read_fraction(counts[key], "evidence", least=0, most=1) for key in ("first_at_least", "second_at_most")
        )
        if low <= multiply(exponential((numbers["epsilon"],) * 2), (high, high))[1] + delta:
            raise Rejected("A-EVENTS", "the limits of the two frequencies do not contradict the guarantee")
        chance = tail(runs_of[0], seen[0], low) + tail(runs_of[1], runs_of[1] - seen[1], 1 - high)
    if chance > alpha:
        raise Rejected("A-TAIL", "such counts are likelier than alpha")
    shown = ", ".join(f"{each} = {value}" for each, value in numbers.items())
    sentence = f"{name}: such counts have probability at most {alpha} under any mechanism with {shown}"
    return sentence, ("refuted at level alpha", "these counts", "guarantee")


def check_ledger(declared: object, evidence: object) -> tuple[str, tuple[str, str, str]]:
    """A chain of rows whose acknowledged sums never pass any cap, and caps that keep the policy (G-SUMS, G-CAPS).

    Raises:
        Rejected: a broken chain, a row that fits no earlier one, a sum above its cap, caps above the policy.
    """
    rule = "declared"
    found = read_object(declared, rule, ("name", "source", "unit", "currency", "grants", "policy", "head"))
    for each in ("name", "source", "unit"):
        read_text(found[each], rule)
    currency = read_choice(found["currency"], rule, ("epsilon", "mu2", "rho"))
    grants = found["grants"]
    if not isinstance(grants, dict):
        raise Rejected(rule, "expected an object of grants")
    caps = {grant: read_fraction(cap, rule, least=0) for grant, cap in grants.items()}
    _keeps_policy(found["policy"], currency, add(*((cap, cap) for cap in caps.values()))[1])
    rows = read_list(read_object(evidence, "evidence", ("rows",))["rows"], "evidence")
    spent: dict[str, Fraction] = dict.fromkeys(caps, ZERO)
    charges: dict[str, tuple[str, Fraction, str]] = {}
    previous: object = ""
    for entry in rows:
        row = read_object(entry, "G-SUMS", ("charge", "grant", "state", "amount", "row", "previous"))
        if row["previous"] != previous:
            raise Rejected("G-CHAIN", "a row does not follow the one before it")
        previous = "sha256:" + sha256(canonical(row)).hexdigest()
        read_text(row["row"], "G-SUMS")
        charge, grant = read_text(row["charge"], "G-SUMS"), read_choice(row["grant"], "G-SUMS", caps)
        state = read_choice(row["state"], "G-SUMS", ("committed", "released", "reserved"))
        amount = read_fraction(row["amount"], "G-SUMS", least=0)
        before = charges.get(charge)
        if before is None and state != "released":
            spent[grant] = add((spent[grant],) * 2, (amount, amount))[0]
        elif before != (grant, amount, "reserved") or state == "reserved":
            raise Rejected("G-SUMS", "a charge changes otherwise than from reserved to committed or released")
        elif state == "released":
            spent[grant] -= amount
        charges[charge] = grant, amount, state
        if spent[grant] > caps[grant]:
            raise Rejected("G-SUMS", f"the sum of a grant passes its cap after {charge[:40]!r}")
    if found["head"] != previous:
        raise Rejected("G-CHAIN", "the head is not the digest of the last row")
    sentence = f"{found['name']}: {len(rows)} rows never pass the caps, and the caps keep the policy"
    return sentence, ("keeps the policy", "these rows", "ledger")


def _keeps_policy(value: object, currency: str, total: Fraction) -> None:
    policy: Mapping[str, object] = read_object(value, "G-CAPS", ("epsilon", "delta"), ("order",))
    epsilon = read_fraction(policy["epsilon"], "G-CAPS", least=0)
    delta = read_fraction(policy["delta"], "G-CAPS", least=0, most=1)
    if currency == "epsilon":
        kept = total <= epsilon
    elif currency == "mu2":
        kept = gaussian_delta((total, total), (epsilon, epsilon))[1] <= delta
    else:
        order = read_fraction(policy.get("order"), "G-CAPS", above=1)
        kept = delta > 0 and order_epsilon((total, total), (delta, delta), order)[1] <= epsilon
    if not kept:
        raise Rejected("G-CAPS", "the caps together are above the policy")
