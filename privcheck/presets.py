"""Presets: which constants an agent plans with where its user sets none.

`practical`, the default, are the defaults of the agent's options; `paper` are the constants that its paper prints
(`Algorithm.printed`). Both change post-processing alone: no declared parameter, noise, sensitivity or schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from privcheck.errors import DeclarationError, ParameterError, UnknownNameError

if TYPE_CHECKING:
    from privcheck.registry import Algorithm

NAME: Final = "preset"  # what users set
PRACTICAL: Final = "practical"
PAPER: Final = "paper"
PRESETS: Final = (PRACTICAL, PAPER)


def check_printed(algorithm: Algorithm) -> None:
    """Refuses printed constants that are none of the agent's, or have values that it would refuse.

    Raises:
        DeclarationError: They are, or an option or reading has the name of the presets' own.
        ParameterError: A value is refused.
    """
    options = {option.name: option for option in algorithm.options}
    readings = {reading.name: reading for reading in algorithm.readings}
    if NAME in options or NAME in readings:
        message = f"{algorithm.name}: {NAME!r} names what chooses among an agent's constants; call the option otherwise"
        raise DeclarationError(message)
    for name, value in algorithm.printed.items():
        if name in options:
            options[name].check(value)
        elif name in readings:
            readings[name].check(value)
        else:
            known = ", ".join([*options, *readings]) or "none"
            message = f"{algorithm.name}: printed constants are of its options and readings ({known}), got {name!r}"
            raise DeclarationError(message)


def expand_preset(algorithm: Algorithm, given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Returns the name of the preset, and the user's NAME=VALUE pairs with its constants where they set none.

    Raises:
        UnknownNameError: There is no such preset.
        ParameterError: One is named, and there is no agent whose constants it could choose.
    """
    own = {name: value for name, value in given.items() if name != NAME}
    name = given.get(NAME, PRACTICAL)
    if name not in PRESETS:
        raise UnknownNameError(NAME, name, PRESETS)
    if NAME in given and not algorithm.runs:
        message = f"{algorithm.name} has no agent, and a preset chooses an agent's constants: leave {NAME} out"
        raise ParameterError(message, name=NAME, given=name)
    return name, ({**algorithm.printed, **own} if name == PAPER else own)
