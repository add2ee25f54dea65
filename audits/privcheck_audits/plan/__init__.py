"""Audit plans: one for all algorithms, from what is registered; what every view does with a request, and pictures."""
