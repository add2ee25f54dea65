"""The declared part of a certificate: who is protected, releases, mechanisms, schedules and the claim."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from privcheck_check.terms import NAME, Term, read_term
from privcheck_check.values import Rejected, read_choice, read_fraction, read_list, read_object, read_text

RELATIONS = ("add-remove", "replace-one", "replace-one-same-start", "zero-out")
MODELS = ("central", "joint", "local", "shuffle")
CELLS = ("action", "next", "state")
MAX_NOISE = ("exponential", "gumbel", "laplace")  # of noisy maxima
WEIGHTS = {  # of one step's entry: offset + slope · reward, the reward in [0, 1]
    "one": (Fraction(1), Fraction(0)),
    "reward": (Fraction(0), Fraction(1)),
    "cost": (Fraction(1), Fraction(-1)),
    "centred-reward": (Fraction(-1, 2), Fraction(1)),
}
# fields of each kind of statistic, mechanism, schedule and claim: those that are terms, those that are not
STATISTICS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "table": (("steps", "states", "actions"), ("cells", "weight", "pooled")),
    "linear": (("steps", "feature", "target", "weight"), ("features", "part", "signed")),
    "bits": (("bits", "ones"), ()),
    "bounded": (("l1", "l2"), ()),
    "stated": (("l1", "l2"), ()),
    "selection": (("moves",), ()),
}
MECHANISMS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "laplace": (("scale",), ()),
    "discrete-laplace": (("scale",), ()),
    "gaussian": (("variance",), ()),
    "discrete-gaussian": (("variance",), ()),
    "gaussian-matrix": (("variance",), ("diagonal",)),
    "randomised-response": (("keep", "answers"), ()),
    "noisy-max": (("scale",), ("noise", "one_sided")),
    "sparse-vector": (("threshold_scale", "query_scale", "positives", "queries"), ("one_sided",)),
    "adaptive-sparse-vector": (
        ("threshold_scale", "top_scale", "middle_scale", "margin", "budget", "queries"),
        ("one_sided",),
    ),
    "gaussian-max": (("variance", "candidates"), ("one_sided",)),
    "gaussian-sparse-vector": (("threshold_variance", "query_variance", "positives", "queries"), ("one_sided",)),
    "theorem": (("cost",), ("currency", "theorem")),
    "shuffled-bits": (("noise_bits", "chance"), ()),
    "shuffled-integers": (("noise_bits", "chance", "users"), ()),
}
SCHEDULES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "once": ((), ()),
    "local": ((), ()),
    "disjoint": ((), ()),
    "repeat": (("times",), ("noise",)),
    "tree": (("leaves",), ()),
    "sampled": (("times", "rate"), ()),
}
STEPWISE = ("feature", "target", "weight")  # terms of `linear` that may use the step h
CLAIMS: Mapping[str, tuple[str, ...]] = {
    "pure": ("epsilon",),
    "zcdp": ("rho",),
    "gdp": ("mu",),
    "approx": ("epsilon", "delta"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: at least `least` (integers) or above it where that is 0 (reals), at most `most`; its value."""

    integer: bool
    least: Fraction
    most: Fraction | None
    value: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A statistic, mechanism, schedule or claim: its kind, its terms and its other fields."""

    kind: str
    terms: Mapping[str, Term]
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A statistic with its mechanism and schedule; `part` names the public part of the users that it is about.

    `sample` names the random sample that it shares with others, if it does; `shared`: one draw of noise is added to all
    cells of a value, or to all values.
    """

    name: str
    statistic: Part
    mechanism: Part
    schedule: Part
    part: str | None
    sample: str
    shared: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """All that a verdict is about."""

    name: str
    relation: str
    who: str
    trajectories: Term
    model: str
    parameters: Mapping[str, Parameter]
    releases: tuple[Release, ...]
    claim: Part

    @property
    def values(self) -> dict[str, Fraction]:
        """The parameters' values."""
        return {name: parameter.value for name, parameter in self.parameters.items()}


def _parameter(value: object, name: str) -> Parameter:
    rule = f"declared: parameter {name}"
    found = read_object(value, rule, ("kind", "least", "value"), ("most",))
    integer = read_choice(found["kind"], rule, ("integer", "real")) == "integer"
    least = read_fraction(found["least"], rule, least=0)
    most = read_fraction(found["most"], rule, above=0) if "most" in found else None
    number = read_fraction(found["value"], rule, least=least, most=most)
    if not integer and not number:
        raise Rejected(rule, "a real parameter is positive")
    if integer and (number.denominator != 1 or least.denominator != 1):
        raise Rejected(rule, "expected integers")
    return Parameter(integer=integer, least=least, most=most, value=number)


def _part(
    value: object,
    rule: str,
    kinds: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
    symbols: set[str],
    key: str = "kind",
) -> Part:
    if not isinstance(value, dict) or key not in value:
        raise Rejected(rule, f"without {key!r}")
    kind = read_choice(value[key], rule, kinds)
    terms, fields = kinds[kind]
    found = read_object(value, rule, (key, *terms, *fields))
    return Part(
        kind=kind,
        terms={each: read_term(found[each], rule, symbols | ({"h"} if each in STEPWISE else set())) for each in terms},
        fields={each: found[each] for each in fields},
    )


def _statistic(value: object, rule: str, symbols: set[str]) -> Part:
    part = _part(value, rule, STATISTICS, symbols)
    fields = part.fields
    if part.kind == "table":
        cells = [read_choice(each, rule, CELLS) for each in read_list(fields["cells"], rule, least=1, most=3)]
        if len(set(cells)) < len(cells):
            raise Rejected(rule, "a cell named twice")
        read_choice(fields["weight"], rule, WEIGHTS)
    if part.kind == "linear":
        read_text(fields["features"], rule, most=80)
        read_choice(fields["part"], rule, ("outer", "sum"))
    for flag in ("pooled", "signed"):
        if flag in fields and not isinstance(fields[flag], bool):
            raise Rejected(rule, f"{flag} is true or false")
    return part


def _release(value: object, symbols: set[str]) -> Release:
    found = read_object(
        value, "declared: release", ("name", "statistic", "mechanism", "schedule"), ("part", "sample", "shared")
    )
    name = read_text(found["name"], "declared: release", most=80)
    rule = f"declared: {name}"
    mechanism = _part(found["mechanism"], rule, MECHANISMS, symbols, "law")
    schedule = _part(found["schedule"], rule, SCHEDULES, symbols)
    if "diagonal" in mechanism.fields:
        read_fraction(mechanism.fields["diagonal"], rule, above=0)
    if "one_sided" in mechanism.fields and not isinstance(mechanism.fields["one_sided"], bool):
        raise Rejected(rule, "one_sided is true or false")
    if "theorem" in mechanism.fields:
        read_text(mechanism.fields["theorem"], rule)
        read_choice(mechanism.fields["currency"], rule, ("pure", "zcdp", "gdp"))
    if mechanism.kind == "noisy-max":
        read_choice(mechanism.fields["noise"], rule, MAX_NOISE)
    if "noise" in schedule.fields:
        read_choice(schedule.fields["noise"], rule, ("fresh", "shared"))
    if "sample" in found and schedule.kind != "sampled":
        raise Rejected(rule, "a sample goes with the schedule 'sampled'")
    if found.get("sample") == "":
        raise Rejected(rule, "a sample has a name")
    if "shared" in found:
        outputs = schedule.kind in ("disjoint", "local", "tree")
        read_choice(found["shared"], rule, ("cells", "outputs") if outputs else ("cells",))
    return Release(
        name=name,
        statistic=_statistic(found["statistic"], rule, symbols),
        mechanism=mechanism,
        schedule=schedule,
        part=read_text(found["part"], rule, most=80) if "part" in found else None,
        sample=read_text(found["sample"], rule, most=80) if "sample" in found else "",
        shared=str(found.get("shared", "")),
    )


def read_declared(value: object) -> Declared:
    """The declared part, every field of it checked.

    Raises:
        Rejected: a field missing, unknown or meaningless.
    """
    rule = "declared"
    fields = ("name", "source", "relation", "unit", "model", "parameters", "releases", "claim")
    found = read_object(value, rule, fields)
    read_text(found["source"], rule)
    entries = found["parameters"]
    if not isinstance(entries, dict) or len(entries) > 40 or "h" in entries:
        raise Rejected(rule, "expected an object of at most 40 parameters, none called h")
    if not all(NAME.fullmatch(name) for name in entries):
        raise Rejected(rule, "a parameter's name is letters, digits and _")
    parameters = {name: _parameter(each, name) for name, each in entries.items()}
    symbols = set(parameters)
    unit = read_object(found["unit"], "declared: unit", ("who", "trajectories"))
    releases = tuple(_release(each, symbols) for each in read_list(found["releases"], rule, least=1, most=200))
    if len({each.name for each in releases}) < len(releases):
        raise Rejected(rule, "two releases of one name")
    claim = found["claim"]
    if not isinstance(claim, dict):
        raise Rejected("declared: claim", "expected an object")
    read_text(claim.get("source"), "declared: claim", most=200)
    claim_fields: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        kind: (terms, ("source",)) for kind, terms in CLAIMS.items()
    }
    return Declared(
        name=read_text(found["name"], rule, most=200),
        relation=read_choice(found["relation"], rule, RELATIONS),
        who=read_text(unit["who"], rule, most=80),
        trajectories=read_term(unit["trajectories"], "declared: unit", symbols),
        model=read_choice(found["model"], rule, MODELS),
        parameters=parameters,
        releases=releases,
        claim=_part(claim, "declared: claim", claim_fields, symbols, "currency"),
    )
