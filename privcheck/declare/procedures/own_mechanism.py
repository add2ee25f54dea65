"""Custom mechanisms from plain functions: a sampler, a density, and a price stated by the author."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes
from privcheck.declare.procedures.cells import integrate_cells
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity
from privcheck.declare.statistics.records import corner_records, furthest_pairs
from privcheck.errors import DeclarationError, PrivcheckError
from privcheck.terms.guarantees import (
    ZCDP,
    ApproxDP,
    Budget,
    GaussianDP,
    PureDP,
    guarantee_conditions,
    guarantee_symbols,
)
from privcheck.terms.parameters import Condition, function, instance, number, one_of, text
from privcheck.terms.symbols import INFINITE, Exact, Expr, expression, minimum

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Model = Literal["central", "local"]
_USERS: Final = 4  # drawn, of whom data sets are made beside those at corners
_CORNERS: Final = 10
_ASKED: Final = 100  # outputs at which densities of neighbours are compared, about
_FURTHEST: Final = 4  # pairs that a search finds and that are compared exactly
_LEAST: Final = -700.0  # of ln of a density: what cannot leave is that rare in a search
_REASON: Final = "its price is stated for the whole mechanism, not for a value with added noise"
_STATED: Final = "stated by its author; `verify` compares it with the loss of pairs of neighbours"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMechanism:
    """Custom mechanism, given by its sampler, its density and a stated price.

    Every function is called with the arguments, as floats, by name; `price` gets them exact. A verdict uses the stated
    price, provided that no neighbours with known output laws contradict it; audits run the sampler and score it by the
    density.

    Attributes:
        name: Name, unique in the declaration.
        arguments: Arguments of its functions: exact numbers or expressions in the declaration's parameters, by name.
        spread: Name of the argument that its noise is proportional to, which calibration varies.
        sampler: Function from rng, data, size and the arguments to (size, …) fresh outputs on the data.
        log_density: Function from outputs, data and the arguments to (size,) ln of their density, or probability, on
            the data.
        price: Function from the exact arguments to the guarantee of the mechanism: `PureDP(…)`, `ZCDP(…)`,
            `GaussianDP(…)` or `ApproxDP(…)`.
        relation: Neighbouring relation that the price is stated for.
        neighbours: Function from the arguments to pairs of neighbouring data, the hardest to hide that the author
            knows; None if `records` generates the users' records.
        records: Function from rng and the arguments to one user's record, preferably extreme: the data is then a tuple
            of records, and neighbouring data sets of them are searched in addition to the given ones.
        outputs: Function from the arguments to all outputs of a mechanism with finitely many, along the first axis.
        edges: Function from the arguments to ascending numbers that enclose all outputs of a mechanism with one real
            output, except for a negligible part; between two adjacent ones the densities are smooth.
        event: Function from the arguments to an event of `privcheck.accounting`, if it is tighter than the price.
        words: Description of the mechanism.
        output: Description of the output.
        model: "central" or "local".
        users: As in a `Release`.
        source: Where the price is proved.

    Raises:
        DeclarationError: A field has the wrong type, `spread` does not name an argument, or both `outputs` and `edges`
            are given.
    """

    name: str
    arguments: Mapping[str, Expr]
    spread_argument: str
    sampler: Callable[..., NDArray[Any]]
    log_density: Callable[..., Array]
    price: Callable[..., Budget | GaussianDP]
    relation: Relation
    neighbours: Callable[..., Iterable[tuple[Any, Any]]] | None
    records: Callable[..., Any] | None
    outputs: Callable[..., NDArray[Any]] | None
    edges: Callable[..., Array] | None
    event: Callable[..., Event] | None
    words: str
    output: str
    model: Model
    users: str
    source: str

    def __init__(
        self, name: str, *, arguments: Mapping[str, Exact | Expr], spread: str, sampler: Callable[..., NDArray[Any]],
        log_density: Callable[..., Array], price: Callable[..., Budget | GaussianDP], relation: Relation,
        neighbours: Callable[..., Iterable[tuple[Any, Any]]] | None = None,
        records: Callable[..., Any] | None = None, outputs: Callable[..., NDArray[Any]] | None = None,
        edges: Callable[..., Array] | None = None, event: Callable[..., Event] | None = None,
        words: str = "a custom mechanism", output: str = "its output", model: Model = "central",
        users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        text("name, of OwnMechanism", name)
        where = f"of OwnMechanism {name!r}"
        for what, said in {"words": words, "output": output, "users": users, "source": source}.items():
            text(f"{what}, {where}", said, empty=what in {"users", "source"})
        one_of(f"model, {where}", model, get_args(Model))
        instance(f"relation, {where}", relation, get_args(Relation))
        asked: dict[str, object] = {"sampler": sampler, "log_density": log_density, "price": price}
        if records is None:
            asked["neighbours"] = neighbours
        for what, asking in {
            **asked,
            "neighbours": neighbours,
            "records": records,
            "outputs": outputs,
            "edges": edges,
            "event": event,
        }.items():
            function(f"{what}, {where}", asking, f"write def {what}(…): …")
            if asking is None and what in asked:
                raise DeclarationError(f"{what}, {where}: expected a function, got None; write def {what}(…): …")
            object.__setattr__(self, what, asking)
        if outputs is not None and edges is not None:
            message = (
                f"{where}: expected `outputs`, if there are finitely many, or `edges`, for one real number, got both"
            )
            raise DeclarationError(f"{message}; leave one out")
        if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
            message = f"arguments, {where}: expected numbers by name, got {arguments!r:.100}"
            raise DeclarationError(f"{message}; write arguments={{'scale': 2 / epsilon}}")
        exact = {key: number(f"argument {key!r}, {where}", one) for key, one in arguments.items()}
        if not isinstance(spread, str) or spread not in exact:
            message = f"spread, {where}: expected one of its arguments ({', '.join(exact) or 'none'}), got {spread!r}"
            raise DeclarationError(f"{message}; name the argument that scales the noise")
        fields: dict[str, object] = {
            "name": name, "arguments": exact, "spread_argument": spread, "relation": relation, "words": words,
            "output": output, "model": model, "users": users, "source": source}  # fmt: skip
        for what, value in fields.items():
            object.__setattr__(self, what, value)
        self.guarantee  # noqa: B018 - raises where the price is none

    @property
    def guarantee(self) -> Budget | GaussianDP:
        """Stated price at the arguments.

        Raises:
            DeclarationError: The author's function raises an exception, or returns another type.
        """
        stated = self._own("price", self.price, **self.arguments)
        if not isinstance(stated, PureDP | ZCDP | GaussianDP | ApproxDP):
            message = f"price, of OwnMechanism {self.name!r}: expected PureDP, ZCDP, GaussianDP or ApproxDP"
            raise DeclarationError(f"{message}, got {stated!r:.100}")
        return stated

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self.words,
            output=self.output,
            latex=rf"\text{{{self.output}}}",
            law="own",
            spread=self.spread,
            conditions=self._conditions(),
            symbols=guarantee_symbols(self.guarantee).union(*(one.symbols for one in self.arguments.values())),
            models=(self.model,),
            source=self.source,
        )

    def _conditions(self) -> tuple[Condition, ...]:
        """Its numbers, with the condition on each."""
        positive = Condition(what=f"its {self.spread_argument}", of=self.spread, domain="positive")
        return (positive, *guarantee_conditions(self.guarantee))

    @property
    def spread(self) -> Expr:
        """The argument that its noise is proportional to."""
        return self.arguments[self.spread_argument]

    def std(self, values: Mapping[str, Fraction]) -> float:
        """The spread, in its author's unit, rounded up."""
        return self.spread.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> OwnMechanism:
        """Copy with `factor` times the spread, and the price that its author states for it."""
        scaled = {**self.arguments, self.spread_argument: self.spread * factor}
        kept = {key: getattr(self, key) for key in self.__slots__ if key not in {"arguments", "spread_argument"}}
        return OwnMechanism(arguments=scaled, spread=self.spread_argument, **kept)

    def cost(self, relation: Relation) -> Cost:
        """Stated price, with ρ = min(ε²/2, ε) for ε-DP (Bun & Steinke 2016, Proposition 1.4) and μ²/2 for μ-GDP.

        Raises:
            DeclarationError: The price is stated for another relation.
        """
        if type(relation) is not type(self.relation) or replace(relation, unit=self.relation.unit) != self.relation:
            message = f"{self.name}: its price is stated for the relation {self.relation.words!r}"
            raise DeclarationError(f"{message}, got {relation.words!r}; state it for that relation")
        guarantee, one = self.guarantee, expression(1)
        rho, pure, dominating = INFINITE, None, None
        if isinstance(guarantee, PureDP):
            pure, rho = guarantee.epsilon, minimum(guarantee.epsilon**2 / 2, guarantee.epsilon)
        elif isinstance(guarantee, ZCDP):
            rho = guarantee.rho
        elif isinstance(guarantee, GaussianDP):
            dominating, rho = guarantee.mu**2, guarantee.mu**2 / 2
        return Cost(
            sensitivity=Sensitivity(l1=one, l2=one, linf=one, reason=_REASON),
            charged=one, rho=rho, pure=pure, mu_squared=None,
            dominating_mu_squared=dominating,
            theorem=f"{self.source}; {_STATED}" if self.source else _STATED,
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """The author's event, or the price as one."""
        from privcheck.accounting import events

        self.cost(relation)
        if self.event is not None:
            own = self._own("event", self.event, **self.at(values))
            if not isinstance(own, events.Event):
                raise DeclarationError(f"{self.name}: expected an event of privcheck.accounting, got {own!r:.100}")
            return (own,)
        guarantee = self.guarantee
        if isinstance(guarantee, PureDP):
            return (events.pure(epsilon=guarantee.epsilon.number(values, rounding="up")),)
        if isinstance(guarantee, ZCDP):
            return (events.zcdp(rho=guarantee.rho.number(values, rounding="up")),)
        if isinstance(guarantee, GaussianDP):
            return (events.gaussian(std=1, sensitivity=guarantee.mu.number(values, rounding="up")),)
        epsilon, delta = (x.number(values, rounding="up") for x in (guarantee.epsilon, guarantee.delta))
        return (events.approximate(epsilon=epsilon, delta=delta),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """The neighbours of the author, and those found, in both orders; with exact laws given `outputs` or `edges`.

        Raises:
            DeclarationError: A function of the author raises an exception, or a density is invalid.
        """
        at, known = self.at(values), []
        asked = self.neighbours
        pairs = [] if asked is None else self._own("neighbours", lambda **given: list(asked(**given)), **at)
        if self.records is not None:
            pairs = [*pairs, *self._search(relation, at)]
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise DeclarationError(f"{self.name}: expected neighbours as pairs (D, D′), got {pair!r:.100}")
            laws = [] if self.outputs is None and self.edges is None else self._laws(pair, at)
            for i, j in ((0, 1), (1, 0)):
                runs = OwnRuns(mechanism=self, pair=(pair[i], pair[j]), at=at)
                outcomes = Outcomes(log_p=laws[i], log_q=laws[j]) if laws else None
                words = f"in D the data is {pair[i]!s:.120}; in D′ {pair[j]!s:.120}"
                known.append(KnownPair(words=words, data=(pair[i], pair[j]), outcomes=outcomes, sampler=runs))
        return tuple(known)

    def at(self, values: Mapping[str, Fraction]) -> dict[str, float]:
        """Arguments as passed to the functions, as floats."""
        return {key: one.number(values) for key, one in self.arguments.items()}

    def draw(self, rng: np.random.Generator, data: Any, size: int, at: Mapping[str, float]) -> NDArray[Any]:
        """Draw `size` outputs on the data.

        Raises:
            DeclarationError: The sampler raises an exception, or draws another number of outputs.
        """
        drawn = np.asarray(self._own("sampler", self.sampler, rng, data, size, **at))
        if drawn.shape[:1] != (size,):
            message = f"{self.name}: its sampler was asked for {size} outputs and drew an array of shape {drawn.shape}"
            raise DeclarationError(f"{message}; put the outputs along the first axis")
        return drawn

    def log_densities(self, outputs: NDArray[Any], data: Any, at: Mapping[str, float]) -> Array:
        """Compute ln of the density at outputs.

        Raises:
            DeclarationError: The author's function raises an exception, or does not return one number per output.
        """
        logs = self._numbers("log_density", self._own("log_density", self.log_density, outputs, data, **at))
        if logs.shape != outputs.shape[:1] or np.isnan(logs).any() or np.isposinf(logs).any():
            message = f"{self.name}: expected one logarithm of a density for each of {outputs.shape[0]} outputs"
            raise DeclarationError(
                f"{message}, got an array of shape {logs.shape}, NaN or ∞; −∞ is for impossible outputs"
            )
        return logs

    def draw_crowd(self, at: Mapping[str, float]) -> tuple[Any, ...] | None:
        """Data of several users, where a sampler that is correct for one user may fail; None without `records`.

        Raises:
            DeclarationError: The author's `records` raises an exception.
        """
        if self.records is None:
            return None
        rng = np.random.default_rng(1)
        return tuple(self._own("records", self.records, rng, **at) for _ in range(2 * _USERS))

    def _search(self, relation: Relation, at: Mapping[str, float]) -> list[tuple[Any, Any]]:
        """Neighbouring data sets of records with the largest differences of density at some outputs.

        Raises:
            DeclarationError: The author's `records` raises an exception, or all data sets of them do.
        """
        records = self.records
        assert records is not None
        rng = np.random.default_rng(0)
        users = [self._own("records", records, rng, **at) for _ in range(_USERS)]
        asked = self._ask(tuple(users[:3]), at)
        corners = corner_records(lambda generator: records(generator, **at))[:_CORNERS]
        searched = furthest_pairs(
            lambda rows: np.maximum(self.log_densities(asked, rows, at), _LEAST), users, corners,
            replaced=isinstance(relation, ReplaceOne),
        )  # fmt: skip
        return list(deque(searched, maxlen=_FURTHEST))

    def _ask(self, data: tuple[Any, ...], at: Mapping[str, float]) -> NDArray[Any]:
        """Outputs at which densities are compared: all, points between the edges, or drawn ones."""
        if self.outputs is not None:
            return np.asarray(self._own("outputs", self.outputs, **at))
        if self.edges is None:
            return self.draw(np.random.default_rng(0), data, _ASKED, at)
        edges = self._numbers("edges", self._own("edges", self.edges, **at))
        middles = (edges[:-1] + edges[1:]) / 2
        return middles[:: max(1, middles.size // _ASKED)]

    def _laws(self, pair: tuple[Any, Any], at: Mapping[str, float]) -> list[Array]:
        if self.outputs is not None:
            outputs = np.asarray(self._own("outputs", self.outputs, **at))
            return [self.log_densities(outputs, data, at) for data in pair]
        assert self.edges is not None
        edges = self._numbers("edges", self._own("edges", self.edges, **at))
        densities = [lambda x, data=data: self.log_densities(x, data, at) for data in pair]
        return integrate_cells(self.name, densities, edges)

    def _numbers(self, what: str, given: Any) -> Array:
        """Convert the result of an author's function to an array of numbers."""
        try:
            return np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            message = f"{self.name}: expected numbers of its {what}, got {given!r:.100}"
            raise DeclarationError(f"{message}; return a NumPy array of floats") from error

    def _own(self, what: str, asked: Callable[..., Any], *given: Any, **arguments: Any) -> Any:
        """Call an author's function, turning its exceptions into errors of the declaration."""
        try:
            return asked(*given, **arguments)
        except PrivcheckError:
            raise
        except Exception as error:
            message = f"{self.name}: its {what} raised {type(error).__name__}: {error}"
            raise DeclarationError(f"{message}; it is called with {', '.join(arguments)} by name") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRuns:
    """Runs of a custom mechanism on two neighbours, scored by its own density.

    Attributes:
        mechanism: The mechanism, with its sampler and density.
        pair: The data in D and in D′.
        at: The arguments.
    """

    mechanism: OwnMechanism
    pair: tuple[Any, Any]
    at: Mapping[str, float]

    @property
    def numbers(self) -> int:
        """Number of entries of an output, an estimate of the random numbers that one run draws."""
        return max(1, self.mechanism.draw(np.random.default_rng(0), self.pair[0], 1, self.at).size)

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        scores = np.zeros(on_first.size)
        for data, here in zip(self.pair, (on_first, ~on_first), strict=True):
            if here.any():
                scores[here] = self.log_ratio(self.mechanism.draw(rng, data, int(here.sum()), self.at))
        return scores

    def log_ratio(self, outputs: NDArray[Any]) -> Array:
        """Compute ln p(output | D) − ln p(output | D′); 0 where both densities are 0."""
        first, second = (self.mechanism.log_densities(outputs, data, self.at) for data in self.pair)
        with np.errstate(invalid="ignore"):
            ratio: Array = np.nan_to_num(first - second, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return ratio
