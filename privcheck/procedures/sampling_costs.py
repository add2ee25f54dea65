"""What a noisy statistic of a random part of the users costs, by how they are drawn.

A round's output is (1 − q)·Z + q·X in D and (1 − q)·Z + q·Y in D′: q is the probability that the round holds the user,
X and Y the law with the user's data of D and of D′, Z the law without. Two distances are charged: how far X and Y are
apart, and how near Z is to both. With Δ₀ a user's own contribution (zeroed out) and Δ₁ what replacing one user by
another moves:

| sampling | relation | apart | near |
| --- | --- | --- | --- |
| Poisson | add/remove, zero-out | Δ₀ | Δ₀ |
| Poisson | replace-one | Δ₁ | Δ₀ |
| Poisson, cut off | add/remove; zero-out; replace-one | max(Δ₀, Δ₁); Δ₀; Δ₁ | max(Δ₀, Δ₁) |
| a batch, with or without replacement | add/remove, replace-one | Δ₁ (one member for another) | Δ₁ |
| a batch, with or without replacement | zero-out (the user stays, and contributes nothing) | Δ₀ | max(Δ₀, Δ₁) |

*ρ*: Rényi divergences are jointly quasi-convex (van Erven & Harremoës 2014, Theorem 13), so a round costs at most what
X against Y does: in ρ, a supremum over all orders, sampling saves nothing. Of a batch with replacement the user may
fill all m draws. Two users of a Poisson sample are nearer, since Q ≥ (1 − q)Z everywhere: D_α(P‖Q) ≤ D_α(P‖Z) − ln(1 −
q) ≤ αρ₀ − ln(1 − q), with ρ₀ that of Δ₀, and ρ ≤ ρ₀ − ln(1 − q); written with max(1 − q, e^{−ρ₁}), beyond which ρ₁ is
less.

*ε of pure DP*: with x, y the ratios of X and Y to Z at an output, (1 − q + qx)/(1 − q + qy) grows with x ≤ e^near and
falls with y ≥ x·e^{−apart}: ε ≤ ln((1 − q + q·e^near)/(1 − q + q·e^{near − apart})). At near = apart that is ln(1 +
q(e^ε − 1)) (Balle, Barthe & Gaboardi 2018, Theorems 8 and 9).

*One batch an epoch* (shuffled epochs, balls in bins). Let t be the places of the user in all epochs and π those of all
others; both are drawn without a look at the data, with the same law in D and D′. Given (t, π) the two runs differ in
one noisy release an epoch, that of the user's batch, moved by Δ₀ (add/remove of a bin's user, zero-out) or Δ₁
(replace-one); later rounds may depend on it, which adaptive composition covers. So given (t, π) the outputs lose at
most what E outputs of the noise alone do, whatever (t, π) is. H_α is jointly convex: the mixture over (t, π) loses at
most the largest of these, which is that curve; in ρ by quasi-convexity. What the random order amplifies beyond
this is *not* proved here. A shuffled order has no neighbour with one user less: its batches have one size, so that who
comes later moves up into other batches. Without the user, a bin's other members stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from privcheck.charges import Charge, charge_of
from privcheck.errors import DeclarationError, ParameterError
from privcheck.procedures.base import Cost
from privcheck.relations import AddRemoveOne, Relation, ReplaceOne, ZeroOut, replaced, zeroed_out
from privcheck.releases import Release
from privcheck.schedules import Once, Placed, Poisson, Sampled, ShuffledEpochs, WithoutReplacement, WithReplacement
from privcheck.statistics.base import Sensitivity
from privcheck.symbols import Expr, at_most, exp, largest, log, maximum, minimum, same
from privcheck.unit import name_relation

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_POISSON: Final = "Zhu, Dong & Wang 2022: (1 − q)N(0, σ²) + qN(Δ, σ²) dominates; in ρ every user is in every sample"
_REPLACED: Final = "Kahane 1986: two opposite users of a Poisson sample dominate; in ρ every user is in every sample"
_BATCH: Final = "Balle, Barthe & Gaboardi 2018, Theorem 9: a batch in which one member is replaced; in ρ all are in it"
_DRAWS: Final = "Balle, Barthe & Gaboardi 2018, Theorem 10: k of the draws replaced; in ρ all draws are the one user's"
_CUT: Final = "a Poisson sample, or where it is cut off a batch of a fixed size; in ρ every user is in every sample"
_FULL: Final = (
    "without one of its users no batch of that size can be drawn; declare a smaller batch, ReplaceOne or ZeroOut"
)
_PLACED: Final = "joint convexity: given where the user is, one noisy release an epoch; no amplification is proved"


def sampling_schedule(release: Release) -> Sampled:
    """Returns the release's schedule, which samples."""
    assert isinstance(release.schedule, Sampled)
    return release.schedule


def check_sampling(release: Release) -> None:
    """Checks that a price is known for noise of the release's law on its samples.

    Raises:
        DeclarationError: None is.
    """
    law, where, schedule = release.mechanism.law.name, f"release {release.name!r}", sampling_schedule(release)
    few = isinstance(schedule, WithReplacement) or (isinstance(schedule, Poisson) and schedule.most is not None)
    known = ("gaussian",) if few else ("gaussian", "laplace")
    if law not in known:
        what = "a sample that is cut off, or drawn with replacement" if few else "a random sample"
        message = f"{where}: no dominating pair is known here for noise of the law {law!r} on {what}"
        remedy = "declare Gaussian noise" if few else "declare Gaussian or Laplace noise"
        raise DeclarationError(f"{message}; {remedy}, or a schedule that does not sample")
    if release.draw.name or release.draw.across:
        message = f"{where}: a sampled release draws its noise afresh in every round"
        raise DeclarationError(f"{message}; leave `draw` out")


def sampled_cost(release: Release, relation: Relation) -> Cost:
    """Returns the cost of all rounds: ρ as if every round held the user, the amplified ε of pure DP.

    What sampling saves at δ > 0 has no closed form: the accountant computes it.

    Raises:
        DeclarationError: The relation means nothing for that sampling.
    """
    check_relation(release, relation)
    schedule, mechanism = sampling_schedule(release), release.mechanism
    apart = _apart(release, relation)
    rho = largest(*(mechanism.zcdp(one) for one in apart))
    if isinstance(schedule, Poisson) and isinstance(relation, ReplaceOne) and schedule.most is None:
        own = mechanism.zcdp(_moved(release, zeroed_out(relation)))
        rho = minimum(rho, own - log(maximum(1 - schedule.rate, exp(-1 * rho))))
    squares = [mechanism.gdp_squared(one) for one in apart]
    square = None if any(one is None for one in squares) else largest(*(one for one in squares if one is not None))
    if isinstance(schedule, WithReplacement) and square is not None:  # m copies move it m times as far
        rho, square = rho * schedule.draws**2, square * schedule.draws**2
    pures = [mechanism.pure(one) for one in apart]
    pure = None if any(one is None for one in pures) else largest(*(one for one in pures if one is not None))
    if pure is not None and not isinstance(schedule, Placed):
        pure = _amplified(release, relation, pure)
    sensitivity = release.statistic.sensitivity(_charged_relation(release, relation))
    return Cost(
        sensitivity=sensitivity,
        charged=getattr(sensitivity, mechanism.law.norm),
        rho=(schedule.times * rho).simplified(),
        pure=None if pure is None else schedule.times * pure,
        mu_squared=None,
        dominating_mu_squared=None if square is None else schedule.times * square,  # hockey-sticks are jointly convex
        theorem=_theorem(schedule, relation),
    )


def sampled_events(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
    """Returns all rounds as one event; none where no user moves anything.

    Each is an upper bound, and tight where the accountant's event is: Poisson samples under every relation, batches
    without replacement in one round. A user who is zeroed out in a batch is charged as replaced, and a random place in
    an epoch as known.
    """
    schedule = sampling_schedule(release)
    between = relation if isinstance(relation, ReplaceOne) and not others_stand_in(schedule) else replaced(relation)
    own, swapped = (_charge(release, one, values) for one in (zeroed_out(relation), between))
    rounds = int(schedule.times.number(values))
    if not rounds or max(own.l1, swapped.l1) == 0:
        return ()
    both = isinstance(relation, ReplaceOne)
    if isinstance(schedule, Placed):
        once = _noise_events(release, swapped if both else own, relation)
    elif isinstance(schedule, Poisson):
        base = _noise_events(release, own, zeroed_out(relation))
        other = _noise_events(release, swapped, between) if both else ()
        once = _poisson_events(schedule, relation, values, own, (base, other))
    else:
        charged = _larger(own, swapped) if isinstance(relation, ZeroOut) else swapped
        base = _noise_events(release, charged, between if charged == swapped else None)
        once = _batch_events(schedule, relation, values, charged, base)
    return tuple(rounds * one for one in once)


def _poisson_events(
    schedule: Poisson,
    relation: Relation,
    values: Mapping[str, Fraction],
    own: Charge,
    noise: tuple[tuple[Event, ...], tuple[Event, ...]],
) -> tuple[Event, ...]:
    """Returns one round of a Poisson sample; `noise` is the output's events with a user removed, and replaced."""
    from privcheck.accounting.events import poisson, poisson_gaussian, truncated_poisson_gaussian

    name, q = name_relation(relation), min(1.0, schedule.rate.number(values, rounding="up"))
    if q == 0:
        return ()
    if schedule.most is not None and schedule.users is not None:
        users, most = int(schedule.users.number(values)), int(schedule.most.number(values))
        std, moved = own.scale, own.l2
        cut = truncated_poisson_gaussian(std=std, rate=q, users=users, most=most, sensitivity=moved, relation=name)
        return (cut,)
    if own.law == "gaussian":
        return (poisson_gaussian(std=own.scale, rate=q, sensitivity=own.l2, relation=name),)
    base, other = (_on_one_sample(events) for events in noise)
    assert base is not None
    return (poisson(event=base, rate=q, relation=name, replaced=other),)


def _batch_events(
    schedule: WithoutReplacement | WithReplacement,
    relation: Relation,
    values: Mapping[str, Fraction],
    charged: Charge,
    noise: tuple[Event, ...],
) -> tuple[Event, ...]:
    """Returns one round of a batch; `noise` is the output's event where one member is replaced."""
    from privcheck.accounting.events import with_replacement, without_replacement

    users, name = int(schedule.users.number(values)), name_relation(relation)
    if isinstance(schedule, WithReplacement):
        draws = int(schedule.draws.number(values))
        half = charged.l2 / 2
        return (with_replacement(std=charged.scale, users=users, draws=draws, sensitivity=half, relation=name),)
    batch, event = int(schedule.batch.number(values)), _on_one_sample(noise)
    assert event is not None
    if isinstance(relation, AddRemoveOne) and batch == users:
        raise ParameterError(f"a batch of all {users} users: {_FULL}", name="batch", given=batch)
    return (without_replacement(event=event, users=users, batch=batch, relation=name),)


def check_relation(release: Release, relation: Relation) -> None:
    """Checks that neighbours under the relation make sense for the sampling.

    Raises:
        DeclarationError: A user is added to, or removed from, a shuffled order, or a batch of all users.
    """
    schedule = sampling_schedule(release)
    full = isinstance(schedule, WithoutReplacement) and at_most(schedule.users, schedule.batch) is True
    if full and isinstance(relation, AddRemoveOne):
        raise DeclarationError(f"release {release.name!r}: {_FULL}")
    if isinstance(schedule, ShuffledEpochs) and isinstance(relation, AddRemoveOne):
        message = f"release {release.name!r}: without one user all who come later in a shuffled order move up"
        remedy = "declare ZeroOut or ReplaceOne, not AddRemoveOne, or BallsInBins(bins=…, epochs=…)"
        raise DeclarationError(f"{message}, into other batches; {remedy}")


def others_stand_in(schedule: Sampled) -> bool:
    """Returns whether another user is in a batch in the place of one who is not: batches have one size."""
    return isinstance(schedule, WithoutReplacement | WithReplacement)


def _charged_relation(release: Release, relation: Relation) -> Relation:
    """Returns the relation whose sensitivity is charged: a member of a batch who is removed makes room for another."""
    swapped = others_stand_in(sampling_schedule(release)) and isinstance(relation, AddRemoveOne)
    return replaced(relation) if swapped else relation


def _moved(release: Release, relation: Relation) -> Sensitivity:
    """Returns the sensitivity of one round, in the noise's coordinates, of a user who is in it."""
    return release.mechanism.whiten(release.statistic.sensitivity(relation))


def _apart(release: Release, relation: Relation) -> tuple[Sensitivity, ...]:
    """Returns how far the round's outputs are apart where it holds the user; the larger of two for a cut-off sample."""
    schedule = sampling_schedule(release)
    if isinstance(schedule, Poisson) and schedule.most is not None and isinstance(relation, AddRemoveOne):
        return _moved(release, zeroed_out(relation)), _moved(release, replaced(relation))
    return (_moved(release, _charged_relation(release, relation)),)


def _amplified(release: Release, relation: Relation, apart: Expr) -> Expr:
    """Returns ln((1 − q + q·e^near)/(1 − q + q·e^{near − apart})), of one round."""
    schedule, mechanism = sampling_schedule(release), release.mechanism
    own, swapped = (mechanism.pure(_moved(release, one)) for one in (zeroed_out(relation), replaced(relation)))
    assert own is not None
    assert swapped is not None
    if isinstance(schedule, Poisson):
        q, near = schedule.rate, own
    else:
        assert isinstance(schedule, WithoutReplacement)
        q, near = schedule.batch / schedule.users, largest(own, swapped) if isinstance(relation, ZeroOut) else swapped
    if same(near, apart):
        return log(1 + q * (exp(apart) - 1))
    return log((1 - q + q * exp(near)) / (1 - q + q * exp(near - apart)))


def _charge(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Charge:
    """Returns what one contribution is charged, once."""
    return charge_of(replace(release, schedule=Once()), _moved(release, relation), values)


def _larger(one: Charge, other: Charge) -> Charge:
    """Returns a charge of at least either in every norm."""
    return replace(one, l1=max(one.l1, other.l1), l2=max(one.l2, other.l2), linf=max(one.linf, other.linf))


def _noise_events(release: Release, cost: Charge, relation: Relation | None) -> tuple[Event, ...]:
    """Returns one noisy output as events; of no one relation's charge nothing is known of its steps."""
    stepwise = relation is not None and _moved(release, relation).stepwise
    return release.mechanism.law.of(cost).events(cost, stepwise=stepwise)


def _on_one_sample(events: tuple[Event, ...]) -> Event | None:
    """Returns one event of all of them: coordinates of one output see the same sample. None of none."""
    from privcheck.accounting.events.base import event, one_relation

    if len(events) <= 1:
        return events[0] if events else None
    pieces = [(piece, times * one.count) for one in events for piece, times in one.pieces]
    note = "; ".join(dict.fromkeys(one.note for one in events if one.note))
    return event("output", pieces, 1, note, of=" + ".join(map(str, events)), relation=one_relation(events))


def _theorem(schedule: Sampled, relation: Relation) -> str:
    if isinstance(schedule, Placed):
        return _PLACED
    if isinstance(schedule, Poisson):
        poisson = _REPLACED if isinstance(relation, ReplaceOne) else _POISSON
        return poisson if schedule.most is None else _CUT
    return _DRAWS if isinstance(schedule, WithReplacement) else _BATCH
