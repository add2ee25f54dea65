"""Blocks of trials: seeds, counts, pools, checkpoints, scores.

Imports: privcheck and bounds. Promises: one seed a block, the same result wherever blocks run and however often an
audit was interrupted, and memory that does not grow with the number of trials.
"""

from __future__ import annotations
