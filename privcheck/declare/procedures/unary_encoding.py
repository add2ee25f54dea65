"""Bitwise randomised response, of a unary code or a Bloom filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, set_words
from privcheck.declare.procedures.randomised_response import check_local, pure_rho, turned_bits, with_fields
from privcheck.declare.relations import Relation
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import Exact, Expr, exp, expression, log, same

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_BITS: Final = "Wang, Blocki, Li & Jha 2017: ln(p(1 − q)/(q(1 − p))) for a bit that only D has and one that only D′ has"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoding:
    """Each bit of a user's code is answered independently: 1 with a probability that depends on the bit.

    A category in unary code has one 1, a value in a Bloom filter up to h. `symmetric_unary`, `optimised_unary` and
    `permanent_response` construct the published variants.

    Attributes:
        name: Name, unique in the declaration.
        bits: Number of bits.
        ones: Largest number of bits that are 1; at most half of them.
        kept: ln of the odds of answering 1 if the bit is 1.
        flipped: ln of the odds of answering 1 if the bit is 0.
        ratio: kept − flipped: ε of a bit that only D has together with one that only D′ has; 1/ratio is taken as the
            spread of its noise.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    bits: Expr
    ones: Expr
    kept: Expr
    flipped: Expr
    ratio: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, bits: Exact | Expr, keep: Exact | Expr, flip: Exact | Expr, ones: Exact | Expr = 1,
        users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        p, q = number("keep, of UnaryEncoding", keep), number("flip, of UnaryEncoding", flip)
        set_words(self, name=name, users=users, source=source)
        sizes = {"bits": number("bits, of UnaryEncoding", bits), "ones": number("ones, of UnaryEncoding", ones)}
        odds = {"kept": log(p / (1 - p)), "flipped": log(q / (1 - q)), "ratio": log(p * (1 - q) / (q * (1 - p)))}
        for key, value in {**sizes, **odds}.items():
            object.__setattr__(self, key, value)

    @property
    def keep(self) -> Expr:
        """Probability of answering 1 if the bit is 1."""
        return 1 / (1 + exp(-self.kept))

    @property
    def flip(self) -> Expr:
        """Probability of answering 1 if the bit is 0."""
        return 1 / (1 + exp(-self.flipped))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output="noisy bits",
            latex=self._latex(),
            law="randomised response",
            spread=self.spread,
            conditions=(
                Condition(what="the number of bits that are 1", of=self.ones, domain="count"),
                Condition(what="its bits less twice the ones", of=self.bits - 2 * self.ones, domain="nonnegative"),
                Condition(what="ln of the ratio of the odds of answering 1", of=self.ratio, domain="positive"),
            ),
            symbols=self.bits.symbols | self.ones.symbols | self.kept.symbols | self.flipped.symbols,
            schedule="once for every user",
            models=("local",),
            preconditions=(f"of a user's {self.bits} bits at most {self.ones} are 1",),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        each = f"each answered by itself, ln of the ratio of odds {self.ratio}"
        return f"{self.bits} bits, at most {self.ones} of them 1, {each}"

    def _latex(self) -> str:
        """Output as a formula."""
        odds = rf"{self.kept.latex()},\ {self.flipped.latex()}"
        return rf"\mathrm{{Bits}}_{{{self.bits.latex()}}}\left({odds}\right)"

    @property
    def spread(self) -> Expr:
        """1/(kept − flipped)."""
        return 1 / self.ratio

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Its spread, rounded up."""
        return self.spread.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> UnaryEncoding:
        """Copy with `factor` times the spread: all log-odds are divided by the factor."""
        odds = {"kept": self.kept / factor, "flipped": self.flipped / factor, "ratio": self.ratio / factor}
        return with_fields(self, **odds)

    def cost(self, relation: Relation) -> Cost:
        """Cost m·ln(p(1 − q)/(q(1 − p))) for m ones, attained by two codes without a common 1.

        Lemma unary-code: A code of m ones is m·ε₀-DP, ε₀ = ln(p(1 − q)/(q(1 − p))), attained, and m·ε₀·tanh(ε₀/2)-zCDP.
        Proof: the answers are independent: m pairs of bits, each of them ε₀-DP and therefore ε₀·tanh(ε₀/2)-zCDP.

        Bits that flip with the same probability in both directions are 2m binary randomised responses of ε₀/2.

        Raises:
            DeclarationError: Users are added or removed, or have several records.
        """
        check_local(self.name, relation)
        symmetric = same(self.kept, -self.flipped) is True
        reason = f"{self.ones} bits that are 1 in D only, and as many that are 1 in D′ only"
        return Cost(
            sensitivity=turned_bits(self.ones, reason), charged=self.ones,
            rho=self.ones * (2 * pure_rho(self.kept) if symmetric else pure_rho(self.ratio)),
            pure=self.ones * self.ratio, mu_squared=None, theorem=_BITS,
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Law of the two bits of a pair, m times; codes that differ in fewer bits lose no more."""
        from privcheck.accounting.events import loss_distribution

        p, q = _laws(self.kept.number(values, rounding="up"), self.flipped.number(values, rounding="down"))
        return (loss_distribution(np.exp(p), np.exp(q), count=int(self.ones.number(values))),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Two codes with no common 1, with the law of one of their pairs of bits."""
        odds = self.kept.number(values, rounding="down"), self.flipped.number(values, rounding="up")
        m = int(self.ones.number(values))
        p, q = _laws(*odds)
        return (
            KnownPair(
                words=f"{m} bits are 1 in D and 0 in D′, as many 0 in D and 1 in D′, all others equal",
                data=(f"1 at {m} bits, 0 at {m} others", f"0 at the former, 1 at the latter {m}"),
                outcomes=Outcomes(log_p=p, log_q=q),
                rounds=m,
                sampler=BitRuns(pairs=m, odds=odds),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRuns:
    """Answers at the bits where two codes differ, scored by the ratio of their probabilities."""

    pairs: int
    odds: tuple[float, float]

    @property
    def numbers(self) -> int:
        """One per bit."""
        return 2 * self.pairs

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        probabilities = 1 / (1 + np.exp(-np.array(self.odds)))
        ones = np.stack([on_first, ~on_first], axis=1)[:, :, np.newaxis]  # who has 1 at the first bits, at the second
        answers = rng.random((on_first.size, 2, self.pairs)) < np.where(ones, *probabilities)
        log_p, log_q = _laws(*self.odds)
        first = answers[:, 0] * 2 + answers[:, 1]  # as `_laws` numbers the answers to both
        scores: Array = (log_p - log_q)[first].sum(axis=1)
        return scores


def symmetric_unary(
    name: str, *, bits: Exact | Expr, epsilon: Exact | Expr, ones: Exact | Expr = 1, users: str = "", source: str = ""
) -> UnaryEncoding:
    """Bits that flip with probability 1/(e^(ε/2) + 1) in both directions: ε in total for a single 1."""
    half = number("epsilon, of symmetric_unary", epsilon) / 2
    return _by_odds(UnaryEncoding(name, bits=bits, ones=ones, keep="3/4", flip="1/4", users=users, source=source), half)


def optimised_unary(
    name: str, *, bits: Exact | Expr, epsilon: Exact | Expr, ones: Exact | Expr = 1, users: str = "", source: str = ""
) -> UnaryEncoding:
    """Bits where a 1 is answered by a fair coin, and a 0 by 1 with probability 1/(e^ε + 1).

    Wang, Blocki, Li & Jha 2017: the least variance at ε for a single 1.
    """
    whole = number("epsilon, of optimised_unary", epsilon)
    one = UnaryEncoding(name, bits=bits, ones=ones, keep="3/4", flip="1/4", users=users, source=source)
    return with_fields(one, kept=expression(0), flipped=-whole, ratio=whole)


def permanent_response(
    name: str, *, bits: Exact | Expr, ones: Exact | Expr, f: Exact | Expr, users: str = "", source: str = ""
) -> UnaryEncoding:
    """RAPPOR's permanent randomised response: a bit is kept with probability 1 − f, else it is a fair coin.

    Erlingsson, Pihur & Korolova 2014, Theorem 1: 2h·ln((1 − f/2)/(f/2)) for a Bloom filter with h ones.
    """
    part = number("f, of permanent_response", f) / 2
    one = UnaryEncoding(name, bits=bits, ones=ones, keep="3/4", flip="1/4", users=users, source=source)
    return _by_odds(one, log((1 - part) / part))


def _by_odds(one: UnaryEncoding, kept: Expr) -> UnaryEncoding:
    """Copy with bits that flip with the same probability in both directions, from ln of the odds of staying."""
    return with_fields(one, kept=kept, flipped=-kept, ratio=2 * kept)


def _laws(kept: float, flipped: float) -> tuple[Array, Array]:
    """Compute ln P of the answers 00, 01, 10, 11 to a bit that is 1 in D and one that is 1 in D′, on D and on D′."""
    one, zero = (np.array([-np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)]) for odds in (kept, flipped))
    return (one[:, np.newaxis] + zero).ravel(), (zero[:, np.newaxis] + one).ravel()
