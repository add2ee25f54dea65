"""Numerics: laws of the privacy loss, and ε and δ of their compositions."""
