"""Loops that several agents share, compiled by Numba and cached on disk.

Finite models and exact values in them, counters in memory, optimism, regression on features, mixtures, and batches
with one public policy. A file of kernels contains little else, because any change recompiles all of it.

Imports: privcheck only. Promises: no kernel draws noise; all randomness is passed as a Generator or as numbers.
"""
