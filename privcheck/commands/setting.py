"""From `NAME --set A=B …` to a declaration, its parameters and the agent's options, all checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from privcheck import registry
from privcheck.declaration import Declaration, resolve
from privcheck.errors import ParameterError, UnknownNameError
from privcheck.guarantees import claimed_delta
from privcheck.registry import Algorithm
from privcheck.setting import Setting
from privcheck.symbols import exact

_TABULAR: Final = frozenset({"H", "S", "A"})  # sizes that a user may state of any data; others where they are declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An algorithm with everything that a user may set, resolved; looked up once a command.

    Attributes:
        algorithm: The registered algorithm.
        setting: Its declaration in the chosen readings, with parameters and options.
    """

    algorithm: Algorithm
    setting: Setting

    @property
    def declaration(self) -> Declaration | None:
        """Returns what may be released; None for a non-private baseline."""
        return self.setting.declaration

    @property
    def values(self) -> Mapping[str, Fraction]:
        """Returns the declaration's parameters."""
        return self.setting.values

    @property
    def options(self) -> Mapping[str, Fraction]:
        """Returns the agent's options."""
        return self.setting.options

    @property
    def readings(self) -> Mapping[str, str]:
        """Returns the chosen readings."""
        return self.setting.readings

    @property
    def options_used(self) -> dict[str, str]:
        """Returns the options as the agent uses them, as floats in shortest form."""
        return {name: repr(float(value)).removesuffix(".0") for name, value in self.options.items()}

    @property
    def declared(self) -> Declaration:
        """Returns the declaration.

        Raises:
            ParameterError: The algorithm is a non-private baseline.
        """
        if self.declaration is None:
            message = f"{self.algorithm.name} is not private: it declares no releases, so there is nothing to account"
            raise ParameterError(message, name=self.algorithm.name)
        return self.declaration


def parse_sets(sets: Iterable[str]) -> dict[str, str]:
    """Returns NAME=VALUE pairs by name.

    Raises:
        ParameterError: One is not of this form, or a name is given twice.
    """
    parsed: dict[str, str] = {}
    for text in sets:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not (equals and name and value.strip()):
            raise ParameterError(f"--set expects NAME=VALUE, such as H=20 or rho=1/2; got {text!r}", given=text)
        if name in parsed:
            raise ParameterError(f"--set gives {name} twice: {parsed[name]} and {value.strip()}", name=name, given=text)
        parsed[name] = value.strip()
    return parsed


def resolve_setting(name: str, given: Mapping[str, str], *, sizes: Mapping[str, int] | None = None) -> Chosen:
    """Returns the setting of the algorithm that is registered under a name; as `settle`.

    Raises:
        UnknownNameError: The algorithm or a name in `given` is not known.
        ParameterError: A value is not of its parameter's kind, or contradicts the data.
    """
    return settle(registry.algorithm(name), given, sizes=sizes)


def settle(algorithm: Algorithm, given: Mapping[str, str], *, sizes: Mapping[str, int] | None = None) -> Chosen:
    """Returns the algorithm's setting.

    Args:
        algorithm: The registered one.
        given: The user's NAME=VALUE pairs.
        sizes: H, S and A of the data at hand, and the dimensions of its features; they take the place of the
            declaration's defaults, and what the user gave has to agree with them.

    Raises:
        UnknownNameError: A name in `given` is not known.
        ParameterError: A value is not of its parameter's kind, or contradicts the data.
    """
    readings = {r.name: r.check(given.get(r.name, r.ways[0])) for r in algorithm.readings}
    declaration = algorithm.declare(readings) if algorithm.declare is not None else None
    parameters = declaration.parameters if declaration is not None else ()
    declared = {p.name for p in parameters}
    optional = {p.name for p in algorithm.options}
    measured = {k: size for k, size in (sizes or {}).items() if k in declared or k in _TABULAR}
    known = declared | optional | readings.keys() | measured.keys()
    for key in given:
        if key not in known:
            raise UnknownNameError(f"parameter or option of {algorithm.name}", key, sorted(known))
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
    return Chosen(algorithm=algorithm, setting=setting)


def parse_delta(text: str | None, setting: Chosen) -> float:
    """Returns δ as a float: the given one, else that of the claim (0 of pure DP) and 1e-5 where it names none.

    Raises:
        ParameterError: It is not a number in [0, 1).
    """
    if text is None:
        claimed = claimed_delta(setting.declared.claim.guarantee)
        return 1e-5 if claimed is None else claimed.number(setting.values, rounding="down")
    value = exact(text)
    if not 0 <= value < 1:
        raise ParameterError(f"--delta expects a number in [0, 1), got {text}", name="delta", given=text)
    return float(value)
