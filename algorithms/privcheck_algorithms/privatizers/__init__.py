"""Privatizers of the online agents: exact counts in, noisy tables out; central (tree), local, and disjoint batches.

Their declarations, the noise in bulk, and the tree that recomputes noise if it does not fit into memory.

Imports: privcheck and kernels. Promises: an agent behind a privatizer sees only noisy tables.
"""

from __future__ import annotations
