"""Shared code of the tabular online agents: their environment, options, public policies of batches.

Imports: privcheck, kernels and privatizers. Promises: an agent's inputs are the billboard and public values.
"""

from __future__ import annotations
