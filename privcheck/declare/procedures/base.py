"""Protocol of a release: a noisy statistic, a sampled round, a selection, or a custom mechanism.

A release states its price, the events that the accountant composes, and concrete neighbours with exactly known output
laws, from which verification bounds the loss from below and audits draw runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, text
from privcheck.terms.symbols import Expr, expression

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Array = NDArray[np.float64]
_TOTAL: Final = 1e-9  # by which the probabilities of all outcomes may miss 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Exact cost of a procedure, for all parameters.

    Attributes:
        sensitivity: How far one user can change the values that noise is added to in one round: all scores, all
            queries.
        charged: The norm of the sensitivity that determines the price.
        rho: ρ of zCDP; ∞ if no finite ρ is known.
        pure: ε of pure DP; None if no finite ε is known.
        mu_squared: μ² if the procedure is on the Gaussian curve, otherwise None.
        theorem: Theorem and source.
        dominating_mu_squared: μ² of a Gaussian mechanism that dominates the procedure, if the procedure is not on that
            curve itself; None if none is known.
    """

    sensitivity: Sensitivity
    charged: Expr
    rho: Expr
    pure: Expr | None
    mu_squared: Expr | None
    theorem: str
    dominating_mu_squared: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Exact laws, under two neighbours, of finitely many distinguishable outcomes of one round.

    Which of them happened is a post-processing of the output, so the loss of these laws bounds the procedure's loss
    from below.

    Attributes:
        log_p: (m,) ln P(outcome) on D; −∞ only for an impossible outcome.
        log_q: (m,) ln P(outcome) on D′; the same.

    Raises:
        DeclarationError: The arrays are not two laws on the same outcomes.
    """

    log_p: Array
    log_q: Array

    def __post_init__(self) -> None:
        p, q = np.asarray(self.log_p, dtype=np.float64), np.asarray(self.log_q, dtype=np.float64)
        if p.ndim != 1 or p.shape != q.shape or p.size == 0:
            message = f"Outcomes: expected two laws on the same outcomes, got shapes {p.shape} and {q.shape}"
            raise DeclarationError(f"{message}; give log_p and log_q one number for each outcome")
        for name, logs in (("log_p", p), ("log_q", q)):
            mass = float(np.exp(logs).sum())
            if not abs(mass - 1) <= _TOTAL:
                message = f"Outcomes: expected probabilities that add up to 1, got {mass:.9g} from {name}"
                raise DeclarationError(f"{message}; give the natural logarithms of all outcomes' probabilities")
        object.__setattr__(self, "log_p", p)
        object.__setattr__(self, "log_q", q)


class Sampler(Protocol):
    """Runs of the procedure itself on one of two neighbours; importable, so that any process can draw them."""

    @property
    def numbers(self) -> int:
        """Approximate number of random numbers that one run draws."""
        ...

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and return their log-likelihood ratios ln p(output | D) − ln p(output | D′); ±∞ is certainty.

        Args:
            rng: Source of randomness.
            on_first: (m,) whether each run is on D.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownPair:
    """Two neighbours with known output laws.

    Attributes:
        words: Both in words: "in D the scores are …; in D′ …".
        data: The data that differ, in D and in D′.
        outcomes: Laws of one round; None if no finite law is computed.
        rounds: Number of rounds, which are independent given the data.
        sampler: Runs of all rounds; None if runs are not supported.
    """

    words: str
    data: tuple[Any, Any]
    outcomes: Outcomes | None
    rounds: int = 1
    sampler: Sampler | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Description of a release for reports, and the numbers that it depends on.

    Attributes:
        words: Description of the release.
        output: The output, such as "the index of a candidate".
        latex: The output as a formula.
        law: Name of the law of its noise.
        spread: Declared spread of its noise, in the unit named in `words`.
        conditions: Its numbers, with the condition on each.
        symbols: Names of the parameters that occur in it.
        rounds: Number of outputs that one user may be in.
        schedule: How often an output is released, in words.
        models: Trust models that the release supports.
        preconditions: What the data must satisfy, in words.
        source: Reference in the paper.
    """

    words: str
    output: str
    latex: str
    law: str
    spread: Expr
    conditions: tuple[Condition, ...]
    symbols: frozenset[str]
    rounds: Expr = expression(1)  # noqa: RUF009 - an expression never changes
    schedule: str = "released once"
    models: tuple[str, ...] = ("central",)
    preconditions: tuple[str, ...] = ()
    source: str = ""


class Procedure(Protocol):
    """A release, once or over several rounds: a noisy statistic, a selection, or a custom mechanism."""

    @property
    def name(self) -> str:
        """Name, unique in the declaration."""
        ...

    @property
    def users(self) -> str:
        """Group of a partition of the users whose data the release uses; empty if it uses all users."""
        ...

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        ...

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw of its noise, rounded up."""
        ...

    def with_std(self, factor: Fraction) -> Procedure:
        """Copy with `factor` times the standard deviation of all noise, for calibration."""
        ...

    def cost(self, relation: Relation) -> Cost:
        """Cost under the relation.

        Raises:
            DeclarationError: The release is meaningless, or no guarantee is proved, under that relation.
        """
        ...

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """All rounds as events of the numeric accountant; empty if no user changes any output."""
        ...

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Neighbours that are hard to hide, each with the exact laws of its output.

        Of a procedure with `monotone` every pair is listed both ways, first with all scores that rise from D to D′:
        several of one type are given the pair at the same place, so that their scores all move one way.
        """
        ...


_ASKED: Final = tuple(name for name in vars(Procedure) if not name.startswith("_"))


def check_releases(where: str, given: object) -> None:
    """Check that each of several values has the members of a `Procedure`, without computing any of them.

    Raises:
        DeclarationError: The value is not a tuple or list, or an element lacks a member, which the message names.
    """
    if not isinstance(given, tuple | list):
        raise DeclarationError(f"{where}: expected a tuple, got {given!r:.200}; mind the comma in (a,)")
    for one in given:
        lacks = [name for name in _ASKED if inspect.getattr_static(one, name, None) is None and not hasattr(one, name)]
        if isinstance(one, type) or lacks:
            shown = f"the class {one.__name__}" if isinstance(one, type) else f"{one!r:.200}"
            message = f"{where}: expected Release(…), NoisyMax(…) or another release, got {shown}"
            raise DeclarationError(f"{message}, which has no {', '.join(lacks) or 'values of its own'}")


def set_words(one: object, *, name: str, users: str, source: str) -> None:
    """Check and set the name, the group of users and the source of a procedure.

    Raises:
        DeclarationError: A value is not text, or the name is empty.
    """
    kind = type(one).__name__
    text(f"name, of {kind}", name)
    text(f"users, of {kind}", users, empty=True)
    text(f"source, of {kind}", source, empty=True)
    for key, words in {"name": name, "users": users, "source": source}.items():
        object.__setattr__(one, key, words)


def moved_by_a_user(sensitivity: Expr, relation: Relation) -> Expr:
    """Bound on the change of a score or query by one user: `sensitivity` for each of the user's m trajectories.

    It is a bound by the triangle inequality, and counts attain it, as the trajectories may all be alike.
    """
    several = relation.trajectories
    return sensitivity if several == expression(1) else (several * sensitivity).simplified()


def check_one_record(name: str, relation: Relation, *, why: str) -> None:
    """Check that a user has one record, for a price that does not cover several.

    Args:
        name: Name of the procedure.
        relation: The neighbouring relation.
        why: The assumption of the price that several records violate.

    Raises:
        DeclarationError: A user has several records.
    """
    if relation.trajectories != expression(1):
        message = f"{name}: priced for one record of a user ({why}), got {relation.words!r}"
        raise DeclarationError(f"{message}; declare the relation for one, and claim k·ε of k apart")
