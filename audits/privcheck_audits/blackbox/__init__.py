"""Audits of functions known only by their outputs and a claim.

Imports: privcheck, bounds, engine, and the pictures of plan; no view of an algorithm. Promises: scores, shares of the
error rate and the grid are fixed before any tested run is seen.
"""

from __future__ import annotations
