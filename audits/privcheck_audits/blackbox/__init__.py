"""Audits of functions of which nothing is known but their outputs and a claim."""
