"""Privatizers of the online agents: exact counts in, noisy tables out; central (tree), local, and disjoint batches.

Their declarations, the noise in bulk, and the tree whose noise is computed again where it does not fit into memory.

Imports: privcheck and kernels. Promises: an agent behind a privatizer sees noisy tables alone.
"""

from __future__ import annotations
