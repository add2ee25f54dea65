"""A setting: all user choices about an algorithm, as one value that is part of every request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from privcheck.data.features import FeatureMap
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.procedures.base import Procedure
from privcheck.declare.relations import most_trajectories
from privcheck.declare.releases import Release
from privcheck.declare.schedules import Once
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import Priced, Prices
from privcheck.terms.symbols import expression
from privcheck.terms.unit import Unit, say_trajectories

_OFF: Final = Fraction(1, 2**200)  # its square, a variance, is still far above the smallest float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A declaration in its chosen readings, with its parameters and the agent's options.

    Attributes:
        declaration: The declaration of the releases; None for a non-private baseline.
        values: The declaration's parameters.
        options: The agent's own options, all of them.
        readings: The chosen readings by name.
        features: Public features of states and actions of the training data, if there are any.
        drawn: The declaration that noise is drawn for, if it is not `declaration` itself: under release noise
            (`privcheck.runtime.discretisation`). Agents plan with the declared noise.
        unit: Who the users of the data are; None before any data are known.
        covering: `drawn` or `declaration` under a relation that covers all trajectories of a user, if these are more
            than it declares. Its noise is the same, its cost that of a user.
        prices: The prices of all its declarations, each made once; settings derived from this one share them.
    """

    declaration: Declaration | None
    values: Mapping[str, Fraction] = field(default_factory=dict)
    options: Mapping[str, Fraction] = field(default_factory=dict)
    readings: Mapping[str, str] = field(default_factory=dict)
    features: FeatureMap | None = None
    drawn: Declaration | None = None
    unit: Unit | None = None
    covering: Declaration | None = None
    prices: Prices = field(default_factory=Prices, repr=False, compare=False)

    @property
    def priced(self) -> Priced:
        """The declaration at its parameters, priced.

        Raises:
            ParameterError: There is no declaration.
        """
        return self.prices.of(self.declared, self.values)

    @property
    def released(self) -> Declaration:
        """The declaration that privatizers compute, channels draw and users are charged for.

        Raises:
            ParameterError: There is no declaration.
        """
        return self.covering or self.drawn or self.declared

    @property
    def protected(self) -> Unit:
        """The unit of privacy of a run: the users of its data under the relation and model of what it releases.

        Raises:
            ParameterError: There is no declaration.
        """
        return self.released.unit(self.values, self.unit)

    def protecting(self, unit: Unit | None) -> Setting:
        """The setting for users of a table, each with up to the unit's number of trajectories.

        Raises:
            ParameterError: The declaration has no price for users with several trajectories.
        """
        return _cover(replace(self, unit=unit))

    def drawing(self, drawn: Declaration) -> Setting:
        """The setting in which noise is drawn for another declaration."""
        return _cover(replace(self, drawn=drawn))

    def without_noise(self) -> Setting:
        """The setting of an agent whose noise is off: every declared spread is too small for a float to show.

        An agent that reads its constants from the declaration, such as bonuses or weights that follow the noise, then
        plans as it would without privacy. Messages of fair bits, which are at least one, become rare ones.

        Raises:
            ParameterError: There is no declaration, or a mechanism without another spread.
        """
        quiet = replace(self.declared, releases=tuple(_hush(one) for one in self.declared.releases))
        return replace(self, declaration=quiet, drawn=None, covering=None, prices=Prices())

    @property
    def declared(self) -> Declaration:
        """The declaration.

        Raises:
            ParameterError: There is no declaration.
        """
        if self.declaration is None:
            message = "this algorithm is not private: it declares no releases, so there is nothing to account or audit"
            raise ParameterError(message, name="declaration")
        return self.declaration

    def at(self, values: Mapping[str, Fraction]) -> Setting:
        """The setting with other values for some of its parameters."""
        return replace(self, values={**self.values, **values})


def _hush(release: Procedure) -> Procedure:
    if isinstance(release, Release) and isinstance(release.mechanism, ShuffledBits):
        return replace(release, mechanism=replace(release.mechanism, threshold=expression(_OFF**2), dealt=False))
    return release.with_std(_OFF)


def _cover(setting: Setting) -> Setting:
    if setting.declaration is None or setting.unit is None:
        return replace(setting, covering=None)
    drawn = setting.drawn or setting.declaration
    return replace(setting, covering=_cover_users(drawn, setting.unit, setting.values))


def _cover_users(declaration: Declaration, unit: Unit, values: Mapping[str, Fraction]) -> Declaration | None:
    """The declaration for users with more trajectories than it declares; None if it covers them.

    Raises:
        ParameterError: The declaration has no cost for such users.
    """
    covered = most_trajectories(declaration.relation, values)
    if covered >= unit.trajectories:
        return None
    several = (
        f"{declaration.name} covers {say_trajectories(covered)} of a user, and a {unit.who} has up to "
        f"{unit.trajectories}"
    )
    remedy = "keep one of each: privcheck prepare --max-trajectories 1 --keep first (or random)"
    # a user's trajectories may be in several parts at once, and in outputs that are disjoint for single trajectories
    divided = [r.name for r in declaration.noisy if r.users or not isinstance(r.schedule, Once)]
    if divided or declaration.others or declaration.model != "central":
        parts = ", ".join([*divided, *(one.name for one in declaration.others)]) or f"the {declaration.model} model"
        message = f"{several}, which {parts} would count in several places; {remedy}"
        raise ParameterError(message, name="trajectories", given=unit.trajectories)
    try:
        relation = replace(declaration.relation, unit="user", trajectories=expression(unit.trajectories))
        return replace(declaration, relation=relation)
    except DeclarationError as error:
        raise ParameterError(f"{several}: {error}; {remedy}", name="trajectories") from None
