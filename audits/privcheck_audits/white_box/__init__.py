"""Audits that look inside: what reached the channel against the charge, what was drawn against the declared law."""
