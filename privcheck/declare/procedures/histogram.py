"""Histogram over keys not known in advance: noisy counts of the keys that occur, with small counts suppressed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise, Noise
from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, set_words
from privcheck.declare.procedures.mixtures import Mixture, SampledRounds
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import INFINITE, Exact, Expr, expression, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Law = Literal["laplace", "gaussian"]
_THEOREM: Final = (
    "Korolova, Kenthapadi, Mishra & Ntoulas 2009: a shared key costs its noise, a unique key reveals its holder"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityHistogram:
    """Counts of the keys that occur, each with fresh noise; only those above a threshold are released.

    Attributes:
        name: Name, unique in the declaration.
        noise: Law of the noise, "laplace" or "gaussian".
        spread: b of the Laplace noise, or standard deviation of the Gaussian noise.
        threshold: τ, compared with the noisy count.
        contribution: m, largest contribution of one user to one key.
        keys: k, largest number of keys of one user.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: Not exactly one of `scale` (Laplace) and `std` (Gaussian) is given.
    """

    name: str
    noise: Law
    spread: Expr
    threshold: Expr
    contribution: Expr
    keys: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, threshold: Exact | Expr, scale: Exact | Expr | None = None, std: Exact | Expr | None = None,
        contribution: Exact | Expr = 1, keys: Exact | Expr = 1, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        given = [(law, spread) for law, spread in (("laplace", scale), ("gaussian", std)) if spread is not None]
        if len(given) != 1:
            message = "StabilityHistogram: expected scale=b of Laplace noise or std=σ of Gaussian noise"
            raise DeclarationError(f"{message}, got {'both' if given else 'neither'}; give one of them")
        ((law, spread),) = given
        object.__setattr__(self, "noise", law)
        numbers = {"spread": spread, "threshold": threshold, "contribution": contribution, "keys": keys}
        for key, amount in numbers.items():
            object.__setattr__(self, key, number(f"{key}, of StabilityHistogram", amount))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output="keys with noisy counts",
            latex=self._latex(),
            law=self.noise,
            spread=self.spread,
            conditions=self._conditions(),
            symbols=frozenset[str]().union(
                *(one.symbols for one in (self.spread, self.threshold, self.contribution, self.keys))
            ),
            preconditions=(f"one user has at most {self.keys} keys and adds at most {self.contribution} to each",),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        unit = "scale" if self.noise == "laplace" else "standard deviation"
        return (
            f"{self.noise} noise of {unit} {self.spread} on the counts of the keys in the data, shown above "
            f"{self.threshold}"
        )

    def _latex(self) -> str:
        """Output as a formula."""
        law = r"\mathrm{Lap}" if self.noise == "laplace" else r"\mathrm{N}"
        spread = self.spread if self.noise == "laplace" else self.spread**2
        return rf"n_x + {law}\left({spread.latex()}\right)\ \text{{where above}}\ {self.threshold.latex()}"

    def _conditions(self) -> tuple[Condition, ...]:
        """Its numbers, with the condition on each."""
        above = self.threshold - self.contribution
        return (
            Condition(what="the spread of its noise", of=self.spread, domain="positive"),
            Condition(what="one contribution", of=self.contribution, domain="positive"),
            Condition(what="its threshold less one contribution", of=above, domain="positive"),
            Condition(what="the number of keys of a user", of=self.keys, domain="count"),
        )  # fmt: skip

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw, rounded up."""
        return self._law(values, rounding="up").std

    def with_std(self, factor: Fraction) -> StabilityHistogram:
        """Copy with `factor` times the noise, the threshold as many spreads above one contribution as before."""
        kept = {"contribution": self.contribution, "keys": self.keys, "users": self.users, "source": self.source}
        spread = {"scale" if self.noise == "laplace" else "std": self.spread * factor}
        threshold = self.contribution + (self.threshold - self.contribution) * factor
        return StabilityHistogram(self.name, threshold=threshold, **spread, **kept)  # type: ignore[arg-type] # each its own

    def cost(self, relation: Relation) -> Cost:
        """Cost with no finite ε or ρ: with a small probability a key reveals the one user who holds it.

        The accountant composes that probability and the cost of keys that others hold.

        Raises:
            DeclarationError: Users have several records, and the bounds on keys do not cover several.
        """
        k = self._moved(relation)
        return Cost(
            sensitivity=Sensitivity(
                l1=k * self.contribution, l2=sqrt(k) * self.contribution, linf=self.contribution,
                reason=f"{k} keys that one user moves by at most {self.contribution} each",
            ),
            charged=k * self.contribution if self.noise == "laplace" else sqrt(k) * self.contribution,
            rho=INFINITE, pure=None, mu_squared=None, theorem=_THEOREM,
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """The accountant's histogram event; replacing a user changes twice the keys."""
        from privcheck.accounting.events import gaussian_histogram, laplace_histogram

        spread, limit = (x.number(values, rounding="down") for x in (self.spread, self.threshold))
        moved, keys = self.contribution.number(values, rounding="up"), int(self._moved(relation).number(values))
        if self.noise == "laplace":
            return (laplace_histogram(scale=spread, threshold=limit, contribution=moved, keys=keys),)
        return (gaussian_histogram(std=spread, threshold=limit, contribution=moved, keys=keys),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """A user with keys that no other user holds, and one with keys held by so many that all are shown."""
        noise, m = self._law(values, rounding="up"), self.contribution.number(values, rounding="down")
        k, replaced = int(self.keys.number(values)), isinstance(relation, ReplaceOne)
        above = self.threshold.number(values, rounding="up") - m
        shown = float(noise.cdf(np.array([-above]))[0])
        alone = OwnKeys(noise=noise, above=above, shown=shown, keys=k, replaced=replaced)
        one = f"{k} key{'s' if k > 1 else ''} held by no other user"
        other = f"{k} other{'s' if k > 1 else ''}" if replaced else "none"
        shared = Mixture(noise=noise, weights=(0.0, 1.0), shifts=(m, 0.0))
        rounds = int(self._moved(relation).number(values))
        if self.noise == "gaussian":  # all moved keys together are one number
            far = math.sqrt(rounds) * m * (1 - 1e-15)
            shared, rounds = Mixture(noise=noise, weights=(0.0, 1.0), shifts=(far, 0.0)), 1
        crowd = KnownPair(
            words=f"in D the user has {k} of the keys shared by thousands of others; in D′ {other}",
            data=("keys that others have", other), outcomes=shared.outcomes(), rounds=rounds,
            sampler=SampledRounds(mixture=shared, rounds=rounds),
        )  # fmt: skip
        found = [crowd]
        for first in (True, False):
            words = (one, other) if first else (other, one)
            p, q = alone.laws if first else alone.laws[::-1]
            found.append(
                KnownPair(
                    words=f"in D the user has {words[0]}; in D′ {words[1]}", data=words, rounds=k,
                    outcomes=Outcomes(log_p=p, log_q=q), sampler=alone if first else OwnKeysSwapped(alone=alone),
                )
            )  # fmt: skip
        return tuple(found)

    def _moved(self, relation: Relation) -> Expr:
        """Number of keys that one user changes.

        Raises:
            DeclarationError: Users have several records, and the bounds on keys do not cover several.
        """
        if relation.trajectories != expression(1):
            message = f"{self.name}: `keys` and `contribution` bound all data of a user, got {relation.words!r}"
            raise DeclarationError(f"{message}; declare the relation without `trajectories`")
        return 2 * self.keys if isinstance(relation, ReplaceOne) else self.keys

    def _law(self, values: Mapping[str, Fraction], *, rounding: Literal["up", "down"]) -> Noise:
        law = LaplaceNoise if self.noise == "laplace" else GaussianNoise
        return law(scale=self.spread.number(values, rounding=rounding))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKeys:
    """Runs for a user with keys that no other user holds, scored by the keys that are shown.

    Attributes:
        noise: Noise of a count.
        above: The threshold minus one contribution.
        shown: Probability that a key is shown.
        keys: Number of the user's keys.
        replaced: Whether the user has as many other keys in D′, otherwise none.
    """

    noise: Noise
    above: float
    shown: float
    keys: int
    replaced: bool

    @property
    def numbers(self) -> int:
        """One per key."""
        return self.keys

    @property
    def laws(self) -> tuple[Array, Array]:
        """Compute ln P of one key being shown in D, or not; if the user is replaced, also of one of D′ being shown."""
        shown, hidden = math.log(self.shown), math.log1p(-self.shown)
        if not self.replaced:
            return np.array([shown, hidden]), np.array([-np.inf, 0.0])
        return np.array([shown, hidden, -np.inf]), np.array([-np.inf, hidden, shown])

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them: certain if a key is shown."""
        any_shown = (self.noise.draw(rng, (on_first.size, self.keys)) > self.above).any(axis=1)
        if self.replaced:
            return np.where(any_shown, np.where(on_first, np.inf, -np.inf), 0.0)
        return np.where(any_shown & on_first, np.inf, self.keys * math.log1p(-self.shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKeysSwapped:
    """`OwnKeys` with D and D′ exchanged."""

    alone: OwnKeys

    @property
    def numbers(self) -> int:
        """One per key."""
        return self.alone.numbers

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        return -self.alone(rng, ~on_first)
