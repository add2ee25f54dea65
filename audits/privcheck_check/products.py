"""Terms as quotients of sums of products of powers, and the proof that one is at least another for all parameters.

A product is a sorted tuple of (factor, exponent), a sum maps products to coefficients. Factors are symbols and opaque
values (`log(…)`, `max(…)`, …), all proved not to be negative when they are made. Rules: docs/certificates.md, A-*, B-*.
"""

from fractions import Fraction
from math import ceil, comb, isqrt
from typing import TypeAlias

from privcheck_check.declared import Declared
from privcheck_check.terms import (
    HALF,
    ONE,
    POWER,
    ZERO,
    Ends,
    Term,
    bounded,
    evaluate,
    logarithm,
    multiply,
    read_term,
    spend,
    square_root,
)
from privcheck_check.values import Rejected, read_choice, read_list, read_object

Product: TypeAlias = tuple[tuple[str, Fraction], ...]
Sum: TypeAlias = dict[Product, Fraction]
Quotient: TypeAlias = tuple[Sum, Sum]
UNIT: Sum = {(): ONE}
RULE = "for all parameters"


def _add(left: Sum, right: Sum, factor: Fraction = ONE) -> Sum:
    spend(len(right))
    found = dict(left)
    for product, coefficient in right.items():
        total = found.get(product, ZERO) + factor * coefficient
        if total:
            found[product] = total
        else:
            found.pop(product, None)
    return found


def _product(left: Product, right: Product) -> tuple[Fraction, Product]:
    powers = dict(left)
    for name, exponent in right:
        powers[name] = powers.get(name, ZERO) + exponent
    if any(abs(exponent) > POWER for exponent in powers.values()):
        raise Rejected(RULE, f"an exponent above {POWER}")
    coefficient = ONE
    for name in [name for name, exponent in powers.items() if name[0] == "#" and exponent.denominator == 1]:
        coefficient *= Fraction(name[1:]) ** int(powers.pop(name))  # √2·√2 = 2
    return coefficient, tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))


def _times(left: Sum, right: Sum) -> Sum:
    spend(2 * len(left) * len(right))
    found: Sum = {}
    for a, x in left.items():
        for b, y in right.items():
            coefficient, product = _product(a, b)
            found[product] = bounded(found.get(product, ZERO) + coefficient * x * y)
    return {product: coefficient for product, coefficient in found.items() if coefficient}


def _to(base: Sum, exponent: int) -> Sum:
    value = UNIT
    for _ in range(exponent):
        value = _times(value, base)
    return value


def _text(quotient: Quotient) -> str:
    if max(map(len, quotient)) > 200:
        raise Rejected(RULE, "more than 200 products in an argument")
    return " / ".join(
        " + ".join(f"{c}" + "".join(f"·({n})^{e}" for n, e in p) for p, c in sorted(part.items())) for part in quotient
    )


def _exponents(value: Sum, name: str) -> set[Fraction]:
    return {dict(product).get(name, ZERO) for product in value}


class Prover:
    """The order of terms for all parameters that are at least their least values.

    Complete it is not: `at_least` is True only where it is proved, by coefficients none of which is negative.
    """

    def __init__(self, declared: Declared) -> None:
        self.parameters = declared.parameters
        self.integers = {name for name, each in declared.parameters.items() if each.integer}
        self.constants: dict[str, Ends] = {}  # enclosures of the opaque values without symbols
        self.floors: dict[str, Fraction] = {name: each.least for name, each in declared.parameters.items()}
        self.floors["h"] = ONE
        self.above = {name for name, each in declared.parameters.items() if not each.integer and not each.least}
        self.bounds: list[tuple[str, Sum]] = []

    def normal(self, term: Term) -> Quotient:
        """The term as a quotient of two sums, the lower one positive (A-NORMAL)."""
        spend(1)
        if isinstance(term, Fraction):
            return ({(): term} if term else {}), UNIT
        if isinstance(term, str):
            return {((term, ONE),): ONE}, UNIT
        operation, arguments = term[0], term[1:]
        if operation == "^" and isinstance(arguments[1], Fraction):
            base, exponent = self.normal(arguments[0]), arguments[1]
            if exponent.denominator == 2:
                base, exponent = self._root(base), 2 * exponent
            if exponent < 0:
                base = self._inverse(base)
            return _to(base[0], abs(int(exponent))), _to(base[1], abs(int(exponent)))
        if operation == "sum":
            return self._over_steps(self.normal(arguments[0]), self.normal(arguments[1]))
        parts = [self.normal(each) for each in arguments]
        value = parts[0]
        match operation:
            case "+" | "-":
                for each in parts[1:]:
                    value = self._plus(value, each, -ONE if operation == "-" else ONE)
                return value
            case "*" | "/":
                for each in parts[1:]:
                    other = self._inverse(each) if operation == "/" else each
                    value = _times(value[0], other[0]), _times(value[1], other[1])
                return value
            case "sqrt":
                return self._root(value)
            case _:
                return self._opaque(str(operation), tuple(sorted(parts, key=_text)))

    @staticmethod
    def _plus(left: Quotient, right: Quotient, factor: Fraction) -> Quotient:
        if left[1] == right[1]:
            return _add(left[0], right[0], factor), left[1]
        return _add(_times(left[0], right[1]), _times(right[0], left[1]), factor), _times(left[1], right[1])

    def _inverse(self, value: Quotient) -> Quotient:
        if not self.positive(value[0]):
            raise Rejected(RULE, "a divisor is not known to be positive")
        if len(value[0]) > 1:
            return value[1], value[0]
        ((product, coefficient),) = value[0].items()
        inverse = {tuple((name, -exponent) for name, exponent in product): 1 / coefficient}
        return _times(value[1], inverse), UNIT

    def _root(self, value: Quotient) -> Quotient:
        top, bottom = value
        if len(top) <= 1 and len(bottom) == 1:
            if not top:
                return value
            ((over, x),), ((under, y),) = top.items(), bottom.items()
            if x > 0:
                square, rest = x / y, 1
                number = square.numerator * square.denominator
                for prime in range(2, 100):
                    while number % prime**2 == 0:
                        number, rest = number // prime**2, rest * prime
                root = isqrt(number)
                number, rest = (1, rest * root) if root * root == number else (number, rest)
                powers = {name: exponent * HALF for name, exponent in over}
                for name, exponent in under:
                    powers[name] = powers.get(name, ZERO) - exponent * HALF
                if any(exponent.denominator > 2 for exponent in powers.values()):
                    raise Rejected(RULE, "a root of a root")
                if number > 1:
                    self.constants[f"#{number}"] = (Fraction(number),) * 2
                    powers[f"#{number}"] = powers.get(f"#{number}", ZERO) + HALF
                coefficient, product = _product(tuple(powers.items()), ())
                return {product: coefficient * Fraction(rest, square.denominator)}, UNIT
        if not self.not_negative(top):
            raise Rejected(RULE, "a root of a number that may be negative")
        return self._opaque("sqrt", (value,))

    def _opaque(self, operation: str, parts: tuple[Quotient, ...]) -> Quotient:
        """A factor of its own, with a proved lower bound (A-OPAQUE)."""
        name = f"{operation}({', '.join(map(_text, parts))})"
        spend(len(name) // 50)
        if len(name) > 4_000 or any(_exponents(each, "h") != {ZERO} for part in parts for each in part if each):
            raise Rejected(RULE, f"{operation}: too long an argument, or one that changes with the step")
        if name not in self.floors:
            if all(bottom == UNIT and set(top) <= {()} for top, bottom in parts):
                values: Term = (operation, *(top.get((), ZERO) for top, _ in parts))
                low, high = evaluate(values, {})
                if low == high:
                    return ({(): low} if low else {}), UNIT
                self.constants[name] = low, high
                floor = low
            else:
                floor = self._floor(operation, parts)
            if floor < 0:
                raise Rejected(RULE, f"{operation}: not known to be at least 0")
            self.floors[name] = floor
            if operation == "bit_length":
                self.integers.add(name)
            if operation == "exp" and not floor:
                self.above.add(name)
        return {((name, ONE),): ONE}, UNIT

    def _floor(self, operation: str, parts: tuple[Quotient, ...]) -> Fraction:
        lows = [self.lower(top) if bottom == UNIT else None for top, bottom in parts]
        known = [each for each in lows if each is not None]
        if operation == "max" and known:
            return max(known)
        if operation == "exp":  # e^x ≥ 1 + x
            return max(ZERO, 1 + known[0]) if known else ZERO
        if operation == "sqrt":
            return square_root((max(ZERO, known[0]),) * 2)[0] if known else ZERO
        if len(known) == len(lows):
            if operation == "min":
                return min(known)
            if operation == "log" and known[0] >= 1:
                return max(ZERO, logarithm((known[0], known[0]))[0])
            if operation == "bit_length" and known[0] >= 0 and self.whole(parts[0][0]):
                return Fraction(ceil(known[0]).bit_length())
        raise Rejected(RULE, f"{operation}: no lower bound of its argument")

    def whole(self, value: Sum) -> bool:
        """Whether the value is known to be an integer: integers' sums and products."""
        return all(
            coefficient.denominator == 1
            and all(e.denominator == 1 and e > 0 and name in self.integers for name, e in product)
            for product, coefficient in value.items()
        )

    def _over_steps(self, count: Quotient, body: Quotient) -> Quotient:
        """Σ over h = 1 … n, powers of h by Faulhaber's polynomials (A-STEPS)."""
        n, bottom = count
        if bottom != UNIT or not self.whole(n) or not self.not_negative(n) or _exponents(body[1], "h") != {ZERO}:
            raise Rejected(RULE, "a sum over steps has a whole number of them, and no quotient in h")
        powers: list[Sum] = []
        total: Sum = {}
        for k in range(int(max(_exponents(body[0], "h"), default=ZERO)) + 1):
            value = _add(_to(_add(n, UNIT), k + 1), UNIT, -ONE)
            for j in range(k):
                value = _add(value, powers[j], Fraction(-comb(k + 1, j)))
            powers.append({product: coefficient / (k + 1) for product, coefficient in value.items()})
        for product, coefficient in body[0].items():
            exponent = dict(product).get("h", ZERO)
            if exponent.denominator != 1 or exponent < 0:
                raise Rejected(RULE, "a summand is no polynomial in h")
            rest = {tuple(each for each in product if each[0] != "h"): coefficient}
            total = _add(total, _times(rest, powers[int(exponent)]))
        return total, body[1]

    def _falls(self, name: str) -> bool:
        """Whether the factor is a real number in (0, most], written as most/(1 + t)."""
        return name in self.parameters and self.parameters[name].most is not None and name in self.above

    def _substitute(self, value: Sum, name: str, lower: Sum | None, extra: str, *, scale: bool) -> Sum | None:
        """`value` with the factor written as its lower bound plus `extra`, times a positive power of it if `scale`."""
        found = _exponents(value, name)
        if found <= {ZERO}:
            return value
        floor = self.floors[name]
        falls = lower is None and self._falls(name) and (scale or min(found) < 0)
        more: Sum = {((extra, ONE),): ONE}
        if falls:
            base = {product: each / (self.parameters[name].most or ONE) for product, each in _add(UNIT, more).items()}
        else:
            base = _add(lower if lower is not None else {(): floor} if floor else {}, more)
        shift = ZERO
        if scale and (floor > 0 or name in self.above):  # so are all factors with negative powers
            shift = max(found) if falls else min(found)
        halves = 1
        if any((each - shift).denominator == 2 for each in found):
            if lower is not None or falls:
                return None
            halves = 2  # r = √x, r = c + something with c² ≤ floor
            root = square_root((floor, floor))[0]
            base = _add({(): root} if root else {}, more)
        total: Sum = {}
        for product, coefficient in value.items():
            exponent = (dict(product).get(name, ZERO) - shift) * halves * (-1 if falls else 1)
            if exponent < 0:
                return None
            rest = {tuple(each for each in product if each[0] != name): coefficient}
            total = _add(total, _times(rest, _to(base, int(exponent))))
        return total

    def _shifted(self, value: Sum, *, scale: bool, explicit: bool) -> Sum | None:
        """`value` in variables that are not negative, after all lower bounds are put in (A-SHIFT)."""
        current: Sum | None = value
        for i, (name, lower) in enumerate(self.bounds if explicit else []):
            if current is not None:
                current = self._substitute(current, name, lower, f"+{i}+{name}", scale=scale)
        names = {name for product in current or {} for name, _ in product if name[0] != "+"}
        for name in sorted(names - self.constants.keys()):
            if current is not None:
                current = self._substitute(current, name, None, f"+{name}", scale=scale)
        if current is None:
            return None
        rounded: Sum = {}
        for product, coefficient in current.items():  # constants: the end that makes the product smaller
            factor: Ends = (ONE, ONE)
            for name, exponent in product:
                if name in self.constants:
                    ends = [evaluate(("^", "x", exponent), {"x": end}) for end in self.constants[name]]
                    factor = multiply(factor, (min(low for low, _ in ends), max(high for _, high in ends)))
            rest = tuple(each for each in product if each[0] not in self.constants)
            rounded = _add(rounded, {rest: coefficient * factor[0 if coefficient > 0 else 1]})
        return rounded

    def lower(self, value: Sum) -> Fraction | None:
        """A lower bound of the sum, None if none is found."""
        shifted = self._shifted(value, scale=False, explicit=False)
        if shifted is None or any(each < 0 for product, each in shifted.items() if product):
            return None
        return shifted.get((), ZERO)

    def not_negative(self, value: Sum) -> bool:
        """Whether the sum is proved to be at least 0 (A-COEFFICIENTS)."""
        for explicit in (False, True):
            shifted = self._shifted(value, scale=True, explicit=explicit)
            if shifted is not None and all(each >= 0 for each in shifted.values()):
                return True
        return False

    def positive(self, value: Sum) -> bool:
        """Whether the sum is proved to be above 0: no coefficient negative, one product of positive factors."""
        shifted = self._shifted(value, scale=True, explicit=False)
        if shifted is None or any(each < 0 for each in shifted.values()):
            return False
        strict = {f"+{name}" for name in self.above if not self._falls(name)}
        return any(strict.issuperset(name for name, _ in product) for product in shifted)

    def at_least(self, left: Term, right: Term) -> bool:
        """Whether left ≥ right is proved for all parameters."""
        top, bottom = self.normal(("-", left, right))
        return self.positive(bottom) and self.not_negative(top)

    def state(self, value: object) -> None:
        """Read the certificate's `bounds`, prove each and use it in later proofs."""
        for each in read_list(value, "bounds", most=40):
            found = read_object(each, "bounds", ("rule", "term", "at_least"))
            term, lower = (read_term(found[side], "bounds", self.parameters) for side in ("term", "at_least"))
            left, right = self.normal(term), self.normal(lower)
            rule = read_choice(found["rule"], "bounds", ("B-BITS", "B-LOG", "B-MAX", "B-MIN", "B-POWER"))
            factor = [product for product, coefficient in left[0].items() if coefficient == 1]
            if (
                len(left[0]) != 1
                or not factor
                or left[1] != UNIT
                or right[1] != UNIT
                or [e for _, e in factor[0]] != [ONE]
            ):
                raise Rejected(rule, "a bound is about one factor, by a sum")
            if not self._follows(rule, term, lower, left, right):
                raise Rejected(rule, "the inequality does not follow")
            self.bounds.append((factor[0][0][0], right[0]))

    def _follows(self, rule: str, term: Term, lower: Term, left: Quotient, right: Quotient) -> bool:
        match rule, term, lower:  # where there is a logarithm, `normal` has proved that it is of 1 or more
            case "B-MAX", ("max", *arguments), _:
                return any(self.normal(each) == right for each in arguments)
            case "B-MIN", _, ("min", *arguments):
                return any(self.normal(each) == left for each in arguments)
            case "B-BITS", ("bit_length", count), _:
                return self.normal(("/", ("log", count), ("log", Fraction(2)))) == right
            case "B-POWER", ("log", count), _:
                size: Term = ("*", ("-", ("bit_length", count), ONE), ("log", Fraction(2)))
                return self.normal(size) == right
            case "B-LOG", ("log", x), ("log", y):
                return self.at_least(x, y)
        return False
