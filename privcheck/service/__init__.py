"""The HTTP service (extra `[service]`): calculations that need no store, and the team's budget ledger.

`app` assembles the application, `access` checks a request before an endpoint runs, `problems` has the errors, `session`
the open ledger, `calculator` runs long calculations in processes that can be killed, `calculation_routes` and
`ledger_routes` are the endpoints, `pages` the HTML.

Imports `ledger`, `accounting`, the registry of `runtime` and the wording of `reports`; not the ledger's client.
Promises: every error is a problem document, a request is answered once for an idempotency key, and no calculation
exceeds its time limit.
"""

from __future__ import annotations
