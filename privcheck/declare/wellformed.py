"""Well-formedness of declarations: conditions on single fields, and consistency between fields.

Each check refuses one kind of error; its message names the release, the value and the remedy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.mechanisms.checks import check_charges
from privcheck.declare.procedures import (
    OF_SEVERAL,
    OURS,
    Facts,
    MatrixMechanism,
    OnSample,
    Procedure,
    SharedSample,
    sample_of,
)
from privcheck.declare.procedures.sampling_costs import sampling_of
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.releases import Assumption, Release
from privcheck.declare.schedules import (
    BallsInBins,
    Batches,
    EveryEpisode,
    Once,
    PerUser,
    Poisson,
    Sample,
    Sampled,
    Tree,
    WithoutReplacement,
    WithReplacement,
    public_facts,
)
from privcheck.declare.statements import Origin, take_public
from privcheck.declare.statistics import FeatureSums, GramMatrices, Sensitivity
from privcheck.declare.statistics.sensitivities import (
    check_zeros,
    is_derived,
    sensitivity_conditions,
    sensitivity_of,
    shape_of,
    tabular_sizes,
)
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.guarantees import guarantee_conditions
from privcheck.terms.parameters import (
    Condition,
    Parameter,
    check_at,
    function,
    instance,
    is_proved,
    one_of,
    several,
    text,
)
from privcheck.terms.symbols import COUNTS, Expr, expression, same

if TYPE_CHECKING:
    from privcheck.declare.declaration import Declaration

AND = " and "  # joins the names of the groups, one of each partition, that a user is in
MODELS = ("central", "local", "shuffle")


def check_fields(declaration: Declaration) -> None:
    """Check the types of all fields, that names are distinct, and the closed vocabularies.

    Raises:
        DeclarationError: A field has the wrong type or is empty, or a name occurs twice.
    """
    text("a declaration's name", declaration.name)
    owner = declaration.name
    text(f"{owner}, title", declaration.title, empty=True)
    text(f"{owner}, source", declaration.source, empty=True)
    instance(f"{owner}, relation", declaration.relation, (ReplaceOne, AddRemoveOne, ZeroOut))
    instance(f"{owner}, origin", declaration.origin, (Origin,), none=True)
    one_of(f"{owner}, model", declaration.model, MODELS)
    for name, kind in (("parameters", Parameter), ("assumptions", Assumption)):
        several(f"{owner}, {name}", getattr(declaration, name), kind)
    partitions: object = declaration.partitions
    if not isinstance(partitions, tuple | list):
        message = f"{owner}, partitions: expected a tuple of tuples, got {partitions!r:.100}"
        raise DeclarationError(f"{message}; write partitions=(('first half', 'second half'),)")
    remedy = "write candidates=lambda values: [(first, second), …]"
    function(f"{owner}, candidates", declaration.candidates, remedy)
    remedy = "write records=lambda values, rng: …, one user's data"
    function(f"{owner}, records", declaration.records, remedy)
    for what, names in (
        ("releases", [one.name for one in declaration.releases] + _shared_names(declaration)),
        ("parameters", [parameter.name for parameter in declaration.parameters]),
    ):
        if len(set(names)) != len(names) or (what == "releases" and not names):
            raise DeclarationError(f"{owner}: expected {what} with distinct names, got {names}")


def _shared_names(declaration: Declaration) -> list[str]:
    return [one.name for one in declaration.joined if isinstance(one, SharedSample)]


def check_partitions(declaration: Declaration) -> None:
    """Check that every release's group is in exactly one partition, and that its membership is public.

    Raises:
        DeclarationError: A group is in no partition, or in two; or its members depend on data, or on earlier outputs.
    """
    owner = declaration.name
    several(f"{owner}, partitions", declaration.partitions, tuple)
    for partition in declaration.partitions:
        for group in _group_names(owner, partition):
            text(f"{owner}, partitions", group)
            if AND in group:
                message = f"{owner}, partitions: expected groups' names without {AND!r}, got {group!r}"
                raise DeclarationError(f"{message}; it joins the groups of crossing partitions")
    named = [str(group) for partition in declaration.partitions for group in partition]
    if twice := sorted({group for group in named if named.count(group) > 1}):
        message = f"expected distinct names of groups in all partitions, got {', '.join(map(repr, twice))} twice"
        raise DeclarationError(f"{owner}: {message}; two partitions cross, one user is in a group of each")
    for release in declaration.releases:
        if release.users and release.users not in named:
            message = (
                f"release {release.name!r} is about the users {release.users!r}, but it is not stated which groups are "
                f"disjoint; give the declaration `partitions`, such as partitions=(({release.users!r}, …),)"
            )
            raise DeclarationError(f"{owner}: {message}")


def _group_names(owner: str, partition: tuple[object, ...]) -> list[str]:
    sound = "let the group follow from facts known beforehand, public(…, why=…), such as the parity of an index, or "
    sound += "leave the partition out: every release is then charged to all users"
    chosen = "a user's group, and so the price, would depend on earlier losses"
    where = f"{owner}, partitions"
    names = [take_public(where, group, sound=sound, billboard=chosen).value for group in partition]
    several(where, names, str)
    return names


def check_facts(declaration: Declaration) -> None:
    """Check that facts derived from earlier outputs name releases of the declaration.

    Raises:
        DeclarationError: A fact names an unknown release.
    """
    known = [one.name for one in declaration.releases]
    for release in declaration.statistics_released:
        for what, fact in public_facts(release.schedule):
            if unknown := [name for name in fact.of if name not in known]:
                message = f"{declaration.name}: release {release.name!r}: {what} is said to follow from earlier outputs"
                message += f" of {', '.join(map(repr, unknown))}, but there is no such release"
                raise DeclarationError(f"{message}; expected one of {', '.join(map(repr, known))}")


def check_model(declaration: Declaration) -> None:
    """Check that relation, schedules and noise are those of the model.

    local: only the users hold data. Each user sends outputs of their own data (`PerUser`), and one input is replaced
    (`ReplaceOne`) by any other, unless the author says that the first step is the same. shuffle: each user's messages
    pass the shuffler once, and all noise is the users' own bits (`ShuffledBits`). central: a curator holds the data,
    and neither of these two is allowed.

    Raises:
        DeclarationError: They contradict the model.
    """
    model, owner = declaration.model, declaration.name
    if model == "local" and not isinstance(declaration.relation, ReplaceOne):
        message = f"model 'local' compares any two inputs of a user, got the relation {declaration.relation.words!r}"
        raise DeclarationError(f"{owner}: {message}; declare ReplaceOne")
    for one in declaration.others:
        facts: object = one.facts
        if not isinstance(facts, Facts):
            message = f"{owner}: {one.name!r}: expected facts that are Facts(…), got {facts!r:.100}"
            raise DeclarationError(f"{message}; return privcheck.declare.procedures.Facts(words=…, output=…, …)")
        if model not in facts.models:
            message = f"{owner}: {one.name!r} ({facts.words}) makes sense in model"
            message += f" {' or '.join(map(repr, facts.models))}, got model {model!r}"
            raise DeclarationError(f"{message}; declare model={facts.models[0]!r}")
    for release in declaration.noisy:
        where, schedule = f"{owner}: release {release.name!r}", release.schedule
        shuffled = release.mechanism.law.shuffled
        if model == "local" and not isinstance(schedule, PerUser):
            message = f"in model 'local' no curator sees the data of several users, got {schedule.words!r}"
            raise DeclarationError(f"{where}: {message}; declare schedule=PerUser(), or model='central'")
        if model != "local" and isinstance(schedule, PerUser):
            message = f"{schedule.words!r} is the local model, got model {model!r}"
            raise DeclarationError(f"{where}: {message}; declare model='local', or schedule=Once()")
        if model == "shuffle" and not (shuffled and isinstance(schedule, Once | Batches)):
            got = schedule.words if shuffled else release.mechanism.words
            message = f"in model 'shuffle' all noise is users' bits, whose messages pass the shuffler once, got {got!r}"
            raise DeclarationError(f"{where}: {message}; declare ShuffledBits in Once() or Batches(sizes=…)")
        if model == "shuffle" and isinstance(schedule, Batches) and schedule.sizes is None:
            message = "the noise of a batch comes from its own users, but their number is not stated"
            raise DeclarationError(f"{where}: {message}; declare Batches(…, sizes=lambda values: (…,))")
        if model != "shuffle" and shuffled:
            message = f"noise bits of users behind a shuffler need model='shuffle', got model {model!r}"
            raise DeclarationError(f"{where}: {message}")


def check_order(declaration: Declaration) -> None:
    """Check that no user is added or removed if the number or the order of users is public.

    Raises:
        DeclarationError: The relation adds or removes a user, and their number or order is public.
    """
    if not isinstance(declaration.relation, AddRemoveOne):
        return
    if any(r.mechanism.law.shuffled for r in declaration.noisy):
        message = (
            "the number of messages that leave a shuffler is public: declare ReplaceOne or ZeroOut, not AddRemoveOne"
        )
        raise DeclarationError(f"{declaration.name}: {message}")
    if any(isinstance(r.schedule, Tree | EveryEpisode | Batches) for r in declaration.noisy):
        message = "without one user all later users move up, into other outputs: declare ZeroOut or ReplaceOne"
        raise DeclarationError(f"{declaration.name}: {message}, not AddRemoveOne, where users have an order")


def check_trajectories(declaration: Declaration) -> None:
    """Check that releases cover all data of a user if the relation has several trajectories per user.

    In one output, or in disjoint batches of users, all of a user's trajectories change the same sum.

    Raises:
        DeclarationError: A schedule, a procedure or the model covers single trajectories only, or a tree has another
            number of them.
    """
    relation = declaration.relation
    for release in declaration.noisy:
        schedule = release.schedule
        if isinstance(schedule, Tree) and not same(schedule.leaves_of_a_user, relation.trajectories):
            message = (
                f"a leaf of a tree holds one trajectory: a user with {relation.trajectories} of them is in as many,"
            )
            message = f"{declaration.name}: release {release.name!r}: {message} got participations="
            remedy = "declare the relation with `trajectories=` and the Tree with `participations=` of one number"
            raise DeclarationError(f"{message}{schedule.leaves_of_a_user}; {remedy}")
    if relation.trajectories == expression(1):
        return
    owner, several = declaration.name, f"{relation.trajectories} trajectories of a user"
    if declaration.model == "shuffle":
        message = f"model 'shuffle': every user sends the messages of one trajectory, got {relation.words!r}"
        raise DeclarationError(f"{owner}: {message}; declare the relation for one, and claim k·ε of k apart")
    for procedure in declaration.joined:
        if type(procedure) in OURS and type(procedure) not in OF_SEVERAL:
            message = f"{owner}: {procedure.name!r} is priced for one record of a user, got {relation.words!r}"
            raise DeclarationError(f"{message}; declare the relation for one, and claim k·ε of k apart")
    for release in declaration.noisy:
        where, schedule = f"{owner}: release {release.name!r}", release.schedule
        if isinstance(schedule, EveryEpisode):
            message = (
                f"no bound is derived for {several} in outputs that each contain all earlier data ({schedule.words})"
            )
            remedy = "declare Tree(participations=…), Batches, one output, or MatrixMechanism(encoder=prefix_sums(…))"
            raise DeclarationError(f"{where}: {message}; {remedy}")


def check_draws(declaration: Declaration) -> None:
    """Check that a named draw is shared by at least two releases with noise of one law and spread.

    Raises:
        DeclarationError: A draw belongs to one release only, or to noise of different laws or spreads.
    """
    for name in {release.draw.name for release in declaration.noisy} - {""}:
        sharing = [release for release in declaration.noisy if release.draw.name == name]
        if len(sharing) == 1:
            message = f"release {sharing[0].name!r}: the draw {name!r} is shared with no other release"
            raise DeclarationError(f"{declaration.name}: {message}; leave its name empty, or correct it")
        if len({(release.mechanism.law.name, release.mechanism.spread) for release in sharing}) > 1:
            names = ", ".join(repr(release.name) for release in sharing)
            message = f"releases {names}: one draw {name!r} of noise of different laws or spreads"
            raise DeclarationError(f"{declaration.name}: {message}; give each a draw of its own")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Sampling of a release that uses a random part of the users: its group, its `Sample` if any, and its numbers."""

    name: str
    users: str
    sample: Sample | None
    fresh: bool
    numbers: tuple[str, tuple[Expr, ...]]


def check_samples(declaration: Declaration) -> None:
    """Check that any two outputs that may use the same sample declare whether they do.

    Two releases of one sample have another cost than two with separate samples, and neither cost is always the larger.
    So releases with samples of the same law either refer to one `Sample`, which is priced once, or are declared
    `fresh`.

    Raises:
        DeclarationError: Neither is declared, or both are; or one sample is shared by several groups, or samples
            trajectories although a user has several of them; or `fresh` is set without sampling.
    """
    owner = declaration.name
    for release in declaration.statistics_released:
        if release.fresh and not isinstance(release.schedule, Sampled):
            message = f"release {release.name!r}: fresh=True is for samples, got {release.schedule.words!r}"
            raise DeclarationError(f"{owner}: {message}; leave it out: every output has its own noise")
    drawn = [_drawn(one) for one in declaration.releases if _sees_part(one)]
    for one in drawn:
        if one.sample is not None and one.sample.of == "trajectory":
            several = declaration.relation.trajectories
            if several != expression(1):
                message = f"{one.name!r}: trajectories are sampled one by one, and a user has up to {several} of them"
                remedy = (
                    'nothing is derived for that; declare Sample(…, of="user"), which samples users with all of them'
                )
                raise DeclarationError(f"{owner}: {message}: {remedy}")
    for first, second in itertools.combinations(drawn, 2):
        names = f"{first.name!r} and {second.name!r}"
        if first.sample is not None and first.sample is second.sample:
            if first.fresh or second.fresh:
                message = f"{names} refer to one sample, but fresh=True says that one of them has its own sample"
                raise DeclarationError(f"{owner}: {message}; leave fresh out, or give it another Sample")
            if first.users != second.users:
                message = f"{names} refer to one sample but are about the users {first.users!r} and {second.users!r}"
                raise DeclarationError(f"{owner}: {message}; declare a Sample for each group")
        elif not (first.fresh or second.fresh or _disjoint(declaration, first, second)) and _alike(first, second):
            message = f"{names} have samples with the same law, but it is not stated whether they are the same sample"
            remedy = "give both the one object, batch = Sample(Poisson(rate=…)) in schedule=batch (OnSample(sample="
            remedy += "batch)), which prices them together; or set fresh=True on one whose sample is drawn"
            raise DeclarationError(f"{owner}: {message}; {remedy} independently of all others")


def _sees_part(one: Procedure) -> bool:
    if isinstance(one, MatrixMechanism):
        return one.sampled
    return isinstance(one, OnSample) or (isinstance(one, Release) and isinstance(one.schedule, Sampled))


def _drawn(one: Procedure) -> _Drawn:
    """Sampling of a release, by its numbers except for the number of rounds."""
    if isinstance(one, MatrixMechanism):
        drawn = ("rate", (one.rate,)) if one.rate is not None else ("bins", (one.bins or expression(1),))
        return _Drawn(name=one.name, users=one.users, sample=None, fresh=one.fresh, numbers=drawn)
    assert isinstance(one, Release | OnSample)
    sampling = one.sample.sampling if isinstance(one, OnSample) else sampling_of(one.schedule)
    if isinstance(sampling, Poisson):
        numbers: tuple[str, tuple[Expr, ...]] = ("rate", (sampling.rate,))
    elif isinstance(sampling, WithoutReplacement):
        numbers = ("batch", (sampling.users, sampling.batch))
    elif isinstance(sampling, WithReplacement):
        numbers = ("draws", (sampling.users, sampling.draws))
    else:
        numbers = ("bins" if isinstance(sampling, BallsInBins) else "order", (sampling.batches,))
    return _Drawn(name=one.name, users=one.users, sample=sample_of(one), fresh=one.fresh, numbers=numbers)


def _alike(first: _Drawn, second: _Drawn) -> bool:
    """Whether two samples may have the same law: one kind, and no number certainly different; False if all are in."""
    (kind, one), (other_kind, other) = first.numbers, second.numbers
    if kind == "rate" and one[0] == other[0] == expression(1):
        return False
    return kind == other_kind and all(_may_equal(a, b) for a, b in zip(one, other, strict=True))


def _may_equal(one: Expr, other: Expr) -> bool:
    """Whether two numbers may be equal for some parameters, as far as is known."""
    difference = one - other
    return bool(difference.symbols) or difference.rational({}) == 0


def _disjoint(declaration: Declaration, first: _Drawn, second: _Drawn) -> bool:
    """Whether no user is in both: two groups of one partition."""
    groups = [{str(group) for group in partition} for partition in declaration.partitions]
    return first.users != second.users and any({first.users, second.users} <= among for among in groups)


def check_symbols(declaration: Declaration) -> None:
    """Check that every symbol has a parameter, with a range no wider than the symbol's.

    Raises:
        DeclarationError: A symbol has no parameter, or one of a wider range; or `h` or a batch's `n` is a parameter.
    """
    owner, known = declaration.name, {p.name: p for p in declaration.parameters}
    if "h" in known:
        raise DeclarationError(f"{owner}: h is the step in the bounds of columns: give the parameter h another name")
    if "n" in known and any(r.batch_sizes is not None for r in declaration.noisy):
        message = "n is the number of users in a batch, which the schedules set: give the parameter n another name"
        raise DeclarationError(f"{owner}: {message}")
    used, counts = set[str](), set(declaration.relation.trajectories.symbols)
    used |= counts
    for condition in conditions(declaration):
        free = {"h"} if condition.steps is not None else set()
        free |= {"n"} if condition.sizes is not None else set()
        used |= condition.of.symbols - free
        counts |= condition.of.counts - free
    for other in declaration.others:
        facts = other.facts
        _check_constants(other.name, facts.conditions)
        used |= facts.symbols
        for one in (facts.spread, facts.rounds, *_norms(other.cost(declaration.relation).sensitivity)):
            used |= one.symbols
            counts |= one.counts
    for release in declaration.noisy:
        used |= release.symbols
        for norm in _norms(_sensitivity(declaration, release)):
            used |= norm.symbols
            counts |= norm.counts
    if unknown := sorted(used - known.keys()):
        raise DeclarationError(f"{owner}: no Parameter is declared for {', '.join(unknown)}")
    for name, parameter in known.items():
        # a proof for all values of a symbol must cover every value that its parameter takes
        kinds = ("count",) if name in COUNTS or name in counts else ("count", "positive", "probability")
        if parameter.kind not in kinds:
            message = f"{owner}: {name} stands for a symbol of kind {' or '.join(kinds)}"
            raise DeclarationError(f"{message}; its Parameter is of kind {parameter.kind}, expected {kinds[0]}")


def _check_constants(name: str, numbers: tuple[Condition, ...]) -> None:
    """Check the numbers without parameters, before computing a price that divides by them."""
    for condition in numbers:
        if not condition.of.symbols:
            is_proved(condition if condition.where else condition.at(f"release {name!r}"), ())


def conditions(declaration: Declaration) -> Iterator[Condition]:
    """Yield all numbers of a declaration, with the condition on each."""
    several = Condition(what="trajectories of a user", of=declaration.relation.trajectories, domain="count")
    yield several.at(f"{declaration.name}: the relation")
    for condition in guarantee_conditions(declaration.claim.guarantee):
        yield condition.at(f"{declaration.name}: the claim")
    for one in declaration.releases:
        for condition in one.conditions if isinstance(one, Release) else one.facts.conditions:
            yield condition if condition.where else condition.at(f"release {one.name!r}")
        if isinstance(one, Release):
            for condition in sensitivity_conditions(one.statistic, _sensitivity(declaration, one)):
                yield condition.at(f"release {one.name!r}")
    for assumption in declaration.assumptions:
        yield from assumption.conditions


def check_values(declaration: Declaration, values: Mapping[str, Fraction]) -> None:
    """Check the conditions that depend on the values of the parameters.

    Raises:
        ParameterError: A number is invalid at these values, or the noise of a batch is for another number of users.
    """
    for condition in declaration.open_conditions:
        check_at(condition, values)
    _check_shapes(declaration, values)
    for release in declaration.noisy:
        where = f"release {release.name!r}"
        if release.batch_sizes is not None:
            release.batch_sizes(values)
        if not is_derived(release.statistic):
            shape_of(where, release.statistic, values)
            check_zeros(where, _sensitivity(declaration, release), values)
        declared = getattr(release.mechanism, "declared", release.mechanism)
        if release.batch_sizes is None or not isinstance(declared, ShuffledBits):
            continue
        for setting in release.settings(values):
            if (users := declared.users.rational(setting)) != setting["n"]:
                message = f"{where}: expected the noise of the {setting['n']} users of a batch, got that of {users}"
                raise ParameterError(f"{message}; declare ShuffledBits(users=n)", name="users", given=users)


def _check_shapes(declaration: Declaration, values: Mapping[str, Fraction]) -> None:
    """Check that all statistics fit one user's data: the same (H, S, A), and vectors of the same lengths.

    Raises:
        ParameterError: Two statistics have different sizes.
    """
    sizes: dict[str, dict[str, tuple[int, ...]]] = {}
    for release in declaration.noisy:
        statistic = release.statistic
        if isinstance(statistic, GramMatrices | FeatureSums):
            shape = statistic.shape(values)
            sizes.setdefault(f"vectors {statistic.vector.name!r}", {})[release.name] = (shape[-1],)
            sizes.setdefault("trajectories of so many steps", {})[release.name] = shape[:1]
        elif (three := tabular_sizes(statistic, values)) is not None:
            sizes.setdefault("trajectories of (H, S, A)", {})[release.name] = three
            sizes.setdefault("trajectories of so many steps", {})[release.name] = three[:1]
    for what, by_name in sizes.items():
        if len(set(by_name.values())) > 1:
            told = ", ".join(f"{name!r} {size}" for name, size in by_name.items())
            message = f"{declaration.name}: expected {what} of one size in all releases, got {told}; a user has one"
            raise ParameterError(message, given=told)


def _sensitivity(declaration: Declaration, release: Release) -> Sensitivity:
    where = f"release {release.name!r}"
    sensitivity = sensitivity_of(where, release.statistic, release.contribution(declaration.relation))
    check_charges(where, release.mechanism, sensitivity)
    release.mechanism.whiten(sensitivity)
    return sensitivity


def _norms(sensitivity: Sensitivity) -> tuple[Any, ...]:
    return sensitivity.l1, sensitivity.l2, sensitivity.linf
