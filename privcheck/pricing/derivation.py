"""Cost of each release, as exact expressions, and the derivation line by line: rule, theorem, inputs, result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.mechanisms import PRICED, Noise, ShuffledBits, SymmetricGaussian
from privcheck.declare.procedures import Cost, Procedure
from privcheck.declare.schedules import EveryEpisode, Tree, load_of
from privcheck.declare.statistics import Sensitivity
from privcheck.terms.symbols import Expr, expression, largest, total


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCost:
    """Exact cost of one release: all outputs of its schedule.

    Attributes:
        release: The release.
        sensitivity: Derived sensitivity of one contribution.
        charged: Sensitivity of all outputs together, in coordinates with independent noise.
        rho: Cost in zCDP; ∞ where no finite ρ is known.
        pure: Cost in pure DP; None where no finite ε holds.
        mu_squared: Cost on the Gaussian curve; None where the release is not Gaussian.
    """

    release: Release
    sensitivity: Sensitivity
    charged: Sensitivity
    rho: Expr
    pure: Expr | None
    mu_squared: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureCost:
    """Exact cost of one procedure: all its rounds.

    Attributes:
        procedure: The procedure.
        cost: Cost stated by the procedure, under the declaration's relation.
    """

    procedure: Procedure
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationLine:
    """Line of a derivation.

    Attributes:
        rule: Rule applied.
        theorem: Source of the rule.
        where: The release, or "all releases".
        symbol: Symbol of the derived quantity, in LaTeX.
        result: The exact expression; None where the step has numbers only.
        inputs: Inputs: (symbol in LaTeX, exact expression), in the theorem's order.
        note: The argument in words.
    """

    rule: str
    theorem: str
    where: str
    symbol: str
    result: Expr
    inputs: tuple[tuple[str, Expr], ...] = field(default=())
    note: str = ""


def release_lines(cost: ReleaseCost, relation: str) -> list[DerivationLine]:
    """Lines of one release: its sensitivity, the number of outputs with one user, its price."""
    name = cost.release.name
    counts = cost.release.mechanism.law.norm == "l1"
    norm = r"\Delta_1" if counts else r"\Delta_2"
    one = cost.sensitivity.l1 if counts else cost.sensitivity.l2
    sensitivity = DerivationLine(
        rule="sensitivity",
        theorem=f"derived for: {relation}",
        where=name,
        symbol=write_index(norm, name),
        result=one,
        note=cost.sensitivity.reason,
    )
    return [sensitivity, *_schedule_lines(cost, norm, one), _price(cost, norm)]


def _schedule_lines(cost: ReleaseCost, norm: str, one: Expr) -> Iterator[DerivationLine]:
    """Yield the step from one contribution to the change of all outputs, where the two differ."""
    release = cost.release
    all_of_them = cost.charged.l1 if norm == r"\Delta_1" else cost.charged.l2
    if isinstance(release.schedule, (Tree, EveryEpisode)):
        load = load_of(release.schedule)
        theorem = "the first user's data is in every later output"
        if isinstance(release.schedule, Tree):
            theorem = "a leaf lies in at most ⌊log₂ T⌋ + 1 complete nodes (Chan, Shi & Song 2011)"
        if load.most != expression(1):
            theorem = "node v holds c_v of a user's leaves: Σ c_v², or Σ c_v, at the worst (engine/trees)"
        inputs = (("m", load.total if norm == r"\Delta_1" else load.squares), (norm, one))
        yield DerivationLine(
            rule="schedule",
            theorem=theorem,
            where=release.name,
            symbol=write_index(norm, f"{release.name}, all outputs"),
            result=all_of_them,
            inputs=inputs,
            note=release.schedule.words,
        )
    elif isinstance(release.mechanism, SymmetricGaussian) and release.mechanism.kind == "goe":
        yield DerivationLine(
            rule="matrix",
            theorem="entries on and above the diagonal, the diagonal in units of √2: ‖D‖_F/√2",
            where=release.name,
            symbol=write_index(norm, f"{release.name}, independent entries"),
            result=all_of_them,
            inputs=((norm, one),),
            note=release.mechanism.words,
        )


def _price(cost: ReleaseCost, norm: str) -> DerivationLine:
    mechanism, name = cost.release.mechanism, cost.release.name
    law, priced = mechanism.law, type(mechanism) in PRICED
    rule, theorem = (law.rule, law.theorem) if priced else (law.name, Noise.theorem)
    spread = law.symbol if priced else Noise.symbol
    charged = cost.charged.l1 if norm == r"\Delta_1" else cost.charged.l2
    if isinstance(mechanism, ShuffledBits):
        return DerivationLine(
            rule=rule,
            theorem=theorem,
            where=name,
            symbol=write_index(r"m", name),
            result=mechanism.noise_bits,
            inputs=((norm, charged), (spread, mechanism.threshold), ("p", mechanism.probability)),
            note=mechanism.words,
        )
    return DerivationLine(
        rule=rule,
        theorem=theorem,
        where=name,
        symbol=write_index(r"\rho" if cost.pure is None else r"\varepsilon", name),
        result=cost.rho if cost.pure is None else cost.pure,
        inputs=((norm, charged), (spread, mechanism.spread)),
        note=mechanism.words,
    )


def procedure_lines(one: ProcedureCost, relation: str) -> list[DerivationLine]:
    """Lines of a procedure: the sensitivity of its noisy values to one user, and its price."""
    procedure, facts, cost = one.procedure, one.procedure.facts, one.cost
    moved = DerivationLine(
        rule="sensitivity",
        theorem=f"derived for: {relation}",
        where=procedure.name,
        symbol=write_index(r"\Delta", procedure.name),
        result=cost.charged,
        note=cost.sensitivity.reason,
    )
    price = DerivationLine(
        rule=facts.output,
        theorem=cost.theorem,
        where=procedure.name,
        symbol=write_index(r"\rho" if cost.pure is None else r"\varepsilon", procedure.name),
        result=cost.rho if cost.pure is None else cost.pure,
        inputs=((r"\Delta", cost.charged), (r"\text{spread}", facts.spread), ("T", facts.rounds)),
        note=f"{facts.words}; {facts.schedule}",
    )
    return [moved, price]


def total_lines(
    declaration: Declaration,
    costs: Sequence[ReleaseCost],
    procedures: Sequence[ProcedureCost],
    rho: Expr,
    pure: Expr | None,
) -> list[DerivationLine]:
    """Line of the composition; over a partition of the users, of the maximum."""
    if rho.infinite and any(isinstance(c.release.mechanism, ShuffledBits) for c in costs):
        return [_counters(declaration, costs)]
    symbol, result = (r"\rho", rho) if pure is None else (r"\varepsilon", pure)
    parts = [(c.release.name, c.rho if pure is None else c.pure) for c in costs]
    parts += [(one.procedure.name, one.cost.rho if pure is None else one.cost.pure) for one in procedures]
    theorem = (
        "Bun & Steinke 2016, Lemma 1.7: ρ adds up, adaptively"
        if pure is None
        else "Dwork & Roth 2014, Theorem 3.16 and Appendix B: ε adds up, adaptively"
    )
    groups = [group for group in declaration.groups if group]
    note = f"a user is in one of {', '.join(groups)}: their parts do not add up, the largest counts" if groups else ""
    return [
        DerivationLine(
            rule="composition" if not groups else "composition, parallel over users",
            theorem=theorem if not groups else f"{theorem}; McSherry 2009: disjoint users, the maximum",
            where="all releases",
            symbol=write_index(symbol, "total"),
            result=result,
            inputs=tuple((write_index(symbol, name), part) for name, part in parts if part is not None),
            note=note,
        )
    ]


def _counters(declaration: Declaration, costs: Sequence[ReleaseCost]) -> DerivationLine:
    """Line of the number of counters one user changes, for which exact laws are composed at the parameters."""
    moved = {c.release.name: c.charged.l1 for c in costs}
    return DerivationLine(
        rule="composition of exact laws, parallel over users",
        theorem="independent noise in every counter: their losses add up (Dwork & Rothblum 2016), at the parameters",
        where="all releases",
        symbol=write_index(r"\Delta_1", "total"),
        result=largest(*(total([moved[r.name] for r in declaration.seen_by(g)]) for g in declaration.groups)),
        inputs=tuple((write_index(r"\Delta_1", name), one) for name, one in moved.items()),
        note="this many counters move at once; no ρ is finite, so ε is computed at the claim's δ",
    )


def write_index(symbol: str, name: str) -> str:
    """Write a symbol with the release's name as its upper index, in LaTeX."""
    return rf"{symbol}^{{\mathrm{{{name}}}}}"
