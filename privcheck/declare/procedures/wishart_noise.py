"""A Gram matrix plus a Wishart matrix, never below the hidden matrix: outputs outside its support reveal a user.

The noise keeps the matrix positive semidefinite, and was claimed to be ε-DP (Jiang, Xie & Zhang 2016). Its likelihood
ratio is bounded on outputs that both neighbours can publish, but some outputs are possible for only one of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, set_words
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import INFINITE, Exact, Expr, expression

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_THEOREM: Final = "the density of W_d(d + 1, cI) is exp(−tr W/2c) on positive matrices: outside them all is lost"
_UP: Final = 1 + 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class WishartNoise:
    """Σ xxᵀ over users, plus a Wishart matrix W_d(d + 1, c·I): a sum of d + 1 matrices ggᵀ with g ~ N(0, c·I).

    Attributes:
        name: Name, unique in the declaration.
        spread: c, the variance of an entry of g.
        dimension: d, dimension of the vectors.
        bound: b, bound on the norm of a user's vector.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    spread: Expr
    dimension: Expr
    bound: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, variance: Exact | Expr, dimension: Exact | Expr, bound: Exact | Expr = 1, users: str = "",
        source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        for key, amount in {"spread": variance, "dimension": dimension, "bound": bound}.items():
            object.__setattr__(self, key, number(f"{key}, of WishartNoise", amount))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output="a positive semidefinite matrix",
            latex=self._latex(),
            law="wishart",
            spread=self.spread,
            conditions=(
                Condition(what="the scale of the Wishart matrix", of=self.spread, domain="positive"),
                Condition(what="the dimension", of=self.dimension, domain="count"),
                Condition(what="the bound on a vector", of=self.bound, domain="positive"),
            ),
            symbols=self.spread.symbols | self.dimension.symbols | self.bound.symbols,
            preconditions=(f"every vector has norm at most {self.bound}",),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        d = self.dimension
        return f"a Wishart matrix of {d + 1} degrees of freedom and scale {self.spread}·I on a Gram matrix"

    def _latex(self) -> str:
        """Output as a formula."""
        freedom = (self.dimension + 1).latex()
        return rf"\textstyle\sum x x^\top + W_d\left({freedom},\ {self.spread.latex()} I\right)"

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of a diagonal entry, c√(2(d + 1)), rounded up."""
        freedom = int(self.dimension.number(values)) + 1
        return self.spread.number(values, rounding="up") * math.sqrt(2 * freedom) * _UP

    def with_std(self, factor: Fraction) -> WishartNoise:
        """Copy with `factor` times the scale."""
        kept = {"dimension": self.dimension, "bound": self.bound}
        return WishartNoise(self.name, variance=self.spread * factor, users=self.users, source=self.source, **kept)

    def cost(self, relation: Relation) -> Cost:
        """Cost with no finite ε or ρ; the accountant composes the lost probability and the ratio elsewhere.

        Raises:
            DeclarationError: Users have several records.
        """
        if relation.trajectories != expression(1):
            message = f"{self.name}: a user has only one vector, got {relation.words!r}"
            raise DeclarationError(f"{message}; declare the relation without `trajectories`")
        moved = self.bound**2
        return Cost(
            sensitivity=Sensitivity(l1=moved, l2=moved, linf=moved, reason="the trace of one user's matrix xxᵀ"),
            charged=moved, rho=INFINITE, pure=None, mu_squared=None, theorem=_THEOREM,
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Laws of whether the output is above D's matrix, with the longest vector: s = b²/2c.

        Lemma wishart-loss: With x, ‖x‖²/2c = s, in D only, p(M) = e^s·q(M) for M ⪰ Σ + xxᵀ, which has probability
        e^(−s) under D′, and p = 0 elsewhere. Proof: the density is exp(−tr/2c), so that a shift of the cone by xxᵀ
        costs e^(−s). A shorter vector is a post-processing.

        Lemma wishart-replaced: Replacing x by z, neither longer than √(2cs), is (s, 1 − e^(−s))-DP. Proof: on outputs
        that both can publish the ratio is e^((‖x‖² − ‖z‖²)/2c) ≤ e^s, and D leaves this set with probability at most 1
        − e^(−‖z‖²/2c), as W ⪰ zzᵀ implies W ⪰ zzᵀ − xxᵀ.
        """
        from privcheck.accounting.events import approximate, loss_distribution

        s = self._exponent(values, up=True)
        lost = -math.expm1(-s)
        if isinstance(relation, ReplaceOne):
            return (approximate(epsilon=s, delta=min(lost * _UP, 1 - 2.0**-53)),)
        return (loss_distribution([1.0, 0.0], [1 - lost, lost]),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """A user with the longest vector, against no user or a user with the vector 0."""
        s, d = self._exponent(values, up=False), int(self.dimension.number(values))
        inside, outside = np.array([0.0, -np.inf]), np.array([-s, math.log(-math.expm1(-s))])
        with_user, without = "a vector of the largest norm", "0" if isinstance(relation, ReplaceOne) else "no vector"
        pairs = []
        for first in (True, False):
            words = (with_user, without) if first else (without, with_user)
            laws = (inside, outside) if first else (outside, inside)
            pairs.append(
                KnownPair(
                    words=f"in D the user has {words[0]}; in D′ {words[1]}: the test asks whether the output is above "
                          "the longer sum",
                    data=words, outcomes=Outcomes(log_p=laws[0], log_q=laws[1]),
                    sampler=WishartRuns(exponent=s, dimension=d, swapped=not first),
                )
            )  # fmt: skip
        return tuple(pairs)

    def _exponent(self, values: Mapping[str, Fraction], *, up: bool) -> float:
        """Compute s = b²/2c, rounded up or down."""
        ratio = self.bound**2 / (2 * self.spread)
        return ratio.number(values, rounding="up" if up else "down")


@dataclass(frozen=True, slots=True, kw_only=True)
class WishartRuns:
    """Draws of Wishart matrices, scored by whether the output is possible with the user's vector.

    Attributes:
        exponent: s = b²/2c.
        dimension: d, dimension of the vectors.
        swapped: Whether D and D′ are exchanged.
    """

    exponent: float
    dimension: int
    swapped: bool

    @property
    def numbers(self) -> int:
        """(d + 1)·d."""
        return (self.dimension + 1) * self.dimension

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them: W ⪰ xxᵀ if xᵀW⁻¹x ≤ 1, here with c = 1 and ‖x‖² = 2s."""
        g = rng.standard_normal((on_first.size, self.dimension + 1, self.dimension))
        w = np.einsum("nij,nik->njk", g, g)
        first_axis = np.linalg.inv(w)[:, 0, 0]
        above = (2 * self.exponent * first_axis <= 1) | (on_first ^ self.swapped)
        scores: Array = np.where(above, self.exponent, -np.inf)
        return -scores if self.swapped else scores
