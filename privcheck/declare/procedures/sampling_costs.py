"""Cost of a noisy statistic of a random part of the users, by method of sampling.

A round's output is (1 − q)·Z + q·X in D and (1 − q)·Z + q·Y in D′: q is the probability that the round contains the
user, X and Y are the laws with the user's data of D and of D′, Z the law without. Two distances are charged: *apart*,
between X and Y, and *near*, from Z to both. With Δ₀ a user's own contribution (zeroed out) and Δ₁ the change by
replacing one user with another:

| sampling | relation | apart | near |
| --- | --- | --- | --- |
| Poisson | add/remove, zero-out | Δ₀ | Δ₀ |
| Poisson | replace-one | Δ₁ | Δ₀ |
| Poisson, capped | add/remove; zero-out; replace-one | max(Δ₀, Δ₁); Δ₀; Δ₁ | max(Δ₀, Δ₁) |
| a batch, with or without replacement | add/remove, replace-one | Δ₁ (one member for another) | Δ₁ |
| a batch, with or without replacement | zero-out (the user stays, and contributes nothing) | Δ₀ | max(Δ₀, Δ₁) |

Lemma sampled-rho: A round (1 − q)Z + qX against (1 − q)Z + qY costs at most what X against Y does in ρ: a supremum over
all orders, without amplification by sampling. Source: van Erven & Harremoës 2014, Theorem 13. Proof: Rényi divergences
are jointly quasi-convex.

In a batch with replacement the user may fill all m draws.

Lemma replaced-rho: For two users of a Poisson sample, with ρ₀ the ρ of Δ₀, ρ ≤ ρ₀ − ln(1 − q). Proof: they are nearer,
since Q ≥ (1 − q)Z everywhere: D_α(P‖Q) ≤ D_α(P‖Z) − ln(1 − q) ≤ αρ₀ − ln(1 − q). It is written with max(1 − q,
e^{−ρ₁}), beyond which ρ₁ is smaller. If a round is ε-DP, it is also ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4),
with the amplified ε.

Lemma sampled-pure: With *near* the ε of X and of Y against Z and *apart* that of X against Y, a round's ε of pure DP is
at most ln((1 − q + q·e^near)/(1 − q + q·e^{near − apart})), at near = apart ln(1 + q(e^ε − 1)). Source: for near =
apart Balle, Barthe & Gaboardi 2018, Theorems 8 and 9. Proof: with x, y the ratios of X and Y to Z at an output, (1 − q
+ qx)/(1 − q + qy) increases in x ≤ e^near and decreases in y ≥ x·e^{−apart}.

Lemma one-batch-an-epoch: E shuffled epochs, or epochs of balls in bins, lose at most what E releases with the noise
alone do, each changed by Δ₀ (add/remove of a bin's user, zero-out) or Δ₁ (replace-one). Proof: let t be the positions
of the user in all E epochs and π those of all others; both are drawn independently of the data, with the same law in D
and D′. Given (t, π) the two runs differ in one noisy release per epoch, that of the user's batch; later rounds may
depend on it, which adaptive composition covers. So for every (t, π) the loss of the outputs is at most that of E
releases with the noise alone. H_α is jointly convex: the loss of the mixture over (t, π) is at most the largest of
these, which is that curve; in ρ by quasi-convexity.

A shuffled order has no neighbour with one user less: its batches have one size, so that without the user all later
users move into other batches. In bins, the other members stay in place without the user, and are placed independently
of the user's bin: for Gaussian noise an epoch is a random allocation
(`privcheck.accounting.random_allocation`), whose amplification the accountant computes; under replace-one, where both
users' bins have one law, that of two opposite contributions. In a shuffled order further amplification is *not* proved
here: another user stands where the user is not.

Lemma outputs-of-one-sample: Several outputs of one sample (actor and critic, an update and the bit of its clipping, a
selection together with a sum) are one output, and all of the above holds with their joint cost in place of Δ: Gaussian
noise is one Gaussian number of Σ (Δᵢ/σᵢ)² in unit noise, and ε and ρ add up, before the sample amplifies them and not
after. Proof: given the members of the sample their noise is independent, so X, Y and Z are products.

Two separate samples would both have to contain the user: pricing one sample as two understates the cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from privcheck.declare.mechanisms import GaussianNoise, Noise
from privcheck.declare.mechanisms.base import Charge
from privcheck.declare.procedures.base import Cost, Procedure, check_one_record
from privcheck.declare.procedures.charges import charge_of
from privcheck.declare.relations import AddRemoveOne, Relation, ReplaceOne, ZeroOut, name_relation, replaced, zeroed_out
from privcheck.declare.schedules import (
    BallsInBins,
    Once,
    Placed,
    Poisson,
    Sample,
    Sampled,
    Sampling,
    ShuffledEpochs,
    WithoutReplacement,
    WithReplacement,
)
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.symbols import Expr, at_most, exp, largest, log, maximum, minimum, same, sqrt, total

if TYPE_CHECKING:
    from privcheck.accounting.events import Event
    from privcheck.declare.releases import Release

_POISSON: Final = "Zhu, Dong & Wang 2022: (1 − q)N(0, σ²) + qN(Δ, σ²) dominates; in ρ every user is in every sample"
_REPLACED: Final = "Kahane 1986: two opposite users of a Poisson sample dominate; in ρ every user is in every sample"
_BATCH: Final = "Balle, Barthe & Gaboardi 2018, Theorem 9: a batch in which one member is replaced; in ρ all are in it"
_DRAWS: Final = "Balle, Barthe & Gaboardi 2018, Theorem 10: k of the draws replaced; in ρ all draws are the one user's"
_CUT: Final = "a Poisson sample, or where it is cut off a batch of a fixed size; in ρ every user is in every sample"
_SELECTED: Final = "Balle, Barthe & Gaboardi 2018, Theorem 8: on a Poisson sample of rate q ε is ln(1 + q(e^ε − 1))"
_PURE: Final = ", or ε²/2 of the amplified ε"
_FULL: Final = (
    "without one of its users no batch of that size can be drawn; declare a smaller batch, ReplaceOne or ZeroOut"
)
_PLACED: Final = "joint convexity: given where the user is, one noisy release an epoch; no amplification is proved"
_BINS: Final = "Feldman & Shenfeld 2025: one of an epoch's bins at random; in ρ the user's bin is known"
_TOGETHER: Final = "one sample: its outputs are one, Σ (Δ/σ)² in unit noise"
_UP: Final = 1 + 2**-48  # covers the roundings of a root of a sum of squares


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSample:
    """All outputs of one sample of the users, in every one of its rounds.

    Attributes:
        name: Name of the outputs, for messages.
        sampling: Sampling method.
        releases: Noisy statistics of the sample.
        selections: Pure selections on the sample, which must be a Poisson sample without a cap.
    """

    name: str
    sampling: Sampling
    releases: tuple[Release, ...] = ()
    selections: tuple[Procedure, ...] = ()


class _Noisy(NamedTuple):
    """One vector with noise of a law, its charge, and whether its coordinates change by 0 or ±Δ∞."""

    law: type[Noise]
    charge: Charge
    stepwise: bool


def sampling_of(schedule: object) -> Sampling:
    """Sampling method of a schedule with samples, whether its sample is shared or not."""
    assert isinstance(schedule, Sampled)
    return schedule.sampling if isinstance(schedule, Sample) else schedule


def alone(release: Release) -> OneSample:
    """A single release as the only output of its sample, even if other releases share that sample."""
    return OneSample(name=release.name, sampling=sampling_of(release.schedule), releases=(release,))


def check_sampling(release: Release) -> None:
    """Check that a price is known for noise of the release's law on its samples.

    Raises:
        DeclarationError: No price is known, or the noise is not drawn afresh in every round.
    """
    law, where, schedule = release.mechanism.law.name, f"release {release.name!r}", sampling_of(release.schedule)
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


def sampled_cost(of: OneSample, relation: Relation) -> Cost:
    """Cost of all rounds: ρ as if every round contained the user, and the amplified ε of pure DP.

    The amplification by sampling at δ > 0 has no closed form: the accountant computes it.

    Raises:
        DeclarationError: The relation is meaningless for that sampling; or there are selections, and a user is
            replaced, or has several trajectories, or a selection is not ε-DP.
    """
    check_relation(of, relation)
    sampling, between = of.sampling, _apart(of.sampling, relation)
    chosen = [_selection_cost(of, one, relation) for one in of.selections]
    rho = largest(*(_added([*_each(of, one, "zcdp"), *(cost.rho for cost in chosen)]) for one in between))
    if isinstance(sampling, Poisson) and isinstance(relation, ReplaceOne) and sampling.most is None:
        own = _added(_each(of, zeroed_out(relation), "zcdp"))
        rho = minimum(rho, own - log(maximum(1 - sampling.rate, exp(-1 * rho))))
    square = None if chosen else _sum(of, between, "gdp_squared")
    if isinstance(sampling, WithReplacement) and square is not None:  # m copies move it m times as far
        rho, square = rho * sampling.draws**2, square * sampling.draws**2
    pure = _sum(of, between, "pure", [cost.pure for cost in chosen if cost.pure is not None])
    if pure is not None and not isinstance(sampling, Placed):
        pure = _amplified(of, relation, pure)
    if pure is not None:
        rho = minimum(pure, pure**2 / 2, rho)
    sensitivity, charged = _sensitivity(of, relation, chosen)
    return Cost(
        sensitivity=sensitivity,
        charged=charged,
        rho=(sampling.times * rho).simplified(),
        pure=None if pure is None else sampling.times * pure,
        mu_squared=None,
        dominating_mu_squared=None if square is None else sampling.times * square,  # hockey-sticks are jointly convex
        theorem=_theorem(of, relation, pure=pure is not None),
    )


def sampled_events(of: OneSample, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
    """All rounds as events; empty if no user changes any output.

    Each is an upper bound, and tight if the accountant's event is: Poisson samples under every relation, batches
    without replacement in one round, random bins. A user who is zeroed out in a batch is charged as replaced, and a
    random position in an order as known.
    """
    sampling = of.sampling
    between = relation if isinstance(relation, ReplaceOne) and not others_stand_in(sampling) else replaced(relation)
    own, swapped = (_charges(of, one, values) for one in (zeroed_out(relation), between))
    rounds, chosen = int(sampling.times.number(values)), _selected(of, relation, values)
    if not rounds or not (chosen or any(one.l1 > 0 for one in (*own, *swapped))):
        return ()
    both = isinstance(relation, ReplaceOne)
    if isinstance(sampling, Placed):
        alone = _noises(of, own, zeroed_out(relation))
        once = _placed_events(sampling, relation, values, _noises(of, swapped, relation) if both else alone, alone)
    elif isinstance(sampling, Poisson):
        base = _noises(of, own, zeroed_out(relation))
        other = _noises(of, swapped, between) if both else ()
        stood = _noises(of, _charges(of, replaced(relation), values), None) if sampling.most is not None else ()
        once = _poisson_events(sampling, relation, values, (base, other, stood), chosen)
    else:
        charged = list(map(_larger, own, swapped)) if isinstance(relation, ZeroOut) else swapped
        base = _noises(of, charged, between if charged == swapped else None)
        once = _batch_events(sampling, relation, values, base)
    return tuple(rounds * one for one in once)


def _placed_events(
    sampling: Placed,
    relation: Relation,
    values: Mapping[str, Fraction],
    noises: tuple[_Noisy, ...],
    alone: tuple[_Noisy, ...],
) -> tuple[Event, ...]:
    """Events of one epoch of bins with Gaussian noise: a random allocation; else the user's round alone.

    Under replacing a user the allocation is that of two opposite contributions: it is charged where a user's change,
    in `noises`, is twice the user's own contribution, in `alone`. A smaller change is charged in a known round.
    """
    from privcheck.accounting.events import random_allocation

    if not isinstance(sampling, BallsInBins) or len(noises) != 1 or not noises[0].law.gaussian:
        return _noise_events(noises)
    moved = alone[0].charge.l2
    if isinstance(relation, ReplaceOne) and noises[0].charge.l2 < 2 * moved:
        return _noise_events(noises)
    bins, std = int(sampling.batches.number(values)), noises[0].charge.scale
    return (random_allocation(std=std, rounds=bins, sensitivity=moved, relation=name_relation(relation)),)


def _poisson_events(
    sampling: Poisson,
    relation: Relation,
    values: Mapping[str, Fraction],
    noise: tuple[tuple[_Noisy, ...], tuple[_Noisy, ...], tuple[_Noisy, ...]],
    chosen: tuple[Event, ...],
) -> tuple[Event, ...]:
    """Events of one round of a Poisson sample.

    Args:
        sampling: Sampling method.
        relation: The neighbouring relation.
        values: The parameters.
        noise: The output's numbers with a user removed; with one replaced; and, for a capped sample, with any other
            user in a user's place.
        chosen: Events of the selections.
    """
    from privcheck.accounting.events import poisson, poisson_gaussian, truncated_poisson_gaussian

    name, q = name_relation(relation), min(1.0, sampling.rate.number(values, rounding="up"))
    if q == 0:
        return ()
    own = noise[0][0].charge if len(noise[0]) == 1 and noise[0][0].law.gaussian and not chosen else None
    if sampling.most is not None and sampling.users is not None:
        assert own is not None
        users, most = int(sampling.users.number(values)), int(sampling.most.number(values))
        std, moved = own.scale, own.l2
        apart = min(2 * moved, max(moved, noise[2][0].charge.l2))
        cut = truncated_poisson_gaussian(
            std=std, rate=q, users=users, most=most, sensitivity=moved, apart=apart, relation=name
        )
        return (cut,)
    if own is not None:
        return (poisson_gaussian(std=own.scale, rate=q, sensitivity=own.l2, relation=name),)
    base, other = _on_one_sample((*_noise_events(noise[0]), *chosen)), _on_one_sample(_noise_events(noise[1]))
    assert base is not None
    return (poisson(event=base, rate=q, relation=name, replaced=other),)


def _batch_events(
    sampling: WithoutReplacement | WithReplacement,
    relation: Relation,
    values: Mapping[str, Fraction],
    noise: tuple[_Noisy, ...],
) -> tuple[Event, ...]:
    """Events of one round of a batch; `noise` holds the output's numbers with one member replaced."""
    from privcheck.accounting.events import with_replacement, without_replacement

    users, name = int(sampling.users.number(values)), name_relation(relation)
    if isinstance(sampling, WithReplacement):
        draws, (only,) = int(sampling.draws.number(values)), noise
        half, std = only.charge.l2 / 2, only.charge.scale
        return (with_replacement(std=std, users=users, draws=draws, sensitivity=half, relation=name),)
    batch, event = int(sampling.batch.number(values)), _on_one_sample(_noise_events(noise))
    assert event is not None
    if isinstance(relation, AddRemoveOne) and batch == users:
        raise ParameterError(f"a batch of all {users} users: {_FULL}", name="batch", given=batch)
    return (without_replacement(event=event, users=users, batch=batch, relation=name),)


def check_relation(of: OneSample, relation: Relation) -> None:
    """Check that neighbours under the relation are meaningful for the sampling.

    Raises:
        DeclarationError: A user is added to, or removed from, a shuffled order, or a batch of all users.
    """
    sampling, where = of.sampling, f"release {of.name!r}"
    full = isinstance(sampling, WithoutReplacement) and at_most(sampling.users, sampling.batch) is True
    if full and isinstance(relation, AddRemoveOne):
        raise DeclarationError(f"{where}: {_FULL}")
    if isinstance(sampling, ShuffledEpochs) and isinstance(relation, AddRemoveOne):
        message = f"{where}: without one user all later users in a shuffled order move up"
        remedy = "declare ZeroOut or ReplaceOne, not AddRemoveOne, or BallsInBins(bins=…, epochs=…)"
        raise DeclarationError(f"{message}, into other batches; {remedy}")


def others_stand_in(sampling: Sampling) -> bool:
    """Whether another user takes the place of an absent one in a batch, because batches have a fixed size."""
    return isinstance(sampling, WithoutReplacement | WithReplacement)


def _charged_relation(sampling: Sampling, relation: Relation) -> Relation:
    """Relation of the charged sensitivity: a removed member of a batch is replaced by another user."""
    swapped = others_stand_in(sampling) and isinstance(relation, AddRemoveOne)
    return replaced(relation) if swapped else relation


def _apart(sampling: Sampling, relation: Relation) -> tuple[Relation, ...]:
    """Relations between the two laws of a round that contains the user; the costlier of two for a capped sample."""
    if isinstance(sampling, Poisson) and sampling.most is not None and isinstance(relation, AddRemoveOne):
        return zeroed_out(relation), replaced(relation)
    return (_charged_relation(sampling, relation),)


def _moved(release: Release, relation: Relation) -> Sensitivity:
    """Sensitivity of one round, in the noise's coordinates, to a user who is in it."""
    return release.mechanism.whiten(release.statistic.sensitivity(relation))


def _each(of: OneSample, relation: Relation, unit: str) -> list[Expr]:
    """Cost of each noisy output for a user who is in the round, in `unit`, for the outputs with a cost in it.

    Args:
        of: The outputs of the sample.
        relation: The neighbouring relation.
        unit: "zcdp", "pure" or "gdp_squared".
    """
    costs = (getattr(one.mechanism, unit)(_moved(one, relation)) for one in of.releases)
    return [cost for cost in costs if cost is not None]


def _sum(of: OneSample, between: Sequence[Relation], unit: str, more: Sequence[Expr] = ()) -> Expr | None:
    """Joint cost of all outputs in a unit; None if an output has no cost in it."""
    each = [_each(of, one, unit) for one in between]
    if any(len(costs) < len(of.releases) for costs in each):
        return None
    return largest(*(_added([*costs, *more]) for costs in each))


def _added(costs: Sequence[Expr]) -> Expr:
    """Sum of costs; a single cost is returned as the same expression."""
    return costs[0] if len(costs) == 1 else total(list(costs))


def _amplified(of: OneSample, relation: Relation, apart: Expr) -> Expr:
    """Compute ln((1 − q + q·e^near)/(1 − q + q·e^{near − apart})) for one round."""
    sampling = of.sampling
    if of.selections:  # priced for a user who is in the sample or not
        near = apart
    else:
        own, swapped = (_added(_each(of, one, "pure")) for one in (zeroed_out(relation), replaced(relation)))
        near = own if isinstance(sampling, Poisson) else largest(own, swapped)
        near = near if isinstance(sampling, Poisson) or isinstance(relation, ZeroOut) else swapped
    if isinstance(sampling, Poisson):
        q = sampling.rate
    else:
        assert isinstance(sampling, WithoutReplacement)
        q = sampling.batch / sampling.users
    if same(near, apart):
        return log(1 + q * (exp(apart) - 1))
    return log((1 - q + q * exp(near)) / (1 - q + q * exp(near - apart)))


def _selection_cost(of: OneSample, selection: Procedure, relation: Relation) -> Cost:
    """Cost of a selection for a user who is in its sample or not.

    Raises:
        DeclarationError: A user is replaced, for which nothing is proved here: selections are priced for users who are
            in the sample or not. Or users have several trajectories. Or the selection is not ε-DP.
    """
    check_one_record(of.name, relation, why="the records of a user might be sampled one by one")
    if isinstance(relation, ReplaceOne):
        message = f"{of.name}: selections on a sample are priced for a user who is in it or not"
        raise DeclarationError(f"{message}, got {relation.words!r}; declare AddRemoveOne or ZeroOut")
    cost = selection.cost(relation)
    if cost.pure is None:
        message = f"{of.name}: {selection.name!r} is not ε-DP for any ε"
        raise DeclarationError(f"{message}; leave it outside of the sample; it is then charged in full")
    return cost


def _selected(of: OneSample, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
    """All selections of one round as one ε-DP mechanism; empty if no user changes a score."""
    from privcheck.accounting.events import pure

    costs = [_selection_cost(of, one, relation).pure for one in of.selections]
    whole = total([one for one in costs if one is not None]).number(values, rounding="up")
    return (pure(epsilon=whole),) if whole > 0 else ()


def _sensitivity(of: OneSample, relation: Relation, chosen: Sequence[Cost]) -> tuple[Sensitivity, Expr]:
    """Sensitivity of a round's output to one user, and the charged norm; for several outputs in unit noise."""
    if not of.releases:
        return chosen[0].sensitivity, chosen[0].charged
    relation = _charged_relation(of.sampling, relation)
    if len(of.releases) == 1 and not chosen:
        only = of.releases[0]
        sensitivity = only.statistic.sensitivity(relation)
        return sensitivity, getattr(sensitivity, only.mechanism.law.norm)
    units = [one.mechanism.std if one.mechanism.law.gaussian else one.mechanism.spread for one in of.releases]
    moved = list(zip([_moved(one, relation) for one in of.releases], units, strict=True))
    together = Sensitivity(
        l1=total([one.l1 / unit for one, unit in moved]),
        l2=sqrt(total([(one.l2 / unit) ** 2 for one, unit in moved])),
        linf=largest(*(one.linf / unit for one, unit in moved)),
        reason=f"one user moves {', '.join(one.name for one in of.releases)} at once, each in the unit of its noise",
    )
    gaussian = all(one.mechanism.law.gaussian for one in of.releases)
    return together, together.l2 if gaussian else together.l1


def _charges(of: OneSample, relation: Relation, values: Mapping[str, Fraction]) -> list[Charge]:
    """Charge of one contribution in each noisy output, released once."""
    once = (replace(one, schedule=Once(), fresh=False) for one in of.releases)
    return [charge_of(one, _moved(one, relation), values) for one in once]


def _larger(one: Charge, other: Charge) -> Charge:
    """Charge with the larger of both charges in every norm."""
    return replace(one, l1=max(one.l1, other.l1), l2=max(one.l2, other.l2), linf=max(one.linf, other.linf))


def _noises(of: OneSample, charges: Sequence[Charge], relation: Relation | None) -> tuple[_Noisy, ...]:
    """Noisy numbers of a round, with all Gaussian ones combined into one of Σ (Δ/σ)² in unit noise.

    With relation None, the charges do not belong to one relation, and no charge counts as stepwise.
    """
    noisy = [
        _Noisy(one.mechanism.law, cost, relation is not None and _moved(one, relation).stepwise)
        for one, cost in zip(of.releases, charges, strict=True)
    ]
    gaussian = [one.charge for one in noisy if one.law.gaussian]
    if len(gaussian) < 2:
        return tuple(noisy)
    norms = [math.fsum((getattr(c, norm) / c.scale) ** 2 for c in gaussian) for norm in ("l1", "l2", "linf")]
    l1, l2, linf = (math.sqrt(squared) * _UP for squared in norms)
    merged = replace(gaussian[0], scale=1.0, l1=l1, l2=l2, linf=linf)
    return (_Noisy(GaussianNoise, merged, stepwise=False), *(one for one in noisy if not one.law.gaussian))


def _noise_events(noises: Sequence[_Noisy]) -> tuple[Event, ...]:
    """Noisy numbers of one round as events, without those that no user changes."""
    moved = [one for one in noises if one.charge.l1 > 0]
    return tuple(event for law, cost, steps in moved for event in law.of(cost).events(cost, stepwise=steps))


def _on_one_sample(events: tuple[Event, ...]) -> Event | None:
    """Combine events on the same sample into one; None if there are none."""
    from privcheck.accounting.events.base import event, one_relation

    if len(events) <= 1:
        return events[0] if events else None
    pieces = [(piece, times * one.count) for one in events for piece, times in one.pieces]
    note = "; ".join(dict.fromkeys(one.note for one in events if one.note))
    return event("output", pieces, 1, note, of=" + ".join(map(str, events)), relation=one_relation(events))


def _theorem(of: OneSample, relation: Relation, *, pure: bool) -> str:
    several = f"{_TOGETHER}; " if len(of.releases) + len(of.selections) > 1 else ""
    return several + _one_theorem(of, relation) + (_PURE if pure and not of.selections else "")


def _one_theorem(of: OneSample, relation: Relation) -> str:
    sampling = of.sampling
    if isinstance(sampling, Placed):
        known = isinstance(sampling, BallsInBins)
        return _BINS if known and all(one.mechanism.law.gaussian for one in of.releases) else _PLACED
    if of.selections:
        return _SELECTED
    if isinstance(sampling, Poisson):
        poisson = _REPLACED if isinstance(relation, ReplaceOne) else _POISSON
        return poisson if sampling.most is None else _CUT
    return _DRAWS if isinstance(sampling, WithReplacement) else _BATCH
