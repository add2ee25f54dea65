"""Resolution of `NAME --set A=B …` to a declaration, its parameters and the agent's options; grids of `--over`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from privcheck.declare.declaration import Declaration, resolve
from privcheck.errors import ParameterError, UnknownNameError
from privcheck.pricing import Priced
from privcheck.runtime import registry
from privcheck.runtime.discretisation import as_drawn
from privcheck.runtime.noise import opendp_version
from privcheck.runtime.registry import NAME, PRACTICAL, Algorithm, expand_preset
from privcheck.runtime.results import NoiseKind
from privcheck.runtime.setting import Setting
from privcheck.terms.guarantees import claimed_delta
from privcheck.terms.parameters import LEAST
from privcheck.terms.symbols import exact
from privcheck.terms.unit import Unit

_TABULAR: Final = frozenset({"H", "S", "A"})  # sizes that a user may state of any data; others where they are declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An algorithm with all its settings resolved; looked up once per command.

    Attributes:
        algorithm: The registered algorithm.
        setting: Its declaration in the chosen readings, with parameters and options.
        preset: Preset of the agent's constants that the user did not set.
        given: Names of the settings that the user gave.
    """

    algorithm: Algorithm
    setting: Setting
    preset: str = PRACTICAL
    given: frozenset[str] = frozenset()

    @property
    def declaration(self) -> Declaration | None:
        """The declaration; None for a non-private baseline."""
        return self.setting.declaration

    @property
    def values(self) -> Mapping[str, Fraction]:
        """Values of the declaration's parameters."""
        return self.setting.values

    @property
    def options(self) -> Mapping[str, Fraction]:
        """Values of the agent's options."""
        return self.setting.options

    @property
    def readings(self) -> Mapping[str, str]:
        """The chosen readings."""
        return self.setting.readings

    @property
    def released(self) -> Declaration:
        """The declaration of the noise that is drawn: the discrete one under release noise.

        Raises:
            ParameterError: The algorithm is a non-private baseline.
        """
        return self.declared if self.declaration is None else self.setting.released

    @property
    def judged(self) -> Chosen:
        """The setting whose declaration has the noise that is drawn, for verdicts on a release."""
        return self if self.setting.drawn is None else self._declaring(self.setting.drawn)

    @property
    def priced(self) -> Priced:
        """The declaration at its parameters, priced.

        Raises:
            ParameterError: The algorithm is a non-private baseline.
        """
        return self.setting.prices.of(self.declared, self.values)

    @property
    def charged(self) -> Chosen:
        """The setting whose declaration gives the run's cost to one of its users."""
        return self if self.declaration is None else self._declaring(self.released)

    def _declaring(self, declaration: Declaration) -> Chosen:
        if declaration is self.declaration:
            return self
        return replace(self, setting=replace(self.setting, declaration=declaration, drawn=None, covering=None))

    def protecting(self, unit: Unit | None) -> Chosen:
        """The setting for the users of a table, with their unit of privacy.

        Raises:
            ParameterError: The declaration has no price for users with several trajectories.
        """
        return replace(self, setting=self.setting.protecting(unit))

    def with_noise(self, noise: NoiseKind) -> Chosen:
        """The setting with noise of that kind.

        Raises:
            ParameterError: Release noise cannot be drawn for the declaration, or OpenDP is not installed.
        """
        if noise == "simulated":
            return self
        opendp_version()
        return self.as_released()

    def as_released(self) -> Chosen:
        """The setting with the noise of a release, whether or not it can be drawn on this machine.

        Raises:
            ParameterError: Release noise cannot be drawn for the declaration.
        """
        drawn = as_drawn(self.declared, self.values, prices=self.setting.prices)
        return replace(self, setting=self.setting.drawing(drawn))

    @property
    def options_used(self) -> dict[str, str]:
        """The options as the agent uses them: floats in shortest form."""
        return {name: repr(float(value)).removesuffix(".0") for name, value in self.options.items()}

    @property
    def declared(self) -> Declaration:
        """The declaration.

        Raises:
            ParameterError: The algorithm is a non-private baseline.
        """
        if self.declaration is None:
            message = (
                f"{self.algorithm.name} is not private: it declares no releases, so there is nothing to account for"
            )
            raise ParameterError(message, name=self.algorithm.name)
        return self.declaration


def parse_sets(sets: Iterable[str]) -> dict[str, str]:
    """Parse the NAME=VALUE pairs of --set.

    Raises:
        ParameterError: A text is not of this form, or a name is given twice.
    """
    return parse_pairs(sets, option="--set", example="H=20 or rho=1/2")


def parse_pairs(texts: Iterable[str], *, option: str, example: str = "episode=patient_id") -> dict[str, str]:
    """Parse the NAME=VALUE pairs of an option.

    Raises:
        ParameterError: A text is not of this form, or a name is given twice.
    """
    parsed: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not (equals and name and value.strip()):
            raise ParameterError(f"{option} expects NAME=VALUE, such as {example}; got {text!r}", given=text)
        if name in parsed:
            raise ParameterError(
                f"{option} gives {name} twice: {parsed[name]} and {value.strip()}", name=name, given=text
            )
        parsed[name] = value.strip()
    return parsed


def resolve_setting(name: str, given: Mapping[str, str], *, sizes: Mapping[str, int] | None = None) -> Chosen:
    """The setting of a registered algorithm; as `settle`.

    Raises:
        UnknownNameError: The algorithm or a name in `given` is unknown.
        ParameterError: A value is not of its parameter's kind, or contradicts the data.
    """
    return settle(registry.algorithm(name), given, sizes=sizes)


def settle(algorithm: Algorithm, given: Mapping[str, str], *, sizes: Mapping[str, int] | None = None) -> Chosen:
    """Resolve an algorithm's setting.

    Args:
        algorithm: The registered algorithm.
        given: The user's NAME=VALUE pairs.
        sizes: H, S and A of the data at hand, and the dimensions of its features; they replace the declaration's
            defaults, and the user's values must agree with them.

    Raises:
        UnknownNameError: A name in `given`, or the preset, is unknown.
        ParameterError: A value is not of its parameter's kind, or contradicts the data.
    """
    asked = frozenset(given)
    preset, given = expand_preset(algorithm, given)
    readings = {r.name: r.check(given.get(r.name, r.ways[0])) for r in algorithm.readings}
    declaration = algorithm.declare(readings) if algorithm.declare is not None else None
    parameters = declaration.parameters if declaration is not None else ()
    declared = {p.name for p in parameters}
    optional = {p.name for p in algorithm.options}
    measured = {k: size for k, size in (sizes or {}).items() if k in declared or k in _TABULAR}
    known = declared | optional | readings.keys() | measured.keys()
    for key in given:
        if key not in known:
            every = sorted({*known, NAME} if algorithm.runs else known)
            raise UnknownNameError(f"parameter or option of {algorithm.name}", key, every)
    for key, size in measured.items():
        if key in given and exact(given[key]) != size:
            message = f"--set {key}={given[key]} contradicts the data, which have {key} = {size}: leave one of them out"
            raise ParameterError(message, name=key, given=given[key])
    wanted = {k: v for k, v in given.items() if k in declared} | {
        k: str(v) for k, v in measured.items() if k in declared
    }
    setting = Setting(
        declaration=declaration,
        values=declaration.values(wanted) if declaration is not None else {},
        options=resolve(algorithm.options, {k: v for k, v in given.items() if k in optional}, owner=algorithm.name),
        readings=readings,
    )
    return Chosen(algorithm=algorithm, setting=setting, preset=preset, given=asked)


def parse_delta(given: str | float | Fraction | None, setting: Chosen) -> float:
    """δ as a float: the given one, else that of the claim (0 of pure DP), or 1e-5 if the claim has none.

    Raises:
        ParameterError: The given δ is not a number in [0, 1), or is positive and below 1e-300.
    """
    if given is None:
        claimed = claimed_delta(setting.declared.claim.guarantee)
        return 1e-5 if claimed is None else claimed.number(setting.values, rounding="down")
    outside = isinstance(given, float) and not 0 <= given < 1  # NaN too
    value = Fraction(0) if outside else parse_number(given, option="--delta")
    if outside or not 0 <= value < 1:
        raise ParameterError(f"--delta expects a number in [0, 1), got {given}", name="delta", given=given)
    return float(value)


def parse_number(given: str | float | Fraction, *, option: str) -> Fraction:
    """Parse the value of an option exactly; as a float it must neither vanish nor overflow.

    Args:
        given: The given value; floats are accepted.
        option: Name of the option, for messages.

    Raises:
        ParameterError: The value is not a number, or its size is neither 0 nor between 1e-300 and 1e300.
    """
    name = option.lstrip("-")
    try:
        value = Fraction(given) if isinstance(given, float) else exact(given)
    except (ParameterError, ValueError, OverflowError):
        message = f"{option} expects a number such as 1/2, 0.5 or 1e-5, got {str(given)[:40]!r}"
        raise ParameterError(message, name=name, given=given) from None
    if value != 0 and not LEAST <= abs(value) <= 1 / LEAST:
        message = f"{option} expects 0 or a number between 1e-300 and 1e300, got {str(given)[:40]}"
        raise ParameterError(message, name=name, given=given)
    return value


_MOST: Final = 10_000  # points of a grid
_EXAMPLE: Final = "epsilon=0.1,1,10"

Grid = dict[str, tuple[str, ...]]


def parse_over(texts: Iterable[str], given: Mapping[str, str]) -> Grid:
    """Parse the values by parameter, in the given order.

    Args:
        texts: Texts of the form NAME=VALUE,VALUE,….
        given: Parameters set with --set, which cannot be swept as well.

    Raises:
        ParameterError: A text has another form, a name or a value is given twice, a name is also set, there is no
            parameter, or the grid has more than 10 000 points.
    """
    return check_grid({name: values.split(",") for name, values in _split(texts).items()}, given)


def _split(texts: Iterable[str]) -> dict[str, str]:
    return parse_pairs(texts, option="--over", example=_EXAMPLE)


def check_grid(over: Mapping[str, Sequence[str]], given: Mapping[str, str]) -> Grid:
    """Check the grid and return it; as `parse_over`.

    Args:
        over: Values as texts by parameter.
        given: Parameters set with --set.
    """
    if not over:
        raise ParameterError(f"--over expects a parameter with its values, such as {_EXAMPLE}; got none", name="over")
    grid = {name: tuple(value.strip() for value in values) for name, values in over.items()}
    for name, values in grid.items():
        shown = f"--over {name}={','.join(values)}"
        if name in given:
            message = f"{shown} and --set {name}={given[name]}: a parameter is swept or set, not both"
            raise ParameterError(message, name=name, given=given[name])
        if not values or not all(values):
            raise ParameterError(f"{shown}: expected a value before and after every comma", name=name, given=values)
        numbers = [number(value) for value in values]
        for place, one in enumerate(numbers):
            if one in numbers[:place]:
                first = values[numbers.index(one)]
                message = f"{shown}: {values[place]} is given twice" + (
                    "" if first == values[place] else f", as {first} too"
                )
                raise ParameterError(message, name=name, given=values[place])
    points = 1
    for values in grid.values():
        points *= len(values)
    if points > _MOST:
        raise ParameterError(f"--over: a grid of {points:,} points; expected at most {_MOST:,}", name="over")
    return grid


def number(text: str) -> Fraction | str:
    """The exact number in a text; the text itself if it is not a number, such as a reading."""
    try:
        return exact(text)
    except ParameterError:
        return text


def list_points(grid: Grid) -> list[dict[str, str]]:
    """Every combination of values; the last parameter varies fastest.

    >>> list_points({"K": ("10", "20"), "epsilon": ("1", "2")})[:2]
    [{'K': '10', 'epsilon': '1'}, {'K': '10', 'epsilon': '2'}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
