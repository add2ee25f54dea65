"""Charges and events of noisy statistics of all users: sensitivity of all outputs, against the noise that is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from privcheck.declare.mechanisms import Noise, ShuffledNoise
from privcheck.declare.mechanisms.base import Charge
from privcheck.declare.statistics import Sensitivity
from privcheck.errors import DeclarationError, ParameterError

if TYPE_CHECKING:
    from privcheck.accounting.events import Event
    from privcheck.declare.relations import Relation
    from privcheck.declare.releases import Release


def charge(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Charge:
    """Charge of the whole release: the derived sensitivity of all its outputs, and the noise drawn.

    If the noise depends on the size n of a batch and no n is given, the charge is for the batch with the least noise.
    """
    return charge_of(release, release.charged(relation), release.quietest(values))


def charge_of(release: Release, charged: Sensitivity, values: Mapping[str, Fraction]) -> Charge:
    """Charge of the whole release from a sensitivity that is already derived.

    Raises:
        DeclarationError: The mechanism draws noise of another law than its `law`.
    """
    noise, law = release.mechanism.at(values), release.mechanism.law
    if not isinstance(noise, law):
        message = f"release {release.name!r}: its mechanism says the law {law.name!r} and draws {noise!r:.100}"
        raise DeclarationError(f"{message}; let `at` return noise of the class {law.__name__}")
    return noise.charge(
        l1=charged.l1.number(values, rounding="up"),
        l2=charged.l2.number(values, rounding="up"),
        linf=charged.linf.number(values, rounding="up"),
        users=release.users,
    )


def release_branches(
    releases: Sequence[tuple[Release, Sensitivity]], values: Mapping[str, Fraction], *, factor: float = 1.0
) -> tuple[tuple[Event, ...], ...]:
    """Events of releases that contain the same user, one tuple per batch size that the user may be in.

    Sizes that are certainly no worse than another are left out: if fair bits are separate messages, all but the size
    with the fewest bits; for integer messages as in `fewest_hidden`.

    Args:
        releases: Releases, each with `release.charged(relation)`.
        values: The parameters.
        factor: Factor on the standard deviation of the noise.

    Raises:
        ParameterError: The releases are in batches of different sizes.
    """
    sized = [release for release, _ in releases if release.batch_sizes is not None]
    settings = sized[0].settings(values) if sized else (values,)
    if any(release.settings(values) != settings for release in sized):
        names = ", ".join(release.name for release in sized)
        raise ParameterError(f"{names} hold the same users in batches of different sizes", name="sizes")
    if not settings:  # nobody is in any of the batches: what else holds the user is all there is
        releases, settings = [(r, charged) for r, charged in releases if r.batch_sizes is None], (values,)
    if not releases:
        return ()
    first = [charge_of(release, charged, settings[0]) for release, charged in releases]
    drawn = [[release.mechanism.at(at) for release, _ in releases] for at in settings]
    rows = [[_draw(cost, noise, factor) for cost, noise in zip(first, one, strict=True)] for one in drawn]
    laws = [release.mechanism.law for release, _ in releases]
    stepwise = [charged.stepwise for _, charged in releases]
    branches = [
        tuple(
            event
            for cost, law, steps in zip(row, laws, stepwise, strict=True)
            if cost.l1 > 0  # else nobody moves it: no outputs, or nothing that neighbours may differ in
            for event in law.of(cost).events(cost, stepwise=steps)
        )
        for row in _worst_rows(rows, laws)
    ]
    return tuple(dict.fromkeys(branches))


def _draw(cost: Charge, noise: Noise, factor: float) -> Charge:
    """Charge with this noise at `factor` times its standard deviation; for shuffled bits factor² times the bits."""
    drawn = noise.charge(l1=cost.l1, l2=cost.l2, linf=cost.linf, users=cost.users)
    return replace(drawn, scale=drawn.scale * factor, threshold=drawn.threshold * factor**2)


def _worst_rows(rows: Sequence[Sequence[Charge]], laws: Sequence[type[Noise]]) -> Sequence[Sequence[Charge]]:
    """Charges for the batch sizes that must be examined, where all releases have the same noise; else all rows."""
    law = laws[0]
    alike = all(len({(c.senders, c.threshold) for c in row}) == 1 for row in rows)
    if not (issubclass(law, ShuffledNoise) and set(laws) == {law} and alike):
        return rows
    worst = law.worst_batches([(row[0].senders, row[0].threshold) for row in rows])
    return [[replace(c, senders=n, threshold=tau) for c in rows[0]] for n, tau in worst]
