"""The HTTP service (extra `[service]`): calculations that need no store, and the team's budget ledger.

One file a concern: `app` puts them together, `problems` are the errors, `limits` and `security` stand before all,
`calculator` runs what takes long in processes that are killed, `stateless` and `ledger_routes` are the endpoints.
"""
