"""All rules, in the order in which their findings are reported within a severity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from privcheck.verification.claim import Case, claim_findings
from privcheck.verification.findings import Finding
from privcheck.verification.sensitivity import stated_sensitivities
from privcheck.verification.sharing import shared_noise

Rule = Callable[[Case], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (stated_sensitivities, shared_noise, claim_findings)
