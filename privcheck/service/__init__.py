"""The HTTP service (extra `[service]`): calculations that need no store, and the team's budget ledger.

`app` puts the parts together, `access` checks a request before an endpoint runs, `problems` are the errors,
`session` is the open ledger, `calculator` runs what takes long in processes that are killed, `calculation_routes`
and `ledger_routes` are the endpoints, `pages` the HTML.

Imports: the ledger, and the wording of reports. Promises: every error is a problem document, a request is answered
once for an idempotency key, and no calculation outlives its time.
"""

from __future__ import annotations
