"""The releases view: canaries, scores and attacks on the declared releases. No agent is run.

Imports: privcheck, bounds, engine, plan and shuffled. Promises: a bound is above the declaration's loss only with
the stated error rate.
"""

from __future__ import annotations
