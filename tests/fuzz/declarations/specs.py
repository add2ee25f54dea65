"""Random systems in plain values: what is released, how and what is claimed; sound, and with one field changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

TABLES = ("visits", "transitions", "rewards", "costs")
STATISTICS = (*TABLES, "pooled visits", "pooled transitions", "pooled rewards")
KINDS = {"H": "count", "S": "count", "A": "count", "K": "count", "rho": "positive", "epsilon": "positive"}


@dataclass(frozen=True)
class Formula:
    """A number that depends on the parameters, for exact fractions and for privcheck's symbols alike."""

    words: str
    of: Callable[[Mapping[str, Any]], Any]

    def __call__(self, names: Mapping[str, Any]) -> Any:
        return self.of(names)

    def __repr__(self) -> str:
        return self.words


def times(number: Fraction, words: str, of: Callable[[Mapping[str, Any]], Any]) -> Formula:
    return Formula(f"{number}·{words}", lambda v: number * of(v))


@dataclass(frozen=True)
class Part:
    """One release.

    `law` is gaussian, laplace, bits or integers; `spread` its variance, its b, or τ; `schedule` is once, user, batches,
    tree, every or sampled, with `outputs` its leaves or outputs; `group` is the group of users that it is about.
    """

    name: str
    statistic: str
    law: str
    spread: Any
    schedule: str = "once"
    outputs: Any = None
    across: Any = ()
    draw: Any = ""
    group: Any = ""
    steps: Any = None  # of the statistic; H
    sizes: tuple[int, ...] = ()  # of batches behind a shuffler
    stated: Any = None  # its sensitivity over the true one, where a class of the author's own states it
    bounds: tuple[Any, ...] = ()  # of linear statistics: on the vector, on the target, of H and the step h


@dataclass(frozen=True)
class Procedure:
    """One procedure, or a mechanism of its author's own.

    `size` is ε of a response or a choice, the scale of other noise, and the probability of keeping a bit; `count` how
    many categories, bits, candidates or queries there are; `noise` the law, the way of choosing or the price's unit.
    """

    name: Any
    kind: str
    size: Any
    count: int
    noise: Any = ""
    monotone: bool = False
    group: Any = ""
    stated: Fraction = Fraction(1)  # its price over the true one, where its author states it
    fault: str = ""  # of its author's sampler


@dataclass(frozen=True)
class Spec:
    """A whole declaration; `meaningless` says why it has to be refused, where it has to be."""

    seed: int
    relation: Any
    initial: Any
    model: Any
    parts: tuple[Part, ...]
    claim: str
    claimed: Any
    delta: Any
    values: Mapping[str, Any]
    partitions: Any = ()
    sees: Any = None
    unit: Any = "trajectory"
    attained: Any = None  # the bound on the vectors that the data attains, where an assumption says 1
    kinds: Mapping[str, Any] = None  # type: ignore[assignment] # filled in below
    sample: str = ""  # of all releases: "shared", or each has a "fresh" one; or what means nothing
    rate: Any = None  # of the Poisson samples
    rounds: Any = 1
    procedures: tuple[Procedure, ...] = ()
    facts: str = ""  # who says that groups, batches and rates are public: "public", "billboard" or, refused, "data"
    mutation: str = ""
    meaningless: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", {**KINDS, **(self.kinds or {})})


_VARIANCES = (
    ("1", lambda v: v["H"] / v["H"]),
    ("H", lambda v: v["H"]),
    ("H/rho", lambda v: v["H"] / v["rho"]),
    ("H²/rho", lambda v: v["H"] ** 2 / v["rho"]),
    ("1/rho", lambda v: 1 / v["rho"]),
)
_SCALES = (
    ("1", lambda v: v["H"] / v["H"]),
    ("H", lambda v: v["H"]),
    ("H/epsilon", lambda v: v["H"] / v["epsilon"]),
    ("1/epsilon", lambda v: 1 / v["epsilon"]),
)
_SIZED = (("n", lambda v: v["n"] * v["H"] / v["H"]), ("1/n", lambda v: v["H"] / v["H"] / v["n"]))
_OUTPUTS = (
    ("K", lambda v: v["K"]),
    ("K-1", lambda v: v["K"] - 1),
    ("K+1", lambda v: v["K"] + 1),
)
_NUMBERS = tuple(Fraction(x) for x in ("1/2", "1", "2", "3", "4", "6"))
_RATIOS = tuple(Fraction(x) for x in ("1/10", "1/2", "9/10", "99/100", "1", "101/100", "11/10", "2", "10"))


NEAR = tuple(Fraction(x, 100) for x in (95, 96, 97, 98, 102, 103, 104, 105))  # half of them are false claims
LINEAR = ("gram", "sums", "squares")  # Σ φφᵀ, Σ φ·V and Σ φ·V² over users, a matrix or a vector a step
_BOUNDS = (
    ("1", lambda v: v["H"] / v["H"]),
    ("H-h", lambda v: v["H"] - v["h"]),
    ("H-h+1", lambda v: v["H"] - v["h"] + 1),
    ("H", lambda v: v["H"]),
    ("1/2", lambda v: Fraction(1, 2) * v["H"] / v["H"]),
)


def draw_linear(seed: int, cost: Callable[[Spec], float]) -> Spec:
    """Returns a well-formed system of linear statistics with Gaussian noise, claimed at a multiple of what it costs.

    Args:
        seed: Which.
        cost: The oracle's cost in ρ.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    relation, parts = rng.choices(("replace", "add", "zero"), (6, 2, 2))[0], []
    vector = Formula(*rng.choice((_BOUNDS[0], _BOUNDS[0], _BOUNDS[4])))
    for i in range(rng.choice((1, 1, 2, 3))):
        statistic = rng.choice(LINEAR)
        words, of = rng.choice(_VARIANCES)
        schedule = rng.choice(("once", "once", "tree", "every")) if relation != "add" else "once"
        parts.append(
            Part(
                name=f"r{i}",
                statistic=statistic,
                law=rng.choice(("goe", "upper", "gaussian") if statistic == "gram" else ("gaussian",)),
                spread=times(rng.choice(_NUMBERS), words, of),
                schedule=schedule,
                outputs=Formula(*rng.choice(_OUTPUTS)) if schedule != "once" else None,
                bounds=(vector, Formula(*rng.choice(_BOUNDS))),
            )
        )
    spec = Spec(
        seed=seed,
        relation=relation,
        initial=rng.choice(("any", "any", "any", "fixed")) if relation == "replace" else "any",
        model="central",
        parts=tuple(parts),
        claim="zcdp",
        claimed=Formula("1", lambda _: Fraction(1)),
        delta=Fraction(1, 100),
        values={
            "H": rng.choice((1, 2, 3)),
            "S": 2,
            "A": 2,
            "K": rng.choice((1, 2, 5)),
            "rho": rng.choice(_NUMBERS),
            "epsilon": 1,
            "d": rng.choice((1, 2, 2)),
        },
        kinds={"d": "count"},
    )
    return claiming(spec, cost(spec), rng)


def claiming(spec: Spec, true: float, rng: random.Random) -> Spec:
    """Returns the system with a claim of a random multiple of what it costs, or of 1 where that is 0 or ∞."""
    ratio = rng.choice(_RATIOS)
    number = Fraction(1) if not 0 < true < 1e9 else Fraction(true).limit_denominator(10**6) * ratio
    number = max(number, Fraction(1, 10**6))
    unit = rng.choice(("rho", "1")) if spec.claim == "zcdp" else rng.choice(("epsilon", "1"))
    if unit == "1":
        return replace(spec, claimed=Formula(f"{number}", lambda v: number * v["H"] / v["H"]))
    share = number / Fraction(spec.values[unit])
    return replace(spec, claimed=times(share, unit, lambda v: v[unit]))


def nearly(spec: Spec, true: float, ratio: Fraction) -> Spec:
    """Returns the system with a claim of so many times what it costs; of 1 where that is nothing."""
    number = Fraction(true).limit_denominator(10**6) * ratio if 1e-4 < true < 1e6 else Fraction(1)
    return replace(spec, claimed=Formula(f"{number}", lambda v: number * v["H"] / v["H"]))


def draw(seed: int, bounds: Callable[[Spec], tuple[float, float]]) -> Spec:
    """Returns a well-formed system whose claim is a random multiple of what it costs.

    Of ten seeds one is of linear statistics, one of samples, two are of several procedures or mechanisms of their
    authors' own, and two of nested expressions; the others are of noisy tables in all models.

    Args:
        seed: Which.
        bounds: The oracle's bounds on the cost in the claim's unit (at its δ), 0 and ∞ included.
    """
    from declarations.answers import draw_answers
    from declarations.sampled import draw_sampled

    def cost(spec: Spec) -> float:
        return bounds(spec)[1]

    kind = seed % 10
    if kind in (5, 7):
        return draw_answers(seed, bounds)
    if kind == 3:
        return draw_sampled(seed, cost)
    if kind == 4:
        return draw_linear(seed, cost)
    return draw_nested(seed, cost) if kind in (6, 9) else draw_tables(seed, cost)


def draw_nested(seed: int, cost: Callable[[Spec], float]) -> Spec:
    """Returns a system of noisy tables whose spreads are nested expressions; so is its claim, 2 to 5 % off the cost."""
    from declarations.formulas import draw_formula, of_the_noise

    rng = random.Random(seed)  # noqa: S311 - no secret
    claim = rng.choice(("zcdp", "zcdp", "pure", "approx"))
    law = {"zcdp": "gaussian", "pure": "laplace"}.get(claim) or rng.choice(("gaussian", "laplace"))
    parts = tuple(
        Part(
            name=f"r{i}", statistic=rng.choice(STATISTICS), law=law, spread=draw_formula(rng, rng.choice((1, 2, 2, 3)))
        )
        for i in range(rng.choice((1, 1, 2)))
    )
    spec = Spec(
        seed=seed,
        relation=rng.choice(("replace", "replace", "add", "zero")),
        initial="any",
        model="central",
        parts=parts,
        claim=claim,
        claimed=Formula("1", lambda _: Fraction(1)),
        delta=rng.choice((Fraction(1, 100), Fraction(1, 10**5))),
        values={
            "H": rng.choice((1, 2)),
            "S": 2,
            "A": 2,
            "K": rng.choice((1, 2, 3, 6)),
            "rho": rng.choice(_NUMBERS),
            "epsilon": rng.choice(_NUMBERS),
        },
    )
    near, true = rng.choice(NEAR), cost(spec)
    if claim == "approx" or not 1e-4 < true < 1e6:
        return nearly(spec, true, near)
    noise = of_the_noise(parts) if rng.random() < 0.8 else draw_formula(rng, 2)
    number = Fraction(true / float(noise(numbers_of(spec)))).limit_denominator(10**6) * near
    number = max(number, Fraction(1, 10**6))
    of = rng.choice((lambda v: number * v["H"] / spec.values["H"], lambda v: number * v["H"] / v["H"]))
    return replace(spec, claimed=Formula(f"{number}·(H)·{noise}", lambda v: of(v) * noise(v)))


def public_facts(spec: Spec, facts: str) -> bool:
    """Returns whether facts of that kind are sound: groups, trees and rates are not chosen by what left earlier."""
    if facts == "data":
        return not any(
            (spec.partitions, spec.sample, *(p.schedule in ("batches", "tree", "every") for p in spec.parts))
        )
    if facts == "billboard":
        chosen = any(p.schedule in ("tree", "every") or p.sizes for p in spec.parts)
        return not (chosen or spec.partitions or spec.sample)
    return True


def numbers_of(spec: Spec) -> dict[str, Any]:
    """Returns what a formula is evaluated on: the values, and functions of numbers."""
    from declarations.formulas import FUNCTIONS

    return {**FUNCTIONS, **{name: Fraction(value) for name, value in spec.values.items()}}


def draw_tables(seed: int, cost: Callable[[Spec], float]) -> Spec:
    """Returns a well-formed system of noisy tables, in all models of trust, with groups, trees and batches."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    model = rng.choices(("central", "local", "shuffle"), (6, 2, 2))[0]
    relation = "replace" if model == "local" else rng.choices(("replace", "add", "zero"), (6, 2, 2))[0]
    if model == "shuffle" and relation == "add":
        relation = "zero"
    parts, partitions = _parts(rng, model, relation)
    claim = "approx" if model == "shuffle" else rng.choices(("zcdp", "pure", "approx"), (4, 3, 2))[0]
    values = {
        "H": 1 if any(p.law == "integers" for p in parts) else rng.choice((1, 1, 2)),
        "S": 2,
        "A": 2,
        "K": rng.choice((1, 2, 3, 5)),
        "rho": rng.choice(_NUMBERS),
        "epsilon": rng.choice(_NUMBERS),
    }
    spec = Spec(
        seed=seed,
        relation=relation,
        initial=rng.choice(("any", "any", "fixed")) if relation == "replace" else "any",
        model=model,
        parts=parts,
        partitions=partitions,
        claim=claim,
        claimed=Formula("1", lambda _: Fraction(1)),
        delta=rng.choice((Fraction(1, 100), Fraction(1, 10**5))),
        values=values,
        sees=rng.choice((None, None, ("billboard", "own data"), ("billboard", "others' data"))),
    )
    facts = rng.choice(("", "", "public"))
    return claiming(replace(spec, facts=facts if public_facts(spec, facts) else ""), cost(spec), rng)


def _parts(rng: random.Random, model: str, relation: str) -> tuple[tuple[Part, ...], tuple[tuple[str, ...], ...]]:
    schedules = {"local": ("user",), "shuffle": ("batches",), "central": ("once", "once", "batches", "tree", "every")}
    parts = []
    partitions = rng.choice(((), (), (), (("left", "right"),), (("left", "right"), ("odd", "even"))))
    groups = ("", *(g for partition in partitions for g in partition))
    messages = rng.choice(("bits", "bits", "integers"))
    sizes = rng.choice(((1,), (2,), (2, 3), (5,)) if messages == "bits" else ((1,), (2,), (1, 2)))
    for i in range(rng.choice((1, 1, 2, 3))):
        law = messages if model == "shuffle" else rng.choice(("gaussian", "laplace"))
        words, of = rng.choice(_SCALES if law == "laplace" else _VARIANCES[:2] if model == "shuffle" else _VARIANCES)
        number = rng.choice(_NUMBERS)
        schedule = rng.choice(schedules[model])
        if relation == "add" and schedule in ("batches", "tree", "every"):
            schedule = "once"
        sized = model != "shuffle" and schedule == "batches" and rng.random() < 0.5
        if sized:  # noise that depends on how many users there are in a batch
            words, of = rng.choice(_SIZED)
        outputs = Formula(*rng.choice(_OUTPUTS)) if schedule in ("tree", "every") else None
        statistic = rng.choice(("visits", "transitions", "step visits") if model == "shuffle" else STATISTICS)
        parts.append(
            Part(
                name=f"r{i}",
                statistic=statistic,
                law=law,
                spread=times(number, words, of),
                schedule=schedule,
                outputs=outputs,
                group=rng.choice(groups),
                sizes=sizes if model == "shuffle" or sized else (),
                across=rng.choices(((), ("cells",), ("outputs",)), (20, 1, 1))[0] if model != "shuffle" else (),
                stated=rng.choices((None, Fraction(1), Fraction(2)), (12, 1, 1))[0] if model != "shuffle" else None,
            )
        )
    used = {p.group for p in parts}
    return tuple(parts), tuple(p for p in partitions if used & set(p))


def mutants(spec: Spec, rng: random.Random) -> Iterator[Spec]:
    """Yields the system with one field changed: into nonsense, or into another system with a truth of its own."""
    if spec.procedures:
        from declarations.answers import mutants_of_answers

        yield from mutants_of_answers(spec, rng)
        return
    if spec.sample:
        from declarations.sampled import mutants_of_sampled

        yield from mutants_of_sampled(spec, rng)
        return
    for facts in ("public", "billboard", "data"):
        why = "" if public_facts(spec, facts) else "what is public is chosen by data"
        yield _being(spec, f"facts from {facts}", why, facts=facts)
    yield from _of_a_part(spec, rng.randrange(len(spec.parts)))
    yield from _of_the_relation(spec)
    yield from _of_the_whole(spec, rng)


def _of_a_part(spec: Spec, i: int) -> Iterator[Spec]:
    part = spec.parts[i]

    def having(why: str, meaningless: str = "", **changes: Any) -> Spec:
        parts = (*spec.parts[:i], replace(part, **changes), *spec.parts[i + 1 :])
        return replace(spec, parts=parts, mutation=why, meaningless=meaningless)

    spread = part.spread
    yield having("negative spread", "a spread below 0", spread=Formula("-s", lambda v: -1 * spread(v)))
    yield having("no spread", "a spread of 0", spread=Formula("0", lambda v: 0 * spread(v)))
    yield having(
        "spread that turns negative", "a spread below 0", spread=Formula("H-61/2", lambda v: v["H"] - Fraction(61, 2))
    )
    for wrong in ("two", None, float("nan"), 0.5, [], "", "nan"):
        yield having(f"spread {wrong!r}", "no exact number", spread=wrong)
    if part.outputs is not None:
        for words, of in (
            ("K-9", lambda v: v["K"] - 9),
            ("1/2", lambda v: Fraction(1, 2) * v["K"] / v["K"]),
            ("K+1/3", lambda v: v["K"] + Fraction(1, 3)),
            ("-K", lambda v: -1 * v["K"]),
        ):
            yield having(f"outputs {words}", "no number of outputs", outputs=Formula(words, of))
        yield having("outputs as text", "no number", outputs="many")
    yield having("half a step", "no number of steps", steps=Formula("H/3", lambda v: v["H"] / Fraction(3)))
    yield having("negative steps", "no number of steps", steps=Formula("-H", lambda v: -1 * v["H"]))
    if part.statistic in LINEAR:
        yield from _of_bounds(part, having)
    else:
        for statistic in sorted({*STATISTICS, "step visits"} - {part.statistic}):
            yield having(f"statistic {statistic}", statistic=statistic)
        if part.law not in ("bits", "integers"):
            yield having("a stated sensitivity", stated=Fraction(1))
            if spec.values["H"] > 1 or spec.initial == "any" or "visits" not in part.statistic:  # something moves
                yield having("half the sensitivity", "too little is stated", stated=Fraction(1, 2))
    yield having("no statistic", "no statistic", statistic="nothing")
    yield having("unknown law", "no mechanism", law="uniform")
    for across in (("output",), "outputs", ("cell",), ("cells", "episodes"), None, 3):
        yield having(f"across {across!r}", "no vocabulary", across=across)
    if part.law not in ("bits", "integers") and part.statistic not in LINEAR:
        yield having("one draw for all cells", across=("cells",))
        yield having("one draw for all outputs", across=("outputs",))
    yield having("unknown group", "a group of no partition", group="nobody's")
    yield having("group of no type", "a group of no type", group=3)
    yield having("no name", "a release without a name", name="")
    yield having("name of no type", "a release without a name", name=None)


def _of_bounds(part: Part, having: Callable[..., Spec]) -> Iterator[Spec]:
    vector, target = part.bounds
    below = Formula("H-h-1", lambda v: v["H"] - v["h"] - 1)
    yield having("a bound on the vector below 0", "a bound below 0", bounds=(below, target))
    yield having("no bound on the vector", "no number", bounds=("one", target))
    yield having("statistic gram", statistic="gram", law="upper")
    yield having("statistic sums", statistic="sums", law="gaussian")
    yield having("statistic squares", statistic="squares", law="gaussian")
    if part.statistic != "gram":
        yield having("a bound on the target below 0", "a bound below 0", bounds=(vector, below))
        yield having("symmetric noise", "symmetric noise on no matrix", law="goe")
        for power in (-1, 0, "2", True, Fraction(1, 2)):
            yield having(f"power {power!r}", "no power", sizes=(power,))


def _being(spec: Spec, why: str, meaningless: str = "", **changes: Any) -> Spec:
    return replace(spec, mutation=why, meaningless=meaningless, **changes)


def _of_the_relation(spec: Spec) -> Iterator[Spec]:
    for relation in sorted({"replace", "add", "zero"} - {spec.relation}):
        yield _being(spec, f"relation {relation}", relation=relation, initial="any")
    yield _being(spec, "own relation", "no relation", relation="own")
    yield _being(spec, "relation as text", "no relation", relation="text")
    if spec.relation == "replace":
        for initial in ("free", "Fixed", None, 1):
            yield _being(spec, f"initial {initial!r}", "no vocabulary", initial=initial)
        yield _being(spec, "initial fixed", initial="fixed")
    for unit in ("group of 3 trajectories", "family", "", None, "two trajectories"):
        yield _being(spec, f"unit {unit!r}", "a unit that is not one trajectory", unit=unit)
    for model in sorted({"central", "local", "shuffle"} - {spec.model}):
        yield _being(spec, f"model {model}", model=model)
    for model in ("locally", "Central", None, ""):
        yield _being(spec, f"model {model!r}", "no vocabulary", model=model)
    for sees in (("others data",), "billboard", ("everything",), (None,)):
        yield _being(spec, f"sees {sees!r}", "no vocabulary", sees=sees)


def _of_the_whole(spec: Spec, rng: random.Random) -> Iterator[Spec]:
    if not any(p.statistic in LINEAR for p in spec.parts):
        yield _being(spec, "claim of another kind", claim=rng.choice(sorted({"zcdp", "pure", "approx"} - {spec.claim})))
    yield _being(spec, "negative claim", "a claim below 0", claimed=Formula("-1", lambda v: -1 * v["H"] / v["H"]))
    for wrong in ("little", None, 0.5, float("nan")):
        yield _being(spec, f"claim {wrong!r}", "no exact number", claimed=wrong)
    yield _being(spec, "claim of no kind", "no guarantee", claim="text")
    if spec.claim == "approx":
        for delta in (2, -1, 1, "much", None):
            yield _being(spec, f"delta {delta!r}", "no probability", delta=delta)
    if any(p.statistic in LINEAR for p in spec.parts):
        yield _being(spec, "a broken assumption", attained=Fraction(2))
        yield _being(spec, "an assumption that is kept", attained=Fraction(1, 2))
    yield _being(spec, "halved claim", claimed=Formula("half", lambda v, of=spec.claimed: of(v) / Fraction(2)))
    if len(spec.parts) > 1:
        yield _being(spec, "a release dropped", parts=spec.parts[:-1])
        yield _being(
            spec, "a name twice", "two releases of a name", parts=(spec.parts[0], spec.parts[0], *spec.parts[2:])
        )
    yield _being(spec, "a release twice", parts=(*spec.parts, replace(spec.parts[0], name="again")))
    yield _being(spec, "no release", "no release", parts=())
    for name, value in (("H", 0), ("H", Fraction(5, 2)), ("rho", -1), ("rho", 0.5), ("K", "many"), ("epsilon", None)):
        yield _being(spec, f"{name} = {value!r}", "no value of the parameter", values={**spec.values, name: value})
    yield _being(spec, "unknown parameter", "no parameter", values={**spec.values, "Rho": 1})
    for name, kind in (("H", "positive"), ("K", "real"), ("rho", "Positive"), ("S", None)):
        yield _being(spec, f"{name} of kind {kind!r}", "no kind of this symbol", kinds={name: kind})
    if spec.partitions:
        yield _being(spec, "no partition", "groups that nobody says are disjoint", partitions=())
        first = spec.partitions[0]
        yield _being(spec, "a group in two partitions", "a group twice", partitions=(*spec.partitions, first))
        yield _being(spec, "partition as text", "no partition", partitions="left")
