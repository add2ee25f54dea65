"""Shared code of linear agents: regression on noisy statistics, LSVI-UCB and LSVI-UCB++, runs, and audit worlds.

Imports: privcheck, kernels, privatizers and online. Promises: sums of users' features are released with the
declared noise only.
"""

from __future__ import annotations
