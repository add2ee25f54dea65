"""A setting: everything about an algorithm that a user may choose, as one value that travels in every request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.features import FeatureMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A declaration in its chosen readings, with its parameters and the agent's options.

    Attributes:
        declaration: What may be released; None for a non-private baseline.
        values: The declaration's parameters.
        options: The agent's own options, all of them.
        readings: The chosen readings by name.
        features: Public features of states and actions of the data that is learned from, where it has any.
        drawn: The declaration that noise is drawn for and charged by, where that is not `declaration` itself: under
            release noise (`privcheck.drawn`). Agents plan with what is declared.
    """

    declaration: Declaration | None
    values: Mapping[str, Fraction] = field(default_factory=dict)
    options: Mapping[str, Fraction] = field(default_factory=dict)
    readings: Mapping[str, str] = field(default_factory=dict)
    features: FeatureMap | None = None
    drawn: Declaration | None = None

    @property
    def released(self) -> Declaration:
        """Returns what privatizers compute and channels draw: `drawn`, else the declaration.

        Raises:
            ParameterError: There is no declaration.
        """
        return self.drawn or self.declared

    @property
    def declared(self) -> Declaration:
        """Returns the declaration.

        Raises:
            ParameterError: There is none.
        """
        if self.declaration is None:
            message = "this algorithm is not private: it declares no releases, so there is nothing to account or audit"
            raise ParameterError(message, name="declaration")
        return self.declaration

    def at(self, values: Mapping[str, Fraction]) -> Setting:
        """Returns the setting with other values of its parameters; those that are not named stay."""
        return replace(self, values={**self.values, **values})
