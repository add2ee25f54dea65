"""Accounting: from a declaration, or a ledger, to what it costs."""

from privcheck.accounting.account import Account, Line, Method, NumericAccount, ReleaseCost, account
from privcheck.accounting.conversions import claim_delta, claim_epsilon, pure_delta, zcdp_delta, zcdp_to_epsilon
from privcheck.accounting.gdp import gdp_delta, gdp_epsilon
from privcheck.accounting.spending import Spent, check_ledger, spent

__all__ = [
    "Account",
    "Line",
    "Method",
    "NumericAccount",
    "ReleaseCost",
    "Spent",
    "account",
    "check_ledger",
    "claim_delta",
    "claim_epsilon",
    "gdp_delta",
    "gdp_epsilon",
    "pure_delta",
    "spent",
    "zcdp_delta",
    "zcdp_to_epsilon",
]
