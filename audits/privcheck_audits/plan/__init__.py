"""Audit plans: one for all algorithms, from what is registered; and what every view does with a request."""
