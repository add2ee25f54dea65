"""Pages for people: the ledger as HTML that needs no script, drawn by the server, with the roles of the JSON API."""
