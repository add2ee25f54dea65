"""The budget ledger of a team: the spending on each dataset, its authors, and the rest.

A dataset's policy (ε, δ) is divided into grants with fixed caps; a charge is admitted if its cost fits into its grant's
cap, and recorded before noise is drawn. Everything is a row of an append-only chain in a store, SQLite without a
server. `privcheck.ledger.transitions` has the state machine of a charge, `privcheck.ledger.policies` the argument that
the grants together keep the (ε, δ), `privcheck.ledger.client` the client of `privcheck serve`.

Imports `accounting`, `terms`, `support` and `errors`; knows neither HTTP servers, pages nor the command line. Promises:
costs are exact or rounded up, no grant exceeds its cap, and no row of a chain is changed or removed.
"""

from __future__ import annotations

from privcheck.ledger.balances import Balance
from privcheck.ledger.book import Book
from privcheck.ledger.heads import Evidence, Head
from privcheck.ledger.registry import Actor, Role, may
from privcheck.ledger.store import Store, Transaction
from privcheck.ledger.transitions import Prepared
from privcheck.ledger.urls import create_store, open_store
from privcheck.ledger.values import BudgetPolicy, Charge, Decision, Grant, Quote, Receipt
from privcheck.ledger.wire import Spending, parse_event
from privcheck.ledger.writer import Writer

__all__ = [
    "Actor",
    "Balance",
    "Book",
    "BudgetPolicy",
    "Charge",
    "Decision",
    "Evidence",
    "Grant",
    "Head",
    "Prepared",
    "Quote",
    "Receipt",
    "Role",
    "Spending",
    "Store",
    "Transaction",
    "Writer",
    "create_store",
    "may",
    "open_store",
    "parse_event",
]
