"""White-box audits: what reached the channel against the charge, what was drawn against the declared law.

Agents run on D, then on D′ behind D's billboard; their noise is recorded and tested; so are messages before a
shuffler.

Imports: privcheck, algorithms' worlds, engine, plan, releases. Promises: distances are exact, tests of noise share one
error rate.
"""

from __future__ import annotations
