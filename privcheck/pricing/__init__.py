"""Pricing: the cost of a declaration or of the record of a run, each question computed once.

`Priced(declaration, values)` is made at the entry of a command, a request or a public function and passed on; its
holders get the account, its numbers and its curve without computing them again, and add questions with `once`.

The room is between accounting, which knows numbers only, and the rooms that verify, run, audit and report. Imports
`declare`, `accounting` and the rooms below them; neither of the two imports it. Promises: costs are rounded up, figures
stated by a paper are never used, and all holders of the same `Priced` see the same figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privcheck.support.lazy import load_lazily

if TYPE_CHECKING:
    from privcheck.pricing.calibration import Calibration, least_factor, least_noise
    from privcheck.pricing.cost import Account, NumericAccount, account, second_opinion
    from privcheck.pricing.derivation import DerivationLine, ProcedureCost, ReleaseCost
    from privcheck.pricing.figures import LeastNoise, Method
    from privcheck.pricing.priced import Priced, Prices, once

# loaded when first used: reports that are read need the figures of this room, and neither NumPy nor SymPy
_HOMES = (
    ("privcheck.pricing.calibration", ("Calibration", "least_factor", "least_noise")),
    ("privcheck.pricing.cost", ("Account", "NumericAccount", "account", "second_opinion")),
    ("privcheck.pricing.derivation", ("DerivationLine", "ProcedureCost", "ReleaseCost")),
    ("privcheck.pricing.figures", ("LeastNoise", "Method")),
    ("privcheck.pricing.priced", ("Priced", "Prices", "once")),
)

__all__ = [
    "Account",
    "Calibration",
    "DerivationLine",
    "LeastNoise",
    "Method",
    "NumericAccount",
    "Priced",
    "Prices",
    "ProcedureCost",
    "ReleaseCost",
    "account",
    "least_factor",
    "least_noise",
    "once",
    "second_opinion",
]

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
