"""The shuffled binary sum (Cheu et al. 2019) as a mechanism: the output is the messages that leave the shuffler.

Every user draws m = ⌈τ/n⌉ noise bits, each 1 with probability p = min(½, τ/2n), so that together their mean is at least
that of τ fair bits: with fewer than τ users the bits are fair, with τ or more each user draws one rarer bit. If each
bit is a separate message, n(m + 1) bits leave the shuffler, and only the number of ones carries information. If each
user sends one integer z = bit + Σy, the multiset of integers leaves the shuffler.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms.base import Array, Charge, Noise, positive_scale
from privcheck.declare.statistics.base import Sensitivity, SparseDifference
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.parameters import Condition, number, one_of
from privcheck.terms.symbols import INFINITE, Exact, Expr, ceil, expression, minimum, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledNoise(Noise):
    """Users' noise bits of one counter: number of ones minus its mean; `scale` is its standard deviation.

    Attributes:
        senders: n, number of users behind the shuffler.
        threshold: τ, target number of noise bits of all users together.
    """

    additive: ClassVar[bool] = False
    shuffled: ClassVar[bool] = True
    symbol: ClassVar[str] = r"\tau"

    senders: int
    threshold: float

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw the errors of the analyser's estimates."""
        return draw_ones(rng, self.senders, self.threshold, shape)

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Compute the log-likelihood ratio of the numbers of ones."""
        return ones_log_ratio(noise, change, self.senders, self.threshold)

    def cdf(self, x: Array) -> Array:
        """Distribution function of `draw`."""
        return ones_cdf(x, self.senders, self.threshold)

    def separation(self, change: Array) -> tuple[float, float]:
        """Return (Σ(Δ/std)², 0): sums of this many bits are nearly on the Gaussian curve."""
        return float(np.square(change / self.scale).sum()), 0.0

    @property
    def bits(self) -> tuple[int, float]:
        """(m, p): number of noise bits that each user draws, and the probability of a 1."""
        return noise_bits(self.senders, self.threshold)

    @property
    def sums(self) -> ShuffledBitsNoise:
        """Noise of the sums of the messages, which anyone can compute."""
        return ShuffledBitsNoise(scale=self.scale, senders=self.senders, threshold=self.threshold)

    @property
    def std(self) -> float:
        """Standard deviation of the number of ones."""
        return self.scale

    def charge(self, *, l1: float, l2: float, linf: float, users: str) -> Charge:
        """Charge including the users behind the shuffler and τ."""
        return Charge(
            law=self.name, scale=self.scale, l1=l1, l2=l2, linf=linf, users=users, senders=self.senders,
            threshold=self.threshold,
        )  # fmt: skip

    @classmethod
    def of(cls, cost: Charge) -> Self:
        """Noise of a charge."""
        return cls(scale=cost.scale, senders=cost.senders, threshold=cost.threshold)

    @classmethod
    def worst_batches(cls, batches: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """Batches (n, τ) that must be examined: every other batch is certainly no worse than one of them."""
        return list(batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledBitsNoise(ShuffledNoise):
    """Every bit is a separate message: only the number of ones leaves the shuffler."""

    name: ClassVar[str] = "shuffled bits"
    rule: ClassVar[str] = "shuffled bits"
    theorem: ClassVar[str] = (
        "Cheu et al. 2019: n⌈τ/n⌉ noise bits, Bin(N, p) against Bin(N, p) + 1 for every counter that moves"
    )

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Δ₁ counters behind a shuffler, each changed by one, up or down, in any mixture."""
        from privcheck.accounting.events.shuffled import moved_counters

        moved = math.ceil(cost.l1)
        if not moved:
            return ()
        return (moved_counters(users=self.senders, bits=self.bits, threshold=self.threshold, moved=moved),)

    @classmethod
    def worst_batches(cls, batches: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """Of batches with fair bits the one with the fewest bits; of those with rarer bits any one: all are equal."""
        fair, rare = _by_bits(batches)
        least = sorted(fair, key=lambda batch: batch[0] * noise_bits(*batch)[0])[:1]
        return [*least, *rare[:1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledIntegersNoise(ShuffledNoise):
    """Each user sends the sum of their bits, and the multiset of these sums leaves the shuffler."""

    name: ClassVar[str] = "shuffled integers"
    integers: ClassVar[bool] = True
    rule: ClassVar[str] = "shuffled integers"
    theorem: ClassVar[str] = (
        "the multiset of messages z = bit + Σy leaves, not its sum: a message m + 1 can only hold a bit 1"
    )

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Δ₁ counters for which every single message leaves the shuffler."""
        from privcheck.accounting.events.shuffled import changed_messages

        moved = math.ceil(cost.l1)
        m, p = self.bits
        messages = m if p == 0.5 else 0
        return (changed_messages(users=self.senders, messages=messages, moved=moved),) if moved else ()

    @classmethod
    def worst_batches(cls, batches: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """One of the batches with rarer bits; if there are none, the fair-bit batches that `fewest_hidden` selects."""
        from privcheck.accounting.shuffle.sums import fewest_hidden

        fair, rare = _by_bits(batches)
        if rare:
            return rare[:1]
        return [(n, float(n * m)) for n, m in fewest_hidden((n, noise_bits(n, tau)[0]) for n, tau in fair)]


def shuffled_noise(noise: Noise) -> ShuffledNoise:
    """Narrow noise to noise bits of users behind a shuffler.

    Raises:
        ParameterError: The noise is of another law.
    """
    if not isinstance(noise, ShuffledNoise):
        message = f"expected noise bits of users behind a shuffler, got noise of the law {noise.name!r}"
        raise ParameterError(f"{message}: declare ShuffledBits", name="mechanism", given=noise.name)
    return noise


def _by_bits(batches: Sequence[tuple[int, float]]) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Split batches into those with fair bits and those with rarer bits."""
    fair = [batch for batch in batches if noise_bits(*batch)[1] == 0.5]
    return fair, [batch for batch in batches if noise_bits(*batch)[1] < 0.5]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledBits:
    """Each user adds ⌈τ/n⌉ noise bits, 1 with probability min(½, τ/2n), to their own bit (Cheu et al. 2019).

    Each counter has its own shuffler: the orders are independent of each other. With one order for all counters a
    position would identify one user, and the user's bits of all counters could be read together; no noise of this kind
    bounds that.

    Attributes:
        users: n, number of users with noise behind the shuffler; may be the symbol `n` under `Batches(sizes=…)`.
        threshold: τ.
        messages: "bits": each bit is a separate message, so that only the number of ones leaves the shuffler;
            "integers": each user sends the sum of their bits, so that the multiset of these sums leaves it.
        dealt: The users of a batch draw ⌈τ⌉ fair bits per counter in total, dealt out publicly: the number that each
            user draws is known and independent of all data. Then m is not rounded up to a whole number per user, and no
            bit is rarer than fair. Only with messages="bits", as such messages do not show their sender.
    """

    users: Expr
    threshold: Expr
    messages: Literal["bits", "integers"]
    dealt: bool

    def __init__(
        self,
        *,
        users: Exact | Expr,
        threshold: Exact | Expr,
        messages: Literal["bits", "integers"] = "bits",
        dealt: bool = False,
    ) -> None:
        object.__setattr__(self, "users", number("users, of ShuffledBits", users))
        object.__setattr__(self, "threshold", number("threshold, of ShuffledBits", threshold))
        one_of("messages, of ShuffledBits", messages, ("bits", "integers"))
        object.__setattr__(self, "messages", messages)
        if dealt not in (True, False) or (dealt and messages != "bits"):
            message = f"dealt, of ShuffledBits: expected True or False, True of messages='bits' alone, got {dealt!r}"
            raise DeclarationError(f"{message} with messages={messages!r}")
        object.__setattr__(self, "dealt", dealt)

    @property
    def law(self) -> type[ShuffledNoise]:
        """Law of bits or of integers."""
        return ShuffledBitsNoise if self.messages == "bits" else ShuffledIntegersNoise

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its parameters, with the condition on each."""
        return (
            Condition(what="the users behind the shuffler", of=self.users, domain="count"),
            Condition(what="the threshold of the noise bits", of=self.threshold, domain="positive"),
        )

    @property
    def noise_bits(self) -> Expr:
        """Number of noise bits of one user, m = ⌈τ/n⌉; if dealt out, that of all users, ⌈τ⌉."""
        return ceil(self.threshold) if self.dealt else ceil(self.threshold / self.users)

    @property
    def probability(self) -> Expr:
        """Probability of a 1, p = min(½, τ/2n); ½ if the bits are dealt out."""
        return expression(Fraction(1, 2)) if self.dealt else minimum(Fraction(1, 2), self.threshold / (2 * self.users))

    @property
    def words(self) -> str:
        """The mechanism in words with its parameters."""
        if self.dealt:
            return f"shuffled: ⌈τ⌉ fair bits a counter, τ = {self.threshold}, dealt out publicly, each bit a message"
        sent = "each bit a separate message" if self.messages == "bits" else "sent as one integer with the user's bit"
        return f"shuffled: ⌈τ/n⌉ noise bits a user, 1 with probability min(1/2, τ/2n), τ = {self.threshold}, {sent}"

    @property
    def latex(self) -> str:
        """Law of the number of noise bits that are 1, as a formula."""
        size = (self.noise_bits if self.dealt else self.users * self.noise_bits).latex()
        return rf"\mathrm{{Bin}}\left({size},\ {self.probability.latex()}\right)"

    @property
    def spread(self) -> Expr:
        """nmp(1 − p), the variance of the number of ones."""
        if self.dealt:
            return self.noise_bits / 4
        return self.users * self.noise_bits * self.probability * (1 - self.probability)

    @property
    def std(self) -> Expr:
        """Standard deviation of the number of ones."""
        return sqrt(self.spread)

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Return the sensitivity unchanged: every counter has independent noise.

        Raises:
            DeclarationError: The statistic is not a sum of bits.
        """
        if not (sensitivity.stepwise and sensitivity.linf == expression(1)):
            message = "shuffled bits protect sums of bits, which one user moves by 0 or 1; this statistic moves by "
            raise DeclarationError(f"{message}up to {sensitivity.linf}, or by parts of it: count bits (RewardBits)")
        return sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Return the change of a pair unchanged."""
        return difference

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Return ∞: the largest number of ones reveals a user, with small probability."""
        return INFINITE

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Return None: no finite ε holds at δ = 0."""
        return None

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Return None: not Gaussian."""
        return None

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Noise that is drawn: τ rounded up, p to the nearest float.

        Raises:
            ParameterError: n is not a whole number of at least 1, τ is not positive and finite, or there are more than
                2⁵² users or noise bits.
        """
        used = self.threshold.symbols if self.dealt else self.users.symbols | self.threshold.symbols
        return _draw(self, tuple(sorted((name, value) for name, value in values.items() if name in used)))


@functools.lru_cache(maxsize=1024)
def _draw(mechanism: ShuffledBits, given: tuple[tuple[str, Fraction], ...]) -> Noise:
    values = dict(given)
    if mechanism.dealt:  # as if one user drew them all: who draws which is public, and they are independent of all data
        number = math.ceil(positive_scale(mechanism.threshold, values))
        if number > 2**52:
            raise ParameterError(f"expected at most 2^52 noise bits, got {number}", given=number)
        return mechanism.law(scale=math.sqrt(number) / 2, senders=1, threshold=float(number))
    users = mechanism.users.rational(values)
    if users is None or users.denominator != 1 or users < 1:
        raise ParameterError(f"expected a whole number of users, got {mechanism.users} = {users}", given=users)
    threshold = positive_scale(mechanism.threshold, values)
    if max(float(users), threshold) > 2.0**52:
        message = f"expected at most 2^52 users and noise bits, got {users} and τ = {threshold:g}"
        raise ParameterError(message, given=threshold)
    m, p = noise_bits(int(users), threshold)
    std = math.sqrt(int(users) * m * p * (1 - p))
    return mechanism.law(scale=std, senders=int(users), threshold=threshold)


def noise_bits(senders: int, threshold: float) -> tuple[int, float]:
    """Return (m, p): number of noise bits that each user draws, and the probability of a 1.

    Args:
        senders: n, number of users behind the shuffler.
        threshold: τ.

    >>> noise_bits(5, 12.0), noise_bits(24, 12.0)
    ((3, 0.5), (1, 0.25))
    """
    return max(1, math.ceil(threshold / senders)), min(0.5, threshold / (2 * senders))


def draw_ones(
    rng: np.random.Generator, senders: int, threshold: float, shape: int | tuple[int, ...]
) -> NDArray[np.float64]:
    """Draw the number of noise bits that are 1, minus their mean nmp: the error of the analyser's estimate."""
    m, p = noise_bits(senders, threshold)
    ones = rng.binomial(senders * m, p, shape).astype(np.float64)
    ones -= senders * m * p
    return ones


def draw_messages(
    rng: np.random.Generator, bits: NDArray[np.int64], senders: int, threshold: float
) -> NDArray[np.int64]:
    """Draw the multiset of integer messages that leaves the shuffler: number of users sending 0, 1, …, m + 1.

    Args:
        rng: Source of the noise.
        bits: (…) number of users who hold a 1, for every counter.
        senders: n.
        threshold: τ.

    Returns:
        (…, m + 2) counts, which sum to n over the last axis.

    Raises:
        ParameterError: A count is not in 0..n.
    """
    ones = np.asarray(bits)
    if not np.issubdtype(ones.dtype, np.integer) or ones.min(initial=0) < 0 or ones.max(initial=0) > senders:
        raise ParameterError(f"expected whole numbers of users from 0 to {senders}, got {bits!r}", given=bits)
    m, p = noise_bits(senders, threshold)
    law = _binomial(m, p)
    counts = np.zeros((*ones.shape, m + 2), dtype=np.int64)
    counts[..., :-1] = rng.multinomial(senders - ones, law)
    counts[..., 1:] += rng.multinomial(ones, law)
    return counts


def ones_log_ratio(
    noise: NDArray[np.float64], change: NDArray[np.float64], senders: int, threshold: float
) -> NDArray[np.float64]:
    """Compute ln p(ones | D) − ln p(ones | D′), summed over the last axis; ±∞ if one law cannot produce them.

    Args:
        noise: (…, k) `draw_ones` under D.
        change: (k,) number of ones that the users hold in D minus that in D′, whole numbers.
        senders: n.
        threshold: τ.
    """
    from scipy.special import gammaln

    m, p = noise_bits(senders, threshold)
    trials = senders * m

    def log_mass(ones: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.clip(ones, 0, trials)
        logs = ones * (math.log(p) - math.log1p(-p)) - gammaln(inside + 1) - gammaln(trials - inside + 1)
        log_masses: NDArray[np.float64] = np.where(inside == ones, logs, -np.inf)
        return log_masses

    ones = np.rint(noise + trials * p)
    summed: NDArray[np.float64] = (log_mass(ones) - log_mass(ones + change)).sum(axis=-1)
    return summed


def ones_cdf(x: NDArray[np.float64], senders: int, threshold: float) -> NDArray[np.float64]:
    """Distribution function of `draw_ones`."""
    from scipy.special import bdtr

    m, p = noise_bits(senders, threshold)
    at = np.floor(np.asarray(x, dtype=np.float64) + senders * m * p + 1e-9)
    inside = np.clip(at, 0, senders * m)
    shares: NDArray[np.float64] = np.where(at < 0, 0.0, bdtr(inside, senders * m, p))
    return shares


def _binomial(trials: int, probability: float) -> NDArray[np.float64]:
    k = range(trials + 1)
    logs = [math.lgamma(trials + 1) - math.lgamma(y + 1) - math.lgamma(trials - y + 1) for y in k]
    odds = math.log(probability) - math.log1p(-probability)
    masses: NDArray[np.float64] = np.exp(np.array(logs) + np.array(k) * odds + trials * math.log1p(-probability))
    masses /= masses.sum()
    return masses
