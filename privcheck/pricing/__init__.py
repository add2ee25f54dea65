"""Pricing: what a declaration or the record of a run costs, each question computed once.

`Priced(declaration, values)` is made at the door of a command, a request or a public function and handed on; whoever
holds it asks for the account, its numbers and its curve without computing them again, and adds questions with `once`.

The room stands between accounting, which knows numbers only, and whatever verifies, runs, audits and reports. It
imports what declares (releases, procedures, statistics, mechanisms, declaration), accounting, and the entries of a
run's record; nothing that declares or accounts imports it. It promises that a cost is rounded up, that what a paper
states plays no part in it, and that two who hold the same `Priced` see the same figures.
"""

from privcheck.pricing.calibration import Calibration, LeastNoise, least_factor, least_noise
from privcheck.pricing.cost import Account, Method, NumericAccount, account, second_opinion
from privcheck.pricing.derivation import DerivationLine, ProcedureCost, ReleaseCost
from privcheck.pricing.priced import Priced, Prices, once

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
