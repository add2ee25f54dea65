"""The releases view: canaries, scores and attacks on what is declared to leave. No agent is run.

Imports: privcheck, bounds, engine, plan and shuffled. Promises: no bound is above what the
declaration can lose, but with the stated error rate.
"""

from __future__ import annotations
