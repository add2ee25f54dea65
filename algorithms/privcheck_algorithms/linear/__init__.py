"""What linear agents share: regression on noisy statistics, LSVI-UCB and LSVI-UCB++, runs, and audit worlds.

Imports: privcheck, kernels, privatizers and online. Promises: sums of users' features leave through the declared noise
only.
"""

from __future__ import annotations
