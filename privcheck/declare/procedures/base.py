"""What leaves: the protocol of a noisy statistic, a sampled round, a selection, a mechanism of an author's own.

Each states its price, the events that the accountant composes, and concrete neighbours whose output laws are known
exactly, from which verification bounds the loss from below and audits draw.
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
    """What a procedure costs, exactly, for all parameters.

    Attributes:
        sensitivity: How far one user moves what the noise is added to in one round: all scores, all queries.
        charged: Of its norms the one that the price rests on.
        rho: In zCDP; ∞ where no finite ρ is known.
        pure: In pure DP; None where no finite ε is known.
        mu_squared: On the Gaussian curve; None where it does not lie on it.
        theorem: The theorem and its source.
        dominating_mu_squared: μ² of a Gaussian mechanism that dominates it, where it does not lie on that curve itself;
            None where none is known.
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
    """The exact laws, under two neighbours, of finitely many outcomes that are told apart in one round.

    Whoever is told which of them happened, and nothing else, sees a post-processing of the output: what these laws lose
    bounds the procedure's loss from below.

    Attributes:
        log_p: (m,) ln P(outcome) on D; −∞ only where it cannot happen.
        log_q: (m,) on D′.

    Raises:
        DeclarationError: They are not two laws on the same outcomes.
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
    """Runs of the procedure itself on one of two neighbours: importable, so that any process can draw them."""

    @property
    def numbers(self) -> int:
        """Returns about how many random numbers one run draws."""
        ...

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Returns the log-likelihood ratio ln p(output | D) − ln p(output | D′) of fresh runs; ±∞ is certainty.

        Args:
            rng: The randomness.
            on_first: (m,) whether each run is on D.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownPair:
    """Two neighbours of whom the laws of the output are known.

    Attributes:
        words: Both in words: "in D the scores are …; in D′ …".
        data: What differs in D and in D′.
        outcomes: The laws of one round; None where no finite law is computed.
        rounds: How many rounds, independent given the data.
        sampler: Runs of all rounds; None where they are not run.
    """

    words: str
    data: tuple[Any, Any]
    outcomes: Outcomes | None
    rounds: int = 1
    sampler: Sampler | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What reports say of a release, and the numbers that it depends on.

    Attributes:
        words: What is done.
        output: What leaves: "the index of a candidate".
        latex: What leaves as a formula.
        law: The law of its noise, by name.
        spread: The declared spread of its noise, in the unit that `words` name.
        conditions: Its numbers and what each must be.
        symbols: The parameters that occur in it.
        rounds: In how many outputs one user may be.
        schedule: How often it leaves, in words.
        models: The models of trust in which it makes sense.
        preconditions: What the data must satisfy, in words.
        source: Where the paper says so.
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
    """What leaves, once or over several rounds: a noisy statistic, a selection, an author's own mechanism."""

    @property
    def name(self) -> str:
        """Its name, unique in the declaration."""
        ...

    @property
    def users(self) -> str:
        """The group of a partition of the users whose data it is about; empty where it is everybody's."""
        ...

    @property
    def facts(self) -> Facts:
        """What reports say of it, and the numbers that it depends on."""
        ...

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Return the standard deviation of one draw of its noise, rounded up."""
        ...

    def with_std(self, factor: Fraction) -> Procedure:
        """Return it with all noise of `factor` times the standard deviation: what calibration tries."""
        ...

    def cost(self, relation: Relation) -> Cost:
        """Return what it costs under the relation.

        Raises:
            DeclarationError: It makes no sense, or nothing is proved, under that relation.
        """
        ...

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Return all rounds as events of the numeric accountant, none where no user moves anything."""
        ...

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Return neighbours that are hard to hide, each with the exact laws of its output."""
        ...


_ASKED: Final = tuple(name for name in vars(Procedure) if not name.startswith("_"))


def check_releases(where: str, given: object) -> None:
    """Check that each of several values has what a `Procedure` has; none of it is computed.

    Raises:
        DeclarationError: They are no tuple, or one lacks something; the message names it.
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
    """Checks and sets what every procedure is called, whose data it is about, and where the paper says so.

    Raises:
        DeclarationError: One is no text, or the name is empty.
    """
    kind = type(one).__name__
    text(f"name, of {kind}", name)
    text(f"users, of {kind}", users, empty=True)
    text(f"source, of {kind}", source, empty=True)
    for key, words in {"name": name, "users": users, "source": source}.items():
        object.__setattr__(one, key, words)


def moved_by_a_user(sensitivity: Expr, relation: Relation) -> Expr:
    """Bound on how far all that one user has moves a score or a query: each of m trajectories by the sensitivity.

    They may all be alike, so that m·Δ is attained by counts, and the triangle inequality says that it is a bound.
    """
    several = relation.trajectories
    return sensitivity if several == expression(1) else (several * sensitivity).simplified()


def check_one_record(name: str, relation: Relation, *, why: str) -> None:
    """Checks that a user has one record, where a price says nothing of several.

    Args:
        name: The procedure's.
        relation: The neighbouring relation.
        why: What the price rests on that several records break.

    Raises:
        DeclarationError: A user has several.
    """
    if relation.trajectories != expression(1):
        message = f"{name}: priced for one record of a user ({why}), got {relation.words!r}"
        raise DeclarationError(f"{message}; declare the relation for one, and claim k·ε of k apart")
