"""Blocks of trials: seeds, counts, pools, checkpoints, scores.

Imports: privcheck and bounds. Promises: one seed per block, a result independent of where blocks run and of
interruptions, and memory that does not grow with the number of trials.
"""

from __future__ import annotations
