"""White-box audits: exact values at the channel against the charge, drawn noise against the declared law.

Agents run on D, then on D′ with D's billboard; their noise, and messages before a shuffler, are recorded and
tested.

Imports: privcheck, algorithms' worlds, engine, plan, releases. Promises: distances are exact; tests of noise share
one error rate.
"""

from __future__ import annotations
